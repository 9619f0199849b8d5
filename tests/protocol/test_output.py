"""stdout and stderr: whole, capped, streamed live or lossless, in every encoding."""

import base64
import time

import pytest

from expect import fault, plain

pytestmark = pytest.mark.any_user

WINDOW = 256 * 1024  # bytes a lossless stream may send before its first credit


def chunks(client, future, stream="stdout"):
    """The bytes of a run's notifications, asserting seq and offsets on the way."""
    events = client.output_events(future)
    seqs = [e["seq"] for e in events]
    assert seqs == list(range(seqs[0], seqs[0] + len(seqs))) if seqs else True
    data, at = b"", 0
    for event in events:
        if event["stream"] != stream:
            continue
        piece = event["text"].encode() if "text" in event else base64.b64decode(event["base64"], validate=True)
        assert event["offset"] == at, "a gap"
        at += event["bytes"]
        data += piece
    return data


@pytest.mark.parametrize("size", [0, 1, 4096, 65536, 65537, 300_000, 3_000_000])
def test_output_of_any_size_is_whole(client, size):
    result = client.run(
        "python3", "-c", f"import sys; sys.stdout.write(('0123456789abcde\\n' * {size // 16 + 1})[:{size}])"
    )
    assert client.text(result["stdout"]) == (b"0123456789abcde\n" * (size // 16 + 1))[:size]
    assert (result["stdoutBytes"], result["truncated"]) == (size, False)
    assert isinstance(result["stdout"], dict) is (size > 32 * 1024)


def test_both_streams_large(client):
    code = "import os\nfor i in range(100):\n    os.write(1, b'o' * 3000); os.write(2, b'e' * 2900)"
    result = client.run("python3", "-c", code)
    assert client.text(result["stdout"]) == b"o" * 300_000
    assert client.text(result["stderr"]) == b"e" * 290_000


def test_large_blob_says_what_it_is(client):
    import hashlib

    blob = client.run("python3", "-c", "print('x' * 99999)")["stdout"]["blob"]
    assert blob["bytes"] == 100_000
    assert blob["sha256"] == hashlib.sha256(b"x" * 99999 + b"\n").hexdigest()
    assert blob["mime"].startswith("text/plain")


BYTES = b"a\xff\xc3\xa9\xe2\x82b\xf0\x9f\x98\x80\xed\xa0\x80z\0"
# every maximal ill-formed subpart becomes one U+FFFD (Unicode 15, section 3.9, conformance of the replacement)
REPLACED = "a\ufffd\u00e9\ufffdb\U0001f600\ufffd\ufffd\ufffdz\0"
WRITE_BYTES = ("python3", "-c", f"import os; os.write(1, {BYTES!r})")


def test_invalid_utf8_is_replaced(client):
    result = client.run(*WRITE_BYTES)
    assert (result["stdout"], result["stdoutBytes"]) == (REPLACED, len(BYTES))


def test_encoding_auto(client):
    assert client.run(*WRITE_BYTES, encoding="auto")["stdout"] == {"base64": base64.b64encode(BYTES).decode()}
    assert client.run("echo", "h\u00e9", encoding="auto")["stdout"] == "h\u00e9\n"


def test_encoding_base64(client):
    assert client.run("echo", "h\u00e9", encoding="base64")["stdout"] == {
        "base64": base64.b64encode("h\u00e9\n".encode()).decode()
    }


@pytest.mark.parametrize("stream", ["off", "live", "lossless"])
def test_code_points_written_byte_by_byte(client, stream):
    code = "import os, time\nfor b in 'é€😀x'.encode() * 3:\n    os.write(1, bytes([b])); time.sleep(0.012)"
    future = client.send("run/argv", {"runId": "r", "argv": ["python3", "-c", code], "stream": stream})
    plain(future.result(), "é€😀x" * 3)
    if stream != "off":
        assert all("base64" not in e and "\ufffd" not in e["text"] for e in client.output_events(future))
        assert chunks(client, future) == ("é€😀x" * 3).encode()


def test_code_point_cut_by_the_end(client):
    future = client.send("run/argv", {"runId": "r", "argv": ["printf", r"a\303"], "stream": "live", "encoding": "auto"})
    assert future.result()["stdout"] == {"base64": "YcM="}
    assert chunks(client, future) == b"a\xc3"


# -- caps


@pytest.mark.parametrize("cap, truncated", [(9, True), (10, False), (11, False)])
def test_kept_copy_is_capped_exactly(client, cap, truncated):
    result = client.run("printf", "0123456789", maxOutputBytes=cap)
    assert (result["stdout"], result["stdoutBytes"], result["truncated"]) == ("0123456789"[:cap], 10, truncated)
    assert (result["exitCode"], result["success"]) == (0, True)


def test_cap_never_cuts_a_code_point_into_garbage(client):
    result = client.run("printf", "ab\u20ac", maxOutputBytes=4)
    assert result["truncated"] is True and result["stdout"] in ("ab", "ab\ufffd")


def test_flood_is_bounded_and_the_next_call_works(client):
    import leftovers

    result = client.run("yes", timeoutMs=1500, maxOutputBytes=1 << 20)
    fault(result, "timeout")
    assert client.text(result["stdout"]) == b"y\n" * (1 << 19)
    assert result["stdoutBytes"] > 1 << 20 and result["truncated"] is True
    assert leftovers.rss_kib(client.pid) < 64 * 1024
    plain(client.run("echo", "next"), "next\n")


def test_stderr_survives_a_flood_of_stdout(client):
    result = client.run("sh", "-c", "echo important >&2; head -c 20000000 /dev/zero", maxOutputBytes=1 << 16)
    assert (result["stderr"], result["stdoutBytes"], result["exitCode"]) == ("important\n", 20_000_000, 0)


# -- merge


def test_merge_is_one_pipe_in_true_order(client):
    script = "for i in 1 2 3 4 5 6 7 8 9; do echo o$i; echo e$i >&2; done"
    plain(client.run("sh", "-c", script, merge=True), "".join(f"o{i}\ne{i}\n" for i in range(1, 10)))
    plain(
        client.run("sh", "-c", script),
        "".join(f"o{i}\n" for i in range(1, 10)),
        "".join(f"e{i}\n" for i in range(1, 10)),
    )


# -- streams


@pytest.mark.parametrize("stream", ["live", "lossless"])
def test_stream_order(client, stream):
    future = client.send(
        "run/argv",
        {
            "runId": "r",
            "stream": stream,
            "argv": ["sh", "-c", "for i in 1 2 3 4 5; do echo $i; echo e$i >&2; sleep 0.05; done"],
        },
    )
    result = future.result()
    plain(result, "1\n2\n3\n4\n5\n", "e1\ne2\ne3\ne4\ne5\n")
    started = future.events[0]
    assert started["method"] == "run/started" and started["params"]["id"] == future.id
    assert [e["method"] for e in future.events].count("run/started") == 1
    assert chunks(client, future) == b"1\n2\n3\n4\n5\n" and chunks(client, future, "stderr") == b"e1\ne2\ne3\ne4\ne5\n"
    assert len(client.output_events(future)) >= 4  # it came while it ran, not at the end


def test_off_sends_no_output(client):
    future = client.send("run/argv", {"runId": "r", "argv": ["echo", "hi"]})
    future.result()
    assert client.output_events(future) == []


@pytest.mark.parametrize("size", [100_000, 2_000_000])
def test_live_is_whole_for_a_client_that_reads(client, size):
    future = client.send(
        "run/argv",
        {
            "runId": "r",
            "stream": "live",
            "argv": [
                "python3",
                "-c",
                f"import os, time\nfor i in range({size // 10000}):\n"
                "    os.write(1, b'%09d\\n' % i * 1000); time.sleep(0.002)",
            ],
        },
    )
    result = future.result()
    assert client.text(result["stdout"]) == b"".join(b"%09d\n" % i * 1000 for i in range(size // 10000))
    events = client.output_events(future)
    assert [e["offset"] for e in events] == sorted(e["offset"] for e in events)


def test_live_drops_for_a_client_that_does_not_read(client):
    """The box is drained all the same; offsets show the gap, the result has everything."""
    future = client.start("sh", "-c", "read go; head -c 20000000 /dev/zero | tr '\\0' x", runId="r", interactive=True)
    client.send("run/stdin", {"runId": "r", "text": "go\n", "eof": True}).wait(30)
    client.pause_reading()
    time.sleep(2)
    client.resume_reading()
    result = future.result()
    assert (result["stdoutBytes"], result["exitCode"], result["truncated"]) == (20_000_000, 0, False)
    assert result["stdout"]["blob"]["bytes"] == 20_000_000
    events = client.output_events(future)
    sent = sum(e["bytes"] for e in events)
    assert sent < 20_000_000
    assert (
        any(b["offset"] > a["offset"] + a["bytes"] for a, b in zip(events, events[1:]))
        or events[-1]["offset"] + events[-1]["bytes"] < 20_000_000
        or events[0]["offset"] > 0
    )


def test_lossless_waits_for_credit(client):
    size = 1_000_000
    future = client.start("sh", "-c", f"head -c {size} /dev/zero | tr '\\0' x", runId="r", stream="lossless")
    client.wait_for(lambda: sum(e["bytes"] for e in client.output_events(future)) == WINDOW, "the first window", 30)
    time.sleep(0.3)
    assert sum(e["bytes"] for e in client.output_events(future)) == WINDOW and not future.done()
    assert client.call("ping") == {}
    client.call("run/credit", {"runId": "r", "bytes": 100_000})
    client.wait_for(
        lambda: sum(e["bytes"] for e in client.output_events(future)) == WINDOW + 100_000, "the second window", 30
    )
    client.call("run/credit", {"runId": "r", "bytes": size})
    result = future.result()
    assert result["exitCode"] == 0 and client.text(result["stdout"]) == b"x" * size
    assert chunks(client, future) == b"x" * size


def test_lossless_deadline_runs_on(client):
    future = client.start("yes", runId="r", stream="lossless", timeoutMs=1500, maxOutputBytes=1 << 20)
    fault(future.result(30), "timeout")
    assert sum(e["bytes"] for e in client.output_events(future)) == WINDOW


def test_lossless_gives_up_a_second_after_the_end(client):
    """A box that ended with output unsent does not wait for ever."""
    more = 3000  # fits in a pipe: of a user who has many, a pipe of few pages
    future = client.start(
        "sh", "-c", f"head -c {WINDOW + more} /dev/zero | tr '\\0' x; exit 3", runId="r", stream="lossless"
    )
    result = future.result(30)
    assert result["exitCode"] == 3 and "fault" not in result
    assert sum(e["bytes"] for e in client.output_events(future)) == WINDOW


def test_chunks_fit_the_line_whatever_is_in_them(sidecar):
    client = sidecar(initialize={"capabilities": {"maxLineBytes": 4096}})
    for code in ("chr(1) * 100000", "'\\u2028' * 30000", "'\"' * 100000"):
        future = client.send(
            "run/argv",
            {"runId": "r", "stream": "live", "argv": ["python3", "-c", f"import sys; sys.stdout.write({code})"]},
        )
        result = future.result()
        assert client.text(result["stdout"]) == eval(code).encode()


# -- output/read


def test_output_read_of_a_finished_run(client):
    session = client.open()
    client.run("sh", "-c", "printf 0123456789; printf abc >&2", sessionId=session, runId="r")

    def read(stream, offset, size):
        return client.call("output/read", {"runId": "r", "stream": stream, "offset": offset, "maxBytes": size})

    assert read("stdout", 0, 4) == {"text": "0123", "nextOffset": 4, "eof": False, "droppedBefore": 0}
    assert read("stdout", 4, 100) == {"text": "456789", "nextOffset": 10, "eof": True, "droppedBefore": 0}
    assert read("stderr", 0, 3) == {"text": "abc", "nextOffset": 3, "eof": True, "droppedBefore": 0}
    assert read("stdout", 10, 5) == {"text": "", "nextOffset": 10, "eof": True, "droppedBefore": 0}
    client.call("session/close", {"sessionId": session})
    error = client.fail("output/read", {"runId": "r", "stream": "stdout", "offset": 0, "maxBytes": 1})
    assert error.reason in ("gone", "unknown_handle")


def test_output_read_of_a_living_run(client):
    future = client.start("sh", "-c", "echo first; read x; echo second", runId="r", interactive=True)
    client.wait_for(lambda: client.output_events(future), "first output", 30)
    page = client.call("output/read", {"runId": "r", "stream": "stdout", "offset": 0, "maxBytes": 100})
    assert (page["text"], page["eof"]) == ("first\n", False)
    client.call("run/stdin", {"runId": "r", "text": "\n", "eof": True})
    plain(future.result(), "first\nsecond\n")

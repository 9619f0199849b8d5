"""run/stdin and run/signal."""

import base64

import pytest

from expect import fault, plain, refused


def test_text_then_eof(client):
    plain(client.run("cat", stdin="h\u00e9\0x"), "h\u00e9\0x")
    plain(client.run("wc", "-c", stdin={"base64": base64.b64encode(bytes(range(256)) * 4000).decode()}), "1024000\n")


def test_empty_stdin_is_a_pipe_at_its_end(client):
    plain(client.run("cat", stdin=""))


def test_stdin_from_a_blob(client):
    blob = client.call("blob/write", {"text": "from a blob"})["id"]
    plain(client.run("cat", stdin={"blob": {"id": blob}}), "from a blob")


def test_unread_stdin_does_not_hold_the_answer(client):
    plain(client.run("true", stdin="x" * 1_000_000))
    result = client.run("head", "-c", "3", stdin="x" * 1_000_000)
    assert result["stdout"] == "xxx" and result["exitCode"] == 0


def test_interactive(client):
    future = client.start("sh", "-c", "while read line; do echo got $line; done; echo end", runId="r", interactive=True)
    for word in ("one", "two"):
        client.call("run/stdin", {"runId": "r", "text": word + "\n"})
        client.wait_for(lambda: word in "".join(e["text"] for e in client.output_events(future)), word, 30)
    client.call("run/stdin", {"runId": "r", "base64": base64.b64encode(b"three\n").decode()})
    client.call("run/stdin", {"runId": "r", "text": "", "eof": True})
    plain(future.result(), "got one\ngot two\ngot three\nend\n")


def test_given_text_and_an_open_pipe_exclude_each_other(client):
    refused(
        client.fail("run/argv", {"argv": ["cat"], "interactive": True, "stdin": "x"}), "invalid_value", "/interactive"
    )


def test_eof_alone_and_eof_with_the_last_text(client):
    for last in ({"eof": True}, {"text": "", "eof": True}):
        future = client.start("cat", runId="r", interactive=True)
        client.call("run/stdin", {"runId": "r", "text": "x"})
        client.call("run/stdin", {"runId": "r", **last})
        plain(future.result(), "x")


def test_queue_is_full_at_one_mebibyte(client):
    future = client.start("sleep", "1000", runId="r", interactive=True)
    accepted = 0
    for _ in range(64):
        reply = client.send("run/stdin", {"runId": "r", "text": "x" * 65536}).wait(30)
        if "error" in reply:
            break
        accepted += 65536
    assert reply["error"]["data"]["reason"] == "overloaded" and reply["error"]["data"]["retryable"] is True
    # 1 MiB is queued, and a pipe holds 64 KiB of its own
    assert 1 << 20 <= accepted <= (1 << 20) + 65536
    client.cancel(future)
    fault(future.result(30), "cancelled")


def test_stdin_of_no_run(client):
    refused(client.fail("run/stdin", {"runId": "none", "text": "x"}), "unknown_handle", "/runId")
    client.run("true", runId="over")
    assert client.fail("run/stdin", {"runId": "over", "text": "x"}).reason in ("unknown_handle", "gone")


def test_stdin_after_its_end(client):
    future = client.start("sleep", "1000", runId="r", interactive=True)
    client.call("run/stdin", {"runId": "r", "text": "x", "eof": True})
    assert client.fail("run/stdin", {"runId": "r", "text": "y"}).code < 2000
    client.cancel(future)
    future.wait(30)


@pytest.mark.parametrize("name, number", [("TERM", 15), ("INT", 2), ("USR1", 10), ("HUP", 1)])
def test_signal_ends_the_main_process(client, name, number):
    future = client.start("sleep", "1000", runId="r")
    client.call("run/signal", {"runId": "r", "signal": name})
    result = future.result(30)
    assert (result["exitCode"], result["signal"]) == (128 + number, name)
    assert "fault" not in result


def test_signal_that_is_handled(client):
    future = client.start(
        "sh", "-c", "trap 'echo got; exit 4' USR1; echo ready; while :; do sleep 0.05; done", runId="r"
    )
    client.wait_for(lambda: client.output_events(future), "ready", 30)
    client.call("run/signal", {"runId": "r", "signal": "USR1"})
    plain(future.result(), "ready\ngot\n", code=4)


def test_kill_from_the_host_side_is_killed(client):
    future = client.start("sleep", "1000", runId="r")
    client.call("run/signal", {"runId": "r", "signal": "KILL"})
    result = future.result(30)
    assert (result["exitCode"], result["signal"]) == (137, "KILL")


@pytest.mark.parametrize("name", ["SIGTERM", "TERMINATE", "15", "term"])
def test_bad_signal_name(client, name):
    future = client.start("sleep", "1000", runId="r")
    refused(client.fail("run/signal", {"runId": "r", "signal": name}), "invalid_value", "/signal")
    client.cancel(future)
    future.wait(30)


def test_signal_to_no_run(client):
    refused(client.fail("run/signal", {"runId": "none", "signal": "TERM"}), "unknown_handle", "/runId")
    refused(client.fail("run/credit", {"runId": "none", "bytes": 1}), "unknown_handle", "/runId")

"""Output, results and requests as weapons against the protocol, its reader, the logs and the host's judgement."""

import hashlib
import json
import os
import re
import subprocess
import time

import pytest

import leftovers
from boxes import MARK, attack
from expect import fault, plain

MOST_KEPT = 64 << 20  # maxOutputBytes unless told


# -- what a box prints


FORGED = (
    '{"jsonrpc":"2.0","id":1,"result":{"exitCode":0}}\n{"jsonrpc":"2.0","method":"exit"}\n\n\r\n[sandbox: oom]\n'
    '{"jsonrpc":"2.0","method":"run/output","params":{"runId":"x","seq":1,"stream":"stdout","offset":0,"bytes":1,"text":"x"}}\n'
    "\u2028\u2029\u0085\x7f\x1b[2J\x1b]52;c;ZXZpbA==\x07\x1b]8;;http://evil\x1b\\\x1bP+q\x1b\\\x1b]0;title\x07\x1b[201~\x9b31m\0\x08\x0c"
)


@attack("63", "65")
@pytest.mark.parametrize("stream", ["off", "live", "lossless"])
def test_forged_lines_and_escapes_are_text(box, stream):
    """Line ends, protocol messages and terminal escapes come back inside strings, byte for byte; the client checks every line."""
    boxes = box()
    code = f"import os\nd = {FORGED.encode()!r}\nos.write(1, d); os.write(2, d)"
    params = {"runId": "r", "stream": stream, "argv": ["/usr/bin/python3", "-I", "-S", "-c", code]}
    future = boxes.client.send("run/argv", {**boxes.where, **params})
    plain(future.result(), FORGED, FORGED)
    if stream != "off":
        assert "".join(e["text"] for e in boxes.client.output_events(future) if e["stream"] == "stdout") == FORGED
    assert boxes.client.stderr_text() == ""


@attack("65")
def test_logs_of_the_sidecar_are_one_line_each(sidecar, workspace):
    """Names, errors and frames that a log could repeat: its stderr stays free of controls and of lines that it did not begin."""
    client = sidecar(validator=None)
    evil = "\x1b]0;x\x07\nFORGED\r\x1b[31m\u2028"
    client.fail("session/open", {"image": f"dir:/{evil}"})
    client.fail("run/code", {"language": evil, "code": ""})
    client.fail(evil, {})
    client.fail("run/argv", {"argv": ["x"], evil: 1})
    client.run("sh", "-c", "exec \"$0\"", evil)
    client.run(evil)
    for run_id in ("r.1", "r-2"):
        client.code(f"import socket\ns = socket.socket(fileno=3)\ns.send({evil.encode()!r})\ns.detach()", runId=run_id)
    session = client.open(workspace=workspace)
    client.run("bin/call", "165", "0", sessionId=session)
    client.run("sh", "-c", f"cp bin/call \"$(printf 'a\\033\\nFORGED')\"; ./a* 165 0", sessionId=session)
    client.close()
    text = client.stderr_text()
    assert "\x1b" not in text and "\r" not in text and "\u2028" not in text
    assert [line for line in text.split("\n") if line.startswith("FORGED")] == []


@attack("40", "C48", "C49")
@pytest.mark.parametrize(
    "script",
    [
        "yes",
        "cat /dev/zero",
        "head -c 1000000000 /dev/zero | tr '\\0' x",
        "while :; do printf x; done",
        "yes >&2",
        "yes | tee /dev/stderr",
    ],
    ids=["lines", "zeros", "one-line", "bytes", "stderr", "both"],
)
def test_flood_is_bounded_in_memory(box, script):
    boxes = box()
    result = boxes.under_attack("sh", "-c", script, timeoutMs=1500, maxOutputBytes=1 << 20)
    if "1000000000" in script and "fault" not in result:
        assert result["stdoutBytes"] == 1_000_000_000
    else:
        fault(result, "timeout")
    kept = len(boxes.client.text(result["stdout"])) + len(boxes.client.text(result["stderr"]))
    assert kept <= 2 << 20 and result["truncated"] is (max(result["stdoutBytes"], result["stderrBytes"]) > 1 << 20)
    assert leftovers.rss_kib(boxes.client.pid) < 64 * 1024


@attack("40", "C48")
@pytest.mark.parametrize(
    "line, most, mime",
    [
        (b"plain\n", MOST_KEPT, "text/plain; charset=utf-8"),
        ("é€🐍\n".encode(), MOST_KEPT // 10 * 10, "text/plain; charset=utf-8"),
        ("é€🐍\n".encode(), MOST_KEPT - 3, "application/octet-stream"),
        (b"\xff\n", MOST_KEPT, "application/octet-stream"),
    ],
    ids=["ascii", "utf-8", "cut", "binary"],
)
def test_all_the_output_that_is_kept(box, line, most, mime):
    """What is found out about the whole of it, hash and kind, is right and holds up no ping."""
    boxes = box()
    shell = f"yes \"$(printf '{''.join(f'{chr(92)}{byte:03o}' for byte in line[:-1])}')\" | head -c {most}"
    result = boxes.under_attack("sh", "-c", shell, timeoutMs=60000)
    whole = (line * (most // len(line) + 1))[:most]
    blob = result["stdout"]["blob"]
    assert (result["stdoutBytes"], result["truncated"]) == (most, False)
    assert (blob["bytes"], blob["sha256"], blob["mime"]) == (most, hashlib.sha256(whole).hexdigest(), mime)


@attack("40", "C49")
@pytest.mark.parametrize("stream", ["live", "lossless"])
def test_flood_at_a_client_that_does_not_read(box, stream):
    """Memory stays bounded, the deadline holds, another call of the same client is answered once it reads again."""
    boxes = box()
    floods = [boxes.start("yes", stream=stream, timeoutMs=2000, maxOutputBytes=1 << 20) for _ in range(3)]
    boxes.client.pause_reading()
    time.sleep(3)
    assert leftovers.rss_kib(boxes.client.pid) < 64 * 1024
    boxes.client.resume_reading()
    for future in floods:
        fault(future.result(30), "timeout")
    plain(boxes.run("echo", "next"), "next\n")


@attack("40")
def test_flood_of_one_box_does_not_slow_another(box):
    boxes = box()
    flood = boxes.start("yes", timeoutMs=60_000, maxOutputBytes=1 << 16)
    begin = time.monotonic()
    for _ in range(20):
        plain(boxes.run("echo", "hi"), "hi\n")
    assert time.monotonic() - begin < 20
    boxes.client.cancel(flood)
    fault(flood.result(30), "cancelled")


@attack("41")
def test_streams_closed_and_abused(box):
    """Both outputs closed, written to after that, re-opened; the exit code is still the code's."""
    plain(box().sh("exec >&- 2>&-; echo lost; sleep 0.2; exit 7"), code=7)
    plain(box().sh("echo a; exec >/dev/null; echo b; exit 7"), "a\n", code=7)


@attack("41")
def test_stdin_that_nobody_reads(box):
    """1 MiB given and not read, interactive text and not read, written after the end: no hang, no crash by SIGPIPE."""
    boxes = box()
    plain(boxes.run("true", stdin="x" * (1 << 20)))
    future = boxes.start("sleep", "1", interactive=True)
    refusals = 0
    for _ in range(30):
        reply = boxes.client.send("run/stdin", {"runId": future.run_id, "text": "y" * 100_000}).wait(20)
        refusals += reply.get("error", {}).get("data", {}).get("reason") == "overloaded"
    assert refusals > 0
    plain(future.result())
    assert boxes.client.fail("run/stdin", {"runId": future.run_id, "text": "x"}).reason in ("unknown_handle", "gone")


# -- verdicts


@attack("C36", "C38", "C44")
@pytest.mark.parametrize("status", [1, 124, 125, 126, 127, 137, 139, 143, 159, 255])
def test_no_exit_number_is_a_verdict(box, status):
    words = "Killed\nout of memory\ntimeout\nescape_blocked mount\nbox did not start\n"
    plain(box(memoryMb=64).sh(f"printf '{words}'; exit {status}"), words, code=status)


@attack("C36", "C44")
@pytest.mark.parametrize(
    "name, number", [("KILL", 9), ("TERM", 15), ("SYS", 31), ("SEGV", 11), ("XCPU", 24), ("ABRT", 6), ("STKFLT", 16)]
)
def test_no_signal_that_it_sends_to_itself_is_a_verdict(box, name, number):
    """128+n and the name, no fault but `killed`, never oom, timeout or an escape."""
    result = box(memoryMb=64).sh(f"kill -{number} $$")
    assert (result["exitCode"], result["signal"]) == (128 + number, name), result
    assert "fault" not in result, result


@attack("C36")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can kill processes of the box's ids")
def test_kill_from_outside_is_killed(box):
    """By the host, past the sidecar: `killed` or a plain signal, and never `oom`, under a cap."""
    boxes = box(memoryMb=64)
    word = f"1000.{os.getpid()}{int(time.time() * 1000) % 10**6}"
    future = boxes.start("sleep", word)
    boxes.client.wait_for(lambda: leftovers.with_argument(word), "the box", 30)
    os.kill(leftovers.with_argument(word)[0], 9)
    result = future.result(30)
    assert (result["exitCode"], result["signal"]) == (137, "KILL")
    assert result.get("fault", {}).get("type") in (None, "killed"), result


# -- the result channel and runners


@attack("D52", "D53")
def test_forked_children_are_no_second_runner(box):
    """The child of a fork reports nothing of its own, returns from nothing twice, and ends with the call."""
    code = (
        "import os, multiprocessing\n"
        "def f(x): return x * x\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('fork').Pool(2) as pool: print(pool.map(f, [1, 2, 3]))\n"
        "    pid = os.fork()\n"
        "    if pid == 0: raise SystemExit(5)\n"
        "    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
        "40 + 2"
    )
    result = box().code(code)
    assert (result["stdout"], result["exitCode"]) == ("[1, 4, 9]\n5\n", 0), result
    assert [r["data"]["text/plain"] for r in result["results"]] == ["42"]


@attack("D53", "A18")
def test_flood_of_results_is_bounded(box):
    """Large frames, many frames, frames that are not read: `limit`, memory bounded, the call ends."""
    boxes = box()
    code = (
        "import socket, struct\ns = socket.socket(fileno=3)\n"
        "part = b'text/plain\\0'\nbody = struct.pack('<HI', len(part), 60000) + part + b'x' * 60000\n"
        "try:\n    for i in range(5000): s.send(struct.pack('<4sBBHIIII', b'KRN1', 1, 1, 0, 0, 1000 + i, len(body), 0) + body); s.recv(100)\n"
        "except OSError: pass\n"
        "s.detach(); print('done')"
    )
    future = boxes.client.send("run/code", {**boxes.where, "code": code, "timeoutMs": 60_000})
    peak = 0
    while not future.done():
        peak = max(peak, leftovers.rss_kib(boxes.client.pid))
        time.sleep(0.01)
    result = future.result()
    assert (result["stdout"], result["exitCode"], result["resultChannel"]) == ("done\n", 0, "limit"), result
    assert peak < 256 * 1024  # 64 MiB of data are allowed, several copies of it on the way out are not


@attack("D57")
@pytest.mark.parametrize(
    "code, status, out",
    [
        ("raise SystemExit", 0, ""),
        ("raise SystemExit(3)", 3, ""),
        ("raise SystemExit(256)", 0, ""),
        ("raise SystemExit('no')", 1, ""),
        ("import os; os._exit(9)", 9, ""),
        ("import sys; sys.stdout.close(); sys.exit(4)", 4, ""),
        ("import atexit; atexit.register(print, 'late')", 0, "late\n"),
    ],
)
def test_exits_of_python_are_its_own(box, code, status, out):
    result = box().code(code)
    assert (result["exitCode"], result["stdout"], "fault" in result) == (status, out, False), result


@attack("D58")
@pytest.mark.parametrize("size", [156 * 1024, 1 << 20])
def test_large_code(box, size):
    for language, code in (
        ("python", "print(len(open(__file__).read()))\n#"),
        ("bash", "echo ok\n#"),
        ("sh", "echo ok\n#"),
    ):
        result = box().code(code + "x" * (size - len(code)), language=language)
        assert result["stdout"] == (f"{size}\n" if language == "python" else "ok\n"), result


# -- what a host passes on from a stranger


STRANGE = [
    "a\nb",
    "\u2028",
    "\u0085",
    "-rf",
    "--",
    "$(id)",
    "`id`",
    "'; id; '",
    "a\tb",
    "\U0001f600",
    "\u202e",
    "\x1b[31m",
    "\x7f",
    "%s%n",
    "{}",
    "",
    " ",
    "*",
    "~",
    "x" * 100_000,
]


@attack("64", "G68")
def test_words_reach_the_program_unchanged(box):
    code = "import sys\nsys.stdout.buffer.write(ascii(sys.argv[1:]).encode())"
    result = box().run("/usr/bin/python3", "-c", code, *STRANGE)
    got = box().client.text(result["stdout"]).decode()
    assert got == ascii(STRANGE)


@attack("64", "D58")
@pytest.mark.parametrize(
    "params, path",
    [
        ({"argv": ["echo", "a\0b"]}, "/argv/1"),
        ({"argv": ["true"], "env": {"A": "x\ny"}}, "/env/A"),
        ({"argv": ["true"], "env": {"A": "x\0y"}}, "/env/A"),
        ({"argv": ["true"], "env": {"EVIL; id": "x"}}, "/env"),
        ({"argv": ["true"], "env": {"A=B": "x"}}, "/env"),
        ({"argv": ["true"], "env": {"": "x"}}, "/env"),
        ({"argv": ["true"], "cwd": "a\0b"}, "/cwd"),
        ({"argv": []}, "/argv"),
    ],
)
def test_words_that_no_program_could_get_are_refused(one_way, params, path):
    boxes = one_way()
    error = boxes.client.fail("run/argv", {**boxes.where, **params})
    assert error.code == -32602 and error.data["path"].startswith(path), error
    plain(boxes.run("echo", "next"), "next\n")


@attack("64")
@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":7,"method":"run/argv","params":{"argv":["touch","ran"],"argv":["true"]}}',
        b'{"jsonrpc":"2.0","id":7,"method":"run/argv","params":{"argv":["touch","\xed\xa0\x80"]}}',
        b'{"jsonrpc":"2.0","id":7,"method":"run/argv","params":{"argv":["touch","ran"],"timeoutMs":1e400}}',
        b'{"jsonrpc":"2.0","id":7,"method":"run/argv","params":{"argv":["touch","ran"],"timeoutMs":-0.5}}',
        b'\xef\xbb\xbf{"jsonrpc":"2.0","id":7,"method":"run/argv","params":{"argv":["touch","ran"]}}',
        b'{"jsonrpc":"2.0","id":7,"method":"run/argv","params":{"argv":["touch","ran"],"env\\u0000":{}}}',
    ],
    ids=["duplicate", "surrogate", "1e400", "fraction", "bom", "nul-key"],
)
def test_line_that_two_parsers_read_differently_runs_nothing(client, workspace, line):
    session = client.open(workspace=workspace)
    line = line.replace(b'"params":{', b'"params":{"sessionId":"%s",' % session.encode())
    future = client._prepare("ping", {}, 7, True)[1]
    client.send_line(line)
    client.wait_for(lambda: client.orphans or future.done(), "the refusal", 30)
    reply = client.orphans.pop() if client.orphans else future.wait()
    assert reply["error"]["code"] in (-32700, -32600, -32602), reply
    assert not os.path.exists(os.path.join(workspace, "ran"))
    client._futures.clear()
    assert client.call("ping") == {}


@attack("64", "C48")
def test_line_of_sixty_four_mebibytes(client):
    client.send_line(b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"x":"' + b"y" * (64 << 20) + b'"}}')
    client.wait_for(lambda: client.orphans, "the refusal", 60)
    error = client.orphans.pop()["error"]
    assert (error["code"], error["data"]["reason"]) == (1005, "line_too_long")
    assert client.call("ping") == {} and leftovers.rss_kib(client.pid) < 64 * 1024


@attack("64")
def test_last_line_without_a_line_feed_is_no_request(sidecar, workspace):
    client = sidecar()
    session = client.open(workspace=workspace)
    client.write(
        json.dumps(
            {
                "jsonrpc": "2.0",
                "id": 7,
                "method": "run/argv",
                "params": {"sessionId": session, "argv": ["touch", "ran"]},
            }
        ).encode()[:-1]
    )
    assert client.close() == 0
    assert not os.path.exists(os.path.join(workspace, "ran"))


@attack("B33")
def test_a_layer_that_was_asked_for_and_is_not_there_refuses(client, as_user):
    error = client.send("session/open", {"apparmor": f"{MARK}"}, unchecked=True).wait()
    assert "error" in error, "a profile that does not exist"
    answer = client.call("session/open", {"memoryMb": 64, "cpusMilli": 500})
    weak = [name for name in ("memoryMb", "pids", "cpusMilli") if answer["effective"][name]["enforced"] != "kernel"]
    strict = client.send("session/open", {"memoryMb": 64, "cpusMilli": 500, "requireLimits": True}).wait()
    if weak:
        assert strict["error"]["data"]["reason"] == "limits_unenforced", strict
    else:
        assert "result" in strict


# -- what is told about the host


@attack("67")
def test_identity_of_the_host_is_not_told(box, owner):
    """Host name, machine id, users, homes, hardware addresses, serial numbers, other mounts and processes."""
    boxes = box()
    name = os.uname().nodename
    with open("/etc/passwd", encoding="utf-8") as file:
        users = {line.split(":")[0] for line in file} - {"root", "nobody"}
    found = boxes.sh(
        "hostname; cat /etc/hostname /etc/machine-id /proc/sys/kernel/hostname /proc/sys/kernel/domainname; cut -d: -f1 /etc/passwd; ls /sys /root /boot /mnt 2>&1 | grep -c 'No such'; ls -A /home /var/log 2>/dev/null; id; uname -n"
    )["stdout"]
    words = set(re.split(r"[\s:()=,]+", found))
    assert name not in words or name == "sandbox"
    assert not words & users, words & users
    try:
        with open("/etc/machine-id", encoding="ascii") as file:
            assert file.read().strip() not in words or file.read() == ""
    except OSError:
        pass
    host = subprocess.run(
        [
            "sh",
            "-c",
            "cat /sys/class/net/*/address /sys/class/dmi/id/*serial* /sys/class/dmi/id/product_uuid 2>/dev/null",
        ],
        capture_output=True,
        text=True,
    ).stdout.split()
    interesting = [
        value for value in host if len(value) > 8 and value not in ("00:00:00:00:00:00", "None", "Unspecified")
    ]
    for value in interesting:
        assert boxes.run("grep", "-rlI", value, "/proc/net", "/etc", "/proc/cmdline")["stdout"] == ""


@attack("67")
def test_mounts_tell_of_the_workspace_and_of_nothing_else_writable(box, workspace, owner):
    """The host path of a bind mount is visible: unavoidable, and stated. No other directory of the host shows."""
    table = [line.split() for line in box().run("cat", "/proc/self/mountinfo")["stdout"].splitlines()]
    disks = [
        fields
        for fields in table
        if fields[fields.index("-") + 1] not in ("tmpfs", "proc", "devpts", "devtmpfs", "mqueue")
    ]
    writable = [fields for fields in disks if "rw" in fields[5].split(",")]
    assert [fields[4] for fields in writable] == ["/workspace"]
    assert all(
        fields[4].startswith(("/usr", "/etc", "/bin", "/sbin", "/lib", "/run/kern", "/workspace")) for fields in disks
    ), disks

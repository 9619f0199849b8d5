"""run/argv: programs, signals, children, the facts of a result."""

import time
import uuid

import pytest

import leftovers
from expect import fault, plain


def test_result_is_whole(client):
    result = client.run("echo", "hi", runId="r1")
    plain(result, "hi\n")
    assert result["runId"] == "r1"
    assert result["runtimeNotes"] == [] and result["files"] == [] and result["results"] == []
    assert 0 <= result["durationMs"] < 60000
    assert result["start"]["kind"] in ("cold", "template") and result["start"]["us"] > 0
    usage = result["usage"]
    assert 0 < usage["wallUs"] < 60_000_000
    assert usage["cpuUserUs"] >= 0 and usage["cpuSystemUs"] >= 0


def test_usage_counts_cpu_time(client):
    result = client.run("python3", "-c", "import time\nwhile time.process_time() < 0.5: pass", timeoutMs=60000)
    assert 450_000 < result["usage"]["cpuUserUs"] + result["usage"]["cpuSystemUs"] < 3_000_000
    assert result["usage"]["wallUs"] >= 450_000


def test_usage_counts_children(client):
    result = client.run(
        "sh", "-c", "python3 -c 'import time\nwhile time.process_time() < 0.5: pass'; true", timeoutMs=60000
    )
    assert result["usage"]["cpuUserUs"] + result["usage"]["cpuSystemUs"] > 450_000


@pytest.mark.parametrize("code", [0, 1, 2, 126, 127, 128, 137, 139, 143, 159, 255])
def test_exit_number_is_only_a_number(client, code):
    plain(client.run("sh", "-c", f"exit {code}"), code=code)


@pytest.mark.parametrize(
    "name, number", [("TERM", 15), ("HUP", 1), ("INT", 2), ("SEGV", 11), ("ABRT", 6), ("SYS", 31), ("KILL", 9)]
)
def test_main_process_that_kills_itself(client, name, number):
    """No fault: the sandbox had no part in it."""
    result = client.run("sh", "-c", f"kill -{name} $$; sleep 5")
    assert (result["exitCode"], result["signal"], result["success"]) == (128 + number, name, False)
    assert "fault" not in result


def test_signal_of_a_child_is_the_shells_number(client):
    result = client.run("sh", "-c", "sh -c 'kill -9 $$' 2>/dev/null; exit $?")
    assert result["exitCode"] == 137 and "signal" not in result and "fault" not in result


@pytest.mark.parametrize(
    "path, code", [("/nonexistent", 127), ("nonexistent-program", 127), ("/etc/passwd", 126), ("/usr", 126)]
)
def test_program_that_cannot_run(client, path, code):
    result = client.run(path)
    assert result["exitCode"] == code
    message = fault(result, "exec_failed")["message"]
    assert path in message and "host" in message
    # in a build with sanitizers their runtime may speak for the command that never was
    assert result["stdout"] == "" and (result["stderr"] == "" or "ASan" in result["stderr"])


def test_shell_that_finds_no_program_is_no_fault(client):
    result = client.run("sh", "-c", "nonexistent-program")
    assert result["exitCode"] == 127 and "fault" not in result and "not found" in result["stderr"]


def test_argv_is_passed_as_it_is(client):
    words = ["a b", "", "-n", "$HOME", "*", "'\"", "\n", "\u00e9\U0001f600", "--"]
    plain(client.run("python3", "-c", "import sys; print(sys.argv[1:])", *words), str(words) + "\n")


def test_argument_of_100_kb(client):
    assert client.run("sh", "-c", 'echo "${#1}"', "sh", "x" * 100_000)["stdout"] == "100000\n"


def test_program_in_the_workspace(client):
    session = client.open()
    client.run("sh", "-c", "printf '#!/bin/sh\\necho mine' > tool; chmod +x tool", sessionId=session)
    plain(client.run("/workspace/tool", sessionId=session), "mine\n")
    plain(client.run("./tool", sessionId=session), "mine\n")


def test_background_child_does_not_hold_the_answer(client):
    token = f"1000.{uuid.uuid4().int % 10**9}"
    begin = time.monotonic()
    plain(client.run("sh", "-c", f"sleep {token} & echo hi", timeoutMs=60000), "hi\n")
    assert time.monotonic() - begin < 10
    deadline = time.monotonic() + 2
    while leftovers.with_argument(token) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert leftovers.with_argument(token) == []


def test_daemon_does_not_survive(client):
    """A double fork in a session of its own, with all its fds closed."""
    token = f"1000.{uuid.uuid4().int % 10**9}"
    plain(
        client.run(
            "sh",
            "-c",
            f"setsid sh -c 'exec </dev/null >/dev/null 2>&1; sleep {token} & sleep {token}' & sleep 0.2; echo hi",
        ),
        "hi\n",
    )
    deadline = time.monotonic() + 2
    while leftovers.with_argument(token) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert leftovers.with_argument(token) == []


def test_zombies_are_reaped(client):
    code = (
        "import os, time\nfor _ in range(50):\n"
        "    if os.fork() == 0:\n        if os.fork() == 0: os._exit(0)\n        os._exit(0)\n"
        "    os.wait()\ntime.sleep(0.3)\n"
        "print(sum(' Z ' in open(f'/proc/{p}/stat').read() for p in os.listdir('/proc') if p.isdigit()))"
    )
    plain(client.run("python3", "-c", code), "0\n")


def test_box_init_cannot_be_hurt(client):
    plain(client.run("sh", "-c", "kill -9 1; kill -STOP 1; kill -TERM 1; echo alive"), "alive\n")


def test_run_id_is_unique_while_it_lives(client):
    session = client.open()
    first = client.start("sleep", "1000", sessionId=session, runId="same")
    error = client.send("run/argv", {"argv": ["true"], "runId": "same"}).error(30)
    assert error.reason == "duplicate_handle" and error.code == 1101
    client.cancel(first)
    first.result(30)
    plain(client.run("true", runId="same"))

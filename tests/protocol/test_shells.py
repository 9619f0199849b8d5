"""shell/*: a shell that keeps its state: commands whose end is known, and terminals."""

import base64
import os
import time

import pytest

from expect import refused
from test_kernels_shell import REDEFINED, WRONG


class Shell:
    def __init__(self, client, session=None, **params):
        self.client = client
        self.session = session or client.open()
        self.id = client.call("shell/open", {"sessionId": self.session, **params})["shellId"]

    def start(self, command, **params):
        return self.client.send("shell/run", {"shellId": self.id, "command": command, **params})

    def run(self, command, **params):
        return self.start(command, **params).result()

    def call(self, method, **params):
        return self.client.call(f"shell/{method}", {"shellId": self.id, **params})

    def fail(self, method, **params):
        return self.client.fail(f"shell/{method}", {"shellId": self.id, **params})

    def out(self):
        """All that came outside of commands."""
        found = [n["params"] for n in self.client.notifications.copy() if n["method"] == "shell/output" and n["params"]["shellId"] == self.id]
        return b"".join(n["text"].encode() if "text" in n else base64.b64decode(n["base64"]) for n in found).decode("utf-8", "replace")

    def sees(self, text, count=1):
        self.client.wait_for(lambda: self.out().count(text) >= count, f"{text!r} in {self.out()[-300:]!r}")

    def exited(self):
        def found():
            return [n["params"] for n in self.client.notifications.copy() if n["method"] == "shell/exited" and n["params"]["shellId"] == self.id]
        self.client.wait_for(found, "shell/exited")
        (one,) = found()
        return one["exitCode"], one.get("signal")


@pytest.fixture
def shell(client):
    return Shell(client)


def done(result, stdout="", status=0, stderr="", kept=True):
    assert (result["stdout"], result["exitCode"], result["stderr"]) == (stdout, status, stderr), result
    assert (result["stateKept"], "fault" in result, "cellStatus" in result) == (kept, False, False), result


# ---- commands


def test_commands(shell):
    done(shell.run("x=1; cd /tmp; export E=2; f() { echo $x$E; }"))
    done(shell.run("f; pwd; printf abc"), "12\n/tmp\nabc")
    done(shell.run("false"), status=1)
    done(shell.run("cat; read y; echo $?"), "1\n")
    done(shell.run("cat -; head -c2 >&2", stdin="given\n"), "given\n")
    done(shell.run("read a; read b; echo $b-$a", stdin={"base64": base64.b64encode(b"1\n2\n3\n").decode()}), "2-1\n")
    done(shell.run("for i in 1 2 3; do echo o$i; echo e$i >&2; done", merge=True), "o1\ne1\no2\ne2\no3\ne3\n")
    for code in WRONG:
        result = shell.run(code)
        assert result["exitCode"] in (1, 2) and result["stateKept"] and result["stderr"], code
    for code in REDEFINED:
        assert shell.run(code + "\n:")["stateKept"], code
    assert "42\n" in shell.run("builtin echo 42")["stdout"]
    assert [f["path"] for f in shell.run("builtin printf x > /workspace/made")["files"]] == ["made"]


def test_late_output_is_fenced(shell):
    done(shell.run("(while ! [ -e go ]; do sleep 0.01; done; echo LATE; echo E >&2) &"))
    done(shell.run("touch go; wait; echo next"), "next\n")
    shell.sees("LATE\n")
    future = shell.start("echo one; sleep 0.3; echo two", stream="live", runId="r")
    result = future.result()
    started = [n["params"] for n in shell.client.notifications if n["method"] == "run/started" and n["params"]["runId"] == "r"]
    assert started[0]["shellId"] == shell.id and "kernelId" not in started[0]
    assert "".join(e["text"] for e in shell.client.output_events(future)) == result["stdout"] == "one\ntwo\n"


def test_a_flood_between_commands_waits(client):
    shell = Shell(client)
    assert shell.run("yes &")["stateKept"]
    client.pause_reading()
    time.sleep(1)
    client.resume_reading()
    done(shell.run("kill $!; echo over"), "over\n")
    assert len(shell.out()) < 8 << 20


def test_deadline_and_cancel(shell):
    shell.run("x=kept")
    result = shell.run("while :; do sleep 1; done", timeoutMs=200)
    assert (result["fault"]["type"], result["exitCode"], result["stateKept"]) == ("timeout", 130, True)
    future = shell.start("echo on; sleep 60", stream="live")
    shell.client.wait_for(lambda: shell.client.output_events(future), "the command to run")
    waiting = shell.start("echo never")
    shell.client.cancel(waiting)
    refused(waiting.error(), "cancelled")
    shell.client.cancel(future)
    assert (future.result()["fault"]["type"], future.result()["stateKept"]) == ("cancelled", True)
    done(shell.run("echo $x"), "kept\n")
    for name, status in (("INT", 130), ("TERM", 143), ("KILL", 137)):  # to the job, not to the shell
        future = shell.start("echo on; sleep 60", stream="live")
        shell.client.wait_for(lambda: shell.client.output_events(future), "the command to run")
        shell.call("signal", signal=name)
        assert (future.result()["exitCode"], future.result()["stateKept"]) == (status, True), name
    result = shell.run("trap '' INT; while :; do :; done", timeoutMs=200)
    assert (result["fault"]["type"], result["stateKept"]) == ("timeout", False)
    assert shell.exited() == (137, "KILL")


@pytest.mark.parametrize("command, status, signal", [("exit 42", 42, None), ("set -e; false", 1, None), ("exec true", 0, None), ("kill -9 $$", 137, "KILL")])
def test_the_end_of_a_shell(shell, command, status, signal):
    queued = shell.start("echo words; " + command), shell.start("echo never")
    result = queued[0].result()
    assert (result["stdout"], result["exitCode"], result["stateKept"]) == ("words\n", status, False)
    refused(queued[1].error(), "shell_dead", "/shellId")
    assert shell.exited() == (status, signal)
    refused(shell.fail("run", command="x"), "shell_dead", "/shellId")
    refused(shell.fail("signal", signal="INT"), "shell_dead", "/shellId")
    assert shell.call("close") == {}
    refused(shell.fail("close"), "unknown_handle", "/shellId")


@pytest.mark.parametrize("argv", [None, ["bash"], ["/bin/bash"], ["sh"], ["/bin/sh"], ["dash"]])
def test_which_shell(client, argv):
    shell = Shell(client, **({"argv": argv} if argv else {}), env={"A": "a b"}, cwd="/tmp")
    bash = argv is None or "bash" in argv[0]
    done(shell.run("x=1; echo $A $PWD ${BASH_VERSION:+bash}"), "a b /tmp" + (" bash" if bash else "") + "\n")
    done(shell.run("printf $x"), "1")


def test_busybox(client):
    if not os.path.exists("/usr/bin/busybox"):
        pytest.skip("no busybox in /usr")
    shell = Shell(client)
    done(shell.run("ln -s /usr/bin/busybox ash"))
    shell = Shell(client, session=shell.session, argv=["/workspace/ash"])
    done(shell.run("x=1; f() { echo $x; }; cd /tmp"))
    done(shell.run("f; pwd; cat; printf z"), "1\n/tmp\nz")
    done(shell.run("printf() { :; }; command() { :; }; (exit 5)"), status=5)
    result = shell.run("while :; do sleep 1; done", timeoutMs=200)
    assert (result["fault"]["type"], result["stateKept"]) == ("timeout", True)
    done(shell.run("echo $x"), "1\n")
    assert shell.run("exit 3")["exitCode"] == 3 and shell.exited() == (3, None)


def test_many_in_one_session(client):
    session = client.open()
    shells = [Shell(client, session=session) for _ in range(8)]
    futures = [shell.start(f"x={n}; sleep 0.2; echo $x") for n, shell in enumerate(shells)]
    begin = time.monotonic()
    assert [future.result()["stdout"] for future in futures] == [f"{n}\n" for n in range(8)]
    assert time.monotonic() - begin < 5
    (listed,) = client.call("session/list", {})["sessions"]
    stats = client.call("stats/get", {})
    assert (listed["shells"], listed["kernels"], stats["shells"], client.call("kernel/list", {})["kernels"]) == (8, 0, 8, [])
    refused(client.fail("session/setup", {"sessionId": session, "command": "true"}), "busy", "/sessionId")
    future = shells[0].start("sleep 60")
    client.call("session/close", {"sessionId": session})
    assert future.result()["fault"]["type"] == "cancelled"
    assert client.call("stats/get", {})["shells"] == 0


@pytest.mark.endurance
def test_two_hundred_leave_nothing(client):
    """Sessions with a shell at work, closed in every order; what is left at the end is looked for by the fixture."""
    descriptors = f"/proc/{client.process.pid}/fd"
    count = None
    for n in range(200):
        shell = Shell(client, mode="pty" if n % 4 == 0 else "pipes")
        if n % 4 == 1:
            shell.start("sleep 600 & sleep 600")
        elif n % 4:
            done(shell.run("echo x"), "x\n")
        if n % 2:
            shell.call("close")
        client.call("session/close", {"sessionId": shell.session})
        if n == 20:
            count = len(os.listdir(descriptors))
    stats = client.call("stats/get", {})
    assert (stats["shells"], stats["sessions"], stats["boxes"], stats["boxesLeaked"]) == (0, 0, 0, 0)
    client.wait_for(lambda: len(os.listdir(descriptors)) <= count + 2, "descriptors to be closed")


def test_bad_requests(client):
    where = {"sessionId": client.open(), "shellId": "s"}
    refused(client.fail("shell/open", {"sessionId": "nobody"}), "unknown_handle", "/sessionId")
    for argv in (["python3"], ["bash", "-x"], ["bash", "-c", "true"]):
        refused(client.fail("shell/open", {**where, "argv": argv}), "invalid_value", "/argv")
    refused(client.fail("shell/open", {**where, "rows": 0}), "out_of_range", "/rows")
    error = client.fail("shell/open", {**where, "argv": ["/nowhere/bash"]})
    refused(error, "start_failed")
    assert "/nowhere/bash: No such file or directory" in error.message
    error = client.fail("shell/open", {**where, "argv": ["/nowhere"], "mode": "pty"})
    refused(error, "start_failed")
    assert "/nowhere: No such file or directory" in error.message
    shell = Shell(client, session=where["sessionId"], shellId="s")
    refused(client.fail("shell/open", where), "duplicate_handle", "/shellId")
    for method, more in (("write", {"text": "x"}), ("resize", {"rows": 1, "cols": 1})):
        refused(shell.fail(method, **more), "invalid_value", "/shellId")
    refused(shell.fail("signal", signal="NONE"), "invalid_value", "/signal")
    refused(shell.fail("write"), "missing", "/text")
    refused(client.fail("kernel/run", {"kernelId": "s", "code": "1"}), "unknown_handle", "/kernelId")
    for method, more in (("run", {"command": "x"}), ("write", {"text": "x"}), ("resize", {"rows": 1, "cols": 1}), ("signal", {"signal": "INT"}), ("close", {})):
        refused(client.fail(f"shell/{method}", {"shellId": "none", **more}), "unknown_handle", "/shellId")
    pty = Shell(client, session=where["sessionId"], mode="pty")
    refused(pty.fail("run", command="x"), "invalid_value", "/shellId")


# ---- terminals


@pytest.fixture
def terminal(client):
    return Shell(client, mode="pty", argv=["bash", "--norc", "--noprofile"], env={"PS1": "$ "}, rows=40, cols=120)


def test_a_terminal(terminal):
    terminal.sees("$ ")
    terminal.call("write", text="stty size; tty; echo $TERM\r")
    terminal.sees("40 120\r\n/dev/pts/0\r\nxterm-256color\r\n")
    terminal.call("resize", rows=10, cols=33)
    terminal.call("write", base64=base64.b64encode(b"stty size\r").decode())
    terminal.sees("10 33\r\n")
    terminal.call("write", text="sh -c 'echo be\\gin; exec sleep 60'\r")
    terminal.sees("begin\r\n")
    terminal.call("write", text="\x03")  # the terminal's own interrupt
    terminal.sees("^C\r\n")
    terminal.call("write", text="echo $?; sh -c 'echo be\\gan; exec sleep 60'\r")
    terminal.sees("130\r\n")
    terminal.sees("began\r\n")
    terminal.call("signal", signal="TERM")
    terminal.sees("Terminated")
    terminal.call("write", text="exit 7\r")
    assert terminal.exited() == (7, None)
    assert "logout" in terminal.out() or "exit" in terminal.out()
    refused(terminal.fail("write", text="x"), "shell_dead", "/shellId")


def test_any_program_has_a_terminal(client):
    shell = Shell(client, mode="pty", argv=["/usr/bin/python3", "-c", "import os; print(os.isatty(0), os.get_terminal_size(1)); print(input('? ')); os.kill(os.getpid(), 9)"])
    shell.sees("True os.terminal_size(columns=80, lines=24)\r\n? ")
    shell.call("write", text="typed ü\r")
    assert shell.exited() == (137, "KILL")
    assert shell.out().endswith("typed ü\r\ntyped ü\r\n")


def test_a_flood_of_a_terminal(terminal):
    """All of it arrives, in order, behind a client that reads when it likes; input passes meanwhile."""
    terminal.sees("$ ")
    terminal.call("write", text="stty -echo -onlcr; seq 200000; echo en'd'\r")
    terminal.client.pause_reading()
    time.sleep(0.5)
    terminal.client.resume_reading()
    terminal.sees("end\n")
    assert "\n".join(map(str, range(1, 200001))) in terminal.out()
    terminal.call("write", text="yes\r")
    terminal.sees("y\ny\n")
    terminal.call("write", text="\x03")
    terminal.call("write", text="exit\r")
    assert terminal.exited()[0] in (0, 130)


def test_terminals_are_private(client):
    session = client.open()
    first, second = (Shell(client, session=session, mode="pty", argv=["sh"], env={"PS1": "$ "}) for _ in range(2))
    for shell in (first, second):
        shell.call("write", text="ls /dev/pts; tty\r")
        shell.sees("/dev/pts/0\r\n")
    first.call("write", text="sleep 600 & sleep 600\r")
    client.call("session/close", {"sessionId": session})
    assert client.call("stats/get", {})["shells"] == 0

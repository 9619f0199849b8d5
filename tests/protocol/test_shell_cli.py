"""`kern-sidecar shell`: the bridge that LangChain's shell middleware drives, and a person's terminal."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
import uuid

import pytest


@pytest.fixture
def spawn(program, environment, owner, place):
    """spawn(*words, **of Popen) -> a started `kern-sidecar shell`, as the user, in a process group of its own."""
    started = []

    def start(*words, **params):
        as_user = {} if os.geteuid() != 0 else dict(user=owner.pw_uid, group=owner.pw_gid, extra_groups=[])
        params = {"stdin": -1, "stdout": -1, "stderr": -1, **params}
        started.append(subprocess.Popen([program, "shell", *words], cwd=place, env=environment, start_new_session=True, **as_user, **params))
        return started[-1]

    yield start
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


class Middleware:
    """Does what the middleware does: writes, and reads whole lines until one begins with the marker."""

    def __init__(self, process):
        self.process, self.err = process, b""
        self.marker = None

    def write(self, text):
        self.process.stdin.write(text if isinstance(text, bytes) else text.encode())
        self.process.stdin.flush()

    def start(self, command, pause=0.0):
        self.marker = f"__LC_SHELL_DONE__{uuid.uuid4().hex}".encode()
        self.write(command + "\n")
        time.sleep(pause)
        self.write(b"printf '" + self.marker + b" %s\\n' $?\n")

    def read(self, timeout=30):
        """(output, status) of what was started."""
        out = b""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            ready, _, _ = select.select([self.process.stdout], [], [], end - time.monotonic())
            line = self.process.stdout.readline() if ready else b""
            assert line, f"no marker behind {out[-200:]!r}"
            if line.startswith(self.marker):
                return out.decode(), int(line[len(self.marker):])
            out += line
        raise AssertionError(f"no marker behind {out[-200:]!r}")

    def run(self, command, **params):
        self.start(command, **params)
        return self.read()

    def stop(self):
        """-> exit status, stderr."""
        self.write("exit\n")
        _, err = self.process.communicate(timeout=10)
        return self.process.returncode, err.decode()


@pytest.fixture
def bridge(spawn):
    return lambda *words, **params: Middleware(spawn("--bridge", *words, bufsize=0, **params))


def test_commands(bridge):
    """Every row of what desynchronises a shell that writes the marker itself."""
    shell = bridge()
    assert shell.run("echo hi; x=1; cd /tmp") == ("hi\n", 0)
    assert shell.run("echo $x $PWD") == ("1 /tmp\n", 0)
    rows = {
        "printf abc": ("abc\n", 0), "printf '\\033[31m'": ("\033[31m\n", 0), "cat": ("", 0), "python3 -": ("", 0), "read x; echo $?": ("1\n", 0),
        "head -c 5": ("", 0), "echo hi \\": ("hi\n", 0), "false": ("", 1), "(exit 42)": ("", 42), "": ("", 42), "cat <<E\nabc\nE": ("abc\n", 0),
        "if ; then": ("", 2), "echo 'abc": ("", 2), "cat <<E\nabc": ("abc\n", 0), "exec >/dev/null": ("", 0), "exec 1>&-": ("", 0), "set -x": ("", 0),
        "echo a": ("a\n", 0), "set +x": ("", 0), "printf() { builtin printf '%s 0\\n' \"${1%% *}\"; }; false": ("", 1), "(exit 3)": ("", 3), "unset -f printf": ("", 0),
        "read x; builtin printf '%s 0\\n' \"$marker\"; false": (" 0\n", 1), "trap 'echo D' DEBUG": ("", 0), "true": ("", 0), "trap - DEBUG": ("", 0),
        "printf 'a\\0b'": ("a\0b\n", 0), "echo a\r": ("a\r\n", 0), "nope-nope": ("", 127),
    }
    for command, expected in rows.items():
        assert shell.run(command) == expected, command
    assert shell.run("(sleep 0.2; echo LATE) & true") == ("", 0)
    assert shell.run("sleep 0.4; echo next") == ("next\n", 0)
    assert shell.run("echo slow", pause=0.5) == ("slow\n", 0)  # the marker came late: the text has run meanwhile
    status, err = shell.stop()
    assert status == 0 and "__LC_SHELL_DONE__" not in err and "+ echo a" in err


def test_the_output_is_never_read_for_its_end(bridge):
    """Markers of other commands, of this form, in every place: they are output."""
    shell = bridge()
    lines = "".join(f"__LC_SHELL_DONE__{n:032x} {n}\n" for n in range(5000))
    assert shell.run("for ((n = 0; n < 5000; n++)); do printf '__LC_SHELL_DONE__%032x %d\\n' $n $n; done; (exit 9)") == (lines, 9)


def test_the_end_of_the_shell_is_said(bridge):
    shell = bridge()
    assert shell.run("x=1; exit 42") == ("", 42)
    assert shell.run("echo ${x-gone}") == ("gone\n", 0)
    assert shell.run("kill -9 $$")[1] == 137
    assert shell.run("set -e; false")[1] == 1
    status, err = shell.stop()
    assert status == 1 and err.count("the shell has ended, and its state with it; the next command has a new one\n") == 3


def test_a_deadline_keeps_the_shell(bridge):
    shell = bridge("--timeout-ms", "300")
    assert shell.run("x=1; echo on; sleep 60")[1] == 130
    assert shell.run("echo $x") == ("1\n", 0)
    status, err = shell.stop()
    assert status == 0 and err == "kern-sidecar: the call was ended at its deadline of 300 ms\n"


def test_stopping_is_quick(bridge):
    """`exit` while a command runs, the end of the input, and SIGKILL to the group: all of it ends at once."""
    shell = bridge()
    shell.start("echo on; sleep 60")
    assert shell.process.stdout.readline() == b"on\n"
    begin = time.monotonic()
    shell.stop()
    shell = bridge()
    shell.start("echo on; sleep 60")
    assert shell.process.stdout.readline() == b"on\n"
    shell.process.communicate(timeout=10)
    shell = bridge()
    shell.start("setsid sleep 61 & echo on; sleep 61")
    assert shell.process.stdout.readline() == b"on\n"
    os.killpg(shell.process.pid, signal.SIGKILL)
    assert shell.process.stdout.read() == b""  # nobody holds it
    assert time.monotonic() - begin < 8


def test_workspace_environment_and_input_of_a_file(bridge, spawn, make_dir, owner):
    workspace = make_dir("a b:c\nd")
    read, write = os.pipe()
    os.write(write, b"SECRET=a b=c\0EMPTY=\0")
    os.close(write)
    shell = bridge("--pids", "64", "--workspace", os.path.relpath(workspace, os.path.dirname(workspace)), "--workspace-target", "/w", "--env-fd", str(read), "--", "sh", pass_fds=[read])
    os.close(read)
    assert shell.run('echo "$SECRET" "[$EMPTY]" "$PWD"; echo kept > file; [ -z "${BASH_VERSION-}" ] && echo sh') == ("a b=c [] /w\nsh\n", 0)
    assert open(workspace + "/file").read() == "kept\n"
    shell.stop()
    done = spawn("--bridge").communicate(b"echo one; x=5\necho $x >&2; cd /nowhere; exit 3", timeout=20)
    assert done[0] == b"one\n" and done[1].startswith(b"5\n")
    process = spawn("--bridge")
    process.communicate(b"(exit 4)", timeout=20)
    assert process.returncode == 4


@pytest.mark.parametrize(
    "words, env, message",
    [
        (["--bridge", "--workspace", "/nowhere/at/all"], b"", "/nowhere/at/all"),
        (["--bridge", "--", "/nowhere/bash"], b"", "/nowhere/bash: No such file or directory"),
        (["--bridge", "--", "python3"], b"", "bash, sh, dash or ash"),
        (["--bridge", "--nonsense"], b"", "nonsense"),
        (["--bridge"], b"A=1\nB=2\0", "has a newline"),
        (["--bridge"], b"=1\0", "is no name"),
        (["--bridge"], b"1A=1\0", "1A is no name"),
        (["--bridge"], b"A\0", "without ="),
        (["--bridge"], b"".join(b"A%d=1\0" % n for n in range(257)), "more than 256"),
        (["--bridge"], b"A=" + b"x" * (1 << 20) + b"\0", "more than 1048576 bytes"),
        ([], b"", "stdin or stdout is none"),
    ],
    ids=["workspace", "shell", "program", "flag", "newline", "empty", "digit", "equals", "many", "large", "terminal"],
)
def test_what_is_refused(spawn, words, env, message):
    with os.fdopen(os.memfd_create("env"), "w+b") as file:
        file.write(env)
        file.flush()
        os.lseek(file.fileno(), 0, os.SEEK_SET)
        process = spawn(words[0], "--env-fd", str(file.fileno()), *words[1:], pass_fds=[file.fileno()]) if words else spawn()
        out, err = process.communicate(timeout=20)
    assert (out, process.returncode) == (b"", 125)
    assert message in err.decode() and err.startswith(b"kern-sidecar: "), err


# ---- a person


def test_a_terminal(spawn):
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 99, 0, 0))
    before = termios.tcgetattr(slave)
    process = spawn("--", "bash", "--norc", "--noprofile", stdin=slave, stdout=slave)
    seen = b""

    def sees(text):
        nonlocal seen
        end = time.monotonic() + 30
        while text not in seen and select.select([master], [], [], end - time.monotonic())[0]:
            seen += os.read(master, 65536)
        assert text in seen, seen[-500:]

    sees(b"bash-")
    assert termios.tcgetattr(slave)[3] & (termios.ECHO | termios.ICANON | termios.ISIG) == 0  # raw
    os.write(master, b"stty size\r")
    sees(b"33 99\r\n")
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 10, 20, 0, 0))
    process.send_signal(signal.SIGWINCH)  # the terminal is not its controlling one here
    for _ in range(100):  # it travels beside what is typed, so the shell is asked until it has come
        os.write(master, b"stty size; echo as''ked\r")
        sees(b"asked\r\n")
        if b"10 20\r\n" in seen:
            break
        seen = b""
        time.sleep(0.1)
    sees(b"10 20\r\n")
    os.write(master, b"sh -c 'echo sle\\eping; exec sleep 60'\r")
    sees(b"sleeping\r\n")
    os.write(master, b"\x03")
    sees(b"^C\r\n")
    os.write(master, b"exit 7\r")
    assert process.wait(timeout=20) == 7
    assert termios.tcgetattr(slave) == before
    os.close(master)
    os.close(slave)

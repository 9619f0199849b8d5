"""The last word: the runner of a language says that its process ends now, and the answer does not wait until the kernel has taken the
process's memory apart. Only the main process may say it, only when nothing else lives in the box, and the box is killed at that word."""

import os
import time

import pytest

from expect import fault, plain
from test_kernels import FORGED, Kernel, ok

SAY = FORGED + "import sys, time, subprocess\ndef say(status): os.write(3, frame(6, 0, 1000, [(b'exit', status)]))\n"


@pytest.fixture
def cgroup(client):
    """Who else is in a box is known from its cgroup only."""
    effective = client.call("session/open", {})["effective"]
    if effective["pids"]["enforced"] != "kernel" or effective["memoryMb"]["enforced"] != "kernel":
        pytest.skip("no cgroup for this user: " + effective["memoryMb"]["reason"])


def test_it_ends_the_call(client, make_dir, cgroup):
    """Code that says it itself has ended like code that exits: with that status, and with all of its box."""
    path = make_dir("w")
    session = client.open(workspace=path)
    code = SAY + "print('said'); open('before', 'w').close(); say(b'7')\nwhile True: open('after', 'a').write('x')"
    result = client.code(code, sessionId=session, timeoutMs=60000)
    assert (result["exitCode"], result["stdout"], result["success"]) == (7, "said\n", False)
    assert "fault" not in result and "before" in [f["path"] for f in result["files"]]
    usage = result["usage"]
    assert 0 < usage["wallUs"] < 60_000_000 and usage["cpuUserUs"] + usage["cpuSystemUs"] > 0
    client.wait_for(lambda: client.call("stats/get")["runs"] == 0, "the end of the run")
    time.sleep(0.2)
    seen = os.stat(os.path.join(path, "after")).st_size if os.path.exists(os.path.join(path, "after")) else 0
    time.sleep(0.2)
    assert (os.stat(os.path.join(path, "after")).st_size if seen else 0) == seen
    plain(client.code("print('next')", sessionId=session), "next\n")


def test_what_a_child_has_used_is_counted(client):
    """Nothing in this code keeps the runner from saying it: the child has been waited for."""
    code = """import os; os.system("python3 -c 'import time\\nwhile time.process_time() < 0.2: pass'")"""
    for _ in range(6):  # now and then the end itself comes first
        result = client.code(code)
        assert result["exitCode"] == 0 and result["usage"]["cpuUserUs"] + result["usage"]["cpuSystemUs"] > 150_000


@pytest.mark.parametrize("status, code", [(b"0", 0), (b"255", 255), (b"256", 0), (b"-1", 1), (b"", 0), (b"x9", 9), (b"\xff" * 9, 0)])
def test_any_status(client, status, code, cgroup):
    result = client.code(SAY + f"say({status!r}); time.sleep(60)")
    assert (result["exitCode"], "fault" in result) == (code, False)


def test_a_child_cannot_say_it(client):
    code = SAY + "child = os.fork()\nif not child: say(b'7'); os._exit(0)\nos.waitpid(child, 0); time.sleep(0.3); print('went on')"
    plain(client.code(code), "went on\n")


def test_it_is_not_heard_while_something_else_lives(client):
    code = SAY + "child = subprocess.Popen(['sleep', '60']); say(b'7'); time.sleep(0.3); print('went on', flush=True); sys.exit(3)"
    result = client.code(code)
    assert (result["exitCode"], result["stdout"]) == (3, "went on\n")


def test_faults_come_first(client):
    """A refused escape and a deadline are told all the same."""
    fault(client.code(SAY + "import ctypes; ctypes.CDLL(None).unshare(0x10000000); say(b'0'); time.sleep(60)"), "escape_blocked")
    fault(client.code(SAY + "time.sleep(60); say(b'0')", timeoutMs=500), "timeout")


def test_a_child_does_not_end_a_cell(client):
    """What it writes to the channel with a number of its own is a violation as ever: it has the channel, but not the last word."""
    kernel = Kernel(client)
    number = "sys.modules['_kern_runner'].channel"
    child = f"child = os.fork()\nif not child: os.write(3, frame(6, 2, {number}.id + 1, [(b'done', b''), (b'status', b'ok')])); os._exit(0)\n"
    ok(kernel.run(FORGED + "import sys, time\nos.x = 1"))
    ok(kernel.run(child + f"os.waitpid(child, 0); time.sleep(0.3); print('went on'); {number}.id += 1"), "went on\n")
    ok(kernel.run("print(os.x)"), "1\n")


@pytest.mark.parametrize(
    "language, code, stdout, status",
    [
        ("python", "print('x' * 3_000_000)", "x" * 3_000_000 + "\n", 0),
        ("python", "import os; os.write(1, b'y' * 200_000); print('z')", "y" * 200_000 + "z\n", 0),
        ("node", "console.log('x'.repeat(3_000_000))", "x" * 3_000_000 + "\n", 0),
        ("node", "process.on('exit', () => console.log('last')); console.log('first')", "first\nlast\n", 0),
        ("node", "process.on('exit', (code) => { console.log(code); process.exitCode = 5 }); process.exitCode = 4", "4\n", 5),
        ("node", "process.on('exit', () => process.exit(9))", "", 9),
        ("node", "process.exit(300)", "", 300 & 255),
        ("node", "setTimeout(() => console.log('later'), 50)", "later\n", 0),
        ("node", "require('fs').writeFile('f', 'x'.repeat(1 << 20), () => console.log('written'))", "written\n", 0),
        ("node", "new (require('worker_threads').Worker)(\"console.log('in a worker')\", { eval: true })", "in a worker\n", 0),
        ("node", "process.emit = () => {}; process.exitCode = 2; console.log(1)", "1\n", 2),
        ("node", "require('child_process').spawn('sleep', ['0.2']).on('exit', (c) => console.log('child', c))", "child 0\n", 0),
        ("node", "require('child_process').spawn('sleep', ['60'], { detached: true }).unref(); process.exit(1)", "", 1),
    ],
    ids=lambda value: value[:50] if isinstance(value, str) else None,
)
def test_nothing_before_it_is_lost(client, language, code, stdout, status):
    result = client.code(code, language=language)
    assert (client.out(result), result["stderr"], result["exitCode"]) == (stdout, "", status)
    assert result["resultChannel"] == "ok" and "fault" not in result


@pytest.mark.parametrize("code", ["throw new Error('wrong')", "Promise.reject(new Error('wrong'))", "await 1; throw new Error('wrong')", "let ="])
def test_an_error_of_node_is_printed_whole(client, code):
    result = client.code(code, language="node")
    assert result["exitCode"] == 1 and "Node.js v" in result["stderr"].splitlines()[-1]


def test_where_proc_is_of_another_namespace(sidecar, program, as_user, make_dir):
    """As some containers have it: numbers of processes there are not those that the kernel attests. Nothing waits for a word that never counts."""
    if as_user != "root":
        pytest.skip("a pid namespace with another's /proc is root's to make")
    wrapper = os.path.join(make_dir("bin"), "wrapper")
    with open(wrapper, "w", encoding="ascii") as file:
        file.write(f'#!/bin/sh\nexec unshare --pid --fork --kill-child {program} "$@"\n')
    os.chmod(wrapper, 0o755)
    client = sidecar(program=wrapper)
    plain(client.code("print(1)"), "1\n")
    kernel = Kernel(client)
    ok(kernel.run("print(2)"), "2\n")
    ok(kernel.run("print(3)"), "3\n")

"""Boxes that are made ahead, with an interpreter in them or without: the same results, once each, and nothing in common."""

import contextlib
import os
import signal
import time

import pytest

import leftovers
from expect import refused

CALLS = int(os.environ.get("KERN_ENDURANCE_CALLS", "1500"))  # 10000 takes 50 s
WAYS = ("cold", "template", "spare", "zygote")
LANGUAGES = [language for language, program in (("python", "/usr/bin/python3"), ("node", "/usr/bin/node")) if os.path.exists(program)]
VOLATILE = ("runId", "sessionId", "durationMs", "durationUs", "usage", "start")

ERROR = "def f(x):\n    return 1 / x\n\nf(0)\n"
TELL = """import os, sys
print(sys.argv, sys.path[0], os.getcwd(), __name__, __file__, sorted(vars()), sys.flags.utf8_mode, sys.stdin.encoding)
print(os.environ.get("A"), list(os.environ)[-2:], os.listdir("/run/code"), os.getpid() in (2, 3), os.getppid(), os.read(0, 10), os.isatty(1))
print(open("/proc/self/status").read().split("Cap", 1)[1].split("Seccomp_f")[0], sorted(os.listdir("/proc/self/fd"))[:3])
for name in ("/proc/1/environ", "/proc/1/mem", "/dev/mem"):
    try:
        open(name).read(1)
    except OSError as error:
        print(name, error.errno)
"""
# One that was forked is pid 3, because its father was pid 2, and has the filter of its zygote as well.
# What is run on each way: (name, method, parameters). The last expression, errors, exits, finalizers, and what a claim brings.
RUNS = [
    ("value", {"code": "x = 6\nx * 7"}),
    ("both streams", {"code": "import sys\nprint('a')\nprint('b', file=sys.stderr)\nprint('c', end='')"}),
    ("error", {"code": ERROR}),
    ("syntax error", {"code": "def f(:\n"}),
    ("exit", {"code": "import sys\nsys.exit(3)"}),
    ("exit with words", {"code": "raise SystemExit('bye')"}),
    ("own exit", {"code": "import os\nos._exit(7)"}),
    ("signal", {"code": "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)"}),
    ("finalizers", {"code": "class A:\n    def __del__(self): print('gone')\na = A()\nimport atexit\natexit.register(print, 'at exit')"}),
    ("unflushed file", {"code": "f = open('left', 'w')\nf.write('all of it')\nprint(1)"}),
    ("generator", {"code": "def g():\n    try:\n        yield 1\n    finally:\n        print('closed')\ni = g()\nnext(i)"}),
    ("thread", {"code": "import threading, time\nthreading.Thread(target=lambda: (time.sleep(.05), print('late'))).start()"}),
    ("pickle", {"code": "import pickle\nclass P: pass\nprint(type(pickle.loads(pickle.dumps(P()))).__module__)"}),
    ("display", {"code": "display('one')\nprint('two')\ndisplay({'a': 1})"}),
    ("await", {"code": "import asyncio\nawait asyncio.sleep(0)\n'slept'"}),
    ("surroundings", {"code": TELL, "env": {"A": "two words", "PATH": "/usr/bin:/bin"}, "args": ["x", "ü"], "filename": "name.py"}),
    ("boot variables", {"code": "import sys, os\nprint(sys.flags.hash_randomization, os.environ['TZ'])", "env": {"PYTHONHASHSEED": "0", "TZ": "UTC"}}),
    ("directory", {"code": "import os\nprint(os.getcwd())", "cwd": "/tmp"}),
    ("input", {"code": "print(input())", "stdin": "from the caller\n"}),
    ("merged", {"code": "import os\nos.write(2, b'e'); os.write(1, b'o')", "merge": True}),
    ("memory", {"code": "x = bytearray(200 << 20)\nx[::4096] = b'x' * len(x[::4096])", "memoryMb": 64}),
    ("deadline", {"code": "print('begun')\nwhile True: pass", "timeoutMs": 400}),
    ("escape", {"code": "import ctypes\nctypes.CDLL(None).unshare(0x10000000)"}),
    ("long code", {"code": "x = 1\n" * 20000 + "x"}),
    ("node", {"code": "console.log(process.argv, process.cwd(), __filename, require.main === module)\n[1, 2]", "language": "node", "args": ["a"]}),
    ("node error", {"code": "function f() {\n throw new TypeError('no')\n}\nf()", "language": "node"}),
    ("node module", {"code": "import fs from 'node:fs'\nconsole.log(await 5, typeof fs)", "language": "node"}),
    ("node exit", {"code": "process.on('exit', (c) => console.log('left', c))\nprocess.exitCode = 4", "language": "node"}),
    ("node variables", {"code": "console.log(process.env.A, Object.keys(process.env).at(-1))", "language": "node", "env": {"A": "1"}}),
    ("bash", {"code": "echo $0 $1; exit 5", "language": "bash", "args": ["one"]}),
]
PARKED = {"value", "error", "syntax error", "exit", "surroundings", "finalizers", "node", "node error", "node module", "deadline"}


def settled(result):
    """Without what differs from call to call."""
    kept = {name: value for name, value in result.items() if name not in VOLATILE}
    if "fault" in kept and kept["fault"].get("type") == "oom":
        kept["fault"] = {"type": "oom", "limit": kept["fault"].get("limit")}
    return kept


def test_results_are_the_same_on_every_way(client, make_dir):
    found = {}
    for way in WAYS:
        session = client.open(start=way, workspace=make_dir(f"ws-{way}"))
        for name, params in RUNS:
            if params.get("language", "python") in (*LANGUAGES, "bash"):
                found[way, name] = client.code(**params, sessionId=session)
        client.call("session/close", {"sessionId": session})
    for (way, name), result in found.items():
        assert settled(result) == settled(found["cold", name]), (way, name)
        kind = result["start"]["kind"]
        assert kind == way or (way == "zygote" and kind == "spare" and name not in PARKED), (way, name, kind)
    assert found["zygote", "value"]["start"]["us"] < 10_000_000
    assert found["zygote", "deadline"]["durationMs"] >= 400


@pytest.mark.parametrize("way", ["spare", "zygote"])
def test_nothing_is_shared_and_each_serves_once(client, way):
    """Two calls at the same time and two after each other: none sees anything of another."""
    session = client.open(start=way, prewarm=3)
    mark = "import os\nopen('/tmp/mark', 'x').close(); open('/dev/shm/mark', 'x').close(); open(os.environ['HOME'] + '/mark', 'x').close()\n"
    code = mark + "print(os.readlink('/proc/self/ns/pid'), os.readlink('/proc/self/ns/net'), os.readlink('/proc/self/ns/ipc'), len([p for p in os.listdir('/proc') if p.isdigit()]))"
    futures = client.send_all([("run/code", {"code": code, "sessionId": session})] * 60)
    lines = [future.result()["stdout"] for future in futures] + [client.code(code, sessionId=session)["stdout"] for _ in range(8)]
    # a number of a namespace that has gone is given to another one: few may be enough for all
    assert len({line.split()[0] for line in lines}) > 2 and all(line.split()[3] == "2" for line in lines), lines


def test_prewarm_and_start_that_contradict(client):
    for start in ("cold", "template"):
        refused(client.fail("session/open", {"start": start, "prewarm": 1}), "invalid_value", "/prewarm")
    refused(client.fail("session/open", {"prewarm": 65}), "out_of_range", "/prewarm")
    assert client.open(prewarm=0) and client.open(prewarm=64)


def test_they_come_by_demand(client):
    """None before the first call; then calls find them; a session that closes takes them along."""
    session = client.open(start="auto")
    below = len(leftovers.descendants(client.pid))
    time.sleep(0.1)
    assert len(leftovers.descendants(client.pid)) == below
    assert client.run("true", sessionId=session)["start"]["kind"] == "template"
    client.wait_for(lambda: client.run("true", sessionId=session)["start"]["kind"] == "spare", "a spare", 30)
    assert client.code("1", sessionId=session)["start"]["kind"] in ("spare", "template")
    client.wait_for(lambda: client.code("1", sessionId=session)["start"]["kind"] == "zygote", "an interpreter", 30)
    client.call("session/close", {"sessionId": session})
    client.wait_for(lambda: client.call("stats/get")["boxes"] == 0, "the spares to go", 30)


def test_closing_while_they_are_made(client):
    """A template that dies between the clone of a box and the word about it: nothing hangs, nothing is left."""
    for i in range(40):
        session = client.open(prewarm=8)
        if i % 2:
            client.run("true", sessionId=session)
        client.call("session/close", {"sessionId": session})
    client.wait_for(lambda: client.call("stats/get")["boxes"] == 0, "all boxes to be gone", 30)


def parked_processes(client):
    found = []
    for pid in leftovers.descendants(client.pid):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file, open(f"/proc/{pid}/status", encoding="ascii") as status:
                if file.read().endswith((b"park\0", b"zygote\0")) and "CapEff:\t" + 16 * "0" in status.read():  # not what forks them
                    found.append(pid)
        except OSError:
            pass
    return found


def test_a_call_outlives_the_death_of_its_spare(client):
    """Killed from outside while they wait: calls take another way, and say so."""
    session = client.open(start="zygote", prewarm=2)
    for _ in range(10):
        client.code("1", sessionId=session)
        client.wait_for(lambda: parked_processes(client), "an interpreter that waits", 30)
        for pid in parked_processes(client):
            with contextlib.suppress(ProcessLookupError):  # that of the call before was still going
                os.kill(pid, signal.SIGKILL)
        result = client.code("print(1)", sessionId=session)
        assert (result["stdout"], result["exitCode"], result.get("fault")) == ("1\n", 0, None), result


def test_a_call_outlives_a_stopped_interpreter(client):
    """It never says that it begins: its box is ended, and the call runs in another one."""
    session = client.open(start="zygote", prewarm=1)
    client.code("1", sessionId=session)
    client.wait_for(lambda: parked_processes(client), "an interpreter that waits", 30)
    stopped = parked_processes(client)
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    result = client.code("open('once', 'a').write('1'); print(open('once').read())", sessionId=session)
    assert (result["stdout"], result["exitCode"]) == ("1\n", 0), result
    assert not leftovers.still_there({pid: None for pid in stopped if pid in parked_processes(client)}, within=5.0)


def test_posture_changes_drop_them(client, make_dir, place):
    """What restore puts in the place of the workspace is what the next call sees, also from a box that was ready."""
    session = client.open(start="zygote", prewarm=2)
    client.code("open('f', 'w').write('old')", sessionId=session)
    blob = client.call("session/snapshot", {"sessionId": session})["blob"]
    client.code("open('f', 'w').write('new')", sessionId=session)
    client.call("session/restore", {"sessionId": session, "blob": blob})
    assert client.code("print(open('f').read())", sessionId=session)["stdout"] == "old\n"


def test_what_the_caller_could_plant(client, make_dir):
    """Interpreters, variables and packages that have a say in the boot: then none is booted ahead."""
    path = make_dir("planted")
    for fields in (
        {"interpreters": {"python": "/usr/bin/python3"}},
        {"env": {"PYTHONPATH": "/workspace"}},
        {"env": {"LD_PRELOAD": "/workspace/none.so"}},
    ):
        session = client.open(start="zygote", workspace=path, **fields)
        client.code("open('sitecustomize.py', 'w').write('print(1)')", sessionId=session)
        assert client.code("2", sessionId=session)["start"]["kind"] == "spare"
        assert parked_processes(client) == []
        client.call("session/close", {"sessionId": session})
    session = client.open(start="zygote", workspace=path)  # and of what lies in the working directory it reads nothing
    result = client.code("2", sessionId=session)
    assert (result["start"]["kind"], result["stdout"]) == ("zygote", "")


def test_calls_without_a_session(client):
    """The first opens its own; later ones find one that is open, and it is theirs alone."""
    code = "import os\nprint(os.listdir('.'), os.getcwd())\nopen('mine', 'x').close()"
    kinds = []

    def from_one_ahead():
        result = client.code(code)
        assert result["stdout"] == "[] /workspace\n" and [f["path"] for f in result["files"]] == ["mine"], result
        kinds.append(result["start"]["kind"])
        return kinds[-1] == "zygote"

    client.wait_for(from_one_ahead, "a session that was opened ahead", 30)
    assert kinds[0] == "cold"
    assert client.run("true", session={"pids": 5})["start"]["kind"] == "cold"  # not of default options
    client.wait_for(lambda: client.call("stats/get")["sessions"] == 0, "those that were used to go", 30)
    assert all(f.result()["stdout"] == "[] /workspace\n" for f in client.send_all([("run/code", {"code": code})] * 12))


@pytest.mark.endurance
def test_thousands_of_calls_on_boxes_made_ahead(sidecar):
    """What is made ahead is used up, not piled up: nothing grows, and the last calls are as quick as the first."""
    client = sidecar(validator=None, threaded=False)
    session = client.open(start="spare", prewarm=4)

    def some(count):
        begin = time.monotonic()
        for i in range(count):
            client.run("/bin/true", sessionId=session)
            if i % 100 == 0:
                client.code("1", sessionId=session)
        return time.monotonic() - begin

    def counts():
        processes = leftovers.descendants(client.pid)
        return len(processes), leftovers.fd_count(client.pid), leftovers.mount_count(client.pid), client.call("stats/get")["boxes"]

    some(300)
    time.sleep(0.5)
    before, memory, first = counts(), leftovers.rss_kib(client.pid), some(300)
    some(CALLS - 900)
    last = some(300)
    client.wait_for(lambda: counts() <= before, "as many processes, descriptors, mounts and boxes as before", 30)
    assert leftovers.rss_kib(client.pid) <= memory + 1024
    assert last < 3 * first + 1


def test_preload(client, make_dir):
    """Imported before the call: there when it begins, once for each call, and nothing of the workspace is in it."""
    path = make_dir("ws")
    with open(path + "/decimal.py", "w", encoding="ascii") as file:
        file.write("print('of the workspace')\n")
    session = client.open(workspace=path, preload=["decimal", "xml.dom.minidom"], prewarm=2)
    tell = "import sys\nprint('decimal' in sys.modules, 'xml.dom.minidom' in sys.modules, sys.path[0], 'json' in sys.modules)\n"
    for _ in range(3):
        result = client.code(tell + "import decimal\ndecimal.getcontext().prec = 3\nstr(1 / decimal.Decimal(3))", sessionId=session)
        assert (result["start"]["kind"], result["stdout"]) == ("zygote", "True True /workspace False\n"), result
        assert result["results"][0]["data"]["text/plain"] == "'0.333'"
    assert client.code("import decimal\nprint(decimal.getcontext().prec)", sessionId=session)["stdout"] == "28\n"
    other = client.code("import decimal", sessionId=session, env={"A": "1"})  # imports by itself, and finds its own
    assert (other["start"]["kind"], other["stdout"]) == ("spare", "of the workspace\n")


def test_preload_that_fails(client):
    for name, words in (("no_such_module", "ModuleNotFoundError"), ("errors", "ModuleNotFoundError"), ("antigravity.none", "")):
        error = client.fail("session/open", {"preload": ["json", name]})
        refused(error, "preload_failed", "/preload")
        assert name.split(".")[0] in error.message and words in error.message, error.message
    for bad in ("", "a b", "1a", "a..b", ".a", "a;b", "/etc"):
        reason = "out_of_range" if bad == "" else "invalid_value"
        error = client.fail("session/open", {"preload": ["json", bad]})
        assert error.data["reason"] in (reason, "invalid_value") and error.data["path"] == "/preload/1", error
    for start in ("cold", "template", "spare"):
        refused(client.fail("session/open", {"preload": ["json"], "start": start}), "invalid_value", "/preload")
    for fields in ({"interpreters": {"python": "/usr/bin/python3"}}, {"env": {"PYTHONPATH": "/workspace"}}):
        refused(client.fail("session/open", {"preload": ["json"], **fields}), "preload_failed", "/preload")
    client.wait_for(lambda: client.call("stats/get")["sessions"] == 0, "them to be closed", 30)

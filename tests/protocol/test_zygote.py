"""Interpreters that are forked into their box: as one that was booted there, and what happens when something is wrong with what forks them."""

import json
import os
import re
import signal
import struct
import time

import pytest

import leftovers

# One that is forked is pid 3: its father was pid 2.
FORKED = "import os\nprint(os.getpid() == 3)"


def of_kind(client, word):
    """Processes of the sidecar whose last argument is this."""
    found = []
    for pid in leftovers.descendants(client.pid):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if file.read().endswith(word.encode() + b"\0"):
                    found.append(pid)
        except OSError:
            pass
    return found


def status(pid):
    """Empty when it is gone."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    except (FileNotFoundError, ProcessLookupError):
        return {}


def zygotes(client):
    """Those that fork: in the session's pid namespace, not in that of a box."""
    return [pid for pid in of_kind(client, "zygote") if status(pid).get("CapEff", "0" * 16) != "0" * 16]


def the_zygote(client):
    """Its pid, once no fork is on its way into a box: that looks like it."""
    found = []

    def alone():
        found[:] = zygotes(client)
        return len(found) == 1

    client.wait_for(alone, "one zygote", 30)
    return found[0]


def until_forked(client, session):
    client.wait_for(lambda: client.code(FORKED, sessionId=session)["stdout"] == "True\n", "a call that is forked", 60)


def with_zygote(client, **fields):
    """A session whose calls are forked by now."""
    session = client.open(**{"start": "zygote", **fields})
    until_forked(client, session)
    return session


def test_calls_are_forked(client):
    session = with_zygote(client)
    results = [f.result() for f in client.send_all([("run/code", {"code": FORKED + "\n6 * 7", "sessionId": session})] * 20)]
    assert {(r["stdout"], r["start"]["kind"], r["results"][0]["data"]["text/plain"]) for r in results} == {("True\n", "zygote", "42")}
    assert len(zygotes(client)) == 1


def test_by_demand_and_without_a_cliff(client):
    """start: auto; a call that finds no interpreter that waits gets one that is forked for it."""
    session = client.open()
    until_forked(client, session)
    results = [f.result() for f in client.send_all([("run/code", {"code": FORKED, "sessionId": session})] * 30)]
    assert {r["start"]["kind"] for r in results} == {"zygote"}


@pytest.mark.parametrize("start", ["auto", "zygote"])
def test_a_burst_waits_for_the_first_zygote(client, start):
    """Rather than for a processor to boot on: one call for each of these boots. Then there is one, whoever has taken what."""
    session = client.open(start=start)
    results = [f.result() for f in client.send_all([("run/code", {"code": FORKED, "sessionId": session})] * 20)]
    assert [r["exitCode"] for r in results] == [0] * 20
    booted = [r["start"]["kind"] for r in results if r["stdout"] == "False\n"]
    assert len(booted) <= len(os.sched_getaffinity(0)), booted
    client.wait_for(lambda: len(zygotes(client)) == 1, "a zygote that waits", 30)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_one_that_does_not_get_ready_holds_up_no_call(client, how):
    session = client.open()
    futures = client.send_all([("run/code", {"code": "print(1)", "sessionId": session})] * 20)
    client.wait_for(lambda: zygotes(client), "a zygote", 30)
    for pid in zygotes(client):
        os.kill(pid, how)
    results = [f.result() for f in futures]
    assert {(r["stdout"], r["exitCode"], r.get("fault") is None) for r in results} == {("1\n", 0, True)}, results
    until_forked(client, session)


def test_nothing_of_a_call_is_in_another(client):
    session = with_zygote(client)
    spoil = "import builtins, sys, os\nprint(hasattr(builtins, 'mark'), 'mark' in sys.modules, os.environ.get('MARK'), os.listdir('/tmp'))\n" \
            "builtins.mark = sys.modules['mark'] = 1\nos.environ['MARK'] = '1'\nopen('/tmp/mark', 'w').close()"
    assert {client.code(spoil, sessionId=session)["stdout"] for _ in range(6)} == {"False False None []\n"}


def test_random_numbers_differ(client):
    """What is shared at the fork is made anew, but for the seed of hash(), which is one of the zygote's: it is documented."""
    session = with_zygote(client, preload=["random", "uuid", "secrets", "tempfile"])
    tell = "import random, uuid, secrets, os\nprint(random.random(), uuid.uuid4(), secrets.token_hex(), os.urandom(8).hex())"
    lines = [client.code(tell, sessionId=session)["stdout"].split() for _ in range(6)]
    assert all(len(set(column)) == len(lines) for column in zip(*lines)), lines
    assert len({client.code("print(hash('a'))", sessionId=session)["stdout"] for _ in range(3)}) == 1


@pytest.mark.parametrize("preload", ["numpy.random", "other"])
def test_random_numbers_of_numpy_differ(client, libraries, make_dir, preload):
    """With the generator that numpy comes with and with one that a preloaded module has chosen; and they are even."""
    deps = os.path.join(make_dir("ws"), ".deps")
    os.mkdir(deps)
    os.symlink("/packages/numpy", os.path.join(deps, "numpy"))
    with open(os.path.join(deps, "other.py"), "w") as file:
        file.write("import numpy.random\nnumpy.random.set_bit_generator(numpy.random.PCG64(1))")
    session = libraries("numpy", start="zygote", preload=[preload], workspace=os.path.dirname(deps), env={})
    until_forked(client, session)
    tell = "import numpy.random as r\nprint(type(r.get_bit_generator()).__name__, .49 < r.rand(100000).mean() < .51, r.randint(1 << 60), r.normal())"
    lines = [client.code(tell, sessionId=session)["stdout"].split() for _ in range(6)]
    assert {(*line[:2],) for line in lines} == {("PCG64" if preload == "other" else "MT19937", "True")}
    assert len({line[2] for line in lines}) == len({line[3] for line in lines}) == len(lines), lines


@pytest.mark.parametrize("preload", [[], ["gc"]])
def test_modules_are_those_that_were_asked_for(client, preload):
    session = with_zygote(client, **({"preload": preload} if preload else {}))
    look = "import sys\nprint('gc' in sys.modules, '_kern_fork' in sys.modules, sys.modules['gc'] is __import__('gc') if 'gc' in sys.modules else None)"
    assert client.code(look, sessionId=session)["stdout"] == ("True False True\n" if preload else "False False None\n")


def test_power(client):
    """A zygote has just what setns asks for, over its session; what it forks has nothing, and the filter of a box that reports."""
    session = with_zygote(client)
    zygote = the_zygote(client)
    found = status(zygote)
    assert int(found["CapEff"], 16) == int(found["CapPrm"], 16) == 1 << 21 | 1 << 18  # CAP_SYS_ADMIN, CAP_SYS_CHROOT
    assert (int(found["CapBnd"], 16), found["NoNewPrivs"], found["Seccomp"], found["Threads"]) == (0, "1", "2", "1")
    result = client.code("import ctypes\nctypes.CDLL(None).setns(0, 0)", sessionId=session)
    assert (result["fault"]["type"], result["fault"]["syscall"]) == ("escape_blocked", "setns"), result


def test_place(client, make_dir):
    """Namespaces, mounts, cgroup and descriptors are those of a box, and nothing of the zygote's is left."""
    look = "import os, json\nnames = sorted(os.listdir('/proc/self/ns'))\n" \
           "mounts = sorted(' '.join(line.split()[3:6] + line.split(' - ')[1].split()) for line in open('/proc/self/mountinfo'))\n" \
           "print(json.dumps([{n: os.readlink('/proc/self/ns/' + n) for n in names}, mounts, open('/proc/self/cgroup').read(),\n" \
           "    os.listdir('/proc/self/fd'), os.getsid(0) == os.getpid(), os.getpgrp() == os.getpid(), os.umask(0), sorted(os.listdir('/proc'))]))"
    path = make_dir("ws")
    session = with_zygote(client, workspace=path)
    # both are there at once: the number of a namespace that has gone is given to another
    meet = "\nopen(f'{me}', 'w').close()\nwhile not os.path.exists(f'{other}'): os.sched_yield()"
    pair = [("run/code", {"code": f"me, other = {me}, {1 - me}\n{look}{meet}", "sessionId": session}) for me in (0, 1)]
    forked, again = (json.loads(future.result()["stdout"]) for future in client.send_all(pair))
    booted = json.loads(client.code(look, sessionId=client.open(start="cold", workspace=path))["stdout"])
    own = ("cgroup", "ipc", "mnt", "net", "pid", "pid_for_children", "uts")
    assert all(forked[0][name] != again[0][name] for name in own), (forked[0], again[0])
    zygote = the_zygote(client)
    try:
        theirs = {name: os.readlink(f"/proc/{zygote}/ns/{name}") for name in own if name != "pid_for_children"}
        assert all(forked[0][name] != theirs[name] for name in theirs), (forked[0], theirs)
    except PermissionError:  # entering a user namespace has made it undumpable
        pass
    numbers = [[entry for entry in found[7] if not entry.isdigit()] for found in (forked, booted)]
    assert numbers[0] == numbers[1] and [entry for entry in forked[7] if entry.isdigit()] == ["1", "3"]
    assert forked[1:7] == booted[1:7]


@pytest.mark.parametrize("fields", [{}, {"memoryMb": 128, "pids": 20, "cpusMilli": 1000}])
def test_limits(client, fields):
    """Init sets them from outside, and to the same as for a program that it executes."""
    look = "import os, resource\nnames = [name for name in dir(resource) if name.startswith('RLIMIT_')]\n" \
           "print([(name, resource.getrlimit(getattr(resource, name))) for name in names], os.sched_getaffinity(0))"
    forked = client.code(look, sessionId=with_zygote(client, **fields))["stdout"]
    assert forked == client.code(look, sessionId=client.open(start="cold", **fields))["stdout"]
    assert "('RLIMIT_CORE', (1, 1))" in forked and ("cpusMilli" not in fields or re.search(r"\{\d+\}\n$", forked)), forked


def test_one_of_each_posture(client):
    first, second = with_zygote(client), with_zygote(client, env={"SOME": "thing"})
    assert len(zygotes(client)) == 2
    assert client.code("import os\nprint(os.environ.get('SOME'))", sessionId=first)["stdout"] == "None\n"
    assert client.code("import os\nprint(os.environ.get('SOME'))", sessionId=second)["stdout"] == "thing\n"
    client.call("session/close", {"sessionId": first})
    client.wait_for(lambda: len(zygotes(client)) == 1, "the zygote to go with its session", 30)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_one_that_dies_or_stops_harms_no_call(client, make_dir, how):
    path = make_dir("ws")
    session = with_zygote(client, prewarm=1, workspace=path)
    wait = "import os, time\nopen('begun', 'w').close()\nwhile not os.path.exists('end'): time.sleep(.01)\nprint('whole')"
    running = client.send("run/code", {"code": wait, "sessionId": session})
    client.wait_for(lambda: os.path.exists(path + "/begun"), "the call to run", 30)
    for pid in zygotes(client):
        os.kill(pid, how)
    results = [f.result() for f in client.send_all([("run/code", {"code": "print(1)", "sessionId": session})] * 6)]
    assert {(r["stdout"], r["exitCode"], r.get("fault") is None) for r in results} == {("1\n", 0, True)}, results
    with open(path + "/end", "w", encoding="ascii"):
        pass
    assert running.result()["stdout"] == "whole\n"
    until_forked(client, session)


def test_a_call_that_takes_all_memory_harms_no_other(client):
    session = with_zygote(client, memoryMb=128)
    hungry = {"code": "x = bytearray(400 << 20)\nx[::4096] = b'x' * len(x[::4096])", "sessionId": session}
    others = {"code": "print(sum(range(1000)))", "sessionId": session}
    futures = client.send_all([("run/code", hungry), ("run/code", others)] * 6)
    results = [f.result() for f in futures]
    assert {r["fault"]["type"] for r in results[::2]} <= {"oom", "killed"}, results[::2]
    assert {r["stdout"] for r in results[1::2]} == {"499500\n"}


# A module of the workspace's packages that cannot be forked, and why.
UNABLE = {
    "a thread": "import threading, time\nthreading.Thread(target=time.sleep, args=(1000,), daemon=True).start()\n",
    "a file": "import os\nkept = os.open('/etc/passwd', os.O_RDONLY)\n",
    "a process": "import os, time\nif os.fork() == 0:\n    time.sleep(1000)\n",
}


@pytest.mark.parametrize("what", sorted(UNABLE))
def test_what_cannot_be_forked_boots(client, make_dir, what):
    """The same results from interpreters that boot in their box."""
    path = make_dir("ws")
    with open(path + "/unable.py", "w", encoding="ascii") as file:
        file.write(UNABLE[what])
    client.call("session/close", {"sessionId": install(client, path)})
    answer = client.call("session/open", {"workspace": path, "preload": ["unable"], "start": "zygote"})
    assert [note["code"] for note in answer["notes"]] == ["preload_not_shared"] and what in answer["notes"][0]["message"], answer["notes"]
    session = answer["sessionId"]
    result = client.code("import sys, os\nprint('unable' in sys.modules, os.getpid())", sessionId=session)
    assert (result["start"]["kind"], result["stdout"]) == ("zygote", "True 2\n"), result
    assert zygotes(client) == []


def install(client, path):
    """The module becomes a package of a setup: what the code cannot write."""
    session = client.open(workspace=path)
    assert client.call("session/setup", {"sessionId": session, "command": "mkdir -p .deps && mv unable.py .deps/"})["success"]
    return session


@pytest.mark.parametrize("fields", [{"securityProfile": "untrusted"}, {"interpreters": {"python": "/usr/bin/python3"}}])
def test_where_there_is_none(client, fields):
    session = client.open(start="zygote", **fields)
    for _ in range(4):
        result = client.code("import os\nprint(os.getpid())", sessionId=session)
        assert result["stdout"] == "2\n", result
    assert zygotes(client) == []


def test_a_posture_that_allows_none_is_noted(client):
    answer = client.call("session/open", {"preload": ["errno"], "securityProfile": "untrusted"})
    assert [note["code"] for note in answer["notes"]] == ["preload_not_shared"], answer["notes"]
    assert client.call("session/open", {"preload": ["errno"]})["notes"] == []


@pytest.mark.endurance
def test_it_is_renewed(client):
    """Addresses and seeds are not those of one boot for ever."""
    session = with_zygote(client)
    first = the_zygote(client)
    begin = time.monotonic()
    seeds, calls = set(), 0
    while len(seeds) < 2 and time.monotonic() - begin < 120:
        futures = client.send_all([("run/code", {"code": "print(hash('a'))", "sessionId": session})] * 50)
        seeds |= {f.result()["stdout"] for f in futures}
        calls += 50
    assert len(seeds) >= 2 and calls > 400
    assert zygotes(client) != [first]


# A package that takes the place of what forks, and brings a process into the box that is not what it says. LIE: how.
LIAR = """
import ctypes, os, socket, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
NO_CAPS = (struct.pack('<Ii', 0x20080522, 0), bytes(24))

def come_in(join, slots):
    while os.getppid() != 1:
        time.sleep(.001)
    if LIE == 'power':
        pass
    elif LIE == 'no filter':
        libc.prctl(47, 4, 0, 0, 0)
        libc.capset(*NO_CAPS)
    elif LIE == 'no listener':
        libc.prctl(47, 4, 0, 0, 0)
        libc.capset(*NO_CAPS)
        code = struct.pack('<HBBI', 6, 0, 0, 0x7fff0000)  # a filter that allows everything
        buffer = ctypes.create_string_buffer(code)
        libc.syscall(317, 1, 0, ctypes.byref((ctypes.c_uint64 * 2)(1, ctypes.addressof(buffer))))
    socket.send_fds(join, [struct.pack('<i28s', 0, b'')], [os.open('/dev/null', os.O_RDWR)] if LIE != 'nothing beside it' else [])
    open('/workspace/came_in', 'a').write(LIE)
    os.dup2(slots[-1], 3)
    os.write(3, open('/workspace/ready', 'rb').read())
    time.sleep(1000)

class Liar:
    def serve(self, fd):
        channel = socket.socket(fileno=os.dup(fd))
        while True:
            data, fds, _, _ = socket.recv_fds(channel, 100, 20)
            if not data:
                os._exit(0)
            join = socket.socket(fileno=fds[0])
            offer, slots, _, _ = socket.recv_fds(join, 20000, 20)
            libc.setns(slots[0], 0x20000000)
            pid = os.fork()
            if pid == 0:
                if LIE == 'not a child' or os.fork() == 0:
                    if LIE == 'not a child':
                        os.getppid = lambda: 1
                    come_in(join, slots)
                os._exit(0)
            if LIE != 'not a child':
                os.waitpid(pid, 0)
            join.close()
            for one in (*fds[1:], *slots):
                os.close(one)

sys.modules['_imp'].create_dynamic = lambda spec, path=None: Liar()
sys.modules['_imp'].exec_dynamic = lambda module: None
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="has the number of a system call")
@pytest.mark.parametrize("lie", ["power", "no filter", "no listener", "nothing beside it", "not a child"])
def test_init_believes_the_kernel_only(client, make_dir, lie):
    """A zygote that has been taken over gets nothing into a box that has power, or less than all filters: the call boots its own."""
    path = make_dir("ws")
    with open(path + "/unable.py", "w", encoding="ascii") as file:
        file.write(f"LIE = {lie!r}\n" + LIAR)
    with open(path + "/ready", "wb") as file:  # what a runner says when it waits
        file.write(struct.pack("<4sBBHIIIIHI", b"KRN1", 1, 6, 0, 0, 0, 12, 0, 6, 0) + b"ready\0")
    client.call("session/close", {"sessionId": install(client, path)})
    answer = client.fail("session/open", {"workspace": path, "preload": ["unable"], "start": "zygote"})
    assert answer.data["reason"] == "preload_failed", answer
    assert "came into the box" in answer.message or "does not wait" in answer.message, answer

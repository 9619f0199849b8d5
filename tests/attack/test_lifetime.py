"""Ends: of calls, boxes, sessions, hosts. Who outlives whom, who is killed by mistake, what is left for the next."""

import os
import subprocess
import time
import uuid

import pytest

import leftovers
from boxes import MARK, ROUNDS, WAYS, Boxes, attack
from expect import fault, plain


def word():
    return f"1000.{uuid.uuid4().int % 10**9}"


def gone(token, within=2.0):
    deadline = time.monotonic() + within
    while leftovers.with_argument(token):
        assert time.monotonic() < deadline, f"{token} lives"
        time.sleep(0.01)


@attack("39", "C50")
@pytest.mark.parametrize(
    "script",
    [
        "sleep {0} & echo hi",
        "setsid -f sleep {0}; echo hi",
        "(sleep {0} & ) ; echo hi",
        "nohup sleep {0} >/dev/null 2>&1 & echo hi",
        "trap '' HUP TERM; sleep {0} & disown -a 2>/dev/null; echo hi",
        "sleep {0} | sleep {0} & echo hi",
        "for i in 1 2 3 4 5; do sleep {0} 3>&1 4>&2 & done; echo hi",
        "mkfifo f; sleep {0} <f & echo hi",
        "sleep {0} & kill -STOP $!; echo hi",
    ],
)
def test_grandchild_that_holds_the_pipes(box, script):
    """The reply comes when the main process ends, not when its children do; and they do not live on."""
    boxes, token = box(), word()
    begin = time.monotonic()
    result = boxes.run("bash", "-c", script.format(token))
    assert (result["stdout"], result["exitCode"], "fault" in result) == ("hi\n", 0, False), result
    assert time.monotonic() - begin < 5
    gone(token)


@attack("39", "40")
def test_grandchild_that_floods_after_the_end(box):
    """Its bytes are not waited for, and it is dead when the reply is there."""
    result = box().run(
        "bash",
        "-c",
        "(trap '' PIPE; while :; do echo flood; done) & sleep 0.05; echo end >&2; exit 4",
        maxOutputBytes=1 << 16,
    )
    assert (result["exitCode"], result["stderr"], "fault" in result) == (4, "end\n", False)


@attack("C40", "C45")
@pytest.mark.parametrize("deadline", [300, 1000])
@pytest.mark.parametrize(
    "script",
    [
        "trap '' TERM INT HUP; while :; do :; done",
        "kill -STOP $$",
        "sleep 1000",
        "exec yes >/dev/null",
        "wait",
        "exec 0<&- 1>&- 2>&-; sleep 1000",
    ],
)
def test_deadline_is_kept_whatever_the_code_does(box, script, deadline):
    boxes = box()
    token = word()
    result = boxes.run("bash", "-c", f"echo kept; sleep {token} & {script}", timeoutMs=deadline)
    fault(result, "timeout")
    assert (result["stdout"], result["exitCode"], result["signal"]) == ("kept\n", 137, "KILL")
    assert deadline <= result["durationMs"] < deadline + 1000
    gone(token)


@attack("C40")
def test_heart_of_a_killed_call_stands_still(box):
    boxes = box()
    fault(
        boxes.sh(
            "(while :; do echo x >>heart; done) & setsid sh -c 'while :; do echo x >>heart; done' & while :; do :; done",
            timeoutMs=500,
        ),
        "timeout",
    )
    size = os.path.getsize(boxes.path("heart"))
    time.sleep(0.3)
    assert size > 0 and os.path.getsize(boxes.path("heart")) == size


@attack("C41", "C42")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("victim", ["sidecar", "launcher"])
def test_nothing_survives_its_keeper(sidecar, workspace, way, victim):
    """Busy, stopped, detached and floods: all dead within a second of a SIGKILL above them."""
    client = sidecar(expect_exit=None)
    box, token = Boxes(client, way, workspace, {}), word()
    for script in (
        f"sleep {token}",
        f"trap '' TERM; sleep {token} & while :; do :; done",
        f"setsid -f sleep {token}; kill -STOP $$",
        f"sleep {token} & yes",
    ):
        client.send("run/argv", {**box.where, "argv": ["bash", "-c", script], "maxOutputBytes": 1 << 16})
    deadline = time.monotonic() + 30
    while len([p for p in leftovers.with_argument(token)]) < 4:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    below = leftovers.descendants(client.pid)
    pid = (
        client.pid
        if victim == "sidecar"
        else leftovers.children(client.pid)[0]
    )
    below = {p: s for p, s in below.items() if victim == "sidecar" or p != client.pid}
    os.kill(pid, 9)
    assert leftovers.still_there(below, within=1.0) == []
    gone(token, within=1.0)
    client.close()
    following = sidecar()  # sweeps what a killed one could not remove
    plain(following.run("echo", "again"), "again\n")


@attack("71")
def test_cancel_at_the_moment_of_the_end(box):
    """Every request is answered once, and the next call is as good as ever."""
    boxes = box()
    answers = {"result": 0, "cancelled": 0, "fault": 0}
    for i in range(ROUNDS):
        future = boxes.client.send("run/argv", {**boxes.where, "argv": ["true"], "trackFiles": False})
        time.sleep((i % 20) * 0.0005)
        boxes.client.cancel(future)
        reply = future.wait(30)
        kind = "cancelled" if "error" in reply else "fault" if "fault" in reply["result"] else "result"
        answers[kind] += 1
        if kind == "cancelled":
            assert reply["error"]["data"]["reason"] == "cancelled"
        elif kind == "fault":
            assert reply["result"]["fault"]["type"] == "cancelled"
        assert future.replies == 1
    print(answers)
    plain(boxes.run("echo", "next"), "next\n")


@attack("71")
def test_bystanders_are_not_killed_in_place_of_others(box):
    """Thousands of pids come and go under signals and cancels; a process of each session and one of the host stay alive."""
    boxes, token = box(), word()
    host = subprocess.Popen(["sleep", "1000"])
    watchers = [boxes.start("sleep", token, timeoutMs=600_000) for _ in range(2)]
    for i in range(ROUNDS):
        future = boxes.client.send(
            "run/argv",
            {
                **boxes.where,
                "runId": f"k{i}",
                "argv": ["sh", "-c", "for i in 1 2 3 4 5; do true & done; wait"],
                "trackFiles": False,
            },
        )
        boxes.client.send("run/signal", {"runId": f"k{i}", "signal": "KILL"}).wait(30)
        boxes.client.cancel(future) if i % 2 else None
        future.wait(30)
        boxes.client.send("run/signal", {"runId": f"k{i}", "signal": "KILL"}).wait(30)
    assert host.poll() is None and len(leftovers.with_argument(token)) == 2
    host.kill()
    host.wait()
    for future in watchers:
        boxes.client.cancel(future)
        assert future.result(30)["fault"]["type"] == "cancelled"


@attack("72")
def test_no_process_of_the_sidecar_has_threads(box):
    """A user namespace cannot be made in a threaded process (unshare(2)), and a fork of one is a trap."""
    boxes, token = box(), word()
    futures = [boxes.start("sleep", token) for _ in range(5)]
    inside = set(leftovers.with_argument(token))
    for pid in set(leftovers.descendants(boxes.client.pid)) - inside:
        with open(f"/proc/{pid}/status", encoding="utf-8") as file:
            assert "Threads:\t1\n" in file.read(), leftovers.describe(pid)
    for future in futures:
        boxes.client.cancel(future)
        future.wait(30)


RESIDUE = """
import ctypes, os, socket
c = ctypes.CDLL(None, use_errno=True); rt = ctypes.CDLL('librt.so.1', use_errno=True)
for place in ('/tmp', '/dev/shm', os.environ['HOME'], '/var/tmp', '/run/code'):
    open(place + '/residue', 'w').write('x')
c.shmget(0x4b45524e, 4096, 0o1666); c.semget(0x4b45524e, 1, 0o1666); c.msgget(0x4b45524e, 0o1666)
print(rt.mq_open(b'/residue', os.O_CREAT | os.O_RDWR, 0o666, None) >= 0)
s = socket.socket(socket.AF_UNIX); s.bind(chr(0) + 'residue'); s.listen()
t = socket.create_server(('127.0.0.1', 4712))
print(os.umask(0) >= 0, flush=True)
__import__('time').sleep(WAIT)
"""
LOOK = """
import ctypes, os, socket
c = ctypes.CDLL(None, use_errno=True); rt = ctypes.CDLL('librt.so.1', use_errno=True)
for place in ('/tmp', '/dev/shm', os.environ['HOME'], '/var/tmp', '/run/code'):
    if os.listdir(place): print(place, os.listdir(place))
for f in (lambda: c.shmget(0x4b45524e, 0, 0), lambda: c.semget(0x4b45524e, 0, 0), lambda: c.msgget(0x4b45524e, 0), lambda: rt.mq_open(b'/residue', 0)):
    if f() >= 0: print('found')
for f in (lambda: socket.socket(socket.AF_UNIX).connect(chr(0) + 'residue'), lambda: socket.create_connection(('127.0.0.1', 4712), 2)):
    try: f(); print('reached')
    except OSError: pass
print([p for p in os.listdir('/proc') if p.isdigit() and int(p) > 2], open('/proc/sysvipc/shm').read().count('\\n'))
"""


@attack("69")
@pytest.mark.parametrize("when", ["after", "beside"])
@pytest.mark.parametrize("whose", ["same session", "another session"])
def test_no_residue_of_another_box(box, client, when, whose):
    """Files of memory, System V and POSIX objects, sockets, processes: neither of one that was before nor of one that is beside."""
    boxes = box()
    future = boxes.start("/usr/bin/python3", "-c", RESIDUE.replace("WAIT", "100" if when == "beside" else "0"))
    boxes.client.wait_for(lambda: boxes.client.output_events(future) or future.done(), "the first box", 30)
    if when == "after":
        assert future.result(30)["exitCode"] == 0
    look = boxes.python if whose == "same session" else lambda code: client.run("/usr/bin/python3", "-c", code)
    plain(look(LOOK), "[] 1\n")
    if when == "beside":
        boxes.client.cancel(future)
        future.wait(30)


@attack("D60")
def test_nothing_of_a_call_is_in_the_next_one(box):
    """Environment, limits, affinity, umask, directory, ids of namespaces: each call has its own, also in the same session."""
    show = "env | grep -c EVIL; umask; pwd; ulimit -n; ulimit -s; nice; cat /proc/self/oom_score_adj; readlink /proc/self/ns/pid /proc/self/ns/mnt /proc/self/ns/ipc /proc/self/ns/net"
    boxes = box()
    first = boxes.sh(show)["stdout"].split("\n")
    boxes.sh(
        f"umask 0; ulimit -n 10; nice -n 10 true; renice 10 $$ >/dev/null; echo 500 >/proc/self/oom_score_adj; cd /tmp; {show}",
        env={"EVIL": "x"},
        memoryMb=64,
        cwd="/tmp",
    )
    assert boxes.sh(show)["stdout"].split("\n")[:7] == first[:7]


@attack("43")
def test_warm_interpreter_cannot_be_poisoned(box):
    """What one call does to its interpreter, the runner and everything that it can reach is not in the next one."""
    boxes = box()
    poison = """
import atexit, builtins, gc, os, signal, sys, threading
runner = sys.modules["_kern_runner"]
builtins.print = builtins.open = builtins.compile = lambda *a, **k: None
sys.modules["json"] = sys.modules["os"] = None
sys.settrace(lambda *a: None); sys.displayhook = lambda v: None
for name in list(vars(runner)):
    if name not in ("channel", "plain") and not name.startswith("__"):
        setattr(runner, name, None)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for path in ("/run/code/main.py", "/run/kern/python/runner.py", "/proc/1/mem"):
    try:
        fd = os.open(path, os.O_WRONLY); os.write(fd, b"poison")
    except OSError:
        pass
threading.Thread(target=lambda: signal.pause(), daemon=True).start()
if os.fork() == 0:
    signal.pause()
"""
    clean = "import json, os, sys, threading\nprint(len(threading.enumerate()), sys.gettrace(), os.getpid() <= 3)\njson.dumps([1])"
    for _ in range(3):
        boxes.code(poison)
        result = boxes.code(clean)
        plain(result, "1 None True\n")
        assert result["results"][0]["data"]["text/plain"] == "'[1]'"


@attack("D60", "C42")
def test_many_sessions_come_and_go(client):
    """Descriptors and processes of the sidecar are what they were, and no directory is left."""

    def come_and_go(rounds):
        for _ in range(rounds):
            session = client.open()
            client.run("true", sessionId=session)
            client.call("session/close", {"sessionId": session})

    come_and_go(5)
    fds, processes = leftovers.fd_count(client.pid), len(leftovers.descendants(client.pid))
    come_and_go(ROUNDS)
    deadline = time.monotonic() + 5
    while len(leftovers.descendants(client.pid)) > processes and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(leftovers.descendants(client.pid)) <= processes
    assert leftovers.fd_count(client.pid) <= fds + 48  # three pooled cgroup leaves, not one for each
    assert MARK not in "".join(os.listdir("/tmp"))

"""When the host or the sidecar is killed, its boxes go within a second, and the next start finds nothing."""

import json
import os
import subprocess
import sys
import textwrap
import time
import uuid

import pytest

import leftovers
from kern_client import ConnectionLost

BOXES = 50


def token():
    return f"1000.{uuid.uuid4().int % 10**9}"


def wait_for_boxes(word, count, timeout=60):
    deadline = time.monotonic() + timeout
    while len(leftovers.with_argument(word)) < count:
        assert time.monotonic() < deadline, f"{len(leftovers.with_argument(word))} of {count} boxes"
        time.sleep(0.02)


def gone_within_a_second(word, processes):
    begin = time.monotonic()
    left = leftovers.still_there(processes, within=1.0)
    assert left == []
    while leftovers.with_argument(word):
        assert time.monotonic() - begin < 1.0
        time.sleep(0.01)


def test_sidecar_killed_with_fifty_boxes(sidecar, owner, place):
    word, groups = token(), leftovers.cgroups(owner.pw_uid)
    client = sidecar(expect_exit=None)
    sessions = [client.open(), client.open()]
    for i in range(BOXES):
        client.send("run/argv", {"argv": ["sleep", word], "sessionId": sessions[i % 2]})
    wait_for_boxes(word, BOXES)
    below = leftovers.descendants(client.pid)
    assert len(below) > BOXES
    client.kill()
    gone_within_a_second(word, below)
    client.process.wait(10)
    # the next start sweeps what the dead one could not remove
    following = sidecar()
    following.run("true")
    assert following.close() == 0
    assert leftovers.files_left(os.path.join(place, "tmp")) == []
    assert leftovers.new_cgroups(groups, owner.pw_uid) == []


def test_launcher_killed(sidecar):
    """The helper between sidecar and boxes dies: no box lives on, nobody waits for an answer, and nothing stays."""
    word = token()
    client = sidecar(expect_exit=None)
    session = client.open()
    futures = [client.send("run/argv", {"argv": ["sleep", word], "sessionId": session}) for _ in range(5)]
    wait_for_boxes(word, 5)
    children = leftovers.children(client.pid)
    assert len(children) == 1
    below = leftovers.descendants(children[0])
    os.kill(children[0], 9)
    gone_within_a_second(word, below)
    for future in futures:
        try:
            reply = future.wait(30)
        except ConnectionLost:  # leaving is an answer, too
            assert client.process.wait(10) != 0 and "launcher" in client.stderr_text()
        else:
            assert "error" in reply or reply["result"]["fault"]["type"] == "killed"
    client.close()
    assert sidecar().run("true")["exitCode"] == 0  # and sweeps


HOST = textwrap.dedent(
    """
    import json, os, subprocess, sys
    program, word, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    named, holder = sys.argv[4] == "named", sys.argv[5] == "held"
    sidecar = subprocess.Popen([program, "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    if holder:   # somebody else keeps the pipe open: EOF never comes
        subprocess.Popen(["sleep", "60"], stdin=subprocess.DEVNULL, stdout=sidecar.stdin, stderr=subprocess.DEVNULL)
    hello = {"protocolVersion": 1, "client": {"name": "h", "version": "1"}}
    if named:
        hello["processId"] = os.getpid()
    lines = [{"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}]
    run = {"jsonrpc": "2.0", "method": "run/argv", "params": {"argv": ["sleep", word]}}
    lines += [{"id": i + 1, **run} for i in range(count)]
    for line in lines:
        sidecar.stdin.write(json.dumps(line).encode() + b"\\n")
    sidecar.stdin.flush()
    print(sidecar.pid, flush=True)
    for line in sidecar.stdout:
        pass
"""
)


@pytest.mark.parametrize("named, held", [("unnamed", "free"), ("named", "free"), ("named", "held")])
def test_host_killed(program, environment, as_user, owner, place, named, held):
    word, groups = token(), leftovers.cgroups(owner.pw_uid)
    who = dict(user=owner.pw_uid, group=owner.pw_gid, extra_groups=[]) if os.geteuid() == 0 else {}
    host = subprocess.Popen(
        [
            sys.executable if os.access(sys.executable, os.X_OK) and as_user == "root" else "/usr/bin/python3",
            "-c",
            HOST,
            program,
            word,
            "10",
            named,
            held,
        ],
        env=environment,
        cwd="/",
        stdout=subprocess.PIPE,
        text=True,
        **who,
    )
    try:
        pid = int(host.stdout.readline())
        wait_for_boxes(word, 10)
        below = leftovers.descendants(pid)
        host.kill()
        host.wait()
        gone_within_a_second(word, below)
        assert leftovers.files_left(os.path.join(place, "tmp")) == []
        assert leftovers.new_cgroups(groups, owner.pw_uid) == []
    finally:
        host.kill()
        host.wait()
        host.stdout.close()
        for holder in [
            p
            for p in leftovers.with_argument("60")
            if leftovers.read_stat(p) and leftovers.read_stat(p)[1] == os.getpid()
        ]:
            os.kill(holder, 9)
            os.waitpid(holder, 0)


def test_host_that_is_already_dead(sidecar):
    finished = subprocess.Popen(["true"])
    finished.wait()
    client = sidecar(initialize=False, validator=None)
    client.send(
        "initialize", {"protocolVersion": 1, "client": {"name": "t", "version": "1"}, "processId": finished.pid}
    )
    assert client.process.wait(5) == 0


def test_stdout_closed_by_the_host(program, environment, as_user, owner):
    """The reader is gone, the writer is not: no SIGPIPE death, no spinning, a clean end at EOF at the latest."""
    who = dict(user=owner.pw_uid, group=owner.pw_gid, extra_groups=[]) if os.geteuid() == 0 else {}
    process = subprocess.Popen(
        [program, "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, cwd="/", **who
    )
    process.stdout.close()
    request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode() + b"\n"
    try:
        for _ in range(20):
            process.stdin.write(request)
            process.stdin.flush()
            time.sleep(0.01)
        process.stdin.close()
    except BrokenPipeError:
        pass
    assert process.wait(5) == 0


@pytest.mark.parametrize("name", ["TERM", "INT", "HUP"])
def test_signal_to_the_sidecar_is_an_orderly_end(sidecar, name):
    import signal

    word = token()
    client = sidecar(expect_exit=None)
    client.send("run/argv", {"argv": ["sleep", word]})
    wait_for_boxes(word, 1)
    below = leftovers.descendants(client.pid)
    client.kill(getattr(signal, f"SIG{name}"))
    client.process.wait(5)
    gone_within_a_second(word, below)

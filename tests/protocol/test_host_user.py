"""Things that the kernel counts for a user of the host: a box may not use them up for everybody else."""

import ctypes
import os
import subprocess
import sys

from expect import plain

INOTIFY = "import ctypes, time\nlibc = ctypes.CDLL(None, use_errno=True)\nn = 0\nwhile n < 1000 and libc.inotify_init() >= 0: n += 1\n"


def own_inotify(owner):
    """How many instances that user can still make, 10 at most."""
    code = "import ctypes\nl = ctypes.CDLL(None)\nprint(sum(l.inotify_init() >= 0 for _ in range(10)))"
    argv = [sys.executable, "-c", code]
    if os.geteuid() == 0:
        argv = ["setpriv", "--reuid", str(owner.pw_uid), "--regid", str(owner.pw_gid), "--clear-groups", *argv]
    return int(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)


def test_inotify_instances(client, owner):
    session = client.open()
    futures = []
    for run in range(4):  # of one session together
        code = INOTIFY + "print(n, ctypes.get_errno(), flush=True)\ntime.sleep(100)"
        params = {"code": code, "sessionId": session, "runId": f"r{run}", "stream": "live"}
        futures.append(client.send("run/code", params))
        client.wait_for(lambda: client.output_events(futures[-1]), "the count", 60)
    text = [client.output_events(future)[0]["text"].split() for future in futures]
    assert sum(int(count) for count, _ in text) <= 16
    assert {number for _, number in text} == {"24"}  # EMFILE
    assert own_inotify(owner) == 10
    client.call("session/close", {"sessionId": session})


def test_limits_that_are_counted_for_the_user(client):
    code = (
        "import resource as r\nfor name in ('MSGQUEUE', 'SIGPENDING', 'MEMLOCK'):\n"
        "  print(r.getrlimit(getattr(r, 'RLIMIT_' + name))[1])"
    )
    given = [int(line) for line in client.code(code)["stdout"].split()]
    own = [ctypes.c_long(value).value for value in (65536, 1024, 1 << 20)]
    assert all(0 <= a <= b for a, b in zip(given, own))


def test_no_user_namespace_even_without_the_filter(client):
    plain(client.run("cat", "/proc/sys/user/max_user_namespaces"), "0\n")


def test_limits_cannot_be_raised(client):
    for name in ("max_user_namespaces", "max_inotify_instances"):
        result = client.run("sh", "-c", f"echo 100 > /proc/sys/user/{name}")
        assert "ermission denied" in result["stderr"], result

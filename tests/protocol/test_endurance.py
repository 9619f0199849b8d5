"""10,000 calls in a row, and a third as root: nothing grows. Boxes are made for their call here; those that are made ahead come and go by demand, and
test_spares.py counts them."""

import os
import time

import pytest

import leftovers
from expect import plain

CALLS = 10_000
WARM = 1_000

pytestmark = pytest.mark.endurance


def count(client, place):
    """What may not grow. The launcher and all below it count too; the last boxes are given time to go."""
    processes = leftovers.descendants(client.pid)
    facts = {
        "processes": len(processes),
        "mounts of the host": leftovers.mount_count(os.getpid(), place),
        "mounts": leftovers.mount_count(client.pid),
        "fds": leftovers.fd_count(client.pid),
        "files": sum(len(names) + len(files) for _, names, files in os.walk(os.path.join(place, "tmp"))),
    }
    for pid in processes:
        try:
            facts["fds below"] = facts.get("fds below", 0) + leftovers.fd_count(pid)
        except OSError:  # an ordinary user may not look into a process that is not dumpable
            pass
    return facts


def settled(client, place):
    """The counts once they stand still (clean-up goes on behind the answers)."""
    last, deadline = count(client, place), time.monotonic() + 10
    while time.monotonic() < deadline:
        time.sleep(0.2)
        now = count(client, place)
        if now == last:
            return now
        last = now
    return last


def exceeding(after, before):
    return {what: (before.get(what), count) for what, count in after.items() if count > before.get(what, 0)}


def cgroups_of(uid):
    """All of the user's sidecars: those that run beside this one have fewer than a thousand calls."""
    tops = leftovers.cgroups(uid)
    return len(tops) + sum(len(names) for top in tops for _, names, _ in os.walk(top))


def call(client, session, i):
    if i % 10 == 0:
        result = client.run("sh", "-c", f"echo {i}; sleep 100 &", session={})
    elif i % 10 == 5:
        result = client.run("sh", "-c", f"echo {i}; echo {i} > f", sessionId=session)
    else:
        plain(client.run("true", sessionId=session))
        return
    plain(result, f"{i}\n")


def test_ten_thousand_calls(sidecar, as_user, owner, place):
    client = sidecar(
        validator=None, threaded=False
    )  # the messages are checked by every other test; here it would be most of the time
    session = client.open(start="template")
    for i in range(WARM):
        call(client, session, i)
    # pools grow to the largest burst and stay: let them, before anything is counted
    for future in client.send_all([("run/argv", {"argv": ["true"], "sessionId": session})] * 100):
        plain(future.result())
    before, groups, memory = settled(client, place), cgroups_of(owner.pw_uid), leftovers.rss_kib(client.pid)
    for i in range(WARM, CALLS if as_user != "root" else CALLS // 3):
        call(client, session, i)
    after = settled(client, place)
    assert exceeding(after, before) == {}
    client.wait_for(lambda: cgroups_of(owner.pw_uid) <= groups, "the last cgroups to be clean and gone", 30)  # that goes on behind the answers
    assert leftovers.rss_kib(client.pid) <= memory + 1024


def test_failing_calls_leave_nothing_either(sidecar, place):
    client = sidecar(validator=None)
    session = client.open(start="template")

    def round_of_failures():
        client.fail("run/argv", {"argv": ["true"], "sessionId": session, "nope": 1})
        client.fail("session/open", {"image": "dir:/nonexistent"})
        client.run("/nonexistent", sessionId=session)
        client.run("sleep", "1000", sessionId=session, timeoutMs=5)
        future = client.send("run/argv", {"argv": ["sleep", "1000"], "sessionId": session})
        client.cancel(future)
        future.wait()
        client.run("unshare", "-Ur", "true", sessionId=session)
        client.call("session/close", {"sessionId": client.open()})

    for _ in range(60):  # enough to fill what is kept on purpose: the output of the last runs
        round_of_failures()
    before, memory = settled(client, place), leftovers.rss_kib(client.pid)
    for _ in range(60):
        round_of_failures()
    assert exceeding(settled(client, place), before) == {}
    assert leftovers.rss_kib(client.pid) <= memory + 1024

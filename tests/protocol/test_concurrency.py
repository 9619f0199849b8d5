"""Many at once: all answered, each its own, nothing waits that must not."""

import time

import pytest

from expect import plain, refused


@pytest.mark.parametrize("throw_away", [False, True])
def test_hundred_at_once(client, throw_away):
    more = {} if throw_away else {"sessionId": client.open()}
    futures = client.send_all(
        [("run/argv", {"argv": ["sh", "-c", f"sleep 0.2; echo {i}; exit {i}"], **more}) for i in range(100)]
    )
    for i, future in enumerate(futures):
        plain(future.result(), f"{i}\n", code=i)
    assert [f.replies for f in futures] == [1] * 100


def test_hundred_python_calls_at_once(client):
    session = client.open()
    futures = client.send_all(
        [("run/code", {"code": f"print({i})", "sessionId": session, "timeoutMs": 60000}) for i in range(100)]
    )
    assert [f.result()["stdout"] for f in futures] == [f"{i}\n" for i in range(100)]


def test_runs_of_a_session_are_parallel(client):
    """Two runs that wait for each other through the workspace."""
    session = client.open()
    script = "touch {me}; while ! [ -e {other} ]; do sleep 0.01; done; echo met"
    pair = [
        client.send("run/argv", {"argv": ["sh", "-c", script.format(me=a, other=b)], "sessionId": session})
        for a, b in ("xy", "yx")
    ]
    assert [f.result()["stdout"] for f in pair] == ["met\n", "met\n"]


def test_queue_and_overload(sidecar):
    client = sidecar(initialize={"limits": {"runs": 1, "queued": 2}})
    session = client.open()
    first = client.start("cat", sessionId=session, interactive=True)
    queued = [client.send("run/argv", {"argv": ["echo", str(i)], "sessionId": session}) for i in range(2)]
    refused(client.send("run/argv", {"argv": ["true"], "sessionId": session}).error(30), "overloaded")
    assert client.call("ping") == {} and client.call("stats/get") and not any(f.done() for f in queued)
    client.call("run/stdin", {"runId": first.run_id, "text": "", "eof": True})
    plain(first.result())
    assert [f.result()["stdout"] for f in queued] == ["0\n", "1\n"]


def test_limit_of_runs_holds(sidecar):
    client = sidecar(initialize={"limits": {"runs": 3}})
    session = client.call("session/open", {})
    script = "touch running.$1; ls -d running.* | wc -l; sleep 0.1; rm running.$1"
    futures = [
        client.send("run/argv", {"argv": ["sh", "-c", script, "sh", str(i)], "sessionId": session["sessionId"]})
        for i in range(12)
    ]
    seen = [int(f.result()["stdout"]) for f in futures]
    assert max(seen) <= 3 and max(seen) >= 2


@pytest.mark.any_user
def test_control_never_waits(client):
    session = client.open()
    futures = client.send_all(
        [
            (
                "run/argv",
                {"argv": ["sh", "-c", "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done"], "sessionId": session},
            )
            for _ in range(30)
        ]
    )
    waits = []
    while not all(f.done() for f in futures):
        begin = time.monotonic()
        client.call("ping")
        waits.append(time.monotonic() - begin)
        time.sleep(0.02)
    assert sorted(waits)[len(waits) // 2] < 0.5 and max(waits) < 5
    assert all(f.result()["exitCode"] == 0 for f in futures)


def test_sessions_at_once(client):
    opened = [f.result()["sessionId"] for f in client.send_all([("session/open", {}) for _ in range(16)])]
    assert len(set(opened)) == 16
    runs = client.send_all(
        [("run/argv", {"argv": ["sh", "-c", f"echo {s} > me; cat me"], "sessionId": s}) for s in opened]
    )
    assert [f.result()["stdout"] for f in runs] == [f"{s}\n" for s in opened]
    for future in client.send_all([("session/close", {"sessionId": s}) for s in opened]):
        assert future.result() == {}

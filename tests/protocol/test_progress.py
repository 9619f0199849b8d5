"""$/progress: for a request with a progressToken, at most ten times a second, never falling, the last one before the reply."""

import os
import time

import pytest

pytestmark = pytest.mark.any_user


def told(client, token):
    return [n["params"] for n in client.notifications if n["method"] == "$/progress" and n["params"]["token"] == token]


@pytest.fixture
def session(client, make_dir):
    """With enough to pack that it takes more than a second."""
    session = client.open(workspace=make_dir("ws"))
    client.run("sh", "-c", "for i in 1 2 3 4 5 6 7 8; do head -c 12000000 /dev/urandom >f$i; done", sessionId=session)
    return session


def check(events, times, phases, total):
    assert len(events) >= 2
    assert [e["phase"] for e in events] == sorted((e["phase"] for e in events), key=phases.index)
    done = [e["done"] for e in events]
    assert done == sorted(done) and done[-1] == total
    assert all(e["total"] == total for e in events)
    for i in range(len(times)):
        assert len([t for t in times if times[i] <= t < times[i] + 0.95]) <= 10


def test_of_an_archive(client, session, place):
    times, events, token = [], [], 7
    real = client._notification

    def note(message):
        if message["method"] == "$/progress":
            times.append(time.monotonic())
            events.append(message["params"])
        real(message)

    client._notification = note
    result = client.call("session/snapshot", {"sessionId": session, "path": place + "/a", "progressToken": token})
    assert events == told(client, token)
    check(events, times, ["pack"], 8 * 12000000)
    times.clear()
    events.clear()
    client.notifications.clear()
    client.call("session/restore", {"sessionId": session, "path": place + "/a", "progressToken": token})
    assert events == told(client, token)
    check(events, times, ["verify", "extract"], 2 * result["bytes"])


@pytest.mark.parametrize("token", [7, "seven", "ü\n"])
def test_the_last_comes_before_the_reply(client, make_dir, token):
    session = client.open(workspace=make_dir("ws"))
    order = []
    notification, reply = client._notification, client._reply
    client._notification = lambda message: (order.append(message["method"]), notification(message))
    client._reply = lambda message: (order.append("reply"), reply(message))
    client.call("session/snapshot", {"sessionId": session, "progressToken": token})
    assert order[-1] == "reply" and set(order[:-1]) == {"$/progress"}
    assert len(told(client, token)) == len(order) - 1


def test_only_when_asked(client, session, place):
    client.call("session/snapshot", {"sessionId": session, "path": place + "/a"})
    assert [n for n in client.notifications if n["method"] == "$/progress"] == []
    assert client.call("ping", {"progressToken": "x"}) == {}
    assert told(client, "x") == []


def test_of_a_request_that_fails(client, place):
    session = client.open()
    with open(place + "/junk.tar", "wb") as file:
        file.write(os.urandom(1000))
    os.chmod(place + "/junk.tar", 0o644)
    client.fail("session/restore", {"sessionId": session, "path": place + "/junk.tar", "progressToken": 1})
    assert all(e["done"] <= e["total"] for e in told(client, 1))

"""$/cancel: exactly one reply, at once, with what there was."""

import json
import os
import time
import uuid

import pytest

import leftovers
from expect import fault, plain, refused


def test_running_call(client):
    future = client.start("sh", "-c", "echo before; trap '' TERM; while :; do :; done")
    client.wait_for(lambda: client.output_events(future), "output", 30)
    client.cancel(future)
    result = future.result(10)
    fault(result, "cancelled")
    assert (result["stdout"], result["exitCode"], result["signal"]) == ("before\n", 137, "KILL")
    plain(client.run("echo", "next"), "next\n")


def test_twice_is_one_reply(client):
    future = client.start("sleep", "1000")
    client.cancel(future)
    client.cancel(future)
    fault(future.result(10), "cancelled")
    client.cancel(future)
    assert client.call("ping") == {}
    assert future.replies == 1


def test_unknown_and_finished_ids_are_ignored(client):
    done = client.send("run/argv", {"argv": ["true"]})
    done.result()
    for request_id in (done.id, 99999, "no such id", -1):
        client.notify("$/cancel", {"id": request_id})
    assert client.call("ping") == {}
    assert done.replies == 1


def test_queued_call(sidecar):
    client = sidecar(initialize={"limits": {"runs": 1, "queued": 5}})
    session = client.open()
    first = client.start("sleep", "1000", sessionId=session)
    queued = client.send("run/argv", {"argv": ["touch", "ran"], "sessionId": session})
    client.cancel(queued)
    refused(queued.error(10), "cancelled")
    client.cancel(first)
    fault(first.result(10), "cancelled")
    assert client.run("ls", "-A", sessionId=session)["stdout"] == ""


def test_request_and_cancel_in_one_write(client):
    """Wherever the cancel meets the call, there is one answer, and it says cancelled."""
    for _ in range(50):
        line, future = client._prepare("run/argv", {"argv": ["sleep", "1000"]}, None, False)
        client.write(line + b'\n{"jsonrpc":"2.0","method":"$/cancel","params":{"id":%d}}\n' % future.id)
        reply = future.wait(30)
        if "error" in reply:
            assert reply["error"]["data"]["reason"] == "cancelled"
        else:
            fault(reply["result"], "cancelled")
    assert client.call("ping") == {}


def test_cancel_at_the_moment_of_the_end(client):
    futures = []
    for _ in range(200):
        future = client.send("run/argv", {"argv": ["true"]})
        client.cancel(future) if len(futures) % 2 else None
        future.wait(30)
        client.cancel(future)
        futures.append(future)
    assert client.call("ping") == {}
    assert [f.replies for f in futures] == [1] * 200


def test_string_id(client):
    future = client.send("run/argv", {"argv": ["sleep", "1000"], "runId": "r", "stream": "live"}, request_id="a\"b")
    client.wait_for(lambda: future.events, "start", 30)
    client.cancel(future)
    fault(future.result(10), "cancelled")


def test_children_die_too(client):
    token = f"1000.{uuid.uuid4().int % 10**9}"
    future = client.start("sh", "-c", f"setsid sleep {token} & sleep {token} & wait")
    deadline = time.monotonic() + 10
    while len(leftovers.with_argument(token)) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(leftovers.with_argument(token)) >= 2
    client.cancel(future)
    fault(future.result(10), "cancelled")
    deadline = time.monotonic() + 1
    while leftovers.with_argument(token) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert leftovers.with_argument(token) == []


@pytest.mark.parametrize("stream", ["live", "lossless"])
def test_client_that_never_reads_cannot_stop_a_cancel(sidecar, stream):
    """Nothing is read while a flood waits to be sent; the cancelled run is dead all the same, as the host can see."""
    client = sidecar()
    session = client.call("session/open", {})
    flood = client.start(
        "yes", stream=stream, timeoutMs=600_000, maxOutputBytes=1 << 20, sessionId=session["sessionId"]
    )
    heart = client.start("sh", "-c", "while :; do echo x >> heart; sleep 0.02; done", sessionId=session["sessionId"])
    path = os.path.join(session["workspace"], "heart")
    wait_until(lambda: os.path.exists(path) and os.path.getsize(path) > 0)
    client.pause_reading()
    time.sleep(1)
    client.cancel(heart)
    wait_until(lambda: not grows(path))
    client.cancel(flood)
    client.resume_reading()
    fault(heart.result(30), "cancelled")
    fault(flood.result(30), "cancelled")


def grows(path):
    size = os.path.getsize(path)
    time.sleep(0.3)
    return os.path.getsize(path) > size


def wait_until(condition, timeout=20):
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_cancel_of_session_open(client):
    """Either it was open already, or nothing of it can be seen."""
    for i in range(20):
        line, future = client._prepare("session/open", {"sessionId": f"s{i}"}, None, False)
        client.write(
            line
            + b'\n'
            + json.dumps({"jsonrpc": "2.0", "method": "$/cancel", "params": {"id": future.id}}).encode()
            + b"\n"
        )
        reply = future.wait(30)
        listed = {s["sessionId"] for s in client.call("session/list")["sessions"]}
        assert (f"s{i}" in listed) is ("result" in reply)

"""run/display: rich results while the code runs, in their place between the output."""

import json
import os

import pytest


def events(client, future):
    """All notifications of the run, in order."""
    run_id = future.result()["runId"]
    return [n for n in client.notifications if n["params"].get("runId") == run_id]


def shown(client, future):
    """[("out", text) or (op, plain text)], neighbours of the same kind joined."""
    found = []
    for event in events(client, future):
        params = event["params"]
        if event["method"] == "run/output":
            if found and found[-1][0] == "out":
                found[-1] = ("out", found[-1][1] + params["text"])
            else:
                found.append(("out", params["text"]))
        elif event["method"] == "run/display":
            found.append((params["op"], params.get("data", {}).get("text/plain")))
    return found


CODE = "for i in range(3):\n    print('line', i)\n    display(i)\nhandle = display('x', display_id='h')\nhandle.update('y')\nprint('end')\n40 + 2"
RIGHT = [
    ("out", "line 0\n"),
    ("display", "0"),
    ("out", "line 1\n"),
    ("display", "1"),
    ("out", "line 2\n"),
    ("display", "2"),
    ("display", "'x'"),
    ("update", "'y'"),
    ("out", "end\n"),
    ("value", "42"),
]


@pytest.mark.parametrize("mode", ["live", "lossless"])
def test_order(client, mode):
    future = client.send("run/code", {"code": CODE, "stream": mode})
    assert shown(client, future) == RIGHT
    sequence = [e["params"]["seq"] for e in events(client, future) if e["method"] != "run/started"]
    assert sequence == sorted(set(sequence))
    assert [r["data"]["text/plain"] for r in future.result()["results"]] == ["0", "1", "2", "'y'", "42"]


def test_order_without_credit(client):
    """What is shown waits behind output that waits for credit, and output printed later behind what is shown."""
    code = "print('a' * 400_000)\ndisplay(1)\nprint('b' * 10)"
    future = client.send("run/code", {"code": code, "stream": "lossless", "runId": "slow"})
    client.wait_for(lambda: len(client.output_events(future)) > 3, "the first window")
    assert not [n for n in client.notifications if n["method"] == "run/display"]
    client.call("run/credit", {"runId": "slow", "bytes": 1 << 20})
    assert shown(client, future) == [("out", "a" * 400_000 + "\n"), ("display", "1"), ("out", "b" * 10 + "\n")]


def test_off_shows_nothing(client):
    future = client.send("run/code", {"code": CODE})
    assert shown(client, future) == []


def test_clear_and_metadata(client):
    code = (
        "display({'text/plain': 'p', 'text/html': '<b>'}, raw=True, metadata={'text/html': {'isolated': True}})\n"
        "display(2, clear=True)"
    )
    future = client.send("run/code", {"code": code, "stream": "live"})
    displays = [e["params"] for e in events(client, future) if e["method"] == "run/display"]
    assert displays[0]["data"] == {"text/plain": "p", "text/html": "<b>"}
    assert displays[0]["metadata"] == {"text/html": {"isolated": True}}
    assert (displays[1]["op"], displays[1]["wait"]) == ("clear", True)
    assert displays[2]["data"] == {"text/plain": "2"}


def test_large_ones_are_blobs(client):
    future = client.send("run/code", {"code": "display('x' * 300_000)", "stream": "live"})
    (display,) = [e["params"] for e in events(client, future) if e["method"] == "run/display"]
    assert client.text(display["data"]["text/plain"]) == b"'" + b"x" * 300_000 + b"'"
    (result,) = future.result()["results"]
    assert result["data"] == display["data"]  # the same blob


def test_a_slow_reader_loses_displays_not_results(client):
    session = client.call("session/open", {})
    client.pause_reading()
    code = "for i in range(900): display('y' * 3000)\nopen('shown', 'w').close()"
    future = client.send("run/code", {"code": code, "stream": "live", "sessionId": session["sessionId"]})
    client.wait_for(lambda: os.path.exists(session["workspace"] + "/shown"), "the code to have shown all", timeout=60)
    client.resume_reading()
    result = future.result()
    assert len(json.loads(client.text(result["results"]))) == 900
    shown_ones = [n for n in client.notifications if n["method"] == "run/display"]
    assert len(shown_ones) < 900


def test_in_a_kernel(client):
    kernel = client.call("kernel/open", {"sessionId": client.open()})["kernelId"]
    future = client.send("kernel/run", {"kernelId": kernel, "code": CODE, "stream": "live"})
    assert shown(client, future) == RIGHT

"""What a sidecar holds while nothing runs. Ten windows of an editor are ten sidecars."""

import time

import pytest

import leftovers
from test_kernels import ok

CAP_KIB = 8 * 1024
WINDOWS = 10


def idle_kib(client):
    """(the sidecar, with its helpers, interpreters in boxes apart)."""
    pids = leftovers.descendants(client.pid)
    interpreters = [pid for pid in pids if leftovers.is_interpreter(pid)]
    ours = [pid for pid in pids if pid not in interpreters]
    return leftovers.rss_kib(client.pid), sum(map(leftovers.share_kib, ours)), len(interpreters)


def test_what_was_made_ahead_goes_when_nobody_calls(sidecar, hooks_program):
    """Interpreters that were booted for calls, and the worker of the file methods. What is kept stays."""
    client = sidecar(program=hooks_program, env={"KERN_TEST_HASTE": "1"})
    session = client.open()
    before = len(leftovers.descendants(client.pid))
    seen = 0
    while not seen:  # they live for a tenth of a second
        assert client.code("1", sessionId=session)["exitCode"] == 0
        client.call("file/write", {"sessionId": session, "path": "kept", "content": "x"})
        end = time.monotonic() + 0.1
        while not seen and time.monotonic() < end:
            seen = client.call("stats/get")["boxes"]
    client.wait_for(lambda: len(leftovers.descendants(client.pid)) <= before, "the end of what was made ahead", 30)
    assert client.call("stats/get")["boxes"] == 0
    assert client.code("open('kept').read()", sessionId=session)["results"][0]["data"]["text/plain"] == "'x'"


@pytest.mark.endurance  # a sanitizer's memory is none of ours
def test_ten_sidecars_with_a_kernel_each_are_small(sidecar):
    """Each has run a cell and waits for the next. The interpreter in its box is the user's: it holds the state of the cells."""
    clients = [sidecar(validator=None) for _ in range(WINDOWS)]
    for client in clients:
        session = client.open()
        client.call("kernel/open", {"kernelId": "k", "sessionId": session, "language": "python"})
        result = client.call("kernel/run", {"kernelId": "k", "code": "x = 41\nx + 1"})
        ok(result)
        assert result["results"][0]["data"]["text/plain"] == "42"
    found = [idle_kib(client) for client in clients]
    assert [interpreters for _, _, interpreters in found] == [1] * WINDOWS  # nothing is made ahead for cells
    assert max(alone for alone, _, _ in found) < CAP_KIB, found
    assert max(whole for _, whole, _ in found) < CAP_KIB, found
    assert client.call("kernel/run", {"kernelId": "k", "code": "x"})["results"][0]["data"]["text/plain"] == "41"

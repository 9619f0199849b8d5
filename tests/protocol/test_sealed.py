"""The program runs from a sealed copy of its file, or makes no box."""

import json
import os
import subprocess

import pytest

from expect import fault


def exe(pid):
    return os.readlink(f"/proc/{pid}/exe")


def test_no_process_of_the_sidecar_runs_from_the_file(client, program):
    client.call("run/argv", {"argv": ["true"]})
    session = client.call("session/open", {})
    found = []
    pending = [client.pid]
    while pending:
        pid = pending.pop()
        try:
            with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
                pending += [int(word) for word in file.read().split()]
            found.append(exe(pid))
        except (FileNotFoundError, ProcessLookupError):
            assert pid != client.pid  # the call's box is on its way out
    assert len(found) >= 3 and session
    assert set(found) == {"/memfd:kern-sidecar (deleted)"}
    with open(f"/proc/{client.pid}/comm", encoding="ascii") as file:
        assert file.read() == "kern-sidecar\n"
    with open(f"/proc/{client.pid}/cmdline", "rb") as file:
        assert file.read().split(b"\0")[0].decode() == os.path.realpath(program)


@pytest.mark.parametrize("word", ["/proc/self/exe", "/proc/thread-self/exe"])
def test_the_copy_cannot_be_run(client, word):
    assert "Permission denied" in fault(client.call("run/argv", {"argv": [word]}), "exec_failed")["message"]


@pytest.mark.skipif(os.geteuid() != 0 or not os.path.exists("/proc/sys/vm/memfd_noexec"), reason="needs root and Linux 6.3")
def test_a_host_that_has_no_executable_memory_makes_no_box(program):
    """vm.memfd_noexec is a setting of the pid namespace."""
    lines = [
        {"method": "initialize", "params": {"protocolVersion": 1, "client": {"name": "t", "version": "1"}}},
        {"method": "run/argv", "params": {"argv": ["true"]}},
        {"method": "ping"},
        {"method": "shutdown"},
    ]
    text = "".join(json.dumps({"jsonrpc": "2.0", "id": i, **line}) + "\n" for i, line in enumerate(lines))
    command = ["unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", 'echo 2 >/proc/sys/vm/memfd_noexec; exec "$0" --stdio', program]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=False)
    replies = {reply.get("id"): reply for reply in map(json.loads, done.stdout.splitlines())}
    error = replies[1]["error"]
    assert error["data"]["reason"] == "host_unsupported", error
    assert "vm.memfd_noexec" in error["data"]["hint"] and "sealed copy" in error["message"]
    assert "result" in replies[2]

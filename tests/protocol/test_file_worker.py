"""Who does file operations, with which rights, and where a path of a request may lie (session/place.h, worker/jobs/confine.h)."""

import base64
import os
import signal

import pytest

from expect import refused


def stat(client, session, path, **more):
    return client.call("file/stat", {"sessionId": session["sessionId"], "path": path, **more})


def worker_of(client):
    """The kern-worker of the sidecar, by its pid."""
    for task in os.listdir(f"/proc/{client.process.pid}/task"):
        with open(f"/proc/{client.process.pid}/task/{task}/children") as children:
            for pid in children.read().split():
                with open(f"/proc/{pid}/comm") as comm:
                    if comm.read() == "kern-worker\n":
                        return int(pid)
    return None


def status_of(pid):
    with open(f"/proc/{pid}/status") as status:
        return dict(line.rstrip("\n").split(":\t", 1) for line in status)


@pytest.fixture
def session(client):
    session = {**client.call("session/open", {})}
    client.run("sh", "-c", "echo hello >a.txt; mkdir d; ln -s a.txt link; mkfifo fifo", sessionId=session["sessionId"])
    return session


def test_stat(client, session):
    found = stat(client, session, "a.txt")
    assert (found["type"], found["size"], found["mode"]) == ("file", 6, 0o644)
    assert stat(client, session, "d")["type"] == "directory"
    assert stat(client, session, ".")["type"] == "directory"
    assert stat(client, session, "fifo")["type"] == "fifo"


ONE_FILE = (
    "a.txt ./a.txt d/../a.txt /workspace/a.txt //workspace//./a.txt /workspace/d/../a.txt ../workspace/a.txt".split()
)
OUTSIDE = ".. ../x / /etc/passwd /workspace/../etc/passwd /workspacex d/../../x /tmp/x /proc/self/root".split()


@pytest.mark.parametrize("path", ONE_FILE)
def test_names_of_one_file(client, session, path):
    assert stat(client, session, path)["size"] == 6


def test_as_the_host_sees_it(client, session):
    assert stat(client, session, session["workspace"] + "/a.txt")["size"] == 6
    assert stat(client, session, session["workspace"])["type"] == "directory"


@pytest.mark.parametrize("path", OUTSIDE)
def test_outside(client, session, path):
    error = client.fail("file/stat", {"sessionId": session["sessionId"], "path": path})
    refused(error, "path_escape", "/path")
    assert "/workspace" in error.data.get("hint", error.message) or "tmpfs" in error.message


def test_bad_paths(client, session):
    where = {"sessionId": session["sessionId"]}
    refused(client.fail("file/stat", where), "missing", "/path")
    refused(client.fail("file/stat", {**where, "path": ""}), "out_of_range", "/path")
    refused(client.fail("file/stat", {**where, "path": "a", "pathBase64": "YQ=="}), "invalid_value", "/pathBase64")
    refused(client.fail("file/stat", {**where, "pathBase64": base64.b64encode(b"a\0b").decode()}), "invalid_path", "/pathBase64")
    refused(client.fail("file/stat", {**where, "path": "x" * 256}), "invalid_path", "/path")
    refused(client.fail("file/stat", {**where, "path": "x" * 255}), "not_found", "/path")
    refused(client.fail("file/stat", {**where, "pathBase64": base64.b64encode(b"\xff").decode()}), "not_found", "/pathBase64")
    refused(client.fail("file/stat", {"sessionId": "nobody", "path": "a"}), "unknown_handle", "/sessionId")


def test_links_are_not_followed(client, session):
    client.run("ln", "-s", "/etc", "out", sessionId=session["sessionId"])
    refused(client.fail("file/stat", {"sessionId": session["sessionId"], "path": "out/passwd"}), "path_escape", "/path")


def test_rights_of_the_worker(client, session, as_user):
    stat(client, session, "a.txt")
    status = status_of(worker_of(client))
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"
    for kind in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
        assert int(status[kind], 16) == 0
    if as_user == "root":
        assert int(status["Uid"].split()[0]) == session["effective"]["ids"]["hostUid"]["value"] > 0
        assert status["Groups"].split() == []


def test_the_worker_may_die(client, session):
    assert stat(client, session, "a.txt")["size"] == 6
    first = worker_of(client)
    os.kill(first, signal.SIGKILL)
    client.wait_for(lambda: worker_of(client) is None, "the worker to be reaped")
    assert stat(client, session, "a.txt")["size"] == 6
    assert worker_of(client) not in (None, first)


def test_it_goes_with_the_session(client, session):
    stat(client, session, "a.txt")
    client.call("session/close", {"sessionId": session["sessionId"]})
    client.wait_for(lambda: worker_of(client) is None, "the worker to be reaped")


def test_mounts(client, make_dir):
    readable, writable = make_dir("readable"), make_dir("writable")
    for place in (readable, writable):
        with open(place + "/f", "w") as file:
            file.write("12345")
        os.chmod(place + "/f", 0o644)
    mounts = [
        {"source": readable, "target": "/data", "mode": "ro"},
        {"source": writable, "target": "/more", "mode": "rw"},
    ]
    session = client.call("session/open", {"mounts": mounts})
    assert stat(client, session, "/data/f")["size"] == 5
    assert stat(client, session, "/more/f")["size"] == 5
    assert stat(client, session, readable + "/f")["size"] == 5
    refused(client.fail("file/stat", {"sessionId": session["sessionId"], "path": "/data/../etc"}), "path_escape", "/path")


def test_tmpfs_is_each_calls_own(client):
    session = client.call("session/open", {"tmpfs": {"/scratch": "1m"}})
    refused(client.fail("file/stat", {"sessionId": session["sessionId"], "path": "/scratch/x"}), "path_escape", "/path")


def test_a_workspace_of_root(client, make_dir, as_user):
    """Root owns it, so the box sees it id-mapped: the worker has the rights that the box's user has there."""
    if as_user != "root":
        pytest.skip("needs root")
    workspace = make_dir("of-root")
    for name, mode in (("mine", 0o600), ("none", 0o000), ("foreign", 0o600)):
        with open(f"{workspace}/{name}", "w") as file:
            file.write("123")
        os.chmod(f"{workspace}/{name}", mode)
    os.chown(f"{workspace}/foreign", 12345, 12345)
    session = client.call("session/open", {"workspace": workspace})
    assert stat(client, session, "mine")["size"] == 3
    assert session["effective"]["ids"]["hostUid"]["value"] != 0
    client.run("sh", "-c", "echo more >>mine", sessionId=session["sessionId"])
    assert stat(client, session, "mine")["size"] == 8


def test_a_workspace_in_memory(client):
    """No path of the host leads to it; the worker has its descriptor."""
    session = client.call("session/open", {"workspaceStorage": "memory", "workspaceMaxMb": 4})
    client.run("sh", "-c", "echo hello >a.txt", sessionId=session["sessionId"])
    assert stat(client, session, "a.txt")["size"] == 6

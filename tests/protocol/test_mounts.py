"""mounts, tmpfs, shmSize: what of the host a request may put into a box, where, and how large."""

import os
import stat
import subprocess

import pytest

from expect import plain, refused


@pytest.fixture
def data(make_dir, owner):
    """A directory with a file, a private file, and a directory."""
    path = make_dir("data")
    for name, mode in (("file", 0o644), ("private", 0o600)):
        full = os.path.join(path, name)
        with open(full, "w", encoding="utf-8") as file:
            file.write(name + "\n")
        os.chown(full, owner.pw_uid, owner.pw_gid)
        os.chmod(full, mode)
    return path


def run(client, script, **session):
    return client.call("run/argv", {"argv": ["sh", "-c", script], "session": session})


def test_read_only(client, data):
    mounts = [{"source": data, "target": "/data", "mode": "ro"}]
    result = run(client, "cat /data/file /data/private; touch /data/new || rm /data/file", mounts=mounts)
    assert (result["stdout"], result["exitCode"]) == ("file\nprivate\n", 1)
    assert result["stderr"].count("Read-only file system") == 2
    assert sorted(os.listdir(data)) == ["file", "private"]


def test_writable_and_owned_by_the_same(client, data, owner):
    mounts = [{"source": data, "target": "/data", "mode": "rw"}]
    plain(run(client, "cat /data/private; echo new > /data/new; stat -c %U /data/file /data/new", mounts=mounts),
          "private\nsandbox\nsandbox\n")  # fmt: skip
    info = os.stat(os.path.join(data, "new"))
    assert (info.st_uid, info.st_gid) == (owner.pw_uid, owner.pw_gid)


def test_mount_flags(client, data):
    mounts = [{"source": data, "target": "/data", "mode": "rw"}]
    script = "grep ' /data ' /proc/self/mountinfo"
    options = run(client, script, mounts=mounts)["stdout"].split()[5].split(",")
    assert {"rw", "nosuid", "nodev"} <= set(options)


@pytest.mark.parametrize("target", ["/tmp/a/b", "/home/me/project", "/deep/er/place", "/etc/extra", "/usr-local"])
def test_targets(client, data, target):
    plain(run(client, f"cat {target}/file", mounts=[{"source": data, "target": target, "mode": "ro"}]), "file\n")


@pytest.mark.parametrize("target", ["/etc/one", "/tmp/one", "/tmp/a/b/one", "/home/one"])
def test_single_file(client, data, target):
    """Also below what each box has for itself, where it is mounted again."""
    mounts = [{"source": data + "/file", "target": target, "mode": "ro"}]
    result = run(client, f"cat {target}; echo x > {target}", mounts=mounts)
    assert result["stdout"] == "file\n"
    assert "Read-only file system" in result["stderr"]


def test_link_in_the_source_is_followed_once(client, data, place, make_dir):
    link = os.path.join(place, "link")
    os.symlink(data, link)
    plain(run(client, "cat /data/file", mounts=[{"source": link, "target": "/data", "mode": "ro"}]), "file\n")


def test_one_inside_another(client, data, make_dir, owner):
    outer = make_dir("outer")
    os.mkdir(os.path.join(outer, "inner"))
    os.chown(os.path.join(outer, "inner"), owner.pw_uid, owner.pw_gid)
    mounts = [
        {"source": data, "target": "/outer/inner", "mode": "ro"},
        {"source": outer, "target": "/outer", "mode": "rw"},
    ]
    plain(run(client, "cat /outer/inner/file", mounts=mounts), "file\n")


def test_in_the_workspace(client, data, make_dir, owner):
    """The mount point must be there: none is made on the host."""
    workspace = make_dir("ws")
    mounts = [{"source": data, "target": "/workspace/data", "mode": "ro"}]
    error = client.fail("session/open", {"workspace": workspace, "mounts": mounts})
    refused(error, "mount_refused")
    assert "must exist" in error.data["hint"]
    assert os.listdir(workspace) == []
    os.mkdir(os.path.join(workspace, "data"))
    os.chown(os.path.join(workspace, "data"), owner.pw_uid, owner.pw_gid)
    plain(run(client, "cat /workspace/data/file", workspace=workspace, mounts=mounts), "file\n")
    assert os.listdir(os.path.join(workspace, "data")) == []


def test_link_at_the_target_leads_nowhere_else(client, data, make_dir, owner):
    """A workspace with a link where the mount point should be: CVE-2021-30465 and its kind."""
    workspace, victim = make_dir("ws"), make_dir("victim")
    os.symlink(victim, os.path.join(workspace, "data"))
    mounts = [{"source": data, "target": "/workspace/data", "mode": "ro"}]
    refused(client.fail("session/open", {"workspace": workspace, "mounts": mounts}), "mount_refused")
    assert os.listdir(victim) == []
    os.unlink(os.path.join(workspace, "data"))
    os.symlink("/usr", os.path.join(workspace, "data"))
    refused(client.fail("session/open", {"workspace": workspace, "mounts": mounts}), "mount_refused")


@pytest.mark.parametrize(
    "source",
    ["/", "/etc", "/etc/passwd", "/proc", "/proc/1", "/sys", "/dev", "/dev/sda", "/boot", "/run", "/nonexistent"],
)
def test_sources_refused(client, source):
    error = client.fail("session/open", {"mounts": [{"source": source, "target": "/x", "mode": "ro"}]})
    refused(error, "mount_refused", "/mounts/0/source")
    assert error.data["hint"]


@pytest.mark.parametrize("name", [".ssh", ".aws", ".gnupg", ".kube", ".docker", ".config/gh", ".config/gcloud"])
def test_secrets_refused(client, make_dir, place, name):
    make_dir("home")
    path = os.path.join(place, "home", name)
    os.makedirs(os.path.join(path, "below"))
    for source in (path, os.path.join(path, "below")):
        error = client.fail("session/open", {"mounts": [{"source": source, "target": "/x", "mode": "ro"}]})
        refused(error, "mount_refused", "/mounts/0/source")


def test_home_itself_refused_and_a_project_in_it_not(client, owner):
    error = client.fail("session/open", {"mounts": [{"source": owner.pw_dir, "target": "/x", "mode": "ro"}]})
    refused(error, "mount_refused", "/mounts/0/source")


@pytest.mark.parametrize("target", ["/", "/proc", "/proc/x", "/sys", "/dev", "/dev/shm", "/run/kern", "/a/../b", "/a//b"])
def test_targets_refused(client, data, target):
    mounts = [{"source": data, "target": target, "mode": "ro"}]
    refused(client.fail("session/open", {"mounts": mounts}), "mount_refused", "/mounts/0/target")


def test_same_target_twice_and_the_workspace(client, data):
    twice = [{"source": data, "target": "/x", "mode": "ro"}] * 2
    refused(client.fail("session/open", {"mounts": twice}), "mount_refused", "/mounts/1/target")
    there = [{"source": data, "target": "/workspace", "mode": "ro"}]
    refused(client.fail("session/open", {"mounts": there}), "mount_refused", "/mounts/0/target")


def test_mode_is_needed_and_one_of_two(client, data):
    entry = {"source": data, "target": "/x"}
    refused(client.fail("session/open", {"mounts": [entry]}), "missing", "/mounts/0/mode")
    refused(client.fail("session/open", {"mounts": [{**entry, "mode": "RO"}]}), "invalid_value", "/mounts/0/mode")


def test_fifo_and_socket_refused(client, make_dir):
    path = make_dir("odd")
    os.mkfifo(os.path.join(path, "fifo"))
    mounts = [{"source": os.path.join(path, "fifo"), "target": "/x", "mode": "ro"}]
    refused(client.fail("session/open", {"mounts": mounts}), "mount_refused", "/mounts/0/source")


# -- memory file systems


def test_tmpfs_sizes(client):
    script = "df -B1 --output=size,target /tmp /scratch /dev/shm | tail -n +2 | tr -s ' '"
    result = run(client, script, tmpfs={"/scratch": "10m"}, shmSize="5m")
    assert result["stdout"].split() == [str(64 << 20), "/tmp", str(10 << 20), "/scratch", str(5 << 20), "/dev/shm"]


def test_tmpfs_is_full_at_its_size(client):
    script = "head -c 1048576 /dev/zero > /s/fits && head -c 1 /dev/zero > /s/more"
    result = run(client, script, tmpfs={"/s": "1m"})
    assert result["exitCode"] == 1
    assert "No space left on device" in result["stderr"]
    assert "fault" not in result


def test_default_tmp_is_half_the_memory_at_most(client):
    result = run(client, "df -B1 --output=size /tmp /dev/shm | tail -n 2 | tr -d ' '", memoryMb=64)
    assert result["stdout"].split() == [str(32 << 20)] * 2


def test_own_size_of_tmp_and_none_at_all(client):
    assert run(client, "df -B1 --output=size /tmp | tail -n 1", tmpfs={"/tmp": "100m"})["stdout"].strip() == str(100 << 20)
    result = run(client, "touch /tmp/x", tmpfs={})
    assert "Read-only file system" in result["stderr"]


def test_tmpfs_may_be_as_large_as_the_memory_cap_and_no_larger(client):
    client.call("session/open", {"memoryMb": 64, "tmpfs": {"/s": "64m"}})
    refused(client.fail("session/open", {"memoryMb": 64, "tmpfs": {"/s": "65m"}}), "mount_refused", "/tmpfs")
    refused(client.fail("session/open", {"memoryMb": 64, "shmSize": "65m"}), "mount_refused", "/shmSize")
    refused(client.fail("session/open", {"tmpfs": {"/s": "3k"}}), "mount_refused", "/tmpfs")
    client.call("session/open", {"tmpfs": {"/s": "4k"}})


@pytest.mark.parametrize("size", ["64", "0m", "", "m", "1.5m", "64M", "64mb", "-1m", " 64m"])
def test_size_needs_a_number_and_a_unit(client, size):
    refused(client.fail("session/open", {"tmpfs": {"/s": size}}), "invalid_value")


def test_tmpfs_that_would_cover_a_mount(client, data):
    mounts = [{"source": data, "target": "/a/b", "mode": "ro"}]
    for target in ("/a/b", "/a"):
        refused(client.fail("session/open", {"mounts": mounts, "tmpfs": {target: "1m"}}), "mount_refused", "/tmpfs")
    refused(client.fail("session/open", {"tmpfs": {"/workspace": "1m"}}), "mount_refused", "/tmpfs")
    assert "cover" in client.fail("session/open", {"tmpfs": {"/workspace": "1m"}}).message


def test_tmpfs_inside_the_workspace(client, make_dir, owner):
    workspace = make_dir("ws")
    os.mkdir(os.path.join(workspace, "cache"))
    os.chown(os.path.join(workspace, "cache"), owner.pw_uid, owner.pw_gid)
    plain(run(client, "echo x > cache/x; cat cache/x", workspace=workspace, tmpfs={"/workspace/cache": "1m"}), "x\n")
    assert os.listdir(os.path.join(workspace, "cache")) == []


def test_memory_file_systems_are_of_the_call(client):
    session = client.open(tmpfs={"/s": "1m"})
    plain(client.run("sh", "-c", "echo x > /s/x; ls /s", sessionId=session), "x\n")
    plain(client.run("sh", "-c", "ls /s /dev/shm /tmp", sessionId=session), "/dev/shm:\n\n/s:\n\n/tmp:\n")


def test_what_is_mounted_below_a_read_only_source_is_read_only_too(client, as_user, make_dir):
    if as_user != "root":
        pytest.skip("only root can mount one thing below another here")
    path = make_dir("outer")
    os.mkdir(os.path.join(path, "sub"))
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", os.path.join(path, "sub")], check=True)
    try:
        result = run(client, "touch /x/sub/new", mounts=[{"source": path, "target": "/x", "mode": "ro"}])
        assert "Read-only file system" in result["stderr"]
    finally:
        subprocess.run(["umount", os.path.join(path, "sub")], check=True)


def test_owner_of_a_foreign_mount_as_root(client, as_user, make_dir):
    """A directory of another user is shown as the box user's own, and what is made in it belongs to that user."""
    if as_user != "root":
        pytest.skip("an ordinary user cannot make files of others")
    path = make_dir("foreign")
    os.chown(path, 4242, 4242)
    os.chmod(path, 0o700)
    plain(run(client, "touch /x/new; stat -c %U /x", mounts=[{"source": path, "target": "/x", "mode": "rw"}]), "sandbox\n")
    info = os.stat(os.path.join(path, "new"))
    assert (info.st_uid, stat.S_ISREG(info.st_mode)) == (4242, True)



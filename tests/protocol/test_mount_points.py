"""Where the mount points and files of a box are made: in its own memory file systems, never on the host, whatever links an image or a
workspace has in the way."""

import os

import pytest

from expect import plain


@pytest.fixture
def victim(make_dir):
    """A directory of the host in which the box's user could make something."""
    path = make_dir("victim")
    os.chmod(path, 0o777)
    return path


@pytest.fixture
def image(make_dir):
    path = make_dir("image")
    os.mkdir(os.path.join(path, "usr"))
    os.symlink("usr/bin", os.path.join(path, "bin"))
    return path


def test_etc_of_an_image_is_a_link(client, image, victim):
    os.symlink(victim, os.path.join(image, "etc"))
    error = client.fail("run/argv", {"argv": ["true"], "session": {"image": "dir:" + image}})
    assert (error.reason, error.data["path"]) == ("image_invalid", "/session/image")
    assert os.listdir(victim) == []


@pytest.mark.parametrize("target", ["/workspace", "/tmp/w", "/home/me/w"])
@pytest.mark.parametrize("below", ["link/a/b", "link/a", "missing/a", "missing", "inside/missing/a"])
def test_mount_points_in_a_workspace_are_not_made(client, make_dir, victim, target, below):
    workspace, source = make_dir("work"), make_dir("source")
    os.symlink(victim, os.path.join(workspace, "link"))
    os.symlink(".", os.path.join(workspace, "inside"))
    session = {"workspace": workspace, "workspaceTarget": target,
               "mounts": [{"source": source, "target": f"{target}/{below}", "mode": "ro"}]}  # fmt: skip
    error = client.fail("run/argv", {"argv": ["true"], "session": session})
    assert (error.reason, error.data["errno"]) == ("mount_refused", 2 if below.startswith("missing") else 40)  # ENOENT, ELOOP
    assert os.listdir(victim) == []
    assert sorted(os.listdir(workspace)) == ["inside", "link"]


@pytest.mark.parametrize("target", ["/workspace", "/tmp/w", "/home/me/w"])
def test_mount_points_that_are_there(client, make_dir, owner, target):
    workspace, source = make_dir("work"), make_dir("source")
    os.makedirs(os.path.join(workspace, "a/b"))
    for path in ("a", "a/b"):
        os.chown(os.path.join(workspace, path), owner.pw_uid, owner.pw_gid)
    with open(os.path.join(source, "file"), "w", encoding="utf-8") as file:
        file.write("x")
    session = {"workspace": workspace, "workspaceTarget": target,
               "mounts": [{"source": source, "target": f"{target}/a/b", "mode": "ro"}]}  # fmt: skip
    plain(client.call("run/argv", {"argv": ["cat", f"{target}/a/b/file"], "session": session}), "x")
    assert os.listdir(os.path.join(workspace, "a/b")) == []


@pytest.mark.parametrize("target", ["/var/tmp/w", "/bin/w", "/lib/w"])
def test_links_of_our_own_are_no_way_either(client, make_dir, target):
    """The error comes before anything runs and says what to name instead."""
    error = client.fail("run/argv", {"argv": ["true"], "session": {"workspace": make_dir("work"), "workspaceTarget": target}})
    assert (error.reason, error.data["errno"]) == ("mount_refused", 40)
    assert "symbolic link" in error.data["hint"] and "another target" in error.data["hint"]

"""A workspace that is a file system of its own, no larger than workspaceMaxMb: the kernel holds the limit. More is
ENOSPC, and no fault."""

import os
import pwd
import subprocess

import pytest

from expect import refused

MIB = 1 << 20


def effective(client, **session):
    answer = client.call("session/open", session)
    return answer["sessionId"], answer["effective"]


@pytest.fixture
def mounted(place):
    """mounted(name, options) -> a directory with a file system of its own that the sidecar's user may write to."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount")
    user, made = pwd.getpwnam("kerntest"), []

    def mount(name, *arguments):
        path = os.path.join(place, name)
        os.mkdir(path)
        subprocess.run(["mount", *arguments, path], check=True)
        made.append(path)
        os.chown(path, user.pw_uid, user.pw_gid)
        return path

    yield mount
    for path in reversed(made):
        subprocess.run(["umount", "--lazy", path], check=True)


def of_its_own(mounted, megabytes=4):
    return mounted("own", "-t", "tmpfs", "-o", f"size={megabytes}m", "none")


@pytest.mark.parametrize("limit, enforced", [(3, "polled"), (4, "kernel"), (5, "kernel")])
def test_a_file_system_of_its_own(client, mounted, limit, enforced):
    session, limits = effective(client, workspace=of_its_own(mounted), workspaceMaxMb=limit)
    assert limits["workspaceMaxMb"]["enforced"] == enforced
    assert ("4096 KiB" in limits["workspaceMaxMb"]["reason"]) is (enforced == "kernel")
    script = f"head -c {4 * MIB} /dev/zero > f; head -c 1 /dev/zero > g"
    result = client.run("sh", "-c", script, sessionId=session)
    if enforced == "kernel":
        assert "fault" not in result and result["exitCode"] != 0, result
        assert "No space left on device" in result["stderr"], result
    else:
        assert result["fault"]["limit"] == "workspaceMaxMb"


def test_a_part_of_one_is_none_of_its_own(client, mounted):
    workspace = os.path.join(of_its_own(mounted), "inner")
    _, limits = effective(client, workspace=workspace, workspaceMaxMb=4)
    assert limits["workspaceMaxMb"]["enforced"] == "polled"


def test_a_part_that_is_mounted_is(client, mounted):
    part = os.path.join(of_its_own(mounted), "part")
    os.mkdir(part)
    _, limits = effective(client, workspace=mounted("elsewhere", "--bind", part), workspaceMaxMb=4)
    assert limits["workspaceMaxMb"]["enforced"] == "kernel"


def test_a_mount_of_a_large_one_is_not(client, mounted, place):
    _, limits = effective(client, workspace=mounted("again", "--bind", os.path.join(place, "tmp")), workspaceMaxMb=4)
    assert limits["workspaceMaxMb"]["enforced"] == "polled"


def test_a_file_system_without_a_size_is_not(client, mounted):
    """size=0: no limit, and statfs says that it has no blocks at all."""
    workspace = mounted("endless", "-t", "tmpfs", "-o", "size=0", "none")
    _, limits = effective(client, workspace=workspace, workspaceMaxMb=4)
    assert limits["workspaceMaxMb"]["enforced"] == "polled"


def test_require_limits_with_one_of_its_own(client, mounted):
    asked = {"workspace": of_its_own(mounted), "workspaceMaxMb": 4, "requireLimits": True}
    _, limits = effective(client)
    if all(limits[what]["enforced"] == "kernel" for what in ("memoryMb", "pids")):
        client.call("session/open", asked)
        refused(client.fail("session/open", {**asked, "workspaceMaxMb": 3}), "limits_unenforced", "/workspaceMaxMb")

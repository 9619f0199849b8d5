"""session/open, close, list: handles, workspaces, defaults, images."""

import os
import shutil
import subprocess

import pytest

from expect import plain, refused


def test_answer_of_open(client):
    session = client.call("session/open", {})
    assert session["image"]["ref"] == "host"
    assert session["workspaceTarget"] == "/workspace"
    assert os.path.isdir(session["workspace"])
    effective = session["effective"]
    assert effective["memoryMb"]["value"] == 512
    assert effective["pids"]["value"] == 256
    for what in ("memoryMb", "pids"):
        assert effective[what]["enforced"] in ("kernel", "polled", "none")
        assert bool(effective[what].get("reason")) is (effective[what]["enforced"] != "kernel")
    for note in session["notes"]:
        assert note["code"] and note["message"]


def test_limits_asked_for_are_effective(client):
    effective = client.call("session/open", {"memoryMb": 200, "pids": 50, "cpusMilli": 500})["effective"]
    assert (effective["memoryMb"]["value"], effective["pids"]["value"], effective["cpusMilli"]["value"]) == (
        200,
        50,
        500,
    )


def test_require_limits(client):
    effective = client.call("session/open", {"memoryMb": 200, "cpusMilli": 500})["effective"]
    asked = ("memoryMb", "pids", "cpusMilli")
    if all(effective[what]["enforced"] == "kernel" for what in asked):
        client.call("session/open", {"memoryMb": 200, "cpusMilli": 500, "requireLimits": True})
    else:
        refused(
            client.fail("session/open", {"memoryMb": 200, "cpusMilli": 500, "requireLimits": True}), "limits_unenforced"
        )
        assert len(client.call("session/list")["sessions"]) == 1


def test_handles(client):
    assert client.open(sessionId="mine") == "mine"
    refused(client.fail("session/open", {"sessionId": "mine"}), "duplicate_handle", "/sessionId")
    made = client.open()
    assert made != "mine"
    assert {s["sessionId"] for s in client.call("session/list")["sessions"]} == {"mine", made}
    assert client.call("session/close", {"sessionId": "mine"}) == {}
    refused(client.fail("session/close", {"sessionId": "mine"}), "unknown_handle", "/sessionId")
    refused(client.fail("run/argv", {"argv": ["true"], "sessionId": "mine"}), "unknown_handle", "/sessionId")
    assert client.open(sessionId="mine") == "mine"


def test_session_and_session_id_together(client):
    refused(
        client.fail("run/argv", {"argv": ["true"], "sessionId": client.open(), "session": {}}),
        "invalid_value",
        "/session",
    )


def test_private_workspace_lives_as_long_as_its_session(client, owner):
    session = client.call("session/open", {})
    handle, workspace = session["sessionId"], session["workspace"]
    plain(client.run("sh", "-c", "echo one > a; mkdir d; echo two > d/b", sessionId=handle))
    plain(client.run("cat", "a", "d/b", sessionId=handle), "one\ntwo\n")
    assert open(os.path.join(workspace, "a"), encoding="ascii").read() == "one\n"
    if owner.pw_uid != 0:
        assert os.stat(os.path.join(workspace, "a")).st_uid == owner.pw_uid
    else:
        assert os.stat(os.path.join(workspace, "a")).st_uid >= 65536  # never the host's root
    client.call("session/close", {"sessionId": handle})
    assert not os.path.exists(workspace)


def test_workspace_that_is_hard_to_remove(client):
    session = client.call("session/open", {})
    client.run(
        "sh",
        "-c",
        "mkdir -p a/b/c; touch a/b/c/f; ln -s /etc/passwd l; mkfifo p; chmod 0 a/b a",
        sessionId=session["sessionId"],
    )
    client.call("session/close", {"sessionId": session["sessionId"]})
    assert not os.path.exists(session["workspace"])
    assert os.path.exists("/etc/passwd")


def test_sessions_do_not_share_files(client):
    first, second = client.open(), client.open()
    client.run("touch", "only-here", sessionId=first)
    assert client.run("ls", "-A", sessionId=second)["stdout"] == ""


def test_throw_away_session(client):
    assert client.run("sh", "-c", "pwd; ls -A; touch x")["stdout"] == "/workspace\n"
    assert client.run("ls", "-A")["stdout"] == ""
    assert client.call("session/list") == {"sessions": []}


def named_workspace(client, owner, path, **more):
    """A named workspace; one that root owns is only mapped when asked for."""
    return client.call("session/open", {"workspace": path, **({"mapOwner": True} if owner.pw_uid == 0 else {}), **more})


def test_named_workspace_stays(client, make_dir, owner):
    path = make_dir("ws")
    with open(os.path.join(path, "in"), "w", encoding="ascii") as file:
        file.write("from the host\n")
    os.chown(os.path.join(path, "in"), owner.pw_uid, owner.pw_gid)
    session = named_workspace(client, owner, path)
    assert session["workspace"] == path
    plain(client.run("sh", "-c", "cat in; echo new > out; rm in", sessionId=session["sessionId"]), "from the host\n")
    client.call("session/close", {"sessionId": session["sessionId"]})
    assert os.listdir(path) == ["out"]
    assert os.stat(os.path.join(path, "out")).st_uid == owner.pw_uid


def test_workspace_at_the_hosts_own_path(client, make_dir, owner):
    path = make_dir("ws")
    session = named_workspace(client, owner, path, workspaceTarget=path)
    assert session["workspaceTarget"] == path
    plain(client.run("sh", "-c", 'pwd; touch "$PWD/here"', sessionId=session["sessionId"]), path + "\n")
    assert os.listdir(path) == ["here"]


@pytest.mark.parametrize("target", ["/", "/proc", "/proc/x", "/sys", "/dev", "/dev/shm", "relative", "/a/../b"])
def test_bad_workspace_target(client, target):
    error = client.fail("session/open", {"workspaceTarget": target})
    assert error.data["path"] == "/workspaceTarget" and error.reason in ("invalid_value", "mount_refused")


@pytest.mark.parametrize("source", ["/", "/etc", "/boot", "/proc", "/proc/self", "/sys", "/dev", "/root"])
def test_sensitive_workspace(client, source):
    error = client.fail("session/open", {"workspace": source, "mapOwner": True})
    refused(error, "mount_refused", "/workspace")
    assert os.path.realpath(source).rsplit("/", 1)[0] in error.message


def test_credentials_are_no_workspace(client, make_dir, place):
    for name in (".ssh", ".aws", ".kube", ".docker"):
        make_dir(name)
        os.makedirs(os.path.join(place, name, "below"), exist_ok=True)
        refused(client.fail("session/open", {"workspace": os.path.join(place, name)}), "mount_refused", "/workspace")
        refused(
            client.fail("session/open", {"workspace": os.path.join(place, name, "below")}),
            "mount_refused",
            "/workspace",
        )


def test_link_to_a_sensitive_workspace(client, place):
    os.symlink("/etc", os.path.join(place, "link"))
    refused(client.fail("session/open", {"workspace": os.path.join(place, "link")}), "mount_refused", "/workspace")


@pytest.mark.parametrize(
    "path, reason", [("relative/dir", "invalid_value"), ("/nonexistent/a/b", None), ("/etc/passwd", None)]
)
def test_workspace_that_is_none(client, path, reason):
    error = client.fail("session/open", {"workspace": path})
    assert error.data["path"] == "/workspace"
    assert (
        error.reason == reason if reason else error.reason in ("not_found", "not_a_directory", "mount_refused")
    ), error


def test_cwd(client):
    session = client.open()
    client.run("mkdir", "sub", sessionId=session)
    assert client.run("pwd", sessionId=session, cwd="/workspace/sub")["stdout"] == "/workspace/sub\n"
    assert client.run("pwd", sessionId=session, cwd="/tmp")["stdout"] == "/tmp\n"
    assert client.run("pwd", sessionId=client.open(cwd="/tmp"))["stdout"] == "/tmp\n"


CWD_LINKS = [
    "/proc/self/root",
    "/proc/self/cwd",
    "/proc/1/root",
    "/proc/self/fd/3",
    "/proc/self/root/workspace",
    "/workspace/leak",
]


@pytest.mark.parametrize("cwd", CWD_LINKS)
def test_cwd_through_a_proc_link_is_refused(client, cwd):
    session = client.open()
    client.run("ln", "-s", "/proc/self/fd/3", "leak", sessionId=session)
    error = client.fail("run/argv", {"argv": ["touch", "/workspace/ran"], "sessionId": session, "cwd": cwd})
    assert error.reason in ("invalid_value", "start_failed"), error
    assert error.data.get("path") == "/cwd" or error.data.get("step"), error
    assert client.run("ls", "ran", sessionId=session)["exitCode"] == 2


def test_cwd_that_is_not_there(client):
    error = client.fail("run/argv", {"argv": ["true"], "cwd": "/workspace/none"})
    assert error.reason in ("invalid_value", "start_failed", "not_found"), error


def test_env_of_session_and_call(client):
    session = client.open(env={"A": "session", "B": "session", "HOME": "/tmp/h"})
    result = client.run("sh", "-c", "echo $A $B $C $HOME", sessionId=session, env={"B": "call", "C": "call"})
    assert result["stdout"] == "session call call /tmp/h\n"


def test_closing_cancels_what_runs(client):
    session = client.open()
    runs = [client.start("sleep", "1000", sessionId=session) for _ in range(3)]
    closing = client.send("session/close", {"sessionId": session})
    assert [run.result(30)["fault"]["type"] for run in runs] == ["cancelled"] * 3
    assert closing.result(30) == {}


# -- images


@pytest.fixture
def rootfs(make_dir, place):
    """A root file system with nothing but a static-enough sh, cat and ls."""
    root = make_dir("rootfs")
    for name in ("usr/bin", "tmp", "proc", "dev", "etc"):
        os.makedirs(os.path.join(root, name))
    for link in ("bin", "lib", "lib64"):
        os.makedirs(os.path.join(root, "usr", link), exist_ok=True)
        os.symlink(f"usr/{link}", os.path.join(root, link))
    for name, source in (("sh", "/bin/sh"), ("cat", "/bin/cat"), ("ls", "/bin/ls")):
        shutil.copy(os.path.realpath(source), os.path.join(root, "usr/bin", name))
        for line in subprocess.run(["ldd", source], check=True, capture_output=True, text=True).stdout.splitlines():
            library = next((word for word in line.split() if word.startswith("/")), None)
            if library:
                target = root + "/usr" + library.removeprefix("/usr")
                os.makedirs(os.path.dirname(target), exist_ok=True)
                shutil.copy(os.path.realpath(library), target)
    with open(os.path.join(root, "usr/marker"), "w", encoding="ascii") as file:
        file.write("inside the image\n")
    return root


def test_directory_image(client, rootfs):
    session = client.call("session/open", {"image": f"dir:{rootfs}"})
    handle = session["sessionId"]
    assert session["image"]["ref"] == f"dir:{rootfs}"
    plain(client.code("cat /usr/marker; pwd", language="sh", sessionId=handle), "inside the image\n/workspace\n")
    plain(client.run("sh", "-c", "echo x > /workspace/f; cat /workspace/f", sessionId=handle), "x\n")
    result = client.code("print(1)", language="python", sessionId=handle)
    assert (result["exitCode"], result["fault"]["type"]) == (127, "exec_failed")
    assert "python" in result["fault"]["message"] and rootfs in result["fault"]["message"]


def test_directory_image_is_read_only(client, rootfs):
    result = client.run("sh", "-c", "echo x > /usr/marker", session={"image": f"dir:{rootfs}"})
    assert result["exitCode"] == 2
    assert open(os.path.join(rootfs, "usr/marker"), encoding="ascii").read() == "inside the image\n"


@pytest.mark.parametrize(
    "ref, reason",
    [
        ("dir:/nonexistent", "image_not_found"),
        ("dir:/etc/passwd", "image_invalid"),
        ("dir:relative", "invalid_value"),
        ("oci:/x", "unsupported_option"),
        ("docker-archive:/x", "unsupported_option"),
        ("python:3.12", "unsupported_option"),
        ("", "out_of_range"),
        ("dir:", "invalid_value"),
        ("a b", "invalid_value"),
        ("Host", "invalid_value"),
    ],
)
def test_bad_image(client, ref, reason):
    refused(client.fail("session/open", {"image": ref}), reason, "/image")
    refused(client.fail("run/argv", {"argv": ["true"], "session": {"image": ref}}), reason, "/session/image")


def test_image_without_programs(client, make_dir):
    refused(client.fail("session/open", {"image": f"dir:{make_dir('empty')}"}), "image_invalid", "/image")


def test_run_that_comes_right_behind_the_open(client):
    """Both lines in one write: the run waits for its session."""
    opening, run = client.send_all(
        [("session/open", {"sessionId": "s"}), ("run/argv", {"argv": ["echo", "hi"], "sessionId": "s"})]
    )
    assert opening.result()["sessionId"] == "s"
    plain(run.result(), "hi\n")


def test_run_behind_an_open_that_fails(client, make_dir):
    bad = [{"source": make_dir("d"), "target": "/workspace/none", "mode": "ro"}]
    opening, run = client.send_all(
        [("session/open", {"sessionId": "s", "mounts": bad}), ("run/argv", {"argv": ["true"], "sessionId": "s"})]
    )
    refused(opening.error(), "mount_refused")
    assert run.error().reason in ("cancelled", "unknown_handle")
    assert client.call("session/list") == {"sessions": []}

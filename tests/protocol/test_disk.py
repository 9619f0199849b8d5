"""workspaceMaxMb: the watched limit of the workspace. A call that makes it larger ends with the fault `disk`."""

import os

import pytest

from expect import fault, plain

FILL = "import os\nwith open('big', 'wb', buffering=0) as f:\n  while True: f.write(b'x' * 65536)\n"


def limited(client, **session):
    answer = client.call("session/open", {"workspaceMaxMb": 4, **session})
    assert answer["effective"]["workspaceMaxMb"]["value"] == 4
    if "project quota of" in answer["effective"]["workspaceMaxMb"]["reason"]:
        pytest.skip("here the kernel holds it: " + answer["effective"]["workspaceMaxMb"]["reason"])
    assert answer["effective"]["workspaceMaxMb"]["enforced"] == "polled"
    return answer["sessionId"]


def disk(result):
    assert fault(result, "disk")["limit"] == "workspaceMaxMb"
    assert "4 MiB" in result["fault"]["message"]


def test_why_it_is_watched(client, as_user):
    reason = client.call("session/open", {"workspaceMaxMb": 4})["effective"]["workspaceMaxMb"]["reason"]
    if as_user != "root":
        assert reason == "watched: measured four times a second and at the end of each call"
    else:  # the kernel might have held it
        assert "no project quota: its file system " in reason or "a project quota of the file system" in reason


def test_below_and_at_the_limit(client):
    session = limited(client)
    plain(client.run("sh", "-c", "head -c 4000000 /dev/zero > f", sessionId=session))
    plain(client.run("sh", "-c", "rm f; head -c 4194304 /dev/zero > g", sessionId=session))


def test_one_byte_more(client):
    disk(client.run("sh", "-c", "head -c 4194304 /dev/zero > f; echo x > g; echo done", sessionId=limited(client)))


def test_one_file_that_only_grows(client):
    """RLIMIT_FSIZE holds a single file, at once."""
    result = client.code(FILL, sessionId=limited(client))
    assert result["exitCode"] != 0
    sizes = {f["path"]: f["size"] for f in result["files"]}
    assert sizes["big"] <= 4 << 20
    if "fault" in result:
        disk(result)


def test_ended_while_it_runs(client):
    script = "i=0; while :; do head -c 1000000 /dev/zero > f$i; i=$((i+1)); sleep 0.05; done"
    result = client.run("sh", "-c", script, sessionId=limited(client), timeoutMs=60000)
    disk(result)
    assert result["signal"] == "KILL"
    assert sum(f["size"] for f in result["files"]) < 100 << 20


def test_names_count(client):
    """256 for each MiB: 1024 here, of any kind."""
    session = limited(client)
    plain(client.run("sh", "-c", "mkdir d; cd d; for i in $(seq 1023); do : > $i; done", sessionId=session))
    disk(client.run("sh", "-c", "mkdir e", sessionId=session))


def test_installed_packages_count(client):
    disk(client.run("sh", "-c", "mkdir .deps; for i in 1 2 3 4 5; do head -c 1000000 /dev/zero > .deps/$i; done",
                    sessionId=limited(client)))  # fmt: skip


def test_what_nobody_can_look_into_counts_as_too_much(client, as_user):
    result = client.run("sh", "-c", "mkdir d && echo x > d/f && chmod 0 d", sessionId=limited(client))
    if as_user == "root":
        plain(result)
    else:
        disk(result)


def test_too_large_before_may_stay_so_but_not_grow(client, make_dir, owner):
    workspace = make_dir("ws")
    path = os.path.join(workspace, "old")
    with open(path, "wb") as file:
        file.write(b"x" * (6 << 20))
    os.chown(path, owner.pw_uid, owner.pw_gid)
    session = limited(client, workspace=workspace)
    plain(client.run("sh", "-c", "cat old | wc -c", sessionId=session), "6291456\n")
    disk(client.run("sh", "-c", "head -c 100000 /dev/zero > more", sessionId=session))
    plain(client.run("sh", "-c", "rm old more", sessionId=session))


def test_without_tracking_too(client):
    disk(client.run("sh", "-c", "for i in 1 2 3 4 5; do head -c 1000000 /dev/zero > $i; done",
                    sessionId=limited(client), trackFiles=False))  # fmt: skip


@pytest.mark.parametrize("how", ["cancel", "timeout"])
def test_other_ends_while_it_is_watched(client, how):
    session = limited(client)
    future = client.start("sleep", "100", sessionId=session, timeoutMs=1500 if how == "timeout" else 60000)
    if how == "cancel":
        client.wait_for(lambda: future.run_id is not None or future.done(), "start", 30)
        client.cancel(future)
    fault(future.result(), "cancelled" if how == "cancel" else "timeout")


def test_no_limit_by_default(client):
    assert "workspaceMaxMb" not in client.call("session/open", {})["effective"]
    plain(client.run("sh", "-c", "head -c 20000000 /dev/zero > f"))

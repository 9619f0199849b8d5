"""`files`: what a call created, changed and deleted, from the workspace itself."""

import base64
import hashlib
import os
import subprocess
import time

import pytest
from expect import plain


def entry(path, change, data=None, **more):
    found = {"path": path, "change": change, "size": len(data) if data is not None else 0, **more}
    if data is not None and change != "deleted":
        found["sha256"] = hashlib.sha256(data).hexdigest()
    return found


def without(result, *names):
    return [{key: value for key, value in file.items() if key not in names} for file in result["files"]]


def test_created_modified_deleted(client):
    session = client.open()
    first = client.run(
        "sh", "-c", "printf one > b; mkdir -p d/e; printf two > d/e/f; printf three > a", sessionId=session
    )
    assert without(first, "mime") == [
        entry("a", "created", b"three"),
        entry("b", "created", b"one"),
        entry("d/e/f", "created", b"two"),
    ]
    second = client.run("sh", "-c", "printf four > a; rm d/e/f; printf new > c", sessionId=session)
    assert without(second, "mime", "size") == [
        {k: v for k, v in e.items() if k != "size"}
        for e in (entry("a", "modified", b"four"), entry("c", "created", b"new"), entry("d/e/f", "deleted"))
    ]
    assert [f["size"] for f in second["files"][:2]] == [4, 3]
    assert client.run("cat", "a", sessionId=session)["files"] == []


def test_made_and_removed_in_one_call_is_nothing(client):
    assert client.run("sh", "-c", "echo x > a; rm a; mkdir d")["files"] == []


def test_rewrite_of_the_same_size_with_a_faked_time(client):
    session = client.open()
    client.run("sh", "-c", "printf aaaa > f; touch -d 2001-01-01 f", sessionId=session)
    result = client.run("sh", "-c", "printf bbbb > f; touch -d 2001-01-01 f", sessionId=session)
    assert without(result, "mime") == [entry("f", "modified", b"bbbb")]


def test_names_that_are_not_utf8(client):
    result = client.run("python3", "-c", "open(b'n\\xff', 'w').close(); open('\u00e9', 'w').close()")
    assert without(result, "mime", "sha256") == [
        {"pathBase64": base64.b64encode(b"n\xff").decode(), "change": "created", "size": 0},
        {"path": "\u00e9", "change": "created", "size": 0},
    ]


def test_awkward_names(client):
    names = ["-rf", "a b", "a\nb", "a\"b\\", "\u2028", "x" * 255]
    result = client.run("python3", "-c", f"for n in {names!r}: open(n, 'w').close()")
    assert [f["path"] for f in result["files"]] == sorted(names, key=str.encode)


def test_mime(client):
    script = "printf '\\211PNG\\r\\n\\032\\n' > a.png; echo '{}' > b.json; echo x > c.txt"
    assert [f.get("mime") for f in client.run("sh", "-c", script)["files"]] == [
        "image/png",
        "application/json",
        "text/plain",
    ]


def test_tracking_off(client):
    session = client.open(trackFiles=False)
    assert client.run("touch", "a", sessionId=session)["files"] == []
    assert [f["path"] for f in client.run("touch", "b", sessionId=session, trackFiles=True)["files"]] == ["b"]
    assert client.run("touch", "c", trackFiles=False)["files"] == []


def test_files_of_a_call_that_timed_out(client):
    result = client.run("sh", "-c", "echo x > kept; sleep 1000", timeoutMs=500)
    assert result["fault"]["type"] == "timeout" and [f["path"] for f in result["files"]] == ["kept"]


def test_what_is_no_regular_file_does_no_harm(client, make_dir):
    make_dir("outside")
    session = client.open()
    result = client.run(
        "sh",
        "-c",
        "ln -s /etc/passwd l; ln -s / root; mkfifo p; mkdir d; ln -s ../d d/loop; echo x > f",
        sessionId=session,
    )
    assert {f["path"] for f in result["files"]} <= {"l", "root", "d/loop", "f"} and "f" in {
        f["path"] for f in result["files"]
    }
    assert all("sha256" not in f for f in result["files"] if f["path"] != "f")
    plain(client.run("true", sessionId=session))


def test_unreadable_directory(client):
    session = client.open()
    client.run("sh", "-c", "mkdir d; echo x > d/f; chmod 0 d", sessionId=session)
    plain(client.run("true", sessionId=session))


def test_host_changes_are_seen_too(client):
    """Whoever made them, between start and end."""
    session = client.call("session/open", {})
    run = client.start("cat", sessionId=session["sessionId"], interactive=True)
    path = os.path.join(session["workspace"], "from-host")
    with open(path, "w", encoding="ascii") as file:
        file.write("x")
    client.call("run/stdin", {"runId": run.run_id, "text": "", "eof": True})
    assert [(f["path"], f["change"]) for f in run.result()["files"]] == [("from-host", "created")]


@pytest.mark.endurance
def test_ten_thousand_files(client):
    result = client.run("python3", "-c", "for i in range(10000): open(f'{i:05}', 'w').close()", timeoutMs=60000)
    files = result["files"]
    if isinstance(files, dict):  # too long for a line: a blob of application/json
        import json

        assert files["blob"]["mime"] == "application/json"
        files = json.loads(client.text(files))
    expected = 10000 if not result.get("filesTruncated") else len(files)
    assert [f["path"] for f in files] == [f"{i:05}" for i in range(expected)]
    assert expected >= 1000


# -- what looking costs --


def fill(where, count, directories=1):
    for number in range(directories):
        os.mkdir(os.path.join(where, f"d{number}"))
    for number in range(count):
        open(os.path.join(where, f"d{number % directories}", f"{number:06}"), "wb").close()


def walks(client):
    return client.call("stats/get")["workspaceWalks"]


def test_tracking_off_looks_at_nothing(client, make_dir):
    session = client.open(workspace=make_dir("off"), trackFiles=False)
    before = walks(client)
    client.run("sh", "-c", "echo x > f", sessionId=session)
    client.run("true", trackFiles=False)
    assert walks(client) == before
    client.run("true", sessionId=session, trackFiles=True)
    assert walks(client) == before + 2


def test_calls_at_once_share_their_looks(client, make_dir):
    """Each reports what it did, though most did not walk the tree themselves; and nothing is kept afterwards."""
    where = make_dir("shared")
    fill(where, 5000, 20)
    session = client.open(workspace=where)
    before = walks(client)
    requests = [
        # a symbolic link comes in one step: touch makes a file and then changes its times, and others may look in between
        ("run/argv", {"argv": ["ln", "-s", "nowhere", f"made-{number}"], "sessionId": session, "timeoutMs": 60000})
        for number in range(24)
    ]
    for number, future in enumerate(client.send_all(requests)):
        result = future.result()
        plain(result)
        assert f"made-{number}" in [f["path"] for f in result["files"]]
        assert {f["change"] for f in result["files"]} == {"created"}
    assert walks(client) - before < 48  # each alone: one before, one after
    assert client.call("stats/get")["snapshotBytes"] == 0
    assert client.run("true", sessionId=session)["files"] == []


def test_a_view_that_serves_again_is_of_the_tree_as_it_is(client, make_dir):
    """Of a small tree that is old enough the last view is kept, and asked whether it still holds: by each look, of whomever."""
    where = make_dir("old")
    os.mkdir(os.path.join(where, "sub"))
    os.chmod(os.path.join(where, "sub"), 0o777)
    session = client.open(workspace=where)
    kernel = client.call("kernel/open", {"sessionId": session, "language": "python"})["kernelId"]
    rewrite = "s = os.stat('sub/a'); open('sub/a', 'w').write('22'); os.utime('sub/a', ns=(s.st_atime_ns, s.st_mtime_ns))"
    steps = [
        ("import os; os.umask(0)", []),
        ("x = 1", []),
        ("open('a', 'w').close()", [("a", "created")]),
        ("x = 2", []),
        ("open('sub/a', 'w').write('11');", [("sub/a", "created")]),
        (rewrite, [("sub/a", "modified")]),
        ("os.rename('sub/a', 'sub/b')", [("sub/a", "deleted"), ("sub/b", "created")]),
        (None, [("host", "created")]),  # between two cells, and so of none
        ("x = 3", []),
        ("os.remove('a'); os.rename('sub', 'bus')", [("a", "deleted"), ("bus/b", "created"), ("sub/b", "deleted")]),
    ]
    for code, changes in steps:
        time.sleep(0.03)  # what is younger than 20 ms is walked
        if code is None:
            open(os.path.join(where, "host"), "w", encoding="ascii").close()
            continue
        result = client.call("kernel/run", {"kernelId": kernel, "code": code})
        assert result["success"], result
        assert [(f["path"], f["change"]) for f in result["files"]] == changes, code
        assert client.run("true", sessionId=session)["files"] == []
    assert client.call("stats/get")["snapshotBytes"] == 0


def test_cancelled_while_others_wait_for_the_same_look(client, make_dir):
    where = make_dir("cancelled")
    fill(where, 5000, 20)
    session = client.open(workspace=where)
    futures = client.send_all([("run/argv", {"argv": ["true"], "sessionId": session})] * 8)
    for future in futures[::2]:
        client.cancel(future)
    for future in futures:
        future.wait()
    assert all(future.result()["files"] == [] for future in futures[1::2])
    client.call("session/close", {"sessionId": session})
    assert client.call("stats/get")["snapshotBytes"] == 0


@pytest.mark.endurance
def test_finished_calls_keep_no_snapshot(client, make_dir):
    where = make_dir("kept")
    fill(where, 5000, 20)
    session = client.open(workspace=where)
    sizes = []
    for _ in range(12):
        plain(client.run("true", sessionId=session))
        with open(f"/proc/{client.pid}/statm", encoding="ascii") as file:
            sizes.append(int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE"))
    assert client.call("stats/get")["snapshotBytes"] == 0
    with open(f"/proc/{client.pid}/maps", encoding="ascii") as file:
        if "libasan" in file.read():
            return  # keeps what was freed
    assert max(sizes) - min(sizes[1:]) < 2 << 20  # a snapshot a call would be 4 MiB


@pytest.mark.any_user
@pytest.mark.endurance
def test_more_names_than_are_tracked(client, make_dir, owner):
    """A note, in bounded time; the call itself is as it should be."""
    where = make_dir("many")
    options = f"mode=755,nr_inodes=0,uid={owner.pw_uid},gid={owner.pw_gid}"  # in memory, if we may: half a million names take a while
    mounted = os.geteuid() == 0 and subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", where]).returncode == 0
    try:
        many_names(client, where)
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", where], check=True)


def many_names(client, where):
    os.mkdir(os.path.join(where, "d"))
    base = os.path.join(where, "d", "0")
    for number in range(500001):  # links cost a tenth of files
        try:
            os.link(base, os.path.join(where, "d", str(number)))
        except OSError:  # none yet, or no more of this one
            base = os.path.join(where, "d", str(number))
            open(base, "wb").close()
    session = client.open(workspace=where)
    begin = time.monotonic()
    result = client.run("sh", "-c", "echo out; echo x > f", sessionId=session, timeoutMs=60000)
    took = time.monotonic() - begin
    assert (result["stdout"], result["success"], result["files"]) == ("out\n", True, [])
    note = next(n for n in result["runtimeNotes"] if n["code"] == "files_untracked")
    assert "500000" in note["message"]
    assert took < 30
    assert client.call("stats/get")["snapshotBytes"] == 0
    assert client.run("echo", "out", sessionId=session, trackFiles=False)["runtimeNotes"] == []

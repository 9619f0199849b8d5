"""file/list, file/mkdir, file/move, file/remove: order and pages, what changes in between, depth, amounts, modes."""

import os
import stat
import subprocess
import time

import pytest

from expect import refused
from file_api import Files, files, path_of  # noqa: F401 (files is a fixture)

BIG = os.environ.get("KERN_TEST_BIG") == "1"  # a directory of a million names takes a minute


def worker_memory(files):
    """Peak of the session's worker in KiB."""
    from test_file_worker import status_of, worker_of

    return int(status_of(worker_of(files.client))["VmHWM"].split()[0])


# ---- list


def test_entries(files):
    files.sh("mkdir d; printf 12345 >f; ln -s d l; mkfifo p; touch -d 2001-02-03T04:05:06.789Z f")
    entries = {path_of(e): e for e in files.pages()[0]}
    assert {n: e["type"] for n, e in entries.items()} == {"d": "directory", "f": "file", "l": "symlink", "p": "fifo"}
    assert (entries["f"]["size"], entries["f"]["mtimeMs"]) == (5, 981173106789)
    assert files.call("list", "d") == {"entries": []}


def test_bytewise_path_order(files):
    """"a-b" < "a.c" < "a/x" < "ab": as the whole paths compare, not as a tree is drawn."""
    files.sh("mkdir a B; touch a-b a.c ab a/x a/Y B/z '\u00e9' _; ln -s a zz")
    files.write(b"\xff", "")
    flat = ["B", "_", "a", "a-b", "a.c", "ab", "zz", "\u00e9", b"\xff"]
    tree = ["B", "B/z", "_", "a", "a-b", "a.c", "a/Y", "a/x", "ab", "zz", "\u00e9", b"\xff"]
    for limit in (1, 2, 3, 5, 100):
        assert files.names(limit=limit) == flat
        assert files.names(recursive=True, limit=limit) == tree


def test_paths_can_be_given_back(files, make_dir):
    files.sh("mkdir -p d/e; echo 1 >d/e/f")
    assert files.names("d", recursive=True) == ["d/e", "d/e/f"]
    assert files.names("/workspace/d/e") == ["d/e/f"]
    place = make_dir("place")
    open(place + "/f", "w").close()
    other = Files(files.client, mounts=[{"source": place, "target": "/data", "mode": "rw"}])
    assert other.names("/data") == other.names(place) == ["/data/f"]
    assert other.stat("/data/f")["size"] == 0


def test_pages(files):
    files.python("for i in range(2500): open(f'{i:05}', 'w').close()")
    pages = files.pages()
    assert [len(p) for p in pages] == [1000, 1000, 500]  # the default
    assert [path_of(e) for p in pages for e in p] == [f"{i:05}" for i in range(2500)]
    assert [len(p) for p in files.pages(limit=2500)] == [2500]
    assert [len(p) for p in files.pages(limit=100000)] == [2500]
    files.refused("list", "out_of_range", field="/limit", limit=0)
    files.refused("list", "out_of_range", field="/limit", limit=100001)


def test_pages_while_entries_come_and_go(files):
    """What is there all the time is told exactly once, also when the cursor's own name or directory has gone."""
    files.sh("for d in a b c d; do mkdir $d; for i in 1 2 3 4 5; do echo >$d/keep$i; echo >$d/go$i; done; done")
    seen, cursor, turn = [], {}, 0
    while True:
        reply = files.call("list", recursive=True, limit=3, **cursor)
        seen += [path_of(e) for e in files.entries(reply)]
        if "nextCursor" not in reply:
            break
        cursor = {"cursor": reply["nextCursor"]}
        turn += 1
        last = seen[-1]
        if "go" in last:
            files.call("remove", last)
        if last.startswith("b/"):
            files.call("remove", "b", recursive=True)  # the directory that the cursor is in
        files.write(f"{'abcd'[turn % 4]}/new{turn}", "", mkdirs=False) if turn % 4 in (0, 2, 3) else None
    kept = [p for p in seen if "keep" in p and not p.startswith("b/")]
    assert kept == [f"{d}/keep{i}" for d in "acd" for i in range(1, 6)]
    assert len(set(seen)) == len(seen) and seen == sorted(seen, key=str.encode)


def test_bad_cursors(files):
    import base64

    files.sh("touch a b c; mkdir d; touch d/e")
    good = files.call("list", limit=1)["nextCursor"]
    deep = files.call("list", limit=4, recursive=True)["nextCursor"]
    files.refused("list", "invalid_value", field="/cursor", cursor="*")
    files.refused("list", "invalid_value", field="/cursor", cursor=good, recursive=True)
    files.refused("list", "invalid_value", field="/cursor", cursor=deep)
    for raw in (b"d..", b"r../../etc", b"r/etc", b"ra//b", b"da\0b", b"xx", b"d" + b"x" * 256, b"ra/"):
        files.refused("list", "invalid_value", field="/cursor", cursor=base64.b64encode(raw).decode(), recursive=raw[:1] == b"r")
    assert files.names() == ["a", "b", "c", "d"]


def test_what_cannot_be_listed(files):
    files.sh("touch f; mkfifo p; ln -s d l; mkdir d; touch d/x; mkdir dark; touch dark/y; chmod 0 dark; ln -s / out")
    files.refused("list", "not_a_directory", "f")
    files.refused("list", "not_a_directory", "p")
    files.refused("list", "path_escape", "l")
    files.refused("list", "path_escape", "out", followLinks=True)
    files.refused("list", "not_found", "none")
    files.refused("list", "permission_denied", "dark")
    assert files.names("l", followLinks=True) == ["l/x"]
    reply = files.call("list", recursive=True)
    assert [path_of(e) for e in files.entries(reply)] == ["d", "d/x", "dark", "f", "l", "out", "p"]
    assert reply["skipped"] == 1
    files.sh("chmod 700 dark")


def test_names_that_are_not_text(files):
    names = [b"\xff\xfe", b"\xc3", b"new\nline", b"-rf", b"\xe2\x80\xaetxt.exe", b" ", b"\x7f\x1b[31m", b"x" * 255]
    for name in names:
        files.write(name, "")
    got = [n if isinstance(n, bytes) else n.encode() for n in files.names(limit=3)]
    assert got == sorted(names)


@pytest.mark.endurance
def test_a_deep_path(files):
    """2,300 directories: those whose path a request can name are listed, the others counted; all of it is removed."""
    files.python(
        "import os\nfor i in range(2300):\n os.mkdir('d'); os.chdir('d')\nopen('f', 'w').close()", timeoutMs=60000
    )
    names, cursor, skipped = [], {}, 0
    while True:
        reply = files.call("list", recursive=True, limit=1000, **cursor)
        names += [path_of(e) for e in files.entries(reply)]
        skipped += reply.get("skipped", 0)
        if "nextCursor" not in reply:
            break
        cursor = {"cursor": reply["nextCursor"]}
    assert names == ["d" + "/d" * i for i in range(2048)] and skipped == 1
    files.stat(names[-1])
    files.refused("stat", "out_of_range", names[-1] + "/d")
    files.call("remove", "d", recursive=True)
    assert files.names() == []


@pytest.mark.endurance
def test_many_names_bound_the_memory(files):
    count = 1000000 if BIG else 20000
    files.python(f"import os\nos.mkdir('big')\nfor i in range({count}): os.mknod(f'big/{{i:07}}{{\"x\" * 40}}')", timeoutMs=600000, timeout=600)
    files.stat("big")
    before = worker_memory(files)
    first = files.call("list", "big", limit=100)
    assert [path_of(e)[:11] for e in files.entries(first)] == [f"big/{i:07}" for i in range(100)]
    files.call("list", "big", limit=1000, cursor=first["nextCursor"])
    assert worker_memory(files) - before < 4096
    pages = files.pages("big", limit=100000 if BIG else 7000, timeout=600)
    assert [path_of(e)[4:11] for p in pages for e in p] == [f"{i:07}" for i in range(count)]
    start = time.monotonic()
    files.client.call("ping")
    assert time.monotonic() - start < 5
    files.call("remove", "big", recursive=True, timeout=600)
    assert files.names() == []


def test_a_long_list_can_be_cancelled(files):
    """A list of a whole tree has a worker of its own, and others go on beside it."""
    files.python("import os\nfor d in range(20):\n os.mkdir(str(d))\n for i in range(500): os.mknod(f'{d}/{i}')", timeoutMs=60000)
    future = files.client.send("file/list", {"sessionId": files.session, "recursive": True, "limit": 100000})
    assert files.stat("1")["type"] == "directory"
    files.client.cancel(future)
    reply = future.wait()
    assert "result" in reply or reply["error"]["code"] == -32800
    assert len(files.names("1")) == 500
    files.client.call("session/close", {"sessionId": files.session})


# ---- mkdir


def test_mkdir(files):
    assert files.call("mkdir", "d") == {}
    assert stat.S_IMODE(os.stat(files.host("d")).st_mode) == 0o755
    files.refused("mkdir", "exists", "d")
    error = files.refused("mkdir", "not_found", "x/y/z")
    assert "parents" in error.data["hint"]
    files.call("mkdir", "x/y/z", parents=True)
    files.call("mkdir", "x/y/z", parents=True)
    files.call("mkdir", ".", parents=True)
    files.refused("mkdir", "exists", ".")
    files.write("f", "")
    files.refused("mkdir", "exists", "f")
    files.refused("mkdir", "not_a_directory", "f", parents=True)
    files.refused("mkdir", "not_a_directory", "f/d", parents=True)
    files.sh("ln -s loop loop; ln -s d l; ln -s none dangling; mkdir shut; chmod 500 shut")
    files.refused("mkdir", "path_escape", "loop/d")
    files.refused("mkdir", "path_escape", "loop/d", followLinks=True)
    files.refused("mkdir", "exists", "loop")
    files.refused("mkdir", "exists", "dangling")
    files.refused("mkdir", "path_escape", "l/e", parents=True)
    files.call("mkdir", "l/e", followLinks=True)
    files.refused("mkdir", "permission_denied", "shut/d")
    files.refused("mkdir", "permission_denied", "shut/d/e", parents=True)
    assert files.names("d") == ["d/e"]


def test_mkdir_takes_back_what_it_made(files):
    files.sh("mkdir -p a; touch a/f")
    files.refused("mkdir", "not_a_directory", "a/f/x/y", parents=True)
    files.refused("mkdir", "invalid_path", "b/c/" + "d" * 256, parents=True)
    assert files.names(recursive=True) == ["a", "a/f"]


# ---- move


def test_move(files):
    files.sh("echo 1 >f; mkdir d; echo 2 >d/g; ln -s f l")
    assert files.call("move", "f", to="d/h") == {}
    files.call("move", "d", to="e")
    files.call("move", "l", to="m")
    assert files.names(recursive=True) == ["e", "e/g", "e/h", "m"] and os.readlink(files.host("m")) == "f"
    files.refused("move", "not_found", "none", to="x")
    files.refused("move", "not_found", "m", "/to", to="no/x")
    files.refused("move", "missing", "m", "/to")
    files.refused("move", "invalid_value", "m", "/toBase64", to="x", toBase64="eA==")
    files.call("move", "m", toBase64="/w==")
    assert files.names() == ["e", b"\xff"]
    files.refused("move", "exists", "e", "/toBase64", toBase64="/w==")


def test_move_replaces_only_when_told(files):
    files.sh("echo 1 >f; echo 2 >g; mkdir d e full; echo x >full/x")
    error = files.refused("move", "exists", "f", "/to", to="g")
    assert "replace" in error.data.get("hint", "")
    assert (files.bytes("f"), files.bytes("g")) == (b"1\n", b"2\n")
    files.refused("move", "exists", "d", "/to", to="e")
    files.call("move", "f", to="g", replace=True)
    files.call("move", "d", to="e", replace=True)
    assert files.names() == ["e", "full", "g"] and files.bytes("g") == b"1\n"
    files.refused("move", "not_empty", "e", "/to", to="full", replace=True)
    files.refused("move", "is_directory", "g", "/to", to="e", replace=True)
    files.refused("move", "not_a_directory", "e", "/to", to="g", replace=True)


def test_move_of_what_cannot_be_moved(files, make_dir):
    files.sh("mkdir -p d/e; touch f")
    error = files.refused("move", "invalid_path", "d", "/to", to="d/e/x")
    assert "itself" in error.message
    files.refused("move", "invalid_path", ".", to="x")
    files.refused("move", "invalid_path", "f", "/to", to=".")
    place = make_dir("place")
    other = Files(files.client, mounts=[{"source": place, "target": "/data", "mode": "rw"}])
    other.write("f", "x")
    error = other.refused("move", "invalid_path", "f", "/to", to="/data/f")
    assert "read it" in error.data["hint"] and error.data["errno"] == 18
    other.write("/data/a", "x")
    other.call("move", "/data/a", to="/data/b")
    assert os.listdir(place) == ["b"]
    other.call("remove", "/data/b")


# ---- remove


def test_remove(files):
    files.sh("echo 1 >f; mkdir d full; echo x >full/x; ln -s full l; mkfifo p")
    for name in ("f", "d", "l", "p"):
        assert files.call("remove", name) == {}
    error = files.refused("remove", "not_empty", "full")
    assert "recursive" in error.data["hint"]
    files.refused("remove", "not_found", "f")
    files.refused("remove", "not_a_directory", "full/x/y")
    files.call("remove", "full", recursive=True)
    files.write("g", "")
    files.call("remove", "g", recursive=True)
    assert files.names() == []
    for recursive in (False, True):
        files.refused("remove", "invalid_path", ".", recursive=recursive)
        files.refused("remove", "invalid_path", "x/..", recursive=recursive)
        files.refused("remove", "invalid_path", files.workspace, recursive=recursive)


def test_remove_follows_no_link(files, make_dir):
    victim = make_dir("victim")
    open(victim + "/kept", "w").close()
    files.sh(f"mkdir -p d/e; ln -s {victim} d/out; ln -s {victim}/kept d/e/file; ln -s ../.. d/up; echo x >keep; ln -s ../keep d/k")
    files.refused("remove", "path_escape", "d/out/kept")
    files.refused("remove", "path_escape", "d/out/kept", followLinks=True)
    files.call("remove", "d", recursive=True)
    assert os.listdir(victim) == ["kept"] and files.names() == ["keep"]


def test_remove_whatever_the_modes(files):
    files.sh("mkdir -p d/dark/x/y d/ro/sub; touch d/dark/x/f d/ro/f d/ro/sub/g; chmod 0 d/dark/x d/dark d/ro/f; chmod 500 d/ro/sub d/ro d")
    files.call("remove", "d", recursive=True)
    files.sh("mkdir -p shut/d; chmod 500 shut")
    files.refused("remove", "permission_denied", "shut/d", recursive=True)  # its place is not in what is removed
    assert files.names() == ["shut"]


def test_remove_stays_on_its_mount(client, make_dir, as_user):
    if as_user != "root":
        pytest.skip("needs root to mount")
    workspace = make_dir("w")
    os.makedirs(workspace + "/d/m")
    subprocess.run(["mount", "-t", "tmpfs", "none", workspace + "/d/m"], check=True)
    try:
        open(workspace + "/d/m/kept", "w").close()
        files = Files(client, workspace=workspace)
        error = client.fail("file/remove", {"sessionId": files.session, "path": "d", "recursive": True})
        assert error.reason in ("path_escape", "io") and os.listdir(workspace + "/d/m") == ["kept"]
        refused(client.fail("file/read", {"sessionId": files.session, "path": "d/m/kept"}), "path_escape", "/path")
        client.call("session/close", {"sessionId": files.session})
    finally:
        subprocess.run(["umount", workspace + "/d/m"], check=True)


def test_remove_of_what_grows(files):
    """Somebody makes files in it all the time: it ends, gone or with a word."""
    files.sh("mkdir d")
    run = files.client.start("sh", "-c", "i=0; while :; do : >d/$i 2>/dev/null; i=$((i+1)); done", sessionId=files.session)
    for _ in range(50):
        future = files.client.send("file/remove", {"sessionId": files.session, "path": "d", "recursive": True})
        reply = future.wait(30)
        assert "result" in reply or reply["error"]["data"]["reason"] in ("not_empty", "not_found", "io"), reply
        files.call("mkdir", "d", parents=True)
    files.client.cancel(run)
    run.wait()


def test_close_removes_everything(client):
    files = Files(client)
    files.write("a/b/c", "x")
    files.sh("chmod 0 a/b; mkdir ro; touch ro/f; chmod 500 ro")
    client.call("session/close", {"sessionId": files.session})
    assert not os.path.exists(files.workspace)

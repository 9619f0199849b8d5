"""file/write: replace, fail, append, ifMatch, directories, modes, hard links, what is refused, and that nothing stays behind."""

import base64
import os
import stat
import threading

import pytest

from expect import refused
from file_api import Files, files  # noqa: F401 (a fixture)

MIB = 1 << 20


def leftovers(files):
    return [n for n in files.names(recursive=True) if ".kern-tmp" in str(n)]


def test_new_and_replaced(files):
    first = files.write("f", "one")
    assert (first["size"], first["created"]) == (3, True)
    second = files.write("f", b"\0\xff")
    assert (second["size"], second["created"], files.bytes("f")) == (2, False, b"\0\xff")
    assert second["etag"] == files.stat("f")["etag"] != first["etag"]
    assert files.names() == ["f"]


def test_content_from_a_blob(files):
    data = bytes(range(256)) * 40000  # 10 MiB
    blob = None
    for at in range(0, len(data), 4 * MIB):
        piece = {"base64": base64.b64encode(data[at : at + 4 * MIB]).decode()}
        blob = files.client.call("blob/write", {**({"id": blob} if blob else {}), **piece})["id"]
    reply = files.call("write", "large", content={"blob": {"id": blob}})
    assert reply["size"] == len(data) and files.sh("wc -c <large") == f"{len(data)}\n"
    assert files.bytes("large") == data
    files.refused("write", "unknown_handle", "x", "/content/blob/id", content={"blob": {"id": "0" * 32}})


def test_content_above_the_cap(sidecar):
    files = Files(sidecar())
    blob = files.client.call("blob/write", {"text": "x"})["id"]
    for _ in range(8):
        files.client.call("blob/write", {"id": blob, "text": "y" * (7 * MIB + MIB // 2)})
    assert files.call("write", "f", content={"blob": {"id": blob}})["size"] == 60 * MIB + 1
    files.refused("write", "too_large", "f", "/content", content={"blob": {"id": grown(files, blob)}})


def grown(files, blob):
    return files.client.call("blob/write", {"id": blob, "text": "z" * (7 * MIB)})["id"]


def test_fail_if_it_exists(files):
    assert files.write("f", "one", ifExists="fail")["created"] is True
    error = files.refused("write", "exists", "f", content="two", ifExists="fail")
    assert "ifExists" in error.data["hint"] and files.bytes("f") == b"one"
    files.sh("mkdir d; mkfifo p; ln -s f l")
    files.refused("write", "is_directory", "d", content="", ifExists="fail")
    files.refused("write", "path_escape", "l", content="", ifExists="fail")


def test_append(files):
    first = files.write("f", "one", ifExists="append")
    second = files.write("f", "two", ifExists="append")
    assert (first["created"], second["created"], second["size"], files.bytes("f")) == (True, False, 6, b"onetwo")
    assert second["etag"] == files.stat("f")["etag"]
    inode = os.stat(files.host("f")).st_ino
    files.write("f", "", ifExists="append")
    assert os.stat(files.host("f")).st_ino == inode


def test_if_match(files):
    etag = files.write("f", "one")["etag"]
    second = files.write("f", "two", ifMatch=etag)["etag"]
    error = files.refused("write", "changed", "f", "/ifMatch", content="three", ifMatch=etag)
    assert "read it again" in error.data["hint"] and files.bytes("f") == b"two"
    files.refused("write", "changed", "f", "/ifMatch", content="x", ifMatch=etag, ifExists="append")
    assert files.write("f", "+", ifMatch=second, ifExists="append")["size"] == 4
    files.refused("write", "changed", "none", "/ifMatch", content="x", ifMatch=second)
    files.refused("write", "changed", "no/ne", "/ifMatch", content="x", ifMatch=second)
    files.refused("write", "invalid_value", "f", "/ifMatch", content="x", ifMatch=second, ifExists="fail")
    assert files.names() == ["f"]


def test_two_writers_with_one_etag(files):
    """Of many who ask for the same old content one wins."""
    etag = files.write("f", "0")["etag"]
    futures = [
        files.client.send(
            "file/write", {"sessionId": files.session, "path": "f", "content": str(i), "ifMatch": etag}
        )
        for i in range(1, 11)
    ]
    replies = [f.wait() for f in futures]
    assert ["result" in r for r in replies] == [True] + [False] * 9
    assert files.bytes("f") == b"1"


def test_directories_on_the_way(files):
    files.write("a/b/c/f", "x")
    assert stat.S_IMODE(os.stat(files.host("a/b/c")).st_mode) == 0o755
    files.refused("write", "not_found", "x/y/f", content="", mkdirs=False)
    files.write("a/b/g", "", mkdirs=False)
    files.refused("write", "not_a_directory", "a/b/g/x/y", content="")
    files.sh("ln -s a link; ln -s none dangling; ln -s loop loop")
    for name in ("link/x/f", "dangling/f", "loop/f", "a/../link/f"):
        files.refused("write", "path_escape", name, content="")
    assert files.names(recursive=True) == ["a", "a/b", "a/b/c", "a/b/c/f", "a/b/g", "dangling", "link", "loop"]


def test_directories_go_again_when_the_write_fails(files):
    files.sh("mkdir -p a/b")
    files.refused("write", "changed", "a/b/c/d/f", "/ifMatch", content="", ifMatch="b0")
    files.sh("mkdir shut; chmod 500 shut")
    files.refused("write", "permission_denied", "shut/c/d/f", content="")
    assert files.names(recursive=True) == ["a", "a/b", "shut"]


def test_modes(files):
    files.write("default", "")
    files.write("given", "", mode=0o750)
    files.write("none", "", mode=0, ifExists="append")
    files.sh("echo x >script; chmod 700 script")
    files.write("script", "new", mode=0o644)
    modes = {n: files.stat(n)["mode"] for n in ("default", "given", "none", "script")}
    assert modes == {"default": 0o644, "given": 0o750, "none": 0, "script": 0o700}
    files.refused("write", "out_of_range", "f", "/mode", content="", mode=0o1000)


def test_rights_of_the_boxs_user(files):
    files.sh("echo x >ro; chmod 400 ro; mkdir d; echo x >d/f; chmod 500 d")
    files.refused("write", "permission_denied", "ro", content="new")
    files.refused("write", "permission_denied", "ro", content="new", ifExists="append")
    files.refused("write", "permission_denied", "d/f", content="new")  # no place for the new file
    assert files.write("d/f", "y", ifExists="append")["size"] == 3
    assert files.bytes("ro") == b"x\n" and leftovers(files) == []


def test_owner_is_the_boxs_user(files):
    """As if a program in the box had made it."""
    files.write("ours", "x")
    files.sh("echo x >theirs")
    ours, theirs = os.stat(files.host("ours")), os.stat(files.host("theirs"))
    assert (ours.st_uid, ours.st_gid, stat.S_IMODE(ours.st_mode)) == (theirs.st_uid, theirs.st_gid, 0o644)


def test_what_is_no_file(files):
    files.sh("mkdir d; mkfifo p; ln -s none l; ln -s p lp")
    files.python("import socket; socket.socket(socket.AF_UNIX).bind('s')")
    for how in ("replace", "append", "fail"):
        files.refused("write", "is_directory", "d", content="", ifExists=how)
        files.refused("write", "is_directory", ".", content="", ifExists=how)
        files.refused("write", "not_regular", "p", content="", ifExists=how)
        files.refused("write", "not_regular", "s", content="", ifExists=how)
        files.refused("write", "path_escape", "l", content="", ifExists=how)
        files.refused("write", "not_regular", "lp", content="", ifExists=how, followLinks=True)
    assert leftovers(files) == []


def test_links_inside_are_followed_when_asked(files):
    files.sh("mkdir d; echo old >d/f; ln -s d/f l; ln -s d dl; ln -s d/new dangling; ln -s ../.. out; ln -s /etc abs")
    files.write("l", "new", followLinks=True)
    assert files.bytes("d/f") == b"new" and os.path.islink(files.host("l"))
    files.write("dl/g", "x", followLinks=True)
    files.write("dangling", "made", followLinks=True)
    files.write("dl/../h/i", "y", followLinks=True)  # ".." is taken from the text, before any link
    assert files.names("d") == ["d/f", "d/g", "d/new"] and files.bytes("h/i") == b"y"
    for name in ("out/x", "abs/x", "out", "abs"):
        files.refused("write", "path_escape", name, content="", followLinks=True)


def test_a_file_with_several_names(files):
    """Replacing gives this name a new file; appending is seen under every name."""
    files.sh("echo old >a; ln a b")
    files.write("a", "+", ifExists="append")
    assert files.bytes("b") == b"old\n+"
    files.write("a", "new")
    assert (files.bytes("a"), files.bytes("b")) == (b"new", b"old\n+")


def test_hard_link_to_a_file_of_somebody_else(client, make_dir, as_user, owner):
    if as_user != "root":
        pytest.skip("only root can make such a file here")
    workspace = make_dir("shared")
    os.chmod(workspace, 0o777)
    with open(workspace + "/theirs", "w") as file:
        file.write("theirs")
    os.chown(workspace + "/theirs", 12345, 12345)
    os.chmod(workspace + "/theirs", 0o666)
    os.link(workspace + "/theirs", workspace + "/link")
    files = Files(client, workspace=workspace)
    for how in ("replace", "append"):
        error = files.refused("write", "permission_denied", "link", content="ours", ifExists=how)
        assert "hard link" in error.message
    files.refused("edit", "permission_denied", "link", edits=[{"oldText": "theirs", "newText": "ours"}])
    assert files.bytes("link") == b"theirs"
    files.refused("remove", "permission_denied", "link")
    os.unlink(workspace + "/link")
    assert files.write("link", "ours")["created"] is True
    with open(workspace + "/theirs") as file:
        assert file.read() == "theirs"


def test_full_file_system(client, make_dir, as_user):
    """No half file, no temporary, and the old content is there."""
    if as_user != "root":
        pytest.skip("needs root to mount")
    place = make_dir("small")
    os.system(f"mount -t tmpfs -o size=1m,mode=777 none {place}")
    try:
        files = Files(client, mounts=[{"source": place, "target": "/small", "mode": "rw"}])
        files.write("/small/f", "old")
        files.refused("write", "no_space", "/small/f", content="x" * 2 * MIB)
        files.refused("write", "no_space", "/small/f", content="x" * 2 * MIB, ifExists="append")
        files.refused("write", "no_space", "/small/new", content="x" * 2 * MIB, ifExists="append")
        files.refused("write", "no_space", "/small/d/e/new", content="x" * 2 * MIB)
        assert files.bytes("/small/f") == b"old" and os.listdir(place) == ["f"]
        client.call("session/close", {"sessionId": files.session})
    finally:
        os.system(f"umount {place}")


def test_readers_never_see_half(files):
    """A program in the box reads while the file is replaced: always one of the two whole contents."""
    files.write("f", "a" * 100000)
    code = (
        "import time; end = time.time() + 1; seen = set()\n"
        "while time.time() < end: d = open('f').read(); seen.add((len(d), d[0], len(set(d))))\n"
        "print(sorted(seen))"
    )
    run = files.client.start("python3", "-c", code, sessionId=files.session)
    while not run.done():
        files.write("f", "b" * 50000)
        files.write("f", "a" * 100000)
    assert set(eval(run.result()["stdout"])) <= {(100000, "a", 1), (50000, "b", 1)}
    assert leftovers(files) == []


def test_writes_apply_in_the_order_they_came(files):
    futures = [
        files.client.send("file/write", {"sessionId": files.session, "path": "f", "content": f"{i};", "ifExists": "append"})
        for i in range(200)
    ]
    for future in futures:
        future.result()
    assert files.bytes("f").decode() == "".join(f"{i};" for i in range(200))


def test_append_beside_a_program_that_appends(files):
    run = files.client.start("sh", "-c", "i=0; while [ $i -lt 3000 ]; do echo box >>f; i=$((i+1)); done", sessionId=files.session)
    for _ in range(300):
        files.write("f", "ours\n", ifExists="append")
    run.result()
    lines = files.sh("sort f | uniq -c").split()
    assert lines == ["3000", "box", "300", "ours"]


def test_new_files_are_made_once(client, make_dir):
    """O_EXCL: of many sessions on one directory one makes the file."""
    workspace = make_dir("shared")
    sessions = [Files(client, workspace=workspace) for _ in range(4)]
    for i in range(20):
        futures = [
            client.send("file/write", {"sessionId": f.session, "path": f"f{i}", "content": f.session, "ifExists": "fail"})
            for f in sessions
        ]
        replies = [f.wait() for f in futures]
        assert sum("result" in r for r in replies) == 1
        assert {r["error"]["data"]["reason"] for r in replies if "error" in r} == {"exists"}


def test_worker_killed_in_the_middle(files):
    """What is left has a name of ours, and the old file is whole."""
    import signal

    from test_file_worker import worker_of

    files.write("f", "old")
    blob = files.client.call("blob/write", {"text": "x" * 7 * MIB})["id"]
    for _ in range(7):
        files.client.call("blob/write", {"id": blob, "text": "x" * 7 * MIB})
    future = files.client.send("file/write", {"sessionId": files.session, "path": "f", "content": {"blob": {"id": blob}}})
    killer = threading.Thread(target=kill_when_it_writes, args=(files, worker_of(files.client), signal.SIGKILL))
    killer.start()
    reply = future.wait()
    killer.join()
    names = [n for n in os.listdir(files.workspace) if n != "f"]
    assert all(n.startswith(".kern-tmp-") for n in names)
    if "error" in reply:
        assert reply["error"]["data"]["reason"] == "internal" and files.bytes("f") == b"old"


def kill_when_it_writes(files, worker, number):
    for _ in range(100000):
        if any(n.startswith(".kern-tmp-") for n in os.listdir(files.workspace)):
            os.kill(worker, number)
            return


def test_mounts(client, make_dir):
    places = {name: make_dir(name) for name in ("ro", "rw")}
    mounts = [{"source": places[m], "target": f"/{m}", "mode": m} for m in places]
    files = Files(client, mounts=mounts)
    assert files.write("/rw/d/f", "x")["created"] is True
    error = client.fail("file/write", {"sessionId": files.session, "path": "/ro/f", "content": "x"})
    refused(error, "read_only", "/path")
    assert "rw" in error.data["hint"]
    for method, params in {
        "mkdir": {}, "remove": {}, "move": {"to": "/rw/x"}, "edit": {"edits": [{"oldText": "a", "newText": "b"}]},
    }.items():  # fmt: skip
        refused(client.fail(f"file/{method}", {"sessionId": files.session, "path": "/ro/f", **params}), "read_only", "/path")
    refused(client.fail("file/move", {"sessionId": files.session, "path": "/rw/d/f", "to": "/ro/f"}), "read_only", "/to")


def test_injection_is_only_a_name(files):
    """Nothing here goes through a shell or a format."""
    for name in ["'; import os; os.system('echo INJECTED'); #", "$(touch pwned)", "%s%n", "`id`", "a\nb", "-rf"]:
        files.write(name, "x")
        assert files.bytes(name) == b"x"
        files.call("remove", name)
    assert files.names() == []

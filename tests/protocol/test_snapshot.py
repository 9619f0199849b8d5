"""session/snapshot: what is in it, byte for byte the same for the same tree, readable by others; and where it may be written."""

import base64
import gzip
import hashlib
import io
import os
import socket
import stat
import subprocess
import tarfile
import time

import pytest

import archives
from expect import refused

TREE = r"""
mkdir -p d/e empty; echo hello >a.txt; echo x >d/e/f; chmod 750 d; chmod 755 a.txt; : >nothing
ln d/e/f hard; ln -s a.txt link; ln -s ../a.txt d/up; ln -s /etc abs; ln -s ../.. d/out; ln -s e/../e d/winding; ln -s nowhere dangling
mkfifo fifo
printf 1 >"$(printf 'bad\377name')"; printf 2 >"$(printf 'new\nline')"; printf 3 >nfc-é; printf 4 >"$(printf 'nfd-e\314\201')"
printf 5 >./-rf; mkdir -p LONG; cd LONG; printf 6 >LONG2
"""
TREE = TREE.replace("LONG2", "y" * 200).replace("LONG", "x" * 120)


@pytest.fixture
def session(client, make_dir):
    """In a workspace of the host, with a tree of everything that is difficult."""
    path = make_dir("ws")
    session = client.open(workspace=path)
    assert client.run("sh", "-c", TREE, sessionId=session)["exitCode"] == 0
    with open(path + "/sparse", "wb") as file:
        os.ftruncate(file.fileno(), 100 << 20)  # and a hole at the end
        os.pwrite(file.fileno(), b"middle", 50 << 20)
        os.fchown(file.fileno(), os.stat(path + "/a.txt").st_uid, os.stat(path + "/a.txt").st_gid)
    return session, path


def snapshot(client, session, **more):
    """(result, bytes of the archive)"""
    result = client.call("session/snapshot", {"sessionId": session, **more})
    if "path" in more:
        with open(more["path"], "rb") as file:
            data = file.read()
    else:
        assert result["blob"]["blob"]["sha256"] == result["sha256"] and result["blob"]["blob"]["mime"] == "application/gzip"
        data = client.text(result["blob"])
    assert (len(data), hashlib.sha256(data).hexdigest()) == (result["bytes"], result["sha256"])
    return result, data


def skipped(result):
    return {item.get("path") or base64.b64decode(item["pathBase64"]): item["reason"] for item in result["skipped"]}


def test_all_of_it(client, session, place, owner):
    session, path = session
    result, data = snapshot(client, session, path=place + "/a.tar.gz", links="inside")
    assert skipped(result) == {"abs": "symlink_outside", "d/out": "symlink_outside", "d/winding": "symlink_outside", "fifo": "fifo"}
    made = os.stat(place + "/a.tar.gz")
    assert (stat.S_IMODE(made.st_mode), made.st_uid) == (0o600, owner.pw_uid)
    assert [name for name in os.listdir(place) if name.startswith(".kern")] == []
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        members = {os.fsencode(m.name): m for m in archive}
        assert list(members) == sorted(members) and len(members) == result["entries"]
        for name, member in members.items():
            there = os.lstat(os.path.join(os.fsencode(path), name))
            assert (member.uid, member.gid, member.uname, member.gname) == (0, 0, "", "")
            assert abs(member.mtime - there.st_mtime) < 1e-5
            if member.isreg():
                assert (member.size, member.mode) == (there.st_size, stat.S_IMODE(there.st_mode))
                with open(os.path.join(os.fsencode(path), name), "rb") as file:
                    assert archive.extractfile(member).read() == file.read()
    assert set(members) == set(archives.listing(path)) - {b"abs", b"d/out", b"d/winding", b"fifo"}
    assert members[b"hard"].islnk() and members[b"hard"].linkname == "d/e/f"
    assert members[b"d/up"].issym() and members[b"sparse"].issparse()
    assert len(data) < 5000


def test_no_links_unless_asked(client, session):
    result, data = snapshot(client, session[0])
    assert {name: reason for name, reason in skipped(result).items() if name != "fifo"} == dict.fromkeys(
        ["abs", "d/out", "d/up", "d/winding", "dangling", "link"], "symlink"
    )


def test_gnu_tar_unpacks_it(client, session, place):
    session, path = session
    snapshot(client, session, path=place + "/a.tar.gz", links="inside")
    os.mkdir(place + "/out")
    done = subprocess.run(["tar", "-xpzf", place + "/a.tar.gz", "-C", place + "/out", "--no-same-owner"], capture_output=True, check=True)
    assert set(done.stderr.splitlines()) <= {b"tar: Ignoring unknown extended header keyword 'hdrcharset'"}
    ours, theirs = archives.listing(path), archives.listing(place + "/out")
    for left_out in (b"abs", b"d/out", b"d/winding", b"fifo"):
        del ours[left_out]
    assert {name: what[:1] + what[3:] for name, what in ours.items()} == {name: what[:1] + what[3:] for name, what in theirs.items()}
    assert os.stat(place + "/out/sparse").st_blocks * 512 < 1 << 20


@pytest.mark.any_user
@pytest.mark.parametrize("form", ["--format=gnu", "--format=pax", "--format=ustar", "--format=v7", "--format=pax --sparse", "python-pax", "python-gnu"])
def test_archives_of_others(client, session, place, form):
    session, path = session
    client.run("sh", "-c", "rm abs d/out d/winding fifo", sessionId=session)
    if "ustar" in form or "v7" in form:
        client.run("sh", "-c", "rm -r xxx*", sessionId=session)
    archive = place + "/theirs.tar"
    if form.startswith("python"):
        with tarfile.open(archive, "w:gz", format=tarfile.PAX_FORMAT if form == "python-pax" else tarfile.GNU_FORMAT) as made:
            made.add(path, ".")
    else:
        subprocess.run(["tar", *form.split(), "-C", path, "-czf", archive, "."], check=True, capture_output=True)
    os.chmod(archive, 0o644)
    before = archives.listing(path)
    client.run("sh", "-c", "rm -r d a.txt; echo y >hard", sessionId=session)
    client.call("session/restore", {"sessionId": session, "path": archive, "links": "inside"})
    unit = {"--format=pax": 1, "--format=pax --sparse": 1, "python-pax": 10**4}.get(form, 10**9)  # Python: a float
    for name, what in archives.listing(path).items():
        was = before.pop(name)
        assert abs(what[3] - was[3]) < unit
        assert what[:3] + what[4:] == was[:3] + was[4:], name
    assert before == {}


def test_there_and_back(client, session, make_dir):
    """Two snapshots of one tree are equal, and so is the one of what was restored."""
    session, path = session
    _, first = snapshot(client, session, links="inside")
    time.sleep(1.1)  # gzip would tell the second
    _, second = snapshot(client, session, links="inside")
    assert first == second
    other = client.open(workspace=make_dir("other"))
    client.call("session/restore", {"sessionId": other, "blob": {"base64": base64.b64encode(first).decode()}, "links": "inside"})
    result, third = snapshot(client, other, links="inside")
    assert first == third and result["skipped"] == []


def test_empty(client):
    result, data = snapshot(client, client.open())
    assert (result["entries"], result["skipped"]) == (0, []) and gzip.decompress(data) == b"\0" * 1024


def test_what_cannot_be_read(client, session, as_user):
    session, path = session
    client.run("sh", "-c", "echo s >secret; chmod 0 secret; mkdir -p closed/in; chmod 0 closed", sessionId=session)
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(path + "/sock")
    result, data = snapshot(client, session, links="inside")
    sock.close()
    found = skipped(result)
    assert (found["secret"], found["closed"], found["sock"]) == ("unreadable", "unreadable", "socket")
    assert "secret" not in archives.contents(data)
    client.run("sh", "-c", "chmod 700 closed secret", sessionId=session)


def test_the_rights_are_those_of_the_box(client, make_dir, as_user):
    if as_user != "root":
        pytest.skip("needs root")
    path = make_dir("ws")
    with open(path + "/of-somebody", "w") as file:
        file.write("secret")
    os.chmod(path + "/of-somebody", 0o600)
    os.chown(path + "/of-somebody", 12345, 12345)
    result, data = snapshot(client, client.open(workspace=path))
    assert skipped(result) == {"of-somebody": "unreadable"} and archives.contents(data) == {}


def test_deep_and_long(client, session):
    """What has a path that restore would not take is named, and does not stop anything."""
    session, path = session
    script = "d=0; while [ $d -lt 600 ]; do mkdir dddddddddd; cd dddddddddd; d=$((d+1)); done; echo x >bottom"
    client.run("sh", "-c", script, sessionId=session)
    result, data = snapshot(client, session, links="inside")
    deepest = max(archives.contents(data), key=len)
    assert deepest.count("/") == 255
    assert skipped(result)[deepest + "/dddddddddd"] == "name_too_long"
    client.call("session/restore", {"sessionId": session, "blob": {"base64": base64.b64encode(data).decode()}, "links": "inside"})


@pytest.mark.any_user
@pytest.mark.endurance
def test_many_skipped(client, session):
    session, path = session
    client.run("python3", "-c", "import os\nfor i in range(10100): os.symlink('/x', 'l%05d' % i)", sessionId=session)
    result = client.call("session/snapshot", {"sessionId": session, "links": "inside"})
    assert result["skippedMore"] == 104
    listed = client.text(result["skipped"])
    assert listed.count(b"symlink_outside") >= 9996


@pytest.mark.any_user
def test_changes_meanwhile(client, make_dir):
    """Files grow and shrink under our hands: the archive stays an archive, and says so."""
    path = make_dir("ws")
    session = client.open(workspace=path)
    client.run("sh", "-c", "i=0; while [ $i -lt 40 ]; do head -c 1000000 /dev/urandom >f$i; i=$((i+1)); done", sessionId=session)
    writer = "import os, random\nwhile not os.path.exists('stop'):\n  os.truncate('f%d' % random.randrange(40), random.randrange(2000000))\n"
    running = client.start("python3", "-c", writer, sessionId=session, timeoutMs=60000)
    changed = set()
    for _ in range(3):
        result, data = snapshot(client, session)
        changed |= {reason for reason in skipped(result).values()}
        assert len(archives.contents(data)) == 40
    client.run("touch", "stop", sessionId=session)
    assert running.result()["success"]
    assert changed == {"changed"}


def test_runs_go_on(client, session):
    session, path = session
    running = client.start("sh", "-c", "sleep 1; echo done", sessionId=session)
    snapshot(client, session)
    assert not running.done()
    assert client.out(running.result()) == "done\n"


# ---- where it goes

def test_replaces_a_file_when_it_is_whole(client, session, place):
    target = place + "/a.tar.gz"
    for _ in range(2):
        snapshot(client, session[0], path=target)
    client.run("sh", "-c", "head -c 100000000 /dev/urandom >big", sessionId=session[0])
    with open(target, "rb") as file:
        old = file.read()
    future = client.send("session/snapshot", {"sessionId": session[0], "path": target})
    client.wait_for(lambda: any(n.startswith(".kern-snapshot") for n in os.listdir(place)) or future.done(), "the file")
    client.notify("$/cancel", {"id": future.id})
    refused(future.error(), "cancelled")
    with open(target, "rb") as file:
        assert file.read() == old
    assert [name for name in os.listdir(place) if name.startswith(".kern")] == []


def test_places(client, session, place, make_dir, as_user):
    session, path = session
    where = {"sessionId": session}

    def fails(target, reason):
        refused(client.fail("session/snapshot", {**where, "path": target}), reason, "/path")

    os.mkfifo(place + "/fifo")
    os.symlink("x", place + "/link")
    os.symlink(path, place + "/into")
    os.mkdir(place + "/closed", 0o700)
    fails("a.tar.gz", "invalid_value")
    fails(place, "is_directory")
    fails(place + "/", "is_directory")
    fails(place + "/fifo", "not_regular")
    fails(place + "/link", "not_regular")
    fails("/dev/null", "not_regular")
    fails(place + "/no/a", "not_found")
    fails(place + "/fifo/a", "not_a_directory")
    fails(path + "/a.tar.gz", "invalid_path")
    fails(path + "/d/a.tar.gz", "invalid_path")
    fails(place + "/into/a.tar.gz", "invalid_path")
    fails(place + "/" + "n" * 256, "invalid_path")
    if as_user != "root":
        if os.geteuid() == 0:
            fails(place + "/closed/a", "permission_denied")
        fails("/etc/a.tar.gz", "permission_denied")
    other = make_dir("other")
    client.open(workspace=other)
    fails(other + "/a.tar.gz", "invalid_path")
    refused(client.fail("session/snapshot", {"sessionId": "nobody"}), "unknown_handle", "/sessionId")
    assert [name for name in os.listdir(place) if name.startswith(".kern")] == []


@pytest.mark.any_user
@pytest.mark.endurance
def test_too_large_for_a_blob(client, make_dir):
    session = client.open(workspace=make_dir("ws"))
    client.run("sh", "-c", "head -c 300000000 /dev/urandom >big", sessionId=session, timeoutMs=60000)
    error = client.fail("session/snapshot", {"sessionId": session})
    refused(error, "too_large")
    assert "path" in error.data["hint"]
    assert client.call("stats/get")["blobs"] == 0


def test_no_space(client, session):
    if not os.path.exists("/dev/full") or os.geteuid() != 0:
        pytest.skip("needs root to make a small file system")
    session, path = session
    small = os.path.dirname(path) + "/small"
    os.mkdir(small)
    os.chmod(small, 0o777)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=777", "none", small], capture_output=True).returncode != 0:
        pytest.skip("needs the right to mount")
    try:
        client.run("sh", "-c", "head -c 1000000 /dev/urandom >big", sessionId=session)
        refused(client.fail("session/snapshot", {"sessionId": session, "path": small + "/a"}), "no_space", "/path")
        assert os.listdir(small) == []
    finally:
        subprocess.run(["umount", "-l", small], check=True)  # the worker may be dying still


def test_restore_without_space(client, make_dir):
    if os.geteuid() != 0:
        pytest.skip("needs root to make a small file system")
    path = make_dir("ws")
    owner = os.stat(path)
    options = f"size=1m,mode=755,uid={owner.st_uid},gid={owner.st_gid}"
    if subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", path], capture_output=True).returncode != 0:
        pytest.skip("needs the right to mount")
    try:
        session = client.open(workspace=path)
        client.run("sh", "-c", "head -c 400000 /dev/urandom >old", sessionId=session)
        before = archives.listing(path)
        data = archives.packed(archives.entry(b"new", os.urandom(900000)))
        error = client.fail("session/restore", {"sessionId": session, "blob": {"base64": base64.b64encode(data).decode()}})
        refused(error, "no_space")
        assert archives.listing(path) == before
        client.call("session/close", {"sessionId": session})
    finally:
        client.close()
        subprocess.run(["umount", "-l", path], check=True)

"""session/restore: what an archive must not hold (worker/jobs/unpack.h), that a refused one changes nothing, and that one that is taken
replaces the workspace."""

import base64
import gzip
import io
import os
import shutil
import subprocess
import tarfile
import time

import pytest

import archives
from archives import END, entry, gnu, header, packed, pax, tar
from expect import refused


@pytest.fixture
def workspace(make_dir, as_user, client):
    """A workspace with something in it that a refused archive must leave as it is."""
    path = make_dir("ws")
    session = client.open(workspace=path)
    client.run("sh", "-c", "mkdir -p d/e; echo old >d/e/f; ln -s d link; echo x >a; chmod 600 a; touch -d @5 d/e/f d", sessionId=session)
    return session, path


def restore(client, session, data, **more):
    return client.call("session/restore", {"sessionId": session, "blob": {"base64": base64.b64encode(data).decode()}, **more})


def restore_fails(client, session, data, **more):
    return client.fail("session/restore", {"sessionId": session, "blob": {"base64": base64.b64encode(data).decode()}, **more})


# ---- hostile archives: name -> (archive, a word of the message, params)

LONG = b"n" * 256
DEEP = b"/".join([b"d"] * 257)
HOSTILE = {
    "absolute": (packed(entry(b"/etc/x")), "absolute"),
    "absolute-in-pax": (packed(pax((b"path", b"/etc/x")), entry(b"a")), "absolute"),
    "absolute-gnu": (packed(gnu(b"/etc/x"), entry(b"a")), "absolute"),
    "dotdot": (packed(entry(b"../x")), '".."'),
    "dotdot-inside": (packed(entry(b"a/../../x")), '".."'),
    "dotdot-harmless": (packed(entry(b"a/../x")), '".."'),
    "dotdot-last": (packed(entry(b"a/..", type=b"5")), '".."'),
    "dotdot-prefix": (packed(entry(b"x", prefix=b"..")), '".."'),
    "empty-name": (packed(entry(b"")), "name"),
    "file-named-dot": (packed(entry(b"./")), "directory"),
    "nul-in-pax-name": (packed(pax((b"path", b"a\0b")), entry(b"a")), "NUL"),
    "nul-in-gnu-name": (packed(gnu(b"a\0b"), entry(b"a")), "NUL"),
    "empty-pax-name": (packed(pax((b"path", b"")), entry(b"a")), "empty"),
    "long-part": (packed(pax((b"path", LONG)), entry(b"a")), "longer"),
    "long-path": (packed(pax((b"path", b"/".join([b"p" * 200] * 21))), entry(b"a")), "longer"),
    "long-gnu": (packed(gnu(b"/".join([b"p" * 200] * 21)), entry(b"a")), "header of"),
    "deep": (packed(pax((b"path", DEEP)), entry(b"a")), "deep"),
    "reserved": (packed(entry(b".kern-restore/x")), "reserved"),
    "reserved-itself": (packed(entry(b"./.kern-restore")), "reserved"),
    "twice": (packed(entry(b"a"), entry(b"./a")), "twice"),
    "directory-twice": (packed(entry(b"a", type=b"5"), entry(b"a/", type=b"5")), "twice"),
    "file-then-directory": (packed(entry(b"a"), entry(b"a", type=b"5")), "twice"),
    "directory-then-file": (packed(entry(b"a/b"), entry(b"a")), "twice"),
    "file-as-parent": (packed(entry(b"a"), entry(b"a/b")), "file there"),
    "link-as-parent": (packed(entry(b"a", type=b"2", linkname=b"b"), entry(b"a/b")), "symbolic link there", "inside"),
    "symlink": (packed(entry(b"l", type=b"2", linkname=b"a")), "symbolic link", "refuse"),
    "symlink-absolute": (packed(entry(b"l", type=b"2", linkname=b"/etc")), "outside", "inside"),
    "symlink-up": (packed(entry(b"l", type=b"2", linkname=b"..")), "outside", "inside"),
    "symlink-up-deep": (packed(entry(b"d/l", type=b"2", linkname=b"../../x")), "outside", "inside"),
    "symlink-through-link": (packed(entry(b"x/y/l", type=b"2", linkname=b"../../r"), entry(b"m", type=b"2", linkname=b"x/y/l/../..")), "outside", "inside"),
    "symlink-empty": (packed(entry(b"l", type=b"2")), "outside", "inside"),
    "hardlink-outside": (packed(entry(b"l", type=b"1", linkname=b"/etc/passwd")), "hard link"),
    "hardlink-up": (packed(entry(b"l", type=b"1", linkname=b"../x")), "hard link"),
    "hardlink-later": (packed(entry(b"l", type=b"1", linkname=b"z"), entry(b"z")), "hard link"),
    "hardlink-itself": (packed(entry(b"l", type=b"1", linkname=b"l")), "hard link"),
    "hardlink-to-directory": (packed(entry(b"d", type=b"5"), entry(b"l", type=b"1", linkname=b"d")), "hard link"),
    "hardlink-to-symlink": (packed(entry(b"s", type=b"2", linkname=b"x"), entry(b"l", type=b"1", linkname=b"s")), "hard link", "inside"),
    "hardlink-with-content": (packed(entry(b"a"), entry(b"l", b"data", type=b"1", linkname=b"a")), "content"),
    "directory-with-content": (packed(entry(b"d", b"data", type=b"5")), "content"),
    "symlink-with-content": (packed(entry(b"l", b"data", type=b"2", linkname=b"a")), "content", "inside"),
    "character-device": (packed(entry(b"n", type=b"3")), "device"),
    "block-device": (packed(entry(b"n", type=b"4")), "device"),
    "fifo": (packed(entry(b"n", type=b"6")), "FIFO"),
    "multi-volume": (packed(entry(b"n", type=b"M")), "volume"),
    "old-sparse": (packed(entry(b"n", type=b"S")), "holes"),
    "unknown-type": (packed(entry(b"n", type=b"Z")), "unknown"),
    "bad-checksum": (packed(entry(b"a"), entry(b"b", checksum=b"000001\0 ")), "checksum"),
    "first-bad-checksum": (packed(entry(b"b", checksum=b"000001\0 ")), "no tar"),
    "bad-magic": (packed(entry(b"a", magic=b"rusty\x0000")), "format"),
    "negative-size": (packed(header(b"a", raw_size=b"\xff" * 12)), "size"),
    "minus-size": (packed(header(b"a", raw_size=b"-0000000001\0")), "size"),
    "size-no-number": (packed(header(b"a", raw_size=b"000000x0000\0")), "size"),
    "huge-size": (packed(header(b"a", raw_size=b"\x80\0\0\0" + b"\x7f" + b"\xff" * 7)), "size"),
    "overflowing-size": (packed(header(b"a", raw_size=b"\x80" + b"\xff" * 11)), "size"),
    "above-total": (packed(header(b"a", raw_size=b"\x80\0\0\0" + (17 << 30).to_bytes(8, "big"))), "unpacks to more than 16384 MiB"),
    "pax-size-lie": (packed(pax((b"size", b"99999999999")), header(b"a", size=1), b"x" * 512), "unpacks to more"),
    "pax-size-short": (packed(pax((b"size", b"2048")), header(b"a", size=512), b"x" * 512), "ends in the middle"),
    "pax-size-minus": (packed(pax((b"size", b"-5")), entry(b"a")), "size"),
    "pax-damaged-length": (packed(entry(b"pax", b"99 path=x\n", type=b"x"), entry(b"a")), "damaged"),
    "pax-no-equals": (packed(entry(b"pax", b"8 path\n\n", type=b"x"), entry(b"a")), "damaged"),
    "pax-no-newline": (packed(entry(b"pax", b"9 path=xy", type=b"x"), entry(b"a")), "damaged"),
    "pax-two-paths": (packed(pax((b"path", b"a"), (b"path", b"b")), entry(b"a")), "two names"),
    "pax-and-gnu-name": (packed(gnu(b"a"), pax((b"path", b"b")), entry(b"a")), "two names"),
    "gnu-name-twice": (packed(gnu(b"a"), gnu(b"b"), entry(b"a")), "two names"),
    "pax-huge": (packed(header(b"pax", type=b"x", size=2 << 20), b"\0" * (2 << 20)), "header of"),
    "pax-for-nobody": (packed(pax((b"path", b"x"))), "no entry"),
    "pax-mtime": (packed(pax((b"mtime", b"soon")), entry(b"a")), "mtime"),
    "global-path": (packed(pax((b"path", b"x"), type=b"g"), entry(b"a")), "global"),
    "global-size": (packed(pax((b"size", b"0"), type=b"g"), entry(b"a")), "global"),
    "many-headers": (packed(*[pax((b"comment", b"x"))] * 65, entry(b"a")), "64 headers"),
    "sparse-old-pax": (packed(pax((b"GNU.sparse.map", b"0,1"), (b"GNU.sparse.size", b"9")), entry(b"a", b"x")), "holes"),
    "sparse-no-size": (packed(pax((b"GNU.sparse.major", b"1"), (b"GNU.sparse.minor", b"0")), entry(b"a", b"0\n".ljust(512, b"\0"))), "holes"),
    "member-behind-end": (gzip.compress(tar(entry(b"a")) + entry(b"b") + END, mtime=0), "behind the end"),
    "member-behind-one-zero-block": (gzip.compress(entry(b"a") + b"\0" * 512 + entry(b"b") + END, mtime=0), "behind the end"),
    "concatenated-gzip": (packed(entry(b"a")) + packed(entry(b"b")), "behind the end"),
    "trailing-garbage": (packed(entry(b"a")) + b"garbage", "behind the end"),
    "trailing-zeros": (packed(entry(b"a")) + b"\0" * 512, "behind the end"),
    "padding-flood": (gzip.compress(tar(entry(b"a")) + b"\0" * (2 << 20), mtime=0), "behind the end"),
    "truncated-gzip": (packed(entry(b"a", os.urandom(5000)))[:-700], "cannot be unpacked"),
    "truncated-tar": (gzip.compress(entry(b"a", b"x" * 5000)[:-1024], mtime=0), "ends in the middle"),
    "no-end": (gzip.compress(entry(b"a"), mtime=0), "ends in the middle"),
    "damaged-gzip": (b"\x1f\x8b\x08\x00" + b"\xff" * 300, "cannot be unpacked"),
    "gzip-twice": (gzip.compress(packed(entry(b"a"))), "more than once"),
    "empty": (b"", "empty"),
    "empty-gzip": (gzip.compress(b""), "ends in the middle"),
    "zip": (b"PK\3\4" + b"\0" * 600, "zip"),
    "xz": (b"\xfd7zXZ\0" + b"\0" * 600, "xz"),
    "bzip2": (b"BZh91AY&SY" + b"\0" * 600, "bzip2"),
    "seven-zip": (b"7z\xbc\xaf\x27\x1c" + b"\0" * 600, "7z"),
    "cpio": (b"070701" + b"0" * 600, "cpio"),
    "random": (b"\x55" * 2048, "no tar"),
}


def sparse(extents, real_size, content):
    numbers = [len(extents)] + [n for extent in extents for n in extent]
    head = archives.padded(b"".join(b"%d\n" % n for n in numbers))
    records = [(b"GNU.sparse.major", b"1"), (b"GNU.sparse.minor", b"0"), (b"GNU.sparse.name", b"s"), (b"GNU.sparse.realsize", b"%d" % real_size)]
    return pax(*records) + entry(b"GNUSparseFile.0/s", head + content)


HOSTILE["sparse-overlap"] = (packed(sparse([(0, 10), (5, 10)], 100, b"x" * 20)), "map")
HOSTILE["sparse-behind-size"] = (packed(sparse([(95, 10)], 100, b"x" * 10)), "map")
HOSTILE["sparse-too-little"] = (packed(sparse([(0, 10)], 100, b"x" * 5)), "map")
HOSTILE["sparse-too-much"] = (packed(sparse([(0, 10)], 100, b"x" * 15)), "map")
HOSTILE["sparse-huge"] = (packed(sparse([(0, 1)], 1 << 50, b"x")), "GiB")
HOSTILE["sparse-no-number"] = (packed(pax((b"GNU.sparse.major", b"1"), (b"GNU.sparse.realsize", b"5")), entry(b"s", b"one\n".ljust(512, b"\0"))), "map")
HOSTILE["sparse-many"] = (packed(pax((b"GNU.sparse.major", b"1"), (b"GNU.sparse.realsize", b"5")), entry(b"s", b"70000\n".ljust(512, b"\0"))), "pieces")


@pytest.mark.any_user
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile(client, workspace, place, name):
    session, path = workspace
    data, word, *links = HOSTILE[name]
    before, around = archives.listing(path), sorted(os.listdir(place))
    error = restore_fails(client, session, data, links=links[0] if links else "inside")
    if not data:
        refused(error, "archive_refused")
    else:
        refused(error, "archive_refused", "/blob")
    assert word in error.message, error
    assert error.data["hint"], error
    assert archives.listing(path) == before
    assert sorted(os.listdir(place)) == around


def test_names_in_messages_are_tame(client, workspace):
    error = restore_fails(client, workspace[0], packed(entry(b"/\x1b[31m\r\n")))
    assert "\x1b" not in error.message and "\n" not in error.message


# ---- what is taken

def test_replaces_all(client, workspace):
    session, path = workspace
    inside = tar(
        pax((b"comment", b"from git archive"), type=b"g"),
        entry(b"./", type=b"5"),
        entry(b"./deep/er/f", b"content", mode=b"0006755", mtime=b"00000000144"),
        entry(b"deep", type=b"5", mode=b"0001555", mtime=b"00000000145"),
        entry(b"read-only", b"r", mode=b"0000444"),
        entry(b"none", b"n", mode=b"0000000"),
        entry(b"h", type=b"1", linkname=b"./deep/er/f"),
        entry(b"old-style/", type=b"\0", magic=b""),
        pax((b"path", "n\u00e4me".encode()), (b"mtime", b"-1.5"), (b"uid", b"0"), (b"SCHILY.xattr.user.x", b"1")),
        entry(b"ascii", b"u", type=b"7"),
    )
    for data in (inside, gzip.compress(inside), subprocess.run(["zstd", "-q"], input=inside, capture_output=True, check=True).stdout):
        result = restore(client, session, data)
        assert result == {"entries": 8, "bytes": 10, "notes": []}
        assert set(os.listdir(path)) == {"deep", "h", "none", "old-style", "read-only", "n\u00e4me"}
        f = os.stat(path + "/deep/er/f")
        assert (oct(f.st_mode), f.st_mtime, f.st_nlink) == ("0o100755", 100.0, 2)
        assert os.path.samefile(path + "/h", path + "/deep/er/f")
        d = os.stat(path + "/deep")
        assert (oct(d.st_mode), d.st_mtime) == ("0o40755", 101.0)
        assert oct(os.stat(path + "/read-only").st_mode) == "0o100444"
        assert oct(os.stat(path + "/none").st_mode) == "0o100400"
        assert os.stat(path + "/n\u00e4me").st_mtime == -1.5
    top = os.stat(path)
    for directory, names, files in os.walk(path):
        for name in names + files:
            st = os.lstat(os.path.join(directory, name))
            assert (st.st_uid, st.st_gid) == (top.st_uid, top.st_gid)
    assert client.out(client.run("cat", "deep/er/f", sessionId=session)) == "content"


def test_links_that_stay_inside(client, workspace):
    session, path = workspace
    data = packed(entry(b"a/b/l", type=b"2", linkname=b"../../c/f"), entry(b"c/f", b"x"), entry(b"dir", type=b"2", linkname=b"a"), entry(b"dangling", type=b"2", linkname=b"./nowhere"))
    restore(client, session, data, links="inside")
    assert client.out(client.run("cat", "a/b/l", "dir/b/l", sessionId=session)) == "xx"
    assert os.readlink(path + "/dangling") == "./nowhere"


def test_nothing_in_it(client, workspace):
    session, path = workspace
    assert restore(client, session, packed()) == {"entries": 0, "bytes": 0, "notes": []}
    assert os.listdir(path) == []


def test_sparse(client, workspace):
    session, path = workspace
    restore(client, session, packed(sparse([(4096, 5), (1 << 30, 3)], 1 << 31, b"helloend")))
    st = os.stat(path + "/s")
    assert st.st_size == 1 << 31 and st.st_blocks * 512 < 1 << 20
    with open(path + "/s", "rb") as file:
        assert os.pread(file.fileno(), 7, 4095) == b"\0hello\0"
        assert os.pread(file.fileno(), 3, 1 << 30) == b"end"


def test_old_content_of_any_mode_goes(client, workspace):
    session, path = workspace
    client.run("sh", "-c", "mkdir -p n/o/p; echo x >n/o/p/q; chmod 0 n/o/p n/o n; d=.; i=0; mkdir deep; cd deep; while [ $i -lt 600 ]; do mkdir dddddddddd; cd dddddddddd; i=$((i+1)); done", sessionId=session)
    restore(client, session, packed(entry(b"new", b"n")))
    assert os.listdir(path) == ["new"]


def test_modes_come_back_when_the_swap_fails(client, workspace, as_user):
    """A directory of somebody else cannot be moved away: everything is as it was."""
    session, path = workspace
    if os.geteuid() != 0:
        pytest.skip("needs root to make one")
    client.run("sh", "-c", "mkdir aa mm zz; chmod 555 aa mm zz", sessionId=session)
    os.mkdir(path + "/foreign", 0o755)
    os.chown(path + "/foreign", 12345, 12345)
    before = archives.listing(path)
    error = restore_fails(client, session, packed(entry(b"new", b"n"), entry(b"a", b"n")))
    refused(error, "permission_denied")
    after = archives.listing(path)
    os.rmdir(path + "/foreign")
    assert after == before


# ---- amounts

def test_workspace_limit(client, make_dir):
    session = client.open(workspace=make_dir("small"), workspaceMaxMb=1)
    error = restore_fails(client, session, packed(entry(b"big", b"x" * (2 << 20))))
    refused(error, "archive_refused", "/blob")
    assert "1 MiB" in error.message and "workspaceMaxMb" in error.data["hint"]
    error = restore_fails(client, session, packed(*[entry(b"f%d" % i) for i in range(300)]))
    refused(error, "archive_refused", "/blob")
    assert "256 names" in error.message
    error = restore_fails(client, session, packed(*[entry(b"./", type=b"5")] * 300))
    assert "256 names" in error.message
    restore(client, session, packed(entry(b"fits", b"x" * 1000)))


def test_zstd_bomb(client, workspace, place):
    session, path = workspace
    before = archives.listing(path)
    bomb = place + "/bomb.tar.zst"
    with open(bomb, "wb") as file:
        zstd = subprocess.Popen(["zstd", "-q"], stdin=subprocess.PIPE, stdout=file)
        zstd.stdin.write(header(b"zeros", raw_size=b"%011o\0" % (2 << 30)))
        for _ in range(2048):
            zstd.stdin.write(b"\0" * (1 << 20))
        zstd.stdin.write(END)
        zstd.stdin.close()
        zstd.wait()
    error = client.fail("session/restore", {"sessionId": session, "path": bomb})
    refused(error, "archive_refused", "/path")
    assert "200 times" in error.message
    assert archives.listing(path) == before


# ---- the file on the host

def test_paths(client, workspace, place, owner):
    session, path = workspace
    where = {"sessionId": session}
    refused(client.fail("session/restore", where), "missing", "/path")
    refused(client.fail("session/restore", {**where, "path": "/x", "blob": "x"}), "invalid_value", "/blob")
    refused(client.fail("session/restore", {**where, "path": "relative.tar"}), "invalid_value", "/path")
    refused(client.fail("session/restore", {**where, "path": place + "/no"}), "not_found", "/path")
    refused(client.fail("session/restore", {**where, "path": place}), "is_directory", "/path")
    refused(client.fail("session/restore", {**where, "blob": {"blob": {"id": "0" * 32}}}), "unknown_handle", "/blob")
    os.mkfifo(place + "/fifo")
    refused(client.fail("session/restore", {**where, "path": place + "/fifo"}), "not_regular", "/path")
    refused(client.fail("session/restore", {**where, "path": "/dev/null"}), "not_regular", "/path")
    refused(client.fail("session/restore", {"sessionId": "nobody", "path": "/x"}), "unknown_handle", "/sessionId")
    client.run("sh", "-c", "ln -s /etc/hostname out", sessionId=session)
    refused(client.fail("session/restore", {**where, "path": path + "/out"}), "invalid_path", "/path")
    os.symlink(path + "/a", place + "/into")
    refused(client.fail("session/restore", {**where, "path": place + "/into"}), "invalid_path", "/path")


def test_from_a_file_and_from_a_blob(client, workspace, place):
    session, path = workspace
    data = packed(entry(b"f", os.urandom(3 << 20)))
    with open(place + "/a.tar.gz", "wb") as file:
        file.write(data)
    os.chmod(place + "/a.tar.gz", 0o644)
    restored = client.call("session/restore", {"sessionId": session, "path": place + "/a.tar.gz"})
    first = archives.listing(path)
    blob = None
    for at in range(0, len(data), 1 << 20):
        piece = base64.b64encode(data[at : at + (1 << 20)]).decode()
        blob = client.call("blob/write", {**({"id": blob} if blob else {}), "base64": piece})["id"]
    assert client.call("session/restore", {"sessionId": session, "blob": {"blob": {"id": blob}}}) == restored
    assert archives.listing(path) == first


# ---- exclusive, cancelled, killed

def test_waits_for_runs_and_keeps_later_ones_waiting(client, workspace):
    session, path = workspace
    running = client.start("sh", "-c", "sleep 0.7; cat d/e/f", sessionId=session)
    restored = client.send("session/restore", {"sessionId": session, "blob": {"base64": base64.b64encode(packed(entry(b"n", b"new"))).decode()}})
    later = client.send("run/argv", {"sessionId": session, "argv": ["sh", "-c", "ls"]})
    time.sleep(0.3)
    assert not restored.done() and not later.done()
    assert client.out(running.result()) == "old\n"
    restored.result()
    assert client.out(later.result()) == "n\n"


@pytest.fixture(scope="module")
def slow(places):
    """An archive that takes a while to read."""
    path = places + "/slow.tar"
    with open(path, "wb") as file:
        for i in range(40):
            file.write(header(b"f%d" % i, raw_size=b"%011o\0" % (16 << 20)))
            file.write(os.urandom(1 << 20) * 16)
        file.write(END)
    os.chmod(path, 0o644)
    yield path
    os.remove(path)


@pytest.mark.any_user
def test_cancel(client, workspace, slow):
    session, path = workspace
    before = archives.listing(path)
    waiting = client.start("sleep", "5", sessionId=session)
    future = client.send("session/restore", {"sessionId": session, "path": slow})
    client.notify("$/cancel", {"id": future.id})
    refused(future.error(), "cancelled")
    client.notify("$/cancel", {"id": waiting.id})
    waiting.result()
    for delay in (0.0, 0.05, 0.5, 1.0, 1.5):
        future = client.send("session/restore", {"sessionId": session, "path": slow})
        time.sleep(delay)
        client.notify("$/cancel", {"id": future.id})
        reply = future.wait()
        if "error" in reply:
            assert reply["error"]["data"]["reason"] == "cancelled"
            assert archives.listing(path) == before
        else:
            assert len(os.listdir(path)) == 40
            break
    client.run("true", sessionId=session)


def test_close_in_the_middle(client, workspace, slow):
    session, path = workspace
    before = archives.listing(path)
    future = client.send("session/restore", {"sessionId": session, "path": slow})
    client.wait_for(lambda: os.path.exists(path + "/.kern-restore/new/f0"), "the extraction")
    client.call("session/close", {"sessionId": session})
    refused(future.error(), "cancelled")
    assert archives.listing(path) == before


def test_killed_in_the_middle(sidecar, make_dir, slow):
    path = make_dir("ws")
    first = sidecar(expect_exit=None)
    session = first.open(workspace=path)
    first.run("sh", "-c", "echo old >f", sessionId=session)
    before = archives.listing(path)
    first.send("session/restore", {"sessionId": session, "path": slow})
    first.wait_for(lambda: os.path.exists(path + "/.kern-restore/new/f0"), "the extraction")
    first.kill()
    first.process.wait()
    second = sidecar()
    opened = second.call("session/open", {"workspace": path})
    assert [note["code"] for note in opened["notes"] if "restore" in note["code"]] == ["restore_recovered"]
    assert archives.listing(path) == before


@pytest.mark.parametrize("stage, expected", [("back", {"a", "b"}), ("forward", {"n", "m"}), ("left", {"a"})])
def test_killed_in_the_swap(client, make_dir, stage, expected):
    """As worker/jobs/staging.h says: what stands in the workspace when a swap was cut off, made by hand."""
    path = make_dir("ws")
    session = client.open(workspace=path)
    script = {
        "back": "mkdir -p .kern-restore/new .kern-restore/old; echo a >a; echo b >.kern-restore/old/b; echo n >.kern-restore/new/n",
        "forward": "mkdir -p .kern-restore/new .kern-restore/trash; echo n >n; echo m >.kern-restore/new/m; echo b >.kern-restore/trash/b",
        "left": "mkdir -p .kern-restore/trash/x; chmod 0 .kern-restore/trash/x .kern-restore; echo a >a",
    }[stage]
    client.run("sh", "-c", script, sessionId=session)
    client.call("session/close", {"sessionId": session})
    opened = client.call("session/open", {"workspace": path})
    assert "restore_recovered" in [note["code"] for note in opened["notes"]]
    assert set(os.listdir(path)) == expected


def test_a_planted_name(client, make_dir, place):
    """Code may make the reserved name, too: as a link it is nobody's restore."""
    path, outside = make_dir("ws"), make_dir("outside")
    os.mkdir(outside + "/old")
    session = client.open(workspace=path)
    client.run("sh", "-c", f"ln -s {outside} .kern-restore; echo a >a", sessionId=session)
    restore(client, session, packed(entry(b"n", b"n")))
    assert os.listdir(path) == ["n"] and os.listdir(outside) == ["old"]


@pytest.mark.any_user
def test_the_file_changes_between_the_passes(client, workspace, slow, place):
    """What was verified is not what is read again: nothing of it stays."""
    session, path = workspace
    before = archives.listing(path)
    slow = shutil.copy(slow, place)
    future = client.send("session/restore", {"sessionId": session, "path": slow})
    client.wait_for(lambda: os.path.exists(path + "/.kern-restore/new/f0"), "the extraction")
    with open(slow, "r+b") as file:
        os.pwrite(file.fileno(), b"changed", os.fstat(file.fileno()).st_size - (1 << 20))
    refused(future.error(), "changed", "/path")
    assert archives.listing(path) == before
    future = client.send("session/restore", {"sessionId": session, "path": slow})
    client.wait_for(lambda: os.path.exists(path + "/.kern-restore/new/f0"), "the extraction")
    with open(slow, "r+b") as file:  # a link that was not there when it was judged
        os.pwrite(file.fileno(), header(b"l", type=b"2", linkname=b"/etc"), 39 * ((16 << 20) + 512))
    refused(future.error(), "archive_refused", "/path")
    assert archives.listing(path) == before


MANY = 3000


@pytest.fixture
def wide(make_dir, place, client):
    """A workspace and an archive with so many names at the top that the swap takes its time."""
    path = make_dir("wide")
    session = client.open(workspace=path)
    client.run("python3", "-c", f"for i in range({MANY}): open('o%d' % i, 'x').close()", sessionId=session)
    with open(place + "/wide.tar.gz", "wb") as file:
        file.write(packed(*[entry(b"n%d" % i) for i in range(MANY)]))
    os.chmod(place + "/wide.tar.gz", 0o644)
    return session, path, place + "/wide.tar.gz"


def whole(path):
    """Which of the two states it is: nothing between."""
    names = os.listdir(path)
    assert len(names) == MANY and len({name[0] for name in names}) == 1, names[:10]
    return names[0][0]


def test_cancel_in_the_swap(client, wide):
    session, path, archive = wide
    for delay in (0.0, 0.005, 0.02, 0.05):
        future = client.send("session/restore", {"sessionId": session, "path": archive})
        client.wait_for(lambda: future.done() or os.path.exists(path + "/.kern-restore/old"), "the swap")
        time.sleep(delay)
        client.notify("$/cancel", {"id": future.id})
        reply = future.wait()
        assert whole(path) == ("o" if "error" in reply else "n")


@pytest.mark.endurance
def test_kill_in_the_swap(sidecar, wide, client):
    _, path, archive = wide
    seen = set()
    for delay in (0.0, 0.002, 0.01, 0.03, 0.06, 0.1):
        victim = sidecar(expect_exit=None)
        session = victim.open(workspace=path)
        state = whole(path)
        if state == "n":
            victim.run("python3", "-c", "import os\nfor n in os.listdir(): os.rename(n, 'o' + n[1:])", sessionId=session)
        future = victim.send("session/restore", {"sessionId": session, "path": archive})
        victim.wait_for(lambda: future.done() or os.path.exists(path + "/.kern-restore/old"), "the swap")
        time.sleep(delay)
        victim.kill()
        victim.process.wait()
        heir = sidecar()
        session = heir.open(workspace=path)
        seen.add(whole(path))
        heir.call("session/close", {"sessionId": session})
    assert seen <= {"o", "n"}


def test_the_host_goes_away(sidecar, make_dir, slow):
    path = make_dir("ws")
    client = sidecar()
    session = client.open(workspace=path)
    client.run("sh", "-c", "echo old >f", sessionId=session)
    before = archives.listing(path)
    client.send("session/restore", {"sessionId": session, "path": slow})
    client.wait_for(lambda: os.path.exists(path + "/.kern-restore/new/f0"), "the extraction")
    assert client.close() == 0
    heir = sidecar()
    heir.open(workspace=path)
    assert archives.listing(path) == before


def test_worker_dies(client, workspace, slow):
    """Whatever ends the worker: the old state."""
    session, path = workspace
    before = archives.listing(path)
    future = client.send("session/restore", {"sessionId": session, "path": slow})
    client.wait_for(lambda: os.path.exists(path + "/.kern-restore/new/f0"), "the extraction")
    for pid in os.listdir("/proc"):
        try:
            with open(f"/proc/{pid}/stat") as file:
                text = file.read()
        except OSError:
            continue
        if "(kern-worker)" in text and int(text.rsplit(") ", 1)[1].split()[1]) == client.pid:
            os.kill(int(pid), 9)
    refused(future.error(), "internal")
    assert archives.listing(path) == before


# ---- packages and kernels


def test_packages_come_with_the_archive(client):
    """Later calls see those of the archive, read-only, and none when it has none."""
    session = client.open()
    restore(client, session, packed(entry(b".deps/brought.py", b"value = 41")))
    assert client.code("import brought; print(brought.value)", sessionId=session)["stdout"] == "41\n"
    assert client.run("touch", "/workspace/.deps/more", sessionId=session)["exitCode"] != 0
    restore(client, session, packed(entry(b".deps/brought.py", b"value = 42")))
    assert client.code("import brought; print(brought.value)", sessionId=session)["stdout"] == "42\n"
    restore(client, session, packed(entry(b"plain")))
    assert client.code("import brought", sessionId=session)["error"]["name"] == "ModuleNotFoundError"


def test_packages_that_are_no_directory_are_told(client):
    """What would be followed or cannot be entered is not used, and the answer says so, as session/open does."""
    session = client.open()
    assert restore(client, session, packed(entry(b".deps/brought.py", b"value = 41")))["notes"] == []
    for data, more in (
        (packed(entry(b".deps", b"a file")), {}),
        (packed(entry(b"real/brought.py", b"value = 43"), entry(b".deps", type=b"2", linkname=b"real")), {"links": "inside"}),
    ):
        assert [note["code"] for note in restore(client, session, data, **more)["notes"]] == ["deps_ignored"]
        assert client.code("import brought", sessionId=session)["error"]["name"] == "ModuleNotFoundError"
    assert restore(client, session, packed(entry(b"plain")))["notes"] == []


def test_not_while_a_kernel_is_open(client):
    session = client.open()
    kernel = client.call("kernel/open", {"sessionId": session})["kernelId"]
    refused(restore_fails(client, session, packed(entry(b"plain"))), "busy", "/sessionId")
    client.call("kernel/close", {"kernelId": kernel})
    restore(client, session, packed(entry(b"plain")))

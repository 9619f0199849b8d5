"""file/read and file/stat: ranges, lines, encodings, media types, etags, caps."""

import base64
import os
import time

import pytest

from expect import refused
from file_api import Files, files  # noqa: F401 (a fixture)

MIB = 1 << 20


def test_whole_file(files):
    etag = files.write("a.txt", "hello\n")["etag"]
    assert files.read("a.txt") == {
        "text": "hello\n", "size": 6, "eof": True, "etag": etag, "mime": "text/plain", "encoding": "utf-8",
    }  # fmt: skip


def test_empty_file(files):
    files.write("empty", "")
    reply = files.read("empty")
    assert (reply["text"], reply["size"], reply["eof"], "mime" in reply) == ("", 0, True, False)
    lines = files.read("empty", lines={"start": 1, "count": 1})
    assert (lines["text"], lines["startLine"], lines["endLine"], lines["totalLines"], lines["eof"]) == ("", 1, 0, 0, True)


@pytest.mark.parametrize(
    "params,content,eof",
    [
        ({"offset": 0}, b"0123456789", True),
        ({"offset": 3}, b"3456789", True),
        ({"length": 3}, b"012", False),
        ({"offset": 3, "length": 4}, b"3456", False),
        ({"offset": 3, "length": 7}, b"3456789", True),
        ({"offset": 9, "length": 1}, b"9", True),
        ({"offset": 10}, b"", True),
        ({"offset": 11, "length": 5}, b"", True),
        ({"offset": 1 << 53}, b"", True),
        ({"length": 1 << 53}, b"0123456789", True),
    ],
)
def test_byte_ranges(files, params, content, eof):
    files.write("f", "0123456789")
    reply = files.read("f", **params)
    assert (files.content(reply), reply["eof"], reply["size"]) == (content, eof, 10)


@pytest.mark.parametrize(
    "start,count,text,end,eof",
    [
        (1, 1, "one\n", 1, False),
        (1, 3, "one\ntwo\nthree", 3, True),
        (2, 1, "two\n", 2, False),
        (3, 1, "three", 3, True),
        (3, 1 << 53, "three", 3, True),
        (4, 1, "", 3, True),
        (1 << 53, 1 << 53, "", (1 << 53) - 1, True),
    ],
)
def test_lines(files, start, count, text, end, eof):
    files.write("f", "one\ntwo\nthree")
    reply = files.read("f", lines={"start": start, "count": count})
    assert (reply["text"], reply["startLine"], reply["endLine"], reply["totalLines"]) == (text, start, end, 3)
    assert reply["eof"] is eof


def test_lines_of_a_long_file(files):
    files.python("open('f', 'w').write(''.join(f'line {i}\\n' for i in range(1, 200001)))")
    reply = files.read("f", lines={"start": 150000, "count": 2})
    assert (reply["text"], reply["totalLines"], reply["endLine"]) == ("line 150000\nline 150001\n", 200000, 150001)
    everything = files.read("f", lines={"start": 1, "count": 200000})
    assert len(files.content(everything)) == everything["size"] and everything["eof"] is True


def test_bad_ranges(files):
    files.write("f", "x")
    files.refused("read", "out_of_range", "f", "/offset", offset=-1)
    files.refused("read", "out_of_range", "f", "/length", length=0)
    files.refused("read", "out_of_range", "f", "/lines/start", lines={"start": 0, "count": 1})
    files.refused("read", "out_of_range", "f", "/lines/count", lines={"start": 1, "count": 0})
    files.refused("read", "missing", "f", "/lines/count", lines={"start": 1})
    files.refused("read", "invalid_value", "f", "/lines", lines={"start": 1, "count": 1}, offset=0)
    files.refused("read", "invalid_value", "f", "/encoding", encoding="latin1")


def test_encodings_of_the_reply(files):
    files.write("bad", b"a\xffb")
    assert files.read("bad", encoding="utf8")["text"] == "a\ufffdb"
    assert files.read("bad")["base64"] == base64.b64encode(b"a\xffb").decode()
    files.write("good", "gr\u00fc\u00df")
    assert files.read("good", encoding="base64")["base64"] == base64.b64encode("gr\u00fc\u00df".encode()).decode()
    assert files.read("good", offset=0, length=3)["base64"] == base64.b64encode(b"gr\xc3").decode()  # a cut character
    assert files.read("good", offset=0, length=4)["text"] == "gr\u00fc"


@pytest.mark.parametrize(
    "name,content,encoding,mime",
    [
        ("a", b"plain", "utf-8", "text/plain"),
        ("a.py", b"x = 1", "utf-8", "text/x-python"),
        ("a", b"\xef\xbb\xbfwith a mark", "utf-8", "text/plain"),
        ("a", "caf\u00e9".encode(), "utf-8", "text/plain"),
        ("a", "caf\u00e9!".encode("latin1"), "binary", None),
        ("a", b"nul \0", "binary", None),
        ("a.txt", b"\xff\xfea\0", "utf-16le", "text/plain"),
        ("a.txt", b"\xfe\xff\0a", "utf-16be", "text/plain"),
        ("a", b"\x89PNG\r\n\x1a\n\0\0\0\0", "binary", "image/png"),
        ("a", b"GIF89a\0\0", "binary", "image/gif"),
        ("a", b"RIFF\x10\0\0\0WEBPVP8 ", "binary", "image/webp"),
        ("a", b'{"a": 1}', "utf-8", "application/json"),
        ("a", b"%PDF-1.7", "utf-8", "application/pdf"),
    ],
)
def test_what_a_file_is(files, name, content, encoding, mime):
    files.write(name, content)
    reply = files.read(name)
    assert (reply["encoding"], reply.get("mime"), files.content(reply)) == (encoding, mime, content)
    assert files.stat(name).get("mime") == mime
    assert files.read(name, offset=1)["encoding"] == encoding  # of the file, not of the part


def test_a_mark_is_part_of_the_text(files):
    files.write("f", b"\xef\xbb\xbfx")
    assert files.read("f")["text"] == "\ufeffx"


def test_large_content_is_a_blob(files):
    files.python("open('f.csv', 'w').write('0123456789' * 100000)")
    reply = files.read("f.csv")
    assert reply["blob"]["bytes"] == MIB * 1000000 // MIB and reply["blob"]["mime"] == "text/csv"
    assert files.content(reply) == b"0123456789" * 100000
    files.client.call("blob/free", {"id": reply["blob"]["id"]})


def test_content_at_the_edge_of_a_line(sidecar):
    """Whatever fits, fits: no reply is lost because of its length."""
    files = Files(sidecar())
    for size in range(31000, 32800, 150):
        files.write("f", "x" * size)
        assert len(files.bytes("f")) == size
    for size in (5000, 5400, 10700):
        files.write("f", "\x01" * size)
        assert len(files.bytes("f")) == size


def test_more_than_the_cap(files):
    files.sh("truncate -s 67108864 at; truncate -s 67108865 above")
    assert files.read("at")["blob"]["bytes"] == 64 * MIB
    error = files.refused("read", "too_large", "above")
    assert "offset" in error.data["hint"] and "length" in error.data["hint"]
    files.refused("read", "too_large", "above", length=64 * MIB + 1)
    assert files.read("above", length=64 * MIB)["eof"] is False
    assert files.read("above", offset=1)["eof"] is True
    files.refused("read", "too_large", "above", lines={"start": 1, "count": 1})  # it is one line


def test_sparse_file_of_two_gib(files):
    files.sh("truncate -s 2147483648 f")
    start = time.monotonic()
    files.refused("read", "too_large", "f")
    assert files.read("f", offset=2147483648 - 5)["size"] == 2147483648
    assert files.bytes("f", offset=1 << 30, length=4) == b"\0\0\0\0"
    assert files.stat("f")["size"] == 2147483648
    files.refused("read", "too_large", "f", "/lines", lines={"start": 2, "count": 1})
    assert time.monotonic() - start < 20


def test_file_that_grows_while_it_is_read(files):
    run = files.client.start("sh", "-c", "while :; do echo 0123456789; done >grow", sessionId=files.session)
    files.client.wait_for(lambda: os.path.exists(files.host("grow")), "the file")
    for _ in range(20):
        reply = files.read("grow", length=1000)
        assert len(files.content(reply)) <= 1000
        files.read("grow", lines={"start": 3, "count": 2})
    files.client.cancel(run)
    run.wait()


def test_etag_changes_with_the_content_only(files):
    first = files.write("f", "one")["etag"]
    assert files.stat("f")["etag"] == files.read("f")["etag"] == files.read("f", offset=1, length=1)["etag"] == first
    assert files.read("f", lines={"start": 1, "count": 1})["etag"] == first
    files.sh("touch -d 2001-01-01 f; chmod 600 f")
    assert files.stat("f")["etag"] == first
    files.sh("printf two >f; touch -d 2001-01-01 f")  # same size, same mtime, perhaps the same ctime
    second = files.stat("f")["etag"]
    assert second != first
    assert files.write("f", "one")["etag"] == first


def test_etag_of_a_large_file(files):
    files.sh("truncate -s 3000000 f")
    first = files.read("f", length=1)["etag"]
    assert files.stat("f")["etag"] == first
    time.sleep(0.03)
    files.sh("printf x | dd of=f conv=notrunc bs=1 seek=2000000 2>/dev/null")
    assert files.stat("f")["etag"] != first
    written = files.write("f", "y" * 2000000)["etag"]
    assert files.stat("f")["etag"] == written


def test_stat_of_everything(files):
    files.sh("mkdir d; ln -s d link; ln -s none dangling; mkfifo fifo; echo x >f; chmod 751 f; chmod 0 d")
    files.python("import socket; socket.socket(socket.AF_UNIX).bind('sock')")
    assert (files.stat("f")["type"], files.stat("f")["mode"]) == ("file", 0o751)
    assert (files.stat("d")["type"], files.stat("d")["mode"]) == ("directory", 0)
    assert files.stat("link")["type"] == files.stat("dangling")["type"] == "symlink"
    assert files.stat("fifo")["type"] == "fifo" and files.stat("sock")["type"] == "socket"
    assert files.stat("link", followLinks=True)["type"] == "directory"
    files.refused("stat", "not_found", "dangling", followLinks=True)
    assert {"etag", "mime"} & set(files.stat("link")) == set()
    files.sh("chmod 700 d")


def test_not_a_regular_file(files):
    """At once, by what it is."""
    files.sh("mkdir d; mkfifo fifo; ln -s /dev/zero zero; ln -s loop loop; ln -s f link; echo x >f")
    files.python("import socket; socket.socket(socket.AF_UNIX).bind('sock')")
    start = time.monotonic()
    for name, reason in [
        ("d", "is_directory"), (".", "is_directory"), ("fifo", "not_regular"), ("sock", "not_regular"),
        ("zero", "path_escape"), ("loop", "path_escape"), ("link", "path_escape"), ("none", "not_found"),
        ("f/x", "not_a_directory"), ("d/none", "not_found"), ("none/x", "not_found"),
    ]:  # fmt: skip
        files.refused("read", reason, name)
        files.refused("read", reason, name, lines={"start": 1, "count": 1})
    assert time.monotonic() - start < 5
    assert "FIFO" in files.refused("read", "not_regular", "fifo").message


def test_not_readable(files):
    files.sh("echo x >shut; chmod 0 shut; mkdir dark; echo x >dark/f; chmod 0 dark")
    files.refused("read", "permission_denied", "shut")
    files.refused("read", "permission_denied", "dark/f")
    files.refused("stat", "permission_denied", "dark/f")
    stat = files.stat("shut")
    assert (stat["mode"], stat["size"], "etag" in stat) == (0, 2, False)
    files.sh("chmod 700 dark")


def test_leased_file(files):
    """A lease is broken by opening; that does not block, and says what it is."""
    code = (
        "import fcntl, os, time\nopen('f', 'w').write('x'); f = os.open('f', os.O_RDWR)\n"
        "fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_WRLCK); fcntl.lockf(f, fcntl.LOCK_EX)\n"
        "import signal; signal.signal(signal.SIGIO, signal.SIG_IGN); print('go', flush=True); time.sleep(100)"
    )
    run = files.client.start("python3", "-c", code, sessionId=files.session)
    files.client.wait_for(lambda: files.client.output_events(run), "the lease")
    start = time.monotonic()
    error = files.client.fail("file/read", {"sessionId": files.session, "path": "f"})
    refused(error, "io", "/path")
    assert "lease" in error.data["hint"] and time.monotonic() - start < 5
    files.client.cancel(run)
    run.wait()


def test_names_of_any_bytes(files):
    every = bytes(b for b in range(1, 256) if b != ord("/"))
    for name in (b"\xff\xfe", b"-rf", b"new\nline", every[:250], every[-60:], b"x" * 255):
        files.write(name, "x")
        assert files.bytes(name) == b"x"
        assert os.path.exists(os.path.join(os.fsencode(files.workspace), name))
        assert name in [n if isinstance(n, bytes) else n.encode() for n in files.names()]
        files.call("remove", name)
    assert files.names() == []


def test_mounted_file(client, make_dir):
    place = make_dir("place")
    with open(place + "/one.csv", "w") as file:
        file.write("a,b\n")
    os.chmod(place + "/one.csv", 0o644)
    files = Files(client, mounts=[{"source": place + "/one.csv", "target": "/data/one.csv", "mode": "ro"}])
    reply = files.read("/data/one.csv")
    assert (reply["text"], reply["size"]) == ("a,b\n", 4)
    assert files.stat("/data/one.csv")["etag"] == reply["etag"]
    files.refused("write", "read_only", "/data/one.csv", content="x")

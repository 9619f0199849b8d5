"""file/edit: exact replacements, all or nothing; line ends and marks; what the errors say."""

import os
import stat

import pytest

from file_api import as_edit, files  # noqa: F401 (a fixture)


def test_one_and_many(files):
    files.write("f", "a b a c")
    reply = files.edit("f", ("b", "B"), ("a", "x", "all"), ("x c", "end"))
    assert reply == {"replacements": [1, 2, 1], "etag": files.stat("f")["etag"]}
    assert files.bytes("f") == b"x B end"


def test_each_works_on_what_the_one_before_left(files):
    files.write("f", "one")
    files.edit("f", ("one", "two"), ("two", "three"), ("three", "one one"))
    assert files.bytes("f") == b"one one"


def test_all_or_nothing(files):
    etag = files.write("f", "a b c")["etag"]
    error = files.refused("edit", "edit_no_match", "f", "/edits/1/oldText", edits=[as_edit(("a", "x")), as_edit(("a", "y"))])
    assert "before it" in error.message
    assert files.bytes("f") == b"a b c" and files.stat("f")["etag"] == etag


def test_not_unique(files):
    files.write("f", "x\n\nx\nx x\n")
    error = files.refused("edit", "edit_not_unique", "f", "/edits/0/oldText", edits=[as_edit(("x", "y"))])
    assert "4 times, in lines 1, 3, 4, 4" in error.message and "all: true" in error.data["hint"]


def test_no_match_says_where_it_is_alike(files):
    files.write("f", "def f():\n\treturn 1\n\ndef g():\n\treturn 2\n")
    error = files.refused("edit", "edit_no_match", "f", "/edits/0/oldText", edits=[as_edit(("def g():\n    return 2", ""))])
    assert "line 4 " in error.data["hint"]
    error = files.refused("edit", "edit_no_match", "f", "/edits/0/oldText", edits=[as_edit(("zzzz", ""))])
    assert "exactly" in error.data["hint"]
    files.write("f", "a && b")
    error = files.refused("edit", "edit_no_match", "f", "/edits/0/oldText", edits=[as_edit(("a &amp;&amp; b", ""))])
    assert "HTML" in error.data["hint"]


@pytest.mark.parametrize(
    "content,old,new,result",
    [
        (b"a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", b"x\r\ny\r\nz\r\nc\r\n"),
        (b"a\r\nb\r\n", "b", "1\n2", b"a\r\n1\r\n2\r\n"),
        (b"a\nb\n", "a\r\nb", "x\r\ny", b"x\ny\n"),
        (b"\xef\xbb\xbfa\r\nb", "a\nb", "c", b"\xef\xbb\xbfc"),
        (b"\xef\xbb\xbfa", "\ufeffa", "\ufeffb", b"\xef\xbb\xbfb"),
        (b"caf\xe9 a \xff\0", "a ", "b ", b"caf\xe9 b \xff\0"),
        ("gr\u00fc\u00df \U0001f600".encode(), "\U0001f600", "\u00e9", "gr\u00fc\u00df \u00e9".encode()),
        (b"no end", "no end", "", b""),
    ],
)
def test_bytes_that_stay(files, content, old, new, result):
    files.write("f", content)
    files.edit("f", (old, new))
    assert files.bytes("f") == result


def test_utf16_says_so(files):
    files.write("f", "\ufeffhello".encode("utf-16le"))
    error = files.refused("edit", "edit_no_match", "f", "/edits/0/oldText", edits=[as_edit(("hello", "x"))])
    assert "UTF-16" in error.data["hint"]


def test_if_match(files):
    etag = files.write("f", "one")["etag"]
    second = files.edit("f", ("one", "two"), ifMatch=etag)["etag"]
    files.refused("edit", "changed", "f", "/ifMatch", edits=[as_edit(("two", "x"))], ifMatch=etag)
    files.edit("f", ("two", "three"), ifMatch=second)
    files.refused("edit", "not_found", "none", edits=[as_edit(("two", "x"))])
    files.refused("edit", "not_found", "none", edits=[as_edit(("two", "x"))], ifMatch=second)


def test_beside_a_program_that_writes(files):
    """A program in the box appends all the time: an edit takes what it saw, or says that it has changed; never something in between."""
    files.write("f", "count=0\n")
    run = files.client.start("sh", "-c", "i=0; while [ $i -lt 2000 ]; do echo line >>f; i=$((i+1)); done", sessionId=files.session)
    done = 0
    while not run.done() and done < 400:
        edits = [as_edit((f"count={done}\n", f"count={done + 1}\n"))]
        reply = files.client.send("file/edit", {"sessionId": files.session, "path": "f", "edits": edits}).wait()
        done += "result" in reply
        assert "result" in reply or reply["error"]["data"]["reason"] == "changed", reply
    run.result()
    first, *rest = files.bytes("f").decode().splitlines()
    assert first == f"count={done}" and set(rest) <= {"line"}


def test_mode_and_other_names(files):
    files.sh("printf old >f; chmod 750 f; ln f g")
    files.edit("f", ("old", "new"))
    assert stat.S_IMODE(os.stat(files.host("f")).st_mode) == 0o750
    assert files.bytes("g") == b"old"


def test_refused(files):
    files.sh("mkdir d; mkfifo p; ln -s f l; echo x >f; echo x >ro; chmod 400 ro")
    edits = [as_edit(("x", "y"))]
    for name, reason in [
        ("d", "is_directory"), (".", "is_directory"), ("p", "not_regular"), ("l", "path_escape"),
        ("none", "not_found"), ("no/ne", "not_found"), ("ro", "permission_denied"),
    ]:  # fmt: skip
        files.refused("edit", reason, name, edits=edits)
    files.refused("edit", "out_of_range", "f", "/edits", edits=[])
    files.refused("edit", "out_of_range", "f", "/edits/0/oldText", edits=[as_edit(("", "x"))])
    files.refused("edit", "missing", "f", "/edits", **{})
    files.edit("l", ("x", "z"), followLinks=True)
    assert files.bytes("f") == b"z\n" and os.path.islink(files.host("l"))


def test_caps(files):
    files.sh("truncate -s 16777215 at; printf x >>at; truncate -s 16777217 above")
    assert files.edit("at", ("x", "y"))["replacements"] == [1]
    files.refused("edit", "too_large", "at", "/edits/0/newText", edits=[as_edit(("y", "zz"))])
    files.refused("edit", "too_large", "above", edits=[as_edit(("x", "y"))])
    files.write("f", "x" * 100000)
    files.refused("edit", "too_large", "f", "/edits/0/newText", edits=[as_edit(("x", "y" * 1000, "all"))])
    many = [as_edit((f"<{i}>", f"<{i + 1}>")) for i in range(1024)]
    files.write("f", "<0>")
    assert files.call("edit", "f", edits=many)["replacements"] == [1] * 1024
    files.refused("edit", "out_of_range", "f", "/edits", edits=many + many[:1])
    assert files.bytes("f") == b"<1024>"


@pytest.mark.endurance
def test_a_large_file(files):
    files.python("open('f', 'w').write('some line\\n' * 1000000 + 'the end\\n')")  # 10 MB
    assert files.edit("f", ("the end", "END"), ("some", "SOME", "all"))["replacements"] == [1, 1000000]
    assert files.stat("f")["size"] == 10000004

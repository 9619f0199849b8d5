"""file/search: what is found, how it is shown, and what hostile files and patterns can do (nothing)."""

import base64
import os
import random
import re
import time

import pytest

from expect import refused
from trees import Tree, name_of

pytestmark = pytest.mark.any_user

WINDOW = 128 << 10  # the unit in which files are read
SHOWN = 2000


@pytest.fixture
def tree(client, make_dir, owner):
    return Tree(client, make_dir("tree"), owner)


def test_text(tree):
    tree.write({"b": "one\ntwo three\n", "a/x.c": "int one;\n\nreturn one + one;", "z": "One\n", "empty": ""})
    assert tree.search("one") == [
        ("a/x.c", 1, 5, "int one;"), ("a/x.c", 3, 8, "return one + one;"), ("b", 1, 1, "one"),
    ]  # fmt: skip
    assert tree.search("one", ignoreCase=True)[-1] == ("z", 1, 1, "One")
    assert tree.search("o.e") == []
    assert tree.search("nothing") == []


def test_order(tree):
    tree.write({name: "x" for name in ("a", "a.c", "a-b", "b/c", "b.c", "b0", "b/c.d/e", "b/c-d", "\xe9")})
    names = [name for name, *_ in tree.search("x")]
    assert names == sorted(names, key=os.fsencode) and len(names) == 9


@pytest.mark.parametrize("pattern", ["str | int", "$100", "[a-z]*", "a\\b", "(", "*", "é", "\t", "^x$"])
def test_text_is_taken_as_it_is(tree, pattern):
    tree.write({"f": f"no\n..{pattern}..\n"})
    for ignore_case in (False, True):
        assert tree.search(pattern, ignoreCase=ignore_case) == [("f", 2, 3, f"..{pattern}..")]


@pytest.mark.parametrize(
    "pattern, lines",
    [
        (r"^def \w+\(", "2"), (r"\bfoo\b", "1"), (r"bar$", "3"), (r"^$", "4"), (r"x*", "1 2 3 4 5 6 7"), (r"foo\s+bar", ""),
        (r"[^a]*\)", "2 6"), (r"\s$", "5"), (r"^\s*\S+\s*$", "3 5 6 7"), (r"\W\W", "2 6"), (r"\D{11}", "1 2"), (r"(?i)FOO", "1 3"),
        (r"\d+", "7"), (r"(foo|def) ", "1 2"), (r"(.)\1", "1 3 5"), (r"(?<=foo)b", "3"), (r"(?!f)oobar", "3"), (r"foo(?!\n)", "1 3"),
        (r"[\s,]$", "5"), (r"[^\w\s]", "2 6"), (r"r\n", ""), (r"r\R?", "2 3"), (r"r[^x]?$", "3"), (r"\Qfoo\E", "1 3"), (r"\Afoo", "1 3"),
        (r"(?s)foo.*f", ""), (r"f[^x]*+$", "1 3"), (r"[[:digit:]]", "7"), (r"\x{e9}", "7"), (r"(?x) f o o # comment", "1 3"), (r"\p{Lu}", "6"),
    ],
)  # fmt: skip
def test_regex_sees_one_line(tree, pattern, lines):
    """Whichever way it is done, by whole windows or line by line: as if each line were alone."""
    content = "foo is good\ndef bar(x):\nfoobar\n\nxx \nA()\né7\n"
    tree.write({"f": content})
    found = [line for _, line, _, _ in tree.search(pattern, regex=True)]
    assert found == [int(line) for line in lines.split()]


def test_unicode(tree):
    tree.write({"f": "Straße ÄRGER\nкот\n"})
    assert tree.search("ärger", ignoreCase=True) == [("f", 1, 8, "Straße ÄRGER")]
    assert tree.search(r"^\w+$", regex=True) == [("f", 2, 1, "кот")]
    assert tree.search("т", path="f")[0][2] == 3


def test_bytes_that_are_not_utf8(tree):
    tree.write({"f": b"caf\xe9 au lait\n\xff\xfe\xe2\x82 milk\n"})
    assert tree.search("au") == [("f", 1, 6, "caf� au lait")]
    assert tree.search("MILK", ignoreCase=True) == [("f", 2, 5, "��� milk")]
    assert tree.search(r"caf.?.?au", regex=True) == []
    assert tree.search(r"\w+$", regex=True) == [("f", 1, 9, "caf� au lait"), ("f", 2, 5, "��� milk")]


def test_a_byte_that_is_no_character_is_not_matched(tree):
    tree.write({"f": b"\x80\n\n\x80"})
    for pattern in ("[^S]", r"[^S]\v?", "."):
        assert tree.search(pattern, regex=True, ignoreCase=True) == []


def test_names_that_are_not_utf8(tree):
    tree.write({b"d\xff/a\xfe": "x\n"})
    [(name, *_)] = tree.search("x")
    assert os.fsencode(name) == b"d\xff/a\xfe"
    [(name, *_)] = tree.search("x", pathBase64=base64.b64encode(b"d\xff/a\xfe").decode())
    assert os.fsencode(name) == b"d\xff/a\xfe"


def test_path(tree):
    tree.write({"d/a": "x", "d/.b": "x", "c": "x"})
    assert tree.search("x", path="d") == [("d/a", 1, 1, "x")]
    assert tree.search("x", path="./d/") == [("d/a", 1, 1, "x")]
    assert tree.search("x", path="d/.b") == [("d/.b", 1, 1, "x")]
    assert tree.search("x", path="/workspace/c") == [("/workspace/c", 1, 1, "x")]
    os.symlink("c", tree.top + "/link")
    os.mkfifo(tree.top + "/fifo")
    refused(tree.fail("file/search", pattern="x", path="link"), "path_escape", "/path")
    refused(tree.fail("file/search", pattern="x", path="fifo"), "not_regular", "/path")
    refused(tree.fail("file/search", pattern="x", path="no"), "not_found", "/path")
    refused(tree.fail("file/search", pattern="x", path="../.."), "path_escape", "/path")
    assert [name for name, *_ in tree.search("x")] == ["c", "d/a"]


def test_glob(tree):
    tree.write({"a.c": "x", "a.h": "x", "d/b.c": "x", "d/e/c.c": "x", ".x/y.c": "x", "min.js": "x"})

    def names(glob, **more):
        return " ".join(name for name, *_ in tree.search("x", glob=glob, **more))

    assert names("*.c") == "a.c d/b.c d/e/c.c"
    assert names("/*.c") == "a.c"
    assert names("*.{h,js}") == "a.h min.js"
    assert names("d/**") == names("d/") == "d/b.c d/e/c.c"
    assert names("e/") == "d/e/c.c"
    assert names("d/*.c") == "d/b.c"
    assert names("!*.c") == "a.h min.js"
    assert names("!d") == "a.c a.h min.js"
    assert names(".x/*") == ".x/y.c"
    assert names("*.c", hidden=True) == ".x/y.c a.c d/b.c d/e/c.c"
    assert names("d") == ""
    assert names("b.c", path="d") == "d/b.c"
    refused(tree.fail("file/search", pattern="x", glob="["), "invalid_value", "/glob")
    refused(tree.fail("file/search", pattern="x", glob="!"), "invalid_value", "/glob")


def test_hidden_and_gitignore(tree):
    tree.write({".gitignore": "*.log\n", "a.log": "x", "a.c": "x", ".h": "x", ".git/config": "x", "d/b.log": "x"})
    assert [n for n, *_ in tree.search("x")] == ["a.c", "a.log", "d/b.log"]
    assert [n for n, *_ in tree.search("x", gitignore=True)] == ["a.c"]
    assert [n for n, *_ in tree.search("x", gitignore=True, hidden=True)] == [".h", "a.c"]
    assert ".git/config" in [n for n, *_ in tree.search("x", hidden=True)]


def test_context(tree):
    tree.write({"f": "\n".join("abcdefghij"), "g": "1\n2\r\n3\n"})
    [match] = tree.call("file/search", pattern="e", before=2, after=3)["matches"]
    assert (match["before"], match["after"]) == (["c", "d"], ["f", "g", "h"])
    matches = tree.call("file/search", pattern="[bci]", regex=True, before=2, after=2)["matches"]
    assert [(m["text"], m["before"], m["after"]) for m in matches] == [
        ("b", ["a"], ["c", "d"]), ("c", ["a", "b"], ["d", "e"]), ("i", ["g", "h"], ["j"]),
    ]  # fmt: skip
    [match] = tree.call("file/search", pattern="3", before=100, after=100)["matches"]
    assert (match["before"], match["after"]) == (["1", "2"], [])
    refused(tree.fail("file/search", pattern="x", before=101), "out_of_range", "/before")


def test_carriage_returns(tree):
    tree.write({"f": "foo\r\nbar\r\n"})
    assert tree.search("foo") == [("f", 1, 1, "foo")]
    assert tree.search("r\\r?$", regex=True) == [("f", 2, 3, "bar")]


def test_binary(tree):
    tree.write({
        "head": b"x\n\0", "late": b"x\n" + b"y" * 9000 + b"\0\nx\n", "text": "x\n",
        "later": b"x\n" + b"y\n" * WINDOW + b"\0\nx\n",
    })  # fmt: skip
    result = tree.call("file/search", pattern="x")
    assert result["binarySkipped"] == 3
    assert [(match["path"], match["line"]) for match in result["matches"]] == [("later", 1), ("text", 1)]


def test_long_lines(tree):
    tree.write({"f": "a" * 5000 + "needle" + "b" * 5000 + "\n" + "needle" + "c" * SHOWN + "\n" + "é" * SHOWN + "\nneedle" + "d" * (SHOWN - 6)})
    matches = tree.call("file/search", pattern="needle", before=1)["matches"]
    assert [(m["line"], m["column"], m.get("cut", False)) for m in matches] == [(1, 5001, True), (2, 1, True), (4, 1, False)]
    assert "needle" in matches[0]["text"] and len(matches[0]["text"]) == SHOWN
    assert matches[1]["text"] == "needle" + "c" * (SHOWN - 6)
    assert matches[1]["before"] == ["a" * SHOWN]
    assert matches[2]["before"] == ["é" * (SHOWN // 2)]


def test_lines_longer_than_the_window(tree):
    huge = "é" * WINDOW + "needle" + "x" * 3 * WINDOW + "needle"
    tree.write({"f": f"first\n{huge}\nlast needle\nend\n"})
    matches = tree.call("file/search", pattern="needle", before=2, after=1)["matches"]
    assert [(m["line"], m["column"], m.get("cut", False)) for m in matches] == [(2, WINDOW + 1, True), (3, 6, False)]
    assert "needle" in matches[0]["text"]
    assert matches[0]["before"] == ["first"] and matches[0]["after"] == ["last needle"]
    assert matches[1]["before"] == ["first", "é" * (SHOWN // 2)] and matches[1]["after"] == ["end"]


@pytest.mark.parametrize("regex", [False, True])
def test_a_match_across_windows(tree, regex):
    for shift in range(-6, 7):
        tree.write({"f": "x" * (WINDOW - 3 + shift) + "needle" + "y" * WINDOW + "\nz\n"})
        assert [m[:3] for m in tree.search("needle", regex=regex)] == [("f", 1, WINDOW - 2 + shift)]
        assert [m[:3] for m in tree.search("^z$", regex=True)] == [("f", 2, 1)]
        assert tree.search("^y", regex=True) == []


def expected(content, pattern, before, after):
    lines = content.split("\n")
    if lines[-1] == "":
        lines.pop()
    found = []
    for number, line in enumerate(lines):
        match = re.search(pattern, line)
        if match:
            found.append((number + 1, match.start() + 1, line, lines[max(0, number - before) : number], lines[number + 1 : number + 1 + after]))
    return found


@pytest.mark.parametrize("seed", range(4))
def test_like_python(tree, seed):
    """Files of many windows, with lines of all lengths, against a search that has them whole."""
    rng = random.Random(seed)
    words = ["a", "bb", "needle", "é", "\t", " ", "0", "x" * 50, "", "\n", "\n", "\n", "\n\n", "need"]
    content = "".join(rng.choices(words, k=200000 if seed else 2000))
    tree.write({"f": content})
    for pattern, before, after in (("needle", 0, 0), ("needle", 3, 2), ("^0", 100, 100), (r"a\s+bb$", 1, 0), (r"[^x]é$", 0, 7)):
        result = tree.call("file/search", pattern=pattern, regex=not pattern.isalpha(), before=before, after=after, limit=1000)
        found = [(m["line"], m["column"], m["text"], m["before"], m["after"]) for m in result["matches"]]
        want = expected(content, pattern, before, after)
        cut = [(line, column, text[:500], b, a) for line, column, text, b, a in want][: len(found)]
        assert len(found) == min(len(want), 1000) or result["truncated"]
        for one, other in zip(found, cut):
            assert (*one[:2], one[2][:500], *one[3:]) == other
        assert result["truncated"] == (len(want) > len(found))


def test_limit(tree):
    tree.write({"a": "x\n" * 5, "b": "x\ny\nz\n"})
    for limit in range(1, 8):
        result = tree.call("file/search", pattern="x", limit=limit, after=2)
        assert len(result["matches"]) == min(limit, 6) and result["truncated"] == (limit < 6)
        assert result["matches"][0]["after"] == ["x", "x"]
    assert result["matches"][5]["after"] == ["y", "z"]


def test_bytes_of_the_answer_are_bounded(tree):
    tree.write({"f": ("x" * 1999 + "\n") * 10000})
    result = tree.call("file/search", pattern="x", limit=1000000)
    assert result["truncated"] and 8000 < len(result["matches"]) < 9000


@pytest.mark.parametrize(
    "pattern, words",
    [("(", "at byte 1: missing closing parenthesis"), ("a**b", "at byte 2"), ("[a", "at byte 2"), (r"\C", "\\C"), ("(?<=a*)b", "lookbehind"),
     ("((a|b){1000}){1000}", "too large"), ("a" * 65537, None), ("(" * 300 + ")" * 300, "nested")],
)  # fmt: skip
def test_bad_regex(tree, pattern, words):
    error = tree.fail("file/search", pattern=pattern, regex=True)
    refused(error, "invalid_value" if words else "out_of_range", "/pattern")
    assert words is None or words in error.message, error.message


def test_a_text_with_a_line_feed(tree):
    refused(tree.fail("file/search", pattern="a\nb"), "invalid_value", "/pattern")


HOSTILE = [r"(a+)+b", r"(a|aa)+$", r"(a*)*b", r"^(([a-z])+.)+[A-Z]([a-z])+$", r"(x+x+)+y", r"(?:a?){40}a{40}c", r"(a|b|ab)*(?=c)", r"a*a*a*a*a*a*b",
           r"([^b]*)*c", r"(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)[^a]", r"(?R)?a", r"(a(?1)?b|aa)+c"]  # fmt: skip


@pytest.mark.parametrize("pattern", HOSTILE)
@pytest.mark.parametrize("piece, times", [("a", 40), ("a", 5000), ("a", 2 * WINDOW), ("ab", 300), ("x", 30000)])
def test_hostile_patterns_end(tree, pattern, piece, times):
    """A match, none, or `limit` with the pattern's name: but soon."""
    line = piece * times + "\n"
    tree.write({"f": line * min(1000, (1 << 20) // len(line)) + "bcy!"})
    begin = time.monotonic()
    reply = tree.client.send("file/search", {"sessionId": tree.session, "pattern": pattern, "regex": True, "limit": 5})
    try:
        reply.result(timeout=240)
    except Exception as error:
        refused(error, "limit", "/pattern")
        assert "f:" in error.data["hint"]
    assert time.monotonic() - begin < 200  # of processor time 5 s and the work of a window; the machine may be busy


def test_sparse_and_large(tree):
    with open(tree.top + "/sparse", "wb") as file:
        file.write(b"x\n" * 10)
        file.truncate(2 << 30)
    with open(tree.top + "/large", "wb") as file:
        for _ in range(64):
            file.write(b"some text in lines\n" * 55000)
        file.write(b"needle")
    tree.write({})
    begin = time.monotonic()
    result = tree.call("file/search", pattern="needle")
    assert time.monotonic() - begin < 10
    assert result["binarySkipped"] == 1
    assert [(m["line"], m["text"]) for m in result["matches"]] == [(64 * 55000 + 1, "needle")]


def test_what_is_no_file(tree):
    tree.write({"a": "x", "closed/b": "x", "shut": "x"})
    os.mkfifo(tree.top + "/fifo")
    os.symlink("/etc/passwd", tree.top + "/passwd")
    os.symlink(".", tree.top + "/loop")
    os.chmod(tree.top + "/closed", 0)
    os.chmod(tree.top + "/shut", 0)
    result = tree.call("file/search", pattern="x")
    assert [name_of(m) for m in result["matches"]] == ["a"] and result["unreadable"] == 2


def test_tree_that_changes(tree, client):
    """Files come and go, and turn into links and FIFOs, while it is searched."""
    tree.write({f"d{i}/f{j}": "needle\n" for i in range(20) for j in range(20)})
    script = """
        cd /workspace
        while ! [ -e stop ]; do
            for i in 1 2 3 4 5; do
                rm -rf d$i; mkfifo d$i; rm d$i; ln -s /etc d$i; rm d$i; mkdir d$i; echo needle >d$i/f1; mkfifo d$i/f2; ln -s /etc/passwd d$i/f3
            done
        done"""
    waits = client.send("run/argv", {"sessionId": tree.session, "argv": ["sh", "-c", script]})
    for _ in range(50):
        found = tree.search("needle", limit=1000)
        assert 300 <= len(found) <= 400 and all(text == "needle" for *_, text in found)
    client.run("touch", "stop", sessionId=tree.session)
    assert waits.result()["exitCode"] == 0


def test_cancel(tree, client):
    with open(tree.top + "/large", "wb") as file:
        for _ in range(200):
            file.write(b"some text in lines\n" * 55000)
    tree.write({})
    waits = client.send("file/search", {"sessionId": tree.session, "pattern": r"[a-z]*[a-z]*\d", "regex": True})
    time.sleep(0.2)
    begin = time.monotonic()
    client.cancel(waits)
    with pytest.raises(Exception) as caught:
        waits.result(timeout=10)
    assert caught.value.data["reason"] in ("cancelled", "limit") and time.monotonic() - begin < 2
    assert tree.search("nothing", path="large") == []


def test_session_close_ends_it(tree, client):
    with open(tree.top + "/large", "wb") as file:
        for _ in range(100):
            file.write(b"some text in lines\n" * 55000)
    tree.write({})
    waits = client.send("file/search", {"sessionId": tree.session, "pattern": r"[^x]+\s!", "regex": True})
    client.call("session/close", {"sessionId": tree.session})
    with pytest.raises(Exception):
        waits.result(timeout=10)

"""file/glob: which names, in which order, and what a tree that is hostile can do (nothing)."""

import base64
import os
import random
import subprocess
import time

import pytest

from expect import refused
from trees import Tree

pytestmark = pytest.mark.any_user

FILES = {
    "a.c": "",
    "b.h": "",
    "d/a.c": "",
    "d/e/f/g.c": "",
    "d-x/a.c": "",
    "d.c/a.txt": "",
    "empty/": "",
    ".hidden/a.c": "",
    ".env": "",
    "src/node_modules/m/index.js": "",
    "src/index.js": "",
    ".github/workflows/ci.yml": "",
}


@pytest.fixture
def tree(client, make_dir, owner):
    return Tree(client, make_dir("tree"), owner)


@pytest.fixture
def files(tree):
    tree.write(FILES)
    return tree


@pytest.mark.parametrize(
    "pattern, found",
    [
        ("*.c", "a.c d-x/a.c d.c d/a.c d/e/f/g.c"),
        ("/*.c", "a.c d.c"),
        ("d/**/*.c", "d/a.c d/e/f/g.c"),
        ("d*/*", "d-x/a.c d.c/a.txt d/a.c d/e"),
        ("{b.h,d/{a.c,e}}", "b.h d/a.c d/e"),
        ("e*/", "d/e empty"),
        (".env", ".env"),
        (".github/**/*.yml", ".github/workflows/ci.yml"),
        ("**", "a.c b.h d d-x d-x/a.c d.c d.c/a.txt d/a.c d/e d/e/f d/e/f/g.c empty src src/index.js src/node_modules "
               "src/node_modules/m src/node_modules/m/index.js"),
        ("nothing", ""),
    ],
)  # fmt: skip
def test_patterns(files, pattern, found):
    assert files.glob(pattern) == sorted(found.split(), key=os.fsencode)


def test_types(files):
    os.symlink("a.c", files.top + "/link")
    os.symlink("/etc", files.top + "/out")
    os.mkfifo(files.top + "/fifo")
    entries = files.call("file/glob", pattern="/*", ignore=["*.*", "d*", "src"])["entries"]
    assert [(e["path"], e["type"]) for e in entries] == [
        ("empty", "directory"), ("fifo", "fifo"), ("link", "symlink"), ("out", "symlink"),
    ]  # fmt: skip
    assert files.glob("out/**") == []


def test_ignore(files):
    assert files.glob("*.js", ignore=["node_modules"]) == ["src/index.js"]
    assert files.glob("**", path="src", ignore=["**/node_modules/**"]) == ["src/index.js", "src/node_modules"]
    assert files.glob("*.c", ignore=["d*/", "/a.c"]) == []
    assert files.glob("*.c", ignore=["/d", "{a,b}.c"]) == ["d.c"]


def test_hidden(files):
    assert ".hidden/a.c" in files.glob("*.c", hidden=True)
    assert files.glob("*", hidden=True, ignore=["src", "d*", "*.?"]) == [
        ".env", ".github", ".github/workflows", ".github/workflows/ci.yml", ".hidden", "empty",
    ]  # fmt: skip


def test_path(files):
    assert files.glob("*.c", path="d") == ["d/a.c", "d/e/f/g.c"]
    assert files.glob("*.c", path="./d/") == ["d/a.c", "d/e/f/g.c"]
    assert files.glob("/*.c", path="/workspace/d") == ["/workspace/d/a.c"]
    assert files.glob("/*.c", path=files.top) == [files.top + "/a.c", files.top + "/d.c"]
    assert files.glob("/*.c", path=".") == ["a.c", "d.c"]
    refused(files.fail("file/glob", pattern="*", path="nothing"), "not_found", "/path")
    refused(files.fail("file/glob", pattern="*", path="a.c"), "not_a_directory", "/path")
    refused(files.fail("file/glob", pattern="*", path="/etc"), "path_escape", "/path")
    refused(files.fail("file/glob", pattern="*", path="d", pathBase64="ZA=="), "invalid_value", "/pathBase64")
    os.symlink("d", files.top + "/link")
    refused(files.fail("file/glob", pattern="*", path="link"), "path_escape", "/path")


def test_names_that_are_not_utf8(tree):
    tree.write({b"d\xff/a\xfe": "", b"d\xff/b": ""})
    name = base64.b64encode(b"d\xff").decode()
    entries = tree.call("file/glob", pattern="*", pathBase64=name)["entries"]
    assert [base64.b64decode(e["pathBase64"]) for e in entries] == [b"d\xff/a\xfe", b"d\xff/b"]
    assert tree.glob("/d?") == [os.fsdecode(b"d\xff")]
    refused(tree.fail("file/glob", pattern="*", pathBase64="eA=="), "not_found", "/pathBase64")


def test_limit(files):
    result = files.call("file/glob", pattern="*.c", limit=2)
    assert [e["path"] for e in result["entries"]] == ["a.c", "d-x/a.c"] and result["truncated"]
    result = files.call("file/glob", pattern="*.c", limit=5)
    assert len(result["entries"]) == 5 and not result["truncated"]


def test_many_names(tree):
    """More than a line holds, and than one read of a directory."""
    names = [f"{i:x}-{'n' * 40}" for i in range(3000)]
    tree.write({f"many/{name}": "" for name in names})
    assert tree.glob("many/*") == [f"many/{name}" for name in sorted(names)]


@pytest.mark.parametrize("pattern", ["[a", "{a", "a\\", "/", "../a", "[[:what:]]", "{a,b}" * 20])
def test_bad_patterns(tree, pattern):
    refused(tree.fail("file/glob", pattern=pattern), "invalid_value", "/pattern")
    refused(tree.fail("file/glob", pattern="*", ignore=["a", pattern]), "invalid_value", "/ignore/1")


def test_hostile_patterns_are_quick(tree):
    tree.write({"a" * 250: "", "/".join("a" * 400) + "/a": ""})
    for pattern in ("a*" * 60 + "b", "**/" * 1000 + "b", "**/a*/" * 200 + "b", "{a,b,c}*" * 6 + "d"):
        begin = time.monotonic()
        assert tree.glob(pattern) == []
        assert time.monotonic() - begin < 10


def test_deep(tree):
    """A path longer than the kernel takes at a time; what no request could name is counted, and not entered."""
    fd = os.open(tree.top, os.O_RDONLY)
    for _ in range(60):
        os.mkdir("n" * 100, dir_fd=fd)
        deeper = os.open("n" * 100, os.O_RDONLY, dir_fd=fd)
        os.chown(deeper, tree.owner.pw_uid, tree.owner.pw_gid)
        os.close(fd)
        fd = deeper
    os.close(fd)
    result = tree.call("file/glob", pattern="n*")
    assert [len(e["path"]) for e in result["entries"]] == [101 * n - 1 for n in range(1, 41)]
    assert result["unreadable"] == 1
    many = "d/" * 300
    tree.write({many + "a.c": "", "d/d/z.c": ""})
    assert tree.glob("*.c") == [many + "a.c", "d/d/z.c"]


def test_permission(tree):
    tree.write({"a/x": "", "closed/x": "", "z/x": ""})
    os.chmod(tree.top + "/closed", 0)
    result = tree.call("file/glob", pattern="x")
    assert [e["path"] for e in result["entries"]] == ["a/x", "z/x"] and result["unreadable"] == 1


def test_a_prefix_prunes(tree):
    """What cannot hold a match is not entered: a closed directory elsewhere is no trouble."""
    tree.write({"src/x": "", "closed/x": ""})
    os.chmod(tree.top + "/closed", 0)
    result = tree.call("file/glob", pattern="src/**")
    assert [e["path"] for e in result["entries"]] == ["src/x"] and "unreadable" not in result


def test_mounts(client, make_dir, owner):
    data = make_dir("data")
    Tree(client, data, owner).write({"d/a.c": ""})
    session = client.call("session/open", {"mounts": [{"source": data, "target": "/data", "mode": "ro"}]})
    found = client.call("file/glob", {"sessionId": session["sessionId"], "pattern": "*.c", "path": "/data"})
    assert found["entries"] == [{"path": "/data/d/a.c", "type": "file"}]


def test_cancel(tree, client):
    tree.write({f"{i}/{j}/{k}": "" for i in range(10) for j in range(10) for k in range(20)})
    waits = client.send("file/glob", {"sessionId": tree.session, "pattern": "{a,b,c,d}*" * 5 + "x"})
    client.cancel(waits)
    try:
        waits.result(timeout=10)
    except Exception as error:  # it may have been quicker than the cancel
        assert error.data["reason"] == "cancelled"
    assert client.call("file/glob", {"sessionId": tree.session, "pattern": "/1"})["entries"]


# ---- .gitignore ----


def git(top, *args):
    environment = {"PATH": "/usr/bin:/bin", "HOME": top, "GIT_CONFIG_NOSYSTEM": "1"}
    command = ["git", "-c", f"safe.directory={top}", "-c", "core.excludesFile=", "-C", top, *args]
    return subprocess.run(command, env=environment, check=True, capture_output=True).stdout


def of_git(top):
    return sorted(filter(None, git(top, "ls-files", "-z", "-o", "--exclude-standard").split(b"\0")))


def of_glob(tree):
    entries = tree.call("file/glob", pattern="*", hidden=True, gitignore=True)["entries"]
    return [os.fsencode(e["path"]) for e in entries if e["type"] in ("file", "symlink")]


def test_gitignore(tree):
    tree.write({
        ".gitignore": "*.o\n/build/\n!keep.o\nlogs/*\n!logs/.keep\n",
        "a.o": "", "keep.o": "", "a.c": "", "build/x": "", "d/build/x": "", "logs/a": "", "logs/.keep": "",
        "d/.gitignore": "!*.o\nsecret\n", "d/b.o": "", "d/secret/x": "", "secret": "", "d/e/secret": "",
    })  # fmt: skip
    assert tree.glob("*", gitignore=True, ignore=["*/"]) == ["a.c", "keep.o", "secret"]
    assert of_glob(tree) == [
        b".gitignore", b"a.c", b"d/.gitignore", b"d/b.o", b"d/build/x", b"keep.o", b"logs/.keep", b"secret",
    ]  # fmt: skip
    assert tree.glob("*", path="d", gitignore=True) == ["d/b.o", "d/build", "d/build/x", "d/e"]
    tree.write({"d/.gitignore": ""})
    assert tree.glob("*.o", path="d/e/..", gitignore=True) == []
    assert "d/b.o" in tree.glob("*.o")


def test_git_itself_is_left_out(tree):
    tree.write({"a": "", "d/a": ""})
    git(tree.top, "init", "-q")
    git(tree.top, "init", "-q", "d")
    tree.write({".git/info/exclude": "/x\n", "d/.git/info/exclude": "y\n", "x": "", "y": "", "d/x": "", "d/y": ""})
    assert tree.glob("*", hidden=True, gitignore=True) == ["a", "d", "d/a", "d/x", "y"]


def test_gitignore_that_is_no_file(tree):
    tree.write({"a": "", "rules": "a\n", ".gitignore/x": "", "d/a": "", "e/a": ""})
    os.symlink("../rules", tree.top + "/d/.gitignore")
    os.mkfifo(tree.top + "/e/.gitignore")
    assert tree.glob("a", gitignore=True) == ["a", "d/a", "e/a"]


def test_gitignore_that_is_too_large(tree):
    tree.write({"d/.gitignore": "a" * (2 << 20)})
    error = tree.fail("file/glob", pattern="*", gitignore=True)
    refused(error, "limit")
    assert "d/.gitignore" in error.message


NAMES = ["a", "b", "ab", "a.c", "b.c", "x y", "#a", "!b", "[a]", "a ", "dir", "sub", ".h", "A", "é", "*", "a\\b"]
PARTS = [*NAMES, "*", "?", "*.c", "a*", "*b", "[ab]", "[!a]", "**", "[a-b]*", "\\*", "\\a", "[[:lower:]]", "[]a]", "***", "a**b", "é?",
         "[", "[a", "\\!b", "\\#a", "??"]  # fmt: skip


def a_rule(rng):
    rule = "/".join(rng.choice(PARTS) for _ in range(rng.choice([1, 1, 1, 2, 2, 3])))
    return rng.choice(["", "", "", "!", "#"]) + rng.choice(["", "", "/"]) + rule + rng.choice(["", "", "/", " ", "\\ ", "\r"])


@pytest.mark.parametrize("seed", range(12))
def test_like_git(tree, seed):
    """Trees and rules made up at random: the names that git would add."""
    rng = random.Random(seed)
    tree.write({"/".join(rng.choice(NAMES) for _ in range(rng.randint(1, 4))) + f"/{rng.choice(NAMES)}.f": "" for _ in range(60)})
    git(tree.top, "init", "-q")
    directories = [""] + sorted(
        os.path.relpath(where, tree.top) + "/" for where, _, _ in os.walk(tree.top) if "/.git" not in where and where != tree.top
    )
    for _ in range(15):
        rules = {".git/info/exclude": "\n".join(a_rule(rng) for _ in range(rng.randint(0, 2)))}
        for directory in rng.sample(directories, min(6, len(directories))):
            rules[directory + ".gitignore"] = "\n".join(a_rule(rng) for _ in range(rng.randint(0, 5))) + rng.choice(["", "\n"])
        tree.write(rules)
        assert of_glob(tree) == of_git(tree.top), rules
        for path in rules:
            os.unlink(f"{tree.top}/{path}")

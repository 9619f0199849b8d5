"""The file methods against a box that changes the tree under them: links to the host, exchanged names, odd files, amounts."""

import base64
import json
import os
import random
import time

import pytest

from boxes import MARK, Boxes, attack

# Operations of a race. The default takes seconds; 100000 is the figure for a night.
OPERATIONS = int(os.environ.get("KERN_ATTACK_OPERATIONS", "3000"))
SECRET = f"secret-{MARK}"


def ask(boxes, method, path, **params):
    """The reply object of a file method, whatever it is."""
    return boxes.client.send(f"file/{method}", {**boxes.where, "path": path, **params}).wait()


def reason(reply):
    return reply["error"]["data"]["reason"] if "error" in reply else None


def facts(path):
    """Everything of a tree that an attack could have changed or an access time could show."""
    found = {}
    for directory, names, files in os.walk(path):
        for name in ["."] + names + files:
            full = os.path.join(directory, name)
            entry = os.lstat(full)
            data = open(full).read() if os.path.isfile(full) and not os.path.islink(full) else None
            found[os.path.relpath(full, path)] = (entry.st_mode, entry.st_uid, entry.st_size, entry.st_mtime_ns, data)
    return found


@pytest.fixture
def victim(make_dir):
    """A directory of the host in which everybody may do everything, so that whoever gets there does harm."""
    path = make_dir("victim")
    os.mkdir(path + "/sub")
    for name in ("f", "sub/f", "sub/w0"):
        with open(os.path.join(path, name), "w", encoding="ascii") as file:
            file.write(SECRET)
        os.chmod(os.path.join(path, name), 0o666)
    for name in (".", "sub"):
        os.chmod(os.path.join(path, name), 0o777)
    return path


def lay_out(workspace, victim, owner):
    """a: a directory, b: a link to the victim's; x: a file, y: a link to the victim's."""
    os.makedirs(os.path.join(workspace, "a", "sub"))
    os.symlink(victim, os.path.join(workspace, "b"))
    os.symlink(os.path.join(victim, "f"), os.path.join(workspace, "y"))
    for name in ("a/f", "a/sub/f", "x"):
        with open(os.path.join(workspace, name), "w", encoding="ascii") as file:
            file.write("mine")
    for name in ("a", "a/sub", "a/f", "a/sub/f", "x"):
        os.chown(os.path.join(workspace, name), owner.pw_uid, owner.pw_gid)


def some_operation(i, choose):
    follow = {"followLinks": choose.random() < 0.3}
    name = f"{i % 7}"
    edits = [{"oldText": choose.choice(["mine", "s"]), "newText": "mine", "all": True}]
    return choose.choice(
        [
            ("read", {"path": choose.choice(["a/sub/f", "a/f", "x", "b/f", "y"]), **follow}),
            ("read", {"path": "a/sub/f", "lines": {"start": 1, "count": 2}, **follow}),
            ("stat", {"path": choose.choice(["a/sub/f", "x", "y"]), **follow}),
            ("list", {"path": choose.choice(["a", "a/sub", "b", "."]), **follow}),
            ("write", {"path": choose.choice(["a/sub/w" + name, "a/f", "x"]), "content": "mine", **follow}),
            ("write", {"path": "a/sub/w" + name, "content": "mine", "ifExists": "append", **follow}),
            ("write", {"path": f"a/new{name}/deep/f", "content": "mine", "ifExists": "fail", **follow}),
            ("edit", {"path": choose.choice(["a/sub/f", "x"]), "edits": edits, **follow}),
            ("mkdir", {"path": "a/sub/d" + name, **follow}),
            ("mkdir", {"path": f"a/sub/p{name}/q", "parents": True, **follow}),
            ("move", {"path": "a/sub/w" + name, "to": "a/v" + name, "replace": True, **follow}),
            ("move", {"path": "a/v" + name, "to": "a/sub/w" + name, **follow}),
            ("remove", {"path": choose.choice(["a/sub/d", "a/sub/p", "a/new", "a/v"]) + name, "recursive": True, **follow}),
        ]
    )


def race(boxes, victim, operations):
    """Both names are exchanged for ever while the methods are used -> how many replies of each kind."""
    before, seen, choose = facts(victim), {}, random.Random(operations)
    attackers = [boxes.start("bin/swap", *names, timeoutMs=86_400_000) for names in (("a", "b"), ("x", "y"))]
    for attacker in attackers:
        boxes.client.wait_for(lambda: boxes.client.output_events(attacker), "the attacker", 30)  # noqa: B023
    done = 0
    while done < operations:
        futures = []
        for _ in range(min(100, operations - done)):
            method, params = some_operation(done, choose)
            futures.append(boxes.client.send(f"file/{method}", {**boxes.where, **params}))
            done += 1
        for future in futures:
            reply = future.wait(120)
            assert SECRET not in json.dumps(reply) and base64.b64encode(SECRET.encode())[:-4].decode() not in json.dumps(reply)
            kind = reason(reply) or "ok"
            seen[kind] = seen.get(kind, 0) + 1
        assert facts(victim) == before
    for attacker in attackers:
        boxes.client.cancel(attacker)
        attacker.wait(30)
    print(f"{done} operations: {seen}")
    assert seen.get("ok", 0) > 0 and seen.get("path_escape", 0) > 0 and seen.get("internal", 0) == 0, seen
    return seen


@attack("44", "A1", "A2", "A4", "A6")
def test_names_exchanged_with_links_while_files_are_used(one_way, workspace, victim, owner):
    """docker cp (CVE-2018-15664), file reads of judges (CVE-2024-28185): no byte of the host in a reply, no change of it."""
    lay_out(workspace, victim, owner)
    race(one_way(), victim, OPERATIONS)


@attack("44", "A6")
def test_names_exchanged_on_a_host_without_openat2(sidecar, hooks_program, workspace, victim, owner):
    lay_out(workspace, victim, owner)
    client = sidecar(program=hooks_program, env={"KERN_TEST_NO_OPENAT2": "1"})
    race(Boxes(client, "template", workspace, {}), victim, OPERATIONS)


PLANTED = "ln -s / root; ln -s /etc etc; ln -s ../../../../../../etc rel; ln -s /etc/passwd p; mkdir d; ln -s /etc d/esc; ln -s loop loop"
ESCAPES = ["root/etc/passwd", "etc/passwd", "rel/passwd", "p", "d/esc/passwd", "loop", "loop/x", "root/proc/self/environ"]


@attack("44", "A1", "A2", "A4", "A9")
@pytest.mark.parametrize("follow", [False, True])
def test_planted_links_lead_nowhere(one_way, follow):
    """Read, written, listed, edited, made below, moved to: an error at once, in bounded time."""
    boxes = one_way()
    boxes.sh(PLANTED)
    begin = time.monotonic()
    for path in ESCAPES:
        for method, params in {
            "read": {}, "list": {}, "write": {"content": MARK}, "edit": {"edits": [{"oldText": "root", "newText": MARK}]},
        }.items():  # fmt: skip
            reply = ask(boxes, method, path, followLinks=follow, **params)
            assert reason(reply) in ("path_escape", "not_found"), (method, path, reply)
    for path in ("etc", "d/esc", "root/tmp", "rel"):
        assert reason(ask(boxes, "mkdir", f"{path}/{MARK}", followLinks=follow)) == "path_escape"
        assert reason(ask(boxes, "write", f"{path}/{MARK}", content="x", followLinks=follow)) == "path_escape"
        assert reason(ask(boxes, "remove", f"{path}/passwd", followLinks=follow)) == "path_escape"
        assert reason(ask(boxes, "move", "d", to=f"{path}/{MARK}", followLinks=follow)) == "path_escape"
    assert time.monotonic() - begin < 30


@attack("A5")
def test_dots_leave_nothing(one_way):
    """`..` is taken out of the text; names that only look like it are names."""
    boxes = one_way()
    for path in ("../../etc/passwd", "a/../../etc/passwd", "/workspace/../etc/passwd", "..", "/", "../workspace2/x"):
        assert reason(ask(boxes, "read", path)) == "path_escape", path
        assert reason(ask(boxes, "write", path, content=MARK)) == "path_escape", path
    for path in ("..hidden", "a..", "...", "x/..hidden/.. /f"):
        assert "result" in ask(boxes, "write", path, content="x"), path
        assert ask(boxes, "read", path)["result"]["text"] == "x"


@attack("45", "48", "A8")
def test_odd_files_are_refused_at_once(one_way):
    """FIFO, socket, device, directory, link to /dev/zero, a lease, a 120 MB file: no hang, bounded memory."""
    boxes = one_way()
    code = (
        "import os, socket, stat\n"
        "os.mkfifo('fifo'); socket.socket(socket.AF_UNIX).bind('sock'); os.mkdir('dir')\n"
        "os.symlink('/dev/zero', 'zero'); os.symlink('/dev/tty', 'tty'); os.truncate(os.open('big', os.O_CREAT | os.O_RDWR), 120_000_000)\n"
        "try: os.mknod('white', stat.S_IFCHR, 0)\nexcept OSError: pass"
    )
    assert boxes.python(code)["exitCode"] == 0
    begin = time.monotonic()
    wanted = {"fifo": "not_regular", "sock": "not_regular", "dir": "is_directory", "zero": "path_escape", "tty": "path_escape"}
    if "result" in ask(boxes, "stat", "white"):
        wanted["white"] = "not_regular"
    for name, why in wanted.items():
        assert reason(ask(boxes, "read", name)) == why, name
        assert reason(ask(boxes, "write", name, content="x")) == why, name
        assert reason(ask(boxes, "write", name, content="x", ifExists="append")) == why, name
        assert reason(ask(boxes, "edit", name, edits=[{"oldText": "a", "newText": "b"}])) == why, name
    assert reason(ask(boxes, "read", "big")) == "too_large"
    assert len(ask(boxes, "read", "big", length=10, encoding="base64")["result"]["base64"]) == 16
    assert reason(ask(boxes, "edit", "big", edits=[{"oldText": "a", "newText": "b"}])) == "too_large"
    assert time.monotonic() - begin < 20


@attack("47")
def test_a_terabyte_of_nothing(one_way):
    """A sparse file: refused whole, read in parts, looked through for lines only to a cap."""
    boxes = one_way()
    if boxes.sh("truncate -s 1T hole")["exitCode"] != 0:
        assert boxes.sh("truncate -s 100G hole")["exitCode"] == 0
    begin = time.monotonic()
    assert reason(ask(boxes, "read", "hole")) == "too_large"
    assert reason(ask(boxes, "read", "hole", lines={"start": 2, "count": 1})) == "too_large"
    assert ask(boxes, "read", "hole", offset=1 << 36, length=3)["result"]["text"] == "\0\0\0"
    assert reason(ask(boxes, "edit", "hole", edits=[{"oldText": "a", "newText": "b"}])) == "too_large"
    assert time.monotonic() - begin < 30 and boxes.client.call("ping") == {}


@attack("A10", "44")
def test_planted_temporary_names(one_way, victim):
    """Names like those of our temporaries, and links in their place: nothing follows them, nothing needs them."""
    boxes = one_way()
    boxes.sh(f"for i in 0 1 2 3 4 5 6 7; do ln -s {victim}/f .kern-tmp-000000000000000$i; done; echo old >f")
    before = facts(victim)
    for i in range(20):
        assert "result" in ask(boxes, "write", "f", content=f"{i}")
    assert facts(victim) == before and ask(boxes, "read", "f")["result"]["text"] == "19"

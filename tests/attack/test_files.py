"""Files: what code leaves in its workspace, as the list of changed files and the removal of a private workspace meet it."""

import base64
import os
import shutil

import pytest

from boxes import MARK, ROUNDS, attack, files_of, pinged
from expect import plain


@attack("44")
def test_links_to_the_host_are_not_followed_by_the_list(box):
    """No size, hash or name of what they point to; by name or by directory."""
    script = "ln -s /etc out; ln -s /etc/passwd p; ln -s ../../../../../etc/shadow s; ln -s /dev/zero z; ln -s loop loop; ln -s . d; echo x >real"
    result = box().sh(script)
    assert [(f["path"], f["size"]) for f in result["files"] if "sha256" in f] == [("real", 2)], result
    assert [f["path"] for f in result["files"] if "/" in f["path"]] == []


@attack("44", "A6")
def test_directory_exchanged_with_a_link_while_the_list_is_made(box, workspace, make_dir, owner):
    """A second box exchanges a directory of the same workspace with a link to the host, for ever (docker cp, CVE-2018-15664)."""
    victim = make_dir("victim")
    with open(os.path.join(victim, MARK), "w", encoding="ascii") as file:
        file.write("secret")
    os.makedirs(os.path.join(workspace, "a", "sub"))
    os.symlink(victim, os.path.join(workspace, "b"))
    for name in ("a", "a/sub"):
        os.chown(os.path.join(workspace, name), owner.pw_uid, owner.pw_gid)
    boxes = box()
    attacker = boxes.start("bin/swap", "a", "b", timeoutMs=600_000)
    boxes.client.wait_for(lambda: boxes.client.output_events(attacker), "the attacker", 30)
    for i in range(ROUNDS):
        result = boxes.sh(f"echo {i} >a/sub/f{i % 8} || true; echo {i} >x")
        names = [f["path"] for f in files_of(boxes.client, result)]
        assert "x" in names and not [name for name in names if MARK in name]
    boxes.client.cancel(attacker)
    attacker.wait(30)
    assert os.listdir(victim) == [MARK]


@attack("45")
def test_odd_files_are_not_opened(box):
    """FIFO, socket, whiteout device, a file without rights, a lease: no hang, and the rest of the list is there."""
    code = (
        "import fcntl, os, socket, stat\n"
        "os.mkfifo('fifo'); s = socket.socket(socket.AF_UNIX); s.bind('sock'); os.mknod('white', stat.S_IFCHR, 0)\n"
        "os.mkdir('dark'); open('dark/f', 'w').write('x'); os.chmod('dark', 0)\n"
        "open('closed', 'w').write('x'); os.chmod('closed', 0)\n"
        "open('real', 'w').write('x')\n"
        "if os.fork() == 0:\n    os.setsid()\n"
        "    f = os.open('real', os.O_RDWR); fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_WRLCK); fcntl.lockf(f, fcntl.LOCK_EX)\n"
        "    __import__('time').sleep(100)\n"
        "__import__('time').sleep(0.3)"
    )
    result = box().python(code, timeoutMs=20_000)
    assert (result["exitCode"], "fault" in result) == (0, False), result
    names = [f["path"] for f in result["files"]]
    assert "real" in names and "fifo" not in names and "sock" not in names and "white" not in names, names


@attack("47")
def test_file_that_grows_while_it_is_hashed(box):
    """Another call appends as fast as it can: the list comes, bounded."""
    boxes = box()
    writer = boxes.start("sh", "-c", "echo go; exec head -c 300000000 /dev/zero >grow", timeoutMs=60_000)
    boxes.client.wait_for(lambda: boxes.client.output_events(writer), "the writer", 30)
    for _ in range(5):
        assert boxes.sh("echo x >>small")["exitCode"] == 0
    writer.result(60)


NAMES = [
    b"new\nline",
    b"\xff\xfe",
    b"\xc3",
    b"-rf",
    b"$HOME",
    b"`id`",
    b"a b",
    b"\xe2\x80\xae" + b"evil",
    b"\x1b[2J",
    b"x" * 255,
    b"\\x41",
    b'"',
    b"'",
    b"\x7f",
    b"...",
    b"..hidden",
    b"a..",
]


@attack("49", "G68")
def test_names_are_listed_byte_for_byte_and_removable(client):
    """In a private workspace, which is gone afterwards."""
    session = client.call("session/open", {})
    code = f"for n in {NAMES!r}:\n    open(n, 'w').write('x')"
    result = client.run("python3", "-c", code, sessionId=session["sessionId"])
    got = [base64.b64decode(f["pathBase64"]) if "pathBase64" in f else f["path"].encode() for f in result["files"]]
    assert sorted(got) == sorted(NAMES) and len(result["files"]) == len(NAMES)
    client.call("session/close", {"sessionId": session["sessionId"]})
    assert not os.path.exists(session["workspace"])


@attack("49")
@pytest.mark.parametrize("depth", [1000, 5000])
def test_deep_directories_are_listed_or_cut_and_removed(client, depth):
    """Far beyond PATH_MAX: no recursion of ours overflows, and nothing is left."""
    session = client.call("session/open", {})
    code = f"import os\nfor i in range({depth}):\n    os.mkdir('d' * 50); os.chdir('d' * 50)\nopen('f', 'w').write('x')\nos.chdir('/workspace'); open('top', 'w').write('x')"
    request = {"argv": ["python3", "-c", code], "sessionId": session["sessionId"], "timeoutMs": 60_000}
    result = pinged(client, client.send("run/argv", request))
    assert (result["exitCode"], "top" in [f.get("path") for f in files_of(client, result)]) == (0, True), result[
        "stderr"
    ]
    pinged(client, client.send("session/close", {"sessionId": session["sessionId"]}))
    assert not os.path.exists(session["workspace"])


@attack("49")
def test_many_files_bound_the_list(client):
    session = client.call("session/open", {})
    code = "import os\nfor i in range(20000): os.close(os.open('f%d' % i, os.O_CREAT))"
    request = {"argv": ["python3", "-c", code], "sessionId": session["sessionId"], "timeoutMs": 60_000}
    result = pinged(client, client.send("run/argv", request))
    files = files_of(client, result)
    assert result["exitCode"] == 0 and (len(files) == 20000 or result["filesTruncated"] is True and len(files) > 0)
    pinged(client, client.send("session/close", {"sessionId": session["sessionId"]}))
    assert not os.path.exists(session["workspace"])


@attack("44", "49")
def test_removal_of_a_private_workspace_follows_no_link(client, make_dir, owner):
    victim = make_dir("victim")
    with open(os.path.join(victim, "keep"), "w", encoding="ascii"):
        pass
    session = client.call("session/open", {})
    script = f"ln -s {victim} d; ln -s / r; ln -s {victim}/keep f; mkdir t; ln -s ../../../.. t/up; chmod 500 t; mkdir n; chmod 000 n; chmod 500 ."
    client.run("sh", "-c", script, sessionId=session["sessionId"])
    client.call("session/close", {"sessionId": session["sessionId"]})
    assert not os.path.exists(session["workspace"]) and os.listdir(victim) == ["keep"]


@attack("A10")
def test_planted_names_of_ours_are_nothing_to_us(box, workspace, make_dir, owner):
    """Links at every name that a runner or the sidecar might write: the victim stays as it is."""
    victim = make_dir("victim")
    target = os.path.join(victim, "v")
    with open(target, "w", encoding="ascii") as file:
        file.write("untouched")
    os.chown(target, owner.pw_uid, owner.pw_gid)
    for name in (
        "main.py",
        "code",
        "code.py",
        "main",
        "main.sh",
        "main.js",
        "main.mjs",
        "main.cjs",
        "script",
        "cell",
        "env",
        "result",
        "results",
        "output",
        "stdout",
        "stderr",
        ".kern",
        "kern",
        "tmp",
        ".deps",
        "<string>",
        "-",
        "input",
        "runner.py",
    ):
        if not os.path.lexists(os.path.join(workspace, name)):
            os.symlink(target, os.path.join(workspace, name))
    boxes = box()
    for language, code in (("python", "print(1)"), ("bash", "echo 1"), ("sh", "echo 1"), ("node", "console.log(1)")):
        if language != "node" or shutil.which("node"):
            result = boxes.code(code, language=language)
            assert (result["stdout"], result["files"]) == ("1\n", []), result
    with open(target, encoding="ascii") as file:
        assert file.read() == "untouched"


SHADOWS = (
    "json",
    "ast",
    "os",
    "sys",
    "io",
    "re",
    "socket",
    "struct",
    "traceback",
    "linecache",
    "base64",
    "types",
    "builtins",
    "runner",
    "rich",
    "errors",
    "awaits",
    "sitecustomize",
    "usercustomize",
    "matplotlib",
    "pandas",
    "IPython",
    "inspect",
    "tokenize",
    "signal",
    "warnings",
    "encodings",
)


@attack("53", "D56")
@pytest.mark.parametrize("where", ["/workspace", "/workspace/sub"])
def test_modules_of_the_workspace_do_not_replace_ours(box, workspace, owner, where):
    """Shadowing files, site hooks, forged bytecode and start-up files: the runner reports as ever, and none of them ran before the code."""
    sub = os.path.join(workspace, "sub")
    os.mkdir(sub)
    poison = "import os\nos.write(1, b'poisoned by ' + __name__.encode())\n"
    for directory in (workspace, sub):
        for name in SHADOWS:
            with open(os.path.join(directory, name + ".py"), "w", encoding="ascii") as file:
                file.write(poison)
        for name in (
            ".bashrc",
            ".profile",
            ".bash_profile",
            ".env",
            "pyvenv.cfg",
            "python311._pth",
            ".npmrc",
            "package.json",
            "pyproject.toml",
            "startup.pth",
        ):
            with open(os.path.join(directory, name), "w", encoding="ascii") as file:
                file.write("echo poisoned\n")
    os.remove(os.path.join(workspace, "package.json"))
    os.remove(os.path.join(sub, "package.json"))
    boxes = box()
    result = boxes.code("1 / 0", cwd=where)
    assert (result["stdout"], result["exitCode"], result["error"]["name"]) == ("", 1, "ZeroDivisionError"), result
    result = boxes.code("21 * 2", cwd=where)
    assert result["stdout"] == "" and result["results"][0]["data"]["text/plain"] == "42", result
    assert boxes.code("echo clean", language="bash", cwd=where)["stdout"] == "clean\n"
    assert boxes.code("echo clean", language="sh", cwd=where)["stdout"] == "clean\n"


@attack("53")
def test_start_up_hooks_do_not_outlive_their_call(box):
    """What a call puts into HOME, its caches and its environment is gone for the next one."""
    script = (
        "mkdir -p ~/.local/lib/python3.11/site-packages ~/.config ~/.cache; echo 'print(\"poisoned\")' >~/.local/lib/python3.11/site-packages/usercustomize.py;"
        "echo 'echo poisoned' >~/.bashrc; cp ~/.bashrc ~/.profile; echo x >/tmp/poison; echo x >/dev/shm/poison; export PYTHONSTARTUP=/workspace/p.py"
    )
    boxes = box()
    assert boxes.sh(script)["exitCode"] == 0
    assert boxes.code("print('clean')")["stdout"] == "clean\n"
    plain(
        boxes.run("bash", "-lc", "echo clean; ls -A /tmp /dev/shm; env | grep -c PYTHON"),
        "clean\n/dev/shm:\n\n/tmp:\n0\n",
        code=1,
    )


@attack("25")
def test_setuid_bits_do_not_reach_the_host(box):
    """In a named workspace they would make programs of the workspace's owner for every other user of the host."""
    boxes = box()
    code = (
        "import os\nos.system('cp /usr/bin/id a; cp /usr/bin/id b; mkdir d')\n"
        "for f in (lambda: os.chmod('a', 0o6755), lambda: os.fchmod(os.open('b', 0), 0o4755), lambda: os.close(os.open('c', os.O_CREAT, 0o6755)), lambda: os.mknod('e', 0o106755)):\n"
        "    try: f()\n    except OSError: pass"
    )
    boxes.python(code)
    modes = {name: os.stat(boxes.path(name)).st_mode & 0o6000 for name in "abce" if os.path.exists(boxes.path(name))}
    for name in modes:
        os.chmod(boxes.path(name), 0o644)
    assert not any(modes.values()), modes


@attack("48")
def test_unlinked_and_mapped_files_are_no_files(box):
    code = (
        "import mmap, os\nfd = os.open('.', os.O_TMPFILE | os.O_RDWR); os.write(fd, b'x' * 4096); m = mmap.mmap(fd, 4096); m[0] = 1\n"
        "g = os.open('gone', os.O_CREAT | os.O_RDWR); os.write(g, b'x'); os.unlink('gone'); open('stays', 'w').write('x')"
    )
    assert [f["path"] for f in box().python(code)["files"]] == ["stays"]


@attack("A20")
def test_workspaces_of_two_sessions_are_apart(client):
    """Private ones: neither their files nor their names can be seen from the other's box."""
    first, second = client.call("session/open", {}), client.call("session/open", {})
    client.run("sh", "-c", f"echo secret >{MARK}", sessionId=first["sessionId"])
    script = f"ls -A /workspace; ls -d {first['workspace']} {os.path.dirname(first['workspace'])} /workspace/../../* 2>/dev/null | grep -c ws-; find / -xdev -name {MARK} 2>/dev/null"
    plain(client.run("sh", "-c", script, sessionId=second["sessionId"]), "0\n")


# -- installed packages, and bytecode


FORGED = """
import importlib.util, marshal, os, struct, sys
source, pyc = 'victim.py', importlib.util.cache_from_source('victim.py')
os.makedirs('__pycache__', exist_ok=True)
code = marshal.dumps(compile("who = 'forged'", source, 'exec'))
st = os.stat(source)
head = {'timestamp': struct.pack('<III', 0, int(st.st_mtime), st.st_size), 'unchecked': struct.pack('<IQ', 1, 0),
        'checked': b'\\3\\0\\0\\0' + importlib.util.source_hash(open(source, 'rb').read())}[sys.argv[1]]
open(pyc, 'wb').write(importlib.util.MAGIC_NUMBER + head + code)
open('victim.pyc', 'wb').write(importlib.util.MAGIC_NUMBER + struct.pack('<IQ', 1, 0) + code)
"""


@attack("53", "F56")
@pytest.mark.parametrize("header", ["timestamp", "unchecked", "checked"])
def test_forged_bytecode_beside_a_source_is_not_read(box, header):
    """Also of a package, and in a directory that PYTHONPATH names."""
    boxes = box()
    boxes.sh("mkdir -p lib package; for d in . lib package; do echo \"who = 'source'\" >$d/victim.py; done")
    for directory in (".", "lib", "package"):
        plain(boxes.run("/usr/bin/python3", "-c", FORGED, header, cwd=f"/workspace/{directory}"))
    plain(boxes.code("import victim, package.victim as p; print(victim.who, p.who)"), "source source\n")
    result = boxes.code("import sys; sys.path.pop(0); import victim; print(victim.who)", env={"PYTHONPATH": "/workspace/lib"})
    plain(result, "source\n")
    # the attack is one: the plain interpreter believes it
    plain(boxes.run("/usr/bin/python3", "-c", "import victim; print(victim.who)"), "forged\n")


class Setup:
    """A session whose packages hold one module."""

    def __init__(self, boxes):
        self.boxes = boxes
        assert self("echo \"who = 'source'\" >$KERN_DEPS/victim.py")["success"]

    def __call__(self, command):
        return self.boxes.client.call("session/setup", {**self.boxes.where, "command": command}, 120)


def in_session(boxes):
    if "sessionId" not in boxes.where:
        pytest.skip("a throw-away session has no setup")
    return boxes


@attack("53", "F56")
def test_installed_packages_cannot_be_changed(box):
    """By any name, link, rename, mode, or through an open file; nor their bytecode."""
    boxes = in_session(box())
    Setup(boxes)
    tries = [
        "echo x >.deps/victim.py", "echo x >.deps/new.py", "rm -rf .deps", "mv .deps other", "mv bin .deps", "rmdir .deps",
        "ln -sfn /tmp .deps", "chmod 777 .deps", "chmod u+w .deps/victim.py", "ln .deps/victim.py hard && echo x >>hard",
        "mkdir -p .deps/__pycache__/x", "rm .deps/__pycache__/*", "cp /etc/passwd .deps/__pycache__/victim.cpython-311.pyc",
        "touch .deps/victim.py", "truncate -s 0 .deps/victim.py", "cd .deps && echo x >victim.py", "exec 3<.deps/victim.py && echo x >/proc/self/fd/3",
        "dd if=/dev/zero of=.deps/victim.py conv=notrunc count=1", "mkdir a && mv -T a .deps", "setfattr -n user.x -v y .deps/victim.py",
    ]
    for script in tries:
        boxes.sh(script)
    result = boxes.code("import victim; print(victim.who, victim.__file__)")
    plain(result, "source /workspace/.deps/victim.py\n")
    with open(boxes.path(".deps/victim.py"), encoding="ascii") as file:
        assert file.read() == "who = 'source'\n"


PLANTED = {
    "link-out": "ln -s {victim} .deps",
    "link-in": "mkdir real; ln -s real .deps",
    "loop": "ln -s .deps .deps",
    "file": "echo x >.deps",
    "fifo": "mkfifo .deps",
    "packages": "mkdir .deps; echo who=1 >.deps/victim.py",
    "closed": "mkdir .deps; echo x >.deps/x; chmod 0 .deps",
}


@attack("53", "44", "F56")
@pytest.mark.parametrize("kind", PLANTED)
def test_packages_that_a_call_has_planted_are_refused(one_way, make_dir, kind):
    """Where a setup would install, a call has put something before: it is not followed, not taken over, and nothing is lost."""
    boxes = one_way()
    victim = make_dir("victim")
    with open(os.path.join(victim, MARK), "w", encoding="ascii") as file:
        file.write("secret")
    boxes.sh(PLANTED[kind].format(victim=victim))
    error = boxes.client.fail("session/setup", {**boxes.where, "command": "echo x >$KERN_DEPS/x"})
    assert error.reason == "setup_failed" and "remove it" in error.data["hint"], error
    assert os.listdir(victim) == [MARK]
    boxes.sh("chmod 700 .deps; rm -rf .deps")
    assert Setup(boxes)("true")["success"]
    plain(boxes.code("import victim; print(victim.who)"), "source\n")


STAGED = {
    "link-out": "ln -s {victim} .deps.new",
    "tree-link-out": "mkdir .deps.new; ln -s {victim} .deps.new/tree; ln -s {victim} .deps.new/tmp; ln -s {victim} .deps.new/home",
    "file": "echo x >.deps.new",
    "fifo": "mkfifo .deps.new",
    "deep": "mkdir .deps.new; cd .deps.new; for i in $(seq 300); do mkdir d || break; cd d; done; echo x >f; chmod 0 .",
    "closed": "mkdir -p .deps.new/a/b; echo x >.deps.new/a/b/c; chmod 0 .deps.new/a/b .deps.new/a .deps.new",
}


@attack("53", "44")
@pytest.mark.parametrize("kind", STAGED)
def test_place_of_a_setup_that_a_call_has_planted_is_cleared(one_way, make_dir, kind):
    boxes = one_way()
    victim = make_dir("victim")
    with open(os.path.join(victim, MARK), "w", encoding="ascii") as file:
        file.write("secret")
    boxes.sh(STAGED[kind].format(victim=victim))
    Setup(boxes)
    plain(boxes.code("import victim; print(victim.who)"), "source\n")
    assert os.listdir(victim) == [MARK]
    assert not os.path.lexists(boxes.path(".deps.new"))


@attack("53")
def test_modules_of_the_workspace_are_not_run_by_a_setup(one_way):
    """The network is on there: pip, what compiles, and their libraries come from the interpreter."""
    boxes = one_way()
    names = "pip sitecustomize usercustomize compileall py_compile os re json shutil subprocess importlib"
    boxes.sh(f"for m in {names}; do echo \"open('/workspace/{MARK}', 'w')\" >$m.py; done; mkdir -p pip; cp pip.py pip/__init__.py; cp pip.py pip/__main__.py")
    boxes.client.call("session/setup", {**boxes.where, "command": "pip install --no-index nothing-at-all"}, 120)
    Setup(boxes)
    assert not os.path.exists(boxes.path(MARK))


@attack("53", "A6")
def test_package_that_exchanges_what_is_installed(one_way, make_dir):
    """A hostile setup command moves its own place about: what takes its place is what it was given, or nothing does."""
    boxes = one_way()
    setup = Setup(boxes)
    victim = make_dir("victim")
    for script in (
        f"mv .deps.new/tree .deps.new/x; ln -s {victim} .deps.new/tree", "mv .deps.new away; mkdir -p .deps.new/tree; echo x >.deps.new/tree/x",
        "rm -rf .deps.new/tree; mkdir .deps.new/tree", "mv .deps.new/tree stolen",
    ):
        answer = boxes.client.send("session/setup", {**boxes.where, "command": f"echo 'x = 1' >$KERN_DEPS/x.py; {script}"})
        answer.wait(60)
        plain(boxes.code("import victim; print(victim.who)"), "source\n")
        assert boxes.sh("touch .deps/new")["exitCode"] == 1
    assert os.listdir(victim) == [] and setup("true")["success"]

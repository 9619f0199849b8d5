"""session/setup: a command with the network on that installs packages into .deps; whole or not at all (session/setup.h)."""

import os
import shutil
import subprocess
import time

import pytest

from expect import fault, plain, refused
from packages import tarball, wheel

PIP = "pip install --no-index --find-links /packages "
HAS_PIP = subprocess.run(["/usr/bin/python3", "-I", "-c", "import pip"], capture_output=True, check=False).returncode == 0
needs_pip = pytest.mark.skipif(not HAS_PIP, reason="/usr/bin/python3 has no pip: install python3-pip")
needs_npm = pytest.mark.skipif(not shutil.which("npm", path="/usr/bin:/bin"), reason="no npm in /usr: install npm")
NO_INDEX = ("No matching distribution", "NewConnectionError", "Read timed out", "ConnectTimeout", "ProxyError", "SSLError")


class Session:
    def __init__(self, client, **fields):
        self.client = client
        self.answer = client.call("session/open", fields)
        self.id, self.workspace = self.answer["sessionId"], self.answer["workspace"]

    def send(self, command, **params):
        return self.client.send("session/setup", {"sessionId": self.id, "command": command, **params})

    def setup(self, command, timeout=120, **params):
        return self.send(command, **params).result(timeout)

    def refuse(self, command, **params):
        return self.client.fail("session/setup", {"sessionId": self.id, "command": command, **params})

    def sh(self, script, **params):
        return self.client.run("sh", "-c", script, sessionId=self.id, **params)

    def code(self, code, **params):
        return self.client.code(code, sessionId=self.id, **params)

    def start(self, script):
        return self.client.start("sh", "-c", script, sessionId=self.id)

    def names(self):
        return sorted(self.sh("ls -A")["stdout"].split())


@pytest.fixture
def packages(make_dir):
    directory = make_dir("packages")
    wheel(directory, "one", scripts={"one-tool": "one:main"}, files={"one.py": "version = '1.0'\ndef main():\n    print('tool', version)\n"})
    wheel(directory, "two")
    wheel(directory, "two", "2.0")
    tarball(directory, "double")
    return {"source": directory, "target": "/packages", "mode": "ro"}


@pytest.fixture
def session(client, packages):
    return Session(client, mounts=[packages])


# -- what it installs


@needs_pip
def test_pip(session):
    result = session.setup(PIP + "one")
    assert (result["exitCode"], result["success"], result["cached"], result["files"]) == (0, True, False, []), result
    assert "Successfully installed one-1.0" in result["stdout"]
    assert session.names() == [".deps"]
    result = session.code("import one, sys\nprint(one.version, one.__file__, one.__cached__)\nsys.path[:2]")
    assert result["stdout"].split()[:2] == ["1.0", "/workspace/.deps/one.py"]
    assert result["results"][0]["data"]["text/plain"] == "['/workspace', '/workspace/.deps']"
    plain(session.sh("one-tool"), "tool 1.0\n")
    plain(session.sh("python3 -c 'import one; print(one.version)'"), "1.0\n")


@pytest.mark.any_user
@needs_pip
@pytest.mark.parametrize("words", ["pip3", "\tpython3  -m pip"])  # all of them: unit/test_install.c
def test_leading_words(session, words):
    assert session.setup(f"{words} install --no-index --find-links /packages 'one>=1.0' && echo done")["stdout"].endswith("done\n")
    plain(session.code("import one"))


@needs_pip
def test_bytecode_is_compiled_and_used(session):
    session.setup(PIP + "one")
    code = (
        "import importlib.util, one\n"
        "with open(importlib.util.cache_from_source(one.__file__), 'rb') as f: print(f.read(8)[4:])"
    )
    plain(session.code(code), "b'\\x01\\x00\\x00\\x00'\n")  # PEP 552: by hash, and not checked


@needs_pip
def test_a_second_setup_adds_and_replaces(session):
    session.setup(PIP + "one two==1.0")
    session.setup(PIP + "two")
    plain(session.code("import one, two; print(one.version, two.version)"), "1.0 2.0\n")
    plain(session.sh("ls -d .deps/two-*"), ".deps/two-2.0.dist-info\n")


@needs_npm
def test_npm(session, client):
    result = session.setup("npm install --offline /packages/double-1.0.0.tgz")
    assert result["exitCode"] == 0, result
    plain(session.code("console.log(require('double')(21))", language="node"), "42\n")
    plain(session.code("import double from 'double'; console.log(double(4))", language="node"), "8\n")
    plain(session.code("import('double').then((m) => console.log(m.default(5)))", language="node"), "10\n")
    plain(session.sh("cd /tmp && node -e 'console.log(require(\"double\")(1))' && double"), "2\ncli of double\n")
    assert session.names() == [".deps"]


@needs_npm
def test_npm_without_a_package_serves_the_working_directory(session):
    session.sh("echo '{\"dependencies\": {\"double\": \"file:/packages/double-1.0.0.tgz\"}}' >package.json")
    assert session.setup("npm install --offline")["exitCode"] == 0
    assert session.names() == ["node_modules", "package-lock.json", "package.json"]
    plain(session.code("console.log(require('double')(2))", language="node"), "4\n")


@pytest.mark.any_user
@needs_pip
def test_from_the_index(client):
    session = Session(client)
    for attempt in range(3):
        result = session.setup("pip install --retries 1 --timeout 15 six==1.16.0", timeoutMs=90_000)
        if result["exitCode"] == 0:
            break
        if not any(word in result["stdout"] + result["stderr"] for word in NO_INDEX) and "fault" not in result:
            pytest.fail(str(result))
        time.sleep(2**attempt)
    else:
        pytest.skip(f"the index cannot be reached from here: {result['stderr'][-200:]}")
    plain(session.code("import six; print(six.__version__)"), "1.16.0\n")


def test_any_command(session):
    host = os.readlink("/proc/self/ns/net")
    result = session.setup("readlink /proc/self/ns/net; echo \"$KERN_DEPS\"; pwd; echo x >made; echo 'y = 7' >$KERN_DEPS/why.py")
    assert result["stdout"] == f"{host}\n/workspace/.deps\n/workspace\n"
    assert [f["path"] for f in result["files"]] == ["made"]
    plain(session.code("import why; print(why.y)"), "7\n")
    assert host not in session.sh("readlink /proc/self/ns/net")["stdout"]


def test_nothing_installed_leaves_nothing(session):
    assert session.setup("true")["success"]
    assert session.names() == []


def test_home_and_tmp_have_room(session):
    """More than the memory file systems of other boxes hold; and gone afterwards."""
    script = 'for d in "$HOME" "$TMPDIR" "$XDG_CACHE_HOME"; do mkdir -p "$d"; head -c 80000000 /dev/zero >"$d/x" || exit 9; done'
    assert session.setup(script)["exitCode"] == 0
    assert session.names() == []


POSTURES = [
    {"start": "cold"},
    {"user": "root"},
    {"workspaceTarget": "/tmp/w"},
    {"workspaceTarget": "/home/sandbox/w"},
    {"workspaceStorage": "memory", "workspaceMaxMb": 64},
    {"workspaceStorage": "memory", "workspaceMaxMb": 64, "start": "cold"},
    {"tmpfs": {}},
    {"network": True},
    {"depsReadonly": False},
]


@needs_pip
@pytest.mark.parametrize("fields", POSTURES, ids=lambda f: "-".join(f"{k}" for k in f))
def test_in_every_posture(client, packages, fields):
    session = Session(client, mounts=[packages], **fields)
    assert session.setup(PIP + "one")["exitCode"] == 0
    plain(session.code("import one; print(one.version)"), "1.0\n")
    assert session.setup("echo 'version = 2' >$KERN_DEPS/two.py")["exitCode"] == 0
    plain(session.code("import one, two; print(two.version)"), "2\n")
    touched = session.sh("touch .deps/x")["exitCode"]
    assert touched == (0 if fields.get("depsReadonly") is False else 1)


@needs_pip
def test_a_workspace_keeps_its_packages(client, packages, make_dir):
    workspace = make_dir("workspace")
    first = Session(client, mounts=[packages], workspace=workspace)
    first.setup(PIP + "one")
    client.call("session/close", {"sessionId": first.id})
    assert os.listdir(workspace) == [".deps"]
    second = Session(client, mounts=[packages], workspace=workspace)
    plain(second.code("import one; print(one.version)"), "1.0\n")
    assert second.sh("touch .deps/x")["exitCode"] == 1
    result = client.code("import one; print(one.version)", session={"workspace": workspace})
    plain(result, "1.0\n")
    assert second.setup(PIP + "two")["success"]
    plain(second.code("import one, two; print(two.version)"), "2.0\n")


def test_writable_when_asked_for(client):
    session = Session(client, depsReadonly=False)
    assert [n["code"] for n in session.answer["notes"]] == ["deps_writable"]
    session.setup("echo 'x = 1' >$KERN_DEPS/m.py")
    plain(session.code("import m; print(m.x)"), "1\n")
    session.sh("sleep 0.01; echo 'x = 22' >.deps/m.py")
    plain(session.code("import m; print(m.x)"), "22\n")


# -- what goes wrong


def test_a_failure_is_a_result(session):
    session.setup("echo 'x = 1' >$KERN_DEPS/m.py")
    result = session.setup("rm -r $KERN_DEPS/m.py; echo 'x = 2' >$KERN_DEPS/n.py; echo last words >&2; exit 7")
    assert (result["exitCode"], result["success"], result["stderr"]) == (7, False, "last words\n")
    assert session.names() == [".deps"]
    plain(session.code("import m; print(m.x)"), "1\n")


@pytest.mark.any_user
@needs_pip
def test_last_words_of_pip(session):
    result = session.setup(PIP + "no-such-package")
    assert (result["exitCode"], result["success"]) == (1, False)
    assert "No matching distribution found for no-such-package" in result["stderr"]
    assert session.names() == []


def test_deadline(session):
    result = session.setup("echo x >$KERN_DEPS/x; sleep 60", timeoutMs=500)
    fault(result, "timeout")
    assert session.names() == []


@pytest.mark.any_user
def test_default_deadline_is_longer_than_the_sessions(client):
    session = Session(client, timeoutMs=200)
    assert session.setup("sleep 1; echo done")["stdout"] == "done\n"


def test_memory_cap_holds(client, as_user):
    session = Session(client, memoryMb=32)
    if session.answer["effective"]["memoryMb"]["enforced"] != "kernel":
        pytest.skip("the kernel does not hold the memory cap here")
    fault(session.setup("head -c 200000000 /dev/zero | tail"), "oom")


def test_size_of_the_workspace_holds(client):
    """What is being installed counts, as do /tmp and HOME of the setup."""
    for fields in ({}, {"workspaceStorage": "memory"}):
        session = Session(client, workspaceMaxMb=8, **fields)
        result = session.setup("set -e; sleep 0.1; head -c 20000000 /dev/zero >$KERN_DEPS/x; head -c 20000000 /dev/zero >$TMPDIR/x; sleep 2")
        if fields:
            assert "No space left" in result["stderr"] and result["stdoutBytes"] == 0
        else:
            assert not result["success"]
        assert session.setup("echo 'x = 1' >$KERN_DEPS/m.py")["success"]
        plain(session.code("import m; print(m.x)"), "1\n")


def test_no_pip(client):
    session = Session(client, interpreters={"python": "/workspace/py"})
    session.sh("printf '#!/bin/sh\\nexec /usr/bin/python3 -S \"$@\"\\n' >py; chmod +x py")
    error = session.refuse("pip install six")
    refused(error, "setup_failed")
    assert "python3-pip" in error.data["hint"] and session.names() == ["py"]


def test_no_npm_and_no_shell(client):
    session = Session(client, env={"PATH": "/workspace"})
    refused(session.refuse("echo x"), "setup_failed")
    session.client.run("/bin/ln", "-s", "/bin/sh", "sh", sessionId=session.id)
    error = session.refuse("npm install left-pad")
    refused(error, "setup_failed")
    assert "npm" in error.data["hint"]


def test_untrusted_has_no_network(client):
    session = Session(client, securityProfile="untrusted")
    error = session.refuse("true")
    refused(error, "setup_failed")
    assert "another session" in error.data["hint"]
    error = client.fail("session/open", {"securityProfile": "untrusted", "depsReadonly": False})
    refused(error, "invalid_value", "/depsReadonly")


def test_bad_params(client, session):
    refused(client.fail("session/setup", {"sessionId": "nobody", "command": "true"}), "unknown_handle", "/sessionId")
    refused(session.refuse(""), "out_of_range", "/command")
    refused(client.fail("session/setup", {"sessionId": session.id}), "missing", "/command")
    refused(client.fail("session/setup", {"sessionId": session.id, "command": ["true"]}), "invalid_type", "/command")
    refused(session.refuse("true", timeoutMs=0), "out_of_range", "/timeoutMs")
    refused(session.refuse("x" * 65537), "out_of_range", "/command")
    assert session.setup("true #" + "x" * 65530)["success"]


# -- beside others


def test_runs_before_it_and_behind_it(session, client):
    before = session.start("echo up; sleep 0.7; ls -A .deps 2>&1; echo end")
    client.wait_for(lambda: client.output_events(before), "the run before")
    setup = session.send("sleep 0.3; echo 'x = 1' >$KERN_DEPS/m.py")
    behind = client.send("run/code", {"sessionId": session.id, "code": "import m; print(m.x)"})
    second = session.send("echo 'x = 2' >$KERN_DEPS/m.py")
    last = client.send("run/code", {"sessionId": session.id, "code": "import m; print(m.x)"})
    assert before.result()["stdout"].startswith("up\nls: cannot access")
    assert setup.result()["success"]
    plain(behind.result(), "1\n")
    assert second.result()["success"]
    plain(last.result(), "2\n")


def test_other_sessions_go_on(session, client):
    setup = session.send("sleep 1")
    begin = time.monotonic()
    plain(client.run("echo", "x"), "x\n")
    assert not setup.done() and time.monotonic() - begin < 1
    setup.result()


def test_stream(session):
    future = session.send("echo one; sleep 0.1; echo two >&2", stream="live")
    result = future.result()
    methods = [e["method"] for e in future.events]
    assert methods[0] == "run/started" and methods.count("run/output") >= 2, methods
    assert future.events[0]["params"]["sessionId"] == session.id
    assert (result["stdout"], result["stderr"]) == ("one\n", "two\n")


def test_lossless_stream(session, client):
    future = session.send("head -c 1000000 /dev/zero | tr '\\0' x", stream="lossless")
    client.wait_for(lambda: len(client.output_events(future)) > 0, "output")
    client.call("run/credit", {"runId": future.events[0]["params"]["runId"], "bytes": 10_000_000})
    result = future.result()
    assert result["stdoutBytes"] == 1_000_000
    assert sum(e["bytes"] for e in client.output_events(future)) == 1_000_000


# -- cancelled


def test_cancel_while_it_runs(session, client):
    session.setup("echo 'x = 1' >$KERN_DEPS/m.py")
    future = session.send("echo 'x = 2' >$KERN_DEPS/m.py; echo up; sleep 60", stream="live")
    client.wait_for(lambda: client.output_events(future), "its output")
    client.cancel(future)
    result = future.result()
    fault(result, "cancelled")
    assert result["stdout"] == "up\n" and session.names() == [".deps"]
    plain(session.code("import m; print(m.x)"), "1\n")


def test_cancel_while_it_waits(session, client):
    run = session.start("echo up; sleep 0.5")
    client.wait_for(lambda: client.output_events(run), "the run")
    future = session.send("true")
    behind = client.send("run/argv", {"sessionId": session.id, "argv": ["true"]})
    client.cancel(future)
    refused(future.error(), "cancelled")
    assert not run.done()
    assert behind.result()["success"] and run.result()["success"]


@pytest.mark.any_user
def test_cancel_at_any_time(session, client):
    """Whenever it comes, the session goes on, and what is installed is one of the two."""
    session.setup("echo 'x = 1' >$KERN_DEPS/m.py")
    for i in range(25):
        future = session.send(f"echo 'x = {i + 2}' >$KERN_DEPS/m.py")
        time.sleep(i * 0.004)
        client.cancel(future)
        future.wait()
        assert int(session.code("import m; print(m.x)")["stdout"]) <= i + 2
    assert session.names() == [".deps"]


def test_close_while_it_runs(client, make_dir):
    workspace = make_dir("workspace")
    session = Session(client, workspace=workspace)
    future = session.send("echo x >$KERN_DEPS/x; echo up; sleep 60", stream="live")
    client.wait_for(lambda: client.output_events(future), "its output")
    client.call("session/close", {"sessionId": session.id})
    fault(future.result(), "cancelled")
    assert os.listdir(workspace) == []


def test_close_at_any_time(client, make_dir):
    for i in range(20):
        workspace = make_dir(f"workspace-{i}")
        session = Session(client, workspace=workspace)
        future = session.send("echo 'x = 1' >$KERN_DEPS/m.py")
        time.sleep(i * 0.005)
        client.call("session/close", {"sessionId": session.id})
        future.wait()
        assert os.listdir(workspace) in ([], [".deps"])
        if os.listdir(workspace):
            assert "m.py" in os.listdir(workspace + "/.deps")


def test_end_of_the_sidecar_while_it_runs(sidecar, make_dir):
    client = sidecar()
    session = Session(client, workspace=make_dir("workspace"))
    future = session.send("echo up; sleep 60", stream="live")
    client.wait_for(lambda: client.output_events(future), "its output")
    begin = time.monotonic()
    client.close()
    assert time.monotonic() - begin < 3
    assert os.listdir(session.workspace) == []


def test_what_a_killed_sidecar_left_is_cleared(sidecar, make_dir):
    workspace = make_dir("workspace")
    client = sidecar(expect_exit=None)
    session = Session(client, workspace=workspace)
    future = session.send("echo x >$KERN_DEPS/x; echo up; sleep 60", stream="live")
    client.wait_for(lambda: client.output_events(future), "its output")
    client.kill()
    assert sorted(os.listdir(workspace)) == [".deps", ".deps.new"]
    other = Session(sidecar(), workspace=workspace)
    assert other.setup("echo 'x = 1' >$KERN_DEPS/m.py")["success"]
    plain(other.code("import m; print(m.x)"), "1\n")
    assert os.listdir(workspace) == [".deps"]


# -- the cache


@pytest.fixture
def cached(sidecar, place, packages):
    """cached(**fields) -> a session of a new sidecar whose pip finds the packages by its environment; all share a cache."""

    def open_session(**fields):
        client = sidecar(env={"XDG_CACHE_HOME": os.path.join(place, "cache")})
        env = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "/packages", **fields.pop("env", {})}
        return Session(client, mounts=[packages], env=env, **fields)

    os.mkdir(os.path.join(place, "cache"))
    stat = os.stat(place)
    os.chown(os.path.join(place, "cache"), stat.st_uid, stat.st_gid)
    return open_session


def cache_of(place):
    top = os.path.join(place, "cache", "kern-sidecar")
    (name,) = os.listdir(top)
    return os.path.join(top, name)


@needs_pip
def test_the_same_setup_is_not_run_again(cached, place):
    first = cached().setup("pip install one 'two>=1'")
    assert (first["success"], first["cached"]) == (True, False)
    session = cached()
    again = session.setup("pip install one 'two>=1'")
    assert (again["success"], again["cached"], again["stdout"], again["exitCode"]) == (True, True, "", 0)
    assert [note["code"] for note in again["runtimeNotes"]] == ["setup_cached"]
    plain(session.code("import one, two; print(two.version, one.__cached__[-4:])"), "2.0 .pyc\n")
    plain(session.sh("one-tool"), "tool 1.0\n")
    assert session.sh("touch .deps/x")["exitCode"] == 1 and session.names() == [".deps"]
    for directory in (os.path.dirname(cache_of(place)), cache_of(place)):
        assert os.stat(directory).st_mode & 0o777 == 0o700
    again = session.setup("pip install one 'two>=1'")  # there are packages now: it is asked to look again
    assert again["success"] and not again["cached"]


OTHER = [
    ("pip install one two", {}),
    ("pip install one", {"env": {"X": "1"}}),
    ("pip install one", {"workspaceTarget": "/data"}),
    ("pip install one", {"depsReadonly": False}),
    ("pip install one", {"interpreters": {"python": "/usr/bin/python3"}}),
    ("pip install one && true", {}),
]


@pytest.mark.any_user
@needs_pip
def test_another_setup_is(cached):
    assert cached().setup("pip install one")["success"]
    for command, fields in OTHER:
        result = cached(**fields).setup(command)
        assert result["success"] and not result["cached"], (command, fields, result)


@pytest.mark.any_user
@needs_pip
def test_files_and_addresses_are_never_cached(cached):
    for command in ("pip install /packages/one-1.0-py3-none-any.whl", "pip install $(echo one)"):  # all kinds: unit/test_install.c
        for _ in range(2):
            assert cached().setup(command)["cached"] is False


@pytest.mark.any_user
@needs_pip
def test_a_failure_is_not_cached(cached):
    for _ in range(2):
        result = cached().setup("pip install missing")
        assert (result["success"], result["cached"]) == (False, False)


@needs_pip
def test_writable_packages_do_not_reach_the_cache(cached):
    for i in range(3):
        session = cached(depsReadonly=False)
        assert session.setup("pip install one")["cached"] is (i > 0)
        plain(session.code("import one; print(one.version)"), "1.0\n")
        session.sh("for f in .deps/one.py .deps/__pycache__/*; do echo 'raise SystemExit(9)' >$f; done; chmod 0 .deps/one.py")


@needs_pip
def test_cache_that_others_may_reach_is_not_used(cached, place, owner):
    cached().setup("pip install one")
    directory = cache_of(place)
    os.chmod(directory, 0o755)
    assert cached().setup("pip install one")["cached"] is False
    os.chmod(directory, 0o700)
    assert cached().setup("pip install one")["cached"] is True
    os.rename(directory, directory + ".real")
    os.symlink(directory + ".real", directory)
    assert cached().setup("pip install one")["cached"] is False
    if owner.pw_uid == 0:
        os.remove(directory)
        os.mkdir(directory, 0o700)
        os.chown(directory, 12345, 12345)
        assert cached().setup("pip install one")["cached"] is False


@needs_pip
def test_cache_in_the_workspace_is_not_used(cached, place, as_user):
    if as_user == "root":
        pytest.skip("a workspace of root's own directory needs no second proof")
    workspace = os.path.join(place, "cache")
    for _ in range(2):
        session = cached(workspace=workspace)
        assert session.setup("pip install one")["cached"] is False
        session.sh("ls -A; rm -rf kern-sidecar")
        shutil.rmtree(workspace + "/.deps")


@needs_pip
def test_cache_has_bounds(cached, place):
    cached().setup("pip install one")
    directory = cache_of(place)
    (key,) = os.listdir(directory)
    stat = os.stat(directory)

    def entry(name, age):
        path = os.path.join(directory, name)
        os.makedirs(os.path.join(path, "tree"))
        for each in (path, os.path.join(path, "tree")):
            os.chown(each, stat.st_uid, stat.st_gid)
        os.utime(path, (time.time() - age, time.time() - age))

    for i in range(20):
        entry(f"{i:064x}", 60 + i)
    entry("e" * 64, 8 * 86400)
    entry(".new-12345678", 7200)
    entry(".new-87654321", 60)
    assert cached().setup("pip install two")["success"]
    left = sorted(os.listdir(directory))
    assert len(left) == 17 and left[0] == ".new-87654321" and key in left, left
    assert f"{0:064x}" in left and f"{19:064x}" not in left
    os.utime(os.path.join(directory, key), (time.time(), time.time() - 8 * 86400))
    assert cached().setup("pip install one")["cached"] is False
    assert cached().setup("pip install one")["cached"] is True


# -- beside kernels


def test_kernels(client, packages):
    """A kernel lives in the session's template: it is closed first, and one that is opened afterwards has the packages."""
    session = Session(client)
    client.call("kernel/open", {"sessionId": session.id, "kernelId": "k"})
    error = session.refuse("true")
    refused(error, "busy", "/sessionId")
    assert "close it" in error.data["hint"]
    client.call("kernel/close", {"kernelId": "k"})
    setup = session.send("sleep 0.3; echo 'x = 1' >$KERN_DEPS/m.py")
    refused(client.fail("kernel/open", {"sessionId": session.id}), "busy", "/sessionId")
    assert setup.result()["success"]
    client.call("kernel/open", {"sessionId": session.id, "kernelId": "k"})
    assert client.call("kernel/run", {"kernelId": "k", "code": "import m; print(m.x)"})["stdout"] == "1\n"

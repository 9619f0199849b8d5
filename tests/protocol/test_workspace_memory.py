"""workspaceStorage memory: the kernel holds workspaceMaxMb. More is ENOSPC, and no fault."""

import fcntl
import os
import time

import pytest

import leftovers
from expect import fault, plain, refused

MIB = 1 << 20
PAGE = os.sysconf("SC_PAGESIZE")
NO_ROOM = "No space left on device"


def effective(client, **session):
    answer = client.call("session/open", session)
    return answer["sessionId"], answer["effective"]


def opened(client, megabytes=4, **session):
    params = {"workspaceStorage": "memory", "workspaceMaxMb": megabytes, **session}
    session, limits = effective(client, **params)
    assert limits["workspaceMaxMb"]["value"] == megabytes
    assert limits["workspaceMaxMb"]["enforced"] == "kernel"
    assert limits["workspaceMaxMb"]["reason"]
    return session


def sh(client, script, session, **params):
    return client.run("sh", "-c", script, sessionId=session, **params)


def no_room(result):
    """The program is told, and may go on: nothing that we did."""
    assert "fault" not in result and "signal" not in result, result
    assert result["exitCode"] != 0 and NO_ROOM in result["stderr"], result


@pytest.fixture(params=["auto", "cold"])
def start(request):
    return request.param


# ---- what is asked for ----


def test_memory_needs_a_size(client):
    error = client.fail("session/open", {"workspaceStorage": "memory"})
    refused(error, "missing", "/workspaceMaxMb")
    assert "workspaceMaxMb" in error.data["hint"]
    error = client.fail("run/argv", {"argv": ["true"], "session": {"workspaceStorage": "memory"}})
    refused(error, "missing", "/session/workspaceMaxMb")


def test_memory_is_private(client, make_dir):
    asked = {"workspaceStorage": "memory", "workspaceMaxMb": 4, "workspace": make_dir("ws")}
    error = client.fail("session/open", asked)
    refused(error, "invalid_value", "/workspaceStorage")
    assert "workspace" in error.data["hint"]


def test_disk_by_name_is_the_default(client):
    _, named = effective(client, workspaceStorage="disk", workspaceMaxMb=4)
    _, default = effective(client, workspaceMaxMb=4)
    for limits in (named, default):
        assert limits["workspaceMaxMb"]["enforced"] == "polled" or "project quota" in limits["workspaceMaxMb"]["reason"]


def test_require_limits(client, make_dir):
    """A watched limit is not enough for it, one of the kernel's is."""
    watched = {"workspaceMaxMb": 4, "requireLimits": True, "workspace": make_dir("ws")}
    _, limits = effective(client)
    all_by_kernel = all(limits[what]["enforced"] == "kernel" for what in ("memoryMb", "pids"))
    error = client.fail("session/open", watched)
    refused(error, "limits_unenforced", "/workspaceMaxMb" if all_by_kernel else "/memoryMb")
    asked = {"workspaceMaxMb": 4, "requireLimits": True, "workspaceStorage": "memory"}
    if all_by_kernel:
        assert "memory" in error.data["hint"]
        client.call("session/open", asked)
    else:
        refused(client.fail("session/open", asked), "limits_unenforced", "/memoryMb")


# ---- the limit ----


def test_bytes_below_at_and_above(client, start):
    session = opened(client, start=start)
    plain(sh(client, f"head -c {4 * MIB - PAGE} /dev/zero > f", session))
    plain(sh(client, f"head -c {4 * MIB} /dev/zero > f", session))
    no_room(sh(client, "head -c 1 /dev/zero > g", session))
    plain(sh(client, "wc -c < f; rm f g; echo x > g", session), f"{4 * MIB}\n")
    no_room(sh(client, f"head -c {4 * MIB + 1} /dev/zero > f", session))


def test_names_below_at_and_above(client, start):
    """256 for each MiB, of any kind."""
    session = opened(client, start=start)
    plain(sh(client, "mkdir d; cd d; for i in $(seq 1022); do : > $i; done", session))
    plain(sh(client, "ln d/1 link", session))
    for one_more in ("mkdir e", "ln d/1 link2", "ln -s a b", "mkfifo p"):
        no_room(sh(client, one_more, session))
    plain(sh(client, "rm d/1 d/2; mkdir e", session))


def test_a_file_without_a_name_counts(client):
    session = opened(client)
    no_room(sh(client, f"exec 3> f; rm f; head -c {3 * MIB} /dev/zero >&3; head -c {2 * MIB} /dev/zero > g", session))
    plain(sh(client, f"rm g; head -c {4 * MIB} /dev/zero > f", session))


def test_a_mapping_beyond_it_is_the_programs_own_end(client):
    code = f"""
import mmap
with open('f', 'w+b') as file:
    file.truncate({64 * MIB})
    memory = mmap.mmap(file.fileno(), {64 * MIB})
    for at in range(0, {64 * MIB}, 4096): memory[at] = 1
"""
    session = opened(client)
    result = client.code(code, sessionId=session)
    assert result["signal"] == "BUS", result
    plain(sh(client, "rm f; echo x > g", session))


def test_no_watch_and_no_file_limit(client):
    """Sparse files may be as long as they like."""
    plain(sh(client, "truncate -s 1G f; ulimit -f; stat -c %s f", opened(client)), f"unlimited\n{1 << 30}\n")


# ---- a workspace like any other ----


def test_files_stay_between_calls(client, start):
    session = opened(client, start=start)
    first = sh(client, "mkdir d; echo one > d/a; echo x > b", session)
    assert sorted((f["path"], f["change"]) for f in first["files"]) == [("b", "created"), ("d/a", "created")]
    second = sh(client, "cat d/a; echo two > d/a; rm b", session)
    assert sorted((f["path"], f["change"]) for f in second["files"]) == [("b", "deleted"), ("d/a", "modified")]
    third = sh(client, "cat d/a; stat -c '%U %G %a' . d/a; id -u", session, trackFiles=False)
    plain(third, "two\nsandbox sandbox 700\nsandbox sandbox 644\n1000\n")


def test_two_calls_at_once_see_the_same(client, start):
    session = opened(client, start=start)
    script = "until [ -e go ]; do sleep 0.02; done; cat go; echo back > answer"
    waiter = client.start("sh", "-c", script, sessionId=session)
    script = "echo hello > new; mv new go; until [ -s answer ]; do sleep 0.02; done; cat answer"
    plain(sh(client, script, session), "back\n")
    plain(waiter.result(), "hello\n")


def test_sessions_do_not_share(client, start):
    one, two = opened(client, start=start), opened(client, start=start)
    plain(sh(client, "echo one > a", one))
    plain(sh(client, "ls -A", two))


def test_a_call_of_its_own(client):
    session = {"workspaceStorage": "memory", "workspaceMaxMb": 1}
    result = client.call("run/argv", {"argv": ["sh", "-c", "echo x > a; df -k . | tail -1"], "session": session})
    assert [f["path"] for f in result["files"]] == ["a"]
    assert result["stdout"].split()[:2] == ["tmpfs", "1024"]


@pytest.mark.parametrize("user", ["root", "123"])
def test_another_user(client, user, start):
    session = opened(client, user=user, start=start)
    uid = "0" if user == "root" else user
    plain(sh(client, "echo x > a; stat -c %u . a", session), f"{uid}\n{uid}\n")
    no_room(sh(client, f"head -c {4 * MIB} /dev/zero > b", session))


@pytest.mark.parametrize("target", ["/data", "/home/sandbox/project", "/tmp/x"])
def test_another_place(client, target, start):
    session = opened(client, workspaceTarget=target, start=start)
    plain(sh(client, "pwd; echo x > a", session), f"{target}\n")
    plain(sh(client, f"cat {target}/a", session), "x\n")
    no_room(sh(client, f"head -c {4 * MIB} /dev/zero > b", session))


def test_flags_of_the_mount(client, start):
    session = opened(client, start=start)
    script = "awk '$5 == \"/workspace\" { print $6 }' /proc/self/mountinfo"
    plain(sh(client, script, session), "rw,nosuid,nodev,relatime\n")
    plain(sh(client, "printf '#!/bin/sh\\necho ran\\n' > a; chmod 755 a; ./a", session), "ran\n")


def test_the_host_sees_an_empty_directory(client):
    answer = client.call("session/open", {"workspaceStorage": "memory", "workspaceMaxMb": 4})
    plain(sh(client, "echo x > a", answer["sessionId"]))
    assert os.listdir(answer["workspace"]) == []
    client.call("session/close", {"sessionId": answer["sessionId"]})
    assert not os.path.exists(answer["workspace"])


# ---- it is memory ----


@pytest.fixture
def alone():
    """Nobody else fills the memory of this machine meanwhile: suites of two users may run side by side."""
    fd = os.open("/tmp", os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    yield
    os.close(fd)


def shared_memory():
    with open("/proc/meminfo", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Shmem:")) * 1024


def goes_back(filled):
    """The most of 200 MiB: others have some, too, now more and now less."""
    deadline = time.monotonic() + 10
    while shared_memory() > filled - 100 * MIB:
        assert time.monotonic() < deadline, "the files are still in memory"
        time.sleep(0.05)


def fill(client, session):
    """What is there of shared memory then."""
    plain(sh(client, f"head -c {200 * MIB} /dev/zero > f; df -m --output=fstype . | tail -n 1", session), "tmpfs\n")
    return shared_memory()


def test_close_gives_the_memory_back(client, start, alone):
    session = opened(client, 256, start=start)
    filled = fill(client, session)
    client.call("session/close", {"sessionId": session})
    goes_back(filled)


@pytest.mark.parametrize("whom", ["sidecar", "launcher"])
def test_nothing_is_left_after_sigkill(sidecar, whom, place, start, alone):
    client = sidecar(expect_exit=None)
    session = opened(client, 256, start=start)
    filled = fill(client, session)
    client.start("sleep", "1000", sessionId=session)
    below = leftovers.descendants(client.pid)
    if whom == "sidecar":
        client.kill()
        client.process.wait(10)
    else:
        children = leftovers.children(client.pid)
        os.kill(children[0], 9)
        below.pop(client.pid)
    assert leftovers.still_there(below, within=2.0) == []
    client.close()
    goes_back(filled)
    following = sidecar()
    following.run("true")
    assert following.close() == 0
    assert leftovers.files_left(os.path.join(place, "tmp")) == []


def test_it_is_no_later_calls_memory(client):
    """What a call leaves stays charged, but to nobody who comes after it, in this session or in another."""
    session = opened(client, 48, memoryMb=64)
    other, limits = effective(client, memoryMb=64)
    for part in range(4):
        plain(sh(client, f"head -c {10 * MIB} /dev/urandom > f{part}", session))
    for i in range(6):
        result = client.code(f"x = bytearray({40 * MIB}); len(x)", sessionId=session if i % 2 else other)
        assert "fault" not in result and result["exitCode"] == 0, result
        if limits["memoryMb"]["enforced"] == "kernel":
            assert 40 * MIB < result["usage"]["memoryPeakBytes"] < 64 * MIB
    result = client.run("true", sessionId=session)
    if limits["memoryMb"]["enforced"] == "kernel":
        assert result["usage"]["memoryPeakBytes"] < 10 * MIB
    plain(sh(client, "cat f? | wc -c", session), f"{40 * MIB}\n")


def test_all_at_once_is_no_later_calls_memory(client):
    session = opened(client, 48, memoryMb=64)
    plain(sh(client, f"head -c {40 * MIB} /dev/zero > f", session))
    for _ in range(4):
        assert client.code(f"len(bytearray({40 * MIB}))", sessionId=session)["exitCode"] == 0


def test_it_is_memory_of_the_call_that_writes_it(client):
    session = opened(client, 256, memoryMb=64)
    result = sh(client, f"head -c {100 * MIB} /dev/zero > f", session)
    if effective(client)[1]["memoryMb"]["enforced"] == "kernel":
        assert fault(result, "oom")["limit"] == "memoryMb"
    plain(client.run("true", sessionId=session))

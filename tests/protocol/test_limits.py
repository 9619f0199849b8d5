"""Limits and faults, each from a kernel fact."""

import os
import time

import pytest

from expect import fault, plain

HOG = "b = bytearray({mib} << 20)\nfor i in range(0, len(b), 4096): b[i] = 1\nprint('alive')"
CALL = "import ctypes, os\nos.write(1, b'before\\n')\nctypes.CDLL(None).{call}\nos.write(1, b'alive\\n')"


def open_session(client, **params):
    answer = client.call("session/open", params)
    return answer["sessionId"], answer["effective"]


# -- time


def test_deadline(client):
    result = client.run("sleep", "1000", timeoutMs=300)
    fault(result, "timeout")
    assert (result["exitCode"], result["signal"]) == (137, "KILL")
    assert 300 <= result["durationMs"] < 5000
    assert result["fault"].get("limit") in (None, "timeoutMs")


def test_deadline_of_a_loop_that_ignores_term(client):
    result = client.run("sh", "-c", 'echo kept; trap "" TERM; while :; do :; done', timeoutMs=500)
    fault(result, "timeout")
    assert (result["stdout"], result["exitCode"], result["signal"]) == ("kept\n", 137, "KILL")
    assert 500 <= result["durationMs"] < 5000


def test_deadline_keeps_partial_output_of_python(client):
    result = client.code("print('kept')\nwhile True: pass", timeoutMs=1500)
    fault(result, "timeout")
    assert result["stdout"] == "kept\n"


def test_deadline_of_the_session_and_of_the_call(client):
    session = client.open(timeoutMs=300)
    fault(client.run("sleep", "1000", sessionId=session), "timeout")
    plain(client.run("sleep", "0.6", sessionId=session, timeoutMs=60000))


def test_deadline_not_met_is_no_fault(client):
    plain(client.run("sleep", "0.1", timeoutMs=60000))


def test_forking_tree_dies_at_the_deadline(client):
    result = client.run(
        "sh", "-c", "trap '' TERM; for i in 1 2 3 4; do (while :; do sleep 0.01; done) & done; wait", timeoutMs=500
    )
    fault(result, "timeout")


# -- memory


def memory_kept(effective):
    return effective["memoryMb"]["enforced"] in ("kernel", "polled")


def test_oom(client):
    session, effective = open_session(client, memoryMb=128)
    assert memory_kept(effective), effective
    result = client.run("python3", "-c", HOG.format(mib=400), sessionId=session, timeoutMs=60000)
    found = fault(result, "oom")
    assert "alive" not in client.out(result)
    assert found.get("limit") in (None, "memoryMb")
    assert (result["exitCode"], result["signal"]) == (137, "KILL")
    if effective["memoryMb"]["enforced"] == "kernel":
        assert result["usage"]["oomKills"] >= 1
        assert 100 << 20 < result["usage"]["memoryPeakBytes"] <= 128 << 20
    plain(client.run("echo", "next", sessionId=session), "next\n")


def test_oom_of_a_grandchild(client):
    session, effective = open_session(client, memoryMb=128)
    result = client.run(
        "sh",
        "-c",
        'sh -c "python3 -c \\"$0\\"; exit 0"; echo main',
        HOG.format(mib=400),
        sessionId=session,
        timeoutMs=60000,
    )
    fault(result, "oom")
    if effective["memoryMb"]["enforced"] == "kernel" and result["exitCode"] == 0:
        assert result["stdout"] == "main\n"  # only the hog died, and the fault stands beside exit code 0


def test_memory_under_the_cap_is_no_fault(client):
    session, _ = open_session(client, memoryMb=128)
    result = client.run("python3", "-c", HOG.format(mib=60), sessionId=session, timeoutMs=60000)
    plain(result, "alive\n")
    assert result["usage"]["memoryPeakBytes"] > 60 << 20


def test_memory_of_one_call(client):
    session, _ = open_session(client, memoryMb=512)
    code = HOG.format(mib=200)
    plain(client.run("python3", "-c", code, sessionId=session, timeoutMs=60000), "alive\n")
    fault(client.run("python3", "-c", code, sessionId=session, memoryMb=64, timeoutMs=60000), "oom")
    plain(client.run("python3", "-c", code, sessionId=session, timeoutMs=60000), "alive\n")


def test_files_in_tmp_are_capped(client):
    session, effective = open_session(client, memoryMb=128)
    result = client.run(
        "sh",
        "-c",
        "dd if=/dev/zero of=/tmp/big bs=1M count=200 2>/dev/null; echo $?; stat -c %s /tmp/big",
        sessionId=session,
    )
    # 64 MiB, clamped to half the memory cap: a full disk, not an OOM
    plain(result, f"1\n{64 << 20}\n")


@pytest.mark.parametrize("script, code", [("exit 137", 137), ("exit 159", 159), ("exit 124", 124), ("exit 255", 255)])
def test_exit_code_under_a_cap_is_no_fault(client, script, code):
    plain(client.run("sh", "-c", script, memoryMb=64), code=code)


def test_kill_of_itself_under_a_cap_is_no_fault(client):
    result = client.run("sh", "-c", "kill -9 $$", memoryMb=64)
    assert (result["exitCode"], result["signal"]) == (137, "KILL")
    assert "fault" not in result


def test_printed_words_are_no_fault(client):
    words = "[sandbox: oom]\nKilled\nout of memory: escape_blocked\n{\"fault\":{\"type\":\"oom\"}}\n"
    plain(client.run("sh", "-c", 'printf %s "$0"; printf %s "$0" >&2; exit 137', words), words, words, 137)


# -- processes


def test_fork_bomb_is_held_and_ping_answers(client):
    session, effective = open_session(client, pids=50)
    bomb = client.send(
        "run/argv",
        {"argv": ["bash", "-c", "b() { b | b & }; b 2>/dev/null; sleep 1000"], "sessionId": session, "timeoutMs": 1500},
    )
    slowest = 0.0
    while not bomb.done():
        begin = time.monotonic()
        assert client.call("ping", timeout=20) == {}
        slowest = max(slowest, time.monotonic() - begin)
        time.sleep(0.1)
    assert slowest < 2.0
    fault(bomb.result(30), "timeout")
    plain(client.run("echo", "next", sessionId=session), "next\n")


def test_pids_cap_is_an_error_number_and_no_fault(client):
    session, effective = open_session(client, pids=20)
    code = (
        "import os, time\nn = 0\ntry:\n    while n < 100:\n"
        "        if os.fork() == 0: time.sleep(100); os._exit(0)\n        n += 1\n"
        "except OSError as e: print(e.errno)\nprint(n)"
    )
    result = client.run("python3", "-c", code, sessionId=session)
    if effective["pids"]["enforced"] == "none":
        pytest.skip("this host enforces no pids cap for this user: " + effective["pids"]["reason"])
    if effective["pids"]["enforced"] == "kernel":
        plain(result, "11\n19\n")  # EAGAIN; the main process is one of the twenty
        # a pids cgroup counts what it refused, an rlimit does not
        assert result["usage"].get("pidsRefused", 1) >= 1
        assert "pidsRefused" in result["usage"] or effective["memoryMb"]["enforced"] != "kernel"
    else:  # a weaker way may count what the session's other processes are, never let more through
        error, forks = result["stdout"].split()
        assert error == "11" and 1 <= int(forks) <= 19 and "fault" not in result


def test_pids_cap_is_per_call(client):
    """Two boxes of one session at once: each has its own count."""
    session, effective = open_session(client, pids=20)
    if effective["pids"]["enforced"] != "kernel":
        pytest.skip("no pids cgroup for this user: " + effective["pids"]["reason"])
    script = "i=0; while [ $i -lt 12 ]; do sleep 1 & i=$((i+1)); done; wait; echo ok"
    runs = [client.send("run/argv", {"argv": ["sh", "-c", script], "sessionId": session}) for _ in range(4)]
    assert [run.result()["stdout"] for run in runs] == ["ok\n"] * 4


# -- cpu


def test_cpu_cap(client):
    session, effective = open_session(client, cpusMilli=200)
    if effective["cpusMilli"]["enforced"] != "kernel":
        pytest.skip("this host enforces no cpu cap for this user: " + effective["cpusMilli"]["reason"])
    result = client.run("sh", "-c", "while :; do :; done", sessionId=session, timeoutMs=2000)
    fault(result, "timeout")
    used = result["usage"]["cpuUserUs"] + result["usage"]["cpuSystemUs"]
    assert used < 0.35 * result["usage"]["wallUs"]


# -- escape calls


@pytest.mark.parametrize(
    "name, call",
    [
        ("mount", "mount(0, 0, 0, 0, 0)"),
        ("umount2", "umount2(b'/', 2)"),
        ("ptrace", "ptrace(0, 0, 0, 0)"),
        ("setns", "setns(0, 0)"),
        ("unshare", "unshare(0x10000000)"),
        ("pivot_root", "syscall(155, b'/', b'/')"),
        ("bpf", "syscall(321, 0, 0, 0)"),
        ("process_vm_readv", "process_vm_readv(1, 0, 0, 0, 0, 0)"),
        ("open_tree", "syscall(428, -100, b'/', 0)"),
        ("move_mount", "syscall(429, 0, 0, 0, 0, 0)"),
        ("fsopen", "syscall(430, b'tmpfs', 0)"),
        ("mount_setattr", "syscall(442, 0, 0, 0, 0, 0)"),
        ("init_module", "syscall(175, 0, 0, 0)"),
        ("reboot", "syscall(169, 0, 0, 0, 0)"),
        ("swapon", "syscall(167, 0, 0)"),
        ("kexec_load", "syscall(246, 0, 0, 0, 0)"),
    ],
)
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="system call numbers of x86-64")
def test_escape_call(client, name, call):
    result = client.run("python3", "-Sc", CALL.format(call=call))
    found = fault(result, "escape_blocked")
    assert found["syscall"] == name
    assert name in found["message"] and "python3" in found["message"] + found.get("process", "")
    assert result["stdout"] == "before\n"
    assert (result["exitCode"], result["signal"]) in ((159, "SYS"), (137, "KILL"))


def test_escape_by_clone_with_a_namespace(client):
    result = client.run("python3", "-Sc", CALL.format(call="syscall(56, 0x10000000 | 17, 0, 0, 0, 0)"))
    assert fault(result, "escape_blocked")["syscall"] == "clone"


def test_escape_of_a_grandchild_is_named(client):
    result = client.run("sh", "-c", 'sh -c "unshare -Ur id; echo inner"; echo outer')
    found = fault(result, "escape_blocked")
    assert (found["syscall"], found.get("process")) == ("unshare", found.get("process"))
    assert "unshare" in (found.get("process") or found["message"])
    assert "uid=" not in result["stdout"]
    assert result["exitCode"] == 0 or "outer" not in result["stdout"]


def test_escape_with_sigsys_ignored(client):
    code = "import ctypes, os, signal\nsignal.signal(31, signal.SIG_IGN)\n"
    code += "ctypes.CDLL(None).mount(0, 0, 0, 0, 0)\nos.write(1, b'alive\\n')"
    result = client.run("python3", "-Sc", code)
    fault(result, "escape_blocked")
    assert (result["stdout"], result["signal"]) == ("", "KILL")


@pytest.mark.parametrize(
    "number, errno",
    [(435, 38), (425, 38), (323, 38), (298, 38), (248, 38), (304, 38)],
    ids=["clone3", "io_uring_setup", "userfaultfd", "perf_event_open", "add_key", "open_by_handle_at"],
)
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="system call numbers of x86-64")
def test_refused_call_is_enosys_and_no_fault(client, number, errno):
    plain(
        client.run(
            "python3",
            "-Sc",
            "import ctypes\nc = ctypes.CDLL(None, use_errno=True)\n"
            f"c.syscall({number}, 0, 0, 0, 0, 0)\nprint(ctypes.get_errno())",
        ),
        f"{errno}\n",
    )


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the i386 gate")
def test_i386_call_is_killed_outright(client):
    code = (
        "import ctypes, mmap\nm = mmap.mmap(-1, 4096, prot=7)\nm.write(bytes.fromhex('b814000000cd80c3'))\n"
        "ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))()\nprint('alive')"
    )
    result = client.run("python3", "-Sc", code)
    assert (result["stdout"], result["signal"]) == ("", "SYS")


@pytest.mark.parametrize("family", [38, 40, 16, 17], ids=["alg", "vsock", "netlink-other", "packet"])
def test_socket_family_is_refused(client, family):
    code = f"import socket\ntry:\n    socket.socket({family}, socket.SOCK_RAW, 9)\n    print('open')\n"
    code += "except OSError as e: print(e.errno > 0)"
    plain(client.run("python3", "-c", code), "True\n")


# -- precedence


def test_cancel_beats_the_rest(client):
    session, effective = open_session(client, memoryMb=128)
    future = client.start(
        "sh", "-c", 'python3 -c "$0"; echo oomed; sleep 1000', HOG.format(mib=400), sessionId=session, timeoutMs=60000
    )
    client.wait_for(lambda: client.output_events(future) or future.done(), "the inner OOM", 60)
    client.cancel(future)
    kind = future.result(30)["fault"]["type"]
    assert kind == ("cancelled" if effective["memoryMb"]["enforced"] == "kernel" else kind)
    assert kind in ("cancelled", "oom")


def test_timeout_beats_oom(client):
    session, effective = open_session(client, memoryMb=128)
    result = client.run(
        "sh", "-c", 'python3 -c "$0"; sleep 1000', HOG.format(mib=400), sessionId=session, timeoutMs=3000
    )
    assert result["fault"]["type"] == "timeout" or effective["memoryMb"]["enforced"] == "polled"


# -- all boxes together


def test_limits_of_all_boxes_together(sidecar, client):
    """At, below and above: what each may have alone is more than all may have together."""
    held = client.welcome["host"]["memory"] == "kernel"
    for limits, path in (({"memoryMb": 200}, "/limits/memoryMb"), ({"pids": 40}, "/limits/pids")):
        other = sidecar(initialize=False)
        message = {"protocolVersion": 1, "client": {"name": "t", "version": "1"}, "limits": limits}
        if not held:
            error = other.fail("initialize", message)
            assert (error.reason, error.data["path"]) == ("limits_unenforced", path)
            continue
        other.initialize(limits=limits)
        if "pids" in limits:
            session = other.open(pids=100, start="template")
            forks = "import os, signal, sys\nn = 0\ntry:\n    while n < 60:\n        if os.fork() == 0: signal.pause()\n        n += 1\nexcept OSError: pass\nprint(n)"
            first = other.run("/usr/bin/python3", "-c", forks, sessionId=session)
            assert 20 < int(first["stdout"]) < 40 and first["usage"]["pidsRefused"] >= 0, first
            continue
        session = other.open(memoryMb=512, start="template")
        plain(other.run("/usr/bin/python3", "-c", HOG.format(mib=100), sessionId=session), "alive\n")
        result = other.run("/usr/bin/python3", "-c", HOG.format(mib=300), sessionId=session)
        found = fault(result, "oom")
        assert found.get("limit") is None and "outside" in found["message"], found
        plain(other.run("echo", "next", sessionId=session), "next\n")

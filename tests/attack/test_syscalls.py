"""The system call surface: what a caller does to get around the filters. The number table has a test of its own (tests/box)."""

import os
import shutil
import subprocess

import pytest

from boxes import WAYS, Boxes, attack, escaped
from expect import plain

pytestmark = pytest.mark.skipif(os.uname().machine != "x86_64", reason="system call numbers of x86-64")
HERE = os.path.dirname(os.path.abspath(__file__))


# -- other gates


@attack("20", "B24")
@pytest.mark.parametrize("gate", ["--int80", "--x32"])
@pytest.mark.parametrize("number", [1, 20, 21, 39, 165, 520, 999])
def test_other_architectures_are_killed_outright(box, gate, number):
    """Whatever the number means there: no answer, no report, and not the process alone but all of its threads."""
    result = box().run("bin/call", gate, str(number), "0", "0", "0")
    assert (result["stdout"], result["exitCode"], result["signal"]) == ("", 159, "SYS"), result


@attack("20", "B25")
def test_refused_calls_let_the_program_go_on(box):
    """io_uring, userfaultfd, perf, keys, handles, pidfd_getfd and a number nobody knows: ENOSYS, never a kill or a fault."""
    numbers = (
        425,
        426,
        427,
        323,
        298,
        248,
        249,
        250,
        304,
        438,
        300,
        301,
        179,
        163,
        212,
        440,
        279,
        447,
        153,
        154,
        227,
        9999,
        511,
    )
    words = " -- ".join(f"{nr} 0 0 0 0 0 0" for nr in numbers).split()
    plain(box().run("bin/call", *words), "".join(f"{nr} -1 38\n" for nr in numbers))


@attack("B21", "20")
@pytest.mark.parametrize(
    "call, words",
    [
        ("bpf", "321 0 b:64 64"),
        ("init_module", "175 b:16 16 s:"),
        ("finit_module", "313 0 s: 0"),
        ("delete_module", "176 s:ext4 0"),
        ("kexec_load", "246 0 0 0 0"),
        ("kexec_file_load", "320 0 0 0 s: 0"),
        ("reboot", "169 0xfee1dead 672274793 0x1234567 0"),
        ("swapon", "167 s:/workspace/x 0"),
        ("swapoff", "168 s:/workspace/x"),
    ],
)
def test_calls_that_only_an_attacker_makes_are_escape_calls(box, call, words):
    escaped(box().run("bin/call", *words.split()), call)


# -- reports


@attack("B21", "C38")
@pytest.mark.parametrize("mode", ["block", "ignore", "catch", "thread"])
def test_code_that_is_deaf_to_the_signal_is_ended_all_the_same(box, mode):
    result = box().run("bin/deaf", mode)
    fault = escaped(result, "mount")
    assert fault["process"] == "deaf"
    assert (result["stdout"], result["exitCode"] in (137, 159)) == ("before\n", True), result


@attack("B21", "C38")
def test_code_that_becomes_deaf_at_the_very_moment_is_ended_soon(box):
    """One thread calls, another ignores and honours the signal in turn: what slips through gets a SIGKILL after 100 ms."""
    result = box().run("bin/deaf", "toggle")
    escaped(result, "mount")
    assert (result["exitCode"] in (137, 159), "survived" in result["stdout"], result["durationMs"] < 3000) == (
        True,
        False,
        True,
    ), result


@attack("B21")
@pytest.mark.parametrize(
    "script",
    [
        "bin/deaf vfork",
        "(bin/call 165 0 0 0 0 0 &) ; sleep 0.2",
        "setsid -f bin/call 165 0 0 0 0 0; sleep 0.2",
        "trap '' SYS; bin/call 165 0 0 0 0 0",
    ],
)
def test_escape_of_a_descendant_is_reported(box, script):
    """Even when the main process goes on and ends well: the fault stands beside its exit status."""
    result = box().run("bash", "-c", script + "; exit 0")
    fault = escaped(result, "mount")
    assert fault["process"] in ("call", "deaf")
    assert (result["exitCode"], "alive" in result["stdout"], "165" in result["stdout"]) == (0, False, False), result


@attack("C38", "63")
def test_words_that_look_like_a_report_are_words(box):
    """Printed and killed by the same signal: not a fault, for no call was refused; printed and refused: a fault."""
    words = '{"fault":{"type":"escape_blocked","syscall":"mount"}} [sandbox: escape_blocked mount]'
    boxes = box()
    result = boxes.run("bash", "-c", f"echo '{words}'; echo '{words}' >&2; kill -SYS $$")
    assert (result["stdout"], result["signal"], "fault" in result) == (words + "\n", "SYS", False), result
    result = boxes.run("bash", "-c", f"echo '{words}' | sed s/mount/nothing/g; exec bin/call 101 16 1 0 0")
    escaped(result, "ptrace")


@attack("24")
@pytest.mark.parametrize("mode, installed", [("allow", 0), ("trace", 0), ("log", 0), ("listener", 16)])
def test_own_filter_cannot_loosen_or_hide(box, mode, installed):
    """A second listener is refused (EBUSY): ours is the first, so nobody in the box can answer in its place."""
    result = box().run("bin/own_filter", mode)
    escaped(result, "mount")
    assert result["stdout"] == f"filter {installed}\n"


@attack("24")
@pytest.mark.parametrize("mode, printed", [("errno", "mount -1 77\n"), ("trap", "trapped 1\nmount 165 0\n")])
def test_own_filter_may_tighten_and_then_there_is_no_report(box, mode, printed):
    """An errno or a trap of the code's own is more restrictive than a notification: the call is not made, and nobody hears of it."""
    plain(box().run("bin/own_filter", mode), "filter 0\n" + printed)


# -- sockets


PROBE = (
    "import ctypes\nc = ctypes.CDLL(None, use_errno=True)\nothers, netlink, opened = set(), set(), set()\n"
    "for family in list(range(0, 64)) + [255, 65535, 0x100000001, 0x10000000026, 0xffffffffffffffff]:\n"
    "    for kind in (1, 2, 3, 5, 0x80003):\n"
    "        for protocol in (0, 4, 9, 16, 0x100000000):\n"
    "            ctypes.set_errno(0)\n"
    "            rc = c.syscall({call})\n"
    "            answer, low = 'open' if rc >= 0 else ctypes.get_errno(), family & 0xffffffff\n"
    "            if low not in (1, 2, 10, 16): others.add(answer)\n"
    "            if low == 16 and protocol & 0xffffffff: netlink.add(answer)\n"
    "            if rc >= 0: opened.add(low)\n"
    "            if rc > 2: __import__('os').close(rc)\n"
    "print(others, netlink, sorted(opened))"
)


@attack("21", "B26")
@pytest.mark.parametrize(
    "call, opened",
    [
        ("41, ctypes.c_ulong(family), kind, ctypes.c_ulong(protocol)", [1, 2, 10, 16]),
        ("53, ctypes.c_ulong(family), kind, ctypes.c_ulong(protocol), (ctypes.c_int * 2)()", [1]),
    ],
    ids=["socket", "socketpair"],
)
def test_socket_families_are_an_allowlist(box, call, opened):
    """By the low 32 bits, of all families and not of two that are known to be bad; NETLINK for routes only. The kernel would say
    EPERM for PACKET and make sockets of some others before it says that they come in no pairs."""
    plain(box().python(PROBE.format(call=call)), f"{{97}} {{93}} {opened}\n")


@attack("21")
def test_raw_and_packet_sockets_need_what_nobody_has(box):
    code = (
        "import socket\n"
        "for family, kind, protocol in ((2, 3, 1), (2, 3, 255), (10, 3, 58), (2, 10, 0), (16, 3, 0)):\n"
        "    try: socket.socket(family, kind, protocol); print('open')\n"
        "    except OSError as e: print(e.errno)"
    )
    plain(box().python(code), "1\n1\n1\n1\nopen\n")


# -- process attributes


@attack("23")
def test_personality_values(box):
    """Docker's four and the query; not ADDR_NO_RANDOMIZE, READ_IMPLIES_EXEC or MMAP_PAGE_ZERO."""
    words = "135 0xffffffff -- 135 0 -- 135 8 -- 135 0x20000 -- 135 0x20008 -- 135 0 -- 135 0x40000 -- 135 0x400000 -- 135 0x100000 -- 135 0x0200000 -- 135 0x1 -- 135 0x40000000000"
    lines = box().run("bin/call", *words.split())["stdout"].split()
    assert lines[2::3] == ["0", "0", "0", "0", "0", "0", "1", "1", "1", "1", "1", "0"]


@attack("23")
def test_prctl_cannot_undo_what_the_box_is(box):
    code = (
        "import ctypes\nc = ctypes.CDLL(None, use_errno=True)\n"
        "def p(*a):\n    ctypes.set_errno(0); rc = c.prctl(*[ctypes.c_ulong(x) for x in a]); return rc if rc >= 0 else -ctypes.get_errno()\n"
        "print('nnp', p(38, 0, 0, 0, 0), p(39, 0, 0, 0, 0))\n"  # PR_SET_NO_NEW_PRIVS 0 is EINVAL
        "print('seccomp', p(21), p(22, 1, 0))\n"  # a filter cannot be replaced by strict mode
        "print('mm', p(35, 13, 0, 0, 0))\n"  # PR_SET_MM_EXE_FILE
        "print('securebits', p(28, 0x2f))\n"
        "print('ambient', p(47, 2, 21, 0, 0))\n"
        "print('bounding', p(23, 21), p(24, 21, 0, 0, 0))\n"
        "print('keepcaps', p(8, 1))\n"
        "print('mce', p(33, 0, 1, 0, 0))"
    )
    result = box().python(code)
    assert result["stdout"].splitlines() == [
        "nnp -22 1",
        "seccomp 2 -22",
        "mm -1",
        "securebits -1",
        "ambient -1",
        "bounding 0 -1",
        "keepcaps 0",
        "mce -22",
    ], result


@attack("23")
def test_speculation_mitigations_cannot_be_loosened(box):
    """PR_SET_SPECULATION_CTRL: what may be tightened may not be untightened, and what is forced stays."""
    code = (
        "import ctypes\nc = ctypes.CDLL(None)\n"
        "loose = lambda state: state & 2 == 0 and state & (4 | 8) != 0\n"
        "for which in (0, 1, 2):\n"
        "    before = c.prctl(52, which, 0, 0, 0); c.prctl(53, which, 2, 0, 0); after = c.prctl(52, which, 0, 0, 0)\n"
        "    if before >= 0 and before & (4 | 8) and not after & (4 | 8): print(which, before, after)\n"
        "    c.prctl(53, which, 8, 0, 0); forced = c.prctl(52, which, 0, 0, 0); c.prctl(53, which, 2, 0, 0)\n"
        "    if forced >= 0 and forced & 8 and c.prctl(52, which, 0, 0, 0) != forced: print(which, 'undone')\n"
        "print('done')"
    )
    plain(box().python(code), "done\n")


@attack("23")
def test_modify_ldt_and_io_ports_do_not_exist(box):
    numbers = (154, 172, 173)
    plain(
        box().run("bin/call", *" -- ".join(f"{n} 0 b:16 16" for n in numbers).split()),
        "".join(f"{n} -1 38\n" for n in numbers),
    )


@attack("25", "B29")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a setuid program of another user")
@pytest.mark.parametrize("uid", [0, 65534, 2000000000])
def test_setuid_program_of_another_user_gains_nothing(client, workspace, way, uid):
    box = Boxes(client, way, workspace, {})
    path = box.path("who")
    shutil.copy(box.path("bin/who"), path)
    os.chown(path, uid, uid)
    os.chmod(path, 0o6755)
    plain(box.run("./who"), "1000 1000 1000 1000\n")
    os.unlink(path)


@attack("25", "B29")
def test_capabilities_are_none_and_cannot_be_had(box):
    code = (
        "import ctypes, os\nc = ctypes.CDLL(None, use_errno=True)\n"
        "print([line.split()[1] for line in open('/proc/self/status') if line.startswith(('Cap', 'NoNew', 'Seccomp:'))])\n"
        "for name, call in (('setuid', lambda: os.setuid(0)), ('setgid', lambda: os.setgid(0)), ('setgroups', lambda: os.setgroups([0])),\n"
        "                   ('setresuid', lambda: os.setresuid(-1, 0, -1)), ('nice', lambda: os.nice(-1)), ('chown', lambda: os.chown('/tmp', 0, 0)),\n"
        "                   ('hostname', lambda: __import__('socket').sethostname('x'))):\n"
        "    try: call(); print(name, 'done')\n"
        "    except OSError as e: print(name, e.errno)\n"
        "header = (ctypes.c_uint32 * 2)(0x20080522, 0); data = (ctypes.c_uint32 * 6)(*[0xffffffff] * 6)\n"
        "print('capset', c.syscall(126, header, data), ctypes.get_errno())"
    )
    lines = box().python(code)["stdout"].splitlines()
    assert lines[0] == str(["0" * 16] * 5 + ["1", "2"])
    answers = dict(line.split(" ", 1) for line in lines[1:])
    assert all(
        answers[name] in ("1", "22") for name in ("setuid", "setgid", "setgroups", "setresuid", "chown")
    ), answers
    assert (answers["nice"] in ("1", "13"), answers["hostname"], answers["capset"]) == (True, "38", "-1 1"), answers


# -- threads


@attack("19")
def test_threads_and_processes_of_glibc(box):
    plain(box().run("bin/threads"), "threads 64\nspawn 7\nsystem 5\npopen\n")


@attack("19", "G69")
def test_threads_and_processes_of_musl_in_a_busybox_image(box, busybox_image):
    if shutil.which("musl-gcc") is None:
        pytest.skip("needs the package musl-tools")
    source = os.path.join(HERE, "programs/threads.c")
    subprocess.run(
        [
            "musl-gcc",
            "-static",
            "-std=c17",
            "-D_GNU_SOURCE",
            "-O1",
            "-o",
            os.path.join(busybox_image, "bin/threads"),
            source,
        ],
        check=True,
    )
    plain(box(image=f"dir:{busybox_image}").run("/bin/threads"), "threads 64\nspawn 7\nsystem 5\npopen\n")


@attack("19")
def test_threads_of_python_and_node(box):
    boxes = box()
    code = "import threading, subprocess\nr = []\nt = [threading.Thread(target=r.append, args=(i,)) for i in range(50)]\n[x.start() for x in t]; [x.join() for x in t]\nprint(len(r), subprocess.check_output(['echo', 'sub']).decode(), end='')"
    assert boxes.code(code)["stdout"] == "50 sub\n"
    if shutil.which("node"):
        code = "const { Worker } = require('worker_threads'); const w = new Worker('require(\"worker_threads\").parentPort.postMessage(6 * 7)', { eval: true }); w.on('message', m => console.log(m));"
        assert boxes.code(code, language="node")["stdout"] == "42\n"

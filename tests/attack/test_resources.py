"""The machine's resources: every kind of object taken until it is refused, while `ping` answers and nobody else goes short."""

import os
import subprocess
import time

import pytest

import leftovers
from boxes import WAYS, attack
from expect import fault, plain

pytestmark = pytest.mark.usefixtures("plain_next")


def taken(result):
    count, error = result["stdout"].split()
    return int(count), int(error)


# -- processes


@attack("27")
@pytest.mark.parametrize("kind", ["process", "thread", "zombie"])
def test_bomb_of(box, kind):
    """The cap is exact, the refusal is EAGAIN and counted, and it is no fault."""
    boxes = box(pids=64)
    result = boxes.under_attack("bin/take", kind)
    count, error = taken(result)
    assert error == 11 and "fault" not in result
    if boxes.enforced("pids") == "kernel" and "pidsRefused" in result["usage"]:
        assert (count, result["usage"]["pidsRefused"] >= 1) == (63, True)
    else:
        assert 1 <= count <= 64


@attack("27")
@pytest.mark.parametrize(
    "script",
    [
        "b() { b | b & }; b; sleep 1000",
        "while :; do setsid sh -c 'exec \"$0\" \"$@\"' \"$0\" & done",
        "while :; do (:) & done",
    ],
)
def test_fork_bomb(box, script):
    boxes = box(pids=64)
    begin = time.monotonic()
    result = boxes.under_attack("bash", "-c", f"exec 2>/dev/null; {script}", timeoutMs=1500)
    fault(result, "timeout")
    assert time.monotonic() - begin < 1.5 + 1 + 3  # deadline and grace; the rest is for the machine


@attack("28")
def test_orphans_are_reaped(box):
    """Every orphan is init's to reap: three thousand pass through a cap of 32."""
    result = box(pids=32).under_attack("bin/take", "orphan", "3000", timeoutMs=120_000)
    assert taken(result) == (3000, 0), result


@attack("28")
def test_tree_of_sessions_dies_at_the_deadline(box):
    """setsid, double forks, blocked signals, stopped processes: a pid namespace has no outside."""
    script = "trap '' TERM HUP INT; for i in 1 2 3 4 5; do setsid -f sh -c 'trap \"\" TERM; kill -STOP $$; sleep 1000' & (setsid sleep 1000 &) & done; kill -STOP $$"
    boxes = box()
    result = boxes.under_attack("sh", "-c", script, timeoutMs=700)
    fault(result, "timeout")
    assert (
        leftovers.still_there(
            {p: s for p, s in leftovers.descendants(boxes.client.pid).items() if b"sleep" in cmdline(p)}, 2.0
        )
        == []
    )


def cmdline(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


# -- objects of the kernel


@attack("29")
@pytest.mark.parametrize("kind", ["fd", "epoll", "event", "socket", "pipe"])
def test_descriptors_end_at_the_limit(box, kind):
    result = box().under_attack("bin/take", kind)
    count, error = taken(result)
    assert error == 24 and 1000 < count < 65536 and "fault" not in result


# What is counted for a user of the host, or for the whole machine, whoever asks.
SHARED = ["inotify", "timer", "signal", "queue", "locked", "pty", "segment", "pipe", "socket"]


@attack("29")
@pytest.mark.parametrize("kind", SHARED)
def test_user_of_the_sidecar_does_not_go_short(one_way, programs, as_owner, kind):
    """While a box holds all it can get, the user who runs the sidecar still gets some on the host."""
    boxes = one_way()
    with hold(boxes, kind):
        host = subprocess.run(
            [os.path.join(programs, "take"), kind, "8"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            **as_owner,
        )
        assert host.stdout == "8 0\n"


@attack("29")
@pytest.mark.parametrize("kind", [kind for kind in SHARED if kind not in ("timer", "signal", "queue", "locked")])
def test_another_box_does_not_go_short(one_way, client, kind):
    """Nor does a box of another session."""
    boxes = one_way()
    other = client.open(workspace=boxes.workspace)
    with hold(boxes, kind):
        result = client.run("bin/take", kind, "8", sessionId=other)
        assert result["stdout"] in ("8 0\n", "0 38\n")  # ENOSYS: a call that this box does not have at all


class hold:
    """A box that holds all of one kind."""

    def __init__(self, boxes, kind):
        self.boxes, self.kind = boxes, kind

    def __enter__(self):
        self.future = self.boxes.start("bin/take", self.kind, interactive=True, timeoutMs=60_000)
        self.boxes.client.wait_for(lambda: self.boxes.client.output_events(self.future), "the box", 30)

    def __exit__(self, *_):
        self.boxes.client.call("run/stdin", {"runId": self.future.run_id, "text": "", "eof": True})
        self.future.result(30)


# -- memory


def hoard(boxes, way, mib, **params):
    return boxes.under_attack("bin/hoard", way, str(mib), "hold", **{"timeoutMs": 4000, **params})


@attack("32", "33", "C46")
@pytest.mark.parametrize("where", ["process", "memfd", "segment", "pipes", "sockets", "page-tables"])
def test_memory_wherever_it_is_held(box, where):
    """A cgroup charges all of it: ended as `oom`, at the cap and not above. A poll does not see it everywhere; there it is ended at
    the deadline, and what a poll could never see is refused."""
    boxes = box(memoryMb=128)
    result = hoard(boxes, where, 400)
    if boxes.enforced("memoryMb") == "kernel":
        assert fault(result, "oom")["limit"] == "memoryMb"
        assert result["stdout"] == "" and 120 << 20 < result["usage"]["memoryPeakBytes"] <= 128 << 20
        assert result["usage"]["oomKills"] >= 1
    elif where == "process":
        fault(result, "oom")
        assert result["stdout"] == ""
    elif where in ("memfd", "segment"):
        assert result["stdout"] == "-1 38\n"
    else:
        fault(result, "timeout")  # the known gap of a poll: sockets, pipes and page tables


@attack("31", "32", "C46")
@pytest.mark.parametrize("where", ["tmp", "shm"])
def test_memory_file_systems_are_full_before_it_is_an_oom(box, where):
    result = hoard(box(memoryMb=256), where, 400, timeoutMs=1500)
    fault(result, "timeout")
    assert result["stdout"] == "64 28\n"  # MiB, ENOSPC


@attack("32")
def test_names_that_do_not_exist_are_reclaimed(box):
    """234,000 negative dentries of the workspace: charged where a cgroup charges, and given back before it is an OOM."""
    boxes = box(memoryMb=64)
    result = boxes.under_attack("bin/hoard", "names", "100", timeoutMs=60_000)
    assert (result["stdout"], "fault" in result) == ("100 0\n", False), result
    if boxes.enforced("memoryMb") == "kernel":
        assert result["usage"]["memoryPeakBytes"] <= 64 << 20


@attack("32")
def test_memory_of_the_machine_is_back_after_the_call(one_way):
    def available():
        with open("/proc/meminfo", encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("MemAvailable"))

    boxes = one_way(memoryMb=512)
    before = available()
    for where in ("pipes", "sockets", "page-tables", "tmp", "process"):
        hoard(boxes, where, 300, timeoutMs=1500)
    deadline = time.monotonic() + 180  # a virtual machine hands its free pages to the host first: then they come back by and by
    while available() < before - (200 << 10) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert available() >= before - (200 << 10)  # KiB; five times 300 MiB were taken


@attack("33")
def test_oom_of_a_grandchild_that_wants_to_be_spared(box):
    """oom_score_adj cannot be lowered; the hog dies, or all of the box, never init alone, and the fault says so."""
    boxes = box(memoryMb=128)
    script = "echo -1000 2>/dev/null >/proc/self/oom_score_adj; cat /proc/self/oom_score_adj; (bin/hoard process 400 hold; true); echo main"
    result = boxes.under_attack("sh", "-c", script, timeoutMs=20_000)
    fault(result, "oom")
    assert int(result["stdout"].split("\n")[0]) >= 0
    if boxes.enforced("memoryMb") == "kernel":
        assert result["exitCode"] in (0, 137)


@attack("32", "37")
def test_poll_of_memory_cannot_be_starved(box):
    """Without a cgroup init looks: sixteen busy loops, init pushed to SCHED_IDLE, nice 19 and one cpu, before memory is taken."""
    code = (
        "import ctypes, os, time\n"
        "c = ctypes.CDLL(None); c.sched_setscheduler(1, 5, (ctypes.c_int * 1)(0)); c.setpriority(0, 1, 19)\n"
        "for pid in (1, 0):\n"
        "    try: os.sched_setaffinity(pid, {min(os.sched_getaffinity(0))})\n"
        "    except OSError: pass\n"
        "for _ in range(16):\n"
        "    if os.fork() == 0:\n"
        "        while True: pass\n"
        "held = [bytearray(b'x' * (1 << 20)) for _ in range(400)]\n"
        "time.sleep(8)\nprint('survived')"
    )
    result = box(memoryMb=64).under_attack("/usr/bin/python3", "-I", "-S", "-c", code, timeoutMs=20_000)
    fault(result, "oom")
    assert result["stdout"] == ""


@attack("32")
def test_poll_of_memory_cannot_be_blinded(one_way):
    """prlimit(2) of init: a poller that may open no file sees nothing."""
    boxes = one_way(memoryMb=64)
    code = (
        "import resource, time\n"
        "for limit in ('NOFILE', 'AS', 'DATA', 'FSIZE', 'STACK'):\n"
        "    try: resource.prlimit(1, getattr(resource, 'RLIMIT_' + limit), (0, 0))\n"
        "    except OSError: pass\n"
        "held = bytearray(b'x' * (300 << 20))\ntime.sleep(3)\nprint('survived')"
    )
    result = boxes.under_attack("/usr/bin/python3", "-I", "-S", "-c", code, timeoutMs=20_000)
    fault(result, "oom")
    assert result["stdout"] == ""


# -- disk


@attack("31")
@pytest.mark.parametrize("directory, inodes", [("/tmp", 65536), ("/dev/shm", 16384), ("/home/sandbox", 65536)])
def test_inodes_of_memory_file_systems_are_capped(box, directory, inodes):
    code = f"import os\nn = 0\ntry:\n    while n < 200000: os.close(os.open('{directory}/%d' % n, os.O_CREAT | os.O_WRONLY)); n += 1\nexcept OSError as e: print(e.errno)\nprint({inodes} - 8 <= n < {inodes})"
    plain(box().python(code, timeoutMs=60_000), "28\nTrue\n")


@attack("31", "47")
def test_sparse_file_of_a_terabyte(box):
    """Costs nothing where it lies, is not read to the end by the list of files, and its size is told as it is."""
    boxes = box()
    result = boxes.under_attack(
        "sh",
        "-c",
        "truncate -s 1T /tmp/big; truncate -s 1T big && echo made; df /dev/shm /tmp | tail -2 | awk '{print $2}'",
        timeoutMs=30_000,
    )
    assert result["stdout"].startswith("made\n"), result
    assert [f["size"] for f in result["files"] if f["path"] == "big"] == [1 << 40]
    assert result["stdout"].split()[1:] == ["65536", "65536"]


@attack("31")
def test_run_and_var_tmp_are_bounded_or_read_only(box):
    plain(
        box().sh(
            "touch /run/x 2>/dev/null || echo ro; dd if=/dev/zero of=/var/tmp/x bs=1M count=100 2>/dev/null; stat -c %s /var/tmp/x; "
            "dd if=/dev/zero of=/run/code/x bs=1M count=100 2>/dev/null; stat -c %s /run/code/x"
        ),
        f"ro\n{64 << 20}\n{24 << 20}\n",
    )


@attack("35")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount on the host")
def test_full_disk_of_the_workspace(box, make_dir, owner):
    """A file system of 4 MiB for the workspace: ENOSPC and not EIO for the code, an ordinary result for the host."""
    small = make_dir("small")
    subprocess.run(
        [
            "mount",
            "-t",
            "tmpfs",
            "-o",
            f"size=4m,nr_inodes=64,uid={owner.pw_uid},gid={owner.pw_gid},mode=755",
            "none",
            small,
        ],
        check=True,
    )
    try:
        boxes = box(workspace=small)
        result = boxes.python(
            "import os\nfd = os.open('f', os.O_CREAT | os.O_WRONLY)\nn = 0\ntry:\n    while True: n += os.write(fd, bytes(65536))\nexcept OSError as e: print(e.errno, n)"
        )
        assert result["stdout"] == f"28 {4 << 20}\n" and result["files"][0]["size"] == 4 << 20, result
        result = boxes.python(
            "import os\nn = 0\ntry:\n    while True: os.mkdir(f'd{n}'); n += 1\nexcept OSError as e: print(e.errno)"
        )
        assert result["stdout"] == "28\n"
        if boxes.way != "throwaway":
            boxes.client.call("session/close", {"sessionId": boxes.where["sessionId"]})
    finally:
        subprocess.run(["umount", "-l", small], check=True)


# -- cores, priority


@attack("36")
def test_crash_leaves_no_core(box):
    """Limit 1: 0 would still feed a pipe in core_pattern (core(5)). It cannot be raised again."""
    boxes = box()
    code = (
        "import ctypes, os, resource\nprint(resource.getrlimit(resource.RLIMIT_CORE))\n"
        "try: resource.setrlimit(resource.RLIMIT_CORE, (1 << 30, 1 << 30))\nexcept ValueError as e: print('fixed')\n"
        "import sys; sys.stdout.flush(); os.chdir('/workspace'); ctypes.string_at(0)"
    )
    result = boxes.python(code)
    assert (result["stdout"], result["signal"], result["exitCode"]) == ("(1, 1)\nfixed\n", "SEGV", 139)
    assert result["files"] == [] and not [n for n in os.listdir(boxes.workspace) if "core" in n]


@attack("37")
def test_priority_cannot_be_raised(box):
    code = (
        "import ctypes, os, struct\nc = ctypes.CDLL(None, use_errno=True)\n"
        "def t(name, f):\n    try: f(); print(name, 'done')\n    except OSError as e: print(name, e.errno in (1, 13))\n"
        "t('fifo', lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)))\n"
        "t('rr', lambda: os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(99)))\n"
        "t('nice', lambda: os.setpriority(os.PRIO_PROCESS, 0, -20))\n"
        "attr = struct.pack('<IIQiIQQQ', 48, 6, 0, 0, 0, 10000000, 20000000, 20000000)\n"
        "print('deadline', c.syscall(314, 0, attr, 0), ctypes.get_errno())\n"
        "print('ioprio', c.syscall(251, 1, 0, 1 << 13), ctypes.get_errno())"
    )
    result = box().python(code)
    lines = result["stdout"].splitlines()
    assert lines[:4] == ["fifo True", "rr True", "nice True", "deadline -1 1"] and lines[4] in (
        "ioprio -1 1",
        "ioprio -1 38",
    ), result


@attack("37")
@pytest.mark.parametrize("way", WAYS)
def test_cpu_cap_holds_however_many_processes_hog(box):
    boxes = box(cpusMilli=300)
    if boxes.enforced("cpusMilli") != "kernel":
        pytest.skip("this host enforces no cpu cap for this user: " + boxes.effective["cpusMilli"]["reason"])
    code = "import os\ntry: os.sched_setaffinity(0, range(os.cpu_count()))\nexcept OSError: pass\nfor _ in range(8): os.fork()\nwhile True: pass"
    result = boxes.under_attack("/usr/bin/python3", "-I", "-S", "-c", code, timeoutMs=2500)
    fault(result, "timeout")
    assert result["usage"]["cpuUserUs"] + result["usage"]["cpuSystemUs"] < 0.45 * result["usage"]["wallUs"] + 200_000

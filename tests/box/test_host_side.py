"""What a box could leave on the host's side of a writable directory, and what it could do to its own init."""

import os
import stat

import pytest

from expect import fault, plain

# Each way to make a file with the set-user-ID or set-group-ID bit; the last expression says what became of it.
WAYS = {
    "chmod": "open('f', 'w').close(); os.chmod('f', MODE)",
    "fchmod": "fd = os.open('f', os.O_CREAT | os.O_WRONLY); os.fchmod(fd, MODE)",
    "fchmodat": "open('f', 'w').close(); os.chmod('f', MODE, dir_fd=os.open('.', os.O_RDONLY))",
    "open": "os.umask(0); os.open('f', os.O_CREAT | os.O_WRONLY, MODE)",
    "openat": "os.umask(0); os.open('f', os.O_CREAT | os.O_WRONLY, MODE, dir_fd=os.open('.', os.O_RDONLY))",
    "tmpfile": "os.umask(0); fd = os.open('.', os.O_TMPFILE | os.O_RDWR, MODE); os.link(f'/proc/self/fd/{fd}', 'f')",
    "mknod": "os.umask(0); os.mknod('f', MODE | stat.S_IFREG)",
    "creat": "os.umask(0); r = libc.creat(b'f', MODE); r >= 0 or fail()",
    "fchmodat2": "open('f', 'w').close(); libc.syscall(452, -100, b'f', MODE, 0) >= 0 or fail()",
    "openat2": "how = struct.pack('QQQ', os.O_CREAT | os.O_WRONLY, MODE, 0); libc.syscall(437, -100, b'f', how, 24) >= 0 or fail()",
    "mkdir": "os.umask(0); os.mkdir('f', MODE)",
    "chmod of a directory": "os.mkdir('f'); os.chmod('f', MODE)",
}
HEAD = (
    "import ctypes, os, stat, struct\nlibc = ctypes.CDLL(None, use_errno=True)\n"
    "def fail(): raise OSError(ctypes.get_errno(), 'refused')\n"
)


@pytest.fixture
def workspace(make_dir):
    return make_dir("ws")


@pytest.mark.parametrize("mode", [0o4755, 0o2755, 0o6777])
@pytest.mark.parametrize("way", WAYS)
def test_no_set_id_bit_reaches_the_host(client, workspace, way, mode):
    code = HEAD + f"MODE = {mode}\ntry:\n  " + "; ".join(WAYS[way].split("; ")) + "\nexcept OSError as e: print(e.errno)\n"
    result = client.code(code, session={"workspace": workspace})
    assert "fault" not in result and result["exitCode"] == 0, result
    for entry in os.scandir(workspace):
        assert not entry.stat(follow_symlinks=False).st_mode & (stat.S_ISUID | stat.S_ISGID)
    if way != "mkdir":  # which the kernel itself does without these bits
        assert result["stdout"] in ("1\n", "38\n")


def test_ordinary_modes_work(client, workspace):
    script = "umask 0; touch f; chmod 1777 f; mkdir -m 1777 d; install -m 0750 /bin/true g; stat -c %a f d g; cp -p g h; tar c g | tar x -C d"
    plain(client.call("run/argv", {"argv": ["sh", "-c", script], "session": {"workspace": workspace}}), "1777\n1777\n750\n")


@pytest.mark.parametrize(
    "call",
    [
        "resource.prlimit(1, resource.RLIMIT_NOFILE, (0, 0))",
        "resource.prlimit(1, resource.RLIMIT_CPU, (1, 1))",
        "resource.prlimit(1, resource.RLIMIT_NOFILE)",
        "os.sched_setaffinity(1, {0})",
        "os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0))",
        "os.setpriority(os.PRIO_PROCESS, 1, 19)",
        "os.setpriority(os.PRIO_USER, 0, 19)",
        "os.setpriority(os.PRIO_USER, 1000, 19)",
    ],
)
def test_init_is_out_of_reach(client, call):
    code = f"import os, resource\ntry: {call}; print('done')\nexcept PermissionError as e: print(e.errno)"
    plain(client.code(code), "1\n")


def test_a_process_may_limit_itself(client):
    code = (
        "import os, resource\nresource.prlimit(os.getpid(), resource.RLIMIT_NOFILE, (64, 64)); os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "os.setpriority(os.PRIO_PROCESS, 0, 5); print(resource.getrlimit(resource.RLIMIT_NOFILE), os.nice(0))"
    )
    plain(client.code(code), "(64, 64) 5\n")


def test_signals_to_init_change_nothing(client):
    code = (
        "import os, signal\nfor n in range(1, 65):\n  for _ in range(50):\n    try: os.kill(1, n)\n    except OSError: pass\n"
        "x = bytearray(400 << 20)\nfor i in range(0, len(x), 4096): x[i] = 1\nprint('alive')"
    )
    fault(client.code(code, memoryMb=128, timeoutMs=60000), "oom")

"""Counting what a sidecar has and what it leaves: processes, file descriptors, mounts, cgroups, temporary files."""

import ctypes
import fcntl
import os
import time

PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
CGROUP_ROOT = "/sys/fs/cgroup"
CGROUP_PREFIX = "kern-sidecar-"
TEST_PREFIX = "/kern-test-"


def become_subreaper():
    """Orphans of a killed sidecar come to us, so that a slow init of the machine cannot be taken for a leak."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def read_stat(pid):
    """(state, ppid, start time) of a process, or None. The second field may hold anything: cut at the last )."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rsplit(b")", 1)[1].split()
    except (OSError, IndexError):
        return None
    return fields[0].decode(), int(fields[1]), int(fields[19])


def all_processes():
    found = {int(name): read_stat(name) for name in os.listdir("/proc") if name.isdigit()}
    return {pid: entry for pid, entry in found.items() if entry}


def children(pid):
    return [child for child, (_, parent, _) in all_processes().items() if parent == pid]


def descendants(pid):
    """{pid: start time} of everything below a process, itself included."""
    processes = all_processes()
    children = {}
    for child, (_, parent, _) in processes.items():
        children.setdefault(parent, []).append(child)
    found, todo = {}, [pid]
    while todo:
        one = todo.pop()
        if one in processes and one not in found:
            found[one] = processes[one][2]
            todo += children.get(one, [])
    return found


def alive(pid, start):
    """Is it still the same process, and more than a zombie? Adopted zombies are reaped."""
    entry = read_stat(pid)
    if entry is None or entry[2] != start:
        return False
    if entry[0] in "ZX":
        if entry[1] == os.getpid():
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                pass
        return False
    return True


def describe(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return f"{pid} {file.read()[:120]!r}"
    except OSError:
        return str(pid)


def still_there(processes, within):
    """Which of {pid: start} are alive after `within` seconds at most."""
    deadline = time.monotonic() + within
    while True:
        left = [pid for pid, start in processes.items() if alive(pid, start)]
        if not left or time.monotonic() > deadline:
            return [describe(pid) for pid in left]
        time.sleep(0.01)


def with_argument(word):
    """Pids whose command line holds this word (any user may read it)."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                if word.encode() in file.read().split(b"\0"):
                    found.append(int(name))
        except OSError:
            pass
    return found


def fd_count(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def mount_count(pid, place=None):
    """With `place`, a test's directory: without what is mounted in those of other tests, which may run beside it."""
    with open(f"/proc/{pid}/mountinfo", encoding="utf-8", errors="replace") as file:
        return sum(1 for line in file if place is None or place in line or TEST_PREFIX not in line)


def rss_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS:"))


def share_kib(pid):
    """Its memory, and its share of what it has in common with others; where that is not for us to know, all of it (proc(5),
    smaps_rollup)."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("Pss:"))
    except PermissionError:
        return rss_kib(pid)
    except (FileNotFoundError, ProcessLookupError):
        return 0  # it has ended


def is_interpreter(pid):
    """Does it run what a box is for, and not the sidecar's own program?"""
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        name = file.read().split(b"\0")[0].strip()
    return name != b"kern-box" and not name.endswith(b"/kern-sidecar")


def cgroups(uid=None):
    """Directories of the sidecars of this user (or of any) in any hierarchy, without what is below them."""
    prefix = CGROUP_PREFIX if uid is None else f"{CGROUP_PREFIX}{uid}-"
    found = set()
    for directory, names, _ in os.walk(CGROUP_ROOT):
        ours = [name for name in names if name.startswith(prefix)]
        found.update(os.path.join(directory, name) for name in ours)
        names[:] = [name for name in names if name not in ours]
    return found


def owned(path):
    """A living sidecar holds a lock on its directory; what is locked is in use, by whichever sidecar."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return True
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except OSError:
        return True
    finally:
        os.close(fd)


def new_cgroups(before, uid=None, within=2.0):
    deadline = time.monotonic() + within
    while True:
        new = sorted(path for path in cgroups(uid) - before if not owned(path))
        if not new or time.monotonic() > deadline:
            return [f"a cgroup is left: {path}" for path in new]
        time.sleep(0.05)


def files_left(tmp):
    """Everything under a sidecar's TMPDIR but the one directory per user that stays for the next start."""
    left = []
    for directory, names, files in os.walk(tmp):
        for name in names + files:
            path = os.path.relpath(os.path.join(directory, name), tmp)
            if not (path.startswith(CGROUP_PREFIX) and os.sep not in path):
                left.append(f"a file is left: {path}")
    return left

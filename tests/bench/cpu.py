"""What processor time a slice of calls cost: of the sidecar and all below it, or of everything else that this process started.

A cgroup counts all that ran in it (v1, cpuacct), when we may make one. Processes tell less: one that lives, what its threads ran, to
the nanosecond (schedstat), or what its stat says when that is more, as it is when threads have ended; one that ended, what whoever
reaped it was given (cutime, cstime), to a clock tick - but those that are killed with their box are reaped by nobody. Kernel
threads, which take network namespaces apart, are in neither."""

import os
import resource
import time

import leftovers

TICK_MS = 1000 / os.sysconf("SC_CLK_TCK")
QUIET_S, QUIET_MS = 0.04, 8  # nothing is made or taken apart any more: so little in that time; boxes without cgroups poll
LONGEST_S = 5.0
AGAIN = 50


def _ran_ms(pid):
    """Milliseconds of a process, those that it reaped among them; 0 when it has gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            own_user, own_system, user, system = map(int, file.read().rsplit(b")", 1)[1].split()[11:15])
        precise = 0
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/schedstat", "rb") as file:
                precise += int(file.read().split()[0])
    except (OSError, IndexError):
        return 0
    return max(precise / 1e6, (own_user + own_system) * TICK_MS) + (user + system) * TICK_MS


class Meter:
    """`ms()`: what ran until now, good for differences; `error_ms`: the standard error of one of them; `whole`: nothing is missed."""

    error_ms, whole = 0.0, True

    def ms(self):
        raise NotImplementedError

    def settle(self):
        """Waits for what calls left to do: boxes to be taken apart, others to be made ahead. It is theirs."""
        deadline, last = time.monotonic() + LONGEST_S, self.ms()
        while time.monotonic() < deadline:
            time.sleep(QUIET_S)
            now = self.ms()
            if now - last < QUIET_MS:
                break
            last = now
        return self.ms()


class Group(Meter):
    """A cgroup for a sidecar, which makes those of its boxes below; `make()` gives None where there can be none."""

    def __init__(self, path):
        self.path = path
        os.mkdir(path)

    @classmethod
    def make(cls, name):
        try:
            with open("/proc/self/cgroup", encoding="utf-8") as file:
                ours = {line.split(":")[1]: line.strip().split(":", 2)[2] for line in file}
            names = next(names for names in ours if "cpuacct" in names.split(","))
            return cls(f"/sys/fs/cgroup/{names}/{ours[names]}/{name}")
        except (OSError, StopIteration):
            return None

    def command(self, program, args):
        """What starts it inside."""
        return "/bin/sh", ("-c", 'echo $$ >"$0" && exec "$@"', f"{self.path}/cgroup.procs", program, *args)

    def ms(self):
        with open(f"{self.path}/cpuacct.usage", encoding="ascii") as file:
            return int(file.read()) / 1e6

    def remove(self):
        """When all in it has ended, and the kernel has seen that."""
        for _ in range(100):
            try:
                os.rmdir(self.path)
                return
            except OSError:
                time.sleep(0.02)


class Processes(Meter):
    def ms(self):
        """Read again when somebody was reaped meanwhile, whose time would be in it twice, or not at all."""
        for _ in range(AGAIN):
            there = self.processes()
            found = self.sum(there)
            if self.processes() == there:
                break
        return found

    def processes(self):
        """{pid: start time}"""
        raise NotImplementedError

    def sum(self, there):
        return sum(map(_ran_ms, there))


class Tree(Processes):
    """A process and all below it, where one reaps: the sidecar's launcher. Each of its two counters is cut to a tick at both ends."""

    error_ms, whole = TICK_MS * (4 / 12) ** 0.5, False

    def __init__(self, pid):
        self.pid = pid

    def processes(self):
        return leftovers.descendants(self.pid)


class Others(Processes):
    """All that this process started, and what those left behind (it is their subreaper), but some, which have a meter."""

    def __init__(self, without, whole=True):
        self.without, self.whole = without, whole
        leftovers.become_subreaper()

    def processes(self):
        mine = leftovers.descendants(os.getpid())
        for pid in mine:
            self._reap(pid)
        left_out = {os.getpid()}.union(*map(leftovers.descendants, self.without))
        return {pid: start for pid, start in mine.items() if pid not in left_out}

    def sum(self, there):
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        return super().sum(there) + (ended.ru_utime + ended.ru_stime) * 1000

    @staticmethod
    def _reap(pid):
        """A zombie that came to us, as the first process of a box does whose launcher has not waited."""
        entry = leftovers.read_stat(pid)
        if entry and entry[0] == "Z" and entry[1] == os.getpid():
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                pass

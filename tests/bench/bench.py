#!/usr/bin/env python3
"""How long a call takes and what it costs, beside what one would use instead, in the same run on the same machine.

Every row is measured in interleaved rounds (one slice of each row a round), so that other load and clock changes hit all rows
alike; compare rows of one run only. Ours go through the protocol, from the request written to the reply read; rivals from spawn to
exit with stdout read. Rivals that are not installed are named. README.md says what is measured how, and what is weak in it.

    tests/bench/bench.py                       # a table; --json for programs
    tests/bench/bench.py --only python         # rows whose block or name has this word
    tests/bench/bench.py --at-once 1000        # instead of 16,100
    tests/bench/bench.py --seconds 30          # and for so long 1, 2 and 16 calls in flight
    tests/bench/bench.py --pause 20            # calls that find ready what was made ahead
    tests/bench/bench.py --timings, --memory   # the steps of a call; what is resident; and nothing else"""

import argparse
import contextlib
import importlib.util
import json
import os
import resource
import shutil
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(TOP, "tests/client")]

import cpu  # noqa: E402
import ours  # noqa: E402
import rivals  # noqa: E402
import table  # noqa: E402
from ours import WAYS  # noqa: E402
from rivals import Spawns  # noqa: E402
from table import Row  # noqa: E402

# Work that is the same in every row of its block: the code, how a bare interpreter is given it, what stdout must be
WORK = {
    "true": (None, ["true"], ""),
    "python": ("print(1)", ["python3", "-c", "print(1)"], "1\n"),
    "bash": ("echo 1", ["bash", "-c", "echo 1"], "1\n"),
    "node": ("console.log(1)", ["node", "-e", "console.log(1)"], "1\n"),
}
CELLS = {"node": "1", "sh": ":", "bash": ":", "python": "1"}  # python last: the others of the block are compared with it


class Bench:
    """The rows, and the rivals that are not here."""

    def __init__(self, options, scratch, stack):
        # one a way, so that what each makes ahead, and what that costs while it waits, is its own
        self.sidecars = {way: ours.Sidecar(options.program) for way in (None, *WAYS, "kernels")}
        for sidecar in self.sidecars.values():
            stack.callback(sidecar.close)
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # three a process in a burst
        self.program, self.stack = options.program, stack
        self.others = cpu.Others(without=[sidecar.client.pid for sidecar in self.sidecars.values()])
        self.ending = cpu.Others(self.others.without, whole=False)  # of what kills its box when it ends
        self.rows, self.missing = [], []
        self.crun = rivals.Crun(scratch)
        self.kern = self.find("kern-sandbox", lambda: rivals.Kern(options.kern_sandbox, scratch, stack))
        self.docker = self.find("docker", rivals.Docker)
        for name in ("bwrap", "crun"):
            self.there(name)
        # rivals that are a process for each call: what makes the way of one work, and where its processor time is read
        self.spawned = {
            "bare": (lambda argv, out: Spawns(argv, out), self.others),
            "bwrap": (lambda argv, out: Spawns(rivals.bwrap_prefix() + argv, out), self.others),
            "crun": (self.crun.way, self.others),
            "kern": (self.kern and self.kern.program_way, self.others),
            "docker": (self.docker and self.docker.way, None),
        }
        for absent in self.missing:
            self.spawned.pop(absent.split()[0].replace("kern-sandbox", "kern"), None)

    def find(self, name, make):
        try:
            return make()
        except (ImportError, OSError) as problem:
            self.missing.append(f"{name} ({str(problem)[:100]})")
            return None

    def there(self, name):
        found = shutil.which(name, path=rivals.PATH)
        if not found:
            self.missing.append(name)
        return found

    def mine(self, block, name, way, make, **how):
        """`make(sidecar)` gives the way to call it."""
        sidecar = self.sidecars[way]
        self.rows.append(Row(block, f"kern-sidecar {name}", lambda: make(sidecar), sidecar.meter, ours=True, **how))

    def bridge(self, block, make, meter):
        self.rows.append(Row(block, "kern-sidecar bridge", lambda: make((self.program, "shell", "--bridge")), meter, ours=True))

    def other(self, block, name, make, **how):
        self.rows.append(Row(block, name, make, self.others, **how))

    def spawning(self, block, work, **how):
        _, argv, stdout = WORK[work]
        for name, (make, meter) in self.spawned.items():
            self.rows.append(Row(block, name, lambda make=make: make(argv, stdout.encode()), meter, **how))

    def calls(self, work):
        """A call, one after another."""
        code, argv, stdout = WORK[work]
        if not self.there(argv[0]):
            return
        if code:
            for way in (None, *WAYS):
                self.mine(work, way or "no session", way, lambda sidecar, way=way: sidecar.code(way, work, code, stdout))
        else:
            for way in WAYS[:-1]:  # a zygote is an interpreter
                self.mine(work, way, way, lambda sidecar, way=way: sidecar.argv(way, argv, stdout))
        self.spawning(work, work)
        if self.kern and work in ("true", "python"):
            self.other(work, "kern-sandbox", lambda: self.kern.package_way(work))

    def cells(self):
        """A cell of a kernel that is there."""
        block, python = "kernel cell", CELLS["python"]
        self.mine(block, "ping, no cell", "kernels", lambda sidecar: sidecar.ping())
        self.mine(block, "python, no files", "kernels", lambda sidecar: sidecar.cell_without_files("python", python))
        for language, code in CELLS.items():
            if self.there({"python": "python3"}.get(language, language)):
                self.mine(block, language, "kernels", lambda sidecar, what=(language, code): sidecar.cell(*what))
        self.other(block, "bare python, exec", lambda: rivals.bare_cells(self.stack))
        if self.kern:
            self.other(block, "kern-sandbox kernel", self.kern.cells)
        if importlib.util.find_spec("jupyter_client") and importlib.util.find_spec("ipykernel"):
            self.other(block, "ipykernel", lambda: rivals.ipykernel_cells(self.stack))
        else:
            self.missing.append("ipykernel with jupyter_client")

    def shells(self):
        """A round trip of a shell that is there, and the first one of a new shell."""
        block = "shell command"
        self.mine(block, "shell", "kernels", lambda sidecar: sidecar.shell())
        self.bridge(block, lambda argv: rivals.shell(argv, self.stack), self.others)
        self.other(block, "bare", lambda: rivals.shell(("bash",), self.stack))
        block = "a shell's first"
        self.mine(block, "shell", "kernels", lambda sidecar: sidecar.first_of_shell())
        self.bridge(block, rivals.first_of_shell, self.ending)
        self.other(block, "bare", lambda: rivals.first_of_shell(("bash",)))

    def many(self, block, **how):
        """Calls of python that overlap."""
        code, _, stdout = WORK["python"]
        for way in WAYS:
            self.mine(block, way, way, lambda sidecar, way=way: sidecar.code(way, "python", code, stdout), **how)
        self.spawning(block, "python", **how)
        if self.kern:
            self.other(block, "kern-sandbox", self.kern.package_at_once, **how)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=os.path.abspath, default=os.path.join(TOP, "build/kern-sidecar"))
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--calls", type=int, default=20, help="calls of a row in a round")
    parser.add_argument("--at-once", type=counts, default="16,100", metavar="N,N", help="bursts of so many calls; 1000 takes a while")
    parser.add_argument("--seconds", type=float, default=0, help="of each row of a sustained run; none without it")
    parser.add_argument("--only", default="", help="rows whose block or name has this word")
    parser.add_argument("--pause", type=float, default=0, help="milliseconds before each call, and before each burst")
    parser.add_argument("--kern-sandbox", default=os.path.join(TOP, "build/kern-sandbox"), metavar="DIR",
                        help="where pip install --target put it, when python cannot import it as it is")  # fmt: skip
    parser.add_argument("--timings", action="store_true", help="the steps of a call, and nothing else")
    parser.add_argument("--memory", action="store_true", help="what is resident, and nothing else")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if min(options.at_once + [options.rounds, options.calls]) < 1 or min(options.seconds, options.pause) < 0:
        parser.error("rounds, calls and --at-once are at least 1, seconds and --pause not negative")
    return options


def counts(text):
    return [int(word) for word in text.split(",") if word]


def run(options):
    """Lines of the table, and what is missing."""
    # all that a user's own installation has not: what the tests' packages are in
    sys.path.append(os.path.join(TOP, "build/jupyter-packages"))
    with contextlib.ExitStack() as stack:
        scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="kern-bench-", ignore_cleanup_errors=True))
        bench = Bench(options, scratch, stack)
        for work in WORK:
            bench.calls(work)
        bench.cells()
        bench.shells()
        for count in options.at_once:
            bench.many(f"{count} python at once", at_once=count)
        for count in (1, 2, 16) if options.seconds else ():
            bench.many(f"sustained, {count} in flight", at_once=count, seconds=options.seconds)
        return table.lines_of(table.measure(bench.rows, options)), bench.missing


def main():
    options = parse()
    if options.timings or options.memory:
        print(json.dumps((ours.memory if options.memory else ours.timings)(options.program), indent=1))
        return 0
    lines, missing = run(options)
    if options.json:
        machine = {"user": os.geteuid(), "kernel": os.uname().release, "cpus": os.cpu_count()}
        print(json.dumps({**machine, "rows": lines, "missing": missing}, indent=1))
    else:
        table.print_table(lines, missing)
    return 1 if table.failed(lines) else 0


if __name__ == "__main__":
    sys.exit(main())

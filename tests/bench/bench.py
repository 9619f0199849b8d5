#!/usr/bin/env python3
"""How long a call takes, beside what one would use instead, in the same run on the same machine.

Every row is measured in interleaved rounds (one slice of each row a round), so that other load and clock changes
hit all rows alike; compare rows of one run only. Ours go through the protocol, from the request written to the
reply read; rivals from spawn to exit with stdout read. Rivals that are not installed are named.

Ours are measured on each way of getting a box (`start` of session/open): the back-to-back calls of a slice use up what was made
ahead, so the slice begins with it and ends with what is made as fast as it is used; --pause shows calls that find one ready.
--timings shows the median of each step of a call, --memory what a session, a spare and an interpreter cost.

    tests/bench/bench.py [--program P] [--rounds N] [--calls N] [--json] [--only WORD] [--pause MS] [--timings] [--memory]"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(TOP, "tests/client"))

from kern_client import Client  # noqa: E402

PATH = "/usr/local/bin:/usr/bin:/bin"
ENV = {"PATH": PATH, "HOME": "/tmp", "LANG": "C.UTF-8"}
# Work that is the same in every row of its block: (argv for the bare interpreter, what stdout must be)
WORK = {
    "true": (["true"], b""),
    "python": (["python3", "-c", "print(1)"], b"1\n"),
    "bash": (["bash", "-c", "echo 1"], b"1\n"),
    "node": (["node", "-e", "console.log(1)"], b"1\n"),
}
CODE = {"python": "print(1)", "bash": "echo 1", "node": "console.log(1)"}


def spawn(argv, expected):
    """Milliseconds of one process, from spawn to exit."""
    begin = time.perf_counter()
    done = subprocess.run(
        argv, env=ENV, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    took = (time.perf_counter() - begin) * 1000
    if done.returncode != 0 or done.stdout != expected:
        raise RuntimeError(f"{argv[0]}: status {done.returncode}, {done.stderr[-300:]!r}")
    return took


def bwrap_prefix():
    """All namespaces and the same tree as our default box."""
    argv = [
        "bwrap",
        "--unshare-all",
        "--die-with-parent",
        "--new-session",
        "--clearenv",
        "--setenv",
        "PATH",
        PATH,
        "--ro-bind",
        "/usr",
        "/usr",
        "--proc",
        "/proc",
        "--dev",
        "/dev",
        "--tmpfs",
        "/tmp",
        "--tmpfs",
        "/workspace",
        "--ro-bind-try",
        "/etc/alternatives",
        "/etc/alternatives",
        "--ro-bind-try",
        "/etc/ld.so.cache",
        "/etc/ld.so.cache",
    ]
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        if os.path.islink(f"/{name}"):
            argv += ["--symlink", os.readlink(f"/{name}"), f"/{name}"]
        elif os.path.isdir(f"/{name}"):
            argv += ["--ro-bind", f"/{name}", f"/{name}"]
    return argv + ["--chdir", "/workspace", "--"]


class Crun:
    """An OCI bundle over the host's /usr, started once per call."""

    def __init__(self, where):
        self.where, self.count = where, 0
        os.makedirs(os.path.join(where, "rootfs"))
        for name in ("usr", "proc", "dev", "tmp", "workspace"):
            os.mkdir(os.path.join(where, "rootfs", name))
        for name in ("bin", "sbin", "lib", "lib64"):
            os.symlink(f"usr/{name}", os.path.join(where, "rootfs", name))
        spec = ["crun", "spec"] + ([] if os.geteuid() == 0 else ["--rootless"])
        subprocess.run(spec, cwd=where, check=True)

    def call(self, work, expected):
        path = os.path.join(self.where, "config.json")
        with open(path, encoding="utf-8") as file:
            config = json.load(file)
        config["process"].update(terminal=False, args=work, cwd="/", env=[f"PATH={PATH}"])
        if not any(m["destination"] == "/usr" for m in config["mounts"]):
            config["mounts"].insert(
                0, {"destination": "/usr", "type": "bind", "source": "/usr", "options": ["rbind", "ro"]}
            )
        with open(path, "w", encoding="utf-8") as file:
            json.dump(config, file)
        self.count += 1
        return spawn(
            [
                "crun",
                "--cgroup-manager=disabled",
                "run",
                "--bundle",
                self.where,
                f"kern-bench-{os.getpid()}-{self.count}",
            ],
            expected,
        )


WAYS = ("cold", "template", "spare", "zygote")


class Ours:
    """The sidecar with a session for each way; `threaded=False` keeps Python's thread switches out of the figures."""

    def __init__(self, program):
        self.client = Client(program, args=("--stdio", "--log-level", "debug"), threaded=False)
        self.client.initialize()
        self.sessions = {way: self.client.open(start=way) for way in WAYS}

    def argv(self, way, work, expected):
        begin = time.perf_counter()
        result = self.client.call("run/argv", {"argv": work, "sessionId": self.sessions[way]})
        return self.check(begin, result, expected)

    def code(self, way, language, expected):
        begin = time.perf_counter()
        where = {"sessionId": self.sessions[way]} if way in self.sessions else {}
        result = self.client.call("run/code", {"language": language, "code": CODE[language], **where})
        return self.check(begin, result, expected)

    def burst(self, way, count):
        begin = time.perf_counter()
        requests = [("run/code", {"code": "print(1)", "sessionId": self.sessions[way], "timeoutMs": 120000})] * count
        for future in self.client.send_all(requests):
            self.check(begin, future.result(), b"1\n")
        return (time.perf_counter() - begin) * 1000

    @staticmethod
    def check(begin, result, expected):
        took = (time.perf_counter() - begin) * 1000
        if result["exitCode"] != 0 or result["stdout"].encode() != expected:
            raise RuntimeError(f"a wrong result: {result}")
        return took


class BareShell:
    """A local bash on pipes: a command, and a line with its status."""

    def __init__(self, argv=("bash",)):
        self.process = subprocess.Popen(argv, env=ENV, cwd="/", stdin=-1, stdout=-1, stderr=subprocess.DEVNULL, bufsize=0)

    def run(self, marker=b"__LC_SHELL_DONE__" + b"0" * 32):
        begin = time.perf_counter()
        self.process.stdin.write(b"echo 1\nprintf '" + marker + b" %s\\n' $?\n")
        self.check(b"1\n")
        self.check(marker + b" 0\n")
        return (time.perf_counter() - begin) * 1000

    def check(self, expected):
        line = self.process.stdout.readline()
        if line != expected:
            raise RuntimeError(f"{line!r} instead of {expected!r}")

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def shell_rows(ours, program):
    """A round trip of a shell that is there, and the first one of a new shell."""
    client, session = ours.client, ours.sessions["template"]
    shell = client.call("shell/open", {"sessionId": session})["shellId"]
    kernel = client.call("kernel/open", {"sessionId": session, "language": "python"})["kernelId"]
    bare, bridge = BareShell(), BareShell((program, "shell", "--bridge"))

    def call(method, handle, **params):
        begin = time.perf_counter()
        return ours.check(begin, client.call(method, {**handle, **params}), b"1\n")

    def first():
        begin = time.perf_counter()
        one = client.call("shell/open", {"sessionId": session})
        call("shell/run", one, command="echo 1")
        took = (time.perf_counter() - begin) * 1000
        client.call("shell/close", one)
        return took

    def first_bare(argv):
        begin = time.perf_counter()
        one = BareShell(argv)
        one.run()
        took = (time.perf_counter() - begin) * 1000
        one.close()
        return took

    return {
        "round trip": {
            "kern-sidecar shell": lambda: call("shell/run", {"shellId": shell}, command="echo 1"),
            "kern-sidecar bridge": bridge.run,
            "kern-sidecar python cell": lambda: call("kernel/run", {"kernelId": kernel}, code="print(1)"),
            "bare": bare.run,
        },
        "a shell's first": {
            "kern-sidecar shell": first,
            "kern-sidecar bridge": lambda: first_bare((program, "shell", "--bridge")),
            "bare": lambda: first_bare(("bash",)),
        },
    }


def processes(argv, expected, count):
    begin = time.perf_counter()
    running = [
        subprocess.Popen(argv, env=ENV, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) for _ in range(count)
    ]
    for process in running:
        if process.communicate()[0] != expected or process.returncode != 0:
            raise RuntimeError(f"{argv[0]}: status {process.returncode}")
    return (time.perf_counter() - begin) * 1000


def kern_sandbox_row(name):
    """The kern-sandbox package, when it is importable: its own session on its own default image."""
    import kern_sandbox

    sandbox = kern_sandbox.Sandbox().__enter__()  # for as long as the bench runs
    run = (lambda: sandbox.run(["true"])) if name == "true" else (lambda: sandbox.run_code("print(1)"))

    def call():
        begin = time.perf_counter()
        result = run()
        if result.exit_code != 0:
            raise RuntimeError(result.stderr[-300:])
        return (time.perf_counter() - begin) * 1000

    return call


def make_rows(options, scratch):
    """{block: {row: function -> ms}} and what is missing."""
    ours, missing = Ours(options.program), []
    rows, bwrap = {}, shutil.which("bwrap", path=PATH)
    crun = Crun(os.path.join(scratch, "crun")) if shutil.which("crun", path=PATH) else None
    missing += [name for name, there in (("bubblewrap (bwrap)", bwrap), ("crun", crun)) if not there]
    for name, (work, expected) in WORK.items():
        if not shutil.which(work[0], path=PATH):
            missing.append(work[0])
            continue
        block = rows[name] = {}
        if name in CODE:
            block["kern-sidecar no session"] = lambda name=name, expected=expected: ours.code(None, name, expected)
        for way in WAYS:
            if name in CODE:
                block[f"kern-sidecar {way}"] = lambda way=way, name=name, expected=expected: ours.code(way, name, expected)
            elif way != "zygote":
                block[f"kern-sidecar {way}"] = lambda way=way, work=work, expected=expected: ours.argv(way, work, expected)
        block["bare"] = lambda work=work, expected=expected: spawn(work, expected)
        if bwrap:
            block["bwrap"] = lambda work=work, expected=expected: spawn(bwrap_prefix() + work, expected)
        if crun:
            block["crun"] = lambda work=work, expected=expected: crun.call(work, expected)
        try:
            if name in ("true", "python"):
                block["kern-sandbox"] = kern_sandbox_row(name)
        except Exception as problem:  # not installed, or not able to run here: said, never fatal
            if name == "true":
                missing.append(f"kern-sandbox ({type(problem).__name__})")
    rows.update(shell_rows(ours, options.program))
    work, expected = WORK["python"]
    for count in (16, 100):
        block = rows[f"{count} python at once"] = {}
        for way in WAYS:
            block[f"kern-sidecar {way}"] = lambda way=way, count=count: ours.burst(way, count)
        block["bare"] = lambda count=count: processes(work, expected, count)
        if bwrap:
            block["bwrap"] = lambda count=count: processes(bwrap_prefix() + work, expected, count)
    return ours, rows, missing


def measure(rows, options):
    """{(block, row): [ms]}, and {(block, row): why} of those that failed and were left at that."""
    times = {(block, row): [] for block in rows for row in rows[block] if options.only in f"{block} {row}"}
    failed = {}
    for number in range(options.rounds + 1):
        for (block, row), found in times.items():
            calls = 1 if "at once" in block else 3 if number == 0 else options.calls
            for _ in range(calls if (block, row) not in failed else 0):
                try:
                    time.sleep(options.pause / 1000)
                    took = rows[block][row]()
                except (RuntimeError, OSError) as problem:
                    failed[block, row] = str(problem)
                    break
                if number > 0:  # the first round warms up
                    found.append(took)
    return times, failed


def table(times, failed):
    lines = []
    for (block, row), found in times.items():
        if (block, row) in failed or not found:
            lines.append({"block": block, "row": row, "failed": failed.get((block, row), "no calls")})
            continue
        found.sort()
        lines.append(
            {
                "block": block,
                "row": row,
                "n": len(found),
                "min": found[0],
                "p50": statistics.median(found),
                "p90": found[int(0.9 * (len(found) - 1))],
                "p99": found[int(0.99 * (len(found) - 1))],
            }
        )
    for line in lines:
        ours = [
            other
            for other in lines
            if other["block"] == line["block"] and other["row"].startswith("kern-sidecar") and "p50" in other
        ]
        if ours and "p50" in line:
            line["oursIs"] = ours[-1]["p50"] / line["p50"]
    return lines


def print_table(lines, missing):
    print(f"{'what':22} {'how':24} {'calls':>6} {'min ms':>9} {'p50 ms':>9} {'p90 ms':>9} {'p99 ms':>9}  ours / this")
    last = None
    for line in lines:
        if last not in (None, line["block"]):
            print()
        last = line["block"]
        head = f"{line['block']:22} {line['row']:24}"
        if "failed" in line:
            print(f"{head} failed: {line['failed'][:90]}")
        else:
            ratio = f"{line['oursIs']:10.2f}x" if "oursIs" in line else ""
            print(f"{head} {line['n']:6} {line['min']:9.2f} {line['p50']:9.2f} {line['p90']:9.2f} {line['p99']:9.2f}  {ratio}")
    print(f"\nnot here, so not measured: {', '.join(missing)}" if missing else "\nall rivals were here")


def timings(ours):
    """{way: {step: median microseconds}} of python calls that find what is made ahead."""
    found = {}
    for way in WAYS:
        ours.client.stderr_lines.clear()
        for _ in range(20):
            ours.code(way, "python", b"1\n")
            time.sleep(0.05)
        steps = {}
        for line in list(ours.client.stderr_lines):
            if "call_timings" in line:
                for word in line.split():
                    name, equals, value = word.partition("=")
                    if equals:
                        steps.setdefault(name, []).append(int(value))
        found[way] = {name: statistics.median(values) for name, values in steps.items()}
    return found


def charged_kib(groups):
    """What memory cgroups are charged with, kernel memory too, in boxes that are waiting."""
    found = [os.path.join(top, leaf, name) for top in groups if "memory" in top or os.path.exists(top + "/cgroup.controllers")
             for leaf in os.listdir(top) for name in ("memory.usage_in_bytes", "memory.current")]
    return sum(int(open(path, encoding="ascii").read()) for path in found if os.path.exists(path)) / 1024


def memory(program):
    """KiB: of processes an idle sidecar, one more session, one more interpreter that waits; of its cgroup a spare."""
    import leftovers

    def settle(client, done):
        client.wait_for(done, "what is made ahead", 30)
        time.sleep(0.5)
        return sum(map(leftovers.share_kib, leftovers.descendants(client.pid)))

    client = Client(program)
    client.initialize()
    idle = settle(client, lambda: True)
    client.open()
    one = settle(client, lambda: client.call("stats/get")["boxes"] == 0)
    before = charged_kib(leftovers.cgroups())
    client.open(prewarm=8)
    eight = settle(client, lambda: client.call("stats/get")["boxes"] == 8)
    spare = (charged_kib(leftovers.cgroups()) - before) / 8
    client.open(start="zygote", prewarm=8)
    parked = settle(client, lambda: client.call("stats/get")["boxes"] == 24)
    client.close()
    return {"idle": idle, "session": one - idle, "spare": spare, "python": (parked - eight - (one - idle)) / 8}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=os.path.abspath, default=os.path.join(TOP, "build/kern-sidecar"))
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--calls", type=int, default=20, help="calls of a row in a round")
    parser.add_argument("--only", default="", help="rows whose name has this word")
    parser.add_argument("--pause", type=float, default=0, help="milliseconds before each call")
    parser.add_argument("--timings", action="store_true", help="the steps of a call, and nothing else")
    parser.add_argument("--memory", action="store_true", help="what is resident, and nothing else")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    import tempfile

    if options.timings or options.memory:
        ours = None if options.memory else Ours(options.program)
        found = memory(options.program) if options.memory else timings(ours)
        print(json.dumps(found, indent=1))
        if ours:
            ours.client.close()
        return 0

    with tempfile.TemporaryDirectory(prefix="kern-bench-") as scratch:
        ours, rows, missing = make_rows(options, scratch)
        times, failed = measure(rows, options)
        ours.client.close()
    lines = table(times, failed)
    if options.json:
        print(
            json.dumps(
                {
                    "user": os.geteuid(),
                    "kernel": os.uname().release,
                    "cpus": os.cpu_count(),
                    "rows": lines,
                    "missing": missing,
                },
                indent=1,
            )
        )
    else:
        print_table(lines, missing)
    return 1 if any(row.startswith("kern-sidecar") for _, row in failed) else 0


if __name__ == "__main__":
    sys.exit(main())

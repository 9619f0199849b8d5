#!/usr/bin/env python3
"""What `files` of a result costs: a call in workspaces of several sizes, with trackFiles and without, in the same run.

Every row is measured in interleaved rounds, as in bench.py: compare rows of one run only. A workspace has its files in
1,000 directories (fewer when it has fewer files); what a call costs over the same call with `trackFiles: false` is the
look at the files. "cpu ms" is what the sidecar's own thread ran for a call: unlike the wall clock it does not depend on
who else is busy. "ten at once" is the time of all ten; "another question" is the longest wait of a cheap request asked
again and again during such a call.

    tests/bench/bench_track.py [--program P] [--rounds N] [--calls N] [--files N,N] [--dir DIR] [--json]"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(TOP, "tests/client"))

from kern_client import Client  # noqa: E402

CALLS = {
    "nothing": (["true"], 0),
    "one file": (["sh", "-c", "echo $$ > changed"], 1),
    "hundred": (["python3", "-S", "-c", "for i in range(100): open(f'c{i}', 'w').write(str(i))"], 100),
}


def fill(where, count):
    directories = max(1, min(1000, count // 10))
    for number in range(directories if count else 0):
        os.mkdir(os.path.join(where, f"d{number:03}"))
    for number in range(count):
        with open(os.path.join(where, f"d{number % directories:03}", f"file-{number:06}"), "wb") as file:
            file.write(b"x")


class Workspace:
    def __init__(self, client, scratch, count):
        self.client, self.path = client, os.path.join(scratch, str(count))
        os.mkdir(self.path)
        fill(self.path, count)
        for path, names, files in os.walk(self.path):
            for name in [".", *names, *files]:
                os.chmod(os.path.join(path, name), 0o777)
        self.session = client.open(workspace=self.path)

    def params(self, argv, track):
        return {"argv": argv, "sessionId": self.session, "trackFiles": track, "timeoutMs": 60000}

    def together(self):
        begin = time.perf_counter()
        for future in self.client.send_all([("run/argv", self.params(["true"], True))] * 10):
            future.result()
        return (time.perf_counter() - begin) * 1000

    def call(self, what, track):
        argv, changes = CALLS[what]
        begin = time.perf_counter()
        result = self.client.call("run/argv", self.params(argv, track))
        took = (time.perf_counter() - begin) * 1000
        if result["exitCode"] != 0 or result["runtimeNotes"] or len(result["files"]) != (changes if track else 0):
            raise RuntimeError(f"a wrong result: {str(result)[:300]}")
        for name in os.listdir(self.path):
            if name.startswith("c"):
                os.unlink(os.path.join(self.path, name))
        return took

    def longest_wait(self):
        """The longest answer to a question asked again and again while such a call is under way."""
        longest, done = 0.0, False
        future = self.client.send("run/argv", self.params(["true"], True))
        while not done:
            begin = time.perf_counter()
            self.client.call("session/list", {})
            longest = max(longest, (time.perf_counter() - begin) * 1000)
            done = future.done()
        future.result()
        return longest


def make_rows(client, scratch, counts):
    rows = {}
    for count in counts:
        space = Workspace(client, scratch, count)
        rows[count, "nothing", "off"] = lambda space=space: space.call("nothing", False)
        for what in CALLS:
            rows[count, what, "on"] = lambda space=space, what=what: space.call(what, True)
        rows[count, "ten at once", "on"] = space.together
        rows[count, "another question", "on"] = space.longest_wait
    return rows


def cpu_ms(client):
    with open(f"/proc/{client.pid}/schedstat", encoding="ascii") as file:
        return int(file.read().split()[0]) / 1e6


def measure(client, rows, options):
    """{row: [(ms, ms of the sidecar's thread)]}"""
    times = {row: [] for row in rows}
    for number in range(options.rounds + 1):
        for row, found in times.items():
            for _ in range(options.calls if number else 2):
                before = cpu_ms(client)
                took = rows[row]()
                if number:  # the first round warms up
                    found.append((took, cpu_ms(client) - before))
    return times


def table(times):
    lines = []
    for (count, what, track), pairs in times.items():
        found = sorted(took for took, _ in pairs)
        p50, cpu = statistics.median(found), statistics.median(cpu for _, cpu in pairs)
        base = lines[0]["p50"] if lines else p50
        off = next((line["cpu"] for line in lines if (line["files"], line["track"]) == (count, "off")), cpu)
        line = {"files": count, "what": what, "track": track, "n": len(found), "min": found[0], "p50": p50}
        line["p90"] = found[int(0.9 * (len(found) - 1))]
        line["cpu"] = cpu
        if what != "another question":
            line["toEmpty"] = p50 / base
            if track == "on" and count:
                line["cpuUsPerFile"] = (cpu - off) * 1000 / count
        lines.append(line)
    return lines


def print_table(lines):
    heads = ("min ms", "p50 ms", "p90 ms", "cpu ms", "us/file", "to empty")
    print(f"{'files':>8} {'call':17} {'track':5} {'n':>4}" + "".join(f" {head:>8}" for head in heads))
    for line in lines:
        print(f"{line['files']:8} {line['what']:17} {line['track']:5} {line['n']:4}", end="")
        print("".join(f" {line[name]:8.2f}" for name in ("min", "p50", "p90", "cpu")), end="")
        print(f" {line['cpuUsPerFile']:8.2f}" if "cpuUsPerFile" in line else " " * 9, end="")
        print(f" {line['toEmpty']:7.2f}x" if "toEmpty" in line else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=os.path.abspath, default=os.path.join(TOP, "build/kern-sidecar"))
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--calls", type=int, default=5, help="calls of a row in a round")
    parser.add_argument("--files", default="0,1000,10000,100000")
    parser.add_argument("--dir", help="where the workspaces are made: which file system is measured")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kern-bench-", dir=options.dir) as scratch:
        os.chmod(scratch, 0o755)
        client = Client(options.program, threaded=False)
        client.initialize()
        rows = make_rows(client, scratch, [int(count) for count in options.files.split(",")])
        lines = table(measure(client, rows, options))
        client.close()
    if options.json:
        machine = {"user": os.geteuid(), "kernel": os.uname().release, "cpus": os.cpu_count()}
        print(json.dumps({**machine, "rows": lines}, indent=1))
    else:
        print_table(lines)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Every unit test of a build once more under valgrind: any invalid access or definite leak fails.

Not run: tests with the ctest label `no-valgrind` (they make namespaces or load seccomp filters, which valgrind does not
follow). `memcheck.py BUILD [-j N]`."""

import argparse
import concurrent.futures
import json
import os
import subprocess
import sys

VALGRIND = [
    "valgrind",
    "--quiet",
    "--error-exitcode=97",
    "--leak-check=full",
    "--errors-for-leak-kinds=definite",
    "--show-leak-kinds=definite",
    "--track-fds=no",
    "--child-silent-after-fork=yes",
]
TIMEOUT = 600


def tests(build):
    """[(name, command, directory)] and the names that are left out."""
    listed = json.loads(
        subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], check=True, capture_output=True).stdout
    )
    chosen, skipped = [], []
    for test in listed["tests"]:
        facts = {p["name"]: p["value"] for p in test.get("properties", [])}
        if "no-valgrind" in facts.get("LABELS", []):
            skipped.append(test["name"])
        elif "command" in test:
            chosen.append((test["name"], test["command"], facts.get("WORKING_DIRECTORY", build)))
    return chosen, skipped


def longest_first(build, chosen):
    """As ctest has measured them: one that takes long, begun last, would run alone."""
    seconds = {}
    try:
        with open(os.path.join(build, "Testing/Temporary/CTestCostData.txt"), encoding="utf-8") as file:
            for line in file:
                words = line.split()  # name, runs, seconds; then the names of those that failed
                if len(words) == 3:
                    seconds[words[0]] = float(words[2])
    except OSError:  # no run yet
        pass
    return sorted(chosen, key=lambda test: -seconds.get(test[0], 0))


def check(test):
    name, command, directory = test
    try:
        done = subprocess.run(
            VALGRIND + command,
            cwd=directory,
            env={**os.environ, "KERN_MEMCHECK": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=TIMEOUT,
        )
    except subprocess.TimeoutExpired as late:
        return name, f"longer than {TIMEOUT} s", late.stdout or b""
    return name, None if done.returncode == 0 else f"exit status {done.returncode}", done.stdout


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("-j", type=int, default=2)
    options = parser.parse_args()
    chosen, skipped = tests(options.build)
    failed = []
    with concurrent.futures.ThreadPoolExecutor(options.j) as pool:
        for name, problem, output in pool.map(check, longest_first(options.build, chosen)):
            print(f"{name}: {problem or 'clean'}", flush=True)
            if problem:
                failed.append(name)
                print(output.decode("utf-8", "replace")[-6000:])
    if skipped:
        print(f"not under valgrind: {', '.join(skipped)}")
    print(f"{len(chosen) - len(failed)} clean, {len(failed)} failed" + (f": {' '.join(failed)}" if failed else ""))
    return 1 if failed or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())

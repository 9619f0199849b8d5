#!/usr/bin/env python3
"""What a host of each kind waits for, and what it then holds: from the first command of a host that has just been started until
its result is there, with everything cold - sidecar, session, kernel, interpreter; and the memory of the sidecar of each of ten
such hosts, at once and after a while without a call.

Times are those of files that a host makes (tests/hosts), so good to some milliseconds; the rounds go over all hosts in turn.
"sidecar" is the process, "with helpers" it with the processes of its own program below it, both as their share of memory
(Pss), "rss" the process with all that it shares; "interpreters" are those in the boxes: a kernel's, which holds the user's state,
and while calls come those that were booted ahead.

    tests/bench/bench_hosts.py [--program P] [--rounds N] [--windows N] [--idle SECONDS] [--only WORD] [--json]"""

import argparse
import json
import os
import statistics
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(TOP, "tests/hosts"), os.path.join(TOP, "tests/client")]

import leftovers  # noqa: E402
from hosts import Host, Kit  # noqa: E402

CODE = "print(6 * 7)\n"


def stop(host):
    host.kill()
    host.remove()


def first_result(kit, name):
    """Milliseconds."""
    host = Host(kit, name, CODE)
    try:
        host.wait_for(lambda: host.when("shown"), "the result", pause=0.05)
        return (host.when("shown") - host.when("begun")) * 1000
    finally:
        stop(host)


def holds(host):
    """KiB, and how many interpreters."""
    [sidecar] = host.sidecars()
    pids = list(leftovers.descendants(sidecar))
    interpreters = [pid for pid in pids if leftovers.is_interpreter(pid)]
    ours = sum(leftovers.share_kib(pid) for pid in pids if pid not in interpreters)
    return {"sidecar": leftovers.share_kib(sidecar), "withHelpers": ours, "rss": leftovers.rss_kib(sidecar),
            "interpreters": len(interpreters), "ofInterpreters": sum(map(leftovers.share_kib, interpreters))}


def memory(kit, name, options):
    """The largest of all windows, after the first cell and after a while."""
    hosts = [Host(kit, name, CODE) for _ in range(options.windows)]
    try:
        for host in hosts:
            host.wait_for(lambda: host.when("shown"), "the result", pause=0.05)
        found = {}
        for when, seconds in (("first", 1), ("idle", options.idle)):
            time.sleep(seconds)
            windows = [holds(host) for host in hosts]
            found[when] = {what: max(one[what] for one in windows) for what in windows[0]}
        return found
    finally:
        for host in hosts:
            stop(host)


def print_table(times, held):
    print(f"{'host':9} {'n':>3} {'min ms':>7} {'p50 ms':>7} {'max ms':>7}   {'after':6}", end="")
    print(f" {'sidecar':>8} {'with helpers':>13} {'rss KiB':>8} {'interpreters':>13}")
    for name, found in times.items():
        figures = f"{len(found):3} {min(found):7.0f} {statistics.median(found):7.0f} {max(found):7.0f}" if found else " " * 27
        for when, one in held.get(name, {"": None}).items():
            print(f"{name:9} {figures}", end="" if one else "\n")
            if one:
                print(f"   {when:6} {one['sidecar']:8} {one['withHelpers']:13} {one['rss']:8} {one['interpreters']:3} of {one['ofInterpreters']:6}")
            name, figures = "", " " * 27


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=os.path.abspath, default=os.path.join(TOP, "build/kern-sidecar"))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--windows", type=int, default=10, help="hosts at once for the memory; 0: none")
    parser.add_argument("--idle", type=float, default=40, help="seconds without a call; what was made ahead goes after 30")
    parser.add_argument("--only", default="", help="hosts whose name has this word")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    kit = Kit(options.program)
    try:
        kinds = {name: kind for name, kind in kit.kinds().items() if options.only in name}
        missing = {name: kind.missing for name, kind in kinds.items() if kind.missing}
        names = [name for name in kinds if name not in missing]
        times = {name: [] for name in names}
        for number in range(options.rounds + 1):
            for name in names:
                took = first_result(kit, name)
                if number:  # the first round is that of a cold disk
                    times[name].append(took)
        held = {name: memory(kit, name, options) for name in names} if options.windows else {}
    finally:
        kit.close()
    if options.json:
        machine = {"user": os.geteuid(), "kernel": os.uname().release, "cpus": os.cpu_count()}
        print(json.dumps({**machine, "windows": options.windows, "ms": times, "kib": held, "missing": missing}, indent=1))
    else:
        print_table(times, held)
        for name, why in missing.items():
            print(f"left out: {name}: there is no {why}")


if __name__ == "__main__":
    main()

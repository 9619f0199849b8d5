#!/usr/bin/env python3
"""How long file/glob and file/search take on a tree of many files, beside ripgrep and fd, in the same run on the same machine.

Every row is measured in interleaved rounds, so that other load hits all rows alike; compare rows of one run only. Ours go through
the protocol, from the request written to the reply read, with a worker started for each; rivals from spawn to exit with stdout
read. Rivals that are not installed are named. ripgrep and fd use all processors; with --single they are also run with one thread,
which is what a worker has.

    tests/bench/bench_files.py [--program P] [--files N] [--rounds N] [--single] [--json] [--only WORD]"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(TOP, "tests/client")]

from cpu import Others, Tree  # noqa: E402
from flight import Function  # noqa: E402
from kern_client import Client  # noqa: E402
from rivals import ENV, PATH  # noqa: E402
from table import Row, failed, lines_of, measure, print_table  # noqa: E402

WORDS = "alpha beta gamma return value static int char const struct error result buffer length index count name path file line".split()
IGNORED = "*.log\n/build/\nnode_modules/\n!keep.log\n*.tmp\n*.o\n**/cache/**\n/dist\n.env\ncoverage/\n"
EXTENSIONS = ("c", "h", "py", "ts", "md", "log")


def make_tree(top, files):
    """A tree like a large repository: 50 files a directory, three levels, a quarter of it behind .gitignore; 1 file of 100 has the needle."""
    rng = random.Random(1)
    lines = [" ".join(rng.choices(WORDS, k=rng.randint(0, 12))) + "\n" for _ in range(2000)]
    places = ["src", "lib", "test", "docs", "build", "node_modules"]
    for number in range(files):
        group = number // 50
        where = f"{top}/{places[group % len(places)]}/m{group // 60}/d{group}"
        if number % 50 == 0:
            os.makedirs(where)
        with open(f"{where}/file{number}.{EXTENSIONS[number % len(EXTENSIONS)]}", "w", encoding="utf-8") as file:
            file.writelines(rng.choices(lines, k=rng.randint(5, 120)))
            if number % 100 == 7:
                file.write("the needle_word is here\n")
    os.mkdir(f"{top}/.git")
    with open(f"{top}/.gitignore", "w", encoding="utf-8") as file:
        file.write(IGNORED)


class Ours:
    def __init__(self, program, tree):
        self.client = Client(program, threaded=False)
        self.client.initialize()
        self.session = self.client.call("session/open", {"workspace": tree})["sessionId"]

    def call(self, method, key, params):
        begin = time.perf_counter()
        result = self.client.call(method, {"sessionId": self.session, "limit": 1000000, **params})
        found = result[key]
        if isinstance(found, dict):
            found = json.loads(self.client.text(found))
        return (time.perf_counter() - begin) * 1000, len(found)


def spawn(argv, tree):
    begin = time.perf_counter()
    done = subprocess.run(argv, env=ENV, cwd=tree, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    took = (time.perf_counter() - begin) * 1000
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{argv[0]}: status {done.returncode}, {done.stderr[-300:]!r}")
    return took, done.stdout.count(b"\n")


SEARCHES = {
    "text, 1 % match": ({"pattern": "needle_word"}, ["-F", "needle_word"]),
    "text, none": ({"pattern": "no_such_word"}, ["-F", "no_such_word"]),
    "text, any case": ({"pattern": "NEEDLE_WORD", "ignoreCase": True}, ["-iF", "NEEDLE_WORD"]),
    "regex": ({"pattern": r"needle_\w+\s+is", "regex": True}, [r"needle_\w+\s+is"]),
    "regex, no fixed part": ({"pattern": r"[A-Z]{3,}\d", "regex": True}, [r"[A-Z]{3,}\d"]),
    "text, .gitignore": ({"pattern": "needle_word", "gitignore": True}, ["-F", "needle_word"]),
    "text, *.py only": ({"pattern": "needle_word", "glob": "*.py"}, ["-F", "-g", "*.py", "needle_word"]),
}
GLOBS = {
    "names *.py": ({"pattern": "*.py"}, ["-g", "*.py"]),
    "names *.py, .gitignore": ({"pattern": "*.py", "gitignore": True}, ["-g", "*.py"]),
    "paths src/**/*.{c,h}": ({"pattern": "src/**/*.{c,h}"}, ["-p", "-g", "**/tree/src/**/*.{c,h}"]),
    "no such name": ({"pattern": "no_such_name"}, ["-g", "no_such_name"]),
}


def make_rows(options, tree):
    """The rows, what is missing, and how much each row found."""
    ours, rows, missing, found = Ours(options.program, tree), [], [], {}
    meters = {True: Tree(ours.client.pid), False: Others(without=[ours.client.pid])}
    rg, fd = shutil.which("rg", path=PATH), shutil.which("fdfind", path=PATH) or shutil.which("fd", path=PATH)
    missing += [name for name, there in (("ripgrep (rg)", rg), ("fd (fdfind)", fd)) if not there]

    def row(block, name, run):
        def call():
            took, count = run()
            found.setdefault(block, {})[name] = count
            return took

        mine = name == "kern-sidecar"
        rows.append(Row(block, name, lambda: Function(call), meters[mine], ours=mine))

    for block, (params, args) in SEARCHES.items():
        row(block, "kern-sidecar", lambda params=params: ours.call("file/search", "matches", params))
        ignore = [] if "gitignore" in params else ["--no-ignore"]
        for threads in ([[]] + ([["-j1"]] if options.single else [])) if rg else []:
            argv = [rg, "--no-config", "-n", "--column", *ignore, *threads, *args, "."]
            row(block, " ".join(["rg", *threads]), lambda argv=argv: spawn(argv, tree))
    for block, (params, args) in GLOBS.items():
        row(block, "kern-sidecar", lambda params=params: ours.call("file/glob", "entries", params))
        ignore = [] if "gitignore" in params else ["--no-ignore"]
        for threads in ([[]] + ([["-j1"]] if options.single else [])) if fd else []:
            argv = [fd, *ignore, *threads, *args]
            row(block, " ".join(["fd", *threads]), lambda argv=argv: spawn(argv, tree))
    return ours, rows, missing, found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=os.path.abspath, default=os.path.join(TOP, "build/kern-sidecar"))
    parser.add_argument("--files", type=int, default=100000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", help="rows whose name has this word")
    parser.add_argument("--single", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    options.calls, options.pause = 1, 0
    with tempfile.TemporaryDirectory(prefix="kern-bench-") as scratch:
        tree = os.path.join(scratch, "tree")
        os.mkdir(tree)
        make_tree(tree, options.files)
        ours, rows, missing, found = make_rows(options, tree)
        lines = lines_of(measure(rows, options))
        ours.client.close()
    wrong = [f"{block}: {counts}" for block, counts in found.items() if len(set(counts.values())) > 1]
    if options.json:
        print(json.dumps({"user": os.geteuid(), "kernel": os.uname().release, "cpus": os.cpu_count(), "files": options.files,
                          "rows": lines, "missing": missing, "different": wrong}, indent=1))  # fmt: skip
    else:
        print(f"{options.files} files, {os.cpu_count()} processors")
        print_table(lines, missing)
        print("\n".join(["found different numbers:", *wrong]) if wrong else "all rows of a block found the same number")
    return 1 if failed(lines) or wrong else 0


if __name__ == "__main__":
    sys.exit(main())

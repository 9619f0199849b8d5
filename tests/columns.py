#!/usr/bin/env python3
"""No line of C is longer than .clang-format and CONTRIBUTING.md say, a tab counted as 8."""

import os
import re
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def main():
    with open(os.path.join(TOP, ".clang-format"), encoding="ascii") as file:
        limit = int(re.search(r"^ColumnLimit: (\d+)$", file.read(), re.M)[1])
    count, problems = 0, []
    for top in ("sidecar", "plugins", "languages", "tests"):
        for directory, _, names in os.walk(os.path.join(TOP, top)):
            for path in (os.path.join(directory, name) for name in sorted(names) if name.endswith((".c", ".h"))):
                with open(path, encoding="utf-8") as file:
                    for number, line in enumerate(file, 1):
                        count += 1
                        columns = len(line.rstrip("\n").expandtabs(8))
                        if columns > limit:
                            problems.append(f"{os.path.relpath(path, TOP)}:{number}: {columns} columns, not {limit}")
    print("\n".join(problems + [f"{count} lines of C, {len(problems)} too long"]))
    return 1 if problems or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())

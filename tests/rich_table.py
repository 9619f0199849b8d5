#!/usr/bin/env python3
"""RICH.md says which test shows each behaviour of rich results: every test that it names must be there."""
import ast
import os
import re
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TABLE = "tests/RICH.md"
NAMED = re.compile(r"`([\w./-]+)::([^`]+)`")


def tests_of(path):
    with open(os.path.join(TOP, path), encoding="utf-8") as file:
        text = file.read()
    if path.endswith(".py"):
        return {node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)}
    return set(re.findall(r'\btest\("([^"]+)"', text)) | set(re.findall(r"^static void (test_\w+)", text, re.MULTILINE))


def problems(text):
    known, rows = {}, 0
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("| ") or line.startswith("| behaviour"):
            continue
        rows += 1
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        named = NAMED.findall(cells[-1])
        if len(cells) != 2 or not (named or re.fullmatch(r"not applicable: .{10,}", cells[-1])):
            yield number, "wants a behaviour, and a test or 'not applicable: ...'"
        for path, test in named:
            if not os.path.exists(os.path.join(TOP, path)):
                yield number, f"no file {path}"
            elif test not in known.setdefault(path, tests_of(path)):
                yield number, f"no test {test} in {path}"
    if rows < 50:
        yield 0, f"only {rows} rows"


def main():
    with open(os.path.join(TOP, TABLE), encoding="utf-8") as file:
        found = list(problems(file.read()))
    for number, text in found:
        print(f"{TABLE}:{number}: {text}")
    if not found:
        print(f"every test that {TABLE} names is there")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

"""README.md and the tests say the same: every test has its row, every row its test, and what is not yet there is not claimed."""

import ast
import glob
import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))
ROW = re.compile(r"^\| ([A-G0-9, ]+) \| (.+) \| (.+) \| `(test_\w+)\.py::(test_\w+)` \|$")
HOLE = re.compile(r"^\| `(test_\w+)` \| .+ \| .+ \|$")


def readme():
    with open(os.path.join(HERE, "README.md"), encoding="utf-8") as file:
        return file.read()


def decorators(function, name):
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == name:
            yield decorator


def attacks():
    """{(file, test): ids}, and the names of those that are expected to fail."""
    found, failing = {}, set()
    for path in glob.glob(os.path.join(HERE, "test_*.py")):
        if os.path.abspath(path) == os.path.abspath(__file__):
            continue
        with open(path, encoding="utf-8") as file:
            source = file.read()
        for function in ast.parse(source).body:
            if isinstance(function, ast.FunctionDef) and function.name.startswith("test_"):
                ids = [argument.value for mark in decorators(function, "attack") for argument in mark.args]
                key = os.path.splitext(os.path.basename(path))[0], function.name
                found[key] = ids
                if "mark.xfail" in ast.get_source_segment(source, function) + "".join(
                    ast.unparse(d) for d in function.decorator_list
                ):
                    failing.add(function.name)
    return found, failing


def test_every_test_is_an_attack_with_one_row():
    rows = {}
    for line in readme().splitlines():
        match = ROW.match(line)
        if match:
            key = match.group(4), match.group(5)
            assert key not in rows, f"two rows for {key}"
            rows[key] = match.group(1).split(", ")
    found, _ = attacks()
    assert rows == found


def test_open_holes_are_the_tests_that_fail():
    section = readme().split("## Open holes")[1].split("\n## ")[0]
    listed = {match.group(1) for match in map(HOLE.match, section.splitlines()) if match}
    assert listed == attacks()[1]


def test_attacks_for_later_are_in_no_test():
    later = re.findall(r"\b([A-G]?\d+)\b", readme().split("## Not yet")[1])
    used = {one for ids in attacks()[0].values() for one in ids}
    assert later and sorted(used & set(later)) == []

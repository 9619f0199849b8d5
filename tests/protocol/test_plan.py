"""`run --plan` prints the steps of a box without making one; compared with the committed list."""

import os
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))


def test_plan_is_the_golden_one(program, environment):
    printed = subprocess.run(
        [program, "run", "--plan"], env=environment, check=True, capture_output=True, text=True, timeout=60
    ).stdout
    with open(os.path.join(HERE, "plan.golden"), encoding="utf-8") as file:
        assert printed == file.read()

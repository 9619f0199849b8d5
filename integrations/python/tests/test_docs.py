"""What the pages say is so: examples run and print what they claim, the reference is what the docstrings say."""

import os
import re
import subprocess
import sys

import pytest

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def read(*path):
    with open(os.path.join(PACKAGE, *path), encoding="utf-8") as file:
        return file.read()


EXAMPLES = re.findall(r"```python\n(.*?)```", read("README.md"), re.DOTALL)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_examples_of_the_readme(number):
    """Each as a program of its own, and every comment behind a print is in its output."""
    code = EXAMPLES[number]
    if "setup=" in code:
        compile(code, "README.md", "exec")  # needs the network; test_sandbox has one that does not
        return
    program = f"import kern_sandbox as kern\n{code}"
    ran = subprocess.run([sys.executable, "-B", "-c", program], capture_output=True, text=True, timeout=100, cwd="/")
    assert (ran.returncode, ran.stderr) == (0, ""), code
    for claim in re.findall(r"print\(.*?\)\s+# (.*)", code):
        assert re.split(r"[:,] ", claim)[0] in ran.stdout, (claim, ran.stdout)


def test_the_example_of_the_project(tmp_path):
    top = os.path.join(PACKAGE, "../../README.md")
    if not os.path.exists(top):
        pytest.skip("the package is here without the project")
    with open(top, encoding="utf-8") as file:
        code, printed = re.search(r"```python\n(.*?)```\n\n```\n(.*?)```", file.read(), re.DOTALL).groups()
    ran = subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, text=True, timeout=100, cwd=tmp_path)
    assert (ran.stdout, ran.stderr) == (printed, "")


def test_the_reference_is_made_of_the_docstrings():
    made = subprocess.run([sys.executable, "-B", os.path.join(PACKAGE, "docs/generate.py")], capture_output=True, text=True, timeout=60)
    assert made.returncode == 0, made.stderr
    assert made.stdout == read("docs/API.md"), "run docs/generate.py > docs/API.md"


def test_everything_public_is_documented():
    import kern_sandbox as kern

    bare = [name for name in kern.__all__ if name != "__version__" and not getattr(kern, name).__doc__]
    for kind in (kern.Sandbox, kern.AsyncSandbox, kern.Kernel, kern.AsyncKernel, kern.Running):
        bare += [f"{kind.__name__}.{n}" for n, m in vars(kind).items() if not n.startswith("_") and callable(m) and not m.__doc__]
    assert [name for name in bare if name != "Running.start"] == []


def test_both_sandboxes_have_the_same_methods():
    import kern_sandbox as kern

    def methods(kind):
        return {name for name, member in vars(kind).items() if not name.startswith("_") and callable(member)}

    assert methods(kern.Sandbox) - methods(kern.AsyncSandbox) == {"start_code", "start_run"}  # a task is that already
    assert methods(kern.AsyncSandbox) - methods(kern.Sandbox) == set()

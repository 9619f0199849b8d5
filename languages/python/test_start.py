"""start.py: bytecode of the runner is taken when it was made for this interpreter and this place, else the source is compiled."""
import marshal
import shutil
import subprocess

import pytest

from harness import RUNNER, interpreters, version_of


@pytest.fixture
def place(tmp_path):
    """A copy of the runner that says from what it was made."""
    for file in RUNNER.parent.glob("*.py"):
        shutil.copy(file, tmp_path)
    return tmp_path


def said(python, place):
    file = place / "code.py"
    file.write_text("print(1)")
    done = subprocess.run([python, str(place / "start.py"), "-1", str(file), str(file)], capture_output=True, text=True, cwd=place)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def bytecode(python, place, name, shown=None):
    source = "print('bytecode')\n" + (RUNNER.parent / "runner.py").read_text()
    (place / name).write_text(source)
    code = f"import py_compile; py_compile.compile({str(place / name)!r}, {str(place / 'runner.pyc')!r}, {str(shown or place / 'runner.py')!r}, True, " \
        "invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)"
    subprocess.run([python, "-c", code], check=True)


@pytest.mark.parametrize("python", interpreters())
def test_bytecode(python, place):
    assert said(python, place) == "1\n"  # none
    bytecode(python, place, "marked")
    assert said(python, place) == "bytecode\n1\n"
    good = (place / "runner.pyc").read_bytes()
    for bad in (b"", good[:3], b"\0\0" + good[2:], good[:16], good[:200], good[:16] + marshal.dumps(1), good[:16] + b"\xff" * 40):
        (place / "runner.pyc").write_bytes(bad)
        assert said(python, place) == "1\n"
    bytecode(python, place, "marked", "/elsewhere/runner.py")
    assert said(python, place) == "1\n"


def test_bytecode_of_another_version(place):
    pythons = {version_of(python): python for python in interpreters()}
    if len(pythons) < 2:
        pytest.skip("one version of python is here")
    first, second = list(pythons.values())[:2]
    bytecode(first, place, "marked")
    assert (said(first, place), said(second, place)) == ("bytecode\n1\n", "1\n")

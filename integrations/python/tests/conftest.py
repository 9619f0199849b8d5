"""Which sidecar the package is tested with, and that no test leaves a process behind."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.dirname(HERE)
TOP = os.path.dirname(os.path.dirname(PACKAGE))
sys.path.insert(0, PACKAGE)
os.environ.setdefault("KERN_SIDECAR", os.path.join(TOP, "build", "kern-sidecar"))
os.environ["PYTHONPATH"] = PACKAGE  # of the programs that the tests start

import pytest  # noqa: E402

import kern_sandbox as kern  # noqa: E402


def children_of(pid):
    """The processes whose parent is this one, zombies left out."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rsplit(b")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == pid and fields[0] != b"Z":
            found.append(int(name))
    return found


@pytest.fixture(scope="session", autouse=True)
def nothing_is_left():
    before = set(children_of(os.getpid()))
    yield
    kern.shutdown()
    assert set(children_of(os.getpid())) - before == set()


@pytest.fixture
def box():
    """An open sandbox."""
    with kern.Sandbox() as sandbox:
        yield sandbox

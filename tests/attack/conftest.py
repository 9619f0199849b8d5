"""Fixtures of the attack suite: programs that attack, every way of getting a box, and what the host must look like afterwards.

`box(**fields)` is a maker of boxes by one way; each test that takes it runs for every way and as every user."""

import glob
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zlib

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "protocol"))  # expect

import leftovers  # noqa: E402
from boxes import MARK, WAYS, Boxes, owned_tree, pings  # noqa: E402


def pytest_configure(config):
    config.addinivalue_line("markers", "attack(*ids): which rows of README.md a test is")


def pytest_addoption(parser):
    parser.addoption(
        "--one-way",
        action="store_true",
        help="each attack by one way of getting a box only; which one differs from attack to attack",
    )


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--one-way"):
        return

    def chosen(item):
        way = getattr(item, "callspec", None) and item.callspec.params.get("way")
        return way is None or WAYS[zlib.crc32(item.nodeid.replace(way, "").encode()) % len(WAYS)] == way

    config.hook.pytest_deselected(items=[item for item in items if not chosen(item)])
    items[:] = filter(chosen, items)


def pytest_terminal_summary(terminalreporter):
    if pings:
        slow = sorted(pings)
        line = ", ".join(f"{seconds * 1000:.0f} ms in {test}" for seconds, test in slow[:-4:-1])
        terminalreporter.write_line(
            f"ping during resource attacks: {len(slow)} sent, median {slow[len(slow) // 2][0] * 1000:.1f} ms, slowest: {line}"
        )


# -- programs


@pytest.fixture(scope="session")
def programs():
    """Directory of the compiled programs; every user may read it."""
    path = tempfile.mkdtemp(prefix="kern-attack-programs-", dir="/tmp")
    os.chmod(path, 0o755)
    flags = ["-std=c17", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread"]
    for source in sorted(glob.glob(os.path.join(HERE, "programs", "*.c"))):
        name = os.path.splitext(os.path.basename(source))[0]
        shared = ["-shared", "-fPIC"] if name == "on_load" else []
        name += ".so" if shared else ""
        subprocess.run(["gcc", *flags, *shared, "-o", os.path.join(path, name), source, "-lrt"], check=True)
    yield path
    shutil.rmtree(path)


# -- boxes


@pytest.fixture(params=WAYS)
def way(request):
    return request.param


# Every weakening and every hardening that a request may ask for, as far as it leaves the promise of the test standing.
POSTURES = {
    "default": {},
    "root": {"user": "root"},
    "capabilities": {"user": "root", "capDrop": []},
    "untrusted": {"securityProfile": "untrusted"},
}


@pytest.fixture(params=POSTURES)
def posture(request):
    """Fields of a session for box()."""
    return POSTURES[request.param]


@pytest.fixture
def workspace(make_dir, programs, owner):
    """A named workspace with the programs in bin/."""
    path = make_dir("ws")
    shutil.copytree(programs, os.path.join(path, "bin"))
    owned_tree(path, owner)
    return path


@pytest.fixture
def box(client, way, workspace):
    """box(**session fields) -> Boxes."""
    return lambda **fields: Boxes(client, way, workspace, fields)


@pytest.fixture
def one_way(client, workspace):
    """The same for attacks to which the way makes no difference."""
    return lambda **fields: Boxes(client, "template", workspace, fields)


@pytest.fixture
def plain_next(client):
    """After an attack the next call of the same sidecar is as good as any."""
    yield
    result = client.run("echo", "next")
    assert (result["stdout"], result["exitCode"], "fault" in result) == ("next\n", 0, False)


@pytest.fixture
def as_owner(owner):
    """Keyword arguments of subprocess that make a program run on the host as the sidecar's user."""
    return dict(user=owner.pw_uid, group=owner.pw_gid, extra_groups=[]) if os.geteuid() == 0 else {}


@pytest.fixture
def busybox_image(make_dir, owner):
    """A root file system with nothing but a static busybox."""
    busybox = shutil.which("busybox")
    if busybox is None:
        pytest.skip("needs the package busybox-static")
    path = make_dir("image")
    for name in ("bin", "etc", "data"):
        os.mkdir(os.path.join(path, name))
    shutil.copy(busybox, os.path.join(path, "bin/busybox"))
    for name in (
        "sh",
        "ls",
        "cat",
        "id",
        "echo",
        "stat",
        "test",
        "touch",
        "readlink",
        "mkdir",
        "sleep",
        "true",
        "grep",
        "head",
    ):
        os.symlink("busybox", os.path.join(path, "bin", name))
    owned_tree(path, owner)
    return path


# -- the host


VALUES = (
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/modprobe",
    "/proc/sys/kernel/hostname",
    "/proc/sys/kernel/randomize_va_space",
    "/proc/sys/kernel/sysrq",
    "/proc/sys/vm/overcommit_memory",
    "/proc/sys/fs/binfmt_misc/status",
    "/proc/sys/net/ipv4/ip_forward",
    "/sys/kernel/uevent_helper",
    "/etc/passwd",
    "/etc/shadow",
    "/etc/ld.so.preload",
)


def contents(path):
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError as error:
        return error.errno


def fact_of_file(path):
    entry = os.stat(path)
    return entry.st_mode, entry.st_uid, entry.st_gid, entry.st_size, entry.st_mtime_ns, contents(path)


def machine(program, places):
    """What no attack may change. Other suites mount in their own directories, the attacks as another user beside this one, too."""
    ours = places.encode()
    with open("/proc/self/mountinfo", "rb") as file:
        mounts = sorted(line.split(b" ", 2)[2] for line in file if b"/kern-staged-" not in line and (ours in line or b"/kern-test-" not in line))
    facts = {path: contents(path) for path in VALUES}
    facts["mounts"] = mounts
    tree = [program, *glob.glob(os.path.join(os.path.dirname(program), "languages/**"), recursive=True)]
    facts["program"] = {path: fact_of_file(path) for path in tree if os.path.isfile(path)}
    return facts


def marked_names():
    """Anything with the mark in its name, where a box that got out could leave it."""
    found = []
    for top in (
        "/",
        "/tmp",
        "/var/tmp",
        "/dev",
        "/dev/shm",
        "/dev/mqueue",
        "/run",
        "/root",
        "/home",
        "/etc",
        "/usr",
        "/usr/bin",
        "/var",
    ):
        try:
            found += [os.path.join(top, name) for name in os.listdir(top) if MARK in name]
        except OSError:
            pass
    return found


@pytest.fixture(scope="session", autouse=True)
def machine_as_before(program, programs, places):
    """The whole suite, from outside: processes, mounts, cgroups, names, settings and our own files are what they were."""
    before, groups = machine(program, places), leftovers.cgroups()
    processes = set(leftovers.descendants(os.getpid()))
    yield
    ours = {pid: start for pid, start in leftovers.descendants(os.getpid()).items() if pid not in processes}
    problems = [f"a process is left: {p}" for p in leftovers.still_there(ours, within=5.0)]
    problems += leftovers.new_cgroups(groups)
    problems += [f"left on the host: {path}" for path in marked_names()]
    after = machine(program, places)
    problems += [
        f"changed on the host: {key}: {before[key]} -> {after[key]}" for key in before if before[key] != after[key]
    ]
    assert problems == []

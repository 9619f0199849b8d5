"""Shared by all Python tests: which program, as which user, and that nothing is left behind.

`sidecar` starts clients; at the end of a test each is closed and must have kept every promise: exit 0 at EOF,
no message outside the printed schema, no process, no temporary file and no cgroup left, no sanitizer report."""

import os
import pwd
import shutil
import stat
import subprocess
import sys
import tempfile

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(HERE)
sys.path.insert(0, os.path.join(HERE, "client"))

import leftovers  # noqa: E402
from kern_client import Client  # noqa: E402

USER = "kerntest"
ME = pwd.getpwuid(os.geteuid()).pw_name
SANITIZER_WORDS = ("AddressSanitizer", "LeakSanitizer", "runtime error:", "UndefinedBehaviorSanitizer")


def pytest_addoption(parser):
    parser.addoption("--program", default=os.environ.get("KERN_PROGRAM", os.path.join(TOP, "build/kern-sidecar")))
    parser.addoption(
        "--hooks-program",
        default=os.path.join(TOP, "build/debug/kern-sidecar"),
        help="a build with KS_TEST_HOOKS, for the failure injection",
    )
    parser.addoption(
        "--start",
        choices=("auto", "cold", "template", "spare", "zygote"),
        help="how sessions start their boxes that do not say so themselves: results must not depend on it",
    )
    parser.addoption("--as", dest="users", default=None, help="root,kerntest (default: both as root, else you)")


def pytest_configure(config):
    config.addinivalue_line("markers", "endurance: long by their amount - thousands of calls, names, mebibytes; left out under sanitizers")
    config.addinivalue_line("markers", "any_user: the user cannot matter to it, and one is enough: root with sanitizers, an ordinary user without")
    leftovers.become_subreaper()


def pytest_generate_tests(metafunc):
    if "as_user" in metafunc.fixturenames:
        chosen = metafunc.config.getoption("users")
        users = chosen.split(",") if chosen else (["root", USER] if os.geteuid() == 0 else [ME])
        metafunc.parametrize("as_user", users, scope="session")


@pytest.fixture(scope="session")
def test_user():
    """Makes the ordinary user that a root run of the suite needs; it stays."""
    if os.geteuid() == 0:
        try:
            pwd.getpwnam(USER)
        except KeyError:
            subprocess.run(["useradd", "--create-home", "--shell", "/bin/sh", USER], check=True)


def readable_by_all(path):
    """May any user read and run this?"""
    mode = os.stat(path).st_mode
    if mode & (stat.S_IROTH | stat.S_IXOTH) != stat.S_IROTH | stat.S_IXOTH:
        return False
    while path != "/":
        path = os.path.dirname(path)
        if not os.stat(path).st_mode & stat.S_IXOTH:
            return False
    return True


@pytest.fixture(scope="session")
def staged(test_user):
    """program -> a path of it that every user of the suite can run: itself, or a copy with its languages."""
    copies, made = {}, []

    def stage(program):
        program = os.path.abspath(program)
        if not os.path.exists(program):
            pytest.fail(f"{program} is not there: build it first (./quickstart, or cmake --preset debug and --build)")
        if os.geteuid() != 0 or readable_by_all(program):
            return program
        if program not in copies:
            made.append(tempfile.mkdtemp(prefix="kern-staged-", dir="/tmp"))
            os.chmod(made[-1], 0o755)
            copies[program] = shutil.copy2(program, made[-1])
            os.chmod(copies[program], 0o755)
            shutil.copy2(os.path.join(os.path.dirname(program), "kern-worker"), made[-1])
            shutil.copytree(os.path.join(os.path.dirname(program), "languages"), os.path.join(made[-1], "languages"))
            subprocess.run(["chmod", "-R", "go=u-w", made[-1]], check=True)
        return copies[program]

    yield stage
    for path in made:
        shutil.rmtree(path)


@pytest.fixture(scope="session")
def program(request, staged):
    return staged(request.config.getoption("program"))


@pytest.fixture(scope="session")
def hooks_program(request, staged):
    return staged(request.config.getoption("hooks_program"))


@pytest.fixture(scope="session")
def validator(program):
    import schema

    if os.environ.get("KERN_VALIDATE", "1") != "1":
        return None
    return schema.Validator(schema.printed_schema(program))


@pytest.fixture
def owner(as_user):
    """The passwd entry that the sidecar runs as."""
    return pwd.getpwnam(as_user)


@pytest.fixture(scope="session")
def places():
    """Where the directories of tests lie. ext4 does not use an inode again for a minute, and looks at each such one for every new file
    that is to lie near it: of a directory with +T those below lie apart, and the thousands that a test removes slow no other one."""
    path = tempfile.mkdtemp(prefix="kern-tests-", dir="/tmp")
    os.chmod(path, 0o755)
    subprocess.run(["chattr", "+T", path], check=False, stderr=subprocess.DEVNULL)  # other file systems do without
    yield path
    os.rmdir(path)


@pytest.fixture
def place(owner, test_user, places):
    """A directory of that user, outside of any private directory; `place/tmp` is the sidecar's TMPDIR."""
    path = tempfile.mkdtemp(prefix="kern-test-", dir=places)
    os.mkdir(os.path.join(path, "tmp"))
    os.chmod(path, 0o755)
    for directory in (path, os.path.join(path, "tmp")):
        os.chown(directory, owner.pw_uid, owner.pw_gid)
    yield path
    subprocess.run(["chmod", "-R", "u+rwX", path], check=False, stderr=subprocess.DEVNULL)
    shutil.rmtree(path)


@pytest.fixture
def make_dir(place, owner):
    """make_dir(name) -> a directory in `place` that the sidecar's user owns."""

    def make(name):
        path = os.path.join(place, name)
        os.mkdir(path)
        os.chown(path, owner.pw_uid, owner.pw_gid)
        return path

    return make


@pytest.fixture
def environment(place, owner):
    """What the sidecar gets: little, and state under `place` so that what it leaves can be counted."""
    kept = {
        name: os.environ[name]
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "LANG")
        if name in os.environ
    }
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
        "HOME": owner.pw_dir,
        "TMPDIR": os.path.join(place, "tmp"),
        **kept,
    }


@pytest.fixture
def sidecar(request, program, validator, as_user, owner, environment, place):
    """sidecar(**options) -> Client. initialize=False leaves the handshake to the test; a dict is its params."""
    started = []
    before = leftovers.cgroups(owner.pw_uid)

    def start(initialize=True, env=None, program=program, expect_exit=0, **options):
        options.setdefault("validator", validator)
        client = Client(program, env={**environment, **(env or {})}, user=as_user, **options)
        client.expect_exit = expect_exit
        client.start_way = request.config.getoption("--start")
        started.append(client)
        if initialize is not False:
            client.initialize(**(initialize if isinstance(initialize, dict) else {}))
        return client

    yield start
    problems = []
    for client in started:
        problems += finish(client)
    problems += leftovers.new_cgroups(before, owner.pw_uid)
    problems += leftovers.files_left(os.path.join(place, "tmp"))
    assert problems == []


def finish(client):
    """Closes a client and lists what was not as promised."""
    below = leftovers.descendants(client.pid) if client.process.poll() is None else {}
    code = client.close()
    problems = list(client.violations)
    if client.expect_exit is not None and code != client.expect_exit:
        problems.append(f"exit status {code}, not {client.expect_exit}; stderr: {client.stderr_text()[-2000:]}")
    problems += [f"a process is left: {p}" for p in leftovers.still_there(below, within=5.0)]
    problems += [line for line in client.stderr_lines if any(word in line for word in SANITIZER_WORDS)]
    return problems


@pytest.fixture
def client(sidecar):
    """One initialised sidecar."""
    return sidecar()


@pytest.fixture
def libraries(client):
    """libraries(name) -> session with one of tests/packages-python.sh; skips when it is not there for the python3 of the box."""

    def start(name, **params):
        version = client.run("/usr/bin/python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])")["stdout"].strip()
        directory = os.path.join(TOP, "build", "python-packages", version)
        if not os.path.isdir(os.path.join(directory, name)):
            pytest.skip(f"no {name} in {directory}: tests/packages-python.sh")
        mounts = [{"source": directory, "target": "/packages", "mode": "ro"}]
        return client.open(**{"mounts": mounts, "env": {"PYTHONPATH": "/packages"}, "timeoutMs": 120000, **params})

    return start

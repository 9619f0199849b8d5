"""What inside/main.py saw in the virtual machine: one boot with pure cgroup v2, one with v1 beside a v2 mount (hybrid)."""

import concurrent.futures
import os
import re
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import run  # noqa: E402

MIB = 1 << 20
CGROUP = "/sys/fs/cgroup"
SERVICE = "/system.slice/kern-vm.service"  # what everything in there is started by
USER_APPS = r"/user\.slice/user-1000\.slice/user@1000\.service/app\.slice"
USERS = {"user": 1000, "alone": 1001, "root": 0}
VALUES = {"memoryMb": 64, "pids": 20, "cpusMilli": 500}
ENFORCED = {name: {"value": value, "enforced": "kernel"} for name, value in VALUES.items()}
NOTHING_LEFT = {"processes": [], "cgroups": [], "units": []}

# Where the sidecar's cgroup is below: a scope that it asked systemd for, or the service it is the main process of.
PLACES = {
    "user.bare": USER_APPS + r"/(kern-sidecar-\d+-[0-9a-f]{8}\.scope)",
    "user.login": USER_APPS + r"/(kern-sidecar-\d+-[0-9a-f]{8}\.scope)",
    "user.service": USER_APPS + r"/run-u\d+\.service",
    "root.bare": r"/system\.slice/(kern-sidecar-\d+-[0-9a-f]{8}\.scope)",
    "root.service": r"/system\.slice/run-u\d+\.service",
    "root.container": r"/system\.slice/run-u\d+\.service",
}
# Why not, of memory and of cpu.
DENIED = f"systemd: no user bus: No such file or directory; Permission denied: {CGROUP}{SERVICE}"
READ_ONLY = f"systemd: not running here; Read-only file system: {CGROUP}{SERVICE}"
REASONS = {
    ("v2", "alone"): (DENIED, DENIED),
    ("v2", "root.readonly"): (READ_ONLY, READ_ONLY),
    ("v2", "root.unmounted"): tuple(f"no {name} controller is mounted at {CGROUP}" for name in ("memory", "cpu")),
    ("hybrid", "user.bare"): (
        f"cannot make a cgroup: Permission denied: {CGROUP}/memory{SERVICE}",
        f"cannot make a cgroup: Permission denied: {CGROUP}/cpu,cpuacct",
    ),
}

enforced = pytest.mark.parametrize("kind, way", [*(("v2", way) for way in PLACES), ("hybrid", "root.bare")])
thorough = pytest.mark.parametrize("kind, way", [("v2", "user.bare"), ("v2", "root.bare"), ("hybrid", "root.bare")])
not_enforced = pytest.mark.parametrize("kind, way", REASONS)
every_way = pytest.mark.parametrize("kind, way", [*(("v2", way) for way in PLACES), ("hybrid", "root.bare"), *REASONS])


@pytest.fixture(scope="session")
def machine(request):
    """machine(kind) -> {(way, name): fact}. Both boot at the same time."""
    reason = run.missing()
    if reason:
        pytest.skip(reason)
    program = request.config.getoption("program")
    if not os.path.exists(program):
        pytest.fail(f"{program} is not there: build it first (./quickstart, or cmake --preset debug and --build)")
    run.build()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        boots = {kind: pool.submit(run.boot, program, kind) for kind in run.BOOTS}
    return lambda kind: {(fact["way"], fact["name"]): fact for fact in boots[kind].result()}


@pytest.fixture
def seen(machine, request):
    """seen(name) -> the value of this test's kind and way."""

    def value(name, way=None):
        asked = request.node.callspec.params if hasattr(request.node, "callspec") else {}
        fact = machine(asked.get("kind", "v2"))[way or asked["way"], name]
        assert "failed" not in fact, fact["failed"]
        return fact["value"]

    return value


def unsealed(result):
    """A result without what it used."""
    return {name: value for name, value in result.items() if name != "usage"}


def limits(effective):
    return {name: effective[name] for name in VALUES}


# -- the machine


@pytest.mark.parametrize("kind, mounts", [("v2", ["cgroup2"]), ("hybrid", ["cgroup", "cgroup2"])])
def test_machine(machine, kind, mounts):
    found = machine(kind)["machine", "machine"]["value"]
    assert (found["cgroup"], found["cpus"]) == (mounts, 2)


@every_way
def test_user(seen, kind, way):
    assert seen("start")["uid"] == USERS[way.split(".")[0]]


# -- the kernel keeps the limits


@enforced
def test_limits_are_the_kernels(seen, kind, way):
    assert limits(seen("effective")) == ENFORCED
    assert seen("required") == {}


@pytest.mark.parametrize("way", PLACES)
def test_one_scope_at_the_start(seen, way):
    """Where there is nothing delegated already, and then exactly one."""
    start = seen("start")
    place = re.fullmatch(PLACES[way] + r"/kern-sidecar-\d+-[0-9a-f]{8}/self", start["homes"][""])
    assert place, start
    assert start["units"] == list(place.groups())
    assert start["jobs"] >= 1  # of the manager: the scope, or the service


@pytest.mark.parametrize("way", PLACES)
def test_no_unit_for_a_call(seen, way):
    calls = seen("attaches")
    assert (calls["jobs"], calls["units"]) == (0, seen("start")["units"])


@enforced
def test_how_a_box_gets_into_its_cgroup(seen, kind, way):
    """An ordinary user's boxes are born in it (CLONE_INTO_CGROUP). Root's templates have other ids than the cgroup's owner,
    so the box's init enters: one move a call on v2, and on v1 one for each of memory, pids and cpu."""
    assert seen("attaches")["moved"] == (9 if kind == "hybrid" else 0 if way.startswith("user") else 3)


@pytest.mark.parametrize("way", PLACES)
def test_control_files(seen, way):
    running = seen("running")
    own = os.path.dirname(seen("start")["homes"][""])
    assert re.fullmatch(re.escape(CGROUP + own) + r"/box\d+", running["path"])
    assert running["values"] == {
        "memory.max": str(64 * MIB),
        "memory.swap.max": "0",
        "pids.max": "21",  # and the box's init
        "cpu.max": "50000 100000",
    }
    assert running["tasks"] == 2


@pytest.mark.parametrize("kind, way", [("hybrid", "root.bare")])
def test_control_files_of_v1(seen, kind, way):
    running = seen("running")
    assert re.fullmatch(f"{CGROUP}/memory{SERVICE}" + r"/kern-sidecar-0-[0-9a-f]{8}/box\d+", running["path"])
    assert running["values"] == {
        "memory.limit_in_bytes": str(64 * MIB),
        "memory.memsw.limit_in_bytes": str(64 * MIB),
        "pids.max": "21",
        "cpu.cfs_quota_us": "50000",
        "cpu.cfs_period_us": "100000",
    }
    assert running["tasks"] == 2


KERNEL_OOM = {
    "type": "oom",
    "message": "out of memory: the box reached its cap of 64 MiB and the kernel killed 1 of its processes",
    "limit": "memoryMb",
}


@enforced
def test_oom(seen, kind, way):
    result = seen("oom")
    assert unsealed(result) == {"stdout": "", "exitCode": 137, "signal": "KILL", "fault": KERNEL_OOM}
    assert (result["usage"]["oomKills"], result["usage"]["memoryPeakBytes"]) == (1, 64 * MIB)


@thorough
def test_oom_of_a_grandchild(seen, kind, way):
    result = seen("oom_grandchild")
    assert unsealed(result) == {"stdout": "main\n", "exitCode": 0, "fault": KERNEL_OOM}
    assert (result["usage"]["oomKills"], result["usage"]["memoryPeakBytes"]) == (1, 64 * MIB)


@thorough
def test_peak_under_the_limit(seen, kind, way):
    """After calls that used more."""
    result = seen("under_the_limit")
    assert unsealed(result) == {"stdout": "alive\n", "exitCode": 0}
    assert result["usage"]["oomKills"] == 0
    assert 30 * MIB < result["usage"]["memoryPeakBytes"] < 60 * MIB


@enforced
def test_pids(seen, kind, way):
    result = seen("pids")
    assert unsealed(result) == {"stdout": "11\n19\n", "exitCode": 0}  # EAGAIN at the twentieth
    assert (result["usage"]["pidsRefused"], result["usage"].get("processesPeak", 20)) == (1, 20)


@thorough
def test_cpu(seen, kind, way):
    """A fifth of a cpu, of an endless loop, for three seconds."""
    result = seen("cpu")
    assert (result["fault"]["type"], result["fault"]["limit"]) == ("timeout", "timeoutMs")
    usage = result["usage"]
    assert usage["cpuUserUs"] + usage["cpuSystemUs"] < 0.3 * usage["wallUs"]


@thorough
def test_nproc(seen, kind, way):
    """One cpu, one and a half, two; the machine has two."""
    assert seen("nproc") == ["1\n", "2\n", "2\n"]


# -- nobody keeps them


@not_enforced
def test_not_enforced_and_why(seen, kind, way):
    memory, cpu = REASONS[kind, way]
    assert limits(seen("effective")) == {
        "memoryMb": {"value": 64, "enforced": "polled", "reason": memory},
        "pids": {"value": 20, "enforced": "kernel"},  # RLIMIT_NPROC in a user namespace of the call's own
        "cpusMilli": {"value": 500, "enforced": "none", "reason": cpu},
    }
    assert seen("start")["units"] == []


@not_enforced
def test_required_limits_are_refused(seen, kind, way):
    error = seen("required")
    assert (error["reason"], error["path"], error["retryable"]) == ("limits_unenforced", "/memoryMb", False)
    assert REASONS[kind, way][0] in error["message"]
    assert "host/doctor" in error["hint"]


# What the doctor advises: a limit's own cure, or that of the check it points to.
CURES = {
    ("v2", "alone"): "loginctl enable-linger",
    ("v2", "root.readonly"): "mount -o remount,rw /sys/fs/cgroup",
    ("v2", "root.unmounted"): "mount -t cgroup2 cgroup2 /sys/fs/cgroup",
    ("hybrid", "user.bare"): "boot with systemd.unified_cgroup_hierarchy=1",
}


@not_enforced
def test_doctor_says_why_and_what_to_do(seen, kind, way):
    checks = seen("doctor")
    found = [f"polled (cgroup none): {REASONS[kind, way][0]}", f"none (cgroup none): {REASONS[kind, way][1]}"]
    for name, text in zip(("limit_memory", "limit_cpu"), found):
        assert (checks[name]["found"], checks[name]["status"]) == (text, "warn")
        cure = checks[name]["fix"]
        while cure.startswith("see "):
            cure = checks[cure.removeprefix("see ")]["fix"]
        assert CURES[kind, way] in cure


@enforced
def test_doctor_is_content(seen, kind, way):
    checks = seen("doctor")
    assert [checks[name]["status"] for name in ("limit_memory", "limit_pids", "limit_cpu")] == ["ok"] * 3
    assert checks["limit_memory"]["found"] == f"kernel (cgroup {kind})"


@not_enforced
def test_memory_is_polled(seen, kind, way):
    result = seen("oom")
    assert (result["stdout"], result["exitCode"], result["signal"]) == ("", 137, "KILL")
    assert result["fault"] == {
        "type": "oom",
        "message": "out of memory: the box was above its cap of 64 MiB and was ended",
        "limit": "memoryMb",
    }
    assert 64 * MIB < result["usage"]["memoryPeakBytes"] <= 220 * MIB
    assert "oomKills" not in result["usage"]


@not_enforced
def test_pids_without_a_cgroup(seen, kind, way):
    assert unsealed(seen("pids")) == {"stdout": "11\n19\n", "exitCode": 0}


# -- the end


@every_way
def test_nothing_is_left_after_the_end(seen, kind, way):
    assert seen("close") == {"status": 0, "violations": [], **NOTHING_LEFT}


@every_way
def test_nothing_is_left_after_sigkill(seen, kind, way):
    """systemd removes the cgroups of a v2 scope or service that is empty; on v1 they wait for the next sidecar."""
    killed = seen("kill")
    assert killed["processes killed"] >= 5  # sidecar, launcher, session's init, template, box's init, command
    assert (killed["processes"], killed["units"]) == ([], [])
    if (kind, way) == ("hybrid", "root.bare"):
        assert sorted(re.sub("0-[0-9a-f]{8}$", "", line) for line in killed["cgroups"]) == [
            f"a cgroup is left: {CGROUP}/{place}/kern-sidecar-"
            for place in ("blkio", "cpu,cpuacct", f"memory{SERVICE}", f"pids{SERVICE}")
        ]
    else:
        assert killed["cgroups"] == []


@every_way
def test_next_start_after_sigkill(seen, kind, way):
    assert seen("again") == seen("effective")
    assert seen("close again") == {"status": 0, "violations": [], **NOTHING_LEFT}


@every_way
def test_way_came_to_its_end(seen, kind, way):
    assert seen("end") is None


# -- private workspaces with a project quota

NO_QUOTA = "watched: measured four times a second and at the end of each call; no project quota: "
FULL = "Disk quota exceeded"
FIRST_PROJECT = 1 << 31


def holds(result):
    assert (result["exitCode"], result["stderr"]) == (0, ""), result


def refuses(result):
    """The program is told; no fault, nobody ended it."""
    assert result["exitCode"] == 1 and FULL in result["stderr"], result
    assert "fault" not in result and "signal" not in result, result


@pytest.mark.parametrize("start", ["auto", "cold"])
def test_quota_is_the_kernels(seen, start):
    found = seen(f"limits {start}", "quota")
    assert (found["effective"]["value"], found["effective"]["enforced"]) == (4, "kernel")
    assert re.fullmatch(r"a project quota of the file system, project \d+", found["effective"]["reason"])


@pytest.mark.parametrize("start", ["auto", "cold"])
def test_quota_of_bytes(seen, start):
    below, at, above, without_a_name, at_once = seen(f"limits {start}", "quota")["files"]
    holds(below)
    holds(at)
    for result in (above, without_a_name, at_once):
        refuses(result)


@pytest.mark.parametrize("start", ["auto", "cold"])
def test_quota_of_names(seen, start):
    below, at, above, again, after_a_removal = seen(f"limits {start}", "quota")["names"]
    for result in (below, at, after_a_removal):
        holds(result)
    for result in (above, again):
        refuses(result)


@pytest.mark.parametrize("user", ["sandbox", "root"])
def test_no_box_leaves_its_project(seen, user):
    found = seen(f"escape {user}", "quota")
    lines = [f"{path} EINVAL True" for path in (".", "d", "d/f") for _ in range(3)]
    lines[-1] = "d/f same True"  # files inherit to nobody
    assert (found["exitCode"], found["stderr"], found["stdout"].splitlines()) == (0, "", lines)


def test_quota_satisfies_require_limits(seen):
    assert seen("required", "quota")["enforced"] == "kernel"


def test_life_of_a_quota(seen):
    """Each workspace has its own project; the limit goes with it. What a SIGKILL leaves is a limit without files."""
    found = seen("life", "quota")
    mine, theirs = found["numbers"]
    assert mine != theirs and min(mine, theirs) > FIRST_PROJECT
    (limit, empty, names, directory), (_, used, _, files) = found["while"]
    assert (limit, names, directory) == (4096 + empty // 1024, 1024 + 1, 1)
    assert 1000000 <= used < 1100000 and files == 4
    assert found["after"] == [[0, 0, 0, 0], [limit, 0, names, 0]]
    assert (found["third"], found["left"]) == (0, 1)
    assert (seen("close", "quota"), seen("left", "quota")) == (0, [])


@pytest.mark.parametrize(
    "name, why",
    [("counted only", "its file system is not mounted with prjquota"), ("none", "its file system has none")],
)
def test_without_a_quota_it_is_watched(seen, name, why):
    found = seen(name, "quota")
    assert found["effective"]["enforced"] == "polled"
    assert found["effective"]["reason"].startswith(NO_QUOTA + why)
    assert (found["required"]["reason"], found["required"]["path"]) == ("limits_unenforced", "/workspaceMaxMb")
    assert found["status"] == 0


def test_quota_came_to_its_end(seen):
    assert seen("end", "quota") is None


# -- a profile of AppArmor

profiled = pytest.mark.parametrize(
    "name",
    [f"{way} {user} {start}" for way in ("root.bare", "user.bare") for user in ("sandbox", "root") for start in ("auto", "cold")],
)


@profiled
def test_apparmor_profile_confines(seen, name):
    """The profile is the kernel's, and what it denies is denied whoever the box's user is."""
    assert seen("load", "apparmor") == ""
    under = seen(name, "apparmor")["under"]
    assert under["effective"] == {"value": "kern-vm-test", "enforced": "kernel"}
    assert (under["exitCode"], under["stderr"]) == (0, "")
    assert under["stdout"] == "kern-vm-test (enforce)\n13\n13\n"


@profiled
def test_without_a_profile_that_is_allowed(seen, name):
    """The same program, so that it is the profile that denied."""
    without = seen(name, "apparmor")["without"]
    assert (without["exitCode"], without["stdout"]) == (0, "unconfined\nopened\nopened\n")


@profiled
def test_profile_that_is_not_loaded_stops_the_call(seen, name):
    found = seen(name, "apparmor")
    assert (found["unknown"]["reason"], found["unknown"]["step"]) == ("start_failed", "apparmor"), found["unknown"]
    assert "apparmor_parser" in found["unknown"]["hint"]
    assert found["status"] == 0


# -- the program's own suite, by the ordinary user


def test_protocol_suite(machine):
    tests = {name: fact for (way, name), fact in machine("v2").items() if way == "protocol" and name != "end"}
    other = [name for name, fact in tests.items() if fact["value"] != "passed"]
    assert other == [], "\n".join(f"{name}: {tests[name]['value']}: {tests[name]['why']}" for name in other)
    assert machine("v2")["protocol", "end"]["value"]["status"] == 0
    assert len(tests) > 150

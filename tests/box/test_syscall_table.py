"""Every system call, made in a box, against the table it was compiled from."""

import json
import os
import subprocess

import pytest

from build import TOP
from expect import fault, plain
from kern_client import RpcError

MACHINE = os.uname().machine
ENOSYS, EPERM, EAFNOSUPPORT, EPROTONOSUPPORT = "errno 38", "errno 1", "errno 97", "errno 93"
KILLED = "signal 31"
UPPER = 0x5EADBEEF << 32

# What -1 in every place would not do harmlessly, or would have the filter or the kernel refuse for its arguments.
HARMLESS = {
    "exit": (0,),
    "exit_group": (0,),
    "clone": (17,),  # SIGCHLD
    "unshare": (0,),
    "socket": (1, 1, 0),  # AF_UNIX, SOCK_STREAM
    "socketpair": (1, 1, 0),
    "futex": (0, 1, 1),  # FUTEX_WAKE: an operation that there is not is ENOSYS
    "alarm": (0,),
    "msgget": (1, 0),  # -1 has the flag that makes one
    "chmod": (-1, 0),  # -1 has the set-user-ID bit
    "fchmod": (-1, 0),
    "fchmodat": (-1, -1, 0),
    "fchmodat2": (-1, -1, 0),
    "creat": (-1, 0),
    "mknod": (-1, 0),
    "mknodat": (-1, -1, 0),
    "open": (-1, 0, 0),
    "openat": (-1, -1, 0, 0),
}


@pytest.fixture(scope="session")
def printer(programs):
    return programs.build("../print_syscalls.c", "cc", "-I", os.path.join(TOP, "sidecar"))


@pytest.fixture(scope="session")
def table(printer):
    return json.loads(subprocess.run([printer, "--json"], capture_output=True, check=True, text=True).stdout)


@pytest.fixture(scope="session")
def numbers(table):
    return {rule["name"]: rule[MACHINE] for rule in table if rule[MACHINE] >= 0}


@pytest.fixture(scope="session")
def every_call(programs):
    return programs.build("every_call.c", "cc", "-static")


def line(gate, number, args=(-1,) * 6):
    words = [str(a) for a in (*args, *(0,) * 6)][:6]
    return f"{gate} {number} {' '.join(words)}\n"


def outcomes(text):
    """[(gate, number, outcome)] in the order they were asked for."""
    found = []
    for one in text.splitlines():
        gate, number, outcome = one.split(" ", 2)
        found.append((gate, int(number), outcome))
    return found


@pytest.fixture(params=[None, "untrusted"], ids=["default", "untrusted"])
def opened(request, client):
    """A session and the variants of the filter that hold in it."""
    profile = {"securityProfile": request.param} if request.param else {}
    try:
        session = client.call("session/open", {"timeoutMs": 120000, "maxOutputBytes": 1 << 20, **profile})
    except RpcError as error:
        if profile and error.reason == "unsupported_option":
            pytest.skip("this build has no security profiles")
        raise
    polled = session["effective"]["memoryMb"]["enforced"] == "polled"
    return session, {name for name, holds in (("polled", polled), ("untrusted", bool(profile))) if holds}


def run_calls(client, session, programs, every_call, lines):
    path = programs.place(session, every_call)
    result = client.run(path, sessionId=session["sessionId"], stdin="".join(lines), timeout=150)
    assert result["exitCode"] == 0, result
    found = outcomes(client.out(result))
    assert len(found) == len(lines)
    return result, found


def ask(name, number):
    return line("native", number, HARMLESS.get(name, (-1,) * 6))


def outside(every_call, lines):
    """The same calls without a box, as nobody: what this kernel itself does with them."""
    who = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
    run = subprocess.run([every_call], input="".join(lines), capture_output=True, text=True, check=True, cwd="/", **who)
    return {number: outcome for _, number, outcome in outcomes(run.stdout)}


def test_the_page_is_what_the_table_says(printer):
    printed = subprocess.run([printer], capture_output=True, check=True).stdout
    with open(os.path.join(TOP, "sidecar/box/SYSCALLS.md"), "rb") as file:
        assert file.read() == printed, "print it again: print_syscalls > sidecar/box/SYSCALLS.md"


def test_every_number(client, opened, programs, every_call, table):
    session, variants = opened
    rules = {rule[MACHINE]: rule for rule in table if rule[MACHINE] >= 0}
    asked = [*range(0, 501), 511, 512, 547, 999, 1000, 9999, 65535, 0x3FFFFFFF, -1]
    lines = [ask(rules[nr]["name"] if nr in rules else None, nr) for nr in asked]
    result, found = run_calls(client, session, programs, every_call, lines)

    def refused(rule):
        return rule is None or rule["verdict"] in ("REFUSE", "SETUP") or variants & set(rule["falls"])

    allowed = [nr for nr in asked if not refused(rules.get(nr)) and rules[nr]["verdict"] != "REPORT"]
    natural = outside(every_call, [ask(rules[nr]["name"], nr) for nr in allowed])
    wrong = []
    for (_, nr, outcome), asked_nr in zip(found, asked):
        rule = rules.get(nr)
        assert nr == asked_nr
        if refused(rule):
            expected = ENOSYS
        elif rule["verdict"] == "REPORT":
            expected = KILLED
        else:
            expected = natural[nr]
        if outcome != expected:
            wrong.append((nr, rule and rule["name"], outcome, expected))
    assert wrong == []
    reported = [rules[nr]["name"] for nr in asked if nr in rules and rules[nr]["verdict"] == "REPORT"]
    seen = fault(result, "escape_blocked")
    assert (seen["syscall"], seen["process"]) == (reported[0], os.path.basename(every_call)[:15])
    assert result["usage"]["syscallsRefused"] == len(reported) >= 23
    assert len(allowed) > (200 if variants else 250)


@pytest.mark.skipif(MACHINE != "x86_64", reason="gates of x86-64")
def test_x32_numbers_are_killed(client, opened, programs, every_call):
    session, _ = opened
    lines = [line("x32", nr, (0,) * 6) for nr in range(0, 560)]
    result, found = run_calls(client, session, programs, every_call, lines)
    assert {outcome for _, _, outcome in found} == {KILLED}
    assert "fault" not in result and "syscallsRefused" not in result["usage"]


@pytest.mark.skipif(MACHINE != "x86_64", reason="gates of x86-64")
def test_i386_numbers_are_killed(client, opened, programs, every_call):
    natural = outside(every_call, [line("i386", 20)])  # getpid
    if natural[20] != "ran":
        pytest.skip("this kernel has no i386 gate")
    session, _ = opened
    lines = [line("i386", nr) for nr in range(0, 470)]
    result, found = run_calls(client, session, programs, every_call, lines)
    assert {outcome for _, _, outcome in found} == {KILLED}
    assert "fault" not in result and "syscallsRefused" not in result["usage"]


def halves(*args):
    """The arguments, and again with rubbish in the upper halves, which the kernel does not look at."""
    return [args, tuple(a | UPPER for a in args)]


def bits(*flags):
    return [arg for flag in flags for arg in halves(flag)]


NAMESPACES = (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000)


def test_arguments(client, opened, programs, every_call, numbers):
    """[call, arguments, outcome]; None: what the kernel itself says."""
    session, variants = opened
    untrusted = "untrusted" in variants
    cases = []
    for name in ("socket", "socketpair"):
        for family in range(0, 64):
            allowed = family in (1, 2, 10) or (family == 16 and not untrusted)
            for args in halves(family, 2, 0):
                cases.append((name, args, None if allowed else EAFNOSUPPORT))
        for protocol in (1, 4, 5, 9, 10, 12, 16, 21, 22):
            for args in halves(16, 3, protocol):
                cases.append((name, args, EAFNOSUPPORT if untrusted else EPROTONOSUPPORT))
        for protocol in (0, 6, 17, 33, 132, 136, 262):  # usual, TCP, UDP; DCCP, SCTP, UDP-Lite, MPTCP
            for args in halves(2, 1, protocol):
                refused = untrusted and protocol not in (0, 6, 17)
                cases.append((name, args, EPROTONOSUPPORT if refused else None))
    for value in (0, 8, 0x20000, 0x20008, 0xFFFFFFFF):
        cases += [("personality", args, ENOSYS if untrusted else None) for args in halves(value)]
    for value in (0x40000, 0x80000, 0x100000, 0x200000, 0x400000, 0x800000, 0x1000000, 0x2000000, 0x4000000, 0x8000000, 1, 0x40008):
        cases += [("personality", args, ENOSYS if untrusted else EPERM) for args in halves(value)]
    for request in (0x5412, 0x541C):
        cases += [("ioctl", args, EPERM) for args in halves(0, request, 0)]
    cases += [("ioctl", args, None) for request in (0x5411, 0x5413, 0x541B, 0x541D) for args in halves(-1 & 0xFFFFFFFF, request, 0)]
    for sub in range(1, 16):
        cases += [("prctl", args, EPERM) for args in halves(35, sub, 0)]
    cases += [("prctl", args, EPERM) for kind in (0, 1, 2) for args in halves(53, kind, 2)]
    cases += [("prctl", args, None) for args in [(52, 0), (53, 0, 64), (38, 1), (4, 1), (22, 99), (39, 0), (3, 0)]]
    cases += [("clone", args, KILLED) for args in bits(*NAMESPACES, *(flag | 17 for flag in NAMESPACES))]
    cases += [("unshare", args, KILLED) for args in bits(*NAMESPACES, 0x80)]
    cases += [("unshare", args, None) for args in [(0,), (0x200,), (0x400,)]]
    cases += [("clone3", args, ENOSYS) for args in [(0, 0), (0, 88), (-1, -1)]]
    for name, mode in (("chmod", 1), ("fchmod", 1), ("fchmodat", 2), ("fchmodat2", 2), ("creat", 1), ("mknod", 1), ("mknodat", 2)):
        for value in (0o4000, 0o2000, 0o6755, 0o4755, 0o102644):
            args = [-1] * 4
            args[mode] = value
            cases += [(name, a, EPERM) for a in (tuple(args), tuple(x | UPPER if x > 0 else x for x in args))]
    cases += [("open", (-1, flags, 0o4755), EPERM) for flags in (0o100, 0o20200000)]
    cases += [("openat", (-1, -1, flags, 0o2755), EPERM) for flags in (0o100, 0o20200000)]
    cases += [("openat", (-1, -1, 0, 0o4755), None), ("openat2", (-1, -1, 0, 0), ENOSYS)]
    for name in ("prlimit64", "sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler"):
        cases += [(name, args, EPERM) for args in halves(1, 0, 0)]
    cases += [("setpriority", args, EPERM) for args in (*halves(0, 1, 0), *halves(2, 0, 0), *halves(2, 1000, 0))]
    cases += [("ioprio_set", args, EPERM) for args in (*halves(1, 1, 0), *halves(3, 0, 0))]
    cases = [case for case in cases if case[0] in numbers]
    lines = [line("native", numbers[name], args) for name, args, _ in cases]
    result, found = run_calls(client, session, programs, every_call, lines)
    who = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
    kernel = [n for n, case in enumerate(cases) if case[2] is None]
    natural = subprocess.run(
        [every_call], input="".join(lines[n] for n in kernel), capture_output=True, text=True, check=True, cwd="/", **who
    )
    natural = dict(zip(kernel, outcomes(natural.stdout)))
    wrong = []
    for n, ((name, args, expected), (_, _, outcome)) in enumerate(zip(cases, found)):
        if outcome != (expected or natural[n][2]):
            wrong.append((name, [hex(a) for a in args], outcome, expected or natural[n][2]))
    assert wrong == []
    assert result["usage"]["syscallsRefused"] == sum(expected == KILLED for _, _, expected in cases)


def test_the_terminal_of_the_host_gets_nothing_typed(client):
    """TIOCSTI on what the code gets as stdin, as one would write it."""
    code = "import fcntl\ntry: fcntl.ioctl(0, 0x5412, b'x'); print('typed')\nexcept OSError as e: print(e.errno)"
    plain(client.run("python3", "-c", code), "1\n")

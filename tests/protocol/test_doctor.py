"""host/doctor and `kern-sidecar doctor`: this machine is fine, and hosts that are not, made for real around the program.

What needs another kernel or another distribution is in tests/unit/test_doctor.c, on hosts made of files."""

import ctypes
import errno
import json
import os
import re
import resource
import shutil
import struct
import subprocess

import pytest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DOCUMENTED = os.path.join(TOP, "sidecar/session/DOCTOR.md")
# Boxes run without the kernel's limits where nobody delegated a cgroup; the rest has to be fine on a test machine.
MAY_WARN = {"limit_memory", "limit_pids", "limit_cpu", "cgroup_mount", "user_manager", "open_files", "workspace_idmap"}


def documented():
    with open(DOCUMENTED, encoding="utf-8") as file:
        return re.findall(r"^\| `([a-zA-Z_]+)` \|", file.read(), re.MULTILINE)


def masked(text):
    """Without what differs from one run to the next: times, free space, the name of the state directory."""
    return re.sub(r"[0-9a-f]{8}\b|\d+", "#", text)


@pytest.fixture
def doctor(program, owner, environment, place):
    """doctor(*words, around=argv in front, preexec=..., env=...) -> the finished process."""

    def run(*words, around=(), preexec=None, env=None, as_root=False, program=program):
        drop = {} if as_root or os.geteuid() == owner.pw_uid else {
            "user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": [],
        }
        argv = [*around, program, "doctor", *words]
        return subprocess.run(argv, env={**environment, **(env or {})}, cwd="/", preexec_fn=preexec, timeout=60,
                              text=True, stdin=subprocess.DEVNULL, capture_output=True, **drop)

    return run


def report(finished, status):
    assert finished.returncode == status, (finished.returncode, finished.stdout, finished.stderr)
    assert finished.stdout.count("\n") == 1
    answer = json.loads(finished.stdout)
    assert answer["ok"] is (status == 0)
    assert answer["ok"] is all(check["status"] != "fail" for check in answer["checks"])
    return answer


def check_of(answer, name):
    return next(check for check in answer["checks"] if check["id"] == name)


def cause(answer):
    """The first check, which has to explain the second: that the box did not start."""
    first, box = answer["checks"][:2]
    assert (first["status"], box["id"], box["status"]) == ("fail", "box", "fail"), answer["checks"][:2]
    assert box["found"].endswith(f"most likely cause: {first['id']}"), box
    assert box["fix"] == f"see {first['id']}"
    return first


# ---- this machine


def test_this_machine(client):
    answer = client.call("host/doctor")
    troubles = {check["id"]: check for check in answer["checks"] if check["status"] != "ok"}
    assert answer["ok"] is True
    assert set(troubles) <= MAY_WARN, troubles
    assert answer["checks"][0]["id"] == "box"
    assert re.fullmatch(r"started in \d+ us, with every layer", answer["checks"][0]["found"])
    for check in answer["checks"]:
        assert ("fix" in check) == ("wanted" in check) == (check["status"] != "ok"), check


def test_order_is_documented(client):
    named = documented()
    assert named[-1] == "interpreter_NAME"
    languages = [name for plugin in client.call("plugin/list")["plugins"] for name in plugin["languages"]]
    ids = [check["id"] for check in client.call("host/doctor")["checks"]]
    assert ids[: len(named) - 1] == named[:-1]
    assert sorted(ids[len(named) - 1 :]) == sorted("interpreter_" + name for name in languages)


def test_command_says_what_the_method_says(client, doctor, validator):
    answer = report(doctor("--json"), 0)
    if validator:
        assert validator.reply("host/doctor", {"jsonrpc": "2.0", "id": 1, "result": answer}) == []
    said = client.call("host/doctor")
    assert answer.keys() == said.keys()
    for one, other in zip(answer["checks"], said["checks"], strict=True):
        assert one.keys() == other.keys()
        assert {k: masked(v) for k, v in one.items()} == {k: masked(v) for k, v in other.items()}


def test_command_for_people(doctor):
    """One line a check, aligned; what to do below those that are not ok."""
    shown = doctor()
    assert shown.returncode == 0 and shown.stderr == ""
    checks = report(doctor("--json"), 0)["checks"]
    width = max(len(check["id"]) for check in checks)
    wanted = []
    for check in checks:
        word = {"ok": "ok", "warn": "warn", "fail": "FAIL"}[check["status"]]
        wanted.append(f"{word:4}  {check['id']:{width}}  {check['found']}")
        wanted += [f"      {name}: {check[name]}" for name in ("wanted", "fix") if name in check]
    assert [masked(line) for line in shown.stdout.splitlines()] == [masked(line) for line in wanted]


def test_misspelt(doctor):
    for words in (["--jsn"], ["--json", "--json"], ["now"]):
        refused = doctor(*words)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert refused.stderr == "kern-sidecar: doctor takes --json and nothing else\n"


def test_closed_stdout(program, environment, place, owner):
    if os.geteuid() != owner.pw_uid:
        pytest.skip("said once, as the suite's own user")
    with open("/dev/full", "w", encoding="ascii") as full:
        finished = subprocess.run([program, "doctor"], env=environment, stdout=full, stderr=subprocess.PIPE, text=True,
                                  timeout=60, check=False)
    assert (finished.returncode, finished.stderr) == (1, "kern-sidecar: cannot write to stdout\n")


# ---- hosts that are not fine


def test_every_step_is_named(doctor, hooks_program):
    """EIO has no known cause: the box itself comes first and says where."""
    for step in ("launcher namespaces", "id map", "session proc", "network", "escape filter"):
        finished = doctor("--json", env={"KERN_TEST_FAIL_STEP": step}, program=hooks_program)
        first = report(finished, 1)["checks"][0]
        assert (first["id"], first["status"]) == ("box", "fail")
        assert first["found"].startswith(f"step '{step}': "), first
        assert first["fix"]


def test_shown_to_people(doctor, hooks_program):
    shown = doctor(env={"KERN_TEST_FAIL_STEP": "hostname"}, program=hooks_program)
    lines = shown.stdout.splitlines()
    assert shown.returncode == 1
    assert lines[0].startswith("FAIL  box  ") and "step 'hostname'" in lines[0]
    assert lines[1] == "      wanted: a box with every layer starts"
    assert lines[2].startswith("      fix: ")
    assert lines[3].startswith("ok    kernel  ")


def refuse_clone3():
    """A seccomp filter as a container has it: clone3 (435) is EPERM, on every architecture (seccomp(2))."""
    libc = ctypes.CDLL(None, use_errno=True)
    load_number, if_equal, answer = 0x20, 0x15, 0x06
    lines = [
        (load_number, 0, 0, 0),
        (if_equal, 0, 1, 435),
        (answer, 0, 0, 0x00050000 | errno.EPERM),
        (answer, 0, 0, 0x7FFF0000),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in lines))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(lines), ctypes.addressof(code)))
    if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, program, 0, 0) != 0:  # no_new_privs, SECCOMP_MODE_FILTER
        os._exit(99)


def test_seccomp_profile(doctor):
    answer = report(doctor("--json", preexec=refuse_clone3), 1)
    first = cause(answer)
    assert (first["id"], first["found"]) == ("seccomp_profile", "a seccomp filter lies around the sidecar")
    assert "--security-opt seccomp=unconfined" in first["fix"]
    assert answer["checks"][1]["found"].startswith("step 'launcher namespaces': ")
    assert check_of(answer, "limit_memory")["found"] == "not known: no box can be made"


def test_few_descriptors(doctor):
    def lower():
        resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))

    found = check_of(report(doctor("--json", preexec=lower), 0), "open_files")
    assert (found["status"], found["found"]) == ("warn", "1024")
    assert found["fix"].startswith("ulimit -n 65536 ")


def test_no_user_namespaces(doctor):
    """The limit of an outer user namespace, set there and nowhere else."""
    script = 'echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"'
    answer = report(doctor("--json", around=["unshare", "--user", "--map-root-user", "sh", "-c", script, "sh"]), 1)
    first = cause(answer)
    assert (first["id"], first["found"]) == ("max_user_namespaces", "user.max_user_namespaces = 0")
    assert first["fix"].startswith("echo user.max_user_namespaces=15000 | sudo tee -a ")


def test_rootless_root(doctor):
    answer = report(doctor("--json", around=["unshare", "--user", "--map-root-user"]), 1)
    first = cause(answer)
    assert first["id"] == "id_range"
    assert "run the sidecar as an ordinary user" in first["fix"]


def test_state_directory(doctor, place):
    answer = report(doctor("--json", env={"KERN_STATE_DIR": place + "/nothing"}), 1)
    first = cause(answer)
    assert first["id"] == "state_directory"
    assert first["found"].endswith(f'"{place}/nothing": No such file or directory')
    assert "export KERN_STATE_DIR=~/.cache/kern" in first["fix"]


def as_owner(owner):
    """In front of a program: from root to the user of this round."""
    return ["setpriv", f"--reuid={owner.pw_uid}", f"--regid={owner.pw_gid}", "--clear-groups"]


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounts something over the host's files: needs root")


@needs_root
def test_masked_proc(doctor, owner):
    """As containers do it. In a mount namespace of the test's own."""
    script = 'mount --bind /dev/null /proc/timer_list && exec "$@"'
    around = ["unshare", "--mount", "sh", "-c", script, "sh", *as_owner(owner)]
    first = cause(report(doctor("--json", around=around, as_root=True), 1))
    assert first["id"] == "proc_masked"
    assert first["found"] == "1 mount over files of /proc, the first is /proc/timer_list (devtmpfs)"
    assert "systempaths=unconfined" in first["fix"] and "unmask=ALL" in first["fix"]


@needs_root
def test_chroot(doctor, owner, place):
    """A root directory that is a mount, so that only the kernel can tell."""
    where = os.path.join(place, "top")
    os.mkdir(where)
    script = f'mount --rbind / {where} && exec chroot {where} "$@"'
    around = ["unshare", "--mount", "sh", "-c", script, "sh", *as_owner(owner)]
    first = cause(report(doctor("--json", around=around, as_root=True), 1))
    assert first["id"] == "root_mount"
    assert "pivot_root instead of chroot" in first["fix"]


@needs_root
def test_device_missing(doctor, owner):
    script = 'mount -t tmpfs none /dev; for d in null zero random urandom tty; do mknod -m 666 /dev/$d c 1 3; done; exec "$@"'
    around = ["unshare", "--mount", "sh", "-c", script, "sh", *as_owner(owner)]
    first = cause(report(doctor("--json", around=around, as_root=True), 1))
    assert (first["id"], first["found"]) == ("devices", "no such devices in /dev: full")


CGROUP_MOUNTS = "$(findmnt --raw --noheadings --output TARGET --submounts /sys/fs/cgroup)"


@needs_root
@pytest.mark.parametrize(
    "script, found",
    [
        ("umount --recursive /sys/fs/cgroup", "no cgroups are mounted at /sys/fs/cgroup"),
        (f"for m in {CGROUP_MOUNTS}; do mount -o remount,bind,ro $m; done", "/sys/fs/cgroup is read-only"),
    ],
)
def test_cgroups(doctor, owner, script, found):
    """Boxes run; the limits are not the kernel's, and the reason is found. Without systemd, which could be asked."""
    script += '; mount -t tmpfs none /run; exec "$@"'
    around = ["unshare", "--mount", "sh", "-ec", script, "sh", *as_owner(owner)]
    answer = report(doctor("--json", around=around, as_root=True), 0)
    mount = check_of(answer, "cgroup_mount")
    assert (mount["status"], mount["found"]) == ("warn", found)
    memory = check_of(answer, "limit_memory")
    assert memory["status"] == "warn" and memory["fix"] == "see cgroup_mount"
    assert memory["found"].startswith("polled (cgroup none): ")


def test_nothing_is_left(doctor, place):
    assert report(doctor("--json"), 0)["ok"]
    state = os.path.join(place, "tmp")
    for parent in os.listdir(state):
        assert os.listdir(os.path.join(state, parent)) == []
        shutil.rmtree(os.path.join(state, parent))

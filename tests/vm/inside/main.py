"""Runs in the virtual machine, as root: starts sidecars in every way a host may, and writes what is seen as JSON lines
to the second serial port. Judges nothing: test_vm.py does, outside.

Which facts are gathered is in the first word of the kernel's parameter `kern.vm=`: v2 or hybrid."""

import ctypes
import json
import os
import pwd
import struct
import subprocess
import sys
import termios
import time
import traceback
import tty

TOP = "/opt/kern"
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(TOP, "tests/client"))

import leftovers  # noqa: E402
from kern_client import Client, RpcError  # noqa: E402

PROGRAM = os.path.join(TOP, "bin/kern-sidecar")
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
CGROUP = "/sys/fs/cgroup"
TRACING = "/sys/kernel/tracing"
MARK = "98765.25"  # an argument that no other process has
PATIENCE = 10.0 if os.path.exists(f"{CGROUP}/cgroup.controllers") else 0.5  # on v1 nobody tidies up behind the dead
LIMITS = {"memoryMb": 64, "pids": 20, "cpusMilli": 500, "timeoutMs": 120000}
HOG = "b = bytearray(200 << 20)\nfor i in range(0, len(b), 4096): b[i] = 1\nprint('alive')"
FORKS = (
    "import os, time\nn = 0\ntry:\n    while n < 100:\n        if os.fork() == 0: time.sleep(100); os._exit(0)\n"
    "        n += 1\n"
    "except OSError as e: print(e.errno)\nprint(n)"
)

# ---- ways to start a sidecar


def become(user, **env):
    """As su would without a login: no session, nothing in the environment."""
    home = pwd.getpwnam(user).pw_dir
    pairs = [f"{name}={value}" for name, value in {"PATH": PATH, "HOME": home, **env}.items()]
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", "env", "-i", *pairs]


def transient(*properties, user=False):
    """A systemd service that is our child as far as pipes go."""
    options = [word for name in properties for word in ("-p", name)]
    return ["systemd-run", *(["--user"] if user else []), "--quiet", "--pipe", "--wait", "--collect", *options]


def in_namespaces(script, *flags):
    return ["unshare", "--mount", *flags, "sh", "-euc", script + '; exec "$0" "$@"']


def runtime_dir():
    return f"/run/user/{pwd.getpwnam('kerntest').pw_uid}"


def user_manager():
    return become("kerntest", XDG_RUNTIME_DIR=runtime_dir())


WAYS = {
    # an ordinary user who has a user manager
    "user.bare": lambda: become("kerntest"),
    "user.login": lambda: transient("User=kerntest", "PAMName=login"),
    "user.service": lambda: [*user_manager(), *transient("Delegate=yes", user=True)],
    # one who has none
    "alone": lambda: become("kernalone"),
    "root.bare": lambda: [],
    "root.service": lambda: transient("Delegate=yes"),
    # as containers have it: no systemd, the cgroup namespace's own root, read-only, or nothing mounted
    "root.container": lambda: [
        *transient("Delegate=yes"),
        *in_namespaces(f"umount -l {CGROUP}; mount -t cgroup2 none {CGROUP}; mount -t tmpfs none /run", "--cgroup"),
    ],
    "root.readonly": lambda: in_namespaces(f"mount -o remount,bind,ro {CGROUP}; mount -t tmpfs none /run"),
    "root.unmounted": lambda: in_namespaces(f"umount --recursive {CGROUP}"),
}

# ---- writing


class Report:
    def __init__(self):
        self.fd = os.open("/dev/ttyS1", os.O_WRONLY | os.O_NOCTTY)
        tty.setraw(self.fd, termios.TCSANOW)

    def write(self, **fact):
        data = json.dumps(fact).encode() + b"\n"
        while data:
            data = data[os.write(self.fd, data) :]

    def gather(self, way, name, function, *args):
        """One fact, or why there is none."""
        begin = time.monotonic()
        try:
            value = function(*args)
        except Exception:
            self.write(way=way, name=name, failed=traceback.format_exc()[-3000:])
            return
        self.write(way=way, name=name, value=value, seconds=round(time.monotonic() - begin, 2))


# ---- looking from outside of the box


def output(argv):
    return subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def systemctl(way):
    return [*user_manager(), "systemctl", "--user"] if way.startswith("user") else ["systemctl"]


def units(way):
    """Scopes of sidecars, whatever their state."""
    lines = output([*systemctl(way), "list-units", "--all", "--plain", "--no-legend", "kern-sidecar-*"])
    return [line.split()[0] for line in lines.splitlines()]


def jobs(way):
    """How many the manager has had since its start (org.freedesktop.systemd1(5), NInstalledJobs)."""
    return int(output([*systemctl(way), "show", "--property=NInstalledJobs", "--value"]))


def homes(pid):
    """{controllers: path} of a process's cgroups, "" for v2."""
    with open(f"/proc/{pid}/cgroup", encoding="ascii") as file:
        return {line.split(":", 2)[1]: line.rstrip("\n").split(":", 2)[2] for line in file}


def directory(where, controller):
    """Where this machine mounts that cgroup of a process."""
    for controllers, path in where.items():
        if controller in controllers.split(","):
            return f"{CGROUP}/{controllers}{path}"
    return CGROUP + where[""]


def read(path):
    try:
        with open(path, encoding="ascii") as file:
            return file.read().strip()
    except FileNotFoundError:
        return None


FILES = {
    "memory": ["memory.max", "memory.swap.max", "memory.limit_in_bytes", "memory.memsw.limit_in_bytes"],
    "pids": ["pids.max"],
    "cpu": ["cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us"],
}


def leaf():
    """What the kernel says of the cgroup that the marked process is in."""
    until = time.monotonic() + 30  # run/started is not the exec yet
    while not leftovers.with_argument(MARK) and time.monotonic() < until:
        time.sleep(0.01)
    (pid,) = leftovers.with_argument(MARK)
    where = homes(pid)
    values = {
        name: read(f"{directory(where, controller)}/{name}") for controller, names in FILES.items() for name in names
    }
    return {
        "path": directory(where, "memory"),
        "values": {name: value for name, value in values.items() if value is not None},
        "tasks": len(read(directory(where, "pids") + "/cgroup.procs").split()),
    }


# ---- one sidecar


class Sidecar:
    """The started program, seen from outside: `pid` is its own, whatever stands in front of it."""

    def __init__(self, way, before):
        argv = [*WAYS[way](), PROGRAM, "--stdio"]
        self.way, self.before = way, before
        self.jobs_before = jobs(way)
        begin = time.monotonic()
        self.client = Client(argv[0], args=argv[1:], env={"PATH": PATH, "LANG": "C.UTF-8"})
        self.client.initialize()
        self.seconds = round(time.monotonic() - begin, 2)
        self.pid = self.client.welcome["server"]["pid"]

    def open(self, **params):
        return self.client.call("session/open", {**LIMITS, **params})

    def run(self, *argv, **params):
        answer = self.client.run(*argv, timeout=240, session=LIMITS, **params)
        kept = ("stdout", "exitCode", "signal", "fault", "usage")
        return {name: answer[name] for name in kept if name in answer}

    # facts

    def start(self):
        entry = read(f"/proc/{self.pid}/status")
        return {
            "uid": int(next(line for line in entry.splitlines() if line.startswith("Uid:")).split()[1]),
            "homes": homes(self.pid),
            "units": units(self.way),
            "jobs": jobs(self.way) - self.jobs_before,
            "seconds": self.seconds,
        }

    def effective(self):
        answer = self.open()
        self.client.call("session/close", {"sessionId": answer["sessionId"]})
        return answer["effective"]

    def doctor(self):
        checks = self.client.call("host/doctor", {}, timeout=120)["checks"]
        return {check["id"]: check for check in checks}

    def required(self):
        try:
            answer = self.open(requireLimits=True)
        except RpcError as error:
            return {"message": error.message, **error.data}
        self.client.call("session/close", {"sessionId": answer["sessionId"]})
        return {}

    def running(self):
        future = self.client.start("sleep", MARK, session=LIMITS)
        found = leaf()
        self.client.cancel(future)
        future.result(60)
        return found

    def attaches(self):
        """How many processes were moved between cgroups by three calls, and how many calls made a unit or a job."""
        was = jobs(self.way)
        with open(f"{TRACING}/trace", "w", encoding="ascii"):
            pass
        for _ in range(3):
            self.run("true")
        with open(f"{TRACING}/trace", encoding="ascii") as file:
            moved = [line for line in file if "cgroup_attach_task:" in line and "kern-sidecar-" in line]
        return {"moved": len(moved), "jobs": jobs(self.way) - was, "units": units(self.way)}

    def oom(self):
        return self.run("python3", "-Sc", HOG)

    def oom_grandchild(self):
        return self.run("sh", "-c", 'sh -c "python3 -Sc \\"\\$0\\"; exit 0" "$0"; echo main', HOG)

    def under_the_limit(self):
        return self.run("python3", "-Sc", HOG.replace("200", "30"))

    def pids(self):
        return self.run("python3", "-Sc", FORKS)

    def cpu(self):
        return self.run("sh", "-c", "while :; do :; done", cpusMilli=200, timeoutMs=3000)

    def nproc(self):
        return [self.run("nproc", cpusMilli=cpus)["stdout"] for cpus in (1000, 1500, 2000)]

    def left(self, below):
        """What is still there when the sidecar is not."""
        return {
            "processes": leftovers.still_there(below, within=10.0),
            "cgroups": leftovers.new_cgroups(self.before, within=PATIENCE),
            "units": units(self.way),
        }

    def close(self):
        below = leftovers.descendants(self.pid)
        return {"status": self.client.close(timeout=60.0), "violations": self.client.violations, **self.left(below)}

    def kill(self):
        """SIGKILL in the middle of a call."""
        self.client.start("sleep", MARK, session=LIMITS)
        below = leftovers.descendants(self.pid)
        os.kill(self.pid, 9)
        self.client.process.wait(60)
        return {"processes killed": len(below), **self.left(below)}


EVERYTHING = "running attaches oom oom_grandchild under_the_limit pids cpu nproc required doctor"
ENFORCED = "running attaches oom pids required doctor"
NOT_ENFORCED = "required pids oom doctor"
BATTERIES = {
    "v2": {
        "user.bare": EVERYTHING,
        "user.login": ENFORCED,
        "user.service": ENFORCED,
        "alone": NOT_ENFORCED,
        "root.bare": EVERYTHING,
        "root.service": ENFORCED,
        "root.container": ENFORCED,
        "root.readonly": NOT_ENFORCED,
        "root.unmounted": NOT_ENFORCED,
    },
    "hybrid": {"root.bare": EVERYTHING, "user.bare": NOT_ENFORCED},
}


def protocol(report):
    """Tests of the program's own suite, as an ordinary user who has a user manager; there is no node."""
    names = ("test_limits.py", "test_isolation.py", "test_run_argv.py", "test_run_code.py", "test_workspace_memory.py", "test_zygote.py")
    env = {"LANG": "C.UTF-8", "KERN_PROGRAM": PROGRAM, "KERN_VALIDATE": "0", "PYTHONPATH": HERE}
    argv = [*become("kerntest", **env), "python3", "-B", "-m", "pytest"]
    argv += ["-q", "-p", "no:cacheprovider", "-p", "report", f"--rootdir={TOP}/tests", "-k", "not node", "-m", "not endurance"]
    argv += [f"{TOP}/tests/protocol/{name}" for name in names]
    tests = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    last = []
    for line in tests.stdout:
        if line.startswith("{"):
            report.write(way="protocol", **json.loads(line))
        elif line.strip("\n.sFE"):
            last = [*last[-30:], line]
    return {"status": tests.wait(), "last": "".join(last)}


def observe(report, way, facts):
    before = leftovers.cgroups()
    sidecar = Sidecar(way, before)
    for name in ["start", "effective", *facts.split()]:
        report.gather(way, name, getattr(sidecar, name))
    report.gather(way, "close", sidecar.close)
    killed = Sidecar(way, before)
    report.gather(way, "kill", killed.kill)
    again = Sidecar(way, before)
    report.gather(way, "again", again.effective)
    report.gather(way, "close again", again.close)


# ---- workspaces with a project quota

QUOTA_DISK, QUOTA = "/dev/vdc", "/mnt"
GET_QUOTA = 0x800007 << 8 | 2  # QCMD(Q_GETQUOTA, PRJQUOTA) of linux/quota.h
TRY_TO_LEAVE = """
import errno, fcntl, os, struct
GET, SET = 0x801c581f, 0x401c5820
def attributes(path):
    fd = os.open(path, os.O_RDONLY)
    return fd, list(struct.unpack('5I8x', fcntl.ioctl(fd, GET, bytes(28))))
os.mkdir('d'); open('d/f', 'w').close()
for path in ('.', 'd', 'd/f'):
    fd, now = attributes(path)
    for change in ({3: 0}, {3: 7}, {0: now[0] & ~0x200}):
        wanted = [change.get(i, value) for i, value in enumerate(now)]
        try: fcntl.ioctl(fd, SET, struct.pack('5I8x', *wanted)); said = 'done'
        except OSError as e: said = errno.errorcode[e.errno]
        assert said != 'done' or wanted == now, (path, change)
        print(path, said if wanted != now else 'same', attributes(path)[1] == now)
"""


class QuotaSidecar:
    """Root's, with its private workspaces on that disk."""

    def __init__(self, state=QUOTA):
        env = {"PATH": PATH, "LANG": "C.UTF-8", "KERN_STATE_DIR": state}
        self.client = Client(PROGRAM, args=["--stdio"], env=env)
        self.client.initialize()

    def open(self, **params):
        answer = self.client.call("session/open", {"workspaceMaxMb": 4, **params})
        return answer["sessionId"], answer["effective"]["workspaceMaxMb"]

    def sh(self, session, *scripts):
        kept = ("stdout", "stderr", "exitCode", "signal", "fault")
        answers = [self.client.run("sh", "-c", script, sessionId=session, timeout=240) for script in scripts]
        return [{name: answer[name] for name in kept if name in answer} for answer in answers]


def project(limit):
    return int(limit["reason"].rsplit(None, 1)[1])


def project_quota(number):
    """Hard limit in KiB, bytes, limit of inodes, inodes."""
    data = ctypes.create_string_buffer(72)
    fd = os.open(QUOTA, os.O_RDONLY)
    rc = ctypes.CDLL(None, use_errno=True).syscall(443, fd, GET_QUOTA, ctypes.c_uint32(number), data)
    os.close(fd)
    values = struct.unpack("8QI4x", data.raw)
    return [values[i] for i in (0, 2, 3, 5)] if rc == 0 else os.strerror(ctypes.get_errno())


def quota_limits(sidecar, start):
    session, limit = sidecar.open(start=start)
    files = sidecar.sh(
        session,
        "head -c 4190208 /dev/zero > f && sync f",
        "head -c 4194304 /dev/zero > f && sync f",
        "head -c 1 /dev/zero > g",
        "exec 3< f; rm f g; head -c 1 /dev/zero > g",  # no name any more, but it is there
        "head -c 4194304 /dev/zero > g; head -c 1000000 /dev/zero > h",
    )
    session, _ = sidecar.open(start=start)
    names = sidecar.sh(
        session,
        "for i in $(seq 1023); do : > $i; done",
        "ln -s 1 more",
        "mkdir d",
        "ln -s 1 even-more",
        "rm more; mkdir d",
    )
    return {"effective": limit, "files": files, "names": names}


def quota_escape(sidecar, user):
    session, _ = sidecar.open(user=user)
    answer = sidecar.client.run("python3", "-Sc", TRY_TO_LEAVE, sessionId=session, timeout=240)
    return {name: answer[name] for name in ("stdout", "stderr", "exitCode")}


def quota_life(sidecar):
    """Two sidecars, and what is there while, after, and after a SIGKILL."""
    other = QuotaSidecar()
    session, limit = sidecar.open()
    theirs, their_limit = other.open()
    other.sh(theirs, "head -c 1000000 /dev/zero > f; mkdir d; : > d/e; sync f")
    numbers = [project(limit), project(their_limit)]
    found = {"numbers": numbers, "while": [project_quota(number) for number in numbers]}
    sidecar.client.call("session/close", {"sessionId": session})
    os.kill(other.client.pid, 9)
    other.client.process.wait(60)
    third = QuotaSidecar()
    third.client.run("true", timeout=240)
    found["third"] = third.client.close(timeout=60)
    found["after"] = [project_quota(number) for number in numbers]
    found["left"] = len(os.listdir(f"{QUOTA}/kern-sidecar-0"))  # the first one's
    return found


def quota_without(state):
    sidecar = QuotaSidecar(state)
    _, limit = sidecar.open()
    try:
        required = sidecar.open(requireLimits=True)
    except RpcError as error:
        required = error.data
    return {"effective": limit, "required": required, "status": sidecar.client.close(timeout=60)}


def quota(report):
    subprocess.run(["mount", "-o", "prjquota", QUOTA_DISK, QUOTA], check=True)
    sidecar = QuotaSidecar()
    for start in ("auto", "cold"):
        report.gather("quota", f"limits {start}", quota_limits, sidecar, start)
    for user in ("sandbox", "root"):
        report.gather("quota", f"escape {user}", quota_escape, sidecar, user)
    report.gather("quota", "required", lambda: sidecar.open(requireLimits=True)[1])
    report.gather("quota", "life", quota_life, sidecar)
    report.gather("quota", "close", sidecar.client.close, 60.0)
    report.gather("quota", "left", lambda: os.listdir(f"{QUOTA}/kern-sidecar-0"))
    subprocess.run(["umount", QUOTA], check=True)
    subprocess.run(["mount", QUOTA_DISK, QUOTA], check=True)  # counts, and does not enforce
    report.gather("quota", "counted only", quota_without, QUOTA)
    report.gather("quota", "none", quota_without, "/var/tmp")


# ---- a security profile of the kernel's

PROFILE = "kern-vm-test"
PROFILE_TEXT = f"""
profile {PROFILE} flags=(attach_disconnected) {{
  file,
  signal,
  deny /workspace/secret rw,
}}
"""
TRY_THE_PROFILE = """
print(open('/proc/self/attr/apparmor/current').read().strip())
open('ordinary', 'w').write('written\\n')
for mode in 'rw':
    try: open('secret', mode); print('opened')
    except OSError as e: print(e.errno)
"""


def profiled(way, user, start):
    """One call under the profile, one without, and one under a profile that is not loaded."""
    argv = [*WAYS[way](), PROGRAM, "--stdio"]
    client = Client(argv[0], args=argv[1:], env={"PATH": PATH, "LANG": "C.UTF-8"})
    client.initialize()
    answers = {}
    for name, params in {"under": {"apparmor": PROFILE}, "without": {}}.items():
        opened = client.call("session/open", {"user": user, "start": start, **params})
        session = opened["sessionId"]
        client.call("file/write", {"sessionId": session, "path": "secret", "content": "told"}, timeout=240)
        answer = client.run("python3", "-Sc", TRY_THE_PROFILE, sessionId=session, timeout=240)
        answers[name] = {key: answer[key] for key in ("stdout", "stderr", "exitCode")}
        answers[name]["effective"] = opened["effective"].get("apparmor")
    try:
        opened = client.call("session/open", {"apparmor": "kern-vm-none", "start": start})
        answers["unknown"] = client.run("echo", "ran", sessionId=opened["sessionId"], timeout=240)
    except RpcError as error:
        answers["unknown"] = {"message": error.message, **error.data}
    answers["status"] = client.close(timeout=60.0)
    return answers


def apparmor(report):
    with open("/etc/apparmor.d/kern-vm-test", "w", encoding="ascii") as file:
        file.write(PROFILE_TEXT)
    report.gather("apparmor", "load", output, ["apparmor_parser", "-r", file.name])
    for way in ("root.bare", "user.bare"):
        for user in ("sandbox", "root"):
            for start in ("auto", "cold"):
                report.gather("apparmor", f"{way} {user} {start}", profiled, way, user, start)


def wait_for_user_manager():
    unit = f"user@{pwd.getpwnam('kerntest').pw_uid}.service"
    for _ in range(600):
        if subprocess.run(["systemctl", "is-active", "--quiet", unit], check=False).returncode == 0:
            return
        time.sleep(0.1)
    raise RuntimeError(f"{unit} does not start")


def machine():
    mounts = [line.split()[:4] for line in open("/proc/mounts", encoding="utf-8") if " cgroup" in line]
    return {
        "kernel": os.uname().release,
        "systemd": output(["systemctl", "--version"]).splitlines()[0],
        "cgroup": sorted({entry[2] for entry in mounts}),
        "cpus": os.cpu_count(),
        "uptime": float(read("/proc/uptime").split()[0]),
    }


def main(report):
    words = dict(word.split("=", 1) for word in read("/proc/cmdline").split() if "=" in word)
    chosen = words["kern.vm"].split(",")
    wait_for_user_manager()
    report.gather("machine", "machine", machine)
    if not os.path.exists(f"{TRACING}/trace"):
        subprocess.run(["mount", "-t", "tracefs", "tracefs", TRACING], check=True)
    with open(f"{TRACING}/events/cgroup/cgroup_attach_task/enable", "w", encoding="ascii") as file:
        file.write("1")
    leftovers.become_subreaper()
    for way, facts in BATTERIES[chosen[0]].items():
        if not chosen[1:] or way in chosen[1:]:
            report.gather(way, "end", observe, report, way, facts)
    if chosen[0] == "v2" and (not chosen[1:] or "protocol" in chosen):
        report.gather("protocol", "end", protocol, report)
    if chosen[0] == "v2" and (not chosen[1:] or "apparmor" in chosen):
        report.gather("apparmor", "end", apparmor, report)
    if chosen[0] == "v2" and (not chosen[1:] or "quota" in chosen):
        report.gather("quota", "end", quota, report)


if __name__ == "__main__":
    reporter = Report()
    reporter.gather("main", "end", main, reporter)

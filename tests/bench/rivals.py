"""What one would use instead, each as a way to call it (flight.py), and how it is found on this machine."""

import json
import os
import select
import shutil
import subprocess
import sys
import time

from flight import Flight, Function, Threads

PATH = "/usr/local/bin:/usr/bin:/bin"
ENV = {"PATH": PATH, "HOME": "/tmp", "LANG": "C.UTF-8"}
TREE = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")


class Spawns(Flight):
    """A process for each call, from its spawn to its exit. `argv` is a list, or a function that makes one a call."""

    def __init__(self, argv, expected, env=None):
        self.argv, self.expected, self.env = argv, expected, env or ENV
        self.running, self.poll = {}, select.poll()

    def prepare(self):
        return self.argv() if callable(self.argv) else self.argv

    def start(self, argv):
        process = subprocess.Popen(
            argv, env=self.env, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        pidfd = os.pidfd_open(process.pid)
        self.running[pidfd] = process
        self.poll.register(pidfd, select.POLLIN)
        return pidfd

    def finished(self, timeout):
        ready = self.poll.poll(timeout * 1000)
        if not ready:
            raise TimeoutError(f"not done after {timeout} s")
        return [(pidfd, self._ended(pidfd)) for pidfd, _ in ready]

    def _ended(self, pidfd):
        process = self.running.pop(pidfd)
        status = process.wait()
        # one read each: a process that a rival left behind may hold them open
        answer = status, os.read(process.stdout.fileno(), 1 << 16), self._errors(process)
        process.stdout.close()
        process.stderr.close()
        self.poll.unregister(pidfd)
        os.close(pidfd)
        return answer

    @staticmethod
    def _errors(process):
        os.set_blocking(process.stderr.fileno(), False)
        try:
            return os.read(process.stderr.fileno(), 1 << 16)
        except BlockingIOError:
            return b""

    def land(self):
        for pidfd, process in list(self.running.items()):  # those that hang
            process.kill()
            self._ended(pidfd)

    def check(self, request, answer):
        status, stdout, stderr = answer
        if status != 0 or stdout != self.expected:
            said = stderr.decode("utf-8", "replace").strip().splitlines()
            raise RuntimeError(f"status {status}, {said[-1][:300] if said else stdout[:100]}")


class Lines:
    """A process that lives: a request written to it, and what it then has to say, read."""

    def __init__(self, argv):
        self.process = subprocess.Popen(argv, env=ENV, cwd="/", stdin=-1, stdout=-1, stderr=subprocess.DEVNULL, bufsize=0)

    def ask(self, request, *answers):
        self.process.stdin.write(request)
        for expected in answers:
            line = self.process.stdout.readline()
            if line != expected:
                raise RuntimeError(f"{line!r} instead of {expected!r}")

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


MARKER = b"__LC_SHELL_DONE__" + b"0" * 32
IN_SHELL = (b"echo 1\nprintf '" + MARKER + b" %s\\n' $?\n", b"1\n", MARKER + b" 0\n")
# The floor of a cell: no sandbox, no capture, no files, no limits - a line in, exec, a line out.
CELLS = """
import sys
names = {}
for line in iter(sys.stdin.buffer.readline, b""):
    exec(line, names)
    sys.stdout.buffer.write(b"done\\n")
    sys.stdout.buffer.flush()
"""


def shell(argv, stack):
    one = Lines(argv)
    stack.callback(one.close)
    return Function(lambda: one.ask(*IN_SHELL))


def first_of_shell(argv):
    def first():
        begin = time.perf_counter()
        one = Lines(argv)
        one.ask(*IN_SHELL)
        took = (time.perf_counter() - begin) * 1000
        one.close()
        return took

    return Function(first)


def bare_cells(stack):
    one = Lines(["python3", "-c", CELLS])
    stack.callback(one.close)
    return Function(lambda: one.ask(b"1\n", b"done\n"))


def bwrap_prefix():
    """All namespaces and the same tree as our default box."""
    argv = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--clearenv", "--setenv", "PATH", PATH]
    argv += ["--ro-bind", "/usr", "/usr", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/workspace"]
    for path in ("/etc/alternatives", "/etc/ld.so.cache"):
        argv += ["--ro-bind-try", path, path]
    for name in TREE:
        if os.path.islink(f"/{name}"):
            argv += ["--symlink", os.readlink(f"/{name}"), f"/{name}"]
        elif os.path.isdir(f"/{name}"):
            argv += ["--ro-bind", f"/{name}", f"/{name}"]
    return argv + ["--chdir", "/workspace", "--"]


def make_tree(where):
    """A root file system that waits for the host's /usr to be mounted into it."""
    for name in ("usr", "proc", "dev", "sys", "etc", "tmp", "workspace"):
        os.makedirs(os.path.join(where, name))
    for name in TREE:
        if os.path.isdir(f"/usr/{name}"):
            os.symlink(f"usr/{name}", os.path.join(where, name))


class Crun:
    """An OCI bundle over the host's /usr a kind of work, started once a call."""

    def __init__(self, scratch):
        self.scratch, self.count = os.path.join(scratch, "crun"), 0

    def way(self, work, expected):
        bundle = os.path.join(self.scratch, str(self.count))
        self.count += 1
        make_tree(os.path.join(bundle, "rootfs"))
        spec = ["crun", "spec"] + ([] if os.geteuid() == 0 else ["--rootless"])
        subprocess.run(spec, cwd=bundle, check=True, stdin=subprocess.DEVNULL)
        path = os.path.join(bundle, "config.json")
        with open(path, encoding="utf-8") as file:
            config = json.load(file)
        config["process"].update(terminal=False, args=work, cwd="/", env=[f"PATH={PATH}"])
        config["mounts"].insert(0, {"destination": "/usr", "type": "bind", "source": "/usr", "options": ["rbind", "ro"]})
        with open(path, "w", encoding="utf-8") as file:
            json.dump(config, file)
        return Spawns(lambda: self.argv(bundle), expected)

    def argv(self, bundle):
        self.count += 1
        return ["crun", "--cgroup-manager=disabled", "run", "--bundle", bundle, f"kern-bench-{os.getpid()}-{self.count}"]


class Kern:
    """The package kern-sandbox of PyPI and its program `kern`, with an image it builds of a tree like crun's, as no registry can
    be relied on; both keep what they have in `scratch`. `where`: what pip install --target was given, when not on the path."""

    def __init__(self, where, scratch, stack):
        if os.path.isdir(where):
            sys.path.insert(0, where)
        import kern_sandbox

        if not hasattr(kern_sandbox, "_fetch_image"):
            raise ImportError("kern_sandbox is our own package")
        self.module, self.scratch, self.stack = kern_sandbox, os.path.join(scratch, "kern"), stack
        beside = os.path.join(os.path.dirname(os.path.dirname(kern_sandbox.__file__)), "bin")
        self.program = shutil.which("kern", path=f"{beside}:{os.path.dirname(sys.executable)}:{PATH}")
        if not self.program:
            raise ImportError("there is no program kern")
        self.env = {**ENV, "HOME": self.scratch, "PATH": f"{os.path.dirname(self.program)}:{PATH}"}
        self.sandbox, self.count = None, 0

    def _build(self):
        if os.path.exists(f"{self.scratch}/tree"):
            return
        make_tree(f"{self.scratch}/tree")
        with open(f"{self.scratch}/Dockerfile", "w", encoding="ascii") as file:
            file.write(f"FROM scratch\nCOPY . /\nENV PATH={PATH}\n")
        argv = [self.program, "build", "-t", "kern-bench", "-f", f"{self.scratch}/Dockerfile", f"{self.scratch}/tree"]
        subprocess.run(argv, env=self.env, check=True, stdin=subprocess.DEVNULL, capture_output=True)

    def program_way(self, work, expected):
        self._build()
        return Spawns(lambda: self.argv(work), expected, self.env)

    def argv(self, work):
        self.count += 1
        name = f"bench-{os.getpid()}-{self.count}"
        return [self.program, "box", name, "--image", "kern-bench", "--pull", "never", "-v", "/usr:/usr:ro", "--rm", "--", *work]

    def session(self):
        self._build()
        if not self.sandbox:
            os.environ.update(HOME=self.scratch, PATH=self.env["PATH"])  # the package has nothing but these to ask
            os.environ.pop("XDG_CACHE_HOME", None)
            sandbox = self.module.Sandbox(image="kern-bench", pyc_cache=False, mounts={"/usr": ("/usr", "ro")})
            self.sandbox = self.stack.enter_context(sandbox)
        return self.sandbox

    def package_way(self, name):
        sandbox = self.session()
        if name == "true":
            return Function(lambda: self.check(sandbox.run(["true"]), ""))
        return Function(lambda: self.check(sandbox.run_code("print(1)"), "1\n"))

    def package_at_once(self):
        sandbox = self.session()
        return Threads(lambda: self.check(sandbox.run_code("print(1)"), "1\n"))

    def cells(self):
        kernel = self.stack.enter_context(self.session().kernel())
        return Function(lambda: self.check(kernel.run_code("1"), ""))

    @staticmethod
    def check(result, stdout):
        if result.exit_code != 0 or result.stdout != stdout:
            raise RuntimeError(str(result.stderr)[-300:])


class Docker:
    """Containers of images that are here already; none is ever pulled. What they cost is the daemon's, so nobody counts it."""

    WANTED = ("python", "node", "debian", "ubuntu", "fedora", "alpine", "busybox")

    def __init__(self):
        version = self._ask("version")
        if version.returncode != 0:
            raise OSError((version.stderr.strip().splitlines() or ["docker version failed"])[-1])
        listed = self._ask("image", "ls", "--format", "{{.Repository}}:{{.Tag}}").stdout.split()
        self.images = sorted((name for name in listed if "<none>" not in name), key=self._rank)[:8]
        if not self.images:
            raise OSError("docker has no image here")

    @staticmethod
    def _ask(*words):
        return subprocess.run(["docker", *words], env=ENV, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)

    def _rank(self, image):
        return next((n for n, word in enumerate(self.WANTED) if word in image), len(self.WANTED))

    def way(self, work, expected):
        """With the first image that can do this work."""
        for image in self.images:
            way = Spawns(["docker", "run", "--rm", "--pull", "never", "--network", "none", image, *work], expected)
            if not way.fly(calls=1)[0].why:
                return way
        raise OSError(f"no image here runs {work[0]}: {', '.join(self.images)}")


def ipykernel_cells(stack):
    """A cell of Jupyter: executed, its value and the kernel's idle read. The client's Python is in it; there is no other."""
    import ipykernel  # noqa: F401 - the kernel that is started
    import jupyter_client

    paths = os.pathsep.join(path for path in sys.path if path)
    manager = jupyter_client.KernelManager(kernel_name="python3")
    manager.start_kernel(env={**ENV, "PYTHONPATH": paths}, stderr=subprocess.DEVNULL)
    stack.callback(manager.shutdown_kernel, now=True)
    client = manager.blocking_client()
    stack.callback(client.stop_channels)
    client.start_channels()
    client.wait_for_ready(timeout=60)

    def cell():
        asked, value, idle = client.execute("1"), None, False
        while not idle:
            message = client.get_iopub_msg(timeout=60)
            if message["parent_header"].get("msg_id") == asked:
                value = message["content"]["data"]["text/plain"] if message["msg_type"] == "execute_result" else value
                idle = message["msg_type"] == "status" and message["content"]["execution_state"] == "idle"
        if value != "1" or client.get_shell_msg(timeout=60)["content"]["status"] != "ok":
            raise RuntimeError(f"a wrong value: {value}")

    return Function(cell)

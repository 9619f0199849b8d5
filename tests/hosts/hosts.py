"""Every kind of host, as a program that runs one cell and then waits: `drivers/`.

A driver runs `code.py` of its working directory and makes files in KERN_PLACE: `begun` when whoever sits there has asked for it,
`shown` when they see its end. It is started in a place of its own, so that what it leaves can be counted."""

import glob
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(TOP, "tests/client"))

import leftovers  # noqa: E402

INTEGRATIONS = os.path.join(TOP, "integrations")
DRIVERS = os.path.join(HERE, "drivers")
JUPYTER = os.path.join(TOP, "build/jupyter-packages")
NODE_PACKAGES = os.path.join(TOP, "build/node-packages")
PI = os.path.join(NODE_PACKAGES, "pi/node_modules/@earendil-works/pi-coding-agent/dist/bundle/cli.js")
NODE22 = os.path.join(NODE_PACKAGES, "node22/node_modules/node/bin/node")
NODE = next(filter(os.path.exists, ("/usr/bin/node", "/usr/local/bin/node")), "/usr/bin/node")
PROMPT = b'{"id": "1", "type": "prompt", "message": "go"}\n'


class Kit:
    """What the hosts are made of, in a directory that every user can read: copies, built and installed once."""

    def __init__(self, program):
        self.program = program
        self.directory = tempfile.mkdtemp(prefix="kern-hosts-", dir="/tmp")
        os.chmod(self.directory, 0o755)
        for name in ("python", "node", "pi", "nvim", "vim", "emacs", "vscode"):
            shutil.copytree(os.path.join(INTEGRATIONS, name), self.path(name), ignore=shutil.ignore_patterns("node_modules", "program", "out"))
        shutil.copytree(DRIVERS, self.path("drivers"))
        os.makedirs(self.path("node_modules"))
        os.rename(self.path("node"), self.path("node_modules/kern-sandbox"))
        os.rename(self.path("pi"), self.path("node_modules/kern-pi"))
        if os.path.isdir(JUPYTER):
            self._run([sys.executable, "-B", "-m", "kern_sandbox.jupyter", "install", "--prefix", self.path("jupyter"), "--language", "python"],
                      PYTHONPATH=f"{self.path('python')}:{JUPYTER}", KERN_SIDECAR=program)
        subprocess.run(["/usr/bin/python3", "-m", "compileall", "-q", self.path("python/kern_sandbox")], check=True)  # as pip does
        if os.path.exists(self._esbuild()):
            self._run([self._esbuild(), "src/extension.ts", "--bundle", "--platform=node", "--format=cjs", "--external:vscode",
                       "--outfile=out/extension.js", "--log-level=warning"], cwd=self.path("vscode"), NODE_PATH=self.path("node_modules"))
        subprocess.run(["chmod", "-R", "a+rX,go-w", self.directory], check=True)

    def path(self, name):
        return os.path.join(self.directory, name)

    def close(self):
        shutil.rmtree(self.directory)

    @staticmethod
    def _esbuild():
        return os.path.join(NODE_PACKAGES, "vscode/node_modules/.bin/esbuild")

    def _run(self, argv, cwd=None, **env):
        subprocess.run(argv, cwd=cwd or self.directory, env={**os.environ, **env}, check=True, stdout=subprocess.DEVNULL)

    def hosts(self):
        """{name: (argv, environment)} of those that are there, {name: why not} of the others."""
        kit, driver = self.path, lambda name: self.path(f"drivers/{name}")
        python = {"PYTHONPATH": kit("python")}
        node = {"NODE_PATH": kit("node_modules")}
        vim = ["-Nu", "NONE", "-i", "NONE", "-n", "--not-a-term", "--cmd", f"set runtimepath^={kit('vim')}", "-S", driver("vim.vim")]
        known = {
            "python": (["/usr/bin/python3", driver("python.py")], python, []),
            "node": ([NODE, driver("node.js")], node, [NODE]),
            "pi": ([NODE22, PI, "-ne", "-e", kit("node_modules/kern-pi"), "-e", driver("pi.ts"), "--model", "faux/scripted", "--no-session", "--mode", "rpc"],
                   {"PI_OFFLINE": "1"}, [NODE22, PI]),
            "nvim": (["nvim", "--headless", "-u", "NONE", "-i", "NONE", "--cmd", f"set rtp^={kit('nvim')}", "-c", f"luafile {driver('nvim.lua')}"], {},
                     [shutil.which("nvim")]),
            "vim": (["vim", *vim], {"TERM": "dumb"}, glob.glob("/usr/share/vim/vim9*/defaults.vim") and [shutil.which("vim")] or [None]),
            "emacs": (["emacs", "-Q", "--batch", "-L", kit("emacs"), "-l", driver("emacs.el")], {}, [shutil.which("emacs")]),
            "vscode": ([NODE, driver("vscode.js")], {"NODE_PATH": kit("vscode/test"), "KERN_EXTENSION": kit("vscode")}, [NODE, kit("vscode/out/extension.js")]),
            "jupyter": (["/usr/bin/python3", driver("jupyter.py")],
                        {"PYTHONPATH": f"{kit('python')}:{JUPYTER}", "JUPYTER_PATH": kit("jupyter/share/jupyter")}, [os.path.join(JUPYTER, "ipykernel")]),
        }
        missing = {name: next((str(need) for need in needs if not need or not os.path.exists(need)), None) for name, (_, _, needs) in known.items()}
        return ({name: (argv, env) for name, (argv, env, _) in known.items() if not missing[name]}, {name: why for name, why in missing.items() if why})


class Host:
    """One that runs."""

    def __init__(self, kit, name, code, user=None, **more):
        argv, env = kit.hosts()[0][name]
        self.name = name
        self.place = tempfile.mkdtemp(prefix="kern-host-", dir="/tmp")
        os.chmod(self.place, 0o755)
        for directory in ("project", "project/.git", "home", "tmp"):
            os.mkdir(self.path(directory))
        with open(self.path("project/code.py"), "w", encoding="ascii") as file:
            file.write(code)
        as_user = {}
        if user is not None and user != pwd.getpwuid(os.geteuid()).pw_name:
            subprocess.run(["chown", "-R", f"{user}:", self.place], check=True)
            as_user = {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []}
        env = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LANG": "C.UTF-8", "HOME": self.path("home"), "TMPDIR": self.path("tmp"),
               "KERN_SIDECAR": kit.program, "KERN_PLACE": self.place, "PI_CODING_AGENT_DIR": self.path("home"), **env, **more}
        with open(self.path("said"), "wb") as said:
            self.process = subprocess.Popen(argv, cwd=self.path("project"), env=env, stdin=subprocess.PIPE, stdout=said, stderr=said, **as_user)
        if name == "pi":
            self.process.stdin.write(PROMPT)
            self.process.stdin.flush()

    def path(self, name):
        return os.path.join(self.place, name)

    def when(self, name):
        """When a file of its place was made, or None."""
        try:
            return os.stat(self.path(name)).st_mtime
        except FileNotFoundError:
            return None

    def wait_for(self, done, what, seconds=60.0, pause=0.01):
        end = time.monotonic() + seconds
        while not (found := done()):
            if time.monotonic() > end or self.process.poll() is not None:
                with open(self.path("said"), encoding="utf-8", errors="replace") as said:
                    raise RuntimeError(f"{self.name}: {what} did not come: {said.read()[-2000:]}")
            time.sleep(pause)
        return found

    def sidecars(self):
        """Pids of sidecars that it has started."""
        ours = leftovers.descendants(self.process.pid)
        return [pid for pid in leftovers.with_argument("--stdio") if pid in ours]

    def kill(self):
        self.started = leftovers.descendants(self.process.pid)
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process.stdin.close()

    def remove(self):
        leftovers.still_there(self.started, within=10.0)  # a sidecar removes its own first
        shutil.rmtree(self.place)

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
            self._run(["/usr/bin/python3", "-B", "-m", "kern_sandbox.jupyter", "install", "--prefix", self.path("jupyter"), "--language", "python"],
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

    def kinds(self):
        """{name: Kind}"""
        kit = self.path
        vim = ["vim", "-Nu", "NONE", "-i", "NONE", "-n", "--not-a-term", "--cmd", f"set runtimepath^={kit('vim')}"]
        nvim = ["nvim", "--headless", "-u", "NONE", "-i", "NONE", "--cmd", f"set rtp^={kit('nvim')}"]
        pi = [NODE22, PI, "-ne", "--model", "faux/scripted", "--no-session", "--mode", "rpc", "-e", kit("node_modules/kern-pi"), "-e"]
        emacs = ["emacs", "-Q", "--batch", "-L", kit("emacs"), "-l"]
        lua = f"luafile {kit('drivers/nvim.lua')}"
        return {
            "python": Kind(["/usr/bin/python3", kit("drivers/python.py")], [], PYTHONPATH=kit("python")),
            "node": Kind([NODE, kit("drivers/node.js")], [NODE], NODE_PATH=kit("node_modules")),
            "pi": Kind([*pi, kit("drivers/pi.ts")], [NODE22, PI], PI_OFFLINE="1"),
            "nvim": Kind([*nvim, "-c", lua], [shutil.which("nvim")]),
            "vim": Kind([*vim, "-S", kit("drivers/vim.vim")], [shutil.which("vim"), *(glob.glob("/usr/share/vim/vim9*/defaults.vim") or [None])], TERM="dumb"),
            "emacs": Kind([*emacs, kit("drivers/emacs.el")], [shutil.which("emacs")]),
            "vscode": Kind([NODE, kit("drivers/vscode.js")], [NODE, kit("vscode/out/extension.js")], NODE_PATH=kit("vscode/test"), KERN_EXTENSION=kit("vscode")),
            "jupyter": Kind(["/usr/bin/python3", kit("drivers/jupyter.py")], [os.path.join(JUPYTER, "ipykernel")],
                            PYTHONPATH=f"{kit('python')}:{JUPYTER}", JUPYTER_PATH=kit("jupyter/share/jupyter")),
        }


class Kind:
    """How a host is started, and what has to be there for it; None stands for a program that is not."""

    def __init__(self, argv, needs, **env):
        self.argv, self.env = argv, env
        self.missing = next((need or argv[0] for need in needs if not need or not os.path.exists(need)), None)


class Host:
    """One that runs."""

    def __init__(self, kit, name, code, user=None, **more):
        kind = kit.kinds()[name]
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
               "KERN_SIDECAR": kit.program, "KERN_PLACE": self.place, "PI_CODING_AGENT_DIR": self.path("home"), **kind.env, **more}
        with open(self.path("said"), "wb") as said:
            self.process = subprocess.Popen(kind.argv, cwd=self.path("project"), env=env, stdin=subprocess.PIPE, stdout=said, stderr=said, **as_user)
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

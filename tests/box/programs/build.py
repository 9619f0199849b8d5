"""Builds the programs of this directory once a run, each by the compiler that a test asks for."""

import os
import shutil
import subprocess
import tempfile

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))


class Programs:
    def __init__(self):
        self.directory = tempfile.mkdtemp(prefix="kern-programs-", dir="/tmp")
        os.chmod(self.directory, 0o755)
        self.built = {}

    def build(self, source, compiler="cc", *flags):
        """The path of the program; skips the test when the compiler is not there."""
        key = (source, compiler, flags)
        if shutil.which(compiler) is None:
            pytest.skip(f"{compiler} is not installed")
        if key not in self.built:
            path = os.path.join(self.directory, f"{os.path.basename(source)[:-2]}-{len(self.built)}")
            command = [compiler, "-O1", "-Wall", "-Wextra", *flags, "-o", path, os.path.join(HERE, source), "-pthread"]
            made = subprocess.run(command, capture_output=True, text=True, check=False)
            assert made.returncode == 0, made.stderr
            os.chmod(path, 0o755)
            self.built[key] = path
        return self.built[key]

    def build_go(self, source, go):
        path = os.path.join(self.directory, os.path.basename(source)[:-3])
        if not os.path.exists(path):
            env = {**os.environ, "CGO_ENABLED": "0", "GOPROXY": "off", "GO111MODULE": "off"}
            env["GOCACHE"] = os.path.join(self.directory, "cache")
            command = [go, "build", "-o", path, os.path.join(HERE, source)]
            made = subprocess.run(command, capture_output=True, text=True, check=False, env=env, cwd="/")
            assert made.returncode == 0, made.stderr
            os.chmod(path, 0o755)
        return path

    def place(self, session, path, name=None):
        """Puts a program into a session's workspace -> its path in the box."""
        name = name or os.path.basename(path)
        target = os.path.join(session["workspace"], name)
        if not os.path.exists(target):
            shutil.copy2(path, target)
        return f"/workspace/{name}"

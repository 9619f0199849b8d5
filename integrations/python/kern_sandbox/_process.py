"""Which program the sidecar is, and how its process starts and ends."""

import os
import shutil
import stat
import subprocess
import sys
import threading
from collections import deque
from typing import Deque, List, Optional, Tuple

from .errors import SandboxError

BUNDLED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_sidecar")
NAME = "kern-sidecar"
LAST_WORDS = 64 * 1024  # of stderr that are kept for an error message
END_SECONDS = 5.0  # the sidecar has a second to kill its boxes; a busy machine more


def find_program() -> str:
    """The sidecar: $KERN_SIDECAR, else $KERN_BIN, else the one on PATH, else the one in this package."""
    if not sys.platform.startswith("linux"):
        raise SandboxError(
            "boxes are made by the Linux kernel, and this is not Linux",
            reason="host_unsupported",
            hint="run the program in a Linux virtual machine or under WSL2",
        )
    for variable in ("KERN_SIDECAR", "KERN_BIN"):
        named = os.environ.get(variable)
        if named:
            found = shutil.which(named)
            if found is None:
                raise SandboxError(
                    f"{variable} names {named!r}, which is no program", reason="start_failed", path=variable
                )
            return os.path.abspath(found)
    found = shutil.which(NAME)
    if found is not None:
        return os.path.abspath(found)
    bundled = os.path.join(BUNDLED, "bin", NAME)
    if os.path.exists(bundled):
        _take_from_others(BUNDLED)
        return bundled
    raise SandboxError(
        f"{NAME} is neither on PATH nor in this package",
        reason="start_failed",
        hint="install a wheel of this platform, or set KERN_SIDECAR to the program",
    )


def _take_from_others(tree: str) -> None:
    """The sidecar loads no plugin that a group may write, and installers leave such files under umask 002."""
    if not stat.S_IMODE(os.stat(os.path.join(tree, "bin", NAME)).st_mode) & (stat.S_IWGRP | stat.S_IWOTH):
        return
    for directory, _, names in os.walk(tree):
        for path in [directory, *(os.path.join(directory, name) for name in names)]:
            try:
                os.chmod(path, stat.S_IMODE(os.stat(path).st_mode) & ~(stat.S_IWGRP | stat.S_IWOTH))
            except PermissionError:
                return  # somebody else's installation; the sidecar says what is wrong with it


class Process:
    """A running sidecar: two pipes for the protocol, and a thread that never lets stderr fill up."""

    def __init__(self, program: str) -> None:
        self.program = program
        self._words: Deque[bytes] = deque()
        child_in, self.input = os.pipe()
        self.output, child_out = os.pipe()
        self.errors, child_err = os.pipe()
        try:
            # A session of its own: Ctrl-C in the terminal is for us, and cancels one call instead of ending all.
            self._child = subprocess.Popen(
                [program, "--stdio"],
                stdin=child_in,
                stdout=child_out,
                stderr=child_err,
                cwd="/",
                start_new_session=True,
            )
        except OSError as problem:
            self.close_pipes()
            raise SandboxError(
                f"{program} does not start: {problem.strerror}",
                reason="start_failed",
                hint="KERN_SIDECAR names another",
            ) from None
        finally:
            for fd in (child_in, child_out, child_err):
                os.close(fd)
        self.pid = self._child.pid
        self._drain = threading.Thread(target=self._drain_errors, name="kern-sidecar stderr", daemon=True)
        self._drain.start()

    def _drain_errors(self) -> None:
        while True:
            try:
                data = os.read(self.errors, 65536)
            except OSError:
                return
            if not data:
                return
            self._words.append(data[-LAST_WORDS:])
            while len(self._words) > 1 and sum(map(len, self._words)) > LAST_WORDS:
                self._words.popleft()

    def last_words(self) -> str:
        """The end of what it wrote to stderr."""
        return b"".join(self._words)[-LAST_WORDS:].decode(errors="replace")

    def how_it_ended(self) -> str:
        """Its exit status and last line, for a person."""
        try:
            code = self._child.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            return "closed its output"
        self._drain.join(1)
        lines: List[str] = self.last_words().strip().splitlines()
        status = f"was killed by signal {-code}" if code < 0 else f"ended with exit status {code}"
        return status + (f" ({lines[-1][:500]})" if lines else "")

    def end(self) -> Optional[int]:
        """End of input: it kills its boxes and ends. -> its exit status."""
        try:
            code = self._child.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._child.kill()
            code = self._child.wait()
        self._drain.join(1)
        return code

    def pipes(self) -> Tuple[int, int, int]:
        return self.input, self.output, self.errors

    def close_pipes(self) -> None:
        for fd in self.pipes():
            try:
                os.close(fd)
            except OSError:
                pass

"""How a cell that failed is told to the client: an `error` of Jupyter, whose name is typed."""

import re
import threading
from typing import Any, Callable, Dict, List, Sequence

from ..errors import SandboxError
from ..results import ExecutionResult

Error = Dict[str, Any]
RESTART = "its variables are gone: restart the kernel"
HELD_SECONDS = 2.0
# where python and node begin to print an error that ended the cell
BEGINS = re.compile(
    r"^(Traceback \(most recent call last\):|  \+ Exception Group Traceback|  File \"|\[cell \d+\]:\d+|Interrupted: )",
    re.MULTILINE,
)


def of_exception(problem: SandboxError) -> Error:
    """The cell did not run."""
    dead = problem.reason in ("kernel_dead", "gone")
    said = f"{problem.message.split(';')[0]}; {RESTART}" if dead else str(problem)
    return _error(f"{type(problem).__name__}.{problem.reason}", said, [])


def of_interrupt(traceback: Sequence[str] = ()) -> Error:
    """The name is the same in every language: hosts know it."""
    return _error("KeyboardInterrupt", "", list(traceback))


def of_result(result: ExecutionResult) -> List[Error]:
    """The error of a cell that ran, if there is one."""
    if result.cell_status == "ok":
        return []
    if result.cell_status == "dead" and result.fault is None:
        how = f"by the signal {result.signal}" if result.signal else f"with exit status {result.exit_code}"
        return [_error("SandboxFault.ended", f"the interpreter has ended {how}; {RESTART}", [])]
    if result.fault is not None and result.fault.type != "escape_blocked":
        kept = "" if result.state_kept else f"; {RESTART}"
        return [_error(f"SandboxFault.{result.fault.type}", result.fault.message + kept, [])]
    traceback = result.error.traceback.rstrip("\n").split("\n") if result.error is not None else []
    if result.cell_status == "interrupted":
        return [of_interrupt(traceback)]
    if result.error is not None:
        return [_error(result.error.name, result.error.message, traceback)]
    return [_error("ExitStatus", str(result.exit_code), [])]


def _error(name: str, value: str, traceback: List[str]) -> Error:
    return {"ename": name, "evalue": value, "traceback": traceback or [f"{name}: {value}" if value else name]}


class HeldStderr:
    """stderr on its way to the notebook. An interpreter prints the error that ends a cell, and the notebook shows the error
    itself: what begins like one is held back until it is known which of the two it is."""

    def __init__(self, publish: Callable[[str], None]) -> None:
        self._publish = publish
        self._held = ""
        self._lock = threading.Lock()

    def write(self, text: str) -> None:
        with self._lock:
            if self._held:
                self._held += text
                return
            found = BEGINS.search(text)
            at = found.start() if found else len(text)
            if at:
                self._publish(text[:at])
            self._held = text[at:]
        if self._held:
            timer = threading.Timer(HELD_SECONDS, self.flush)  # the cell goes on: it was a text like any other
            timer.daemon = True
            timer.start()

    def flush(self) -> None:
        with self._lock:
            held, self._held = self._held, ""
            if held:
                self._publish(held)

    def end(self, result: ExecutionResult) -> None:
        """The cell has ended."""
        printed = result.error.traceback.rstrip("\n") if result.error is not None else ""
        with self._lock:
            kept = self._held.rstrip("\n")
            if printed and kept.endswith(printed):
                self._held = kept[: len(kept) - len(printed)]
        self.flush()

"""`Kernel`: one interpreter, many cells."""

from types import TracebackType
from typing import TYPE_CHECKING, Any, Dict, Optional, Type, Union

from . import _shared
from ._cells import Listener, OnDisplay, OnInput
from ._connection import Connection
from ._options import Callback
from ._requests import drive
from ._session import INHERIT, Inherit
from .errors import SandboxError
from .results import ExecutionResult

if TYPE_CHECKING:
    from ._core import Core


class Kernel:
    """An interpreter in a box of its own that keeps its state between cells, made by `Sandbox.kernel()`.

    Cells run in order and share everything; a sandbox is still around them. A cell that runs into its deadline is
    interrupted, and `result.state_kept` says whether the interpreter lived on. After its death every cell raises
    `SandboxError` with the reason `kernel_dead`, until `restart()`.
    """

    def __init__(self, core: "Core", connection: Connection, kernel_id: str, language: str) -> None:
        self._core = core
        self._connection = connection
        self._id = kernel_id
        self._closed = False
        self.language = language

    def run_code(
        self,
        code: str,
        *,
        timeout_s: Optional[float] = None,
        on_stdout: Union[Callback, None, Inherit] = INHERIT,
        on_stderr: Union[Callback, None, Inherit] = INHERIT,
        on_display: Optional[OnDisplay] = None,
        on_input: Optional[OnInput] = None,
        lossless: bool = False,
    ) -> ExecutionResult:
        """Runs a cell. The result has `cell_status`, `execution_count` and `state_kept` besides.

        * `on_display`: gets every `Display` while the code runs, in order with the output
        * `on_input`: called with a prompt and whether it is for a password when the code asks for a line (Python and
          Node); gives the line, or None for the end of input. Without it the code has no input
        * `lossless`: the box waits for the callbacks instead of going on without them
        """
        listener = Listener(on_display, on_input, lossless)
        options = {"timeout_s": timeout_s, "on_stdout": on_stdout, "on_stderr": on_stderr, "listener": listener}
        self._check_open()
        return drive(self._core.kernel_run(self._connection, self._id, code, options), _shared.connection)

    def interrupt(self) -> bool:
        """Interrupts the cell that runs now, from another thread; its state stays. -> whether one was running"""
        return bool(self._call("kernel/interrupt")["running"])

    def restart(self) -> None:
        """A new interpreter, with nothing of the old one."""
        self._call("kernel/restart")

    def close(self) -> None:
        """Ends the interpreter. Closing twice is fine."""
        if self._closed:
            return
        self._closed = True
        self._connection.kernel_closed(self._id)
        if self._connection.ended is None:
            try:
                self._connection.call("kernel/close", {"kernelId": self._id})
            except SandboxError as problem:
                if problem.reason not in ("unknown_handle", "gone"):
                    raise

    def _check_open(self) -> None:
        if self._closed:
            raise SandboxError("the kernel is closed", reason="unknown_handle")

    def _call(self, method: str) -> Dict[str, Any]:
        self._check_open()
        result: Dict[str, Any] = self._connection.call(method, {"kernelId": self._id})
        return result

    def __enter__(self) -> "Kernel":
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], problem: Optional[BaseException], where: Optional[TracebackType]
    ) -> None:
        self.close()

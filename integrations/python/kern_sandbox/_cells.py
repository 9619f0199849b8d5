"""What a cell tells while it runs: displays as they come, questions, and output that waits for its reader."""

import base64
import logging
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Callable, Dict, Mapping, Optional

from . import _options as check
from ._requests import Request, bytes_of, drive, is_blob
from .errors import SandboxError
from .results import SandboxFault, fault_of, payload_of, text_of

if TYPE_CHECKING:
    from ._connection import OnKernel
    from ._core import Core

log = logging.getLogger("kern_sandbox")
CREDIT_BYTES = 64 << 10  # of output are taken before the box is told so
ANSWER_BYTES = 1 << 19  # in one message; the queue of a run takes twice as much
AGAIN_S = 0.01  # when it is full
LATE = ("gone", "unknown_handle")  # the cell has ended in the meantime


@dataclass(frozen=True)
class Display:
    """A display at the moment when the code shows it, a claim of the code.

    `op`: `display` shows something new, `update` replaces what has the same `display_id`, `clear` takes everything of the
    cell away (`wait`: only when the next display comes), `value` is the value of the cell. `data` as in `Result`.
    """

    op: str
    data: Dict[str, str] = field(default_factory=dict)
    metadata: Dict[str, Any] = field(default_factory=dict)
    display_id: Optional[str] = None
    wait: bool = False


OnDisplay = Callable[[Display], Any]
OnInput = Callable[[str, bool], Optional[str]]
OnOutput = Callable[[str, str], Any]
OnState = Callable[[str, Optional[SandboxFault]], Any]


class Listener:
    """The callbacks of one cell beyond those for its output. They run in the thread that waits for the cell."""

    def __init__(self, on_display: Optional[OnDisplay], on_input: Optional[OnInput], lossless: bool) -> None:
        for name, given in (("on_display", on_display), ("on_input", on_input)):
            if given is not None and not callable(given):
                raise check.wrong(name, "a function", given, "invalid_type")
        self._on_display = on_display
        self._on_input = on_input
        self._lossless = lossless
        self._taken = 0

    def attach(self, core: "Core", request: Request) -> None:
        """Makes the request of a cell tell us what happens."""
        if self._on_display is None and self._on_input is None and not self._lossless:
            return
        output, connection = request.on_event, request.connection
        run_id = request.run_id or core.new_run_id()

        def deliver(event: Mapping[str, Any]) -> None:
            if "prompt" in event:
                self._ask(connection, run_id, event)
            elif "op" in event:
                self._show(connection, event)
            elif output is not None:
                output(event)
            self._give_credit(connection, run_id, event.get("bytes", 0))

        request.run_id, request.on_event = run_id, deliver
        request.params = {**request.params, "runId": run_id, "stream": "lossless" if self._lossless else "live"}
        if self._on_input is not None:
            request.params["allowInput"] = True

    def _show(self, connection: Any, event: Mapping[str, Any]) -> None:
        if self._on_display is None:
            return
        data = {mime: payload_of(mime, _inline(connection, value)) for mime, value in event.get("data", {}).items()}
        metadata, wait = event.get("metadata", {}), event.get("wait", False)
        self._on_display(Display(event["op"], data, metadata, event.get("displayId"), wait))

    def _ask(self, connection: Any, run_id: str, event: Mapping[str, Any]) -> None:
        """Who has no answer ends the input: the code gets an EOFError, and nothing waits for ever."""
        answer: Optional[str] = None
        try:
            if self._on_input is not None:
                answer = self._on_input(event["prompt"], event["password"])
        except Exception:
            log.exception("a callback of kern_sandbox failed")
        if answer is None:
            _tell(connection, "run/stdin", {"runId": run_id, "eof": True})
            return
        line = (answer + "\n").encode(errors="replace")
        for at in range(0, len(line), ANSWER_BYTES):
            text = base64.b64encode(line[at : at + ANSWER_BYTES]).decode()
            _tell(connection, "run/stdin", {"runId": run_id, "base64": text})

    def _give_credit(self, connection: Any, run_id: str, taken: int) -> None:
        self._taken += taken
        if self._lossless and self._taken >= CREDIT_BYTES:
            _tell(connection, "run/credit", {"runId": run_id, "bytes": self._taken})
            self._taken = 0


def _inline(connection: Any, value: Any) -> Any:
    if not is_blob(value):
        return value
    return {"base64": base64.b64encode(drive(bytes_of(connection, value, keep=True), lambda: connection)).decode()}


def between_cells(on_output: Optional[OnOutput], on_state: Optional[OnState]) -> "Optional[OnKernel]":
    """What a kernel tells of itself, for its callbacks."""
    for name, given in (("on_output", on_output), ("on_state", on_state)):
        if given is not None and not callable(given):
            raise check.wrong(name, "a function", given, "invalid_type")

    def on_kernel(method: str, params: Mapping[str, Any]) -> None:
        if method == "kernel/output" and on_output is not None:
            on_output(params["stream"], params["text"] if "text" in params else text_of(params))
        elif method == "kernel/state" and on_state is not None:
            on_state(params["state"], fault_of(params))

    return on_kernel if on_output or on_state else None


def _tell(connection: Any, method: str, params: Dict[str, Any]) -> None:
    """What comes too late is nothing to anybody; what cannot be taken now is said again."""
    while True:
        try:
            connection.call(method, params)
            return
        except SandboxError as problem:
            if problem.reason in LATE:
                return
            if not problem.retryable:
                raise
        time.sleep(AGAIN_S)

"""A call that was started without waiting for it."""

import base64
from typing import TYPE_CHECKING, Any, Dict, Optional, Union

from . import _options as check
from ._calls import Call
from ._connection import Connection
from ._requests import OnEvent, Request, drive, wait, whole
from .results import ExecutionResult, result_of

if TYPE_CHECKING:
    from ._core import Core


class Running:
    """A call on its way: `result()` waits, `cancel()` ends it early. Any thread may use it."""

    def __init__(self, core: "Core", connection: Connection, call: Call, on_event: Optional[OnEvent]) -> None:
        self._core = core
        self._connection = connection
        self._call = call
        self._on_event = on_event
        self._result: Optional[ExecutionResult] = None

    @classmethod
    def start(cls, core: "Core", request: Request, interactive: bool) -> "Running":
        if request.run_id is None:
            request.run_id = core.new_run_id()
        params = {**request.params, "runId": request.run_id}
        if interactive:
            params["interactive"] = True
        call = request.connection.new_call(Call, request.method, request.run_id)
        request.connection.post(call, params)
        return cls(core, request.connection, call, request.on_event)

    def result(self) -> ExecutionResult:
        """Waits for the end; callbacks run here, in the thread that waits. Ctrl-C cancels the call."""
        if self._result is None:
            try:
                message = wait(self._connection, self._call, self._on_event)
            except BaseException:
                self._connection.give_up(self._call)
                raise
            resolved = drive(whole(self._connection, message), lambda: self._connection)
            self._result = result_of(resolved, self._core.image)
        return self._result

    def done(self) -> bool:
        """Has the call ended?"""
        self._connection.drain(self)
        return self._call.reply is not None

    def cancel(self) -> None:
        """Ends the call; `result()` then has the fault `cancelled` and what there was so far."""
        self._connection.cancel(self._call)

    def write_stdin(self, data: Union[str, bytes], *, eof: bool = False) -> None:
        """Gives input to a call that was started with `interactive=True`."""
        given = data.encode() if isinstance(data, str) else bytes(data)
        params: Dict[str, Any] = {"runId": self._call.run_id, "eof": eof}
        if given:
            params["base64"] = base64.b64encode(given).decode()
        self._connection.call("run/stdin", params)

    def close_stdin(self) -> None:
        """That was all the input."""
        self.write_stdin(b"", eof=True)

    def send_signal(self, name: str) -> None:
        """Sends a signal to the main process: `TERM`, `INT`, …"""
        if not isinstance(name, str):
            raise check.wrong("name", "the name of a signal, without SIG", name, "invalid_type")
        self._connection.call("run/signal", {"runId": self._call.run_id, "signal": name.upper().removeprefix("SIG")})

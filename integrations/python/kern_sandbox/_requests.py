"""Operations as generators: they yield the requests that they need and get the results sent in, so that one text serves
threads and tasks alike."""

import base64
import inspect
import json
import logging
from typing import Any, Awaitable, Callable, Dict, Generator, Mapping, Optional, TypeVar, Union

from ._calls import AsyncCall, Call
from ._connection import Connection
from .errors import SandboxError

T = TypeVar("T")
OnEvent = Callable[[Mapping[str, Any]], Union[None, Awaitable[None]]]
log = logging.getLogger("kern_sandbox")
PAGE = 1 << 20  # of a blob


class Request:
    """A request that an operation wants to be made; its result is sent back into the generator."""

    __slots__ = ("connection", "method", "params", "run_id", "on_event")

    def __init__(
        self,
        connection: Connection,
        method: str,
        params: Mapping[str, Any],
        run_id: Optional[str] = None,
        on_event: Optional[OnEvent] = None,
    ) -> None:
        self.connection = connection
        self.method = method
        self.params = params
        self.run_id = run_id
        self.on_event = on_event


class Connect:
    """The operation wants the sidecar, started if need be."""


CONNECT = Connect()
Operation = Generator[Union[Request, Connect], Any, T]


def drive(operation: "Operation[T]", connect: Callable[[], Connection]) -> T:
    """Carries an operation out, in this thread."""
    try:
        wanted = next(operation)
        while True:
            try:
                answer: Any = perform(wanted) if isinstance(wanted, Request) else connect()
            except BaseException as problem:
                wanted = operation.throw(problem)
            else:
                wanted = operation.send(answer)
    except StopIteration as end:
        value: T = end.value
        return value


def perform(request: Request) -> Any:
    call = request.connection.new_call(Call, request.method, request.run_id)
    try:
        request.connection.post(call, request.params)
        return wait(request.connection, call, request.on_event)
    except BaseException:
        request.connection.give_up(call)
        raise


def wait(connection: Connection, call: Call, on_event: Optional[OnEvent]) -> Any:
    while connection.step(call):
        event = call.take_event()
        if on_event is not None:
            try:
                on_event(event)
            except Exception:
                log.exception("a callback of kern_sandbox failed")
    return connection.outcome(call)


async def drive_async(operation: "Operation[T]", connect: Callable[[], Awaitable[Connection]]) -> T:
    """Carries an operation out, in this task."""
    try:
        wanted = next(operation)
        while True:
            try:
                answer: Any = await (perform_async(wanted) if isinstance(wanted, Request) else connect())
            except BaseException as problem:
                wanted = operation.throw(problem)
            else:
                wanted = operation.send(answer)
    except StopIteration as end:
        value: T = end.value
        return value


async def perform_async(request: Request) -> Any:
    connection = request.connection
    call = connection.new_call(AsyncCall, request.method, request.run_id)
    try:
        connection.post(call, request.params)
        while await connection.step_async(call):
            event = call.take_event()
            if request.on_event is not None:
                try:
                    waiting = request.on_event(event)
                    if inspect.isawaitable(waiting):
                        await waiting
                except Exception:
                    log.exception("a callback of kern_sandbox failed")
    except BaseException:
        connection.cancel(call)  # its reply comes to nobody
        raise
    return connection.outcome(call)


# -- what does not fit a line


def is_blob(value: Any) -> bool:
    return isinstance(value, dict) and "blob" in value


def bytes_of(connection: Connection, value: Any, keep: bool = False) -> "Operation[bytes]":
    """The bytes of a Text. A blob is freed, unless there is another who wants it."""
    if isinstance(value, str):
        return value.encode()
    if "base64" in value:
        return base64.b64decode(value["base64"])
    blob = value["blob"]["id"]
    data = bytearray()
    eof = False
    while not eof:
        page = yield Request(connection, "blob/read", {"id": blob, "offset": len(data), "length": PAGE})
        data += page["text"].encode() if "text" in page else base64.b64decode(page["base64"])
        eof = page["eof"]
    if not keep:
        yield Request(connection, "blob/free", {"id": blob})
    return bytes(data)


def listed(connection: Connection, value: Any) -> "Operation[Any]":
    """An array or object that may have come as a blob."""
    if not is_blob(value):
        return value
    data = yield from bytes_of(connection, value)
    return json.loads(data)


def whole(connection: Connection, message: Dict[str, Any]) -> "Operation[Dict[str, Any]]":
    """An ExecutionResult without blobs: every Text is a string or base64."""
    for name in ("runtimeNotes", "files", "results", "error"):
        if is_blob(message.get(name)):
            message[name] = yield from listed(connection, message[name])
    for name in ("stdout", "stderr", "rendered"):
        yield from _resolve(connection, message, name)
    for result in message["results"]:
        for mime in result["data"]:
            yield from _resolve(connection, result["data"], mime)
    if "error" in message:
        yield from _resolve(connection, message["error"], "traceback")
    return message


def _resolve(connection: Connection, holder: Dict[str, Any], name: str) -> "Operation[None]":
    if is_blob(holder.get(name)):
        data = yield from bytes_of(connection, holder[name])
        holder[name] = {"base64": base64.b64encode(data).decode()}


INLINE = 2 << 20  # bytes that go into a request; more goes into a blob first
BLOB_MAX = 64 << 20


def sent(connection: Connection, name: str, value: Union[str, bytes]) -> "Operation[Any]":
    """A Text for a request."""
    if isinstance(value, str) and len(value) <= INLINE:
        return value
    try:
        data = value.encode() if isinstance(value, str) else bytes(value)
    except UnicodeEncodeError:
        raise SandboxError(f"{name} has a lone surrogate, which is no character", path=name) from None
    if len(data) <= INLINE:
        return {"base64": base64.b64encode(data).decode()}
    params: Dict[str, Any] = {}
    for at in range(0, len(data), INLINE):
        params["base64"] = base64.b64encode(data[at : at + INLINE]).decode()
        made = yield Request(connection, "blob/write", params)
        params = {"id": made["id"]}
    return {"blob": {"id": params["id"]}}

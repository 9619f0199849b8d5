"""What a sandbox does, as operations of `_requests`: the same for `Sandbox` and `AsyncSandbox`."""

import base64
import itertools
import os
import weakref
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, TypedDict, Union

from . import _options as check
from ._connection import Connection, OnKernel
from ._options import Callback
from ._requests import CONNECT, BLOB_MAX, OnEvent, Operation, Request, bytes_of, listed, sent, whole
from ._session import INHERIT, Inherit, Options
from .errors import SandboxError, SidecarLost
from .results import ExecutionResult, FileInfo, file_of, result_of, path_of

_numbers = itertools.count(1)
Event = Mapping[str, Any]


class CallOptions(TypedDict, total=False):
    """What any call can be given. What is absent, or None, is the sandbox's own.

    * `timeout_s`: deadline in seconds, from the start of the code; kept outside of the box
    * `stdin`: what the code reads, then the end of the file; without it there is nothing to read
    * `env`: variables, added to the sandbox's
    * `cwd`: working directory in the box
    * `memory_mb`, `cpus`, `pids`, `max_output_bytes`: limits of this call
    * `track_files`: report changed files
    * `merge`: stderr goes into `stdout`, in the order in which it was written
    * `render`: `result.rendered` is then text of at most so many characters (500 to 262144) that is safe to show a model
    * `on_stdout`, `on_stderr`: get pieces of output as bytes while the code runs; None switches the sandbox's own off. A
      slow function misses pieces, and its exceptions are logged; `result.stdout` has everything up to `max_output_bytes`
    """

    timeout_s: Optional[float]
    stdin: Union[str, bytes, None]
    env: Optional[Mapping[str, str]]
    cwd: Optional[str]
    memory_mb: Optional[int]
    cpus: Optional[float]
    pids: Optional[int]
    max_output_bytes: Optional[int]
    track_files: Optional[bool]
    merge: Optional[bool]
    render: Optional[int]
    on_stdout: Union[Callback, None, Inherit]
    on_stderr: Union[Callback, None, Inherit]


CALL_NAMES = frozenset(CallOptions.__annotations__)
SAME_IN_CALLS = {
    "cwd": "cwd",
    "memory_mb": "memoryMb",
    "pids": "pids",
    "max_output_bytes": "maxOutputBytes",
    "track_files": "trackFiles",
    "merge": "merge",
}


class Core:
    """A session of the sidecar, and every operation on it."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._session: Optional[Tuple[Connection, str]] = None
        self.opened: Mapping[str, Any] = {}
        self.notes: List[str] = []
        self._forget: Optional["weakref.finalize[Any, Any]"] = None

    # -- the session

    def open(self) -> Operation[None]:
        if self._session is not None:
            raise SandboxError("the sandbox is open already", reason="busy")
        yield from self._open()

    def _open(self) -> Operation[Tuple[Connection, str]]:
        connection: Connection = yield CONNECT
        session_id = f"s{next(_numbers)}"
        self._forget = weakref.finalize(self, connection.discard, session_id)
        self._forget.atexit = False
        try:
            self.opened = yield from self._open_session(connection, session_id)
            if self.options.setup is not None:
                yield from self._setup(connection, session_id, self.options.setup)
        except BaseException:
            self._forget()
            raise
        self.notes = [f"kern: note: {note['message']}" for note in self.opened["notes"]] + self.notes
        self._session = (connection, session_id)
        return self._session

    def _open_session(self, connection: Connection, session_id: str) -> Operation[Any]:
        params = {**self.options.params, "sessionId": session_id}
        if "workspace" in params:
            os.makedirs(params["workspace"], exist_ok=True)
        try:
            return (yield Request(connection, "session/open", params))
        except SandboxError as problem:
            if problem.reason != "unsupported_option" or problem.path != "/prewarm":
                raise
        # Only speed is lost, and it is said.
        self.notes = ["kern: note: this sidecar keeps no boxes ready: prewarm has no effect"]
        params.pop("prewarm")
        return (yield Request(connection, "session/open", params))

    def session(self) -> Operation[Tuple[Connection, str]]:
        """The open session. One on a directory of the host is opened again when the sidecar was lost; a private one is
        lost with its files, and nothing shall go on as if they were there."""
        if self._session is None:
            raise SandboxError("the sandbox is not open", reason="unknown_handle", hint="use it in a with statement")
        connection, _ = self._session
        if connection.ended is None:
            return self._session
        if self.options.workspace is None or "forked" in connection.ended:
            raise SidecarLost(
                f"the session is gone with its private workspace: the sidecar {connection.ended}",
                reason="gone",
                hint="open a new Sandbox; one with workspace= outlives a sidecar",
            )
        return (yield from self._open())

    def close(self) -> Operation[None]:
        session, self._session = self._session, None
        if session is None:
            return
        connection, session_id = session
        if self._forget is not None:
            self._forget.detach()
        if connection.ended is not None:
            return
        try:
            yield Request(connection, "session/close", {"sessionId": session_id})
        except SidecarLost:
            pass

    @property
    def image(self) -> str:
        return str(self.opened["image"]["ref"]) if self.opened else self.options.image or "host"

    def _setup(self, connection: Connection, session_id: str, command: str) -> Operation[ExecutionResult]:
        message = yield Request(connection, "session/setup", {"sessionId": session_id, "command": command})
        result = result_of((yield from whole(connection, message)), self.image)
        if not result.success:
            said = (result.code_stderr.strip() or result.stdout.strip())[-400:]
            if result.fault is not None:
                said = f"{result.fault.type}: {result.fault.message}; {said}"
            raise SandboxError(
                f"setup failed (exit {result.exit_code}): {said}",
                reason="setup_failed",
                path="setup",
                details={"result": result},
            )
        return result

    def setup(self, command: str) -> Operation[ExecutionResult]:
        check.field("command", command, "SessionSetupParams", "command")
        connection, session_id = yield from self.session()
        return (yield from self._setup(connection, session_id, command))

    # -- runs

    def run_code(self, code: str, language: str, options: CallOptions) -> Operation[ExecutionResult]:
        return (yield from self.finish((yield from self.code_request(code, language, options))))

    def run(self, argv: Sequence[str], options: CallOptions) -> Operation[ExecutionResult]:
        return (yield from self.finish((yield from self.argv_request(argv, options))))

    def run_code_once(self, code: str, language: str, options: CallOptions) -> Operation[ExecutionResult]:
        """In a session that is made for this call, in the same request."""
        params = self.code_params(code, language)
        connection: Connection = yield CONNECT
        session = {name: value for name, value in self.options.params.items() if name != "prewarm"}
        if "workspace" in session:
            os.makedirs(session["workspace"], exist_ok=True)
        request = yield from self._request(connection, "run/code", {**params, "session": session}, options)
        return (yield from self.finish(request))

    def code_request(self, code: str, language: str, options: CallOptions) -> Operation[Request]:
        params = self.code_params(code, language)
        connection, session_id = yield from self.session()
        return (yield from self._request(connection, "run/code", {**params, "sessionId": session_id}, options))

    def argv_request(self, argv: Sequence[str], options: CallOptions) -> Operation[Request]:
        params = {"argv": argv_of(argv)}
        connection, session_id = yield from self.session()
        return (yield from self._request(connection, "run/argv", {**params, "sessionId": session_id}, options))

    def finish(self, request: Request) -> Operation[ExecutionResult]:
        message = yield request
        return result_of((yield from whole(request.connection, message)), self.image)

    def new_run_id(self) -> str:
        return f"r{next(_numbers)}"

    def code_params(self, code: str, language: str) -> Dict[str, Any]:
        if not isinstance(code, str):
            raise check.wrong("code", "a string", code, "invalid_type")
        if "\0" in code:
            raise SandboxError("the code has a NUL character", path="code")
        return {"code": code, "language": check.field("language", language, "RunCodeParams", "language")}

    def _request(
        self, connection: Connection, method: str, params: Dict[str, Any], options: CallOptions
    ) -> Operation[Request]:
        params.update(call_params(options, "RunCodeParams"))
        if "code" in params:
            params["code"] = yield from sent(connection, "code", params["code"])
        if options.get("stdin") is not None:
            params["stdin"] = yield from sent(connection, "stdin", stdin_of(options["stdin"]))
        params["encoding"] = "auto"  # what is not text comes as it is
        return self.streamed(Request(connection, method, params), options)

    def streamed(self, request: Request, options: Any) -> Request:
        """With the callbacks, if there are any."""
        on_event = self.on_event(options)
        if on_event is not None:
            request.run_id = self.new_run_id()
            request.on_event = on_event
            request.params = {**request.params, "runId": request.run_id, "stream": "live"}
        return request

    def on_event(self, options: Any) -> Optional[OnEvent]:
        callbacks: Dict[str, Callback] = {}
        for stream in ("stdout", "stderr"):
            name = f"on_{stream}"
            given = options.get(name, INHERIT)
            chosen = getattr(self.options, name) if isinstance(given, Inherit) else check.callback(name, given)
            if chosen is not None:
                callbacks[stream] = chosen

        def deliver(event: Event) -> Any:
            chosen = callbacks.get(event.get("stream", ""))
            if chosen is None:
                return None
            data = event["text"].encode() if "text" in event else base64.b64decode(event["base64"])
            return chosen(data)

        return deliver if callbacks else None

    # -- files

    def write_file(self, path: Any, data: Union[str, bytes], extra: Dict[str, Any]) -> Operation[Any]:
        params = {**path_params(path), **extra}
        if not isinstance(data, (str, bytes, bytearray, memoryview)):
            raise check.wrong("data", "a string or bytes", data, "invalid_type")
        if len(data) > BLOB_MAX:
            raise SandboxError(
                f"a file of more than {BLOB_MAX >> 20} MiB is too large to be written whole", reason="too_large"
            )
        connection, session_id = yield from self.session()
        params["content"] = yield from sent(connection, "data", data if isinstance(data, str) else bytes(data))
        return (yield Request(connection, "file/write", {**params, "sessionId": session_id}))

    def read_file(self, path: Any, max_bytes: Optional[int]) -> Operation[bytes]:
        params = path_params(path)
        if max_bytes is not None and (isinstance(max_bytes, bool) or not isinstance(max_bytes, int) or max_bytes < 0):
            raise check.wrong("max_bytes", "a number of bytes", max_bytes)
        connection, session_id = yield from self.session()
        data = bytearray()
        while True:
            window = {"sessionId": session_id, "offset": len(data), "length": BLOB_MAX}
            part = yield Request(connection, "file/read", {**params, **window})
            if max_bytes is not None and part["size"] > max_bytes:
                raise SandboxError(
                    f"{path} has {part['size']} bytes, more than max_bytes={max_bytes}",
                    reason="too_large",
                    path="max_bytes",
                )
            data += yield from bytes_of(connection, content_of(part))
            if part["eof"]:
                return bytes(data)

    def list_files(self, subdir: Any) -> Operation[List[FileInfo]]:
        params: Dict[str, Any] = {"recursive": True, "limit": 100000}
        if subdir not in ("", "."):
            params.update(path_params(subdir))
        found: List[FileInfo] = []
        while True:
            page = yield from self.file("file/list", params, "entries")
            for entry in page["entries"]:
                name = path_of(entry)
                if entry["type"] == "file" and not check.covers(".deps", name):
                    found.append(file_of(entry, "created"))
            if "nextCursor" not in page:
                return found
            params["cursor"] = page["nextCursor"]

    def file(self, method: str, params: Dict[str, Any], array: str = "") -> Operation[Dict[str, Any]]:
        """A request of one step; `array` is a field of its result that may come as a blob."""
        connection, session_id = yield from self.session()
        told: Dict[str, Any] = yield Request(connection, method, {**params, "sessionId": session_id})
        if array:
            told[array] = yield from listed(connection, told[array])
        return told

    # -- kernels

    def kernel_open(
        self, params: Dict[str, Any], on_kernel: Optional[OnKernel] = None
    ) -> Operation[Tuple[Connection, str]]:
        connection, session_id = yield from self.session()
        kernel_id = f"k{next(_numbers)}"
        yield Request(connection, "kernel/open", {**params, "sessionId": session_id, "kernelId": kernel_id})
        connection.kernel_opened(kernel_id, on_kernel)
        return connection, kernel_id

    def kernel_run(
        self, connection: Connection, kernel_id: str, code: str, options: Dict[str, Any]
    ) -> Operation[ExecutionResult]:
        if not isinstance(code, str):
            raise check.wrong("code", "a string", code, "invalid_type")
        if "\0" in code:
            raise SandboxError("the code has a NUL character", path="code")
        params: Dict[str, Any] = {"kernelId": kernel_id, "encoding": "auto"}
        if options.get("timeout_s") is not None:
            params["timeoutMs"] = check.milliseconds("timeout_s", options["timeout_s"])
        params["code"] = yield from sent(connection, "code", code)
        request = self.streamed(Request(connection, "kernel/run", params), options)
        if "listener" in options:
            options["listener"].attach(self, request)
        message = yield request
        return result_of((yield from whole(connection, message)), self.image)


def call_params(options: CallOptions, message: str) -> Dict[str, Any]:
    """The options of a call, checked, without callbacks and stdin."""
    for name in options:
        if name not in CALL_NAMES:
            check.refuse_unknown(name, sorted(CALL_NAMES))
    params: Dict[str, Any] = {}
    given: Dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    for name, wire in SAME_IN_CALLS.items():
        if name in given:
            params[wire] = check.field(name, given[name], message, wire)
    if "timeout_s" in given:
        params["timeoutMs"] = check.milliseconds("timeout_s", given["timeout_s"])
    if "cpus" in given:
        params["cpusMilli"] = check.thousandths("cpus", given["cpus"])
    if "env" in given:
        params["env"] = check.env("env", given["env"])
    if "render" in given:
        params["render"] = {"maxChars": check.field("render", given["render"], "RenderOptions", "maxChars")}
    return params


def stdin_of(value: Any) -> Union[str, bytes]:
    if not isinstance(value, (str, bytes, bytearray, memoryview)):
        raise check.wrong("stdin", "a string or bytes", value, "invalid_type")
    return value if isinstance(value, str) else bytes(value)


def argv_of(value: Any) -> List[str]:
    """An argument list. A string would need a shell, and a shell would need quoting."""
    if isinstance(value, (str, bytes)):
        raise check.wrong(
            "argv", "a list of strings", value, "invalid_type", "use run_code(..., language='sh') for shell code"
        )
    return list(check.field("argv", check.texts("argv", value), "RunArgvParams", "argv"))


def path_params(path: Any, name: str = "path") -> Dict[str, str]:
    """A path of the workspace. What is not UTF-8 travels as bytes."""
    try:
        given = os.fspath(path)
    except TypeError:
        raise check.wrong(name, "a path", path, "invalid_type") from None
    raw = os.fsencode(given)
    if b"\0" in raw:
        raise SandboxError(f"{name} has a NUL character", reason="invalid_path", path=name)
    try:
        return {name: raw.decode()}
    except UnicodeDecodeError:
        return {f"{name}Base64": base64.b64encode(raw).decode()}


def content_of(part: Mapping[str, Any]) -> Any:
    """The Text of file/read, which has it flat."""
    if "text" in part:
        return part["text"]
    return {"base64": part["base64"]} if "base64" in part else {"blob": part["blob"]}

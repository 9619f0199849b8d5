"""What a call came to: facts of the kernel (exit code, fault, usage, files) and claims of the code (results, error)."""

import base64
import html
import json
import os
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Tuple

IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")


@dataclass(frozen=True)
class SandboxFault:
    """What the sandbox did to the call, from what the kernel reported.

    `type`: `cancelled`, `timeout`, `oom`, `escape_blocked`, `exec_failed`, `disk`, `killed`; more may come. An exception of
    the code is no fault, and a fault may stand beside exit code 0.
    """

    type: str
    message: str
    syscall: Optional[str] = None
    process: Optional[str] = None
    limit: Optional[str] = None
    step: Optional[str] = None


@dataclass(frozen=True)
class FileInfo:
    """A file of the workspace. `change`: `created`, `modified` or `deleted` by the call; size 0 for deleted ones.

    A name that is not UTF-8 is in `path` as `os.fsdecode` gives it, and can be used as it is.
    """

    path: str
    size: int = 0
    change: str = "created"
    mime: Optional[str] = None
    sha256: Optional[str] = None


@dataclass(frozen=True)
class Frame:
    """A place in the user's code; the innermost is the last of an error's `frames`."""

    file: str
    line: int
    function: str
    column: Optional[int] = None
    source: Optional[str] = None


@dataclass(frozen=True)
class CodeError:
    """The exception that ended the code: a claim of the code."""

    name: str
    message: str
    phase: str
    frames: List[Frame] = field(default_factory=list)
    traceback: str = ""
    cause: Optional["CodeError"] = None


@dataclass(frozen=True)
class Usage:
    """What the call used, from the kernel. None: not counted here."""

    wall_us: int
    cpu_user_us: int
    cpu_system_us: int
    memory_peak_bytes: int
    processes_peak: Optional[int] = None
    pids_refused: Optional[int] = None
    syscalls_refused: Optional[int] = None
    oom_kills: Optional[int] = None
    io_read_bytes: Optional[int] = None
    io_write_bytes: Optional[int] = None


@dataclass(frozen=True)
class Result:
    """A value, display or figure of the code, by MIME type: a claim of the code. Images are base64 in `data`."""

    data: Dict[str, str]
    kind: str = "display"
    metadata: Dict[str, Any] = field(default_factory=dict)
    display_id: Optional[str] = None
    seq: int = 0
    stdout_offset: int = 0
    stderr_offset: int = 0
    dropped: List[Tuple[str, str]] = field(default_factory=list)

    def formats(self) -> List[str]:
        """The MIME types that there are."""
        return list(self.data)

    def _image(self, mime: str) -> Optional[bytes]:
        payload = self.data.get(mime)
        return None if payload is None else base64.b64decode(payload)

    @property
    def png(self) -> Optional[bytes]:
        return self._image("image/png")

    @property
    def jpeg(self) -> Optional[bytes]:
        return self._image("image/jpeg")

    @property
    def text(self) -> Optional[str]:
        return self.data.get("text/plain")

    @property
    def html(self) -> Optional[str]:
        return self.data.get("text/html")

    @property
    def svg(self) -> Optional[str]:
        return self.data.get("image/svg+xml")

    @property
    def markdown(self) -> Optional[str]:
        return self.data.get("text/markdown")

    @property
    def latex(self) -> Optional[str]:
        return self.data.get("text/latex")

    @property
    def json(self) -> Any:
        """The value of `application/json`, decoded."""
        payload = self.data.get("application/json")
        return None if payload is None else json.loads(payload)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Dict[str, Any]:
        """What a notebook shows. HTML and scripts of a box would run in the notebook's page, so they stay in `data`."""
        safe = ("text/plain", "text/latex", *IMAGES)
        bundle: Dict[str, Any] = {mime: payload for mime, payload in self.data.items() if mime in safe}
        if self.svg is not None:
            bundle["text/html"] = _svg_tag(self.svg)
        return bundle or {"text/plain": repr(self)}


@dataclass
class ExecutionResult:
    """What a call came to. True in a condition when it succeeded.

    `stderr` is what the sandbox noted about the box, then the code's own bytes; `code_stderr` and `runtime_notes` are the
    two halves. `fault` is set only when the sandbox acted. `image` says what the box was made of.
    """

    stdout: str
    stderr: str
    exit_code: int
    duration_ms: int
    fault: Optional[SandboxFault] = None
    files: List[FileInfo] = field(default_factory=list)
    results: List[Result] = field(default_factory=list)
    truncated: bool = False
    code_stderr: str = ""
    runtime_notes: List[str] = field(default_factory=list)
    error: Optional[CodeError] = None
    usage: Optional[Usage] = None
    signal: Optional[str] = None
    image: str = ""
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    files_truncated: bool = False
    result_channel: str = "ok"
    start_kind: str = ""
    start_us: int = 0
    cell_status: Optional[str] = None
    execution_count: Optional[int] = None
    state_kept: Optional[bool] = None
    cached: Optional[bool] = None
    rendered: Optional[str] = None

    @property
    def success(self) -> bool:
        """Exit code 0 and no fault."""
        return self.exit_code == 0 and self.fault is None

    def __bool__(self) -> bool:
        return self.success

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Dict[str, str]:
        """What a notebook shows: output, the values as text, and every figure. All of it is escaped."""
        return {"text/plain": self._as_text(), "text/html": self._as_html()}

    def _verdict(self) -> str:
        if self.fault is not None:
            return f"{self.fault.type}: {self.fault.message}"
        return f"exit code {self.exit_code}" if self.exit_code else ""

    def _as_text(self) -> str:
        values = [result.text or f"<{', '.join(result.formats())}>" for result in self.results]
        parts = [self.stdout.rstrip("\n"), self.stderr.rstrip("\n"), *values, self._verdict()]
        return "\n".join(part for part in parts if part)

    def _as_html(self) -> str:
        parts = [_pre(self.stdout), _pre(self.stderr, "color:#b00020")]
        for result in self.results:
            mime = next((mime for mime in IMAGES if mime in result.data), None)
            if mime is not None:
                parts.append(f'<img alt="" src="data:{mime};base64,{html.escape(result.data[mime], quote=True)}">')
            elif result.svg is not None:
                parts.append(_svg_tag(result.svg))
            else:
                parts.append(_pre(result.text or ""))
        return "\n".join(part for part in [*parts, _pre(self._verdict(), "font-weight:bold")] if part)


def _pre(text: str, style: str = "") -> str:
    return f'<pre style="{style}">{html.escape(text)}</pre>' if text.strip() else ""


def _svg_tag(svg: str) -> str:
    """As an image: scripts in it do not run."""
    return f'<img alt="" src="data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}">'


# -- from the messages of the protocol; Texts and arrays are resolved already


def result_of(message: Mapping[str, Any], image: str) -> ExecutionResult:
    """An ExecutionResult of run/*, kernel/run and session/setup."""
    own = text_of(message["stderr"])
    notes = [f"kern: note: {note['message']}" for note in message["runtimeNotes"]]
    start = message["start"]
    return ExecutionResult(
        stdout=text_of(message["stdout"]),
        stderr="".join(f"{note}\n" for note in notes) + own if notes else own,
        exit_code=message["exitCode"],
        duration_ms=message["durationMs"],
        fault=fault_of(message),
        files=[file_of(entry, entry["change"]) for entry in message["files"]],
        results=[_rich(entry) for entry in message["results"]],
        truncated=message["truncated"],
        code_stderr=own,
        runtime_notes=notes,
        error=_error(message["error"]) if "error" in message else None,
        usage=Usage(**_known(Usage, {USAGE.get(key, key): value for key, value in message["usage"].items()})),
        signal=message.get("signal"),
        image=image,
        stdout_bytes=message["stdoutBytes"],
        stderr_bytes=message["stderrBytes"],
        files_truncated=message.get("filesTruncated", False),
        result_channel=message["resultChannel"],
        start_kind=start["kind"],
        start_us=start["us"],
        cell_status=message.get("cellStatus"),
        execution_count=message.get("executionCount"),
        state_kept=message.get("stateKept"),
        cached=message.get("cached"),
        rendered=text_of(message["rendered"]) if "rendered" in message else None,
    )


USAGE = {
    "wallUs": "wall_us",
    "cpuUserUs": "cpu_user_us",
    "cpuSystemUs": "cpu_system_us",
    "memoryPeakBytes": "memory_peak_bytes",
    "processesPeak": "processes_peak",
    "pidsRefused": "pids_refused",
    "syscallsRefused": "syscalls_refused",
    "oomKills": "oom_kills",
    "ioReadBytes": "io_read_bytes",
    "ioWriteBytes": "io_write_bytes",
}


def _known(kind: Any, values: Mapping[str, Any]) -> Dict[str, Any]:
    """A later sidecar may tell more."""
    names = kind.__dataclass_fields__
    return {key: value for key, value in values.items() if key in names}


def fault_of(message: Mapping[str, Any]) -> Optional[SandboxFault]:
    return SandboxFault(**_known(SandboxFault, message["fault"])) if "fault" in message else None


def text_of(value: Any) -> str:
    """A resolved Text: a string, or bytes as base64."""
    return value if isinstance(value, str) else base64.b64decode(value["base64"]).decode(errors="replace")


def path_of(entry: Mapping[str, Any]) -> str:
    return entry["path"] if "path" in entry else os.fsdecode(base64.b64decode(entry["pathBase64"]))


def file_of(entry: Mapping[str, Any], change: str) -> FileInfo:
    return FileInfo(path_of(entry), entry.get("size", 0), change, entry.get("mime"), entry.get("sha256"))


def _rich(entry: Mapping[str, Any]) -> Result:
    place = entry["at"]
    return Result(
        data={mime: payload_of(mime, value) for mime, value in entry["data"].items()},
        kind=entry["kind"],
        metadata=entry.get("metadata", {}),
        display_id=entry.get("displayId"),
        seq=entry["seq"],
        stdout_offset=place["stdout"],
        stderr_offset=place["stderr"],
        dropped=[(one["mime"], one["reason"]) for one in entry.get("dropped", [])],
    )


def payload_of(mime: str, value: Any) -> str:
    """Image bytes stay base64, everything else is text."""
    if isinstance(value, str):
        return value
    return str(value["base64"]) if mime in IMAGES else text_of(value)


def _error(message: Mapping[str, Any]) -> CodeError:
    cause = message.get("cause")
    return CodeError(
        name=message["name"],
        message=message["message"],
        phase=message["phase"],
        frames=[Frame(**_known(Frame, frame)) for frame in message["frames"]],
        traceback=text_of(message["traceback"]),
        cause=_error(cause) if cause else None,
    )

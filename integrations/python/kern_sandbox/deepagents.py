"""Deep Agents: `KernSandbox`, a sandbox backend whose commands run in fresh boxes and whose files are the sidecar's own.

Nothing is needed in the image but the shell: listing, reading, editing and searching do not go through commands."""

import asyncio
import base64
import itertools
import os
from datetime import datetime, timezone
from importlib.metadata import version
from typing import Any, Dict, List, Optional, Tuple

from ._workspace import read_lines
from .errors import SandboxError
from .sandbox import Sandbox

try:
    from deepagents.backends import protocol
    from deepagents.backends.sandbox import BaseSandbox
except ImportError as problem:
    raise ImportError("kern_sandbox.deepagents needs deepagents: pip install 'kern-sandbox[deepagents]'") from problem

READ_MAX_BYTES = 500 * 1024  # as the other backends: what a model is shown at once
ROOT = "/workspace"
TIMED_OUT = 124
NO_DEADLINE_S = 86400
CODES = {
    "not_found": "file_not_found",
    "permission_denied": "permission_denied",
    "read_only": "permission_denied",
    "is_directory": "is_directory",
    "not_regular": "invalid_path",
    "path_escape": "invalid_path",
    "invalid_path": "invalid_path",
    "not_a_directory": "invalid_path",
}
_numbers = itertools.count(1)
_version = tuple(int(part) for part in version("deepagents").split(".")[:3] if part.isdigit())
# The protocol changed what these mean.
WRITE_REPLACES = _version >= (0, 7, 0)
GLOB_IS_ABSOLUTE = _version >= (0, 7, 7)
Deleted = getattr(protocol, "DeleteResult", protocol.WriteResult)  # of the same form


class KernSandbox(BaseSandbox):  # type: ignore[misc,unused-ignore]
    """A backend for `create_deep_agent(backend=…)`. Give an open `Sandbox`, or the options of one that it makes for itself.

    Files live below `/workspace` and stay between commands; each command is a fresh box. `close()` ends a sandbox of its own.
    """

    def __init__(self, sandbox: Optional[Sandbox] = None, **sandbox_options: Any) -> None:
        if sandbox is not None and sandbox_options:
            raise TypeError("give a sandbox or the options of one, not both")
        self._own = sandbox is None
        self._sandbox = sandbox if sandbox is not None else Sandbox(**sandbox_options).open()
        self._id = f"kern-{os.getpid()}-{next(_numbers)}"

    @property
    def id(self) -> str:
        """Unique among the backends of this machine."""
        return self._id

    def close(self) -> None:
        """Ends the sandbox, if it was made here."""
        if self._own:
            self._sandbox.close()

    # -- commands

    def execute(self, command: str, *, timeout: Optional[int] = None) -> Any:
        """Runs a command line in `sh`. `timeout` 0 is the longest there is; a command that reached it has status 124."""
        seconds = NO_DEADLINE_S if timeout == 0 else timeout
        try:
            result = self._sandbox.run_code(command, language="sh", merge=True, timeout_s=seconds)
        except SandboxError as problem:
            return protocol.ExecuteResponse(output=f"Error: {problem}", exit_code=125)
        output, code = result.stdout, result.exit_code
        if result.fault is not None:
            code = TIMED_OUT if result.fault.type == "timeout" else code
            output += ("" if not output or output.endswith("\n") else "\n") + f"Error: {result.fault.message}"
        return protocol.ExecuteResponse(output=output, exit_code=code, truncated=result.truncated)

    # -- files

    def ls(self, path: str) -> Any:
        """What is directly in a directory."""
        try:
            entries = self._sandbox.list_dir(path)
        except SandboxError as problem:
            return protocol.LsResult(error=_said(path, problem))
        return protocol.LsResult(entries=[_info(_absolute(one.path), one) for one in entries])

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> Any:
        """Lines of a text file, or a small binary file as base64."""
        offset = max(0, offset)
        try:
            told, data = self._sandbox._do(read_lines(self._sandbox._core, file_path, offset + 1, max(1, limit)))
            if told["encoding"] == "binary":
                return self._binary(file_path, told["size"])
        except SandboxError as problem:
            return protocol.ReadResult(error=_said(file_path, problem))
        if told["size"] == 0 or limit <= 0:
            return _made(protocol.ReadResult, file_data=_text(""), no_lines_requested=told["size"] > 0)
        if told["endLine"] < told["startLine"]:
            return protocol.ReadResult(
                error=f"Line offset {offset} exceeds file length ({told.get('totalLines', offset)} lines)"
            )
        return _window(data, told)

    def _binary(self, file_path: str, size: int) -> Any:
        if size > READ_MAX_BYTES:
            what = f"Binary file exceeds maximum preview size of {READ_MAX_BYTES} bytes"
            return protocol.ReadResult(error=f"File '{file_path}': {what}")
        content = base64.b64encode(self._sandbox.read_file(file_path)).decode()
        return protocol.ReadResult(file_data={"content": content, "encoding": "base64"})

    def write(self, file_path: str, content: str) -> Any:
        """Writes a text file, with its directories."""
        if not file_path.startswith("/"):
            return protocol.WriteResult(error=f"Failed to write file '{file_path}': invalid_path")
        try:
            self._sandbox.write_file(file_path, content, if_exists="replace" if WRITE_REPLACES else "fail")
        except SandboxError as problem:
            if problem.reason == "exists":
                return protocol.WriteResult(error=f"Error: File '{file_path}' already exists")
            return protocol.WriteResult(error=f"Failed to write file '{file_path}': {_code(problem)}")
        return _made(protocol.WriteResult, path=file_path)

    def edit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> Any:
        """Replaces a text that is there once, or everywhere."""
        try:
            done = self._sandbox.edit_file(file_path, [(old_string, new_string, replace_all)])
        except SandboxError as problem:
            if problem.reason == "edit_no_match":
                return protocol.EditResult(error=f"Error: String not found in file: '{old_string}'")
            if problem.reason == "edit_not_unique":
                what = "appears multiple times. Use replace_all=True to replace all occurrences."
                return protocol.EditResult(error=f"Error: String '{old_string}' {what}")
            return protocol.EditResult(error=_said(file_path, problem))
        return _made(protocol.EditResult, path=file_path, occurrences=done[0])

    def delete(self, file_path: str) -> Any:
        """Removes a file, or a directory with everything below."""
        try:
            self._sandbox.remove_file(file_path, recursive=True)
        except SandboxError as problem:
            return Deleted(error=_said(file_path, problem))
        return Deleted(path=file_path)

    def grep(
        self, pattern: str, path: Optional[str] = None, glob: Optional[str] = None, *, max_count: Optional[int] = None
    ) -> Any:
        """Lines that have a text, in paths that are absolute."""
        if max_count is not None and max_count <= 0:
            return _made(protocol.GrepResult, matches=[], truncated=True)
        limit = 1000000 if max_count is None else max_count + 1
        try:
            found = self._sandbox.search(pattern, path or ROOT, glob=glob, hidden=True, limit=limit)
        except SandboxError as problem:
            if problem.reason == "not_found":
                return protocol.GrepResult(matches=[])
            return protocol.GrepResult(error=_said(path or ROOT, problem))
        matches = [{"path": _absolute(one.path), "line": one.line, "text": one.text} for one in found]
        cut = max_count is not None and len(matches) > max_count
        return _made(protocol.GrepResult, matches=matches[:max_count] if cut else matches, truncated=cut)

    def glob(self, pattern: str, path: Optional[str] = None) -> Any:
        """Files whose names match."""
        root = path or ROOT
        try:
            found = self._sandbox.glob(pattern, root)
        except SandboxError as problem:
            if problem.reason == "not_found":
                return protocol.GlobResult(matches=[])
            return protocol.GlobResult(error=_said(root, problem))
        if GLOB_IS_ABSOLUTE:
            matches = [_info(_absolute(one.path), one) for one in found if one.type == "file"]
        else:
            matches = [_info(os.path.relpath(_absolute(one.path), root), one) for one in found]
        return protocol.GlobResult(matches=matches)

    def upload_files(self, files: List[Tuple[str, bytes]]) -> List[Any]:
        """Writes files; each has its own verdict."""
        answers = []
        for path, content in files:
            error = None if path.startswith("/") else "invalid_path"
            try:
                if error is None:
                    self._sandbox.write_file(path, content)
            except SandboxError as problem:
                error = _code(problem)
            answers.append(protocol.FileUploadResponse(path=path, error=error))
        return answers

    def download_files(self, paths: List[str]) -> List[Any]:
        """Reads files; each has its own verdict."""
        answers = []
        for path in paths:
            content, error = None, None if path.startswith("/") else "invalid_path"
            try:
                if error is None:
                    content = self._sandbox.read_file(path)
            except SandboxError as problem:
                error = _code(problem)
            answers.append(protocol.FileDownloadResponse(path=path, content=content, error=error))
        return answers

    # -- for tasks: the base class would go through commands

    async def aexecute(self, command: str, *, timeout: Optional[int] = None) -> Any:
        """`execute` in a thread."""
        return await asyncio.to_thread(self.execute, command, timeout=timeout)

    async def als(self, path: str) -> Any:
        """`ls` in a thread."""
        return await asyncio.to_thread(self.ls, path)

    async def aread(self, file_path: str, offset: int = 0, limit: int = 2000) -> Any:
        """`read` in a thread."""
        return await asyncio.to_thread(self.read, file_path, offset, limit)

    async def awrite(self, file_path: str, content: str) -> Any:
        """`write` in a thread."""
        return await asyncio.to_thread(self.write, file_path, content)

    async def aedit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> Any:
        """`edit` in a thread."""
        return await asyncio.to_thread(self.edit, file_path, old_string, new_string, replace_all)

    async def adelete(self, file_path: str) -> Any:
        """`delete` in a thread."""
        return await asyncio.to_thread(self.delete, file_path)

    async def agrep(
        self, pattern: str, path: Optional[str] = None, glob: Optional[str] = None, *, max_count: Optional[int] = None
    ) -> Any:
        """`grep` in a thread."""
        return await asyncio.to_thread(self.grep, pattern, path, glob, max_count=max_count)

    async def aglob(self, pattern: str, path: Optional[str] = None) -> Any:
        """`glob` in a thread."""
        return await asyncio.to_thread(self.glob, pattern, path)


def _absolute(path: str) -> str:
    return path if path.startswith("/") else f"{ROOT}/{path}"


def _info(path: str, entry: Any) -> Dict[str, Any]:
    info: Dict[str, Any] = {"path": path, "is_dir": entry.type == "directory"}
    if entry.mtime_ms:
        info["size"] = entry.size
        info["modified_at"] = datetime.fromtimestamp(entry.mtime_ms / 1000, timezone.utc).isoformat()
    return info


def _text(content: str) -> Dict[str, str]:
    return {"content": content, "encoding": "utf-8"}


def _window(data: bytes, told: Dict[str, Any]) -> Any:
    """The lines, as many as fit; the next offset says where to go on."""
    end = told["endLine"]
    if len(data) > READ_MAX_BYTES:
        kept = data[:READ_MAX_BYTES]
        whole = kept[: kept.rfind(b"\n") + 1]
        end = told["startLine"] + max(1, whole.count(b"\n")) - 1
        data = whole or kept  # of a line that is longer than all, its head
    total = told.get("totalLines")
    more = total is not None and end < total
    return _made(
        protocol.ReadResult,
        file_data=_text(data.decode(errors="replace").removesuffix("\n")),
        total_lines=total,
        start_line=told["startLine"],
        end_line=end,
        next_offset=end if more else None,
    )


def _made(kind: Any, **fields: Any) -> Any:
    """Of the fields that this version of deepagents has."""
    return kind(**{name: value for name, value in fields.items() if name in kind.__dataclass_fields__})


def _code(problem: SandboxError) -> str:
    return CODES.get(problem.reason, problem.message)


def _said(path: str, problem: SandboxError) -> str:
    if problem.reason == "not_found":
        return f"Error: File '{path}' not found"
    return f"Error: '{path}': {problem.message}"

"""`AsyncSandbox`: the sandbox of tasks. Same options, same methods, same results."""

import asyncio
import copy
from types import TracebackType
from typing import TYPE_CHECKING, Any, List, Mapping, Optional, Sequence, Type, TypeVar, Union

from . import _options as check
from . import _shared
from . import _workspace as files
from ._connection import Connection
from ._core import CallOptions, Core
from ._options import Callback
from ._requests import Operation, drive_async, perform_async, Request
from ._session import INHERIT, Inherit, Options
from ._workspace import Edit, Entry, Match, Snapshot, Stat
from .errors import SandboxError
from .results import ExecutionResult, FileInfo
from .sandbox import kernel_params, split_options

if TYPE_CHECKING:
    from typing_extensions import Unpack

T = TypeVar("T")


async def _connect() -> Connection:
    current = _shared.running()
    if current is not None:
        return current
    # A start takes some milliseconds, which the loop has better use for.
    return await asyncio.get_running_loop().run_in_executor(None, _shared.connection)


async def _do(operation: Operation[T]) -> T:
    return await drive_async(operation, _connect)


class AsyncSandbox(Options):
    """`Sandbox` for asyncio: use it in `async with`, from any number of tasks and loops at once.

    A task that is cancelled ends its call; `on_stdout` and `on_stderr` may be coroutine functions. It shares the sidecar
    with every other sandbox of the interpreter, and needs no thread.
    """

    _core_: Optional[Core] = None

    @property
    def _core(self) -> Core:
        if self._core_ is None:
            self._core_ = Core(copy.copy(self))
        return self._core_

    async def open(self) -> "AsyncSandbox":
        """Makes the session and runs `setup`; `async with` does this."""
        await _do(self._core.open())
        return self

    async def close(self) -> None:
        """Ends what still runs; a private workspace is gone. Closing twice is fine."""
        await _do(self._core.close())

    async def __aenter__(self) -> "AsyncSandbox":
        return await self.open()

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], problem: Optional[BaseException], where: Optional[TracebackType]
    ) -> None:
        await self.close()

    @property
    def notes(self) -> List[str]:
        """What turned out differently than one might think, once open."""
        return self._core.notes

    @property
    def effective(self) -> Mapping[str, Any]:
        """The limits in force and who enforces them, once open."""
        effective: Mapping[str, Any] = self._core.opened.get("effective", {})
        return effective

    @property
    def host_workspace(self) -> str:
        """The workspace's path on the host, once open."""
        return str(self._core.opened["workspace"]) if self._core.opened else ""

    async def run_code(
        self, code: str, *, language: str = "python", **options: "Unpack[CallOptions]"
    ) -> ExecutionResult:
        """Runs code in a fresh box; see `Sandbox.run_code`."""
        return await _do(self._core.run_code(code, language, options))

    async def run(self, argv: Sequence[str], **options: "Unpack[CallOptions]") -> ExecutionResult:
        """Runs a program in a fresh box; see `Sandbox.run`."""
        return await _do(self._core.run(argv, options))

    async def kernel(
        self,
        timeout_s: Optional[float] = None,
        *,
        language: str = "python",
        env: Optional[Mapping[str, str]] = None,
        cwd: Optional[str] = None,
        memory_mb: Optional[int] = None,
    ) -> "AsyncKernel":
        """Starts an interpreter that keeps its state; see `Sandbox.kernel`. `async with await box.kernel() as k:`"""
        params = kernel_params(timeout_s, language, env, cwd, memory_mb)
        connection, kernel_id = await _do(self._core.kernel_open(params))
        return AsyncKernel(self._core, connection, kernel_id, language)

    async def run_setup(self, command: str) -> ExecutionResult:
        """Runs a command that has the network; see `Sandbox.run_setup`."""
        return await _do(self._core.setup(command))

    async def write_file(
        self,
        path: check.StrPath,
        data: Union[str, bytes],
        *,
        if_exists: str = "replace",
        mode: Optional[int] = None,
        if_match: Optional[str] = None,
    ) -> str:
        """Writes a file; see `Sandbox.write_file`."""
        return await _do(files.write(self._core, path, data, if_exists, mode, if_match))

    async def read_file(self, path: check.StrPath, max_bytes: Optional[int] = None) -> bytes:
        """The content of a file; see `Sandbox.read_file`."""
        return await _do(self._core.read_file(path, max_bytes))

    async def list_files(self, subdir: check.StrPath = "") -> List[FileInfo]:
        """The regular files below a directory; see `Sandbox.list_files`."""
        return await _do(self._core.list_files(subdir))

    async def list_dir(self, path: check.StrPath = ".") -> List[Entry]:
        """What is directly in a directory."""
        return await _do(files.list_dir(self._core, path))

    async def stat(self, path: check.StrPath) -> Stat:
        """Type, size, times and etag of a file."""
        return await _do(files.stat(self._core, path))

    async def edit_file(
        self, path: check.StrPath, edits: Sequence[Edit], *, if_match: Optional[str] = None
    ) -> List[int]:
        """Replaces texts, all of them or none; see `Sandbox.edit_file`."""
        return await _do(files.edit(self._core, path, edits, if_match))

    async def make_dir(self, path: check.StrPath, *, parents: bool = False) -> None:
        """Makes a directory."""
        await _do(files.make_dir(self._core, path, parents))

    async def move_file(self, path: check.StrPath, to: check.StrPath, *, replace: bool = False) -> None:
        """Moves a file or directory within the workspace."""
        await _do(files.move(self._core, path, to, replace))

    async def remove_file(self, path: check.StrPath, *, recursive: bool = False) -> None:
        """Removes a file, a link or a directory; see `Sandbox.remove_file`."""
        await _do(files.remove(self._core, path, recursive))

    async def glob(
        self,
        pattern: str,
        path: Optional[check.StrPath] = None,
        *,
        ignore: Sequence[str] = (),
        hidden: bool = False,
        gitignore: bool = False,
        limit: int = 10000,
    ) -> List[Entry]:
        """Names that a pattern matches; see `Sandbox.glob`."""
        return await _do(files.glob(self._core, pattern, path, ignore, hidden, gitignore, limit))

    async def search(
        self,
        pattern: str,
        path: Optional[check.StrPath] = None,
        *,
        regex: bool = False,
        glob: Optional[str] = None,
        ignore_case: bool = False,
        before: int = 0,
        after: int = 0,
        hidden: bool = False,
        gitignore: bool = False,
        limit: int = 1000,
    ) -> List[Match]:
        """Lines that have a text, or match a regular expression; see `Sandbox.search`."""
        params = {"regex": regex, "ignoreCase": ignore_case, "before": before, "after": after}
        return await _do(files.search(self._core, pattern, path, glob, params, hidden, gitignore, limit))

    async def snapshot(self, dest: check.StrPath, *, links: str = "refuse") -> Snapshot:
        """Packs the workspace; see `Sandbox.snapshot`."""
        return await _do(files.snapshot(self._core, dest, links))

    async def restore(self, src: check.StrPath, *, links: str = "refuse") -> int:
        """Replaces the workspace by an archive; see `Sandbox.restore`."""
        return await _do(files.restore(self._core, src, links))


class AsyncKernel:
    """`Kernel` for asyncio. A task that is cancelled interrupts its cell; the state stays."""

    def __init__(self, core: Core, connection: Connection, kernel_id: str, language: str) -> None:
        self._core = core
        self._connection = connection
        self._id = kernel_id
        self._closed = False
        self.language = language

    async def run_code(
        self,
        code: str,
        *,
        timeout_s: Optional[float] = None,
        on_stdout: Union[Callback, None, Inherit] = INHERIT,
        on_stderr: Union[Callback, None, Inherit] = INHERIT,
    ) -> ExecutionResult:
        """Runs a cell; see `Kernel.run_code`."""
        options = {"timeout_s": timeout_s, "on_stdout": on_stdout, "on_stderr": on_stderr}
        self._check_open()
        return await _do(self._core.kernel_run(self._connection, self._id, code, options))

    async def interrupt(self) -> bool:
        """Interrupts the cell that runs now. -> whether one was running"""
        return bool((await self._call("kernel/interrupt"))["running"])

    async def restart(self) -> None:
        """A new interpreter, with nothing of the old one."""
        await self._call("kernel/restart")

    async def close(self) -> None:
        """Ends the interpreter. Closing twice is fine."""
        if self._closed:
            return
        self._closed = True
        self._connection.kernel_closed(self._id)
        if self._connection.ended is None:
            try:
                await perform_async(Request(self._connection, "kernel/close", {"kernelId": self._id}))
            except SandboxError as problem:
                if problem.reason not in ("unknown_handle", "gone"):
                    raise

    def _check_open(self) -> None:
        if self._closed:
            raise SandboxError("the kernel is closed", reason="unknown_handle")

    async def _call(self, method: str) -> Any:
        self._check_open()
        return await perform_async(Request(self._connection, method, {"kernelId": self._id}))

    async def __aenter__(self) -> "AsyncKernel":
        return self

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], problem: Optional[BaseException], where: Optional[TracebackType]
    ) -> None:
        await self.close()


async def run_code_async(code: str, language: str = "python", **options: Any) -> ExecutionResult:
    """`run_code` for asyncio."""
    of_sandbox, of_call = split_options(options)
    sandbox = AsyncSandbox(**of_sandbox)
    if sandbox.setup is None:
        return await _do(sandbox._core.run_code_once(code, language, of_call))
    async with sandbox:
        return await sandbox.run_code(code, language=language, **of_call)

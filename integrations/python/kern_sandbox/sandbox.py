"""`Sandbox` and `run_code`, for threads."""

import copy
from types import TracebackType
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, Tuple, Type, TypeVar, Union

from . import _options as check
from . import _shared
from ._cells import OnOutput, OnState, between_cells
from ._core import CallOptions, Core
from ._requests import Operation, drive
from ._session import Options
from . import _workspace as files
from ._workspace import Edit, Entry, Match, Snapshot, Stat
from .kernel import Kernel
from .results import ExecutionResult, FileInfo
from .running import Running

if TYPE_CHECKING:
    from typing_extensions import Unpack

T = TypeVar("T")


class Sandbox(Options):
    """A workspace, and a fresh box for every call on it. Use it in a `with` statement.

    File state persists between calls, processes do not. Calls may come from any number of threads at once. Without options
    there is no network, no directory of the host, no capability, a deny-by-default system call filter, 512 MiB, 256
    processes and 30 seconds; every option that weakens this is named in the protocol's reference. A wrong option is a
    `SandboxError` when the object is made, a box that does not start one when it is opened.

    Options:

    * `image`: `dir:/path/to/rootfs`, `host`, or a registry reference where the sidecar has images; None: the host's own
      `/usr`, read-only, and `result.image` says `host`
    * `setup`: a command that runs once, at the start, in a box that has the network; `pip install …` installs into `.deps`
    * `workspace`: a directory of the host that stays; None: a private one, gone at the end
    * `memory_mb`, `cpus`, `pids`, `timeout_s`: limits of each call; `cpus` None is uncapped, `timeout_s` there always is
    * `network`: True shares the host's network, 127.0.0.1 included
    * `mounts`: `{source: target}` read-write, `{source: (target, "ro")}` read-only
    * `tmpfs`: `{target: "64m"}`; None: 64 MiB at `/tmp`; `{}`: none
    * `env`: variables of every call; nothing of the host's environment is seen
    * `max_output_bytes`: how much of stdout and of stderr is kept, each
    * `require_limits`: refuse to start unless the kernel enforces memory and pids; `enforce_limits=False`: no caps
    * `security_profile="untrusted"`: a stricter filter that no other option weakens; `apparmor`: a profile that is loaded
    * `cap_drop`: `("ALL",)`; `()` keeps Docker's fourteen, which only root in the box can use
    * `deps_readonly`: code cannot change what `setup` installed
    * `track_files`: report changed files; False saves two walks of the workspace
    * `on_stdout`, `on_stderr`: get pieces of output while code runs
    * `prewarm`: boxes to keep ready; `start`: how boxes are started
    * `egress_allow`, `profiles`: domains that the box may reach; sets of options of `kern.toml`
    * `user`, `shm_size`, `interpreters`, `preload`, `cwd`, `map_owner`, `workspace_max_mb`, `workspace_storage`: as in the
      protocol's reference
    """

    _core_: Optional[Core] = None

    @property
    def _core(self) -> Core:
        if self._core_ is None:
            self._core_ = Core(copy.copy(self))  # no cycle: a sandbox that nobody has is closed at once
        return self._core_

    def _do(self, operation: Operation[T]) -> T:
        return drive(operation, _shared.connection)

    # -- life

    def open(self) -> "Sandbox":
        """Makes the session and runs `setup`; a `with` statement does this."""
        self._do(self._core.open())
        return self

    def close(self) -> None:
        """Ends what still runs; a private workspace is gone. Closing twice is fine."""
        self._do(self._core.close())

    def __enter__(self) -> "Sandbox":
        return self.open()

    def __exit__(
        self, kind: Optional[Type[BaseException]], problem: Optional[BaseException], where: Optional[TracebackType]
    ) -> None:
        self.close()

    @property
    def notes(self) -> List[str]:
        """What turned out differently than one might think, once open."""
        return self._core.notes

    @property
    def effective(self) -> Mapping[str, Any]:
        """The limits in force and who enforces them, once open: `effective["memoryMb"]["enforced"]`."""
        effective: Mapping[str, Any] = self._core.opened.get("effective", {})
        return effective

    @property
    def host_workspace(self) -> str:
        """The workspace's path on the host, once open."""
        return str(self._core.opened["workspace"]) if self._core.opened else ""

    # -- calls

    def run_code(self, code: str, *, language: str = "python", **options: "Unpack[CallOptions]") -> ExecutionResult:
        """Runs code in a fresh box: `python`, `node`, `typescript`, `bash` or `sh`, as far as the image has them.

        The value of a trailing expression, what was displayed and open figures are in `result.results`. An exception of the
        code is `exit_code` 1 with `result.error`; a missing interpreter is the fault `exec_failed`. See `CallOptions`.
        """
        return self._do(self._core.run_code(code, language, options))

    def run(self, argv: Sequence[str], **options: "Unpack[CallOptions]") -> ExecutionResult:
        """Runs a program in a fresh box: a list of strings, never a line for a shell."""
        return self._do(self._core.run(argv, options))

    def start_code(
        self, code: str, *, language: str = "python", interactive: bool = False, **options: "Unpack[CallOptions]"
    ) -> Running:
        """Like `run_code`, without waiting: the `Running` can be waited for, cancelled, signalled and, when `interactive`,
        written to."""
        request = self._do(self._core.code_request(code, language, options))
        return Running.start(self._core, request, interactive)

    def start_run(self, argv: Sequence[str], *, interactive: bool = False, **options: "Unpack[CallOptions]") -> Running:
        """Like `run`, without waiting."""
        request = self._do(self._core.argv_request(argv, options))
        return Running.start(self._core, request, interactive)

    def kernel(
        self,
        timeout_s: Optional[float] = None,
        *,
        language: str = "python",
        env: Optional[Mapping[str, str]] = None,
        cwd: Optional[str] = None,
        memory_mb: Optional[int] = None,
        on_output: Optional[OnOutput] = None,
        on_state: Optional[OnState] = None,
    ) -> Kernel:
        """Starts an interpreter that keeps its state between cells. Cells share one process and one box.

        * `on_output`: gets the stream and the text of what is written between two cells
        * `on_state`: gets `idle`, `busy` or `dead`, and with `dead` the fault, if there was one

        Both run in whichever thread hears of it: they must neither wait nor use the sandbox.
        """
        params = kernel_params(timeout_s, language, env, cwd, memory_mb)
        connection, kernel_id = self._do(self._core.kernel_open(params, between_cells(on_output, on_state)))
        return Kernel(self._core, connection, kernel_id, language)

    def run_setup(self, command: str) -> ExecutionResult:
        """Runs a command that has the network, as the option `setup` does; other calls wait for it."""
        return self._do(self._core.setup(command))

    # -- files: confined to the workspace and the mounts, and no link is followed

    def write_file(
        self,
        path: check.StrPath,
        data: Union[str, bytes],
        *,
        if_exists: str = "replace",
        mode: Optional[int] = None,
        if_match: Optional[str] = None,
    ) -> str:
        """Writes a file, whole or not at all, and its directories. `if_exists`: `replace`, `fail` or `append`. -> etag"""
        return self._do(files.write(self._core, path, data, if_exists, mode, if_match))

    def read_file(self, path: check.StrPath, max_bytes: Optional[int] = None) -> bytes:
        """The content of a regular file. Larger than `max_bytes` is an error, not a part."""
        return self._do(self._core.read_file(path, max_bytes))

    def list_files(self, subdir: check.StrPath = "") -> List[FileInfo]:
        """The regular files below a directory, by path; without `.deps`."""
        return self._do(self._core.list_files(subdir))

    def list_dir(self, path: check.StrPath = ".") -> List[Entry]:
        """What is directly in a directory, of every type."""
        return self._do(files.list_dir(self._core, path))

    def stat(self, path: check.StrPath) -> Stat:
        """Type, size, times and etag of a file."""
        return self._do(files.stat(self._core, path))

    def edit_file(self, path: check.StrPath, edits: Sequence[Edit], *, if_match: Optional[str] = None) -> List[int]:
        """Replaces texts, all of them or none: `[(old, new)]`, each old text there exactly once, or `(old, new, True)` for
        every place. -> how often each was replaced"""
        return self._do(files.edit(self._core, path, edits, if_match))

    def make_dir(self, path: check.StrPath, *, parents: bool = False) -> None:
        """Makes a directory."""
        self._do(files.make_dir(self._core, path, parents))

    def move_file(self, path: check.StrPath, to: check.StrPath, *, replace: bool = False) -> None:
        """Moves a file or directory within the workspace."""
        self._do(files.move(self._core, path, to, replace))

    def remove_file(self, path: check.StrPath, *, recursive: bool = False) -> None:
        """Removes a file, a link or an empty directory; `recursive` with everything below."""
        self._do(files.remove(self._core, path, recursive))

    def glob(
        self,
        pattern: str,
        path: Optional[check.StrPath] = None,
        *,
        ignore: Sequence[str] = (),
        hidden: bool = False,
        gitignore: bool = False,
        limit: int = 10000,
    ) -> List[Entry]:
        """Names that a pattern matches: `*.py` at any depth, `src/**/*.c` from the top."""
        return self._do(files.glob(self._core, pattern, path, ignore, hidden, gitignore, limit))

    def search(
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
        """Lines that have a text, or match a regular expression (PCRE2)."""
        params = {"regex": regex, "ignoreCase": ignore_case, "before": before, "after": after}
        return self._do(files.search(self._core, pattern, path, glob, params, hidden, gitignore, limit))

    def snapshot(self, dest: check.StrPath, *, links: str = "refuse") -> Snapshot:
        """Packs the workspace into a `.tar.gz` on the host, outside of the workspace. Memory and `/tmp` are not in it."""
        return self._do(files.snapshot(self._core, dest, links))

    def restore(self, src: check.StrPath, *, links: str = "refuse") -> int:
        """Replaces the workspace by an archive, all of it or nothing; hostile members are refused before the first byte
        lands. -> number of entries"""
        return self._do(files.restore(self._core, src, links))


def kernel_params(
    timeout_s: Optional[float],
    language: str,
    env: Optional[Mapping[str, str]],
    cwd: Optional[str],
    memory_mb: Optional[int],
) -> Dict[str, Any]:
    message = "KernelOpenParams"
    params: Dict[str, Any] = {"language": check.field("language", language, message, "language")}
    if timeout_s is not None:
        params["timeoutMs"] = check.milliseconds("timeout_s", timeout_s, message)
    if env is not None:
        params["env"] = check.env("env", env)
    if cwd is not None:
        params["cwd"] = check.field("cwd", cwd, message, "cwd")
    if memory_mb is not None:
        params["memoryMb"] = check.field("memory_mb", memory_mb, message, "memoryMb")
    return params


# what run_code passes to the call when both the sandbox and the call have it: the sandbox is made for it
CALL_ONLY = ("stdin", "merge")


def split_options(options: Dict[str, Any]) -> Tuple[Dict[str, Any], CallOptions]:
    call: Dict[str, Any] = {name: options.pop(name) for name in CALL_ONLY if name in options}
    return options, call  # type: ignore[return-value]


def run_code(code: str, language: str = "python", **options: Any) -> ExecutionResult:
    """Runs code once, in a sandbox that is made for this call and gone with it. Takes the options of `Sandbox`, and `stdin`
    and `merge` of a call."""
    of_sandbox, of_call = split_options(options)
    sandbox = Sandbox(**of_sandbox)
    if sandbox.setup is None:
        return sandbox._do(sandbox._core.run_code_once(code, language, of_call))
    with sandbox:
        return sandbox.run_code(code, language=language, **of_call)

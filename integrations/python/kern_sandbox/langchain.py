"""LangChain: a code tool, and an execution policy for its shell middleware.

`kern_code_tool()` gives an agent a tool that runs code, each call in a fresh box on one workspace.
`kern_execution_policy()` lets `ShellToolMiddleware` keep its shell in a box."""

import contextlib
import os
import re
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, Tuple, Type

from ._process import find_program
from .errors import SandboxError
from .results import ExecutionResult
from .sandbox import Sandbox

if TYPE_CHECKING:
    from langchain_core.tools import StructuredTool

TOOL_NAMES = {"python": "run_python", "bash": "run_bash", "sh": "run_sh", "node": "run_javascript"}
FENCE = re.compile(r"\A\s*```[^\n`]*\n(.*?)(?:\n```\s*)?\Z", re.DOTALL)
HIDDEN_WORKSPACE = "langchain-shell-"  # the middleware's own directories begin so; nobody has files in them


def kern_code_tool(
    sandbox: Optional[Sandbox] = None,
    *,
    language: str = "python",
    name: Optional[str] = None,
    description: Optional[str] = None,
    max_chars: int = 8000,
    max_code_bytes: int = 1 << 20,
    **sandbox_options: Any,
) -> "StructuredTool":
    """A LangChain tool that runs code. Give an open `Sandbox`, or the options of one that the tool makes for itself.

    What comes back is text for a model: verdict, output, values, the traceback, changed files - rendered by the sidecar so
    that nothing the code prints can look like a verdict. The tool's artifact is the `ExecutionResult`. Wrong options raise
    here; what goes wrong in a call is said in the text.
    """
    try:
        from langchain_core.tools import StructuredTool
    except ImportError as problem:
        raise ImportError("kern_code_tool needs langchain-core: pip install 'kern-sandbox[langchain]'") from problem
    if sandbox is not None and sandbox_options:
        raise TypeError("give a sandbox or the options of one, not both")
    if language not in TOOL_NAMES:
        raise ValueError(f"language has to be one of {', '.join(TOOL_NAMES)}, not {language!r}")
    if isinstance(max_chars, bool) or not isinstance(max_chars, int) or not 500 <= max_chars <= 262144:
        raise ValueError(f"max_chars has to be from 500 to 262144, not {max_chars!r}")
    if isinstance(max_code_bytes, bool) or not isinstance(max_code_bytes, int) or max_code_bytes < 1:
        raise ValueError(f"max_code_bytes has to be at least 1, not {max_code_bytes!r}")
    used = sandbox if sandbox is not None else Sandbox(**sandbox_options).open()

    def run(code: str) -> Tuple[str, Optional[ExecutionResult]]:
        text = without_fence(code)
        size = len(text.encode(errors="surrogatepass"))
        if size > max_code_bytes:
            return (
                f"[refused] the code has {size} bytes, more than the {max_code_bytes} that this tool takes. Nothing ran.",
                None,
            )
        try:
            result = used.run_code(text, language=language, render=max_chars)
        except SandboxError as problem:
            if problem.reason in ("unknown_handle", "gone"):
                raise  # no call can succeed any more
            return f"[refused] {problem}. Nothing ran.", None
        return result.rendered or "", result

    return StructuredTool.from_function(
        func=run,
        name=name or TOOL_NAMES[language],
        description=description or _describe(used, language),
        response_format="content_and_artifact",
        infer_schema=False,
        args_schema={
            "type": "object",
            "properties": {"code": {"type": "string", "description": f"The {language} code to run."}},
            "required": ["code"],
        },
    )


def without_fence(code: str) -> str:
    """Models wrap code in Markdown, and sometimes forget the end of it."""
    match = FENCE.match(code)
    return match[1] if match else code


def _describe(sandbox: Sandbox, language: str) -> str:
    network = "the host's network" if sandbox.network else "no network"
    memory = f"{sandbox.memory_mb} MiB of memory, " if sandbox.memory_mb else ""
    return (
        f"Runs {language} code in a fresh sandbox and returns its output, the value of a trailing expression and, when it fails,"
        f" the error. Files in the working directory stay between calls; variables and processes do not. {memory}"
        f"{sandbox.timeout_s:g} seconds, {network}."
    )


# -- the shell

ALIASES = {"timeout_s": "command_timeout", "memory_mb": "memory_bytes"}
MODES = ("auto", "always", "never")
_policy: List[Type[Any]] = []


def kern_execution_policy(**options: Any) -> Any:
    """An execution policy for `ShellToolMiddleware`: its shell lives in one box.

    Options, beside those of LangChain's `BaseExecutionPolicy` (`command_timeout`, `startup_timeout`, `termination_timeout`,
    `max_output_lines`, `max_output_bytes`):

    * `image`, `network_enabled=False`, `memory_bytes=512 MiB`, `cpus`, `pids_limit=256`, `user`
    * `drop_all_capabilities=True`; `match_docker_capabilities=True` keeps Docker's fourteen, for root in the box
    * `mount_workspace`: `auto` mounts the workspace at its own path unless it is the middleware's temporary one, where the
      shell then has a private one; `always`, `never`
    * `marker_bridge=True`: the sidecar ends commands itself, so that no output can hide, delay or forge that end; False
      passes everything to the shell as LangChain's own policies do
    * `extra_flags`: further flags of `kern-sidecar shell`
    """
    options = dict(options)
    for alias, meant in ALIASES.items():
        if alias in options:
            if meant in options:
                raise TypeError(f"{alias} and {meant} are the same setting, spelled two ways")
            given = options.pop(alias)
            options[meant] = given << 20 if alias == "memory_mb" and isinstance(given, int) else given
    policy = policy_class()
    unknown = sorted(set(options) - set(policy.__dataclass_fields__))
    if unknown:
        raise TypeError(f"there is no option {unknown[0]!r}; they are {', '.join(policy.__dataclass_fields__)}")
    return policy(**options)


def policy_class() -> Type[Any]:
    """`KernExecutionPolicy`, made when langchain is there."""
    if not _policy:
        _policy.append(_make_policy_class())
    return _policy[0]


def _make_policy_class() -> Type[Any]:
    from dataclasses import dataclass

    try:
        from langchain.agents.middleware._execution import BaseExecutionPolicy
    except ImportError as problem:
        raise ImportError(
            "kern_execution_policy needs langchain 1.3 or later: pip install 'kern-sandbox[langchain-shell]'"
        ) from problem

    @dataclass
    class KernExecutionPolicy(BaseExecutionPolicy):  # type: ignore[misc,unused-ignore]
        """Keeps the shell of `ShellToolMiddleware` in one box; see `kern_execution_policy`."""

        image: Optional[str] = None
        network_enabled: bool = False
        memory_bytes: Optional[int] = 512 << 20
        cpus: Optional[str] = None
        pids_limit: int = 256
        user: Optional[str] = None
        drop_all_capabilities: bool = True
        match_docker_capabilities: bool = False
        mount_workspace: str = "auto"
        marker_bridge: bool = True
        extra_flags: Tuple[str, ...] = ()

        def __post_init__(self) -> None:
            super().__post_init__()
            _check_policy(self)

        def spawn(
            self, *, workspace: Path, env: Optional[Mapping[str, str]], command: Sequence[str]
        ) -> "subprocess.Popen[str]":
            """Starts the shell; it dies with this process, and so does everything in it."""
            return _spawn(self, Path(workspace), env, list(command))

    KernExecutionPolicy.__qualname__ = "KernExecutionPolicy"
    return KernExecutionPolicy


def _check_policy(policy: Any) -> None:
    for name in ("pids_limit", "memory_bytes"):
        value = getattr(policy, name)
        if name == "memory_bytes" and value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
            raise ValueError(f"{name} has to be a positive number, not {value!r}")
    if policy.memory_bytes is not None and policy.memory_bytes < 4 << 20:
        raise ValueError("memory_bytes has to be at least 4 MiB")
    for name in ("image", "user", "cpus"):
        value = getattr(policy, name)
        if value is not None and (not isinstance(value, str) or not value.strip()):
            raise ValueError(f"{name} has to be a string that is not blank, not {value!r}")
    if policy.cpus is not None and not re.fullmatch(r"[0-9]+(\.[0-9]+)?", policy.cpus):
        raise ValueError(f"cpus has to be a number such as '1.5', not {policy.cpus!r}")
    if policy.mount_workspace not in MODES:
        raise ValueError(f"mount_workspace has to be one of {', '.join(MODES)}, not {policy.mount_workspace!r}")
    if policy.match_docker_capabilities and not policy.drop_all_capabilities:
        raise ValueError("match_docker_capabilities is about what drop_all_capabilities keeps: leave that True")


def _flags(policy: Any) -> List[str]:
    flags = ["--pids", str(policy.pids_limit)]
    if policy.memory_bytes is not None:
        flags += ["--memory-mb", str(policy.memory_bytes >> 20)]
    if policy.cpus is not None:
        flags += ["--cpus-milli", str(round(float(policy.cpus) * 1000))]
    if policy.image is not None:
        flags += ["--image", policy.image]
    if policy.network_enabled:
        flags += ["--network"]
    keeps = policy.match_docker_capabilities or not policy.drop_all_capabilities
    if policy.user is not None or keeps:
        flags += ["--user", policy.user or "root"]
    if keeps:
        flags += ["--cap-drop", "SYS_ADMIN"]  # not among Docker's fourteen: all of those stay
    return flags + list(policy.extra_flags)


def _workspace_flags(policy: Any, workspace: Path) -> List[str]:
    place = str(workspace.resolve())
    if not os.path.exists(place):
        raise FileNotFoundError(f"the workspace {place} is not there")
    if not os.path.isdir(place):
        raise NotADirectoryError(f"the workspace {place} is no directory")
    hidden = workspace.name.startswith(HIDDEN_WORKSPACE)
    if policy.mount_workspace == "never" or (policy.mount_workspace == "auto" and hidden):
        return []
    return ["--workspace", place, "--workspace-target", place]


def _spawn(
    policy: Any, workspace: Path, env: Optional[Mapping[str, str]], command: List[str]
) -> "subprocess.Popen[str]":
    flags = _flags(policy) + _workspace_flags(policy, workspace)
    program = _program()
    variables = _environment(env)
    if policy.marker_bridge:
        with _env_file(variables) as file:
            argv = [program, "shell", "--bridge", "--env-fd", str(file.fileno()), *flags, "--", *command]
            return _start(argv, (file.fileno(),))
    # The deadline is the middleware's alone, and the shell is told its variables where no process list shows them.
    process = _start([program, "exec", "--timeout-ms", "86400000", *flags, "--", *command], ())
    if variables and process.stdin is not None:
        process.stdin.write("".join(f"export {name}={shlex.quote(value)}\n" for name, value in variables.items()))
        process.stdin.flush()
    return process


class _Shell(subprocess.Popen[str]):
    """Who waits for the shell's end has written all; so `exit` is no command whose marker may still come, and ends it at once."""

    def wait(self, timeout: Optional[float] = None) -> int:
        if self.returncode is None and self.stdin is not None and not self.stdin.closed:
            with contextlib.suppress(OSError):
                _end_pipe(self.stdin.fileno())
        return super().wait(timeout)


def _end_pipe(fd: int) -> None:
    """The reader's end of file. The descriptor stays: what another thread writes fails as it does when the shell has ended."""
    reader, writer = os.pipe()
    os.close(reader)
    os.dup2(writer, fd, inheritable=False)
    os.close(writer)


def _start(argv: List[str], fds: Tuple[int, ...]) -> "subprocess.Popen[str]":
    return _Shell(
        argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd="/",
        text=True,
        encoding="utf-8",
        errors="replace",
        bufsize=1,
        pass_fds=fds,
        start_new_session=True,
    )


def _program() -> str:
    try:
        return find_program()
    except SandboxError as problem:
        raise FileNotFoundError(str(problem)) from problem


def _environment(env: Optional[Mapping[str, str]]) -> Dict[str, str]:
    """Only what is given: nothing of the host's environment is for the box."""
    given: Dict[str, str] = {}
    for name, value in (env or {}).items():
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise ValueError(f"{name!r} is no name of a variable")
        if "\0" in str(value) or "\n" in str(value):
            raise ValueError(f"the value of {name} has a newline or a NUL character")
        given[name] = str(value)
    return given


def _env_file(variables: Mapping[str, str]) -> Any:
    """Variables where no process list shows them."""
    file = tempfile.TemporaryFile()
    file.write(b"".join(f"{name}={value}\0".encode() for name, value in variables.items()))
    file.seek(0)
    return file

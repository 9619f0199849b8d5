"""Runs code that nobody has read yet in fresh, kernel-enforced Linux boxes.

    import kern_sandbox as kern

    result = kern.run_code("6 * 7")
    print(result.results[0].text, result.success)
"""

from ._cells import Display
from ._core import CallOptions
from ._shared import shutdown
from ._version import __version__
from ._workspace import Entry, Match, Snapshot, Stat
from .aio import AsyncKernel, AsyncSandbox, run_code_async
from .errors import MountRefused, SandboxError, SidecarLost, UnknownOption
from .kernel import Kernel
from .results import CodeError, ExecutionResult, FileInfo, Frame, Result, SandboxFault, Usage
from .running import Running
from .sandbox import Sandbox, run_code

__all__ = [
    "AsyncKernel",
    "AsyncSandbox",
    "CallOptions",
    "CodeError",
    "Display",
    "Entry",
    "ExecutionResult",
    "FileInfo",
    "Frame",
    "Kernel",
    "Match",
    "MountRefused",
    "Result",
    "Running",
    "Sandbox",
    "SandboxError",
    "SandboxFault",
    "SidecarLost",
    "Snapshot",
    "Stat",
    "UnknownOption",
    "Usage",
    "__version__",
    "run_code",
    "run_code_async",
    "shutdown",
]

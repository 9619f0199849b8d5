"""The options of a kernel, in variables that its kernelspec or its host sets."""

import os
from dataclasses import dataclass
from typing import Any, Callable, Dict, Mapping, Optional

from ..errors import SandboxError
from ..sandbox import Sandbox

PREFIX = "KERN_JUPYTER_"
NOTEBOOK = "/notebook"  # where the box sees the notebook's directory that it may only read
WORKSPACES = ("private", "notebook", "read-notebook")
DISPLAYS = ("safe", "all")
DAY_SECONDS = 86400.0  # somebody is there to interrupt


def _switch(text: str) -> bool:
    if text not in ("0", "1"):
        raise ValueError("0 or 1")
    return text == "1"


def _one_of(*words: str) -> Callable[[str], str]:
    def chosen(text: str) -> str:
        if text not in words:
            raise ValueError(" or ".join(words))
        return text

    return chosen


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("a whole number") from None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError("a number") from None


@dataclass(frozen=True)
class Option:
    parse: Callable[[str], Any]
    what: str


OPTIONS = {
    "memory_mb": Option(_whole, "memory of the box, in MiB (512)"),
    "cpus": Option(_number, "processors (all)"),
    "pids": Option(_whole, "processes and threads (256)"),
    "timeout_s": Option(_number, "deadline of a cell, in seconds (a day)"),
    "network": Option(_switch, "1: the network of the host (0)"),
    "image": Option(str, "file system of the box (the host's /usr, read-only)"),
    "setup": Option(str, "a command with network before the first cell, as: pip install numpy"),
    "workspace": Option(
        _one_of(*WORKSPACES),
        "private: an empty directory, gone with the kernel (default); notebook: the notebook's directory, which cells may "
        f"change; read-notebook: private, and the notebook's directory to be read at {NOTEBOOK}",
    ),
    "display": Option(_one_of(*DISPLAYS), "safe: without scripts and addresses (default); all: as the code gives it"),
}


class Chosen:
    """What the variables say. A wrong value is a SandboxError that names its variable."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        values = {name: _value(environment, name, option) for name, option in OPTIONS.items()}
        given: Dict[str, Any] = {name: value for name, value in values.items() if value is not None}
        for name in environment:
            if name.startswith(PREFIX) and name[len(PREFIX) :].lower() not in OPTIONS:
                known = ", ".join(PREFIX + option.upper() for option in OPTIONS)
                raise SandboxError(
                    f"{name} is no option", reason="unknown_option", path=name, hint=f"there are {known}"
                )
        self.display: str = given.pop("display", "safe")
        self.workspace: str = given.pop("workspace", "private")
        self._options = {"timeout_s": DAY_SECONDS, "track_files": False, **given}

    def sandbox(self, directory: str) -> Sandbox:
        """For a notebook in this directory."""
        options = dict(self._options)
        if self.workspace != "private":
            directory = os.path.realpath(directory)
            _refuse_home(directory, PREFIX + "WORKSPACE")
        if self.workspace == "notebook":
            options["workspace"] = directory
        elif self.workspace == "read-notebook":
            options["mounts"] = {directory: (NOTEBOOK, "ro")}
        return Sandbox(**options)


def _value(environment: Mapping[str, str], name: str, option: Option) -> Any:
    variable = PREFIX + name.upper()
    text: Optional[str] = environment.get(variable)
    if not text:
        return None
    try:
        return option.parse(text)
    except ValueError as wanted:
        raise SandboxError(f"{variable}: {wanted} wanted, not {text!r}", path=variable) from None


def _refuse_home(directory: str, variable: str) -> None:
    """Keys, histories and start-up files lie in a home directory."""
    home = os.path.realpath(os.path.expanduser("~"))
    if os.path.commonpath([directory, home]) == directory:
        raise SandboxError(
            f"{directory} is, or holds, your home directory",
            reason="mount_refused",
            path=variable,
            hint="move the notebook into a directory of its own, or use the private workspace",
        )

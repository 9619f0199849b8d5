"""What the package raises. A verdict on code that ran is never an exception: it is `fault` in a result."""

from typing import Any, Dict, Mapping, Optional

from ._protocol import RETRYABLE


class SandboxError(Exception):
    """The request had no effect: a box did not start, an option is wrong, a file is not there.

    Switch on `reason`, a word that stays the same between releases (`proto/REFERENCE.md` lists all); the text is for a
    person. `path` names the option or the field, `hint` is the cure, `retryable` says that the same call may work later.
    """

    def __init__(
        self,
        message: str,
        *,
        reason: str = "invalid_value",
        path: Optional[str] = None,
        hint: Optional[str] = None,
        code: Optional[int] = None,
        details: Optional[Mapping[str, Any]] = None,
    ) -> None:
        super().__init__(f"{message}; {hint}" if hint else message)
        self.message = message
        self.reason = reason
        self.path = path
        self.hint = hint
        self.code = code
        self.details: Mapping[str, Any] = details or {}
        self.retryable = reason in RETRYABLE


class MountRefused(SandboxError):
    """A `mounts` or `tmpfs` entry that this sandbox does not make for anybody."""


class UnknownOption(SandboxError, TypeError):
    """A keyword that no option has: a misspelt safety option must not be ignored."""


class SidecarLost(SandboxError):
    """The sidecar process ended while the call was running, or with the session that the call needs.

    The next call starts a new one. What a call that was running did to a `workspace=` directory stays.
    """


def error_of(error: Mapping[str, Any]) -> SandboxError:
    """The exception of a JSON-RPC error."""
    data: Dict[str, Any] = error.get("data") or {}
    reason = data.get("reason", "internal")
    kind = MountRefused if reason == "mount_refused" else SandboxError
    details = dict(data.get("details") or {})
    details.update({key: data[key] for key in ("errno", "step") if key in data})
    return kind(
        error.get("message", reason),
        reason=reason,
        path=data.get("path"),
        hint=data.get("hint"),
        code=error.get("code"),
        details=details,
    )

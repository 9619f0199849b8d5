"""What a caller asks for, checked when it is asked for, in the protocol's words."""

import inspect
import os
import re
from difflib import get_close_matches
from functools import wraps
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, TypeVar, Union, cast

from ._protocol import RULES
from .errors import MountRefused, SandboxError, UnknownOption

F = TypeVar("F", bound=Callable[..., Any])
StrPath = Union[str, "os.PathLike[str]"]
Mounts = Mapping[StrPath, Union[str, Tuple[str, str]]]
Tmpfs = Union[Mapping[str, str], Sequence[str]]
Callback = Callable[[bytes], Any]

TYPES: Dict[str, Tuple[type, str]] = {
    "string": (str, "a string"),
    "integer": (int, "an integer"),
    "boolean": (bool, "True or False"),
    "array": (list, "a list"),
    "object": (dict, "a dict"),
}
UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
# Refused before the sidecar is asked, as it refuses them: a program learns of it where it was written.
NEVER_SOURCES = ("/", "/etc", "/root", "/boot", "/proc", "/sys", "/dev", "/run/docker.sock", "/var/run/docker.sock")
NEVER_TARGETS = ("/proc", "/sys", "/dev")
DOMAIN = re.compile(r"(?=.{1,253}$)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}", re.IGNORECASE)
PROFILE = re.compile(r"(?:vcpu|vgpio|vdisk):[A-Za-z0-9][A-Za-z0-9._-]*")
CAPABILITY = re.compile(r"(?:CAP_)?[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*")
APPARMOR = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.-]{0,127}")


def named_options(function: F) -> F:
    """A misspelt keyword is the package's own error, with the option that was probably meant."""
    names = [name for name in inspect.signature(function).parameters if name != "self"]

    @wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        for name in kwargs:
            if name not in names:
                refuse_unknown(name, names)
        return function(*args, **kwargs)

    return cast(F, checked)


def refuse_unknown(name: str, names: Sequence[str]) -> None:
    near = get_close_matches(name, names, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"the options are {', '.join(names)}"
    raise UnknownOption(f"there is no option {name!r}", reason="unknown_option", path=name, hint=hint)


def wrong(name: str, what: str, value: Any, reason: str = "invalid_value", hint: Optional[str] = None) -> SandboxError:
    return SandboxError(f"{name} has to be {what}, not {_shown(value)}", reason=reason, path=name, hint=hint)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def field(name: str, value: Any, message: str, wire: str) -> Any:
    """The value, if the message's field takes it."""
    rules = RULES[message][wire]
    kind = rules.get("type")
    if kind in TYPES:
        wanted, words = TYPES[kind]
        if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
            raise wrong(name, words, value, "invalid_type")
    if "enum" in rules and value not in rules["enum"]:
        raise wrong(name, "one of " + ", ".join(map(repr, rules["enum"])), value)
    if "minimum" in rules and not rules["minimum"] <= value <= rules["maximum"]:
        raise wrong(name, f"from {rules['minimum']} to {rules['maximum']}", value, "out_of_range")
    if isinstance(value, str):
        _check_text(name, value, rules)
    count(name, value, message, wire)
    return value


def count(name: str, value: Any, message: str, wire: str) -> None:
    """How many items there may be."""
    rules = RULES[message][wire]
    most = rules.get("maxItems", rules.get("maxProperties"))
    if most is not None and not rules.get("minItems", 0) <= len(value) <= most:
        raise wrong(name, f"{rules.get('minItems', 0)} to {most} items long", len(value), "out_of_range")


def _check_text(name: str, value: str, rules: Mapping[str, Any]) -> None:
    if "\0" in value:
        raise SandboxError(f"{name} has a NUL character", path=name)
    if len(value) < rules.get("minLength", 0):
        raise wrong(name, "a string that is not empty", value)
    if "x-maxBytes" in rules and len(value.encode(errors="surrogatepass")) > rules["x-maxBytes"]:
        raise wrong(name, f"at most {rules['x-maxBytes']} bytes long", f"{len(value)} characters", "out_of_range")
    if "pattern" in rules and not re.search(rules["pattern"], value):
        raise wrong(name, f"a string that matches {rules['pattern']}", value)


def milliseconds(name: str, seconds: Any, message: str = "SessionOpenParams") -> int:
    """A deadline. There always is one."""
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise wrong(name, "a number of seconds", seconds, "invalid_type")
    if not 0 < seconds <= 86400:
        raise wrong(name, "above 0 and at most 86400 seconds", seconds, "out_of_range")
    return int(field(name, max(1, round(seconds * 1000)), message, "timeoutMs"))


def thousandths(name: str, cpus: Any) -> int:
    if isinstance(cpus, bool) or not isinstance(cpus, (int, float)):
        raise wrong(name, "a number of CPUs", cpus, "invalid_type")
    if not 0.01 <= cpus <= 1024:
        raise wrong(name, "from 0.01 to 1024 CPUs", cpus, "out_of_range")
    return round(cpus * 1000)


def callback(name: str, value: Any) -> Optional[Callback]:
    if value is not None and not callable(value):
        raise wrong(name, "a function that takes bytes", value, "invalid_type")
    return cast(Optional[Callback], value)


def path(name: str, value: Any) -> str:
    """An absolute path of the host."""
    try:
        given = os.fspath(value)
    except TypeError:
        raise wrong(name, "a path", value, "invalid_type") from None
    if not isinstance(given, str) or not given or "\0" in given:
        raise wrong(name, "a path", value)
    return os.path.abspath(os.path.expanduser(given))


def env(name: str, value: Any) -> Dict[str, str]:
    if not isinstance(value, Mapping):
        raise wrong(name, "a dict of strings", value, "invalid_type")
    for key, text in value.items():
        if not isinstance(key, str) or not isinstance(text, str):
            raise wrong(name, "a dict of strings", {key: text}, "invalid_type")
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", key):
            raise SandboxError(f"{key!r} is no name of a variable", path=f"{name}/{key}")
        if "\n" in text or "\0" in text:
            raise SandboxError(f"the value of {key} has a newline or a NUL character", path=f"{name}/{key}")
    return dict(value)


def texts(name: str, value: Any, pattern: "Optional[re.Pattern[str]]" = None, what: str = "") -> List[str]:
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise wrong(name, "a list of strings", value, "invalid_type")
    items = list(value)
    for item in items:
        if not isinstance(item, str) or "\0" in item:
            raise wrong(name, "a list of strings", item, "invalid_type")
        if pattern is not None and not pattern.fullmatch(item):
            raise SandboxError(f"{name}: {_shown(item)} is not {what}", path=name)
    return items


def mounts(value: Any) -> List[Dict[str, str]]:
    if not isinstance(value, Mapping):
        raise wrong("mounts", "a dict of {source: target} or {source: (target, 'ro')}", value, "invalid_type")
    return [_mount(source, target) for source, target in value.items()]


def _mount(source: Any, target: Any) -> Dict[str, str]:
    mode = "rw"
    if isinstance(target, (tuple, list)):
        if len(target) != 2:
            raise wrong("mounts", "{source: (target, mode)}", target)
        target, mode = target
    if mode not in ("ro", "rw"):
        raise wrong("mounts", "mounted 'ro' or 'rw'", mode)
    source = path("mounts", source) if os.path.isabs(os.fspath(source)) else _no_mount(source, "is no absolute path")
    real = os.path.realpath(source)
    if not os.path.exists(real):
        _no_mount(source, "is not there")
    if real in NEVER_SOURCES or real == os.path.realpath(os.path.expanduser("~")):
        _no_mount(source, "is never given to a box", "mount a directory below it")
    _target("mounts", target)
    return {"source": source, "target": target, "mode": mode}


def _no_mount(source: Any, why: str, hint: Optional[str] = None) -> Any:
    raise MountRefused(f"the source {_shown(source)} {why}", reason="mount_refused", path="mounts", hint=hint)


def _target(name: str, target: Any) -> str:
    if not isinstance(target, str):
        raise wrong(name, "mounted at a path of the box", target, "invalid_type")
    if not target.startswith("/") or ".." in target.split("/") or "\0" in target:
        raise MountRefused(f"{_shown(target)} is no absolute path without '..'", reason="mount_refused", path=name)
    plain = os.path.normpath(target)
    if plain in ("/", "//") or any(covers(never, plain) for never in NEVER_TARGETS):
        raise MountRefused(f"nothing can be mounted at {target}", reason="mount_refused", path=name)
    return plain


def covers(upper: str, lower: str) -> bool:
    """Is `lower` at or below `upper`?"""
    return lower == upper or lower.startswith(upper.rstrip("/") + "/")


def tmpfs(value: Any, memory_mb: Optional[int], binds: Sequence[Mapping[str, str]]) -> Dict[str, str]:
    """{target: size}. A list of targets has the default size each."""
    if isinstance(value, (str, bytes)) or not isinstance(value, (Mapping, list, tuple)):
        _no_tmpfs("tmpfs has to be a dict of {target: size}", "write {'/tmp': '64m'}")
    default = f"{max(1, min(64, (memory_mb or 512) // 2))}m"
    wanted = dict(value) if isinstance(value, Mapping) else {target: default for target in value}
    for target, size in wanted.items():
        if isinstance(target, str) and ":" in target:
            _no_tmpfs(f"the target {target!r} has a colon", "the size is the value: {'/scratch': '9g'}")
        plain = _target("tmpfs", target)
        if not isinstance(size, str) or not re.fullmatch(r"[1-9][0-9]*[kmg]", size):
            _no_tmpfs(f"the size of {target} is {_shown(size)}", "write a number with its unit: '64m'")
        if memory_mb is not None and int(size[:-1]) * UNITS[size[-1]] > memory_mb << 20:
            _no_tmpfs(f"{target} with {size} is larger than memory_mb={memory_mb}, which its bytes count for")
        for bind in binds:
            if covers(plain, os.path.normpath(bind["target"])):
                _no_tmpfs(f"the tmpfs at {target} would hide the mount at {bind['target']}")
    return wanted


def _no_tmpfs(why: str, hint: Optional[str] = None) -> None:
    raise MountRefused(why, reason="mount_refused", path="tmpfs", hint=hint)

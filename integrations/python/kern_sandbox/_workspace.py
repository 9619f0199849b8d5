"""The file operations that are one request each, and what they answer."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from . import _options as check
from ._core import content_of, path_params
from ._requests import Operation, bytes_of
from .results import path_of, text_of

if TYPE_CHECKING:
    from ._core import Core

Edit = Union[Tuple[str, str], Tuple[str, str, bool]]


@dataclass(frozen=True)
class Entry:
    """A name in the workspace. `type`: `file`, `directory`, `symlink`, `fifo`, `socket` or `device`."""

    path: str
    type: str
    size: int = 0
    mtime_ms: int = 0


@dataclass(frozen=True)
class Stat:
    """What a file is."""

    type: str
    size: int
    mtime_ms: int
    mode: int
    etag: Optional[str] = None
    mime: Optional[str] = None


@dataclass(frozen=True)
class Match:
    """A line that was searched for. `line` and `column` count from 1, `column` in characters."""

    path: str
    line: int
    column: int
    text: str
    before: List[str] = field(default_factory=list)
    after: List[str] = field(default_factory=list)
    cut: bool = False


@dataclass(frozen=True)
class Snapshot:
    """An archive that was made. `skipped`: (path, reason) of what is not in it."""

    bytes: int
    entries: int
    sha256: str
    skipped: List[Tuple[str, str]] = field(default_factory=list)


def entry_of(message: Mapping[str, Any]) -> Entry:
    return Entry(path_of(message), message["type"], message.get("size", 0), message.get("mtimeMs", 0))


def _params(path: Any, **others: Any) -> Dict[str, Any]:
    params: Dict[str, Any] = {name: value for name, value in others.items() if value is not None}
    if path is not None:
        params.update(path_params(path))
    return params


def write(
    core: "Core", path: Any, data: Any, if_exists: str, mode: Optional[int], if_match: Optional[str]
) -> Operation[str]:
    extra = {"ifExists": if_exists, "mode": mode, "ifMatch": if_match}
    given = {name: value for name, value in extra.items() if value is not None}
    return str((yield from core.write_file(path, data, given))["etag"])


def read_lines(core: "Core", path: Any, start: int, count: int) -> Operation[Tuple[Dict[str, Any], bytes]]:
    """Lines of a file, and what file/read says about them. Nothing is read of a file that is not text."""
    told = yield from core.file("file/read", _params(path, lines={"start": start, "count": count}))
    connection, _ = yield from core.session()
    return told, (yield from bytes_of(connection, content_of(told)))


def list_dir(core: "Core", path: Any) -> Operation[List[Entry]]:
    found: List[Entry] = []
    params = _params(None if path in ("", ".") else path, limit=100000)
    while True:
        page = yield from core.file("file/list", params, "entries")
        found += [entry_of(entry) for entry in page["entries"]]
        if "nextCursor" not in page:
            return found
        params["cursor"] = page["nextCursor"]


def stat(core: "Core", path: Any) -> Operation[Stat]:
    told = yield from core.file("file/stat", _params(path))
    return Stat(told["type"], told["size"], told["mtimeMs"], told["mode"], told.get("etag"), told.get("mime"))


def edit(core: "Core", path: Any, edits: Sequence[Edit], if_match: Optional[str]) -> Operation[List[int]]:
    wire: List[Dict[str, Any]] = []
    for edit in edits:
        if not isinstance(edit, (tuple, list)) or not 2 <= len(edit) <= 3:
            raise check.wrong("edits", "a list of (old, new) or (old, new, True)", edit, "invalid_type")
        wire.append({"oldText": edit[0], "newText": edit[1], "all": len(edit) == 3 and bool(edit[2])})
    told = yield from core.file("file/edit", _params(path, edits=wire, ifMatch=if_match))
    return list(told["replacements"])


def make_dir(core: "Core", path: Any, parents: bool) -> Operation[None]:
    yield from core.file("file/mkdir", _params(path, parents=parents))


def move(core: "Core", path: Any, to: Any, replace: bool) -> Operation[None]:
    yield from core.file("file/move", {**_params(path, replace=replace), **path_params(to, "to")})


def remove(core: "Core", path: Any, recursive: bool) -> Operation[None]:
    yield from core.file("file/remove", _params(path, recursive=recursive))


def glob(
    core: "Core", pattern: str, path: Any, ignore: Sequence[str], hidden: bool, gitignore: bool, limit: int
) -> Operation[List[Entry]]:
    params = _params(path, pattern=pattern, ignore=check.texts("ignore", ignore), hidden=hidden, gitignore=gitignore)
    told = yield from core.file("file/glob", {**params, "limit": limit}, "entries")
    return [entry_of(entry) for entry in told["entries"]]


def search(
    core: "Core",
    pattern: str,
    path: Any,
    glob: Optional[str],
    how: Dict[str, Any],
    hidden: bool,
    gitignore: bool,
    limit: int,
) -> Operation[List[Match]]:
    params = _params(path, pattern=pattern, glob=glob, hidden=hidden, gitignore=gitignore, limit=limit, **how)
    told = yield from core.file("file/search", params, "matches")
    return [
        Match(
            path_of(one),
            one["line"],
            one["column"],
            text_of(one["text"]),
            one["before"],
            one["after"],
            one.get("cut", False),
        )
        for one in told["matches"]
    ]


def snapshot(core: "Core", dest: Any, links: str) -> Operation[Snapshot]:
    told = yield from core.file("session/snapshot", {"path": check.path("dest", dest), "links": links}, "skipped")
    skipped = [(path_of(one), one["reason"]) for one in told["skipped"]]
    return Snapshot(told["bytes"], told["entries"], told["sha256"], skipped)


def restore(core: "Core", src: Any, links: str) -> Operation[int]:
    told = yield from core.file("session/restore", {"path": check.path("src", src), "links": links})
    return int(told["entries"])

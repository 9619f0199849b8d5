#!/usr/bin/env python3
"""Writes the API reference from the package's docstrings: docs/generate.py > docs/API.md"""

import inspect
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import kern_sandbox as kern  # noqa: E402

ORDER = [
    ("Running code", ["run_code", "run_code_async", "Sandbox", "AsyncSandbox", "CallOptions", "Running", "shutdown"]),
    ("Kernels", ["Kernel", "AsyncKernel", "Display"]),
    ("Results", ["ExecutionResult", "SandboxFault", "Result", "FileInfo", "CodeError", "Frame", "Usage"]),
    ("Files", ["Entry", "Stat", "Match", "Snapshot"]),
    ("Errors", ["SandboxError", "MountRefused", "UnknownOption", "SidecarLost"]),
]


def plain(text):
    """A type without the module names and quotes that differ between versions of Python."""
    text = re.sub(r"\b(kern_sandbox\.[a-z_]+|typing|collections\.abc)\.", "", str(text)).strip("'\"")
    return re.sub(r"ForwardRef\('(\w+)'\)|'|\"", lambda m: m[1] or "", text)


def signature_of(function):
    parts, starred = [], False
    for name, parameter in inspect.signature(function).parameters.items():
        if name == "self":
            continue
        if parameter.kind is parameter.VAR_KEYWORD:
            parts.append(f"**{name}")
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            parts.append("*")
            starred = True
        parts.append(name if parameter.default is parameter.empty else f"{name}={parameter.default!r}")
    return ", ".join(parts)


def methods_of(thing):
    for name, member in vars(thing).items():
        if (
            not name.startswith("_")
            and name != "start"
            and (inspect.isfunction(member) or isinstance(member, property))
        ):
            if inspect.getdoc(member):
                yield name, member


def section(name, out):
    thing = getattr(kern, name)
    is_class = inspect.isclass(thing)
    fields = getattr(thing, "__dataclass_fields__", None)
    out.append(f"### {name}\n")
    if not is_class or issubclass(thing, kern.Sandbox.__mro__[1]):  # others are not made by a caller
        call = thing.__init__ if is_class else thing
        awaited = "await " if inspect.iscoroutinefunction(thing) else ""
        out.append(f"```python\n{awaited}{name}({signature_of(call)})\n```\n")
    out.append((inspect.getdoc(thing) or "") + "\n")
    if fields:
        out.append("| field | default |\n|---|---|")
        for field in fields.values():
            given = field.default
            shown = "" if repr(given).startswith("<dataclasses._MISSING") else f"`{given!r}`"
            out.append(
                f"| `{field.name}: {plain(field.type if isinstance(field.type, str) else named(field.type))}` | {shown} |"
            )
        out.append("")
    for method, member in methods_of(thing):
        if isinstance(member, property):
            out.append(f"* **`{method}`** - {one_line(member)}")
        else:
            awaited = "await " if inspect.iscoroutinefunction(member) else ""
            out.append(f"* **`{awaited}{method}({signature_of(member)})`** - {one_line(member)}")
    out.append("")


def named(kind):
    return kind.__name__ if inspect.isclass(kind) and not getattr(kind, "__args__", None) else kind


def one_line(member):
    lines = (inspect.getdoc(member) or "").replace("\n\n* ", " - ").replace("\n* ", "; ")
    return " ".join(lines.split())


def page():
    out = [
        "# API of kern_sandbox\n",
        "Made by `docs/generate.py` from the docstrings; do not edit. Reasons of errors and everything about options:"
        " the protocol's [reference](../../../proto/REFERENCE.md).\n",
    ]
    missing = set(kern.__all__) - {name for _, names in ORDER for name in names} - {"__version__"}
    if missing:
        raise SystemExit(f"docs/generate.py has no place for {sorted(missing)}")
    for title, names in ORDER:
        out.append(f"## {title}\n")
        for name in names:
            section(name, out)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out)).rstrip() + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())

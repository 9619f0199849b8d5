#!/usr/bin/env python3
"""An include may only point to a lower layer (or its own). Prints each that does not, and exits 1.

The order is the architecture's; `may` says for each directory what it may include besides itself."""

import os
import re
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BASE = {"base"}
CORE = BASE | {"proto", "box", "workspace", "worker", "image", "egress", "plugins", "render"}
SESSION = CORE | {"session"}
MAY = {
    "base": set(),
    "proto": BASE,
    "box": BASE,  # knows no JSON
    "workspace": BASE,
    "image": BASE,
    "egress": BASE,
    "worker": BASE | {"workspace"},
    "plugins": BASE,
    "render": BASE,
    "session": CORE,
    "rpc": SESSION,
    "mcp": SESSION | {"rpc"},
    "cli": SESSION | {"rpc", "mcp"},
    "main": SESSION | {"rpc", "mcp", "cli"},
}
PLUGIN_HEADER = "plugins/kern_plugin.h"  # the only header of ours that a plugin includes
IN_BOX = {"languages/python/fork.c": "sidecar/base/join.h"}  # what runs in a box, and the words that it shares with the box's init
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)


def layer_of(path):
    """The layer of a file below the top directory, or None when the rule is not about it."""
    parts = path.split(os.sep)
    if parts[0] == "sidecar":
        return parts[1] if len(parts) > 2 else "main"
    if parts[0] == "plugins" and len(parts) == 2:
        return "plugins"
    return {"proto": "proto", "languages": "language", "plugins": "language"}.get(parts[0])


def resolve(source, include):
    """Path of an included file below the top directory: beside its source, in sidecar/, or from the top."""
    for directory in (os.path.dirname(source), "sidecar", ""):
        path = os.path.normpath(os.path.join(directory, include))
        if os.path.exists(os.path.join(TOP, path)):
            return path
    return None


def wrong(source, include):
    """A sentence when `source` may not include this, else None."""
    target = resolve(source, include)
    if target is None:
        return "is not there"
    here, there = layer_of(source), layer_of(target)
    if here == "language":
        own = os.path.dirname(target) in (os.path.dirname(source), "languages")
        return None if own or target in (PLUGIN_HEADER, IN_BOX.get(source)) else f"a plugin includes only its own files and {PLUGIN_HEADER}"
    if there == here:
        return None
    if here not in MAY:
        return f"directory {here!r} has no place in the order of tests/layers.py"
    return None if there in MAY[here] else f"{here} may not include {there}"


def sources():
    for top in ("sidecar", "proto", "plugins", "languages"):
        for directory, names, files in os.walk(os.path.join(TOP, top)):
            names.sort()
            for name in sorted(files):
                if name.endswith((".c", ".h", ".cc", ".inc")):
                    yield os.path.relpath(os.path.join(directory, name), TOP)


def main():
    count, problems = 0, []
    for source in sources():
        with open(os.path.join(TOP, source), encoding="utf-8") as file:
            for include in INCLUDE.findall(file.read()):
                count += 1
                problem = wrong(source, include)
                if problem:
                    problems.append(f'{source}: #include "{include}": {problem}')
    print("\n".join(problems + [f"{count} includes, {len(problems)} wrong"]))
    return 1 if problems or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())

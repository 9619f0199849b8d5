"""`python -m kern_sandbox.mcp` and `kern-mcp`: the sidecar as an MCP server over stdio.

This process becomes `kern-sidecar --mcp`; the `KERN_MCP_*` variables and further arguments are the sidecar's."""

import os
import sys
from typing import Optional, Sequence

from ._process import find_program
from .errors import SandboxError


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Does not return when the sidecar is there."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        program = find_program()
        os.execv(program, [program, "--mcp", *given])
    except (SandboxError, OSError) as problem:
        print(f"kern-mcp: {problem}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())

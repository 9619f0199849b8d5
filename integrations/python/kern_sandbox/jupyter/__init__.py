"""Jupyter kernels whose cells run in a box: `python -m kern_sandbox.jupyter install`. Needs `kern-sandbox[jupyter]`."""

import os

from ._host import end_with_host


def launch(language: str) -> None:
    """Runs a kernel of the language until its client shuts it down: what the installed kernelspecs call."""
    end_with_host(os.environ)
    from ._kernel import run_kernel  # takes a while

    run_kernel(language)

"""Jupyter kernels whose cells run in a box: `python -m kern_sandbox.jupyter install`. Needs `kern-sandbox[jupyter]`."""


def launch(language: str) -> None:
    """Runs a kernel of the language until its client shuts it down: what the installed kernelspecs call."""
    from ._kernel import run_kernel

    run_kernel(language)

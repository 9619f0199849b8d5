"""`python -m kern_sandbox.jupyter`: installs, lists and removes the kernelspecs."""

import argparse
import json
import os
import sys
import tempfile
from typing import Any, Dict, List, Optional, Sequence

from .._shared import connection
from ..errors import SandboxError
from ._languages import LANGUAGES
from ._options import OPTIONS, PREFIX, Chosen

# The working directory is the notebook's, and cells may write there: Python must not look for modules in it.
START = "import sys; sys.path[:] = [p for p in sys.path if p]; from kern_sandbox.jupyter import launch; launch({!r})"
OURS = "kern_sandbox"


def kernelspec(language: str, display_name: Optional[str], environment: Dict[str, str]) -> Dict[str, Any]:
    return {
        "argv": [sys.executable, "-c", START.format(language), "-f", "{connection_file}"],
        "display_name": display_name or f"{LANGUAGES[language].title} (kern box)",
        "language": LANGUAGES[language].info["name"],
        "interrupt_mode": "message",
        "env": environment,
        "metadata": {"debugger": False, OURS: {"language": language}},
    }


def install(args: argparse.Namespace, manager: Any) -> None:
    environment = {PREFIX + name.upper(): getattr(args, name) for name in OPTIONS if getattr(args, name) is not None}
    Chosen(environment).sandbox(tempfile.gettempdir())  # says what is wrong now, not in the notebook
    if os.environ.get("KERN_SIDECAR"):
        environment["KERN_SIDECAR"] = os.path.abspath(os.environ["KERN_SIDECAR"])
    has_kernel = [each["name"] for each in connection().welcome["capabilities"]["languages"] if each["kernel"]]
    languages: List[str] = args.language or [name for name in LANGUAGES if name in has_kernel]
    if args.name and len(languages) != 1:
        raise SandboxError("--name is for one --language", path="--name")
    for language in languages:
        if language not in has_kernel:
            raise SandboxError(
                f"this sidecar has no kernels of {language}", reason="unknown_language", hint="install its interpreter"
            )
        with tempfile.TemporaryDirectory() as directory:
            with open(os.path.join(directory, "kernel.json"), "w", encoding="utf-8") as file:
                json.dump(kernelspec(language, args.display_name, environment), file, indent=1)
            os.chmod(directory, 0o755)
            name = args.name or f"kern-{language}"
            prefix = sys.prefix if args.sys_prefix else args.prefix
            print(name, manager.install_kernel_spec(directory, name, user=args.user, prefix=prefix))


def ours(manager: Any) -> Dict[str, Any]:
    """Our kernelspecs by name."""
    found = manager.get_all_specs()
    return {name: each for name, each in sorted(found.items()) if OURS in each["spec"].get("metadata", {})}


def show(args: argparse.Namespace, manager: Any) -> None:
    for name, each in ours(manager).items():
        options = " ".join(f"{key}={value}" for key, value in each["spec"]["env"].items())
        print(name, each["resource_dir"], options)


def remove(args: argparse.Namespace, manager: Any) -> None:
    there = ours(manager)
    for name in args.name or list(there):
        if name not in there:
            raise SandboxError(f"there is no kernelspec {name} of kern_sandbox", reason="not_found", path="name")
        print(name, manager.remove_kernel_spec(name))


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m kern_sandbox.jupyter", description=__doc__)
    commands = top.add_subparsers(dest="command", required=True)
    installing = commands.add_parser("install", help="install kernelspecs: kern-python, kern-node, kern-bash")
    installing.set_defaults(do=install)
    place = installing.add_mutually_exclusive_group()
    place.add_argument("--user", action="store_true", help="for this user only")
    place.add_argument("--sys-prefix", action="store_true", help="in the environment of this Python")
    place.add_argument("--prefix", help="below PREFIX/share/jupyter")
    installing.add_argument(
        "--language", action="append", choices=sorted(LANGUAGES), help="default: all that there are"
    )
    installing.add_argument("--name", help="name of the kernelspec, for a second one with other options")
    installing.add_argument("--display-name", help="what the host shows")
    for name, option in OPTIONS.items():
        installing.add_argument("--" + name.replace("_", "-"), help=option.what)
    commands.add_parser("list", help="list them with their options").set_defaults(do=show)
    removing = commands.add_parser("remove", help="remove them")
    removing.add_argument("name", nargs="*", help="default: all of ours")
    removing.set_defaults(do=remove)
    return top


def main(argv: Optional[Sequence[str]] = None) -> int:
    args = parser().parse_args(argv)
    try:
        import ipykernel  # noqa: F401
        from jupyter_client.kernelspec import KernelSpecManager
    except ImportError as problem:
        print(f"kern_sandbox.jupyter: {problem}; pip install 'kern-sandbox[jupyter]'", file=sys.stderr)
        return 1
    try:
        args.do(args, KernelSpecManager())
    except (SandboxError, OSError) as problem:
        print(f"kern_sandbox.jupyter: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

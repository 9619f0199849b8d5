# install.py DEPS ARGS...: `pip install ARGS` into the directory DEPS, for session/setup. Not a part of the runner.
#
# pip's --target knows nothing of what is there: it leaves an older version's files, or with --upgrade removes whole
# directories that distributions share (bin, namespace packages). So it gets an empty place beside, and what came out is
# put into DEPS here: a distribution that is in both is removed first, file by file as its RECORD says.
import os
import re
import shutil
import subprocess
import sys


def name_of(distribution):
    return re.sub(r"[-_.]+", "-", distribution.metadata["Name"] or "").lower()


def remove(distribution, deps):
    for file in distribution.files or ():
        parts = file.parts
        if ".." in parts:  # "../../bin/tool": as if it were a prefix; --target has put it in bin
            parts = ("bin", parts[-1])
        path = os.path.join(deps, *parts)
        if os.path.isabs(file) or not os.path.lexists(path) or os.path.isdir(path):
            continue
        os.unlink(path)
        directory = os.path.dirname(path)
        shutil.rmtree(os.path.join(directory, "__pycache__"), ignore_errors=True)
        while directory != deps and not os.listdir(directory):
            os.rmdir(directory)
            directory = os.path.dirname(directory)


def put(new, deps):
    for directory, _, files in os.walk(new):
        to = os.path.join(deps, os.path.relpath(directory, new))
        os.makedirs(to, exist_ok=True)
        for file in files:
            os.replace(os.path.join(directory, file), os.path.join(to, file))


def replace_distributions(new, deps):
    from importlib.metadata import distributions

    coming = {name_of(distribution) for distribution in distributions(path=[new])}
    for distribution in list(distributions(path=[deps])):
        if name_of(distribution) in coming:
            remove(distribution, deps)


def main():
    deps, *arguments = sys.argv[1:]
    try:
        import pip  # noqa: F401
    except ImportError:
        sys.exit("kern-setup: this interpreter has no pip")
    work = os.path.join(deps, ".pip")  # in DEPS, so that a file that is moved is not copied
    shutil.rmtree(work, ignore_errors=True)
    os.mkdir(work)
    new = os.path.join(work, "new")
    command = [sys.executable, "-I", "-m", "pip", "install", "--target", new, "--no-compile", *arguments]
    status = subprocess.call(command, env={**os.environ, "TMPDIR": work})
    if status == 0 and os.path.isdir(new):  # not there: the arguments name another place, or ask for help
        if len(os.listdir(deps)) > 1:
            replace_distributions(new, deps)
        put(new, deps)
    shutil.rmtree(work, ignore_errors=True)
    sys.exit(status if status >= 0 else 128 - status)


main()

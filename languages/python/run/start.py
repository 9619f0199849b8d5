# start.py RESULT_FD ...: runs runner.py, from the bytecode beside it when that was made for this interpreter: to compile it takes 2 ms of
# each start.
plain = dict(globals())  # first: just what `python FILE` finds in its namespace, whatever the version

import sys  # noqa: E402
import marshal  # noqa: E402

HERE = __file__.rpartition("/")[0] + "/"
MAGIC = sys.modules["_frozen_importlib_external"].MAGIC_NUMBER


def code_of(name):
    """Of a file of this directory."""
    path = HERE + name + ".py"
    try:
        with open(path + "c", "rb") as file:
            data = file.read()
        code = marshal.loads(data[16:]) if data.startswith(MAGIC) else None  # 16: of the header (PEP 552)
        if getattr(code, "co_filename", None) == path:
            return code
    except (OSError, EOFError, TypeError, ValueError):
        pass
    with open(path, "rb") as file:
        return compile(file.read(), path, "exec", 0, True)


exec(code_of("runner"), globals())

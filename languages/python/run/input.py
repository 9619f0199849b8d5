"""input() and getpass() in the cells of a kernel: they tell the host what they ask for, and read the cell's own stdin."""
import builtins
import posix
import sys

runner = sys.modules["_kern_runner"]
plain_input, plain_stdin = builtins.input, sys.stdin
stream = None  # of a cell that may ask


def begin(fd):
    global stream
    if fd is None:
        return
    posix.dup2(fd, 0)
    posix.close(fd)
    stream = sys.stdin = open(0, closefd=False)


def end():
    global stream
    if stream is None:
        return
    null = posix.open("/dev/null", posix.O_RDONLY | posix.O_CLOEXEC)
    posix.dup2(null, 0)
    posix.close(null)
    if sys.stdin is stream:
        sys.stdin = plain_stdin
    stream = None


def ask(prompt, password):
    if stream is None:
        raise EOFError("this cell may not ask for input: it was not run with allowInput")
    runner.flush()
    channel = runner.channel
    with channel.lock:
        if not channel.busy and channel.usable():
            channel.id += 1
            channel.write(runner.STATE, channel.pack([("input", runner.utf8(prompt))] + ([("password", b"")] if password else [])))
    line = stream.readline()
    if not line:
        raise EOFError("EOF when reading a line")
    return line[:-1] if line.endswith("\n") else line


def own():
    """The code has not put another stdin in its place."""
    return sys.stdin is (stream or plain_stdin)


def input(prompt="", /):
    return ask(str(prompt), False) if own() else plain_input(prompt)


def adopt():
    builtins.input = input
    runner.part("imports").HOOKS["getpass"] = ("input", "adopt_getpass")
    runner.HOOKED |= {"getpass"}
    if "getpass" in sys.modules:
        adopt_getpass(sys.modules["getpass"])


def adopt_getpass(module):
    plain = module.getpass

    def getpass(prompt="Password: ", stream=None, **options):
        return ask(str(prompt), True) if own() else plain(prompt, stream, **options)

    getpass.__doc__ = plain.__doc__
    module.getpass = getpass

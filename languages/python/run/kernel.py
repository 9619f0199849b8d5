"""Serves cells: each comes as one message with its descriptors and ends with one word."""
import _signal
import _socket
import builtins
import linecache
import posix
import sys

runner = sys.modules["_kern_runner"]
CELL = 8
HEADER, PIECE = runner.HEADER, runner.PIECE
NAMES = 200  # cells whose lines are kept for tracebacks


class Interrupts:
    """SIGINT is for the code of a cell; at any other time it comes too late."""

    def __init__(self):
        self.active = False

    def __call__(self, number, frame):
        if self.active:
            raise KeyboardInterrupt


def exit_cell(code=None):
    raise SystemExit(code)


def futures():
    import __future__
    return sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names
               if name not in ("nested_scopes", "generators"))


def receive(sock):
    """The next cell: its number, parts and descriptors; None at the end of the channel."""
    while True:
        data, ancillary, _, _ = sock.recvmsg(HEADER + PIECE, _socket.CMSG_SPACE(16))
        fds = []
        for _, _, found in ancillary:
            fds += [moved(int.from_bytes(found[at:at + 4], sys.byteorder)) for at in range(0, len(found), 4)]
        if not data:
            return None
        if data[5] == CELL:
            return int.from_bytes(data[8:12], "little"), parts_of(data[HEADER:]), fds
        for fd in fds:  # an acknowledgement that nobody waits for any more
            posix.close(fd)


def moved(fd):
    """Away from the numbers of the streams, which are free when the code has closed them."""
    held = []
    while fd < 3:
        held.append(fd)
        fd = posix.dup(fd)
    for low in held:
        posix.close(low)
    return fd


def parts_of(data):
    parts = {}
    while data:
        key_length, length = int.from_bytes(data[:2], "little"), int.from_bytes(data[2:6], "little")
        key = data[6:6 + key_length - 1].decode()
        parts[key] = data[6 + key_length:6 + key_length + length]
        data = data[6 + key_length + length:]
    return parts


class Pipes:
    """Of the cells' stdout and stderr. A number of ours that the code has closed is no longer ours."""

    def __init__(self):
        self.kept = []  # (descriptor, what it is)

    def replace(self, fds):
        for fd, what in self.kept:
            if runner.identity(fd) == what:
                posix.close(fd)
        self.kept = [(fd, runner.identity(fd)) for fd in fds]

    def connect(self):
        """Puts them where stdout and stderr are, whatever the code of the last cell has put there."""
        runner.flush()  # what is printed between two cells goes where the last one's output went
        for stream, (fd, what) in enumerate(self.kept, 1):
            if runner.identity(fd) == what:
                posix.dup2(fd, stream)


def read_all(fd):
    source = b""
    while True:
        more = posix.pread(fd, 1 << 16, len(source))
        source += more
        if len(more) < 1 << 16:  # of a file in memory only the last piece is shorter
            posix.close(fd)
            return source


def remember(name, source):
    """Tracebacks of later cells show lines of this one. No mtime: linecache.checkcache() would drop the entry."""
    runner.sources[name] = source
    linecache.cache[name] = (len(source), None, runner.lines_of(source), name)
    while len(runner.sources) > NAMES:
        linecache.cache.pop(next(iter(runner.sources)), None)
        del runner.sources[next(iter(runner.sources))]


def exit_code(code):
    if code is None or isinstance(code, int):
        return (code or 0) & 0xff
    print(code, file=sys.stderr)
    return 1


class Cells:
    def __init__(self, namespace):
        self.namespace, self.interrupts, self.flags, self.known = namespace, Interrupts(), 0, futures()

    def run(self, name, source):
        """How it ended: status, and what it asked to exit with, or None."""
        phase, failure, asked = "compile", None, None
        _signal.signal(_signal.SIGINT, self.interrupts)  # code may have set another
        self.namespace.pop("__warningregistry__", None)  # or the same warning is not shown in a later cell
        try:
            self.interrupts.active = True
            try:
                code = runner.parse(source, name, self.flags)
                flags = runner.flags_of(*code)
                self.flags |= flags & self.known
                phase = "run"
                execute = runner.part("awaits").execute_cell if flags & runner.COROUTINE else runner.execute
                self.show(execute(*code, self.namespace))
            except SystemExit as error:
                asked = exit_code(error.code)
            except BaseException:
                failure = sys.exc_info()
            runner.finish()
        except BaseException:  # an interrupt of the figures
            failure = failure or sys.exc_info()
        finally:
            self.interrupts.active = False
        if failure is None:
            return "ok", asked
        # Behind the handler, so that this exception is not the context of another.
        runner.part("errors").tell(failure, phase, name, None)
        return "interrupted" if issubclass(failure[0], KeyboardInterrupt) else "error", None

    def show(self, value):
        if value is not None and "_" not in self.namespace:
            builtins._ = value
        runner.channel.patient = "_kern_figures" in sys.modules  # drawing them may print
        try:
            sys.displayhook(value)
        finally:
            runner.channel.patient = True


def serve(namespace):
    channel, me = runner.channel, posix.getpid()
    sock = _socket.socket(fileno=channel.fd)
    cells = Cells(namespace)
    builtins.exit = builtins.quit = exit_cell  # those of site close stdin
    inputs = runner.part("input")
    inputs.adopt()
    sys.argv[:] = [""]
    sys.path[0] = ""
    _signal.signal(_signal.SIGINT, cells.interrupts)
    channel.close(channel.pack([("ready", b""), ("inline", b"")]))
    fine = channel.pack([("done", b""), ("status", b"ok")])
    pipes = Pipes()
    while True:
        cell = receive(sock)
        if cell is None:
            posix._exit(0)
        channel.call, parts, fds = cell
        name = parts["name"].decode("utf-8", "replace")
        if "same" not in parts:
            pipes.replace(fds[:2])
            fds = fds[2:]
        pipes.connect()
        source = parts["code"] if "code" in parts else read_all(fds.pop(0))
        if source.startswith(b"\xef\xbb\xbf"):
            source = source[3:]
        remember(name, source)
        inputs.begin(fds[0] if fds else None)
        channel.open = True
        try:
            status, asked = cells.run(name, source)
        except KeyboardInterrupt:  # between the end of the code and the end of this
            status, asked = "interrupted", None
        runner.flush()
        if posix.getpid() != me:  # the cell has forked, and this is the child, which ends where the cell does
            posix._exit(asked or (0 if status == "ok" else 1))
        inputs.end()
        word = fine
        if status != "ok" or asked is not None:
            asked = [] if asked is None else [("exit", str(asked).encode())]
            word = channel.pack([("done", b""), ("status", status.encode())] + asked)
        channel.close(word)

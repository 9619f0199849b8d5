"""An exception that nobody caught: what CPython prints, with the caller's frames only, and an error frame."""
import _io
import itertools
import sys

runner = sys.modules["_kern_runner"]
FRAMES, MESSAGE, TRACEBACK, LINE = 100, 8192, 65536, 4096
CAUSES = 8  # how deep; the host takes as many
FAMILY = 1000  # exceptions of one chain or group whose tracebacks are looked at


def ours(traceback):
    return traceback.tb_frame.f_code.co_filename.startswith(runner.HERE)


def trim(traceback, name=None):
    """From the first frame of the caller's code on, without those of the runner in between."""
    first = traceback
    while first is not None and name is not None and first.tb_frame.f_code.co_filename != name:
        first = first.tb_next
    if first is None or name is None:
        first = traceback
        while first is not None and ours(first):
            first = first.tb_next
    at = first
    while at is not None:
        while at.tb_next is not None and ours(at.tb_next):
            at.tb_next = at.tb_next.tb_next
        at = at.tb_next
    return first


def cause_of(error):
    if error.__cause__ is not None:
        return error.__cause__
    return None if error.__suppress_context__ else error.__context__


def trim_relatives(error):
    """Of where an exception came from and what it is a group of, at any depth."""
    seen, waiting = {id(error)}, [error]
    while waiting and len(seen) < FAMILY:
        one = waiting.pop()
        members = getattr(one, "exceptions", ()) if hasattr(one, "derive") else ()
        for other in (one.__cause__, one.__context__, *(members if isinstance(members, tuple) else ())):
            if isinstance(other, BaseException) and id(other) not in seen:
                seen.add(id(other))
                waiting.append(other)
                other.__traceback__ = trim(other.__traceback__)


def message_of(error):
    try:
        return str.__str__(str(error.msg if isinstance(error, SyntaxError) else error))
    except Exception:
        return "<its str() raised an exception>"


def utf8(text, limit):
    return runner.utf8(text[:limit])


def through_linecache(name, path):
    """Until 3.12 the built-in hook reads the lines from the file called `name`, which is not where the code is."""
    return name != path and sys.version_info < (3, 13)


def print_default(kind, error, traceback, name, path):
    if through_linecache(name, path):
        import traceback as module
        module.print_exception(kind, error, traceback, file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, traceback)


def remember(name, path):
    """Lets linecache, so tracebacks, find the code under the name that the caller gave it."""
    if name == path or name not in runner.sources:
        return
    import linecache
    lines = runner.lines_of(runner.sources[name])
    linecache.cache[name] = (sum(map(len, lines)), None, lines, name)


def show(kind, error, traceback, name, path):
    """Prints; returns the text when the default hook made it."""
    if sys.excepthook is not sys.__excepthook__:
        try:
            sys.excepthook(kind, error, traceback)
            return ""
        except SystemExit:
            raise
        except BaseException:  # as PyErr_Print does
            hook = sys.exc_info()
            hook[1].__traceback__ = trim(hook[2], name)
            sys.stderr.write("Error in sys.excepthook:\n")
            sys.__excepthook__(hook[0], hook[1], hook[1].__traceback__)
            sys.stderr.write("\nOriginal exception was:\n")
    stream = sys.stderr
    sys.stderr = copy = _io.StringIO()
    try:
        print_default(kind, error, traceback, name, path)
    finally:
        sys.stderr = stream
    text = copy.getvalue()
    if stream is not None:
        stream.write(text)
        stream.flush()
    return text


def frame(line, column, file, function, text):
    fields = (str(line or 0), str(column or 0), file or "", function or "", text or "")
    return "frame", b"\0".join(utf8(field.replace("\0", ""), LINE) for field in fields)


def line_of(name, number):
    lines = runner.sources.get(name, b"").splitlines()
    return lines[number - 1] if number and 0 < number <= len(lines) else b""


def frames_of(traceback, limit):
    found = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        line, column, text = traceback.tb_lineno, 0, line_of(code.co_filename, traceback.tb_lineno)
        if text and hasattr(code, "co_positions") and traceback.tb_lasti >= 0:
            start = next(itertools.islice(code.co_positions(), traceback.tb_lasti // 2, None), (None,) * 4)
            if start[0] == line and start[2] is not None:
                column = len(text[:start[2]].decode("utf-8", "replace")) + 1
        function = getattr(code, "co_qualname", code.co_name)
        found.append((line, column, code.co_filename, function, text))
        traceback = traceback.tb_next
    if len(found) > limit:
        found = found[:limit // 5] + found[-(limit - limit // 5):]
    return [frame(*place, text.decode("utf-8", "replace")) for *place, text in found]


def parts_of(phase, error, traceback, printed=""):
    """The error, then the errors that it came from, each behind a part that says so."""
    chain = [error]
    while len(chain) <= CAUSES:
        cause = cause_of(chain[-1])
        if cause is None or any(cause is other for other in chain):
            break
        chain.append(cause)
    parts = []
    for one in chain:
        if one is not error:
            parts.append(("cause", b""))
        parts += [("name", utf8(type(one).__qualname__, 256)), ("message", utf8(message_of(one), MESSAGE))]
        if one is not error:
            parts += frames_of(one.__traceback__, FRAMES // len(chain))
            continue
        parts.append(("phase", phase.encode()))
        if phase == "compile" and isinstance(error, SyntaxError):
            # The position counts from 1; the text is missing when the compiler looked for a file of that name.
            text = line_of(error.filename, error.lineno).decode("utf-8", "replace") or error.text or ""
            parts.append(frame(error.lineno, error.offset, error.filename, "<module>", text.rstrip("\r\n")))
        else:
            parts += frames_of(traceback, FRAMES // len(chain))
        if len(printed) > TRACEBACK // 4:
            printed = printed[:4000] + "\n...\n" + printed[-12000:]
        if printed:
            parts.append(("traceback", utf8(printed, TRACEBACK)))
    return parts


def fix_text(error, name):
    """A syntax error found after parsing carries the line of the file `name`, which is not where the code is."""
    text = line_of(name, error.lineno) if isinstance(error, SyntaxError) and error.filename == name else b""
    if text:
        error.text = text.decode("utf-8", "replace") + "\n"


def report(failure, phase, name, path):
    """Ends the interpreter as CPython would after this exception."""
    error = tell(failure, phase, name, path)
    if isinstance(error, KeyboardInterrupt):  # CPython ends itself with SIGINT, so that a shell's loop ends, too
        sys.excepthook = lambda *ignored: None
        raise error
    raise SystemExit(1)


def tell(failure, phase, name, path):
    """Prints the exception and sends it."""
    kind, error, traceback = failure
    traceback = trim(traceback, name)
    error.__traceback__ = traceback
    trim_relatives(error)
    sys.last_type, sys.last_value, sys.last_traceback = kind, error, traceback
    sys.last_exc = error
    if phase == "compile" and name != path:
        fix_text(error, name)
    remember(name, path)
    printed = show(kind, error, traceback, name, path)
    if runner.channel.usable():
        runner.channel.send(runner.ERROR, parts_of(phase, error, traceback, printed))
    return error


def beside(error, phase, traceback):
    """Sends what is no reason to end the code, but the reader should know."""
    if runner.channel.usable():
        trim_relatives(error)
        runner.channel.send(runner.ERROR, parts_of(phase, error, trim(traceback)))


def thread(arguments, print_it):
    """The end of a thread by an exception: printed as ever, and an error beside the code, which goes on."""
    error = arguments.exc_value
    if error is None or isinstance(error, SystemExit):
        return print_it(arguments)
    at, path = arguments.exc_traceback, getattr(sys.modules["__main__"], "__file__", None)
    while at is not None and at.tb_frame.f_code.co_filename not in runner.sources:
        at = at.tb_next
    name = at.tb_frame.f_code.co_filename if at else path
    if through_linecache(name, path) and sys.stderr is not None:
        remember(name, path)
        import traceback as module
        lines = module.format_exception(arguments.exc_type, error, arguments.exc_traceback)
        sys.stderr.write("Exception in thread %s:\n%s" % (getattr(arguments.thread, "name", "?"), "".join(lines)))
        sys.stderr.flush()
    else:
        print_it(arguments)
    beside(error, "thread", arguments.exc_traceback)

"""An exception that nobody caught: what CPython prints, with the caller's frames only, and an error frame."""
import _io
import itertools
import sys

runner = sys.modules["_kern_runner"]
FRAMES, MESSAGE, TRACEBACK, LINE = 100, 8192, 65536, 4096


def ours(traceback):
    return traceback.tb_frame.f_code.co_filename.startswith(runner.HERE)


def trim(traceback, name):
    """From the first frame of the caller's code on, without those of the runner in between."""
    first = traceback
    while first is not None and first.tb_frame.f_code.co_filename != name:
        first = first.tb_next
    if first is None:
        first = traceback
        while first is not None and ours(first):
            first = first.tb_next
    at = first
    while at is not None:
        while at.tb_next is not None and ours(at.tb_next):
            at.tb_next = at.tb_next.tb_next
        at = at.tb_next
    return first


def message_of(error):
    try:
        return str(error.msg if isinstance(error, SyntaxError) else error)
    except Exception:
        return "<its str() raised an exception>"


def utf8(text, limit):
    return runner.utf8(text[:limit])


def print_default(kind, error, traceback, name, path, source):
    if name == path or sys.version_info >= (3, 13):
        sys.__excepthook__(kind, error, traceback)
        return
    # Until 3.12 the built-in hook reads the lines from the file called `name`, which is not where the code is.
    import traceback as module
    module.print_exception(kind, error, traceback, file=sys.stderr)


def remember(name, path, source):
    """Lets linecache, so tracebacks, find the code under the name that the caller gave it."""
    if name == path:
        return
    import linecache
    text = source.decode("utf-8", "replace")
    linecache.cache[name] = (len(text), None, [line + "\n" for line in text.splitlines()], name)


def show(kind, error, traceback, name, path, source):
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
        print_default(kind, error, traceback, name, path, source)
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


def frames_of(traceback, name, lines):
    found = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        line, column, text = traceback.tb_lineno, 0, b""
        if code.co_filename != name and code.co_filename in runner.cells:
            older = runner.cells[code.co_filename]
            text = older[line - 1].encode() if line and line <= len(older) else b""
        elif code.co_filename == name and line and line <= len(lines):
            text = lines[line - 1]
            if hasattr(code, "co_positions") and traceback.tb_lasti >= 0:
                start = next(itertools.islice(code.co_positions(), traceback.tb_lasti // 2, None), (None,) * 4)
                if start[0] == line and start[2] is not None:
                    column = len(text[:start[2]].decode("utf-8", "replace")) + 1
        function = getattr(code, "co_qualname", code.co_name)
        found.append(frame(line, column, code.co_filename, function, text.decode("utf-8", "replace")))
        traceback = traceback.tb_next
    return found if len(found) <= FRAMES else found[:FRAMES // 5] + found[-(FRAMES - FRAMES // 5):]


def parts_of(phase, error, traceback, name, source, printed):
    parts = [("name", utf8(type(error).__qualname__, 256)), ("message", utf8(message_of(error), MESSAGE)),
             ("phase", phase.encode())]
    if phase == "compile" and isinstance(error, SyntaxError):
        # The position counts from 1; the text is missing when the compiler looked for a file of that name.
        lines = source.splitlines()
        text = error.text or ""
        if error.lineno and error.lineno <= len(lines):
            text = lines[error.lineno - 1].decode("utf-8", "replace")
        parts.append(frame(error.lineno, error.offset, error.filename, "<module>", text.rstrip("\r\n")))
    else:
        parts += frames_of(traceback, name, source.splitlines())
    cause = error.__cause__
    if cause is None and not error.__suppress_context__:
        cause = error.__context__
    if cause is not None:
        parts.append(("cause", utf8(type(cause).__qualname__ + ": " + message_of(cause), MESSAGE)))
    if len(printed) > TRACEBACK // 4:
        printed = printed[:4000] + "\n...\n" + printed[-12000:]
    if printed:
        parts.append(("traceback", utf8(printed, TRACEBACK)))
    return parts


def fix_text(error, name, source):
    """A syntax error found after parsing carries the line of the file `name`, which is not where the code is."""
    lines = source.splitlines()
    if isinstance(error, SyntaxError) and error.filename == name and error.lineno and error.lineno <= len(lines):
        error.text = lines[error.lineno - 1].decode("utf-8", "replace") + "\n"


def report(failure, phase, name, path, source):
    """Ends the interpreter as CPython would after this exception."""
    error = tell(failure, phase, name, path, source)
    if isinstance(error, KeyboardInterrupt):  # CPython ends itself with SIGINT, so that a shell's loop ends, too
        sys.excepthook = lambda *ignored: None
        raise error
    raise SystemExit(1)


def tell(failure, phase, name, path, source):
    """Prints the exception and sends it."""
    kind, error, traceback = failure
    traceback = trim(traceback, name)
    error.__traceback__ = traceback
    sys.last_type, sys.last_value, sys.last_traceback = kind, error, traceback
    sys.last_exc = error
    if phase == "compile" and name != path:
        fix_text(error, name, source)
    remember(name, path, source)
    printed = show(kind, error, traceback, name, path, source)
    if runner.channel.usable():
        runner.channel.send(runner.ERROR, parts_of(phase, error, traceback, name, source, printed))
    return error

# start.py RESULT_FD NAME FILE ARGS...: runs FILE as the real __main__, shown as NAME, and sends its value and errors.
# start.py RESULT_FD: a kernel (kernel.py).
# start.py RESULT_FD park MODULES...: boots, imports these, and waits for the words above, which come over the channel with FILE itself.
# start.py RESULT_FD zygote MODULES...: the same, but what waits is what it forks into boxes (fork.c).
#
# This file may be compiled at each start and shares its interpreter with the caller's code, so it is short, imports only
# what is built into every interpreter (a json.py in the workspace cannot get in the way), and keeps what is needed less
# often in the other files. README.md has the rules that it follows.
import sys
import _ast
import _thread
import builtins
import posix
from __main__ import HERE, code_of, plain

DISPLAY, UPDATE, CLEAR, ERROR, VALUE, STATE = 1, 2, 3, 4, 5, 6
HEADER, PIECE, NO_ACK = 24, 65536, 1
sources = {}  # the code, by the name that it is compiled under; of a kernel that of its newest cells
HOOKED = frozenset((  # imports that imports.py has to see
    "IPython", "IPython.display", "IPython.core", "IPython.core.display", "IPython.core.display_functions",
    "PIL.ImageShow", "_kern_backend", "matplotlib", "matplotlib.pyplot", "plotly.io"))
ONLY_AST, TOP_LEVEL_AWAIT, COROUTINE = 0x400, 0x2000, 0x80  # of ast and inspect, which cost too much to import


def identity(fd):
    """Of the open file: code may close a descriptor and get the number for something else."""
    try:
        found = posix.fstat(fd)
        return found.st_dev, found.st_ino
    except (OSError, OverflowError):
        return None


class Channel:
    """Frames out, acknowledgements in. It may be gone at any time (the code can close it): then nothing is sent."""

    def __init__(self, fd):
        self.fd, self.id, self.pid, self.call = fd, 0, posix.getpid(), 0
        self.lock, self.busy = _thread.RLock(), False
        self.patient = True  # False: the value is the last that is said, so it waits for the word about the end, and goes with it
        self.held = None  # such a value
        self.open = True  # a kernel's is not between two cells: what a thread reads then would be the next cell
        self.socket = identity(fd)
        if self.socket:
            posix.set_inheritable(fd, False)

    def usable(self):
        # Not in a forked child, whose frames would get between ours, and not when another file has the number now.
        return self.open and self.socket is not None and self.pid == posix.getpid() and self.socket == identity(self.fd)

    def send(self, kind, parts):
        """Returns when the host has recorded the frame, after all that was printed before it. False: not sent."""
        data = self.pack(parts)
        flush()
        with self.lock:
            if self.busy or not self.usable():  # busy: a signal handler displays in the middle of a display
                return False
            self.busy = True
            try:
                self.release()
                if kind == VALUE and not self.patient:
                    self.held = data
                    return True
                self.id += 1
                self.write(kind, data)
                self.await_ack()
                return True
            except OSError:
                self.socket = None
                return False
            finally:
                self.busy = False

    @staticmethod
    def pack(parts):
        data = bytearray()
        for key, value in parts:
            key = key.encode() + b"\0"
            data += len(key).to_bytes(2, "little") + len(value).to_bytes(4, "little") + key + value
        return data

    def release(self):
        """A value that turns out not to be the last word."""
        held, self.held = self.held, None
        if held is not None:
            self.id += 1
            self.write(VALUE, held, NO_ACK)

    def close(self, data):
        """The last frame of a run or a cell, behind that of a thread which is being sent. It gets no acknowledgement."""
        with self.lock:
            self.open = False
            self.id += 1
            held, self.held = self.held, None
            if held is None:
                self.write(STATE, data)
            else:
                self.write(VALUE, held + data, NO_ACK)

    def write(self, kind, data, flags=0):
        start = b"KRN1" + bytes((1, kind, flags, 0)) + self.call.to_bytes(4, "little") + self.id.to_bytes(4, "little")
        start += len(data).to_bytes(4, "little")
        for offset in range(0, len(data) or 1, PIECE):
            piece = start + offset.to_bytes(4, "little") + data[offset:offset + PIECE]
            self.blocking(posix.write, piece)

    def await_ack(self):
        while self.socket:
            reply = self.blocking(posix.read, HEADER)
            if len(reply) < HEADER:
                self.socket = None  # the host has closed its end
            elif reply[12:16] == self.id.to_bytes(4, "little"):  # else of a frame whose wait was interrupted
                break

    def blocking(self, call, argument):
        try:
            return call(self.fd, argument)
        except BlockingIOError:
            posix.set_blocking(self.fd, True)
            return call(self.fd, argument)


def flush():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError, RuntimeError):  # the last: in a signal handler, during a flush
            pass


def part(name):
    """A rarely needed file of this directory as a module, without a look at sys.path."""
    module = sys.modules.get("_kern_" + name)
    if module is None:
        module = type(sys)("_kern_" + name)
        exec(code_of(name), module.__dict__)
        sys.modules[module.__name__] = module
    return module


class Finder:
    """First on sys.meta_path, so it costs every import a look into a set."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        return part("imports").find(name, path, target) if name in HOOKED else None


def thread_hook(arguments):
    part("errors").thread(arguments, c_thread_hook)


def finish():
    """Shows the figures that are still open."""
    figures = sys.modules.get("_kern_figures")
    if figures:
        figures.flush()


def display(*objects, **options):
    return part("rich").display(*objects, **options)


def displayhook(value):
    if value is None or not channel.usable():
        return
    if type(value).__module__ == "builtins":  # has nothing but a repr
        channel.send(VALUE, [("text/plain", text_of(value))])
    else:
        part("rich").show(VALUE, value)


def text_of(value):
    try:
        text = str.__str__(repr(value))  # not of a subclass, which may have methods of its own
    except Exception as error:
        part("rich").complain(error)
        text = "<%s object; its repr raised %s>" % (type(value).__name__, type(error).__name__)
    if len(text) > 1 << 20:
        text = text[:1 << 20] + "... (%d more characters)" % (len(text) - (1 << 20))
    return utf8(text)


def utf8(text):
    try:
        return text.encode()
    except UnicodeEncodeError:  # lone surrogates
        return "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text).encode()


def suppressed(statement, source):
    """Is there a semicolon behind the last expression?"""
    lines = source.splitlines(True)[statement.end_lineno - 1:]
    lines[0] = lines[0][statement.end_col_offset:]
    return b"".join(lines).lstrip(b" \t\f\\\r\n").startswith(b";")


# Bytecode that another call could have written is neither read nor made: the header of a .pyc in __pycache__ can be
# forged, and then other code runs than the source beside it shows. What a box cannot write (its image, .deps) has its
# bytecode, as has a virtual environment. Compiled under the import system's own name, so that tracebacks leave it out.
OWN_BYTECODE = """
def get_code(self, fullname):
    path = self.get_filename(fullname)
    if _sys.pycache_prefix is None and not path.startswith(_trusted) and _access(_path_split(path)[0] or ".", 2):
        return self.source_to_code(self.get_data(path), path)
    return SourceLoader.get_code(self, fullname)
SourceFileLoader.get_code = get_code
"""


def distrust_bytecode():
    system = sys.modules["_frozen_importlib_external"]
    trusted = [sys.prefix + "/"] if sys.prefix != "/" else []
    deps = posix.environ.get(b"KERN_DEPS")
    if deps:
        trusted.append(deps.decode("utf-8", "surrogateescape") + "/")
    names = {"_access": posix.access, "_trusted": tuple(trusted), "_sys": sys, "SourceLoader": system.SourceLoader,
             "SourceFileLoader": system.SourceFileLoader, "_path_split": system._path_split}
    exec(compile(OWN_BYTECODE, "<frozen importlib._bootstrap_external>", "exec"), names)


def parse(source, name, flags=0):
    """Two code objects: all statements, and the last expression, from its own node, so with its line; None for one that is not there."""
    flags |= TOP_LEVEL_AWAIT
    tree = compile(source, name, "exec", ONLY_AST | flags, True)
    last = tree.body[-1] if tree.body else None
    value = None
    if isinstance(last, _ast.Expr) and not suppressed(last, source):
        tree.body.pop()
        value = compile(_ast.Expression(last.value), name, "eval", flags, True)
    return compile(tree, name, "exec", flags, True) if tree.body else None, value


def flags_of(statements, value):
    return (statements.co_flags if statements else 0) | (value.co_flags if value else 0)


def lines_of(source):
    """As CPython counts them: no form feed and no U+2028 ends one."""
    return [line.decode("utf-8", "replace") + "\n" for line in source.splitlines()]


def execute(statements, value, namespace):
    if flags_of(statements, value) & COROUTINE:
        return part("awaits").execute(statements, value, namespace)
    if statements:
        exec(statements, namespace)
    return eval(value, namespace) if value else None


def give_up(how, why):
    channel.write(STATE, channel.pack([(how, why[:300].encode("ascii", "backslashreplace"))]))
    posix._exit(1)


def preload(names):
    """Not from beside this file, where a plain start has its own directory, nor from the working directory."""
    own = sys.path.pop(0) if not getattr(sys.flags, "safe_path", False) else None
    for name in names:
        try:
            __import__(name)
        except BaseException as error:
            give_up("failed", "%s: %s: %s" % (name, type(error).__name__, error))
    if own is not None:
        sys.path.insert(0, own)


SCENE = b"""
def f(n):
    return "%s" % n
for i in range(1):
    print(f(i), end="", file=None) if i else print(end="")
None
"""


def rehearse():
    """What a call runs through is slower when it runs for the first time. Nothing of it stays."""
    sys.displayhook(execute(*parse(SCENE, "<park>"), {}))  # the first parse of a process sets up the types of the tree
    take_words(bytes(Channel.pack([("word", b"0"), ("file", b"/dev/null\0" b"0")])), 0)
    read_file("/dev/null")
    flush()
    quiet_end(b"", end_of_modules())
    channel.usable()


def threads():
    return len(posix.listdir("/proc/self/task"))


def forker():
    """The module that forks; what a fork would not take along, or would share, is no matter for it: then interpreters have to boot."""
    try:
        if threads() > 1:  # some libraries end their threads before a fork, and start them again when they need them
            pid = posix.fork()
            if pid == 0:
                posix._exit(0)
            posix.waitpid(pid, 0)
        try:
            posix.waitpid(-1, posix.WNOHANG)
            give_up("unable", "a module has started a process")
        except ChildProcessError:
            pass
        if threads() > 1:
            give_up("unable", "a module has started a thread")
        if len(posix.listdir("/proc/self/fd")) > 5:  # 0 to 3, and the directory
            give_up("unable", "a module keeps a file open")
        spec = sys.modules["_frozen_importlib"].ModuleSpec("_kern_fork", None, origin=HERE + "fork.abi3.so")
        module = sys.modules["_imp"].create_dynamic(spec)
        sys.modules["_imp"].exec_dynamic(module)
        sys.modules.pop(spec.name, None)  # nothing of this is the call's
        return module
    except (ImportError, OSError) as error:
        give_up("unable", str(error))


def be_forked():
    """Returns in each process that is forked, in its box -> does a call wait for it already?"""
    module = forker()
    known = "gc" in sys.modules
    import gc
    gc.collect()
    gc.freeze()  # a collection would write to each object, and what is written to is copied
    if not known:
        del sys.modules["gc"]
    channel.write(STATE, channel.pack([("ready", b"")]))
    hurry = module.serve(channel.fd)
    channel.__init__(channel.fd)
    reseed()
    return hurry


def reseed():
    """What draws from a state that all forks would share; random sees to it itself."""
    if "torch" in sys.modules:
        sys.modules["torch"].seed()
    if "numpy.random" in sys.modules:
        random = sys.modules["numpy.random"]
        try:  # a whole new state: its seed() takes twice as long in a new process
            random.set_state(("MT19937", sys.modules["numpy"].frombuffer(posix.urandom(624 * 4), "uint32"), 624))
        except ValueError:  # a preloaded module has put another generator there
            random.set_bit_generator(type(random.get_bit_generator())())


def park(names, forks):
    """Waits for the words of a call, and does what its start would have done with them -> its files."""
    rehearse()
    preload(names)
    if forks and not be_forked():
        rehearse()  # again: its memory is copied page by page when it is written to for the first time
    channel.write(STATE, channel.pack([("ready", b"")]))
    data = posix.read(channel.fd, HEADER + PIECE)[HEADER:]
    if not data:
        posix._exit(0)  # nobody wants it
    channel.id = 1
    channel.write(STATE, channel.pack([("begun", b"")]))
    words, files = take_words(data)
    sys.argv[:] = words[1:]
    if hasattr(sys, "orig_argv"):
        sys.orig_argv[:] = words
    return files


def take_words(data, how=posix.O_CREAT | posix.O_EXCL):
    words, files, environ = [], {}, getattr(sys.modules.get("os"), "environb", None)
    while data:
        key_length, length = int.from_bytes(data[:2], "little"), int.from_bytes(data[2:6], "little")
        key, value = data[6:6 + key_length - 1], data[6 + key_length:6 + key_length + length]
        data = data[6 + key_length + length:]
        if key == b"word":
            words.append(value.decode(sys.getfilesystemencoding(), "surrogateescape"))
        elif key == b"env":
            set_variable(environ, *value.split(b"=", 1))
        elif key == b"file":
            path, content = value.split(b"\0", 1)
            files[path.decode(sys.getfilesystemencoding(), "surrogateescape")] = content
            write_file(path, content, how)
    return words, files


def set_variable(environ, name, value):
    for table in (posix.environ, environ):
        if table is not None:
            table.pop(name, None)  # behind the others, as a new environment has it
            table[name] = value
    if environ is None:
        posix.putenv(name, value)


def write_file(path, content, how):
    fd = posix.open(path, how | posix.O_WRONLY | posix.O_CLOEXEC, 0o644)
    while content:
        content = content[posix.write(fd, content):]
    posix.close(fd)


def read_file(path):
    with open(path, "rb") as file:
        return file.read()


# What an end of the interpreter could show is shown by what these words are about: finalizers, generators, files, hooks, exits. Code
# with none of them, and with no module but these, has nothing that the end would run: then it is left out (1.5 ms of 2).
WORDS = (b"__del__", b"yield", b"async", b"await", b"open", b"file", b"weakref", b"exec", b"eval", b"compile", b"import_", b"__import", b"atexit",
         b"thread", b"trace", b"profile", b"audit", b"hook", b"PYTHON", b"std", b"modules", b"getattr", b"vars", b"globals", b"__dict__",
         b"warn", b"gc", b"fork", b"\\x", b"\\u", b"\\N")
QUIET = frozenset((
    "math", "_math", "cmath", "json", "json.decoder", "json.scanner", "json.encoder", "_json", "re", "re._compiler", "re._parser", "re._constants",
    "re._casefix", "sre_compile", "sre_parse", "sre_constants", "_sre", "enum", "types", "operator", "_operator", "functools", "_functools",
    "collections", "collections.abc", "_collections", "_collections_abc", "keyword", "reprlib", "copyreg", "itertools", "time", "datetime",
    "_datetime", "_pydatetime", "random", "_random", "bisect", "_bisect", "heapq", "_heapq", "hashlib", "_hashlib", "_sha1", "_sha2", "_sha256",
    "_sha512", "_sha3", "_md5", "_blake2", "string", "_string", "textwrap", "statistics", "_statistics", "fractions", "decimal", "_decimal",
    "numbers", "struct", "_struct", "base64", "binascii", "copy", "os", "posixpath", "stat", "_stat", "sys", "contextlib", "dataclasses", "typing",
    "_typing", "abc", "_abc", "warnings", "unicodedata", "array", "calendar", "locale", "_locale", "uuid", "_uuid", "platform", "pprint", "csv", "_csv"))


def end_of_modules():
    """What is imported later stands behind it. The names themselves are not touched: of a preloaded interpreter each lies in a page that
    would be copied."""
    return len(sys.modules), next(reversed(sys.modules))


def modules_since(end):
    """Their names; None: some of before have gone, or moved."""
    count, last = end
    names = []
    for name in reversed(sys.modules):
        if name == last:
            break
        names.append(name)
    return names if count + len(names) == len(sys.modules) else None


def quiet_end(source, end):
    """Would the interpreter's end do nothing but flush?"""
    if any(word in source for word in WORDS) or _thread._count():
        return False
    names = modules_since(end)
    if names is None or any(name not in QUIET and name[:6] != "_kern_" for name in names):
        return False
    if any(name[:6] == b"PYTHON" and name not in (b"PYTHONUTF8", b"PYTHONPATH") for name in posix.environ):
        return False
    return sys.stdout is sys.__stdout__ and sys.stderr is sys.__stderr__


def leave(source, end):
    try:
        if not quiet_end(source, end):
            return
        for module, name in (("threading", "_shutdown"), ("atexit", "_run_exitfuncs")):  # of what was imported before
            if module in sys.modules:
                getattr(sys.modules[module], name)()
        sys.stdout.flush()
        sys.stderr.flush()
        if channel.usable():
            channel.close(channel.pack([("exit", b"0")]))
    except Exception:
        return  # the interpreter says what it has to say about that
    posix._exit(0)


def main():
    global channel, c_thread_hook
    channel = Channel(int(sys.argv[1]))
    distrust_bytecode()
    sys.modules["_kern_runner"] = sys.modules["__main__"]  # the other files find us here
    builtins.display = display
    sys.displayhook = displayhook
    sys.meta_path.insert(0, Finder)
    # What threading takes as its default when it is imported; an earlier import of it has done so.
    c_thread_hook, _thread._excepthook = _thread._excepthook, thread_hook
    if "threading" in sys.modules and sys.modules["threading"].excepthook is c_thread_hook:
        sys.modules["threading"].excepthook = thread_hook
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.reconfigure(line_buffering=True)
    files = {}
    if len(sys.argv) == 3 or sys.argv[2:3] in (["park"], ["zygote"]) and sys.argv[3][:1] != "/":
        files = park(sys.argv[3:], sys.argv[2] == "zygote")
    kernel = len(sys.argv) == 2
    me, fd, name, path = sys.argv[:4] if not kernel else (*sys.argv, "", "")
    sys.argv[:4] = [path]
    if not getattr(sys.flags, "safe_path", False):
        try:
            sys.path[0] = posix.getcwd()
        except OSError:
            sys.path[0] = ""
    module = type(sys)("__main__")
    if not kernel:
        plain.update(__file__=path, __loader__=type(plain["__loader__"])("__main__", path))
    module.__dict__.clear()
    module.__dict__.update(plain)
    sys.modules["__main__"] = module
    if kernel:
        part("kernel").serve(module.__dict__)
        return
    source = files[path] if path in files else read_file(path)
    if source.startswith(b"\xef\xbb\xbf"):
        source = source[3:]
    sources[name] = source
    end = end_of_modules()
    phase, failure = "compile", None
    try:
        code = parse(source, name)
        phase = "run"
        value = execute(*code, module.__dict__)
        sys.displayhook(value)  # the one that is set now
    except BaseException:
        failure = sys.exc_info()
    # Behind the handler, so that this exception is not the context of another.
    try:
        finish()
    except BaseException:  # an interrupt
        failure = failure or sys.exc_info()
    if failure is None:
        leave(source, end)
        return
    if isinstance(failure[1], SystemExit):
        raise failure[1]
    part("errors").report(failure, phase, name, path)


main()

"""The runner on interpreters of this host, without a box: each rule of README.md about running."""
import os
import re
import signal

import pytest

from harness import DISPLAY, ERROR, UPDATE, VALUE, plain


@pytest.mark.parametrize("code, value", [
    ("1 + 1", "2"), ("x = 5\nx", "5"), ("'a'", "'a'"), ("None", None), ("", None), ("x = 1", None), ("print(1)", None),
    ("1;", None), ("1 ; # semicolon", None), ("1  # ;", "1"), ("';'", "';'"), ("(1,\n 2)", "(1, 2)"),
    ("1 \\\n;", None), ("x = 'é'; x", "'é'"), ("'é';", None), ("if True:\n    3", None), ("1\r\n2\r\n", "2"),
    ("\ufeff7", "7"), ("lambda: 1;", None), ("'\\ud800' + 'x'", "'\\ud800x'"), ("'doc'", "'doc'"),
    ("from __future__ import annotations\n4", "4"), ("def f(): return 6\nf()", "6"),
    ("[i for i in range(3)]", "[0, 1, 2]"),
])
def test_value(run, code, value):
    done = run(code)
    assert (done.status, done.err) == (0, "")
    assert done.values() == ([] if value is None else [value])


def test_value_is_evaluated_once_after_all_else(run):
    done = run("n = []\ndef f():\n    n.append(1)\n    print('in f')\n    return len(n)\nprint('first')\nf()")
    assert (done.out, done.values()) == ("first\nin f\n", ["1"])


@pytest.mark.parametrize("code", [
    "x = 1\n\n\ndef f(a):\n    return a / 0\n\nf(\n  1)\n",
    "raise KeyError('a')",
    "try:\n    {}['x']\nexcept KeyError as e:\n    raise ValueError('no') from e\n",
    "try:\n    {}['x']\nexcept KeyError:\n    int('y')\n",
    "def f(): f()\nf()",
    "b = (2",
    "print('never')\nif True:\nx",
    "x = 1\n  y = 2",
    "print('never')\nreturn 1",
    "print('never')\nx = 1; global x",
    "import json\njson.loads('{')",
    "exec('1 +')",
    "class E(Exception):\n    def __str__(self): raise RuntimeError\nraise E",
    "import sys\nsys.excepthook = lambda t, v, tb: print('hook', t.__name__, tb.tb_frame.f_code.co_name)\n1/0",
    "import sys\nsys.excepthook = lambda *a: 1/0\nint('x')",
    "assert 1 == 2, 'text'",
    "import threading\nt = threading.Thread(target=lambda: 1/0, name='T')\nt.start(); t.join()\nprint('on')",
    "import warnings\nwarnings.warn('careful')",
    "print('a'); raise SystemExit",
    "import sys; sys.exit(3)", "import sys; sys.exit('bye')", "import sys; sys.exit(None)", "import sys; sys.exit(256)",
    "import sys; sys.exit(-1)", "import sys; sys.exit(True)", "import sys; sys.exit((1, 2))", "exit(4)",
    "import os; os._exit(9)",
    "import atexit; atexit.register(print, 'late'); print('early')",
    "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
    "raise KeyboardInterrupt",
    "import sys; sys.stdout.close()",
    "print(sorted(k for k in globals()))",
    "print(__name__, __doc__, __spec__, __package__, type(__loader__).__name__, type(__builtins__).__name__, __file__)",
    "import sys; print(sys.argv)",
    "import threading, time\nthreading.Thread(target=lambda: (time.sleep(.2), print('thread'))).start()\nprint('main')",
    "print(input())",
    "print('\\udc80' + chr(0xe4))",
    "import sys; print(sys.stdout.fileno(), sys.stdout.encoding, sys.flags.isolated)",
])
def test_same_as_plain_python(run, code):
    if code == "b = (2" and run.version < (3, 10):
        return  # the old parser says line 1 for a string and line 2 for a file
    status, out, err = plain(run, code, "-a", "b")
    done = run(code, "-a", "b", env={"PYTHONPATH": str(run.work)})
    assert done.out == out
    # The runner's own frames take a few of the thousand that recursion may use.
    assert re.sub(r"repeated 9\d\d more", "repeated 99N more", done.err) == re.sub(
        r"repeated 9\d\d more", "repeated 99N more", err)
    assert done.status == status


def test_error_frame(run):
    done = run("def f(a):\n    return a / 0\n\nprint('out')\nf(1)\n")
    parts = done.error()
    assert parts[:3] == [("name", b"ZeroDivisionError"), ("message", b"division by zero"), ("phase", b"run")]
    frames = [value.decode().split("\0") for key, value in parts if key == "frame"]
    column = "1" if run.version >= (3, 11) else "0"
    assert frames == [["5", column, str(run.path), "<module>", "f(1)"],
                      ["2", "12" if run.version >= (3, 11) else "0", str(run.path), "f", "    return a / 0"]]
    assert dict(parts)["traceback"].decode() == done.err
    assert "cause" not in dict(parts)
    assert done.out == "out\n"


def test_error_in_the_last_expression_keeps_its_line(run):
    done = run("\n\n\n\n\n\nundefined_name")
    assert "line 7, in <module>" in done.err
    assert [v for k, v in done.error() if k == "frame"][0].startswith(b"7\0")


def test_error_cause_and_limits(run):
    done = run("try:\n    {}['x']\nexcept KeyError as e:\n    raise ValueError('v' * 10000) from e")
    parts = done.error()
    at = parts.index(("cause", b""))
    assert len(dict(parts[:at])["message"]) == 8192 and dict(parts[:at])["traceback"]
    assert parts[at:at + 3] == [("cause", b""), ("name", b"KeyError"), ("message", b"'x'")]
    assert [value.split(b"\0")[0::4] for _, value in parts[at + 3:]] == [[b"2", b"    {}['x']"]]
    done = run("def f(n):\n    if n == 0: raise OSError\n    f(n - 1)\nf(300)")
    frames = [value.split(b"\0")[0] for key, value in done.error() if key == "frame"]
    assert len(frames) == 100 and frames[0] == b"4" and frames[-1] == b"2"


def test_syntax_error(run):
    done = run("print('never')\nb = (2\n")
    assert (done.status, done.out) == (1, "")
    parts = done.error()
    assert parts[:1] + parts[2:3] == [("name", b"SyntaxError"), ("phase", b"compile")]
    line, column, file, function, text = dict(parts)["frame"].split(b"\0")
    assert (file, function) == (str(run.path).encode(), b"<module>")
    if run.version >= (3, 10):
        assert dict(parts)["message"] == b"'(' was never closed"
        assert (line, column, text) == (b"2", b"5", b"b = (2")
    done = run("compile('1 +', 'x', 'exec')")
    assert dict(done.error())["phase"] == b"run"


def test_nul_byte(run):
    done = run("print('never')\n1\x00")
    assert (done.status, done.out) == (1, "")
    assert dict(done.error())["name"] in (b"SyntaxError", b"ValueError")
    assert dict(done.error())["phase"] == b"compile"


def test_name_given_by_the_caller(run):
    (run.work / "analysis.py").write_text("a line of a file that has the name\n" * 3)
    done = run("x = 1\n\nundefined_name", name="analysis.py")
    assert '  File "analysis.py", line 3, in <module>\n    undefined_name\n' in done.err
    assert dict(done.error())["frame"].split(b"\0")[2:] == [b"analysis.py", b"<module>", b"undefined_name"]
    done = run("x = 1\nreturn 5", name="analysis.py")
    assert '  File "analysis.py", line 2\n    return 5\n' in done.err
    done = run("print(__file__)", name="analysis.py")
    assert done.out == "%s\n" % run.path


def test_interrupt_ends_with_the_signal(run):
    done = run("raise KeyboardInterrupt")
    assert done.status == -signal.SIGINT
    assert dict(done.error())["name"] == b"KeyboardInterrupt"


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(run, method):
    done = run("import multiprocessing as m\ndef f(x): return x * x\nif __name__ == '__main__':\n"
               "    m.set_start_method(%r)\n    with m.Pool(2) as p: print(p.map(f, [1, 2, 3]))\n" % method)
    assert (done.status, done.out, done.err) == (0, "[1, 4, 9]\n", "")


def test_main_is_real(run):
    done = run("import pickle, dataclasses, inspect, typing, __main__\n@dataclasses.dataclass\nclass C:\n    x: 'int' = 3\n"
               "assert pickle.loads(pickle.dumps(C())) == C()\nassert typing.get_type_hints(C) == {'x': int}\n"
               "assert __main__.C is C\ndef f():\n    return 1\nprint(inspect.getsource(f))\n")
    assert (done.status, done.out, done.err) == (0, "def f():\n    return 1\n\n", "")


def test_workspace_cannot_shadow_the_runner_but_serves_the_code(run):
    for name in ("json", "ast", "traceback", "io", "linecache", "itertools", "asyncio", "importlib", "binascii",
                 "sitecustomize", "usercustomize"):
        (run.work / (name + ".py")).write_text("print('shadow of', __name__)\nraise RuntimeError\n")
    (run.work / "helper.py").write_text("x = 42\n")
    done = run("import helper, sys\nsys.path[0]\n")
    assert (done.status, done.out, done.values()) == (0, "", ["'%s'" % run.work])
    done = run("import helper\nhelper.x")
    assert done.values() == ["42"]
    if run.version >= (3, 13):
        return  # there the interpreter itself imports traceback to print an exception, plain or not
    done = run("1/0")
    assert done.err.endswith("ZeroDivisionError: division by zero\n") and "shadow" not in done.out
    assert dict(done.error())["name"] == b"ZeroDivisionError"


def test_bytecode_of_a_writable_place_is_neither_read_nor_written(run):
    (run.work / "victim.py").write_text("who = 'source'\n")
    forge = ("import importlib.util as u, marshal, os\nos.makedirs('__pycache__', exist_ok=True)\n"
             "with open(u.cache_from_source('victim.py'), 'wb') as f:\n"
             "    f.write(u.MAGIC_NUMBER + b'\\1' + bytes(11) + marshal.dumps(compile(\"who = 'forged'\", 'victim.py', 'exec')))\n")
    assert run(forge).status == 0
    assert run("import victim\nvictim.who").values() == ["'source'"]
    assert run("import victim\nvictim.who", env={"KERN_DEPS": str(run.work)}).values() == ["'forged'"]
    cache = run.work.parent / "cache"
    assert run("import victim\nvictim.who", env={"PYTHONPYCACHEPREFIX": str(cache)}).values() == ["'source'"]
    assert list(cache.rglob("victim.*.pyc"))
    (run.work / "other.py").write_text("")
    assert run("import other").status == 0
    assert not list(run.work.rglob("other.*.pyc"))


@pytest.mark.parametrize("module", ["x = (\n", "def f(:\n", "1/0\n", "import missing\n", "\tx\n", "x = '\\0'\n"])
def test_errors_of_an_imported_module_as_plain_python_shows_them(run, module):
    (run.work / "bad.py").write_text(module)
    code = "import bad\n"
    status, out, err = plain(run, code)
    done = run(code, env={"PYTHONPATH": str(run.work)})
    assert (done.status, done.out, done.err) == (status, out, err)


def test_environment_of_the_code(run):
    extra = run.work.parent / "extra"
    extra.mkdir()
    (extra / "far.py").write_text("x = 'far'\n")
    done = run("import far\nfar.x", env={"PYTHONPATH": str(extra)})
    assert done.values() == ["'far'"]
    seeds = [run("hash('a')", env={"PYTHONHASHSEED": seed}).values() for seed in ("1", "1", "2")]
    assert seeds[0] == seeds[1] != seeds[2]
    done = run("assert False, 'optimized away'\n1", env={"PYTHONOPTIMIZE": "1"})
    assert (done.status, done.values()) == (0, ["1"])


def test_partial_output_survives_a_kill(run):
    done = run("import time\nprint('line 1')\nprint('line 2')\ntime.sleep(60)", kill_after=b"line 1\nline 2\n")
    assert done.status == -signal.SIGKILL


def test_display_order_and_forms(run):
    done = run("class R:\n    def _repr_html_(self): return '<b>'\n    def _repr_png_(self): return b'\\x89PNG'\n"
               "    def _repr_json_(self): return {'a': float('nan')}\n    def _repr_latex_(self): raise ValueError('no latex')\n"
               "    def __repr__(self): return 'R!'\nprint('one')\ndisplay(1, 'two')\nprint('three')\nR()")
    kinds = [kind for kind, _ in done.frames]
    assert (done.status, done.out, kinds) == (0, "one\nthree\n", [DISPLAY, DISPLAY, ERROR, VALUE])
    assert done.frames[0][1] == [("text/plain", b"1")]
    assert done.frames[1][1] == [("text/plain", b"'two'")]
    failed = dict(done.frames[2][1])
    line, _, _, function, text = failed.pop("frame").decode().split("\0")
    assert failed == {"name": b"ValueError", "phase": b"display", "message": b"no latex"}
    assert (line, function.rpartition(".")[2], text.strip()) == (
        "5", "_repr_latex_", "def _repr_latex_(self): raise ValueError('no latex')")
    assert dict(done.frames[3][1]) == {
        "text/html": b"<b>", "image/png": b"\x89PNG", "application/json": b'{"a": null}', "text/plain": b"R!",
        "metadata": b'{"application/json": {"nanReplaced": true}}'}


def test_display_ids_and_bundles(run):
    done = run("class B:\n    def _repr_mimebundle_(self, include=None, exclude=None):\n"
               "        return {'text/plain': 'b', 'image/png': 'iVBORw0KGgo='}, {'image/png': {'width': 2}}\n"
               "h = display(B(), display_id='x')\nh.update('new')\ndisplay({'text/html': '<i>'}, raw=True)\n"
               "type(display('q', display_id=True).display_id).__name__")
    assert [kind for kind, _ in done.frames] == [DISPLAY, UPDATE, DISPLAY, DISPLAY, VALUE]
    assert dict(done.frames[0][1]) == {"text/plain": b"b", "image/png": b"\x89PNG\r\n\x1a\n", "id": b"x",
                                       "metadata": b'{"image/png": {"width": 2}}'}
    assert done.frames[1][1] == [("text/plain", b"'new'"), ("id", b"x")]
    assert done.frames[2][1] == [("text/html", b"<i>")]
    assert len(dict(done.frames[3][1])["id"]) == 32
    assert done.values() == ["'str'"]


def test_bundles_that_the_host_would_refuse(run):
    make = "class B:\n    def __repr__(self): return 'B'\n    def _repr_mimebundle_(self, **k): return %s\nB()"
    done = run(make % "{'text/x': 'x', 'no mime': 1}")
    assert done.frames[0] == (ERROR, [("name", b"ValueError"), ("message", b"'no mime' is no mime type"),
                                      ("phase", b"display")])
    assert done.frames[1:] == [(VALUE, [("text/x", b"x"), ("text/plain", b"B")])]
    done = run(make % "{3: 'x'}")
    assert [kind for kind, _ in done.frames] == [ERROR, VALUE]
    done = run(make % "{'a/x%d' % i: 'x' for i in range(100)}")
    assert [(kind, len(parts)) for kind, parts in done.frames] == [(VALUE, 23)]
    done = run(make % "{'a/b': b'x' * (63 << 20), 'a/c': b'y'}")
    assert [kind for kind, _ in done.frames] == [ERROR, VALUE]
    assert len(dict(done.frames[1][1])["a/b"]) == 63 << 20 and len(done.frames[1][1]) == 1


def test_repr_that_raises(run):
    done = run("class Q:\n    def __repr__(self): raise ValueError\nQ()")
    assert (done.status, done.values()) == (0, ["<Q object; its repr raised ValueError>"])


def test_impostors(run):
    done = run("class Any:\n    def __getattr__(self, name): return lambda *a, **k: 1/0\n    def __repr__(self): return 'Any'\n"
               "Any()")
    assert done.frames == [(VALUE, [("text/plain", b"Any")])]


def test_large_value_is_cut_and_travels_in_pieces(run):
    done = run("'x' * 3000000")
    assert done.values() == ["'" + "x" * ((1 << 20) - 1) + "... (%d more characters)" % (3000002 - (1 << 20))]


def test_top_level_await(run):
    done = run("import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    return 8\nx = await f()\nprint(x)\nawait f()")
    assert (done.status, done.out, done.values()) == (0, "8\n", ["8"])
    done = run("import asyncio\nawait asyncio.sleep(0)\n1/0")
    assert done.err.startswith("Traceback (most recent call last):\n  File \"%s\", line 3, in <module>\n" % run.path)
    done = run("import asyncio\nasync def f(): return 1\nasyncio.run(f())")
    assert done.values() == ["1"]


def test_own_displayhook(run):
    done = run("import sys\nsys.displayhook = lambda v: print('hook', v)\n5")
    assert (done.out, done.frames) == ("hook 5\n", [])


def test_results_survive_sudden_death(run):
    done = run("import os\ndisplay('kept')\nos._exit(7)")
    assert (done.status, done.frames) == (7, [(DISPLAY, [("text/plain", b"'kept'")])])


def test_channel_closed_by_the_host(run):
    done = run("display(1)\ndisplay(2)\nprint('on')\n3", close_after=1)
    assert (done.status, done.out, done.err, len(done.frames)) == (0, "2\non\n", "", 1)


def test_no_channel(run):
    done = run("display(1)\nprint('on')\n2", channel=False)
    assert (done.status, done.out, done.err) == (0, "1\non\n", "")
    done = run("1/0", channel=False)
    assert (done.status, done.err.splitlines()[-1]) == (1, "ZeroDivisionError: division by zero")


def test_channel_closed_or_replaced_by_the_code(run):
    find = "import os, sys\nfd = sys.modules['_kern_runner'].channel.fd\n"
    done = run(find + "os.close(fd)\ndisplay(1)\n2")
    assert (done.status, done.out, done.err, done.frames) == (0, "1\n", "", [])
    done = run(find + "f = open('mine', 'wb')\nos.dup2(f.fileno(), fd)\ndisplay(1)\n2")
    assert (done.status, done.err, done.frames, (run.work / "mine").read_bytes()) == (0, "", [], b"")
    done = run(find + "os.set_blocking(fd, False)\ndisplay(1)\n2")
    assert (done.status, done.err, len(done.frames)) == (0, "", 2)


def test_forked_child_does_not_disturb_the_channel(run):
    done = run("import os\npid = os.fork()\nif pid == 0:\n    display('child')\n    os._exit(0)\nos.waitpid(pid, 0)\n"
               "display('parent')\nprint('end')")
    assert sorted(done.out.splitlines()) == ["'child'", "end"]
    assert done.frames == [(DISPLAY, [("text/plain", b"'parent'")])]


def test_threads_and_signal_handlers(run):
    done = run("import threading\nt = [threading.Thread(target=lambda i=i: display('x' * 100000 + str(i))) for i in range(8)]\n"
               "[x.start() for x in t]; [x.join() for x in t];")
    assert (done.status, done.err, len(done.frames)) == (0, "", 8)
    # The handler arms the timer again when it is done: on a slow machine it would otherwise interrupt itself for ever.
    done = run("import signal\nticks = 0\ndef tick(*a):\n    global ticks\n    display('tick')\n    ticks += 1\n    arm()\n"
               "def arm(): signal.setitimer(signal.ITIMER_REAL, .001)\nsignal.signal(signal.SIGALRM, tick)\narm()\n"
               "while ticks < 20: display('y' * 200000)\nsignal.signal(signal.SIGALRM, signal.SIG_IGN)\n'end'")
    assert (done.status, done.err, done.values()) == (0, "", ["'end'"])


def test_children_do_not_inherit_the_channel(run):
    done = run("import os, subprocess, sys\nfd = sys.modules['_kern_runner'].channel.fd\n"
               "subprocess.run(['sh', '-c', 'test ! -e /proc/self/fd/%d && echo closed' % fd], close_fds=False);")
    assert (done.out, done.err) == ("closed\n", "")


def test_the_last_word(run):
    for code in ("print(1)", "1 + 1", "import json\nprint(json.dumps({}))", "x = [i for i in range(10)]"):
        assert run(code).last_word == [("exit", b"0")], code
    # Not when the end has something left to do or to say.
    for code in ("import sys; sys.exit(0)", "1 / 0", "import atexit; atexit.register(print, 1)", "import threading", "import tempfile",
                 "open('f', 'w').write('x')", "class A:\n    def __del__(self): print('deleted')\na = A()", "import os; os._exit(0)"):
        assert run(code).last_word is None, code
    assert run("print(1)", env={"PYTHONINSPECT": "1"}).last_word is None

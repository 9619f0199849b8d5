"""display(), what objects say about themselves, IPython.display without IPython, errors: no library is needed."""
import json
import os

import pytest

from harness import CLEAR, DISPLAY, ERROR, UPDATE, VALUE, plain

CLASS = "class R:\n    def __repr__(self): return 'R'\n    def _repr_html_(self): return '<r>'\n    def _repr_markdown_(self): return '*r*'\n"
PNG = b"\x89PNG\r\n\x1a\n"


def metadata(parts):
    return json.loads(dict(parts).get("metadata", b"{}"))


# ---- display


def test_many_objects_and_none(run):
    done = run("display(1, None, 'x')\ndisplay()\ndisplay(display_id='empty');")
    assert [dict(parts).get("text/plain") for _, parts in done.frames] == [b"1", b"None", b"'x'", None]
    assert done.frames[3][1] == [("id", b"empty")]


@pytest.mark.parametrize("options, expected", [
    ("", {"text/plain", "text/html", "text/markdown"}),
    ("include=['text/html']", {"text/html"}),
    ("include={'text/html', 'text/plain'}", {"text/html", "text/plain"}),
    ("exclude=['text/html']", {"text/plain", "text/markdown"}),
    ("include=['text/html', 'text/plain'], exclude=['text/plain']", {"text/html"}),
])
def test_include_and_exclude(run, options, expected):
    (bundle,) = run(CLASS + "display(R(), %s)" % options).shown()
    assert set(bundle) == expected


def test_nothing_chosen_shows_nothing(run):
    assert run(CLASS + "display(R(), include=['image/png'])").shown() == []


def test_include_reaches_the_bundle_method(run):
    done = run("class B:\n    def _repr_mimebundle_(self, include, exclude):\n        return {'text/plain': repr((include, exclude))}\n"
               "display(B(), include=['text/plain'], exclude=['a/b'])")
    assert done.shown() == [{"text/plain": b"(['text/plain'], ['a/b'])"}]


def test_metadata_is_merged(run):
    done = run("class P:\n    def _repr_png_(self): return b'\\x89PNG', {'width': 1, 'height': 2}\n    def __repr__(self): return 'P'\n"
               "display(P(), metadata={'image/png': {'width': 9}, 'x': 1})")
    assert metadata(done.frames[0][1]) == {"image/png": {"width": 9, "height": 2}, "x": 1}


def test_handle(run):
    done = run("from IPython.display import DisplayHandle, update_display\nh = display(1, display_id=True)\nh.update(2)\n"
               "update_display(3, display_id=h.display_id)\nh.display(4)\nd = DisplayHandle()\nd.display(5)\nd.update(6)\n"
               "display(7, transient={'display_id': 'mine'})\nprint(len({h.display_id, d.display_id}), h.display_id in repr(h))")
    assert [kind for kind, _ in done.frames] == [DISPLAY, UPDATE, UPDATE, DISPLAY, DISPLAY, UPDATE, DISPLAY]
    ids = [dict(parts)["id"] for _, parts in done.frames]
    assert len(set(ids[:4])) == 1 and ids[4] == ids[5] != ids[0] and ids[6] == b"mine" and done.out == "2 True\n"


def test_ids_have_a_length(run):
    done = run("display(1, display_id='i' * 128)\ntry: display(1, display_id='i' * 129)\nexcept ValueError as e: print(e)")
    assert (dict(done.frames[0][1])["id"], done.out, len(done.frames)) == (b"i" * 128, "a display_id has at most 128 bytes\n", 1)


def test_clear(run):
    done = run("from IPython.display import clear_output\nclear_output()\nclear_output(wait=True)\ndisplay(1, clear=True)")
    assert done.frames == [(CLEAR, []), (CLEAR, [("wait", b"")]), (CLEAR, [("wait", b"")]), (DISPLAY, [("text/plain", b"1")])]


def test_ipython_display_method(run):
    done = run("class D:\n    def _ipython_display_(self): display('by itself')\nD()")
    assert done.frames == [(DISPLAY, [("text/plain", b"'by itself'")])]
    done = run("class D:\n    def _ipython_display_(self): raise ValueError('no notebook')\n    def __repr__(self): return 'D'\nD()")
    assert [kind for kind, _ in done.frames] == [ERROR, VALUE]
    assert dict(done.error())["message"] == b"no notebook"
    assert done.values() == ["D"]


def test_forms_that_are_none_or_no_methods(run):
    done = run("class N:\n    _repr_html_ = None\n    _repr_png_ = property(lambda self: None)\n    def _repr_svg_(self): return None\n"
               "    def _repr_mimebundle_(self, **k): return None\n    def __repr__(self): return 'N'\nN()")
    assert done.frames == [(VALUE, [("text/plain", b"N")])]


def test_all_forms(run):
    forms = ("html", "markdown", "svg", "png", "jpeg", "latex", "json", "javascript", "pdf")
    done = run("class A:\n    def __repr__(self): return 'A'\n" + "".join(
        "    def _repr_%s_(self): return %r\n" % (form, b"\0" if form in ("png", "jpeg", "pdf") else form) for form in forms) + "A()")
    bundle = dict(done.frames[0][1])
    assert set(bundle) == {"text/html", "text/markdown", "image/svg+xml", "image/png", "image/jpeg", "text/latex",
                           "application/json", "application/javascript", "application/pdf", "text/plain"}
    assert bundle["image/jpeg"] == b"\0" and bundle["text/html"] == b"html"


# ---- objects that are not what they seem


@pytest.mark.parametrize("code", [
    "class M(type):\n    def __getattr__(cls, name): return lambda *a, **k: 1/0\nclass Q(metaclass=M):\n    def __repr__(self): return 'Q'\nQ()",
    "class Q:\n    __class__ = property(lambda self: 1/0)\n    def __repr__(self): return 'Q'\nQ()",
    "class Q:\n    __module__ = 5\n    def __repr__(self): return 'Q'\nQ()",
    "class Q:\n    def __getattribute__(self, name): raise RuntimeError(name)\n    def __repr__(self): return 'Q'\nQ()",
    "class S(str):\n    def __len__(self): raise ValueError\n    def encode(self, *a): return 5\n    def __getitem__(self, i): 1/0\n"
    "class Q:\n    def __repr__(self): return S('Q')\nQ()",
    "from unittest import mock\nclass Q(mock.Mock):\n    def __repr__(self): return 'Q'\nQ()",
])
def test_classes_that_lie(run, code):
    done = run(code)
    assert (done.status, done.err, done.frames) == (0, "", [(VALUE, [("text/plain", b"Q")])])


@pytest.mark.parametrize("module, name", [("pandas", "DataFrame"), ("matplotlib.figure", "Figure"), ("PIL.Image", "Image"),
                                          ("plotly.basedatatypes", "BaseFigure"), ("altair.vegalite", "TopLevelMixin")])
def test_a_class_that_claims_to_be_of_a_library(run, module, name):
    done = run("class %s:\n    __module__ = %r\n    def __repr__(self): return 'fake'\n    def _repr_html_(self): return '<f>'\n%s()"
               % (name, module, name))
    assert (done.status, done.err) == (0, "")
    assert [kind for kind, _ in done.frames] == [ERROR, VALUE] and dict(done.error())["phase"] == b"display"
    assert dict(done.frames[1][1]) == {"text/html": b"<f>", "text/plain": b"fake"}


def test_repr_that_raises_says_where(run):
    done = run("class Q:\n    def __repr__(self):\n        return self.missing\ndisplay(Q())\nprint('on')")
    assert (done.status, done.out, done.err) == (0, "on\n", "")
    parts = dict(done.error())
    assert parts["phase"] == b"display" and parts["frame"].startswith(b"3\0") and b"return self.missing" in parts["frame"]
    assert dict(done.frames[1][1])["text/plain"] == b"<Q object; its repr raised AttributeError>"


def test_repr_without_end(run):
    done = run("class Q:\n    def __repr__(self): return repr(self)\nQ()")
    assert done.values() == ["<Q object; its repr raised RecursionError>"]
    done = run("x = []\nx.append(x)\nx")
    assert done.values() == ["[[...]]"]


def test_repr_that_exits_or_interrupts(run):
    assert run("class Q:\n    def __repr__(self): raise SystemExit(5)\nQ()").status == 5
    done = run("class Q:\n    def __repr__(self): raise KeyboardInterrupt\nQ()")
    assert done.status == -2


# ---- JSON


@pytest.mark.parametrize("value, text, replaced", [
    ("{'a': [1, 2.5, None, True, 'é']}", '{"a": [1, 2.5, null, true, "é"]}', False),
    ("[float('nan'), float('inf'), -float('inf')]", "[null, null, null]", True),
    ("{'deep': {'er': [{'x': float('nan')}]}}", '{"deep": {"er": [{"x": null}]}}', True),
    ("{1: 'a', None: 'b', 2.5: 'c'}", '{"1": "a", "null": "b", "2.5": "c"}', False),
    ("{(1, 2): 'tuple'}", '{"(1, 2)": "tuple"}', False),
    ("'\\ud800x'", "\ufffdx", False),  # a string is the data itself
    ("['\\ud800x']", '["\ufffdx"]', False),
    ("[__import__('datetime').date(2024, 2, 29), __import__('decimal').Decimal('1.10')]", '["2024-02-29", "1.10"]', False),
    ("[b'\\xff', {7}, 1 << 70]", '["/w==", [7], 1180591620717411303424]', False),
])
def test_json(run, value, text, replaced):
    done = run("class J:\n    def __repr__(self): return 'J'\n    def _repr_json_(self): return %s\nJ()" % value)
    bundle = dict(done.frames[0][1])
    assert bundle["application/json"].decode() == text
    assert metadata(done.frames[0][1]) == ({"application/json": {"nanReplaced": True}} if replaced else {})


def test_json_that_contains_itself(run):
    done = run("class J:\n    def __repr__(self): return 'J'\n    def _repr_json_(self):\n        x = []\n        x.append(x)\n        return x\nJ()")
    assert dict(done.error())["message"] == b"JSON that is deeper than 100, or contains itself"
    assert done.values() == ["J"]


# ---- IPython.display without IPython


@pytest.mark.parametrize("code, mime, data", [
    ("HTML('<b>')", "text/html", b"<b>"), ("Markdown('*m*')", "text/markdown", b"*m*"),
    ("Latex('$x$')", "text/latex", b"$x$"), ("Math('x')", "text/latex", b"$\\displaystyle x$"),
    ("SVG('<svg/>')", "image/svg+xml", b"<svg/>"), ("SVG(filename='a.svg')", "image/svg+xml", b"<svg>"),
    ("Javascript('alert(1)')", "application/javascript", b"alert(1)"), ("Pretty('p')", "text/plain", b"p"),
    ("JSON({'a': 1})", "application/json", b'{"a": 1}'), ("JSON('[1]')", "application/json", b"[1]"),
    ("Image(data=b'\\xff\\xd8x')", "image/jpeg", b"\xff\xd8x"), ("Image('a.png')", "image/png", PNG),
    ("Image(filename='a.png')", "image/png", PNG), ("Image(__import__('pathlib').Path('a.png'))", "image/png", PNG),
    ("Image(data='iVBORw0KGgo=')", "image/png", PNG),
    ("Image(url='http://x/?a=1&b', width=5)", "text/html", b'<img src="http://x/?a=1&amp;b" width="5"/>'),
    ("Image('https://x/y.png')", "text/html", b'<img src="https://x/y.png"/>'),
    ("Code('a < b', language='python')", "text/html", b'<pre><code class="language-python">a &lt; b</code></pre>'),
    ("IFrame('http://x', 3, 4)", "text/html", b'<iframe width="3" height="4" src="http://x" frameborder="0" allowfullscreen ></iframe>'),
    ("Audio(url='http://x/a.wav')", "text/html", b'<audio controls="controls" ><source src="http://x/a.wav"/></audio>'),
    ("Video(url='http://x/a.mp4', width=7)", "text/html", b'<video controls width="7" src="http://x/a.mp4"></video>'),
    ("FileLink('a.png')", "text/html", b'<a href="a.png" target="_blank">a.png</a><br>'),
])
def test_stand_in(run, code, mime, data):
    (run.work / "a.png").write_bytes(PNG)
    (run.work / "a.svg").write_text("<svg>")
    (bundle,) = run("from IPython.display import *\ndisplay(%s)" % code).shown()
    assert bundle[mime] == data
    assert b" at 0x" not in bundle["text/plain"]


def test_stand_in_sizes_and_sound(run):
    (run.work / "a.png").write_bytes(PNG)
    done = run("from IPython.display import Image\nImage('a.png', width=300)")
    assert metadata(done.frames[0][1]) == {"image/png": {"width": 300}}
    (bundle,) = run("from IPython.display import Audio\nAudio([0, .5, -1], rate=8000)").shown(VALUE)
    assert b'src="data:audio/wav;base64,UklGR' in bundle["text/html"]


def test_stand_in_functions(run):
    done = run(CLASS + "from IPython.display import display_html, display_markdown, publish_display_data\n"
               "display_html(R())\ndisplay_html('<x>', raw=True)\ndisplay_markdown('m', raw=True)\n"
               "publish_display_data({'text/plain': 'p'}, {'k': 1})")
    shown = done.shown()
    assert set(shown[0]) == {"text/html", "text/plain"}
    assert shown[1:3] == [{"text/html": b"<x>"}, {"text/markdown": b"m"}]
    assert shown[3] == {"text/plain": b"p", "metadata": b'{"k": 1}'}


def test_stand_in_modules(run):
    done = run("import IPython, IPython.core.display as c\nfrom IPython.core.display_functions import display as d\n"
               "from IPython import get_ipython, display as m\nfrom IPython.core.display import HTML\n"
               "print(d is display, get_ipython(), IPython.display.HTML is HTML is m.HTML, IPython.version_info[0])\n"
               "try: import IPython.terminal\nexcept ModuleNotFoundError as e: print(e)\n"
               "try: get_ipython_is_no_builtin = __builtins__.get_ipython\nexcept AttributeError: print('none')")
    assert (done.status, done.err) == (0, "")
    assert done.out.splitlines() == ["False None True 8", "No module named 'IPython.terminal'", "none"]


def test_stand_in_progress(run):
    done = run("from IPython.display import ProgressBar\nfor i in ProgressBar(2): pass")
    assert [kind for kind, _ in done.frames] == [DISPLAY, UPDATE, UPDATE, UPDATE]
    assert dict(done.frames[3][1])["text/plain"] == b"[2/2]"


def test_a_real_ipython_wins(run):
    package = run.work / "IPython"
    (package / "core").mkdir(parents=True)
    (package / "__init__.py").write_text("real = True\n")
    (package / "core" / "__init__.py").write_text("")
    (package / "core" / "display_functions.py").write_text(
        "def display(*a, **k): print('only printed')\ndef clear_output(wait=False): print('escape codes')\n")
    (package / "display.py").write_text("from .core.display_functions import *\n")
    done = run("from IPython.display import display, clear_output\nimport IPython\ndisplay(1)\nclear_output()\nIPython.real")
    assert (done.out, done.values()) == ("", ["True"])
    assert [kind for kind, _ in done.frames] == [DISPLAY, CLEAR, VALUE]


def test_a_missing_module_is_missing(run):
    code = "import matplotlib.pyplot" if "PYTHONPATH" in os.environ else "import plotly.io"
    status, out, err = plain(run, code)
    done = run(code)
    assert (done.status, done.err) == (status, err)


# ---- errors


def chain_of(parts):
    """[(name, message, [lines])] of the error and those that it came from."""
    chain = [[]]
    for part in parts:
        if part[0] == "cause":
            chain.append([])
        else:
            chain[-1].append(part)
    return [(dict(one)["name"].decode(), dict(one)["message"].decode(),
             [value.decode().split("\0")[4].strip() for key, value in one if key == "frame"]) for one in chain]


@pytest.mark.parametrize("code, chain", [
    ("try:\n    {}['x']\nexcept KeyError as e:\n    raise ValueError('v') from e",
     [("ValueError", "v", ["raise ValueError('v') from e"]), ("KeyError", "'x'", ["{}['x']"])]),
    ("try:\n    {}['x']\nexcept KeyError:\n    raise ValueError('v')",
     [("ValueError", "v", ["raise ValueError('v')"]), ("KeyError", "'x'", ["{}['x']"])]),
    ("try:\n    {}['x']\nexcept KeyError:\n    raise ValueError('v') from None",
     [("ValueError", "v", ["raise ValueError('v') from None"])]),
    ("a, b = ValueError('a'), ValueError('b')\na.__cause__ = b\nb.__cause__ = a\nraise a",
     [("ValueError", "a", ["raise a"]), ("ValueError", "b", [])]),
    ("raise ValueError('v') from OSError(2, 'gone')",
     [("ValueError", "v", ["raise ValueError('v') from OSError(2, 'gone')"]), ("FileNotFoundError", "[Errno 2] gone", [])]),
])
def test_causes(run, code, chain):
    status, _, err = plain(run, code)
    done = run(code)
    assert (done.status, done.err) == (status, err)
    assert chain_of(done.error()) == chain


def test_many_causes_and_frames(run):
    done = run("def f(n, e):\n    if n: f(n - 1, e)\n    else: raise ValueError(len(str(e))) from e\ne = None\n"
               "for i in range(30):\n    try: f(50, e)\n    except ValueError as x: e = x\nraise e")
    parts = done.error()
    assert len(chain_of(parts)) == 9
    assert len([key for key, _ in parts if key == "frame"]) <= 100 and len(parts) <= 128


def test_notes_and_groups(run):
    if run.version < (3, 11):
        pytest.skip("notes and groups came with 3.11")
    code = ("e = ExceptionGroup('several', [ValueError('one'), ExceptionGroup('inner', [KeyError('two')])])\n"
            "e.add_note('a note')\nraise e")
    status, _, err = plain(run, code)
    done = run(code)
    assert (done.status, done.err) == (status, err)
    parts = dict(done.error())
    assert parts["name"] == b"ExceptionGroup" and parts["message"] == b"several (2 sub-exceptions)"
    for text in (b"a note", b"ValueError: one", b"KeyError: 'two'"):
        assert text in parts["traceback"]


@pytest.mark.parametrize("code", [
    "raise ValueError('x' * 100000)",
    "class E(Exception):\n    def __str__(self): raise RuntimeError\nraise E",
    "class S(str):\n    def __getitem__(self, i): 1/0\nclass E(Exception):\n    def __str__(self): return S('text')\nraise E",
    "class E(Exception):\n    __module__ = None\nraise E('x')",
    "def f(): f()\nf()",
    "exec('1/0')", "import json\njson.loads('{')", "x = '\\u2028\\x0c'; 1/0",
    "import traceback\ntry: 1/0\nexcept Exception: traceback.print_exc()",
    "class Q:\n    def __repr__(self): 1/0\ntry: print(Q())\nfinally: print('f')",
])
def test_hostile_errors_print_as_ever(run, code):
    import re
    status, out, err = plain(run, code)
    done = run(code)
    assert (done.status, done.out) == (status, out)
    assert re.sub(r"9\d\d more", "more", done.err) == re.sub(r"9\d\d more", "more", err)
    if status:
        assert len(done.errors()) == 1 and all(len(value) <= 65536 for _, value in done.error())


def test_the_runner_is_in_no_traceback(run):
    code = "class Q:\n    def _repr_html_(self): return helper()\n    def __repr__(self): raise SystemError(repr(1))\n" \
           "def helper():\n    try: display(W())\n    except KeyboardInterrupt as e: raise LookupError from e\n" \
           "class W:\n    def __repr__(self): raise KeyboardInterrupt('k')\n" \
           "try: display(Q())\nexcept BaseException: pass\nimport sys\nsys.displayhook(W())"
    done = run(code)
    assert "runner.py" not in done.err and "rich.py" not in done.err
    for parts in done.errors():
        for key, value in parts:
            assert key != "frame" or b"rich.py" not in value, value


def test_error_in_a_thread(run):
    code = "import threading\ndef f():\n    1/0\nt = threading.Thread(target=f, name='T')\nt.start()\nt.join()\nprint('on')"
    status, out, err = plain(run, code)
    done = run(code)
    assert (done.status, done.out, done.err) == (status, out, err)
    parts = dict(done.error())
    assert (parts["name"], parts["phase"]) == (b"ZeroDivisionError", b"thread")
    assert parts["frame"].split(b"\0")[0] == b"3"
    done = run(code, name="given.py")
    assert '  File "given.py", line 3, in f\n    1/0\n' in done.err and done.err.startswith("Exception in thread T:\n")


def test_own_thread_hook_and_quiet_end(run):
    done = run("import threading\nthreading.excepthook = lambda a: print('hook', a.exc_type.__name__)\n"
               "t = threading.Thread(target=lambda: 1/0)\nt.start()\nt.join()")
    assert (done.out, done.err, done.frames) == ("hook ZeroDivisionError\n", "", [])
    done = run("import threading, sys\nt = threading.Thread(target=lambda: sys.exit(3))\nt.start()\nt.join()")
    assert (done.status, done.err, done.frames) == (0, "", [])


def test_what_ended_the_code_comes_last(run):
    done = run("class Q:\n    def __repr__(self): 1/0\ndisplay(Q())\nraise OSError('end')")
    assert [dict(parts)["phase"] for parts in done.errors()] == [b"display", b"run"]



"""What is shown of libraries that people use. tests/packages-python.sh puts them where these tests look."""
import json

import pytest

from harness import DISPLAY, ERROR, PACKAGES, UPDATE, VALUE

PNG = b"\x89PNG\r\n\x1a\n"
TABLE = "application/vnd.dataresource+json"
PLOT = "import matplotlib.pyplot as plt\n"


@pytest.fixture
def lib(run):
    """lib("pandas", code) -> Done; skips where the library is not installed for that interpreter."""

    def start(library, code, **options):
        directory = PACKAGES / ("%d.%d" % run.version)
        for name in library.split():
            if not (directory / name).is_dir():
                pytest.skip("no %s for Python %d.%d in build/python-packages" % (name, *run.version))
        path = "%s:%s" % (directory, options.pop("path", ""))
        return run(code, env={"PYTHONPATH": path, "MPLCONFIGDIR": str(PACKAGES / "matplotlib"), **options.pop("env", {})})

    start.version, start.work = run.version, run.work
    return start


def size(bundle):
    png = bundle["image/png"]
    assert png.startswith(PNG) and png.endswith(b"IEND\xaeB`\x82")
    found = int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")
    assert json.loads(bundle["metadata"])["image/png"] == {"width": found[0], "height": found[1]}
    return found


def order(done):
    """The parts of each frame that matter, in order."""
    assert done.err == "", done.err
    return [dict(parts)["text/plain"].decode() if "image/png" not in dict(parts) else "png" for _, parts in done.frames]


# ---- matplotlib


def test_open_figures_are_shown_at_the_end(lib):
    done = lib("matplotlib", PLOT + "plt.plot([1, 2])\nplt.figure(figsize=(2, 1))\nplt.plot([3])\nplt.figure()\nprint('end');")
    first, second = done.shown()
    assert first["figure"] == second["figure"] == b"" and size(first)[0] > size(second)[0]
    assert first["text/plain"] == b"<Figure size 640x480 with 1 Axes>"
    assert done.out == "end\n"


def test_show_is_where_it_stands(lib):
    done = lib("matplotlib", PLOT + "display('a')\nplt.plot([1])\nplt.show()\ndisplay('b')\nplt.plot([2])\nplt.plot([3])\nplt.show()\n"
               "plt.show()\ndisplay('c')\nplt.get_fignums()")
    assert order(done) == ["'a'", "png", "'b'", "png", "'c'", "[]"]


@pytest.mark.parametrize("code", [
    "fig, ax = plt.subplots()\nax.plot([1])\nfig",
    "fig, ax = plt.subplots()\nax.plot([1])\ndisplay(fig)",
    "fig, ax = plt.subplots()\nax.plot([1])\nfig.show()",
    "fig, ax = plt.subplots()\nax.plot([1])\nplt.show()",
    "fig, ax = plt.subplots()\nax.plot([1])\ndisplay(fig)\nplt.show()",
    "plt.plot([1]);",
    "plt.ion()\nfig, ax = plt.subplots()\nax.plot([1])\nfig.canvas.draw()\ndisplay(fig)",
    "from matplotlib.figure import Figure\nf = Figure()\nf.subplots().plot([1])\nf",
    "import matplotlib\nmatplotlib.use('Agg')\nplt.plot([1])\nplt.show()",
    "plt.switch_backend('agg')\nplt.plot([1])\nplt.show()",
    "import matplotlib\nplt.plot([1])\nmatplotlib.rcParams.update(matplotlib.rcParamsDefault)\nplt.show()",
    "from matplotlib.pyplot import show\nplt.plot([1])\nshow(block=True)",
    "plt.plot([1])\nplt.draw()\nplt.pause(0.01)",
    "plt.plot([1])\nraise SystemExit",
    "import threading, time\nthreading.Thread(target=lambda: (time.sleep(.3), plt.plot([1]))).start()",
])
def test_a_figure_is_shown_once(lib, code):
    done = lib("matplotlib", PLOT + code)
    assert (done.status, done.err) == (0, "")
    assert [kind for kind, parts in done.frames if "image/png" in dict(parts)] in ([DISPLAY], [VALUE])
    assert len([kind for kind, _ in done.frames if kind != VALUE]) <= 1


def test_backend_chosen_in_the_environment(lib):
    done = lib("matplotlib", PLOT + "import matplotlib\nplt.plot([1])\nplt.show()\nmatplotlib.get_backend().lower()", env={"MPLBACKEND": "agg"})
    assert order(done) == ["png", "'agg'"]


def test_a_changed_figure_is_shown_again(lib):
    done = lib("matplotlib", PLOT + "fig, ax = plt.subplots()\nax.plot([1, 2])\ndisplay(fig)\nax.set_title('new')\nprint('x');")
    assert order(done) == ["png", "png"]


def test_an_update_of_a_figure(lib):
    done = lib("matplotlib", PLOT + "fig, ax = plt.subplots()\nh = display(fig, display_id='f')\nax.plot([1])\nh.update(fig)")
    assert [kind for kind, _ in done.frames] == [DISPLAY, UPDATE]


def test_savefig_behind_show(lib):
    done = lib("matplotlib", PLOT + "plt.plot([1, 2])\nplt.savefig('a.png')\nplt.show()\nplt.savefig('b.png')\n"
               "open('a.png', 'rb').read() == open('b.png', 'rb').read()")
    assert order(done) == ["png", "True"]


def test_figures_survive_an_exception(lib):
    done = lib("matplotlib", PLOT + "plt.plot([1, 2])\n1/0")
    assert [kind for kind, _ in done.frames] == [DISPLAY, ERROR] and done.status == 1


def test_a_figure_that_cannot_be_drawn(lib):
    done = lib("matplotlib", PLOT + "plt.title('$\\\\notacommand{$')\nplt.figure()\nplt.plot([1])\nprint('on');")
    assert (done.status, done.out, done.err) == (0, "on\n", "")
    assert dict(done.error())["phase"] == b"display" and b"notacommand" in dict(done.error())["message"]
    assert [kind for kind, _ in done.frames] == [ERROR, DISPLAY]


@pytest.mark.parametrize("end", ["", "raise SystemExit(3)", "1/0"])
def test_a_failed_figure_has_nothing_to_do_with_the_end(lib, end):
    done = lib("matplotlib", PLOT + "plt.title('$\\\\notacommand{$')\n" + end)
    figure = done.errors()[0]
    assert dict(figure)["phase"] == b"display" and not {b"SystemExit", b"ZeroDivisionError"} & {value for _, value in figure}
    assert done.status == {"": 0, "raise SystemExit(3)": 3, "1/0": 1}[end]


def test_children_know_nothing_of_our_backend(lib):
    done = lib("matplotlib", "import matplotlib, os, subprocess, sys\ncode = 'import matplotlib.pyplot as p; p.plot([1]); print(p.get_backend().lower())'\n"
               "subprocess.run([sys.executable, '-c', code]);")
    assert (done.out, done.err) == ("agg\n", "")


def test_a_forked_child_shows_no_figure(lib):
    done = lib("matplotlib", PLOT + "import os\nplt.plot([1])\nif os.fork() == 0:\n    plt.show()\nelse:\n    os.wait()\n    plt.show()")
    assert (order(done), done.out) == (["png"], "")


# ---- pandas


def test_data_frame(lib):
    done = lib("pandas", "import pandas as pd\npd.DataFrame({'i': [1, 2], 'f': [.5, float('nan')], 's': ['a', None], 'b': [True, False],\n"
               "  't': pd.to_datetime(['2024-02-29', None]), 'inf': [float('inf'), 1.]}, index=['x', 'y'])")
    (bundle,) = done.shown(VALUE)
    assert bundle["text/html"].startswith(b"<div>") and b"2024-02-29" in bundle["text/plain"]
    table = json.loads(bundle[TABLE])
    types = {field["name"]: field["type"] for field in table["schema"]["fields"]}
    assert types == {"index": "string", "i": "integer", "f": "number", "s": "string", "b": "boolean", "t": "datetime", "inf": "number"}
    assert table["schema"]["primaryKey"] == ["index"]
    assert table["data"] == [
        {"index": "x", "i": 1, "f": .5, "s": "a", "b": True, "t": "2024-02-29T00:00:00", "inf": None},
        {"index": "y", "i": 2, "f": None, "s": None, "b": False, "t": None, "inf": 1.0}]
    assert json.loads(bundle["metadata"])[TABLE] == {"rows": 2, "columns": 6, "shownRows": 2, "shownColumns": 6}


def test_large_tables_are_cut(lib):
    (bundle,) = lib("pandas", "import numpy, pandas as pd\npd.DataFrame(numpy.zeros((5000, 70)))").shown(VALUE)
    table = json.loads(bundle[TABLE])
    assert (len(table["data"]), len(table["schema"]["fields"])) == (200, 51)
    assert json.loads(bundle["metadata"])[TABLE] == {"rows": 5000, "columns": 70, "shownRows": 200, "shownColumns": 50}
    (bundle,) = lib("pandas", "import pandas as pd\npd.DataFrame({c: ['x' * 5000] * 200 for c in 'abcdefgh'})").shown(VALUE)
    assert len(bundle[TABLE]) <= 1 << 20
    assert json.loads(bundle[TABLE])["data"][0]["a"] == "x" * 2000 + "..."


@pytest.mark.parametrize("code, names, rows", [
    ("pd.DataFrame([[1, 2]], columns=['a', 'a'])", ["index", "a", "a'"], 1),
    ("pd.DataFrame({('a', 'b'): [1], ('a', 'c'): [2]})", ["index", "a b", "a c"], 1),
    ("pd.DataFrame({'v': [1, 2]}, index=pd.MultiIndex.from_tuples([(1, 'x'), (2, 'y')], names=['n', None]))", ["n", "level_1", "v"], 2),
    ("pd.DataFrame()", ["index"], 0),
    ("pd.DataFrame({'o': [[1], {'a': 1}, b'x', (1,)]})", ["index", "o"], 4),
    ("pd.DataFrame({'c': pd.Categorical(['a', 'b']), 'd': pd.to_timedelta([1, None], unit='s'), 'n': pd.array([1, None], dtype='Int64')})",
     ["index", "c", "d", "n"], 2),
    ("pd.Series([1.5, None], name='s')", ["index", "s"], 2),
    ("pd.Series(['a'], index=pd.period_range('2024', periods=1, freq='D'))", ["index", "values"], 1),
    ("pd.DataFrame({'a': [1]}).query('a > 5')", ["index", "a"], 0),
    ("pd.DataFrame({'x': ['\\ud800']})", ["index", "x"], 1),
])
def test_odd_tables(lib, code, names, rows):
    (bundle,) = lib("pandas", "import pandas as pd\n" + code).shown(VALUE)
    table = json.loads(bundle[TABLE])
    assert [field["name"] for field in table["schema"]["fields"]] == names and len(table["data"]) == rows
    assert ("text/html" in bundle) == ("Series" not in code)


def test_pandas_is_not_imported_for_it(lib):
    done = lib("pandas", "import sys\nclass A: pass\ndisplay(A())\n[m for m in ('pandas', 'numpy', 'json') if m in sys.modules]")
    assert done.values() == ["[]"]


def test_pandas_plot(lib):
    done = lib("pandas matplotlib", "import pandas as pd\npd.DataFrame({'a': [1, 2]}).plot();")
    assert order(done) == ["png"]


# ---- pictures


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I", "I;16", "F", "CMYK", "YCbCr", "HSV", "LAB"])
def test_pil(lib, mode):
    done = lib("PIL", "from PIL import Image\nImage.new(%r, (7, 3))" % mode)
    (bundle,) = done.shown(VALUE)
    assert size(bundle) == (7, 3) and set(bundle) == {"image/png", "text/plain", "metadata"}


def test_pil_show(lib):
    done = lib("PIL", "from PIL import Image\nImage.new('RGB', (7, 3)).show()\nprint('on')")
    assert [size(bundle) for bundle in done.shown()] == [(7, 3)]


# ---- the long form of the suite


def test_plotly(lib):
    done = lib("plotly", "import plotly.graph_objects as go\nf = go.Figure(go.Bar(y=[1, 2, float('nan')]))\nf.show()\nf")
    bundles = done.shown(DISPLAY, VALUE)
    assert len(bundles) == 2
    for bundle in bundles:
        spec = json.loads(bundle["application/vnd.plotly.v1+json"])
        assert spec["data"][0]["type"] == "bar" and b"plotly" in bundle["text/html"] and len(bundle["text/html"]) < 100000
        assert bundle["text/plain"] == b"<Figure of plotly with 1 traces>"


def test_plotly_show_of_a_dict(lib):
    done = lib("plotly", "import plotly.io as pio\npio.show({'data': [{'type': 'bar', 'y': [1]}]})")
    assert [b"bar" in bundle["application/vnd.plotly.v1+json"] for bundle in done.shown()] == [True]


def test_altair(lib):
    done = lib("altair pandas", "import altair as alt, pandas as pd\nc = alt.Chart(pd.DataFrame({'x': [1], 'y': [2]})).mark_bar().encode(x='x', y='y')\n"
               "display(c)\nc")
    for bundle in done.shown(DISPLAY, VALUE):
        (mime,) = [mime for mime in bundle if "vegalite" in mime]
        assert json.loads(bundle[mime])["$schema"].split("/v")[-1][0] in mime
        assert len(bundle["text/plain"]) < 100


def test_sympy(lib):
    done = lib("sympy", "import sympy\nsympy.Symbol('x') ** 2")
    assert done.shown(VALUE) == [{"text/latex": b"$\\displaystyle x^{2}$", "text/plain": b"x**2"}]


def test_polars(lib):
    done = lib("polars", "import polars as pl, datetime\npl.DataFrame({'a': [1, None], 'f': [float('nan'), .5], 'd': [datetime.date(2024, 2, 29)] * 2,"
               " 'l': [[1], []]})")
    (bundle,) = done.shown(VALUE)
    table = json.loads(bundle[TABLE])
    assert [field["type"] for field in table["schema"]["fields"]] == ["integer", "number", "date", "any"]
    assert table["data"][0] == {"a": 1, "f": None, "d": "2024-02-29", "l": "[1]"}
    assert b"<table" in bundle["text/html"] and bundle["text/plain"].startswith(b"shape: (2, 4)")
    (bundle,) = lib("polars", "import polars as pl\npl.Series('s', [1, 2])").shown(VALUE)
    assert json.loads(bundle[TABLE])["data"] == [{"s": 1}, {"s": 2}]


def test_seaborn(lib):
    done = lib("seaborn", "import seaborn as sns, pandas as pd\nd = pd.DataFrame({'x': [1, 2, 3], 'y': [1, 4, 9]})\nsns.scatterplot(d, x='x', y='y')\n"
               "sns.relplot(d, x='x', y='y');")
    assert order(done) == ["png", "png"]
    done = lib("seaborn", "import seaborn.objects as so\nso.Plot(x=[1, 2], y=[1, 2]).add(so.Line())")
    assert [bundle["image/png"][:8] for bundle in done.shown(VALUE)] == [PNG]


def test_scipy(lib):
    assert lib("scipy", "import scipy.stats\nround(scipy.stats.norm.cdf(0), 3)").values()[0] in ("0.5", "np.float64(0.5)")


def test_numpy(lib):
    done = lib("numpy", "import numpy as np\nclass J:\n    def _repr_json_(self): return {'a': np.array([1., np.nan]), 'b': np.float32(2), 'c': np.int8(3)}\n"
               "    def __repr__(self): return 'J'\ndisplay(J())\nnp.arange(3)")
    shown, value = done.shown(DISPLAY, VALUE)
    assert json.loads(shown["application/json"]) == {"a": [1.0, None], "b": 2.0, "c": 3}
    assert value["text/plain"] == b"array([0, 1, 2])"


def test_ipython_itself(lib):
    directory = PACKAGES / ("%d.%d-ipython" % lib.version)
    if not directory.is_dir():
        pytest.skip("no IPython for Python %d.%d in build/python-packages" % lib.version)
    done = lib("", "from IPython.display import display, HTML, clear_output, update_display, Image\nimport IPython\n"
               "h = display(HTML('<b>'), display_id=True)\nh.update(HTML('<i>'))\ndisplay(Image(data=%r, width=4))\nclear_output()\n"
               "display(1)\nIPython.version_info > (7,)" % PNG, path=str(directory))
    assert (done.out, done.err) == ("", "")
    assert [kind for kind, _ in done.frames] == [DISPLAY, UPDATE, DISPLAY, 3, DISPLAY, VALUE]
    assert dict(done.frames[0][1])["text/html"] == b"<b>" and dict(done.frames[2][1])["image/png"] == PNG
    assert json.loads(dict(done.frames[2][1])["metadata"])["image/png"]["width"] == 4
    assert done.values() == ["True"]



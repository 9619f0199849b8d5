"""Results of Python code from a box: that they survive every end, in which order they stand, what an error looks like.
languages/python tests the runner itself."""

import base64
import os
import time

import pytest

from expect import fault, plain
from test_images import JPEG

pytestmark = pytest.mark.any_user


def kinds(result):
    return [(r["kind"], r["data"].get("text/plain")) for r in result["results"]]


KEPT = [("display", "'kept'"), ("display", "'too'")]
SHOW = "print('before')\ndisplay('kept')\ndisplay('too')\nprint('behind')\n"


# ---- every end


def test_results_survive_a_timeout(client):
    result = client.code(SHOW + "while True: pass", timeoutMs=3000)
    fault(result, "timeout")
    assert (kinds(result), result["stdout"]) == (KEPT, "before\nbehind\n")


def test_results_survive_the_lack_of_memory(client):
    session = client.call("session/open", {"memoryMb": 64})
    if "memoryMb" not in str(session["effective"]):
        pytest.skip("this host enforces no cap of memory")
    result = client.code(SHOW + "b = []\nwhile True: b.append(bytearray(b'x') * (1 << 20))", sessionId=session["sessionId"],
                         timeoutMs=60000)
    assert kinds(result) == KEPT and result["exitCode"] != 0
    assert result.get("fault", {}).get("type") == "oom" or result["error"]["name"] == "MemoryError"


@pytest.mark.parametrize("code, status, signal", [
    ("import os; os._exit(7)", 7, None),
    ("import os; os.abort()", 134, "ABRT"),
    ("import ctypes; ctypes.string_at(0)", 139, "SEGV"),
    ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", 137, "KILL"),
    ("raise SystemExit(3)", 3, None),
])
def test_results_survive_a_sudden_end(client, code, status, signal):
    result = client.code(SHOW + code)
    assert (kinds(result), result["stdout"]) == (KEPT, "before\nbehind\n")
    assert (result["exitCode"], result.get("signal")) == (status, signal)


def test_results_survive_a_cancellation(client):
    run = client.send("run/code", {"code": SHOW + "import time; time.sleep(1000)", "runId": "r", "stream": "live"})
    client.wait_for(lambda: any(e["method"] == "run/output" and "behind" in str(e["params"]) for e in run.events), "behind")
    client.cancel(run)
    result = run.result()
    fault(result, "cancelled")
    assert kinds(result) == KEPT


# ---- order


def test_prints_and_displays_are_in_order(client):
    result = client.code("for i in range(50):\n    print(f'{i:03}')\n    display(i)\nprint('end')")
    assert [r["at"]["stdout"] for r in result["results"]] == [4 * (i + 1) for i in range(50)]
    seqs = [r["seq"] for r in result["results"]]
    assert seqs == sorted(set(seqs))


def test_updates_and_clears_are_applied(client):
    result = client.code("from IPython.display import clear_output\ndisplay('gone')\nclear_output()\nh = display(1, display_id='x')\n"
                         "display('y')\nh.update(2);")
    assert kinds(result) == [("display", "2"), ("display", "'y'")]
    assert result["results"][0]["displayId"] == "x"
    result = client.code("from IPython.display import clear_output\ndisplay('a')\nclear_output(wait=True)\nprint(1)")
    assert kinds(result) == [("display", "'a'")]
    result = client.code("from IPython.display import clear_output\ndisplay('a')\nclear_output(wait=True)\ndisplay('b')")
    assert kinds(result) == [("display", "'b'")]


def test_forms_and_metadata(client):
    result = client.code(f"class P:\n    def _repr_jpeg_(self): return {JPEG!r}, {{'width': 3}}\n"
                         "    def _repr_json_(self): return [float('nan')]\n"
                         "    def __repr__(self): return 'P'\nP()")
    (entry,) = result["results"]
    assert entry["data"] == {"image/jpeg": base64.b64encode(JPEG).decode(), "application/json": "[null]", "text/plain": "P"}
    assert entry["metadata"] == {"image/jpeg": {"width": 3}, "application/json": {"nanReplaced": True}}


# ---- errors


def test_an_error_says_what_it_came_from(client):
    result = client.code("def f():\n    return {}['x']\ntry:\n    f()\nexcept KeyError:\n    raise ValueError('v') from None")
    assert "cause" not in result["error"]
    result = client.code("def f():\n    return {}['x']\ntry:\n    try:\n        f()\n    except KeyError as e:\n        raise OSError('o') from e\n"
                         "except OSError:\n    raise ValueError('v')")
    error = result["error"]
    cause = error["cause"]
    deeper = cause["cause"]
    assert [(e["name"], e["message"]) for e in (error, cause, deeper)] == [("ValueError", "v"), ("OSError", "o"), ("KeyError", "'x'")]
    assert [f["line"] for f in deeper["frames"]] == [5, 2] and deeper["frames"][1]["source"] == "    return {}['x']"
    assert "cause" not in deeper and (cause["traceback"], cause["phase"]) == ("", "run")
    assert error["traceback"] == result["stderr"]


def test_an_error_beside_the_code(client):
    result = client.code("class Q:\n    def _repr_html_(self): 1/0\n    def __repr__(self): return 'Q'\ndisplay(Q())\nprint('on')")
    assert (result["success"], result["stdout"], result["stderr"], kinds(result)) == (True, "on\n", "", [("display", "Q")])
    assert (result["error"]["name"], result["error"]["phase"]) == ("ZeroDivisionError", "display")
    assert result["error"]["frames"][0]["line"] == 2
    result = client.code("import threading\nt = threading.Thread(target=lambda: 1/0)\nt.start()\nt.join()")
    assert (result["success"], result["error"]["phase"]) == (True, "thread")
    result = client.code("import atexit\nclass Q:\n    def _repr_html_(self): 1/0\natexit.register(lambda: display(Q()))\nraise OSError('end')")
    assert (result["error"]["name"], result["error"]["phase"], result["exitCode"]) == ("OSError", "run", 1)


def test_position_of_a_syntax_error(client):
    result = client.code("print('no')\nx <- 1 ]", filename="cell.py")
    assert (result["stdout"], result["exitCode"], result["error"]["phase"]) == ("", 1, "compile")
    (place,) = result["error"]["frames"]
    assert (place["file"], place["line"], place["column"], place["source"]) == ("cell.py", 2, 8, "x <- 1 ]")


@pytest.mark.parametrize("code, line, source", [
    ("if True:\n    x=1\n    y=2\n    z=1/0", 4, "    z=1/0"),
    ("def f(*a): return 1/0\n\nf(1,\n  2,\n  3)", 1, "def f(*a): return 1/0"),
    ("x = 1\n\n(x +\n None)", 3, "(x +"),
    ("for i in range(3):\n    if i == 2:\n        missing", 3, "        missing"),
])
def test_lines_of_errors(client, code, line, source):
    last = client.code(code)["error"]["frames"][-1]
    assert (last["line"], last["source"]) == (line, source)


def test_a_pool_that_prints(client):
    result = client.code("from concurrent.futures import ProcessPoolExecutor\ndef f(n):\n    for i in range(100): print('line', n, i)\n"
                         "if __name__ == '__main__':\n    with ProcessPoolExecutor(2) as pool:\n        list(pool.map(f, range(10)))\n    display('end')")
    assert sorted(result["stdout"].split("\n")) == sorted([f"line {n} {i}" for n in range(10) for i in range(100)] + [""])
    assert (kinds(result), result["resultChannel"]) == ([("display", "'end'")], "ok")


def test_what_is_printed_is_no_result(client):
    text = "iVBORw0KGgo=\n\x1b]1337;File=inline=1:iVBORw0KGgo=\x07\n{\"image/png\": \"iVBORw0KGgo=\"}"
    result = client.code(f"print({text!r})")
    assert (result["stdout"], result["results"]) == (text + "\n", [])


def test_a_deep_call_keeps_library_frames(client):
    result = client.code("import json\n\ndef load(text):\n    return json.loads(text)\n\nload('{')")
    frames = result["error"]["frames"]
    assert [(f["line"], f.get("source", "").strip()) for f in frames[:2]] == [(6, "load('{')"), (4, "return json.loads(text)")]
    assert frames[-1]["file"].endswith("json/decoder.py") and "source" not in frames[-1]


def test_output_goes_through_the_true_descriptor(client):
    plain(client.code("import os, subprocess, sys\nsubprocess.Popen(['echo', 'hi'], stdout=sys.stdout).wait()\nos.system('echo ho');"), "hi\nho\n")


# ---- kernels


@pytest.fixture
def kernel(client):
    kernel = client.call("kernel/open", {"sessionId": client.open(), "language": "python"})["kernelId"]
    return lambda code, **more: client.call("kernel/run", {"kernelId": kernel, "code": code, **more})


def test_errors_of_cells(kernel):
    kernel("def f():\n    return {}['x']")
    error = kernel("try:\n    f()\nexcept KeyError:\n    raise ValueError('v')")["error"]
    assert [f["source"].strip() for f in error["frames"]] == ["raise ValueError('v')"]
    assert [f["source"].strip() for f in error["cause"]["frames"]] == ["f()", "return {}['x']"]
    result = kernel("import threading\nt = threading.Thread(target=f, name='T')\nt.start()\nt.join()")
    assert result["cellStatus"] == "ok" and result["error"]["phase"] == "thread"
    assert result["stderr"].startswith("Exception in thread T:\n") and "    return {}['x']\n" in result["stderr"]
    assert "error" not in kernel("1")


def test_threads_between_cells_show_nothing_and_harm_nobody(kernel):
    for number in range(5):
        kernel("import threading, time\ndef late():\n    time.sleep(.05)\n    for i in range(10):\n        display('late')\n        time.sleep(.002)\n"
               "    1/0\nt = threading.Thread(target=late)\nt.start()")
        time.sleep(0.1)
        result = kernel("t.join()\n%d" % number)
        assert result["cellStatus"] == "ok" and kinds(result)[-1] == ("value", str(number))


@pytest.mark.parametrize("code", [
    "import time\nwhile True:\n    try: time.sleep(1)\n    except Exception: pass",
    "import time\nasync def f(): time.sleep(60)\nawait f()",
    "import asyncio\nawait asyncio.sleep(60)",
    "import time\nclass Q:\n    def __repr__(self): time.sleep(60)\nQ()",
], ids=["except", "blocking", "await", "repr"])
def test_an_interrupted_cell_leaves_all_usable(kernel, code):
    result = kernel("display('kept')\n" + code, timeoutMs=1000)
    assert (result["cellStatus"], result["stateKept"], result["error"]["name"]) == ("interrupted", True, "KeyboardInterrupt")
    assert kinds(result) == [("display", "'kept'")]
    assert kinds(kernel("import asyncio\nawait asyncio.sleep(0)\n1")) == [("value", "1")]


def test_a_repr_without_end_ends_with_the_deadline(client):
    result = client.code("class Q:\n    def __repr__(self):\n        while True: pass\nprint('before')\ndisplay('kept')\nQ()", timeoutMs=2000)
    fault(result, "timeout")
    assert (result["stdout"], kinds(result)) == ("before\n", [("display", "'kept'")])


def test_the_same_warning_is_shown_in_each_cell(kernel):
    for _ in range(2):
        assert "UserWarning: careful" in kernel("import warnings\nwarnings.warn('careful')")["stderr"]


def test_lines_as_the_interpreter_counts_them(kernel):
    result = kernel("x = '\u2028\x0c'\n1/0")
    assert "line 2, in <module>\n    1/0\n" in result["stderr"] and result["error"]["frames"][0]["source"] == "1/0"


# ---- libraries, from tests/packages-python.sh

FIGURE = "import matplotlib.pyplot as plt\nprint('a')\nplt.plot([1, 2])\nplt.show()\nprint('b')\nplt.plot([1])\n1;"


def figures(client, result):
    """[(kind, where in stdout)] of the images."""
    found = []
    for entry in result["results"]:
        data = entry["data"].get("image/png")
        if data is not None:
            png = base64.b64decode(data) if isinstance(data, str) else client.text(data)
            size = entry["metadata"]["image/png"]
            assert int.from_bytes(png[16:20], "big") == size["width"] and int.from_bytes(png[20:24], "big") == size["height"]
            found.append((entry["kind"], entry["at"]["stdout"]))
    return found


def test_figures(client, libraries):
    result = client.code(FIGURE, sessionId=libraries("matplotlib"))
    assert (figures(client, result), result["stdout"], result["stderr"]) == ([("figure", 2), ("figure", 4)], "a\nb\n", "")
    assert "error" not in result and len(result["results"]) == 2


def test_figures_of_cells(client, libraries):
    session = libraries("matplotlib")
    kernel = client.call("kernel/open", {"sessionId": session, "language": "python"})["kernelId"]

    def run(code):
        return client.call("kernel/run", {"kernelId": kernel, "code": code}, 120)

    result = run(FIGURE)
    assert (figures(client, result), result["stderr"]) == ([("figure", 2), ("figure", 4)], "")
    assert run("fig, ax = plt.subplots()\nax.plot([3])\nplt.get_fignums()")["results"][0]["data"]["text/plain"] == "[1]"
    assert run("plt.get_fignums()")["results"][0]["data"]["text/plain"] == "[]"
    assert [kind for kind, _ in figures(client, run("ax.plot([4])\nfig"))] == ["value"]
    assert figures(client, run("1")) == []


def test_tables(client, libraries):
    result = client.code("import pandas as pd\npd.DataFrame({'a': [1.5, None]})", sessionId=libraries("pandas"))
    (entry,) = result["results"]
    assert set(entry["data"]) == {"text/plain", "text/html", "application/vnd.dataresource+json"}
    assert result["stderr"] == ""

"""Kernels of Jupyter in boxes, with jupyter_client and nbclient as they come from the index."""

import base64
import os
import signal
import subprocess
import sys
import time

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.dirname(HERE)
PACKAGES = os.environ.get("KERN_PACKAGES_JUPYTER", os.path.join(PACKAGE, "../../build/jupyter-packages"))
if not os.path.isdir(os.path.join(PACKAGES, "ipykernel")):
    pytest.skip("tests/packages-python.sh --jupyter has not been run", allow_module_level=True)
sys.path.append(PACKAGES)

nbformat = pytest.importorskip("nbformat")
from jupyter_client.manager import KernelManager  # noqa: E402
from nbclient import NotebookClient  # noqa: E402

import kern_sandbox as kern  # noqa: E402
from conftest import children_of  # noqa: E402
from kern_sandbox.jupyter import _errors  # noqa: E402
from kern_sandbox.jupyter.__main__ import main  # noqa: E402
from kern_sandbox.jupyter._display import clean_html, shown  # noqa: E402
from kern_sandbox.jupyter._options import Chosen  # noqa: E402

WAIT_SECONDS = 60
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def run_command(*args, **env):
    return subprocess.run(
        [sys.executable, "-B", "-m", "kern_sandbox.jupyter", *args],
        env={**os.environ, "PYTHONPATH": f"{PACKAGE}:{PACKAGES}", **env},
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        cwd="/",
    )


@pytest.fixture(scope="module", autouse=True)
def specs(tmp_path_factory):
    """The kernelspecs, and a home of Jupyter's own."""
    place = tmp_path_factory.mktemp("jupyter")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{PACKAGE}:{PACKAGES}")
        patch.setenv("PYTHONDONTWRITEBYTECODE", "1")
        for name in ("JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "IPYTHONDIR"):
            patch.setenv(name, str(place / name))
        patch.setenv("JUPYTER_PATH", str(place / "share" / "jupyter"))
        installed = run_command("install", "--prefix", str(place))
        assert installed.returncode == 0, installed.stderr
        yield str(place)


class Notebook:
    """A client of one kernel."""

    def __init__(self, name, directory, **env):
        self.manager = KernelManager(kernel_name=name)
        self.manager.start_kernel(cwd=str(directory), env={**os.environ, **env})
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=WAIT_SECONDS)

    def run(self, code, on_message=None, answers=(), **options):
        """-> the reply, and what was shown: (type, content) without status and input"""
        seen, lines = [], list(answers)

        def hook(message):
            if message["msg_type"] not in ("status", "execute_input"):
                seen.append((message["msg_type"], message["content"]))
                if on_message is not None:
                    on_message(*seen[-1])

        def answer(message):
            line = lines.pop(0)
            line(message["content"]) if callable(line) else self.client.input(line)

        reply = self.client.execute_interactive(
            code, output_hook=hook, stdin_hook=answer, allow_stdin=bool(answers), timeout=WAIT_SECONDS, **options
        )
        return reply["content"], seen

    def value(self, code):
        [(kind, content)] = self.run(code)[1]
        assert kind == "execute_result"
        return content["data"]["text/plain"]

    def ask(self, request):
        return self.client._recv_reply(request, timeout=WAIT_SECONDS)["content"]

    def is_complete(self, code):
        return self.ask(self.client.is_complete(code))["status"]

    def interrupt_at(self, text):
        """Interrupts the cell when it has written this."""
        return lambda kind, content: self.manager.interrupt_kernel() if text in content.get("text", "") else None

    def close(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=False)


@pytest.fixture(scope="module")
def python(specs, tmp_path_factory):
    notebook = Notebook("kern-python", tmp_path_factory.mktemp("notebook"))
    yield notebook
    notebook.close()


def text_of(seen, stream):
    return "".join(content["text"] for kind, content in seen if kind == "stream" and content["name"] == stream)


def wait_until(condition):
    end = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.02)


def is_gone(pid):
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rsplit(b")", 1)[1].split()[0] == b"Z"
    except OSError:
        return True


# -- what a person sees


def test_a_notebook_file(specs, tmp_path):
    """Text, a table, figures, an error, a question that nobody answers, and state: run, saved and read again."""
    book = nbformat.v4.new_notebook(metadata={"kernelspec": {"name": "kern-python", "display_name": "x", "language": "python"}})
    code = nbformat.v4.new_code_cell
    figure = f"from IPython.display import *\nimport base64\ndisplay(Image(base64.b64decode({PIXEL!r})))\nSVG('<svg onload=\"x()\"/>')"
    book.cells = [
        nbformat.v4.new_markdown_cell("# Title"),
        code("print('hello')\nx = 40"),
        code("class T:\n    def _repr_html_(self): return '<table onclick=\"y()\"><tr><td>1</td></tr></table><script>z()</script>'\nT()"),
        code(figure),
        code("def f():\n    return 1 / 0\nf()", metadata={"tags": ["raises-exception"]}),
        code("input('Name? ')", metadata={"tags": ["raises-exception"]}),
        code("x + 2"),
    ]
    path = tmp_path / "a.ipynb"
    nbformat.write(book, path)
    book = nbformat.read(path, as_version=4)
    NotebookClient(book, timeout=WAIT_SECONDS, resources={"metadata": {"path": str(tmp_path)}}).execute()
    nbformat.validate(book)
    nbformat.write(book, path)
    outputs = [cell.outputs for cell in nbformat.read(path, as_version=4).cells[1:]]
    assert outputs[0] == [{"output_type": "stream", "name": "stdout", "text": "hello\n"}]
    assert outputs[1][0].data["text/html"] == "<table><tbody><tr><td>1</td></tr></tbody></table>"
    assert outputs[2][0].data["image/png"].startswith("iVBORw0KGgo")
    assert outputs[2][1].data["text/html"].startswith('<img alt="" src="data:image/svg+xml;base64,')
    [error] = outputs[3]  # and nothing of it on stderr besides
    assert (error.output_type, error.ename, error.evalue) == ("error", "ZeroDivisionError", "division by zero")
    assert error.traceback[0].startswith("Traceback") and '  File "[cell 4]", line 2, in f' in error.traceback
    assert outputs[4][0].ename == "EOFError"
    assert outputs[5][0].data == {"text/plain": "42"} and outputs[5][0].execution_count == 6
    assert os.listdir(tmp_path) == ["a.ipynb"]


def test_displays(python):
    reply, seen = python.run(
        "from IPython.display import *\nprint('a')\nh = display('one', display_id='d')\nupdate_display('two', display_id='d')\n"
        "clear_output(wait=True)\nimport sys\nprint('e', file=sys.stderr)\ndisplay(JSON({'k': [1]}))\nMarkdown('*x* <b onclick=y>')"
    )
    assert (reply["status"], reply["execution_count"]) == ("ok", 1)
    kinds = ["stream", "display_data", "update_display_data", "clear_output", "stream", "display_data", "execute_result"]
    assert [kind for kind, _ in seen] == kinds
    assert seen[1][1]["transient"] == seen[2][1]["transient"] == {"display_id": "d"}
    assert seen[2][1]["data"] == {"text/plain": "'two'"} and seen[3][1] == {"wait": True}
    assert seen[5][1]["data"]["application/json"] == {"k": [1]}
    assert seen[6][1]["data"]["text/html"] == "<p><em>x</em> &lt;b onclick=y&gt;</p>\n"


def test_all_of_much_output_arrives(python):
    reply, seen = python.run("for i in range(40000): print('%060d' % i)")
    assert text_of(seen, "stdout") == "".join("%060d\n" % i for i in range(40000))


def test_input(python):
    prompts = []

    def first(content):
        prompts.append(content)
        python.client.input("Ada")

    reply, seen = python.run(
        "import getpass\n[input('Name? '), getpass.getpass('Word: '), input()]", answers=[first, "secret", "\u00fc"]
    )
    assert seen[-1][1]["data"]["text/plain"] == "['Ada', 'secret', '\u00fc']"
    assert prompts == [{"prompt": "Name? ", "password": False}]
    assert python.run("input()", answers=["\x04"])[0]["ename"] == "EOFError"
    assert python.run("input()")[0]["ename"] == "EOFError"


def test_interrupt_keeps_the_state(python):
    python.run("import time\nkept = 7")
    loop = "print('go', flush=True)\nwhile True: time.sleep(0.01)"
    for how in (python.interrupt_at("go"), lambda *m: os.kill(python.manager.provisioner.process.pid, signal.SIGINT)):
        reply, seen = python.run(loop, how)
        assert (reply["status"], reply["ename"]) == ("error", "KeyboardInterrupt")
        assert seen[-1][0] == "error" and text_of(seen, "stderr") == ""
    reply, _ = python.run("input('?')", answers=[lambda content: python.manager.interrupt_kernel()])
    assert reply["ename"] == "KeyboardInterrupt"
    python.manager.interrupt_kernel()  # nothing runs
    assert python.value("kept") == "7"


def test_silent_cells_and_the_rest_of_the_protocol(python):
    reply, seen = python.run("print('x'); silently = 1; 5", silent=True)
    assert reply["status"] == "ok" and seen == []
    reply, seen = python.run("raise KeyError('x')", silent=True)
    assert reply["ename"] == "KeyError" and seen == []
    assert python.value("silently") == "1"
    count = python.run("", store_history=True)[0]["execution_count"]
    assert python.run("1; 2;")[0]["execution_count"] == count + 1
    info = python.ask(python.client.kernel_info())
    assert (info["implementation"], info["language_info"]["name"]) == ("kern_sandbox", "python") and info["banner"]
    for code, status in {
        "x = 1": "complete", "await f()": "complete", "def f():\n    return 1\n": "complete", "def f():": "incomplete",
        "def f():\n    return 1": "incomplete", "'''": "incomplete", "f(": "incomplete", "x = = 1": "invalid",
    }.items():  # fmt: skip
        assert python.is_complete(code) == status, code
    assert python.ask(python.client.complete("x"))["matches"] == []


def test_output_between_cells(python):
    late = "import threading\nthreading.Timer(0.2, lambda: print('late')).start()"
    request = python.client.execute(late)
    message = {"content": {}}
    while message["content"].get("text") != "late\n":
        message = python.client.get_iopub_msg(timeout=WAIT_SECONDS)
    assert message["content"]["name"] == "stdout" and message["parent_header"]["msg_id"] == request
    python.ask(request)


def test_a_traceback_that_is_only_logged_is_shown(python):
    code = "import traceback, sys\ntry: 1 / 0\nexcept Exception: traceback.print_exc()\nprint('on', file=sys.stderr)"
    reply, seen = python.run(code)
    assert reply["status"] == "ok"
    assert text_of(seen, "stderr").startswith("Traceback") and text_of(seen, "stderr").endswith("division by zero\non\n")


# -- death


def test_a_dead_box_is_told_and_a_restart_helps(python):
    reply, seen = python.run("data = bytearray(600 << 20)\nfor i in range(0, len(data), 4096): data[i] = 1")
    assert reply["ename"] in ("SandboxFault.oom", "MemoryError")
    reply, seen = python.run("import os; print('last', flush=True); os._exit(3)")
    assert reply["status"] == "error"
    if reply["ename"] == "SandboxFault.ended":  # not dead before
        assert "exit status 3" in reply["evalue"] and text_of(seen, "stdout") == "last\n"
    reply, seen = python.run("1")
    assert reply["ename"] == "SandboxError.kernel_dead" and "restart the kernel" in reply["evalue"]
    assert seen == [("error", {name: reply[name] for name in ("ename", "evalue", "traceback")})]
    python.manager.restart_kernel()
    python.client.wait_for_ready(timeout=WAIT_SECONDS)
    assert python.value("1") == "1"
    assert python.run("kept")[0]["ename"] == "NameError"


def test_a_restart_and_an_interrupt_while_it_is_busy(specs, tmp_path):
    """The one ends a cell that does not listen, the other a setup that takes too long."""
    notebook = Notebook("kern-bash", tmp_path, KERN_JUPYTER_SETUP="sleep 1000")
    try:
        pid = notebook.manager.provisioner.process.pid
        request = notebook.client.execute("echo never")
        wait_until(lambda: children_of(pid))
        notebook.manager.interrupt_kernel()
        assert notebook.ask(request)["ename"] == "KeyboardInterrupt"
    finally:
        notebook.close()
    notebook = Notebook("kern-bash", tmp_path)
    try:
        notebook.run("trap '' INT")
        notebook.client.execute("echo go; while true; do :; done")
        wait_until(lambda: notebook.client.get_iopub_msg(timeout=WAIT_SECONDS)["content"].get("text") == "go\n")
        notebook.manager.restart_kernel()
        notebook.client.wait_for_ready(timeout=WAIT_SECONDS)
        assert text_of(notebook.run("echo new")[1], "stdout") == "new\n"
    finally:
        notebook.close()


def test_a_sidecar_that_is_lost_and_a_kernel_that_is_killed(specs, tmp_path):
    notebook = Notebook("kern-bash", tmp_path)
    try:
        pid = notebook.manager.provisioner.process.pid
        assert notebook.run("echo $((1 + 1))") == (
            {"status": "ok", "execution_count": 1, "payload": [], "user_expressions": {}},
            [("stream", {"name": "stdout", "text": "2\n"})],
        )
        [sidecar] = children_of(pid)
        os.kill(sidecar, signal.SIGKILL)
        assert notebook.run("true")[0]["ename"] == "SidecarLost.gone"
        assert notebook.run("true")[0]["ename"] == "SidecarLost.gone"  # not silently another box
        notebook.manager.restart_kernel(now=True)
        notebook.client.wait_for_ready(timeout=WAIT_SECONDS)
        pid = notebook.manager.provisioner.process.pid
        assert notebook.run("sleep 1000 &")[0]["status"] == "ok"
        [sidecar] = children_of(pid)
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: is_gone(sidecar))
    finally:
        notebook.close()


def test_a_kernel_ends_with_its_host_also_while_it_starts():
    """ipykernel would go on for ever where somebody else than init takes orphans."""
    host = subprocess.Popen(["sleep", "1000"])
    argv = [sys.executable, "-c", "from kern_sandbox.jupyter import launch; launch('bash')"]
    kernel = subprocess.Popen(argv, env={**os.environ, "JPY_PARENT_PID": str(host.pid)}, stderr=subprocess.DEVNULL)
    time.sleep(0.02)  # in the middle of it, whatever that is
    assert kernel.poll() is None
    host.kill()
    host.wait()
    assert kernel.wait(WAIT_SECONDS) == 1
    late = subprocess.run(argv, env={**os.environ, "JPY_PARENT_PID": str(host.pid)}, capture_output=True, timeout=WAIT_SECONDS)
    assert (late.returncode, b"has ended" in late.stderr) == (1, True)


# -- the other languages


def test_bash_and_node(specs, tmp_path):
    book = Notebook("kern-bash", tmp_path)
    try:
        assert book.run("x=5; cd /tmp")[0]["status"] == "ok"
        reply, seen = book.run("echo $x $PWD; ls /nowhere 2>/dev/null")
        assert text_of(seen, "stdout") == "5 /tmp\n" and (reply["ename"], reply["evalue"]) == ("ExitStatus", "2")
        assert book.run("echo go; sleep 1000", book.interrupt_at("go"))[0]["ename"] == "KeyboardInterrupt"
        for code, status in {"ls": "complete", "if true": "incomplete", "echo '": "incomplete", "ls \\": "incomplete",
                             "cat <<E\na": "incomplete", "fi": "invalid"}.items():  # fmt: skip
            assert book.is_complete(code) == status, code
        assert text_of(book.run("echo $x")[1], "stdout") == "5\n"
    finally:
        book.close()
    if not os.path.isdir(os.path.join(specs, "share", "jupyter", "kernels", "kern-node")):
        return
    book = Notebook("kern-node", tmp_path)
    try:
        book.run("let x = 5")
        assert book.value("x + await 1") == "6"
        reply, seen = book.run("null.a")
        assert reply["ename"] == "TypeError" and [kind for kind, _ in seen] == ["error"]
        reply, seen = book.run("console.log('go'); while (true);", book.interrupt_at("go"))
        assert reply["ename"] == "KeyboardInterrupt" and text_of(seen, "stderr") == "" and book.value("x") == "5"
        book.run("const lines = require('readline/promises').createInterface(process.stdin)", answers=["unasked"])
        reply, seen = book.run("await lines.question('Name? ')", answers=["Ada"])
        assert seen[-1][1]["data"]["text/plain"] == "'Ada'"
        assert "allowInput" in book.run("await lines.question('Name? ')")[0]["evalue"]
        for code, status in {"1": "complete", "f(": "incomplete", "await f()": "complete", "let let": "invalid"}.items():  # fmt: skip
            assert book.is_complete(code) == status, code
    finally:
        book.close()


# -- what is confined, and the options


def test_the_notebook_directory_only_on_request_and_never_on_the_hosts_path(specs, tmp_path):
    """What a cell writes there must not run in the kernel's own process."""
    (tmp_path / "data.csv").write_text("1")
    book = Notebook("kern-python", tmp_path, KERN_JUPYTER_WORKSPACE="notebook", KERN_JUPYTER_MEMORY_MB="200")
    try:
        assert book.value("open('data.csv').read()") == "'1'"
        for name in ("kern_sandbox", "ipykernel", "nh3", "typing", "json", "sitecustomize"):
            book.run(f"open('{name}.py', 'w').write(\"raise SystemExit('stolen')\")")
        book.manager.restart_kernel(now=True)
        book.client.wait_for_ready(timeout=WAIT_SECONDS)
        assert book.value("sorted(__import__('os').listdir())[:2]") == "['data.csv', 'ipykernel.py']"
    finally:
        book.close()


def test_read_notebook_and_private(specs, tmp_path):
    (tmp_path / "data.csv").write_text("1")
    book = Notebook("kern-python", tmp_path, KERN_JUPYTER_WORKSPACE="read-notebook")
    try:
        assert book.value("open('/notebook/data.csv').read(), __import__('os').listdir()") == "('1', [])"
        assert book.run("open('/notebook/data.csv', 'w')")[0]["ename"] in ("OSError", "PermissionError")
        reply, _ = book.run("import socket; socket.create_connection(('127.0.0.1', 1), 1)")
        assert reply["status"] == "error"
    finally:
        book.close()


def test_wrong_options_are_errors_of_the_cell(specs, tmp_path):
    for env, reason, words in (
        ({"KERN_JUPYTER_MEMORY_MB": "much"}, "invalid_value", "KERN_JUPYTER_MEMORY_MB"),
        ({"KERN_JUPYTER_NETWROK": "0"}, "unknown_option", "KERN_JUPYTER_NETWORK"),
        ({"KERN_JUPYTER_NETWORK": "yes"}, "invalid_value", "0 or 1"),
    ):
        with pytest.raises(kern.SandboxError, match=words) as caught:
            Chosen(env)
        assert caught.value.reason == reason
    assert Chosen({"KERN_JUPYTER_NETWORK": "1"}).sandbox("/tmp").network and not Chosen({}).sandbox("/tmp").network
    book = Notebook("kern-python", tmp_path, HOME=str(tmp_path), KERN_JUPYTER_WORKSPACE="notebook")
    try:
        for _ in range(2):
            reply, _ = book.run("1")
            assert reply["ename"] == "SandboxError.mount_refused" and "home directory" in reply["evalue"]
    finally:
        book.close()


def test_installing_listing_removing(specs, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "share" / "jupyter"))

    def command(*args):
        code = main(args)
        return (code, *capsys.readouterr())

    place = str(tmp_path)
    made = command("install", "--prefix", place, "--language", "python", "--name", "mine", "--memory-mb", "99")
    assert made == (0, f"mine {tmp_path}/share/jupyter/kernels/mine\n", "")
    assert "KERN_JUPYTER_MEMORY_MB=99" in command("list")[1]
    for wrong, words in (
        (("--memory-mb", "x"), "KERN_JUPYTER_MEMORY_MB"),
        (("--memory-mb", "1"), "memory_mb"),
        (("--name", "x"), "--name"),
        (("--workspace", "all"), "private or notebook or read-notebook"),
    ):
        code, _, said = command("install", "--prefix", place, *wrong)
        assert code == 1 and words in said, wrong
    assert command("remove", "python3")[0] == 1
    assert command("remove", "mine")[0] == 0
    assert command("list") == (0, "", "")


HOSTILE = [
    ("<b onclick=x() class=jp-x style='position:fixed;color:red' data-commandlinker-command=x>t</b>", '<b style="color:red">t</b>'),
    ("<script>x()</script>t<style>t{}</style>", "t"),
    ("<img src=x onerror=y>t", "<img>t"),
    ("<img src=https://e.example/?data>t", "<img>t"),
    (f"<img src='data:image/png;base64,{PIXEL}'>", f'<img src="data:image/png;base64,{PIXEL}">'),
    ("<img src='data:text/html,<script>x()</script>'>t", "<img>t"),
    ("<iframe src=x></iframe><object data=x></object><embed src=x><base href=x><meta http-equiv=refresh content=0>t", "t"),
    ("<form action=x><input><button>t</button></form>", "t"),
    ("<p style='background:url(https://e.example/x);width:1px'>t</p>", '<p style="width:1px">t</p>'),
    ("<a href='JavaScript:x'>t</a>", '<a rel="noopener noreferrer">t</a>'),
    ("<a href='/lab/x'>t</a>", '<a rel="noopener noreferrer">t</a>'),
    ("<a href='command:x'>t</a>", '<a rel="noopener noreferrer">t</a>'),
    ("<table background=https://e.example/x><tr><td>t", "<table><tbody><tr><td>t</td></tr></tbody></table>"),
    ("<script>x()</script>", None),
    ("<div><img src=x></div>", None),
]


@pytest.mark.parametrize("given, cleaned", HOSTILE)
def test_html_cannot_act_in_the_page(given, cleaned):
    assert clean_html(given) == cleaned


def test_what_of_a_display_is_shown():
    script = {"text/plain": "<p>", "application/javascript": "x()", "application/vnd.plotly.v1+json": "{}"}
    data, metadata = shown(script, {"text/plain": {"isolated": True}}, "safe")
    assert set(data) == {"text/plain", "text/html"} and metadata == {}
    assert "withheld" in data["text/html"] and "&lt;p&gt;" in data["text/html"]
    data, _ = shown(script, {}, "all")
    assert data == {**script, "application/vnd.plotly.v1+json": {}}
    for bad in ("{", "[1e999]", "NaN", '"\\ud800"', "[" * 100000):
        assert shown({"text/plain": "x", "application/json": bad}, {}, "safe")[0] == {"text/plain": "x"}
    sizes = {"image/png": {"width": 3, "height": "x", "onload": "y"}}
    assert shown({"image/png": PIXEL}, sizes, "safe") == ({"image/png": PIXEL}, {"image/png": {"width": 3}})
    data, _ = shown({"image/svg+xml": "<svg onload='x()'/>"}, {}, "safe")
    assert base64.b64decode(data["text/html"].split("base64,")[1].split('"')[0]) == b"<svg onload='x()'/>"


def test_stderr_that_may_be_the_error():
    class Result:
        error = kern.CodeError("E", "m", "run", traceback="Traceback (most recent call last):\nE: m\n")

    said = []
    for pieces, wanted in (
        (["a\nTraceback (most recent", " call last):\nE: m\n"], "a\nTraceback (most recent call last):\nE: m\n"),
        (["a\n", "Traceback (most recent call last):\n", "E: m\n"], "a\n"),
        (["Traceback (most recent call last):\nX: y\n", "Traceback (most recent call last):\nE: m\n"],
         "Traceback (most recent call last):\nX: y\n"),
    ):  # fmt: skip
        said.clear()
        held = _errors.HeldStderr(said.append)
        for piece in pieces:
            held.write(piece)
        held.end(Result)
        assert "".join(said) == wanted

"""allowInput and run/inputWanted: a cell asks, the client answers, or does not."""

from expect import refused
from test_kernels import FORGED, Kernel, ok, kernel  # noqa: F401  (a fixture)


def wanted(client):
    return [n["params"] for n in client.notifications if n["method"] == "run/inputWanted"]


class Asking:
    """A cell that may ask."""

    def __init__(self, kernel, code, **params):
        self.client, self.seen = kernel.client, len(wanted(kernel.client))
        self.future = kernel.start(code, allowInput=True, runId="ask", **params)

    def prompt(self):
        self.client.wait_for(lambda: len(wanted(self.client)) > self.seen, "a question")
        found = wanted(self.client)[self.seen]
        self.seen += 1
        assert found.pop("runId") == "ask"
        return found

    def answer(self, text="", **more):
        assert self.client.call("run/stdin", {"runId": "ask", "text": text, **more}) == {}

    def result(self):
        return self.future.result()


def test_questions_and_answers(kernel):  # noqa: F811
    code = "import getpass, sys\nprint('a')\nx = input('Your name? ')\ny = getpass.getpass('Word: ')\nz = sys.stdin.readline()\nx, y, z, input()"
    cell = Asking(kernel, code, stream="live")
    assert cell.prompt() == {"prompt": "Your name? ", "password": False}
    assert [e["text"] for e in kernel.client.output_events(cell.future)] == ["a\n"]  # it came before the question
    cell.answer("Ada\n")
    assert cell.prompt() == {"prompt": "Word: ", "password": True}
    cell.answer("geh")
    cell.answer("eim\nthe rest")
    cell.answer(" of it\n")
    assert cell.prompt() == {"prompt": "", "password": False}
    cell.answer("ü\nnot read\n")
    result = cell.result()
    assert result["results"][0]["data"]["text/plain"] == "('Ada', 'geheim', 'the rest of it\\n', 'ü')"
    assert (result["stdout"], result["stderr"], result["cellStatus"]) == ("a\n", "", "ok")
    refused(kernel.client.fail("run/stdin", {"runId": "ask", "text": "late\n"}), "gone", "/runId")
    result = kernel.run("input('x')")  # what was not read is gone with its cell
    assert (result["error"]["name"], result["stdout"]) == ("EOFError", "")
    assert "allowInput" in result["error"]["message"]
    assert kernel.run("getpass.getpass()")["error"]["name"] == "EOFError"
    assert kernel.value("sys.stdin.read()") == "''"


def test_an_answer_before_the_question_and_the_end_of_input(kernel):  # noqa: F811
    kernel.start("import time; time.sleep(0.2)")
    cell = Asking(kernel, "[input(), input()]\ninput('third')")
    cell.answer("one\ntwo\n", eof=True)  # it waits in the queue, and then in the pipe
    refused(kernel.client.fail("run/stdin", {"runId": "ask", "text": "more"}), "invalid_request", "/runId")
    result = cell.result()
    assert (result["error"]["name"], result["error"]["message"]) == ("EOFError", "EOF when reading a line")
    assert result["stateKept"]
    assert [cell.prompt()["prompt"] for _ in range(3)] == ["", "", "third"]


def test_no_answer(kernel):  # noqa: F811
    kernel.run("x = 1")
    cell = Asking(kernel, "input('?')", timeoutMs=300)
    cell.prompt()
    result = cell.result()
    assert (result["fault"]["type"], result["cellStatus"], result["error"]["name"]) == ("timeout", "interrupted", "KeyboardInterrupt")
    cell = Asking(kernel, "input('?')")
    cell.prompt()
    kernel.client.cancel(cell.future)
    assert (cell.result()["fault"]["type"], cell.result()["cellStatus"]) == ("cancelled", "interrupted")
    cell = Asking(kernel, "input('?')")
    cell.prompt()
    assert kernel.client.call("kernel/interrupt", {"kernelId": kernel.id}) == {"running": True}
    assert cell.result()["cellStatus"] == "interrupted"
    assert kernel.value("x") == "1"
    cell = Asking(kernel, "input('?')")
    cell.prompt()
    kernel.client.call("kernel/close", {"kernelId": kernel.id})
    assert cell.result()["cellStatus"] == "dead"


def test_own_stdin_children_and_closed_ones(kernel):  # noqa: F811
    ok(kernel.run("import io, sys; sys.stdin = io.StringIO('mine\\n'); print(input())"), "mine\n")
    kernel.run("sys.stdin = sys.__stdin__")
    cell = Asking(kernel, "import os, subprocess\nprint(subprocess.run(['head', '-n1'], stdout=-1).stdout)\nos.close(0)")
    cell.answer("to the child\n")
    ok(cell.result(), "b'to the child\\n'\n")
    cell = Asking(kernel, "print(input())")
    cell.answer("again\n")
    ok(cell.result(), "again\n")


FLOOD = """
import sys
channel = sys.modules['_kern_runner'].channel
for i in range(3000):
    channel.id += 1
    os.write(3, frame(6, channel.call, channel.id, [(b'input', b'\\xff' * 9000)]))
input('x')
"""


def test_refused_and_forged(kernel):  # noqa: F811
    client = kernel.client
    for language in ("bash", "node"):
        if any(item["name"] == language and item["kernel"] for item in client.welcome["capabilities"]["languages"]):
            other = Kernel(client, language=language, session=kernel.session)
            refused(other.fail("1", allowInput=True), "unsupported_option", "/allowInput")
    future = kernel.start("import time; time.sleep(0.5)", runId="deaf")
    refused(client.fail("run/stdin", {"runId": "deaf", "text": "x"}), "invalid_value", "/runId")
    future.result()
    cell = Asking(kernel, FORGED + FLOOD)
    cell.answer("y\n")
    assert cell.result()["cellStatus"] == "ok"
    assert len(cell.prompt()["prompt"]) == 4096
    result = kernel.run(FORGED + "os.write(3, frame(6, 3, 9000, [(b'input', b'x')]))\nimport time; time.sleep(10)")
    assert (result["cellStatus"], result["resultChannel"]) == ("dead", "corrupt")


def test_more_displays_than_there_may_be(kernel):  # noqa: F811
    result = kernel.run("for i in range(1500): display(i)")
    assert (result["cellStatus"], result["resultChannel"]) == ("ok", "limit")
    ok(kernel.run("print(1)"), "1\n")

"""allowInput and run/inputWanted: a cell asks, the client answers, or does not."""

import pytest

from expect import refused
from test_kernels import FORGED, Kernel, ok, kernel  # noqa: F401  (a fixture)
from test_kernels_node import kernel as node  # noqa: F401  (a fixture)

pytestmark = pytest.mark.any_user


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


def no_answer(kernel, code, deadline=True):
    """Deadline, cancel and interrupt keep the state."""
    if deadline:
        cell = Asking(kernel, code, timeoutMs=300)
        cell.prompt()
        result = cell.result()
        assert (result["fault"]["type"], result["cellStatus"]) == ("timeout", "interrupted"), code
        assert result["stdout"] == "" and result["error"]["name"] in ("KeyboardInterrupt", "Interrupted"), code
    cell = Asking(kernel, code)
    cell.prompt()
    kernel.client.cancel(cell.future)
    assert (cell.result()["fault"]["type"], cell.result()["cellStatus"]) == ("cancelled", "interrupted"), code
    cell = Asking(kernel, code)
    cell.prompt()
    assert kernel.client.call("kernel/interrupt", {"kernelId": kernel.id}) == {"running": True}
    assert cell.result()["cellStatus"] == "interrupted", code
    assert kernel.value("x") == "1"


def closed(kernel, code):
    cell = Asking(kernel, code)
    cell.prompt()
    kernel.client.call("kernel/close", {"kernelId": kernel.id})
    assert cell.result()["cellStatus"] == "dead"


def test_no_answer(kernel):  # noqa: F811
    kernel.run("x = 1")
    no_answer(kernel, "input('?')")
    closed(kernel, "input('?')")


def test_own_stdin_children_and_closed_ones(kernel):  # noqa: F811
    ok(kernel.run("import io, sys; sys.stdin = io.StringIO('mine\\n'); print(input())"), "mine\n")
    kernel.run("sys.stdin = sys.__stdin__")
    cell = Asking(kernel, "import os, subprocess\nprint(subprocess.run(['head', '-n1'], stdout=-1).stdout)\nos.close(0)")
    cell.answer("to the child\n")
    ok(cell.result(), "b'to the child\\n'\n")
    for _ in range(2):
        cell = Asking(kernel, "print(input())")
        cell.answer("again\n")
        ok(cell.result(), "again\n")
        kernel.run("os.closerange(0, 3)")


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
    for language in ("bash", "sh"):
        other = Kernel(client, language=language, session=kernel.session)
        refused(other.fail("true", allowInput=True), "unsupported_option", "/allowInput")
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


# ---- node

LINES = """
const fs = require('fs'), rl = require('readline'), rlp = require('readline/promises'), { promisify } = require('util'), x = 1
let lines, plain
const open = () => { lines = rlp.createInterface({ input: process.stdin, output: process.stdout }) }
const openPlain = () => { plain = rl.createInterface({ input: process.stdin, output: process.stdout }) }
"""


def asked(kernel, code, *exchange, **params):
    """exchange: prompt, answer, prompt, answer... An answer of None ends the input."""
    cell = Asking(kernel, code, **params)
    for prompt, answer in zip(exchange[::2], exchange[1::2]):
        assert cell.prompt() == {"prompt": prompt, "password": False}
        cell.answer(answer or "", eof=answer is None)
    return cell.result()


def test_node_asks(node):  # noqa: F811
    node.run(LINES)
    code = "open(); console.log('a'); const n = await lines.question('Your name? '); [n, await lines.question(''), await lines.question('ü? ')]"
    result = asked(node, code, "Your name? ", "Ada\n", "", "two\n", "ü? ", "thrée\nnot read\n")
    assert (result["stdout"], result["stderr"]) == ("a\n", "")
    assert result["results"][0]["data"]["text/plain"] == "[ 'Ada', 'two', 'thrée' ]"
    ok(asked(node, "console.log(await lines.question('again '))", "again ", "same interface\n"), "same interface\n")
    nested = "openPlain(); plain.question('one ', (a) => { console.log(a); plain.question('two ', (b) => { console.log(b) }) })"
    ok(asked(node, nested, "one ", "1\n", "two ", "2\n"), "1\n2\n")  # a cell waits for its questions
    ok(asked(node, "console.log(await promisify(plain.question).call(plain, 'p '))", "p ", "3\n"), "3\n")
    loop = "plain.setPrompt('$ '); plain.on('line', (l) => { console.log(l); l ? plain.prompt() : plain.close() }); plain.prompt()\nawait new Promise((r) => plain.on('close', r))"
    ok(asked(node, loop, "$ ", "a\n", "$ ", "\n"), "a\n\n")
    sync = "const b = Buffer.alloc(9); console.log(b.toString('utf8', 0, fs.readSync(0, b, 0, 9)) + fs.readFileSync(0, 'utf8'))"
    ok(asked(node, sync, "", "123456789a\n", "", None), "123456789a\n\n")
    imported = "import { createInterface } from 'node:readline/promises'\nimport { readSync } from 'node:fs'\n"
    imported += "const i = createInterface(process.stdin); const w = await i.question('w '); i.close(); console.log(w, readSync(0, Buffer.alloc(9)))"
    ok(asked(node, imported, "w ", "b\n", "", "cd\n"), "b 3\n")
    signal = "openPlain(); const end = AbortSignal.timeout(20); await new Promise((r) => { end.onabort = r; plain.question('s ', { signal: end }, console.log) })\n"
    ok(asked(node, signal + "console.log(await promisify(plain.question).call(plain, 't '))", "s ", "", "t ", "T\n"), "T\n")
    result = asked(node, "plain.question('bad ', () => { null.x })", "bad ", "1\n")
    assert (result["error"]["name"], result["cellStatus"]) == ("TypeError", "ok")  # as any callback that throws
    result = asked(node, "plain.question('exit ', () => process.exit(7))", "exit ", "1\n")
    assert (result["exitCode"], result["stateKept"]) == (7, True)
    ok(asked(node, "plain.question('good ', console.log)", "good ", "2\n"), "2\n")


def test_node_reads_as_ever(node):  # noqa: F811
    node.run(LINES)

    def fed(code, stdout):
        node.start("while (!fs.existsSync('given')) await new Promise((r) => setTimeout(r, 2)); fs.unlinkSync('given')")
        cell = Asking(node, code)
        cell.answer("one\ntwö\n", eof=True)  # before it begins
        node.client.call("file/write", {"sessionId": node.session, "path": "given", "content": ""})
        ok(cell.result(), stdout)
        return cell

    def wait(ms=50):
        return f"await new Promise((r) => setTimeout(r, {ms}));"

    assert len(wanted(fed("open(); console.log(await lines.question('a') + await lines.question('b'))", "onetwö\n").client)) == 2
    node.run("lines.close()")
    fed(wait() + "let s = ''; process.stdin.setEncoding('utf8').on('data', (d) => { s += d }); await new Promise((r) => process.stdin.on('end', r)); console.log(s)", "one\ntwö\n\n")
    fed("open(); const all = []; for await (const line of lines) all.push(line)\nconsole.log(all.join())", "one,twö\n")
    fed(wait() + "console.log(fs.readFileSync('/dev/stdin', 'latin1').length)", "9\n")
    fed("console.log(require('child_process').execSync('head -n1', { stdio: ['inherit', 'pipe', 'inherit'] }).toString())", "one\n\n")
    fed("fs.closeSync(0); console.log(process.stdin.fd)", "0\n")
    fed("console.log(fs.readSync(0, Buffer.alloc(4)))", "4\n")
    assert len(wanted(node.client)) == 2  # these were not asked for
    fed("process.stdin.destroy(); console.log(1)", "1\n")
    fed("for await (const piece of process.stdin) break\nconsole.log(2)", "2\n")
    fed("process.stdin.once('data', () => {}); await 0; console.log(3)", "3\n")
    fed("open(); lines.pause(); console.log(4)", "4\n")
    fed("console.log(process.stdin.fd, (await process.stdin.toArray()).join(''))", "0 one\ntwö\n\n")
    node.start(wait(200))
    large = Asking(node, "let n = 0; for await (const piece of process.stdin) n += piece.length\nconsole.log(n)")
    large.answer("x" * 1_000_000 + "\n", eof=True)
    ok(large.result(), "1000001\n")


def test_node_gets_no_answer(node):  # noqa: F811
    node.run(LINES + "open(); openPlain(); lines.close(); plain.close()")
    for code in (
        "open(); await lines.question('?')",
        "openPlain(); plain.question('?', console.log)",
        "fs.readSync(0, Buffer.alloc(9))",
        "try { fs.readFileSync(0) } catch {}\nwhile (true);",
        "await null; try { fs.readSync(0, Buffer.alloc(9)) } catch {}\nawait new Promise(() => {})",
    ):
        no_answer(node, code, deadline="plain" in code)  # one is enough: it interrupts as a cancel does
    ok(asked(node, "plain.question('! ', console.log)", "! ", "1\n"), "1\n")  # not to the question before
    result = asked(node, "await lines.question('! ')", "! ", None)
    assert result["error"]["message"] == "the input ended before the question was answered"
    assert result["error"]["frames"][0]["file"] == f"[cell {result['executionCount']}]"
    assert (result["cellStatus"], result["stateKept"]) == ("error", True)
    for code in ("await lines.question('?')", "plain.question('?', console.log)", "await promisify(plain.question).call(plain, '?')"):
        result = node.run("open(); openPlain(); " + code)
        assert result["cellStatus"] == "error" and "allowInput" in result["error"]["message"], code
    ok(node.run("open(); let n = 0; for await (const line of lines) n++\nconsole.log(n, fs.readSync(0, Buffer.alloc(1)), fs.readFileSync(0, 'utf8') === '')"), "0 0 true\n")
    late = Asking(node, "open(); for await (const line of lines);\nopen(); await lines.question('late')")
    late.answer(eof=True)
    assert late.result()["error"]["message"] == "the input ended before the question was answered"
    result = asked(node, "var former = lines; open(); lines.question('a ')\nprocess.stdin.destroy()")
    assert result["stateKept"]
    result = asked(node, "former.resume(); lines.resume(); await lines.question('b')")
    assert "has ended with its cell" in result["error"]["message"]
    closed(node, "open(); await lines.question('?')")


NODE_STATE = """
const state = (call, text) => {
	const head = Buffer.alloc(24), part = Buffer.concat([Buffer.from([text.length, 0, 0, 0, 0, 0]), Buffer.from(text)])
	head.write('KRN1'); head[4] = 1; head[5] = 6; head.writeUInt32LE(call, 8); head.writeUInt32LE(1, 12); head.writeUInt32LE(part.length, 16)
	require('fs').writeSync(250, Buffer.concat([head, part]))
}
"""


def test_node_forges_questions(node):  # noqa: F811
    node.run(NODE_STATE)
    ok(node.run("state(2, 'input\\0'); state(1, 'input\\0')"))  # no stdin: kern-cells keeps it
    assert wanted(node.client) == []
    cell = Asking(node, "state(2, 'input\\0'); state(9, 'input\\0'); state(3, 'inp'); state(3, 'done\\0'); state(3, 'input\\0')\n"
                        "const r = require('readline').createInterface(process.stdin); r.question('q'.repeat(5000), console.log)")
    cell.answer("y\n")
    ok(cell.result(), "y\n")
    assert [n["prompt"] for n in wanted(node.client)] == ["", "q" * 4096]

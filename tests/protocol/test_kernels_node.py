"""Kernels of node: what cells share, their values and errors, interrupts, deaths, and what a hostile cell can say."""

import os
import time

import pytest

from expect import refused
from test_kernels import Kernel, ok

pytestmark = pytest.mark.any_user


@pytest.fixture
def kernel(client):
    if not any(os.access(f"{directory}/node", os.X_OK) for directory in ("/usr/bin", "/usr/local/bin")):
        pytest.skip("no node in /usr")
    (node,) = [language for language in client.welcome["capabilities"]["languages"] if language["name"] == "node"]
    if not node["kernel"]:
        pytest.skip("npm could not bring the parser when this was built")
    return Kernel(client, language="node")


# ---- state


def test_declarations_are_kept_and_may_come_again(kernel):
    cell = "const x = 20; let y = 2\nvar { a, b: [c] } = { a: 1, b: [2] }\nclass A { m() { return 3 } }\nfunction f() { return x }"
    ok(kernel.run(cell))
    ok(kernel.run(cell))
    assert kernel.value("x * y + new A().m() + f() + a + c") == "66"
    assert kernel.value("_ + 1") == "67"


def test_await_and_import(kernel):
    ok(kernel.run("import fs, { readFileSync as read } from 'node:fs'\nimport * as os from 'node:os'\nimport 'node:path'"))
    ok(kernel.run("const { a, b } = await Promise.resolve({ a: 1, b: 2 })\nlet q, [r] = [3]\nfunction g() { return a }\nclass B {}"))
    assert kernel.value("[typeof fs.readFileSync, typeof read, typeof os.cpus, g(), b, q, r, typeof B]") == (
        "[\n  'function', 'function',\n  'function', 1,\n  2,          undefined,\n  3,          'function'\n]"
    )
    assert kernel.value("const x = await Promise.resolve(2)\nx") == "2"
    assert kernel.value("for await (const v of [1, 2]) console.log(v)\n'end'") == "'end'"
    ok(kernel.run("console.log(typeof require('fs').readFileSync, typeof (await import('node:os')).cpus)"), "function function\n")


def test_values(kernel):
    for code in ("const x = 1", "5; const y = 2", "undefined", "if (true) 6", "function f() {}", "class A {}", "", "console.log()"):
        assert kernel.run(code)["results"] == [], code
    assert kernel.value("Promise.resolve(7)") == "7"
    assert kernel.value("const o = { a: 1 };\no.a === 1 ? 'yes' : 'no';") == "'yes'"
    assert kernel.value("await 0;\n1, 2") == "2"


def test_counts(kernel):
    assert [kernel.run(code)["executionCount"] for code in ("1", "null.x", "2")] == [1, 2, 3]


def test_an_error_keeps_the_state(kernel):
    kernel.run("const x = 1\nfunction f() {\n  return null.x\n}")
    result = kernel.run("\nf()")
    assert (result["cellStatus"], result["exitCode"], result["stateKept"]) == ("error", 1, True)
    error = result["error"]
    frames = [(frame["file"], frame["line"], frame["function"], frame["source"]) for frame in error["frames"]]
    assert frames == [("[cell 2]", 2, "", "f()"), ("[cell 1]", 3, "f", "  return null.x")]
    assert "kernel.cjs" not in result["stderr"] + error["traceback"] and "[cell 1]:3" in result["stderr"]
    assert kernel.value("x") == "1"
    later = kernel.run("const n = await null;\n  n.x")["error"]["frames"][-1]
    assert (later["file"], later["line"], later["column"]) == ("[cell 4]", 2, 5)


def test_a_syntax_error_runs_nothing(kernel):
    for code in ("console.log('no')\nlet x = ;", "console.log('no'); await 0\nlet x = ;"):
        result = kernel.run(code)
        assert (result["stdout"], result["cellStatus"], result["error"]["phase"]) == ("", "error", "compile")
        assert (result["error"]["name"], result["error"]["frames"][0]["line"]) == ("SyntaxError", 2)


def test_what_is_thrown(kernel):
    result = kernel.run("throw 'hi'")
    assert (result["error"]["name"], result["error"]["message"], result["stderr"]) == ("Error", "hi", "Uncaught 'hi'\n")
    assert kernel.run("throw { toString() { throw 1 } }")["cellStatus"] == "error"


def test_rejections_and_callbacks_that_throw_are_reported(kernel):
    result = kernel.run("Promise.reject(new TypeError('r')); 5")
    assert (result["error"]["name"], result["error"]["phase"], len(result["results"])) == ("TypeError", "unhandled_rejection", 1)
    result = kernel.run("setTimeout(() => { throw new RangeError('t') }, 1); await new Promise((f) => setTimeout(f, 50))")
    assert (result["error"]["name"], result["cellStatus"]) == ("RangeError", "ok")
    assert kernel.value("1") == "1"


@pytest.mark.parametrize("code, status", [("process.exit(3)", 3), ("process.exit()", 0), ("await 0; process.exit(300)", 44),
                                          ("setTimeout(() => process.exit(5)); await new Promise(() => {})", 5),
                                          ("try { process.exit(6) } catch {}", 6)])
def test_exit_is_reported_and_survived(kernel, code, status):
    kernel.run("const x = 1")
    result = kernel.run(code)
    assert (result["exitCode"], result["cellStatus"], result["stateKept"]) == (status, "ok", True)
    assert [note["code"] for note in result["runtimeNotes"]] == ["exit_in_cell"]
    assert kernel.value("x") == "1"


# ---- output


def test_output_and_order(kernel):
    result = kernel.run("for (let i = 0; i < 3; i++) { console.log(i); display(i); }\nconsole.error('e');")
    ok({**result}, "0\n1\n2\n", "e\n")
    assert [entry["at"]["stdout"] for entry in result["results"]] == [2, 4, 6]


def test_large_output(kernel):
    result = kernel.run("process.stdout.write('y'.repeat(3000000));")
    assert (result["stdoutBytes"], result["cellStatus"]) == (3000000, "ok")
    result = kernel.run("display('x'.repeat(300000)); display(Buffer.alloc(10));")
    assert (len(result["results"]), result["resultChannel"]) == (2, "ok")


def test_children(kernel):
    code = "require('child_process').execSync('echo out; echo err >&2', { stdio: 'inherit' });\nconsole.log('after')"
    ok(kernel.run(code), "out\nafter\n", "err\n")


def test_late_output_belongs_to_no_cell(kernel):
    kernel.run("const child = require('child_process').spawn('sh', ['-c', 'read x; echo late'], { stdio: ['pipe', 'inherit', 'inherit'] });")
    ok(kernel.run("child.stdin.end('go\\n'); await new Promise((f) => child.on('exit', f)); console.log('second')"), "second\n")
    kernel.client.wait_for(lambda: kernel.between() == "late\n", "the late output")
    ok(kernel.run("setTimeout(() => console.log('timer'), 50);"))
    kernel.client.wait_for(lambda: kernel.between() == "late\ntimer\n", "the timer's output")


# ---- interrupts


LOOPS = {
    "busy": "while (true);",
    "deaf": "for (;;) { try { while (true); } catch {} }",
    "regex": "/(a*)*$/.test('a'.repeat(40) + 'b')",
    "wait": "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)",
    "await": "await new Promise(() => {})",
    "promise": "new Promise(() => {})",
    "child": "require('child_process').execSync('sleep 60')",
    "inspect": "({ get [Symbol.toStringTag]() { while (true); } })",
    "display": "({ async [Symbol.for('Jupyter.display')]() { await new Promise(() => {}) } })",
}


@pytest.mark.parametrize("code", LOOPS.values(), ids=LOOPS)
def test_deadline_interrupts(kernel, code):
    kernel.run("const x = 1")
    result = kernel.run(code, timeoutMs=300)
    assert (result["fault"]["type"], result["cellStatus"], result["stateKept"]) == ("timeout", "interrupted", True)
    assert (result["error"]["name"], result["stderr"]) == ("Interrupted", "Interrupted: the cell was interrupted\n")
    assert kernel.value("x") == "1"


def test_a_loop_behind_an_await_is_killed(kernel):
    result = kernel.run("console.log('kept'); display(1); await 0; while (true);", timeoutMs=200)
    assert (result["fault"]["type"], result["cellStatus"], result["stateKept"]) == ("timeout", "dead", False)
    assert (result["stdout"], len(result["results"])) == ("kept\n", 1)
    refused(kernel.fail("1"), "kernel_dead", "/kernelId")
    assert kernel.client.call("kernel/restart", {"kernelId": kernel.id}) == {}
    assert kernel.value("typeof x") == "'undefined'"


def test_listeners_of_an_earlier_cell_are_no_shield(kernel):
    kernel.run("process.removeAllListeners('SIGINT'); process.on('SIGINT', () => {});")
    assert kernel.run("await new Promise(() => {})", timeoutMs=200)["cellStatus"] == "interrupted"


def test_interrupts_never_hit_a_later_cell(kernel):
    for _ in range(50):
        future = kernel.start("1")
        kernel.client.call("kernel/interrupt", {"kernelId": kernel.id})
        future.result()
        ok({**kernel.run("console.log('fine')")}, "fine\n")


def test_signals(kernel):
    kernel.run("const x = 1, { spawn, spawnSync } = require('child_process'), fs = require('fs'), old = spawn('sleep', ['60'])")
    time.sleep(0.05)
    child = "spawnSync('sh', ['-c', 'echo on; exec sleep 60'], { stdio: 'inherit' }).signal"
    for name in ("TERM", "USR2"):  # to what the cell has started, and to node if the code wants it
        code = f"let seen = 0; process.once('SIG{name}', () => seen++); console.log({child}); await new Promise((r) => setTimeout(r, 50)); console.log(seen)"
        ok(kernel.signalled(name, code), f"on\nSIG{name}\n1\n")
    code = "console.log('on'); while (!fs.existsSync('go')); console.log(x, old.exitCode, old.signalCode)"
    ok(kernel.signalled("TERM", code, ["touch", "go"]), "on\n1 null null\n")
    result = kernel.signalled("INT", child)
    assert (result["cellStatus"], result["stateKept"]) == ("interrupted", True)
    result = kernel.signalled("HUP", child)
    assert (result["cellStatus"], result["exitCode"]) == ("dead", 129)


def test_interrupt(kernel):
    future = kernel.start("console.log('on'); while (true);", stream="live")
    kernel.client.wait_for(lambda: kernel.client.output_events(future), "the cell to run")
    assert kernel.client.call("kernel/interrupt", {"kernelId": kernel.id}) == {"running": True}
    result = future.result()
    assert (result["cellStatus"], result["stdout"]) == ("interrupted", "on\n") and "fault" not in result


# ---- deaths and forgeries


DEATHS = {
    "exit": ("process.reallyExit(7)", None, 7),
    "killed itself": ("process.kill(process.pid, 9); while (true);", None, 137),
    "escape": ("require('child_process').execSync('unshare -U true')", "escape_blocked", None),
}


@pytest.mark.parametrize("code, fault, status", DEATHS.values(), ids=DEATHS)
def test_death(kernel, code, fault, status):
    result = kernel.run("console.log('last words'); display('shown')\n" + code)
    assert result.get("fault", {}).get("type") == fault
    assert result["stdout"] == "last words\n" and len(result["results"]) == 1
    if status is None:  # a child's escape is a fact, and leaves the kernel
        assert kernel.value("1") == "1"
        return
    assert (result["cellStatus"], result["stateKept"], result["exitCode"]) == ("dead", False, status)
    refused(kernel.fail("1"), "kernel_dead", "/kernelId")


FORGED = """
function frame(type, call, id, parts) {
  const body = Buffer.concat(parts.map(([k, v]) => { const h = Buffer.alloc(6); h.writeUInt16LE(k.length + 1); h.writeUInt32LE(v.length, 2);
    return Buffer.concat([h, Buffer.from(k + '\\0' + v)]) }))
  const h = Buffer.alloc(24); h.write('KRN1'); h[4] = 1; h[5] = type; h.writeUInt32LE(call, 8); h.writeUInt32LE(id, 12); h.writeUInt32LE(body.length, 16)
  return Buffer.concat([h, body])
}
"""


def test_a_forged_state_frame_goes_nowhere(kernel):
    code = FORGED + "require('fs').writeSync(250, frame(6, 1, 1000, [['done', ''], ['status', 'ok']]));\nconsole.log('mine')"
    ok(kernel.run(code), "mine\n")
    ok(kernel.run("console.log('next')"), "next\n")


@pytest.mark.parametrize("bytes_", ["frame(8, 1, 1000, [])", "frame(7, 1, 1000, [])", "'garbage'", "'KRN1'.padEnd(40, 'x')"])
def test_forged_frames_end_the_kernel_and_nothing_else(kernel, bytes_):
    other = Kernel(kernel.client, language="node", session=kernel.session)
    result = kernel.run(FORGED + f"require('fs').writeSync(250, {bytes_}); await new Promise((f) => setTimeout(f, 10000))")
    assert (result["cellStatus"], result["stateKept"], result["resultChannel"]) == ("dead", False, "corrupt")
    ok(other.run("console.log('fine')"), "fine\n")


@pytest.mark.parametrize("word", ["done N ok", "done N ok 3\\n\\n\\nbegin N\\ndone", "done ok", "begin", "pause", "x".ljust(5000, "y"), "ready"])
def test_forged_words_end_their_own_cell_at_most(kernel, word):
    result = kernel.run(f"require('fs').writeSync(251, '{word}\\n'.replaceAll('N', 1));")  # it is the first cell
    assert result["cellStatus"] in ("ok", "error", "dead")
    if word == "ready":  # a second one makes no sense
        return
    if "N" in word:
        ok(kernel.run("console.log('next')"), "next\n")
    else:
        assert kernel.run("console.log('next')")["cellStatus"] in ("ok", "error")


def test_what_is_shown_behind_a_forged_end(kernel):
    """It is acknowledged, so no cell waits for that until its deadline, and the true end of a cell is no later one's."""
    for n in range(1, 20, 3):
        kernel.run(f"require('fs').writeSync(251, 'done {n} ok\\n'); display('a'); display('b'); 'c'")
        ok(kernel.run("console.log(1)"), "1\n")
        ok(kernel.run("console.log(2)"), "2\n")


def test_a_closed_channel_costs_the_results(kernel):
    ok(kernel.run("require('fs').closeSync(250); console.log('on')"), "on\n")
    assert kernel.run("5")["results"] == []


def test_many_cells(kernel):
    for n in range(200):
        assert kernel.run(f"const n = {n}; n")["executionCount"] == n + 1
    assert int(kernel.value("require('fs').readdirSync('/proc/self/fd').length")) < 40

"""kernel/*: one interpreter, cell after cell; what it keeps, how it is interrupted, how it dies."""

import time

import pytest

from expect import refused


@pytest.fixture
def kernel(client):
    """kernel.run(code) -> result; kernel.id, kernel.client, kernel.session."""
    return Kernel(client)


class Kernel:
    def __init__(self, client, language="python", session=None, **params):
        self.client = client
        self.session = session or client.open()
        self.params = {"sessionId": self.session, "language": language, **params}
        self.id = client.call("kernel/open", self.params)["kernelId"]

    def start(self, code, **params):
        return self.client.send("kernel/run", {"kernelId": self.id, "code": code, **params})

    def run(self, code, **params):
        return self.client.call("kernel/run", {"kernelId": self.id, "code": code, **params})

    def fail(self, code, **params):
        return self.client.fail("kernel/run", {"kernelId": self.id, "code": code, **params})

    def value(self, code, **params):
        (result,) = self.run(code, **params)["results"]
        return result["data"]["text/plain"]

    def states(self):
        found = [n["params"] for n in self.client.notifications if n["method"] == "kernel/state"]
        return [n["state"] for n in found if n["kernelId"] == self.id]

    def between(self):
        """What no cell has printed."""
        found = [n["params"] for n in self.client.notifications if n["method"] == "kernel/output"]
        return "".join(n.get("text", "") for n in found if n["kernelId"] == self.id)


    def signalled(self, name, code, then=()):
        """`code` prints on when the signal `name` may come; `then` is a program that runs behind it."""
        future = self.start(code, stream="live", runId="signalled")
        self.client.wait_for(lambda: self.client.output_events(future), "the cell to run")
        self.client.call("run/signal", {"runId": "signalled", "signal": name})
        if then:
            self.client.call("run/argv", {"sessionId": self.session, "argv": list(then)})
        return future.result()


def ok(result, stdout="", stderr=""):
    assert (result["stdout"], result["stderr"], result["exitCode"]) == (stdout, stderr, 0), result
    assert (result["cellStatus"], result["stateKept"], result["resultChannel"]) == ("ok", True, "ok")
    assert "fault" not in result and "error" not in result


# ---- state


def test_state_is_kept(kernel):
    ok(kernel.run("x = 20\ndef twice(n): return 2 * n"))
    assert kernel.value("twice(x) + 2") == "42"
    ok(kernel.run("print(x)"), "20\n")
    assert kernel.value("__name__") == "'__main__'"


def test_counts(kernel):
    assert [kernel.run(code)["executionCount"] for code in ("1", "1/0", "2")] == [1, 2, 3]


def test_last_value(kernel):
    assert kernel.value("21 * 2") == "42"
    assert kernel.value("_ + 1") == "43"
    assert kernel.run("5;")["results"] == [] and kernel.run("None")["results"] == []
    assert kernel.value("_") == "43"
    kernel.run("_ = 'mine'")
    kernel.run("7")
    assert kernel.value("_") == "'mine'"


def test_futures_are_kept(kernel):
    ok(kernel.run("from __future__ import annotations"))
    ok(kernel.run("def f(a: nowhere): pass\nprint(f.__annotations__)"), "{'a': 'nowhere'}\n")


def test_an_error_keeps_the_state(kernel):
    kernel.run("x = 1\ndef f():\n    return 1 / 0\n")
    result = kernel.run("\nf()")
    assert (result["cellStatus"], result["exitCode"], result["stateKept"]) == ("error", 1, True)
    error = result["error"]
    assert (error["name"], error["phase"]) == ("ZeroDivisionError", "run")
    frames = [(frame["file"], frame["line"], frame["function"], frame["source"]) for frame in error["frames"]]
    assert frames == [("[cell 2]", 2, "<module>", "f()"), ("[cell 1]", 3, "f", "    return 1 / 0")]
    assert result["stderr"] == error["traceback"] and 'File "[cell 1]", line 3' in result["stderr"]
    assert kernel.value("x") == "1"


def test_a_syntax_error_runs_nothing(kernel):
    result = kernel.run("print('no')\nx = (2")
    assert (result["stdout"], result["cellStatus"], result["error"]["phase"]) == ("", "error", "compile")
    assert (result["error"]["name"], result["error"]["frames"][0]["line"]) == ("SyntaxError", 2)


def test_names_of_cells(kernel):
    assert 'File "here.py", line 1' in kernel.run("1/0", filename="here.py")["stderr"]
    assert 'File "[cell 2]", line 1' in kernel.run("1/0")["stderr"]


@pytest.mark.parametrize("code, status", [("exit()", 0), ("quit(3)", 3), ("import sys; sys.exit(256 + 7)", 7)])
def test_exit_is_reported_and_survived(kernel, code, status):
    kernel.run("x = 1")
    result = kernel.run(code)
    assert (result["exitCode"], result["cellStatus"], result["stateKept"]) == (status, "ok", True)
    assert [note["code"] for note in result["runtimeNotes"]] == ["exit_in_cell"]
    assert kernel.value("x") == "1"


def test_exit_with_a_message(kernel):
    result = kernel.run("import sys; sys.exit('bye')")
    assert (result["stderr"], result["exitCode"]) == ("bye\n", 1)


def test_await(kernel):
    kernel.run("import asyncio\nlock = asyncio.Lock()\nasync def f():\n    async with lock: return 5")
    assert kernel.value("await f()") == "5"
    assert kernel.value("await f() + 1") == "6"  # the same loop
    ok(kernel.run("async def g(): return 1\nprint(asyncio.run(g()))"), "1\n")


def test_input_ends_at_once(kernel):
    assert kernel.run("input()")["error"]["name"] == "EOFError"


def test_display_is_in_order(kernel):
    result = kernel.run("for i in range(3):\n    print(i)\n    display(i)")
    ok({**result}, "0\n1\n2\n")
    assert [entry["at"]["stdout"] for entry in result["results"]] == [2, 4, 6]


def test_files_of_a_cell(kernel):
    assert [f["path"] for f in kernel.run("open('a', 'w').write('1');")["files"]] == ["a"]
    assert kernel.run("1")["files"] == []
    assert [f["change"] for f in kernel.run("import os; os.remove('a')")["files"]] == ["deleted"]


def test_environment_and_directory(client):
    session = client.open(env={"A": "1"})
    client.run("mkdir", "d", sessionId=session)
    kernel = Kernel(client, session=session, env={"B": "2"}, cwd="d")
    ok(kernel.run("import os; print(os.environ['A'], os.environ['B'], os.getcwd())"), "1 2 /workspace/d\n")


def test_two_kernels_are_apart(client):
    first = Kernel(client)
    second = Kernel(client, session=first.session)
    first.run("x = 'first'")
    assert second.run("x")["error"]["name"] == "NameError"
    listed = client.call("kernel/list", {})["kernels"]
    assert [(k["kernelId"], k["state"], k["sessionId"]) for k in listed] == [
        (first.id, "idle", first.session),
        (second.id, "idle", first.session),
    ]


# ---- output


def test_output_of_children(kernel):
    code = "import subprocess\nsubprocess.run('echo out; echo err >&2', shell=True)\nprint('after')"
    ok(kernel.run(code), "out\nafter\n", "err\n")


def test_each_cell_prints_where_the_last_one_did_not(kernel):
    """The pipes of a cell serve the next one only when nothing else holds them, and whatever the code did to its descriptors."""
    ok(kernel.run("import os, sys, time, threading\nprint('1')"), "1\n")
    ok(kernel.run("os.dup2(os.open('/dev/null', os.O_WRONLY), 1); print('unseen'); os.close(2)"))
    ok(kernel.run("print('2'); print('e', file=sys.stderr)"), "2\n", "e\n")
    ok(kernel.run("os.closerange(4, 300)\nfiles = [open(f'f{n}', 'w') for n in range(8)]"))  # they get the numbers of the pipes
    ok(kernel.run("print('7'); print('e', file=sys.stderr)"), "7\n", "e\n")
    ok(kernel.run("child = os.fork()\nif not child: time.sleep(60)"))
    ok(kernel.run("print('8'); os.kill(child, 9); _ = os.waitpid(child, 0)"), "8\n")  # in new pipes
    ok(kernel.run("for f in files: _ = f.write('x'); f.close()\nprint([os.stat(f'f{n}').st_size for n in range(8)])"), "[1, 1, 1, 1, 1, 1, 1, 1]\n")
    thread = "go = threading.Event(); threading.Thread(target=lambda: (go.wait(), print('between'))).start()"
    ok(kernel.run(thread))  # a thread of the process itself
    ok(kernel.run("threading.Timer(0.1, go.set).start()"))
    kernel.client.wait_for(lambda: kernel.between() == "between\n", "the thread's output")
    ok(kernel.run("print('4')"), "4\n")
    kernel.run("child = os.fork()\nif not child: time.sleep(60)")  # ends with its cell, holding what its parent holds
    ok(kernel.run("print('5'); os.kill(child, 9); os.waitpid(child, 0)[1]"), "5\n")
    ok(kernel.run("print('6')"), "6\n")
    assert kernel.between() == "between\n"


@pytest.mark.parametrize("language", ["python", "node", "bash", "sh"])
def test_code_of_any_size(client, language):
    """It travels in the message up to 32 KiB if the runner takes it so, else beside it."""
    kernel = Kernel(client, language=language)
    comment, show = ("//", "console.log(%d)") if language == "node" else ("#", "print(%d)" if language == "python" else "echo %d")
    for size in (0, 32767, 32768, 32769, 65536, 65537, 1 << 20):
        code = (show % size + "\n" + comment).ljust(size, "y") if size else ""
        ok(kernel.run(code), f"{size}\n" if size else "")


def test_late_output_belongs_to_no_cell(kernel):
    kernel.run("import subprocess\nchild = subprocess.Popen('read x; echo late', shell=True, stdin=subprocess.PIPE)")
    ok(kernel.run("print('second')"), "second\n")
    ok(kernel.run("child.communicate(b'go\\n');"), "")
    kernel.client.wait_for(lambda: kernel.between() == "late\n", "the late output")


def test_many_children_that_stay(kernel):
    """Each holds the pipes of its cell; those of the oldest are given up, the newest never."""
    kernel.run("import subprocess, sys, threading, time")
    for _ in range(20):
        ok(kernel.run("subprocess.Popen(['sleep', '60']);"))
    kernel.run("threading.Timer(0.3, lambda: print('still heard', flush=True)).start()")
    kernel.client.wait_for(lambda: "still heard" in kernel.between(), "what the process itself says between cells")
    ok(kernel.run("print('fine')"), "fine\n")


def test_stream(kernel):
    future = kernel.start("import sys\nprint('a'); sys.stdout.flush()\nprint('b', file=sys.stderr)", stream="live")
    result = future.result()
    events = kernel.client.output_events(future)
    assert "".join(e["text"] for e in events if e["stream"] == "stdout") == result["stdout"] == "a\n"
    assert "".join(e["text"] for e in events if e["stream"] == "stderr") == result["stderr"] == "b\n"


def test_large_code_and_output(kernel):
    blob = kernel.client.call("blob/write", {"text": "x = '" + "y" * 3_000_000 + "'\nprint(len(x))\nprint(x)"})
    result = kernel.run({"blob": {"id": blob["id"]}})
    assert kernel.client.text(result["stdout"]) == b"3000000\n" + b"y" * 3_000_000 + b"\n"


def test_fork_in_a_cell(kernel):
    code = "import os, sys\npid = os.fork()\nif pid == 0:\n    print('child'); sys.stdout.flush()\nelse:\n    os.waitpid(pid, 0)\n    print('parent')"
    ok(kernel.run(code), "child\nparent\n")
    ok(kernel.run("print('still one')"), "still one\n")


def test_multiprocessing(kernel):
    code = "import multiprocessing as m\ndef f(x): return x * x\nwith m.get_context('fork').Pool(2) as p: r = p.map(f, [1, 2, 3])\nr"
    assert kernel.value(code) == "[1, 4, 9]"


# ---- the end of a cell


LOOPS = {
    "sleep": "import time; time.sleep(60)",
    "busy": "while True: pass",
    "child": "import subprocess; subprocess.run(['sleep', '60'])",
    "await": "import asyncio; await asyncio.sleep(60)",
    "input": "import os; r, w = os.pipe(); os.read(r, 1)",
    "regex": "import re; re.match('(a*)*$', 'a' * 40 + 'b')",
}


@pytest.mark.parametrize("code", LOOPS.values(), ids=LOOPS)
def test_deadline_interrupts(kernel, code):
    kernel.run("x = 1")
    result = kernel.run(code, timeoutMs=200)
    assert (result["fault"]["type"], result["fault"]["limit"]) == ("timeout", "timeoutMs")
    assert (result["cellStatus"], result["stateKept"], result["success"]) == ("interrupted", True, False)
    assert result["error"]["name"] == "KeyboardInterrupt"
    assert kernel.value("x") == "1"


DEAF = {
    "ignored": "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass",
    "blocked": "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])\nwhile True: pass",
    "sum": "sum(range(10**13))",
    "stopped": "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)",
}


@pytest.mark.parametrize("code", DEAF.values(), ids=DEAF)
def test_what_cannot_be_interrupted_is_killed(kernel, code):
    result = kernel.run("print('kept', flush=True); display(1)\n" + code, timeoutMs=200)
    assert (result["fault"]["type"], result["cellStatus"], result["stateKept"]) == ("timeout", "dead", False)
    assert result["stdout"] == "kept\n" and len(result["results"]) == 1
    refused(kernel.fail("1"), "kernel_dead", "/kernelId")
    assert kernel.client.call("kernel/restart", {"kernelId": kernel.id}) == {}
    assert kernel.value("1 + 1") == "2"
    assert kernel.run("x")["error"]["name"] == "NameError"


def test_a_handler_of_an_earlier_cell_is_gone(kernel):
    kernel.run("import signal; signal.signal(signal.SIGINT, signal.SIG_IGN);")
    assert kernel.run("while True: pass", timeoutMs=200)["cellStatus"] == "interrupted"


def test_interrupt(kernel):
    client = kernel.client
    assert client.call("kernel/interrupt", {"kernelId": kernel.id}) == {"running": False}
    future = kernel.start("import time\nprint('on')\ntime.sleep(60)", stream="live", runId="slow")
    client.wait_for(lambda: client.output_events(future), "the cell to run")
    assert client.call("kernel/interrupt", {"kernelId": kernel.id, "runId": "other"}) == {"running": False}
    assert client.call("kernel/interrupt", {"kernelId": kernel.id, "runId": "slow"}) == {"running": True}
    result = future.result()
    assert (result["cellStatus"], result["stateKept"], result["error"]["name"]) == ("interrupted", True, "KeyboardInterrupt")
    assert "fault" not in result and result["stdout"] == "on\n"
    assert kernel.value("1") == "1"


def test_interrupts_never_hit_a_later_cell(kernel):
    for _ in range(100):
        future = kernel.start("1")
        kernel.client.call("kernel/interrupt", {"kernelId": kernel.id})
        future.result()
        ok({**kernel.run("print('fine')")}, "fine\n")


def test_cancel_at_work(kernel):
    future = kernel.start("import time\nprint('on')\ntime.sleep(60)", stream="live")
    kernel.client.wait_for(lambda: kernel.client.output_events(future), "the cell to run")
    kernel.client.cancel(future)
    result = future.result()
    assert (result["fault"]["type"], result["cellStatus"], result["stateKept"]) == ("cancelled", "interrupted", True)


def test_cancel_in_the_queue(kernel):
    first = kernel.start("import time; time.sleep(0.5); x = 1")
    second = kernel.start("x = 2")
    kernel.client.cancel(second)
    refused(second.error(), "cancelled")
    ok(first.result())
    assert kernel.value("x") == "1"


def test_cells_run_in_order_and_the_queue_is_bounded(kernel):
    first = kernel.start("import time; time.sleep(1); seen = []")
    more = [kernel.start(f"seen.append({n})") for n in range(80)]
    errors = []
    for future in more:
        try:
            future.result()
        except Exception as error:  # RpcError
            errors.append(error)
    ok(first.result())
    assert 10 < len(errors) <= 16
    for error in errors:
        assert (error.reason, error.data["retryable"]) == ("busy", True)
    assert kernel.value("seen") == str(list(range(80 - len(errors))))


# ---- the end of a kernel


DEATHS = {
    "exit": ("import os; os._exit(7)", None, 7),
    "abort": ("import os; os.abort()", None, 134),
    "killed itself": ("import os; os.kill(os.getpid(), 9)", None, 137),
    "escape": ("import ctypes; ctypes.CDLL(None).unshare(0x10000000)", "escape_blocked", 159),
}


@pytest.mark.parametrize("code, fault, status", DEATHS.values(), ids=DEATHS)
def test_death(kernel, code, fault, status):
    result = kernel.run("print('last words', flush=True); display('shown')\n" + code)
    assert (result["cellStatus"], result["stateKept"], result["exitCode"]) == ("dead", False, status)
    assert result.get("fault", {}).get("type") == fault
    assert result["stdout"] == "last words\n" and len(result["results"]) == 1
    kernel.client.wait_for(lambda: kernel.states()[-1] == "dead", "the word of its death")
    refused(kernel.fail("1"), "kernel_dead", "/kernelId")
    assert [k["state"] for k in kernel.client.call("kernel/list", {})["kernels"]] == ["dead"]


def test_memory_cap(client):
    kernel = Kernel(client, memoryMb=64)
    result = kernel.run("b = bytearray(200 << 20)\nfor i in range(0, len(b), 4096): b[i] = 1")
    assert (result["fault"]["type"], result["fault"]["limit"], result["cellStatus"]) == ("oom", "memoryMb", "dead")
    client.call("kernel/restart", {"kernelId": kernel.id})
    ok(kernel.run("print(1)"), "1\n")


def test_an_escape_of_a_child_leaves_the_kernel(kernel):
    kernel.run("x = 1")
    result = kernel.run("import subprocess\nr = subprocess.run(['unshare', '-U', 'true'])")
    assert (result["fault"]["type"], result["cellStatus"]) == ("escape_blocked", "ok")
    result = kernel.run("x")
    assert "fault" not in result and result["results"][0]["data"]["text/plain"] == "1"


def test_cells_in_the_queue_of_a_dead_one(kernel):
    first = kernel.start("import time, os; time.sleep(0.5); os._exit(1)")
    second = kernel.start("print('never')")
    assert first.result()["cellStatus"] == "dead"
    refused(second.error(), "kernel_dead", "/kernelId")


def test_close(kernel):
    client = kernel.client
    future = kernel.start("print('on')\nimport time; time.sleep(60)", stream="live")
    client.wait_for(lambda: client.output_events(future), "the cell to run")
    assert client.call("kernel/close", {"kernelId": kernel.id}) == {}
    result = future.result()
    assert (result["cellStatus"], result["stateKept"]) == ("dead", False)
    refused(kernel.fail("1"), "unknown_handle", "/kernelId")
    assert client.call("kernel/list", {}) == {"kernels": []}
    again = client.call("kernel/open", {"sessionId": kernel.session, "kernelId": kernel.id})
    assert again["kernelId"] == kernel.id


@pytest.mark.parametrize("how", ["kernel", "session"])
def test_cells_in_the_queue_of_a_closed_one(kernel, how):
    """They outlive the kernel: each is answered, by name, and none runs."""
    client = kernel.client
    first = kernel.start("print('on')\nimport time; time.sleep(60)", stream="live")
    waiting = [kernel.start("open('never', 'w')") for _ in range(20)]
    client.wait_for(lambda: client.output_events(first), "the cell to run")
    if how == "kernel":
        client.call("kernel/close", {"kernelId": kernel.id})
        for future in waiting:
            refused(future.error(), "kernel_dead", "/kernelId")
        assert client.call("file/list", {"sessionId": kernel.session})["entries"] == []
    else:
        client.call("session/close", {"sessionId": kernel.session})
        for future in waiting:
            assert future.error().reason in ("cancelled", "kernel_dead")
    assert first.result()["cellStatus"] in ("dead", "interrupted")


def test_closed_while_the_files_of_a_cell_are_looked_at(kernel):
    """The answer waits for a walk of many names, and the kernel is gone before it has ended."""
    kernel.run("import os\nfor i in range(10000): os.close(os.open(f'f{i}', os.O_CREAT))")
    future = kernel.start("print('on')", stream="live")
    kernel.client.wait_for(lambda: kernel.client.output_events(future), "the cell to run")
    kernel.client.call("kernel/close", {"kernelId": kernel.id})
    assert future.result()["cellStatus"] in ("ok", "dead", "interrupted")
    kernel.client.call("session/close", {"sessionId": kernel.session})  # the end of the sidecar does not wait for so many names


def test_a_session_closes_with_its_kernels(kernel):
    future = kernel.start("import time; time.sleep(60)")
    assert kernel.client.call("session/close", {"sessionId": kernel.session}) == {}
    assert future.result()["cellStatus"] in ("dead", "interrupted")
    assert kernel.client.call("kernel/list", {}) == {"kernels": []}


def test_restart_of_a_living_one(kernel):
    kernel.run("x = 1")
    assert kernel.client.call("kernel/restart", {"kernelId": kernel.id}) == {}
    result = kernel.run("x")
    assert (result["error"]["name"], result["executionCount"]) == ("NameError", 1)


# ---- bad requests


def test_bad_requests(client):
    session = client.open()
    where = {"sessionId": session}
    refused(client.fail("kernel/open", {"sessionId": "nobody"}), "unknown_handle", "/sessionId")
    refused(client.fail("kernel/open", {**where, "language": "cobol"}), "unknown_language", "/language")
    refused(client.fail("kernel/open", {**where, "language": "typescript"}), "unknown_language", "/language")
    client.call("kernel/open", {**where, "kernelId": "k"})
    refused(client.fail("kernel/open", {**where, "kernelId": "k"}), "duplicate_handle", "/kernelId")
    for method, more in (("run", {"code": "1"}), ("interrupt", {}), ("restart", {}), ("close", {})):
        refused(client.fail(f"kernel/{method}", {"kernelId": "none", **more}), "unknown_handle", "/kernelId")


def test_a_kernel_that_cannot_start(client):
    error = client.fail("kernel/open", {"sessionId": client.open(), "env": {"PYTHONHOME": "/nowhere"}})
    refused(error, "start_failed")
    assert client.call("kernel/list", {}) == {"kernels": []}


# ---- hostile cells


FORGED = """
import os, struct
def frame(kind, call, id, parts):
    data = b"".join(struct.pack("<HI", len(k) + 1, len(v)) + k + b"\\0" + v for k, v in parts)
    return b"KRN1" + struct.pack("<BBHIIII", 1, kind, 0, call, id, len(data), 0) + data
"""


@pytest.mark.parametrize("kind", [5, 6])  # a value may bring the word with it
def test_a_forged_end(kernel, kind):
    """A cell may say that it is done: that is its own claim. What it does then belongs to no cell, and to no other one."""
    result = kernel.run(FORGED + f"os.write(3, frame({kind}, 1, 1000, [(b'done', b''), (b'status', b'ok')]))\nimport time; time.sleep(0.3); print('late')")
    assert result["cellStatus"] == "ok"
    later = kernel.fail("print('x')") if kernel.states()[-1:] == ["dead"] else None
    kernel.client.wait_for(lambda: kernel.states()[-1] == "dead", "the second end, which makes no sense")
    assert later is None or later.reason == "kernel_dead"


@pytest.mark.parametrize("kind", [5, 6])
def test_a_child_does_not_end_the_cell(kernel, kind):
    code = f"""
import sys
channel = sys.modules['_kern_runner'].channel
channel.id += 1
if os.fork() == 0:
    os.write(3, frame({kind}, channel.call, channel.id, [(b'text/plain', b'forged'), (b'done', b''), (b'status', b'ok')]))
    os._exit(0)
os.wait()
print('still at work')
'own'
"""
    result = kernel.run(FORGED + code)
    ok(result, "still at work\n")
    shown = ["forged", "'own'"] if kind == 5 else ["'own'"]  # a value it may claim
    assert [r["data"]["text/plain"] for r in result["results"]] == shown
    ok(kernel.run("print('fine')"), "fine\n")


def test_what_is_shown_behind_a_value(kernel):
    """The value of a cell waits for its end to go with it; what comes between them all the same comes behind it."""
    code = "import sys\ndef hook(value): plain(value); display('late'); print('later')\n"
    kernel.run("import sys; plain = sys.displayhook")
    result = kernel.run(code + "sys.displayhook = hook\n1")
    ok(result, "later\n")
    assert [(r["kind"], r["data"]["text/plain"]) for r in result["results"]] == [("value", "1"), ("display", "'late'")]
    result = kernel.run("def hook(value): plain(value); 1 / 0\nsys.displayhook = hook\n2")
    assert (result["cellStatus"], result["error"]["name"]) == ("error", "ZeroDivisionError")
    assert [r["data"]["text/plain"] for r in result["results"]] == ["2"]
    result = kernel.run("def hook(value): plain(value); plain(value + 1)\nsys.displayhook = hook\n3")
    assert [r["data"]["text/plain"] for r in result["results"]] == ["3", "4"]
    result = kernel.run("sys.displayhook = lambda value: (plain(value), exit(7))\n5")
    assert (result["exitCode"], [r["data"]["text/plain"] for r in result["results"]]) == (7, ["5"])


@pytest.mark.parametrize(
    "frame",
    [
        "frame(6, 99, 1000, [(b'done', b''), (b'status', b'ok')])",
        "frame(5, 99, 1000, [(b'done', b''), (b'status', b'ok')])",
        "frame(6, 1, 1000, [(b'ready', b'')])",
        "frame(8, 1, 1000, [])",
        "frame(7, 1, 1000, [])",
        "b'garbage'",
    ],
)
def test_forged_frames_end_the_kernel_and_nothing_else(kernel, frame):
    other = Kernel(kernel.client, session=kernel.session)
    result = kernel.run(FORGED + f"os.write(3, {frame})\nimport time; time.sleep(10)")
    assert (result["cellStatus"], result["stateKept"], result["resultChannel"]) == ("dead", False, "corrupt")
    ok(other.run("print('fine')"), "fine\n")


def test_a_closed_channel_ends_the_kernel(kernel):
    result = kernel.run("import os, time\nprint('first', flush=True)\nos.close(3)\ntime.sleep(10)")
    assert (result["stdout"], result["cellStatus"], result["resultChannel"]) == ("first\n", "dead", "closed")


def test_frames_of_a_former_cell_are_nobodys(kernel):
    kernel.run(FORGED + "import sys; channel = sys.modules['_kern_runner'].channel")
    code = "channel.id += 1; os.write(3, frame(1, CALL, channel.id, [(b'text/plain', b'forged')]));"
    result = kernel.run(code.replace("CALL", "1"))
    assert result["results"] == [] and result["cellStatus"] == "ok"
    (own,) = kernel.run(code.replace("CALL", "channel.call"))["results"]
    assert own["data"] == {"text/plain": "forged"}


def test_many_cells(kernel):
    begin = time.monotonic()
    for n in range(300):
        assert kernel.run(f"{n}")["executionCount"] == n + 1
    assert time.monotonic() - begin < 60

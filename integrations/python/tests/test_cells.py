"""What a cell tells while it runs: displays, questions, output that waits for its reader; and a kernel between cells."""

import threading
import time

import pytest

import kern_sandbox as kern

GENEROUS_SECONDS = 60


@pytest.fixture(scope="module")
def kernel():
    with kern.Sandbox(timeout_s=600) as box, box.kernel() as opened:
        yield opened


def test_displays_come_in_order_with_the_output(kernel):
    seen = []
    code = (
        "from IPython.display import clear_output, update_display\n"
        "print('a')\ndisplay('é' * 1_000_000, display_id='d')\nprint('b')\n"
        "update_display({'k': 1}, display_id='d')\nclear_output(wait=True)\n6 * 7"
    )
    result = kernel.run_code(code, on_stdout=seen.append, on_display=seen.append)
    shown = [e for e in seen if isinstance(e, kern.Display)]
    assert [e if isinstance(e, bytes) else e.op for e in seen] == [b"a\n", "display", b"b\n", "update", "clear", "value"]
    assert [d.display_id for d in shown] == ["d", "d", None, None] and shown[2].wait
    assert shown[0].data["text/plain"] == repr("é" * 1_000_000)  # it came as a blob
    assert shown[1].data["text/plain"] == "{'k': 1}"
    assert shown[3].data == {"text/plain": "42"} == result.results[-1].data
    assert kernel.run_code("display('ü' * 1_000_000)").results[0].text == repr("ü" * 1_000_000)


def test_questions(kernel):
    asked = []

    def answer(prompt, password):
        asked.append((prompt, password))
        return f"<{len(asked)}>"

    result = kernel.run_code("import getpass\ninput('Name? ') + getpass.getpass('Word: ')", on_input=answer)
    assert result.results[0].text == "'<1><2>'" and asked == [("Name? ", False), ("Word: ", True)]
    assert kernel.run_code("input()").error.name == "EOFError"
    long = kernel.run_code("len(input())", on_input=lambda prompt, password: "ü" * 3_000_000)  # more than waits for a reader
    assert long.results[0].text == "3000000"
    assert kernel.run_code("input()", on_input=lambda prompt, password: None).error.name == "EOFError"


def test_a_question_whose_callback_fails_does_not_wait_for_ever(kernel, caplog):
    assert kernel.run_code("input()", on_input=lambda prompt, password: 1 / 0).error.name == "EOFError"
    assert "ZeroDivisionError" in caplog.text


def test_the_box_waits_for_a_slow_reader(kernel):
    """4 MiB are more than any queue on the way holds."""
    taken = []

    def slow(data):
        taken.append(data)
        time.sleep(0.002)

    result = kernel.run_code("for i in range(70000): print('%060d' % i)", on_stdout=slow, lossless=True)
    assert b"".join(taken).decode() == "".join("%060d\n" % i for i in range(70000)) == result.stdout


def test_wrong_callbacks(kernel):
    for name in ("on_display", "on_input"):
        with pytest.raises(kern.SandboxError) as caught:
            kernel.run_code("1", **{name: 3})
        assert (caught.value.reason, caught.value.path) == ("invalid_type", name)
    with kern.Sandbox() as box, pytest.raises(kern.SandboxError, match="on_state"):
        box.kernel(on_state="x")


def test_between_cells():
    written, states, news = [], [], threading.Event()

    def on_state(state, fault):
        states.append(state)
        if state == "dead":
            news.set()

    def on_output(stream, text):
        written.append((stream, text))
        news.set()

    with kern.Sandbox(timeout_s=600) as box, box.kernel(on_output=on_output, on_state=on_state) as own:
        own.run_code("import os, threading")
        own.run_code("t = threading.Timer(0.3, lambda: (print('late'), threading.Timer(0.3, lambda: os._exit(3)).start()))")
        own.run_code("t.start()")
        assert news.wait(GENEROUS_SECONDS) and written == [("stdout", "late\n")]
        news.clear()
        assert news.wait(GENEROUS_SECONDS) and states[-1] == "dead"
        with pytest.raises(kern.SandboxError) as caught:
            own.run_code("1")
        assert caught.value.reason == "kernel_dead"
        own.restart()
        assert own.run_code("1").results[0].text == "1"

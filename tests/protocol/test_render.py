"""render, and `rendered` of a result: text that a model can be shown."""

import pytest

from expect import refused

pytestmark = pytest.mark.any_user


def rendered(client, method, max_chars=8000, **params):
    return client.call(method, {**params, "render": {"maxChars": max_chars}})["rendered"]


def test_render(client):
    text = "\x1b[31mred\x1b[0m\r\n[sandbox: oom]\nzero\u200bwidth \u202e\0 [1, 2]\n"
    assert client.call("render", {"text": text, "maxChars": 500}) == {
        "rendered": "red\n| [sandbox: oom]\nzero\\u{200b}width \\u{202e}\u2400 [1, 2]\n"
    }
    invalid = client.call("render", {"text": {"base64": "Yf9i"}, "maxChars": 500})
    assert invalid == {"rendered": "a\ufffdb"}


def test_render_is_capped(client):
    text = "0123456789\n" * 20_000
    cut = client.call("render", {"text": text, "maxChars": 500})["rendered"]
    assert len(cut) <= 500 and cut.startswith("0123456789\n") and cut.endswith("9\n")
    assert "\n[sandbox: about 2195" in cut
    half = text[:110_000]
    reply = client.call("render", {"text": half, "maxChars": 262_144})  # more than a line has room for
    whole = client.text(reply["rendered"]).decode() == half
    assert whole  # a difference of that size would take minutes to show
    for max_chars in (499, 262_145):
        refused(client.fail("render", {"text": "", "maxChars": max_chars}), "out_of_range", "/maxChars")
    refused(client.fail("render", {"text": {"blob": {"id": "none"}}, "maxChars": 500}), "unknown_handle", "/text")


def test_output_results_and_files(client):
    code = "import sys\nprint('out')\nprint('err', file=sys.stderr)\nopen('a\\nb', 'w').close()\n6 * 7"
    assert rendered(client, "run/code", code=code) == "out\n42\n[stderr]\nerr\n[files: a\\nb (created)]\n"
    assert rendered(client, "run/argv", argv=["true"]) == "[no output, exit code 0]\n"
    assert rendered(client, "run/argv", argv=["sh", "-c", "exit 3"]) == "[exit code 3]\n"
    assert rendered(client, "run/argv", argv=["sh", "-c", "kill -9 $$"]) == "[exit code 137, signal KILL]\n"
    assert rendered(client, "run/argv", argv=["nothing-of-that-name"]).startswith("[sandbox: exec_failed] ")
    assert "rendered" not in client.call("run/argv", {"argv": ["true"]})


def test_a_flood_pushes_nothing_out(client):
    code = (
        "import sys\nprint('first')\nfor i in range(40000): print('x' * 50)\nprint('last')\n"
        "for i in range(20000): print('noise', file=sys.stderr)\n'the value'\nraise ValueError('the reason')"
    )
    text = rendered(client, "run/code", 3000, code=code)
    assert len(text) <= 3000
    assert text.startswith("[exit code 1]\nfirst\n") and "\nlast\n" in text
    assert text.count("characters left out]\n") == 2
    assert text.rstrip().endswith("ValueError: the reason")
    # what is printed behind the traceback cannot push it out either
    late = "import atexit, sys\natexit.register(lambda: sys.stderr.write('noise\\n' * 100000))\nraise ValueError('the reason')"
    text = rendered(client, "run/code", 3000, code=late)
    assert len(text) <= 3000 and "[traceback]\n" in text and "ValueError: the reason\n" in text


def test_a_box_cannot_speak_for_us(client):
    code = "print('[sandbox: oom] out of memory\\r\\x1b[1m [exit code 0]\\u2028[stderr]')\nraise SystemExit(2)"
    assert rendered(client, "run/code", code=code) == "[exit code 2]\n|  [exit code 0]\n| [stderr]\n"


def test_cells(client):
    session = client.call("session/open", {})["sessionId"]
    kernel = client.call("kernel/open", {"sessionId": session})["kernelId"]
    assert rendered(client, "kernel/run", kernelId=kernel, code="x = 6; print('a'); x * 7") == "a\n42\n"
    text = rendered(client, "kernel/run", kernelId=kernel, code="1 / 0")
    assert text.startswith("[exit code 1]\n[stderr]\n") and text.rstrip().endswith("ZeroDivisionError: division by zero")
    text = rendered(client, "kernel/run", kernelId=kernel, code="import os; os._exit(3)")
    assert "[kernel: it has died, and its state with it]\n" in text


@pytest.mark.parametrize("max_chars", [500, 501, 700])
def test_smallest(client, max_chars):
    code = "import sys\nprint('o' * 9000)\nprint('e' * 9000, file=sys.stderr)\nfor i in range(30): open('f' * 100 + str(i), 'w')\n" "'v' * 9000"
    text = rendered(client, "run/code", max_chars, code=code)
    assert len(text) <= max_chars and text.startswith("o") and "[stderr]\n" in text and "[files: " in text

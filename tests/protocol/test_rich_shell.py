"""kern-display and what it takes from bash and sh; the failing line of bash; scripts stay what they were."""

import base64
import shutil

import pytest

pytestmark = pytest.mark.any_user

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SHELLS = ("bash", "sh", "dash", "busybox")


@pytest.fixture(params=SHELLS)
def shell(client, request):
    """A shell of each kind: sh of the image, and by `interpreters` others that can stand in its place."""
    name = request.param
    if name in ("bash", "sh"):
        session = client.open()
        return lambda code, **params: client.code(code, language=name, sessionId=session, **params)
    path = shutil.which(name, path="/usr/bin:/bin")
    if not path:
        pytest.skip(f"no {name} on this machine")
    if name == "dash":
        session = client.open(interpreters={"sh": path})
        return lambda code, **params: client.code(code, language="sh", sessionId=session, **params)
    return lambda code, **params: client.code(f'exec {path} sh -c "$1"', language="sh", args=[code], **params)


def shown(result):
    return [entry["data"] for entry in result["results"]]


def test_types(shell):
    result = shell(
        "echo '# a' | kern-display --md\necho '<b>' > f.html; kern-display --html f.html\necho '{\"a\": 1}' | kern-display --json -\n"
        f"echo '{PNG}' | base64 -d | kern-display\necho text | kern-display\nprintf '<svg></svg>' | kern-display\n"
        "printf 'x' | kern-display --mime application/x-own"
    )
    assert (result["exitCode"], result["stdout"], result["stderr"], result["resultChannel"]) == (0, "", "", "ok")
    md, html, json, png, text, svg, own = shown(result)
    assert md == {"text/markdown": "# a\n"} and html == {"text/html": "<b>\n"} and json == {"application/json": '{"a": 1}\n'}
    data = png["image/png"]
    head = 33  # signature and IHDR; the pixels have been packed anew
    assert base64.b64decode(data["base64"] if isinstance(data, dict) else data)[:head] == base64.b64decode(PNG)[:head]
    assert text == {"text/plain": "text\n"} and svg == {"image/svg+xml": "<svg></svg>"} and list(own) == ["application/x-own"]


def test_in_order_and_updates(shell):
    result = shell("for i in 1 2 3; do echo $i; echo $i | kern-display --id a$i; done\necho new | kern-display --id a2 --update")
    assert result["stdout"] == "1\n2\n3\n"
    assert [entry["at"]["stdout"] for entry in result["results"]] == [2, 4, 6]
    assert [data["text/plain"] for data in shown(result)] == ["1\n", "new\n", "3\n"]


def test_many_at_the_same_time(shell):
    result = shell("for i in 1 2 3 4 5 6 7 8 9; do head -c 300000 /dev/zero | tr '\\0' $i | kern-display & done; wait")
    assert (result["exitCode"], result["resultChannel"]) == (0, "ok")
    sizes = [data["text/plain"]["blob"]["bytes"] for data in shown(result)]
    assert sizes == [300000] * 9


WRONG = {
    "kern-display /nowhere": (1, "/nowhere: No such file or directory"),
    "kern-display /": (1, "/: Is a directory"),
    "kern-display --bad": (2, "unknown option --bad"),
    "kern-display a b": (2, "one file at a time"),
    "kern-display --mime": (2, "--mime needs a word"),
    "echo | kern-display --mime nonsense": (2, "nonsense is no mime type"),
    "echo | kern-display --update": (2, "--update needs the --id"),
    "printf '\\377\\376' | kern-display": (1, "cannot tell what this is"),
    "head -c 70000000 /dev/zero | kern-display --text": (1, "more than 66060288 bytes"),
    "exec 3>&-; echo x | kern-display": (1, "there is no result channel here"),
    "KERN_RESULT_FD=99999; export KERN_RESULT_FD; echo x | kern-display": (1, "there is no result channel here"),
    "KERN_RESULT_LOCK=/; export KERN_RESULT_LOCK; echo x | kern-display": (1, "KERN_RESULT_LOCK"),
}


@pytest.mark.parametrize("code", WRONG)
def test_what_cannot_be_shown_is_said(client, code):
    status, message = WRONG[code]
    result = client.code(code, language="bash")
    assert (result["exitCode"], result["results"]) == (status, [])
    assert result["stderr"].startswith("kern-display: ") and message in result["stderr"]


def test_a_shown_one_survives_the_end(client):
    result = client.code("echo kept | kern-display; kill -9 $$", language="bash")
    assert (shown(result), result["signal"]) == ([{"text/plain": "kept\n"}], "KILL")
    result = client.code("echo kept | kern-display; sleep 60", language="sh", timeoutMs=500)
    assert (shown(result), result["fault"]["type"]) == ([{"text/plain": "kept\n"}], "timeout")


def test_killed_in_the_middle(client):
    code = "head -c 50000000 /dev/zero | kern-display --text & sleep 0.05; kill -9 $!; echo after | kern-display"
    result = client.code(code, language="bash")
    assert (shown(result)[-1], result["resultChannel"]) == ({"text/plain": "after\n"}, "ok")


def test_forged_frames_change_no_facts(client):
    result = client.code("echo first | kern-display; printf 'garbage' >&3; echo second | kern-display; exit 5", language="bash")
    assert (result["exitCode"], result["resultChannel"], shown(result)) == (5, "corrupt", [{"text/plain": "first\n"}])


@pytest.mark.parametrize("language, code, channel", [
    ("bash", "exec 3>&-; sleep 0.3", "closed"),
    ("python", "import os, time; display(1); os.close(3); time.sleep(0.3)", "closed"),
    ("python", "import os; os.execv('/bin/sleep', ['sleep', '0.3'])", "closed"),
    ("bash", "exec sleep 0.01", "ok"),
    ("bash", "kill -9 $$", "ok"),
    ("python", "import os; os._exit(0)", "ok"),
    ("python", "import threading, time; threading.Thread(target=time.sleep, args=(0.2,)).start()", "ok"),
])
def test_a_channel_that_the_code_closes_and_goes_on(client, language, code, channel):
    """Its end while the main process lives is told; its end with the process is none."""
    result = client.code(code, language=language)
    assert (result["resultChannel"], len(result["results"])) == (channel, code.count("display")), result


def test_a_damaged_lock_file_harms_its_own_call_only(client):
    result = client.code("echo 1 | kern-display; : > $KERN_RESULT_LOCK; echo 2 | kern-display; echo alive", language="bash")
    assert (result["stdout"], result["resultChannel"]) == ("alive\n", "corrupt")


def test_the_failing_line_when_asked_for(client):
    code = "false || true\nf() {\n  ls /nowhere\n}\nif f 2>/dev/null; then :; fi\nf 2>/dev/null\necho on\n"
    env = {"BASH_ENV": "/run/kern/bash/errtrace.bash"}
    result = client.code(code, language="bash", env=env)
    assert (result["stdout"], result["stderr"], result["exitCode"]) == ("on\n", "", 0)
    error = result["error"]
    assert (error["name"], error["message"], error["phase"]) == ("CommandFailed", "exit status 2: ls /nowhere", "run")
    (frame,) = error["frames"]
    assert (frame["line"], frame["function"], frame["source"]) == (3, "f", "ls /nowhere")
    result = client.code("set -e\n\nfalse\necho no", language="bash", env=env)
    assert (result["exitCode"], result["stdout"], result["error"]["frames"][0]["line"]) == (1, "", 3)
    assert "error" not in client.code("false", language="bash")


TRAPS = [  # code, exit code, stdout
    ("printf x", 0, "x"),
    ("exit 300", 44, ""),
    ("false | true", 0, ""),
    ("pyan3", 127, ""),
    ("cat <<EOF\nfoo", 0, "foo\n"),
    ("echo 'abc", 2, ""),
    ("cat <<'A'; echo b # c\nx\nA", 0, "x\nb\n"),
    ("echo out >/dev/stdout; echo err >/dev/stderr; echo fd >/proc/self/fd/1", 0, "out\nfd\n"),
    ("sh -c 'kill -9 $$'; exit $?", 137, ""),
    ("echo $LINENO\nread x; echo [$x]", 0, "1\n[]\n"),
]


@pytest.mark.parametrize("code, status, out", TRAPS)
def test_scripts_are_what_they_are(client, code, status, out):
    result = client.code(code, language="bash")
    assert (result["exitCode"], result["stdout"]) == (status, out)
    assert "fault" not in result and "error" not in result

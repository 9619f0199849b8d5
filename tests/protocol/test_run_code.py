"""run/code: four languages, how code arrives, what a value and an error look like."""

import os

import pytest

from expect import fault, plain, refused

LANGUAGES = {
    "python": 'import sys; print("out"); print("err", file=sys.stderr); sys.exit({code})',
    "bash": 'echo out; echo err >&2; exit {code}',
    "sh": 'echo out; echo err >&2; exit {code}',
    "node": 'console.log("out"); console.error("err"); process.exit({code})',
}


@pytest.fixture(params=LANGUAGES)
def language(request):
    if request.param == "node" and not any(os.path.exists(f"{d}/node") for d in ("/usr/bin", "/usr/local/bin")):
        pytest.skip("no node in this host's /usr")
    return request.param


@pytest.mark.parametrize("code", [0, 1, 7, 127, 137, 159, 255])
def test_output_and_exit_code(client, language, code):
    plain(client.code(LANGUAGES[language].replace("{code}", str(code)), language=language), "out\n", "err\n", code)


def test_language_is_python_by_default(client):
    plain(client.code("print(1)"), "1\n")


@pytest.mark.parametrize("language", ["cobol", "python2"])
def test_unknown_language(client, language):
    error = client.fail("run/code", {"code": "x", "language": language})
    refused(error, "unknown_language", "/language")
    assert language in error.message


def test_sh_is_not_bash(client):
    plain(client.code('echo "[$BASH_VERSION]"', language="sh"), "[]\n")
    assert client.code('[[ 1 == 1 ]] && echo "$BASH_VERSION"', language="bash")["stdout"] != "\n"
    assert client.code("[[ 1 == 1 ]]", language="sh")["exitCode"] != 0 or os.path.realpath("/bin/sh").endswith("bash")


def test_empty_code(client, language):
    plain(client.code("", language=language))


SHOW_ARGS = {
    "python": "import sys; print(sys.argv[1:])",
    "bash": 'printf "[%s]" "$@"',
    "sh": 'printf "[%s]" "$@"',
    "node": "console.log(JSON.stringify(process.argv.slice(2)))",
}
ARGS_SHOWN = {
    "python": "['a b', '-x', '', '$HOME']\n",
    "bash": "[a b][-x][][$HOME]",
    "sh": "[a b][-x][][$HOME]",
    "node": '["a b","-x","","$HOME"]\n',
}


def test_args(client, language):
    plain(client.code(SHOW_ARGS[language], language=language, args=["a b", "-x", "", "$HOME"]), ARGS_SHOWN[language])


READ_STDIN = {
    "python": "print(input())",
    "bash": "read x; echo $x",
    "sh": "read x; echo $x",
    "node": "console.log(require('fs').readFileSync(0, 'utf8').trim())",
}


def test_stdin(client, language):
    plain(client.code(READ_STDIN[language], language=language, stdin="from outside\n"), "from outside\n")


def test_no_stdin_is_dev_null(client):
    plain(client.run("sh", "-c", "readlink /proc/self/fd/0; cat"), "/dev/null\n")


@pytest.mark.parametrize("size", [1 << 20, 4 << 20])
def test_big_code(client, size):
    head, tail = "x = 'END'\n#", "\nprint(x)"
    code = head + "a" * (size - len(head) - len(tail)) + tail
    plain(client.code(code), "END\n")


def test_code_above_its_cap(client):
    refused(client.fail("run/code", {"code": "#" * ((4 << 20) + 1)}), "out_of_range", "/code")


def test_code_as_base64_and_blob(client):
    plain(client.code({"base64": "cHJpbnQoMSk="}), "1\n")
    blob = client.call("blob/write", {"text": "print(2)"})["id"]
    plain(client.code({"blob": {"id": blob}}), "2\n")
    for bad in ("cHJpbnQoMSk", "cHJp bnQoMSk=", "*"):
        refused(client.fail("run/code", {"code": {"base64": bad}}), "invalid_value", "/code/base64")


def test_code_is_in_no_argv_and_no_file_of_the_workspace(client):
    secret = "KERNSECRET"
    result = client.code(
        f'# {secret}\nimport os\nword = b"{secret[:4]}" + b"{secret[4:]}"\n'
        'print(sum(word in open(f"/proc/{p}/cmdline", "rb").read() '
        'for p in os.listdir("/proc") if p.isdigit()), os.listdir("."), os.path.isfile(__file__))'
    )
    plain(result, "0 [] True\n")
    assert result["files"] == []


def test_code_cannot_be_changed_by_a_neighbour(client):
    """Two runs of one session at once see their own code only."""
    session = client.open()
    runs = [
        client.send("run/code", {"code": f"import time; time.sleep(0.2); print({i})", "sessionId": session})
        for i in range(8)
    ]
    assert [run.result()["stdout"] for run in runs] == [f"{i}\n" for i in range(8)]


# -- python


def value(result):
    return [(r["kind"], r["data"].get("text/plain")) for r in result["results"]]


@pytest.mark.parametrize(
    "code, values",
    [
        ("1+1", [("value", "2")]),
        ("x = 5\nx", [("value", "5")]),
        ("None", []),
        ("1+1;", []),
        ("x = 5", []),
        ("print(1)", []),
        ("'caf\u00e9 \u2028'", [("value", repr("caf\u00e9 \u2028"))]),
        ("[1,\n 2]", [("value", "[1, 2]")]),
        ("if True:\n    5", []),
    ],
)
def test_value_of_the_last_expression(client, code, values):
    result = client.code(code)
    assert value(result) == values
    assert (result["resultChannel"], result["exitCode"]) == ("ok", 0)


def test_value_stands_where_it_came(client):
    entry = client.code("print('12345')\n6")["results"][0]
    assert entry["at"] == {"stdout": 6, "stderr": 0}


def test_last_expression_runs_once(client):
    plain(client.code("n = []\nn.append(1) or print(len(n))"), "1\n")


def test_error_of_python(client):
    result = client.code("def f():\n    raise ValueError('bad \u00e9')\n\nf()", filename="cell.py")
    assert (result["exitCode"], result["success"]) == (1, False)
    assert "fault" not in result
    error = result["error"]
    assert (error["name"], error["message"], error["phase"]) == ("ValueError", "bad \u00e9", error["phase"])
    assert [(f["line"], f["function"]) for f in error["frames"]] == [(4, "<module>"), (2, "f")]
    assert all(f["file"].endswith("cell.py") for f in error["frames"])
    assert result["stderr"] == error["traceback"] or result["stderr"].rstrip("\n") == error["traceback"].rstrip("\n")
    assert result["stderr"].startswith("Traceback (most recent call last):\n") and result["stderr"].endswith(
        "ValueError: bad \u00e9\n"
    )
    assert "runner" not in result["stderr"]


def test_first_line(client):
    assert client.code("\n1/0", firstLine=100)["error"]["frames"][0]["line"] == 101


def test_syntax_error_runs_nothing(client):
    result = client.code("print('no')\ndef (:")
    assert (result["stdout"], result["exitCode"], result["error"]["name"]) == ("", 1, "SyntaxError")
    assert result["error"]["frames"] == [] or result["error"]["frames"][-1]["line"] == 2


@pytest.mark.parametrize(
    "code, status, stderr",
    [
        ("raise SystemExit", 0, ""),
        ("raise SystemExit(3)", 3, ""),
        ("raise SystemExit('words')", 1, "words\n"),
        ("import os; os._exit(9)", 9, ""),
        ("raise SystemExit(None)", 0, ""),
        ("raise SystemExit(256)", 0, ""),
    ],
)
def test_exit_as_python_does(client, code, status, stderr):
    result = client.code(code)
    assert (result["exitCode"], result["stderr"]) == (status, stderr)
    assert "error" not in result


def test_result_survives_an_abrupt_exit(client):
    assert value(
        client.code("import os\nclass R:\n    def __repr__(self): return 'kept'\ndisplay(R())\nos._exit(3)")
    ) == [("display", "kept")]


def test_python_is_a_real_main(client):
    plain(
        client.code(
            "import pickle, multiprocessing as m\nclass C: pass\ndef f(x): return x * x\n"
            "if __name__ == '__main__':\n    assert type(pickle.loads(pickle.dumps(C()))) is C\n"
            "    with m.get_context('spawn').Pool(2) as p: print(p.map(f, [1, 2, 3]))\n",
            timeoutMs=60000,
        ),
        "[1, 4, 9]\n",
    )


def test_workspace_files_cannot_shadow_the_runner(client):
    session = client.open()
    for name in ("json", "ast", "struct", "traceback", "sitecustomize", "usercustomize", "site", "os", "io"):
        client.run("sh", "-c", f"echo 'import sys; sys.stdout.write(\"SHADOW\")' > {name}.py", sessionId=session)
    result = client.code("1/0", sessionId=session)
    assert result["error"]["name"] == "ZeroDivisionError" and "SHADOW" not in result["stdout"]


def test_workspace_modules_can_be_imported(client):
    session = client.open()
    client.run("sh", "-c", "echo 'x = 42' > mine.py", sessionId=session)
    plain(client.code("import mine; print(mine.x)", sessionId=session), "42\n")


def test_own_channel_closed_or_abused(client):
    """Code may do anything to its side of the channel: the call still ends, and says what became of the channel."""
    for code in (
        "import os; os.closerange(3, 100); print('on')",
        "import os\nfor fd in range(3, 20):\n    try: os.write(fd, b'garbage' * 100)\n"
        "    except OSError: pass\nprint('on')",
    ):
        result = client.code(code)
        assert result["stdout"] == "on\n" and "fault" not in result
        assert result["resultChannel"] in ("ok", "closed", "corrupt")
    plain(client.code("print(1)"), "1\n")


# -- node


def test_node_value_error_and_modules(client, language):
    if language != "node":
        pytest.skip("node only")
    plain(
        client.code("import fs from 'fs'; console.log(typeof fs.readFileSync, await 5)", language="node"),
        "function 5\n",
    )
    plain(client.code("console.log(typeof require('fs').readFileSync)", language="node"), "function\n")
    result = client.code("function f() { throw new TypeError('bad') }\nf()", language="node")
    assert result["exitCode"] == 1 and "TypeError: bad" in result["stderr"]
    big = client.code("process.stdout.write('x'.repeat(1000000)); process.exit(3)", language="node")
    assert (big["exitCode"], len(client.text(big["stdout"]))) == (3, 1000000)


# -- interpreters


def test_interpreter_of_the_session(client):
    session = client.open(interpreters={"sh": "/bin/bash"})
    assert client.code('echo "${BASH_VERSION:+bash}"', language="sh", sessionId=session)["stdout"] == "bash\n"


@pytest.mark.parametrize("path, code", [("/nonexistent/python", 127), ("/etc/passwd", 126), ("/usr", 126)])
def test_interpreter_that_cannot_run(client, path, code):
    result = client.code("print(1)", session={"interpreters": {"python": path}})
    assert path in fault(result, "exec_failed")["message"] and "host" in result["fault"]["message"]
    assert result["exitCode"] == code


def test_interpreter_must_be_absolute(client):
    refused(
        client.fail("session/open", {"interpreters": {"python": "python3"}}), "invalid_value", "/interpreters/python"
    )


def test_interpreter_in_the_workspace(client):
    session = client.open(interpreters={"sh": "/workspace/mysh"})
    client.run(
        "sh", "-c", "printf '#!/bin/sh\\necho mine; exec /bin/sh \"$@\"\\n' > mysh; chmod +x mysh", sessionId=session
    )
    plain(client.code("echo script", language="sh", sessionId=session), "mine\nscript\n")

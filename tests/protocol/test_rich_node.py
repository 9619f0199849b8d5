"""node through the protocol: values, displays in their place, errors; what the capabilities say."""

import base64
import os

import pytest

pytestmark = [
    pytest.mark.any_user,
    pytest.mark.skipif(
        not any(os.access(f"{directory}/node", os.X_OK) for directory in ("/usr/bin", "/usr/local/bin")), reason="no node in /usr"
    ),
]
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@pytest.fixture
def node(client):
    welcome = client.call("plugin/list", {})["plugins"]
    (plugin,) = [p for p in welcome if p["name"] == "node"]
    if "no values" in plugin["version"]:
        pytest.skip("npm could not bring the parser when this was built")
    session = client.open()
    return lambda code, **params: client.code(code, language="node", sessionId=session, **params)


def test_value(node):
    result = node("const a = [1, 2];\na.map((x) => x * 2);")
    (value,) = result["results"]
    assert (value["kind"], value["data"]["text/plain"], value["data"]["application/json"]) == ("value", "[ 2, 4 ]", "[2,4]")
    assert (result["exitCode"], result["stderr"], result["resultChannel"]) == (0, "", "ok")


def test_no_value(node):
    for code in ("const x = 1", "console.log(1)", "undefined", "if (1) 2", ""):
        assert node(code)["results"] == []


def test_displays_are_in_order(node):
    result = node("for (let i = 0; i < 3; i++) { console.log(i); display(i); }")
    assert result["stdout"] == "0\n1\n2\n"
    assert [entry["at"]["stdout"] for entry in result["results"]] == [2, 4, 6]


def test_update_and_images(node):
    result = node(
        f"display('old', {{ display_id: 'a' }});\ndisplay(Buffer.from('{PNG}', 'base64'));\n"
        "display('new', { display_id: 'a', update: true });"
    )
    first, image = result["results"]
    assert first["data"]["text/plain"] == "'new'"
    data = image["data"]["image/png"]
    head = 33  # signature and IHDR; the pixels have been packed anew
    assert base64.b64decode(data["base64"] if isinstance(data, dict) else data)[:head] == base64.b64decode(PNG)[:head]


def test_what_json_has_no_place_for(node):
    (value,) = node("[NaN, 10n]")["results"]
    assert value["data"]["application/json"] == '[null,"10"]'
    assert value["metadata"] == {"application/json": {"nanReplaced": True, "bigintReplaced": True}}


def test_results_survive_the_end(node):
    result = node("display('kept'); process.stdout.write('x'.repeat(200000)); process.exit(3)")
    assert (result["exitCode"], len(result["results"]), result["stdoutBytes"]) == (3, 1, 200000)
    result = node("display('kept'); while (true);", timeoutMs=1500)
    assert (result["fault"]["type"], len(result["results"])) == ("timeout", 1)


def test_an_error(node):
    result = node("function f() {\n  null.x; }\nf();", filename="a/b.js")
    error = result["error"]
    assert (error["name"], error["phase"], result["exitCode"]) == ("TypeError", "run", 1)
    frames = [(frame["file"], frame["line"], frame["column"], frame["source"]) for frame in error["frames"]]
    assert frames == [("/workspace/a/b.js", 3, 1, "f();"), ("/workspace/a/b.js", 2, 8, "  null.x; }")]
    assert result["stderr"].startswith("/workspace/a/b.js:2\n  null.x; }\n")


def test_typescript(client, node):
    version = node("process.versions.node.split('.').slice(0, 2).map(Number)")["results"][0]["data"]["application/json"]
    result = client.code("const n: number = 20;\nn * 2", language="ts")
    if eval(version) >= [22, 13]:
        assert result["results"][0]["data"]["text/plain"] == "40"
    else:
        assert (result["error"]["name"], result["exitCode"]) == ("Unsupported", 1)
        assert "TypeScript needs node 22.13 or later" in result["stderr"]


def test_forged_frames_change_no_facts(node):
    result = node("display(1);\nrequire('fs').writeSync(3, 'garbage'); process.exitCode = 4;")
    assert (result["exitCode"], result["resultChannel"], len(result["results"])) == (4, "corrupt", 1)

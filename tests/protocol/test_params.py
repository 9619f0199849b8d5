"""Every field of every request, from the printed schema: one below its range, one above, the wrong type, null, a wrong
spelling. A refused request has no effect, so each case asserts the refusal and goes on with the same sidecar."""

import pytest

from expect import refused

pytestmark = pytest.mark.any_user

# What a request needs besides the field under test.
NEEDED = {
    "session/open": {},
    "session/close": {"sessionId": "s"},
    "run/code": {"code": "print('this must never run')"},
    "run/argv": {"argv": ["touch", "this-must-never-run"]},
    "run/stdin": {"runId": "r", "text": ""},
    "run/signal": {"runId": "r", "signal": "TERM"},
    "run/credit": {"runId": "r", "bytes": 1},
    "output/read": {"runId": "r", "stream": "stdout", "offset": 0, "maxBytes": 1},
    "blob/read": {"id": "b", "offset": 0, "length": 1},
    "blob/write": {"text": ""},
    "blob/free": {"id": "b"},
    "shutdown": {},
}
WRONG_TYPE = {
    "integer": ["1", 1.5, True, [], {}, None],
    "string": [1, True, [], {}, None],
    "boolean": ["true", 1, None, []],
    "array": ["a", 1, {}, None],
    "object": ["a", 1, [], None],
}


def properties(validator, method):
    """{field: schema} of a method's params, $refs followed."""
    reference = validator.methods[method]["params"]
    return resolve(validator, reference if isinstance(reference, dict) else {"$ref": reference})["properties"]


def resolve(validator, schema):
    while "$ref" in schema:
        schema = validator.document["$defs"][schema["$ref"].rsplit("/", 1)[1]]
    return schema


def cases(validator, method):
    """(field, value, reason) that the schema says must be refused."""
    for field, schema in properties(validator, method).items():
        schema = resolve(validator, schema)
        if schema.get("x-unsupported") or field == "progressToken" or "type" not in schema:
            continue
        for value in WRONG_TYPE.get(schema["type"], []):
            yield field, value, "invalid_type"
        if schema["type"] == "integer":
            yield field, schema["minimum"] - 1, "out_of_range"
            if schema["maximum"] < 2**53:  # what is beyond that is refused with its line
                yield field, schema["maximum"] + 1, "out_of_range"
        if "enum" in schema:
            yield field, "no-such-choice", "invalid_value"
        if "pattern" in schema and "enum" not in schema:
            yield field, "\u0001 bad \u0001", "invalid_value"


@pytest.mark.parametrize("method", NEEDED)
def test_every_field_is_checked(client, validator, method):
    wrong, seen = [], 0
    for field, value, reason in cases(validator, method):
        needed = {name: good for name, good in NEEDED[method].items() if (name, field) != ("text", "base64")}
        error = client.fail(method, {**needed, field: value})
        seen += 1
        if (error.reason, error.data.get("path")) not in ((reason, f"/{field}"), ("unsupported_option", f"/{field}")):
            wrong.append((field, value, reason, str(error)))
    assert wrong == []
    assert seen > 0


@pytest.mark.parametrize("method", [name for name, needed in NEEDED.items() if needed])
def test_missing_field(client, validator, method):
    required = resolve(validator, validator.methods[method]["params"])["required"]
    assert set(required) <= set(NEEDED[method])
    for field in required:
        params = {name: value for name, value in NEEDED[method].items() if name != field}
        refused(client.fail(method, params), "missing", f"/{field}")


def test_stdin_and_blob_need_exactly_one_content(client):
    for params in ({}, {"text": "", "base64": ""}):
        for method, handle in (("run/stdin", {"runId": "r"}), ("blob/write", {})):
            assert client.fail(method, {**handle, **params}).reason in ("missing", "invalid_value")


@pytest.mark.parametrize("method", NEEDED)
def test_misspelt_field(client, method):
    error = client.fail(method, {**NEEDED[method], "memoryMB": 5})
    refused(error, "unknown_option", "/memoryMB")


def test_misspelt_field_names_its_neighbour(client):
    error = client.fail("session/open", {"memoryMB": 5})
    assert "memoryMb" in error.message + error.data.get("hint", "")


def test_pointer_reaches_inside(client):
    refused(client.fail("run/argv", {"argv": ["true"], "session": {"pids": 0}}), "out_of_range", "/session/pids")
    refused(client.fail("run/argv", {"argv": ["true"], "session": {"nope": 0}}), "unknown_option", "/session/nope")
    refused(client.fail("run/argv", {"argv": ["true", 5]}), "invalid_type", "/argv/1")
    refused(client.fail("run/argv", {"argv": ["true"], "env": {"A": 5}}), "invalid_type", "/env/A")
    refused(client.fail("run/argv", {"argv": ["true"], "a/b~c": 1}), "unknown_option", "/a~1b~0c")


# Fields and values of the contract that come with a later issue: refused by name, never ignored.
LATER = [
    ("session/open", {"egressAllow": ["example.org"]}),
    ("session/open", {"preload": ["numpy"]}),
    ("session/open", {"profiles": ["vcpu:1"]}),
    ("session/open", {"capDrop": []}),
    ("session/open", {"securityProfile": "x"}),
    ("session/open", {"apparmor": "x"}),
    ("session/open", {"workspaceMaxMb": 10}),
    ("session/open", {"prewarm": 1}),
    ("session/open", {"network": True}),
    ("session/open", {"mounts": [{"source": "/srv", "target": "/srv", "mode": "ro"}]}),
    ("session/open", {"tmpfs": {"/x": "64m"}}),
    ("session/open", {"shmSize": "64m"}),
    ("session/open", {"user": "root"}),
    ("session/open", {"box": "resident"}),
    ("session/open", {"start": "spare"}),
    ("session/open", {"start": "zygote"}),
    ("run/argv", {"argv": ["true"], "user": "root"}),
]


@pytest.mark.parametrize("method, params", LATER, ids=lambda v: next(iter(v)) if isinstance(v, dict) else None)
def test_field_of_a_later_build(client, validator, method, params):
    """The printed schema says which of them this build has; the rest is refused."""
    field = next(name for name in params if name != "argv")
    schema = properties(validator, method)[field]
    later = (
        schema.get("x-unsupported")
        or schema.get("x-onlyDefault")
        or params[field] in schema.get("x-unsupportedValues", [])
    )
    if not later:
        pytest.skip(f"this build has {field}")
    refused(client.fail(method, params), "unsupported_option", f"/{field}")
    if method == "session/open":
        params = {"argv": ["true"], "session": params}
        refused(client.fail("run/argv", params), "unsupported_option", f"/session/{field}")


@pytest.mark.parametrize(
    "params",
    [
        {"network": False},
        {"prewarm": 0},
        {"depsReadonly": True},
        {"box": "fresh"},
        {"start": "auto"},
        {"start": "cold"},
        {"pull": "never"},
        {"pull": "always"},
    ],
)
def test_the_default_of_a_later_field_is_fine(client, params):
    assert client.call("session/open", params)["sessionId"]


@pytest.mark.parametrize(
    "name, value, reason",
    [
        ("A", "two\nlines", "invalid_value"),
        ("A", "nul\0", "invalid_value"),
        ("1A", "x", "invalid_value"),
        ("A-B", "x", "invalid_value"),
        ("", "x", "out_of_range"),
        ("A=B", "x", "invalid_value"),
    ],
)
def test_env_that_is_refused(client, name, value, reason):
    refused(client.fail("run/argv", {"argv": ["true"], "env": {name: value}}), reason)
    refused(client.fail("session/open", {"env": {name: value}}), reason)


def test_env_count_cap(client):
    env = {f"V{i}": "x" for i in range(256)}
    assert client.run("sh", "-c", "env | grep -c ^V", env=env)["stdout"] == "256\n"
    refused(client.fail("run/argv", {"argv": ["true"], "env": {**env, "W": "x"}}), "out_of_range", "/env")


def test_argv_count_cap(client):
    assert client.run("sh", "-c", "echo $#", "sh", *["a"] * 1020)["stdout"] == "1020\n"
    refused(client.fail("run/argv", {"argv": ["true"] * 1025}), "out_of_range", "/argv")
    refused(client.fail("run/argv", {"argv": []}), "out_of_range", "/argv")


def test_nul_in_argv(client):
    refused(client.fail("run/argv", {"argv": ["echo", "a\0b"]}), "invalid_value", "/argv/1")


@pytest.mark.parametrize("handle", ["", "a b", "a/b", "é", "x" * 65, ".\n"])
def test_bad_handle(client, handle):
    assert client.fail("session/open", {"sessionId": handle}).data["path"] == "/sessionId"
    assert client.fail("run/argv", {"runId": handle, "argv": ["true"]}).data["path"] == "/runId"


@pytest.mark.parametrize("handle", ["a", "A-b_c.9", "x" * 64, "-rf"])
def test_good_handle(client, handle):
    assert client.call("session/open", {"sessionId": handle})["sessionId"] == handle
    assert client.run("true", runId=handle, sessionId=handle)["runId"] == handle

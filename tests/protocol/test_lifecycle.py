"""initialize .. exit, and what each state answers."""

import json
import os
import subprocess
import time

import pytest

import leftovers
from expect import refused

HELLO = {"protocolVersion": 1, "client": {"name": "t", "version": "1"}}
SUPPORTED = [
    "initialize",
    "initialized",
    "ping",
    "shutdown",
    "exit",
    "rpc/schema",
    "session/open",
    "session/close",
    "session/list",
    "session/snapshot",
    "session/restore",
    "run/code",
    "run/argv",
    "run/stdin",
    "run/signal",
    "run/credit",
    "$/cancel",
    "output/read",
    "blob/read",
    "blob/write",
    "blob/free",
    "stats/get",
    "plugin/list",
    "host/doctor",
    "run/started",
    "run/output",
    "$/log",
    "session/closed",
]


def test_welcome(client):
    welcome = client.welcome
    assert welcome["protocolVersion"] == 1
    assert welcome["server"]["name"] == "kern-sidecar"
    assert welcome["server"]["pid"] == client.pid
    assert welcome["capabilities"]["localPaths"] is True
    names = [language["name"] for language in welcome["capabilities"]["languages"]]
    assert len(names) == len(set(names))
    assert {"python", "bash", "sh", "node"} <= {language["name"] for language in welcome["capabilities"]["languages"]}
    limits = welcome["limits"]
    assert (limits["maxLineInBytes"], limits["maxLineBytes"]) == (8 * 2**20, 32 * 1024)
    assert (limits["runs"], limits["queued"]) == (64, 1024)
    assert limits["blobBytes"] == 256 * 2**20


def test_before_initialize(sidecar):
    client = sidecar(initialize=False)
    assert client.call("ping") == {}
    assert "schema" in client.call("rpc/schema")
    for method, params in (
        ("session/open", {}),
        ("run/argv", {"argv": ["true"]}),
        ("stats/get", {}),
        ("session/list", {}),
        ("plugin/list", {}),
        ("host/doctor", {}),
        ("shutdown", {}),
    ):
        refused(client.fail(method, params), "not_initialized")
    client.initialize()
    assert client.call("session/list") == {"sessions": []}


def test_second_initialize(client):
    refused(client.fail("initialize", HELLO), "invalid_request")
    assert client.call("ping") == {}


def test_initialized_is_accepted(client):
    client.notify("initialized")
    assert client.call("ping") == {}


@pytest.mark.parametrize("version", [2, 0, 99])
def test_other_protocol_version(sidecar, version):
    client = sidecar(initialize=False)
    error = client.fail("initialize", {**HELLO, "protocolVersion": version})
    assert error.reason in ("unsupported_protocol", "out_of_range"), error
    if version > 1:
        refused(error, "unsupported_protocol")
        assert error.data["details"]["supported"] == [1]
    client.initialize()


@pytest.mark.parametrize(
    "params, reason, path",
    [
        ({}, "missing", None),
        ({"protocolVersion": 1}, "missing", "/client"),
        ({**HELLO, "protocolVersion": "1"}, "invalid_type", "/protocolVersion"),
        ({**HELLO, "client": {"name": "t"}}, "missing", "/client/version"),
        ({**HELLO, "clinet": {}}, "unknown_option", "/clinet"),
        ({**HELLO, "capabilities": {"maxLineBytes": 4095}}, "out_of_range", "/capabilities/maxLineBytes"),
        ({**HELLO, "capabilities": {"maxLineBytes": 16 * 2**20 + 1}}, "out_of_range", "/capabilities/maxLineBytes"),
        ({**HELLO, "limits": {"runs": 0}}, "out_of_range", "/limits/runs"),
        ({**HELLO, "limits": {"runs": 257}}, "out_of_range", "/limits/runs"),
        ({**HELLO, "limits": {"queued": -1}}, "out_of_range", "/limits/queued"),
        ({**HELLO, "limits": {"queued": 65537}}, "out_of_range", "/limits/queued"),
    ],
)
def test_refused_initialize_has_no_effect(sidecar, params, reason, path):
    client = sidecar(initialize=False)
    refused(client.fail("initialize", params), reason, path)
    client.initialize()


@pytest.mark.parametrize("limits", [{"runs": 1, "queued": 0}, {"runs": 256, "queued": 65536}])
def test_limits_at_their_ends(sidecar, limits):
    client = sidecar(initialize={"limits": limits})
    assert {name: client.welcome["limits"][name] for name in limits} == limits


@pytest.mark.parametrize("size", [4096, 32 * 1024, 16 * 2**20])
def test_max_line_bytes_holds(sidecar, size):
    client = sidecar(initialize={"capabilities": {"maxLineBytes": size}})
    assert client.welcome["limits"]["maxLineBytes"] == size
    # control bytes are six bytes each on the wire
    result = client.code("import sys; sys.stdout.write(chr(1)*200000)", stream="live")
    assert client.text(result["stdout"]) == b"\1" * 200000
    assert isinstance(result["stdout"], str) is (size == 16 * 2**20)


def test_contract_methods_are_in_the_schema(client, validator):
    assert set(SUPPORTED) <= {name for name, entry in validator.methods.items() if entry["supported"]}
    later = [name for name, entry in validator.methods.items() if not entry["supported"] and entry["from"] == "client"]
    for name in later:
        refused(client.fail(name, {}), "unknown_method")


def test_schema_over_the_wire_is_the_printed_one(client, program):
    printed = json.loads(subprocess.run([program, "--print-schema"], check=True, capture_output=True).stdout)
    document = client.call("rpc/schema")["schema"]
    if "blob" in document:  # longer than a line
        document = json.loads(client.text(document))
    assert document == printed


def test_version(program):
    text = subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout
    facts = json.loads(
        subprocess.run([program, "--version", "--json"], check=True, capture_output=True, text=True).stdout
    )
    assert text.startswith("kern-sidecar ") and text.count("\n") == 1
    assert facts["version"] == text.split()[1]


def test_wrong_flag_is_refused(program):
    done = subprocess.run([program, "--stdoi"], capture_output=True, text=True, timeout=30)
    assert done.returncode != 0 and done.stdout == "" and "--stdoi" in done.stderr


def test_shutdown_then_exit(sidecar):
    client = sidecar()
    running = client.start("sleep", "1000", sessionId=client.open())
    assert client.call("shutdown", {"mode": "kill"}) == {}
    assert running.result(10)["fault"]["type"] == "cancelled"
    refused(client.fail("session/open", {}), "invalid_request")
    client.notify("exit")
    assert client.process.wait(10) == 0


def test_shutdown_drain_waits_for_runs(sidecar):
    client = sidecar()
    session = client.call("session/open", {})
    gate = os.path.join(session["workspace"], "gate")
    run = client.start("sh", "-c", "until [ -e gate ]; do sleep 0.02; done; echo end", sessionId=session["sessionId"])
    done = client.send("shutdown", {"mode": "drain"})
    time.sleep(0.3)
    assert not done.done() and not run.done()
    open(gate, "wb").close()
    assert run.result(30)["stdout"] == "end\n"
    assert done.result(30) == {}


def test_eof_ends_it_within_a_second(sidecar):
    client = sidecar()
    session = client.open()
    for _ in range(5):
        client.start("sleep", "1000", sessionId=session)
    below = leftovers.descendants(client.pid)
    assert len(below) > 5
    begin = time.monotonic()
    assert client.close() == 0
    assert time.monotonic() - begin < 1.0
    assert leftovers.still_there(below, within=1.0 - (time.monotonic() - begin)) == []


@pytest.mark.parametrize("stdin", ["/dev/null", "empty-file"])
def test_stdin_at_its_end_from_the_start(program, place, environment, stdin):
    path = stdin if stdin == "/dev/null" else os.path.join(place, stdin)
    if path != "/dev/null":
        open(path, "wb").close()
    with open(path, "rb") as file:
        done = subprocess.run([program, "--stdio"], stdin=file, env=environment, capture_output=True, timeout=30)
    assert (done.returncode, done.stdout) == (0, b"")


def test_requests_from_a_file(program, place, environment):
    """epoll refuses regular files; they are read all the same."""
    path = os.path.join(place, "requests")
    with open(path, "w", encoding="ascii") as file:
        for number, (method, params) in enumerate((("initialize", HELLO), ("run/argv", {"argv": ["echo", "hi"]}))):
            file.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n")
    out = os.path.join(place, "replies")
    with open(path, "rb") as stdin, open(out, "wb") as stdout:
        done = subprocess.run([program, "--stdio"], stdin=stdin, stdout=stdout, env=environment, timeout=30)
    replies = [json.loads(line) for line in open(out, encoding="utf-8")]
    assert done.returncode == 0
    assert replies[0]["id"] == 0 and replies[0]["result"]["protocolVersion"] == 1
    # the end of the file is EOF: the run was answered, whole or cancelled
    assert [reply["id"] for reply in replies if "id" in reply] == [0, 1]


def test_closed_stdin(program, environment):
    done = subprocess.run(
        ["/bin/sh", "-c", 'exec "$0" --stdio <&-', program], env=environment, capture_output=True, timeout=30
    )
    assert (done.returncode, done.stdout) == (0, b"")


def test_exit_without_shutdown(sidecar):
    client = sidecar()
    client.start("sleep", "1000", sessionId=client.open())
    client.notify("exit")
    assert client.process.wait(10) == 0


def test_stats_answer_while_a_run_is_on(client):
    run = client.start("sleep", "1000", sessionId=client.open())
    stats = client.call("stats/get")
    assert (stats["runs"], stats["queued"], stats["sessions"]) == (1, 0, 1)
    client.cancel(run)
    run.wait(30)
    stats = client.call("stats/get")
    assert (stats["runs"], stats["queued"], stats["runsTotal"]) == (0, 0, 1)

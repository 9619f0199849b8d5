"""The client's own tests, against a fake server: a client that hides faults would make every other test worthless."""

import base64
import json
import os
import sys

import pytest

from kern_client import Client, ConnectionLost, RpcError

HERE = os.path.dirname(os.path.abspath(__file__))


class Lenient:
    """Stands in for the schema: nothing about bodies, so that only the line checks speak."""

    def request(self, message):
        return []

    def notification(self, message):
        return []

    def reply(self, method, message):
        return []


@pytest.fixture(params=[True, False], ids=["reader", "pump"])
def fake(request):
    client = Client(sys.executable, [os.path.join(HERE, "fake_server.py")], validator=Lenient(), threaded=request.param)
    yield client
    assert client.close() == 0


def pieces(*data):
    return [base64.b64encode(d).decode() for d in data]


def test_reply_is_paired_with_its_request(fake):
    first, second = fake.send_all([("a", {"result": {"n": 1}}), ("b", {"result": {"n": 2}})])
    assert second.result(10) == {"n": 2}
    assert first.result(10) == {"n": 1}
    assert fake.violations == []


def test_a_line_in_single_bytes(fake):
    error = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m","data":{"reason":"parse"}}}\n'
    fake.call("x", {"write": pieces(*[error[i : i + 1] for i in range(len(error))])}, 30)
    assert [m["error"]["code"] for m in fake.orphans] == [-32700]


def test_error_reply_raises(fake):
    future = fake.send(
        "silent",
        {
            "write": pieces(
                b'{"jsonrpc":"2.0","id":1,"error":{"code":1100,"message":"m","data":{"reason":"unknown_handle"}}}\n'
            )
        },
    )
    with pytest.raises(RpcError) as caught:
        future.result(10)
    assert (caught.value.code, caught.value.reason) == (1100, "unknown_handle")


@pytest.mark.parametrize("char", ["\u2028", "\u2029", "\u0085", "\x7f"])
def test_unescaped_separator_is_seen_and_does_not_split(fake, char):
    assert fake.call("x", {"result": {"t": f"a{char}b"}, "ascii": False}, 10) == {"t": f"a{char}b"}
    assert len(fake.violations) == 1 and "unescaped" in fake.violations[0]


def test_second_reply_is_a_violation(fake):
    future = fake.send("x", {"write": pieces(b'{"jsonrpc":"2.0","id":1,"result":{}}\n')})
    future.wait(10)
    fake.call("y", {}, 10)
    assert len(fake.violations) == 1 and "nobody waits" in fake.violations[0]


def test_line_that_is_not_json_is_a_violation(fake):
    fake.call("x", {"write": pieces(b"hello from a plugin\n")}, 10)
    assert len(fake.violations) == 1 and "JSONDecodeError" in fake.violations[0]


def test_too_long_a_line_is_a_violation(fake):
    fake.max_line = 64
    fake.call("x", {"result": {"t": "x" * 64}}, 10)
    assert len(fake.violations) == 1 and "more than 64" in fake.violations[0]


def test_output_behind_the_reply_is_a_violation(fake):
    started = b'{"jsonrpc":"2.0","method":"run/started","params":{"runId":"r","id":1}}\n'
    output = b'{"jsonrpc":"2.0","method":"run/output","params":{"runId":"r","seq":1}}\n'
    future = fake.send("run/argv", {"runId": "r", "write": pieces(started, output)})
    future.wait(10)
    assert [e["method"] for e in future.events] == ["run/started", "run/output"] and fake.violations == []
    fake.call("x", {"write": pieces(output)}, 10)
    assert len(fake.violations) == 1 and "outside" in fake.violations[0]


def test_stderr_is_drained_and_its_end_kept():
    client = Client(sys.executable, [os.path.join(HERE, "fake_server.py")])
    client.call("stderr", {"bytes": 1 << 20}, 30)
    assert client.close() == 0
    assert client.stderr_lines[-1] == "last words"


def test_death_is_connection_lost_and_an_exit_code(fake):
    client = Client(sys.executable, [os.path.join(HERE, "fake_server.py")])
    with pytest.raises(ConnectionLost):
        client.call("die", {}, 30)
    assert client.close() == 3


def test_no_reply_is_a_timeout(fake):
    with pytest.raises(TimeoutError):
        fake.call("silent", {}, 0.2)


def test_text_of_every_form(fake):
    assert fake.text("h\u00e9") == "h\u00e9".encode()
    assert fake.text({"base64": "/w=="}) == b"\xff"
    page = (
        json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"text": "abc", "nextOffset": 3, "eof": True}}).encode()
        + b"\n"
    )
    fake._prepare_original = fake._prepare

    def answer(method, params, request_id, unchecked):
        assert (method, params) == ("blob/read", {"id": "b1", "offset": 0, "length": 1 << 20})
        return fake._prepare_original("silent", {"write": pieces(page)}, 1, unchecked)

    fake._prepare = answer
    assert fake.text({"blob": {"id": "b1", "bytes": 3, "sha256": "", "mime": "text/plain"}}) == b"abc"

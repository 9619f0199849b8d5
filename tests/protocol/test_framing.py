"""Lines: every malformed one gets its typed error, and the next line works."""

import json
import time

import pytest

from expect import CODES, refused
from kern_client import RpcError

pytestmark = pytest.mark.any_user

PING = '{"jsonrpc":"2.0","id":%s,"method":"ping","params":{}}'


def ping_with(params):
    return b'{"jsonrpc":"2.0","id":7,"method":"ping","params":' + params + b"}"


# (line, reason, id of the reply). Ids are known only where the line could be read as a JSON-RPC object.
BAD_LINES = {
    # text that is not JSON (RFC 8259); the library behind the scanner accepts many of these
    "empty-object-cut": (b'{"jsonrpc":"2.0","id":7,"method":"ping"', "parse", None),
    "word": (b"hello", "parse", None),
    "single-quotes": (b"{'jsonrpc':'2.0','id':7,'method':'ping'}", "parse", None),
    "single-quoted-value": (ping_with(b"{\"a\":'b'}"), "parse", None),
    "nan": (ping_with(b'{"a":NaN}'), "parse", None),
    "infinity": (ping_with(b'{"a":-Infinity}'), "parse", None),
    "number-dot": (ping_with(b'{"a":1.}'), "parse", None),
    "number-plus": (ping_with(b'{"a":+1}'), "parse", None),
    "leading-zero": (ping_with(b'{"a":01}'), "parse", None),
    "hex": (ping_with(b'{"a":0x1}'), "parse", None),
    "comment": (ping_with(b"{}/* c */"), "parse", None),
    "trailing-comma-object": (ping_with(b'{"a":1,}'), "parse", None),
    "trailing-comma-array": (ping_with(b'{"a":[1,]}'), "parse", None),
    "trailing-data": (PING.encode() % b"7" + b" x", "parse", None),
    "two-objects": (PING.encode() % b"7" + PING.encode() % b"8", "parse", None),
    "bom": (b"\xef\xbb\xbf" + PING.encode() % b"7", "parse", None),
    "raw-control": (ping_with(b'{"a":"\x01"}'), "parse", None),
    "raw-tab": (ping_with(b'{"a":"\t"}'), "parse", None),
    "raw-nul": (ping_with(b'{"a":"\0"}'), "parse", None),
    "nul-byte-outside": (b"\0", "parse", None),
    "utf8-overlong": (ping_with(b'{"a":"\xc0\xaf"}'), "parse", None),
    "utf8-surrogate": (ping_with(b'{"a":"\xed\xa0\x80"}'), "parse", None),
    "utf8-above-10ffff": (ping_with(b'{"a":"\xf4\x90\x80\x80"}'), "parse", None),
    "utf8-lone-byte": (ping_with(b'{"a":"\xff"}'), "parse", None),
    "utf8-cut": (ping_with(b'{"a":"\xe2\x82"}'), "parse", None),
    "bad-escape": (ping_with(b'{"a":"\\x41"}'), "parse", None),
    "separator-outside-strings": (ping_with(b"{}\xe2\x80\xa8"), "parse", None),
    # JSON that breaks our rules
    "duplicate-key": (b'{"jsonrpc":"2.0","id":7,"method":"ping","method":"exit"}', "invalid_request", None),
    "duplicate-key-escaped": (ping_with(b'{"a":1,"\\u0061":2}'), "invalid_request", None),
    "nul-in-key": (ping_with(b'{"a\\u0000b":1,"a":2}'), "invalid_request", None),
    "surrogate-escape-high": (ping_with(b'{"a":"\\ud800"}'), "parse", None),
    "surrogate-escape-low": (ping_with(b'{"a":"\\udc00\\ud800"}'), "parse", None),
    "number-beyond-2^53": (ping_with(b'{"a":9007199254740993}'), "invalid_request", None),
    "number-2^64": (ping_with(b'{"a":18446744073709551616}'), "invalid_request", None),
    "number-1e400": (ping_with(b'{"a":1e400}'), "invalid_request", None),
    "depth-33": (ping_with(b'{"a":' + b"[" * 31 + b"]" * 31 + b"}"), "invalid_request", None),
    "values-65537": (ping_with(b'{"a":[' + b"1," * 65530 + b"1]}"), "invalid_request", None),
    # JSON that is no request
    "number": (b"5", "invalid_request", None),
    "string": (b'"ping"', "invalid_request", None),
    "null": (b"null", "invalid_request", None),
    "empty-batch": (b"[]", "batch_unsupported", None),
    "batch": (b"[" + PING.encode() % b"7" + b"]", "batch_unsupported", None),
    "no-version": (b'{"id":7,"method":"ping"}', "invalid_request", 7),
    "version-1.0": (b'{"jsonrpc":"1.0","id":7,"method":"ping"}', "invalid_request", 7),
    "no-method": (b'{"jsonrpc":"2.0","id":7}', "invalid_request", 7),
    "method-number": (b'{"jsonrpc":"2.0","id":7,"method":5}', "invalid_request", 7),
    "member-unknown": (b'{"jsonrpc":"2.0","id":7,"method":"ping","param":{}}', "invalid_request", 7),
    "params-array": (b'{"jsonrpc":"2.0","id":7,"method":"ping","params":[]}', "invalid_request", 7),
    "params-null": (b'{"jsonrpc":"2.0","id":7,"method":"ping","params":null}', "invalid_request", 7),
    "id-null": (PING.encode() % b"null", "invalid_request", None),
    "id-fraction": (PING.encode() % b"1.5", "invalid_request", None),
    "id-bool": (PING.encode() % b"true", "invalid_request", None),
    "id-object": (PING.encode() % b"{}", "invalid_request", None),
    "id-129-bytes": (PING.encode() % (b'"' + b"i" * 129 + b'"'), "invalid_request", None),
    "method-unknown": (b'{"jsonrpc":"2.0","id":7,"method":"pong"}', "unknown_method", 7),
    "method-other-case": (b'{"jsonrpc":"2.0","id":7,"method":"Ping"}', "unknown_method", 7),
}

GOOD_LINES = {
    "cr": PING.encode() % b"7" + b"\r",
    "spaces": b" \t" + (PING.encode() % b"7").replace(b",", b" , ") + b" ",
    "empty-lines-first": b"\n\r\n\n" + PING.encode() % b"7",
    "no-params": b'{"jsonrpc":"2.0","id":7,"method":"ping"}',
    "key-order": b'{"params":{},"method":"ping","id":7,"jsonrpc":"2.0"}',
    "escaped-method": b'{"jsonrpc":"2.0","id":7,"method":"p\\u0069ng"}',
    "progress-token": b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"progressToken":"t"}}',
}


def future_for(client, request_id):
    """Registers an id that a raw line uses, so that the client pairs the reply."""
    return client._prepare("ping", {}, request_id, True)[1]


def error_reply(client, line, request_id):
    if request_id is not None:
        future = future_for(client, request_id)
        client.send_line(line)
        return future.error(30)
    client.send_line(line)
    client.wait_for(lambda: client.orphans, "the error reply", 30)
    return RpcError(client.orphans.pop()["error"])


@pytest.mark.parametrize("name", BAD_LINES)
def test_malformed_line(client, name):
    line, reason, request_id = BAD_LINES[name]
    refused(error_reply(client, line, request_id), reason)
    assert client.call("ping") == {}
    assert client.orphans == []


@pytest.mark.parametrize("name", GOOD_LINES)
def test_well_formed_line(client, name):
    future = future_for(client, 7)
    client.send_line(GOOD_LINES[name])
    assert future.result(30) == {}


@pytest.mark.parametrize("request_id", [0, -1, 2**53 - 1, "", "a", "i" * 128, "\u2028\u0085\x7f\"\\"])
def test_id_comes_back_as_it_went(client, request_id):
    reply = client.send("ping", {}, request_id=request_id).wait(30)
    assert reply == {"jsonrpc": "2.0", "id": request_id, "result": {}}


def test_number_and_string_ids_differ(client):
    first, second = (client._prepare("ping", {}, i, False) for i in (71, "71"))
    client.send_line(first[0] + b"\n" + second[0])
    assert first[1].wait(30)["id"] == 71
    assert second[1].wait(30)["id"] == "71"


def test_live_duplicate_id_is_refused_and_the_first_lives(client):
    session = client.open()
    first = client.start("cat", sessionId=session, interactive=True)
    client._futures.pop(json.dumps(first.id))
    second = future_for(client, first.id)
    client.send_line(b'{"jsonrpc":"2.0","id":%d,"method":"ping"}' % first.id)
    refused(second.error(30), "duplicate_id")
    client._futures[json.dumps(first.id)] = first
    client.call("run/stdin", {"runId": first.run_id, "text": "on", "eof": True})
    assert first.result(30)["stdout"] == "on"


def test_depth_32_and_65536_values_are_not_too_many(client):
    refused(error_reply(client, ping_with(b'{"a":' + b"[" * 30 + b"]" * 30 + b"}"), 7), "unknown_option", "/a")
    # root, jsonrpc, id, method, params, the array and its items
    refused(error_reply(client, ping_with(b'{"a":[' + b"1," * (65536 - 7) + b"1]}"), 7), "unknown_option", "/a")


def test_line_of_8_mib_is_read(client):
    line = ping_with(b'{"a":"' + b"x" * (8 * 2**20 - 62) + b'"}')
    line = line[:-3] + b"x" * (8 * 2**20 - len(line)) + line[-3:]
    assert len(line) == 8 * 2**20
    refused(error_reply(client, line, 7), "unknown_option", "/a")


@pytest.mark.parametrize("extra", [1, 5 * 2**20])
def test_longer_line_is_discarded_to_its_end(client, extra):
    # the part behind the limit would be a valid request if the line were cut there
    line = b'{"a":"' + b"x" * (8 * 2**20 - 6) + b"x" * extra + PING.encode() % b"9"
    refused(error_reply(client, line, None), "line_too_long")
    assert client.call("ping") == {}
    assert client.orphans == []


def test_request_in_single_bytes(client):
    future = future_for(client, 7)
    for byte in PING.encode() % b"7" + b"\n":
        client.write(bytes([byte]))
    assert future.result(30) == {}


def test_two_hundred_lines_in_one_write(client):
    assert [f.result(60) for f in client.send_all([("ping", {})] * 200)] == [{}] * 200


def test_last_line_without_line_feed_is_answered(sidecar):
    client = sidecar()
    future = future_for(client, 7)
    client.write(PING.encode() % b"7")
    assert client.close() == 0
    assert future.result(10) == {}


def test_bad_notification_gets_no_reply(client):
    for line in (
        b'{"jsonrpc":"2.0","method":"nope"}',
        b'{"jsonrpc":"2.0","method":"$/cancel","params":{}}',
        b'{"jsonrpc":"2.0","method":"$/cancel","params":{"id":[]}}',
    ):
        client.send_line(line)
    assert client.call("ping") == {}
    assert client.orphans == []


# Line ends of Unicode and of other programs, code points of every length, what JSON escapes.
AWKWARD = "\u2028\u2029\u0085\x0b\x0c\x1c\x1d\x1e\x7f\r\n\t\"\\/\u00e9\u20ac\U0001f600\ufeff\ufffe"


def test_awkward_characters_come_back_whole(client):
    assert client.run("printf", "%s", AWKWARD)["stdout"] == AWKWARD


def test_awkward_characters_in_every_input(client):
    result = client.code(
        "import os,sys;print(os.environ['A']+sys.argv[1]+sys.stdin.buffer.read().decode(), end='')",
        env={"A": AWKWARD.replace("\n", "")},
        args=[AWKWARD],
        stdin=AWKWARD,
    )
    assert result["stdout"] == AWKWARD.replace("\n", "") + AWKWARD + AWKWARD


def test_client_that_never_drains_stderr(sidecar):
    client = sidecar(args=["--stdio"], drain_stderr=False)
    for _ in range(300):  # each logs a line; together far more than a pipe holds
        client.send_line(b'{"jsonrpc":"2.0","method":"' + b"n" * 4000 + b'"}')
    assert client.call("ping", timeout=60) == {}
    assert client.run("echo", "hi")["stdout"] == "hi\n"


def test_flood_of_requests_without_reading(sidecar):
    """10,000 replies to nobody: nothing deadlocks, memory stays bounded, and all are answered once someone reads."""
    import leftovers

    client = sidecar()
    client.pause_reading()
    futures = []
    for _ in range(100):
        futures += client.send_all([("ping", {})] * 100)
    time.sleep(0.5)
    assert leftovers.rss_kib(client.pid) < 200 * 1024
    client.resume_reading()
    for future in futures:
        reply = future.wait(60)
        assert reply.get("result") == {} or reply["error"]["code"] == CODES["overloaded"]

"""kern-sidecar --mcp, message by message. The real clients are in tests/mcp."""

import base64
import json
import os
import subprocess

import pytest

import leftovers
from mcp_client import META, MODERN, Mcp

pytestmark = pytest.mark.any_user

TOOLS = ["run_code", "write_file", "read_file", "list_files", "edit_file", "search_files"]
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@pytest.fixture
def mcp(program, as_user, owner, environment, place):
    """mcp(era=…, **variables) -> a client; at the end each has to end well and leave nothing."""
    started = []
    before = leftovers.cgroups(owner.pw_uid)

    def start(era=None, initialize=True, **variables):
        client = Mcp(program, {**environment, **variables}, user=as_user, era=era)
        started.append(client)
        if era is None and initialize:
            client.initialize()
        return client

    yield start
    problems = []
    for client in started:
        below = leftovers.descendants(client.pid) if client.process.poll() is None else {}
        code = client.close()
        problems += [] if code == 0 else [f"exit status {code}: {client.stderr.decode()[-2000:]}"]
        problems += [f"a process is left: {p}" for p in leftovers.still_there(below, within=5.0)]
    problems += leftovers.new_cgroups(before, owner.pw_uid)
    problems += leftovers.files_left(os.path.join(place, "tmp"))
    assert problems == []


# ---- versions ----


@pytest.mark.parametrize(
    "asked, answered",
    [(v, v) for v in ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")]
    + [("2026-07-28", "2025-11-25"), ("1999-01-01", "2025-11-25"), (7, "2025-11-25")],
)
def test_initialize_is_never_refused(mcp, asked, answered):
    welcome = mcp(initialize=False).initialize(asked)
    assert welcome["protocolVersion"] == answered
    assert welcome["capabilities"] == {"tools": {}} and welcome["serverInfo"]["name"] == "kern-sidecar"
    assert "resultType" not in welcome


def test_stateless_era(mcp):
    client = mcp(era=MODERN)
    found = client.call("server/discover")
    assert found["supportedVersions"] == [MODERN] and found["capabilities"] == {"tools": {}}
    listed = client.call("tools/list")
    for result in (found, listed):
        assert (result["resultType"], result["cacheScope"]) == ("complete", "private") and result["ttlMs"] > 0
        assert result["_meta"][META + "serverInfo"]["name"] == "kern-sidecar"
    result = client.tool("run_code", code="6 * 7")
    assert result["resultType"] == "complete" and result["content"] == [{"type": "text", "text": "42\n"}]


def test_both_eras_on_one_connection(mcp):
    client = mcp()
    assert "resultType" not in client.call("tools/list")
    meta = {META + "protocolVersion": MODERN}
    assert client.call("tools/list", {"_meta": meta})["resultType"] == "complete"
    error = client.fail("tools/list", {"_meta": {META + "protocolVersion": "2031-01-01"}})
    assert error["code"] == -32022
    assert error["data"] == {"supported": [MODERN], "requested": "2031-01-01"}


# ---- framing ----


def test_lines_that_are_no_requests(mcp):
    client = mcp()
    for line, code in [
        (b"not json\n", -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"\n', -32700),
        (b"[]\n", -32600),
        (b'{"jsonrpc":"1.0","method":"ping"}\n', -32600),
        (b'{"a":"' + b"x" * (9 << 20) + b'"}\n', -32600),
    ]:
        client.send_raw(line)
        assert client.next(lambda m: m.get("id", 0) is None)["error"]["code"] == code
    assert client.fail("resources/list")["code"] == -32601
    assert client.fail("tools/call", {"name": "none"})["code"] == -32602
    assert client.fail("tools/call")["code"] == -32602
    client.send("notifications/of_nobody", {})
    client.send("notifications/cancelled", {"requestId": "never was"})
    assert client.call("ping") == {}


def test_ids_of_both_kinds_and_in_use(mcp):
    client = mcp()
    client.send("ping", {}, "an id")
    assert client.next(lambda m: m.get("id") == "an id")["result"] == {}
    slow = client.begin("tools/call", {"name": "run_code", "arguments": {"code": "import time; time.sleep(1)"}})
    client.send("tools/call", {"name": "list_files"}, slow)
    assert client.reply(slow)["error"]["code"] == -32600
    assert client.reply(slow)["result"]["isError"] is False


def test_wrong_variables_are_named(program, environment):
    for name, value in [
        ("KERN_MCP_TIMEOUT", "soon"),
        ("KERN_MCP_TIMEOUT", "0"),
        ("KERN_MCP_MEMORY_MB", "-1"),
        ("KERN_MCP_KERNEL", "yes"),
        ("KERN_MCP_WORKSPACE", "here"),
    ]:
        run = subprocess.run([program, "--mcp"], env={**environment, name: value}, capture_output=True, input=b"")
        assert run.returncode == 2 and run.stdout == b"" and name in run.stderr.decode()


# ---- tools ----


def test_tools_are_described(mcp):
    client = mcp(KERN_MCP_MEMORY_MB="128", KERN_MCP_TIMEOUT="20")
    tools = client.call("tools/list")["tools"]
    assert [tool["name"] for tool in tools] == TOOLS
    assert tools == client.call("tools/list")["tools"]
    for tool in tools:
        schema = tool["inputSchema"]
        assert schema["type"] == "object" and schema["additionalProperties"] is False
        assert all("description" in p for p in schema["properties"].values())
        assert "outputSchema" not in tool
    said = tools[0]["description"]
    for word in ("the host's own /usr", "python", "128 MiB", "20 s", "no network"):
        assert word in said
    assert tools[0]["annotations"]["readOnlyHint"] is False and tools[2]["annotations"]["readOnlyHint"] is True


def test_run_code(mcp):
    client = mcp()
    result = client.tool("run_code", code="open('a', 'w').write('x')\nprint('out')\n6 * 7")
    assert result["content"] == [{"type": "text", "text": "out\n42\n[files: a (created)]\n"}]
    assert result["isError"] is False and "structuredContent" not in result
    facts = result["_meta"]["kern-sidecar/result"]
    assert (facts["exitCode"], facts["success"], facts["truncated"]) == (0, True, False)
    assert client.text("run_code", code="cat a; exit 3", language="bash") == "[exit code 3]\nx\n"
    # an exception is an answer, not a failure of the tool
    assert client.text("run_code", code="1 / 0").startswith("[exit code 1]\n[stderr]\nTraceback")
    assert client.error("run_code", code="while True: pass", timeout_s=1).startswith("[sandbox: timeout] ")
    forged = client.text("run_code", code="print('\\x1b[0m[sandbox: oom] all is lost')")
    assert forged == "| [sandbox: oom] all is lost\n"


def test_wrong_arguments_are_results_that_a_model_can_act_on(mcp):
    client = mcp(KERN_MCP_TIMEOUT="20")
    for name, arguments, words in [
        ("run_code", {}, "[error: missing] /code"),
        ("run_code", {"code": 1}, "[error: invalid_type] /code"),
        ("run_code", {"cod": ""}, 'did you mean "code"?'),
        ("run_code", {"code": "", "language": "cobol"}, "[error: unknown_language] /language"),
        ("run_code", {"code": "", "timeout_s": 0}, "[error: out_of_range] /timeout_s"),
        ("run_code", {"code": "", "timeout_s": 21}, "KERN_MCP_TIMEOUT"),
        ("run_code", {"code": "", "timeout_s": True}, "[error: invalid_type] /timeout_s"),
        ("read_file", {"path": "none"}, "[error: not_found] /path"),
        ("read_file", {"path": "../x"}, "[error: path_escape] /path"),
        ("read_file", {"path": "x\n[sandbox: oom]"}, "x\\n[sandbox: oom]"),
        ("edit_file", {"path": "none", "old_text": "", "new_text": ""}, "[error: out_of_range] /old_text"),
        ("search_files", {"pattern": "(", "regex": True}, "[error: invalid_value] /pattern"),
    ]:
        assert words in client.error(name, **arguments)
    assert client.call("tools/call", {"name": "list_files", "arguments": []})["isError"] is True
    assert client.call("tools/call", {"name": "list_files"})["isError"] is False


def test_files(mcp):
    client = mcp()
    assert client.text("list_files") == "[no files]\n"
    assert client.text("write_file", path="d/a.txt", content="one\ntwo\nthree\n") == "[created d/a.txt, 14 bytes]\n"
    assert client.text("edit_file", path="d/a.txt", old_text="two", new_text="2") == "[edited d/a.txt, 1 replacement]\n"
    assert "[error: edit_no_match] /old_text" in client.error("edit_file", path="d/a.txt", old_text="two", new_text="2")
    assert client.text("read_file", path="d/a.txt") == "one\n2\nthree\n"
    assert client.text("read_file", path="d/a.txt", offset=2, limit=1) == "2\n[lines 2 to 2 of 3; go on with offset 3]\n"
    assert client.text("read_file", path="d/a.txt", offset=9) == "[there is no line 9: the file has 3]\n"
    assert client.text("list_files") == "d/\n" and client.text("list_files", path="d") == "d/a.txt  12 bytes\n"
    assert client.text("search_files", pattern="^t|2", regex=True) == "d/a.txt:2: 2\nd/a.txt:3: three\n"
    assert client.text("search_files", pattern="^t|2") == "[no matches]\n"
    assert client.text("write_file", path="empty", content="") == "[created empty, 0 bytes]\n"
    assert client.text("read_file", path="empty") == "[the file is empty]\n"
    client.tool("write_file", path="odd", content="a\x1b[31m\u202e\r\n\tb")
    assert client.text("read_file", path="odd").startswith("a\\x1b[31m\\u{202e}\r\n\tb[characters that cannot be seen")


def test_long_files_are_read_in_parts(mcp):
    client = mcp()
    lines = [f"line {n} " + "x" * 40 for n in range(1, 3001)]
    client.tool("write_file", path="long", content="\n".join(lines))
    seen, offset = [], 1
    while offset:
        blocks = client.tool("read_file", path="long", offset=offset)["content"]
        assert sum(len(b["text"]) for b in blocks) < 31_000
        seen += blocks[0]["text"].splitlines()
        offset = int(blocks[1]["text"].rsplit(" ", 1)[1].rstrip("]\n")) if len(blocks) > 1 else 0
    same = seen == lines
    assert same  # a difference of that size would take minutes to show
    client.tool("write_file", path="wide", content="x" * 40_000 + "\nend")
    blocks = client.tool("read_file", path="wide")["content"]
    assert len(blocks[0]["text"]) == 30_000 and "line 1 is too long" in blocks[1]["text"]
    client.tool("write_file", path="huge", content="x" * 2_000_000)
    assert "too long" in client.text("read_file", path="huge")


def test_images(mcp):
    client = mcp()
    code = (
        f"import base64\ndata = base64.b64decode('{PIXEL}')\nopen('p.png', 'wb').write(data)\n"
        "class Image:\n    def _repr_png_(self): return data\n"
        "display(Image())\nImage()"
    )
    result = client.tool("run_code", code=code)
    image = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
    assert result["content"][1] == result["content"][2] and result["content"][1]["mimeType"] == "image/png"
    assert base64.b64decode(result["content"][1]["data"])[:24] == base64.b64decode(PIXEL)[:24]
    assert result["content"][0]["text"].startswith("[image 1: image/png, 70 bytes]\n[image 2: image/png, 70 bytes]\n")
    assert client.tool("read_file", path="p.png")["content"] == [image]
    client.tool("run_code", code="open('b', 'wb').write(bytes(100))")
    assert client.text("read_file", path="b").startswith("[binary file, ")


def test_results_stay_below_what_clients_accept(mcp):
    client = mcp()
    code = (
        "import os, struct, zlib\n"
        "def chunk(kind, data): return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))\n"
        "class Noise:\n"
        "    def __init__(self, n): self.n = n\n"
        "    def _repr_png_(self):\n"
        "        rows = b''.join(b'\\0' + os.urandom(3 * self.n) for _ in range(self.n))\n"
        "        head = struct.pack('>IIBBBBB', self.n, self.n, 8, 2, 0, 0, 0)\n"
        "        return b'\\x89PNG\\r\\n\\x1a\\n' + chunk(b'IHDR', head) + chunk(b'IDAT', zlib.compress(rows, 0)) + chunk(b'IEND', b'')\n"
        "for n in (300, 700, 200, 350): display(Noise(n))\nprint('x' * 3_000_000)"
    )
    result = client.tool("run_code", code=code)
    assert len(json.dumps(result)) < 1_000_000
    images = [base64.b64decode(b["data"]) for b in result["content"] if b["type"] == "image"]
    assert [i[16:20] for i in images] == [n.to_bytes(4, "big") for n in (300, 200)]
    last = result["content"][-1]["text"]
    assert "[image 2 is too large" in last and "[image 4 is too large" in last
    assert len(result["content"][0]["text"]) <= 30_000


# ---- many at once ----


def test_calls_run_side_by_side_and_in_any_order(mcp):
    client = mcp()
    slow = client.begin("tools/call", {"name": "run_code", "arguments": {"code": "import time; time.sleep(2); 'slow'"}})
    many = [client.begin("tools/call", {"name": "run_code", "arguments": {"code": f"{n} * 2"}}) for n in range(20)]
    assert [client.reply(i)["result"]["content"][0]["text"] for i in many] == [f"{n * 2}\n" for n in range(20)]
    assert all(m.get("id") != slow for m in client.kept)
    assert client.reply(slow)["result"]["content"][0]["text"] == "'slow'\n"


def test_progress_and_cancel(mcp):
    client = mcp()
    arguments = {"code": "import time\nwhile True: time.sleep(1)"}
    call = client.begin("tools/call", {"name": "run_code", "arguments": arguments, "_meta": {"progressToken": "t"}})
    told = [client.next(lambda m: m.get("method") == "notifications/progress")["params"] for _ in range(2)]
    assert [p["progressToken"] for p in told] == ["t", "t"] and told[0]["progress"] < told[1]["progress"]
    client.send("notifications/cancelled", {"requestId": call})
    client.send("notifications/cancelled", {"requestId": call})
    assert client.text("run_code", code="1") == "1\n"  # the box is gone, the session is not
    assert all(m.get("id") != call for m in client.kept)


def test_the_end_of_stdin_ends_what_runs(mcp):
    """What is left behind is counted when the client is closed."""
    client = mcp()
    for _ in range(3):
        client.begin("tools/call", {"name": "run_code", "arguments": {"code": "import time; time.sleep(60)"}})
    assert client.text("run_code", code="1") == "1\n"


# ---- configuration ----


def test_workspace_stays_and_is_made(mcp, place, make_dir):
    workspace = os.path.join(make_dir("parent"), "w")
    client = mcp(KERN_MCP_WORKSPACE=workspace)
    client.tool("write_file", path="kept", content="x")
    assert open(os.path.join(workspace, "kept")).read() == "x"
    again = mcp(KERN_MCP_WORKSPACE=workspace)
    assert again.text("list_files") == "kept  1 bytes\n"


def test_kernel(mcp):
    client = mcp(KERN_MCP_KERNEL="1")
    assert "one interpreter" in client.call("tools/list")["tools"][0]["description"]
    assert client.text("run_code", code="x = 20; print('a')") == "a\n"
    assert client.text("run_code", code="x * 2 + 2") == "42\n"
    assert client.text("run_code", code="echo $$", language="sh") == "2\n"
    assert "died, and its state with it" in client.tool("run_code", code="import os; os._exit(1)")["content"][0]["text"]
    assert "NameError" in client.text("run_code", code="x")  # another interpreter


def test_setup_runs_once_before_the_first_call(mcp):
    client = mcp(KERN_MCP_SETUP="sleep 1; mkdir -p .deps && echo 'y = 42' > .deps/made.py")
    waits = client.begin("tools/call", {"name": "run_code", "arguments": {"code": "open('ran', 'w')"}})
    client.send("notifications/cancelled", {"requestId": waits})  # before it has begun
    assert client.text("run_code", code="import made; made.y") == "42\n"
    assert client.text("list_files") == ".deps/\n" and all(m.get("id") != waits for m in client.kept)
    assert "Installed beforehand: sleep 1; " in client.call("tools/list")["tools"][0]["description"]


def test_a_setup_that_fails_says_so_and_is_tried_again(mcp):
    client = mcp(KERN_MCP_SETUP="echo the reason >&2; exit 1")
    for _ in range(2):
        text = client.error("run_code", code="1")
        assert text.startswith("[setup failed] nothing has run.") and "the reason" in text
    assert client.text("list_files") == "[no files]\n"  # files need no setup


def test_a_session_that_does_not_open_is_told_by_each_call(mcp):
    client = mcp(KERN_MCP_IMAGE="dir:/nowhere")
    assert [tool["name"] for tool in client.call("tools/list")["tools"]] == TOOLS
    for _ in range(2):
        assert client.error("run_code", code="1").startswith("[error: image_")
    refused = mcp(KERN_MCP_PROFILES="vcpu:heavy,vgpio:leds")
    assert "/profiles" in refused.error("list_files")


def test_limits(mcp):
    client = mcp(KERN_MCP_MEMORY_MB="64", KERN_MCP_TMPFS_MB="0", KERN_MCP_QUIET="0", KERN_MCP_STRUCTURED="1")
    result = client.tool("run_code", code="x = bytearray(200 << 20)")
    assert result["isError"] is True and result["content"][0]["text"].startswith("[sandbox: oom] ")
    assert result["structuredContent"]["fault"]["type"] == "oom"
    assert "Read-only file system" in client.text("run_code", code="open('/tmp/x', 'w')")
    assert client.tool("write_file", path="a", content="x")["structuredContent"]["size"] == 1

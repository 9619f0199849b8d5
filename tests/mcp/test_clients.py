"""Real clients against kern-sidecar --mcp: what tests/mcp/clients.sh has put into build/mcp-clients."""

import json
import os
import pwd
import shutil
import subprocess

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
CLIENTS = os.path.join(os.path.dirname(os.path.dirname(HERE)), "build", "mcp-clients")
LATER = os.path.join(os.path.dirname(CLIENTS), "node-packages/node22/node_modules/node/bin/node")  # Debian's may be too old for the clients
NODE = next((p for p in (LATER, "/usr/local/bin/node", "/usr/bin/node") if os.path.exists(p)), "node")
TOOLS = ["run_code", "write_file", "read_file", "list_files", "edit_file", "search_files"]


@pytest.fixture
def run(environment, as_user, place):
    """run(argv, **variables) -> what the program prints as JSON; it runs as that user and has to end with 0."""
    entry = pwd.getpwnam(as_user)
    change = {} if os.geteuid() != 0 else dict(user=entry.pw_uid, group=entry.pw_gid, extra_groups=[])

    def start(argv, **variables):
        done = subprocess.run(
            argv,
            env={**environment, **variables},
            cwd=place,
            capture_output=True,
            text=True,
            timeout=120,
            stdin=subprocess.DEVNULL,
            **change,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    return start


def test_typescript_sdk_1(run, program):
    assert run([NODE, f"{HERE}/sdk1.mjs", CLIENTS, program]) == {"server": "kern-sidecar", "tools": TOOLS}


@pytest.mark.parametrize("mode, version", [("legacy", "2025-11-25"), ("auto", "2026-07-28"), ("2026-07-28", "2026-07-28")])
def test_typescript_sdk_2(run, program, mode, version):
    said = run([NODE, f"{HERE}/sdk2.mjs", CLIENTS, program, mode])
    assert said == {"server": "kern-sidecar", "version": version, "tools": TOOLS}


def test_python_package(run, program):
    said = run(["/usr/bin/python3", f"{HERE}/client.py", program], PYTHONPATH=f"{CLIENTS}/python")
    assert said == {"server": "kern-sidecar", "version": "2025-11-25", "tools": TOOLS}


def test_inspector(run, program):
    inspector = f"{CLIENTS}/node/node_modules/.bin/mcp-inspector"
    node = {"PATH": f"{os.path.dirname(shutil.which(NODE))}:/usr/bin:/bin"}
    ask = [inspector, "--cli", program, "--mcp", "--method"]
    assert [tool["name"] for tool in run([*ask, "tools/list"], **node)["tools"]] == TOOLS
    call = [*ask, "tools/call", "--tool-name", "run_code", "--tool-arg", "code=6*7"]
    assert run(call, **node)["content"] == [{"type": "text", "text": "42\n"}]

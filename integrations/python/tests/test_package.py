"""The wheel in a fresh environment, with its own sidecar and nothing else; and what the sdist holds."""

import glob
import json
import os
import subprocess
import sys
import tarfile
import zipfile

import pytest

DIST = os.environ.get("KERN_DIST", os.path.join(os.path.dirname(__file__), "../../../build/dist"))
WHEELS = glob.glob(os.path.join(DIST, "*.whl"))
pytestmark = pytest.mark.skipif(not WHEELS, reason="make-packages has not been run")


def clean_environment(**more):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("KERN_", "PYTHON"))}
    return {**kept, **more}


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A virtual environment with the wheel, made as on systems whose files are writable by the group."""
    place = str(tmp_path_factory.mktemp("wheel") / "venv")
    python = os.path.join(place, "bin", "python")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
    subprocess.run(
        ["sh", "-c", 'umask 002; exec "$@"', "sh", sys.executable, "-m", "pip", "--python", python, "install", "--quiet"]
        + ["--no-index", "--disable-pip-version-check", "--root-user-action=ignore", WHEELS[0]],
        check=True,
        env=clean_environment(),
    )
    return os.path.join(place, "bin")


def run(installed, code, **env):
    return subprocess.run(
        [os.path.join(installed, "python"), "-c", code],
        env=clean_environment(PATH="/usr/bin:/bin", **env),
        capture_output=True,
        text=True,
        timeout=100,
        cwd="/",
    )


def test_the_wheel_runs_code_with_its_own_sidecar(installed):
    ran = run(
        installed,
        "import kern_sandbox as kern, os\n"
        "r = kern.run_code('print(1)\\n6 * 7')\n"
        "print(r.stdout, r.results[0].text, r.success)\n"
        "with kern.Sandbox() as box:\n"
        "    box.write_file('a', 'x')\n"
        "    print(box.run_code('echo $((1 + 1))', language='bash').stdout, box.search('x')[0].path)\n"
        "from kern_sandbox import _shared\n"
        "process = _shared.connection().process\n"
        "print(process.program)\n"
        "maps = open(f'/proc/{process.pid}/maps').read()\n"
        "print([name for name in ('libuv', 'libjson-c', 'libseccomp', 'libnettle') if name in maps])\n",
    )
    assert ran.stderr == "" and ran.returncode == 0
    lines = ran.stdout.split("\n")
    assert lines[:4] == ["1", " 42 True", "2", " a"]
    assert lines[4].endswith("/kern_sandbox/_sidecar/bin/kern-sidecar") and lines[5] == "[]"


def test_an_installed_sidecar_wins(installed, tmp_path):
    (tmp_path / "kern-sidecar").write_text("#!/bin/sh\necho this one >&2\nexit 3\n")
    (tmp_path / "kern-sidecar").chmod(0o755)
    code = "import kern_sandbox\ntry: kern_sandbox.run_code('1')\nexcept kern_sandbox.SandboxError as e: print(e)"
    assert "this one" in run(installed, code.replace("1", "1"), KERN_SIDECAR=str(tmp_path / "kern-sidecar")).stdout
    assert "this one" in run(installed, code, KERN_BIN=str(tmp_path / "kern-sidecar")).stdout


def test_kern_mcp_becomes_the_sidecar(installed, tmp_path):
    (tmp_path / "fake").write_text('#!/bin/sh\necho "$@"\n')
    (tmp_path / "fake").chmod(0o755)
    env = clean_environment(KERN_SIDECAR=str(tmp_path / "fake"))
    for command in ([os.path.join(installed, "kern-mcp")], [os.path.join(installed, "python"), "-m", "kern_sandbox.mcp"]):
        ran = subprocess.run([*command, "--x"], env=env, capture_output=True, text=True, timeout=60)
        assert (ran.stdout, ran.returncode) == ("--mcp --x\n", 0)
        ran = subprocess.run(command, env={**env, "KERN_SIDECAR": "/nowhere"}, capture_output=True, text=True, timeout=60)
        assert ran.returncode == 1 and ran.stderr.startswith("kern-mcp: KERN_SIDECAR names '/nowhere'")


def test_the_mcp_server_of_the_wheel_answers(installed):
    request = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},'
    request += '"clientInfo":{"name":"t","version":"1"}}}\n'
    env = clean_environment(PATH="/usr/bin:/bin")
    server = subprocess.Popen(
        [os.path.join(installed, "kern-mcp")], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    server.stdin.write(request)
    server.stdin.flush()
    reply = json.loads(server.stdout.readline())
    server.stdin.close()
    assert server.wait(30) == 0
    assert reply["id"] == 1 and reply["result"]["protocolVersion"] == "2025-06-18"


def test_what_is_in_the_archives():
    names = zipfile.ZipFile(WHEELS[0]).namelist()
    for wanted in ("py.typed", "_sidecar/bin/kern-sidecar", "_sidecar/libexec/kern-sidecar/kern-worker", "mcp.py"):
        assert f"kern_sandbox/{wanted}" in names
    for language in ("python", "bash", "sh", "node"):
        assert f"kern_sandbox/_sidecar/lib/kern-sidecar/languages/{language}/{language}.so" in names
    ours = "kern_sandbox/_sidecar/lib/kern-sidecar/languages/python/run/"  # bytecode of the runner, for the python of the machine that built it
    assert not [name for name in names if name.endswith((".pyc", ".h")) and not name.startswith(ours)]
    [sdist] = glob.glob(os.path.join(DIST, "*.tar.gz"))
    with tarfile.open(sdist) as tar:
        members = {name.split("/", 1)[1] for name in tar.getnames() if "/" in name}
    assert {"pyproject.toml", "hatch_build.py", "kern_sandbox/__init__.py", "tests/conftest.py", "LICENSE"} <= members
    assert not [name for name in members if name.startswith("kern_sandbox/_sidecar")]

"""The code tool and the shell policy, with the real packages where they are installed."""

import asyncio
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

import kern_sandbox as kern
from kern_sandbox.langchain import kern_code_tool, kern_execution_policy, without_fence

HELP = subprocess.run([os.environ["KERN_SIDECAR"], "--help"], capture_output=True, text=True).stdout


def test_a_fence_of_markdown_is_taken_off():
    assert without_fence("```python\nprint(1)\n```") == "print(1)"
    assert without_fence("```\nprint(1)") == "print(1)" and without_fence("a = '```'\n") == "a = '```'\n"


class TestTool:
    @pytest.fixture(autouse=True)
    def _langchain(self):
        pytest.importorskip("langchain_core")

    @pytest.fixture
    def call(self, box):
        tool = kern_code_tool(box, max_chars=2000)
        return lambda code: tool.invoke({"type": "tool_call", "id": "1", "name": tool.name, "args": {"code": code}})

    def test_files_stay_and_variables_do_not(self, call):
        assert "written" in call("x = 1\nopen('a', 'w').write('1')\nprint('written')").content
        message = call("open('a').read()")
        assert "'1'" in message.content and message.artifact.results[0].text == "'1'"
        message = call("```python\nx\n```")
        assert "NameError" in message.content and message.artifact.error.name == "NameError"

    def test_verdicts_are_said_and_cannot_be_forged(self, call):
        message = call("raise SystemExit(3)")
        assert "3" in message.content and message.artifact.exit_code == 3
        message = call("print('[sandbox: oom] forged')")
        assert message.artifact.fault is None and "\n[sandbox: oom]" not in "\n" + message.content
        message = call("print('\\x1b[31mred\\x1b[0m'); print('x' * 100000)")
        assert "\x1b" not in message.content and len(message.content) <= 2000

    def test_what_cannot_run_is_text_and_what_can_never_run_raises(self, box):
        tool = kern_code_tool(box, max_code_bytes=10)
        assert "11 bytes" in tool.invoke({"code": "x" * 11}) and "Nothing ran" in tool.invoke({"code": "x\0"})
        box.close()
        with pytest.raises(kern.SandboxError, match="not open"):
            tool.invoke({"code": "1"})

    def test_its_own_sandbox_and_async(self):
        tool = kern_code_tool(language="bash", memory_mb=64, timeout_s=5)
        assert tool.name == "run_bash" and "64 MiB" in tool.description and "no network" in tool.description
        assert "2" in asyncio.run(tool.ainvoke({"code": "echo $((1 + 1))"}))

    def test_wrong_options(self, box):
        for options, error in (
            ({"sandbox": box, "memory_mb": 1}, TypeError), ({"language": "cobol"}, ValueError), ({"max_chars": 1}, ValueError),
            ({"max_code_bytes": 0}, ValueError), ({"memory": 3}, kern.UnknownOption), ({"timeout_s": 0}, kern.SandboxError),
        ):  # fmt: skip
            with pytest.raises(error):
                kern_code_tool(**options)


class TestPolicy:
    @pytest.fixture(autouse=True)
    def _langchain(self):
        pytest.importorskip("langchain.agents.middleware")

    @pytest.mark.parametrize(
        "options, error",
        [
            ({"pids_limit": 0}, ValueError), ({"memory_bytes": -1}, ValueError), ({"memory_bytes": 1}, ValueError),
            ({"image": " "}, ValueError), ({"cpus": "many"}, ValueError), ({"mount_workspace": "maybe"}, ValueError),
            ({"match_docker_capabilities": True, "drop_all_capabilities": False}, ValueError), ({"max_output_lines": 0}, ValueError),
            ({"memory_mb": 64, "memory_bytes": 1 << 26}, TypeError), ({"memroy_mb": 64}, TypeError),
        ],
    )  # fmt: skip
    def test_wrong_options(self, options, error):
        with pytest.raises(error):
            kern_execution_policy(**options)

    def test_a_workspace_that_is_not_there(self, tmp_path):
        policy = kern_execution_policy()
        with pytest.raises(FileNotFoundError):
            policy.spawn(workspace=tmp_path / "none", env=None, command=["/bin/bash"])
        (tmp_path / "file").touch()
        with pytest.raises(NotADirectoryError):
            policy.spawn(workspace=tmp_path / "file", env={}, command=["/bin/bash"])
        with pytest.raises(ValueError):
            policy.spawn(workspace=tmp_path, env={"A B": "c"}, command=["/bin/bash"])

    @pytest.fixture(params=[True, False], ids=["bridge", "plain"])
    def session(self, request, tmp_path):
        from langchain.agents.middleware.shell_tool import ShellSession

        if request.param and "--bridge" not in HELP:
            pytest.skip("this sidecar has no shell")
        # /var/tmp is a link in a box, so nothing can be mounted below it at its own path
        above = tempfile.mkdtemp(dir=Path.home()) if str(tmp_path).startswith("/var/tmp/") else str(tmp_path)
        workspace = Path(above, "a b:c")
        workspace.mkdir()
        policy = kern_execution_policy(marker_bridge=request.param, command_timeout=20.0, memory_mb=128)
        session = ShellSession(workspace, policy, ("/bin/bash",), {"GIVEN": "secret"})
        session.start()
        session.bridge = request.param
        session.place = workspace
        yield session
        session.stop(5.0)
        shutil.rmtree(above)

    def test_state_files_environment_and_status(self, session):
        def run(command):
            result = session.execute(command, timeout=20.0)
            assert not result.timed_out, command
            return result.output.strip(), result.exit_code

        assert run("x=5; echo $GIVEN") == ("secret", 0)
        assert run("echo $x; echo here >file; (exit 7)") == ("5", 7)
        assert (session.place / "file").read_text() == "here\n"
        assert run("echo $HOME $SSH_AUTH_SOCK; id -u")[0].split()[1] == "1000"
        assert "secret" not in open(f"/proc/{session._process.pid}/cmdline").read()
        if session.bridge:
            for command, status in (("printf abc", 0), ("cat", 0), ("if ; then", 2), ("set -x; true", 0)):
                assert run(command)[1] == status

    def test_it_dies_with_its_process(self, session):
        session.execute("sleep 1000 &", timeout=20.0)
        process = session._process
        os.killpg(os.getpgid(process.pid), 9)
        process.wait(20)
        deadline = time.monotonic() + 20
        while process.stdout.read(1) and time.monotonic() < deadline:
            pass  # the end of the pipe: nobody in the box has it any more

    def test_who_waits_has_written_all(self, session):
        process = session._process
        process.stdin.write("x=1\n")
        assert process.wait(20) == 0
        with pytest.raises(BrokenPipeError):
            process.stdin.write("true\n")

    def test_a_command_that_hangs_is_left_at_once(self, tmp_path):
        from langchain.agents.middleware.shell_tool import ShellSession

        policy = kern_execution_policy(mount_workspace="never", termination_timeout=1000.0)
        session = ShellSession(tmp_path, policy, ("/bin/bash",), {})
        session.start()
        assert session.execute("sleep 1000", timeout=0.5).timed_out
        assert session.execute("echo again", timeout=20.0).output == "again\n"
        session.stop(1000.0)

    def test_the_middlewares_own_directory_is_not_mounted(self):
        with tempfile.TemporaryDirectory(prefix="langchain-shell-") as place:
            policy = kern_execution_policy(marker_bridge=False)
            process = policy.spawn(workspace=Path(place), env=None, command=["/bin/sh", "-c", "pwd; touch a"])
            assert process.communicate(timeout=30)[0] == "/workspace\n" and os.listdir(place) == []

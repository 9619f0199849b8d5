"""A failure at every set-up step in turn: the code never runs, the error names the step, the sidecar lives on.
Needs a build with KS_TEST_HOOKS, where KERN_TEST_FAIL_STEP names the step that fails."""

import os
import subprocess

import pytest

from expect import refused
from kern_client import RpcError

TREE_KINDS = ("dir", "file", "symlink", "bind", "tmpfs", "proc", "devpts", "mask")


def plan_steps(program, environment, *flags):
    """The names of all steps. A line of `run --plan` is "who step"; a step of the tree is named by kind and target."""
    argv = [program, "run", "--plan", *flags]
    printed = subprocess.run(argv, env=environment, check=True, capture_output=True, text=True, timeout=60).stdout
    names = []
    for line in printed.splitlines():
        _, rest = line.split(None, 1)
        words = rest.split()
        name = f"{words[0]} {words[1][:30]}" if words[0] in TREE_KINDS and len(words) > 1 else rest
        if name not in names:
            names.append(name)
    return names


def attempt(client, path, owner):
    """Open and run once; the error, or None."""
    try:
        params = {"workspace": path, **({"mapOwner": True} if owner.pw_uid == 0 else {})}
        client.call("run/argv", {"argv": ["touch", "ran"], "session": params})
    except RpcError as error:
        return error
    return None


def expected_reason(step):
    return "host_unsupported" if step in ("launcher namespaces", "user namespace") else "start_failed"


def test_every_step(sidecar, hooks_program, environment, make_dir, owner):
    steps = plan_steps(hooks_program, environment)
    assert len(steps) >= 30
    wrong = []
    for number, step in enumerate(steps):
        path = make_dir(f"ws{number}")
        client = sidecar(program=hooks_program, env={"KERN_TEST_FAIL_STEP": step})
        error = attempt(client, path, owner)
        if error is None:
            wrong.append(f"{step}: the call succeeded")
        elif error.data.get("step") != step or error.reason != expected_reason(step):
            wrong.append(f"{step}: {error}")
        if os.listdir(path):
            wrong.append(f"{step}: the code ran")
        if client.call("ping") != {} or client.call("session/list") != {"sessions": []}:
            wrong.append(f"{step}: the sidecar is not as before")
        if client.close() != 0:
            wrong.append(f"{step}: exit status {client.process.returncode}")
    assert wrong == []


def test_failure_in_an_open_session(sidecar, hooks_program, environment):
    """Steps of a box alone: the session is there, the call is refused, twice."""
    steps = plan_steps(hooks_program, environment)
    seen = 0
    for step in steps:
        client = sidecar(program=hooks_program, env={"KERN_TEST_FAIL_STEP": step})
        try:
            session = client.open()
        except RpcError:
            continue
        seen += 1
        for _ in range(2):
            reply = client.send("run/argv", {"argv": ["touch", "ran"], "sessionId": session}).wait()
            assert "error" in reply, (step, reply)
            refused(RpcError(reply["error"]), "start_failed")
            assert reply["error"]["data"]["step"] == step
    assert seen >= 3


def test_release_build_has_no_hooks(sidecar, program, hooks_program):
    if program == hooks_program:
        pytest.skip("the program under test is a build with hooks")
    client = sidecar(env={"KERN_TEST_FAIL_STEP": "network"})
    assert client.run("echo", "hi")["stdout"] == "hi\n"


def test_steps_of_a_memory_workspace(sidecar, hooks_program, environment):
    asked = ("--workspace-storage", "memory", "--workspace-max-mb", "4")
    steps = set(plan_steps(hooks_program, environment, *asked)) - set(plan_steps(hooks_program, environment))
    assert steps == {"tmpfs /workspace", "memory workspace"}
    for step in steps:
        client = sidecar(program=hooks_program, env={"KERN_TEST_FAIL_STEP": step})
        error = client.fail("session/open", {"workspaceStorage": "memory", "workspaceMaxMb": 4})
        refused(error, "start_failed")
        assert error.data["step"] == step
        assert client.call("session/list") == {"sessions": []}
        assert client.run("true")["success"] is True  # on disk, without those steps


def test_a_further_template_is_not_sent_it(sidecar, hooks_program):
    """start: cold. Its own templates get the workspace from the session's first one."""
    client = sidecar(program=hooks_program, env={"KERN_TEST_FAIL_STEP": "bind /workspace"})
    session = client.open(workspaceStorage="memory", workspaceMaxMb=4, start="cold")
    error = client.fail("run/argv", {"argv": ["true"], "sessionId": session})
    refused(error, "start_failed")
    assert error.data["step"] == "bind /workspace"

"""Boxes as the attack suite uses them: by a way of getting one, with a named workspace that holds the programs."""

import json
import os
import time
import uuid

import pytest

WAYS = ("template", "cold", "throwaway", "spare", "zygote")
# How often a race is tried. The default suits a run of everything; 10000 is the figure for a night.
ROUNDS = int(os.environ.get("KERN_ATTACK_ROUNDS", "100"))
PING_LIMIT = 1.0  # seconds; a sound machine shows a hundredth of it, and the summary prints what it was
MARK = f"kern-attack-{uuid.uuid4().hex[:12]}"  # a name that an attack would leave on the host
pings = []

attack = pytest.mark.attack


class Boxes:
    """Runs programs in boxes that are got by one way. The workspace is a directory of the user and holds the programs in bin/."""

    def __init__(self, client, way, workspace, fields):
        self.client, self.way, self.workspace = client, way, workspace
        how = {} if way == "throwaway" else {"start": way}
        if way == "zygote" and "image" not in fields:  # the first call finds what has been preloaded, and so is forked
            how["preload"] = ["errno"]
        self.fields = {"workspace": workspace, **how, **fields}
        answer = client.call("session/open", self.fields)
        self.effective = answer["effective"]
        if way == "throwaway":  # a session of its own for each call; this one was to learn what is enforced
            client.call("session/close", {"sessionId": answer["sessionId"]})
            self.where = {"session": self.fields}
        else:
            self.where = {"sessionId": answer["sessionId"]}

    def enforced(self, limit):
        return self.effective[limit]["enforced"]

    def run(self, *argv, **params):
        return self.client.run(*argv, **{**self.where, **params})

    def sh(self, script, *args, **params):
        return self.run("sh", "-c", script, *args, **params)

    def python(self, code, **params):
        """A plain interpreter, without the runner of run/code."""
        return self.run("/usr/bin/python3", "-I", "-S", "-c", code, **params)

    def code(self, code, **params):
        return self.client.code(code, **{**self.where, **params})

    def start(self, *argv, **params):
        return self.client.start(*argv, **{**self.where, **params})

    def path(self, name):
        return os.path.join(self.workspace, name)

    def under_attack(self, *argv, **params):
        """Runs an attack while `ping` has to answer -> its result."""
        return pinged(self.client, self.client.send("run/argv", {**self.where, "argv": list(argv), **params}))


def owned_tree(path, owner):
    for directory, names, files in os.walk(path):
        for name in [directory, *(os.path.join(directory, n) for n in names + files)]:
            os.chown(name, owner.pw_uid, owner.pw_gid, follow_symlinks=False)


def pinged(client, future):
    """Pings until a request is answered -> its result. One slow answer is a failure."""
    while not future.done():
        begin = time.monotonic()
        assert client.call("ping", timeout=30) == {}
        pings.append((time.monotonic() - begin, os.environ.get("PYTEST_CURRENT_TEST", "").split("::")[-1]))
        assert pings[-1][0] < PING_LIMIT, f"ping took {pings[-1][0]:.2f} s"
        time.sleep(0.02)
    return future.result()


def files_of(client, result):
    """The list of changed files, also when it was too long for a line."""
    files = result["files"]
    return json.loads(client.text(files)) if isinstance(files, dict) else files


def escaped(result, call):
    """Asserts the verdict of an escape call: refused, named, and the process did not live on."""
    assert result.get("fault", {}).get("type") == "escape_blocked", result
    assert result["fault"]["syscall"] == call, result
    assert call in result["fault"]["message"] and result["fault"]["process"], result
    assert result["success"] is False
    return result["fault"]

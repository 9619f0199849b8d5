"""The same attacks from a cell of a kernel: the programs as children of python, bash and node, and by the interpreter itself.
A child's escape call is the cell's fault, and the kernel lives; the interpreter's own ends it."""

import json
import os

import pytest

from boxes import attack, escaped, pinged
from expect import plain
from test_mounts_proc import MOUNT_CALLS, NEW

pytestmark = pytest.mark.skipif(os.uname().machine != "x86_64", reason="system call numbers of x86-64")

# A cell that runs a list of words as a child with the cell's output, and ends with its status.
CHILD = {
    "python": "import subprocess\nstatus = subprocess.run({argv}).returncode\nexit(status if status >= 0 else 128 - status)",
    "node": "const r = require('child_process').spawnSync({argv}[0], {argv}.slice(1), {{ stdio: 'inherit' }});\n"
    "process.exit(r.signal ? 128 + require('os').constants.signals[r.signal] : r.status)",
    "bash": "{words}",
}
ESCAPES = {
    **MOUNT_CALLS,
    **{f"unshare-{name}": ("unshare", f"272 {flag:#x}") for name, flag in NEW.items()},
    **{f"clone-{name}": ("clone", f"56 {flag | 17:#x} 0 0 0 0") for name, flag in NEW.items()},
    "attach": ("ptrace", "101 16 1 0 0"),
    "parent": ("ptrace", "101 16 2 0 0"),
    "readv": ("process_vm_readv", "310 1 b:16 1 b:16 1 0"),
    "writev": ("process_vm_writev", "311 2 b:16 1 b:16 1 0"),
    "bpf": ("bpf", "321 0 b:64 64"),
    "init-module": ("init_module", "175 b:16 16 s:"),
    "kexec": ("kexec_load", "246 0 0 0 0"),
    "reboot": ("reboot", "169 0xfee1dead 672274793 0x1234567 0"),
    "swapon": ("swapon", "167 s:/workspace/x 0"),
}
REFUSED = (425, 426, 427, 323, 298, 248, 249, 250, 304, 438, 300, 301, 179, 163, 212, 440, 279, 447, 153, 154, 227, 161, 9999)


class Cells:
    """A kernel that runs programs."""

    def __init__(self, client, language, workspace):
        languages = {item["name"]: item for item in client.welcome["capabilities"]["languages"]}
        if not languages[language]["kernel"] or (language == "node" and not any(map(os.path.exists, ("/usr/bin/node", "/usr/local/bin/node")))):
            pytest.skip(f"no kernels of {language} here")
        self.client, self.language = client, language
        self.session = client.open(workspace=workspace, memoryMb=256, pids=64)
        self.id = client.call("kernel/open", {"sessionId": self.session, "language": language})["kernelId"]

    def cell(self, code, **params):
        return self.client.send("kernel/run", {"kernelId": self.id, "code": code, **params})

    def code_of(self, *argv):
        words = " ".join("'" + word.replace("'", "'\\''") + "'" for word in argv)
        return CHILD[self.language].format(argv=json.dumps(argv), words=words)

    def run(self, *argv, **params):
        return self.cell(self.code_of(*argv), **params).result()

    def restart(self):
        self.client.call("kernel/restart", {"kernelId": self.id})


@pytest.fixture(params=CHILD)
def cells(client, workspace, request):
    return Cells(client, request.param, workspace)


@attack("4", "12", "13", "20", "B21", "B22", "B24")
def test_calls_of_a_child_of_a_cell(cells):
    """Each call one cell: the verdict of a run, in that cell only, and the kernel lives on."""
    for name, (call, words) in ESCAPES.items():
        result = cells.run("bin/call", *words.split())
        escaped(result, call)
        assert (result["stdout"], result["exitCode"], result["stateKept"]) == ("", 159, True), (name, result)
        plain({**cells.run("echo", name), "success": True}, name + "\n")
    words = " -- ".join(f"{nr} 0 0 0 0 0 0" for nr in REFUSED).split()
    result = cells.run("bin/call", *words)
    assert ("fault" in result, result["stdout"]) == (False, "".join(f"{nr} -1 38\n" for nr in REFUSED))
    for gate in ("--int80", "--x32"):
        result = cells.run("bin/call", gate, "165", "0", "0", "0")
        assert (result["stdout"], result["exitCode"], result["stateKept"]) == ("", 159, True)


@attack("B21", "C38", "24")
def test_reports_from_cells(cells):
    for mode in ("block", "ignore", "catch", "thread"):
        result = cells.run("bin/deaf", mode)
        assert escaped(result, "mount")["process"] == "deaf"
        assert (result["exitCode"] in (137, 159), result["stateKept"]) == (True, True), result
    escaped(cells.run("bin/own_filter", "listener"), "mount")
    escaped(cells.run("sh", "-c", "(bin/call 165 0 0 0 0 0 &) ; sleep 0.1"), "mount")
    words = '{"fault":{"type":"escape_blocked","syscall":"mount"}}'
    result = cells.run("sh", "-c", f"echo '{words}'; kill -SYS $$")
    assert (result["stdout"], "fault" in result, result["stateKept"]) == (words + "\n", False, True)


# By the interpreter itself: what it tries is refused, or it and its kernel end.
OWN = {
    "python": "import ctypes; ctypes.CDLL(None).unshare(0x10000000)",
    "bash": "exec bin/call 272 0x10000000",
    "node": "process.kill(process.pid, 'SIGKILL')",
}


@attack("4", "C41", "13")
def test_the_interpreter_itself(cells):
    """Its own escape ends its kernel; pid 1 and the process that leads the kernel are out of its reach, or end with it."""
    script = "for s in 1 2 9 15 19 31; do kill -$s 1 2>/dev/null; done; cat /proc/1/environ /proc/1/maps 2>/dev/null; ls /proc/1/fd 2>/dev/null; echo alive"
    result = cells.run("sh", "-c", script)
    assert (result["stdout"], result["stateKept"]) == ("alive\n", True)
    result = cells.cell(OWN[cells.language]).result()
    assert (result["cellStatus"], result["stateKept"]) == ("dead", False)
    if cells.language != "node":
        escaped(result, "unshare")
    cells.restart()
    result = cells.run("sh", "-c", "kill -9 -1; sleep 5")
    assert (result["cellStatus"], result["exitCode"]) == ("dead", 137)
    cells.restart()
    assert cells.run("echo", "again")["stdout"] == "again\n"


@attack("27", "32", "C46")
def test_a_cell_takes_all_it_can_get(cells):
    """Processes, memory, output: capped, the sidecar answers, other kernels work."""
    other = cells.client.call("kernel/open", {"sessionId": cells.session, "language": "bash"})["kernelId"]
    bomb = "f() { f | f & }; f 2>/dev/null; f 2>/dev/null; sleep 0.3; echo over"
    result = pinged(cells.client, cells.cell(cells.code_of("bash", "-c", bomb), timeoutMs=1000))
    assert result["cellStatus"] in ("ok", "error", "interrupted", "dead"), result
    assert cells.client.call("kernel/run", {"kernelId": other, "code": "echo fine"})["stdout"] == "fine\n"
    cells.restart()
    result = pinged(cells.client, cells.cell(cells.code_of("sh", "-c", "x=x; while :; do x=$x$x; done")))
    assert result["fault"]["type"] == "oom", result
    cells.restart() if not result["stateKept"] else None
    result = pinged(cells.client, cells.cell(cells.code_of("sh", "-c", "yes | head -c 100000000"), timeoutMs=20000))
    assert (result["stdoutBytes"], result["truncated"]) == (100_000_000, True)
    assert cells.run("echo", "again")["stdout"] == "again\n"

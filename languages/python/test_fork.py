"""fork.c without a box: what it is made of, and what a zygote says. tests/protocol/test_zygote.py has it forking into boxes."""
import os
import re
import shutil
import socket
import struct
import subprocess

import pytest

from harness import HEADER, HERE, STATE, interpreters

MADE = HERE.parents[1] / "build" / "languages" / "python" / "run"
MODULE = MADE / "fork.abi3.so"
MUSL = f"/usr/lib/{os.uname().machine}-linux-musl/libc.so"
FORK = HEADER.pack(b"KRN1", 1, 10, 0, 0, 0, 0, 0)
ANSWER = struct.Struct("<i28s")
needs_module = pytest.mark.skipif(not MODULE.exists(), reason="build/ has no languages/python/run/fork.abi3.so")


def symbols(path, *options):
    done = subprocess.run(["nm", "-D", *options, path], capture_output=True, text=True, check=True)
    return {line.split()[-1] for line in done.stdout.splitlines()}


@needs_module
def test_it_asks_for_what_every_libc_has():
    """No library is linked, nothing has a version, and all that is missing is python's or in musl's libc as well."""
    assert "NEEDED" not in subprocess.run(["readelf", "-d", MODULE], capture_output=True, text=True, check=True).stdout
    missing = {name for name in symbols(MODULE, "--undefined-only") if not re.match("_?Py", name)}
    assert "fork" in missing and not [name for name in missing if "@" in name]
    if not os.path.exists(MUSL):
        pytest.skip("needs the package musl-tools")
    assert missing <= symbols(MUSL, "--defined-only")


@pytest.fixture(params=interpreters())
def zygote(request, tmp_path):
    place = tmp_path / "run"
    shutil.copytree(MADE, place)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.settimeout(60)
    started = []

    def start(*modules, env=()):
        with theirs:
            process = subprocess.Popen(
                [request.param, place / "start.py", str(theirs.fileno()), "zygote", *modules], cwd=tmp_path, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=[theirs.fileno()], env={"PATH": "/usr/bin:/bin", **dict(env)})
        started.append(process)
        return process, ours, word(ours.recv(70000))

    yield start
    ours.close()
    for process in started:
        process.communicate(timeout=60)


def word(frame):
    """The first part of a state."""
    assert HEADER.unpack_from(frame)[2] == STATE, frame
    length, size = struct.unpack_from("<HI", frame, HEADER.size)
    at = HEADER.size + 6
    return frame[at:at + length - 1].decode(), frame[at + length:at + length + size].decode()


@needs_module
def test_ready_and_over(zygote):
    process, channel, said = zygote("json")
    assert said == ("ready", "")
    channel.close()  # nobody wants it any more
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (0, b"", b"")


@needs_module
def test_a_box_that_cannot_be_entered(zygote):
    """The box is told what failed, and the zygote goes on."""
    _, channel, said = zygote()
    assert said == ("ready", "")
    null = os.open("/dev/null", os.O_RDWR)
    for offer, step in ((struct.pack("<II", 0x1f7f, 0), b"pid namespace"), (b"", b"offer"), (struct.pack("<II", 1, 5000), b"offer")):
        init, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        init.settimeout(60)
        socket.send_fds(init, [offer or b"?"], [null] * 12)
        socket.send_fds(channel, [FORK], [theirs.fileno(), null])
        theirs.close()
        error, where = ANSWER.unpack(init.recv(100))
        assert error > 0 and where.rstrip(b"\0") == step, (error, where)
        assert init.recv(1) == b""  # nobody holds the other end
        init.close()
    os.close(null)


@needs_module
@pytest.mark.parametrize("what, why", [
    ("import threading, time\nthreading.Thread(target=time.sleep, args=(1000,), daemon=True).start()", "a module has started a thread"),
    ("import os\nkept = os.open('/dev/null', 0)", "a module keeps a file open"),
    ("import subprocess\nkept = subprocess.Popen(['sleep', '2'])", "a module has started a process"),
])
def test_what_cannot_be_forked(zygote, tmp_path, what, why):
    (tmp_path / "unable.py").write_text(what)
    process, _, said = zygote("unable", env={"PYTHONPATH": str(tmp_path)})
    assert said == ("unable", why)
    assert process.wait(60) == 1

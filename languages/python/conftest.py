"""run(code, ...) -> Done, for each interpreter."""
import socket
import subprocess

import pytest

from harness import RUNNER, Host, Done, interpreters, version_of


@pytest.fixture(params=interpreters())
def run(request, tmp_path):
    work, code_dir = tmp_path / "work", tmp_path / "code"
    work.mkdir()
    code_dir.mkdir()

    def start(code, *args, name=None, channel=True, close_after=None, env=(), stdin=b"", kill_after=None):
        path = code_dir / "main.py"
        path.write_bytes(code if isinstance(code, bytes) else code.encode())
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            fd = str(theirs.fileno()) if channel else "-1"
            process = subprocess.Popen(
                [request.param, str(RUNNER), fd, name or str(path), str(path), *args], cwd=work,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                pass_fds=[theirs.fileno()] if channel else [],
                env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "LANG": "C.UTF-8", **dict(env)})
        host = Host(ours, close_after)
        if kill_after:
            assert process.stdout.read(len(kill_after)) == kill_after
            process.kill()
        out, err = process.communicate(stdin if not kill_after else None, timeout=60)
        host.thread.join(60)
        ours.close()
        out, err = (text.decode(errors="surrogateescape") for text in (out, err))
        return Done(process.returncode, out, err, host)

    start.python, start.work, start.path = request.param, work, code_dir / "main.py"
    start.version = version_of(request.param)
    return start

"""Runs the runner without a box, on interpreters of this host: the host's side of the result channel."""
import glob
import json
import os
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent
RUNNER = HERE / "run" / "start.py"
PACKAGES = HERE.parents[1] / "build" / "python-packages"  # made by tests/packages-python.sh
DISPLAY, UPDATE, CLEAR, ERROR, VALUE, STATE = 1, 2, 3, 4, 5, 6
HEADER = struct.Struct("<4sBBHIIII")


def version_of(python):
    try:
        done = subprocess.run([python, "-c", "import sys; print(list(sys.version_info[:2]))"], capture_output=True, text=True)
    except OSError:
        return None
    return tuple(json.loads(done.stdout)) if done.returncode == 0 else None


def interpreters():
    """KERN_PYTHONS, or: the system's, and of others that pyenv has the oldest and the newest that we support."""
    named = [path for path in os.environ.get("KERN_PYTHONS", "").split(":") if path]
    if named:
        return named
    found = {version_of(path): path for path in ["/usr/bin/python3", sys.executable][::-1]}
    root = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    for path in glob.glob(root + "/versions/*/bin/python3"):
        found.setdefault(version_of(path), path)
    usable = sorted(version for version in found if version and version >= (3, 8))
    return list(dict.fromkeys([found[version_of("/usr/bin/python3") or usable[0]], found[usable[0]], found[usable[-1]]]))


class Done:
    def __init__(self, status, out, err, host):
        self.status, self.out, self.err, self.frames, self.last_word = status, out, err, host.frames, host.word

    def values(self):
        return [dict(parts)["text/plain"].decode() for kind, parts in self.frames if kind == VALUE]

    def errors(self):
        return [parts for kind, parts in self.frames if kind == ERROR]

    def error(self):
        found = self.errors()
        assert len(found) == 1
        return found[0]

    def shown(self, *kinds):
        """The bundles, of displays unless other kinds are asked for, when nothing has failed."""
        assert (self.status, self.err, self.errors()) == (0, "", []), self.err
        return [dict(parts) for kind, parts in self.frames if kind in (kinds or (DISPLAY,))]


def parts_of(data):
    parts = []
    while data:
        key_len, data_len = struct.unpack_from("<HI", data)
        key, data = data[6:6 + key_len], data[6 + key_len:]
        assert key.endswith(b"\0") and len(data) >= data_len
        parts.append((key[:-1].decode(), data[:data_len]))
        data = data[data_len:]
    return parts


class Host:
    """The host's side of the channel: checks each header, puts frames together, acknowledges after `drain`."""

    def __init__(self, end, close_after=None, drain=lambda: None):
        self.end, self.close_after, self.drain = end, close_after, drain
        self.frames, self.data, self.last, self.word = [], bytearray(), 0, None
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while True:
            datagram = self.end.recv(24 + 65536 + 1)
            if not datagram:
                return
            magic, version, kind, flags, call, number, total, offset = HEADER.unpack_from(datagram)
            assert (magic, version, flags, call) == (b"KRN1", 1, 0, 0) and len(datagram) <= 24 + 65536
            if offset == 0:
                assert number > self.last
                self.last, self.data = number, bytearray()
            assert number == self.last and offset == len(self.data)
            self.data += datagram[24:]
            if len(self.data) < total:
                continue
            assert len(self.data) == total
            if kind == STATE:  # the last: gets no acknowledgement
                assert self.word is None
                self.word = parts_of(bytes(self.data))
                continue
            assert self.word is None
            self.drain()
            self.frames.append((kind, parts_of(bytes(self.data))))
            if self.close_after == len(self.frames):
                self.end.close()
                return
            self.end.send(HEADER.pack(b"KRN1", 1, 7, 0, call, number, 0, 0))


def plain(run, code, *args):
    """The same file with nothing but the interpreter."""
    run.path.write_text(code)
    done = subprocess.run([run.python, str(run.path), *args], cwd=run.work, capture_output=True, text=True,
                          errors="surrogateescape", stdin=subprocess.DEVNULL,
                          env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONPATH": str(run.work)})
    return done.returncode, done.stdout, done.stderr

"""`files`: which change is told as what. A file is modified when its inode is not what it was: ctime tells, which code cannot set."""

import os
import subprocess
import time

import pytest
from expect import plain

HELPERS = """
import ctypes, fcntl, mmap, os, signal, socket
libc = ctypes.CDLL(None, use_errno=True)
def put(path, data, keep=False):
    st = os.stat(path) if keep else None
    with open(path, "r+b" if keep else "wb") as file:
        file.write(data)
    if keep:
        os.utime(path, ns=(st.st_atime_ns, st.st_mtime_ns))
def mapped(path):
    fd = os.open(path, os.O_RDWR)
    pages = mmap.mmap(fd, os.fstat(fd).st_size)
    os.close(fd)
    return pages
"""

# name: (what was there before, what the call does, what it reports)
CASES = {
    "nothing but reading": ("put('f', b'aaaa')", "open('f').read(); os.listdir('.'); os.stat('f')", []),
    "same size, times put back": ("put('f', b'aaaa')", "put('f', b'bbbb', keep=True)", ["M f"]),
    "and back to the same bytes": ("put('f', b'aaaa')", "put('f', b'bbbb', True); put('f', b'aaaa', True)", ["M f"]),
    "touched": ("put('f', b'aaaa')", "os.utime('f')", ["M f"]),
    "another mode": ("put('f', b'aaaa')", "os.chmod('f', 0o600)", ["M f"]),
    "the mode it had": ("put('f', b'aaaa'); os.chmod('f', 0o640)", "os.chmod('f', 0o640)", ["M f"]),
    "a second name": ("put('f', b'aaaa')", "os.link('f', 'g')", ["M f", "C g"]),
    "written through a second name that came and went": (
        "os.makedirs('a'); os.makedirs('b'); put('a/f', b'aaaa')",
        "os.link('a/f', 'b/g'); put('b/g', b'bbbb', True); os.unlink('b/g')",
        ["M a/f"],
    ),
    "written through its other name": (
        "os.makedirs('a'); os.makedirs('b'); put('a/f', b'aaaa'); os.link('a/f', 'b/g')",
        "put('b/g', b'bbbb', True)",
        ["M a/f", "M b/g"],
    ),
    "renamed over with the same bytes": ("put('f', b'aaaa')", "put('t', b'aaaa'); os.rename('t', 'f')", ["M f"]),
    "removed and made again": ("put('f', b'aaaa')", "os.unlink('f'); put('f', b'aaaa')", ["M f"]),
    "a link and a file again": (
        "put('f', b'aaaa')",
        "os.rename('f', 'g'); os.symlink('g', 'f'); os.unlink('f'); os.rename('g', 'f')",
        ["M f"],
    ),
    "a file becomes a link": ("put('f', b'aaaa')", "os.unlink('f'); os.symlink('aaaa', 'f')", ["M f"]),
    "a link elsewhere": ("os.symlink('aaaa', 'l')", "os.unlink('l'); os.symlink('bbbb', 'l')", ["M l"]),
    "a file becomes a directory": ("put('f', b'aaaa')", "os.unlink('f'); os.mkdir('f'); put('f/g', b'a')", ["D f", "C f/g"]),
    "moved": ("put('f', b'aaaa')", "os.rename('f', 'g')", ["D f", "C g"]),
    "a directory moved": ("os.mkdir('d'); put('d/f', b'aaaa')", "os.rename('d', 'e')", ["D d/f", "C e/f"]),
    "two exchanged": (
        "put('f', b'aaaa'); put('g', b'bbbb'); os.utime('f', (1, 1)); os.utime('g', (1, 1))",
        "assert libc.renameat2(-100, b'f', -100, b'g', 2) == 0",
        ["M f", "M g"],
    ),
    "a hole punched": (
        "put('f', b'a' * 70000)",
        "st = os.stat('f'); fd = os.open('f', os.O_RDWR); libc.fallocate(fd, 3, ctypes.c_long(4096), ctypes.c_long(4096));"
        "os.pwrite(fd, bytes(4096), 4096); os.close(fd); os.utime('f', ns=(st.st_atime_ns, st.st_mtime_ns))",
        ["M f"],
    ),
    "cut and grown to the size it had": ("put('f', b'aaaa')", "os.truncate('f', 0); os.truncate('f', 4)", ["M f"]),
    "below, at and above what is hashed": (
        "for n in (65535, 65536, 65537): put(str(n), b'a' * n)",
        "for n in (65535, 65536, 65537): put(str(n), b'b' * n, True)",
        ["M 65535", "M 65536", "M 65537"],
    ),
    "stored to a mapping": (
        "put('f', b'a' * 5000)",
        "st = os.stat('f'); m = mapped('f'); m[0], m[4999]; m[4990:] = b'b' * 10; os.utime('f', ns=(st.st_atime_ns, st.st_mtime_ns))",
        ["M f"],
    ),
    "stored to a mapping that was read first": ("put('f', b'a' * 5000)", "m = mapped('f'); m[0]; m[0:4] = b'bbbb'", ["M f"]),
    "stored to a mapping by one that is killed": (
        "put('f', b'a' * 5000)",
        "pid = os.fork()\nif pid == 0:\n    m = mapped('f'); m[0]; m[0:4] = b'bbbb'; os.kill(os.getpid(), 9)\nos.waitpid(pid, 0)",
        ["M f"],
    ),
    "stored to a mapping of a file that is on its way through a socket": (
        "put('f', b'a' * 5000)",
        "m = mapped('f'); fd = os.open('f', os.O_RDWR); a, b = socket.socketpair();"
        "socket.send_fds(a, [b'x'], [fd, b.fileno()]); m[0]; m[0:4] = b'bbbb'; os._exit(0)",
        ["M f"],
    ),
    "made and removed": ("", "put('f', b'a'); os.unlink('f')", []),
    "inode numbers used again": (
        "put('f', b'aaaa')",
        "for n in range(50): os.unlink('f'); put('f', b'bbbb')\nos.utime('f', (1, 1))",
        ["M f"],
    ),
}


def told(result):
    return [f"{file['change'][0].upper()} {file['path']}" for file in result["files"]]


def judge(client, session, case):
    before, action, wanted = CASES[case]
    for script in (before, action):
        time.sleep(0.05)  # what is younger is told by its bytes, everywhere
        result = client.run("python3", "-S", "-c", HELPERS + script, sessionId=session)
        assert result["exitCode"] == 0, result["stderr"]
    assert told(result) == wanted
    for file in result["files"]:
        hashed = file["change"] != "deleted" and file.get("mime") != "inode/symlink" and file["size"] <= 65536
        assert ("sha256" in file) == hashed
    result = client.run("true", sessionId=session)
    plain(result)
    assert result["files"] == []


@pytest.mark.parametrize("case", CASES)
def test_verdict(client, case):
    judge(client, client.open(), case)


@pytest.fixture
def in_memory(make_dir, owner):
    """A directory on a tmpfs."""
    if os.geteuid() != 0:
        pytest.skip("needs root, for a mount")
    path = make_dir("in-memory")
    options = f"uid={owner.pw_uid},gid={owner.pw_gid},mode=0755,size=16m"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", path], check=True)
    yield path
    subprocess.run(["umount", "-l", path], check=True)


@pytest.mark.parametrize("case", [case for case in CASES if "mapping" in case or "times put back" in case])
def test_verdict_in_memory(client, in_memory, case):
    """There a store to a page that was read first changes no time: small files are told by their bytes."""
    judge(client, client.open(workspace=in_memory), case)

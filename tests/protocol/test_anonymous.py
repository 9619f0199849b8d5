"""Calls without a session: each has one to itself, which serves another call only when nothing of the one before is left in it."""

import pytest

# What a directory can be made to remember, and what could be left beside it.
TRACES = {
    "a file": "open('mark', 'w').close()",
    "a file that went again": "open('mark', 'w').close(); os.remove('mark')",
    "a directory that went again": "os.mkdir('mark'); os.rmdir('mark')",
    "a link that went again": "os.symlink('/', 'mark'); os.remove('mark')",
    "a file that moved out": "open('mark', 'w').close(); os.replace('mark', '/workspace/other'); os.remove('other')",
    "its mode": "mode = os.stat('.').st_mode; os.chmod('.', 0o711); os.chmod('.', mode & 0o7777)",
    "its times": "os.utime('.', (1, 1))",
    "an attribute": "os.setxattr('.', 'user.mark', b'1')",
    "an attribute that went again": "os.setxattr('.', 'user.mark', b'1'); os.removexattr('.', 'user.mark')",
    "its owner, again": "os.chown('.', -1, os.getgid())",
}

# Those leave the directory as it was: the session may go on, and nothing of them may be seen.
ELSEWHERE = {
    "nothing": "pass",
    "files of the box": "[open(p + '/mark', 'w').close() for p in ('/tmp', '/dev/shm', os.environ['HOME'])]",
    "a process": "os.fork() or (os.setsid(), __import__('time').sleep(1000))",
    "a lock": "import fcntl; fd = os.open('.', os.O_RDONLY); fcntl.flock(fd, fcntl.LOCK_EX); os.fork() or __import__('time').sleep(1000)",
    "a socket": "import socket; s = socket.socket(socket.AF_UNIX); s.bind('\\0mark'); os.fork() or __import__('time').sleep(1000)",
    "a nameless file": "os.open('.', os.O_TMPFILE | os.O_RDWR)",
    "an end by force": "os.kill(os.getpid(), 9)",
    "an error": "raise SystemExit(3)",
}

LOOK = """
import fcntl, os, socket
here = os.stat('.')
fd = os.open('.', os.O_RDONLY)
fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
socket.socket(socket.AF_UNIX).bind('\\0mark')
print(os.getpid() == 3)
print(here.st_ino, here.st_ctime_ns)
print(oct(here.st_mode), here.st_uid, here.st_gid, here.st_nlink, here.st_mtime_ns > 10 ** 18, os.listxattr('.'), os.listdir('.'),
      [os.listdir(p) for p in ('/tmp', '/dev/shm', os.environ['HOME'])], sorted(p for p in os.listdir('/proc') if p.isdigit() and int(p) > 3))
"""


def look(client):
    """Is it a forked interpreter? The directory; what is to be the same in each."""
    result = client.code(LOOK)
    assert result["exitCode"] == 0, result
    forked, directory, rest = result["stdout"].splitlines()
    return forked == "True", directory, rest


def settle(client):
    """Until calls are forked: sessions that wait have served others by then."""
    client.wait_for(lambda: look(client)[0], "a call in a session that has served another", 30)


def test_sessions_serve_one_after_another(client):
    settle(client)
    looks = [look(client) for _ in range(12)]
    assert len({rest for _, _, rest in looks}) == 1, looks
    assert len({directory for _, directory, _ in looks}) < len(looks)
    assert client.call("session/list") == {"sessions": []}


@pytest.mark.parametrize("trace", sorted(TRACES))
def test_one_that_has_a_trace_serves_no_other(client, trace):
    settle(client)
    _, _, before = look(client)
    spoilt = set()
    for _ in range(3):
        result = client.code(f"import os\n{TRACES[trace]}\nhere = os.stat('.')\nprint(here.st_ino, here.st_ctime_ns)")
        assert result["exitCode"] == 0, result
        spoilt.add(result["stdout"].strip())
    looks = [look(client) for _ in range(8)]
    assert {rest for _, _, rest in looks} == {before}
    assert not spoilt & {directory for _, directory, _ in looks}


@pytest.mark.parametrize("what", sorted(ELSEWHERE))
def test_nothing_of_a_call_is_in_another(client, what):
    settle(client)
    _, _, before = look(client)
    for _ in range(3):
        client.code("import os\n" + ELSEWHERE[what])
        assert look(client)[2] == before
    settle(client)


def test_many_at_once(client):
    """More than wait: each has its own."""
    code = "import os, time\nassert os.listdir('.') == []\nopen('mark', 'w').close()\ntime.sleep(.05)\nprint(os.listdir('.'))"
    for _ in range(3):
        futures = client.send_all([("run/code", {"code": code})] * 12)
        assert {f.result()["stdout"] for f in futures} == {"['mark']\n"}
        futures = client.send_all([("run/code", {"code": LOOK})] * 12)
        assert {f.result()["exitCode"] for f in futures} == {0}

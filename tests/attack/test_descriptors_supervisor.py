"""The sidecar itself, its descriptors and the init of a box, attacked from inside."""

import array
import os
import shutil
import socket
import subprocess
import threading

import pytest

from boxes import MARK, WAYS, Boxes, attack, escaped, owned_tree
from expect import plain, refused


# -- the program on the host


@attack("1")
def test_no_process_shows_the_sidecar_program(box, program):
    links = box().sh("for p in /proc/[0-9]*; do readlink $p/exe || echo closed; done")["stdout"].split("\n")
    assert links[0] == "closed"  # pid 1, our init
    assert program not in links and "/usr/bin/dash" in links + [os.path.realpath("/bin/sh")]


@pytest.fixture
def own_program(program, make_dir, owner):
    """A copy of the program that the sidecar's user owns, as one who built it has."""
    path = os.path.join(make_dir("built"), "kern-sidecar")
    shutil.copy2(program, path)
    shutil.copytree(
        os.path.join(os.path.dirname(program), "languages"), os.path.join(os.path.dirname(path), "languages")
    )
    subprocess.run(["chmod", "-R", "u+rwX,go=u-w", os.path.dirname(path)], check=True)
    owned_tree(os.path.dirname(path), owner)
    return path


@attack("1")
@pytest.mark.parametrize("how", ["argv", "script"])
@pytest.mark.parametrize("way", WAYS)
def test_own_program_cannot_be_run_or_changed(sidecar, workspace, own_program, owner, way, how):
    """CVE-2019-5736: until its exec, the process that becomes the code has the sidecar's file as /proc/self/exe."""
    client = sidecar(program=own_program)
    box = Boxes(client, way, workspace, {})
    script = box.path("script")
    with open(script, "w", encoding="ascii") as file:
        file.write("#!/proc/self/exe\n")
    os.chmod(script, 0o755)
    os.chown(script, owner.pw_uid, owner.pw_gid)
    before = os.stat(own_program)
    word = "/proc/self/exe" if how == "argv" else "/workspace/script"
    result = box.run(word, env={"LD_PRELOAD": "/workspace/bin/on_load.so"})
    after = os.stat(own_program)
    assert (after.st_mode, after.st_size, after.st_mtime_ns) == (before.st_mode, before.st_size, before.st_mtime_ns)
    assert own_program not in result["stdout"], "the sidecar's program ran in the box"


@attack("1")
def test_code_cannot_change_the_program_that_runs_it(box):
    """Of a process that has exec'd: the image's own files, read-only."""
    result = box().run("/usr/bin/true", env={"LD_PRELOAD": "/workspace/bin/on_load.so"})
    lines = result["stdout"].splitlines()
    assert lines[0] == "exe /usr/bin/true"
    # open for writing, a handle, chmod, truncate, utimens: of itself twice, of pid 1
    assert lines[1:] == ["0 1 0 0 0", "0 1 0 0 0", "0 0 0 0 0"]


# -- the working directory


@attack("3")
@pytest.mark.parametrize(
    "cwd",
    [
        "/proc/self/fd/7",
        "/proc/self/fd/3",
        "/proc/1/root",
        "/proc/1/cwd",
        "/proc/self/cwd",
        "/proc/self/root/usr",
        "/proc/self/task/1/root",
        "/dev/fd/3",
        "/workspace/to-root",
        "/workspace/to-host",
        "/workspace/nowhere",
        "/dev/null",
    ],
)
def test_cwd_through_a_link_of_proc_is_refused(box, workspace, cwd):
    os.symlink("/proc/self/root", os.path.join(workspace, "to-root"))
    os.symlink("/proc/1/root/tmp", os.path.join(workspace, "to-host"))
    boxes = box()
    error = boxes.client.send("run/argv", {**boxes.where, "argv": ["true"], "cwd": cwd}).error()
    refused(error, "invalid_value", "/cwd")


@attack("3")
@pytest.mark.parametrize("cwd", ["../../../../../..", "/workspace/../../..", "/workspace/up", "/"])
def test_cwd_above_the_root_is_the_root(box, workspace, cwd):
    os.symlink("../../../../..", os.path.join(workspace, "up"))
    result = box().sh(
        "/bin/pwd; ls -A . >/tmp/a; ls -A / >/tmp/b; cmp /tmp/a /tmp/b && ls -d ../../../workspace", cwd=cwd
    )
    plain(result, "/\n../../../workspace\n")


# -- pid 1


@attack("4")
@pytest.mark.parametrize(
    "call, words",
    [
        ("ptrace", "101 16 1 0 0"),
        ("ptrace", "101 0x4206 1 0 0"),
        ("process_vm_readv", "310 1 b:16 1 b:16 1 0"),
        ("process_vm_writev", "311 1 b:16 1 b:16 1 0"),
        ("ptrace", "101 0 0 0 0"),
    ],
    ids=["attach", "seize", "readv", "writev", "traceme"],
)
def test_memory_calls_are_escape_calls(box, call, words):
    escaped(box().run("bin/call", *words.split()), call)


@attack("4")
def test_descriptors_of_another_process_cannot_be_taken(box):
    """pidfd_open works, pidfd_getfd, kcmp, process_madvise do not exist."""
    plain(
        box().run("bin/call", *"434 1 0 -- 438 r 0 0 -- 312 1 1 0 0 0 -- 440 r b:16 1 21 0".split()),
        "434 ok 0\n438 -1 38\n312 -1 38\n440 -1 38\n",
    )


@attack("4", "5", "B30")
def test_everything_of_pid_1_is_closed(box, posture):
    code = (
        "import os\n"
        "for name in ('mem', 'environ', 'auxv', 'maps', 'smaps', 'pagemap', 'syscall', 'stack', 'personality', 'io', 'numa_maps',\n"
        "             'exe', 'cwd/x', 'root/x', 'fd', 'map_files', 'fdinfo', 'ns/mnt', 'ns/user', 'ns/net', 'fd/0', 'clear_refs'):\n"
        "    path = '/proc/1/' + name\n"
        "    try:\n"
        "        os.listdir(path) if name in ('fd', 'map_files', 'fdinfo') else os.read(os.open(path, os.O_RDONLY), 1)\n"
        "        print(name, 'open')\n"
        "    except OSError as e:\n"
        "        if e.errno not in (1, 13, 2): print(name, e.errno)\n"
        "print('closed')"
    )
    plain(box(**posture).python(code), "closed\n")


@attack("4", "C41")
def test_init_survives_everything_its_user_may_do_to_it(box, plain_next):
    """Same uid, so signals, limits and priorities are permitted; they must not end or blind it."""
    code = (
        "import os, resource, ctypes\n"
        "for number in range(1, 65):\n"
        "    try: os.kill(1, number)\n"
        "    except OSError: print('kill', number)\n"
        "for limit in ('CPU', 'NOFILE', 'AS', 'DATA', 'NPROC', 'STACK', 'FSIZE', 'MEMLOCK', 'SIGPENDING'):\n"
        "    try: resource.prlimit(1, getattr(resource, 'RLIMIT_' + limit), (0, 0))\n"
        "    except PermissionError: pass\n"
        "c = ctypes.CDLL(None, use_errno=True)\n"
        "c.sched_setscheduler(1, 5, (ctypes.c_int * 1)(0))\n"
        "c.setpriority(0, 1, 19)\n"
        "try: os.kill(-1, 9)\n"
        "except ProcessLookupError: pass\n"
        "print('alive')\n"
        "raise SystemExit(3)"
    )
    plain(box().python(code), "alive\n", code=3)


@attack("5", "A16")
@pytest.mark.parametrize("way", WAYS)
def test_host_environment_and_arguments_stay_outside(sidecar, workspace, way):
    client = sidecar(env={"KERN_SECRET": MARK, "LD_LIBRARY_PATH": f"/nowhere/{MARK}"})
    box = Boxes(client, way, workspace, {})
    # assembled in the box, so that its own arguments do not hold it
    half = len(MARK) // 2
    code = (
        f"import glob\nword = ({MARK[:half]!r} + {MARK[half:]!r}).encode()\n"
        "for path in glob.glob('/proc/*/*') + glob.glob('/proc/*/task/*/*') + glob.glob('/run/**', recursive=True):\n"
        "    if path.endswith(('/pagemap', '/kmsg')) or '/attr' in path: continue\n"
        "    try:\n"
        "        with open(path, 'rb') as file: data = file.read(1 << 20)\n"
        "    except OSError: continue\n"
        "    if word in data and not path.endswith('cmdline'): print(path)\n"
        "print(open('/proc/1/cmdline').read().strip(chr(0)))"
    )
    plain(box.python(code), "kern-box\n")
    assert client.run("env", session={"workspace": workspace})["stdout"].count(MARK) == 0


# -- descriptors


@attack("A17", "3")
@pytest.mark.parametrize("way", WAYS)
def test_no_descriptor_leaks_in(sidecar, workspace, way):
    """The host left some open over exec, a directory among them (CVE-2024-21626, CVE-2016-9962)."""
    leaked = [os.open("/", os.O_RDONLY | os.O_DIRECTORY), os.open("/etc/passwd", os.O_RDONLY), *os.pipe()]
    client = sidecar(pass_fds=leaked)
    box = Boxes(client, way, workspace, {})
    count = "import fcntl, os\nfound = []\nfor fd in range(20000):\n    try: fcntl.fcntl(fd, 1); found.append(fd)\n    except OSError: pass\nprint(found)"
    plain(box.python(count), "[0, 1, 2]\n")
    # by a language: the result channel besides
    assert eval(box.code(count)["stdout"]) == [0, 1, 2, 3]
    for fd in leaked:
        os.close(fd)


@attack("A18")
@pytest.mark.parametrize(
    "attempt, channel",
    [
        ("s.send(b'x')", "corrupt"),
        ("s.send(b'KRN1' + bytes(60000))", "corrupt"),
        ("s.send(struct.pack('<4sBBHIIII', b'KRN1', 1, 5, 0, 0, 1000, 0xffffffff, 0))", "corrupt"),
        ("s.send(struct.pack('<4sBBHIIII', b'KRN1', 9, 5, 0, 0, 1000, 0, 0))", "corrupt"),
        ("s.send(struct.pack('<4sBBHIIII', b'KRN1', 1, 7, 0, 0, 1000, 0, 0))", "corrupt"),
        ("s.send(struct.pack('<4sBBHIIII', b'KRN1', 1, 5, 0, 0, 1000, 4, 4) + b'aaaa')", "corrupt"),
        ("s.close()", "closed|ok"),
        ("s.shutdown(2)", "closed|ok"),
    ],
    ids=["byte", "zeros", "4-gib", "version", "forged-ack", "offset", "close", "shutdown"],
)
def test_result_channel_forged(box, plain_next, attempt, channel):
    """What comes through it is a claim: nothing there changes the exit status, the output or the next call."""
    code = (
        f"import socket, struct\ns = socket.socket(fileno=3)\n{attempt}\ns.detach()\nprint('out')\nraise SystemExit(9)"
    )
    result = box().code(code)
    assert (result["stdout"], result["exitCode"], "fault" in result) == ("out\n", 9, False), result
    assert result["resultChannel"] in channel.split("|"), result


@attack("A18", "7")
def test_descriptors_sent_to_the_host_are_not_kept(box, plain_next):
    """SCM_RIGHTS through the result channel: 250 descriptors a message, twenty messages."""
    boxes = box()
    code = (
        "import array, os, socket, struct, time\ns = socket.socket(fileno=3)\n"
        "fds = array.array('i', [os.open('/workspace/bin/who', 0) for _ in range(250)])\n"
        "for i in range(20):\n"
        "    frame = struct.pack('<4sBBHIIII', b'KRN1', 1, 99, 0, 0, 1000 + i, 0, 0)\n"
        "    try: s.sendmsg([frame], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])\n"
        "    except OSError: break\n"
        "print('sent', i, flush=True); time.sleep(0.3); os._exit(0)"
    )

    def held():
        directory, found = f"/proc/{boxes.client.pid}/fd", 0
        for name in os.listdir(directory):
            try:
                found += os.readlink(os.path.join(directory, name)).endswith("/bin/who")
            except FileNotFoundError:
                pass
        return found

    # the list of changed files would open the program, too
    future = boxes.client.send("run/code", {**boxes.where, "code": code, "trackFiles": False})
    highest = 0
    while not future.done():
        highest = max(highest, held())
    assert future.result()["stdout"].startswith("sent ")
    assert (highest, held()) == (0, 0)


@attack("A18")
def test_stdio_of_a_box_is_its_own(box):
    """Reading from stdout, writing to stdin, re-opening both through /proc: its own pipes, as /dev/stderr in a script needs it."""
    code = (
        "import os\nfor fd, flags in ((0, os.O_WRONLY), (1, os.O_RDONLY | os.O_NONBLOCK), (2, os.O_RDONLY | os.O_NONBLOCK)):\n"
        "    target = os.readlink(f'/proc/self/fd/{fd}').split(':')[0]\n"
        "    try: other = os.open(f'/proc/self/fd/{fd}', flags); state = 'open'\n"
        "    except OSError as e: state = e.errno\n"
        "    print(target, state)"
    )
    result = box().python(code)
    # the null device is the sidecar's, outside of what Landlock lets a box write to, where the kernel has it
    assert result["stdout"] in tuple(f"/dev/null {null}\npipe open\npipe open\n" for null in ("open", 13)), result


# -- descriptors from outside


@attack("7")
def test_namespace_descriptor_received_from_the_host_is_of_no_use(box, workspace):
    """A confederate on the host listens in the workspace and hands out its namespaces."""
    path = os.path.join(workspace, "door")
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    os.chmod(path, 0o777)
    server.listen()

    def hand_out():
        while True:
            try:
                peer = server.accept()[0]
            except OSError:
                return
            with peer:
                fds = [os.open(f"/proc/self/ns/{name}", os.O_RDONLY) for name in ("mnt", "net", "user")]
                peer.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])
                for fd in fds:
                    os.close(fd)

    thread = threading.Thread(target=hand_out, daemon=True)
    thread.start()
    code = (
        "import array, ctypes, socket\ns = socket.socket(socket.AF_UNIX); s.connect('/workspace/door')\n"
        "_, rights, _, _ = s.recvmsg(1, 256)\nfds = array.array('i', rights[0][2])\nprint(len(fds), flush=True)\n"
        "ctypes.CDLL(None).setns(fds[0], 0)\nprint('inside', flush=True)"
    )
    result = box().python(code)
    escaped(result, "setns")
    assert result["stdout"] == "3\n"
    server.shutdown(socket.SHUT_RDWR)
    server.close()
    thread.join(5)


@attack("7")
@pytest.mark.parametrize("name", ["mnt", "user", "pid", "net", "ipc", "uts", "cgroup", "time"])
def test_setns_into_its_own_namespace_is_an_escape_call(one_way, name):
    code = f"import ctypes, os\nctypes.CDLL(None).setns(os.open('/proc/self/ns/{name}', 0), 0)\nprint('alive')"
    result = one_way().python(code)
    escaped(result, "setns")
    assert result["stdout"] == ""


@attack("7")
def test_no_socket_of_the_host_is_in_the_tree(box):
    plain(
        box().sh(
            "find / -path /usr -prune -o -path /proc -prune -o -type s -print 2>/dev/null; "
            "ls /run/docker.sock /var/run/docker.sock /run/dbus /run/user /run/systemd 2>/dev/null; true"
        )
    )

"""The mount table, /proc, /dev and cgroups, attacked from inside and by hostile images."""

import ast
import os
import subprocess
import uuid

import pytest

import leftovers
from boxes import MARK, ROUNDS, WAYS, Boxes, attack, escaped, owned_tree
from expect import plain

X86 = pytest.mark.skipif(os.uname().machine != "x86_64", reason="system call numbers of x86-64")
NEW = {
    "user": 0x10000000,
    "mnt": 0x20000,
    "pid": 0x20000000,
    "net": 0x40000000,
    "ipc": 0x8000000,
    "uts": 0x4000000,
    "cgroup": 0x2000000,
}

MOUNT_CALLS = {
    "remount-root-rw": ("mount", "165 0 s:/ 0 0x20 0"),
    "remount-bind-rw": ("mount", "165 0 s:/usr 0 0x1020 0"),
    "tmpfs": ("mount", "165 s:none s:/tmp s:tmpfs 0 0"),
    "proc": ("mount", "165 s:proc s:/tmp s:proc 0 0"),
    "bind": ("mount", "165 s:/proc/1/root s:/tmp 0 0x1000 0"),
    "make-shared": ("mount", "165 0 s:/ 0 0x104000 0"),
    "cgroup": ("mount", "165 s:none s:/tmp s:cgroup 0 s:memory"),
    "cgroup2": ("mount", "165 s:none s:/tmp s:cgroup2 0 0"),
    "overlay": ("mount", "165 s:none s:/tmp s:overlay 0 s:lowerdir=/workspace,upperdir=/tmp,workdir=/tmp"),
    "unmask": ("umount2", "166 s:/proc/keys 2"),
    "umount-proc": ("umount2", "166 s:/proc 0"),
    "pivot": ("pivot_root", "155 s:. s:."),
    "open-tree-clone": ("open_tree", "428 -100 s:/ 1"),
    "move-mount": ("move_mount", "429 -100 s:/tmp -100 s:/home 0"),
    "fsopen": ("fsopen", "430 s:tmpfs 0"),
    "fsconfig": ("fsconfig", "431 3 6 0 0 0"),
    "fsmount": ("fsmount", "432 3 0 0"),
    "fspick": ("fspick", "433 -100 s:/ 0"),
    "open-tree-attr": ("open_tree_attr", "467 -100 s:/ 1 b:32 32"),
    "setattr-rw": ("mount_setattr", "442 -100 s:/ 0x8000 b:32 32"),
}


@X86
@attack("12", "B21", "B32", "15")
@pytest.mark.parametrize("name", MOUNT_CALLS)
def test_mount_call_is_an_escape_call(box, name):
    call, words = MOUNT_CALLS[name]
    boxes = box()
    result = boxes.run("bin/call", *words.split())
    escaped(result, call)
    assert (result["stdout"], result["exitCode"], result["signal"]) == ("", 159, "SYS")


@X86
@attack("12", "B21")
@pytest.mark.parametrize("name", ["tmpfs", "remount-root-rw", "unmask", "open-tree-clone", "setattr-rw"])
def test_mount_call_in_every_posture(box, posture, name):
    """With uid 0 and with capabilities inside, too: the filter does not ask who calls."""
    call, words = MOUNT_CALLS[name]
    escaped(box(**posture).run("bin/call", *words.split()), call)


@X86
@attack("12")
def test_chroot_does_not_exist(box, posture):
    """Also not for uid 0 with CAP_SYS_CHROOT: the classic way out of a directory."""
    plain(box(**posture).run("bin/call", "161", "s:/tmp"), "161 -1 38\n")


@X86
@attack("13", "B22")
@pytest.mark.parametrize("name", NEW)
def test_clone_and_unshare_of_a_namespace_are_escape_calls(box, name):
    boxes = box()
    for call, words in (("unshare", f"272 {NEW[name]:#x}"), ("clone", f"56 {NEW[name] | 17:#x} 0 0 0 0")):
        result = boxes.run("bin/call", *words.split())
        escaped(result, call)
        assert result["stdout"] == ""


@X86
@attack("13", "B22", "19")
@pytest.mark.parametrize("flags", [0x10020000, 0x7E020000, 0x100000000 | 0x10000000, 0x80 | 0x10000000, 0x80])
def test_unshare_with_several_flags_and_with_high_bits(box, flags):
    """0x80 is CLONE_NEWTIME; the kernel looks at all bits of unshare's argument, the filter at the low half."""
    escaped(box().run("bin/call", "272", f"{flags:#x}"), "unshare")


@X86
@attack("13", "19")
def test_clone3_does_not_exist_and_unshare_of_no_namespace_is_no_escape(box):
    plain(
        box().run("bin/call", *"435 b:88 88 -- 435 0 0 -- 272 0x400 -- 272 0x40000".split()),
        "435 -1 38\n435 -1 38\n272 ok 0\n272 ok 0\n",
    )


@attack("13")
def test_user_namespaces_are_counted_out_as_well(box, posture):
    """Should the filter ever have a hole, the kernel's own limit of the box's user namespace still says no (namespaces(7))."""
    script = "cat /proc/sys/user/max_user_namespaces; echo 9 2>/dev/null >/proc/sys/user/max_user_namespaces; cat /proc/sys/user/max_user_namespaces"
    plain(box(**posture).sh(script), "0\n0\n")


# -- hostile images


HOSTILE = {
    "dev": "../../../../proc",
    "proc": "/etc",
    "tmp": "/",
    "run": "../../../../../run",
    "home": "/root",
    "workspace": "/etc",
    "sys": "/sys",
    "var": "/var",
}


@attack("8", "9", "A12")
@pytest.mark.parametrize("way", WAYS)
def test_image_whose_directories_are_links(client, workspace, busybox_image, owner, way):
    for name, to in HOSTILE.items():
        os.symlink(to, os.path.join(busybox_image, name))
    for name in ("passwd", "group", "hosts", "resolv.conf", "machine-id", "hostname", "nsswitch.conf"):
        os.symlink(
            f"/etc/{name}" if name != "passwd" else "../../../../../etc/shadow",
            os.path.join(busybox_image, "etc", name),
        )
    owned_tree(busybox_image, owner)
    box = Boxes(client, way, workspace, {"image": f"dir:{busybox_image}"})
    script = (
        "stat -c '%F %t:%T' /dev/null /dev/zero /dev/full /dev/random /dev/urandom; readlink /dev; readlink /proc; readlink /tmp;"
        "stat -c %F /proc/self /tmp /home /run /workspace; ls /proc/1 >/dev/null && echo proc; cat /etc/passwd | head -1; echo x >/tmp/x; ls /tmp"
    )
    result = box.run("/bin/sh", "-c", script)
    device = "character special file 1:%s\n"
    assert result["stdout"].startswith("".join(device % n for n in "35789")), result
    assert "fault" not in result and "proc\n" in result["stdout"] and result["stdout"].endswith("\nx\n")
    assert "root:$" not in result["stdout"] and "root:*" not in result["stdout"] and "root:!" not in result["stdout"]


@attack("8", "9")
@pytest.mark.parametrize("way", WAYS)
def test_image_with_devices_of_its_own(client, workspace, busybox_image, owner, way):
    """CVE-2025-31133, CVE-2025-52565: /dev/null and /dev/console of the image are links to what must not be touched."""
    os.mkdir(os.path.join(busybox_image, "dev"))
    for name, to in {
        "null": "/proc/sys/kernel/core_pattern",
        "console": "/proc/sysrq-trigger",
        "ptmx": "/etc/passwd",
        "pts": "/etc",
        "shm": "/etc",
        "fd": "/etc",
    }.items():
        os.symlink(to, os.path.join(busybox_image, "dev", name))
    owned_tree(busybox_image, owner)
    box = Boxes(client, way, workspace, {"image": f"dir:{busybox_image}"})
    result = box.run(
        "/bin/sh",
        "-c",
        "echo '|/x' >/dev/null; stat -c '%F %t:%T' /dev/null; readlink /dev/ptmx; readlink /dev/fd; ls -d /dev/console",
    )
    assert result["stdout"] == "character special file 1:3\npts/ptmx\n/proc/self/fd\n", result
    # where masks went, and nothing outside /dev, /proc and the trees of the plan
    table = box.run("/bin/cat", "/proc/self/mountinfo")["stdout"]
    assert all(
        line.split()[4].startswith(("/proc/", "/dev/")) for line in table.splitlines() if line.split()[3] == "/null"
    )


def try_target(client, way, workspace, image, target, *argv):
    """The reply of a call whose workspace is to lie at `target` of that image."""
    where = {
        "image": f"dir:{image}",
        "workspace": workspace,
        "workspaceTarget": target,
        **({} if way == "throwaway" else {"start": way}),
    }
    return client.send("run/argv", {"argv": list(argv), "session": where, "cwd": "/"}).wait()


@attack("A12", "11")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "link, target",
    [
        ("../../../../../../etc", "/data/link/x"),
        ("/etc", "/data/link"),
        ("/proc/self/root/tmp", "/data/link"),
        ("/proc/self/cwd", "/data/link/y"),
        ("link", "/data/link"),
        ("/nowhere", "/data/link"),
    ],
)
def test_mount_target_behind_a_link_of_the_image(client, workspace, busybox_image, owner, way, link, target):
    """The workspace lands inside the new root, or the box is refused; nothing appears on the host."""
    os.symlink(link, os.path.join(busybox_image, "data", "link"))
    owned_tree(busybox_image, owner)
    places = "/etc", busybox_image, os.path.join(busybox_image, "etc"), os.path.join(busybox_image, "data")
    before = [sorted(os.listdir(place)) for place in places]
    reply = try_target(client, way, workspace, busybox_image, target, "/bin/cat", "/proc/self/mountinfo")
    if "error" in reply:
        assert reply["error"]["data"]["reason"] in ("start_failed", "mount_refused"), reply
    else:
        table = [line.split() for line in reply["result"]["stdout"].splitlines()]
        at = [fields[4] for fields in table if fields[3].endswith("/ws")]
        assert at in (["/etc"], ["/tmp"]), at
    assert [sorted(os.listdir(place)) for place in places] == before


@attack("A12", "8")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("link", ["/proc", "/dev", "/dev/shm", "/run/kern/python", "/run/code"])
def test_mount_target_over_what_is_ours(client, workspace, busybox_image, owner, way, link):
    """What may not be named as a target may not be reached by a link, either (CVE-2019-19921)."""
    os.symlink(link, os.path.join(busybox_image, "data", "link"))
    owned_tree(busybox_image, owner)
    for name in ("shm", "pts"):
        os.mkdir(os.path.join(workspace, name))
    open(os.path.join(workspace, "null"), "w", encoding="ascii").close()
    owned_tree(workspace, owner)
    reply = try_target(client, way, workspace, busybox_image, "/data/link", "/bin/true")
    assert reply.get("error", {}).get("data", {}).get("reason") in ("start_failed", "mount_refused"), reply


@attack("8")
@pytest.mark.parametrize("way", WAYS)
def test_mask_made_from_a_null_of_the_workspace(client, workspace, busybox_image, owner, way):
    """CVE-2025-31133: the image leads the workspace to /dev, the workspace's `null` is a link to the very file that it should mask."""
    os.symlink("/dev", os.path.join(busybox_image, "data", "link"))
    owned_tree(busybox_image, owner)
    os.symlink("/proc/interrupts", os.path.join(workspace, "null"))
    for directory in ("shm", "pts"):
        os.mkdir(os.path.join(workspace, directory))
    owned_tree(workspace, owner)
    reply = try_target(
        client, way, workspace, busybox_image, "/data/link", "/bin/head", "-c", "100", "/proc/interrupts"
    )
    assert "error" in reply or reply["result"]["stdout"] == "", reply


@attack("A12")
@pytest.mark.parametrize(
    "target",
    [
        "/",
        "/proc",
        "/proc/sys",
        "/sys",
        "/dev",
        "/dev/shm/x/..",
        "//proc",
        "/data/../dev",
        "relative",
        "/run/kern/python",
        "/run/code",
    ],
)
def test_mount_target_that_may_not_be_named(client, workspace, target):
    error = client.fail("session/open", {"workspace": workspace, "workspaceTarget": target})
    assert error.reason in ("invalid_value", "mount_refused") and error.data["path"] == "/workspaceTarget", error


@attack("11", "8")
def test_mount_target_exchanged_while_boxes_start(client, workspace, busybox_image, make_dir, owner):
    """CVE-2021-30465, CVE-2024-45310: a box whose workspace is another's image exchanges a directory of it with a link, for ever."""
    victim = make_dir("victim")
    os.mkdir(os.path.join(victim, "m"))
    os.mkdir(os.path.join(busybox_image, "data", "a"))
    os.mkdir(os.path.join(busybox_image, "data", "a", "m"))
    os.symlink("../" * 12 + victim.lstrip("/"), os.path.join(busybox_image, "data", "b"))
    os.symlink(os.path.join(workspace, "bin"), os.path.join(busybox_image, "data", "bin"))
    owned_tree(victim, owner)
    owned_tree(busybox_image, owner)
    subprocess.run(["cp", os.path.join(workspace, "bin/swap"), os.path.join(busybox_image, "bin/swap")], check=True)
    os.chown(os.path.join(busybox_image, "bin/swap"), owner.pw_uid, owner.pw_gid)
    attacker = client.start("./bin/swap", "data/a", "data/b", session={"workspace": busybox_image}, timeoutMs=600_000)
    client.wait_for(lambda: client.output_events(attacker), "the attacker", 30)
    inside = 0
    for i in range(ROUNDS):
        where = {"image": f"dir:{busybox_image}", "workspace": workspace, "workspaceTarget": "/data/a/m"}
        reply = client.send(
            "run/argv", {"argv": ["/bin/test", "-d", "/data/a/m/bin"], "session": where, "trackFiles": False}
        ).wait()
        if "error" in reply:
            assert reply["error"]["data"]["reason"] in ("start_failed", "mount_refused", "invalid_value"), reply
            continue
        inside += reply["result"]["exitCode"] == 0
        assert os.listdir(os.path.join(victim, "m")) == []
    client.cancel(attacker)
    attacker.wait(30)
    print(f"{inside} of {ROUNDS} boxes saw their workspace at its target")
    assert (os.listdir(victim), os.listdir(os.path.join(victim, "m"))) == (["m"], [])


@attack("A14")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount on the host")
@pytest.mark.parametrize("way", WAYS)
def test_writable_mount_below_a_read_only_tree(client, workspace, busybox_image, owner, way):
    below = os.path.join(busybox_image, "data")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=777", "none", below], check=True)
    try:
        box = Boxes(client, way, workspace, {"image": f"dir:{busybox_image}"})
        result = box.run(
            "/bin/sh", "-c", "echo x >/data/x; echo y >/y; grep -c ' /data ro,nosuid,nodev' /proc/self/mountinfo"
        )
        assert (result["stdout"], result["stderr"].count("Read-only file system")) == ("1\n", 2), result
        assert os.listdir(below) == []
        client.call("session/close", {"sessionId": box.where["sessionId"]}) if way != "throwaway" else None
    finally:
        subprocess.run(["umount", "-l", below], check=True)


@attack("A20")
def test_image_is_the_same_for_the_next_box(box, busybox_image, as_user):
    """Every directory and file of the image: not one byte, name, mode or time may change."""
    boxes = box(image=f"dir:{busybox_image}")
    script = (
        "for f in / /bin /etc /data; do touch $f/x; mkdir $f/y; touch $f; done; echo x >>/bin/busybox; chmod 777 /bin/busybox;"
        "mv /bin/busybox /bin/b; rm -rf /bin/* /etc /data; ln -s x /data/l"
    )
    before = subprocess.run(
        ["find", busybox_image, "-printf", "%p %m %s %T@ %l\n"], check=True, capture_output=True
    ).stdout
    assert boxes.run("/bin/busybox", "sh", "-c", f"busybox() {{ /bin/busybox \"$@\"; }}; {script}")["exitCode"] != 0
    after = subprocess.run(
        ["find", busybox_image, "-printf", "%p %m %s %T@ %l\n"], check=True, capture_output=True
    ).stdout
    assert before == after


# -- /proc and devices

# Settings that belong to the ipc or pid namespace of who reads them (ipc_namespaces(7); pid_max since Linux 6.14).
OF_NAMESPACES = [
    *(
        f"/proc/sys/fs/mqueue/{name}"
        for name in ("msg_default", "msg_max", "msgsize_default", "msgsize_max", "queues_max")
    ),
    *(
        f"/proc/sys/kernel/{name}"
        for name in (
            "auto_msgmni",
            "msgmax",
            "msgmnb",
            "msgmni",
            "pid_max",
            "sem",
            "shm_rmid_forced",
            "shmall",
            "shmmax",
            "shmmni",
        )
    ),
]


def contents(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        return error.errno


@attack("B28", "8")
def test_no_kernel_setting_can_be_opened_for_writing(box, posture):
    """Every file below /proc that is not of a process of the box, and sysfs is not there at all. Uid 0 inside may open those of its
    own ipc and pid namespaces: what it writes there, the host does not see."""
    code = (
        "import os\nopened = []\n"
        "skip = ('/proc/pressure/cpu', '/proc/pressure/io', '/proc/pressure/memory')  # a test of their own\n"
        "for top, names, files in os.walk('/proc'):\n"
        "    if top == '/proc': names[:] = [n for n in names if not n.isdigit() and n not in ('self', 'thread-self')]\n"
        "    for name in files:\n"
        "        path = os.path.join(top, name)\n"
        "        try: fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK)\n"
        "        except OSError: continue\n"
        "        if path == '/proc/sys/kernel/ns_last_pid':  # mode 0666, the right is looked at when it is written\n"
        "            try: os.write(fd, b'100')\n"
        "            except PermissionError: continue\n"
        "        os.close(fd)\n"
        "        if os.stat(path).st_rdev != os.makedev(1, 3) and path not in skip: opened.append(path)\n"
        "        if path.startswith('/proc/sys/'):\n"
        "            try: open(path, 'w').write('401')\n"
        "            except OSError: pass\n"
        "print(opened, os.path.exists('/sys'))"
    )
    values = [contents(path) for path in OF_NAMESPACES]
    result = box(**posture).python(code)
    opened = set(ast.literal_eval(result["stdout"].rsplit(" ", 1)[0]))
    assert opened <= (set(OF_NAMESPACES) | {"/proc/mounts"} if "user" in posture else set()), opened
    assert result["stdout"].endswith("] False\n") and values == [contents(path) for path in OF_NAMESPACES]


@attack("B28", "32")
def test_no_pressure_trigger_can_be_set_on_the_host(box):
    """A trigger is work for a kernel thread outside of every cgroup; unprivileged ones are allowed since Linux 6.4 (psi.rst)."""
    code = (
        "import os\n"
        "for name in ('cpu', 'io', 'memory'):\n"
        "    try: print(os.write(os.open('/proc/pressure/' + name, os.O_RDWR), b'some 150000 2000000\\0'))\n"
        "    except OSError: print('refused')"
    )
    plain(box().python(code), "refused\n" * 3)


@attack("B28", "67")
def test_addresses_and_messages_of_the_kernel_are_hidden(box):
    script = (
        "cut -d' ' -f1 /proc/kallsyms 2>/dev/null | grep -vc '^0*$';"
        "for f in kcore kmsg kpageflags kpagecount slabinfo vmallocinfo iomem-x sysrq-trigger; do head -c 1 /proc/$f 2>/dev/null | wc -c; done;"
        "cat /proc/keys /proc/key-users /proc/timer_list /proc/interrupts /proc/sched_debug 2>/dev/null | wc -c; ls /proc/acpi /proc/scsi /proc/asound 2>/dev/null | grep -vc :;"
        "sed 's/^0*-0* : //' /proc/iomem | grep -vc '^ *0*-0*' >/dev/null; grep -vc '^ *00*-00* :' /proc/iomem"
    )
    plain(box().sh(script), "0\n" + "0\n" * 8 + "0\n0\n0\n", code=1)


@attack("B28", "16")
def test_a_device_made_in_the_box_is_inert(box):
    code = (
        "import os, stat\n"
        "for place in ('/tmp', '/workspace', '/dev/shm', '/home/sandbox'):\n"
        "    for kind, device in ((stat.S_IFCHR, (1, 1)), (stat.S_IFBLK, (254, 0)), (stat.S_IFCHR, (10, 200)), (stat.S_IFCHR, (0, 0))):\n"
        "        path = place + '/device'\n"
        "        try: os.mknod(path, kind | 0o666, os.makedev(*device))\n"
        "        except PermissionError: continue\n"
        "        try: os.open(path, os.O_RDWR); print('opened', place, device)\n"
        "        except OSError as e: print(device, e.errno)\n"
        "        os.unlink(path)"
    )
    # 0:0 is a whiteout: anybody may make one since Linux 5.8, nobody can open it, and no workspace is ever an overlay's layer
    plain(box().python(code), "(0, 0) 13\n" * 4)


@attack("16")
def test_attributes_and_whiteouts_stay_in_a_private_workspace_that_is_removed(client):
    """Nothing of this stops the removal; conftest counts what is left."""
    code = (
        "import os, stat\n"
        "for name in ('trusted.overlay.opaque', 'security.capability', 'user.overlay.opaque', 'user.overlay.redirect', 'system.posix_acl_access'):\n"
        "    try: os.setxattr('/workspace', name, bytes([0, 0, 0, 2]) + bytes(16)); print(name, 'set')\n"
        "    except OSError as e: print(name, e.errno)\n"
        "os.mknod('w', stat.S_IFCHR | 0o600, 0)\nos.mkdir('.wh..wh..opq'); os.mkdir('d'); open('d/f', 'w'); os.chmod('d', 0)\nos.chmod('.', 0o500)"
    )
    lines = client.run("python3", "-c", code)["stdout"].splitlines()
    assert lines[:2] == ["trusted.overlay.opaque 1", "security.capability 1"]
    assert all(line.split()[1] in ("set", "95", "22") for line in lines[2:]), lines


@attack("9")
def test_terminals_are_of_the_box(box):
    """Its own devpts; keystrokes cannot be pushed into a terminal (TIOCSTI, TIOCLINUX), whatever the upper half of the request is."""
    code = (
        "import ctypes, fcntl, os, pty\n"
        "m, s = pty.openpty(); print(os.ttyname(s))\n"
        "c = ctypes.CDLL(None, use_errno=True)\n"
        "for request in (0x5412, 0x541C, 0x100005412, 0xffffffff00005412, 0x80000000541C):\n"
        "    ctypes.set_errno(0); print(c.syscall(16, s, ctypes.c_ulong(request), b'x'), ctypes.get_errno())\n"
        "try: os.open('/dev/tty', os.O_RDWR)\nexcept OSError as e: print(e.errno)\n"
        "print(sorted(os.listdir('/dev/pts')), os.path.exists('/dev/console'))"
    )
    plain(box().python(code), "/dev/pts/0\n" + "-1 1\n" * 5 + "6\n['0', 'ptmx'] False\n")


@attack("B32")
def test_root_is_read_only_and_null_is_writable(box, posture):
    """With and without O_CREAT in the sticky directory: protected_regular must not be in the way."""
    code = (
        "import os\n"
        "for path in ('/x', '/usr/x', '/etc/x', '/etc/passwd', '/bin/x', '/dev/x', '/run/x', '/run/kern/x', '/var/x', '/lib/x'):\n"
        "    try: os.open(path, os.O_WRONLY | os.O_CREAT, 0o600); print(path)\n"
        "    except OSError as e:\n"
        "        if e.errno != 30 and not (e.errno == 13 and path == '/etc/passwd'): print(path, e)\n"
        "for flags in (os.O_WRONLY, os.O_WRONLY | os.O_CREAT, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, os.O_RDWR):\n"
        "    print(os.write(os.open('/dev/null', flags, 0o600), b'x'))"
    )
    plain(box(**posture).python(code), "1\n" * 4)


# -- cgroups


@attack("15")
def test_cgroups_are_out_of_reach(box, posture):
    """CVE-2022-0492: no hierarchy is mounted, the paths end at the box's own root, no file of one can be found."""
    script = (
        "ls -d /sys/fs/cgroup /sys 2>/dev/null; grep -c cgroup /proc/self/mountinfo; grep -v ':/$' /proc/self/cgroup;"
        "find / -xdev \\( -name release_agent -o -name cgroup.procs -o -name notify_on_release \\) 2>/dev/null; true"
    )
    plain(box(**posture).sh(script), "0\n")


@attack("15")
def test_limits_of_a_living_box_are_what_was_asked(box, plain_next):
    """Read from outside while the box tries to leave its cgroups by every file of /proc that could name one."""
    boxes = box(memoryMb=128)
    word = f"1000.{uuid.uuid4().int % 10**9}"
    script = (
        "for f in /proc/self/cgroup /proc/self/oom_score_adj /proc/self/oom_adj /proc/1/oom_score_adj /proc/self/loginuid; do echo -1000 >$f; done 2>/dev/null;"
        f"cat /proc/self/oom_score_adj; sleep {word}"
    )
    future = boxes.start("sh", "-c", script)
    boxes.client.wait_for(lambda: boxes.client.output_events(future) and leftovers.with_argument(word), "the box", 30)
    assert int(boxes.client.output_events(future)[0]["text"]) >= 0
    pid = leftovers.with_argument(word)[0]
    with open(f"/proc/{pid}/cgroup", encoding="utf-8") as file:
        groups = {name: path.strip() for _, name, path in (line.split(":", 2) for line in file)}
    for name, file, wanted in (("memory", "memory.limit_in_bytes", 128 << 20), ("", "memory.max", 128 << 20)):
        path = f"/sys/fs/cgroup/{name}{groups.get(name, '')}/{file}"
        if boxes.enforced("memoryMb") == "kernel" and name in groups and os.path.exists(path):
            assert leftovers.CGROUP_PREFIX in groups[name]
            with open(path, encoding="ascii") as value:
                assert int(value.read()) == wanted
    boxes.client.cancel(future)
    future.wait(30)


# -- propagation


@attack("17")
def test_mounts_do_not_travel_out(client):
    """However many boxes there were, the sidecar and the host have the mounts they had."""
    client.run("true")
    before = leftovers.mount_count(client.pid), leftovers.mount_count(os.getpid())
    for future in [client.send("run/argv", {"argv": ["true"]}) for _ in range(ROUNDS)]:
        assert future.result()["exitCode"] == 0
    assert (leftovers.mount_count(client.pid), leftovers.mount_count(os.getpid())) == before


@attack("17")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount on the host")
def test_mounts_do_not_travel_in(box, workspace, owner):
    """A file system that the host mounts below the workspace while a box lives does not appear in it, nor in one made later."""
    boxes = box()
    sub = boxes.path("sub")
    os.mkdir(sub)
    os.chown(sub, owner.pw_uid, owner.pw_gid)
    future = boxes.start(
        "sh", "-c", "echo ready; read x; ls -A sub; grep -c /sub /proc/self/mountinfo", interactive=True
    )
    boxes.client.wait_for(lambda: boxes.client.output_events(future), "the box", 30)
    subprocess.run(["mount", "-t", "tmpfs", "none", sub], check=True)
    try:
        with open(os.path.join(sub, MARK), "w", encoding="ascii"):
            pass
        boxes.client.call("run/stdin", {"runId": future.run_id, "text": "\n", "eof": True})
        assert future.result()["stdout"] == "ready\n0\n"
    finally:
        subprocess.run(["umount", "-l", sub], check=True)

"""What a box is, seen from inside and from the host."""

import os

import pytest

import leftovers
from expect import plain

NAMESPACES = ("pid", "mnt", "net", "ipc", "uts", "cgroup")
SHOW = "for n in pid mnt net ipc uts cgroup user; do readlink /proc/self/ns/$n; done; read x"


def living(client, count, script, **params):
    """`count` boxes that are alive at the same time, and the first lines of each (namespace numbers are reused)."""
    futures = [client.start("sh", "-c", script, interactive=True, **params) for _ in range(count)]
    lines = script.count("readlink") and 7
    printed = lambda f: "".join(e["text"] for e in client.output_events(f))
    client.wait_for(lambda: all(printed(f).count("\n") >= lines for f in futures), "what the boxes print", 60)
    return futures, [printed(f).split("\n")[:lines] for f in futures]


def finish(client, futures):
    for future in futures:
        client.call("run/stdin", {"runId": future.run_id, "text": "\n", "eof": True})
        future.result()


def test_namespaces_of_their_own(client):
    session = client.open()
    mine = [os.readlink(f"/proc/self/ns/{name}") for name in (*NAMESPACES, "user")]
    futures, boxes = living(client, 5, SHOW, sessionId=session)
    for i, name in enumerate((*NAMESPACES, "user")):
        seen = {box[i] for box in boxes}
        assert mine[i] not in seen, name
        # the user namespace is the session's, or also the call's: process limits count by it
        assert len(seen) == 5 or (name == "user" and len(seen) == 1), (name, seen)
    finish(client, futures)


def test_user_namespace_of_each_session(client):
    pairs = [living(client, 1, SHOW, sessionId=client.open()) for _ in range(2)]
    assert len({boxes[0][6] for _, boxes in pairs}) in (1, 2)
    assert pairs[0][1][0][1] != pairs[1][1][0][1]
    for futures, _ in pairs:
        finish(client, futures)


def test_cgroup_of_its_own(client):
    """By the host's view of each box's main process."""
    session = client.call("session/open", {})
    words = [f"1000.{os.getpid()}{i}" for i in range(4)]
    futures = [client.start("sleep", word, sessionId=session["sessionId"]) for word in words]
    client.wait_for(lambda: all(leftovers.with_argument(word) for word in words), "the boxes", 30)
    groups = []
    for word in words:
        with open(f"/proc/{leftovers.with_argument(word)[0]}/cgroup", encoding="utf-8") as file:
            groups.append({line.split(":", 2)[1]: line.split(":", 2)[2].strip() for line in file})
    enforced = session["effective"]["memoryMb"]["enforced"] == "kernel"
    ours = [{name: path for name, path in group.items() if leftovers.CGROUP_PREFIX in path} for group in groups]
    assert all(bool(group) is enforced for group in ours)
    if enforced:
        for name in ours[0]:
            assert len({group[name] for group in ours}) == 4
    for future in futures:
        client.cancel(future)
        future.wait(30)


def test_cgroup_namespace_hides_the_path(client):
    result = client.run("cat", "/proc/self/cgroup")
    assert leftovers.CGROUP_PREFIX not in result["stdout"] and ".." not in result["stdout"]


CANARY = "KERN-CANARY-51c7"


def test_host_environment_is_not_visible(sidecar):
    client = sidecar(env={"KERN_CANARY": CANARY, "AWS_SECRET_ACCESS_KEY": CANARY})
    # as a pattern that does not match itself, or grep would find its own arguments
    pattern = f"[{CANARY[0]}]{CANARY[1:]}"
    script = f"env | grep -c '{pattern}'; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | grep -ac '{pattern}'; true"
    plain(client.run("sh", "-c", script), "0\n0\n")
    assert client.run("sh", "-c", "cat /proc/1/environ | wc -c")["stdout"] == "0\n"


def test_environment_is_the_fixed_list(client):
    names = client.run("sh", "-c", "env -u _ -u PWD -u OLDPWD -u SHLVL | sed 's/=.*//' | sort")["stdout"].split()
    assert {"HOME", "LANG", "PATH", "TERM", "TMPDIR"} <= set(names)
    assert set(names) <= {
        "HOME",
        "LANG",
        "PATH",
        "TERM",
        "TMPDIR",
        "MPLCONFIGDIR",
        "USER",
        "LOGNAME",
        "SHELL",
        "XDG_CACHE_HOME",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "XDG_RUNTIME_DIR",
        "XDG_STATE_HOME",
    }
    assert (
        client.run("sh", "-c", 'echo $LANG; echo x > "$HOME/probe" && echo writable')["stdout"] == "C.UTF-8\nwritable\n"
    )


def test_only_the_three_descriptors(sidecar):
    """Also with descriptors that the host left open over exec."""
    read_end, write_end = os.pipe()
    client = sidecar(pass_fds=(read_end, write_end))
    plain(
        client.run(
            "sh", "-c", "ls /proc/self/fd | wc -l; for f in 0 1 2; do readlink /proc/self/fd/$f; done | sed 's/:.*//'"
        ),
        "4\n/dev/null\npipe\npipe\n",
    )  # the fourth is ls's own, of the directory
    code = "import os\nprint(sorted(int(f) for f in os.listdir('/proc/self/fd')))"
    # a run by a language has the result channel besides
    fds = eval(client.code(code)["stdout"])
    assert fds[:3] == [0, 1, 2] and len(fds) <= 5
    result = client.run("sh", "-c", "ls /proc/1/fd 2>&1; cat /proc/1/mem 2>&1 | head -c 100; readlink /proc/1/ns/pid")
    assert "ermission denied" in result["stdout"]
    for fd in (read_end, write_end):
        os.close(fd)


@pytest.mark.parametrize(
    "path",
    [
        "/x",
        "/usr/x",
        "/etc/x",
        "/bin/x",
        "/dev/x",
        "/proc/x",
        "/sys/x",
        "/etc/passwd",
        "/run/x",
        "/proc/sys/kernel/core_pattern",
        "/proc/sysrq-trigger",
        "/proc/sys/vm/drop_caches",
    ],
)
def test_not_writable(client, path):
    result = client.run("sh", "-c", f"echo x >> {path}")
    assert result["exitCode"] != 0 and "fault" not in result


@pytest.mark.parametrize("path", ["/workspace/x", "/tmp/x", "/dev/shm/x", "/dev/null"])
def test_writable(client, path):
    plain(client.run("sh", "-c", f"echo x > {path}"))


def test_usr_is_mounted_read_only_and_nothing_honours_setuid(client):
    """By the options of every mount, not by a try."""
    mounts = [line.split() for line in client.run("cat", "/proc/self/mountinfo")["stdout"].splitlines()]
    assert len(mounts) > 5
    for fields in mounts:
        target, options = fields[4], fields[5].split(",")
        assert "nosuid" in options, fields
        if not target.startswith("/dev") and fields[3] != "/null":  # a mask is the null device over a file of /proc
            assert "nodev" in options, fields
        if target in ("/", "/usr", "/etc", "/bin", "/lib") or target.startswith("/usr/"):
            assert "ro" in options, fields


def test_tmp_is_of_the_call(client):
    session = client.open()
    plain(client.run("sh", "-c", "echo x > /tmp/a; echo x > /dev/shm/a; echo x > $HOME/a", sessionId=session))
    assert client.run("sh", "-c", "ls /tmp/a /dev/shm/a 2>/dev/null", sessionId=session)["stdout"] == ""


def test_ordinary_user_without_power(client):
    plain(client.run("sh", "-c", "id -u; id -g; id -un; id -Gn; hostname"), "1000\n1000\nsandbox\nsandbox\nsandbox\n")
    status = client.run("cat", "/proc/self/status")["stdout"]
    facts = {line.split(":")[0]: line.split(":")[1].strip() for line in status.splitlines() if ":" in line}
    assert {name: facts[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == dict.fromkeys(
        ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"), "0" * 16
    )
    assert (facts["NoNewPrivs"], facts["Seccomp"]) == ("1", "2")


def test_setuid_program_gains_nothing(client):
    result = client.run("sh", "-c", "find /usr/bin -perm -4000 | head -1; su -c id root </dev/null")
    assert "uid=0" not in result["stdout"]


def test_no_network(client):
    assert client.run("sh", "-c", "tail -n +3 /proc/net/dev | cut -d: -f1")["stdout"].split() == ["lo"]
    code = (
        "import socket\ns = socket.socket()\ns.settimeout(5)\ntry: s.connect(('192.0.2.1', 80)); print('connected')\n"
        "except OSError as e: print(e.errno)\n"
        "a = socket.create_server(('127.0.0.1', 0)); socket.create_connection(a.getsockname()); print('loopback')"
    )
    plain(client.run("python3", "-c", code), "101\nloopback\n")


def test_abstract_sockets_of_the_host_are_out_of_reach(client):
    import socket

    name = f"\0kern-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(name)
        server.listen()
        plain(
            client.run(
                "python3",
                "-c",
                f"import socket\ntry: socket.socket(socket.AF_UNIX).connect(chr(0) + {name[1:]!r}); print('in')\n"
                "except OSError as e: print(e.errno)",
            ),
            "111\n",
        )


def test_only_its_own_processes(client):
    pids = client.run("sh", "-c", "ls /proc | grep '^[0-9]' | sort -n")["stdout"].split()
    assert pids[:2] == ["1", "2"] and len(pids) <= 6


def test_host_homes_are_not_there(client, owner):
    result = client.run(
        "sh",
        "-c",
        f"ls -A /root /home {owner.pw_dir} /var/log /boot /srv /mnt /opt 2>/dev/null | grep -v '^/' | grep -v '^$'",
    )
    assert "sandbox" in result["stdout"] or result["stdout"] == ""


def test_masked_proc(client):
    result = client.run(
        "sh",
        "-c",
        "for f in /proc/kcore /proc/keys /proc/timer_list /proc/sched_debug; do cat $f 2>/dev/null | head -c 10; done;"
        "ls /proc/acpi /proc/scsi /sys/firmware 2>/dev/null | grep -v '^/' | grep -v '^$'",
    )
    assert result["stdout"] == ""


def test_own_identity_files(client):
    result = client.run("sh", "-c", "cut -d: -f1,3 /etc/passwd; cat /etc/hostname 2>/dev/null; wc -l < /etc/passwd")
    assert "sandbox:1000" in result["stdout"]
    for name in ("kerntest", "postgres", "messagebus"):
        assert name not in result["stdout"]
    assert client.run("sh", "-c", "cat /etc/shadow 2>/dev/null; cat /etc/machine-id | wc -c")["stdout"].strip() in (
        "0",
        "33",
        "32",
    )


def test_devices(client):
    result = client.run(
        "sh", "-c", "ls /dev; for d in null zero full random urandom; do test -c /dev/$d || exit 9; done; echo all"
    )
    assert "all" in result["stdout"].split()
    assert set(result["stdout"].split()) - {"all"} <= {
        "null",
        "zero",
        "full",
        "random",
        "urandom",
        "tty",
        "pts",
        "ptmx",
        "shm",
        "fd",
        "stdin",
        "stdout",
        "stderr",
        "core",
        "mqueue",
        "console",
    }


def test_files_belong_to_the_caller_or_to_nobody_real(client, owner):
    session = client.call("session/open", {})
    client.run("touch", "f", sessionId=session["sessionId"])
    uid = os.stat(os.path.join(session["workspace"], "f")).st_uid
    assert uid == owner.pw_uid if owner.pw_uid else uid >= 65536


def test_limits_of_the_process(client):
    assert client.run("sh", "-c", "ulimit -c; ulimit -n")["stdout"].split()[0] in ("0", "1")

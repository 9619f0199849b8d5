"""What a request weakens or strengthens by name: user, capDrop, securityProfile, apparmor, network. All of it shows in `effective`."""

import os
import socket

import pytest

from expect import plain, refused

CAPABILITY_SETS = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
DOCKER = 0xA80425FB  # capabilities(7): the 14 of Docker's default


def run(client, script, **session):
    return client.call("run/argv", {"argv": ["sh", "-c", script], "session": session})


def capabilities(client, **session):
    text = run(client, "grep ^Cap /proc/self/status", **session)["stdout"]
    return {line.split(":")[0]: int(line.split()[1], 16) for line in text.splitlines()}


def effective(client, **params):
    return client.call("session/open", params)["effective"]


# -- user


@pytest.mark.parametrize(
    "user, uid, name",
    [(None, 1000, "sandbox"), ("sandbox", 1000, "sandbox"), ("1000", 1000, "sandbox"), ("root", 0, "root"), ("0", 0, "root"),
     ("1", 1, "user1"), ("4711", 4711, "user4711"), ("65535", 65535, "user65535")],
)  # fmt: skip
def test_user(client, user, uid, name):
    session = {} if user is None else {"user": user}
    script = 'id -u; id -g; id -un; echo $USER $LOGNAME $HOME; touch /workspace/f $HOME/f && stat -c "%u %g" /workspace/f $HOME/f'
    plain(run(client, script, **session), f"{uid}\n{uid}\n{name}\n{name} {name} /home/sandbox\n{uid} {uid}\n{uid} {uid}\n")


@pytest.mark.parametrize("user", ["65536", "-1", "1x", "nosuchuser", "daemon", "0x10", "../etc"])
def test_user_that_is_none(client, user):
    error = client.fail("session/open", {"user": user})
    refused(error, "invalid_value", "/user")
    assert "65535" in error.data["hint"]


def test_root_in_the_box_is_nobody_outside(client, make_dir, owner, as_user):
    workspace = make_dir("ws")
    result = run(client, "id -u; cat /etc/shadow; touch /workspace/f; mount -t tmpfs x /tmp", user="root", workspace=workspace)
    assert result["stdout"] == "0\n"
    assert result["fault"]["type"] == "escape_blocked"
    info = os.stat(os.path.join(workspace, "f"))
    assert info.st_uid == owner.pw_uid


def test_root_has_no_power(client):
    assert capabilities(client, user="root") == dict.fromkeys(CAPABILITY_SETS, 0)
    for command in ("chown 12 /workspace", "date -s 2001-01-01", "mknod /tmp/n c 1 3", "chroot / true"):
        result = run(client, command, user="root")
        assert result["exitCode"] != 0, command
        assert "fault" not in result, result


# -- capDrop


def test_all_are_dropped_by_default_and_when_said(client):
    for session in ({}, {"capDrop": ["ALL"]}, {"capDrop": ["ALL"], "user": "root"}, {"capDrop": ["NET_RAW", "ALL"]}):
        assert capabilities(client, **session) == dict.fromkeys(CAPABILITY_SETS, 0)
    assert effective(client)["capabilities"]["value"] == f"{0:016x}"


def test_none_dropped(client):
    kept = capabilities(client, capDrop=[], user="root")
    assert kept == {"CapInh": 0, "CapPrm": DOCKER, "CapEff": DOCKER, "CapBnd": DOCKER, "CapAmb": 0}
    session = client.call("session/open", {"capDrop": [], "user": "root"})
    assert session["effective"]["capabilities"]["value"] == f"{DOCKER:016x}"
    assert "capabilities_kept" in [note["code"] for note in session["notes"]]


@pytest.mark.parametrize("name", ["NET_RAW", "CAP_NET_RAW"])
def test_some_dropped(client, name):
    kept = capabilities(client, capDrop=[name], user="root")
    assert kept["CapEff"] == DOCKER & ~(1 << 13)


def test_kept_ones_are_of_no_use_to_an_ordinary_user_of_the_box(client):
    kept = capabilities(client, capDrop=[])
    assert (kept["CapEff"], kept["CapPrm"], kept["CapAmb"]) == (0, 0, 0)


def test_kept_ones_do_not_open_the_box(client):
    """With all that can be kept: init stays closed, the root read-only, mounts reported."""
    script = "cat /proc/1/environ; ls /proc/1/fd; touch /usr/x; kill -9 1; echo alive"
    result = run(client, script, capDrop=[], user="root")
    assert result["stdout"] == "alive\n"
    assert "Read-only file system" in result["stderr"]
    result = run(client, "mount -t tmpfs x /tmp; echo alive", capDrop=[], user="root")
    assert result["fault"]["syscall"] == "mount"


@pytest.mark.parametrize("names, path", [(["NET_RAWR"], "/capDrop/0"), (["NET_RAW", "all"], "/capDrop/1"), ([""], "/capDrop/0")])
def test_capability_that_is_none(client, names, path):
    refused(client.fail("session/open", {"capDrop": names}), "invalid_value", path)


# -- securityProfile


def test_untrusted(client):
    session = client.call("session/open", {"securityProfile": "untrusted"})
    assert session["effective"]["seccomp"] == {"value": "untrusted", "enforced": "kernel"}
    assert effective(client)["seccomp"] == {"value": "default", "enforced": "kernel"}
    name = session["sessionId"]
    plain(client.run("python3", "-c", "print(6 * 7)", sessionId=name), "42\n")
    plain(client.run("sh", "-c", "echo a | cat > f; cat f", sessionId=name), "a\n")
    assert client.code("6 * 7", sessionId=name)["results"][0]["data"]["text/plain"] == "42"


@pytest.mark.parametrize(
    "weaker, path",
    [({"network": True}, "/network"), ({"capDrop": []}, "/capDrop"), ({"mapOwner": True}, "/mapOwner"),
     ({"enforceLimits": False}, "/enforceLimits"), ({"user": "root"}, "/user")],
)  # fmt: skip
def test_untrusted_allows_nothing_weaker(client, weaker, path):
    error = client.fail("session/open", {"securityProfile": "untrusted", **weaker})
    refused(error, "invalid_value", path)
    assert "untrusted" in error.message


@pytest.mark.parametrize("profile", ["trusted", "Untrusted", "/etc/profile.json"])
def test_other_profiles(client, profile):
    refused(client.fail("session/open", {"securityProfile": profile}), "invalid_value", "/securityProfile")


# -- apparmor


def test_apparmor_fails_closed(client):
    enabled = os.path.exists("/sys/module/apparmor/parameters/enabled")
    if enabled:
        pytest.skip("this host has AppArmor; the profile of this name would have to exist")
    error = client.fail("session/open", {"apparmor": "docker-default"})
    refused(error, "host_unsupported", "/apparmor")
    assert client.call("session/list") == {"sessions": []}


@pytest.mark.parametrize("name", ["a b", "x;y", "a\nb"])
def test_apparmor_names(client, name):
    refused(client.fail("session/open", {"apparmor": name}), "invalid_value", "/apparmor")


# -- network


def test_network_is_the_hosts_when_asked(client):
    """A server of this test, on 127.0.0.1 of this machine."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(30)
        port = server.getsockname()[1]
        code = f"import socket; s = socket.create_connection(('127.0.0.1', {port})); s.sendall(b'hello'); s.close()"
        refusal = client.code(code)
        assert refusal["exitCode"] == 1 and refusal["error"]["name"] == "ConnectionRefusedError"
        session = client.call("session/open", {"network": True})
        assert session["effective"]["network"]["value"] == "host"
        assert "network_is_the_hosts" in [note["code"] for note in session["notes"]]
        plain(client.code(code, sessionId=session["sessionId"]))
        peer, _ = server.accept()
        with peer:
            peer.settimeout(30)
            assert peer.recv(100) == b"hello"
    assert effective(client)["network"] == {"value": "none", "enforced": "kernel"}


def test_the_rest_holds_with_the_hosts_network(client):
    assert capabilities(client, network=True) == dict.fromkeys(CAPABILITY_SETS, 0)
    result = run(client, "readlink /proc/self/ns/net; hostname; ls /proc | grep -c '^[0-9]'", network=True)
    lines = result["stdout"].split()
    assert lines[0] == os.readlink("/proc/self/ns/net")
    assert lines[1] == "sandbox"
    assert int(lines[2]) <= 4


# -- landlock


def test_landlock_is_told(client):
    landlock = effective(client)["landlock"]
    if landlock["enforced"] == "kernel":
        assert int(landlock["value"]) >= 2
    else:
        assert (landlock["value"], landlock["enforced"]) == ("0", "none") and landlock["reason"]

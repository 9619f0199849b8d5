"""Options are checked where they are written: the kind of error, its reason, and that it names the option."""

import os

import pytest

import kern_sandbox as kern

INVALID, TYPE, RANGE = "invalid_value", "invalid_type", "out_of_range"
WRONG = [
    ({"memory_mb": "512"}, TYPE), ({"memory_mb": True}, TYPE), ({"memory_mb": 3}, RANGE), ({"memory_mb": 1048577}, RANGE),
    ({"pids": 0}, RANGE), ({"pids": 4194305}, RANGE), ({"pids": 1.5}, TYPE),
    ({"cpus": 0}, RANGE), ({"cpus": 1025}, RANGE), ({"cpus": "1"}, TYPE), ({"cpus": True}, TYPE),
    ({"timeout_s": 0}, RANGE), ({"timeout_s": -1}, RANGE), ({"timeout_s": 86401}, RANGE), ({"timeout_s": None}, TYPE),
    ({"timeout_s": True}, TYPE), ({"timeout_s": float("nan")}, RANGE),
    ({"max_output_bytes": 0}, RANGE), ({"max_output_bytes": (1 << 30) + 1}, RANGE),
    ({"network": 1}, TYPE), ({"image": 3}, TYPE), ({"image": ""}, INVALID), ({"setup": ["pip install x"]}, TYPE),
    ({"workspace": 3}, TYPE), ({"workspace": "a\0b"}, INVALID),
    ({"env": [("A", "b")]}, TYPE), ({"env": {"A": 1}}, TYPE), ({"env": {"A B": "c"}}, INVALID),
    ({"env": {"A": "b\nc"}}, INVALID), ({"env": {"A": "b\0"}}, INVALID),
    ({"cap_drop": "ALL"}, TYPE), ({"cap_drop": ["chown"]}, INVALID), ({"cap_drop": [1]}, TYPE),
    ({"security_profile": "trusted"}, INVALID), ({"apparmor": "a b"}, INVALID), ({"apparmor": "x" * 129}, INVALID),
    ({"profiles": ["heavy"]}, INVALID), ({"profiles": "vcpu:a"}, TYPE), ({"profiles": ["vcpu:a --privileged"]}, INVALID),
    ({"egress_allow": ["https://a.example"]}, INVALID), ({"egress_allow": ["*.example.org"]}, INVALID),
    ({"egress_allow": ["a.example"], "network": True}, INVALID),
    ({"on_stdout": "print"}, TYPE), ({"on_stderr": 1}, TYPE), ({"prewarm": 65}, RANGE), ({"prewarm": "4"}, TYPE),
    ({"start": "fast"}, INVALID), ({"workspace_storage": "tape"}, INVALID), ({"shm_size": "64"}, INVALID),
]  # fmt: skip


@pytest.mark.parametrize("options, reason", WRONG, ids=[str(o)[:40] for o, _ in WRONG])
def test_wrong_values(options, reason):
    with pytest.raises(kern.SandboxError) as caught:
        kern.Sandbox(**options)
    assert caught.value.reason == reason
    assert next(iter(options)) in f"{caught.value.path} {caught.value}"


def test_limits_are_taken_at_their_ends():
    for options in (
        {"memory_mb": 4}, {"memory_mb": 1048576}, {"pids": 1}, {"pids": 4194304}, {"cpus": 0.01}, {"cpus": 1024},
        {"timeout_s": 0.001}, {"timeout_s": 86400}, {"max_output_bytes": 1}, {"max_output_bytes": 1 << 30},
        {"prewarm": 64}, {"apparmor": "x" * 128}, {"memory_mb": None}, {"cap_drop": ()}, {"tmpfs": {}},
        {"profiles": ["vcpu:heavy", "vdisk:scratch"]}, {"egress_allow": ["files.example.org"]},
    ):  # fmt: skip
        kern.Sandbox(**options)


@pytest.mark.parametrize(
    "name, most, make",
    [
        ("env", 256, lambda n: {f"A{i}": "" for i in range(n)}), ("cap_drop", 64, lambda n: ["CHOWN"] * n),
        ("mounts", 64, lambda n: {"/tmp" + "/." * i: f"/m{i}" for i in range(n)}), ("profiles", 16, lambda n: ["vcpu:a"] * n),
        ("tmpfs", 64, lambda n: {f"/t{i}": "1m" for i in range(n)}), ("egress_allow", 256, lambda n: ["a.example"] * n),
        ("preload", 16, lambda n: ["json"] * n),
    ],
)  # fmt: skip
def test_how_many_there_may_be(name, most, make):
    kern.Sandbox(**{name: make(most)})
    with pytest.raises(kern.SandboxError, match=name) as caught:
        kern.Sandbox(**{name: make(most + 1)})
    assert caught.value.reason == "out_of_range"


def test_misspelt_options_are_named():
    for name, meant in (("memory", "memory_mb"), ("timeout", "timeout_s"), ("mount", "mounts"), ("netwrok", "network")):
        with pytest.raises(kern.UnknownOption, match=f"did you mean '{meant}'"):
            kern.Sandbox(**{name: 1})
    with pytest.raises(TypeError):
        kern.run_code("1", memori_mb=1)
    with kern.Sandbox() as box:
        with pytest.raises(kern.SandboxError, match="did you mean 'timeout_s'"):
            box.run_code("1", timeout=3)
        with pytest.raises(kern.SandboxError, match="timeout_s"):
            box.run_code("1", timeout_s=0)


@pytest.mark.parametrize(
    "mounts, why",
    [
        ({"/": "/x"}, "never given"), ({"/etc": "/x"}, "never given"), ({"/proc": "/x"}, "never given"),
        ({"~": "/x"}, "absolute"), ({"relative": "/x"}, "absolute"), ({"/nowhere/at/all": "/x"}, "not there"),
        ({"/tmp": "x"}, "absolute"), ({"/tmp": "/a/../b"}, "absolute"), ({"/tmp": "/"}, "nothing can be mounted"),
        ({"/tmp": "/proc/x"}, "nothing can be mounted"), ({"/tmp": "/dev/x"}, "nothing can be mounted"),
    ],
)  # fmt: skip
def test_mounts_that_are_refused(mounts, why):
    with pytest.raises(kern.MountRefused, match=why) as caught:
        kern.Sandbox(mounts=mounts)
    assert caught.value.reason == "mount_refused"


def test_home_and_links_to_what_is_refused_are_refused(tmp_path):
    os.symlink("/etc", tmp_path / "innocent")
    for source in (os.path.expanduser("~"), str(tmp_path / "innocent")):
        with pytest.raises(kern.MountRefused):
            kern.Sandbox(mounts={source: "/x"})


@pytest.mark.parametrize("mounts", [["/tmp"], {"/tmp": ("/x",)}, {"/tmp": ("/x", "rwx")}, {"/tmp": 3}])
def test_mounts_of_the_wrong_shape(mounts):
    with pytest.raises(kern.SandboxError, match="mounts"):
        kern.Sandbox(mounts=mounts)


@pytest.mark.parametrize(
    "tmpfs", ["/tmp", 64, True, {"/tmp": "64"}, {"/tmp": "0"}, {"/tmp": 64}, {"/tmp": "64M"}, ["/scratch:9g"], {"/dev/shm": "1m"},
              {"/tmp": "513m"}, {"x": "1m"}],
)  # fmt: skip
def test_tmpfs_that_is_refused(tmpfs):
    with pytest.raises(kern.MountRefused):
        kern.Sandbox(tmpfs=tmpfs, memory_mb=512)


def test_a_tmpfs_may_not_hide_a_mount_but_may_lie_in_one(tmp_path):
    for target in ("/tmp", "/tmp/sub"):
        with pytest.raises(kern.MountRefused, match="hide"):
            kern.Sandbox(mounts={str(tmp_path): target}, tmpfs={"/tmp": "8m"})
    kern.Sandbox(mounts={str(tmp_path): "/tmp"}, tmpfs={"/tmp/scratch": "8m"})
    kern.Sandbox(mounts={str(tmp_path): "/tmpx"}, tmpfs={"/tmp": "512m"})


# Features of a later sidecar: taken by the package, refused by this sidecar when the sandbox is opened.
REFUSED = {
    "registry images": ({"image": "python:3.12-slim"}, "/image"),
    "registry images by digest": ({"image": "node@sha256:" + "0" * 64}, "/image"),
    "egress": ({"egress_allow": ["index.example.org"]}, "/egressAllow"),
    "profiles": ({"profiles": ["vcpu:heavy", "vgpio:sensors"]}, "/profiles"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_expected_refusals(name):
    options, path = REFUSED[name]
    with pytest.raises(kern.SandboxError) as caught:
        kern.Sandbox(**options).open()
    assert caught.value.path == path and caught.value.reason in ("unsupported_option", "profile_unknown", "image_not_found")


def test_prewarm_is_only_speed_and_its_absence_is_said():
    with kern.Sandbox(prewarm=4) as box:
        assert box.run_code("print(1)").stdout == "1\n"
        assert not box.notes or "prewarm" in box.notes[0]

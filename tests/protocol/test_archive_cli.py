"""`kern-sidecar snapshot` and `restore`, as a person types them."""

import os
import subprocess

import pytest

import archives


@pytest.fixture
def command(program, environment, owner, place):
    """command(*words) -> CompletedProcess, as the user, in `place`."""

    def run(*words):
        as_user = {} if os.geteuid() != 0 else dict(user=owner.pw_uid, group=owner.pw_gid, extra_groups=[])
        return subprocess.run([program, *words], cwd=place, env=environment, capture_output=True, text=True, timeout=60, **as_user)

    return run


@pytest.fixture
def workspace(make_dir, owner):
    path = make_dir("ws")
    for name in ("a", "b"):
        with open(f"{path}/{name}", "w") as file:
            file.write(name)
        os.chown(f"{path}/{name}", owner.pw_uid, owner.pw_gid)
    os.symlink("a", path + "/link")
    return path


def test_there_and_back(command, workspace, place):
    done = command("snapshot", "--workspace", workspace, "x.tar.gz")
    assert (done.returncode, done.stderr) == (0, ""), done
    assert done.stdout.startswith("2 entries, ") and '"reason":"symlink"' in done.stdout
    with open(place + "/x.tar.gz", "rb") as file:
        assert set(archives.contents(file.read())) == {"a", "b"}
    os.remove(workspace + "/a")
    done = command("restore", "--workspace=" + workspace, place + "/x.tar.gz")
    assert (done.returncode, done.stdout, done.stderr) == (0, "2 entries, 2 bytes\n", "")
    assert sorted(os.listdir(workspace)) == ["a", "b"]
    assert [name for name in os.listdir(place) if name.startswith(".")] == []


def test_notes(command, workspace, place):
    with open(place + "/x.tar", "wb") as file:
        file.write(archives.tar(archives.entry(b".deps", b"a file")))
    done = command("restore", "--workspace", workspace, "x.tar")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("1 entries, 6 bytes\ndeps_ignored: "), done


def test_links(command, workspace):
    done = command("snapshot", "--workspace", workspace, "--links", "inside", "x.tar.gz")
    assert (done.returncode, "skipped" in done.stdout) == (0, False), done
    before = archives.listing(workspace)
    done = command("restore", "--workspace", workspace, "x.tar.gz")
    assert done.returncode == 1 and "symbolic link" in done.stderr and "inside" in done.stderr
    assert archives.listing(workspace) == before
    assert command("restore", "--workspace", workspace, "--links", "inside", "x.tar.gz").returncode == 0
    assert os.readlink(workspace + "/link") == "a"


@pytest.mark.parametrize(
    "words, status, what",
    [
        (("snapshot", "x.tar.gz"), 2, "--workspace"),
        (("restore", "x.tar.gz"), 2, "--workspace"),
        (("snapshot", "--workspace", "WS"), 2, "archive"),
        (("snapshot", "--workspace", "WS", "x", "y"), 2, "archive"),
        (("snapshot", "--workspace", "WS", "--bogus", "1", "x"), 2, "--bogus"),
        (("snapshot", "--workspace", "WS", "--links", "maybe", "x"), 2, "links"),
        (("restore", "--workspace", "WS", "nowhere.tar"), 1, "No such file"),
        (("snapshot", "--workspace", "WS", "WS/x"), 1, "outside"),
        (("snapshot", "--workspace", "/nowhere/at/all", "x"), 1, "workspace"),
    ],
)
def test_mistakes(command, workspace, words, status, what):
    done = command(*(word.replace("WS", workspace) for word in words))
    assert done.returncode == status and what in done.stderr and done.stdout == "", done


def test_help_names_them(command):
    assert "snapshot --workspace" in command("--help").stdout and "restore --workspace" in command("--help").stdout

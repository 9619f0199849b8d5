"""Every kind of host is killed: while its sidecar starts, during a cell, while nothing runs. Nothing of it is left."""

import os
import re
import time

import pytest

import leftovers
from hosts import Host, Kit

ENDLESS = "open('on', 'w').close()\nwhile True: pass\n"
SHORT = "open('on', 'w').close()\n"
MOMENTS = {
    "while the sidecar starts": (ENDLESS, lambda host: host.sidecars()),
    "during a cell": (ENDLESS, lambda host: host.when("project/on")),
    "while nothing runs": (SHORT, lambda host: host.when("shown")),
}
# what killed hosts leave of their own: pi and Neovim their temporary directories, a client of Jupyter its connection file
OF_HOSTS = re.compile("a file is left: (jiti|node-compile-cache|pi-bash-|nvim|tmp[a-z0-9_]{8}[.]json$)")
NAMES = ("python", "node", "pi", "nvim", "vim", "emacs", "vscode", "jupyter")


@pytest.fixture(scope="module")
def kit(program):
    found = Kit(program)
    yield found
    found.close()


def cgroups_of(pids):
    """Names of the cgroups that these processes are in, as far as they are a sidecar's."""
    found = set()
    for pid in pids:
        try:
            with open(f"/proc/{pid}/cgroup", encoding="utf-8") as file:
                found |= {part for line in file for part in line.strip().split("/") if part.startswith(leftovers.CGROUP_PREFIX)}
        except OSError:
            pass
    return found


def wait_until_nothing_is_left(before, groups, seconds=60.0):
    """Whatever a killed host has started is ours then: this process is a subreaper."""
    end = time.monotonic() + seconds
    while True:
        left = [pid for pid, start in leftovers.descendants(os.getpid()).items() if before.get(pid) != start and leftovers.alive(pid, start)]
        groups |= cgroups_of(left)
        left_groups = [path for path in leftovers.cgroups() if os.path.basename(path) in groups]
        if not left and not left_groups:
            return
        assert time.monotonic() < end, (list(map(leftovers.describe, left)), left_groups)
        time.sleep(0.02)


@pytest.mark.parametrize("name", NAMES)
def test_a_killed_host_leaves_nothing(kit, name, as_user, test_user):
    if missing := kit.kinds()[name].missing:
        pytest.skip(f"there is no {missing}")
    before, groups = leftovers.descendants(os.getpid()), set()
    hosts = [(Host(kit, name, code, as_user, KERN_PRIVATE="1"), moment, fits) for moment, (code, fits) in MOMENTS.items()]
    try:
        for host, moment, fits in hosts:
            host.wait_for(lambda: fits(host), moment, pause=0.001)
            host.wait_for(host.sidecars, "its sidecar")  # which has no arguments for a moment, when it starts itself anew
            groups |= cgroups_of(leftovers.descendants(host.process.pid))
            host.kill()
        assert groups or as_user != "root"  # who may make some
        wait_until_nothing_is_left(before, groups)
        for host, _, _ in hosts:
            assert [one for one in leftovers.files_left(host.path("tmp")) if not OF_HOSTS.match(one)] == []
    finally:
        for host, _, _ in hosts:
            if host.process.poll() is None:
                host.kill()
            host.remove()

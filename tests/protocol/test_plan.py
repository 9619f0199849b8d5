"""`run --plan` prints the steps of a box without making one; compared with the committed list.

What differs from host to host is checked by rule: the links of a merged /usr, and the few files of /etc."""

import os
import re
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
LINK = re.compile(r"^template symlink /(bin|sbin|lib|lib32|lib64|libx32) -> usr/\1$")
TREE = re.compile(r"^template bind    /(bin|sbin|lib|lib32|lib64|libx32) <- /\1 ro$")
ETC = re.compile(r"^template bind    (/etc/[^ ]+) <- [^ ]+ ro$")
NEVER = (
    "shadow",
    "gshadow",
    "sudoers",
    "ssh",
    "passwd",
    "group",
    "environment",
    "krb5",
    "NetworkManager",
    "wireguard",
    "ssl/private",
)


def plan(program, environment, *flags):
    argv = [program, "run", "--plan", *flags]
    return subprocess.run(
        argv, env=environment, check=True, capture_output=True, text=True, timeout=60
    ).stdout.splitlines()


def test_plan_is_the_golden_one(program, environment):
    lines = plan(program, environment)
    with open(os.path.join(HERE, "plan.golden"), encoding="utf-8") as file:
        golden = file.read().splitlines()
    assert [line for line in lines if not any(rule.match(line) for rule in (LINK, TREE, ETC))] == golden
    etc = [match.group(1) for match in map(ETC.match, lines) if match]
    assert [
        path for path in etc if any(path == f"/etc/{name}" or path.startswith(f"/etc/{name}/") for name in NEVER)
    ] == []
    links = [line for line in lines if LINK.match(line) or TREE.match(line)]
    assert {"bin", "lib"} <= {line.split()[2].lstrip("/") for line in links}


def test_plan_makes_nothing(program, environment, place):
    plan(program, environment)
    assert os.listdir(os.path.join(place, "tmp")) == []


def test_packages_of_a_workspace(program, environment, make_dir):
    workspace = make_dir("workspace")
    before = plan(program, environment, "--workspace", workspace)
    os.mkdir(os.path.join(workspace, ".deps"))
    after = plan(program, environment, "--workspace", workspace)
    assert [line for line in after if line not in before] == [
        "template symlink /node_modules -> /workspace/.deps/node_modules",
        "template bind    /workspace/.deps <- /workspace/.deps ro",
    ]
    writable = plan(program, environment, "--workspace", workspace, "--deps-readonly=false")
    assert [line for line in writable if line not in before] == ["template symlink /node_modules -> /workspace/.deps/node_modules"]
    os.rmdir(os.path.join(workspace, ".deps"))
    os.symlink("/etc", os.path.join(workspace, ".deps"))
    assert plan(program, environment, "--workspace", workspace) == before

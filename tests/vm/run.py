#!/usr/bin/env python3
"""Boots the virtual machine once and collects the JSON lines that inside/main.py writes.

    tests/vm/run.py [--program P] [WHAT]       prints them; WHAT as in inside/main.py, e.g. v2,user.bare

The image is build.sh's. Program, languages and tests go in as a tar archive on the second disk, so that the image can
stay as it is; the lines come out of the second serial port. Emulation only: KVM is not everywhere, and so the machine
is the same one everywhere."""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
IMAGE = os.environ.get("KERN_VM_DIR", os.path.join(TOP, "build/vm"))
DEADLINE = 900.0  # the longer boot takes some three minutes on two cpus; only a machine that hangs meets this
QUIET = 300.0  # longer than anything inside waits, so a machine that says nothing for so long stands still
SEARCHED = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
# systemd.unified_cgroup_hierarchy: systemd(1) up to version 257
BOOTS = {"v2": "systemd.unified_cgroup_hierarchy=1", "hybrid": "systemd.unified_cgroup_hierarchy=0"}
NEEDED = {
    "qemu-system-x86_64": "qemu-system-x86",
    "mmdebstrap": "mmdebstrap",
    "cpio": "cpio",
    "mke2fs": "e2fsprogs",
    "setpriv": "util-linux",
}


def missing():
    """Why there can be no virtual machine here, or None."""
    if os.uname().machine != "x86_64":
        return f"the virtual machine is made for x86_64, this is {os.uname().machine}"
    if os.geteuid() != 0:
        return "making the virtual machine's root file system needs root"
    packages = [package for program, package in NEEDED.items() if not shutil.which(program, path=SEARCHED)]
    return f"not installed: {' '.join(packages)} (apt-get install {' '.join(packages)})" if packages else None


def build():
    subprocess.run([os.path.join(HERE, "build.sh")], check=True)


def pack(program, path):
    """A tar archive of what is tested, and of what tests it, owned by root and readable by all."""

    def owned(entry):
        if "__pycache__" in entry.name or entry.name.endswith(".o"):
            return None
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = "root"
        entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
        return entry

    program = os.path.abspath(program)
    tests = ("conftest.py", "client", "protocol", "vm")
    with tarfile.open(path, "w") as archive:
        archive.add(program, "bin/kern-sidecar", filter=owned)
        archive.add(os.path.join(os.path.dirname(program), "kern-worker"), "bin/kern-worker", filter=owned)
        archive.add(os.path.join(os.path.dirname(program), "languages"), "bin/languages", filter=owned)
        for name in tests:
            archive.add(os.path.join(HERE, "..", name), f"tests/{name}", filter=owned)


def make_quota_disk(path):
    """ext4 with project quotas, for private workspaces."""
    with open(path, "wb") as file:
        file.truncate(64 << 20)
    argv = ["mke2fs", "-q", "-F", "-t", "ext4", "-O", "quota,project", path]
    subprocess.run(argv, check=True, env={**os.environ, "PATH": SEARCHED})


def qemu(what, payload, results, quota):
    kind = what.split(",")[0]
    words = "console=ttyS0 quiet root=/dev/vda rw panic=-1 mitigations=off systemd.show_status=0"
    words += f" {BOOTS[kind]} kern.vm={what}"
    disk = "format=raw,if=virtio,cache=unsafe,file="
    return [
        *("setpriv", "--pdeathsig", "KILL"),  # no machine outlives its test
        *("qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-M", "q35", "-smp", "2", "-m", "1024"),
        *("-nodefaults", "-display", "none", "-no-reboot", "-serial", "stdio", "-serial", f"file:{results}"),
        *("-kernel", f"{IMAGE}/vmlinuz", "-initrd", f"{IMAGE}/initrd.gz", "-append", words),
        *("-drive", f"snapshot=on,{disk}{IMAGE}/root.img", "-drive", f"readonly=on,{disk}{payload}"),
        *("-drive", f"{disk}{quota}"),
    ]


def boot(program, what, deadline=DEADLINE, say=lambda fact: None):
    """All facts, in order; the last tells that the machine came to its end. `say` sees each as it comes."""
    facts = []
    with tempfile.TemporaryDirectory(prefix="kern-vm-") as place, open(f"{place}/console", "w+b") as console:
        payload, results = os.path.join(place, "payload.tar"), os.path.join(place, "results")
        pack(program, payload)
        quota = os.path.join(place, "quota.img")
        make_quota_disk(quota)
        argv = qemu(what, payload, results, quota)
        machine = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=console, stderr=console)
        try:
            begin = heard = time.monotonic()
            while machine.poll() is None and time.monotonic() < min(begin + deadline, heard + QUIET):
                time.sleep(0.2)
                if take(results, facts, say):
                    heard = time.monotonic()
            ended = machine.poll()
        finally:
            machine.kill()
            machine.wait()
        take(results, facts, say)
        if not facts or facts[-1]["way"] != "main":
            seconds = round(time.monotonic() - begin)
            how = f"was still there after {seconds} s" if ended is None else f"ended with status {ended}"
            after = f"{facts[-1]['way']} {facts[-1]['name']}" if facts else "nothing"
            console.seek(0)
            last = console.read()[-4000:].decode("utf-8", "replace")
            raise RuntimeError(f"the machine {how}, and the last it reported was {after}; its console:\n{last}")
    return facts


def take(results, facts, say):
    """Adds the lines that are new; how many."""
    if not os.path.exists(results):
        return 0
    with open(results, "rb") as file:
        new = file.read().split(b"\n")[len(facts) : -1]
    for line in new:
        facts.append(json.loads(line))
        say(facts[-1])
    return len(new)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default=os.path.join(TOP, "build/kern-sidecar"))
    parser.add_argument("what", nargs="?", default="v2", help="v2 or hybrid, and ways: v2,user.bare,alone")
    options = parser.parse_args()
    reason = missing()
    if reason:
        sys.exit(reason)
    build()
    begin = time.monotonic()

    def say(fact):
        print(f"{time.monotonic() - begin:6.1f}", json.dumps(fact), flush=True)

    boot(options.program, options.what, say=say)


if __name__ == "__main__":
    main()

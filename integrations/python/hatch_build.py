"""Puts the sidecar into the wheel: what `cmake --install` of $KERN_BUILD_DIR gives, and the libraries of its worker.

Without that variable the wheel has the Python part only, for machines where a sidecar is installed. The wheel runs where
glibc is as new as here, which its tag says."""

import os
import platform
import re
import shutil
import subprocess
import tempfile

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# Of every glibc system of that age.
EVERYWHERE = re.compile(r"(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|gcc_s|stdc\+\+))\.so\.[0-9]+")
STATIC = ("libjson-c.a", "libuv_a.a", "libseccomp.a", "libcap.a", "libnettle.a")  # are in the program
LIBRARIES = os.path.join("lib", "kern-sidecar", "libs")  # where INSTALL_RPATH of sidecar/CMakeLists.txt looks


class SidecarHook(BuildHookInterface):
    def initialize(self, version, build_data):
        build = os.environ.get("KERN_BUILD_DIR")
        if not build:
            return
        self.staged = tempfile.mkdtemp(prefix="kern-wheel-")
        stage(os.path.abspath(build), self.staged)
        build_data["force_include"][self.staged] = "kern_sandbox/_sidecar"
        build_data["pure_python"] = False
        glibc = platform.libc_ver()[1].replace(".", "_")
        build_data["tag"] = f"py3-none-manylinux_{glibc}_{platform.machine()}"

    def finalize(self, version, build_data, artifact_path):
        if hasattr(self, "staged"):
            shutil.rmtree(self.staged)


def stage(build, place):
    """The installed tree with its libraries."""
    subprocess.run(["cmake", "--install", build, "--prefix", place, "--strip"], check=True, stdout=subprocess.DEVNULL)
    shutil.rmtree(os.path.join(place, "include"), ignore_errors=True)
    shutil.rmtree(os.path.join(place, "share"), ignore_errors=True)
    sidecar = os.path.join(place, "bin", "kern-sidecar")
    if libraries_of(sidecar):
        raise SystemExit(
            f"{build}: kern-sidecar has to be built with KS_STATIC, it is linked to {libraries_of(sidecar)}"
        )
    libraries = os.path.join(place, LIBRARIES)
    os.makedirs(libraries)
    for path in sorted(libraries_of(os.path.join(place, "libexec", "kern-sidecar", "kern-worker"))):
        shutil.copy(os.path.realpath(path), os.path.join(libraries, os.path.basename(path)))
    for name in STATIC + tuple(os.listdir(libraries)):
        copyright_of(f"/usr/lib/{platform.machine()}-linux-gnu/{name}", os.path.join(place, "licenses"))


def linked(program):
    return subprocess.run(["ldd", program], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()


def libraries_of(program):
    found = (re.match(r"\s*(\S+) => (/\S+)", line) for line in linked(program))
    return {match[2] for match in found if match and not EVERYWHERE.fullmatch(match[1])}


def copyright_of(path, place):
    """The licence of the library's package goes with it."""
    owner = subprocess.run(
        ["dpkg", "-S", os.path.realpath(path)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    package = owner.stdout.split(":")[0]
    text = f"/usr/share/doc/{package}/copyright"
    if package and os.path.exists(text):
        os.makedirs(place, exist_ok=True)
        shutil.copy(text, os.path.join(place, f"{package}.txt"))

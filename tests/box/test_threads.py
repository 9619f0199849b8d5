"""clone3 is ENOSYS in a box; everything that C libraries and runtimes build on clone must work all the same."""

import os
import shutil

import pytest

from expect import plain

LINES = "no clone3 ok\nthreads ok\nposix_spawn ok\nposix_spawn of nothing ok\nfork ok\nvfork ok\nraw clone ok\n"
MUSL_LOADER = f"/lib/ld-musl-{os.uname().machine}.so.1"


@pytest.fixture(params=[None, "untrusted"], ids=["default", "untrusted"])
def posture(request):
    return {"securityProfile": request.param} if request.param else {}


@pytest.mark.parametrize("flags", [(), ("-static",)], ids=["dynamic", "static"])
def test_glibc(client, programs, posture, flags):
    session = client.call("session/open", posture)
    path = programs.place(session, programs.build("threads.c", "cc", *flags))
    plain(client.run(path, sessionId=session["sessionId"]), LINES)


def test_musl_static(client, programs, posture):
    session = client.call("session/open", posture)
    path = programs.place(session, programs.build("threads.c", "musl-gcc", "-static"))
    plain(client.run(path, sessionId=session["sessionId"]), LINES)


@pytest.fixture
def musl_root(make_dir, programs):
    """A root file system of the smallest kind: busybox and musl, no glibc anywhere."""
    busybox = shutil.which("busybox")
    if busybox is None or not os.path.exists(MUSL_LOADER):
        pytest.skip("needs busybox-static and musl")
    dynamic = programs.build("threads.c", "musl-gcc")
    root = make_dir("musl-root")
    for name in ("bin", "lib"):
        os.mkdir(os.path.join(root, name))
    shutil.copy(busybox, os.path.join(root, "bin/busybox"))
    for name in ("sh", "cat", "ls", "true", "grep"):
        os.symlink("busybox", os.path.join(root, "bin", name))
    shutil.copy(MUSL_LOADER, os.path.join(root, MUSL_LOADER[1:]))
    shutil.copy(dynamic, os.path.join(root, "bin/threads"))
    return root


def test_musl_in_a_root_of_its_own(client, musl_root, posture):
    session = client.open(image=f"dir:{musl_root}", **posture)
    plain(client.run("/bin/threads", sessionId=session), LINES)
    plain(client.run("sh", "-c", "true & true | cat; (exit 3); echo $?; wait", sessionId=session), "3\n")
    # no file of another C library is in sight
    plain(client.run("sh", "-c", "ls /lib /usr /lib64 2>/dev/null | grep -c libc.so.6", sessionId=session), "0\n", code=1)


def test_python(client, posture):
    code = (
        "import subprocess, threading, multiprocessing, concurrent.futures\n"
        "def twice(n): return 2 * n\n"
        "if __name__ == '__main__':\n"
        "    with concurrent.futures.ThreadPoolExecutor(8) as pool: print(sum(pool.map(twice, range(100))))\n"
        "    print(subprocess.run(['echo', 'child'], capture_output=True, text=True).stdout, end='')\n"
        "    with multiprocessing.get_context('fork').Pool(2) as pool: print(sum(pool.map(twice, range(10))))\n"
    )
    plain(client.run("python3", "-Sc", code, session=posture), "9900\nchild\n90\n")


def test_node(client, posture):
    code = (
        "const { Worker } = require('worker_threads'); const { execFileSync } = require('child_process');\n"
        "const crypto = require('crypto');\n"
        "console.log(execFileSync('echo', ['child']).toString().trim());\n"
        "new Worker('require(\"worker_threads\").parentPort.postMessage(7)', { eval: true }).on('message', n => {\n"
        "  console.log(n);\n"
        "  crypto.pbkdf2('a', 'b', 1, 8, 'sha256', (e, key) => console.log(key.length)); });\n"
    )
    if not any(os.path.exists(os.path.join(d, "node")) for d in ("/usr/bin", "/usr/local/bin")):
        pytest.skip("node is not installed")
    plain(client.run("node", "-e", code, session=posture, timeoutMs=60000), "child\n7\n8\n")


def test_shell(client, posture):
    plain(client.run("bash", "-c", "cat <(echo a) <(echo b); echo $(( $(echo 2 | wc -l) + 1 ))", session=posture), "a\nb\n2\n")


def test_go(client, programs, posture):
    """Its runtime makes raw threads, and asks for nothing of a C library."""
    go = next((p for p in (shutil.which("go"), "/usr/local/go/bin/go") if p and os.path.exists(p)), None)
    if go is None:
        pytest.skip("go is not installed")
    session = client.call("session/open", posture)
    path = programs.place(session, programs.build_go("goroutines.go", go))
    plain(client.run(path, sessionId=session["sessionId"]), "4950\nchild\n")

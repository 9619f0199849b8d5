"""`kern-sidecar run`, `exec`, `doctor` and `completion`, as a person types them."""

import json
import os
import pty
import select
import shutil
import signal
import subprocess
import time

import pytest

import leftovers

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@pytest.fixture
def typed(program, environment, owner, make_dir, place):
    """typed(*words, input=…) -> CompletedProcess, as the user, in a directory of its own; typed.start(…) -> Popen. Nothing may be left."""
    before = leftovers.cgroups(owner.pw_uid)
    as_user = {} if os.geteuid() != 0 else dict(user=owner.pw_uid, group=owner.pw_gid, extra_groups=[])
    options = dict(cwd=make_dir("here"), **as_user)

    def run(*words, input="", **more):
        env = {**environment, **more.pop("env", {})}
        return subprocess.run([program, *words], env=env, input=input, capture_output=True, text=True, timeout=60, **options, **more)

    def start(*words, **more):
        return subprocess.Popen([program, *words], env={**environment, "TERM": "xterm"}, **options, **more)

    def shell(line):
        merged = dict(stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, timeout=60)
        return subprocess.run(["sh", "-c", line], env=environment, **merged, **options)

    run.start, run.shell, run.here = start, shell, options["cwd"]
    yield run
    assert leftovers.new_cgroups(before, owner.pw_uid) == []
    assert leftovers.files_left(os.path.join(place, "tmp")) == []


def said(done):
    return done.returncode, done.stdout, done.stderr


def test_programs_of_all_kinds(typed):
    assert said(typed("run", "-c", "print('out'); 6 * 7")) == (0, "out\n42\n", "")
    code = "import sys; print(sys.argv[1:], input()); print('err', file=sys.stderr); sys.exit(3)"
    assert said(typed("run", "-c", code, "--", "-x", "b", input="line\n")) == (3, "['-x', 'b'] line\n", "err\n")
    for name, text, out in [
        ("a.py", "print(__name__)", "__main__\n"),
        ("a.sh", "echo sh $1", "sh arg\n"),
        ("a.bash", "echo ${BASH_VERSION:0:1} $1", "5 arg\n"),
        ("a.mjs", "console.log(1 + 1)", "2\n"),
        ("plain", "print('python')", "python\n"),
    ]:
        with open(os.path.join(typed.here, name), "w") as file:
            file.write(text)
        assert said(typed("run", name, "--", "arg")) == (0, out, "")
    assert said(typed("run", "--language", "sh", "plain"))[0] == 2  # sh does not understand it
    assert said(typed("run", "-", input="print(1)")) == (0, "1\n", "")
    assert said(typed("exec", "--", "cat", input="all\nof it")) == (0, "all\nof it", "")
    assert said(typed("exec", "sh", "-c", "echo $0 $1", "a", "--b")) == (0, "a --b\n", "")


def test_status_and_the_reason_of_it(typed):
    for words, status, reason in [
        (["exec", "--", "sh", "-c", "exit 7"], 7, ""),
        (["exec", "--", "sh", "-c", "kill -SEGV $$"], 139, "ended by SIGSEGV"),
        (["exec", "--timeout-ms", "200", "--", "sleep", "60"], 124, "more time: --timeout-ms"),
        (["exec", "--", "no-such-program"], 127, "exec_failed"),
        (["exec", "--", "/etc/hostname"], 126, "exec_failed"),
        (["exec", "--", "mount", "-t", "tmpfs", "none", "/tmp"], 159, "escape_blocked"),
        (["run", "--memory-mb", "64", "-c", "x = bytearray(300 << 20)"], 137, "more memory: --memory-mb"),
        (["run"], 125, "a FILE"),
        (["run", "-c"], 125, "-c takes the code"),
        (["run", "-c", "1", "2"], 125, "behind --"),
        (["run", "none.py"], 125, "cannot open none.py"),
        (["run", "--language", "cobol", "-c", "1"], 125, "/language"),
        (["run", "--memory-mb", "much", "-c", "1"], 125, "/memoryMb"),
        (["run", "--wrong", "-c", "1"], 125, "unknown flag --wrong"),
        (["exec"], 125, "takes a program"),
        (["exec", "--language", "sh", "--", "true"], 125, "--language"),
        (["exec", "--mounts", "/usr", "--", "true"], 125, "/mounts/0/target"),
        (["run", "--workspace", "none", "-c", "1"], 125, "--workspace"),
        (["run", "--image", "dir:/none", "-c", "1"], 125, "/image"),
    ]:
        done = typed(*words)
        assert done.returncode == status and reason in done.stderr, (words, said(done))
        assert done.stdout == "" and (reason or done.stderr == "")


def test_files_stay_in_a_workspace_only(typed):
    assert said(typed("run", "--workspace", ".", "-c", "open('kept', 'w').write('x')")) == (0, "1\n", "")
    assert open(os.path.join(typed.here, "kept")).read() == "x"
    assert "are gone with its private workspace" in typed("run", "-c", "_ = open('lost', 'w').write('x')").stderr
    assert said(typed("exec", "--workspace=.", "--env", "A=b c", "--", "sh", "-c", "cat kept; echo $A")) == (0, "xb c\n", "")


def test_figures_become_files(typed):
    code = f"import base64\nclass P:\n    def _repr_png_(self): return base64.b64decode('{PIXEL}')\ndisplay(P())\nprint('x')\nP()"
    open(os.path.join(typed.here, "figure-1.png"), "w").close()
    done = typed("run", "-c", code)
    assert done.stdout == "x\n" and done.returncode == 0
    assert [line.split()[1] for line in done.stderr.splitlines()] == ["figure-2.png", "figure-3.png"]
    assert open(os.path.join(typed.here, "figure-3.png"), "rb").read()[1:4] == b"PNG"
    assert os.path.getsize(os.path.join(typed.here, "figure-1.png")) == 0


def test_json_is_the_result_of_the_contract(typed, validator):
    done = typed("run", "--json", "-c", "print('x' * 100_000); 1 / 0")
    result = json.loads(done.stdout)
    assert done.returncode == 1 and result["exitCode"] == 1 and done.stderr == ""
    assert len(result["stdout"]) == 100_001 and result["error"]["name"] == "ZeroDivisionError"
    late = json.loads(typed("exec", "--json", "--timeout-ms", "200", "--", "sleep", "60").stdout)
    assert late["fault"]["type"] == "timeout"


def test_much_in_and_out(typed):
    text = "".join(f"{n}\n" for n in range(300_000))
    done = typed("exec", "--", "cat", input=text)
    same = done.stdout == text
    assert done.returncode == 0 and same  # a difference of that size would take minutes to show


def test_nobody_reads(typed):
    process = typed.start("exec", "--", "yes", stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    assert process.stdout.read(2) == b"y\n"
    process.stdout.close()
    assert process.wait(timeout=30) == 128 + signal.SIGPIPE


@pytest.mark.parametrize(
    "number, code, status",
    [
        (signal.SIGINT, "import time\ntry: print('ready', flush=True); time.sleep(60)\nexcept KeyboardInterrupt: raise SystemExit(9)", 9),
        (signal.SIGTERM, "import time\nprint('ready', flush=True)\ntime.sleep(60)", 143),
    ],
)
def test_signals(typed, number, code, status):
    process = typed.start("run", "-c", code, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(number)
    assert process.wait(timeout=30) == status
    process.stdout.close()


def on_terminal(typed, *words):
    """What a terminal is sent."""
    master, slave = pty.openpty()
    process = typed.start(*words, stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    seen, end = b"", time.monotonic() + 60
    while time.monotonic() < end and select.select([master], [], [], 60)[0]:
        try:
            piece = os.read(master, 65536)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        seen += piece
    assert process.wait(timeout=30) is not None
    os.close(master)
    return seen.decode()


@pytest.mark.any_user
def test_a_terminal_gets_colours_and_nothing_that_it_obeys(typed):
    seen = on_terminal(typed, "run", "-c", r"print('\x1b[31mred\x1b[0m \x1b]0;title\x07 \x1b[2J\x9b5n\x1b\x1b[1m', end='')")
    assert seen == "\x1b[31mred\x1b[0m ^[]0;title^G ^[[2J5n^[\x1b[1m"
    seen = on_terminal(typed, "exec", "--timeout-ms", "200", "--", "sleep", "60")
    assert "\x1b[31mkern-sidecar: timeout:\x1b[0m" in seen
    seen = on_terminal(typed, "exec", "--", "sleep", "3")
    assert "running, 2 s (Ctrl-C interrupts)" in seen and seen.endswith("\r\x1b[K")
    assert "\x1b[32mok  \x1b[0m" in on_terminal(typed, "doctor")
    assert "\x1b" not in typed("doctor").stdout


def test_completions_know_every_flag(typed, place):
    scripts = {shell: typed("completion", shell).stdout for shell in ("bash", "zsh", "fish")}
    for line in typed("run", "--help").stdout.splitlines():
        if line.startswith("  --"):
            flag = line.split()[0]
            assert flag in scripts["bash"] and f"'{flag}[" in scripts["zsh"] and f"-l {flag[2:]} " in scripts["fish"]
    for shell, script in scripts.items():
        path = os.path.join(place, "completion." + shell)
        with open(path, "w") as file:
            file.write(script)
        if shutil.which(shell):
            subprocess.run([shell, "-n", path], check=True, timeout=60)
    ask = 'source "$1"; COMP_WORDS=(kern-sidecar run --mem); COMP_CWORD=2; _kern_sidecar; echo "${COMPREPLY[@]}"'
    asked = subprocess.run(["bash", "-c", ask, "bash", os.path.join(place, "completion.bash")], capture_output=True, text=True, check=True)
    assert asked.stdout == "--memory-mb\n"
    asked = subprocess.run(
        ["bash", "-c", ask.replace("run --mem", "shell --start z").replace("CWORD=2", "CWORD=3"), "bash", os.path.join(place, "completion.bash")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert asked.stdout == "zygote\n"
    assert typed("completion", "tcsh").returncode == 2


@pytest.mark.any_user
def test_the_readme_shows_what_happens(typed, program):
    top = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    with open(os.path.join(top, "README.md"), encoding="utf-8") as file:
        block = file.read().split("```console\n")[1].split("```")[0]
    examples = [part.split("\n", 1) for part in ("\n" + block).split("\n$ ")[1:]]
    assert len(examples) == 4
    for line, shown in examples:
        line = line.replace("build/kern-sidecar", program)
        done = typed.shell(line)
        assert done.stdout == shown.rstrip("\n") + "\n", line

"""Kernels of bash and sh: what cells share, how they end whatever the code has made of its shell, interrupts, deaths."""

import time

import pytest

from expect import refused
from test_kernels import Kernel, ok

pytestmark = pytest.mark.any_user


@pytest.fixture
def kernel(client):
    return Kernel(client, language="bash")


def ended(result, stdout="", status=0, stderr=""):
    """The shell lives on."""
    assert (result["stdout"], result["exitCode"], result["stateKept"]) == (stdout, status, True), result
    assert result["cellStatus"] == ("ok" if status == 0 else "error") and "fault" not in result
    if stderr is not None:
        assert result["stderr"] == stderr


# ---- state


def test_state_is_kept(kernel):
    code = (
        "x=20 a=(1 'b c'); declare -A m=([k]='v w'); export E=1; f() { echo $((x + $1)); }; cd /tmp; shopt -s extglob\n"
        "set -o pipefail; alias hi='echo hello'; shopt -s expand_aliases inherit_errexit; umask 027; exec 7<<<seven; sleep 60 & job=$!"
    )
    ok(kernel.run(code))
    ok(kernel.run("f 22; echo ${a[1]} ${m[k]} $PWD; sh -c 'echo $E'; hi; umask; cat <&7; kill $job && wait $job; echo $?"),
       "42\nb c v w /tmp\n1\nhello\n0027\nseven\n143\n")
    ok(kernel.run("case aab in +(a)b) echo glob;; esac; shopt -q inherit_errexit && echo kept; false | true; echo $?"), "glob\nkept\n1\n")
    ok(kernel.run("local x=1 2>/dev/null; echo $? ${#FUNCNAME[@]} $0 $#"), "1 0 bash 0\n")


def test_numbers_of_cells_and_status(kernel):
    assert [kernel.run(code)["executionCount"] for code in ("true", "false", "true")] == [1, 2, 3]
    for code, status in (("false", 1), ("(exit 42)", 42), ("return 3", 3), ("nothing-of-that-name", 127), ("/", 126)):
        ended(kernel.run(code), status=status, stderr=None)
    assert kernel.run("echo\nnope")["stderr"] == "/run/code/[cell 9]: line 2: nope: command not found\n"
    assert kernel.run("nope", filename="a/deploy.sh")["stderr"] == "/run/code/deploy.sh: line 1: nope: command not found\n"
    assert kernel.run("nope", filename="a/b'c")["stderr"] == "/run/code/cell: line 1: nope: command not found\n"


def test_files_and_display(kernel):
    result = kernel.run("echo 1 > a; echo one; echo '# t' | kern-display --md; echo two >&2; mkdir d; cd d")
    assert [f["path"] for f in result["files"]] == ["a"]
    assert [(r["data"], r["at"]) for r in result["results"]] == [({"text/markdown": "# t\n"}, {"stdout": 4, "stderr": 0})]
    (shown,) = kernel.run("echo x | kern-display --text; exec 250>&-")["results"]
    assert shown["data"] == {"text/plain": "x\n"}
    result = kernel.run("echo x | kern-display")
    assert result["exitCode"] == 1 and "no result channel" in result["stderr"]


# ---- the end of a cell is known, whatever the code has made of its shell


@pytest.mark.parametrize("language", ["bash", "sh"])
def test_the_end_of_ordinary_cells(client, language):
    kernel = Kernel(client, language=language)
    ok(kernel.run("printf abc"), "abc")
    ok(kernel.run("x=1; cat; read y; echo $?"), "1\n")
    ok(kernel.run("cat <<E\nin\nE\n# end"), "in\n")
    ok(kernel.run("f() { echo $x; }; f # no newline"), "1\n")
    assert "abc" in kernel.run("cat <<E\nabc")["stdout"]  # bash warns
    ok(kernel.run("for i in 1 2; do break 2; done; echo b"), "b\n")
    assert kernel.run("break; continue; echo b")["stdout"] == "b\n"
    ok(kernel.run(f"echo {'x' * 300_000} | wc -c"), "300001\n")
    ok(kernel.run("#" + "y" * 3_000_000 + "\necho large"), "large\n")
    ok(kernel.run("exec >/dev/null; echo unseen"), "")
    ok(kernel.run("exec 1>&- 2>&-; :"), "")
    ok(kernel.run("echo seen"), "seen\n")
    late = "(while ! [ -e go ]; do sleep 0.01; done; echo late) &"
    ok(kernel.run(late), "")
    ok(kernel.run("touch go; wait; echo next"), "next\n")
    kernel.client.wait_for(lambda: kernel.between() == "late\n", "the late output")
    future = kernel.start("echo now; sleep 60", stream="live")
    kernel.client.wait_for(lambda: kernel.client.output_events(future), "the first line of a cell that goes on")
    client.call("kernel/close", {"kernelId": kernel.id})
    assert (future.result()["cellStatus"], future.result()["stdout"]) == ("dead", "now\n")


WRONG = ["if ; then", "echo 'abc", 'echo "abc', "x=(1 2", "f() {", "case x in", "echo ${x", "))", "echo `ls", "x[$((1]=2", "cat <<E | (\nE"]
# bash 5.2 ends by these, or loses what it knows: what is wrong or unfinished is in a substitution, whatever stands around it
WRONG += ["echo $(ls", "cat <(ls", "x=1; echo $(ls; echo $(ls)", "case a in a) echo $(ls ;; esac", "# a )\necho $(ls", "echo ')' $(ls", "echo $(ls ')'",
          'echo ")" "$(ls \')\'"', "echo $(ls # )", "echo $(ls \\)", "echo $(if; fi)", "x=$(ls ;; )", "echo $( ) )", "cat >(ls ')'", "echo ${x:-$(ls ')'}",
          "echo $((1 + $(ls ')'))", "f() { echo $(ls ')'; }", "[[ $(ls ')' ]]", "a=($(ls ')')", "echo $(cat <<E\n)", "cat <<E\n$(ls\nE", "echo $(ls |)",
          "echo $(echo $(ls ')')", "echo $(a[)"]  # fmt: skip


def test_what_is_no_bash(kernel):
    kernel.run("x=kept; y() { echo $x; }")
    begin = time.monotonic()
    for code in WRONG:
        result = kernel.run(code + "\n")
        assert (result["cellStatus"], result["stateKept"]) == ("error", True), code
        assert result["exitCode"] in (1, 2) and "/run/code/" in result["stderr"], code
        ok(kernel.run("y"), "kept\n")
    assert time.monotonic() - begin < 10
    ok(kernel.run("y='$(' # a parenthesis that is none"))
    ok(kernel.run("echo \"$y\""), "$(\n")
    ok(kernel.run("shopt -s extglob; q=$(echo a)"))
    ok(kernel.run("z=$(\n  case $q in @(a|b)) echo \"it's $(echo \"$q\")\" ;; esac # )\n)"))  # right, and not plain
    ok(kernel.run("echo $z"), "it's a\n")


REDEFINED = (
    "printf() { echo mine; }; echo() { :; }; read() { :; }; exec() { :; }; trap() { :; }; command() { :; }; builtin() { :; }; test() { :; }",
    "unset() { :; }; eval() { :; }; export() { :; }; declare() { :; }; local() { :; }; set() { :; }; shopt() { :; }; return() { :; }",
    "enable -n printf",
    "set -x; set -v",
    "trap 'echo D' DEBUG; set -T",
    "trap 'echo E' ERR RETURN; set -E; true",
    "trap 'echo I' INT; trap '' TERM",
    "IFS=/0123456789nkde_",
    "set -u; set -f; set -C; set -o posix",
    "shopt -s nocasematch nullglob failglob extdebug expand_aliases; alias __kern_end=true unset=true trap=true",
    "unset $(compgen -v | grep -v '^BASH') 2>/dev/null; true",
    "PATH=/nowhere; cd /proc/self",
    "ulimit -n 64",
    "set -- a b c; shift",
    "readonly x=1; x=2; y=3",
    "__kern_end() { :; }; unset -f __kern_say",
    "rm -rf /run/code/* /tmp/*",
    "exec 3<&0 4>&1 240<&- 244<&- 251>&- 255<&-",
    "coproc cat",
    "function .() { :; }; function source { :; }",
)


def test_a_bent_shell(client):
    session = client.open()
    kernels = [Kernel(client, language="bash", session=session) for _ in REDEFINED]
    for kernel, code in zip(kernels, REDEFINED):
        kernel.run(code)
    loops = [kernel.start("while :; do :; done", timeoutMs=300) for kernel in kernels]
    for kernel, code, loop in zip(kernels, REDEFINED, loops):
        result = loop.result()
        assert (result["cellStatus"], result["stateKept"]) == ("interrupted", True), code
        for _ in range(2):
            result = kernel.run('builtin echo "$((20 + 22))"')
            assert "42\n" in result["stdout"] and result["cellStatus"] == "ok", (code, result)
        assert kernel.run("\nfalse")["exitCode"] == 1, code
        assert kernel.between().replace("D\n", "") == "", code


# ---- interrupts


LOOPS = {
    "busy": "while :; do :; done",
    "child": "sleep 60",
    "deep": "f() { if (($1)); then f $(($1 - 1)); echo no; else sleep 60; fi; echo no; }; g() { f 9 || echo no; }; g; f 3",
    "loops": "while :; do sleep 60; done; echo no",
    "subshell": "f() { (while :; do :; done); echo no; }; f; f",
    "pipe": "yes | while read x; do :; done; echo no",
    "substitution": "y=$(sleep 60; echo no); echo no $y",
    "wait": "sleep 60 & wait; echo no",
    "read": "mkfifo p; exec 9<>p; read x <&9; echo no",
    "eval": "eval 'sleep 60; echo no'; . /dev/stdin <<< 'echo no'",
    "traps": "trap 'echo D >&2' DEBUG; f() { sleep 60; echo no; }; f",
    "python": "python3 -c 'import time; time.sleep(60)'; echo no",
}


def test_deadline_interrupts(client):
    session = client.open()
    kernels = [Kernel(client, language="bash", session=session) for _ in LOOPS]
    for kernel in kernels:
        kernel.run("x=1")
    futures = [kernel.start(code, timeoutMs=300) for kernel, code in zip(kernels, LOOPS.values())]
    for kernel, name, future in zip(kernels, LOOPS, futures):
        result = future.result()
        assert (result["fault"]["type"], result["fault"]["limit"], result["exitCode"]) == ("timeout", "timeoutMs", 130), name
        assert (result["cellStatus"], result["stateKept"], result["stdout"]) == ("interrupted", True, ""), (name, result)
        assert kernel.run("f() { echo $x; }; f; shopt -o functrace; trap -p DEBUG")["stdout"] == "1\nfunctrace      \toff\n"


def test_interrupts(kernel):
    client = kernel.client
    assert client.call("kernel/interrupt", {"kernelId": kernel.id}) == {"running": False}
    for n in range(60):  # never hits a later one
        future = kernel.start(":")
        client.call("kernel/interrupt", {"kernelId": kernel.id})
        future.result()
        ok(kernel.run("echo fine"), "fine\n")
    future = kernel.start("echo on; sleep 60; echo no", stream="live")
    client.wait_for(lambda: client.output_events(future), "the cell to run")
    assert client.call("kernel/interrupt", {"kernelId": kernel.id}) == {"running": True}
    result = future.result()
    assert (result["cellStatus"], result["stateKept"], result["stdout"]) == ("interrupted", True, "on\n")
    future = kernel.start("echo on; sleep 60", stream="live")
    client.wait_for(lambda: client.output_events(future), "the cell to run")
    client.cancel(future)
    assert (future.result()["fault"]["type"], future.result()["cellStatus"]) == ("cancelled", "interrupted")


@pytest.mark.parametrize("language", ["bash", "sh"])
def test_an_interrupt_at_the_beginning_is_not_lost(client, language):
    """Nor does it end the shell, whatever it is at: before the cell, between a fork and its exec, behind the cell."""
    kernel = Kernel(client, language=language)
    late = 0
    for n in range(40):
        future = kernel.start("sleep 60" if n % 2 else ":", timeoutMs=5000)
        while not client.call("kernel/interrupt", {"kernelId": kernel.id})["running"] and n % 2:
            pass
        result = future.result()
        assert result["cellStatus"] == "interrupted" or (result["cellStatus"], n % 2) == ("ok", 0), result
        late += "fault" in result
    assert late <= 2  # a machine that is too busy to execute a program within half a second
    ok(kernel.run("echo kept"), "kept\n")


DEAF = ("trap '' INT; while :; do :; done", "(trap '' INT; sleep 60; :)", "kill -STOP $$", "set -n\n:")


def test_what_cannot_be_interrupted_is_killed(client):
    session = client.open()
    kernels = [Kernel(client, language="bash", session=session) for _ in DEAF]
    for kernel, future in [(kernel, kernel.start("echo kept\n" + code, timeoutMs=200)) for kernel, code in zip(kernels, DEAF)]:
        result = future.result()
        assert (result["fault"]["type"], result["cellStatus"], result["stateKept"]) == ("timeout", "dead", False)
        assert result["stdout"] == "kept\n"
        refused(kernel.fail(":"), "kernel_dead", "/kernelId")
        kernel.client.call("kernel/restart", {"kernelId": kernel.id})
        ok(kernel.run("echo again"), "again\n")


def test_sh_is_interrupted(client):
    kernel = Kernel(client, language="sh")
    ok(kernel.run("x=1"))
    for code in ("while :; do :; done", "sleep 60; echo no"):
        result = kernel.run(code, timeoutMs=200)
        assert (result["fault"]["type"], result["cellStatus"], result["stdout"]) == ("timeout", "interrupted", "")
    ok(kernel.run("echo $x"), "1\n")


@pytest.mark.parametrize("language", ["bash", "sh"])
def test_signals(client, language):
    kernel = Kernel(client, language=language)
    kernel.run("x=kept; sleep 60 & job=$!; sleep 0.05")
    child = "sh -c 'echo on; exec sleep 60'; echo $? $x"
    for name, status in (("TERM", 143), ("QUIT", 131), ("INT", None)):  # to what the cell has started
        result = kernel.signalled(name, child)
        assert (result["stdout"], result["stateKept"]) == (f"on\n{status} kept\n" if status else "on\n", True), name
    ended(kernel.run("kill -0 $job; echo $?; trap 'echo bye' EXIT"), "0\n")  # and not to what earlier ones have
    ended(kernel.signalled("TERM", "echo on; until [ -e go ]; do sleep 0.01 || :; done; echo $x", ["touch", "go"]), "on\nkept\n", stderr=None)
    for name in ("TERM", "USR1"):
        code = f"trap 'echo mine; over=1' {name}; over=; echo on; until [ $over ]; do sleep 0.01; done; trap : {name}"
        ended(kernel.signalled(name, code), "on\nmine\n", stderr=None)
    ended(kernel.signalled("TERM", "sh -c 'echo on; exec sleep 60'; echo $?"), "on\n143\n", stderr=None)
    result = kernel.signalled("HUP", child)
    assert (result["cellStatus"], result["exitCode"]) == ("dead", 129)


# ---- the end of the shell


DEATHS = {
    "exit 3": (None, 3),
    "set -e\nfalse\necho no": (None, 1),
    "set -u; echo $nobody": (None, 1),
    "exec sh -c 'exit 4'": (None, 4),
    "kill -9 $$": (None, 137),
    "f() { (exit 9); exit; }; trap 'echo bye; exit 6' EXIT; f": (None, 6),
    "exec unshare -U true": ("escape_blocked", 159),
}


def test_death(client):
    session = client.open()
    for code, (fault, status) in DEATHS.items():
        kernel = Kernel(client, language="bash", session=session)
        result = kernel.run("echo 'last words'; echo shown | kern-display\n" + code)
        assert (result["cellStatus"], result["stateKept"], result["exitCode"]) == ("dead", False, status)
        assert result.get("fault", {}).get("type") == fault and len(result["results"]) == 1
        assert result["stdout"] == "last words\n" + ("bye\n" if "bye" in code else "")
        kernel.client.wait_for(lambda: kernel.states()[-1] == "dead", "the word of its death")
        refused(kernel.fail(":"), "kernel_dead", "/kernelId")


def test_the_failing_line(client):
    kernel = Kernel(client, language="bash", env={"BASH_ENV": "/run/kern/bash/errtrace.bash"})
    result = kernel.run("f() {\n  false\n}\nf\necho on")
    assert (result["stdout"], result["cellStatus"], result["error"]["name"]) == ("on\n", "ok", "CommandFailed")
    assert [(f["line"], f["function"], f["source"]) for f in result["error"]["frames"]] == [(2, "f", "false")]

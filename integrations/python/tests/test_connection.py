"""One sidecar for everything: threads, forks, signals, deaths, and that nothing is ever left behind."""

import json
import os
import select
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

import kern_sandbox as kern
from conftest import children_of
from kern_sandbox import _shared
from kern_sandbox._lines import READ, Lines


def program(code, *args, **options):
    """Another interpreter that runs this. What a shell starts in the background ignores SIGINT, and so would it."""
    listen = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
    return subprocess.Popen(
        [sys.executable, "-B", "-c", listen + textwrap.dedent(code), *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def end_of(process):
    """Its status and what is left of what it has said: communicate() would not see what readline() has read ahead."""
    killer = threading.Timer(60, process.kill)
    killer.start()
    out, err = process.stdout.read(), process.stderr.read()
    status = process.wait()
    killer.cancel()
    return status, out, err


def finished(code, *args):
    return end_of(program(code, *args))


def gone(pid, seconds=20):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                if file.read().rsplit(b")", 1)[1].split()[0] in b"ZX":
                    return True
        except OSError:
            return True
        time.sleep(0.01)
    return False


# -- lines


@pytest.fixture
def pipe():
    ends = os.pipe()
    yield ends
    for fd in ends:
        os.close(fd)


def taken(lines):
    return [json.loads(line) for line in lines.whole()]


def test_lines_in_pieces_and_many_at_once(pipe):
    lines = Lines(pipe[0], 1000)
    for byte in b'{"a":1}\n':
        os.write(pipe[1], bytes([byte]))
        assert lines.read()
    assert taken(lines) == [{"a": 1}]
    os.write(pipe[1], b'1\n2\n"\xc2\x85\xe2\x80\xa8"\n"half')
    assert lines.read()
    assert taken(lines) == [1, 2, "\u0085\u2028"]
    os.write(pipe[1], b'"\n')
    assert lines.read()
    assert taken(lines) == ["half"]


def test_a_line_at_and_above_what_was_agreed(pipe):
    longest = READ + 1000
    lines = Lines(pipe[0], longest)
    text = json.dumps("x" * (longest - 2)).encode()
    for _ in range(5):  # so often that the buffer has to begin anew
        writer = threading.Thread(target=lambda: [os.write(pipe[1], p) for p in (text[:40000], text[40000:], b"\n")])
        writer.start()
        got = []
        while not got:
            assert lines.read()
            got = taken(lines)
        writer.join()
        assert len(got[0]) == longest - 2
    lines = Lines(pipe[0], 10)
    for _ in range(2):
        os.write(pipe[1], b"x" * READ)
        assert lines.read()
    with pytest.raises(ValueError):
        lines.read()


def test_an_exception_between_reading_and_handling_loses_nothing(pipe):
    lines = Lines(pipe[0], 1000)
    os.write(pipe[1], b"1\n2\n3\n")
    with pytest.raises(KeyboardInterrupt):
        os.readv(pipe[0], [memoryview(lines._state[0])])  # the bytes are there, but how many was never kept
        raise KeyboardInterrupt
    seen = []
    for line in lines.whole():
        seen.append(line)
        if line == "2":
            break  # not handled: it comes again
    assert seen + list(lines.whole()) == ["1", "2", "2", "3"]
    os.write(pipe[1], b"4\n")
    assert lines.read() and list(lines.whole()) == ["4"]


# -- one process


def test_all_sandboxes_share_one_process_that_drains_stderr():
    kern.shutdown()
    before = set(children_of(os.getpid()))
    with kern.Sandbox() as one, kern.Sandbox() as other:
        assert one.run(["true"]) and other.run(["true"]) and kern.run_code("1")
        assert len(set(children_of(os.getpid())) - before) == 1
    kern.shutdown()
    assert set(children_of(os.getpid())) - before == set()


def test_a_hundred_threads_on_one_sandbox(box):
    answers = {}

    def work(number):
        answers[number] = box.run(["echo", str(number)]).stdout

    threads = [threading.Thread(target=work, args=(n,)) for n in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert answers == {n: f"{n}\n" for n in range(100)}


def test_a_call_is_not_late_because_another_is_long(box):
    long = threading.Thread(target=lambda: box.run(["sleep", "1.5"]))
    long.start()
    time.sleep(0.2)
    for _ in range(5):
        assert box.run(["true"])
    assert long.is_alive()  # the long one was reading for all of them
    long.join()


def test_death_of_the_sidecar_is_told_to_calls_in_flight_and_the_next_call_has_a_new_one(tmp_path):
    with kern.Sandbox() as private, kern.Sandbox(workspace=tmp_path / "kept") as kept:
        kept.write_file("a", "1")
        connection = _shared.connection()
        problems = []

        def work():
            try:
                private.run(["sleep", "60"])
            except kern.SidecarLost as problem:
                problems.append(problem)

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        time.sleep(0.2)
        os.kill(connection.process.pid, signal.SIGKILL)
        for thread in threads:
            thread.join(30)
        assert len(problems) == 3 and all("signal 9" in str(p) and "run/argv" in str(p) for p in problems)
        assert kern.run_code("print(1)").stdout == "1\n"
        assert kept.read_file("a") == b"1"
        with pytest.raises(kern.SidecarLost, match="private workspace"):
            private.run(["true"])


def test_a_program_that_is_no_sidecar_is_named(tmp_path):
    code = "import kern_sandbox as k\ntry: k.run_code('1')\nexcept k.SandboxError as e: print(e.reason, e)"
    for variable, value, expected in [
        ("KERN_SIDECAR", "/bin/true", "start_failed /bin/true is no kern-sidecar that works: it ended with exit status"),
        ("KERN_SIDECAR", "/bin/echo", "start_failed /bin/echo is no kern-sidecar that works"),
        ("KERN_SIDECAR", "/nowhere/x", "start_failed KERN_SIDECAR names '/nowhere/x'"),
        ("KERN_BIN", "/bin/false", "start_failed /bin/false is no kern-sidecar that works"),
        ("PATH", str(tmp_path), "start_failed kern-sidecar is neither on PATH nor in this package"),
    ]:
        env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", variable: value}
        if variable != "KERN_SIDECAR":
            del env["KERN_SIDECAR"]
        ran = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60)
        assert ran.stdout.startswith(expected), (ran.stdout, ran.stderr)


def test_a_fork_has_a_sidecar_of_its_own_and_leaves_the_parents_alone(box):
    box.write_file("a", "1")
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            told = []
            try:
                box.run(["true"])
            except kern.SidecarLost as problem:
                told.append("forked" in str(problem))
            told.append(kern.run_code("print(7)").stdout)
            told.append(len(children_of(os.getpid())))
            kern.shutdown()
            os.write(writer, json.dumps(told).encode())
        finally:
            os._exit(0)
    os.close(writer)
    assert select.select([reader], [], [], 60)[0]
    told = os.read(reader, 1000)
    os.close(reader)
    os.waitpid(child, 0)
    assert json.loads(told) == [True, "7\n", 1]
    assert box.read_file("a") == b"1"


def test_a_fork_while_other_threads_call(box):
    stop = threading.Event()

    def work():
        while not stop.is_set():
            assert box.run(["true"])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(5):
        child = os.fork()
        if child == 0:
            os._exit(0 if kern.run_code("print(1)").stdout == "1\n" else 1)
        assert os.waitpid(child, 0)[1] == 0
    stop.set()
    for thread in threads:
        thread.join(30)


# -- the end


def test_the_end_of_the_interpreter_ends_the_sidecar():
    code, out, err = finished(
        """
        import kern_sandbox as kern, threading
        from kern_sandbox import _shared
        box = kern.Sandbox().open()
        box.start_run(["sleep", "1000"])
        def call():
            try:
                box.run(["sleep", "1000"])
            except kern.SidecarLost:
                pass
        threading.Thread(target=call, daemon=True).start()
        kernel = box.kernel()
        print(_shared.connection().process.pid)
        """
    )
    assert (code, err) == (0, "")
    assert gone(int(out))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_interpreter_takes_the_sidecar_with_it(number):
    process = program(
        """
        import kern_sandbox as kern
        from kern_sandbox import _shared
        kern.run_code("1")
        print(_shared.connection().process.pid, flush=True)
        kern.Sandbox().open().run(["sleep", "1000"])
        """
    )
    pid = int(process.stdout.readline())
    process.send_signal(number)
    process.communicate(timeout=60)
    assert gone(pid)


def test_ctrl_c_in_a_call_ends_that_call_and_nothing_else():
    process = program(
        """
        import kern_sandbox as kern, time, threading
        box = kern.Sandbox().open()
        threading.Thread(target=lambda: (time.sleep(0.5), print("now", flush=True))).start()
        other = threading.Thread(target=lambda: print(box.run(["sh", "-c", "sleep 2; echo fine"]).stdout.strip()))
        other.start()
        try:
            box.run(["sh", "-c", "sleep 1000"])
        except KeyboardInterrupt:
            print("interrupted", box.run(["echo", "alive"]).stdout.strip(), flush=True)
        other.join()
        print(len(box.run(["true"]).files))
        """
    )
    assert process.stdout.readline() == "now\n"
    process.send_signal(signal.SIGINT)
    assert end_of(process) == (0, "interrupted alive\nfine\n0\n", "")


def test_many_ctrl_c_at_any_moment_lose_no_reply():
    process = program(
        """
        import kern_sandbox as kern
        box = kern.Sandbox().open()
        print("ready", flush=True)
        interrupted = 0
        number = 0
        while interrupted < 12:
            number += 1
            try:
                assert box.run(["echo", str(number)]).stdout == f"{number}\\n"
            except KeyboardInterrupt:
                interrupted += 1
                print("hit", flush=True)
        assert box.run(["echo", "end"]).stdout == "end\\n"
        print("all right")
        """
    )
    assert process.stdout.readline() == "ready\n"
    for number in range(12):
        time.sleep(0.01 + 0.0013 * number)
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "hit\n"
    assert end_of(process) == (0, "all right\n", "")


def test_sandboxes_that_nobody_closed_are_closed():
    pids = []
    for _ in range(3):
        sandbox = kern.Sandbox().open()
        pids.append(sandbox.host_workspace)
        del sandbox
    assert kern.run_code("1")
    sessions = _shared.connection().call("session/list", {})["sessions"]
    assert not {s["workspace"] for s in sessions} & set(pids)


def test_output_of_an_idle_kernel_does_not_pile_up(box):
    with box.kernel() as kernel:
        flood = "import threading, os\ndef flood():\n  for _ in range(3000): os.write(1, b'x' * 65536)\nthreading.Thread(target=flood).start()"
        assert kernel.run_code(flood)
        time.sleep(1)
        assert kernel.run_code("1 + 1").results[0].text == "2"
        assert box.run(["true"])

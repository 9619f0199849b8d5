"""What a program gets: results, verdicts, files, kernels."""

import base64
import io
import os
import tarfile
import threading
import time

import pytest

import kern_sandbox as kern

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def test_one_call():
    result = kern.run_code("import sys\nprint(sys.version)\nprint('e', file=sys.stderr)\n6 * 7")
    assert result and result.success and result.exit_code == 0 and result.fault is None
    assert result.stdout.startswith("3.") and result.stderr.endswith("e\n") and result.code_stderr == "e\n"
    assert [r.text for r in result.results] == ["42"] and result.results[0].kind == "value"
    assert result.image == "host" and result.usage.memory_peak_bytes > 0 and result.duration_ms >= 0
    assert kern.run_code("echo $1; [[ a == a ]] && cat", "bash", stdin="in").stdout.endswith("in")
    assert kern.run_code("import os; print(os.environ['A'])", env={"A": "b"}).stdout == "b\n"


def test_an_exception_is_no_fault():
    result = kern.run_code("def f():\n    return 1 / 0\nf()")
    assert not result and result.fault is None and result.exit_code == 1
    assert "ZeroDivisionError" in result.stderr
    assert (result.error.name, result.error.message) == ("ZeroDivisionError", "division by zero")
    assert [(f.line, f.function) for f in result.error.frames] == [(3, "<module>"), (2, "f")]


def test_every_fault(box):
    result = box.run_code("print('before', flush=True)\nwhile True: pass", timeout_s=0.5)
    assert (result.fault.type, result.fault.limit, result.stdout) == ("timeout", "timeoutMs", "before\n")
    assert "500 ms" in result.fault.message and not result.success
    result = box.run_code("x = bytearray(400 << 20)", memory_mb=64)
    assert result.fault.type == "oom" and "64 MiB" in result.fault.message
    result = box.run(["unshare", "-U", "true"])
    assert (result.fault.type, result.fault.syscall) == ("escape_blocked", "unshare")
    result = box.run(["no-such-program"])
    assert result.fault.type == "exec_failed" and "no-such-program" in result.fault.message and result.exit_code == 127
    result = box.run(["sh", "-c", "exit 137"])
    assert result.fault is None and result.exit_code == 137


def test_files_persist_and_processes_do_not(box):
    result = box.run_code("x = 40\nopen('a.txt', 'w').write('hello')")
    assert [(f.path, f.size, f.change) for f in result.files] == [("a.txt", 5, "created")]
    assert box.run_code("open('a.txt').read()").results[0].text == "'hello'"
    assert box.run_code("x").error.name == "NameError"
    result = box.run(["sh", "-c", "rm a.txt; echo >b"])
    assert [(f.path, f.change) for f in result.files] == [("a.txt", "deleted"), ("b", "created")]
    assert box.run(["touch", "c"], track_files=False).files == []


def test_limits_of_a_call(box):
    probe = "import os, resource\nprint(os.getcwd(), os.environ.get('A'))"
    assert box.run_code(probe, cwd="/tmp", env={"A": "1"}).stdout == "/tmp 1\n"
    assert box.run(["sh", "-c", "echo a; echo b >&2"], merge=True).stdout == "a\nb\n"
    result = box.run(["sh", "-c", "echo 0123456789; echo done >&2"], max_output_bytes=5)
    assert (result.stdout, result.truncated, result.stdout_bytes, result.code_stderr) == ("01234", True, 11, "done\n")
    assert box.run(["cat"], stdin=b"\xff\x00").stdout == "\ufffd\0"
    assert box.run(["cat"]).stdout == ""


@pytest.mark.parametrize("size", [100, 3_000_000])
def test_large_and_small_payloads_come_whole(box, size):
    text = "é" * size
    assert box.run(["cat"], stdin=text[: 2 << 20]).stdout == text[: 2 << 20]
    box.write_file("a", text)
    assert box.read_file("a").decode() == text
    assert box.run_code(f"print('é' * {size})").stdout == text + "\n"


def test_argv_is_a_list(box):
    for wrong in ("ls", b"ls", [], ["a", 3], ["a\0b"], None):
        with pytest.raises(kern.SandboxError):
            box.run(wrong)
    for wrong in (None, 3, "a\0b", "\ud800"):
        with pytest.raises(kern.SandboxError):
            box.run_code(wrong)
    with pytest.raises(kern.SandboxError) as caught:
        box.run_code("1", language="cobol")
    assert caught.value.reason == "unknown_language"


def test_a_sandbox_that_is_not_open_says_so():
    box = kern.Sandbox()
    with pytest.raises(kern.SandboxError, match="with statement"):
        box.run(["true"])
    with box:
        assert box.run(["true"])
        with pytest.raises(kern.SandboxError, match="open already"):
            box.open()
    box.close()
    with pytest.raises(kern.SandboxError, match="not open"):
        box.read_file("a")


# -- output while it runs


def test_callbacks_get_the_bytes_in_order_and_their_errors_stay_theirs(caplog):
    out, err = [], []
    with kern.Sandbox(on_stdout=out.append, on_stderr=err.append) as box:
        code = "import sys\nfor i in range(3): print(i, flush=True)\nsys.stderr.buffer.write(b'\\xff')"
        result = box.run_code(code)
        assert (b"".join(out), b"".join(err), result.stdout) == (b"0\n1\n2\n", b"\xff", "0\n1\n2\n")
        out.clear()
        assert box.run_code("print(1)", on_stdout=None).stdout == "1\n" and out == []
        mine = []
        assert box.run_code("print(2)", on_stdout=mine.append) and (mine, out) == ([b"2\n"], [])

        def fails(data):
            raise RuntimeError("of the callback")

        assert box.run_code("print(3)", on_stdout=fails).stdout == "3\n"
    assert "of the callback" in caplog.text


def test_output_comes_while_the_code_runs(box):
    came = threading.Event()
    box.write_file("wait.py", "")
    running = box.start_code("print('now', flush=True)\nimport sys\nsys.stdin.read()", interactive=True, on_stdout=lambda b: came.set())
    threading.Thread(target=lambda: (came.wait(30), running.close_stdin())).start()
    assert running.result().stdout == "now\n" and came.is_set()


def test_a_slow_callback_does_not_stop_other_calls(box):
    gate = threading.Event()
    slow = threading.Thread(target=lambda: box.run(["echo", "x"], on_stdout=lambda b: gate.wait(30)))
    slow.start()
    time.sleep(0.2)
    assert box.run(["true"])
    gate.set()
    slow.join(30)


# -- calls that were started


def test_a_started_call_is_cancelled_signalled_and_written_to(box):
    running = box.start_run(["sh", "-c", "echo begun; sleep 1000"])
    time.sleep(0.3)
    assert not running.done()
    running.cancel()
    result = running.result()
    assert (result.fault.type, result.stdout) == ("cancelled", "begun\n") and running.done()
    running = box.start_run(["cat"], interactive=True)
    running.write_stdin("a")
    running.write_stdin(b"b")
    running.close_stdin()
    assert running.result().stdout == "ab"
    running = box.start_code("import signal, time\nsignal.signal(signal.SIGTERM, lambda *a: exit(9))\nprint(1, flush=True)\ntime.sleep(100)",
                             on_stdout=lambda data: running.send_signal("SIGTERM"))  # fmt: skip
    assert running.result().exit_code == 9


# -- files


def test_files_of_the_workspace(box):
    etag = box.write_file("d/data.csv", "a,b\n1,2\n")
    assert box.stat("d/data.csv").etag == etag
    assert [(f.path, f.size, f.change) for f in box.list_files()] == [("d/data.csv", 8, "created")]
    assert box.list_files("d") == box.list_files()
    assert [(e.path, e.type) for e in box.list_dir()] == [("d", "directory")]
    assert box.edit_file("d/data.csv", [("a,b", "c,d")]) == [1]
    assert box.read_file("d/data.csv") == b"c,d\n1,2\n"
    assert [m.path for m in box.search("1,2")] == ["d/data.csv"] and box.search(r"^\d", regex=True)[0].line == 2
    assert [e.path for e in box.glob("*.csv")] == ["d/data.csv"]
    box.move_file("d/data.csv", "e.csv")
    box.make_dir("x/y", parents=True)
    box.remove_file("x", recursive=True)
    box.write_file("e.csv", "3,4\n", if_exists="append")
    assert box.read_file("e.csv") == b"c,d\n1,2\n3,4\n"
    strange = os.fsdecode(b"n\xff")
    box.write_file(strange, b"1")
    assert box.read_file(strange) == b"1" and strange in [f.path for f in box.list_files()]


@pytest.mark.parametrize(
    "action, reason",
    [
        (lambda b: b.read_file("none"), "not_found"), (lambda b: b.read_file("../../etc/passwd"), "path_escape"),
        (lambda b: b.read_file("/etc/passwd"), "path_escape"), (lambda b: b.read_file("link"), "path_escape"),
        (lambda b: b.read_file("fifo"), "not_regular"), (lambda b: b.write_file("link", "x"), "path_escape"),
        (lambda b: b.read_file("ten", max_bytes=9), "too_large"), (lambda b: b.write_file("ten", "x", if_exists="fail"), "exists"),
        (lambda b: b.edit_file("ten", [("z", "y")]), "edit_no_match"), (lambda b: b.edit_file("ten", [("0", "y")]), "edit_not_unique"),
        (lambda b: b.remove_file("d"), "not_empty"), (lambda b: b.read_file(3), "invalid_type"),
        (lambda b: b.write_file("a", 3), "invalid_type"), (lambda b: b.write_file("a\0b", ""), "invalid_path"),
        (lambda b: b.snapshot("/nowhere/x.tar.gz"), "not_found"), (lambda b: b.restore("/nowhere/x.tar.gz"), "not_found"),
    ],
)  # fmt: skip
def test_what_file_methods_refuse(shared, action, reason):
    with pytest.raises(kern.SandboxError) as caught:
        action(shared)
    assert caught.value.reason == reason


@pytest.fixture(scope="module")
def shared():
    with kern.Sandbox() as box:
        assert box.run(["sh", "-c", "ln -s /etc/passwd link; mkfifo fifo; printf 0000000000 >ten; mkdir d; touch d/x"])
        assert box.read_file("ten", max_bytes=10) == b"0" * 10
        yield box


def test_snapshot_and_restore(tmp_path):
    archive = tmp_path / "a.tar.gz"
    with kern.Sandbox() as box:
        box.write_file("d/a", "1")
        box.run(["ln", "-s", "a", "d/link"])
        made = box.snapshot(archive)
        assert made.bytes == archive.stat().st_size and made.skipped == [("d/link", "symlink")]
    with kern.Sandbox() as box:
        box.write_file("b", "2")
        assert box.restore(archive) == made.entries
        assert [f.path for f in box.list_files()] == ["d/a"]
        hostile = tmp_path / "hostile.tar.gz"
        with tarfile.open(hostile, "w:gz") as tar:
            tar.addfile(tarfile.TarInfo("../x"), io.BytesIO())
        with pytest.raises(kern.SandboxError) as caught:
            box.restore(hostile)
        assert caught.value.reason == "archive_refused" and box.read_file("d/a") == b"1"


def test_setup_runs_once_with_the_network_and_its_failure_is_an_error(tmp_path):
    with kern.Sandbox(setup="mkdir -p .deps && echo 'x = 42' >.deps/mine.py", workspace=tmp_path / "w") as box:
        assert box.run_code("import mine\nmine.x").results[0].text == "42"
        assert box.run(["sh", "-c", "echo >>.deps/mine.py"]).exit_code != 0
        assert box.list_files() == []
    assert kern.run_code("1", setup="true").results[0].text == "1"
    with pytest.raises(kern.SandboxError) as caught:
        kern.Sandbox(setup="echo broken >&2; exit 3").open()
    assert caught.value.reason == "setup_failed" and str(caught.value).startswith("setup failed (exit 3): broken")


def test_a_workspace_that_is_named_stays(tmp_path):
    for number in range(2):
        with kern.Sandbox(workspace=str(tmp_path / "new" / "w")) as box:
            assert box.run(["sh", "-c", "echo x >>a; wc -l <a"]).stdout.strip() == str(number + 1)
    with pytest.raises(kern.SandboxError):
        kern.Sandbox(workspace="/etc").open()


def test_mounts_are_read_write_unless_said(tmp_path):
    (tmp_path / "rw").mkdir()
    (tmp_path / "ro").mkdir()
    mounts = {str(tmp_path / "rw"): "/rw", str(tmp_path / "ro"): ("/ro", "ro")}
    with kern.Sandbox(mounts=mounts) as box:
        assert box.run(["sh", "-c", "echo 1 >/rw/a"])
        assert not box.run(["sh", "-c", "echo 1 >/ro/a"])
    assert (tmp_path / "rw/a").read_text() == "1\n" and not (tmp_path / "ro/a").exists()


# -- kernels


def test_a_kernel_keeps_its_state(box):
    with box.kernel() as kernel:
        assert kernel.run_code("a = 20").cell_status == "ok"
        result = kernel.run_code("a * 2 + 2")
        assert (result.results[0].text, result.execution_count, result.state_kept) == ("42", 2, True)
        assert kernel.run_code("1 / 0").error.name == "ZeroDivisionError"
        result = kernel.run_code("while True: pass", timeout_s=0.3)
        assert (result.fault.type, result.state_kept) == ("timeout", True)
        threading.Timer(0.3, kernel.interrupt).start()
        assert kernel.run_code("import time\ntime.sleep(100)").cell_status == "interrupted"
        assert kernel.interrupt() is False
        out = []
        assert kernel.run_code("print(a)", on_stdout=out.append).stdout == "20\n" and out == [b"20\n"]
        assert kernel.run_code("import os\nos._exit(3)").cell_status == "dead"
        with pytest.raises(kern.SandboxError) as caught:
            kernel.run_code("a")
        assert caught.value.reason == "kernel_dead" and "dead" in str(caught.value)
        kernel.restart()
        assert kernel.run_code("a").error.name == "NameError"
    with pytest.raises(kern.SandboxError, match="closed"):
        kernel.run_code("1")


# -- results


def test_rich_results_and_how_a_notebook_shows_them(box):
    box.write_file("p.png", PIXEL)
    result = box.run_code(
        "from IPython.display import display, Image, HTML, JSON, Markdown, SVG\n"
        "display(Image('p.png'), HTML('<b>x</b>'), JSON({'a': [1]}), Markdown('# m'))\n"
        "display(SVG('<svg xmlns=\"http://www.w3.org/2000/svg\"/>'))\nprint('<script>1</script>')\n"
        "class Table:\n    def _repr_html_(self): return '<script>x</script>'\nTable()"
    )
    assert result.error is None, result.error
    image, html, json, markdown, svg, table = result.results
    assert image.png.startswith(b"\x89PNG") and "image/png" in image.formats() and image.jpeg is None
    assert html.html == "<b>x</b>" and json.json == {"a": [1]} and markdown.markdown == "# m" and svg.svg.startswith("<svg")
    shown = result._repr_mimebundle_()["text/html"]
    assert f"data:image/png;base64,{image.data['image/png']}" in shown and "data:image/svg+xml;base64" in shown
    assert "<script>" not in shown and "&lt;script&gt;1" in shown
    assert "text/html" not in table._repr_mimebundle_() and "image/png" in image._repr_mimebundle_()


def test_a_large_figure_comes_as_bytes(box):
    box.write_file("p.py", "")
    code = (
        "import os, zlib, struct\nn = 900\nraw = b''.join(b'\\0' + os.urandom(n * 3) for _ in range(n))\n"
        "def chunk(t, d): return struct.pack('>I', len(d)) + t + d + struct.pack('>I', zlib.crc32(t + d))\n"
        "png = b'\\x89PNG\\r\\n\\x1a\\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', n, n, 8, 2, 0, 0, 0))\n"
        "png += chunk(b'IDAT', zlib.compress(raw)) + chunk(b'IEND', b'')\n"
        "from IPython.display import Image\nImage(data=png)"
    )
    result = box.run_code(code)
    assert result.results, result.stderr
    assert len(result.results[0].png) > 2_000_000 and result.results[0].png.startswith(b"\x89PNG")


def test_text_for_a_model(box):
    result = box.run_code("print('\\x1b[31mred\\x1b[0m')\n1 / 0", render=500)
    assert "red" in result.rendered and "\x1b" not in result.rendered and "ZeroDivisionError" in result.rendered
    assert len(box.run_code("print('x' * 10000)", render=500).rendered) <= 500
    for wrong in (499, 262145, "500"):
        with pytest.raises(kern.SandboxError, match="render"):
            box.run_code("1", render=wrong)
    assert box.run_code("1").rendered is None

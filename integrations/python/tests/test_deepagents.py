"""The Deep Agents backend, with the real package where it is installed."""

import asyncio
import base64

import pytest

pytest.importorskip("deepagents")

import kern_sandbox as kern  # noqa: E402
from kern_sandbox.deepagents import GLOB_IS_ABSOLUTE, WRITE_REPLACES, KernSandbox, protocol  # noqa: E402

PAGED = "next_offset" in protocol.ReadResult.__dataclass_fields__  # an older deepagents has no such fields


@pytest.fixture(scope="module")
def backend():
    made = KernSandbox(timeout_s=20)
    yield made
    made.close()


def test_commands_are_exact(backend):
    answer = backend.execute(r"printf 'a\0\033b\r\n'; printf '\377' >&2; exit 3")
    assert (answer.output, answer.exit_code, answer.truncated) == ("a\0\x1bb\r\n\ufffd", 3, False)
    large = "x" * 200_000
    assert backend.execute(f"cat <<'END' | wc -c\n{large}\nEND").output.strip() == "200001"
    assert backend.execute("cat").output == ""  # nothing to read, and no waiting for it
    assert len(backend.execute("head -c 10485760 /dev/zero | tr '\\0' x").output) == 10 << 20
    answer = backend.execute("echo begun; sleep 100", timeout=1)
    assert answer.exit_code == 124 and answer.output.startswith("begun\nError: ") and "deadline" in answer.output
    assert backend.execute("true", timeout=0).exit_code == 0
    assert backend.execute("true\0").exit_code == 125
    assert backend.id == backend.id and backend.id.startswith("kern-")


def test_files_of_commands_and_methods_are_the_same(backend):
    assert backend.write("/workspace/d/a.txt", "one\ntwo\nthree\n").error is None
    assert backend.execute("cat d/a.txt; echo four >>d/a.txt").output == "one\ntwo\nthree\n"
    page = backend.read("/workspace/d/a.txt", 1, 2)
    assert (page.file_data["content"], page.file_data["encoding"]) == ("two\nthree", "utf-8")
    if PAGED:
        assert (page.total_lines, page.start_line, page.end_line, page.next_offset) == (4, 2, 3, 3)
    rest = backend.read("/workspace/d/a.txt", 3)
    assert rest.file_data["content"] == "four" and (not PAGED or rest.next_offset is None)
    assert "exceeds file length (4 lines)" in backend.read("/workspace/d/a.txt", 9).error
    assert backend.edit("/workspace/d/a.txt", "two", "2").occurrences == 1
    assert "multiple times" in backend.edit("/workspace/d/a.txt", "e", "E").error
    assert backend.edit("/workspace/d/a.txt", "e", "E", replace_all=True).occurrences == 3
    assert "not found" in backend.edit("/workspace/d/a.txt", "nothing", "x").error
    assert [m["text"] for m in backend.grep("2", "/workspace/d").matches] == ["2"]
    assert [e["path"] for e in backend.ls("/workspace/d").entries] == ["/workspace/d/a.txt"]
    found = [m["path"] for m in backend.glob("*.txt", "/workspace/d").matches]
    assert found == (["/workspace/d/a.txt"] if GLOB_IS_ABSOLUTE else ["a.txt"])
    assert (backend.write("/workspace/d/a.txt", "").error is None) == WRITE_REPLACES
    assert backend.delete("/workspace/d").error is None and "not found" in backend.delete("/workspace/d").error


def test_large_and_binary_files(backend):
    lines = "".join(f"line {n} {'é' * 100}\n" for n in range(5000))
    backend.write("/workspace/long", lines)
    offset, seen = 0, ""
    while offset is not None:
        page = backend.read("/workspace/long", offset, 100000 if PAGED else 1000)
        seen += page.file_data["content"] + "\n"
        offset = page.next_offset if PAGED else offset + 1000 if offset < 4000 else None
    assert seen == lines
    data = bytes(range(256)) * 100
    assert backend.upload_files([("/workspace/b", data)])[0].error is None
    assert base64.b64decode(backend.read("/workspace/b").file_data["content"]) == data
    backend.upload_files([("/workspace/b", data * 40)])
    assert "exceeds maximum preview size" in backend.read("/workspace/b").error
    assert backend.download_files(["/workspace/b"])[0].content == data * 40
    backend.write("/workspace/empty", "")
    assert backend.read("/workspace/empty").file_data["content"] == ""
    assert backend.read("/workspace/long", 0, 0).file_data["content"] == ""


def test_each_file_has_its_own_verdict(backend):
    backend.execute("mkdir -p dir; echo x >locked; chmod 000 locked; ln -sf /etc/passwd link")
    paths = ["/workspace/none", "relative", "/workspace/dir", "/workspace/locked", "/workspace/link", "/etc/passwd"]
    verdicts = [answer.error for answer in backend.download_files(paths)]
    assert verdicts == ["file_not_found", "invalid_path", "is_directory", "permission_denied", "invalid_path", "invalid_path"]
    answers = backend.upload_files([("relative", b""), ("/workspace/ok", b"1"), ("/workspace/dir", b"")])
    assert [a.error for a in answers] == ["invalid_path", None, "is_directory"]
    for path in ("/workspace/none", "/workspace/x'; echo injected #"):
        assert backend.read(path).error and backend.ls(path).error
    assert backend.grep("x", "/workspace/none").matches == []


def test_tasks_at_once(backend):
    async def main():
        await asyncio.gather(*(backend.awrite(f"/workspace/t{n}", str(n)) for n in range(20)))
        pages = await asyncio.gather(*(backend.aread(f"/workspace/t{n}") for n in range(20)))
        assert [p.file_data["content"] for p in pages] == [str(n) for n in range(20)]
        answers = await asyncio.gather(*(backend.aexecute(f"cat t{n}") for n in range(20)))
        assert [a.output for a in answers] == [str(n) for n in range(20)]
        assert len((await backend.als("/workspace")).entries) >= 20
        assert (await backend.agrep("19", "/workspace/t19")).matches[0]["line"] == 1
        assert (await backend.aedit("/workspace/t1", "1", "one")).occurrences == 1
        assert (await backend.adelete("/workspace/t1")).error is None and len((await backend.aglob("t*")).matches) == 19

    asyncio.run(main())


def test_a_sandbox_of_the_caller_stays_open():
    with kern.Sandbox() as box:
        backend = KernSandbox(box)
        assert backend.execute("echo 1 >a").exit_code == 0 and box.read_file("a") == b"1\n"
        backend.close()
        assert box.run(["true"])
        with pytest.raises(TypeError):
            KernSandbox(box, memory_mb=64)

"""The sandbox of tasks: many at once, cancelled ones, several loops, and beside threads."""

import asyncio
import threading
import time

import pytest

import kern_sandbox as kern
from kern_sandbox import _shared


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, 100))


def test_a_thousand_tasks_on_one_sandbox():
    async def main():
        async with kern.AsyncSandbox(track_files=False) as box:
            results = await asyncio.gather(*(box.run(["echo", str(n)]) for n in range(1000)))
        assert [r.stdout for r in results] == [f"{n}\n" for n in range(1000)]

    run(main())
    assert _shared.connection()._pending == {}


def test_every_method():
    async def main():
        assert (await kern.run_code_async("6 * 7")).results[0].text == "42"
        assert (await kern.run_code_async("cat", "bash", stdin="in", memory_mb=64)).stdout == "in"
        async with kern.AsyncSandbox() as box:
            await box.write_file("d/a", "x\n")
            assert await box.read_file("d/a") == b"x\n" and (await box.stat("d/a")).size == 2
            assert [f.path for f in await box.list_files()] == ["d/a"]
            assert await box.edit_file("d/a", [("x", "y")]) == [1]
            assert [m.line for m in await box.search("y")] == [1] and [e.path for e in await box.glob("a")] == ["d/a"]
            await box.move_file("d/a", "d/b")
            await box.make_dir("e")
            await box.remove_file("e")
            assert [e.path for e in await box.list_dir("d")] == ["d/b"]
            async with await box.kernel() as kernel:
                await kernel.run_code("a = 1")
                assert (await kernel.run_code("a")).results[0].text == "1"
                await kernel.restart()
                assert (await kernel.run_code("a")).error.name == "NameError"
                assert await kernel.interrupt() is False
            large = "x" * 3_000_000
            assert (await box.run_code(f"print('x' * {len(large)})")).stdout == large + "\n"
            with pytest.raises(kern.SandboxError, match="none: No such file"):
                await box.read_file("none")
            with pytest.raises(kern.UnknownOption):
                await box.run(["true"], timeot_s=3)
        with pytest.raises(kern.SandboxError, match="not open"):
            await box.run(["true"])

    run(main())


def test_a_cancelled_task_cancels_its_call_and_nothing_else():
    async def main():
        async with kern.AsyncSandbox() as box:
            started = asyncio.Event()
            doomed = asyncio.create_task(box.run(["sh", "-c", "echo 1; exec sleep 1000"], on_stdout=lambda data: started.set()))
            other = asyncio.create_task(box.run(["sh", "-c", "sleep 1; echo fine"]))
            await started.wait()
            doomed.cancel()
            with pytest.raises(asyncio.CancelledError):
                await doomed
            assert (await other).stdout == "fine\n"
            for _ in range(200):
                await box.run(["true"])
                sessions = await kern.aio.perform_async(kern.aio.Request(_shared.connection(), "session/list", {}))
                if all(s["runs"] == 0 for s in sessions["sessions"]):
                    break
            else:
                raise AssertionError(sessions)
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(box.run(["sleep", "1000"]), 0.2)
            async with await box.kernel() as kernel:
                await kernel.run_code("kept = 1")
                with pytest.raises(asyncio.TimeoutError):
                    await asyncio.wait_for(kernel.run_code("while True: pass"), 0.3)
                assert (await kernel.run_code("kept")).results[0].text == "1"

    run(main())


def test_callbacks_may_be_coroutine_functions_and_output_is_in_order():
    async def main():
        got = []

        async def take(data):
            await asyncio.sleep(0)
            got.append(data)

        async with kern.AsyncSandbox(on_stdout=take) as box:
            await box.run_code("for i in range(5): print(i, flush=True)")
        assert b"".join(got) == b"0\n1\n2\n3\n4\n"

    run(main())


def test_the_loop_stays_free_while_calls_run():
    async def main():
        async with kern.AsyncSandbox() as box:
            call = asyncio.create_task(box.run(["sleep", "0.5"]))
            ticks = 0
            while not call.done():
                await asyncio.sleep(0.01)
                ticks += 1
            assert ticks > 10

    run(main())


def test_loops_and_threads_side_by_side():
    answers = []

    async def tasks(box, name):
        results = await asyncio.gather(*(box.run(["echo", f"{name}-{n}"]) for n in range(30)))
        answers.extend(r.stdout.strip() for r in results)

    async def loop(name):
        async with kern.AsyncSandbox() as box:
            await tasks(box, name)

    def thread(box, name):
        answers.extend(box.run(["echo", f"{name}-{n}"]).stdout.strip() for n in range(30))

    with kern.Sandbox() as box:
        work = [threading.Thread(target=lambda name=f"loop{n}": run(loop(name))) for n in range(3)]
        work += [threading.Thread(target=thread, args=(box, f"thread{n}")) for n in range(3)]
        for one in work:
            one.start()
        for one in work:
            one.join(60)
    names = [f"{kind}{n}" for kind in ("loop", "thread") for n in range(3)]
    assert sorted(answers) == sorted(f"{name}-{n}" for name in names for n in range(30))


def test_the_death_of_the_sidecar_reaches_every_task():
    async def main():
        async with kern.AsyncSandbox() as box:
            calls = [asyncio.create_task(box.run(["sleep", "1000"])) for _ in range(20)]
            await asyncio.sleep(0.3)
            _shared.connection().process._child.kill()
            ended = await asyncio.gather(*calls, return_exceptions=True)
            assert all(isinstance(one, kern.SidecarLost) for one in ended), ended
            assert (await kern.run_code_async("1")).success

    run(main())


def test_a_loop_that_blocks_in_a_sync_call(tmp_path):
    async def main():
        async with kern.AsyncSandbox() as box:
            call = asyncio.create_task(box.run(["sh", "-c", "sleep 0.3; echo a"]))
            await asyncio.sleep(0)
            begin = time.monotonic()
            assert kern.run_code("print(1)").stdout == "1\n"  # reads for the task, too
            assert time.monotonic() - begin < 20
            assert (await call).stdout == "a\n"

    run(main())

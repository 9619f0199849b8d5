"""Code with await at its top level, in an event loop."""
import asyncio
import sys

COROUTINE = sys.modules["_kern_runner"].COROUTINE
loop = None  # of a kernel: one for all its cells, so that tasks and locks outlive a cell


async def run(statements, value, namespace):
    result = None
    for code in (statements, value):
        if code is not None:
            result = eval(code, namespace)
            if code.co_flags & COROUTINE:
                result = await result
    return result if value is not None else None


def execute(statements, value, namespace):
    return asyncio.run(run(statements, value, namespace))


def execute_cell(statements, value, namespace):
    """An interrupt cancels the cell's own task and leaves the loop usable."""
    global loop
    if loop is None or loop.is_closed():
        loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    task = loop.create_task(run(statements, value, namespace))
    try:
        return loop.run_until_complete(task)
    except BaseException:
        if not task.done():
            task.cancel()
            try:
                loop.run_until_complete(task)
            except BaseException:  # CancelledError, mostly
                pass
        raise

"""Code with await at its top level, in one event loop."""
import asyncio
import sys

COROUTINE = sys.modules["_kern_runner"].COROUTINE


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

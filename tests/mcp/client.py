"""The official Python package as a client. python3 client.py PROGRAM; prints one JSON object."""

import asyncio
import json
import os
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


def text(result):
    return "".join(block.text for block in result.content if block.type == "text")


async def main(program):
    server = StdioServerParameters(command=program, args=["--mcp"], env=dict(os.environ))
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        welcome = await session.initialize()
        tools = [tool.name for tool in (await session.list_tools()).tools]

        async def run(code, **options):
            return await session.call_tool("run_code", {"code": code}, **options)

        assert text(await run("print('hi')\n6 * 7")) == "hi\n42\n"
        failed = await session.call_tool("run_code", {"cod": "1"})
        assert failed.isError and 'did you mean "code"' in text(failed)
        together = await asyncio.gather(*(run(f"{n} + 1") for n in range(20)))
        assert [text(result) for result in together] == [f"{n + 1}\n" for n in range(20)]
        told = []

        async def on_progress(progress, total, message):
            told.append((progress, message))

        await run("import time; time.sleep(1.7)", progress_callback=on_progress)
        assert told and "running" in told[0][1], told
        print(json.dumps({"server": welcome.serverInfo.name, "version": welcome.protocolVersion, "tools": tools}))


asyncio.run(main(sys.argv[1]))

"""``tag_bench speed mcp``: the start time of an MCP server, and the time that the protocol adds to a call.

Servers run in separate processes over an indexed corpus, one over standard input and output and one over HTTP. Starts
and calls are measured in turns: each call of a tool is made of the plain function in this process, and of both servers.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import sys
import time
import warnings
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import click

import tagframe
from tag_bench import benchmark
from tag_bench.measured import spread
from tagframe.agents.tools import Tools

QUESTION = "Which critics gave five stars to films by Portuguese directors?"
TRANSPORTS = ("stdio", "http")


@asynccontextmanager
async def connected(transport: str, source: str) -> AsyncIterator[Any]:
    """A client of a server that is started for it."""
    import httpx2
    import mcp
    from mcp.client.streamable_http import streamable_http_client

    arguments = ["-m", "tagframe.cli", "mcp", source]
    if transport == "stdio":
        parameters = mcp.StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ))
        async with mcp.Client(parameters) as client:
            yield client
        return
    token = secrets.token_hex(32)
    server = await asyncio.create_subprocess_exec(
        sys.executable,
        *arguments,
        *("--http", "--port=0", "--token-from=TAGFRAME_BENCH_TOKEN"),
        env={**os.environ, "TAGFRAME_BENCH_TOKEN": token},
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        assert server.stderr is not None
        line = (await server.stderr.readline()).decode()
        (url,) = re.findall(r"serving at (\S+)", line)
        async with (
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60) as web,
            mcp.Client(streamable_http_client(url, http_client=web)) as client,
        ):
            yield client
    finally:
        server.terminate()
        await server.wait()


async def started(transport: str, source: str, sql: dict[str, Any]) -> dict[str, float]:
    """Seconds from the start of a server to its answers: to the handshake, the list of tools and a statement."""
    began = time.perf_counter()
    seconds = {}
    async with connected(transport, source) as client:
        seconds["connected"] = round(time.perf_counter() - began, 2)
        await client.list_tools()
        seconds["listed"] = round(time.perf_counter() - began, 2)
        await client.call_tool("run_sql", sql)
        seconds["first_rows"] = round(time.perf_counter() - began, 2)
    return seconds


async def called(source: str, tools: Tools, calls: dict[str, dict[str, Any]], times: int) -> dict[str, Any]:
    """Seconds of calls, by tool: of the function, and over each transport."""
    seconds: dict[str, dict[str, list[float]]] = {
        name: {way: [] for way in ("function", *TRANSPORTS)} for name in calls
    }
    async with AsyncExitStack() as open_ones:
        clients = {one: await open_ones.enter_async_context(connected(one, source)) for one in TRANSPORTS}
        for name, arguments in calls.items():
            for turn in range(times + 1):
                for way, taken in seconds[name].items():
                    at = time.perf_counter()
                    if way == "function":
                        tools.call(name, arguments)
                    else:
                        assert not (await clients[way].call_tool(name, arguments)).is_error
                    if turn:  # the first one loads what is needed
                        taken.append(time.perf_counter() - at)
    return {name: compared(of_tool) for name, of_tool in seconds.items()}


def compared(seconds: dict[str, list[float]]) -> dict[str, Any]:
    """The calls of a tool in milliseconds, and how much the servers' are longer at the 95th percentile."""
    spreads = {way: spread([1_000 * one for one in taken], 1) for way, taken in seconds.items()}
    above = {f"{way}_above_ms": round(spreads[way]["p95"] - spreads["function"]["p95"], 1) for way in TRANSPORTS}
    return {**{f"{way}_ms": one for way, one in spreads.items()}, **above}


@benchmark("mcp")
@click.argument("source", type=click.Path(path_type=Path, exists=True), default=Path("examples/data"))
@click.option("--times", default=100, show_default=True, help="The number of calls of each tool.")
@click.option("--starts", default=3, show_default=True)
def command(source: Path, times: int, starts: int) -> dict[str, Any]:
    """Seconds until a server answers, and milliseconds of calls over both transports and of the plain functions.

    Example: python -m tag_bench speed mcp
    """
    # The client's own imports are not the server's.
    import httpx2  # noqa: F401
    import mcp.client.stdio
    import mcp.client.streamable_http  # noqa: F401

    warnings.simplefilter("ignore")
    tools = tagframe.open_corpus(source).tools()
    first = tools.corpus.ids[0]
    calls: dict[str, dict[str, Any]] = {
        "run_sql": {"sql": f"SELECT COUNT(*) AS n FROM {first}", "rows_behind": False},
        "describe_tables": {"tables": [first]},
        "find_tables": {"question": QUESTION},
    }
    figures: dict[str, dict[str, list[float]]] = {one: {} for one in TRANSPORTS}
    for _ in range(starts):
        for one in TRANSPORTS:
            for what, seconds in asyncio.run(started(one, str(source), calls["run_sql"])).items():
                figures[one].setdefault(what, []).append(seconds)
    return {"start_seconds": figures, "calls": asyncio.run(called(str(source), tools, calls, times))}

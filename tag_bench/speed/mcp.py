"""``tag_bench speed mcp``: the start time of an MCP server, and the time that the protocol adds to a call.

The server runs in a separate process over an indexed corpus. Its calls are compared with calls of the plain functions
in this process.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np

import tagframe
from tag_bench import benchmark

QUESTION = "Which critics gave five stars to films by Portuguese directors?"


def percentiles(seconds: list[float]) -> dict[str, float]:
    """In milliseconds."""
    return {f"p{share}": round(1_000 * float(np.percentile(seconds, share)), 1) for share in (50, 95)}


def timed(call: Callable[[], Any], times: int) -> list[float]:
    """Seconds of each call."""
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - began)
    return seconds


async def served(source: str, calls: dict[str, dict[str, Any]], times: int, starts: int) -> dict[str, Any]:
    """Seconds of starts, and of calls of a running server."""
    import mcp

    parameters = mcp.StdioServerParameters(
        command=sys.executable, args=["-m", "tagframe.cli", "mcp", source], env=dict(os.environ)
    )
    figures: dict[str, Any] = {"connected": [], "listed": [], "first_rows": []}
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for start in range(starts):
        began = time.perf_counter()
        async with mcp.Client(parameters) as client:
            figures["connected"].append(round(time.perf_counter() - began, 2))
            await client.list_tools()
            figures["listed"].append(round(time.perf_counter() - began, 2))
            await client.call_tool("run_sql", calls["run_sql"])
            figures["first_rows"].append(round(time.perf_counter() - began, 2))
            for name, arguments in calls.items() if start == starts - 1 else ():
                await client.call_tool(name, arguments)
                for _ in range(times):
                    at = time.perf_counter()
                    result = await client.call_tool(name, arguments)
                    seconds[name].append(time.perf_counter() - at)
                    assert not result.is_error
    return {"start_seconds": figures, "calls": seconds}


@benchmark("mcp")
@click.argument("source", type=click.Path(path_type=Path, exists=True), default=Path("examples/data"))
@click.option("--times", default=100, show_default=True, help="The number of calls of each tool.")
@click.option("--starts", default=3, show_default=True)
def command(source: Path, times: int, starts: int) -> dict[str, Any]:
    """Seconds until a server answers, and milliseconds of calls, compared with the plain functions.

    Example: python -m tag_bench speed mcp
    """
    warnings.simplefilter("ignore")
    tools = tagframe.open_corpus(source).tools()
    first = tools.corpus.ids[0]
    calls: dict[str, dict[str, Any]] = {
        "run_sql": {"sql": f"SELECT COUNT(*) AS n FROM {first}", "rows_behind": False},
        "describe_tables": {"tables": [first]},
        "find_tables": {"question": QUESTION},
    }
    alone: dict[str, list[float]] = {}
    for name, arguments in calls.items():
        tools.call(name, arguments)
        alone[name] = timed(lambda name=name, given=arguments: tools.call(name, given), times)  # type: ignore[misc]
    figures = asyncio.run(served(str(source), calls, times, starts))
    figures["calls"] = {
        name: {
            "server_ms": percentiles(seconds),
            "function_ms": percentiles(alone[name]),
            "p95_above_ms": round(percentiles(seconds)["p95"] - percentiles(alone[name])["p95"], 1),
        }
        for name, seconds in figures["calls"].items()
    }
    return figures

"""One run of one side of ``tag_bench speed lm``, in a separate process that prints its figures."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tag_bench.measured import memory_mb, peak_mb

INSTRUCTION = "{text} is about a film that became a classic"
SYSTEM = "Decide whether the claim is true of the row. Answer with one word, True or False."


@dataclass(frozen=True)
class Case:
    """One case.

    Attributes:
        rows: of the frame.
        distinct: the number of distinct rows.
        latency: of the server, seconds.
        in_flight: the most requests in flight.
        size: bytes of a row's text.
        repeats: the lowest number of repeats; short cases need more than long ones.
        stored: whether the same frame was answered before, so that nothing needs to be sent.
        bare: whether a bare loop of requests is a fair comparison.
    """

    name: str
    rows: int
    distinct: int
    latency: float
    in_flight: int
    size: int = 80
    repeats: int = 1
    stored: bool = False
    bare: bool = True

    def texts(self) -> list[str]:
        """The rows' cells."""
        return [f"Review {i % self.distinct} of {self.distinct}. ".ljust(self.size, "x") for i in range(self.rows)]


CASES = {
    case.name: case
    for case in (
        Case("filter_10k_50ms", 10_000, 10_000, 0.05, 64),
        Case("filter_1k_500ms", 1_000, 1_000, 0.5, 512),
        Case("filter_duplicates", 1_000, 100, 0.05, 64, bare=False),
        Case("filter_from_store", 10_000, 10_000, 0.0, 64, stored=True, bare=False),
        Case("long_prompts", 50, 50, 0.05, 64, size=20_000, repeats=9),
    )
}

Run = Callable[[list[str]], Any]


def ours(case: Case, url: str, folder: Path) -> Run:
    """``df.tag.sem_filter`` with a response store, which is new unless the case says otherwise."""
    import pandas as pd

    import tagframe as tf

    tf.configure(
        lm="openai/test",
        api_base=url,
        api_key="none",
        concurrency=case.in_flight,
        store=folder / "store.db",
        progress=False,
    )
    return lambda texts: pd.DataFrame({"text": texts}).tag.sem_filter(INSTRUCTION)  # type: ignore[operator]


def lotus(case: Case, url: str, folder: Path) -> Run:
    """LOTUS's ``df.sem_filter``; its cache is off, as by default, unless the case is about a cache."""
    import lotus as peer
    import pandas as pd
    from lotus.cache import CacheConfig, CacheFactory, CacheType

    cache = CacheFactory.create_cache(CacheConfig(CacheType.IN_MEMORY, max_size=2 * case.rows))
    model = peer.models.LM("openai/test", api_base=url, api_key="none", max_batch_size=case.in_flight, cache=cache)
    peer.settings.configure(lm=model, enable_cache=case.stored)
    return lambda texts: pd.DataFrame({"text": texts}).sem_filter(INSTRUCTION)  # type: ignore[operator]


def bare(case: Case, url: str, folder: Path) -> Run:
    """A minimal aiohttp loop that sends every row, ``in_flight`` at once, and reads its answer."""
    import aiohttp

    async def send(texts: list[str]) -> list[str]:
        answers = [""] * len(texts)
        rows = iter(enumerate(texts))

        async def work(session: aiohttp.ClientSession) -> None:
            for i, text in rows:
                claim = f"Text: {text}\n\nClaim: {INSTRUCTION}"
                messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": claim}]
                body = {"model": "test", "messages": messages, "temperature": 0.0}
                async with session.post(f"{url}/chat/completions", json=body) as response:
                    answers[i] = (await response.json())["choices"][0]["message"]["content"]

        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
            await asyncio.gather(*(work(session) for _ in range(min(case.in_flight, len(texts)))))
        return answers

    return lambda texts: asyncio.run(send(texts))


SIDES = {"ours": ours, "lotus": lotus, "bare": bare}


def requests_so_far(url: str) -> int:
    """The number of requests to the server."""
    with urllib.request.urlopen(f"{url}/stats", timeout=10) as response:
        return int(json.loads(response.read())["requests"])


def run(side: str, case: Case, url: str) -> dict[str, float]:
    """The figures of one run."""
    with tempfile.TemporaryDirectory() as folder:
        ask = SIDES[side](case, url, Path(folder))
        texts = case.texts()
        if case.stored:  # in another order: LOTUS would otherwise recall the whole call, not its rows
            ask(texts[::-1])
        else:
            ask(["warm up"])
        before, held = requests_so_far(url), memory_mb()
        cpu, start = time.process_time(), time.perf_counter()
        ask(texts)
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        return {
            "seconds": seconds,
            "rows_per_second": case.rows / seconds,
            "cpu_ms_per_row": 1000 * cpu / case.rows,
            "requests": requests_so_far(url) - before,
            "peak_mb": max(0.0, peak_mb() - held),
        }


if __name__ == "__main__":
    name, case_name, base = sys.argv[1:]
    print(json.dumps(run(name, CASES[case_name], base)))

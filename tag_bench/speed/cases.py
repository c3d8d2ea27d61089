"""The cases of ``tag_bench speed operators``; run as a module, one run of one side, which prints its figures.

All sides do the same work over the same frame. A first call over a row or two is not measured.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import tempfile
import time
import urllib.request
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

import tagframe as tf
from tag_bench.measured import memory_mb, peak_mb
from tag_bench.server import Request, by_checksum

Side: TypeAlias = Callable[[Any], Mapping[str, float] | None]
"""Does the work over a frame; may give further figures."""


@dataclass(frozen=True)
class Case:
    """An operator at work.

    Attributes:
        name: as in the output.
        frame: makes the rows.
        ours: this library's side.
        peer: LOTUS's side.
        answer: gives the server's answers; a module-level function, because the server imports it by its name.
        repeats: the lowest number of repeats; short cases need more than long ones.
        each: whether each row is asked about.
        latency: of the server, seconds.
        in_flight: the most requests in flight, on every side.
        stores: whether answers are kept in a store, which is new in each run.
        stored: whether the same rows were answered before, so that nothing needs to be sent.
        bare: whether a bare loop of requests, one a row, is a fair comparison.
    """

    name: str
    frame: Callable[[], pd.DataFrame]
    ours: Side
    peer: Side
    answer: Callable[[Request], str]
    repeats: int = 1
    each: bool = False
    latency: float = 0.05
    in_flight: int = 64
    stores: bool = False
    stored: bool = False
    bare: bool = False

    @property
    def answers(self) -> str:
        """``module:function`` of :attr:`answer`."""
        module = "tag_bench.server" if self.answer is by_checksum else "tag_bench.speed.cases"
        return f"{module}:{self.answer.__name__}"


def prompt_text(request: Request) -> str:
    """The last message; its parts (LOTUS sends several) are joined."""
    content = request.messages[-1]["content"]
    return content if isinstance(content, str) else "".join(str(part.get("text", "")) for part in content)


# --- the better of two rows 500 times, and the top 10 of 1,000, by a model whose answers are true ---------------------

LETTERS, K = 1_000, 10
MOVES = "Which {text} moves its reader most?"
_LETTER = re.compile(r"Letter (\d+) of")


def rank(number: int) -> int:
    """How moving a letter is: pseudo-random, independent of its number."""
    return zlib.crc32(b"letter %d" % number)


def ranked(request: Request) -> str:
    """The truth, for a pair as LOTUS asks for it ("Document 1"), or for a list of rows."""
    text = prompt_text(request)
    ranks = [rank(int(number)) for number in _LETTER.findall(text)]
    if "Document 1" in text:
        return "Document 1" if ranks[0] > ranks[1] else "Document 2"
    best_first = sorted(range(len(ranks)), key=lambda position: -ranks[position])
    return " > ".join(str(position + 1) for position in best_first)


def _in_pairs() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "text": [f"Letter {number} of {LETTERS}, in which somebody writes home." for number in range(LETTERS)],
            "pair": [number // 2 for number in range(LETTERS)],
        }
    )


def _share_of_pairs(found: pd.DataFrame) -> dict[str, float]:
    """The share of pairs of which the better letter was found."""
    numbers = {int(match[1]) for text in found["text"] if (match := _LETTER.search(text))}
    better = [max(number, number + 1, key=rank) for number in range(0, LETTERS, 2)]
    return {"right": sum(number in numbers for number in better) / len(better)}


def _share_of_the_best(found: pd.DataFrame) -> dict[str, float]:
    """How many of the true first K were found, and whether their order is true."""
    numbers = [int(match[1]) for text in found["text"] if (match := _LETTER.search(text))]
    best = sorted(range(LETTERS), key=rank, reverse=True)[:K]
    return {"overlap": len(set(numbers) & set(best)) / K, "exact": float(numbers == best)}


# --- short rows judged several at a time, and a search for five true rows among two thousand (half are true) --------

PACKED, SEARCHED, LIMIT = 1_000, 2_000, 5
CLAIM = "{review} praises the film"
SCORED, MAPPED = "How glad is {review}?", "How glad is it, from 0 to 1"
_NUMBER = re.compile(r"(?:^(\d+) .*)?Review (\d+):", re.MULTILINE)


def is_praise(number: int) -> bool:
    """Whether a review is true: half of them, in no regular order."""
    return number * 7_919 % 997 % 2 == 0


def praised(request: Request) -> str:
    """The truth about one row, or about each row of a pack by its number; as a score if requested."""
    scores = "Score" in str(request.messages[0]["content"]) or MAPPED in str(request.messages)
    answers = [
        (position, str(float(is_praise(int(number))) if scores else is_praise(int(number))))
        for position, number in _NUMBER.findall(prompt_text(request))
    ]
    return "\n".join(f"{position}: {word}" if position else word for position, word in answers)


def _reviews(count: int) -> Callable[[], pd.DataFrame]:
    words = "the ferry scene stays with me, the rest less."
    return lambda: pd.DataFrame({"review": [f"Review {number}: {words}" for number in range(count)]})


def _packed(frame: Any) -> dict[str, float]:
    result = frame.tag.sem_filter(CLAIM, rows_per_call="auto")
    return {"right": float(result.index.tolist() == [number for number in frame.index if is_praise(number)])}


def _scored(frame: Any) -> dict[str, float]:
    scores = frame.tag.sem_score(SCORED, rows_per_call=16)["_score"]
    return {"right": float(scores.tolist() == [float(is_praise(number)) for number in frame.index])}


def _limited(frame: Any) -> dict[str, float]:
    result = frame.tag.sem_filter(CLAIM, limit=LIMIT)
    return {"right": float(result.index.tolist() == [number for number in frame.index if is_praise(number)][:LIMIT])}


# --- one text from 5,000 rows of about 40 tokens --------------------------------------------------------------------

NOTES = 5_000
SUMMARY = "Summarise what the {text}s say"


def summed_up(request: Request) -> str:
    """Some text."""
    return f"They say {len(request.prompt)} letters' worth."


def _notes() -> pd.DataFrame:
    words = "the harbour was grey, the ferry late, the coffee good, and nobody spoke of what they had come for"
    texts = [f"Note {number}: on that morning {words}, as clerk {number % 97} wrote." for number in range(NOTES)]
    return pd.DataFrame({"text": texts})


# --- two columns of 256 rows, of 128 distinct texts, joined by a claim that a label on each side can decide ---------

JOINED, DISTINCT = 256, 128
SAME = "{review} and {comment} express the same sentiment"
_MOODS = ("positive", "negative", "mixed")
_TEXT = re.compile(r"(?:Review|Comment) (\d+) of")
_ASKS = "Which sentiment does the text express?"
_PLAN = {"left": _ASKS, "right": _ASKS, "labels": list(_MOODS), "pairs": "equal"}


def mood(number: int) -> str:
    """The sentiment of a text, which cannot be seen in the text."""
    return _MOODS[(number * 7 + number // 5) % 3]


def same_mood(request: Request) -> str:
    """The truth: the plan, the label of a text, or whether two texts have the same one."""
    text = prompt_text(request)
    if text.startswith("Some left rows"):
        return json.dumps(_PLAN)
    numbers = [int(number) for number in _TEXT.findall(text)]
    return mood(numbers[0]) if len(numbers) == 1 else str(mood(numbers[-2]) == mood(numbers[-1]))


def _both_sides() -> pd.DataFrame:
    texts = {"review": ("Review", 0), "comment": ("Comment", 1_000)}
    return pd.DataFrame(
        {
            name: [f"{kind} {start + number % DISTINCT} of a film that somebody saw." for number in range(JOINED)]
            for name, (kind, start) in texts.items()
        }
    )


def _joined(frame: Any, join: Callable[[Any, Any], Any]) -> dict[str, float]:
    """Whether the number of joined rows is right, and how many are wrong."""
    found = join(frame[["review"]], frame[["comment"]])
    moods = [[mood(int(text.split()[1])) for text in frame[name]] for name in frame]
    pairs = zip(found["review"], found["comment"], strict=True)
    wrong = sum(mood(int(one.split()[1])) != mood(int(other.split()[1])) for one, other in pairs)
    exact = len(found) == sum(one == other for one in moods[0] for other in moods[1])
    return {"exact": float(exact), "wrong": float(wrong)}


# --- 10,000 rows judged by a cascade: the proxy's AUC is .9, a fifth of the rows are true, the targets are .9 -------

PARCELS, PREVALENCE, AUC = 10_000, 0.2, 0.9
LATE = "{parcel} is late"
_PARCEL = re.compile(r"Parcel (\d+) of")


@cache
def drawn() -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Scores and truth of the rows: the scores are from two normal distributions of variance 1."""
    random = np.random.default_rng(0)
    true = random.permutation(PARCELS) < round(PARCELS * PREVALENCE)
    return random.normal(size=PARCELS) + np.sqrt(2) * NormalDist().inv_cdf(AUC) * true, true


def late(request: Request) -> str:
    """The truth about one row."""
    (number,) = _PARCEL.findall(prompt_text(request))
    return str(bool(drawn()[1][int(number)]))


def _parcels() -> pd.DataFrame:
    return pd.DataFrame({"parcel": [f"Parcel {number} of {PARCELS}" for number in range(PARCELS)], "score": drawn()[0]})


def _cascaded(frame: Any) -> dict[str, float]:
    result = frame.tag.sem_filter(LATE, cascade=tf.Cascade("score"))
    true = drawn()[1][frame.index]
    right = int(drawn()[1][result.index].sum())
    return {
        "share_of_calls": result.tag.cascade.share_of_calls,
        "recall": right / max(int(true.sum()), 1),
        "precision": right / max(len(result), 1),
    }


def _nothing(found: object) -> dict[str, float]:
    return {}


# --- how many rows a second pass, also compared with a bare loop of requests ----------------------------------------

CLASSIC = "{text} is about a film that became a classic"
SYSTEM = "Decide whether the claim is true of the row. Answer with one word, True or False."


def _filtering(name: str, rows: int, *, distinct: int = 0, size: int = 80, **settings: Any) -> Case:
    """Rows of ``size`` bytes, all distinct by default."""

    def frame() -> pd.DataFrame:
        texts = [f"Review {number % (distinct or rows)} of {rows}. ".ljust(size, "x") for number in range(rows)]
        return pd.DataFrame({"text": texts})

    return Case(
        name,
        frame,
        lambda frame: _nothing(frame.tag.sem_filter(CLASSIC)),
        lambda frame: _nothing(frame.sem_filter(CLASSIC)),
        by_checksum,
        each=True,
        stores=True,
        **settings,
    )


def bare_loop(frame: Any, url: str, in_flight: int) -> None:
    """A minimal aiohttp loop that sends every row, ``in_flight`` at once, and reads its answer."""
    import aiohttp

    rows = iter(frame["text"])

    async def work(session: aiohttp.ClientSession) -> None:
        for text in rows:
            claim = f"Text: {text}\n\nClaim: {CLASSIC}"
            messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": claim}]
            body = {"model": "test", "messages": messages, "temperature": 0.0}
            async with session.post(f"{url}/chat/completions", json=body) as response:
                assert (await response.json())["choices"][0]["message"]["content"]

    async def send() -> None:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
            await asyncio.gather(*(work(session) for _ in range(min(in_flight, len(frame)))))

    asyncio.run(send())


# LOTUS asks about one row at a time; it has no scores, no limit, and needs a helper model's log probabilities for its
# cascade. So its sides are the nearest that it can do.
_ALL = (
    Case("topk_pair", _in_pairs, lambda frame: _share_of_pairs(frame.tag.sem_topk(MOVES, K=1, group_by="pair")),
         lambda frame: _share_of_pairs(frame.sem_topk(MOVES, K=1, group_by=["pair"])), ranked, repeats=3),
    Case("topk_list", lambda: _in_pairs()[["text"]],
         lambda frame: _share_of_the_best(frame.tag.sem_topk(MOVES, K=min(K, len(frame) - 1))),
         lambda frame: _share_of_the_best(frame.sem_topk(MOVES, K=min(K, len(frame) - 1))), ranked, repeats=3),
    Case("filter_packed", _reviews(PACKED), _packed, lambda frame: _nothing(frame.sem_filter(CLAIM)), praised,
         repeats=3, each=True),
    Case("score_packed", _reviews(PACKED), _scored, lambda frame: _nothing(frame.sem_map(f"{{review}}: {MAPPED}")),
         praised, repeats=3, each=True),
    Case("filter_limit", _reviews(SEARCHED), _limited, lambda frame: _nothing(frame.sem_filter(CLAIM).head(LIMIT)),
         praised, repeats=3),
    Case("agg_5k", _notes, lambda frame: _nothing(frame.tag.sem_agg(SUMMARY)),
         lambda frame: _nothing(frame.sem_agg(SUMMARY)), summed_up, repeats=3),
    Case("join_labels", _both_sides, lambda frame: _joined(frame, lambda one, two: one.tag.sem_join(two, SAME)),
         lambda frame: _joined(frame, lambda one, two: one.sem_join(two, SAME)), same_mood),
    Case("cascade", _parcels, _cascaded, lambda frame: _nothing(frame.sem_filter(LATE)), late),
    _filtering("filter_10k_50ms", 10_000, repeats=3, bare=True),
    _filtering("filter_1k_500ms", 1_000, latency=0.5, in_flight=512, repeats=3, bare=True),
    _filtering("filter_duplicates", 1_000, distinct=100, repeats=3),
    _filtering("filter_from_store", 10_000, latency=0.0, stored=True, repeats=3),
    _filtering("long_prompts", 50, size=20_000, repeats=9, bare=True),
)  # fmt: skip
CASES: Mapping[str, Case] = {case.name: case for case in _ALL}


def _worker(side: str, case: Case, url: str, store: Path) -> Side:
    """The work of a side, whose library asks the server; LOTUS's cache is off, as by default, unless it is needed."""
    if side == "bare":
        return lambda frame: bare_loop(frame, url, case.in_flight)
    settings: Any = {"api_base": url, "api_key": "none"}
    if side == "ours":
        own_store = store if case.stores else None
        tf.configure(lm="openai/test", store=own_store, progress=False, concurrency=case.in_flight, **settings)
        return case.ours
    import lotus
    from lotus.cache import CacheConfig, CacheFactory, CacheType

    cache = CacheFactory.create_cache(CacheConfig(CacheType.IN_MEMORY, max_size=20_000))
    model = lotus.models.LM("openai/test", max_batch_size=case.in_flight, cache=cache, **settings)
    lotus.settings.configure(lm=model, enable_cache=case.stored)
    return case.peer


def _get(url: str, what: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"{url}/{what}", timeout=10) as response:
        figures: dict[str, Any] = json.loads(response.read())
        return figures


def run(side: str, case: Case, url: str) -> dict[str, float]:
    """The figures of one run; with few requests also the time without the server's share."""
    with tempfile.TemporaryDirectory() as folder:
        work, frame = _worker(side, case, url, Path(folder) / "store.db"), case.frame()
        if case.stored:  # in another order: LOTUS would otherwise recall the whole call, not its rows
            work(frame[::-1])
        else:
            work(pd.DataFrame({"text": ["warm up"]}) if case.stores else frame.tail(2))
        _get(url, "reset")
        memory_before = memory_mb()
        cpu, start = time.process_time(), time.perf_counter()
        own = work(frame) or {}
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    stats = _get(url, "stats")
    figures = {"seconds": seconds, "cpu_seconds": cpu, "peak_mb": max(0.0, peak_mb() - memory_before)}
    figures |= {name: stats[name] for name in ("requests", "tokens", "rounds")}
    if case.each:
        figures |= {"rows_per_second": len(frame) / seconds, "tokens_a_row": stats["tokens"] / len(frame)}
    if stats["requests"] <= case.in_flight:
        figures["seconds_above_server"] = seconds - stats["rounds"] * case.latency
    return {**figures, **own}


if __name__ == "__main__":
    side, name, base = sys.argv[1:]
    print(json.dumps(run(side, CASES[name], base)))

"""The top 10 of 1,000 rows, by a model whose answers are true."""

from __future__ import annotations

import re
import zlib

from tag_bench.server import Request
from tag_bench.speed.cases.case import Case, Measured, lotus_on, prompt_text, tagframe_on

ROWS, K = 1_000, 10
INSTRUCTION = "Which {text} moves its reader most?"
_ROW = re.compile(r"Letter (\d+) of")


def rank(number: int) -> int:
    """How moving a letter is: pseudo-random, independent of its number."""
    return zlib.crc32(b"letter %d" % number)


def answer(request: Request) -> str:
    """The truth, for a pair as LOTUS asks for it ("Document 1"), or for a list of rows."""
    text = prompt_text(request)
    shown = [rank(int(number)) for number in _ROW.findall(text)]
    if "Document 1" in text:
        return "Document 1" if shown[0] > shown[1] else "Document 2"
    best_first = sorted(range(len(shown)), key=lambda position: -shown[position])
    return " > ".join(str(position + 1) for position in best_first)


def _texts() -> list[str]:
    return [f"Letter {number} of {ROWS}, in which somebody writes home." for number in range(ROWS)]


def _share_of_the_best(texts: list[str]) -> dict[str, float]:
    """How many of the true first K were found, and whether their order is true."""
    found = [int(match[1]) for text in texts if (match := _ROW.search(text))]
    best = sorted(range(ROWS), key=rank, reverse=True)[:K]
    return {"overlap": len(set(found) & set(best)) / K, "exact": float(found == best)}


def ours(url: str) -> Measured:
    """``df.tag.sem_topk``."""
    import pandas as pd

    tagframe_on(url)
    frame = pd.DataFrame({"text": _texts()})
    frame.head(2).tag.sem_topk(INSTRUCTION, K=1)
    return lambda: _share_of_the_best(frame.tag.sem_topk(INSTRUCTION, K=K)["text"].tolist())


def lotus(url: str) -> Measured:
    """LOTUS's ``df.sem_topk`` by its default method, quick-select with random pivots."""
    import pandas as pd

    lotus_on(url)
    frame = pd.DataFrame({"text": _texts()})
    frame.head(2).sem_topk(INSTRUCTION, K=1)  # type: ignore[operator]
    return lambda: _share_of_the_best(frame.sem_topk(INSTRUCTION, K=K)["text"].tolist())  # type: ignore[operator]


TOPK_LIST = Case("topk_list", ours, answer, lotus, repeats=3)

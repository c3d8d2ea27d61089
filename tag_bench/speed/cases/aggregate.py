"""One text from 5,000 rows of about 40 tokens."""

from __future__ import annotations

from tag_bench.server import Request
from tag_bench.speed.cases.case import Case, Measured, lotus_on, tagframe_on

ROWS = 5_000
INSTRUCTION = "Summarise what the {text}s say"


def answer(request: Request) -> str:
    """Some text."""
    return f"They say {len(request.prompt)} letters' worth."


def _texts() -> list[str]:
    said = "the harbour was grey, the ferry late, the coffee good, and nobody spoke of what they had come for"
    return [f"Note {number}: on that morning {said}, as clerk {number % 97} wrote." for number in range(ROWS)]


def ours(url: str) -> Measured:
    """``df.tag.sem_agg``."""
    import pandas as pd

    tagframe_on(url)
    frame = pd.DataFrame({"text": _texts()})
    frame.head(2).tag.sem_agg(INSTRUCTION)

    def measured() -> None:
        frame.tag.sem_agg(INSTRUCTION)

    return measured


def lotus(url: str) -> Measured:
    """LOTUS's ``df.sem_agg``."""
    import pandas as pd

    lotus_on(url)
    frame = pd.DataFrame({"text": _texts()})
    frame.head(2).sem_agg(INSTRUCTION)  # type: ignore[operator]

    def measured() -> None:
        frame.sem_agg(INSTRUCTION)  # type: ignore[operator]

    return measured


AGG_5K = Case("agg_5k", ours, answer, lotus, repeats=3)

"""Short rows judged several at a time, and a search for five true rows among two thousand (half are true)."""

from __future__ import annotations

import re

from tag_bench.server import Request
from tag_bench.speed.cases.case import Case, Measured, lotus_on, prompt_text, tagframe_on

PACKED_ROWS, LIMIT_ROWS, LIMIT = 1_000, 2_000, 5
CLAIM = "{review} praises the film"
SCORED, MAPPED = "How glad is {review}?", "How glad is it, from 0 to 1"
_NUMBER = re.compile(r"(?:^(\d+) .*)?Review (\d+):", re.MULTILINE)


def is_praise(number: int) -> bool:
    """Whether a review is true: half of them, in no regular order."""
    return number * 7_919 % 997 % 2 == 0


def answer(request: Request) -> str:
    """The truth about one row, or about each row of a pack by its number; as a score if requested."""
    scores = "Score" in str(request.messages[0]["content"]) or MAPPED in str(request.messages)
    said = [
        (position, str(float(is_praise(int(number))) if scores else is_praise(int(number))))
        for position, number in _NUMBER.findall(prompt_text(request))
    ]
    return "\n".join(f"{position}: {word}" if position else word for position, word in said)


def _reviews(count: int) -> list[str]:
    return [f"Review {number}: the ferry scene stays with me, the rest less." for number in range(count)]


def ours_packed(url: str) -> Measured:
    """``df.tag.sem_filter(…, rows_per_call="auto")``."""
    import pandas as pd

    import tagframe as tf

    tagframe_on(url)
    frame = pd.DataFrame({"review": _reviews(PACKED_ROWS)})
    frame.head(2).tag.sem_filter(CLAIM)

    def measured() -> dict[str, float]:
        with tf.context(store=None):
            kept = frame.tag.sem_filter(CLAIM, rows_per_call="auto")
        return {"right": float(kept.index.tolist() == [n for n in range(PACKED_ROWS) if is_praise(n)])}

    return measured


def peer_singly(url: str) -> Measured:
    """LOTUS's ``df.sem_filter``, which asks about one row at a time."""
    import pandas as pd

    lotus_on(url)
    frame = pd.DataFrame({"review": _reviews(PACKED_ROWS)})
    frame.head(2).sem_filter(CLAIM)  # type: ignore[operator]

    def measured() -> dict[str, float]:
        frame.sem_filter(CLAIM)  # type: ignore[operator]
        return {}

    return measured


def ours_scored(url: str) -> Measured:
    """``df.tag.sem_score(…, rows_per_call=16)``."""
    import pandas as pd

    import tagframe as tf

    tagframe_on(url)
    frame = pd.DataFrame({"review": _reviews(PACKED_ROWS)})
    frame.head(2).tag.sem_score(SCORED)

    def measured() -> dict[str, float]:
        with tf.context(store=None):
            scores = frame.tag.sem_score(SCORED, rows_per_call=16)["_score"]
        return {"right": float(scores.tolist() == [float(is_praise(n)) for n in range(PACKED_ROWS)])}

    return measured


def peer_mapped(url: str) -> Measured:
    """LOTUS's ``df.sem_map``: it has no scores, and asks about one row at a time."""
    import pandas as pd

    lotus_on(url)
    frame = pd.DataFrame({"review": _reviews(PACKED_ROWS)})
    claim = f"{{review}}: {MAPPED}"
    frame.head(2).sem_map(claim)  # type: ignore[operator]

    def measured() -> dict[str, float]:
        frame.sem_map(claim)  # type: ignore[operator]
        return {}

    return measured


def ours_limit(url: str) -> Measured:
    """``df.tag.sem_filter(…, limit=5)``."""
    import pandas as pd

    tagframe_on(url)
    frame = pd.DataFrame({"review": _reviews(LIMIT_ROWS)})
    frame.tail(2).tag.sem_filter(CLAIM)

    def measured() -> dict[str, float]:
        kept = frame.tag.sem_filter(CLAIM, limit=LIMIT)
        return {"right": float(kept.index.tolist() == [n for n in range(LIMIT_ROWS) if is_praise(n)][:LIMIT])}

    return measured


def peer_all(url: str) -> Measured:
    """LOTUS's ``df.sem_filter`` and ``head``: it has no limit."""
    import pandas as pd

    lotus_on(url)
    frame = pd.DataFrame({"review": _reviews(LIMIT_ROWS)})
    frame.tail(2).sem_filter(CLAIM)  # type: ignore[operator]

    def measured() -> dict[str, float]:
        frame.sem_filter(CLAIM).head(LIMIT)  # type: ignore[operator]
        return {}

    return measured


FILTER_PACKED = Case("filter_packed", ours_packed, answer, peer_singly, repeats=3, rows=PACKED_ROWS)
SCORE_PACKED = Case("score_packed", ours_scored, answer, peer_mapped, repeats=3, rows=PACKED_ROWS)
FILTER_LIMIT = Case("filter_limit", ours_limit, answer, peer_all, repeats=3)

"""Two frames of 256 rows, with 128 distinct texts each, joined by a claim that a label on each side can decide."""

from __future__ import annotations

import json
import re

from tag_bench.server import Request
from tag_bench.speed.cases.case import Case, Measured, lotus_on, prompt_text, tagframe_on

ROWS, DISTINCT = 256, 128
CLAIM = "{review} and {comment} express the same sentiment"
_MOODS = ("positive", "negative", "mixed")
_TEXT = re.compile(r"(?:Review|Comment) (\d+) of")
_PLAN = {
    "left": "Which sentiment does the text express?",
    "right": "Which sentiment does the text express?",
    "labels": list(_MOODS),
    "pairs": "equal",
}


def mood(number: int) -> str:
    """The sentiment of a text, which cannot be seen in the text."""
    return _MOODS[(number * 7 + number // 5) % 3]


def answer(request: Request) -> str:
    """The truth: the plan, the label of a text, or whether two texts have the same one."""
    text = prompt_text(request)
    if text.startswith("Some left rows"):
        return json.dumps(_PLAN)
    numbers = [int(number) for number in _TEXT.findall(text)]
    return mood(numbers[0]) if len(numbers) == 1 else str(mood(numbers[-2]) == mood(numbers[-1]))


def _texts(kind: str, start: int) -> list[str]:
    return [f"{kind} {start + number % DISTINCT} of a film that somebody saw." for number in range(ROWS)]


def _exactness(pairs: int) -> dict[str, float]:
    """Whether the number of joined rows is right; since the server's answers are true, no row is wrong."""
    left = [mood(number % DISTINCT) for number in range(ROWS)]
    right = [mood(1_000 + number % DISTINCT) for number in range(ROWS)]
    return {"exact": float(pairs == sum(one == other for one in left for other in right))}


def ours(url: str) -> Measured:
    """``df.tag.sem_join``."""
    import pandas as pd

    from tagframe.embed import get_embedder

    tagframe_on(url)
    embedder = get_embedder()
    if embedder is not None:
        embedder.encode(["loaded before, as the peer's libraries are"])
    reviews = pd.DataFrame({"review": _texts("Review", 0)})
    comments = pd.DataFrame({"comment": _texts("Comment", 1_000)})

    def measured() -> dict[str, float]:
        joined = reviews.tag.sem_join(comments, CLAIM)
        texts = zip(joined["review"], joined["comment"], strict=True)
        wrong = sum(mood(int(one.split()[1])) != mood(int(other.split()[1])) for one, other in texts)
        return {**_exactness(len(joined)), "wrong": float(wrong)}

    return measured


def lotus(url: str) -> Measured:
    """LOTUS's ``df.sem_join``, which asks about every pair of rows."""
    import pandas as pd

    lotus_on(url)
    reviews = pd.DataFrame({"review": _texts("Review", 0)})
    comments = pd.DataFrame({"comment": _texts("Comment", 1_000)})
    return lambda: _exactness(len(reviews.sem_join(comments, CLAIM)))  # type: ignore[operator]


JOIN_LABELS = Case("join_labels", ours, answer, lotus)

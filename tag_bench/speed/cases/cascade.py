"""10,000 rows judged by a cascade: the proxy's AUC is 0.9, a fifth of the rows are true, the targets are 0.9."""

from __future__ import annotations

import re
from functools import cache

import numpy as np

from tag_bench.cascade import Drawn, binormal, simulate
from tag_bench.server import Request
from tag_bench.speed.cases.case import Case, Measured, lotus_on, prompt_text, tagframe_on
from tagframe.operators.proxy_rows import Targets

ROWS, PREVALENCE = 10_000, 0.2
TARGETS = Targets(recall=0.9, precision=0.9, delta=0.1)
SIMULATED = 400
"""The number of runs for ``miss_rate``; ``tag_bench cascade`` makes more, with other proxies."""
CLAIM = "{parcel} is late"
_NUMBER = re.compile(r"Parcel (\d+) of")


@cache
def drawn() -> Drawn:
    """Scores and truth of the rows."""
    return binormal(np.random.default_rng(0), ROWS, PREVALENCE)


def answer(request: Request) -> str:
    """The truth about one row."""
    (number,) = _NUMBER.findall(prompt_text(request))
    return str(bool(drawn()[1][int(number)]))


def ours(url: str) -> Measured:
    """``df.tag.sem_filter(…, cascade=…)``."""
    import pandas as pd

    import tagframe as tf

    tagframe_on(url)
    scores, true = drawn()
    frame = pd.DataFrame({"parcel": [f"Parcel {number} of {ROWS}" for number in range(ROWS)], "score": scores})
    cascade = tf.Cascade("score", TARGETS.recall, TARGETS.precision, TARGETS.delta)
    frame.head(2).tag.sem_filter(CLAIM, cascade=cascade)
    miss_rate = simulate("binormal", ROWS, PREVALENCE, TARGETS, SIMULATED)["miss_rate"]

    def measured() -> dict[str, float]:
        kept = frame.tag.sem_filter(CLAIM, cascade=cascade)
        right = int(true[kept.index].sum())
        return {
            "share_of_calls": kept.tag.cascade.share_of_calls,
            "miss_rate": miss_rate,
            "recall": right / int(true.sum()),
            "precision": right / len(kept),
        }

    return measured


def peer(url: str) -> Measured:
    """LOTUS's ``df.sem_filter`` without its cascade, which needs a helper model's log probabilities."""
    import pandas as pd

    lotus_on(url)
    frame = pd.DataFrame({"parcel": [f"Parcel {number} of {ROWS}" for number in range(ROWS)]})
    frame.head(2).sem_filter(CLAIM)  # type: ignore[operator]

    def measured() -> dict[str, float]:
        frame.sem_filter(CLAIM)  # type: ignore[operator]
        return {}

    return measured


CASCADE = Case("cascade", ours, answer, peer)

"""A quote holds over random calls: never more is asked or spent than its worst case says."""

from __future__ import annotations

import contextlib
import json
import random
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import tagframe as tf
from tag_bench.server import Request, Server, rows_of
from tagframe.errors import AnswerRejected, RowsFailed
from tagframe.lm import LM, Price
from tests.draws import DRAWS

pytestmark = pytest.mark.slow

CALLS = 20 * DRAWS
PRICE = Price(3e-7, 2.5e-6)


@dataclass(frozen=True)
class Model:
    """A model of which a share of the packs is broken, and a share of what it says in packs is wrong.

    Attributes:
        yes: share of the rows of which a claim is true.
        broken, differing: these shares.
        malformed: the share of prompts whose first answer is malformed, so that it has to be repaired.
        hopeless: whether repairs are malformed, too.
    """

    yes: float
    broken: float
    differing: float
    malformed: float = 0.0
    hopeless: bool = False

    def __call__(self, request: Request) -> str:
        repairs = len(request.messages) > 2 and request.messages[-2]["role"] == "assistant"
        if (self.hopeless or not repairs) and _drawn(f"{request.messages[1]['content']}!") < self.malformed:
            return "Banana, or something like it: I would rather not say."
        system, user = (str(message["content"]) for message in request.messages[:2])
        system = f"{system}\n{user.splitlines()[-1]}"  # the form of the answer stands last
        if "You plan how to join" in system:
            return '{"labels": null}' if _drawn(user) < 0.7 else json.dumps(PLAN)
        if "Answer with the numbers of" in system and _drawn(f"{user}?") < self.broken:
            return "All of them."
        if "Answer with the numbers of" in system:
            return " > ".join(map(str, sorted(range(1, 1 + user.count("\n[")), key=lambda n: _drawn(f"{n} {user}"))))
        if "which of the two fits" in system.lower():
            return "A" if _drawn(user) < 0.5 else "B"
        if "Request:" in system:
            return "Some.\nSources: all"
        if "one JSON list of all pairs" in system:
            broken = _drawn(f"{user}?") < self.broken
            return "None." if broken else '[["L1", "R1"]]' if _drawn(user) < self.yes else "[]"
        packed = "<rows>" in user
        if packed and _drawn(user) < self.broken:
            return "I would rather not."
        said = [self._of(system, json.dumps(row), packed) for row in rows_of(user)] or [self._of(system, user, False)]
        return "\n".join(f"{number}: {one}" for number, one in enumerate(said, 1)) if packed else said[0]

    def _of(self, system: str, row: str, packed: bool) -> str:
        drawn = _drawn(row)
        if packed and _drawn(f"{row} in a pack") < self.differing:
            drawn = 1 - drawn
        if "from 0 to 1" in system:
            return f"{drawn:.2f}"
        if "JSON object" in system:
            return '{"mood": "glad"}'
        if "as written" in system:
            return PLAN["labels"][int(drawn * 2)]
        return str(drawn < self.yes) if "True or False" in system else f"{'glad' if drawn < 0.5 else 'sad'}"


PLAN: Any = {"left": "Which mood?", "right": "Which mood?", "labels": ["glad", "sad"], "pairs": "equal"}


def _drawn(text: str) -> float:
    """A number from 0 to 1 that the text decides."""
    return zlib.crc32(text.encode()) / 2**32


def random_call(draw: random.Random) -> tuple[str, pd.DataFrame, Callable[..., Any]]:
    """What is called, on which frame, and how."""
    rows = int(10 ** draw.uniform(0, 2.3))
    distinct = draw.choice([rows, max(1, rows // 2)])
    texts = [f"{number % distinct}: a letter home {'and more ' * (number % 7)}" for number in range(rows)]
    frame = pd.DataFrame({"text": texts, "group": [number % 3 for number in range(rows)]})
    packs = draw.choice([None, None, 4, "auto"])
    limit = draw.choice([None, None, 1, 5, 20])
    k = draw.choice([1, 3, 20])
    group = draw.choice([None, "group"])
    right = pd.DataFrame({"note": [f"note {number}" for number in range(draw.choice([2, 9, 30]))]})
    claim = "{text} is kind"
    calls: dict[str, Callable[..., Any]] = {
        "sem_filter": lambda tag, **also: tag.sem_filter(claim, rows_per_call=packs, limit=limit, **also),
        "sem_map": lambda tag, **also: tag.sem_map("the mood of {text}", rows_per_call=packs, **also),
        "sem_score": lambda tag, **also: tag.sem_score("how glad is {text}", rows_per_call=packs, **also),
        "sem_extract": lambda tag, **also: tag.sem_extract("text", {"mood": None}, rows_per_call=packs, **also),
        "sem_topk": lambda tag, **also: tag.sem_topk("Which {text} is best?", K=k, group_by=group, **also),
        "sem_agg": lambda tag, **also: tag.sem_agg("What says {text}?", group_by=group, **also),
        "sem_join": lambda tag, **also: tag.sem_join(
            right, "{text} is about {note}", rows_per_call=packs, limit=limit, **also
        ),
    }
    name = draw.choice(list(calls))
    told = f"{name} of {rows} ({distinct} distinct), packs {packs}, limit {limit}, K {k}, by {group}"
    return told, frame, calls[name]


@dataclass(frozen=True)
class Measured:
    """A random call: what was called, requests asked, quoted, and in the worst case; dollars spent, and at most."""

    told: str
    asked: int
    about: int
    worst: int
    dollars: float
    at_most: float


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> list[Measured]:
    """Random calls, each under a budget of its own worst case."""
    return list(_measured(tmp_path_factory.mktemp("stores"), CALLS))


def _measured(folder: Path, calls: int) -> Iterator[Measured]:
    with Server(history=True) as server:
        for seed in range(calls):
            draw = random.Random(seed)
            model = Model(
                draw.choice([0.02, 0.5, 0.9]),
                draw.choice([0, 0, 0, 0, 0.1, 1]),
                draw.choice([0, 0, 0, 0.3]),
                draw.choice([0, 0, 0, 0, 0.02, 0.02, 0.05, 0.05, 0.1, 0.1, 0.1, 0.5]),
                draw.random() < 0.1,
            )
            server.answers = model
            told, frame, call = random_call(draw)
            stored = draw.choice([0, 0, 0.5, 1])
            lm = LM("openai/scripted", api_base=server.url, api_key="none", price=PRICE)
            with tf.context(lm=lm, progress=False, store=str(folder / f"{seed}.db")):
                with contextlib.suppress(RowsFailed, AnswerRejected):
                    call(frame.head(int(stored * len(frame))).tag)
                quote = call(frame.tag, quote=True)
                server.reset()
                server.answers = model
                budget = tf.Budget(calls=quote.calls_at_most, dollars=quote.dollars_at_most)
                with contextlib.suppress(RowsFailed, AnswerRejected), tf.context(budget=budget):
                    call(frame.tag)
                told = f"{seed}: {told}, stored {stored}, {model}"
                spent, most = budget.spent.dollars, quote.dollars_at_most or 0.0
                yield Measured(told, len(server.requests), quote.calls, quote.calls_at_most, spent, most)
            server.reset()


def test_no_more_is_asked_than_the_worst_case_and_a_budget_of_it_suffices(measured):
    assert not [one for one in measured if one.asked > one.worst or one.dollars > one.at_most]


def test_the_worst_case_of_half_of_the_calls_is_at_most_twice_what_is_asked(measured):
    near = [one.worst <= 2 * one.asked for one in measured]
    assert sum(near) >= len(near) / 2, f"{sum(near)} of {len(near)}"

"""Forty kinds of answers that are none, among 2,000 rows: no row is wrong, and no answer is paid for twice."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest
from scripted import each_row

from tag_bench import server as scripted
from tag_bench.server import Reply, Request, Server, error
from tagframe.lm import LM, RetryPolicy

pytestmark = pytest.mark.slow

ROWS = 2000
SHARE = 0.3
PATIENT = RetryPolicy(faults=30, refusals=30, first_wait=0.001, longest_wait=0.004)
Wrong = Callable[[str], Reply]
"""A reply from a text that is wrong: were it taken for an answer, its row would be."""


def ends(reason: Any, **beside: Any) -> Wrong:
    """The text, and an end that makes it no answer."""
    return lambda text: Reply(changes={"choices": [choice(text, finish_reason=reason, **beside)]})


def beside(problem: Any) -> Wrong:
    """The text as if nothing was amiss, and an error in the body."""
    return lambda text: Reply(text, changes={"error": problem})


def raw(body: bytes, **headers: str) -> Wrong:
    return lambda text: Reply(raw=body, headers=headers)


def choices(make: Callable[[str], Any]) -> Wrong:
    return lambda text: Reply(changes={"choices": make(text)})


def choice(text: Any, **changes: Any) -> dict[str, Any]:
    return {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"} | changes


ENDS = [
    "error", "network_error", "insufficient_system_resource", "abort", "load", "unload", "TIMEOUT", "OTHER",
    "MALFORMED_FUNCTION_CALL", "pause_turn", "cancelled", "tool_calls", "function_call", "never heard of", 7, ["stop"],
    "length", "MAX_TOKENS", "model_length", "content_filter", "SAFETY", "RECITATION", "sensitive", "refusal",
]  # fmt: skip
KINDS: dict[str, Wrong] = {
    **{f"ends with {reason}": ends(reason) for reason in ENDS},
    "filtered, says a router": ends("stop", native_finish_reason="SAFETY"),
    "an error in the choice": ends("stop", error={"code": 502, "message": "upstream"}),
    "an error beside it": beside({"code": 502, "message": "upstream"}),
    "an error of a key beside it": beside({"code": 401, "message": "no such key"}),
    "an error in a word": beside("overloaded"),
    "a limit beside it": beside({"code": 429, "message": "slow down"}),
    "another choice": choices(lambda text: [choice(text, index=1)]),
    "two first choices": choices(lambda text: [choice(text), choice(text)]),
    "no choices": choices(lambda text: []),
    "a choice of nothing": choices(lambda text: [None]),
    "a text of blanks": choices(lambda text: [choice(" \n ")]),
    "a text of parts of nothing": choices(lambda text: [choice([{"type": "image"}])]),
    "half a response": lambda text: Reply(text, drop="half"),
    "a dropped connection": lambda text: scripted.DROP,
    "half a JSON": lambda text: scripted.MALFORMED,
    "a page": raw(b"<html>Bad gateway</html>"),
    "nothing": raw(b""),
    "a list": raw(b"[1, 2]"),
    "brackets without end": raw(b"[" * 200_000),
    "no gzip": raw(b'{"choices": []}', **{"Content-Encoding": "gzip"}),
    "500": lambda text: error(500),
    "529": lambda text: error(529),
    "429": lambda text: error(429),
}


class FaultyServer:
    """Answers truthfully about rows, but for a share of requests; counts the answers that could be used."""

    def __init__(self, seed: int) -> None:
        self.usable: Counter[str] = Counter()
        self.met: Counter[str] = Counter()
        self._draw = random.Random(seed)

    def __call__(self, request: Request) -> str | Reply:
        message = request.messages[1]["content"]  # the prompt itself, also where an answer to it is repaired
        if self._draw.random() < SHARE:
            kind = self._draw.choice(list(KINDS))
            self.met[kind] += 1
            return KINDS[kind](each_row(lambda _, row: str(row["n"] % 3 != 0), message))
        self.usable[json.dumps(request.messages)] += 1
        return each_row(lambda _, row: str(row["n"] % 3 == 0), message)


@pytest.mark.parametrize("rows_per_call", [1, 8])
def test_no_row_is_wrong_and_none_is_paid_for_twice(server: Server, rows_per_call: int):
    assert len(KINDS) >= 40
    faulty = server.answers = FaultyServer(0)  # type: ignore[assignment]
    frame = pd.DataFrame({"n": range(ROWS)})
    lm = LM("openai/faulty", api_base=server.url, retry=PATIENT, concurrency=64)
    claim: dict[str, Any] = {"lm": lm, "rows_per_call": rows_per_call, "on_error": "keep", "return_all": True}
    said = frame.tag.sem_filter("{n} is a multiple of three", **claim)  # type: ignore[operator]
    answered = said["filter_label"].notna()
    wrong = said["filter_label"][answered] != (said["n"][answered] % 3 == 0)
    assert not wrong.any()
    assert set(faulty.usable.values()) == {1}
    assert rows_per_call > 1 or faulty.met.keys() == KINDS.keys()
    failed = said.loc[~answered, "filter_error"]
    assert len(failed) < ROWS / 10
    assert set(failed.str.partition(":")[0]) <= {"ContentFiltered", "AnswerCut"}  # which no other try helps
    # The same call again, of a server that is well, pays for what failed alone.
    server.answers = lambda request: each_row(lambda _, row: str(row["n"] % 3 == 0), request.messages[1]["content"])
    server.reset()
    again = frame.tag.sem_filter("{n} is a multiple of three", **claim)  # type: ignore[operator]
    assert (again["filter_label"] == (again["n"] % 3 == 0)).all()
    assert server.count <= len(failed)

"""``sem_filter(cascade=…)``: frames, proxies and a model that is asked as little as may be."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from scripted import Scripted, packed_rows, shown_rows

import tagframe as tf
from tag_bench.server import Request
from tagframe.errors import FactUnknown, InvalidArgument, RowsFailed
from tagframe.operators import sem_filter
from tagframe.operators.cascade import BY_PROXY

ROWS = 3000


def big(message: str) -> str:
    return str(shown_rows(message)[-1]["n"] >= 2400)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """Numbers in a mixed order, and a score that says roughly how big they are."""
    random = np.random.default_rng(0)
    numbers = random.permutation(ROWS)
    return pd.DataFrame(
        {"n": numbers, "score": numbers + random.normal(scale=150, size=ROWS)}, index=range(7, ROWS + 7)
    )


def test_a_good_proxy_saves_most_calls(frame: pd.DataFrame):
    before = frame.copy(deep=True)
    lm = Scripted(big)
    result = sem_filter(frame, "{n} is big", cascade=tf.Cascade("score"), lm=lm)
    pd.testing.assert_frame_equal(frame, before)
    pd.testing.assert_frame_equal(result, frame.loc[result.index])
    report = result.tag.cascade
    assert (report.rows, report.judged) == (ROWS, len(lm.asked))
    assert report.share_of_calls == len(lm.asked) / ROWS < 0.4
    right = (result["n"] >= 2400).sum()
    assert right / 600 >= 0.9
    assert right / len(result) >= 0.9
    assert report.kept_by_proxy + report.left_out_by_proxy == ROWS - report.judged
    assert f"{report.judged:,} of 3,000 distinct rows" in result.tag.outcomes.remarks[0]


def test_what_was_asked_is_as_the_model_said_and_the_rest_is_told(frame: pd.DataFrame):
    lm = Scripted(big)
    result = sem_filter(frame, "{n} is big", cascade=tf.Cascade("score"), lm=lm, return_all=True)
    asked = {row["n"] for message in lm.asked for row in shown_rows(message)}
    by_model = result[result["n"].isin(asked)]
    assert (by_model["filter_label"] == (by_model["n"] >= 2400)).all()
    outcomes = result.tag.outcomes
    assert set(frame["n"][(outcomes["note"] == BY_PROXY).fillna(False).to_numpy(bool)]) == set(frame["n"]) - asked
    assert set(outcomes["outcome"]) == {"yes", "no"}


@pytest.mark.parametrize("as_given", [list, np.array, pd.Series, lambda scores: lambda frame: frame["score"] * -2])
def test_scores_of_the_user(frame: pd.DataFrame, as_given):
    proxy = as_given(frame["score"])
    lm = Scripted(big)
    result = sem_filter(frame, "{n} is big", cascade=tf.Cascade(proxy), lm=lm)
    assert result.tag.cascade.share_of_calls < 0.4


def test_the_same_call_asks_the_same(frame: pd.DataFrame):
    first, again, other = Scripted(big), Scripted(big), Scripted(big)
    results = [
        sem_filter(frame, "{n} is big", cascade=tf.Cascade("score", seed=seed), lm=lm)
        for seed, lm in ((0, first), (0, again), (1, other))
    ]
    assert first.batches == again.batches != other.batches
    pd.testing.assert_frame_equal(results[0], results[1])


@pytest.mark.slow
@pytest.mark.parametrize("proxy", ["classifier", "similarity"])
def test_proxies_from_embeddings(proxy: str):
    texts = [f"The {kind} number {i} is {text}" for i in range(300) for kind, text in (
        ("song", "about love and heartbreak, sung with a guitar"), ("invoice", "overdue and must be paid to the bank")
    )]  # fmt: skip
    lm = Scripted(lambda message: str("song" in shown_rows(message)[-1]["text"]))
    result = sem_filter(pd.DataFrame({"text": texts}), "{text} is about music", cascade=tf.Cascade(proxy), lm=lm)
    assert result["text"].str.contains("song").sum() >= 270
    assert len(lm.asked) < 300


def test_unsure_rows_are_not_kept_and_failed_rows_fail(frame: pd.DataFrame):
    def odd(message: str) -> str:
        n = shown_rows(message)[-1]["n"]
        if n % 50 == 0:
            raise ConnectionError("dropped")
        return "Unsure" if n % 50 == 1 else str(n >= 2400)

    lm = Scripted(odd)
    with pytest.raises(RowsFailed) as failed:
        sem_filter(frame, "{n} is big", cascade=tf.Cascade("score"), lm=lm, return_all=True)
    asked = {row["n"] for message in lm.asked for row in shown_rows(message)}
    outcomes = failed.value.frame.tag.outcomes["outcome"]
    for n, outcome in zip(frame["n"], outcomes, strict=True):
        if n in asked and n % 50 < 2:
            assert outcome == ("unsure" if n % 50 else "failed")
    assert failed.value.frame.tag.cascade.judged == len(asked)


def test_rows_that_repeat_and_rows_of_nulls():
    numbers = np.random.default_rng(0).permutation(900)
    frame = pd.DataFrame({"n": [*numbers, *numbers[:300], None, None]}, dtype="Int64")
    lm = Scripted(lambda message: str(shown_rows(message)[-1]["n"] >= 600))
    result = sem_filter(frame, "{n} is big", cascade=tf.Cascade(frame["n"].fillna(0)), lm=lm, return_all=True)
    asked = [row["n"] for message in lm.asked for row in shown_rows(message)]
    assert len(asked) == len(set(asked)) < 900
    assert set(numbers[:300].tolist()) <= set(asked)
    assert result.tag.outcomes["outcome"].tolist()[-2:] == ["null", "null"]
    assert (result["n"].iloc[:300].array == result["n"].iloc[900:1200].array).all()


@pytest.mark.slow
@pytest.mark.pandas2
def test_packed_rows(frame: pd.DataFrame):
    def answer(message: str) -> str:
        if not (rows := packed_rows(message)):
            return big(message)
        return "\n".join(f"{number}: {row['n'] >= 2400}" for number, row in enumerate(rows, 1))

    lm = Scripted(answer)
    result = sem_filter(frame, "{n} is big", cascade=tf.Cascade("score"), rows_per_call=10, lm=lm)
    assert len(lm.asked) < result.tag.cascade.judged / 5


@pytest.mark.parametrize("rows", [0, 1, 5, 60])
def test_few_rows_are_all_asked(rows: int):
    frame = pd.DataFrame({"n": range(rows), "score": np.zeros(rows)})
    lm = Scripted(lambda message: str(shown_rows(message)[-1]["n"] % 2 == 0))
    result = sem_filter(frame, "{n} is even", cascade=tf.Cascade("score"), lm=lm)
    assert result["n"].tolist() == [n for n in range(rows) if n % 2 == 0]
    assert result.tag.cascade.judged == rows == len(lm.asked)


@pytest.mark.parametrize(
    "given",
    [
        {"recall": 0},
        {"recall": 1.2},
        {"precision": True},
        {"delta": 1.0},
        {"delta": 0},
        {"recall": "a lot"},
        {"seed": -1},
    ],
)
def test_a_cascade_that_is_none(given: dict):
    with pytest.raises(InvalidArgument, match=f"a cascade's {next(iter(given))} must be"):
        tf.Cascade(**given)


@pytest.mark.parametrize(
    "proxy",
    ["scores", [1.0, 2.0], [np.nan] * 3, ["a", "b", "c"], lambda frame: 7, pd.Series([1, 2, 3], index=[5, 6, 7])],
)
def test_a_proxy_that_is_none_costs_nothing(proxy: object):
    lm = Scripted(big)
    with pytest.raises(InvalidArgument, match="prox"):
        sem_filter(pd.DataFrame({"n": [1, 2, 3]}), "{n} is big", cascade=tf.Cascade(proxy), lm=lm)  # type: ignore[arg-type]
    assert lm.asked == []


def test_what_does_not_go_together(frame: pd.DataFrame):
    with pytest.raises(InvalidArgument, match="limit="):
        sem_filter(frame, "{n} is big", cascade=tf.Cascade("score"), limit=3, lm=Scripted(big))
    with pytest.raises(InvalidArgument, match=r"cascade must be a tagframe\.Cascade"):
        sem_filter(frame, "{n} is big", cascade="score", lm=Scripted(big))  # type: ignore[arg-type]
    with pytest.raises(FactUnknown, match="cascade"):
        _ = sem_filter(frame.head(3), "{n} is big", lm=Scripted(big)).tag.cascade


@pytest.mark.slow
def test_a_smaller_model_as_proxy(live, frame: pd.DataFrame):
    def answers(request: Request) -> str:
        n = shown_rows(request.prompt)[-1]["n"]
        return str(n >= 2400) if request.body["model"] == "test" else f"{n / 3000:.2f}"

    def degrees(rows: pd.DataFrame) -> pd.Series:
        return rows.tag.sem_score("how big {n} is", lm="openai/small", store=None)["_score"]

    live.answers = answers
    few = frame.head(600)
    result = few.tag.sem_filter("{n} is big", cascade=tf.Cascade(degrees), store=None)
    by_model = [request.body["model"] for request in live.requests]
    assert by_model.count("small") == 600
    assert by_model.count("test") == result.tag.cascade.judged < 600


@pytest.mark.slow
@pytest.mark.pandas2
def test_over_http_quoted_and_awaited(live, frame: pd.DataFrame):
    live.answers = lambda request: str(shown_rows(request.prompt)[-1]["n"] >= 2400)
    few = frame.head(800)
    cascade = tf.Cascade("score")
    quote = few.tag.sem_filter("{n} is big", cascade=cascade, quote=True)
    assert live.requests == []
    assert quote.calls_at_most == 2 * 800
    result = few.tag.sem_filter("{n} is big", cascade=cascade)
    assert live.count == result.tag.cascade.judged < 800
    assert pickle.loads(pickle.dumps(result)).tag.cascade == result.tag.cascade
    again = few.tag.sem_filter("{n} is big", cascade=cascade)
    assert live.count == result.tag.cascade.judged  # answers of the store
    pd.testing.assert_frame_equal(result, again)

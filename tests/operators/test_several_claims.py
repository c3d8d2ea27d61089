"""``sem_filter`` of several claims: a row is asked until one ends it; what stays is as by one filter after another."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scripted import Scripted, shown_rows

import tagframe as tf
from tagframe.errors import ColumnNotFound, InvalidArgument, RowsFailed
from tagframe.operators import sem_filter

CLAIMS = ["{n} is even", "{m} is a multiple of 10", "{n} and {m} differ"]


def answer(prompt) -> str:
    """What is true of a row; the claim stands in the system message."""
    row = shown_rows(prompt.messages[-1].content)[-1]
    claim = prompt.messages[0].content.rpartition("Claim: ")[2]
    if row.get("m") == 990:
        raise ConnectionError("dropped")
    if "even" in claim:
        return str(row["n"] % 2 == 0)
    if "multiple" in claim:
        return "Unsure" if row["m"] == 770 else str(row["m"] % 10 == 0)
    return str(row["n"] != row["m"])


class Claims(Scripted):
    """A model that reads the claim, too."""

    def __init__(self) -> None:
        super().__init__(lambda message: "")

    def completion(self, prompt, accept):
        self.answer = lambda _: answer(prompt)
        return super().completion(prompt, accept)


@pytest.fixture
def frame() -> pd.DataFrame:
    random = np.random.default_rng(0)
    return pd.DataFrame(
        {"n": random.permutation(400), "m": random.integers(0, 98, 400) * 10 + (random.random(400) > 0.1)},
        index=np.arange(400) % 50,
    )


@pytest.mark.slow
def test_the_same_rows_as_one_after_the_other_for_fewer_calls(frame: pd.DataFrame):
    before = frame.copy(deep=True)
    together, apart = Claims(), Claims()
    result = sem_filter(frame, CLAIMS, lm=together)
    expected = frame
    for claim in CLAIMS:
        expected = sem_filter(expected, claim, lm=apart)
    pd.testing.assert_frame_equal(result, expected)
    pd.testing.assert_frame_equal(frame, before)
    assert len(together.asked) < len(apart.asked)
    assert len(together.prompts) < 400 * 1.5


def test_each_row_says_which_claim_ended_it(frame: pd.DataFrame):
    result = sem_filter(frame, CLAIMS, lm=Claims(), return_all=True)
    for n, m, label, ended_by in result[["n", "m", "filter_label", "filter_ended_by"]].itertuples(index=False):
        ends = [claim for claim, holds in zip(CLAIMS, [n % 2 == 0, m % 10 == 0, n != m], strict=True) if not holds]
        assert label == (not ends)
        assert ended_by in ends if ends else pd.isna(ended_by)
    outcomes = result.tag.outcomes
    assert outcomes["note"].dropna().str.contains("by '{m} is a multiple of 10'", regex=False).any()
    assert "'{m} is a multiple of 10', '{n} is even'" in outcomes.remarks[0]


def test_unsure_null_and_failed_rows_end_there(frame: pd.DataFrame):
    frame = frame.astype({"m": "Int64"}).reset_index(drop=True)
    frame.loc[0, ["n", "m"]] = [2, 770]
    frame.loc[1, ["n", "m"]] = [4, 990]
    frame.loc[2, ["n", "m"]] = [6, pd.NA]
    with pytest.raises(RowsFailed, match="sem_filter: 1 of 400 rows") as failed:
        sem_filter(frame, CLAIMS[:2], lm=Claims())
    outcomes = failed.value.frame.tag.outcomes
    assert outcomes["outcome"].tolist()[:3] == ["unsure", "failed", "null"]
    kept = sem_filter(frame, CLAIMS[:2], lm=Claims(), on_error="drop")
    assert not {2, 4, 6} & set(kept["n"].iloc[:1])


def test_distinct_rows_are_asked_once():
    lm = Claims()
    frame = pd.DataFrame({"n": [2, 4] * 200, "m": [10] * 400})
    sem_filter(frame, CLAIMS[:2], lm=lm)
    assert len(lm.prompts) == len({(prompt.messages[0].content, prompt.messages[-1].content) for prompt in lm.prompts})
    assert len(lm.prompts) == 3


def test_one_claim_and_few_rows():
    lm = Claims()
    assert sem_filter(pd.DataFrame({"n": [2, 3]}), "{n} is even", lm=lm)["n"].tolist() == [2]
    assert len(lm.prompts) == 2
    assert sem_filter(pd.DataFrame({"n": [], "m": []}), CLAIMS, lm=lm).empty


def test_bad_arguments_cost_nothing(frame: pd.DataFrame):
    lm = Claims()
    with pytest.raises(InvalidArgument, match="at least one claim"):
        sem_filter(frame, [], lm=lm)
    with pytest.raises(ColumnNotFound):
        sem_filter(frame, ["{n} is even", "{q} is odd"], lm=lm)
    with pytest.raises(InvalidArgument, match="already has a column"):
        sem_filter(frame.assign(filter_label=1), CLAIMS, lm=lm, return_all=True)
    assert lm.prompts == []


def test_what_is_for_one_claim_is_refused(frame: pd.DataFrame):
    lm = Claims()
    for name, given in {
        "limit": 3,
        "cascade": tf.Cascade(np.arange(400)),
        "return_explanations": True,
    }.items():
        with pytest.raises(InvalidArgument, match=f"{name}= is for one claim"):
            sem_filter(frame, CLAIMS, lm=lm, **{name: given})
    assert lm.prompts == []
    assert len(sem_filter(frame, CLAIMS[:1], lm=lm, all_cols=True)) == 200
    assert set(shown_rows(lm.asked[0])[0]) == {"n", "m"}

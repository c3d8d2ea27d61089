"""``sem_filter(limit=…)``: no more is asked than is needed to find so many rows."""

from __future__ import annotations

import random

import pandas as pd
import pytest
from scripted import Scripted, shown_rows
from test_packing import faithful, packed

from tagframe.errors import InvalidArgument, RowsFailed
from tagframe.operators import sem_filter


def even(message: str) -> str:
    return str(shown_rows(message)[-1]["n"] % 2 == 0)


@pytest.mark.parametrize("seed", range(20))
def test_five_of_two_thousand_half_true(seed):
    numbers = list(range(2000))
    random.Random(seed).shuffle(numbers)
    frame = pd.DataFrame({"n": numbers})
    lm = Scripted(even)
    result = sem_filter(frame, "{n} is even", lm=lm, limit=5)
    pd.testing.assert_frame_equal(result, frame[frame["n"] % 2 == 0].head(5))
    needed = result.index[-1] + 1
    assert needed <= len(lm.asked) <= needed + needed // 2 + 8
    assert len(lm.batches) <= 6


@pytest.mark.slow
@pytest.mark.pandas2
def test_rare_rows_are_found_in_few_rounds():
    frame = pd.DataFrame({"n": range(1, 4000, 2)})
    frame.loc[[1500, 1700], "n"] = [10, 20]
    lm = Scripted(even)
    assert sem_filter(frame, "{n} is even", lm=lm, limit=2)["n"].tolist() == [10, 20]
    assert len(lm.batches) <= 6


def test_what_was_not_asked_is_told():
    frame = pd.DataFrame({"n": [2, None, 4, 6, 8, 10]})
    lm = Scripted(even)
    result = sem_filter(frame, "{n} is even", lm=lm, limit=2, return_all=True)
    assert result["filter_outcome"].tolist() == ["yes", "null", "yes", "not asked", "not asked", "not asked"]
    assert result["filter_label"].isna().tolist() == [False, True, False, True, True, True]
    assert result["filter_reason"].iloc[3] == "enough rows were found before"


def test_rows_that_show_the_same_count_each():
    frame = pd.DataFrame({"n": [2, 2, 2, 4]})
    lm = Scripted(even)
    result = sem_filter(frame, "{n} is even", lm=lm, limit=2)
    assert (result.index.tolist(), len(lm.asked)) == ([0, 1], 2)
    assert result.tag.outcomes["note"].tolist()[2] == "beyond the limit"


def test_fewer_rows_than_the_limit_are_all_there_are():
    frame = pd.DataFrame({"n": range(9)})
    assert len(sem_filter(frame, "{n} is even", lm=Scripted(even), limit=100)) == 5
    assert sem_filter(frame.head(0), "{n} is even", lm=Scripted(even), limit=1).empty


def test_failed_rows_do_not_stop_the_search():
    def answer(message: str) -> str:
        if shown_rows(message)[-1]["n"] == 0:
            raise ConnectionError("dropped")
        return even(message)

    with pytest.raises(RowsFailed) as caught:
        sem_filter(pd.DataFrame({"n": range(20)}), "{n} is even", lm=Scripted(answer), limit=2)
    assert caught.value.frame["n"].tolist() == [0, 2, 4]


def test_packs_and_a_limit():
    lm = Scripted(faithful)
    result = sem_filter(pd.DataFrame({"n": range(2000)}), "{n} is even", lm=lm, limit=5, rows_per_call="auto")
    assert (result["n"].tolist(), len(lm.asked), len(packed(lm.asked[0]))) == ([0, 2, 4, 6, 8], 1, 16)
    assert "not audited" in result.tag.outcomes.remarks[0]


def test_likeliest_first():
    animals = ["a horse in a stable", "a dog on a leash", "a cat on a sofa"]
    others = [f"the price of steel in the year {year}" for year in range(1900, 2000)]
    frame = pd.DataFrame({"text": [*others[:50], *animals, *others[50:]]})
    lm = Scripted(lambda message: str(shown_rows(message)[-1]["text"] in animals))
    result = sem_filter(frame, "{text} is about an animal", lm=lm, limit=3, limit_order="likeliest")
    assert result["text"].tolist() == animals, "in the rows' own order"
    assert len(lm.asked) <= 5


@pytest.mark.parametrize("limit", [0, -1, 2.5, "5", True])
def test_a_limit_is_checked_before_anything_is_spent(limit):
    with pytest.raises(InvalidArgument, match="limit must be the number of rows to find"):
        sem_filter(pd.DataFrame({"n": [1]}), "{n}", lm=Scripted(even), limit=limit)
    with pytest.raises(InvalidArgument, match="limit_order must be one of"):
        sem_filter(pd.DataFrame({"n": [1]}), "{n}", lm=Scripted(even), limit=1, limit_order="best")


def test_a_limit_over_http(live):
    live.answers = lambda request: even(request.prompt)
    frame = pd.DataFrame({"n": range(2000)})
    assert len(frame.tag.sem_filter("{n} is even", limit=5)) == 5
    assert len(live.requests) <= 16
    quote = frame.tag.sem_filter("{n} is odd", limit=5, quote=True)
    assert 5 < quote.calls <= 16, "as if every second row passed"
    assert quote.calls_at_most == 4000

"""``sem_dedup``: by the encoder, and by a model near the border."""

from __future__ import annotations

import re

import pandas as pd
import pytest
from scripted import Scripted, packed_rows, shown_rows

from tagframe.errors import AnswerRejected, ColumnNotFound, InvalidArgument, RowsFailed
from tagframe.operators import sem_dedup

TITLES = ["a long day at the beach", "a long day at the beaches", None, "the price of bread", "A long day at the beach"]
BOOKS = pd.DataFrame({"title": TITLES, "n": range(5)}, index=[7, 7, 1, 0, 3])


def same(message: str) -> str:
    if rows := packed_rows(message):
        return "\n".join(f"{number}: {'beach' in str(row['one'])}" for number, row in enumerate(rows, 1))
    return str("beach" in str(shown_rows(message)[-1]["one"]))


def test_near_duplicates_go_without_a_model():
    before = BOOKS.copy(deep=True)
    result = sem_dedup(BOOKS, "title", 0.8)
    assert result["n"].tolist() == [0, 2, 3]
    pd.testing.assert_frame_equal(BOOKS, before)
    assert result.tag.outcomes["outcome"].tolist() == ["kept", "left out", "null", "kept", "left out"]
    assert result.tag.outcomes["note"].iloc[1] == "a duplicate of the row with index 7"


def test_pairs_near_the_border_are_asked_in_packs():
    lm = Scripted(same)
    assert sem_dedup(BOOKS, "title", 0.9, border=0.1, lm=lm)["n"].tolist() == [0, 2, 3]
    no = Scripted(lambda message: re.sub("True", "False", same(message)))
    assert len(sem_dedup(BOOKS, "title", 1.0, border=1.0, lm=no)) == 5
    assert 0 < len(no.asked) <= 4, "six pairs"


def test_a_pair_without_an_answer_fails_its_row():
    def answer(message: str) -> str:
        raise AnswerRejected("no answer")

    with pytest.raises(RowsFailed) as caught:
        sem_dedup(BOOKS, "title", 1.0, border=1.0, lm=Scripted(answer))
    assert len(caught.value.frame) == 5


def test_what_cannot_be_is_refused():
    with pytest.raises(ColumnNotFound, match="did you mean 'title'"):
        sem_dedup(BOOKS, "titel", 0.9)
    with pytest.raises(InvalidArgument, match="threshold must be a cosine from 0 to 1; got 2"):
        sem_dedup(BOOKS, "title", 2)
    with pytest.raises(InvalidArgument, match="2 columns are called 'title'"):
        sem_dedup(BOOKS.rename(columns={"n": "title"}), "title")
    assert sem_dedup(BOOKS.head(0), "title").empty


def test_rows_without_text_are_all_kept():
    blank = pd.DataFrame({"title": ["", "Dune", "", "  ", "Dune", None]})
    result = sem_dedup(blank, "title")
    assert result.index.tolist() == [0, 1, 2, 3, 5]
    assert result.tag.outcomes["outcome"].tolist() == ["null", "kept", "null", "null", "left out", "null"]

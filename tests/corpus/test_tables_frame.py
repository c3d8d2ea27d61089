from __future__ import annotations

import copy
import pickle

import pandas as pd
import pytest

import tagframe as tf
from tagframe.corpus import corpus_of
from tagframe.errors import TableNotFound


@pytest.fixture
def corpus():
    return tf.open_corpus(
        {
            "bank.loan": pd.DataFrame({"id": [1, 2], "amount": [5, 6]}),
            "bank.client": pd.DataFrame({"id": [1]}),
            "shop.empty": pd.DataFrame({"id": []}),
        }
    )


def test_a_row_for_each_table(corpus):
    frame = corpus.tables
    assert frame.columns.tolist() == ["id", "database", "table", "rows", "columns", "column_names"]
    assert frame.to_dict("records")[1] == {
        "id": "bank.loan",
        "database": "bank",
        "table": "loan",
        "rows": 2,
        "columns": 2,
        "column_names": ["id", "amount"],
    }
    assert frame["rows"].dtype == "Int64"
    assert corpus_of(frame).ids == corpus.ids


@pytest.mark.parametrize(
    "narrow",
    [
        lambda frame: frame.query("rows > 0"),
        lambda frame: frame[frame["rows"] > 0],
        lambda frame: frame.sort_values("rows").tail(2),
        lambda frame: copy.deepcopy(frame.head(2)),
        lambda frame: frame[["id", "rows"]].iloc[:2],
        lambda frame: frame.drop(index=2).reset_index(drop=True),
        lambda frame: pickle.loads(pickle.dumps(frame.head(2))),
        lambda frame: frame.assign(mine=1).drop_duplicates("id").iloc[:2],
        lambda frame: pd.concat([frame.iloc[[0, 1]], frame.iloc[[0]]]),
    ],
)
def test_a_part_keeps_its_corpus(corpus, narrow):
    part = narrow(corpus.tables)
    found = corpus_of(part)
    assert found is not None
    assert found.ids == ("bank.client", "bank.loan")
    assert found.read("bank.loan")["amount"].tolist() == [5, 6]


def test_nothing_left(corpus):
    assert len(corpus_of(corpus.tables.query("rows > 100"))) == 0


def test_frames_that_are_no_catalogue(corpus):
    assert corpus_of(pd.DataFrame({"id": ["bank.loan"]})) is None
    assert corpus_of(pd.DataFrame(corpus.tables)) is None
    assert corpus_of(corpus.tables[["rows"]]) is None
    assert corpus_of(corpus.tables.rename(columns={"table": "id"})) is None


def test_parts_of_two_corpora_are_no_catalogue(corpus):
    other = tf.open_corpus({"x": pd.DataFrame({"a": [1]})})
    assert corpus_of(pd.concat([corpus.tables, other.tables])) is None
    assert corpus_of(pd.concat([corpus.tables, pd.DataFrame(other.tables)])) is None


def test_an_id_that_is_not_there(corpus):
    frame = corpus.tables
    frame.loc[0, "id"] = "bank.clients"
    with pytest.raises(TableNotFound, match=r"did you mean 'bank\.client'"):
        corpus_of(frame)


def test_the_corpus_is_not_changed_through_its_frame(corpus):
    frame = corpus.tables
    frame.loc[0, "id"] = "x"
    frame["column_names"].iloc[0].append("x")
    assert corpus.tables["id"][0] == "bank.client"
    assert corpus.tables["column_names"][0] == ["id"]

"""``how="right"``, ``distinct=``, ``aggregate=`` of first rows, and ``limit=``, in every engine."""

from __future__ import annotations

import pandas as pd
import pytest

import tagframe as tf
from tagframe.corpus.references import NamedTable
from tagframe.errors import FanOut, InvalidArgument
from tagframe.joins import keys_on, plan_tables
from tagframe.merging import run_plan
from tests import opened_in

ORDERS = pd.DataFrame({"oid": [1, 2, 3, 4], "KdNr": [10, 20, 10, 99], "total": [5, 6, 7, 8]})
KUNDEN = pd.DataFrame({"KdNr": [10, 20, 30], "Ort": ["Bern", "Ulm", "Graz"]})
COPIED = pd.concat([KUNDEN, KUNDEN.head(2)], ignore_index=True)
CHANGED = pd.concat([KUNDEN, KUNDEN.head(1).assign(Ort="Genf")], ignore_index=True)
ON = "Orders.KdNr = Kunden.KdNr"


@pytest.fixture(params=["frames", "sqlite", "csv", "lake", "mixed"])
def corpus_of(request, tmp_path):
    """Makes a corpus of orders and customers, in one engine or in two."""
    return lambda kunden: opened_in.opened(request.param, {"Orders": ORDERS, "Kunden": kunden}, tmp_path, request)


def merged(corpus: tf.Corpus, **given):
    profiles = [corpus.profile(name) for name in ("Orders", "Kunden")]
    ids = [profile.id for profile in profiles]
    plan = plan_tables(corpus, ids, anchor=ids[0], given=keys_on(ON, list(map(NamedTable.of, profiles))))
    return run_plan(plan, corpus, **{"on_loss": "allow", **given})


def test_right_keeps_the_rows_that_pandas_keeps(corpus_of):
    frame, report = merged(corpus_of(KUNDEN), how="right")
    assert frame["KdNr"].tolist() == [10, 20, 10, 30]
    assert frame["oid"].tolist()[:3] == [1, 2, 3]
    assert frame["Ort"].tolist() == ["Bern", "Ulm", "Bern", "Graz"]
    expected = ORDERS.merge(KUNDEN, on="KdNr", how="right")
    assert sorted(map(str, frame.to_dict("records"))) == sorted(
        map(str, expected.astype(frame.dtypes).to_dict("records"))
    )
    assert report.lost == 1
    assert report.rows == 4


def test_exact_copies_count_once(corpus_of):
    corpus = corpus_of(COPIED)
    with pytest.raises(
        FanOut, match=r"distinct=True to count exact copies once: keys of \S+ repeat because 2 rows are"
    ):
        merged(corpus)
    frame, report = merged(corpus, distinct=True)
    assert frame["Ort"].tolist() == ["Bern", "Ulm", "Bern"]
    assert "Exact copies of rows of" in repr(report)


def test_the_first_row_of_each_key(corpus_of):
    corpus = corpus_of(CHANGED)
    with pytest.raises(FanOut, match=r"or aggregate=\{'Kunden': 'first'\} for the first row of each"):
        merged(corpus, distinct=True)
    frame, report = merged(corpus, aggregate={"Kunden": "first"})
    assert frame["Ort"].tolist() == ["Bern", "Ulm", "Bern"]
    assert "Kunden has one row per KdNr: the first." in repr(report)
    with pytest.raises(InvalidArgument, match="no first row"):
        report.plan.sql()


def test_a_report_with_a_limit_says_so(corpus_of):
    report = merged(corpus_of(KUNDEN), limit=1)[1]
    assert report.ending.startswith("1 row in the result, limited by limit=1: the first of 3 joined rows; 1 row of")
    assert "has no partner" in report.ending
    assert "not among" not in report.ending
    assert report.to_dict()["limit"] == 1
    whole = merged(tf.open_corpus({"Orders": ORDERS, "Kunden": KUNDEN}), limit=9)[1]
    assert "limited" not in whole.ending
    assert "is not among them" in whole.ending


def test_public_forms_have_these_words():
    frame = tf.merge({"Orders": ORDERS, "Kunden": COPIED}, on=ON, how="right", distinct=True)
    assert frame["KdNr"].tolist() == [10, 20, 10, 30]
    assert ORDERS.tag.merge(COPIED, on="KdNr", distinct=True, on_loss="allow")["oid"].tolist() == [1, 2, 3]
    corpus = tf.open_corpus({"Orders": ORDERS, "Kunden": COPIED})
    found = tf.retrieve_tables("orders of Kunden", corpus, k=2)
    assert len(found.merge(on=ON, how="right", distinct=True)) == 4


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"how": "cross"}, "how must be one of"),
        ({"distinct": "Kunden"}, "distinct must be True or False"),
        ({"aggregate": {"Kunden": "sum"}}, "'first'"),
    ],
)
def test_other_words_are_refused_by_name(given, match):
    with pytest.raises(InvalidArgument, match=match):
        tf.merge({"Orders": ORDERS, "Kunden": KUNDEN}, on=ON, **given)


def test_right_over_three_tables_is_as_in_pandas():
    towns = pd.DataFrame({"Ort": ["Bern", "Graz", "Wien"], "land": ["CH", "AT", "AT"]})
    found = tf.merge(
        {"Orders": ORDERS, "Kunden": KUNDEN, "Towns": towns}, on=[ON, "Kunden.Ort = Towns.Ort"], how="right",
        on_loss="allow",
    )  # fmt: skip
    expected = ORDERS.merge(KUNDEN, on="KdNr", how="right").merge(towns, on="Ort", how="right")
    assert sorted(found["land"]) == sorted(expected["land"])
    assert sorted(found["Ort"]) == sorted(expected["Ort"])
    assert found["oid"].isna().sum() == expected["oid"].isna().sum()


def test_copies_are_not_counted_where_a_plan_reads_fewer_columns_than_it_has():
    frames = {"Orders": ORDERS, "Kunden": COPIED}
    plan = tf.join_plan(frames, on=ON)
    fewer = {"Orders": ORDERS, "Kunden": COPIED[["KdNr"]]}
    with pytest.raises(FanOut) as error:
        tf.merge(fewer, plan=plan, columns=["Orders.oid"], on_loss="allow")
    assert "distinct=True counts copies" not in str(error.value)

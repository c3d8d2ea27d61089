"""A statement may read a table that exists and was not shown; the answer says so."""

from __future__ import annotations

import pandas as pd
import pytest

import tagframe as tf
from tagframe.answer.guard import Reader
from tagframe.answer.query import names_in_sql
from tagframe.errors import AnswerRejected, UnsafeSQL

FRAMES = {
    "shop.bread": pd.DataFrame({"bread": ["rye", "oat"], "price": [3, 4]}),
    "shop.refund": pd.DataFrame({"refund_id": [1, 2], "reason": ["late", "burnt"]}),
    "farm.goat": pd.DataFrame({"goat": ["Ada", "Bea"]}),
    "one.sale": pd.DataFrame({"amount": [1]}),
    "two.sale": pd.DataFrame({"amount": [2]}),
}


@pytest.fixture
def corpus() -> tf.Corpus:
    return tf.open_corpus(FRAMES)


def said(live, *statements: str) -> None:
    live.answers = [f"-- answer: values\n{statement}" for statement in statements]


@pytest.mark.parametrize(
    ("sql", "values", "table"),
    [
        ("SELECT reason FROM refund", ["late", "burnt"], "shop.refund"),
        ("SELECT reason FROM shop.refund WHERE refund_id = 1", ["late"], "shop.refund"),
        ("SELECT goat FROM GOAT", ["Ada", "Bea"], "farm.goat"),
        ('SELECT amount FROM "two.sale"', [2], "two.sale"),
        ("SELECT amount FROM two.sale", [2], "two.sale"),
    ],
)
def test_a_table_that_was_not_shown_is_read_and_named(live, corpus, sql, values, table):
    said(live, sql)
    answer = tf.ask("What does bread cost?", corpus, k=1, method="lexical")
    assert "TABLE refund" not in live.requests[0].prompt
    assert (answer.values, answer.tables, answer.calls) == (values, [table], 1)
    assert answer.assumptions == (f"{table} is read, which was not shown",)


def test_its_schema_is_shown_on_repair(live, corpus):
    said(live, "SELECT why FROM refund", "SELECT reason FROM refund")
    answer = tf.ask("What does bread cost?", corpus, k=1, method="lexical")
    again = live.requests[1].prompt
    assert "no such column: why" in again
    assert "\nTABLE refund (2 rows): refund_id, reason ('late', 'burnt')" in again
    assert answer.values == ["late", "burnt"]


def test_a_name_of_several_tables_or_of_none_is_refused(live, corpus):
    for sql in ("SELECT amount FROM sale", "SELECT 1 FROM cake", "SELECT 1 FROM farm.refund"):
        said(live, sql, sql)
        with pytest.raises(AnswerRejected, match="no table"):
            tf.ask("What does bread cost?", corpus, k=1, method="lexical", store=None)


def test_tables_that_the_user_chose_are_all_that_may_be_read(live, corpus):
    found = corpus.tables.tag.retrieve_tables("bread", k=1, method="lexical")
    said(live, "SELECT reason FROM refund", "SELECT reason FROM refund")
    with pytest.raises(AnswerRejected, match="no table 'refund'"):
        tf.ask("What does bread cost?", found)


def test_hidden_columns_of_such_a_table_stay_hidden(corpus):
    corpus = corpus.hide("refund.reason")
    shown = Reader(corpus, names_in_sql([corpus.profile("shop.bread")]))
    wider = shown.with_extra_tables("SELECT * FROM refund")
    assert wider.run("SELECT * FROM refund").columns.tolist() == ["refund_id"]
    assert shown.with_extra_tables("SELECT bread FROM bread") is shown
    with pytest.raises(UnsafeSQL):
        shown.run("SELECT * FROM refund")


@pytest.mark.parametrize("repair", [False, True])
def test_text2sql_admits_it_too(live, corpus, repair):
    live.answers = ["SELECT reason FROM refund"]
    answer = tf.text2sql(corpus, ["shop.bread"], prompt="jar", repair=repair)("Why refunds?")
    assert answer.rows["reason"].tolist() == ["late", "burnt"]
    assert answer.assumptions == ("shop.refund is read, which was not shown",)

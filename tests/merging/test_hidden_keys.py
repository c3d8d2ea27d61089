"""A merge over hidden columns: joined on everywhere, in no result, warning or error, also of plans made before."""

from __future__ import annotations

import pickle
import traceback
import warnings
from pathlib import Path

import pandas as pd
import pytest

import tagframe as tf
from tagframe.errors import HiddenColumn, InexactKeys, NotConnected, RowsLost
from tests.opened_in import opened

PEOPLE = pd.DataFrame({"ssn": ["zqs-00001", "zqs-00002", "zqs-00003"], "city": ["Porto", "Faro", "Lagos"]})
ORDERS = pd.DataFrame({"nr": [1, 2, 3], "buyer": [" zqs-00001", "ZQS-00002", "zqs-9"]})
QUESTION = "In which city does the buyer of each order live?"


SOURCES = ["frames", "csv", "sqlite", "sqlalchemy", "lake"]


@pytest.fixture(params=SOURCES)
def corpus(request: pytest.FixtureRequest, tmp_path: Path) -> tf.Corpus:
    return opened(request.param, {"orders": ORDERS, "people": PEOPLE}, tmp_path / "shop", request)


def hidden(corpus: tf.Corpus) -> tf.Corpus:
    corpus.keys.add("orders.buyer = people.ssn")
    corpus.hide("people.ssn")
    corpus.hide("orders.buyer")
    return corpus


def found_in(corpus: tf.Corpus) -> tf.RetrievedTables:
    return corpus.tables.tag.retrieve_tables(QUESTION, k=2, method="lexical")


@pytest.mark.parametrize("how", ["inner", "left", "outer"])
@pytest.mark.parametrize("limit", [None, 2])
def test_tables_join_on_a_hidden_key(corpus, how, limit):
    found = found_in(hidden(corpus))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        frame = found.merge(how=how, limit=limit, on_fanout="allow")
    assert set(frame.columns) == {"nr", "city"}
    assert frame["city"].dropna().isin(PEOPLE["city"]).all()
    texts = [frame.to_csv(), str(frame.tag.merge_report), repr(frame.tag.merge_report.to_dict())]
    texts += [str(one.message) for one in said]
    assert not any("zqs" in text.casefold() for text in texts), texts
    assert b"zqs" not in pickle.dumps((frame, found)).lower() or "frames" in corpus.profile("people").database


def test_rows_that_are_lost_are_told_without_their_keys(corpus):
    corpus.keys.add("orders.buyer = people.ssn")
    with tf.context(corpus=corpus):
        found = corpus.read("orders").tag.retrieve_tables(QUESTION, k=1, method="lexical")
    hidden(corpus)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        merged = found.merge()
    assert any("1 of 3 rows of" in str(one.message) for one in said)
    assert "zqs" not in "".join(str(one.message) for one in said).casefold()
    assert set(merged.columns) == {"nr", "city"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(RowsLost) as error:
            found.merge(on_loss="raise")
    assert "zqs" not in "".join(traceback.format_exception(error.value)).casefold()
    assert list(error.value.rows.columns) == ["nr"]


def test_an_error_shows_no_key(tmp_path):
    big = pd.DataFrame({"key": [9007199254740994.0, 2.0], "a": [1, 2]})
    corpus = tf.open_corpus({"one": big, "two": pd.DataFrame({"key": [9007199254740994, 2], "b": [1, 2]})})
    corpus.keys.add("one.key = two.key")
    corpus.hide("one.key")
    with pytest.raises(InexactKeys) as error:
        corpus.tables.tag.retrieve_tables("a and b", k=2, method="lexical").merge()
    assert "9007199254740994" not in "".join(traceback.format_exception(error.value))


def test_what_was_found_before_it_was_hidden(corpus):
    corpus.keys.add("orders.buyer = people.ssn")
    found = found_in(corpus)
    plan = found.join_plan
    assert "ssn" in "".join(plan.column_names().values()) or "buyer" in plan.column_names().values()
    corpus.hide("people.ssn")
    corpus.hide("orders.buyer")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        frames = [found.merge(), found.merge(plan), found.merge(plan, how="left", limit=2)]
    assert [set(frame.columns) for frame in frames] == [{"nr", "city"}] * 3
    assert "zqs" not in "".join(str(one.message) for one in said).casefold()
    with pytest.raises(HiddenColumn):
        found.merge(columns=["buyer"])
    with pytest.raises(HiddenColumn):
        found.merge(where={"people.ssn": "zqs-00001"})
    assert "ssn" not in found.join_plan.sql().partition("FROM")[0]
    assert "zqs" not in f"{found!r}{found._repr_html_()}{found.to_dict()}".casefold()


def test_hidden_from_models_only(corpus, live):
    corpus.keys.add("orders.buyer = people.ssn")
    corpus.hide("people.ssn", from_models=True)
    corpus.hide("orders.buyer", from_models=True)
    people = corpus.read("people")
    assert people["ssn"].tolist() == PEOPLE["ssn"].tolist()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        merged = found_in(corpus).merge()
    assert "zqs" not in "".join(str(one.message) for one in said).casefold()
    assert "buyer" in merged.columns or "ssn" in merged.columns
    with pytest.raises(HiddenColumn, match="hidden from models"):
        people.tag.sem_filter("{ssn} is odd")
    assert len(people.tag.sem_filter("it is a place in the south", all_cols=True)) == 3, (
        "what names no column is shown the others"
    )
    merged.tag.sem_filter("it is a place in the south", all_cols=True)
    with pytest.raises(HiddenColumn):
        people.query("city == 'Faro'").tag.sem_map("what does {ssn} say")
    with pytest.warns(tf.errors.CoercedKeysWarning) as said:
        again = tf.merge(people, corpus.read("orders"), on="ssn = buyer", on_loss="allow")
    assert "zqs" not in "".join(str(one.message) for one in said).casefold()
    with pytest.raises(HiddenColumn):
        again.tag.sem_filter("{ssn} is odd")
    with pytest.raises(tf.errors.TagframeError):
        tf.exec_sql(corpus)("SELECT ssn FROM people")
    prompts = "\n".join(str(request.messages) for request in live.requests)
    assert live.requests
    assert "zqs" not in prompts.casefold()
    assert "Porto" in prompts


TICKETS = pd.DataFrame({"ticket": range(1, 13), "topic": [*"abcdef"] * 2, "payee": [f"zqs-{n % 7}" for n in range(12)]})
FIRMS = pd.DataFrame({"id": range(1, 8), "vat": [f"zqs-{n}" for n in range(7)], "city": [*"PQRPQRP"]})


@pytest.mark.parametrize("source", ["frames", "sqlite", "csv"])
@pytest.mark.parametrize("reopened", [False, True])
def test_a_hidden_key_with_an_unlike_name_is_found(tmp_path, request, source, reopened):
    folder = tmp_path / "desk"
    corpus = opened(source, {"tickets": TICKETS, "firms": FIRMS}, folder, request)
    corpus.hide("tickets.payee")
    corpus.hide("firms.vat")
    if reopened and source != "frames":
        corpus = tf.open_corpus(folder / "s.sqlite" if source == "sqlite" else folder, progress=False)
    found = corpus.tables.tag.retrieve_tables("topics of tickets and the city of the firm", k=2, method="lexical")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        frame = found.merge()
    (step,) = found.join_plan.steps
    assert {*step.base_columns, *step.columns} == {"payee", "vat"}
    assert len(frame) == len(TICKETS)
    assert not {"payee", "vat"} & {*frame.columns}
    report = frame.tag.merge_report
    texts = [frame.to_csv(), repr(report), repr(report.to_dict()), found._repr_html_(), repr(found.join_plan)]
    texts += [str(one.message) for one in said]
    assert not any("zqs" in text.casefold() for text in texts), texts
    written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path.parent != folder]
    assert not any(b"zqs" in text for text in written)
    for column in ("tickets.payee", "firms.vat"):
        corpus.hide(column, joinable=False)
    assert not any("payee" in key.left or "vat" in key.right for key in tf.infer_keys(corpus))
    assert all(
        one.sketch is one.minimum is None for id in corpus.ids for one in corpus.profile(id).columns if one.hidden
    )


def test_a_frame_that_is_brought_along_tests_no_hidden_values():
    corpus = tf.open_corpus({"tickets": TICKETS, "firms": FIRMS})
    corpus.hide("firms.vat")
    guesses = pd.DataFrame({"guess": ["zqs-0", "zqs-1", "zqs-2", "zqs-3"], "nr": [5, 6, 7, 8]})
    with tf.context(corpus=corpus), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = guesses.tag.retrieve_tables("city of the firm", k=1, method="lexical")
        with pytest.raises((HiddenColumn, NotConnected)) as error:
            found.merge()
    assert not {"guess", "vat"} & {*str(error.value).replace(".", " ").split()}

import contextlib
import json
import sqlite3
import warnings

import numpy as np
import pandas as pd
import pytest

import tagframe as tf
from tagframe.errors import (
    EmptyCorpus,
    EmptyQuestion,
    HidingWarning,
    InvalidArgument,
    NotConnected,
    ReplayMiss,
    TableNotFound,
)
from tagframe.lm import LM, export_requests
from tagframe.retrieval import METHODS, retrieve_tables
from tagframe.retrieval.calibration import unfitted
from tagframe.retrieval.index import index_of
from tagframe.retrieval.methods import Auto, Dense
from tagframe.retrieval.problem import RowKind
from tagframe.retrieval.question import Question
from tagframe.retrieval.signals import gather, rows_of

QUESTION = "What is the gender of the clients who have a loan?"


@pytest.mark.parametrize("method", METHODS)
def test_every_method_finds_the_obvious_tables(bank, words, method):
    if method == "mip":
        pytest.importorskip("mip", reason="the mip extra is not installed")
    found = retrieve_tables("gender of client and amount of loan", bank, k=2, method=method, embedder=words)
    assert {hit.id for hit in found.tables} == {"bank.client", "bank.loan"}
    assert found.method == method


def test_the_bridge_that_no_word_names_is_found(bank, words):
    found = retrieve_tables(QUESTION, bank, k=2, embedder=words)
    assert {hit.id for hit in found.tables} == {"bank.client", "bank.loan"}
    assert "bank.disp" in found.join_plan.bridges
    assert len(found.merge(on_fanout="allow", on_loss="allow")) == 3


def test_the_same_call_gives_the_same_result(bank, words):
    first = retrieve_tables(QUESTION, bank, k=3, embedder=words)
    again = retrieve_tables(QUESTION, bank.subset(bank.ids), k=3, embedder=words)
    assert first.to_dict() == again.to_dict()


def test_the_anchor_is_not_counted_and_starts_the_plan(bank, words):
    found = retrieve_tables("gender of the clients", bank, k=2, anchor="bank.loan", embedder=words)
    assert "bank.loan" not in [hit.id for hit in found.tables]
    assert len(found.tables) == 2
    assert found.join_plan.start == "bank.loan"


def test_more_tables_than_there_are_gives_all_and_says_so(bank, words):
    found = retrieve_tables(QUESTION, bank, k=50, embedder=words)
    assert len(found.tables) == len(bank)
    assert "5 tables" in found.note
    assert found.note in " ".join(repr(found).split())


def test_given_sub_queries_are_used(bank, words):
    found = retrieve_tables("Tell me", bank, k=1, embedder=words, method=Auto(subqueries=["product:price"]))
    assert found.tables[0].id == "shop.product"


def test_evidence_is_searched_for_beside_the_question(bank, words):
    plain = retrieve_tables("How many are eligible?", bank, k=1, embedder=words)
    found = retrieve_tables(
        "How many are eligible?", bank, k=1, embedder=words, evidence="eligible is a product's price"
    )
    assert plain.tables[0].id != "shop.product"
    assert (found.tables[0].id, found.question) == ("shop.product", "How many are eligible?")
    long = retrieve_tables("How many?", bank, k=1, embedder=words, evidence="price " * 2_000)
    assert "only the first 10,000 of 12,009 characters of the question and its evidence were read" in long.note


@pytest.mark.parametrize("method", ["murre", "auto:subqueries=model"])
def test_rules_in_place_of_a_model_are_noted(bank, words, method):
    found = retrieve_tables("amount of loan", bank, k=1, embedder=words, method=method)
    assert "no model is configured: rules took its place" in found.note
    assert "rules" not in retrieve_tables("amount of loan", bank, k=1, embedder=words).note


@pytest.mark.parametrize("method", ["murre", "auto:subqueries=model", "auto:look", "crush"])
def test_exported_prompts_of_retrieval_name_their_stage(bank, words, tmp_path, method):
    store = tmp_path / "answers.sqlite"
    with pytest.raises(ReplayMiss):
        retrieve_tables("Which loan?", bank, k=1, embedder=words, lm=f"replay:{store}", method=method)
    export_requests(store, tmp_path / "batch.jsonl")
    lines = (tmp_path / "batch.jsonl").read_text().splitlines()
    assert lines
    assert all(json.loads(line)["custom_id"].startswith("retrieve/") for line in lines)


def test_a_model_decomposes_where_it_is_asked_to(bank, words, server):
    server.answers = "<sub_c>product:price</sub_c><FIN></FIN>"
    lm = LM("openai/test", api_base=server.url, api_key="none")
    found = retrieve_tables("Tell me", bank, k=1, embedder=words, lm=lm, method=Auto(subqueries="model"))
    assert found.tables[0].id == "shop.product"
    assert len(server.requests) == 1
    with tf.context(lm=lm):
        retrieve_tables("Tell me", bank, k=1, method="dense", embedder=words)
        assert len(server.requests) == 1, "a method without sub-queries needs no decomposition"
        retrieve_tables("What does it cost?", bank, k=1, embedder=words)
        assert len(server.requests) == 1, "no model is asked unbidden"
        retrieve_tables("What does it cost?", bank, k=1, embedder=words, method=Auto(subqueries="model"))
        assert len(server.requests) == 2


@pytest.mark.parametrize("method", METHODS)
def test_without_an_embedder_words_alone_decide(bank, monkeypatch, method):
    if method == "mip":
        pytest.importorskip("mip", reason="the mip extra is not installed")
    monkeypatch.setattr("tagframe.embed.get_embedder", lambda: None)
    assert retrieve_tables("amount of each loan", bank, k=1, method=method).ids == ["bank.loan"]


def test_reasons_say_words_columns_and_joins(bank, words):
    found = retrieve_tables(QUESTION, bank, k=4, embedder=words)
    reasons = {hit.id: " ".join(hit.reasons) for hit in found.tables}
    assert "named in the question" in reasons["bank.loan"]
    assert "joins bank.client on client_id" in reasons["bank.disp"]
    assert "fits" in reasons["bank.client"]


@pytest.mark.parametrize("question", ["", "   ", "?!", None])
def test_a_question_needs_words(bank, question):
    with pytest.raises(EmptyQuestion):
        retrieve_tables(question, bank)


def test_k_may_be_numpys(bank, words):
    assert len(retrieve_tables(QUESTION, bank, k=np.int64(2), embedder=words)) == 2


@pytest.mark.slow
def test_of_a_document_the_beginning_is_read_and_said(bank, words):
    found = retrieve_tables("amount of each loan. " + "x y z. " * 1_000_000, bank, k=1, embedder=words)
    assert found.ids == ["bank.loan"]
    assert "only the first 10,000 of 7,000,021 characters" in found.note


@pytest.mark.parametrize("k", [0, -1, 2.5, True, "many"])
def test_k_is_a_number_of_tables(bank, words, k):
    with pytest.raises(InvalidArgument, match="k must be"):
        retrieve_tables(QUESTION, bank, k=k, embedder=words)


def test_bad_arguments(bank, words):
    with pytest.raises(InvalidArgument, match="did you mean 'dense'"):
        retrieve_tables(QUESTION, bank, method="dence", embedder=words)
    with pytest.raises(TableNotFound):
        retrieve_tables(QUESTION, bank, anchor="bank.lone", embedder=words)
    with pytest.raises(InvalidArgument, match="no parameter 'beam'"):
        retrieve_tables(QUESTION, bank, method="jar:beam=5", embedder=words)
    with pytest.raises(EmptyCorpus):
        retrieve_tables(QUESTION, bank.subset([]), embedder=words)


def test_odd_names_are_found_and_joined(words):
    corpus = tf.open_corpus(
        {
            'my db.order "details"': pd.DataFrame({"order id": [1, 2], "select": ["x", "y"]}),
            "my db.orders, all": pd.DataFrame({"order id": [1, 2], "when?": ["now", "then"]}),
        }
    )
    found = retrieve_tables("order details and when", corpus, k=2, embedder=words)
    assert len(found.merge()) == 2


def test_tables_that_do_not_connect_are_still_a_result(bank, words):
    found = retrieve_tables("client gender and product price", bank, k=2, method="hybrid", embedder=words)
    assert {hit.id for hit in found.tables} == {"bank.client", "shop.product"}
    assert found.joins == []
    assert "no key pairs connect" in repr(found)
    with pytest.raises(NotConnected):
        found.merge()


def test_relevance_of_a_scorer_of_ones_own_replaces_the_embedders(bank, words):
    found = retrieve_tables(QUESTION, bank, k=1, method=Dense(coarse={"bank.disp": 0.9}), embedder=words)
    assert found.ids == ["bank.disp"]
    with pytest.raises(TableNotFound, match="coarse= names no table"):
        retrieve_tables(QUESTION, bank, method=Dense(coarse={"bank.dips": 0.9}), embedder=words)


@pytest.mark.parametrize("method", METHODS)
def test_k_is_k(schema, words, method):
    if method == "mip":
        pytest.importorskip("mip", reason="the mip extra is not installed")
    if method in ("jar", "mip"):
        pytest.skip("finds an optimum: slow for as many as these")
    corpus = schema(**{f"shop.t{number}": ["id", f"x{number}"] for number in range(60)})
    found = retrieve_tables("How many t3 have an x7?", corpus, k=45, method=method, embedder=words)
    assert len(found) == len(set(found.ids)) == 45
    rules = "no model is configured: rules took its place" if METHODS[method]().asks_model else ""
    assert found.note == (unfitted(words) if method == "auto" else rules)
    assert "tables to choose from" not in found.note


def test_auto_says_how_sure_it_is_and_can_be_asked_to_be_surer(bank, words):
    some = retrieve_tables(QUESTION, bank, embedder=words)
    more = retrieve_tables(QUESTION, bank, embedder=words, method=Auto(confidence=0.999))
    assert 0 < some.confidence <= more.confidence <= 1
    assert len(some) <= len(more)
    assert retrieve_tables(QUESTION, bank, embedder=words, method="dense").confidence is None
    assert all(hit.doubtful == (hit.probability < 0.5) for hit in more)
    for wrong in (0, 1, 90, "sure", True):
        with pytest.raises(InvalidArgument, match="confidence must be a probability"):
            Auto(confidence=wrong)


def test_a_measure_is_looked_for_among_numbers_that_are_no_keys(words):
    music = {
        "music.artist": pd.DataFrame({"artist_id": range(1, 9), "revenue": [f"Artist {n}" for n in range(8)]}),
        "music.album": pd.DataFrame({"album_id": range(1, 9), "title": list("abcdefgh"), "artist_id": range(1, 9)}),
        "music.sale": pd.DataFrame({"sale_id": range(40), "album_id": [1, 2, 3, 4] * 10, "revenue": [9.5, 3.25] * 20}),
    }
    index = index_of(tf.open_corpus(music), words)
    order = [index.position(f"music.{name}") for name in ("artist", "album", "sale")]
    (row,) = index.measured(Question.of("Total revenue per artist"), order)
    assert row[2] > row[1] >= row[0] == 0
    assert index.measured(Question.of("Name all artists"), order).shape == (0, 3)


def test_a_measure_that_columns_are_seldom_called_by_is_looked_for_by_what_it_means(words):
    shop = {
        "shop.client": pd.DataFrame({"client": ["Ann", "Bo"], "region_id": [1, 2]}),
        "shop.bill": pd.DataFrame({"client": ["Ann", "Bo"], "total_amount": [9.5, 3.25]}),
        "shop.trip": pd.DataFrame({"client": ["Ann", "Bo"], "duration": [9, 3]}),
    }
    index = index_of(tf.open_corpus(shop), words)
    order = [index.position(f"shop.{name}") for name in ("client", "bill", "trip")]

    def nearest(question):
        asked = Question.of(question)
        rows = rows_of(index, asked, gather(index, asked), order)
        (row,) = rows["fine"][rows["kind"] == RowKind.MEASURE]
        assert row[0] == 0  # an id is no number to be asked for
        return ["client", "bill", "trip"][row.argmax()], row.max()

    assert nearest("the turnover by region") == ("bill", 1.0)
    assert nearest("How much did Bo pay?") == ("bill", 1.0)
    assert nearest("How long was it?") == ("trip", 1.0)
    assert nearest("the average duration")[0] == "trip"
    assert nearest("the average duration")[1] < 1.0


@pytest.mark.parametrize(
    "question", ["Total revenue per artist", "sales of each artist", "How much money did Kiss earn?"]
)
def test_a_set_without_the_measure_that_is_asked_for_lacks_something(question):
    ids = range(1, 41)
    music = {
        "music.artists": pd.DataFrame({"artist_id": ids, "name": ["Kiss", *(f"Band {n}" for n in ids[1:])]}),
        "music.albums": pd.DataFrame({"album_id": ids, "title": [f"Songs {n}" for n in ids], "artist_id": ids}),
        "music.tracks": pd.DataFrame({"track_id": ids, "name": [f"Song {n}" for n in ids], "album_id": ids}),
        "music.invoice_lines": pd.DataFrame(
            {"invoice_line_id": ids, "track_id": ids, "unit_price": [0.99, 1.99] * 20, "quantity": [1, 1, 2, 1] * 10}
        ),
    }
    assert "music.invoice_lines" in retrieve_tables(question, tf.open_corpus(music)).ids


VIEWS = """
CREATE TABLE hire (hire_id INTEGER, boat_id INTEGER, paid REAL);
CREATE TABLE boat (boat_id INTEGER, boat TEXT, harbour_id INTEGER);
CREATE TABLE harbour (harbour_id INTEGER, harbour TEXT);
INSERT INTO harbour VALUES (1, 'Oslo'), (2, 'Moss');
INSERT INTO boat VALUES (1, 'Gull', 1), (2, 'Tern', 2), (3, 'Auk', 1);
INSERT INTO hire VALUES (1, 1, 5.0), (2, 1, 7.0), (3, 2, 2.0);
CREATE VIEW boat_list AS SELECT boat_id AS id, boat, harbour, paid FROM hire JOIN boat USING (boat_id) JOIN harbour
    USING (harbour_id);
CREATE VIEW calendar AS SELECT 2024 AS year;
"""


@pytest.fixture
def marina(tmp_path):
    with contextlib.closing(sqlite3.connect(tmp_path / "marina.sqlite")) as connection:
        connection.executescript(VIEWS)
    return tmp_path / "marina.sqlite"


@pytest.mark.parametrize(
    ("question", "hide", "view"),
    [
        ("How much was paid for boats of Oslo?", (), False),
        ("How many rows does the boat list have?", (), True),
        ("How much was paid for boats of Oslo?", ("hire",), True),
        ("How much was paid for boats of Oslo?", ("calendar",), False),
    ],
)
def test_a_view_is_found_by_its_name_or_where_its_tables_are_hidden(marina, words, question, hide, view):
    for _ in ("profiled", "from the catalogue"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", HidingWarning)
            corpus = tf.open_corpus(marina, hide=hide)
        assert ("marina.boat_list" in corpus.retrieve_tables(question, k=5).ids) is view


def test_a_view_connects_no_tables_and_can_be_added(marina, words):
    corpus = tf.open_corpus(marina)
    found = corpus.retrieve_tables("How much was paid for the boats of each harbour?", k=3)
    assert {*found.join_plan.tables} == {"marina.hire", "marina.boat", "marina.harbour"}
    assert "boat_list" in repr(corpus.retrieve_tables("boats", k=1).add("boat_list"))
    assert "marina.calendar" in corpus.retrieve_tables("Which year is it?", k=4).ids


@pytest.mark.parametrize(
    ("question", "table"),
    [("Boats that were never rented", "rental"), ("What did we ship to Oslo?", "shipment")],
)
def test_a_verb_finds_the_table_of_what_it_does(words, question, table):
    names = ("rental", "shipment", "harbour", "station")
    corpus = tf.open_corpus({name: pd.DataFrame({f"{name}_id": [1, 2]}) for name in names})
    assert corpus.retrieve_tables(question, k=1).ids == [f"frames.{table}"]

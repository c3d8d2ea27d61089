"""A frame that is laid over the index of its corpus."""

import numpy as np
import pandas as pd
import pytest

import tagframe as tf
from tagframe.corpus import Corpus, with_frame
from tagframe.retrieval import Question, retrieve_tables
from tagframe.retrieval import index as index_file
from tagframe.retrieval.index import RetrievalIndex, index_of
from tagframe.retrieval.lexical import LexicalIndex, table_terms
from tagframe.retrieval.overlay import Beside, Cut
from tagframe.retrieval.signals import SIGNALS, gather

QUESTIONS = (
    "Which clients have a loan of more than 1000?",
    "gender of clients with monthly accounts",
    "What do bolts cost?",
    "loans of status A by birth date",
)


@pytest.fixture(autouse=True)
def fresh():
    index_file.forget()


def test_a_row_of_things_is_cut_open():
    assert Cut.at(1, 1, 2, 3).into(np.array([10, 11, 12]), np.array([7, 8])).tolist() == [10, 7, 8, 12]
    stay, moved = Cut.at(1, 1, 2, 3).moved(np.array([0, 1, 2, 1, 0]))
    assert stay.tolist() == [True, False, True, False, True]
    assert moved.tolist() == [0, 3, 0]
    assert Cut.at(3, 0, 1, 3).moved(np.array([0, 2]))[1].tolist() == [0, 2]


def test_rows_beside_others():
    first, more = np.arange(6.0).reshape(3, 2), np.arange(6.0, 10.0).reshape(2, 2)
    whole = np.concatenate([first, more])
    assert Beside(first, more)[np.array([4, 0, 3])].tolist() == whole[[4, 0, 3]].tolist()
    assert Beside(first, more).products(np.ones((1, 2))).tolist() == (np.ones((1, 2)) @ whole.T).tolist()
    assert Beside(first, more[:0])[np.array([2])].tolist() == [[4.0, 5.0]]


def test_a_document_put_in_its_own_place_changes_nothing(bank):
    index = LexicalIndex(bank.profiles)
    for at, table in enumerate(bank.profiles):
        over = index.laid_over(Cut.at(at, 1, 1, len(bank)), [table_terms(table)])
        for asked in (["client"], ["loan", "account", "nothing"], ["id", "id"], ["price"]):
            np.testing.assert_allclose(over.scores(asked), index.scores(asked), rtol=1e-6)


def test_words_that_only_the_new_document_has(bank):
    over = LexicalIndex(bank.profiles).laid_over(Cut.at(2, 0, 1, len(bank)), [["zebra", "client"]])
    assert np.flatnonzero(over.scores(["zebra"])).tolist() == [2]
    assert len(over.scores(["zebra"])) == len(bank) + 1
    assert LexicalIndex([]).laid_over(Cut.at(0, 0, 1, 0), [["zebra"]]).scores(["zebra"]).tolist() != [0.0]


@pytest.mark.parametrize("id", ["bank.account", "bank.loan", "shop.product"])
def test_a_table_laid_over_itself_is_known_as_it_was(bank, words, id):
    corpus, _ = with_frame(bank, bank.read(id), id)
    under, over = index_of(bank, words), index_of(corpus, words, id)
    assert over.links.matrix([0, 1, 2]).tolist() == under.links.matrix([0, 1, 2]).tolist()
    for question in map(Question.of, QUESTIONS):
        one, other = gather(under, question), gather(over, question)
        np.testing.assert_allclose(other.signals, one.signals, atol=1e-6)
        np.testing.assert_allclose(other.rows, one.rows, atol=1e-6)
        assert [(hit.text, hit.tables) for hit in other.values] == [(hit.text, hit.tables) for hit in one.values]
        assert under.best_fit(question, 2) == pytest.approx(over.best_fit(question, 2))


def test_nothing_of_the_corpus_is_indexed_again(bank, words, monkeypatch):
    retrieve_tables(QUESTIONS[0], bank, k=2, embedder=words)
    monkeypatch.setattr(LexicalIndex, "__init__", lambda *_, **__: pytest.fail("indexed anew"))
    encoded = []
    real = words.encode
    monkeypatch.setattr(words, "encode", lambda texts: encoded.extend(texts) or real(texts))
    frame = pd.DataFrame({"who": [11, 12], "branch": ["Porto", "Faro"]})
    corpus, anchor = with_frame(bank, frame)
    found = retrieve_tables("loans of clients by branch in Faro", corpus, k=2, anchor=anchor, embedder=words)
    assert found.anchor == anchor
    assert len(found.tables) == 2
    assert anchor not in [hit.id for hit in found.tables]
    tables = [text for text in encoded if text.startswith(("bank", "shop", "client ", "loan "))]
    assert tables == [], "only the frame's own texts are encoded"


def test_columns_that_are_new_gone_or_renamed(bank, words):
    frame = bank.read("bank.client").drop(columns="gender").assign(town=["Porto", "Faro", "Beja"], score=1.5)
    corpus, anchor = with_frame(bank, frame, "bank.client")
    index = index_of(corpus, words, anchor)
    at = index.position(anchor)
    assert [column.name for column in index.tables[at].columns] == [*frame.columns]
    (hit,) = index.values.hits(Question.of("Who is from Faro?"))
    assert hit.tables == (at,)
    assert index.tables[at].columns[hit.columns[0]].name == "town"
    fit = index.best_fit(Question.of("by town"), at)
    assert fit is not None
    assert fit[1] == [*frame.columns].index("town")
    full = RetrievalIndex(corpus, words)
    for question in map(Question.of, (*QUESTIONS, "Who is from Faro?")):
        over, whole = gather(index, question).signals, gather(full, question).signals
        column = SIGNALS.index("words")
        np.testing.assert_allclose(over[:, column], whole[:, column], atol=1e-6)


@pytest.mark.parametrize("frame", [pd.DataFrame(), pd.DataFrame({"x": []}), pd.DataFrame({"?": [None, None]})])
def test_frames_of_nothing(bank, words, frame):
    corpus, anchor = with_frame(bank, frame)
    found = retrieve_tables(QUESTIONS[0], corpus, k=2, anchor=anchor, embedder=words)
    assert len(found.tables) == 2


@pytest.mark.parametrize("embedder", ["words", None])
def test_methods_over_an_anchored_frame(bank, words, embedder, monkeypatch):
    monkeypatch.setattr("tagframe.embed.get_embedder", lambda: None)
    frame = bank.read("bank.client").query("gender == 'F'")
    corpus, anchor = with_frame(bank, frame, "bank.client")
    for method in ("auto", "iterative-jar", "jar", "dense", "lexical", "hybrid", "murre", "crush"):
        found = retrieve_tables(
            "loans of clients", corpus, k=2, method=method, anchor=anchor, embedder=words if embedder else None
        )
        assert len(found.tables) == 2, method
        assert anchor not in [hit.id for hit in found.tables]


def test_a_piece_of_a_family_stands_for_itself(words):
    days = {f"web.events_{day}": pd.DataFrame({"id": [day], "page": ["a"]}) for day in (20210101, 20210102, 20210103)}
    corpus = tf.open_corpus({**days, "web.users": pd.DataFrame({"id": [1], "name": ["Ann"]})})
    over, anchor = with_frame(corpus, corpus.read("web.events_20210102"), "web.events_20210102")
    found = retrieve_tables("events of users", over, k=1, anchor=anchor, embedder=words)
    assert found.anchor == "web.events_20210102"
    assert index_of(corpus, words, "web.users") is index_of(corpus, words)
    assert index_of(corpus, words, "web.events_20210102") is not index_of(corpus, words)


def test_a_frame_over_a_frame_over_a_corpus(bank, words):
    one, _ = with_frame(bank, pd.DataFrame({"a": [1]}))
    two, anchor = with_frame(one, pd.DataFrame({"branch": ["Porto"]}))
    assert isinstance(two, Corpus)
    found = retrieve_tables("loans of clients by branch", two, k=2, anchor=anchor, embedder=words)
    assert len(found.tables) == 2

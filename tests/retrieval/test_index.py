"""What is made once: indexes, their parts, and the keys of databases."""

import threading
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import pytest

import tagframe as tf
from tagframe.retrieval import database_keys as links_module
from tagframe.retrieval import retrieve_tables
from tagframe.retrieval import values as values_module
from tagframe.retrieval.index import RetrievalIndex, index_of
from tagframe.retrieval.links import Links
from tagframe.retrieval.once import once


def test_threads_that_ask_at_once_wait_for_the_first():
    made = []
    ready = threading.Barrier(8)

    class Thing:
        @once
        def part(self):
            """A part."""
            made.append(threading.get_ident())
            return object()

    thing = Thing()

    def ask(_):
        ready.wait()
        return thing.part

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(ask, range(8)))) == 1
    assert len(made) == 1
    assert Thing.part.__doc__ == "A part."


def test_what_fails_is_tried_again():
    class Thing:
        tries = 0

        @once
        def part(self):
            self.tries += 1
            if self.tries == 1:
                raise ValueError("at first")
            return self.tries

    thing = Thing()
    with pytest.raises(ValueError, match="at first"):
        _ = thing.part
    assert thing.part == thing.part == 2


def test_an_index_is_made_once_by_many_threads(bank, words, monkeypatch):
    made = []
    real = RetrievalIndex.__init__

    def counted(self, *args, **kwargs):
        made.append(self)
        real(self, *args, **kwargs)

    monkeypatch.setattr(RetrievalIndex, "__init__", counted)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: index_of(bank.subset(bank.ids), words), range(8)))
    assert len(made) == 1
    assert all(index is found[0] for index in found)


def test_what_was_told_of_a_corpus_is_indexed_once(bank, words):
    bank.describe("loan.status", "state of repayment")
    first = index_of(bank.subset(bank.ids), words)
    assert index_of(bank.subset(bank.ids), words) is first
    bank.describe("loan.status", "")
    assert index_of(bank.subset(bank.ids), words) is not first


def test_a_database_is_searched_for_keys_once(monkeypatch):
    sale = pd.DataFrame({"sale_id": [31, 32], "shop_id": [77, 78]})
    frames = {"a.shop": pd.DataFrame({"shop_id": [77, 78, 79]}), "a.sale": sale, "b.sale": sale}
    corpus = tf.open_corpus(frames)
    searched = []
    real = links_module.infer_key_pairs

    def counted(tables, **options):
        searched.append(sorted(table.id for table in tables))
        return real(tables, **options)

    monkeypatch.setattr(links_module, "infer_key_pairs", counted)
    whole = Links(corpus.profiles)
    assert whole.key_columns()
    part = Links(tf.open_corpus(frames).subset(["a.sale", "a.shop"]).profiles)
    assert part.best(0, 1) == whole.best(0, 1)
    assert searched == [["a.sale", "a.shop"], ["b.sale"]]


def test_a_description_is_searched(words):
    corpus = tf.open_corpus(
        {
            "shop.orders": pd.DataFrame({"order_id": [1, 2], "st": [3, 4]}),
            "shop.parts": pd.DataFrame({"part_id": [1, 2], "price": [2.5, 3.5]}),
        }
    )
    question = "how much was shipped"
    for method in ("auto", "lexical", "dense", "greedy"):
        before = retrieve_tables(corpus, question, k=2, method=method, embedder=words)
        assert not any("shipped" in " ".join(hit.reasons) and "named" in " ".join(hit.reasons) for hit in before)
    corpus.describe("shop.orders.st", "status code, 3 = shipped")
    for method in ("auto", "lexical", "dense", "greedy"):
        found = retrieve_tables(corpus, question, k=1, method=method, embedder=words)
        assert found.ids == ["shop.orders"], method
        assert "named in the question: shipped" in found[0].reasons
    found = retrieve_tables(corpus, question, k=1, embedder=words)
    assert any("st fits" in reason for reason in found[0].reasons)


def test_the_first_question_shows_what_it_does(bank, words, capsys):
    with tf.context(progress=True):
        retrieve_tables(bank, "loans of clients", k=1, embedder=words)
    shown = capsys.readouterr().err
    assert "reading names of tables and columns" in shown
    assert "looking for keys" in shown
    with tf.context(progress=False):
        retrieve_tables(bank.subset(["bank.loan", "bank.client"]), "loans of clients", k=1, embedder=words)
    assert capsys.readouterr().err == ""


def test_what_a_method_that_asks_for_no_keys_shows(bank, words, capsys):
    with tf.context(progress=None):
        retrieve_tables(bank, "loans of clients", k=1, method="dense", embedder=words)
    assert capsys.readouterr().err == "", "standard error is no terminal here"


def test_what_a_lake_knows_of_its_values_is_kept(tmp_path, words, monkeypatch):
    gathered = []
    real = values_module._values

    def noted(columns):
        gathered.append(len(columns))
        return real(columns)

    monkeypatch.setattr(values_module, "_values", noted)
    monkeypatch.setattr("tagframe.retrieval.index._LAKE", 0)
    (tmp_path / "lake").mkdir()
    for name, city in (("client", "Porto"), ("loan", "Faro")):
        (tmp_path / "lake" / f"{name}.csv").write_text(f"{name}_id,city\n1,{city}\n2,Braga\n")

    def asked() -> list[str]:
        corpus = tf.open_corpus(tmp_path / "lake", catalogue=tmp_path / "c")
        found = retrieve_tables(corpus, "who lives in Porto?", k=1, embedder=words)
        return [*found.ids, *found[0].reasons]

    first = asked()
    assert first[0] == "lake.client"
    assert any("Porto" in reason for reason in first)
    monkeypatch.setattr("tagframe.retrieval.index._slots", OrderedDict())
    assert asked() == first
    assert gathered == [4]

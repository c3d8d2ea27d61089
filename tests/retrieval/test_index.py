"""What is made once: indexes, their parts, and the keys of databases."""

import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pandas as pd
import pytest

import tagframe as tf
from tagframe.corpus.catalogue import Catalogue
from tagframe.corpus.once import once
from tagframe.corpus.stored_profiles import StoredColumns
from tagframe.errors import CatalogueWarning
from tagframe.retrieval import cell_values as values_module
from tagframe.retrieval import index as index_file
from tagframe.retrieval import retrieve_tables
from tagframe.retrieval.index import RetrievalIndex, index_of
from tagframe.retrieval.lexical import LexicalIndex


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


def test_a_description_is_searched(words):
    corpus = tf.open_corpus(
        {
            "shop.orders": pd.DataFrame({"order_id": [1, 2], "st": [3, 4]}),
            "shop.parts": pd.DataFrame({"part_id": [1, 2], "price": [2.5, 3.5]}),
        }
    )
    question = "how much was shipped"
    for method in ("auto", "lexical", "dense", "iterative-jar"):
        before = retrieve_tables(question, corpus, k=2, method=method, embedder=words)
        assert not any("shipped" in " ".join(hit.reasons) and "named" in " ".join(hit.reasons) for hit in before)
    corpus.describe("shop.orders.st", "status code, 3 = shipped")
    for method in ("auto", "lexical", "dense", "iterative-jar"):
        found = retrieve_tables(question, corpus, k=1, method=method, embedder=words)
        assert found.ids == ["shop.orders"], method
        assert "named in the question: shipped" in found[0].reasons
    found = retrieve_tables(question, corpus, k=1, embedder=words)
    assert any("st fits" in reason for reason in found[0].reasons)


def test_the_first_question_shows_what_it_does(bank, words, capsys):
    with tf.context(progress=True):
        retrieve_tables("loans of clients", bank, k=1, embedder=words)
    shown = capsys.readouterr().err
    assert "reading names of tables and columns" in shown
    assert "looking for keys" in shown
    with tf.context(progress=False):
        retrieve_tables("loans of clients", bank.subset(["bank.loan", "bank.client"]), k=1, embedder=words)
    assert capsys.readouterr().err == ""


def test_what_a_method_that_asks_for_no_keys_shows(bank, words, capsys):
    with tf.context(progress=None):
        retrieve_tables("loans of clients", bank, k=1, method="dense", embedder=words)
    assert capsys.readouterr().err == "", "standard error is no terminal here"


@pytest.fixture
def lake(tmp_path, monkeypatch):
    """A folder that counts as a lake, and a function that asks it in a process that knows nothing yet."""
    monkeypatch.setattr("tagframe.retrieval.index.LAKE", 0)
    (tmp_path / "lake").mkdir()
    for name, city in (("client", "Porto"), ("loan", "Faro")):
        (tmp_path / "lake" / f"{name}.csv").write_text(f"{name}_id,city\n1,{city}\n2,Braga\n")

    class Asked:
        folder, catalogue = tmp_path / "lake", tmp_path / "c"

        def open(self):
            index_file.forget()
            return tf.open_corpus(self.folder, catalogue=self.catalogue)

        def kept(self):
            with closing(sqlite3.connect(self.catalogue)) as file:
                return dict(file.execute("SELECT digest, value FROM facts WHERE kind = 'arrays'"))

        def __call__(self, embedder, question="who lives in Porto?", **options):
            found = retrieve_tables(question, self.open(), embedder=embedder, **{"k": 2, **options})
            return [(hit.id, hit.score, hit.reasons) for hit in found.tables]

    return Asked()


def test_what_a_lake_s_index_knows_is_kept_and_gives_the_same(lake, words, monkeypatch):
    first = lake(words)
    assert first[0][0] == "lake.client"
    assert any("Porto" in reason for reason in first[0][2])
    monkeypatch.setattr(values_module, "hashes_of_cells", lambda columns: pytest.fail("values are gathered again"))
    monkeypatch.setattr(LexicalIndex, "__init__", lambda *_, **__: pytest.fail("words are gathered again"))
    monkeypatch.setattr(Catalogue, "vectors", lambda *_: pytest.fail("vectors are read one by one"))
    assert lake(words) == first
    assert len(lake.kept()) == 1


def test_an_index_that_is_there_reads_only_the_columns_it_needs(lake, words, monkeypatch):
    lake(words, "clients", k=1)
    corpus = lake.open()
    read = []
    real = StoredColumns.made
    monkeypatch.setattr(StoredColumns, "made", lambda self: read.append(self.table) or real(self))
    index = index_of(corpus, words)
    _ = index.lexical, index.descriptions, index.database_words, index.vocabulary, index.values, index.is_key
    assert read == []


def test_a_damaged_index_is_said_and_made_again(lake, words):
    first, (whole,) = lake(words), lake.kept().values()
    for damaged in (b"", whole[:-64], whole[:200] + b"!" + whole[201:], bytes(len(whole))):
        with closing(sqlite3.connect(lake.catalogue)) as file, file:
            file.execute("UPDATE facts SET value = ? WHERE kind = 'arrays'", [damaged])
        with pytest.warns(CatalogueWarning, match="arrays of the index are computed again"):
            assert lake(words) == first
        assert [*lake.kept().values()] == [whole]


def test_a_table_that_changed_has_another_index(lake, words):
    lake(words)
    (lake.folder / "loan.csv").write_text("loan_id,city\n1,Porto\n2,Braga\n")
    (lake.folder / "client.csv").write_text("client_id,city\n1,Lisbon\n2,Braga\n")
    assert lake(words)[0][0] == "lake.loan"
    assert len(lake.kept()) == 2
    for city in ("Evora", "Beja"):
        (lake.folder / "client.csv").write_text(f"client_id,city\n1,{city}\n2,Braga\n")
        lake(words)
    assert len(lake.kept()) == 2, "those of old states go"


def test_what_is_hidden_is_in_no_kept_index(lake, words):
    lake(words)
    hidden = lake.open().hide("client.city")
    kept = lake.kept()
    index_of(hidden, words)
    assert lake.kept() == kept
    assert "Porto" not in str(retrieve_tables("who lives in Porto?", hidden, k=2, embedder=words).to_frame()["reasons"])


def test_a_corpus_of_some_of_the_tables_keeps_no_index(lake, words):
    index_of(lake.open().subset(["lake.client"]), words)
    assert lake.kept() == {}


def test_a_copy_of_a_corpus_with_a_kept_index_has_its_vectors(lake, words, tmp_path, monkeypatch):
    first = lake(words)
    corpus = lake.open()
    index_of(corpus, words)
    corpus.save(tmp_path / "copy")
    lake.catalogue = tmp_path / "copy"
    encoded = []
    monkeypatch.setattr(words, "encode", lambda texts, real=words.encode: encoded.extend(texts) or real(texts))
    index_file.forget()
    found = retrieve_tables("who lives in Porto?", tf.open_corpus(tmp_path / "copy"), k=2, embedder=words)
    assert [(hit.id, hit.score, hit.reasons) for hit in found.tables] == first
    assert encoded == ["who lives in Porto?", "lives", "porto"]  # the question's own

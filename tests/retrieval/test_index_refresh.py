"""The index of a lake after some of it has changed."""

import shutil
import sqlite3

import numpy as np
import pytest

import tagframe as tf
from tagframe.corpus.arrays import write_arrays
from tagframe.corpus.stored_profiles import StoredColumns
from tagframe.corpus.vectors import VectorStore
from tagframe.retrieval import Question
from tagframe.retrieval import cell_values as values_module
from tagframe.retrieval import index as index_file
from tagframe.retrieval import index as module
from tagframe.retrieval.index import RetrievalIndex
from tagframe.retrieval.index_refresh import refreshed
from tagframe.retrieval.lexical import LexicalIndex
from tagframe.retrieval.signals import gather

TABLES = {
    "bank": """
        CREATE TABLE client (client_id INTEGER PRIMARY KEY, name TEXT, city TEXT, born DATE);
        INSERT INTO client VALUES (1, 'Ana', 'Porto', '1980-01-02'), (2, 'Rui', 'Faro', '1990-03-04'),
            (3, 'Eva', 'Braga', '2000-05-06');
        CREATE TABLE loan (loan_id INTEGER PRIMARY KEY, client_id INTEGER, amount REAL, status TEXT);
        INSERT INTO loan VALUES (11, 1, 100.5, 'paid'), (12, 1, 20, 'open'), (13, 3, 30, 'open');
        CREATE TABLE disp (client_id INTEGER, account_id INTEGER);
        INSERT INTO disp VALUES (1, 21), (2, 22), (3, 21);
    """,
    "shop": """
        CREATE TABLE product (product_id INTEGER PRIMARY KEY, title TEXT, price REAL);
        INSERT INTO product VALUES (31, 'bolt', 1.5), (32, 'nut', 2.5), (33, 'Porto wine', 9.0);
        CREATE TABLE sale (product_id INTEGER, buyer INTEGER, day DATE);
        INSERT INTO sale VALUES (31, 1, '2020-01-01'), (33, 2, '2020-01-02'), (31, 3, '2020-01-03');
    """,
    "web": """
        CREATE TABLE visits_2019 (visitor TEXT, page TEXT); INSERT INTO visits_2019 VALUES ('x', 'home');
        CREATE TABLE visits_2020 (visitor TEXT, page TEXT); INSERT INTO visits_2020 VALUES ('x', 'home');
        CREATE TABLE visits_2021 (visitor TEXT, page TEXT); INSERT INTO visits_2021 VALUES ('y', 'shop');
        CREATE TABLE page (page TEXT PRIMARY KEY, title TEXT); INSERT INTO page VALUES ('home', 'Start');
    """,
}
QUESTIONS = (
    "Which clients of Porto have a loan that is open?",
    "What do bolts cost?",
    "loans by city and birth date of 'Eva'",
    "titles of the pages that visitors saw in 2020",
    "warehouse of the zebra",
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr("tagframe.retrieval.index.LAKE", 0)
    folder = tmp_path / "lake"
    folder.mkdir()
    for database, script in TABLES.items():
        change(folder, database, script)
    return folder


def change(folder, database, script):
    with sqlite3.connect(folder / f"{database}.sqlite") as file:
        file.executescript(script)
    file.close()


def opened(folder, catalogue, **how):
    index_file.forget()
    return tf.open_corpus(folder, catalogue=catalogue, **how)


def known(corpus, embedder):
    """What the index of a corpus says, whatever its words and vectors are numbered by."""
    index = RetrievalIndex(corpus, embedder)
    everything = range(len(index.tables))
    parts = index.vocabulary.names, index.vocabulary.columns
    return {
        "families": [(one.table.id, one.name, one.parts) for one in index.families],
        "rarity": dict(sorted(index.vocabulary.rarity.items())),
        "totals": [part.total.tolist() for part in parts],
        "values": sorted(zip(index.values._hashes.tolist(), index.values._owners.tolist(), strict=True)),
        "is_key": index.is_key.tolist(),
        "links": index.links.matrix(everything).tolist(),
        "keys": [(key.left, key.right, key.score) for key in index.links.keys(everything)],
        "vectors": [] if index.vectors is None else [index.vectors.tables.tolist(), index.vectors.columns.tolist()],
        "words": [
            [part.scores([word]).tolist() for word in sorted(part._words)]
            for part in (index.lexical, index.descriptions, index.database_words)
        ],
        "signals": [gather(index, Question.of(question)).signals for question in QUESTIONS],
    }


def same(one, other):
    """Products of vectors that stand in another order differ in the last digit."""
    assert one.keys() == other.keys()
    for name in one.keys() - {"signals"}:
        assert one[name] == other[name], name
    np.testing.assert_allclose(one["signals"], other["signals"], atol=1e-6)


CHANGES = {
    "a column more": ("bank", "ALTER TABLE loan ADD COLUMN zebra TEXT"),
    "other rows": ("bank", "DELETE FROM loan WHERE client_id = 1; INSERT INTO loan VALUES (14, 2, 5, 'Zebra', 'x')"),
    "a table less": ("bank", "DROP TABLE disp"),
    "a table more": ("shop", "CREATE TABLE warehouse (product_id INTEGER, zebra TEXT)"),
    "a table of no columns that were read": ("shop", "CREATE TABLE aaa (x)"),
    "a database more": ("attic", "CREATE TABLE client (client_id INTEGER, zebra TEXT)"),
    "a piece more": ("web", "CREATE TABLE visits_2018 (visitor TEXT, page TEXT)"),
    "a family less": ("web", "DROP TABLE visits_2019"),
    "a family more": ("bank", "".join(f"CREATE TABLE zebra_{year} (id INTEGER);" for year in (2001, 2002, 2003))),
    "a column that is called otherwise": ("shop", "ALTER TABLE product RENAME COLUMN title TO loan_status"),
}


@pytest.mark.slow
@pytest.mark.parametrize("embedder", ["words", None])
def test_a_lake_that_changed_is_known_as_one_indexed_anew(folder, tmp_path, words, monkeypatch, embedder):
    embedder = words if embedder else None
    known(opened(folder, tmp_path / "c"), embedder)
    for name, (database, script) in CHANGES.items():
        change(folder, database, script)
        anew = known(opened(folder, tmp_path / f"anew {name}"), embedder)
        corpus = opened(folder, tmp_path / "c")
        with monkeypatch.context() as patch:
            patch.setattr(LexicalIndex, "__init__", lambda *_, **__: pytest.fail("words are gathered again"))
            patch.setattr(VectorStore, "encode", lambda *_: pytest.fail("vectors are read one by one"))
            same(known(corpus, embedder), anew)
        same(known(opened(folder, tmp_path / "c"), embedder), anew)


def test_only_the_columns_of_databases_that_changed_are_read(folder, tmp_path, words, monkeypatch):
    # Keys between the databases of a folder depend on all of them, so these are kept apart here.
    known(opened(folder, tmp_path / "c", apart=True), words)
    change(folder, "bank", "ALTER TABLE loan ADD COLUMN gnu TEXT")
    corpus = opened(folder, tmp_path / "c", apart=True)
    read, valued, encoded = [], [], []
    real = values_module.hashes_of_cells
    monkeypatch.setattr(
        values_module,
        "hashes_of_cells",
        lambda columns, **how: valued.extend(c.name for c in columns) or real(columns, **how),
    )
    monkeypatch.setattr(words, "encode", lambda texts, real=words.encode: encoded.extend(texts) or real(texts))
    made = StoredColumns.made
    monkeypatch.setattr(StoredColumns, "made", lambda self: read.append(self.table) or made(self))
    index = RetrievalIndex(corpus, words)
    assert {table.partition(".")[0] for table in read} == {"bank"}
    assert valued == ["loan_id", "client_id", "amount", "status", "gnu"]
    assert sorted(encoded) == ["bank loan: loan id, client id, amount, status, gnu", "loan gnu"]
    assert index.best_fit(Question.of("which gnu"), index.position("bank.loan"))[1] == 4


def test_what_users_tell_of_a_lake_is_known(folder, tmp_path, words, monkeypatch):
    known(opened(folder, tmp_path / "c"), words)
    corpus = opened(folder, tmp_path / "c")
    corpus.describe("loan.status", "whether the zebra was fed")
    corpus.keys.add("shop.sale.buyer = bank.client.client_id")
    told = known(corpus, words)
    shutil.copy(tmp_path / "c", tmp_path / "anew")
    same(told, known(opened(folder, tmp_path / "anew"), words))
    assert ("shop.sale.buyer", "bank.client.client_id", 1.0) in told["keys"]
    corpus.keys.forbid("shop.sale.buyer = bank.client.client_id")
    corpus.describe("loan.status", "")
    shutil.copy(tmp_path / "c", tmp_path / "untold")
    untold = known(corpus, words)
    same(untold, known(opened(folder, tmp_path / "untold"), words))
    assert "zebra" not in untold["rarity"]


def test_another_embedder_and_other_code_begin_anew(folder, tmp_path, words, monkeypatch):
    known(opened(folder, tmp_path / "c"), words)
    change(folder, "bank", "ALTER TABLE loan ADD COLUMN zebra TEXT")
    corpus = opened(folder, tmp_path / "c")
    taken = []
    monkeypatch.setattr(module, "refreshed", lambda *given: taken.append(refreshed(*given)) or taken[-1])
    RetrievalIndex(corpus, None)
    RetrievalIndex(corpus, words, declared_keys=False)
    monkeypatch.setattr(module, "code_of_index", lambda: "other")
    RetrievalIndex(corpus, words)
    for file in tmp_path.glob("c.index-*"):  # of a tagframe that knew nothing of states
        write_arrays(file, {"widths": np.zeros(3, dtype=np.int64)})
    change(folder, "bank", "ALTER TABLE loan ADD COLUMN gnu TEXT")
    RetrievalIndex(opened(folder, tmp_path / "c"), words)
    assert len(taken) >= 4
    assert all(found is None for found in taken)


def test_a_lake_of_which_most_is_new_is_indexed_anew(folder, tmp_path, words, monkeypatch):
    known(opened(folder, tmp_path / "c"), words)
    for database in ("bank", "shop"):
        for file in folder.glob(f"{database}.*"):
            file.unlink()
    change(folder, "attic", "".join(f"CREATE TABLE {letter * 3} (id INTEGER);" for letter in "abcdef"))
    corpus = opened(folder, tmp_path / "c")
    monkeypatch.setattr(LexicalIndex, "__init__", lambda *_, **__: (_ for _ in ()).throw(AssertionError("anew")))
    with pytest.raises(AssertionError, match="anew"):
        known(corpus, words)

"""A catalogue under processes that are killed, under several at once, and under corpora that were opened before."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

import tagframe as tf
from tagframe.corpus import computed_of, corpus_vectors, stored_profiles, vectors_of
from tagframe.corpus.catalogue import Catalogue
from tagframe.corpus.documents import column_document, table_document
from tagframe.keys import database_keys
from tagframe.retrieval import retrieve_tables
from tagframe.retrieval.links import Links
from tests.letters import Letters

KILLED_AT_THE_FOURTH_TABLE = """
import os, signal, sys
import tagframe as tf
from tagframe.corpus import indexing as index
from tagframe.corpus import catalogue
catalogue.PUT_DOWN_EVERY = 0
real, done = index.profile_table, []

def profile_table(database, shape, chunks, **options):
    done.append(shape.name)
    if len(done) == 4:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(database, shape, chunks, **options)

index.profile_table = profile_table
tf.open_corpus(sys.argv[1], catalogue=sys.argv[2])
"""

KILLED_AT_THE_THIRD_BATCH = """
import os, signal, sys
import numpy as np
import tagframe as tf
from tagframe.corpus import vectors, vectors_of
vectors._CHUNK_LETTERS, vectors.STORED_EVERY = 1, 0

class Embedder:
    name, dimension, calls = "letters", 26, 0

    def encode(self, texts):
        self.calls += 1
        if self.calls == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return np.eye(26, dtype=np.float32)[[0] * len(texts)]

corpus = tf.open_corpus(sys.argv[1], catalogue=sys.argv[2])
vectors.corpus_vectors(corpus.profiles, Embedder(), vectors_of(corpus))
"""


KILLED_WHILE_IT_WRITES = """
import os, signal, sqlite3, sys
file = sqlite3.connect(sys.argv[2], isolation_level=None)
file.execute("PRAGMA cache_size = 5")
file.execute("BEGIN IMMEDIATE")
file.execute("DELETE FROM tables")
for _ in range(100):
    file.execute("INSERT INTO vectors (embedder, documents, vectors) VALUES ('e', '[]', zeroblob(5000))")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    folder = tmp_path / "lake"
    folder.mkdir()
    for database in "ab":
        with closing(sqlite3.connect(folder / f"{database}.sqlite")) as file, file:
            for table in range(3):
                file.execute(f"CREATE TABLE {database}{table} (id INT, name TEXT, {database}0_id INT)")
                file.execute(f"INSERT INTO {database}{table} VALUES (1, 'Ann', 2), (2, 'Bo', 1)")
    return folder


def killed(program: str, lake: Path, catalogue: Path) -> None:
    arguments = [sys.executable, "-c", program, str(lake), str(catalogue)]
    outcome = subprocess.run(arguments, capture_output=True, text=True, timeout=120, check=False)
    assert outcome.returncode == -signal.SIGKILL, outcome.stderr


@pytest.mark.slow
def test_what_was_profiled_before_a_kill_is_not_profiled_again(lake, tmp_path, profiled):
    catalogue = tmp_path / "c.catalogue"
    killed(KILLED_AT_THE_FOURTH_TABLE, lake, catalogue)
    corpus = tf.open_corpus(lake, catalogue=catalogue)
    assert profiled == ["b0", "b1", "b2"]
    assert [profile.rows for profile in corpus] == [2] * 6
    assert corpus.profiles == tf.open_corpus(lake, catalogue=tmp_path / "fresh").profiles


@pytest.mark.slow
def test_what_was_encoded_before_a_kill_is_not_encoded_again(lake, tmp_path):
    catalogue = tmp_path / "c.catalogue"
    killed(KILLED_AT_THE_THIRD_BATCH, lake, catalogue)
    embedder = Letters()
    corpus = tf.open_corpus(lake, catalogue=catalogue)
    corpus_vectors(corpus.profiles, embedder, vectors_of(corpus))
    documents = {table_document(table) for table in corpus}
    documents |= {column_document(table, column) for table in corpus for column in table.columns}
    assert len(set(embedder.asked)) == len(embedder.asked) == len(documents) - 2


def test_what_a_killed_process_was_writing_is_undone(lake, tmp_path):
    catalogue = tmp_path / "c.catalogue"
    before = tf.open_corpus(lake, catalogue=catalogue)
    killed(KILLED_WHILE_IT_WRITES, lake, catalogue)
    assert (tmp_path / "c.catalogue-journal").exists()
    assert len(Catalogue(catalogue).load().sources["a.sqlite"].tables) == 3
    assert tf.open_corpus(lake, catalogue=catalogue).profiles == before.profiles


@pytest.mark.slow
def test_threads_and_processes_share_one_catalogue(lake, tmp_path):
    catalogue = tmp_path / "c.catalogue"
    program = (
        "import sys, warnings; warnings.simplefilter('error'); import tagframe as tf; "
        "from tagframe.corpus import computed_of; "
        "from tagframe.retrieval.links import Links; corpus = tf.open_corpus(sys.argv[1], catalogue=sys.argv[2]); "
        "Links(corpus.profiles, facts=computed_of(corpus)).key_columns(); print(*(p.rows for p in corpus))"
    )
    arguments = [sys.executable, "-c", program, str(lake), str(catalogue)]
    other = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def ask(_: int) -> list[str]:
        corpus = tf.open_corpus(lake, catalogue=catalogue)
        return retrieve_tables("name of b1", corpus, k=2, embedder=Letters()).ids

    with warnings.catch_warnings(), ThreadPoolExecutor(4) as pool:
        warnings.simplefilter("error")
        found = list(pool.map(ask, range(8)))
    out, err = other.communicate(timeout=120)
    assert all(ids == found[0] for ids in found)
    assert (out.split(), err) == (["2"] * 6, "")
    assert len(Catalogue(catalogue).load().sources) == 2


def test_opening_reads_no_columns(lake, tmp_path, monkeypatch):
    tf.open_corpus(lake, catalogue=tmp_path / "c.catalogue")
    made = []
    real = stored_profiles.StoredColumns.made

    def noted(self):
        made.append(self.digest)
        return real(self)

    monkeypatch.setattr(stored_profiles.StoredColumns, "made", noted)
    corpus = tf.open_corpus(lake, catalogue=tmp_path / "c.catalogue")
    assert made == []
    assert corpus.profile("a1").column("name").samples == ("Ann", "Bo")
    assert corpus.profile("a1").columns is corpus.profile("a1").columns
    assert len(made) == 1


def test_sketches_of_a_table_that_another_process_has_indexed_anew(lake, tmp_path):
    before = tf.open_corpus(lake, catalogue=tmp_path / "c.catalogue")
    with closing(sqlite3.connect(lake / "a.sqlite")) as file, file:
        file.execute("INSERT INTO a1 VALUES (3, 'Cy', 1)")
    tf.open_corpus(lake, catalogue=tmp_path / "c.catalogue")
    with pytest.warns(tf.errors.CatalogueWarning, match=r"a\.a1.* open the corpus again"):
        assert len(before.profile("a1").column("id").sketch.hashes) == 0
    assert len(before.profile("a0").column("id").sketch.hashes) == 2
    assert before.profile("a1").rows == 2


def test_what_is_damaged_is_worked_out_again_or_named(tmp_path):
    source, catalogue = tmp_path / "shop.sqlite", tmp_path / "c.catalogue"
    with closing(sqlite3.connect(source)) as file, file:
        file.execute("CREATE TABLE shop (shop_id INT, city TEXT)")
        file.execute("CREATE TABLE sale (sale_id INT, shop_id INT)")
        file.execute("INSERT INTO shop VALUES (77, 'Faro'), (78, 'Porto')")
        file.execute("INSERT INTO sale VALUES (31, 77), (32, 78)")

    def keys():
        database_keys._known.clear()
        corpus = tf.open_corpus(source, catalogue=catalogue)
        links = Links(corpus.profiles, facts=computed_of(corpus))
        return links.key_columns(), links.best(0, 1)

    first = keys()
    assert first[1] is not None
    with closing(sqlite3.connect(catalogue)) as file, file:
        file.execute("UPDATE facts SET value = '[nonsense'")
    with pytest.warns(tf.errors.CatalogueWarning, match="keys of shop are computed again"):
        assert keys() == first
    assert keys() == first
    with closing(sqlite3.connect(catalogue)) as file, file:
        file.execute("UPDATE tables SET columns = '[[' WHERE table_name = 'shop'")
    with pytest.raises(tf.errors.UnreadableCatalogue, match=r"the checksum of .* is wrong: delete the file"):
        tf.open_corpus(source, catalogue=catalogue)

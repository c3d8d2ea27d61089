from __future__ import annotations

import pickle
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import tagframe as tf
from tagframe.corpus.corpus import seconds_of
from tagframe.errors import CatalogueWarning, InvalidArgument


@pytest.fixture
def bank(tmp_path: Path) -> Path:
    path = tmp_path / "bank.sqlite"
    with sqlite3.connect(path) as database:
        database.executescript(
            "CREATE TABLE client (id INTEGER PRIMARY KEY, city TEXT); INSERT INTO client VALUES (1, 'Brno');"
            "CREATE TABLE loan (id INTEGER PRIMARY KEY, client INTEGER); INSERT INTO loan VALUES (7, 1);"
            "CREATE TABLE old (x INTEGER); INSERT INTO old VALUES (1)"
        )
    return path


def test_a_refreshed_corpus_has_what_has_changed(bank: Path):
    corpus = tf.open_corpus(bank)
    assert corpus.is_like(corpus.refresh())
    corpus.keys.add("loan.client = client.id")
    with sqlite3.connect(bank) as database:
        database.executescript(
            "ALTER TABLE loan ADD COLUMN rate REAL; DROP TABLE old; CREATE TABLE card (id INTEGER);"
            "INSERT INTO card VALUES (1); INSERT INTO client VALUES (2, 'Opava')"
        )
    now = corpus.refresh()
    assert not now.is_like(corpus)
    assert now.ids == ("bank.card", "bank.client", "bank.loan")
    assert [column.name for column in now.profile("loan").columns] == ["id", "client", "rate"]
    assert now.profile("client").rows == 2
    assert "bank.old" in corpus
    assert [key.given for key in now.profile("loan").foreign_keys] == [True]
    with sqlite3.connect(bank) as database:
        database.execute("UPDATE client SET city = 'Praha' WHERE id = 1")
    assert "Praha" in now.refresh().profile("client").column("city").samples


def test_threads_refresh_at_the_same_time(bank: Path):
    corpus = tf.open_corpus(bank)
    with sqlite3.connect(bank) as database:
        database.execute("INSERT INTO loan VALUES (8, 1)")
    with ThreadPoolExecutor(4) as pool:
        rows = [now.profile("loan").rows for now in pool.map(lambda _: corpus.refresh(), range(4))]
    assert rows == [2] * 4


def test_a_part_and_a_pickle_of_a_corpus_are_not_refreshed(bank: Path):
    corpus = tf.open_corpus(bank)
    for part in (corpus.subset(["loan"]), pickle.loads(pickle.dumps(corpus))):
        with pytest.raises(InvalidArgument, match="open_corpus"):
            part.refresh()


AT_ONCE, NEVER = 1e-9, "1h"


def _add_card(bank: Path) -> None:
    with sqlite3.connect(bank) as database:
        database.executescript("CREATE TABLE card (id INTEGER, kind TEXT); INSERT INTO card VALUES (1, 'gold')")


@pytest.mark.slow
def test_questions_to_a_corpus_that_follows_its_source_see_a_new_table(bank: Path):
    corpus, slow = tf.open_corpus(bank, refresh=AT_ONCE), tf.open_corpus(bank, refresh=NEVER)
    held = corpus.current()
    assert held is corpus.current()  # nothing has changed, so indexes stay
    before = corpus.retrieve_tables("Which loans are there?")
    tools = corpus.tools()
    assert "card" not in str(tools.describe_tables(["client", "loan"]))
    _add_card(bank)
    assert "bank.card" in corpus.retrieve_tables("Which cards are gold?").ids
    assert tf.exec_sql(corpus)("SELECT kind FROM card")["kind"].tolist() == ["gold"]
    assert tools.run_sql("SELECT kind FROM card")["rows"] == [["gold"]]
    assert tools.call("run_sql", {"sql": "SELECT kind FROM card"})["rows"] == [["gold"]]
    with tf.context(corpus=corpus):
        assert "bank.card" in tf.retrieve_tables("Which cards are gold?").ids
    assert "bank.card" in corpus.current()
    for unchanged in (corpus, held, before.corpus, before.corpus.current(), slow.current()):
        assert "bank.card" not in unchanged


def test_a_source_that_is_gone_leaves_the_last_corpus_with_a_warning(bank: Path, tmp_path: Path):
    corpus = tf.open_corpus(bank, refresh=AT_ONCE)
    bank.rename(tmp_path / "away")
    with pytest.warns(CatalogueWarning, match=r"stays as it was.*bank\.sqlite"):
        assert corpus.current().ids == corpus.ids
    (tmp_path / "away").rename(bank)
    _add_card(bank)
    assert "bank.card" in corpus.current()


@pytest.mark.filterwarnings("ignore::tagframe.errors.CatalogueWarning")
def test_what_is_private_in_the_corpus_that_is_held_is_private_in_the_current_one(
    bank: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file"))  # where no facts can be written
    corpus = tf.open_corpus(bank, refresh=AT_ONCE)
    _add_card(bank)
    now = corpus.current()
    corpus.private("client.city")
    assert now.profile("client").column("city").private
    with sqlite3.connect(bank) as database:
        database.execute("INSERT INTO card VALUES (2, 'blue')")
    assert corpus.current().profile("client").column("city").private


def test_threads_get_the_last_corpus_while_one_of_them_opens_the_source(bank: Path):
    corpus = tf.open_corpus(bank, refresh=AT_ONCE)
    _add_card(bank)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: corpus.current().ids, range(12)))
    assert {*found} <= {corpus.ids, corpus.current().ids}
    assert "bank.card" in corpus.current()
    assert pickle.loads(pickle.dumps(corpus)).current().ids == corpus.ids


@pytest.mark.parametrize("interval", [0, -1, True, "soon", "", float("nan"), float("inf"), "NaT", [5]])
def test_intervals_that_are_none_are_refused(bank: Path, interval: Any):
    with pytest.raises(InvalidArgument, match="refresh must be a time"):
        tf.open_corpus(bank, refresh=interval)


def test_only_files_and_servers_are_followed():
    for source in ({"source": {"loan": pd.DataFrame({"id": [1]})}}, {"schema": {"loan": ["id"]}}):
        with pytest.raises(InvalidArgument, match="for files and servers"):
            tf.open_corpus(**source, refresh="5m")  # type: ignore[call-overload]
    assert seconds_of(timedelta(minutes=5)) == seconds_of("5m") == seconds_of(300) == seconds_of("300")


def test_a_corpus_without_hidden_parts_is_opened_again_without_them(bank: Path):
    for corpus in (tf.open_corpus(bank, hide=["client.city"]), tf.open_corpus(bank).hide("client.city")):
        assert "city" not in corpus.read("client")
        assert [one.name for one in corpus.refresh().profile("client").columns] == ["id"]
    followed = tf.open_corpus(bank, refresh=AT_ONCE, hide=["client.city"])
    _add_card(bank)
    assert "bank.card" in followed.current()
    assert "city" not in followed.current().read("client")

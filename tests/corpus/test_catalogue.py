from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

import tagframe as tf
from tagframe.corpus.catalogue import VERSION, Catalogue, is_catalogue
from tagframe.errors import CatalogueWarning, SourceNotFound, UnreadableCatalogue


def change(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


def assert_same(one: tf.Corpus, other: tf.Corpus) -> None:
    assert one.ids == other.ids
    assert all(
        replace(left, columns=left.columns) == replace(right, columns=right.columns)
        for left, right in zip(one, other, strict=True)
    )


def test_what_is_unchanged_is_not_profiled_again(bank, profiled):
    first = tf.open_corpus(bank)
    assert sorted(profiled) == ["client", "loan"]
    os.utime(bank, ns=(1, 1))
    second = tf.open_corpus(str(bank))
    assert sorted(profiled) == ["client", "loan"]
    assert_same(first, second)
    assert second.read("loan").equals(first.read("loan"))


def test_only_what_has_changed_in_a_folder(tmp_path, sqlite_file, profiled, cache_folder):
    lake = tmp_path / "lake"
    for name in "abc":
        sqlite_file(f"CREATE TABLE in_{name} (id INT);", f"lake/{name}.sqlite")
    assert tf.open_corpus(lake).ids == ("a.in_a", "b.in_b", "c.in_c")
    profiled.clear()
    change(lake / "b.sqlite", "INSERT INTO in_b VALUES (1)")
    (lake / "c.sqlite").unlink()
    sqlite_file("CREATE TABLE in_d (id INT);", "lake/d.sqlite")
    corpus = tf.open_corpus(lake)
    assert corpus.ids == ("a.in_a", "b.in_b", "d.in_d")
    assert corpus.profile("in_b").rows == 1
    assert sorted(profiled) == ["in_b", "in_d"]
    (file,) = cache_folder.iterdir()
    assert set(Catalogue(file).load().sources) == {"a.sqlite", "b.sqlite", "d.sqlite"}


def test_a_database_is_called_by_what_is_beside_it_now(tmp_path):
    for year in ("2023", "2024"):
        (tmp_path / year / "bank").mkdir(parents=True)
    (tmp_path / "2023" / "bank" / "a.csv").write_text("x\n1\n")
    assert tf.open_corpus(tmp_path).ids == ("bank.a",)
    (tmp_path / "2024" / "bank" / "a.csv").write_text("x\n1\n")
    assert tf.open_corpus(tmp_path).ids == ("2023/bank.a", "2024/bank.a")


def test_the_files_are_their_owners_only(bank, tmp_path, cache_folder):
    corpus = tf.open_corpus(bank)
    saved = corpus.save(tmp_path / "saved")
    for file in [*cache_folder.iterdir(), saved]:
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(cache_folder.stat().st_mode) == 0o700


def test_a_catalogue_of_ones_own(bank, tmp_path, profiled, cache_folder):
    own = tmp_path / "own.catalogue"
    tf.open_corpus(bank, catalogue=own)
    tf.open_corpus(bank, catalogue=str(own))
    assert len(profiled) == 2
    assert is_catalogue(own)
    assert not cache_folder.exists()
    bank.unlink()
    own.write_bytes(b"something else, of no interest")
    with pytest.raises(SourceNotFound):
        tf.open_corpus(bank, catalogue=own)


def test_a_catalogue_of_ones_own_that_is_no_catalogue(bank, tmp_path):
    other = tmp_path / "notes.txt"
    other.write_text("dear diary")
    with pytest.raises(UnreadableCatalogue, match=r"notes\.txt cannot be used"):
        tf.open_corpus(bank, catalogue=other)
    assert other.read_text() == "dear diary"
    with pytest.raises(UnreadableCatalogue, match="is not a tagframe catalogue"):
        tf.open_corpus(bank, catalogue=bank)
    with pytest.raises(UnreadableCatalogue, match="nowhere"):
        tf.open_corpus(bank, catalogue=tmp_path / "nowhere" / "x")


class TestSaved:
    def test_opens_as_the_corpus_that_it_was(self, bank, tmp_path, profiled):
        corpus = tf.open_corpus(bank)
        saved = corpus.save(tmp_path / "index")
        again = tf.open_corpus(saved)
        assert_same(corpus, again)
        assert len(profiled) == 2
        assert again.read("loan").equals(corpus.read("loan"))
        assert again.engine("loan").path == bank

    def test_follows_its_source(self, bank, tmp_path, profiled):
        saved = tf.open_corpus(bank).save(tmp_path / "index")
        change(bank, "INSERT INTO loan VALUES (99, 1, 1)")
        assert tf.open_corpus(saved).profile("loan").rows == 4
        assert tf.open_corpus(saved).profile("loan").rows == 4
        assert len(profiled) == 4

    def test_a_part(self, tmp_path, sqlite_file, profiled):
        for name in "abc":
            sqlite_file(f"CREATE TABLE t_{name} (id INT); CREATE TABLE u_{name} (id INT);", f"lake/{name}.sqlite")
        whole = tf.open_corpus(tmp_path / "lake")
        saved = whole.subset(["t_a", "t_b"]).save(tmp_path / "index")
        profiled.clear()
        assert tf.open_corpus(saved).ids == ("a.t_a", "b.t_b")
        assert profiled == []
        change(tmp_path / "lake" / "a.sqlite", "DROP TABLE t_a")
        assert tf.open_corpus(saved).ids == ("b.t_b",)

    def test_moved_with_its_source(self, bank, tmp_path):
        folder = tmp_path / "here"
        folder.mkdir()
        shutil.move(bank, folder / bank.name)
        tf.open_corpus(folder / bank.name).save(folder / "index")
        shutil.move(folder, tmp_path / "there")
        corpus = tf.open_corpus(tmp_path / "there" / "index")
        assert len(corpus.read("loan")) == 3

    def test_without_its_source(self, bank, tmp_path):
        saved = tf.open_corpus(bank).save(tmp_path / "index")
        bank.unlink()
        with pytest.warns(
            CatalogueWarning, match=r"bank\.sqlite.* no longer exists: its tables can be found but not read"
        ):
            corpus = tf.open_corpus(saved)
        assert corpus.ids == ("bank.client", "bank.loan")
        assert corpus.engine("loan") is None
        with pytest.raises(SourceNotFound, match=r"bank\.sqlite is not there any more"):
            corpus.read("loan")

    def test_of_frames(self, tmp_path):
        odd = pd.Series(["x", "\ud800"], dtype=object)
        corpus = tf.open_corpus({"bank.loan": pd.DataFrame({"id": [1, None], 'na"me': odd})})
        again = tf.open_corpus(corpus.save(tmp_path / "index"))
        assert_same(corpus, again)
        assert again.source_table("bank.loan") == "bank.loan"
        with pytest.raises(SourceNotFound, match="only its schema is known"):
            again.read("loan")

    def test_replaces_a_catalogue_and_nothing_else(self, bank, tmp_path):
        corpus = tf.open_corpus(bank)
        target = tmp_path / "index"
        tf.open_corpus({"t": pd.DataFrame({"a": [1]})}).save(target)
        corpus.save(target)
        assert tf.open_corpus(target).ids == corpus.ids
        for taken in (bank, tmp_path):
            with pytest.raises(UnreadableCatalogue, match="is not a catalogue, and is not replaced"):
                corpus.save(taken)
        with pytest.raises(UnreadableCatalogue, match="nowhere"):
            corpus.save(tmp_path / "nowhere" / "index")
        assert sorted(os.listdir(tmp_path)) == ["bank.sqlite", "index"]

    def test_that_cannot_be_brought_up_to_date(self, bank, tmp_path, monkeypatch):
        saved = tf.open_corpus(bank).save(tmp_path / "index")
        change(bank, "INSERT INTO loan VALUES (99, 1, 1)")
        with closing(sqlite3.connect(saved)) as other:
            other.execute("BEGIN IMMEDIATE")  # another process is writing, and does not end
            monkeypatch.setattr("tagframe.corpus.catalogue.BUSY_SECONDS", 0.05)
            with pytest.warns(CatalogueWarning, match="kept in memory only: .*locked"):
                corpus = tf.open_corpus(saved)
        assert corpus.profile("loan").rows == 4


class TestUnusable:
    def versioned(self, path: Path, version: int) -> None:
        change(path, f"PRAGMA user_version = {version}")

    def test_of_another_version(self, bank, tmp_path):
        saved = tf.open_corpus(bank).save(tmp_path / "index")
        self.versioned(saved, VERSION + 1)
        with pytest.raises(
            UnreadableCatalogue, match=f"version {VERSION + 1}, and this tagframe reads version {VERSION}"
        ):
            tf.open_corpus(saved)

    @pytest.mark.parametrize("damage", ["version", "noise", "truncated", "other"])
    def test_a_cached_one_is_made_anew(self, bank, cache_folder, profiled, damage):
        tf.open_corpus(bank)
        (file,) = cache_folder.iterdir()
        content = file.read_bytes()
        if damage == "version":
            self.versioned(file, VERSION + 1)
        elif damage == "other":
            file.unlink()
            change(file, "CREATE TABLE mine (x)")
        else:
            file.write_bytes(content[:100] + b"\xff" * 5000 if damage == "noise" else content[:1000])
        with pytest.warns(CatalogueWarning, match="everything is profiled again"):
            assert len(tf.open_corpus(bank)) == 2
        assert len(profiled) == 4
        tf.open_corpus(bank)
        assert len(profiled) == 4

    def test_a_cache_folder_that_cannot_be_made(self, bank, monkeypatch, tmp_path):
        blocked = tmp_path / "file"
        blocked.write_text("")
        monkeypatch.setattr("platformdirs.user_cache_path", lambda name: blocked / name)
        with pytest.warns(CatalogueWarning, match="kept in memory only"):
            assert len(tf.open_corpus(bank).read("loan")) == 3

    @pytest.mark.slow
    def test_a_cached_one_that_another_process_holds(self, bank, cache_folder, monkeypatch):
        tf.open_corpus(bank)
        (file,) = cache_folder.iterdir()
        monkeypatch.setattr("tagframe.corpus.catalogue.BUSY_SECONDS", 0.05)
        with closing(sqlite3.connect(file)) as other:
            other.execute("BEGIN EXCLUSIVE")
            with pytest.warns(CatalogueWarning, match="kept in memory only: .*locked"):
                assert len(tf.open_corpus(bank)) == 2
        assert len(Catalogue(file).load().sources) == 1

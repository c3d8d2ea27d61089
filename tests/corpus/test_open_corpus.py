from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest

import tagframe as tf
from tagframe.corpus import Corpus, TableProfile
from tagframe.corpus.discover import discover
from tagframe.corpus.documents import table_document
from tagframe.errors import ColumnNotFound, EmptyCorpus, InvalidArgument, SourceNotFound, TableNotFound, UnreadableTable


def write(root: Path, *files: str) -> None:
    """Files by their paths below ``root``; SQLite files get one table ``t``."""
    import sqlite3
    from contextlib import closing

    for file in files:
        path = root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".sqlite":
            with closing(sqlite3.connect(path)) as connection:
                connection.execute("CREATE TABLE t (id INT)")
        else:
            path.write_text("id,name\n1,a\n")


def ids(root: Path, *files: str) -> list[str]:
    write(root, *files)
    return list(tf.open_corpus(root).ids)


class TestFolders:
    @pytest.fixture
    def root(self, tmp_path):
        (tmp_path / "lake").mkdir()
        return tmp_path / "lake"

    @pytest.mark.parametrize(
        ("files", "tables"),
        [
            ("loose.csv bank/loan.csv bank/old/x.csv", "bank.loan lake.loose old.x"),
            ("bank.sqlite shop/orders.sqlite", "bank.t orders.t"),
            ("bank/bank.sqlite bank/loan.csv", "bank.loan bank.t"),
            ("2023/bank/a.csv 2024/bank/a.csv other/a.csv", "2023/bank.a 2024/bank.a other.a"),
            ("bank/bank.sqlite bank/t.csv bank/u.csv shop/t.csv",
             "bank/bank.sqlite.t bank/t.csv.t bank/u.csv.u shop.t"),
            ("b/z.csv b/a.csv a/b.csv", "a.b b.a b.z"),
        ],
    )  # fmt: skip
    def test_a_subfolder_and_a_sqlite_file_are_databases(self, root, files, tables):
        assert ids(root, *files.split()) == tables.split()

    def test_hidden_files_and_other_formats_are_left_out(self, root):
        write(root, ".cache/x.csv", ".x.csv", "a.csv", "readme.md")
        assert tf.open_corpus(root).ids == ("lake.a",)

    def test_links_that_lead_in_circles(self, root):
        write(root, "bank/a.csv")
        (root / "bank" / "again").symlink_to(root, target_is_directory=True)
        assert [file.key for file in discover(root)] == ["bank/a.csv"]

    def test_a_catalogue_among_the_files_is_no_table(self, root):
        write(root, "a.csv")
        tf.open_corpus(root).save(root / "index.sqlite")
        assert tf.open_corpus(root).ids == ("lake.a",)

    def test_a_relative_path_and_text(self, root, monkeypatch):
        write(root, "a.csv")
        monkeypatch.chdir(root)
        assert tf.open_corpus(".").ids == ("lake.a",)
        monkeypatch.chdir(root.parent)
        assert tf.open_corpus("lake").read("a")["name"].tolist() == ["a"]

    def test_odd_names_of_folders(self, root):
        assert ids(root, "a b #1?/100%.csv") == ["a b #1?.100%"]
        assert len(tf.open_corpus(root).read("100%")) == 1
        write(root, "x#y?z%20/d b.sqlite")
        assert tf.open_corpus(root / "x#y?z%20" / "d b.sqlite").ids == ("d b.t",)


class TestBadSources:
    def test_missing(self, tmp_path):
        with pytest.raises(SourceNotFound, match=r"no file or folder .*nowhere"):
            tf.open_corpus(tmp_path / "nowhere")
        with pytest.raises(FileNotFoundError):
            tf.open_corpus("nowhere.sqlite")

    def test_empty_folder(self, tmp_path):
        with pytest.raises(EmptyCorpus, match=r"no file with tables .*\.sqlite.*\.csv.*\.parquet"):
            tf.open_corpus(tmp_path)

    def test_folder_without_tables(self, tmp_path, sqlite_file):
        sqlite_file("CREATE VIEW v AS SELECT 1 FROM gone;")
        with pytest.raises(UnreadableTable, match="the view 'v' of"):
            tf.open_corpus(tmp_path)

    def test_unknown_format(self, tmp_path):
        for name, reason in (
            ("notes.md", "neither SQLite, CSV, Parquet nor a workbook"),
            ("notes.txt", "do not split"),
        ):
            (tmp_path / name).write_text("hello")
            with pytest.raises(UnreadableTable, match=rf"{name} is .*{reason}"):
                tf.open_corpus(tmp_path / name)

    def test_a_sqlite_file_of_any_ending(self, bank):
        assert tf.open_corpus(bank.rename(bank.with_suffix(".data"))).ids == ("bank.client", "bank.loan")

    @pytest.mark.parametrize("source", [None, 5, [1], pd.DataFrame({"a": [1]})])
    def test_no_path(self, source):
        with pytest.raises(InvalidArgument, match="open a corpus from a path, or from frames by name"):
            tf.open_corpus(source)

    @pytest.mark.parametrize("name", ["a.csv", "a.sqlite", "a.parquet"])
    def test_a_file_that_cannot_be_opened(self, tmp_path, name):
        write(tmp_path, "b.csv")
        (tmp_path / name).symlink_to(tmp_path / "nowhere")
        with pytest.warns(tf.errors.UnreadableTableWarning, match=f"{name} cannot be read"):
            assert len(tf.open_corpus(tmp_path)) == 1

    def test_a_folder_that_cannot_be_listed(self, tmp_path, monkeypatch):
        write(tmp_path, "a/a.csv", "b/b.csv")
        scandir = os.scandir

        def refuse(path):
            if str(path).endswith("a"):
                raise PermissionError(13, "Permission denied", str(path))
            return scandir(path)

        monkeypatch.setattr(os, "scandir", refuse)  # root, as in containers, is refused nothing
        with pytest.warns(tf.errors.UnreadableTableWarning, match=r"left out: .*Permission denied.*a'"):
            assert tf.open_corpus(tmp_path).ids == ("b.b",)


class TestFrames:
    def test_names(self):
        frame = pd.DataFrame({"id": [1]})
        corpus = tf.open_corpus({"bank.loan": frame, "client": frame, "bank.a.b": frame, "shop.loan": frame})
        assert corpus.ids == ("bank.a.b", "bank.loan", "frames.client", "shop.loan")
        assert corpus.profile("bank.loan").name == "loan"
        assert corpus.read("shop.loan").equals(frame)
        assert corpus.engine("client").kind == "frames"
        assert corpus.source_table("bank.loan") == "bank.loan"

    def test_the_frame_given_is_not_shared(self):
        frame = pd.DataFrame({"id": [1]})
        corpus = tf.open_corpus({"t": frame})
        read = corpus.read("t")
        read.loc[0, "id"] = 7
        assert frame["id"].tolist() == [1]
        assert frame.columns.tolist() == ["id"]

    def test_no_rows_and_no_columns(self):
        corpus = tf.open_corpus({"rows": pd.DataFrame(index=range(3)), "none": pd.DataFrame({"a": [], "b": []})})
        assert (corpus.profile("rows").rows, corpus.profile("rows").columns) == (3, ())
        assert (corpus.profile("none").rows, corpus.profile("none").column("a").family) == (0, "empty")
        assert corpus.read("rows").shape == (3, 0)
        assert table_document(corpus.profile("rows")) == "frames rows"

    def test_names_of_columns_that_are_no_text(self):
        corpus = tf.open_corpus({"t": pd.DataFrame([[1, 2]], columns=[0, ("x", 1)])})
        assert [column.name for column in corpus.profile("t").columns] == ["0", "('x', 1)"]
        assert corpus.read("t", ["0"]).to_dict("list") == {"0": [1]}

    def test_an_index_is_kept(self):
        frame = pd.DataFrame({"a": [1, 2, 3]}, index=list("xyz"))
        assert tf.open_corpus({"t": frame}).read("t", limit=2).index.tolist() == ["x", "y"]

    @pytest.mark.parametrize(
        ("frames", "reason"),
        [
            ({"t": pd.DataFrame([[1, 2]], columns=["a", "a"])}, "'t' has more than one column called 'a'"),
            ({"t": pd.DataFrame([[1, 2]], columns=[1, "1"])}, "more than one column called '1'"),
            ({"t": pd.DataFrame([[1]], columns=pd.MultiIndex.from_tuples([("a", "b")]))}, "MultiIndex of 2 levels"),
            ({"t": pd.Series([1])}, "'t' is a Series, not a pandas.DataFrame"),
            ({1: pd.DataFrame({"a": [1]})}, "a frame's name must be text; got 1"),
            ({"": pd.DataFrame({"a": [1]})}, "'table' or 'database.table'; got ''"),
            ({"bank.": pd.DataFrame({"a": [1]})}, "got 'bank.'"),
            ({"t": pd.DataFrame({"a": [1]}), "frames.t": pd.DataFrame({"a": [1]})}, "two frames are called frames.t"),
        ],
    )
    def test_frames_that_are_no_tables(self, frames, reason):
        with pytest.raises(InvalidArgument, match=re.escape(reason)):
            tf.open_corpus(frames)

    def test_no_frames(self):
        with pytest.raises(EmptyCorpus, match="at least one frame"):
            tf.open_corpus({})

    @pytest.mark.parametrize(
        ("option", "way"), [({"catalogue": "x"}, r"corpus\.save"), ({"engine": "duckdb"}, "to_parquet")]
    )
    def test_what_is_for_files(self, option, way):
        with pytest.raises(InvalidArgument, match=way):
            tf.open_corpus({"t": pd.DataFrame({"a": [1]})}, **option)


class TestCorpus:
    @pytest.fixture
    def corpus(self):
        frame = pd.DataFrame({"id": [1], "name": ["x"]})
        return tf.open_corpus({"bank.Loan": frame, "bank.client": frame, "shop.client": frame})

    def test_is_a_collection(self, corpus):
        assert len(corpus) == 3
        assert "bank.Loan" in corpus
        assert "Loan" not in corpus
        assert [profile.id for profile in corpus] == list(corpus.ids) == ["bank.Loan", "bank.client", "shop.client"]
        assert repr(corpus) == "Corpus(3 tables of 2 databases: bank.Loan, bank.client, shop.client)"

    def test_profiles_are_found_by_id_and_bare_name(self, corpus):
        assert corpus.profile("BANK.loan") is corpus.profile("loan") is corpus.profile("bank.Loan")

    def test_a_name_of_two_tables(self, corpus):
        with pytest.raises(
            TableNotFound, match=r"'client' is the name of 2 tables; choose one: 'bank.client', 'shop.cl"
        ):
            corpus.profile("client")

    @pytest.mark.parametrize(("wrong", "right"), [("bank.loans", "bank.Loan"), ("lone", "Loan"), ("zzz", None)])
    def test_did_you_mean(self, corpus, wrong, right):
        with pytest.raises(TableNotFound, match=f"no table '{re.escape(wrong)}' in") as raised:
            corpus.profile(wrong)
        assert (f"did you mean {right!r}?" in str(raised.value)) == (right is not None)
        for call in (corpus.read, corpus.engine, corpus.source_table, corpus.__getitem__):
            with pytest.raises(TableNotFound):
                call(wrong)

    def test_columns_that_are_not_there(self, corpus):
        with pytest.raises(ColumnNotFound, match=r"no column 'nam' in bank\.Loan: .* did you mean 'name'"):
            corpus.read("Loan", ["nam"])
        with pytest.raises(InvalidArgument, match=r"write \['name'\]"):
            corpus.read("Loan", "name")
        with pytest.raises(InvalidArgument, match="limit"):
            corpus.read("Loan", limit=-1)

    def test_a_table_by_its_name(self, corpus):
        assert corpus["Loan"].equals(corpus.read("bank.Loan"))
        with pytest.raises(TableNotFound, match=r"did you mean 'Loan'"):
            corpus["lone"]
        for wrong in (0, ["Loan"], ("Loan", "name"), slice(2)):
            with pytest.raises(InvalidArgument, match=r"corpus\[…\] takes the name of one table; got"):
                corpus[wrong]

    def test_a_user_sees_what_is_for_users(self, corpus):
        """What the rooms above work with stands beside the class."""
        assert [name for name in dir(corpus) if not name.startswith("_")] == [
            "adopt", "annotate", "describe", "engine", "forget", "hide", "ids", "is_like",
            "keys", "learn", "learned", "merge", "private", "private_columns", "problems", "profile", "profiles",
            "read", "refresh", "retrieve_tables", "save", "source_table", "subset", "tables",
            "tools", "union", "verify", "without_private",
        ]  # fmt: skip
        assert not hasattr(corpus, "retreive")
        with pytest.raises(AttributeError, match=r"no attribute 'descrbe'.* did you mean 'describe'"):
            _ = corpus.descrbe

    def test_subset(self, corpus):
        subset = corpus.subset(["shop.client", "Loan", "bank.Loan"])
        assert subset.ids == ("bank.Loan", "shop.client")
        assert subset.read("client").equals(corpus.read("shop.client"))
        assert len(corpus.subset([])) == 0
        assert repr(corpus.subset([])) == "Corpus(no tables)"
        with pytest.raises(TableNotFound):
            subset.subset(["bank.client"])

    def test_a_schema_only(self):
        corpus = Corpus([TableProfile("b.t", "b", "t", ()), TableProfile("a.t", "a", "t", ())])
        assert corpus.ids == ("a.t", "b.t")
        assert corpus.tables["rows"].isna().all()
        assert corpus.engine("a.t") is None
        assert corpus.source_table("a.t") == "t"
        with pytest.raises(SourceNotFound, match=r"rows of a\.t cannot be read: only its schema is known"):
            corpus.read("a.t")

    def test_ids_are_unique(self):
        profile = TableProfile("b.t", "b", "t", ())
        with pytest.raises(InvalidArgument, match=r"several profiles have 'b\.t'"):
            Corpus([profile, profile])


def test_progress_is_shown_when_asked_for(bank, capsys, cache_folder):
    tf.open_corpus(bank, progress=True)
    assert "profiling" in capsys.readouterr().err
    shutil.rmtree(cache_folder)
    with tf.context(progress=True):
        tf.open_corpus(bank)
    assert "2/2" in capsys.readouterr().err
    shutil.rmtree(cache_folder)
    tf.open_corpus(bank)
    captured = capsys.readouterr()
    assert captured.err == captured.out == ""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tagframe as tf
from tagframe.errors import ColumnFormatWarning, UnreadableTable, UnreadableTableWarning
from tests.engines.sources import cells


@pytest.fixture
def csv(tmp_path):
    """Write ``bank/loan.csv`` and open it: ``csv("a,b\\n1,2\\n")``."""

    def write(content: str | bytes, name: str = "loan.csv") -> tf.Corpus:
        path = tmp_path / "bank" / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return tf.open_corpus(path)

    return write


def test_a_csv_file_is_a_table_of_its_folder(csv):
    corpus = csv("id,purpose,amount\n1,car,10.5\n2,house,\n")
    assert corpus.ids == ("bank.loan",)
    assert [(column.name, column.family, column.nulls) for column in corpus.profile("loan").columns] == [
        ("id", "integer", 0),
        ("purpose", "text", 0),
        ("amount", "real", 1),
    ]
    frame = corpus.read("loan")
    assert frame["id"].dtype == "int64"
    assert frame["amount"].dtype == "float64"
    assert frame["purpose"].dtype == pd.Series(["a"]).dtype
    assert corpus.engine("loan").kind == "csv"


BIG = 2**60 + 1
NOTES = {"name": ["Ada", "Bo"], "note": ["a, b; c", "two\nlines"]}


@pytest.mark.filterwarnings("ignore:.*several columns are called:tagframe.errors.ColumnFormatWarning")
@pytest.mark.parametrize(
    ("content", "columns", "dtypes"),
    [
        (f"id,other\n{BIG},1\n,2\n", {"id": [BIG, None], "other": [1, 2]}, ["Int64", "int64"]),
        ("a,b\ntrue,True\nfalse,\n", {"a": [True, False], "b": [True, None]}, ["bool", "boolean"]),
        ("a,b\n", {"a": [], "b": []}, None),
        ("a,a,b\n01,02,3\n".encode("utf-16"), {"a": ["01"], "a.1": ["02"], "b": [3]}, None),
        ('a,"b ""q"" ,;",,select,1\n1,2,3,4,5\n',
         {"a": [1], 'b "q" ,;': [2], "Unnamed: 2": [3], "select": [4], "1": [5]},
         None),
        *((f'name{mark}note\nAda{mark}"a, b; c"\nBo{mark}"two\nlines"\n', NOTES, None) for mark in ",;\t|^~\x01\x1f"),
        *(("name,city\nAda,Köln\n".encode(encoding), {"name": ["Ada"], "city": ["Köln"]}, None)
          for encoding in ("utf-8", "utf-8-sig", "utf-16", "cp1252")),
    ],
)  # fmt: skip
def test_a_csv_file_is_read_as_it_is_written(csv, content, columns, dtypes):
    corpus = csv(content)
    frame = corpus.read("loan")
    assert [column.name for column in corpus.profile("loan").columns] == [*frame] == [*columns]
    assert cells(frame) == [list(row) for row in zip(*columns.values(), strict=True)]
    assert dtypes is None or [*map(str, frame.dtypes)] == dtypes


def test_leading_zeros_are_kept_in_reading_and_match_numbers_in_profiles(csv):
    corpus = csv("zip,number,time\n00501,0,08:00\n10001,7,09:00\n")
    frame = corpus.read("loan")
    assert frame["zip"].tolist() == ["00501", "10001"]
    assert frame["number"].tolist() == [0, 7]
    assert frame["number"].dtype == "int64"
    assert (corpus.profile("loan").column("zip").family, corpus.profile("loan").column("zip").minimum) == (
        "integer",
        "501",
    )
    assert corpus.read("loan", ["number"]).columns.tolist() == ["number"]


def test_leading_zeros_further_below_count_for_the_first_rows_too(csv):
    assert csv("zip,n\n501,1\n00502,2\n").read("loan", limit=1).to_dict("list") == {"zip": ["501"], "n": [1]}


def test_latin_1_beyond_windows(csv):
    with pytest.warns(ColumnFormatWarning, match="not UTF-8, and is read as latin-1"):
        assert csv("name\nx\x81ö\n".encode("latin-1")).read("loan")["name"].tolist() == ["x\x81ö"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "No columns"),
        ("a,b\n1,2\n3,4,5\n", "line 3"),
        ('a,b\n1,"open\n', "EOF inside string"),
        (b"PK\x03\x04\x00\x00\x00binary\x00\xff", "zero bytes"),
    ],
    ids=["empty", "ragged", "open-quote", "binary"],
)
def test_broken_csv(csv, content, reason):
    with pytest.raises(UnreadableTable, match=rf"loan\.csv .*{reason}"):
        csv(content)


def test_one_bad_file_does_not_hide_the_others(tmp_path):
    (tmp_path / "good.csv").write_text("a\n1\n")
    (tmp_path / "bad.csv").write_text("a,b\n1,2\n3,4,5\n")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 not really")
    (tmp_path / "bad.sqlite").write_bytes(b"SQLite format 3\x00" + b"\xff" * 500)
    with pytest.warns(UnreadableTableWarning) as warned:
        corpus = tf.open_corpus(tmp_path)
    assert [profile.name for profile in corpus] == ["good"]
    assert len(warned) == len(corpus.problems) == 3
    assert {type(problem) for problem in corpus.problems} == {UnreadableTable}
    for name, problem in zip(["bad.csv", "bad.parquet", "bad.sqlite"], sorted(map(str, corpus.problems)), strict=True):
        assert name in problem


def test_only_bad_files(tmp_path):
    (tmp_path / "one.csv").write_text("")
    (tmp_path / "two.csv").write_text("")
    with pytest.raises(UnreadableTable, match="none of the 2 files"):
        tf.open_corpus(tmp_path)


class TestParquet:
    """These need a pyarrow that accepts the installed numpy."""

    @pytest.mark.parametrize("compression", ["", "uncompressed", "lz4", "zstd"])
    def test_types(self, tmp_path, compression):
        frame = pd.DataFrame(
            {
                "id": [1, 2, 3],
                "holes": pd.array([2**60 + 1, None, 3], dtype="Int64"),
                "unsigned": pd.array([2**64 - 1, None, 3], dtype="UInt64"),
                "real": [0.5, None, 2.5],
                "text": ["a", None, "c"],
                "when": pd.to_datetime(["2020-01-01 00:00:00", None, "2021-05-05 10:00:00"]),
                "zoned": pd.to_datetime(["2020-01-01", None, "2021-05-05"]).tz_localize("Europe/Prague"),
                "flag": [True, False, True],
                "day": [dt.date(2020, 1, 1), None, dt.date(2020, 1, 2)],
                "list": [[1, 2], None, [3]],
                "struct": [{"a": 1}, {"a": 2}, None],
                "kind": pd.Categorical(["x", "y", "x"]),
                "bytes": [b"x", None, b"y"],
            }
        )
        if compression:
            frame.to_feather(tmp_path / "t.feather", compression=compression)
        else:
            frame.to_parquet(tmp_path / "t.parquet")
        corpus = tf.open_corpus(next(tmp_path.glob("t.*")))
        families = {column.name: column.family for column in corpus.profile("t").columns}
        assert families == {
            "id": "integer", "holes": "integer", "unsigned": "integer", "real": "real", "text": "text",
            "when": "date", "zoned": "date", "flag": "boolean", "day": "date", "list": "text", "struct": "text",
            "kind": "text", "bytes": "blob",
        }  # fmt: skip
        read = corpus.read("t")
        assert read.columns.tolist() == frame.columns.tolist()
        assert read["holes"].dtype == "Int64"
        assert read["holes"][0] == 2**60 + 1
        assert read["unsigned"].dtype == "UInt64"
        assert read["unsigned"][0] == 2**64 - 1
        assert read["id"].dtype == "int64"
        assert read["when"].dt.year.tolist()[::2] == [2020, 2021]
        assert read["flag"].dtype == bool

    def test_names_order_and_limit(self, tmp_path):
        frame = pd.DataFrame({"a.b": [1, 2, 3], "a": [4, 5, 6], 'q"': [7, 8, 9]}, index=pd.Index([9, 8, 7], name="key"))
        frame.to_parquet(tmp_path / "t.parquet", row_group_size=2)
        corpus = tf.open_corpus(tmp_path / "t.parquet")
        assert [column.name for column in corpus.profile("t").columns] == ["a.b", "a", 'q"', "key"]
        assert corpus.read("t", ["a"]).to_dict("list") == {"a": [4, 5, 6]}
        assert corpus.read("t", ["key", "a.b"], limit=1).to_dict("list") == {"key": [9], "a.b": [1]}
        assert corpus.read("t", limit=0).shape == (0, 4)
        assert len(corpus.read("t", limit=100)) == 3
        assert corpus.read("t", []).shape[1] == 0

    def test_an_index_without_a_name_is_left_out(self, tmp_path):
        pd.DataFrame({"a": [1, 2]}, index=[5, 6]).to_parquet(tmp_path / "t.parquet")
        corpus = tf.open_corpus(tmp_path / "t.parquet")
        assert corpus.read("t").to_dict("list") == {"a": [1, 2]}
        assert [column.name for column in corpus.profile("t").columns] == ["a"]

    def test_no_rows(self, tmp_path):
        pd.DataFrame({"a": np.array([], dtype="int64")}).to_parquet(tmp_path / "t.parquet")
        corpus = tf.open_corpus(tmp_path / "t.parquet")
        assert (corpus.profile("t").rows, corpus.read("t", limit=5).shape) == (0, (0, 1))

    def test_two_columns_of_one_name(self, tmp_path):
        table = pa.table([pa.array([1]), pa.array([2])], names=["x", "x"])
        pq.write_table(table, tmp_path / "t.parquet")
        with pytest.raises(UnreadableTable, match="duplicate field names"):
            tf.open_corpus(tmp_path / "t.parquet")

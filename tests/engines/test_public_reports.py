"""Inputs of public reports on other tools (``repository-number``), rebuilt: read right, or said what is done."""

import datetime as dt
import json
import sqlite3
from contextlib import closing

import pandas as pd
import pytest

import tagframe as tf
from tagframe.errors import UnreadableTable
from tests.engines import sources


def opened(folder, files):
    """The corpus, if it could be opened, and all that was said."""
    for name, content in files.items():
        if isinstance(content, str):
            (folder / name).write_text(content)
        elif isinstance(content, list):
            with closing(sqlite3.connect(folder / name)) as connection, connection:
                connection.executescript(";".join(content))
        else:
            content(folder / name)
    try:
        corpus, said = sources.opened(folder)
    except UnreadableTable as error:
        return None, str(error)
    return corpus, " | ".join([*map(str, corpus.problems), *filter(None, [said])])


def sheet(cells, *merged):
    """Writes a workbook of one sheet; merged cells are given as first row, column, last row, column, and text."""

    def write(path):
        pytest.importorskip("python_calamine")
        with pytest.importorskip("xlsxwriter").Workbook(path) as book:
            written = book.add_worksheet("t")
            for at, row in enumerate(cells):
                written.write_row(at, 0, row)
            for one in merged:
                written.merge_range(*one)

    return write


def parquet(column):
    """Writes a Parquet file of one column ``x``."""

    def write(path):
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        type = pa.timestamp("ms", "UTC") if column[0] is None else None
        pq.write_table(pa.table({"x": pa.array(column, type)}), path)

    return write


RIGHT = [
    ("pandas-5697", {"t.csv": "x\n\n1111111111111111111\n"}, [[1111111111111111111]], ""),
    ("pandas-48170", {"t.csv": "a,b\n,1\n1234567890123456789,\n"}, [[None, 1], [1234567890123456789, None]], ""),
    ("pandas-56135", {"t.csv": "a;b\n   1;123\n   2;\n   3;1582218195625938945\n   \n"},
     [[1, 123], [2, None], [3, 1582218195625938945]], ""),
    ("pandas-12340", {"t.csv": "id,n\n6144039378640938.000000,71\n6145000614093866.000000,0\n"},
     [[6144039378640938.0, 71], [6145000614093866.0, 0]], ""),
    ("pandas-20608", {"t.json": '[{"id":10000000000000001},{"id":null},{"id":9007199254740993}]'},
     [[10000000000000001], [None], [9007199254740993]], ""),
    ("duckdb-25827", {"t.csv": "c0\nv0\na;b\n"}, [["v0"], ["a;b"]], ""),
    ("duckdb-16125", {"t.parquet": parquet([None, dt.datetime(2025, 2, 7, 19, 31, 15, 25000, tzinfo=dt.UTC)])},
     [[None], [pd.Timestamp("2025-02-07 19:31:15.025", tz="UTC")]], ""),
    ("duckdb-sqlite-47", {"t.sqlite": ["CREATE TABLE t (at timestamp)", "INSERT INTO t VALUES (1598313600)"]},
     [[1598313600]], ""),
    ("duckdb-sqlite-53", {"t.sqlite": ["CREATE TABLE t (id, on_ BOOLEAN)", "INSERT INTO t VALUES (44, FALSE)"]},
     [[44, 0]], ""),
    ("duckdb-sqlite-51", {"t.sqlite": ["CREATE TABLE t (i INTEGER, r REAL)", "INSERT INTO t VALUES ('nan', 1.5)"]},
     [["nan", 1.5]], ""),
    ("polars-21519", {"t.csv": 'a,b\nval1,abc"\nval2,random\n'}, [["val1", 'abc"'], ["val2", "random"]], ""),
    ("polars-1528", {"t.csv": 'n,last\n1,Jagger\n2,O"Brian\n3,Richards\n4,L"Etoile\n'},
     [[1, "Jagger"], [2, 'O"Brian'], [3, "Richards"], [4, 'L"Etoile']], ""),
    ("csvkit-956", {"t.csv": 'day\n"476-09-04 [proleptic] end"\n"1944-06-06 Tag X"\n'},
     [["476-09-04 [proleptic] end"], ["1944-06-06 Tag X"]], ""),
    ("csvkit-607", {"t.json": json.dumps([{"id": "20160506175330-3168-01", "n": 0}])}, [["20160506175330-3168-01", 0]],
     ""),
    ("readxl-383", {"t.xlsx": sheet([[], ["REF", "TYPE", "N"], ["A-1", "C", 5], ["A-2", "C", 6]],
                                    (0, 0, 0, 2, "Policies of 2017"))},
     [["A-1", "C", 5], ["A-2", "C", 6]], "row 2 names the columns"),
]  # fmt: skip


@pytest.mark.parametrize(("files", "cells", "words"), [one[1:] for one in RIGHT], ids=[one[0] for one in RIGHT])
def test_what_is_read_right(tmp_path, files, cells, words):
    corpus, said = opened(tmp_path, files)
    assert corpus is not None, said
    assert sources.cells(corpus["t"]) == cells
    assert words in said
    assert bool(words) == bool(said), said


TOLD = [
    ("pandas-2697", "id,text\n135217135789158401,a\n1352171357E+5,b\n", "'id' have more digits than floats hold"),
    ("duckdb-9343", "\n\none,two,three\n1,2,3,4\n1,2,3\n\n1,2,3\n", "line 4 has 4 cells"),
    ("turicreate-1692", 'a, b\n"a", "b"\n"c", "d\n', "{'quoting': 3}} reads quotes as letters"),
]


@pytest.mark.parametrize(("text", "words"), [one[1:] for one in TOLD], ids=[one[0] for one in TOLD])
def test_what_is_said(tmp_path, text, words):
    assert words in opened(tmp_path, {"t.csv": text})[1]


def test_a_moment_is_compared_with_a_text(tmp_path):
    """duckdb-1079."""
    at = pd.to_datetime(["2020-11-02 09:45:20.048459", "2020-11-03 09:45:20.048459"]).astype("datetime64[ns]")
    pd.DataFrame({"ts": at}).to_parquet(tmp_path / "t.parquet")
    run = tf.exec_sql(tf.open_corpus(tmp_path, progress=False))
    assert run("SELECT count(*) AS n FROM t WHERE ts > '2020-11-03 07:00:00'")["n"][0] == 1

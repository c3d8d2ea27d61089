"""What ``where=`` means: the same rows in every engine, in every way to run a merge, as the README's table says."""

from __future__ import annotations

import datetime as dt
import re
import sqlite3
import uuid
from contextlib import closing
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import psycopg
import pytest

import tagframe as tf
from tagframe.corpus.references import NamedTable
from tagframe.errors import ColumnNotFound, InvalidArgument, WayNotPossible
from tagframe.joins import JoinPlan, keys_on
from tagframe.merging import plan_tables, run_plan
from tests import opened_in
from tests.draws import one_of

pytest.importorskip("duckdb")
UTC = dt.UTC
ROWS: dict[str, list[Any]] = {
    "id": [1, 2, 3, 4, 5, 6],
    "k": [1, 1, 2, 2, 3, 3],
    "n": [0, 1, 2, 7, None, 2**53 + 1],
    "x": [0.5, 1.0, None, 0.1, float("nan"), -1.5],
    "t": ["a", "A", "1", None, "2024-01-05", "it's"],
    "b": [True, False, None, True, False, True],
    "day": [dt.date(2024, 1, 5), None, dt.date(2024, 1, 6), None, dt.date(1999, 12, 31), dt.date(2024, 1, 5)],
    "at": [dt.datetime(2024, 1, 5), dt.datetime(2024, 1, 5, 12, 30), None, None, None, dt.datetime(2024, 1, 5)],
    "zoned": [dt.datetime(2024, 1, 5, 12, tzinfo=UTC), None, None, None, None, dt.datetime(2024, 1, 5, tzinfo=UTC)],
    "price": [Decimal("0.10"), Decimal("2.50"), None, None, Decimal("1.00"), Decimal("0.30")],
    "one": [str(uuid.UUID(int=1)), str(uuid.UUID(int=2)), str(uuid.UUID(int=3)), None, None, None],
}  # fmt: skip
TYPES = {"id": "int PRIMARY KEY", "k": "int", "n": "int8", "x": "float8", "t": "text", "b": "bool", "day": "date",
         "at": "timestamp", "zoned": "timestamptz", "price": "numeric(9, 2)", "one": "uuid"}  # fmt: skip
LABELS = pd.DataFrame({"k": [1, 2, 3], "label": ["one", "two", "three"]})
ISTANBUL = dt.timezone(dt.timedelta(hours=3))
CASES: list[tuple[dict[str, Any], list[int]]] = [
    # What is missing.
    *(({column: gone}, rows) for gone in (None, float("nan"), np.nan, pd.NA, pd.NaT, np.datetime64("NaT"), [None])
      for column, rows in (("x", [3, 5]), ("t", [4]), ("n", [5]), ("day", [2, 4]), ("at", [3, 4, 5]))),
    ({"x": [None, 1.0]}, [2, 3, 5]),
    ({"t": ["a", float("nan")]}, [1, 4]),
    ({"n": [None, 7, None]}, [4, 5]),
    ({"x": []}, []),
    # Numbers, of whatever type.
    *(({"n": one}, [2]) for one in (1, 1.0, True, Decimal("1.00"), np.int8(1), np.float32(1), np.bool_(True))),
    ({"n": [np.int64(7), np.float64(2.0)]}, [3, 4]),
    ({"n": np.array([0, 7])}, [1, 4]),
    ({"n": pd.Series([0, 7])}, [1, 4]),
    ({"n": range(3)}, [1, 2, 3]),
    ({"n": 2**53 + 1}, [6]),
    ({"n": 2**53}, []),
    ({"n": 0.5}, []),
    ({"n": float("inf")}, []),
    ({"n": "1"}, [2]),
    ({"n": ["0", "7.0", "0.5"]}, [1, 4]),
    ({"x": 0.1}, [4]),
    ({"x": Decimal("0.1")}, [4]),
    ({"x": [1, -1.5]}, [2, 6]),
    ({"price": 0.1}, [1]),
    ({"price": [Decimal("0.3"), 1]}, [5, 6]),
    # Booleans are 0 and 1.
    *(({"b": one}, [1, 4, 6]) for one in (True, 1, 1.0, np.True_)),
    ({"b": [False, None]}, [2, 3, 5]),
    ({"b": 2}, []),
    # Texts, sign by sign.
    ({"t": "a"}, [1]),
    ({"t": np.str_("A")}, [2]),
    ({"t": ["it's", "1"]}, [3, 6]),
    ({"one": uuid.UUID(int=2)}, [2]),
    ({"one": [uuid.UUID(int=1), str(uuid.UUID(int=3))]}, [1, 3]),
    # Days, and their ISO texts.
    *(({"day": one}, [1, 6]) for one in (dt.date(2024, 1, 5), "2024-01-05")),
    ({"t": dt.date(2024, 1, 5)}, [5]),
    ({"at": dt.datetime(2024, 1, 5, 12, 30)}, [2]),
    ({"at": pd.Timestamp("2024-01-05 12:30")}, [2]),
    ({"at": np.datetime64("2024-01-05T12:30")}, [2]),
    # Moments with a zone, in whatever zone.
    ({"zoned": dt.datetime(2024, 1, 5, 12, tzinfo=UTC)}, [1]),
    ({"zoned": dt.datetime(2024, 1, 5, 15, tzinfo=ISTANBUL)}, [1]),
    ({"zoned": pd.Timestamp("2024-01-05 12:00", tz="UTC")}, [1]),
    # In order: missing ones are never within a bound.
    ({"n": (">=", 2)}, [3, 4, 6]),
    ({"n": (">", "1.5")}, [3, 4, 6]),
    ({"n": ("between", 1, 7.5)}, [2, 3, 4]),
    ({"n": ("==", 7)}, [4]),
    ({"n": ("<", float("inf"))}, [1, 2, 3, 4, 6]),
    ({"b": (">=", 1)}, [1, 4, 6]),
    ({"x": ("<", 0.5)}, [4, 6]),
    ({"x": (">", -1.5), "b": True}, [1, 4]),
    ({"price": ("<=", Decimal("0.3"))}, [1, 6]),
    ({"price": (">", 1)}, [2]),
    ({"t": (">=", "a")}, [1, 6]),
    ({"day": (">=", "2024-01-05")}, [1, 3, 6]),
    ({"day": ("<", dt.date(2024, 1, 1))}, [5]),
    ({"at": ("between", "2024-01-05T12:00", dt.datetime(2024, 2, 1))}, [2]),
    ({"zoned": (">=", "2024-01-05T10:00+00:00")}, [1]),
    ({"zoned": ("<", pd.Timestamp("2024-01-05 10:00", tz="UTC"))}, [6]),
    # Several columns, and functions, which see the rows that fit the rest.
    ({"b": True, "label": ["one", "three"]}, [1, 6]),
    ({"x": lambda column: column == column.max(), "n": [1, 2, 7]}, [2]),
]  # fmt: skip
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"n": "many"}, "column 'n', which holds integers, with 'many' of type str: give a number"),
    ({"x": [0.5, (1, 2)]}, "column 'x', which holds numbers, with (1, 2)"),
    ({"x": b"a"}, "column 'x', which holds numbers, with b'a' of type bytes"),
    ({"x": (">", "many")}, "column 'x', which holds numbers, with 'many'"),
    ({"t": 1}, "column 't', which holds texts, with 1 of type int: give a text"),
    ({"t": ["a", Decimal(1)]}, "column 't', which holds texts"),
    ({"one": 1}, "column 'one', which holds texts"),
    ({"day": "soon"}, "column 'day', which holds dates, with 'soon'"),
    ({"day": 20240105}, "column 'day', which holds dates"),
    ({"day": (">", dt.datetime(2024, 1, 5, 12))}, "cannot order column 'day'"),
    ({"at": dt.datetime(2024, 1, 5, 12, 30, tzinfo=UTC)}, "moments without a time zone"),
    ({"zoned": dt.datetime(2024, 1, 5, 12)}, "give a moment with a time zone, such as"),
    ({"zoned": (">=", "2024-06-01")}, "give a moment with a time zone, such as"),
    ({"n": ("!=", 1)}, r"takes ('<', x)"),
    ({"n": (">=", None)}, r"takes ('<', x)"),
    ({"n": ("between", 1)}, r"takes ('<', x)"),
]
PLAIN_SQLITE = {"day", "at", "zoned", "price"}
"""What SQLite has no type for."""


def typed_rows() -> pd.DataFrame:
    frame = pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in ROWS.items()})
    return frame.astype({"id": "int64", "k": "int64", "n": "Int64", "x": "float64", "b": "boolean", "one": "string",
                         "t": "string", "at": "datetime64[us]", "zoned": "datetime64[us, UTC]"})  # fmt: skip


@pytest.fixture(scope="module")
def corpora(lasting, tmp_path_factory) -> dict[str, tf.Corpus]:
    frame = pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in ROWS.items()})
    typed = typed_rows()
    folder = tmp_path_factory.mktemp("where")
    with closing(sqlite3.connect(folder / "file.sqlite")) as connection:
        connection.execute(f"CREATE TABLE rows ({', '.join(ROWS)})")
        for row in frame.astype(object).where(frame.notna(), None).itertuples(index=False):
            cells = [cell if isinstance(cell, int | float | str | None) else str(cell) for cell in row]
            connection.execute(f"INSERT INTO rows VALUES ({', '.join('?' * len(cells))})", cells)
        LABELS.to_sql("labels", connection, index=False)
        connection.commit()
    url = lasting("meaning")
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute(f"CREATE TABLE rows ({', '.join(f'{name} {kind}' for name, kind in TYPES.items())})")
        owner.execute("CREATE TABLE labels (k int PRIMARY KEY, label text)")
        for cells in zip(*ROWS.values(), strict=True):
            owner.execute(f"INSERT INTO rows VALUES ({', '.join(['%s'] * len(cells))})", cells)
        for key, label in LABELS.itertuples(index=False):
            owner.execute("INSERT INTO labels VALUES (%s, %s)", [key, label])
    found = {
        "frames": tf.open_corpus({"frames.rows": typed, "frames.labels": LABELS}),
        "duckdb": opened_in.lake({"rows": typed, "labels": LABELS}, folder / "lake", parts=2),
        "sqlite": tf.open_corpus(folder / "file.sqlite", progress=False),
        "postgres": tf.open_corpus(url, progress=False),
    }
    mixed = [found["postgres"].subset(["public.rows"]), found["sqlite"].subset(["file.labels"])]
    return {**found, "mixed": mixed[0].union(mixed[1])}


def planned(corpus: tf.Corpus) -> JoinPlan:
    ids = sorted(corpus.ids, reverse=True)
    return plan_tables(corpus, ids, given=keys_on("k", [NamedTable.of(corpus.profile(id)) for id in ids])).restarted(
        ids[0]
    )


@pytest.mark.pandas2
@pytest.mark.parametrize("by", [None, "engine", "across", "memory"])
@pytest.mark.parametrize("source", ["frames", "duckdb", "sqlite", "postgres", "mixed"])
def test_where_means_the_same_everywhere(corpora, source, by):
    corpus, plan, ran = corpora[source], planned(corpora[source]), 0
    wrong, is_whole = [], by in ("engine", "memory")  # of which one is chosen unless told otherwise
    for where, expected in CASES if is_whole else one_of(3, CASES):  # across engines conditions are made as within one
        if source == "sqlite" and PLAIN_SQLITE & set(where):
            continue
        try:
            frame, report = run_plan(plan, corpus, where=where, columns=["id"], by=by)
        except WayNotPossible:
            assert by in ("engine", "across")
            continue
        ran += 1
        if sorted(frame["id"]) != expected or report.filtered != len(ROWS["id"]) - len(expected):
            wrong.append((where, expected, sorted(frame["id"]), report.filtered))
    assert not wrong
    if source != "frames" or by in (None, "memory"):
        assert ran > (30 if is_whole else 10) or (source == "mixed" and by == "engine")


@pytest.mark.pandas2
@pytest.mark.parametrize("by", [None, "memory"])
@pytest.mark.parametrize("source", ["frames", "duckdb", "sqlite", "postgres", "mixed"])
def test_a_value_without_a_meaning_in_its_column_is_refused_everywhere(corpora, source, by):
    for where, said in REFUSED:
        if source != "sqlite" or not PLAIN_SQLITE & set(where):
            with pytest.raises(InvalidArgument, match=re.escape(said)):
                run_plan(planned(corpora[source]), corpora[source], where=where, columns=["id"], by=by)


TEXTS = [
    ("n > 1.5 and t == 'a'", {"n": (">", 1.5), "t": "a"}),
    ("0 <= n <= 2 and `t` in ['a', '1']", {"n": ("between", 0, 2), "t": ["a", "1"]}),
    ("(7 == n) & (b == False)", {"n": 7, "b": False}),
    ("day >= '2024-01-05'", {"day": (">=", "2024-01-05")}),
    ("zoned >= '2024-01-05T10:00+00:00'", {"zoned": (">=", "2024-01-05T10:00+00:00")}),
    ("price == '0.10' and `rows.k` == 1", {"price": 0.1, "k": 1}),
    ("x == None", {"x": None}),
]


@pytest.mark.pandas2
@pytest.mark.parametrize("by", [None, "memory"])
@pytest.mark.parametrize("source", ["frames", "duckdb", "sqlite", "postgres", "mixed"])
def test_a_text_means_what_the_mapping_means(corpora, source, by):
    corpus, plan = corpora[source], planned(corpora[source])
    for text, where in TEXTS:
        if source != "sqlite" or not PLAIN_SQLITE & set(where):
            one, other = (run_plan(plan, corpus, where=some, columns=["id"], by=by)[0] for some in (text, where))
            assert sorted(one["id"]) == sorted(other["id"]), text
    either, _ = run_plan(plan, corpus, where="n == 7 or (x < 0.5 and b == True)", columns=["id"], by=by)
    assert sorted(either["id"]) == [4, 6]


@pytest.mark.parametrize(
    "where", ["n between 1 and 5", "n = 3", "n.max() > 3", "@x > 3", "n", "   ", "1", "n != 3", "n > k", "not n > 3"]
)
def test_a_text_that_compares_no_column_with_a_value_is_refused_with_ways_out(corpora, where):
    with pytest.raises(InvalidArgument, match=r"must compare columns with values.*lambda.*\.query\(\)"):
        run_plan(planned(corpora["frames"]), corpora["frames"], where=where)


def test_a_text_that_names_no_column_is_refused(corpora):
    with pytest.raises(ColumnNotFound, match="nn"):
        run_plan(planned(corpora["frames"]), corpora["frames"], where="nn > 3")


def test_a_bound_runs_in_the_server(corpora):
    corpus, where = corpora["postgres"], {"zoned": (">=", "2024-01-05T10:00Z"), "n": ("between", 0, "5")}
    frame, report = run_plan(planned(corpus), corpus, where=where, by="engine")
    assert frame["id"].tolist() == [1]
    assert "BETWEEN 0 AND 5" in report.sql

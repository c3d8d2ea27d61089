"""Joins inside a SQLite file: the same frame and report as pandas gives, or none."""

from __future__ import annotations

import re
import sqlite3
import tempfile
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from accounted import alike
from hypothesis import given, settings
from hypothesis import strategies as st

from tagframe.corpus import Corpus, open_corpus
from tagframe.corpus.corpus import Origin
from tagframe.corpus.profile import ColumnProfile, TableProfile
from tagframe.engines.sqlite.engine import SQLiteEngine
from tagframe.errors import InvalidArgument, RowsLostWarning
from tagframe.joins import JoinPlan, JoinStep, PlanTable
from tagframe.keys import KeyPair
from tagframe.merging import run_plan
from tagframe.merging.table_rows import PlanRows

TABLES = {"fact": ("id", "k", "m", "x"), "dim": ("k", "name", "m"), "town": ("m", "name")}


def corpus_of(path: Path, tables: dict[str, tuple[str, ...]]) -> Corpus:
    """The tables of a file, with names only: nothing is profiled."""
    engine = SQLiteEngine(path)
    profiles = [
        TableProfile(f"d.{name}", "d", name, tuple(ColumnProfile(c, i, "text") for i, c in enumerate(columns)))
        for name, columns in tables.items()
    ]
    return Corpus(profiles, {f"d.{name}": Origin("d", name, "sqlite", engine) for name in tables})


def step(base: str, table: str, *columns: str) -> JoinStep:
    key = KeyPair(f"d.{base}", columns, f"d.{table}", columns)
    return JoinStep(f"d.{table}", columns, f"d.{base}", columns, "many-to-one", key)


def plan_of(*steps: JoinStep) -> JoinPlan:
    tables = [steps[0].base, *(s.table for s in steps)]
    names = [table.removeprefix("d.") for table in tables]
    return JoinPlan(tables[0], steps, tuple(PlanTable(f"d.{n}", "d", n, TABLES[n]) for n in names))


CHAIN = plan_of(step("fact", "dim", "k"), step("dim", "town", "m"))
STAR = plan_of(step("fact", "dim", "k"), step("fact", "town", "m"))


def write(path: Path, rows: dict[str, list[tuple[Any, ...]]], declared: str = "") -> Corpus:
    with closing(sqlite3.connect(path)) as connection:
        for name, columns in TABLES.items():
            connection.execute(f"CREATE TABLE {name} ({', '.join(f'{column} {declared}' for column in columns)})")
            marks = ", ".join("?" * len(columns))
            connection.executemany(f"INSERT INTO {name} VALUES ({marks})", rows[name])
        connection.commit()
    return corpus_of(path, TABLES)


WHOLE = {"fact": [(1, 1, 10, 0.5), (2, 2, 20, None), (3, 1, 10, 2.5), (4, None, 10, 1.0)],
         "dim": [(1, "Ann", 10), (2, "Bo", 20), (3, "Cy", None)], "town": [(10, "Brno"), (20, "Cheb")]}  # fmt: skip
ALL = {"on_loss": "allow", "limit": 10}


def test_nothing_but_the_result_is_read(tmp_path, monkeypatch):
    corpus = write(tmp_path / "d.sqlite", WHOLE)
    monkeypatch.delattr(PlanRows, "whole")
    frame, report = run_plan(CHAIN, corpus, columns=["id", "dim.name", "town.name"], limit=2, on_loss="allow")
    assert report.engine == "sqlite"
    assert frame.to_dict("list") == {"id": [1, 2], "dim.name": ["Ann", "Bo"], "town.name": ["Brno", "Cheb"]}
    step = report.steps[0]
    assert (step.rows_in, step.matched, step.unmatched_left, step.null_keys, step.unmatched_right) == (4, 3, 1, 1, 1)
    assert (report.start_rows, report.rows, report.lost) == (4, 2, 1)


@pytest.mark.slow
@pytest.mark.pandas2
def test_a_loss_is_warned_of_in_every_way(tmp_path):
    write(tmp_path / "d.sqlite", WHOLE)
    corpus = open_corpus(tmp_path / "d.sqlite", progress=False)
    for by in ("engine", "across", "memory"):
        for plan in (CHAIN, replace(CHAIN, is_anchored=True)):
            for asked in ({}, {"limit": 1}, {"where": {"x": [1.0, 2.0]}}, {"where": {"x": [1.0, 2.0]}, "limit": 1}):
                with pytest.warns(RowsLostWarning, match=r"1 of 4 rows of d\.fact"):
                    run_plan(plan, corpus, by=by, **asked)


def test_of_tables_that_may_be_large_a_limit_reads_no_more_rows_for_a_warning(tmp_path):
    corpus = write(tmp_path / "d.sqlite", WHOLE)
    for by in ("engine", "across"):
        assert run_plan(CHAIN, corpus, limit=1, by=by)[1].lost == 1
        for limit in (None, 4):  # the result tells
            with pytest.warns(RowsLostWarning, match=r"1 of 4 rows of d\.fact"):
                run_plan(CHAIN, corpus, limit=limit, by=by)


@pytest.mark.filterwarnings("ignore::tagframe.errors.CoercedKeysWarning")
@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        ([1, 2], ["1", "2"]),
        (["a", "B"], ["a", "b"]),
        ([1.0, 2.0], [1, 2]),
        ([1, "b"], [1, "b"]),
        ([b"a", b"b"], [b"a", b"c"]),
        ([1, 1.5], [1, 1.5]),
    ],
)
def test_what_sql_would_compare_otherwise_is_left_to_pandas(tmp_path, mine, theirs):
    rows = {**WHOLE, "fact": [(i, key, 10, 0.0) for i, key in enumerate(mine)],
            "dim": [(key, "n", 10) for key in theirs]}  # fmt: skip
    frame, report = run_plan(CHAIN, write(tmp_path / "d.sqlite", rows), **ALL)
    assert report.engine == "pandas"
    assert len(frame) == report.steps[0].matched > 0


NUMBERS = st.one_of(st.none(), st.integers(0, 5))
TEXTS = st.one_of(st.none(), st.sampled_from(["a", "A", "b", " b", "1", "01", ""]))
MIXED = st.one_of(NUMBERS, TEXTS, st.floats(0, 2).map(lambda x: round(x, 1)))
CELLS = st.sampled_from([NUMBERS, NUMBERS, TEXTS, MIXED])


@st.composite
def databases(draw: st.DrawFn) -> dict[str, list[tuple[Any, ...]]]:
    """Rows of the three tables; the keys of the dimensions are unique more often than not."""
    ks, ms, xs = draw(CELLS), draw(CELLS), draw(CELLS)
    numbers = st.integers(0, 9)
    unique = draw(st.sampled_from([True, True, False]))

    def rows(*columns: st.SearchStrategy[Any], key: int | None = None) -> list[tuple[Any, ...]]:
        by = (lambda row: row[key]) if key is not None and unique else None
        return draw(st.lists(st.tuples(*columns), max_size=7, unique_by=by))

    return {"fact": rows(numbers, ks, ms, xs), "dim": rows(ks, TEXTS, ms, key=0), "town": rows(ms, TEXTS, key=0)}


WHERES = st.one_of(
    st.none(),
    st.fixed_dictionaries({}, optional={"x": MIXED, "town.name": TEXTS, "id": st.lists(st.integers(0, 9))}),
)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::tagframe.errors.CoercedKeysWarning")
def test_both_ways_give_one_frame_and_one_report(tmp_path):
    engines: set[str] = set()

    @settings(max_examples=150)
    @given(
        databases(),
        st.sampled_from([CHAIN, STAR]),
        st.sampled_from(["inner", "left"]),
        WHERES,
        st.one_of(st.none(), st.integers(0, 5)),
        st.sampled_from(["", "INTEGER", "TEXT", "TEXT COLLATE NOCASE"]),
    )
    def compare(rows, plan, how, where, limit, declared):
        options = {"how": how, "where": where, "limit": limit, "on_loss": "allow", "on_fanout": "allow"}
        with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
            corpus = write(Path(folder) / "d.sqlite", rows, declared)
            try:
                _, report = alike(plan, corpus, typed=where is None and limit is None, **options)
            except InvalidArgument as error:  # numbers are declared to be text
                for by in (None, "memory"):
                    with pytest.raises(InvalidArgument, match=re.escape(str(error))):
                        run_plan(plan, corpus, by=by, **options)
                return
            engines.add(report.engine)
            for one in report.steps:
                assert one.rows_in == one.matched + one.unmatched_left

    compare()
    assert engines == {"sqlite", "pandas"}


def test_a_table_without_row_ids_cannot_start_a_merge_in_sqlite(tmp_path):
    with closing(sqlite3.connect(tmp_path / "d.sqlite")) as connection:
        connection.execute("CREATE TABLE fact (id INTEGER PRIMARY KEY, k, m, x) WITHOUT ROWID")
        connection.execute("CREATE TABLE dim (k INTEGER PRIMARY KEY, name, m) WITHOUT ROWID")
        connection.execute("INSERT INTO fact VALUES (1, 1, 1, 1)")
        connection.execute("INSERT INTO dim VALUES (1, 'a', 1)")
        connection.commit()
    plan = plan_of(step("fact", "dim", "k"))
    frame, report = run_plan(plan, open_corpus(tmp_path / "d.sqlite"), limit=1)
    assert (report.engine, frame["name"].tolist()) == ("pandas", ["a"])

"""Merges across engines: the frame and the counts of pandas, and only rows travel that may stand in the result."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psycopg
import pytest
from accounted import alike

import tagframe as tf
from tagframe.corpus.references import NamedTable
from tagframe.engines.duckdb.engine import LakePushdown
from tagframe.engines.postgres.engine import PostgresPushdown
from tagframe.errors import ServerGone, UnreadableTable
from tagframe.joins import JoinPlan, keys_on
from tagframe.merging import plan_tables, run_plan
from tests import opened_in

pytest.importorskip("duckdb")
QUIET: dict[str, Any] = {"on_loss": "allow", "on_ambiguous": "allow"}
ROWS = 3_000
TEXTS = ["Rome", "Oslo", "Łódź", "007", "St. John's", 'a"b\\c', "x,{y}"]


@pytest.fixture(scope="module")
def tables() -> dict[str, pd.DataFrame]:
    """A fact, two tables that it references, and one that one of these does; keys dangle, and are null."""
    generator = np.random.default_rng(0)
    fact = pd.DataFrame(
        {
            "sale_id": range(1, ROWS + 1),
            "cust": pd.array(generator.integers(1, 700, ROWS), "Int64"),
            "place": generator.choice(np.array([*TEXTS, "nowhere", None], dtype=object), ROWS),
            "amount": generator.random(ROWS).round(3),
            "paid": generator.integers(0, 2, ROWS) > 0,
        }
    )
    fact.loc[::13, "cust"] = pd.NA
    customer = pd.DataFrame(
        {
            "cust": range(1, 501),
            "name": [f"c{n}" for n in range(500)],
            "code": [["CZ", "DE", None][n % 3] for n in range(500)],
        }
    )
    place = pd.DataFrame({"place": TEXTS, "people": range(len(TEXTS))})
    country = pd.DataFrame({"code": ["CZ", "DE", "XX"], "country_name": ["Czechia", "Germany", None]})
    return {"fact": fact, "customer": customer, "place": place, "country": country}


TYPES = {
    "fact": "sale_id int PRIMARY KEY, cust bigint, place text, amount float8, paid boolean",
    "customer": "cust int PRIMARY KEY, name text, code text",
    "place": "place varchar(20) UNIQUE, people int",
    "country": "code text PRIMARY KEY, country_name text",
}


@pytest.fixture(scope="module")
def sources(tables, lasting, tmp_path_factory) -> dict[str, tf.Corpus]:
    """The same tables in each engine."""
    folder = tmp_path_factory.mktemp("crossing")
    return {
        "postgres": opened_in.postgres(lasting("crossing"), tables, analysed=True, types=TYPES),
        "lake": opened_in.lake(tables, folder / "lake", parts=3),
        "sqlite": opened_in.sqlite(tables, folder / "shop"),
        "frames": tf.open_corpus({f"frames.{name}": frame for name, frame in tables.items()}),
    }


PREFIXES = {"postgres": "public", "lake": "lake", "sqlite": "s", "frames": "frames"}
KEYS = {"customer": "cust", "place": "place", "country": "code"}


def planned(sources: dict[str, tf.Corpus], **homes: str) -> tuple[JoinPlan, tf.Corpus]:
    """``fact="postgres", customer="lake"``: the plan from the first table, and the corpus of both sources."""
    parts = [sources[home].subset([f"{PREFIXES[home]}.{name}"]) for name, home in homes.items()]
    corpus = parts[0]
    for part in parts[1:]:
        corpus = corpus.union(part)
    id_of = {name: f"{PREFIXES[home]}.{name}" for name, home in homes.items()}
    owner = {"country": "customer"}
    on = [
        f"{id_of[owner.get(name, 'fact')]}.{key} = {id_of[name]}.{key}" for name, key in KEYS.items() if name in homes
    ]
    named = [NamedTable.of(profile) for profile in corpus.profiles]
    plan = plan_tables(corpus, [*id_of.values()], given=keys_on(on, named))
    return plan.restarted(next(iter(id_of.values()))), corpus


def test_only_rows_that_match_travel_and_the_report_says_so(sources, tables):
    few = tf.open_corpus({"frames.customer": tables["customer"].head(5)})
    plan, corpus = planned({**sources, "frames": few}, fact="postgres", customer="frames")
    frame, report = run_plan(plan, corpus, **QUIET)
    (moved,) = report.moved
    assert (moved.table, moved.engine, moved.rows, moved.keys) == ("public.fact", "postgres", len(frame), 5)
    assert 0 < moved.rows < 0.02 * ROWS
    assert f"{moved.rows:,} rows of public.fact came from postgres" in " ".join(repr(report).split())
    assert "for 5 keys sent there" in " ".join(repr(report).split())
    assert "IN (… 5 keys …)" in report.sql
    assert report.to_dict()["moved"][0]["keys"] == 5
    assert report.lost == ROWS - len(frame)


def test_with_a_limit_no_table_is_read_whole_and_counts_come_later(sources):
    plan, corpus = planned(sources, fact="postgres", customer="lake", place="frames")
    frame, report = run_plan(plan, corpus, limit=10, on_loss="allow")
    read = {moved.table: moved.rows for moved in report.moved}
    assert (len(frame), read["public.fact"]) == (10, 1_000)
    assert read["lake.customer"] <= 500
    assert not report.is_counted
    assert report.start_rows == ROWS
    assert report.is_counted


def test_a_condition_on_one_engine_chooses_rows_of_the_next(sources):
    plan, corpus = planned(sources, fact="lake", customer="postgres", country="postgres")
    frame, report = run_plan(plan, corpus, where={"country_name": "Czechia", "name": ["c0", "c3", "c5"]}, **QUIET)
    country, keys, fact, *_ = report.moved
    assert (country.what, country.table, country.rows) == ("keys", "public.country", 1)
    assert (keys.what, keys.table, keys.keys, keys.rows) == ("keys", "public.customer", 1, 2)
    assert (fact.table, fact.keys) == ("lake.fact", 2)
    assert set(frame["name"]) <= {"c0", "c3"}
    narrow, report = run_plan(plan, corpus, where={"cust": 1}, **QUIET)
    assert {moved.table: moved.rows for moved in report.moved}["lake.fact"] == len(narrow)


def test_a_table_of_the_same_engine_chooses_rows_there(sources):
    plan, corpus = planned(sources, fact="postgres", customer="postgres", place="frames")
    frame, report = run_plan(plan, corpus, where={"name": "c7"}, **QUIET)
    keys, fact, *_ = report.moved
    assert (keys.what, keys.rows, fact.table, fact.keys) == ("keys", 1, "public.fact", 1)
    assert {moved.table: moved.rows for moved in report.moved}["public.fact"] <= len(frame) + 3


@pytest.mark.parametrize("key", ["n", "t"])
def test_a_condition_that_nulls_fit_too_leaves_out_what_the_others_do(tmp_path, key):
    near = pd.DataFrame(
        {"n": range(40), "t": [f"t{n}" for n in range(40)], "v": [[1, None, 2][n % 3] for n in range(40)]}
    )
    far = pd.DataFrame({"n": range(40), "t": [f"t{n}" for n in range(40)], "w": [n // 10 for n in range(40)]})
    with closing(sqlite3.connect(tmp_path / "a.sqlite")) as file:
        near.to_sql("near", file, index=False)
    corpus = tf.open_corpus(tmp_path / "a.sqlite", progress=False).union(tf.open_corpus({"b.far": far}))
    named = [NamedTable.of(profile) for profile in corpus.profiles]
    plan = plan_tables(corpus, ["a.near", "b.far"], anchor="a.near", given=keys_on(f"near.{key} = far.{key}", named))
    _, report = run_plan(plan, corpus, where={"v": [1, None], "w": 0}, by="across", **QUIET)
    (moved,) = report.moved
    assert (report.rows, moved.rows, moved.keys) == (7, 7, 10)


NEAR = [
    (["ROME", "Oslo"], ["rome", "Oslo", "Lima"]),
    (["007", "12"], ["7", "12", "13"]),
    (["007", "7", "x"], ["7", "12"]),
    (["007", "7"], ["7", "x"]),
    (["ab", "AB"], ["AB", "Ab"]),
    (["STRASSE"], ["straße"]),
    (["2020/3/1"], ["2020-03-01"]),
    ([" a", "a"], ["a"]),
    (["a\tb", "a"], ["a", "a\tb "]),
    (["+5", "0.50"], ["5", ".5"]),
    (["K"], ["\u212a"]),
]


@pytest.mark.filterwarnings("ignore::tagframe.errors.CoercedKeysWarning")
def test_text_that_may_mean_the_same_is_left_to_pandas(database):
    near = {}
    for number, (mine, theirs) in enumerate(NEAR):
        near[f"a{number}"] = pd.DataFrame({"x": range(3 * len(mine)), "k": mine * 3})
        near[f"b{number}"] = pd.DataFrame({"y": range(len(theirs)), "k": theirs})
    script = "".join(
        f"CREATE TABLE {name} ({frame.columns[0]} int, k text);"
        + "".join(f"INSERT INTO {name} VALUES ({row}, '{text}');" for row, text in frame.itertuples(index=False))
        for name, frame in near.items()
    )
    there = tf.open_corpus(database(script), progress=False)
    here = tf.open_corpus({f"frames.{name}": frame for name, frame in near.items()})
    for number in range(len(NEAR)):
        for start, other in (("public", "frames"), ("frames", "public")):
            ids = [f"{start}.a{number}", f"{other}.b{number}"]
            far = {"public": there, "frames": here}
            corpus = far[start].subset(ids[:1]).union(far[other].subset(ids[1:]))
            named = [NamedTable.of(profile) for profile in corpus.profiles]
            plan = plan_tables(corpus, ids, given=keys_on("k", named))
            for options in ({"limit": 5, "how": "left"}, {"where": {"y": [0, 1]}}):
                alike(plan, corpus, **QUIET, **options)


def test_a_server_that_goes_away_is_named_and_the_next_merge_goes_on(sources, postgres, monkeypatch):
    plan, corpus = planned(sources, fact="postgres", customer="lake")
    real = PostgresPushdown.rows

    def cut(self: PostgresPushdown, *args: Any) -> Any:
        pid = self._reads.fetch("SELECT pg_backend_pid() AS pid")["pid"][0].as_py()
        with psycopg.connect(postgres.url(), autocommit=True) as owner:
            owner.execute("SELECT pg_terminate_backend(%s)", [pid])
        return real(self, *args)

    with monkeypatch.context() as patch:
        patch.setattr(PostgresPushdown, "rows", cut)
        with pytest.raises(ServerGone, match="connection was lost"):
            run_plan(plan, corpus, limit=3)
    assert len(run_plan(plan, corpus, limit=3, on_loss="allow")[0]) == 3


def lake_of(tmp_path: Path, name: str, frame: pd.DataFrame) -> Path:
    """A folder with a table in two parts."""
    folder = tmp_path / "lake"
    (folder / name).mkdir(parents=True)
    for part, rows in enumerate((slice(None, 2), slice(2, None))):
        frame.iloc[rows].to_parquet(folder / name / f"part-{part}.parquet", index=False)
    return folder


def test_a_file_that_is_exchanged_during_a_merge_is_noticed(sources, tables, tmp_path, monkeypatch):
    folder = lake_of(tmp_path, "customer", tables["customer"])
    lake = tf.open_corpus(folder, progress=False)
    plan, corpus = planned({**sources, "lake": lake}, fact="postgres", customer="lake")
    real = LakePushdown.rows

    def exchanged(self: LakePushdown, *args: Any) -> Any:
        tables["customer"].tail(3).to_parquet(folder / "customer" / "part-1.parquet", index=False)
        return real(self, *args)

    monkeypatch.setattr(LakePushdown, "rows", exchanged)
    with pytest.raises(UnreadableTable, match=r"changed while it was read|cannot be read"):
        run_plan(plan, corpus, limit=3)

from __future__ import annotations

import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from accounted import alike

import tagframe as tf
from tagframe.errors import UnreadableTable
from tagframe.merging import plan_tables, run_plan

pytest.importorskip("duckdb")
ALLOWED: dict[str, Any] = {"on_loss": "allow", "on_ambiguous": "allow"}


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    return written(tmp_path / "dm")


def written(folder: Path) -> Path:
    generator, rows = np.random.default_rng(0), 3_000
    (folder / "fact").mkdir(parents=True)
    fact = pd.DataFrame(
        {
            "id": range(rows),
            "cust": pd.array(generator.integers(0, 120, rows), "Int64"),
            "place": generator.choice(np.array(["Rome", "Oslo", None], dtype=object), rows),
            "x": np.where(np.arange(rows) % 7, generator.random(rows), np.nan),
        }
    )
    fact.loc[::13, "cust"] = pd.NA
    for part in range(3):
        fact.iloc[part * 1_000 : (part + 1) * 1_000].to_parquet(folder / "fact" / f"part-{part}.parquet", index=False)
    customers = pd.DataFrame(
        {"cust": range(100), "name": [f"c{n}" for n in range(100)], "ok": [n % 2 > 0 for n in range(100)]}
    )
    customers.to_parquet(folder / "customers.parquet", index=False)
    pd.DataFrame({"place": ["Rome", "Oslo", "Lima"], "people": [3, 1, 9]}).to_parquet(
        folder / "places.parquet", index=False
    )
    return folder


def both(lake: Path) -> tuple[tf.Corpus, tf.Corpus]:
    """The tables where they are, and in memory."""
    there = opened(lake)
    return there, with_keys(tf.open_corpus({id: there.read(id) for id in there.ids}))


def opened(lake: Path) -> tf.Corpus:
    return with_keys(tf.open_corpus(lake))


def with_keys(corpus: tf.Corpus) -> tf.Corpus:
    corpus.keys.add("fact.cust = customers.cust")
    corpus.keys.add("fact.place = places.place")
    return corpus


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"limit": 20}, {"how": "outer"}, {"where": "x > .5"}], ids=str)
@pytest.mark.parametrize("kind", ["csv", "delta"])
def test_files_that_do_not_number_their_rows_start_a_merge_too(lake: Path, kind: str, options: dict[str, Any]):
    fact = pd.read_parquet(lake / "fact")
    shutil.rmtree(lake / "fact")
    if kind == "delta":
        pytest.importorskip("deltalake").write_deltalake(str(lake / "fact"), fact)
    else:
        (lake / "fact").mkdir()
        for part in range(2):
            fact.iloc[part * 1_500 :][:1_500].to_csv(lake / "fact" / f"part-{part}.csv", index=False)
    there, here = both(lake)
    for tables in ("fact customers places", "customers fact"):
        ids = [f"dm.{name}" for name in tables.split()]
        plans = [plan_tables(corpus, ids).restarted(ids[0]) for corpus in (there, here)]
        _, report = alike(plans[0], there, base=(plans[1], here), on_fanout="allow", **ALLOWED, **options)
        assert report.engine == "duckdb"


def test_text_that_matches_only_in_canonical_form_is_left_to_pandas(lake: Path):
    pd.DataFrame({"place": ["rome ", "Oslo"], "people": [3, 1]}).to_parquet(lake / "places.parquet", index=False)
    corpus = opened(lake)
    with pytest.warns(match="only after coercion"):
        frame, report = run_plan(plan_tables(corpus, ["dm.fact", "dm.places"]), corpus, **ALLOWED)
    assert report.engine == "pandas"
    assert set(frame["place"]) == {"Rome", "Oslo"}


def test_the_report_is_counted_when_it_is_looked_at(lake: Path):
    corpus = opened(lake)
    frame, report = run_plan(plan_tables(corpus, ["dm.fact", "dm.customers"]), corpus, limit=5, **ALLOWED)
    assert not report.is_counted
    assert report.sql.startswith("SELECT")
    assert (len(frame), report.rows, report.engine) == (5, 5, "duckdb")
    assert report.steps[0].rows_in == 3_000
    assert report.lost == 3_000 - report.steps[0].matched
    assert pickle.loads(pickle.dumps(report)) == report
    frame, later = run_plan(plan_tables(corpus, ["dm.fact", "dm.customers"]), corpus, limit=5, **ALLOWED)
    assert "Merged from dm.fact (3,000 rows)" in repr(later)


def test_a_file_that_is_gone_or_cut_off_is_named_and_the_next_merge_goes_on(lake: Path):
    corpus = opened(lake)
    plan = plan_tables(corpus, ["dm.fact", "dm.customers"])
    path = lake / "fact" / "part-1.parquet"
    kept = path.read_bytes()
    path.unlink()
    with pytest.raises(UnreadableTable, match=r"part-1\.parquet no longer exists"):
        run_plan(plan, corpus, **ALLOWED)
    path.write_bytes(kept[:300])
    with pytest.raises(UnreadableTable, match=r"part-1\.parquet"):
        run_plan(plan, corpus, **ALLOWED)
    path.write_bytes(kept)
    assert len(run_plan(plan, corpus, **ALLOWED)[0]) > 2_000


def test_whole_numbers_with_and_without_a_sign_are_joined_by_duckdb(tmp_path: Path):
    order = pd.DataFrame({"order_id": range(4), "part_id": pd.array([1, 2, 2**64 - 1, 3], "UInt64")})
    part = pd.DataFrame({"part_id": pd.array([1, 2, -1, 3], "Int64"), "title": list("abcd")})
    order.to_parquet(tmp_path / "orders.parquet")
    part.to_parquet(tmp_path / "parts.parquet")
    corpus = tf.open_corpus(tmp_path, engine="duckdb")
    plan = plan_tables(corpus, corpus.ids)
    frame, _ = run_plan(plan, corpus, by="engine", **ALLOWED)
    assert frame["title"].tolist() == ["a", "b", "d"]
    beside, _ = run_plan(plan, corpus, by="memory", **ALLOWED)
    pd.testing.assert_frame_equal(frame, beside)


@pytest.mark.parametrize("how", ["inner", "left"])
@pytest.mark.parametrize("columns", [["id"], ["id", "name"], ["id", "people", "ok"]])
def test_the_counts_of_large_tables_wait_for_the_report(lake, how, columns, monkeypatch, caplog):
    monkeypatch.setattr("tagframe.merging.where._MAX_COUNTED_ROWS", 10)
    corpus = opened(lake)
    plan = plan_tables(corpus, corpus.ids).restarted("dm.fact")
    with caplog.at_level("DEBUG", "tagframe"):
        _, report = run_plan(plan, corpus, how=how, where={"id": range(9)}, columns=columns)
        before = sum(line.startswith("statement") for line in caplog.messages)
        assert report.start_rows == 3_000
    statements = [line for line in caplog.messages if line.startswith("statement")]
    assert len(statements) == before + 1
    assert sum("HAVING" in line for line in statements) == 1  # of all keys at once

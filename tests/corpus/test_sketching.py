"""Sketches of all values, from sources of whose rows profiles know a sample."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tagframe as tf
from tagframe.corpus import profiler
from tagframe.corpus.profiler import profile_table, sketch_of, with_whole_sketches
from tagframe.engines.base import TableShape
from tagframe.keys.inference import infer_key_pairs
from tagframe.merging import plan_tables

pytest.importorskip("duckdb")

pytestmark = pytest.mark.slow

COLUMNS = {
    "t": ("text", pa.string(), ["a", "A", " a ", "\u0141\u00f3d\u017a", "007", "7.50", "1e3", "2020/3/1", "", "0x1F"]),
    "i": ("bigint", pa.int64(), [0, -5, 7, 2**62, -(2**63)]),
    "f": ("float8", pa.float64(), [0.0, -0.0, 1 / 3, 2.5e-5, 1e16, 5e-324, float("nan"), float("inf")]),
    "d": ("date", pa.date32(), [dt.date(2020, 3, 1), dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
    "m": ("timestamp", pa.timestamp("us"), [dt.datetime(2020, 3, 1), dt.datetime(2020, 3, 1, 0, 0, 0, 500_000)]),
    "n": ("numeric(12, 3)", pa.decimal128(12, 3), [Decimal("0"), Decimal("1.50"), Decimal("-12.345")]),
}


@pytest.mark.parametrize("is_server", [False, True])
def test_of_every_type_the_sketch_is_that_of_the_rows(tmp_path, database, is_server):
    padded = {name: [*values, *[None] * (10 - len(values))] for name, (_, _, values) in COLUMNS.items()}
    if is_server:
        declared = ", ".join(f"{name} {kind}" for name, (kind, *_) in COLUMNS.items())
        source = database(f"CREATE TABLE everything ({declared})")
        with psycopg.connect(source, autocommit=True) as owner, owner.cursor() as cursor:
            marks = ", ".join(["%s"] * len(COLUMNS))
            cursor.executemany(f"INSERT INTO everything VALUES ({marks})", list(zip(*padded.values(), strict=True)))
    else:
        source = tmp_path / "lake"
        (source / "everything").mkdir(parents=True)
        rows = pa.table({name: pa.array(values, COLUMNS[name][1]) for name, values in padded.items()})
        for part in range(2):
            pq.write_table(rows, source / "everything" / f"part-{part}.parquet")
    corpus = tf.open_corpus(source, progress=False)
    engine, name = corpus.engine(corpus.ids[0]), corpus.source_table(corpus.ids[0])
    frame = engine.scan(name)
    profile = profile_table(
        "x", TableShape(name, tuple(frame), ("",) * len(COLUMNS)), engine.chunks(TableShape(name, tuple(frame), ()))
    )
    with engine.pushdown([name]) as pushdown:
        for column in profile.columns:
            assert sketch_of(pushdown.distinct(name, column.name)) == column.sketch


@pytest.fixture
def sampled(database) -> tf.Corpus:
    """Tables of which the profiles know a sample; their names say nothing of the keys, or too much."""
    url = database(
        "CREATE TABLE visit AS SELECT n AS visit_id, 'P-' || (n * 7) % 30000 AS tag, (n * 7) % 30000 AS box_id "
        "FROM generate_series(1, 60000) n;"
        "CREATE TABLE person AS SELECT 'p-' || n AS tag, n % 10 AS grp FROM generate_series(0, 29999) n;"
        "CREATE TABLE box AS SELECT n AS box_id, 'b' AS kind FROM generate_series(900000, 930000) n; ANALYZE"
    )
    return tf.open_corpus(url, progress=False)


def test_a_key_of_which_samples_do_not_tell_has_its_values_by_whole_sketches(sampled):
    ids = ["public.visit", "public.person"]
    profiles = [sampled.profile(id) for id in ids]
    assert all(profile.estimated for profile in profiles)
    assert profiles[1].column("tag").sketch.sampled
    key = ("public.visit.tag", "public.person.tag")
    before = {(pair.left, pair.right): pair for pair in infer_key_pairs(profiles, min_score=0.01)}
    known = with_whole_sketches(sampled, profiles, lambda column: column.family in ("integer", "text"))
    assert not known[1].column("tag").sketch.sampled
    after = {(pair.left, pair.right): pair for pair in infer_key_pairs(known)}
    assert before[key].evidence.contained is None
    assert after[key].evidence.contained == 1.0
    assert after[key].score > before[key].score
    (step,) = plan_tables(sampled, ids).steps
    assert step.key.evidence.contained == 1.0


def test_tables_that_are_too_large_keep_the_sketch_of_a_sample(sampled, monkeypatch):
    monkeypatch.setattr(profiler, "MOST_CELLS", 70_000)
    visit, person = with_whole_sketches(
        sampled, [sampled.profile("public.visit"), sampled.profile("public.person")], lambda column: True
    )
    assert [column.sketch.sampled for column in visit.columns] == [False, True, True]
    assert not any(column.sketch.sampled for column in person.columns)

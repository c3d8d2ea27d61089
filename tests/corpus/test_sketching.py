"""Sketches that PostgreSQL and DuckDB compute: those that the profiler makes of the same values."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pandas as pd
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tagframe as tf
from tagframe.corpus import sketching
from tagframe.corpus.profiler import profile_table
from tagframe.corpus.sketching import sketch_of, with_whole_sketches
from tagframe.engines.base import TableShape
from tagframe.keys.inference import infer_key_pairs
from tagframe.merging import plan_tables

pytest.importorskip("duckdb")

pytestmark = pytest.mark.slow

TEXTS = [
    *(
        "a",
        "A",
        " a ",
        "Łódź",
        "e\u0301",
        "é",
        "ß",
        "SS",
        "x'y",
        'q"',
        "\\",
        "\u00a0a",
        "\u212a",
        "İ",
        "a\tb",
        "",
        "  ",
        "\t",
    ),
    *(
        "7",
        "007",
        "+7",
        "-7",
        "7.0",
        "7.50",
        ".5",
        "-.5",
        "5.",
        "0",
        "-0",
        "00",
        "-0.00",
        "000.10",
        "1e3",
        "12E4",
        "1 000",
    ),
    *(".", "+", "-", "--5", "+-5", "1.2.3", "0x1F", "1.5-2", "12-34-56", "+12-/", "true", "FALSE"),
    *("2020-03-01", "2020/3/1", "2020-3-1", "2020-13-45", "2020-03-01 00:00:00", "2020-03-01T10:00:00.500"),
    *("2020-03-01 10:00:00+02:00", "550e8400-e29b-41d4-a716-446655440000", "9" * 59, "9" * 61, "0" * 70),
    "1" * 30 + "." + "2" * 40,
]
FLOATS = [
    *(0.0, -0.0, 1.0, -1.0, 0.1, 1 / 3, 2.5e-5, 1e-4, 9.99e-5, 123456789.125, 1e14, 1e15, 1e16, 1.7e308, 5e-324),
    *(-2.5, 100.0, 1e22, 0.30000000000000004, 4503599627370496.5, float("nan"), float("inf")),
]
MOMENTS = [dt.datetime(2020, 3, 1), dt.datetime(2020, 3, 1, 10), dt.datetime(2020, 3, 1, 10, 0, 0, 500_000),
           dt.datetime(2020, 3, 1, 0, 0, 0, 1), dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59),
           dt.datetime(1960, 2, 29, 12, 30, 1, 120_000)]  # fmt: skip
DAYS = [dt.date(2020, 3, 1), dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1960, 2, 29)]
BYTES = [b"", b"a", bytes(range(64)), bytes(range(65)), b"\xff" * 200]
DECIMALS = [Decimal(text) for text in ("0", "-0.00", "1.50", "100", "-12.345", "99999.999", "0.001")]

COLUMNS: dict[str, tuple[str, Any, list[Any]]] = {
    "t": ("text", pa.string(), TEXTS),
    "i": ("bigint", pa.int64(), [0, -5, 7, 2**62, -(2**63)]),
    "s": ("smallint", pa.int16(), [0, -5, 7]),
    "f": ("float8", pa.float64(), FLOATS),
    "b": ("boolean", pa.bool_(), [True, False]),
    "d": ("date", pa.date32(), DAYS),
    "m": ("timestamp", pa.timestamp("us"), MOMENTS),
    "x": ("bytea", pa.binary(), BYTES),
    "n": ("numeric(12, 3)", pa.decimal128(12, 3), DECIMALS),
}
MORE: dict[str, tuple[str, list[str]]] = {
    "z": ("timestamptz", ["2020-03-01 00:00:00+00", "2020-03-01 10:00:00.5+02", "1960-01-01 00:00:00+01"]),
    "w": ("numeric", ["1e70", "1.5", "NaN", "1e-70", "-0.0"]),
    "u": ("uuid", ["550e8400-e29b-41d4-a716-446655440000", "12345678-e29b-41d4-a716-446655440000"]),
    "j": ("jsonb", ['{"a": [1, "Ä"]}', "7", '"x"']),
    "h": ("date", ["2020-03-01", "infinity", "0044-03-15 BC"]),
    "c": ("char(4)", ["ab", "7"]),
    "v": ("interval", ["1 day", "02:00"]),
}


def padded(values: list[Any]) -> list[Any]:
    return [*values, *[None] * (len(TEXTS) - len(values))]


def read_here(corpus: tf.Corpus, table: str) -> dict[str, Any]:
    """The profiler's sketches of the rows, read whole."""
    engine = corpus.engine(table)
    assert engine is not None
    shape = TableShape(corpus.source_table(table), tuple(c.name for c in corpus.profile(table).columns), ("",) * 99)
    frame = engine.scan(shape.name)
    shape = TableShape(shape.name, tuple(frame.columns), ("",) * frame.shape[1])
    profile = profile_table("x", shape, engine.chunks(shape))
    return {column.name: column.sketch for column in profile.columns}


def computed_there(corpus: tf.Corpus, table: str, most: int = 2049) -> dict[str, Any]:
    engine, name, found = corpus.engine(table), corpus.source_table(table), {}
    assert engine is not None
    block = engine.pushdown([name])
    assert block is not None
    with block as pushdown:
        for column in corpus.profile(table).columns:
            hashes = pushdown.hashes(name, column.name, most, 1_000)
            found[column.name] = None if hashes is None else sketch_of(hashes)
    return found


def test_of_every_type_postgres_computes_the_sketch_of_the_same_values_read_here(database):
    declared = ", ".join(f"{name} {kind}" for name, (kind, *_) in {**COLUMNS, **MORE}.items())
    url = database(f"CREATE TABLE everything ({declared})")
    with psycopg.connect(url, autocommit=True) as owner, owner.cursor() as cursor:
        values = [padded(values) for *_, values in [*COLUMNS.values(), *MORE.values()]]
        marks = ", ".join(["%s"] * len(COLUMNS) + [f"%s::text::{kind}" for kind, _ in MORE.values()])
        cursor.executemany(f"INSERT INTO everything VALUES ({marks})", list(zip(*values, strict=True)))
    corpus = tf.open_corpus(url, progress=False)
    here, there = read_here(corpus, "public.everything"), computed_there(corpus, "public.everything")
    assert {name: there[name] == sketch for name, sketch in here.items()} == dict.fromkeys([*COLUMNS, *MORE], True)


def test_of_every_type_duckdb_computes_the_sketch_of_the_same_values_read_here(tmp_path):
    folder = tmp_path / "lake" / "everything"
    folder.mkdir(parents=True)
    table = pa.table({name: pa.array(padded(values), kind) for name, (_, kind, values) in COLUMNS.items()})
    for part in range(2):
        pq.write_table(table, folder / f"part-{part}.parquet")
    corpus = tf.open_corpus(tmp_path / "lake", progress=False)
    here, there = read_here(corpus, "lake.everything"), computed_there(corpus, "lake.everything")
    assert {name: there[name] == sketch for name, sketch in here.items()} == dict.fromkeys(COLUMNS, True)


def test_of_many_values_the_smallest_hashes_are_kept(database, tmp_path):
    words = pd.DataFrame({"k": [f"Ö{n}" if n % 50 == 0 else f"Word {n}" for n in range(4_000)], "i": range(4_000)})
    folder = tmp_path / "lake" / "words"
    folder.mkdir(parents=True)
    for part in range(2):
        words.iloc[part::2].to_parquet(folder / f"part-{part}.parquet", index=False)
    lake = tf.open_corpus(tmp_path / "lake", progress=False)
    server = tf.open_corpus(
        database(
            "CREATE TABLE words AS SELECT CASE WHEN n % 50 = 0 THEN 'Ö' || n ELSE 'Word ' || n END AS k, n AS i "
            "FROM generate_series(0, 3999) n"
        ),
        progress=False,
    )
    here = read_here(lake, "lake.words")
    assert not here["k"].complete
    assert computed_there(lake, "lake.words") == here == computed_there(server, "public.words")
    # What cannot be said in SQL is not fetched without end.
    engine = server.engine("public.words")
    assert engine is not None
    with engine.pushdown(["public.words"]) as pushdown:
        assert pushdown.hashes("public.words", "k", 10, 79) is None
        assert len(pushdown.hashes("public.words", "k", 10, 80).odd) == 80


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
    monkeypatch.setattr(sketching, "MOST_CELLS", 70_000)
    visit, person = with_whole_sketches(
        sampled, [sampled.profile("public.visit"), sampled.profile("public.person")], lambda column: True
    )
    assert [column.sketch.sampled for column in visit.columns] == [False, True, True]
    assert not any(column.sketch.sampled for column in person.columns)

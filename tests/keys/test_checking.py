"""Pairs in doubt are looked up where the tables are, in a bounded statement."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import tagframe as tf
from tagframe.corpus import profiler
from tagframe.engines.postgres.connection import Reading
from tagframe.errors import ServerGone
from tagframe.joins import infer
from tagframe.keys.checking import contains_in
from tagframe.keys.inference import infer_key_pairs
from tagframe.merging import plan_tables

pytestmark = pytest.mark.slow

SCRIPT = """
CREATE TABLE sale AS
    SELECT n AS sale_id, 1 + (n * 7) % 40000 AS box_id, 1 + n % 30000 AS shop_id, 'c' || n % 900 AS code
    FROM generate_series(1, 80000) n;
CREATE TABLE box AS SELECT n AS box_id, n * 0.5 AS weight FROM generate_series(1, 40000) n;
CREATE TABLE shop AS SELECT n * 1000003::bigint AS shop_id, 'x' AS kind FROM generate_series(1, 30000) n;
CREATE TABLE codes AS SELECT 'c' || n AS code FROM generate_series(0, 29999) n;
ANALYZE;
"""


@pytest.fixture(scope="module")
def corpus(lasting) -> tf.Corpus:
    return tf.open_corpus(lasting("checking", SCRIPT), progress=False)


def test_within_a_server_some_values_are_looked_up_by_two_statements(corpus, monkeypatch):
    sent = []
    real = Reading.fetch

    def noted(self: Reading, sql: str, *more: Any, **named: Any) -> Any:
        sent.append(sql)
        return real(self, sql, *more, **named)

    monkeypatch.setattr(Reading, "fetch", noted)
    contains = contains_in(corpus)
    found = contains("public.sale", "box_id", "public.box", "box_id")
    assert (found.share, found.seen) == (1.0, 1_000)
    assert 0 < found.error < 0.01
    some, counted = (sql for sql in sent if "pg_class" not in sql)
    assert "LIMIT 1000" in some
    assert "TABLESAMPLE" in some
    assert "count(*)" in counted
    assert contains("public.sale", "shop_id", "public.shop", "shop_id").share == 0.0
    assert contains("public.sale", "code", "public.codes", "code").seen == 900
    assert contains("public.sale", "code", "public.box", "box_id") is None


def test_between_a_server_and_a_folder_values_are_sent(corpus, tmp_path: Path):
    pytest.importorskip("duckdb")
    folder = tmp_path / "lake" / "boxes"
    folder.mkdir(parents=True)
    for part in range(2):
        pd.DataFrame({"box": range(part * 10_000 + 1, part * 10_000 + 10_001)}).to_parquet(
            folder / f"part-{part}.parquet"
        )
    contains = contains_in(corpus.union(tf.open_corpus(tmp_path / "lake", progress=False)))
    assert contains("lake.boxes", "box", "public.box", "box_id").share == 1.0
    assert 0.3 < contains("public.box", "box_id", "lake.boxes", "box").share < 0.7


def test_a_pair_that_names_speak_for_is_kept_or_dropped_by_what_the_server_holds(corpus):
    profiles = [corpus.profile(f"public.{name}") for name in ("sale", "box", "shop")]
    assert all(profile.estimated for profile in profiles)
    before = {(pair.left, pair.right): pair for pair in infer_key_pairs(profiles)}
    after = {(pair.left, pair.right): pair for pair in infer_key_pairs(profiles, contains=contains_in(corpus))}
    box, shop = ("public.sale.box_id", "public.box.box_id"), ("public.sale.shop_id", "public.shop.shop_id")
    assert before[box].evidence.contained is None
    assert after[box].evidence.contained == 1.0
    assert after[box].score >= before[box].score
    assert shop not in after


def test_a_server_that_is_slow_tells_nothing_and_one_that_is_gone_is_named(corpus, monkeypatch):
    monkeypatch.setattr(profiler, "SECONDS", 0.001)
    assert contains_in(corpus)("public.sale", "box_id", "public.box", "box_id") is None
    monkeypatch.undo()

    def gone(self: Reading, *args: object, **named: object) -> None:
        raise ServerGone("the server went away")

    monkeypatch.setattr(Reading, "fetch", gone)
    with pytest.raises(ServerGone):
        contains_in(corpus)("public.sale", "box_id", "public.box", "box_id")


def test_where_declared_keys_connect_the_tables_nothing_is_looked_up(database, monkeypatch):
    url = database(
        "CREATE TABLE box (box_id int PRIMARY KEY); INSERT INTO box SELECT generate_series(1, 40000);"
        "CREATE TABLE sale AS SELECT n AS sale_id, 1 + n % 40000 AS box_id FROM generate_series(1, 60000) n;"
        "ALTER TABLE sale ADD FOREIGN KEY (box_id) REFERENCES box; ANALYZE"
    )
    corpus = tf.open_corpus(url, progress=False)
    monkeypatch.setattr(infer, "with_whole_sketches", lambda *args: pytest.fail("looked"))
    assert plan_tables(corpus, ["public.sale", "public.box"]).steps[0].key.evidence.origin == "declared"

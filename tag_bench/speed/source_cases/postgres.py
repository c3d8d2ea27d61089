"""PostgreSQL: a schema of thousands of tables, a large fact with dimensions, and the transfer of a million rows.

The command starts its own server (:mod:`tag_bench.postgres_server`). Each side uses an open connection, after a
warm-up query, because both drivers load their libraries with their first query.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from tag_bench.postgres_server import postgres_server
from tag_bench.speed.source_cases.case import Figures, SourceCase

_WORDS = "order customer invoice shipment product supplier payment account ticket visit claim policy branch asset event"
_TABLES, _FACTS, _ROWS = 10_000, 10_000_000, 1_000_000
_REPEATS = 5
_QUESTIONS = 20


@contextmanager
def _database(*scripts: str) -> Iterator[str]:
    import psycopg

    with postgres_server() as server:
        with psycopg.connect(server.url(), autocommit=True) as owner:
            for script in scripts:
                owner.execute(script)
        # In a separate session: the server updates its counts of written rows when a session ends.
        with psycopg.connect(server.url(), autocommit=True) as owner:
            owner.execute("VACUUM ANALYZE")
        yield server.url()


@contextmanager
def _many_tables(_: Path, scale: float) -> Iterator[str]:
    words = _WORDS.split()
    scripts = ["CREATE SCHEMA lake"]
    for number in range(round(_TABLES * scale)):
        word, other = words[number % len(words)], words[(number + 3) % len(words)]
        scripts.append(
            f"CREATE TABLE lake.{word}_{number} (id int PRIMARY KEY, name text, {other}_id int, created date, "
            f"amount numeric(10, 2)); INSERT INTO lake.{word}_{number} SELECT g, '{word} ' || g, (g * 7) % 100, "
            "date '2020-01-01' + g % 300, g * 1.5 FROM generate_series(1, 100) g"
        )
    with _database(*scripts) as url:
        yield url


def _opened(url: str, _: Path) -> Figures:
    import tagframe

    started, cpu = time.perf_counter(), time.process_time()
    corpus = tagframe.open_corpus(url, progress=False)
    return {
        "tables": len(corpus),
        "seconds": time.perf_counter() - started,
        "cpu_seconds": time.process_time() - cpu,
    }


def _retrieved(url: str, _: Path) -> Figures:
    import tagframe
    from tagframe.embed import get_embedder

    corpus = tagframe.open_corpus(url, progress=False)
    embedder = get_embedder()
    assert embedder is not None
    embedder.encode(["a word that loads the encoder"])
    times = []
    for number in range(_QUESTIONS + 1):
        words = _WORDS.split()
        one, other = words[number % len(words)], words[(number + 5) % len(words)]
        started = time.perf_counter()
        corpus.tables.tag.retrieve_tables(f"What is the amount of each {one} by the name of its {other}?", k=5)
        times.append(time.perf_counter() - started)
    return {"first_seconds": times[0], "median_ms": 1000 * statistics.median(times[1:])}


_STAR = """
CREATE SCHEMA shop;
CREATE TABLE shop.region (region_id int PRIMARY KEY, region_name text);
INSERT INTO shop.region SELECT g, 'region ' || g FROM generate_series(1, 50) g;
CREATE TABLE shop.customer (customer_id int PRIMARY KEY, customer_name text, segment text);
INSERT INTO shop.customer SELECT g, 'customer ' || g, 's' || g % 5 FROM generate_series(1, 100000) g;
CREATE TABLE shop.product (product_id int PRIMARY KEY, product_name text, price numeric(10, 2));
INSERT INTO shop.product SELECT g, 'product ' || g, g * 0.5 FROM generate_series(1, 10000) g;
CREATE TABLE shop.sale (sale_id int PRIMARY KEY, customer_id int NOT NULL, product_id int NOT NULL,
    region_id int NOT NULL,
    quantity int, sold date);
INSERT INTO shop.sale SELECT g, 1 + (g::bigint * 7919) % 100000, 1 + (g::bigint * 104729) % 10000, 1 + g % 50, g % 9,
    date '2020-01-01' + g % 1000 FROM generate_series(1, {rows}) g;
ALTER TABLE shop.sale ADD FOREIGN KEY (customer_id) REFERENCES shop.customer, ADD FOREIGN KEY (product_id)
    REFERENCES shop.product, ADD FOREIGN KEY (region_id) REFERENCES shop.region;
"""
_BY_HAND = """SELECT s.*, c.customer_name, c.segment, p.product_name, p.price::text, r.region_name
FROM shop.sale s JOIN shop.customer c ON s.customer_id = c.customer_id
JOIN shop.product p ON s.product_id = p.product_id JOIN shop.region r ON s.region_id = r.region_id"""


def _star(rows: int) -> Callable[[Path, float], AbstractContextManager[str]]:
    return lambda _, scale: _database(_STAR.format(rows=round(rows * scale)))


def _found(url: str) -> Any:
    import tagframe

    corpus = tagframe.open_corpus(url, progress=False)
    question = "the quantity of each sale with customer name, product name and region name"
    found = corpus.tables.tag.retrieve_tables(question, k=4)
    assert set(found.join_plan.tables) == set(corpus.ids), found.join_plan
    return found


def _beside(url: str, merged: Callable[[Any], Any], sql: str) -> Figures:
    """Our merge, compared with a hand-written statement over ADBC; the medians of alternating runs."""
    import adbc_driver_postgresql.dbapi as adbc

    found = _found(url)
    ours, hand, travelled = [], [], []
    with adbc.connect(url) as connection, connection.cursor() as cursor:
        for _ in range(_REPEATS):
            before = _received()
            started = time.perf_counter()
            frame = merged(found)
            ours.append(time.perf_counter() - started)
            travelled.append(_received() - before)
            started = time.perf_counter()
            cursor.execute(sql)
            by_hand = cursor.fetch_arrow_table().to_pandas()
            hand.append(time.perf_counter() - started)
            assert len(frame) == len(by_hand)
    started = time.perf_counter()
    assert frame.tag.merge_report.start_rows
    return {
        "rows": len(frame),
        "engine_is_postgres": float(frame.tag.merge_report.engine == "postgres"),
        "ms": 1000 * statistics.median(ours),
        "by_hand_ms": 1000 * statistics.median(hand),
        "ratio": statistics.median(ours) / statistics.median(hand),
        "received_kb": statistics.median(travelled) / 1000,
        "result_kb": float(frame.memory_usage(deep=True).sum()) / 1000,
        "report_seconds": time.perf_counter() - started,
    }


def _received() -> int:
    """Bytes transferred over this machine's loopback; 0 if the system does not report them."""
    try:
        lines = Path("/proc/net/dev").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.split()[:1] == ["lo:"]), 0)


def _limited(url: str, _: Path) -> Figures:
    return _beside(url, lambda found: found.merge(limit=100), f"{_BY_HAND} LIMIT 100")


def _filtered(url: str, _: Path) -> Figures:
    where = {"product_name": "product 77", "segment": "s3"}
    sql = f"{_BY_HAND} WHERE p.product_name = 'product 77' AND c.segment = 's3' LIMIT 100"
    return _beside(url, lambda found: found.merge(where=where, limit=100), sql)


def _whole(url: str, _: Path) -> Figures:
    import pandas as pd
    import sqlalchemy

    found = _found(url)
    ours, theirs = [], []
    engine = sqlalchemy.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.connect() as connection:
        for _repeat in range(_REPEATS):
            started = time.perf_counter()
            frame = found.merge()
            ours.append(time.perf_counter() - started)
            started = time.perf_counter()
            other = pd.read_sql(sqlalchemy.text(_BY_HAND), connection)
            theirs.append(time.perf_counter() - started)
            assert len(frame) == len(other)
    return {
        "rows": len(frame),
        "seconds": statistics.median(ours),
        "read_sql_seconds": statistics.median(theirs),
        "ratio": statistics.median(ours) / statistics.median(theirs),
    }


POSTGRES_SCHEMA = SourceCase(
    "postgres_schema", _many_tables, {"open first": _opened, "open again": _opened, "retrieve": _retrieved}
)
POSTGRES_MERGE = SourceCase("postgres_merge", _star(_FACTS), {"limit": _limited, "where and limit": _filtered})
POSTGRES_WHOLE = SourceCase("postgres_whole", _star(_ROWS), {"whole": _whole})

"""The cases of ``tag_bench speed sources``; run as a module, one step of one, which prints its figures.

Each case makes its tables, which is not measured. PostgreSQL: a schema of thousands of tables, a large fact with
dimensions, and the transfer of a million rows; each side uses an open connection, after a warm-up query, because both
drivers load their libraries with their first query. Parquet: a fact of 50 million rows, and two tables that it
references; an operator over more rows than fit into one frame, one batch at a time, and over Dask, with and without a
killed worker.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import tagframe as tf
from tag_bench.measured import memory_mb, peak_mb, timed
from tag_bench.postgres_server import postgres_server
from tag_bench.server import ServerProcess

Figures = dict[str, float]
"""Figures by name; the name contains the unit: ``seconds``, ``peak_mb``, ``bytes``, ``ratio``, …."""


@dataclass(frozen=True)
class SourceCase:
    """Work over tables that stay in their source.

    Attributes:
        name: for ``--case``.
        source: makes the tables (not measured), from an empty folder for the case and a scale (1 for the full sizes);
            gives their location for the steps (a path, a URL).
        steps: by name, in this order. Each runs in a new process, in the same folder, and gives figures from the
            location and the folder. The runner adds ``peak_mb``, the memory above that at the start of the process.
    """

    name: str
    source: Callable[[Path, float], AbstractContextManager[str]]
    steps: Mapping[str, Callable[[str, Path], Figures]]


# --- PostgreSQL

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
    cpu = time.process_time()
    seconds, corpus = timed(lambda: tf.open_corpus(url, progress=False))
    return {"tables": len(corpus), "seconds": seconds, "cpu_seconds": time.process_time() - cpu}


def _retrieved(url: str, _: Path) -> Figures:
    from tagframe.embed import get_embedder

    corpus = tf.open_corpus(url, progress=False)
    embedder = get_embedder()
    assert embedder is not None
    embedder.encode(["a word that loads the encoder"])
    times = []
    for number in range(_QUESTIONS + 1):
        words = _WORDS.split()
        one, other = words[number % len(words)], words[(number + 5) % len(words)]
        question = f"What is the amount of each {one} by the name of its {other}?"
        times.append(timed(partial(corpus.tables.tag.retrieve_tables, question, k=5))[0])
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
    corpus = tf.open_corpus(url, progress=False)
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

        def by_hand() -> pd.DataFrame:
            cursor.execute(sql)
            rows: pd.DataFrame = cursor.fetch_arrow_table().to_pandas()
            return rows

        for _ in range(_REPEATS):
            before = _received()
            seconds, frame = timed(lambda: merged(found))
            ours.append(seconds)
            travelled.append(_received() - before)
            seconds, same = timed(by_hand)
            hand.append(seconds)
            assert len(frame) == len(same)
    report_seconds, _ = timed(lambda: frame.tag.merge_report.start_rows)
    return {
        "rows": len(frame),
        "engine_is_postgres": float(frame.tag.merge_report.engine == "postgres"),
        "ms": 1000 * statistics.median(ours),
        "by_hand_ms": 1000 * statistics.median(hand),
        "ratio": statistics.median(ours) / statistics.median(hand),
        "received_kb": statistics.median(travelled) / 1000,
        "result_kb": float(frame.memory_usage(deep=True).sum()) / 1000,
        "report_seconds": report_seconds,
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
    import sqlalchemy

    found = _found(url)
    ours, theirs = [], []
    engine = sqlalchemy.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.connect() as connection:
        for _repeat in range(_REPEATS):
            seconds, frame = timed(found.merge)
            ours.append(seconds)
            seconds, other = timed(lambda: pd.read_sql(sqlalchemy.text(_BY_HAND), connection))
            theirs.append(seconds)
            assert len(frame) == len(other)
    return {
        "rows": len(frame),
        "seconds": statistics.median(ours),
        "read_sql_seconds": statistics.median(theirs),
        "ratio": statistics.median(ours) / statistics.median(theirs),
    }


# --- Parquet

_ORDERS, _CUSTOMERS, _PRODUCTS, _FILES = 50_000_000, 1_000_000, 50_000, 10
_PASSING = 7
"""The selected region, one of 100: 1 % of the customers, and of their orders."""

_LAKE_TABLES = ["orders", "customers", "products"]
_LAKE_SQL = """
SELECT o.order_id, o.customer_id, o.product_id, o.amount, o.placed, c.name, c.region_id, p.title, p.price
FROM read_parquet('{source}/orders/*.parquet') o
JOIN read_parquet('{source}/customers.parquet') c USING (customer_id)
JOIN read_parquet('{source}/products.parquet') p USING (product_id)
WHERE c.region_id = {region}
"""


@contextmanager
def _lake(folder: Path, scale: float) -> Iterator[str]:
    """The files."""
    import duckdb

    lake = folder / "shop"
    (lake / "orders").mkdir(parents=True)
    customers, products = max(100, int(_CUSTOMERS * scale)), max(100, int(_PRODUCTS * scale))
    rows = int(_ORDERS * scale) // _FILES
    connection = duckdb.connect()
    connection.execute(
        f"COPY (SELECT i AS customer_id, 'Customer ' || i AS name, i % 100 AS region_id FROM range({customers}) r(i)) "
        f"TO '{lake}/customers.parquet'"
    )
    connection.execute(
        f"COPY (SELECT i AS product_id, 'Product ' || i AS title, (i * 7919 % 10000) / 100 AS price "
        f"FROM range({products}) r(i)) TO '{lake}/products.parquet'"
    )
    for file in range(_FILES):
        connection.execute(
            f"COPY (SELECT i AS order_id, hash(i) % {customers} AS customer_id, "
            f"hash(i + 1) % {products} AS product_id, "
            f"(hash(i + 2) % 100000) / 100 AS amount, DATE '2020-01-01' + (i % 1800)::INT AS placed "
            f"FROM range({file * rows}, {(file + 1) * rows}) r(i)) TO '{lake}/orders/part-{file:02}.parquet'"
        )
    connection.close()
    yield str(lake)


def _lake_rows(corpus: tf.Corpus, **options: Any) -> tuple[Any, Any]:
    from tagframe.merging import plan_tables, run_plan

    ids = [corpus.profile(table).id for table in _LAKE_TABLES]
    return run_plan(plan_tables(corpus, ids), corpus, on_loss="allow", on_ambiguous="allow", **options)


def _lake_opened(source: str, folder: Path) -> Figures:
    seconds, corpus = timed(lambda: tf.open_corpus(source, progress=False))
    return {"seconds": seconds, "tables": len(corpus), "rows": float(corpus.profile("orders").rows or 0)}


def _lake_merged(source: str, folder: Path) -> Figures:
    corpus = tf.open_corpus(source, progress=False)
    seconds, (frame, _) = timed(lambda: _lake_rows(corpus, where={"region_id": _PASSING}))
    (folder / "seconds").write_text(repr(seconds))
    return {"seconds": seconds, "rows": len(frame)}


def _lake_by_hand(source: str, folder: Path) -> Figures:
    """The cost of a hand-written DuckDB query for the same rows."""
    import duckdb

    connection = duckdb.connect(config={"threads": 2})
    seconds, frame = timed(lambda: connection.sql(_LAKE_SQL.format(source=source, region=_PASSING)).df())
    return {"seconds": seconds, "rows": len(frame), "ratio": float((folder / "seconds").read_text()) / seconds}


def _lake_limited(source: str, folder: Path) -> Figures:
    corpus = tf.open_corpus(source, progress=False)
    seconds, (frame, report) = timed(lambda: _lake_rows(corpus, limit=100))
    report_seconds, counted = timed(lambda: report.steps[0].rows_in)
    return {"seconds": seconds, "rows": len(frame), "report_seconds": report_seconds, "counted": counted}


DISTINCT = 2_000
"""The number of distinct texts."""


def reviews(rows: int, files: int) -> Callable[[Path, float], AbstractContextManager[str]]:
    """The source of a case: reviews of 80 bytes with a unique number, in several files."""

    @contextmanager
    def source(folder: Path, scale: float) -> Iterator[str]:
        import pyarrow as pa
        import pyarrow.parquet as pq  # type: ignore[import-untyped]

        made, generator = folder / "reviews", np.random.default_rng(0)
        made.mkdir()
        texts = pa.array([f"Review {number} of {DISTINCT}. ".ljust(80, "x") for number in range(DISTINCT)])
        each = int(rows * scale) // files
        for file in range(files):
            chosen = pa.array(generator.integers(0, DISTINCT, each, dtype=np.int32))
            numbers = pa.array(np.arange(file * each, (file + 1) * each))
            table = pa.table({"id": numbers, "text": pa.DictionaryArray.from_arrays(chosen, texts).cast(pa.string())})
            pq.write_table(table, made / f"{file:03}.parquet")
        yield str(made)

    return source


_BATCHED, _BATCH_FILES = 2_000_000, 8
_CLASSIC = "{text} is about a classic"


@contextmanager
def _model_server() -> Iterator[ServerProcess]:
    """A server that is the model of the block."""
    with (
        ServerProcess(latency=0.0) as server,
        tf.context(lm="openai/bench", api_base=server.url, api_key="none", progress=False, store=None),
    ):
        yield server


def _batches_filtered(source: str, folder: Path) -> Figures:
    with _model_server() as server:
        seconds, written = timed(lambda: tf.sem_filter(tf.read_batches(source), _CLASSIC, to=folder / "kept"))
        requests = server.stats()["requests"]
    rows = sum(len(batch) for batch in tf.read_batches(written, columns=["id"]))
    return {"seconds": seconds, "requests": requests, "rows": rows}


# --- Dask

_DASK_ROWS, _PARTITIONS = 5_000_000, 50


def dies_once(frame: pd.DataFrame, marker: str) -> pd.DataFrame:
    """Kill the first worker that gets a partition in the middle."""
    if len(frame) and int(frame["id"].iloc[0]) and not os.path.exists(marker):
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return frame


def _run(source: str, folder: Path, *, kills: bool) -> Figures:
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    import tagframe.dask  # noqa: F401

    cluster: Any = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50)
    with _model_server() as server, cluster, Client(cluster):
        rows = dd.read_parquet(source)
        if kills:
            rows = rows.map_partitions(dies_once, str(folder / "dead"), meta=rows)
        started = time.perf_counter()
        result = rows.tag.sem_filter(_CLASSIC)
        number = len(result)
        first = time.perf_counter() - started
        total = int(result["id"].count().compute())
        seconds = time.perf_counter() - started
        requests = server.stats()["requests"]
    return {"seconds": seconds, "first_seconds": first, "requests": requests, "rows": number, "again": total}


def _killed(source: str, folder: Path) -> Figures:
    figures = _run(source, folder, kills=True)
    return {**figures, "killed": float((folder / "dead").exists())}


_ALL = (
    SourceCase("postgres_schema", _many_tables, {"open first": _opened, "open again": _opened, "retrieve": _retrieved}),
    SourceCase("postgres_merge", _star(_FACTS), {"limit": _limited, "where and limit": _filtered}),
    SourceCase("postgres_whole", _star(_ROWS), {"whole": _whole}),
    SourceCase("batches", reviews(_BATCHED, _BATCH_FILES), {"sem_filter": _batches_filtered}),
    SourceCase("lake", _lake, {"open": _lake_opened, "again": _lake_opened, "merge": _lake_merged,
                               "sql": _lake_by_hand, "limit": _lake_limited}),
    SourceCase("partitions", reviews(_DASK_ROWS, _PARTITIONS),
               {"sem_filter": partial(_run, kills=False), "killed_worker": _killed}),
)  # fmt: skip
CASES = {case.name: case for case in _ALL}

if __name__ == "__main__":
    name, step, place, scratch = sys.argv[1:]
    os.environ["XDG_CACHE_HOME"] = str(Path(scratch) / "cache")  # catalogues of the case's own
    memory_before = memory_mb()
    figures = CASES[name].steps[step](place, Path(scratch))
    print(json.dumps({**figures, "peak_mb": max(0.0, peak_mb() - memory_before)}))

"""Parquet files that are not loaded: a fact of 50 million rows, and two tables that it references."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tagframe as tf
from tag_bench.speed.source_cases.case import Figures, SourceCase

ROWS, CUSTOMERS, PRODUCTS, FILES = 50_000_000, 1_000_000, 50_000, 10
PASSING = 7
"""The selected region, one of 100: 1 % of the customers, and of their orders."""

TABLES = ["orders", "customers", "products"]
SQL = """
SELECT o.order_id, o.customer_id, o.product_id, o.amount, o.placed, c.name, c.region_id, p.title, p.price
FROM read_parquet('{source}/orders/*.parquet') o
JOIN read_parquet('{source}/customers.parquet') c USING (customer_id)
JOIN read_parquet('{source}/products.parquet') p USING (product_id)
WHERE c.region_id = {region}
"""


@contextmanager
def source(folder: Path, scale: float) -> Iterator[str]:
    """The files."""
    import duckdb

    lake = folder / "shop"
    (lake / "orders").mkdir(parents=True)
    customers, products = max(100, int(CUSTOMERS * scale)), max(100, int(PRODUCTS * scale))
    rows = int(ROWS * scale) // FILES
    connection = duckdb.connect()
    connection.execute(
        f"COPY (SELECT i AS customer_id, 'Customer ' || i AS name, i % 100 AS region_id FROM range({customers}) r(i)) "
        f"TO '{lake}/customers.parquet'"
    )
    connection.execute(
        f"COPY (SELECT i AS product_id, 'Product ' || i AS title, (i * 7919 % 10000) / 100 AS price "
        f"FROM range({products}) r(i)) TO '{lake}/products.parquet'"
    )
    for file in range(FILES):
        connection.execute(
            f"COPY (SELECT i AS order_id, hash(i) % {customers} AS customer_id, "
            f"hash(i + 1) % {products} AS product_id, "
            f"(hash(i + 2) % 100000) / 100 AS amount, DATE '2020-01-01' + (i % 1800)::INT AS placed "
            f"FROM range({file * rows}, {(file + 1) * rows}) r(i)) TO '{lake}/orders/part-{file:02}.parquet'"
        )
    connection.close()
    yield str(lake)


def _merged(corpus: tf.Corpus, **options: Any) -> tuple[Any, Any]:
    from tagframe.merging import plan_tables, run_plan

    ids = [corpus.profile(table).id for table in TABLES]
    return run_plan(plan_tables(corpus, ids), corpus, on_loss="allow", on_ambiguous="allow", **options)


def _open(source: str, folder: Path) -> Figures:
    started = time.perf_counter()
    corpus = tf.open_corpus(source, progress=False)
    seconds = time.perf_counter() - started
    return {"seconds": seconds, "tables": len(corpus), "rows": float(corpus.profile("orders").rows or 0)}


def _merge(source: str, folder: Path) -> Figures:
    corpus = tf.open_corpus(source, progress=False)
    started = time.perf_counter()
    frame, _ = _merged(corpus, where={"region_id": PASSING})
    seconds = time.perf_counter() - started
    (folder / "seconds").write_text(repr(seconds))
    return {"seconds": seconds, "rows": len(frame)}


def _sql(source: str, folder: Path) -> Figures:
    """The cost of a hand-written DuckDB query for the same rows."""
    import duckdb

    connection = duckdb.connect(config={"threads": 2})
    started = time.perf_counter()
    frame = connection.sql(SQL.format(source=source, region=PASSING)).df()
    seconds = time.perf_counter() - started
    return {"seconds": seconds, "rows": len(frame), "ratio": float((folder / "seconds").read_text()) / seconds}


def _limit(source: str, folder: Path) -> Figures:
    corpus = tf.open_corpus(source, progress=False)
    started = time.perf_counter()
    frame, report = _merged(corpus, limit=100)
    seconds = time.perf_counter() - started
    started = time.perf_counter()
    counted = report.steps[0].rows_in
    return {"seconds": seconds, "rows": len(frame), "report_seconds": time.perf_counter() - started, "counted": counted}


LAKE = SourceCase("lake", source, {"open": _open, "again": _open, "merge": _merge, "sql": _sql, "limit": _limit})

"""``tag_bench speed keys``: the time of the first question over one database, by its number of tables.

The world is the schema of an ERP: nine columns a table, all ids are numbered 1 to 200, and every table has the
``company_id`` and ``created_by`` of its rows. Names and values fit many tables, so that the number of pairs that may be
keys grows with the square of the number of tables.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from tag_bench import benchmark
from tag_bench.measured import in_process, peak_mb, timed
from tag_bench.speed.lakes import ADJECTIVES, NOUNS

_ROWS = 200


def names(tables: int) -> list[str]:
    """Distinct names of tables; the first two are those that every table refers to."""
    every = [f"{adjective}_{noun}" for noun in NOUNS for adjective in ADJECTIVES]
    return [
        "company",
        "app_user",
        *(every[n % len(every)] + (f"_{n // len(every)}" if n >= len(every) else "") for n in range(tables - 2)),
    ]


def write_erp(tables: int, file: Path) -> None:
    """Write the ERP as a SQLite file."""
    rng = np.random.default_rng(0)
    called = names(tables)
    connection = sqlite3.connect(file)
    for position, table in enumerate(called):
        parents = [called[int(at)] for at in rng.integers(0, max(1, position), 2)]
        references = [f"source_{parents[0]}_id", f"{parents[1]}_ref_id"]
        columns = ["id", "company_id", "created_by", *references, "status", "amount", "quantity", "note"]
        numbers = [np.arange(1, _ROWS + 1), *(rng.integers(1, _ROWS + 1, (4, _ROWS)))]
        rows = zip(
            *(part.tolist() for part in numbers),
            rng.choice(["open", "closed", "draft"], _ROWS).tolist(),
            rng.gamma(2, 100, _ROWS).round(2).tolist(),
            rng.integers(1, 100, _ROWS).tolist(),
            (f"note {table} {row}" for row in range(_ROWS)),
            strict=True,
        )
        connection.execute(f"CREATE TABLE {table} ({', '.join(columns)})")
        connection.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(columns))})", rows)
    connection.commit()
    connection.close()


def cost(tables: int) -> dict[str, Any]:
    """The figures of one size, from a process of its own with an empty cache."""
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch, "erp.sqlite")
        write_erp(tables, file)
        found = in_process("tag_bench.speed.keys", file, XDG_CACHE_HOME=scratch, HOME=scratch)
    return {"tables": tables, "columns": 9 * tables, **found}


def exponent(cases: Sequence[dict[str, Any]]) -> float | None:
    """The slope of log seconds over log tables, by least squares; None for one size."""
    if len(cases) < 2:
        return None
    logs = np.log([[case["tables"], case["first_question_seconds"]] for case in cases])
    return round(float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0]), 2)


def _measure(file: str) -> dict[str, Any]:
    """Open, ask and plan, in this process."""
    import tagframe as tf
    from tagframe.embed import get_embedder

    embedder = get_embedder()
    if embedder is not None:
        embedder.encode(["the encoder is loaded once"])

    def first_question() -> Any:
        corpus = tf.open_corpus(file)
        tables = corpus.tables["id"].tolist()
        subject = tables[len(tables) // 2].partition(".")[2].replace("_", " ")
        return corpus.retrieve_tables(f"What is the amount of each {subject} by company?")

    first, found = timed(first_question)
    planned, _ = timed(lambda: found.join_plan)
    return {
        "first_question_seconds": round(first, 2),
        "plan_seconds": round(planned, 3),
        "peak_mb": round(peak_mb()),  # the whole process, the encoder included
    }


@benchmark("keys")
@click.option("--tables", "sizes", type=click.IntRange(min=4), multiple=True, default=(100, 200, 400, 1000))
def command(sizes: tuple[int, ...]) -> dict[str, Any]:
    """Seconds of the first question over one database of an ERP, in a fresh cache, by its number of tables.

    Example: python -m tag_bench speed keys --tables 100 200 400 1000
    """
    cases = []
    for tables in sizes:
        cases.append(cost(tables))
        click.echo(json.dumps(cases[-1]), err=True)
    return {"cases": cases, "exponent": exponent(cases)}


if __name__ == "__main__":
    json.dump(_measure(sys.argv[1]), sys.stdout)

"""``tag_bench speed corpus``: a lake of many databases, from files to answers.

The lake is of Spider 2's warehouses (its folder), or a synthetic one. It is written as SQLite files, indexed, opened
again, asked and refreshed, each in a separate process.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import click

from tag_bench import benchmark, number
from tag_bench.measured import in_process
from tag_bench.speed import lakes


@benchmark("corpus")
@click.option(
    "--lake",
    "source",
    default=lakes.SYNTHETIC,
    show_default=True,
    help="'synthetic', or a folder of Spider 2's tables.",
)
@number("--questions", 30, "The number per corpus.", called="count")
def command(source: str, count: int) -> dict[str, Any]:
    """The cost of a whole lake: seconds, memory, and milliseconds per question.

    Example: python -m tag_bench speed corpus --lake ../shared/bench/spider2
    """
    if source == lakes.SYNTHETIC:
        tables, questions = lakes.synthetic_tables(), lakes.synthetic_questions(count)
    elif (Path(source) / "tables.jsonl.gz").is_file():
        tables, questions = lakes.spider2_tables(Path(source)), lakes.spider2_questions(Path(source))[:count]
    else:
        raise click.ClickException(f"{source!r} has no tables.jsonl.gz; give another folder, or {lakes.SYNTHETIC!r}")
    with tempfile.TemporaryDirectory() as scratch:
        folder, catalogue, questions_file = (Path(scratch, name) for name in ("lake", "lake.catalogue", "asked.json"))
        folder.mkdir()
        counts = lakes.write(tables, folder)
        questions_file.write_text(json.dumps(questions), encoding="utf-8")

        def step(name: str) -> dict[str, Any]:
            return in_process("tag_bench.speed.lakes", name, folder, catalogue, questions_file)

        result = {"tables": counts[0], "columns": counts[1], "index": step("index"), **step("ask")}
        lakes.change_one(folder)
        return {**result, **step("refresh")}

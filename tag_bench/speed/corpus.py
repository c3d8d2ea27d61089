"""``tag_bench speed corpus``: the time of a question by the size of the corpus.

The corpora are synthetic lakes of one database with random vectors, because the values of vectors do not change the
time. Encoding is left out; it is the same for every corpus.

With ``--lake`` everything is included: a lake of Spider 2's warehouses (its folder), or a synthetic one, is written as
SQLite files, indexed, opened again, asked and refreshed, each in a separate process.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
import numpy.typing as npt

from tag_bench import benchmark, number
from tag_bench.lake import synthetic_lake
from tag_bench.measured import in_process, spread
from tag_bench.speed import lakes
from tagframe.corpus import Corpus, TableProfile, corpus_vectors, vectors_of
from tagframe.embed import Kind
from tagframe.retrieval import METHODS, Question
from tagframe.retrieval.index import RetrievalIndex

COLUMNS = 5
TIMED = ("auto", "greedy", "exact", "hybrid")
_DIMENSION = 384


class RandomEmbedder:
    """Unit vectors that depend only on the text, at almost no cost."""

    name = "random"
    dimension = _DIMENSION

    def encode(self, texts: Sequence[str], kind: Kind = "passage") -> npt.NDArray[np.float32]:
        """Shape (n, 384)."""
        rows = [np.random.default_rng(list(text.encode())[:64]).standard_normal(_DIMENSION) for text in texts]
        vectors = np.array(rows, dtype=np.float32).reshape(len(texts), _DIMENSION)
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)


def questions(tables: Sequence[TableProfile], count: int) -> list[str]:
    """Questions that name two tables and a column of each."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(count):
        one, other = (tables[position] for position in rng.choice(len(tables), 2, replace=False))
        columns = [str(rng.choice([column.name for column in table.columns])) for table in (one, other)]
        found.append(f"Which {one.name} have {columns[0]} above the {columns[1]} of their {other.name} in word 7?")
    return [question.replace("_", " ") for question in found]


def cost(tables: int, count: int) -> dict[str, Any]:
    """Seconds to index a lake and milliseconds a question, by method."""
    corpus = Corpus(synthetic_lake(tables, columns=COLUMNS).tables)
    embedder = RandomEmbedder()
    corpus_vectors(corpus.profiles, embedder, vectors_of(corpus), hide_database=True)
    asked = questions(corpus.profiles, count)
    started = time.perf_counter()
    index = RetrievalIndex(corpus, embedder)
    for method in TIMED:  # what is made at first use counts as indexing
        _choose(index, method, Question.of(asked[0]))
    result: dict[str, Any] = {"tables": tables, "index_seconds": round(time.perf_counter() - started, 2), "ms": {}}
    for method in TIMED:
        times = []
        for question in asked:
            parsed = Question.of(question)
            started = time.perf_counter()
            _choose(index, method, parsed)
            times.append(1000 * (time.perf_counter() - started))
        result["ms"][method] = spread(times, 2)
    return result


def _choose(index: RetrievalIndex, method: str, question: Question) -> None:
    METHODS[method].select(METHODS[method].prepared(index, question).problem, 5)


def lake(source: str, count: int) -> dict[str, Any]:
    """The cost of a whole lake, from files to answers.

    Args:
        source: the folder of Spider 2's tables, or ``"synthetic"``.
        count: questions.
    """
    if source == lakes.SYNTHETIC:
        tables, asked = lakes.synthetic_tables(), lakes.synthetic_questions(count)
    elif (Path(source) / "tables.jsonl.gz").is_file():
        tables, asked = lakes.spider2_tables(Path(source)), lakes.spider2_questions(Path(source))[:count]
    else:
        raise click.ClickException(f"{source!r} has no tables.jsonl.gz; give another folder, or {lakes.SYNTHETIC!r}")
    with tempfile.TemporaryDirectory() as scratch:
        folder, catalogue, questions_file = (Path(scratch, name) for name in ("lake", "lake.catalogue", "asked.json"))
        folder.mkdir()
        counts = lakes.write(tables, folder)
        questions_file.write_text(json.dumps(asked), encoding="utf-8")

        def step(name: str) -> dict[str, Any]:
            return in_process("tag_bench.speed.lakes", name, folder, catalogue, questions_file)

        result = {"tables": counts[0], "columns": counts[1], "index": step("index"), **step("ask")}
        lakes.change_one(folder)
        return {**result, **step("refresh")}


@benchmark("corpus")
@click.option("--tables", "sizes", type=click.IntRange(min=5), multiple=True, default=(100, 1000, 10000))
@number("--questions", 30, "The number per corpus.", called="count")
@click.option("--lake", "source", help="A folder of Spider 2's tables, or 'synthetic': measure from files to answers.")
def command(sizes: tuple[int, ...], count: int, source: str | None) -> dict[str, Any]:
    """Milliseconds per question, by the number of tables in the corpus.

    Example: python -m tag_bench speed corpus --tables 100 1000
    """
    if source is not None:
        return lake(source, count)
    rows = [cost(tables, count) for tables in sizes]
    return {"lakes": rows}

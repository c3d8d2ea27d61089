"""The databases for the questions, as far as they are present."""

from __future__ import annotations

import ast
import csv
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import click

import tagframe as tf
from pipelines import PIPELINES
from tag_bench.baselines import NearestRows, rag

Values: TypeAlias = tuple[Any, ...]
"""An answer as plain Python values, in order."""


@dataclass(frozen=True)
class Question:
    """One question.

    Attributes:
        id: as published.
        database: whose tables answer it.
        text: the question.
        retrieval: the baselines' request for Text2SQL if a model judges its rows; the question itself if the benchmark
            gives none.
        type: ``"match"``, ``"comparison"``, ``"ranking"`` or ``"aggregation"``.
        kind: ``"knowledge"`` or ``"reasoning"``.
        key: the answer as published; None if there is none.
        key_here: the answer by the key's own reading on the rows here; :attr:`key` if it is the same.
    """

    id: int
    database: str
    text: str
    retrieval: str
    type: str
    kind: str
    key: Values | None
    key_here: Values | None


def read_questions(folder: Path) -> list[Question]:
    """The questions of ``tag_queries.csv`` (section 4.1), in the file's order.

    Raises:
        click.ClickException: the file does not exist.
    """
    file = folder / "tag_queries.csv"
    if not file.is_file():
        raise click.ClickException(f"no tag_queries.csv in {folder}; give a folder like shared/bench/tag_bench")
    here_file = folder / "answers_here.json"
    here: Mapping[str, Any] = json.loads(here_file.read_text(encoding="utf-8")) if here_file.is_file() else {}
    questions = []
    with file.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            key = parse_key(row["Answer"])
            text, retrieval = row["Query"].strip(), row["(TAG baseline) Text2SQL Input"].strip()
            questions.append(
                Question(
                    id=int(row["Query ID"]),
                    database=row["DB used"],
                    text=text,
                    retrieval=retrieval or text,
                    type=row["Query type"].lower(),
                    kind=row["Knowledge/Reasoning Type"].lower(),
                    key=key,
                    key_here=tuple(here[row["Query ID"]]) if row["Query ID"] in here else key,
                )
            )
    return questions


def parse_key(text: str) -> Values | None:
    """A published answer as values: a list as its members, a number as a number, anything else as one text.

    >>> parse_key("['Jennifer', 'Lisa']"), parse_key("54"), parse_key("K-5"), parse_key("")
    (('Jennifer', 'Lisa'), (54,), ('K-5',), None)
    """
    text = text.strip()
    if not text:
        return None
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return (text,)
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


class Databases:
    """BIRD's dev databases in a folder: ``NAME/NAME.sqlite``.

    Args:
        folder: of all of them.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._corpora: dict[str, tf.Corpus] = {}
        self._filled: dict[tuple[str, str], bool] = {}
        self._searched: dict[str, NearestRows] = {}

    def file(self, name: str) -> Path:
        """The path of a database, whether it exists or not."""
        return self._folder / name / f"{name}.sqlite"

    def corpus(self, name: str) -> tf.Corpus:
        """A database, opened once."""
        if name not in self._corpora:
            self._corpora[name] = tf.open_corpus(self.file(name))
        return self._corpora[name]

    def nearest_rows(self, name: str) -> NearestRows:
        """The search for the nearest rows of a database, kept because of its vectors."""
        if name not in self._searched:
            searched = rag(self.corpus(name)).exec
            assert isinstance(searched, NearestRows)
            self._searched[name] = searched
        return self._searched[name]

    def missing(self, question: Question) -> str:
        """The tables, or columns without a value, that a question lacks; empty if it can be run."""
        if not self.file(question.database).is_file():
            return f"no database {question.database}"
        reads = PIPELINES[question.id].reads
        missing = [name for name in reads if not self._is_filled(question.database, name)]
        return f"no rows or values: {', '.join(missing)}" if missing else ""

    def _is_filled(self, database: str, name: str) -> bool:
        if (database, name) not in self._filled:
            table, _, column = name.partition(".")
            corpus = self.corpus(database)
            if f"{database}.{table}" not in corpus:
                filled = False
            elif column:
                filled = bool(corpus.read(f"{database}.{table}", [column])[column].notna().any())
            else:
                filled = not corpus.read(f"{database}.{table}", limit=1).empty
            self._filled[database, name] = filled
        return self._filled[database, name]

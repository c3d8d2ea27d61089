"""The databases for the questions, as far as they are present."""

from __future__ import annotations

from pathlib import Path

import tagframe as tf
from pipelines import PIPELINES
from tag_bench.answers.questions import Question
from tagframe.answer import NearestRows


class Databases:
    """BIRD's dev databases in a folder: ``NAME/NAME.sqlite``.

    Args:
        folder: of all of them.
        rows: the most rows to embed of each table for RAG; None for all.
        cache: as in :func:`tagframe.rag`.
    """

    def __init__(self, folder: Path, rows: int | None = None, cache: Path | str = "default") -> None:
        self._folder = folder
        self._rows = rows
        self._cache = cache
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
            searched = tf.rag(self.corpus(name), rows=self._rows, cache=self._cache).exec
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

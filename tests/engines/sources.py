"""What the tests of engines do with a source: open it, hear what is said, see its cells, and change a server."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pandas as pd
import psycopg

import tagframe as tf
from tagframe.errors import ColumnFormatWarning


def warned(source: str | Path, kind: type[Warning] = ColumnFormatWarning, **given: Any) -> tuple[tf.Corpus, list[str]]:
    """The corpus, and the warnings of a kind when it was opened."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        corpus = tf.open_corpus(source, progress=False, **given)
    return corpus, [str(one.message) for one in caught if issubclass(one.category, kind)]


def opened(source: str | Path, **given: Any) -> tuple[tf.Corpus, str]:
    """The corpus, and all that was said when it was opened."""
    corpus, said = warned(source, Warning, **given)
    return corpus, " | ".join(said)


def cells(frame: pd.DataFrame) -> list[list[Any]]:
    """The rows, with None for what is missing."""
    return [[None if pd.isna(cell) else cell for cell in row] for row in frame.to_numpy(dtype=object).tolist()]


def run(url: str, script: str) -> list[tuple[Any, ...]]:
    """What a PostgreSQL server gives for a script."""
    with psycopg.connect(url, autocommit=True) as owner:
        cursor = owner.execute(script)
        return cursor.fetchall() if cursor.description else []

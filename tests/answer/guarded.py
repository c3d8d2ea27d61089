"""One statement under the guard, by itself."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from tagframe.answer.guard import Reader
from tagframe.corpus import Corpus
from tagframe.engines.base import SQLLimits


def run_sql(sql: str, corpus: Corpus, tables: Mapping[str, str], limits: SQLLimits | None = None) -> pd.DataFrame:
    """The rows of a statement over tables of a corpus, which are given by their names in it."""
    return Reader(corpus, tables, limits or SQLLimits()).run(sql)


def dry_run(sql: str, corpus: Corpus, tables: Mapping[str, str]) -> str:
    """The statement, checked and compiled but not run."""
    return Reader(corpus, tables).compile(sql)

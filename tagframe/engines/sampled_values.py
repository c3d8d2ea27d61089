"""Some values of the columns of a source, and their hashes: keys are inferred from these if rows are not read."""

from __future__ import annotations

from abc import abstractmethod

import pandas as pd

from tagframe.engines.base import quoted
from tagframe.engines.hashing import Form, Hashes
from tagframe.engines.pushdown import Pushdown

SAMPLED = 50_000
"""From this many rows on, distinct values are taken from a sample of about as many rows."""


class SampledValues(Pushdown):
    """A source that also gives some values of its columns."""

    def hashes(self, table: str, column: str, most: int, most_odd: int) -> Hashes | None:
        """The smallest hashes of the column's canonical values, and the values that get their canonical form here.

        None where the column's type has no canonical form in SQL, or there are more than ``most_odd`` odd values.
        """
        form = self.form(table, column)
        if form is None:
            return None
        others = self.values(form.others(self.from_item(table), most_odd + 1), table) if form.odd else []
        if len(others) > most_odd:
            return None
        return form.found(self.values(form.hashes(self.from_item(table), most), table), others)

    @abstractmethod
    def matches(self, text: str, pattern: str) -> str:
        """Whether a text matches a regular expression."""

    def is_odd(self, text: str) -> str:
        """By a pattern."""
        return self.matches(text, "[^ -~]")

    def is_dated(self, text: str) -> str:
        """By a pattern."""
        return self.matches(text, "^ *[0-9]{4}[-/]")

    @abstractmethod
    def form(self, table: str, column: str) -> Form | None:
        """The canonical form of a column's values, if SQL can express it."""

    @abstractmethod
    def stop_after(self, seconds: float) -> None:
        """Later statements are stopped after this time, if the source can stop them."""

    def some(self, table: str, column: str, most: int) -> str:
        """A query for at most this many distinct values of a column that are not null, as ``k``.

        They have the smallest hashes among :data:`SAMPLED` rows from all over the table, so they are not just the first
        ones.
        """
        rows, ending = self.sample(table)
        read = f"{self.from_item(table)} AS t{rows}"
        some = f"SELECT {self.compared(table, column)} AS k FROM {read} WHERE t.{quoted(column)} IS NOT NULL{ending}"
        once = f"SELECT DISTINCT s.k FROM ({some}) AS s"
        return f"SELECT d.k FROM ({once}) AS d ORDER BY md5(CAST(d.k AS varchar)) LIMIT {most}"

    @abstractmethod
    def sample(self, table: str) -> tuple[str, str]:
        """SQL that takes some of the rows of a large table, the same ones each time: a part before WHERE, and one after
        it."""

    def contained(self, table: str, column: str, other: str, other_column: str, most: int) -> tuple[int, int]:
        """Some distinct values of a column, and how many of them another column of the source holds."""
        theirs = f"SELECT DISTINCT {self.compared(other, other_column)} AS k FROM {self.from_item(other)} AS t"
        query = (
            f"WITH v AS MATERIALIZED ({self.some(table, column, most)}) "
            f"SELECT count(*) AS seen, count(o.k) AS found FROM v LEFT JOIN "
            f"({theirs} WHERE {self.compared(other, other_column)} IN (SELECT k FROM v)) AS o ON o.k = v.k"
        )
        found = self.numbers(query)
        return int(found["seen"]), int(found["found"])

    def keys(self, table: str, column: str, most: int) -> pd.Index:
        """Some distinct values of a column that are not null."""
        return self.index(table, column, self.values(self.some(table, column, most), table))

    def held(self, table: str, column: str, keys: pd.Index) -> int:
        """How many of these keys a column holds."""
        query = f"SELECT DISTINCT {self.compared(table, column)} AS k FROM {self.from_item(table)} AS t"
        counted = f"SELECT count(*) AS n FROM ({query} WHERE {self.one_of(table, column, keys)}) AS s"
        return int(self.values(counted, table)[0])

"""Rows of single tables, chosen where they are: by tests on columns, by keys that are sent, by rows of other tables.

What a merge across engines asks of each. A place answers with the rows that may stand in the result and no others, and
says what of its texts might mean the same as keys that were sent without being written alike.
"""

from __future__ import annotations

import datetime as dt
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal

import pandas as pd

from tagframe.engines.base import quoted
from tagframe.engines.hashing import Form, Hashes

KeyKind = Literal["integer", "text", ""]
"""What is in a key column that can be chosen by: "" for what places and pandas might compare otherwise."""

SAMPLED = 50_000
"""Rows from which on some distinct values are taken from a sample of so many, about."""
_LEAST, _MOST = -(2**63), 2**63 - 1


@dataclass(frozen=True)
class Within:
    """Values of a column of another table of the place, of the rows that a selection chooses there."""

    table: str
    column: str
    selection: Selection


@dataclass(frozen=True)
class Selection:
    """Rows of a table: those that fit everything that is said here.

    Attributes:
        tests: column → a value, a list of values, or None for what is null; see :meth:`Selecting.says`.
        keys: column → the values that it may have, without nulls and duplicates.
        within: column → the rows of another table of the place in which its value stands.
    """

    tests: Mapping[str, Any] = field(default_factory=dict)
    keys: Mapping[str, pd.Index] = field(default_factory=dict)
    within: Mapping[str, Within] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Whether it leaves out nothing."""
        return not (self.tests or self.keys or self.within)


class Selecting(ABC):
    """One state of some tables of a place, which go by their names there.

    Every method raises :class:`~tagframe.errors.UnreadableTable` where the place cannot answer,
    :class:`~tagframe.errors.ColumnNotFound` for a column that a table has no more, and
    :class:`~tagframe.errors.ServerGone` where the place is gone.
    """

    kind: str

    @abstractmethod
    def key_kind(self, table: str, column: str) -> str:
        """What the column holds, as :data:`KeyKind` says; other words stand for nothing to choose by."""

    @abstractmethod
    def says(self, table: str, column: str, value: Any) -> bool:
        """Whether a test of the column for a value leaves out no row that pandas would keep."""

    @abstractmethod
    def is_unique(self, table: str, columns: Sequence[str]) -> bool:
        """Whether no key of these columns repeats, nulls aside."""

    @abstractmethod
    def is_ordered(self, table: str) -> bool:
        """Whether its rows have an order, in which :meth:`frame` gives them whatever is chosen."""

    @abstractmethod
    def size(self, table: str) -> int:
        """Rows of the table."""

    @abstractmethod
    def frame(
        self, table: str, columns: Sequence[str], selection: Selection, limit: int | None = None
    ) -> tuple[pd.DataFrame, str]:
        """The chosen rows, in the order of :meth:`Engine.numbered`, the first of them; and the statement, keys left
        out of it."""

    @abstractmethod
    def distinct(self, table: str, column: str, selection: Selection, most: int) -> pd.Index | None:
        """The distinct values of the chosen rows that are not null; None where there are more than ``most``."""

    @abstractmethod
    def near(self, table: str, column: str, keys: pd.Index, forms: Iterable[str], most: int) -> list[str] | None:
        """Texts of a column that are none of these keys and may have one of these canonical forms, and others beside.

        None where there are more than ``most``.
        """

    def hashes(self, table: str, column: str, most: int, most_odd: int) -> Hashes | None:
        """The smallest hashes of the column's canonical values, and what has to get its canonical form here.

        None where the column's type has no canonical form in SQL, or there are more than ``most_odd`` odd values.
        """
        form = self.form(table, column)
        if form is None:
            return None
        others = self.values(form.others(self.place(table), most_odd + 1), table) if form.odd else []
        if len(others) > most_odd:
            return None
        return form.found(self.values(form.hashes(self.place(table), most), table), others)

    @abstractmethod
    def form(self, table: str, column: str) -> Form | None:
        """The canonical form of a column's values, where SQL can say it."""

    @abstractmethod
    def values(self, sql: str, table: str) -> list[Any]:
        """The one column that a statement gives."""

    @abstractmethod
    def stop_after(self, seconds: float) -> None:
        """Statements from here on are stopped after so long, where the place can stop them."""

    def some(self, table: str, column: str, most: int) -> str:
        """A query for some distinct values of a column that are not null, so many at most, as ``k``.

        Those of the smallest hashes among :data:`SAMPLED` rows from all over the table, so that they are no first ones.
        """
        rows, ending = self.sample(table)
        here = self.compared(table, column)
        some = f"SELECT {here} AS k FROM {self.place(table)} AS t{rows} WHERE t.{quoted(column)} IS NOT NULL{ending}"
        once = f"SELECT DISTINCT s.k FROM ({some}) AS s"
        return f"SELECT d.k FROM ({once}) AS d ORDER BY md5(CAST(d.k AS varchar)) LIMIT {most}"

    @abstractmethod
    def sample(self, table: str) -> tuple[str, str]:
        """What takes some of the rows of a large table, the same ones each time: before WHERE, and after it."""

    def contained(self, table: str, column: str, other: str, other_column: str, most: int) -> tuple[int, int]:
        """Some distinct values of a column, and how many of them another column of the place holds."""
        theirs = f"SELECT DISTINCT {self.compared(other, other_column)} AS k FROM {self.place(other)} AS t"
        query = (
            f"WITH v AS MATERIALIZED ({self.some(table, column, most)}) "
            f"SELECT count(*) AS seen, count(o.k) AS found FROM v LEFT JOIN "
            f"({theirs} WHERE {self.compared(other, other_column)} IN (SELECT k FROM v)) AS o ON o.k = v.k"
        )
        return self.pair(query, table)

    @abstractmethod
    def pair(self, sql: str, table: str) -> tuple[int, int]:
        """The two numbers that a statement gives."""

    def keys(self, table: str, column: str, most: int) -> pd.Index:
        """Some distinct values of a column that are not null."""
        found = self.values(self.some(table, column, most), table)
        return pd.Index(list(map(int, found)) if self.key_kind(table, column) == "integer" else found)

    def held(self, table: str, column: str, keys: pd.Index) -> int:
        """How many of these keys a column holds."""
        query = f"SELECT DISTINCT {self.compared(table, column)} AS k FROM {self.place(table)} AS t"
        counted = f"SELECT count(*) AS n FROM ({query} WHERE {self.one_of(table, column, keys)}) AS s"
        return int(self.values(counted, table)[0])

    # --- what statements of all dialects share ------------------------------------------------------------------------

    def where(self, table: str, selection: Selection, *, brief: bool = False) -> str:
        """WHERE and what follows it, or nothing; ``brief`` tells only how many keys there are."""
        parts = [self._test(f"t.{quoted(column)}", value) for column, value in selection.tests.items()]
        for column, keys in selection.keys.items():
            here = self.compared(table, column)
            parts.append(f"{here} IN (… {len(keys):,} keys …)" if brief else self.one_of(table, column, keys))
        for column, other in selection.within.items():
            inner = self.where(other.table, other.selection, brief=brief)
            there = f"SELECT {self.compared(other.table, other.column)} FROM {self.place(other.table)} AS t{inner}"
            parts.append(f"{self.compared(table, column)} IN ({there})")
        return f" WHERE {' AND '.join(parts)}" if parts else ""

    @abstractmethod
    def place(self, table: str) -> str:
        """What stands in FROM."""

    def compared(self, table: str, column: str) -> str:
        """A key column as it is compared."""
        return f"t.{quoted(column)}"

    @abstractmethod
    def one_of(self, table: str, column: str, keys: pd.Index) -> str:
        """Whether a key is one of these."""

    @staticmethod
    def _test(column: str, value: Any) -> str:
        if value is None:
            return f"{column} IS NULL"
        if not isinstance(value, list | tuple | set | frozenset):
            return f"{column} = {_literal(value)}"
        return f"{column} IN ({', '.join(map(_literal, value))})" if value else "false"

    @staticmethod
    def might_be(column: str, forms: Iterable[str], *, odd: str, dated: str) -> str:
        """Whether a text may have one of some canonical forms (:mod:`tagframe.corpus.canonical`).

        Args:
            column: the text.
            forms: of the keys, as text and as numbers.
            odd: whether it has a sign beyond printable ASCII, of which only Python knows what it means.
            dated: whether it begins as a date does.
        """
        known = sorted({form for form in forms if form.isascii() and "\x00" not in form})
        listed = ", ".join(map(_literal, known)) or "NULL"
        parts = [odd, f"lower(trim({column})) IN ({listed})"]
        if any(form[:1].isdigit() and form[4:5] == "-" for form in known):
            parts.append(dated)
        # The same number is written with zeros before it and after its point, and with a plus.
        numbers = sorted({bare for form in known if (bare := form.strip("+-0.")) and set(bare) <= set("0123456789.")})
        if numbers or any(form.strip("+-0.") == "" for form in known):
            listed = ", ".join(map(_literal, [*numbers, ""]))
            parts.append(f"trim(trim({column}), '+-0.') IN ({listed})")
        return f"({' OR '.join(parts)})"


def is_plain(value: Any, kinds: tuple[type, ...]) -> bool:
    """Whether a value, or each of several, is of one of these kinds and can stand in a statement."""
    several = list(value) if isinstance(value, list | tuple | set | frozenset) else [value]
    return all(type(one) in kinds and _can_be_written(one) for one in several)


def _can_be_written(value: Any) -> bool:
    if isinstance(value, str):
        return "\x00" not in value and not any("\ud800" <= sign <= "\udfff" for sign in value)
    if isinstance(value, int):
        return _LEAST <= value <= _MOST
    return math.isfinite(value) if isinstance(value, float | Decimal) else True


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, dt.datetime):
        return f"{'TIMESTAMPTZ' if value.tzinfo else 'TIMESTAMP'} '{value.isoformat(' ')}'"
    if isinstance(value, dt.date):
        return f"DATE '{value.isoformat()}'"
    return "'" + str(value).replace("'", "''") + "'"

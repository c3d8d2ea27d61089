"""The parts of a merge that an engine runs: whole joins, tests, counts, and rows of single tables by keys that are
sent.

There is one protocol. Each engine implements what it can, and says what it cannot; merges then take another way.
Tables have the names that the engine gives them.
"""

from __future__ import annotations

import datetime as dt
import math
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pandas as pd

from tagframe.engines.base import quoted
from tagframe.engines.cells import EXACT, Bound, CellTest, Kind, cells_of
from tagframe.engines.sql_text import quoted_text
from tagframe.errors import UnreadableTable

if TYPE_CHECKING:
    from sqlglot import exp


MOST_VALUES = 1_000
"""At most this many values are written into a statement."""
_BEYOND = 2**63
_BOUNDS: dict[Bound, str] = {"<": "LT", "<=": "LTE", ">": "GT", ">=": "GTE"}


class Refused(UnreadableTable):
    """A source rejects a statement of ours: the merge takes another way."""


@dataclass(frozen=True)
class Within:
    """Values of a column of another table of the source, of the rows that a selection chooses there."""

    table: str
    column: str
    selection: Selection


@dataclass(frozen=True)
class Selection:
    """Rows of a table: those that fit everything that is said here.

    Attributes:
        tests: of its columns; see :meth:`Pushdown.says`.
        keys: column → the values that it may have, without nulls and duplicates.
        within: column → the rows of another table of the source that have its value.
    """

    tests: tuple[CellTest, ...] = ()
    keys: Mapping[str, pd.Index] = field(default_factory=dict)
    within: Mapping[str, Within] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Whether it leaves out no rows."""
        return not (self.tests or self.keys or self.within)


@dataclass(frozen=True)
class Statement:
    """A statement of ours that gives rows.

    Attributes:
        query: its text.
        columns: (table, column, name) of what it selects, in order; of what is counted or summed ("", "integer" or
            "real", name).
        what: what is read, for messages.
        values: of its placeholders.
        limit: the most rows, if the query has such a limit.
        is_sought: whether it searches for a few matching rows among many.
    """

    query: str
    columns: Sequence[tuple[str, str, str]]
    what: str
    values: Mapping[str, Any] | None = None
    limit: int | None = None
    is_sought: bool = False

    def frame(self, made: Callable[[list[str]], pd.DataFrame], rows: int) -> pd.DataFrame:
        """A frame of this many rows, with columns made by their names; without columns if none are selected."""
        return made([name for _, _, name in self.columns]) if self.columns else pd.DataFrame(index=pd.RangeIndex(rows))


class Pushdown(ABC):
    """One state of some tables of a source.

    Every method raises :class:`~tagframe.errors.UnreadableTable` where the source cannot answer,
    :class:`~tagframe.errors.ColumnNotFound` for a column that a table no longer has, and
    :class:`~tagframe.errors.ServerGone` where the source is gone.

    Attributes:
        kind: of the engine.
        dialect: of its SQL, as sqlglot calls it.
        binds: whether values are sent beside a statement, not in it.
        as_in_memory: whether rows come in the order that they have in memory, and texts without a partner are first
            compared in canonical form. If not, keys are compared as the server compares them, and rows come in its
            order.
        most_rows: results of at most this many rows are always computed there; larger ones only if they are a small
            part of the start table. None for no such bound.
        joins_outer: whether it has full outer joins.
        sorts_texts: whether texts are ordered by their characters, not by the rules of a language.
        takes_keys: whether rows of single tables are selected there: :meth:`frame`, :meth:`distinct` and :meth:`near`;
            :meth:`order`, :meth:`one_of`, :meth:`is_odd` and :meth:`is_dated` are only for that.
    """

    kind: str
    dialect: str
    binds = False
    as_in_memory = True
    most_rows: int | None = None
    joins_outer = True
    sorts_texts = True
    takes_keys = True

    # --- what is there ------------------------------------------------------------------------------------------------

    @abstractmethod
    def key_kind(self, table: str, column: str) -> str:
        """What the column holds as a key: "integer" of 64 bits, "text" that is compared by its characters, "null" for
        no values. Columns with the same other word are comparable; "" is for what SQL and pandas may compare
        differently."""

    @abstractmethod
    def cell_kind(self, table: str, column: str) -> Kind:
        """What the column's cells are compared as by tests."""

    def says(self, table: str, test: CellTest) -> bool:
        """Whether a statement can express a test."""
        kind = self.cell_kind(table, test.column[1])
        return can_be_said(test, kind) and not (test.bound and kind == "text" and not self.sorts_texts)

    def test(self, column: exp.Expr, table: str, test: CellTest, values: dict[str, Any] | None = None) -> exp.Expr:
        """A test in a statement; see :func:`said`."""
        kind = self.cell_kind(table, test.column[1])
        return said(column, test, kind, values, self.missing(column, kind))

    def missing(self, column: exp.Expr, kind: Kind) -> exp.Expr:
        """Whether a cell is empty. NaN counts as empty, and is greater than all numbers where it exists."""
        from sqlglot import exp

        return column.is_(exp.null())

    def is_unique(self, table: str, columns: Sequence[str]) -> bool:
        """Whether the keys of these columns are unique, apart from nulls."""
        if self.lets_none_repeat(table, columns):
            return True
        names = [self.compared(table, column) for column in columns]
        filled = " AND ".join(f"{name} IS NOT NULL" for name in names)
        twice = (
            f"SELECT 1 AS k FROM {self.from_item(table)} AS t WHERE {filled} "
            f"GROUP BY {', '.join(names)} HAVING count(*) > 1 LIMIT 1"
        )
        return self.known(table, ("unique", *columns), lambda: not self.values(twice, table))

    def lets_none_repeat(self, table: str, columns: Sequence[str]) -> bool:
        """Whether the source itself keeps the keys of these columns unique."""
        return False

    def size(self, table: str) -> int:
        return int(self.numbers(f"SELECT count(*) AS n FROM {self.from_item(table)}")["n"])

    def known(self, table: str, fact: tuple[Any, ...], find: Callable[[], bool]) -> bool:
        """A fact about the rows of a table; a source that can tell when they change looks it up once."""
        return find()

    def lone(self, table: str, column: str, other: str, other_column: str, most: int) -> tuple[list[str], list[str]]:
        """At most this many texts of a column that another one does not hold; if there are any, also all that the other
        one holds."""
        mine, theirs = self.compared(table, column), f"o.{quoted(other_column)}"
        lone = self.values(
            f"SELECT DISTINCT {mine} AS k FROM {self.from_item(table)} AS t WHERE {mine} IS NOT NULL AND {mine} NOT IN "
            f"(SELECT {theirs} FROM {self.from_item(other)} AS o WHERE {theirs} IS NOT NULL) LIMIT {most}",
            table,
        )
        held = f"SELECT DISTINCT {theirs} AS k FROM {self.from_item(other)} AS o WHERE {theirs} IS NOT NULL"
        return lone, self.values(held, other) if lone else []

    # --- whole joins --------------------------------------------------------------------------------------------------

    def item(self, table: str, alias: str, *, numbered: bool = False, first: int | None = None) -> exp.Expr:
        """The table in FROM or JOIN.

        Args:
            table: which.
            alias: what the statement calls it.
            numbered: whether its rows are sorted by :meth:`number`.
            first: only so many rows, from its beginning; see :attr:`starts_early`.
        """
        return named_item(self.from_item(table), alias)

    def number(self, table: str, alias: str) -> exp.Expr | None:
        """What sorts the rows of a table into the order of :meth:`Engine.numbered`; None where nothing does."""
        return None

    starts_early = False
    """Whether a limited query tries a table's first rows before it reads all."""

    def join_type(self, how: str, *, is_tested: bool) -> str:
        """The kind of join, as sqlglot calls it; ``is_tested`` is whether only some of the rows are wanted."""
        return {"inner": "", "left": "left", "right": "right", "outer": "full outer"}[how]

    def as_key(self, column: exp.Expr) -> exp.Expr:
        """A key in the form in which it is compared and grouped."""
        return column

    @abstractmethod
    def rows(self, statement: Statement) -> pd.DataFrame:
        """What a statement of ours gives."""

    def batches(self, statement: Statement, rows: int) -> Iterator[pd.DataFrame]:
        """The same in frames of about so many rows; a source that cannot stream gives them in one."""
        yield self.rows(statement)

    @abstractmethod
    def numbers(self, query: str, values: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The one row of a statement of ours that counts."""

    # --- rows of single tables, by keys that are sent -----------------------------------------------------------------

    def order(self, table: str, limit: int | None = None) -> str:
        """What sorts the rows of ``t`` into the order in which :meth:`frame` gives them; "" where they have none."""
        raise NotImplementedError

    def frame(
        self, table: str, columns: Sequence[str], selection: Selection, limit: int | None = None
    ) -> tuple[pd.DataFrame, str]:
        """The first of the selected rows, in the order of :meth:`Engine.numbered`; and the statement without the
        keys."""
        for column in columns:
            self.cell_kind(table, column)  # raises where the table has it no more
        shown = ", ".join(f"t.{quoted(column)}" for column in columns) or "NULL"
        start, order = f"SELECT {shown} FROM {self.from_item(table)} AS t", self.order(table, limit)
        tail = f"{f' ORDER BY {order}' * bool(order)}{'' if limit is None else f' LIMIT {int(limit)}'}"
        names = [(table, column, column) for column in columns]
        found = self.rows(Statement(f"{start}{self.where(table, selection)}{tail}", names, f"table {table!r}"))
        return found, f"{start}{self.where(table, selection, brief=True)}{tail}"

    def distinct(self, table: str, column: str, selection: Selection, most: int) -> pd.Index | None:
        """The distinct values of the chosen rows that are not null; None where there are more than ``most``."""
        here, word = self.compared(table, column), " WHERE " if selection.is_whole else " AND "
        found = self.values(
            f"SELECT DISTINCT {here} AS k FROM {self.from_item(table)} AS t{self.where(table, selection)}"
            f"{word}{here} IS NOT NULL LIMIT {most + 1}",
            table,
        )
        return None if len(found) > most else self.index(table, column, found)

    def index(self, table: str, column: str, keys: list[Any]) -> pd.Index:
        """Keys that were sent."""
        return pd.Index(list(map(int, keys)) if self.key_kind(table, column) == "integer" else keys)

    def near(self, table: str, column: str, keys: pd.Index, forms: Iterable[str], most: int) -> list[str] | None:
        """Texts of a column that are not among these keys and may have one of these canonical forms; other texts may be
        included.

        None where there are more than ``most``.
        """
        text = self.as_bytes(self.compared(table, column))
        found = self.values(
            f"SELECT DISTINCT {text} AS k FROM {self.from_item(table)} AS t "
            f"WHERE NOT ({self.one_of(table, column, keys)}) AND {self._might_be(text, forms)} LIMIT {most + 1}",
            table,
        )
        return None if len(found) > most else found

    @abstractmethod
    def values(self, sql: str, table: str) -> list[Any]:
        """The one column that a statement gives."""

    # --- what statements of all dialects share ------------------------------------------------------------------------

    def where(self, table: str, selection: Selection, *, brief: bool = False) -> str:
        """WHERE and what follows it, or nothing; ``brief`` tells only how many keys there are."""
        parts = [self._test(table, test) for test in selection.tests]
        for column, keys in selection.keys.items():
            here = self.compared(table, column)
            parts.append(f"{here} IN (… {len(keys):,} keys …)" if brief else self.one_of(table, column, keys))
        for column, other in selection.within.items():
            inner = self.where(other.table, other.selection, brief=brief)
            there = f"SELECT {self.compared(other.table, other.column)} FROM {self.from_item(other.table)} AS t{inner}"
            parts.append(f"{self.compared(table, column)} IN ({there})")
        return f" WHERE {' AND '.join(parts)}" if parts else ""

    @abstractmethod
    def from_item(self, table: str) -> str:
        """The item in FROM."""

    def compared(self, table: str, column: str) -> str:
        """A key column as it is compared."""
        return f"t.{quoted(column)}"

    def one_of(self, table: str, column: str, keys: pd.Index) -> str:
        """Whether a key is one of these."""
        raise NotImplementedError

    def _test(self, table: str, test: CellTest) -> str:
        from sqlglot import exp

        column = exp.column(exp.to_identifier(test.column[1], quoted=True), table="t")
        return exp.paren(self.test(column, table, test)).sql(dialect=self.dialect)

    def as_bytes(self, text: str) -> str:
        """A text that is compared by its bytes, whatever its column says."""
        return text

    def is_odd(self, text: str) -> str:
        """Whether a text has a character beyond printable ASCII, which only Python can interpret."""
        raise NotImplementedError

    def is_dated(self, text: str) -> str:
        """Whether a text begins as a date does."""
        raise NotImplementedError

    def _might_be(self, text: str, forms: Iterable[str]) -> str:
        """Whether a text may have one of some canonical forms (:mod:`tagframe.corpus.canonical`), as text or number."""
        known = sorted({form for form in forms if form.isascii() and "\x00" not in form})
        listed = ", ".join(map(quoted_text, known)) or "NULL"
        parts = [self.is_odd(text), f"lower(trim({text})) IN ({listed})"]
        if any(form[:1].isdigit() and form[4:5] == "-" for form in known):
            parts.append(self.is_dated(text))
        # The same number is written with zeros before it and after its point, and with a plus.
        numbers = sorted({bare for form in known if (bare := form.strip("+-0.")) and set(bare) <= set("0123456789.")})
        if numbers or any(form.strip("+-0.") == "" for form in known):
            listed = ", ".join(map(quoted_text, [*numbers, ""]))
            parts.append(f"trim(trim({text}), '+-0.') IN ({listed})")
        return f"({' OR '.join(parts)})"


def named_item(source: str, alias: str) -> exp.Expr:
    """An item in FROM, as SQL, with a name."""
    from sqlglot import exp

    return exp.Table(this=exp.Var(this=source), alias=exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))


def can_be_said(test: CellTest, kind: Kind) -> bool:
    """Whether SQL can express the test for a column of this kind."""
    if not test.values:
        return True
    if not kind or len(test.values) > MOST_VALUES:
        return False
    if test.is_plain:
        numeric = kind in ("integer", "real") or (kind == "boolean" and test.bound is None)
        if not (numeric or kind == "text") or not all(isinstance(value, str) != numeric for value in test.values):
            return False
        if test.bound is not None:
            return kind == "text" or all(abs(value) < EXACT for value in test.values)
    if test.bound is not None and kind in ("real32", "boolean"):
        return False
    return all(map(_can_be_written, cells_of(test, kind)))


def _can_be_written(cell: Any) -> bool:
    if isinstance(cell, str):
        return "\x00" not in cell and "\ufffd" not in cell and not any("\ud800" <= sign <= "\udfff" for sign in cell)
    if isinstance(cell, int):
        return -_BEYOND <= cell < _BEYOND
    if isinstance(cell, pd.Timestamp):
        return not cell.nanosecond
    return math.isfinite(cell) if isinstance(cell, float | Decimal) else True


def said(column: exp.Expr, test: CellTest, kind: Kind, values: dict[str, Any] | None, missing: exp.Expr) -> exp.Expr:
    """The test of a column in a statement.

    Args:
        column: as it is compared.
        test: one that SQL can express.
        kind: of the column.
        values: collects the values of the statement's placeholders; None to write them into the statement.
        missing: the condition that the cell is empty.
    """
    from sqlglot import exp

    known = [_written(cell, kind, values) for cell in cells_of(test, kind)]
    if test.bound is not None:
        compared = within(column, test.bound, known)
        return exp.and_(compared, missing.not_()) if kind in ("real", "decimal") else compared
    return one_of(column, known, missing if test.null else None)


def within(column: exp.Expr, bound: Bound, ends: list[exp.Expr]) -> exp.Expr:
    """Whether a cell is within a bound."""
    from sqlglot import exp

    if bound == "between":
        return exp.Between(this=column, low=ends[0], high=ends[1])
    compared: exp.Expr = getattr(exp, _BOUNDS[bound])(this=column, expression=ends[0])
    return compared


def one_of(column: exp.Expr, known: list[exp.Expr], missing: exp.Expr | None) -> exp.Expr:
    """Whether a cell is one of some values, or empty where that is allowed."""
    from sqlglot import exp

    parts: list[exp.Expr] = [] if missing is None else [missing]
    if len(known) == 1:
        parts.append(column.eq(known[0]))
    elif known:
        parts.append(exp.In(this=column, expressions=known))
    return exp.or_(*parts) if parts else exp.false()


def _written(cell: Any, kind: Kind, values: dict[str, Any] | None) -> exp.Expr:
    from sqlglot import exp

    if values is not None and isinstance(cell, bool | int | float | str):
        name = f"v{len(values)}"
        values[name] = cell
        return exp.Placeholder(this=name)
    return literal(cell)


def literal(value: Any) -> exp.Expr:
    """A value in SQL."""
    from sqlglot import exp

    if isinstance(value, Decimal):
        return exp.Literal.number(f"{value:f}")
    if isinstance(value, uuid.UUID):
        return exp.Literal.string(str(value))
    if isinstance(value, dt.datetime):
        kind = "TIMESTAMPTZ" if value.tzinfo else "TIMESTAMP"
        return exp.cast(exp.Literal.string(value.isoformat(" ")), kind)
    if isinstance(value, dt.date):
        return exp.cast(exp.Literal.string(value.isoformat()), "DATE")
    return exp.convert(value)

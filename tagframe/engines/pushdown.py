"""What a source that speaks SQL gives, so that one builder writes the statements of merges for all of them.

A source says what its columns hold, how a table stands in FROM, and runs a statement. Merges write the statements
(:mod:`tagframe.merging.in_engine`, :mod:`tagframe.merging.semi_join`). Tables have the names that the engine gives
them.
"""

from __future__ import annotations

import datetime as dt
import math
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pandas as pd

from tagframe.engines.cells import EXACT, Bound, CellTest, Kind, cells_of, is_read
from tagframe.errors import UnreadableTable

if TYPE_CHECKING:
    from sqlglot import exp


MAX_VALUES = 1_000
"""At most this many values are written into a statement."""
_INTEGER_END = 2**63
_BOUNDS: dict[Bound, str] = {"<": "LT", "<=": "LTE", ">": "GT", ">=": "GTE"}


class Refused(UnreadableTable):
    """A source rejects a statement of ours: the merge takes another way."""


@dataclass(frozen=True)
class Cells:
    """What a column holds.

    Attributes:
        key: as a key: "integer" of 64 bits, "text" that is compared by its characters, "null" for no values. Columns
            with the same other word are comparable; "" is for what SQL and pandas may compare differently.
        kind: what tests compare its cells as.
        cast: the type that a statement casts the column to before it compares it, as sqlglot calls it; "" for none.
    """

    key: str
    kind: Kind
    cast: str = ""


@dataclass(frozen=True)
class Statement:
    """A statement of ours that gives rows.

    Attributes:
        query: its text.
        columns: (table, column, name) of what it selects, in order; of what is counted or summed ("", "integer" or
            "real", name).
        what: what is read, for messages.
        values: of its placeholders, and of the keys that are sent with it.
        limit: the most rows, if the query has such a limit.
        counts: whether it gives one row of numbers, so that the order in which rows are read does not matter.
    """

    query: str
    columns: Sequence[tuple[str, str, str]]
    what: str
    values: Mapping[str, Any] | None = None
    limit: int | None = None
    counts: bool = False

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
        is_typed: whether columns have types; if not, each cell has its own.
        joins_outer: whether it has full outer joins.
        joins_in_order: whether an inner join without tests is written as a cross join, whose tables the source reads in
            the written order, until there are enough rows.
        sorts_texts: whether texts are ordered by their characters, not by the rules of a language.
        starts_early: whether a limited query tries a table's first rows before it reads all.
        takes_keys: whether rows of single tables are selected there by keys that are sent: :meth:`among`.
        collation: by which keys are compared, if not by that of their columns.
        nan_kinds: the kinds of cells that may be NaN, which counts as missing.
        stored: the :meth:`number` that says where a row is stored, by which a limited statement is not sorted; "".
    """

    kind: str
    dialect: str
    binds = False
    as_in_memory = True
    is_typed = True
    joins_outer = True
    joins_in_order = False
    sorts_texts = True
    starts_early = False
    takes_keys = True
    collation = ""
    nan_kinds: tuple[Kind, ...] = ()
    stored = ""

    @abstractmethod
    def cells(self, table: str, column: str) -> Cells:
        """What the column holds."""

    @abstractmethod
    def item(self, table: str, alias: str, *, numbered: bool = False, first: int | None = None) -> exp.Expr:
        """The table in FROM or JOIN.

        Args:
            table: which.
            alias: what the statement calls it.
            numbered: whether its rows are sorted by :meth:`number`.
            first: only so many rows, from its beginning; see :attr:`starts_early`.
        """

    @abstractmethod
    def rows(self, statement: Statement) -> pd.DataFrame:
        """What a statement of ours gives."""

    def batches(self, statement: Statement, rows: int) -> Iterator[pd.DataFrame]:
        """The same in frames of about so many rows; a source that cannot stream gives them in one."""
        yield self.rows(statement)

    def number(self, table: str) -> str | None:
        """The column that sorts the rows of a table into the order of :meth:`Engine.numbered`; None without one."""
        return None

    def lets_none_repeat(self, table: str, columns: Sequence[str]) -> bool:
        """Whether the source itself keeps the keys of these columns unique."""
        return False

    def facts(self, table: str) -> dict[Any, Any]:
        """Where facts about the rows of a table are noted for as long as the rows do not change."""
        return {}

    def among(self, column: exp.Expr, cells: Cells, keys: pd.Index, values: dict[str, Any]) -> exp.Expr:
        """Whether a key of integers or text is one of these; ``values`` gets what is sent with the statement."""
        raise NotImplementedError


def compared(pushdown: Pushdown, table: str, column: str, alias: str) -> exp.Expr:
    """A column in the form in which keys and tests compare it, and keys are grouped."""
    from sqlglot import exp

    node: exp.Expr = named_column(column, alias)
    if pushdown.collation:
        return exp.Collate(this=node, expression=exp.Var(this=pushdown.collation))
    return exp.cast(node, cast) if (cast := pushdown.cells(table, column).cast) else node


def named_column(column: str, alias: str) -> exp.Column:
    """A column by its name and its table's alias."""
    from sqlglot import exp

    return exp.column(exp.to_identifier(column, quoted=True), table=exp.to_identifier(alias, quoted=True))


def named_item(source: str, alias: str) -> exp.Expr:
    """An item in FROM, as SQL, with a name."""
    from sqlglot import exp

    return exp.Table(this=exp.Var(this=source), alias=exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))


def can_test(pushdown: Pushdown, table: str, test: CellTest) -> bool:
    """Whether a statement can express a test, so that the same rows fit it as in memory."""
    cells = pushdown.cells(table, test.column[1])
    kind = cells.kind
    if test.bound and kind == "text" and not pushdown.sorts_texts:
        return False
    if cells.key == "null":
        return not (test.bound and test.is_plain)  # pandas may find no order among nulls
    if not pushdown.is_typed and not test.is_plain:
        # Memory decides what a value without a meaning among such cells is, and compares large numbers with floats.
        small = all(abs(value) < EXACT for value in test.values if isinstance(value, int | float))
        if not (small and all(is_read(value, kind) for value in test.values)):
            return False
    return can_be_written(test, kind)


def can_be_written(test: CellTest, kind: Kind) -> bool:
    """Whether SQL can express the test for a column of this kind."""
    if not test.values:
        return True
    if not kind or len(test.values) > MAX_VALUES:
        return False
    if test.is_plain:
        numeric = kind in ("integer", "real") or (kind == "boolean" and test.bound is None)
        if not (numeric or kind == "text") or not all(isinstance(value, str) != numeric for value in test.values):
            return False
        if test.bound is not None:
            return kind == "text" or all(abs(value) < EXACT for value in test.values)
    if test.bound is not None and kind in ("real32", "boolean"):
        return False
    return all(map(_is_writable, cells_of(test, kind)))


def _is_writable(cell: Any) -> bool:
    if isinstance(cell, str):
        return "\x00" not in cell and "\ufffd" not in cell and not any("\ud800" <= sign <= "\udfff" for sign in cell)
    if isinstance(cell, int):
        return -_INTEGER_END <= cell < _INTEGER_END
    if isinstance(cell, pd.Timestamp):
        return not cell.nanosecond
    return math.isfinite(cell) if isinstance(cell, float | Decimal) else True


def condition(
    pushdown: Pushdown, column: exp.Expr, table: str, test: CellTest, values: dict[str, Any] | None
) -> exp.Expr:
    """The test of a column in a statement.

    Args:
        pushdown: that runs the statement.
        column: as it is compared.
        table: of the column.
        test: one that a statement can express.
        values: collects the values of the statement's placeholders; None to write them into the statement.
    """
    from sqlglot import exp

    cells = pushdown.cells(table, test.column[1])
    kind, missing = cells.kind, is_missing(pushdown, column, cells.kind)
    if cells.key == "null":
        return missing if test.null else exp.false()
    known = [_written(cell, values) for cell in cells_of(test, kind)]
    if test.bound is not None:
        inside = within(column, test.bound, known)
        return exp.and_(inside, missing.not_()) if kind in ("real", "decimal") else inside
    return one_of(column, known, missing if test.null else None)


def is_missing(pushdown: Pushdown, column: exp.Expr, kind: Kind) -> exp.Expr:
    """Whether a cell is empty. NaN counts as empty; where it exists, it is equal to itself and the greatest number."""
    from sqlglot import exp

    null = column.is_(exp.null())
    if kind not in pushdown.nan_kinds:
        return null
    type = "DECIMAL" if kind == "decimal" else "DOUBLE"
    return exp.or_(null, column.eq(exp.cast(exp.Literal.string("NaN"), type)))


def within(column: exp.Expr, bound: Bound, ends: list[exp.Expr]) -> exp.Expr:
    """Whether a cell is within a bound."""
    from sqlglot import exp

    if bound == "between":
        return exp.Between(this=column, low=ends[0], high=ends[1])
    node: exp.Expr = getattr(exp, _BOUNDS[bound])(this=column, expression=ends[0])
    return node


def one_of(column: exp.Expr, known: list[exp.Expr], missing: exp.Expr | None) -> exp.Expr:
    """Whether a cell is one of some values, or empty where that is allowed."""
    from sqlglot import exp

    parts: list[exp.Expr] = [] if missing is None else [missing]
    if len(known) == 1:
        parts.append(column.eq(known[0]))
    elif known:
        parts.append(exp.In(this=column, expressions=known))
    return exp.or_(*parts) if parts else exp.false()


def _written(cell: Any, values: dict[str, Any] | None) -> exp.Expr:
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

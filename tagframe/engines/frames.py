"""Tables in memory: frames, and what one reader sees of the tables of any engine.

A reader sees some columns, and the rows for which the owner's condition is true. Statements run over a copy of what the
reader sees. No process of theirs has any other row or column, so no order of evaluation, error or function of an engine
can tell of them.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np
import pandas as pd

from tagframe.engines.base import (
    CHUNK_ROWS,
    Chunk,
    Engine,
    SQLLimits,
    Stamp,
    TableShape,
    UntrustedStatement,
    frame_chunks,
)
from tagframe.engines.cells import Bound, CellTest, Kind, fits, is_read, kind_of
from tagframe.engines.pushdown import can_be_written
from tagframe.engines.sql_text import trees_of
from tagframe.engines.sqlite.statement import RowsOnly, relation, run_statement
from tagframe.errors import ColumnNotFound, InvalidArgument, UnreadableTable, UnsafeSQL, did_you_mean

if TYPE_CHECKING:
    from sqlglot import exp


_CHUNK_ROWS = 20 * CHUNK_ROWS
"""These rows are in memory already, so chunks are larger: each chunk is counted and hashed separately."""


@dataclass(frozen=True, eq=False)
class FrameEngine(RowsOnly):
    """Frames that live in memory, by their names in the source."""

    frames: Mapping[str, pd.DataFrame]
    path: None = None
    kind: str = "frames"
    identity: str = "frames in memory"

    def shapes(self) -> list[TableShape]:
        """The frames' names and dtypes."""
        return [
            TableShape(name, tuple(map(str, frame.columns)), tuple(str(dtype) for dtype in frame.dtypes))
            for name, frame in self.frames.items()
        ]

    def without(self, columns: Mapping[str, Collection[str]]) -> Self:
        """The same frames without these columns.

        Args:
            columns: by the names of frames.
        """
        frames = {
            name: frame.loc[:, [str(label) not in columns.get(name, ()) for label in frame.columns]]
            for name, frame in self.frames.items()
        }
        return replace(self, frames=frames)

    def chunks(self, shape: TableShape) -> Iterator[Chunk]:
        """The rows of a frame in pieces."""
        return frame_chunks(self.frames[shape.name], _CHUNK_ROWS)

    def scan(self, table: str, columns: Sequence[str] | None = None, limit: int | None = None) -> pd.DataFrame:
        """A copy of a frame, index included, with its columns' names as text."""
        frame = self.frames[table]
        positions = {str(name): position for position, name in enumerate(frame.columns)}
        chosen = list(positions) if columns is None else list(columns)
        some = frame if limit is None else frame.head(limit)
        # One copy, whatever is chosen: a frame of the chosen columns first would be a second one.
        data = {name: some.iloc[:, positions[name]] for name in chosen}
        return pd.DataFrame(data, index=some.index, columns=chosen, copy=True)

    def fingerprint(self, known: Stamp | None = None) -> None:
        """Nothing: frames are profiled each time."""


def frame_engines(
    frames: Mapping[Any, pd.DataFrame],
    default_database: str,
    engine_of: Callable[[Mapping[str, pd.DataFrame]], FrameEngine] = FrameEngine,
) -> list[tuple[str, dict[str, str], FrameEngine]]:
    """The frames by database: (database, {name in the corpus: name in the engine}, engine).

    A name with a dot, ``"bank.loan"``, is a table of the database before the first dot. Named index levels become the
    first columns; an index without a name is left out. ``engine_of`` makes the engine.

    Raises:
        InvalidArgument: a name is not a text or is empty, a value is not a frame, columns are a MultiIndex or have one
            name twice, or an index level cannot be a column.
    """
    databases: dict[str, dict[str, str]] = {}
    for name, frame in frames.items():
        _check_frame(name, frame)
        database, dot, table = name.partition(".")
        if not dot:
            database, table = default_database, name
        if not database or not table:
            raise InvalidArgument(f"a frame's name must be 'table' or 'database.table'; got {name!r}")
        tables = databases.setdefault(database, {})
        if table in tables:
            raise InvalidArgument(f"two frames are called {database}.{table}: {tables[table]!r} and {name!r}")
        tables[table] = name
    engine = engine_of({name: _with_levels(name, frame) for name, frame in frames.items()})
    return [(database, tables, engine) for database, tables in databases.items()]


def _check_frame(name: Any, frame: Any) -> None:
    if not isinstance(name, str):
        raise InvalidArgument(f"a frame's name must be text; got {name!r} of type {type(name).__name__}")
    if not isinstance(frame, pd.DataFrame):
        raise InvalidArgument(f"{name!r} is a {type(frame).__name__}, not a pandas.DataFrame")
    if isinstance(frame.columns, pd.MultiIndex):
        raise InvalidArgument(
            f"the columns of {name!r} are a MultiIndex of {frame.columns.nlevels} levels; flatten them first, for "
            "example with frame.columns = ['_'.join(map(str, levels)) for levels in frame.columns]"
        )
    names = pd.Index([str(column) for column in frame.columns], dtype=object)
    twice = names[names.duplicated()].unique().tolist()
    if twice:
        raise InvalidArgument(
            f"{name!r} has more than one column called {', '.join(map(repr, twice))} (names are compared as text); "
            "rename them, or keep the first ones with frame.loc[:, ~frame.columns.duplicated()]"
        )


def _with_levels(name: str, frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with the named levels of its index as its first columns."""
    if list(frame.index.names) == [None]:
        return frame
    if None in frame.index.names:
        raise InvalidArgument(
            f"the index of {name!r} has levels without a name, {list(frame.index.names)}: name them with "
            "frame.index.set_names, or drop them with frame.reset_index(drop=True)"
        )
    levels = list(map(str, frame.index.names))
    columns = list(map(str, frame.columns))
    for number, level in enumerate(levels):
        values = frame.index.get_level_values(number)
        is_twice = levels.index(level) != number
        if is_twice or (level in columns and not values.equals(pd.Index(frame.iloc[:, columns.index(level)]))):
            raise InvalidArgument(
                f"{name!r} has an index level {level!r} and a column or another level of the same name, with different "
                "values: rename one, for example with frame.rename_axis('other')"
            )
    new = [number for number, level in enumerate(levels) if level not in columns]
    found = frame.reset_index(new) if new else frame
    return found if len(new) == len(levels) else found.reset_index(drop=True)


_NUMBER, _ROWS = "tagframe row", "rows"
_SECONDS = 600.0


@dataclass(frozen=True)
class SeenTable:
    """What is seen of a table.

    Attributes:
        engine, table: where its rows are.
        columns, declared_types: those that are seen.
        rule: a condition in SQLite's SQL; only rows for which it is true are seen. "" for all rows.
        tested: the columns that it tests, seen or not.
    """

    engine: Engine
    table: str
    columns: tuple[str, ...]
    declared_types: tuple[str, ...]
    rule: str = ""
    tested: tuple[str, ...] = ()

    def rows(self, columns: Sequence[str], limit: int | None) -> pd.DataFrame:
        """The rows that are seen, in the source's order."""
        if not self.rule:
            return self.engine.scan(self.table, list(columns), limit)
        tests = _comparisons(self.rule, self.tested)
        frame = self.engine.scan(self.table, list(dict.fromkeys([*columns, *self.tested])))
        kinds = {name: kind_of(frame[name]) for name in self.tested}
        said = _as_said(tests, kinds.__getitem__)
        if said and all(can_be_written(test, kinds[test.column[1]]) for test in said):
            kept = np.flatnonzero(np.logical_and.reduce([fits(frame[test.column[1]], test) for test in said]))
        else:
            kept = np.array(self._true_of(frame), dtype=np.intp)
        return frame.iloc[kept[:limit]][list(columns)]

    def _true_of(self, frame: pd.DataFrame) -> list[int]:
        if frame.empty:
            return []
        tested = pd.DataFrame({name: _comparable(frame[name]) for name in self.tested}).reset_index(drop=True)
        tested.insert(0, _NUMBER, range(len(frame)))
        sql = f'SELECT "{_NUMBER}" FROM {_ROWS} WHERE (\n{self.rule}\n) ORDER BY 1'
        limits = SQLLimits(rows=len(frame), seconds=_SECONDS, memory=512 + len(frame) // 2_000)
        found = run_statement(UntrustedStatement(sql, {}, {_ROWS: relation(tested)}, limits), file=None)
        return [int(number) for number in found.iloc[:, 0]]


def _comparable(cells: pd.Series) -> pd.Series:
    """A column as a rule tests it: numbers, texts, or moments as SQLite writes them.

    Raises:
        InvalidArgument: it has cells of several kinds, whose order depends on the engine.
    """
    kind = pd.api.types.infer_dtype(cells, skipna=True)
    if kind in ("string", "empty") or (cells.dtype.kind in "iufb" and kind != "complex"):
        return cells
    if kind in ("integer", "floating", "boolean", "decimal", "mixed-integer-float"):
        numbers = [None if null else cell for cell, null in zip(cells, cells.isna(), strict=True)]
        whole = kind in ("integer", "boolean")
        as_number = [None if cell is None else int(cell) if whole else float(cell) for cell in numbers]
        return pd.Series(as_number, cells.index, dtype=object)
    if kind in ("date", "datetime", "datetime64"):
        texts = [None if null else str(cell) for cell, null in zip(cells, cells.isna(), strict=True)]
        is_day = all(text is None or text[10:] in ("", " 00:00:00") for text in texts)
        return pd.Series([text and text[:10] if is_day else text for text in texts], cells.index, dtype=object)
    raise InvalidArgument(f"a row rule cannot test {str(cells.name)!r}, which has cells of the kind {kind!r}")


_BOUNDS: dict[str, Bound] = {"lt": "<", "lte": "<=", "gt": ">", "gte": ">="}
_TURNED: dict[str, str] = {"lt": "gt", "lte": "gte", "gt": "lt", "gte": "lte", "eq": "eq"}
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


def _comparisons(rule: str, tested: Sequence[str]) -> tuple[CellTest, ...]:
    """The comparisons of columns with numbers and texts that the rule says, joined by AND; none if it says more."""
    from sqlglot import exp

    names = {name.casefold(): name for name in tested}
    try:
        tree = trees_of(rule, "sqlite")[0].unnest()
        return tuple(
            _comparison(part.unnest(), names) for part in (tree.flatten() if isinstance(tree, exp.And) else [tree])
        )
    except ValueError:
        return ()


def _comparison(part: exp.Expr, names: Mapping[str, str]) -> CellTest:
    from sqlglot import exp

    column, sign, others = part.this, part.key, [part.args.get("expression")]
    if isinstance(part, exp.In):
        sign, others = "eq", part.expressions
    elif isinstance(part, exp.Between):
        others = [part.args["low"], part.args["high"]]
    elif sign in _TURNED and isinstance(part.expression, exp.Column):
        column, sign, others = part.expression, _TURNED[sign], [part.this]
    if sign not in (*_TURNED, "between") or not isinstance(column, exp.Column) or not others:
        raise ValueError(f"{part.sql()} is no plain comparison")
    bound: Bound | None = "between" if sign == "between" else _BOUNDS.get(sign)
    return CellTest(("", names[column.name.casefold()]), tuple(map(_constant, others)), bound=bound, is_plain=True)


def _constant(node: exp.Expr | None) -> int | float | str:
    from sqlglot import exp

    is_negative = isinstance(node, exp.Neg)
    literal = node.this if isinstance(node, exp.Neg) else node
    if not isinstance(literal, exp.Literal) or (is_negative and literal.is_string):
        raise ValueError("neither a number nor a text")
    if literal.is_string:
        return str(literal.this)
    number = int(literal.this) if literal.this.isdigit() else float(literal.this)
    return -number if is_negative else number


def _as_said(tests: Sequence[CellTest], kind_of_column: Callable[[str], Kind]) -> tuple[CellTest, ...]:
    """The tests as columns of these kinds are compared, in the meaning of the rule; none if one has another meaning."""
    said = []
    for test in tests:
        kind = kind_of_column(test.column[1])
        if kind in ("date", "moment", "decimal"):
            # A rule compares a moment as a text, of which a day is the beginning.
            is_day = all(isinstance(value, str) and _DAY.fullmatch(value) for value in test.values)
            is_same = kind == "date" or test.bound in (">=", "<")
            is_number = not any(isinstance(value, str) for value in test.values)
            if not (is_number if kind == "decimal" else is_day and is_same):
                return ()
            if not all(is_read(value, kind) for value in test.values):
                return ()
            test = replace(test, is_plain=False)
        said.append(test)
    return tuple(said)


def columns_tested(rule: str, columns: Sequence[str]) -> tuple[str, ...]:
    """The columns of a table that a row rule tests.

    Args:
        rule: one condition over the table, without subqueries.
        columns: of the table.

    Raises:
        InvalidArgument: it is none.
        ColumnNotFound: it names a column that the table does not have.
    """
    from sqlglot import exp

    try:
        trees = trees_of(rule, "sqlite") if isinstance(rule, str) else []
    except UnsafeSQL as error:
        raise InvalidArgument(f"the row rule {rule!r} is no condition: {error}") from error
    if len(trees) != 1 or not isinstance(trees[0], exp.Condition) or trees[0].find(exp.Query, exp.Command) is not None:
        raise InvalidArgument(
            f'a row rule is one condition over the table\'s own columns, such as "a = 1"; got {rule!r}'
        )
    found: dict[str, None] = {}
    for column in trees[0].find_all(exp.Column):
        called = [name for name in columns if name.casefold() == column.name.casefold()]
        if column.table or not called:
            raise ColumnNotFound(f"no column {column.sql()!r} for the row rule: {did_you_mean(column.name, columns)}")
        if len(called) > 1:
            raise InvalidArgument(f"the row rule {rule!r} may mean any of the columns {called}: rename one")
        found[called[0]] = None
    if not found:
        raise InvalidArgument(f"a row rule tests a column at least; got {rule!r}")
    return tuple(found)


@dataclass(frozen=True, eq=False)
class SeenEngine(RowsOnly):
    """The tables that one reader sees, by their ids; of any engines."""

    seen: Mapping[str, SeenTable] = field(repr=False)
    path: None = None
    kind: str = "frames"
    identity: str = "the tables of this reader"

    def shapes(self) -> list[TableShape]:
        """The names of tables and columns."""
        return [TableShape(id, one.columns, one.declared_types) for id, one in self.seen.items()]

    def scan(self, table: str, columns: Sequence[str] | None = None, limit: int | None = None) -> pd.DataFrame:
        """The rows that are seen; an error tells nothing of the source, because its words may quote other cells."""
        one = self.seen[table]
        names = one.columns if columns is None else columns
        if unknown := [name for name in names if name not in one.columns]:
            raise ColumnNotFound(f"no column {unknown[0]!r} in {table}: {did_you_mean(unknown[0], one.columns)}")
        rows = None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                rows = one.rows(names, limit)
            except Exception:  # of any kind: see above
                rows = None
        if rows is None:
            raise UnreadableTable(f"the rows of {table} cannot be read now; the corpus' owner can see why")
        return rows.reset_index(drop=True) if one.rule else rows

    def fingerprint(self, known: Stamp | None = None) -> None:
        """Nothing: it is no file."""

    def __reduce__(self) -> NoReturn:
        raise InvalidArgument(
            "what one reader sees is not pickled, because its source has more: pickle the corpus, and make the "
            "reader's corpus with corpus.for_reader(…) where it is used"
        )

    def __deepcopy__(self, memo: Any) -> SeenEngine:
        return self

"""A source without its hidden tables and columns: for all who use the engine, they do not exist.

An engine that hides has a list of what may be seen, not of what is hidden. So no name of a hidden thing is in it or in
its pickle, and what its source gets later is not seen either, until the source is opened again.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from tagframe.engines.base import (
    Chunk,
    Engine,
    ForeignKey,
    Readable,
    Stamp,
    TableShape,
    TableStatistics,
    UntrustedStatement,
)
from tagframe.engines.frames import FrameEngine
from tagframe.errors import (
    ColumnNotFound,
    HidingWarning,
    InvalidArgument,
    TableNotFound,
    UnreadableTable,
    did_you_mean,
    warn,
)

if TYPE_CHECKING:
    from tagframe.engines.pushdown import Pushdown

Visible = Mapping[str, tuple[str, ...]]
"""The columns that may be seen, by the names of their tables in the source."""


def plain_name(name: str) -> str:
    """A name without case, blanks and what no reader sees.

    >>> plain_name("Secret\\u00a0 Code ") == plain_name("secretcode")
    True
    """
    visible = (one for one in unicodedata.normalize("NFKC", name) if unicodedata.category(one)[0] not in "CZ")
    return "".join(visible).casefold()


class Hiding:
    """A list of tables, and of columns as ``table.column``, that do not exist for a corpus, or are private in it.

    A table may be given by its name or with its database; a bare name stands for every table of that name. Case,
    blanks and invisible characters do not count.

    Args:
        kind: the argument that has it: "hide" or "private".
        names: those of a caller, which have to be there.
        beside: those of the file beside the data, which may be of other data, too.

    Raises:
        InvalidArgument: ``names`` is no list of names.
    """

    def __init__(self, kind: str, names: object = (), beside: Sequence[str] = ()) -> None:
        self._kind, self._given = kind, checked_names(kind, names)
        self._names = {plain_name(name): name for name in (*beside, *self._given)}
        self._matched: set[str] = set()

    @property
    def part(self) -> str:
        """A digest of the names; "" for none."""
        return hashlib.sha256("\n".join(sorted(self._names)).encode()).hexdigest()[:16] if self._names else ""

    def left(self, table: Iterable[str], columns: Sequence[str]) -> tuple[str, ...]:
        """The columns of a table that are not on the list; none if the table is.

        Args:
            table: all names of the table.
            columns: of the table.
        """
        names = {*map(plain_name, table)}
        gone = names & self._names.keys()
        columns_gone = {
            column: {f"{name}.{plain_name(column)}" for name in names} & self._names.keys() for column in columns
        }
        self._matched |= gone.union(*columns_gone.values())
        return () if gone else tuple(column for column in columns if not columns_gone[column])

    def visible(self, shapes: Iterable[TableShape], databases: Iterable[str] = ()) -> dict[str, tuple[str, ...]]:
        """The columns of some tables that are not on the list; without the tables that are.

        Args:
            shapes: of the tables.
            databases: the names that the database of a shape without one may have in a corpus.
        """
        named, left = list(databases), {}
        for shape in shapes:
            own = {shape.name, shape.called or shape.name}
            homes = [shape.database] if shape.database else named
            left[shape.name] = self.left({*own, *(f"{home}.{name}" for home in homes for name in own)}, shape.columns)
        return {table: columns for table, columns in left.items() if columns}

    def check(self, shapes: Iterable[TableShape], but: Hiding | None = None) -> None:
        """Report names that nothing has had so far.

        Args:
            shapes: of all tables.
            but: names of this list are not reported.

        Warns:
            HidingWarning: the file beside the data names a column that a table does not have.

        Raises:
            TableNotFound, ColumnNotFound: the caller names what is not there.
        """
        known = self._matched if but is None else self._matched | but._names.keys()
        if not (unmatched := [name for plain, name in self._names.items() if plain not in known]):
            return
        tables = {shape.name: shape.columns for shape in shapes}
        bare = {plain_name(name.rpartition(".")[2]): name for name in tables}
        for name in unmatched:
            table, dot, column = name.rpartition(".")
            of = bare.get(plain_name(table.rpartition(".")[2])) if dot else None
            if name not in self._given and of is not None:
                warn(
                    f"tagframe.toml has {name} in {self._kind} = […], and there is no such column; if it has another "
                    "name now, write that name",
                    HidingWarning,
                )
            elif name in self._given and of is not None:
                raise ColumnNotFound(f"no column {column!r} in {of}: {did_you_mean(column, tables[of])}")
            elif name in self._given:
                raise TableNotFound(
                    f"no table {name!r} in {did_you_mean(name, tables)}; a column is named with its table"
                )


def checked_names(kind: str, names: object) -> list[str]:
    """A list of names, as it is given for tables and columns.

    Raises:
        InvalidArgument: it is none.
    """
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise InvalidArgument(f'{kind} must be a list of names, such as ["users.email", "salaries"]; got {names!r}')
    listed = list(names)
    if not all(isinstance(name, str) and name.strip() for name in listed):
        raise InvalidArgument(f"{kind} must have names of tables and columns; got {listed!r}")
    return listed


def hiding(engine: Engine, visible: Visible, elsewhere: frozenset[str] = frozenset()) -> Engine:
    """The engine with only these tables and columns; frames in memory are left out, so that no pickle has them.

    Args:
        engine: of a source.
        visible: what it offers.
        elsewhere: names of what is hidden in other sources, in lower case.
    """
    engine = (engine.inner if isinstance(engine, HidingEngine) else engine).only(visible)
    if isinstance(engine, FrameEngine):
        return engine
    return HidingEngine(engine, {table: tuple(columns) for table, columns in visible.items()}, elsewhere)


def narrowed(shapes: Sequence[TableShape], visible: Visible, gone: Collection[str]) -> list[TableShape]:
    """The visible ones of some tables, without keys, unique sets and comments that name what is hidden.

    Args:
        shapes: of the tables.
        visible: what may be seen of them.
        gone: the names that no comment may have, in lower case.
    """
    called = {
        (shape.database, name.casefold()): {*map(str.casefold, visible.get(shape.name, ()))}
        for shape in shapes
        for name in (shape.name, shape.called or shape.name)
    }

    def of_visible(shape: TableShape) -> TableShape:
        there = {*visible[shape.name]}

        def leads_to_visible(key: ForeignKey) -> bool:
            others = called.get((key.other_database or shape.database, key.other_table.casefold()), ())
            return there >= {*key.columns} and all(name.casefold() in others for name in key.other_columns)

        def left(values: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(one for name, one in zip(shape.columns, values, strict=True) if name in there)

        comments = left(shape.column_comments) if shape.column_comments else ()
        return replace(
            shape,
            columns=left(shape.columns),
            declared_types=left(shape.declared_types),
            primary_key=shape.primary_key if there >= {*shape.primary_key} else (),
            foreign_keys=tuple(filter(leads_to_visible, shape.foreign_keys)),
            unique=tuple(columns for columns in shape.unique if there >= {*columns}),
            comment="" if mentions(shape.comment, gone) else shape.comment,
            column_comments=tuple("" if mentions(comment, gone) else comment for comment in comments),
        )

    return [of_visible(shape) for shape in shapes if shape.name in visible]


def names_gone(*sources: tuple[Iterable[TableShape], Visible]) -> frozenset[str]:
    """The names of tables and columns that no visible table or column of any of the sources has, in lower case."""
    gone: set[str] = set()
    there: set[str] = set()
    for shapes, visible in sources:
        for shape in shapes:
            columns = visible.get(shape.name, ())
            (there if columns else gone).update(filter(None, (shape.name, shape.called)))
            there.update(columns)
            gone.update(column for column in shape.columns if column not in columns)
    return frozenset(map(str.casefold, gone)) - frozenset(map(str.casefold, there))


def mentions(text: str, names: Collection[str]) -> bool:
    """Whether a text has one of these names, given in lower case, as a word of its own."""
    folded = text.casefold()
    return any(name in folded and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", folded) for name in names)


def computed_of_hidden(engine: Engine, visible: Visible) -> list[str]:
    """The visible views and generated columns that are computed from what is hidden, also through other views.

    Their definitions name it, or are not known.
    """
    shapes = {shape.name: shape for shape in engine.shapes()}
    hidden = {name: _folded({*shape.columns}.difference(visible.get(name, ()))) for name, shape in shapes.items()}
    gone = {table for table in shapes if table not in visible}
    waiting = {
        (table, column): text
        for (table, column), text in engine.definitions().items()
        if table in shapes and (column in visible.get(table, ()) if column else table in visible)
    }
    computed: list[tuple[str, str]] = []
    while new := [name for name, text in waiting.items() if _reads_hidden(name, text, shapes, hidden, gone)]:
        computed += new
        gone |= {table for table, column in new if not column}
        waiting = {name: text for name, text in waiting.items() if name not in new}
    return sorted(f"{table}.{column}" if column else table for table, column in computed)


def warn_of_computed(*engines: Engine) -> None:
    """Name the views and generated columns of engines that are computed from what they hide, in one warning."""
    named = {
        name
        for engine in engines
        if isinstance(engine, HidingEngine) and engine.visible and (engine.path is None or engine.path.exists())
        for name in computed_of_hidden(engine.inner, engine.visible)
    }
    if named:
        warn(
            f"{', '.join(sorted(named))}: computed from what is hidden, by the definition in the database, and still "
            f"read; to hide them, too: hide=[…, {', '.join(map(repr, sorted(named)))}]",
            HidingWarning,
        )


def _reads_hidden(
    name: tuple[str, str],
    text: str,
    shapes: Mapping[str, TableShape],
    hidden: Mapping[str, Collection[str]],
    gone: Collection[str],
) -> bool:
    """Whether a view, or a generated column, may read what is hidden; if its definition is not known, it may."""
    table, column = name
    if column:
        return bool(hidden[table]) and (not text or mentions(text, hidden[table]))
    if not text:
        return bool(gone) or any(hidden.values())
    others = [other for other in shapes.values() if other.name != table]
    read = [other.name for other in others if mentions(text, _folded([other.name, other.called or other.name]))]
    return any(one in gone or (hidden[one] and ("*" in text or mentions(text, hidden[one]))) for one in read)


def _folded(names: Iterable[str]) -> list[str]:
    return [*map(str.casefold, names)]


@dataclass(frozen=True)
class HidingEngine(Engine):
    """Another engine, of which only some tables and columns are offered.

    Attributes:
        inner: reads the source.
        visible: what may be seen.
        elsewhere: names of what is hidden in other sources; comments here may have them. A pickle does not.
    """

    inner: Engine
    visible: Visible
    elsewhere: frozenset[str] = field(default=frozenset(), repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        return {"inner": self.inner, "visible": self.visible}

    def _gone(self, shapes: Iterable[TableShape] | None = None) -> frozenset[str]:
        """The names that no text may have."""
        return names_gone((self.inner.shapes() if shapes is None else shapes, self.visible)) | self.elsewhere

    def __hash__(self) -> int:
        return hash((self.inner, frozenset(self.visible)))

    # What is said of the source as a whole is the inner engine's.
    path = property(lambda self: self.inner.path)
    kind = property(lambda self: self.inner.kind)
    dialect = property(lambda self: self.inner.dialect)
    picks_rows = property(lambda self: self.inner.picks_rows)  # type: ignore[assignment]
    identity = property(lambda self: self.inner.identity)
    is_database = property(lambda self: self.inner.is_database)  # type: ignore[assignment]
    is_copied = property(lambda self: self.inner.is_copied)  # type: ignore[assignment]
    joins = property(lambda self: self.inner.joins)  # type: ignore[assignment]
    default_schema = property(lambda self: self.inner.default_schema)  # type: ignore[assignment]

    def fingerprint(self, known: Stamp | None = None) -> Stamp | None:
        """That of the source: a catalogue is of one list of hidden things."""
        return self.inner.fingerprint(known)

    def kept_open(self) -> AbstractContextManager[None]:
        """As the inner engine."""
        return self.inner.kept_open()

    def shapes(self) -> list[TableShape]:
        """The visible tables."""
        shapes = self.inner.shapes()
        return narrowed(shapes, self.visible, self._gone(shapes))

    def closed(self) -> list[UnreadableTable]:
        """Those that name nothing hidden."""
        problems = self.inner.closed()
        gone = self._gone() if problems else frozenset[str]()
        return [problem for problem in problems if not mentions(str(problem), gone)]

    def chunks(self, shape: TableShape) -> Iterator[Chunk]:
        """The rows in the visible columns."""
        return self.inner.chunks(replace(shape, columns=self._columns(shape.name)))

    def statistics(self, shapes: Sequence[TableShape]) -> Iterator[TableStatistics | UnreadableTable] | None:
        """Of the visible columns."""
        full = {shape.name: shape for shape in self.inner.shapes()}
        known = self.inner.statistics([full[shape.name] for shape in shapes])
        return None if known is None else map(self._known, [full[shape.name] for shape in shapes], known)

    def _known(self, full: TableShape, known: TableStatistics | UnreadableTable) -> TableStatistics | UnreadableTable:
        if isinstance(known, UnreadableTable) or known.columns is None:
            return known
        there = self._columns(full.name)
        named = zip(full.columns, known.columns, strict=True)
        return replace(known, columns=tuple(column for name, column in named if name in there))

    def scan(self, table: str, columns: Sequence[str] | None = None, limit: int | None = None) -> pd.DataFrame:
        """The rows in these columns, or in all visible ones."""
        there = self._columns(table)
        for column in columns or ():
            if column not in there:
                raise ColumnNotFound(f"no column {column!r} in {table}: {did_you_mean(column, there)}")
        with self._silent():
            return self.inner.scan(table, there if columns is None else columns, limit)

    def pushdown(self, tables: Sequence[str]) -> AbstractContextManager[Pushdown] | None:
        """Of visible tables; statements of ours name visible columns only, because no plan has others."""
        for table in tables:
            self._columns(table)
        block = self.inner.pushdown(tables)
        return None if block is None else self._in_block(block)

    @contextmanager
    def _in_block(self, block: AbstractContextManager[Pushdown]) -> Iterator[Pushdown]:
        with self._silent(), block as pushdown:
            yield pushdown

    @contextmanager
    def _silent(self) -> Iterator[None]:
        """A block whose errors name nothing hidden: a source that has changed lists all of its columns."""
        try:
            yield
        except (ColumnNotFound, UnreadableTable) as error:
            shapes = self.inner.shapes()
            has_all = self.visible.keys() <= {shape.name for shape in shapes}  # else hidden names may be gone, too
            if has_all and not mentions(str(error), self._gone(shapes)):
                raise
            raise type(error)(f"{self.identity} has changed: call tagframe.open_corpus again") from None

    def definitions(self) -> Mapping[tuple[str, str], str]:
        """Those of what is visible that name nothing hidden."""
        gone = self._gone()
        return {
            (table, column): text
            for (table, column), text in self.inner.definitions().items()
            if table in self.visible and not mentions(text, gone)
        }

    def execute(self, statement: UntrustedStatement) -> pd.DataFrame:
        """A statement that may read visible columns only."""
        tables = {
            name: Readable(one.table, tuple(column for column in one.columns if column in self._columns(one.table)))
            for name, one in statement.tables.items()
        }
        with self._silent():  # a view that no longer runs names what it reads
            return self.inner.execute(replace(statement, tables=tables))

    def _columns(self, table: str) -> tuple[str, ...]:
        if table not in self.visible:
            raise UnreadableTable(f"there is no table {table!r} in {self.identity}")
        return self.visible[table]

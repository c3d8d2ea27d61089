"""Key pairs as text: ``"orders.buyer = customers.id"``, and columns that tables share by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tagframe.corpus.references import FORM, NamedTable, column_pairs
from tagframe.errors import ColumnNotFound, InvalidArgument, did_you_mean
from tagframe.keys.key_pair import Evidence, KeyPair

On = str | KeyPair | Sequence[str | KeyPair]
"""Key pairs that a user gives: see :func:`keys_on`."""

_GIVEN = Evidence(origin="given", name=1.0, reason="given by hand")


def keys_on(on: On, tables: Sequence[NamedTable]) -> list[KeyPair]:
    """The key pairs that a user gives.

    Args:
        on: ``"a.x = b.y"`` (several columns with ``and`` between; a table may be left out where only one has the
            column), a :class:`~tagframe.keys.KeyPair`, the name of a column that tables share, or a list of these.
            Names in a list are one key together, and so are pairs of the same two tables.
        tables: which the text may name; tables that share a column are joined to the first that has it.

    Raises:
        InvalidArgument: what is not of that form, or a side that may be in several tables.
        TableNotFound, ColumnNotFound: there is no such table or column.
    """
    if isinstance(on, Mapping):
        said = " and ".join(f"{left} = {right}" for left, right in on.items())
        raise InvalidArgument(
            f"on= is text, a key pair or a list of these, no dict: say on={said!r}, with tables before"
        )
    items = [on] if isinstance(on, str | KeyPair) else list(on)
    if not items or not all(isinstance(item, str | KeyPair) for item in items):
        raise InvalidArgument(f"on= is {FORM}, the name of a shared column, or a list of these; got {on!r}")
    found: list[KeyPair] = []
    shared: list[str] = []
    for item in items:
        if isinstance(item, KeyPair):
            found.append(replace(item, score=1.0, evidence=_GIVEN))
        elif "=" in item and not any(item in table.columns for table in tables):
            found.append(key_of(item, tables))
        else:
            shared.append(item)
    if shared:
        found += _by_name(shared, tables)
    return _one_a_pair(found)


def key_of(text: str, tables: Sequence[NamedTable]) -> KeyPair:
    """The key pair ``"a.x = b.y"``; see :func:`~tagframe.corpus.references.column_pairs`, which raises the same."""
    return KeyPair(*column_pairs(text, tables), 1.0, _GIVEN)


def text_of(key: KeyPair, tables: Sequence[NamedTable]) -> str:
    """The key pair as :func:`keys_on` reads it; without databases where the tables' names tell them apart."""
    names = Counter(table.name.casefold() for table in tables)
    shown = {table.id: table.name if names[table.name.casefold()] == 1 else table.id for table in tables}
    left, right = shown[key.left_table], shown[key.right_table]
    columns = zip(key.left_columns, key.right_columns, strict=True)
    return " and ".join(f"{left}.{mine} = {right}.{theirs}" for mine, theirs in columns)


def _by_name(columns: Sequence[str], tables: Sequence[NamedTable]) -> list[KeyPair]:
    """The key of these columns between the first table that has them all and each other one that does."""
    having = [table for table in tables if set(columns) <= set(table.columns)]
    if len(having) > 1:
        names = tuple(columns)
        return [KeyPair(having[0].id, names, other.id, names, 1.0, _GIVEN) for other in having[1:]]
    for column in columns:
        owners = [table.id for table in tables if column in table.columns]
        if len(owners) < 2:
            where = f"only {owners[0]} has a column {column!r}" if owners else f"no table has a column {column!r}"
            known = dict.fromkeys(name for table in tables if table.id not in owners for name in table.columns)
            raise ColumnNotFound(
                f"{where}. Columns of unlike names are joined by {FORM}; the others have {did_you_mean(column, known)}"
            )
    raise ColumnNotFound(
        f"no two tables have all of {', '.join(map(repr, columns))}. Names in on= are one key together; for several "
        f"keys write each as {FORM}"
    )


def _one_a_pair(keys: Sequence[KeyPair]) -> list[KeyPair]:
    """Pairs of the same two tables together, as one key of several columns."""
    found: dict[frozenset[str], KeyPair] = {}
    for key in keys:
        known = found.get(key.tables)
        if known is None:
            found[key.tables] = key
            continue
        other = key if key.left_table == known.left_table else key.reversed()
        pairs = dict.fromkeys(
            [
                *zip(known.left_columns, known.right_columns, strict=True),
                *zip(other.left_columns, other.right_columns, strict=True),
            ]
        )
        left, right = tuple(one for one, _ in pairs), tuple(theirs for _, theirs in pairs)
        found[key.tables] = replace(known, left_columns=left, right_columns=right)
    return list(found.values())

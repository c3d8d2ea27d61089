"""Key pairs, the names of their sides, and their evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tagframe.corpus.references import AS_ROLE
from tagframe.display import Displayable

Origin = Literal["inferred", "declared", "given", "shared", "model"]
Sign = Literal["=", "<=", ">=", "<", ">"]
TURNED: dict[Sign, Sign] = {"=": "=", "<=": ">=", ">=": "<=", "<": ">", ">": "<"}
"""The sign with its sides exchanged."""
_UNNAMED = "frame_"
NAMED = "give frames by name, as in {'animals': frame, 'owners': other}"
"""The way out if no keys are found between frames without names."""


def unnamed(number: int) -> str:
    """The name of a table that was given without one."""
    return f"{_UNNAMED}{number}"


def is_unnamed(table: str) -> bool:
    """Whether :func:`unnamed` made the name."""
    return table.startswith(_UNNAMED) and table.removeprefix(_UNNAMED).isdecimal()


def column_id(table: str, columns: tuple[str, ...]) -> str:
    """``database.table.column``; several columns are in brackets, and the role of a table stands at the end.

    >>> column_id("shop.users", ("id",)), column_id("shop.users as buyer", ("country", "id"))
    ('shop.users.id', 'shop.users.(country, id) as buyer')
    """
    own, as_role, role = table.rpartition(AS_ROLE)
    named = columns[0] if len(columns) == 1 else f"({', '.join(columns)})"
    return f"{own or table}.{named}{as_role}{role if own else ''}"


@dataclass(frozen=True)
class Evidence:
    """The evidence behind a key pair's score. Unknown values are None.

    Attributes:
        origin: "inferred" from data and names, "declared" by the source, "given" by the user, "shared": both columns
            reference a column of a third table, and neither needs to be unique; or "model": named by a model
            that planned the joins.
        contained: share of the left column's distinct values that the right one holds, in [0, 1].
        covered: share of the right column's distinct values that the left one holds, in [0, 1].
        error: one standard error of ``contained``; 0 if it was counted over all values.
        chance: the probability of the overlap by accident, divided by its probability for a true key.
        uniqueness: distinct over non-null values of the right column, in [0, 1].
        null_share: of the left column, in [0, 1].
        families: the type families of both columns.
        name: how well the names fit, in [0, 1].
        reason: the evidence in words.
        only: for a key of the rows of one type, the table and the column that has the type, and the type; else empty.
    """

    origin: Origin = "inferred"
    contained: float | None = None
    covered: float | None = None
    error: float = 0.0
    chance: float | None = None
    uniqueness: float | None = None
    null_share: float | None = None
    families: tuple[str, str] = ("", "")
    name: float = 0.0
    reason: str = ""
    only: tuple[str, ...] = ()

    @property
    def is_guess(self) -> bool:
        """Whether neither a source nor a person says that it is a key."""
        return self.origin in ("inferred", "model")


@dataclass(frozen=True, repr=False)
class KeyPair(Displayable):
    """A column (or several) of one table that references another table.

    Two key pairs are equal if their columns are equal, whatever their scores.

    Attributes:
        left_table, left_columns: the referencing side; many of its rows may share a value.
        right_table, right_columns: the referenced side.
        score: how sure the pair is, in [0, 1].
        evidence: the evidence behind the score.
        signs: how each left column is compared with its right one; empty if all are "=". One other sign means the
            nearest row as of a moment; two other signs mean all rows whose interval contains the moment
            (:mod:`tagframe.keys.as_of`).
    """

    left_table: str
    left_columns: tuple[str, ...]
    right_table: str
    right_columns: tuple[str, ...]
    score: float = field(default=1.0, compare=False)
    evidence: Evidence = field(default=Evidence(), compare=False)
    signs: tuple[Sign, ...] = ()

    @property
    def left(self) -> str:
        """``database.table.column`` of the referencing side."""
        return column_id(self.left_table, self.left_columns)

    @property
    def right(self) -> str:
        """``database.table.column`` of the referenced side."""
        return column_id(self.right_table, self.right_columns)

    @property
    def tables(self) -> frozenset[str]:
        """Both tables (one, for a self reference)."""
        return frozenset((self.left_table, self.right_table))

    def columns_of(self, table: str) -> tuple[str, ...]:
        """Its columns on the side of one of its tables."""
        return self.left_columns if table == self.left_table else self.right_columns

    def reversed(self) -> KeyPair:
        """The pair with its sides exchanged."""
        sides = self.right_table, self.right_columns, self.left_table, self.left_columns
        return KeyPair(*sides, self.score, self.evidence, tuple(TURNED[sign] for sign in self.signs))

    def is_part_of(self, other: KeyPair) -> bool:
        """Whether the other pair has the same tables, and all of this one's columns among more."""
        mine = {*self.comparisons} if self.left_table == other.left_table else {*self.reversed().comparisons}
        return self.tables == other.tables and mine < {*other.comparisons}

    @property
    def comparisons(self) -> list[tuple[str, Sign, str]]:
        """Each left column, how it is compared, and the right column."""
        signs: Sequence[Sign] = self.signs or ["="] * len(self.left_columns)
        return [*zip(self.left_columns, signs, self.right_columns, strict=True)]

    def to_json(self) -> dict[str, Any]:
        """A dictionary of plain values that :meth:`from_json` reads."""
        return {**vars(self), "evidence": vars(self.evidence)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> KeyPair:
        """Read what :meth:`to_json` wrote."""
        evidence = Evidence(**data["evidence"] | {name: tuple(data["evidence"][name]) for name in ("families", "only")})
        parts = {name: tuple(data[name]) for name in ("left_columns", "right_columns", "signs")}
        return cls(**{**data, **parts, "evidence": evidence})

    def __str__(self) -> str:
        why = f" · {self.evidence.reason}" if self.evidence.reason else ""
        sign = "→" if not self.signs else " ".join(self.signs)
        return f"{self.left} {sign} {self.right} ({self.score:.2f}{why})"

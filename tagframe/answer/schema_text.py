"""Tables as ``syn`` is shown them: what is stored in them, and how they join."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tagframe.answer.stored import StoredColumn, stored_columns
from tagframe.corpus import ColumnProfile, Corpus, TableProfile
from tagframe.engines.base import quoted
from tagframe.joins import keys_between
from tagframe.keys import KeyPair
from tagframe.retrieval.links import tables_around

if TYPE_CHECKING:
    from collections.abc import Iterable

SCHEMA_TOKENS = 8_000
"""Tokens of schemas that are shown at most."""
CHARACTERS_A_TOKEN = 3.5
"""Of a schema: short words, digits and punctuation have fewer characters a token than prose has."""

_KEYS_A_PAIR = 2
_LEAST_KEY = 0.3


@dataclass(frozen=True)
class _Detail:
    """How much is told of a column: values and samples at most, their letters, and whether anything else is said."""

    values: int
    samples: int
    letters: int
    told: bool


_DETAILS = (_Detail(20, 3, 80, True), _Detail(8, 2, 30, True), _Detail(0, 1, 20, False), _Detail(0, 0, 0, False))


def describe_tables(
    corpus: Corpus, tables: Mapping[str, str], chances: Mapping[str, float | None] | None = None
) -> str:
    """Tables as ``CREATE TABLE`` statements, in as much detail as fits 8,000 tokens.

    Args:
        corpus: where they are.
        tables: name in SQL → table id.
        chances: by table id, that the question needs them.
    """
    for detail in _DETAILS:
        text = _described(corpus, tables, chances or {}, detail)
        if _fits(len(text)):
            break
    return text


def are_few(corpus: Corpus, tables: Mapping[str, str]) -> bool:
    """Whether the schemas of the tables, with values that tell something, are of 8,000 tokens at most."""
    names = sum(len(column.name) for id in tables.values() for column in corpus.profile(id).columns)
    return _fits(names) and _fits(len(_described(corpus, tables, {}, _DETAILS[1])))


def _described(corpus: Corpus, tables: Mapping[str, str], chances: Mapping[str, float | None], detail: _Detail) -> str:
    described = []
    for name, id in tables.items():
        profile = corpus.profile(id)
        described.append(_table(name, profile, stored_columns(corpus, profile), detail, chances.get(id)))
    return "\n".join(described)


def _fits(characters: int) -> bool:
    return characters <= SCHEMA_TOKENS * CHARACTERS_A_TOKEN


def _table(
    name: str, profile: TableProfile, stored: Mapping[str, StoredColumn], detail: _Detail, chance: float | None
) -> str:
    notes = [profile.description, "" if profile.rows is None else f"{profile.rows:,} rows"]
    notes += [] if chance is None else [f"chance that it is needed: {chance:.0%}"]
    lines = [
        f"  {quoted(column.name)} {_column(column, stored.get(column.name), detail)}"
        for column in profile.columns
        if column.for_models
    ]
    return f"CREATE TABLE {quoted(name)} ({_comment(notes)}\n" + "\n".join(lines) + "\n);"


def _column(column: ColumnProfile, stored: StoredColumn | None, detail: _Detail) -> str:
    if stored is None or not stored.types:
        kind = "TEXT" if column.family in ("text", "date") else column.family.upper()
        samples = [repr(sample[: detail.letters]) for sample in column.samples[: detail.samples]]
        such = f"such as {', '.join(samples)}" if samples else ""
        return f"{kind},{_comment([column.description, such])}"
    notes = [column.description, _values(column, stored, detail)]
    if detail.told:
        notes += ["numbers stored as text"] if stored.digits else []
        share = column.null_share or 0.0
        notes += [f"{share:.0%} NULL" if share >= 0.005 else "some NULL"] if share else []
    return f"{' and '.join(stored.types)},{_comment(notes)}"


def _values(column: ColumnProfile, stored: StoredColumn, detail: _Detail) -> str:
    if stored.complete and len(stored.values) <= detail.values:
        return f"all values: {', '.join(_cut(value, detail.letters) for value in stored.values)}"
    samples = [_cut(_short(value), detail.letters) for value in stored.values[: detail.samples]]
    said = f"such as {', '.join(samples)}" if samples else ""
    if detail.told and column.family in ("integer", "real", "date") and column.minimum is not None:
        said += f"; {_short(column.minimum)} to {_short(column.maximum or '')}"
    return said


def _short(number: str) -> str:
    """A number with six digits of its fraction at most."""
    return re.sub(r"(\.\d{6})\d+$", r"\1", number)


def _cut(literal: str, letters: int) -> str:
    return literal if len(literal) <= letters + 2 else f"{literal[:letters]}…'"


def _comment(notes: Iterable[str]) -> str:
    said = "; ".join(" ".join(note.split()) for note in notes if note)
    return f"  -- {said}" if said else ""


def describe_keys(corpus: Corpus, tables: Mapping[str, str]) -> list[str]:
    """How the tables join, a line a key, the surest first: ``a.x = b.y (many-to-one)``, as a join plan sees them."""
    named = {id: name for name, id in tables.items()}
    keys = keys_between(corpus, [*named], tables_around(corpus, [*named])).keys
    counts: dict[frozenset[str], int] = {}
    lines = []
    for key in keys:
        if not key.tables <= set(named) or len(key.tables) < 2:
            continue
        counts[key.tables] = counts.get(key.tables, 0) + 1
        if key.score >= _LEAST_KEY and counts[key.tables] <= _KEYS_A_PAIR:
            lines.append(_key(corpus, key, named))
    return lines


def _key(corpus: Corpus, key: KeyPair, named: Mapping[str, str]) -> str:
    left, right = named[key.left_table], named[key.right_table]
    equal = " AND ".join(
        f"{quoted(left)}.{quoted(mine)} = {quoted(right)}.{quoted(theirs)}"
        for mine, theirs in zip(key.left_columns, key.right_columns, strict=True)
    )
    ends = [_cardinality(corpus.profile(key.left_table), key.left_columns)]
    ends.append(_cardinality(corpus.profile(key.right_table), key.right_columns))
    return f"{equal} ({'-to-'.join(ends)})"


def _cardinality(profile: TableProfile, columns: Sequence[str]) -> str:
    """Whether a value is in one row at most, or may be in many."""
    if set(profile.primary_key) == set(columns):
        return "one"
    for column in columns:
        known = profile.column(column)
        if known.distinct is not None and known.rows is not None and known.distinct >= known.rows - (known.nulls or 0):
            return "one"
    return "many"

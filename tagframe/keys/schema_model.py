"""The keys of a schema of many tables: a fitted model over what is counted in the schema as a whole.

Without rows, the model decides; with rows, what the values say is added to its odds. A column refers to one of the
tables that its name may mean, or to none: a conditional logit (McFadden, 1974) over the features of
:mod:`~tagframe.keys.schema_features`, with the weights in ``schema_weights.json``, made by ``python -m tag_bench fit
schemas``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from importlib import resources

import numpy as np
import numpy.typing as npt

from tagframe.corpus.profile import TableProfile
from tagframe.keys.containment import overlaps
from tagframe.keys.key_columns import Floats
from tagframe.keys.key_pair import Evidence, KeyPair
from tagframe.keys.schema_features import FEATURES, Reference, SchemaReading

FEWEST_TABLES, FEWEST_WITH_ROWS = 15, 30
"""With fewer tables, there is little to count, and the rules of names decide; where there are rows, values do."""
_LEAST = 0.02
"""Pairs with a lower chance are left out."""
_MOST_BY_RULES = 0.2
"""The highest chance of a pair of the rules whose target is not its table's own key."""
_TELLING = 0.002
"""Values that are found by accident less often than this decide, whatever the names."""
_INSIDE, _FOR, _MOST_FOR = 0.95, 0.7, 4.0
"""From this share of the values on, they are for a key: with so much, in log odds, or by their chance up to so much."""
_DANGLING, _MOST_AGAINST = 12.0, 6.0
"""What values that are not found take away: so much for all of them, and at most."""


def is_judged_alone(tables: Sequence[TableProfile]) -> bool:
    """Whether the model decides without the rules: there are many tables, of which only names and types are known."""
    return len(tables) >= FEWEST_TABLES and all(
        table.rows is None and all(column.distinct is None for column in table.columns) for table in tables
    )


def schema_keys(tables: Sequence[TableProfile], by_rules: Sequence[KeyPair]) -> list[KeyPair]:
    """The pairs of single columns that may be keys, by the names of the schema as a whole.

    Args:
        tables: of one database, sorted by id.
        by_rules: what the rules find, if there are values. Those that the model does not judge keep a small chance, or
            that of values that decide.
    """
    alone = is_judged_alone(tables)
    if not alone and len(tables) < FEWEST_WITH_ROWS:
        return [*by_rules]
    reading = SchemaReading(tables)
    least = _LEAST if alone else 0.0
    likely = sorted((one for one in judge(reading) if one[1] >= least), key=lambda one: one[1])
    judged = {_pair(reading, tables, one, sure): sure for one, sure in likely}
    of_model = [*judged] if alone else _with_values(judged, by_rules, tables)
    found = _of_each_column([*of_model, *_doubted(by_rules, judged)])
    return [pair for pair in found if pair.score >= _LEAST or pair not in judged]


def _doubted(by_rules: Sequence[KeyPair], judged: Mapping[KeyPair, float]) -> Iterator[KeyPair]:
    """The pairs of the rules that the model does not judge, nor turned: their target is not its table's own key."""
    for pair in by_rules:
        if pair not in judged and pair.reversed() not in judged:
            by_values = pair.evidence.chance is not None and pair.evidence.chance < _TELLING
            yield pair if by_values else replace(pair, score=pair.score * _MOST_BY_RULES)


def _with_values(
    judged: Mapping[KeyPair, float], by_rules: Sequence[KeyPair], tables: Sequence[TableProfile]
) -> list[KeyPair]:
    """The pairs that the model judges, with what their values say added to the odds."""
    by_rule = {pair: pair.evidence for pair in by_rules}
    sketches = {(table.id, column.name): column.sketch for table in tables for column in table.columns}
    pairs = [*judged]
    sides = (
        side for one in pairs for side in ((one.left_table, *one.left_columns), (one.right_table, *one.right_columns))
    )
    ends = [sketches[table, name] for table, name in sides]
    at = np.arange(0, len(ends), 2)
    inside = overlaps(ends, at, at + 1)[0]
    found = []
    for pair, sure, known, share, seen in zip(
        pairs, judged.values(), inside.known, inside.share, inside.seen, strict=True
    ):
        contained = float(share) if known and seen else None
        evidence = by_rule.get(pair, replace(pair.evidence, contained=contained))
        odds = math.log(max(sure, 1e-12) / max(1 - sure, 1e-12)) + _of_values(evidence)
        found.append(replace(pair, score=1 / (1 + math.exp(-odds)), evidence=evidence))
    return found


def _of_values(evidence: Evidence) -> float:
    """What values add to the log odds of a key."""
    if evidence.contained is None:
        return 0.0
    if evidence.contained < _INSIDE:
        return -min(_MOST_AGAINST, _DANGLING * (1 - evidence.contained))
    return _FOR if evidence.chance is None else min(_MOST_FOR, -math.log(max(evidence.chance, 1e-9)))


def _of_each_column(pairs: Sequence[KeyPair]) -> list[KeyPair]:
    """The pairs, best first, each column's likeliest one as it is; the others have what that one leaves."""
    best: dict[tuple[str, tuple[str, ...]], float] = {}
    found: dict[KeyPair, KeyPair] = {}
    for pair in sorted(pairs, key=lambda one: -one.score):
        most = best.setdefault((pair.left_table, pair.left_columns), pair.score)
        score = round(pair.score if pair.score == most else min(pair.score, 1 - most), 6)
        if pair.reversed() not in found:
            found[pair] = pair if score == pair.score else replace(pair, score=score)
    return [*found.values()]


def _pair(reading: SchemaReading, tables: Sequence[TableProfile], one: Reference, sure: float) -> KeyPair:
    left, right = tables[one.table], tables[one.target]
    mine = reading.columns[one.table][one.column]
    theirs = reading.columns[one.target][reading.keys[one.target][0]]
    families = mine.profile.family, theirs.profile.family
    reason = f"{' '.join(mine.words)} names {right.name}, as the schema names its keys"
    evidence = Evidence(name=sure, families=families, reason=reason)
    return KeyPair(left.id, (mine.profile.name,), right.id, (theirs.profile.name,), round(sure, 6), evidence)


def judge(reading: SchemaReading) -> list[tuple[Reference, float]]:
    """The references that a schema's names may mean, each with its chance."""
    references = reading.references()
    if not references:
        return []
    columns = column_numbers([(one.table, one.column) for one in references])
    chances = choice(np.array([one.features for one in references]), columns, default_weights())
    return [*zip(references, chances.tolist(), strict=True)]


def column_numbers(columns: Sequence[Hashable]) -> npt.NDArray[np.intp]:
    """The number of the column of each reference, from 0 on."""
    numbers = {column: number for number, column in enumerate(dict.fromkeys(columns))}
    return np.array([numbers[column] for column in columns], dtype=np.intp)


def choice(features: Floats, columns: npt.NDArray[np.intp], weights: Floats) -> Floats:
    """The chance of each of n references, those of a column and of none together 1.

    Args:
        features: shape (n, features).
        columns: the number of each one's column, shape (n,).
        weights: shape (1 + features,), the intercept first.
    """
    odds = np.exp(np.clip(weights[0] + features @ weights[1:], -30.0, 30.0))
    return np.asarray(odds / (1 + np.bincount(columns, odds))[columns])


@lru_cache(maxsize=1)
def default_weights() -> Floats:
    """The weights in ``tagframe/keys/schema_weights.json``, the intercept first."""
    text = resources.files("tagframe.keys").joinpath("schema_weights.json").read_text(encoding="utf-8")
    terms = json.loads(text)["terms"]
    return np.array([terms["intercept"], *(terms[name] for name in FEATURES)])

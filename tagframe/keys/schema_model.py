"""The keys of a schema of many tables: a fitted model over what is counted in the schema as a whole.

Without rows, the model decides; with rows, it doubts keys whose values an accident explains. The chance that a column
refers to a table is logistic in the features of :mod:`~tagframe.keys.schema_features`, with the weights in
``schema_weights.json``, made by ``python -m tag_bench fit schemas``. A column refers to one table: its likeliest one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from importlib import resources

import numpy as np

from tagframe.corpus.profile import TableProfile
from tagframe.keys.key_columns import Floats
from tagframe.keys.key_pair import Evidence, KeyPair
from tagframe.keys.schema_features import FEATURES, Reference, SchemaReading

FEWEST_TABLES = 30
"""With fewer tables, there is little to count, and the rules of names decide."""
_LEAST = 0.02
"""Pairs with a lower chance are left out."""
_MOST_BY_RULES = 0.2
"""The highest chance of a pair of the rules whose target is not its table's own key."""
_TELLING = 0.002
"""Values that are found by accident less often than this decide, whatever the names."""


def is_bare(tables: Sequence[TableProfile]) -> bool:
    """Whether only names and types are known."""
    return all(table.rows is None and all(column.distinct is None for column in table.columns) for table in tables)


def schema_keys(tables: Sequence[TableProfile], by_rules: Sequence[KeyPair]) -> list[KeyPair]:
    """The pairs of single columns that may be keys, by the names of the schema as a whole.

    Args:
        tables: of one database, sorted by id.
        by_rules: what the rules find. Without rows, pairs that the model does not judge keep a small chance. With rows,
            no other pairs are returned, and a pair is as sure as the less sure of both.
    """
    if len(tables) < FEWEST_TABLES:
        return [*by_rules]
    reading = SchemaReading(tables, by_rules)
    judged = {_pair(reading, tables, one, sure): sure for one, sure in sorted(judge(reading), key=lambda each: each[1])}
    return (_by_model if is_bare(tables) else _doubted)(judged, by_rules)


def _doubted(judged: Mapping[KeyPair, float], by_rules: Sequence[KeyPair]) -> list[KeyPair]:
    def chance_of(pair: KeyPair) -> float:
        if pair.evidence.chance is not None and pair.evidence.chance < _TELLING:
            return pair.score
        return min(pair.score, judged.get(pair, pair.score * _MOST_BY_RULES))

    return [replace(pair, score=round(chance_of(pair), 6)) for pair in by_rules]


def _by_model(judged: Mapping[KeyPair, float], by_rules: Sequence[KeyPair]) -> list[KeyPair]:
    best = {(pair.left_table, pair.left_columns): sure for pair, sure in judged.items()}  # the likeliest comes last
    pairs: dict[KeyPair, KeyPair] = {}
    for pair, sure in sorted(judged.items(), key=lambda each: -each[1]):
        most = best[pair.left_table, pair.left_columns]
        score = round(sure if sure == most else min(sure, 1 - most), 6)
        if score >= _LEAST and pair.reversed() not in pairs:
            pairs[pair] = replace(pair, score=score, evidence=replace(pair.evidence, name=score))
    for pair in by_rules:
        if pair not in pairs and pair.reversed() not in pairs:
            pairs[pair] = replace(pair, score=pair.score * _MOST_BY_RULES)
    return [*pairs.values()]


def _pair(reading: SchemaReading, tables: Sequence[TableProfile], one: Reference, sure: float) -> KeyPair:
    left, right = tables[one.table], tables[one.target]
    mine = reading.columns[one.table][one.column]
    theirs = reading.columns[one.target][reading.keys[one.target][0]]
    families = mine.profile.family, theirs.profile.family
    reason = f"{' '.join(mine.words)} names {right.name}, as the schema names its keys"
    evidence = Evidence(families=families, reason=reason)
    return KeyPair(left.id, (mine.profile.name,), right.id, (theirs.profile.name,), sure, evidence)


def judge(reading: SchemaReading) -> list[tuple[Reference, float]]:
    """The references that a schema's names may mean, each with its chance."""
    references = reading.references()
    if not references:
        return []
    chances = chance(np.array([one.features for one in references]), default_weights())
    return [*zip(references, chances.tolist(), strict=True)]


def chance(features: Floats, weights: Floats) -> Floats:
    """The chance of each of n references: features of shape (n, features), weights of shape (1 + features,)."""
    odds = np.clip(weights[0] + features @ weights[1:], -30.0, 30.0)
    return np.asarray(1 / (1 + np.exp(-odds)))


@lru_cache(maxsize=1)
def default_weights() -> Floats:
    """The weights in ``tagframe/keys/schema_weights.json``, the intercept first."""
    text = resources.files("tagframe.keys").joinpath("schema_weights.json").read_text(encoding="utf-8")
    terms = json.loads(text)["terms"]
    return np.array([terms["intercept"], *(terms[name] for name in FEATURES)])

"""The keys of a bare schema of many tables: a fitted model over what is counted in the schema as a whole.

The chance that a column refers to a table is logistic in the features of
:mod:`~tagframe.keys.schema_features`, with the weights in ``schema_weights.json``, made by
``python -m tag_bench fit schemas``. A column refers to one table: its likeliest one.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from importlib import resources

import numpy as np

from tagframe.corpus.profile import TableProfile
from tagframe.keys.key_columns import Floats
from tagframe.keys.key_pair import Evidence, KeyPair
from tagframe.keys.schema_features import FEATURES, Reference, SchemaReading

FEWEST_TABLES = 24
"""With fewer tables, there is little to count, and the rules of names decide."""
_LEAST = 0.02
"""Pairs with a lower chance are left out."""
_MOST_BY_RULES = 0.2
"""The highest chance of a pair of the rules whose target is not its table's own key."""


def is_bare(tables: Sequence[TableProfile]) -> bool:
    """Whether only the names and types of many tables are known."""
    return len(tables) >= FEWEST_TABLES and all(
        table.rows is None and all(column.distinct is None for column in table.columns) for table in tables
    )


def schema_keys(tables: Sequence[TableProfile], by_rules: Sequence[KeyPair]) -> list[KeyPair]:
    """The pairs of single columns that may be keys, by names and declared types alone.

    Args:
        tables: of one database, sorted by id, without rows.
        by_rules: what the rules of names find; pairs that the model does not judge keep a small chance.
    """
    reading = SchemaReading(tables, by_rules)
    judged = sorted(judge(reading), key=lambda each: -each[1])
    best: dict[tuple[int, int], float] = defaultdict(float)
    for one, sure in judged:
        best[one.table, one.column] = max(best[one.table, one.column], sure)
    pairs: dict[KeyPair, KeyPair] = {}
    for one, sure in judged:
        most = best[one.table, one.column]
        score = round(sure if sure == most else min(sure, 1 - most), 6)
        pair = _pair(reading, tables, one, score)
        if score >= _LEAST and pair.reversed() not in pairs:
            pairs[pair] = pair
    for pair in by_rules:
        if pair not in pairs and pair.reversed() not in pairs:
            pairs[pair] = replace(pair, score=pair.score * _MOST_BY_RULES)
    return [*pairs.values()]


def _pair(reading: SchemaReading, tables: Sequence[TableProfile], one: Reference, score: float) -> KeyPair:
    left, right = tables[one.table], tables[one.target]
    mine = reading.columns[one.table][one.column]
    theirs = reading.columns[one.target][reading.keys[one.target][0]]
    families = mine.profile.family, theirs.profile.family
    reason = f"{' '.join(mine.words)} names {right.name}, as the schema names its keys"
    evidence = Evidence(families=families, name=score, reason=reason)
    return KeyPair(left.id, (mine.profile.name,), right.id, (theirs.profile.name,), score, evidence)


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

"""``tag_bench fit schemas``: the weights of the keys of bare schemas (:mod:`tagframe.keys.schema_model`).

A data set is a folder of schemas of applications: JSON files with ``tables`` and ``fks``. Each is a culture, whose
figures are of weights that were fitted without it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy import optimize

from tag_bench.data import read_json
from tag_bench.databases import percent
from tag_bench.fit import Fitted, Given, left_out, rounded
from tagframe.corpus.profile import TableProfile
from tagframe.corpus.schema_only import schema_profiles
from tagframe.keys.schema_features import FEATURES, SchemaReading
from tagframe.keys.schema_model import choice, column_numbers
from tagframe.retrieval.problem import Floats

PENALTY = 2.0
_OF_EACH, _MOST_OF_ONE = 100.0, 3.0
"""The keys that a culture counts for, and the most that one of its columns counts."""

_DECLARED_ALONE = 0.3
"""What a pair counts in a schema whose undeclared keys nobody looked for."""

FOR = frozenset(
    """short same_family type margin self_role child_of habit end vocabulary own_words_marked exact_marked
    part_marked own_role_marked role_marked actor_marked""".split()
)
AGAINST = frozenset("plural rank_word bridge self is_code better_beside unmarked".split())
"""Features whose weights have a sign that no culture changes: few schemas teach where it is wrong by accident."""

Link = frozenset[tuple[str, str]]


@dataclass(frozen=True, eq=False)
class Schema:
    """A schema with its candidate references.

    Attributes:
        culture: its data set.
        features: shape (references, features).
        links, lefts: of each reference, both columns, and the referencing one.
        keys, parts: the declared keys of single columns, and the pairs of columns in composite ones.
        weight: how much its keys count.
    """

    culture: str
    features: Floats
    links: Sequence[Link]
    lefts: Sequence[tuple[str, str]]
    keys: frozenset[Link]
    parts: frozenset[Link]
    weight: float = 1.0

    @property
    def true(self) -> Floats:
        """Which references are keys, or parts of keys."""
        return np.array([link in self.keys or link in self.parts for link in self.links], dtype=np.float64)

    def chances(self, weights: Floats) -> Floats:
        """The chance of each reference."""
        return choice(self.features, column_numbers(self.lefts), weights)


def schema_of(culture: str, tables: Sequence[TableProfile], single: set[Link], parts: set[Link]) -> Schema:
    """A schema, read by names and types."""
    tables = sorted((replace(one, foreign_keys=()) for one in tables), key=lambda table: table.id)
    reading = SchemaReading(tables)
    references = reading.references()

    def end(table: int, column: int) -> tuple[str, str]:
        return tables[table].name.lower(), reading.columns[table][column].profile.name.lower()

    lefts = [end(one.table, one.column) for one in references]
    rights = [end(one.target, reading.keys[one.target][0]) for one in references]
    links = [frozenset(ends) for ends in zip(lefts, rights, strict=True)]
    features = np.array([one.features for one in references]).reshape(-1, len(FEATURES))
    return Schema(culture, features, links, lefts, frozenset(single), frozenset(parts - single))


def read_schema(path: Path) -> Schema:
    """The schema of an application, a JSON file, by names and types alone."""
    data = read_json(path)
    single: set[Link] = set()
    parts: set[Link] = set()
    for key in data["fks"]:
        ends = zip(key["columns"], key["ref"], strict=True)
        links = {frozenset(((key["table"].lower(), a.lower()), (key["to"].lower(), b.lower()))) for a, b in ends}
        (single if len(key["columns"]) == 1 else parts).update(links)
    tables = schema_profiles({name: table["columns"] for name, table in data["tables"].items()}, path.stem)
    # Somebody looked for the keys that the schemas of a folder do not declare, if it has notes about them.
    weight = 1.0 if (path.parent / "README.md").is_file() else _DECLARED_ALONE
    return replace(schema_of(path.stem, tables, single, parts), weight=weight)


def fit(group: Sequence[Schema]) -> Floats:
    """The likeliest weights, the intercept first: once, and again with less of columns that may be undeclared keys."""
    counts = [_counts(schema) for schema in group]
    once = likeliest(group, counts)
    return likeliest(group, [count * _of_none(schema, once) for schema, count in zip(group, counts, strict=True)])


def _of_none(schema: Schema, weights: Floats) -> Floats:
    """The root of each column's chance of being no key, unless it is one, or undeclared keys were looked for.

    A positive example that nobody labelled teaches the wrong (learning from positive and unlabelled examples: Elkan and
    Noto, 2008). Without likely ones, though, no column that only seems to be a key is left: all chances are too high.
    """
    columns = column_numbers(schema.lefts)
    is_key = np.bincount(columns, schema.true) > 0
    surest = np.zeros(len(is_key))
    np.maximum.at(surest, columns, schema.chances(weights))
    return np.where(is_key | (schema.weight == 1.0), 1.0, np.sqrt(1 - surest))


def likeliest(group: Sequence[Schema], counts: Sequence[Floats]) -> Floats:
    """The likeliest weights with a Gaussian prior on standardised features, the intercept first.

    Args:
        group: n schemas.
        counts: what each column of each schema counts: n arrays.
    """
    features, true = (np.concatenate([getattr(schema, name) for schema in group]) for name in ("features", "true"))
    columns = column_numbers([(at, left) for at, schema in enumerate(group) for left in schema.lefts])
    weight = np.concatenate(counts)
    mean, spread = features.mean(axis=0), features.std(axis=0) + 1e-6
    terms = np.column_stack([np.ones(len(features)), (features - mean) / spread])
    is_key = np.bincount(columns, true) > 0

    def step(position: Floats) -> tuple[float, Floats]:
        odds = np.exp(np.clip(terms @ position, -30, 30))
        of_all, of_true = 1 + np.bincount(columns, odds), np.where(is_key, np.bincount(columns, odds * true), 1.0)
        should = np.where(is_key[columns], odds * true / of_true[columns], 0.0)
        away = np.append(0.0, position[1:])
        loss = float(weight @ np.log(of_all / of_true)) + PENALTY * float(away @ away)
        return loss, terms.T @ (weight[columns] * (odds / of_all[columns] - should)) + 2 * PENALTY * away

    start = np.zeros(terms.shape[1])
    bounds = [(None, None), *((0.0 if name in FOR else None, 0.0 if name in AGAINST else None) for name in FEATURES)]
    found = optimize.minimize(step, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 150}).x
    slopes = found[1:] / spread
    return np.append(found[0] - float(slopes @ mean), slopes)


def _counts(schema: Schema) -> Floats:
    """What each column counts: all keys of a schema together a number, columns of one name the root of theirs."""
    lefts = dict.fromkeys(schema.lefts)
    named = Counter(column for _, column in lefts)
    counts = np.array([named[column] ** -0.5 for _, column in lefts])
    of_keys = {left for left, true in zip(schema.lefts, schema.true, strict=True) if true}
    keys = sum(count for left, count in zip(lefts, counts.tolist(), strict=True) if left in of_keys)
    return np.asarray(schema.weight * min(_MOST_OF_ONE, _OF_EACH / max(1.0, keys)) * counts)


def scores(schemas: Sequence[Schema], weights: Floats) -> dict[str, float]:
    """Precision, recall and F1 of each column's likeliest reference, in percent."""
    chosen = right = keys = 0
    for schema in schemas:
        best: dict[tuple[str, str], tuple[float, Link]] = {}
        for left, link, sure in zip(schema.lefts, schema.links, schema.chances(weights), strict=True):
            best[left] = max(best.get(left, (0.5, link)), (float(sure), link), key=lambda one: one[0])
        found = {link for sure, link in best.values() if sure > 0.5} - schema.parts
        chosen, right, keys = chosen + len(found), right + len(found & schema.keys), keys + len(schema.keys)
    return {
        "precision": percent(right, chosen),
        "recall": percent(right, keys),
        "F1": percent(2 * right, chosen + keys),
    }


def fitted(given: Given) -> Fitted:
    """The keys of bare schemas."""
    every = [read_schema(file) for path in given.folders for file in sorted(path.glob("*.json"))]
    schemas = [schema for schema in every if len(schema.links)]
    report = {
        mine[0].culture: scores(mine, weights) for mine, weights in left_out(schemas, lambda one: one.culture, fit)
    }
    names = ("intercept", *FEATURES)
    weights = {"terms": rounded(dict(zip(names, fit(schemas).tolist(), strict=True)))}
    source = f"{len(schemas)} schemas of applications: {', '.join(schema.culture for schema in schemas)}"
    return Fitted(weights, {"left_out": report}, source)

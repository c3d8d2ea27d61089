"""``tag_bench fit schemas``: the weights of the keys of bare schemas (:mod:`tagframe.keys.schema_model`).

Each data set counts as one culture: a folder in JAR's format, or in a folder of schemas each JSON file with ``tables``
and ``fks``. A culture's figures are of weights that were fitted without it.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import optimize

from tag_bench.data import read_halves, read_json, schema_tables
from tag_bench.databases import percent
from tag_bench.fit import Fitted, Given, left_out, rounded
from tagframe.corpus.profile import TableProfile
from tagframe.corpus.schema_only import schema_profiles
from tagframe.keys.column_names import PEOPLE, table_entity
from tagframe.keys.inference import candidates_of, key_pair, least_score
from tagframe.keys.key_columns import columns_of
from tagframe.keys.schema_features import FEATURES, SchemaReading
from tagframe.keys.schema_model import chance
from tagframe.keys.scoring import log_odds
from tagframe.keys.terms import default_weights
from tagframe.retrieval.problem import Floats

PENALTY = 3.0
_SHORT, _LONG = 0.3, 6
"""The share of the names of references that are abbreviated, and the length from which a word is."""
_ACTS = ("created", "modified", "updated", "approved", "graded", "closed", "sent", "deleted")
_ACTOR_NAMES = ("{0}by", "{0}_by", "user{0}", "user_{0}", "{0}_by_id", "{0}_user_id")
_OF_EACH, _MOST_OF_ONE = 400, 3.0
"""The keys that a culture counts for, and the most that one of its pairs counts."""

_DECLARED_ALONE = 0.3
"""What a pair counts in a schema whose undeclared keys nobody looked for: it takes some of them for no keys."""

FOR = frozenset(
    "level short same_family type_length margin child_of unmarked_habit by referenced by_rules end vocabulary".split()
)
AGAINST = frozenset("plural measure rank_word bridge self rank is_code better_beside title_beside".split())
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
        reported: whether figures may be made of it.
        weight: how much its keys count.
    """

    culture: str
    features: Floats
    links: Sequence[Link]
    lefts: Sequence[tuple[str, str]]
    keys: frozenset[Link]
    parts: frozenset[Link]
    reported: bool = True
    weight: float = 1.0

    @property
    def true(self) -> Floats:
        """Which references are keys, or parts of keys."""
        return np.array([link in self.keys or link in self.parts for link in self.links], dtype=np.float64)


def schema_of(culture: str, tables: Sequence[TableProfile], single: set[Link], parts: set[Link]) -> Schema:
    """A schema, read by names, types and declared primary keys."""
    tables = sorted((replace(one, foreign_keys=()) for one in tables), key=lambda table: table.id)
    floor, weights = log_odds(least_score(tables)), default_weights()
    found = candidates_of(tables, columns_of(tables), floor=floor, weights=weights)
    reading = SchemaReading(tables, (key_pair(one, weights.surest) for one in found if one.logit >= floor))
    references = reading.references()

    def end(table: int, column: int) -> tuple[str, str]:
        return tables[table].name.lower(), reading.columns[table][column].profile.name.lower()

    lefts = [end(one.table, one.column) for one in references]
    rights = [end(one.target, reading.keys[one.target][0]) for one in references]
    links = [frozenset(ends) for ends in zip(lefts, rights, strict=True)]
    features = np.array([one.features for one in references]).reshape(-1, len(FEATURES))
    return Schema(culture, features, links, lefts, frozenset(single), frozenset(parts - single))


def read_schema(path: Path) -> Iterator[Schema]:
    """The schema of an application, a JSON file: by names alone, with its primary keys, with short names, and with
    names of what people did."""
    data, weight = read_json(path), 1.0 if _is_annotated(path) else _DECLARED_ALONE
    yield replace(_schema(path.stem, data), weight=weight)
    for changed, declared in (
        (data, True),
        (_shortened(data, random.Random(path.stem)), False),
        (_with_actors(data, random.Random(path.stem)), False),
    ):
        yield replace(_schema(path.stem, changed, declared=declared), reported=False, weight=weight)


def _is_annotated(path: Path) -> bool:
    """Whether somebody looked for the keys that the schemas of a folder do not declare: it has notes about them."""
    return (path.parent / "README.md").is_file()


def _schema(culture: str, data: Mapping[str, Any], *, declared: bool = False) -> Schema:
    single: set[Link] = set()
    parts: set[Link] = set()
    for key in data["fks"]:
        ends = zip(key["columns"], key["ref"], strict=True)
        links = {frozenset(((key["table"].lower(), a.lower()), (key["to"].lower(), b.lower()))) for a, b in ends}
        (single if len(key["columns"]) == 1 else parts).update(links)
    tables = schema_profiles({name: table["columns"] for name, table in data["tables"].items()}, culture)
    if declared:
        tables = [replace(table, primary_key=tuple(data["tables"][table.name]["pk"])) for table in tables]
    return schema_of(culture, tables, single, parts)


def _shortened(data: Mapping[str, Any], chance: random.Random) -> Mapping[str, Any]:
    """The schema with some of its references abbreviated, each word in one way everywhere."""
    letters = {
        name: chance.choice((3, 4)) for key in data["fks"] for name in key["columns"] if chance.random() < _SHORT
    }

    def short(name: str) -> str:
        words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+|\d+", name)
        cut = [word if len(word) < _LONG else word[: letters[name]] for word in words] if name in letters else words
        return "_".join([cut[0][:1] + cut[1], *cut[2:]] if name in letters and len(cut) > 2 else cut)

    tables = {
        table: {"columns": {short(name): type for name, type in one["columns"].items()}, "pk": [*map(short, one["pk"])]}
        for table, one in data["tables"].items()
    }
    keys = [{**key, "columns": [*map(short, key["columns"])], "ref": [*map(short, key["ref"])]} for key in data["fks"]]
    return {"tables": tables, "fks": keys}


def _with_actors(data: Mapping[str, Any], chance: random.Random) -> Mapping[str, Any]:
    """The schema with references to people called by what these did."""
    names = {
        (key["table"], key["columns"][0]): chance.choice(_ACTOR_NAMES).format(chance.choice(_ACTS))
        for key in data["fks"]
        if len(key["columns"]) == 1 and PEOPLE.intersection(table_entity(key["to"])[-1:])
    }
    tables = {
        table: {**one, "columns": {names.get((table, name), name): type for name, type in one["columns"].items()}}
        for table, one in data["tables"].items()
    }
    keys = [{**key, "columns": [names.get((key["table"], name), name) for name in key["columns"]]}
            for key in data["fks"]]  # fmt: skip
    return {"tables": tables, "fks": keys}


def read(path: Path) -> list[Schema]:
    """The schemas of a folder: those to fit on, if it has halves."""
    if not (path / "schema_with_keys.json").is_file():
        return [schema for file in sorted(path.glob("*.json")) for schema in read_schema(file)]
    wanted = read_halves(path).get("fit")
    found = []
    for entry in read_json(path / "schema_with_keys.json"):
        if wanted is None or entry["db_id"].lower() in wanted:
            tables = [replace(table, primary_key=()) for table in schema_tables(entry)]
            single = {
                frozenset(((table.name.lower(), a.lower()), (key.other_table.lower(), b.lower())))
                for table in tables
                for key in table.foreign_keys
                for a, b in zip(key.columns, key.other_columns, strict=True)
            }
            found.append(schema_of(path.name, tables, single, set()))
    return found


def fit(group: Sequence[Schema]) -> Floats:
    """The likeliest weights with a Gaussian prior on standardised features, the intercept first."""
    keys = Counter({schema.culture: 0 for schema in group})
    for schema in group:
        keys[schema.culture] += max(1, int(schema.true.sum()))
    features, true = (np.concatenate([getattr(schema, name) for schema in group]) for name in ("features", "true"))
    counts = [schema.weight * min(_MOST_OF_ONE, _OF_EACH / keys[schema.culture]) for schema in group]
    weight = np.repeat(counts, [len(schema.links) for schema in group])
    mean, spread = features.mean(axis=0), features.std(axis=0) + 1e-6
    terms = np.column_stack([np.ones(len(features)), (features - mean) / spread])

    def step(position: Floats) -> tuple[float, Floats]:
        sure = 1 / (1 + np.exp(-np.clip(terms @ position, -30, 30)))
        right = np.where(true > 0, sure, 1 - sure)
        away = np.append(0.0, position[1:])
        loss = -float(weight @ np.log(right + 1e-12)) + PENALTY * float(away @ away)
        return loss, terms.T @ (weight * (sure - true)) + 2 * PENALTY * away

    start = np.zeros(terms.shape[1])
    bounds = [(None, None), *((0.0 if name in FOR else None, 0.0 if name in AGAINST else None) for name in FEATURES)]
    found = optimize.minimize(step, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 120}).x
    slopes = found[1:] / spread
    return np.append(found[0] - float(slopes @ mean), slopes)


def scores(schemas: Sequence[Schema], weights: Floats) -> dict[str, float]:
    """Precision, recall and F1 of each column's likeliest reference, in percent."""
    chosen = right = keys = 0
    for schema in (one for one in schemas if one.reported):
        best: dict[tuple[str, str], tuple[float, Link]] = {}
        for left, link, sure in zip(schema.lefts, schema.links, chance(schema.features, weights), strict=True):
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
    schemas = [schema for path in given.folders for schema in read(path) if len(schema.links)]
    report = {
        mine[0].culture: scores(mine, weights) for mine, weights in left_out(schemas, lambda one: one.culture, fit)
    }
    names = ("intercept", *FEATURES)
    return Fitted({"terms": rounded(dict(zip(names, fit(schemas).tolist(), strict=True)))}, {"left_out": report})

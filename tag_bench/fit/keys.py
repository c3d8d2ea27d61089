"""``tag_bench fit keys``: the weights of evidence for keys (:mod:`tagframe.keys.terms`).

The fit is maximum a posteriori: a pair of columns is a key with the chance that its terms give, and each weight has a
prior around the value that was set by hand (:data:`PRIOR`), with the strength :data:`PENALTY`. The effect of competing
pairs is computed with the prior weights and kept fixed. Perturbed variants of the databases
(:mod:`tag_bench.perturbed`) are also used, so that the fit does not depend on particular names. The keys of a database
are scored with weights that were fitted without it, in any variant. If the data has ``halves.json``, only the databases
to ``fit`` on are read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import optimize

from tag_bench.data import read_halves
from tag_bench.databases import Database, key_scores, read_databases, reliability
from tag_bench.fit import Fitted, Given, folds, left_out, rounded
from tag_bench.perturbed import HARD, perturbations
from tag_bench.records import with_progress
from tagframe.corpus.schema_only import schema_profiles
from tagframe.keys import infer_key_pairs
from tagframe.keys.inference import candidates_of
from tagframe.keys.key_columns import columns_of
from tagframe.keys.terms import TERMS, KeyWeights
from tagframe.retrieval.problem import Floats

PENALTY = 60.0
PERTURBED, HARDLY_TOLD = 1 / 9, 1 / 30
"""The weight of a pair from a perturbed database, and of a pair with hardly any evidence; other pairs count 1."""
SUREST = 0.9
"""Pairs with all evidence in favour are fitted to a chance above this."""

_SET_BY_HAND = {
    "prior": -6.0, "name": 8.0, "key_word": 1.0, "no_name": -2.0, "named_elsewhere": -3.0, "measure": -3.0,
    "calendar": 3.0, "surrogate": -6.0, "same_table": -1.0, "across": -3.0, "target_unique": 0.5,
    "target_nearly_unique": -2.0, "target_repeats": -5.0, "target_nulls": -2.0, "target_own_key": 1.0,
    "target_no_key": -1.0, "target_first": 0.5, "target_measure": -3.0, "values": 0.8, "dangling": -15.0,
    "dangling_named": 8.0,
}  # fmt: skip
PRIOR = KeyWeights({name: _SET_BY_HAND.get(name, 0.0) for name in TERMS}, 0.95)
"""The weights that were set by hand, on Spider's and BIRD's dev databases and the databases to ``fit`` on of Spider's
training set; terms that were added later have none."""
_LEAST_SPREAD = {name: 0.03 if name.startswith("dangling") else 0.4 for name in TERMS} | {"prior": 1.0}
"""The lowest assumed standard deviation of a term, so that rare terms cannot move far from their prior."""
_FLOOR = -9.0
"""Pairs with lower log odds are ignored."""


@dataclass(frozen=True, eq=False)
class Form:
    """One database in one form, with its candidate pairs.

    Attributes:
        data: the data set, and what was changed.
        form: of the database.
        weight: of each pair in the fit.
        terms: shape (pairs, terms).
        added: shape (pairs,), the effect of competing pairs on their log odds.
        true: shape (pairs,), whether they are declared keys.
    """

    data: str
    form: Database
    weight: float
    terms: Floats
    added: Floats
    true: Floats
    reported = True

    @property
    def database(self) -> str:
        """The name, the same in all forms."""
        return self.form.name

    @classmethod
    def of(cls, data: str, form: Database, weight: float) -> Form:
        """A form, with its candidate pairs."""
        tables = sorted(form.tables, key=lambda table: table.id)
        found = candidates_of(tables, columns_of(tables), floor=_FLOOR, weights=PRIOR)
        terms = np.array([candidate.terms for candidate in found]).reshape(-1, len(TERMS))
        added = np.array([candidate.logit for candidate in found]) - terms @ _array(PRIOR)
        keys = [[f"{table}.{column}".lower() for table, column in (one.left.key, one.right.key)] for one in found]
        true = np.array([frozenset(key) in form.declared for key in keys], dtype=np.float64)
        return cls(data, form, weight, terms, added, true)


def _array(weights: KeyWeights) -> Floats:
    return np.array([weights.terms[name] for name in TERMS])


def fit(group: Sequence[Form]) -> KeyWeights:
    """The likeliest weights, given the pairs and the prior."""
    terms, added, true = (
        np.concatenate([getattr(pairs, name) for pairs in group]) for name in ("terms", "added", "true")
    )
    counts = np.concatenate([np.full(len(pairs.true), pairs.weight) for pairs in group])
    start = _array(PRIOR)
    spread = np.maximum(terms.std(axis=0), [_LEAST_SPREAD[name] for name in TERMS])
    free = 1.0 - SUREST

    def step(position: Floats) -> tuple[float, Floats]:
        weights, ceiling = position[:-1], 1 / (1 + np.exp(-position[-1]))
        sure = 1 / (1 + np.exp(-np.clip(terms @ weights + added, -30, 30)))
        chance = np.clip((SUREST + free * ceiling) * sure, 1e-9, 1 - 1e-9)
        away = spread**2 * (weights - start)
        loss = -float(counts @ (true * np.log(chance) + (1 - true) * np.log(1 - chance)))
        slope = counts * ((1 - true) / (1 - chance) - true / chance)
        by_weight = terms.T @ (slope * (SUREST + free * ceiling) * sure * (1 - sure)) + 2 * PENALTY * away
        by_ceiling = float(slope @ sure) * free * ceiling * (1 - ceiling)
        return loss + PENALTY * float(away @ (weights - start)), np.append(by_weight, by_ceiling)

    found = optimize.minimize(step, np.append(start, 0.0), jac=True, method="L-BFGS-B", options={"maxiter": 500}).x
    surest = SUREST + free / (1 + float(np.exp(-found[-1])))
    named = rounded(dict(zip((*TERMS, "surest"), [*found[:-1].tolist(), surest], strict=True)))
    return KeyWeights({name: named[name] for name in TERMS}, named["surest"])


def scores(cases: Sequence[Form], weights: Mapping[Form, KeyWeights]) -> dict[str, Any]:
    """Precision, recall and reliability of the keys, each form scored with its own weights, by data."""
    found: dict[str, Any] = {}
    for data in dict.fromkeys(case.data for case in cases if case in weights):
        mine = [case for case in cases if case.data == data]
        forms = [case.form for case in mine]
        keys = {
            case.database: infer_key_pairs(case.form.tables, declared=False, weights=weights[case]) for case in mine
        }
        scored = key_scores(forms, keys)
        found[data] = {name: scored[name] for name in ("precision", "recall", "declared")}
        found[data]["reliability"] = reliability(forms, keys)
    return found


def read(folder: Path) -> list[Database]:
    """The databases of a folder to fit on; one database from ``schema.sql`` if there is nothing else."""
    if (folder / "schema.sql").is_file():
        tables = schema_profiles(folder / "schema.sql", folder.name, dialect="sqlite")
        return [Database.of(folder.name, tables, tables, None)]
    wanted = read_halves(folder).get("fit")
    return [one for one in read_databases(folder) if wanted is None or one.name.lower() in wanted]


def fitted(given: Given) -> Fitted:
    """The evidence for keys."""
    cases: list[Form] = []
    for folder in given.folders:
        name = folder.resolve().name
        for database in with_progress(read(folder), f"{name}: pairs", "database"):
            has_rows = database.file is not None
            cases.append(Form.of(name if has_rows else f"{name} without rows", database, 1.0))
            for kind, form in perturbations(database) if has_rows else ():
                cases.append(Form.of(f"{name}, {kind}", form, HARDLY_TOLD if kind.startswith(HARD) else PERTURBED))
    fold_of = folds([replace(case, data="") for case in cases])
    without = {
        case: weights
        for mine, weights in left_out(cases, lambda case: fold_of["", case.database], fit)
        for case in mine
    }
    final = fit(cases)
    report = {
        "pairs": sum(len(case.true) for case in cases),
        "cross_database": scores(cases, without),
        "by_hand": scores(cases, dict.fromkeys(cases, PRIOR)),
    }
    weights = {"surest": final.surest, "terms": final.terms}
    return Fitted(weights, report, ", ".join(folder.resolve().name for folder in given.folders))

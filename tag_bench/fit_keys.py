"""``tag_bench fit_keys``: fits the weights of evidence for keys (:mod:`tagframe.keys.terms`), and measures them.

The fit is maximum a posteriori: a pair of columns is a key with the chance that its terms give, and each weight has a
prior around the value that was set by hand (:data:`PRIOR`), with the strength :data:`PENALTY`. The effect of competing
pairs is computed with the prior weights and kept fixed. Perturbed variants of the databases
(:mod:`tag_bench.perturbed`) are also used, so that the fit does not depend on particular names. The figures are out of
fold: the keys of a database are scored with weights that were fitted without it, in any variant. If the data has
``halves.json``, only the databases to ``fit`` on are read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
import numpy.typing as npt
from scipy import optimize

from tag_bench import FOLDERS, SpreadCommand
from tag_bench.databases import Database, key_scores, read_databases, read_halves, reliability
from tag_bench.perturbed import HARD, perturbations
from tag_bench.records import with_progress
from tagframe.corpus.schema_only import schema_profiles
from tagframe.keys import infer_key_pairs
from tagframe.keys.inference import candidates_of
from tagframe.keys.key_columns import columns_of
from tagframe.keys.terms import TERMS, KeyWeights

Floats = npt.NDArray[np.float64]

FOLDS = 5
SEED = 0
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
class Pairs:
    """The candidate pairs of one database in one form.

    Attributes:
        terms: shape (pairs, terms).
        added: shape (pairs,), the effect of competing pairs on their log odds.
        true: shape (pairs,), whether they are declared keys.
        weight: the weight of each pair in the fit.
        fold: of the database.
    """

    terms: Floats
    added: Floats
    true: Floats
    weight: float
    fold: int


def pairs_of(database: Database, weight: float, fold: int) -> Pairs | None:
    """The candidate pairs of a database; None if it has none."""
    tables = sorted(database.tables, key=lambda table: table.id)
    found = candidates_of(tables, columns_of(tables), floor=_FLOOR, weights=PRIOR)
    if not found:
        return None
    terms = np.array([candidate.terms for candidate in found])
    added = np.array([candidate.logit for candidate in found]) - terms @ _array(PRIOR)
    true = [
        frozenset(f"{table}.{column}".lower() for table, column in (candidate.left.key, candidate.right.key))
        in database.declared
        for candidate in found
    ]
    return Pairs(terms, added, np.array(true, dtype=np.float64), weight, fold)


def _array(weights: KeyWeights) -> Floats:
    return np.array([weights.terms[name] for name in TERMS])


def fit(group: Sequence[Pairs]) -> KeyWeights:
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
    return KeyWeights(dict(zip(TERMS, map(_rounded, found[:-1]), strict=True)), _rounded(surest))


def _rounded(number: float) -> float:
    return float(f"{number:.4g}")


def scores(forms: Sequence[Database], weights: Mapping[str, KeyWeights]) -> dict[str, Any]:
    """Precision, recall and reliability of the keys of databases, each scored with its own weights."""
    keys = {
        database.name: infer_key_pairs(database.tables, declared=False, weights=weights[database.name])
        for database in forms
    }
    found = key_scores(forms, keys)
    return {name: found[name] for name in ("precision", "recall", "declared")} | {
        "reliability": reliability(forms, keys)
    }


def read(folder: Path) -> list[Database]:
    """The databases of a folder to fit on; one database from ``schema.sql`` if there is nothing else."""
    if (folder / "schema.sql").is_file():
        tables = schema_profiles(folder / "schema.sql", folder.name, dialect="sqlite")
        declared = frozenset(
            frozenset((f"{table.id}.{mine}".lower(), f"{table.database}.{key.other_table}.{theirs}".lower()))
            for table in tables
            for key in table.foreign_keys
            for mine, theirs in zip(key.columns, key.other_columns, strict=True)
        )
        return [Database(folder.name, tuple(tables), {}, declared, None)]
    wanted = read_halves(folder).get("fit")
    return [database for database in read_databases(folder) if wanted is None or database.name in wanted]


@click.command("fit_keys", cls=SpreadCommand, context_settings={"help_option_names": ["-h", "--help"]})
@FOLDERS
@click.option("--weights", type=click.Path(dir_okay=False, path_type=Path), help="Where to write the fitted weights.")
@click.option("--json", "output", type=click.File("w"), default="-", help="Where the JSON goes; - for standard output.")
def command(folders: tuple[Path, ...], weights: Path | None, output: Any) -> None:
    """Fit the evidence for keys, and measure it on databases that it was not fitted on.

    Example: python -m tag_bench fit_keys --data spider_train spider bird fiben --weights tagframe/keys/weights.json
    """
    shown = {folder.resolve().name: read(folder) for folder in folders}
    names = sorted({database.name for databases in shown.values() for database in databases})
    order = np.random.default_rng(SEED).permutation(len(names))
    fold_of = {names[position]: number % FOLDS for number, position in enumerate(order.tolist())}
    forms: dict[str, list[Database]] = {}
    group: list[Pairs | None] = []
    for name, databases in shown.items():
        for database in with_progress(databases, f"{name}: pairs", "database"):
            of_rows = name if database.file is not None else f"{name} without rows"
            forms.setdefault(of_rows, []).append(database)
            group.append(pairs_of(database, 1.0, fold_of[database.name]))
            for kind, form in perturbations(database) if database.file is not None else ():
                forms.setdefault(f"{name}, {kind}", []).append(form)
                group.append(
                    pairs_of(form, HARDLY_TOLD if kind.startswith(HARD) else PERTURBED, fold_of[database.name])
                )
    known = [pairs for pairs in group if pairs is not None]
    folds = [fit([pairs for pairs in known if pairs.fold != fold]) for fold in range(FOLDS)]
    without = {name: folds[fold] for name, fold in fold_of.items()}
    final = fit(known)
    if weights is not None:
        about = f"Made by tag_bench fit_keys from {', '.join(shown)}."
        data = {
            "about": about,
            "surest": final.surest,
            "model_accuracy": final.model_accuracy,
            "terms": final.terms,
        }
        weights.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    report = {
        "data": [*shown],
        "pairs": sum(len(pairs.true) for pairs in known),
        "out_of_fold": {name: scores(databases, without) for name, databases in forms.items()},
        "by_hand": {name: scores(databases, dict.fromkeys(fold_of, PRIOR)) for name, databases in forms.items()},
        "terms": final.terms,
        "surest": final.surest,
        "weights_file": None if weights is None else str(weights),
    }
    json.dump(report, output, indent=1)
    output.write("\n")

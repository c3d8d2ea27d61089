"""``tag_bench fit sets``: the chance that a statement reads the right tables (``answer.tables_confidence``).

The gold tables of a question are right; a variant with a table dropped, added or swapped is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tag_bench.data import SEED
from tag_bench.doubts import Changed, judged_questions, judged_sets
from tag_bench.fit import Fitted, Given, left_out, shares
from tag_bench.fit.likelihood import fit_logistic
from tag_bench.records import Records

Case = tuple[str, Changed]
"""The data set, and the tables."""


def fit(cases: Sequence[Case]) -> list[float]:
    """The weights of the features."""
    features, truth = (
        np.array(part) for part in zip(*((values, not change) for _, (change, values) in cases), strict=True)
    )
    names = list(map(str, range(features.shape[1])))
    return list(fit_logistic(features, truth, shares([data for data, _ in cases], 0.0), names).values())


def fitted(given: Given) -> Fitted:
    """The weights, from the databases to fit on of each data set."""
    cases: list[Case] = [
        (folder.resolve().name, (change, values))
        for folder in given.folders
        for record in judged_questions(folder, "fit", given.questions, SEED, Records(None, {}))
        for change, values in record["sets"]
    ]
    report = {
        mine[0][0]: judged_sets(without, [sets for _, sets in mine])
        for mine, without in left_out(cases, lambda case: case[0], fit)
    }
    return Fitted({"sets": [round(weight, 4) for weight in fit(cases)]}, {"left_out": report})

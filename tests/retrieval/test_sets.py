from itertools import combinations

import numpy as np
import pytest

from tag_bench.retrieval import spanning_forest
from tagframe.keys.components import Components
from tagframe.retrieval.methods.sets import FEATURES, missing_joins, set_features
from tagframe.retrieval.problem import RowKind, SelectionProblem
from tagframe.retrieval.signals import SIGNALS

CHOSEN = [0, 2, 3, 4, 5]
KINDS = [kind for kind in RowKind if kind not in (RowKind.SUBQUERY, RowKind.MENTIONED, RowKind.SPOKEN)]


@pytest.fixture
def problem():
    rng = np.random.default_rng(7)
    n = 6
    link, omega, alike = (np.triu(rng.random((n, n)), 1) for _ in range(3))
    kind = np.repeat(KINDS, [3, 3, 2, 1, 2, 1, 2])
    return SelectionProblem(
        r=-rng.random(n),
        fine=rng.random((14, n)),
        omega=omega + omega.T,
        link=link + link.T,
        refers=rng.random((n, n)) < 0.3,
        similarity=alike + alike.T,
        mixed=alike + alike.T > 0.6,
        kind=kind,
        row_weight=rng.random(14),
        signals=rng.random((n, len(SIGNALS))),
        source=np.array([0, 0, 0, 1, 1, 2]),
    )


def can_join(problem, one, other):
    """Whether they are linked, or refer to the same table."""
    linked = problem.link >= 0.5
    return linked[one, other] or any(
        linked[one, hub] and linked[other, hub] and problem.refers[one, hub] and problem.refers[other, hub]
        for hub in CHOSEN
    )


def naive(problem, tables):
    """Every feature of one set, by its definition."""
    tables = list(tables)
    found = {f"sum_{name}": problem.signals[tables, position].sum() for position, name in enumerate(SIGNALS)}
    found["sum_prior"], found["least_prior"] = problem.r[tables].sum(), problem.r[tables].min()
    for kind in KINDS:
        rows = problem.kind == kind
        values = problem.row_weight[rows, None] * problem.fine[rows]

        def cover(of, values=values):
            return values[:, of].max(axis=1).sum() if of else 0.0

        adds = [cover(tables) - cover([other for other in tables if other != table]) for table in tables]
        name = kind.name.lower()
        found[f"cover_{name}"] = cover(tables)
        found[f"cover_least_{name}"], found[f"cover_alone_{name}"] = min(adds), sum(adds)
    held = problem.kind == RowKind.CELL
    around = np.flatnonzero(np.isin(problem.source, problem.source[tables]) & np.isin(np.arange(6), CHOSEN))
    names = problem.row_weight[held, None] * problem.fine[held]
    found["lacking"] = (names[:, around].max(axis=1) - names[:, tables].max(axis=1)).sum()
    found["link_tree"] = spanning_forest(problem.link, tables)[1]
    edges, _ = spanning_forest(np.where(problem.link >= 0.5, problem.link, 0), tables)
    found["unlinked"] = len(tables) - 1 - len(edges)
    found["connected"] = float(found["unlinked"] == 0)
    databases = len(set(problem.source[tables].tolist()))
    found["other_databases"], found["one_database"] = databases - 1, float(databases == 1 and len(tables) > 1)
    found["near_duplicate"] = max((problem.similarity[i, j] for i in tables for j in tables), default=0.0)
    found["mixed"] = problem.mixed[np.ix_(tables, tables)].sum() / 2
    found.update({f"size_{size}": float(len(tables) == size) for size in range(2, 6)})
    return [found[name] for name in FEATURES]


def test_every_feature_of_every_set_by_its_definition(problem):
    positions = np.array(CHOSEN)
    features = set_features(problem, positions)
    sets = [tuple(chosen) for size in range(1, 6) for chosen in combinations(positions.tolist(), size)]
    assert len(features) == len(sets)
    for row, chosen in zip(features, sets, strict=True):
        assert np.allclose(row, naive(problem, chosen)), dict(
            zip(FEATURES, zip(row, naive(problem, chosen), strict=True), strict=True)
        )


def test_the_joins_that_a_set_lacks_by_their_definition(problem):
    joined = [(one, other) for one, other in combinations(CHOSEN, 2) if can_join(problem, one, other)]
    parts = Components(CHOSEN)
    for one, other in joined:
        parts.join(one, other)
    sets = [tables for size in range(1, 6) for tables in combinations(CHOSEN, size)]
    for tables, lacking in zip(sets, missing_joins(problem, np.array(CHOSEN)).tolist(), strict=True):
        inside = Components(tables)
        for one, other in joined:
            if {one, other} <= {*tables}:
                inside.join(one, other)
        assert lacking == len(inside.groups()) - len({parts.root(table) for table in tables})

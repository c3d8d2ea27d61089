"""JAR's literal program against the reduced search. Needs the package ``mip``."""

import numpy as np
import pytest

from tagframe.retrieval.methods.exact import exact, objective
from tagframe.retrieval.problem import JarWeights
from tests.retrieval.jar_program import ColumnProblem, optimum


def random_problem(seed, anchored=False):
    rng = np.random.default_rng(seed)
    n, q = int(rng.integers(2, 7)), int(rng.integers(0, 4))
    widths = rng.integers(1, 4, n)
    table = np.repeat(np.arange(n), widths)
    upper = np.triu(rng.random((len(table), len(table))) * (rng.random((len(table), len(table))) < 0.4), 1)
    omega = upper + upper.T
    omega[table[:, None] == table[None, :]] = 0
    fine = [rng.random((q, width)) - 0.2 for width in widths]
    weights = JarWeights(*rng.choice([0.1, 0.5, 3, 10], 4).tolist())
    k = int(rng.integers(1, n + 1))
    anchor = rng.random(n) < (0.3 if anchored else 0.0)
    return ColumnProblem(rng.random(n), fine, omega, anchor), k, weights


@pytest.mark.slow
@pytest.mark.parametrize("joined", [True, False])
@pytest.mark.parametrize("anchored", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_the_program_has_the_optimum_of_the_reduced_search(seed, anchored, joined):
    pytest.importorskip("mip")
    problem, k, weights = random_problem(seed, anchored)
    reduced = exact(problem.reduce(), k, weights, joined=joined)
    if (solved := optimum(problem, k, weights, joined=joined)) is None:
        assert reduced.note
    else:
        value, tables = solved
        assert value == pytest.approx(reduced.objective, abs=1e-6)
        assert value == pytest.approx(objective(problem.reduce(), tables, weights, joined=joined), abs=1e-6)


def test_reduce_keeps_the_best_columns():
    omega = np.zeros((3, 3))
    omega[0, 2] = omega[2, 0] = 0.2
    omega[1, 2] = omega[2, 1] = 0.7
    fine = [np.array([[0.1, 0.9]]), np.array([[0.3]])]
    problem = ColumnProblem(np.array([0.5, 0.4]), fine, omega, np.zeros(2, dtype=bool)).reduce()
    assert problem.fine.tolist() == [[0.9, 0.3]]
    assert problem.omega.tolist() == [[0.0, 0.7], [0.7, 0.0]]

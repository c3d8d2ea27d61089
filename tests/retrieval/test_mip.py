"""The literal program against the reduced search. Needs the ``mip`` extra."""

import builtins

import numpy as np
import pytest

from tagframe.errors import InvalidArgument, MissingExtra
from tagframe.retrieval.methods.jar import exact
from tagframe.retrieval.methods.mip import mip
from tagframe.retrieval.problem import ColumnProblem, JarWeights


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
@pytest.mark.parametrize("variant", ["F", "D"])
@pytest.mark.parametrize("anchored", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_the_program_has_the_optimum_of_the_reduced_search(seed, anchored, variant):
    pytest.importorskip("mip")
    problem, k, weights = random_problem(seed, anchored)
    literal = mip(problem, k, weights, variant=variant)
    reduced = exact(problem.reduce(), k, weights, joined=variant != "D")
    assert literal.objective == pytest.approx(reduced.objective, abs=1e-6)
    assert literal.facts == reduced.facts
    if reduced.note:
        assert "no solution" in literal.note


def test_reduce_keeps_the_best_columns():
    omega = np.zeros((3, 3))
    omega[0, 2] = omega[2, 0] = 0.2
    omega[1, 2] = omega[2, 1] = 0.7
    problem = ColumnProblem(np.array([0.5, 0.4]), [np.array([[0.1, 0.9]]), np.array([[0.3]])], omega).reduce()
    assert problem.fine.tolist() == [[0.9, 0.3]]
    assert problem.omega.tolist() == [[0.0, 0.7], [0.7, 0.0]]


def test_shapes_are_checked():
    with pytest.raises(InvalidArgument):
        ColumnProblem(np.zeros(2), [np.zeros((1, 1))], np.zeros((1, 1)))
    with pytest.raises(InvalidArgument):
        ColumnProblem(np.zeros(1), [np.zeros((1, 2))], np.zeros((1, 1)))


def test_without_the_extra_the_error_names_it(monkeypatch):
    real = builtins.__import__

    def missing(name, *args, **kwargs):
        if name == "mip":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(MissingExtra, match=r"tagframe\[mip\]"):
        mip(*random_problem(0))

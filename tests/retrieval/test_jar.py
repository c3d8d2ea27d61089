import importlib
from itertools import combinations

import numpy as np
import pytest

from tagframe.retrieval.methods.jar import exact
from tagframe.retrieval.problem import PAPER_WEIGHTS, JarWeights, SelectionProblem


def brute_force(problem, tables, weights, joined):
    """The value of a set by equations 1 to 15: the best of all links and joins; -inf if it cannot connect."""
    links = [(q, weights.fine * problem.fine[q, table]) for q in range(len(problem.fine)) for table in tables]
    choices = [part for size in range(len(problem.fine) + 1) for part in combinations(links, size)]
    cover = max(sum(value for _, value in part) + weights.coverage * len({q for q, _ in part}) for part in choices)
    trees = [0.0]
    if joined:
        edges = [(i, j) for i, j in combinations(tables, 2) if problem.omega[i, j] > 0]
        trees = [
            weights.join * sum(problem.omega[edge] for edge in tree)
            for tree in combinations(edges, len(tables) - 1)
            if connects(tree, tables)
        ]
    return weights.coarse * problem.r[list(tables)].sum() + cover + max(trees, default=-np.inf)


def connects(tree, tables):
    reached = {tables[0]}
    for _ in tables:
        reached |= {end for edge in tree if reached & {*edge} for end in edge}
    return reached == {*tables}


def any_weight(rng):
    """Any size of a weight, 0 among them."""
    return float(rng.choice([0.0, 1.0, 10.0 ** rng.uniform(-4, 4), rng.uniform(0, 3)]))


def random_problem(rng):
    n, q = int(rng.integers(2, 7)), int(rng.integers(1, 4))
    upper = np.triu(rng.random((n, n)) * (rng.random((n, n)) < rng.choice([0.3, 0.7, 1.0])), 1)
    fine = rng.uniform(*rng.choice([[-1, 1], [-1, 0], [0, 1], [-1, -0.5]]), (q, n))
    r, anchor = rng.uniform(-1, 1, n), rng.random(n) < rng.choice([0, 0.2])
    if rng.random() < 0.5:  # ties
        r, fine, upper = (np.round(part, 1) for part in (r, fine, upper))
    problem = SelectionProblem(r=r, fine=fine, omega=upper + upper.T, anchor=anchor)
    weights = JarWeights(*(any_weight(rng) for _ in range(4)))
    return problem, int(rng.integers(1, min(n, 3) + 1)), weights, bool(rng.random() < 0.8)


def values_of(problem, k, weights, joined):
    """The value of every set of k tables beside the anchors."""
    anchors = np.flatnonzero(problem.anchor).tolist()
    free = np.flatnonzero(~problem.anchor).tolist()
    return {
        chosen: brute_force(problem, sorted([*anchors, *chosen]), weights, joined)
        for chosen in combinations(free, problem.wanted(k))
        if anchors or chosen
    }


@pytest.mark.parametrize("count", [200, pytest.param(2000, marks=pytest.mark.slow)])
def test_it_is_the_optimum_at_any_weights(count):
    rng = np.random.default_rng(count)
    wrong = []
    for number in range(count):
        problem, k, weights, joined = random_problem(rng)
        values = values_of(problem, k, weights, joined)
        selection = exact(problem, k, weights, joined=joined)
        most = max(values.values(), default=0.0)
        if most == -np.inf:
            assert "no joins" in selection.note
            continue
        close = 1e-9 * max(1e-3, *(abs(value) for value in (0.0, *values.values()) if value > -np.inf))
        best = [chosen for chosen, value in values.items() if value >= most - close]
        if (best and tuple(sorted(selection.indices)) not in best) or abs(selection.objective - most) > close:
            wrong.append((number, weights, k, joined))
    assert not wrong, f"{len(wrong)} of {count}"


def test_of_equal_sets_the_lowest_indices_are_chosen():
    equal = SelectionProblem(r=[0.5] * 5, fine=[[0.2] * 5], omega=0.5 * (1 - np.eye(5)))
    assert sorted(exact(equal, 3).indices) == [0, 1, 2]
    anchored = SelectionProblem(r=[0.5] * 5, omega=0.5 * (1 - np.eye(5)), anchor=[True, *[False] * 4])
    assert sorted(exact(anchored, 2).indices) == [1, 2]


def test_pieces_of_levels_change_nothing(monkeypatch):
    rng = np.random.default_rng(5)
    cases = [random_problem(rng) for _ in range(40)]
    whole = [exact(problem, k, weights, joined=joined).indices for problem, k, weights, joined in cases]
    monkeypatch.setattr(importlib.import_module("tagframe.retrieval.methods.jar"), "_CHUNK", 2)
    assert whole == [exact(problem, k, weights, joined=joined).indices for problem, k, weights, joined in cases]


def test_the_objective_by_hand():
    # 10·(0.5 + 0.2) + coverage + 1·0.4; |Q| = 2 links: with α = 0 both links to sub-query 0 may be taken.
    fine = np.array([[0.9, 0.8], [0.1, 0.3]])
    problem = SelectionProblem(r=[0.5, 0.2], fine=fine, omega=[[0, 0.4], [0.4, 0]])
    weights = JarWeights(fine=2.0, coverage=0.0, join=1.0, coarse=10.0)
    assert exact(problem, 2, weights).objective == pytest.approx(7.0 + 2 * (0.9 + 0.8) + 0.4)
    weights = JarWeights(fine=2.0, coverage=8.0, join=1.0, coarse=10.0)
    assert exact(problem, 2, weights).objective == pytest.approx(7.0 + 2 * (0.9 + 0.3) + 16 + 0.4)


def test_link_scores_share_the_join_where_asked():
    link = np.array([[0, 0, 1.0], [0, 0, 0], [1.0, 0, 0]])
    problem = SelectionProblem(r=[0.5, 0.4, 0.3], link=link)
    assert exact(problem, 2).note
    assert exact(problem, 2, JarWeights(link_share=0.5)).indices == (0, 2)


def test_nothing_to_choose():
    assert exact(SelectionProblem(r=np.zeros(0)), 3).indices == ()
    assert exact(SelectionProblem(r=[0.4]), 0).indices == ()


def test_a_hundred_and_fifty_tables():
    rng = np.random.default_rng(3)
    upper = np.triu(np.where(rng.random((150, 150)) < 0.05, rng.random((150, 150)), 0.0), 1)
    problem = SelectionProblem(r=rng.random(150), fine=rng.random((3, 150)), omega=upper + upper.T)
    selection = exact(problem, 3)
    swapped = []
    for position in range(3):
        for other in set(range(150)) - set(selection.indices):
            tables = [*selection.indices[:position], other, *selection.indices[position + 1 :]]
            swapped.append(brute_force(problem, tables, PAPER_WEIGHTS, joined=True))
    assert max(swapped) <= selection.objective + 1e-9

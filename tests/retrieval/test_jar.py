import importlib
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tagframe.retrieval.methods.jar import exact, objective
from tagframe.retrieval.problem import JarWeights, SelectionProblem

SHARES = st.floats(0.0, 1.0, width=32)


@st.composite
def problems(draw):
    seed = draw(st.integers(0, 2**32 - 1))
    n, q = draw(st.integers(1, 8)), draw(st.integers(0, 4))
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((n, n)) * (rng.random((n, n)) < draw(st.sampled_from([0.2, 0.6, 1.0]))), 1)
    if draw(st.booleans()):  # ties
        upper = np.round(upper, 1)
    anchor = rng.random(n) < draw(st.sampled_from([0.0, 0.2]))
    problem = SelectionProblem(
        r=rng.random(n) - 0.2, fine=rng.random((q, n)) - 0.3, omega=upper + upper.T, anchor=anchor
    )
    return problem, draw(st.integers(1, n))


ALPHAS = st.sampled_from([0.0, 0.05, 0.5, 8.0])


def enumerated(problem, k, weights, joined):
    free = np.flatnonzero(~problem.anchor).tolist()
    anchors = np.flatnonzero(problem.anchor).tolist()
    return {
        chosen: objective(problem, [*anchors, *chosen], weights, joined=joined)
        for chosen in combinations(free, problem.wanted(k))
        if anchors or chosen
    }


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(problems(), ALPHAS, st.sampled_from([0.2, 1.0, 5.0]), st.booleans())
def test_it_is_the_optimum_of_all_sets(given_problem, alpha, join, joined):
    problem, k = given_problem
    weights = JarWeights(fine=2.0, coverage=alpha, join=join, coarse=1.0)
    values = enumerated(problem, k, weights, joined)
    selection = exact(problem, k, weights, joined=joined)
    feasible = {chosen: value for chosen, value in values.items() if value > -np.inf}
    if values and not feasible:
        assert "no join" in selection.note
        return
    best = max(feasible.values(), default=0.0)
    assert selection.objective == pytest.approx(best, abs=1e-9)
    ties = [chosen for chosen, value in feasible.items() if value >= best - 1e-12]
    assert not ties or tuple(sorted(selection.indices)) == min(ties)


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
    problem = SelectionProblem(r=rng.uniform(-1, 1, n), fine=fine, omega=upper + upper.T)
    weights = JarWeights(*(any_weight(rng) for _ in range(4)))
    return problem, int(rng.integers(1, min(n, 3) + 1)), weights, bool(rng.random() < 0.8)


@pytest.mark.parametrize("count", [200, pytest.param(2000, marks=pytest.mark.slow)])
def test_it_is_the_optimum_at_any_weights(count):
    rng = np.random.default_rng(count)
    wrong = []
    for number in range(count):
        problem, k, weights, joined = random_problem(rng)
        sets = [*combinations(range(len(problem.r)), k)]
        values = [brute_force(problem, tables, weights, joined) for tables in sets]
        selection = exact(problem, k, weights, joined=joined)
        if max(values) == -np.inf:
            assert "no joins" in selection.note
            continue
        close = 1e-9 * max(1e-3, *(abs(value) for value in values if value > -np.inf))
        right = values[sets.index(tuple(sorted(selection.indices)))] >= max(values) - close
        if not right or abs(selection.objective - max(values)) > close:
            wrong.append((number, weights, k, joined))
    assert not wrong, f"{len(wrong)} of {count}"


@settings(max_examples=40, deadline=None)
@given(problems(), ALPHAS)
def test_pieces_of_levels_change_nothing(given_problem, alpha):
    problem, k = given_problem
    weights = JarWeights(coverage=alpha)
    whole = exact(problem, k, weights)
    module = importlib.import_module("tagframe.retrieval.methods.jar")
    kept = module._CHUNK
    module._CHUNK = 2
    try:
        assert exact(problem, k, weights).indices == whole.indices
    finally:
        module._CHUNK = kept


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
            swapped.append(objective(problem, tables))
    assert max(swapped) <= selection.objective + 1e-9

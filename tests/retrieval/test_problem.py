from itertools import combinations

import numpy as np
import pytest

from tag_bench.retrieval import spanning_forest
from tagframe.errors import InvalidArgument
from tagframe.retrieval.problem import SelectionProblem, best_first, forest_weights


def test_what_is_not_given_is_zero():
    problem = SelectionProblem(r=[0.5, 0.25], fine=[[1, 0]])
    assert problem.omega.shape == problem.link.shape == (2, 2)
    assert problem.row_weight.tolist() == [1.0]
    assert problem.wanted(None) == 2


@pytest.mark.parametrize(
    "arrays",
    [
        {"r": [0.1, np.nan]},
        {"r": [[0.1]]},
        {"r": [0.1, 0.2], "fine": [[1.0]]},
        {"r": [0.1, 0.2], "omega": [[0, 0.5], [0.4, 0]]},
        {"r": [0.1, 0.2], "omega": np.zeros((3, 3))},
        {"r": [0.1], "signals": np.zeros((2, 3))},
    ],
)
def test_arrays_that_do_not_fit_are_refused(arrays):
    with pytest.raises(InvalidArgument):
        SelectionProblem(**arrays)


def test_wanted_counts_no_anchor():
    assert SelectionProblem(r=[1, 2, 3], anchor=[True, False, False]).wanted(5) == 2


def test_a_negative_k_is_refused():
    with pytest.raises(InvalidArgument, match="at least 0"):
        SelectionProblem(r=[0.1]).wanted(-1)


def test_ties_go_to_the_lower_index():
    assert best_first(np.array([0.5, 0.7, 0.7, 0.5])).tolist() == [1, 2, 0, 3]


def test_spanning_forest_leaves_out_pairs_of_no_weight():
    weights = np.zeros((4, 4))
    weights[0, 3] = weights[3, 0] = 0.5
    assert spanning_forest(weights, [0, 1, 3]) == (((0, 3),), 0.5)


def test_what_is_not_given_takes_no_room():
    problem = SelectionProblem(r=np.zeros(200_000))
    assert problem.omega.shape == (200_000, 200_000)
    assert problem.omega.strides == (0, 0)
    with pytest.raises(InvalidArgument, match="shape"):
        SelectionProblem(r=np.zeros(2), omega=np.zeros((3, 3)))


def test_forests_of_many_sets_at_once_count_the_edges_of_a_weight():
    rng = np.random.default_rng(1)
    weights = np.triu(rng.random((6, 6)) * (rng.random((6, 6)) < 0.6), 1)
    weights += weights.T
    sets = np.array(list(combinations(range(6), 4)))
    total, edges = forest_weights(weights, sets)
    _, sure = forest_weights(weights, sets, least=0.5)
    strong = np.where(weights >= 0.5, weights, 0.0)
    for row, members in enumerate(sets):
        forest, weight = spanning_forest(weights, members)
        assert total[row] == pytest.approx(weight)
        assert edges[row] == len(forest)
        assert sure[row] == len(spanning_forest(strong, members)[0])

import numpy as np

from tagframe.retrieval.methods.iterative_jar import GreedyWeights, greedy
from tagframe.retrieval.methods.ranking import best
from tagframe.retrieval.problem import SelectionProblem

PAPER = GreedyWeights(link_share=0.0)


def test_dense_ranks_and_leaves_the_anchor_out():
    problem = SelectionProblem(r=[0.9, 0.1, 0.5], anchor=[True, False, False])
    selection = best(problem, 2)
    assert selection.indices == (2, 1)
    assert selection.objective == 0.6


def test_greedy_follows_equations_3_and_4_step_by_step():
    # Seed: 4·0.30 + 2·(0.9 + 0.1) = 3.2 for table 0, 4·0.35 + 2·0.8 = 3.0 for table 1, 4·0.2 + 2·1.0 = 2.8 for table 2.
    fine = np.array([[0.9, 0.8, 0.1], [0.1, 0.0, 0.9]])
    omega = np.array([[0, 0.5, 0.2], [0.5, 0, 0], [0.2, 0, 0]])
    problem = SelectionProblem(r=[0.30, 0.35, 0.20], fine=fine, omega=omega)
    selection = greedy(problem, 2, PAPER)
    # Then table 1 adds 4·0.35 + 1·0.5 = 1.9, table 2 adds 4·0.2 + 2·0.8 + 1·0.2 = 2.6.
    assert selection.indices == (0, 2)
    assert np.allclose(selection.score, [3.2, 2.6])


def test_greedys_first_choice_as_printed_counts_negative_relevance():
    # Equation 4 sums F: .5 - .4 against .3. Equation 2, which it is said to follow from, leaves the negative one out.
    fine = np.array([[0.5, 0.3, 0.1], [-0.4, 0.0, 0.1]])
    problem = SelectionProblem(r=[0.2, 0.2, 0.2], fine=fine)
    printed = greedy(problem, 2, PAPER, as_printed=True)
    assert printed.indices == (1, 0)
    assert np.allclose(printed.score, [0.8 + 2 * 0.3, 0.8 + 2 * 0.2])  # from the second on, equation 3
    assert greedy(problem, 2, PAPER).indices == (0, 2)
    anchored = SelectionProblem(r=[0.2, 0.2, 0.2], fine=fine, anchor=[False, False, True])
    assert greedy(anchored, 1, PAPER, as_printed=True).indices == (0,), "after an anchor nothing is a first choice"


def test_ties_as_printed_go_by_the_dense_ranking():
    # Only joins count, so that all first choices are equal, and the later ones that join equally well, or not at all.
    omega = np.zeros((4, 4))
    omega[1, 2] = omega[2, 1] = omega[1, 3] = omega[3, 1] = 0.5
    only_join = GreedyWeights(coverage=0.0, join=1.0, coarse=0.0, link_share=0.0)
    problem = SelectionProblem(r=[0.1, 0.9, 0.5, 0.7], omega=omega)
    assert greedy(problem, 4, only_join, as_printed=True).indices == (1, 2, 3, 0)
    assert greedy(problem, 4, only_join).indices == (0, 1, 2, 3), "ours go to the lowest index"
    apart = SelectionProblem(r=[0.1, 0.9, 0.5, 0.7])
    assert greedy(apart, 2, only_join, as_printed=True).indices == (1, 0)
    anchored = SelectionProblem(r=[0.1, 0.9, 0.5, 0.7], anchor=[False, True, False, False])
    assert greedy(anchored, 1, only_join, as_printed=True).indices == (0,), "after an anchor, no choice is the first"
    same = SelectionProblem(r=[0.5, 0.5, 0.5])
    assert greedy(same, 2, only_join, as_printed=True).indices == (0, 2)


def test_greedy_prefers_a_table_that_joins_the_anchor():
    omega = np.zeros((3, 3))
    omega[0, 2] = omega[2, 0] = 0.9
    problem = SelectionProblem(r=[0.9, 0.5, 0.4], omega=omega, anchor=[True, False, False])
    assert greedy(problem, 1, PAPER).indices == (2,)
    assert greedy(problem, 1, GreedyWeights(join=0)).indices == (1,)


def test_greedy_stops_when_every_sub_query_is_covered():
    fine = np.array([[0.9, 0.0, 0.0], [0.0, 0.8, 0.0]])
    problem = SelectionProblem(r=[0.3, 0.2, 0.1], fine=fine)
    assert greedy(problem, 3, covered_at=0.7).indices == (0, 1)
    assert greedy(problem, 3, covered_at=0.95).indices == (0, 1, 2)


def test_greedy_stops_at_the_number_of_tables():
    assert len(greedy(SelectionProblem(r=[0.3, 0.2]), 9).indices) == 2
    assert greedy(SelectionProblem(r=np.zeros(0)), 3).indices == ()


def test_link_scores_and_joinability_share_the_join():
    link = np.array([[0, 0, 1.0], [0, 0, 0], [1.0, 0, 0]])
    problem = SelectionProblem(r=[0.5, 0.4, 0.3], link=link)
    assert greedy(problem, 2, PAPER).indices == (0, 1)
    assert greedy(problem, 2, GreedyWeights(link_share=1.0)).indices == (0, 2)

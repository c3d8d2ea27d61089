import numpy as np
import pytest

from tagframe.retrieval.methods.posterior import COMPLETE, NAMES, Posterior, complete_features, doubts, names_features
from tagframe.retrieval.problem import SelectionProblem


def test_features_of_sets_are_in_order():
    found = complete_features(np.array([0.5, 1.0]), np.array([1.0, 2.0]), {"words": 0.4, "entropy": 2.0})
    assert found.shape == (2, len(COMPLETE))
    known = dict(zip(COMPLETE, found[1].tolist(), strict=True))
    assert known["one"] == 1.0
    assert known["logit"] == pytest.approx(np.log(999))  # nothing is quite sure
    assert (known["size"], known["words"], known["entropy"], known["known"]) == (2.0, 0.4, 2.0, 0.0)
    assert found[0, COMPLETE.index("logit")] == 0.0


def test_features_where_names_are_all_that_is_known_are_in_order():
    found = dict(zip(NAMES, names_features(0.9, {"log_tables": 4.0, "unlinked": 0.25, "known": 1.0}), strict=True))
    assert found == {"one": 1.0, "sure": pytest.approx(np.log(9)), "log_tables": 4.0, "unlinked": 0.25}


def problem_with(prior, *links):
    link = np.zeros((len(prior), len(prior)))
    for one, other in links:
        link[one, other] = link[other, one] = 0.9
    rows = np.zeros((0, len(prior)))
    return SelectionProblem(
        r=np.asarray(prior, dtype=float),
        fine=rows,
        signals=np.zeros((len(prior), 0)),
        source=np.zeros(len(prior), dtype=np.intp),
        link=link,
        similarity=np.eye(len(prior)),
    )


def test_doubts_grow_with_what_may_be_needed_besides():
    positions, masks = np.array([0, 1]), np.array([1, 2, 3])
    sure, unsure = (Posterior(positions, masks, np.array(chance)) for chance in ([1.0, 0.0, 0.0], [0.5, 0.25, 0.25]))
    two = problem_with(np.zeros(2), (0, 1))
    assert doubts(two, sure) == {"entropy": 0.0, "beyond": 0.0, "unlinked": 0.0}
    assert doubts(two, unsure)["entropy"] == pytest.approx(1.5 * np.log(2))
    assert doubts(problem_with(-np.arange(20.0) / 13, (0, 1)), sure)["beyond"] == pytest.approx(np.exp(-1))


def test_tables_that_nothing_links_to_others_are_counted_among_those_that_sets_are_made_of():
    known = Posterior(np.array([0, 1, 2, 3]), np.array([1]), np.array([1.0]))
    assert doubts(problem_with(np.zeros(5), (0, 1), (2, 4)), known)["unlinked"] == 0.5
    assert doubts(problem_with(np.zeros(5)), known)["unlinked"] == 1.0

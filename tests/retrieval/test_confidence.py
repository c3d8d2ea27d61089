import numpy as np
import pytest

from tagframe.retrieval.methods.posterior import Posterior, doubts
from tagframe.retrieval.problem import SelectionProblem


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

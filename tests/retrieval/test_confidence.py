import numpy as np
import pytest

from tagframe.retrieval.methods.confidence import COMPLETE, complete_features, doubts
from tagframe.retrieval.methods.posterior import Posterior


def test_features_of_sets_are_in_order():
    found = complete_features(np.array([0.5, 1.0]), np.array([1.0, 2.0]), {"words": 0.4, "entropy": 2.0})
    assert found.shape == (2, len(COMPLETE))
    known = dict(zip(COMPLETE, found[1].tolist(), strict=True))
    assert known["one"] == 1.0
    assert known["logit"] == pytest.approx(np.log(999))  # nothing is quite sure
    assert (known["size"], known["words"], known["entropy"], known["known"]) == (2.0, 0.4, 2.0, 0.0)
    assert found[0, COMPLETE.index("logit")] == 0.0


def test_doubts_grow_with_what_may_be_needed_besides():
    places, masks = np.array([0, 1]), np.array([1, 2, 3])
    sure, unsure = (Posterior(places, masks, np.array(chance)) for chance in ([1.0, 0.0, 0.0], [0.5, 0.25, 0.25]))
    assert doubts(np.zeros(2), sure) == {"entropy": 0.0, "beyond": 0.0}
    assert doubts(np.zeros(2), unsure)["entropy"] == pytest.approx(1.5 * np.log(2))
    assert doubts(-np.arange(20.0) / 13, sure)["beyond"] == pytest.approx(np.exp(-1))

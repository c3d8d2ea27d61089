"""Cosines of an encoder that no weights were fitted for."""

from __future__ import annotations

import numpy as np
import pytest

from tagframe.embed import MiniLM, packaged_folder
from tagframe.retrieval import calibration, retrieve_tables
from tagframe.retrieval.calibration import calibrated, moments, unfitted
from tagframe.retrieval.index import Relevance, RetrievalIndex
from tagframe.retrieval.question import Question

pytestmark = pytest.mark.skipif(packaged_folder() is None, reason="the packaged model is not installed")

MINILM = MiniLM(packaged_folder())


class Narrow:
    """MiniLM, with cosines between .55 and 1."""

    name = "narrow"
    dimension = 385

    def encode(self, texts):
        vectors = MINILM.encode(texts)
        return (np.concatenate([vectors, np.full((len(vectors), 1), 1.1)], axis=1) / np.sqrt(2.21)).astype(np.float32)


def test_what_is_known_of_minilm():
    assert moments(MINILM) == pytest.approx((calibration._MEAN, calibration._SPREAD), abs=1e-4)


@pytest.mark.slow
def test_another_scale_is_brought_back(schema):
    corpus = schema(
        **{"shop.customers": ["id", "city"], "shop.orders": ["id", "customer_id", "amount"], "shop.empty": []}
    )
    question = Question.of("What did customers of each city order?")
    of_minilm = RetrievalIndex(corpus, MINILM).relevance(question)
    narrow = RetrievalIndex(corpus, Narrow())
    found = calibrated(narrow.relevance(question), Narrow())
    np.testing.assert_allclose(found.table, of_minilm.table, atol=2e-3)
    np.testing.assert_allclose(found.column, of_minilm.column, atol=2e-3)
    assert found.labels == of_minilm.labels
    assert narrow.relevance(question).table.min() > 0.5


def test_minilm_is_left_alone():
    found = Relevance(*(np.array([0.3]),) * 2, *(np.zeros((0, 1)),) * 2, ())
    assert calibrated(found, MINILM) is found
    assert calibrated(found, None) is found
    assert unfitted(MINILM) == unfitted(None) == ""


def test_an_encoder_that_tells_no_texts_apart(schema):
    class Same(Narrow):
        name = "same"

        def encode(self, texts):
            return np.full((len(texts), 385), 385**-0.5, dtype=np.float32)

    found = retrieve_tables("city", schema(**{"shop.a": ["id"], "shop.b": ["city"]}), k=2, embedder=Same())
    assert len(found) == 2


def test_it_is_said_once(schema):
    corpus = schema(**{"shop.customers": ["id", "city"], "shop.orders": ["id", "customer_id"]})
    said = retrieve_tables("customers by city", corpus, embedder=Narrow()).note
    assert said.count("no weights were fitted for narrow, so neither are chances here") == 1
    assert "fitted" not in retrieve_tables("customers by city", corpus, method="dense", k=1, embedder=Narrow()).note

"""Small corpora for retrieval's tests."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

import tagframe as tf
from tagframe.corpus import ColumnProfile, Corpus, TableProfile


class WordEmbedder:
    """A real, tiny embedder: a text's vector counts its words (in 64 dimensions), so that cosines can be foretold."""

    name = "words"
    dimension = 64

    def encode(self, texts):
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in text.lower().replace(":", " ").replace(",", " ").split():
                vectors[row, sum(map(ord, word)) % self.dimension] += 1
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


@pytest.fixture
def words() -> WordEmbedder:
    return WordEmbedder()


@pytest.fixture
def schema() -> Callable[..., Corpus]:
    """Makes a corpus of which only the schema is known: ``schema(**{"music.singer": ["id", "name"]})``."""

    def make(**tables: list[str]) -> Corpus:
        return Corpus(
            TableProfile(
                id,
                id.split(".")[0],
                id.split(".")[1],
                tuple(ColumnProfile(name, position, "text") for position, name in enumerate(columns)),
            )
            for id, columns in tables.items()
        )

    return make


@pytest.fixture
def bank() -> Corpus:
    """Clients, accounts and loans, joined through a bridge table that few questions name, and a shop beside them."""
    client = pd.DataFrame(
        {"client_id": [11, 12, 13], "gender": ["F", "M", "F"], "birth_date": ["1970", "1980", "1990"]}
    )
    account = pd.DataFrame({"account_id": [201, 202, 203, 204], "frequency": ["monthly", "weekly", "monthly", "daily"]})
    disp = pd.DataFrame({"disp_id": [1, 2, 3, 4], "client_id": [11, 12, 13, 13], "account_id": [201, 202, 203, 204]})
    loan = pd.DataFrame(
        {
            "loan_id": [5001, 5002, 5003],
            "account_id": [201, 203, 204],
            "amount": [1000, 2500, 400],
            "status": list("ABA"),
        }
    )
    product = pd.DataFrame({"product_id": [1, 2], "price": [3.5, 4.0], "label": ["nut", "bolt"]})
    return tf.open_corpus(
        {
            "bank.client": client,
            "bank.account": account,
            "bank.disp": disp,
            "bank.loan": loan,
            "shop.product": product,
        }
    )

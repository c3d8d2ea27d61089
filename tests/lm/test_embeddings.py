"""Embedding models of providers, against a local server over HTTP."""

from __future__ import annotations

import sqlite3

import numpy as np
import pandas as pd
import pytest

import tagframe as tf
from tag_bench.baselines import rag
from tag_bench.server import CONTEXT_LENGTH, DROP, MALFORMED, NOT_A_COMPLETION, Reply, error
from tagframe import embed
from tagframe.config import Settings
from tagframe.embed import EmbeddingModel, embeds_for, get_embedder
from tagframe.errors import (
    AuthenticationFailed,
    BudgetExceeded,
    ContextTooLong,
    InvalidArgument,
    MalformedResponse,
    NotConfigured,
    ReplayMiss,
)
from tagframe.lm import Budget, Price, RetryPolicy
from tagframe.retrieval import retrieve_tables

FAST = RetryPolicy(first_wait=0.005, longest_wait=0.02)
TEXTS = ["singers by country", "loans of clients", "singers by city"]


@pytest.fixture(params=["http", pytest.param("litellm", marks=pytest.mark.slow)])
def model(server, request, tmp_path):
    """On the local server, by each transport, with a store of its own."""
    with tf.context(store=tmp_path / "store.sqlite"):
        yield EmbeddingModel(
            "openai/test-embedding",
            api_base=server.url,
            api_key="sk-secret",
            retry=FAST,
            transport=request.param,
        )


@pytest.fixture
def direct(server, tmp_path):
    with tf.context(store=tmp_path / "store.sqlite"):
        yield EmbeddingModel("openai/test-embedding", api_base=server.url, api_key="sk-secret", retry=FAST)


def test_prompts_stand_before_the_texts_of_a_kind(server):
    prompts = {"query": "query: ", "passage": "passage: "}
    with tf.context(store=None):
        model = EmbeddingModel("openai/e5", api_base=server.url, api_key="none", prompts=prompts)
        plain = EmbeddingModel("openai/e5", api_base=server.url, api_key="none")
        assert model.encode(["who sang?", " "], "query").shape == (2, 64)
        assert model.encode(["singers"]).shape == (1, 64)
    assert [request.texts for request in server.requests] == [["query: who sang?"], ["passage: singers"]]
    assert model.name != plain.name
    with pytest.raises(InvalidArgument, match="kind must be one of"):
        model.encode(["x"], "document")
    with pytest.raises(InvalidArgument, match="prompts are for the kinds"):
        EmbeddingModel("openai/e5", api_base=server.url, api_key="none", prompts={"document": "d: "})


def test_vectors(model, server):
    vectors = model.encode([*TEXTS, TEXTS[0], "", "  ", "half \ud83d"])
    assert vectors.shape == (7, 64) == (7, model.dimension)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), [1, 1, 1, 1, 0, 0, 1], atol=1e-6)
    np.testing.assert_array_equal(vectors[0], vectors[3])
    assert vectors[0] @ vectors[2] > vectors[0] @ vectors[1]
    (request,) = server.requests
    assert request.texts == [*TEXTS, "half ?"]
    assert request.headers["authorization"] == "Bearer sk-secret"
    assert model.encode([]).shape == (0, 64)
    assert "sk-secret" not in repr(model)


def test_a_text_is_paid_once(direct, server):
    first = direct.encode(TEXTS)
    again = EmbeddingModel("openai/test-embedding", api_base=server.url, api_key="sk-secret")
    np.testing.assert_array_equal(again.encode(TEXTS[::-1]), first[::-1])
    again.encode([TEXTS[1], "a new one"])
    assert [request.texts for request in server.requests] == [TEXTS, ["a new one"]]
    EmbeddingModel("openai/another", api_base=server.url, api_key="k").encode(TEXTS[:1])  # another model's are others
    assert server.count == 3


def test_replayed(direct, server, tmp_path):
    known = direct.encode(TEXTS)
    server.reset()
    store = f"replay:{tmp_path / 'store.sqlite'}"
    with tf.context(lm=store, store=None):
        np.testing.assert_array_equal(direct.encode(TEXTS), known)
        with pytest.raises(ReplayMiss, match=r"no vector of openai/test.* for 1 of 2 texts, the first 'new'"):
            direct.encode([TEXTS[0], "new"])
    assert server.count == 0


@pytest.mark.parametrize(
    "fault", [error(500), error(429, headers={"retry-after": "0"}), DROP, MALFORMED, NOT_A_COMPLETION], ids=str
)
def test_faults_that_pass(model, server, fault):
    server.answers = [fault, fault]
    assert model.encode(TEXTS).shape == (3, 64)
    assert server.count == 3


@pytest.mark.parametrize(
    "data",
    [
        [],
        [{"index": 0, "embedding": [1.0]}],
        [{"index": 0, "embedding": [1.0, 2.0]}, {"index": 1, "embedding": [1.0]}],
        [{"index": n, "embedding": [float("nan")]} for n in range(2)],
        [{"index": n, "embedding": "AAAA"} for n in range(2)],
        {"a": 1},
        None,
    ],
    ids=repr,
)
def test_bodies_that_are_no_vectors(direct, server, data):
    server.answers = lambda request: Reply(changes={"data": data})
    with pytest.raises(MalformedResponse):
        direct.encode(["a", "b"])


def test_a_wrong_key(model, server):
    server.answers = lambda request: error(401, "bad key sk-secret")
    with pytest.raises(AuthenticationFailed) as failed:
        model.encode(TEXTS)
    assert "sk-secret" not in str(failed.value)


def test_a_server_that_takes_few_texts_at_once(direct, server):
    server.answers = lambda request: error(413, "batch size") if len(request.texts) > 5 else "fine"
    texts = [f"text {number}" for number in range(150)]
    vectors = direct.encode(texts)
    expected = EmbeddingModel("openai/x", api_base=server.url, api_key="k").encode(texts[:5])
    np.testing.assert_allclose(vectors[:5], expected)
    assert max(len(request.texts) for request in server.requests[-10:]) <= 5
    server.reset()
    direct.encode(["one more", "and another"])
    assert server.count == 1  # it has learned


def test_a_text_that_is_too_long_is_cut(direct, server):
    server.answers = lambda request: CONTEXT_LENGTH if max(map(len, request.texts)) > 1000 else "fine"
    vectors = direct.encode(["long " * 1000, "short"])
    np.testing.assert_allclose(vectors[0], direct.encode(["long"])[0], atol=1e-6)
    server.answers = lambda request: CONTEXT_LENGTH
    with pytest.raises(ContextTooLong):
        direct.encode(["another"])


def test_many_texts_are_few_requests(direct, server):
    direct.encode([f"text {number}" for number in range(1000)])
    assert server.count == 2
    server.reset()
    server.answers = lambda request: error(413) if len(request.texts) > 32 else "True"
    direct.encode([f"another text {number}" for number in range(1000)])
    assert server.count < 40  # two batches are refused, then one of half as many, a quarter and an eighth
    server.reset()
    direct.encode(["x" * 30_000 + str(number) for number in range(9)])
    assert server.count == 3


def test_budget(server, tmp_path):
    price = Price(1e-6, 0.0)
    with tf.context(store=tmp_path / "s.sqlite", budget=Budget(calls=2), concurrency=1):
        model = EmbeddingModel("openai/test", api_base=server.url, api_key="k", price=price)
        texts = [f"text {number}" for number in range(2000)]
        with pytest.raises(BudgetExceeded, match="2 of 2 calls"):
            model.encode(texts)
    assert server.count == 2
    with tf.context(store=tmp_path / "s.sqlite", budget=Budget(tokens=50_000, dollars=1)) as settings:
        model.encode(texts)  # what was paid for is kept
        assert server.count == 2 + 2
        assert settings.budget.spent.dollars == pytest.approx(settings.budget.spent.tokens * 1e-6)
        assert 0 < settings.budget.spent.tokens < 10_000
    with tf.context(store=None, budget=Budget(dollars=1e-6)), pytest.raises(BudgetExceeded):
        model.encode(["a text of many words " * 50])


def test_usage_counts_it(direct, server):
    before = len(tf.usage())
    direct.encode(TEXTS)
    (row,) = tf.usage().iloc[before:].to_dict("records")
    assert (row["call"], row["model"], row["sent"]) == ("embed", "openai/test-embedding", 1)
    assert row["tokens_in"] > 0


class TestNames:
    def test_provider_or_hub(self):
        assert embeds_for("openai/text-embedding-3-small")
        assert embeds_for("ollama/nomic-embed-text")
        assert not embeds_for("BAAI/bge-small-en-v1.5")
        assert not embeds_for("sentence-transformers/all-MiniLM-L6-v2")
        assert not embeds_for("openai")
        assert not embeds_for("./openai/mine")

    def test_by_name(self, server):
        settings = Settings(embedder="openai/test-embedding", api_base=server.url, api_key="k")
        embedder = get_embedder(settings)
        assert embedder.name == f"openai/test-embedding at {server.url}"
        assert get_embedder(settings) is embedder

    def test_a_key_goes_to_nobody_else(self, server, monkeypatch):
        monkeypatch.setenv("OPENAI_API_KEY", "of-openai")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        embedder = get_embedder(Settings(embedder="openai/e", lm="anthropic/claude", api_key="of-anthropic"))
        with tf.context(store=None):
            embedder.encode(["a"])
        assert server.requests[0].headers["authorization"] == "Bearer of-openai"

    def test_no_key(self):
        with pytest.raises(NotConfigured, match="OPENAI_API_KEY"):
            get_embedder(Settings(embedder="openai/text-embedding-3-small"))

    def test_a_folder_of_the_same_name(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "openai" / "mine").mkdir(parents=True)
        with pytest.raises(InvalidArgument, match=r"is a folder here and also a model of 'openai': write '\./"):
            get_embedder(Settings(embedder="openai/mine", api_key="k"))


@pytest.fixture
def shop(tmp_path):
    with sqlite3.connect(tmp_path / "shop.sqlite") as db:
        db.execute("CREATE TABLE customers (id INTEGER PRIMARY KEY, city TEXT)")
        db.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER, amount REAL)")
        db.executemany("INSERT INTO customers VALUES (?, ?)", [(1, "Porto"), (2, "Faro")])
        db.executemany("INSERT INTO orders VALUES (?, ?, ?)", [(1, 1, 5.0), (2, 2, 7.0)])
    db.close()
    return tmp_path / "shop.sqlite"


def test_retrieval_and_catalogues(shop, server, tmp_path):
    """Vectors of tables are kept in the catalogue, as others are: without a store, too, a text is paid once."""
    settings = {"embedder": "openai/test-embedding", "api_base": server.url, "api_key": "k", "store": None}
    with tf.context(**settings):
        quote = tf.retrieve_tables("amount of orders by city", tf.open_corpus(shop), quote=True)
        assert server.count == 0
        assert quote.calls == 1
        assert quote.rows >= 5
        assert quote.tokens_in > 0
        found = retrieve_tables("amount of orders by city", tf.open_corpus(shop), k=2)
        assert {table.id.rpartition(".")[2] for table in found.tables} == {"customers", "orders"}
        embed.forget()
        asked = server.count
        retrieve_tables("amount of orders by city", tf.open_corpus(shop), k=2)
    again = [text for request in server.requests[asked:] for text in request.texts]
    assert not any("customer_id" in text for text in again)


def test_operators_and_their_quotes(server, tmp_path):
    frame = pd.DataFrame({"title": [f"film number {n}" for n in range(600)]})
    settings = {"embedder": "openai/test-embedding", "api_base": server.url, "api_key": "k"}
    with tf.context(**settings, store=tmp_path / "s.sqlite"):
        quote = tf.sem_search(frame, "title", "film number 7", K=3, quote=True)
        assert (quote.calls, server.count) == (2, 0)
        found = tf.sem_search(frame, "title", "film number 7", K=3)
        assert "film number 7" in found["title"].tolist()
        assert server.count == 2
        assert tf.sem_search(frame, "title", "film number 7", K=3, quote=True).calls == 0


def test_no_private_cell_is_sent_to_these(shop, server):
    with sqlite3.connect(shop) as db:
        db.execute("ALTER TABLE customers ADD COLUMN phone TEXT DEFAULT 'zqs-00000'")
    db.close()
    settings = {"embedder": "openai/test-embedding", "api_base": server.url, "api_key": "k", "store": None}
    corpus = tf.open_corpus(shop)
    corpus.private("customers.phone")
    with tf.context(**settings, lm="openai/test"):
        retrieve_tables("phone zqs of customers", corpus, k=2)
        rag(corpus, k=1).exec("Who lives in Porto?")
    sent = [text for request in server.requests if "input" in request.body for text in request.texts]
    assert any("Porto" in text for text in sent)
    assert not any("zqs-0" in text for text in sent)

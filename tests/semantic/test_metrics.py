"""Metrics of semantic models, from a question that names one to its answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

import tagframe as tf
from tagframe.semantic.metrics import metrics_named

NET = "SUM(orders.amount * 0.8)"
QUESTION = "What was the net revenue in May?"


@pytest.fixture
def shop(tmp_path: Path) -> tf.Corpus:
    corpus = tf.open_corpus(
        {
            "orders": pd.DataFrame({"order_id": [1, 2], "customer": [10, 20], "amount": [5.0, 10.0]}),
            "customers": pd.DataFrame({"id": [10, 20], "name": ["Ann", "Bo"]}),
        }
    )
    tell(corpus, tmp_path, "sales", net_revenue=NET)
    return corpus


def tell(corpus: tf.Corpus, folder: Path, name: str, **metrics: str) -> None:
    model: dict[str, Any] = {
        "name": name,
        "datasets": [{"name": one, "source": one} for one in ("orders", "customers")],
        "metrics": [
            {"name": metric, "expression": {"dialects": [{"dialect": "ANSI_SQL", "expression": text}]}}
            for metric, text in metrics.items()
        ],
    }
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(model))
    corpus.describe(folder / f"{name}.yaml")


def ask(live, corpus: tf.Corpus, sql: str, question: str = QUESTION) -> tuple[tf.Answer, str]:
    prompts: list[str] = []

    def model(request) -> str:
        prompts.append(request.prompt)
        return f"```sql\n-- answer: values\n{sql}\n```"

    live.answers = model
    return tf.ask(question, corpus), prompts[0]


def test_the_model_is_given_the_definition(live, shop: tf.Corpus):
    answer, prompt = ask(live, shop, "SELECT sum(o.amount * 0.8) AS net FROM orders AS o")
    assert f"net_revenue = {NET}  -- of Ossie model sales" in prompt
    assert answer.values == [12.0]


def test_both_definitions_of_a_name_are_given(live, shop: tf.Corpus, tmp_path: Path):
    tell(shop, tmp_path, "finance", **{"Net Revenue": "SUM(orders.amount)"})
    _, prompt = ask(live, shop, "SELECT sum(amount) AS net FROM orders")
    assert f"net_revenue = {NET}  -- of Ossie model sales" in prompt
    assert "Net Revenue = SUM(orders.amount)  -- of Ossie model finance" in prompt


def test_a_question_without_a_metric_has_the_same_prompt_as_without_a_model(live, shop: tf.Corpus):
    plain = tf.open_corpus({name: shop[name] for name in ("orders", "customers")})
    ask(live, shop, "SELECT name FROM customers", "Who are the customers?")
    assert tf.ask("Who are the customers?", plain).usage.sent == 0  # the stored answer fits its prompt


def test_tools_give_the_definition(shop: tf.Corpus):
    tools = shop.tools()
    line = f"net_revenue = {NET}  -- of Ossie model sales"
    assert tools.call("find_tables", {"question": QUESTION})["metrics"] == [line]
    (orders, customers) = tools.call("describe_tables", {"tables": ["orders", "customers"]})["tables"]
    assert orders["metrics"] == [line]
    assert "metrics" not in customers


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("net revenue by buyer", ["net_revenue"]),
        ("Net Revenues of 2024?", ["net_revenue"]),
        ("revenue, net of tax", []),
        ("the netrevenue", []),
    ],
)
def test_a_metric_is_named_by_its_words_in_order(shop: tf.Corpus, question: str, named: list[str]):
    assert [one.name for one in metrics_named(question, shop)] == named


def test_of_two_names_the_longer_one_is_meant(shop: tf.Corpus, tmp_path: Path):
    tell(shop, tmp_path, "more", revenue="SUM(orders.amount)")
    assert [one.name for one in metrics_named("net revenue", shop)] == ["net_revenue"]
    assert [one.name for one in metrics_named("revenue and net revenue", shop)] == ["revenue", "net_revenue"]

"""Metrics of semantic models, from a question that names one to its answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

import tagframe as tf
from tagframe.answer.metrics import metrics_named

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


def test_the_statement_uses_the_definition_and_the_answer_says_so(live, shop: tf.Corpus):
    answer, prompt = ask(live, shop, "SELECT sum(o.amount * 0.8) AS net FROM orders AS o")
    assert f"net_revenue = {NET}  -- of Ossie model sales" in prompt
    assert [str(one) for one in answer.metrics] == [f"net_revenue = {NET} (Ossie model sales)"]
    assert answer.values == [12.0]
    assert not [doubt for doubt in answer.doubts if doubt.reason == "metric"]
    said = f"net_revenue = {NET} (Ossie model sales)"
    assert f"metric: {said}" in repr(answer)
    assert f"metric:   {said}" in answer.explain()
    assert answer.to_dict()["metrics"] == [said]


def test_a_statement_that_computes_something_else_is_doubted(live, shop: tf.Corpus):
    answer, _ = ask(live, shop, "SELECT sum(amount) AS net FROM orders")
    assert answer.metrics == ()
    assert [doubt.facts for doubt in answer.doubts if doubt.reason == "metric"] == [
        f"the question names the metric net_revenue = {NET} (Ossie model sales), which the statement does not compute"
    ]


def test_a_metric_that_is_defined_twice_is_told(live, shop: tf.Corpus, tmp_path: Path):
    tell(shop, tmp_path, "finance", **{"Net Revenue": "SUM(orders.amount)"})
    answer, prompt = ask(live, shop, "SELECT sum(amount) AS net FROM orders")
    assert NET in prompt
    (said,) = (doubt.facts for doubt in answer.doubts if doubt.reason == "metric")
    assert said.startswith("the metric 'net revenue' is defined 2 times: net_revenue = ")
    assert "(Ossie model finance)" in said
    assert [one.model for one in answer.metrics] == ["Ossie model finance"]
    assert "is defined 2 times" in shop.tools().call("find_tables", {"question": QUESTION})["note"]


def test_a_question_without_a_metric_has_the_same_prompt_as_without_a_model(live, shop: tf.Corpus):
    plain = tf.open_corpus({name: shop[name] for name in ("orders", "customers")})
    answer, _ = ask(live, shop, "SELECT name FROM customers", "Who are the customers?")
    assert answer.metrics == ()
    assert "metrics" not in answer.to_dict()
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

# ruff: noqa: E501 - a statement a line
"""``sem_topk`` in SQL: values are compared in lists, and each has its place."""

from __future__ import annotations

import json
import re

import pandas as pd
import pytest
from scripted import Scripted

import tagframe as tf
from tagframe import results
from tagframe.errors import LMError, RowsFailed, UnsafeSQL

TOWNS = pd.DataFrame(
    {
        "name": [f"town {number}" for number in (7, 3, 9, 1, 5, 8, 2, 6, 4, 3)],
        "country": ["PT", "NO"] * 5,
        "people": range(10),
    }
)


def largest(message: str) -> str:
    """The numbers of the listed rows, the largest town first; yes for every filter but that of town 9."""
    listed = re.findall(r"^\[(\d+)\] (.*)$", message, flags=re.MULTILINE)
    if not listed:
        return str("town 9" not in message)
    names = {int(number): next(iter(json.loads(row).values())) for number, row in listed}
    if "town 13" in names.values():
        raise LMError("no answer")
    order = sorted(names, key=lambda number: -int(names[number].split()[1]))
    return " > ".join(map(str, order))


@pytest.fixture
def lm():
    with tf.context(lm=(model := Scripted(largest))):
        yield model


def run(sql: str, towns: pd.DataFrame = TOWNS, **options: object) -> list[object]:
    frame = tf.exec_sql(tf.open_corpus({"towns": towns}), **options)(sql)
    cells = frame.astype(object).where(frame.notna(), None).values.tolist()
    return [row[0] if len(row) == 1 else row for row in cells]


BEST = "sem_topk('{name} is the largest', 3)"


@pytest.mark.parametrize(
    ("sql", "rows", "asked"),
    [
        (f"SELECT name FROM towns ORDER BY {BEST} LIMIT 3", ["town 9", "town 8", "town 7"], 1),
        (f"SELECT name FROM towns ORDER BY {BEST} LIMIT 2 OFFSET 1", ["town 8", "town 7"], 1),
        (f"SELECT name, {BEST} AS place FROM towns ORDER BY place LIMIT 2", [["town 9", 1], ["town 8", 2]], 1),
        (f"SELECT DISTINCT name FROM towns WHERE people > 5 ORDER BY {BEST} LIMIT 3", ["town 6", "town 4", "town 3"], 1),
        (f"SELECT name FROM towns WHERE {BEST} <= 2 AND country = 'PT'", ["town 7", "town 9"], 1),
        (f"SELECT name FROM towns WHERE {BEST} <= 3 AND sem_filter('{{name}} is a town') ORDER BY name", ["town 6", "town 7", "town 8"], 9 + 1),
        (f"SELECT name FROM towns WHERE sem_filter('{{name}} is a town') ORDER BY {BEST} LIMIT 1", ["town 8"], 9 + 1),
        (f"SELECT name, count(*) FROM towns GROUP BY name HAVING count(*) > 1 ORDER BY {BEST} LIMIT 3", [["town 3", 2]], 0),
        (f"SELECT name FROM (SELECT name, {BEST} AS place FROM towns) WHERE place > 3 AND name < 'town 3'", ["town 1", "town 2"], 1),
    ],
)  # fmt: skip
def test_the_values_that_are_left_are_compared_in_lists(lm, sql, rows, asked):
    assert run(sql, rows_per_call=None) == rows
    assert len(lm.asked) == asked


def test_as_few_prompts_as_the_operator_and_the_same_places(lm):
    many = pd.DataFrame({"name": [f"town {number * 7919 % 10_007 + 20}" for number in range(200)]})
    found = run("SELECT name FROM towns ORDER BY sem_topk('{name} is the largest', 5) LIMIT 5", many)
    sent = len(lm.asked)
    assert found == tf.sem_topk(many, "{name} is the largest", K=5)["name"].tolist()
    assert sent == len(lm.asked) - sent < 12


def test_a_value_that_cannot_be_ranked(lm):
    towns = pd.DataFrame({"name": [*TOWNS["name"][:3], "town 13", None]})
    sql = f"SELECT name FROM towns ORDER BY {BEST}, name LIMIT 3"
    with pytest.raises(RowsFailed):
        run(sql, towns)
    frame = tf.exec_sql(tf.open_corpus({"towns": towns}), on_error="keep")(sql)
    assert frame["name"].tolist() == ["town 9", "town 7", "town 3"]
    (stage,) = results.recall(frame, "execution").stages
    assert (stage.values, stage.null, stage.failed) == (5, 1, 1)
    assert run("SELECT name FROM towns WHERE sem_topk('{name} x', 9) > 0", towns, on_error="drop") == [
        "town 7", "town 3", "town 9", None,
    ]  # fmt: skip


def test_the_quote_counts_lists():
    with tf.context(lm="openai/gpt-4o-mini", api_base="http://127.0.0.1:9/v1", api_key="none", store=None):
        execute = tf.exec_sql(tf.open_corpus({"towns": TOWNS}))
        quote = execute(f"SELECT name FROM towns ORDER BY {BEST} LIMIT 3", quote=True)
    assert (quote.calls, quote.stages[0].values) == (1, 9)


@pytest.mark.parametrize(
    ("clauses", "message"),
    [
        ("ORDER BY sem_topk('{name} x') LIMIT 3", "takes a text and the number of places"),
        ("ORDER BY sem_topk('{name} x', 0) LIMIT 3", "takes a text and the number of places"),
        ("ORDER BY sem_topk('{name} x', '3') LIMIT 3", "takes a text and the number of places"),
        ("ORDER BY sem_topk('{name} x', 3, 4) LIMIT 3", "takes a text and the number of places"),
        ("ORDER BY sem_topk('{name} x', people) LIMIT 3", "takes a text and the number of places"),
        ("ORDER BY sem_topk('{nam} x', 3) LIMIT 3", "nam"),
        ("ORDER BY sem_topk('{name} x', 3) DESC LIMIT 3", "it comes first in ORDER BY, without DESC"),
        ("ORDER BY people, sem_topk('{name} x', 3) LIMIT 3", "it comes first in ORDER BY, without DESC"),
        ("ORDER BY sem_topk('{name} x', 3)", "it comes first in ORDER BY, without DESC"),
        ("ORDER BY sem_topk('{name} x', 3) LIMIT 4", "LIMIT and OFFSET are 3 together at most"),
        ("ORDER BY sem_topk('{name} x', 3) LIMIT 2 OFFSET 2", "LIMIT and OFFSET are 3 together at most"),
    ],
)
def test_wrong_uses_are_refused_before_anything_is_asked(lm, clauses, message):
    with pytest.raises((UnsafeSQL, tf.errors.SQLFailed), match=re.escape(message)):
        run(f"SELECT name FROM towns {clauses}")
    assert not lm.asked


def test_the_place_of_select_is_checked_where_order_by_names_it(lm):
    with pytest.raises(UnsafeSQL, match="without DESC"):
        run(f"SELECT name, {BEST} AS place FROM towns ORDER BY place DESC LIMIT 3")
    with pytest.raises(UnsafeSQL, match="without DESC"):
        run(f"SELECT name, {BEST} FROM towns ORDER BY 2 DESC LIMIT 3")
    assert not lm.asked

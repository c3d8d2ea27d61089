from __future__ import annotations

import pytest
from scripted import Scripted

from tagframe.errors import AnswerRejected
from tagframe.operators import run
from tagframe.operators.topk import Item, Lists, best_of, parse_ranking


@pytest.mark.parametrize(
    "text",
    [
        "2 > 3 > 1",
        "[2] > [3] > [1]",
        "2, 3, 1",
        "[2, 3, 1]",
        "2\n3\n1",
        "The final ranking is: 2 > 3 > 1.",
        "**2 > 3 > 1**",
        "<think>1 is last.</think>2>3>1",
        "Row 2 is the saddest of the 3.\n\n2 > 3 > 1",
    ],
)
def test_rankings(text):
    assert parse_ranking(3)(text) == (2, 3, 1)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("2 > 3", "1 missing"),
        ("2 > 3 > 1 > 4", "4 not among the rows"),
        ("2 > 3 > 1 > 2", "2 there more than once"),
        ("0 > 1 > 2 > 3", "0 not among the rows"),
        ("", "in order as"),
        ("The first row, then the others", "in order as"),
        ("2 > 3 > 1 or 3 > 2 > 1", "in order as"),
        ("2 > -3 > 1", "in order as"),
        ("2 > 3.5 > 1", "in order as"),
    ],
)
def test_no_rankings(text, why):
    with pytest.raises(AnswerRejected, match=why):
        parse_ranking(3)(text)


def test_one_reader_a_length():
    """Equal prompts are one only where one function reads their answers."""
    assert parse_ranking(7) is parse_ranking(7)


@pytest.mark.parametrize(("text", "best"), [("3 > 1", (3, 1)), ("3, 1, 2, 4", (3, 1)), ("Answer: [4] > [2]", (4, 2))])
def test_the_best_few_of_a_list(text, best):
    """An answer that orders all rows holds the best ones too."""
    assert parse_ranking(4, 2)(text) == best


@pytest.mark.parametrize(("text", "why"), [("3", "best 2 of 4"), ("3 > 3", "more than once"), ("3 > 5", "not among")])
def test_too_few_of_a_list(text, why):
    with pytest.raises(AnswerRejected, match=why):
        parse_ranking(4, 2)(text)


def test_no_more_lists_are_asked_than_the_limit():
    items = [Item(f'{{"n": {number}}}', [number], f'{{"n": {number}}}') for number in range(60)]
    lists = Lists(items, "c", limit=3, debias=False)
    lm = Scripted(lambda message: "2 > 1" if message.count("[") == 2 else "I cannot say.")
    order = run(best_of(range(60), 5, lists, 30), lm)
    assert len(lm.asked) == 3
    assert lists.short
    assert sorted(order) == list(range(60))

from __future__ import annotations

import pandas as pd
import pytest

import tagframe  # noqa: F401  # df.tag
from tagframe.blocks import parse_block, without_reasoning
from tagframe.errors import AnswerRejected
from tagframe.operators.row_question import claim_question, parse_truth
from tagframe.operators.values import (
    UNSURE,
    is_unsure,
    lines_of,
    parse_text,
    parse_word,
    parse_word_or_unsure,
    split_answer,
)
from tests.operators.scripted import Scripted

REASONED = [
    "<think>The sea is wet.</think>\n\n{}",
    "<think>\nIs it <b>wet</b>? Answer: maybe.\n</think>{}",
    "<thinking>wet</thinking> {}",
    "The template opened the tag, the model closes it.</think>\n{}",
    "[THINK]wet[/THINK]{}",
    "◁think▷wet◁/think▷{}",
    "<reasoning>wet</reasoning><think>very</think>{}",
    "<|channel|>analysis<|message|>It is wet.<|end|><|start|>assistant<|channel|>final<|message|>{}<|return|>",
]
explained = claim_question("it is so", explains=True).accept
UNFINISHED = [
    "<think>I will conclude answer: True",
    "<think>",
    "<think>First.</think><think>I will conclude\nAnswer: True",
    "[THINK]\nTrue",
    "<|channel|>analysis<|message|>So it is\nAnswer: True",
]


@pytest.mark.parametrize("form", REASONED)
def test_reasoning_is_cut_off(form):
    assert without_reasoning(form.format("True")) == "True"
    assert parse_truth(form.format("False")) is False
    assert parse_text(form.format("Two rivers.")) == "Two rivers."
    assert explained(form.format("A river.\nAnswer: True")) == (True, "A river.")
    assert parse_block(form.format('{"sql": null}')) == '{"sql": null}'


@pytest.mark.parametrize("text", UNFINISHED)
@pytest.mark.parametrize("parse", [parse_truth, explained, parse_text, parse_block])
def test_unfinished_reasoning_is_no_answer(parse, text):
    with pytest.raises(AnswerRejected, match="ends inside its reasoning"):
        parse(text)


def test_a_tag_in_the_middle_of_an_answer_is_text():
    assert parse_text("Close it with </b>, as in <think> aloud.") == "Close it with </b>, as in <think> aloud."


@pytest.mark.parametrize(
    "text",
    [
        "**Answer:** True",
        "**Answer**: `True`",
        "# True",
        "The answer is true.",
        "Final answer: True",
        "Oslo is a capital.\n\nTrue",
        "Oslo is a capital.\n\n**True**\n",
        "Therefore, the final answer is: **True**.",
        "True\n\nAnswer: True",
        "> True",
        "Yes",
        "answer = yes.",
    ],
)
def test_true(text):
    assert parse_truth(text) is True


@pytest.mark.parametrize(
    "text",
    [
        "The row says 'Answer: True'",
        'The row says:\n"Answer: True" is what it claims',
        "It says Answer: True",
        "True\nFalse",
        "Answer: True\nWait, no.\nAnswer: False",
        "Not true",
        "Answer: True or False",
        "Answer:",
        "",
        "True\nMaybe",
        "True\nIt cannot be determined from the row.",
        "Maybe\nIt is a river",
        "Unclear wording aside, it holds",
        "Perhaps surprisingly it holds",
        "Probably",
        "No one can tell",
        "None",
    ],
)
def test_neither(text):
    with pytest.raises(AnswerRejected, match="expected True or False"):
        parse_truth(text)


@pytest.mark.parametrize("text", ["True", "Answer: True is what it says", "A river. Answer: True"])
def test_an_explanation_ends_with_a_line_of_its_own(text):
    with pytest.raises(AnswerRejected, match=r"last line|expected True or False"):
        explained(text)


def test_long_answers_are_shown_by_both_ends():
    with pytest.raises(AnswerRejected, match=r"expected x, got 'aaa.*…b{29}'"):
        parse_word("a" * 500 + "b" * 500, {"yes": 1}, "x")


def test_a_block_in_prose():
    assert parse_block('Here it is:\n```json\n{"sql": null}\n```\nAs you asked.') == '{"sql": null}'
    assert parse_block('{"sql": null}') == '{"sql": null}'


@pytest.mark.parametrize(
    "text",
    [
        "Maybe",
        "maybe.",
        "**Unsure**",
        "Answer: Unknown",
        "The answer is unclear.",
        "Unknown. The row does not say where it is.",
        "unknown – no city is given",
        "Maybe true",
        "I don’t know.",
        "N/A",
        "It cannot be determined from the row.",
        "This can't be determined",
        "I am not sure whether it is on a coast.",
        "There is not enough information to decide.",
        "The row does not mention a coast.",
        "Oslo is a city.\nThe claim cannot be verified.",
        "<think>True? False?</think>Unsure",
        "Oslo is a city.\n\nAnswer: cannot be determined",
    ],
)
def test_what_says_that_it_cannot_say_is_unsure(text):
    assert parse_truth(text) is UNSURE
    assert is_unsure(without_reasoning(text).splitlines()[-1])
    with pytest.raises(AnswerRejected):
        parse_word(text, {"true": True}, "True")


def test_doubts_on_the_way_to_an_answer_do_not_count():
    assert parse_truth("The row does not mention a coast.\nFalse") is False
    assert parse_word_or_unsure("It is hard to tell.\nAnswer: B", {"b": 2}, "A or B") == 2
    assert explained("Nothing is said.\nAnswer: Unsure") == (UNSURE, "Nothing is said.")


ODD = ["\u2028", "\u2029", "\u0085", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e"]


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_answers_have_lines_where_a_line_ends_and_nowhere_else(odd: str, end: str):
    assert lines_of(f"1: a{odd}b{end}2: c{end}") == [f"1: a{odd}b", "2: c"]
    assert split_answer(f"So{odd}it is.{end}Answer: a{odd}b") == (f"a{odd}b", f"So{odd}it is.")
    frame = pd.DataFrame({"n": range(4)})
    packed = Scripted(lambda message: end.join(f"{at}: note{odd}{at}" for at in range(1, 5)))
    with_notes = frame.tag.sem_map("a note on {n}", rows_per_call=4, lm=packed)
    assert with_notes["_map"].tolist() == [f"note{odd}{at}" for at in range(1, 5)]

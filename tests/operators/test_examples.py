"""``examples=`` of every operator that asks a model: solved cases stand in the part that all prompts share."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from pydantic import BaseModel
from scripted import Scripted

import tagframe as tf
from tagframe.errors import ColumnNotFound, InvalidArgument

TOWNS = pd.DataFrame({"town": ["Faro", "Évora", "Porto"], "note": ["on a coast", "inland", "on a river"]})
MANY = pd.DataFrame({"town": [f"town {number}" for number in range(6)]})
SOLVED = pd.DataFrame({"town": ["Beja", "Sines"], "note": ["hot", "a port"]})


class Kind(BaseModel):
    coast: bool


def _words(text):
    return SOLVED.assign(Answer=text)


CALLS = {
    "filter": (
        lambda **more: tf.sem_filter(TOWNS, "{town} is by the sea", **more),
        SOLVED.assign(Answer=[False, True]),
    ),
    "filter packs": (
        lambda **more: tf.sem_filter(MANY, "{town} is by the sea", rows_per_call=2, **more),
        SOLVED.assign(Answer=[False, True]),
    ),
    "map": (lambda **more: tf.sem_map(TOWNS, "A word for {note}", **more), _words("fine")),
    "map model": (
        lambda **more: tf.sem_map(TOWNS, "Kind of {note}", response_format=Kind, **more),
        SOLVED.assign(Answer=[{"coast": False}, Kind(coast=True)]),
    ),
    "score": (lambda **more: tf.sem_score(TOWNS, "How warm is {note}?", **more), SOLVED.assign(Answer=[0.9, 0.4])),
    "extract": (
        lambda **more: tf.sem_extract(TOWNS, ["note"], {"water": "what water", "sea": bool}, **more),
        SOLVED.assign(Answer=[{"water": None, "sea": None}, {"water": "a port", "sea": True}]),
    ),
    "topk": (lambda **more: tf.sem_topk(TOWNS, "{town} is largest", 2, **more), SOLVED.assign(Answer=[2, 1])),
    "search": (
        lambda **more: tf.sem_search(TOWNS, "town", "a port", 3, 1, **more),
        SOLVED.assign(Answer=[2.0, 1.0]),
    ),
    "agg": (lambda **more: tf.sem_agg(TOWNS, "Sum up {note}", **more), _words("Hot, and a port.")),
    "agg model": (
        lambda **more: tf.sem_agg(TOWNS, "Is any {note} a coast?", response_format=Kind, **more),
        SOLVED.assign(Answer=['{"coast": true}', '{"coast": false}']),
    ),
    "join": (
        lambda **more: tf.sem_join(TOWNS[["town"]], TOWNS[["note"]], "{town} is {note}", plan="pairs", **more),
        SOLVED.assign(Answer=[True, False]),
    ),
    "dedup": (
        lambda **more: tf.sem_dedup(TOWNS, "town", 0.5, border=0.5, rows_per_call=1, **more),
        pd.DataFrame({"one": ["Faro", "Beja"], "other": ["FARO", "Sines"], "Answer": [True, False]}),
    ),
}


SAID = {"filter": ["False", "True"], "score": ["0.9", "0.4"], "join": ["True", "False"], "dedup": ["True", "False"]}
"""How solved cases are answered, by some operators."""


def _answer(message):
    """An answer of the form that the last line asks for."""
    if "best first" in message:
        return "1 > 2 > 3"
    if "JSON" in message:
        keys = {"water": None, "sea": None} if "water" in message else {"coast": True}
        return json.dumps(keys)
    if "for each row, in order" in message:
        return "1: True\n2: True" if "\n2 " in message else "1: True"
    return "True" if "True or False" in message else "0.5"


def _prompts(name, **more):
    lm = Scripted(_answer)
    CALLS[name][0](lm=lm, on_error="keep", **more)
    return [[(message.role, str(message.content)) for message in prompt.messages] for prompt in lm.prompts]


@pytest.mark.parametrize("name", CALLS)
def test_examples_are_in_the_shared_part_and_change_nothing_else(name):
    plain, shown = _prompts(name), _prompts(name, examples=CALLS[name][1])
    assert len(plain) == len(shown) > 0
    for before, after in zip(plain, shown, strict=True):
        assert before[-1] == after[-1]
        told = "".join(text for _, text in after[:-1])
        if name == "filter packs":  # packs have them in their system message
            assert "Rows that were answered before" in told
            assert len(before) == len(after)
        else:
            assert before == [after[0], after[-1]]
            assert [role for role, _ in after[1:-1]] == ["user", "assistant"] * ((len(after) - 2) // 2) != []
            assert [text for _, text in after[2:-1:2]] == SAID.get(name, [text for _, text in after[2:-1:2]])
    assert len({tuple(one[:-1]) for one in shown}) == len({tuple(one[:-1]) for one in plain})


def test_a_solved_ranking_is_in_the_order_of_places_and_asks_as_a_list_does():
    examples = pd.DataFrame({"town": ["Beja", "Lisbon", "Sines"], "Answer": [2, 1, 3]})
    lm = Scripted(_answer)
    tf.sem_topk(TOWNS, "{town} is largest", 3, examples=examples, lm=lm)
    _, asked, said, last = (str(message.content) for message in lm.prompts[0].messages)
    assert said == "2 > 1 > 3"
    assert '[2] {"town": "Lisbon"}' in asked
    assert asked.splitlines()[-1] == last.splitlines()[-1]


def test_rows_with_one_answer_are_one_solved_request_and_its_sources_are_all():
    lm = Scripted(lambda message: "Some are.\nSources: 1")
    examples = pd.DataFrame({"note": ["cold", "wet", "dry"], "Answer": ["Bad.", "Bad.", "Good."]})
    tf.sem_agg(TOWNS, "Sum up {note}", examples=examples, lm=lm)
    told = [str(message.content) for message in lm.prompts[0].messages]
    assert told[2::2] == ["Bad.\nSources: all", "Good.\nSources: all"]
    assert '[1] {"note": "cold"}\n[2] {"note": "wet"}\n</rows>' in told[1]


def test_the_rows_of_a_prompt_leave_room_for_examples():
    texts = pd.DataFrame({"text": [f"{number} " + "word " * 120 for number in range(12)]})
    solved = texts.head(4).assign(Answer=range(1, 5))
    lm = Scripted(lambda message: " > ".join(map(str, range(1, message.count("[") + 1))))
    lm.context_window = 5_000  # three quarters are for the prompt, of two bytes a token
    tf.sem_topk(texts, "{text} is longest", 1, examples=solved, lm=lm, on_error="keep")
    sizes = [sum(len(str(message.content)) for message in prompt.messages) for prompt in lm.prompts]
    assert 5_000 < max(sizes) <= 7_500


@pytest.mark.parametrize(
    ("name", "examples", "error", "message"),
    [
        ("filter", SOLVED, ColumnNotFound, "no column 'Answer'"),
        ("join", SOLVED[["town"]].assign(Answer=True), ColumnNotFound, "the examples have no column 'note'"),
        ("score", SOLVED.assign(Answer=[7, 0.5]), InvalidArgument, "an example's 'Answer' is not a valid answer"),
        ("filter", [("Beja", True)], InvalidArgument, "examples must be a frame"),
        ("join", {"town": ["Beja"]}, InvalidArgument, "examples must be a frame"),
        ("extract", SOLVED.assign(Answer=[{"water": "a"}] * 2), InvalidArgument, "keys"),
        ("topk", SOLVED.assign(Answer=[1, 1]), InvalidArgument, "the place of each"),
        ("topk", SOLVED.assign(Answer=[0, 1]), InvalidArgument, "the place of each"),
        ("topk", SOLVED.head(1).assign(Answer=1), InvalidArgument, "the place of each"),
        ("agg model", SOLVED.assign(Answer="yes"), InvalidArgument, "not a valid answer"),
        ("agg", SOLVED.assign(Answer=["fine", None]), InvalidArgument, "has nulls"),
        ("dedup", SOLVED.assign(Answer=True), ColumnNotFound, "no column 'one'"),
    ],
)
def test_bad_examples_are_refused_before_anything_is_asked(name, examples, error, message):
    lm = Scripted(_answer)
    with pytest.raises(error, match=message):
        CALLS[name][0](lm=lm, examples=examples)
    assert not lm.prompts


def test_examples_are_refused_where_no_model_is_asked():
    ranked = SOLVED.assign(Answer=[2, 1])
    with pytest.raises(InvalidArgument, match="n_rerank= is not given"):
        tf.sem_search(TOWNS, "town", "a port", 2, examples=ranked)
    with pytest.raises(InvalidArgument, match="border=0"):
        tf.sem_dedup(TOWNS, "town", examples=CALLS["dedup"][1])

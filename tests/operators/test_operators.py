"""Every form of an operator, held to its declaration."""

from __future__ import annotations

import asyncio
import inspect
import pickle
import pydoc
from collections.abc import Callable

import pandas as pd
import pytest

import tagframe as tf
from tagframe.accessor import TagAccessor
from tagframe.accessor.operator_methods import FUNCTIONS
from tagframe.errors import InvalidArgument, NameUnknown, NotConfigured
from tagframe.lm import LM, Quote
from tagframe.operators import OPERATORS, Operator
from tagframe.operators.operator import ADDED

RECORDS = pytest.mark.parametrize("record", list(OPERATORS.values()), ids=list(OPERATORS))


def keywords(function: Callable[..., object], without: set[str]) -> dict[str, tuple[object, ...]]:
    """What a function takes beside the frame: kind, default and annotation by name."""
    return {
        name: (parameter.kind, parameter.default, parameter.annotation)
        for name, parameter in inspect.signature(function).parameters.items()
        if name not in without
    }


@RECORDS
def test_every_form_of_an_operator_takes_the_same(record: Operator):
    takes = keywords(record.steps, {"frame", "window"})
    assert takes, record.name
    functions = (getattr(tf, record.name), getattr(tf, f"a{record.name}"))
    method = getattr(TagAccessor, record.name)
    for form in (*functions, method):
        assert keywords(form, {"frame", "self", "settings", *ADDED}) == takes, form
        assert inspect.signature(form).parameters["settings"].kind is inspect.Parameter.VAR_KEYWORD
        assert "quote" in inspect.signature(form).parameters
        assert ({"to", "if_exists"} <= {*inspect.signature(form).parameters}) == (form in functions)
        text = pydoc.render_doc(form, renderer=pydoc.plaintext)
        for name in inspect.signature(form).parameters:
            assert f"    {name}: " in text or f"    **{name}: " in text or name == "self", (form, name)
        assert ("    frame: " in text) == (form in functions)
    assert inspect.iscoroutinefunction(getattr(tf, f"a{record.name}"))
    assert pickle.loads(pickle.dumps(getattr(tf, record.name))) is getattr(tf, record.name)


def test_nothing_is_an_operator_that_is_not_declared():
    for accessor in (TagAccessor, pd.DataFrame({"a": [1]}).tag):
        assert {name for name in dir(accessor) if name.startswith("sem_")} == {
            *OPERATORS,
            *(name for name in FUNCTIONS if name.startswith("sem_")),
        }
    assert {name for name in tf.__all__ if name.startswith("sem_")} == set(OPERATORS)
    assert {name for name in tf.__all__ if name.startswith("asem_")} == {f"a{name}" for name in OPERATORS}


def test_methods_of_other_rooms_have_their_docstrings_too():
    tag = pd.DataFrame({"a": [1]}).tag
    for name in (*FUNCTIONS, "retrieve_tables"):
        text = pydoc.render_doc(getattr(tag, name), renderer=pydoc.plaintext)
        for argument in inspect.signature(getattr(tag, name)).parameters:
            assert f"{argument}: " in text, (name, argument)


def test_an_unknown_name_suggests_the_nearest():
    frame = pd.DataFrame({"n": [1]})
    assert not hasattr(tf, "sem_filtr")
    with pytest.raises(NameUnknown, match="did you mean 'sem_filter'"):
        _ = frame.tag.sem_filtr


@RECORDS
def test_a_keyword_that_is_none_is_named(record: Operator):
    frame = pd.DataFrame({"text": ["a"]})
    arguments = ARGUMENTS.get(record.name, ("judge {text}",))
    with pytest.raises(InvalidArgument, match=rf"{record.name} has no keyword 'sufix' .*did you mean"):
        getattr(tf, record.name)(frame, *arguments, sufix="_a")
    with pytest.raises(InvalidArgument, match=rf"{record.name} has no keyword 'sufix'"):
        getattr(tf, record.name)(iter([frame]), *arguments, sufix="_a")
    with pytest.raises(InvalidArgument, match=r"has no keyword 'concurency' .*did you mean 'concurrency'"):
        asyncio.run(getattr(tf, f"a{record.name}")(frame, *arguments, concurency=3))
    with pytest.raises(TypeError, match=rf"{record.name}: missing a required argument"):
        getattr(tf, record.name)(frame)
    with pytest.raises(InvalidArgument, match=rf"{record.name} takes a frame or batches; got a Series"):
        getattr(tf, record.name)(frame["text"], *arguments)


@RECORDS
def test_each_is_asked_of_the_model_that_lm_for_names(record: Operator, monkeypatch: pytest.MonkeyPatch):
    """And its quote prices the same."""
    frame = pd.DataFrame({"text": ["a", "b", "c"]})
    arguments = ARGUMENTS.get(record.name, ("judge {text}",))
    seen: list[str] = []

    def stream(self: LM, description: str = "") -> object:
        seen.append(self.model)
        raise NotConfigured("far enough")

    asks = record.asks(record.arguments(frame, *arguments))
    monkeypatch.setattr(LM, "stream", stream)
    with tf.context(lm="openai/all", api_base="http://127.0.0.1:9/v1", lm_for={record.name: "openai/own"}, store=None):
        for call in (
            lambda: getattr(tf, record.name)(frame, *arguments),
            lambda: asyncio.run(getattr(tf, f"a{record.name}")(frame, *arguments)),
            lambda: getattr(frame.tag, record.name)(*arguments),
        ):
            if asks:
                with pytest.raises(NotConfigured, match="far enough"):
                    call()
            else:
                call()
        monkeypatch.undo()
        priced = getattr(tf, record.name)(frame, *arguments, quote=True)
    assert seen == ["openai/own"] * 3 * asks
    assert isinstance(priced, Quote)


OTHER = pd.DataFrame({"other": ["a", "b"]})
ARGUMENTS = {
    "sem_topk": ("judge {text}", 3),
    "sem_extract": ("text", {"mood": None}),
    "sem_dedup": ("text", 0.9),
    "sem_join": (OTHER, "{text} is {other}"),
    "sem_search": ("text", "a row", 10, 3),
    "sem_sim_join": (OTHER, "text", "other", 1),
}


@RECORDS
def test_its_guess_carries_a_quote_to_the_end(record: Operator, live):
    frame = pd.DataFrame({"text": [f"row {i}" for i in range(30)]})
    arguments = ARGUMENTS.get(record.name, ("judge {text}",))
    quote = getattr(frame.tag, record.name)(*arguments, quote=True)
    assert getattr(tf, record.name)(frame, *arguments, quote=True) == quote
    assert asyncio.run(getattr(tf, f"a{record.name}")(frame, *arguments, quote=True)) == quote
    assert quote.whole
    assert (0 < quote.calls <= quote.calls_at_most) or record.name in ("sem_sim_join", "sem_dedup")
    assert live.requests == []

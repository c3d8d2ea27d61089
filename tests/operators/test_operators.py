"""Every place that lists the operators, held to their records."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pandas as pd
import pytest

import tagframe as tf
from tagframe.accessor import QuoteAccessor, TagAccessor
from tagframe.operators import OPERATORS, Operator

RECORDS = pytest.mark.parametrize("record", OPERATORS.values(), ids=list(OPERATORS))


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
    for function in (
        getattr(tf, record.name),
        getattr(tf, f"a{record.name}"),
        getattr(TagAccessor, record.name),
        getattr(QuoteAccessor, record.name),
    ):
        assert keywords(function, {"frame", "self", "settings"}) == takes, function
        assert inspect.signature(function).parameters["settings"].kind is inspect.Parameter.VAR_KEYWORD
        assert function.__doc__
    assert inspect.iscoroutinefunction(getattr(tf, f"a{record.name}"))
    assert ("window" in inspect.signature(record.steps).parameters) == record.fits_window
    assert ("K" in takes) == record.takes_k


def test_nothing_is_an_operator_that_has_no_record():
    for place in (TagAccessor, QuoteAccessor):
        assert {name for name in dir(place) if name.startswith("sem_")} == set(OPERATORS)
    assert {name for name in tf.__all__ if name.startswith("sem_")} == set(OPERATORS)
    assert {name for name in tf.__all__ if name.startswith("asem_")} == {f"a{name}" for name in OPERATORS}


@RECORDS
def test_its_guess_carries_a_quote_to_the_end(record: Operator, live):
    frame = pd.DataFrame({"text": [f"row {i}" for i in range(30)]})
    options = {"K": 3} if record.takes_k else {}
    arguments = {"sem_join": (pd.DataFrame({"other": ["a", "b"]}), "{text} is {other}")}
    quote = getattr(frame.tag.quote, record.name)(*arguments.get(record.name, ("judge {text}",)), **options)
    assert quote.whole
    assert 0 < quote.calls <= quote.calls_at_most
    assert live.requests == []

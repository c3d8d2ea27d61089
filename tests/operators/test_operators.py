"""Every place that lists the operators, held to their records."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pandas as pd
import pytest

import tagframe as tf
from tagframe.accessor import QuoteAccessor, TagAccessor
from tagframe.lotus import FROM_LOTUS
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


def test_nothing_is_an_operator_that_has_no_record():
    assert {name for name in dir(TagAccessor) if name.startswith("sem_")} == {*OPERATORS, *FROM_LOTUS}
    assert {name for name in dir(QuoteAccessor) if name.startswith("sem_")} == set(OPERATORS)
    assert {name for name in tf.__all__ if name.startswith("sem_")} == set(OPERATORS)
    assert {name for name in tf.__all__ if name.startswith("asem_")} == {f"a{name}" for name in OPERATORS}


OTHER = pd.DataFrame({"other": ["a", "b"]})
ARGUMENTS = {
    "sem_topk": ("judge {text}", 3),
    "sem_extract": ("text", {"mood": None}),
    "sem_join": (OTHER, "{text} is {other}"),
    "sem_search": ("text", "a row", 10, 3),
    "sem_sim_join": (OTHER, "text", "other", 1),
}


@RECORDS
def test_its_guess_carries_a_quote_to_the_end(record: Operator, live):
    frame = pd.DataFrame({"text": [f"row {i}" for i in range(30)]})
    quote = getattr(frame.tag.quote, record.name)(*ARGUMENTS.get(record.name, ("judge {text}",)))
    assert quote.whole
    assert (0 < quote.calls <= quote.calls_at_most) or record.name == "sem_sim_join"
    assert live.requests == []

"""Every keyword of LOTUS's operators is known to ``df.tag``: as ours, by another name, or refused with the way out."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import pandas as pd
import pytest

from tagframe.accessor import TagAccessor
from tagframe.accessor.operator_methods import INSTEAD, RENAMED
from tagframe.errors import InvalidArgument
from tagframe.operators import OPERATORS


@pytest.fixture
def lotus_signatures(monkeypatch: pytest.MonkeyPatch) -> dict[str, inspect.Signature]:
    """By operator: what LOTUS's accessor of that name is called with."""
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # or its import asks the network for prices
    pytest.importorskip("lotus", reason="needs the extra lotus")
    package = importlib.import_module("lotus.sem_ops")
    found = {}
    for info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"lotus.sem_ops.{info.name}")
        for value in vars(module).values():
            if inspect.isclass(value) and value.__module__ == module.__name__ and "__call__" in vars(value):
                found[info.name] = inspect.signature(value.__call__)
    return found


def test_each_keyword_of_lotus_is_known(lotus_signatures):
    walked = 0
    for name, signature in lotus_signatures.items():
        if name not in OPERATORS:
            continue
        ours = inspect.signature(getattr(TagAccessor, name)).parameters
        for keyword, parameter in signature.parameters.items():
            if keyword != "self" and parameter.kind is not parameter.VAR_KEYWORD:
                walked += 1
                known = keyword in ours or RENAMED.get(keyword) in ours or keyword in INSTEAD
                assert known, f"{name}({keyword}=) of LOTUS"
    assert walked > 40


@pytest.mark.parametrize("keyword", sorted({*INSTEAD} - {"return_explanations"}))
def test_what_is_refused_says_what_does_its_work(keyword):
    frame = pd.DataFrame({"text": ["a"]})
    with pytest.raises(InvalidArgument, match=rf"LOTUS's {keyword}= of sem_filter is not supported: .{{10}}"):
        frame.tag.sem_filter("{text}", **{keyword: "something"})


def test_a_filter_of_lotus_runs_with_its_keywords(live):
    live.answers = "True"
    frame = pd.DataFrame({"text": ["a", "b"]})
    result = frame.tag.sem_filter(user_instruction="{text} is kind", strategy=None, safe_mode=False, return_stats=False)
    assert len(result) == 2
    with pytest.raises(InvalidArgument, match="default="):
        frame.tag.sem_filter("{text} is kind", default=False)


def test_other_names_are_refused_as_before(live):
    with pytest.raises(InvalidArgument, match="retrun_all"):
        pd.DataFrame({"text": ["a"]}).tag.sem_filter("{text}", retrun_all=True)


def test_signatures_stay_those_of_the_operators():
    for name in OPERATORS:
        assert "self" in inspect.signature(getattr(TagAccessor, name)).parameters
        assert getattr(TagAccessor, name).__name__ == name

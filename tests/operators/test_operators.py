"""Every form of an operator, held to its declaration."""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import pickle
import pydoc
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pytest

import tagframe as tf
from tagframe import config
from tagframe.accessor import QuoteAccessor, TagAccessor
from tagframe.accessor.operator_methods import FUNCTIONS
from tagframe.errors import InvalidArgument, NameUnknown, NotConfigured
from tagframe.lm import LM, Quote
from tagframe.operators import OPERATORS, Operator
from tagframe.operators.operator import ADDED

RECORDS = pytest.mark.parametrize("record", list(OPERATORS.values()), ids=list(OPERATORS))
ROOT = Path(tf.__file__).parents[1]


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
    for form in (*functions, method, getattr(QuoteAccessor, record.name)):
        assert keywords(form, {"frame", "self", "settings", *ADDED}) == takes, form
        assert inspect.signature(form).parameters["settings"].kind is inspect.Parameter.VAR_KEYWORD
        assert ("quote" in inspect.signature(form).parameters) == (form in (*functions, method))
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
    assert {name for name in dir(QuoteAccessor) if name.startswith("sem_")} == set(OPERATORS)
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
    with pytest.raises(NameUnknown, match="did you mean 'sem_filter'"):
        _ = frame.tag.quote.sem_filtr
    with pytest.raises(InvalidArgument, match="'sem_filter', which takes a list"):
        config.checked({"lm_for": {"sem_filters": "openai/own"}})


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


TOY = '''
"""``sem_shout``: each row, louder."""

from __future__ import annotations

import pandas as pd

from tagframe.operators import OnError, Step, declare
from tagframe.operators.cells import Instruction
from tagframe.operators.map import MapOptions, mapped
from tagframe.operators.values import value_of_dtype


@declare(guess=lambda prompt: "LOUD")
def sem_shout(
    frame: pd.DataFrame,
    instruction: str,
    *,
    suffix: str = "_shout",
    on_error: OnError = "raise",
    window: int | None = None,
) -> Step[pd.DataFrame]:
    """Each row, louder.

    Args:
        frame: any.
        instruction: what of it, with columns in braces.
        suffix: the name of the column.
        on_error: what a row without an answer does.

    Returns:
        The frame with the column ``_shout``.
    """
    said = Instruction.resolve(instruction, frame)
    options = MapOptions(suffix, on_error=on_error, window=window)
    return (yield from mapped("sem_shout", frame, said, value_of_dtype(None), "Shout.", options))
'''


def loaded(name: str, path: Path) -> object:
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def shout(tmp_path: Path) -> Iterator[None]:
    """An operator that stands in one file."""
    (tmp_path / "shout_for_a_test.py").write_text(TOY, encoding="utf-8")
    loaded("shout_for_a_test", tmp_path / "shout_for_a_test.py")
    yield
    del OPERATORS["sem_shout"], sys.modules["shout_for_a_test"]


def test_an_operator_in_one_file_has_all_forms(shout: None, live):
    live.answers = lambda request: request.prompt.split('"')[3].upper()
    frame = pd.DataFrame({"text": ["sea", "sky", "tide"]})
    loud = ["SEA", "SKY", "TIDE"]
    assert tf.sem_shout(frame, "Shout {text}")["_shout"].tolist() == loud
    assert asyncio.run(tf.asem_shout(frame, "Shout {text}"))["_shout"].tolist() == loud
    assert frame.tag.sem_shout("Shout {text}", suffix="_loud")["_loud"].tolist() == loud
    assert [one["_shout"].tolist() for one in tf.sem_shout([frame, frame.head(1)], "Shout {text}")] == [loud, loud[:1]]
    sent = len(live.requests)
    assert frame.tag.sem_shout("Whisper {text}", quote=True).calls == 3
    assert frame.tag.quote.sem_shout("Whisper {text}").calls == 3
    assert len(live.requests) == sent
    assert "sem_shout" in dir(TagAccessor)
    assert "Each row, louder." in pydoc.render_doc(frame.tag.sem_shout, renderer=pydoc.plaintext)
    stub = loaded("write_stubs", ROOT / "tools" / "write_stubs.py")
    for text in (stub.functions(), stub.methods()):
        assert "def sem_shout(" in text
    assert "import asem_shout as asem_shout" in stub.public_names()


def test_declared_again_it_takes_the_place_of_the_first(shout: None):
    frame = pd.DataFrame({"text": ["sea"]})
    assert list(inspect.signature(frame.tag.sem_shout).parameters)[1] == "suffix"
    again = TOY.replace("suffix: str", "times: int = 2,\n    suffix: str").replace("Each row, louder", "Each row twice")
    exec(again, {"__name__": "shout_for_a_test"})
    for form in (tf.sem_shout, tf.asem_shout, frame.tag.sem_shout, TagAccessor.sem_shout, frame.tag.quote.sem_shout):
        assert "times" in inspect.signature(form).parameters
        assert "Each row twice" in form.__doc__
    assert "sem_shout" in pydoc.render_doc(TagAccessor, renderer=pydoc.plaintext)


@pytest.mark.parametrize(
    ("was", "becomes"),
    [("sem_shout", "shout"), ("    Args:", "    What:"), ("suffix:", "to:"), ("suffix:", "quote:"), ("suffix:", "lm:")],
)
def test_what_is_no_declaration_is_refused(was: str, becomes: str):
    with pytest.raises(InvalidArgument, match="an operator is a function sem_NAME"):
        exec(TOY.replace(was, becomes), {"__name__": "shout_for_a_test"})
    assert "sem_shout" not in OPERATORS


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_and_over_partitions(shout: None, live):
    dd = pytest.importorskip("dask.dataframe")
    import tagframe.dask

    assert tagframe.dask.TagAccessor
    live.answers = lambda request: request.prompt.split('"')[3].upper()
    lazy = dd.from_pandas(pd.DataFrame({"text": ["sea", "sky", "sea"]}), npartitions=2).tag.sem_shout("Shout {text}")
    assert lazy.compute(scheduler="synchronous")["_shout"].tolist() == ["SEA", "SKY", "SEA"]
    assert len(live.requests) == 2


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
    quote = getattr(frame.tag.quote, record.name)(*arguments)
    assert getattr(frame.tag, record.name)(*arguments, quote=True) == quote
    assert getattr(tf, record.name)(frame, *arguments, quote=True) == quote
    assert asyncio.run(getattr(tf, f"a{record.name}")(frame, *arguments, quote=True)) == quote
    assert quote.whole
    assert (0 < quote.calls <= quote.calls_at_most) or record.name in ("sem_sim_join", "sem_dedup")
    assert live.requests == []

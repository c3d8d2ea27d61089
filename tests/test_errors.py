from __future__ import annotations

import inspect
import pickle

import pandas as pd
import pytest

from tagframe import errors
from tagframe.errors import TagframeError, did_you_mean


def test_every_error_is_a_tagframe_error():
    classes = [cls for _, cls in inspect.getmembers(errors, inspect.isclass) if issubclass(cls, Exception)]
    assert len(classes) > 15
    assert all(issubclass(cls, TagframeError | UserWarning) for cls in classes)
    assert all(cls.__name__.endswith("Warning") == issubclass(cls, UserWarning) for cls in classes)


def test_a_key_error_reads_as_a_sentence():
    assert str(errors.TableNotFound("no table 'x'")) == "no table 'x'"
    with pytest.raises(KeyError):
        raise errors.TableNotFound("no table 'x'")


def test_did_you_mean_ignores_case_and_shortens():
    assert did_you_mean("TITLE", ["Title", "year"]).endswith("did you mean 'Title'?")
    assert did_you_mean("zzz", ["title"]) == "{'title'}"
    assert "… 30 more" in did_you_mean("zzz", [f"column {i}" for i in range(50)])
    assert did_you_mean("a", []) == "{}"


ERRORS = [cls for _, cls in inspect.getmembers(errors, inspect.isclass) if issubclass(cls, TagframeError)]


def made(kind: type[TagframeError]) -> TagframeError:
    """One of a kind, with all that it can carry."""
    frame = pd.DataFrame({"a": [1, 2]})
    if issubclass(kind, errors.FanOut | errors.RowsLost):
        return kind("the fact", frame)
    if issubclass(kind, errors.AmbiguousJoin):
        return kind("the fact", [])
    if issubclass(kind, errors.RowsFailed):
        return kind("the fact", frame, [errors.RateLimited("slow down", 429, 3.0)])
    if issubclass(kind, errors.LMRequestFailed):
        return kind("the fact", 503, 2.5)
    return kind("the fact")


@pytest.mark.parametrize("kind", ERRORS)
def test_an_error_comes_out_of_a_worker_process_as_it_was(kind: type[TagframeError]):
    error = made(kind)
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is kind
    assert str(back) == str(error) == "the fact"
    assert vars(back).keys() == vars(error).keys()
    if isinstance(error, errors.RowsFailed):
        assert back.frame.equals(error.frame)
        assert [(type(e), e.status, e.retry_after) for e in back.failures] == [(errors.RateLimited, 429, 3.0)]
    if isinstance(error, errors.LMRequestFailed):
        assert (back.status, back.retry_after) == (503, 2.5)

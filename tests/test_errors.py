from __future__ import annotations

import inspect

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

"""A bar that cannot be drawn ends no call."""

import warnings

import pytest

from tagframe import progress
from tagframe.errors import ReportWarning
from tagframe.progress import RowsBar


@pytest.mark.parametrize("broken", ["refresh", "update", "close"])
def test_a_bar_that_fails_is_not_drawn_any_more_and_that_is_said_once(monkeypatch, broken):
    class Drawn:
        total, postfix, colour, n = 3, "", None, 0

        def __getattr__(self, name):
            def draw(*given, **options):
                if name == broken:
                    raise OSError("the terminal is gone")

            return draw

    monkeypatch.setattr(progress, "new_bar", lambda *given: Drawn())
    bar = RowsBar("sem_map", True)
    bar.grow(3)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        bar.grow(2)
        bar.update(1, 0.5)
        bar.close(failed=1)
        bar.close()
    (one,) = said
    assert issubclass(one.category, ReportWarning)
    assert "not drawn any more: OSError: the terminal is gone" in str(one.message)

"""The bar of long work that nobody asked for."""

from __future__ import annotations

import io
import sys
import threading

import pytest

import tagframe as tf
from tagframe.embed import MiniLM, packaged_folder
from tagframe.progress import Stopped, Stopping, reporting_to, track, waiting


class Terminal(io.StringIO):
    """Standard error of somebody who looks at it."""

    def __init__(self) -> None:
        super().__init__()
        self.drawn = threading.Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if text.strip():
            self.drawn.set()
        return super().write(text)


@pytest.fixture
def terminal(monkeypatch):
    """Puts one in place; within the test, since pytest puts its own there before."""

    def begin(patience: float = 0.01) -> Terminal:
        seen = Terminal()
        monkeypatch.setattr("tagframe.progress.PATIENCE", patience)
        monkeypatch.setattr(sys, "stderr", seen)
        return seen

    return begin


def test_it_comes_up_before_the_first_unit_is_done(terminal):
    terminal = terminal()

    def work():
        assert terminal.drawn.wait(60)
        yield 1, "a table"

    assert list(track(work(), 1, "profiling", "table")) == ["a table"]
    assert "profiling:   0%|" in terminal.getvalue()
    assert "1/1" in terminal.getvalue()


def test_it_says_what_it_waits_for_and_goes(terminal):
    terminal = terminal()
    with waiting("loading the encoder"):
        assert terminal.drawn.wait(60)
    assert "loading the encoder …" in terminal.getvalue()
    assert terminal.getvalue().split("\r")[-2].strip() == ""


def test_it_does_not_come_up_where_work_is_short(terminal):
    terminal = terminal(patience=600)
    with waiting("nothing much"):
        pass
    with tf.context(progress=False), waiting("nothing at all"):
        pass
    assert terminal.getvalue() == ""


def test_an_error_in_the_block_is_the_callers(terminal):
    terminal()
    with pytest.raises(ZeroDivisionError), waiting("loading"):
        _ = 1 / 0


@pytest.mark.skipif(packaged_folder() is None, reason="the packaged model is not installed")
def test_the_encoder_is_waited_for(terminal):
    terminal = terminal()
    with tf.context(progress=True):
        MiniLM(packaged_folder()).load()
    assert "loading the encoder" in terminal.getvalue()


def test_work_in_python_stops_at_its_next_unit():
    stopping, units = Stopping(), []

    def work():
        for number in range(1_000):
            if number == 3:
                stopping.stop()  # as another thread does, for a client that cancelled
            yield 1, number

    with reporting_to(lambda message: stopping.check()), pytest.raises(Stopped):
        units.extend(track(work(), 1_000, "reading", "table", progress=False))
    assert len(units) <= 3

"""Instructions (LOTUS calls them langex): natural language that names columns in braces."""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass

import pandas as pd

from tagframe.errors import ColumnNotFound, InvalidArgument, did_you_mean
from tagframe.operators.cells import one_line

# A doubled brace stands for a brace, as in str.format; anything else between single braces is a column's name, so that
# columns such as "price[usd]", "a.b" or "first name" can be named.
_TOKEN = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")


def _spoken(token: re.Match[str]) -> str:
    if token.group(1) is None:
        return token.group(0)[0]
    return one_line(token.group(1)) or token.group(0)  # {} names nothing, and stays


@dataclass(frozen=True)
class Instruction:
    """An instruction, resolved against the columns of a frame.

    Attributes:
        text: as it reads in a prompt: the braces are gone, the columns' names stand as they are.
        columns: labels of the columns that the model is shown: those named, in the order of naming; all of the
            frame's where none is named.
        positions: their places in the frame.
    """

    text: str
    columns: tuple[Hashable, ...]
    positions: tuple[int, ...]

    @classmethod
    def resolve(cls, text: str, frame: pd.DataFrame) -> Instruction:
        """Find the columns that ``text`` names.

        Raises:
            InvalidArgument: no words, no columns to show, or a named column that the frame has twice.
            ColumnNotFound: a name that is no column.
        """
        if not isinstance(text, str) or not text.strip():
            raise InvalidArgument(f"the instruction has no words: {text!r}; say what to do, with columns in braces")
        labels = [str(label) for label in frame.columns]
        named = list(dict.fromkeys(name for name in _TOKEN.findall(text) if name))
        if not labels:
            raise InvalidArgument("the frame has no columns, so there is nothing to show to the model")
        positions = []
        for name in named:
            places = [place for place, label in enumerate(labels) if label == name]
            if not places:
                raise ColumnNotFound(f"no column {name!r} in {did_you_mean(name, labels)}")
            if len(places) > 1:
                raise InvalidArgument(
                    f"{len(places)} columns are called {name!r}; rename them so that one can be meant"
                )
            positions.append(places[0])
        positions = positions or list(range(len(labels)))
        spoken = _TOKEN.sub(_spoken, text)
        return cls(spoken.strip(), tuple(frame.columns[place] for place in positions), tuple(positions))

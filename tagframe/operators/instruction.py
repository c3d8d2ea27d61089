"""Instructions (LOTUS calls them langex): natural language that names columns in braces."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass

import pandas as pd

from tagframe import results
from tagframe.errors import AllColumnsWarning, ColumnNotFound, InvalidArgument, did_you_mean, warn
from tagframe.operators.cells import label_text, not_private, one_line, prompt_names, refuse_private

FIELD_RULE = "A name in braces, as {title}, is the row's field."
"""The sentence that tells a model how to read an instruction; "a driver of {nationality} nationality" stays whole."""

_MAX_DESCRIPTION_LETTERS = 200
"""The most characters of a column's description."""

# A name in braces may have any character except a brace, so that columns such as "price[usd]", "a.b" or "first name"
# can be named. A brace within a name is doubled, like a plain brace.
_BRACE = re.compile(r"[{}]")
_NAME = re.compile(r"\{([^{}]*)\}")
_ID = re.compile(r"(?:(?:^|[^A-Za-z])(?:row)?(?i:id|uuid|guid)|[a-z0-9](?:Id|ID|UUID|GUID)|^Unnamed: \d+)$")
"""A column that identifies rows, by its name: it says nothing about them to a model, and makes equal rows differ."""
columns_known: ContextVar[bool] = ContextVar("tagframe columns known", default=False)
"""Whether the user knows already that an instruction names no column: partitions resolve it again."""
_NAME_WITH_BRACES = re.compile(r"\{((?:[^{}]|\{\{|\}\})*)\}")


@dataclass(frozen=True)
class Instruction:
    """An instruction, resolved against the columns of a frame.

    Attributes:
        text: the text in a prompt, next to :data:`FIELD_RULE`: the user's text, with the names in braces that the
            columns have in the prompt (:func:`~tagframe.operators.cells.prompt_names`), and the corpus's
            descriptions of these columns.
        columns: labels of the columns that the model is shown: the named ones, in the order of naming; if none is
            named, all of the frame's columns but ids; with ``all_cols``, all.
        positions: their positions in the frame.
        names: their names in a prompt.
    """

    text: str
    columns: tuple[Hashable, ...]
    positions: tuple[int, ...]
    names: tuple[str, ...]

    @classmethod
    def resolve(cls, text: str, frame: pd.DataFrame, *, all_cols: bool = False, warns: bool = True) -> Instruction:
        """Find the columns that ``text`` names.

        Args:
            text: the user's text. ``{{`` and ``}}`` are plain braces; the braces of a JSON object are too.
            frame: the frame whose columns are named.
            all_cols: show all columns, whichever are named.
            warns: whether to warn if no column is named.

        Raises:
            InvalidArgument: there are no words or no columns to show, the frame has a named column twice, or it
                is private.
            ColumnNotFound: a name is not a column.
        """
        if not isinstance(text, str) or not text.strip():
            raise InvalidArgument(f"the instruction has no words: {text!r}; say what to do, with columns in braces")
        if not len(frame.columns):
            raise InvalidArgument("the frame has no columns, so there is nothing to show to the model")
        reader = _Reader(frame)
        reader.read(text)
        positions = tuple(not_private(frame) if all_cols or not reader.named else reader.named)
        if not all_cols and not reader.named:
            ids = [position for position in positions if _ID.search(label_text(frame.columns[position]))]
            positions = tuple(position for position in positions if position not in ids) or positions
            if warns and positions and not columns_known.get():
                warn(_unnamed(frame, positions, ids), AllColumnsWarning)
        refuse_private(frame, reader.named)
        if not positions:
            raise InvalidArgument("all columns of the frame are private, so there is nothing to show")
        names = prompt_names(frame, positions)  # fewer columns may need shorter names to be unique
        reader.names.update(zip(positions, names, strict=True))
        return cls(
            reader.read(text).strip() + described(frame, positions, names),
            tuple(frame.columns[position] for position in positions),
            positions,
            tuple(names),
        )


def _unnamed(frame: pd.DataFrame, positions: Sequence[int], ids: Sequence[int]) -> str:
    """The warning that an instruction names no column."""
    sent, left_out = (
        ", ".join(label_text(frame.columns[position]) for position in some)
        for some in (positions, set(ids) - {*positions})
    )
    without = f" but {left_out}" if left_out else ""
    return (
        f"the instruction names no column, so the model is shown all{without}: {sent:.300}. Name columns in braces, "
        f"such as {{{label_text(frame.columns[positions[0]])}}}, or give all_cols=True if the operator has it"
    )


def described(frame: pd.DataFrame, positions: Sequence[int], names: Sequence[str]) -> str:
    """The descriptions of the columns in the corpus that the frame came from, once for all rows."""
    descriptions: Mapping[str, str] = results.recall(frame, "descriptions") or {}
    notes = [
        f"{{{one_line(name)}}} is: {one_line(descriptions[label][:_MAX_DESCRIPTION_LETTERS]).replace('<', '‹')}"
        for position, name in zip(positions, names, strict=True)
        if (label := str(frame.columns[position])) in descriptions
    ]
    return f"\n({'; '.join(notes)})" if notes else ""


class _Reader:
    """Reads instructions over the columns of a frame.

    Attributes:
        names: by position, the name of each column in a prompt.
        named: positions of the columns that were named, in the order of naming.
    """

    def __init__(self, frame: pd.DataFrame) -> None:
        self._labels = [label_text(label) for label in frame.columns]
        self._positions: dict[str, list[int]] = {}
        for position, (label, text) in enumerate(zip(frame.columns, self._labels, strict=True)):
            for name in {text, str(label)}:
                self._positions.setdefault(name, []).append(position)
        self.names = dict(enumerate(self._labels))
        self.named: list[int] = []

    def read(self, text: str) -> str:
        """The text as it is written in a prompt.

        Raises:
            InvalidArgument: two columns have a name.
            ColumnNotFound: no column has a name.
        """
        parts: list[str] = []
        at = 0
        while brace := _BRACE.search(text, at):
            part, end = self._read_brace(text, brace.start())
            parts += [text[at : brace.start()], part]
            at = end
        return "".join([*parts, text[at:]])

    def _read_brace(self, text: str, start: int) -> tuple[str, int]:
        """The text in a prompt for the name or object that begins with the brace at ``start``, and its end."""
        plain = _NAME.match(text, start)
        for token in (plain, _NAME_WITH_BRACES.match(text, start)):
            if (
                token is not None
                and (position := self._position(token[1].replace("{{", "{").replace("}}", "}"))) is not None
            ):
                return f"{{{one_line(self.names[position])}}}", token.end()
        if text.startswith(("{{", "}}"), start):
            return text[start], start + 2
        if (end := _end_of_json(text, start)) is not None:
            return text[start:end], end
        if plain is not None and plain[1].strip():
            odd = "; double a brace that does not begin a name: {{" if re.search(r"[\"':,]", plain[1]) else ""
            raise ColumnNotFound(f"no column {plain[1]!r} in {did_you_mean(plain[1], self._labels)}{odd}")
        return text[start], start + 1  # {} names nothing, and stays, as does a brace without its partner

    def _position(self, name: str) -> int | None:
        positions = self._positions.get(name) or self._positions.get(name.strip(), [])
        if len(positions) > 1:
            raise InvalidArgument(
                f"{len(positions)} columns are called {name!r}; rename them so that the name is unique"
            )
        if positions and positions[0] not in self.named:
            self.named.append(positions[0])
        return positions[0] if positions else None


def _end_of_json(text: str, start: int) -> int | None:
    """The end of the JSON object that begins at ``start``; None if there is none. ``{}`` does not count."""
    try:
        value, end = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return end if value else None

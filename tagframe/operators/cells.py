"""Rows and instructions as text for a prompt: a row is one line of JSON between ``<row>`` and ``</row>``.

No cell can close this fence (:func:`tagframe.blocks.fence`), so that none acts as an instruction.
"""

from __future__ import annotations

import bisect
import json
import math
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import pandas as pd

from tagframe import results
from tagframe.blocks import without_control_tokens
from tagframe.errors import AllColumnsWarning, ColumnNotFound, InvalidArgument, did_you_mean, warn

BYTES_PER_TOKEN = 2
"""A low estimate, so that a prompt does not exceed the window: JSON and numbers have fewer than prose."""
ANSWER_ONE_IN = 4
"""One in so many tokens of the window is reserved for the answer."""
MIN_ROW_BYTES = 200
"""The fewest bytes of a row that are shown; if the model does not accept even these, the row fails."""


def position_of(frame: pd.DataFrame, label: Hashable) -> int:
    """The position of the column with this label.

    Raises:
        ColumnNotFound: there is no such column.
        InvalidArgument: there are two, or it is private.
    """
    positions = [position for position, known in enumerate(frame.columns) if known == label]
    if not positions:
        raise ColumnNotFound(f"no column {label!r} in {did_you_mean(str(label), frame.columns)}")
    if len(positions) > 1:
        raise InvalidArgument(f"{len(positions)} columns are called {label!r}; rename them so that the name is unique")
    return positions[0]


def _plain(value: Any) -> Any:
    """A cell as a value that JSON can hold."""
    if hasattr(value, "isoformat"):
        return value.isoformat().removesuffix("T00:00:00")  # a day
    if isinstance(value, bytes):
        return f"<{len(value)} bytes>"
    if hasattr(value, "tolist"):
        return value.tolist()
    return str(value)


encode = json.JSONEncoder(ensure_ascii=False, default=_plain).encode


class _Unreadable(Exception):
    """A cell is, or contains, a value of this type, whose text does not say what it is."""

    def __init__(self, kind: type) -> None:
        super().__init__(kind)
        self.kind = kind


_ADDRESS = re.compile(r"\bat 0x[0-9a-fA-F]{4,}")
_PICTURE_DTYPES = ("image",)
"""Of LOTUS's image arrays, whose cells are pictures or the names of their files."""


def _readable(value: Any) -> Any:
    """As :func:`_plain`, for rows that a model judges: two cells that differ must not look alike.

    Raises:
        _Unreadable: bytes, a picture, or an object that is shown by its address in memory.
    """
    if isinstance(value, set | frozenset):  # whose order is another in each process
        return sorted(value, key=lambda one: (type(one).__name__, str(one)))
    if isinstance(value, bytes | bytearray | memoryview) or getattr(value, "ndim", 0) > 2:
        raise _Unreadable(type(value))
    plain = _plain(value)
    if isinstance(plain, str) and _ADDRESS.search(plain):
        raise _Unreadable(type(value))
    return plain


_encode_readable = json.JSONEncoder(ensure_ascii=False, default=_readable).encode


def refuse_unreadable(column: pd.Series, cells: Iterable[Any] = ()) -> None:
    """Refuse a column that no prompt can show.

    Raises:
        InvalidArgument: it has bytes, pictures, or objects without a text of their own.
    """
    kind: type | None = None
    if str(column.dtype) in _PICTURE_DTYPES:
        kind = type(column.dtype)
    known: set[type] = set()  # types whose cells are alike in this; containers are looked into, each
    for cell in cells if kind is None else ():
        if type(cell) not in known and not isinstance(cell, _SCALARS):
            if not hasattr(cell, "__len__"):
                known.add(type(cell))
            try:
                _line({"": cell}, _encode_readable)
            except _Unreadable as unreadable:
                kind = unreadable.kind
                break
            except RecursionError:
                raise _too_deep(column) from None
    if kind is None:
        return
    way = f"decode it first, as in frame[{column.name!r}].str.decode('utf-8')"
    if not issubclass(kind, bytes):
        way = "make a column of text from it first"
    raise InvalidArgument(
        f"the column {column.name!r} has values of type {kind.__name__!r}, which a prompt cannot show: {way}, or name"
        " other columns in braces"
    )


def _too_deep(column: pd.Series) -> InvalidArgument:
    return InvalidArgument(
        f"the column {column.name!r} has a value that is nested too deep for a prompt: make a column of text from it"
        " first, or name other columns in braces"
    )


_CUT = " … (cut)"
_HALF_CHARACTER = re.compile("[\ud800-\udfff]")
"""Half of a surrogate pair, which cannot be encoded."""
_CUT_NOTE = re.compile(r"(?:([\d,]+) rows, the longest )?cut to ([\d,]+) of ([\d,]+) characters")
_SCALARS = (str, int, float, bool, type(None))


def _cells(column: pd.Series) -> list[Any]:
    """The column as Python objects; nulls of every kind become None, and infinities text (JSON has neither)."""
    nulls = column.isna().to_numpy()
    values = column.astype(object).to_list()
    cells: list[Any] = []
    for value, null in zip(values, nulls, strict=True):
        if null:
            cells.append(None)
        elif isinstance(value, float) and math.isinf(value):
            cells.append(str(value))
        else:
            cells.append(value)
    return cells


def json_cells(column: pd.Series) -> list[Any]:
    """The column as JSON values: texts, numbers, booleans, lists and objects, None for nulls.

    >>> json_cells(pd.Series([b"ab", float("inf"), None, [1]], dtype=object))
    ['<2 bytes>', 'inf', None, [1]]
    """
    cells = []
    for cell in _cells(column):
        if not isinstance(cell, _SCALARS):
            try:
                cell = json.loads(encode(cell), parse_constant=str)
            except RecursionError:
                raise _too_deep(column) from None
        cells.append(_HALF_CHARACTER.sub(_number, cell) if isinstance(cell, str) and not cell.isascii() else cell)
    return cells


def encode_rows(
    frame: pd.DataFrame,
    positions: Sequence[int],
    names: Sequence[str] | None = None,
    *,
    blanks: bool = False,
    any_type: bool = False,
) -> list[str | None]:
    """Each row's columns at ``positions`` as one line of JSON, without blank cells; None for a row without any other.

    Blank cells are nulls and, unless ``blanks`` is true, texts of white space only. Fields have the given names, or
    those of :func:`~prompt_names`.

    Args:
        frame: any.
        positions: of columns.
        names: of the fields.
        blanks: whether blank texts are shown.
        any_type: whether cells that cannot be read are shown by their type and size.

    Raises:
        InvalidArgument: a column has bytes, pictures, or objects without a text, unless ``any_type``.
    """
    refuse_private(frame, positions)
    names = prompt_names(frame, positions) if names is None else names
    for position in positions if not any_type else ():
        refuse_unreadable(frame.iloc[:, position])  # by its type, which may give no cells
    columns = [_cells(frame.iloc[:, position]) for position in positions]
    for position, column in zip(positions, columns, strict=True) if not any_type else ():
        refuse_unreadable(frame.iloc[:, position], column)
    writer = encode if any_type else _encode_readable
    lines: list[str | None] = []
    for cells in zip(*columns, strict=True):
        row = {
            name: cell
            for name, cell in zip(names, cells, strict=True)
            if cell is not None and (blanks or not isinstance(cell, str) or (cell and not cell.isspace()))
        }
        if not row:
            lines.append(None)
            continue
        line = _line(row, writer)
        lines.append(line if line.isascii() else _HALF_CHARACTER.sub(lambda half: f"\\{_number(half)}", line))
    return lines


def _number(half: re.Match[str]) -> str:
    """Half of a surrogate pair as its number: two that differ must not look alike."""
    return f"\\u{ord(half[0]):04x}"


def _line(row: Mapping[str, Any], writer: Callable[[Any], str]) -> str:
    try:
        return writer(row)
    except (TypeError, ValueError):  # a nested object with keys that JSON lacks, or one that contains itself
        return encode({name: cell if isinstance(cell, _SCALARS) else _plain(cell) for name, cell in row.items()})


def one_line(name: str) -> str:
    """A column's name for use in a sentence: characters that are not printable become spaces.

    >>> one_line("studio_id\\n\\nQuestion: none")
    'studio_id Question: none'
    """
    if not name.isprintable():
        name = " ".join("".join(letter if letter.isprintable() else " " for letter in name).split())
    return without_control_tokens(name)


def shortened(line: str, size: int) -> str:
    """A line of JSON (a row, or a text) in at most ``size`` bytes; its longest texts are cut and marked as cut.

    >>> shortened('{"id": 7, "review": "A long way from home"}', 40)
    '{"id": 7, "review": "A long  … (cut)"}'
    """
    if len(line.encode()) <= size:
        return line
    value = json.loads(line)
    cells = value if isinstance(value, dict) else {"": value}
    texts = {name: cell if isinstance(cell, _SCALARS) else encode(cell) for name, cell in cells.items()}

    def cut(longest: int) -> str:
        cut_cells = {
            name: f"{cell[:longest]}{_CUT}" if isinstance(cell, str) and len(cell) > longest + len(_CUT) else cell
            for name, cell in texts.items()
        }
        return encode(cut_cells if isinstance(value, dict) else cut_cells[""])

    lengths = range(size)
    fitting = bisect.bisect_right(lengths, size, key=lambda longest: len(cut(longest).encode()))
    if fitting:
        return cut(fitting - 1)
    beginning = line[:size]  # too many cells: the row itself is cut as a text
    while beginning and len(encode(f"{beginning}{_CUT}").encode()) > size:
        beginning = beginning[: len(beginning) // 2]
    return encode(f"{beginning}{_CUT}")


def cut_note(row: str, text: str) -> str | None:
    """The outcome's note on a row that was cut; None if it was shown in full."""
    if text == row:
        return None
    return f"cut to {len(text):,} of {len(row):,} characters, to fit the model's context"


def cut_rows(notes: Iterable[str | None]) -> tuple[int, int, int]:
    """From the notes of outcomes: how many rows were cut, and the characters shown and had by the longest.

    >>> cut_rows([cut_note("a" * 1200, "a" * 100), None, "2 rows, the longest cut to 90 of 500 characters"])
    (3, 100, 1200)
    """
    cuts = [_CUT_NOTE.search(note) for note in notes if note]
    numbers = [[int((text or "1").replace(",", "")) for text in cut.groups()] for cut in cuts if cut]
    characters, longest = max(
        ((characters, had) for _, characters, had in numbers), key=lambda one: one[1], default=(0, 0)
    )
    return sum(count for count, _, _ in numbers), characters, longest


def room(window: int | None, *texts: str) -> int | None:
    """Bytes of data that a prompt may hold; None if the model's window is not known.

    Args:
        window: tokens that the model reads and writes in one request (:attr:`tagframe.lm.LM.context_window`).
        texts: the other texts in the prompt.
    """
    if window is None:
        return None
    taken = sum(len(text.encode(errors="replace")) for text in texts)
    return max(MIN_ROW_BYTES, BYTES_PER_TOKEN * (window - window // ANSWER_ONE_IN) - taken)


def pack(sizes: Sequence[int], limit: int, *, least: int = 1, most: float = math.inf) -> list[list[int]]:
    """Positions in order, in packs whose sizes add up to at most ``limit``.

    Args:
        sizes: of the parts.
        limit: of a pack; a larger part is a pack by itself.
        least: the fewest parts of a pack (except the last one), whatever their sizes; with 2, rounds come to an end.
        most: the most parts of a pack.

    >>> pack([3, 2, 1, 4], limit=5), pack([4, 4, 4], limit=5, least=2)
    ([[0, 1], [2, 3]], [[0, 1], [2]])
    """
    packs: list[list[int]] = []
    filled = 0
    for position, size in enumerate(sizes):
        if packs and (len(packs[-1]) < least or (filled + size <= limit and len(packs[-1]) < most)):
            packs[-1].append(position)
            filled += size
        else:
            packs.append([position])
            filled = size
    return packs


# --- the names of columns in a prompt --------------------------------------------------------------------------------


def label_text(label: Hashable) -> str:
    """A column's label as an instruction names it; several levels are joined by dots.

    >>> label_text(2020), label_text(("price", "usd"))
    ('2020', 'price.usd')
    """
    return ".".join(str(part) for part in label if part != "") if isinstance(label, tuple) else str(label)


def prompt_names(frame: pd.DataFrame, positions: Sequence[int]) -> list[str]:
    """The unique names in a prompt of the columns at ``positions``.

    Columns with equal labels as text (``"n"`` twice, ``1`` and ``"1"``) get a number: ``n``, ``n_2``.

    Raises:
        InvalidArgument: as :func:`refuse_private`.
    """
    refuse_private(frame, positions)
    names = [label_text(label) for label in frame.columns]
    return _numbered_apart([names[position] for position in positions])


def not_private(frame: pd.DataFrame) -> list[int]:
    """Positions of the columns that prompts may have: all except those of ``corpus.private``."""
    private: frozenset[str] = results.recall(frame, "private") or frozenset()
    return [position for position, label in enumerate(frame.columns) if label not in private]


def refuse_private(frame: pd.DataFrame, positions: Sequence[int]) -> None:
    """Refuse to put cells of private columns into a prompt.

    Raises:
        InvalidArgument: one of the columns is private.
    """
    private = sorted({*positions} - {*not_private(frame)})
    if private:
        name = label_text(frame.columns[private[0]])
        raise InvalidArgument(
            f"column {name!r} is private, so its cells must not be in a prompt; name other columns, or undo it: "
            f"corpus.private({name!r}, undo=True), with the table's name before a dot"
        )


def _numbered_apart(names: Sequence[str]) -> list[str]:
    if len(set(names)) == len(names):
        return list(names)
    apart: list[str] = []
    taken = set(names)
    for at, name in enumerate(names):
        other, number = name, 1
        while name in names[:at] and other in taken:
            number += 1
            other = f"{name}_{number}"
        taken.add(other)
        apart.append(other)
    return apart


# --- groups of rows, for the operators that take group_by ------------------------------------------------------------


def group_keys(group_by: Hashable | Sequence[Hashable] | None) -> list[Hashable]:
    """``group_by`` as a list of column labels; it may also be a single label."""
    if group_by is None:
        return []
    return list(group_by) if isinstance(group_by, list | tuple) else [group_by]


def group_rows(frame: pd.DataFrame, keys: Sequence[Hashable]) -> list[list[int]]:
    """Row positions of each group, groups in order of first appearance (a null is a value like any other).

    Without keys all rows are one group, even if there are no rows.

    Raises:
        ColumnNotFound: a key is not a column.
    """
    if not keys:
        return [list(range(len(frame)))]
    for key in keys:
        if key not in frame.columns:
            raise ColumnNotFound(f"no column {key!r} in {did_you_mean(str(key), frame.columns)}")
    try:
        numbers = [*map(int, frame.groupby(list(keys), sort=False, dropna=False).ngroup())]
    except (TypeError, ValueError, OverflowError, NotImplementedError):
        # Lists, dicts and some types of Arrow cannot be hashed, so their text is used.
        known: dict[str | None, int] = {}
        lines = encode_rows(frame[list(keys)], range(len(keys)), blanks=True)
        numbers = [known.setdefault(line, len(known)) for line in lines]
    groups: dict[int, list[int]] = {}
    for row, number in enumerate(numbers):
        groups.setdefault(number, []).append(row)
    return list(groups.values())


# --- instructions: natural language that names columns in braces (LOTUS calls them langex) ---------------------------


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

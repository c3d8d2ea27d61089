"""Which rows of a sheet or of a delimited text name the columns.

Reports have titles, notes and numbers of columns above their names, and names of two rows where cells are merged; some
tables have no names at all.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile
from typing import Any

from tagframe.engines.cells import NULL_WORDS
from tagframe.engines.files.column_formats import UNITS

LOOKED_AT = 60
"""Rows from the first one on among which the names of columns are looked for."""
_EVEN = 0.9
"""The share of rows, from the header on, that are as long as the header."""
_VALUE = re.compile(r"[-+(]?[^\w\s]?\s*[0-9][0-9.,:/\s'%-]*[^\w\s]?\)?", re.ASCII)
"""A cell that is no name: a number, an amount, a date or a time."""
_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:[.,][0-9]+)*|[.,][0-9]+)(?:[eE][-+]?[0-9]+)?")
_DATE = re.compile(r"[0-9]{1,4}([./-])[0-9]{1,2}\1[0-9]{1,4}(?:[T ][0-9:.]+Z?)?|[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?")
_COLUMN_NUMBER = re.compile(r"[(\[]?([0-9]{1,3})[)\].]?")
_LONGEST = 300
"""The most characters of a title."""
_WORDS = 25
"""The most words of a column's name: one of a survey is its question."""
_TITLE_WORDS = 4
"""More words than names of groups of columns have; a title may have."""
_COMMENT = re.compile(r"(?:[#%!*;'\u00a9]|//|--|rem\b)(?![0-9])", re.IGNORECASE)
"""How a line begins that is a comment."""
_YEAR = re.compile(r"(?:19|20)[0-9]{2}")
_MOST_ROWS = 3
"""The most rows of names."""
_DUMPED = "\\N"
"""Dumps of databases have it for a missing value."""
_MISSING = {*NULL_WORDS, _DUMPED, "-", "--", ".", "..", "...", "?", "*", ":", "x", "X", "/"}
_UNIT_SIGNS = {*"#%‰€$£¥°№"}
_SEPARATOR = " / "
_MOST_NOTES = 20

Row = Sequence[Any]


@dataclass(frozen=True)
class Head:
    """The rows before the first one of data.

    Attributes:
        above: rows of titles, notes and numbers of columns above the names.
        depth: rows of names; 0 where the first row is data.
        below: 1 where a row of the columns' numbers stands below the names, else 0.
        names: of the columns, as far as rows name them; "" for none.
        labels: what other rows say of each column, where a row of codes or of another language names them; none
            elsewhere.
        is_unsure: whether nothing tells the names from the cells below.
    """

    above: int = 0
    depth: int = 1
    below: int = 0
    names: tuple[str, ...] = ()
    is_unsure: bool = False
    labels: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """How many rows are before the data."""
        return self.above + self.depth + self.below

    @property
    def is_plain(self) -> bool:
        """Whether the names are in one row, and data in the next one."""
        return self.depth == 1 and not self.below


def head_of(rows: Sequence[Row], *, may_have_titles: bool = True) -> Head:
    """Which rows name the columns.

    Above them each row has a cell in a third of the columns at most, or is shorter, or numbers the columns: a title, a
    note, or nothing. They name more than half of the columns, with texts or years that differ. Numbers or dates stand
    below, as a column of sentences has commas, too. Nothing is above if there are no such rows, or if the first one is
    it.

    >>> head_of([["Staff, 2024"], [], ["name", "born"], ["Ann", 1990], ["Bo", 1985]]).above
    2
    >>> head_of([["", "2023", ""], ["City", "Q1", "Q2"], ["Rom", 1, 2], ["Ulm", 3, 4]]).names
    ('City', '2023 / Q1', '2023 / Q2')

    Args:
        rows: the first ones, cell by cell; empty cells are None or "".
        may_have_titles: whether titles are looked for.
    """
    if may_have_titles and (above := comments_above(rows)):
        below = head_of(rows[above:])
        return replace(below, above=above + below.above)
    titles = _titles(rows) if may_have_titles else 0
    if (head := _translated(rows, titles) or _labelled(rows, titles) or _described(rows, titles)) is not None:
        return head
    if may_have_titles and (head := head_below_titles(rows)) is not None:
        return head
    depth = _depth(rows)
    if rows and depth == 1 and is_record(rows[0], rows[1:]):
        return Head(depth=0)
    is_unsure = bool(rows) and depth == 1 and may_be_record(rows[0], rows[1:])
    return replace(_head(rows, 0, depth), is_unsure=is_unsure)


def is_comment(row: Row) -> bool:
    """Whether a row begins as comments do, and its cells do not all."""
    begins = [_COMMENT.match(_text(cell)) is not None for cell in _filled(row)]
    return any(begins[:1]) and (len(begins) == 1 or not all(begins))


def _is_prose(row: Row) -> bool:
    """Whether a comment goes on with a blank, or its cells do."""
    return re.match(r"\W+\s", _text(row[0])) is not None or all(str(cell).startswith(" ") for cell in row[1:])


def comments_above(rows: Sequence[Row]) -> int:
    """How many rows at the beginning are comments, or blank between them.

    One that is as long as the rows below is none where the row below has values: it names the columns, also where
    comments stand between them.

    >>> comments_above([["# Staff, 2024"], ["#"], ["name", "born"], ["Ann", 1990]])
    2
    >>> comments_above([["#name", "born"], ["# Updated in May"], ["Ann", 1990]])
    0
    """
    above = next((at for at, row in enumerate(rows) if _filled(row) and not is_comment(row)), 0)
    if not any(map(is_comment, rows[:above])):
        return 0
    width, below = len(rows[above]), _filled(rows[above])
    has_values = any(map(is_value, below))
    long = [at for at in range(above) if len(_filled(rows[at])) == width > 1]
    above = next((at for at in long if has_values or not _is_prose(rows[at])), above)
    return above if width > 1 or any(len(_text(cell).split()) > 2 for row in rows[:above] for cell in row) else 0


def head_below_titles(rows: Sequence[Row]) -> Head | None:
    """The names below titles; None if nothing is above the names."""
    above = _titles(rows)
    # The last title may be the upper row of names that stand in two.
    is_upper = above > 0 and _may_be_upper(rows[above - 1], rows[above])
    for first in [above - 1, above] if is_upper else [above] if above else []:
        depth = _depth(rows[first:])
        if (first == above or depth > 1) and (head := _below_titles(rows, first, depth)) is not None:
            return head
    return None


def names_in(rows: Sequence[Row], above: int, depth: int) -> Head:
    """The head of so many rows of names below so many others."""
    return Head(above, depth, 0, _joined(rows[above : above + depth]))


def _head(rows: Sequence[Row], above: int, depth: int) -> Head:
    names = _joined(rows[above : above + depth])
    below = rows[above + depth : above + depth + 2]
    is_numbered = len(below) > 1 and _numbers_columns(below[0], rows[above + depth + 1 :])
    return Head(above, depth, int(is_numbered), names)


def _below_titles(rows: Sequence[Row], above: int, depth: int) -> Head | None:
    """The names below so many titles; None if they are none."""
    width = max((len(_filled(row)) for row in rows[:LOOKED_AT]), default=0)
    names = [name for name in _joined(rows[above : above + depth]) if name]
    if width == 2 and _filled(rows[0]) and not _text(rows[0][0]):  # a saved index, and the name of a column
        return None
    lengths = [len(row) for row in rows[above:] if row]
    is_even = lengths.count(len(rows[above])) >= _EVEN * len(lengths)
    cells = (cell for row in rows[above + depth :] for cell in _filled(row))
    is_apart = not any(map(_filled, rows[:above])) or any(map(is_value, cells))
    is_head = is_even and len(names) > width / 2 and are_names(names) and is_apart
    return _head(rows, above, depth) if is_head else None


def _titles(rows: Sequence[Row]) -> int:
    """How many rows at the beginning may be titles; 0 if nothing is below them."""
    width = max((len(_filled(row)) for row in rows[:LOOKED_AT]), default=0)
    above = 0
    for row in rows[:LOOKED_AT]:
        # A row that is one shorter than those below may be names without that of an index.
        cells = _filled(row)
        is_title = len(cells) <= max(1, width // 3) or len(row) < width - 1
        is_apart = above + 1 < len(rows) and not _filled(rows[above + 1])
        has_value = any(is_value(cell) and not _YEAR.fullmatch(_text(cell)) for cell in cells)
        is_title |= len(cells) < width and (has_value or is_apart)
        below = _filled(rows[above + 1]) if rows[above + 1 :] else []
        if not is_title and not (
            below
            and are_names(below)
            and (is_numbering(row) or _marks_columns(row, rows[above + 1], rows[above + 2 :]))
        ):
            break
        above += 1
    return above if width >= 2 and above + 1 < len(rows) else 0


def _may_be_upper(row: Row, names: Row) -> bool:
    """Whether a row of few cells may stand above several names: a title is one cell, the first one, or begins with a
    sentence above names that differ."""
    cells, first = _filled(row), _text(row[0]) if row else ""
    is_title = len(first.split()) > _TITLE_WORDS and len(_filled(names)) == len(names) and are_names(names)
    return not is_numbering(row) and not is_title and (len(cells) > 1 or (bool(cells) and not first))


def _depth(rows: Sequence[Row]) -> int:
    """How many rows, from the first one on, name the columns together."""
    depth = 1
    while depth < _MOST_ROWS and len(rows) > depth + 1 and _goes_on(rows[:depth], rows[depth], rows[depth + 1 :]):
        depth += 1
    return depth


def _goes_on(head: Sequence[Row], row: Row, below: Sequence[Row]) -> bool:
    """Whether a row belongs to the names above it, as texts stand in its columns of numbers."""
    last = head[-1]
    if is_comment(row) and any(" " in _text(cell) for cell in _filled(row)):
        return False
    width = max(len(row), len(last))
    lower = [_text(row[at]) if at < len(row) else "" for at in range(width)]
    upper = [_text(last[at]) if at < len(last) else "" for at in range(width)]
    if any(is_value(cell) and not _YEAR.fullmatch(cell) for cell in upper if cell):
        return False
    tail = below[len(below) // 2 :]
    numbers = [at for at in range(width) if _holds_values([line[at] for line in tail if at < len(line)])]
    texts = [lower[at] for at in numbers if lower[at]]
    others = [at for at in range(width) if at not in numbers]
    is_keyed = any(lower[at] for at in others)
    if not numbers and len(last) == len(row) and _are_merged(upper, lower, below):
        return True
    if not texts:  # pandas writes the name of an index alone in a row below names of several rows
        return len(head) > 1 and bool(numbers) and is_keyed
    if not all(_YEAR.fullmatch(text) or _is_word(text) for text in texts):
        return False
    filled = [cell for cell in upper if cell]
    under_gap = any(lower[at] and not upper[at] for at in range(width))
    if under_gap or len({*filled}) < len(filled):
        return not is_keyed or len({*texts}) > 1 or all(lower)
    if any(map(_YEAR.fullmatch, texts)):
        return False
    # Units: below names that are complete.
    return (not is_keyed and len(texts) >= len(numbers) / 2) or (
        len(texts) == len(numbers) > 1 and len({*texts}) > 1 and not others
    )


def _are_merged(upper: Sequence[str], lower: Sequence[str], below: Sequence[Row]) -> bool:
    """Whether cells stand above several names each, as merged ones do, in a table of texts."""
    gaps = sum(not cell for cell in upper)
    is_like = any(_text(cell) == name for row in below for cell, name in zip(row, lower, strict=False))
    return 2 <= gaps < len(upper) <= 2 * (gaps + 1) and any(upper[:2]) and are_names(lower) and not is_like


def _joined(rows: Sequence[Row]) -> tuple[str, ...]:
    """The names that rows give together: a cell stands for the empty ones right of it that have names below."""
    width = max(map(len, rows), default=0)
    texts = [[_text(row[at]) if at < len(row) else "" for at in range(width)] for row in rows]
    for upper, lower in reversed([*pairwise(texts)]):
        for at in range(1, width):
            if not upper[at] and upper[at - 1] and lower[at] and lower[at - 1]:
                upper[at] = upper[at - 1]
    columns = zip(*texts, strict=True)
    return tuple(_SEPARATOR.join(dict.fromkeys(filter(None, parts))) for parts in columns)


def _translated(rows: Sequence[Row], above: int) -> Head | None:
    """The names in a row above the same in another language, and maybe codes; None if there is none.

    Some of the words are the same in both rows, and in none below.

    >>> rows = [["Code", "Name", "Iron"], ["Code", "Nom", "Fer"], [None, None, "FE"], ["a", "Rice", 1], ["b", "Oil", 2]]
    >>> _translated(rows, 0).names, _translated(rows, 0).labels
    (('Code', 'Name', 'Iron'), ('', 'Nom', 'Fer; FE'))
    """
    width = max(map(len, rows[above:]), default=0)
    texts = [[*map(_text, row), *[""] * (width - len(row))] for row in rows[above:]]
    if len(texts) < _FEW + 2:
        return None
    names, other, *below = texts
    equal = [name == translated for name, translated in zip(names, other, strict=True) if name]
    later = zip(names, _columns_below(below, width), strict=True)
    are_alike = [*map(bool, names)] == [*map(bool, other)] and are_names(_filled(names)) and are_names(_filled(other))
    if not are_alike or not 0 < sum(equal) <= len(equal) / 2 or any(name in cells for name, cells in later):
        return None
    numbers = [at for at in range(width) if _holds_values([row[at] for row in below[len(below) // 2 :]])]
    codes = [at for at in range(width) if below[0][at]]
    is_coded = 2 * len({*codes} & {*numbers}) > len(codes) and not any(is_value(below[0][at]) for at in codes)
    depth = 2 + (is_coded and not below[0][0])
    cells = zip(*texts[:depth], strict=True)
    labels = ("; ".join(dict.fromkeys(text for text in rest if text not in ("", name))) for name, *rest in cells)
    return replace(_head(rows, above, depth), names=tuple(names), labels=tuple(labels))


def _described(rows: Sequence[Row], above: int) -> Head | None:
    """The names in a row above a title, other names of all columns, or both; None if there are neither.

    The title is one text above numbers. The other names, as of another language, are words, some of them above numbers.

    >>> rows = [["City", "Jan", "Feb", "Mar"], ["", "", "Days of frost", ""], ["Stadt", "Jän", "Feber", "März"]]
    >>> _described([*rows, ["Rom", 1, 2, 0], ["Ulm", 7, 9, 3], ["Wien", 6, 9, 2]], 0).rows
    3
    """
    width = max(map(len, rows[above:]), default=0)
    names, *below = [[*map(_text, row), *[""] * (width - len(row))] for row in rows[above:]] or [[""]]
    later = [row for row in below if row != names][_FEW:]  # names may stand again at the end
    numbers = [at for at in range(width) if _holds_values([row[at] for row in later])]
    if not _FEW < len(numbers) < width or not all(names) or not are_names(names):
        return None
    filled = [at for at, cell in enumerate(below[0]) if cell]
    is_titled = len(filled) == 1 and filled[0] in numbers and _is_word(below[0][filled[0]])
    other = below[is_titled]
    is_named = all(other) and are_names(other) and all(_is_word(other[at]) for at in numbers)
    if not is_titled and not is_named:
        return None
    labels = tuple(label if is_named and label != name else "" for name, label in zip(names, other, strict=True))
    return replace(_head(rows, above, 1 + is_titled + is_named), names=tuple(names), labels=labels)


def _labelled(rows: Sequence[Row], above: int) -> Head | None:
    """The names in a row of codes (``P19_POP``) next to rows of labels and units; None if there are no such rows.

    >>> rows = [["City code", "Population in 2019"], ["CITY", "P19_POP"], ["a01", 5], ["a02", 7], ["a03", 9]]
    >>> _labelled(rows, 0).names, _labelled(rows, 0).labels
    (('CITY', 'P19_POP'), ('City code', 'Population in 2019'))
    """
    width = max(map(len, rows[above:]), default=0)
    texts = [[*map(_text, row), *[""] * (width - len(row))] for row in rows[above:]]
    tail = texts[len(texts) // 2 + 1 :]
    numbers = [at for at in range(width) if _holds_values([row[at] for row in tail])]
    first = texts[: _MOST_ROWS + 1]
    heads = [*takewhile(lambda row: _is_above_numbers(row, first, numbers), first)]
    whole = [at for at, row in enumerate(heads) if not _is_of_units(row, numbers)]
    heads = heads[: whole[2] if len(whole) > 2 else None]
    if len(heads) < 2 or not numbers or len(texts) < len(heads) + 2:
        return None
    coded = _row_of_codes(heads, numbers, _columns_below(texts[len(heads) :], width))
    if coded is None:
        return None
    names, labels = heads[coded], [row for at, row in enumerate(heads) if at != coded]
    for at in range(1, width) if coded else []:
        is_alike = names[at - 1][:2] == names[at][:2]  # as where labels are merged: BEV_M, BEV_W
        labels[0][at] = labels[0][at] or (labels[0][at - 1] if is_alike else "")
    described = ["; ".join(dict.fromkeys(filter(_is_label, cells))) for cells in zip(*labels, strict=True)]
    return replace(_head(rows, above, len(heads)), names=tuple(names), labels=tuple(described))


def _is_above_numbers(row: Sequence[str], first: Sequence[Sequence[str]], numbers: Sequence[int]) -> bool:
    """Whether most numbers have a word of a row above them, or a year of which a label in the same column speaks."""
    cells = [(row[at], [other[at] for other in first]) for at in numbers if row[at]]
    return len(cells) >= len(numbers) / 2 and all(
        _is_word(cell) or (_YEAR.fullmatch(cell) and any(cell in other and not is_value(other) for other in column))
        for cell, column in cells
    )


def _is_of_units(row: Sequence[str], numbers: Sequence[int]) -> bool:
    """Whether a row says nothing of columns of texts, or what the program of a survey reads, or has units alone."""
    others = [cell for at, cell in enumerate(row) if at not in numbers]
    is_bare = all(cell in _MISSING or cell.startswith("{") for cell in others)
    return is_bare and (bool(others) or all(not cell or cell in UNITS or cell[0] in "([{" for cell in row))


def _row_of_codes(heads: Sequence[Sequence[str]], numbers: Sequence[int], below: Sequence[Sequence[str]]) -> int | None:
    """Which of some rows above numbers has the names, if the others describe them for certain.

    No cell is repeated below, as one of a row of data may be. Labels above codes begin with the first column and differ
    in most: groups of columns have names of two rows. Labels below codes differ, too, and are words with blanks.
    """
    columns = [column for column in zip(*heads, strict=True) if any(column)]
    width = len(columns)
    if any(cell in others and not is_value(cell) for row in heads for cell, others in zip(row, below, strict=True)):
        return None
    shares = [_are_identifiers(row[:width]) and sum(map(_is_code_beside, row, columns)) / width for row in heads]
    coded = shares.index(max(shares))
    others = (row for at, row in enumerate(heads) if at != coded)
    labels = max(others, key=lambda row: sum(map(_is_label, row)))
    unlike = sum(
        any(len({*map(kind, cells[:_SAMPLE])}) == 1 and kind(heads[-1][at]) != kind(cells[0]) for kind in (len, _form))
        for at, cells in enumerate(below)
        if at not in numbers and len(cells) > _FEW
    )
    is_coded = shares[coded] >= 1 / 2 and shares.count(shares[coded]) == 1
    is_prose = _are_identifiers(heads[coded][:width]) and sum(map(_is_prose_cell, labels)) > width / 2
    is_apart = bool(labels[0]) and len({*filter(None, labels)}) >= width / 2
    is_sure = is_apart and (is_coded or (is_prose and not coded)) and len(numbers) + unlike > (1 if is_coded else 2)
    return coded if is_sure else None


def _are_identifiers(cells: Sequence[str]) -> bool:
    """Whether cells are codes as computers read them, no two alike."""
    return len({*cells}) == len(cells) and all(map(_IDENTIFIER.fullmatch, cells))


def _is_code_beside(cell: str, column: Sequence[str]) -> bool:
    """Whether a cell is written as codes are, and not as units, or shortens one that stands in its column."""
    is_written = re.search(r"[\d_]", cell) is not None or (cell.isupper() and len(cell) > 1)
    is_short = any(cell[:3].lower() in other.lower() for other in column if other != cell)
    return cell not in UNITS and (is_written or is_short)


def _is_label(text: str) -> bool:
    """Whether a text says something of a column; one for the program of a survey does not (``{"ImportId": …}``)."""
    return _is_word(text) and not text.startswith("{")


def _is_prose_cell(text: str) -> bool:
    """Whether a text has several words, or is of a script without blanks between them."""
    return " " in text or re.search("[\u0e00-\u0eff\u3040-\u9fff]", text) is not None


_IDENTIFIER = re.compile(r"(?=.*[A-Za-z]|\d{4}\Z)[\w.:#$/[\]-]{1,40}", re.ASCII)


def first_names(rows: Sequence[Row]) -> int | None:
    """Which row below the first one may name most columns, by its number from 0; None for none."""
    width = max(map(len, rows), default=0)
    may_be = (at for at, row in enumerate(rows) if at and len(_filled(row)) > width / 2 and are_names(_filled(row)))
    return next(may_be, None)


def is_numbering(row: Row) -> bool:
    """Whether a row has the numbers of the columns: 1, 2, 3, …, maybe behind a word."""
    cells = list(map(_text, _filled(row)))
    matches = [match for cell in cells if (match := _COLUMN_NUMBER.fullmatch(cell))]
    numbers = [int(match[1]) for match in matches]
    others = [at for at, cell in enumerate(cells) if not _COLUMN_NUMBER.fullmatch(cell)]
    are_others_short = others == [0] or all(len(cells[at]) == 1 for at in others)
    steps = {after - before for before, after in pairwise(numbers)}
    return len(numbers) >= 3 and are_others_short and steps == {1} and numbers[0] <= len(row)


def _marks_columns(row: Row, names: Row, below: Sequence[Row]) -> bool:
    """Whether a row above names marks the columns (A, B, …; I, II, …; 5, 6, …); some names are above numbers."""
    cells = [_text(cell).upper() for cell in row]
    steps = {int(cell) - at if _MARK.fullmatch(cell) else None for at, cell in enumerate(cells)}
    is_counted = len(steps) == 1 and None not in steps
    if len(cells) < 3 or not (is_counted or any(cells == [*marks[: len(cells)]] for marks in (_LETTERS, _ROMAN))):
        return False
    columns = [[line[at] for line in below if at < len(line)] for at in range(len(names))]
    return any(_is_word(_text(name)) and _holds_values(column) for name, column in zip(names, columns, strict=True))


_MARK = re.compile("[0-9]{1,3}")
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_ROMAN = "I II III IV V VI VII VIII IX X XI XII XIII XIV XV".split()


def _numbers_columns(row: Row, below: Sequence[Row]) -> bool:
    """Whether a row below names has the numbers of the columns: texts stand below some of them."""
    if not is_numbering(row) or len(_filled(row)) < len(row) - 1 or _text(_filled(row)[0]) not in {"1", "(1)", "[1]"}:
        return False
    columns = [[_text(line[at]) for line in below if at < len(line) and _text(line[at])] for at in range(len(row))]
    return any(cells and not any(map(is_value, cells)) for cells in columns)


def is_record(first: Row, below: Sequence[Row]) -> bool:
    """Whether the first row is one of data: its cells are like those below, and none is a text above numbers.

    >>> is_record(["1", "Rom", "41.9"], [["2", "Ulm", "48.4"]]), is_record(["id", "2020"], [["1", "7"]])
    (True, False)
    """
    cells = [_text(cell) for cell in first]
    if not below:
        return any(is_value(cell) and not _YEAR.fullmatch(cell) for cell in cells if cell) and not is_numbering(first)
    if is_numbering(first) or _are_steps(cells):
        return False
    columns = _columns_below(below, len(cells))
    is_like, coded = _repeats_below(cells, columns, below), 0
    for cell, others in zip(cells, columns, strict=True):
        is_like |= cell == _DUMPED  # a missing value is no name
        if cell in NULL_WORDS or cell == _DUMPED or not others:
            continue
        form, forms = _form(cell), set(map(_form, others[:_SAMPLE]))
        if form in _VALUES:
            is_like |= forms == {form} and (not _YEAR.fullmatch(cell) or all(map(_YEAR.fullmatch, others)))
        elif forms <= _VALUES:
            return False
        skeletons = set(map(_skeleton, others[:_SAMPLE]))
        if len(skeletons) == 1 and "9" in (only := next(iter(skeletons))) and len(others) > _FEW:
            if _skeleton(cell) != only and only not in (_skeleton(cell.upper()), _skeleton(cell.lower())):
                return False
            is_like |= _skeleton(cell) == only
        elif _ADDRESS.fullmatch(cell):
            is_like |= all(map(_ADDRESS.fullmatch, others[:_SAMPLE]))
        elif re.search("[0-9]", cell) and form not in _VALUES:
            is_like |= forms == {form} and len(form) > _FEW and len(cell) < _LONGEST_CODE
            coded += _is_code_of(cell, others)
    is_like |= coded > 1
    counts = Counter(tuple(map(_text, row)) for row in below)
    own = counts.pop(tuple(cells), 0)  # names may be repeated where files were put together
    return is_like and (not own or max(counts.values(), default=0) > 1)


def _columns_below(below: Sequence[Row], width: int) -> list[list[str]]:
    """The cells of each column, without missing ones."""
    return [
        [text for row in below if at < len(row) and (text := _text(row[at])) not in _MISSING] for at in range(width)
    ]


def _repeats_below(cells: Sequence[str], columns: Sequence[Sequence[str]], below: Sequence[Row]) -> bool:
    """Whether words of the first row are values below: of a column whose values repeat, or of another one that has the
    same values, as both ends of a connection do; or two of its cells are equal, as they are below.

    A list of columns may have the names of its own columns once.
    """
    if len(below) <= _FEW:
        return False
    at_all = [(cell, {*others}, len(others)) for cell, others in zip(cells, columns, strict=True)]
    words = [(cell, own, size) for cell, own, size in at_all if size > _FEW and _form(cell) not in _VALUES and cell]
    if any(cell in own and len(own) < size for cell, own, size in words):
        return True
    names = {cell for cell, _, _ in words}
    having: dict[str, list[set[str]]] = defaultdict(list)  # hardly a name is a value; a table may have 1,000 columns
    for _, values, _ in words:
        for name in names & values:
            having[name].append(values)
    if any(other is not own and not own.isdisjoint(other) for cell, own, _ in words for other in having[cell]):
        return True
    twice = [at for at, cell in enumerate(cells) if cell and cells.count(cell) > 1]
    both = [(_text(row[twice[0]]), _text(row[twice[1]])) for row in below if twice and len(row) > twice[1]]
    return sum(one == other for one, other in both) > len(both) / 2


def may_be_record(first: Row, below: Sequence[Row]) -> bool:
    """Whether nothing tells names in the first row from words below: the same capitals in all columns, in no order.

    >>> may_be_record(["Ann", "Rom"], [["Bo", "Ulm"], ["Cy", "Bern"]]), may_be_record(["Name", "City"], [["Bo", "Ulm"]])
    (True, False)
    """
    cells = [_text(cell) for cell in first]
    shapes = [*map(_shape, cells)]
    is_lower = len(cells) > 1 and all(shape == shape.lower() for shape in shapes)
    if is_lower or not _USUAL.isdisjoint(re.findall(r"[^\W\d_]+", " ".join(cells).lower())):
        return False
    if not below:
        return all(re.fullmatch("A?a( A?a)*", shape) for shape in shapes)
    if _has_code(cells, _columns_below(below, len(cells))):
        return True
    return all(cells) and all(
        others
        and min(map(len, others)) - _FEW <= len(cell) <= max(map(len, others)) + _FEW
        and sum(_shape(other) == shape for other in others) >= _EVEN * len(others)
        and (len(others) <= _FEW + 1 or others != sorted(others) or cell <= others[0] or _is_short_code(cell, others))
        for cell, shape, others in zip(cells, shapes, _columns_below(below, len(cells)), strict=True)
    )


_USUAL = frozenset(
    """id ids key no nr num number code name names title label type kind category class group status state description
    text comment note notes value unit amount total count price date day month year time city town country region
    address street zip phone email mail url source target gender sex age colour color language word""".split()
)
"""Words in the names of columns, which hardly a cell has where names are in no row."""


def _is_short_code(cell: str, others: Sequence[str]) -> bool:
    return cell.islower() and len(cell) <= _FEW + 1 and {*map(len, others)} == {len(cell)} and len({*others}) > _FEW


def _is_code_of(cell: str, others: Sequence[str]) -> bool:
    """Whether a cell is as long as nearly all below, of letters and digits without a blank, as many of them are."""
    if not cell.isalnum() or sum(len(other) == len(cell) for other in others) < _EVEN * len(others):
        return False
    mixed = [other for other in others if other.isalnum() and not other.isdigit() and not other.isalpha()]
    return len(mixed) > len(others) / 4


def _has_code(cells: Sequence[str], columns: Sequence[Sequence[str]]) -> bool:
    """Whether a cell is written as all codes below, and as a name is not ("de_DE"), or beside a text with signs."""
    has_signs = any(re.search("[,()]", cell) for cell in cells)
    for cell, others in zip(cells, columns, strict=True):
        if len({*others}) <= _MANY or not cell or not cell.isascii() or any(map(str.isdigit, cell)):
            continue
        is_code = has_signs and cell.isalpha() and cell.isupper() and {*map(len, others)} == {len(cell)}
        if (is_code or re.fullmatch("a[-_]A", _shape(cell))) and {*map(_shape, others)} == {_shape(cell)}:
            return True
    return False


def _shape(cell: str) -> str:
    """The letters of a cell by their case, runs of one kind as one: ``Aa Aa`` for "New York"."""
    letters = "".join(("A" if sign.isupper() else "a") if sign.isalpha() else sign for sign in cell)
    return re.sub(r"(.)\1+", r"\1", letters)


_ADDRESS = re.compile(r"[^\s@]+@[^\s@]+\.[^\s@]+|[a-z]+://\S+|www\.\S+|(?:[A-Za-z]:)?[/\\]\S+|#[0-9A-Fa-f]{6}")
"""Of mail, a page or a file, or a colour: no column is called so."""
_SAMPLE, _FEW, _MANY, _LONGEST_CODE = 50, 2, 5, 40
_VALUES = {"number", "date", "amount"}


def _form(cell: str) -> str:
    """What a cell looks like: "number", "date", "amount", or its letters and digits by kind."""
    if _NUMBER.fullmatch(cell):
        return "number"
    if _DATE.fullmatch(cell):
        return "date"
    if _VALUE.fullmatch(cell):
        return "amount"
    return re.sub(r"a+", "a", re.sub(r"[0-9]+", "9", re.sub(r"[^\W\d_]", "a", cell)))


def _skeleton(cell: str) -> str:
    return re.sub(r"[0-9]+", "9", cell.lstrip("+-"))


def _are_steps(cells: Sequence[str]) -> bool:
    """Whether the numbers of a row are steps of one length, as those that name classes or hours are."""
    numbers = [int(cell) for cell in cells if cell.isascii() and cell.isdigit()]
    steps = {after - before for before, after in pairwise(numbers)}
    return len(numbers) > 2 and len(steps) == 1 and 0 not in steps and len(numbers) >= sum(map(bool, cells)) - 1


def _holds_values(cells: Sequence[Any]) -> bool:
    """Whether a column has numbers or dates, maybe beside signs for missing ones."""
    texts = [text for cell in cells if (text := _text(cell)) not in _MISSING]
    return bool(texts) and sum(map(is_value, texts)) >= _EVEN * len(texts)


def are_names(cells: Row) -> bool:
    """Whether cells may name columns: years or texts of a few words, no two alike."""
    names = [*map(str, cells)]
    are_texts = all(_YEAR.fullmatch(name) or not is_value(cell) for cell, name in zip(cells, names, strict=True))
    return are_texts and len({*names}) == len(names) and all(len(name.split()) <= _WORDS for name in names)


def is_value(cell: Any) -> bool:
    """Whether a cell is a number, an amount, a date or a time."""
    return not isinstance(cell, str) or _VALUE.fullmatch(cell.strip()) is not None


def _is_word(text: str) -> bool:
    is_unit = (text.startswith("(") and text.endswith(")")) or text in _UNIT_SIGNS
    return is_unit or (not is_value(text) and text not in _MISSING and any(map(str.isalpha, text)))


def _filled(row: Row) -> list[Any]:
    return [cell for cell in row if _text(cell)]


def _text(cell: Any) -> str:
    return "" if cell is None else str(cell).strip()


_NOTE = re.compile(r"[*(#\u00a9\u2020\u00b9\u00b2\u00b3]|//|[0-9a-z]{1,2}\)\s|[^\W\d]+(?: \w+)? ?[:\uff1a]\s")
"""How a note below a table begins."""


def is_split_note(row: Row) -> bool:
    """Whether a row is a note with delimiters in it: it begins as one, and blanks are after each delimiter."""
    after = [str(cell) for cell in row[1:] if cell is not None]
    is_note = bool(row) and bool(after) and _NOTE.match(_text(row[0])) is not None
    return is_note and all(cell.startswith(" ") and cell.strip() for cell in after)


def notes_below(tail: Sequence[Row], others: Sequence[Row], width: int) -> int:
    """How many of the last rows are notes, or blank beside them: of one text each, below a blank row, or unlike data.

    >>> notes_below([["b", 2], [], ["Source: office"]], [["a", 1], ["b", 2]], 2)
    2

    Args:
        tail: the last rows.
        others: rows at the beginning of the data.
        width: columns of the table.
    """
    count = 0
    notes: list[str] = []
    before = [row for row in others[: len(others) // 2] if row]
    is_plain = not any(_NOTE.match(_text(row[0])) or str(row[-1] or "").startswith(" ") for row in before)
    for row in reversed(tail[-_MOST_NOTES:]):
        cells = _filled(row)
        is_one = len(cells) == 1 and bool(_text(row[0])) and not is_value(cells[0])
        if cells and not is_one and not (is_plain and is_split_note(row)):
            break
        notes += [_text(row[0])] if cells else []
        count += 1
    others = [row for row in others if _filled(row) and _text(row[0]) not in notes]
    if not notes or width < 2 or len(others) < 2 or any(len(_filled(row)) < 2 for row in others):
        return 0
    is_apart = not _filled(tail[-count])
    is_unlike = all(is_value(row[0]) for row in others)
    is_sentence = all(_NOTE.match(note) or ": " in note or len(note.split()) > _FEW + 1 for note in notes)
    return count if is_apart or is_sentence or (is_unlike and all(" " in note for note in notes)) else 0


def second_table(rows: Sequence[Row], first: int) -> list[str]:
    """A sentence on a blank row among the rows of data above a heading, or what may be names of another table.

    >>> second_table([["a"], ["x", 1], [], ["shop", "city"], ["y", "Rom"]], 1)
    ["a blank row is above 'shop': the rows from there on may be another table"]
    """
    for at in range(first + 1, len(rows) - 1):
        blank, names, after = map(_filled, rows[at - 1 : at + 2])
        is_start = bool(names) and are_names(names) and not _NOTE.match(_text(names[0]))
        if at > first + 1 and not blank and is_start and (after if len(names) > 1 else len(after) > 1):
            return [f"a blank row is above {names[0]!r}: the rows from there on may be another table"]
    return []


def numbered_names(names: Sequence[str], width: int, nameless: str = "column_{}", first: int = 1) -> list[str]:
    """Names for so many columns: one whose name is taken is called ``x.1``.

    Args:
        names: of the first of them, "" for none.
        width: how many there are.
        nameless: what one without a name is called, with a place for its number.
        first: the number of the first one.

    >>> numbered_names(["id", "", "id"], 4)
    ['id', 'column_2', 'id.1', 'column_4']
    """
    given = [name or nameless.format(at) for at, name in enumerate([*names, *[""] * (width - len(names))], first)]
    counts: Counter[str] = Counter()
    taken: dict[str, None] = {}
    for name in given:
        free = name
        while free in taken or (free != name and free in given):
            counts[name] += 1
            free = f"{name}.{counts[name]}"
        taken[free] = None
    return list(taken)


def title_text(rows: Iterable[Row]) -> str:
    """What rows of titles say, in one line: a comment on the table.

    >>> title_text([["Staff, 2024", ""], [], ["in thousands of", "EUR"]])
    'Staff, 2024; in thousands of EUR'
    """
    lines = (" ".join(" ".join(str(cell) for cell in row if cell is not None).split()) for row in rows)
    return "; ".join(filter(None, lines))[:_LONGEST]


def sentences(head: Head) -> list[str]:
    """What is not plain about the rows before the data."""
    first, last = head.above + 1, head.above + head.depth
    several = [name for name, count in Counter(filter(None, head.names)).items() if count > 1]
    notes = [f"several columns are called {name!r}; the later ones are called '{name}.1', …" for name in several]
    if not head.depth:
        notes.append("the first row is like the others, and is read as data")
    elif head.labels:
        notes.append(f"one of the rows {first} to {last} names the columns, and the others describe them")
    elif head.depth > 1:
        notes.append(f"rows {first} to {last} name the columns together")
    if head.above:
        left = "the row above it is the title" if head.above == 1 else f"the {head.above} rows above it are the title"
        is_plain = head.depth and not head.labels
        notes.append(f"row {first} {'names the columns' if is_plain else 'is the first one'}, and {left} of the table")
    if head.is_unsure:
        notes.append(
            "the first row may be one of the others, as nothing tells its words from theirs; it names the columns"
        )
    if head.below:
        notes.append(f"row {head.rows} has the numbers of the columns, and is left out")
    return notes

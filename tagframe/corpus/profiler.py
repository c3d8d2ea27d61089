"""From the values of a table to its profile, a chunk of rows at a time.

Between chunks, eight bytes are kept for each distinct value of a column, so the memory depends on the number of
distinct values, not of rows. Distinct values are counted by their 64-bit hashes. This is exact except for collisions; a
million values have a collision with a chance of 3 in 100 million. Texts with the same canonical form ("a", "A") are one
value of the sketch but two distinct values, as in a merge.
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from tagframe.corpus.canonical import canonical_all, hash_texts
from tagframe.corpus.corpus import Corpus
from tagframe.corpus.profile import ColumnProfile, Sketch, TableProfile, TypeFamily
from tagframe.corpus.totals import WORDS, Totals
from tagframe.engines.base import Chunk, Engine, TableShape, Values
from tagframe.engines.pushdown import SampledValues
from tagframe.errors import ColumnNotFound, UnreadableTable

SKETCH_SIZE = 2048
"""The number of hashes kept of a column; columns with at most this many distinct values are kept whole."""

SAMPLES = 10
LONGEST_TEXT = 200
"""Characters kept of a sample, minimum or maximum."""

FAMILY_SHARE = 0.95
"""A column has a family if this share of its non-null values has it: one "n/a" does not turn numbers into text."""

_CANDIDATES_A_CHUNK = 32
_PENDING = 4
"""New hashes are sorted in when they are this many times the sorted ones."""
_NUMERIC: frozenset[TypeFamily] = frozenset(("integer", "real"))

Distinct = list[Any] | npt.NDArray[Any]


def profile_table(
    database: str, shape: TableShape, chunks: Iterable[Chunk], *, name: str | None = None
) -> TableProfile:
    """Profile a table from its rows.

    Args:
        database: the database that the table belongs to.
        shape: its names and declared keys.
        chunks: its rows, each once, in any number of pieces.
        name: the table's name in the corpus, if it differs from the shape's.
    """
    accumulators = [_ColumnAccumulator() for _ in shape.columns]
    rows, totals = 0, Totals(shape.columns)
    for chunk in chunks:
        rows += chunk.rows
        totals.add(chunk)
        for accumulator, values in zip(accumulators, chunk.columns, strict=True):
            accumulator.add(values)
    database, name = shape.database or database, name or shape.called or shape.name
    return TableProfile(
        id=f"{database}.{name}",
        database=database,
        name=name,
        columns=tuple(
            accumulator.profile(column, position, declared, rows)
            for position, (accumulator, column, declared) in enumerate(
                zip(accumulators, shape.columns, shape.declared_types, strict=True)
            )
        ),
        rows=rows,
        primary_key=shape.primary_key,
        foreign_keys=shape.foreign_keys,
        unique=shape.unique,
        totals=totals.rows([
            (column, word, number)
            for accumulator, column in zip(accumulators, shape.columns, strict=True)
            for word, number in accumulator.totals.items()
        ]),
    )  # fmt: skip


class _ColumnAccumulator:
    def __init__(self) -> None:
        self._nulls = 0
        self._rows_of: Counter[TypeFamily] = Counter()
        self._distinct = _HashSet()
        self._candidates: dict[int, list[Any]] = {}
        self._written = _HashSet()
        self._numbers: tuple[tuple[float, str], tuple[float, str]] | None = None
        self._texts: tuple[str, str] | None = None
        self.totals: Counter[str] = Counter()

    def add(self, values: Values) -> None:
        distinct, counts, nulls = _count_values(values)
        self._nulls += nulls
        texts, families = canonical_all(distinct)
        if None in texts:
            valid = [index for index, text in enumerate(texts) if text is not None]
            self._nulls += int(counts.sum() - counts[valid].sum())
            distinct, counts = [distinct[index] for index in valid], counts[valid]
            families = [families[index] for index in valid]
            texts = [text for text in texts if text is not None]
        if not texts:
            return
        known = cast(list[str], texts)
        hashes = hash_texts(known)
        for word in WORDS.intersection(known):
            at = known.index(word)
            self.totals[str(distinct[at]).strip()] += int(counts[at])
        self._add_families(families, counts)
        self._add_extremes(known, families, distinct)
        self._add_candidates(hashes, counts, distinct, known)
        self._distinct.add(hashes)
        self._written.add(_hashes_as_written(distinct, known, hashes))

    def _add_families(self, families: list[TypeFamily], counts: npt.NDArray[Any]) -> None:
        present = set(families)
        if len(present) == 1:
            self._rows_of[present.pop()] += int(counts.sum())
            return
        for family, count in zip(families, counts.tolist(), strict=True):
            self._rows_of[family] += count

    def _add_extremes(self, texts: list[str], families: list[TypeFamily], values: Distinct) -> None:
        present = set(families)
        numeric: list[str]
        others: list[str]
        if isinstance(values, np.ndarray) and values.dtype.kind in "iuf":
            numeric, others = [texts[int(values.argmin())], texts[int(values.argmax())]], []
        elif present <= _NUMERIC:
            numeric, others = texts, []
        elif present & _NUMERIC:
            numeric = [text for text, family in zip(texts, families, strict=True) if family in _NUMERIC]
            others = [text for text, family in zip(texts, families, strict=True) if family not in _NUMERIC]
        else:
            numeric, others = [], texts
        if numeric:
            numbers = list(map(float if "real" in present else int, numeric))
            extremes = [(number, numeric[numbers.index(number)]) for number in (min(numbers), max(numbers))]
            extremes += self._numbers or ()
            self._numbers = (min(extremes), max(extremes))
        if others:
            bounds = [clipped_text(min(others)), clipped_text(max(others)), *(self._texts or ())]
            self._texts = (min(bounds), max(bounds))

    def _add_candidates(
        self,
        hashes: npt.NDArray[np.uint64],
        counts: npt.NDArray[Any],
        distinct: Distinct,
        texts: list[str],
    ) -> None:
        """Count the values that may become samples, once they are among the most frequent of a chunk."""
        if self._candidates:
            known = pd.Index(np.fromiter(self._candidates, dtype=np.uint64, count=len(self._candidates)))
            for index in np.flatnonzero(known.get_indexer(pd.Index(hashes)) >= 0).tolist():
                self._candidates[int(hashes[index])][0] += int(counts[index])
        for index in _most_frequent(counts, _CANDIDATES_A_CHUNK):
            key = int(hashes[index])
            if key not in self._candidates:
                written = distinct[index]
                self._candidates[key] = [
                    int(counts[index]),
                    clipped_text(written if isinstance(written, str) else texts[index]),
                ]

    def _family(self) -> TypeFamily:
        total = sum(self._rows_of.values())
        if not total:
            return "empty"
        counts = Counter(self._rows_of)
        # Integers are also reals, so a column of both is real.
        if counts["real"]:
            counts["real"] += counts.pop("integer", 0)
        family, rows = counts.most_common(1)[0]
        return family if rows >= FAMILY_SHARE * total else "text"

    def profile(self, name: str, position: int, declared_type: str, rows: int) -> ColumnProfile:
        distinct = self._distinct.sorted()
        family = self._family()
        if family in ("integer", "real") and self._numbers is not None:
            extremes = [text for _, text in self._numbers]
        else:
            extremes = sorted([*(self._texts or ()), *(text for _, text in self._numbers or ())])
        frequent = sorted(self._candidates.values(), key=lambda candidate: -candidate[0])[:SAMPLES]
        return ColumnProfile(
            name=name,
            position=position,
            family=family,
            declared_type=declared_type,
            rows=rows,
            nulls=self._nulls,
            distinct=len(self._written.sorted()),
            minimum=extremes[0] if extremes else None,
            maximum=extremes[-1] if extremes else None,
            samples=tuple(text for _, text in frequent),
            sketch=Sketch(distinct[:SKETCH_SIZE].copy(), complete=len(distinct) <= SKETCH_SIZE),
        )


class _HashSet:
    """A set of hashes that needs only a few times their size in memory."""

    def __init__(self) -> None:
        self._hashes: npt.NDArray[np.uint64] = np.empty(0, dtype=np.uint64)
        self._pending: list[npt.NDArray[np.uint64]] = []
        self._pending_size = 0

    def add(self, hashes: npt.NDArray[np.uint64]) -> None:
        self._pending.append(hashes)
        self._pending_size += len(hashes)
        if self._pending_size > max(_PENDING * len(self._hashes), SKETCH_SIZE):
            self.sorted()

    def sorted(self) -> npt.NDArray[np.uint64]:
        """All of them, ascending."""
        if self._pending:
            self._hashes = _sorted_once(np.concatenate([self._hashes, *self._pending]))
            self._pending, self._pending_size = [], 0
        return self._hashes


def _hashes_as_written(values: Distinct, texts: list[str], hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The hashes of texts as written, beside those of their canonical forms: "a" and "A" are two."""
    if isinstance(values, np.ndarray) or not any(issubclass(kind, str) for kind in set(map(type, values))):
        return hashes
    other = [index for index, (value, text) in enumerate(zip(values, texts, strict=True))
             if isinstance(value, str) and value != text]  # fmt: skip
    if not other:
        return hashes
    written = hashes.copy()
    written[other] = hash_texts([values[index] for index in other])
    return written


def _sorted_once(hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The hashes ascending, each once; ``np.unique`` takes ten times as long for a million different ones."""
    hashes.sort()
    is_first = np.ones(len(hashes), dtype=bool)
    np.not_equal(hashes[1:], hashes[:-1], out=is_first[1:])
    distinct: npt.NDArray[np.uint64] = hashes[is_first]
    return distinct


def _most_frequent(counts: npt.NDArray[Any], number: int) -> list[int]:
    """The positions of the highest counts, highest first; ties in order."""
    if len(counts) > number:
        least = np.partition(counts, len(counts) - number)[len(counts) - number]
        above = np.flatnonzero(counts > least)
        positions = np.sort(np.concatenate([above, np.flatnonzero(counts == least)[: number - len(above)]]))
    else:
        positions = np.arange(len(counts))
    best: list[int] = positions[np.argsort(-counts[positions], kind="stable")].tolist()
    return best


def _count_values(values: Values) -> tuple[Distinct, npt.NDArray[Any], int]:
    """Distinct values in order of first appearance, their counts, and the number of nulls already left out."""
    rows = len(values)
    if isinstance(values, pd.Series):
        if _is_masked_number(values.dtype):
            values = pd.Series(values.dropna().to_numpy(dtype=cast(Any, values.dtype).numpy_dtype))
        dtype = values.dtype
        # One long text of a category may be in all rows: it is looked at once.
        is_category = isinstance(dtype, pd.CategoricalDtype)
        if is_category or isinstance(dtype, pd.StringDtype) or (isinstance(dtype, np.dtype) and dtype.kind in "biufM"):
            counted = values.cat.codes[values.notna()] if is_category else values
            counts = counted.value_counts(sort=False, dropna=True)
            numbers = counts.to_numpy(dtype=np.int64)
            counted_values = values.cat.categories[counts.index] if is_category else counts.index
            # Numbers and times stay numpy's own types, which are read faster than Python's objects.
            distinct = counted_values.to_numpy() if isinstance(dtype, np.dtype) else counted_values.tolist()
            return distinct, numbers, rows - int(numbers.sum())
    cells = values.tolist() if isinstance(values, pd.Series) else values
    try:
        counter = Counter(cells)
    except TypeError:  # lists, dicts and arrays in cells
        counter = Counter(map(_hashable, cells))
    return list(counter), np.fromiter(counter.values(), dtype=np.int64, count=len(counter)), 0


def _is_masked_number(dtype: Any) -> bool:
    """``Int64`` and its like; not ``boolean``."""
    return isinstance(getattr(dtype, "numpy_dtype", None), np.dtype) and dtype.kind in "iuf"


def clipped_text(text: str) -> str:
    """The beginning of a text, without the lone surrogates that no file could hold."""
    text = text[:LONGEST_TEXT]
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _hashable(cell: Any) -> Any:
    try:
        hash(cell)
    except TypeError:
        return str(cell.tolist() if isinstance(cell, np.ndarray) else cell)
    return cell


# --- sketches of all values of a column whose profile has only that of a sample --------------------------------------
#
# A source sends the distinct values, so that the sketch equals the one made of the rows. A million values take one to a
# few seconds, and large tables would take hours. So only requested columns are read, of tables with few enough rows,
# and a statement is stopped after some seconds. Others keep the sketch of a sample, marked as such, and
# tagframe.keys.checking looks up some of their values instead.


MOST_CELLS = 3_000_000
"""The most cells of a table that are read; further columns, in the table's order, keep the sketch of a sample."""
SECONDS = 10.0
"""The time limit of a statement."""

_known: weakref.WeakKeyDictionary[Corpus, dict[tuple[str, str], Sketch | None]] = weakref.WeakKeyDictionary()


def with_whole_sketches(
    corpus: Corpus, profiles: Sequence[TableProfile], wanted: Callable[[ColumnProfile], bool]
) -> list[TableProfile]:
    """The profiles with sketches of all values instead of samples, if their sources can compute them.

    Args:
        corpus: of the tables.
        profiles: some of them.
        wanted: selects the columns.

    Raises:
        ServerGone: a source is gone.
    """
    return [_with_sketches(corpus, profile, wanted) for profile in profiles]


def _with_sketches(corpus: Corpus, profile: TableProfile, wanted: Callable[[ColumnProfile], bool]) -> TableProfile:
    if not profile.estimated or not profile.rows:
        return profile
    lacking = [
        column
        for column in profile.columns
        if column.nulls != column.rows and (column.sketch is None or column.sketch.sampled) and wanted(column)
    ]
    lacking = lacking[: MOST_CELLS // profile.rows]
    known = _known.setdefault(corpus, {})
    missing = [column.name for column in lacking if (profile.id, column.name) not in known]
    if missing:
        hashed = _hashed(corpus, profile.id, missing)
        known.update({(profile.id, name): hashed.get(name) for name in missing})
    sketches = {column.name: known[profile.id, column.name] for column in lacking}
    columns = tuple(
        column if (sketch := sketches.get(column.name)) is None else replace(column, sketch=sketch)
        for column in profile.columns
    )
    return replace(profile, columns=columns)


def _hashed(corpus: Corpus, table: str, columns: Sequence[str]) -> dict[str, Sketch]:
    sketches: dict[str, Sketch] = {}
    name = corpus.source_table(table)
    # If a source cannot answer, the sketches of samples stay.
    with suppress(UnreadableTable, ColumnNotFound), ExitStack() as opened:
        session = session_of(corpus.engine(table), [name], opened)
        for column in columns:
            values = None if session is None else session.distinct(name, column)
            if values is not None and (sketch := sketch_of(values)) is not None:
                sketches[column] = sketch
    return sketches


def session_of(engine: Engine | None, tables: list[str], opened: ExitStack) -> SampledValues | None:
    """An engine's access to values of its tables, until the stack is closed; None if it has none.

    A statement is stopped after :data:`SECONDS`.
    """
    block = None if engine is None else engine.pushdown(tables)
    session = None if block is None else opened.enter_context(block)
    if not isinstance(session, SampledValues):
        return None
    session.stop_after(SECONDS)
    return session


def sketch_of(values: pd.Series) -> Sketch | None:
    """The profiler's sketch of a column."""
    shape = TableShape("", (str(values.name),), ("",))
    return profile_table("", shape, [Chunk(len(values), [values])]).columns[0].sketch

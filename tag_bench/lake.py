"""A synthetic lake: profiles of many tables with known keys, of any size, made in seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tagframe.corpus.canonical import hash_texts
from tagframe.corpus.profile import ColumnProfile, Sketch, TableProfile, TypeFamily
from tagframe.corpus.profiler import SKETCH_SIZE

ADJECTIVES = (
    "regional national local annual monthly daily pending archived active draft primary shared public private inbound "
    "outbound internal external partner retail wholesale online seasonal premium standard legacy global urban rural "
    "mobile certified joint interim"
).split()
NOUNS = (
    "customer order invoice product supplier shipment payment account branch employee contract claim policy vehicle "
    "driver route station sensor reading device ticket campaign budget project task patient visit drug trial sample "
    "course student teacher exam book author library museum artwork match player team league referee stadium city"
).split()
_NUMBERS = 60_000
_WORDS = 40_000


@dataclass(frozen=True)
class Lake:
    """Profiles and the keys between them, as pairs (left "table.column", right "table.column") of ids."""

    tables: list[TableProfile]
    keys: set[tuple[str, str]]


class _Maker:
    """Column profiles from positions in two pools of values, hashed once."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self._numbers = hash_texts(str(number) for number in range(_NUMBERS))
        self._words = hash_texts(f"word {number}" for number in range(_WORDS))

    def column(
        self, name: str, position: int, rows: int, values: npt.NDArray[np.int64], family: TypeFamily
    ) -> ColumnProfile:
        distinct = np.unique(values)
        hashes = np.sort((self._numbers if family == "integer" else self._words)[distinct])
        low, high = str(distinct[0]), str(distinct[-1])
        if family == "text":
            low, high = f"word {low}", f"word {high}"
        samples = tuple(str(value) if family == "integer" else f"word {value}" for value in distinct[:10])
        sketch = Sketch(hashes[:SKETCH_SIZE].copy(), complete=len(hashes) <= SKETCH_SIZE)
        return ColumnProfile(name, position, family, "", rows, 0, len(distinct), low, high, samples, sketch)


def synthetic_lake(tables: int = 1000, columns: int = 10, seed: int = 0) -> Lake:
    """A lake of one database: two fifths are dimensions with surrogate keys 1 … n, the rest facts that reference them.

    Args:
        tables: how many.
        columns: of each.
        seed: for the random numbers; the same lake for the same seed.
    """
    maker = _Maker(seed)
    names = [f"{adjective}_{noun}" for noun in NOUNS for adjective in ADJECTIVES]
    maker.random.shuffle(names)
    names = [f"{names[number % len(names)]}{number // len(names) or ''}" for number in range(tables)]
    dimensions = names[: max(1, 2 * tables // 5)]
    sizes = {name: int(maker.random.integers(20, 20_000)) for name in dimensions}
    own_name = {name: maker.random.random() < 0.5 for name in dimensions}
    profiles: list[TableProfile] = []
    keys: set[tuple[str, str]] = set()
    for name in names:
        rows = sizes.get(name) or int(maker.random.integers(100, 50_000))
        key = "id" if name not in sizes or not own_name[name] else f"{name}_id"
        made = [maker.column(key, 0, rows, np.arange(1, rows + 1), "integer")]
        if name not in sizes:
            made += _references(maker, name, rows, dimensions, sizes, own_name, keys)
        for position in range(len(made), columns):
            made.append(_attribute(maker, position, rows))
        profiles.append(TableProfile(f"lake.{name}", "lake", name, tuple(made), rows))
    return Lake(profiles, keys)


def _references(
    maker: _Maker,
    name: str,
    rows: int,
    dimensions: Sequence[str],
    sizes: dict[str, int],
    own_name: dict[str, bool],
    keys: set[tuple[str, str]],
) -> list[ColumnProfile]:
    made: list[ColumnProfile] = []
    for position in maker.random.choice(len(dimensions), size=min(3, len(dimensions)), replace=False):
        target = dimensions[position]
        values = maker.random.integers(1, sizes[target] + 1, size=rows)
        made.append(maker.column(f"{target}_id", len(made) + 1, rows, values, "integer"))
        keys.add((f"lake.{name}.{target}_id", f"lake.{target}.{f'{target}_id' if own_name[target] else 'id'}"))
    return made


def _attribute(maker: _Maker, position: int, rows: int) -> ColumnProfile:
    kind = int(maker.random.integers(4))
    if kind == 0:
        values = maker.random.integers(0, _WORDS, size=rows)
        return maker.column(f"name_{position}", position, rows, values, "text")
    if kind == 1:
        values = maker.random.integers(0, int(maker.random.integers(2, 30)), size=rows)
        return maker.column(f"category_{position}", position, rows, values, "text")
    if kind == 2:
        values = maker.random.integers(1950, 2025, size=rows)
        return maker.column(f"year_{position}", position, rows, values, "integer")
    values = maker.random.integers(0, int(maker.random.integers(10, _NUMBERS)), size=rows)
    return maker.column(f"quantity_{position}", position, rows, values, "integer")

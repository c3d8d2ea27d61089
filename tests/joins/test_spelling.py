"""What a plan joins does not hang on how a schema spells or sorts: prefixes, the order of tables, columns and rows."""

from __future__ import annotations

import random
import warnings

import numpy as np
import pandas as pd
import pytest

from tagframe.joins import JoinPlan
from tagframe.merging import join_plan, merge

pytestmark = pytest.mark.slow

Frames = dict[str, pd.DataFrame]

NOUNS = (
    "city team player course teacher product supplier branch station vehicle museum artist recipe farm clinic".split()
)
ROLES = ("home", "away", "buyer", "seller", "first", "second", "red", "blue")


class Maker:
    """A random schema: frames whose first table references the others; every row has a note of its own."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.nouns = [str(noun) for noun in self.random.permutation(NOUNS)]
        self.frames: Frames = {}

    def table(self, rows: int, **columns: object) -> str:
        noun = self.nouns.pop()
        start = int(self.random.integers(1, 5000)) if self.random.random() < 0.7 else 1
        notes = [f"{noun} no. {number}" for number in range(rows)]
        made = {f"{noun}_id": np.arange(start, start + rows), f"{noun}_note": notes, **columns}
        self.frames[noun] = pd.DataFrame(made)
        return noun

    def reference(self, to: str, rows: int, *, dangling: bool = False, coerced: bool = False) -> object:
        keys = self.frames[to][f"{to}_id"]
        drawn = self.random.choice(keys, rows)
        # As many as there are, so that the last ones are drawn, too: what a run of ids ends at says much.
        drawn[: min(rows, len(keys))] = keys[-min(rows, len(keys)) :]
        if dangling:
            drawn[:: max(8, rows // 3)] = int(keys.max()) + 7
        return [f"{key:07d}" for key in drawn] if coerced else drawn

    def to_first(self, noun: str) -> Frames:
        return {noun: self.frames[noun], **{name: frame for name, frame in self.frames.items() if name != noun}}

    def chain(self, **how: bool) -> Frames:
        last = self.table(8)
        for rows in (20, 60, 150)[: int(self.random.integers(1, 4))]:
            last = self.table(rows, **{f"{last}_id": self.reference(last, rows, **how)})
        return self.to_first(last)

    def star(self) -> Frames:
        ends = [self.table(int(self.random.integers(6, 30))) for _ in range(int(self.random.integers(2, 5)))]
        return self.to_first(self.table(120, **{f"{end}_id": self.reference(end, 120) for end in ends}))

    def triangle(self) -> Frames:
        far = self.table(40)
        heads = self.random.permutation(self.frames[far][f"{far}_id"])[:8]
        near = self.table(8, **{f"head_{far}_id": heads})
        both = {f"{far}_id": self.reference(far, 90), f"{near}_id": self.reference(near, 90)}
        return self.to_first(self.table(90, **both))

    def two_roles(self) -> Frames:
        thing = self.table(25)
        one, other = (str(role) for role in self.random.choice(ROLES, 2, replace=False))
        both = {f"{role}_{thing}_id": self.reference(thing, 100) for role in (one, other)}
        return self.to_first(self.table(100, **both))

    def composite(self) -> Frames:
        lines = self.table(60)
        frame = self.frames[lines].drop(columns=f"{lines}_id")
        frame = frame.assign(order_id=np.repeat(np.arange(501, 521), 3), line_no=[1, 2, 3] * 20)
        self.frames[lines] = frame
        noun = self.table(25)
        drawn = frame[["order_id", "line_no"]].sample(25, random_state=int(self.random.integers(99)))
        self.frames[noun] = self.frames[noun].assign(**{name: drawn[name].to_numpy() for name in drawn})
        return self.to_first(noun)

    def dangling(self) -> Frames:
        return self.chain(dangling=True)

    def coerced(self) -> Frames:
        return self.chain(coerced=True)


def spelt_anew(frames: Frames, seed: int) -> tuple[Frames, dict[str, str]]:
    """The frames with other prefixes, and all but the first table in another order; by new name the old one."""
    rng = random.Random(seed)
    first, *others = frames
    rng.shuffle(others)
    found, old = {}, {}
    for name in (first, *others):
        new = rng.choice(("a_", "z_", "")) + name
        frame = frames[name].sample(frac=1, random_state=rng.randrange(99))
        found[new] = frame[rng.sample(list(frame.columns), frame.shape[1])]
        old[new] = name
    return found, old


def joined(plan: JoinPlan, old: dict[str, str]) -> set[frozenset[tuple[str, str]]]:
    return {frozenset((old[table.partition(".")[2]], column) for table, column in group) for group in plan.classes()}


def rows(frames: Frames) -> list[tuple[str, ...]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frame = merge(frames, on_loss="allow")
    notes = sorted(column for column in frame.columns if column.endswith("_note"))
    return sorted(frame[notes].itertuples(index=False, name=None))


@pytest.mark.parametrize("shape", ["chain", "star", "triangle", "two_roles", "composite", "dangling", "coerced"])
@pytest.mark.parametrize("seed", range(6))
def test_neither_plan_nor_rows_hang_on_spelling_or_order(shape: str, seed: int):
    frames: Frames = getattr(Maker(seed), shape)()
    plan, merged = join_plan(frames), rows(frames)
    for again in range(3):
        other, old = spelt_anew(frames, 10 * seed + again)
        replanned = join_plan(other)
        assert joined(replanned, old) == joined(plan, {name: name for name in frames})
        assert len(replanned.ambiguous) == len(plan.ambiguous)
        assert rows(other) == merged

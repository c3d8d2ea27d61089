"""Many pairs are scored at once as one pair is."""

import math
import random

import numpy as np
import pytest

from tagframe.corpus.profile import ColumnProfile, Sketch, TableProfile
from tagframe.keys import infer_key_pairs
from tagframe.keys.column_names import about
from tagframe.keys.containment import Overlap, overlap, overlaps
from tagframe.keys.key_columns import columns_of
from tagframe.keys.scoring import Fits
from tagframe.keys.terms import name_match

SCHEMA = {
    "person": "id name birth_date manager_id",
    "address": "address_id street city person_id",
    "orders": "id buyer_id seller_person_id ship_address_id order_date isbn",
    "book": "isbn title author publisher_id",
    "publishers": "publisher_id publisher_name genre city",
    "calendar": "date week month",
    "frame_1": "id essn",
    "staff": "ssn staff_name dept supervisor_ssn _ 2",
    "departments": "dept_no name head_of_department street_name",
}


def _tables() -> list[TableProfile]:
    """Tables of which some columns are unique, some repeat and some are not known."""
    found = []
    for name, columns in SCHEMA.items():
        profiles = [
            ColumnProfile(
                column,
                position,
                "date" if column.endswith("date") else "text" if position % 2 else "integer",
                rows=None if position == 2 else 50,
                nulls=None if position == 2 else 0,
                distinct=None if position == 2 else 50 - 20 * (position % 3),
            )
            for position, column in enumerate(columns.split())
        ]
        found.append(TableProfile(f"db.{name}", "db", name, tuple(profiles), 50))
    return found


def test_names_fit_in_many_pairs_as_in_one() -> None:
    columns = columns_of(_tables())
    lefts, rights = (part.ravel() for part in np.indices((len(columns), len(columns))))
    means, matches = Fits(columns).of(lefts, rights)
    pairs = [(columns[left], columns[right]) for left, right in zip(lefts, rights, strict=True)]
    assert matches == [name_match(left, right) for left, right in pairs]
    assert means.tolist() == [about(left.spelt, right.owner.name) for left, right in pairs]
    assert 0 < sum(match.score > 0 for match in matches) < len(matches)


def _counted(column: Sketch | None, other: Sketch | None) -> Overlap | None:
    """The overlap of two sketches by the hashes up to the last that both have in full."""
    if column is None or other is None or other.sampled:
        return None
    cut = [one.hashes[-1] for one in (column, other) if len(one.hashes) and not (one.complete or one.sampled)]
    exact = column.complete and other.complete
    mine, theirs = ({*one.hashes} if exact else {h for h in one.hashes if h <= min(cut, default=h)}
                    for one in (column, other))  # fmt: skip
    if not mine:
        return None
    likely = (len(mine & theirs) + 1) / (len(mine) + 2)
    error = 0.0 if exact else math.sqrt(likely * (1 - likely) / len(mine))
    return Overlap(len(mine & theirs) / len(mine), len(mine), error)


def test_values_overlap_as_counted_one_by_one() -> None:
    draws = random.Random(3)
    sketches: list[Sketch | None] = [None]
    for size in (0, 1, 5, 40, 200):
        for complete, sampled in ((True, False), (False, False), (False, True)):
            hashes = sorted(draws.sample(range(1, 300), size))
            sketches.append(Sketch(np.array(hashes, dtype=np.uint64), complete, sampled))
    lefts, rights = (part.ravel() for part in np.indices((len(sketches), len(sketches))))
    forth, back = overlaps(sketches, lefts, rights)
    pairs = [(sketches[one], sketches[other]) for one, other in zip(lefts, rights, strict=True)]
    assert forth.listed() == [_counted(one, other) for one, other in pairs] == [overlap(*pair) for pair in pairs]
    assert back.listed() == [_counted(other, one) for one, other in pairs]
    assert {one is None for one in forth.listed()} == {True, False}


@pytest.mark.parametrize("tables", [[], _tables()[:1]])
def test_few_columns_have_no_keys(tables: list[TableProfile]) -> None:
    assert infer_key_pairs(tables, min_score=0.9) == []

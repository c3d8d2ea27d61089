"""The evidence for and against a pair of columns as numbers: the terms of its log odds.

A pair's log odds are the sum of its terms, each times its weight. The weights are in ``weights.json``, made by
``python -m tag_bench fit keys``: see :mod:`tag_bench.fit.keys`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib import resources

import numpy as np

from tagframe.keys import column_names as names
from tagframe.keys.containment import MOST, Overlaps
from tagframe.keys.key_columns import Column, Facts, Floats
from tagframe.keys.key_pair import is_unnamed

NAME_TERMS = tuple(
    """prior name exact_name same_name role_name direct_name key_word no_name named_elsewhere measure calendar
    surrogate same_table across families_differ left_unique target_unique target_nearly_unique target_repeats
    target_nulls target_own_key target_no_key target_first target_measure""".split()
)
VALUE_TERMS = tuple("""values values_of_text values_against_name dangling dangling_named covered unseen""".split())
TERMS = NAME_TERMS + VALUE_TERMS
"""The terms by name, in the order of their numbers."""

CALENDAR = names.CALENDAR
"""A unique column with one of these words numbers the rows of its table by time."""
_KEY_OF = 0.8
"""The score of a column that names a table whose key has another name."""
FAINT_NAME = 0.3
"""A name that fits less is hardly any evidence: both columns are called "id", or have a colour."""
_ATTRIBUTE = 0.2
_CODE = 0.45
_UNNAMED = 0.5
_BESIDE = 0.45
_PLACE = 0.5
_MISS = 0.08
"""The largest share that one dangling value counts for, however few values there are."""
_FEW_DANGLE = 0.97
"""With a contained share below this, more values dangle than in most clean data."""


@dataclass(frozen=True)
class KeyWeights:
    """The weights of a pair's terms.

    Attributes:
        terms: by name, in log odds; all of :data:`TERMS`.
        surest: the chance of a pair with all evidence. It is below 1, as a few of them are not keys: two columns with
            the same name and the same values that both reference a third.
    """

    terms: Mapping[str, float]
    surest: float

    @cached_property
    def of_names(self) -> tuple[float, ...]:
        """The weights of :data:`NAME_TERMS`, in their order."""
        return tuple(self.terms[name] for name in NAME_TERMS)

    @cached_property
    def of_values(self) -> tuple[float, ...]:
        """The weights of :data:`VALUE_TERMS`, in their order."""
        return tuple(self.terms[name] for name in VALUE_TERMS)

    def most_of_values(self, most: float = MOST) -> float:
        """The largest log odds that values can add, if their ratio is ``most``."""
        by_ratio = max(0.0, self.terms["values"]) + max(0.0, self.terms["values_of_text"])
        return by_ratio * most + max(0.0, self.terms["covered"]) + max(0.0, self.terms["unseen"])


@lru_cache(maxsize=1)
def default_weights() -> KeyWeights:
    """The weights in ``tagframe/keys/weights.json``."""
    data = json.loads(resources.files("tagframe.keys").joinpath("weights.json").read_text(encoding="utf-8"))
    return KeyWeights(data["terms"], data["surest"])


def weighted_sum(terms: Sequence[Floats] | Floats, weights: Sequence[float]) -> Floats:
    """The log odds of the terms, added in their order, so that equal pairs have equal odds."""
    total = np.zeros(len(terms[0]))
    for term, weight in zip(terms, weights, strict=True):
        total += term * weight
    return total


def name_match(left: Column, right: Column) -> names.NameMatch:
    """How well the names fit, considering also how often the columns' values repeat."""
    match = names.match(left.spelt, left.owner.name, right.spelt, right.owner.name, right.own)
    if not left.name.entity and left.name.key_word == 1.0 and match.score and right.unique == 1:
        if left.unique is not None and left.unique < 1:
            match = names.NameMatch(0.65, f"{match.rule}, not unique here", "same")
        elif left.is_text_code and right.is_text_code:
            match = match.scored(_CODE)
    score = _KEY_OF if left.name.key_word or right.is_natural_key else 0.75 * _KEY_OF
    if match.score < score and left.owner.id != right.owner.id and is_plainly_the_key(right):
        listed = names.is_plural(left.spelt) and not left.name.key_word and left.profile.family != "integer"
        if names.about(left.spelt, right.owner.name) >= (0.75 if right.profile.distinct else 1.0) and not listed:
            rule = f"{' '.join(left.name.words)} names {right.owner.name}, and this is its key"
            match = names.NameMatch(score, rule, "thing")
    if is_calendar(left, right, match):
        match = names.NameMatch(0.5, "the same day or time, unique there", "same", match.direct)
    elif match.score < _UNNAMED and _may_number_what_has_no_name(left, right):
        rule = f"{' '.join(left.name.words)} may be the {right.spelt} of a table without a name"
        match = names.NameMatch(_UNNAMED, rule, "thing")
    elif match.kind == "same" and right.unique == 1.0 and {*right.name.words[-1:]} & names.PLACES:
        match = match.scored(max(match.score, _PLACE), "the same place, unique there")
    elif _is_shared_attribute(left, right, match):
        match = match.scored(min(match.score, _ATTRIBUTE), f"both have a {' '.join(right.name.words)}")
    if _counts_things(left) and match.score:
        match = match.scored(min(match.score, _ATTRIBUTE), f"{' '.join(left.name.words)} may be a number of them")
    if match.kind in ("same", "role") and _is_no_key(right) and not names.is_identifier(right.spelt):
        # A key's own table is another one: both refer to it, or both have the attribute.
        match = match.scored(min(match.score, _BESIDE if right.name.key_word else _ATTRIBUTE))
    if match.kind == "same" and match.score < 1.0 and right.unique is None and right.profile.position > 0:
        # Not known to be unique, not its table's own key, not the first column: two references to a third table.
        match = match.scored(0.6 * match.score)
    return match


def is_plainly_the_key(column: Column) -> bool:
    """Whether a column is its table's key, whatever its name: declared, or the first one, unique, with a key word."""
    if column.is_natural_key:
        return True
    is_first = column.profile.position == 0 and column.name.key_word == 1.0
    return is_first and (column.unique == 1.0 or (column.unique is None and not column.is_beside_key))


def _may_number_what_has_no_name(left: Column, right: Column) -> bool:
    """Whether the left column numbers something, and the right one numbers the rows of a table without a given name."""
    return (
        is_unnamed(right.owner.name)
        and not right.name.entity
        and is_plainly_the_key(right)
        and left.name.key_word == 1.0
        and bool(left.name.entity)
        and not left.is_surrogate
    )


def _counts_things(column: Column) -> bool:
    """Whether the name of a number is that of many things: ``clubs``, ``num_clubs``, ``total_clubs``."""
    is_number = column.profile.family == "integer" and not column.name.key_word
    return is_number and names.is_plural(column.spelt) and "by" not in column.name.words


def _is_no_key(column: Column) -> bool:
    """Whether another column is its table's key, or its values repeat and its name is not that of a key.

    A second key is one, too: unique, and with a key word, or the first column beside a row number.
    """
    is_second = column.name.key_word > 0 or (column.profile.position <= 1 and not names.is_attribute(column.spelt))
    if column.unique == 1.0 and is_second:
        return False
    return column.is_beside_key or (column.unique is not None and column.unique <= 0.95 and column.own < 0.55)


def _is_shared_attribute(left: Column, right: Column, match: names.NameMatch) -> bool:
    """Whether the columns are an attribute of both tables, and neither table is about it."""
    if match.kind not in ("same", "role") or left.name.key_word or right.name.key_word or right.own >= 0.55:
        return False
    if names.about(left.spelt, right.owner.name) >= 0.75 or names.is_identifier(right.spelt):
        return False
    return right.profile.position > 0 or names.is_attribute(right.spelt)


def is_calendar(left: Column, right: Column, match: names.NameMatch) -> bool:
    """Whether both columns are days or times (by equal names, or as dates), and the right one is unique."""
    if right.unique != 1.0 or not set(right.name.words) <= CALENDAR:
        return False
    dates = left.profile.family == right.profile.family == "date" and left.name.words[-1:]
    return match.kind == "same" or (bool(dates) and left.name.words[-1] in CALENDAR and not match.score)


def name_terms(
    left: Facts,
    right: Facts,
    matches: Sequence[names.NameMatch],
    about: Floats,
    named_elsewhere: Floats,
    *,
    across: bool,
) -> list[Floats]:
    """The terms of names and structure, in the order of :data:`NAME_TERMS`, for n pairs: each of shape (n,).

    Args:
        left, right: the referencing and the referenced columns.
        matches: what their names say.
        about: how surely the left columns' names mean the right ones' tables, in [0, 1].
        named_elsewhere: how surely the left columns' names mean a third table, in [0, 1].
        across: whether they are in two databases.
    """
    count = len(matches)
    score = np.fromiter((match.score for match in matches), np.float64, count)
    direct = np.fromiter((match.direct for match in matches), bool, count)
    kind = np.array([match.kind for match in matches], dtype=object)
    is_same = kind == "same"
    dates = (left.family == "date") & (right.family == "date") & left.ends_in_day & (score == 0)
    calendar = right.numbers_days & (is_same | dates)
    elsewhere = named_elsewhere > np.maximum(score, about)
    unknown, of_day = np.isnan(right.unique), left.family == "date"
    measure = of_day | (left.family == "real") | (left.family == "boolean")
    is_a = (about == names.IS_A) & right.of_anyone & (not across)
    is_own_key = (right.own >= 0.55) & (right.key_word > 0)
    of_measure = (right.family == "real") | (right.family == "date") | (right.family == "boolean")
    terms = (
        np.ones(count),
        score,
        score >= 0.95,
        is_same,
        kind == "role",
        direct,
        left.key_word,
        (left.key_word == 0) & (score < FAINT_NAME),
        np.where(elsewhere, named_elsewhere, 0.0),
        measure & ~(calendar & of_day),
        calendar & of_day,
        left.is_surrogate & ~((is_same & left.has_entity) | is_a),
        left.table == right.table,
        np.full(count, across),
        left.family != right.family,
        left.unique == 1.0,
        right.unique == 1.0,
        (right.unique > 0.95) & (right.unique < 1.0),
        right.unique <= 0.95,
        np.where(unknown, 0.0, np.minimum(1.0, 5 * right.null_share)),
        is_own_key,
        ~is_own_key & (right.key_word < 1.0) & (right.own == 0),
        right.position == 0,
        of_measure,
    )
    return [np.asarray(term, dtype=np.float64) for term in terms]


def value_terms(
    left: Facts, right: Facts, score: Floats, contained: Overlaps, covered: Overlaps, ratio: Floats
) -> list[Floats]:
    """The terms of values, in the order of :data:`VALUE_TERMS`, for n pairs: each of shape (n,).

    Args:
        left, right: the referencing and the referenced columns.
        score: of what their names say.
        contained, covered: share of the left's values that the right holds, and the reverse.
        ratio: log likelihood ratio of the values; it is not used without values.
    """
    known = contained.known
    misses = (1.0 - contained.share) * contained.seen
    dangling = np.maximum(0.0, np.minimum(_FEW_DANGLE - contained.share, _MISS * misses))
    # Between databases, a name that fits does not make up for values that do not.
    says_its_key = (score >= _KEY_OF) & (right.own >= 0.75) & (left.database == right.database)
    terms = (
        ratio,
        np.where(left.family != "integer", ratio, 0.0),
        score * np.minimum(0.0, ratio),
        dangling,
        np.where(says_its_key, dangling * score, 0.0),
        np.where(covered.known, covered.share, 0.0),
    )
    return [*(np.where(known, term, 0.0) for term in terms), np.where(known, 0.0, 1.0)]

"""The plan over some tables of a corpus, from keys that are given and keys that are inferred."""

from __future__ import annotations

from collections.abc import Sequence

from tagframe.corpus import ColumnProfile, Corpus, TableProfile
from tagframe.corpus.sketching import with_whole_sketches
from tagframe.joins.components import Components
from tagframe.joins.placing import placed
from tagframe.joins.plan import JoinPlan
from tagframe.joins.planner import plan_joins
from tagframe.keys.checking import contains_in
from tagframe.keys.column_names import Similarity
from tagframe.keys.inference import infer_key_pairs
from tagframe.keys.key_pair import KeyPair

_LONGEST_KEY = 64
"""Texts that are longer on average are no keys."""


def plan_tables(
    corpus: Corpus,
    tables: Sequence[str],
    *,
    given: Sequence[KeyPair] = (),
    keys: Sequence[KeyPair] | None = None,
    similarity: Similarity | None = None,
    stack_unions: bool = True,
    bridges: Sequence[str] = (),
) -> JoinPlan:
    """The plan that joins the tables, from the first one.

    Args:
        corpus: of the tables.
        tables: their ids.
        given: key pairs that the plan has to have (see :func:`~tagframe.joins.keys_on`); tables that these leave apart
            are joined on ``keys``.
        keys: key pairs; those that :func:`~tagframe.keys.infer_key_pairs` finds where None.
        similarity: likeness in meaning of two names.
        stack_unions: whether tables of one shape are joined as one table, their stack.
        bridges: ids of tables that may be added where the others do not connect without.

    Raises:
        InvalidArgument: the given key pairs close a circle.
        NotConnected: no key pairs connect the tables.
    """
    profiles = [corpus.profile(table) for table in tables]
    around = [corpus.profile(table) for table in bridges]
    if keys is None:
        # Keys that leave no table apart need none beside them.
        keys = []
        if len(given) < len(profiles) - 1:
            keys = _inferred(corpus, profiles, around, similarity)
    plan = plan_joins(profiles, keys, given=given, anchor=profiles[0].id, bridges=around, stack_unions=stack_unions)
    return placed(plan, corpus)


def _inferred(
    corpus: Corpus, profiles: Sequence[TableProfile], around: Sequence[TableProfile], similarity: Similarity | None
) -> list[KeyPair]:
    """From the profiles, and where these leave a key in doubt, as those of large tables do, from the values there."""
    known = [*profiles, *around]
    found = infer_key_pairs(known, similarity=similarity, across_sources=True, read=corpus.read)
    parts = Components(profile.id for profile in known)
    for key in found:
        if key.evidence.origin != "inferred" or key.evidence.contained is not None:
            parts.join(key.left_table, key.right_table)
    if len({parts.root(profile.id) for profile in profiles}) <= 1 or not any(one.estimated for one in known):
        return found
    known = with_whole_sketches(corpus, known, _may_be_key)
    return infer_key_pairs(
        known, similarity=similarity, across_sources=True, read=corpus.read, contains=contains_in(corpus)
    )


def _may_be_key(column: ColumnProfile) -> bool:
    """Whether it is worth a pass over a column to know its values."""
    if column.family not in ("integer", "text"):
        return False
    return sum(map(len, column.samples)) <= _LONGEST_KEY * len(column.samples)

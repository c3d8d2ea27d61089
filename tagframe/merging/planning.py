"""The plan over some tables of a corpus, from keys that are given and keys that are inferred."""

from __future__ import annotations

from collections.abc import Sequence

from tagframe.corpus import Corpus
from tagframe.joins.placing import placed
from tagframe.joins.plan import JoinPlan
from tagframe.joins.planner import plan_joins
from tagframe.keys.inference import infer_key_pairs
from tagframe.keys.key_pair import KeyPair
from tagframe.keys.names import Similarity


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
            keys = infer_key_pairs([*profiles, *around], similarity=similarity, across_sources=True, read=corpus.read)
    plan = plan_joins(profiles, keys, given=given, anchor=profiles[0].id, bridges=around, stack_unions=stack_unions)
    return placed(plan, corpus)

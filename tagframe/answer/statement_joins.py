"""The joins of a statement as a plan, for its picture: those that it has, not those that it could have."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tagframe.corpus.references import JoinColumns
from tagframe.errors import InvalidArgument, NotConnected
from tagframe.joins import JoinPlan, keys_between
from tagframe.joins.infer import plan_tables
from tagframe.keys import KeyPair
from tagframe.keys.key_pair import Evidence
from tagframe.retrieval.links import tables_around

if TYPE_CHECKING:
    from tagframe.answer.execution import Execution


_LEAST = 0.001
_WRITTEN = Evidence(origin="given", reason="no key, but the statement has it")


def plan_of(execution: Execution) -> JoinPlan | None:
    """The plan of a statement's joins; None if they do not connect its tables, or go round in a circle."""
    if execution.reader is None or len(execution.tables) < 2:
        return None
    keys = list(_keys(execution))
    try:
        return plan_tables(
            execution.reader.corpus, execution.tables, given=keys, keys=keys, stack_unions=False, min_chance=0.0
        )
    except (NotConnected, InvalidArgument):
        return None


def _keys(execution: Execution) -> Iterator[KeyPair]:
    """A key pair for each two tables that the statement joins, with the chance that is known of it."""
    assert execution.reader is not None
    statement, corpus = execution.reader.read(execution.query.sql), execution.reader.corpus
    pairs: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    for left, right in [] if statement is None else statement.joined_columns():
        (one, mine), (other, theirs) = sorted([left[:2], right[:2]])
        pairs[one, other].append((mine, theirs))
    ids = sorted(execution.tables)
    known = keys_between(corpus, ids, tables_around(corpus, ids)).keys
    for (one, other), columns in pairs.items():
        own, others = (tuple(pair[side] for pair in columns) for side in (0, 1))
        pair = KeyPair(one, own, other, others, _LEAST, _WRITTEN)
        sides = JoinColumns.of(vars(pair)).sides
        yield next((key for key in known if not key.signs and JoinColumns.of(vars(key)).sides == sides), pair)

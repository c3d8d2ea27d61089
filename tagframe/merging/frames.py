"""Keys, plans and merges of frames, which are opened as a corpus for the call.

Frames are given one by one, as a list, or by name; see :func:`~tagframe.merging.given_frames.named_frames` for what a
frame without a name is called. The first one is the anchor: the plan starts from its rows. An index is used as far as
its levels have names: they are columns, the first ones of their frame, and so of the result, whose own index is fresh.
Frames of one shape whose names differ in a number or a date ({"sales_2023": …, "sales_2024": …}), and that no key
joins, are stacked and joined as one, unless ``stack=False``. Frames without a name are not, since nothing but their
columns says so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pandas as pd

from tagframe import results
from tagframe.corpus.references import FORM, NamedTable
from tagframe.errors import DoubtfulJoinWarning, InvalidArgument
from tagframe.joins.aggregates import Aggregate
from tagframe.joins.infer import accepted_keys, plan_tables
from tagframe.joins.key_text import On, key_of, keys_on
from tagframe.joins.plan import JoinPlan
from tagframe.joins.steps import How
from tagframe.keys.column_names import Similarity
from tagframe.keys.key_columns import NAMED, is_unnamed
from tagframe.keys.key_pair import KeyPair
from tagframe.merging.advice import Reaction, say_stacked, warn
from tagframe.merging.given_frames import Frames, GivenFrames
from tagframe.merging.run import Where, run_plan

_KEY_WORD = re.compile(r"(?:[_\s.-]+|(?<=[a-z]))(?:id|key|code|no|nr|num|number|fk|ref)$|^(?:id|key|code)$", re.I)
"""The end of a key column's name that says that it is one: what stands before it is what it refers to."""


def infer_keys(*frames: Frames, similarity: Similarity | None = None, **named: pd.DataFrame) -> list[KeyPair]:
    """Find the key pairs between frames that are likelier true than not, best first, as :func:`join_plan` uses them.

    >>> import pandas as pd
    >>> loans = pd.DataFrame({"loan_id": [1, 2, 3], "client_id": [20, 10, 20]})
    >>> clients = pd.DataFrame({"client_id": [10, 20, 30], "name": ["Ann", "Bo", "Cy"]})
    >>> [(key.left, key.right) for key in infer_keys({"loans": loans, "clients": clients})]
    [('frames.loans.client_id', 'frames.clients.client_id')]

    Args:
        *frames: one by one, or as one list or mapping from names.
        similarity: likeness in meaning of two names, in [0, 1].
        **named: frames by name, instead: ``infer_keys(animals=…, owners=…)``. Names tell keys; where frames have none
            and no key is found, a warning says so.

    Raises:
        InvalidArgument: no frames, frames with and without names, what is not a frame, or columns or index levels that
            cannot be told apart.
    """
    if frames and named:
        raise InvalidArgument(f"frames are all given by name, or none; {', '.join(named)} are, and others are not")
    given = GivenFrames.of((named,) if named else frames)
    found = accepted_keys(given.profiled(), given.ids, similarity)
    if not found and not given.are_named:
        warn(f"no keys are found between frames without names, which tell them: {NAMED}", DoubtfulJoinWarning)
    return found


def join_plan(
    *frames: Frames,
    on: On | None = None,
    keys: Sequence[str | KeyPair] | None = None,
    similarity: Similarity | None = None,
    stack: bool = True,
) -> JoinPlan:
    """Plan how to join the frames, starting from the first; see :func:`~tagframe.joins.plan_joins`.

    >>> import pandas as pd
    >>> orders = pd.DataFrame({"order": [1, 2, 3], "buyer": [20, 10, 20]})
    >>> customers = pd.DataFrame({"id": [10, 20], "name": ["Ann", "Bo"]})
    >>> print(join_plan({"orders": orders, "customers": customers}, on="orders.buyer = customers.id"))
    frames.orders
    └─ frames.orders.buyer = frames.customers.id  (many-to-one, 1.00)

    Args:
        *frames: one by one, or as one list or mapping from names.
        on: key pairs to join on, as for :func:`merge`.
        keys: the key pairs to choose from, in place of inferred ones; as text, ``"a.x = b.y"``, they are sure.
        similarity: likeness in meaning of two names, in [0, 1].
        stack: whether frames of one shape, as ``sales_2023`` and ``sales_2024``, are joined as one.

    Raises:
        InvalidArgument: no frames, what is not a frame, columns or index levels that cannot be told apart, or an
            ``on`` that is not understood.
        TableNotFound, ColumnNotFound: ``on`` names no table or column of the frames.
        NotConnected: no key pairs connect the frames.
    """
    return _plan(GivenFrames.of(frames), on, keys, similarity, stack)


def _plan(
    given: GivenFrames,
    on: On | None,
    keys: Sequence[str | KeyPair] | None,
    similarity: Similarity | None,
    stack: bool,
) -> JoinPlan:
    tables = [NamedTable.of(given.corpus.profile(id)) for id in given.ids]
    pairs = [] if on is None else keys_on(on, tables)
    joins_all = len(pairs) == len(given.ids) - 1
    corpus = given.profiled(pairs if joins_all else None)
    stack_unions = stack and given.are_named
    return plan_tables(
        corpus,
        given.ids,
        anchor=given.ids[0],
        given=pairs,
        keys=None if keys is None else _read(keys, tables),
        similarity=similarity,
        stack_unions=stack_unions,
    )


def _read(keys: Sequence[str | KeyPair], tables: Sequence[NamedTable]) -> list[KeyPair]:
    if isinstance(keys, str) or not isinstance(keys, Sequence) or not all(isinstance(k, str | KeyPair) for k in keys):
        raise InvalidArgument(f"keys= is a list of key pairs, as in [{FORM}]; got {keys!r}")
    return [key_of(key, tables) if isinstance(key, str) else key for key in keys]


def merge(
    *frames: Frames,
    on: On | None = None,
    plan: JoinPlan | None = None,
    stack: bool | None = None,
    how: How = "inner",
    on_fanout: Reaction = "raise",
    on_loss: Reaction = "warn",
    on_ambiguous: Reaction = "warn",
    columns: Sequence[str] | None = None,
    where: Where | None = None,
    limit: int | None = None,
    aggregate: Aggregate | None = None,
) -> pd.DataFrame:
    """Join frames into one; ``frame.tag.merge_report`` accounts for every row.

    >>> import pandas as pd
    >>> loans = pd.DataFrame({"loan_id": [1, 2, 3], "client_id": [20, 10, 20]})
    >>> clients = pd.DataFrame({"client_id": [10, 20, 30], "name": ["Ann", "Bo", "Cy"]})
    >>> merge(loans, clients)
       loan_id  client_id name
    0        1         20   Bo
    1        2         10  Ann
    2        3         20   Bo

    Args:
        *frames: one by one, or as one list or mapping from names. The rows of the first one are kept as they are:
            each once, in their order.
        on: how they join, instead of inferred keys: ``"orders.buyer = customers.id"``, ``"buyer = id"`` where each
            name is in one frame, ``"day"`` for a column that frames share, or a list: names in a list are one key of
            several columns, ``["country", "year"]``. Frames that these leave apart are joined on inferred keys.
        plan: the whole plan, instead; see :func:`join_plan`.
        stack: whether frames of one shape, as ``sales_2023`` and ``sales_2024``, are joined as one; the report then
            begins with that. Where None they are, with a warning if the first frame is one of them, or ``on`` names it.
        how: the kind of every join. "left" keeps the rows of the first frame.
        on_fanout: what to do where a step repeats rows of the first frame: "raise", "warn" or "allow".
        on_loss: what to do where rows of the first frame are lost; other frames lose rows by nature.
        on_ambiguous: what to do where other plans are as sure.
        columns: those of the result, by the name that they have there, or as ``column`` or ``frame.column``; all where
            None.
        where: keeps the joined rows that fit: a mapping from a column, named as for ``columns``, to a value, a list of
            values or a function from the column to booleans; or an expression for :meth:`pandas.DataFrame.query`.
        limit: at most so many rows.
        aggregate: frames of which one row a key is joined, so that they repeat no rows, as
            {"payments": {"amount": "sum"}}; with "sum", "mean", "min", "max", "count" or "nunique".

    Returns:
        A frame with a fresh index; columns that clash carry their table's name.

    Raises:
        InvalidArgument: no frames, what is not a frame, columns or index levels that cannot be told apart, or an
            argument that is not understood.
        TableNotFound, ColumnNotFound: an argument names no table or column of the frames.
        NotConnected: no key pairs connect the frames.
        FanOut: a step would repeat rows of the first frame.
        RowsLost: rows of the first frame are lost, with ``on_loss="raise"``.
    """
    if plan is not None and on is not None:
        raise InvalidArgument("pass on= or plan=, not both: plan.use(…) gives a plan with another key")
    given = GivenFrames.of(frames)
    if plan is None:
        plan = _plan(given, on, None, None, stack is not False)
        if stack is None:
            say_stacked(plan, on)
    frame, report = run_plan(
        plan,
        given.corpus,
        how=how,
        on_fanout=on_fanout,
        on_loss=on_loss,
        on_ambiguous=on_ambiguous,
        columns=columns,
        where=where,
        limit=limit,
        aggregate=aggregate,
    )
    results.remember(frame, merge_report=report, meanings=column_meanings(plan))
    return frame


def column_meanings(plan: JoinPlan) -> dict[str, str]:
    """Name in the merged frame → what it means, for columns named after a table whose own name was made up.

    ``frame_2.name`` tells a reader nothing. It is called by the key that leads to its table (``team.name`` where
    ``team_id = frame_2.id``), or by its own name alone where no key says more.
    """
    sources = plan.by_id
    meanings = {}
    for (table, column), name in plan.column_names().items():
        source = sources[table]
        if is_unnamed(source.name) and name in (f"{source.name}.{column}", f"{source.id}.{column}"):
            role = _role(plan, table)
            meanings[name] = f"{role}.{column}" if role else column
    return meanings


def _role(plan: JoinPlan, table: str) -> str:
    """What the rows of a table are to those that refer to them: "team" for ``team_id = table.id``; "" if unknown."""
    for step in plan.steps:
        if step.table == table and not step.grows:
            return _KEY_WORD.sub("", str(step.base_columns[0]))
        if step.base == table and step.cardinality == "one-to-many":
            return _KEY_WORD.sub("", str(step.columns[0]))
    return ""

"""Keys, plans and merges of frames, which are opened as a corpus for the call.

Frames are given one by one, as a list, or by name; :func:`~tagframe.merging.given_frames.named_frames` gives names to
frames without one. The first frame is the anchor: the plan starts from its rows. The named levels of an index become
the first columns of their frame; the result has a fresh index. Frames with the same columns whose names differ in a
number or a date ({"sales_2023": …, "sales_2024": …}), and that no key joins, are stacked and joined as one, unless
``stack=False``. Frames without a name are not stacked.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, cast

import pandas as pd

from tagframe import results
from tagframe.corpus import Corpus
from tagframe.corpus.references import FORM, NamedTable
from tagframe.errors import DoubtfulJoinWarning, InvalidArgument
from tagframe.joins.aggregates import Aggregate
from tagframe.joins.infer import accepted_keys, corpus_keys, plan_tables
from tagframe.joins.key_text import On, key_of, keys_on
from tagframe.joins.plan import JoinPlan
from tagframe.joins.planner import MIN_CHANCE
from tagframe.joins.roles import joined_tables, roles_in, without_roles
from tagframe.joins.steps import How
from tagframe.keys.key_columns import NAMED, is_unnamed
from tagframe.keys.key_pair import KeyPair
from tagframe.merging.advice import Reaction, say_stacked, warn
from tagframe.merging.given_frames import Frames, GivenFrames
from tagframe.merging.run import Validate, Where, run_plan

_KEY_WORD = re.compile(r"(?:[_\s.-]+|(?<=[a-z]))(?:id|key|code|no|nr|num|number|fk|ref)$|^(?:id|key|code)$", re.I)
"""The end of a key column's name that marks it as a key: the part before it names the thing that it refers to."""


def infer_keys(*frames: Frames | Corpus, **named: pd.DataFrame) -> list[KeyPair]:
    """Find the key pairs between frames that are more likely right than wrong, best first, as in :func:`join_plan`.

    >>> import pandas as pd
    >>> loans = pd.DataFrame({"loan_id": [1, 2, 3], "client_id": [20, 10, 20]})
    >>> clients = pd.DataFrame({"client_id": [10, 20, 30], "name": ["Ann", "Bo", "Cy"]})
    >>> [(key.left, key.right) for key in infer_keys({"loans": loans, "clients": clients})]
    [('frames.loans.client_id', 'frames.clients.client_id')]

    Args:
        *frames: one by one, or as one list or mapping from names; or a corpus, for the keys of its databases and
            folders.
        **named: frames by name, instead: ``infer_keys(animals=…, owners=…)``. Keys are found by names: if the frames
            have no names and no key is found, a warning says so.

    Raises:
        InvalidArgument: no frames, frames with and without names, something that is not a frame, or columns or index
            levels with the same name.
    """
    if frames and named:
        raise InvalidArgument(f"give a name to all frames or to none; only {', '.join(named)} have one")
    if len(frames) == 1 and isinstance(frames[0], Corpus):
        return corpus_keys(frames[0])
    given = GivenFrames.of((named,) if named else cast("tuple[Frames, ...]", frames))
    found = accepted_keys(given.profiled(), given.ids)
    if not found and not given.are_named:
        warn(f"no keys found: keys are found by names, and the frames have none; {NAMED}", DoubtfulJoinWarning)
    return found


def join_plan(
    *frames: Frames,
    on: On | None = None,
    keys: Sequence[str | KeyPair] | None = None,
    stack: bool = True,
    min_chance: float = MIN_CHANCE,
    roles: Literal["all"] | None = None,
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
        keys: the key pairs to choose from, in place of inferred ones; given as text, ``"a.x = b.y"``, they are certain.
        stack: whether frames with the same columns, such as ``sales_2023`` and ``sales_2024``, are joined as one.
        min_chance: no inferred key pair with a smaller chance joins frames, in [0, 1].
        roles: "all" joins a frame once for each column that refers to it, as for :func:`merge`.

    Raises:
        InvalidArgument: no frames, something that is not a frame, columns or index levels with the same name, or an
            ``on`` that is not understood.
        TableNotFound, ColumnNotFound: ``on`` names no table or column of the frames.
        NotConnected: no key pairs connect the frames.
    """
    return _plan(GivenFrames.of(frames), on, keys, stack, min_chance, roles)


def _plan(
    given: GivenFrames,
    on: On | None,
    keys: Sequence[str | KeyPair] | None,
    stack: bool,
    min_chance: float,
    roles: Literal["all"] | None,
) -> JoinPlan:
    check_roles(roles)
    tables = [NamedTable.of(given.corpus.profile(id)) for id in given.ids]
    pairs = [] if on is None else keys_on(on, tables)
    joins_all = len(pairs) == len(joined_tables(given.ids, pairs)) - 1
    corpus = given.profiled(without_roles(pairs, given.ids) if joins_all else None)
    stack_unions = stack and given.are_named
    return plan_tables(
        corpus,
        given.ids,
        anchor=given.ids[0],
        given=pairs,
        keys=None if keys is None else _read(keys, tables),
        stack_unions=stack_unions,
        min_chance=min_chance,
        roles=roles,
    )


def check_roles(roles: object) -> None:
    """Raise InvalidArgument if ``roles=`` is neither "all" nor None."""
    if roles not in ("all", None):
        raise InvalidArgument(
            f"roles must be 'all' or None; got {roles!r}. on=\"a.x = b.y as role\" joins a single role"
        )


def _read(keys: Sequence[str | KeyPair], tables: Sequence[NamedTable]) -> list[KeyPair]:
    if isinstance(keys, str) or not isinstance(keys, Sequence) or not all(isinstance(k, str | KeyPair) for k in keys):
        raise InvalidArgument(f"keys= must be a list of key pairs, such as [{FORM}]; got {keys!r}")
    found = [key_of(key, tables) if isinstance(key, str) else key for key in keys]
    if roles := roles_in(found, {table.id for table in tables}):
        raise InvalidArgument(
            "keys= lists keys that may be chosen, and a role is always joined: pass the key of "
            f"{next(iter(roles))} in on="
        )
    return found


def merge(
    *frames: Frames,
    on: On | None = None,
    plan: JoinPlan | None = None,
    stack: bool | None = None,
    roles: Literal["all"] | None = None,
    how: How = "inner",
    on_fanout: Reaction = "raise",
    on_loss: Reaction = "warn",
    on_ambiguous: Reaction = "warn",
    min_chance: float = MIN_CHANCE,
    columns: Sequence[str] | None = None,
    where: Where | None = None,
    limit: int | None = None,
    aggregate: Aggregate | None = None,
    distinct: bool = False,
    validate: Validate | None = None,
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
        *frames: one by one, or as one list or mapping from names. Each row of the first frame appears once, in the
            frame's order.
        on: how they join, instead of inferred keys: ``"orders.buyer = customers.id"``, ``"buyer = id"`` if each name is
            in one frame only, ``"day"`` for a column that frames share, or a list. Names in a list form one key of
            several columns, ``["country", "year"]``. Frames that these do not connect are joined on inferred keys.
            ``"orders.buyer_id = users.id as buyer"`` joins users in a role: once more with each role, with columns such
            as ``buyer.name``; to join them further, write the role in place of the frame, ``"buyer.city = cities.id"``.
        plan: the whole plan, instead; see :func:`join_plan`.
        stack: whether frames with the same columns, such as ``sales_2023`` and ``sales_2024``, are joined as one; the
            report then begins with the stack. None stacks them, with a warning if the first frame is one of them, or
            ``on`` names one.
        roles: "all" joins a frame once for each column of another that refers to it (``buyer_id`` and ``seller_id``),
            in the role that the column's name says. None joins it once.
        how: the kind of every join. "left" keeps the rows of the first frame, "right" those of the others; rows without
            a partner come last.
        on_fanout: what to do if a step repeats rows of the first frame: "raise", "warn" or "allow".
        on_loss: what to do if rows of the first frame are lost; lost rows of other frames cause no warning.
        on_ambiguous: what to do if other plans are equally likely.
        min_chance: no inferred key pair with a smaller chance joins frames, in [0, 1].
        columns: the columns of the result, by their name there, or as ``column`` or ``frame.column``; None for all.
        where: selects joined rows: a mapping from a column, named as for ``columns``, to a value, a list of values or a
            function from the column to booleans; or an expression for :meth:`pandas.DataFrame.query`.
        limit: the largest number of rows.
        aggregate: frames that are reduced to one row per key before the join, so that they repeat no rows:
            {"payments": {"amount": "sum"}}; with "sum", "mean", "min", "max", "count", "nunique" or "first"; or
            {"customers": "first"}, for the first row of each key.
        distinct: whether rows that are exact copies of others count once, in all frames but the first.
        validate: what to check of keys, as in :meth:`pandas.DataFrame.merge`: "one_to_one" ("1:1"), "one_to_many"
            ("1:m") or "many_to_one" ("m:1"), for every step; null keys may repeat.

    Returns:
        A frame with a fresh index; columns with the same name get their table's name in front.

    Raises:
        InvalidArgument: no frames, something that is not a frame, columns or index levels with the same name, or an
            argument that is not understood.
        TableNotFound, ColumnNotFound: an argument names no table or column of the frames.
        NotConnected: no key pairs connect the frames.
        KeysRepeat: keys repeat, against ``validate``.
        FanOut: a step would repeat rows of the first frame.
        RowsLost: rows of the first frame are lost, with ``on_loss="raise"``.
    """
    if plan is not None and (on is not None or roles is not None):
        raise InvalidArgument(
            f"pass {'on=' if roles is None else 'roles='} or plan=, not both: plan.use(…) gives a plan with another key"
        )
    given = GivenFrames.of(frames)
    if plan is None:
        plan = _plan(given, on, None, stack is not False, min_chance, roles)
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
        distinct=distinct,
        validate=validate,
    )
    results.remember(frame, merge_report=report, meanings=column_meanings(plan))
    return frame


def column_meanings(plan: JoinPlan) -> dict[str, str]:
    """Name in the merged frame → its meaning, for columns named after a table without a name of its own.

    ``frame_2.name`` means nothing to a reader. The column is named by the key that leads to its table (``team.name`` if
    ``team_id = frame_2.id``), or by its own name alone.
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
    """The role of a table's rows for the rows that refer to them: "team" for ``team_id = table.id``; "" if unknown."""
    for step in plan.steps:
        if step.table == table and not step.grows:
            return _KEY_WORD.sub("", str(step.base_columns[0]))
        if step.base == table and step.cardinality == "one-to-many":
            return _KEY_WORD.sub("", str(step.columns[0]))
    return ""

"""From key pairs to a join plan: the most trusted spanning tree, entered where it multiplies no rows."""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tagframe.corpus.profile import TableProfile
from tagframe.errors import InvalidArgument, NotConnected, TableNotFound, did_you_mean
from tagframe.joins.plan import Cardinality, JoinPlan, JoinStep, PlanTable
from tagframe.joins.stacks import Stack, best_of, renamed_hints, renamed_keys, stacks_of
from tagframe.keys.inference import infer_key_pairs
from tagframe.keys.key_pair import Evidence, KeyPair
from tagframe.keys.scoring import log_odds, probability
from tagframe.keys.unions import infer_unions

_ALTERNATIVES = 5
_NEAR = 4.0
"""Keys to one column are nearly as sure where all are likelier than not, or their log odds differ by less: then their
position decides, or the question."""
_LATER = 0.01
"""What each place further to the right costs among them."""
_FAINT = 0.03
"""Where nothing better connects the tables, a key pair that scores at least this does; its score says so."""
_ENOUGH = 6.0
"""Log odds beyond this tell no key from another."""
_PLAIN_NAME = 4.0
"""What a name that fits in full is worth beside them."""
_SIBLING = 2.0
"""What two references to one missing table lose against a reference, in log odds."""


@dataclass(frozen=True)
class _Edge:
    """Two tables that may be joined; ``strength`` is in log odds."""

    key: KeyPair
    strength: float

    @property
    def ends(self) -> tuple[str, str]:
        return self.key.left_table, self.key.right_table

    @property
    def order(self) -> tuple[float, str, tuple[str, ...], str, tuple[str, ...]]:
        key = self.key
        return (-self.strength, key.left_table, key.left_columns, key.right_table, key.right_columns)


def _siblings(keys: Sequence[KeyPair], wanted: frozenset[str]) -> list[KeyPair]:
    """Pairs of columns that reference one column of a table that is not among ``wanted``."""
    by_target: dict[tuple[str, tuple[str, ...]], list[KeyPair]] = defaultdict(list)
    for key in keys:
        if key.left_table in wanted and key.right_table not in wanted:
            by_target[key.right_table, key.right_columns].append(key)
    found = []
    for (table, _), group in sorted(by_target.items()):
        for i, one in enumerate(group):
            for other in group[i + 1 :]:
                if one.left_table == other.left_table:
                    continue
                strength = min(log_odds(one.score), log_odds(other.score)) - _SIBLING
                score = probability(strength)
                names = (one.left_columns, other.left_columns)
                first, second = (
                    (one, other) if (one.left_table, names[0]) < (other.left_table, names[1]) else (other, one)
                )
                found.append(
                    KeyPair(
                        first.left_table,
                        first.left_columns,
                        second.left_table,
                        second.left_columns,
                        score,
                        Evidence(origin="shared", reason=f"both reference {table}"),
                    )
                )
    return found


class _Components:
    """Union-find over table ids."""

    def __init__(self, tables: Iterable[str]) -> None:
        self.parent = {table: table for table in tables}

    def root(self, table: str) -> str:
        while self.parent[table] != table:
            self.parent[table] = self.parent[self.parent[table]]
            table = self.parent[table]
        return table

    def join(self, one: str, other: str) -> bool:
        """Whether they were apart."""
        a, b = self.root(one), self.root(other)
        self.parent[max(a, b)] = min(a, b)
        return a != b

    def groups(self) -> list[list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for table in sorted(self.parent):
            found[self.root(table)].append(table)
        return list(found.values())


def _planned(key: KeyPair) -> float:
    """How strongly a plan prefers the key: its log odds, as far as they still tell, and how plainly it is named.

    ``UserId`` is *the* user of a row, ``OwnerUserId`` one of them.
    """
    return min(log_odds(key.score), _ENOUGH) + _PLAIN_NAME * key.evidence.name


def _ranked(keys: Sequence[KeyPair], tables: Mapping[str, TableProfile], hints: Mapping[KeyPair, float]) -> list[_Edge]:
    """The keys as edges. Among keys of one table to one column that are nearly as sure, the first column leads."""
    groups: dict[tuple[str, str, tuple[str, ...]], list[KeyPair]] = defaultdict(list)
    for key in keys:
        groups[key.left_table, key.right_table, key.right_columns].append(key)
    edges = []
    for (left, _, _), group in groups.items():
        surest = max(_planned(key) for key in group)
        places = {column.name: place for place, column in enumerate(tables[left].columns)}
        group.sort(key=lambda key: tuple(places[name] for name in key.left_columns))
        for rank, key in enumerate(group):
            strength = _planned(key)
            if strength > surest - _NEAR or key.score > 0.5:
                strength = surest - _LATER * rank
            edges.append(_Edge(key, strength + hints.get(key, 0.0)))
    return edges


def _tree(tables: Iterable[str], edges: Sequence[_Edge]) -> tuple[list[_Edge], _Components]:
    """Kruskal's maximum spanning tree (or forest)."""
    parts = _Components(tables)
    chosen = [edge for edge in sorted(edges, key=lambda e: e.order) if parts.join(*edge.ends)]
    return chosen, parts


def _bridged(parts: _Components, edges: Sequence[_Edge], tables: frozenset[str]) -> list[str] | None:
    """The tables on the cheapest path that leaves the first component and ends in another; None where there is none."""
    neighbours: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for edge in edges:
        # Each step costs at least something, so that few weaker steps are preferred to many strong ones.
        cost = 1.0 + math.log1p(math.exp(-edge.strength))
        one, other = edge.ends
        neighbours[one].append((cost, other))
        neighbours[other].append((cost, one))
    origin = parts.groups()[0]
    heap: list[tuple[float, str, tuple[str, ...]]] = [(0.0, table, ()) for table in origin]
    done: set[str] = set()
    while heap:
        cost, table, path = heapq.heappop(heap)
        if table in done:
            continue
        done.add(table)
        if table in tables and parts.root(table) != parts.root(origin[0]):
            return [step for step in path if step not in tables]
        for more, other in neighbours[table]:
            if other not in done:
                heapq.heappush(heap, (cost + more, other, (*path, other)))
    return None


def _unique(table: TableProfile) -> tuple[str, ...]:
    """Columns in which no value repeats; declared single-column primary keys where the rows are not known."""
    found = [
        column.name
        for column in table.columns
        if column.rows and column.nulls is not None and column.distinct == column.rows - column.nulls
    ]
    if len(table.primary_key) == 1 and table.primary_key[0] not in found:
        found.append(table.primary_key[0])
    return tuple(found)


def _plan_table(table: TableProfile, bridge: bool, stack: Stack | None = None) -> PlanTable:
    columns = tuple(column.name for column in table.columns)
    hidden = tuple(column.name for column in table.columns if column.hidden)
    plain = PlanTable(table.id, table.database, table.name, columns, table.rows, _unique(table), bridge, hidden=hidden)
    if stack is None:
        return plain
    return replace(plain, parts=tuple(_plan_table(part, False) for part in stack.parts), origin=stack.origin)


def _side_is_one(source: PlanTable, columns: tuple[str, ...], key: KeyPair) -> bool:
    if any(column in source.unique for column in columns):
        return True
    referenced = (key.right_table, key.right_columns) == (source.id, columns)
    unknown = not source.rows or len(columns) > 1
    return referenced and unknown and key.evidence.origin != "shared"


def _cardinality(base_is_one: bool, table_is_one: bool) -> Cardinality:
    if table_is_one:
        return "one-to-one" if base_is_one else "many-to-one"
    return "one-to-many" if base_is_one else "many-to-many"


def _walk(start: str, keys: Sequence[KeyPair], sources: Mapping[str, PlanTable]) -> list[JoinStep]:
    """The steps from ``start``, those that multiply no rows first, then the surest."""
    steps: list[JoinStep] = []
    joined, left = {start}, list(keys)
    while left:
        options = []
        for key in left:
            if (key.left_table in joined) == (key.right_table in joined):
                continue
            forward = key.left_table in joined
            base, base_columns = (key.left_table, key.left_columns) if forward else (key.right_table, key.right_columns)
            table, columns = (key.right_table, key.right_columns) if forward else (key.left_table, key.left_columns)
            one = _side_is_one(sources[table], columns, key)
            cardinality = _cardinality(_side_is_one(sources[base], base_columns, key), one)
            step = JoinStep(table, columns, base, base_columns, cardinality, key)
            options.append(((not one, -key.score, table, columns, base, base_columns), step))
        _, step = min(options, key=lambda option: option[0])
        steps.append(step)
        joined.add(step.table)
        left.remove(step.key)
    return steps


def _assembled(keys: Sequence[KeyPair], sources: Mapping[str, PlanTable], anchor: str | None) -> JoinPlan:
    def walk(start: str) -> tuple[tuple[int, bool, int, str], list[JoinStep]]:
        steps = _walk(start, keys, sources)
        growing = sum(step.cardinality in ("one-to-many", "many-to-many") for step in steps)
        return (growing, sources[start].bridge, -(sources[start].rows or 0), start), steps

    starts = [anchor] if anchor is not None else sorted(sources)
    (_, _, _, start), steps = min((walk(table) for table in starts), key=lambda found: found[0])
    order = [start, *(step.table for step in steps)]
    score = sum(step.score for step in steps) / len(steps) if steps else 1.0
    return JoinPlan(start, tuple(steps), tuple(sources[table] for table in order), score)


def overruled(plan: JoinPlan, key: KeyPair) -> JoinPlan:
    """The plan with the step between the key's tables exchanged; see :meth:`JoinPlan.use`."""
    sources = {source.id: source for source in plan.sources}
    keys = [step.key for step in plan.steps]
    between = [old for old in keys if old.tables == key.tables]
    if not between:
        path = _path(keys, key.left_table, key.right_table)
        between = [min(path, key=lambda old: (old.score, old.left, old.right))]
    return _assembled([key if old is between[0] else old for old in keys], sources, plan.start)


def _path(keys: Sequence[KeyPair], start: str, end: str) -> list[KeyPair]:
    """The keys of a tree between two of its tables."""
    trail: dict[str, list[KeyPair]] = {start: []}
    queue = [start]
    for table in queue:
        for key in keys:
            if table in key.tables:
                (other,) = key.tables - {table}
                if other not in trail:
                    trail[other] = [*trail[table], key]
                    queue.append(other)
    return trail[end]


def _alternatives(
    tree: Sequence[_Edge], edges: Sequence[_Edge], sources: Mapping[str, PlanTable], anchor: str | None
) -> list[JoinPlan]:
    """Plans that differ from the best in one edge, best first."""
    found = []
    for gone in tree:
        rest = [edge for edge in tree if edge is not gone]
        parts = _Components(sources)
        for edge in rest:
            parts.join(*edge.ends)
        for edge in edges:
            if edge.key != gone.key and parts.root(edge.ends[0]) != parts.root(edge.ends[1]):
                found.append((gone.strength - edge.strength, edge.order, [*rest, edge]))
    found.sort(key=lambda entry: entry[:2])
    return [_assembled([edge.key for edge in chosen], sources, anchor) for _, _, chosen in found[:_ALTERNATIVES]]


def _faint_keys(profiles: Sequence[TableProfile], parts: _Components, known: set[KeyPair]) -> list[KeyPair]:
    """Key pairs between parts that are less likely than not, and not yet among ``known``."""
    found = infer_key_pairs(profiles, declared=False, min_score=_FAINT, across_sources=True)
    return [
        key
        for key in found
        if parts.root(key.left_table) != parts.root(key.right_table) and not {key, key.reversed()} & known
    ]


def _not_connected(parts: _Components, all_keys: Sequence[KeyPair], profiles: Sequence[TableProfile]) -> NotConnected:
    groups = parts.groups()
    shown = " | ".join("{" + ", ".join(group) + "}" for group in groups)
    across = [
        key
        for key in [*all_keys, *infer_key_pairs(profiles, declared=False, min_score=0.0, across_sources=True)]
        if key.left_table in parts.parent
        and key.right_table in parts.parent
        and parts.root(key.left_table) != parts.root(key.right_table)
    ]
    unions = "".join(
        f"; {' and '.join(group.tables)} have the same columns: stack them with tagframe.stack"
        for group in infer_unions(profiles)
    )
    near = f"; the nearest is {max(across, key=lambda key: key.score)!r}" if across else "; no evidence links them"
    return NotConnected(
        f"no key pairs connect the tables: {shown}{near}{unions}. Pass a key pair of your own, bridge tables or "
        "fewer tables"
    )


def plan_joins(
    profiles: Sequence[TableProfile],
    keys: Sequence[KeyPair],
    *,
    anchor: str | None = None,
    role_hints: Mapping[KeyPair, float] | None = None,
    bridges: Sequence[TableProfile] = (),
    stack_unions: bool = True,
) -> JoinPlan:
    """Plan how tables are joined.

    The plan is the spanning tree whose key pairs are surest. It starts from the anchor or, where there is none, from
    the table of the finest grain: the one from which the fewest steps multiply rows.

    Args:
        profiles: the tables to join; all of them are in the plan.
        keys: key pairs, of these and of other tables: two columns that reference one column of a table that is not
            asked for are joined directly.
        anchor: id of the table whose rows the plan starts from.
        role_hints: what speaks for a key pair beside its score, in log odds: it decides between two ways to join.
        bridges: tables that may be added where the others do not connect without.
        stack_unions: whether tables of one shape (``sales_2023``, ``sales_2024``) are joined as one table, their stack.

    Raises:
        InvalidArgument: no profiles.
        NotConnected: no key pairs connect the tables; the message names the parts and the nearest evidence.
        TableNotFound: the anchor is not among the profiles.
    """
    by_id = {profile.id: profile for profile in profiles}
    if not by_id:
        raise InvalidArgument("a join plan needs a table at least; got none")
    if anchor is not None and anchor not in by_id:
        raise TableNotFound(f"the anchor {anchor!r} is not among the tables: {did_you_mean(anchor, by_id)}")
    hints = role_hints or {}
    stacks = {stack.profile.id: stack for stack in stacks_of(profiles)} if stack_unions else {}
    if stacks:
        renamed = renamed_keys(keys, [*stacks.values()])
        keys, hints = best_of(renamed.values()), renamed_hints(hints, renamed)
        stack_of = {part.id: stack.profile.id for stack in stacks.values() for part in stack.parts}
        anchor = stack_of.get(anchor, anchor) if anchor is not None else None
        profiles = [profile for profile in profiles if profile.id not in stack_of]
        profiles += [stack.profile for stack in stacks.values()]
        by_id = {profile.id: profile for profile in profiles}
    usable = [key for key in keys if key.left_table != key.right_table]
    tables = frozenset(by_id)
    available = {**{profile.id: profile for profile in bridges}, **by_id}

    def edges_among(wanted: frozenset[str]) -> list[_Edge]:
        inside = [key for key in usable if key.tables <= wanted]
        known = set(inside) | {key.reversed() for key in inside}
        inside += [key for key in _siblings(usable, wanted) if key not in known]
        return _ranked(inside, available, hints)

    edges = edges_among(tables)
    tree, parts = _tree(tables, edges)
    while len(parts.groups()) > 1:
        reach = [_Edge(key, log_odds(key.score)) for key in usable if key.tables <= frozenset(available)]
        added = _bridged(parts, reach, tables)
        if added is None:
            faint = _faint_keys(profiles, parts, {*usable})
            if not faint:
                raise _not_connected(parts, usable, profiles)
            usable += faint
            added = []
        tables |= frozenset(added)
        edges = edges_among(tables)
        tree, parts = _tree(tables, edges)
    sources = {table: _plan_table(available[table], table not in by_id, stacks.get(table)) for table in tables}
    best = _assembled([edge.key for edge in tree], sources, anchor)
    return replace(best, alternatives=tuple(_alternatives(tree, edges, sources, anchor)))

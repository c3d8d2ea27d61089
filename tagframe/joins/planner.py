"""From key pairs to a join plan: the most trusted spanning tree, started at a table from which no rows multiply."""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import chain, combinations, product
from typing import Any

from tagframe.corpus.profile import ColumnProfile, TableProfile
from tagframe.corpus.references import NamedTable
from tagframe.display.markup import percent
from tagframe.errors import InvalidArgument, NotConnected, TableNotFound, did_you_mean
from tagframe.joins.direct import DIRECT_CHANCE, are_apart, direct_keys, natural_keys, widened
from tagframe.joins.edges import (
    MAX_NEAR_GAP,
    Edge,
    edges_of,
    is_composite,
    is_constant,
    is_sound,
    repeat_on_both_sides,
    siblings,
)
from tagframe.joins.key_text import text_of
from tagframe.joins.plan import JoinPlan
from tagframe.joins.roles import InRoles, joined_tables
from tagframe.joins.stacks import Stack, best_of, renamed_hints, renamed_keys, stacks_of
from tagframe.joins.steps import Order, PlanTable, table_order
from tagframe.keys.column_names import column_name, is_measure, mean_unlike, own, table_entity
from tagframe.keys.components import Components, ways_from
from tagframe.keys.containment import overlap
from tagframe.keys.inference import ACCEPTED, infer_key_pairs
from tagframe.keys.key_columns import uniqueness
from tagframe.keys.key_pair import NAMED, Evidence, KeyPair, Sign, is_unnamed
from tagframe.keys.scoring import log_odds
from tagframe.keys.terms import CALENDAR, FAINT_NAME
from tagframe.keys.unions import infer_unions

_MAX_ALTERNATIVES = 5
MIN_CHANCE = 0.02
"""If nothing better connects the tables, a key pair with at least this chance does. The databases that keys are fitted
on lose no plan up to 0.3; of all the databases of Spider, BIRD and Spider's training set, this loses 0.1% at most."""
_MIN_CHOSEN_CHANCE = 0.001
"""Below this chance there is nothing to choose by, whatever the caller allows."""
_MAX_ACCIDENT = 0.1
"""A pair of columns without a common name or key word is never a step if its values match by accident more often than
this, relative to those of a key. Example: rain and wind."""
_HOP_COST = 6.0
"""The cost, in log odds, of each hop between a key and the start table of the plan. So a direct key from the start
table comes before an indirect way, unless it is much less sure."""
_MAX_TIE_GAP = 0.05
"""Plans are equally likely if their log odds differ by less."""
_NAMED = 1.0
"""A question that adds so many log odds to a key names it: a plan on another key is no surer."""
_MIN_OFFERED_CHANCE = 0.05
"""A less likely pair is not an alternative to a likely one."""
_FIXED_STRENGTH = 100.0
"""A key that the plan must have is stronger than any other."""


def _tree(tables: Iterable[str], edges: Sequence[Edge], order: Order) -> tuple[list[Edge], Components[str]]:
    """Kruskal's maximum spanning tree (or forest)."""
    parts = Components(sorted(tables))
    ranked = sorted(edges, key=lambda edge: (-edge.strength, edge.role, _spelling(edge.key, order)))
    return [edge for edge in ranked if parts.join(*edge.ends)], parts


def _spelling(key: KeyPair, order: Order) -> tuple[Any, ...]:
    return order[key.left_table], key.left_columns, order[key.right_table], key.right_columns


def _from(start: str, edges: Sequence[Edge]) -> list[Edge]:
    """The edges as seen from the start: a likely direct key to a table comes before an indirect way."""
    neighbours: dict[str, list[str]] = defaultdict(list)
    for edge in edges:
        if edge.is_sure:
            one, other = edge.ends
            neighbours[one].append(other)
            neighbours[other].append(one)
    hops = {table: len(way) - 1 for table, way in ways_from(start, neighbours).items()}
    far = len(hops)

    def cost(edge: Edge) -> float:
        return _HOP_COST * (far if not edge.is_sure else min(hops.get(table, far) for table in edge.ends))

    return [replace(edge, strength=edge.strength - cost(edge)) for edge in edges]


def _bridged(parts: Components[str], edges: Sequence[Edge], tables: frozenset[str], order: Order) -> list[str] | None:
    """The tables on the cheapest path from one component to another; None if there is none."""
    neighbours: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for edge in edges:
        # Each step has a minimum cost, so that few weaker steps are preferred to many strong ones.
        cost = 1.0 + math.log1p(math.exp(-edge.strength))
        one, other = edge.ends
        neighbours[one].append((cost, other))
        neighbours[other].append((cost, one))
    first = min(tables, key=lambda table: order[table])
    origin = [table for table in tables if parts.root(table) == parts.root(first)]
    heap: list[tuple[float, Any, str, tuple[str, ...]]] = [(0.0, order[table], table, ()) for table in origin]
    heapq.heapify(heap)
    done: set[str] = set()
    while heap:
        cost, _, table, path = heapq.heappop(heap)
        if table in done:
            continue
        done.add(table)
        if table in tables and parts.root(table) != parts.root(first):
            return [step for step in path if step not in tables]
        for more, other in neighbours[table]:
            if other not in done:
                heapq.heappush(heap, (cost + more, order[other], other, (*path, other)))
    return None


def _chains(keys: Sequence[KeyPair]) -> Callable[[str, str], tuple[str, ...]]:
    """A function from two tables to those on the shortest way by which one refers to the other; () without a way."""
    refers: dict[str, list[str]] = defaultdict(list)
    for key in keys:
        if key.left_table != key.right_table:
            refers[key.left_table].append(key.right_table)
    ways = cache(partial(ways_from, neighbours=refers))
    return lambda one, other: ways(one).get(other, ())[1:-1] or ways(other).get(one, ())[1:-1]


def _unique(table: TableProfile) -> tuple[str, ...]:
    """Columns in which no value repeats; if the rows are unknown, the declared primary key of a single column."""
    found = [column.name for column in table.columns if uniqueness(column) == 1.0]
    if len(table.primary_key) == 1 and table.primary_key[0] not in found:
        found.append(table.primary_key[0])
    return tuple(found)


def _is_number(column: ColumnProfile) -> bool:
    """Whether a column holds numbers, by its values or, before they are read, by its type ("Int64")."""
    return column.family in ("integer", "real") or column.declared_type.casefold().startswith(("int", "uint", "float"))


def _plan_table(table: TableProfile, bridge: bool, stack: Stack | None = None, role: str = "") -> PlanTable:
    columns = tuple(column.name for column in table.columns)
    numbers = tuple(column.name for column in table.columns if _is_number(column))
    plain = PlanTable(
        table.id, table.database, table.name, columns, table.rows, _unique(table), bridge, role=role, numbers=numbers
    )
    if stack is None:
        return plain
    parts = tuple(_plan_table(part, False) for part in stack.parts)
    return replace(plain, parts=parts, origin=stack.origin)


def _others(
    best: JoinPlan,
    tree: Sequence[Edge],
    edges: Sequence[Edge],
    sources: Mapping[str, PlanTable],
    order: Order,
    fixed: Collection[KeyPair],
    hints: Mapping[KeyPair, float],
) -> tuple[list[JoinPlan], list[JoinPlan]]:
    """Plans that differ from the best in one edge and join on other columns, best first; and the equally likely ones.

    ``fixed`` are keys that all of them have; ``hints`` choose between two ways to a table.
    """
    found = []
    for gone in tree:
        if gone.key in fixed:
            continue
        rest = [edge for edge in tree if edge is not gone]
        parts = Components(sources)
        for edge in rest:
            parts.join(*edge.ends)
        for edge in edges:
            if edge.key.score < _MIN_OFFERED_CHANCE and gone.key.score >= ACCEPTED:
                continue
            if edge.key != gone.key and parts.root(edge.ends[0]) != parts.root(edge.ends[1]):
                loss = gone.strength - edge.strength
                are_ways = _are_two_ways(gone.key, edge.key, rest, sources)
                is_open = (are_ways or _are_opposite(gone.key, edge.key)) and hints.get(gone.key, 0.0) <= hints.get(
                    edge.key, 0.0
                )
                is_guess = gone.key.evidence.is_guess
                is_named = is_guess and hints.get(edge.key, 0.0) >= _NAMED > hints.get(gone.key, 0.0)
                is_tie = loss < _MAX_TIE_GAP or _are_rivals(gone.key, edge.key) or is_open or is_named
                ranks = loss, edge.role, gone.key.score, _spelling(edge.key, order)
                found.append((ranks, [*rest, edge], is_tie))
    found.sort(key=lambda entry: entry[0])
    others: list[JoinPlan] = []
    as_sure: list[JoinPlan] = []
    seen = {frozenset(best.classes())}
    for _, chosen, is_tie in found:
        if len(others) == _MAX_ALTERNATIVES:
            break
        _, plan = JoinPlan.along([edge.key for edge in chosen], sources, order, best.start)
        if frozenset(plan.classes()) not in seen:
            seen.add(frozenset(plan.classes()))
            others.append(plan)
            as_sure += [plan] if is_tie else []
    return others, as_sure


def aside(plan: JoinPlan, doubtful: Collection[str]) -> dict[str, bool]:
    """For each doubtful table that connects no needed ones, by id: whether it repeats or loses rows of the needed ones.

    A table that refers to one with more rows loses some of them.

    Args:
        plan: over all tables.
        doubtful: ids of the tables that are probably not needed.
    """
    if not doubtful:
        return {}
    doubtful = {*doubtful}
    doubtful |= {one.id for one in plan.sources if one.parts and doubtful.issuperset(part.id for part in one.parts)}
    needed = [source.id for source in plan.sources if source.id not in doubtful and not source.bridge]
    if not needed or len(needed) == len(plan.sources):
        return {}
    steps = plan.restarted(needed[0]).steps
    by_table = {step.table: step for step in steps}
    inside = {needed[0]}
    for table in needed:
        while table not in inside:
            inside.add(table)
            table = by_table[table].base
    repeats: dict[str, bool] = {}
    for step in steps:
        if step.table not in inside:
            rows, left = ((plan.by_id[one].rows or 0) for one in (step.table, step.base))
            found = step.key.evidence
            refers = step.base == step.key.left_table
            lacks = found.contained not in (None, 1.0) or bool(found.null_share)
            loses = lacks if refers else rows < left
            repeats[step.table] = step.grows or loses or repeats.get(step.base, False)
    return {table: found for table, found in repeats.items() if table in doubtful}


def _are_two_ways(one: KeyPair, other: KeyPair, rest: Sequence[Edge], tables: Mapping[str, PlanTable]) -> bool:
    """Whether two tables that are joined refer in the same words to the same columns of a third: an address of the
    depot, and one of the worker in it. A table's own first column is no such reference: a professor's number is that of
    the employee."""
    same_target = (one.right_table, one.right_columns) == (other.right_table, other.right_columns)
    are_joined = {one.left_table, other.left_table} in [edge.key.tables for edge in rest]
    are_likely = all(key.score >= ACCEPTED and key.evidence.origin != "shared" for key in (one, other))
    is_near = abs(log_odds(one.score) - log_odds(other.score)) < MAX_NEAR_GAP
    names = [[column_name(column).entity for column in key.left_columns] for key in (one, other)]
    is_own = any(tables[key.left_table].columns[: len(key.left_columns)] == key.left_columns for key in (one, other))
    return same_target and are_joined and are_likely and is_near and names[0] == names[1] and not is_own


def _are_opposite(one: KeyPair, other: KeyPair) -> bool:
    """Whether two tables refer to each other, and the first reference is not called as its table: a last match."""
    both_likely = min(one.score, other.score) >= ACCEPTED and one.evidence.origin == other.evidence.origin == "inferred"
    is_back = one.left_table == other.right_table and one.right_table == other.left_table
    sides = [*zip(one.left_columns, one.right_columns, strict=True)]
    telling = [mine for mine, theirs in sides if len(sides) == 1 or mine != theirs]
    names = {word for column in telling for word in column_name(column).entity}
    things = {word for table in one.tables for word in table_entity(table.rpartition(".")[2])}
    return is_back and both_likely and not names <= things


def _are_rivals(one: KeyPair, other: KeyPair) -> bool:
    """Whether a column refers to one of two columns of a table, and the names do not say which."""
    same_left = (one.left_table, one.left_columns) == (other.left_table, other.left_columns)
    both_likely = min(one.score, other.score) >= ACCEPTED and one.evidence.origin == other.evidence.origin == "inferred"
    return same_left and one.right_table == other.right_table and both_likely and len(one.left_columns) == 1


def _is_evidence(key: KeyPair) -> bool:
    """Whether there is real evidence for the pair: a name, a key word, or values that do not match by accident.

    There is none for measures. For numbers of different things only values count: all of them are found, each is
    unique, and an accident is unlikely; or the chance of the pair is as good as that of a direct key.
    """
    found = key.evidence
    if found.origin != "inferred" or found.name >= FAINT_NAME or found.chance is None or key.score >= DIRECT_CHANCE:
        return True
    mine, theirs = key.left_columns[0], key.right_columns[0]
    if found.families != ("text", "text") and (is_measure(mine) or is_measure(theirs)):
        return False
    if mean_unlike(mine, theirs):
        return found.chance <= _MAX_ACCIDENT and found.contained == found.uniqueness == 1.0
    return found.chance <= _MAX_ACCIDENT or bool(column_name(mine).key_word or column_name(theirs).key_word)


def _not_connected(
    parts: Components[str], keys: Sequence[KeyPair], profiles: Sequence[TableProfile], floor: float, roles: InRoles
) -> str:
    """Why no plan connects the tables: their parts, and the pairs of columns that are nearest to a key."""
    groups = " | ".join("{" + ", ".join(group) + "}" for group in parts.groups())
    unions = "".join(
        f". {' and '.join(group.tables)} have the same columns: stack them with tagframe.stack"
        for group in infer_unions([profile for profile in profiles if profile.id not in roles.tables])
    )
    near = nearest_pairs(profiles, {table: parts.root(table) for table in parts.parent}, keys)
    if not near:
        return (
            f"no key pairs connect the tables: {groups}; no evidence links them{unions}. Pass a key, "
            f'on="table.column = other.column", or fewer tables{_unnamed_too(profiles)}'
        )
    names = []
    for profile in profiles:
        role, table = roles.role(profile.id), NamedTable.of(profile)
        names.append(replace(table, id=roles.tables[profile.id]).as_role(role) if role else table)
    by_id = {profile.id: profile for profile in profiles}
    reasons = [
        ", ".join(filter(None, [f"chance {percent(key.score)}", key.evidence.reason, _repeats(key, by_id)]))
        for key in near
    ]
    pairs = "; ".join(f"{text_of(key, names)} ({why})" for key, why in zip(near, reasons, strict=True))
    ways = [_as_of(key, by_id) for key in near]
    advised = next((key for key in ways if key.signs or not repeat_on_both_sides(key, by_id)), None)
    advice = 'None of them tells which row is meant: pass all columns of the key, on=["a.x = b.y", "a.z = b.z"]'
    if advised is not None:
        advice = f'If a pair is right, pass it: on="{text_of(advised, names)}"'
    return (
        f"no key pairs connect the tables: {groups}. Nearest: {pairs}. An inferred key needs a chance "
        f"of min_chance={floor:g} to join tables{unions}. {advice}{_unnamed_too(profiles)}"
    )


_MAX_NEAREST = 3
_OWN = 0.75
"""Columns whose names fit their own tables so well number these tables' rows."""
_MAX_COMPARED_COLUMNS = 400
"""For a message, pairwise comparison stops at this many columns."""


def nearest_pairs(
    profiles: Sequence[TableProfile], part_of: Mapping[str, str], known: Sequence[KeyPair]
) -> list[KeyPair]:
    """At most three key pairs between parts, the likeliest first.

    Args:
        profiles: the tables.
        part_of: the part of each table, by id.
        known: key pairs between them that are likely enough to come first.

    Returns:
        Possible pairs from key inference; without any, columns that share values or a name.
    """

    def is_across(key: KeyPair) -> bool:
        left, right = part_of.get(key.left_table), part_of.get(key.right_table)
        return left is not None and right is not None and left != right

    inferred = infer_key_pairs(profiles, declared=False, min_score=0.0, across_sources=True)
    found = [key for key in dict.fromkeys([*known, *inferred]) if is_across(key)]
    alike = [key for key in _alike(profiles) if is_across(key)]
    otherwise = [key for key in alike if key.evidence.name and key.evidence.contained == 0.0]
    by_id = {profile.id: profile for profile in profiles}

    def number_rows(key: KeyPair) -> bool:
        return all(own(key.columns_of(id)[0], by_id[id].name) >= _OWN for id in key.tables)

    found = sorted(found or alike, key=lambda key: (number_rows(key), -key.score, key.left, key.right))
    return [*otherwise, *(key for key in found if key not in otherwise)][:_MAX_NEAREST]


def _alike(profiles: Sequence[TableProfile]) -> Iterator[KeyPair]:
    """Columns of two tables that share values or a name: keys, days and the like, if they share no value.

    The score only orders them: it is below that of any key.
    """
    if sum(len(profile.columns) for profile in profiles) > _MAX_COMPARED_COLUMNS:
        return
    for left, right in combinations(profiles, 2):
        for mine, theirs in product(left.columns, right.columns):
            named = mine.name.casefold() == theirs.name.casefold()
            if not (named or mine.family == theirs.family):
                continue
            both = overlap(mine.sketch, theirs.sketch)
            share = both.share if both is not None and mine.family == theirs.family else 0.0
            if not (share or named):
                continue
            name, reason = column_name(mine.name), f"{share:.0%} of the values found"
            says = bool(name.entity) and (name.key_word > 0 or CALENDAR.issuperset(name.words))
            if says and both is not None and not share:
                written = " and ".join(f"{column.samples[0]!r}" for column in (mine, theirs) if column.samples)
                reason = f"both have the name but share no value ({written}): write them alike"
            evidence = Evidence(contained=share if share or says else None, name=float(named), reason=reason)
            score = 1e-5 * share
            yield KeyPair(left.id, (mine.name,), right.id, (theirs.name,), score, evidence)


def _repeats(key: KeyPair, profiles: Mapping[str, TableProfile]) -> str:
    """That the referenced column repeats values, which no key does; "" if it does not."""
    table = profiles[key.right_table]
    found = next((column for column in table.columns if column.name == key.right_columns[0]), None)
    if found is None or not found.distinct or found.rows is None or found.nulls is None or len(key.right_columns) > 1:
        return ""
    filled = found.rows - found.nulls
    if found.distinct >= filled:
        return ""
    return f"{found.name} of {table.name} repeats: {filled:,} rows have {found.distinct:,} values"


def _as_of(key: KeyPair, profiles: Mapping[str, TableProfile]) -> KeyPair:
    """A key of a column that repeats, as of the days that both tables have: the rate of the currency on that day."""
    left, right = ([column.name for column in profiles[end].columns if column.family == "date"]
                   for end in (key.left_table, key.right_table))  # fmt: skip
    if not (left and right and _repeats(key, profiles)):
        return key
    equal: list[Sign] = ["="] * len(key.left_columns)
    mine, theirs = (*key.left_columns, left[0]), (*key.right_columns, right[0])
    return replace(key, left_columns=mine, right_columns=theirs, signs=(*equal, ">="))


def _unnamed_too(profiles: Sequence[TableProfile]) -> str:
    unnamed = [profile.name for profile in profiles if is_unnamed(profile.name)]
    if not unnamed:
        return ""
    return (
        f". Keys are found by names, and {' and '.join(unnamed)} {'have' if len(unnamed) > 1 else 'has'} none: {NAMED}"
    )


def _check_circles(given: Sequence[KeyPair], tables: Iterable[str]) -> None:
    parts = Components(sorted(tables))
    for key in given:
        if not parts.join(key.left_table, key.right_table):
            pairs = ", ".join(f"{pair.left} = {pair.right}" for pair in given)
            raise InvalidArgument(f"a plan joins each table once, but these key pairs form a circle: {pairs}")


def _chance(value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InvalidArgument(f"min_chance= must be a number from 0 to 1; got {value!r}")
    return max(float(value), _MIN_CHOSEN_CHANCE)


def plan_joins(
    profiles: Sequence[TableProfile],
    keys: Sequence[KeyPair],
    *,
    given: Sequence[KeyPair] = (),
    anchor: str | None = None,
    role_hints: Mapping[KeyPair, float] | None = None,
    bridges: Sequence[TableProfile] = (),
    stack_unions: bool = True,
    doubtful: Collection[str] = (),
    min_chance: float = MIN_CHANCE,
) -> JoinPlan:
    """Plan how tables are joined.

    The plan is the spanning tree with the surest key pairs. It starts from the anchor. Without an anchor it starts from
    the table with the finest grain: from there the fewest steps multiply rows or go against a reference.

    Args:
        profiles: the tables to join; all of them are in the plan.
        keys: key pairs of these and of other tables. Two columns that reference the same column of a table that is not
            in ``profiles`` are joined directly.
        given: key pairs that the plan must have, whatever the evidence for others between their tables.
        anchor: id of the table whose rows the plan starts from.
        role_hints: extra evidence for key pairs, in log odds, which decides between two ways to join.
        bridges: tables that may be added if the others do not connect without them.
        stack_unions: whether tables with the same columns whose names differ in a number or a date (``sales_2023``,
            ``sales_2024``) are joined as one table, their stack. They are not if a key joins them.
        doubtful: ids of tables that are probably not needed. The plan starts from one of them only if others are joined
            through it.
        min_chance: no inferred key pair with a smaller chance joins tables, in [0, 1].

    Raises:
        InvalidArgument: no profiles, ``min_chance`` is not in [0, 1], or given key pairs that form a circle.
        NotConnected: no key pairs connect the tables; the message names the parts and the nearest evidence.
        TableNotFound: the anchor is not among the profiles.
    """
    by_id = {profile.id: profile for profile in profiles}
    if not by_id:
        raise InvalidArgument("a join plan needs at least one table; got none")
    if anchor is not None and anchor not in by_id:
        raise TableNotFound(f"the anchor {anchor!r} is not among the tables: {did_you_mean(anchor, by_id)}")
    hints = role_hints or {}
    _check_circles(given, joined_tables([*by_id], given))
    keys = [*given, *(key for key in keys if key.tables not in {pair.tables for pair in given})]
    accepted = [key for key in keys if key.score >= ACCEPTED]
    stacks = (
        {stack.profile.id: stack for stack in stacks_of(profiles, accepted, bridges, doubtful)} if stack_unions else {}
    )
    if stacks:
        renamed = renamed_keys(keys, [*stacks.values()])
        keys, hints = best_of(renamed.values()), renamed_hints(hints, renamed)
        given = [renamed[key] for key in given if key in renamed]
        stack_of = {part.id: stack.profile.id for stack in stacks.values() for part in stack.parts}
        anchor = stack_of.get(anchor, anchor) if anchor is not None else None
        sure = {stack for part, stack in stack_of.items() if part not in doubtful}
        doubtful = {stack_of.get(id, id) for id in doubtful} - sure
        profiles = [profile for profile in profiles if profile.id not in stack_of]
        profiles += [stack.profile for stack in stacks.values()]
    fixed, roles = frozenset(given), InRoles(profiles, given, anchor)
    if roles.tables:
        own = roles.keys(keys)
        keys = best_of(chain.from_iterable(own.values()))
        hints = {one: hint for key, hint in hints.items() for one in own.get(key, ())}
        profiles = roles.profiles
    by_id = {profile.id: profile for profile in profiles}
    between = [key for key in keys if key.left_table != key.right_table]
    floor = _chance(min_chance)
    usable = [key for key in between if key.score >= max(floor, ACCEPTED) or (key.score >= floor and _is_evidence(key))]
    tables = frozenset(by_id)
    available = {**{profile.id: profile for profile in bridges}, **by_id}
    direct = {*filter(is_composite, usable)}
    composite = {key.tables for key in direct}

    def tells_rows(key: KeyPair) -> bool:
        """Whether a key that repeats on both sides is no part of a key of several columns, and has several values."""
        return not repeat_on_both_sides(key, available) or not (key.tables in composite or is_constant(key, available))

    usable = [*filter(tells_rows, usable)]
    usable = [widened(key, available) if key.evidence.origin == "inferred" else key for key in usable]
    order = table_order([*available.values()])

    chains = _chains([key for key in usable if key.score >= ACCEPTED and key.tables <= frozenset(available)])

    @cache
    def siblings_among(wanted: frozenset[str]) -> list[KeyPair]:
        # Keys that are added later are between wanted tables.
        pairs = [key for key in siblings(usable, wanted, order) if tells_rows(key) and not are_apart(key, available)]
        return [widened(key, available) for key in pairs]

    def edges_among(wanted: frozenset[str], least: float) -> list[Edge]:
        inside = [key for key in usable if key.left_table in wanted and key.right_table in wanted]
        known = {side for key in inside if key.score >= ACCEPTED for side in (key, key.reversed())}
        # A shared parent is no key between its children if one of them refers to the other through others.
        shared = [key for key in siblings_among(wanted) if key not in known]
        # Nor is it one where it is a part of a key of both, or of the keys of both to a third table.
        wide = [one for key in filter(is_composite, inside) for one in (key, key.reversed()) if key.score >= ACCEPTED]
        both = [(one, two) for one, two in combinations(wide, 2) if one.right == two.right]
        through = {frozenset((one.left_table, two.left_table)) for one, two in both}
        several = [key for key in inside if len(key.left_columns) > 1]
        shared = [key for key in shared if not any(map(key.is_part_of, several)) and key.tables not in through]
        inside += [key for key in shared if not chains(key.left_table, key.right_table)]
        chosen = [key for key in best_of(inside) if key.score >= least or key in {*direct, *fixed}]
        # Two tables of towns meet by the town, however faint its key, and not by its region.
        met = {key.tables for key in chosen if key.evidence.origin == "inferred" and is_sound(key)}
        shared = [key for key in chosen if key.evidence.origin == "shared" and repeat_on_both_sides(key, available)]
        chosen = [key for key in chosen if key.tables not in met or key not in shared]
        edges = edges_of(chosen, available, hints)
        return [replace(edge, strength=_FIXED_STRENGTH) if edge.key in fixed else edge for edge in edges]

    least = max(floor, DIRECT_CHANCE)
    parts = _tree(tables, edges_among(tables, least), order)[1]
    if floor <= DIRECT_CHANCE:
        direct.update(direct_keys(profiles, parts, usable))
        usable = best_of([*usable, *direct])
        parts = _tree(tables, edges_among(tables, least), order)[1]
    for one, other in {(key.left_table, key.right_table) for key in siblings_among(tables)}:
        if parts.join(one, other):
            tables |= frozenset(chains(one, other))
    while True:
        parts = _tree(tables, edges_among(tables, least), order)[1]
        if len(parts.groups()) == 1:
            break
        # A table that nobody chose is joined by sure keys only, before a step on a low-confidence key.
        reach = [key for key in usable if key.tables <= frozenset(available) and key.score >= max(floor, ACCEPTED)]
        added = _bridged(parts, [Edge(key, log_odds(key.score)) for key in reach], tables, order)
        if added is not None:
            tables |= frozenset(added)
        elif least > floor:
            least = floor
        else:
            natural = natural_keys(profiles, parts) if floor <= DIRECT_CHANCE else []
            if not natural:
                pieces = {id: [part.id for part in stack.parts] for id, stack in stacks.items()}
                ids = [[id for one in group for id in pieces.get(one, (one,))] for group in parts.groups()]
                # Most of these errors lead to a plan of fewer tables, and nobody reads the message.
                raise NotConnected(partial(_not_connected, parts, between, profiles, floor, roles), ids)
            usable += natural
    sources = {
        table: _plan_table(
            available[table], table not in by_id, stacks.get(roles.tables.get(table, table)), roles.role(table)
        )
        for table in tables
    }
    edges = edges_among(tables, floor)
    plans = []
    filled = [table for table in tables if available[table].rows != 0] or [*tables]
    for start in [anchor] if anchor is not None else filled:
        wanted = _from(start, edges)
        tree, _ = _tree(tables, wanted, order)
        plans.append((*JoinPlan.along([edge.key for edge in tree], sources, order, start), tree, wanted))
    beside = {entry[1].start: aside(entry[1], doubtful) for entry in plans}
    needless = {table for start, tables in beside.items() if start not in doubtful for table in tables}
    plans = [entry for entry in plans if (start := entry[1].start) not in needless and start not in beside[start]]
    _, best, tree, wanted = min(plans, key=lambda entry: entry[0])
    others = _others(best, tree, wanted, sources, order, fixed, hints)
    alternatives, ambiguous = (tuple(_pruned(plan, order) for plan in plans) for plans in others)
    best = _pruned(best, order)
    return replace(best, alternatives=alternatives, ambiguous=ambiguous, is_anchored=anchor is not None)


def _pruned(plan: JoinPlan, order: Order) -> JoinPlan:
    """The plan without the tables that only showed which columns of the others are equal: no step starts from them."""
    gone = {*plan.bridges} - {plan.start, *(step.base for step in plan.steps)}
    if not gone:
        return plan
    keys = []
    for step in plan.steps:
        reason = f"both reference {' and '.join(gone & step.key.tables)}"
        direct = KeyPair(
            step.base, step.base_columns, step.table, step.columns, step.score, Evidence("shared", reason=reason)
        )
        keys += [] if step.table in gone else [step.key if gone.isdisjoint(step.key.tables) else direct]
    sources = {source.id: source for source in plan.sources if source.id not in gone}
    return JoinPlan.along(keys, sources, order, plan.start)[1]

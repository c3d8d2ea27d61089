"""How the tables of a question are joined: the one decision, for displays, merges and agents alike."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from typing import Literal

from tagframe.corpus import Corpus, TableProfile
from tagframe.corpus.corpus import without_views
from tagframe.corpus.references import NamedTable
from tagframe.errors import InvalidArgument
from tagframe.joins import MIN_CHANCE, JoinPlan, On, keys_on, plan_tables
from tagframe.joins.infer import Hints
from tagframe.joins.roles import Roles
from tagframe.keys.column_names import table_entity
from tagframe.keys.key_pair import KeyPair
from tagframe.keys.unions import infer_unions
from tagframe.retrieval.cell_values import ValueIndex
from tagframe.retrieval.denied import (
    denies,
    spelt_forms,
    tables_before,
    tables_denied,
    tables_maybe_denied,
)
from tagframe.retrieval.families import shared_name
from tagframe.retrieval.links import schema_of, tables_around
from tagframe.retrieval.question import Question
from tagframe.retrieval.role_hints import role_hints, roles_named
from tagframe.retrieval.words import stem, words_in

_MOSTLY = 0.9
"""A column has a name for each row if so many of the rows have one of their own."""
_NEW = frozenset("a an another one d'un d'une ein eine einem einen einer eines un une una uno um uma een".split())
"""Words before a thing that was not spoken of before."""
_NEAR = 2
"""They are among so many words before it."""


def plan_for(
    corpus: Corpus,
    tables: Sequence[str],
    question: str = "",
    *,
    anchor: str | None = None,
    on: On | None = None,
    stack: bool = True,
    roles: Literal["all"] | None = None,
    min_chance: float = MIN_CHANCE,
    doubtful: Collection[str] = (),
    unsure: Collection[str] = (),
    may_deny: bool = False,
    keys: Sequence[KeyPair] = (),
) -> JoinPlan:
    """The plan that joins tables of a corpus as a question means it.

    Args:
        corpus: of the tables; others of their databases connect them where no key does.
        tables: their ids.
        question: in plain language, or "".
        anchor, on, stack, roles, min_chance: as for :func:`tagframe.joins.plan_tables` and :func:`tagframe.merge`.
        doubtful: ids of tables that are probably not needed. They are left out where they only repeat or lose rows, and
            where all needed tables are in another database.
        unsure: ids of further tables that may not be needed: where the question denies a table, they are left out, too.
        may_deny: whether tables that the question denies ("customers without orders") shall have no rows.
        keys: that a model's plan has, in place of ``on``; they say all roles, too.

    Raises:
        NotConnected: no key pairs connect the tables.
        InvalidArgument, TableNotFound, ColumnNotFound: as :func:`tagframe.joins.keys_on`.
    """
    corpus = without_views(corpus, tables)
    profiles = {id: corpus.profile(id) for id in tables}
    given = [*keys] if on is None else keys_on(on, [*map(NamedTable.of, profiles.values())])
    columns = {id: [column.name for column in profile.columns] for id, profile in profiles.items()}
    sure = {id: names for id, names in columns.items() if id not in {*doubtful}}
    may_deny = may_deny and bool(question)
    pieces = _pieces([*profiles.values()]) if may_deny else {}
    found = (_with_pieces(tables_denied(question, _as_one(some, pieces)), pieces) for some in (sure, columns))
    denied = [id for id in next(filter(None, found), []) if id != anchor] if may_deny else []
    wanted = {*_with_pieces(tables_before(question, _as_one(columns, pieces)), pieces)} if denied else set[str]()
    doubtful = {*doubtful, *(unsure if wanted else ())}.difference(denied, wanted, *(key.tables for key in given))
    schemas = {schema_of(corpus, id) for id in tables if id not in doubtful} if doubtful else set()
    apart = sorted(id for id in doubtful if len(schemas) == 1 and schema_of(corpus, id) not in schemas)
    # Rows without a partner are those of the needed tables: any further table would take some of them away.
    beside = doubtful.difference(apart) if denied else set()
    members = [id for id in tables if id not in {*apart, *beside}]
    hints, by_words = _read(question, corpus) if question else (None, None)
    plan = plan_tables(
        corpus, members, anchor=anchor, given=given, hints=hints, bridges=tables_around(corpus, members),
        stack_unions=stack, doubtful=doubtful.intersection(members), min_chance=min_chance,
        roles=roles or (None if keys else by_words),
    )  # fmt: skip
    if apart or beside:
        left_out, lone = {*plan.left_out, *apart, *beside}, {*plan.unconnected, *apart}
        plan = replace(plan, left_out=tuple(sorted(left_out - {*plan.tables})), unconnected=tuple(sorted(lone)))
    stacks = {part.id: table for table in plan.tables for part in plan.source(table).parts}
    if may_deny and not denied and len(plan.steps) == 1 and not plan.left_out:
        maybe = _with_pieces(tables_maybe_denied(question, _as_one(columns, pieces)), pieces)
        maybe = [*dict.fromkeys(stacks.get(id, id) for id in maybe)]
        # Rows lack others that refer to them: a site its launch points, and no launch point its site.
        denied = [id for id in maybe if id != anchor and plan.steps[0].key.left_table == id and len(maybe) == 1]
    denied = [table for table in dict.fromkeys(stacks.get(id, id) for id in denied) if table in plan.tables]
    with suppress(InvalidArgument):  # only the denied tables connect the others
        return plan.lacking(*_with_links(plan, denied, wanted)) if denied else plan
    return plan


def _with_links(plan: JoinPlan, denied: Sequence[str], wanted: Collection[str]) -> set[str]:
    """The denied tables, with all that no wanted table stands between: the tables that lead to them, or that hang on
    these.

    A student without a pet has no row in the table of owners, rather than a row there that lacks its pet.
    """
    every, start = {*denied}, next((table for table in plan.tables if table in wanted), None)
    steps = () if start is None or every & {*wanted} else plan.restarted(start).steps
    stay = {*wanted}
    for step in reversed(steps):
        stay |= {step.base} if step.table in stay else set()
    for step in reversed(steps):
        every |= {step.base} - stay if step.table in every else set()
    for step in steps:
        every |= {step.table} - stay if step.base in every else set()
    return every


def _read(question: str, corpus: Corpus) -> tuple[Hints, Roles]:
    """What the words of a question say of the keys between tables: evidence for some, and the roles that are named."""
    words = [word.text for word in words_in(question)]

    @cache
    def names_two(table: str) -> bool:
        profile = corpus.profile(table)
        return _names_two_rows(question, profile) or _is_new_twice(question, profile.name)

    def roles(keys: Sequence[KeyPair]) -> set[KeyPair]:
        named = roles_named(keys, words) | _both_ends([key for key in keys if key.right_table in corpus], names_two)
        return {key for key in named if len(key.tables) == 2} if denies(question) else named

    return partial(role_hints, words=words), roles


def _pieces(tables: Sequence[TableProfile]) -> dict[str, list[str]]:
    """The tables that are stacked, by an id of what their names share: "no penalty" denies those of all years."""
    names = {table.id: table.name for table in tables}
    stacks = [group.tables for group in infer_unions(tables, by_date=True)]
    return {f"{ids[0].rpartition('.')[0]}.{shared_name([names[id] for id in ids])}": [*ids] for ids in stacks}


def _as_one(columns: Mapping[str, Sequence[str]], pieces: Mapping[str, Sequence[str]]) -> dict[str, Sequence[str]]:
    """The columns of tables, with a stack in place of its pieces."""
    stack = {id: name for name, ids in pieces.items() for id in ids}
    return {stack.get(id, id): names for id, names in columns.items()}


def _with_pieces(found: Iterable[str], pieces: Mapping[str, Sequence[str]]) -> list[str]:
    """The tables, with its pieces in place of a stack."""
    return [id for one in found for id in pieces.get(one, [one])]


def _both_ends(keys: Sequence[KeyPair], names_two: Callable[[str], bool]) -> set[KeyPair]:
    """Two references of a table to another, if the question names two rows there: "from Oslo to Rome", "a team that
    beat a team of its own town"."""
    groups: dict[tuple[str, str, tuple[str, ...]], list[KeyPair]] = defaultdict(list)
    for key in keys:
        if len(key.tables) == 2:
            groups[key.left_table, key.right_table, key.right_columns].append(key)
    pairs = [(right, group) for (_, right, _), group in groups.items() if len(group) == 2]
    return {key for right, group in pairs if names_two(right) for key in group}


def _is_new_twice(question: str, table: str) -> bool:
    """Whether a question speaks of a thing of a table twice, and not of the same one.

    >>> [_is_new_twice(f"Matches in which a team met {other}", "teams") for other in ("a team of Oslo", "the team")]
    [True, False]
    """
    parts = [word.text.casefold() for word in words_in(question)]
    thing = {stem(word) for word in table_entity(table)[-1:]}
    places = [place for place, word in enumerate(parts) if not thing.isdisjoint(spelt_forms(word))]
    numbered = [place for place in places if "".join(parts[place + 1 : place + 2])[:1].isdigit()]
    return len({*numbered, *(at for at in places if not _NEW.isdisjoint(parts[max(0, at - _NEAR) : at]))}) > 1


def _names_two_rows(question: str, table: TableProfile) -> bool:
    """Whether two names in the question are cells of one column of texts in which hardly any repeats."""
    hits = ValueIndex([table]).hits(Question.of(question))
    named = Counter(position for hit in hits if hit.is_name for position in hit.columns)
    columns = [table.columns[position] for position, count in named.items() if count > 1]
    return any(
        column.family == "text" and not column.private and (column.distinct or 0) >= _MOSTLY * (column.rows or 0)
        for column in columns
    )

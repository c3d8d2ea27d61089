"""How the tables of a question are joined: the one decision, for displays, merges and agents alike.

Of two ways to a table the question may mean one: the address of the depot, or that of the worker in it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Literal

from tagframe.corpus import Corpus, TableProfile
from tagframe.corpus.corpus import without_views
from tagframe.corpus.documents import identifier_words
from tagframe.corpus.references import NamedTable
from tagframe.errors import InvalidArgument
from tagframe.joins import MIN_CHANCE, JoinPlan, On, keys_on, plan_tables
from tagframe.joins.edges import is_of_names
from tagframe.joins.infer import Hints
from tagframe.joins.roles import Roles
from tagframe.keys.column_names import KEY_WORDS, column_name, table_entity
from tagframe.keys.inference import ACCEPTED
from tagframe.keys.key_columns import uniqueness
from tagframe.keys.key_pair import Evidence, KeyPair
from tagframe.keys.unions import infer_unions
from tagframe.retrieval.cell_values import ValueIndex
from tagframe.retrieval.denied import (
    denies,
    named_by,
    own_words,
    spelt_forms,
    tables_before,
    tables_denied,
    tables_denied_by_column,
)
from tagframe.retrieval.families import shared_name
from tagframe.retrieval.links import schema_of, tables_around
from tagframe.retrieval.question import Question
from tagframe.retrieval.role_hints import role_hints, roles_named
from tagframe.retrieval.words import BETWEEN, stem, words_in

WAY_LOG_ODDS = -12.0
"""The way that the question does not name loses this: more than a way through another table costs."""
_SAME = 0.9
"""The chance of a key of two tables of one shape that a question names apart."""
_MOSTLY = 0.9
"""A column has a name for each row if so many of the rows have one of their own."""
_NEW = frozenset("a an another one d'un d'une ein eine einem einen einer eines un une una uno um uma een".split())
"""Words before a thing that was not spoken of before."""
_NEAR = 2
"""They are among so many words before it."""
_REACH = 4
"""The owner is among so many words after the thing."""


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
    ends = _told_apart(question, [*profiles.values()]) if may_deny else []
    pieces = _pieces([*profiles.values()]) if may_deny and not ends else {}
    ways = (tables_denied, sure), (tables_denied, columns), (tables_denied_by_column, sure)
    found = (_with_pieces(find(question, _as_one(some, pieces)), pieces) for find, some in ways) if may_deny else ()
    denied = [id for id in next(filter(None, found), []) if id != anchor]
    wanted = {*_with_pieces(tables_before(question, _as_one(columns, pieces)), pieces)} if denied else set[str]()
    doubtful = {*doubtful, *(unsure if wanted else ())}.difference(denied, wanted, *(key.tables for key in given))
    schemas = {schema_of(corpus, id) for id in tables if id not in doubtful} if doubtful else set()
    apart = sorted(id for id in doubtful if len(schemas) == 1 and schema_of(corpus, id) not in schemas)
    # Rows without a partner are those of the needed tables: any further table would take some of them away.
    beside = doubtful.difference(apart) if denied else set()
    members = [id for id in tables if id not in {*apart, *beside}]
    hints, by_words = _read(question, corpus) if question else (None, None)
    ends = [pair for pair in ends if {one.id for one in pair} <= {*members}]
    given = [*given, *(key for one, other in ends if (key := _same_rows(one, other)) is not None and on is None)]
    plan = plan_tables(
        corpus, members, anchor=anchor, given=given, hints=hints, bridges=tables_around(corpus, members),
        stack_unions=stack and not ends, doubtful=doubtful.intersection(members), min_chance=min_chance,
        roles=roles or (None if keys else by_words),
    )  # fmt: skip
    if apart or beside:
        left_out, lone = {*plan.left_out, *apart, *beside}, {*plan.unconnected, *apart}
        plan = replace(plan, left_out=tuple(sorted(left_out - {*plan.tables})), unconnected=tuple(sorted(lone)))
    stacks = {part.id: table for table in plan.tables for part in plan.source(table).parts}
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

    def hints(keys: Sequence[KeyPair]) -> dict[KeyPair, float]:
        roles = role_hints(keys, words)
        ids = sorted({table for key in keys for table in key.tables if table in corpus})
        ways = way_hints(keys, question, {id: [column.name for column in corpus.profile(id).columns] for id in ids})
        return {key: roles.get(key, 0.0) + ways.get(key, 0.0) for key in keys if key in roles or key in ways}

    @cache
    def names_two(table: str) -> bool:
        profile = corpus.profile(table)
        return _names_two_rows(question, profile) or _is_new_twice(question, profile.name)

    def roles(keys: Sequence[KeyPair]) -> set[KeyPair]:
        named = roles_named(keys, words) | _both_ends([key for key in keys if key.right_table in corpus], names_two)
        return {key for key in named if len(key.tables) == 2} if denies(question) else named

    return hints, roles


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


def _told_apart(question: str, tables: Sequence[TableProfile]) -> list[tuple[TableProfile, TableProfile]]:
    """Tables of one shape that a question with a denial names, one of them before it: the members of 2023 who were not
    there in 2022 are no rows of a stack of both."""
    own, words = own_words([table.id for table in tables]), [spelt_forms(word.text) for word in words_in(question)]
    named = [table for table in tables if any(table.id in named_by(word, own) for word in words)]
    before = tables_before(question, own)
    alike = ((one, other) for one, other in pairwise(named) if one.shape == other.shape)
    return [(one, other) for one, other in alike if not before.isdisjoint((one.id, other.id))]


def _same_rows(one: TableProfile, other: TableProfile) -> KeyPair | None:
    """The key of two tables of one shape: a column with a key word that is unique in both."""
    unique = [{column.name for column in table.columns if uniqueness(column) == 1.0} for table in (one, other)]
    columns = [column.name for column in one.columns if column_name(column.name).key_word]
    columns = [column for column in columns if all(column in names for names in unique)]
    evidence = Evidence(origin="shared", reason="it tells the rows of both tables, which the question names apart")
    return KeyPair(one.id, (columns[0],), other.id, (columns[0],), _SAME, evidence) if columns else None


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


def way_hints(keys: Sequence[KeyPair], question: str, columns: Mapping[str, Sequence[str]]) -> dict[KeyPair, float]:
    """Evidence against the keys by which a table would belong to another than the one that the question says.

    A thing belongs to the table that is named right before it ("the depot's street"), or after it with only function
    words between ("the street of the depot"). If that is no table or several, nothing is said.

    Args:
        keys: key pairs.
        question: in plain language.
        columns: id of a table → names of its columns.

    >>> keys = [KeyPair(f"s.{one}", ("place_id",), "s.place", ("id",), 0.9) for one in ("depot", "worker")]
    >>> keys.append(KeyPair("s.worker", ("depot_id",), "s.depot", ("id",), 0.9))
    >>> columns = {"s.depot": ["place_id"], "s.worker": ["place_id", "depot_id"], "s.place": ["id", "street"]}
    >>> {key.left: hint for key, hint in way_hints(keys, "Street of the depot of each worker", columns).items()}
    {'s.worker.place_id': -12.0}
    """
    targets: dict[str, list[KeyPair]] = defaultdict(list)
    for key in keys:
        if (
            key.score >= ACCEPTED
            and not is_of_names(key)
            and key.left_table != key.right_table
            and {key.left_table, key.right_table} <= {*columns}
        ):
            targets[key.right_table].append(key)
    # Without a reference between them, each of them needs its own way to the target.
    joined = {key.tables for group in targets.values() for key in group if key.evidence.uniqueness in (None, 1.0)}
    hints = {}
    for target, ways in targets.items():
        lefts = dict.fromkeys(key.left_table for key in ways)
        owners = {*_owners(question, target, {table: columns[table] for table in (target, *lefts)})}
        if len(lefts) > 1 and len(owners) == 1:
            others = {table for table in lefts if joined & {frozenset((table, owner)) for owner in owners}} - owners
            hints.update({key: WAY_LOG_ODDS for key in ways if key.left_table in others})
    return hints


def _owners(question: str, target: str, columns: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """The tables to which the question says that a thing of the target belongs."""
    own = own_words(columns)
    others = {stem(word) for table in columns if table != target for name in columns[table] for word in _words(name)}
    things = {stem(word) for name in columns[target] for word in _words(name)} - others - KEY_WORDS
    things -= {word for table, words in own.items() if table != target for word in words}
    parts = words_in(question)
    words = [spelt_forms(part.text.partition("'")[0].partition("’")[0]) for part in parts]
    named = [[table for table in named_by(word, own) if table != target] for word in words]
    for place, word in enumerate(words):
        if not (things | own[target]).isdisjoint(word):
            is_next = place and not question[parts[place - 1].end : parts[place].start].strip()
            yield from named[place - 1] if is_next else ()
            for after in range(place + 1, min(place + 1 + _REACH, len(words))):
                if question[parts[after - 1].end : parts[after].start].strip():
                    break
                yield from named[after]
                if named[after] or words[after][0] not in BETWEEN:
                    break


def _words(name: str) -> list[str]:
    return list(identifier_words(name))

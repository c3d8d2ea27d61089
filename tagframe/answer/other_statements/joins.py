"""Other keys that join two tables."""

from __future__ import annotations

from sqlglot import exp

from tagframe.answer.alternatives import Doubt
from tagframe.answer.other_statements.subject import Found, Subject, stems
from tagframe.answer.sql_tree import column_of
from tagframe.corpus import computed_of
from tagframe.engines.sql_reader import ReadStatement, SourceColumn
from tagframe.keys import KeyPair
from tagframe.keys.inference import ACCEPTED
from tagframe.retrieval.links import Links

_CLOSE = 0.05
"""Chances of keys that differ by at most this are as good as equal."""
LEAST_KEY = 0.3
"""A pair of columns with a lower chance is no key."""


def joins(subject: Subject) -> Found:
    """Other keys between two tables: a likelier one, or one as likely that the question does not exclude."""
    for left, right in subject.statement.joined_columns():
        if left.table == right.table:
            continue
        between = [
            key for key in subject.keys if key.tables == {left.table, right.table} and len(key.left_columns) == 1
        ]
        chance = max((key.score for key in between if _is_of(key, left, right)), default=0.0)
        rivals = [key for key in between if not _is_of(key, left, right) and not key.signs]
        best = max(rivals, key=lambda key: key.score, default=None)
        is_faint = best is not None and chance < LEAST_KEY and best.score >= ACCEPTED
        if best is None and chance < LEAST_KEY and (sql := _through_another(subject, left, right)):
            yield Doubt(
                "join", f"{left.table}.{left.column} = {right.table}.{right.column} is no key; {sql[0]}, ", sql[1]
            )
        if best is not None and (is_faint or _is_role(subject, best, chance, left, right)):
            new = subject.read()
            if _rejoined(new, left, right, best):
                words = f"{left.table}.{left.column} = {right.table}.{right.column} is {chance:.0%} likely a key, "
                words += f"{best.left} = {best.right} {best.score:.0%}; by it, "
                yield Doubt("join", words, subject.sql(new.tree))


def _through_another(subject: Subject, left: SourceColumn, right: SourceColumn) -> tuple[str, str] | None:
    """Words and a statement that joins two tables through a third, which has a key to each; None if none has."""
    profiles, new = subject.reader.corpus.profiles, subject.read()
    positions = {profile.id: position for position, profile in enumerate(profiles)}
    links, ends = (
        Links(profiles, facts=computed_of(subject.reader.corpus)),
        [positions[left.table], positions[right.table]],
    )
    for third in links.of_databases(ends):
        id = profiles[third].id
        if id not in subject.names or id in subject.execution.tables or subject.comparison.left <= 0:
            continue
        ways = [key for end in ends if (key := links.best(end, third)) is not None and key.score >= ACCEPTED]
        for one in [one for one in new.equalities if one.is_required and len(ways) == len(ends)]:
            sides = [new.source(side, block) for side, block in zip(one.sides, one.blocks, strict=True)]
            if {side[:2] if side else None for side in sides} == {left[:2], right[:2]} and one.sides[0].parent:
                tests = [
                    exp.EQ(this=column_of(mine, side.alias), expression=column_of(theirs, "through"))
                    for key, side in zip(ways, (left, right), strict=True)
                    for mine, theirs in zip(key.columns_of(side.table), key.columns_of(id), strict=True)
                ]
                table = exp.alias_(
                    exp.Table(this=exp.to_identifier(subject.names[id], quoted=True)), "through", table=True
                )
                one.sides[0].parent.replace(exp.Exists(this=exp.select("1").from_(table).where(*tests)))
                return f"both have one to {subject.names[id]}; through it", subject.sql(new.tree)
    return None


def _is_of(key: KeyPair, left: SourceColumn, right: SourceColumn) -> bool:
    return {(key.left_table, key.left_columns[0]), (key.right_table, key.right_columns[0])} == {left[:2], right[:2]}


def _is_role(subject: Subject, key: KeyPair, chance: float, left: SourceColumn, right: SourceColumn) -> bool:
    """Whether a key is as likely as the one that joins, to the same column, and the question names neither."""
    if not subject.question or key.score < ACCEPTED or abs(key.score - chance) > _CLOSE:
        return False
    ends = {left[:2], right[:2]}
    if (key.right_table, key.right_columns[0]) not in ends:
        return False
    own = next(column for table, column in ends if (table, column) != (key.right_table, key.right_columns[0]))
    return not subject.names_one({*stems(own)} ^ {*stems(key.left_columns[0])})


def _rejoined(new: ReadStatement, left: SourceColumn, right: SourceColumn, key: KeyPair) -> bool:
    """Join two tables by another key."""
    for one in new.equalities:
        sides = [new.source(side, block) for side, block in zip(one.sides, one.blocks, strict=True)]
        if one.is_required and {side[:2] if side else None for side in sides} == {left[:2], right[:2]}:
            for side, node in zip(sides, one.sides, strict=True):
                assert side is not None
                node.replace(column_of(key.columns_of(side.table)[0], side.alias))
            return True
    return False

"""``tag_bench fit answers``: the chance that an answer is right (``answer.confidence``).

Gold SQL counts as right. A variant of it counts as wrong: a table, a join, a literal, an aggregate or the grouping is
swapped, dropped or doubled, and it gives other rows. Every second question is asked over all databases of a data set at
once, the others over their own database. The weights are fitted on one half of the databases and measured on the other;
data without halves is split by every second database.
"""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

import tagframe as tf
from tag_bench.data import SEED, drawn, read_halves
from tag_bench.doubts import area
from tag_bench.fit import Fitted, Given, rounded, shares, to_fit
from tag_bench.fit.likelihood import fit_logistic
from tag_bench.measured import reliability
from tag_bench.records import with_progress
from tag_bench.syn_shown import pooled
from tagframe import results
from tagframe.answer.answer_confidence import FEATURES, LOWERS, features_of_answer
from tagframe.answer.doubts import doubts_of
from tagframe.answer.query import Query
from tagframe.answer.readings import same_rows
from tagframe.answer.tables_confidence import confidence_in
from tagframe.errors import TagframeError

TABLES = 12
_TRIED = 12
_AGGREGATES = (exp.Count, exp.Sum, exp.Avg, exp.Max, exp.Min)
_LIMITS = tf.SQLLimits(seconds=10)


def changed_sql(sql: str, corpus: tf.Corpus, names: dict[str, str], draw: random.Random) -> Iterator[tuple[str, str]]:
    """Wrong variants of a statement in random order, each with the kind of its change; some do not compile."""
    ways = {"table": _tables, "join": _joins, "literal": _literals, "aggregate": _aggregates, "grouping": _grouping}
    for _ in range(_TRIED):
        tree, kind = sqlglot.parse_one(sql, dialect="sqlite"), draw.choice(sorted(ways))
        if ways[kind](tree, corpus, names, draw):
            yield kind, tree.sql(dialect="sqlite")


def _columns(corpus: tf.Corpus, id: str) -> list[str]:
    return [column.name for column in corpus.profile(id).columns]


def _tables(tree: exp.Expr, corpus: tf.Corpus, names: dict[str, str], draw: random.Random) -> bool:
    """Another table with most of the columns in its place, or a table that is read once more."""
    tables = list(tree.find_all(exp.Table))
    table = draw.choice(tables)
    if draw.random() < 0.7:
        table.this.set("this", draw.choice(sorted(names)))
        known = {column.lower() for column in _columns(corpus, names[table.name])}
        for column in tree.find_all(exp.Column):
            if column.table in ("", table.alias_or_name) and column.name.lower() not in known and len(tables) == 1:
                column.this.set("this", draw.choice(sorted(known)))
        return True
    select = table.find_ancestor(exp.Select)
    if select is None:
        return False
    doubled = exp.Table(this=exp.to_identifier(draw.choice(sorted(names))), alias=exp.to_identifier("doubled"))
    select.append("joins", exp.Join(this=doubled))
    return True


def _joins(tree: exp.Expr, corpus: tf.Corpus, names: dict[str, str], draw: random.Random) -> bool:
    """Another column in ON, or no join."""
    joins = list(tree.find_all(exp.Join))
    if not joins:
        return False
    join = draw.choice(joins)
    columns = list(join.find_all(exp.Column))
    if columns and draw.random() < 0.6:
        column = draw.choice(columns)
        column.this.set("this", draw.choice(_columns(corpus, draw.choice(sorted(names.values())))))
        return True
    alias = join.alias_or_name
    select = join.find_ancestor(exp.Select)
    join.pop()
    for column in list(tree.find_all(exp.Column)):
        if column.table == alias and select is not None and isinstance(select.args["from_"].this, exp.Table):
            column.set("table", exp.to_identifier(select.args["from_"].this.alias_or_name))
            owner = names.get(select.args["from_"].this.name) or draw.choice(sorted(names.values()))
            column.this.set("this", draw.choice(_columns(corpus, owner)))
    return True


def _literals(tree: exp.Expr, corpus: tf.Corpus, names: dict[str, str], draw: random.Random) -> bool:
    """Another value of the data, another number, another sign, or no condition."""
    tests = [test for test in tree.find_all(exp.EQ, exp.NEQ, exp.GT, exp.LT, exp.GTE, exp.LTE, exp.Like)
             if isinstance(test.expression, exp.Literal)]  # fmt: skip
    if not tests:
        return False
    test, chance = draw.choice(tests), draw.random()
    if chance < 0.25:
        return bool(test.replace(exp.true()))
    if chance < 0.4 and isinstance(test, exp.GT | exp.LT):
        return bool(test.replace((exp.LT if isinstance(test, exp.GT) else exp.GT)(**test.args)))
    column = test.find(exp.Column)
    samples = [
        sample
        for id in names.values()
        for one in corpus.profile(id).columns
        if column is not None and one.name.lower() == column.name.lower()
        for sample in one.samples
    ]
    if samples:
        value = draw.choice(samples)
        test.set("expression", exp.Literal.string(value) if test.expression.is_string else exp.Literal.number(value))
        return True
    return False


def _aggregates(tree: exp.Expr, corpus: tf.Corpus, names: dict[str, str], draw: random.Random) -> bool:
    """Another aggregate, none, one that is not asked for, another column, or the other end of a ranking."""
    orders = list(tree.find_all(exp.Ordered))
    if orders and draw.random() < 0.4:
        order = draw.choice(orders)
        order.set("desc", not order.args.get("desc"))
        return True
    found = list(tree.find_all(*_AGGREGATES))
    if found and draw.random() < 0.8:
        node = draw.choice(found)
        inner = node.this
        if isinstance(inner, exp.Star):
            inner = exp.column(draw.choice(_columns(corpus, draw.choice(sorted(names.values())))))
        if isinstance(inner, exp.Distinct) and draw.random() < 0.5:
            return bool(node.replace(type(node)(this=inner.expressions[0])))
        other = draw.choice([one for one in _AGGREGATES if not isinstance(node, one)])
        return bool(node.replace(other(this=inner.copy())))
    select = tree.find(exp.Select)
    if select is None or not isinstance(select.expressions[0], exp.Column):
        return False
    item = select.expressions[0]
    if draw.random() < 0.5:
        return bool(item.replace(draw.choice([exp.Count, exp.Max, exp.Min])(this=item.copy())))
    item.this.set("this", draw.choice(_columns(corpus, draw.choice(sorted(names.values())))))
    return True


def _grouping(tree: exp.Expr, corpus: tf.Corpus, names: dict[str, str], draw: random.Random) -> bool:
    """No GROUP BY, no HAVING, no DISTINCT, no LIMIT; or a grouping that is not asked for."""
    select = tree.find(exp.Select)
    assert select is not None
    there = [clause for clause in ("group", "having", "distinct", "limit") if select.args.get(clause) is not None]
    if there:
        clause = draw.choice(there)
        select.set(clause, None)
        if clause == "group":
            select.set("having", None)
        return True
    column = draw.choice(_columns(corpus, draw.choice(sorted(names.values()))))
    select.set("group", exp.Group(expressions=[exp.column(column)]))
    return True


@dataclass(frozen=True)
class Statement:
    """A statement that was run.

    Attributes:
        data, database: of the question.
        reported: whether it is of the half that is measured.
        alone: whether it was asked over its own database.
        change: of gold SQL; "" for none, which is right.
        values: the features of the answer.
    """

    data: str
    database: str
    reported: bool
    alone: bool
    change: str
    values: list[float]


def statements(folder: Path, count: int) -> Iterator[Statement]:
    """Gold statements, and a wrong variant of each; questions for which there is none are left out."""
    halved = bool(read_halves(folder))
    for half in ("fit", "report") if halved else ("fit",):
        pool, questions, _ = pooled([folder], half)
        databases = sorted({question.database.lower() for question in questions})
        for question in with_progress(drawn(questions, count), folder.name):
            names = {one.name: one.id for one in pool.profiles if one.database.lower() == question.database.lower()}
            alone = question.position % 2 == 1
            corpus = pool.subset(sorted(names.values())) if alone else pool
            draw, sql = random.Random(f"{SEED} {question.text}"), re.sub(r'"([^"]*)"', r"'\1'", question.sql)
            found = tf.retrieve_tables(question.text, corpus, k=TABLES)
            read: list[tuple[str, list[float]]] = []

            def look(change: str, sql: str, gold: Any = None) -> Any:
                rows = tf.exec_sql(corpus, limits=_LIMITS)(Query(sql, names))  # noqa: B023
                execution: Any = results.recall(rows, "execution")
                chance = confidence_in(execution.tables, found)  # noqa: B023
                if chance is not None and (gold is None or not same_rows(rows, gold)):
                    doubts = doubts_of(rows, found, question.text, shown=not alone)  # noqa: B023
                    values = features_of_answer(question.text, execution, rows, found, chance, doubts)  # noqa: B023
                    read.append((change, values))  # noqa: B023
                return rows

            with suppress(TagframeError, SqlglotError):
                gold = look("", sql)
                for change, changed in changed_sql(sql, corpus, names, draw):
                    with suppress(TagframeError):
                        look(change, changed, gold)
                    if len(read) == 2:
                        break
            reported = half == "report" if halved else databases.index(question.database.lower()) % 2 == 1
            for change, values in read if len(read) == 2 else ():
                yield Statement(folder.resolve().name, question.database, reported, alone, change, values)


def judged(cases: Sequence[Statement], weights: dict[str, float]) -> dict[str, Any]:
    """How well the chance tells right statements from wrong ones, and how far it is from their share."""
    features, truth = np.array([one.values for one in cases]), np.array([not one.change for one in cases])
    changes = np.array([one.change for one in cases])
    chance = 1 / (1 + np.exp(-features @ np.array([weights[name] for name in FEATURES])))
    by_change = {
        change: round(area(chance[own], truth[own]), 3)
        for change in sorted({*changes} - {""})
        for own in [truth | (changes == change)]
    }
    return {
        "statements": len(cases),
        "area": round(area(chance, truth), 3),
        "area_by_tables_alone": round(area(features[:, FEATURES.index("tables")], truth), 3),
        "off_by": reliability(chance, truth.astype(float)),
        "by_change": by_change,
    }


def fitted(given: Given) -> Fitted:
    """The chance that an answer is right; no model is asked."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = [one for folder in given.folders for one in statements(folder, given.questions)]
    used = to_fit(cases)
    features, truth = np.array([one.values for one in used]), np.array([not one.change for one in used])
    share = shares([one.data for one in used], 1.0)
    weights = fit_logistic(features, truth, share, FEATURES, one_way=dict.fromkeys(LOWERS, -1))
    rest = [one for one in cases if one.reported]
    groups = {
        "in_sample": used,
        "all": rest,
        "pooled": [one for one in rest if not one.alone],
        "one database": [one for one in rest if one.alone],
        **{name: [one for one in rest if one.data == name] for name in dict.fromkeys(one.data for one in rest)},
    }
    found = {name: judged(group, weights) for name, group in groups.items() if any(one.change for one in group)}
    return Fitted({"answers": rounded(weights)}, {"in_sample": found.pop("in_sample", None), "cross_database": found})

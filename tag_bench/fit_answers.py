"""``tag_bench fit_answers``: fits the chance that an answer is right (``answer.confidence``), and measures it.

Gold SQL counts as right. A variant of it counts as wrong: a table, a join, a literal, an aggregate or the grouping is
swapped, dropped or doubled, and it gives other rows. Every second question is asked over all databases of a data set at
once, the others over their own database. The weights are fitted on one half of the databases and measured on the other.
"""

from __future__ import annotations

import json
import random
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
import sqlglot
from sqlglot import exp

import tagframe as tf
from tag_bench import SpreadCommand
from tag_bench.data import Question, drawn
from tag_bench.doubts import area
from tag_bench.fit_stages import fit_logistic
from tag_bench.records import RECORDS, SEEDED, Record, Records, settings_of
from tag_bench.retrieval import reliability
from tag_bench.syn_shown import pooled
from tagframe import results
from tagframe.answer.answer_confidence import FEATURES, LOWERS, features_of_answer
from tagframe.answer.doubts import doubts_of
from tagframe.answer.query import Query
from tagframe.answer.readings import same_rows
from tagframe.answer.tables_confidence import confidence_in
from tagframe.errors import TagframeError

SHOWN = 12
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


def _records(folder: Path, limit: int, seed: int, kept: Records) -> list[Record]:
    """The features of gold statements and of a wrong variant of each."""
    halves = ("fit", "report") if (folder / "halves.json").is_file() else ("fit",)
    found: list[Record] = []
    for half in halves:
        pool, asked, _ = pooled([folder], half)
        sql_of = {(question.database, question.position): sql for question, sql in asked}
        databases = sorted({question.database.lower() for question, _ in asked})

        def ask(
            question: Question,
            pool: tf.Corpus = pool,
            sql_of: Any = sql_of,
            databases: Any = databases,
            half: str = half,
        ) -> Record:
            of = half if len(halves) > 1 else ("fit", "report")[databases.index(question.database.lower()) % 2]
            names = {one.name: one.id for one in pool.profiles if one.database.lower() == question.database.lower()}
            alone = question.position % 2 == 1
            corpus = pool.subset(sorted(names.values())) if alone else pool
            draw, sql = random.Random(f"{seed} {question.text}"), sql_of[question.database, question.position]
            sql = re.sub(r'"([^"]*)"', r"'\1'", sql)
            told: list[tuple[str, list[float]]] = []
            shown = tf.retrieve_tables(question.text, corpus, k=SHOWN)

            def look(kind: str, sql: str, gold: Any = None) -> Any:
                rows = tf.exec_sql(corpus, limits=_LIMITS)(Query(sql, names))
                execution: Any = results.recall(rows, "execution")
                chance = confidence_in(execution.tables, shown)
                if chance is not None and (gold is None or not same_rows(rows, gold)):
                    doubts = doubts_of(rows, shown, question.text, shown=not alone)
                    told.append((kind, features_of_answer(question.text, execution, rows, shown, chance, doubts)))
                return rows

            try:
                gold = look("", sql)
                for kind, changed in changed_sql(sql, corpus, names, draw):
                    try:
                        look(kind, changed, gold)
                    except TagframeError:
                        continue
                    if len(told) == 2:
                        break
            except (TagframeError, sqlglot.errors.SqlglotError):
                pass
            return {"half": of, "database": question.database, "alone": alone, "told": told if len(told) == 2 else []}

        def key(question: Question) -> tuple[str, str]:
            return f"{folder.resolve().name}:{question.position}", question.text

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found += kept.each(drawn([question for question, _ in asked], limit, seed), ask, key, folder.name)
    return found


@click.command("fit_answers", cls=SpreadCommand, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--data", "folders", required=True, multiple=True, type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The data sets.",
)  # fmt: skip
@click.option("--limit", type=click.IntRange(min=1), default=400, show_default=True, help="Questions of each, drawn.")
@RECORDS
@SEEDED
@click.option("--json", "output", type=click.File("w"), default="-", help="Where the JSON goes; - for standard output.")
def command(folders: tuple[Path, ...], limit: int, records: Path | None, seed: int, output: Any) -> None:
    """Fit answer.confidence on one half of the databases, and measure it on the other; no model is asked.

    Example: python -m tag_bench fit_answers --data spider bird spider_train --json -
    """
    settings = settings_of(folders=[folder.resolve().name for folder in folders])
    kept = Records(records, settings)
    told = {folder.resolve().name: _records(folder, limit, seed, kept) for folder in folders}
    rows = [
        (name, record["half"], record["alone"], kind, values)
        for name, own in told.items()
        for record in own
        for kind, values in record["told"]
    ]
    features, truth = np.array([row[4] for row in rows]), np.array([not row[3] for row in rows])
    fits = np.array([row[1] == "fit" for row in rows])
    counts = Counter(row[0] for row in rows if row[1] == "fit")
    share = np.array([1 / max(counts[row[0]], 1) for row in rows])  # each data set counts alike
    weights = fit_logistic(features[fits], truth[fits], share[fits], FEATURES, one_way=dict.fromkeys(LOWERS, -1))
    chance = 1 / (1 + np.exp(-features @ np.array([weights[name] for name in FEATURES])))
    tables = features[:, FEATURES.index("tables")]
    report: dict[str, Any] = {}

    kinds = np.array([row[3] for row in rows])

    def judged(name: str, inside: Any) -> None:
        if not inside.any() or truth[inside].all():
            return
        by_change = {}
        for kind in sorted({*kinds[inside]} - {""}):
            own = inside & (truth | (kinds == kind))
            by_change[kind] = round(area(chance[own], truth[own]), 3)
        report[name] = {
            "statements": int(inside.sum()),
            "area": round(area(chance[inside], truth[inside]), 3),
            "area_by_tables_alone": round(area(tables[inside], truth[inside]), 3),
            "off_by": reliability(chance[inside], truth[inside].astype(float)),
            "by_change": by_change,
        }

    judged("in sample", fits)
    judged("left out", ~fits)
    for alone in (False, True):
        judged(
            f"left out, {'one database' if alone else 'pooled'}", ~fits & np.array([row[2] == alone for row in rows])
        )
    for name in told:
        judged(f"left out, {name}", ~fits & np.array([row[0] == name for row in rows]))
    rounded = {name: round(value, 3) for name, value in weights.items()}
    json.dump({**settings, "report": report, "weights": rounded}, output, indent=2)
    output.write("\n")

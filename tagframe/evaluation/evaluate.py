"""``tagframe eval``: recall, joins and execution accuracy on the user's own questions."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from sqlglot.errors import SqlglotError

from tagframe.answer import automatic, exec_sql
from tagframe.answer.learned_statements import sample_values, with_values
from tagframe.answer.lm_sql import has_functions
from tagframe.corpus import Corpus
from tagframe.corpus.corpus import fact_store
from tagframe.corpus.references import JoinColumns
from tagframe.corpus.statements import Statement
from tagframe.errors import InvalidArgument, TagframeError, UnreadStatement
from tagframe.evaluation.match import is_ordered, match
from tagframe.evaluation.scores import scores_of
from tagframe.joins.roles import without_roles
from tagframe.learning.reading import Names, read_statement
from tagframe.progress import track
from tagframe.retrieval import retrieve_tables

_MEANS = {"precision": "P", "recall": "R", "complete": "CR", "exact": "exact", "joins": "joins", "right": "EX"}


_NAME = re.compile(r"""(?:"[^"]*"|`[^`]*`|\[[^\]]*\]|[^\s,;|"`[])+""")
"""A table's name, with quotes where it has a blank."""


@dataclass(frozen=True)
class Evaluation:
    """The result of :func:`evaluate`.

    Attributes:
        questions: a row for each, with ``question``, ``needed`` and ``found`` (lists of ids), ``precision``,
            ``recall``, ``complete``, ``exact``; ``joins``, the share of its SQL's joins that were found; ``right``,
            whether the answer's rows are those of its SQL; and ``problem``, why a figure is missing. Unknown figures
            are null.
    """

    questions: pd.DataFrame

    @property
    def scores(self) -> dict[str, float]:
        """The mean of each figure in percent, over the questions with that figure."""
        known = {short: self.questions[name].dropna().astype(float) for name, short in _MEANS.items()}
        return {short: round(100 * float(values.mean()), 2) for short, values in known.items() if len(values)}

    def to_dict(self) -> dict[str, Any]:
        """As ``tagframe eval --json`` prints it."""
        rows = self.questions.astype(object).where(self.questions.notna(), None)
        return {"scores": self.scores, "questions": rows.to_dict("records")}

    def __repr__(self) -> str:
        lines = [f"{len(self.questions):,} questions: " + ", ".join(f"{of} {mean}" for of, mean in self.scores.items())]
        for row in self.questions.to_dict("records"):
            missing = [table for table in row["needed"] if table not in row["found"]]
            problems = [f"not found: {', '.join(missing)}"] if missing and not row["problem"] else []
            problems += [row["problem"]] if row["problem"] else []
            problems += ["the rows differ from those of the SQL"] if row["right"] is False else []
            if problems:
                lines.append(f"  {row['question']}\n    " + "; ".join(problems))
        return "\n".join(lines)


def evaluate(
    corpus: Corpus,
    questions: pd.DataFrame | str | Path | None = None,
    *,
    k: int | Literal["auto"] = "auto",
    answers: bool = False,
) -> Evaluation:
    """Compare the tables found for questions with the tables they need, and answers with the rows of their SQL.

    The verified statements (:meth:`tagframe.Corpus.verify`) are questions, too: each is run, with the most frequent
    values of its columns as parameters, and its ``problem`` says why it no longer runs, or that it gives no rows.

    Args:
        corpus: to search.
        questions: a frame, or a CSV file, with ``question`` and ``sql`` or ``tables`` (names, separated by commas or
            spaces, in quotes if they contain one); ``sql`` takes precedence over ``tables``. None for the verified
            statements alone.
        k: how many tables are retrieved.
        answers: whether the configured model also answers each question. The rows of its answer are compared with those
            of the SQL as in Spider's test suite: rows in any order, unless the SQL orders them, and columns in any
            order.

    Raises:
        InvalidArgument: the columns are missing, or there are no questions.
        NotConfigured: ``answers`` without a model.
    """
    names = Names(corpus)
    dialect = next((engine.dialect.name for engine in map(corpus.engine, corpus.ids) if engine is not None), "sqlite")
    rows = [*([] if questions is None else _read(questions)), *_verified(corpus)]
    if not rows:
        raise InvalidArgument("there are no questions, and no verified statements: corpus.verify(question, sql, by=…)")
    judging = track(((1, row) for row in rows), len(rows), "Judging", "question")
    return Evaluation(pd.DataFrame([_judged(corpus, row, names, dialect, k, answers) for row in judging]))


def _read(questions: pd.DataFrame | str | Path) -> list[dict[Any, Any]]:
    try:
        frame = questions if isinstance(questions, pd.DataFrame) else pd.read_csv(questions, dtype=str)
    except (OSError, ValueError) as error:
        raise InvalidArgument(f"{questions} cannot be read as a CSV file of questions: {error}") from error
    if "question" not in frame or not {"sql", "tables"} & set(frame.columns) or frame.empty:
        raise InvalidArgument(
            f"questions need a column 'question', and 'sql' or 'tables'; there are {len(frame)} rows with columns "
            f"{list(frame.columns)}"
        )
    return frame.to_dict("records")


def _verified(corpus: Corpus) -> Iterator[dict[Any, Any]]:
    """The verified statements as questions with SQL, also those that read a table that is gone."""
    for one in (one for one in fact_store(corpus).facts.statements if one.verified_by):
        row: dict[Any, Any] = {"question": one.question or f"a statement of {one.verified_by}"}
        try:
            if gone := [table for table in one.tables if table not in corpus]:
                raise UnreadStatement(f"there is no table {', '.join(gone)}")
            if not one.cells:
                raise UnreadStatement("it reads a column that is private now")
            values = sample_values(one, corpus)
            sql = with_values(one, values, corpus).sql
            given = ", ".join(f"{name} = {value}" for name, value in values.items())
            row |= {"question": f"{row['question']}{f' ({given})' if given else ''}", "sql": sql, "runs": True}
        except (TagframeError, SqlglotError) as error:
            row["problem"] = f"verified by {one.verified_by}, and no longer runs: {error}"
        yield row


def _judged(
    corpus: Corpus, row: Mapping[Any, Any], names: Names, dialect: str, k: int | Literal["auto"], answers: bool
) -> dict[str, Any]:
    question = row["question"].strip() if isinstance(row["question"], str) else ""
    sql, tables = (value if isinstance(value, str) else "" for value in (row.get("sql"), row.get("tables")))
    judged: dict[str, Any] = {"question": question, "needed": [], "found": [], **dict.fromkeys(_MEANS), "problem": ""}
    try:
        if "problem" in row:
            return {**judged, "problem": row["problem"]}
        if not question:
            raise UnreadStatement("there is no question")
        needed = read_statement(sql, names, (dialect, "")) if sql.strip() else _of_tables(tables, names)
        judged["needed"] = list(needed.tables)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            retrieved = retrieve_tables(question, corpus, k=k)
            judged["found"] = list(retrieved.ids)
            scores = scores_of(retrieved.ids, needed.tables)
            judged.update(
                precision=scores.precision, recall=scores.recall, complete=scores.complete, exact=scores.exact
            )
            if needed.joins:
                joins = without_roles(retrieved.joins, corpus)
                seen = {side for key in joins for side in JoinColumns.of(vars(key)).sides}
                joined = [side for key in needed.joins for side in key.sides]
                judged["joins"] = sum(side in seen for side in joined) / len(joined)
            if row.get("runs") is True and not has_functions(sql) and exec_sql(corpus)(sql).empty:
                judged["problem"] = "the verified statement gives no rows"
            if answers and sql.strip():
                theirs = _plain(exec_sql(corpus)(sql))
                ours = _plain(replace(automatic(corpus), gen=None)(question).rows)
                judged["right"] = match(ours, theirs, "spider", ordered=is_ordered(sql))
    except UnreadStatement as error:
        judged["problem"] = f"not compared: {error}"
    except (TagframeError, SqlglotError, RecursionError) as error:
        judged["problem"] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        judged["right"] = False if answers and judged["found"] else None
    return judged


def _of_tables(text: str, names: Names) -> Statement:
    """The named tables, as a statement that reads them."""
    from sqlglot import exp

    try:
        given = [exp.to_table(name, dialect="sqlite") for name in _NAME.findall(text)]
    except SqlglotError as error:
        raise UnreadStatement(f"{text[:200]!r} names no tables: {str(error).splitlines()[0]}") from error
    if not given:
        raise UnreadStatement("neither SQL nor tables are given")
    return Statement(tuple(sorted(set(names.tables(given).values()))))


def _plain(frame: pd.DataFrame) -> list[tuple[Any, ...]]:
    return list(frame.astype(object).where(frame.notna(), None).itertuples(index=False, name=None))

"""``tagframe eval``: recall, joins and execution accuracy on the user's own questions."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from sqlglot.errors import SqlglotError

from tagframe.answer import automatic, exec_sql
from tagframe.corpus import Corpus
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
    questions: pd.DataFrame | str | Path,
    *,
    k: int | Literal["auto"] = "auto",
    answers: bool = False,
) -> Evaluation:
    """Compare the tables found for questions with the tables they need, and answers with the rows of their SQL.

    Args:
        corpus: to search.
        questions: a frame, or a CSV file, with ``question`` and ``sql`` or ``tables`` (names, separated by commas or
            spaces, in quotes if they contain one); ``sql`` takes precedence over ``tables``.
        k: how many tables are retrieved.
        answers: whether the configured model also answers each question. The rows of its answer are compared with those
            of the SQL as in Spider's test suite: rows in any order, unless the SQL orders them, and columns in any
            order.

    Raises:
        InvalidArgument: the columns are missing, or there are no questions.
        NotConfigured: ``answers`` without a model.
    """
    try:
        frame = questions if isinstance(questions, pd.DataFrame) else pd.read_csv(questions, dtype=str)
    except (OSError, ValueError) as error:
        raise InvalidArgument(f"{questions} cannot be read as a CSV file of questions: {error}") from error
    if "question" not in frame or not {"sql", "tables"} & set(frame.columns) or frame.empty:
        raise InvalidArgument(
            f"questions need a column 'question', and 'sql' or 'tables'; there are {len(frame)} rows with columns "
            f"{list(frame.columns)}"
        )
    names = Names(corpus)
    dialect = next((engine.dialect.name for engine in map(corpus.engine, corpus.ids) if engine is not None), "sqlite")
    rows = track(((1, row) for row in frame.to_dict("records")), len(frame), "Judging", "question")
    return Evaluation(pd.DataFrame([_judged(corpus, row, names, dialect, k, answers) for row in rows]))


def _judged(
    corpus: Corpus, row: Mapping[Any, Any], names: Names, dialect: str, k: int | Literal["auto"], answers: bool
) -> dict[str, Any]:
    question = row["question"].strip() if isinstance(row["question"], str) else ""
    sql, tables = (value if isinstance(value, str) else "" for value in (row.get("sql"), row.get("tables")))
    judged: dict[str, Any] = {"question": question, "needed": [], "found": [], **dict.fromkeys(_MEANS), "problem": ""}
    try:
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

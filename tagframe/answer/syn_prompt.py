"""``syn``'s prompt, and the parsing of its answers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from sqlglot import exp

from tagframe.answer.lm_sql.dialects import SPOKEN
from tagframe.answer.query import Query
from tagframe.blocks import fence, parse_block
from tagframe.engines.base import NARROW_IT
from tagframe.engines.registry import DIALECTS
from tagframe.engines.sql_reader import first_tree
from tagframe.errors import AnswerRejected, SQLFailed, UnsafeSQL
from tagframe.lm import Message, Prompt
from tagframe.retrieval.schema_text import NAMES_ARE_DATA, prompt_parts

_OF_DATABASES = " Stay in one DATABASE unless the question spans several."
_WHOLE = " Integers divide to integers."
_STATISTICS = " There are median, stddev, variance, corr, quantile_cont(x, 0.9), mode."

_TASK = f"""Write one SQLite SELECT whose rows answer a question about tables: what it asks for, in that order,
nothing else. Compare with values as stored; "…" means more. Leave NULL out of minima and
maxima.{_WHOLE} Joins may repeat rows: count DISTINCT things, sum before you join. "Each X" is all X, those without a
partner with 0.{_STATISTICS}{_OF_DATABASES}"""

_REPLY = f"""{NAMES_ARE_DATA}

Reply with a ```sql block. Its first line: "-- answer: values" if its rows are the answer, "-- answer: text" if a text
is wanted. If another reading, column or table may change the rows, say yours, "-- assumed: without
returns", and give the other, "-- or: by seats: SELECT …". A part that the tables lack: "-- lacking: prices". If they
lack what it needs, reply {{"missing": "what"}}."""

_WORLD = """Facts of the world and short, surely complete lists may stand in the statement; no figure that is asked for.
For more, or for judgement, use a function."""

_FUNCTIONS = """A language model does what SQL cannot, of the fewest columns that decide, in braces:
sem_filter('{b.plot} is set at sea') 1, 0 or NULL; sem_score('how sad {b.plot} is') 0 to 1; ORDER BY
sem_topk('{b.title} is saddest', 5) LIMIT 5; sem_map('river of {t.town name}') a text, with 'number' after it a number;
sem_agg('what readers praise: {r.text}') a text of a group. For a summary or description, select the
rows it is about with every telling column.
"""


def _task(dialect: str, has_databases: bool) -> str:
    """The instructions, for the engine's dialect, with LM functions if the engine supports them."""
    spoken = DIALECTS[dialect]
    task = _TASK if has_databases else _TASK.replace(_OF_DATABASES, "")
    functions, world = _FUNCTIONS, _WORLD
    if spoken.rules:
        task = task.replace(_STATISTICS, "").replace("SQLite", spoken.title)
        task = task if spoken.divides_whole else task.replace(_WHOLE, "")
        task += f"\n{spoken.rules} Only functions that compute from their\narguments alone may be called."
        if dialect in SPOKEN:
            functions = functions.replace("1, 0 or NULL", "true, false or NULL")
        else:
            functions, world = "", world.partition("For more")[0].strip()
    return "\n\n".join(filter(None, [task, f"{functions}{world}", _REPLY]))


def syn_prompt(
    question: str,
    schema: str,
    joins: Sequence[str],
    note: str = "",
    dialect: str = "sqlite",
    cells: Sequence[str] = (),
    examples: Sequence[str] = (),
    metrics: Sequence[str] = (),
    verified: Sequence[str] = (),
) -> Prompt:
    """``syn``'s prompt: the schema, how the tables join, and the question.

    Args:
        question: of the user.
        schema: tables, from :func:`tagframe.retrieval.schema_text.describe_tables`.
        joins: keys, from :func:`tagframe.retrieval.schema_text.describe_keys`.
        note: a remark on the tables, or "".
        dialect: of the engine that runs the statement.
        cells: words of the question that are values of columns, one line each.
        examples: other questions with the statements that answered them, one line each.
        metrics: definitions of measures that the question names, one line each.
        verified: statements that people have verified, numbered, two lines each.
    """
    # What is the same for all questions over a corpus stands first: servers keep the beginning of a prompt.
    parts = prompt_parts(schema, joins, cells)
    of_people = ((_EXAMPLES, examples, "examples"), (_METRICS, metrics, "metrics"), (_VERIFIED, verified, "verified"))
    parts += [f"{words}\n{fence(list(lines), name)}" for words, lines, name in of_people if lines]
    parts += [*filter(None, [note]), f"Question: {question}"]
    task = _task(dialect, schema.startswith("DATABASE "))
    return Prompt((Message("system", task), Message("user", "\n\n".join(parts))))


_METRICS = "Measures as they are defined here. Where the question asks for one, compute it by its own expression:"
_EXAMPLES = """Statements that answered other questions here, with ? for values that are not told. They show what
columns mean and how tables join; the question below may ask for something else:"""

_VERIFIED = """People have verified these statements. Where one answers the question below, use it: reply with its
number and a value for each of its parameters, as {"verified": 1, "year": 2013}, and nothing else; where several do,
with a list of these, the best first:"""


def revised_prompt(prompt: Prompt, sql: str, why: str) -> Prompt:
    """The prompt that asks again, after a statement that gave no rows."""
    again = (
        f"{why}\nLook at how the values are stored, and at what the question needs. Reply with a better statement in a "
        "```sql block; or with the same one, where no rows is the right answer."
    )
    remarks = f"```sql\n{sql}\n```"
    return Prompt((*prompt.messages, Message("assistant", remarks), Message("user", again)), prompt.sample)


_EXPECTED = "expected a SELECT statement in a ```sql block"
_STATEMENT = re.compile(r"\s*(?:--[^\n]*\n\s*)*(?:WITH|SELECT|\()", re.IGNORECASE)


_KIND = r"((?:answer|assumed|lacking|or)(?=[ \t]*:)|or\b(?=.*\b(?:SELECT|WITH)\b))[ \t]*:?"
_REMARK = re.compile(rf"^[ \t]*--[ \t]*{_KIND}(.*)$\n?", re.IGNORECASE | re.MULTILINE)
_SAID_OVER_LINES = re.compile(rf"(^[ \t]*--[ \t]*or[ \t]*:.*)\n[ \t]*--(?![ \t]*{_KIND})", re.IGNORECASE | re.MULTILINE)
_BEGINS = re.compile(r"\(*\s*\b(?:SELECT|WITH)\b", re.IGNORECASE)
_LONGEST_SAID = 300
_MOST_OTHERS = 3


def read_statement(body: str) -> Query:
    """A statement, with the facts in its first comments.

    >>> read_statement("-- answer: values\\n-- assumed: clubs alone\\nSELECT 1")
    Query(sql='SELECT 1', assumptions=('clubs alone',), wants_text=False, lacking=(), verified='')
    >>> read_statement("-- or: by seats: SELECT 2\\n-- lacking: prices\\nSELECT 1").others
    (('by seats', 'SELECT 2'),)
    """
    count = 1
    while count:
        body, count = _SAID_OVER_LINES.subn(r"\1", body)
    remarks: dict[str, list[str]] = {"answer": [], "assumed": [], "or": [], "lacking": []}
    for kind, words in _REMARK.findall(body):
        remarks[kind.lower()].append(" ".join(words.split()))
    wants = {"values": False, "text": True}.get(remarks["answer"][0].strip('."').lower()) if remarks["answer"] else None
    others = [_other(words) for words in remarks["or"][:_MOST_OTHERS]]
    unread = [f"it can be read otherwise: {words}" for words, sql in others if not sql]
    return Query(
        _REMARK.sub("", body).strip(),
        assumptions=_described([*remarks["assumed"], *unread]),
        wants_text=wants,
        lacking=_described(remarks["lacking"]),
        others=tuple((words[:_LONGEST_SAID] or "otherwise", sql) for words, sql in others if sql),
    )


def _other(line: str) -> tuple[str, str]:
    """The words of another reading, and its statement; "" if there is none that can be parsed."""
    starts = [match.start() for match in _BEGINS.finditer(line)]
    after_words = [start for start in starts if not line[:start].strip() or line[:start].rstrip().endswith(":")]
    for start in [*after_words, *(start for start in starts if start not in after_words)]:
        sql = line[start:].strip().rstrip("; ")
        if _is_query(sql):
            return line[:start].strip().rstrip(":").strip("() "), sql
    return line, ""


def _is_query(sql: str) -> bool:
    return any(isinstance(first_tree(sql, dialect), exp.Query) for dialect in ("sqlite", "postgres", "duckdb"))


def _described(lines: Sequence[str]) -> tuple[str, ...]:
    """What lines say, each once; "none" and "nothing" say nothing."""
    rest = [line[:_LONGEST_SAID] for line in lines if line.lower().strip(".") not in ("", "none", "nothing")]
    return tuple(dict.fromkeys(rest))


def parse_statement(text: str, check: Callable[[str], str], fill: Callable[[list[Any]], Query] | None = None) -> Query:
    """Parse an answer of ``syn``: a statement that can run, a verified one, or none, with what is lacking.

    Args:
        text: the answer: a statement, in a code block or not, ``{"verified": 1, …}``, or ``{"missing": …}``.
        check: returns the checked SQL, or raises :class:`UnsafeSQL` or :class:`SQLFailed`.
        fill: gives the verified statements that are picked; None if there are none.

    Raises:
        AnswerRejected: it is neither, or cannot run; the reason is written for the model.
    """
    body = parse_block(text)
    if body.startswith(("{", "[")):
        try:
            remarks = json.loads(body)
        except json.JSONDecodeError as error:
            raise AnswerRejected(f"{_EXPECTED}, got {text[:120]!r} ({error})") from error
        picks = remarks if isinstance(remarks, list) else [remarks]
        if fill is not None and picks and all(isinstance(pick, dict) and "verified" in pick for pick in picks):
            return _runnable(lambda: fill(picks))
        if isinstance(remarks, dict) and set(remarks) == {"missing"} and isinstance(remarks["missing"], str):
            what = " ".join(remarks["missing"].split())[:_LONGEST_SAID] or "what the question needs"
            return Query("", lacking=(what,))
        raise AnswerRejected(f'expected a SELECT statement, or {{"missing": "…"}}, got {body[:120]!r}')
    written = read_statement(body)
    if _STATEMENT.match(written.sql) is None:
        raise AnswerRejected(f"{_EXPECTED}, got {text[:120]!r}")
    return _runnable(lambda: replace(written, sql=check(written.sql)))


def _runnable(checked: Callable[[], Query]) -> Query:
    try:
        return checked()
    except (UnsafeSQL, SQLFailed) as error:
        raise AnswerRejected(str(error).replace(f"; {NARROW_IT}", "")) from error

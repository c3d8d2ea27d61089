"""Text2SQL: the special case of TAG without ``gen``, with the papers' prompts.

Biswal et al.: *Text2SQL is Not Enough: Unifying AI and Databases with TAG* (CIDR 2025), section 4.2 and appendix B.1;
Chen et al.: *Is Table Retrieval a Solved Problem? Exploring Join-Aware Multi-Table Retrieval* (ACL 2024), appendix A.2.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from tagframe.answer.cell_literals import cell_literals
from tagframe.answer.execution import exec_sql
from tagframe.answer.generation import one_value
from tagframe.answer.guard import Reader
from tagframe.answer.lm_sql import check_staged
from tagframe.answer.query import Query, names_in_sql
from tagframe.answer.steps import driver
from tagframe.answer.tag import TAG, Gen
from tagframe.corpus import Corpus, TableProfile
from tagframe.engines.base import SQLLimits
from tagframe.errors import AnswerRejected, InvalidArgument, SQLFailed, UnsafeSQL
from tagframe.joins import accepted_keys
from tagframe.lm import Prompt
from tagframe.operators import Step, run
from tagframe.operators.answer_grammar import parse_block
from tagframe.retrieval import RetrievedTables

DEVIATIONS = {
    "JAR: appendix A.2": ("lines of the foreign keys between the tables follow them; the comment lines are left out"),
    "TAG: section 4.2, Text2SQL": (
        "with `gen=`, the prompt is that of Text2SQL: it asks for the answer, not for relevant rows"
    ),
    "TAG: appendix B.1": (
        '`not null` is written of columns without nulls, not of those so declared; "understading" is spelled right'
    ),
}
"""What is not as printed, by paper and place; ``docs/papers.md`` has the same."""

PromptName = Literal["bird", "jar"]
_SAMPLES = 3

_JAR_TASK = (
    "Generate SQL given the question, tables, and external knowledge to answer the question correctly. First, identify "
    "tables with relevant columns. Then, join these tables using only columns in the tables. Finally, decide which "
    "columns to return in the SQL to answer the original question. When returning columns, please specify the tables "
    "associated with it to prevent ambiguity. Think step by step."
)

_JAR_EXAMPLE = """CREATE TABLE singer(
singer_id TEXT: <instance 1>, ...,
nation TEXT: <instance 1>, ...,
sname TEXT: <instance 1>, ...,
dname TEXT: <instance 1>, ...,
cname TEXT: <instance 1>, ...,
age INTEGER: <instance 1>, ...,
year INTEGER: <instance 1>, ...,
birth_year INTEGER: <instance 1>, ...,
salary REAL: <instance 1>, ...,
city TEXT: <instance 1>, ...,
phone_number INTEGER: <instance 1>, ...,
tax REAL: <instance 1>, ...)

External Knowledge: age = year - birth_year

Question: How many singers in USA who is older than 27?

Answer: SELECT COUNT(*) FROM singer WHERE year - birth_year > 27;"""


def text2sql(
    corpus: Corpus,
    tables: RetrievedTables | Sequence[str] | None = None,
    *,
    prompt: PromptName = "bird",
    knowledge: str | Callable[[str], str] = "",
    gen: Gen | None = None,
    repair: bool = False,
    limits: SQLLimits | None = None,
) -> TAG:
    """Text2SQL as a TAG: one SELECT, whose rows are the answer.

    Args:
        corpus: whose tables are asked.
        tables: the tables to show to the model, by id, or the result of ``retrieve_tables``; None for all.
        prompt: ``"bird"`` (TAG, appendix B.1, as in the BIRD benchmark) or ``"jar"`` (JAR, appendix A.2, with sample
            values, foreign keys and an example).
        knowledge: the "external knowledge" of the prompts: a text, or a function of the question.
        gen: writes an answer from the rows (the paper's Text2SQL + LM); None uses the rows as the answer.
        repair: whether a statement that does not compile is repaired once, with the database's message. The papers do
            not: their baseline answers nothing then.
        limits: rows, seconds and memory of a statement.

    Raises:
        InvalidArgument: another prompt name.
        TableNotFound: an unknown table.
    """
    if prompt not in ("bird", "jar"):
        raise InvalidArgument(f"prompt must be 'bird' or 'jar'; got {prompt!r}")
    ids = corpus.ids if tables is None else tables.ids if isinstance(tables, RetrievedTables) else list(tables)
    profiles = [corpus.profile(id) for id in ids]
    syn = Text2SQLSyn(corpus, names_in_sql(profiles), prompt, knowledge, repair)
    return TAG(syn, exec_sql(corpus, limits=limits), gen)


@dataclass(frozen=True)
class Text2SQLSyn:
    """``syn`` with a paper's prompt; made by :func:`text2sql`.

    Attributes:
        corpus: where the tables are.
        tables: name in SQL → table id, of the tables in the prompt.
        prompt: the paper whose prompt is used.
        knowledge: for the question.
        repair: whether a statement that does not compile is repaired once.
    """

    corpus: Corpus = field(repr=False)
    tables: Mapping[str, str]
    prompt: PromptName = "bird"
    knowledge: str | Callable[[str], str] = ""
    repair: bool = False

    def __call__(self, request: str) -> Query:
        """The query; the thread waits for it."""
        return run(self.steps(request), driver(), "syn")

    def steps(self, request: str) -> Step[Query]:
        """The query as a step: it must compile, with ``repair`` after one repair with the database's error message.

        Raises:
            UnsafeSQL, SQLFailed: it does not compile, without ``repair``.
            LMError: the model gave no query; with ``repair``, none that can run.
        """
        reader = Reader(self.corpus, self.tables)

        def accept(text: str) -> str:
            try:
                return check_staged(statement_in(text), reader)
            except (UnsafeSQL, SQLFailed) as error:
                raise AnswerRejected(str(error)) from error

        sql = yield from one_value(self.prompt_for(request), accept if self.repair else statement_in)
        return Query(sql if self.repair else check_staged(sql, reader), self.tables)

    def prompt_for(self, request: str) -> Prompt:
        """The prompt for a question."""
        known = self.knowledge(request) if callable(self.knowledge) else self.knowledge
        profiles = {name: self.corpus.profile(id) for name, id in self.tables.items()}
        if self.prompt == "bird":
            schema = "\n\n".join(_bird_table(name, profile) for name, profile in profiles.items())
            return Prompt.of(
                f"{schema}\n\n\n-- External Knowledge: {known or 'None'}\n"
                "-- Using valid SQLite and understanding External Knowledge, answer the following questions for the "
                f"tables provided above\n-- {request}\nSELECT"
            )
        schema = "\n\n".join(_jar_table(self.corpus, name, profile) for name, profile in profiles.items())
        keys = "".join(f"\n{line}" for line in self._keys())
        return Prompt.of(
            f"{_JAR_TASK}\n\n{_JAR_EXAMPLE}\n\n{schema}\n{keys}\n\nExternal Knowledge: {known or 'None'}\n\n"
            f"Question: {request}\n\nAnswer:"
        )

    def _keys(self) -> Iterator[str]:
        """All keys between the tables of the prompt, also those that a merge would not need."""
        named = {id: _plain(name) for name, id in self.tables.items()}
        for key in accepted_keys(self.corpus, [*named]):
            left, right = named[key.left_table], named[key.right_table]
            pairs = zip(map(_plain, key.left_columns), map(_plain, key.right_columns), strict=True)
            yield " AND ".join(f"{left}.{mine} = {right}.{theirs}" for mine, theirs in pairs)


def _bird_table(name: str, profile: TableProfile) -> str:
    lines = []
    for column in profile.columns:
        if column.private:
            continue
        key = " primary key" if profile.primary_key == (column.name,) else ""
        null = "not null" if column.nulls == 0 else "null"
        lines.append(f"    {_plain(column.name)} {column.declared_type or column.family.upper()} {null}{key},")
    if len(profile.primary_key) > 1:
        lines.append(f"    primary key ({', '.join(map(_plain, profile.primary_key))}),")
    body = "\n".join(lines).rstrip(",")
    return f"CREATE TABLE {_plain(name)}\n(\n{body}\n)"


def _jar_table(corpus: Corpus, name: str, profile: TableProfile) -> str:
    """The samples are literals of SQL: a text that the model copies is found as it is stored."""
    stored, lines = cell_literals(corpus, profile), []
    for column in profile.columns:
        if not column.private:
            known = stored.get(column.name)
            samples = map(repr, column.samples) if known is None else known.values
            visible = ", ".join(list(samples)[:_SAMPLES])
            lines.append(f"{_plain(column.name)} {column.declared_type or column.family.upper()}: {visible}")
    return f"CREATE TABLE {_plain(name)}(\n" + ",\n".join(lines) + ")"


def _plain(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else f"`{name}`"


_BEGINNING = re.compile(r"\b(?:WITH|SELECT)\b", re.IGNORECASE)


def statement_in(text: str) -> str:
    """The statement of an answer: in a code block, after words, or without the SELECT that the prompt ended with.

    >>> statement_in("count(*) FROM film;")
    'SELECT count(*) FROM film'
    """
    body = parse_block(text).strip().rstrip(";").rstrip()
    if _BEGINNING.match(body):
        return body
    line = re.search(r"^\s*(?:Answer:\s*)?((?:WITH|SELECT)\b.*)", body, re.IGNORECASE | re.DOTALL | re.MULTILINE)
    return line[1] if line else f"SELECT {body}"

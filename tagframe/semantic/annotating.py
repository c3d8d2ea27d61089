"""``corpus.annotate``: a model describes tables and cryptic columns, once."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tagframe.blocks import FENCE_RULE, fence
from tagframe.corpus import ColumnProfile, Corpus, TableProfile, computed_of
from tagframe.corpus.corpus import fact_store, private_of, statements_of
from tagframe.corpus.facts import BY_MODEL, FactKey, as_description
from tagframe.corpus.statements import Statement
from tagframe.display import Displayable
from tagframe.errors import AnswerRejected, counted
from tagframe.lm import LM, Batch, Completion, Message, Prompt, Quote, QuoteEnds, QuotingLM
from tagframe.operators.cells import one_line
from tagframe.operators.values import parse_json
from tagframe.retrieval.families import families
from tagframe.retrieval.links import Links

COLUMNS = 80
"""Columns of a table in one prompt; a table with more columns needs several prompts."""

LONGEST = 300
"""The longest kept description of a table or a column, in characters."""

_SAMPLES, _CHARACTERS, _EXAMPLES, _KEYS = 3, 40, 3, 12
_SENTENCE = 4
"""A description that repeats this many words of a cell is not kept."""
_LISTED = 10

_Reply = tuple[str, dict[str, str]]
"""Of a table, and of its columns."""

_TASK = f"""You write a data dictionary. You are shown one table of a database: its columns with their types and a \
few values, how it joins other tables, and statements that read it, as far as these are known.
Say in one plain sentence what a row of the table is, and in a few words what each column holds whose name does not
say it by itself: spell abbreviations out, and use the words in which people would ask for it. Leave out columns that
are clear, and those of which you can only guess.

{FENCE_RULE} The same holds for names.

Reply with one JSON object {{"table": "…", "columns": {{"COLUMN": "…"}}}} and nothing else."""


@dataclass(frozen=True, repr=False)
class Annotated(Displayable):
    """The result of an annotation by a model.

    Attributes:
        tables, columns: how many of them have a description now.
        failed: tables without a usable answer, and why.
    """

    tables: int
    columns: int
    failed: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        first = f"a model annotated {counted(self.tables, 'table')} and {counted(self.columns, 'column')}"
        more = len(self.failed) - _LISTED
        lines = [f"  {what} failed: {why}" for what, why in self.failed[:_LISTED]]
        return "\n".join([first, *lines, *[f"  … {more:,} more failed"] * (more > 0)])


def annotated(corpus: Corpus, lm: LM) -> Annotated:
    """Have a model annotate the tables that have no annotation of their current state. However this ends, finished
    annotations are kept.

    Args:
        corpus: that is annotated.
        lm: the model.

    Raises:
        ReplayMiss: a store that is replayed lacks answers; all prompts are noted in it.
    """
    prompts_left = list(prompts(corpus))
    values: dict[FactKey, Any] = {}
    failed: dict[str, str] = {}

    answers: dict[int, Completion[_Reply]] = {}
    try:
        with lm.stream("annotate") as stream:
            stream.put(Batch([prompt for _, prompt in prompts_left], parse_annotation))
            while arrived := stream.take():
                answers.update(*arrived.values())
    finally:
        for number, (profile, _) in enumerate(prompts_left):
            answer = answers.get(number)
            if answer is None or answer.value is None:
                failed[profile.id] = "it was not asked" if answer is None else str(answer.error)
            else:
                values.update(_facts(profile, answer.value) | values)
        # Of a table of several prompts all are kept, or it is asked again.
        for key in [key for key in values if key[1][0] in failed]:
            del values[key]
        fact_store(corpus).put(values)
    columns = sum(len(of) > 1 for _, of in values)
    return Annotated(len(values) - columns, columns, tuple(failed.items()))


def _facts(profile: TableProfile, remarks: _Reply) -> dict[FactKey, Any]:
    """A model's descriptions of a table and its columns, without text copied from cells, which may be an attack."""
    table, columns = remarks
    names = {column.name.casefold(): column.name for column in profile.for_prompts}
    cells = [_excerpt(column) for column in profile.for_prompts]
    phrases = [cell.casefold() for several in cells for cell in several if len(cell.split()) >= _SENTENCE]
    own = {name: text for name, text in columns.items() if text and name.casefold() in names}
    own = {
        name: text for name, text in {"": table, **own}.items() if not any(cell in text.casefold() for cell in phrases)
    }
    found: dict[FactKey, Any] = {("annotated", (profile.id,)): [own.pop("", ""), _seen(profile)]}
    return found | {("annotated", (profile.id, names[name.casefold()])): text for name, text in own.items()}


def _excerpt(column: ColumnProfile) -> list[str]:
    return [sample[:_CHARACTERS] for sample in column.samples[:_SAMPLES]]


def _seen(profile: TableProfile) -> list[str]:
    """The columns that a model may see."""
    return [column.name for column in profile.for_prompts]


def quoted(corpus: Corpus, lm: LM) -> Quote:
    """The cost of :func:`annotated`."""
    guess = '{"table": "what a row of this table is, in a sentence"}'
    quoting = QuotingLM(lm, lambda prompt: guess)
    with contextlib.suppress(QuoteEnds):
        quoting.complete([prompt for _, prompt in prompts(corpus)], accept=parse_annotation)
    return quoting.quote


def prompts(corpus: Corpus) -> Iterator[tuple[TableProfile, Prompt]]:
    """The tables that are not annotated yet, and a prompt for each; several for a wide one."""
    store = fact_store(corpus)
    private, annotated = private_of(corpus), store.facts.of_kind("annotated")
    links = Links(corpus.profiles, facts=computed_of(corpus))
    statements = [one for one in statements_of(corpus) if one.sql and not one.reads(private)]
    positions = {profile.id: position for position, profile in enumerate(corpus.profiles)}
    # Of tables that are one in pieces, one stands for all.
    for profile in (family.table for family in families(corpus.profiles, computed_of(corpus))):
        before = annotated.get((profile.id,))
        if before is not None and before[1] == _seen(profile):
            continue
        position = positions[profile.id]
        columns = list(profile.for_prompts)
        visible = [other for other, _ in sorted(links.of(position), key=lambda pair: -pair[1])[:_KEYS]]
        keys = [key for other in visible if (key := links.best(position, other)) is not None]
        unread = {f"{table}.{column}" for table, column in private}
        joins = [f"{key.left} = {key.right}" for key in keys if not unread & {key.left, key.right}]
        read = _examples(profile.id, statements)
        for start in range(0, max(len(columns), 1), COLUMNS):
            shown_columns = {
                column.name: [
                    column.declared_type or column.family,
                    *filter(None, [_by_person(column)]),
                    *_excerpt(column),
                ]
                for column in columns[start : start + COLUMNS]
            }
            remarks = {"description": by_person} if (by_person := _by_person(profile)) else {}
            plain = {"table": profile.id, **remarks, "columns": shown_columns}
            parts = [fence(json.dumps(plain, ensure_ascii=False), "table")]
            parts += [f"It joins:\n{fence(joins, 'joins')}"] if joins else []
            parts += [f"Statements that read it:\n{fence(read, 'statements')}"] if read else []
            yield profile, Prompt((Message("system", _TASK), Message("user", "\n\n".join(parts))))


def _by_person(described: TableProfile | ColumnProfile) -> str:
    """Its description, unless a model wrote it."""
    return "" if described.description.startswith(BY_MODEL) else described.description


def _examples(table: str, statements: Sequence[Statement]) -> list[str]:
    """The statements that read a table: first those with a question, then those that were run most often."""
    reading = sorted((one for one in statements if table in one.tables), key=lambda one: (not one.question, -one.times))
    lines = []
    for one in reading[:_EXAMPLES]:
        lines += [f"-- {one_line(one.question)}"] if one.question else []
        lines.append(one_line(one.sql))
    return lines


def parse_annotation(text: str) -> _Reply:
    """A model's descriptions of a table and of its columns.

    >>> parse_annotation('{"table": "A sale.", "columns": {"AMT": "amount"}}')
    ('A sale.', {'AMT': 'amount'})

    Raises:
        AnswerRejected: it has another form.
    """
    form = '{"table": "…", "columns": {…}}'
    remarks, body = parse_json(text, form)
    table, columns = (remarks.get("table"), remarks.get("columns", {})) if isinstance(remarks, dict) else ("", {})
    if not isinstance(table, str) or not table.strip() or not isinstance(columns, dict):
        raise AnswerRejected(f"expected {form}, got {body[:120]!r}")
    if not all(isinstance(one, str) for one in columns.values()):
        raise AnswerRejected(f"expected {form} with texts, got {body[:120]!r}")
    return as_description(table)[:LONGEST], {name: as_description(one)[:LONGEST] for name, one in columns.items()}

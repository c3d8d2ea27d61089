"""How an answer is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tagframe.display.join_graph import join_graph
from tagframe.display.markup import escaped, page, small, table
from tagframe.display.results import Answered, Plan
from tagframe.display.terminal import fitted

if TYPE_CHECKING:
    import pandas as pd

_MAX_ROWS = 10
_MAX_OTHER_ROWS = 5


def answer_text(answer: Answered) -> str:
    """An answer step by step, for a terminal."""
    lines = [f"question: {answer.question}", f"answer:   {answer.text}"]
    lines += [f"values:   {answer.values!r}"] if answer.values else []
    lines += [f"verified: by {answer.verified}"] if answer.verified else []
    lines += [f"assumed:  {one}" for one in answer.assumptions]
    for doubt in answer.doubts:
        lines += [f"doubt:    {doubt}", *([f"    {doubt.statement}"] if doubt.statement else [])]
    last_syn, last_exec = _last(answer, "syn"), _last(answer, "exec")
    for position, step in enumerate(answer.steps):
        lines.append(str(step))
        if position == last_syn:
            lines.append(f"    {answer.query}")
        if position == last_exec:
            lines += [f"    {line}" for line in [*_stages(answer), answer.made_of]]
    return fitted("\n".join(lines))


def _last(answer: Answered, name: str) -> int | None:
    return max((position for position, step in enumerate(answer.steps) if step.name.startswith(name)), default=None)


def _stages(answer: Answered) -> list[str]:
    return [] if answer.execution is None else [str(stage) for stage in answer.execution.stages]


def answer_html(answer: Answered, plan: Plan | None) -> str:
    """An answer in a notebook: the text, the highlighted query, the rows, and how its tables join.

    Args:
        answer: what is shown.
        plan: how the tables of its query join, or None if there are fewer than two tables.
    """
    parts = [f'<p style="white-space:pre-wrap"><b>{escaped_lines(answer.text)}</b></p>']
    parts += [f"<p>values: <code>{escaped(repr(answer.values))}</code></p>"] if answer.values else []
    if answer.verified:
        parts.append(f"<p>answered by a verified statement of {escaped(answer.verified)}</p>")
    parts += [f"<p>assumed: {escaped(one)}</p>" for one in answer.assumptions]
    parts += [part for one in answer.doubts for part in _doubt(one)]
    parts.append(_statement(str(answer.query)))
    parts += [small(line) for line in _stages(answer)]
    parts.append(_rows(answer.rows, _MAX_ROWS))
    cut = "" if len(answer.rows) <= _MAX_ROWS else f", the first {_MAX_ROWS} are shown"
    parts.append(small(answer.made_of + cut))
    if plan is not None and plan.steps:
        parts.append(f'<div style="padding:12px 0 6px">{join_graph(plan)}</div>')
    parts.append(small("; ".join(map(str, answer.steps))))
    return page("".join(parts))


def _doubt(doubt: Any) -> list[str]:
    """A doubt; with the other statement and its rows, if it has one."""
    facts = f"<p>doubt: {escaped(str(doubt))}</p>"
    return [facts] if doubt.rows is None else [facts, _statement(doubt.statement), _rows(doubt.rows, _MAX_OTHER_ROWS)]


def _statement(sql: str) -> str:
    return f'<pre style="white-space:pre-wrap">{highlighted(sql)}</pre>'


def _rows(rows: pd.DataFrame, most: int) -> str:
    names = [escaped(str(name)) for name in rows.columns]
    cells = [[escaped(str(cell)) for cell in row] for row in rows.head(most).itertuples(index=False)]
    return table(names, cells, words=set(names)) if names else ""


def escaped_lines(text: str) -> str:
    """An escaped text that keeps its line breaks."""
    return "\n".join(escaped(line) for line in text.splitlines())


def highlighted(sql: str) -> str:
    """SQL as HTML: its keywords bold, LM functions bold and slanted, texts slanted; no colours.

    >>> highlighted("SELECT 'a' FROM t")
    '<b>SELECT</b> <i>&#x27;a&#x27;</i> <b>FROM</b> t'
    """
    from sqlglot import TokenType
    from sqlglot.dialects import SQLite
    from sqlglot.errors import TokenError

    try:
        tokens = SQLite().tokenize(sql)
    except TokenError:
        return escaped_lines(sql)
    plain = (TokenType.VAR, TokenType.IDENTIFIER, TokenType.NUMBER)
    parts, done = [], 0
    for token in tokens:
        text = sql[token.start : token.end + 1]
        marked = escaped_lines(text)
        if token.token_type == TokenType.STRING:
            marked = f"<i>{marked}</i>"
        elif text.lower().startswith("sem_"):
            marked = f"<b><i>{marked}</i></b>"
        elif text.isalpha() and token.token_type not in plain:
            marked = f"<b>{marked}</b>"
        gap = sql[done : token.start]  # white space, or a comment
        parts += [gap if gap.isspace() else escaped_lines(gap), marked]
        done = token.end + 1
    return "".join([*parts, escaped_lines(sql[done:])])

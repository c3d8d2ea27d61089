"""What an answer looks like."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from tagframe.display.markup import escaped, page

if TYPE_CHECKING:
    from tagframe.answer import Answer

_ROWS = 10
_WIDTH = 120


def answer_text(answer: Answer) -> str:
    """An answer step by step, for a terminal."""
    lines = [f"question: {answer.question}", f"answer:   {answer.text}"]
    lines += [f"values:   {answer.values!r}"] if answer.values else []
    for step in answer.steps:
        lines.append(f"{step.name}: {_took(step.calls, step.usage.seconds)}")
        if step.name.startswith("syn") and step.name == _last(answer, "syn"):
            lines += textwrap.wrap(str(answer.query), _WIDTH - 4, initial_indent="    ", subsequent_indent="    ")
        if step.name.startswith("exec") and step.name == _last(answer, "exec"):
            lines += [f"    {line}" for line in _executed(answer)]
    return "\n".join(lines)


def _last(answer: Answer, name: str) -> str:
    return [step.name for step in answer.steps if step.name.startswith(name)][-1]


def _took(calls: int, seconds: float) -> str:
    return f"{calls} call{'s' * (calls != 1)}, {seconds:.2f} s"


def _executed(answer: Answer) -> list[str]:
    rows = f"{len(answer.rows):,} row{'s' * (len(answer.rows) != 1)}"
    return [f"{rows} of {', '.join(answer.tables)}" if answer.tables else rows]


def answer_html(answer: Answer) -> str:
    """An answer in a notebook: the text, the query, the rows, what the steps took."""
    parts = [f"<p><b>{escaped(answer.text)}</b></p>"]
    parts.append(f"<pre>{escaped(str(answer.query))}</pre>")
    return page("".join(parts))

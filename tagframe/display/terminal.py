"""Results in a terminal."""

from __future__ import annotations

import textwrap
from collections import defaultdict
from collections.abc import Sequence

from tagframe.display.markup import WIDTH, fitted, percent
from tagframe.display.results import Answered, Plan, Retrieved, Step
from tagframe.errors import counted

_MAX_QUESTION_LETTERS = 300


def join_tree(plan: Plan) -> str:
    """The plan as a tree of text, the start table at its root; a line for each step."""
    joined: dict[str, list[Step]] = defaultdict(list)
    for step in plan.steps:
        joined[step.base].append(step)
    lines = [plan.start]
    waiting = [(step, "", step is joined[plan.start][-1]) for step in reversed(joined[plan.start])]
    while waiting:
        step, indent, last = waiting.pop()
        bridge = ", bridge" if step.table in plan.bridges else ""
        lines.append(f"{indent}{'└─' if last else '├─'} {step}  ({step.cardinality}, {step.score:.2f}{bridge})")
        below = joined[step.table]
        waiting += [(other, indent + ("   " if last else "│  "), other is below[-1]) for other in reversed(below)]
    return "\n".join(lines)


def alternative_lines(plan: Plan) -> list[str]:
    """One line for each other plan: the steps that differ, their chance, and whether it is equally likely.

    If all tables are in one database, its name is left out: :meth:`JoinPlan.use` does not need it.
    """
    databases = {source.database for source in plan.sources}
    prefix = f"{databases.pop()}." if len(databases) == 1 else ""

    def named(steps: Sequence[Step]) -> str:
        return " and ".join(str(step).replace(prefix, "") if prefix else str(step) for step in steps)

    lines = []
    for other in plan.alternatives:
        mine, theirs = [[step.key for step in one.steps] for one in (plan, other)]
        new = [step for step in other.steps if step.key not in mine]
        old = [step for step in plan.steps if step.key not in theirs]
        instead = f" instead of {named(old)}" if old else ""
        tied = ", equally likely" if other in plan.ambiguous else ""
        chance = min(step.score for step in new or other.steps)
        lines.append(f"{named(new or other.steps)}{instead} ({chance:.2f}{tied})")
    return lines


def plan_text(plan: Plan) -> str:
    """A plan in a terminal: the join tree, and the other ways to join."""
    through = f", through {', '.join(plan.bridges)}" if plan.bridges else ""
    lines = [f"JoinPlan of {counted(len(plan.tables), 'table')}{through}:"]
    lines += [f"  {line}" for line in join_tree(plan).split("\n")]
    lines += left_out_lines(plan)
    if plan.alternatives:
        lines += [f"{other_ways(plan)}:", *(f"  {line}" for line in alternative_lines(plan))]
    return fitted("\n".join(lines))


def retrieved_text(retrieved: Retrieved, plan: Plan | None) -> str:
    """Retrieved tables in a terminal: the ranking with reasons, and the join tree."""
    lines = [headline(retrieved)]
    width = max((len(hit.label) for hit in retrieved.tables), default=0)
    scores = scores_differ(retrieved)
    for rank, hit in enumerate(retrieved.tables, start=1):
        score = f"  {hit.score:.3f}" if scores else ""
        chance = "" if hit.probability is None else f"  {percent(hit.probability):>4}"
        doubt = "  doubtful" if hit.doubtful else ""
        lines.append(f"{rank:>3}. {hit.label:<{width}}{score}{chance}{doubt}")
        lines += _filled(hit.reasons, indent=7)
    if plan is not None and (plan.steps or plan.left_out):
        joins = join_tree(plan).split("\n") + left_out_lines(plan)
        lines += ["joined on", *(f"     {line}" for line in joins)]
        if plan.alternatives:
            lines.append(f"     ({other_ways(plan)}: see .join_plan.alternatives)")
    elif len(retrieved.ids) > 1:
        lines.append("no key pairs connect them")
    if retrieved.note:
        lines.append(retrieved.note)
    return fitted("\n".join(lines))


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
            lines += [f"    {line}" for line in [*stages_of(answer), answer.made_of]]
    return fitted("\n".join(lines))


def _last(answer: Answered, name: str) -> int | None:
    return max((position for position, step in enumerate(answer.steps) if step.name.startswith(name)), default=None)


def stages_of(answer: Answered) -> list[str]:
    """A line for each call of a model in an answer's statement."""
    return [] if answer.execution is None else [str(stage) for stage in answer.execution.stages]


def left_out_lines(plan: Plan) -> list[str]:
    """A line for each table that a plan left out, and one for the rows that it wants without a partner."""
    lacking = [f"only {plan.sentence_of_absence}"] if plan.sentence_of_absence else []
    return lacking + [f"left out {table}: {plan.why_left_out(table)}" for table in plan.left_out]


def _filled(reasons: Sequence[str], indent: int) -> list[str]:
    """Reasons, as many on a line as fit; lines break between them."""
    whole = "; ".join(reason.replace(" ", "\xa0") for reason in reasons)
    lines = textwrap.wrap(whole, WIDTH - indent, break_long_words=False, break_on_hyphens=False)
    return [" " * indent + line.replace("\xa0", " ") for line in lines]


def other_ways(plan: Plan) -> str:
    """How many alternatives a plan has."""
    return counted(len(plan.alternatives), "other way to join", "other ways to join")


def headline(retrieved: Retrieved) -> str:
    """The question, and the number of tables that were found."""
    together = "" if retrieved.anchor is None else f", together with {retrieved.anchor}"
    question = (
        retrieved.question
        if len(retrieved.question) <= _MAX_QUESTION_LETTERS
        else f"{retrieved.question[:_MAX_QUESTION_LETTERS]}…"
    )
    return f"{counted(len(retrieved.tables), 'table')} for {question!r}{together}"


def scores_differ(retrieved: Retrieved) -> bool:
    """Whether the scores say more than the probabilities."""
    return any(hit.probability is None or abs(hit.score - hit.probability) > 1e-6 for hit in retrieved.tables)

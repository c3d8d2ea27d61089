"""``sem_join``: pairs of rows of two frames for which a claim is true."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack, get_args

import pandas as pd

from tagframe import results
from tagframe.config import CallSettings
from tagframe.errors import FailedRowsWarning, InvalidArgument, RowsFailed, warn
from tagframe.interop import accepts_foreign
from tagframe.lm import get_lm
from tagframe.operators.cells import encode_rows
from tagframe.operators.drivers import Step, run
from tagframe.operators.join.decide import Decision, Way, decide, decide_some
from tagframe.operators.join.labels import ClaimPlan, NoLabels, ask_plan
from tagframe.operators.join.pairs import Judge
from tagframe.operators.join.sides import (
    LEFT,
    RIGHT,
    JoinHow,
    Side,
    joined_frame,
    resolve_sides,
    row_pairs,
    spread,
    with_unmatched,
)
from tagframe.operators.operator import declare
from tagframe.operators.outcome import (
    OnError,
    Outcome,
    OutcomeKind,
    error_column,
    error_name,
    error_text,
    failed_rows,
    free_name,
    outcome_frame,
    refuse_taken,
    warn_of_cuts,
)
from tagframe.operators.packing import RowsPerCall, check_limit, rows_per_call_of
from tagframe.operators.row_question import ANSWER, example_column, example_labels
from tagframe.operators.values import TRUTH, parse_word


def _needs_all(given: Mapping[str, Any]) -> str | None:
    how = given.get("how", "inner")
    if how in ("inner", "left"):
        return None
    return (
        f"how={how!r} keeps right rows without a partner, so it looks at all left rows (how='inner' and 'left' do not)"
    )


@declare(guess=lambda prompt: "False", over="pairs", needs_all=_needs_all)
def sem_join(
    frame: pd.DataFrame,
    right: pd.DataFrame | pd.Series,
    instruction: str,
    *,
    how: JoinHow = "inner",
    plan: ClaimPlan | Way = "auto",
    recall: float = 0.9,
    return_explanations: bool = False,
    examples: pd.DataFrame | None = None,
    rows_per_call: RowsPerCall = None,
    limit: int | None = None,
    suffix: str = "_join",
    on_error: OnError = "raise",
    window: int | None = None,
) -> Step[pd.DataFrame]:
    """Join the pairs of rows of two frames for which a claim is true, without asking about every pair.

    Rows with the same shown values count as one. Up to 40 pairs are asked about one by one. Otherwise, if labels are
    likely to cost less than blocks, the model is first asked whether the claim can be split into a label of each side
    ("coat and hat are of one season"). Then each row is labelled once, rows are joined on labels, and a sample of
    joined and other pairs is asked directly. If direct answers disagree with the labels, the labels are dropped. Claims
    that labels cannot decide ("the second replies to the first"), or for which they cost more, are asked about in
    blocks of up to 64 pairs in a prompt. With 128 or more distinct rows, only pairs with similar texts are asked about;
    the necessary similarity is found on some rows that are asked about with all others. If a block of pairs gets no
    usable answer, it is asked in smaller blocks, with up to four times as many prompts as there are blocks. Pairs that
    still have no answer fail; ``plan="pairs"`` asks about each pair.

    Args:
        frame: the left frame; it is not changed.
        right: the right frame, or a series with a name.
        instruction: a claim that names columns of both in braces: ``"{title} is what {review} is about"``; a column
            that both have is ``{title:left}`` or ``{title:right}``.
        how: which rows to keep in addition to the pairs: none (``"inner"``), or rows without a partner of the
            ``"left"``, the ``"right"`` or both sides (``"outer"``).
        plan: ``"auto"``, the cheapest way by an estimate; a result of :func:`plan_sem_join`; ``"blocks"`` to ask about
            pairs, many in a prompt; or ``"pairs"`` to ask about each pair.
        recall: the share of the true pairs to find if labels cannot decide the claim; 1 asks about every pair.
        return_explanations: add a column ``explanation_join`` with the model's reasons, or the labels.
        examples: solved pairs: the named columns and a boolean column ``Answer``.
        rows_per_call: rows that are labelled in one prompt, which the pairs that are asked directly audit; "auto" is up
            to 16. If each pair is asked, pairs in one prompt, audited as for :func:`sem_filter`.
        limit: stop as soon as so many pairs are found, asked in blocks and spread over the rows of both sides; for
            ``how="inner"`` and ``plan="auto"`` or ``"blocks"``.
        suffix: the end of the added columns' names.
        on_error: how to treat rows without an answer: ``"raise"`` once all others are done, ``"keep"`` them without a
            partner, with a column ``join_error``, or ``"drop"``.

    Returns:
        The pairs, by left rows and then by right ones, with a new index; a column of both frames is ``title:left`` and
        ``title:right``. ``.tag.claim_report`` says how they were found, and ``.tag.outcomes`` has the outcome of each
        left row.

    Raises:
        RowsFailed: with ``on_error="raise"``, after all rows have been tried; the finished frame is on it.
        ColumnNotFound: a named column does not exist.
        InvalidArgument: the claim does not name columns of both frames, or ``how`` or ``plan`` is unknown.
        NotConfigured: no model is set.
    """
    if how not in get_args(JoinHow):
        raise InvalidArgument(f"how must be one of {get_args(JoinHow)}; got {how!r}")
    if not isinstance(plan, ClaimPlan) and plan not in get_args(Way):
        raise InvalidArgument(
            f"plan must be 'auto', 'blocks', 'pairs', or a ClaimPlan of plan_sem_join(); got {plan!r:.200}"
        )
    size = rows_per_call_of(rows_per_call)
    check_limit(limit, "rows")
    if limit is not None and (how != "inner" or plan not in ("auto", "blocks")):
        raise InvalidArgument(f"limit= needs how='inner' and plan='auto' or 'blocks'; got {how=}, {plan=}")
    if isinstance(recall, bool) or not isinstance(recall, int | float) or not 0 < recall <= 1:
        raise InvalidArgument(f"recall must be a share of the pairs, above 0 and up to 1; got {recall!r}")
    other = _as_frame(right)
    for side in (frame, other):
        refuse_taken(side, [f"explanation{suffix}"] * return_explanations, suffix, on_error)
    resolved, left_side, right_side = resolve_sides(instruction, frame, other, window)
    judge = Judge(
        resolved.text,
        left_side,
        right_side,
        explained=return_explanations,
        examples=_solved_pairs(examples, left_side, right_side),
        window=window,
    )
    if limit is None:
        decision = yield from decide(judge, plan, recall, size)
    else:
        decision = yield from decide_some(judge, limit)
    return _finished(left_side, right_side, decision, how, return_explanations, suffix, on_error, limit)


def _as_frame(right: Any) -> pd.DataFrame:
    if isinstance(right, pd.Series):
        if right.name is None:
            raise InvalidArgument("a series to join with needs a name that the claim can use")
        return right.to_frame()
    if not isinstance(right, pd.DataFrame):
        raise InvalidArgument(f"sem_join joins with a frame or a series; got {type(right).__name__}")
    return right


def _solved_pairs(examples: pd.DataFrame | None, left: Side, right: Side) -> tuple[tuple[str, str, bool], ...]:
    """Examples: columns by the names of the claim, with or without their side, and whether it is true of them."""
    if examples is None:
        return ()
    labels = example_labels(examples)
    answers = examples.iloc[:, example_column(labels, ANSWER)].astype(object)
    lines = []
    for side in (left, right):
        positions = [example_column(labels, name, name.removesuffix(LEFT).removesuffix(RIGHT)) for name in side.names]
        lines.append([line or "{}" for line in encode_rows(examples, positions, side.names)])
    try:
        truths = [parse_word(str(answer), TRUTH, "True or False") for answer in answers]
    except ValueError as error:
        raise InvalidArgument(f"an example's {ANSWER!r} is True or False: {error}") from error
    return tuple(zip(*lines, truths, strict=True))


def _finished(
    left: Side,
    right: Side,
    decision: Decision,
    how: JoinHow,
    explained: bool,
    suffix: str,
    on_error: OnError,
    limit: int | None = None,
) -> pd.DataFrame:
    """The joined frame with its outcomes and its report."""
    outcomes = _outcomes(left, decision)
    matches = row_pairs(left, right, decision.to_frame())
    matches = matches if limit is None else spread(matches, limit)
    lost = decision.failed_right
    lost_right = [(row, lost[distinct]) for row, distinct in enumerate(right.of.tolist()) if distinct in lost]
    failures = [(row, outcome.error) for row, outcome in enumerate(outcomes) if outcome.error is not None]
    keeps = on_error == "keep" or (on_error == "raise" and bool(failures or lost_right))
    if keeps:
        lone = [(row, -1, error) for row, error in failures] + [(-1, row, error) for row, error in lost_right]
        without = pd.DataFrame(lone, columns=["left_row", "right_row", "error"])
        matches = pd.concat([matches, without], ignore_index=True) if lone else matches
    matches = with_unmatched(matches, left, right, how)
    joined = joined_frame(left.frame, right.frame, matches)
    if explained:
        joined[free_name(joined, f"explanation{suffix}")] = matches["reason"].array
    if keeps:
        errors = matches["error"] if "error" in matches else [None] * len(matches)
        joined[free_name(joined, error_name(suffix))] = error_column(
            Outcome("failed", error) if isinstance(error, Exception) else Outcome("joined") for error in errors
        )
    warn_of_cuts("sem_join", outcomes)
    remarks = str(decision.report).splitlines()
    results.remember(joined, outcomes=outcome_frame(outcomes, left.frame.index, remarks), claim_report=decision.report)
    if on_error == "raise" and (failures or lost_right):
        first = (failures or lost_right)[0][1]
        raise RowsFailed(
            f"sem_join: {len(failures):,} of {len(outcomes):,} left rows and {len(lost_right):,} of {len(right.of):,} "
            f"right rows have no answer, or lack one for some pairs; the first: {error_text(first)}. The "
            "finished frame is on this error as .frame. The same call again asks only for what failed; "
            'on_error="keep" keeps such rows with an error column, on_error="drop" drops them.',
            joined,
            [error for _, error in (*failures, *lost_right)],
        )
    if failures:
        warn(
            f"sem_join: {failed_rows(len(outcomes), [error for _, error in failures], 'left rows')}", FailedRowsWarning
        )
    return joined


def _outcomes(left: Side, decision: Decision) -> list[Outcome]:
    """The outcome of each left row."""
    joined = set(decision.left.tolist())
    outcomes = []
    for row in left.of.tolist():
        note = left.notes.get(row)
        if row < 0:
            outcomes.append(Outcome("null"))
        elif row in decision.failed_left:
            outcomes.append(Outcome("failed", decision.failed_left[row], note))
        elif row in joined:
            outcomes.append(Outcome("joined", note=note))
        else:
            kind: OutcomeKind = "unsure" if row in decision.unsure else "lone"
            outcomes.append(Outcome("not asked" if row in decision.not_asked else kind, note=note))
    return outcomes


@accepts_foreign
def plan_sem_join(
    frame: pd.DataFrame, right: pd.DataFrame | pd.Series, instruction: str, **settings: Unpack[CallSettings]
) -> ClaimPlan | NoLabels:
    """Show how :func:`sem_join` would split a claim into labels, so that you can read and change the plan first.

    The answer is stored, so the join does not ask again.

    Args:
        frame: the left frame.
        right: the right one.
        instruction: as for :func:`sem_join`.
        **settings: those of :func:`tagframe.configure`.

    Returns:
        A plan for ``sem_join(plan=…)``. It may say that labels cannot decide the claim.

    Raises:
        LMError: the model gave no plan.
    """
    lm = get_lm("sem_join", **settings)
    resolved, left, other = resolve_sides(instruction, frame, _as_frame(right), lm.context_window)
    answer = run(ask_plan(resolved.text, left, other), lm, sem_join.name)
    if isinstance(answer, Exception):
        raise answer
    return answer

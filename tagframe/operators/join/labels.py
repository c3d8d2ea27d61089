"""Joins by labels: each distinct row is labelled once, rows are joined on labels, and some pairs are asked directly.

The sample is drawn from pairs that the labels join, from similar pairs that they do not join, and from other pairs that
they do not join. From it the precision and the recall of the labels are estimated. If either is too low, these labels
cannot decide the claim.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tagframe.blocks import FENCE_RULE, fence
from tagframe.errors import AnswerRejected
from tagframe.lm import Batch, Message, Prompt
from tagframe.operators.cells import FIELD_RULE, shortened
from tagframe.operators.drivers import Step, gather, prompts_of, together
from tagframe.operators.join.pairs import Judge
from tagframe.operators.join.sides import Side
from tagframe.operators.packing import ask_packed
from tagframe.operators.row_question import UNKNOWN_WHERE, WORLD, Question, Reply
from tagframe.operators.text_nearness import row_text, shared_words
from tagframe.operators.values import choice_value, parse_json, reading

PLAN_ROWS = 4
"""The number of rows of each side that the model sees for its plan, spread over the frame."""
MAX_ROW_BYTES = 600
PLAN_TOKENS = 1024
"""Room for the longest list of labels, with their pairs."""
MAX_LABELS = 60

_TASK = f"""You plan how to join two tables by a claim about a row of the left and one of the right one. {FIELD_RULE} \
{FENCE_RULE}
Some claims can be cut in two: a question about the left row alone and a question about the right row alone, each of \
which is answered with one label of a closed list, so that the claim is true of two rows exactly where their labels go \
together. Such a claim is "the coat and the hat are worn in the same season": both sides are asked for the season, and \
equal labels go together. "The second comment replies to the first" is none: whether it is true depends on what the \
two say to each other, which no short list of labels holds.
The answer is one JSON object. For a claim that can be cut in two:
{{"left": a question about a left row, "right": a question about a right row (in the same words where it is the same), \
"labels": [every label that an answer may have], "pairs": "equal", or a list of the [left label, right label] that go \
together}}
For any other claim: {{"labels": null}}"""


@dataclass(frozen=True)
class ClaimPlan:
    """How a claim about two rows is decided by a label of each.

    Attributes:
        left: the question about a left row.
        right: the question about a right row.
        labels: the possible answers.
        pairs: ``(left label, right label)`` that go together; None if equal labels do.
    """

    left: str
    right: str
    labels: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...] | None = None

    def __str__(self) -> str:
        questions = f"each row: {self.left}" if self.left == self.right else f"left: {self.left}; right: {self.right}"
        together = "equal labels" if self.pairs is None else ", ".join(f"{a} with {b}" for a, b in self.pairs)
        return f"{questions} One of {', '.join(self.labels)}; {together} go together."

    def allowed(self) -> npt.NDArray[np.bool_]:
        """Which labels go together: shape (labels, labels)."""
        if self.pairs is None:
            return np.eye(len(self.labels), dtype=bool)
        table = np.zeros((len(self.labels), len(self.labels)), dtype=bool)
        for one, other in self.pairs:
            table[self.labels.index(one), self.labels.index(other)] = True
        return table


@dataclass(frozen=True)
class NoLabels:
    """The answer that labels cannot decide a claim."""

    def __str__(self) -> str:
        return "Labels cannot decide this claim: pairs are asked, several in one prompt."


def parse_plan(text: str) -> ClaimPlan | NoLabels:
    """A model's plan.

    Raises:
        AnswerRejected: it is not a plan; the message can be shown to the model.
    """
    plan, body = parse_json(text, "one JSON object")
    if not isinstance(plan, dict) or "labels" not in plan:
        raise AnswerRejected(f'expected an object with "labels", got {body[:80]!r}')
    labels = plan["labels"]
    if labels is None:
        return NoLabels()
    left, right = plan.get("left"), plan.get("right")
    if not isinstance(left, str) or not isinstance(right, str) or not left.strip() or not right.strip():
        raise AnswerRejected(f'"left" and "right" are questions; got {left!r:.100} and {right!r:.100}')
    if (
        not _is_texts(labels)
        or not 2 <= len(labels) <= MAX_LABELS
        or len({one.lower() for one in labels}) < len(labels)
    ):
        raise AnswerRejected(f'"labels" are 2 to {MAX_LABELS} texts, each once; got {labels!r:.200}')
    return ClaimPlan(left, right, tuple(labels), _pairs(plan.get("pairs"), labels))


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) and one.strip() == one and one for one in value)


def _pairs(pairs: Any, labels: Sequence[str]) -> tuple[tuple[str, str], ...] | None:
    if pairs == "equal":
        return None
    if not isinstance(pairs, list) or not pairs or not all(_is_texts(pair) and len(pair) == 2 for pair in pairs):
        raise AnswerRejected(f'"pairs" is "equal" or a list of [left label, right label]; got {pairs!r:.200}')
    unknown = {label for pair in pairs for label in pair} - set(labels)
    if unknown:
        raise AnswerRejected(f'"pairs" has labels that are not in "labels": {sorted(unknown)!r:.200}')
    return tuple(dict.fromkeys((one, other) for one, other in pairs))


def ask_plan(claim: str, left: Side, right: Side) -> Step[ClaimPlan | NoLabels | Exception]:
    """The model's plan for a claim as written in a prompt, or the error if that failed."""
    samples = "\n\n".join(f"Some {side.name} rows:\n{fence(_some(side), side.name)}" for side in (left, right))
    prompt = Prompt(
        (Message("system", _TASK), Message("user", f"{samples}\n\nClaim: {claim}\nAnswer with the JSON object:"))
    )
    guess = {"left": "Which is it?", "right": "Which is it?", "labels": ["this", "that"], "pairs": "equal"}
    (completion,) = yield from gather(Batch([prompt], parse_plan, max_tokens=PLAN_TOKENS, guess=json.dumps(guess)))
    if completion.value is None:
        assert completion.error is not None
        return completion.error
    return completion.value


def _some(side: Side) -> list[str]:
    rows = np.unique(np.linspace(0, len(side) - 1, min(PLAN_ROWS, len(side))).round().astype(int))
    return [shortened(side.lines[row], MAX_ROW_BYTES) for row in rows]


MAX_PILOT_ROWS = 20
"""The most rows of each side that are labelled first: labels that cannot decide the claim are dropped before the other
rows are paid for."""
JOINED, NEAR, FAR, SAME = 16, 10, 10, 4
"""How many pairs are asked directly: joined by the labels; not joined, though similar; not joined; of equal rows."""
SAMPLE_PAIRS = JOINED + NEAR + FAR + SAME
MIN_PRECISION, MIN_RECALL = 0.7, 0.6
"""Limits on the sample. They are low: the sample is small, direct answers have errors too, and two labels can both be
wrong."""
MAX_COMPARED_ROWS = 128
"""The number of rows of each side among which similar pairs (by shared words) are drawn."""
SEED = 7

Pair = tuple[int, int]


@dataclass
class Labels:
    """The labels of both sides so far.

    Attributes:
        plan: the questions.
        left: by distinct left row, the number of its label, or -1 if it has none.
        right: the same for the right side.
        failed: by side, rows without an answer and their errors.
        prompts: the number that were sent.
    """

    plan: ClaimPlan
    left: npt.NDArray[np.intp]
    right: npt.NDArray[np.intp]
    failed: dict[str, dict[int, Exception]] = field(default_factory=lambda: {"left": {}, "right": {}})
    prompts: int = 0


@dataclass
class Audit:
    """The labels compared with direct answers.

    Attributes:
        judged: the number of pairs that were asked and answered, by stratum: "joined" by the labels, not joined though
            similar ("near"), not joined ("far"), of equal rows ("same").
        true: by stratum, the number of pairs for which the claim is true.
        precision: the estimated share of the joined pairs that are true.
        recall: the estimated share of the true pairs that are joined.
        same: how to treat pairs of equal rows: "as labelled", "turned" (the opposite), or "asked" one by one.
        answers: the direct answers: whether the claim is true of a pair.
        reasons: the reasons for true pairs.
        prompts: how many pairs were asked.
    """

    judged: dict[str, int] = field(default_factory=dict)
    true: dict[str, int] = field(default_factory=dict)
    precision: float = 0.0
    recall: float = 0.0
    same: str = "as labelled"
    answers: dict[Pair, bool] = field(default_factory=dict)
    reasons: dict[Pair, str | None] = field(default_factory=dict)
    prompts: int = 0

    @property
    def agrees(self) -> bool:
        """Whether the labels are good enough to be used."""
        return self.precision >= MIN_PRECISION and self.recall >= MIN_RECALL

    def __str__(self) -> str:
        shares = [
            f"{self.true[name]} of {self.judged[name]} {what} are true"
            for name, what in (
                ("joined", "pairs that the labels join"),
                ("near", "similar pairs that they do not join"),
                ("far", "other pairs that they do not join"),
            )
            if self.judged.get(name)
        ]
        return (
            f"asked directly, {', '.join(shares) or 'nothing'}: precision about {self.precision:.2f}, recall about "
            f"{self.recall:.2f}"
        )

    def estimate(self, sizes: dict[str, int]) -> None:
        """Precision, and recall as true pairs that are joined among all true pairs, by the sizes of the strata."""
        shares = {name: self.true[name] / count if count else 0.0 for name, count in self.judged.items()}
        self.precision = shares.get("joined", 0.0)
        true_joined = self.precision * sizes["joined"]
        missed = sum(shares.get(name, 0.0) * sizes[name] for name in ("near", "far"))
        self.recall = true_joined / (true_joined + missed) if true_joined + missed else 0.0


def ask_by_labels(judge: Judge, plan: ClaimPlan, size: int = 1) -> Step[tuple[Labels, Audit]]:
    """The labels of all rows, and their audit. If the audit finds too many errors, only some rows are labelled.

    Args:
        judge: asks about pairs.
        plan: the labels.
        size: rows that are labelled in one prompt; the questions about pairs also audit these packs.
    """
    labels = Labels(plan, np.full(len(judge.left), -1, dtype=np.intp), np.full(len(judge.right), -1, dtype=np.intp))
    audit = Audit()
    rng = np.random.default_rng(SEED)
    pilot = [_drawn(np.arange(len(side)), MAX_PILOT_ROWS, rng) for side in judge.sides]
    ask = _Labeller(judge, labels, size)
    yield from ask.steps(*pilot)
    yield from _ask_strata(judge, labels, audit, pilot, {"joined": JOINED, "far": FAR}, rng)
    if audit.judged["joined"] and not audit.agrees:
        return labels, audit
    yield from ask.steps(
        *(np.setdiff1d(np.arange(len(side)), rows) for side, rows in zip(judge.sides, pilot, strict=True))
    )
    seen = [_drawn(np.arange(len(side)), MAX_COMPARED_ROWS, rng) for side in judge.sides]
    wanted = {"joined": JOINED - audit.judged["joined"], "near": NEAR, "same": SAME}
    yield from _ask_strata(judge, labels, audit, seen, wanted, rng)
    return labels, audit


@dataclass
class _Labeller:
    """Asks for labels; the same row with the same question is asked once, even if it is on both sides."""

    judge: Judge
    labels: Labels
    size: int
    known: dict[str, dict[str, Reply[Any]]] = field(default_factory=dict)

    def steps(self, lefts: npt.NDArray[np.intp], rights: npt.NDArray[np.intp]) -> Step[None]:
        """Label these rows."""
        plan = self.labels.plan
        sides = list(zip(self.judge.sides, (lefts, rights), (plan.left, plan.right), strict=True))
        new: dict[str, dict[str, None]] = {plan.left: {}, plan.right: {}}
        for side, rows, question in sides:
            known = self.known.setdefault(question, {})
            new[question].update((side.alone[row], None) for row in rows if side.alone[row] not in known)
        steps = [ask_packed(self._question(question), list(lines), self.size) for question, lines in new.items()]
        answers, prompts = yield from prompts_of(together(steps))
        self.labels.prompts += prompts
        for (question, lines), replies in zip(new.items(), answers, strict=True):
            self.known[question].update(zip(lines, replies, strict=True))
        for (side, rows, question), labels_of in zip(sides, (self.labels.left, self.labels.right), strict=True):
            for row in rows.tolist():
                reply = self.known[question][side.alone[row]]
                if reply.error is not None:
                    self.labels.failed[side.name][row] = reply.error
                elif isinstance(reply.value, tuple):
                    labels_of[row] = plan.labels.index(reply.value[0])

    def _question(self, text: str) -> Question[tuple[Any, ...]]:
        plan = self.labels.plan
        # Alternating guesses, so that labels join some pairs but not others, and a quote counts pairs of both kinds.
        one, other = plan.labels[:2] if plan.pairs is None else (plan.pairs[0][0], plan.pairs[0][1])
        likely = (one, other) if one != other else (one, next(label for label in plan.labels if label != one))
        value = choice_value(plan.labels)
        return Question(
            f"Label a row of a table. {WORLD}",
            f"Question: {text}",
            value.form,
            UNKNOWN_WHERE,
            reading(value),
            likely,
            value.tokens,
            window=self.judge.window,
            details=value.details,
            shape=value.shape,
        )


def joined_by(labels: Labels) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """The pairs of distinct rows whose labels go together: left and right rows, sorted."""
    lefts, rights = [], []
    for one, other in zip(*np.nonzero(labels.plan.allowed()), strict=True):
        of_left, of_right = np.flatnonzero(labels.left == one), np.flatnonzero(labels.right == other)
        lefts.append(np.repeat(of_left, len(of_right)))
        rights.append(np.tile(of_right, len(of_left)))
    left, right = np.concatenate(lefts), np.concatenate(rights)
    order = np.lexsort((right, left))
    return left[order], right[order]


def _ask_strata(
    judge: Judge,
    labels: Labels,
    audit: Audit,
    rows: Sequence[npt.NDArray[np.intp]],
    wanted: dict[str, int],
    rng: np.random.Generator,
) -> Step[None]:
    """Ask about pairs of these rows directly, a number in each stratum, and add the answers to the audit."""
    lefts, rights = (some[codes[some] >= 0] for some, codes in zip(rows, (labels.left, labels.right), strict=True))
    joins = labels.plan.allowed()[labels.left[lefts][:, None], labels.right[rights][None, :]]
    strata = _strata(judge, lefts, rights, joins, "near" in wanted)
    drawn = {
        name: [(int(lefts[one]), int(rights[other])) for one, other in _drawn(strata[name], most, rng)]
        for name, most in wanted.items()
    }
    steps = [judge.ask_each(pairs, str(name in ("joined", "same"))) for name, pairs in drawn.items()]
    for name, (replies, _) in zip(drawn, (yield from together(steps)), strict=True):
        audit.prompts += len(replies)
        known = [(pair, reply.value, reply.reason) for pair, reply in replies.items() if isinstance(reply.value, bool)]
        audit.judged[name] = audit.judged.get(name, 0) + len(known)
        audit.true[name] = audit.true.get(name, 0) + sum(truth for _, truth, _ in known)
        audit.answers |= {pair: truth for pair, truth, _ in known}
        audit.reasons |= {pair: reason for pair, truth, reason in known if truth}
        if name == "same":
            allowed, left, right = labels.plan.allowed(), labels.left, labels.right
            agree = [truth == allowed[left[one], right[other]] for (one, other), truth, _ in known]
            # A text may relate differently to itself than to others with its label: it does not reply to itself.
            audit.same = "as labelled" if all(agree) else "asked" if any(agree) else "turned"
    audit.estimate({name: len(cells) for name, cells in strata.items()})


def _strata(
    judge: Judge,
    lefts: npt.NDArray[np.intp],
    rights: npt.NDArray[np.intp],
    joins: npt.NDArray[np.bool_],
    by_nearness: bool,
) -> dict[str, npt.NDArray[np.intp]]:
    """The cells of each stratum: shape (n, 2), positions among the rows."""
    texts = [
        np.array([side.alone[row] for row in rows], dtype=object)
        for side, rows in zip(judge.sides, (lefts, rights), strict=True)
    ]
    same = texts[0][:, None] == texts[1][None, :]
    parted = np.argwhere(~joins & ~same)
    near = parted[:0]
    if by_nearness and len(parted) > NEAR:
        # As many as there are rows: if labels separate a row from its only partner, that pair is likely among these.
        alike = shared_words(*([row_text(line) for line in some] for some in texts))
        order = np.argsort(-alike[parted[:, 0], parted[:, 1]], kind="stable")
        cut = min(len(parted) // 2, max(NEAR, *joins.shape))
        near, parted = parted[order[:cut]], parted[order[cut:]]
    return {"joined": np.argwhere(joins & ~same), "near": near, "far": parted, "same": np.argwhere(same)}


def _drawn(cells: npt.NDArray[np.intp], most: int, rng: np.random.Generator) -> npt.NDArray[np.intp]:
    return cells if len(cells) <= most else cells[np.sort(rng.choice(len(cells), most, replace=False))]

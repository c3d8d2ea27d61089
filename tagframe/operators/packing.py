"""Several rows in one prompt ("a pack"). Row numbers in answers are checked, incomplete packs are split, and packs are
audited.

A model answers the rows of a pack a little differently from each row by itself; how much depends on the model and the
rows. So some rows are asked both ways first, and packs are made smaller until both ways agree. The answer to a row of a
pack is also stored for that row, so that later packs and single prompts of the same question find it. What an audit
found is stored for its question, too.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, TypeAlias, TypeVar, get_args

import numpy as np

from tagframe import errors
from tagframe.blocks import fence, without_reasoning
from tagframe.errors import counted, spared
from tagframe.lm import Batch, Bound, Form, Prompt, fields_schema
from tagframe.operators.cells import cut_note, encode, pack, room, shortened
from tagframe.operators.drivers import Step, bounded, gather, gather_alike, together
from tagframe.operators.row_question import Question, Reply, explained, joined_notes
from tagframe.operators.values import SHORT_TOKENS, Unsure, lines_of

T = TypeVar("T")
RowsPerCall: TypeAlias = int | Literal["auto"] | None
MAX_ROWS_A_PACK = 16
"""Rows of a pack with ``rows_per_call="auto"``; with more, answers get worse."""
MAX_AUDITED_ROWS_A_PACK = 32
"""The same if an audit finds no difference, in packs of so many rows either."""
MAX_AUDITED_ROWS = 32
"""Rows that are also asked one by one; if there are few rows, one in :data:`AUDITED_ONE_IN`."""
AUDITED_ONE_IN = 4
MAX_UNAUDITED_PACKS = 4
"""So many packs or fewer are not audited: that would cost more than packs save."""
MAX_DIFFERING_SHARE = 0.05
"""The largest share of audited rows to which a pack may give another answer; one row may always."""
MAX_PACK_BYTES = 40_000
"""The most bytes of rows in one prompt: about 10,000 tokens."""
TOKENS_PER_LINE = 12
"""Room for an id, a short answer and markdown."""
EXPLAINED_TOKENS_PER_LINE = 128
_FENCE_TOKENS = 64
"""Room for what stands around the rows of a prompt."""
MAX_ROWS_SPLIT_SINGLY = 8
"""A broken pack of more rows is asked again in halves; one of so many rows or fewer, row by row."""
_AUDIT = "the audit of packs"
MIN_SHARED_BYTES = 24
"""A cell that all rows of a pack share is written once, before the rows, if it has at least so many bytes."""

_LINE = re.compile(r"\s*(?:[-*>#]+\s+)?[*_`]*(?:row\s+)?\[?(\d{1,6})\]?[*_`]*\s*[:.)=|–—-][*_`]*\s*(.*)", re.I)
_LABEL = re.compile(r"[*_`]*answer[*_`]*\s*[:=]", re.I)
_Pack: TypeAlias = list[int]
"""Rows by their positions among those asked."""
_PackAnswer: TypeAlias = tuple[Any, str | None, str]
"""A pack's answer to one row: value, explanation, and the text that an answer to this row alone would have."""
_SPLITTING = (
    errors.AnswerRejected,
    errors.ContentFiltered,
    errors.ContextTooLong,
    errors.RequestTimedOut,
    errors.ResponseTooLong,
)


def max_prompts(rows: int, size: int) -> int:
    """The most prompts for rows in packs of at most ``size``: a broken pack of two takes three, all others no more."""
    return rows if size == 1 else rows + rows // 2


def _tree(pack: _Pack) -> list[_Pack]:
    """A pack and all the packs and single rows that are asked if it fails, and its parts do."""
    return [pack] if len(pack) == 1 else [pack, *(part for half in _parts(pack) for part in _tree(half))]


class Audited(int):
    """The size of packs that an audit has found; packs of that size are not audited again."""


class _Auto(int):
    """The size of packs that nobody gave; more rows go into a pack if an audit finds no difference."""


def rows_per_call_of(given: int | Literal["auto"] | None) -> int:
    """``rows_per_call`` as a number.

    Raises:
        InvalidArgument: it is not "auto" and not a whole number of at least 1.
    """
    if given is None:
        return 1
    if given == "auto":
        return _Auto(MAX_ROWS_A_PACK)
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        raise errors.InvalidArgument(f'rows_per_call must be a whole number, at least 1, or "auto"; got {given!r}')
    return given


@dataclass
class Replies(Generic[T]):
    """The replies for rows.

    Attributes:
        of: the reply for each row, by the row as it is shown.
        remarks: how the rows were asked, if not one by one.
        size: rows of a pack; :class:`Audited` if there was an audit.
    """

    of: dict[str, Reply[T]]
    remarks: list[str]
    size: int


def ask_rows(question: Question[T], lines: Sequence[str], size: int) -> Step[Replies[T]]:
    """The reply for each row, in packs of at most ``size``, audited; equal rows are asked about once.

    Some rows, drawn at random, are asked one by one and in packs. While these give another answer to more than
    :data:`MAX_DIFFERING_SHARE` of them, packs are halved. (An unreadable pack counts as one such row.) Other rows are
    asked in packs of the size that was found. The audit is stored for the question, the size and the model: the next
    call does not repeat it. No audit is made for :data:`MAX_UNAUDITED_PACKS` packs or fewer.

    Args:
        question: the question.
        lines: rows.
        size: the most rows of a pack; one that an audit has found is not audited.
    """
    if size == 1:
        return Replies(dict(zip(lines, (yield from question.ask(lines)), strict=True)), [], size)
    distinct = list(dict.fromkeys(lines))
    if not distinct:
        return Replies({}, [], size)
    remarks: list[str] = []
    replies: dict[str, Reply[T]] = {}
    best = size
    if not isinstance(size, Audited):
        replies, best, notes = yield from _audited(question, distinct, size)
        remarks += notes
    rest = len(distinct) - len(replies)
    replies.update(zip(distinct, (yield from ask_packed(question, distinct, best, known=replies)), strict=True))
    if not isinstance(size, Audited):
        how = "one by one" if best == 1 else f"{best} at a time{'' if isinstance(best, Audited) else ', not audited'}"
        remarks.append(f"{rest:,} distinct rows were asked {how}.")
    return Replies({line: replies[line] for line in distinct}, remarks, best)


def _audited(
    question: Question[T], lines: Sequence[str], size: int
) -> Step[tuple[dict[str, Reply[T]], int, list[str]]]:
    """Audit packs, if that was not done before: replies of audited rows, the size that was found, and remarks."""
    audited_size, rows = yield from together([_stored_audit(question, size, result) for result in (True, False)])
    if audited_size is not None:
        return {}, Audited(audited_size), ["Packs of this question were audited before."]
    if rows is not None and not {*rows} <= {*lines}:  # another call audits them: as in one export of several calls
        return {}, size, []
    audited: list[str] = rows or []
    if not audited and len(lines) > MAX_UNAUDITED_PACKS * size:
        count = min(MAX_AUDITED_ROWS, len(lines) // AUDITED_ONE_IN)
        # Drawn at random, not evenly spaced: if kinds of rows alternate, even spacing could hit one kind only.
        drawn = [lines[row] for row in np.sort(np.random.default_rng(0).choice(len(lines), count, replace=False))]
        alone, before = yield from together([question.recalled(drawn, "alone"), question.recalled(drawn, "packed")])
        audited = [line for row, line in enumerate(drawn) if row in alone or row not in before]
    if not audited:
        return {}, size, []
    given = size
    yield from _store_audit(question, given, audited, result=False)
    # Broken packs are not asked again, since all of their rows are asked one by one anyway.
    bound = Bound(3 * len(audited))  # of all sizes, as of all packs with two rows and more

    def in_packs(size: int) -> Step[list[Reply[T]]]:
        return bounded(ask_packed(question, audited, size, splits=False), bound)

    packed, singly = yield from together([in_packs(size), question.ask(audited, "alone")])
    compared = _Compared(question, int(size), packed, singly)
    remarks = [spared(_AUDIT, "", str, compared)]
    while compared.size > 1 and not compared.agree:
        size = (compared.size + 1) // 2
        packed = (yield from in_packs(size)) if size > 1 else singly
        compared = _Compared(question, size, packed, singly)
        remarks += [spared(_AUDIT, "", str, compared)] * (size > 1)
    if isinstance(size, _Auto) and compared.agree == "wholly" and len(audited) >= MAX_AUDITED_ROWS_A_PACK:
        wider = _Compared(question, MAX_AUDITED_ROWS_A_PACK, (yield from in_packs(MAX_AUDITED_ROWS_A_PACK)), singly)
        remarks.append(spared(_AUDIT, "", str, wider))
        compared = wider if wider.agree == "wholly" else compared
    if compared.answered or compared.unread:
        yield from _store_audit(question, given, compared.size, result=True)
    return dict(zip(audited, compared.replies(), strict=True)), Audited(compared.size), remarks


class _Compared(Generic[T]):
    """The replies to some rows in packs of a size, compared with those to each row alone.

    Attributes:
        size: the most rows of a pack.
        answered: rows that were answered both ways.
        unread: packs without an answer.
    """

    def __init__(self, question: Question[T], size: int, packed: list[Reply[T]], singly: list[Reply[T]]) -> None:
        self.size = size
        self._by_pack = question.in_packs is not None and size > 1
        self._both = list(zip(packed, singly, strict=True))
        self._same = [spared(_AUDIT, None, _agree, question, *both) for both in self._both]
        self._differing = self._same.count(False)
        self.answered = len(self._same) - self._same.count(None)
        silent = sum(among.value is None and alone.value is not None for among, alone in self._both)
        self.unread = -(-silent // size)

    @property
    def agree(self) -> Literal["wholly", "well enough", ""]:
        """How well; an unreadable pack counts as one row that differs."""
        against = self._differing + self.unread
        if not against:
            return "wholly" if self.answered else "well enough"
        return "well enough" if against <= max(1, MAX_DIFFERING_SHARE * (self.answered + self.unread)) else ""

    def __str__(self) -> str:
        share = f" ({self._differing / self.answered:.0%})" if self.answered else ""
        broken = f" {counted(self.unread, 'pack')} gave no answer." if self.unread else ""
        return (
            f"{self.answered:,} rows were also asked one by one: {self._differing:,}{share} got another answer in packs"
            f" of {self.size}.{broken}"
        )

    def replies(self) -> list[Reply[T]]:
        """The reply for each row. Scores are on one scale if all are from packs; others are better from a row alone."""
        replies = []
        for (among, alone), same in zip(self._both, self._same, strict=True):
            by_pack = among.value is not None and (alone.value is None or (self._by_pack and same))
            note = spared(_AUDIT, None, _note, self.size, among, alone, same)
            replies.append(replace(among if by_pack else alone, note=note))
        return replies


def _audit_key(question: Question[Any], size: int, result: bool) -> Prompt:
    """What the rows or the result of an audit are stored under; it is not sent."""
    text = f"The audit of packs of {int(size)} rows{' and more' * isinstance(size, _Auto)}"
    return Prompt.of(text, _system(question), sample=int(result))


def _stored_audit(question: Question[Any], size: int, result: bool) -> Step[Any]:
    """The size that a stored audit has found, or its rows; None if there is none."""
    batch = Batch([_audit_key(question, size, result)], json.loads, stored="packed", sends=False)
    (completion,) = yield from gather(batch)
    return completion.value


def _store_audit(question: Question[Any], size: int, value: Any, result: bool) -> Step[None]:
    yield from gather(Batch([_audit_key(question, size, result)], known=[json.dumps(value)]))


def _agree(question: Question[Any], packed: Reply[Any], singly: Reply[Any]) -> bool | None:
    """Whether both answers to a row are the same; None if one is missing."""
    if packed.value is None or singly.value is None:
        return None
    if isinstance(packed.value, Unsure) or isinstance(singly.value, Unsure):
        return packed.value is singly.value
    return question.alike(packed.value, singly.value)


def _note(size: int, packed: Reply[Any], singly: Reply[Any], same: bool | None) -> str | None:
    if packed.value is None:
        fact = f"also asked alone; a pack of {size} gave no answer"
    elif singly.value is None:
        fact = f"the answer of a pack of {size}; also asked alone, without an answer"
    elif same:
        fact = f"also asked alone; a pack of {size} gave the same answer"
    else:
        fact = f"also asked alone; a pack of {size} gave {_word(packed.value)}"
    return joined_notes(singly.note, fact)


def _word(value: Any) -> str:
    if isinstance(value, Unsure):
        return "unsure"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def ask_packed(
    question: Question[T],
    lines: Sequence[str],
    size: int,
    *,
    splits: bool = True,
    known: Mapping[str, Reply[T]] | None = None,
) -> Step[list[Reply[T]]]:
    """The reply for each row, in packs of at most ``size``, with similar rows together; not audited.

    Only rows without a stored answer (from other packs or alone) are asked. If the answer to a pack is incomplete, it
    is asked in halves, and then row by row.

    Args:
        question: the question.
        lines: rows, each once.
        size: the most rows of a pack; with 1, each row is asked alone.
        splits: False leaves the rows of broken packs without an answer, and uses no stored answers to rows.
        known: replies for some of the rows, which are not asked again.
    """
    known = known or {}
    if size == 1:
        new = [line for line in lines if line not in known]
        replied = {**known, **dict(zip(new, (yield from question.ask(new)), strict=True))}
        return [replied[line] for line in lines]
    packing = _Packing(question, lines, known)
    packs = yield from packing.left(size, recalls=splits)
    bound = packing.bound(packs, splits)
    yield from bounded(_ask_left(packing, packs, size, splits), bound)
    replies = [packing.replies[row] for row in range(len(lines))]
    return [
        replace(reply, note=joined_notes(note, reply.note)) for reply, note in zip(replies, packing.notes, strict=True)
    ]


def _ask_left(packing: _Packing[Any], packs: Sequence[_Pack], size: int, splits: bool) -> Step[None]:
    """Ask these packs; rows of packs that fail are asked again, if wanted."""
    alone: list[int] = []
    split: set[int] = set()
    while packs:
        alone += [pack[0] for pack in packs if len(pack) == 1]
        broken = yield from packing.complete(packs)
        split.update(row for pack in broken for row in pack)
        packs = [part for pack in broken for part in _parts(pack)] if splits else []
    if not splits:
        packing.replies.update((row, Reply(None)) for row in split)
    judged = yield from packing.question.ask([packing.lines[row] for row in alone])
    packing.replies.update(zip(alone, judged, strict=True))
    for row in alone:
        packing.notes[row] = None  # the reply to a row that was asked alone has its own note on this
    for row in split:
        reply = packing.replies[row]
        note = f"asked again in a smaller pack: the answer to {size} rows was incomplete"
        packing.replies[row] = replace(reply, note=joined_notes(reply.note, note))


def _parts(pack: _Pack) -> list[_Pack]:
    step = len(pack) // 2 if len(pack) > MAX_ROWS_SPLIT_SINGLY else 1
    return [pack[at : at + step] for at in range(0, len(pack), step)]


class _Packing(Generic[T]):
    """Rows that are asked in packs.

    Attributes:
        lines: the rows as lines.
        texts: the lines as a pack shows them, which may be cut to the model's context.
        notes: how much of each row is shown, if not all.
        replies: the replies so far, by row.
    """

    def __init__(self, question: Question[T], lines: Sequence[str], known: Mapping[str, Reply[T]]) -> None:
        self.question = question
        self.lines = list(lines)
        self.system = _system(question)
        most = room(question.window, self.system, _last_line(question.in_packs or question))
        self.limit = MAX_PACK_BYTES if most is None else min(MAX_PACK_BYTES, most)
        self.texts = list(lines) if most is None else [shortened(line, most) for line in lines]
        self.replies = {row: known[line] for row, line in enumerate(lines) if line in known}
        self.notes = [
            None if line in known else cut_note(line, text) for line, text in zip(lines, self.texts, strict=True)
        ]

    def left(self, size: int, *, recalls: bool) -> Step[list[_Pack]]:
        """The rows without a reply, in packs of similar rows: side by side, a model answers them more consistently.

        Packs are made of all rows first, so that they are the same in the next call. One stays if none of its rows has
        a reply. If some have, it may have been paid for: exported beside those of another call that has the rows, too.

        Args:
            size: the most rows of a pack.
            recalls: whether stored answers are taken.
        """
        every = sorted(range(len(self.lines)), key=lambda row: (self.texts[row].casefold(), row))
        whole = self.packs(every, size)
        if recalls:
            rows = self._without_reply(every)
            recalled = yield from self.question.recalled([self.texts[row] for row in rows])
            self.replies.update((rows[at], reply) for at, reply in recalled.items())
            yield from self.complete(
                [one for one in whole if 0 < len(self._without_reply(one)) < len(one)], sends=False
            )
        untouched = [one for one in whole if len(self._without_reply(one)) == len(one)]
        rest = self._without_reply([row for one in whole if len(self._without_reply(one)) < len(one) for row in one])
        return untouched + self.packs(rest, size)

    def _without_reply(self, rows: _Pack) -> _Pack:
        return [row for row in rows if row not in self.replies]

    def bound(self, packs: Sequence[_Pack], splits: bool) -> Bound:
        """The worst case for these packs."""
        prompts = [part for pack in packs for part in _tree(pack)] if splits else packs
        question = self.question
        last = _last_line(question.in_packs or question)
        opening = max(Prompt.of(last, self.system).most_tokens, question.prompt("").most_tokens)
        sizes = [len(line.encode(errors="replace")) + TOKENS_PER_LINE for line in self.texts]
        written = sum(max(self._limit(len(part)), question.limit) for part in prompts)
        read = sum(sizes[row] for part in prompts for row in part) + (opening + _FENCE_TOKENS) * len(prompts)
        return Bound(len(prompts), read, written)

    def _limit(self, length: int) -> int:
        """The most tokens of the answer to a pack of so many rows."""
        question = self.question
        per_line = EXPLAINED_TOKENS_PER_LINE * question.explains + question.tokens - SHORT_TOKENS + TOKENS_PER_LINE
        return length * max(per_line, TOKENS_PER_LINE)

    def packs(self, rows: Sequence[int], size: int) -> list[_Pack]:
        """These rows in order, in packs of at most ``size`` rows; a row too long to share a prompt is asked alone."""
        packs = pack([len(self.texts[row].encode()) for row in rows], self.limit, most=size)
        return [[rows[position] for position in positions] for positions in packs]

    def complete(self, packs: Sequence[_Pack], *, sends: bool = True) -> Step[list[_Pack]]:
        """Read the replies to packs of several rows and store them; returns the packs to ask again in halves.

        Args:
            packs: rows; packs of one row are left out.
            sends: False takes stored replies only, to rows that have none.
        """
        several = [pack for pack in packs if len(pack) > 1]
        completions = yield from gather_alike(several, lambda alike: self._batch(alike, sends))
        broken: list[_Pack] = []
        answers: list[tuple[str, str]] = []
        for rows, completion in zip(several, completions, strict=True):
            if completion.value is not None:
                for row, (value, reason, alone) in zip(rows, completion.value, strict=True):
                    if row not in self.replies:
                        self.replies[row] = Reply(value, reason)
                        answers.append((self.texts[row], alone))
            elif not sends:
                continue
            elif _is_worth_splitting(completion.error):
                broken.append(rows)
            else:
                self.replies.update((row, Reply(None, error=completion.error)) for row in rows)
        yield from self.question.keep(answers)
        return broken

    def _batch(self, packs: Sequence[_Pack], sends: bool) -> Batch[list[_PackAnswer]]:
        """The prompts of packs of one length."""
        question, length = self.question, len(packs[0])
        in_packs = question.in_packs or question
        one = in_packs.guessed("A map shows it on a coast. Answer: ")
        last, shape = _last_line(in_packs), in_packs.shape
        shape = explained(shape, " ") if shape and in_packs.explains else shape
        return Batch(
            [
                Prompt.of(f"{fence(_numbered([self.texts[row] for row in rows]), 'rows')}\n{last}", self.system)
                for rows in packs
            ],
            reader(question, length),
            max_tokens=self._limit(length),
            guess="\n".join(f"{number + 1}: {one[number % len(one)]}" for number in range(length)),
            form=shape and _form_of_lines(shape, length),
            sends=sends,
            keeps_rejected=True,
        )


def _system(question: Question[Any]) -> str:
    question = question.in_packs or question
    solved = [
        f"{turn.content}" if turn.role == "user" else f"Of that row the answer is {turn.content}"
        for turn in question.turns
    ]
    examples = "\n\nRows that were answered before:\n" + "\n".join(solved) if solved else ""
    return f"{question.task} {question.rules} Take each numbered row by itself.{examples}\n\n{question.text}"


def _last_line(question: Question[Any]) -> str:
    """The line after the rows of a pack."""
    example = f"1: {question.guessed('It is so. Answer: ')[0]}"
    content = (
        f"an explanation in one sentence, and 'Answer:' and {question.form}" if question.explains else question.form
    )
    return f"Answer with one line for each row, in order: its number, a colon, and {content}, as in '{example}'."


def _form_of_lines(form: Form, count: int) -> Form:
    """So many answers of a form, each in a line after its number."""
    numbers = [str(number) for number in range(1, count + 1)]
    return Form(
        fields_schema(dict.fromkeys(numbers, form.schema)),
        lambda value: "\n".join(f"{number}: {form.write(value[number])}" for number in numbers),
        form.strict,
    )


def _numbered(lines: Sequence[str]) -> list[str]:
    """The rows of a pack with their numbers; long cells and names that all rows share come once, before the rows."""
    rows = [json.loads(line) for line in lines]
    if not all(isinstance(row, dict) for row in rows):  # one was cut to a text
        return [f"{number} {line}" for number, line in enumerate(lines, start=1)]
    shared = {
        name: cell
        for name, cell in rows[0].items()
        if len(str(cell)) >= MIN_SHARED_BYTES and all(name in row and row[name] == cell for row in rows)
    }
    own: list[Any] = [{name: cell for name, cell in row.items() if name not in shared} for row in rows]
    heading = [f"Every row has {encode(shared)} and:"] if shared else []
    names = list(own[0])
    if names and all(list(row) == names for row in own):
        heading.append(f"Fields of each row: {encode(names)}")
        own = [list(row.values()) for row in own]
    return [*heading, *(f"{number} {encode(row)}" for number, row in enumerate(own, start=1))]


def reader(question: Question[Any], length: int) -> Callable[[str], list[_PackAnswer]]:
    """A parser for the answer to a pack: for each row in order, value, explanation, and the answer to the row alone.

    It raises :class:`AnswerRejected` unless each number from 1 to ``length`` comes before one answer, exactly once.
    Words before the first answer and after the last one are left out.
    """

    def read(text: str) -> list[_PackAnswer]:
        answers: dict[int, _PackAnswer] = {}
        for line in lines_of(without_reasoning(text)):
            numbered = _LINE.fullmatch(line)
            if numbered is None:
                if answers and len(answers) < length and line.strip(" `*-_"):
                    raise errors.AnswerRejected(f"expected a line for each row and nothing else, got {line[:80]!r}")
                continue
            number = int(numbered[1])
            if number in answers:
                raise errors.AnswerRejected(f"row {number} is answered twice")
            answers[number] = _read_line(question, numbered[2])
        missing = [number for number in range(1, length + 1) if number not in answers]
        if missing or len(answers) > length:
            odd = f"no line for row {missing[0]}" if missing else f"a line for row {max(answers)}, which is none"
            raise errors.AnswerRejected(f"expected one line for each row from 1 to {length}; there is {odd}")
        return [answers[number] for number in range(1, length + 1)]

    return read


def _read_line(question: Question[Any], text: str) -> _PackAnswer:
    read = (question.in_packs or question).read
    reason = None
    if question.explains:
        label = list(_LABEL.finditer(text))
        if not label:
            raise errors.AnswerRejected(
                f"expected 'Answer:' and {question.form} at the end of each line, got {text[-80:]!r}"
            )
        reason, text = text[: label[-1].start()].strip(" *_-–—"), text[label[-1].end() :].strip(" *_`")
    value = read(text)
    alone = text if question.write is None or isinstance(value, Unsure) else question.write(value)
    return value, reason, alone if reason is None else f"{reason}\nAnswer: {alone}"


def _is_worth_splitting(error: Exception | None) -> bool:
    """Whether parts of a pack may get an answer if the whole pack does not."""
    if isinstance(error, _SPLITTING):
        return True
    return isinstance(error, errors.LMRequestFailed) and error.status in (400, 413, 422) and not error.stops_run


# --- only as many rows as are needed to find a number that pass ------------------------------------------------------


LimitOrder: TypeAlias = Literal["rows", "likeliest"]
MAX_GROWTH = 4
"""A round asks about as many rows as the share so far suggests, but at most so many times those asked before."""
MIN_ROUND_ONE_IN = 2
"""A round asks about at least one in so many of those asked before, so that the last rows are not found one by one."""


def check_limit(limit: Any, order: Any) -> None:
    """Refuse an invalid limit before the model is asked.

    Raises:
        InvalidArgument: ``limit`` is not a whole number of at least 1, or ``order`` is neither of the two.
    """
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int | np.integer) or limit < 1):
        raise errors.InvalidArgument(
            f"limit must be the number of rows to find, at least 1, or None for all; got {limit!r}"
        )
    if order not in get_args(LimitOrder):
        raise errors.InvalidArgument(f"limit_order must be one of {get_args(LimitOrder)}; got {order!r}")


def ask_until(
    lines: Sequence[str],
    stands_for: Sequence[int],
    limit: int,
    ask: Callable[[list[str]], Step[list[Reply[bool]]]],
    least: int,
) -> Step[dict[str, Reply[bool]]]:
    """The verdicts on rows, asked in order until ``limit`` rows are found to be true.

    Args:
        lines: rows, each once, in the order in which they are asked.
        stands_for: how many rows of the frame each of them represents.
        limit: how many rows to find.
        ask: asks about some of them.
        least: the fewest rows of a round, if one prompt takes several.
    """
    verdicts: dict[str, Reply[bool]] = {}
    passed = 0
    bound = Bound(max_prompts(len(lines), least))
    while passed < limit and len(verdicts) < len(lines):
        start = len(verdicts)
        batch = list(lines[start : start + next_round(start, passed, limit, least)])
        answers = yield from bounded(ask(batch), bound)
        for number, (line, verdict) in enumerate(zip(batch, answers, strict=True), start=start):
            verdicts[line] = verdict
            passed += stands_for[number] if verdict.value is True else 0
    return verdicts


def next_round(so_far: int, passed: int, wanted: int, least: int = 1) -> int:
    """How many rows to ask about next.

    Args:
        so_far: how many rows were asked about.
        passed: how many of them pass.
        wanted: how many rows to find.
        least: the result is a multiple of it.

    >>> next_round(0, 0, 5), next_round(5, 0, 5), next_round(20, 4, 5), next_round(100, 40, 50, 16)
    (5, 20, 10, 64)
    """
    several = wanted - passed
    if so_far:
        several = math.ceil(several * (so_far + 1) / (passed + 1 / 3))
        several = max(min(several, MAX_GROWTH * so_far), so_far // MIN_ROUND_ONE_IN)
    return -(-several // least) * least

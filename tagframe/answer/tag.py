"""The TAG model: a pipeline of three functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, Unpack, overload

import pandas as pd

from tagframe import config
from tagframe.answer.answer import Answer, Generated, StepUse
from tagframe.answer.generation import is_empty, plain_values, rows_as_text
from tagframe.answer.judging import Judged
from tagframe.answer.query import can_run
from tagframe.answer.query_quote import quote_of
from tagframe.answer.steps import as_step, driver, metered
from tagframe.config import SearchSettings
from tagframe.errors import DoubtedAnswer, DoubtWarning, InvalidArgument, LMError, SQLFailed, warn
from tagframe.lm import Quote
from tagframe.operators import Step, arun, run, run_many

OnDoubt = Literal["keep", "warn", "raise"]


class Syn(Protocol):
    """``syn(R) -> Q``: query synthesis.

    It may also have ``revise(request, query, why)``, a step that gives another query or None. It is called once, if the
    query fails or gives no rows.
    """

    def __call__(self, request: str, /) -> Any:
        """The query, or a step (:data:`tagframe.operators.Step`) that ends with it."""


class Exec(Protocol):
    """``exec(Q) -> T``: query execution.

    It may also have ``why_empty(rows)``, which explains in a text why there are no rows, and
    ``judged(query, rows, request)``, which gives the doubts about them and their chance to be right
    (:class:`tagframe.answer.judging.Judged`).
    """

    def __call__(self, query: Any, /) -> Any:
        """The rows, or a step that ends with them."""


class Gen(Protocol):
    """``gen(R, T) -> A``: answer generation."""

    def __call__(self, request: str, rows: pd.DataFrame, /) -> Any:
        """A text, a list of values, or both as :class:`~tagframe.answer.Generated`; or a step that ends with one."""


@dataclass(frozen=True)
class TAG:
    """A pipeline of table-augmented generation (Biswal et al., CIDR 2025, section 2, equations 1 to 3).

    Each of the three may be a plain function, a function that gives a step (its prompts are then sent together with
    those of other questions), or one from this library: :func:`tagframe.exec_sql`, and the parts of
    :func:`tagframe.text2sql` and :func:`tagframe.rag`.

    Attributes:
        syn: ``syn(R) -> Q``.
        exec: ``exec(Q) -> T``; T is a frame.
        gen: ``gen(R, T) -> A``; None leaves the rows as the answer, as Text2SQL does.
        on_doubt: what to do if an answer is in doubt: "keep" lists the doubts on the answer, "warn", or "raise".

    >>> import pandas as pd
    >>> films = pd.DataFrame({"title": ["Low Tide", "Salt Road"], "year": [1998, 2015]})
    >>> newest = TAG(
    ...     syn=lambda request: "year == year.max()",
    ...     exec=films.query,
    ...     gen=lambda request, rows: rows["title"].tolist(),
    ... )
    >>> newest("The newest film").values
    ['Salt Road']
    """

    syn: Syn
    exec: Exec
    gen: Gen | None = None
    on_doubt: OnDoubt = "keep"

    def __post_init__(self) -> None:
        if self.on_doubt not in ("keep", "warn", "raise"):
            raise InvalidArgument(f"on_doubt must be 'keep', 'warn' or 'raise'; got {self.on_doubt!r}")

    @overload
    def __call__(self, request: str, *, quote: Literal[False] = ..., **settings: Unpack[SearchSettings]) -> Answer: ...
    @overload
    def __call__(self, request: str, *, quote: Literal[True], **settings: Unpack[SearchSettings]) -> Quote: ...
    def __call__(self, request: str, *, quote: bool = False, **settings: Unpack[SearchSettings]) -> Answer | Quote:
        """Answer one request; the thread waits for it.

        Args:
            request: usually in plain language.
            quote: give the cost of the rest instead: ``syn`` is asked (its answer is kept in the response store), but
                ``exec`` and ``gen`` send nothing.
            **settings: as in :func:`tagframe.configure`, for this call.

        Raises:
            Exception: any error of the three functions.
        """
        with config.context(**settings):
            step: Step[Any] = self.quoted(request) if quote else self.steps(request)
            return run(step, driver(), "ask")  # type: ignore[no-any-return]

    @overload
    async def awaited(
        self, request: str, *, quote: Literal[False] = ..., **settings: Unpack[SearchSettings]
    ) -> Answer: ...
    @overload
    async def awaited(self, request: str, *, quote: Literal[True], **settings: Unpack[SearchSettings]) -> Quote: ...
    async def awaited(self, request: str, *, quote: bool = False, **settings: Unpack[SearchSettings]) -> Answer | Quote:
        """Answer one request, or give its ``quote``; the event loop is not blocked; cancelling stops new requests."""
        with config.context(**settings):
            return await arun(self.quoted(request) if quote else self.steps(request), driver(), "ask")

    @overload
    def many(
        self, requests: Sequence[str], *, quote: Literal[False] = ..., **settings: Unpack[SearchSettings]
    ) -> list[Answer | Exception]: ...
    @overload
    def many(self, requests: Sequence[str], *, quote: Literal[True], **settings: Unpack[SearchSettings]) -> Quote: ...
    def many(
        self, requests: Sequence[str], *, quote: bool = False, **settings: Unpack[SearchSettings]
    ) -> list[Answer | Exception] | Quote:
        """Answer many requests concurrently; the answers are in order, and if one fails, its error takes its place.

        With ``quote=True``, ``syn`` is asked for all of them, and the sum of the cost of each alone is given; a request
        that fails adds nothing.

        Raises:
            ReplayMiss: with ``lm="replay:STORE"``, after the missing requests of all of them are noted.
        """
        if isinstance(requests, str):
            raise InvalidArgument(f"requests must be a list of texts; got the text {requests!r}")
        with config.context(**settings):
            if not quote:
                return run_many([self.steps(request) for request in requests], driver(), "ask")
            quotes = run_many([self.quoted(request) for request in requests], driver(), "ask")
            return sum((replace(one, query=None) for one in quotes if isinstance(one, Quote)), Quote())

    def steps(self, request: str) -> Step[Answer]:
        """The three as one step, for the drivers of :mod:`tagframe.operators`."""
        took: list[StepUse] = []

        def part(name: str, function: Any, *arguments: Any) -> Step[Any]:
            return metered(as_step(function, *arguments), name, request, took.append)

        query = yield from part("syn", self.syn, request)
        rows = pd.DataFrame()
        if can_run(query):
            query, rows = yield from self._executed(part, request, query)
        if can_run(query):
            said = None if self.gen is None else (yield from part("gen", self.gen, request, rows))
            generated = _generated(said, rows)
        else:
            generated = Generated(f"The tables lack what the question needs: {'; '.join(query.lacking)}.")
        found, judge = getattr(query, "retrieved", None), getattr(self.exec, "judged", None)
        known = Judged() if judge is None else judge(query, rows, request)
        said = request, generated.text, list(generated.values), query, rows, tuple(took), found
        answer = Answer(*said, known.doubts, known.confidence, known.tables_confidence)
        if known.doubts and self.on_doubt != "keep":
            doubts = "; ".join(map(str, known.doubts))
            message = f"the answer {answer.text!r:.200} to {request!r:.200} is in doubt: {doubts}"
            if self.on_doubt == "raise":
                raise DoubtedAnswer(f"{message} (this error has the answer as .answer)", answer)
            warn(message, DoubtWarning)
        return answer

    def quoted(self, request: str) -> Step[Quote]:
        """The cost of ``exec`` and ``gen``, as a step that asks only ``syn``."""
        query = yield from metered(as_step(self.syn, request), "syn", request, lambda use: None)
        return quote_of(query, self.exec, self.gen, request)

    def _executed(self, part: Any, request: str, query: Any) -> Step[tuple[Any, pd.DataFrame]]:
        """The rows of the query; or of a revised one, if the first fails or gives no rows and the other does better."""
        rows, failure, why = None, None, ""
        try:
            rows = yield from part("exec", self.exec, query)
        except SQLFailed as error:
            failure, why = error, f"The statement failed: {error}."
        revise, why_empty = getattr(self.syn, "revise", None), getattr(self.exec, "why_empty", None)
        if rows is not None and revise is not None and why_empty is not None and is_empty(rows):
            why = why_empty(rows)
        if why and revise is not None:
            try:
                other = yield from part("syn again", revise, request, query, why)
                if other is not None and not can_run(other):
                    return other, pd.DataFrame()
                if other is not None and rows is not None and str(other) == str(query):
                    return other, rows
                better = None if other is None else (yield from part("exec again", self.exec, other))
            except (LMError, SQLFailed):
                better = None
            if better is not None and (rows is None or not is_empty(better)):
                return other, better
        if failure is not None:
            raise failure
        assert rows is not None
        return query, rows


def _generated(said: Any, rows: pd.DataFrame) -> Generated:
    """The output of ``gen``, or the rows as a text if there is no ``gen``."""
    if isinstance(said, Generated):
        return said
    if isinstance(said, str):
        return Generated(said)
    if said is None:
        return Generated(rows_as_text(rows), plain_values(rows))
    values = list(said) if isinstance(said, list | tuple) else [said]
    return Generated(", ".join(map(str, values)), values)

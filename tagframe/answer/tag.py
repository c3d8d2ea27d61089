"""The TAG model: a pipeline of three functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, TypeAlias, Unpack, overload

import pandas as pd

from tagframe import config
from tagframe.answer.answer import Answer, Generated, StepUse
from tagframe.answer.doubts import unread_values
from tagframe.answer.generation import is_empty, plain_values, rows_as_text
from tagframe.answer.query import can_run
from tagframe.answer.steps import as_step, driver, metered, quote_of
from tagframe.config import SearchSettings
from tagframe.engines.base import NARROW_IT
from tagframe.errors import InvalidArgument, LMError, SQLFailed
from tagframe.lm import Quote
from tagframe.operators import Step, arun, run, run_many

_Part: TypeAlias = Callable[..., Step[Any]]
"""One of the three functions as a step: its name, the function, its arguments."""


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
    ``doubts(query, rows, request)``, which gives the doubts about them, a tuple of :class:`tagframe.answer.Doubt`.
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
    :func:`tagframe.answer.automatic`.

    Attributes:
        syn: ``syn(R) -> Q``.
        exec: ``exec(Q) -> T``; T is a frame.
        gen: ``gen(R, T) -> A``; None leaves the rows as the answer, as Text2SQL does.

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
        uses: list[StepUse] = []

        def part(name: str, function: Any, *arguments: Any) -> Step[Any]:
            return metered(as_step(function, *arguments), name, uses.append)

        query = yield from part("syn", self.syn, request)
        rows = pd.DataFrame()
        if can_run(query):
            query, rows = yield from self._executed(part, request, query)
        generated = yield from self._generated(part, request, query, rows)
        judge = getattr(self.exec, "doubts", None)
        doubts = () if judge is None else judge(query, rows, request)
        if judge is not None and "gen" in {use.name for use in uses}:
            doubts = (*doubts, *unread_values(generated.values, rows, request))
        return Answer(
            question=request,
            text=generated.text,
            values=list(generated.values),
            query=query,
            rows=rows,
            steps=tuple(uses),
            retrieved=getattr(query, "retrieved", None),
            doubts=doubts,
        )

    def quoted(self, request: str) -> Step[Quote]:
        """The cost of ``exec`` and ``gen``, as a step that asks only ``syn``."""
        query = yield from metered(as_step(self.syn, request), "syn", lambda use: None)
        return quote_of(query, self.exec, self.gen, request)

    def _executed(self, part: _Part, request: str, query: Any) -> Step[tuple[Any, pd.DataFrame]]:
        """The query and its rows; or a revised one's, if the first fails or gives no rows and the other does better."""
        rows, failure, why = None, None, ""
        try:
            rows = yield from part("exec", self.exec, query)
        except SQLFailed as error:
            failure, why = error, f"The statement failed: {error}.".replace(f"; {NARROW_IT}", "")
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

    def _generated(self, part: _Part, request: str, query: Any, rows: pd.DataFrame) -> Step[Generated]:
        """The output of ``gen`` as a text and values; of the rows if there is no ``gen``, and of what is lacking."""
        if not can_run(query):
            return Generated(f"The tables lack what the question needs: {'; '.join(query.lacking)}.")
        output = None if self.gen is None else (yield from part("gen", self.gen, request, rows))
        if isinstance(output, Generated):
            return output
        if isinstance(output, str):
            return Generated(output)
        if output is None:
            return Generated(rows_as_text(rows), plain_values(rows))
        values = list(output) if isinstance(output, list | tuple) else [output]
        return Generated(", ".join(map(str, values)), values)

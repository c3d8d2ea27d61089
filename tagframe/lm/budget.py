"""Budgets: limits that stop work before the call that would pass them."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from tagframe.config import Dollars
from tagframe.display import Displayable, rows_html
from tagframe.errors import BudgetExceeded, InvalidArgument
from tagframe.lm.background import after_fork
from tagframe.lm.pricing import Price

if TYPE_CHECKING:
    from tagframe.lm.pacing import ServerState


class Cost(NamedTuple):
    """The cost of a call."""

    calls: float
    tokens: float
    dollars: float


NOTHING = Cost(0, 0, 0.0)
NOTHING_BUT_A_CALL = Cost(1, 0, 0.0)


class Budget(Displayable):
    """A limit on calls, tokens or dollars, shared by all calls that are made under it.

    Before a request is sent, its highest possible cost is reserved: one call, a token for each byte of the prompt (an
    image's tokens are not known), and ``max_tokens`` for the answer. Under a limit of tokens or dollars, ``max_tokens``
    is 4,096 if it is not given. The usage that the server reports replaces the reservation. If it reports none, the
    reservation counts as spent. A request that does not fit into the rest of the budget waits for those in flight. If
    it still does not fit, it and all later ones end with :class:`~tagframe.errors.BudgetExceeded`; finished answers are
    kept.

    Some servers ignore ``max_tokens``. So that they cannot spend a budget many times over, the number of requests in
    flight to a server is at most one more than the number that have ended, and one in all to servers of which none has,
    unless the budget could pay for all of them at 16,384 tokens an answer. After an answer that was longer than
    allowed, that length is reserved for each later request to its server, and to those of which nothing is known yet.

    Args:
        calls: requests sent, including retries and repairs.
        tokens: of prompts and answers together.
        dollars: by the model's price; a model whose price is unknown is refused under such a limit.

    Raises:
        InvalidArgument: no limit at all, or a negative one.
    """

    def __init__(self, calls: int | None = None, tokens: int | None = None, dollars: float | None = None) -> None:
        limits = {"calls": calls, "tokens": tokens, "dollars": dollars}
        self._limits = {name: limit for name, limit in limits.items() if limit is not None}
        if not self._limits:
            raise InvalidArgument("a budget limits calls, tokens or dollars: give at least one")
        for name, limit in self._limits.items():
            if isinstance(limit, bool) or not isinstance(limit, int | float) or not limit >= 0:
                raise InvalidArgument(f"a budget's {name} must be a number, 0 or more; got {limit!r}")
        self._spent = NOTHING
        self._forget_requests()
        _budgets.add(self)

    def _forget_requests(self) -> None:
        """Forget requests in flight, in the child of a fork: they are the parent's, and are settled there."""
        self._lock = threading.Lock()
        self._reserved = NOTHING
        self._under_way: Counter[ServerState] = Counter()
        self._waiting: set[asyncio.Future[None]] = set()

    def __str__(self) -> str:
        return f"Budget({self._state()})"

    def _repr_html_(self) -> str:
        rows = [(name, *(f"{n:,.10g}" for n in (limit, getattr(self._spent, name), self.left[name])))
                for name, limit in self._limits.items()]  # fmt: skip
        return rows_html("Budget", ["of", "limit", "spent", "left"], rows, words={"of"})

    def __reduce__(self) -> Any:
        raise InvalidArgument(
            f"a budget belongs to one process and cannot be pickled: each copy ({self._state()}) could be spent "
            "in full. Give the other process its own Budget, and an LM without one"
        )

    @property
    def spent(self) -> Cost:
        """Calls, tokens and dollars so far; models whose price is unknown add no dollars."""
        return self._spent

    @property
    def left(self) -> dict[str, float]:
        """The rest of each limit; never below 0."""
        return {name: max(0.0, limit - getattr(self._spent, name)) for name, limit in self._limits.items()}

    @property
    def bounds_answers(self) -> bool:
        """Whether the length of an answer matters: tokens or dollars are limited."""
        return self._limits.keys() != {"calls"}

    def _state(self) -> str:
        return ", ".join(
            f"{getattr(self._spent, name):.10g} of {limit:.10g} {name} spent" for name, limit in self._limits.items()
        )

    def cost(self, tokens: int, dollars: float | None) -> Cost:
        """One call's cost.

        Raises:
            BudgetExceeded: dollars are limited and the price is unknown.
        """
        if dollars is None and "dollars" in self._limits:
            raise BudgetExceeded(
                "the budget is in dollars and the model's price is unknown: limit calls or tokens instead"
                " (tagframe.Budget(calls=…)), or give the price with LM(…, price=…)"
            )
        return Cost(1, tokens, dollars or 0.0)

    async def reserve(self, most: Callable[[int], Cost], server: ServerState, long: Cost) -> Cost:
        """Reserve a request's cost; waits for requests in flight if it would fit without their reservations.

        Args:
            most: gives the highest cost of the request, as far as is known by now, if its answer may have so many
                tokens.
            server: whose answers may be longer than allowed.
            long: its cost if the answer is as long as one without a limit.

        Returns:
            The reserved cost.

        Raises:
            BudgetExceeded: it does not fit into the rest of the budget.
        """
        while True:
            with self._lock:
                # Of a server that has answered nothing, what the others do is all that is known.
                unknown = not server.seen and not server.longest
                cost = most(max((other.longest for other in self._under_way), default=0) if unknown else 0)
                together = _plus(_plus(self._spent, self._reserved), cost)
                short = [name for name, limit in self._limits.items() if getattr(together, name) > limit]
                if not short and self._is_open(server, long):
                    self._reserved = _plus(self._reserved, cost)
                    self._under_way[server] += 1
                    return cost
                if short and not self._reserved.calls:
                    needs = ", ".join(f"{getattr(cost, name):.10g} {name}" for name in short)
                    raise BudgetExceeded(
                        f"the next call may cost {needs}, more than the rest of the budget ({self._state()})."
                        " Run it again with a larger budget; finished answers cost nothing again"
                    )
                turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._waiting.add(turn)
            await turn

    def _is_open(self, server: ServerState, long: Cost) -> bool:
        """Whether one more request to a server may be in flight: fewer are than have ended well, or all can be long."""
        count = self._under_way.total() + 1
        unknown = sum(number for of, number in self._under_way.items() if not of.seen)
        return (self._under_way[server] <= server.seen if server.seen else not unknown) or all(
            getattr(self._spent, name) + count * getattr(long, name) <= limit
            for name, limit in self._limits.items()
            if name != "calls"
        )

    def settle(self, reserved: Cost, spent: Cost, server: ServerState) -> None:
        """Replace the reservation of a call that has ended by its cost."""
        with self._lock:
            self._under_way[server] -= 1
            self._reserved = _plus(self._reserved, reserved, -1)
            if not self._reserved.calls:
                self._reserved = NOTHING  # no rounding is left over
            self._spent = _plus(self._spent, spent)
            waiting, self._waiting = self._waiting, set()
        for turn in waiting:
            if not turn.done():
                turn.set_result(None)


def _plus(one: Cost, other: Cost, sign: int = 1) -> Cost:
    return Cost(*(a + sign * b for a, b in zip(one, other, strict=True)))


_opening = threading.Lock()
_budgets: weakref.WeakSet[Budget] = weakref.WeakSet()


def _after_fork() -> None:
    global _opening
    _opening = threading.Lock()
    for budget in list(_budgets):
        budget._forget_requests()


after_fork(_after_fork)


def account_of(setting: Any) -> Budget | None:
    """The budget of the current settings; a plain number of dollars becomes a budget at its first use."""
    if not isinstance(setting, Dollars):
        given: Budget | None = setting
        return given
    with _opening:
        if setting.account is None:
            setting.account = Budget(dollars=float(setting))
        account: Budget = setting.account
        return account


def dollars_of(price: Price | None, tokens_in: int, tokens_out: int, cached: int = 0, written: int = 0) -> float | None:
    """The price of these numbers of tokens, as :meth:`Price.of` has it; None if unknown."""
    return None if price is None else price.of(tokens_in, tokens_out, cached, written)

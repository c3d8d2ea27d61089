"""The cost of calls: a :class:`Usage` per prompt, per call, per block of code and per process, and limits on it."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from tagframe.config import Dollars
from tagframe.display import Displayable, rows_html
from tagframe.errors import BudgetExceeded, InvalidArgument, counted
from tagframe.lm.background import after_fork

if TYPE_CHECKING:
    from tagframe.lm.pacing import ServerState

MAX_RECORDED_CALLS = 10_000
"""How many calls :func:`usage` lists; earlier ones still count in the total."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Counts and costs; usages add up with ``+``.

    Attributes:
        prompts: that were asked; one may be about several rows.
        sent: requests sent, with retries and repairs.
        deduplicated: prompts answered by an identical one of this call, or of another call in progress.
        stored: prompts answered from the response store.
        retried: requests sent again after a fault.
        repaired: requests sent again after a rejected answer.
        failed: prompts that ended with an error.
        tokens_in: tokens of the prompts, as the server counted them.
        tokens_out: tokens of the answers, with their reasoning; those of unusable answers too.
        tokens_cached: those tokens of the prompts that the provider read from its cache.
        dollars: the price of those tokens; None if the model's price is unknown.
        dollars_saved: by how much the cached tokens were cheaper.
        seconds: for a prompt the time of its requests, for a call the wall-clock time.
    """

    prompts: int = 0
    sent: int = 0
    deduplicated: int = 0
    stored: int = 0
    retried: int = 0
    repaired: int = 0
    failed: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    dollars: float | None = 0.0
    dollars_saved: float = 0.0
    seconds: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return total((self, other))

    def __str__(self) -> str:
        dollars = "an unknown number of dollars" if self.dollars is None else f"${self.dollars:.4f}"
        parts = [f"{counted(self.prompts, 'prompt')}: {self.sent} sent"]
        for name in ("deduplicated", "stored", "retried", "repaired", "failed"):
            if getattr(self, name):
                parts.append(f"{getattr(self, name)} {'from the store' if name == 'stored' else name}")
        cached = f" ({self.tokens_cached} cached, ${self.dollars_saved:.4f} saved)" if self.tokens_cached else ""
        return (
            f"{', '.join(parts)}; {self.tokens_in} tokens in{cached}, {self.tokens_out} out, {dollars},"
            f" {self.seconds:.1f} s"
        )


_COUNTS = tuple(f.name for f in fields(Usage) if f.name != "dollars")
FROM_STORE = Usage(prompts=1, stored=1)
FAILED_IN_STORE = Usage(prompts=1, stored=1, failed=1)
DUPLICATE = Usage(prompts=1, deduplicated=1)
FAILED_DUPLICATE = Usage(prompts=1, deduplicated=1, failed=1)


def total(usages: Iterable[Usage]) -> Usage:
    """The sum of usages; its dollars are None if those of any usage are."""
    listed = list(usages)
    dollars: float | None = 0.0
    for one in listed:
        dollars = None if dollars is None or one.dollars is None else dollars + one.dollars
    return Usage(dollars=dollars, **{name: sum(getattr(one, name) for one in listed) for name in _COUNTS})


class Ledger:
    """The usage of the calls of this process, or of a block; safe to use from several threads.

    Attributes:
        total: the sum of all calls.
    """

    total: Usage

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: deque[tuple[str, str, Usage]] = deque(maxlen=MAX_RECORDED_CALLS)
        self.total = Usage()

    def after_fork(self) -> None:
        """Make a new lock, in the child of a fork: a thread of the parent may hold the old one."""
        self._lock = threading.Lock()

    def record(self, description: str, model: str, usage: Usage) -> None:
        """Add one call."""
        with self._lock:
            self._calls.append((description, model, usage))
            self.total = total((self.total, usage))

    def __str__(self) -> str:
        return str(self.total)

    def frame(self) -> pd.DataFrame:
        """One row per call, in the order in which they ended."""
        with self._lock:
            calls = list(self._calls)
        columns = ["call", "model", *(f.name for f in fields(Usage))]
        rows = [(what, model, *(getattr(usage, name) for name in columns[2:])) for what, model, usage in calls]
        return pd.DataFrame(rows, columns=columns).astype({"dollars": float, "seconds": float})


ledger = Ledger()
after_fork(ledger.after_fork)
_blocks: ContextVar[tuple[Ledger, ...]] = ContextVar("tagframe usage", default=())
"""The blocks that are open where a call is made: a thread or a task has its own."""


def record(description: str, model: str, usage: Usage) -> None:
    """Add one call to the process and to the open blocks."""
    for one in (ledger, *_blocks.get()):
        one.record(description, model, usage)


class UsageFrame(pd.DataFrame):
    """The calls of the process; as a context manager, it gives the :class:`Ledger` of the block."""

    @property
    def _constructor(self) -> type[pd.DataFrame]:
        return pd.DataFrame

    def __enter__(self) -> Ledger:
        used = Ledger()
        object.__setattr__(self, "_used", used)
        _blocks.set((*_blocks.get(), used))
        return used

    def __exit__(self, *raised: object) -> None:
        used = object.__getattribute__(self, "_used")
        _blocks.set(tuple(one for one in _blocks.get() if one is not used))


def usage() -> UsageFrame:
    """The cost of this process's calls so far, or ``with tf.usage() as used:`` of the calls of a block.

    One row per call of :meth:`LM.complete`, with the columns ``call`` (the operator), ``model`` and the fields of
    :class:`Usage`; dollars are NaN if the price is unknown. The newest 10,000 calls are listed; :func:`total_usage`
    sums all calls. Of a block, ``used.total`` is the :class:`Usage` and ``used.frame()`` lists its calls. Calls of
    other threads and of tasks that were started before are not counted; those of tasks started in the block are.
    """
    return UsageFrame(ledger.frame())


def total_usage() -> Usage:
    """The sum of all calls of this process."""
    return ledger.total


# --- budgets: limits that stop work before the call that would pass them -------------------------------------------


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

"""The cost of calls: a :class:`Usage` per prompt, per call, per block of code and per process; limits on it; prices."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import threading
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import dataclass, fields
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

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


_columns = attrgetter(*(f.name for f in fields(Usage)))
FROM_STORE = Usage(prompts=1, stored=1)
FAILED_IN_STORE = Usage(prompts=1, stored=1, failed=1)
DUPLICATE = Usage(prompts=1, deduplicated=1)
FAILED_DUPLICATE = Usage(prompts=1, deduplicated=1, failed=1)


def total(usages: Iterable[Usage]) -> Usage:
    """The sum of usages; its dollars are None if those of any usage are."""
    columns: Any = zip(*map(_columns, (Usage(), *usages)), strict=True)
    sums: Any = (None if None in column else sum(column) for column in columns)
    return Usage(*sums)


class Ledger:
    """The usage of the calls of this process, or of a block; safe to use from several threads.

    Attributes:
        total: the sum of all calls.
    """

    total: Usage

    def __init__(self) -> None:
        self.unlock()
        self._calls: deque[tuple[str, str, Usage]] = deque(maxlen=MAX_RECORDED_CALLS)
        self.total = Usage()

    def unlock(self) -> None:
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
after_fork(ledger.unlock)
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
        self._reserved = NOTHING
        self._under_way: Counter[ServerState] = Counter()
        self._turn = asyncio.Event()  # set, and another one from then on, when a request has ended

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
            await self._turn.wait()

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
        self._under_way[server] -= 1
        self._reserved = _plus(self._reserved, reserved, -1)
        if not self._reserved.calls:
            self._reserved = NOTHING  # no rounding is left over
        self._spent = _plus(self._spent, spent)
        self._turn.set()
        self._turn = asyncio.Event()


def _plus(one: Cost, other: Cost, sign: int = 1) -> Cost:
    return Cost(*(a + sign * b for a, b in zip(one, other, strict=True)))


_budgets: weakref.WeakSet[Budget] = weakref.WeakSet()


def _after_fork() -> None:
    for budget in list(_budgets):
        budget._forget_requests()


after_fork(_after_fork)


def account_of(setting: Any) -> Budget | None:
    """The budget of the current settings; a plain number of dollars becomes a budget at its first use."""
    if not isinstance(setting, Dollars):
        given: Budget | None = setting
        return given
    account: Budget = vars(setting).setdefault("account", Budget(dollars=float(setting)))  # one, of several threads
    return account


# --- prices and context windows; litellm's table is read without importing litellm -----------------------------------


Tier: TypeAlias = Literal["standard", "flex", "batch"]
"""What OpenAI and others call the tier of a request: the cheaper ones are slower, and cost about half."""


@dataclass(frozen=True)
class Price:
    """Dollars per token.

    Attributes:
        tokens_in: of a prompt.
        tokens_out: of an answer, with its reasoning.
        cached: of a prompt's tokens that the provider reads from its cache; as ``tokens_in`` if None.
        written: of those that it writes to its cache; as ``tokens_in`` if None.
    """

    tokens_in: float
    tokens_out: float
    cached: float | None = None
    written: float | None = None

    def of(self, tokens_in: int, tokens_out: int, cached: int = 0, written: int = 0) -> float:
        """The price of these numbers of tokens, in dollars; ``cached`` and ``written`` are parts of ``tokens_in``."""
        dear = 0.0 if self.written is None else written * (self.written - self.tokens_in)
        return tokens_in * self.tokens_in + tokens_out * self.tokens_out + dear - self.saved(cached)

    def saved(self, cached: int) -> float:
        """The dollars by which these cached tokens are cheaper than others."""
        return 0.0 if self.cached is None else cached * (self.tokens_in - self.cached)

    @property
    def most_in(self) -> Price:
        """The same price where a prompt's tokens cost the most that they can: a budget reserves by it."""
        return Price(max(self.tokens_in, self.written or 0.0, self.cached or 0.0), self.tokens_out)


def dollars_of(price: Price | None, tokens_in: int, tokens_out: int, cached: int = 0, written: int = 0) -> float | None:
    """The price of these numbers of tokens, as :meth:`Price.of` has it; None if unknown."""
    return None if price is None else price.of(tokens_in, tokens_out, cached, written)


_SUFFIXES = {"standard": ("",), "flex": ("_flex", "_batches"), "batch": ("_batches", "_flex")}
HALF = 0.5
"""The factor for the flex and batch tiers where litellm's table does not have their prices (OpenAI, Anthropic)."""


@lru_cache(maxsize=64)
def price_of(model: str, tier: Tier = "standard") -> Price | None:
    """The price of a model by its litellm name; None if litellm's table does not have it.

    >>> price_of("openai/gpt-4o-mini")
    Price(tokens_in=1.5e-07, tokens_out=6e-07, cached=7.5e-08, written=None)
    >>> price_of("openai/gpt-4o-mini", "batch").tokens_in
    7.5e-08
    >>> price_of("openai/my-own-model") is None
    True
    """
    entry = _entry(model, "input_cost_per_token")
    if entry is None:
        return None

    def cost(name: str) -> float | None:
        usual = entry.get(name)
        half = float(usual) * HALF if isinstance(usual, int | float) else None
        costs = (*(entry.get(f"{name}{suffix}") for suffix in _SUFFIXES[tier]), half)
        return next((one for one in costs if isinstance(one, int | float)), None)

    own = [cost(f"{name}_cost_per_token") for name in ("input", "output")]
    return Price(
        own[0] or 0.0, own[1] or 0.0, cost("cache_read_input_token_cost"), cost("cache_creation_input_token_cost")
    )


def at_tier(price: Price, tier: Tier) -> Price:
    """A user's own price in a tier: half of it in the cheaper ones."""
    if tier == "standard":
        return price
    rates = (getattr(price, name) for name in price.__dataclass_fields__)
    return Price(*(None if rate is None else rate * HALF for rate in rates))  # type: ignore[arg-type]


@lru_cache(maxsize=64)
def window_of(model: str) -> int | None:
    """The tokens that a model reads in one request, by its litellm name; None if litellm's table does not have it.

    >>> window_of("openai/gpt-4o-mini")
    128000
    """
    entry = _entry(model, "max_input_tokens")
    tokens = None if entry is None else entry["max_input_tokens"]
    return tokens if isinstance(tokens, int) and tokens > 0 else None


@lru_cache(maxsize=64)
def provider_of(model: str) -> str | None:
    """litellm's provider of a model that is named without one, as ``"gpt-4o-mini"``; None if unknown."""
    entry = price_table().get(model)
    return entry.get("litellm_provider") if isinstance(entry, dict) else None


def _entry(model: str, field: str) -> dict[str, Any] | None:
    """A model's entry in litellm's table, under its name with or without the provider, if it has the field."""
    table = price_table()
    for name in (model, model.partition("/")[2]):
        entry = table.get(name)
        if isinstance(entry, dict) and field in entry:
            return entry
    return None


def price_table() -> dict[str, object]:
    """litellm's table of prices and context windows, by models' names; empty without litellm."""
    # find_spec does not run the package: importing litellm takes seconds, its table milliseconds. It is not kept.
    spec = importlib.util.find_spec("litellm")
    if spec is None or spec.origin is None:
        return {}
    file = Path(spec.origin).with_name("model_prices_and_context_window_backup.json")
    try:
        table: dict[str, object] = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return {}
    return table

"""The cost of calls: a :class:`Usage` per prompt, per call, per block of code and per process."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from contextvars import ContextVar
from dataclasses import dataclass, fields
from types import TracebackType

import pandas as pd

from tagframe.errors import counted
from tagframe.lm.background import after_fork

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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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

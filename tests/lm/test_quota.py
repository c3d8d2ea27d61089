"""Limits that a server tells in its headers: read, kept to, and counted by the requests that were refused."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest

from tag_bench.server import Reply, Request, Server, error
from tagframe.lm import LM, Prompt, RetryPolicy
from tagframe.lm.pacing import Rates, server_state
from tagframe.lm.pricing import estimate_tokens
from tagframe.lm.quota import Allowance, Quota, ServerLimits, limits_of

ROWS = [Prompt.of(f"row {i}") for i in range(60)]


def openai(**values: str) -> dict[str, str]:
    return {f"x-ratelimit-{name.replace('_', '-')}": value for name, value in values.items()}


@pytest.mark.parametrize(
    ("reset", "seconds"),
    [("6m0s", 360), ("12ms", 0.012), ("1s", 1), ("1h2m3.5s", 3723.5), ("59", 59), ("soon", None), ("", None)],
)
def test_what_headers_say(reset: str, seconds: float | None):
    limits = limits_of(openai(limit_requests="500", remaining_requests="499", reset_requests=reset))
    assert limits == ServerLimits(requests=Allowance(500, 499, seconds))


def test_anthropics_headers():
    reset = (datetime.now(UTC) + timedelta(seconds=30)).isoformat().replace("+00:00", "Z")
    headers = {f"anthropic-ratelimit-tokens-{name}": text for name, text in [("limit", "80000"), ("remaining", "1000")]}
    limits = limits_of({**headers, "anthropic-ratelimit-tokens-reset": reset})
    assert limits is not None
    assert limits.requests is None
    assert limits.tokens is not None
    assert limits.tokens.reset == pytest.approx(30, abs=5)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        openai(limit_requests="60"),
        openai(limit_tokens="-1", remaining_tokens="-1", reset_tokens="0"),
        openai(limit_tokens="0", remaining_tokens="0"),
        openai(limit_tokens="many", remaining_tokens="nan"),
        openai(limit_requests="inf", remaining_requests="1"),
    ],
)
def test_headers_that_say_nothing(headers: Mapping[str, str]):
    assert limits_of(headers) is None


class Clock:
    """Seconds that go by only where somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> bool:
        assert seconds > 0
        self.now += seconds
        return True


def taken_at(quota: Quota, clock: Clock, count: int, tokens: int = 1) -> list[float]:
    """When each of so many requests could go out, one after the other."""

    async def take() -> list[float]:
        times = []
        for _ in range(count):
            await quota.take(tokens, clock.sleep)
            times.append(clock.now)
            quota.give_back(tokens)
        return times

    return asyncio.run(take())


def test_nothing_is_waited_for_that_nobody_told():
    clock = Clock()
    assert taken_at(Quota(clock), clock, 1000) == [0.0] * 1000


def test_a_bucket_that_fills_up():
    clock = Clock()
    quota = Quota(clock)
    quota.learn(ServerLimits(requests=Allowance(60, 2, 58.0)))
    assert taken_at(quota, clock, 4) == pytest.approx([0, 0, 1, 2])
    clock.now += 1000  # the bucket holds no more than its limit
    times = taken_at(quota, clock, 61)
    assert times[59] == times[0] < times[60]


def test_a_window_that_begins_anew():
    clock = Clock()
    quota = Quota(clock)
    quota.learn(ServerLimits(tokens=Allowance(1000, 990, 50.0)))  # little is used, and yet its reset is far
    quota.learn(ServerLimits(tokens=Allowance(1000, 10, 40.0)))
    assert taken_at(quota, clock, 4, tokens=5) == [0, 0, 40, 40]


def test_what_is_in_flight_is_not_taken_twice():
    clock = Clock()
    quota = Quota(clock)

    async def takes() -> None:
        await quota.take(1, clock.sleep)
        await quota.take(1, clock.sleep)
        quota.learn(ServerLimits(requests=Allowance(60, 3, 57.0)))  # of which two may be those
        await quota.take(1, clock.sleep)
        assert clock.now == 0
        await quota.take(1, clock.sleep)
        assert clock.now == pytest.approx(1)

    asyncio.run(takes())


def test_what_can_never_be_left_is_sent_all_the_same():
    clock = Clock()
    quota = Quota(clock)
    quota.learn(ServerLimits(tokens=Allowance(600, 600, 0.0)))
    assert taken_at(quota, clock, 2, tokens=6000) == pytest.approx([0, 60])


def test_a_run_that_stops_waits_for_nothing():
    quota = Quota(Clock())
    quota.learn(ServerLimits(requests=Allowance(1, 0, 60.0)))
    waits: list[float] = []

    async def stopped(seconds: float) -> bool:
        waits.append(seconds)
        return False

    asyncio.run(quota.take(1, stopped))
    assert waits == [60.0]


class Limited:
    """A server that refuses what is beyond its requests or tokens a minute, and says so in its headers, or not."""

    def __init__(self, limit: int, left: int, of: str, tells: bool) -> None:
        self.limit, self.left, self.of, self.tells = limit, float(left), of, tells
        self.refused = 0
        self._at = time.monotonic()
        self._lock = threading.Lock()

    def __call__(self, request: Request) -> Reply:
        with self._lock:
            now = time.monotonic()
            self.left = min(self.limit, self.left + (now - self._at) * self.limit / 60)
            self._at = now
            amount = 1 if self.of == "requests" else 20
            refused = self.left < amount
            self.left -= 0 if refused else amount
            self.refused += refused
            reset = f"{(self.limit - self.left) * 60 / self.limit:.3f}s"
            told = {"limit": str(self.limit), "remaining": str(int(self.left)), "reset": reset}
            headers = {f"x-ratelimit-{name}-{self.of}": text for name, text in told.items()} if self.tells else {}
        if refused:
            return error(429, headers=headers)
        counted = {"prompt_tokens": 15, "completion_tokens": 5}
        return Reply("True", headers=headers, changes={"usage": counted}, latency=0.005)


def refusals(server: Server, transport: str, of: str, tells: bool) -> int:
    """How often a server refuses sixty requests, twenty of which it takes at once, and twenty a second after that."""
    amount = 1 if of == "requests" else 20
    server.answers = limited = Limited(1200 * amount, 20 * amount, of, tells)
    retry = RetryPolicy(refusals=1000, first_wait=0.02, longest_wait=0.05)
    lm = LM("openai/test", api_base=server.url, api_key="x", transport=transport, retry=retry, store=None)  # type: ignore[arg-type]
    completions = lm.using(concurrency=6).complete(ROWS, max_tokens=20 - estimate_tokens(ROWS[0]))
    assert all(completion.ok for completion in completions)
    return limited.refused


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["http", pytest.param("litellm", marks=pytest.mark.slow)])
@pytest.mark.parametrize("of", ["requests", "tokens"])
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
def test_a_limit_that_is_told_is_not_run_into(server: Server, transport: str, of: str):
    assert refusals(server, transport, of, tells=True) == 0


@pytest.mark.slow
def test_one_that_is_not_told_is_found_out(server: Server):
    assert refusals(server, "http", "requests", tells=False) > 0


def test_tokens_are_settled_as_the_server_counts(monkeypatch: pytest.MonkeyPatch):
    clock = Clock()
    monkeypatch.setattr("tagframe.lm.pacing.time.monotonic", clock)
    rates = Rates(None, 60_000)

    async def takes(counted: int) -> float:
        for _ in range(10):
            await rates.take(1000, clock.sleep)
            rates.settle(counted - 1000)
        return clock.now

    assert asyncio.run(takes(counted=100)) <= 1
    before = clock.now
    assert asyncio.run(takes(counted=2000)) - before >= 17


def test_what_was_learned_serves_the_next_call(server: Server):
    server.answers = lambda request: Reply(headers=openai(limit_requests="600", remaining_requests="0"))
    LM("openai/test", api_base=server.url, store=None).complete(ROWS[:1])
    waits: list[float] = []

    async def asked(seconds: float) -> bool:
        waits.append(seconds)
        return False

    asyncio.run(server_state(server.url, "openai/test").quota.take(1, asked))
    assert len(waits) == 1

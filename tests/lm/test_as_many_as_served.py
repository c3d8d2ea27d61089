"""No more requests are in flight than a server serves, and a server that is away for a while is waited for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from tag_bench.server import DROP, Reply, Request, Server, error
from tagframe import errors
from tagframe.lm import LM, Prompt, RetryPolicy, pacing
from tagframe.lm.pacing import AdaptiveLimit, server_state

pytestmark = pytest.mark.slow

EACH = 0.04
"""Seconds of an answer."""
QUICK = RetryPolicy(first_wait=0.02, longest_wait=0.05)


class Slots:
    """A server that computes this many answers at once, in order of arrival, also those that nobody waits for."""

    def __init__(self, slots: int = 1, seconds: float = EACH) -> None:
        self.free = [0.0] * slots
        self.seconds = seconds

    def __call__(self, request: Request) -> Reply:
        now = time.monotonic()
        slot = self.free.index(min(self.free))
        self.free[slot] = max(now, self.free[slot]) + self.seconds
        return Reply("True", latency=self.free[slot] - now)


def prompts(count: int, of: str = "row") -> list[Prompt]:
    return [Prompt.of(f"{of} {i}") for i in range(count)]


def lm_of(server: Server, **options: Any) -> LM:
    return LM("openai/test", api_base=server.url, store=None, **({"retry": QUICK} | options))


def test_the_time_in_a_servers_queue_is_not_a_requests_time(server: Server):
    server.answers = Slots()
    lm = lm_of(server, timeout=6 * EACH)
    lm.using(concurrency=1).complete(prompts(2, "one"))  # imports, too, take their time
    completions = lm.complete(prompts(40))
    assert completions.usage.failed == 0
    assert server.count <= 2 + 50


def test_a_request_that_others_overtake_times_out(server: Server):
    def answers(request: Request) -> Reply:
        return Reply(hang=True) if request.prompt == "row 3" else Reply("True", latency=0.005)

    server.answers = answers
    lm = lm_of(server, timeout=0.2, retry=RetryPolicy(faults=0), concurrency=8)
    completions = lm.complete(prompts(400))
    assert [i for i, completion in enumerate(completions) if not completion.ok] == [3]
    assert isinstance(completions[3].error, errors.RequestTimedOut)
    assert max(request.in_flight for request in server.requests[200:]) >= 7  # the others are not slowed


@pytest.mark.parametrize(
    ("seconds", "least", "most"),
    [
        (lambda n: max(1.0, n), 1, 8),  # one at a time
        (lambda n: max(1.0, n / 8), 8, 40),  # eight at a time
        (lambda n: 1 + n / 10, 30, 64),  # all in one computation, which takes longer for more
        (lambda n: 1.0, 64, 64),
    ],
    ids=["one slot", "eight slots", "batches", "all"],
)
def test_the_number_in_flight_falls_where_more_do_not_help(
    monkeypatch: pytest.MonkeyPatch, seconds: Callable[[int], float], least: int, most: int
):
    """A simulated server that takes ``seconds(n)`` for an answer while n requests are in flight."""
    now = 0.0
    monkeypatch.setattr("tagframe.lm.pacing.time.monotonic", lambda: now)
    gate = AdaptiveLimit()
    limits = []
    with gate.serving(64):
        for _ in range(3000):
            gate.in_flight = gate.limit
            now += seconds(gate.in_flight) / gate.in_flight
            gate.answered()
            gate.took(seconds(gate.in_flight) / seconds(1))
            limits.append(gate.limit)
    settled = sorted(limits[1500:])
    assert least <= settled[len(settled) // 2] <= most


def test_a_server_that_serves_all_at_once_keeps_all(server: Server):
    server.answers = lambda request: Reply("True", latency=0.02 + 0.02 * (request.number % 3))
    lm_of(server, concurrency=32).complete(prompts(600))
    assert max(request.in_flight for request in server.requests[-200:]) >= 28


def test_slots_that_become_fewer(server: Server):
    many, one = Slots(16, 0.01), Slots(1, 0.01)
    server.answers = lambda request: (many if request.number < 100 else one)(request)
    completions = lm_of(server, timeout=0.2).complete(prompts(250))
    assert completions.usage.failed == 0
    assert server.count < 300


@pytest.mark.parametrize("refusal", [503, 429, 529])
def test_a_refusal_lowers_the_number_in_flight(server: Server, refusal: int):
    html = b"<html><body><h1>Service Unavailable</h1></body></html>"

    def answers(request: Request) -> Reply:
        return Reply(raw=html, status=refusal) if request.in_flight > 4 else Reply("True", latency=0.01)

    server.answers = answers
    completions = lm_of(server, concurrency=32).complete(prompts(300))
    assert completions.usage.failed == 0
    assert sum(request.in_flight > 4 for request in server.requests[-150:]) < 40


def away(server: Server, seconds: float) -> None:
    """The server is gone for so long; what was in flight is lost."""
    server.stop_listening()
    time.sleep(seconds)
    server.listen_again()


def test_a_server_that_restarts_is_waited_for(server: Server):
    started = threading.Event()

    def answers(request: Request) -> Reply:
        if request.number == 8:
            started.set()
        return Reply("True", latency=0.02)

    server.answers = answers
    restart = threading.Thread(target=lambda: started.wait(10) and away(server, 0.5))
    restart.start()
    # Refusals would be all used up by then: each row has one, of at most 20 ms.
    retry = RetryPolicy(faults=1, refusals=1, first_wait=0.01, longest_wait=0.02)
    completions = lm_of(server, retry=retry, concurrency=4).complete(prompts(40))
    restart.join()
    assert completions.usage.failed == 0


def test_a_model_that_is_being_loaded_is_waited_for(server: Server):
    loaded = time.monotonic() + 0.4
    server.answers = lambda request: "True" if time.monotonic() > loaded else error(503, "Loading model")
    retry = RetryPolicy(faults=1, refusals=1, first_wait=0.01, longest_wait=0.05)
    completions = lm_of(server, retry=retry).complete(prompts(40))
    assert completions.usage.failed == 0
    assert server.count < 40 + 40 + 40  # one asks, the others wait


@pytest.mark.parametrize("ill", [lambda server: error(503, "Loading model"), lambda server: gone(server)])
def test_the_wait_has_a_bound(server: Server, ill: Callable[[Server], Reply]):
    server.answers = lambda request: "True" if request.number < 5 else ill(server)
    retry = RetryPolicy(faults=1, first_wait=0.01, longest_wait=0.02, outage=0.2)
    completions = lm_of(server, retry=retry, concurrency=4).complete(prompts(400))
    assert 4 <= sum(completion.ok for completion in completions) <= 5
    kinds = {type(completion.error) for completion in completions if not completion.ok}
    assert kinds <= {errors.ServerFailed, errors.ConnectionFailed, errors.RunStopped}
    assert server.count < 200
    (first, *_) = (completion.error for completion in completions if not completion.ok)
    assert "outage" in str(first)


def gone(server: Server) -> Reply:
    server.stop_listening()
    return DROP


def test_one_row_that_a_server_always_refuses_with_503_fails_alone(server: Server):
    def answers(request: Request) -> Reply:
        return error(503) if request.prompt == "row 3" else Reply("True", latency=0.005)

    server.answers = answers
    retry = RetryPolicy(refusals=3, first_wait=0.002, longest_wait=0.005, outage=0.3)
    completions = lm_of(server, retry=retry, concurrency=8).complete(prompts(200))
    assert [i for i, completion in enumerate(completions) if not completion.ok] == [3]


def test_a_host_that_does_not_exist_fails_at_once():
    lm = LM("openai/test", api_base="http://no-such-host.invalid/v1", store=None, concurrency=4)
    completions = lm.complete(prompts(100))
    assert completions.usage.sent <= 4
    assert completions.usage.retried == 0
    assert isinstance(completions[0].error, errors.ConnectionFailed)
    assert "no-such-host.invalid" in str(completions[0].error)


def test_two_callers_with_one_slot(server: Server):
    """Each sees half of the server; neither knows of the other."""
    server.answers = Slots()
    results: list[int] = []

    def ask(name: str) -> None:
        lm = LM(f"openai/{name}", api_base=server.url, store=None, retry=QUICK, timeout=8 * EACH)
        results.append(lm.complete(prompts(30, name)).usage.failed)

    callers = [threading.Thread(target=ask, args=(name,)) for name in ("one", "two")]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert results == [0, 0]


@pytest.mark.parametrize("key", ["x", "t", "503"])
def test_a_short_key_hides_nothing(server: Server, key: str):
    server.answers = lambda request: error(400, "the request exceeds the available context size, try increasing it")
    completion = LM("openai/test", api_base=server.url, api_key=key, store=None).complete(prompts(1))[0]
    assert isinstance(completion.error, errors.ContextTooLong)
    assert "exceeds the available context size" in str(completion.error)


def test_a_key_is_struck_out_whole(server: Server):
    server.answers = lambda request: error(400, "key context-window-key: maximum context exceeded")
    lm = LM("openai/test", api_base=server.url, api_key="context-window-key", store=None)
    failed = lm.complete(prompts(1))[0].error
    assert isinstance(failed, errors.ContextTooLong)
    assert "key ***: maximum context" in str(failed)


def test_a_server_that_is_down_is_not_tried_anew_by_each_call(server: Server, monkeypatch: pytest.MonkeyPatch):
    """Calls of ten rows each, as of a pipeline in batches: too few for any of them to give up by itself."""
    up = False
    server.answers = lambda request: "True" if up else error(500)
    lm = lm_of(server, retry=RetryPolicy(faults=2, first_wait=0.001, longest_wait=0.002))

    def failed() -> set[type]:
        completions = lm.complete(prompts(10))
        return {type(completion.error) for completion in completions}

    assert failed() == {errors.ServerFailed}
    asked = server.count
    assert asked == 30
    assert failed() == {errors.RunStopped}
    assert server.count == asked  # it rests
    monkeypatch.setattr(pacing, "SECONDS_OF_REST", 0.0)
    assert failed() == {errors.RunStopped}  # what was found before still rests
    server_state(lm.transport.endpoint, lm.model).is_down(errors.ServerFailed("the server failed"))
    assert failed() == {errors.ServerFailed, errors.RunStopped}
    assert server.count == asked + 1  # one request looks whether it is back
    up = True
    assert failed() == {type(None)}
    assert server.count == asked + 11

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
from tagframe.lm.pacing import Answers, Sent, server_state

pytestmark = pytest.mark.slow

QUICK = RetryPolicy(first_wait=0.02, longest_wait=0.05)


def prompts(count: int, of: str = "row") -> list[Prompt]:
    return [Prompt.of(f"{of} {i}") for i in range(count)]


def lm_of(server: Server, **options: Any) -> LM:
    return LM("openai/test", api_base=server.url, store=None, **({"retry": QUICK} | options))


class Clock:
    """Seconds that go by only where a test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr("tagframe.lm.pacing.time.monotonic", lambda: self.now)


def test_the_time_in_a_servers_queue_is_not_a_requests_time(monkeypatch: pytest.MonkeyPatch):
    """Forty requests that a server answers one by one, a second each: none has a time of its own above a second."""
    clock = Clock(monkeypatch)
    answers = Answers()
    waiting = [Sent(0.0, ahead, 0) for ahead in range(40)]
    for clock.now in map(float, range(1, 41)):
        assert [clock.now - answers.turn_of(sent) for sent in waiting] == [1.0] * len(waiting)
        answers.add()
        del waiting[0]


def test_a_request_that_others_overtake_times_out(monkeypatch: pytest.MonkeyPatch):
    """It hangs while eight at a time are answered: its own time runs from when as many as were before it are done."""
    clock = Clock(monkeypatch)
    answers = Answers()
    hanging = Sent(0.0, 7, 0)
    for clock.now in map(float, range(1, 101)):
        answers.add()
        assert answers.turn_of(hanging) == min(clock.now, 7)
        assert answers.turn_of(Sent(clock.now, 7, answers.count)) == clock.now


@pytest.mark.parametrize("refusal", [503, 429])
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
    restart = threading.Thread(target=lambda: started.wait(60) and away(server, 0.5))
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
    retry = RetryPolicy(refusals=3, first_wait=0.002, longest_wait=0.005, outage=60)
    completions = lm_of(server, retry=retry, concurrency=8).complete(prompts(200))
    assert [i for i, completion in enumerate(completions) if not completion.ok] == [3]


def test_a_host_that_does_not_exist_fails_at_once():
    lm = LM("openai/test", api_base="http://no-such-host.invalid/v1", store=None, concurrency=4)
    completions = lm.complete(prompts(100))
    assert completions.usage.sent <= 4
    assert completions.usage.retried == 0
    assert isinstance(completions[0].error, errors.ConnectionFailed)
    assert "no-such-host.invalid" in str(completions[0].error)


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
    monkeypatch.setattr(pacing, "SECONDS_OF_REST", 600.0)
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

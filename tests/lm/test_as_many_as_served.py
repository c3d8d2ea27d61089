"""No more requests are in flight than a server serves, and a server that is away for a while is waited for."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from tag_bench.server import HANG, Reply, Request, Server, error
from tagframe import errors
from tagframe.lm import LM, Prompt, RetryPolicy

pytestmark = pytest.mark.slow

QUICK = RetryPolicy(first_wait=0.02, longest_wait=0.05)


def prompts(count: int, of: str = "row") -> list[Prompt]:
    return [Prompt.of(f"{of} {i}") for i in range(count)]


def lm_of(server: Server, **options: Any) -> LM:
    return LM("openai/test", api_base=server.url, store=None, **({"retry": QUICK} | options))


def test_a_timeout_lowers_the_number_in_flight(server: Server):
    """A server that answers one of many at a time: the others time out once or twice, and no row fails."""
    server.answers = lambda request: HANG if request.in_flight > 4 else "True"
    lm = lm_of(server, timeout=1.0, concurrency=32)
    assert lm.complete(prompts(200)).usage.failed == 0
    assert sum(request.in_flight > 4 for request in server.requests[-100:]) < 20


def test_a_request_that_others_overtake_times_out(server: Server):
    server.answers = lambda request: HANG if request.prompt == "row 3" else Reply("True", latency=0.04)
    lm = lm_of(server, timeout=1.5, retry=RetryPolicy(faults=0, refusals=0), concurrency=8)
    completions = lm.complete(prompts(400))
    assert [i for i, completion in enumerate(completions) if not completion.ok] == [3]


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
    retry = RetryPolicy(faults=1, refusals=12, first_wait=0.05, longest_wait=0.4)
    completions = lm_of(server, retry=retry, concurrency=4).complete(prompts(40))
    restart.join()
    assert completions.usage.failed == 0


def test_a_model_that_is_being_loaded_is_waited_for(server: Server):
    loaded = time.monotonic() + 0.4
    server.answers = lambda request: "True" if time.monotonic() > loaded else error(503, "Loading model")
    retry = RetryPolicy(faults=0, refusals=12, first_wait=0.05, longest_wait=0.4)
    assert lm_of(server, retry=retry).complete(prompts(40)).usage.failed == 0


def test_one_row_that_a_server_always_refuses_with_503_fails_alone(server: Server):
    def answers(request: Request) -> Reply:
        return error(503) if request.prompt == "row 3" else Reply("True", latency=0.005)

    server.answers = answers
    retry = RetryPolicy(refusals=3, first_wait=0.002, longest_wait=0.005)
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

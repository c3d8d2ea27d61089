"""What several calls ask at once is paid once."""

from __future__ import annotations

import asyncio
import copy
import threading
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from typing import Any

import pytest

from tag_bench.server import Reply, Request, Server
from tagframe.errors import AnswerRejected, BudgetExceeded, ServerFailed
from tagframe.lm import LM, Batch, Budget, Completions, Prompt
from tagframe.lm.reply import Reply as Answer
from tagframe.lm.run import Flight, InFlight


def rows(count: int) -> list[Prompt]:
    return [Prompt.of(f"row {i}") for i in range(count)]


def echo(request: Request) -> str:
    return request.prompt.upper()


def at_once(*calls: Callable[[], Completions[Any]]) -> list[Completions[Any]]:
    """What the calls return, each made in a thread of its own."""
    begin = threading.Barrier(len(calls))
    done: list[Any] = [None] * len(calls)

    def work(i: int) -> None:
        begin.wait()
        done[i] = calls[i]()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return done


@pytest.mark.slow
def test_twenty_threads_that_ask_the_same_pay_once(server: Server, lm: LM):
    server.answers = echo
    server.latency = 0.02
    done = at_once(*[lambda: lm.complete(rows(100), accept=str.lower)] * 20)
    assert server.count == 100
    for completions in done:
        assert [completion.value for completion in completions] == [f"row {i}" for i in range(100)]
        assert all(c.origin in ("sent", "duplicate", "store") for c in completions)
    assert sum(completions.usage.sent for completions in done) == 100
    assert sum(completions.usage.deduplicated + completions.usage.stored for completions in done) == 1900


def test_a_repair_is_shared_too(server: Server, lm: LM):
    def strict(text: str) -> str:
        if text != "True":
            raise AnswerRejected("answer True")
        return text

    server.answers = lambda request: "True" if len(request.messages) > 1 else "no"
    with ExitStack() as left:
        streams = [left.enter_context(lm.stream()) for _ in range(8)]
        for stream in streams:  # all are open before the first is answered
            stream.complete(Batch([Prompt.of("warm up")]))
        server.reset()
        done = at_once(*[lambda own=own: own.complete(Batch(rows(10), strict)) for own in streams])  # type: ignore[misc]
    assert server.count == 20
    assert all(completion.value == "True" for completions in done for completion in completions)


def test_each_call_keeps_its_answers_in_its_own_store(server: Server, lm: LM, tmp_path: Any):
    server.latency = 0.05
    stores = [lm.using(store=tmp_path / f"{i}.db") for i in range(3)]
    at_once(*[lambda own=own: own.complete(rows(5)) for own in stores])  # type: ignore[misc]
    for own in stores:
        assert own.complete(rows(5)).usage.stored == 5


def test_what_must_be_alike(server: Server, lm: LM):
    server.latency = 0.05
    at_once(
        lambda: lm.using(store=None).complete(rows(1), max_tokens=5),
        lambda: lm.using(store=None).complete(rows(1), max_tokens=50),
        lambda: patient(lm, 70).using(store=None).complete(rows(1), max_tokens=5),
        lambda: lm.using(store=None, rpm=600).complete(rows(1), max_tokens=5),
        lambda: lm.using(store=None).complete(rows(1), max_tokens=5, temperature=1.0),
        lambda: lm.using(store=None).complete([Prompt.of("row 0", sample=1)], max_tokens=5),
    )
    assert server.count == 3


def patient(lm: LM, timeout: float) -> LM:
    """The same model with another timeout."""
    changed = copy.copy(lm)
    changed.timeout = timeout
    return changed


def test_an_answer_that_one_call_rejects_stays_there_for_the_other(server: Server, lm: LM):
    def reject(text: str) -> str:
        raise AnswerRejected("no")

    server.latency = 0.05
    kept, rejected = at_once(lambda: lm.complete(rows(5)), lambda: lm.complete(rows(5), accept=reject))
    assert all(one.ok for one in kept)
    assert not any(one.ok for one in rejected)
    server.reset()
    assert lm.complete(rows(5)).usage.stored == 5
    assert server.count == 0


def test_a_call_that_asks_again_later_is_answered_anew(server: Server, lm: LM):
    unstored = lm.using(store=None)
    with unstored.stream():  # open all the while, and none of its business
        unstored.complete(rows(1))
        unstored.complete(rows(1))
    assert server.count == 2


def test_a_call_that_is_left_leaves_its_requests_to_others(server: Server, lm: LM):
    server.answers = lambda request: Reply("True", latency=0.5)

    async def both() -> Completions[str]:
        first = asyncio.create_task(lm.acomplete(rows(3)))
        while server.count < 3:
            await asyncio.sleep(0.005)
        second = asyncio.create_task(lm.acomplete(rows(3)))
        await asyncio.sleep(0.1)
        first.cancel()
        return await second

    assert all(one.ok for one in asyncio.run(both()))
    assert server.count == 3
    assert lm.complete(rows(3)).usage.stored == 3


def test_a_budget_is_only_ones_own(server: Server, lm: LM):
    server.latency = 0.05
    poor, rich = at_once(
        lambda: lm.using(budget=Budget(calls=1)).complete(rows(20)), lambda: lm.using(concurrency=2).complete(rows(20))
    )
    assert all(completion.ok for completion in rich)
    assert all(completion.ok or isinstance(completion.error, BudgetExceeded) for completion in poor)
    assert server.count == 20


# --- the flights themselves ---------------------------------------------------------------------------------------


async def landed(
    flights: InFlight, opened: int, ask: Callable[[], Awaitable[tuple[Answer, float]]], limit: int = 5
) -> Flight:
    flight, _ = await flights.share(("server", "model", b"key"), (limit,), opened, None, ask)
    flights.end(flight)
    return flight


@pytest.mark.parametrize("end", ["an answer", "a failure", "something else"])
def test_how_a_flight_ends_for_those_who_wait(end: str):
    async def play() -> tuple[list[Any], int]:
        flights, asked, go = InFlight(), 0, asyncio.Event()
        opened = [flights.open() for _ in range(3)]

        async def ask() -> tuple[Answer, float]:
            nonlocal asked
            asked += 1
            if asked > 1:
                return Answer("of the second"), 0.1
            await go.wait()
            if end == "a failure":
                raise ServerFailed("no", 500)
            if end == "something else":
                raise BudgetExceeded("no more")
            return Answer("of the first"), 0.1

        waiting = [asyncio.create_task(landed(flights, time, ask)) for time in opened]
        await asyncio.sleep(0)
        go.set()
        return await asyncio.gather(*waiting, return_exceptions=True), asked

    results, asked = asyncio.run(play())
    if end == "an answer":
        assert [one.reply.text for one in results] == ["of the first"] * 3
        assert asked == 1
    elif end == "a failure":
        assert [type(one) for one in results] == [ServerFailed] * 3
        assert len(set(map(id, results))) == 3  # each has its own, to which a traceback may be added
        assert asked == 1
    else:
        assert [getattr(one, "reply", None) and one.reply.text for one in results] == [None] + ["of the second"] * 2
        assert asked == 2


@pytest.mark.parametrize("end", ["cut off", "a failure"])
def test_what_ends_badly_by_other_rules_is_asked_anew(end: str):
    async def play() -> tuple[list[Flight], int]:
        flights, asked = InFlight(), 0
        opened = [flights.open() for _ in range(4)]

        async def ask() -> tuple[Answer, float]:
            nonlocal asked
            asked += 1
            await asyncio.sleep(0.01)
            if asked > 1:
                return Answer("whole"), 0.1
            if end == "a failure":
                raise ServerFailed("no", 500)
            return Answer("cu", truncated=True), 0.1

        waiting = [landed(flights, time, ask, limit) for time, limit in zip(opened, (5, 50, 50, 5), strict=True)]
        return await asyncio.gather(*waiting, return_exceptions=True), asked

    results, asked = asyncio.run(play())
    assert asked == 2
    assert [one.reply.text if isinstance(one, Flight) and one.reply else "failed" for one in results] == (
        ["failed", "whole", "whole", "failed"] if end == "a failure" else ["cu", "whole", "whole", "cu"]
    )


def test_what_has_landed_is_kept_for_calls_that_were_open_then():
    async def play() -> list[int]:
        flights, asked = InFlight(), []

        async def ask() -> tuple[Answer, float]:
            asked.append(1)
            return Answer("True"), 0.1

        async def share(opened: int) -> int:
            await landed(flights, opened, ask)
            return len(asked)

        first, second = flights.open(), flights.open()
        counts = [await share(first), await share(second)]  # 1, 1: the second was open when it landed
        third = flights.open()
        counts += [await share(third), await share(second)]  # 2, 2: the third was not, and its answer is newer
        counts.append(await share(flights.open()))  # 3: it was opened after all of them
        return counts

    assert asyncio.run(play()) == [1, 1, 2, 2, 3]

"""Budgets, rates, usage, quotes and the progress bar."""

from __future__ import annotations

import asyncio
import contextlib
import math
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import tagframe as tf
from tag_bench.server import Reply, Request, Server, error
from tagframe import config
from tagframe.errors import AnswerRejected, BudgetExceeded, InvalidArgument
from tagframe.lm import (
    LM,
    Budget,
    Price,
    Prompt,
    Quote,
    QuoteEnds,
    QuotingLM,
    RetryPolicy,
    Usage,
    get_lm,
    total_usage,
    usage,
)
from tagframe.lm.pacing import AdaptiveLimit, rates_of

pytestmark = pytest.mark.slow

ROWS = [Prompt.of(f"row {i}") for i in range(50)]


# --- budgets ------------------------------------------------------------------------------------------------------


def test_a_budget_of_calls_stops_before_the_call_that_would_pass_it(server: Server, lm: LM):
    budget = Budget(calls=20)
    completions = lm.using(budget=budget).complete(ROWS)
    assert server.count == 20
    assert [completion.ok for completion in completions] == [True] * 20 + [False] * 30
    assert isinstance(completions[20].error, BudgetExceeded)
    assert "20 of 20 calls spent" in str(completions[20].error)
    assert budget.left == {"calls": 0}
    assert budget.spent.calls == 20
    # What was answered is kept: the rest is all that a larger budget pays for.
    assert lm.using(budget=Budget(calls=30)).complete(ROWS).usage.failed == 0
    assert server.count == 50


def test_retries_and_repairs_draw_on_the_budget(server: Server, lm: LM):
    server.answers = [error(500), "no", "True"]

    def strict(text: str) -> str:
        if text != "True":
            raise AnswerRejected("say True")
        return text

    budget = Budget(calls=2)
    assert isinstance(lm.using(budget=budget).complete(ROWS[:1], accept=strict)[0].error, BudgetExceeded)
    assert server.count == 2


def test_a_budget_of_tokens_is_never_passed(server: Server, lm: LM):
    server.answers = lambda request: Reply("True", changes={"usage": {"prompt_tokens": 9, "completion_tokens": 3}})
    budget = Budget(tokens=300)
    completions = lm.using(budget=budget, concurrency=16).complete(ROWS, max_tokens=3)
    assert budget.spent.tokens == 12 * server.count <= 300
    assert budget.left["tokens"] < ROWS[0].most_tokens + 3 + 1  # it went as near as it could be sure to stay below
    assert sum(completion.ok for completion in completions) == server.count > 10


def test_dollars_need_a_price(server: Server, lm: LM):
    completion = lm.using(budget=1).complete(ROWS[:1])[0]
    assert isinstance(completion.error, BudgetExceeded)
    assert "price is unknown" in str(completion.error)
    assert server.count == 0


def as_long_as_allowed(request: Request) -> Reply:
    """An answer of all the tokens that it may have, of a server whose own limit is 10,000."""
    limit = request.body.get("max_completion_tokens") or request.body.get("max_tokens") or 10_000
    size = sum(len(message["content"]) for message in request.messages) + len(str(request.body.get("tools", "")))
    tokens = {"prompt_tokens": size, "completion_tokens": limit * request.body.get("n", 1)}
    return Reply("True", changes={"usage": tokens}, latency=0.005)


@pytest.mark.parametrize("max_tokens", [None, 8, 3000])
@pytest.mark.parametrize(
    "extra", [{}, {"max_tokens": 700}, {"max_completion_tokens": 900, "max_tokens": None}, {"n": 3, "tools": ["x" * 9]}]
)
@pytest.mark.parametrize("limit", [{"tokens": 50_000}, {"dollars": 0.05}])
def test_no_budget_is_overrun(server: Server, max_tokens: int | None, extra: dict[str, Any], limit: dict[str, float]):
    server.answers = as_long_as_allowed
    budget = Budget(**limit)  # type: ignore[arg-type]
    lm = LM("openai/test", api_base=server.url, price=Price(1e-7, 1e-6), extra_body=extra, budget=budget, store=None)
    completions = lm.complete([Prompt.of(f"row {i}") for i in range(300)], max_tokens=max_tokens)
    (name,) = limit
    assert getattr(budget.spent, name) <= limit[name]
    assert 0 < sum(completion.ok for completion in completions) == server.count
    assert {type(completion.error) for completion in completions} <= {type(None), BudgetExceeded}


def whatever_it_is_told(request: Request) -> Reply:
    """An answer of 16,000 tokens, which the server tells, although it is allowed a few."""
    return Reply("True", changes={"usage": {"prompt_tokens": 20, "completion_tokens": 16_000}}, latency=0.005)


@pytest.mark.parametrize("limit", [{"tokens": 50_000}, {"dollars": 0.05}])
def test_a_server_that_ignores_max_tokens_spends_a_budget_once(server: Server, limit: dict[str, float]):
    """The window of 64 requests is not opened before answers were seen; the long ones are then reserved for."""
    server.answers = whatever_it_is_told
    budget = Budget(**limit)  # type: ignore[arg-type]
    lm = LM("openai/test", api_base=server.url, price=Price(1e-7, 1e-6), budget=budget, store=None)
    completions = lm.complete([Prompt.of(f"row {i}") for i in range(300)], max_tokens=16)
    (name,) = limit
    assert getattr(budget.spent, name) <= limit[name]
    assert server.count == sum(completion.ok for completion in completions) == 3
    assert isinstance(completions[-1].error, BudgetExceeded)
    # What is known of the server holds for the next budget, too: there is no room for one such answer.
    assert not lm.using(budget=Budget(tokens=15_000)).complete(ROWS[:1], max_tokens=16)[0].ok
    assert server.count == 3


@pytest.mark.parametrize("tokens", [17_000, 28_500, 33_000, 50_000, 100_000])
@pytest.mark.parametrize("servers", [2, 3])
def test_servers_that_ignore_max_tokens_and_share_a_budget_do_not_pass_it(tokens: int, servers: int):
    budget = Budget(tokens=tokens)
    with contextlib.ExitStack() as stack:
        at = [stack.enter_context(Server(whatever_it_is_told)) for _ in range(servers)]
        lms = [LM("openai/test", api_base=one.url, budget=budget, store=None) for one in at]
        with ThreadPoolExecutor(servers) as pool:
            calls = [pool.submit(lm.complete, [Prompt.of(f"row {i}") for i in range(40)], max_tokens=16) for lm in lms]
        answered = sum(completion.ok for call in calls for completion in call.result())
        assert answered == sum(one.count for one in at)
    assert budget.spent.tokens <= tokens
    assert answered == tokens // 16_020, "and what it can pay is answered"


def test_a_server_that_begins_to_ignore_max_tokens_spends_no_more_than_its_window(server: Server):
    server.answers = lambda request: (
        Reply("True", changes={"usage": {"prompt_tokens": 20, "completion_tokens": 1}}, latency=0.005)
        if request.number < 3
        else whatever_it_is_told(request)
    )
    budget = Budget(dollars=0.01)
    lm = LM("openai/test", api_base=server.url, price=Price(1e-7, 1e-6), budget=budget, store=None)
    lm.complete([Prompt.of(f"row {i}") for i in range(300)], max_tokens=16)
    assert server.count <= 3 + 4, "four may go out together once three have come back as they should"


def test_the_window_grows_with_what_is_seen(server: Server):
    """A budget that could not pay one long answer holds nobody up for long."""
    counted = {"usage": {"prompt_tokens": 20, "completion_tokens": 1}}
    server.answers = lambda request: Reply("True", changes=counted, latency=0.1)
    lm = LM("openai/test", api_base=server.url, price=Price(1e-9, 1e-5), budget=Budget(dollars=0.1), store=None)
    completions = lm.complete([Prompt.of(f"row {i}") for i in range(200)], max_tokens=16)
    assert all(completion.ok for completion in completions)
    together = [request.in_flight for request in server.requests]
    assert together[0] == 1
    assert max(together) > 8
    assert all(number <= position + 1 for position, number in enumerate(together))


def test_a_budget_that_can_pay_long_answers_waits_for_none(server: Server):
    many = threading.Event()

    def answers(request: Request) -> Reply:
        if request.in_flight > 8:
            many.set()
        return Reply("True", after=many)

    server.answers = answers
    lm = LM("openai/test", api_base=server.url, price=Price(1e-7, 1e-6), budget=Budget(dollars=5.0), store=None)
    assert lm.complete([Prompt.of(f"row {i}") for i in range(40)], max_tokens=16).usage.failed == 0


def test_an_answer_that_is_too_long_and_not_counted_is_paid_by_its_length(server: Server):
    server.answers = lambda request: Reply("True " * 4000, changes={"usage": None})
    budget = Budget(tokens=1_000_000)
    LM("openai/test", api_base=server.url, budget=budget, store=None).complete(ROWS[:1], max_tokens=16)
    assert budget.spent.tokens > 4000


def test_what_the_server_does_not_count_is_paid_in_full(server: Server, lm: LM):
    server.answers = lambda request: Reply("True", changes={"usage": None})
    budget = Budget(tokens=1000)
    lm.using(budget=budget).complete(ROWS[:1], max_tokens=100)
    assert budget.spent.tokens == ROWS[0].most_tokens + 100


@pytest.mark.parametrize("tokens", [{"prompt_tokens": 10**15}, {"completion_tokens": 10**400}])
def test_a_count_that_is_impossible_spends_no_budget(server: Server, tokens: dict[str, int]):
    counted = {"prompt_tokens": 9, "completion_tokens": 1}
    server.answers = lambda request: Reply("True", changes={"usage": counted | (tokens if request.number == 3 else {})})
    budget = Budget(tokens=20_000)
    lm = LM("openai/test", api_base=server.url, budget=budget, store=None, price=Price(1e-6, 1e-6), concurrency=2)
    assert all(completion.ok for completion in lm.complete(ROWS, max_tokens=8))
    # What is not known is paid in full, as where the server counts nothing.
    assert budget.spent.tokens == 49 * 10 + ROWS[3].most_tokens + 8
    later = lm.using(budget=Budget(tokens=1000)).complete([Prompt.of("a later call")], max_tokens=8)
    assert later[0].ok


def test_a_number_in_the_settings_is_one_account(server: Server):
    lm = LM("openai/test", api_base=server.url, price=Price(0.0, 0.1))
    server.answers = lambda request: Reply("True", changes={"usage": {"prompt_tokens": 8, "completion_tokens": 1}})
    with tf.context(budget=0.51):
        done = [lm.complete(ROWS[i : i + 1], max_tokens=1)[0].ok for i in range(8)]
    assert done == [True] * 5 + [False] * 3
    assert lm.using(budget=0.11).complete(ROWS[10:13], max_tokens=1).usage.failed == 2  # an account of this object's


@pytest.fixture
def unconfigured() -> Iterator[None]:
    config.forget()
    yield
    config.forget()


@pytest.mark.usefixtures("unconfigured")
def test_a_number_means_the_same_wherever_it_is_given(server: Server):
    lm = LM("openai/test", api_base=server.url, price=Price(0.0, 0.1), store=None)
    server.answers = lambda request: Reply("True", changes={"usage": {"prompt_tokens": 8, "completion_tokens": 1}})

    def answered(**settings: float) -> int:
        with tf.context(lm=lm):
            return sum(get_lm(**settings).complete(ROWS[i : i + 1], max_tokens=1)[0].ok for i in range(4))

    assert answered() == 4
    for _ in range(2):  # an account is opened where the number is given, and again where it is given again
        tf.configure(budget=0.21)
        assert answered() == 2
        assert answered() == 0
        with tf.context(budget=0.21):
            assert answered() == 2
            assert answered() == 0
            with tf.context(budget=None):
                assert answered() == 4
        with tf.context(lm=lm):
            whole = get_lm(budget=0.21).complete(ROWS[:4], max_tokens=1)
            assert [completion.ok for completion in whole] == [True, True, False, False]
    assert tf.config.current().budget == 0.21


def test_answers_from_the_store_cost_no_budget(server: Server, lm: LM):
    lm.complete(ROWS)
    assert lm.using(budget=Budget(calls=0)).complete(ROWS).usage.failed == 0


@pytest.mark.parametrize("arguments", [{}, {"calls": -1}, {"dollars": math.nan}, {"tokens": "many"}])
def test_a_budget_that_is_none(arguments: dict[str, object]):
    with pytest.raises(InvalidArgument):
        Budget(**arguments)  # type: ignore[arg-type]


def test_a_setting_that_is_no_budget(lm: LM):
    with pytest.raises(InvalidArgument, match="number of dollars"):
        lm.using(budget="a lot")


# --- rates --------------------------------------------------------------------------------------------------------


def test_requests_per_minute(server: Server):
    lm = LM("openai/test", api_base=server.url, rpm=1200)
    start = asyncio.run(_timed(lm.acomplete(ROWS[:25])))
    assert start >= 0.2  # 20 a second: 5 of the 25 must wait, whatever the machine does
    assert server.count == 25


def test_tokens_per_minute(server: Server):
    lm = LM("openai/test", api_base=server.url, tpm=60_000)
    counted = {"prompt_tokens": ROWS[0].tokens, "completion_tokens": 20}
    server.answers = lambda request: Reply("True", changes={"usage": counted})
    tokens = sum(prompt.tokens + 20 for prompt in ROWS)
    assert asyncio.run(_timed(lm.acomplete(ROWS, max_tokens=20))) >= tokens / 1000 - 1.01


def test_a_prompt_larger_than_a_seconds_tokens(server: Server):
    lm = LM("openai/test", api_base=server.url, tpm=600_000)
    assert lm.complete([Prompt.of("x" * 40_000)], max_tokens=1)[0].ok


async def _timed(waiting: object) -> float:
    loop = asyncio.get_running_loop()
    start = loop.time()
    await waiting  # type: ignore[misc]
    return loop.time() - start


def test_calls_with_the_same_rate_share_it(server: Server, lm: LM):
    async def both() -> None:
        with tf.context(rpm=1200):
            await asyncio.gather(lm.acomplete(ROWS[:15]), lm.acomplete(ROWS[15:30]))

    assert asyncio.run(_timed(both())) >= 0.45  # 20 a second: 10 of the 30 must wait
    assert rates_of("there", "model", 60, None) is rates_of("there", "model", 60, None)
    assert rates_of("there", "model", None, None) is None


def test_the_adaptive_limit_halves_and_grows():
    limit = AdaptiveLimit()
    assert limit.limit == 1
    with limit.serving(64):
        assert limit.limit == 64
        limit.in_flight = 64
        limit.refused(sent_at=1e12)
        assert limit.limit == 32
        limit.refused(sent_at=0)  # it went out before the cut
        assert limit.limit == 32
        for _ in range(33):
            limit.answered()
        assert limit.limit == 33
        with limit.serving(8):
            assert limit.limit == 33  # a smaller call takes nothing from a larger one
        limit.in_flight = 3
        for _ in range(10_000):
            limit.answered()
        assert limit.limit == 33  # with so few in flight, nothing was learned
        limit.in_flight = 64
        for _ in range(10_000):
            limit.answered()
        assert limit.limit == 64
    with limit.serving(8):
        assert limit.limit == 8


# --- usage --------------------------------------------------------------------------------------------------------


def test_usage_of_a_call_and_of_the_process(server: Server, lm: LM):
    before = total_usage()
    lm.complete([*ROWS, ROWS[0]], description="sem_filter")
    lm.complete(ROWS, description="sem_filter again")
    frame = usage()
    assert list(frame["call"].iloc[-2:]) == ["sem_filter", "sem_filter again"]
    first, second = frame.iloc[-2], frame.iloc[-1]
    assert (first["prompts"], first["sent"], first["deduplicated"], first["stored"]) == (51, 50, 1, 0)
    assert (second["prompts"], second["sent"], second["stored"], second["dollars"]) == (50, 0, 50, 0)
    assert pd.isna(first["dollars"])
    assert first["tokens_in"] > 0
    assert first["seconds"] > 0
    assert frame["model"].iloc[-1] == "openai/test"
    now = total_usage()
    assert (now.prompts - before.prompts, now.sent - before.sent, now.stored - before.stored) == (101, 50, 50)


def test_usage_of_a_block_leaves_out_other_threads_and_tasks(server: Server, lm: LM):
    lm.complete(ROWS[:3])
    with usage() as outer:
        with usage() as used:
            thread = threading.Thread(target=lambda: lm.complete(ROWS[10:17], description="beside"))
            thread.start()
            lm.complete([*ROWS[:5], ROWS[0]], description="inside")
            thread.join()
        lm.complete(ROWS[20:22], description="later")
    lm.complete(ROWS[30:32])
    assert used.frame()[["call", "prompts", "sent", "stored"]].to_numpy().tolist() == [["inside", 6, 2, 3]]
    assert (used.total.sent, used.total.deduplicated) == (2, 1)
    assert str(used).startswith("6 prompts: 2 sent")
    assert outer.frame()["call"].tolist() == ["inside", "later"]

    async def block(rows: list[Prompt]) -> int:
        with usage() as mine:
            await asyncio.gather(lm.acomplete(rows), lm.acomplete(rows[:1]))
            return mine.total.prompts

    async def two() -> list[int]:
        return list(await asyncio.gather(block(ROWS[33:40]), block(ROWS[40:42])))

    assert asyncio.run(two()) == [8, 3]


def test_dollars_by_litellms_table(server: Server):
    lm = LM("openai/gpt-4o-mini", api_base=server.url)
    server.answers = lambda request: Reply("True", changes={"usage": {"prompt_tokens": 1000, "completion_tokens": 10}})
    assert lm.complete(ROWS[:2]).usage.dollars == pytest.approx(2 * (1000 * 0.15e-6 + 10 * 0.6e-6))


def test_adding_usages():
    one = Usage(prompts=1, sent=2, dollars=0.5, seconds=1.0)
    assert one + one == Usage(prompts=2, sent=4, dollars=1.0, seconds=2.0)
    assert (one + Usage(prompts=1, dollars=None)).dollars is None
    assert str(one) == "1 prompt: 2 sent; 0 tokens in, 0 out, $0.5000, 1.0 s"
    assert "unknown" in str(Usage(dollars=None))


# --- quotes -------------------------------------------------------------------------------------------------------


def test_a_quote_sends_nothing_and_says_what_would_be_sent(server: Server):
    lm = LM("openai/gpt-4o-mini", api_base=server.url, concurrency=10)
    lm.complete(ROWS[:20], max_tokens=5)
    sent = server.count
    quoting = QuotingLM(lm)
    with pytest.raises(QuoteEnds):
        quoting.complete([*ROWS, ROWS[49]], max_tokens=5)
    quote = quoting.quote
    assert server.count == sent
    assert (quote.rows, quote.calls, quote.deduplicated, quote.stored) == (51, 30, 1, 20)
    assert quote.tokens_in == sum(prompt.tokens for prompt in ROWS[20:])
    assert quote.tokens_out == 30 * 2  # as the stored answers
    assert quote.dollars == pytest.approx(quote.tokens_in * 0.15e-6 + quote.tokens_out * 0.6e-6)
    assert quote.seconds > 0
    assert not quote.whole
    assert str(quote).startswith("at least 30 calls, in the worst case 60, for 51 prompts (1 duplicate, 20 stored)")


def test_a_quote_of_seconds_knows_the_rate(server: Server):
    lm = LM("openai/test", api_base=server.url, concurrency=10, retry=RetryPolicy(first_wait=0.01))
    server.answers = lambda request: error(429) if request.in_flight > 2 else Reply("True", latency=0.02)
    quoted, limited = QuotingLM(lm, guess=lambda prompt: "True"), QuotingLM(lm, guess=lambda prompt: "True")
    quoted.complete(ROWS)
    assert quoted.quote.seconds == 5
    lm.using(store=None).complete(ROWS)
    limited.complete(ROWS)
    assert limited.quote.seconds >= 50 / 3
    at_most = QuotingLM(lm.using(rpm=30), guess=lambda prompt: "True")
    at_most.complete(ROWS)
    assert at_most.quote.seconds == 100


def test_a_quote_of_several_rounds(server: Server, lm: LM):
    quoting = QuotingLM(lm, guess=lambda prompt: "True")
    with tf.context(lm=quoting):
        from tagframe.lm import get_lm

        for rows in (ROWS[:30], ROWS[:10]):
            assert [completion.value for completion in get_lm(concurrency=4).complete(rows)] == ["True"] * len(rows)
        assert asyncio.run(get_lm().acomplete(ROWS[:1]))[0].value == "True"
    assert (quoting.quote.calls, quoting.quote.whole, quoting.quote.dollars) == (41, True, None)
    assert "unknown" in str(quoting.quote)
    assert server.count == 0


def test_a_guess_that_accept_rejects_ends_the_quote(lm: LM):
    with pytest.raises(QuoteEnds, match="acceptable guess"):
        QuotingLM(lm, guess=lambda prompt: "x").complete(ROWS[:1], accept=int)
    with pytest.raises(QuoteEnds, match="acceptable guess"):
        asyncio.run(QuotingLM(lm, guess=lambda prompt: "x").acomplete(ROWS[:1], accept=int))


def test_a_quote_that_the_store_answers_is_free(server: Server, lm: LM):
    lm.complete(ROWS)
    quoting = QuotingLM(lm)
    assert quoting.complete(ROWS)[3].text == "True"
    assert quoting.quote == Quote(rows=50, stored=50)


def test_a_quote_of_a_replay_counts_the_misses(tmp_path: Path):
    quoting = QuotingLM(LM(f"replay:{tmp_path / 'store.db'}"))
    with pytest.raises(QuoteEnds):
        quoting.complete(ROWS)
    assert quoting.quote.calls == 50


# --- progress -----------------------------------------------------------------------------------------------------


def test_a_bar_with_rows_rate_and_dollars(server: Server, capsys: pytest.CaptureFixture[str]):
    lm = LM("openai/gpt-4o-mini", api_base=server.url, progress=True)
    lm.complete([*ROWS, ROWS[0]], description="sem_filter")
    written = capsys.readouterr()
    assert written.out == ""
    assert "sem_filter" in written.err
    assert "50/50" in written.err
    assert re.search(r"row(s?)/s|s/row|row/s", written.err)
    assert "$0.00" in written.err


def test_a_bar_with_failures_ends_red(server: Server, capsys: pytest.CaptureFixture[str]):
    lm = LM("openai/gpt-4o-mini", api_base=server.url, progress=True)
    red = "\x1b[31m"
    lm.complete(ROWS)
    assert red not in capsys.readouterr().err

    def accept(text: str) -> str:
        raise AnswerRejected("no")

    lm.complete(ROWS[:2], accept=accept, temperature=0.5)
    written = capsys.readouterr().err
    assert red in written
    assert "2 failed" in written
    claims = pd.DataFrame({"title": [f"film {i}" for i in range(40)]})
    with tf.context(lm=lm):
        claims.tag.sem_filter("{title} is a film", rows_per_call=1)
    assert red not in capsys.readouterr().err


@pytest.mark.parametrize("progress", [False, None])
def test_no_bar(lm: LM, capsys: pytest.CaptureFixture[str], progress: bool | None):
    lm.using(progress=progress).complete(ROWS)  # standard error is no terminal here
    assert capsys.readouterr().err == ""

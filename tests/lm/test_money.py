"""What providers bill is what is counted, by the usage that each of them sends; and runs end where money does."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

import tagframe as tf
from tag_bench.server import NULL, Reply, Server, error
from tagframe import LM, Price, Prompt
from tagframe.errors import AuthenticationFailed, ContentFiltered, LMRequestFailed, QuotaExhausted
from tagframe.lm.model import TransportName
from tagframe.lm.reply import Billed, billed
from tests.lm.conftest import FAST

# The forms as the providers document them; the tokens in, of which cached and written, and out that are billed.
FORMS: dict[str, tuple[dict[str, Any], Billed]] = {
    "OpenAI": (
        {
            "prompt_tokens": 2006, "completion_tokens": 300, "total_tokens": 2306,
            "prompt_tokens_details": {"cached_tokens": 1920, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 256, "accepted_prediction_tokens": 0},
        },
        Billed(2006, 300, 1920),
    ),
    "OpenAI's Responses": (
        {
            "input_tokens": 75, "input_tokens_details": {"cached_tokens": 64}, "output_tokens": 1186,
            "output_tokens_details": {"reasoning_tokens": 1024}, "total_tokens": 1261,
        },
        Billed(75, 1186, 64),
    ),
    "xAI": (
        {
            "prompt_tokens": 279, "completion_tokens": 6, "total_tokens": 3285,
            "prompt_tokens_details": {"text_tokens": 279, "cached_tokens": 163},
            "completion_tokens_details": {"reasoning_tokens": 3000},
        },
        Billed(279, 3006, 163),
    ),
    "reasoning beside, and no total": (
        {"prompt_tokens": 279, "completion_tokens": 6, "completion_tokens_details": {"reasoning_tokens": 3000}},
        Billed(279, 3006),
    ),
    "Gemini behind OpenAI's form": (
        {"prompt_tokens": 12, "completion_tokens": 2, "total_tokens": 914},
        Billed(12, 902),
    ),
    "Gemini": (
        {
            "promptTokenCount": 1000, "candidatesTokenCount": 7, "thoughtsTokenCount": 90, "totalTokenCount": 1097,
            "cachedContentTokenCount": 800,
        },
        Billed(1000, 97, 800),
    ),
    "DeepSeek": (
        {
            "prompt_tokens": 1200, "completion_tokens": 50, "total_tokens": 1250,
            "prompt_cache_hit_tokens": 1152, "prompt_cache_miss_tokens": 48,
            "completion_tokens_details": {"reasoning_tokens": 40},
        },
        Billed(1200, 50, 1152),
    ),
    "Anthropic": (
        {
            "input_tokens": 50, "cache_creation_input_tokens": 248, "cache_read_input_tokens": 1800,
            "output_tokens": 503,
        },
        Billed(2098, 503, 1800, 248),
    ),
    "Anthropic by litellm": (
        {
            "prompt_tokens": 2098, "completion_tokens": 503, "total_tokens": 2601,
            "prompt_tokens_details": {"cached_tokens": 1800}, "cache_creation_input_tokens": 248,
            "cache_read_input_tokens": 1800,
        },
        Billed(2098, 503, 1800, 248),
    ),
    "Anthropic by a gateway that renames": (
        {
            "prompt_tokens": 50, "completion_tokens": 503, "total_tokens": 553, "cache_read_input_tokens": 1800,
            "cache_creation_input_tokens": 248,
        },
        Billed(2098, 503, 1800, 248),
    ),
    "Bedrock": (
        {
            "inputTokens": 11, "outputTokens": 5, "totalTokens": 1316, "cacheReadInputTokens": 1300,
            "cacheWriteInputTokens": 0,
        },
        Billed(1311, 5, 1300),
    ),
    "Groq": (
        {"prompt_tokens": 18, "completion_tokens": 556, "total_tokens": 574, "queue_time": 0.03, "total_time": 0.46},
        Billed(18, 556),
    ),
    "Cohere": (
        {
            "billed_units": {"input_tokens": 5, "output_tokens": 418},
            "tokens": {"input_tokens": 71, "output_tokens": 420},
        },
        Billed(5, 418),
    ),
    "OpenRouter": (
        {
            "prompt_tokens": 194, "completion_tokens": 2, "total_tokens": 196, "cost": 0.0095, "is_byok": False,
            "cost_details": {"upstream_inference_cost": 0.0095}, "prompt_tokens_details": {"cached_tokens": 100},
        },
        Billed(194, 2, 100, dollars=0.0095),
    ),
    "OpenRouter with a key of the user's own": (
        {
            "prompt_tokens": 194, "completion_tokens": 2, "total_tokens": 196, "cost": 0.0005,
            "cost_details": {"upstream_inference_cost": 0.01},
        },
        Billed(194, 2, dollars=0.0105),
    ),
    "Perplexity": (
        {
            "prompt_tokens": 14, "completion_tokens": 378, "total_tokens": 392,
            "cost": {"input_tokens_cost": 0.000014, "output_tokens_cost": 0.000378, "total_cost": 0.005392},
        },
        Billed(14, 378, dollars=0.005392),
    ),
    "DeepInfra": (
        {"prompt_tokens": 15, "completion_tokens": 16, "total_tokens": 31, "estimated_cost": 0.0000268},
        Billed(15, 16, dollars=0.0000268),
    ),
    "xAI with its cost": (
        {"prompt_tokens": 279, "completion_tokens": 6, "total_tokens": 3285, "cost_in_usd_ticks": 37756000},
        Billed(279, 3006, dollars=0.0037756),
    ),
    "costs nothing": ({"prompt_tokens": 5, "completion_tokens": 1, "cost": 0}, Billed(5, 1, dollars=0.0)),
    "a cost as a text": ({"prompt_tokens": 5, "completion_tokens": 1, "cost": "0.0025"}, Billed(5, 1, dollars=0.0025)),
    "a cost that is none": ({"prompt_tokens": 5, "completion_tokens": 1, "cost": -1}, Billed(5, 1)),
    "a cost that cannot be": ({"prompt_tokens": 5, "completion_tokens": 1, "cost": 2500.0}, Billed(5, 1)),
    "whole numbers with a point": (
        {"prompt_tokens": 12.0, "completion_tokens": 3.0, "total_tokens": 15.0, "cost": None}, Billed(12, 3)
    ),
    "all of it cached": ({"input_tokens": 0, "cache_read_input_tokens": 9, "output_tokens": 1}, Billed(9, 1, 9)),
    "a total that is too low": ({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 3}, Billed(10, 5)),
    "more cached than there are": (
        {"prompt_tokens": 10, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 99}},
        Billed(10, 1, 10),
    ),
    "no numbers": ({"prompt_tokens": "many", "completion_tokens": True, "total_tokens": None}, Billed()),
    "texts": ({"prompt_tokens": "1000", "completion_tokens": "3000", "total_tokens": "4000"}, Billed(1000, 3000)),
    "some texts": (
        {"prompt_tokens": 10, "completion_tokens": "5", "completion_tokens_details": {"reasoning_tokens": "30"}},
        Billed(10, 35),
    ),
    "a prompt of nothing": ({"prompt_tokens": 0, "completion_tokens": 5, "total_tokens": 5}, Billed(None, 5)),
    "only a total": ({"prompt_tokens": None, "total_tokens": 4000}, Billed(total=4000)),
}  # fmt: skip
PRICE = Price(3e-6, 15e-6, cached=3e-7, written=3.75e-6)


@pytest.mark.parametrize("form", FORMS)
def test_a_providers_usage(form: str):
    usage, right = FORMS[form]
    assert billed(usage) == right


UNCLEAR = ("no numbers", "a prompt of nothing", "only a total", "Cohere")
"""What leaves something open, and Cohere's own units."""


@pytest.mark.parametrize("form", [form for form in FORMS if form not in UNCLEAR])
def test_dollars_and_budgets_are_what_is_billed(form: str):
    usage, tokens = FORMS[form]
    fresh = (tokens.tokens_in or 0) - tokens.cached - tokens.written
    each = fresh * 3e-6 + tokens.cached * 3e-7 + tokens.written * 3.75e-6 + (tokens.tokens_out or 0) * 15e-6
    each = each if tokens.dollars is None else tokens.dollars
    with Server(lambda request: Reply("True", changes={"usage": usage})) as server:
        lm = LM("openai/test", api_base=server.url, price=PRICE, store=None)
        used = lm.complete([Prompt.of(f"row {number}") for number in range(10)]).usage
        assert used.dollars == pytest.approx(10 * each)
        assert used.tokens_cached == 10 * tokens.cached
        assert used.dollars_saved == pytest.approx(10 * tokens.cached * 2.7e-6)
        budget = tf.Budget(dollars=3.5 * each + 0.001)
        lm.using(budget=budget, concurrency=1).complete([Prompt.of(f"other {number}") for number in range(40)])
        assert budget.spent.dollars == pytest.approx(each * (server.count - 10))


@pytest.mark.parametrize("transport", ["http", "litellm"])
def test_dollars_that_a_provider_states_count_where_no_price_is_known(transport: TransportName):
    usage = FORMS["OpenRouter with a key of the user's own"][0]
    with Server(lambda request: Reply("True", changes={"usage": usage})) as server:
        lm = LM("openai/test", api_base=server.url, api_key="secret-key", transport=transport, store=None)
        used = lm.complete([Prompt.of(f"row {number}") for number in range(10)]).usage
    assert used.dollars == pytest.approx(10 * 0.0105)


def test_a_budget_counts_stated_dollars_where_tokens_are_not_given():
    budget = tf.Budget(dollars=1.0)
    with Server(lambda request: Reply("True", changes={"usage": {"cost": 0.25}})) as server:
        lm = LM("openai/test", api_base=server.url, price=PRICE, store=None, budget=budget, concurrency=1)
        lm.complete([Prompt.of(f"row {number}") for number in range(40)])
        assert budget.spent.dollars == 0.25 * server.count == 1.0


def test_a_total_is_the_prompt_by_its_length_and_the_rest():
    with Server(lambda request: Reply("True", changes={"usage": {"total_tokens": 4000}})) as server:
        lm = LM("openai/test", api_base=server.url, price=PRICE, store=None)
        used = lm.complete([Prompt.of("row " * 30)]).usage
    assert used.tokens_in == Prompt.of("row " * 30).tokens
    assert used.tokens_in + used.tokens_out == 4000


@pytest.mark.parametrize("raw", [b"<html>login</html>", b'{"hello": 1}', b'{"choices": []}', b"", b"data: {\n\n"])
def test_what_cannot_be_read_is_said_to_cost_its_prompt(raw: bytes):
    with Server(lambda request: Reply(raw=raw)) as server:
        lm = LM("openai/test", api_base=server.url, price=PRICE, store=None, retry=FAST)
        (one,) = done = lm.complete([Prompt.of("row")])
        assert not one.ok
        assert done.usage.tokens_in == server.count * Prompt.of("row").tokens
        assert done.usage.dollars == pytest.approx(done.usage.tokens_in * PRICE.tokens_in)


def test_the_summary_names_what_the_cache_saved():
    usage = FORMS["OpenAI"][0]
    rows = pd.DataFrame({"city": ["Oslo", "Rome"]})
    with Server(lambda request: Reply("True", changes={"usage": usage})) as server:
        lm = LM("openai/gpt-4o-mini", api_base=server.url, store=None)
        summary = rows.tag.sem_filter("{city} is large", lm=lm).tag.summary
    assert summary["tokens_cached"] == 2 * 1920
    assert summary["dollars"] == pytest.approx(2 * (86 * 0.15 + 1920 * 0.075 + 300 * 0.6) / 1e6)
    assert summary["dollars_saved"] == pytest.approx(2 * 1920 * 0.075 / 1e6)


UNUSABLE = {
    "no text": NULL,
    "blanks": Reply(" \n "),
    "a broken end": Reply("The", finish_reason="error"),
    "filtered": Reply("The", finish_reason="content_filter"),
    "no choices": Reply(changes={"choices": []}),
}


@pytest.mark.parametrize("kind", UNUSABLE)
def test_an_unusable_reply_is_paid_for(kind: str):
    usage = {"prompt_tokens": 800, "completion_tokens": 16000, "total_tokens": 16800}
    reply = Reply(**{**UNUSABLE[kind].__dict__, "changes": {**UNUSABLE[kind].changes, "usage": usage}})
    with Server(lambda request: reply) as server:
        budget = tf.Budget(dollars=1.0)
        lm = LM("openai/test", api_base=server.url, price=Price(1e-6, 10e-6), retry=FAST, store=None, budget=budget)
        used = lm.complete([Prompt.of("a")]).usage
        assert used.dollars == pytest.approx(server.count * (800e-6 + 0.16))
        assert budget.spent.dollars == pytest.approx(used.dollars)


PAGE = Reply(raw=b"<!DOCTYPE html><html>Sign in</html>")
ENDLESS_UNUSABLE = {
    "no text": NULL,
    "a page": PAGE,
    "another form": Reply(raw=b'{"output": "True"}'),
    "an empty body": Reply(raw=b""),
    "a list": Reply(raw=b"[]"),
    "no choices": Reply(changes={"choices": []}),
    "a broken end": Reply("x", finish_reason="error"),
    "an error in the body": Reply(changes={"error": {"message": "overloaded", "code": 500}}),
    "half a stream": Reply(raw=b'data: {"choices":[{"index":0,"delta":{"content":"T"}}]}\n\n'),
    "a stream of no text": Reply(raw=b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'),
}


@pytest.mark.parametrize("kind", ENDLESS_UNUSABLE)
def test_replies_that_are_all_unusable_stop_the_run(kind: str):
    rows = pd.DataFrame({"city": [f"city {number}" for number in range(600)]})
    with Server(lambda request: ENDLESS_UNUSABLE[kind]) as server:
        lm = LM("openai/test", api_base=server.url, retry=FAST, store=None)
        with pytest.raises(tf.errors.RowsFailed):
            rows.tag.sem_filter("{city} is large", lm=lm)
        assert server.count < 300


NO_MONEY = {
    "DeepSeek": (402, "Insufficient Balance"),
    "OpenRouter": (402, "This request requires more credits, or fewer max_tokens"),
    "OpenRouter's key": (403, "Key limit exceeded (total limit). Manage it using https://openrouter.ai/settings/keys"),
    "Anthropic": (400, "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing"),
    "OpenAI": (
        429,
        "You exceeded your current quota, please check your plan and billing details. (insufficient_quota)",
    ),
    "OpenAI's limit": (400, "Billing hard limit has been reached"),
    "xAI": (403, "Your team has either used all available credits or reached its monthly spending limit."),
    "DashScope": (400, "Access denied, please make sure your account is in good standing. (Arrearage)"),
    "Moonshot": (429, "Your account is suspended, please check your plan (exceeded_current_quota_error)"),
    "Groq": (400, "Organization has been restricted: billing issue"),
    "xAI's 429": (429, "Your team has reached its monthly spending limit."),
    "Anthropic's 429": (429, "You have reached your specified API usage spend limit. Raise it in the console."),
    "OpenRouter's 429": (429, "Your credit balance is too low"),
    "LiteLLM's proxy": (429, "Budget limit exceeded: key spend 10.2 of 10"),
}


@pytest.mark.parametrize("who", NO_MONEY)
def test_an_account_without_money_ends_the_run(who: str):
    status, words = NO_MONEY[who]
    with Server(lambda request: error(status, words)) as server:
        completions = LM("openai/test", api_base=server.url, retry=FAST, store=None, concurrency=4).complete(
            [Prompt.of(f"row {number}") for number in range(300)]
        )
        assert server.count <= 4
    assert any(isinstance(one.error, QuotaExhausted) for one in completions)


@pytest.mark.parametrize(
    ("status", "words", "kind"),
    [
        (400, "API key not valid. Please pass a valid API key.", AuthenticationFailed),
        (403, "Your chosen model requires moderation and your input was flagged", ContentFiltered),
        (
            400,
            "The response was filtered due to the prompt triggering Azure's content management policy",
            ContentFiltered,
        ),
        (403, "Request blocked by the firewall", LMRequestFailed),
        (429, "Rate limit reached on tokens per minute: Limit 6000, Used 5034, Requested 1443. Try again in 4s", None),
        (429, "Insufficient GPU capacity at the moment, please retry in 1 second", None),
        (429, "You exceeded your current quota. Quota exceeded for metric: requests per minute, limit: 15", None),
        (429, "You have reached your usage limit of 20 requests per hour", None),
        (429, "Rate limit exceeded: tokens spent in this minute", None),
    ],
)
def test_what_is_no_want_of_money(status: int, words: str, kind: type[LMRequestFailed] | None):
    with Server(lambda request: error(status, words) if "bad" in request.prompt else "True") as server:
        lm = LM("openai/test", api_base=server.url, retry=FAST, store=None, concurrency=1)
        good, bad = lm.complete([Prompt.of("good"), Prompt.of("bad")])
    assert good.ok
    assert type(bad.error) is (kind or tf.errors.RateLimited)


@pytest.mark.parametrize("status", [400, 403])
@pytest.mark.parametrize(
    "words",
    [
        "Invalid value in messages[1].content: 'my payment failed twice'",
        "text contains an unsupported token near 'lost my api key'",
        "unexpected token in 'monthly limit'",
        "Request blocked: mention of credit card billing",
    ],
)
def test_a_refusal_that_repeats_its_row_ends_no_run_that_was_answered(status: int, words: str):
    rows = [Prompt.of(f"row {number}") for number in range(30)]
    with Server(lambda request: error(status, words) if request.prompt == "row 5" else "True") as server:
        completions = LM("openai/test", api_base=server.url, retry=FAST, store=None, concurrency=1).complete(rows)
    assert [number for number, one in enumerate(completions) if not one.ok] == [5]


@pytest.mark.parametrize("who", NO_MONEY)
def test_money_that_ends_in_the_middle_ends_the_run(who: str):
    status, words = NO_MONEY[who]
    rows = [Prompt.of(f"row {number}") for number in range(60)]
    with Server(lambda request: error(status, words) if request.number >= 10 else "True") as server:
        LM("openai/test", api_base=server.url, retry=FAST, store=None, concurrency=1).complete(rows)
        assert server.count == 11 + FAST.faults  # it may pass


@pytest.mark.parametrize(
    ("usage", "tokens", "dollars"),
    [
        ({"total_tokens": 57}, 57, 57 * 2e-6),  # which of them are the answer's is not known: the dearest
        ({"prompt_tokens": "1,050", "completion_tokens": "7.0"}, 1057, 1064e-6),
    ],
)
def test_what_a_budget_counts_of_odd_usages(usage: dict[str, object], tokens: int, dollars: float):
    budget = tf.Budget(dollars=1.0)
    with Server(lambda request: Reply("True", changes={"usage": usage})) as server:
        lm = LM("openai/test", api_base=server.url, price=Price(1e-6, 2e-6), budget=budget, store=None)
        assert lm.complete([Prompt.of("row")])[0].ok
    assert budget.spent == (1, tokens, pytest.approx(dollars))


@pytest.mark.parametrize("status", [307, 401, 402, 404])
def test_what_passes_ends_no_run_that_was_answered_and_what_does_not_ends_it(status: int):
    rows = [Prompt.of(f"row {number}") for number in range(400)]
    with Server(lambda request: error(status) if 20 <= request.number < 54 else "True", latency=0.002) as server:
        lm = LM("openai/test", api_base=server.url, retry=FAST, store=None, concurrency=32)
        assert all(one.ok for one in lm.complete(rows))
        server.answers = lambda request: error(status) if request.number >= 20 else "True"
        server.reset()
        stopped = lm.complete(rows)
        assert sum(one.ok for one in stopped) == 20
        assert server.count <= 20 + 32 * (1 + FAST.faults)


def test_a_refusal_of_every_row_ends_the_run_in_any_words():
    with Server(lambda request: error(403, "Not in your region")) as server:
        LM("openai/test", api_base=server.url, retry=FAST, store=None).complete(
            [Prompt.of(f"row {number}") for number in range(1000)]
        )
        assert server.count < 200

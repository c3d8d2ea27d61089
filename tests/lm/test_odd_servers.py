"""Servers that could answer, and refuse, break or answer otherwise: rows are answered, or fail with the way out."""

from __future__ import annotations

import email.utils
import json
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import tagframe as tf
from tag_bench import server as scripted
from tag_bench.server import Reply, Request, Server, error
from tagframe import LM, Prompt, RetryPolicy
from tagframe.errors import CutWarning, InvalidArgument, LMRequestFailed, ResponseTooLong
from tagframe.lm import pacing
from tagframe.lm.reply import failure, is_too_long, retry_after
from tests.lm.conftest import FAST
from tests.lm.raw_server import RawServer, response

CITIES = pd.DataFrame({"city": [f"city {number}" for number in range(20)]})
FORMS = ("response_format",)


def lm_at(url: str, name: str = "openai/test", **options: Any) -> LM:
    return LM(name, api_base=url, api_key="none", **{"retry": FAST, "store": None, **options})


def large(url: str, **options: Any) -> pd.DataFrame:
    return CITIES.tag.sem_filter("{city} is large", lm=lm_at(url), **options)


# --- forms, log probabilities, fields -----------------------------------------------------------------------------


def has_form(request: Request) -> bool:
    return any(name in request.body for name in FORMS)


WITH_A_FORM = {
    "no text": Reply(None),
    "the answer apart": Reply(
        changes={"choices": [{"index": 0, "message": {"content": None, "reasoning_content": "True"}}]}
    ),
    "blanks": Reply(" \n"),
    "endless blanks": Reply('{"answer": \n' + " \n" * 200, finish_reason="length"),
    "only blanks, cut": Reply("\t" * 300, finish_reason="length"),
    "endless braces": Reply("[" * 400, finish_reason="length"),
    "the same again and again": Reply('{"answer": "' + "and so on " * 60, finish_reason="length"),
    "refused": error(400, "response_format is not supported"),
    "refused as unknown": error(422, "Extra inputs are not permitted"),
    "broken by it": error(500, "failed to parse grammar"),
}


@pytest.mark.parametrize("kind", WITH_A_FORM)
def test_a_form_that_yields_no_answer_is_left_off(kind: str):
    with Server(lambda request: WITH_A_FORM[kind] if has_form(request) else "True") as server:
        assert len(large(server.url)) == 20
        assert server.count <= 40
        before = server.count
        assert len(CITIES.tag.sem_filter("{city} is old", lm=lm_at(server.url))) == 20
        assert server.count == before + 20, "it is remembered"


def test_the_advice_for_a_cut_form_names_the_way_out():
    with Server(lambda request: Reply("a b c d", finish_reason="length")) as server:
        lm = lm_at(server.url, structured="json_schema")
        server.answers = lambda request: "true" if "city 0" in request.prompt else Reply("a b", finish_reason="length")
        with pytest.raises(tf.errors.RowsFailed, match='structured="off"'):
            CITIES.tag.sem_filter("{city} is large", lm=lm)


BROKEN_BY_LOGPROBS = {
    "500": error(500, "internal error"),
    "501": error(501, "not implemented"),
    "named": error(400, "logprobs is not supported with this model"),
    "unnamed": error(400, "bad request"),
    "422": error(422, "unprocessable"),
    "no JSON": Reply(raw=b"Traceback (most recent call last)"),
    "NaN": Reply(raw=b"{nan"),
    "no choices": Reply(changes={"choices": []}),
    "no text": Reply(None),
    "an error within": Reply(changes={"error": {"code": 400, "message": "logprobs unsupported"}}),
}


@pytest.mark.parametrize("kind", BROKEN_BY_LOGPROBS)
def test_a_server_that_breaks_on_log_probabilities_is_asked_without(kind: str):
    with Server(lambda request: BROKEN_BY_LOGPROBS[kind] if request.body.get("logprobs") else "True") as server:
        result = large(server.url, return_all=True)
        assert result["filter_label"].all()
        assert result["filter_confidence"].isna().all()
        before = server.count
        CITIES.tag.sem_filter("{city} is old", lm=lm_at(server.url), return_all=True)
        assert server.count == before + 20, "it is remembered"


def test_a_fault_that_passes_costs_no_confidence_of_others():
    with Server(lambda request: error(500) if request.number == 7 else "True") as server:
        lm = lm_at(server.url, concurrency=1)
        result = CITIES.tag.sem_filter("{city} is large", lm=lm, return_all=True)
        assert result["filter_confidence"].notna().sum() >= 19


ODD_LOGPROBS = [-9999.0, -3.4e38, float("-inf"), float("nan"), "-", None, 1e6]


@pytest.mark.parametrize("number", ODD_LOGPROBS)
def test_an_odd_log_probability_is_an_unknown_confidence(number: Any, tmp_path: Path):
    tokens = [{"token": "True", "logprob": number, "top_logprobs": [{"token": "False", "logprob": number}]}]
    choice = {"index": 0, "finish_reason": "stop", "message": {"content": "True"}, "logprobs": {"content": tokens}}
    with Server(
        lambda request: Reply(changes={"choices": [choice]}) if "city 3" in request.prompt else "True"
    ) as server:
        lm = lm_at(server.url, store=tmp_path / "s.db")
        for _ in range(2):  # again from the store
            result = CITIES.tag.sem_filter("{city} is large", lm=lm, return_all=True)
            assert result["filter_label"].all()
            assert number == 1e6 or result["filter_confidence"].isna()[3]


REFUSED_FIELDS = {
    "OpenAI's reasoning models": ("max_tokens", "'max_tokens' is not supported. Use 'max_completion_tokens' instead."),
    "a gateway": ("max_tokens", "Unrecognized request argument supplied: max_tokens"),
    "its temperature": ("temperature", "'temperature' does not support 0. Only the default (1) value is supported."),
    "Anthropic": ("temperature", "`temperature` is deprecated for this model."),
    "pydantic": ("temperature", '[{"loc":["body","temperature"],"msg":"Extra inputs are not permitted"}]'),
}  # fmt: skip


@pytest.mark.parametrize("who", REFUSED_FIELDS)
def test_a_field_that_is_refused_is_learned_once(who: str):
    name, words = REFUSED_FIELDS[who]
    with Server(lambda request: error(400, words) if name in request.body else "True") as server:
        assert len(CITIES.tag.sem_filter("{city} is large", lm=lm_at(server.url, concurrency=1))) == 20
        assert server.count == 21
        assert ("max_completion_tokens" in server.requests[-1].body) == ("max_completion_tokens" in words)


def test_two_fields_are_refused_one_after_the_other():
    def answers(request: Request) -> str | Reply:
        if "max_tokens" in request.body:
            return error(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
        return error(400, "'temperature' must be 1") if "temperature" in request.body else "True"

    with Server(answers) as server:
        assert len(CITIES.tag.sem_filter("{city} is large", lm=lm_at(server.url))) == 20


def test_a_limit_that_is_too_high_is_lowered_to_the_one_that_is_named():
    with Server() as server:
        server.answers = lambda request: (
            error(400, "max_tokens must be less than or equal to `8192`")
            if request.body["max_tokens"] > 8192
            else "True"
        )
        assert lm_at(server.url).complete([Prompt.of("a")], max_tokens=100_000)[0].ok
        assert server.requests[-1].body["max_tokens"] == 8192


@pytest.mark.parametrize("body", [{"temperature": 0.7}, {"max_tokens": 50}])
def test_a_users_own_field_is_not_left_out(body: dict[str, Any]):
    (name,) = body
    with Server(lambda request: error(400, f"{name} is not supported")) as server:
        assert not lm_at(server.url, extra_body=body).complete([Prompt.of("a")])[0].ok
        assert server.count == 1


def test_a_field_that_is_named_for_another_reason_is_sent_again():
    with Server(lambda request: error(400, "unknown field; allowed: temperature, max_tokens")) as server:
        lm = lm_at(server.url)
        assert not lm.complete([Prompt.of("a")], max_tokens=9)[0].ok
        server.answers = "True"
        assert lm.complete([Prompt.of("b")], max_tokens=9)[0].ok
        assert {"temperature", "max_tokens"} <= server.requests[-1].body.keys()


# --- prompts that are too long ------------------------------------------------------------------------------------

LONG = pd.DataFrame({"text": [f"{number} " + "word " * 8000 for number in range(2)] + ["short"]})
WORDINGS = {
    "OpenAI": (400, "This model's maximum context length is 8192 tokens. However, you requested 9001 tokens."),
    "OpenAI's Responses": (400, "Your input exceeds the context window of this model."),
    "OpenAI's string": (400, "Invalid 'messages[1].content': string too long. Expected a maximum length of 10000"),
    "Gemini": (400, "The input token count (317740) exceeds the maximum number of tokens allowed (131072)."),
    "Bedrock": (400, "Input is too long for requested model."),
    "xAI": (400, "This model's maximum prompt length is 131072 but the request contains 537812 tokens."),
    "TGI": (422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 9000"),
    "vLLM": (400, "The decoder prompt (length 9000) is longer than the maximum model length of 8192."),
    "Anthropic": (400, "prompt is too long: 213462 tokens > 200000 maximum"),
    "Anthropic's sum": (400, "input length and `max_tokens` exceed context limit: 199211 + 20000 > 200000"),
    "Anthropic's size": (413, "Request exceeds the maximum size (request_too_large)"),
    "llama.cpp": (500, "the request exceeds the available context size. try increasing the context size"),
    "llama.cpp's 400": (400, "the request exceeds the available context size (exceed_context_size_error)"),
    "LM Studio": (400, "The number of tokens to keep from the initial prompt is greater than the context length"),
    "Groq": (400, "Please reduce the length of the messages or completion."),
    "Groq's rate": (413, "Request too large for model on tokens per minute (TPM): Limit 6000, Requested 14137"),
    "Mistral": (400, "Prompt contains 40000 tokens, too large for model with 32768 maximum context length"),
    "Cohere": (400, "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 9000."),
    "MiniMax": (400, "invalid params, context window exceeds limit"),
    "Moonshot": (400, "Your request exceeded model token limit: 8192"),
    "OpenAI's rate": (429, "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 42000."),
    "nginx": (413, "<html><head><title>413 Request Entity Too Large</title></head></html>"),
    "words of nobody": (400, "El texto supera lo permitido"),
    "no words": (400, ""),
    "a 500 without words": (500, "Internal Server Error"),
    "a 422 of numbers": (422, "9001 > 8192"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::tagframe.errors.CutWarning")
@pytest.mark.parametrize("who", WORDINGS)
def test_a_row_that_is_too_long_is_cut_whatever_the_words(who: str):
    status, words = WORDINGS[who]
    with Server(lambda request: error(status, words) if len(request.prompt) > 9000 else "True") as server:
        result = LONG.tag.sem_filter("{text} ends well", lm=lm_at(server.url))
        assert len(result) == 3
        assert result.tag.outcomes["note"].notna().sum() == 2
        long = sum(len(request.prompt) > 9000 for request in server.requests)
        assert long <= (40 if status == 500 and "size" not in words else 8)


def test_the_first_prompts_are_all_too_long():
    with (
        Server(lambda request: error(400, "?") if len(request.prompt) > 2500 else "True") as server,
        pytest.warns(CutWarning),
    ):
        assert len(LONG.head(2).tag.sem_filter("{text} ends well", lm=lm_at(server.url))) == 2


@pytest.mark.parametrize("status", [400, 403, 500])
def test_a_refusal_of_long_and_short_alike_is_not_of_the_length(status: int):
    with Server(lambda request: error(status, "no")) as server:
        result = LONG.tag.sem_filter("{text} ends well", lm=lm_at(server.url), on_error="keep")
        assert result["filter_error"].str.contains("no").sum() == 3
        assert server.count < 40


@pytest.mark.parametrize(
    ("message", "is_so"),
    [
        ("Rate limit reached: Limit 6000, Used 5034, Requested 1443. Please try again in 4.77s", False),
        ("Limit 30000, Requested 342389", True),
        ("Requested: 9,000 tokens, limit: 8,000", True),
        ("Too many requests", False),
        ("The service is temporarily overloaded", False),
        ("This would exceed 40,000 input tokens per minute. Please reduce the prompt length, or try later.", False),
    ],
)
def test_a_limit_a_minute_that_one_request_passes(message: str, is_so: bool):
    assert is_too_long(429, message) == is_so


READ_IN_PART = {
    "repeated words": "a long sentence of words " * 1300,
    "prose": " ".join(f"sentence {number} of the story" for number in range(1500)),
    "digits": "".join(str(number * 7919 % 100_003) for number in range(6000)),
    "Chinese": "".join(chr(0x4E00 + number * 7919 % 9000) for number in range(9000)),
}


@pytest.mark.parametrize("kind", READ_IN_PART)
def test_an_answer_to_a_part_of_a_row_is_none(kind: str, tmp_path: Path):
    rows = pd.DataFrame({"text": [f"{number} {READ_IN_PART[kind]} bad" for number in range(3)]})

    def answers(request: Request) -> Reply:
        size = sum(len(message["content"]) for message in request.messages)
        return Reply("True", changes={"usage": {"prompt_tokens": min(1000, size // 2), "completion_tokens": 2}})

    with Server(answers) as server:
        lm = lm_at(server.url, "ollama/llama3.2", store=tmp_path / "s.db")
        with pytest.warns(CutWarning):
            result = rows.tag.sem_filter("{text} ends well", lm=lm)
        assert result.tag.outcomes["note"].str.contains("cut to").all()
    prompts = [request.messages for request in server.requests if len(request.prompt) > 20_000]
    stored = tf.lm.open_store(tmp_path / "s.db").lookup(
        tf.lm.prompt.request_keys([Prompt.from_dicts(one) for one in prompts], tf.lm.Parameters(max_tokens=16))
    )
    assert not stored


@pytest.mark.parametrize("text", ["=" * 30_000, " " * 30_000, "ab" * 15_000, "\n" * 9_000 + "end", "haha " * 3])
def test_few_tokens_of_a_text_that_has_few_are_believed(text: str):
    count = max(Prompt.of(text).least_tokens, len(text) // 64)
    with Server(
        lambda request: Reply("x", changes={"usage": {"prompt_tokens": count, "completion_tokens": 1}})
    ) as server:
        assert lm_at(server.url).complete([Prompt.of(text)])[0].ok


# --- responses ----------------------------------------------------------------------------------------------------


def events(*chunks: Any, end: bytes = b"data: [DONE]\n\n", line: bytes = b"\n") -> bytes:
    made = b"".join(b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + line * 2 for chunk in chunks)
    return made + end


def part(text: str | None, reason: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": reason}]}


USAGE = {"choices": [], "usage": {"prompt_tokens": 50, "completion_tokens": 7}}
STREAMS = {
    "chunks": events(part("Tr"), part("ue", "stop")),
    "with the usage last": events(part("True", "stop"), USAGE),
    "lines of CRLF": events(part("Tr"), part("ue", "stop"), line=b"\r\n"),
    "comments": b": keep-alive\n\n" + events(part("True", "stop")),
    "names of events": b"event: message\n" + events(part("True", "stop")),
    "a byte order mark": b"\xef\xbb\xbf" + events(part("True", "stop")),
    "no [DONE]": events(part("Tr"), part("ue", "stop"), end=b""),
    "no end but [DONE]": events(part("True")),
    "the whole message at the end": events({"choices": [{"message": {"content": "True"}, "finish_reason": "stop"}]}),
    "a role first": events({"choices": [{"delta": {"role": "assistant"}}]}, part("True", "stop")),
    "a blank after [DONE]": events(part("True", "stop"), end=b"data: [DONE] \n\n"),
    "an event without data": b"data:\n\n" + events(part("Tr"), part("ue", "stop"), end=b"data: \n\ndata: [DONE]\n\n"),
    "many blanks first": b" " * 100 + b"\n" * 100 + events(part("True", "stop")),
    "separators of lines": events(part("Tr"), part("ue"), part("\u2028", "stop")),
}


@pytest.mark.parametrize("kind", STREAMS)
def test_a_stream_is_read(kind: str):
    with Server(lambda request: Reply(raw=STREAMS[kind])) as server:
        completion = lm_at(server.url).complete([Prompt.of("a")])[0]
        assert completion.text is not None
        assert completion.text.strip("\u2028") == "True"
        assert server.count == 1
        assert kind != "with the usage last" or completion.usage.tokens_out == 7


@pytest.mark.parametrize(
    "stream",
    [
        events(part("Tr"), end=b""),
        b"data: {oh\n\n",
        events({"error": {"message": "no"}}),
        events({"choices": [None]}),
        events({"choices": 7}),
        events({"choices": [{"delta": [1], "logprobs": [1]}]}),
    ],
)
def test_a_stream_that_breaks_off_is_no_answer(stream: bytes):
    with Server(lambda request: Reply(raw=stream) if request.number < 2 else "True") as server:
        assert lm_at(server.url).complete([Prompt.of("a")])[0].text == "True"
        assert server.count == 3


@pytest.mark.parametrize("size", [9_000, 100_000, 900_000])
def test_a_long_header_is_read(size: int):
    with RawServer(lambda number: response(headers=b"X-Trace: " + b"a" * size + b"\r\n")) as server:
        assert lm_at(server.url).complete([Prompt.of("a")])[0].ok
        assert len(server.paths) == 1


def test_a_header_without_end_is_paid_for_once():
    with RawServer(lambda number: response(headers=b"X-Trace: " + b"a" * 3_000_000 + b"\r\n")) as server:
        failed = lm_at(server.url).complete([Prompt.of("a")])[0].error
        assert isinstance(failed, ResponseTooLong)
        assert "a header" in str(failed)
        assert len(server.paths) == 1


@pytest.mark.parametrize("skew", [-86_400, -300, 0, 300, 86_400])
def test_a_date_of_retry_after_counts_from_the_servers_clock(skew: int):
    now = time.time() + skew
    headers = {
        "retry-after": email.utils.formatdate(now + 40, usegmt=True),
        "date": email.utils.formatdate(now, usegmt=True),
    }
    assert retry_after(headers) == pytest.approx(40, abs=1)


def test_a_date_of_retry_after_without_a_date_counts_from_ours():
    assert retry_after({"retry-after": email.utils.formatdate(time.time() + 40, usegmt=True)}) == pytest.approx(
        40, abs=2
    )


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("to", ["https://example.org/v1/chat/completions", "/v2/chat/completions", ""])
def test_a_redirect_names_the_address_and_ends_the_run(status: int, to: str):
    headers = {"Location": to} if to else {}
    with Server(lambda request: Reply("", status=status, headers=headers)) as server:
        lm = lm_at(server.url, concurrency=2)
        with pytest.raises(tf.errors.RowsFailed) as failed:
            CITIES.tag.sem_filter("{city} is large", lm=lm)
        assert server.count <= 2
    assert "api_base" in str(failed.value)
    assert to.removesuffix("/chat/completions") in str(failed.value)


def test_a_relative_redirect_names_a_whole_address():
    to = {"Location": "/v2/chat/completions"}
    with Server(lambda request: Reply("", status=307, headers=to)) as server:
        (one,) = lm_at(server.url).complete([Prompt.of("a")])
        assert repr(server.url.replace("/v1", "/v2")) in str(one.error)


def test_a_redirect_shows_no_key():
    moved = failure(307, "", {"Location": "https://example.org/?key=sk-secret-key"}, ("sk-secret-key",))
    assert "sk-secret-key" not in str(moved)


# --- proxies ------------------------------------------------------------------------------------------------------

QUICK = RetryPolicy(faults=0, refusals=0)


@pytest.fixture
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    pacing.forget()  # that a server was down
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return monkeypatch


@pytest.mark.parametrize("variable", ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"])
@pytest.mark.parametrize("scheme", ["", "http://"])
def test_a_proxy_of_the_environment(no_proxies: pytest.MonkeyPatch, variable: str, scheme: str):
    with RawServer(lambda number: response()) as proxy:
        no_proxies.setenv(variable, f"{scheme}127.0.0.1:{proxy.port}")
        answer = lm_at("http://example.test:8000/v1", retry=QUICK).complete([Prompt.of("a")])[0]
        assert answer.ok, answer.error
        assert "http://example.test:8000/v1/chat/completions" in proxy.paths


def test_no_proxy_for_a_host_that_needs_none(no_proxies: pytest.MonkeyPatch, server: Server):
    no_proxies.setenv("ALL_PROXY", "http://127.0.0.1:9")
    no_proxies.setenv("no_proxy", "127.0.0.1")
    assert lm_at(server.url).complete([Prompt.of("a")])[0].ok


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1080", "ftp://h", "http://", "http://h:0", "http://[::1"])
def test_a_proxy_that_is_none_is_named(no_proxies: pytest.MonkeyPatch, proxy: str):
    no_proxies.setenv("ALL_PROXY", proxy)
    with pytest.raises(InvalidArgument, match="ALL_PROXY"):
        lm_at("http://example.test/v1").complete([Prompt.of("a")])


@pytest.mark.parametrize(
    "answer", [response(status=b"407 Proxy Authentication Required"), b"no HTTP at all\r\n\r\n", None]
)
def test_a_proxy_that_fails_is_named(no_proxies: pytest.MonkeyPatch, answer: bytes | None):
    with RawServer(lambda number: answer or b"") as proxy:
        no_proxies.setenv("https_proxy", f"http://me:secret-word@127.0.0.1:{proxy.port if answer else 9}")
        failed = lm_at("https://example.test/v1", retry=QUICK).complete([Prompt.of("a")])[0].error
    assert isinstance(failed, LMRequestFailed)
    assert "https_proxy" in str(failed)
    assert "secret-word" not in str(failed)


# --- which model answers ------------------------------------------------------------------------------------------


@pytest.fixture
def new_process() -> Any:
    pacing.forget()
    yield pacing.forget
    pacing.forget()


@pytest.mark.parametrize("name", ["llama.cpp/any", "llamafile/any", "openai/whatever"])
def test_a_server_that_was_started_with_another_model_is_asked_anew(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new_process: Any
):
    with Server("True") as server:
        for model, sent in (("qwen", 20), ("llama", 40), ("qwen", 40)):
            monkeypatch.setitem(scripted.MODEL, "id", model)
            new_process()
            CITIES.tag.sem_filter("{city} is large", lm=lm_at(server.url, name, store=tmp_path / "s.db"))
            assert server.count == sent


def test_answers_of_a_server_that_is_gone_are_those_of_its_last_model(tmp_path: Path, new_process: Any):
    store = tmp_path / "s.db"
    with Server("True") as server:
        lm_at(server.url, "llama.cpp/any", store=store).complete([Prompt.of("a")])
        url = server.url
    new_process()
    again = lm_at(url, "llama.cpp/any", store=store, retry=QUICK).complete([Prompt.of("a")])
    assert again.usage.stored == 1


def test_replies_that_name_another_model_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new_process: Any):
    with Server(lambda request: Reply("True", changes={"model": scripted.MODEL["id"]})) as server:
        lm = lm_at(server.url, "llama.cpp/any", store=tmp_path / "s.db")
        for number, model in enumerate(("qwen", "llama")):
            monkeypatch.setitem(scripted.MODEL, "id", model)
            lm.complete([Prompt.of(f"row {number}")])
        assert lm.stored_as[1] == "llama.cpp/any (llama)"


def test_a_query_of_the_url_is_a_part_of_the_endpoint_and_secrets_are_not(tmp_path: Path, server: Server):
    def asked(query: str) -> int:
        lm = lm_at(f"{server.url}?{query}", store=tmp_path / "s.db")
        return lm.complete([Prompt.of("a")]).usage.sent

    assert asked("api-version=2024-02-01&deployment=a") == 1
    assert asked("api-version=2024-02-01&deployment=b") == 1
    assert asked("api-version=2024-02-01&deployment=a&api-key=sk-1") == 0
    assert "sk-1" not in lm_at(f"{server.url}?api-key=sk-1").transport.endpoint


@pytest.mark.parametrize(
    ("says", "window"),
    [
        ({"id": "test", "meta": {"n_ctx": 4096}}, 4096),  # llama.cpp
        ({"id": "test", "max_model_len": 8192}, 8192),  # vLLM
        ({"id": "another", "loaded_context_length": 2048}, 2048),  # the one that answers to any name
        ({"id": "test"}, None),
        ({"id": "test", "meta": None, "n_ctx": 0, "max_model_len": "many"}, None),
    ],
)
def test_the_window_is_the_servers_own(monkeypatch: pytest.MonkeyPatch, says: dict[str, Any], window: int | None):
    monkeypatch.setattr("tag_bench.server.MODEL", says)
    with Server() as server:
        assert lm_at(server.url).context_window == window
        assert lm_at(server.url, context_window=100).context_window == 100


# --- what passes, and what changes --------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [201, 202, 203])
def test_a_completion_of_another_good_status_is_read(status: int):
    with RawServer(lambda number: response(status=b"%d X" % status)) as server:
        completions = lm_at(server.url).complete([Prompt.of("a")])
    assert completions[0].text == "True"
    assert completions.usage.sent == 1


@pytest.mark.parametrize("status", [302, 307, 401, 404, 408, 409, 425, 499, 500, 503])
def test_a_refusal_that_passes_costs_no_row(status: int):
    rows = [Prompt.of(f"row {number}") for number in range(30)]
    with Server(lambda request: error(status) if 5 <= request.number < 9 else "True") as server:
        assert all(one.ok for one in lm_at(server.url, concurrency=4).complete(rows))
        assert server.count == 34


IN_PASSING = {
    "OpenAI": error(400, "We could not parse the JSON body of your request. (HINT: …)"),
    "Anthropic": error(400, "The request body is not valid JSON: unexpected end of data: line 1 column 18030593"),
    "Bedrock behind a gateway": error(400, "ThrottlingException: Too many tokens, please wait before trying again."),
    "the same as a fault": error(500, "litellm.RateLimitError: Too many tokens, please wait before trying again."),
    "a gateway": error(400, "Model is temporarily unavailable."),
    "a server that loads": error(404, "model 'test' is currently loading"),
}


@pytest.mark.parametrize("who", IN_PASSING)
def test_a_refusal_that_passes_by_its_words_costs_no_row(who: str):
    with Server(lambda request: IN_PASSING[who] if request.attempt == 1 else "True") as server:
        assert len(large(server.url)) == len(CITIES)
        assert server.count == 2 * len(CITIES)
        assert all(has_form(request) for request in server.requests)  # which was not to blame


@pytest.mark.parametrize("status", [401, 404])
def test_a_refusal_of_the_first_row_ends_the_run(status: int):
    with Server(lambda request: error(status)) as server:
        lm_at(server.url, concurrency=4).complete([Prompt.of(f"row {number}") for number in range(30)])
        assert server.count <= 4


WINDOW = 4096
SMALL_WINDOWS = {
    "vLLM": "'max_tokens' or 'max_completion_tokens' is too large: {limit}. This model's maximum context length is 4096"
    " tokens and your request has {size} input tokens ({limit} > 4096 - {size}).",
    "vLLM before": "This model's maximum context length is 4096 tokens. However, you requested {all} tokens ({size} in"
    " the messages, {limit} in the completion). Please reduce the length of the messages or completion.",
    "Anthropic": "input length and `max_tokens` exceed context limit: {size} + {limit} > 4096, decrease one of them",
    "TGI": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: {size} and {limit}",
}


@pytest.mark.parametrize("who", SMALL_WINDOWS)
@pytest.mark.parametrize("size", [50, 1000, 2500])
@pytest.mark.parametrize("own", [None, 4096])
def test_a_prompt_is_refused_for_the_answer_beside_it(who: str, size: int, own: int | None):
    def answers(request: Request) -> str | Reply:
        limit = request.body["max_tokens"]
        counts = {"size": size, "limit": limit, "all": size + limit}
        return error(400, SMALL_WINDOWS[who].format(**counts)) if size + limit > WINDOW else "True"

    with Server(answers) as server:
        lm = lm_at(server.url, budget=tf.Budget(tokens=10**6), concurrency=1, context_window=None)
        rows = [Prompt.of(f"{number} " + "word " * (size * 3 // 5)) for number in range(3)]
        assert all(one.ok for one in lm.complete(rows, max_tokens=own))
        assert server.count <= 9


def test_a_prompt_that_is_too_long_by_itself_is_asked_once():
    with Server(lambda request: error(400, "maximum context length is 4096 tokens, you requested 40000")) as server:
        lm = lm_at(server.url, budget=tf.Budget(tokens=10**6))
        (one,) = lm.complete([Prompt.of("word " * 20_000)])
        assert isinstance(one.error, tf.errors.ContextTooLong)
        assert server.count == 1


@pytest.mark.parametrize("name", ["llama.cpp/any", "llama.cpp/test"])
def test_a_model_that_is_swapped_midway_answers_under_its_own_name(tmp_path: Path, name: str):
    rows = [Prompt.of(f"row {number}") for number in range(20)]
    with Server() as server:
        server.answers = lambda request: Reply("True", changes={"model": "test" if request.number < 12 else "other"})
        lm = lm_at(server.url, name, store=tmp_path / "s.db", concurrency=1)
        assert all(one.ok for one in lm.complete(rows))
        again = lm.complete(rows).usage
        assert (again.stored, again.sent) == (12, 8)


def test_a_gateway_that_names_many_models_has_one_key(tmp_path: Path):
    rows = [Prompt.of(f"row {number}") for number in range(20)]
    with Server() as server:
        server.answers = lambda request: Reply("True", changes={"model": f"provider/{request.number % 3}"})
        lm = lm_at(server.url, "openai/test", store=tmp_path / "s.db")
        lm.complete(rows)
        assert lm.complete(rows).usage.stored == 20

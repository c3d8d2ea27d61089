"""The form of answers, asked of servers that obey, refuse or ignore it, over HTTP."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pydantic
import pytest

import tagframe as tf
from tag_bench.server import Reply, Request, Server, error
from tagframe.errors import AnswerCut, AnswerRejected, FailedRowsWarning, Interrupted, RowsFailed
from tagframe.lm import LM, RetryPolicy, words
from tests.lm.conftest import FAST
from tests.operators.scripted import shown_rows

ROWS = pd.DataFrame({"n": range(12)})
CLAIM = "{n} is even"


class Town(pydantic.BaseModel):
    name: str
    founded: int | None


def has_form(request: Request) -> bool:
    return "response_format" in request.body


def value_of(schema: dict[str, Any]) -> Any:
    """The first value of a schema, as a server writes it that holds a model to it."""
    kinds = schema.get("type")
    kind = kinds if isinstance(kinds, str) else (kinds or ["null"])[0]
    if "enum" in schema:
        return schema["enum"][0]
    if kind == "object":
        return {name: value_of(part) for name, part in schema["properties"].items()}
    if kind == "array":
        return []
    return {"boolean": True, "integer": 7, "number": 0.5, "string": "2024-05-17"}.get(kind)


class Weak:
    """A server whose model obeys no prompt: its answers have a form only if the server holds it to one.

    Args:
        obeys: whether it takes a form; or "refuses" it.
    """

    def __init__(self, obeys: bool | str, says: str = "It is hard to say") -> None:
        self.obeys, self.says = obeys, says

    def __call__(self, request: Request) -> str | Reply:
        if not has_form(request) or not self.obeys:
            return self.says
        if self.obeys == "refuses":
            return error(400, "Unrecognized request argument supplied")
        return json.dumps(value_of(request.body["response_format"]["json_schema"]["schema"]))


def filtered(server: Server, **more: Any) -> tuple[pd.DataFrame, LM]:
    lm = LM("openai/weak", api_base=server.url, retry=FAST, **more)
    with tf.context(lm=lm, store=None):
        return tf.sem_filter(ROWS, CLAIM, on_error="keep", return_all=True), lm


@pytest.mark.parametrize(
    ("obeys", "known", "with_form", "failed"), [(True, True, 12, 0), ("refuses", False, 1, 12), (False, False, 1, 12)]
)
def test_what_a_server_takes_is_found_out(server: Server, obeys, known, with_form, failed):
    server.answers = Weak(obeys)
    frame, lm = filtered(server, concurrency=1)
    assert frame["filter_label"].isna().sum() == failed
    assert lm.takes_forms() is known
    assert sum(has_form(request) for request in server.requests) == with_form


def test_a_refusal_at_full_concurrency_costs_one_request_a_row(server: Server):
    server.answers = lambda request: error(400, "unknown field") if has_form(request) else "True"
    frame, _ = filtered(server, concurrency=64)
    assert frame["filter_label"].all()
    assert server.count <= 24


@pytest.mark.parametrize("text", ["```json\ntrue\n```", "```\ntrue\n```", " true\n"])
def test_a_form_in_a_code_fence_is_read(server: Server, text: str):
    server.answers = text
    frame, lm = filtered(server)
    assert frame["filter_label"].all()
    assert lm.takes_forms()
    assert server.count == 12


def test_an_error_that_is_not_about_the_form_leaves_it_unknown(server: Server):
    server.answers = lambda request: error(400, "bad row")
    _, lm = filtered(server, concurrency=1)
    assert lm.takes_forms() is None


def test_answers_with_and_without_a_form_are_stored_alike(server: Server, tmp_path: Path):
    server.answers = Weak(True)
    lm = LM("openai/weak", api_base=server.url, retry=FAST, store=tmp_path / "answers.db")
    tf.sem_filter(ROWS, CLAIM, lm=lm)
    server.reset()
    off = LM("openai/weak", api_base=server.url, structured="off", store=tmp_path / "answers.db")
    assert len(tf.sem_filter(ROWS, CLAIM, lm=off)) == 12
    assert server.count == 0


def test_every_operator_is_answered_in_its_form(server: Server):
    server.answers = Weak(True)
    with tf.context(lm=LM("openai/weak", api_base=server.url, retry=FAST), store=None):
        assert len(tf.sem_filter(ROWS, CLAIM)) == 12
        assert tf.sem_map(ROWS, "kind of {n}", choices=["odd", "even"])["_map"].eq("odd").all()
        assert tf.sem_score(ROWS, "how {n}?")["_score"].eq(0.5).all()
        assert tf.sem_map(ROWS, "{n}", dtype=int)["_map"].eq(7).all()
        assert tf.sem_map(ROWS, "{n}", dtype="date")["_map"].eq(pd.Timestamp("2024-05-17")).all()
        assert len(tf.sem_filter(ROWS, CLAIM, rows_per_call=4, return_explanations=True)) == 12
        assert tf.sem_agg(ROWS, "which {n}?", response_format=Town)["founded"].isna().tolist() == [True]
        assert tf.sem_extract(ROWS, ["n"], {"town": None})["town"].eq("2024-05-17").all()
        towns = tf.sem_map(ROWS, "the town of {n}", response_format=Town)
        assert towns["name"].eq("2024-05-17").all()
        assert towns["founded"].isna().all()


def test_a_form_of_the_users_own_is_left_alone(server: Server):
    server.answers = "True"
    filtered(server, extra_body={"grammar": 'root ::= "True"'})
    assert {request.body["grammar"] for request in server.requests} == {'root ::= "True"'}


@pytest.mark.parametrize("token", ["</s>", "<|im_end|>", " <|eot_id|>\n", "<end_of_turn></s>"])
def test_closing_tokens_of_templates_are_cut(server: Server, token: str):
    server.answers = f"<s>old</s> news{token}" if token != "</s>" else "news</s>"
    (completion,) = LM("openai/test", api_base=server.url).complete([tf.Prompt.of("What?")])
    assert completion.text in ("news", f"<s>old</s> news{token}")
    server.answers = f"True{token}"
    frame, _ = filtered(server, structured="off")
    assert frame["filter_label"].all()


# --- repairs, ends, and what is said of them --------------------------------------------------------------------------


def test_repairs_that_do_not_help_end_after_two(server: Server):
    server.answers = Weak(False)
    frame, _ = filtered(server, structured="off", concurrency=1)
    assert frame["filter_label"].isna().all()
    assert server.count == 12 + 2


def test_repairs_that_help_go_on(server: Server):
    server.answers = lambda request: "True" if len(request.messages) > 2 else "Well"
    frame, _ = filtered(server, structured="off", concurrency=8)
    assert frame["filter_label"].all()
    assert server.count == 24


def test_a_run_stops_where_most_of_the_last_answers_are_rejected(server: Server):
    server.answers = lambda request: "True" if shown_rows(request.messages[1]["content"])[0]["n"] < 30 else "Well"
    lm = LM("openai/weak", api_base=server.url, structured="off", concurrency=1)
    with pytest.raises(RowsFailed) as caught:
        tf.sem_filter(pd.DataFrame({"n": range(100)}), CLAIM, lm=lm, store=None)
    assert server.count == 30 + 11 + 2
    assert isinstance(caught.value.failures[0], AnswerRejected)


def test_free_texts_end_at_a_limit_of_their_own(server: Server):
    server.answers = lambda request: Reply("and so on " * 60, finish_reason="length")
    lm = LM("openai/weak", api_base=server.url)
    with pytest.raises(
        RowsFailed, match=r"limit of 512 tokens: answer in fewer, or give a larger max_tokens= in"
    ) as caught:
        tf.sem_map(ROWS, "the story of {n}", lm=lm, store=None)
    assert isinstance(caught.value.failures[0], AnswerCut)
    assert server.count == 12, "an answer that repeats itself is not asked for again"
    assert {request.body["max_tokens"] for request in server.requests} == {512}


@pytest.mark.parametrize(("setting", "sent"), [(2000, {2000}), (8, {16, 8})])
def test_the_setting_of_texts_raises_the_limits_of_others(server: Server, setting: int, sent: set[int]):
    server.answers = "True"
    with tf.context(lm=LM("openai/weak", api_base=server.url), store=None):
        tf.sem_filter(ROWS[:1], CLAIM, max_tokens=setting)
        with tf.context(max_tokens=setting):
            tf.sem_map(ROWS[:1], "the story of {n}")
    assert {request.body["max_tokens"] for request in server.requests} == sent


@pytest.mark.parametrize("on_error", ["keep", "drop"])
def test_rows_that_fail_are_said_once(server: Server, on_error: Any):
    server.answers = lambda request: "Well" if shown_rows(request.messages[1]["content"])[0]["n"] % 3 == 0 else "True"
    lm = LM("openai/weak", api_base=server.url, structured="off")
    with pytest.warns(
        FailedRowsWarning, match=r"sem_filter: 4 of 12 answers did not follow the format; first: expected"
    ):
        tf.sem_filter(ROWS, CLAIM, lm=lm, store=None, on_error=on_error)


def test_an_interrupted_call_counts_what_it_sent(server: Server, monkeypatch: pytest.MonkeyPatch):
    from tagframe.lm import Stream, total_usage

    server.answers = lambda request: Reply(hang=True)
    taken = Stream.take

    def interrupted(stream: Stream) -> Any:
        monkeypatch.setattr(Stream, "take", taken)
        while server.count < 12:
            pass
        raise KeyboardInterrupt

    monkeypatch.setattr(Stream, "take", interrupted)
    before = total_usage().sent
    lm = LM("openai/weak", api_base=server.url, structured="off", retry=RetryPolicy(first_wait=0.01))
    with pytest.raises(Interrupted):
        tf.sem_filter(ROWS, CLAIM, lm=lm, store=None)
    assert total_usage().sent - before == 12
    assert server.count == 12


def test_a_broken_pack_is_not_paid_for_again(server: Server, tmp_path: Path):
    server.answers = lambda request: "Well" if "<rows>" in request.messages[1]["content"] else "True"
    lm = LM("openai/weak", api_base=server.url, structured="off", store=tmp_path / "answers.db")
    for count in (None, 0):
        server.reset()
        assert len(tf.sem_filter(ROWS, CLAIM, lm=lm, rows_per_call=4)) == 12
        assert count is None or server.count == count


@pytest.mark.parametrize(
    ("text", "read"),
    [("true", "yes"), ("```json\nfalse\n```", "no"), ("null", "unsure"), ("1", None), ('"yes"', None), ("yes", None)],
)
def test_a_word_is_read_of_its_own_value_only(text: str, read: str | None):
    assert words({True: "yes", False: "no", None: "unsure"}).read(text, wraps=False) == read

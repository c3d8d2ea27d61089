"""Spans and metrics of OpenTelemetry: one a call, a request and a statement, without prompts and cells unless asked."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import tagframe as tf
from tag_bench.server import Reply, Request, Server, error
from tagframe.errors import FailedRowsWarning, LMError

FRAME = pd.DataFrame({"name": [f"zqs-{number}" for number in range(4)]})


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """What is exported by a program that has set OpenTelemetry up."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    yield exporter
    provider.shutdown()


def spans(exporter: InMemorySpanExporter) -> dict[str, list[ReadableSpan]]:
    found: dict[str, list[ReadableSpan]] = {}
    for span in exporter.get_finished_spans():
        found.setdefault(span.name, []).append(span)
    return found


def parent(span: ReadableSpan) -> int | None:
    return None if span.parent is None else span.parent.span_id


def models(server: Server, **settings: Any) -> dict[str, Any]:
    """The keywords of a call of the local server's model; a request has one row."""
    return {"lm": "openai/test", "api_base": server.url, "api_key": "sk-zqs", "progress": False, **settings}


@pytest.mark.parametrize("awaited", [False, True])
def test_an_operator_is_a_span_and_each_request_a_span_below_it(
    awaited: bool, server: Server, traced: InMemorySpanExporter
):
    def answers(request: Request) -> str | Reply:
        return error(400, "wrong: zqs-3") if "zqs-3" in request.prompt else "zqs-answer"

    server.answers = answers
    lm = tf.LM("openai/test", api_base=server.url, api_key="sk-zqs", price=tf.Price(1e-6, 2e-6))
    call = (lambda *args, **given: asyncio.run(tf.asem_map(*args, **given))) if awaited else tf.sem_map
    with pytest.warns(FailedRowsWarning):
        found = call(FRAME, "Who is {name}?", on_error="keep", lm=lm, progress=False)
    named = spans(traced)
    (run,) = named.pop("sem_map")
    requests = named.pop("chat test")
    assert not named
    assert len(requests) == 4
    assert {parent(span) for span in requests} == {run.context.span_id}
    assert run.start_time <= min(span.start_time for span in requests)
    assert run.attributes["tagframe.rows"] == 4
    assert run.attributes["tagframe.failed"] == 1
    assert not [name for name in run.attributes if name.startswith("gen_ai.")]  # tools add these up
    good = [span.attributes for span in requests if span.status.is_ok or "error.type" not in span.attributes]
    assert len(good) == 3
    for told in good:
        assert told["gen_ai.operation.name"] == "chat"
        assert told["gen_ai.provider.name"] == "openai"
        assert told["gen_ai.request.model"] == "test"
        assert told["gen_ai.usage.cost"] == pytest.approx(
            told["gen_ai.usage.input_tokens"] * 1e-6 + told["gen_ai.usage.output_tokens"] * 2e-6
        )
    summary = found.tag.summary
    assert sum(told["gen_ai.usage.input_tokens"] for told in good) == summary["tokens_in"] > 0
    (bad,) = [span for span in requests if "error.type" in span.attributes]
    assert bad.attributes["error.type"] == "LMRequestFailed"
    assert bad.attributes["http.response.status_code"] == 400
    assert not bad.status.is_ok
    assert "zqs" not in "".join(span.to_json() for span in traced.get_finished_spans())


def test_prompts_answers_and_literals_are_in_spans_only_if_asked_for(server: Server, traced: InMemorySpanExporter):
    server.answers = lambda request: "an answer"
    corpus = tf.open_corpus({"people": FRAME})
    for contents in (False, True):
        traced.clear()
        with tf.context(trace_contents=contents):
            tf.sem_map(FRAME, "Who is {name}?", **models(server, store=None))
            tf.exec_sql(corpus)("SELECT name FROM people WHERE name = 'zqs-2' LIMIT 3")
        named = spans(traced)
        (statement,) = named["SELECT"]
        assert statement.attributes["db.system.name"] == "sqlite"
        asked = named["chat test"][0].attributes
        if contents:
            assert "'zqs-2'" in statement.attributes["db.query.text"]
            assert "zqs-" in json.loads(asked["gen_ai.input.messages"])[-1]["parts"][0]["content"]
            (said,) = json.loads(asked["gen_ai.output.messages"])
            assert said["parts"] == [{"type": "text", "content": "an answer"}]
        else:
            assert statement.attributes["db.query.text"] == "SELECT name FROM people WHERE name = ? LIMIT ?"
            assert "zqs" not in "".join(span.to_json() for span in traced.get_finished_spans())


def test_ask_retrieve_and_merge_are_spans(server: Server, traced: InMemorySpanExporter, tmp_path: Path):
    cities = pd.DataFrame({"city_id": [1, 2], "city": ["zqs-x", "zqs-y"]})
    people = pd.DataFrame({"person_id": [1, 2, 3], "city_id": [1, 2, 2], "person": ["zqs-a", "zqs-b", "zqs-c"]})
    corpus = tf.open_corpus({"people": people, "cities": cities})
    found = tf.retrieve_tables("Which person lives in which city?", corpus, k=2)
    found.merge()
    server.answers = lambda request: error(400, "no")
    with pytest.raises(LMError):
        tf.ask("Who lives there?", corpus, **models(server))
    named = spans(traced)
    assert named["open_corpus"][0].attributes["tagframe.tables"] == 2
    assert named["retrieve_tables"][0].attributes["tagframe.tables"] == 2
    assert named["merge"][0].attributes["tagframe.rows"] == 3
    (asked,) = named["ask"]
    assert asked.attributes["error.type"] == "LMRequestFailed"
    assert not asked.events  # an exception's text may quote cells
    assert parent(named["chat test"][0]) == asked.context.span_id


def test_an_operator_that_asks_no_model_is_a_span(traced: InMemorySpanExporter):
    tf.sem_search(FRAME, "name", "two", K=1)
    assert [*spans(traced)] == ["sem_search"]


def test_metrics_count_requests_tokens_and_failures(server: Server, monkeypatch: pytest.MonkeyPatch):
    reader = InMemoryMetricReader()
    provider = MeterProvider(metric_readers=[reader])
    monkeypatch.setattr(metrics._internal, "_METER_PROVIDER", provider)
    server.answers = lambda request: error(400, "no") if "zqs-3" in request.prompt else "yes"
    with pytest.warns(FailedRowsWarning):
        tf.sem_map(FRAME, "Who is {name}?", on_error="drop", **models(server))
    data = reader.get_metrics_data()
    (resource,) = data.resource_metrics
    points = {one.name: one.data.data_points for one in resource.scope_metrics[0].metrics}
    lasted = {point.attributes.get("error.type"): point.count for point in points["gen_ai.client.operation.duration"]}
    assert lasted == {None: 3, "LMRequestFailed": 1}
    used = {point.attributes["gen_ai.token.type"]: point.sum for point in points["gen_ai.client.token.usage"]}
    assert used.keys() == {"input", "output"}
    assert min(used.values()) > 0
    provider.shutdown()


@pytest.mark.slow
def test_nothing_is_imported_and_no_span_made_where_a_program_has_not_set_it_up():
    program = (
        "import sys, pandas as pd, tagframe as tf\n"
        "from tag_bench.server import Server\n"
        "with Server() as server:\n"
        "    frame = pd.DataFrame({'name': ['a']})\n"
        "    tf.sem_filter(frame, '{name} is a', lm='openai/x', api_base=server.url, progress=False, store=None)\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr

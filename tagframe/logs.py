"""The log: ``tagframe`` with a child for each room, for start and end of runs, requests and statements.

No line has a cell, a literal of a statement, a prompt, an answer or an API key. What a line counts is also in fields of
its record (``extra=`` of :mod:`logging`), for logs as JSON. Warnings are logged by :func:`tagframe.errors.warn`.

Runs, statements and requests are also spans of OpenTelemetry, and requests are counted in its metrics, where the
program has set it up, as its SDK or ``opentelemetry-instrument`` does. Otherwise nothing is imported. No span has a
prompt, an answer, a cell, a literal of a statement or the text of an error, unless the setting ``trace_contents`` is
on. Attributes have the names of OpenTelemetry's semantic conventions for generative AI and databases. The conventions
have none for cost: it is ``gen_ai.usage.cost``, in dollars. What a run counts is in attributes ``tagframe.…``, so that
tools that add up ``gen_ai.usage.…`` count each token once.
"""

from __future__ import annotations

import functools
import json
import logging
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeVar

from tagframe import config
from tagframe.version import __version__

P = ParamSpec("P")
T = TypeVar("T")


@functools.cache  # which is asked for with each request
def _logger(room: str) -> logging.Logger:
    return logging.getLogger(f"tagframe.{room}")


def note(room: str, level: int, what: str, **fields: Any) -> None:
    """Log a line of a room with its fields; fields that are None are left out."""
    log = _logger(room)
    if log.isEnabledFor(level):
        known = {name: value for name, value in fields.items() if value is not None}
        text = ", ".join(
            f"{name}={value:.3f}" if isinstance(value, float) else f"{name}={value}" for name, value in known.items()
        )
        log.log(level, "%s%s", what, f" ({text})" if text else "", extra=known)


@contextmanager
def statement(room: str, sql: str, dialect: str) -> Iterator[None]:
    """Log the statement that the block runs, without its literals, which may be cells."""
    if not is_traced() and not _logger(room).isEnabledFor(logging.DEBUG):
        yield
        return
    import sqlglot

    try:
        tokens = [(token.token_type.name, token.text) for token in sqlglot.tokenize(sql, read=dialect)]
    except (sqlglot.errors.SqlglotError, ValueError):  # of no dialect that it knows
        tokens = []
    anonymous = " ".join("?" if kind.endswith(("STRING", "NUMBER")) else text for kind, text in tokens)
    note(room, logging.DEBUG, "statement", sql=anonymous)
    text = sql if config.current().trace_contents else anonymous
    system = {"postgres": "postgresql"}.get(dialect, dialect)
    with span(anonymous.partition(" ")[0] or system, {"db.system.name": system, "db.query.text": text}, "CLIENT"):
        yield


_is_trial: ContextVar[bool] = ContextVar("tagframe_trial", default=False)


@contextmanager
def trial() -> Iterator[None]:
    """A block whose runs the user did not ask for: they are logged for debugging, whether they end or fail."""
    token = _is_trial.set(True)
    try:
        yield
    finally:
        _is_trial.reset(token)


@contextmanager
def run(room: str, what: str, **fields: Any) -> Iterator[dict[str, Any]]:
    """Log the start and the end of a block, with what it puts into the dict; a warning if it failed, or rows did."""
    counts: dict[str, Any] = {}
    began = time.monotonic()
    note(room, logging.DEBUG if _is_trial.get() else logging.INFO, f"{what} started", **fields)
    how, level, error = "failed", logging.WARNING, None
    try:
        with span(what, counts):
            counts.update(fields)
            yield counts
        how, level = "ended", logging.WARNING if counts.get("failed") else logging.INFO
    except GeneratorExit:  # closed early by its reader
        how, level = "closed", logging.INFO
        raise
    except BaseException as raised:
        error = type(raised).__name__
        raise
    finally:
        seconds = time.monotonic() - began
        level = logging.DEBUG if _is_trial.get() else level
        note(room, level, f"{what} {how}", **{**fields, "error": error, "seconds": seconds, **counts})


def runs(
    room: str, what: str, counts: Callable[[Any], Mapping[str, Any]]
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Log the start and the end of every call of a function, with the counts of its result."""

    def logged(function: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            with run(room, what) as fields:
                result = function(*args, **kwargs)
                fields.update(counts(result))
            return result

        return call

    return logged


# --- OpenTelemetry ---------------------------------------------------------------------------------------------------


_PROVIDERS = {
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
    "vertex_ai": "gcp.vertex_ai",
    "watsonx": "ibm.watsonx.ai",
    "xai": "x_ai",
}
"""The conventions' names of providers that litellm calls otherwise."""


def _provider(kind: str) -> Any | None:
    """What the program has set up for spans (``trace``) or ``metrics``; None if nothing."""
    module = sys.modules.get(f"opentelemetry.{kind}")
    name = "get_tracer_provider" if kind == "trace" else "get_meter_provider"
    provider = getattr(module, name, lambda: None)()
    return None if "Proxy" in type(provider).__name__ else provider  # a proxy waits for one to be set


@functools.lru_cache(1)
def _tracer_of(provider: Any) -> Any:
    return provider.get_tracer("tagframe", __version__)


@functools.lru_cache(1)
def _instruments(provider: Any) -> tuple[Any, Any]:
    """The histograms of seconds and of tokens, with the buckets that the conventions advise."""
    meter = provider.get_meter("tagframe", __version__)
    seconds, tokens = [0.01 * 2**power for power in range(14)], [4**power for power in range(14)]
    return (
        meter.create_histogram("gen_ai.client.operation.duration", "s", explicit_bucket_boundaries_advisory=seconds),
        meter.create_histogram("gen_ai.client.token.usage", "{token}", explicit_bucket_boundaries_advisory=tokens),
    )


def is_traced() -> bool:
    """Whether the program has set OpenTelemetry up."""
    return "opentelemetry" in sys.modules and (_provider("trace") or _provider("metrics")) is not None


def span(name: str, attributes: Mapping[str, Any], kind: str = "INTERNAL") -> AbstractContextManager[Any]:
    """A span around a block.

    Args:
        name: of the span.
        attributes: its attributes, read when the block ends; names without a dot are tagframe's own.
        kind: of the span, by its name in OpenTelemetry.
    """
    provider = _provider("trace")
    return nullcontext() if provider is None else _span(_tracer_of(provider), name, attributes, kind)


@contextmanager
def _span(tracer: Any, name: str, attributes: Mapping[str, Any], kind: str) -> Iterator[None]:
    trace = sys.modules["opentelemetry.trace"]
    silent = {"record_exception": False, "set_status_on_exception": False}  # the text of an error may quote cells
    with tracer.start_as_current_span(name, kind=trace.SpanKind[kind], **silent) as made:
        try:
            yield
        except BaseException as error:
            _fail(made, type(error).__name__)
            raise
        finally:
            own = {key if "." in key else f"tagframe.{key}": value for key, value in attributes.items()}
            made.set_attributes({key: value for key, value in own.items() if value is not None})


def _fail(made: Any, error: str) -> None:
    made.set_attribute("error.type", error)
    made.set_status(sys.modules["opentelemetry.trace"].StatusCode.ERROR)


@functools.lru_cache(64)
def _fields_of(model: str, operation: str) -> tuple[str, dict[str, Any], list[dict[str, Any]]]:
    """Of all requests to a model, by litellm's name: the name of the span, its attributes, and those of the tokens that
    are read and written. The SDK copies attributes."""
    prefix, slash, rest = model.partition("/")
    provider = prefix if slash else "openai"
    attributes = {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": _PROVIDERS.get(provider, provider),
        "gen_ai.request.model": rest or model,
    }
    return (
        f"{operation} {rest or model}",
        attributes,
        [{**attributes, "gen_ai.token.type": kind} for kind in ("input", "output")],
    )


def trace_request(
    model: str,
    operation: str,
    *,
    seconds: float,
    status: int | None,
    error: str | None,
    tokens: tuple[int, int] | None,
    dollars: float | None,
    messages: Sequence[Mapping[str, Any]] | None,
    answer: str | None,
) -> None:
    """Make the span of a request that has ended, and count it. Both add about a sixth to the computing time of the
    request, most of it in the SDK; a span has few attributes for this reason.

    Args:
        model: litellm's name.
        operation: "chat" or "embeddings".
        seconds: that it took.
        status: of HTTP, in which a failed one ended.
        error: the class of the error in which it ended.
        tokens: read and written, if it has ended well.
        dollars: its cost, if known.
        messages, answer: None unless contents are traced.
    """
    name, shared, of_tokens = _fields_of(model, operation)
    if (provider := _provider("metrics")) is not None:
        lasted, used = _instruments(provider)
        lasted.record(seconds, {**shared, "error.type": error} if error else shared)
        for count, kind in zip(tokens or (), of_tokens, strict=False):
            used.record(count, kind)
    if (provider := _provider("trace")) is None:
        return
    attributes = {**shared}
    if tokens is not None:
        attributes["gen_ai.usage.input_tokens"], attributes["gen_ai.usage.output_tokens"] = tokens
    if dollars is not None:
        attributes["gen_ai.usage.cost"] = dollars
    if error is not None and status is not None:
        attributes["http.response.status_code"] = status
    kind, ended = sys.modules["opentelemetry.trace"].SpanKind.CLIENT, time.time_ns()
    made = _tracer_of(provider).start_span(
        name, kind=kind, attributes=attributes, start_time=ended - int(seconds * 1e9)
    )
    if not made.is_recording():  # a sampler has left it out
        return
    if messages is not None:
        contents = [(message["role"], message["content"]) for message in messages]
        made.set_attribute("gen_ai.input.messages", _messages(contents))
        if answer is not None:
            made.set_attribute("gen_ai.output.messages", _messages([("assistant", answer)]))
    if error is not None:
        _fail(made, error)
    made.end(ended)


def _messages(contents: Sequence[tuple[str, Any]]) -> str:
    """Messages in the conventions' form."""
    return json.dumps(
        [
            {
                "role": role,
                "parts": [{"type": "text", "content": content}] if isinstance(content, str) else list(content),
            }
            for role, content in contents
        ],
        ensure_ascii=False,
        default=str,
    )

"""``tagframe lm check``: what a model and its server can do, and the settings that fit them."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import pandas as pd

from tagframe import operators
from tagframe.config import current
from tagframe.display import Public, rows_html
from tagframe.errors import (
    AnswerRejected,
    AuthenticationFailed,
    InvalidArgument,
    LMError,
    ModelNotFound,
    NotConfigured,
)
from tagframe.lm import LM, Batch, Completions, Prompt, RetryPolicy, get_lm, total_usage, words

Verdict: TypeAlias = Literal["ok", "note", "bad"]

SMALL_WINDOW = 8192
"""Tokens; in less, syn's schema of a few tables or an agg of many rows may not fit."""
AT_ONCE = 4
"""Requests that are sent together."""
_MAX_TOKENS = 64
_RETRY = RetryPolicy(faults=1, refusals=2)
_ROWS = pd.DataFrame({"review": ["A warm and funny film.", "Two hours of boredom."]})
_ONE = _ROWS.head(1)
_FORMS: dict[str, Callable[..., pd.DataFrame]] = {
    "sem_filter": lambda **call: operators.sem_filter(_ONE, "{review} is positive", **call),
    "sem_map": lambda **call: operators.sem_map(_ONE, "The tone of {review}", choices=["good", "bad"], **call),
    "sem_extract": lambda **call: operators.sem_extract(_ONE, "review", {"subject": "what it is about"}, **call),
    "sem_topk": lambda **call: operators.sem_topk(_ROWS, "Which {review} is more positive?", K=1, **call),
}


@dataclass(frozen=True)
class Finding:
    """The result of one check.

    Attributes:
        what: its name.
        verdict: "ok", "note" if something works less well, or "bad" if it does not work.
        found: the fact.
        advice: what to do; "" if nothing.
    """

    what: str
    verdict: Verdict
    found: str
    advice: str = ""


@dataclass(frozen=True, repr=False)
class LMCheck(Public):
    """The result of :func:`check_lm`.

    Attributes:
        model: its name.
        findings: the results of the checks, in order.
        settings: the line to paste; "" if the model does not answer.
        requests: that were sent.
    """

    model: str
    findings: tuple[Finding, ...]
    settings: str = ""
    requests: int = 0

    @property
    def ok(self) -> bool:
        """Whether nothing is bad."""
        return all(finding.verdict != "bad" for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """As ``tagframe lm check --json`` prints it."""
        findings = [dict(vars(finding)) for finding in self.findings]
        return {"model": self.model, "ok": self.ok, "findings": findings, "settings": self.settings}

    def __repr__(self) -> str:
        lines = [f"{self.model}: {'usable' if self.ok else 'not usable'}, after {self.requests} small requests"]
        for finding in self.findings:
            lines.append(f"  {finding.verdict:<5}{finding.what:<19}{finding.found}")
            lines += [f"{'':26}{finding.advice}"] if finding.advice else []
        return "\n".join([*lines, *([f"Settings: {self.settings}"] if self.settings else [])])

    def _repr_html_(self) -> str:
        rows = [(finding.verdict, finding.what, finding.found, finding.advice) for finding in self.findings]
        names = ["verdict", "what", "found", "advice"]
        return rows_html(f"{self.model}\n{self.settings}", names, rows, words=set(names))


def check_lm(model: str | None = None, *, api_base: str | None = None, api_key: str | None = None) -> LMCheck:
    """Find out what a model and its server can do, by about a dozen small requests.

    Whether it is reachable, takes the key, how long its context is, whether it holds answers to a JSON schema, gives
    log probabilities, how long a short answer takes, how many it serves at once, whether its answers follow the form
    that operators ask for, and whether its price is known. No answer is stored.

    Args:
        model: a litellm model name; None for the configured model.
        api_base: the server's URL, if it is not that of the settings or the usual one.
        api_key: its key, if it is not in the settings or the provider's environment variable.

    Raises:
        NotConfigured: no model is set.
        InvalidArgument: a store is replayed, and there is no server.

    >>> check_lm("ollama/llama3.2")  # doctest: +SKIP
    """
    lm = get_lm() if model is None else LM(model, api_base=api_base or current().api_base, api_key=api_key)
    if lm.replays:
        raise InvalidArgument(f"{lm.model!r} sends nothing, so there is no server to check")
    lm, before = lm.using(store=None, progress=False), total_usage().sent
    lm.retry = _RETRY
    try:
        probed = _probe(lm)
    except NotConfigured as error:
        return LMCheck(lm.model, (Finding("key", "bad", str(error)),))
    except LMError as error:
        return LMCheck(lm.model, (_unreachable(error),), requests=total_usage().sent - before)
    forms = _forms(lm)
    findings = (
        Finding("reachable", "ok", lm.transport.endpoint),
        *_server(lm, probed, _takes_forms(lm)),
        *forms,
        _price(lm),
    )
    return LMCheck(lm.model, findings, _settings(lm, probed, api_base), total_usage().sent - before)


@dataclass(frozen=True)
class _Probed:
    """What a few small requests have shown.

    Attributes:
        window: the tokens that the model reads and writes in one request, or None.
        logprobs: whether it gives log probabilities.
        seconds: of one short request.
        at_once: how many of four such requests it serves together.
    """

    window: int | None
    logprobs: bool
    seconds: float
    at_once: int


def _probe(lm: LM) -> _Probed:
    """Send seven small requests, which no budget sees.

    Raises:
        LMError: the server does not answer.
        NotConfigured: a key or a URL is needed and none is set.
    """
    lm = lm.using(budget=None)
    lm.retry = RetryPolicy(faults=0, refusals=0)
    _answers(lm, ["Say hello."])  # the first also connects, and may load the model
    began = time.monotonic()
    _answers(lm, ["Name a colour."])
    one = time.monotonic() - began
    began = time.monotonic()
    _answers(lm, [f"Name colour {number}." for number in range(AT_ONCE)])
    together = time.monotonic() - began
    return _Probed(
        window=lm.context_window,
        logprobs=_gives_logprobs(lm),
        seconds=one,
        at_once=max(1, min(AT_ONCE, round(AT_ONCE * one / together))),
    )


def _answers(lm: LM, texts: Sequence[str], *, logprobs: bool = False) -> Completions[str]:
    prompts = [Prompt.of(f"{text} Answer in one word.") for text in texts]
    completions = lm.complete(prompts, max_tokens=_MAX_TOKENS, logprobs=logprobs)
    for completion in completions:
        if completion.error is not None and not isinstance(
            completion.error, AnswerRejected
        ):  # an answer cut off is one
            raise completion.error
    return completions


def _gives_logprobs(lm: LM) -> bool:
    try:
        return bool(_answers(lm, ["Name a fruit."], logprobs=True)[0].logprobs)
    except LMError:
        return False


def _takes_forms(lm: LM) -> bool:
    """Whether the server makes an answer follow a JSON schema that the prompt does not mention."""
    known = lm.takes_forms()  # as the operators' requests have shown
    if known is None:
        lm = lm.using()
        lm.structured = "json_schema"
        with lm.stream() as stream:
            form = words({"yes": "yes", "no": "no"})
            stream.complete(Batch([Prompt.of("Describe the rain.")], max_tokens=_MAX_TOKENS, form=form))
    return bool(known or lm.takes_forms())


def _unreachable(error: LMError) -> Finding:
    if isinstance(error, AuthenticationFailed):
        return Finding("key", "bad", str(error))
    if isinstance(error, ModelNotFound):
        return Finding("model", "bad", str(error))
    return Finding("reachable", "bad", str(error), "is the server running, and api_base= its address with /v1?")


def _server(lm: LM, probed: _Probed, takes_forms: bool) -> list[Finding]:
    window = probed.window
    few = "start the server with more: --ctx-size (llama.cpp), OLLAMA_CONTEXT_LENGTH, --max-model-len (vLLM)"
    more = "--parallel (llama.cpp) or OLLAMA_NUM_PARALLEL serves more"
    all_served = probed.at_once >= AT_ONCE
    return [
        Finding("context", "note", "not reported", "set context_window=, so that long rows are cut in time")
        if window is None
        else Finding("context", "ok", f"{window:,} tokens")
        if window >= SMALL_WINDOW
        else Finding("context", "note", f"{window:,} tokens", few),
        Finding("structured output", "note", "answers are free", "weak models then often miss the form")
        if not takes_forms
        else Finding("structured output", "ok", "the server enforces a JSON schema"),
        Finding("logprobs", "ok", "given")
        if probed.logprobs
        else Finding("logprobs", "note", "not given", "confidence= and cascades have less to go by"),
        Finding("latency", "ok" if probed.seconds < lm.timeout / 10 else "note", f"{probed.seconds:.2f} s an answer"),
        Finding("at once", "ok", f"{AT_ONCE} or more requests")
        if all_served
        else Finding("at once", "note", f"about {probed.at_once} of {AT_ONCE} requests", more),
    ]


def _forms(lm: LM) -> list[Finding]:
    """Whether the answers to each operator follow its form."""
    findings = []
    for name, ask in _FORMS.items():
        advice = "use a stronger model, or one whose server holds answers to a form"
        try:
            before = total_usage()
            with warnings.catch_warnings(action="ignore"):
                ask(lm=lm, on_error="keep")
            after = total_usage()
            if after.failed > before.failed:
                findings.append(Finding(name, "bad", "its answer did not follow the form, nor did its repair", advice))
            elif after.repaired > before.repaired:
                findings.append(Finding(name, "note", "its answer had to be repaired", advice))
            else:
                findings.append(Finding(name, "ok", "the answer follows the form"))
        except LMError as error:
            findings.append(Finding(name, "bad", str(error), advice))
    return findings


def _price(lm: LM) -> Finding:
    price = lm.price_in(lm.tier)
    if price is None:
        return Finding("price", "note", "not known", "limit calls= or tokens= of a Budget, or give LM(price=)")
    each = f"${price.tokens_in * 1e6:g} and ${price.tokens_out * 1e6:g} a million tokens in and out"
    return Finding("price", "ok", each)


def _settings(lm: LM, probed: _Probed, api_base: str | None) -> str:
    known = {"lm": lm.model, "api_base": api_base or current().api_base, "context_window": probed.window}
    if probed.at_once < AT_ONCE:
        known["concurrency"] = 2 * probed.at_once  # one is computed while the other is on its way
    return f"tf.configure({', '.join(f'{name}={value!r}' for name, value in known.items() if value is not None)})"

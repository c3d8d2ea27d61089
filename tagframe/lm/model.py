"""All calls to a language model go through :meth:`LM.complete`."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Unpack, cast, get_args

from tagframe.config import CallSettings, ModelSettings, Settings, checked, current
from tagframe.errors import DamagedStore, InvalidArgument, NotConfigured
from tagframe.lm import background
from tagframe.lm.batch_http import MAX_REQUESTS, BatchHTTP
from tagframe.lm.litellm_transport import LiteLLM
from tagframe.lm.openai_http import OpenAIHTTP, Served
from tagframe.lm.pacing import RetryPolicy, server_state
from tagframe.lm.prompt import Accept, Batch, Completions, Job, Prompt, Structured
from tagframe.lm.replay import REPLAY, ReplayStream, open_replayed, take
from tagframe.lm.reply import Transport
from tagframe.lm.store import IMPORTED, ResponseStore, open_store, warn_of_store, warned
from tagframe.lm.stream import Stream
from tagframe.lm.usage import Price, Tier, at_tier, price_of, provider_of, window_of

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    T = TypeVar("T", default=str)  # the answer itself, where nothing parses it

TransportName: TypeAlias = Literal["auto", "http", "litellm"]


# The OpenAI-compatible providers: the URL, and the beginning of litellm's environment variables.
_DIRECT = {
    "openai": ("https://api.openai.com/v1", "OPENAI"),
    # Servers on this machine, at the port that each listens at.
    "hosted_vllm": ("http://localhost:8000/v1", "HOSTED_VLLM"),
    "vllm": ("http://localhost:8000/v1", "HOSTED_VLLM"),
    "ollama": ("http://localhost:11434", "OLLAMA"),
    "ollama_chat": ("http://localhost:11434", "OLLAMA"),
    "llama.cpp": ("http://localhost:8080/v1", "LLAMA_CPP"),
    "llamafile": ("http://localhost:8080/v1", "LLAMAFILE"),
    "lm_studio": ("http://localhost:1234/v1", "LM_STUDIO"),
}


def connect(
    model: str,
    api_base: str | None = None,
    api_key: str | None = None,
    transport: TransportName = "auto",
    tier: Tier = "standard",
) -> Transport:
    """The transport of a model.

    OpenAI, servers on this machine (``ollama/…``, ``llama.cpp/…``, ``vllm/…``, ``lm_studio/…``) and any ``api_base``
    are called directly, every other provider through litellm.

    Raises:
        InvalidArgument: an unknown transport or a malformed ``api_base``.
        NotConfigured: the provider needs a key and none is set.
    """
    prefix, slash, rest = model.partition("/")
    if not slash and api_base is None and transport != "litellm" and provider_of(model) in (None, "openai"):
        prefix, rest = "openai", model
    usual, variable = _DIRECT.get(prefix, (None, "OPENAI")) if rest else (None, "OPENAI")
    if transport == "litellm" or (transport == "auto" and usual is None and api_base is None):
        if tier == "batch":
            raise InvalidArgument(
                f'tier="batch" needs a provider with OpenAI\'s batches, and {model!r} is called through litellm; give'
                " its OpenAI-compatible URL as api_base="
            )
        return LiteLLM(model, api_base, api_key, tier)
    given = (os.environ.get(f"{variable}_{end}") for end in ("BASE_URL", "API_BASE"))
    base = api_base or (usual and next(filter(None, given), usual))
    assert base is not None  # a provider without one was made for an api_base
    if prefix.startswith("ollama") and not base.rstrip("/").endswith("/v1"):
        base = base.rstrip("/") + "/v1"
    variable = f"{variable.removesuffix('_CPP')}_API_KEY"
    key = api_key or os.environ.get(variable)
    if not key and base == _DIRECT["openai"][0]:
        raise NotConfigured(
            f"{model!r} needs a key: set api_key= or the environment variable {variable}, or api_base= to use your own"
            " server"
        )
    name = rest if usual else model
    return BatchHTTP(name, base, key) if tier == "batch" else OpenAIHTTP(name, base, key, tier)


DEFAULT_TIMEOUTS: dict[Tier, float] = {"standard": 120.0, "flex": 900.0, "batch": 172_800.0}
"""Seconds for one request; of the flex tier as OpenAI recommends, of a batch twice its window."""
SECONDS_BETWEEN_TRIES = 10.0
"""After a server could not be reached that was asked for its models."""
_OWN = tuple(ModelSettings.__annotations__)
_OF_CALLS = tuple(CallSettings.__annotations__)


class LM:
    """A language model: prompts in, accepted answers or named errors out.

    ``store``, ``budget``, ``concurrency``, ``rpm``, ``tpm``, ``context_window`` and ``progress`` are those of
    :func:`tagframe.configure` and :func:`tagframe.context` at each call, unless given here. Each object has its own
    connection. It can be pickled, unless it has a budget; the pickle contains the ``api_key`` that was given here.

    Args:
        model: a litellm model name (``"openai/gpt-4o-mini"``), or ``"replay:STORE"``, which sends nothing and answers
            from a response store alone, or ``"replay:FILE.jsonl"``, from a file of recorded answers.
        api_base: the URL of an OpenAI-compatible server.
        api_key: its key; if None, the provider's environment variable is read.
        timeout: seconds for one request; if None, 120, in the flex tier 900, and two days for a batch.
        retry: how often and after what wait a failed request is sent again.
        price: dollars per token, for a model that is not in litellm's table.
        tier: ``"flex"`` sends requests in the provider's cheaper and slower tier; ``"batch"`` submits the prompts of a
            call as one batch, waits until the provider has answered it (up to a day), and takes its answers. Both cost
            about half. A process that is killed while it waits finds its batch again, through the store.
        structured: whether the form of answers is asked of the server (OpenAI's ``response_format``):
            ``"json_schema"``, ``"off"``, or ``"auto"``: a server of your own is asked from the first request on, until
            it shows that it does not take it; hosted models are asked where an answer is repaired. With a form, a model
            that reasons in the text of its answer cannot do so: use "off" for it.
        transport: ``"http"`` or ``"litellm"`` to override the choice by the model's name.
        extra_body: further fields of every request's body, such as ``{"seed": 7}`` or ``{"reasoning_effort": "low"}``.
        settings: ``store``, ``budget``, ``concurrency``, ``rpm``, ``tpm``, ``context_window``, ``max_tokens``,
            ``max_failed``, ``progress`` as in :class:`~tagframe.config.Settings`.

    Raises:
        InvalidArgument: a value that cannot be used.

    >>> LM("openai/gpt-4o-mini", api_key="secret", extra_body={"seed": 7})
    LM('openai/gpt-4o-mini', extra_body={'seed': 7})
    """

    operation = "chat"
    """What a request asks for, in the words of OpenTelemetry's conventions."""

    def __init__(
        self,
        model: str,
        *,
        api_base: str | None = None,
        api_key: str | None = None,
        timeout: float | None = None,
        retry: RetryPolicy | None = None,
        price: Price | None = None,
        tier: Tier = "standard",
        transport: TransportName = "auto",
        extra_body: Mapping[str, Any] | None = None,
        structured: Structured = "auto",
        **settings: Unpack[ModelSettings],
    ) -> None:
        if not isinstance(model, str) or not model.strip():
            raise InvalidArgument(f"a model must be a name such as 'openai/gpt-4o-mini'; got {model!r}")
        if timeout is not None and not (isinstance(timeout, Real) and timeout > 0):
            raise InvalidArgument(f"timeout must be a number of seconds, more than 0; got {timeout!r}")
        own = {"tier": (tier, Tier), "structured": (structured, Structured), "transport": (transport, TransportName)}
        for name, (value, allowed) in own.items():
            if value not in get_args(allowed):
                raise InvalidArgument(f"{name} must be one of {get_args(allowed)}; got {value!r}")
        self.model = model
        self.structured = structured
        self.tier: Tier = tier
        self.timeout = timeout or DEFAULT_TIMEOUTS[tier]
        self.retry = retry or RetryPolicy()
        self.price = price
        self.extra_body = dict(extra_body or {})
        self._settings = checked(settings, _OWN, "model setting")
        self._connection = (api_base, api_key, transport)
        self._transport: Transport | None = None

    def __repr__(self) -> str:
        endpoint = f", api_base={self._transport.endpoint!r}" if self._transport and self._connection[0] else ""
        extra = f", extra_body={self.extra_body!r}" if self.extra_body else ""
        return f"LM({self.model!r}{endpoint}{extra})"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_transport": None}  # the copy connects itself

    def using(self, **settings: Unpack[ModelSettings]) -> LM:
        """The same model and connection with other settings: ``store``, ``budget``, ``concurrency``, …"""
        return self._with(_settings=self._settings | checked(settings, _OWN, "model setting"))

    def with_body(self, **fields: Any) -> LM:
        """The same model and connection with further fields in every request's body."""
        return self._with(extra_body=self.extra_body | fields)

    def _with(self, **attributes: Any) -> LM:
        changed: LM = object.__new__(type(self))
        changed.__dict__ |= self.__dict__ | attributes
        return changed

    # --- asking ---------------------------------------------------------------------------------------------------

    def complete(
        self,
        prompts: Sequence[Prompt],
        accept: Accept[T] | None = None,
        *,
        temperature: float = 0.0,
        max_tokens: int | None = None,
        logprobs: bool = False,
        description: str = "",
    ) -> Completions[T]:
        """Answer the prompts: stored answers are reused, and each other distinct prompt is sent once.

        Works in a script, in any thread, and inside a running event loop (which it blocks; see :meth:`acomplete`). If
        several calls of this process ask the same prompt at once, it is sent once for all of them, by the patience and
        limit of the first; where that fails or is cut off, the others ask with their own. Answers that another
        process stores meanwhile are taken from the store; only what both have in flight is sent twice.

        Args:
            prompts: any number, in any order; identical ones are asked once.
            accept: parses an answer's text into a value, or raises :class:`~tagframe.errors.AnswerRejected` (or any
                other exception) to reject it; the model is then shown the reason and asked once more. Called once for
                each distinct prompt, in a copy of the caller's context, from a thread of the call's own.
            temperature: of sampling.
            max_tokens: of an answer, without its reasoning: if an endpoint's first answers end inside their reasoning,
                the limit is raised for it. An answer that is cut off is not accepted. Stored answers are used under
                any limit.
            logprobs: whether to ask for the log probabilities of the answer's tokens.
            description: the name of this call in the progress bar and in :func:`tagframe.usage`.

        Returns:
            One completion per prompt, in the prompts' order; a failed one has an ``error``. The list has the call's
            ``usage``.

        Raises:
            InvalidArgument: something is not a prompt.
            NotConfigured: the model needs a key or a URL and none is set.
            NotAStore: ``store`` names a file of another program.
            ReplayMiss: a store that is replayed lacks answers.
        """
        with self.stream(description) as stream:
            return stream.complete(Batch(prompts, accept, temperature, max_tokens, logprobs))

    async def acomplete(
        self,
        prompts: Sequence[Prompt],
        accept: Accept[T] | None = None,
        *,
        temperature: float = 0.0,
        max_tokens: int | None = None,
        logprobs: bool = False,
        description: str = "",
    ) -> Completions[T]:
        """:meth:`complete`, awaited."""
        async with await asyncio.to_thread(self.stream, description) as stream:
            return await stream.acomplete(Batch(prompts, accept, temperature, max_tokens, logprobs))

    def stream(self, description: str = "") -> Stream:
        """An open call, for code that adds prompts as answers arrive; :meth:`complete` is a stream of one batch.

        Raises:
            NotAStore: ``store`` names a file of another program.
        """
        return ReplayStream(self, description) if self.replays else Stream(self, description)

    # --- what a call needs ----------------------------------------------------------------------------------------

    def settings(self) -> Settings:
        """The current settings for a call of this model; a batch has all its requests at once."""
        settings = replace(current(), **self._settings)
        return replace(settings, concurrency=MAX_REQUESTS) if self.tier == "batch" else settings

    @property
    def context_window(self) -> int | None:
        """The context window in tokens: as set, else as a server of your own says, else from litellm's table."""
        setting = self.settings().context_window
        if self.replays or setting:
            return setting
        own = None
        with contextlib.suppress(NotConfigured):  # which is said when something is asked
            own = self._served()
        return (own.window if own else None) or window_of(self.model)

    def _served(self) -> Served | None:
        """What a server of the user's own says of the model, asked once in a process; None if it cannot be reached."""
        transport = self.transport
        if not isinstance(transport, OpenAIHTTP) or not transport.own_server:
            return Served()
        state = server_state(transport.endpoint, self.model)
        with state.listing:
            if state.served is None and time.monotonic() - state.listed_at >= SECONDS_BETWEEN_TRIES:
                state.served = background.submit(transport.served()).result()
                state.listed_at = time.monotonic()
            return state.served

    def takes_forms(self) -> bool | None:
        """Whether the server holds answers to the form that it is asked for, as they have shown; None until then."""
        return server_state(self.transport.endpoint, self.model).structured

    @property
    def replays(self) -> bool:
        """Whether answers come from a store only, and nothing is sent."""
        return self.model.startswith(REPLAY)

    @property
    def stored_as(self) -> tuple[str, str]:
        """The endpoint and the model under which answers are stored; the model as its server names it, if otherwise."""
        if self.replays:
            return IMPORTED, ""
        endpoint, own = self.transport.endpoint, self._served()
        if own is None:  # it cannot be reached: its answers are those of the model that it had
            store = self.open_store()
            name = "" if store is None else store.last_name(endpoint, self.model)
        else:
            name = own.name
        return endpoint, f"{self.model} ({name})" if name else self.model

    def price_in(self, tier: Tier) -> Price | None:
        """The price of the model in a tier; None if it is not known."""
        return price_of(self.model, tier) if self.price is None else at_tier(self.price, tier)

    @property
    def transport(self) -> Transport:
        """The connection, made at first use.

        Raises:
            NotConfigured: a key or a URL is needed and none is set.
        """
        if self._transport is None:
            api_base, api_key, name = self._connection
            self._transport = connect(self.model, api_base, api_key, name, self.tier)
        return self._transport

    def open_store(self) -> ResponseStore | None:
        """The store of a call; None if there is none, or, with a warning, if it cannot be used.

        Raises:
            NotAStore: a file of another program.
        """
        if self.replays:
            return open_replayed(self.model.removeprefix(REPLAY))
        path = self.settings().store
        if path is None:
            return None
        try:
            return open_store(path)
        except (DamagedStore, OSError, sqlite3.Error) as error:
            warn_of_store(f"no response store: {error}")
            return None

    def take_stored(self, jobs: Sequence[Job[Any]], store: ResponseStore) -> bool:
        """Complete those jobs of one batch that have an acceptable answer in the store.

        If ``accept`` rejects a stored answer, the prompt is sent again. Gives False, with a warning, if the store
        cannot be read.
        """
        if self.replays:
            take(jobs, store)
            return True
        stored = None
        endpoint, model = self.stored_as
        with warned(store, "read"):
            stored = store.lookup([job.key for job in jobs], endpoint, model, jobs[0].batch.stored)
        for job in jobs:
            if stored is not None and (answer := stored.get(job.key)) is not None:
                job.take_stored(answer)
        return stored is not None


def get_lm(step: str | None = None, /, **overrides: Unpack[CallSettings]) -> LM:
    """The model of the current settings.

    Args:
        step: the step that uses it, ``"syn"`` or an operator's name: its model in ``lm_for`` if it has one, else
            ``lm``.
        **overrides: keywords of a call, as in :func:`tagframe.configure`.

    Raises:
        NotConfigured: no model is set.
        InvalidArgument: a wrong value, or a setting that does not apply to a call of a model.
    """
    given = checked(overrides, _OF_CALLS, "call setting")
    settings = current(**given)
    lm = settings.model(step)
    if lm is None:
        raise NotConfigured(
            "no language model is set: use tagframe.configure(lm='openai/gpt-4o-mini'), lm= in the call, the"
            " environment variable TAGFRAME_LM, or --lm in the shell; add api_base= for your own server;"
            " lm='replay:STORE' uses stored answers only"
        )
    own = {name: value for name, value in given.items() if name in _OWN}
    if isinstance(lm, str):
        lm = LM(lm, api_base=settings.api_base, api_key=settings.api_key)
    return cast(LM, lm).using(**own)

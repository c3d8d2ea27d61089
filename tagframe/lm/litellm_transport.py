"""The transport for every provider that is not OpenAI-compatible: litellm."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from functools import cached_property
from typing import Any

from tagframe.errors import ConnectionFailed, LMRequestFailed, MalformedResponse, RequestTimedOut
from tagframe.lm.prompt import Parameters, Prompt
from tagframe.lm.reply import Reply, ending_of, error_message, failure, raise_error_in, read_reply
from tagframe.lm.usage import Tier
from tagframe.quiet import quiet

_TIMEOUT_SECONDS = 86_400.0
_OF_A_CHOICE = ("index", "native_finish_reason", "error")
_REASONS = ("finish_reason", "stop_reason", "stopReason", "finishReason", "done_reason")
"""Where providers say why an answer ended: OpenAI and most others, Anthropic, Bedrock, Gemini, Ollama."""


class LiteLLM:
    """One model by its litellm name; keys come from the environment as litellm documents, unless given.

    Args:
        model: as ``"anthropic/claude-sonnet-4-5"``.
        api_base: the provider's URL, if it is not the usual one.
        api_key: the key, or None for the provider's environment variable.
        tier: sent as ``service_tier`` if it is "flex".
    """

    def __init__(
        self, model: str, api_base: str | None = None, api_key: str | None = None, tier: Tier = "standard"
    ) -> None:
        self.model = model
        self.endpoint = api_base.rstrip("/") if api_base else f"litellm:{model.partition('/')[0]}"
        self.own_server = False
        self._litellm = _litellm()  # here, in the caller's thread: seconds that would stop all other requests
        self._api_base = api_base
        self._api_key = api_key
        self.in_batches = False
        self._tier = {"service_tier": "flex"} if tier == "flex" else {}

    async def send(self, prompt: Prompt, parameters: Parameters) -> Reply:
        """See :meth:`tagframe.lm.reply.Transport.send`."""
        raw = _RawResponse()
        fields = {"messages": prompt.to_dicts(), **self._tier, **parameters.to_dict()}
        try:
            response = await self._call("acompletion", logger_fn=raw, **fields)
        except LMRequestFailed:
            if raw.choices:  # what a response of status 200 reports as its error has no status of its own
                raise_error_in(raw.body, self._secrets())
            raise
        body = raw.correct(response.model_dump(warnings=False))
        return read_reply(body, tools=parameters.tools, secrets=self._secrets())

    async def embed(self, texts: list[str]) -> dict[str, Any]:
        """See :meth:`tagframe.lm.openai_http.OpenAIHTTP.embed`."""
        body: dict[str, Any] = (await self._call("aembedding", input=texts)).model_dump(warnings=False)
        raise_error_in(body, self._secrets())
        return body

    async def _call(self, function: str, **fields: Any) -> Any:
        try:
            return await getattr(self._litellm, function)(
                model=self.model,
                api_base=self._api_base,
                api_key=self._api_key,
                timeout=_TIMEOUT_SECONDS,  # the limit is the caller's
                num_retries=0,  # retries are ours, alike for both transports
                max_retries=0,
                drop_params=True,
                **fields,
            )
        except Exception as error:  # litellm passes on what its providers' clients raise
            raise self._failure(error) from None  # whose messages may show the key

    def _failure(self, error: Exception) -> LMRequestFailed:
        """The same error that the direct transport would have raised.

        litellm wraps its providers' errors, often under another status; the original response is further down.
        """
        import aiohttp
        import httpx
        import openai

        causes = _chain(error)
        responses = [response for cause in causes if (response := _response(cause)) is not None]
        if responses and responses[-1].status_code != 200:
            response = responses[-1]
            headers = {name.lower(): value for name, value in response.headers.items()}
            return failure(response.status_code, _reason(response, error), headers, self._secrets())
        if any(isinstance(cause, openai.APITimeoutError | httpx.TimeoutException | TimeoutError) for cause in causes):
            return RequestTimedOut(f"no answer in time from {self.endpoint}")
        lost = openai.APIConnectionError | httpx.TransportError | aiohttp.ClientConnectionError | ConnectionError
        if any(isinstance(cause, lost) for cause in causes):
            failed = ConnectionFailed(f"no answer from {self.endpoint}: {type(causes[-1]).__name__}")
            failed.connected = not any(isinstance(cause, httpx.ConnectError) for cause in causes)
            return failed
        status = getattr(error, "status_code", 500)
        if isinstance(status, int) and 400 <= status < 500:  # refused by litellm itself, as for a missing key
            return failure(status, str(error), {}, self._secrets())
        return MalformedResponse(f"the server's answer is no chat completion: {type(error).__name__}", 200)

    def _secrets(self) -> tuple[str, ...]:
        # litellm reads the key from the environment itself, so every such variable may be echoed.
        names = [name for name in os.environ if name.endswith(("_API_KEY", "_TOKEN"))]
        return tuple(value for value in (self._api_key, *(os.environ[name] for name in names)) if value)


class _RawResponse:
    """The provider's own response, as litellm gives it to loggers.

    litellm numbers choices anew, drops errors beside them, and takes an end that it does not know for "stop".
    """

    def __init__(self) -> None:
        self._response: object = None

    def __call__(self, details: dict[str, Any]) -> None:
        self._response = details.get("original_response")

    @cached_property
    def body(self) -> dict[str, Any]:
        """The response's body; empty where litellm did not give it."""
        with contextlib.suppress(ValueError, RecursionError):
            body = json.loads(self._response) if isinstance(self._response, str) else None
            return body if isinstance(body, dict) else {}
        return {}

    @property
    def choices(self) -> list[Any]:
        """The choices of a chat completion in OpenAI's form."""
        choices = self.body.get("choices")
        return choices if isinstance(choices, list) else []

    def correct(self, completion: dict[str, Any]) -> dict[str, Any]:
        """litellm's completion, with what it leaves out."""
        made = [choice for choice in completion.get("choices") or () if isinstance(choice, dict)]
        candidates = self.body.get("candidates")
        own_choices = self.choices or (candidates if isinstance(candidates, list) else []) or [self.body]
        for choice, own in zip(made, own_choices, strict=False):
            if not isinstance(own, dict):
                continue
            choice |= {name: own[name] for name in _OF_A_CHOICE if name in own}
            fields = choice.get("provider_specific_fields")
            native = fields.get("native_finish_reason") if isinstance(fields, dict) else None
            reason = next((own[name] for name in _REASONS if name in own), native)
            # An end at a call of a tool stays litellm's: it is how it asks some providers for JSON.
            if ending_of(reason) not in ("whole", "tool"):
                choice["finish_reason"] = reason
        return completion | ({"error": self.body["error"]} if "error" in self.body else {})


def _chain(error: BaseException | None) -> list[BaseException]:
    chain: list[BaseException] = []
    while error is not None and error not in chain:
        chain.append(error)
        error = error.__cause__ or error.__context__
    return chain


def _response(error: BaseException) -> Any | None:
    """The HTTP response of an error; those of litellm's own exceptions are not real ones."""
    response = getattr(error, "response", None)
    if type(error).__module__.startswith("litellm.") or not hasattr(response, "status_code"):
        return None
    return response


def _reason(response: Any, error: Exception) -> str:
    try:
        return error_message(response.content)
    except Exception:  # httpx raises for a response whose body was streamed
        return str(error).partition("\n\n")[0]


def _litellm() -> Any:
    # Deprecations inside litellm are not the user's; and one thread imports, the others wait. The import would fetch a
    # price table from the network.
    with quiet(LITELLM_LOCAL_MODEL_COST_MAP="True"):
        if "litellm" not in sys.modules:
            import litellm

            litellm.Message(content="")  # builds its pydantic schema now, with its warnings, rather than at first use
    module: Any = sys.modules["litellm"]
    module.suppress_debug_info = True  # it prints advertisements on errors otherwise
    return module

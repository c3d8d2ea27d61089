"""Choice of the transport by a model's name."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tagframe.errors import InvalidArgument, NotConfigured
from tagframe.lm.batch_http import BatchHTTP
from tagframe.lm.litellm_transport import LiteLLM
from tagframe.lm.openai_http import OpenAIHTTP
from tagframe.lm.pricing import Tier, provider_of
from tagframe.lm.reply import Transport

TransportName: TypeAlias = Literal["auto", "http", "litellm"]


@dataclass(frozen=True)
class _Provider:
    base: str | None  # None for any server whose URL is given
    base_variables: tuple[str, ...]
    key_variables: tuple[str, ...]
    key_needed: bool = False


# The OpenAI-compatible providers, with litellm's environment variables.
_DIRECT = {
    "openai": _Provider(
        "https://api.openai.com/v1", ("OPENAI_BASE_URL", "OPENAI_API_BASE"), ("OPENAI_API_KEY",), key_needed=True
    ),
    # Servers on this machine, at the port that each listens at.
    "hosted_vllm": _Provider("http://localhost:8000/v1", ("HOSTED_VLLM_API_BASE",), ("HOSTED_VLLM_API_KEY",)),
    "vllm": _Provider("http://localhost:8000/v1", ("HOSTED_VLLM_API_BASE",), ("HOSTED_VLLM_API_KEY",)),
    "ollama": _Provider("http://localhost:11434", ("OLLAMA_API_BASE",), ("OLLAMA_API_KEY",)),
    "ollama_chat": _Provider("http://localhost:11434", ("OLLAMA_API_BASE",), ("OLLAMA_API_KEY",)),
    "llama.cpp": _Provider("http://localhost:8080/v1", ("LLAMA_CPP_API_BASE",), ("LLAMA_API_KEY",)),
    "llamafile": _Provider("http://localhost:8080/v1", ("LLAMAFILE_API_BASE",), ("LLAMAFILE_API_KEY",)),
    "lm_studio": _Provider("http://localhost:1234/v1", ("LM_STUDIO_API_BASE",), ("LM_STUDIO_API_KEY",)),
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
    if transport not in ("auto", "http", "litellm"):
        raise InvalidArgument(f"transport must be 'auto', 'http' or 'litellm'; got {transport!r}")
    prefix, slash, rest = model.partition("/")
    if not slash and api_base is None and transport != "litellm" and provider_of(model) in (None, "openai"):
        prefix, rest = "openai", model
    provider = _DIRECT.get(prefix) if rest else None
    if transport == "litellm" or (transport == "auto" and provider is None and api_base is None):
        if tier == "batch":
            raise InvalidArgument(
                f'tier="batch" needs a provider with OpenAI\'s batches, and {model!r} is called through litellm; give'
                " its OpenAI-compatible URL as api_base="
            )
        return LiteLLM(model, api_base, api_key, tier)
    if provider is None:
        provider, rest = _Provider(None, (), ("OPENAI_API_KEY",)), model
    base = api_base or _first(provider.base_variables) or provider.base
    assert base is not None  # a provider without one was made for an api_base
    if prefix.startswith("ollama") and not base.rstrip("/").endswith("/v1"):
        base = base.rstrip("/") + "/v1"
    key = api_key or _first(provider.key_variables)
    if key is None and provider.key_needed and base == provider.base:
        raise NotConfigured(
            f"{model!r} needs a key: set api_key= or the environment variable {provider.key_variables[0]}, or api_base="
            " to use your own server"
        )
    return BatchHTTP(rest, base, key) if tier == "batch" else OpenAIHTTP(rest, base, key, tier)


def _first(variables: tuple[str, ...]) -> str | None:
    return next((os.environ[name] for name in variables if os.environ.get(name)), None)

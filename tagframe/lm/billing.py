"""The tokens that a provider bills for a reply, by the names and the arithmetic of each provider's usage.

- OpenAI, Azure, Groq, Mistral, vLLM, llama.cpp: ``prompt_tokens`` contains ``prompt_tokens_details.cached_tokens``, and
  ``completion_tokens`` contains the reasoning.
- xAI and Gemini's compatible endpoint: reasoning stands beside ``completion_tokens``; ``total_tokens`` has all of it.
- DeepSeek: ``prompt_tokens`` contains ``prompt_cache_hit_tokens``.
- Anthropic and Bedrock: ``input_tokens`` (``inputTokens``) is what was neither read from the cache nor written to it;
  ``cache_read_input_tokens`` and ``cache_creation_input_tokens`` stand beside it. litellm adds both to
  ``prompt_tokens``.
- Gemini's own form: ``promptTokenCount`` contains ``cachedContentTokenCount``; ``thoughtsTokenCount`` stands beside
  ``candidatesTokenCount``.
- Cohere: ``billed_units``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_PROMPT = ("prompt_tokens", "promptTokenCount")
_INPUT = ("input_tokens", "inputTokens")
_OUTPUT = ("completion_tokens", "output_tokens", "outputTokens", "candidatesTokenCount")
_TOTAL = ("total_tokens", "totalTokens", "totalTokenCount")
_CACHED_WITHIN = ("cached_tokens", "prompt_cache_hit_tokens", "cachedContentTokenCount", "cached_input_tokens")
_CACHED_BESIDE = ("cache_read_input_tokens", "cacheReadInputTokens", "cacheReadInputTokenCount")
_WRITTEN = ("cache_creation_input_tokens", "cacheWriteInputTokens", "cacheWriteInputTokenCount", "cache_write_tokens")
_REASONING = ("reasoning_tokens", "thoughtsTokenCount")
_SIMPLE = frozenset(("prompt_tokens", "completion_tokens", "total_tokens"))
_PARTS = ("prompt_tokens_details", "input_tokens_details", "completion_tokens_details", "output_tokens_details")


@dataclass(frozen=True, slots=True)
class Billed:
    """The tokens of one reply.

    Attributes:
        tokens_in: of the prompt, with what was read from the cache or written to it; None if not given.
        tokens_out: of the answer, with its reasoning; None if not given.
        cached: how many of ``tokens_in`` the provider read from its cache.
        written: how many of ``tokens_in`` it wrote to its cache.
    """

    tokens_in: int | None = None
    tokens_out: int | None = None
    cached: int = 0
    written: int = 0


NOT_GIVEN = Billed()


def billed(usage: Any) -> Billed:
    """What a reply's ``usage`` bills; whatever is no count is taken as not given.

    >>> billed({"prompt_tokens": 279, "completion_tokens": 6, "total_tokens": 3285}).tokens_out
    3006
    >>> billed({"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 2000})
    Billed(tokens_in=2010, tokens_out=5, cached=2000, written=0)
    """
    if not isinstance(usage, dict):
        return NOT_GIVEN
    if _SIMPLE.issuperset(usage):  # as of most servers, and in a tenth of the time
        tokens_in, tokens_out, total = (
            _first(usage, (name,)) for name in ("prompt_tokens", "completion_tokens", "total_tokens")
        )
        if tokens_in is not None and (total is None or total == tokens_in + (tokens_out or 0)):
            return Billed(tokens_in, tokens_out)
    if isinstance(units := usage.get("billed_units"), dict):
        usage = units
    parts: dict[str, Any] = {}
    for name in _PARTS:
        if isinstance(part := usage.get(name), dict):
            parts |= part
    within = _first(usage, _CACHED_WITHIN) or _first(parts, _CACHED_WITHIN) or 0
    beside = _first(usage, _CACHED_BESIDE) or 0
    written = _first(usage, _WRITTEN) or _first(parts, _WRITTEN) or 0
    tokens_in, total = _first(usage, _PROMPT), _first(usage, _TOTAL)
    tokens_out = _first(usage, _OUTPUT)
    apart = tokens_in is None and not within
    tokens_in = _first(usage, _INPUT) if tokens_in is None else tokens_in
    if tokens_in is None and (beside or written):
        tokens_in = 0  # all of it was in the cache
    if tokens_in is not None and beside + written:
        whole = tokens_in + beside + written
        if apart or beside + written > tokens_in or total == whole + (tokens_out or 0):
            tokens_in = whole
    reasoning = _first(usage, _REASONING) or _first(parts, _REASONING) or 0
    if total is not None and tokens_in is not None:
        tokens_out = max(tokens_out or 0, total - tokens_in) or None
    elif reasoning > (tokens_out or 0) or "thoughtsTokenCount" in usage:  # it cannot be a part of the answer
        tokens_out = (tokens_out or 0) + reasoning
    most = tokens_in or 0
    cached = min(max(within, beside), most)
    return Billed(tokens_in, tokens_out, cached, min(written, most - cached))


def _first(fields: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    for name in names:
        count = fields.get(name)
        if type(count) is int and count > 0:
            return count
    return None

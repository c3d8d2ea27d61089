"""Prices, context windows and token estimates; litellm's table is read without importing litellm."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from tagframe.lm.prompt import Parameters, Prompt

BYTES_PER_TOKEN = 3
"""UTF-8 bytes per token, on the low side (English has about 4), so that estimates are rather too high."""
TOKENS_PER_MESSAGE = 5
TEMPLATE_TOKENS = 30
_WITHOUT_PRICES = {
    "hosted_vllm", "huggingface", "infinity", "litellm_proxy", "llama.cpp", "llamafile", "lm_studio", "ollama",
    "ollama_chat", "openai_like", "text-embedding-inference", "vllm", "xinference",
}  # fmt: skip
ASSUMED_ANSWER = 256
"""Tokens assumed for an answer, if there is no limit and nothing was measured."""


@dataclass(frozen=True)
class Price:
    """Dollars per token."""

    tokens_in: float
    tokens_out: float

    def of(self, tokens_in: int, tokens_out: int) -> float:
        """The price of these numbers of tokens, in dollars."""
        return tokens_in * self.tokens_in + tokens_out * self.tokens_out


@lru_cache(maxsize=64)
def price_of(model: str) -> Price | None:
    """The price of a model by its litellm name; None if litellm's table does not have it.

    >>> price_of("openai/gpt-4o-mini")
    Price(tokens_in=1.5e-07, tokens_out=6e-07)
    >>> price_of("openai/my-own-model") is None
    True
    """
    entry = _entry(model, "input_cost_per_token")
    if entry is None:
        return None
    return Price(float(entry["input_cost_per_token"]), float(entry.get("output_cost_per_token") or 0.0))


@lru_cache(maxsize=64)
def window_of(model: str) -> int | None:
    """The tokens that a model reads in one request, by its litellm name; None if litellm's table does not have it.

    >>> window_of("openai/gpt-4o-mini")
    128000
    """
    entry = _entry(model, "max_input_tokens")
    tokens = None if entry is None else entry["max_input_tokens"]
    return tokens if isinstance(tokens, int) and tokens > 0 else None


@lru_cache(maxsize=64)
def provider_of(model: str) -> str | None:
    """litellm's provider of a model that is named without one, as ``"gpt-4o-mini"``; None if unknown."""
    entry = _table().get(model)
    return entry.get("litellm_provider") if isinstance(entry, dict) else None


@lru_cache(maxsize=1)
def providers() -> frozenset[str]:
    """The names of providers that model names begin with: those of litellm's table, and some without an entry."""
    named = {entry.get("litellm_provider") for entry in _table().values() if isinstance(entry, dict)}
    return frozenset({str(name) for name in named if name} | _WITHOUT_PRICES)


def _entry(model: str, field: str) -> dict[str, Any] | None:
    """A model's entry in litellm's table, under its name with or without the provider, if it has the field."""
    table = _table()
    for name in (model, model.partition("/")[2]):
        entry = table.get(name)
        if isinstance(entry, dict) and field in entry:
            return entry
    return None


def _table() -> dict[str, object]:
    # find_spec does not run the package: importing litellm takes seconds, its table milliseconds. It is not kept.
    spec = importlib.util.find_spec("litellm")
    if spec is None or spec.origin is None:
        return {}
    file = Path(spec.origin).with_name("model_prices_and_context_window_backup.json")
    try:
        table: dict[str, object] = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return {}
    return table


def estimate_tokens(prompt: Prompt) -> int:
    """The prompt's tokens, estimated by its length: no tokenizer fits every model, and tokenizing would be slow."""
    return -(-_bytes(prompt) // BYTES_PER_TOKEN) + TOKENS_PER_MESSAGE * len(prompt.messages)


def tokens_of(text: str) -> int:
    """A text's tokens, estimated by its length."""
    return -(-len(text.encode(errors="replace")) // BYTES_PER_TOKEN)


def most_tokens(prompt: Prompt) -> int:
    """An upper bound on the prompt's tokens: no token is shorter than a byte, and a chat template adds a few."""
    return _bytes(prompt) + 2 * TOKENS_PER_MESSAGE * len(prompt.messages) + TEMPLATE_TOKENS


def _bytes(prompt: Prompt) -> int:
    size = 0
    for message in prompt.messages:
        content = message.content
        texts = [content] if isinstance(content, str) else [str(part.get("text", "")) for part in content]
        size += sum(len(text) if text.isascii() else len(text.encode(errors="replace")) for text in texts)
    return size


def estimate_answer(parameters: Parameters) -> int:
    """The estimate for an answer's tokens, at most its limit."""
    return parameters.limit or ASSUMED_ANSWER

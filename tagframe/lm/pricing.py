"""Prices, context windows and token estimates; litellm's table is read without importing litellm."""

from __future__ import annotations

import importlib.util
import json
import zlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

from tagframe.lm.prompt import Content, Parameters, Prompt

BYTES_PER_TOKEN = 3
"""UTF-8 bytes per token, on the low side (English has about 4), so that estimates are rather too high."""
TOKENS_PER_MESSAGE = 5
TEMPLATE_TOKENS = 30
Tier: TypeAlias = Literal["standard", "flex", "batch"]
"""What OpenAI and others call the tier of a request: the cheaper ones are slower, and cost about half."""
_WITHOUT_PRICES = {
    "hosted_vllm", "huggingface", "infinity", "litellm_proxy", "llama.cpp", "llamafile", "lm_studio", "ollama",
    "ollama_chat", "openai_like", "text-embedding-inference", "vllm", "xinference",
}  # fmt: skip
ASSUMED_ANSWER = 256
"""Tokens assumed for an answer, if there is no limit and nothing was measured."""


@dataclass(frozen=True)
class Price:
    """Dollars per token.

    Attributes:
        tokens_in: of a prompt.
        tokens_out: of an answer, with its reasoning.
        cached: of a prompt's tokens that the provider reads from its cache; as ``tokens_in`` if None.
        written: of those that it writes to its cache; as ``tokens_in`` if None.
    """

    tokens_in: float
    tokens_out: float
    cached: float | None = None
    written: float | None = None

    def of(self, tokens_in: int, tokens_out: int, cached: int = 0, written: int = 0) -> float:
        """The price of these numbers of tokens, in dollars; ``cached`` and ``written`` are parts of ``tokens_in``."""
        dear = 0.0 if self.written is None else written * (self.written - self.tokens_in)
        return tokens_in * self.tokens_in + tokens_out * self.tokens_out + dear - self.saved(cached)

    def saved(self, cached: int) -> float:
        """The dollars by which these cached tokens are cheaper than others."""
        return 0.0 if self.cached is None else cached * (self.tokens_in - self.cached)

    @property
    def most_in(self) -> Price:
        """The same price where a prompt's tokens cost the most that they can: a budget reserves by it."""
        return Price(max(self.tokens_in, self.written or 0.0, self.cached or 0.0), self.tokens_out)


def dollars_of(price: Price | None, tokens_in: int, tokens_out: int, cached: int = 0, written: int = 0) -> float | None:
    """The price of these numbers of tokens, as :meth:`Price.of` has it; None if unknown."""
    return None if price is None else price.of(tokens_in, tokens_out, cached, written)


_SUFFIXES = {"standard": ("",), "flex": ("_flex", "_batches"), "batch": ("_batches", "_flex")}
HALF = 0.5
"""The factor for the flex and batch tiers where litellm's table does not have their prices (OpenAI, Anthropic)."""


@lru_cache(maxsize=64)
def price_of(model: str, tier: Tier = "standard") -> Price | None:
    """The price of a model by its litellm name; None if litellm's table does not have it.

    >>> price_of("openai/gpt-4o-mini")
    Price(tokens_in=1.5e-07, tokens_out=6e-07, cached=7.5e-08, written=None)
    >>> price_of("openai/gpt-4o-mini", "batch").tokens_in
    7.5e-08
    >>> price_of("openai/my-own-model") is None
    True
    """
    entry = _entry(model, "input_cost_per_token")
    if entry is None:
        return None

    def cost(name: str) -> float | None:
        costs = [entry.get(f"{name}{suffix}") for suffix in _SUFFIXES[tier]]
        usual = entry.get(name)
        found = next((one for one in costs if isinstance(one, int | float)), None)
        if found is not None or not isinstance(usual, int | float):
            return found
        return float(usual) * HALF

    own = [cost(f"{name}_cost_per_token") for name in ("input", "output")]
    return Price(
        own[0] or 0.0, own[1] or 0.0, cost("cache_read_input_token_cost"), cost("cache_creation_input_token_cost")
    )


def at_tier(price: Price, tier: Tier) -> Price:
    """A user's own price in a tier: half of it in the cheaper ones."""
    if tier == "standard":
        return price
    rates = (getattr(price, name) for name in price.__dataclass_fields__)
    return Price(*(None if rate is None else rate * HALF for rate in rates))  # type: ignore[arg-type]


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
    return -(-size_of(prompt) // BYTES_PER_TOKEN) + TOKENS_PER_MESSAGE * len(prompt.messages)


def tokens_of(text: str) -> int:
    """A text's tokens, estimated by its length."""
    return -(-len(text.encode(errors="replace")) // BYTES_PER_TOKEN)


def most_tokens(prompt: Prompt) -> int:
    """An upper bound on the prompt's tokens: no token is shorter than a byte, and a chat template adds a few."""
    return size_of(prompt) + 2 * TOKENS_PER_MESSAGE * len(prompt.messages) + TEMPLATE_TOKENS


def size_of(prompt: Prompt) -> int:
    """The bytes of a prompt's texts."""
    size = 0
    for message in prompt.messages:  # once a request: a generator would take twice as long
        for text in (message.content,) if isinstance(message.content, str) else _texts(message.content):
            size += len(text) if text.isascii() else len(text.encode(errors="replace"))
    return size


def _texts(content: Content) -> list[str]:
    return [content] if isinstance(content, str) else [str(part.get("text", "")) for part in content]


BITS_A_TOKEN = 18
"""No vocabulary of today has more than 2**18 tokens, so that a token says at most so much."""


def least_tokens(prompt: Prompt) -> int:
    """A number of tokens that a prompt's texts are not read in fewer of: a tokenizer joins no two words, and says of
    texts without spaces no more in a token than it can."""
    texts = [text for message in prompt.messages for text in _texts(message.content)]
    words = sum(len(text.split()) for text in texts)
    packed = len(zlib.compress("\n".join(texts).encode(errors="replace"), 6))
    return max(words, packed * 8 // BITS_A_TOKEN)


def estimate_answer(parameters: Parameters) -> int:
    """The estimate for an answer's tokens, at most its limit."""
    return parameters.limit or ASSUMED_ANSWER

"""Why an answer ended: ``finish_reason``, by the names that providers give it."""

from __future__ import annotations

import re
from typing import Any, Literal, TypeAlias

Ending: TypeAlias = Literal["whole", "tool", "cut", "withheld", "broken", "unknown"]
"""Complete, a tool call, cut off at a token limit, withheld by a filter, broken off, or not known."""

_WHOLE = (
    "stop", "completed",  # OpenAI and most others: vLLM, llama.cpp, Groq, Mistral, DeepSeek, Ollama; its Responses
    "end_turn", "stop_sequence",  # Anthropic, Bedrock; "stop_sequence" also Cohere, TGI and watsonx
    "complete",  # Cohere, OCI
    "eos", "eos_token",  # Together, TGI, watsonx
    "end_of_text", "endoftext", "stop_sequence_reached",  # Aleph Alpha, AI21
    "finish", "finished", "stop_criteria_met",  # Bedrock's Titan
    "eos_found", "stop_string_found",  # LM Studio
    "normal",  # Baidu
)  # fmt: skip
_TOOL = ("tool_calls", "tool_call", "tool_use", "function_call")
_CUT = (
    "length",
    "max_tokens", "model_context_window_exceeded", "compaction",  # Anthropic; "max_tokens" also Gemini, Cohere, Bedrock
    "max_output_tokens",  # OpenAI's Responses
    "model_length",  # Mistral
    "token_limit",  # watsonx
    "error_limit",  # Cohere, of the context
    "maximum_tokens",  # Aleph Alpha
    "max_predicted_tokens_reached", "context_length_reached",  # LM Studio
)  # fmt: skip
_WITHHELD = (
    "content_filter", "content_filtered",  # OpenAI, Azure, Groq; Bedrock, Titan
    "refusal",  # Anthropic
    "guardrail_intervened",  # Bedrock
    "safety", "recitation", "language", "blocklist", "prohibited_content", "spii", "model_armor",  # Gemini
    "error_toxic",  # Cohere
    "sensitive",  # Zhipu
    "blacklist",  # GigaChat
)  # fmt: skip
_BROKEN = (
    "error",  # OpenRouter, Mistral, vLLM, Cohere, watsonx
    "network_error",  # Zhipu
    "insufficient_system_resource",  # DeepSeek
    "abort", "repetition",  # vLLM, SGLang
    "load", "unload",  # Ollama: the model was loaded, and not asked
    "timeout", "user_cancel", "time_limit", "cancelled", "not_finished",  # Cohere, watsonx
    "pause_turn",  # Anthropic
    "malformed_model_output", "malformed_tool_use",  # Bedrock
    "finish_reason_unspecified", "other", "malformed_function_call", "malformed_response", "unexpected_tool_call",
    "too_many_tool_calls", "missing_thought_signature",  # Gemini
    "user_stopped", "model_unloaded", "failed",  # LM Studio
)  # fmt: skip
_NONE_GIVEN = ("", "null")


def _plain(reason: str) -> str:
    """A name as it is compared: without case and hyphens, as "STOP_SEQUENCE", "stop-sequence" and "stopSequence"."""
    return re.sub(r"[\W_]+", "", reason).lower()


_KNOWN: dict[Ending, tuple[str, ...]] = {
    "whole": (*_WHOLE, *_NONE_GIVEN), "tool": _TOOL, "cut": _CUT, "withheld": _WITHHELD, "broken": _BROKEN,
}  # fmt: skip
_ENDINGS: dict[str, Ending] = {_plain(name): ending for ending, names in _KNOWN.items() for name in names}


def ending_of(reason: Any) -> Ending:
    """What a ``finish_reason`` says of an answer; None, which servers send that give no reason, that it is whole.

    >>> ending_of("STOP"), ending_of("max-tokens"), ending_of("network_error"), ending_of(7)
    ('whole', 'cut', 'broken', 'unknown')
    """
    if reason is None:
        return "whole"
    return _ENDINGS.get(_plain(reason), "unknown") if isinstance(reason, str) else "unknown"

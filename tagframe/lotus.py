"""LOTUS on our LM layer: every LOTUS operator gains deduplication, the store, resume, limits and named failures."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from tagframe.config import NOT_GIVEN
from tagframe.errors import InvalidArgument, LMError, MissingExtra
from tagframe.lm import LM, Completions, Prompt, TokenLogprob, Usage, get_lm
from tagframe.lm.pricing import estimate_tokens

if TYPE_CHECKING:
    from lotus.models import LM as LotusLM

MAX_CONTEXT = 128_000
"""LOTUS's own default for a model's context, in tokens; ``sem_agg`` packs rows up to it."""


def lm(
    model: str | LM | None = None,
    *,
    temperature: float = 0.0,
    max_tokens: int | None = None,
    max_ctx_len: int = MAX_CONTEXT,
    tokenizer: Any = None,
    **settings: Any,
) -> LotusLM:
    """A ``lotus.models.LM`` whose requests go through :meth:`tagframe.lm.LM.complete`.

    Where prompts fail for good, the others are finished and stored first; then one
    :class:`~tagframe.errors.LMError` counts the failures, and the same operator run again pays for them alone.

    Args:
        model: a litellm model name, ``"replay:STORE"`` or an :class:`~tagframe.lm.LM`; the configured one where None.
        temperature: of sampling.
        max_tokens: of an answer; LOTUS's default (512, or 8192 for reasoning models) where None.
        max_ctx_len: the model's context in tokens.
        tokenizer: a ``tokenizers.Tokenizer`` for LOTUS to count tokens with.
        settings: ``api_base``, ``api_key``, ``store``, ``budget``, ``concurrency``, … as in
            :func:`tagframe.configure`.

    Raises:
        MissingExtra: where LOTUS is not installed.
        NotConfigured: where no model is given or set.

    >>> import lotus, tagframe.lotus  # doctest: +SKIP
    >>> lotus.settings.configure(lm=tagframe.lotus.lm("openai/gpt-4o-mini", budget=2.0))  # doctest: +SKIP
    """
    given = NOT_GIVEN if model is None else model
    return _adapter()(get_lm(lm=given, **settings), temperature, max_tokens, max_ctx_len, tokenizer)  # type: ignore[no-any-return]


@cache
def _adapter() -> Any:
    """The subclass, made at first use: importing LOTUS takes seconds, and changes warnings and logging."""
    try:
        import lotus.models
        from lotus.types import LMOutput
    except ImportError as error:
        raise MissingExtra("LOTUS is not installed: pip install 'tagframe[lotus]'") from error

    class TagframeLM(lotus.models.LM):  # type: ignore[misc]
        """LOTUS's LM, sending nothing itself."""

        def __init__(self, inner: LM, temperature: float, max_tokens: int | None, context: int, tokenizer: Any) -> None:
            super().__init__(
                model=inner.model,
                temperature=temperature,
                max_tokens=max_tokens,
                max_ctx_len=context,
                max_batch_size=inner.settings().concurrency,
                tokenizer=tokenizer,
            )
            self.inner = inner

        def __call__(
            self,
            messages: list[list[dict[str, Any]]],
            show_progress_bar: bool = True,
            progress_bar_desc: str = "Processing uncached messages",
            **kwargs: Any,
        ) -> Any:
            """One answer a list of messages, in order; see :func:`tagframe.lotus.lm` for failures."""
            fields = {**self.kwargs, **kwargs, **kwargs.get("kwargs", {})}
            fields.pop("kwargs", None)  # LOTUS's top-k cascade hands its fields on under this name
            logprobs = bool(fields.pop("logprobs", False))
            fields.pop("top_logprobs", None)
            prompts = [Prompt.from_dicts(prompt) for prompt in messages]
            completions = self._inner(fields, show_progress_bar).complete(
                prompts,
                temperature=fields["temperature"],
                max_tokens=fields["max_completion_tokens"],
                logprobs=logprobs,
                description=progress_bar_desc,
            )
            self._count(prompts, completions)
            _raise_failures(completions)
            return LMOutput(
                outputs=[completion.text for completion in completions],
                logprobs=[_logprobs(completion.logprobs) for completion in completions] if logprobs else None,
            )

        def _inner(self, fields: dict[str, Any], show_progress_bar: bool) -> LM:
            extra = {k: v for k, v in fields.items() if k not in ("temperature", "max_completion_tokens")}
            if extra.get("response_format") is not None:
                extra["response_format"] = _response_format(extra["response_format"])
            inner = self.inner.with_body(**{name: value for name, value in extra.items() if value is not None})
            return inner if show_progress_bar else inner.using(progress=False)

        def _count(self, prompts: Sequence[Prompt], completions: Completions[str]) -> None:
            usage = completions.usage
            self.stats.cache_hits += usage.stored + usage.deduplicated
            _add(self.stats.physical_usage, usage)
            _add(self.stats.virtual_usage, usage)
            for prompt, completion in zip(prompts, completions, strict=True):
                if (
                    completion.origin != "sent" and completion.text is not None
                ):  # what it would have cost, by its length
                    spared = Usage(
                        tokens_in=estimate_tokens(prompt), tokens_out=estimate_tokens(Prompt.of(completion.text))
                    )
                    _add(self.stats.virtual_usage, spared)
            self._check_usage_limit(self.stats.virtual_usage, self.virtual_usage_limit, "virtual")
            self._check_usage_limit(self.stats.physical_usage, self.physical_usage_limit, "physical")

    return TagframeLM


def _raise_failures(completions: Completions[str]) -> None:
    failures = [completion.error for completion in completions if completion.error is not None]
    if failures:
        done = len(completions) - len(failures)
        raise LMError(
            f"{len(failures)} of {len(completions)} prompts failed, the first with: {failures[0]}. The other {done} are"
            " answered; with a response store, the same call again asks only for those that failed"
        ) from failures[0]


def _add(total: Any, usage: Usage) -> None:
    total.prompt_tokens += usage.tokens_in
    total.completion_tokens += usage.tokens_out
    total.total_tokens += usage.tokens_in + usage.tokens_out
    total.total_cost += usage.dollars or 0.0


def _response_format(response_format: Any) -> Any:
    if isinstance(response_format, dict):
        return response_format
    from litellm.utils import type_to_response_format_param

    converted = type_to_response_format_param(response_format)
    if converted is None:
        raise InvalidArgument(f"response_format is a pydantic model or OpenAI's object; got {response_format!r}")
    return converted


def _logprobs(tokens: tuple[TokenLogprob, ...] | None) -> list[Any]:
    from litellm.types.utils import ChatCompletionTokenLogprob, TopLogprob

    if tokens is None:
        raise LMError("the server gave no log probabilities, which this operator needs (a cascade)")
    return [
        ChatCompletionTokenLogprob(
            token=token.token,
            logprob=token.logprob,
            top_logprobs=[TopLogprob(token=name, logprob=value) for name, value in token.top],
        )
        for token in tokens
    ]

"""LOTUS on tagframe's LM layer: its operators gain deduplication, the store, resuming, limits and named failures.

LOTUS's operators that tagframe lacks are here under their names. They use tagframe's embedder and need no index.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import pandas as pd

from tagframe import config
from tagframe.config import CallSettings, SearchSettings
from tagframe.errors import InvalidArgument, LMError, needing
from tagframe.lm import LM, Completions, Prompt, TokenLogprob, Usage, get_lm

if TYPE_CHECKING:
    from lotus.models import LM as LotusLM

MAX_CONTEXT = 128_000
"""LOTUS's own default for a model's context, in tokens; ``sem_agg`` packs rows up to it."""


def lm(
    model: str | LM | None = None,
    *,
    temperature: float = 0.0,
    max_ctx_len: int = MAX_CONTEXT,
    tokenizer: Any = None,
    **settings: Unpack[CallSettings],
) -> LotusLM:
    """A ``lotus.models.LM`` whose requests go through :meth:`tagframe.lm.LM.complete`.

    If prompts fail permanently, the others are finished and stored first. Then one :class:`~tagframe.errors.LMError`
    counts the failures; if the same operator is run again, only these are paid for.

    Args:
        model: a litellm model name, ``"replay:STORE"`` or an :class:`~tagframe.lm.LM`; the configured one if None.
        temperature: of sampling.
        max_ctx_len: the model's context in tokens.
        tokenizer: a ``tokenizers.Tokenizer`` with which LOTUS counts tokens.
        settings: ``api_base``, ``api_key``, ``store``, ``budget``, ``concurrency``, ``max_tokens``, … as in
            :func:`tagframe.configure`. ``max_tokens`` of None is LOTUS's default, 512, or 8192 for reasoning models.

    Raises:
        MissingExtra: LOTUS is not installed.
        NotConfigured: no model is given or set.

    >>> import lotus, tagframe.lotus  # doctest: +SKIP
    >>> lotus.settings.configure(lm=tagframe.lotus.lm("openai/gpt-4o-mini", budget=2.0))  # doctest: +SKIP
    """
    given: CallSettings = settings if model is None else {**settings, "lm": model}
    inner = get_lm(**given)
    max_tokens = inner.settings().max_tokens
    return _adapter()(inner, temperature, max_tokens, max_ctx_len, tokenizer)  # type: ignore[no-any-return]


@cache
def _adapter() -> Any:
    """The subclass; it is made at first use, since importing LOTUS takes seconds and changes warnings and logging."""
    lotus = _lotus()
    from lotus.types import LMOutput

    class TagframeLM(lotus.models.LM):  # type: ignore[misc, name-defined]
        """A LOTUS LM that sends nothing itself."""

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
            """One answer for each list of messages, in order; see :func:`tagframe.lotus.lm` for failures."""
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
                if completion.origin != "sent" and completion.text is not None:
                    # What it would have cost, by its length.
                    tokens = prompt.tokens, Prompt.of(completion.text).tokens
                    _add(self.stats.virtual_usage, Usage(tokens_in=tokens[0], tokens_out=tokens[1]))
            self._check_usage_limit(self.stats.virtual_usage, self.virtual_usage_limit, "virtual")
            self._check_usage_limit(self.stats.physical_usage, self.physical_usage_limit, "physical")

    return TagframeLM


def sem_cluster_by(
    frame: pd.DataFrame, col_name: Hashable, ncentroids: int, *, niter: int = 20, **settings: Unpack[SearchSettings]
) -> pd.DataFrame:
    """The rows with a column ``cluster_id``, by the similarity of their texts: LOTUS's ``sem_cluster_by`` (k-means).

    Args:
        frame: any frame; it is not changed.
        col_name: the column whose texts are clustered; a row without text is in no cluster.
        ncentroids: the number of clusters, at most the number of rows with text.
        niter: rounds of k-means.
        **settings: ``embedder``, as in :func:`tagframe.configure`.

    Raises:
        InvalidArgument: there are fewer rows than clusters, or there is a column ``cluster_id`` already.
        MissingExtra: LOTUS is not installed.
        ColumnNotFound: there is no such column.
        NotConfigured: no embedding model is available.
    """
    from tagframe.operators.search import texts_of

    texts = {row: text for row, text in enumerate(texts_of(frame, col_name)) if text is not None}
    if isinstance(ncentroids, bool) or not isinstance(ncentroids, int) or not 1 <= ncentroids <= max(1, len(texts)):
        raise InvalidArgument(
            f"ncentroids must be from 1 to {len(texts)}, the number of rows with text; got {ncentroids!r}"
        )
    if "cluster_id" in frame.columns:
        raise InvalidArgument("the frame already has a column 'cluster_id'; rename it, or drop it")
    labels: list[Any] = [None] * len(frame)
    _lotus()
    if len(texts):
        with _on_lotus(settings) as indexed:
            column = pd.DataFrame({"text": list(texts.values())})
            clustered = indexed(column, "text").sem_cluster_by("text", ncentroids, niter=niter)  # type: ignore[operator]
        for row, number in zip(texts, clustered["cluster_id"], strict=True):
            labels[row] = int(number)
    return frame.assign(cluster_id=pd.array(labels, dtype="Int64"))


def sem_partition_by(
    frame: pd.DataFrame, partition_fn: Callable[[pd.DataFrame], list[int]], **settings: Unpack[SearchSettings]
) -> pd.DataFrame:
    """The rows with a column ``_lotus_partition_id`` from a partition function: LOTUS's ``sem_partition_by``.

    Args:
        frame: any frame; it is not changed.
        partition_fn: such as ``lotus.utils.cluster("title", 2)``; the index that it needs is made automatically.
        **settings: ``embedder``, ``lm``, …, as in :func:`tagframe.configure`.

    Raises:
        MissingExtra, NotConfigured: as :func:`sem_cluster_by`.
    """
    if not callable(partition_fn):
        raise InvalidArgument(
            f"partition_fn must be a function from a frame to a number for each row; got {partition_fn!r}"
        )
    with _on_lotus(settings) as indexed:
        plain = indexed(frame.reset_index(drop=True).copy(), None)
        numbers = plain.sem_partition_by(partition_fn)["_lotus_partition_id"]  # type: ignore[operator]
    return frame.assign(_lotus_partition_id=numbers.array)


def _lotus() -> Any:
    with needing("this operator needs LOTUS: pip install 'tagframe[lotus]'"):
        import lotus
        import lotus.models
        import lotus.vector_store
    return lotus


@contextmanager
def _on_lotus(settings: SearchSettings) -> Iterator[Callable[[pd.DataFrame, str | None], pd.DataFrame]]:
    """For the block, LOTUS with tagframe's model and embedder; yields a function that gives a frame its indexes."""
    lotus = _lotus()
    from tagframe.embed import encoded
    from tagframe.operators.text_nearness import embedder as embedder_in_force

    with config.context(**settings), tempfile.TemporaryDirectory() as folder:
        embedder = embedder_in_force()

        class TagframeRM(lotus.models.RM):  # type: ignore[misc, name-defined]
            """A LOTUS retrieval model that embeds nothing itself."""

            def _embed(self, docs: Any) -> Any:
                return encoded(embedder, [str(doc) for doc in docs], "passage")

        class Indexes(dict[str, str]):
            """The folder of each column's index, which is made at first use."""

            def __init__(self, frame: pd.DataFrame) -> None:
                super().__init__()
                self._frame = frame

            def __missing__(self, column: str) -> str:
                index = str(Path(folder, str(len(self))))
                texts = self._frame[column].astype(object)
                lotus.settings.vs.index(texts, lotus.settings.rm(texts.tolist()), index)
                self[column] = index
                return index

        def indexed(frame: pd.DataFrame, column: str | None) -> pd.DataFrame:
            frame.attrs = {"index_dirs": Indexes(frame.copy())}
            if column is not None:
                assert frame.attrs["index_dirs"][column]
            return frame

        model = lm() if config.current().lm is not None else None
        with lotus.settings.context(lm=model, rm=TagframeRM(), vs=lotus.vector_store.FaissVS(), enable_cache=False):
            yield indexed


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
        raise InvalidArgument(f"response_format must be a pydantic model or OpenAI's object; got {response_format!r}")
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

"""Embedding models of providers and servers.

A batch of texts is one request. It is sent by :meth:`tagframe.lm.LM.complete`, with the same retries, rates, budgets,
errors and :func:`tagframe.usage` as every other call. Each text's vector is kept in the response store.
"""

from __future__ import annotations

import base64
import contextlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from tagframe.config import current
from tagframe.embed.protocol import Kind, check_kind, unit
from tagframe.errors import InvalidArgument, LMRequestFailed, MalformedResponse, ReplayMiss
from tagframe.lm.model import LM
from tagframe.lm.prompt import Message, Parameters, Prompt, request_keys
from tagframe.lm.quote import ASSUMED_SECONDS, Quote, QuoteEnds
from tagframe.lm.replay import REPLAY, open_replayed
from tagframe.lm.reply import Billed, Reply, Transport, billed, in_message
from tagframe.lm.store import ResponseStore, StoredAnswer, warned
from tagframe.lm.usage import dollars_of, price_table

MAX_BATCH_TEXTS = 512
"""The most texts in a request; if a server refuses that many, the number is halved from then on."""
MAX_BATCH_BYTES = 100_000
"""UTF-8 bytes of a request's texts, about 30,000 tokens, unless one text alone has more."""
_REFUSED = (400, 413, 422)
_CONCURRENCY = 64
"""After this many requests, the vectors are stored before more are sent."""

_quoted: ContextVar[list[Quote] | None] = ContextVar("quoted", default=None)


@contextlib.contextmanager
def quoted_embeddings() -> Iterator[list[Quote]]:
    """Within the block, embedding models send nothing.

    The cost of texts without a stored vector is added to the list, and :class:`~tagframe.lm.QuoteEnds` is raised:
    invented vectors would be stored like real ones.
    """
    quotes: list[Quote] = []
    token = _quoted.set(quotes)
    try:
        yield quotes
    finally:
        _quoted.reset(token)


_WITHOUT_PRICES = {
    "hosted_vllm", "huggingface", "infinity", "litellm_proxy", "llama.cpp", "llamafile", "lm_studio", "ollama",
    "ollama_chat", "openai_like", "text-embedding-inference", "vllm", "xinference",
}  # fmt: skip


def embeds_for(model: str) -> bool:
    """Whether a name belongs to a provider that litellm knows, as ``"openai/text-embedding-3-small"``.

    >>> embeds_for("openai/text-embedding-3-small"), embeds_for("BAAI/bge-small-en-v1.5")
    (True, False)
    """
    provider, slash, name = model.partition("/")
    return bool(slash and name) and provider in _providers()


@lru_cache(maxsize=1)
def _providers() -> frozenset[str]:
    """The names of providers that model names begin with: those of litellm's table, and some without an entry."""
    named = {entry.get("litellm_provider") for entry in price_table().values() if isinstance(entry, dict)}
    return frozenset({str(name) for name in named if name} | _WITHOUT_PRICES)


class EmbeddingModel:
    """An embedding model of a provider or of your own server, for :func:`tagframe.configure`.

    ``store``, ``budget``, ``concurrency``, ``rpm`` and ``tpm`` are the current settings at each call, unless given
    here.

    Args:
        model: a litellm model name, as ``"openai/text-embedding-3-small"`` or ``"ollama/nomic-embed-text"``.
        api_base: the URL of an OpenAI-compatible server.
        api_key: its key; the provider's environment variable where None.
        prompts: what stands before a text, by its kind, for models that need it: ``{"query": "query: ", "passage":
            "passage: "}`` for E5.
        options: as :class:`tagframe.lm.LM` takes them: ``timeout``, ``retry``, ``price``, ``budget``, ``rpm``, …

    Attributes:
        name: the model's name, with the server if ``api_base`` is given, and the prompts; vectors are stored under it.

    Raises:
        InvalidArgument: a value that cannot be used.
        NotConfigured: a key or a URL is needed and none is set.

    >>> EmbeddingModel("openai/text-embedding-3-small", api_key="secret")
    EmbeddingModel('openai/text-embedding-3-small')
    """

    def __init__(
        self,
        model: str,
        *,
        api_base: str | None = None,
        api_key: str | None = None,
        prompts: Mapping[Kind, str] | None = None,
        **options: Any,
    ) -> None:
        if not set(prompts or ()) <= set(get_args(Kind)):
            raise InvalidArgument(f"prompts are for the kinds {get_args(Kind)}; got {prompts!r}")
        self._lm = _AskedForVectors(model, api_base=api_base, api_key=api_key, **options)
        self.model, self._batch, self._size = model, MAX_BATCH_TEXTS, 0
        self._parameters = Parameters(extra={"embedding": model})
        endpoint = self._lm.transport.endpoint
        self._prompts = dict(prompts or {})
        self.name = model if api_base is None else f"{model} at {endpoint}"
        if self._prompts:
            self.name += f" with {sorted(self._prompts.items())}"

    def __repr__(self) -> str:
        return f"EmbeddingModel({self.name!r})"

    @property
    def dimension(self) -> int:
        """The length of a vector; found by embedding one text.

        Raises:
            LMError: as :meth:`encode`.
        """
        return self._size or self.encode(["dimension"]).shape[1]

    def encode(self, texts: Sequence[str], kind: Kind = "passage") -> npt.NDArray[np.float32]:
        """The vectors of ``texts``: shape (n, dimension), float32, rows of length 1, zeros for an empty text.

        Each distinct text is sent once, and not at all if the response store has its vector.

        Args:
            texts: any.
            kind: which of the prompts stands before the texts.

        Raises:
            LMError: a request failed for good, or the budget is spent; paid answers are kept.
            ReplayMiss: a store is replayed (``lm="replay:STORE"``) and has no vector for a text.
            InvalidArgument: ``texts`` is not a list of texts, or another kind.
        """
        check_kind(kind)
        if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
            raise InvalidArgument(f"texts must be a list of texts; got {texts!r:.200}")
        prompt = self._prompts.get(kind, "")
        prompted = [_sendable(prompt + text) if text.strip() else "" for text in texts]
        distinct = list(dict.fromkeys(text for text in prompted if text))
        lm = current().lm
        replayed = lm.removeprefix(REPLAY) if isinstance(lm, str) and lm.startswith(REPLAY) else None
        store = self._lm.open_store() if replayed is None else open_replayed(replayed)
        vectors = self._stored(distinct, store, anywhere=replayed is not None)
        missing = [text for text in distinct if text not in vectors]
        quotes = _quoted.get()
        if missing and quotes is not None:
            quotes.append(self._quote(len(texts), len(distinct), missing))
            raise QuoteEnds(f"a quote cannot go on without the vectors of {len(missing)} texts; so far: {quotes}")
        if missing and replayed is not None:
            raise ReplayMiss(
                f"{replayed!r} has no vector of {self.name} for {len(missing)} of {len(distinct)} texts, the first"
                f" {missing[0]!r:.80}; nothing is sent while a store is replayed"
            )
        vectors.update(self._sent(missing, store))
        sizes = {len(vector) for vector in vectors.values()} | ({self._size} if self._size else set())
        if len(sizes) > 1:
            raise InvalidArgument(f"{self.name} gives vectors of several lengths: {sorted(sizes)}")
        self._size = min(sizes, default=0)
        nothing = np.zeros(self.dimension, dtype=np.float32)
        rows = [vectors.get(text, nothing) for text in prompted]
        return np.stack(rows) if rows else np.empty((0, len(nothing)), dtype=np.float32)

    def expect(self, texts: Sequence[str]) -> None:
        """Called before texts are embedded in several parts, so that a quote counts all of them.

        Raises:
            QuoteEnds: within :func:`quoted_embeddings`, where some have no vector yet.
        """
        if _quoted.get() is not None:
            self.encode(texts)

    def _stored(
        self, texts: Sequence[str], store: ResponseStore | None, *, anywhere: bool
    ) -> dict[str, npt.NDArray[np.float32]]:
        if store is None or not texts:
            return {}
        keys = self._keys(texts)
        where = (None, None) if anywhere else (self._lm.transport.endpoint, self.model)
        known: dict[bytes, StoredAnswer] = {}
        with warned(store, "read"):
            known = store.lookup(keys, *where)
        return {text: _vectors(known[key].text, 1)[0] for key, text in zip(keys, texts, strict=True) if key in known}

    def _sent(self, texts: Sequence[str], store: ResponseStore | None) -> dict[str, npt.NDArray[np.float32]]:
        """Request the vectors of texts; a batch that the server refuses is sent again in halves."""
        lm = self._lm.using(store=None, progress=False)
        vectors: dict[str, npt.NDArray[np.float32]] = {}
        work = [(text, text) for text in texts]  # a text, and what of it is sent
        at_once = _CONCURRENCY
        while work:
            batches, at_once = _batches(work, self._batch)[:at_once], _CONCURRENCY
            work = work[sum(map(len, batches)) :]
            prompts = [Prompt(tuple(Message("user", part) for _, part in batch)) for batch in batches]
            failed: Exception | None = None
            for batch, completion in zip(batches, lm.complete(prompts, max_tokens=1, description="embed"), strict=True):
                (text, sent), *others = batch
                if completion.text is not None and completion.ok:
                    vectors_of = dict(
                        zip([text for text, _ in batch], _vectors(completion.text, len(batch)), strict=True)
                    )
                    self._keep(store, vectors_of, completion.usage.tokens_in // len(batch))
                    vectors.update(vectors_of)
                elif _is_too_much(completion.error) and others:
                    self._batch, at_once = max(1, min(self._batch, len(batch) // 2)), 1
                    work += batch
                elif _is_too_much(completion.error) and len(sent) > 1:
                    work.append((text, sent[: len(sent) // 2]))
                else:
                    failed = failed or completion.error
            if failed is not None:
                raise failed
        return vectors

    def _keep(self, store: ResponseStore | None, vectors: dict[str, npt.NDArray[np.float32]], tokens: int) -> None:
        """Store vectors, with the tokens of each text."""
        if store is not None and store.writable:
            answers = [StoredAnswer(_text(vector), None, tokens, 0) for vector in vectors.values()]
            with warned(store, "written"):
                source = store.source(self._lm.transport.endpoint, self.model, self.model)
                store.put([(key, source, answer) for key, answer in zip(self._keys(vectors), answers, strict=True)])

    def _keys(self, texts: Iterable[str]) -> list[bytes]:
        """The keys of stored vectors; they include the model, so that a replay never mixes two models."""
        return request_keys([Prompt.of(text) for text in texts], self._parameters)

    def _quote(self, rows: int, distinct: int, missing: Sequence[str]) -> Quote:
        tokens = sum(Prompt.of(text).tokens for text in missing)
        calls = len(_batches([(text, text) for text in missing], self._batch))
        price = self._lm.price_in(self._lm.tier)
        return Quote(
            rows=rows,
            calls=calls,
            deduplicated=rows - distinct,
            stored=distinct - len(missing),
            tokens_in=tokens,
            dollars=dollars_of(price, tokens, 0) if missing else 0.0,
            seconds=math.ceil(calls / self._lm.settings().concurrency) * ASSUMED_SECONDS,
            calls_at_most=calls,
            whole=False,
        )


class _AskedForVectors(LM):
    """An LM whose prompts are batches of texts, and whose answers are their vectors in Base64."""

    operation = "embeddings"

    @property
    def transport(self) -> Transport:
        """The connection, wrapped for texts."""
        return _Vectors(super().transport)


class _Vectors:
    """A transport that embeds the messages of a prompt."""

    def __init__(self, inner: Any) -> None:
        self.endpoint: str = inner.endpoint
        self.own_server = self.in_batches = False
        self._inner = inner

    async def send(self, prompt: Prompt, parameters: Parameters) -> Reply:
        """See :meth:`tagframe.lm.reply.Transport.send`."""
        body = await self._inner.embed([str(message.content) for message in prompt.messages])
        return _read(body, len(prompt.messages))


def _read(body: Any, texts: int) -> Reply:
    """The vectors in an embedding response, as Base64 of float32 (rows, d), with all types checked.

    Raises:
        MalformedResponse: it does not have one finite vector per text, all of one length.
    """
    try:
        rows = sorted(body["data"], key=lambda row: row["index"])
        vectors = np.array([row["embedding"] for row in rows], dtype="<f4")
    except (LookupError, TypeError, ValueError) as error:
        raise MalformedResponse(f"the server's answer has no vectors: {in_message(body)}", 200) from error
    if vectors.ndim != 2 or len(vectors) != texts or not vectors.size or not np.isfinite(vectors).all():
        raise MalformedResponse(
            f"the server gave vectors of shape {vectors.shape} for {texts} texts, or no numbers", 200
        )
    return Reply(_text(vectors), billed=Billed(billed(body.get("usage")).tokens_in, 0))


def _batches(work: Sequence[tuple[str, str]], most: int) -> list[list[tuple[str, str]]]:
    batches: list[list[tuple[str, str]]] = []
    size = 0
    for pair in work:
        more = len(pair[1].encode())
        if not batches or len(batches[-1]) >= most or size + more > MAX_BATCH_BYTES:
            batches.append([])
            size = 0
        batches[-1].append(pair)
        size += more
    return batches


def _is_too_much(error: Exception | None) -> bool:
    """Whether a server refused a batch because it has too many texts, or a text is too long."""
    return isinstance(error, LMRequestFailed) and error.status in _REFUSED


def _sendable(text: str) -> str:
    """The text without lone surrogates, which JSON cannot hold; "" if it is blank."""
    return text.encode("utf-8", "replace").decode().strip()


def _text(vector: npt.NDArray[np.float32]) -> str:
    return base64.b64encode(vector.astype("<f4").tobytes()).decode()


def _vectors(text: str, rows: int) -> npt.NDArray[np.float32]:
    """The reverse of :func:`_text`, for the rows of an answer: shape (rows, d), of length 1."""
    vectors = np.frombuffer(base64.b64decode(text), dtype="<f4").reshape(rows, -1)
    return unit(vectors.astype(np.float64)).astype(np.float32)

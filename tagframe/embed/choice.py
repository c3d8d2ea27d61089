"""From the setting ``embedder`` to an embedder."""

from __future__ import annotations

import functools
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tagframe.config import Settings, current
from tagframe.embed.local import distinct_of
from tagframe.embed.minilm import DEFAULT_MODEL, INT8, default_model
from tagframe.embed.protocol import ANONYMOUS, Embedder, Kind, kind_if_taken, unit
from tagframe.embed.provider import EmbeddingModel, embeds_for
from tagframe.embed.sentence_transformer import SentenceTransformerEmbedder, encode_of
from tagframe.errors import EmbedderNotFound, EmbedderWarning, InvalidArgument, warn


class _ObjectEmbedder:
    """Any object with an ``encode`` method, such as a loaded SentenceTransformer, made an :class:`Embedder`.

    Such an object promises no length of its vectors, so they are brought to length 1.
    """

    def __init__(self, model: Any, number: int) -> None:
        self.model = model
        self._lock = threading.Lock()
        self.name = f"{ANONYMOUS}{type(model).__qualname__} {number}"

    @functools.cached_property
    def dimension(self) -> int:
        return int(self.encode(["dimension"]).shape[1])

    def encode(self, texts: Sequence[str], kind: Kind = "passage") -> npt.NDArray[np.float32]:
        distinct = distinct_of(texts) or ["dimension"]
        with self._lock:
            encode = encode_of(self.model, kind)
            vectors = np.asarray(encode(distinct, **kind_if_taken(encode, kind)), dtype=np.float32)
        if vectors.ndim != 2 or len(vectors) != len(distinct):
            raise InvalidArgument(
                f"{self.name}: encode must return an array of shape (n, d); got {vectors.shape} for "
                f"{len(distinct)} texts"
            )
        row = {text: number for number, text in enumerate(distinct)}
        result: npt.NDArray[np.float32] = unit(vectors).astype(np.float32)[[row[text] for text in texts]]
        return result


_lock = threading.Lock()
_by_model: dict[tuple[str | None, ...], Embedder] = {}
_objects: list[_ObjectEmbedder] = []


def get_embedder(settings: Settings | None = None) -> Embedder | None:
    """The embedder in force; None if the default is not available, with a warning once per process.

    Args:
        settings: None for those in force here.

    Raises:
        EmbedderNotFound: a model that was named cannot be loaded.
        NotConfigured: a provider's model was named that needs a key or a URL, and none is set.
        InvalidArgument: the name is both a folder and a provider's model, or ``embedder`` is not a name, a folder or an
            object with ``encode``.
    """
    wanted: Any = (current() if settings is None else settings).embedder
    if wanted is None or wanted == DEFAULT_MODEL:
        with _lock:
            return _default()
    if isinstance(wanted, str | Path):
        return _named(wanted, settings or current())
    return _of_object(wanted)


def _of_object(wanted: Any) -> Embedder:
    # In this order: checking the protocol's members reads the dimension, which loads a lazy model.
    if isinstance(wanted, (SentenceTransformerEmbedder, EmbeddingModel, Embedder)):
        return wanted
    if not callable(getattr(wanted, "encode", None)):
        raise InvalidArgument(
            f"embedder must be a model's name, a folder, or an object with encode(texts); got {wanted!r} of type "
            f"{type(wanted).__name__}"
        )
    with _lock:
        for known in _objects:
            if known.model is wanted:
                return known
        _objects.append(_ObjectEmbedder(wanted, number=len(_objects) + 1))
        return _objects[-1]


def _named(wanted: str | Path, settings: Settings) -> Embedder:
    connection: tuple[str | None, str | None] = (None, None)
    of_provider = isinstance(wanted, str) and embeds_for(wanted)
    if of_provider:
        if Path(wanted).expanduser().is_dir():
            raise InvalidArgument(
                f"embedder={wanted!r} is a folder here and also a model of {str(wanted).partition('/')[0]!r}: write "
                f"'./{wanted}' for the folder, or tagframe.embed.EmbeddingModel({wanted!r}) for the model"
            )
        connection = _connection(str(wanted), settings)
    key = (str(wanted), *connection)
    with _lock:
        if key not in _by_model:
            if wanted == INT8:
                _by_model[key] = default_model(int8=True)
            elif of_provider:
                api_base, api_key = connection
                _by_model[key] = EmbeddingModel(str(wanted), api_base=api_base, api_key=api_key)
            else:
                embedder = SentenceTransformerEmbedder(wanted)
                embedder.load()
                _by_model[key] = embedder
        return _by_model[key]


def _connection(model: str, settings: Settings) -> tuple[str | None, str | None]:
    """The ``api_base`` and ``api_key`` of an embedding model: those of ``lm`` where both are of one provider, or where
    no ``lm`` is named; a key is sent to no other provider."""
    lm = settings.lm
    same = lm is None or (isinstance(lm, str) and lm.partition("/")[0] == model.partition("/")[0])
    return (settings.api_base, settings.api_key) if same else (None, None)


def forget() -> None:
    """Forget the models that are loaded, as in a new process."""
    _by_model.clear()
    _default.cache_clear()


@functools.cache
def _default() -> Embedder | None:
    try:
        return default_model()
    except EmbedderNotFound as error:
        warn(f"tables are matched by words only, not by meaning: {error}", EmbedderWarning)
        return None

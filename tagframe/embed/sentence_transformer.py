"""Any model of the sentence-transformers library; needs the extra of that name, which installs torch."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tagframe.embed.local import LocalEmbedder
from tagframe.embed.protocol import Kind, check_kind
from tagframe.errors import EmbedderNotFound
from tagframe.quiet import quiet

_LOGGERS = ("sentence_transformers", "transformers", "huggingface_hub")
_NAMES: Mapping[Kind, tuple[str, ...]] = {"query": ("query",), "passage": ("document", "passage", "corpus")}
"""The library's names of the prompts of a kind; the first that a model has counts."""
_MAX_BATCH_TEXTS, _MAX_BATCH_LETTERS, _MAX_ACCELERATOR_LETTERS = 128, 2048, 65536
"""The most texts of a batch, and the most letters, since short texts are padded to the longest. An accelerator needs
larger batches."""


class SentenceTransformerEmbedder(LocalEmbedder):
    """A sentence-transformers model by hub name or folder, loaded at first use; safe to use from several threads.

    Queries and passages are encoded by the model's own ``encode_query`` and ``encode_document``, so that the prompts of
    its configuration are used. A model such as E5 has none there; then ``prompts`` has them:

    >>> SentenceTransformerEmbedder("intfloat/e5-small-v2", prompts={"query": "query: ", "passage": "passage: "})
    SentenceTransformerEmbedder('intfloat/e5-small-v2')

    Args:
        model: a name on the model hub, or a folder.
        name: what its vectors are called; None for the hub name, or for the folder's name and state, with the prompts.
        prompts: what stands before a text, by its kind, ``"query"`` and ``"passage"``; None for the model's own.

    Attributes:
        name: see :class:`~tagframe.embed.Embedder`.
    """

    def __init__(
        self, model: str | Path, *, name: str | None = None, prompts: Mapping[Kind, str] | None = None
    ) -> None:
        for kind in prompts or ():
            check_kind(kind)
        self._prompts = None if prompts is None else dict(prompts)
        self._folder = Path(model).expanduser() if Path(model).expanduser().is_dir() else None
        self._source = str(model if self._folder is None else self._folder)
        called = self._source if self._folder is None else _folder_name(self._folder)
        # Vectors of other prompts are other vectors.
        super().__init__(name or (called if not self._prompts else f"{called} with {sorted(self._prompts.items())}"))

    def __repr__(self) -> str:
        return f"SentenceTransformerEmbedder({self._source!r})"

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

    def vocabulary(self) -> list[str]:
        """The words of the tokenizer, the most common first; none if it has no list of them.

        Raises:
            EmbedderNotFound: as :meth:`load`.
        """
        self.load()
        listed = getattr(getattr(self._model, "tokenizer", None), "get_vocab", None)
        ranks: dict[str, int] = {} if listed is None else listed()
        return sorted(ranks, key=ranks.__getitem__)

    def _encoded(self, texts: list[str], kind: Kind) -> npt.NDArray[np.float32]:
        letters = _MAX_BATCH_LETTERS if self._model.device.type == "cpu" else _MAX_ACCELERATOR_LETTERS
        order = sorted(range(len(texts)), key=lambda position: -len(texts[position]))
        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)
        while order:
            size = max(1, min(_MAX_BATCH_TEXTS, letters // max(len(texts[order[0]]), 1)))
            batch, order = order[:size], order[size:]
            vectors[batch] = encode_of(self._model, kind)(
                [texts[position] for position in batch],
                batch_size=size,
                show_progress_bar=False,
                convert_to_numpy=True,
                normalize_embeddings=True,
            )
        return vectors

    def _tokens(self, text: str) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], list[tuple[int, int]]]:
        offsets = []
        if getattr(self._model.tokenizer, "is_fast", False):
            prompt = _prompt_of(self._model)
            limits = {"truncation": True, "max_length": self._model.max_seq_length}
            positions = self._model.tokenizer(prompt + text, return_offsets_mapping=True, **limits)["offset_mapping"]
            offsets = [(start - len(prompt), end - len(prompt)) for start, end in positions]
        (output,) = encode_of(self._model, "query")([text], output_value=None, show_progress_bar=False)
        return output["sentence_embedding"].cpu().numpy(), output["token_embeddings"].cpu().numpy(), offsets

    def _loaded(self) -> Any:
        if importlib.util.find_spec("sentence_transformers") is None:
            raise EmbedderNotFound(
                f"the embedding model {self._source!r} needs sentence-transformers, which is not installed: pip "
                'install "tagframe[sentence-transformers]". Without it, use embedder="openai/text-embedding-3-small" '
                "(a provider's model) or embedder=None (the default model)"
            )
        try:
            if self._folder is None and Path(self._source).is_absolute():
                raise FileNotFoundError("there is no such folder")  # said before torch is imported, which takes seconds
            with quiet(*_LOGGERS):
                from sentence_transformers import SentenceTransformer

                given: Any = (
                    {}
                    if self._prompts is None
                    else {"prompts": {_NAMES[kind][0]: prompt for kind, prompt in self._prompts.items()}}
                )
                try:
                    with _no_bars():
                        return SentenceTransformer(self._source, local_files_only=True, **given)
                except Exception:
                    if self._folder is not None:
                        raise
                    # Not on this machine yet: a download, whose bar is welcome.
                    return SentenceTransformer(self._source, **given)
        # The hub, its cache, the formats of models and torch each have their own exceptions.
        except Exception as error:
            reason = str(error).strip().splitlines() or [type(error).__name__]
            raise EmbedderNotFound(
                f"the embedding model {self._source!r} cannot be loaded: {reason[0]}; give a folder, a model that can"
                ' be downloaded, or a provider\'s model such as "openai/text-embedding-3-small"'
            ) from error


def encode_of(model: Any, kind: Kind) -> Callable[..., Any]:
    """The method of a model that encodes texts of a kind: its own one for the kind, or ``encode``, with its own prompt.

    sentence-transformers 5 and later have ``encode_query`` and ``encode_document``, which also choose between the
    encoders of a model that has two; what they do with prompts is done here for earlier versions.
    """
    own = getattr(model, "encode_query" if kind == "query" else "encode_document", None)
    if callable(own):
        return own  # type: ignore[no-any-return]
    name = _prompt_name(model, kind)
    return model.encode if name is None else partial(model.encode, prompt_name=name)


def _prompt_name(model: Any, kind: Kind) -> str | None:
    prompts = getattr(model, "prompts", None)
    return next((name for name in _NAMES[kind] if name in prompts), None) if isinstance(prompts, Mapping) else None


def _prompt_of(model: Any) -> str:
    """What a SentenceTransformer puts before a query."""
    return str(model.prompts.get(_prompt_name(model, "query") or model.default_prompt_name) or "")


def _folder_name(folder: Path) -> str:
    """A name that changes with the folder's files, so that another model in the same folder does not reuse its
    vectors."""
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

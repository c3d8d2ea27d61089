"""Any model of the sentence-transformers library; needs the extra of that name, which installs torch."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tagframe.embed.local import BATCH_LETTERS, LocalEmbedder
from tagframe.errors import EmbedderNotFound
from tagframe.quiet import quiet

_LOGGERS = ("sentence_transformers", "transformers", "huggingface_hub")
_ACCELERATOR_LETTERS = 65536
"""An accelerator needs larger batches."""


class SentenceTransformerEmbedder(LocalEmbedder):
    """A sentence-transformers model by hub name or folder, loaded at first use; safe to use from several threads.

    Args:
        model: a name on the model hub, or a folder.
        name: what its vectors are called; None for the hub name, or for the folder's name and state.

    Attributes:
        name: see :class:`~tagframe.embed.Embedder`.
    """

    def __init__(self, model: str | Path, *, name: str | None = None) -> None:
        self._folder = Path(model).expanduser() if Path(model).expanduser().is_dir() else None
        self._source = str(model if self._folder is None else self._folder)
        super().__init__(name or (self._source if self._folder is None else _folder_name(self._folder)))

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

    def load(self) -> None:
        """Load the model now rather than at first use.

        Raises:
            EmbedderNotFound: there is no such model, or it cannot be reached, or the extra is not installed.
        """
        super().load()
        self.batch_letters = BATCH_LETTERS if self._model.device.type == "cpu" else _ACCELERATOR_LETTERS

    def _forward(self, texts: list[str]) -> npt.NDArray[np.float32]:
        vectors: npt.NDArray[np.float32] = self._model.encode(
            texts, batch_size=len(texts), show_progress_bar=False, convert_to_numpy=True, normalize_embeddings=True
        )
        return vectors

    def _tokens(self, text: str) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], list[tuple[int, int]]]:
        offsets = []
        if getattr(self._model.tokenizer, "is_fast", False):
            limits = {"truncation": True, "max_length": self._model.max_seq_length}
            offsets = self._model.tokenizer(text, return_offsets_mapping=True, **limits)["offset_mapping"]
        (output,) = self._model.encode([text], output_value=None, show_progress_bar=False)
        return output["sentence_embedding"].cpu().numpy(), output["token_embeddings"].cpu().numpy(), offsets

    def _loaded(self) -> Any:
        if importlib.util.find_spec("sentence_transformers") is None:
            raise EmbedderNotFound(
                f"the embedding model {self._source!r} needs sentence-transformers, which is not installed: pip "
                'install "tagframe[sentence-transformers]". Without it, use embedder="openai/text-embedding-3-small" '
                "(a provider's model) or embedder=None (the default model)"
            )
        try:
            with quiet(*_LOGGERS):
                from sentence_transformers import SentenceTransformer

                try:
                    with _no_bars():
                        return SentenceTransformer(self._source, local_files_only=True)
                except Exception:
                    if self._folder is not None:
                        raise
                    # Not on this machine yet: a download, whose bar is welcome.
                    return SentenceTransformer(self._source)
        # The hub, its cache, the formats of models and torch each have their own exceptions.
        except Exception as error:
            reason = str(error).strip().splitlines() or [type(error).__name__]
            raise EmbedderNotFound(
                f"the embedding model {self._source!r} cannot be loaded: {reason[0]}; give a folder, a model that can"
                ' be downloaded, or a provider\'s model such as "openai/text-embedding-3-small"'
            ) from error


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

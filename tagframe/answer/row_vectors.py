"""The vectors of rows: each distinct text of a table's rows is encoded once and stored."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tagframe.corpus.catalogue import VERSION, Catalogue
from tagframe.corpus.vectors import encoded_in_chunks
from tagframe.embed import ANONYMOUS, Embedder
from tagframe.errors import CatalogueWarning, UnreadableCatalogue, warn

CACHE = "default"
"""The value of ``cache`` that means the user's cache folder."""

_OF_ROWS = "vectors of rows"


def vectors_of_rows(
    texts: Sequence[str], embedder: Embedder, catalogue: Catalogue | None, of: str, *, whole: bool = True
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.intp]]:
    """The vectors of the rows of a table, with a progress bar if it takes long; stored vectors are reused.

    The file contains digests of the texts, but no texts. It is written during the work, so that a killed process loses
    little. Vectors of rows that no longer exist are deleted when they are the larger part of the file.

    Args:
        texts: one per row.
        embedder: see :func:`tagframe.embed.get_embedder`.
        catalogue: the file; None to keep nothing.
        of: the table, for the progress bar.
        whole: whether these are all rows of the table; if not, no vectors are deleted.

    Returns:
        Vectors of length 1 of the distinct texts, shape (m, d), and for each row its position there, shape (n,).
    """
    digest_of = {text: hashlib.sha256(text.encode()).hexdigest()[:32] for text in texts}
    position = {text: number for number, text in enumerate(digest_of)}
    vectors = np.empty((len(position), embedder.dimension), dtype=np.float32)
    rest = None if embedder.name.startswith(ANONYMOUS) else catalogue
    known: dict[str, npt.NDArray[np.float32]] = {}
    if rest is not None:
        try:
            known = _known(rest, embedder, set(digest_of.values()), forget=whole)
        except UnreadableCatalogue as error:
            warn(f"{_OF_ROWS} are kept in memory only: {error}", CatalogueWarning)
            rest = None
    for text, digest in digest_of.items():
        if digest in known:
            vectors[position[text]] = known[digest]
    missing = [text for text, digest in digest_of.items() if digest not in known]
    lines = f"reading the rows of {of}", "row", _OF_ROWS
    for chunk, encoded in encoded_in_chunks(embedder, missing, rest, digest_of.__getitem__, lines):
        vectors[[position[text] for text in chunk]] = encoded
    return vectors, np.array([position[text] for text in texts], dtype=np.intp)


def _known(
    catalogue: Catalogue, embedder: Embedder, wanted: set[str], *, forget: bool
) -> dict[str, npt.NDArray[np.float32]]:
    """The vectors in a file, by digest; with ``forget``, the others are deleted if they are the larger part."""
    digests, vectors, _ = catalogue.vectors(embedder.name)
    same = len(digests) > 0 and vectors.shape[1] == embedder.dimension
    found = {digest: vector for digest, vector in zip(digests, vectors, strict=True) if same and digest in wanted}
    if forget and len(digests) > 2 * len(found):
        catalogue.delete()
        if found:
            catalogue.add_vectors(embedder.name, list(found), np.array(list(found.values())))
    return found


def catalogue_of_rows(source: Path | None, table: str, cache: str | Path | None) -> Catalogue | None:
    """The file for the vectors of a table's rows; None if the table has no file, or nothing is to be kept.

    Args:
        source: the file of the table.
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
        warn(f"{_OF_ROWS} are kept in memory only: {error}", CatalogueWarning)
        return None
    name = hashlib.sha256(os.fsencode(source.resolve()) + b"\0" + table.encode("utf-8", "surrogatepass")).hexdigest()
    # A file for each version, as catalogues have.
    return Catalogue(folder / f"{source.stem[:40]}-{name[:16]}.v{VERSION}.sqlite")

"""A corpus as a catalogue file of its own."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tagframe.corpus.catalogue import Catalogue, Contents, is_catalogue
from tagframe.engines.base import Engine, Stamp
from tagframe.errors import UnreadableCatalogue


@dataclass(frozen=True)
class Origin:
    """Where a table of a corpus comes from.

    Attributes:
        key: the source's key in a catalogue.
        table: the table's name in the source.
        kind: of the source.
        engine: reads it; None if the source is gone.
        stamp: of the source when it was profiled; None for frames.
    """

    key: str
    table: str
    kind: str
    engine: Engine | None = None
    stamp: Stamp | None = None


def save(
    target: Path,
    contents: Contents,
    vectors: Mapping[str, tuple[Sequence[str], npt.NDArray[np.float32]]],
    facts: Iterable[tuple[str, str, str, str]],
) -> Path:
    """Write a catalogue; an existing catalogue is replaced, another file is not.

    Args:
        target: the path.
        contents: of the corpus.
        vectors: documents and vectors by embedder.
        facts: kind, name, state and value of each.

    Raises:
        UnreadableCatalogue: ``target`` is another kind of file, or cannot be written.
    """
    if target.exists() and not (target.is_file() and is_catalogue(target)):
        raise UnreadableCatalogue(f"{target} is not a catalogue, and is not replaced; save to another path")
    # Written under another name and moved, so that nobody ever opens half a catalogue.
    draft = Catalogue(target.with_name(f".{target.name}.{os.getpid()}"))
    try:
        draft.write(lambda: contents)
        for embedder, (documents, rows) in vectors.items():
            draft.add_vectors(embedder, documents, rows)
        for fact in facts:
            draft.add_fact(*fact)
        draft.path.replace(target)
        Catalogue(target).forget_arrays()  # they may have data that this catalogue leaves out
    except OSError as error:
        raise UnreadableCatalogue(f"the catalogue {target} cannot be written: {error}") from error
    finally:
        draft.delete()
    return target

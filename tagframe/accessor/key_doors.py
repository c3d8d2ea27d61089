"""Methods of ``corpus.keys`` that higher rooms add."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from tagframe.joins import corpus_keys

if TYPE_CHECKING:
    from tagframe.corpus.told.store import CorpusKeys

__all__ = ["frame"]


def frame(self: CorpusKeys) -> pd.DataFrame:
    """All keys of the corpus, best first: a row per key.

    Returns:
        Columns ``key`` ("a.x = b.y"), ``chance`` (in [0, 1]), ``origin`` ("inferred", "declared", "given", or
        "model" for an inferred one that ``corpus.check_keys`` asked about) and ``reason``.

    >>> import pandas as pd, tagframe as tf
    >>> loans = pd.DataFrame({"loan_id": [1, 2, 3], "client_id": [20, 10, 20]})
    >>> clients = pd.DataFrame({"client_id": [10, 20, 30], "name": ["Ann", "Bo", "Cy"]})
    >>> tf.open_corpus({"loans": loans, "clients": clients}).keys.frame()[["key", "origin"]].values.tolist()
    [['frames.loans.client_id = frames.clients.client_id', 'inferred']]
    """
    rows = [
        (f"{key.left} = {key.right}", key.score, key.evidence.origin, key.evidence.reason)
        for key in corpus_keys(self.corpus)
    ]
    return pd.DataFrame(rows, columns=["key", "chance", "origin", "reason"])

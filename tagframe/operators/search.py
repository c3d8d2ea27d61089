"""``sem_search`` and ``sem_sim_join``: rows by the similarity of their texts, without index files."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from tagframe.errors import InvalidArgument
from tagframe.operators.cells import label_text, position_of, refuse_private, refuse_unreadable
from tagframe.operators.drivers import Step
from tagframe.operators.join.sides import renamed
from tagframe.operators.operator import declare
from tagframe.operators.outcome import OnError, free_name, refuse_taken
from tagframe.operators.row_question import no_use_for_examples
from tagframe.operators.text_nearness import embedder
from tagframe.operators.topk import sem_topk, whole_number

SCORES = "vec_scores"
"""The beginning of the name of the column with a search's scores (LOTUS' name)."""


@declare(guess=sem_topk.guess, over="nearest", embeds=True, asks=lambda given: given["n_rerank"] is not None)
def sem_search(
    frame: pd.DataFrame,
    col_name: Hashable,
    query: str,
    K: int | None = None,
    n_rerank: int | None = None,
    *,
    return_scores: bool = False,
    examples: pd.DataFrame | None = None,
    suffix: str = "_sim_score",
    on_error: OnError = "raise",
    window: int | None = None,
) -> Step[pd.DataFrame]:
    """Find the K rows whose text is nearest to a query, best first. With ``n_rerank``, a model ranks them.

    Texts are embedded and searched exactly, in memory (FAISS). Nothing is indexed in advance, and no file is written.
    The model is asked only with ``n_rerank``, as in :func:`sem_topk`.

    Args:
        frame: any frame; it is not changed. Or an iterator of frames, see :mod:`tagframe.operators.batches`.
        col_name: the column to search; rows without text are not found.
        query: in plain language.
        K: how many rows to find, at least 1; None for all, if ``n_rerank`` is given.
        n_rerank: how many of these the model chooses.
        return_scores: add a column ``vec_scores_sim_score`` with cosines.
        examples: as for :func:`sem_topk`, for the model: ``col_name`` and a column ``Answer`` with places.
        suffix: the end of that column's name.
        on_error: as for :func:`sem_topk`, if the model is asked.

    Returns:
        The rows, with index, dtypes and subclass kept.

    Raises:
        ColumnNotFound: the column does not exist.
        InvalidArgument: neither K nor ``n_rerank`` is given, one is below 1, or the query has no words.
        NotConfigured: no embedding model is set, or ``n_rerank`` is given and no language model is set.
    """
    if K is None and n_rerank is None:
        raise InvalidArgument("give K=, the number of rows to find, or n_rerank=, the number that the model chooses")
    if not isinstance(query, str) or not query.strip():
        raise InvalidArgument(f"the query has no words: {query!r}")
    best = None if n_rerank is None else whole_number(n_rerank, "n_rerank must be a number of rows")
    texts = texts_of(frame, col_name)
    scores_name = f"{SCORES}{suffix}"
    refuse_taken(frame, [scores_name] * (return_scores and K is not None), suffix)
    result = frame
    if K is not None:
        scores, rows = nearest([query], texts, whole_number(K, "K must be a number of rows"))
        result = frame.iloc[rows[0]].copy()
        if return_scores:
            result[free_name(result, scores_name)] = scores[0]
    if best is None:
        no_use_for_examples(examples, "n_rerank= is not given")
        return result
    request = f"Which {{{_doubled(label_text(col_name))}}} answers this best: {_doubled(query.strip())}"
    return (yield from sem_topk.steps(result, request, best, examples=examples, on_error=on_error, window=window))


@declare(guess=lambda prompt: "", over="pairs", embeds=True, asks=lambda given: False)
def sem_sim_join(
    frame: pd.DataFrame,
    right: pd.DataFrame | pd.Series,
    left_on: Hashable,
    right_on: Hashable,
    K: int,
    *,
    lsuffix: str = "",
    rsuffix: str = "",
    score_suffix: str = "",
    keep_index: bool = False,
) -> Step[pd.DataFrame]:
    """Join each row with the K rows of another frame whose texts are nearest to its own. No language model is asked.

    Args:
        frame: the left frame; it is not changed.
        right: the right frame, or a series with a name.
        left_on: the column of the left frame; its rows without text have no partner and are left out.
        right_on: the column of the right frame.
        K: how many partners each row gets, at least 1.
        lsuffix: the end of the names of left columns that both frames have.
        rsuffix: the same for right columns.
        score_suffix: the end of the name of the column ``_scores``, which has cosines.
        keep_index: add columns ``_left_id`` and ``_right_id`` with both frames' index labels.

    Returns:
        The left columns, ``_scores`` and the right ones, best partner first, with the left frame's index.

    Raises:
        ColumnNotFound: a column does not exist.
        InvalidArgument: K is below 1, or both frames have a column and no suffixes are given.
        NotConfigured: no embedding model is available.
    """
    yield from ()
    other = right.to_frame() if isinstance(right, pd.Series) else right
    if not isinstance(other, pd.DataFrame):
        raise InvalidArgument(f"sem_sim_join joins with a frame or a series; got {type(right).__name__}")
    both = [label for label in frame.columns if label in other.columns]
    if both and lsuffix == rsuffix:
        raise InvalidArgument(
            f"both frames have a column {both[0]!r}; rename them with lsuffix= and rsuffix=, such as lsuffix='_left'"
        )
    score_name = f"_scores{score_suffix}"
    refuse_taken(frame, [score_name], score_suffix)
    refuse_taken(other, [score_name], score_suffix)
    queries = texts_of(frame, left_on)
    left_rows = [row for row, text in enumerate(queries) if text is not None]
    scores, rows = nearest(
        [queries[row] or "" for row in left_rows],
        texts_of(other, right_on),
        whole_number(K, "K must be a number of rows"),
    )
    lefts = np.repeat(np.array(left_rows, dtype=np.intp), [len(nearest_rows) for nearest_rows in rows])
    rights = np.concatenate(rows) if rows else np.empty(0, dtype=np.intp)
    left, partner = frame.iloc[lefts].copy(), other.iloc[rights].copy()
    left.columns, partner.columns = renamed(left.columns, both, lsuffix), renamed(partner.columns, both, rsuffix)
    left[free_name(left, score_name)] = np.concatenate(scores) if scores else np.empty(0, dtype=np.float32)
    if keep_index:
        left[free_name(left, "_left_id")] = frame.index[lefts]
        left[free_name(left, "_right_id")] = other.index[rights]
    for at, label in enumerate(partner.columns):
        left.insert(len(left.columns) - 2 * keep_index, label, partner.iloc[:, at].array, allow_duplicates=True)
    return left


def nearest(
    queries: Sequence[str], texts: Sequence[str | None], k: int
) -> tuple[list[npt.NDArray[np.float32]], list[npt.NDArray[np.intp]]]:
    """The k texts that are nearest to each query, by the configured embedder and a flat (exact) FAISS index.

    Args:
        queries: any texts.
        texts: None is never found; the same text twice is found twice, earlier ones first.
        k: how many; all texts if there are fewer.

    Returns:
        For each query the cosines, best first, and the numbers of the texts.

    Raises:
        NotConfigured: no embedding model is available.
    """
    import faiss

    from tagframe.embed import encoded, expect

    encoder = embedder()
    numbers: dict[str, list[int]] = {}
    for number, text in enumerate(texts):
        if text is not None:
            numbers.setdefault(text, []).append(number)
    if not numbers or not queries:
        return [np.empty(0, dtype=np.float32)] * len(queries), [np.empty(0, dtype=np.intp)] * len(queries)
    expect(encoder, [*numbers, *queries])
    vectors = encoded(encoder, list(numbers), "passage")
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    scores, positions = index.search(encoded(encoder, list(queries), "query"), min(k, len(numbers)))
    members = list(numbers.values())
    all_scores, all_numbers = [], []
    for line, which in zip(scores, positions, strict=True):
        # Ties go to the text that comes first, which has the lower number.
        by_score = sorted(zip(-line, which.tolist(), strict=True))
        flat = [(-score, number) for score, one in by_score for number in members[one]][:k]
        all_scores.append(np.array([score for score, _ in flat], dtype=np.float32))
        all_numbers.append(np.array([number for _, number in flat], dtype=np.intp))
    return all_scores, all_numbers


def texts_of(frame: pd.DataFrame, label: Hashable) -> list[str | None]:
    """The cells of a column as texts; None for a cell without text.

    Raises:
        ColumnNotFound: there is no such column.
        InvalidArgument: there are two, or it is private, or its cells cannot be read.
    """
    position = position_of(frame, label)
    refuse_private(frame, [position])
    column = frame.iloc[:, position]
    refuse_unreadable(column)
    nulls = column.isna().to_numpy()
    refuse_unreadable(column, column[~nulls])
    cells = [None if null else str(cell) for cell, null in zip(column.astype(object), nulls, strict=True)]
    return [cell if cell and cell.strip() else None for cell in cells]


def _doubled(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")

"""SemBench's ten queries over films and their reviews (github.com/SemBench/SemBench), as a user would write them.

``movies`` has a row per film and ``reviews`` a row per review: ``id`` is the film's, ``reviewText`` the text. Queries
that need the same judgement use the same words, so that they share stored answers, also those from packs.
``tag_bench sembench`` measures them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import pandas as pd

POSITIVE = "the review {reviewText} is positive about the film"
FAVOUR = "How favourable is the review {reviewText} to the film, from a pan to a rave?"
TAKEN, ANT_MAN = "taken_3", "ant_man_and_the_wasp_quantumania"


def q1(movies: pd.DataFrame, reviews: pd.DataFrame) -> list[Any]:
    """Five clearly positive reviews, by their ids."""
    found: pd.DataFrame = reviews.tag.sem_filter(POSITIVE, limit=5, rows_per_call=8)
    return found["reviewId"].tolist()


def q2(movies: pd.DataFrame, reviews: pd.DataFrame) -> list[Any]:
    """Five positive reviews of one film, by their ids."""
    return _judged(reviews, TAKEN).query("filter_label")["reviewId"].head(5).tolist()


def q3(movies: pd.DataFrame, reviews: pd.DataFrame) -> int:
    """How many reviews of the film are positive."""
    return int(_judged(reviews, TAKEN)["filter_label"].sum())


def q4(movies: pd.DataFrame, reviews: pd.DataFrame) -> float:
    """The share of its reviews that are positive; reviews that cannot be judged count as not positive."""
    return float(_judged(reviews, TAKEN)["filter_label"].fillna(False).mean())


def q5(movies: pd.DataFrame, reviews: pd.DataFrame) -> pd.DataFrame:
    """Ten pairs of reviews of one film that express the same sentiment."""
    return _some_pairs(reviews, "{reviewText:left} and {reviewText:right} express the same sentiment about the film")


def q6(movies: pd.DataFrame, reviews: pd.DataFrame) -> pd.DataFrame:
    """Ten pairs of reviews of one film that express opposite sentiments."""
    return _some_pairs(reviews, "{reviewText:left} and {reviewText:right} express opposite sentiments about the film")


def q7(movies: pd.DataFrame, reviews: pd.DataFrame) -> pd.DataFrame:
    """All pairs of reviews of one film that express opposite sentiments: a label for each review, then a join."""
    of_film = reviews[reviews["id"] == ANT_MAN]
    claim = "{reviewText:left} and {reviewText:right} express opposite sentiments about the film"
    return _ids(of_film.tag.sem_join(of_film, claim, rows_per_call="auto"))


def q8(movies: pd.DataFrame, reviews: pd.DataFrame) -> dict[str, int]:
    """How many reviews of a film are positive, and how many are not."""
    counts = _judged(reviews, TAKEN)["filter_label"].value_counts()
    return {"POSITIVE": int(counts.get(True, 0)), "NEGATIVE": int(counts.get(False, 0))}


def q9(movies: pd.DataFrame, reviews: pd.DataFrame) -> pd.Series:
    """A score from 1 to 5 for each review of one film, by its position in the frame."""
    of_film = reviews[reviews["id"] == ANT_MAN]
    scores: pd.Series = of_film.tag.sem_score(FAVOUR, rows_per_call="auto")["_score"]
    return 1 + 4 * scores


def q10(movies: pd.DataFrame, reviews: pd.DataFrame) -> pd.Series:
    """The films by the mean score of their reviews: the model scores reviews, pandas computes the means."""
    scored = reviews.tag.sem_score(FAVOUR, rows_per_call="auto")
    means: pd.Series = scored.groupby("id")["_score"].mean()
    return means.sort_values(ascending=False)


def _judged(reviews: pd.DataFrame, film: str) -> pd.DataFrame:
    """All reviews of a film, with whether each is positive; asked once for all queries."""
    of_film = reviews[reviews["id"] == film]
    judged: pd.DataFrame = of_film.tag.sem_filter(POSITIVE, rows_per_call="auto", return_all=True)
    return judged


def _some_pairs(reviews: pd.DataFrame, claim: str) -> pd.DataFrame:
    of_film = reviews[reviews["id"] == ANT_MAN].drop_duplicates("reviewText")
    # Two halves: no review is paired with itself, and each pair occurs once.
    return _ids(of_film.iloc[::2].tag.sem_join(of_film.iloc[1::2], claim, limit=10))


def _ids(pairs: pd.DataFrame) -> pd.DataFrame:
    ids: pd.DataFrame = pairs[["reviewId:left", "reviewId:right"]]
    return ids


Query: TypeAlias = Callable[[pd.DataFrame, pd.DataFrame], Any]
QUERIES: Mapping[str, Query] = {
    "Q1": q1, "Q2": q2, "Q3": q3, "Q4": q4, "Q5": q5, "Q6": q6, "Q7": q7, "Q8": q8, "Q9": q9, "Q10": q10,
}  # fmt: skip
"""The ten queries by name."""

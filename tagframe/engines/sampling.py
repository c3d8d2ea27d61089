"""What a sample says about a whole column."""

from __future__ import annotations


def distinct_of_sample(seen: int, distinct: int, once: int, filled: int) -> int:
    """How many distinct values a column has: Haas and Stokes' Duj1, with which PostgreSQL's ANALYZE estimates.

    P. J. Haas, L. Stokes, "Estimating the number of classes in a finite population", JASA 93 (1998).

    Args:
        seen: cells of the sample that are not null.
        distinct: their distinct values.
        once: those among them that occur once.
        filled: cells of the whole column that are not null.

    >>> distinct_of_sample(100, 7, 0, 10_000), distinct_of_sample(100, 100, 100, 10_000)
    (7, 10000)
    """
    return round(seen * distinct / (seen - once + once * seen / max(1, filled))) if seen else distinct

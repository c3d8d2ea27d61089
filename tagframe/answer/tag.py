"""The TAG model: three functions, whatever they are made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

R = TypeVar("R")  # a request
Q = TypeVar("Q")  # a query
T = TypeVar("T")  # a table
A = TypeVar("A")  # an answer


@dataclass(frozen=True)
class TAG(Generic[R, Q, T, A]):
    """A pipeline of table-augmented generation (Biswal et al., CIDR 2025, section 2, equations 1 to 3).

    Attributes:
        syn: ``syn(R) -> Q``, query synthesis.
        exec: ``exec(Q) -> T``, query execution.
        gen: ``gen(R, T) -> A``, answer generation.

    >>> import pandas as pd
    >>> films = pd.DataFrame({"title": ["Low Tide", "Salt Road"], "year": [1998, 2015]})
    >>> newest = TAG(
    ...     syn=lambda request: "year == year.max()",
    ...     exec=films.query,
    ...     gen=lambda request, rows: f"{request}: {rows['title'].iloc[0]}",
    ... )
    >>> newest("The newest film")
    'The newest film: Salt Road'
    """

    syn: Callable[[R], Q]
    exec: Callable[[Q], T]
    gen: Callable[[R, T], A]

    def __call__(self, request: R) -> A:
        """Answer one request."""
        return self.gen(request, self.exec(self.syn(request)))

"""JAR's problem before any reduction: relevance and joinability column by column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tagframe.errors import InvalidArgument
from tagframe.retrieval.problem import Floats, SelectionProblem


@dataclass(frozen=True)
class JarWeights:
    """The weights of the four terms of JAR's objective; the defaults are the authors' for BIRD.

    The paper has the terms (section 3.2, equation 7), but prints no weights.

    Attributes:
        fine: the weight of r_qik.
        coverage: α of equation 7, for each covered sub-query.
        join: the weight of ω.
        coarse: the weight of r_i.
        link_share: the share of the link score in the score of a join; the rest is ω. The paper uses ω only.
    """

    fine: float = 3.0
    coverage: float = 8.0
    join: float = 1.0
    coarse: float = 3.0
    link_share: float = 0.0


PAPER_WEIGHTS = JarWeights()

JAR_WEIGHTS: Mapping[str, JarWeights] = {
    "spider": JarWeights(fine=2.0, coverage=8.0, join=1.0, coarse=10.0),
    "bird": PAPER_WEIGHTS,
    "fiben": PAPER_WEIGHTS,
}
"""JAR's weights by data set, from its authors' code (with Contriever).

For FIBEN none are published: BIRD's are used.
"""


@dataclass(frozen=True, eq=False)
class ColumnProblem:
    """The choice among n tables, column by column (JAR sections 3.1 to 3.3).

    Attributes:
        r: shape (n,), r_i.
        fine: for each table, r_qik of shape (q, columns of the table).
        omega: ω_ij^kl, of shape (m, m) over all m columns, table after table; symmetric, zero within a table.
        anchor: shape (n,), True for tables that are in the set already; all False if not given.

    Raises:
        InvalidArgument: shapes that do not fit together.
    """

    r: Floats
    fine: Sequence[Floats]
    omega: Floats
    anchor: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    column_table: npt.NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        rows = {len(part) for part in self.fine}
        if len(self.fine) != len(self.r) or len(rows) > 1:
            raise InvalidArgument(f"fine needs one array of shape (q, columns) for each of the {len(self.r)} tables")
        widths = [part.shape[1] for part in self.fine]
        if self.omega.shape != (sum(widths), sum(widths)):
            raise InvalidArgument(f"omega has shape {self.omega.shape}; there are {sum(widths)} columns")
        if not len(self.anchor):
            object.__setattr__(self, "anchor", np.zeros(len(self.r), dtype=np.bool_))
        object.__setattr__(self, "column_table", np.repeat(np.arange(len(self.r)), widths))

    def reduce(self, **more: Any) -> SelectionProblem:
        """The same problem table by table, with the same optimum.

        At most one column of a table covers a sub-query (constraint 5), and at most one pair of columns joins two
        tables (constraint 4). So only the best column and the best pair matter.
        """
        n, q = len(self.r), len(self.fine[0]) if self.fine else 0
        best = [part.max(axis=1) if part.size else np.zeros(q) for part in self.fine]
        joined = np.zeros((n, n))
        np.maximum.at(joined, (self.column_table[:, None], self.column_table[None, :]), self.omega)
        np.fill_diagonal(joined, 0.0)
        fine = np.array(best).reshape(n, q).T.copy()
        return SelectionProblem(r=self.r, fine=fine, omega=joined, anchor=self.anchor, **more)

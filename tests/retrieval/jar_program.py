"""JAR's mixed-integer program, equations 1 to 15, line by line: the check of ``tagframe.retrieval.methods.exact``.

Chen, Zhang, Roth: Is Table Retrieval a Solved Problem? Exploring Join-Aware Multi-Table Retrieval (ACL 2024), section
3.2 and appendix B. ``exact`` solves the same problem table by table, about a thousand times faster. The solver is
python-mip's CBC.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tagframe.retrieval.index import RetrievalIndex
from tagframe.retrieval.method import Prepared
from tagframe.retrieval.problem import Floats, JarWeights, SelectionProblem


@dataclass(frozen=True, eq=False)
class ColumnProblem:
    """The choice among n tables, column by column (JAR sections 3.1 to 3.3).

    Attributes:
        r: shape (n,), r_i.
        fine: for each table, r_qik of shape (q, columns of the table).
        omega: ω_ij^kl, of shape (m, m) over all m columns, table after table; symmetric, zero within a table.
        anchor: shape (n,), True for tables that are in the set already.
    """

    r: Floats
    fine: Sequence[Floats]
    omega: Floats
    anchor: Any

    @property
    def column_table(self) -> Any:
        """The table of each column: shape (m,)."""
        return np.repeat(np.arange(len(self.r)), [part.shape[1] for part in self.fine])

    def reduce(self) -> SelectionProblem:
        """The same problem table by table, with the same optimum.

        At most one column of a table covers a sub-query (constraint 5), and at most one pair of columns joins two
        tables (constraint 4). So only the best column and the best pair matter.
        """
        joined = np.zeros((len(self.r), len(self.r)))
        np.maximum.at(joined, (self.column_table[:, None], self.column_table[None, :]), self.omega)
        np.fill_diagonal(joined, 0.0)
        fine = np.array([part.max(axis=1) for part in self.fine]).T.copy()
        return SelectionProblem(r=self.r, fine=fine, omega=joined, anchor=self.anchor)


def by_columns(index: RetrievalIndex, prepared: Prepared[SelectionProblem], weights: JarWeights, form: Any) -> Any:
    """A problem of ``exact`` before its reduction; the link score of two tables is at the pair with the largest ω."""
    tables, problem, setup = prepared.tables, prepared.problem, form.setup
    omega = index.joinability_in(setup.omega, setup.declared)
    first = np.cumsum([0, *(len(index.tables[table].columns) for table in tables)])
    joins = np.zeros((first[-1], first[-1]))
    for i, left in enumerate(tables):
        for j in range(i + 1, len(tables)):
            scores = (1 - weights.link_share) * omega.columns(left, tables[j])
            scores.flat[int(scores.argmax())] += weights.link_share * problem.link[i, j]
            joins[first[i] : first[i + 1], first[j] : first[j + 1]] = scores
    return ColumnProblem(problem.r, index.fine(prepared.subqueries, tables)[1], joins + joins.T, problem.anchor)


def optimum(problem: ColumnProblem, k: int, weights: JarWeights, *, joined: bool = True) -> tuple[float, Any] | None:
    """The largest objective of k tables beside the anchors, and their indices; None if the program has no solution."""
    import mip as solver

    model = solver.Model(sense=solver.MAXIMIZE)
    model.verbose, model.threads = 0, 1
    model.max_mip_gap = model.max_mip_gap_abs = 0.0
    program = _Program(problem, problem.reduce().wanted(k) + int(problem.anchor.sum()), model, solver)
    objective = program.relevance(weights)
    if joined:
        objective += program.joins(weights)
        program.connectedness()
    model.objective = objective
    model.optimize()
    if model.num_solutions == 0:
        return None
    return float(model.objective_value), [i for i, b in enumerate(program.b) if b.x > 0.5]


class _Program:
    """The variables and constraints, named as in the paper: q sub-query, i and j tables, k and l their columns."""

    def __init__(self, problem: ColumnProblem, size: int, model: Any, solver: Any) -> None:
        self.problem, self.K, self.model, self.xsum = problem, size, model, solver.xsum
        self.tables = range(len(problem.r))
        self.Q = range(len(problem.fine[0]) if problem.fine else 0)
        binary = {"var_type": solver.BINARY}
        # Equation 1.
        self.b = [model.add_var(**binary) for _ in self.tables]
        self.d = {
            (q, i, k): model.add_var(**binary)
            for q in self.Q
            for i in self.tables
            for k in range(problem.fine[i].shape[1])
        }
        # Column pairs of ω = 0 do not join.
        self.pairs = [
            (int(i), int(j), int(x), int(y))
            for x, y in zip(*np.nonzero(problem.omega), strict=True)
            for i, j in [(problem.column_table[x], problem.column_table[y])]
            if i != j
        ]
        self.c: dict[tuple[int, int], Any] = {}
        # Equation 2, first half.
        model += self.xsum(self.b) == self.K
        for i in np.flatnonzero(problem.anchor).tolist():
            model += self.b[i] == 1

    def relevance(self, weights: JarWeights) -> Any:
        """Coarse and fine relevance and coverage: the first two terms of the objective, and equation 7."""
        problem, model, xsum = self.problem, self.model, self.xsum
        objective = xsum(weights.coarse * float(problem.r[i]) * self.b[i] for i in self.tables)
        objective += xsum(weights.fine * float(problem.fine[i][q, k]) * var for (q, i, k), var in self.d.items())
        for i in self.tables:
            columns = range(problem.fine[i].shape[1])
            for q in self.Q:  # equation 5
                model += xsum(self.d[q, i, k] for k in columns) <= 1
            for k in columns if len(self.Q) else ():  # equation 6
                model += xsum(self.d[q, i, k] for q in self.Q) * (1 / len(self.Q)) <= self.b[i]
        covered = [model.add_var(var_type="B") for _ in self.Q]  # equation 8
        for q in self.Q:  # equation 9
            model += covered[q] <= xsum(var for (other, _, _), var in self.d.items() if other == q)
        if len(self.Q):  # equation 10
            model += xsum(self.d.values()) <= len(self.Q)
        return objective + weights.coverage * xsum(covered)

    def joins(self, weights: JarWeights) -> Any:
        """The third term of the objective, with equations 2 (second half), 3 and 4."""
        problem, model, xsum = self.problem, self.model, self.xsum
        self.c = {(x, y): model.add_var(var_type="B") for _, _, x, y in self.pairs}
        model += xsum(self.c.values()) <= self.K - 1
        between: dict[tuple[int, int], list[Any]] = {}
        for i, j, x, y in self.pairs:
            model += 2 * (self.c[x, y] + self.c[y, x]) <= self.b[i] + self.b[j]
            between.setdefault((i, j), []).append(self.c[x, y])
        for joined in between.values():
            model += xsum(joined) <= 1
        return xsum(weights.join * float(problem.omega[x, y]) * var for (x, y), var in self.c.items())

    def connectedness(self) -> None:
        """The flow of appendix B.2, equations 11 to 15: K units from the source through the joins to the sink."""
        model, xsum, size = self.model, self.xsum, self.K
        large = size  # M: no flow exceeds K
        e = [model.add_var(var_type="B") for _ in self.tables]
        t = [model.add_var(lb=0, ub=1) for _ in self.tables]
        s = [model.add_var(lb=0) for _ in self.tables]
        f = {pair: model.add_var(lb=0) for pair in self.c}
        inward: list[list[Any]] = [[] for _ in self.tables]
        outward: list[list[Any]] = [[] for _ in self.tables]
        for i, j, x, y in self.pairs:
            outward[i].append(f[x, y])
            inward[j].append(f[x, y])
            model += f[x, y] * (1 / size) <= self.c[x, y]  # equation 15
            model += self.c[x, y] <= large * f[x, y]
        for i in self.tables:
            model += s[i] + xsum(inward[i]) == xsum(outward[i]) + t[i]  # equation 12
            model += e[i] <= self.b[i]  # equation 14
            model += s[i] == size * e[i]
            # The sink takes from chosen tables only: without this, a table beside the chosen ones could be one of
            # the K that equation 13 counts.
            model += t[i] <= self.b[i]
        model += xsum(t) == size  # equation 13
        model += xsum(e) == 1

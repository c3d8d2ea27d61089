"""Join-aware multi-table retrieval: the program of JAR, equations 1 to 6, equations 7 to 10 and equations 11 to 15.

Chen, Zhang, Roth: Is Table Retrieval a Solved Problem? Exploring Join-Aware Multi-Table Retrieval (ACL 2024), section
3.2 and appendix B. The program follows the paper line by line, and serves as a check of
:func:`~tagframe.retrieval.methods.jar.exact`, which finds the same optimum about a thousand times faster. The two
methods solve one problem: by default in our form, with ``as_printed=True`` in the paper's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from tagframe.errors import InvalidArgument, MissingExtra
from tagframe.retrieval.index import RetrievalIndex
from tagframe.retrieval.method import Prepared, column_by_column
from tagframe.retrieval.methods.jar import JAR, exact
from tagframe.retrieval.methods.join_aware import Variant
from tagframe.retrieval.problem import PAPER_WEIGHTS, ColumnProblem, Floats, JarWeights, Selection, best_first
from tagframe.retrieval.question import Question

DEVIATIONS = {
    "JAR: equations 1 to 6": (
        "CBC is the solver, not Gurobi; columns of ω = 0 have no variable, so they do not join; if the program has "
        "no solution, or none in time, `exact` chooses, and the result says so (`tag_bench` counts no tables then)"
    ),
    "JAR: equations 11 to 15": (
        "the sink takes from chosen tables only: otherwise a table beside them could be one of those that equation "
        "13 counts"
    ),
}
"""What is not as printed, or not printed, by paper and place; ``docs/papers.md`` has the same."""

NO_SOLUTION = "no solution"
STATUSES = ("optimal", "feasible", NO_SOLUTION, "infeasible")
"""How a program ended (iterative JAR, appendix B): solved; a set found, but not proven to be the best; none found in
time; or there is none."""


def mip(
    problem: ColumnProblem,
    k: int | None = None,
    weights: JarWeights = PAPER_WEIGHTS,
    *,
    variant: Variant = "F",
    seconds: float | None = None,
) -> Selection:
    """The optimum by python-mip with its bundled solver CBC.

    Args:
        problem: relevance and joinability column by column; anchors (an addition to the paper) are in every set.
        k: how many, the anchors not counted; None for all.
        weights: of the terms of the objective.
        variant: "D" leaves table-table relevance out, "F" is the full program. "G" is the same program over a problem
            in which declared keys have ω = 1 (see :class:`~tagframe.retrieval.joinability.Joinability`).
        seconds: the time limit; after it, the best set found is returned, and a note says so.

    If the program has no solution, or none was found in time, the result is that of ``exact``, and a note says so. The
    ``status`` of its facts is one of :data:`STATUSES`.

    Raises:
        MissingExtra: the package ``mip`` is not installed.
    """
    try:
        import mip as solver
    except ImportError as error:
        raise MissingExtra('method "mip" needs the solver: pip install "tagframe[mip]"') from error

    size = problem.reduce().wanted(k)
    if not size:
        return exact(problem.reduce(), 0, weights, joined=variant != "D")
    model = solver.Model(sense=solver.MAXIMIZE)
    model.verbose = 0
    model.threads = 1
    model.max_mip_gap = model.max_mip_gap_abs = 0.0
    program = _Program(problem, size + int(problem.anchor.sum()), model, solver)
    objective = program.relevance(weights)
    if variant != "D":
        objective += program.joins(weights)
        program.connectedness()
    model.objective = objective
    status = model.optimize(max_seconds=seconds if seconds is not None else solver.INF)
    if model.num_solutions == 0:
        is_infeasible = status == solver.OptimizationStatus.INFEASIBLE
        why = "has no solution" if is_infeasible else "found no solution in time"
        facts = {"status": "infeasible" if is_infeasible else NO_SOLUTION}
        selection = exact(problem.reduce(), k, weights, joined=variant != "D")
        note = f"the integer program {why}; the tables were chosen by exact"
        return replace(selection, note=note, facts=facts)
    chosen = np.array([i for i, b in enumerate(program.b) if b.x > 0.5 and not problem.anchor[i]])
    order = chosen[best_first(problem.r[chosen])]
    is_optimal = status == solver.OptimizationStatus.OPTIMAL
    note = "" if is_optimal else f"best set found in {seconds:g} s, not proven optimal"
    score, facts = weights.coarse * problem.r[order], {"status": "optimal" if is_optimal else "feasible"}
    return Selection(tuple(order.tolist()), float(model.objective_value), score, note=note, facts=facts)


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

    def edges(self) -> list[tuple[tuple[int, int], Any]]:
        """The pair of tables of each join variable."""
        return [((i, j), self.c[x, y]) for i, j, x, y in self.pairs if (x, y) in self.c]


@dataclass(frozen=True, kw_only=True)
class MIP(JAR):
    """JAR's integer program as it is printed, solved by a solver (extra ``mip``).

    Its other parameters are those of :class:`~tagframe.retrieval.methods.join_aware.JoinAware`.

    Attributes:
        seconds: the time limit of the solver, after which the best set found is returned. Iterative JAR gave an hour
            (its section 4).

    Raises:
        InvalidArgument: as :class:`~tagframe.retrieval.methods.join_aware.JoinAware`, or a time that is not above 0.
    """

    name: ClassVar[str] = "mip"
    summary: ClassVar[str] = "solves JAR's integer program with a solver"

    seconds: float = 60.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.seconds, (int, float)) or isinstance(self.seconds, bool) or not self.seconds > 0:
            raise InvalidArgument(f"seconds must be a time above 0, such as 60; got {self.seconds!r}")

    def prepare(
        self, index: RetrievalIndex, question: Question, relevance: Floats, anchored: int | None, k: int | None
    ) -> Prepared[ColumnProblem]:
        """The problem column by column, in this form."""
        share = self._weights().link_share
        return column_by_column(index, question, relevance, anchored, k, link_share=share, setup=self._setup)

    def select(self, problem: Any, k: int | None = None) -> Selection:
        """The optimum of the program over sets of k tables; the joins of columns include the link scores already."""
        weights = replace(self._weights(), link_share=0.0)
        return mip(problem, k, weights, variant=self.variant or "F", seconds=self.seconds)

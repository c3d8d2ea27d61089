"""``tag_bench speed selectors``: JAR's program with a solver, by branch and bound, and greedily.

``exact`` and ``mip`` solve the same problems: the twenty tables with the highest cosine, our ω without link scores, and
JAR's weights for BIRD. If both finish, their objectives are compared.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from tag_bench import DATA, benchmark, number
from tag_bench.data import Dataset, read_dataset, read_decompositions
from tag_bench.measured import spread, timed
from tag_bench.records import with_progress
from tagframe.embed import get_embedder
from tagframe.retrieval import Question
from tagframe.retrieval.index import RetrievalIndex
from tagframe.retrieval.method import CANDIDATES, column_joins
from tagframe.retrieval.methods.iterative_jar import greedy
from tagframe.retrieval.methods.jar import exact
from tagframe.retrieval.methods.mip import mip
from tagframe.retrieval.problem import PAPER_WEIGHTS, ColumnProblem, best_first


def cases(
    data: Dataset, index: RetrievalIndex, given: Sequence[Sequence[str]] | None, count: int, pool: int
) -> list[ColumnProblem]:
    """The problems, column by column, of some questions that need several tables, evenly spread over the file."""
    questions = [question for question in data.questions if len(question.gold) > 1]
    step = max(1, len(questions) // count)
    found = []
    for question in with_progress(questions[::step][:count], "problems"):
        parts = Question.of(question.text)
        if given is not None:
            parts = parts.with_subqueries(given[question.position], "given")
        ranking = index.dense(question.text)
        tables = np.sort(best_first(ranking)[:pool]).tolist()
        _, each = index.fine(parts.subqueries, tables)
        omega = column_joins(index, tables, link_share=0.0)
        found.append(ColumnProblem(ranking[tables], each, omega))
    return found


@benchmark("selectors")
@DATA
@number("--questions", 60, "The number of questions.")
@number("--mip-questions", 6, "The number of them for the solver.", least=0)
@click.option(
    "--mip-k", "mip_sizes", type=click.IntRange(min=1), multiple=True, default=(2, 3, 5), help="The numbers of tables."
)
@click.option("--mip-seconds", type=float, default=60.0, show_default=True, help="The solver's time limit.")
@number("--candidates", CANDIDATES, "The number of candidate tables.")
def command(
    data: Path,
    questions: int,
    mip_questions: int,
    mip_sizes: tuple[int, ...],
    mip_seconds: float,
    candidates: int,
) -> dict[str, Any]:
    """Time the selectors on the questions of a benchmark.

    Example: python -m tag_bench speed selectors --data spider --json -
    """
    dataset = read_dataset(data)
    path = data / "decomp.json"
    given = read_decompositions(str(path), dataset.questions) if path.is_file() else None
    index = RetrievalIndex(dataset.corpus, get_embedder(), declared_keys=False, described=dataset.described)
    problems = cases(dataset, index, given, questions, candidates)
    report: dict[str, Any] = {"dataset": dataset.name, "candidates": candidates, "exact": {}, "greedy": {}, "mip": {}}
    report["mip_over_exact"] = {}
    differences = []
    for k in (2, 3, 5, 10):
        reduced = [problem.reduce() for problem in problems]
        optimal = [timed(partial(exact, problem, k)) for problem in reduced]
        report["exact"][str(k)] = spread([1000 * seconds for seconds, _ in optimal])
        report["greedy"][str(k)] = spread([1000 * timed(partial(greedy, problem, k))[0] for problem in reduced])
        solved, ratios, ended = [], [], True
        on_solver = mip_questions if k in mip_sizes else 0
        for case, (seconds, best) in with_progress(
            list(zip(problems, optimal, strict=True))[:on_solver], f"mip, K={k}"
        ):
            on_solver_seconds, selection = timed(partial(mip, case, k, PAPER_WEIGHTS, seconds=mip_seconds))
            solved.append(1000 * on_solver_seconds)
            ratios.append(on_solver_seconds / seconds)
            if selection.note:
                ended = False
            else:
                differences.append(abs(selection.objective - best.objective))
        if solved:
            report["mip"][str(k)] = spread(solved)
            report["mip_over_exact"][str(k)] = {"ratio": round(statistics.median(ratios), 1), "lower_bound": not ended}
    report["objective_max_difference"] = max(differences, default=None)
    report["problems"] = len(differences)
    return report

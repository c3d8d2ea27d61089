"""``tag_bench speed selectors``: JAR's optimum by branch and bound, and the greedy choice.

The problems are the twenty tables with the highest cosine, our ω without link scores, and JAR's weights for BIRD.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tag_bench import DATA, benchmark, number
from tag_bench.data import Dataset, read_dataset, read_decompositions
from tag_bench.measured import spread
from tag_bench.records import with_progress
from tagframe.embed import get_embedder
from tagframe.retrieval import Question, Selection
from tagframe.retrieval.index import RetrievalIndex
from tagframe.retrieval.method import CANDIDATES
from tagframe.retrieval.methods.exact import exact
from tagframe.retrieval.methods.greedy import greedy
from tagframe.retrieval.problem import SelectionProblem, best_first


def cases(
    data: Dataset, index: RetrievalIndex, given: Sequence[Sequence[str]] | None, count: int, pool: int
) -> list[SelectionProblem]:
    """The problems of some questions that need several tables, evenly spread over the file."""
    questions = [question for question in data.questions if len(question.gold) > 1]
    step = max(1, len(questions) // count)
    found = []
    for question in with_progress(questions[::step][:count], "problems"):
        parts = Question.of(question.text)
        if given is not None:
            parts = parts.with_subqueries(given[question.position], "given")
        ranking = index.dense(question.text)
        tables = np.sort(best_first(ranking)[:pool]).tolist()
        fine, _ = index.fine(parts.subqueries, tables)
        omega = index.joinability_in(None, None).matrix(tables)
        found.append(SelectionProblem(r=ranking[tables], fine=fine, omega=omega))
    return found


def timed(run: Callable[[], Selection]) -> float:
    """Milliseconds of one run."""
    started = time.perf_counter()
    run()
    return 1000 * (time.perf_counter() - started)


@benchmark("selectors")
@DATA
@number("--questions", 60, "The number of questions.")
@number("--candidates", CANDIDATES, "The number of candidate tables.")
def command(data: Path, questions: int, candidates: int) -> dict[str, Any]:
    """Time the selectors on the questions of a benchmark.

    Example: python -m tag_bench speed selectors --data spider --json -
    """
    dataset = read_dataset(data)
    path = data / "decomp.json"
    given = read_decompositions(str(path), dataset.questions) if path.is_file() else None
    index = RetrievalIndex(dataset.corpus, get_embedder(), declared_keys=False, described=dataset.described)
    problems = cases(dataset, index, given, questions, candidates)
    report: dict[str, Any] = {"dataset": dataset.name, "candidates": candidates, "problems": len(problems)}
    for name, select in (("exact", exact), ("greedy", greedy)):
        report[name] = {
            str(k): spread([timed(partial(select, problem, k)) for problem in problems]) for k in (2, 3, 5, 10)
        }
    return report

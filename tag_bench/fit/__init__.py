"""``tag_bench fit PART``: fits the weights of one part of tagframe, and measures them on data they were not fitted on.

All parts do this in one way. Questions are drawn at random, always the same. A data set counts by a power of the number
of its cases (:func:`shares`). If the data has halves, one is fitted on and figures are made of the other
(:func:`to_fit`). Figures are of weights that were fitted without the data set (``left_out``) or without the database
(``cross_database``): :func:`left_out`. The weights that are written are fitted on all data.
"""

from __future__ import annotations

import importlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import click
import numpy as np

import tagframe as tf
from tag_bench import CACHE, FOLDERS, benchmark, number
from tag_bench.measured import percent
from tagframe.retrieval.problem import Floats

PARTS = ("tables", "alone", "names", "learned", "keys", "schemas")
"""The modules of this folder with a function ``fitted``: the choice of tables, the same where tables are few, and where
only names are known, learned statements, keys, the keys of bare schemas."""

FOLDS = 3
"""Of the databases, for figures without the question's database."""


class Case(Protocol):
    """What is fitted on."""

    @property
    def data(self) -> str:
        """The data set."""

    @property
    def database(self) -> str:
        """One of its databases."""

    @property
    def reported(self) -> bool:
        """Whether figures may be made of it."""


C = TypeVar("C", bound=Case)
T = TypeVar("T")
W = TypeVar("W")


@dataclass(frozen=True)
class Given:
    """What a part is fitted from.

    Attributes:
        folders: of the data sets.
        questions: drawn of each.
        cache: a folder for slow results.
        weights: the text of the file to update; None if there is none yet.
    """

    folders: Sequence[Path]
    questions: int
    cache: Path | None
    weights: str | None


@dataclass(frozen=True)
class Fitted:
    """What a part gives.

    Attributes:
        weights: by their names in the file.
        report: its figures.
        source: what the weights are fitted on, where it is not questions.
    """

    weights: Mapping[str, Any]
    report: Mapping[str, Any]
    source: str = ""


def shares(groups: Sequence[Hashable], power: float, each: Sequence[float] | None = None) -> Floats:
    """The weight of each case: its own, divided by a power of the number of cases in its group; the sum is 1."""
    count = Counter(groups)
    weights = [1.0] * len(groups) if each is None else each
    given = np.array([weight / count[group] ** power for weight, group in zip(weights, groups, strict=True)])
    return np.asarray(given / max(float(given.sum()), 1e-300))


def to_fit(cases: Sequence[C]) -> list[C]:
    """The cases to fit on: of data with a half for reporting, those of the other half."""
    halved = {case.data for case in cases if not case.reported}
    return [case for case in cases if not (case.reported and case.data in halved)]


def left_out(
    cases: Sequence[T], group: Callable[[T], Hashable], fit: Callable[[list[T]], W]
) -> Iterator[tuple[list[T], W]]:
    """The cases of each group, with the weights fitted on all other groups; nothing if there is one group."""
    groups = dict.fromkeys(map(group, cases))
    for left in groups if len(groups) > 1 else ():
        weights = fit([case for case in cases if group(case) != left])
        yield [case for case in cases if group(case) == left], weights


def grouped(cases: Iterable[T], key: Callable[[T], str]) -> dict[str, list[T]]:
    """The cases by a key, in their order."""
    found: dict[str, list[T]] = defaultdict(list)
    for case in cases:
        found[key(case)].append(case)
    return found


def folds(cases: Sequence[Case]) -> dict[tuple[str, str], int]:
    """A fold for every database of every data set; folds have about the same number of cases."""
    found: dict[tuple[str, str], int] = {}
    for data in dict.fromkeys(case.data for case in cases):
        load = [0] * FOLDS
        counts = Counter(case.database for case in cases if case.data == data)
        for database, count in sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])):
            fold = load.index(min(load))
            load[fold] += count
            found[data, database] = fold
    return found


def recall(found: Sequence[tuple[Set[Any], Set[Any]]]) -> dict[str, float | None]:
    """Recall and complete recall in percent, by the chosen and the needed tables of each question."""
    parts = [len(chosen & gold) / len(gold) for chosen, gold in found]
    return {"R": percent(parts), "CR": percent(part == 1.0 for part in parts)}


def rounded(weights: Mapping[str, float]) -> dict[str, float]:
    """Round to four digits, the precision of the data."""
    return {name: float(f"{value:.4g}") for name, value in weights.items()}


@benchmark("fit")
@click.argument("part", type=click.Choice(PARTS), default="tables")
@FOLDERS
@number("--questions", 300, "Drawn of each data set.")
@CACHE
@click.option("--embedder", help="A provider's model, or a sentence-transformers model by name or folder.")
@click.option("--weights", type=click.Path(dir_okay=False, path_type=Path), help="The file of weights to update.")
def command(
    part: str, folders: tuple[Path, ...], questions: int, cache: Path | None, embedder: str | None, weights: Path | None
) -> dict[str, Any]:
    """Fit the weights of a PART, and measure them on data that they were not fitted on.

    Example: python -m tag_bench fit keys --data spider_train spider bird fiben --weights tagframe/keys/weights.json
    """
    text = weights.read_text(encoding="utf-8") if weights is not None and weights.is_file() else None
    with tf.context(embedder=embedder):
        module = importlib.import_module(f"{__name__}.{part}")
        fitted: Fitted = module.fitted(Given(folders, questions, cache, text))
    names = [folder.resolve().name for folder in folders]
    if weights is not None:
        known = json.loads(text or "{}")
        encoder = f" --embedder {embedder}" if embedder else ""
        source = fitted.source or f"{questions} questions each of {', '.join(names)}"
        about = f"made by tag_bench fit {part}{encoder} from {source}"
        written = {**known, "about": {**known.get("about", {}), part: about}, **fitted.weights}
        weights.write_text(json.dumps(written, indent=2) + "\n", encoding="utf-8")
    return {
        "part": part,
        "data": names,
        **fitted.report,
        "weights": fitted.weights,
        "weights_file": None if weights is None else str(weights),
    }

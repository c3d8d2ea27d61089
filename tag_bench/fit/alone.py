"""``tag_bench fit alone``: the second stage of the default method where tables are few.

The weights of ``tag_bench fit tables`` are those of pooled databases, where most tables are of other databases. One
database or one folder is another case: its tables are near to each other, and what lacks costs the answer. So sets are
fitted once more, on questions in their own databases and on questions over folders of public files. A folder has
``files`` and a ``world.json`` with ``questions``, each a ``question``, its ``tables``, and the pieces of a table under
``stack``. The first stage and the confidence stay as they are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import tagframe as tf
from tag_bench.data import Dataset, Question, drawn, of_half, read_dataset, read_halves
from tag_bench.fit import Fitted, Given, folds, grouped, left_out, rounded
from tag_bench.fit.examples import Example, Maker
from tag_bench.fit.likelihood import fit_sets
from tag_bench.fit.tables import automatic, judge
from tagframe.retrieval.methods.weights import Weights, shipped_weights
from tagframe.retrieval.problem import FEW_TABLES

OF_FILES = 3.0
"""The weight of a folder of files, relative to a benchmark with as many questions: they are what users have."""

OF_ONE_TABLE = 0.4
"""The weight of a question that needs one table. Half of a benchmark's are such, and hardly any of those for which
somebody opens a folder of tables."""
_PENALTY = 0.05
"""Of what differs from the shipped weights. With less, fewer sets of databases that were left out are complete."""
_FURTHER = "other_databases"
"""The cost of a further database; no set here has one, so it cannot be fitted."""


def folders_of(folder: Path) -> Iterator[Dataset]:
    """The folders of files in a folder, each with its questions."""
    for place in sorted(path.parent for path in folder.glob("*/world.json")):
        corpus = tf.open_corpus(place / "files")
        ids: dict[str, list[str]] = {}
        for profile in corpus.profiles:
            ids.setdefault(_plain(profile.name), []).append(profile.id.lower())
        questions = []
        for position, one in enumerate(json.loads((place / "world.json").read_text(encoding="utf-8"))["questions"]):
            tables = [str(table).partition(" as ")[0] for table in one["tables"]]
            names = [piece for table in tables for piece in one.get("stack", {}).get(table, [table])]
            gold = {id for name in names for id in ids.get(_plain(Path(name).name), [name.lower()])}
            questions.append(Question(one["question"], place.name, frozenset(gold), position))
        yield Dataset("files", corpus, corpus, tuple(questions))


def _plain(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def read_alone(folder: Path, given: Given) -> list[Example]:
    """The questions of a benchmark, each in its own database, or those over folders of files."""
    maker = Maker.of(given.cache)
    if any(folder.glob("*/world.json")):
        made = maker.examples("files", folder.resolve().name, [*folders_of(folder)], given.questions, OF_FILES, None)
    else:
        data = read_dataset(folder)
        used = of_half(folder, "fit", data.questions) if read_halves(folder) else data.questions
        own = data.by_database(drawn(used, given.questions))
        made = maker.examples(data.name, "own", own, given.questions, 1.0, None)
    return [
        replace(one, weight=one.weight * (OF_ONE_TABLE if len(one.gold) == 1 else 1.0))
        for one in made
        if one.gold and len(one.ids) <= FEW_TABLES
    ]


def fit_alone(group: Sequence[Example]) -> Weights:
    """The second stage of these questions, near the shipped one."""
    shipped = shipped_weights()
    sets = fit_sets(group, Weights(shipped.table, {}), _PENALTY, shipped.set)
    return Weights(shipped.table, {**sets, _FURTHER: shipped.set[_FURTHER]}, apart=shipped.apart)


def fitted(given: Given) -> Fitted:
    """The weights where tables are few; the figures are of weights that were fitted without the database."""
    examples = [example for folder in given.folders for example in read_alone(folder, given)]
    fold_of = folds(examples)
    crossed = left_out(examples, lambda one: fold_of[one.data, one.database], fit_alone)
    judged = [one for mine, without in crossed for one in judge(mine, without)]
    report = {
        name: automatic(mine, Weights({}, {}, shipped_weights().complete))
        for name, mine in grouped(judged, lambda one: one.example.data).items()
    }
    return Fitted({"alone": {"table": {}, "set": rounded(fit_alone(examples).set)}}, {"auto": report})

"""Questions for ``tag_bench fit`` over a single database: their own, or another one, where nothing fits."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

from tag_bench.data import Question, drawn, of_half, read_dataset
from tag_bench.fit_examples import DOUBLE, Example, Maker, has_rows
from tagframe.retrieval.index import RetrievalIndex
from tagframe.retrieval.question import Question as Asked
from tagframe.retrieval.signals import gather


def read_alone(folder: Path, count: int, cache: Path | None = None) -> list[Example]:
    """The questions of a benchmark whose tables have rows, each in its own database.

    In a single database, other facts show whether a question fits than in a corpus of many databases. The facts
    ``elsewhere`` are those of the question in another database of the benchmark.

    Args:
        folder: as for :func:`tag_bench.data.read_dataset`.
        count: of questions; half as many are drawn, from the half for reporting if the data has one.
        cache: as for :func:`tag_bench.fit_examples.read_examples`.
    """
    data = read_dataset(folder)
    if not has_rows(data):
        return []  # these are asked so as they are
    counted = of_half(folder, "report", data.questions) if (folder / "halves.json").is_file() else data.questions
    parts: dict[str, list[Question]] = defaultdict(list)
    for question in drawn(counted, count // 2):
        parts[question.database.lower()].append(question)
    own = [replace(data.of(database), questions=tuple(asked)) for database, asked in sorted(parts.items())]
    maker = Maker.of(cache)
    made: dict[str, list[Example]] = defaultdict(list)
    for example in maker.examples(data.name, "alone", own, count // 2, DOUBLE, None):
        made[example.question.database.lower()].append(example)
    found = []
    for position, part in enumerate(own):
        other = own[position - 1]
        index = RetrievalIndex(other.corpus, maker.embedder, declared_keys=False, described=other.described)
        for example in made[part.questions[0].database.lower()]:
            facts = gather(index, Asked.of(example.question.text)).facts if other is not part else None
            found.append(replace(example, elsewhere=facts))
    return found

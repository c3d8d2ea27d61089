"""``tag_bench fit_beside``: fits how sure a set is where names of one database are all that is known.

The other weights of the file stay, to the digit, and with them all that is chosen. There are few warehouses to fit on
and no two are alike, so that four coefficients are fitted, each of which can count one way only, on worlds of many
kinds (:mod:`tag_bench.fit_worlds`). Benchmarks of small databases ask mostly for one or two tables, warehouses for
more, and a posterior hardly knows how many are needed: questions count by how many (:data:`NEEDED`). The honest figures
are those of ``left_out``: by what was fitted on the other data sets.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import numpy as np
from tqdm.auto import tqdm

from tag_bench import SpreadCommand
from tag_bench.fit import Judged, rounded
from tag_bench.fit_examples import Example
from tag_bench.fit_stages import fit_logistic
from tag_bench.fit_worlds import read_worlds
from tag_bench.retrieval import reliability
from tagframe.retrieval.methods.auto import completeness, confidence_of, fitted
from tagframe.retrieval.methods.confidence import NAMES, ONE_WAY, doubts, names_features
from tagframe.retrieval.methods.weights import Weights, read_weights
from tagframe.retrieval.problem import Floats

SEEN = {"log_tables": (0.0, None), "words": (None, 1.0), "known": (None, 1.0), "entropy": (0.0, None)}
"""The facts by which it is told whether any database was like one, and the end at which they are of no trouble."""

NEEDED = (0.1, 0.225, 0.225, 0.225, 0.225)
"""The share of all weight of the questions of each data set that need 1, 2, 3, 4, and 5 tables or more."""

SLACK = 0.1
"""How far outside of what was seen a fact is taken to be like it, as a share of the range."""

PENALTY = np.where([name == "one" for name in NAMES], 0.0, 1e-2)

FEW = 15
"""As many questions of a data set that need so many tables count half of what many of them do."""


@dataclass(frozen=True, eq=False)
class Asked:
    """A question, and what ``k="auto"`` gave for it.

    Attributes:
        data: the benchmark's name.
        world: the variant, and of one that is made its kind.
        facts: of the question, with :func:`~tagframe.retrieval.methods.confidence.doubts`.
        chance: of the set, as it is elsewhere.
        features: shape (len(NAMES),).
        is_complete: whether all that is needed was given.
        needed: how many tables are.
        before: the confidence by the weights of the file.
    """

    data: str
    world: str
    facts: dict[str, float]
    chance: float
    features: Floats
    is_complete: bool
    needed: int
    before: float

    @classmethod
    def of(cls, example: Example, weights: Weights) -> Asked:
        """The question by some weights."""
        one = Judged.of(example, weights)
        chosen = fitted(one.problem, None, weights, one.known).indices
        facts = {**one.problem.facts, **doubts(one.problem, one.known)}
        chance = completeness(one.problem, one.known, weights, [chosen])[0]
        gold = example.question.gold
        return cls(
            example.data,
            example.question.database.split()[0] if example.variant == "made" else example.variant,
            facts,
            chance,
            names_features(chance, facts),
            gold <= {one.ids[position] for position in chosen},
            len(gold),
            confidence_of(one.problem, one.known, weights, chosen),
        )


def fit(asked: Sequence[Asked], known: Weights) -> Weights:
    """The weights with those of names alone, by some questions."""
    seen = {}
    for name, (least, most) in SEEN.items():
        values = [one.facts[name] for one in asked]
        wide = SLACK * (max(values) - min(values))
        seen[name] = (min(values) - wide if least is None else least, max(values) + wide if most is None else most)
    return replace(known, names=fit_names(asked), seen=seen, spread=_spread(asked))


def fit_names(asked: Sequence[Asked]) -> dict[str, float]:
    """The coefficients, by some questions; benchmarks of which all worlds are made count as one together."""
    needed = [min(one.needed, len(NEEDED)) for one in asked]
    count = Counter((one.data, number) for one, number in zip(asked, needed, strict=True))
    real = {one.data for one in asked if one.world == "world"}
    share = {name: 1.0 if name in real else 1 / len({name for name, _ in count} - real) for name, _ in count}
    weight = [
        share[one.data] * NEEDED[number - 1] / (count[one.data, number] + FEW)
        for one, number in zip(asked, needed, strict=True)
    ]
    features, truth = np.array([one.features for one in asked]), np.array([one.is_complete for one in asked])
    return fit_logistic(features, truth, np.array(weight), NAMES, PENALTY, ONE_WAY)


def _spread(asked: Sequence[Asked]) -> float:
    """How far the log odds of a complete set are off in a data set that was left out, as a rule."""
    off = []
    for name in sorted({one.data for one in asked}):
        mine, others = ([one for one in asked if (one.data == name) is is_mine] for is_mine in (True, False))
        if others:
            by_others = fit_names(others)
            logit = np.array([one.features for one in mine]) @ np.array([by_others[name] for name in NAMES])
            rows, truth = np.stack([logit, np.ones(len(logit))], axis=1), np.array([one.is_complete for one in mine])
            off.append(fit_logistic(rows, truth, np.ones(len(truth)), ("off", "one"), fixed={"off": 1.0})["one"])
    return float(np.sqrt(np.mean(np.square(off)))) if off else 0.0


@click.command("fit_beside", cls=SpreadCommand, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--data",
    "folders",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    multiple=True,
    required=True,
    help="A folder, or several.",
)
@click.option("--questions", type=click.IntRange(min=2), default=300, show_default=True, help="Of each data set.")
@click.option("--cache", type=click.Path(file_okay=False, path_type=Path), help="A folder, as of fit.")
@click.option(
    "--weights",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    required=True,
    help="A weights.json, which they are written into.",
)
@click.option("--json", "output", type=click.File("w"), default="-", help="Where the JSON goes; - for standard output.")
def command(folders: tuple[Path, ...], questions: int, cache: Path | None, weights: Path, output: Any) -> None:
    """Fit how sure a set is where names are all that is known, and report it on data that it was not fitted on.

    Example: python -m tag_bench fit_beside --data spider bird fiben spider2 --weights tagframe/retrieval/weights.json
    """
    known = read_weights(weights.read_text(encoding="utf-8"))
    groups: dict[str, list[Asked]] = {}
    for folder in folders:
        examples = read_worlds(folder, questions, cache)
        groups[folder.resolve().name] = [Asked.of(one, known) for one in tqdm(examples, desc="judged", disable=None)]
    report: dict[str, Any] = {"data": list(groups), "left_out": {}}
    for name, mine in groups.items() if len(groups) > 1 else []:
        others = fit([one for other, group in groups.items() if other != name for one in group], known)
        report["left_out"][name] = judged(mine, others)
    final = fit([one for group in groups.values() for one in group], known)
    given = json.loads(weights.read_text(encoding="utf-8"))
    given["names"] = rounded(final.names)
    given["seen"] = {name: [round(end, 3) for end in ends] for name, ends in final.seen.items()}
    given["spread"] = round(final.spread, 3)
    weights.write_text(json.dumps(given, indent=2) + "\n", encoding="utf-8")
    report["names"], report["spread"] = given["names"], given["spread"]
    json.dump(report, output, indent=2)
    output.write("\n")


def judged(asked: Sequence[Asked], after: Weights) -> dict[str, Any]:
    """How well the confidence holds in each kind of world, by the weights before and after."""
    by_world: dict[str, list[Asked]] = defaultdict(list)
    for one in asked:
        by_world[one.world].append(one)
    found: dict[str, Any] = {}
    for world, group in sorted(by_world.items()):
        truth = np.array([one.is_complete for one in group], dtype=float)
        now = np.array([after.by_names(one.chance, one.features) for one in group])
        off = np.where([after.unlike(one.facts) for one in group], after.spread, 0.0)
        by = {"before": np.array([one.before for one in group]), "after": 1 / (1 + (1 / now - 1) * np.exp(off))}
        found[world] = {"questions": len(group), "CR": round(100 * float(truth.mean()), 2)}
        for name, sure in by.items():
            found[world][name] = {
                "confidence": round(100 * float(sure.mean()), 2),
                "reliability": reliability(sure, truth),
                "auc": _auc(sure, truth),
            }
    return found


def _auc(sure: Floats, truth: Floats) -> float | None:
    """The share of pairs, of a complete and an incomplete set, of which the complete one is the surer; ties half."""
    lead = sure[truth == 1][:, None] - sure[truth == 0]
    return round(float((np.sign(lead) / 2 + 0.5).mean()), 3) if lead.size else None


if __name__ == "__main__":
    command()

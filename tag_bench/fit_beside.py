"""``tag_bench fit_beside``: fits the weights that the shipped file lacks, beside those that it has.

What is fitted so is a new feature of sets, a new fact, or what makes the confidence hold in one database of which names
alone are known (:mod:`tag_bench.fit_worlds`). The other weights stay, to the digit, and with them all that is chosen
where the new ones have nothing to say. Of data with ``halves.json`` only the databases to ``fit`` on are fitted on. The
honest figures are those of ``left_out``: by what was fitted on the other data sets.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from tag_bench import SpreadCommand
from tag_bench.data import read_dataset
from tag_bench.fit import Judged, automatic, fit_confidence, recalls, rounded, unfit
from tag_bench.fit_alone import read_alone
from tag_bench.fit_examples import Example, has_rows, read_examples
from tag_bench.fit_stages import fit_logistic, fit_sets
from tag_bench.fit_worlds import read_worlds
from tagframe.retrieval.methods.confidence import COMPLETE, doubts
from tagframe.retrieval.methods.weights import Weights, read_weights

SEEN = ("log_tables", "words", "known", "entropy")
"""The facts by which it is told whether any database was like one."""

SLACK = 0.1
"""How far outside of what was seen a fact is taken to be like it, as a share of the range."""


def fit(group: Sequence[Example], known: Weights) -> Weights:
    """The weights with those that are not known, by some questions."""
    fitted_on = _to_fit(group)
    plain = [example for example in fitted_on if example.variant not in ("world", "short")]
    stages = replace(known, set={**known.set, **fit_sets(plain, known, known.set)}) if plain else known
    judged = [Judged.of(example, stages) for example in fitted_on]
    complete, fits = fit_confidence(judged, known)
    bare = [Judged.of(example, stages) for example in group if example.problem.facts["bare"]]
    facts = [{**one.problem.facts, **doubts(one.problem.r, one.known)} for one in bare]
    values = {name: [one[name] for one in facts] for name in SEEN if facts}
    wide = {name: SLACK * (max(each) - min(each)) for name, each in values.items()}
    seen = {name: (min(each) - wide[name], max(each) + wide[name]) for name, each in values.items()}
    return replace(
        stages,
        complete=complete,
        fits=fits,
        seen=seen,
        spread=_spread([one for one in judged if one.problem.facts["bare"]], known),
    )


def _spread(judged: Sequence[Judged], known: Weights) -> float:
    """How far the log odds of a complete set are off in a data set that was left out, as a rule."""
    names = {one.example.data for one in judged}
    off = []
    for name in names if len(names) > 1 else ():
        complete, _ = fit_confidence([one for one in judged if one.example.data != name], replace(known, fits={}))
        parts = [one.sets() for one in judged if one.example.data == name]
        features = np.concatenate([of_sets for of_sets, _ in parts])
        truth = np.concatenate([np.array(is_complete, dtype=bool) for _, is_complete in parts])
        stays = {"off": 1.0}
        logit = features @ np.array([complete[one] for one in COMPLETE])
        rows = np.stack([logit, np.ones(len(logit))], axis=1)
        off.append(fit_logistic(rows, truth, np.ones(len(truth)), ("off", "one"), stays)["one"])
    return float(np.sqrt(np.mean(np.square(off)))) if off else 0.0


def _to_fit(group: Sequence[Example]) -> list[Example]:
    apart = {example.data for example in group if not example.reported}
    return [example for example in group if example.data not in apart or not example.reported]


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
    """Fit the weights that a file lacks, beside those that it has, and report them on data they were not fitted on.

    Example: python -m tag_bench fit_beside --data spider bird fiben spider2 --weights tagframe/retrieval/weights.json
    """
    known = read_weights(weights.read_text(encoding="utf-8"))
    groups: dict[str, list[Example]] = defaultdict(list)
    for folder in folders:
        reads = (read_examples, read_alone, read_worlds) if has_rows(read_dataset(folder)) else (read_worlds,)
        for read in reads:
            groups[folder.resolve().name] += read(folder, questions, cache)
    report: dict[str, Any] = {"data": list(groups), "left_out": {}}
    for name, mine in groups.items() if len(groups) > 1 else []:
        others = fit([example for other, group in groups.items() if other != name for example in group], known)
        report["left_out"][name] = _judged(mine, known, others)
    final = fit([example for group in groups.values() for example in group], known)
    given = json.loads(weights.read_text(encoding="utf-8"))
    for part, values in (("set", final.set), ("complete", final.complete), ("fits", final.fits)):
        given[part] |= rounded({name: value for name, value in values.items() if name not in given[part]})
    given |= {"seen": {name: [round(end, 3) for end in ends] for name, ends in final.seen.items()}}
    given |= {"spread": round(final.spread, 3)}
    weights.write_text(json.dumps(given, indent=2) + "\n", encoding="utf-8")
    json.dump(report, output, indent=2)
    output.write("\n")


def _judged(group: Sequence[Example], before: Weights, after: Weights) -> dict[str, Any]:
    """The figures of each way to ask, by the weights before and after."""
    by_variant: dict[str, list[Example]] = defaultdict(list)
    for example in group:
        if example.reported:
            by_variant[example.variant].append(example)
    found: dict[str, Any] = {}
    for variant, examples in by_variant.items():
        for name, weights in (("before", before), ("after", after)):
            judged = [Judged.of(example, weights) for example in examples]
            found[f"{variant} {name}".strip()] = {
                **recalls(judged), "auto": automatic(judged, weights.complete), "unfit": unfit(judged, weights.fits)
            }  # fmt: skip
    return found


if __name__ == "__main__":
    command()

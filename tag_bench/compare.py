"""``tag_bench compare``: whether two runs differ by more than chance, question by question.

Both runs asked the same questions, so the difference is judged within questions: its interval is that of a paired
bootstrap over questions (Efron and Tibshirani, 1993), and the p of measures that are true or false is that of McNemar's
exact test over the questions on which the runs differ (McNemar, 1947).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd

from tag_bench import FILE, benchmark
from tag_bench.records import SEEDED, SELECTIONS, Record, commit, read_records
from tagframe.retrieval.problem import Floats

DRAWS = 10_000
"""The samples of the bootstrap."""
_AT_ONCE = 2_000_000
_TRUTHS = ("right", "strict", "tolerant", "strict_here", "tolerant_here")
"""Facts of records that say whether an answer is right."""


def scores_in(record: Mapping[str, Any]) -> dict[str, float]:
    """The measures of a record that have a value: its ``scores``, and whether its answer is right."""
    found = {**{name: record.get(name) for name in _TRUTHS}, **record.get("scores", {})}
    return {name: float(value) for name, value in found.items() if value is not None}


def mcnemar(only_first: int, only_second: int) -> float:
    """The two-sided exact p of McNemar's test: of as uneven a split of the questions that one run alone gets right.

    >>> round(mcnemar(8, 1), 7), mcnemar(0, 0)
    (0.0390625, 1.0)
    """
    from scipy import stats

    differing = only_first + only_second
    return float(stats.binomtest(only_first, differing).pvalue) if differing else 1.0


def bootstrap(differences: Floats, seed: int) -> tuple[float, float, float]:
    """The 95 % interval of a mean difference, and its two-sided p: shape (n,) of differences within questions."""
    random, count = np.random.default_rng(seed), len(differences)
    means: list[Floats] = []
    left = DRAWS
    while left:
        draws = min(left, max(1, _AT_ONCE // count))
        means.append(differences[random.integers(0, count, (draws, count))].mean(axis=1))
        left -= draws
    drawn = np.concatenate(means)
    low, high = np.percentile(drawn, [2.5, 97.5])
    beyond = min(np.count_nonzero(drawn <= 0), np.count_nonzero(drawn >= 0))
    return float(low), float(high), min(1.0, 2 * (beyond + 1) / (DRAWS + 1))


def compared(first: Sequence[float], second: Sequence[float], seed: int) -> dict[str, Any]:
    """The comparison of one measure over the same questions, in percent."""
    one, other = np.array(first), np.array(second)
    low, high, p = bootstrap(other - one, seed)
    found: dict[str, Any] = {
        "questions": len(one),
        "a": _percent(one.mean()),
        "b": _percent(other.mean()),
        "difference": _percent((other - one).mean()),
        "interval": [_percent(low), _percent(high)],
        "better": {"a": int((one > other).sum()), "b": int((other > one).sum())},
    }
    if np.isin([one, other], (0.0, 1.0)).all():
        return {**found, "p": mcnemar(found["better"]["a"], found["better"]["b"]), "test": "McNemar, exact"}
    return {**found, "p": p, "test": "paired bootstrap"}


def _percent(share: Any) -> float:
    return round(100 * float(share), 2)


def paired(first: Sequence[Record], second: Sequence[Record], names: tuple[str, str]) -> list[tuple[Record, Record]]:
    """The records of the questions that both files have.

    Raises:
        click.ClickException: there is none, or an id stands for two questions.
    """
    others = {record["id"]: record for record in second}
    pairs = [(record, others[record["id"]]) for record in first if record["id"] in others]
    if not pairs:
        raise click.ClickException(f"{names[0]} ({len(first)} questions) and {names[1]} ({len(second)}) share none")
    of = [{record.get("settings", {}).get("data") for record in records} - {None} for records in (first, second)]
    if all(of) and of[0] != of[1]:
        raise click.ClickException(f"{names[0]} is of {_listed(of[0])}, {names[1]} of {_listed(of[1])}: no comparison")
    return pairs


def _listed(names: set[Any]) -> str:
    return ", ".join(sorted(map(str, names)))


def other_settings(first: Record, second: Record) -> Iterator[str]:
    """What is set in another way, and how."""
    one, other = (record.get("settings", {}) for record in (first, second))
    for name in sorted((one.keys() | other.keys()) - SELECTIONS):
        if one.get(name) != other.get(name):
            yield f"{name}: A {one.get(name)}, B {other.get(name)}"


def table(result: Mapping[str, Any]) -> str:
    """The comparison as a text table."""
    counts = result["questions"]
    heads = [f"A = {result['a']}", f"B = {result['b']}", *result["other_settings"]]
    heads.insert(2, f"{counts['both']} questions in both, {counts['only_a']} only in A, {counts['only_b']} only in B")
    rows = {}
    for name, one in result["measures"].items():
        low, high = one["interval"]
        better = f"{one['better']['a']} / {one['better']['b']}, {one['questions']} ({one['test']})"
        p = "<.0001" if one["p"] < 1e-4 else f"{one['p']:.4f}"
        figures = f"{one['a']:.2f}", f"{one['b']:.2f}", f"{one['difference']:+.2f}"
        rows[name] = [*figures, f"{low:+.2f} to {high:+.2f}", p, better]
    columns = ["A", "B", "B - A", "95 % interval", "p", "better A / B, of"]
    frame = pd.DataFrame([*rows.values()], index=[*rows], columns=columns)
    return "\n".join([*heads, str(frame.rename_axis(columns="%").to_string())])


@benchmark("compare", table)
@click.argument("a", type=FILE)
@click.argument("b", type=FILE)
@click.option("--measure", "measures", multiple=True, help="Only this measure, such as CR@2; by default all.")
@SEEDED
def command(a: Path, b: Path, measures: tuple[str, ...], seed: int) -> dict[str, Any]:
    """Compare two files of --records: both figures, their difference with its 95 % interval and p.

    Only questions that have the measure in both files are compared.

    Example: python -m tag_bench compare exact.jsonl greedy.jsonl --measure CR@2
    """
    first, second = read_records(a), read_records(b)
    pairs = paired(first, second, (str(a), str(b)))
    scores = [(scores_in(one), scores_in(other)) for one, other in pairs]
    shared = list(dict.fromkeys(name for one, other in scores for name in one if name in other))
    names = list(measures) or shared
    missing = [name for name in names if name not in shared]
    if missing or not names:
        fact = f"measure {', '.join(missing)} is not" if missing else "no measure is"
        raise click.ClickException(f"{fact} in both files; both have: {', '.join(shared) or 'none'}")
    result: dict[str, Any] = {
        "a": str(a),
        "b": str(b),
        "questions": {"both": len(pairs), "only_a": len(first) - len(pairs), "only_b": len(second) - len(pairs)},
        "other_settings": list(other_settings(*pairs[0])),
        "seed": seed,
        "commit": commit(),
        "measures": {},
    }
    for name in names:
        values = [(one[name], other[name]) for one, other in scores if name in one and name in other]
        result["measures"][name] = compared([one for one, _ in values], [other for _, other in values], seed)
    return result

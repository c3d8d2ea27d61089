"""``tag_bench speed operators``: requests, rounds, tokens, time and rows a second of operators.

On request they are compared with LOTUS, and where each row is a request also with a bare loop of requests. All sides
use the same kind of local server, in a separate process, and each run is a new process. Repeats of the sides alternate,
and each figure is the median over the repeats. The cases are those of :data:`tag_bench.speed.cases.CASES`.
"""

from __future__ import annotations

import subprocess
from collections.abc import Collection
from typing import Any

import click

from tag_bench import benchmark, number
from tag_bench.measured import in_process, median
from tag_bench.server import ServerProcess
from tag_bench.speed.cases import CASES, Case

_TIMEOUT = 900
_ATTEMPTS = 3


def measure(case: Case, side: str, url: str) -> dict[str, float]:
    """One run of a side in a new process; a run that hangs is reported and repeated."""
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return in_process("tag_bench.speed.cases", side, case.name, url, timeout=_TIMEOUT)
        except subprocess.TimeoutExpired:
            click.echo(f"{case.name} {side}: hung for {_TIMEOUT} s (attempt {attempt} of {_ATTEMPTS})", err=True)
    raise click.ClickException(f"{case.name} {side}: hung {_ATTEMPTS} times")


def compare(case: Case, peer: bool, repeats: int) -> dict[str, Any]:
    """All sides of a case, by their key in the output."""
    sides = ["ours", *(["peer"] if peer else []), *(["bare"] if case.bare else [])]
    runs: dict[str, list[dict[str, float]]] = {side: [] for side in sides}
    repeats = max(repeats, case.repeats)
    with ServerProcess(case.latency, case.answers) as server:
        for side in sides * repeats:
            figures = measure(case, side, server.url)
            runs[side].append(figures)
            click.echo(f"{case.name} {side}: {figures['requests']} requests, {figures['seconds']:.2f} s", err=True)
    found = {side: {name: round(figure, 4) for name, figure in median(run).items()} for side, run in runs.items()}
    return {"name": case.name, "repeats": repeats, **found}


def command_of(name: str, cases: Collection[str], repeats: int, about: str) -> click.Command:
    """A command that measures some of the cases."""

    @benchmark(name)
    @click.option("--peer", type=click.Choice(["lotus"]), help="Also measure another library (needs its extra).")
    @click.option("--case", "names", type=click.Choice(list(cases)), multiple=True, help="Only these cases.")
    @number("--repeats", repeats, "The lowest number of runs of each side.")
    def measured(peer: str | None, names: tuple[str, ...], repeats: int) -> dict[str, Any]:
        return {"cases": [compare(CASES[name], peer is not None, repeats) for name in names or cases]}

    measured.help = f"{about}, with a local server.\n\nExample: python -m tag_bench speed {name} --peer lotus --json -"
    return measured


command = command_of("operators", CASES, 1, "Requests, rounds, tokens, seconds and rows a second of the operators")

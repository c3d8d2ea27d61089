"""``tag_bench speed lm``: rows through the LM layer, compared with a bare aiohttp loop and, on request, LOTUS.

All sides of a case use the same kind of local server, in a separate process, and each run is a new process. Repeats of
the sides alternate, and each figure is the median over the repeats. Imports and one warm-up request are not measured.
"""

from __future__ import annotations

import subprocess
from typing import Any

import click

from tag_bench import benchmark, number
from tag_bench.measured import in_process, median
from tag_bench.server import ServerProcess
from tag_bench.speed.sides import CASES, Case

_TIMEOUT = 300
_ATTEMPTS = 3


def measure(case: Case, side: str, url: str) -> dict[str, float]:
    """One run of a side in a new process; a run that hangs is reported and repeated."""
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return in_process("tag_bench.speed.sides", side, case.name, url, timeout=_TIMEOUT)
        except subprocess.TimeoutExpired:
            click.echo(f"{case.name} {side}: hung for {_TIMEOUT} s (attempt {attempt} of {_ATTEMPTS})", err=True)
    raise click.ClickException(f"{case.name} {side}: hung {_ATTEMPTS} times")


def compare(case: Case, sides: dict[str, str], repeats: int) -> dict[str, Any]:
    """All sides of a case, by their key in the output."""
    runs: dict[str, list[dict[str, float]]] = {key: [] for key in sides}
    repeats = max(repeats, case.repeats)
    with ServerProcess(case.latency) as server:
        for _ in range(repeats):
            for key, side in sides.items():
                figures = measure(case, side, server.url)
                runs[key].append(figures)
                click.echo(f"{case.name} {side}: {figures['rows_per_second']:.0f} rows/s", err=True)
    result: dict[str, Any] = {"name": case.name} | {key: median(run) for key, run in runs.items()}
    result["rows_per_second_over"] = {
        key: round(result["ours"]["rows_per_second"] / result[key]["rows_per_second"], 3)
        for key in sides
        if key != "ours"
    }
    result["repeats"] = repeats
    return result


@benchmark("lm")
@click.option("--peer", type=click.Choice(["lotus"]), help="Also measure another library (needs its extra).")
@click.option("--case", "names", type=click.Choice(list(CASES)), multiple=True, help="Only these cases.")
@number("--repeats", 3, "The number of runs of each side.")
def command(peer: str | None, names: tuple[str, ...], repeats: int) -> dict[str, Any]:
    """Rows per second, CPU and memory of df.tag.sem_filter, with a local server.

    Example: python -m tag_bench speed lm --peer lotus --json -
    """
    cases = []
    for case in [CASES[name] for name in names or CASES]:
        sides = {"ours": "ours"} | ({"peer": peer} if peer else {}) | ({"bare": "bare"} if case.bare else {})
        cases.append(compare(case, sides, repeats))
    return {"cases": cases}

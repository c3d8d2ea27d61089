"""``tag_bench speed operators``: requests, rounds, tokens and time of operators, on request compared with LOTUS.

As in ``tag_bench speed lm``, all sides use the same kind of local server, in a separate process, and each run is a new
process. Repeats of the sides alternate, and each figure is the median over the repeats. The cases are those of
:data:`tag_bench.speed.cases.CASES`.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from typing import Any

import click

from tag_bench.server import ServerProcess
from tag_bench.speed.cases import CASES, Case

_TIMEOUT = 900
_QUIET = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "TQDM_DISABLE": "1"}
"""Environment for both sides: no progress bars, and no download of prices."""


def measure(case: Case, side: str, url: str) -> dict[str, float]:
    """One run of a side in a new process."""
    done = subprocess.run(
        [sys.executable, "-m", "tag_bench.speed.cases", side, case.name, url],
        stdout=subprocess.PIPE, text=True, timeout=_TIMEOUT, check=False, env=os.environ | _QUIET,
    )  # fmt: skip
    if done.returncode:
        raise click.ClickException(f"{case.name} {side}: failed, see above")
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def compare(case: Case, peer: bool, repeats: int) -> dict[str, Any]:
    """Both sides of a case, by their key in the output."""
    sides = ["ours", *(["peer"] if peer and case.peer is not None else [])]
    runs: dict[str, list[dict[str, float]]] = {side: [] for side in sides}
    repeats = max(repeats, case.repeats)
    with ServerProcess(case.latency, case.answers) as server:
        for _ in range(repeats):
            for side in sides:
                figures = measure(case, side, server.url)
                runs[side].append(figures)
                click.echo(f"{case.name} {side}: {figures['requests']} requests, {figures['seconds']:.2f} s", err=True)
    result: dict[str, Any] = {"name": case.name, "repeats": repeats}
    for side in sides:
        result[side] = {name: round(statistics.median(run[name] for run in runs[side]), 4) for name in runs[side][0]}
    return result


@click.command("operators", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--peer", type=click.Choice(["lotus"]), help="Also measure another library (needs its extra).")
@click.option("--case", "names", type=click.Choice(list(CASES)), multiple=True, help="Only these cases.")
@click.option(
    "--repeats",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="The lowest number of runs of each side.",
)
@click.option("--json", "output", type=click.File("w"), default="-", help="Where the JSON goes; - for standard output.")
def command(peer: str | None, names: tuple[str, ...], repeats: int, output: Any) -> None:
    """Requests, rounds, tokens and seconds of the operators, with a local server.

    Example: python -m tag_bench speed operators --peer lotus --json -
    """
    cases = [compare(CASES[name], peer is not None, repeats) for name in names or CASES]
    json.dump({"cases": cases}, output, indent=2)
    output.write("\n")

"""``tag_bench speed sources``: tables that stay in their source: a server, a lake, partitions.

The cases are those of :data:`tag_bench.speed.source_cases.CASES`. Each first makes its tables, which is not measured;
then its steps run, each in a new process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import click

from tag_bench import benchmark
from tag_bench.speed.source_cases import CASES, SourceCase

_TIMEOUT = 1_800
_QUIET = {"TQDM_DISABLE": "1", "TOKENIZERS_PARALLELISM": "false"}


def measure(case: SourceCase, step: str, source: str, folder: Path) -> dict[str, float]:
    """The figures of one step."""
    done = subprocess.run(
        [sys.executable, "-m", "tag_bench.speed.source_cases", case.name, step, source, str(folder)],
        stdout=subprocess.PIPE, text=True, timeout=_TIMEOUT, check=False, env=os.environ | _QUIET,
    )  # fmt: skip
    if done.returncode:
        raise click.ClickException(f"{case.name}, {step}: failed, see above")
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return {name: round(figure, 4) for name, figure in figures.items()}


def all_steps(case: SourceCase, scale: float) -> dict[str, Any]:
    """The figures of a case, by the names of its steps."""
    result: dict[str, Any] = {"name": case.name, "scale": scale}
    with tempfile.TemporaryDirectory() as scratch, case.source(Path(scratch), scale) as source:
        for step in case.steps:
            result[step] = measure(case, step, source, Path(scratch))
            click.echo(f"{case.name}, {step}: {result[step]}", err=True)
    return result


@benchmark("sources")
@click.option(
    "--case",
    "names",
    multiple=True,
    help="Only these cases; an unknown name lists all.",
)
@click.option(
    "--scale", type=click.FloatRange(min=0, min_open=True, max=1), default=1, show_default=True,
    help="The share of the full sizes, for a quick run.",
)  # fmt: skip
def command(names: tuple[str, ...], scale: float) -> dict[str, Any]:
    """Seconds, megabytes and requests over servers, lakes and partitions.

    Example: python -m tag_bench speed sources --case postgres_merge --scale 0.1 --json -
    """
    unknown = [name for name in names if name not in CASES]
    if unknown:
        raise click.BadParameter(f"no case {', '.join(unknown)}; there are {', '.join(CASES) or 'none'}")
    cases = [all_steps(CASES[name], scale) for name in names or CASES]
    return {"cases": cases}

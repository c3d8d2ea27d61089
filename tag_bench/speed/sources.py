"""``tag_bench speed sources``: tables that stay in their source: a server, a lake, partitions.

The cases are those of :data:`tag_bench.speed.source_cases.CASES`. Each first makes its tables, which is not measured;
then its steps run, each in a new process.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import click

from tag_bench import benchmark
from tag_bench.measured import in_process
from tag_bench.speed.source_cases import CASES, SourceCase

_TIMEOUT = 1_800


def all_steps(case: SourceCase, scale: float) -> dict[str, Any]:
    """The figures of a case, by the names of its steps."""
    result: dict[str, Any] = {"name": case.name, "scale": scale}
    with tempfile.TemporaryDirectory() as scratch, case.source(Path(scratch), scale) as source:
        for step in case.steps:
            found = in_process("tag_bench.speed.source_cases", case.name, step, source, scratch, timeout=_TIMEOUT)
            result[step] = {name: round(figure, 4) for name, figure in found.items()}
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

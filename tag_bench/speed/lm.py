"""``tag_bench speed lm``: the cases of ``speed operators`` in which rows a second count."""

from __future__ import annotations

from typing import Any

import click

from tag_bench import benchmark, number
from tag_bench.speed.cases import CASES
from tag_bench.speed.operators import compare

NAMES = ("filter_10k_50ms", "filter_1k_500ms", "filter_duplicates", "filter_from_store", "long_prompts")


@benchmark("lm")
@click.option("--peer", type=click.Choice(["lotus"]), help="Also measure another library (needs its extra).")
@click.option("--case", "names", type=click.Choice(NAMES), multiple=True, help="Only these cases.")
@number("--repeats", 3, "The lowest number of runs of each side.")
def command(peer: str | None, names: tuple[str, ...], repeats: int) -> dict[str, Any]:
    """Rows a second, computing time and memory of df.tag.sem_filter, with a local server.

    Example: python -m tag_bench speed lm --peer lotus --json -
    """
    return {"cases": [compare(CASES[name], peer is not None, repeats) for name in names or NAMES]}

"""``python -m tag_bench``."""

import importlib
from pathlib import Path

import click

from tag_bench import LazyGroup
from tag_bench.fingerprints import watch
from tag_bench.records import PLUGINS


def imported(ctx: click.Context, param: click.Parameter, modules: tuple[str, ...]) -> None:
    """Import the modules before the command is looked up, so that it knows what they register."""
    ctx.meta[PLUGINS] = modules
    watch(*modules)
    for module in modules:
        try:
            importlib.import_module(module)
        except Exception as error:  # whatever the module raises
            raise click.BadParameter(f"{module} cannot be imported: {type(error).__name__}: {error}") from error


PLUGIN = click.Option(
    ["--plugin"],
    multiple=True,
    metavar="MODULE",
    expose_value=False,
    callback=imported,
    help="Import this module first, for the methods that it registers: --plugin mine retrieval --method mine.",
)
main = LazyGroup(
    "tag_bench", Path(__file__).parent, "Measure tagframe: accuracy against the papers, speed against peers.", [PLUGIN]
)

if __name__ == "__main__":
    main(prog_name="python -m tag_bench")

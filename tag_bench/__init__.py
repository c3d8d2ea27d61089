"""The benchmark harness: it reproduces the papers' tables and compares with other libraries.

``python -m tag_bench COMMAND``; a module ``tag_bench/NAME.py`` (or package) that defines ``command`` is the subcommand
NAME.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import click

_DEFINES_COMMAND = re.compile(r"^(?:def command\b|command\b.*=)", re.MULTILINE)


class LazyGroup(click.Group):
    """A group whose subcommands are the modules of a package that define ``command``; they are imported when called.

    Args:
        package: the package's import name.
        folder: its folder.
    """

    def __init__(self, package: str, folder: Path, help: str) -> None:  # click's own name
        super().__init__(name=package.rpartition(".")[2], help=help)
        self._package = package
        self._folder = folder

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the modules that define a command, found without importing them."""
        modules = [*self._folder.glob("*.py"), *self._folder.glob("*/__init__.py")]
        found = {path.parent.name if path.name == "__init__.py" else path.stem for path in modules if _is_command(path)}
        return sorted(found - {self._folder.name})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The subcommand, imported now."""
        if cmd_name not in self.list_commands(ctx):
            return None
        command = importlib.import_module(f"{self._package}.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command


class SpreadCommand(click.Command):
    """A command whose repeatable options take several values: ``-k 2 3`` instead of click's ``-k 2 -k 3``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Repeat the option before each further value."""
        repeatable = {name for option in self.params if getattr(option, "multiple", False) for name in option.opts}
        spread: list[str] = []
        option, values = "", 0
        for arg in args:
            if arg.startswith("-"):
                option, values = arg if arg in repeatable else "", 0
            elif option:
                values += 1
                if values > 1:
                    spread.append(option)
            spread.append(arg)
        return super().parse_args(ctx, spread)


def new_figure() -> tuple[Any, Any]:
    """An empty plot and its axes.

    Raises:
        click.ClickException: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise click.ClickException('a plot needs matplotlib: pip install "tagframe[bench]"') from error
    figure = Figure(figsize=(6, 4), layout="constrained")
    return figure, figure.add_subplot()


def _is_command(path: Path) -> bool:
    return _DEFINES_COMMAND.search(path.read_text(encoding="utf-8")) is not None


FOLDERS = click.option(
    "--data",
    "folders",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    multiple=True,
    required=True,
    help="One or more folders.",
)
"""The option for the benchmarks of a fit."""

"""The benchmark harness: it reproduces the papers' tables and compares with other libraries.

``python -m tag_bench COMMAND``; a module ``tag_bench/NAME.py`` (or package) that defines ``command`` is the subcommand
NAME.
"""

from __future__ import annotations

import functools
import importlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

_DEFINES_COMMAND = re.compile(r"^(?:def command\b|command\b.*=)", re.MULTILINE)


class LazyGroup(click.Group):
    """A group whose subcommands are the modules of a package that define ``command``; they are imported when called.

    Args:
        package: the package's import name.
        folder: its folder.
        params: options of the group itself.
    """

    def __init__(  # help and params are click's own names
        self, package: str, folder: Path, help: str, params: Sequence[click.Option] = ()
    ) -> None:
        helped = {"help_option_names": ["-h", "--help"]}
        super().__init__(name=package.rpartition(".")[2], help=help, params=[*params], context_settings=helped)
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


class MethodName(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions of click
    """A retrieval method, by name and parameters, as it is known when the command is run: ours, or of a plugin.

    Args:
        *others: further values.
    """

    name = "method"

    def __init__(self, *others: str) -> None:
        self._others = others

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """The names, as a choice shows them."""
        from tagframe.retrieval import METHODS

        return f"[{'|'.join([*METHODS, *self._others])}]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The text; refused if there is no such method."""
        from tagframe.errors import TagframeError
        from tagframe.retrieval import method_named

        try:
            if value not in self._others:
                method_named(value)
        except TagframeError as error:
            self.fail(str(error), param, ctx)
        return str(value)


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


def _is_command(path: Path) -> bool:
    return _DEFINES_COMMAND.search(path.read_text(encoding="utf-8")) is not None


class Incomplete(click.ClickException):
    """A run that lacks answers: its result is written, and the exit status is 1."""

    def __init__(self, message: str, result: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.result = result


def benchmark(
    name: str, table: Callable[[Mapping[str, Any]], str] | None = None
) -> Callable[[Callable[..., Mapping[str, Any] | None]], click.Command]:
    """Makes a function with click's options a command, which writes what the function returns as JSON (``--json``).

    Args:
        name: of the command.
        table: the result as text, which is printed if ``--json`` is not given; by default the JSON is.
    """

    def made(function: Callable[..., Mapping[str, Any] | None]) -> click.Command:
        @functools.wraps(function)
        def run(output: Any, **given: Any) -> None:
            from tag_bench.records import card

            try:
                result, incomplete = function(**given), None
            except Incomplete as error:
                result, incomplete = error.result, error
            if result is not None:
                result = {**result, "card": card(result)}
            if result is not None and output is None and table is not None:
                click.echo(table(result))
            elif result is not None:
                json.dump(result, output, indent=2, ensure_ascii=False, default=str)
                output.write("\n")
            if incomplete is not None:
                raise incomplete

        help_text = "Where the JSON goes; - for standard output."
        default = "-" if table is None else None
        option = click.option("--json", "output", type=click.File("w"), default=default, help=help_text)
        return click.command(name, cls=SpreadCommand)(option(run))

    return made


def number(name: str, default: int | None, help: str, *, least: int = 1, called: str = "") -> Callable[..., Any]:
    """An option that is a whole number; ``called`` is its parameter, if it has another name."""
    kind, shows = click.IntRange(min=least), default is not None
    return click.option(*filter(None, (name, called)), type=kind, default=default, show_default=shows, help=help)


FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
DATA = click.option("--data", type=FOLDER, required=True, help="The folder.")
"""The option for benchmarks of one data set."""
DATASET = click.option(
    "--data",
    type=click.Path(exists=True, path_type=Path),
    required=True,
    help="The folder, or the file of BEAVER or MMQA as their authors publish it.",
)
"""The option for benchmarks of tables to find."""
FOLDERS = click.option("--data", "folders", type=FOLDER, multiple=True, required=True, help="One or more folders.")
"""The option for benchmarks of several data sets."""
_CACHED = "A folder for vectors and evidence, which a second run reads. They are pickles: nobody else may write there."
CACHE = click.option("--cache", type=click.Path(file_okay=False, path_type=Path), help=_CACHED)
"""The option for a folder of :class:`tag_bench.cache.Cache`."""
HALF = click.option(
    "--half",
    type=click.Choice(["fit", "report"]),
    default="report",
    show_default=True,
    help="Only the databases of this half, if the data has halves.",
)

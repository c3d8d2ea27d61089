"""The harness: what the papers' tables and the peers' figures are held against.

``python -m tag_bench COMMAND``; a module ``tag_bench/NAME.py`` (or package) that defines ``command`` is the subcommand
NAME.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import click

_DEFINES_COMMAND = re.compile(r"^(?:def command\b|command\b.*=)", re.MULTILINE)


class LazyGroup(click.Group):
    """A group whose subcommands are the modules of a package that define ``command``, imported when called.

    Args:
        package: the package's import name.
        folder: its folder.
    """

    def __init__(self, package: str, folder: Path, help: str) -> None:  # click's own name
        super().__init__(name=package.rpartition(".")[2], help=help)
        self._package = package
        self._folder = folder

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the modules that define a command; none is imported for it."""
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


def _is_command(path: Path) -> bool:
    return _DEFINES_COMMAND.search(path.read_text(encoding="utf-8")) is not None

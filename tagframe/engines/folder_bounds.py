"""What is in a folder: what a pattern finds there, and links that lead out of it."""

from __future__ import annotations

import glob
import os
from itertools import takewhile
from pathlib import Path

from tagframe.errors import UnreadableTable


def found_by(pattern: str) -> tuple[Path, list[Path]]:
    """The folder below which a pattern finds files, and what it finds there, sorted."""
    fixed = takewhile(lambda part: not glob.has_magic(part), Path(pattern).parts)
    return Path(*fixed), sorted(map(Path, glob.glob(pattern, recursive=True)))


class Bounds:
    """Tells whether paths are in a folder when links are followed."""

    def __init__(self, folder: Path, *, follow_links: bool = False) -> None:
        self.folder = folder
        self.follow_links = follow_links
        self._real = os.path.realpath(folder)
        self._holds: dict[Path, bool] = {}

    def hold(self, path: Path) -> bool:
        """Whether a file or folder, by its path below the folder, is in it; always where links are followed."""
        if self.follow_links:
            return True
        if path.parent not in self._holds:
            self._holds[path.parent] = self._is_inside(path.parent)
        return self._holds[path.parent] and (not os.path.islink(path) or self._is_inside(path))

    def check(self, path: Path) -> None:
        """Raise where :meth:`hold` is false.

        Raises:
            UnreadableTable: the path leads out of the folder.
        """
        if not self.hold(path):
            raise UnreadableTable(
                f"{path} leads out of {self.folder}, to {os.path.realpath(path)}: tf.open_corpus(…, follow_links=True) "
                "follows such links"
            )

    def _is_inside(self, path: Path) -> bool:
        return Path(os.path.realpath(path)).is_relative_to(self._real)

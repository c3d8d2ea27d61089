"""The readers of ``tagframe mcp``: for each, a list of what is hidden, in a file that is read again when it changes."""

from __future__ import annotations

import logging
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tagframe.errors import BROKEN, InvalidArgument, SourceNotFound, TagframeError, did_you_mean, shown_path

if TYPE_CHECKING:
    from tagframe.corpus import Corpus

_LOG = logging.getLogger(__name__)


class Readers:
    """The file with the lists of all readers.

    It is TOML: a table ``[readers]`` with a list of tables and columns for each reader, as
    :meth:`tagframe.Corpus.hide` takes them::

        [readers]
        support = ["users.email", "salaries"]
        owner = []

    Args:
        path: of the file.

    Raises:
        InvalidArgument: it cannot be read, or has another form.
    """

    def __init__(self, path: Path) -> None:
        self._path = path.expanduser()
        self._mark: tuple[int, int, int] | None = None
        self._lists: Mapping[str, tuple[str, ...]] = {}
        self.lists()

    def lists(self) -> Mapping[str, tuple[str, ...]]:
        """What is hidden from each reader, as the file says now; raises as the class."""
        try:
            stat = os.stat(self._path)
            mark = stat.st_mtime_ns, stat.st_size, stat.st_ino
            if mark != self._mark:
                plain = tomllib.loads(self._path.read_text("utf-8"))
                self._lists = {name: tuple(_checked(name, hide)) for name, hide in plain["readers"].items()}
                self._mark = mark
        except (OSError, *BROKEN) as error:
            self._mark = None
            raise InvalidArgument(
                f"the readers in {shown_path(self._path)} cannot be read ({error}): write a table [readers] with a "
                'list for each, such as support = ["users.email", "salaries"]'
            ) from error
        return self._lists

    def check(self, name: str) -> None:
        """Refuse a reader that the file does not have; raises InvalidArgument."""
        if name not in self.lists():
            raise InvalidArgument(f"no reader {name!r} in {shown_path(self._path)}: {did_you_mean(name, self.lists())}")

    def known(self, name: str) -> tuple[str, ...] | None:
        """What is hidden from a reader now; None if the reader is not in the file, or that cannot be read."""
        try:
            return self.lists().get(name)
        except InvalidArgument:
            return None

    def corpus_of(self, corpus: Corpus, name: str) -> Corpus:
        """The corpus without what is hidden from a reader; an error does not quote that.

        Raises:
            SourceNotFound: the reader is not in the file any more, the file cannot be read, or it hides what is not
                there; the log says which.
        """
        try:
            self.check(name)
            return corpus.hide(*self._lists[name]) if self._lists[name] else corpus
        except TagframeError as error:
            _LOG.error("the tables of the reader %r are not served: %s", name, error)
            raise SourceNotFound(
                f"the tables of the reader {name!r} are not served now; the server's log says why"
            ) from None


def _checked(name: str, hide: object) -> list[str]:
    if not isinstance(hide, list) or not all(isinstance(one, str) and one.strip() for one in hide):
        raise ValueError(f"the reader {name!r} needs a list of tables and columns; got {hide!r}")
    return hide

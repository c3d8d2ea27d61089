"""What ``tagframe mcp`` does: checks what was asked for, then serves. It imports little, so that it serves soon."""

from __future__ import annotations

import functools
import logging
import sys
import warnings
from collections.abc import Sequence
from contextvars import copy_context
from pathlib import Path
from typing import TYPE_CHECKING

from tagframe.errors import InvalidArgument, MissingExtra, SourceNotFound, shown_path

if TYPE_CHECKING:
    from tagframe.agents.tools import Tools


def serve(
    sources: Sequence[str],
    to: Path | None = None,
    ask: bool = False,
    learn: bool = False,
    budget: float | None = None,
    password_from: str | None = None,
    follow_links: bool = False,
) -> None:
    """Serve the tables of sources on standard input and output, until the client goes.

    Args:
        sources: files, folders, catalogues, URLs of servers; one corpus together.
        to: a folder in which new files may be written.
        ask, learn: whether there are tools for it.
        budget: dollars that a model may cost.
        password_from: the variable that has the password of a server.
        follow_links: as for :func:`tagframe.open_corpus`.

    Raises:
        MissingExtra: the SDK is not installed.
        SourceNotFound: a source is not there.
        InvalidArgument: ``ask`` without a budget; ``to`` is no folder, or is one that is read.
    """
    try:
        import anyio

        from tagframe.agents.server import CorpusServer
    except ImportError as error:
        raise MissingExtra('tagframe mcp needs the SDK of its protocol: pip install "tagframe[mcp]"') from error
    paths = [Path(source).expanduser() for source in sources if not _is_url(source)]
    for path in paths:
        if not path.exists() and not any(sign in path.name for sign in "*?["):
            raise SourceNotFound(f"there is no file or folder {shown_path(path)}")
    if ask and budget is None:
        raise InvalidArgument("--ask lets an agent spend money: give a --budget, as --budget 1.00 (dollars)")
    if to is not None:
        to = to.expanduser().resolve()
        if not to.is_dir():
            raise InvalidArgument(f"--to is a folder that is there; got {shown_path(to)}")
        for path in paths:
            if path.is_dir() and to.is_relative_to(path.resolve()):
                raise InvalidArgument(
                    f"--to {shown_path(to)} is inside of {shown_path(path)}, whose files are tables: no source is "
                    "written to"
                )

    def opened() -> Tools:
        from tagframe.agents.tools import Tools
        from tagframe.corpus import Corpus, open_corpus
        from tagframe.lm import Budget

        account = None if budget is None else Budget(dollars=budget)
        corpora = []
        for source in sources:
            secret = password_from if _is_url(source) else None
            corpora.append(open_corpus(source, follow_links=follow_links, password_from=secret, progress=False))
        return Tools(functools.reduce(Corpus.union, corpora), ask, learn, account, to)

    # Standard output is the protocol's; and what is warned of stands in results.
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="tagframe: %(message)s")
    warnings.simplefilter("ignore")
    context = copy_context()
    server = CorpusServer(lambda: context.copy().run(opened), ask, learn, to is not None)
    anyio.run(server.run)


def _is_url(source: str) -> bool:
    """As :func:`tagframe.engines.registry.is_url`, which takes half a second to import."""
    return "://" in source and not source.startswith("file:")

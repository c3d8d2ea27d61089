"""The command ``tagframe mcp``: checks its arguments, then serves. It imports little, so that it starts quickly."""

from __future__ import annotations

import functools
import logging
import os
import sys
import threading
import time
import tomllib
import warnings
from collections.abc import Mapping, Sequence
from contextvars import copy_context
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from tagframe.errors import BROKEN, InvalidArgument, SourceNotFound, TagframeError, did_you_mean, needing, shown_path

if TYPE_CHECKING:
    from tagframe.agents.server import ToolsNow
    from tagframe.agents.tools import Tools
    from tagframe.corpus import Corpus


def serve(
    sources: Sequence[str],
    to: Path | None = None,
    ask: bool = False,
    learn: bool = False,
    budget: float | None = None,
    follow_links: bool = False,
    refresh: float | None = None,
    hide: Sequence[str] = (),
    readers: Path | None = None,
    reader: str | None = None,
    http: bool = False,
    host: str = "127.0.0.1",
    port: int = 8765,
    url: Sequence[str] = (),
    token_from: Sequence[str] = (),
) -> None:
    """Serve the tables of sources on standard input and output until the client disconnects, or over HTTP.

    Args:
        sources: files, folders, catalogues, URLs of servers; together they are one corpus.
        to: a folder in which new files may be written.
        ask, learn: whether these tools are offered.
        budget: the most dollars for a model.
        follow_links: as for :func:`tagframe.open_corpus`.
        refresh: seconds after which a call opens the sources again; None for never.
        hide: tables and columns that are served to nobody, as for :func:`tagframe.open_corpus`.
        readers: the file of readers (:class:`Readers`), which is read again when it changes.
        reader: the one who is served, or whose token is made; None for all tables.
        http: whether to serve over HTTP.
        host, port, url, token_from: where, under which further addresses, and to whom; see
            :mod:`tagframe.agents.http`.

    Raises:
        MissingExtra: the SDK is not installed.
        SourceNotFound: a source does not exist.
        InvalidArgument: ``ask`` without a budget; ``to`` is not a folder, or is inside a source; a token is missing or
            too short; a reader is not in the file; the address is taken.
    """
    with needing('tagframe mcp needs the MCP SDK: pip install "tagframe[mcp]"'):
        import anyio

        from tagframe.agents.server import CorpusServer
    paths = [Path(source).expanduser() for source in sources if not _is_url(source)]
    for path in paths:
        if not path.exists() and not any(sign in path.name for sign in "*?["):
            raise SourceNotFound(f"no file or folder {shown_path(path)}")
    if ask and budget is None:
        raise InvalidArgument("--ask lets an agent spend money: set a limit, such as --budget 1.00 (dollars)")
    if to is not None:
        to = to.expanduser().resolve()
        if not to.is_dir():
            raise InvalidArgument(f"--to must be an existing folder; got {shown_path(to)}")
        for path in paths:
            if path.is_dir() and to.is_relative_to(path.resolve()):
                raise InvalidArgument(
                    f"--to {shown_path(to)} is inside the source {shown_path(path)}, and sources are never written "
                    "to: choose another folder"
                )

    if not http and (token_from or url):
        raise InvalidArgument("--token-from and --url are for a server over HTTP: add --http")
    settings = Readers(readers)
    served: dict[str | None, str | None] = {None: reader}
    settings.check(reader)

    def opened() -> ToolsNow:
        from tagframe.agents.tools import Tools
        from tagframe.corpus import Corpus, open_corpus
        from tagframe.lm import Budget

        account = None if budget is None else Budget(dollars=budget)
        corpora = [
            open_corpus(
                source,
                follow_links=follow_links,
                progress=False,
                hide=hide if len(sources) == 1 else (),
            )
            for source in sources
        ]
        made: list[Corpus] = []
        whole: Corpus
        due = time.monotonic() + (refresh or 0.0)
        tools: dict[str | None, Tools | TagframeError] = {}
        lists: dict[str | None, object] = {}
        making, renewing = threading.Lock(), threading.Lock()

        def now() -> Mapping[str | None, Tools | TagframeError]:
            nonlocal corpora, made, whole, due
            # One call opens the sources again; others get the last corpus meanwhile.
            if refresh is not None and time.monotonic() >= due and renewing.acquire(blocking=False):
                corpora = [_renewed(one) for one in corpora]
                due = time.monotonic() + refresh
                renewing.release()
            with making:
                if is_new := any(one is not other for one, other in zip_longest(corpora, made)):
                    whole, made = functools.reduce(Corpus.union, corpora), corpora
                    if hide and len(sources) > 1:  # each name is in one of them
                        whole = whole.hide(*hide)
                for key, name in served.items():
                    known = settings.known(name)
                    if is_new or lists[key] != known:
                        # The open pages of a longer list may have what is hidden by now.
                        tools[key] = _tools(name, tools.get(key) if lists.get(key) == known else None)
                        lists[key] = known
                return dict(tools)

        def _tools(reader: str | None, before: Tools | TagframeError | None) -> Tools | TagframeError:
            try:
                seen = settings.corpus_of(whole, reader)
                return before.of(seen) if isinstance(before, Tools) else Tools(seen, ask, learn, account, to)
            except TagframeError as error:
                return error

        now()
        return now

    # Standard output is for the protocol only, and results contain the warnings.
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="tagframe: %(message)s")
    logging.getLogger("tagframe.audit").setLevel(logging.INFO)
    warnings.simplefilter("ignore")
    context = copy_context()
    if not http:
        anyio.run(CorpusServer(lambda: context.copy().run(opened), ask, learn, to is not None, names=served).run)
        return
    from tagframe.agents.http import PATH, allowed, bound, run_http, tokens_of

    tokens, made = tokens_of(token_from, reader)
    served = {key: key or None for key in tokens.readers.values()}
    settings.check(*served.values())
    server = CorpusServer(lambda: context.copy().run(opened), ask, learn, to is not None, names=served)
    with bound(host, port) as listening:
        port = listening.getsockname()[1]
        security = allowed(host, port, url)
        say = [f"serving at {security.allowed_origins[0]}{PATH}", *[f"this run's token: {made}"] * (made is not None)]
        sys.stderr.write("".join(f"tagframe: {line}\n" for line in say))
        sys.stderr.flush()
        anyio.run(run_http, server, tokens, listening, security)


def _renewed(corpus: Corpus) -> Corpus:
    """The corpus as its source is now; the same one if nothing has changed, or if it cannot be opened."""
    try:
        now = corpus.refresh()
    except Exception as error:  # whatever it is, the tables that are known still serve
        _LOG.warning("the tables stay as they were, because their source cannot be opened again: %s", error)
        return corpus
    return corpus if now.is_like(corpus) else now


def _is_url(source: str) -> bool:
    """As :func:`tagframe.engines.registry.is_url`, which takes half a second to import."""
    return "://" in source and not source.startswith("file:")


# --- readers: for each, a list of what is hidden, in a file that is read again when it changes -----------------------


_LOG = logging.getLogger(__name__)


class Readers:
    """The file with the lists of all readers.

    It is TOML: a table ``[readers]`` with a list of tables and columns for each reader, as
    :meth:`tagframe.Corpus.hide` takes them::

        [readers]
        support = ["users.email", "salaries"]
        owner = []

    Args:
        path: of the file; None for none, and no readers.

    Raises:
        InvalidArgument: it cannot be read, or has another form.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = None if path is None else path.expanduser()
        self._mark: tuple[int, int, int] | None = None
        self._lists: Mapping[str, tuple[str, ...]] = {}
        self.lists()

    def lists(self) -> Mapping[str, tuple[str, ...]]:
        """What is hidden from each reader, as the file says now; raises as the class."""
        if self._path is None:
            return {}
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

    def check(self, *names: str | None) -> None:
        """Refuse a reader that the file does not have; raises InvalidArgument."""
        for name in filter(None, names):
            if self._path is None:
                raise InvalidArgument(f"what the reader {name!r} does not see is in a file: name it with --readers")
            if name not in (known := self.lists()):
                raise InvalidArgument(f"no reader {name!r} in {shown_path(self._path)}: {did_you_mean(name, known)}")

    def known(self, name: str | None) -> tuple[str, ...] | None:
        """What is hidden from a reader now; None if the reader is not in the file, or that cannot be read."""
        try:
            return None if name is None else self.lists().get(name)
        except InvalidArgument:
            return None

    def corpus_of(self, corpus: Corpus, name: str | None) -> Corpus:
        """The corpus without what is hidden from a reader, whole for None; an error does not quote what is hidden.

        Raises:
            SourceNotFound: the reader is not in the file any more, the file cannot be read, or it hides what is not
                there; the log says which.
        """
        try:
            self.check(name)
            return corpus if name is None else corpus.hide(*self._lists[name])
        except TagframeError as error:
            _LOG.error("the tables of the reader %r are not served: %s", name, error)
            raise SourceNotFound(
                f"the tables of the reader {name!r} are not served now; the server's log says why"
            ) from None


def _checked(name: str, hide: object) -> list[str]:
    if not isinstance(hide, list) or not all(isinstance(one, str) and one.strip() for one in hide):
        raise ValueError(f"the reader {name!r} needs a list of tables and columns; got {hide!r}")
    return hide

"""Open a source: find its tables, profile new and changed ones, and keep the profiles."""

from __future__ import annotations

import functools
import os
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain, count
from pathlib import Path
from typing import Any, Literal, ParamSpec, cast

import pandas as pd

from tagframe import errors, results
from tagframe.corpus.catalogue import Catalogue, Contents, IndexedSource, Origin, SourceCatalogue, cached, is_catalogue
from tagframe.corpus.corpus import Corpus, applied, laid_over, opened_by, private_columns
from tagframe.corpus.discover import ON_REQUEST, SourceFile, discover
from tagframe.corpus.facts import FactKey, Facts, FactsFile, FactStore, View, VisibleFacts
from tagframe.corpus.indexing import Indexed, index_files
from tagframe.corpus.profile import TableProfile
from tagframe.corpus.profiler import profile_table
from tagframe.corpus.schema_only import Schema, schema_profiles
from tagframe.corpus.stored_profiles import ComputedStore
from tagframe.corpus.vectors import VectorStore
from tagframe.engines.base import TableShape
from tagframe.engines.files.csv import CSVEngine, csv_option_text, is_of, options_before, patterns_of
from tagframe.engines.files.limits import check_regular
from tagframe.engines.frames import frame_engines
from tagframe.engines.hiding import Hiding, checked_names, hiding, names_gone, warn_of_computed
from tagframe.engines.registry import IN_PLACE, is_url, server_of
from tagframe.errors import (
    BROKEN,
    CatalogueWarning,
    ColumnFormatWarning,
    EmptyCorpus,
    InvalidArgument,
    SourceNotFound,
    UnreadableCatalogue,
    UnreadableFacts,
    UnreadableTable,
    UnreadableTableWarning,
    shown_path,
    warn,
)
from tagframe.interop import ForeignFrame, accepts_foreign
from tagframe.logs import runs

FRAMES_DATABASE = "frames"


P = ParamSpec("P")


def _refreshable(function: Callable[P, Corpus]) -> Callable[P, Corpus]:
    """The function whose corpora know how they are opened again."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> Corpus:
        return opened_by(function(*args, **kwargs), functools.partial(call, *args, **kwargs))

    return call


@_refreshable
@accepts_foreign
@runs("corpus", "open_corpus", lambda corpus: {"tables": len(corpus), "problems": len(corpus.problems)})
def open_corpus(
    source: str | os.PathLike[str] | Mapping[str, pd.DataFrame | ForeignFrame] | None = None,
    *,
    schema: Schema | None = None,
    dialect: str | None = None,
    schemas: Sequence[str] | None = None,
    engine: Literal["duckdb"] | None = None,
    csv: Mapping[str, Any] | None = None,
    catalogue: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
    follow_links: bool = False,
    apart: bool = False,
    hide: Sequence[str] = (),
    private: Sequence[str] = (),
) -> Corpus:
    """Open tables to search and to join.

    Files are profiled once. Profiles are kept in a catalogue, and an unchanged file (by size and time, else by content)
    is not read again. Frames are profiled on each call.

    Args:
        source: a SQLite file (a database named after it); a folder of SQLite, CSV, JSON, Parquet, Feather, Excel and
            DuckDB files (a subfolder is a database, and so is a workbook, whose sheets are its tables); one such file;
            a pattern such as
            ``"sales/*.parquet"``, whose files are one table; a catalogue written by :meth:`Corpus.save` or ``tagframe
            index``; a server, ``"postgresql://user:password@host/database"``, whose tables stay there (each schema is a
            database) and are profiled from its statistics or a sample, which the profile says (other servers are read
            through SQLAlchemy, ``"mysql+pymysql://…"``, and may work; a password that is not in the URL is in
            ``TAGFRAME_PASSWORD``, or found in PostgreSQL's own ways); or frames by name, ``"table"`` or
            ``"database.table"``, of pandas, Polars, Arrow or DuckDB (:mod:`tagframe.interop`).
        schema: instead of a source, tables whose rows are elsewhere: ``CREATE TABLE`` statements, a file of them, or
            columns by table (``{"loan": ["loan_id", "amount"]}``, or types by column). Tables are retrieved and planned
            from their names and types; there is nothing to merge. Statements that no table is made of, and what is not
            read of the others, are in ``corpus.problems``.
        dialect: of the statements of ``schema``, by sqlglot's name (``"postgres"``, ``"mysql"``, ``"tsql"``, …), which
            says how quotation marks in texts are escaped; None to tell it by the names, which MySQL has in backticks.
        engine: "duckdb" reads all Parquet, CSV and JSON files of a folder in place, with DuckDB; of CSV files in which
            numbers, dates or words have formats of their own it reads a copy in the temporary folder. Without
            ``engine`` this is done for all Parquet files if one is of 256 MB or more, or if there are partitioned
            folders, folders of numbered parts, Delta or Iceberg tables, each of which is one table.
        csv: options of :func:`pandas.read_csv` for CSV files, whoever reads them, if their format cannot be detected,
            such as ``{"decimal": ",", "dayfirst": True}``, or these by file or pattern: ``{"de_*.csv": {"decimal":
            ","}, "*": {}}``; the first pattern that fits counts. A column of numbers that does not have such a format
            as a whole is read as it is, with a warning. A catalogue keeps the options.
        schemas: the schemas of a server whose tables are opened; None for all readable schemas, or for the default
            schema of a server that is read through SQLAlchemy.
        catalogue: the file that keeps the profiles; None for one in the user's cache folder.
        progress: whether to show a bar while tables are profiled. None takes the setting of that name; its default
            shows a bar in a terminal or a notebook if profiling takes long.
        follow_links: follow links that lead out of the folder, and read files elsewhere that the log of a Delta or
            Iceberg table names; otherwise they are left out, and such a table is not read.
        apart: keep the databases of a folder apart: no key is looked for between them. Otherwise a folder is one
            database: its files, workbooks and subfolders are searched and joined together, and tables of one shape in
            sibling folders (``2023/sales.csv``, ``2024/sales.csv``) are one table in pieces. Only where most of its
            tables are in databases that their own keys connect whole, these stay apart, unless a key connects them.
        hide: tables, and columns as ``table.column``, that do not exist for the corpus: their cells are not read, and
            no catalogue has them; see :meth:`Corpus.hide`. A list ``hide = ["users.email", "salaries"]`` in a file
            ``tagframe.toml``, in the opened folder or beside the opened file, is added to it.
        private: columns whose cells no prompt has, and no statement of a model reads; see :meth:`Corpus.private`. A
            list ``private = […]`` in that file is added to it.

    Returns:
        The corpus. A warning names the tables that could not be read, and ``corpus.problems`` lists them.

    Raises:
        SourceNotFound: no such file or folder, no such file of a schema, or no such schema of a server.
        ConnectionRefusedByServer: a server does not accept the connection: a wrong password, an unknown database.
        ServerGone: a server cannot be reached, or went away; finished profiles are kept.
        MissingExtra: the drivers of a server are not installed.
        EmptyCorpus: there is no table in it.
        UnreadableTable: nothing in it can be read, or the file has an unknown format.
        UnreadableFacts: the facts that the user gave, or the file ``tagframe.toml``, cannot be read.
        TableNotFound, ColumnNotFound: ``hide`` or ``private`` names what is not there.
        UnreadableCatalogue: a named catalogue is damaged, of another version or not writable.
        InvalidArgument: frames that cannot be tables, a schema that cannot be read, both or neither.

    >>> import pandas as pd, tagframe as tf
    >>> corpus = tf.open_corpus({"singer": pd.DataFrame({"name": ["Ada", "Bo"], "age": [31, None]})})
    >>> corpus.profile("singer").column("age").nulls
    1
    """
    if schemas is not None and (not is_url(source) or isinstance(schemas, str)):
        raise InvalidArgument(
            f"schemas= must be a list of schema names, and the source a server's URL; got {schemas!r}"
        )
    csv_options = csv_option_text(csv)
    if csv_options and (schema is not None or isinstance(source, Mapping) or is_url(source)):
        raise InvalidArgument("csv= is for CSV files; there are none here")
    if engine not in (None, IN_PLACE) or (engine is not None and (schema is not None or isinstance(source, Mapping))):
        raise InvalidArgument(
            f"engine= is {IN_PLACE!r} for a folder of files, and None for all else; got {engine!r}. Frames are written "
            "as Parquet files, frame.to_parquet('folder/name.parquet'), and their folder is opened"
        )
    if schema is not None:
        if source is not None:
            raise InvalidArgument("open a corpus from a source or from schema=, not from both")
        if catalogue is not None:
            raise InvalidArgument("catalogue= is not for a schema, which stays in memory; corpus.save(path) saves it")
        problems: list[UnreadableTable] = []
        profiles = schema_profiles(schema, dialect=dialect, problems=problems)
        return applied(Hiding("hide", hide), Hiding("private", private), Corpus(profiles, problems=problems))
    if dialect is not None:
        raise InvalidArgument("dialect= is of the statements of schema=")
    if isinstance(source, Mapping):
        if catalogue is not None:
            raise InvalidArgument("catalogue= is not for frames, which stay in memory; corpus.save(path) saves them")
        frames = open_frames(cast(Mapping[str, pd.DataFrame], source))
        return applied(Hiding("hide", hide), Hiding("private", private), frames)
    if not isinstance(source, str | os.PathLike):
        raise InvalidArgument(
            f"open a corpus from a path, or from frames by name as in {{'loan': frame}}; got a {type(source).__name__}"
        )
    if is_url(source):
        server = server_of(str(source), schemas)
        lists = Lists(Hiding("hide", hide), Hiding("private", private))
        files = lists.offering([SourceFile(server.kind, "", server)])
        named = f"{server.identity} {sorted(schemas) if schemas is not None else ''}".encode()
        stored = cached(server.kind, named, lists.hide.part) if catalogue is None else Catalogue(Path(catalogue))
        facts = FactStore(file=FactsFile.of_source(server.identity))
        cache = SourceCatalogue(stored, catalogue is not None, facts)
        return _open_files(None, files, _loaded(cache, lists), cache, progress, lists)
    path = Path(source).expanduser()
    try:
        is_ours = path.is_file() and is_catalogue(path)
    except OSError as error:
        raise SourceNotFound(f"there is no file or folder {shown_path(source)}: {error.strerror}") from error
    if is_ours:
        if catalogue is not None:
            raise InvalidArgument(f"{path} is a catalogue itself; leave out catalogue={str(catalogue)!r}")
        return _open_catalogue(Catalogue(path), progress, follow_links, csv_options, apart, hide, private)
    files = discover(path, engine, follow_links=follow_links, csv=csv_options)
    read = [path for file in files for path in file.engine.csv_files]
    for pattern in patterns_of(csv_options):
        if not any(is_of(one, pattern) for one in read):
            raise InvalidArgument(f"csv= has options for {pattern!r}, and no CSV file in {str(path)!r} is called so")
    hidden, secret = lists_beside(path)
    lists = Lists(Hiding("hide", hide, hidden), Hiding("private", private, secret))
    files = lists.offering(files)
    whole = path.resolve()
    made = cached(whole.stem, os.fsencode(whole), lists.hide.part) if catalogue is None else Catalogue(Path(catalogue))
    facts = FactStore(file=FactsFile.of_source(str(whole)))
    cache = SourceCatalogue(made, catalogue is not None, facts)
    return _open_files(path, files, _loaded(cache, lists), cache, progress, lists, apart)


def lists_beside(source: Path | None) -> tuple[list[str], list[str]]:
    """What is hidden and private by ``tagframe.toml`` in a folder, or beside a file; nothing if there is no such file.

    Raises:
        UnreadableFacts: it cannot be read, or has something else.
    """
    if source is None:
        return [], []
    path = (source if source.is_dir() else source.parent) / "tagframe.toml"
    try:
        check_regular(path)
        plain = tomllib.loads(path.read_bytes().decode("utf-8"))
        if unknown := sorted({*plain} - {"hide", "private"}):
            raise ValueError(f"it has {unknown[0]!r}; known are 'hide' and 'private'")
        hide, private = (checked_names(name, plain.get(name, [])) for name in ("hide", "private"))
        if bare := [name for name in private if "." not in name]:
            raise ValueError(f"private must have names such as 'users.email'; got {bare[0]!r}")
    except FileNotFoundError:
        return [], []
    except (OSError, UnreadableTable, InvalidArgument, *BROKEN) as error:
        raise UnreadableFacts(
            f"{path}, the private and hidden columns of the data beside it, cannot be read: {error}. The data is not "
            "opened, so that nothing hidden is shown; repair the file, or remove it"
        ) from error
    return hide, private


@dataclass
class Lists:
    """What is hidden and private in a source that is opened.

    Attributes:
        hide, private: the lists.
        gone, lost: names that only what is hidden has, in lower case, and hidden columns by the file and the name of
            their table; known after :meth:`offering`.
    """

    hide: Hiding
    private: Hiding
    gone: frozenset[str] = frozenset()
    lost: dict[tuple[str, str], set[str]] = field(default_factory=dict)

    def offering(
        self, files: Sequence[SourceFile], known: Mapping[str, IndexedSource] | None = None
    ) -> list[SourceFile]:
        """The files with engines that offer only what is visible; files without such tables are left out.

        Args:
            files: with all that they have.
            known: a catalogue, if what it has is all that is visible.

        Raises:
            TableNotFound, ColumnNotFound: the caller hides what is not there.
        """
        if known is None and not self.hide.part:
            return list(files)
        sources = [(file, *self._seen(file, known)) for file in files]
        self.gone = names_gone(*(source[1:] for source in sources))
        left = [
            replace(file, engine=hiding(file.engine, visible, self.gone))
            for file, shapes, visible in sources
            if visible or not shapes or not file.database
        ]
        self.hide.check(shape for _, shapes, _ in sources for shape in shapes)
        warn_of_computed(*(file.engine for file in left))
        return left

    def _seen(
        self, file: SourceFile, known: Mapping[str, IndexedSource] | None
    ) -> tuple[list[TableShape], dict[str, tuple[str, ...]]]:
        """The tables of a file, and what is visible of them."""
        shapes: list[TableShape] = []
        with suppress(UnreadableTable, OSError, *BROKEN):  # profiling reports it
            shapes = file.engine.shapes()
        if known is None:
            unread = [error.table for error in file.engine.closed() if error.table] if shapes else []
            shapes = [*shapes, *(TableShape(name, (name,), ("",)) for name in unread)]  # may be hidden like others
            visible = self.hide.visible(shapes, filter(None, (file.database, file.key)))
        else:
            tables = known[file.key].tables if file.key in known else {}
            there = {shape.name for shape in shapes}
            visible = {name: tuple(one.name for one in tables[name].columns) for name in tables if name in there}
        self.lost |= {(file.key, one.name): {*one.columns}.difference(visible.get(one.name, ())) for one in shapes}
        return shapes, visible


def _loaded(cache: SourceCatalogue, lists: Lists) -> Contents:
    """The catalogue of a source, if it is one without what is hidden.

    Raises:
        UnreadableCatalogue: it was made with another list.
    """
    contents = cache.load()
    if contents.sources and contents.part != lists.hide.part:
        raise UnreadableCatalogue(
            f"the catalogue {cache.catalogue.path if cache.catalogue else ''} was made with another list of what is "
            "hidden: delete it and index again, or name another file"
        )
    return replace(contents, part=lists.hide.part)


def open_frames(frames: Mapping[str, pd.DataFrame], profile: Callable[..., TableProfile] = profile_table) -> Corpus:
    """Frames as a corpus; see :func:`open_corpus`.

    Args:
        frames: by name.
        profile: makes their profiles, as :func:`~tagframe.corpus.profiler.profile_table`, or the needed parts of them.

    Raises:
        EmptyCorpus: there are none.
        InvalidArgument: frames that cannot be tables.
    """
    if not frames:
        raise EmptyCorpus("a corpus needs at least one frame; got an empty mapping")
    profiles, origins = [], {}
    facts: dict[FactKey, str] = {}
    for database, tables, holder in frame_engines(frames, FRAMES_DATABASE):
        shapes = {shape.name: shape for shape in holder.shapes()}
        for table, name in tables.items():
            made = profile(database, shapes[name], holder.chunks(shapes[name]), name=table)
            profiles.append(made)
            origins[made.id] = Origin(key=holder.kind, table=name, kind=holder.kind, engine=holder)
            facts.update(_remembered(made.id, holder.frames[name]))
    return Corpus(profiles, origins, facts=FactStore(Facts(facts)))


def _remembered(table: str, frame: pd.DataFrame) -> dict[FactKey, Any]:
    """The facts of a frame's columns that came from a corpus: their descriptions, and which are private."""
    described: Mapping[str, str] = results.recall(frame, "descriptions") or {}
    facts: dict[FactKey, Any] = {("column", (table, name)): text for name, text in described.items()}
    return facts | {("private", (table, column)): True for column in results.recall(frame, "private") or ()}


def with_frame(corpus: Corpus, frame: pd.DataFrame, id: str | None = None) -> tuple[Corpus, str]:
    """A corpus with a frame among its tables, and the frame's id there.

    Args:
        corpus: the other tables.
        frame: profiled as it is now.
        id: of the table that the frame replaces, with the keys that its source declares; None for a new table.

    Raises:
        TableNotFound: no table with that id.
        InvalidArgument: a frame that cannot be a table.
    """
    ((database, _, engine),) = frame_engines({"frame": frame}, "frame")
    (shape,) = engine.shapes()
    if id is None:
        free = (f"frame{number}" for number in chain([""], count(2)))
        name = next(name for name in free if f"{database}.{name}" not in corpus)
        profile, others = profile_table(database, shape, engine.chunks(shape), name=name), corpus
    else:
        known = corpus.profile(id)
        profile = replace(
            profile_table(known.database, shape, engine.chunks(shape), name=known.name),
            id=known.id,
            place=known.place,
            primary_key=known.primary_key if {*known.primary_key} <= {*shape.columns} else (),
            foreign_keys=tuple(key for key in known.foreign_keys if not key.given),
        )
        others = corpus.subset(other for other in corpus.ids if other != known.id)
    origin = Origin(key=profile.id, table=shape.name, kind=engine.kind, engine=engine)
    facts = FactStore(Facts(_remembered(profile.id, frame)))
    return laid_over(others.union(Corpus([profile], {profile.id: origin}, facts=facts)), corpus), profile.id


def _open_catalogue(
    catalogue: Catalogue,
    progress: bool | None,
    follow_links: bool,
    csv: str,
    apart: bool,
    hide: Sequence[str],
    private: Sequence[str],
) -> Corpus:
    contents, lists = catalogue.load(), Lists(Hiding("hide"), Hiding("private"))
    hidden, secret = lists_beside(contents.root)
    later = Hiding("hide", hide, hidden), Hiding("private", private, secret)
    source = catalogue.path if contents.root is None else contents.root
    facts = FactStore(contents.facts, FactsFile.of_source(str(source.resolve())))
    cache = SourceCatalogue(catalogue, strict=True, facts=facts)
    is_gone = contents.root is not None and not contents.root.exists() and ON_REQUEST not in contents.sources
    if is_gone:
        warn(
            f"{contents.root}, the source of {catalogue.path}, no longer exists: its tables can be found but not read",
            CatalogueWarning,
        )
    if contents.root is None or is_gone:
        return applied(*later, _assembled([], contents, (), cache, lists, apart))
    cache.strict = False
    engine = IN_PLACE if ON_REQUEST in contents.sources else None
    if not csv:
        before = (options_before(source.stamp) for source in contents.sources.values())
        csv = next(filter(None, before), "")
    files = discover(contents.root, engine, follow_links=follow_links, csv=csv)
    if contents.part:
        files = lists.offering(files, contents.sources)
    elif contents.ids is not None:
        files = [file for file in files if file.key in contents.sources]
    return _open_files(contents.root, files, contents, cache, progress, lists, apart, later)


def _open_files(
    root: Path | None,
    files: Sequence[SourceFile],
    known: Contents,
    cache: SourceCatalogue,
    progress: bool | None,
    lists: Lists,
    apart: bool = False,
    later: tuple[Hiding, Hiding] | None = None,
) -> Corpus:
    indexed = index_files(files, known, cache, progress)
    contents = Contents(root, known.ids, indexed.sources, known.facts, known.part)
    changed = sorted(indexed.changed)
    if changed or set(known.sources) - set(indexed.sources):
        # Only a catalogue that a user saved has facts.
        facts = cache.facts.facts if known.facts.values else known.facts
        cache.write(replace(contents, facts=facts), changed)
        contents = replace(contents, sources=cache.stored(contents.sources))
    _report(str(root) if root is not None else files[0].engine.identity, indexed)
    whole = _assembled(files, contents, indexed.problems, cache, lists, apart)
    corpus = whole if later is None else applied(*later, whole)
    gone = _names(whole) - _names(corpus) if later is not None and later[0].part else set()
    there = {key for key, _, one in _named(files, contents.sources) if one.id in corpus} if indexed.notes else set()
    # A note on several columns names some of them, so one on a file with hidden columns is made anew without these.
    parts = {key: [one.name for one in corpus.profile(table.id).columns]
             for key, _, table in _named(files, contents.sources) if gone and table.id in corpus
             and len(corpus.profile(table.id).columns) < len(table.columns)}  # fmt: skip
    anew = {file.key: file.engine for file in files if file.key in parts and isinstance(file.engine, CSVEngine)}
    for key, engine in anew.items():
        for what, of in engine.notes(parts[key]):
            warn(f"{engine.path}: {what}", of)
    for key, what, category in indexed.notes:
        if key in there and key not in anew and not any(name in what.casefold() for name in gone):
            warn(what, getattr(errors, category, ColumnFormatWarning))
    return corpus


def _names(corpus: Corpus) -> set[str]:
    """The columns of a corpus, as sentences name them."""
    return {repr(column.name).casefold() for profile in corpus for column in profile.columns}


def _report(root: str, indexed: Indexed) -> None:
    """Raise if nothing could be read; warn if something could not."""
    problems = indexed.problems
    if not any(source.tables for source in indexed.sources.values()):
        if not problems:
            raise EmptyCorpus(f"there is no table in {root!r}")
        if len(problems) == 1:
            raise problems[0]
        raise UnreadableTable(f"none of the {len(problems)} files in {root!r} can be read; the first: {problems[0]}")
    for problem in problems:
        warn(f"left out: {problem}", UnreadableTableWarning)


def _assembled(
    files: Sequence[SourceFile],
    contents: Contents,
    problems: Sequence[UnreadableTable],
    cache: SourceCatalogue,
    lists: Lists,
    apart: bool = False,
) -> Corpus:
    """A corpus of the catalogue's tables, with each table's database as the files have it now."""
    by_key = {file.key: file for file in files}
    profiles, origins = [], {}
    for key, table, profile in _named(files, contents.sources):
        indexed, file = contents.sources[key], by_key.get(key)
        profiles.append(profile)
        origins[profile.id] = Origin(
            key, table, indexed.kind, file.engine if file else None, indexed.stamp, indexed.notes
        )
    if not apart and contents.root is not None and len({profile.database for profile in profiles}) > 1:
        profiles = [profile.at(str(contents.root)) for profile in profiles]
    lost = {
        (one.id, name)
        for key, table, one in _named(files, contents.sources)
        for name in lists.lost.get((key, table), ())
    }
    there = {one.id: frozenset(column.name for column in one.columns) for one in profiles if contents.part}
    view = View(there, lists.gone, frozenset(lost))
    cache.facts.list_private(private_columns(lists.private, profiles, lists.hide))
    whole = Corpus(
        profiles,
        origins,
        root=contents.root,
        problems=problems,
        vectors=VectorStore(cache.catalogue),
        facts=VisibleFacts(cache.facts, view) if contents.part else cache.facts,
        computed=ComputedStore(cache.catalogue, whole=len(profiles)),
        part=contents.part,
    )
    return whole if contents.ids is None else whole.subset(id for id in contents.ids if id in whole)


def _named(
    files: Sequence[SourceFile], sources: Mapping[str, IndexedSource]
) -> Iterator[tuple[str, str, TableProfile]]:
    """Each table's source, its name there, and its profile with the id that it has in the corpus."""
    databases = _databases(files, sources)
    for key, source in sources.items():
        for table, profile in source.tables.items():
            yield key, table, profile.of_database(databases.get(key, profile.database))


def _databases(files: Sequence[SourceFile], sources: Mapping[str, IndexedSource]) -> dict[str, str]:
    """The database of each file.

    If two files of a database have a table with the same name, each of that database's files becomes a database of its
    own, named by its path. So no two tables get the same id, and declared keys stay within their database.
    """
    tables = [(file.database, table) for file in files if file.key in sources for table in sources[file.key].tables]
    divided = {database for (database, _), count in Counter(tables).items() if count > 1}
    # The tables of a server have their own databases.
    return {file.key: file.key if file.database in divided else file.database for file in files if file.database}

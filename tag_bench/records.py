"""Records: a line of JSON for each question that a command asked, from which a run that was ended goes on.

Every line has the ``id`` of the question, the ``question``, what the command found, and the ``settings`` under which it
was found. ``tag_bench compare`` compares two such files.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

import click
from tqdm import tqdm

from tag_bench.fingerprints import data_md5, described, reads_md5, source_md5, watch, weights_md5
from tagframe.config import current
from tagframe.embed import get_embedder
from tagframe.retrieval import Method

T = TypeVar("T")
Record = dict[str, Any]
"""JSON values; ``id`` and ``question``, and ``error`` if the question is to be asked again by the next run."""

EVERY = 10.0
"""Seconds between two lines of progress, if standard error is not a terminal."""
NO_SETTINGS = frozenset({"output", "records", "cache", "lists", "out"})
"""Options that say where something is written or kept: no figure depends on them."""
WRITTEN = ("output", "records", "cache", "out")
"""Those of them that name what is written."""
PLUGINS = "tag_bench.plugins"
"""The key of the imported plug-ins in the context of a command."""
READ = "reads_md5"
"""The setting with the files that a plug-in had opened when the record was written."""
SELECTIONS = frozenset({"limit", "questions", "drawn_questions", "wanted"})
"""Options that say how many questions are asked: a record of a question does not depend on them."""
CODE = ("tagframe", "tag_bench", "pipelines", "pyproject.toml", "constraints*.txt", ":(exclude)*.md")
"""What figures depend on, as git's path patterns."""
_BEGIN = b'{"id"'

RECORDS = click.option(
    "--records",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a record of each question into this file (JSON lines), and go on from it.",
)
SEEDED = click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of all random choices.")


class _Lines:
    """Standard error for a bar off a terminal: a line for each state."""

    def write(self, text: str) -> None:
        if state := text.strip():
            print(state, file=sys.stderr)

    def flush(self) -> None:
        sys.stderr.flush()


def with_progress(items: Sequence[T], description: str, unit: str = "question") -> Iterator[T]:
    """The items, with a bar on a terminal; elsewhere with a line of progress every :data:`EVERY` seconds."""
    if sys.stderr.isatty():
        return iter(tqdm(items, desc=description, unit=unit, dynamic_ncols=True))
    rare: Any = {"delay": EVERY, "mininterval": EVERY, "maxinterval": EVERY, "miniters": 1, "file": _Lines()}
    form = "{desc}: {n_fmt} of {total_fmt} {unit}s in {elapsed}, {remaining} left"
    return iter(tqdm(items, desc=description, unit=unit, bar_format=form, **rare))


def commit() -> str | None:
    """The last commit that changed what figures depend on (:data:`CODE`), with ``-dirty`` if it was changed since; None
    outside a clone.

    So tests, pages and results can be committed, and figures stay those of the same code.
    """
    root = Path(__file__).resolve().parents[1]
    at = _git(root, "log", "-1", "--format=%h", "--abbrev=7", "--", *CODE)
    return f"{at}-dirty" if at and _git(root, "status", "--porcelain", "--untracked-files=no", "--", *CODE) else at


def _git(root: Path, *command: str) -> str | None:
    environment = os.environ | {"GIT_CEILING_DIRECTORIES": str(root.parent)}
    try:
        done = subprocess.run(["git", *command], cwd=root, env=environment, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() or None


def settings_of(*, used: Sequence[Any] = (), data: Sequence[Path] = (), **resolved: Any) -> Record:
    """The options of the running command by name, ``commit``, what figures depend on, and what is given here.

    A file is named with the first digits of its MD5 sum. Beside the options stand the sums of the source, of plug-ins
    too, of the weights and of all folders (:mod:`tag_bench.fingerprints`): what is changed is another setting.

    Args:
        used: what the run uses that may be of other people, as an embedder. If the first is a method, it is
            ``method_object``, with all its parameters.
        data: folders that no option names.
        **resolved: in place of options.
    """
    watch(*used)
    context = click.get_current_context()
    params = {**(context.parent.params if context.parent else {}), **context.params}
    found = {name: _plain(value) for name, value in params.items() if name not in NO_SETTINGS}
    outputs = [one for name in WRITTEN if (one := params.get(name))]
    written = [Path(one if isinstance(one, str | Path) else one.name) for one in outputs]
    folders = [*_folders(value for name, value in params.items() if name not in NO_SETTINGS), *data]
    sums = {
        "source_md5": source_md5(*context.meta.get(PLUGINS, ()), *used),
        "weights_md5": weights_md5(*used),
        "data_md5": {folder.resolve().name: data_md5(folder, written) for folder in folders if folder.is_dir()},
    }
    about = {"method_object": described(used[0])} if used and isinstance(used[0], Method) else {}
    return {**found, **about, **resolved, "commit": commit(), **sums}


def card(result: Mapping[str, Any]) -> Record:
    """The result card: what the figures of a command are of, for whoever wants the same ones."""
    settings = result if "source_md5" in result else settings_of()
    names = ("commit", "data_md5", "source_md5", "weights_md5", "method_object", "embedder", "lm", "seed")
    return {**{name: settings[name] for name in names if name in settings}, "machine": machine()}


def machine() -> str:
    """The processor, its cores, the memory, and the versions of Python and pandas."""
    try:
        cpuinfo = Path("/proc/cpuinfo").read_text(encoding="utf-8")
        name = next(line.partition(": ")[2] for line in cpuinfo.splitlines() if line.startswith("model name"))
        memory = f", {os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB"
    except (OSError, StopIteration):
        name, memory = platform.processor() or platform.machine(), ""
    versions = f"Python {platform.python_version()}, pandas {metadata.version('pandas')}"
    return f"{os.cpu_count()} cores of {name}{memory}, {platform.system()}, {versions}"


def _folders(values: Iterable[Any]) -> Iterator[Path]:
    """The values of options that are folders."""
    for value in values:
        if isinstance(value, tuple):
            yield from _folders(value)
        elif isinstance(value, str | Path) and Path(value).is_dir():
            yield Path(value)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    if isinstance(value, str | Path) and Path(value).is_file():
        digest = hashlib.md5(Path(value).read_bytes(), usedforsecurity=False).hexdigest()
        return f"{value} ({digest[:8]})"
    return value.resolve().name if isinstance(value, Path) else value


def model_name(lm: str | None) -> str | None:
    """The model of ``--lm``, or the configured one."""
    configured = getattr(current().lm, "model", current().lm)
    return lm or (None if configured is None else str(configured))


def embedder_name() -> str | None:
    """The configured embedder."""
    embedder = get_embedder()
    return None if embedder is None else embedder.name


class Records:
    """The records of a run; those that the file has from an earlier run are not asked again.

    Args:
        file: of JSON lines, created if it is missing; None keeps the records in memory only.
        settings: of the run: :func:`settings_of`.

    Raises:
        click.ClickException: the file is not one of records, or has records of other settings.
    """

    def __init__(self, file: Path | None, settings: Mapping[str, Any]) -> None:
        self._file = file
        self._settings: Record = json.loads(_json(dict(settings)))
        self._records: dict[Any, Record] = {}
        for record in [] if file is None else read_records(file):
            self._refuse_others(record.pop("settings", None))
            self._records[record["id"]] = record
        if file is not None and file.is_file():
            _mend(file)

    def _refuse_others(self, theirs: Record | None) -> None:
        if theirs is None:
            raise click.ClickException(f"{self._file} has records without settings; give another file")
        read, ours = theirs.pop(READ, {}), self._settings
        pairs = [
            (name, theirs.get(name), ours.get(name)) for name in sorted((ours.keys() | theirs.keys()) - SELECTIONS)
        ]
        pairs += [
            (f"{READ} {name}", before, now)
            for (name, before), now in zip(sorted(read.items()), reads_md5(read).values(), strict=True)
        ]
        if differences := "; ".join(f"{name} {before!r}, here {now!r}" for name, before, now in pairs if before != now):
            raise click.ClickException(
                f"{self._file} has records of other settings ({differences}); give another file, or the same settings"
            )

    def left(self, items: Sequence[T], key: Callable[[T], tuple[Any, str]]) -> list[T]:
        """The items that have no record yet, or one with an error.

        Raises:
            click.ClickException: the record of an item is of another question.
        """
        left = []
        for item in items:
            id, question = key(item)
            record = self._records.get(id)
            if record is not None and record["question"] != question:
                raise click.ClickException(
                    f"{self._file}: question {id} is {record['question']!r}, here {question!r}; give another file"
                )
            if record is None or record.get("error"):
                left.append(item)
        return left

    def each(
        self,
        items: Sequence[T],
        ask: Callable[[T], Mapping[str, Any] | None],
        key: Callable[[T], tuple[Any, str]],
        description: str,
    ) -> list[Record]:
        """The record of each item, in order; each is written to the file before the next one is asked.

        Args:
            items: to ask.
            ask: gives the record of an item; None if there is none.
            key: gives the id and the text of an item's question.
            description: for the progress.
        """
        left = self.left(items, key)
        if len(left) < len(items):
            click.echo(f"{len(items) - len(left):,} of {len(items):,} questions are in {self._file}", err=True)
        for item in with_progress(left, description):
            record = ask(item)
            if record is not None:
                self.add(*key(item), record)
        return [self._records[id] for id, _ in map(key, items) if id in self._records]

    def add(self, id: Any, question: str, found: Mapping[str, Any]) -> None:
        """Keep a record, instead of an earlier one of the same question."""
        line = _json({"id": id, "question": question, **found})
        self._records[id] = json.loads(line)
        if self._file is not None:
            read = reads_md5()
            settings = self._settings | ({READ: read} if read else {})
            with self._file.open("a", encoding="utf-8") as lines:
                lines.write(f"{line[:-1]}, {_json({'settings': settings})[1:]}\n")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def read_records(file: Path) -> list[Record]:
    """The records of a file, the last one of each question; empty if there is no such file.

    Lines that were not written to their end are left out.

    Raises:
        click.ClickException: a line is not a record.
    """
    if file.suffix == ".json":
        raise click.ClickException(f"records are JSON lines, one per question: use {file.with_suffix('.jsonl')}")
    found: dict[Any, Record] = {}
    lines = file.read_bytes().split(b"\n") if file.is_file() else []
    for number, line in enumerate(lines, 1):
        record = _read(line)
        if record is not None:
            found[record["id"]] = record
        elif line.strip() and not line.startswith(_BEGIN):
            raise click.ClickException(f"{file}, line {number} is not a record: a JSON object with an id is needed")
    return list(found.values())


def _read(line: bytes) -> Record | None:
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) and "id" in record else None


def _mend(file: Path) -> None:
    """Cut off a last line that was not written to its end, and end a whole one."""
    text = file.read_bytes()
    end = text.rfind(b"\n") + 1
    if text[end:]:
        file.write_bytes(text + b"\n" if _read(text[end:]) is not None else text[:end])

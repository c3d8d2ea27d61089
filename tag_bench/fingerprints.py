"""What figures depend on, as MD5 sums: the source of a method, its weights, the data.

A record of another sum is of another run: :mod:`tag_bench.records` refuses it by name. Files whose names a plug-in
computes are known once it opens them (:func:`watch`); a record has them, too.
"""

from __future__ import annotations

import ast
import glob
import hashlib
import importlib.util
import inspect
import os
import re
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
_OURS = ("tagframe", "tag_bench", "pipelines")
_LIBRARIES = tuple(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "purelib", "platlib"))
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_SIDE = ("-wal", "-shm", "-journal")
"""What SQLite writes beside a database; a log that is not empty is a part of it."""
_WATCHED: set[str] = set()
_READ: set[str] = set()
_LONGEST = 300


def md5_of(files: Iterable[Path], root: Path) -> str:
    """The first digits of the MD5 sum of files and of their names below ``root``."""
    total = hashlib.md5(usedforsecurity=False)
    for file in sorted({*files}):
        total.update(f"{file.relative_to(root) if file.is_relative_to(root) else file.name}\n".encode())
        with file.open("rb") as opened:
            total.update(hashlib.file_digest(opened, lambda: hashlib.md5(usedforsecurity=False)).digest())
    return total.hexdigest()[:12]


def data_md5(folder: Path, written: Iterable[Path] = ()) -> str:
    """The sum of a folder of data, without hidden files, empty logs of SQLite's, and what is written now.

    Args:
        folder: of the data.
        written: files and folders that the running command writes, which may lie in it.
    """
    outputs = {path.resolve() for path in written}
    files = (path for path in _walked(folder) if not _is_side(path) and not _is_hidden(path, folder))
    return md5_of((file for file in files if not outputs & {file.resolve(), *file.resolve().parents}), folder)


def _walked(folder: Path) -> Iterator[Path]:
    """All files of a folder; folders behind links are read, too, each once."""
    seen = set()
    for path, folders, names in os.walk(folder, followlinks=True):
        if (real := os.path.realpath(path)) in seen:
            folders.clear()
            continue
        seen.add(real)
        yield from filter(_is_file, (Path(path) / name for name in names))


def _is_side(path: Path) -> bool:
    return path.name.endswith(_SIDE) and (path.name.endswith("-shm") or not path.stat().st_size)


def _is_hidden(path: Path, folder: Path) -> bool:
    return any(part.startswith(".") or part == "__pycache__" for part in path.relative_to(folder).parts)


def watch(*used: Any) -> None:
    """From now on, note the files that modules of other people open, or what they call; not what libraries open.

    Args:
        *used: methods, embedders, or names of modules.
    """
    _listen()
    _WATCHED.update(name.partition(".")[0] for one in used for name in _modules(one))


@cache
def _listen() -> None:
    sys.addaudithook(_note)  # for the rest of the process: a hook cannot be taken away


def forget() -> None:
    """Watch nothing, and no file was read: for the tests, in which a module's files belong to one test."""
    _WATCHED.clear()
    _READ.clear()


def _note(event: str, facts: tuple[Any, ...]) -> None:
    if event not in ("open", "sqlite3.connect") or not isinstance(facts[0], str | Path):
        return  # before the frame is looked up, which is an event, too
    # Its own frame gets no name here: that would be a cycle, which keeps all frames below it alive.
    if _is_called_by_watched(inspect.currentframe()):
        file = Path(facts[0])
        with suppress(ValueError, NotImplementedError):  # no cached code
            file = Path(importlib.util.source_from_cache(str(file)))
        _READ.add(str(file.absolute()))


def _is_called_by_watched(own: FrameType | None) -> bool:
    frame = own.f_back if own is not None else None
    while frame is not None:
        top = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if top in _OURS or top in _WATCHED:
            return top in _WATCHED
        frame = frame.f_back
    return False


def reads_md5(names: Iterable[str] | None = None) -> dict[str, str]:
    """The sums of files by name; by default of those that watched modules opened. Those of libraries are left out."""
    files = (Path(name) for name in sorted(_READ if names is None else names))
    return {
        str(file): md5_of([file], file.parent) if _is_stored(file) else "" for file in files if not _in_library(file)
    }


def weights_md5(*used: Any) -> str:
    """The sum of the fitted weights of the library, and of the files that the parameters of objects name."""
    given = (str(value) for one in used for value in getattr(one, "__dict__", {}).values())
    return md5_of([*(ROOT / "tagframe").rglob("*.json"), *filter(_is_file, map(Path, given))], ROOT)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a text that is no path
        return False


def _is_stored(path: Path) -> bool:
    """Whether a file lies on a disk: what the kernel says of a process (``/proc/self/stat``) differs each time."""
    return _is_file(path) and path.stat().st_size > 0


def source_md5(*used: Any) -> str:
    """The sum of our own source, and of all loaded source of other people, but for libraries.

    Of a module count files that it names, those beside it of its own name, and all of a package. What it imports or
    opens later is noted then (:func:`watch`).

    Args:
        *used: methods, embedders, or names of modules; their packages count even if they are installed.
    """
    packages = {name.partition(".")[0] for one in used for name in _modules(one)}
    theirs = set()
    for name, module in sys.modules.copy().items():
        file = Path(getattr(module, "__file__", None) or "")
        if not _is_known(name) and _is_file(file) and (name.partition(".")[0] in packages or not _in_library(file)):
            theirs.add(file.resolve())
    ours = (file for name in _OURS for file in (ROOT / name).rglob("*.py"))
    return md5_of([*ours, *(part for file in theirs for part in _parts(file))], ROOT)


def described(used: Any) -> str:
    """A method with all its parameters; what is long is cut, with the MD5 sum of the whole."""
    with np.printoptions(threshold=sys.maxsize, floatmode="unique"):
        text = _ADDRESS.sub("", f"{type(used).__module__}.{used!r}")
    digest = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()[:12]
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({digest})"


def _modules(used: Any) -> Iterator[str]:
    """The modules of an object's classes and of its parameters', or the one that a text names."""
    if isinstance(used, str):
        yield used
        return
    for part in (used, *getattr(used, "__dict__", {}).values()):
        yield from (one.__module__ for one in type(part).__mro__ if not _is_known(one.__module__))
        if inspect.isroutine(part) and not _is_known(part.__module__ or "builtins"):
            yield part.__module__


def _is_known(module: str) -> bool:
    """Whether the source of a module is ours, whose sum is made apart, or Python's."""
    top = module.partition(".")[0]
    return top in _OURS or top in sys.stdlib_module_names


def _parts(file: Path) -> Iterator[Path]:
    """The file of a module, those beside it of its own name, such as its weights, a package's, and those it names."""
    yield file
    yield from filter(_is_file, file.parent.glob(f"{glob.escape(file.stem)}.*"))
    if file.stem == "__init__":
        yield from (path for path in _walked(file.parent) if not _is_hidden(path, file.parent))
    for node in ast.walk(ast.parse(file.read_bytes())) if file.suffix == ".py" else ():
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and 0 < len(node.value) < _LONGEST:
            yield from filter(_is_stored, (Path(node.value), file.parent / node.value))


def _in_library(file: Path) -> bool:
    real = file.resolve()  # an environment may be behind a link
    return any(real.is_relative_to(path) for path in _LIBRARIES)

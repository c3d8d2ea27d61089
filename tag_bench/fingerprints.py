"""What figures depend on, as MD5 sums: the source of a method, its weights, the data.

A record of another sum is of another run: :mod:`tag_bench.records` refuses it by name.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import re
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from contextlib import suppress
from modulefinder import ModuleFinder
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
_OURS = ("tagframe", "tag_bench", "pipelines")
_LIBRARIES = tuple(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "purelib", "platlib"))
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_SIDE = ("-wal", "-shm", "-journal")
"""What SQLite writes beside a database."""
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
    """The sum of a folder of data, without hidden files, what SQLite writes beside a database, and what is written now.

    Args:
        folder: of the data.
        written: files and folders that the running command writes, which may lie in it.
    """
    outputs = {path.resolve() for path in written}
    files = (path for path in _walked(folder) if not path.name.endswith(_SIDE) and not _is_hidden(path, folder))
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


def _is_hidden(path: Path, folder: Path) -> bool:
    return any(part.startswith(".") or part == "__pycache__" for part in path.relative_to(folder).parts)


def weights_md5(*used: Any) -> str:
    """The sum of the fitted weights of the library, and of the files that the parameters of objects name."""
    given = (str(value) for one in used for value in getattr(one, "__dict__", {}).values())
    return md5_of([*(ROOT / "tagframe").rglob("*.json"), *filter(_is_file, map(Path, given))], ROOT)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a text that is no path
        return False


def source_md5(*used: Any) -> str:
    """The sum of our own source, and of all that objects and modules of other people are made of.

    Of theirs, what a module imports counts too, wherever in it, unless it is an installed library; with the files in
    its folder that it names or that have its name, and all of a package.

    Args:
        *used: methods, embedders, or names of modules.
    """
    ours = (file for name in _OURS for file in (ROOT / name).rglob("*.py"))
    return md5_of([*ours, *_files({name for one in used for name in _modules(one)})], ROOT)


def described(used: Any) -> str:
    """A method with all its parameters; what is long is cut, with the MD5 sum of the whole."""
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


def _files(roots: set[str]) -> Iterator[Path]:
    """The files of modules and of what they import, with what lies beside them."""
    if not roots:
        return
    installed = (path.stem for library in _LIBRARIES if library.is_dir() for path in library.iterdir())
    others = {*sys.stdlib_module_names, *_OURS, *installed} - {root.partition(".")[0] for root in roots}
    finder = ModuleFinder(excludes=[*others])
    for root in sorted(roots):
        with suppress(ImportError):
            finder.import_hook(root)
    modules: Iterable[Any] = finder.modules.values()
    for module in modules:
        if module.__file__ is None:  # a folder without code
            continue
        file = Path(module.__file__).resolve()
        yield file
        if module.__path__:
            yield from (path for path in _walked(file.parent) if not _is_hidden(path, file.parent))
        text = file.read_text(encoding="utf-8", errors="replace") if file.suffix == ".py" else ""
        beside = (path for path in file.parent.iterdir() if path.stem == file.stem or path.name in text)
        yield from filter(_is_file, beside)

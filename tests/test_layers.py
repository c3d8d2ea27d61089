"""The map's import direction."""

from __future__ import annotations

import ast
import functools
import graphlib
import re
from pathlib import Path

import pytest

import tagframe

PACKAGE = Path(tagframe.__file__).parent

# CONTRIBUTING.md says which way imports go: a room may import itself, and the rooms on the lines above its own.
PAGE = (Path(__file__).resolve().parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
LAYERS = [line.split(", ") for line in PAGE.split("<!-- layers -->")[1].split("```")[1].splitlines()[1:]]
LATE = set(PAGE.split("<!-- late imports -->")[1].split("```")[1].splitlines()[1].split(", "))
"""The files whose methods may import higher files, in their bodies only."""
UP = {"corpus_methods"}
"""The only import that goes up: of ``corpus/corpus.py``."""
LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


NAMES = {name_of(path): path for path in modules()}


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def is_late(path: Path) -> bool:
    return path.relative_to(PACKAGE).as_posix() in LATE


@functools.cache
def imported_modules(path: Path, *, late: bool = True) -> set[str]:
    """The modules of tagframe that a module imports when it runs; ``late`` for those in its functions, too."""
    found: set[str] = set()
    left: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while left:  # of statements only: no expression imports anything
        node = left.pop()
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "tagframe":
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                found.add(full if full in NAMES else str(node.module))
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names if alias.name.split(".")[0] == "tagframe")
        # What stands under TYPE_CHECKING is only read by a type checker.
        typing_only = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        if not late and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for field in ("orelse", "finalbody", "handlers", "cases", *(() if typing_only else ("body",))):
            left.extend(getattr(node, field, ()))
    return found


@functools.cache
def typed_modules(path: Path) -> set[str]:
    """The modules of tagframe that a module imports for type checkers alone."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for line in node.body:
                if isinstance(line, ast.ImportFrom) and (line.module or "").split(".")[0] == "tagframe":
                    found |= {f"{line.module}.{alias.name}" for alias in line.names}
    return found


def imported_rooms(path: Path) -> set[str]:
    return {name.split(".")[1] for name in imported_modules(path, late=not is_late(path)) if "." in name}


def test_imports_go_down():
    assert {room_of(path) for path in modules()} <= set(LEVEL), "a new room: give it a layer"
    for path in modules():
        room = room_of(path)
        upward = {other for other in imported_rooms(path) - {room} if LEVEL[other] > LEVEL[room]}
        upward -= UP if path == PACKAGE / "corpus" / "corpus.py" else set()
        assert not upward, f"{path.relative_to(PACKAGE)} imports {upward}, which stand above it"


def test_files_with_late_imports_import_something_higher():
    for file in LATE:
        path = PACKAGE / file
        assert imported_modules(path) - imported_modules(path, late=False), f"{file} needs no late imports any more"


def test_imports_for_type_checkers_go_down_too():
    """A reader follows them as well: a room below takes a small protocol of its own, or an object."""
    for path in modules():
        level = LEVEL[room_of(path)]
        upward = {name for name in typed_modules(path) if LEVEL.get(name.split(".")[1], 0) > level}
        assert not upward or path.relative_to(PACKAGE).as_posix() in LATE, f"{path} imports {upward}"


def test_siblings_that_must_not_know_each_other():
    for path in modules():
        room, imported = room_of(path), imported_rooms(path)
        if room == "operators":
            assert not imported & {"engines", "corpus", "keys", "joins", "merging", "retrieval"}, path
        if room == "lm":
            assert not imported & {"engines", "corpus", "operators"}, path
        if room in ("engines", "corpus", "keys", "joins", "merging"):
            assert "lm" not in imported, path


def test_no_files_import_each_other_in_a_circle():
    imports = {
        name: imported_modules(path, late=not is_late(path)) & set(NAMES) - {name} for name, path in NAMES.items()
    }
    try:
        tuple(graphlib.TopologicalSorter(imports).static_order())
    except graphlib.CycleError as error:
        pytest.fail(f"a circle: {' → '.join(error.args[1])}")


def test_private_names_stay_in_their_file_or_class():
    for path in [*modules(), *sorted((PACKAGE.parent / "tag_bench").rglob("*.py"))]:
        assert reached_for(path) == [], path


MAY_REACH = re.compile(r"(?<!\bself)(?<!\bcls)\._[A-Za-z]|^\s*from tagframe[^\n(]*(\([^)]*|[^\n]*)\b_[A-Za-z]", re.M)
"""What a file has that takes a private name of others; few have, and parsing takes long."""


def reached_for(path: Path) -> list[str]:
    """The private names of others that a file takes."""
    text = path.read_text(encoding="utf-8")
    nodes = list(ast.walk(ast.parse(text))) if MAY_REACH.search(text) else []
    own = {node.attr for node in nodes if isinstance(node, ast.Attribute) and is_self(node.value)}
    own |= {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    own |= {node.target.id for node in nodes if isinstance(node, ast.AnnAssign) and is_name(node.target)}
    found = []
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tagframe"):
            found += [f"{alias.name} of {node.module}" for alias in node.names if is_private(alias.name)]
        if isinstance(node, ast.Attribute) and is_private(node.attr) and not is_self(node.value):
            found += [f"{node.attr}, line {node.lineno}"] if node.attr not in own else []
    return found


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name != "_"


def is_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def is_name(node: ast.AST) -> bool:
    return isinstance(node, ast.Name)

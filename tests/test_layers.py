"""The map's import direction, and what ``import tagframe`` may load."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import tagframe

PACKAGE = Path(tagframe.__file__).parent

# A room may import itself, and the rooms of lower layers.
LAYERS = [
    {"errors", "config", "results"},
    {"embed", "lm", "engines", "display"},
    {"corpus"},
    {"keys"},
    {"joins"},
    {"merging"},
    {"retrieval", "operators"},
    {"answer"},
    {"lotus", "accessor", "cli", "__init__"},
]
LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_rooms(path: Path) -> set[str]:
    """Rooms that a module imports when it runs: what stands under TYPE_CHECKING is only read by a type checker."""
    found = set()
    skipped: set[ast.AST] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            skipped.update(child for statement in node.body for child in ast.walk(statement))
        if node in skipped:
            continue
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("tagframe."):
            found.add(node.module.split(".")[1])
        elif isinstance(node, ast.ImportFrom) and node.module == "tagframe":
            found.update(alias.name for alias in node.names if alias.name in LEVEL)
        elif isinstance(node, ast.Import):
            found.update(alias.name.split(".")[1] for alias in node.names if alias.name.startswith("tagframe."))
    return found


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_down(path: Path):
    room = room_of(path)
    assert room in LEVEL, f"{room} is a new room: give it a layer"
    upward = {other for other in imported_rooms(path) - {room} if LEVEL[other] > LEVEL[room]}
    assert not upward, f"{path.relative_to(PACKAGE)} imports {upward}, which stand above it"


def test_siblings_that_must_not_know_each_other():
    for path in modules():
        room, imported = room_of(path), imported_rooms(path)
        if room == "operators":
            assert not imported & {"engines", "corpus", "keys", "joins", "merging", "retrieval"}, path
        if room == "lm":
            assert not imported & {"engines", "corpus", "operators"}, path
        if room in ("engines", "corpus", "keys", "joins", "merging"):
            assert "lm" not in imported, path


def test_importing_tagframe_loads_nothing_heavy():
    """Only pandas: everything else is loaded at first use."""
    program = (
        "import pandas, sys; before = set(sys.modules); import tagframe; "
        "print(*sorted({name.split('.')[0] for name in set(sys.modules) - before}))"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    heavy = {
        "torch", "transformers", "sentence_transformers", "faiss", "litellm", "lotus", "mip", "sqlglot", "bm25s",
        "sqlite_utils", "aiohttp", "click", "tqdm", "pyarrow", "openai", "pydantic", "asyncio",
    }  # fmt: skip
    assert not heavy & set(loaded)
    assert "tagframe" in loaded

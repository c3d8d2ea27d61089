"""CONTRIBUTING.md is the map of the library; these tests keep it true."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tagframe

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "tagframe"
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def rooms_of_the_page() -> set[str]:
    table = PAGE.split("## Rooms")[1].split("\n## ")[0]
    first_cells = re.findall(r"^\| (`[^|]+) \|", table, flags=re.MULTILINE)
    return {name for cell in first_cells for name in re.findall(r"`(\w+)`", cell)}


def rooms_of_the_library() -> set[str]:
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    files = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__"}
    return folders | files


def test_every_room_is_on_the_page_and_in_the_library():
    assert rooms_of_the_page() == rooms_of_the_library()


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(tagframe(?:\.\w+)+)`", PAGE))))
def test_every_name_on_the_page_is_there(name: str):
    parts = name.split(".")
    found: Any = tagframe
    for position, part in enumerate(parts[1:], start=2):
        try:
            found = importlib.import_module(".".join(parts[:position]))
        except ModuleNotFoundError:
            found = getattr(found, part)
    assert found.__doc__ or not callable(found)


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`((?:tagframe|tests|tag_bench|examples)/[\w./]*)`", PAGE))))
def test_every_path_on_the_page_is_there(path: str):
    assert (ROOT / path).exists()


@pytest.mark.parametrize("folder", sorted(set(re.findall(r"a file in `(\w+(?:/\w+)*)/`", PAGE))))
def test_every_folder_for_something_new_is_there(folder: str):
    assert (PACKAGE / folder).is_dir()


@pytest.mark.parametrize("target", sorted(set(re.findall(r"^make (\w+)", PAGE, flags=re.MULTILINE))))
def test_every_target_is_in_the_makefile(target: str):
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)


VAGUE = {"told", "said", "asked", "held", "kept", "shown", "looked", "meant"}
"""Participles that do not say what a thing is, so that a reader of a name learns nothing: name the thing."""


def names_in(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Every name that the code gives or uses, with its line."""
    for node in ast.walk(tree):
        for field in ("id", "attr", "arg", "name", "asname", "rest", "kwd_attrs", "names"):
            given = getattr(node, field, None)
            for name in given if isinstance(given, list) else [given]:
                if isinstance(name, str):
                    yield name, getattr(node, "lineno", 0)


def vague_names(text: str) -> list[str]:
    return [f"line {line}: {name}" for name, line in names_in(ast.parse(text)) if name.strip("_").casefold() in VAGUE]


def test_a_vague_name_is_seen_wherever_it_stands():
    for code in (
        "kept = 1", "def f(_told): pass", "def shown(): pass", "class Held: pass", "a.asked", "f(said=1)", "_KEPT = 1",
        "import a as meant", "from a import told", "for looked in a: pass", "match a:\n    case [*kept]: pass",
        "try: pass\nexcept E as held: pass", "def f(*shown): pass", "def f():\n    global kept",
    ):  # fmt: skip
        assert len(vague_names(code)) == 1, code
    assert not vague_names("rows_kept = is_told = 'kept'  # held")


def test_names_say_what_a_thing_is():
    files = {str(path.relative_to(PACKAGE)): path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    assert not [name for name in files if VAGUE & {part.removesuffix(".py") for part in name.split("/")}]
    assert not {name: vague for name, text in sorted(files.items()) if (vague := vague_names(text))}

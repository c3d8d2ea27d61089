"""Which tests and examples are collected: importing a file, and looking at each of its objects, takes time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.doctest import DoctestModule

ALL_SLOW = re.compile(r"^pytestmark = (\[\s*)?pytest\.mark\.slow", re.MULTILINE)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option of ``make check``."""
    parser.addoption(
        "--quick",
        action="store_true",
        help="what make check runs: no slow test, and of each other test the first case and the last",
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Files whose tests are all slow are left out of the quick tests."""
    if config.option.quick and collection_path.match("test_*.py"):
        return ALL_SLOW.search(collection_path.read_text("utf-8")) is not None or None
    return None


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Iterator[None]:
    """Files without an example are left out of the examples."""
    return [one for one in (yield) if not isinstance(one, DoctestModule) or ">>> " in file_path.read_text("utf-8")]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The quick tests are chosen, if they are asked for."""
    if config.option.quick:
        cases: dict[str, list[pytest.Item]] = {}
        for item in items:
            if item.get_closest_marker("slow") is None:
                cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
        chosen = {case for each in cases.values() for case in (each[0], each[-1])}
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = [item for item in items if item in chosen]

"""Which files are searched for tests and examples: importing a file, and looking at each of its objects, takes time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.doctest import DoctestModule

ALL_SLOW = re.compile(r"^pytestmark = (\[\s*)?pytest\.mark\.slow", re.MULTILINE)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Files whose tests are all slow are left out where no slow test runs."""
    if config.option.markexpr == "not slow" and collection_path.match("test_*.py"):
        return ALL_SLOW.search(collection_path.read_text("utf-8")) is not None or None
    return None


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Iterator[None]:
    """Files without an example are left out of the examples."""
    return [one for one in (yield) if not isinstance(one, DoctestModule) or ">>> " in file_path.read_text("utf-8")]

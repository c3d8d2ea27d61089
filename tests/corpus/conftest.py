"""Fixtures of the corpus' tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tagframe.corpus import TableProfile, indexing
from tagframe.engines.base import TableShape


@pytest.fixture(autouse=True)
def cache_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The user's cache folder, for the test only."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: folder / name)
    yield folder / "tagframe" / "catalogues"
    folder.chmod(0o700)


@pytest.fixture
def profiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tables that are really profiled, in order."""
    names: list[str] = []
    profile_table = indexing.profile_table

    def noted(database: str, shape: TableShape, *chunks: Any, **options: Any) -> TableProfile:
        names.append(shape.name)
        return profile_table(database, shape, *chunks, **options)

    monkeypatch.setattr(indexing, "profile_table", noted)
    return names

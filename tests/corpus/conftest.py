"""Fixtures of the corpus' tests."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def cache_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The user's cache folder, for the test only."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: folder / name)
    yield folder / "tagframe" / "catalogues"
    folder.chmod(0o700)


@pytest.fixture
def sqlite_file(tmp_path: Path) -> Callable[..., Path]:
    """Make a SQLite file from a script: ``sqlite_file(script, name="bank.sqlite")``."""

    def make(script: str, name: str = "bank.sqlite") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(script)
        return path

    return make


BANK = """
CREATE TABLE client (client_id INTEGER PRIMARY KEY, name TEXT, born DATE);
INSERT INTO client VALUES (1, 'Ada', '1980-02-01'), (2, 'Bo', NULL), (3, 'Cy', '1975-11-30');
CREATE TABLE loan (
    loan_id INTEGER PRIMARY KEY,
    client_id INTEGER REFERENCES client (client_id),
    amount REAL
);
INSERT INTO loan VALUES (10, 1, 100.5), (11, 1, 200), (12, 3, NULL);
"""


@pytest.fixture
def bank(sqlite_file: Callable[..., Path]) -> Path:
    """A SQLite file with two tables and a foreign key."""
    return sqlite_file(BANK)

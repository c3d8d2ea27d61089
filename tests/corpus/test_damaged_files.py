"""A draw of the damaged files of ``damaged_files.py``; more are drawn by hand."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.corpus.damaged_files import files_of, make, outcome
from tests.draws import DRAWS


@pytest.mark.slow
def test_damaged_catalogues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tagframe.retrieval.index.LAKE", 0)  # of so many columns the index is kept
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    source = make(tmp_path)
    files = files_of(source)
    became = [outcome(source, files, random.Random(f"everyday {case}")) for case in range(100 * DRAWS)]
    assert len({one.partition(":")[0] for one in became}) > 1
    assert {one for one in became if not one.startswith(("opened", "rebuilt", "refused: Unreadable"))} == set()

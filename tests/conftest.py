"""Fixtures that every room's tests share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def bench() -> Path:
    """The folder of benchmark data beside the repository; tests that need it are skipped where it is absent."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "bench"
    if not folder.is_dir():
        pytest.skip(f"no benchmark data: {folder.name}/ is not beside the repository")
    return folder

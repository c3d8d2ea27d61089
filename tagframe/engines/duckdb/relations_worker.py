"""As :mod:`tagframe.engines.duckdb.worker`, for statements over relations too.

What reads relations takes 60 MB and half a second to load: it is there before the first statement's time begins, and
not at all where all tables are in files.
"""

from __future__ import annotations

import tagframe.engines.duckdb.scanned  # noqa: F401
from tagframe.engines.duckdb.worker import Worker

__all__ = ["Worker"]

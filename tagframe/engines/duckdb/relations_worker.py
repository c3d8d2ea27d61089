"""Like :mod:`tagframe.engines.duckdb.worker`, but also for statements over relations.

The code that reads relations takes 60 MB and half a second to load. It is loaded before the time of the first statement
begins, and not at all if all tables are in files.
"""

from __future__ import annotations

import tagframe.engines.duckdb.scanned  # noqa: F401
from tagframe.engines.duckdb.worker import Worker

__all__ = ["Worker"]

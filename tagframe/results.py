"""What is known of a result frame: its merge report, its sources, the outcome of each row.

Facts are kept beside the frame, not in it: ``DataFrame.attrs`` is deep-copied by every operation and lost by ``merge``.
They belong to that one object and are dropped with it; a frame derived from it (``frame.head()``) has none.
"""

from __future__ import annotations

import weakref
from typing import Any

import pandas as pd

_facts: dict[int, dict[str, Any]] = {}


def remember(frame: pd.DataFrame, **facts: Any) -> None:
    """Keep ``facts`` for as long as ``frame`` lives; a name that is there already is replaced."""
    key = id(frame)  # frames are not hashable; the finalizer below removes the key before an id can be used again
    if key not in _facts:
        weakref.finalize(frame, _facts.pop, key, None)
        _facts[key] = {}
    _facts[key].update(facts)


def recall(frame: pd.DataFrame, name: str) -> Any | None:
    """The fact of that name, or None where this very frame has none."""
    return _facts.get(id(frame), {}).get(name)

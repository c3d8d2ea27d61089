"""How many random cases are drawn: a few in each run of the suite, many for an afternoon."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeVar

DRAWS = int(os.environ.get("TAGFRAME_DRAWS", "1"))
"""How many times as many random cases as usual; with ``TAGFRAME_DRAWS=10`` every case there is."""

Case = TypeVar("Case")


def one_of(step: int, cases: Iterable[Case]) -> list[Case]:
    """One case of so many, as a rule: of cases that another test tries whole, or that are many of a kind."""
    return list(cases)[:: max(1, step // DRAWS)]

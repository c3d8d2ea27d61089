"""How many random cases are drawn: a few in each run of the suite, many for an afternoon."""

from __future__ import annotations

import os

DRAWS = int(os.environ.get("TAGFRAME_DRAWS", "1"))
"""How many times as many random cases as usual; with ``TAGFRAME_DRAWS=10`` every case there is."""

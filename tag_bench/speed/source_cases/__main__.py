"""One step of a case of ``tag_bench speed sources``, in a separate process that prints its figures."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from tag_bench.speed.sides import memory_mb, peak_mb
from tag_bench.speed.source_cases import CASES

if __name__ == "__main__":
    name, step, source, folder = sys.argv[1:]
    os.environ["XDG_CACHE_HOME"] = str(Path(folder) / "cache")  # catalogues of the case's own
    run = CASES[name].steps[step]
    held = memory_mb()
    figures = run(source, Path(folder))
    print(json.dumps({**figures, "peak_mb": max(0.0, peak_mb() - held)}))

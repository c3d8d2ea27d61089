"""What ``import tagframe`` may load."""

from __future__ import annotations

import subprocess
import sys


def test_importing_tagframe_loads_nothing_heavy():
    """Only pandas: everything else is loaded at first use."""
    program = (
        "import pandas, sys; before = set(sys.modules); import tagframe; "
        "print(*sorted({name.split('.')[0] for name in set(sys.modules) - before}))"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    heavy = {
        "torch", "transformers", "sentence_transformers", "faiss", "litellm", "lotus", "mip", "sqlglot", "bm25s",
        "sqlite_utils", "aiohttp", "click", "tqdm", "pyarrow", "openai", "pydantic", "asyncio",
    }  # fmt: skip
    assert not heavy & set(loaded)
    assert "tagframe" in loaded

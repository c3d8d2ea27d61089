"""What ``import tagframe`` may load."""

from __future__ import annotations

import subprocess
import sys

import pytest

import tagframe as tf
from tagframe import errors


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


def test_every_public_name_is_loaded_from_where_the_stub_says():
    assert {"sem_filter", "open_corpus", "configure", "LM"} < set(tf.__all__) <= set(dir(tf))
    for name in tf.__all__:
        assert getattr(tf, name).__name__.rpartition(".")[2] == name
    with pytest.raises(errors.NameUnknown, match="did you mean 'sem_filter'"):
        _ = tf.sem_filtr
    assert not hasattr(tf, "sem_filtr")

"""Keys in memory as other engines are asked for them: of what kind they are, which there are, what they may mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from tagframe.corpus.canonical import canonical_all, plain

_EXACT = 2.0**53
"""From here on not every integer is a float."""


def key_kind(keys: pd.Series) -> str:
    """What a key column holds: "integer", "text", "null" where nothing, "" for what only pandas compares.

    >>> key_kind(pd.Series([1.0, None])), key_kind(pd.Series(["a", None])), key_kind(pd.Series([1.5]))
    ('integer', 'text', '')
    """
    if keys.isna().all():
        return "null"
    dtype: Any = getattr(keys.dtype, "numpy_dtype", keys.dtype)
    if isinstance(dtype, np.dtype) and dtype.kind in "iu":
        return "integer" if dtype.kind == "i" or int(keys.max()) < 2**63 else ""
    if isinstance(dtype, np.dtype) and dtype.kind == "f":
        numbers = keys.dropna().to_numpy(dtype=np.float64)
        is_whole = bool((numbers == np.trunc(numbers)).all() and (np.abs(numbers) < _EXACT).all())
        return "integer" if is_whole else ""
    if isinstance(dtype, pd.CategoricalDtype):
        return "text" if pd.api.types.infer_dtype(keys.cat.categories, skipna=True) == "string" else ""
    is_text = pd.api.types.is_string_dtype(dtype) or pd.api.types.is_object_dtype(dtype)
    return "text" if is_text and pd.api.types.infer_dtype(keys, skipna=True) == "string" else ""


def keys_of(keys: pd.Series) -> pd.Index:
    """The distinct keys that are not null, integers as ``int64``."""
    values = keys.dropna()
    found: Any = values.to_numpy(dtype=np.int64 if key_kind(values) == "integer" else object)
    unique: pd.Index = pd.Index(pd.unique(found))
    return unique


def canonical_forms(texts: Sequence[str]) -> set[str]:
    """All that the texts may mean: as numbers where they can be read as such, and as text."""
    forms = {form for form in canonical_all(list(texts))[0] if form is not None} if texts else set()
    return forms | {plain(text.strip())[0] or "" for text in texts if text.strip()}


def size_of(values: pd.Series | pd.Index) -> int:
    """Their bytes in an Arrow table."""
    import pyarrow as pa  # type: ignore[import-untyped]

    try:
        return int(pa.Array.from_pandas(values).nbytes)
    except (pa.ArrowException, TypeError):  # objects of several kinds
        return sum(len(str(value)) for value in values)

"""What a question takes to be known of the world: asked of the model, never written into a pipeline."""

from __future__ import annotations

from typing import Any

import pandas as pd

import tagframe as tf


def known(instruction: str, dtype: str = "string", **given: Any) -> Any:
    """One fact, such as ``known("the year in which {event} ended", "number", event="the Vietnam War")``.

    Args:
        instruction: what is wanted; names what is given in braces.
        dtype: of the fact, as :func:`tagframe.sem_map` takes it.
        **given: what it is about.
    """
    return tf.sem_map(pd.DataFrame([given]), instruction, dtype=dtype)["_map"].iloc[0]

"""``tf.known``: one fact of the world, asked once for all rows."""

from __future__ import annotations

from typing import Any

import pandas as pd

from tagframe.errors import InvalidArgument, NotKnown
from tagframe.operators.operator import OPERATORS
from tagframe.operators.public_forms import function


def known(instruction: str, dtype: Any = None, **given: Any) -> Any:
    """Ask for one fact of the world, to compare it with all rows; a claim about each row would ask for it every time.

    >>> import tagframe as tf
    >>> opened = tf.known("the year in which {what} was opened", int, what="the Suez Canal")  # doctest: +SKIP
    >>> ships[ships["launched"] < opened]  # doctest: +SKIP

    It is :func:`tagframe.sem_map` on one row. For a fact about each value of a column, use ``df.tag.sem_map``, which
    asks about each distinct value once.

    Args:
        instruction: the fact, with its subject as names in braces.
        dtype: of the fact, as for :func:`tagframe.sem_map`; a text if None.
        **given: the subject, by the names in the instruction; at least one.

    Returns:
        The fact: a text, a number, a boolean or a date.

    Raises:
        NotKnown: the model says that it does not know the fact.
        RowsFailed: the model gave no usable answer.
        ColumnNotFound, InvalidArgument, NotConfigured: as :func:`tagframe.sem_map`.
    """
    if not given:
        raise InvalidArgument(
            f"say what the fact is about, as in known('the capital of {{what}}', what='Peru'); got {instruction!r}"
        )
    fact = function(OPERATORS["sem_map"])(pd.DataFrame([given]), instruction, dtype=dtype)["_map"].iloc[0]
    if fact is pd.NA or fact is pd.NaT:
        raise NotKnown(
            f"the model does not know {instruction!r} for {given}; ask another model, or use a value of your own"
        )
    return fact

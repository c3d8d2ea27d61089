"""``tf.known``: one fact of the world, asked once for all rows."""

from __future__ import annotations

from typing import Any

import pandas as pd

from tagframe.errors import InvalidArgument, NotKnown
from tagframe.operators.operator import OPERATORS
from tagframe.operators.public_forms import function


def known(instruction: str, dtype: Any = None, **given: Any) -> Any:
    """Ask for one fact of the world, to compare all rows with: a claim about each row would ask for it again each time.

    >>> import tagframe as tf
    >>> opened = tf.known("the year in which {what} was opened", int, what="the Suez Canal")  # doctest: +SKIP
    >>> ships[ships["launched"] < opened]  # doctest: +SKIP

    It is :func:`tagframe.sem_map` of one row. A fact about each value of a column is ``df.tag.sem_map``, which asks for
    each distinct value once.

    Args:
        instruction: what is wanted; names what it is about in braces.
        dtype: of the fact, as :func:`tagframe.sem_map` takes it; a text where None.
        **given: what it is about, by the names in the instruction; at least one.

    Returns:
        The fact: a text, a number, a truth or a date.

    Raises:
        NotKnown: the model says that it does not know it.
        RowsFailed: the model gave no usable answer.
        ColumnNotFound, InvalidArgument, NotConfigured: as :func:`tagframe.sem_map`.
    """
    if not given:
        raise InvalidArgument(
            f"say what the fact is about, as known('the capital of {{country}}', country='Peru'): {instruction!r}"
        )
    fact = function(OPERATORS["sem_map"])(pd.DataFrame([given]), instruction, dtype=dtype)["_map"].iloc[0]
    if fact is pd.NA or fact is pd.NaT:
        raise NotKnown(
            f"the model does not know {instruction!r} of {given}; ask another one, or give the value yourself"
        )
    return fact

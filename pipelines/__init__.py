"""Hand-written pipelines: each of TAG-Bench's 80 questions, answered with pandas and ``df.tag``.

A module a database, a function a question; :data:`PIPELINES` maps a question's id to its function. A pipeline takes the
tables of its database by name, frames or anything that gives them, and returns the answer: a list, or one value::

    tables = Tables(tf.open_corpus("california_schools.sqlite"))
    with tf.context(lm="openai/gpt-4o-mini"):
        PIPELINES[0](tables)

They are written as a user would: pandas for what is exact (comparing, counting, sorting), an operator for what needs
judgement, over distinct values where the judgement is of the value alone. What a question takes to be known of the
world is asked of the model as well, once (:func:`tagframe.known`). They read the words of a question as they stand;
where the key takes another reading, the docstring says so.
"""

from pipelines import (
    california_schools,
    codebase_community,
    debit_card_specializing,
    european_football_2,
    formula_1,
)
from pipelines.registry import PIPELINES, Pipeline
from pipelines.tables import Tables

__all__ = [
    "PIPELINES",
    "Pipeline",
    "Tables",
    "california_schools",
    "codebase_community",
    "debit_card_specializing",
    "european_football_2",
    "formula_1",
]

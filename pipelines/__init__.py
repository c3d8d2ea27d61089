"""Hand-written pipelines: each of TAG-Bench's 80 questions, answered with pandas and ``df.tag``.

There is a module per database and a function per question; :data:`PIPELINES` maps a question's id to its function. A
pipeline takes a mapping from table names to frames, and returns the answer: a list, or one value::

    tables = Tables(tf.open_corpus("california_schools.sqlite"))
    with tf.context(lm="openai/gpt-4o-mini"):
        PIPELINES[0](tables)

They are written as a user would write them: pandas for exact work (comparing, counting, sorting), and an operator for
judgement, over distinct values if only the value matters. If a question needs general knowledge, the model is asked for
it once (:func:`tagframe.known`). The questions are read literally; if the key has another reading, the docstring says
so.
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

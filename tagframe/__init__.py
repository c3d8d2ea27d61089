"""tagframe: questions that need several tables and judgement, answered from pandas.

>>> import tagframe as tf
>>> corpus = tf.open_corpus("bank.sqlite")  # doctest: +SKIP
>>> found = corpus.tables.tag.retrieve_tables("Which female account holders have a gold card?")  # doctest: +SKIP
>>> found.merge().tag.sem_filter("{district} is in Bohemia")  # doctest: +SKIP

Importing this module registers ``df.tag`` and loads nothing heavier than pandas; rooms load at first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tagframe import accessor as accessor  # registers df.tag
from tagframe.config import configure, context

if TYPE_CHECKING:
    from tagframe.answer import TAG, Answer, ask
    from tagframe.corpus import Corpus, open_corpus
    from tagframe.lm import LM

__version__ = "0.1.0"

_HOMES = {
    "TAG": "tagframe.answer",
    "Answer": "tagframe.answer",
    "ask": "tagframe.answer",
    "open_corpus": "tagframe.corpus",
    "Corpus": "tagframe.corpus",
    "LM": "tagframe.lm",
}

__all__ = ["LM", "TAG", "Answer", "Corpus", "ask", "configure", "context", "open_corpus"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tagframe' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""tagframe: questions that need several tables and judgement, answered from pandas.

>>> import tagframe as tf
>>> corpus = tf.open_corpus("bank.sqlite")  # doctest: +SKIP
>>> found = corpus.tables.tag.retrieve_tables("Which female account holders have a gold card?")  # doctest: +SKIP
>>> found.merge().tag.sem_filter("{district} is in Bohemia")  # doctest: +SKIP

Importing this module registers ``df.tag`` and loads nothing heavier than pandas; rooms load at first use. Its public
names are listed once, in ``__init__.pyi``.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

import lazy_loader

from tagframe import accessor as accessor  # registers df.tag
from tagframe.errors import NameUnknown, did_you_mean
from tagframe.version import __version__ as __version__

if "dask.dataframe" in sys.modules:
    importlib.import_module("tagframe.dask")  # registers ddf.tag

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    if name in __all__:
        return _load(name)
    if name.startswith(("sem_", "asem_", "load_sem_")):  # an operator that somebody else declared, if any
        functions = importlib.import_module("tagframe.operators.functions")
        return getattr(functions, name)
    nearest = "" if name.startswith("_") else f": {did_you_mean(name, __all__)}"
    raise NameUnknown(f"no name {name!r} in tagframe{nearest}")

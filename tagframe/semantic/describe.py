"""``corpus.describe``: what a person says of tables, one by one, and what files say of many."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from tagframe.corpus import Corpus
from tagframe.corpus.corpus import fact_store
from tagframe.corpus.facts import FactKey, as_description
from tagframe.corpus.references import NamedTable, find_column
from tagframe.errors import InvalidArgument, TableNotFound
from tagframe.semantic.descriptions import Described, descriptions_in, facts_of, models_taken
from tagframe.semantic.in_rows import checked_in_rows


def describe(corpus: Corpus, name: str | Path | pd.DataFrame, text: str | None = None) -> Described | None:
    """See :meth:`tagframe.Corpus.describe`."""
    if text is None:
        return _described(corpus, name)
    if not isinstance(name, str) or not isinstance(text, str):
        raise InvalidArgument(f"describe(name, text) takes two texts; got {name!r} and {text!r}")
    try:
        fact: FactKey = "table", (corpus.profile(name).id,)
    except TableNotFound:
        if "." not in name:
            raise
        fact = "column", find_column(name, [*map(NamedTable.of, corpus.profiles)])
    fact_store(corpus).put({fact: as_description(text) or None})
    return None


def _described(corpus: Corpus, given: str | Path | pd.DataFrame) -> Described:
    content = descriptions_in(given)
    facts, unknown = facts_of(content.descriptions, corpus.profiles)
    values: dict[FactKey, Any] = {**facts}
    described = {of for _, of in facts}
    unread, checked, keys, metrics = [*content.unread], list[str](), 0, 0
    for taken in models_taken(content.models, corpus.profiles):
        checked += checked_in_rows(corpus, taken.value)
        # What the model said of other tables when it was read before.
        before = {("semantic", of) for of in fact_store(corpus).facts.of_kind("semantic")}
        values.update({fact: None for fact in before if fact[1][0] == taken.digest})
        if taken.value["tables"] or taken.value["keys"] or taken.value["metrics"]:
            values["semantic", (taken.digest, *taken.tables)] = taken.value
        for id, one in taken.value["tables"].items():
            described |= {(id,)} if one["description"] or one["synonyms"] else set()
            described |= {(id, column) for column in one["columns"]}
        unknown, unread = [*unknown, *taken.unknown], [*unread, *taken.unread]
        keys, metrics = keys + len(taken.value["keys"]), metrics + len(taken.value["metrics"])
    fact_store(corpus).put(values)
    tables = sum(len(of) == 1 for of in described)
    return Described(
        tables, len(described) - tables, tuple(unknown), tuple(unread), keys, metrics, tuple(checked)
    )  # fmt: skip

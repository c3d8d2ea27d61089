"""``corpus.describe``: what a person says of tables, one by one, and what files say of many."""

from __future__ import annotations

from pathlib import Path
from typing import Any, overload

import pandas as pd

from tagframe.corpus import Corpus
from tagframe.corpus.corpus import knowledge_of
from tagframe.corpus.references import NamedTable, find_column
from tagframe.corpus.told import FactKey, as_description
from tagframe.errors import InvalidArgument, TableNotFound
from tagframe.semantic.descriptions import Described, descriptions_in, facts_said, models_taken
from tagframe.semantic.in_rows import checked_in_rows


@overload
def describe(self: Corpus, name: str, text: str) -> None: ...
@overload
def describe(self: Corpus, name: str | Path | pd.DataFrame, text: None = ...) -> Described: ...
def describe(self: Corpus, name: str | Path | pd.DataFrame, text: str | None = None) -> Described | None:
    """Describe a table or a column; the text is searched, and shown to models.

    Without a text, read many descriptions:

    - a frame or a CSV file with ``table``, ``column`` and ``description``, or BIRD's folders ``database_description``.
      Empty descriptions are skipped; of two descriptions of the same thing, the later one counts.
    - a semantic model: Apache Ossie's (YAML or JSON), dbt's ``schema.yml`` or ``manifest.json`` or the folder of a dbt
      project. Its descriptions, synonyms, keys and metrics stand below what a person said, and above what is inferred.
      Its keys are checked against the rows. The same model, read again, replaces what it said before.
    - a folder of such files.

    Args:
        name: ``table``, ``table.column`` or either with the database before it; or the file, folder or frame.
        text: ``"status code, 3 = shipped"``; an empty text removes the description. 500 characters are kept.

    Returns:
        For many descriptions: what was used, the names that are unknown, what could not be read, and the keys that do
        not hold for all rows.

    Raises:
        TableNotFound, ColumnNotFound: no such table or column.
        SourceNotFound, InvalidArgument: no such file, or one of another form.
    """
    if text is None:
        return _described(self, name)
    if not isinstance(name, str) or not isinstance(text, str):
        raise InvalidArgument(f"describe(name, text) takes two texts; got {name!r} and {text!r}")
    try:
        fact: FactKey = "table", (self.profile(name).id,)
    except TableNotFound:
        if "." not in name:
            raise
        fact = "column", find_column(name, [*map(NamedTable.of, self.profiles)])
    knowledge_of(self).tell({fact: as_description(text) or None})
    return None


def _described(corpus: Corpus, given: str | Path | pd.DataFrame) -> Described:
    content = descriptions_in(given)
    said, unknown = facts_said(content.said, corpus.profiles)
    told: dict[FactKey, Any] = {**said}
    described = {of for _, of in said}
    unread, checked, keys, metrics = [*content.unread], list[str](), 0, 0
    for taken in models_taken(content.models, corpus.profiles):
        checked += checked_in_rows(corpus, taken.value)
        # What the model said of other tables when it was read before.
        before = {("semantic", of) for kind, of in knowledge_of(corpus).told.facts if kind == "semantic"}
        told.update({fact: None for fact in before if fact[1][0] == taken.digest})
        if taken.value["tables"] or taken.value["keys"] or taken.value["metrics"]:
            told["semantic", (taken.digest, *taken.tables)] = taken.value
        for id, one in taken.value["tables"].items():
            described |= {(id,)} if one["description"] or one["synonyms"] else set()
            described |= {(id, column) for column in one["columns"]}
        unknown, unread = [*unknown, *taken.unknown], [*unread, *taken.unread]
        keys, metrics = keys + len(taken.value["keys"]), metrics + len(taken.value["metrics"])
    knowledge_of(corpus).tell(told)
    tables = sum(len(of) == 1 for of in described)
    return Described(
        tables, len(described) - tables, tuple(unknown), tuple(unread), keys, metrics, tuple(checked)
    )  # fmt: skip

"""Modules by the names that they had: what was pickled by an earlier tagframe is still opened.

An old name is imported as a module that holds nothing, and asks the one of today for what is looked up in it.
"""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

MOVED = {
    "tagframe.answer.lm_sql.names": "tagframe.answer.lm_sql.select_names",
    "tagframe.answer.lm_sql.spoken": "tagframe.answer.lm_sql.dialects",
    "tagframe.answer.lm_sql.values": "tagframe.answer.lm_sql.asked_values",
    "tagframe.answer.models": "tagframe.answer.step_models",
    "tagframe.answer.plan": "tagframe.answer.query_quote",
    "tagframe.corpus.computed": "tagframe.corpus.computed_columns",
    "tagframe.corpus.index": "tagframe.corpus.opening",
    "tagframe.corpus.keeper": "tagframe.corpus.catalogue_file",
    "tagframe.corpus.mapped": "tagframe.corpus.mapped_arrays",
    "tagframe.corpus.naming": "tagframe.corpus.references",
    "tagframe.corpus.schema": "tagframe.corpus.schema_only",
    "tagframe.corpus.tables": "tagframe.corpus.tables_frame",
    "tagframe.dask.asking": "tagframe.dask.client",
    "tagframe.dask.distinct": "tagframe.dask.partition_tasks",
    "tagframe.dask.workers": "tagframe.dask.partition_tasks",
    "tagframe.display.answers": "tagframe.display.answer_view",
    "tagframe.engines.batches": "tagframe.engines.file_batches",
    "tagframe.engines.frames": "tagframe.engines.frame_engine",
    "tagframe.engines.lake": "tagframe.engines.duckdb",
    "tagframe.engines.lake.connection": "tagframe.engines.duckdb.connection",
    "tagframe.engines.lake.engine": "tagframe.engines.duckdb.engine",
    "tagframe.engines.lake.formats": "tagframe.engines.duckdb.formats",
    "tagframe.engines.lake.frames": "tagframe.engines.duckdb.frame_scans",
    "tagframe.engines.lake.scanned": "tagframe.engines.duckdb.scanned",
    "tagframe.engines.duckdb.selecting": "tagframe.engines.duckdb.pushdown",
    "tagframe.engines.lake.selecting": "tagframe.engines.duckdb.pushdown",
    "tagframe.engines.lake.statement": "tagframe.engines.duckdb.statement",
    "tagframe.engines.lake.statistics": "tagframe.engines.duckdb.statistics",
    "tagframe.engines.lake.tables": "tagframe.engines.duckdb.tables",
    "tagframe.engines.postgres.catalogue": "tagframe.engines.postgres.pg_catalog",
    "tagframe.engines.postgres.joining": "tagframe.engines.postgres.pushdown",
    "tagframe.engines.postgres.selecting": "tagframe.engines.postgres.pushdown",
    "tagframe.engines.selecting": "tagframe.engines.pushdown",
    "tagframe.engines.sqlite.session": "tagframe.engines.sqlite.pushdown",
    "tagframe.engines.schemas": "tagframe.engines.schema_names",
    "tagframe.keys.names": "tagframe.keys.column_names",
    "tagframe.lm.embeddings": "tagframe.lm.embedding_models",
    "tagframe.lm.lane": "tagframe.lm.pacing",
    "tagframe.lm.progress": "tagframe.lm.progress_bar",
    "tagframe.lm.schema": "tagframe.lm.store_schema",
    "tagframe.operators.answers": "tagframe.operators.answer_grammar",
    "tagframe.operators.filters": "tagframe.operators.filter",
    "tagframe.operators.join.candidates": "tagframe.operators.join.pair_candidates",
    "tagframe.operators.join.operator": "tagframe.operators.join.semantic_join",
    "tagframe.operators.join.plan": "tagframe.operators.join.label_plan",
    "tagframe.operators.join.claim_report": "tagframe.operators.join.decide",
    "tagframe.operators.join.report": "tagframe.operators.join.decide",
    "tagframe.operators.models": "tagframe.operators.pydantic_models",
    "tagframe.operators.naming": "tagframe.operators.prompt_names",
    "tagframe.operators.nearness": "tagframe.operators.text_nearness",
    "tagframe.merging.crossing": "tagframe.merging.across",
    "tagframe.merging.execution": "tagframe.merging.run",
    "tagframe.merging.under_way": "tagframe.merging.in_memory",
    "tagframe.merging.planning": "tagframe.joins.infer",
    "tagframe.retrieval.database_keys": "tagframe.keys.database_keys",
    "tagframe.retrieval.held": "tagframe.retrieval.names_in_cells",
    "tagframe.retrieval.once": "tagframe.corpus.once",
    "tagframe.retrieval.refreshed": "tagframe.retrieval.index_refresh",
    "tagframe.retrieval.remembered": "tagframe.retrieval.index_cache",
    "tagframe.retrieval.values": "tagframe.retrieval.cell_values",
}
"""The name that a module had → the name that it has. Whoever moves one writes a line."""

RENAMED = {"tagframe.corpus.computed.Places": "Sources"}
"""What stands in a moved module and is called otherwise there, by the dotted name that it had → its name."""


class _Moved(ModuleType):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__ = []  # modules may have stood in it

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(MOVED[self.__name__]), RENAMED.get(f"{self.__name__}.{name}", name))


class _Finder:
    """Finds the old names; Python asks it after it has looked for files of that name."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        return ModuleSpec(name, _Finder) if name in MOVED else None  # type: ignore[arg-type]

    @staticmethod
    def create_module(spec: ModuleSpec) -> ModuleType:
        return _Moved(spec.name)

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        """There is nothing to run."""


def find_moved_modules() -> None:
    """Have Python import modules by their old names, too."""
    if _Finder not in sys.meta_path:
        sys.meta_path.append(_Finder)

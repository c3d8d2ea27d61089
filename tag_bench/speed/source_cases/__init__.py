"""The cases of ``tag_bench speed sources``: one file per kind of source, one entry per case in :data:`CASES`."""

from tag_bench.speed.source_cases.batches import BATCHES
from tag_bench.speed.source_cases.case import Figures, SourceCase
from tag_bench.speed.source_cases.lake import LAKE
from tag_bench.speed.source_cases.partitions import PARTS
from tag_bench.speed.source_cases.postgres import POSTGRES_MERGE, POSTGRES_SCHEMA, POSTGRES_WHOLE

_ALL: tuple[SourceCase, ...] = (
    # PostgreSQL
    POSTGRES_SCHEMA,
    POSTGRES_MERGE,
    POSTGRES_WHOLE,
    # Parquet and Dask
    BATCHES,
    LAKE,
    PARTS,
)
CASES = {case.name: case for case in _ALL}

__all__ = ["CASES", "Figures", "SourceCase"]

"""The cases of ``tag_bench speed operators``: each has a function per side, and an entry in :data:`CASES`."""

from tag_bench.speed.cases.aggregate import AGG_5K
from tag_bench.speed.cases.cascade import CASCADE
from tag_bench.speed.cases.case import Case
from tag_bench.speed.cases.filter import FILTER_LIMIT, FILTER_PACKED, SCORE_PACKED
from tag_bench.speed.cases.join import JOIN_LABELS
from tag_bench.speed.cases.topk import TOPK_LIST

CASES: dict[str, Case] = {
    case.name: case for case in (TOPK_LIST, FILTER_PACKED, SCORE_PACKED, FILTER_LIMIT, AGG_5K, JOIN_LABELS, CASCADE)
}

__all__ = ["CASES", "Case"]

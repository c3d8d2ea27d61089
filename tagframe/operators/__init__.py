"""Semantic operators: a frame and an instruction in, a frame and each row's outcome out."""

from tagframe.operators.aggregate import sem_agg
from tagframe.operators.filter import sem_filter
from tagframe.operators.outcome import OnError
from tagframe.operators.topk import sem_topk

__all__ = ["OnError", "sem_agg", "sem_filter", "sem_topk"]

"""Keys, plans and merges of plain frames, with no corpus.

Frames are given as a mapping from names, or as a sequence; those of a sequence are called ``frame_1``, ``frame_2``, ….
The first frame is the anchor: the plan starts from its rows. Frames of one shape in a mapping ({"sales_2023": …,
"sales_2024": …}) are stacked and joined as one; in a sequence they are not, since nothing but their columns says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import pandas as pd

from tagframe import results
from tagframe.corpus.profile import TableProfile
from tagframe.corpus.profiler import profile_table
from tagframe.engines.frames import FrameEngine, frame_engines
from tagframe.errors import InvalidArgument
from tagframe.joins.plan import How, JoinPlan
from tagframe.joins.planner import plan_joins
from tagframe.keys.inference import infer_key_pairs
from tagframe.keys.key_columns import unnamed
from tagframe.keys.key_pair import KeyPair
from tagframe.keys.names import Similarity
from tagframe.merging.execution import Reaction, run_plan
from tagframe.merging.report import MergeReport

Frames = Mapping[str, pd.DataFrame] | Sequence[pd.DataFrame]

_DATABASE = "frames"


def _named(frames: Frames) -> dict[str, pd.DataFrame]:
    if isinstance(frames, pd.DataFrame):
        raise InvalidArgument("pass the frames as a list or a mapping from names; got a single frame")
    if isinstance(frames, Mapping):
        return dict(frames)
    return {unnamed(number): frame for number, frame in enumerate(frames, start=1)}


class _Tables:
    """Frames by table id, and their profiles, made when first asked for."""

    def __init__(self, frames: Frames) -> None:
        self.are_named = isinstance(frames, Mapping)
        self._places: dict[str, tuple[str, str, FrameEngine, str]] = {}
        for database, tables, engine in frame_engines(_named(frames), _DATABASE):
            for name, key in tables.items():
                self._places[f"{database}.{name}"] = (database, name, engine, key)

    @cached_property
    def profiles(self) -> list[TableProfile]:
        found = []
        for database, name, engine, key in self._places.values():
            shape = next(shape for shape in engine.shapes() if shape.name == key)
            found.append(profile_table(database, shape, engine.chunks(shape), name=name))
        return found

    def read(self, table: str, columns: Sequence[str]) -> pd.DataFrame:
        _, _, engine, key = self._places[table]
        return engine.scan(key, columns)

    def keys(self, similarity: Similarity | None) -> list[KeyPair]:
        return infer_key_pairs(self.profiles, similarity=similarity, across_sources=True, read=self.read)


def infer_keys(*frames: pd.DataFrame | Frames, similarity: Similarity | None = None) -> list[KeyPair]:
    """The key pairs between frames, best first; see :func:`~tagframe.keys.infer_key_pairs`.

    The frames are given one by one, or as one list or mapping from names.

    >>> import pandas as pd
    >>> loans = pd.DataFrame({"loan_id": [1, 2, 3], "client_id": [20, 10, 20]})
    >>> clients = pd.DataFrame({"client_id": [10, 20, 30], "name": ["Ann", "Bo", "Cy"]})
    >>> [(key.left, key.right) for key in infer_keys({"loans": loans, "clients": clients})]
    [('frames.loans.client_id', 'frames.clients.client_id')]

    Raises:
        InvalidArgument: what is not a frame, or a frame with a MultiIndex or two columns of one name.
    """
    given: Any = frames[0] if len(frames) == 1 and not isinstance(frames[0], pd.DataFrame) else frames
    return _Tables(given).keys(similarity)


def join_plan(
    frames: Frames, *, keys: Sequence[KeyPair] | None = None, similarity: Similarity | None = None
) -> JoinPlan:
    """The plan that joins the frames, from the first one; see :func:`~tagframe.joins.plan_joins`.

    Args:
        frames: a mapping from names, or a sequence.
        keys: instead of inferred ones.
        similarity: likeness in meaning of two names.

    Raises:
        InvalidArgument: what is not a frame, or a frame with a MultiIndex or two columns of one name.
        NotConnected: no key pairs connect the frames.
    """
    return _planned(_Tables(frames), keys, similarity)


def _planned(tables: _Tables, keys: Sequence[KeyPair] | None, similarity: Similarity | None) -> JoinPlan:
    profiles = tables.profiles
    if keys is None:
        keys = tables.keys(similarity)
    anchor = profiles[0].id if profiles else None
    return plan_joins(profiles, keys, anchor=anchor, stack_unions=tables.are_named)


def merge(frames: Frames, plan: JoinPlan | None = None, **options: Any) -> pd.DataFrame:
    """Merge frames along a plan, by default the inferred one; ``frame.tag.merge_report`` accounts for every row.

    >>> import pandas as pd
    >>> loans = pd.DataFrame({"loan_id": [1, 2, 3], "client_id": [20, 10, 20]})
    >>> clients = pd.DataFrame({"client_id": [10, 20, 30], "name": ["Ann", "Bo", "Cy"]})
    >>> merge({"loans": loans, "clients": clients})
       loan_id  client_id name
    0        1         20   Bo
    1        2         10  Ann
    2        3         20   Bo

    Args:
        frames: a mapping from names, or a sequence; the plan starts from the first.
        plan: how to join them.
        **options: those of :func:`tagframe.merging.run_plan`: how, on_fanout, on_loss, columns, where, limit.

    Raises:
        NotConnected: no key pairs connect the frames.
        FanOut: a step would repeat rows of the frame that the plan starts from.
    """
    frame, report = merge_frames_with_report(frames, plan, **options)
    results.remember(frame, merge_report=report)
    return frame


def merge_frames_with_report(
    frames: Frames,
    plan: JoinPlan | None = None,
    *,
    how: How = "inner",
    on_fanout: Reaction = "raise",
    on_loss: Reaction = "warn",
    columns: Sequence[str] | None = None,
    where: Mapping[str, Any] | str | None = None,
    limit: int | None = None,
) -> tuple[pd.DataFrame, MergeReport]:
    """The merged frame and its report; see :func:`merge`, and :func:`tagframe.merging.run_plan` for keywords."""
    tables = _Tables(frames)
    plan = _planned(tables, None, None) if plan is None else plan
    return run_plan(
        plan, tables.read, how=how, on_fanout=on_fanout, on_loss=on_loss, columns=columns, where=where, limit=limit
    )

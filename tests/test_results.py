from __future__ import annotations

import gc

import pandas as pd

from tagframe import results


def test_facts_belong_to_one_frame_and_go_with_it():
    frame = pd.DataFrame({"a": [1, 2]})
    results.remember(frame, color="red")
    results.remember(frame, shape="round")
    assert (results.recall(frame, "color"), results.recall(frame, "shape")) == ("red", "round")
    assert results.recall(frame, "size") is None
    assert results.recall(frame.copy(), "color") is None
    assert frame.attrs == {}
    key = id(frame)
    assert key in results._facts
    del frame
    gc.collect()
    assert key not in results._facts


def test_the_accessor_does_not_lose_facts():
    """pandas 3 makes the accessor afresh on every access; the facts are the frame's, not the accessor's."""
    frame = pd.DataFrame({"a": [1]})
    results.remember(frame, merge_report="the report")
    assert frame.tag.merge_report == "the report"
    assert frame.tag.merge_report == "the report"

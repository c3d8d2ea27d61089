"""What can be sent to another process, and what says by name why not."""

from __future__ import annotations

import pickle

import pandas as pd
import pytest

import tagframe as tf
from tag_bench.server import Server
from tagframe.errors import InvalidArgument


def again(thing):
    return pickle.loads(pickle.dumps(thing))


def test_a_model_asks_on_with_the_same_connection_and_settings(live: Server, tmp_path):
    lm = tf.LM("openai/test", api_base=live.url, api_key="sk-1", extra_body={"seed": 7}, store=str(tmp_path / "s.db"))
    frame = pd.DataFrame({"n": [1, 2]})
    assert len(frame.tag.sem_filter("{n} is even", lm=lm)) == 2
    other = again(lm)
    assert repr(other) == repr(lm)
    assert len(frame.tag.sem_filter("{n} is even", lm=other)) == 2
    assert len(live.requests) == 2
    frame.tag.sem_filter("{n} is odd", lm=other)
    assert live.requests[-1].headers["authorization"] == "Bearer sk-1"
    assert live.requests[-1].body["seed"] == 7


def test_a_budget_says_why_it_stays_where_it_is():
    for thing in (tf.Budget(calls=3), tf.LM("openai/test", budget=tf.Budget(calls=3))):
        with pytest.raises(InvalidArgument, match="one account of one process"):
            pickle.dumps(thing)


def test_a_corpus_and_what_it_finds(festival: tf.Corpus):
    other = again(festival)
    assert other.ids == festival.ids
    pd.testing.assert_frame_equal(other.read("films"), festival.read("films"))
    assert again(festival.tables).tag is not None
    rows = tf.exec_sql(festival)("SELECT title FROM films ORDER BY title LIMIT 2")
    pd.testing.assert_frame_equal(again(rows), rows)


def test_results_know_what_they_knew(live: Server):
    result = tf.sem_map(pd.DataFrame({"n": [1, 2]}), "Say {n}")
    assert again(result).tag.outcomes["outcome"].tolist() == ["answered", "answered"]
    merged = tf.merge({"a": pd.DataFrame({"k": [1, 2], "x": [3, 4]}), "b": pd.DataFrame({"k": [1, 2]})}, on="k")
    assert again(merged).tag.merge_report == merged.tag.merge_report


def test_batches_say_why_they_stay_where_they_are(live: Server):
    with pytest.raises(InvalidArgument, match="to="):
        pickle.dumps(tf.sem_filter(iter([pd.DataFrame({"n": [1]})]), "{n} is even"))

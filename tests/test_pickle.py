"""What can be sent to another process, and what says by name why not."""

from __future__ import annotations

import pickle

import pandas as pd
import pytest

import tagframe as tf
from tag_bench.server import Server
from tagframe.engines import passwords
from tagframe.engines.other_servers import Address
from tagframe.engines.postgres.connection import Server as Server_
from tagframe.errors import FactUnknown, InvalidArgument, OtherVersion


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
        with pytest.raises(InvalidArgument, match="belongs to one process"):
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


def test_a_corpus_of_another_version_is_refused(festival: tf.Corpus, monkeypatch: pytest.MonkeyPatch):
    for thing in (festival, festival.retrieve_tables("Which films?", k=1, method="lexical")):
        pickled = pickle.dumps(thing)
        with monkeypatch.context() as patch:
            patch.setattr("tagframe.corpus.corpus.__version__", "9.9.9")
            with pytest.raises(OtherVersion, match=r"by tagframe 0\.2\.0, and this is 9\.9\.9: open the source"):
                pickle.loads(pickled)


def test_a_frame_of_another_version_is_read_without_its_facts(live: Server, monkeypatch: pytest.MonkeyPatch):
    merged = tf.merge({"a": pd.DataFrame({"k": [1, 2], "x": [3, 4]}), "b": pd.DataFrame({"k": [1, 2]})}, on="k")
    answered = tf.sem_map(pd.DataFrame({"n": [1, 2]}), "Say {n}")
    pickles = [pickle.dumps(merged), pickle.dumps(answered)]
    monkeypatch.setattr("tagframe.results.__version__", "9.9.9")
    merged_again, answered_again = map(pickle.loads, pickles)
    pd.testing.assert_frame_equal(merged_again, merged)
    pd.testing.assert_frame_equal(answered_again, answered)
    with pytest.raises(FactUnknown, match=r"pickled by tagframe 0\.2\.0, and this is 9\.9\.9: make the frame again"):
        _ = merged_again.tag.merge_report
    with pytest.raises(FactUnknown, match=r"pickled by tagframe 0\.2\.0"):
        _ = answered_again.tag.outcomes


def test_batches_say_why_they_stay_where_they_are(live: Server):
    with pytest.raises(InvalidArgument, match="to="):
        pickle.dumps(tf.sem_filter(iter([pd.DataFrame({"n": [1]})]), "{n} is even"))


@pytest.mark.slow
def test_one_row_of_a_large_frame_is_small(live: Server):
    frame = pd.DataFrame({"n": range(50_000), "kind": ["a", "b"] * 25_000})
    judged = frame.tag.sem_filter("{kind} is a letter")
    row = judged.head(1)
    assert len(pickle.dumps(row)) < 20_000
    assert again(row)["n"].tolist() == [0]
    with pytest.raises(FactUnknown, match="too large for its pickle"):
        _ = again(row).tag.outcomes
    assert len(judged.tag.outcomes) == 50_000


def test_no_pickle_has_the_password_of_a_server(monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("psycopg")
    passwords.forget()
    server = Server_.of("postgresql://ann:zqs%3A1@db.example.org/shop?sslpassword=zqs-2")
    address = Address.of("postgresql+psycopg://ann:zqs%3A1@db.example.org/shop?token=zqs-2")
    assert "zqs:1" in server.conninfo
    for one in (server, address):
        data = pickle.dumps(one)
        assert b"zqs" not in data
        assert "zqs" in repr(vars(pickle.loads(data))), "this process was given it"
    passwords.forget()
    data = pickle.dumps(server)
    assert "zqs" not in pickle.loads(data).conninfo
    monkeypatch.setenv("TAGFRAME_PASSWORD", "of the environment")
    assert "of the environment" in pickle.loads(data).conninfo


def test_a_password_of_the_environment_completes_a_url_without_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TAGFRAME_PASSWORD", "a:b@c")
    added = passwords.with_password_of_environment
    assert added("postgresql://ann@db.example.org/shop") == "postgresql://ann:a%3Ab%40c@db.example.org/shop"
    for complete in ("postgresql://ann:x@db.example.org/shop", "postgresql://db.example.org/shop"):
        assert added(complete) == complete

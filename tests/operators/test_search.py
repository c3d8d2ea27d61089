from __future__ import annotations

import asyncio

import numpy as np
import pandas as pd
import pytest

import tagframe as tf
from tagframe.errors import ColumnNotFound, InvalidArgument, NotConfigured

TITLES = ["Machine learning tutorial", "A soup of carrots", "Deep neural networks", None, "Baking bread", " "]


@pytest.fixture
def titles() -> pd.DataFrame:
    """Texts on two subjects, and cells with nothing to read."""
    return pd.DataFrame({"title": TITLES, "n": range(6)}, index=list("aabcde"))


def test_the_nearest_rows_best_first(titles):
    before = titles.copy(deep=True)
    found = titles.tag.sem_search("title", "artificial intelligence", K=2, return_scores=True)
    assert sorted(found["n"]) == [0, 2]
    assert found["vec_scores_sim_score"].is_monotonic_decreasing
    assert found["n"].dtype == titles["n"].dtype
    pd.testing.assert_frame_equal(titles, before)
    assert list(titles.tag.sem_search("title", "cooking", K=99).columns) == ["title", "n"]
    assert len(titles.tag.sem_search("title", "cooking", K=99)) == 4, "what has no text is not found"
    awaited = asyncio.run(tf.asem_search(titles, "title", "artificial intelligence", 2))
    assert awaited["n"].tolist() == found["n"].tolist()


def test_rows_alike_are_found_in_their_order():
    frame = pd.DataFrame({"word": ["sea", "bread", "sea", "sea"]})
    assert frame.tag.sem_search("word", "ocean", K=2).index.tolist() == [0, 2]
    assert frame.tag.sem_search("word", "ocean", K=4).index.tolist() == [0, 2, 3, 1]


def test_the_model_chooses_among_what_is_found(live, titles):
    live.answers = lambda request: "A" if request.prompt.startswith("A:") else "1 > 2"
    found = titles.tag.sem_search("title", "of {braces}", K=2, n_rerank=1)
    assert len(found) == 1
    assert len(live.requests) == 1
    assert "of {braces}" in str(live.requests[0].messages)
    assert titles.tag.sem_search("title", "food", K=2, quote=True).calls == 0
    with pytest.raises(InvalidArgument, match="n_rerank must be a number of rows"):
        titles.tag.sem_search("title", "food", n_rerank=0)
    assert len(live.requests) == 1


@pytest.mark.parametrize("on", ["subject", "title"])
def test_partners_by_nearness(titles, on):
    subjects = pd.DataFrame({on: ["computers", "food"], "m": [1, 2]}, index=[5, 5])
    before = titles.copy(deep=True)
    joined = titles.tag.sem_sim_join(subjects, "title", on, 1, rsuffix="_right")
    other = f"{on}_right" if on == "title" else on
    assert list(joined.columns) == ["title", "n", "_scores", other, "m"]
    assert joined[other].tolist() == ["computers", "food", "computers", "food"]
    assert joined.index.tolist() == ["a", "a", "b", "d"]
    pd.testing.assert_frame_equal(titles, before)
    both = tf.sem_sim_join(titles, subjects[on].rename("s"), "title", "s", K=5, keep_index=True)
    assert len(both) == 8
    assert both.columns.tolist() == ["title", "n", "_scores", "s", "_left_id", "_right_id"]
    assert set(both["_right_id"]) == {5}
    assert asyncio.run(tf.asem_sim_join(titles, subjects, "title", on, 1, rsuffix="_right")).equals(joined)


def test_empty_frames(titles):
    assert len(titles.head(0).tag.sem_search("title", "food", K=2, return_scores=True)) == 0
    empty = titles.tag.sem_sim_join(pd.DataFrame({"s": pd.Series([], dtype="string")}), "title", "s", 1)
    assert list(empty.columns) == ["title", "n", "_scores", "s"]
    assert len(empty) == 0
    assert len(titles.head(0).tag.sem_sim_join(titles[["title"]], "title", "title", 1, rsuffix="_r")) == 0


def test_columns_of_several_levels_are_told_apart():
    levels = pd.DataFrame([["sea"]], columns=pd.MultiIndex.from_tuples([("a", "word")]))
    joined = levels.tag.sem_sim_join(levels, ("a", "word"), ("a", "word"), 1, rsuffix="_r")
    assert joined.columns.tolist() == [("a", "word"), ("_scores", ""), ("a", "word_r")]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("title", "food"), "give K="),
        (("title", "food", 0), "K must be a number of rows, at least 1"),
        (("title", "food", 2.5), "K must be a number of rows, at least 1"),
        (("title", " ", 1), "the query has no words"),
        (("n", "food", True), "K must be a number of rows"),
    ],
)
def test_bad_searches(titles, arguments, reason):
    with pytest.raises(InvalidArgument, match=reason):
        titles.tag.sem_search(*arguments)


def test_bad_columns(titles):
    with pytest.raises(ColumnNotFound, match="did you mean 'title'"):
        titles.tag.sem_search("titel", "food", K=1)
    with pytest.raises(InvalidArgument, match="2 columns are called 'title'"):
        titles.set_axis(["title", "title"], axis=1).tag.sem_search("title", "food", K=1)
    with pytest.raises(InvalidArgument, match="both frames have a column 'title'; rename them"):
        titles.tag.sem_sim_join(titles, "title", "title", 1)
    with pytest.raises(InvalidArgument, match="already has a column '_scores'"):
        titles.rename(columns={"n": "_scores"}).tag.sem_sim_join(pd.Series(["a"], name="s"), "title", "s", 1)


def test_an_embedder_of_ones_own(titles):
    class Lengths:
        name, dimension = "lengths", 2

        def encode(self, texts):
            angles = np.array([len(text) / 20 for text in texts])
            return np.column_stack([np.cos(angles), np.sin(angles)]).astype(np.float32)

    assert titles.tag.sem_search("title", "x" * 13, K=1, embedder=Lengths())["title"].tolist() == ["Baking bread"]


def test_no_embedder(titles, monkeypatch):
    monkeypatch.setattr("tagframe.embed.get_embedder", lambda: None)
    with pytest.raises(NotConfigured, match="no embedding model is available"):
        titles.tag.sem_search("title", "food", K=1)

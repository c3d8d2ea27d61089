"""tag_bench.cache: what is costly is made once for a state, and a text is encoded once."""

import numpy as np
import pytest

from tag_bench.cache import Cache, CachedEmbedder, code_state
from tagframe.embed import TextVectors


class Counting:
    name, dimension = "counting", 2

    def __init__(self):
        self.asked = []

    def encode(self, texts):
        self.asked += texts
        return np.array([[len(text) % 2, 1 - len(text) % 2] for text in texts], dtype=np.float32).reshape(-1, 2)


@pytest.fixture
def cache(tmp_path):
    return Cache(tmp_path / "cache")


def test_what_is_kept_is_made_once_for_a_state(cache):
    made = []

    def make():
        made.append(1)
        return len(made)

    assert [cache.get("x", state, make) for state in ("a", "a", "b", "b", "a")] == [1, 1, 2, 2, 3]
    assert [Cache(None).get("x", "a", make) for _ in range(2)] == [4, 5]  # nowhere to keep it


def test_what_is_damaged_is_made_again(cache, tmp_path):
    cache.put("x", "a", 1)
    (tmp_path / "cache" / "x.pickle").write_bytes(b"\x80")
    assert cache.get("x", "a", lambda: 2) == 2
    assert cache.get("x", "a", lambda: 3) == 2


def test_a_text_is_encoded_once_in_the_life_of_a_folder(cache):
    inner = Counting()
    embedder = CachedEmbedder(inner, cache)
    assert embedder.encode(["ab", "c", "ab"]).tolist() == [[0, 1], [1, 0], [0, 1]]
    assert embedder.encode([]).shape == (0, 2)
    assert inner.asked == ["ab", "c"]
    words = embedder.encode_words("big cat", [(0, 3), (4, 7)])
    assert isinstance(words, TextVectors)
    embedder.save()
    other = CachedEmbedder(Counting(), cache)
    assert np.array_equal(other.encode(["c"]), [[1, 0]])
    assert np.array_equal(other.encode_words("big cat", [(0, 3), (4, 7)]).words, words.words)
    assert other._embedder.asked == []
    assert other.encode_words("big cat", [(0, 3)]).words.shape == (1, 2)


def test_queries_are_kept_beside_passages(cache):
    class Apart(Counting):
        def encode(self, texts, kind):
            return super().encode([f"{kind} {text}" for text in texts])

    first, second = (CachedEmbedder(Apart(), cache) for _ in range(2))
    for kind in ("passage", "query", "query"):
        first.encode(["a"], kind)
    assert first._embedder.asked == ["passage a", "query a"]
    first.save()
    again = CachedEmbedder(Apart(), cache)
    assert again.encode(["a"], "query").tolist() == second.encode(["a"], "query").tolist()
    assert again._embedder.asked == []


READER = """
from pathlib import Path
import numpy as np

class Reader:
    name, dimension = "reader", 1
    def encode(self, texts, kind="passage"):
        return np.full((len(texts), 1), float(Path(__file__).with_name("wei" + "ght.txt").read_text()))
"""


def test_vectors_of_weights_that_were_changed_are_made_again(cache, tmp_path, monkeypatch):
    (tmp_path / "their_reader.py").write_text(READER)
    monkeypatch.syspath_prepend(tmp_path)
    import their_reader  # type: ignore[import-not-found]

    for weight in ("1", "1", "-1"):
        (tmp_path / "weight.txt").write_text(weight)
        embedder = CachedEmbedder(their_reader.Reader(), cache)
        assert embedder.encode(["a"]).tolist() == [[float(weight)]]
        embedder.save()
    monkeypatch.setattr(their_reader.Reader, "encode", None)
    assert CachedEmbedder(their_reader.Reader(), cache).encode(["a"]).tolist() == [[-1.0]], "what is the same is not"


def test_many_texts_are_kept_before_a_run_ends(cache, monkeypatch):
    monkeypatch.setattr("tag_bench.cache.AT_ONCE", 3)
    embedder = CachedEmbedder(Counting(), cache)
    for text in ("a", "b", "c", "d"):  # one by one, as an index asks
        embedder.encode([text])
    other = Counting()
    CachedEmbedder(other, cache).encode(["a", "b", "c", "d"])
    assert other.asked == ["d"]


def test_the_state_of_code_is_that_of_its_files():
    assert code_state("tagframe/keys") == code_state("tagframe/keys") != code_state("tagframe/embed")

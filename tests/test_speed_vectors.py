"""tag_bench speed vectors."""

import json

import numpy as np
from click.testing import CliRunner

from tag_bench.speed.vectors import command, repeated, texts, vectors_of


def test_the_exact_product_beside_faiss():
    done = CliRunner().invoke(command, ["--texts", "400", "--times", "1", "--times", "2", "--nearest", "20"])
    assert done.exit_code == 0, done.output
    small, large = json.loads(done.stdout)["lakes"]
    assert [small["vectors"], large["vectors"]] == [400, 800]
    for lake in (small, large):
        recalls = [row["recall"] for row in lake["faiss"]]
        assert recalls == sorted(recalls), "the more lists are looked at, the more is found"
        assert 0 < recalls[0] <= recalls[-1] <= 1


def test_texts_that_share_words_are_near_and_other_lakes_are_elsewhere():
    random = np.random.default_rng(0)
    found = texts("synthetic", 60)
    assert len(found) == len(set(found)) == 60
    vectors = vectors_of(["bank loan", "bank client", "zebra"], random)
    assert vectors[0] @ vectors[1] > 0.3 > abs(vectors[0] @ vectors[2])
    two = repeated(vectors, 2, random)
    np.testing.assert_allclose(two[3:] @ two[3:].T, vectors @ vectors.T, atol=1e-5)
    assert np.abs(np.diag(two[:3] @ two[3:].T)).max() < 0.9999

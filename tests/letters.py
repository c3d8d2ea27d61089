"""A small embedder for tests."""

from __future__ import annotations

import numpy as np


class Letters:
    """An embedder whose vectors are counts of letters, and what it was asked to encode."""

    dimension = 26

    def __init__(self, name: str = "letters") -> None:
        self.name = name
        self.asked: list[str] = []

    def encode(self, texts: list[str]) -> np.ndarray:
        self.asked += texts
        counts = np.array(
            [[text.lower().count(letter) + 0.01 for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]
        )
        return (counts / np.linalg.norm(counts, axis=1, keepdims=True)).astype(np.float32)

"""The question and its words as vectors from one forward pass.

A word's vector is the mean of its tokens' last hidden states: the word *in its question*, which the same word encoded
alone is not, and which costs nothing beside the question's own vector.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tagframe.retrieval.problem import Floats
from tagframe.retrieval.words import STOP_WORDS

if TYPE_CHECKING:
    from tagframe.embed import Embedder

_WORD = re.compile(r"(?<!['’])[^\W_]+|[^\W_]{3,}")  # not the s of a possessive, but the Brien of O'Brien


@dataclass(frozen=True, eq=False)
class QuestionVectors:
    """A question for dense relevance.

    Attributes:
        question: its unit vector, shape (d,).
        words: its words that are no stop words, in order.
        each: their unit vectors, shape (len(words), d).
    """

    question: Floats
    words: tuple[str, ...]
    each: Floats


def question_vectors(embedder: Embedder, question: str) -> QuestionVectors:
    """The vectors of a question and of its words.

    Embedders that are no sentence-transformers model, or whose tokenizer does not say where its tokens stand, encode
    the words one by one.
    """
    spans = [match.span() for match in _WORD.finditer(question) if match.group().lower() not in STOP_WORDS]
    words = tuple(question[start:end] for start, end in spans)
    found = _from_one_pass(embedder, question, spans)
    if found is None:
        vectors = np.asarray(embedder.encode([question, *(word.lower() for word in words)]), dtype=np.float64)
        return QuestionVectors(vectors[0], words, vectors[1:])
    return QuestionVectors(found[0], words, found[1])


def _from_one_pass(embedder: Embedder, question: str, spans: Sequence[tuple[int, int]]) -> tuple[Floats, Floats] | None:
    load = getattr(embedder, "load", None)
    if load is None or not hasattr(embedder, "_model"):
        return None
    load()
    model: Any = embedder._model
    if not getattr(model.tokenizer, "is_fast", False):
        return None
    # The tokenizer's state is shared by all calls.
    with getattr(embedder, "_lock", contextlib.nullcontext()):
        limits = {"truncation": True, "max_length": model.max_seq_length}
        offsets = model.tokenizer(question, return_offsets_mapping=True, **limits)
        (output,) = model.encode([question], output_value=None, show_progress_bar=False)
    states = output["token_embeddings"].cpu().numpy().astype(np.float64)
    whole = output["sentence_embedding"].cpu().numpy().astype(np.float64)
    places = offsets["offset_mapping"]
    if len(places) != len(states):
        return None
    each = np.zeros((len(spans), len(whole)))
    for row, (start, end) in enumerate(spans):
        inside = [place for place, (left, right) in enumerate(places) if start <= left < right <= end]
        if inside:  # none: beyond the longest text that the model reads
            each[row] = states[inside].mean(axis=0)
    return _unit(whole[None, :])[0], _unit(each)


def _unit(vectors: Floats) -> Floats:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths == 0, 1.0, lengths))

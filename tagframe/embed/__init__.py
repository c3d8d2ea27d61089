"""Embedders: text to vectors of length 1, for the dense half of retrieval.

The default model is all-MiniLM-L6-v2 (384 dimensions) on onnxruntime, from the package that has its files where that is
installed, else from the model hub.
"""

from tagframe.embed.choice import forget, get_embedder
from tagframe.embed.minilm import DEFAULT_MODEL, WITHOUT_A_HUB, MiniLM, packaged_folder
from tagframe.embed.protocol import ANONYMOUS, Embedder, Kind, TextVectors, encode_words, encoded, expect, vocabulary
from tagframe.embed.provider import EmbeddingModel, embeds_for, quoted_embeddings
from tagframe.embed.sentence_transformer import SentenceTransformerEmbedder

__all__ = [
    "ANONYMOUS",
    "DEFAULT_MODEL",
    "WITHOUT_A_HUB",
    "Embedder",
    "EmbeddingModel",
    "Kind",
    "MiniLM",
    "SentenceTransformerEmbedder",
    "TextVectors",
    "embeds_for",
    "encode_words",
    "encoded",
    "expect",
    "forget",
    "get_embedder",
    "packaged_folder",
    "quoted_embeddings",
    "vocabulary",
]

"""Tables to search and to join: their profiles, their vectors, and the catalogue that keeps both."""

from tagframe.corpus.corpus import Corpus, computed_of, under, vectors_of
from tagframe.corpus.opening import open_corpus, with_frame
from tagframe.corpus.profile import ColumnProfile, Sketch, TableProfile
from tagframe.corpus.tables_frame import corpus_of
from tagframe.corpus.vectors import CorpusVectors, corpus_vectors
from tagframe.engines.base import ForeignKey

__all__ = [
    "ColumnProfile",
    "Corpus",
    "CorpusVectors",
    "ForeignKey",
    "Sketch",
    "TableProfile",
    "computed_of",
    "corpus_of",
    "corpus_vectors",
    "open_corpus",
    "under",
    "vectors_of",
    "with_frame",
]

import bm25s
import numpy as np

from tagframe.retrieval.lexical import LexicalIndex, WordIndex
from tagframe.retrieval.words import terms


def test_identifiers_are_split_and_stemmed(schema):
    corpus = schema(**{"a.concertSingers": ["Id"], "a.orders": ["price"], "a.cities": ["name"]})
    scores = LexicalIndex(corpus.profiles).scores(terms("Which singer gave concerts?"))
    assert [profile.name for profile in corpus.profiles][int(scores.argmax())] == "concertSingers"
    assert np.count_nonzero(scores) == 1


def test_no_common_word_scores_zero(schema):
    index = LexicalIndex(schema(**{"a.b": ["c"]}).profiles)
    assert index.scores(terms("Where does the sun rise?")).tolist() == [0.0]


def test_names_without_words_are_no_error(schema):
    assert LexicalIndex(schema(**{"?.!": ["%"]}).profiles).scores(["anything"]).tolist() == [0.0]


def test_the_database_can_be_left_out(schema):
    profiles = schema(**{"music.t": ["x"], "sport.t": ["x"]}).profiles
    assert LexicalIndex(profiles).scores(["music"]).tolist()[1] == 0.0
    assert LexicalIndex(profiles, with_database=False).scores(["music"]).tolist() == [0.0, 0.0]


def test_scores_are_those_of_bm25s():
    documents = ["loan of a client".split(), "client of a bank of a town".split(), ["town"], [], ["loan", "loan", "x"]]
    other = bm25s.BM25(method="lucene")
    other.index(documents, create_empty_token=False, show_progress=False)
    index = WordIndex(documents)
    for asked in (["loan"], ["of", "town", "of"], ["client", "nothing", "x"]):
        expected = other.get_scores([word for word in asked if word in other.vocab_dict])
        np.testing.assert_allclose(index.scores(asked), expected, rtol=1e-6)


def test_the_words_that_a_document_has():
    index = WordIndex([["loan", "client"], [], ["client", "town"]])
    asked = ["town", "client", "nothing", "loan"]
    assert [index.words_of(position, asked) for position in range(3)] == [["client", "loan"], [], ["town", "client"]]

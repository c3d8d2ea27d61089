"""``retrieve_tables`` as a function, as a method of a corpus, and of a frame."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import tagframe as tf
from tagframe import retrieval
from tagframe.config import SearchSettings
from tagframe.errors import InvalidArgument, NotConfigured
from tagframe.lm import Quote

QUESTION = "Which films were screened in Porto?"


def test_three_ways_to_the_tables_of_a_question_give_the_same(festival: tf.Corpus):
    found = [
        festival.retrieve_tables(QUESTION, k=2, method="lexical"),
        tf.retrieve_tables(QUESTION, festival, k=2, method="lexical"),
        festival.tables.tag.retrieve_tables(QUESTION, k=2, method="lexical"),
    ]
    assert len({str(one) for one in found}) == 1
    with tf.context(corpus=festival):
        assert str(tf.retrieve_tables(QUESTION, k=2, method="lexical")) == str(found[0])
    with tf.context(corpus=None), pytest.raises(NotConfigured, match="no corpus"):
        tf.retrieve_tables(QUESTION)
    with pytest.raises(InvalidArgument, match="the question comes first"):
        tf.retrieve_tables(festival, QUESTION)  # type: ignore[call-overload]


def test_each_is_quoted_and_sends_nothing(festival: tf.Corpus, live):
    quotes = [
        festival.retrieve_tables(QUESTION, method="auto:look", quote=True),
        tf.retrieve_tables(QUESTION, festival, method="auto:look", quote=True),
        festival.tables.tag.retrieve_tables(QUESTION, method="auto:look", quote=True),
    ]
    assert [type(quote) for quote in quotes] == [Quote] * 3
    assert {quote.calls for quote in quotes} == {1}
    assert not live.requests


def test_a_mistyped_keyword_is_told_with_what_was_meant(festival: tf.Corpus):
    for retrieve in (festival.retrieve_tables, tf.retrieve_tables, festival.tables.tag.retrieve_tables):
        with pytest.raises(InvalidArgument, match=r"retrieve_tables has no keyword 'metod' in .*did you mean 'method'"):
            retrieve(QUESTION, metod="dense")
        with pytest.raises(InvalidArgument, match="did you mean 'embedder'"):
            retrieve(QUESTION, embeder=None)
    with pytest.raises(InvalidArgument, match=r"ask has no keyword 'row_per_call' in .*did you mean 'rows_per_call'"):
        tf.ask(QUESTION, festival, row_per_call=3)


def test_types_and_signatures_name_the_same_keywords():
    """Type checkers read RetrieveOptions, ``help`` and editors at run time the function itself."""
    named = {*retrieval.RetrieveOptions.__annotations__} - {*SearchSettings.__annotations__}
    own = {"question", "corpus", "anchor", "quote", "settings"}
    assert {*inspect.signature(retrieval.retrieve_tables).parameters} == named | own


@pytest.mark.slow
def test_a_method_loads_its_room_at_the_first_call():
    program = (
        "import sys, tagframe as tf, pandas as pd; corpus = tf.open_corpus({'t': pd.DataFrame({'a': [1]})});"
        "assert 'retrieve_tables' in dir(corpus); assert 'tagframe.retrieval' not in sys.modules;"
        "assert corpus.retrieve_tables('a', method='lexical').ids == ['frames.t']"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_part_of_a_corpus_is_searched_alone(festival: tf.Corpus):
    bakery = festival.subset(id for id in festival.ids if id.startswith("bakery"))
    assert {id.split(".")[0] for id in bakery.retrieve_tables(QUESTION, k=2, method="lexical").ids} == {"bakery"}

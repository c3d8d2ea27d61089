"""A method that is not in the library: given itself, or by the name under which it is registered."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

import tagframe as tf
from tagframe.cli import main
from tagframe.errors import InvalidArgument
from tagframe.retrieval import METHODS, Method, Selection, all_tables, among_candidates, by_words, register

QUESTION = "amount of each loan"


def last(problem, k):
    """The opposite of a ranking, so that no method of the library chooses the same."""
    return Selection(tuple(np.argsort(np.where(problem.anchor, np.inf, problem.r), kind="stable")[: problem.wanted(k)]))


LAST = Method("last", "takes the tables of lowest relevance", by_words, all_tables, last)


@pytest.fixture
def registered(own_names: None) -> None:
    register(LAST)


@pytest.fixture
def words(words):
    with tf.context(embedder=words):
        yield words


def test_a_method_itself_is_used_without_being_registered(bank, words):
    found = tf.retrieve_tables(QUESTION, bank, k=2, method=LAST)
    assert found.ids == ["bank.account", "bank.client"]  # loan, which the question names, would be last
    assert (found.method, [hit.score for hit in found]) == ("last", [0.0, 0.0])
    assert bank.retrieve_tables(QUESTION, k=2, method=LAST).ids == found.ids
    assert bank.tables.tag.retrieve_tables(QUESTION, k=2, method=LAST).ids == found.ids
    assert "last" not in METHODS
    beside = bank["bank.client"].tag.retrieve_tables(QUESTION, corpus=bank, k=2, method=LAST)
    assert [hit.id for hit in beside] == ["bank.account", "bank.disp"]


def test_a_registered_method_has_a_name_wherever_methods_have_one(bank, words, registered, live, tmp_path):
    assert register(LAST) is LAST
    assert tf.retrieve_tables(QUESTION, bank, k=2, method="last").ids == ["bank.account", "bank.client"]
    assert bank.tables.tag.retrieve_tables(QUESTION, k=1, method="last").ids == ["bank.account"]
    sql, said = "SELECT count(*) AS n FROM account", '{"text": "4", "values": [4]}'
    live.answers = lambda request: sql if "<tables>" in str(request.messages) else said
    assert tf.ask("How many?", bank, k=1, method="last").retrieved.ids == ["bank.account"]
    assert tf.ask("How many?", bank, k=1, method=LAST).retrieved.ids == ["bank.account"]
    for name in ("account", "loan"):
        bank[f"bank.{name}"].to_csv(tmp_path / f"{name}.csv", index=False)
    done = CliRunner().invoke(main, ["retrieve", str(tmp_path), QUESTION, "-k", "1", "--method", "last", "--json"])
    assert [hit["id"].split(".")[-1] for hit in json.loads(done.stdout)["tables"]] == ["account"]
    with pytest.raises(InvalidArgument, match="did you mean 'last'"):
        tf.retrieve_tables(QUESTION, bank, method="lats")


def test_a_second_method_of_a_name_replaces_the_first_but_none_of_ours(bank, words, registered):
    register(replace(LAST, select=lambda problem, k: Selection((1,))))
    assert tf.retrieve_tables(QUESTION, bank, k=1, method="last").ids == ["bank.client"]
    for name in ("greedy", "auto"):
        with pytest.raises(InvalidArgument, match=f"'{name}' is a method of tagframe's own; give yours another name"):
            register(replace(LAST, name=name))
    for wrong in (last, "last", replace(LAST, name=""), Method):
        with pytest.raises(InvalidArgument, match=r"a method is a tagframe\.retrieval\.Method with a name"):
            register(wrong)


@pytest.mark.parametrize(
    ("indices", "message"),
    [
        ((0, 0), "each table once"),
        ((-1,), r"positions 0 to 4.*it chose \(-1,\)"),
        ((5,), "positions 0 to 4"),
        ((0, 1, 2), "must choose 0 to 2"),
        ((3,), "without the anchor's"),
    ],
)
def test_a_choice_of_which_no_result_can_be_made_is_refused(bank, words, indices, message):
    wrong = replace(LAST, select=lambda problem, k: Selection(indices))
    with pytest.raises(InvalidArgument, match=message):
        tf.retrieve_tables(QUESTION, bank, k=2, anchor="bank.loan", method=wrong)


def test_what_is_no_choice_is_refused(bank, words):
    for wrong in ([0, 1], None):
        with pytest.raises(InvalidArgument, match=r"method 'last': select must return a Selection; got (\[0|None)"):
            tf.retrieve_tables(QUESTION, bank, k=2, method=replace(LAST, select=lambda problem, k, wrong=wrong: wrong))
    with pytest.raises(InvalidArgument, match=r"must choose 1 to 2 .*it chose \(\)"):
        tf.retrieve_tables(QUESTION, bank, k=2, method=replace(LAST, select=lambda problem, k: Selection(())))
    with pytest.raises(TypeError, match="integer"):
        tf.retrieve_tables(QUESTION, bank, k=2, method=replace(LAST, select=lambda problem, k: Selection((0.5,))))
    for given in (["greedy"], last, Method):
        with pytest.raises(InvalidArgument, match=r"method must be a method's name, or a tagframe\.retrieval\.Method"):
            tf.retrieve_tables(QUESTION, bank, k=2, method=given)


def test_scores_and_relevance_have_a_length_for_each_table(bank, words):
    with pytest.raises(InvalidArgument, match=r"score has the shape \(3,\); 1 tables need \(1,\)"):
        tf.retrieve_tables(
            QUESTION, bank, k=1, method=replace(LAST, select=lambda problem, k: Selection((0,), score=np.ones(3)))
        )
    short = replace(LAST, relevance=lambda index, question, lm: np.ones(2), prepare=among_candidates)
    with pytest.raises(InvalidArgument, match=r"method 'last': relevance must have the shape \(5,\); got \(2,\)"):
        tf.retrieve_tables(QUESTION, bank, k=1, method=short)

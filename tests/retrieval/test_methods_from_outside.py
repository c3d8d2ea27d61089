"""A method that is not in the library: given itself, or by the name under which it is registered."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

import numpy as np
import pytest
from click.testing import CliRunner

import tagframe as tf
from tag_bench.server import Request
from tagframe.cli import main
from tagframe.errors import InvalidArgument
from tagframe.retrieval import METHODS, Method, Selection, all_tables, by_words, method_named, register

QUESTION = "amount of each loan"


@dataclass(frozen=True)
class Last(Method):
    """The opposite of a ranking, so that no method of the library chooses the same."""

    name = "last"
    summary = "takes the tables of lowest relevance"

    skipped: int = 0

    def relevance(self, index, question, lm):
        return by_words(index, question)

    def prepare(self, index, question, relevance, anchored, k):
        return all_tables(index, question, relevance, anchored, k)

    def select(self, problem, k=None):
        order = np.argsort(np.where(problem.anchor, np.inf, problem.r), kind="stable")
        return Selection(tuple(order[self.skipped : self.skipped + problem.wanted(k)]))


LAST = Last()


def other(**methods):
    """The method with another step."""
    return type("Other", (Last,), methods)()


def choosing(indices, **more):
    return other(select=lambda self, problem, k=None: Selection(indices, **more))


@pytest.fixture
def registered(own_names: None) -> None:
    register(Last)


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
    assert register(Last) is Last
    assert tf.retrieve_tables(QUESTION, bank, k=2, method="last").ids == ["bank.account", "bank.client"]
    assert bank.tables.tag.retrieve_tables(QUESTION, k=1, method="last").ids == ["bank.account"]
    sql, said = "SELECT count(*) AS n FROM {}", '{"text": "4", "values": [4]}'

    def answer(request: Request) -> str:
        text = str(request.messages)
        return sql.format("account" if "account" in text else "client") if "<tables>" in text else said

    live.answers = answer
    for method, name in (("last", "account"), (LAST, "account"), (Last(skipped=1), "client")):
        found = bank.tables.tag.retrieve_tables(QUESTION, k=1, method=method)
        assert tf.ask("How many?", found).tables == found.ids == [f"bank.{name}"]
    for name in ("account", "loan"):
        bank[f"bank.{name}"].to_csv(tmp_path / f"{name}.csv", index=False)
    for text, table in (("last", "account"), ("last:skipped=1", "loan")):
        done = CliRunner().invoke(main, ["retrieve", str(tmp_path), QUESTION, "-k", "1", "--method", text, "--json"])
        assert [hit["id"].split(".")[-1] for hit in json.loads(done.stdout)["tables"]] == [table]
    with pytest.raises(InvalidArgument, match="did you mean 'last'"):
        tf.retrieve_tables(QUESTION, bank, method="lats")


def test_a_second_method_of_a_name_replaces_the_first_but_none_of_ours(bank, words, registered):
    register(type(choosing((1,))))
    assert tf.retrieve_tables(QUESTION, bank, k=1, method="last").ids == ["bank.client"]
    for name in ("jar", "auto"):
        with pytest.raises(InvalidArgument, match=f"'{name}' is a method of tagframe's own; give yours another name"):
            register(type(other(name=name)))
    for wrong in (LAST, "last", type(other(name="")), Method, np.argsort):
        with pytest.raises(InvalidArgument, match=r"a method is a subclass of tagframe\.retrieval\.Method with a name"):
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
    with pytest.raises(InvalidArgument, match=message):
        tf.retrieve_tables(QUESTION, bank, k=2, anchor="bank.loan", method=choosing(indices))


def test_what_is_no_choice_is_refused(bank, words):
    for wrong in ([0, 1], None):
        method = other(select=lambda self, problem, k=None, wrong=wrong: wrong)
        with pytest.raises(InvalidArgument, match=r"method 'last': select must return a Selection; got (\[0|None)"):
            tf.retrieve_tables(QUESTION, bank, k=2, method=method)
    with pytest.raises(InvalidArgument, match=r"must choose 1 to 2 .*it chose \(\)"):
        tf.retrieve_tables(QUESTION, bank, k=2, method=choosing(()))
    with pytest.raises(TypeError, match="integer"):
        tf.retrieve_tables(QUESTION, bank, k=2, method=choosing((0.5,)))
    for given in (["jar"], np.argsort, Method, Last):
        with pytest.raises(InvalidArgument, match=r"method must be a method's name, or one of tagframe\.methods"):
            tf.retrieve_tables(QUESTION, bank, k=2, method=given)


def test_scores_and_relevance_have_a_length_for_each_table(bank, words):
    with pytest.raises(InvalidArgument, match=r"score has the shape \(3,\); 1 tables need \(1,\)"):
        tf.retrieve_tables(QUESTION, bank, k=1, method=choosing((0,), score=np.ones(3)))
    short = other(relevance=lambda self, index, question, lm: np.ones(2))
    with pytest.raises(InvalidArgument, match=r"method 'last': relevance must have the shape \(5,\); got \(2,\)"):
        tf.retrieve_tables(QUESTION, bank, k=1, method=short)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("last:skiped=1", "method 'last' has no parameter 'skiped' in {'skipped'}; did you mean 'skipped'"),
        ("last:skipped=one", "method 'last': skipped cannot be 'one'"),
        ("last:skipped", "method 'last': skipped cannot be ''"),
        ("jar:coarse=3", "method 'jar': coarse cannot be '3'"),
        ("jar:as_printed=yes", "method 'jar': as_printed cannot be 'yes'"),
        ("auto:confidence=90", "confidence must be a probability between 0 and 1, such as 0.9; got 90.0"),
    ],
)
def test_a_parameter_that_a_text_gets_wrong_is_named(registered, text, message):
    with pytest.raises(InvalidArgument, match=re.escape(message)):
        method_named(text)


def test_parameters_as_text(registered):
    assert method_named("last:skipped=2") == Last(skipped=2)
    assert method_named("jar: variant=D, as_printed") == tf.methods.JAR(variant="D", as_printed=True)
    assert method_named("jar:as_printed=false,omega=code") == tf.methods.JAR(omega="code")
    assert method_named("auto:confidence=.8,look=true") == tf.methods.Auto(confidence=0.8, look=True)
    assert [method_named(name) for name in METHODS] == [method() for method in METHODS.values()]

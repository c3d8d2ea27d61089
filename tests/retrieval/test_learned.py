"""What statements that were run say of a question, beside the rest of the evidence."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import tagframe as tf
from tagframe.corpus import vectors_of
from tagframe.corpus.corpus import statements_of
from tagframe.embed import get_embedder
from tagframe.errors import InvalidArgument, TableNotFound
from tagframe.retrieval.index import RetrievalIndex
from tagframe.retrieval.learned import SIGNALS, Known, known_of, set_signals
from tagframe.retrieval.problem import Examples

NAMES = [f"T{number:02d}" for number in range(16)]


@pytest.fixture
def warehouse() -> tf.Corpus:
    """Sixteen tables whose names say nothing."""
    return tf.open_corpus({f"w.{name}": pd.DataFrame({"K": [1, 2], f"{name}_V": [3, 4]}) for name in NAMES})


ASKED = {
    "How many parcels were returned?": "SELECT count(*) FROM T03 a JOIN T07 b ON a.K = b.K",
    "Which parcels came back broken?": "SELECT * FROM T03 a JOIN T07 b ON a.K = b.K WHERE a.T03_V = 1",
    "Who sent the most parcels?": "SELECT 1 FROM T03 a JOIN T11 b ON a.K = b.K",
    "List the drivers of a depot": "SELECT 1 FROM T05 a JOIN T09 b ON a.K = b.K",
    "Which drivers work at night?": "SELECT 2 FROM T05 a JOIN T09 b ON a.K = b.K",
    "How old are the drivers?": "SELECT 3 FROM T05",
}
QUESTION = "How many parcels were returned broken?"


def learn(corpus: tf.Corpus) -> tf.Corpus:
    corpus.learn(pd.DataFrame({"question": [*ASKED], "sql": [*ASKED.values()]}))
    return corpus


def test_what_was_learned_finds_tables_that_no_name_tells_of(warehouse: tf.Corpus):
    assert {"w.T03", "w.T07"} != {*warehouse.retrieve_tables(QUESTION, k=2).ids}
    found = learn(warehouse).retrieve_tables(QUESTION, k=2)
    assert {*found.ids} == {"w.T03", "w.T07"}
    assert {*warehouse.retrieve_tables("Which drivers are old?", k=2).ids} == {"w.T05", "w.T09"}


@pytest.mark.slow
def test_without_examples_nothing_is_different(warehouse: tf.Corpus):
    def told() -> list[object]:
        return [warehouse.retrieve_tables(question, k=k).to_dict() for question in ASKED for k in (1, 3, None)]

    before = told()
    assert warehouse.learn("SELECT * FROM elsewhere; SELECT * FROM nowhere").learned == 0
    assert told() == before
    learn(warehouse)
    assert told() != before
    assert warehouse.forget() == len(ASKED)
    assert told() == before


def test_signals_by_hand(warehouse: tf.Corpus):
    learn(warehouse)
    index = RetrievalIndex(warehouse, get_embedder())
    known = known_of(index, statements_of(warehouse), vectors_of(warehouse))
    assert known is not None
    at = {name: index.position(f"w.{name}") for name in NAMES}
    usage = dict.fromkeys(NAMES, 0) | {"T03": 3, "T05": 3, "T07": 2, "T09": 2, "T11": 1}
    assert [known.usage[at[name]] for name in NAMES] == [*usage.values()]
    prior = np.full(len(NAMES), -50.0)
    prior[at["T03"]] = 0.0
    signals = known.signals(None, prior, np.eye(len(SIGNALS))[0])
    together = dict(zip(NAMES, signals[[at[name] for name in NAMES], SIGNALS.index("together")], strict=True))
    assert together["T07"] == pytest.approx(2 / 4)  # T03 is read by three statements, with T07 by two
    assert together["T11"] == pytest.approx(1 / 4)
    assert together["T03"] == pytest.approx(0, abs=1e-9)
    assert 0 < known.trust < 1
    left = known.without(n for n, one in enumerate(statements_of(warehouse)) if "w.T07" in one.tables)
    assert left.usage[at["T03"]] == 1
    assert left.trust == known.trust
    assert len(left.questions) == len(left.vectors) == 4


@pytest.mark.slow
def test_few_statements_over_one_table_speak_against_no_other(festival: tf.Corpus):
    corpus = tf.open_corpus({id: festival[id] for id in festival.ids})
    question = "Which directors from Portugal made films?"

    def sure() -> set[str]:
        return {hit.id for hit in corpus.retrieve_tables(question) if not hit.doubtful}

    before = sure()
    assert before == {"festival.directors", "festival.films"}
    for table in corpus.profiles:
        for count in range(3):
            corpus.learn(f"SELECT {', '.join(column.name for column in table.columns[: count + 1])} FROM {table.name}")
            assert sure() == before, (table.id, count)
        corpus.forget()


@pytest.mark.slow
def test_a_log_of_one_department_lowers_no_table_of_another_one():
    sales = {"customer": ["customer_id", "surname"], "invoice": ["invoice_id", "customer_id", "total"]}
    staff = {"employee": ["employee_id", "salary"], "contract": ["contract_id", "employee_id", "signed_on"]}
    more = {
        f"{name}_note": [f"{name}_note_id", "words"] for name in "truck depot crane dock mill pump valve lamp".split()
    }
    tables = {**sales, **staff, **more, **{f"{name}_old": columns for name, columns in sales.items()}}
    corpus = tf.open_corpus({f"w.{name}": pd.DataFrame(columns=columns) for name, columns in tables.items()})
    questions = [
        "How much do workers earn?",
        "Whose agreement was signed in May?",
        "Which employees were hired this year?",
    ]
    before = [{*corpus.retrieve_tables(question, k=2).ids} for question in questions]
    assert before == [{"w.employee", "w.contract"}] * 3
    for number in range(30):
        corpus.learn(f"SELECT {number} FROM invoice JOIN customer USING (customer_id)")
    assert [{*corpus.retrieve_tables(question, k=2).ids} for question in questions] == before
    assert {*corpus.retrieve_tables("Which customer has the largest total?", k=2).ids} == {"w.customer", "w.invoice"}


def test_what_few_statements_count_by_hand():
    apt = np.zeros(3)
    known = Known(np.array([[0, 1], [1, 1], [2, 0]]), 3, np.ones(4), np.zeros(0, dtype=np.intp), np.zeros((0, 0)))
    assert known.shares(np.zeros(2), 1.0, None, apt) == [1, 1]  # the fourth statement reads none of these tables
    assert known.shares(np.array([2.0, 9.0]), 1.0, None, apt) == [3 / 5, 3 / 12]
    assert known.shares(np.array([2.0, 9.0]), 0.0, None, apt) == [3 / 5, 1]
    assert known.shares(np.zeros(2), 1.0, None, np.array([0, -10, 0.0])) == [1, 1]
    assert known.shares(np.zeros(2), 1.0, None, np.array([-20.0, -20, 0]))[1] < 1e-6  # they read the first two only
    left = known.without([0])
    assert left.shares(np.array([2.0, 9.0]), 1.0, np.ones(3), apt) == [2 / 4, 2 / 11]  # none has a question
    sizes = set_signals(np.zeros(2), np.zeros(3), known.examples(None, (0.5, 1.0)), np.array([[1, 1, 0], [1, 1, 1]]))
    assert sizes[:, 2].tolist() == [1, 1.5]


@pytest.mark.slow
def test_a_log_of_one_department_says_nothing_of_questions_of_another_kind():
    corpus = tf.open_corpus(schema={name: ["K", f"{name}_V"] for name in NAMES} | {"STAFF": ["K", "SALARY", "HIRED"]})
    question = "Which staff got a salary before 2020?"
    before = corpus.retrieve_tables(question)
    ends = "returned broken lost late insured heavy frozen weighed delivered stored".split()
    asked = {f"How many parcels were {end}?": f"SELECT 1 AS {end} FROM T03 a JOIN T07 b ON a.K = b.K" for end in ends}
    corpus.learn(pd.DataFrame({"question": [*asked], "sql": [*asked.values()]}))
    assert corpus.retrieve_tables(question).ids == before.ids
    assert {"schema.T03", "schema.T07"} < {*corpus.retrieve_tables("How many parcels were opened?", k=3).ids}


def test_how_far_a_question_is_of_the_kind_of_the_examples_by_hand():
    def vector(shared: float, own: int) -> np.ndarray:
        return shared * np.eye(12)[0] + np.sqrt(1 - shared**2) * np.eye(12)[own]

    vectors = np.array([*(vector(0.5, own) for own in range(1, 10)), vector(0.2, 10)])
    members = np.array([[row, 0] for row in range(20)])
    known = Known(members, 1, np.ones(20), np.arange(10), vectors)
    assert known.nearness == pytest.approx([0.1, *[0.25] * 9])
    assert known.of_its_kind(vector(0.4, 11)) == 1  # one of ten is less like the others
    assert known.of_its_kind(vector(0.1, 11)) == 0.5  # none is; half of the statements have no question
    assert known.of_its_kind(None) == 1
    assert known.shares(np.zeros(2), 1.0, vector(0.1, 11), np.zeros(1)) == [1, 0.5]
    assert known.without([0]).of_its_kind(vector(0.1, 11)) == 1  # of fewer than ten nothing is concluded
    alike = replace(known, vectors=np.array([vector(0.9, own) for own in range(1, 11)]))
    assert alike.of_its_kind(vector(0.7, 11)) == 1  # 0.63, where the examples have 0.81
    assert alike.of_its_kind(vector(0.6, 11)) == 0.5


def test_sets_are_compared_with_the_tables_of_examples():
    examples = Examples(
        np.array([[True, True, False], [False, True, False]]), np.array([2.0, 2.0]), np.array([0.6, 0.4])
    )
    members = np.array([[1, 1, 0], [0, 1, 0], [0, 0, 1]], dtype=float)
    found = set_signals(np.zeros(3), np.array([1.0, 2.0, 4.0]), examples, members)
    assert found[:, 1].tolist() == [3, 2, 4]
    assert found[:, 2].tolist() == [2, 1, 1]
    assert found[:, 3] == pytest.approx([0.6 + 0.4 / 3, 0.6 / 2 + 0.4 / 2, 0])
    assert found[:, 4] == pytest.approx([0.6, 0, 0])


def test_questions_that_tell_nothing_of_tables_are_not_trusted(warehouse: tf.Corpus):
    """Statements that were shuffled among the questions."""
    questions = [*ASKED] * 4
    statements = [f"SELECT {n} FROM {NAMES[(7 * n) % 16]} a JOIN {NAMES[(5 * n + 3) % 16]} b ON 1" for n in range(24)]
    warehouse.learn(pd.DataFrame({"question": [f"{one} {n}" for n, one in enumerate(questions)], "sql": statements}))
    index = RetrievalIndex(warehouse, get_embedder())
    known = known_of(index, statements_of(warehouse), vectors_of(warehouse))
    assert known is not None
    assert known.trust < 0.1
    assert known.examples(known.vectors[0]).like == pytest.approx(known.trust)


def test_a_question_is_as_like_its_examples_as_it_is_near_and_they_tell_of_each_other(warehouse: tf.Corpus):
    learn(warehouse)
    index = RetrievalIndex(warehouse, get_embedder())
    known = known_of(index, statements_of(warehouse), vectors_of(warehouse))
    assert known is not None
    far = np.zeros(known.vectors.shape[1])
    half = known.vectors[0] / 2
    assert [known.examples(vector).like for vector in (None, far, -half)] == [0, 0, 0]
    nearest = float((known.vectors @ half).max())
    assert known.examples(half).like == pytest.approx(known.trust * nearest**4)
    assert known.examples(half, (0.5, 0.1)).like == pytest.approx(known.trust * nearest**4 / 16)
    warehouse.forget()
    warehouse.learn("How many parcels were returned?", ASKED["How many parcels were returned?"])
    one = known_of(index, statements_of(warehouse), vectors_of(warehouse))
    assert one is not None
    assert one.examples(one.vectors[0]).like == 0  # one statement alone tells of no other


def test_what_a_person_says_of_a_question_is_given_when_it_is_asked_again(warehouse: tf.Corpus):
    found = warehouse.retrieve_tables(QUESTION)
    found.correct(tables=["T01", "w.T14", "T02"])
    for corpus in (warehouse, learn(warehouse)):
        again = corpus.retrieve_tables(f"  {QUESTION.upper().rstrip('?')} !")
        assert {*again.ids} == {"w.T01", "w.T02", "w.T14"}
        assert again.confidence is not None
        assert again.confidence > 0.99
        assert {*corpus.retrieve_tables(QUESTION, k=5).ids} > {*again.ids}
    found.correct(tables=["T06"])
    assert warehouse.retrieve_tables(QUESTION).ids == ["w.T06"]
    assert warehouse.learned.learned_by.tolist().count("user") == 1
    assert warehouse.forget(QUESTION) == 1
    for none in ([], None, 3):
        with pytest.raises(InvalidArgument, match=re.escape(f"got {none!r}")):
            found.correct(tables=none)  # type: ignore[arg-type]
    with pytest.raises(TableNotFound):
        found.correct(tables=["T99"])

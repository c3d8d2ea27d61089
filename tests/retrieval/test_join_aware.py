"""The papers' methods in their own form and in ours."""

import re
import sqlite3

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import tagframe as tf
from tagframe.cli import main
from tagframe.errors import InvalidArgument
from tagframe.retrieval import METHODS, GreedyWeights, JarWeights, method_named, retrieve_tables
from tagframe.retrieval.index import index_of
from tagframe.retrieval.methods import JAR, MIP, IterativeJAR
from tagframe.retrieval.methods.jar import exact, joinable
from tagframe.retrieval.methods.join_aware import JoinAware
from tagframe.retrieval.question import Question

QUESTION = "What is the gender of the clients who have a loan?"
FORMED = {name: method for name, method in METHODS.items() if issubclass(method, JoinAware)}


def prepared(index, method, question=QUESTION, k=None):
    asked = Question.of(question)
    return method.prepare(index, asked, method.relevance(index, asked, None), None, k)


@pytest.fixture
def declared(tmp_path):
    """Two tables whose names say nothing of the key that joins them, and a third one."""
    path = tmp_path / "shop.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE maker (nr INTEGER PRIMARY KEY, label TEXT)")
        db.execute("CREATE TABLE part (id INTEGER PRIMARY KEY, origin INTEGER REFERENCES maker (nr))")
        db.execute("CREATE TABLE place (zip TEXT, town TEXT)")
        db.executemany("INSERT INTO maker VALUES (?, ?)", [(90, "A"), (91, "B"), (92, "C")])
        db.executemany("INSERT INTO part VALUES (?, ?)", [(1, 90), (2, 90)])
    db.close()
    return tf.open_corpus(path)


@pytest.mark.slow
@pytest.mark.parametrize("method", FORMED)
def test_as_printed_is_cosine_alone_omega_alone_and_the_best_candidates_alone(schema, words, method):
    names = [one + other + "on" for one in "bdfgklmn" for other in "aeiou"]
    pairs = zip(names, [*names[1:], names[0]], strict=True)
    tables = {f"db.{name}": ["id", f"x{name}", f"{after} id"] for name, after in pairs}
    index = index_of(schema(**tables), words)
    ours = prepared(index, FORMED[method]())
    printed = prepared(index, FORMED[method](as_printed=True))
    cosine = index.dense(QUESTION)
    assert len(ours.tables) > len(printed.tables) == 20
    assert np.allclose(printed.problem.r, cosine[list(printed.tables)])
    assert np.sort(printed.problem.r).tolist() == pytest.approx(np.sort(cosine)[-20:].tolist())
    problem = printed.problem.reduce() if method == "mip" else printed.problem
    assert np.array_equal(problem.omega, index.joinability_in("text", False).matrix(printed.tables))
    assert not problem.link.any()
    assert len(prepared(index, FORMED[method](as_printed=True, weights="fiben")).tables) == 30
    assert len(prepared(index, FORMED[method](as_printed=True, candidates=7)).tables) == 7
    assert len(prepared(index, FORMED[method](as_printed=True, candidates=7), k=9).tables) == 9


@pytest.mark.parametrize("form", [{}, {"as_printed": True}, {"omega": "code"}, {"variant": "F", "weights": "spider"}])
def test_exact_and_mip_are_one_problem(bank, declared, words, form):
    for corpus, question in ((bank, QUESTION), (declared, "makers of parts")):
        index = index_of(corpus, words)
        by_table = prepared(index, JAR(**form), question)
        by_column = prepared(index, MIP(**form), question)
        assert by_table.tables == by_column.tables
        weights = weights_of(JAR(**form))
        reduced = by_column.problem.reduce()
        assert np.array_equal(joinable(by_table.problem, weights), reduced.omega)
        assert np.array_equal(by_table.problem.fine, reduced.fine)
        assert np.array_equal(by_table.problem.r, reduced.r)


@pytest.mark.slow
@pytest.mark.parametrize("form", [{}, {"as_printed": True}, {"variant": "D"}])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_exact_and_mip_have_one_objective(bank, words, form, k):
    pytest.importorskip("mip")
    index = index_of(bank, words)
    values = [method(**form).select(prepared(index, method(**form)).problem, k).objective for method in (JAR, MIP)]
    assert values[0] == pytest.approx(values[1], abs=1e-6)


@pytest.mark.slow
def test_the_solver_falls_back_on_the_same_objective(bank, words, monkeypatch):
    pytest.importorskip("mip")
    index = index_of(bank, words)
    problem = prepared(index, MIP()).problem
    hurried = MIP(seconds=1e-9).select(problem, 2)
    assert "exact" in hurried.note
    assert hurried.objective == pytest.approx(exact(problem.reduce(), 2).objective)


def test_variants_say_which_joins_count(declared, words):
    index = index_of(declared, words)
    maker, part = (index.position(f"shop.{name}") for name in ("maker", "part"))

    def problem(**form):
        return prepared(index, JAR(**form)).problem

    for printed in (False, True):
        assert problem(variant="G", as_printed=printed).omega[maker, part] == 1
        assert problem(variant="F", as_printed=printed).omega[maker, part] < 0.7
    assert problem().omega[maker, part] == problem().link[maker, part] == 1
    assert problem(variant="F").link[maker, part] < 1
    assert problem(as_printed=True).omega[maker, part] < 0.7
    # D chooses by relevance alone, although the two tables do not join.
    by_relevance = JAR(subqueries=["part:id", "place:town"], variant="D", as_printed=True)
    alone = retrieve_tables("part and place", declared, k=2, method=by_relevance, embedder=words)
    assert set(alone.ids) == {"shop.part", "shop.place"}


@pytest.mark.parametrize("method", FORMED)
def test_the_note_names_the_form(declared, words, method):
    if method == "mip":
        pytest.importorskip("mip", reason="the mip extra is not installed")

    def note_of(**form):
        return retrieve_tables("part", declared, k=2, method=FORMED[method](**form), embedder=words).note

    assert note_of() == "variant G: declared keys have an ω of 1"
    note = note_of(as_printed=True, weights="spider", omega="code")
    assert note.startswith("as printed: variant F, ω 'code', weights 'spider' (")
    assert note.endswith("20 candidates")
    assert ("coverage 8, join 1, coarse 10" in note) == (method != "iterative-jar")
    note = note_of(variant="D")
    assert note.startswith("not as printed: variant D, ω 'ours', weights 'ours'")


def test_without_an_embedder_the_note_says_what_stands_for_the_cosine(bank, monkeypatch):
    monkeypatch.setattr("tagframe.retrieval.retrieve.get_embedder", lambda: None)
    found = retrieve_tables("amount of each loan", bank, k=1, method=IterativeJAR(as_printed=True))
    assert found.ids == ["bank.loan"]
    assert "BM25 in place of the cosine" in found.note


def weights_of(method):
    values = {**method.parameters["weights"]}
    del values["name"]
    return (GreedyWeights if isinstance(method, IterativeJAR) else JarWeights)(**values)


def test_weights_by_name_and_of_ones_own(bank, words):
    printed = JarWeights(3, 8, 1, 3, 0)
    assert weights_of(JAR(as_printed=True)) == weights_of(MIP(as_printed=True, weights="bird")) == printed
    assert weights_of(JAR(as_printed=True, weights="spider")) == JarWeights(2, 8, 1, 10, 0)
    assert weights_of(JAR(weights="spider")) == JarWeights(2, 8, 1, 10, 0.5)
    theirs = GreedyWeights(coverage=2, join=1, coarse=4, link_share=0)
    assert weights_of(IterativeJAR(as_printed=True, weights="fiben")) == theirs
    assert weights_of(IterativeJAR(as_printed=True, variant="D")).join == 0
    own = JarWeights(1, 2, 3, 4)
    assert weights_of(JAR(weights=own)) == own
    assert weights_of(method_named("jar:as_printed,weights=2/8/1/10")) == JarWeights(2, 8, 1, 10, 0)
    assert weights_of(method_named("iterative-jar:weights=0/.5/0")) == GreedyWeights(0, 0.5, 0, 0.5)
    method = IterativeJAR(as_printed=True, weights=GreedyWeights(0, 0, 1, 0))
    by_coarse = retrieve_tables("loan", bank, k=1, method=method, embedder=words)
    assert by_coarse.tables[0].score == pytest.approx(index_of(bank, words).dense("loan").max())


def test_iterative_jar_stops_where_all_is_covered(bank, words):
    def of(**parameters):
        method = IterativeJAR(subqueries=["loan:amount"], **parameters)
        return retrieve_tables("amount", bank, k=4, method=method, embedder=words)

    assert len(of()) == 4
    found = of(covered_at=0.9)
    assert found.ids == ["bank.loan"]
    assert "stops at a coverage of 0.9" in found.note


@pytest.mark.parametrize(
    ("method", "given", "message"),
    [
        (IterativeJAR, {"covered_at": 50}, "covered_at must be a cosine"),
        (IterativeJAR, {"covered_at": float("nan")}, "covered_at must be a cosine"),
        (JAR, {"variant": "H"}, "variant must be one of 'D', 'F', 'G'; got 'H'"),
        (JAR, {"omega": "paper"}, "omega must be one of 'text', 'code'"),
        (JAR, {"candidates": 0}, "candidates must be a number of tables"),
        (JAR, {"candidates": True}, "candidates must be a number of tables"),
        (JAR, {"weights": "beaver"}, "weights must be 'spider', 'bird', 'fiben', fine/coverage/join/coarse as numbers"),
        (JAR, {"weights": "2/8/1"}, "fine/coverage/join/coarse as numbers, or a JarWeights; got '2/8/1'"),
        (IterativeJAR, {"weights": "2/1/x"}, "coverage/join/coarse as numbers"),
        (IterativeJAR, {"weights": "2/1/nan"}, "weights must be finite"),
        (JAR, {"weights": GreedyWeights()}, "or a JarWeights; got GreedyWeights"),
        (JAR, {"subqueries": "loan"}, "subqueries must be a list, such as ['loan'], or \"model\"; got 'loan'"),
        (IterativeJAR, {"weights": (2, 1, 4)}, "or a GreedyWeights; got"),
        (IterativeJAR, {"weights": np.ones(3)}, "or a GreedyWeights; got"),
        (JAR, {"weights": JarWeights(join=-1.0)}, "weights must be finite and not negative"),
        (JAR, {"weights": JarWeights(coarse=float("inf"))}, "weights must be finite and not negative"),
        (IterativeJAR, {"weights": GreedyWeights(link_share=2)}, "link_share at most 1"),
        (IterativeJAR, {"as_printed": True, "weights": GreedyWeights()}, "give weights with link_share=0, not 0.5"),
        (MIP, {"seconds": 0}, "seconds must be a time above 0, such as 60; got 0"),
        (MIP, {"seconds": "60"}, "seconds must be a time above 0"),
    ],
)
def test_a_parameter_out_of_range_is_refused_with_what_it_takes(method, given, message):
    with pytest.raises(InvalidArgument, match=re.escape(message)):
        method(**given)


def test_every_way_in_takes_the_form(bank, words, tmp_path):
    with tf.context(embedder=words):
        options = {"k": 2, "method": JAR(as_printed=True)}
        notes = [
            bank.retrieve_tables(QUESTION, **options).note,
            bank.tables.tag.retrieve_tables(QUESTION, **options).note,
            pd.DataFrame({"loan_id": [1]}).tag.retrieve_tables(QUESTION, corpus=bank, **options).note,
            bank.retrieve_tables(QUESTION, k=2, method="jar:as_printed").note,
        ]
    assert all(note.startswith("as printed: variant F") for note in notes)
    pd.DataFrame({"loan_id": [1, 2], "amount": [5, 6]}).to_csv(tmp_path / "loan.csv", index=False)
    method = "iterative-jar:as_printed,weights=bird,covered_at=.99"
    arguments = ["retrieve", str(tmp_path), "amount of loans", "-k", "1", "--method", method]
    shell = CliRunner().invoke(main, arguments)
    assert shell.exit_code == 0, shell.output
    assert "as printed: variant F" in " ".join(shell.output.split())

"""The papers' methods in their own form and in ours."""

import sqlite3

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import tagframe as tf
from tagframe.cli import main
from tagframe.errors import InvalidArgument
from tagframe.retrieval import METHODS, GreedyWeights, JarWeights, retrieve_tables
from tagframe.retrieval.form import Form
from tagframe.retrieval.index import index_of
from tagframe.retrieval.methods.exact import exact, joinable
from tagframe.retrieval.question import Question
from tagframe.retrieval.retrieve import in_form

QUESTION = "What is the gender of the clients who have a loan?"
FORMED = [name for name, method in METHODS.items() if method.form is not None]


def prepared(index, method, form, question=QUESTION, k=None):
    return in_form(METHODS[method], form).prepared(index, Question.of(question), k=k)


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


def test_three_methods_have_a_printed_form():
    assert FORMED == ["greedy", "exact", "mip"]


@pytest.mark.slow
@pytest.mark.parametrize("method", FORMED)
def test_as_printed_is_cosine_alone_omega_alone_and_the_best_candidates_alone(schema, words, method):
    tables = {f"db.t{number}": ["id", f"x{number}", f"t{(number + 1) % 40} id"] for number in range(40)}
    index = index_of(schema(**tables), words)
    ours = prepared(index, method, Form())
    printed = prepared(index, method, Form(as_printed=True))
    cosine = index.dense(QUESTION)
    assert len(ours.tables) > len(printed.tables) == 20
    assert np.allclose(printed.problem.r, cosine[list(printed.tables)])
    assert np.sort(printed.problem.r).tolist() == pytest.approx(np.sort(cosine)[-20:].tolist())
    problem = printed.problem.reduce() if method == "mip" else printed.problem
    assert np.array_equal(problem.omega, index.joinability_in("text", False).matrix(printed.tables))
    assert not problem.link.any()
    assert len(prepared(index, method, Form(as_printed=True, weights="fiben")).tables) == 30
    assert len(prepared(index, method, Form(as_printed=True, candidates=7)).tables) == 7
    assert len(prepared(index, method, Form(as_printed=True, candidates=7), k=9).tables) == 9


@pytest.mark.parametrize(
    "form", [Form(), Form(as_printed=True), Form(omega="code"), Form(variant="F", weights="spider")]
)
def test_exact_and_mip_are_one_problem(bank, declared, words, form):
    for corpus, question in ((bank, QUESTION), (declared, "makers of parts")):
        index = index_of(corpus, words)
        by_table = prepared(index, "exact", form, question)
        by_column = prepared(index, "mip", form, question)
        assert by_table.tables == by_column.tables
        weights = in_form(METHODS["exact"], form).select.keywords["weights"]
        reduced = by_column.problem.reduce()
        assert np.array_equal(joinable(by_table.problem, weights), reduced.omega)
        assert np.array_equal(by_table.problem.fine, reduced.fine)
        assert np.array_equal(by_table.problem.r, reduced.r)


@pytest.mark.slow
@pytest.mark.parametrize("form", [Form(), Form(as_printed=True), Form(variant="D")])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_exact_and_mip_have_one_objective(bank, words, form, k):
    pytest.importorskip("mip")
    index = index_of(bank, words)
    values = [
        in_form(METHODS[name], form).select(prepared(index, name, form).problem, k).objective
        for name in ("exact", "mip")
    ]
    assert values[0] == pytest.approx(values[1], abs=1e-6)


@pytest.mark.slow
def test_the_solver_falls_back_on_the_same_objective(bank, words, monkeypatch):
    pytest.importorskip("mip")
    index = index_of(bank, words)
    problem = prepared(index, "mip", Form()).problem
    hurried = in_form(METHODS["mip"], Form()).select(problem, 2, seconds=1e-9)
    assert "exact" in hurried.note
    assert hurried.objective == pytest.approx(exact(problem.reduce(), 2).objective)


def test_variants_say_which_joins_count(declared, words):
    index = index_of(declared, words)
    maker, part = (index.position(f"shop.{name}") for name in ("maker", "part"))

    def problem(**form):
        return prepared(index, "exact", Form(**form)).problem

    for printed in (False, True):
        assert problem(variant="G", as_printed=printed).omega[maker, part] == 1
        assert problem(variant="F", as_printed=printed).omega[maker, part] < 0.7
    assert problem().omega[maker, part] == problem().link[maker, part] == 1
    assert problem(variant="F").link[maker, part] < 1
    assert problem(as_printed=True).omega[maker, part] < 0.7
    # D chooses by relevance alone, although the two tables do not join.
    asked = {"decomposition": ["part:id", "place:town"], "embedder": words, "method": "exact", "k": 2}
    alone = retrieve_tables("part and place", declared, variant="D", as_printed=True, **asked)
    assert set(alone.ids) == {"shop.part", "shop.place"}


@pytest.mark.parametrize("method", FORMED)
def test_the_note_names_the_form(declared, words, method):
    if method == "mip":
        pytest.importorskip("mip", reason="the mip extra is not installed")
    ask = {"k": 2, "method": method, "embedder": words}
    assert retrieve_tables("part", declared, **ask).note == "variant G: declared keys have an ω of 1"
    note = retrieve_tables("part", declared, as_printed=True, weights="spider", omega="code", **ask).note
    assert note.startswith("as printed: variant F, ω 'code', weights 'spider' (")
    assert note.endswith("20 candidates")
    assert ("coverage 8, join 1, coarse 10" in note) == (method != "greedy")
    note = retrieve_tables("part", declared, variant="D", **ask).note
    assert note.startswith("not as printed: variant D, ω 'ours', weights 'ours'")


def test_without_an_embedder_the_note_says_what_stands_for_the_cosine(bank, monkeypatch):
    monkeypatch.setattr("tagframe.retrieval.retrieve.get_embedder", lambda: None)
    found = retrieve_tables("amount of each loan", bank, k=1, method="greedy", as_printed=True)
    assert found.ids == ["bank.loan"]
    assert "BM25 in place of the cosine" in found.note


def test_weights_by_name_and_of_ones_own(bank, words):
    def of(method, **form):
        return in_form(METHODS[method], Form(**form)).select.keywords["weights"]

    assert of("exact", as_printed=True) == of("mip", as_printed=True, weights="bird") == JarWeights(3, 8, 1, 3, 0)
    assert of("exact", as_printed=True, weights="spider") == JarWeights(2, 8, 1, 10, 0)
    assert of("exact", weights="spider") == JarWeights(2, 8, 1, 10, 0.5)
    assert of("greedy", as_printed=True, weights="fiben") == GreedyWeights(coverage=2, join=1, coarse=4, link_share=0)
    assert of("greedy", as_printed=True, variant="D").join == 0
    own = JarWeights(1, 2, 3, 4)
    assert of("exact", weights=own) is own
    ask = {"k": 1, "embedder": words, "as_printed": True}
    by_coarse = retrieve_tables("loan", bank, method="greedy", weights=GreedyWeights(0, 0, 1, 0), **ask)
    assert by_coarse.tables[0].score == pytest.approx(index_of(bank, words).dense("loan").max())


def test_greedy_stops_where_it_is_told_to(bank, words):
    ask = {"k": 4, "method": "greedy", "embedder": words, "decomposition": ["loan:amount"]}
    assert len(retrieve_tables("amount", bank, **ask)) == 4
    found = retrieve_tables("amount", bank, covered_at=0.9, **ask)
    assert found.ids == ["bank.loan"]
    assert "stops at a coverage of 0.9" in found.note


@pytest.mark.parametrize(
    ("method", "given", "message"),
    [
        ("auto", {"as_printed": True}, "'auto' takes no as_printed=; these methods do: 'greedy', 'exact', 'mip'"),
        ("murre", {"as_printed": True}, "'murre' takes no as_printed="),
        ("dense", {"variant": "G"}, "'dense' takes no variant="),
        ("exact", {"covered_at": 0.5}, "'exact' takes no covered_at="),
        ("greedy", {"covered_at": 50}, "covered_at must be a cosine"),
        ("greedy", {"covered_at": float("nan")}, "covered_at must be a cosine"),
        ("exact", {"variant": "H"}, "variant must be one of 'D', 'F', 'G'; got 'H'"),
        ("exact", {"omega": "paper"}, "omega must be one of 'text', 'code'"),
        ("exact", {"candidates": 0}, "candidates must be a number of tables"),
        ("exact", {"candidates": True}, "candidates must be a number of tables"),
        ("exact", {"weights": "beaver"}, "weights must be 'spider', 'bird', 'fiben' or a JarWeights; got 'beaver'"),
        ("exact", {"weights": GreedyWeights()}, "or a JarWeights; got GreedyWeights"),
        ("greedy", {"weights": (2, 1, 4)}, "or a GreedyWeights; got"),
        ("greedy", {"weights": np.ones(3)}, "or a GreedyWeights; got"),
        ("exact", {"weights": JarWeights(join=-1.0)}, "weights must be finite and not negative"),
        ("exact", {"weights": JarWeights(coarse=float("inf"))}, "weights must be finite and not negative"),
        ("greedy", {"weights": GreedyWeights(link_share=2)}, "link_share at most 1"),
        ("auto", {"covered_at": 0}, "'auto' takes no covered_at="),
        ("greedy", {"as_printed": True, "weights": GreedyWeights()}, "give weights with link_share=0, not 0.5"),
    ],
)
def test_what_a_method_does_not_take_is_refused_by_name(bank, words, method, given, message):
    with pytest.raises(InvalidArgument, match="^.*" + message.replace("(", r"\(").replace(".", r"\.")):
        retrieve_tables(QUESTION, bank, method=method, embedder=words, **given)


def test_every_way_in_takes_the_form(bank, words, tmp_path):
    with tf.context(embedder=words):
        asked = {"k": 2, "method": "exact", "as_printed": True}
        notes = [
            bank.retrieve_tables(QUESTION, **asked).note,
            bank.tables.tag.retrieve_tables(QUESTION, **asked).note,
            pd.DataFrame({"loan_id": [1]}).tag.retrieve_tables(QUESTION, corpus=bank, **asked).note,
        ]
    assert all(note.startswith("as printed: variant F") for note in notes)
    pd.DataFrame({"loan_id": [1, 2], "amount": [5, 6]}).to_csv(tmp_path / "loan.csv", index=False)
    arguments = ["retrieve", str(tmp_path), "amount of loans", "-k", "1", "--method", "greedy", "--as-printed"]
    shown = CliRunner().invoke(main, arguments)
    assert shown.exit_code == 0, shown.output
    assert "as printed: variant F" in " ".join(shown.output.split())

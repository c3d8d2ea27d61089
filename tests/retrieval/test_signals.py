from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import tagframe as tf
from tagframe.corpus import Corpus
from tagframe.retrieval.index import RetrievalIndex
from tagframe.retrieval.problem import FEW_TABLES, RowKind
from tagframe.retrieval.question import Question
from tagframe.retrieval.signals import FACTS, SIGNALS, gather, near_duplicates
from tagframe.retrieval.vocabulary import Vocabulary


@pytest.fixture
def index(bank, words):
    return RetrievalIndex(bank, words)


def signal(evidence, name):
    return evidence.signals[:, SIGNALS.index(name)]


def row(index, table):
    return [profile.id for profile in index.tables].index(table)


def test_names_found_in_cells_speak_for_their_tables(words):
    corpus = tf.open_corpus(
        {"a.city": pd.DataFrame({"name": ["Prague", "Brno"]}), "a.river": pd.DataFrame({"name": ["Elbe", "Oder"]})}
    )
    index = RetrievalIndex(corpus, words)
    evidence = gather(index, Question.of("How long is the Elbe?"))
    assert signal(evidence, "value").tolist() == [0.0, 1.0]
    assert evidence.rows[evidence.kind == RowKind.VALUE].tolist() == [[0.0, 1.0]]
    assert signal(gather(index, Question.of("tell of elbe")), "plain_value").tolist() == [0.0, 1.0]


def test_rare_words_of_names_count_more(schema):
    vocabulary = Vocabulary(schema(**{"a.x": ["id", "salary"], "a.y": ["id"], "a.z": ["id"]}).profiles)
    assert vocabulary.rarity["salary"] == 1.0
    assert vocabulary.rarity["id"] < 1.0
    matched, share = vocabulary.columns.matched([vocabulary.forms(word) for word in ("salary", "nothing")])
    assert matched.tolist() == [0.0, 1.0, 0.0, 0.0]
    assert share.tolist() == [0.0, 1.0, 0.0, 0.0]


def test_a_word_of_all_tables_names_says_nothing(schema):
    vocabulary = Vocabulary(schema(**{"a.towns_utf8": ["x"], "a.lakes_utf8": ["x"], "a.roads_utf8": ["x"]}).profiles)
    _, share = vocabulary.names.matched([vocabulary.forms("lake")])
    assert sorted(share.tolist()) == [0.0, 0.0, 1.0]


def test_words_of_other_languages_are_in_names_that_begin_alike(schema, words):
    tables = {"a.kandydaci_sejmiki": ["plec", "wiek"], "a.okregi_rady": ["liczba_kandydatow"], "a.listy": ["nazwa"]}
    index = RetrievalIndex(schema(**tables), words)
    assert [table.name for table in index.tables] == ["kandydaci_sejmiki", "listy", "okregi_rady"]
    named = [
        (signal(gather(index, Question.of(text)), "named") > 0).tolist()
        for text in ("Ilu kandydatów jest na listach?", "Ile kobiet kandyduje do sejmików?")
    ]
    assert named == [[False, False, True], [True, False, True]]
    assert not signal(gather(index, Question.of("Which kandyduje are there?")), "named").any()


def test_a_word_of_one_table_calls_it_in_a_small_corpus(schema, words):
    tables = {"a.colmenas_2019": ["municipio"], "a.frutales_2019": ["municipio"], "a.municipios": ["colmenas"]}
    called = [
        signal(gather(RetrievalIndex(schema(**tables, **more), words), Question.of("Colmenas de 2019")), "called")
        for more in ({}, {f"b.t{number}": ["x"] for number in range(FEW_TABLES)})
    ]
    assert called[0].tolist() == [1.0, 0.0, 0.0]
    assert not called[1].any()


@pytest.mark.parametrize(
    ("question", "called"),
    [
        ("points by constructor results", [1, 0, 0]),
        ("points by results", [0, 0, 1]),
        ("penalty minutes (PIM) and wins", [0, 1, 0]),
        ("pim", [0, 0, 0]),
    ],
)
def test_a_whole_name_or_a_column_as_written_calls_its_table(question, called, schema, words):
    tables = {"a.constructor_results": ["points"], "a.goals": ["PIM", "points"], "a.results": ["points"]}
    evidence = gather(RetrievalIndex(schema(**tables), words), Question.of(question))
    assert np.minimum(signal(evidence, "called"), 1).tolist() == called


def test_a_table_is_named_by_its_whole_name(index):
    evidence = gather(index, Question.of("the amount of a loan"))
    assert signal(evidence, "name_share")[row(index, "bank.loan")] == 1.0
    assert (
        signal(evidence, "column_name")[row(index, "bank.loan")]
        > signal(evidence, "column_name")[row(index, "bank.disp")]
    )


def test_keys_are_no_attributes(index):
    evidence = gather(index, Question.of("the account of each of them"))
    loan = row(index, "bank.loan")
    assert signal(evidence, "attribute_name")[loan] == 0.0
    assert signal(evidence, "column_name")[loan] > 0.0
    words, attributes = (evidence.rows[evidence.kind == kind] for kind in (RowKind.WORD, RowKind.ATTRIBUTE))
    assert words.shape == attributes.shape
    assert (attributes <= words + 1e-9).all()
    assert attributes[:, loan].sum() < words[:, loan].sum()


def test_relevant_neighbours_and_databases_lend(index):
    evidence = gather(index, Question.of("gender of clients and amount of loans"))
    disp, product = row(index, "bank.disp"), row(index, "shop.product")
    assert signal(evidence, "neighbour")[disp] > 0.0
    assert signal(evidence, "neighbour")[product] == 0.0
    assert signal(evidence, "database")[disp] > signal(evidence, "database")[product]
    assert signal(evidence, "database_top3")[disp] > signal(evidence, "database")[disp]


def test_given_sub_queries_are_covered_too(index):
    plain = gather(index, Question.of("Tell me of clients"))
    given = gather(index, Question.of("Tell me of clients").with_subqueries(["loan:amount"], "given"))
    assert (given.kind == RowKind.WORD).sum() == (plain.kind == RowKind.WORD).sum() + 1
    assert "loan:amount" in given.label


def test_weights_make_shares(index):
    evidence = gather(index, Question.of("the gender of clients with a loan"))
    of_names = evidence.kind == RowKind.NAME
    assert (evidence.weight[of_names] * evidence.rows[of_names].max(axis=1)).sum() == pytest.approx(1.0)
    assert evidence.weight[evidence.kind == RowKind.WORD].sum() == pytest.approx(1.0)


def test_without_an_embedder_the_dense_signals_are_zero(bank):
    evidence = gather(RetrievalIndex(bank, None), Question.of("amount of loans"))
    for name in ("dense", "column", "words", "attributes"):
        assert not signal(evidence, name).any()
    assert signal(evidence, "lexical").max() == 1.0


def test_near_duplicates_have_the_same_columns(schema, words):
    index = RetrievalIndex(schema(**{"a.x": ["id", "name"], "b.x": ["ID", "Name"], "c.y": ["id", "age", "sex"]}), words)
    alike = near_duplicates(index, [0, 1, 2])
    assert alike[0, 1] == 1.0
    assert alike[0, 2] == pytest.approx(0.25)
    assert not np.diag(alike).any()


def test_a_name_that_one_table_holds_is_told_apart():
    corpus = tf.open_corpus(
        {
            "f1.constructors": pd.DataFrame(
                {"id": [1, 2], "ref": ["ferrari", "mclaren"], "name": ["Ferrari", "McLaren"]}
            ),
            "f1.races": pd.DataFrame({"id": [7, 8], "circuit": ["Monza", "Monaco"]}),
            "f1.circuits": pd.DataFrame({"id": [3, 4], "location": ["Monza", "Circuit"]}),
        }
    )
    index = RetrievalIndex(corpus, None)
    position = {table.name: number for number, table in enumerate(index.tables)}

    def only(question):
        found = signal(gather(index, Question.of(question)), "only_value")
        return {name for name, number in position.items() if found[number]}

    assert only("How many points did Ferrari score?") == {"constructors"}
    assert only("Who won at Monza?") == set()  # two tables hold it
    assert only("How long is the Circuit?") == set()  # a name explains it


def test_what_a_database_covers_counts_for_its_tables(index):
    evidence = gather(index, Question.of("gender of clients and amount of loans"))
    disp, product = row(index, "bank.disp"), row(index, "shop.product")
    for name in ("database_words", "database_attributes", "database_named", "database_lexical"):
        assert signal(evidence, name)[disp] > signal(evidence, name)[product]
    assert signal(evidence, "named")[disp] < signal(evidence, "named")[row(index, "bank.client")]


def test_descriptions_are_searched(schema, words):
    corpus = schema(**{"a.x": ["st"], "a.y": ["ab"]})
    told = corpus.profiles[0]
    told = replace(told, columns=(replace(told.columns[0], description="postal code of the state"),))
    index = RetrievalIndex(Corpus([told, corpus.profiles[1]]), words)
    assert signal(gather(index, Question.of("Which postal code is it?")), "description").tolist() == [1.0, 0.0]


def test_a_page_of_prose_names_a_table_less_than_a_line_does(schema):
    corpus = schema(**{"a.t": ["id"], "a.u": ["id"], "a.v": ["id"]})
    corpus.describe("t", "heron and otter")
    corpus.describe("u", " ".join(f"word{letter}" for letter in "bcdefghijklmnopqrstuvwxyz") + " heron otter")
    found, _ = Vocabulary(corpus.profiles).names.matched([["heron"], ["otter"], ["v"]])
    assert found[0] > 2 * found[1] > 0
    assert found[2] == 1.0, "a name counts in full"


def test_what_stands_out_does_so_in_a_corpus_of_any_size(schema, words):
    def apart(others):
        tables = {f"a.t{number}": [f"c{number}"] for number in range(others)}
        index = RetrievalIndex(schema(**tables, **{"a.z": ["salary"]}), words)
        return signal(gather(index, Question.of("the salary")), "dense_apart")

    for others in (10, 200):
        assert apart(others).argmax() == others
        assert 2 < apart(others).max() <= 8


def test_what_many_columns_lead_to_expect_is_taken_off(schema, words):
    fillers = ["height", "colour", "price", "street", "river", "planet", "doctor", "music", "paper", "engine"]
    wide = {f"w{number}.t": fillers for number in range(3)}
    narrow = {f"n{number}.t": fillers[number + 2 : number + 3] for number in range(3)}
    index = RetrievalIndex(schema(**wide, **narrow, **{"z.t": ["salary"]}), words)
    evidence = gather(index, Question.of("height, colour and salary"))
    assert signal(evidence, "database_words").argmax() != row(index, "z.t")  # two words of three are in wide ones
    assert signal(evidence, "database_apart").argmax() == row(index, "z.t")
    found = gather(index, Question.of("the price"))
    for of, gap in (("database_words", 0.0), ("database_apart", 0.1)):
        scores = signal(found, of)
        assert scores[row(index, "n0.t")] >= scores[row(index, "w0.t")] + gap
    assert signal(evidence, "width")[row(index, "w0.t")] == pytest.approx(np.log(10))
    assert signal(evidence, "database_width")[row(index, "z.t")] == 0.0
    one = RetrievalIndex(schema(**{"a.x": ["salary"], "a.y": ["height"]}), words)
    assert not signal(gather(one, Question.of("the salary")), "database_apart").any()


def test_facts_say_how_well_the_best_fits(index):
    fitting = gather(index, Question.of("the gender of clients with a loan")).facts
    strange = gather(index, Question.of("the boiling point of helium")).facts
    assert tuple(fitting) == FACTS
    assert fitting["log_tables"] == strange["log_tables"] == pytest.approx(np.log(6))
    assert fitting["known"] > strange["known"] == 0.0
    assert fitting["least_word"] <= fitting["words"]
    assert fitting["database_named"] > strange["database_named"] == 0.0
    assert (fitting["length"], strange["length"]) == (3, 3)

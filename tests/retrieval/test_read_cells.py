import sqlite3
from contextlib import closing

import pandas as pd
import pytest

import tagframe as tf
from tagframe.retrieval.index import RetrievalIndex
from tagframe.retrieval.question import Question
from tagframe.retrieval.read_cells import names_of, read_hits
from tagframe.retrieval.retrieve import retrieve_tables

MANY = [f"Person {number}x" for number in range(20_000)]
TABLES = {
    "music.album": pd.DataFrame(
        {
            "album_id": range(3),
            "title": ["Iron Maiden Live (1985)", "Äpfel und Birnen", "Leave Us Leap"],
            "artist": ["Iron Maiden", "Jobim, ANTÔNIO Carlos", "Bjørn; Dave; Łukasz "],
        }
    ),
    "music.person": pd.DataFrame(
        {"person_id": range(20_003), "called": [*MANY, "Zoe Quick", "Bo Quick", "Hannah Müller"]}
    ),
    "music.venue": pd.DataFrame({"venue_id": [1, 2], "note": ["x " * 150 + "Metallica", "J."], "seats": [10, 20]}),
}


@pytest.fixture(scope="module", params=["frames", "sqlite", "parquet"])
def music(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sources") / "music"
    folder.mkdir()
    if request.param == "frames":
        return tf.open_corpus(TABLES)
    if request.param == "parquet":
        for id, frame in TABLES.items():
            frame.to_parquet(folder / f"{id.partition('.')[2]}.parquet")
        return tf.open_corpus(folder)
    with closing(sqlite3.connect(folder / "music.sqlite")) as db:
        for id, frame in TABLES.items():
            frame.to_sql(id.partition(".")[2], db, index=False)
    return tf.open_corpus(folder / "music.sqlite")


def found_in(corpus, question, words):
    """Words, table, column and cell of each value of a question."""
    index, asked = RetrievalIndex(corpus, words), Question.of(question)
    hits = read_hits(corpus, index, asked, index.values.hits(asked), range(len(index.tables)))
    return [
        (hit.text, index.tables[table].name, index.tables[table].columns[column].name, cell)
        for hit in hits
        for table, column, cell in zip(hit.tables, hit.columns, hit.cells or [""] * len(hit.tables), strict=True)
    ]


@pytest.mark.parametrize(
    ("question", "name", "place"),
    [
        ("songs on Iron Maiden Live", "Iron Maiden Live", ("album", "title", "Iron Maiden Live (1985)")),
        ("songs of Antonio Carlos Jobim", "Antonio Carlos Jobim", ("album", "artist", "Jobim, ANTÔNIO Carlos")),
        ("Who is Bjorn?", "Bjorn", ("album", "artist", "Bjørn; Dave; Łukasz ")),
        ("Lukasz's songs", "Lukasz", ("album", "artist", "Bjørn; Dave; Łukasz ")),
        ("the songs of Lukasz", "Lukasz", ("album", "artist", "Bjørn; Dave; Łukasz ")),
        ("the seats of Müller, Hannah", "Müller, Hannah", ("person", "called", "Hannah Müller")),
        ("the orders of Quick", "Quick", ("person", "called", "…Quick…")),
        ("songs by iron maiden", "iron maiden", ("album", "artist", "")),
        ("Who is Zoe Quick?", "Zoe Quick", ("person", "called", "")),
        ("Where is Hannah MÜLLER's home?", "Hannah MÜLLER", ("person", "called", "")),
        ("Who are Apfel Und Birnen?", "Apfel Und Birnen", ("album", "title", "Äpfel und Birnen")),
    ],
)
def test_a_name_is_found_in_parts_of_cells_otherwise_written_and_in_large_columns(music, words, question, name, place):
    found = found_in(music, question, words)
    assert found == [(name, *place)]


@pytest.mark.parametrize(
    "question",
    [
        "Who is Anna Quick?",  # one word of it is no name
        "Who is in the US?",  # too short for a part
        "What did Metallica play?",  # in a long text
        "Who is X, or J?",  # letters
        "Which Album is it?",  # a name of a table
        "who is zoe quick?",  # not written as a name
    ],
)
def test_what_is_no_name_in_cells_is_not_found(music, words, question):
    assert found_in(music, question, words) == []


def test_names_that_a_comma_parts_are_looked_for_alone_too(music, words):
    assert [hit[0] for hit in found_in(music, "songs of Dave, Hannah Müller and Bo", words)] == [
        "Dave",
        "Hannah Müller",
    ]


def test_cells_that_are_hidden_or_private_are_not_read(words):
    corpus = tf.open_corpus(TABLES)
    assert found_in(corpus, "songs of Antonio Carlos Jobim", words)
    corpus.private("album.artist")
    assert found_in(corpus, "songs of Antonio Carlos Jobim", words) == []
    corpus.private("album.artist", undo=True)
    assert found_in(corpus, "songs of Antonio Carlos Jobim", words)
    corpus = corpus.hide("album.artist")
    assert found_in(corpus, "songs of Antonio Carlos Jobim", words) == []


def test_nothing_fits_is_not_said_of_a_name_that_is_in_a_cell_after_all(music):
    assert "nothing here seems to fit" in retrieve_tables("Who is Zoe Slow?", music).note
    found = retrieve_tables("Who is Zoe Quick?", music)
    assert "nothing" not in found.note
    assert found[0].id == "music.person"
    assert found[0].cells == (("called", "Zoe Quick"),)
    found = retrieve_tables("Who is Antonio Carlos Jobim?", music)
    assert found[0].id == "music.album"
    assert found[0].cells == (("artist", "Jobim, ANTÔNIO Carlos"),)
    said = "'Jobim, ANTÔNIO Carlos' is in artist (for 'Antonio Carlos Jobim'), found in no other table"
    assert said in found[0].reasons
    hidden = retrieve_tables("Who is Antonio Carlos Jobim?", music.hide("album.artist"))
    assert not any("'Jobim" in reason for hit in hidden for reason in hit.reasons)


def test_a_source_that_is_gone_is_not_asked(tmp_path):
    TABLES["music.person"].to_csv(tmp_path / "person.csv", index=False)
    corpus = tf.open_corpus(tmp_path)
    assert len(corpus.profile("person").columns) == 2
    (tmp_path / "person.csv").unlink()
    assert "nothing here seems to fit" in retrieve_tables("Who is Zoe Quick?", corpus).note


def test_names_are_runs_of_words_that_are_written_so():
    def names(text):
        return names_of(Question.of(text))

    assert names("Who is the manager of Jane Peacock in Calgary?") == ["Jane Peacock", "Calgary"]
    assert names("Jane Peacock's customers, and Bo's") == ["Jane Peacock", "Bo"]
    assert names("songs of Chico Science & Nação Zumbi, or R.E.M.") == ["Chico Science & Nação Zumbi", "R.E.M"]
    assert names("in Calgary, Berlin and Rome") == ["Calgary, Berlin", "Rome"]
    assert names("Which Iron Maiden songs?") == ["Iron Maiden"]
    assert names('the title "it is so"') == ["it is so"]
    assert names("how many are there") == []

"""Descriptions of many tables at once, as others have written them down."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import tagframe as tf
from tagframe.errors import InvalidArgument, SourceNotFound
from tagframe.retrieval import Question
from tagframe.retrieval.index import RetrievalIndex
from tagframe.retrieval.refine import refine_prompt


@pytest.fixture
def corpus() -> tf.Corpus:
    orders = pd.DataFrame({"ID": [1, 2], "ST": [3, 1]})
    return tf.open_corpus(
        {"shop.T1": orders, "shop.T2": pd.DataFrame({"ID": [1]}), "farm.T2": pd.DataFrame({"ID": [1]})}
    )


def said(corpus: tf.Corpus) -> dict[str, str]:
    tables = {one.id: one.description for one in corpus.profiles}
    columns = {f"{one.id}.{column.name}": column.description for one in corpus.profiles for column in one.columns}
    return {name: text for name, text in {**tables, **columns}.items() if text}


def test_a_frame_and_a_csv_file(corpus: tf.Corpus, tmp_path: Path):
    frame = pd.DataFrame(
        {
            "Table": ["T1", "t1", "shop.T2", "T2", "T9", "T1"],
            "Column": [None, "st", "", "", "", "NO"],
            "Description": ["orders", "status,\n 3 = shipped", "lines", "which?", "nothing", "none"],
        }
    )
    told = corpus.describe(frame)
    assert (told.tables, told.columns, told.unknown) == (2, 1, ("T2", "T9", "T1.NO"))
    assert "3 not here: T2, T9, T1.NO" in str(told)
    assert said(corpus) == {"shop.T1": "orders", "shop.T1.ST": "status, 3 = shipped", "shop.T2": "lines"}
    frame.to_csv(tmp_path / "said.csv", index=False)
    assert corpus.describe(tmp_path / "said.csv") == told


def test_folders_as_bird_has_them(corpus: tf.Corpus, tmp_path: Path):
    folder = tmp_path / "shop" / "database_description"
    folder.mkdir(parents=True)
    text = "original_column_name,column_name,column_description,data_format,value_description\n"
    rows = 'ID ,,the order,integer,\nST,status,the state’s code,integer,"3: shipped\n1: open"\n'
    (folder / "T1.csv").write_bytes((text + rows).encode("cp1252"))
    (folder / "T2.csv").write_text(text + "ID,ID,,,\n", encoding="utf-8-sig")
    assert corpus.describe(tmp_path).columns == 2
    assert said(corpus) == {
        "shop.T1.ID": "the order",
        "shop.T1.ST": "status. the state’s code. 3: shipped 1: open",
    }


def test_a_schema_of_dbt(corpus: tf.Corpus, tmp_path: Path):
    (tmp_path / "schema.yml").write_text(
        "version: 2\nmodels:\n  - name: T1\n    description: orders\n    columns:\n"
        "      - {name: ST, description: state}\n"
        "      - name: ID\nsources:\n  - name: raw\n    tables:\n      - {name: farm.T2, description: stables}\n"
    )
    assert corpus.describe(tmp_path / "schema.yml").unknown == ()
    assert said(corpus) == {"shop.T1": "orders", "shop.T1.ST": "state", "farm.T2": "stables"}


def test_what_is_described_is_found_and_in_the_prompt_of_a_second_look(corpus: tf.Corpus):
    index = RetrievalIndex(corpus, None)
    plain = refine_prompt(index, Question.of("x y"), [0, 1, 2])
    corpus.describe(pd.DataFrame({"table": ["shop.T2"], "column": ["ID"], "description": ["number of the greenhouse"]}))
    assert corpus.retrieve_tables("Which greenhouse?", k=1).ids == ["shop.T2"]
    text = str(refine_prompt(RetrievalIndex(corpus, None), Question.of("x y"), [0, 1, 2]).messages[1].content)
    assert '"descriptions": {"ID": "number of the greenhouse"}' in text
    assert '"descriptions"' not in str(plain.messages[1].content)


def test_what_says_nothing_is_refused_by_name(corpus: tf.Corpus, tmp_path: Path):
    with pytest.raises(SourceNotFound, match="no file or folder"):
        corpus.describe(tmp_path / "none.csv")
    with pytest.raises(InvalidArgument, match="are read from"):
        corpus.describe(tmp_path)
    with pytest.raises(InvalidArgument, match="columns table, column and description"):
        corpus.describe(pd.DataFrame({"name": ["T1"]}))
    (tmp_path / "schema.yml").write_text("models: [")
    with pytest.raises(InvalidArgument, match="as YAML"):
        corpus.describe(tmp_path / "schema.yml")

"""Descriptions of many tables at once, as others have written them down."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import tagframe as tf
from tagframe.errors import InvalidArgument, SourceNotFound
from tagframe.retrieval import Question
from tagframe.retrieval.index import RetrievalIndex
from tagframe.retrieval.model_plan import plan_prompt


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
    assert "3 unknown or ambiguous: T2, T9, T1.NO" in str(told)
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


def test_dev_databases_as_they_are_unpacked(tmp_path: Path):
    corpus = tf.open_corpus({"shop.gas_stations": pd.DataFrame({"Chain ID": [1], "Enrollment (K-12)": [2]})})
    folder = tmp_path / "shop" / "database_description"
    folder.mkdir(parents=True)
    head = "original_column_name,column_name,column_description,data_format,value_description\n"
    (folder / "Gas Stations .csv").write_text(
        head + "ChainID ,chain,of petrol, and oil,integer,no,\nEnrollment (K12),pupils\ngone,gone column\n"
    )
    (folder / ".DS_Store").write_bytes(b"\0\1")
    (tmp_path / "__MACOSX" / "shop" / "database_description").mkdir(parents=True)
    (tmp_path / "__MACOSX" / "shop" / "database_description" / "._Gas Stations.csv").write_bytes(b"\0\5\x16\7")
    (tmp_path / "shop" / "rows.csv").write_text("a,b\n1,2\n")  # data
    told = corpus.describe(tmp_path)
    assert (told.columns, told.unknown, told.unread) == (2, ("shop.Gas Stations .gone",), ())
    assert said(corpus)["shop.gas_stations.Enrollment (K-12)"] == "pupils"


@pytest.mark.parametrize(
    "data",
    [
        b"table;column;description\nT1;ST;state, 3 = shipped\n",
        b"Table\tColumn\tDescription\nt1\tst\tstate, 3 = shipped\n",
        b"table, column, description\nT1, ST, state, 3 = shipped\n",
        b'\xef\xbb\xbf"TABLE","COLUMN","DESCRIPTION"\r\n"shop.t1","ST","state,\r\n3 = shipped"\r\n',
        'table,column,description,who\nwarehouse.shop.T1,ST,"state, 3 = shipped",Ann\n'.encode("utf-16"),
    ],
    ids=["semicolons", "tabs", "bare commas", "quoted lines", "of Excel"],
)
def test_ways_of_writing_csv(corpus: tf.Corpus, tmp_path: Path, data: bytes):
    (tmp_path / "said.csv").write_bytes(data)
    assert corpus.describe(tmp_path / "said.csv").unknown == ()
    assert said(corpus) == {"shop.T1.ST": "state, 3 = shipped"}


def test_what_nobody_sees_and_what_is_too_long_is_not_kept(corpus: tf.Corpus):
    corpus.describe("T1", "orders\n\x1b[31m \u202eof\U000e0041 \ud800 all " + "x" * 10_000_000)
    corpus.describe(pd.DataFrame({"table": ["T1"], "column": ["ST"], "description": ["وضعیت سفارش: ارسال\u200cشده"]}))
    told = said(corpus)
    assert told["shop.T1"].startswith("orders [31m of all xxx")
    assert (len(told["shop.T1"]), told["shop.T1"][-1]) == (500, "…")
    assert told["shop.T1.ST"] == "وضعیت سفارش: ارسال\u200cشده"
    with pytest.raises(InvalidArgument, match="two texts"):
        corpus.describe("T1", 3)  # type: ignore[call-overload]


def test_a_file_that_cannot_be_read_loses_none_of_the_others(corpus: tf.Corpus, tmp_path: Path):
    (tmp_path / "a.yml").write_text("models: [")
    (tmp_path / "b.yml").write_text("models: !!python/object/apply:os.getcwd []")
    (tmp_path / "c.yml").write_text("[" * 5_000 + "]" * 5_000)
    (tmp_path / "seed.csv").write_text("id,name\n1,Ann\n")
    (tmp_path / "said.csv").write_text("table,description\nT1,orders\n")
    told = corpus.describe(tmp_path)
    assert said(corpus) == {"shop.T1": "orders"}
    assert len(told.unread) == 4
    assert "4 not read" in str(told)
    assert "seed.csv has ['id', 'name']" in str(told)


def test_names_in_a_frame_that_are_no_text(tmp_path: Path):
    corpus = tf.open_corpus({"2019": pd.DataFrame({"1": [1], "2": [2]})})
    frame = pd.DataFrame({"table": [2019, None], "column": [1, 2], "description": [7, "lost"], "note": [[1], {}]})
    told = corpus.describe(frame.astype({"table": "Int64"}))
    assert (told.columns, told.unknown) == (1, (".2",))
    assert said(corpus) == {"frames.2019.1": "7"}


def test_a_project_of_dbt(corpus: tf.Corpus, tmp_path: Path):
    nodes = {
        "m": {"unique_id": "m", "resource_type": "model", "name": "orders", "alias": "T1", "description": "orders"},
        "s": {"unique_id": "s", "resource_type": "seed", "name": "lists", "description": ["x"]},
    }
    nodes["m"]["columns"] = {"ST": {"name": "ST", "description": "state, 3 = shipped"}}
    source = {"unique_id": "r", "resource_type": "source", "source_name": "raw", "name": "t", "identifier": "T2"}
    source |= {"schema": "farm", "description": "stables"}
    manifest = {"metadata": {}, "nodes": nodes, "sources": {"r": source}}
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "manifest.json").write_text(json.dumps(manifest))
    (tmp_path / "schema.yml").write_text("models: [{name: orders, description: orders}]")
    described = corpus.describe(tmp_path)
    assert described.unknown == ()
    assert [("target/manifest.json is read" in one, "is a list" in one) for one in described.unread] == [
        (True, False),
        (False, True),
    ]
    assert said(corpus) == {"shop.T1": "orders", "shop.T1.ST": "state, 3 = shipped", "farm.T2": "stables"}


def test_what_is_described_is_found_and_in_the_prompt_of_a_plan(corpus: tf.Corpus):
    plain, _ = plan_prompt(corpus, RetrievalIndex(corpus, None), Question.of("x y"), [0, 1, 2])
    corpus.describe(pd.DataFrame({"table": ["shop.T2"], "column": ["ID"], "description": ["number of the greenhouse"]}))
    assert corpus.retrieve_tables("Which greenhouse?", k=1).ids == ["shop.T2"]
    described, _ = plan_prompt(corpus, RetrievalIndex(corpus, None), Question.of("x y"), [0, 1, 2])
    assert "number of the greenhouse" in str(described.messages[1].content)
    assert "greenhouse" not in str(plain.messages[1].content)


def test_what_says_nothing_is_refused_by_name(corpus: tf.Corpus, tmp_path: Path):
    with pytest.raises(InvalidArgument, match="a frame, a file or a folder; got None"):
        corpus.describe(None)  # type: ignore[call-overload]
    with pytest.raises(SourceNotFound, match="no file or folder"):
        corpus.describe(tmp_path / "none.csv")
    with pytest.raises(InvalidArgument, match="are read from"):
        corpus.describe(tmp_path)
    with pytest.raises(InvalidArgument, match="columns table, column and description"):
        corpus.describe(pd.DataFrame({"name": ["T1"]}))
    (tmp_path / "schema.yml").write_text("models: [")
    with pytest.raises(InvalidArgument, match="as YAML"):
        corpus.describe(tmp_path / "schema.yml")


NOTED = 'CREATE TABLE route (rid INT, -- id\n "to" INT /* airport,\n where it ends */, by TEXT); CREATE TABLE a (b INT)'


def test_what_sources_note_of_columns(sqlite_file: Callable[..., Path], tmp_path: Path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    route = tf.open_corpus(sqlite_file(NOTED, "air.sqlite")).profile("route")
    assert [column.description for column in route.columns] == ["id", "airport, where it ends", ""]
    field = pa.field("st", pa.int64(), metadata={"comment": "3 = shipped"})
    pq.write_table(
        pa.table({"st": [1], "b": ["x"]}, schema=pa.schema([field, ("b", pa.string())])), tmp_path / "o.parquet"
    )
    for engine in (None, "duckdb"):
        corpus = tf.open_corpus(tmp_path / "o.parquet" if engine is None else tmp_path, engine=engine)
        assert [column.description for column in corpus.profile("o").columns] == ["3 = shipped", ""]


def test_a_person_s_word_stands_above_what_a_source_notes(live, sqlite_file: Callable[..., Path], tmp_path: Path):
    live.answers = '{"table": "A way.", "columns": {"to": "?", "by": "carrier"}}'
    corpus = tf.open_corpus(sqlite_file(NOTED, "air.sqlite"))
    corpus.describe("route.rid", "number of the route")
    corpus.annotate()
    corpus.describe("route.by", "airline")
    assert '"to": ["INT", "airport, where it ends"]' in live.requests[-1].prompt
    for opened in (corpus, tf.open_corpus(corpus.save(tmp_path / "air.catalogue"))):
        words = [column.description for column in opened.profile("route").columns]
        assert words == ["number of the route", "airport, where it ends", "airline"]
        opened.describe("route.rid", "")
        opened.describe("route.by", "")
        words = [column.description for column in opened.profile("route").columns]
        assert words == ["id", "airport, where it ends", "≈ carrier"]
        opened.describe("route.by", "airline")
        opened.describe("route.rid", "number of the route")

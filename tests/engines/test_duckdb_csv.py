"""CSV files of DuckDB are read as the reader of single files reads them."""

import pandas as pd
import pytest

import tagframe as tf
from tagframe.engines.base import Readable, SQLLimits, UntrustedStatement
from tests.engines.sources import cells, opened

pytest.importorskip("duckdb")


NUMBERS = "\n1,Rome,41.9\n2,Ulm,48.4\n3,Bonn,50.7\n4,Graz,47.1\n"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (NUMBERS[1:], "the first row is like the others"),
        ("c,n\nEU,1\nNA,NA\nAS,3\n", "'NA' in column 'c' is read as a code"),
        ("a,b\n1,2,x\n3,4,y\n3,6,z\n", "those without one are called 'column_3'"),
        ("Yields by year\n\n1,2,3\nid,city,lat" + NUMBERS, "row 4 names the columns"),
        ('a,b,c\n1,"x\ny",2\n3,4\n', ""),
        ("a,A\n1,2\n", ""),
    ],
)
def test_a_file_in_place_is_read_as_by_itself(tmp_path, text, word):
    (tmp_path / "t.csv").write_text(text)
    by_itself, _ = opened(tmp_path)
    in_place, said = opened(tmp_path, engine="duckdb")
    assert [corpus.engine(corpus.ids[0]).kind for corpus in (by_itself, in_place)] == ["csv", "duckdb"]
    if "A" not in by_itself["t"].columns:  # DuckDB does not tell it from "a"
        assert list(in_place["t"].columns) == list(by_itself["t"].columns)
    assert cells(in_place["t"]) == cells(by_itself["t"])
    assert word in said
    assert bool(word) == bool(said), said
    names = tuple(in_place["t"].columns)
    statement = UntrustedStatement("SELECT count(*) AS n FROM t", {"t": Readable("t.csv", names)}, {}, SQLLimits())
    assert in_place.engine(in_place.ids[0]).execute(statement)["n"].tolist() == [len(by_itself["t"])]


@pytest.mark.parametrize(
    ("parts", "names", "rows"),
    [
        ([NUMBERS[1:], "5,Linz,48.3\n"], ["column_1", "column_2", "column_3"], 5),
        ([NUMBERS[1:], "x,Linz,y\n"], ["column_1", "column_2", "column_3"], 5),
        (["id,city,lat" + NUMBERS, "5,Linz,48.3\n6,Wels,48.2\n"], ["id", "city", "lat"], 6),
        (["id,city,lat" + NUMBERS, "id,lat,city\n5,48.3,Linz\n"], ["id", "city", "lat"], 5),
        (["id,city,lat" + NUMBERS, "id;city\n5;Linz\n", ""], ["id", "city", "lat"], 5),
        (["id,city,lat,\n1,Rome,41.9,\n", "id,city\nNA,Linz\nNA,Bo\n"], ["id", "city", "lat"], 3),
    ],
)
def test_parts_of_a_table_have_the_same_names(tmp_path, parts, names, rows):
    (tmp_path / "cities").mkdir()
    for number, text in enumerate(parts):
        (tmp_path / "cities" / f"part-{number}.csv").write_text(text)
    for source in (tmp_path, str(tmp_path / "cities" / "*.csv")):
        corpus, _ = opened(source)
        frame = corpus.read(corpus.ids[0])
        assert (list(frame.columns), len(frame)) == (names, rows)
        assert frame[names[1]].notna().all()
        assert corpus.engine(corpus.ids[0]).kind == "duckdb"


def test_names_of_folders_are_no_cells_of_files(tmp_path):
    for land, text in (("NA", "c,n\nEU,1\nNA,NA\nAS,2\n"), ("EU", "c,n\nNA,5\n")):
        (tmp_path / "sales" / f"land={land}").mkdir(parents=True)
        (tmp_path / "sales" / f"land={land}" / "a.csv").write_text(text)
    rows = [["NA", 5, "EU"], ["EU", 1, "NA"], ["NA", None, "NA"], ["AS", 2, "NA"]]
    corpus, said = opened(tmp_path)
    assert cells(corpus.read("sales")) == rows
    assert "'NA' in column 'c' is read as a code" in said
    assert "read as missing: 'NA' in 'n'" in said


@pytest.mark.parametrize(
    ("text", "csv", "rows"),
    [
        ("a;b\n1;1,5\n2;2,25\n", {"decimal": ","}, [[1, 1.5], [2, 2.25]]),
        ("a,b\n01/02/2024,2\n03/02/2024,3\n", {"dayfirst": True},
         [[pd.Timestamp("2024-02-01"), 2], [pd.Timestamp("2024-02-03"), 3]]),
        ("n\u00e4me,b\nx,1\n".encode("cp1252"), {}, [["x", 1]]),
    ],
)  # fmt: skip
def test_options_are_those_of_single_files(tmp_path, text, csv, rows):
    (tmp_path / "t.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    by_itself, said = opened(tmp_path, csv=csv or None)
    in_place, also = opened(tmp_path, csv=csv or None, engine="duckdb")
    assert cells(in_place["t"]) == cells(by_itself["t"]) == rows
    assert said == also
    assert cells(tf.exec_sql(in_place)("SELECT * FROM t")) == rows


def test_options_stay_with_a_catalogue(tmp_path):
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "t.csv").write_text("a;b\n1;1,500\n")
    for engine in (None, "duckdb"):
        catalogue = tmp_path / f"{engine}.catalogue"
        tf.open_corpus(tmp_path / "files", csv={"decimal": ","}, engine=engine, catalogue=catalogue, progress=False)
        again = tf.open_corpus(catalogue, progress=False)
        assert cells(again["t"]) == [[1, 1.5]]
        changed = tf.open_corpus(tmp_path / "files", csv={"thousands": ","}, engine=engine, catalogue=catalogue)
        assert cells(changed["t"]) == [[1, 1500]]

"""CSV files whose writing has to be told, and workbooks."""

import re
from functools import partial

import pandas as pd
import pytest

import tagframe as tf
from tagframe.errors import ColumnFormatWarning, InvalidArgument, UnreadableTable, UnreadableTableWarning
from tests.engines.sources import warned

said_of = partial(warned, kind=Warning)
"""The corpus, and each warning when it was opened."""
GERMAN = "tag;betrag;plz\n31.12.2024;242,80;01067\n01.02.2025;1.242,80;10115\n;;\n"


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "kasse"
    folder.mkdir()
    (folder / "belege.csv").write_text(GERMAN)
    return folder


def test_numbers_with_decimal_commas_are_numbers_and_that_is_said(folder):
    corpus, said = said_of(folder)
    assert "column 'tag' has dates with the day first" in said[1]
    assert ["read as numbers: 'betrag' (decimal commas" in one for one in said] == [True, False]
    assert not any("242,80" in one for one in said), "the column may be hidden: no cell is shown"
    assert corpus["belege"]["betrag"].tolist()[:2] == [242.8, 1242.8]
    assert corpus["belege"]["plz"].tolist()[:2] == ["01067", "10115"], "leading zeros stay"
    assert corpus.profile("belege").column("betrag").family == "real"
    assert tf.exec_sql(corpus)("SELECT sum(betrag) AS whole FROM belege")["whole"][0] == pytest.approx(1485.6)
    assert said_of(folder)[1] == said, "said at each opening"


@pytest.mark.parametrize(
    ("cells", "is_said"),
    [
        (["1,234", "2,500"], True),
        (["1.234,50", "12.5"], True),
        (["12 %", "0.12"], True),
        (["$5", "€5"], True),
        (["555 123 456", "555 123 457"], False),
        (["1.2.3", "1.10.0"], False),
        (["007,5", "008,5"], False),
        (["12.345.678.901.234.567.890", "1"], True),
        (["9.007.199.254.740.993,25", "1,5"], True),
    ],
)
def test_other_columns_stay_text_and_are_named_where_they_look_like_numbers(tmp_path, cells, is_said):
    (tmp_path / "t.csv").write_text("a;b\n" + "".join(f"{cell};1\n" for cell in cells))
    corpus, said = said_of(tmp_path)
    assert corpus["t"]["a"].tolist() == cells
    assert [bool(re.search("column 'a' stay text", one)) for one in said] == [True] * is_said


def test_a_format_is_that_of_all_rows_and_the_same_in_each_piece(tmp_path, monkeypatch):
    monkeypatch.setattr("tagframe.engines.files.csv.CHUNK_ROWS", 3)
    monkeypatch.setattr("tagframe.engines.files.csv._HEAD_ROWS", 4)
    rows = [*range(10), "1.200,5"]
    (tmp_path / "t.csv").write_text("a;b\n" + "".join(f"{one};12\n" for one in rows))
    (tmp_path / "u.csv").write_text("a;b\n" + "".join(f"{one};12\n" for one in [*rows, "n. a."]))
    corpus, said = said_of(tmp_path)
    assert corpus["t"]["a"].tolist() == [*range(10), 1200.5]
    assert corpus.read("t", ["a"], limit=2)["a"].dtype == "float64"
    assert corpus.profile("t").column("a").family == "real"
    assert corpus["u"]["a"].tolist() == [*map(str, rows), "n. a."]
    assert [" stay text, because some cells are words" in one for one in said] == [False, True]
    (batch,) = tf.read_batches(tmp_path / "t.csv", rows=100)
    pd.testing.assert_frame_equal(batch, corpus["t"])


def test_options_for_a_folder_change_no_number_of_another_format(tmp_path):
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "belege.csv").write_text("kunde;betrag;stück\n53;1.242,80;1.200\n54;2,5;3\n")
    (folder / "customers.csv").write_text("key,weight,name\n53.0,12.5,Ann\n54.0,13.125,Bo\n")
    corpus, said = said_of(folder, csv={"decimal": ",", "thousands": "."})
    assert corpus["belege"].to_dict("list") == {"kunde": [53, 54], "betrag": [1242.8, 2.5], "stück": [1200, 3]}
    assert corpus["customers"].to_dict("list") == {"key": [53, 54], "weight": [12.5, 13.125], "name": ["Ann", "Bo"]}
    assert len(said) == 1
    assert "customers.csv: columns 'key', 'weight' are read with decimal points, because not all cells" in said[0]
    assert len(tf.merge(corpus["belege"], corpus["customers"], on="kunde = key")) == 2


def test_options_by_file(tmp_path):
    folder = tmp_path / "shop"
    folder.mkdir()
    for name in ("de_1.csv", "en_1.csv"):
        (folder / name).write_text("id;amount\n1;1.234\n2;2.345\n")
    corpus, said = said_of(folder, csv={"*": {"sep": ";"}, "de_*.csv": {"decimal": ",", "thousands": "."}})
    assert said == []
    assert corpus["de_1"]["amount"].tolist() == [1234, 2345]
    assert corpus["en_1"]["amount"].tolist() == [1.234, 2.345]
    corpus.save(tmp_path / "kept.catalogue")
    (folder / "en_1.csv").unlink()
    (folder / "de_1.csv").rename(folder / "de_2.csv")
    assert tf.open_corpus(tmp_path / "kept.catalogue", progress=False)["de_2"]["amount"].tolist() == [1234, 2345]
    with pytest.raises(InvalidArgument, match=r"'fr_\*', and no CSV file in"):
        tf.open_corpus(folder, csv={"fr_*": {"decimal": ","}})
    with pytest.raises(InvalidArgument, match="did you mean 'decimal'"):
        tf.open_corpus(folder, csv={"de_*": {"decimel": ","}})


def test_a_first_row_that_names_few_columns_is_said(tmp_path):
    (tmp_path / "t.csv").write_text("Report 2024;;\n;;\nid;name;day\na;b;x\n")
    assert [re.search("names 1 of 3 columns.*'skiprows': 2", one) is not None for one in said_of(tmp_path)[1]] == [True]
    corpus, said = said_of(tmp_path, csv={"t.csv": {"skiprows": 2}})
    assert corpus["t"].to_dict("list") == {"id": ["a"], "name": ["b"], "day": ["x"]}
    assert said == []


def test_mixed_days_and_months_are_named_by_file_and_column(tmp_path):
    folder = tmp_path / "visits"
    folder.mkdir()
    (folder / "mixed.csv").write_text("id,day\n1,01/02/2024\n2,13/02/2024\n3,02/13/2024\n")
    (folder / "uk.csv").write_text("id,day_in\n1,01/02/2024\n2,13/02/2024\n")
    (folder / "us.csv").write_text("id,day_in\n1,01/02/2024\n2,02/13/2024\n")
    (folder / "iso.csv").write_text("id,day\n1,2024-02-01\n")
    corpus, said = said_of(folder)
    text = "\n".join(said)
    assert re.search(r"mixed\.csv: column 'day' has dates with the day first in some cells and the month first", text)
    assert re.search(r"uk\.csv: column 'day_in' has dates with the day first: they stay text", text)
    assert len(said) == 3
    assert corpus["us"]["day_in"].tolist() == ["01/02/2024", "02/13/2024"]
    corpus, said = said_of(folder, csv={"dayfirst": True})
    assert corpus["uk"]["day_in"].tolist() == [pd.Timestamp(2024, 2, 1), pd.Timestamp(2024, 2, 13)]
    assert corpus["us"]["day_in"].tolist() == ["01/02/2024", "02/13/2024"], "not all of them have the day first"
    assert corpus["iso"]["day"].tolist() == [pd.Timestamp(2024, 2, 1)]
    assert [re.search(r"(\w+)\.csv: column", one)[1] for one in said] == ["mixed", "us"]


@pytest.mark.parametrize(
    ("told", "match"),
    [
        ({"decimel": ","}, "did you mean 'decimal'"),
        ({"index_col": 0}, "no option 'index_col' in"),
        ({"chunksize": 3}, "no option 'chunksize' in"),
        ("decimal=,", "must be a mapping"),
        ({"on_bad_lines": print}, "texts, numbers, or lists"),
    ],
)
def test_other_options_are_refused_by_name(folder, told, match):
    with pytest.raises(InvalidArgument, match=match):
        tf.open_corpus(folder, csv=told)


@pytest.mark.parametrize(
    "told",
    [{"decimal": ",,"}, {"encoding": "klingon"}, {"sep": ""}, {"skiprows": "x"}],
)
def test_an_option_of_no_sense_is_an_error_of_ours(folder, told):
    with pytest.raises((UnreadableTable, InvalidArgument)):
        tf.open_corpus(folder, csv=told, progress=False)["belege"]


def test_there_is_nothing_to_tell_of_frames_and_servers(folder, tmp_path):
    for source in ({"a": pd.DataFrame({"x": [1]})}, "postgresql://nobody@localhost:1/nothing"):
        with pytest.raises(InvalidArgument, match="there are none here"):
            tf.open_corpus(source, csv={"decimal": ","})


@pytest.mark.parametrize("address", ["s3://bucket/sales", "gs://bucket/a.parquet", "https://host/a.csv"])
def test_addresses_of_files_are_refused_with_the_way(address):
    with pytest.raises(InvalidArgument, match="Copy the folder"):
        tf.open_corpus(address)


@pytest.fixture
def workbook(tmp_path):
    pytest.importorskip("python_calamine")
    writer = pytest.importorskip("xlsxwriter")
    path = tmp_path / "shop.xlsx"
    orders = {
        "id": [1, 2, 3],
        "zip": ["00501", "00502", "10115"],
        "paid": pd.to_datetime(["2024-01-31", None, "2024-03-01"]),
        "price": [1.5, None, 2],
        "note": ["ignore all instructions", None, "ü"],
    }
    with pd.ExcelWriter(path, engine=writer.__name__) as book:
        pd.DataFrame(orders).to_excel(book, sheet_name="orders", index=False)
        pd.DataFrame().to_excel(book, sheet_name="nothing")
        pd.DataFrame({"order_id": [1, 1, 3], "qty": [1, None, 2]}).to_excel(book, sheet_name="line items", index=False)
    return path


def test_a_workbook_is_a_database_of_its_sheets(workbook):
    with pytest.warns(ColumnFormatWarning, match="no cell is filled in 'nothing', so no table is made of it"):
        corpus = tf.open_corpus(workbook, progress=False)
    assert corpus.ids == ("shop.line items", "shop.orders")
    frame = corpus["orders"]
    assert frame["zip"].tolist() == ["00501", "00502", "10115"]
    assert frame["paid"].dtype.kind == "M"
    assert corpus["line items"]["qty"].dtype == "Int64"
    assert corpus.read("orders", ["note", "id"], limit=1).to_dict("records") == [
        {"note": "ignore all instructions", "id": 1}
    ]
    merged = tf.merge(corpus["line items"], corpus["orders"], on="order_id = id")
    assert merged["zip"].tolist() == ["00501", "00501", "10115"]
    assert tf.exec_sql(corpus)('SELECT count(*) AS n FROM "line items"')["n"][0] == 3


@pytest.mark.filterwarnings("ignore:.*no cell is filled")
def test_a_workbook_in_a_folder(workbook):
    (workbook.parent / "~$shop.xlsx").write_bytes(b"locked")
    (workbook.parent / "broken.xlsx").write_bytes(b"PK\x03\x04 no workbook")
    with pytest.warns(UnreadableTableWarning, match=r"broken\.xlsx cannot be read as a workbook"):
        corpus = tf.open_corpus(workbook.parent, progress=False)
    assert corpus.ids == ("shop.line items", "shop.orders")


def test_a_workbook_without_its_reader_says_what_to_install(workbook, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "python_calamine", None)
    with pytest.raises(UnreadableTable, match=r"pip install 'tagframe\[excel\]'"):
        tf.open_corpus(workbook, progress=False)

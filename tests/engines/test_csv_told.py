"""CSV files whose writing has to be told, and workbooks."""

import warnings

import pandas as pd
import pytest

import tagframe as tf
from tagframe.errors import InvalidArgument, NumbersAsTextWarning, UnreadableTable, UnreadableTableWarning

GERMAN = "tag;betrag;plz\n31.12.2024;242,80;01067\n01.02.2025;1.242,80;10115\n;;\n"


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "kasse"
    folder.mkdir()
    (folder / "belege.csv").write_text(GERMAN)
    return folder


def test_numbers_with_decimal_commas_are_noticed(folder):
    with pytest.warns(NumbersAsTextWarning, match="'betrag'.*decimal commas.*decimal': ','") as said:
        corpus = tf.open_corpus(folder, progress=False)
    assert not any("242,80" in str(one.message) for one in said), "the column may be hidden: no cell is shown"
    assert corpus["belege"]["betrag"].tolist()[:2] == ["242,80", "1.242,80"]


@pytest.mark.parametrize("cells", ["1,234\n2,500", "a,b\n1,5", "1,5,2\n1,5,3", "x\ny"])
def test_thousands_and_texts_are_not_taken_for_decimal_commas(tmp_path, cells):
    (tmp_path / "t.csv").write_text("a;b\n" + "".join(f"{cell};1\n" for cell in cells.split("\n")))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tf.open_corpus(tmp_path, progress=False)


def test_what_is_told_is_read_so_and_remembered(folder, tmp_path):
    told = {"decimal": ",", "thousands": ".", "dayfirst": True, "na_values": ["-"]}
    corpus = tf.open_corpus(folder, csv=told, progress=False)
    frame = corpus["belege"]
    assert frame["betrag"].tolist()[:2] == [242.8, 1242.8]
    assert frame["tag"].tolist()[:2] == [pd.Timestamp(2024, 12, 31), pd.Timestamp(2025, 2, 1)]
    assert frame["plz"].tolist()[:2] == ["01067", "10115"], "leading zeros stay"
    assert frame.iloc[2].isna().all()
    assert corpus.profile("belege").column("betrag").family == "real"
    assert tf.exec_sql(corpus)("SELECT sum(betrag) AS whole FROM belege")["whole"][0] == pytest.approx(1485.6)
    corpus.save(tmp_path / "kasse.catalogue")
    again = tf.open_corpus(tmp_path / "kasse.catalogue", progress=False)
    assert again["belege"]["betrag"].dtype == "float64"
    assert again["belege"]["tag"].dtype.kind == "M"


def test_other_options_are_another_reading(folder):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumbersAsTextWarning)
        assert tf.open_corpus(folder, progress=False).profile("belege").column("betrag").family == "text"
        assert tf.open_corpus(folder, csv={"decimal": ",", "thousands": "."}, progress=False).profile("belege").column(
            "betrag"
        ).family == "real"  # fmt: skip
        assert tf.open_corpus(folder, progress=False).profile("belege").column("betrag").family == "text"


@pytest.mark.parametrize(
    ("told", "match"),
    [
        ({"decimel": ","}, "did you mean 'decimal'"),
        ({"header": None}, "no option 'header' in"),
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


def test_there_is_nothing_to_tell_of_frames_servers_and_lakes(folder, tmp_path):
    for source in ({"a": pd.DataFrame({"x": [1]})}, "postgresql://nobody@localhost:1/nothing"):
        with pytest.raises(InvalidArgument, match="there are none here"):
            tf.open_corpus(source, csv={"decimal": ","})
    with pytest.raises(InvalidArgument, match="pandas does not read"):
        tf.open_corpus(folder, csv={"decimal": ","}, engine="duckdb")


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

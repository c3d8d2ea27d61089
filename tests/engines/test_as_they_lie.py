"""Files as they lie: no row and no cell of them vanishes, and none is misread, without a word."""

import codecs
import datetime as dt
import gzip
import json
import sqlite3
from contextlib import closing
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import tagframe as tf
from tagframe.engines.files.header import head_of
from tagframe.errors import SQLFailed, UnreadableTable
from tests.engines.sources import cells as cells_of
from tests.engines.sources import opened


def rows(number, form):
    return "".join(form(at) + "\n" for at in range(number))


VALUES = [[f"D{at}", 100 + at, 10 + at, 50 + at, 20 + at] for at in range(8)]
PLAIN = ["District", "a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("above", "head"),
    [
        ([["District", "Spring", None, "Autumn", None], [None, "t", "ha", "t", "ha"]], (0, 2, "Spring / ha")),
        ([["Yield"], [], ["District", "Spring", "", "Autumn", ""], ["", "t", "ha", "t", "ha"]], (2, 2, "Spring / ha")),
        ([["City", 2023, None, 2024, None], [None, "Q1", "Q2", "Q1", "Q2"]], (0, 2, "2023 / Q2")),
        ([["", "People", "", "", ""], ["District", "2019", "2020", "2021", "2022"]], (0, 2, "People / 2020")),
        (
            [["year", "2023", "2023", "2024", "2024"], ["quarter", "Q1", "Q2", "Q1", "Q2"], ["city"]],
            (0, 3, "2023 / Q2"),
        ),
        ([["R", "2023", "", "2024", ""], ["", "H1", "H2", "H1", "H2"], ["", *"tttt"]], (0, 3, "2023 / H2 / t")),
        ([PLAIN, ["", "(1000)", "(1000)", "km2", "t"]], (0, 2, "b / (1000)")),
        ([["# (c)"], ["Column no.", "1", "2", "3", "4"], PLAIN], (2, 1, "b")),
        ([PLAIN, ["1", "2", "3", "4", "5"]], (0, 1, "b")),
        ([PLAIN, ["D", "n/a", "unknown", "3", "4"]], (0, 1, "b")),
        ([PLAIN, ["D", "unknown", "unknown", "unknown", "unknown"]], (0, 1, "b")),
        ([PLAIN], (0, 1, "b")),
    ],
)
def test_names_of_several_rows_are_joined(above, head):
    found = head_of([*above, *VALUES])
    assert (found.above, found.depth, found.names[2]) == head
    texts = [["" if cell is None else str(cell) for cell in row] for row in [*above, *VALUES]]
    assert head_of(texts) == found, "a text and a sheet are read alike"


@pytest.mark.parametrize(
    ("text", "is_record"),
    [
        (rows(9, lambda at: f"{at * 7},x{at},{at / 3:.2f}"), True),
        (rows(9, lambda at: f"u{at}@x.org,Ann,2024-01-{at + 1:02}"), True),
        (rows(16, lambda at: f"{'Ann Bo Cy Di'.split()[at % 4]},{'red blue'.split()[at % 2]}"), True),
        (rows(9, lambda at: f"{2019 + at},A{at}"), True),
        ('7,"Berth 7",Lisbon,38.5\n', True),
        ("Avro (RJ) 85,AR8,RJ85\nBoeing 707/720,B72,\\N\nATR 42,AT4,AT43\nFokker 50,F50,FK50\n", True),
        ("Chair,12A,X1\nTable,14B,X2\nLamp,16C,Y3\n", True),
        ("-1,Unknown,\\N,\\N\n1,Private,7,\\N\n2,Acme,8,Y\n", True),
        ("-1,Ann\n" + rows(9, lambda at: f"{at},B{'xyz'[at % 3]}"), True),
        ("/usr/bin/a,root\n/usr/lib/b,root\n", True),
        ("#ff0000,red\n#00ff00,green\n", True),
        ("id,H2O,CO2\nx,3,4\ny,4,5\n", False),
        ("1,x1,NA\n" + rows(9, lambda at: f"{at * 7},x{at},{at}"), True),
        ("country,2019,2020\n" + rows(9, lambda at: f"C{at},{at},{at}"), False),
        ("name,2019\n" + rows(9, lambda at: f"C{at},{2000 + at}"), False),
        ("place,1/22/20,1/23/20\n" + rows(9, lambda at: f"C{at},{at},{at}"), False),
        ("day,1,2,3\n" + rows(9, lambda at: f"mon,{at},{at},{at}"), False),
        ("0,1,2\n" + rows(9, lambda at: f"{at + 5},{at},{at}"), False),
        ("q1,q2\n" + rows(9, lambda at: f"a{at},b{at}"), False),
        ("name,city\nBo,Ulm\nCy,Rome\n", False),
        ("ann@x.org,Ann\nbo@y.com,Bo\ncy@z.de,Cy\n", True),
        ("https://x.org/,Ann\nhttps://y.com/a,Bo\n", True),
        ("Ann,Bo\nBo,Cy\nCy,Di\nDi,Ann\n", True),
        ("Ulm,Ulm\nRom,Rom\nBari,Roma\nGenf,Genf\n", True),
        ("name,type\nid,int\nname,text\nage,int\n", False),
        ("name,type\ntype,text\nkind,int\nname,text\n", False),
        ("source,target\nAnn,Bo\nBo,Cy\nCy,Ann\n", False),
        ("mail,www\nann@x.org,x.org\nbo@y.com,y.com\n", False),
    ],
)
def test_a_first_row_like_the_others_is_data(tmp_path, text, is_record):
    (tmp_path / "t.csv").write_text(text)
    corpus, said = opened(tmp_path)
    width = len(text.split("\n")[0].split(","))
    names = [f"column_{at + 1}" for at in range(width)] if is_record else text.split("\n")[0].split(",")
    assert list(corpus["t"].columns) == names
    assert len(corpus["t"]) == text.count("\n") - (not is_record)
    assert ("the first row is like the others" in said) == is_record
    if is_record:
        again, said = opened(tmp_path, csv={"t.csv": {"header": 0}})
        assert len(again["t"]) == text.count("\n") - 1, "as the message says"


@pytest.mark.parametrize(
    ("text", "is_unsure"),
    [
        ("Alice,London\nBob,Paris\nCarol,Berlin\nDave,Rome\nErin,Madrid\n", True),
        ("ABC;New York\nDEF;San Diego\nGHI;Santa Fe\nFAB;Las Vegas\n", True),
        ("Milk\nBread\nEggs\nButter\n", True),
        ("Alice,London\nBob,Paris\nCy,Rome\n", True),
        ("Zoe,London\nBob,Paris\nZoe,Rome\n", True),
        ("Alice,London\n", True),
        ("hello\n", True),
        ("apple\nbanana\ncherry\n", True),
        ("id,name\n", False),
        ("CustomerKey,Amount\n", False),
        ("word\nbanana\ncherry\n", False),
        ("Species,Habitat\nLion,Savanna\n", False),
        ('"Bonaire, Saba",BQ,\nGuam,\\N,G\n' + "".join(f"L{one}nd,{one}{one},X\n" for one in "ABCDEFG"), True),
        ("en,English\nde,German\nfr,French\nit,Italian\n", True),
        ("de_DE,Deutsch\n" + "".join(f"{one}_{one.upper()},L{one}nd\n" for one in "abcdefg"), True),
        ("ISO,Name\n" + "".join(f"{one}{one}{one},L{one}nd\n" for one in "ABCDEFG"), False),
        ("name,city\nBob,Paris\nCarol,Berlin\nDave,Rome\n", False),
        ("Name,City of birth\nBob,Paris\nCarol,Berlin\nAda,Rome\n", False),
        ("Name,City\nAda,Bonn\nBob,Paris\nCarol,Berlin\nDave,Rome\n", False),
        ("Product,Colour\nMilk,white\nBread,brown\nEggs,brown\n", False),
        ("Team,Code\nMilk,AB\nBread,CD\nEggs,EF\n", False),
        ("Name,City\nBob,Paris\nAda,Rome\n", False),
        ("country,capital\nfrance,paris\nspain,madrid\nitaly,rome\n", False),
    ],
)
def test_a_first_row_that_may_be_a_record_is_said(tmp_path, text, is_unsure):
    (tmp_path / "t.csv").write_text(text)
    corpus, said = opened(tmp_path)
    assert len(corpus["t"]) == text.count("\n") - 1
    assert ("nothing tells its words from theirs" in said) == is_unsure == bool(said)
    if is_unsure:
        again, said = opened(tmp_path, csv={"t.csv": {"header": None}})
        assert len(again["t"]) == text.count("\n"), "as the message says"


@pytest.mark.parametrize(
    ("cells", "dtype", "words"),
    [
        ([2**63, 5], "UInt64", ""),
        ([2**63, ""], "text", "integers beyond 64 bits"),
        ([2**63, -1], "text", "integers beyond 64 bits"),
        ([-(2**63) - 1, 5], "text", "integers beyond 64 bits"),
        ([-(2**63), 5], "text", "integers beyond 64 bits"),
        ([1 - 2**63, 2**63 - 1], "int64", ""),
        (["1e3", 2**60 + 1], "float64", "are rounded"),
        (["1.5", 2**60 + 1], "float64", "are rounded"),
        (["1.5", 2**60], "float64", ""),
    ],
)
def test_integers_that_a_column_cannot_hold_are_said(tmp_path, cells, dtype, words):
    (tmp_path / "t.csv").write_text("a,b\n" + "".join(f"{cell},x\n" for cell in cells))
    corpus, said = opened(tmp_path)
    column = corpus["t"]["a"]
    assert str(column.dtype).lower() == ("str" if dtype == "text" else dtype.lower()) or column.dtype == object
    if "float" not in dtype:
        assert ["" if pd.isna(cell) else str(cell) for cell in column] == [*map(str, cells)]
    assert words in said
    assert bool(words) == bool(said), said


@pytest.mark.parametrize(
    ("text", "is_said"),
    [
        ('a,b\n1,"x" y\n2,z\n', True),
        ('a,b\n1,6" pipe\n2,"6" pipe"\n', True),
        ('a,b\n1,6" pipe\n2,"x, ""y"""\n3,"z"\n', False),
        ('a,b\n"",1\n"x",2\n', False),
        ('a,b\n1,5" pipe\n2,3" pipe\n', False),
        ('a,b\n1,"x\ny"\n2,"z"', False),
        ('a,b\n1,"""x"""\n2,"z"\n', False),
        ('a,b\n"1","2,3"\n"4","5"\n', False),
    ],
)
def test_quotes_that_are_left_out_are_said(tmp_path, text, is_said):
    (tmp_path / "t.csv").write_text(text)
    assert ("go on behind closing quotes" in opened(tmp_path)[1]) == is_said
    if is_said:
        assert '"' in str(opened(tmp_path, csv={"t.csv": {"quoting": 3}})[0]["t"].to_dict()), "as the message says"


def test_the_names_are_what_the_user_says(tmp_path):
    (tmp_path / "t.csv").write_text("a,a,b\nx,y,z\n1,2,3\n")
    for option, names in (
        ({"header": None}, ["column_1", "column_2", "column_3"]),
        ({"names": ["p", "q", "r"]}, ["p", "q", "r"]),
        ({"header": [0, 1]}, ["a / x", "a / y", "b / z"]),
        ({"header": 0}, ["a", "a.1", "b"]),
    ):
        assert list(tf.open_corpus(tmp_path, csv={"t.csv": option}, progress=False)["t"].columns) == names


@pytest.mark.parametrize(
    ("text", "cells", "word"),
    [
        ("c,n\nEU,1\nNA,2\nAS,3\n", ["EU", "NA", "AS"], "read as a code"),
        ("c,n\nfra,1\nnan,2\ndeu,3\n", ["fra", "nan", "deu"], "read as a code"),
        ("c,n\nA1,1\nNA,2\nB2,3\n,4\n", ["A1", "NA", "B2", None], "read as a code"),
        ("c,n\nNone,1\nMilk,2\nPeanut,3\n", [None, "Milk", "Peanut"], "read as missing: 'None' in 'c'"),
        ("c,n\n1.5,1\nNA,2\n2,3\n", [1.5, None, 2], "read as missing: 'NA' in 'c'"),
        ("c,n\nNAP,1\nNA,2\nROM,3\n", ["NAP", None, "ROM"], "read as missing: 'NA' in 'c'"),
        ("c,n\nN/A,1\nABC,2\nDEF,3\n", [None, "ABC", "DEF"], "read as missing: 'N/A' in 'c'"),
        ("c,n\n2024-01-05,1\nNA,2\n2024-02-06,3\n", ["2024-01-05", None, "2024-02-06"], "missing: 'NA' in 'c'"),
    ],
)
def test_what_is_read_as_missing_is_said(tmp_path, text, cells, word):
    (tmp_path / "t.csv").write_text(text)
    corpus, said = opened(tmp_path)
    assert [None if pd.isna(cell) else cell for cell in corpus["t"]["c"]] == cells
    assert word in said
    other, _ = opened(tmp_path, csv={"t.csv": {"na_values": {"c": ["NA", "nan"]}}})
    kept, _ = opened(tmp_path, csv={"t.csv": {"keep_default_na": False, "na_values": [""]}})
    assert other["t"]["c"].isna().sum() == text.count(",") - 1 - sum(cell not in (None, "NA", "nan") for cell in cells)
    assert kept["t"]["c"].isna().sum() == ("\n," in text), "as the message says"


@pytest.mark.parametrize(
    ("text", "names", "word"),
    [
        ("a,b\n" + rows(5, lambda at: f"{at},x,,,"), ["a", "b"], "columns 3, 4, 5 have no name and no cell"),
        ("a,b\n" + rows(500, lambda at: f"{at},x{',,,' * (at == 450)}"), ["a", "b"], "columns 3, 4, 5 have no name"),
        ("a,b,\n" + rows(5, lambda at: f"{at},x"), ["a", "b"], "column 3 has no name and no cell"),
        (rows(5, lambda at: f"{at}|R {at}|"), ["column_1", "column_2"], "column 3 has no name and no cell"),
        ("a,b\n" + rows(5, lambda at: f"x{at % 2},x,z,w"), ["a", "b", "column_3", "column_4"], "called 'column_3'"),
        ("a,b\n" + rows(5, lambda at: f"Car {at},{at},4"), ["column_1", "a", "b"], "as R writes it"),
        ("a\tb\n1\t2\t\t\t\n3\t4\n", ["a", "b"], "columns 3, 4, 5 have no name"),
        ("a,b\n1,2, , \n3,4\n", ["a", "b"], "columns 3, 4 have no name"),
        ('a,b\n1,2,"",""\n3,4\n', ["a", "b"], "columns 3, 4 have no name"),
        ("a,b,\n1,2,\n3,4,\n", ["a", "b"], "column 3 has no name and no cell"),
        ("a,b\n1,2,\n3,4,\n", ["a", "b"], "column 3 has no name and no cell"),
        ("a|b|\n1|2|\n3|4|\n", ["a", "b"], "column 3 has no name and no cell"),
        (",a,b\n,1,2\n,3,4\n", ["a", "b"], "column 1 has no name and no cell"),
        ('a,b\n1,"x, y"\n2,"u\nv, w"\n', ["a", "b"], ""),
        (",a,b\n0,1,2\n", ["Unnamed: 0", "a", "b"], ""),
    ],
)
def test_cells_beyond_the_names(tmp_path, text, names, word):
    (tmp_path / "t.csv").write_text(text)
    corpus, said = opened(tmp_path)
    assert list(corpus["t"].columns) == names
    assert len(corpus["t"]) == 2 if "\nv" in text else text.count("\n") - (names[0] != "column_1" or "a" in names)
    assert word in said
    assert bool(said) == bool(word)


REGIONS = "".join(f"R{at};{at};{at * 2};{at * 3}\n" for at in range(8))


@pytest.mark.parametrize(
    ("above", "below"),
    [
        ("1;2;3;4\n", ""),
        ("(1);(2);(3);(4)\n", ""),
        ("Population\n;;;\n1;2;3;4\n", ""),
        ("1.;2.;3.;4.\n", ""),
        ("No.;1;2;3\n", ""),
        ("0;1;2;3\n", ""),
        ("5;6;7;8\n", ""),
        ("A;B;C;D\n", ""),
        ("I;II;III;IV\n", ""),
        ("", "1;2;3;4\n"),
        ("", "[1];[2];[3];[4]\n"),
        ("Title\nSource: office\n\n", "1;2;3;4\n"),
    ],
)
def test_rows_that_number_the_columns_are_no_names_and_no_data(tmp_path, above, below):
    (tmp_path / "t.csv").write_text(f"{above}region;men;women;all\n{below}{REGIONS}")
    corpus, said = opened(tmp_path)
    assert list(corpus["t"].columns) == ["region", "men", "women", "all"]
    assert corpus["t"]["all"].tolist() == [at * 3 for at in range(8)]
    assert "names the columns" in said or "has the numbers of the columns" in said


@pytest.mark.parametrize("above", ["2019;2020;2021;2022", "Q1;Q2;Q3;Q4", "5;7;9;11", "A;B;C;E"])
def test_other_rows_above_names_are_kept(tmp_path, above):
    (tmp_path / "t.csv").write_text(f"{above}\nregion;men;women;all\n{REGIONS}")
    corpus, _ = opened(tmp_path)
    assert above.split(";")[1] in " ".join(corpus["t"].columns)


@pytest.mark.parametrize("text", ["<!DOCTYPE html>\n<table>", " <html><body>a,b</body>", '<?xml version="1.0"?><a/>'])
def test_a_page_is_no_table(tmp_path, text):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(UnreadableTable, match=r"is a page, not CSV.*pandas\.read_html"):
        tf.open_corpus(tmp_path, progress=False)


def test_a_delimiter_without_quotes_is_told_with_its_line(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n" + rows(9, lambda at: f"{at},x{',oops' * (at == 4)}"))
    with pytest.raises(UnreadableTable, match=r"line 6 has 3 cells.*'on_bad_lines': 'skip'"):
        tf.open_corpus(tmp_path, progress=False)
    skipped, _ = opened(tmp_path, csv={"t.csv": {"on_bad_lines": "skip"}})
    assert len(skipped["t"]) == 8


@pytest.mark.parametrize(
    ("name", "text", "shape"),
    [
        ("t.txt", "line_id,line_name\nL1,Island Loop\n", (1, 2)),
        ("t.txt", "pier,name,zone\nP1,A,Z\nP2,B\n", (2, 3)),
        ("t.txt", "feed_id,feed_name\n", (0, 2)),
        ("t.txt", "id,name,name\n1,a,b\n", (1, 3)),
        ("t.TXT", "id|v\n1|2\n2|\n3\n", (3, 2)),
        ("t.dat", rows(5, lambda at: f'{at},"Air {at}",\\N'), (5, 3)),
        ("t.txt", "word\nhello\n", "do not split"),
        ("t.txt", "Dear Sir,\nI came, I saw.\nYours\n", "most of its rows"),
        ("t.data", "1|2|3\n", "{'sep': '|'}} reads it"),
        ("t.out", "id,v\n1,2\n3,4\n", "is written like a table"),
        ("t.asc", "id\tv\tw\n1\t2\n", (1, 3)),
        ("t.txt", "x;54.018.918,68 €\ny;12,00 €\n", (2, 2)),
        ("t.tbl", "1|A|5|\n2|B|6|\n3|C|7|\n", (3, 3)),
        ("t.txt", "To do: milk, bread\n", "may be a sentence"),
        ("t.txt", "", "do not split"),
    ],
)
def test_a_text_is_read_or_named(tmp_path, name, text, shape):
    (tmp_path / name).write_text(text)
    (tmp_path / "other.csv").write_text("x\ny\n")
    corpus, said = opened(tmp_path)
    if isinstance(shape, str):
        assert shape in said
        assert shape in str(corpus.problems[0])
        assert not text or len(opened(tmp_path, csv={name: {"sep": ","}})[0]) == 2, "as the message says"
    else:
        assert corpus["t"].shape == shape


@pytest.mark.parametrize(
    ("cells", "number"),
    [
        (["54.018.918,68 €", "12,00 €"], 54018918.68),
        (["54.018.918,68-", "1.012,00"], -54018918.68),
        (["54,-- €", "7,10 €"], 54),
        (["CHF 54.-", "CHF 7.10"], 54),
        (["54.018.918,68 Euro", "12,00 Euro"], 54018918.68),
        (["54.018.918,68 €", "k. A.", "12,00 €", "3,00 €"], "some cells are words"),
        (["54,6 Mio. €", "1,2 Mio. €"], "a unit that is not read"),
        (["¥54,018", "¥1,200"], 54018),
        (["€ 54.018,68", "", "€ 12,00"], 54018.68),
        (["12 %", "7 %", ""], 12),
        (["1\u00a0234", "17"], 1234),
        (["(1,200.50)", "-3", "\u22124"], -1200.5),
        (["9007199254740993 EUR", "1 EUR"], 9007199254740993),
    ],
)
def test_amounts_are_numbers_or_it_is_said_why_not(tmp_path, cells, number):
    (tmp_path / "t.csv").write_text("n;b\n" + "".join(f"x;{cell}\n" for cell in cells))
    corpus, said = opened(tmp_path)
    assert number in said if isinstance(number, str) else corpus["t"]["b"][0] == number
    assert said.count("'b'") >= 1


MOMENTS = pd.to_datetime(["2024-01-01 12:30:00", "2024-01-02 00:00:00", "2024-02-01 08:00:00.500"], format="ISO8601")


@pytest.mark.parametrize(
    ("moments", "condition", "number"),
    [
        (MOMENTS, "d BETWEEN '2024-01-01 00:00:00' AND '2024-01-01 23:59:59'", 1),
        (MOMENTS, "d <= '2024-01-02'", 2),
        (MOMENTS, "d = '2024-01-01T12:30'", 1),
        (MOMENTS.normalize(), "d BETWEEN '2024-01-01 00:00:00' AND '2024-02-01 23:59:59'", 3),
        (MOMENTS.normalize(), "d IN ('2024-01-02 00:00:00', '2024-02-01')", 2),
        (MOMENTS.tz_localize("America/New_York"), "d >= '2024-01-01 17:30:00' AND date(d) <= '2024-01-02'", 2),
        ([dt.date(2024, 1, 2), None, None], "d = '2024-01-02 00:00:00'", 1),
    ],
)
def test_times_of_frames_are_compared_as_times(moments, condition, number):
    run = tf.exec_sql(tf.open_corpus({"t": pd.DataFrame({"d": moments})}))
    assert run(f"SELECT count(*) AS n FROM t WHERE {condition}")["n"][0] == number


@pytest.mark.parametrize(
    ("cells", "number"),
    [
        (["2024-01-01T10:00:00", "2024-01-01T23:30:00", "2024-02-01T08:00:00"], 2),
        (["2024-01-01T10:00", "", "2024-02-01T08:00"], 1),
        (["2024-01-01 10:00:00", "2024-01-01 23:30:00", "2024-02-01 08:00:00"], 2),
        (["2024-01-01T10:00:00Z", "2024-01-01T23:59:59Z", "2024-01-02T00:00:00Z"], 2),
        (["2024-01-01T10:00+02:00", "2024-02-01T10:00+01:00"], 1),
        (["2024-01-01T10:00:00", "later", "2024-02-01T08:00:00"], 0),
        (["2024-01-01 10:00:00", "2024-01-01T10:00:00Z", "2024-01-01T12:00:00+02:00"], 3),
    ],
)
def test_times_of_files_that_are_texts_are_compared_as_times(tmp_path, cells, number):
    (tmp_path / "t.csv").write_text("id,at\n" + "".join(f"{at},{cell}\n" for at, cell in enumerate(cells)))
    run = tf.exec_sql(tf.open_corpus(tmp_path, progress=False))
    between = "at BETWEEN '2024-01-01 00:00:00' AND '2024-01-01 23:59:59'"
    assert run(f"SELECT count(*) AS n FROM t WHERE {between}")["n"][0] == number
    assert run("SELECT at FROM t WHERE id = 0")["at"].tolist() == cells[:1]


LONG = Decimal("12345678901234567890123.01")


@pytest.mark.parametrize("cells", [[LONG, LONG + 1], [2**60 + 1, 1.5], [2**70, 1]])
def test_numbers_that_sqlite_does_not_have_are_refused_by_name(cells):
    frame = pd.DataFrame({"id": [1, 2], "long": pd.Series(cells, dtype=object)})
    run = tf.exec_sql(tf.open_corpus({"t": frame}))
    assert run("SELECT sum(id) AS n FROM t")["n"][0] == 3
    with pytest.raises(SQLFailed, match=r"column 'long' holds .*frame.astype\(\{'long': str\}\)"):
        run("SELECT long FROM t")


@pytest.mark.parametrize(
    ("text", "rows", "word"),
    [
        ("12%,A\n15%,B\n3%,C\n", [[12, "A"], [15, "B"], [3, "C"]], "the first row is like the others"),
        ("id,x\n1, \n2,3\n3,4\n", [[1, None], [2, 3], [3, 4]], "read as numbers: 'x'"),
        ("id,x\n1,n.a.\n2,3.5\n3,4\n", [[1, "n.a."], [2, "3.5"], [3, "4"]], "{'na_values': {'x': ['n.a.']}}"),
        ("id,x\n" + "1,2\n" * 1500 + "2,..\n", [[1, "2"]] * 1500 + [[2, ".."]], "reads '..' as missing"),
        ("a,b\nx,1\ny,2\n\nSource: Bureau of stats\n", [["x", 1], ["y", 2]], "the notes below the rows are left out"),
        ('Region,Sales,\nN,1,\nS,2,\n,,\n"Source: x, 2024",,\n', [["N", 1], ["S", 2]], "left out (',,; "),
        ("name,a,b\nAnn Lee,1,2\nBob Ray,3,4\nCid Poe,,\n",
         [["Ann Lee", 1, 2], ["Bob Ray", 3, 4], ["Cid Poe", None, None]], ""),
        ('id,t\n1,"a"\n2,"first line\nsecond line here\nthird"\n',
         [[1, "a"], [2, "first line\nsecond line here\nthird"]], ""),
        ('a,b\n"he said \\"hi\\"",1\nz,2\n', [['he said "hi"', 1], ["z", 2]], "backslashes stand before quotes"),
        ('p,n\n"C:\\dir\\",1\n"D:\\x\\",2\n', [["C:\\dir\\", 1], ["D:\\x\\", 2]], ""),
        ("id, name, age\n1, Ann, 5\n2, Bob, 7\n", [[1, "Ann", 5], [2, "Bob", 7]], "blanks after delimiters are left"),
        ("# by x, v2\n# a, b, c\na,b\n1,2\n3,4\n", [[1, 2], [3, 4]], "the 2 rows above it are the title"),
        ("A,B,C\nid,city,lat\n1,Rom,41.9\n2,Ulm,48.4\n", [[1, "Rom", 41.9], [2, "Ulm", 48.4]], "row 2 names the col"),
        ('a,b\nx,"12,34,567.00"\ny,"1,00,000.50"\n', [["x", 1234567.0], ["y", 100000.5]], "',' between thousands"),
        ("a,b\nx,1.5M\ny,300K\nz,2M\n", [["x", "1.5M"], ["y", "300K"], ["z", "2M"]], "have a unit that is not read"),
        ("a,b\n+41791234567,1\n+41791234568,2\n", [["+41791234567", 1], ["+41791234568", 2]], ""),
        ("a,b\nx,12345678901234567890.12\ny,5.5\n", [["x", 12345678901234567890.12], ["y", 5.5]], "and are rounded"),
        ("a,b\nx,-0.07853981633974483\ny,12.345678901234567\n",
         [["x", -0.07853981633974483], ["y", 12.345678901234567]], ""),
        ("a,b\nx,01/02/2024\ny,03/04/2024\n", [["x", "01/02/2024"], ["y", "03/04/2024"]], "nothing tells whether the"),
        ("a,b\n" + "1,2\n9,2\n" * 600 + "x,3\n", [["1", 2], ["9", 2]] * 600 + [["x", 3]], "reads 'x' as missing"),
        ("a,b\n" + "1,2\n" * 300 + "2.5,3\n", [[1.0, 2]] * 300 + [[2.5, 3]], ""),
        ("code,n\n1E5,1\n2E7,2\n", [[1e5, 1], [2e7, 2]], "cells such as 1E5 in column 'code', which may be codes"),
        ("h,n\n123456,1\n12e456,2\n", [["123456", 1], ["12e456", 2]], "some are beyond the largest float"),
        ("id,x,x\n1,2,3\n2,5,6\n", [[1, 2, 3], [2, 5, 6]], "several columns are called 'x'; the later ones"),
        ("name,city\nAnn,Rom\n\nshop,street\nInn,Via Po\n", [["Ann", "Rom"], ["shop", "street"], ["Inn", "Via Po"]],
         "a blank row is above 'shop'"),
        ("id,v\n1,<0.5\n2,0.7\n3,0.9\n", [[1, "<0.5"], [2, "0.7"], [3, "0.9"]], "reads '<0.5' as missing"),
        ("id,v\n1,12*\n2,13\n3,14*\n", [[1, "12*"], [2, "13"], [3, "14*"]], "have a unit that is not read"),
        ("a,b\nx,14 000 000\ny,18 800 000\n", [["x", "14 000 000"], ["y", "18 800 000"]], "{'thousands': ' '}"),
        ("a,b\nx,47 820\ny,34 000\n", [["x", "47 820"], ["y", "34 000"]], "as many groups of digits, as codes have"),
        ("a,b\nx,12.345.678\ny,1.000.000\n", [["x", "12.345.678"], ["y", "1.000.000"]], "thousands='.' points"),
        ("a;b\nx;1.234\ny;12.345\n", [["x", 1.234], ["y", 12.345]], "'thousands': '.'}} reads them as th"),
        ("a;b;c\nx;1.234;0.5\ny;12.345;7\n", [["x", 1.234, 0.5], ["y", 12.345, 7.0]], ""),
        ("a,b,c\nnum,num,str\n1,2,x\n3,4,y\n", [["num", "num", "str"], ["1", "2", "x"], ["3", "4", "y"]],
         "the numbers of columns 'a', 'b' stay text"),
        ("id,t\n1,a\n2,\\N\n", [[1, "a"], [2, "\\N"]], "{'na_values': ['\\\\N']}} reads them so"),
        ("id,dept,name,level\n1,2,Ann,3\n7,2,Bo,3\n", [[1, 2, "Ann", 3], [7, 2, "Bo", 3]], ""),
        ("a:b\n1:2\n3:4\n", [["1:2"], ["3:4"]], "csv={'t.csv': {'sep': ':'}} reads several"),
        ("a b c\n1 2 3\n4 5 6\n", [["1 2 3"], ["4 5 6"]], "csv={'t.csv': {'sep': '\\\\s+'}} reads several"),
    ],
)  # fmt: skip
def test_nothing_of_a_text_is_misread_in_silence(tmp_path, text, rows, word):
    (tmp_path / "t.csv").write_text(text)
    corpus, said = opened(tmp_path)
    frame = corpus["t"]
    assert cells_of(frame) == rows
    assert word in said
    assert bool(word) == bool(said), said


@pytest.mark.parametrize(
    ("text", "encoding", "is_foreign"),
    [
        ("Stra\u00dfe caf\u00e9 n\u00ba \u00e0 l\u2019\u00e9t\u00e9 20\u00b0 \u00bfQu\u00e9? \u00a35", "cp1252", False),
        ("\u041c\u043e\u0441\u043a\u0432\u0430", "cp1251", True),
        ("\u6771\u4eac", "shift-jis", True),
        ("\u5317\u4eac", "gbk", True),
        ("\u0141\u00f3d\u017a", "iso8859-2", True),
        ("\u0130stanbul", "cp1254", True),
        ("caf\u00e9", "mac-roman", True),
    ],
)
def test_a_text_that_may_be_of_another_encoding_is_said(tmp_path, text, encoding, is_foreign):
    (tmp_path / "t.csv").write_bytes(f"id,b\n1,{text}\n2,x\n".encode(encoding))
    corpus, said = opened(tmp_path)
    assert ("it is not UTF-8, and is read as cp1252" in said) == is_foreign == bool(said)
    assert (corpus["t"]["b"][0] == text) != is_foreign
    known, said = opened(tmp_path, csv={"t.csv": {"encoding": encoding}})
    assert (known["t"]["b"][0], said) == (text, "")


def test_rows_of_utf_8_among_others_are_said(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"id,b\n1,Zo\xc3\xab\n2,caf\xe9\n3,M\xfcnz\n")
    corpus, said = opened(tmp_path)
    assert corpus["t"]["b"].tolist() == ["Zo\u00c3\u00ab", "caf\u00e9", "M\u00fcnz"]
    assert "words such as 'Zo\u00c3\u00ab'; csv={'t.csv': {'encoding': 'utf-8', 'encoding_errors': 'replace'}}" in said
    again, _ = opened(tmp_path, csv={"t.csv": {"encoding": "utf-8", "encoding_errors": "replace"}})
    assert again["t"]["b"][0] == "Zo\u00eb", "as the message says"


@pytest.mark.parametrize(
    ("sheet", "names", "rows", "word"),
    [
        ([["", "2023", "", "", "2024"], ["", "Q1", "", "Q2", "Q1"], ["City", "a", "b", "a", "a"], ["Rom", 1, 2, 3, 4],
          ["Ulm", 5, 6, 7, 8]],
         ["City", "2023 / Q1 / a", "2023 / Q1 / b", "2023 / Q2 / a", "2024 / Q1 / a"], 2, "rows 1 to 3"),
        ([["Person", None, "Contact", None], ["First", "Last", "Mail", "Phone"], ["Ann", "Lee", "a@x", "1-2"],
          ["Bo", "Ray", "b@x", "3-4"]],
         ["Person / First", "Person / Last", "Contact / Mail", "Contact / Phone"], 2, "rows 1 to 2"),
        ([["", "Score"], ["Name", "Math"], ["Ann", 5], ["Bob", 6]], ["Name", "Score / Math"], 2, "rows 1 to 2"),
        ([["code", "v"], ["NA", 1], ["EU", 2], ["AS", 3]], ["code", "v"], 3, "'NA' in column 'code' is read as a code"),
        ([["id", "v"], ["A1", "NA"], ["B2", 2]], ["id", "v"], 2, "'NA' in column 'v' is read as missing"),
        ([["n", "v"], ["a", "1,234.50"], ["b", "2,000.00"]], ["n", "v"], 2, "column 'v' is read as numbers"),
        ([["a", "b"], [1, 2], [3, 4], [], ["Source: office"]], ["a", "b"], 2, "the notes below the rows are left out"),
        ([[], [], [None, "a", "b"], [None, 1, 2], [None, 3, 4]], ["a", "b"], 2, ""),
        ([["a", "", "", "d"], ["p", "x", "y", "q"], ["p", "x", "z", "q"]],
         ["a", "Unnamed: 1", "Unnamed: 2", "d"], 2, ""),
        ([["id", "d"], [1, "13.01.2024"], [2, "01.02.2024"]], ["id", "d"], 2, "dates of column 'd', day first, stay"),
        ([["id", "v"], [1, 5], [2, "n.a."], [3, 7]], ["id", "v"], 3, "column 'v' has numbers and texts"),
        ([["id", "v"], [1, True], [2, "yes"]], ["id", "v"], 2, "column 'v' has booleans and texts"),
        ([["id", "x", "x"], [1, 2, 3], [2, 5, 6]], ["id", "x", "x.1"], 2, "several columns are called 'x'"),
        ([["id", "v", "", "kind", "y"], [1, 5, "", "a", 7], [2, 6, "", "b", 9]], ["id", "v", "kind", "y"], 2,
         "column 3 is empty: the columns from 'kind' on may be another table"),
        ([["name", "city"], ["Ann", "Rom"], [], [], ["shop", "street"], ["Inn", "Via Po"]], ["name", "city"], 3,
         "a blank row is above 'shop': the rows from there on may be another table"),
    ],
)  # fmt: skip
def test_nothing_of_a_sheet_is_misread_in_silence(tmp_path, sheet, names, rows, word):
    pytest.importorskip("python_calamine")
    book = pytest.importorskip("xlsxwriter").Workbook(tmp_path / "b.xlsx")
    written = book.add_worksheet("s")
    for at, row in enumerate(sheet):
        written.write_row(at, 0, row)
    book.close()
    corpus, said = opened(tmp_path)
    assert ([*corpus["s"].columns], len(corpus["s"])) == (names, rows)
    assert word in said
    assert bool(word) == bool(said), said
    if f"column {names[-1]!r}" in word:
        assert repr(names[-1]) not in opened(tmp_path, hide=[f"s.{names[-1]}"])[1], "what is hidden is not named"


def test_a_kind_of_note_has_one_line_for_all_columns_of_a_file(tmp_path):
    names = [f"n{at}" for at in range(20)]
    rows = [[str(at)] * 20 for at in range(5)] + [["s"] * 12 + ["-"] * 8]
    dates = [["13/02/2020", "NA", "1.5"]] * 6
    lines = [
        ",".join([*names, "day", "na", "x"]),
        *(",".join(row + more) for row, more in zip(rows, dates, strict=True)),
    ]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    _, said = opened(tmp_path)
    assert said.count("the numbers of") == 1
    assert "columns 'n0', 'n1', 'n2', 'n3', 'n4' and 15 more columns stay text" in said
    assert "csv={'t.csv': {'na_values': ['-', 's']}} reads" in said
    frame = opened(tmp_path, csv={"t.csv": {"na_values": ["-", "s"]}})[0]["t"]
    assert [frame[name].dropna().tolist() for name in names] == [[0, 1, 2, 3, 4]] * 20


@pytest.mark.parametrize(
    ("cells", "words", "numbers"),
    [
        ("5|7|NA|-|.|..", ["-", ".", ".."], [5, 7]),
        ("5| - |6|\u2013|n.a.|k.A.", [" - ", "k.A.", "n.a.", "\u2013"], [5, 6]),
        ("12|<5|7|*|Suppressed", ["*", "<5", "Suppressed"], [12, 7]),
        ("12.5|M|T|3.5", ["M", "T"], [12.5, 3.5]),
        ("~12|>100|14|ca. 5", [], [12, 100, 14, 5]),
        ("10,000+|500,000+|5,000+", [], [10000, 500000, 5000]),
        (": |6.3 |7.1 p|-2.5 e", [], [6.3, 7.1, -2.5]),
        ("12*|3[a]|5|7\u2020", [], [12, 3, 5, 7]),
        ("1.5 (0.2)|1.7 (0.3)|n/k", [], [1.5, 1.7]),
        ("12A4|9987|1234|B77C|D9E1", None, []),
        ("0171|5|-", None, []),
        ("Ann|Bo|5|Cy|Di|Eve|7", None, []),
    ],
)
def test_a_column_of_numbers_beside_words_is_named_with_what_reads_it(tmp_path, cells, words, numbers):
    (tmp_path / "t.csv").write_text("id|v\n" + "".join(f'k{at}|"{one}"\n' for at, one in enumerate(cells.split("|"))))
    corpus, said = opened(tmp_path)
    assert said.count("the numbers of column 'v' stay text") == (words is not None)
    if words:
        assert f"{{'na_values': {{'v': {words!r}}}}}}} reads" in said
        assert opened(tmp_path, csv={"na_values": {"v": words}})[0]["t"]["v"].dropna().tolist() == numbers
    elif words is not None:
        how = ".str.replace(',', '').str.extract('(-?[0-9]*[.]?[0-9]+)')[0].astype(float)"
        assert how in said
        assert eval(f"cells{how}", {"cells": corpus["t"]["v"]}).dropna().tolist() == numbers


@pytest.mark.parametrize("rows", ["1,a,2", "Ann,Rom,x"])
def test_a_tsv_that_holds_commas_is_said(tmp_path, rows):
    (tmp_path / "t.tsv").write_text(f"id,name,v\n{rows}\n{rows}\n")
    assert "csv={'t.tsv': {'sep': ','}} reads several" in opened(tmp_path)[1]
    assert opened(tmp_path, csv={"t.tsv": {"sep": ","}})[0]["t"].shape == (2, 3)


def test_sheets_without_cells_are_said_and_formulas_without_values_are_missing(tmp_path):
    pytest.importorskip("python_calamine")
    writer = pytest.importorskip("xlsxwriter").Workbook
    with writer(tmp_path / "none.xlsx") as none, writer(tmp_path / "b.xlsx") as book:
        none.add_worksheet("blank")
        sheet, _ = book.add_worksheet("s"), book.add_worksheet("blank")
        chart = book.add_chart({"type": "line"})
        chart.add_series({"values": "=s!$A$2:$A$3"})
        book.add_chartsheet("chart").set_chart(chart)
        sheet.write_column(0, 0, ["id", 1, 2])
        sheet.write_row(0, 1, ["v", "w"])
        for row in (1, 2):
            sheet.write_formula(row, 1, f"=A{row}*2", None, "")
            sheet.write_formula(row, 2, f"=A{row}*2", None, 2 * row)
    corpus, said = opened(tmp_path)
    assert (corpus["s"]["v"].isna().all(), corpus["s"]["w"].tolist()) == (True, [2, 4])
    assert "b.xlsx: no cell is filled in 'blank', 'chart'" in said
    assert ["none.xlsx has no table" in str(one) for one in corpus.problems] == [True]


@pytest.mark.parametrize(("merged", "column"), [("Italy", ["Italy", "Italy", "France"]), (7, [7, None, "France"])])
def test_cells_merged_down_are_texts_of_each_row(tmp_path, merged, column):
    pytest.importorskip("python_calamine")
    book = pytest.importorskip("xlsxwriter").Workbook(tmp_path / "b.xlsx")
    written = book.add_worksheet("s")
    written.write_column(2, 1, ["Rom", "Ulm", "Nice"])
    for at, text in enumerate(["country", "city"]):
        written.merge_range(0, at, 1, at, text)
    written.merge_range(2, 0, 3, 0, merged)
    written.write(4, 0, "France")
    book.close()
    corpus, said = opened(tmp_path)
    assert [None if pd.isna(cell) else cell for cell in corpus["s"]["country"]] == column
    assert "cells of column 'country' are merged" in said


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_the_mark_of_a_text_says_its_encoding(tmp_path, encoding):
    (tmp_path / "t.csv").write_bytes("id,b\n1,é\n2,x\n".encode(encoding))
    corpus, said = opened(tmp_path)
    assert (corpus["t"]["b"].tolist(), said) == (["é", "x"], "")


@pytest.mark.parametrize(
    ("text", "csv", "rows"),
    [
        ('a,b\n"a","b"\n"c","d\n', {"quoting": 3}, [['"a"', '"b"'], ['"c"', '"d']]),
        ("\n\none,two\n1,2,4\n1,2\n\n1,3\n", {"on_bad_lines": "skip"}, [[1, 2], [1, 3]]),
        ("A;B;C\n1,1,10\n2,0,16\n", {"sep": ",", "header": None, "skiprows": 1}, [[1, 1, 10], [2, 0, 16]]),
        ("a:b\n1:2\n3:4\n", {"sep": ":"}, [[1, 2], [3, 4]]),
        ("a b\n1 2\n3 4\n", {"sep": r"\s+"}, [[1, 2], [3, 4]]),
        ("junk\n\nid,n\n0,a\n1,b\n", {"skiprows": 1}, [[0, "a"], [1, "b"]]),
        ("a,b\nnum,num\n1,2\n3,4\n", {"skiprows": [1]}, [[1, 2], [3, 4]]),
        ("a;b\nx;1.234\ny;12.345\n", {"decimal": ",", "thousands": "."}, [["x", 1234], ["y", 12345]]),
        ("id,v\n1,2\n3,4\n(2 rows)\n", {"skipfooter": 0}, [["1", 2], ["3", 4], ["(2 rows)", None]]),
        ("id,v\n1,2\n3,4\n9,9\n", {"skipfooter": 1}, [[1, 2], [3, 4]]),
        ("id,t\n1,a\n2,\\N\n", {"na_values": ["\\N"]}, [[1, "a"], [2, None]]),
        ("a,b\nx,12.345.678\ny,1.000.000\n", {"thousands": "."}, [["x", 12345678], ["y", 1000000]]),
        ("a,b\n1,2\n?,4\n3,5\n", {"na_values": {"a": ["?"]}}, [[1, 2], [None, 4], [3, 5]]),
    ],
)
def test_the_options_that_messages_name_read_the_file(tmp_path, text, csv, rows):
    (tmp_path / "t.csv").write_text(text)
    frame = opened(tmp_path, csv={"t.csv": csv})[0]["t"]
    assert cells_of(frame) == rows


def test_a_mark_of_utf_8_that_is_written_twice_is_no_part_of_a_name(tmp_path):
    (tmp_path / "t.csv").write_bytes(codecs.BOM_UTF8 * 2 + b"UIC;Jour\n0087;07:30-12:00\n0088;1 234,5\n")
    corpus = tf.open_corpus(tmp_path)
    assert [column.name for column in corpus.profile(corpus.ids[0]).columns] == ["UIC", "Jour"]


CITIES = [["A1", "Rom", 2800], ["B2", "Ulm", 120], ["C3", "Bern", 140]]


def lines_of(cells, delimiter=","):
    return "".join(delimiter.join(map(str, row)) + "\n" for row in cells)


@pytest.mark.parametrize("mark", ["#", "//", "%", ";", "--", "!", "*", "'", "REM", "##"])
@pytest.mark.parametrize(
    ("above", "delimiter"),
    [
        ("{0} Data of the office\n{0}\n{0} 2021, revised, all\n\n", ","),
        ("{0} from Rom, Ulm, Bern\n{0} a, b\n", ","),
        ('{0}Data of the office\'s "open" data\n{0}source: x\n', "|"),
        ("{0} line\n" * 170, "\t"),
    ],
)
def test_comments_above_the_names(tmp_path, mark, above, delimiter):
    text = above.format(mark) + lines_of([["code", "city", "pop"], *CITIES], delimiter)
    (tmp_path / "t.csv").write_text(text)
    corpus, said = opened(tmp_path)
    assert corpus["t"].to_numpy(dtype=object).tolist() == CITIES
    assert list(corpus["t"].columns) == ["code", "city", "pop"]
    assert f"row {text.count(chr(10)) - 3} names the columns" in said


LONG_NAME = "Persons who live here by the count of the year 2019 without those of the camps, all in all (1000)"


@pytest.mark.parametrize(
    ("text", "names", "number", "word"),
    [
        ("# (c) office;;\n#;;\n# As of:;2021;\nid;city;pop\n1;Rom;2\n2;Ulm;3\n", "id city pop", 2, "row 4 names"),
        ("# things\nname,colour\nmilk,white\nbread,brown\n", "name colour", 2, "row 2 names"),
        (f"# x\nNo.;;1\nNr;{LONG_NAME};x\n1;2;3\n2;3;4\n", f"Nr|{LONG_NAME}|x", 2, "row 3 names"),
        ("# things\n1,a,5\n2,b,6\n3,c,7\n", "column_1 column_2 column_3", 3, "like the others"),
        ("# a\nBudget\n\nid,v\n1,2\n2,3\n", "id v", 2, "row 4 names"),
        ("##VCF\n##INFO=<ID=N,Type=I>\n#CHROM\tPOS\n20\t14\n21\t17\n", "#CHROM POS", 2, "row 3 names"),
        ("# the list of names\nname\nAnn\nBo\n", "name", 2, "row 2 names"),
        ("id,v\n# ids are odd\n1,x\n3,y\n", "id v", 2, "1 line of comments among the rows"),
        ("id,v\n1,x\n// second part\n3,y\n", "id v", 2, "1 line of comments among the rows"),
        ("Population,2021,\n,,\nid,v,w\n1,2,3\n3,4,5\n", "id v w", 2, "row 3 names"),
        ("As of:,23.11.2022,\nid,v,w\n1,2,3\n3,4,5\n", "id v w", 2, "row 2 names"),
        ("#,name,score\n1,Ann,5\n2,Bo,6\n", "#|name|score", 2, ""),
        ("# of items,price\n1,2.5\n2,3.5\n", "# of items|price", 2, ""),
        ("*name,*mail\nAnn,x\nBo,y\n", "*name *mail", 2, ""),
        ("tag,n\n#cats,1\n#dogs,\n#mice,3\n", "tag n", 3, ""),
        ("id,v\n1,x\n3,y\n\nSource: Office of Rom, 2021\n", "id v", 2, "notes below"),
        ("id,v\n1,x\n3,y\n* provisional\n** estimated, by us\n", "id v", 2, "notes below"),
        ("id,v,w\n1,x,1\n3,y,1\n1) Without Ulm, with Bern\n", "id v w", 2, "notes below"),
        ("code,text\nA,x y\nNote: a, b\nNote: c, d\nB: e,f\n", "code text", 4, ""),
        ("id,v\n1,x\n2,y\n\nNorth\n3,z\n", "id v", 4, "a blank row is above 'North'"),
        ("a,b, \n1,2, \n3,4, \n", "a b", 2, "column 3 has no name and no cell"),
    ],
)
def test_comments_and_notes_are_no_rows(tmp_path, text, names, number, word):
    (tmp_path / "t.csv").write_text(text)
    corpus, said = opened(tmp_path)
    assert list(corpus["t"].columns) == names.split("|" if "|" in names else " ")
    assert len(corpus["t"]) == number
    assert word in said
    assert bool(word) == bool(said)


def test_a_text_of_utf_8_with_damaged_bytes(tmp_path):
    (tmp_path / "t.csv").write_bytes("name,n\nKöln,1\nZürich,2\nGenève,3\n".encode() + b"Ul\xfd,4\n")
    corpus, said = opened(tmp_path)
    assert corpus["t"]["name"].tolist() == ["Köln", "Zürich", "Genève", "Ul\ufffd"]
    assert "no UTF-8" in said


@pytest.mark.parametrize(
    ("cells", "numbers", "word"),
    [
        (["12kg", "7kg", "3.5kg"], [12, 7, 3.5], "the unit kg"),
        (["1 234 m", "17 m"], [1234, 17], "the unit m"),
        (["12 °C", "-3 °C"], [12, -3], "the unit °C"),
        (["\uff11\uff12\uff0e\uff15", "\uff13"], [12.5, 3], "another script"),
        (["\u0661\u0662\u066b\u0665", "\u0663"], [12.5, 3], "another script"),
        (["\u0967\u0968", "\u0969"], [12, 3], "another script"),
        (["1\u2009234", "5"], [1234, 5], "between thousands"),
        (["1,5E+03", "2,5E-01"], [1500, 0.25], "decimal commas"),
        (["12 kg", "700 g"], None, "different units"),
        (["5 years", "12 years"], None, "str.extract"),
        (["12m", "15m"], None, "str.extract"),
        (["12a", "14b", "7c"], None, ""),
    ],
)
def test_numbers_with_units_and_digits_of_other_scripts(tmp_path, cells, numbers, word):
    (tmp_path / "t.csv").write_text("a;b\n" + "".join(f"{cell};k{at}\n" for at, cell in enumerate(cells)))
    corpus, said = opened(tmp_path)
    assert corpus["t"]["a"].tolist() == (cells if numbers is None else numbers)
    assert word in said
    assert bool(word) == bool(said)
    if "extract" in word:
        assert corpus["t"]["a"].str.extract("([0-9.]+)")[0].astype(float).notna().all(), "as the message says"


MOMENTS = ["2023-12-31T10:00:00", "2024-01-01T00:00:00", "2024-01-15T08:30:00", None]


@pytest.mark.parametrize(
    ("condition", "number"),
    [
        ("at BETWEEN '2024-01-01 00:00:00' AND '2024-01-31 23:59:59'", 2),
        ("at = '2024-01-01'", 1),
        ("at LIKE '2024-01%'", 2),
        ("strftime('%Y', at) = '2024'", 2),
        ("at > (SELECT min(at) FROM ev) AND at < '2024-01-02 00:00'", 1),
    ],
)
@pytest.mark.parametrize("declared", ["TEXT", "DATETIME", ""])
def test_texts_of_moments_in_a_sqlite_file_are_compared_as_moments(tmp_path, declared, condition, number):
    with closing(sqlite3.connect(tmp_path / "e.sqlite")) as connection:
        connection.execute(f"CREATE TABLE ev (id INTEGER PRIMARY KEY, at {declared}, word TEXT)")
        connection.executemany("INSERT INTO ev (at, word) VALUES (?, 'T')", [[one] for one in MOMENTS])
        connection.commit()
    corpus, _ = opened(tmp_path)
    found = tf.exec_sql(corpus)(f"SELECT count(*) AS n, max(at) AS last FROM ev WHERE {condition}")
    assert found["n"].tolist() == [number]
    assert found["last"].tolist()[0] in MOMENTS, "as it is written"


@pytest.mark.parametrize("engine", [None, "duckdb"])
def test_durations_are_no_texts_and_no_bare_integers(tmp_path, engine):
    pytest.importorskip("duckdb")
    frame = pd.DataFrame({"id": [1, 2], "took": pd.to_timedelta(["10h", "2h"])})
    assert tf.exec_sql(tf.open_corpus({"t": frame}))("SELECT max(took) AS m FROM t")["m"].tolist() == [36_000]
    frame.to_parquet(tmp_path / "t.parquet")
    (tmp_path / "o.csv").write_text("a\n1\n")
    assert ("DuckDB reads the durations of column 'took' as integers" in opened(tmp_path, engine=engine)[1]) == bool(
        engine
    )


def test_intervals_of_duckdb_are_durations(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "x.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT INTERVAL (i) HOUR AS took, INTERVAL 2 MONTH AS due FROM range(3) AS r(i)"
        )
    frame = tf.open_corpus(tmp_path / "x.duckdb", progress=False)["t"]
    assert frame["took"].tolist() == [*pd.to_timedelta([0, 1, 2], unit="h")]
    assert frame["due"].tolist()[0].startswith("2 months")


def test_what_was_said_is_said_at_each_opening(tmp_path):
    folder = tmp_path / "f"
    folder.mkdir()
    (folder / "de.csv").write_text("a;b;secret\n1,5;NA;2,5\n2,5;x;3,5\n")
    (folder / "t.csv").write_text("# (c)\nid,day\n1,13/02/2024\n2,01/02/2024\n")
    (folder / "u.csv").write_text("id,day\n1,02/13/2024\n2,02/01/2024\n")
    (folder / "x.html").write_text("<p>")
    corpus, first = opened(folder)
    corpus.save(tmp_path / "kept.catalogue")
    assert sorted(opened(folder)[1].split(" | ")) == sorted(first.split(" | "))
    assert sorted(opened(tmp_path / "kept.catalogue")[1].split(" | ")) == sorted(first.split(" | "))
    assert "secret" in first
    for hide in ("de.secret", "de"):
        assert "secret" not in opened(tmp_path / "kept.catalogue", hide=[hide])[1]
        assert len(opened(folder, hide=[hide])[1]) == len(opened(folder, hide=[hide])[1])
    (folder / "t.csv").write_text("id,day\n1,2024\n")
    opened(folder)
    assert "t.csv" not in opened(folder)[1]


@pytest.mark.parametrize("engine", [None, "duckdb"])
def test_pointers_and_copies_of_files_are_named(tmp_path, engine):
    pytest.importorskip("duckdb")
    for name in ("t.csv", "t.csv.bak", "t.csv.part"):
        (tmp_path / name).write_text("a,b\n1,2\n")
    names = ["u.csv.bak", "v.csv.part", "w.parquet.tmp", "x.jl"]
    pointers = ["p.csv", "p.parquet", "p.json"]
    for name in [*names, *pointers]:
        (tmp_path / name).write_text("version https://git-lfs.github.com/spec/v1\nsize 1\n" if name[0] == "p" else "{}")
    (tmp_path / "z.csv").write_bytes(gzip.compress(b"a,b\n1,2\n"))
    corpus, _ = opened(tmp_path, engine=engine)
    problems = " ".join(map(str, corpus.problems))
    assert [profile.name for profile in corpus] == ["t"]
    assert all(name in problems for name in names + pointers)
    assert (problems.count("git lfs pull"), problems.count("call it z.csv.gz")) == (len(pointers), 1)


def test_lists_are_json_in_sql():
    cells = [list(range(3000)), np.array([1.5, np.nan, 1]), [{"a": dt.date(2024, 1, 1), "b": None}, Decimal("1.5")]]
    run = tf.exec_sql(tf.open_corpus({"t": pd.DataFrame({"a": cells, "big": np.array([2**63, 1, 2], "uint64")})}))
    assert run("SELECT json_extract(a, '$[#-1]') AS last FROM t")["last"].tolist() == [2999, 1, 1.5]
    assert json.loads(run("SELECT a FROM t")["a"].tolist()[2]) == [{"a": "2024-01-01", "b": None}, 1.5]
    with pytest.raises(SQLFailed, match=r"beyond 64 bits.*as text"):
        run("SELECT big FROM t")


@pytest.mark.parametrize("ending", "sql html kml shp npy yaml log fwf gpkg mat xyz".split())
def test_every_file_of_a_folder_is_read_or_named_once_for_its_kind(tmp_path, ending):
    (tmp_path / "a.csv").write_text("id,v\n1,2\n")
    for name in (f"b.{ending}", f"c.{ending}", "README", "LICENSE.txt.md", "x.py", "y.png", "a.csv.md5", "_SUCCESS"):
        (tmp_path / name).write_text("some words\n")
    (problem,) = opened(tmp_path)[0].problems
    assert f"b.{ending} and 1 more .{ending} files are not read here: " in str(problem)

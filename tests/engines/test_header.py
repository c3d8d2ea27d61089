"""Which row names the columns, and which texts are tables."""

import os

import pandas as pd
import pytest

import tagframe as tf
from tagframe.engines.files.header import head_of
from tagframe.errors import UnreadableTable, UnreadableTableWarning
from tests.engines.sources import warned

ROWS = [["id", "name", "2023"], [1, "Ann", 2.5], [2, "Bo", 3.5], [3, "Cy", 4.5]]


@pytest.mark.parametrize(
    ("above", "titles"),
    [
        ([], 0),
        ([["Report"]], 1),
        ([["Report", "", ""], ["", "", ""], ["as of 1.2.2024", "", ""]], 3),
        ([["Report, part 1"], [], []], 3),
        ([["", "group A", "group B"]], 0),  # a first row of names, though it lacks one
        ([["", "", ""]], 1),
        ([[], []], 2),
    ],
)
def test_titles_are_told_from_names(above, titles):
    assert head_of([*above, *ROWS]).above == titles


@pytest.mark.parametrize(("upper", "titles"), [("Volcanoes of the World 4.9", 1), ("Site", 0)])
def test_a_sentence_above_names_that_differ_is_a_title_and_a_word_names_a_group(upper, titles):
    names = ["id", "name", "year", "day", "type", "size"]
    rows = [[number, "Ann", 2000 + number, 1, "x", 2.5] for number in range(5)]
    assert head_of([[upper, "", "", "Downloaded on 24 Feb", "", ""], names, *rows]).above == titles


@pytest.mark.parametrize(
    ("second", "depth"),
    [
        (["Code", "Nom", "Fer"], 2),
        (["Code", "Name", "Iron"], 1),  # the same names again, as where files were put together
        (["b3", "Nom", "Fer"], 1),
        (["Code", "", "Fer"], 1),
    ],
)
def test_the_names_in_another_language_are_no_row_of_data(second, depth):
    rows = [["Code", "Name", "Iron"], second, *([f"a{number}", f"Rice {number}", str(number)] for number in range(9))]
    head = head_of(rows)
    assert (head.depth, head.names) == (depth, ("Code", "Name", "Iron"))
    assert head.labels == (("", "Nom", "Fer") if depth == 2 else ())


@pytest.mark.parametrize("blank", [[["", ""]], [[None, None], [None, None]]])
def test_blank_rows_are_above_names_where_all_cells_are_words(blank):
    """Nothing else is: a title needs numbers below the names."""
    words = [["ARRAY", "LAKE"], ["AGR", "Lake Huron"], ["BBI", "Lake Erie"]]
    assert head_of([*blank, *words]).names == ("ARRAY", "LAKE")
    assert head_of([["Lakes", ""], *words]).names == ("Lakes", "")


@pytest.mark.parametrize(
    "rows",
    [
        [["", "name"], ["a", "Ann"], ["b", "Bo"], ["c", 3]],  # a saved index
        [["note"], ["He came", " left 3"], ["She stayed"], ["4"]],  # sentences with commas
        [["only", "", ""], ["Ann", "x", "y"], ["Bo", "z", "w"]],  # nothing tells names from cells
        [["name", "born"], ["1", "Ann", "1990"], ["2", "Bo", "1985"]],  # names as R writes them, without the index
        [["Report"], ["1", "2", "3"], ["4", "5", "6"]],
        [["Report"]],
        [],
    ],
)
def test_the_first_row_stays_the_header_where_nothing_speaks_for_another(rows):
    assert head_of(rows).above == 0


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("title", ["Budget 2024\n\n", '"Budget\n2024"\nin thousands\n', "Budget 2024{0}{0}\n{0}{0}\n"])
def test_a_csv_file_with_titles_is_read_below_them_and_they_describe_it(tmp_path, title, delimiter):
    lines = "".join(delimiter.join(map(str, row)) + "\n" for row in ROWS)
    (tmp_path / "t.csv").write_text(title.format(delimiter) + lines)
    corpus, said = warned(tmp_path)
    assert corpus["t"].to_dict("list") == {"id": [1, 2, 3], "name": ["Ann", "Bo", "Cy"], "2023": [2.5, 3.5, 4.5]}
    assert corpus.profile("t").description.startswith("Budget 2024")
    assert len(said) == 1
    assert "row 3 names the columns" in said[0]
    (batch,) = tf.read_batches(tmp_path / "t.csv")
    assert batch["name"].tolist() == ["Ann", "Bo", "Cy"]


FRENCH = [["Code géographique", "Libellé", "Population en 2019 (princ)"], ["CODGEO", "LIBGEO", "P19_POP"]]
TOWNS = [["01001", "Abergement", 779], ["01002", "Ambérieu", 254], ["2A004", "Ajaccio", 3]]
ASKED = [["Q1", "Q2[SQ1]", "Q3_1"], ["¿Cuál es su sexo?", "¿Cuántos años tiene?", "¿Cuánto gana al mes?"]]
ANSWERS = [["mujer", 31, 900], ["hombre", 28, 1200], ["mujer", 67, 1100], ["mujer", 45, 950]]
STATIONS = [["Station", "Lufttemperatur", "Windstärke"], ["STATION_ID", "TT_10", "FF_10"]]
DAYS = [["Ulm", 1.5, 2.25], ["Köln", 3.5, 4.0], ["Bonn", 2.5, 1.0]]
MONTHS = [["COD.", "ENE", "FEB", "MAR"], ["KOD.", "URT", "OTS", "MAR"]]
FROST = [["C076", 9, 4, 3], ["C056", 8, 9, 1], ["C035", 0, 1, 0]]


@pytest.mark.parametrize(
    ("head", "rows", "names", "labels"),
    [
        (FRENCH, TOWNS, FRENCH[1], FRENCH[0]),
        ([["Recensement 2019", "", ""], ["", "", ""], *FRENCH], TOWNS, FRENCH[1], FRENCH[0]),
        (ASKED, ANSWERS, ASKED[0], ASKED[1]),
        ([*ASKED, ['{"ImportId":"QID1"}', '{"ImportId":"QID2"}', '{"ImportId":"QID3"}']], ANSWERS, *ASKED),
        ([*STATIONS, ["", "°C", "m/s"]], DAYS, STATIONS[1], ["Station", "Lufttemperatur; °C", "Windstärke; m/s"]),
        ([STATIONS[0], ["-", "°C", "m/s"], STATIONS[1]], DAYS, STATIONS[1],
         ["Station", "Lufttemperatur; °C", "Windstärke; m/s"]),
        ([["Schlüssel", "Einwohner", ""], ["AGS", "EW_M", "EW_W"]], [["a1", 4, 5], ["a2", 6, 7], ["a3", 8, 8]],
         ["AGS", "EW_M", "EW_W"], ["Schlüssel", "Einwohner", "Einwohner"]),
        ([["Comune", "Popolazione 1999", "Popolazione 2000"], ["PRO_COM", "1999", "2000"]], DAYS,
         ["PRO_COM", "1999", "2000"], ["Comune", "Popolazione 1999", "Popolazione 2000"]),
        ([["市区町村", "総人口", "世帯数"], ["area", "A1101", "A7101"]], DAYS,
         ["area", "A1101", "A7101"], ["市区町村", "総人口", "世帯数"]),
        ([["Município", "Idade média", "Renda média"], ["municipio", "idade", "renda"]], DAYS,
         ["municipio", "idade", "renda"], ["Município", "Idade média", "Renda média"]),
        ([MONTHS[0], ["", "", "DAYS OF FROST", ""], MONTHS[1]], FROST, *MONTHS),
        ([MONTHS[0], ["", "", "DAYS OF FROST", ""]], FROST, MONTHS[0], [""] * 4),
        (MONTHS, FROST, *MONTHS),
    ],
)  # fmt: skip
@pytest.mark.parametrize("ending", ["csv", "tsv", "xlsx", "ods", "duckdb"])
def test_codes_name_columns_and_labels_describe_them(tmp_path, head, rows, names, labels, ending):
    cells = pd.DataFrame([*head, *rows])
    if ending in ("xlsx", "ods"):
        pytest.importorskip("python_calamine")
        cells.to_excel(tmp_path / f"t.{ending}", sheet_name="t", index=False, header=False)
    else:
        name, mark = ("t.tsv", "\t") if ending == "tsv" else ("t.csv", ";")
        cells.to_csv(tmp_path / name, sep=mark, index=False, header=False)
    corpus, notes = warned(tmp_path, **({"engine": "duckdb"} if ending == "duckdb" else {}))
    frame, (id,) = corpus[corpus.tables["id"][0]], corpus.tables["id"]
    assert [*frame.columns] == names
    assert frame.to_numpy(dtype=object).tolist() == rows
    assert [one.description for one in corpus.profile(id).columns] == [
        "" if label == name else label for label, name in zip(labels, names, strict=True)
    ]
    assert "the others describe them" in "".join(notes)


def test_labels_and_titles_of_one_byte_a_letter_are_read_in_its_encoding(tmp_path):
    head = "Été 2019\n\nCode géographique;Libellé;Population\nCODGEO;LIBGEO;P19_POP\n"
    text = f"{head}1001;Évry;5\n1002;Alès;7\n1003;Apt;9\n"
    (tmp_path / "t.csv").write_text(text, encoding="cp1252")
    profile = warned(tmp_path)[0].profile("t")
    assert profile.description == "Été 2019"
    assert [one.description for one in profile.columns] == ["Code géographique", "Libellé", "Population"]


@pytest.mark.parametrize(
    "rows",
    [
        [["iata", "city", "lat", "lon"], ["JFK", "New York", 40.6, -73.7], ["LAX", "Los Angeles", 33.9, -118.4]],
        [["Code", "City", "Height", "Runways"], ["JFK", "New York", "unknown", "several"], ["LAX", "Lima", 38, 4],
         ["ORD", "Chicago", 204, 8], ["ATL", "Atlanta", 313, 5]],
        [["Country", "Capital city", "Main language"], ["DE", "BERLIN", "D"], ["FR", "PARIS", "F"], ["IT", "ROM", "I"]],
        [["Product", "Price", "Quantity"], ["Fruits", "", ""], ["Apple", 1.2, 3], ["Pear", 2.2, 4], ["Fig", 3, 1]],
        [["", "Sales 2023", "", ""], ["City", "Q1", "Q2", "Q3"], ["Rom", 1, 2, 3], ["Ulm", 3, 4, 3], ["Bonn", 3, 4, 5]],
        [["Region", "Population by sex", ""], ["name", "male", "female"], ["Rom", 1, 2], ["Ulm", 3, 4], ["Bonn", 3, 4]],
        [["Station", "Temp", "Wind"], ["", "°C", "m/s"], ["A", 1.5, 2], ["B", 3, 4.5], ["C", 3, 4]],
        [["Air temperature", "Pressure"], ["degC", "hPa"], [1.5, 1000], [3, 1001], [3, 1003]],
        [["Country", "City", "Founded", "Left"], ["France", "Paris", 1999, 2004], ["DE", "Ulm", 1950, 2000]],
        [["I", "II", "III"], ["City", "Population", "Area"], ["Rom", 1, 2], ["Ulm", 3, 4], ["Bonn", 3, 5]],
        [["Team", "Points", "Goals"], ["Eastern Conference", "PTS", "GF"], ["Ulm", 5, 6], ["Rom", 7, 8], ["B", 1, 2]],
        [["Shop name", "Price paid", "Code"], ["A1", "B_2", "C3"], ["A1", 5, "x"], ["B2", 6, "y"], ["C3", 7, "z"]],
    ],
)  # fmt: skip
def test_rows_of_data_groups_and_units_are_no_codes(rows):
    assert head_of(rows).labels == ()


def test_a_wide_header_below_titles_is_refused_and_told_separators_find_titles(tmp_path):
    names = [f"c{number}" for number in range(10_001)]
    (tmp_path / "wide.csv").write_text(f"Report\n\n{','.join(names)}\n{','.join('1' * len(names))}\n")
    (tmp_path / "t.csv").write_text("Budget\nid:name, first:sum\n1:Ann, A:2\n2:Bo, B:3\n")
    corpus, said = warned(tmp_path, UnreadableTableWarning, csv={"t.csv": {"sep": ":"}})
    assert corpus["t"]["sum"].tolist() == [2, 3]
    assert corpus.profile("t").description == "Budget"
    assert ["wide.csv has 10,001 columns" in one for one in said] == [True]


def test_all_is_rows_where_the_user_says_so(tmp_path):
    (tmp_path / "t.csv").write_text("Budget,,\n,,\nid,name,sum\n1,Ann,2\n")
    corpus, said = warned(tmp_path, csv={"t.csv": {"skiprows": 0}})
    assert len(corpus["t"]) == 3
    assert "names 1 of 3 columns" in said[0]


def test_a_sheet_with_titles_is_read_below_them(tmp_path):
    frame = pd.DataFrame(ROWS[1:], columns=ROWS[0])
    with pd.ExcelWriter(tmp_path / "staff.xlsx") as file:
        pd.DataFrame([["Staff of the north"], ["in EUR"]]).to_excel(file, sheet_name="a", index=False, header=False)
        frame.to_excel(file, sheet_name="a", index=False, startrow=3)
        frame.to_excel(file, sheet_name="b", index=False)
    corpus, said = warned(tmp_path / "staff.xlsx")
    assert corpus["staff.a"].equals(corpus["staff.b"])
    assert corpus.profile("staff.a").description == "Staff of the north; in EUR"
    assert len(said) == 1
    assert "sheet 'a'" in said[0]


def test_texts_are_tables_if_they_are_written_like_one(tmp_path):
    (tmp_path / "stops.txt").write_text("stop_id,stop_name\nS1,Main St\nS2,Oak\n")
    (tmp_path / "old.psv").write_text("id|sum\n1|2\n2|3\n")
    (tmp_path / "readme.txt").write_text("Read me, please.\nThe stops are in stops.txt.\nBye, and thanks, all.\n")
    (tmp_path / "one.txt").write_text("word\nhello\nworld\n")
    (tmp_path / "closed.txt").write_bytes(b"\x00\x01,\xff\n" * 4)
    os.mkfifo(tmp_path / "pipe.txt")
    (tmp_path / "more.zip").write_bytes(b"PK")
    corpus, said = warned(tmp_path, UnreadableTableWarning)
    assert sorted(corpus.tables["table"]) == ["old", "stops"]
    assert corpus["stops"]["stop_name"].tolist() == ["Main St", "Oak"]
    texts = {"readme.txt": "more cells", "one.txt": "not split", "closed.txt": "zero bytes", "pipe.txt": "no regular"}
    unread = {"more.zip": "unpack it", **texts}
    assert len(said) == len(corpus.problems) == len(unread)
    assert all(any(f"{name} is not read here: " in one and why in one for one in said) for name, why in unread.items())
    assert tf.open_corpus(tmp_path / "stops.txt", progress=False).tables["rows"].tolist() == [2]


def test_a_folder_of_prose_has_no_tables(tmp_path):
    (tmp_path / "letter.txt").write_text("Dear Sir,\nI came, I saw.\nYours\n")
    with pytest.raises(UnreadableTable, match=r"letter\.txt is not read here: most of its rows"):
        tf.open_corpus(tmp_path, progress=False)


@pytest.mark.parametrize("ending", ["csv", "utf-16", "xlsx", "duckdb"])
@pytest.mark.parametrize("title", [[], [["", "frost", "", ""]]])
def test_rows_that_repeat_the_names_are_left_out(tmp_path, ending, title):
    more = [[f"D{at:03}", at, at + 1, at + 2] for at in range(200)]
    rows = [MONTHS[0], *title, *FROST, MONTHS[0], *title, *more, MONTHS[0]]
    if ending == "xlsx":
        pytest.importorskip("python_calamine")
        pd.DataFrame(rows).to_excel(tmp_path / "t.xlsx", sheet_name="t", index=False, header=False)
    else:
        coded = "utf-16" if ending == "utf-16" else "utf-8-sig"
        pd.DataFrame(rows).to_csv(tmp_path / "t.csv", sep=";", index=False, header=False, encoding=coded)
    corpus, notes = warned(tmp_path, **({"engine": "duckdb"} if ending == "duckdb" else {}))
    frame = corpus[corpus.tables["id"][0]]
    assert frame["COD."].tolist() == [row[0] for row in [*FROST, *more]]
    assert frame["FEB"].sum() == sum(row[2] for row in [*FROST, *more])
    assert "that repeat the names are left out" in "".join(notes)


@pytest.mark.parametrize("comment", ["# Updated in May", "# Updated\n# by hand"])
def test_names_after_a_number_sign_name_the_columns_above_comments(tmp_path, comment):
    (tmp_path / "site.tsv").write_text(f"#Site\tState\tOpened\n{comment}\nA51\tUS\t1955\nAGIN\tSU\t1964\n")
    corpus, said = warned(tmp_path)
    assert corpus["site"].columns.tolist() == ["#Site", "State", "Opened"]
    assert corpus["site"]["Opened"].tolist() == [1955, 1964]
    assert "of comments among the rows" in said[0]

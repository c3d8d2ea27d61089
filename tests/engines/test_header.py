"""Which row names the columns, and which texts are tables."""

import os
import warnings

import pandas as pd
import pytest

import tagframe as tf
from tagframe.engines.files.header import head_of
from tagframe.errors import ColumnFormatWarning, UnreadableTable, UnreadableTableWarning

ROWS = [["id", "name", "2023"], [1, "Ann", 2.5], [2, "Bo", 3.5], [3, "Cy", 4.5]]


def opened(source, kind=ColumnFormatWarning, **given):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        corpus = tf.open_corpus(source, progress=False, **given)
    return corpus, [str(one.message) for one in caught if issubclass(one.category, kind)]


@pytest.mark.parametrize(
    ("above", "titles"),
    [
        ([], 0),
        ([["Report"]], 1),
        ([["Report", "", ""], ["", "", ""], ["as of 1.2.2024", "", ""]], 3),
        ([["Report, part 1"], [], []], 3),
        ([["", "group A", "group B"]], 0),  # a first row of names, though it lacks one
    ],
)
def test_titles_are_told_from_names(above, titles):
    assert head_of([*above, *ROWS]).above == titles


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
    corpus, said = opened(tmp_path)
    assert corpus["t"].to_dict("list") == {"id": [1, 2, 3], "name": ["Ann", "Bo", "Cy"], "2023": [2.5, 3.5, 4.5]}
    assert corpus.profile("t").description.startswith("Budget 2024")
    assert len(said) == 1
    assert "row 3 names the columns" in said[0]
    (batch,) = tf.read_batches(tmp_path / "t.csv")
    assert batch["name"].tolist() == ["Ann", "Bo", "Cy"]


def test_a_wide_header_below_titles_is_refused_and_told_separators_find_titles(tmp_path):
    names = [f"c{number}" for number in range(10_001)]
    (tmp_path / "wide.csv").write_text(f"Report\n\n{','.join(names)}\n{','.join('1' * len(names))}\n")
    (tmp_path / "t.csv").write_text("Budget\nid:name, first:sum\n1:Ann, A:2\n2:Bo, B:3\n")
    corpus, said = opened(tmp_path, UnreadableTableWarning, csv={"t.csv": {"sep": ":"}})
    assert corpus["t"]["sum"].tolist() == [2, 3]
    assert corpus.profile("t").description == "Budget"
    assert ["wide.csv has 10,001 columns" in one for one in said] == [True]


def test_all_is_rows_where_the_user_says_so(tmp_path):
    (tmp_path / "t.csv").write_text("Budget,,\n,,\nid,name,sum\n1,Ann,2\n")
    corpus, said = opened(tmp_path, csv={"t.csv": {"skiprows": 0}})
    assert len(corpus["t"]) == 3
    assert "names 1 of 3 columns" in said[0]


def test_a_sheet_with_titles_is_read_below_them(tmp_path):
    frame = pd.DataFrame(ROWS[1:], columns=ROWS[0])
    with pd.ExcelWriter(tmp_path / "staff.xlsx") as file:
        pd.DataFrame([["Staff of the north"], ["in EUR"]]).to_excel(file, sheet_name="a", index=False, header=False)
        frame.to_excel(file, sheet_name="a", index=False, startrow=3)
        frame.to_excel(file, sheet_name="b", index=False)
    corpus, said = opened(tmp_path / "staff.xlsx")
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
    corpus, said = opened(tmp_path, UnreadableTableWarning)
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

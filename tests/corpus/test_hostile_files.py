"""Each file of ``hostile_files.py`` in a folder with good ones: it is named, and nothing else is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pandas as pd
import pytest

import tagframe as tf
from tagframe.engines.files import limits
from tagframe.engines.files.workbooks import workbook_rows
from tagframe.errors import InvalidArgument, SourceNotFound, UnreadableTable
from tagframe.evaluation import check
from tagframe.semantic.descriptions import descriptions_in
from tests.corpus import hostile_files as hostile

pytest.importorskip("python_calamine", reason="the extra 'excel' is not installed")
if not hasattr(os, "mkfifo"):
    pytest.skip("this system has no pipes in folders", allow_module_level=True)

MOST_MEMORY = 1024
"""Megabytes."""


def became(names: list[str], folder: Path) -> list[dict]:
    """What became of each, opened by one process of its own, which is ended where it never ends."""
    for name in names:
        (folder / name).mkdir(parents=True)
        hostile.write(name, folder / name)
    command = [sys.executable, "-m", "tests.corpus.hostile_files", str(folder), *names]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False, env=env)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.slow
def test_a_hostile_file_is_named_and_loses_nothing_else(tmp_path: Path):
    names = list(hostile.HOSTILE)
    found = became(names, tmp_path)
    assert [one["name"] for one in found] == names, "it died"
    assert [one for one in found if "raw" in one or one["lost"]] == []
    unnamed = [one["name"] for one in found if not any(Path(one["name"]).name in said for said in one["said"])]
    assert [name for name in unnamed if name not in hostile.HARMLESS and not name.startswith("statements/")] == []
    assert [one["name"] for one in found if not one["said"] and one["name"] not in hostile.HARMLESS] == []
    assert max(one["memory"] for one in found) < MOST_MEMORY


# --- what is large, or far apart, and is read


@pytest.mark.parametrize(
    ("cells", "rows", "columns"),
    [(("A1", "Z30000"), 30_000, 26), (("C4",), 4, 3), (("A1", "A900000"), 900_000, 1), (("A1", "XA2"), 2, 625)],
)
def test_cells_far_apart_are_read_where_all_between_fit(
    tmp_path: Path, cells: tuple[str, ...], rows: int, columns: int
):
    hostile.workbook(hostile.cells(*cells))(tmp_path / "far.xlsx")
    found = workbook_rows(tmp_path / "far.xlsx")["s1"]
    assert (len(found), {len(row) for row in found}) == (rows, {columns})
    assert found[-1][-1 if len(cells) == 1 or columns == 1 else columns - 1] == 1


def test_a_workbook_of_more_cells_is_read_where_its_file_is_as_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    hostile.workbook(hostile.grid(300, 100))(tmp_path / "dense.xlsx")
    size = (tmp_path / "dense.xlsx").stat().st_size
    monkeypatch.setattr(limits, "FREE_WORKBOOK_CELLS", 29_999)
    with pytest.raises(UnreadableTable, match=r"goes to row 300 and column 100, .* 29,999 cells at most.*Ctrl\+End"):
        workbook_rows(tmp_path / "dense.xlsx")
    monkeypatch.setattr(limits, "WORKBOOK_CELLS_A_BYTE", 30_000 / size)
    assert len(workbook_rows(tmp_path / "dense.xlsx")["s1"]) == 300


def test_a_table_of_the_most_columns_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "COLUMNS", 50)
    for columns in (50, 51):
        frame = pd.DataFrame([[1] * columns], columns=[f"c{number}" for number in range(columns)])
        frame.to_csv(tmp_path / f"c{columns}.csv", index=False)
        frame.to_parquet(tmp_path / f"p{columns}.parquet")
    with pytest.warns(UserWarning, match="51 columns; a table of a file has 50 at most"):
        corpus = tf.open_corpus(tmp_path, progress=False)
    assert {corpus.profile(id).name for id in corpus.ids} == {"c50", "p50"}
    assert len(corpus.problems) == 2


def test_texts_with_many_commas_are_no_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "COLUMNS", 50)
    (tmp_path / "said.csv").write_text(f'who,what\nAda,"{"well, " * 200}"\nBo,"{"so, " * 200}"\n')
    corpus = tf.open_corpus(tmp_path / "said.csv", progress=False)
    assert len(corpus["said"]) == 2


@pytest.mark.slow
def test_a_file_that_the_folder_cannot_read_is_looked_at_again(tmp_path: Path):
    (tmp_path / "good.csv").write_text("a\n1\n")
    hostile.workbook(hostile.cells("A1", hostile.FAR))(tmp_path / "far.xlsx")
    with pytest.warns(UserWarning, match=r"far\.xlsx"):
        tf.open_corpus(tmp_path, progress=False)
    with pytest.warns(UserWarning, match=r"far\.xlsx"):
        assert len(tf.open_corpus(tmp_path, progress=False).problems) == 1
    hostile.workbook(hostile.cells("A1", "B2"))(tmp_path / "far.xlsx")
    assert len(tf.open_corpus(tmp_path, progress=False).ids) == 2


def test_a_pipe_is_no_source(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe.csv")
    found: list[BaseException] = []

    def work() -> None:
        try:
            tf.open_corpus(tmp_path / "pipe.csv")
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(60)
    assert [type(error) for error in found] == [UnreadableTable]
    assert "no regular file" in str(found[0])


# --- JSON, names, SQL


def test_a_baseline_nested_deep_is_none(tmp_path: Path):
    (tmp_path / "then.json").write_text("[" * 100_000)
    corpus = tf.open_corpus({"a": pd.DataFrame({"b": [1]})})
    with pytest.raises(InvalidArgument, match="was not written by"):
        check(corpus, tmp_path / "then.json")


@pytest.mark.parametrize("name", ["x" * 300, f"{'x' * 300}.csv"])
def test_a_name_that_is_too_long_is_that_of_no_file(tmp_path: Path, name: str):
    for call in (tf.open_corpus, lambda path: tf.open_corpus(schema=path)):
        with pytest.raises(SourceNotFound, match="there is no file"):
            call(tmp_path / name)
    with pytest.raises(SourceNotFound, match="of descriptions"):
        descriptions_in(tmp_path / name)


def test_a_clause_nested_deep_is_left_out_of_its_column():
    corpus = tf.open_corpus(schema="CREATE TABLE t (a INT CHECK (a > " + "- " * 40_000 + "1))")
    assert [column.declared_type for column in corpus.profile("t").columns] == ["INT"]


def test_a_schema_nested_deep_is_read_or_refused(tmp_path: Path):
    deep = "CREATE TABLE t (a " + "ARRAY<" * 40_000 + "INT" + ">" * 40_000 + ", b INT)"
    assert [len(column.declared_type) for column in tf.open_corpus(schema=deep).profile("t").columns] == [200, 3]
    text = "CREATE TABLE t (a INT DEFAULT " + "(" * 40_000
    (tmp_path / "schema.sql").write_text(text)
    for schema in (text, tmp_path / "schema.sql"):
        with pytest.raises(InvalidArgument, match="the schema does not parse"):
            tf.open_corpus(schema=schema)
    (tmp_path / "schema.sql").write_bytes(b"CREATE TABLE t (a INT) -- \xff")
    with pytest.raises(InvalidArgument, match="cannot be read as statements in UTF-8"):
        tf.open_corpus(schema=tmp_path / "schema.sql")


# --- a catalogue that somebody edited

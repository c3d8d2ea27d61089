from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import tagframe as tf
from tagframe.errors import ColumnNotFound, InvalidArgument, SourceNotFound, UnreadableTable


@pytest.fixture
def sales() -> pd.DataFrame:
    generator = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "id": range(1_000),
            "place": pd.array(generator.choice(["Rome", "Oslo", "Lima"], 1_000), dtype=object),
            "amount": pd.array(generator.integers(0, 9, 1_000), dtype="Int64"),
        }
    ).assign(amount=lambda frame: frame["amount"].mask(frame["id"] % 10 == 0))


@pytest.fixture(params=["parquet", "csv"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, sales: pd.DataFrame) -> Path:
    for number, start in enumerate(range(0, 1_000, 300)):
        part = sales.iloc[start : start + 300]
        if request.param == "csv":
            part.to_csv(tmp_path / f"part{number}.csv", index=False)
        else:
            part.to_parquet(tmp_path / f"part{number}.parquet", index=False)
    return tmp_path


def test_all_rows_in_order_in_batches_of_one_size(folder: Path, sales: pd.DataFrame):
    batches = list(tf.read_batches(folder, rows=128))
    assert [len(batch) for batch in batches] == [128] * 7 + [104]
    pd.testing.assert_frame_equal(pd.concat(batches), sales)
    assert batches[2].index[0] == 256


def test_a_pattern_and_a_file(folder: Path):
    suffix = next(folder.iterdir()).suffix
    assert len(pd.concat(tf.read_batches(str(folder / f"*0{suffix}")))) == 300
    assert len(pd.concat(tf.read_batches(folder / f"part3{suffix}"))) == 100


def test_csv_files_in_batches_are_read_as_they_are_written(tmp_path: Path):
    """Each by its own delimiter and encoding; a column that one of them lacks is null there."""
    (tmp_path / "a.csv").write_bytes("ort;zahl\nKöln;7\nBonn;8\n".encode("cp1252"))
    (tmp_path / "b.tsv").write_text("ort\tjahr\nÅrhus\t2024\n", encoding="utf-16")
    found = pd.concat(tf.read_batches(tmp_path, rows=2))
    assert found["ort"].tolist() == ["Köln", "Bonn", "Århus"]
    assert found["zahl"].tolist()[:2] == [7, 8]
    assert found["jahr"].isna().tolist() == [True, True, False]


def test_folders_that_name_values_are_columns(tmp_path: Path):
    for year in (2023, 2024):
        (tmp_path / f"year={year}").mkdir()
        pd.DataFrame({"n": [year * 10]}).to_parquet(tmp_path / f"year={year}" / "a.parquet", index=False)
    whole = pd.concat(tf.read_batches(tmp_path))
    assert whole.to_dict("list") == {"n": [20230, 20240], "year": [2023, 2024]}
    assert len(pd.concat(tf.read_batches(tmp_path / "*" / "*.parquet", columns=["year"]))) == 2


def test_files_of_several_shapes_are_one_table(tmp_path: Path):
    pd.DataFrame({"a": [1], "b": [None]}).to_parquet(tmp_path / "1.parquet", index=False)
    pd.DataFrame({"a": [2], "b": ["x"], "c": [0.5]}).to_parquet(tmp_path / "2.parquet", index=False)
    whole = pd.concat(tf.read_batches(tmp_path, rows=1))
    assert whole["b"].isna().tolist() == [True, False]
    assert whole["c"].isna().tolist() == [True, False]


def test_the_type_of_a_csv_column_is_that_of_all_its_rows(tmp_path: Path):
    pd.DataFrame({"zip": ["501", "77"], "n": [1, 2], "t": ["7", "8"]}).to_csv(tmp_path / "1.csv", index=False)
    pd.DataFrame({"zip": ["00501"], "n": [2.5], "t": ["nine"]}).to_csv(tmp_path / "2.csv", index=False)
    batches = list(tf.read_batches(tmp_path, rows=1))
    assert [batch["zip"].iloc[0] for batch in batches] == ["501", "77", "00501"]
    assert [batch["n"].iloc[0] for batch in batches] == [1.0, 2.0, 2.5]
    assert {str(batch["n"].dtype) for batch in batches} == {"float64"}
    assert [batch["t"].iloc[0] for batch in batches] == ["7", "8", "nine"]


def test_what_cannot_be_read_is_named(tmp_path: Path):
    with pytest.raises(SourceNotFound, match="no file or folder"):
        tf.read_batches(tmp_path / "nowhere")
    with pytest.raises(SourceNotFound, match=r"\.parquet"):
        tf.read_batches(tmp_path)
    pd.DataFrame({"a": [1]}).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(ColumnNotFound, match="'b'"):
        tf.read_batches(tmp_path, columns=["b"])
    for argument in ({"columns": "a"}, {"rows": 0}):
        with pytest.raises(InvalidArgument):
            tf.read_batches(tmp_path, **argument)
    (tmp_path / "b.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(UnreadableTable, match=r"b\.parquet"):
        tf.read_batches(tmp_path)
    (tmp_path / "b.parquet").unlink()
    (tmp_path / "b.csv").write_text("a\n1\n")
    with pytest.raises(UnreadableTable, match="Parquet and CSV"):
        tf.read_batches(tmp_path)
    (tmp_path / "delta" / "_delta_log").mkdir(parents=True)
    with pytest.raises(UnreadableTable, match="Delta"):
        tf.read_batches(tmp_path / "delta")


def test_a_file_that_is_cut_off_before_it_is_read_is_named(tmp_path: Path, sales: pd.DataFrame):
    for number in range(2):
        sales.to_parquet(tmp_path / f"{number}.parquet", index=False)
    batches = tf.read_batches(tmp_path, rows=500)
    (tmp_path / "1.parquet").write_bytes(b"PAR1")
    with pytest.raises(UnreadableTable, match=r"1\.parquet"):
        list(batches)


@pytest.mark.slow
@pytest.mark.pandas2
@pytest.mark.parametrize("group", [5_000, 100_000])
def test_a_slow_consumer_of_parquet_holds_a_few_batches_and_not_the_file(tmp_path: Path, group: int):
    texts = np.random.default_rng(0).bytes(20_000_000).hex()
    frame = pd.DataFrame({"t": [texts[start : start + 400] for start in range(0, len(texts), 400)]})
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=group, compression=None)
    before = pa.total_allocated_bytes()
    held = [pa.total_allocated_bytes() - before for _ in tf.read_batches(tmp_path, rows=1_000)]
    assert len(held) == 100
    assert max(held) < 8_000_000  # of 40 MB

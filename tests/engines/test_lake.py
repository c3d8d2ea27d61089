from __future__ import annotations

import datetime as dt
import json
import os
import pickle
import re
import shutil
import struct
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tagframe as tf
from tagframe.engines.base import Readable, SQLLimits, TableStatistics, UntrustedStatement
from tagframe.engines.duckdb import engine as module
from tagframe.engines.duckdb.engine import LakeEngine
from tagframe.engines.duckdb.tables import lake_tables
from tagframe.errors import (
    ColumnFormatWarning,
    FanOut,
    MissingExtra,
    SourceNotFound,
    SQLFailed,
    TablesStackedWarning,
    UnreadableTable,
    UnreadableTableWarning,
)
from tagframe.merging import plan_tables, run_plan

duckdb = pytest.importorskip("duckdb")


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """Orders in folders of years, customers in one file."""
    folder = tmp_path / "shop"
    for year in (2023, 2024):
        (folder / "orders" / f"year={year}").mkdir(parents=True)
        ids = np.arange(5) + 5 * (year - 2023)
        orders = pd.DataFrame({"order": ids, "customer": pd.array([1, 2, None, 3, 9], "Int64"), "text": "it's"})
        orders.to_parquet(folder / "orders" / f"year={year}" / "a.parquet", index=False)
    pd.DataFrame({"customer": [1, 2, 3], "name": ["Ann", "Bo", "Cy"]}).to_parquet(folder / "customers.parquet")
    return folder


@pytest.fixture
def engine(shop: Path) -> LakeEngine:
    return LakeEngine(shop, tuple(lake_tables(shop)))


# --- which files are one table ----------------------------------------------------------------------------------------


def test_a_partitioned_folder_is_one_table_and_the_files_beside_it_go_along(shop: Path):
    (shop / "notes.csv").write_text("a,b\n1,x\n")
    corpus = tf.open_corpus(shop)
    assert corpus.ids == ("shop.customers", "shop.notes", "shop.orders")
    assert [corpus.engine(id).kind for id in corpus.ids] == ["duckdb", "csv", "duckdb"]  # type: ignore[union-attr]
    assert corpus.profile("orders").rows == 10
    assert corpus.profile("orders").column("customer").nulls == 2
    assert corpus.read("orders", ["year"])["year"].tolist() == [2023] * 5 + [2024] * 5


def test_a_folder_that_is_opened_in_two_ways_keeps_what_is_known_of_its_values(shop: Path):
    for engine in (None, "duckdb", None):
        corpus = tf.open_corpus(shop, engine=engine)
        for table in ("orders", "customers"):
            sketch = corpus.profile(table).column("customer").sketch
            assert len(sketch.hashes)  # it warns where the catalogue has lost them


def test_small_files_by_themselves_are_read_as_before(tmp_path: Path):
    pd.DataFrame({"a": [1]}).to_parquet(tmp_path / "one.parquet")
    pd.DataFrame({"b": [1]}).to_parquet(tmp_path / "two.parquet")
    corpus = tf.open_corpus(tmp_path)
    assert {corpus.engine(id).kind for id in corpus.ids} == {"parquet"}  # type: ignore[union-attr]
    asked = tf.open_corpus(tmp_path, engine="duckdb")
    assert asked.ids == corpus.ids
    assert {asked.engine(id).kind for id in asked.ids} == {"duckdb"}  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("stems", "is_one"),
    [
        (("0", "1"), True),
        (("part-00000-a1b2", "part-00001-a1b2"), True),
        (("2024-01", "2024-02"), True),
        (("data_0", "data_1"), True),
        (("2014_players", "2014_clubs"), False),
        (("01-customers", "02-orders"), False),
    ],
)
def test_only_numbers_alone_name_parts(tmp_path: Path, stems: tuple[str, str], is_one: bool):
    (tmp_path / "below").mkdir()
    for stem in stems:
        pd.DataFrame({"n": [1]}).to_parquet(tmp_path / "below" / f"{stem}.parquet", index=False)
    assert len(tf.open_corpus(tmp_path, engine="duckdb").ids) == (1 if is_one else 2)


def test_numbered_parts_are_one_table_and_a_pattern_too(tmp_path: Path):
    (tmp_path / "sales").mkdir()
    for number in range(3):
        pd.DataFrame({"n": [number]}).to_parquet(tmp_path / "sales" / f"part-{number}.parquet", index=False)
    corpus = tf.open_corpus(tmp_path)
    assert [profile.name for profile in corpus] == ["sales"]
    assert corpus.read("sales")["n"].tolist() == [0, 1, 2]
    some = tf.open_corpus(str(tmp_path / "sales" / "part-[01].parquet"))
    assert some.read(some.ids[0])["n"].tolist() == [0, 1]
    with pytest.raises(SourceNotFound, match="part-9"):
        tf.open_corpus(str(tmp_path / "sales" / "part-9*.parquet"))


def test_without_duckdb_files_are_read_as_before_and_it_is_said(shop: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tagframe.engines.duckdb.engine.has_duckdb", lambda: False)
    monkeypatch.setattr("tagframe.engines.duckdb.tables.has_duckdb", lambda: False)
    with pytest.warns(UnreadableTableWarning, match=r"tagframe\[duckdb\]"):
        corpus = tf.open_corpus(shop)
    assert {corpus.engine(id).kind for id in corpus.ids} == {"parquet"}  # type: ignore[union-attr]
    with pytest.raises(MissingExtra, match="duckdb"):
        tf.open_corpus(shop, engine="duckdb")


def test_a_lake_that_was_opened_is_not_profiled_again(shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    first = tf.open_corpus(shop)
    with monkeypatch.context() as patch:
        patch.setattr(LakeEngine, "chunks", None)
        again = tf.open_corpus(shop)
    assert [profile.rows for profile in again] == [profile.rows for profile in first]
    first.save(tmp_path / "catalogue.sqlite")
    assert tf.open_corpus(tmp_path / "catalogue.sqlite").read("customers")["name"].tolist() == ["Ann", "Bo", "Cy"]
    assert pickle.loads(pickle.dumps(first)).read("customers")["name"].tolist() == ["Ann", "Bo", "Cy"]
    pd.DataFrame({"order": [99], "customer": [1], "text": ["new"]}).to_parquet(
        shop / "orders" / "year=2024" / "b.parquet"
    )
    assert tf.open_corpus(shop).profile("orders").rows == 11


# --- what is known of them --------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_large_table_is_known_by_its_footers_and_a_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "FEW_CELLS", 100)
    generator = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "id": range(60_000),
            "kind": generator.integers(0, 4, 60_000),
            "share": np.where(np.arange(60_000) % 10, generator.random(60_000), np.nan),
            "name": [f"n{number % 7}" for number in range(60_000)],
        }
    )
    (tmp_path / "big").mkdir()
    for part in range(2):
        path = tmp_path / "big" / f"{part}.parquet"
        table.iloc[part * 30_000 : (part + 1) * 30_000].to_parquet(path, index=False, row_group_size=5_000)
    profile = tf.open_corpus(tmp_path).profile("big")
    assert (profile.rows, profile.estimated) == (60_000, True)
    ids, kinds, shares, names = profile.columns
    assert (ids.nulls, ids.distinct, ids.minimum, ids.maximum) == (0, 60_000, "0", "59999")
    assert (kinds.distinct, kinds.sketch.complete) == (4, True)  # type: ignore[union-attr]
    assert shares.nulls == 6_000
    assert names.distinct == 7
    assert (names.sketch.complete, names.sketch.sampled) == (False, True)  # type: ignore[union-attr]


def test_what_footers_do_not_tell_of_all_rows_is_no_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "FEW_CELLS", 10)
    (tmp_path / "big").mkdir()
    pq.write_table(pa.table({"id": [1, 2], "note": ["a", None]}), tmp_path / "big" / "0.parquet")
    pq.write_table(pa.table({"id": range(3, 11)}), tmp_path / "big" / "1.parquet")
    pq.write_table(pa.table({"id": pa.array([], pa.int64())}), tmp_path / "big" / "2.parquet")
    days = pa.array([0, 10_000_000] * 10, pa.date32())  # every second one is after the year 9999
    pq.write_table(pa.table({"day": days}), tmp_path / "late.parquet")
    with pytest.warns(TablesStackedWarning, match=r"2 of its 3 files lack .*: 1\.parquet lacks note"):
        engine = LakeEngine(tmp_path, tuple(lake_tables(tmp_path)))
    by_name = {shape.name: shape for shape in engine.shapes()}
    known, late = engine.statistics([by_name["big"], by_name["late.parquet"]])
    assert isinstance(known, TableStatistics)
    id, note = known.columns or ()
    assert (known.rows, id.nulls, id.minimum, id.maximum) == (10, 0, 1, 10)
    assert note.nulls == 9  # two files lack it
    assert isinstance(late, UnreadableTable)


@pytest.mark.slow
def test_delta_counts_by_its_log_and_reads_what_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    deltalake = pytest.importorskip("deltalake")
    folder = str(tmp_path / "sales")
    rows = pa.table({"id": range(1_000), "day": ["mo", "tu"] * 500})
    deltalake.write_deltalake(folder, rows, partition_by=["day"])
    deltalake.DeltaTable(folder).delete("id < 100")
    monkeypatch.setattr(module, "FEW_CELLS", 100)
    corpus = tf.open_corpus(tmp_path)
    profile = corpus.profile("sales")
    assert (profile.rows, profile.column("id").minimum) == (900, "100")
    assert sorted(corpus.read("sales")["id"]) == list(range(100, 1_000))
    assert tf.exec_sql(corpus)("SELECT count(*) AS n FROM sales WHERE day = 'mo'")["n"].tolist() == [450]


def test_a_log_that_lies_of_its_files_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    deltalake = pytest.importorskip("deltalake")
    folder = tmp_path / "lake" / "sales"
    deltalake.write_deltalake(str(folder), pa.table({"id": [1, 2, None], "day": ["mo", "tu", "we"]}))

    def lie(entry: dict[str, Any]) -> None:
        if "add" in entry:
            told = {"numRecords": 10**9, "nullCount": {"id": 10**8, "day": 7}, "minValues": {"id": -5},
                    "maxValues": {"id": 10**9}}  # fmt: skip
            entry["add"]["stats"] = json.dumps(told)

    rewritten(folder, 0, None, lie)
    for few in (module.FEW_CELLS, 1):
        monkeypatch.setattr(module, "FEW_CELLS", few)
        profile = tf.open_corpus(tmp_path / "lake", catalogue=tmp_path / f"{few}.sqlite").profile("sales")
        column = profile.column("id")
        assert (profile.rows, column.nulls, column.minimum, column.maximum) == (3, 1, "1", "2")
        assert profile.column("day").nulls == 0


_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def deletion_vector(rows: list[int]) -> dict[str, object]:
    """As the protocol of Delta has it, in the log itself: a RoaringBitmapArray of one array, in Z85."""
    array = struct.pack("<IIHHI", 12346, 1, 0, len(rows) - 1, 16) + struct.pack(f"<{len(rows)}H", *rows)
    data = struct.pack("<IQI", 1681511377, 1, 0) + array
    padded, text = data + bytes(-len(data) % 4), ""
    for start in range(0, len(padded), 4):
        number = int.from_bytes(padded[start : start + 4], "big")
        text += "".join(_Z85[number // 85**digit % 85] for digit in (4, 3, 2, 1, 0))
    return {"storageType": "i", "pathOrInlineDv": text, "sizeInBytes": len(data), "cardinality": len(rows)}


def rewritten(folder: Path, version: int, features: list[str] | None, change: Callable[[dict[str, Any]], None]) -> None:
    """The log of a Delta table with reader features, if any, and each of its actions changed."""
    log = folder / "_delta_log" / f"{version:020}.json"
    entries = [json.loads(line) for line in log.read_text().splitlines()]
    for entry in entries:
        if "protocol" in entry and features is not None:
            entry["protocol"] = {"minReaderVersion": 3, "minWriterVersion": 7,
                                 "readerFeatures": features, "writerFeatures": features}  # fmt: skip
        change(entry)
    log.write_text("\n".join(map(json.dumps, entries)))


@pytest.fixture
def with_deletions(tmp_path: Path) -> Path:
    """Two files of a Delta table, of which a deletion vector each has two rows deleted."""
    deltalake = pytest.importorskip("deltalake")
    folder = tmp_path / "lake" / "sales"
    rows = pa.table({"id": range(20), "day": ["mo", "it's", "tu", 'w"e'] * 5})
    deltalake.write_deltalake(str(folder), rows.slice(0, 10))
    deltalake.write_deltalake(str(folder), rows.slice(10), mode="append")
    for version in (0, 1):
        rewritten(folder, version, ["deletionVectors"],
                  lambda entry: entry.get("add", {}).update(deletionVector=deletion_vector([2, 5])))  # fmt: skip
    return folder


def test_rows_that_a_deletion_vector_deletes_are_not_there(with_deletions: Path):
    corpus = tf.open_corpus(with_deletions.parent)
    kept = [number for number in range(20) if number % 10 not in (2, 5)]
    assert sorted(corpus.read("sales")["id"]) == kept
    assert corpus.read("sales")["id"].tolist() == corpus.read("sales")["id"].tolist()
    assert (corpus.profile("sales").rows, corpus.profile("sales").column("id").distinct) == (16, 16)
    execute = tf.exec_sql(corpus)
    assert execute("SELECT a.id FROM sales a JOIN sales b USING (id) WHERE a.day = 'it''s' ORDER BY 1")[
        "id"
    ].tolist() == [number for number in kept if number % 4 == 1]
    assert execute("SELECT count(*) AS n FROM sales WHERE id >= 12 AND day <> 'tu'")["n"].tolist() == [
        sum(number >= 12 and number % 4 != 2 for number in kept)
    ]
    found, report = run_plan(plan_tables(corpus, corpus.ids), corpus, where={"day": 'w"e'})
    assert (found["id"].tolist(), report.engine) == ([n for n in corpus.read("sales")["id"] if n % 4 == 3], "duckdb")


def test_a_file_of_a_log_that_is_gone_is_no_fault_of_the_statement(tmp_path: Path):
    folder = tmp_path / "lake" / "sales"
    pytest.importorskip("deltalake").write_deltalake(str(folder), pa.table({"id": [1, 2]}))
    corpus = tf.open_corpus(folder.parent)
    next(folder.glob("*.parquet")).unlink()
    for work in (lambda: corpus.read("sales"), lambda: tf.exec_sql(corpus)("SELECT sum(id) AS n FROM sales")):
        with pytest.raises(UnreadableTable, match=r"part-0000"):
            work()


@pytest.mark.parametrize("above", ["lake", "id=9"])
def test_a_delta_table_has_the_types_of_its_log_and_the_values_of_its_folders(tmp_path: Path, above: str):
    deltalake = pytest.importorskip("deltalake")
    folder, days = str(tmp_path / above / "sales"), [dt.date(2024, 1, 1), None, dt.date(1900, 1, 1)]
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int16()), "place": ["a b", "c%d/e", "\u00fc=1"], "day": days})
    deltalake.write_deltalake(folder, rows, partition_by=["place", "day"])
    deltalake.DeltaTable(folder).alter.add_columns([deltalake.Field("later", deltalake.schema.PrimitiveType("string"))])
    frame = tf.open_corpus(tmp_path / above).read("sales").sort_values("id")
    assert (str(frame["id"].dtype), frame["later"].isna().all()) == ("int16", True)
    assert [*zip(frame["place"], frame["day"], strict=True)] == [*zip(rows["place"].to_pylist(), days, strict=True)]


@pytest.mark.slow
def test_columns_that_a_log_maps_are_read_by_their_names(tmp_path: Path):
    deltalake = pytest.importorskip("deltalake")
    folder = tmp_path / "lake" / "sales"
    deltalake.write_deltalake(str(folder), pa.table({"a": [1, 2], "b": ["x", "y"]}))

    def renamed(entry: dict[str, Any]) -> None:
        if "metaData" in entry:
            schema = json.loads(entry["metaData"]["schemaString"])
            for number, (field, name) in enumerate(zip(schema["fields"], ("id", "called so"), strict=True), start=1):
                field["metadata"] = {
                    "delta.columnMapping.id": number, "delta.columnMapping.physicalName": field["name"],
                }  # fmt: skip
                field["name"] = name
            entry["metaData"]["schemaString"] = json.dumps(schema)
            entry["metaData"]["configuration"]["delta.columnMapping.mode"] = "name"

    rewritten(folder, 0, ["columnMapping"], renamed)
    corpus = tf.open_corpus(tmp_path / "lake")
    assert corpus.read("sales").to_dict("list") == {"id": [1, 2], "called so": ["x", "y"]}
    assert tf.exec_sql(corpus)('SELECT "called so" AS c FROM sales WHERE id > 1')["c"].tolist() == ["y"]


def test_delta_that_deltalake_does_not_read_is_refused_by_name(tmp_path: Path):
    deltalake = pytest.importorskip("deltalake")
    deltalake.write_deltalake(str(tmp_path / "sales"), pa.table({"id": [1, 2]}))
    rewritten(tmp_path / "sales", 0, ["variantType", "deletionVectors"], lambda entry: None)
    with pytest.raises(UnreadableTable, match="variantType"):
        tf.open_corpus(tmp_path)


def iceberg(tmp_path: Path, rows: pa.Table) -> Any:
    catalog = pytest.importorskip("pyiceberg.catalog.sql")
    tables = catalog.SqlCatalog("c", uri=f"sqlite:///{tmp_path}/.c.db", warehouse=f"file://{tmp_path}/.w")
    tables.create_namespace("n")
    table = tables.create_table("n.t", schema=rows.schema, location=f"file://{tmp_path}/ice")
    table.append(rows)
    return table


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_iceberg_reads_what_counts(tmp_path: Path):
    iceberg(tmp_path, pa.table({"a": [1, 2, 3]})).delete("a == 2")
    assert sorted(tf.open_corpus(tmp_path).read("ice")["a"]) == [1, 3]


def metadata_changed(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """The newest metadata of an Iceberg table, changed."""
    newest = max((folder / "metadata").glob("*.metadata.json"))
    metadata = json.loads(newest.read_text())
    change(metadata)
    newest.write_text(json.dumps(metadata))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_iceberg_that_names_another_machine_is_refused_without_a_word_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    pytest.importorskip("pyiceberg.io.pyarrow")
    iceberg(tmp_path, pa.table({"a": [1, 2, 3]}))

    def elsewhere(metadata: dict[str, Any]) -> None:
        metadata["location"] = "s3://bucket/ice"
        for snapshot in metadata["snapshots"]:
            snapshot["manifest-list"] = "s3://bucket/ice/snap.avro"

    metadata_changed(tmp_path / "ice", elsewhere)
    for name in ("S3FileSystem", "resolve_s3_region"):
        monkeypatch.setattr(f"pyarrow.fs.{name}", lambda *_, **__: pytest.fail("it asks the network"))
    with pytest.raises(
        UnreadableTable, match=r"it refers to s3://bucket/ice/snap\.avro, but only files on this machine"
    ):
        tf.open_corpus(tmp_path)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_iceberg_loads_no_code_that_its_metadata_names(tmp_path: Path):
    iceberg(tmp_path, pa.table({"a": [1, 2, 3]}))
    metadata_changed(tmp_path / "ice", lambda metadata: metadata["properties"].update({"py-io-impl": "antigravity.X"}))
    assert tf.open_corpus(tmp_path).read("ice")["a"].tolist() == [1, 2, 3]
    assert "antigravity" not in sys.modules


@pytest.mark.filterwarnings("ignore")
def test_a_log_names_files_of_its_own_folder(tmp_path: Path):
    """Here the folder was copied, and its metadata still names where it was."""
    iceberg(tmp_path, pa.table({"a": [1, 2, 3]}))
    copied = tmp_path / "lake" / "copied"
    shutil.copytree(tmp_path / "ice", copied)
    with pytest.raises(UnreadableTable, match=rf"leads out of {re.escape(str(copied))}.*follow_links=True"):
        tf.open_corpus(copied.parent)
    assert tf.open_corpus(copied.parent, follow_links=True).read("copied")["a"].tolist() == [1, 2, 3]


@pytest.mark.parametrize("path", ["../../outside.parquet", "s3://bucket/outside.parquet"])
def test_a_delta_log_that_names_a_file_elsewhere_does_not_show_it(tmp_path: Path, path: str):
    deltalake = pytest.importorskip("deltalake")
    folder = tmp_path / "lake" / "sales"
    deltalake.write_deltalake(str(folder), pa.table({"a": [1, 2]}))
    pq.write_table(pa.table({"a": [7, 7]}), tmp_path / "outside.parquet")
    rewritten(folder, 0, None, lambda entry: entry.get("add", {}).update(path=path))
    with pytest.raises(UnreadableTable):
        tf.open_corpus(folder.parent)


# --- names and links --------------------------------------------------------------------------------------------------


ODD_NAMES = ["sales[12]", "[a-z]", "s*", "sale?1", "[[]", "{a,b}", "it's", "a[", "**"]


@pytest.fixture
def odd_lake(tmp_path: Path) -> Path:
    """Files whose names would find one another, were they patterns, in formats of each kind; the value is the name."""
    folder = tmp_path / "odd [x]*"
    (folder / "parts[ab]").mkdir(parents=True)
    for name in [*ODD_NAMES, "sales1", "sales2", "a", "sale11"]:
        frame = pd.DataFrame({"v": [name] * 3, "n": [1, 2, 3]})
        frame.to_parquet(folder / f"{name}.parquet", index=False)
        frame.to_csv(folder / f"{name}.csv", index=False)
        frame.to_json(folder / f"{name}.json", orient="records", lines=True)
    for name in "ab":
        (folder / f"parts{name}").mkdir()
        pd.DataFrame({"v": [f"other {name}"]}).to_parquet(folder / f"parts{name}" / "part-0.parquet")
    for part in range(2):
        pd.DataFrame({"v": ["parts[ab]"]}).to_parquet(folder / "parts[ab]" / f"part-{part}.parquet")
        (folder / "cities" / f"city=[{part}]*").mkdir(parents=True)
        pd.DataFrame({"v": ["cities"]}).to_parquet(folder / "cities" / f"city=[{part}]*" / "data[0].parquet")
    return folder


@pytest.mark.slow
def test_letters_of_names_are_no_patterns(odd_lake: Path, monkeypatch: pytest.MonkeyPatch):
    for few in (module.FEW_CELLS, 1):
        monkeypatch.setattr(module, "FEW_CELLS", few)
        corpus = tf.open_corpus(odd_lake, engine="duckdb", catalogue=odd_lake.parent / f"{few}.sqlite")
        assert corpus.problems == ()
        for profile in corpus.profiles:
            name = profile.name.rpartition(".")[0] or profile.name
            expected = [name] if name not in ("part-0",) else [f"other {profile.database[-1]}"]
            assert profile.column("v").nulls == 0
            assert corpus.read(profile.id)["v"].unique().tolist() == expected
            if few == 1:  # it is of statistics, which statements do not read
                continue
            execute = tf.exec_sql(corpus.subset([profile.id]))
            found = execute(f'SELECT v, count(*) AS n FROM "{profile.name}" GROUP BY v')
            assert (found["v"].tolist(), found["n"].tolist()) == (expected, [profile.rows])
    cities = corpus.profile("cities")
    assert sorted(corpus.read(cities.id)["city"]) == ["[0]*", "[1]*"]
    kept = odd_lake / "sales[12].parquet"
    engine = LakeEngine(odd_lake, tuple(lake_tables(odd_lake, is_wanted=True)))
    assert engine.scan(kept.name, ["v"])["v"].tolist() == ["sales[12]"] * 3


@pytest.mark.slow
def test_links_that_lead_out_of_a_lake_are_left_out(shop: Path, tmp_path: Path):
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    for name in ("a.parquet", "b.csv"):
        frame = pd.DataFrame({"secret": ["zqs"]})
        frame.to_parquet(outside / name) if name.endswith("t") else frame.to_csv(outside / name, index=False)
        (shop / f"linked {name}").symlink_to(outside / name)
    (shop / "folder").symlink_to(outside, target_is_directory=True)
    (shop / "own.parquet").symlink_to(shop / "customers.parquet")
    for engine in (None, "duckdb"):
        with pytest.warns(UnreadableTableWarning, match=r"leads out of .*follow_links=True") as warned:
            corpus = tf.open_corpus(shop, engine=engine)  # type: ignore[arg-type]
        assert len(warned) == 3
        assert not [id for id in corpus.ids if "linked" in id or "folder" in id]
        assert corpus.profile("own").rows == 3
        more = tf.open_corpus(shop, engine=engine, follow_links=True)  # type: ignore[arg-type]
        assert more.read("linked a")["secret"].tolist() == ["zqs"]
    (shop / "only").mkdir()
    (shop / "only" / "x.parquet").symlink_to(outside / "a.parquet")
    for source in (shop / "only", str(shop / "only" / "*.parquet")):
        with pytest.raises(UnreadableTable, match="leads out of"):
            tf.open_corpus(source)
        assert len(tf.open_corpus(source, follow_links=True)) == 1


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("renames", [False, True])
def test_iceberg_is_read_by_the_names_of_its_schema(tmp_path: Path, renames: bool):
    parts = [pa.table({"a": range(n, n + 100), "b": [f"{'xy'[n > 100]}(1)"] * 100}) for n in (0, 200)]
    table = iceberg(tmp_path, parts[0])
    if renames:
        with table.update_schema() as update:
            update.rename_column("b", "c")
    table.append(parts[1].rename_columns(["a", "c" if renames else "b"]))
    execute, name = tf.exec_sql(tf.open_corpus(tmp_path)), "c" if renames else "b"
    assert execute(f"SELECT sum(a) AS n FROM ice WHERE a >= 250 AND {name} = 'y(1)'")["n"].tolist() == [
        sum(range(250, 300))
    ]
    assert execute(f"SELECT count(*) AS n FROM ice x JOIN ice y USING (a) WHERE x.{name} = 'x(1)'")["n"].tolist() == [
        100
    ]


@pytest.mark.parametrize("kind", ["delta", "parquet"])
def test_a_table_that_has_changed_is_opened_anew(tmp_path: Path, kind: str):
    folder = tmp_path / "lake" / "t"
    folder.mkdir(parents=True)
    pd.DataFrame({"a": [1, 2], "x": [1, 2]}).to_parquet(tmp_path / "lake" / "other.parquet", index=False)

    def put(rows: list[int]) -> None:
        if kind == "delta":
            pytest.importorskip("deltalake").write_deltalake(str(folder), pa.table({"a": rows}), mode="overwrite")
        else:
            for part in range(2):
                pd.DataFrame({"a": rows[part::2]}).to_parquet(folder / f"part-{part}.parquet", index=False)

    put([1, 2])
    corpus = tf.open_corpus(tmp_path / "lake")
    corpus.keys.add("other.a = t.a")
    plan = plan_tables(corpus, ["lake.other", "lake.t"])
    assert len(run_plan(plan, corpus, on_ambiguous="allow")[0]) == 2
    put([1, 2, 2, 2])
    assert corpus.read("t")["a"].tolist() == [1, 2, 2, 2]
    with pytest.raises(FanOut):
        run_plan(plan, corpus, on_ambiguous="allow")


# --- rows -------------------------------------------------------------------------------------------------------------


def test_columns_that_some_files_lack(tmp_path: Path):
    (tmp_path / "t").mkdir()
    pd.DataFrame({"a": [1]}).to_parquet(tmp_path / "t" / "1.parquet", index=False)
    pd.DataFrame({"a": [2], "b": ["x"]}).to_parquet(tmp_path / "t" / "2.parquet", index=False)
    with pytest.warns(TablesStackedWarning, match=r"1 of its 2 files lack .*: 1\.parquet lacks b\."):
        corpus = tf.open_corpus(tmp_path)
    assert corpus.read("t")["b"].isna().tolist() == [True, False]
    with pytest.warns(TablesStackedWarning, match=r"1\.parquet lacks b\. A pattern of some files opens these alone"):
        tf.open_corpus(str(tmp_path / "t" / "*.parquet"))
    assert tf.open_corpus(str(tmp_path / "t" / "2*.parquet")).profiles[0].rows == 1


OF_A_LEAGUE = {
    "players": pd.DataFrame({"id": [1, 2], "name": ["Ann", "Bo"], "club": [1, 1], "goals": [3, 0]}),
    "clubs": pd.DataFrame({"id": [1], "name": ["Rovers"], "city": ["Bremen"]}),
    "rounds": pd.DataFrame({"round": [1, 2], "played": ["2014-08-01", "2014-08-08"]}),
}


def write(frame: pd.DataFrame, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".json":
        frame.to_json(path, orient="records")
    else:
        (frame.to_parquet if path.suffix == ".parquet" else frame.to_csv)(path, index=False)


@pytest.mark.parametrize("ending", ["parquet", "csv", "json"])
@pytest.mark.parametrize("stems", [("1", "2", "3"), ("part-players", "part-clubs", "part-rounds")])
def test_numbered_files_of_other_columns_are_tables_of_their_own(tmp_path: Path, stems: tuple[str, ...], ending: str):
    for stem, frame in zip(stems, OF_A_LEAGUE.values(), strict=True):
        write(frame, tmp_path / "2014" / f"{stem}.{ending}")
    corpus = tf.open_corpus(tmp_path, engine="duckdb")
    assert {profile.name: profile.rows for profile in corpus} == dict(zip(stems, (2, 1, 2), strict=True))


@pytest.mark.parametrize("ending", ["parquet", "csv", "json"])
def test_pieces_are_stacked_beside_files_of_other_columns(tmp_path: Path, ending: str):
    for number in (1, 2, 4):
        write(OF_A_LEAGUE["players"], tmp_path / "2014" / f"{number}.{ending}")
    write(OF_A_LEAGUE["clubs"], tmp_path / "2014" / f"3.{ending}")
    with pytest.warns(
        TablesStackedWarning, match=rf"3\.{ending} have other columns than 1\.{ending} \(city instead of"
    ):
        corpus = tf.open_corpus(tmp_path)
    assert {profile.name: profile.rows for profile in corpus} == {"2014": 6, "3": 1}
    assert list(corpus.read("2014")) == list(OF_A_LEAGUE["players"])


def test_files_of_partitions_are_one_table_for_each_shape(tmp_path: Path):
    for year in (2014, 2015):
        for name, frame in OF_A_LEAGUE.items():
            write(frame, tmp_path / "league" / f"year={year}" / f"{name}.parquet")
    with pytest.warns(TablesStackedWarning, match=r"players\.parquet, .*rounds\.parquet have other columns than"):
        corpus = tf.open_corpus(tmp_path)
    assert {profile.name: profile.rows for profile in corpus} == {
        f"league_{name}": 2 * len(frame) for name, frame in OF_A_LEAGUE.items()
    }
    assert set(corpus.read("league_players")) == {*OF_A_LEAGUE["players"], "year"}
    assert corpus.read("league_clubs")["city"].tolist() == ["Bremen", "Bremen"]


def test_a_damaged_file_is_left_out_and_the_others_are_there(shop: Path):
    (shop / "bad.parquet").write_text("nope")
    with pytest.warns(UnreadableTableWarning, match=r"bad\.parquet"):
        corpus = tf.open_corpus(shop)
    assert corpus.ids == ("shop.customers", "shop.orders")


def test_odd_names_and_values(tmp_path: Path):
    folder = tmp_path / "odd names" / "part=a b's"
    folder.mkdir(parents=True)
    odd = pd.DataFrame({'a"b': [1, 2], "c'd": ["x", None], "tagframe row 0": [5, 4], "Ünï": [True, None]})
    odd["zoned"] = pd.to_datetime(["2020-01-01", "NaT"]).tz_localize("UTC")
    odd.to_parquet(folder / "x'y.parquet", index=False)
    corpus = tf.open_corpus(tmp_path)
    found = corpus.read("odd names")
    assert found["tagframe row 0"].tolist() == [5, 4]
    assert str(found["zoned"].dt.tz) == "UTC"
    merged, report = run_plan(plan_tables(corpus, corpus.ids), corpus, where={'a"b': [1, 2], "part": "a b's"})
    assert (merged["tagframe row 0"].tolist(), report.engine) == ([5, 4], "duckdb")


# --- statements (hostile ones: tests/answer/test_hostile_duckdb.py) ---------------------------------------------------


@pytest.mark.slow
def test_a_statement_that_needs_too_much_memory_is_stopped(tmp_path: Path):
    pq.write_table(pa.table({"n": np.arange(3_000_000), "m": np.arange(3_000_000)[::-1]}), tmp_path / "t.parquet")
    engine = LakeEngine(tmp_path, tuple(lake_tables(tmp_path, is_wanted=True)))
    sql = "SELECT count(*) FROM (SELECT n, m, n + m AS s, n - m AS d, row_number() OVER (ORDER BY m, n) AS r FROM t)"
    tables = {"t": Readable("t.parquet", ("n", "m"))}
    with pytest.raises(SQLFailed, match="megabytes"):
        engine.execute(UntrustedStatement(f"{sql} WHERE r % 2 = 0 AND s + d > 0", tables, {}, SQLLimits(memory=64)))


def test_nothing_stays_in_the_temporary_folder(engine: LakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    engine.shapes()  # what is kept open has its own folder, for as long as the process lives
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    engine.execute(UntrustedStatement("SELECT 1 AS n", {"o": Readable("orders", ("order",))}, {}, SQLLimits()))
    assert not [name for name in os.listdir(tmp_path) if name.startswith("tagframe-")]


def test_dates_of_csv_files_that_do_not_begin_with_the_year_stay_text(tmp_path):
    (tmp_path / "a.csv").write_text("id,day,iso\n1,01/02/2024,2024-02-01\n2,02/03/2024,2024-03-02\n")
    with pytest.warns(ColumnFormatWarning, match="nothing tells whether the day comes first"):
        frame = tf.open_corpus(tmp_path, engine="duckdb", progress=False)["a"]
    assert frame["day"].tolist() == ["01/02/2024", "02/03/2024"], "which is the day is not known"
    assert pd.to_datetime(frame["iso"]).dt.month.tolist() == [2, 3]


def beside(folder: Path, frame: pd.DataFrame) -> tf.answer.ExecSQL:
    """Runs statements over a lake with a table of days, and a frame beside it."""
    (folder / "shop").mkdir(exist_ok=True)
    days = pd.DataFrame({"day": [dt.date(2020, 1, n) for n in (1, 2, 3)] * 4, "n": range(12)})
    days.to_parquet(folder / "shop" / "days.parquet", index=False)
    return tf.exec_sql(tf.corpus.opening.with_frame(tf.open_corpus(folder / "shop", engine="duckdb"), frame)[0])


ODD = {
    "mixed": ["a", 5, 2.5, None], "lists": [[1, 2], None, {"k": 1}, "t"],
    "half": pd.Series(["\ud800", "b", None, "c"], dtype=object),
    "month": pd.period_range("2020-01", periods=4, freq="M"), "small": np.array([1, 2, 3, np.nan], np.float16),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_cells_of_a_frame_that_are_no_column_of_duckdb_are_texts_as_in_sqlite(tmp_path: Path, name: str):
    frame = pd.DataFrame({"x": ODD[name]})
    mine = beside(tmp_path, frame)("SELECT x FROM frame WHERE (SELECT count(*) FROM days) > 0")["x"]
    theirs = tf.exec_sql(tf.open_corpus({"frame": frame}))("SELECT x FROM frame")["x"]
    assert [None if pd.isna(cell) else cell for cell in mine] == [None if pd.isna(cell) else cell for cell in theirs]


@pytest.mark.parametrize(
    ("cells", "condition"),
    [
        (pd.to_datetime(["2020-01-02", None]), "x = DATE '2020-01-02'"),
        (pd.to_datetime(["2020-01-01 12:00"]).tz_localize("Europe/Prague"), "x < TIMESTAMPTZ '2020-01-01 11:30+00'"),
        (pd.array([0.0, 1.0], "Float64") / 0, "x > 0.5"), ([Decimal("1.10"), Decimal("2.25")], "x = 1.1"),
        (pd.to_timedelta(["1D", "3s"]), "x > INTERVAL 1 HOUR"), ([2**63, 1], "x > 1"),
        (pd.array([Decimal("1.5"), None], dtype=pd.ArrowDtype(pa.decimal256(50, 2))), "x = 1.5"),
    ],
    ids=str,
)  # fmt: skip
def test_a_frame_beside_a_lake_keeps_its_types(tmp_path: Path, cells: Any, condition: str):
    run = beside(tmp_path, pd.DataFrame({"x": cells}))
    assert run(f"SELECT count(*) AS n FROM frame JOIN days ON n = 0 WHERE {condition}")["n"].tolist() == [1]


@pytest.mark.parametrize("cells", [[2**130, 1], [Decimal("1" * 45 + ".5"), 1]], ids=str)
def test_numbers_that_duckdb_does_not_have_are_refused_with_a_way_out(tmp_path: Path, cells: list[Any]):
    frame = pd.DataFrame({"x": pd.Series(cells, dtype=object)})
    sql = "SELECT x FROM frame JOIN days ON n = 0"
    with pytest.raises(SQLFailed, match=r"'x' holds .*\{'x': str\}"):
        beside(tmp_path, frame)(sql)
    assert beside(tmp_path, frame.astype({"x": str}))(sql)["x"].tolist() == [*map(str, cells)]


def test_rows_behind_a_result_and_conditions_that_leave_none_are_found_in_duckdb_too(tmp_path: Path):
    film = {"id": [1, 2, 3, 4], "stars": [3.5, None, 4.0, 1.0], "seen": pd.array([True, None, False, True], "boolean")}
    made = pd.to_datetime(["1998-05-01", None, "2015-01-02", "2001-07-07"])
    pd.DataFrame({**film, "made": made}).to_parquet(tmp_path / "film.parquet", index=False)
    execute = tf.exec_sql(tf.open_corpus(tmp_path, engine="duckdb"))
    rows = execute("SELECT seen, count(*) AS n FROM film WHERE stars > 2 GROUP BY seen ORDER BY n")
    assert tf.results.recall(rows, "execution").sources()["value"].tolist() == ["1", "3"]
    told = execute.why_empty(execute("SELECT id FROM film WHERE stars > 2 AND made < DATE '1990-01-01'"))
    assert "0 are left where made < CAST('1990-01-01' AS DATE)" in told

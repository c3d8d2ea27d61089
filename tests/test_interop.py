"""Frames of Polars, Arrow and DuckDB go in, and come back as what they were, with their types and memory."""

from __future__ import annotations

import asyncio
import datetime as dt
import gc
import sys
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scripted import Scripted

import tagframe as tf
from tag_bench.server import Server
from tagframe import interop
from tagframe.errors import FactUnknown, FailedRowsWarning, InvalidArgument, LMRequestFailed, MissingExtra, RowsFailed
from tagframe.operators import OPERATORS

POLARS = pl.DataFrame(
    {
        "city": ["Oslo", None, "Bergen", "Lima"],
        "people": pl.Series([700, None, 300, 10_000], dtype=pl.Int16),
        "founded": [dt.date(1048, 1, 1), None, dt.date(1070, 1, 1), dt.date(1535, 1, 18)],
        "seen": pl.Series([dt.datetime(2024, 1, day) for day in (1, 2, 3, 4)], dtype=pl.Datetime("us", "Europe/Oslo")),
        "price": pl.Series([Decimal("1.20"), None, Decimal("3.05"), Decimal("9.99")], dtype=pl.Decimal(10, 2)),
        "side": pl.Series(["west", "east", None, "west"], dtype=pl.Categorical),
        "size": pl.Series(["large", "small", None, "large"], dtype=pl.Enum(["small", "large"])),
        "tags": [["a", "b"], None, [], ["c"]],
        "place": [{"lat": 59.9}, None, {"lat": 60.4}, {"lat": -12.0}],
        "open": [True, None, False, True],
        "code": [b"a", None, b"c", b"d"],
        "at": [dt.time(1), None, dt.time(2), dt.time(3)],
        "took": [dt.timedelta(hours=1), None, dt.timedelta(2), dt.timedelta(3)],
        "share": pl.Series([0.5, None, float("nan"), 1.0], dtype=pl.Float32),
    }
)
ARROW = pa.table(
    {
        "city": pa.array(["Oslo", None, "Bergen", "Lima"], pa.string_view()),
        "people": pa.array([700, None, 300, 10_000], pa.uint16()),
        "side": pa.array(["west", "east", None, "west"]).dictionary_encode(),
        "price": pa.array([Decimal("1.20"), None, Decimal("3.05"), Decimal("9.99")], pa.decimal256(50, 2)),
        "seen": pa.array([dt.datetime(2024, 1, day) for day in (1, 2, 3, 4)], pa.timestamp("ms", "Europe/Oslo")),
        "pairs": pa.array([[("a", 1)], None, [], [("b", 2)]], pa.map_(pa.string(), pa.int64())),
        "nothing": pa.nulls(4),
    }
).replace_schema_metadata({"from": "a test"})
SQL = """
    SELECT city, people::HUGEINT AS people, side::ENUM('east', 'west') AS side, price::DECIMAL(10, 2) AS price,
        '{"a": 1}'::JSON AS "a ""fact", TIMESTAMPTZ '2024-01-01 00:00:00+00' AS seen, MAP {'a': people} AS pairs,
        'cdcc025e-8115-42b1-befe-a6d56b67ac8b'::UUID AS id, [people] AS tags
    FROM (VALUES ('Oslo', 700, 'west', 1.2), (NULL, NULL, 'east', NULL), ('Bergen', 300, NULL, 3.05),
        ('Lima', 10000, 'west', 9.99)) AS given (city, people, side, price)
"""
KINDS: dict[str, Callable[[], Any]] = {
    "polars": POLARS.clone,
    "lazy polars": POLARS.lazy,
    "arrow": lambda: ARROW,
    "duckdb": lambda: duckdb.sql(SQL),
}


def types_of(guest: Any) -> dict[str, str]:
    if isinstance(guest, pl.DataFrame | pl.LazyFrame):
        return {name: repr(kind) for name, kind in guest.collect_schema().items()}
    if isinstance(guest, pa.Table):
        return {field.name: str(field.type) for field in guest.schema}
    return dict(zip(guest.columns, map(str, guest.types), strict=True))


def rows_of(guest: Any) -> pa.Table:
    if isinstance(guest, duckdb.DuckDBPyRelation):
        return guest.to_arrow_table()
    guest = guest.collect() if isinstance(guest, pl.LazyFrame) else guest
    return guest if isinstance(guest, pa.Table) else guest.to_arrow()


def cells(table: pa.Table) -> list[str]:
    return [*map(str, table.to_pylist())]  # as text, where NaN is NaN


def norwegian() -> Scripted:
    return Scripted(lambda message: "True" if "Oslo" in message or "Bergen" in message else "False")


@pytest.mark.parametrize("kind", KINDS)
def test_a_filter_gives_back_what_came_in(kind: str):
    guest = KINDS[kind]()
    found = tf.sem_filter(guest, "{city} is in Norway", lm=norwegian())
    assert type(found) is type(guest)
    assert types_of(found) == types_of(guest)
    given, kept = rows_of(guest), rows_of(found)
    at = {city: row for row, city in enumerate(given["city"].to_pylist())}
    assert cells(kept) == [cells(given)[at["Oslo"]], cells(given)[at["Bergen"]]]
    assert kept.schema.metadata == given.schema.metadata
    assert tf.tag(found).summary["rows"] == 4
    assert len(tf.tag(found).outcomes) == 4


@pytest.mark.parametrize("kind", KINDS)
def test_new_columns_are_beside_those_that_came_in(kind: str):
    guest = KINDS[kind]()
    found = tf.sem_filter(guest, "{city} is in Norway", return_all=True, lm=norwegian())
    old, new = types_of(guest), types_of(found)
    assert {name: new.pop(name) for name in old} == old
    assert cells(rows_of(found).select(list(old))) == cells(rows_of(guest))
    assert sorted(rows_of(found)["filter_label"].to_pylist(), key=str) == [False, None, True, True]


def buffers(column: pa.ChunkedArray) -> set[int]:
    return {buffer.address for chunk in column.chunks for buffer in chunk.buffers() if buffer is not None}


@pytest.mark.parametrize("kind", ["polars", "arrow"])
def test_what_arrow_can_share_is_not_copied(kind: str):
    guest = KINDS[kind]()
    given = rows_of(guest)
    inside = interop.to_pandas(guest)
    found = rows_of(tf.sem_map(guest, "The country of {city}", lm=Scripted(lambda message: "Norway")))
    # What the library itself lays out otherwise: texts, and the nulls of structures.
    copied = {"arrow": {"city"}, "polars": {"city", "tags", "side", "size", "code", "place"}}[kind]
    for name in set(given.column_names) - copied:
        if int(pd.__version__.partition(".")[0]) > 2:  # pandas 2 copies rows that are selected, even if all are
            assert buffers(found[name]) == buffers(given[name]), name
        assert buffers(pa.chunked_array(inside[name].array.__arrow_array__())) == buffers(given[name]), name


CALLS: dict[str, tuple[tuple[Any, ...], dict[str, Any], str]] = {
    "sem_filter": (("{city} is in Norway",), {}, "True"),
    "sem_map": (("The country of {city}",), {}, "Norway"),
    "sem_score": (("How large is {city}?",), {}, "0.5"),
    "sem_extract": (("city", {"country": None}), {}, '{"country": "Norway"}'),
    "sem_agg": (("Describe each {city}",), {"group_by": "side"}, "Towns [1]."),
    "sem_topk": (("Which {city} is largest?", 2), {}, "A"),
    "sem_search": (("city", "a harbour"), {"K": 2}, ""),
    "sem_dedup": (("city",), {}, "False"),
    "sem_join": ((POLARS.select("city", "people"), "{city:left} is {city:right}"), {}, "True"),
    "sem_sim_join": ((POLARS.select(town="city"),), {"left_on": "city", "right_on": "town", "K": 1}, ""),
}


@pytest.mark.parametrize("kind", ["polars", "arrow", "duckdb"])
@pytest.mark.parametrize("name", [*OPERATORS])
def test_every_operator_takes_foreign_frames(name: str, kind: str):
    args, options, answer = CALLS[name]
    guest = KINDS[kind]()
    settings = {"lm": Scripted(lambda message: answer), "on_error": "keep"} if answer else {}
    found = getattr(tf, name)(guest, *args, **settings, **options)
    assert type(found) is type(guest)
    assert rows_of(found).num_columns


def test_the_awaited_form_and_quotes(server: Server):
    server.answers = lambda request: str("Oslo" in request.prompt)
    found = asyncio.run(tf.asem_filter(POLARS, "{city} is in Norway", lm="openai/x", api_base=server.url))
    assert found["city"].to_list() == ["Oslo"]
    assert tf.tag(found).summary["rows"] == 4
    quote = tf.sem_filter(POLARS, "{city} is in Norway", quote=True, lm=tf.LM("openai/x", api_key="none"))
    assert quote.calls == 3


def test_frames_of_several_kinds_are_a_corpus_and_merged():
    people = pl.DataFrame({"person_id": [1, 2, 3], "city_id": [10, 20, 20]})
    cities = pa.table({"city_id": [10, 20], "country_id": [7, 7], "name": ["Oslo", "Bergen"]})
    countries = duckdb.sql("SELECT 7 AS country_id, 'Norway' AS country")
    corpus = tf.open_corpus({"people": people, "cities": cities, "countries": countries})
    plan = tf.join_plan(people, cities)
    assert tf.exec_sql(corpus)("SELECT count(*) AS n FROM people JOIN cities USING (city_id)")["n"].tolist() == [3]
    merged = tf.merge({"people": people, "cities": cities, "countries": countries})
    assert isinstance(merged, pl.DataFrame)
    assert merged["country"].to_list() == ["Norway"] * 3
    assert merged.schema["person_id"] == pl.Int64
    assert tf.tag(merged).merge_report.rows == 3
    assert isinstance(tf.merge(cities, countries), pa.Table)
    assert isinstance(tf.merge(people.to_pandas(), cities), pd.DataFrame)  # as the first one is
    stacked = tf.stack({"one": cities, "two": cities})
    assert isinstance(stacked, pa.Table)
    assert stacked.num_rows == 4
    assert plan.steps


def test_a_stack_of_other_categories_keeps_its_cells():
    one = pl.DataFrame({"size": pl.Series(["a", "b"], dtype=pl.Enum(["a", "b"]))})
    two = pl.DataFrame({"size": pl.Series(["x", "y"], dtype=pl.Enum(["x", "y"]))})
    assert tf.stack(one, two, source=None)["size"].to_list() == ["a", "b", "x", "y"]
    assert tf.stack(one, one, source=None).schema == one.schema
    facts = duckdb.sql("SELECT '{}'::JSON AS fact, 'a'::ENUM('a') AS size")
    others = duckdb.sql("SELECT 'no JSON' AS fact, 'x'::ENUM('x') AS size")
    assert tf.stack(facts, others, source=None).fetchall() == [("{}", "a"), ("no JSON", "x")]


def test_decimals_of_foreign_frames_are_numbers_in_sql():
    guest = duckdb.sql("SELECT 700::HUGEINT AS people, 5::DECIMAL(10, 2) AS price UNION ALL SELECT 80, 20.25")
    execute = tf.exec_sql(tf.open_corpus({"towns": guest}))
    found = execute("SELECT people, price / 2 AS half FROM towns WHERE people > 500 AND price < 10")
    assert found.to_dict("list") == {"people": [700], "half": [2.5]}


def test_what_is_known_of_a_result_is_of_this_result_alone():
    found = tf.sem_filter(POLARS, "{city} is in Norway", lm=norwegian())
    again = tf.sem_filter(found, "{city} is in Norway", lm=norwegian())
    assert tf.tag(again).summary["rows"] == 2
    with pytest.raises(FactUnknown):
        tf.tag(found.head(1)).summary  # noqa: B018
    found[0, "city"] = "Lima"  # as Polars can
    with pytest.raises(FactUnknown):
        tf.tag(found).summary  # noqa: B018
    assert tf.sem_filter(found, "{city} is in Norway", lm=norwegian())["city"].to_list() == ["Bergen"]
    del found, again
    gc.collect()
    assert not [frame for _, frame, _ in interop._RETURNED.values() if frame.columns.equals(pd.Index(POLARS.columns))]


def test_the_finished_part_on_an_error_is_a_guest_too():
    def answer(message: str) -> str:
        if "Lima" in message:
            raise LMRequestFailed("no", 400)
        return "True"

    with pytest.raises(RowsFailed) as failed:
        tf.sem_filter(POLARS, "{city} is in Norway", return_all=True, lm=Scripted(answer))
    assert isinstance(failed.value.frame, pl.DataFrame)
    assert len(failed.value.frame) == 4
    assert tf.tag(failed.value.frame).summary["failed"] == 1


def test_cells_of_several_types_become_text():
    column = interop._column(pd.Series([1, "a", None], dtype=object))
    assert column.to_pylist() == ["1", "a", None]


@pytest.mark.parametrize(
    ("guest", "says"),
    [
        (pa.table([[1], [2]], names=["city", "city"]), "pyarrow.Table cannot be read.*unique"),
        (duckdb.sql("SELECT 1 AS city, 2 AS city"), "DuckDBPyRelation cannot be read.*unique"),
        (duckdb.sql("SELECT error('boom') AS city"), "cannot be read.*boom"),
        (duckdb.sql("SELECT 'a' AS city, '101'::BIT AS bits"), "{'bits': 'BIT'}.*cast"),
        (pl.DataFrame({"city": pl.Series([object()], dtype=pl.Object)}), "{'city': 'Object'}.*cast"),
        (pl.DataFrame({"city": pl.Series([2**100], dtype=pl.Int128)}), "polars.DataFrame cannot be read"),
        (pl.LazyFrame({"city": ["a"]}).select("town"), "LazyFrame cannot be read.*town"),
        (
            pa.table({"city": pa.RunEndEncodedArray.from_arrays(pa.array([1], pa.int32()), ["x"])}),
            "cannot select rows.*run_end_encoded",
        ),
        ([POLARS], "batch 0 is a polars.DataFrame.*one at a time"),
        (pl.Series("city", ["a"]), "takes a frame or batches; got a Series"),
    ],
)
def test_frames_that_cannot_come_in(guest: Any, says: str):
    with pytest.raises(InvalidArgument, match=says):
        list(tf.sem_filter(guest, "{city} is in Norway", lm=norwegian()))


def test_narwhals_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "narwhals", None)
    with pytest.raises(MissingExtra, match=r"tagframe\[narwhals\]"):
        tf.sem_filter(POLARS, "{city} is in Norway", lm=norwegian())


def test_failed_rows_that_are_kept_are_null():
    def answer(message: str) -> str:
        raise LMRequestFailed("no", 400)

    with pytest.warns(FailedRowsWarning):
        found = tf.sem_map(POLARS, "The country of {city}", on_error="keep", lm=Scripted(answer))
    assert found.columns[-1].endswith("error")
    assert found[found.columns[-2]].to_list() == [None] * 4

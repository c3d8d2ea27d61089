"""Frames of Polars, Arrow and DuckDB go in, with their types and memory."""

from __future__ import annotations

import asyncio
import datetime as dt
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
from tagframe.errors import InvalidArgument
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


def norwegian() -> Scripted:
    return Scripted(lambda message: "True" if "Oslo" in message or "Bergen" in message else "False")


def cells(column: pd.Series) -> list[str]:
    return [*map(repr, column.array.__arrow_array__().to_pylist())]


@pytest.mark.parametrize("kind", KINDS)
def test_a_filter_keeps_types_and_cells(kind: str):
    given = interop.to_pandas(KINDS[kind]())
    found = tf.sem_filter(KINDS[kind](), "{city} is in Norway", lm=norwegian())
    assert found.dtypes.equals(given.dtypes)
    assert {*map(type, found.dtypes)} == {pd.ArrowDtype}
    expected = given[given["city"].isin(["Oslo", "Bergen"])]
    assert [cells(found[name]) for name in found] == [cells(expected[name]) for name in expected]
    assert found.tag.summary["rows"] == len(found.tag.outcomes) == 4


def buffers(column: pa.ChunkedArray) -> set[int]:
    return {buffer.address for chunk in column.chunks for buffer in chunk.buffers() if buffer is not None}


@pytest.mark.parametrize("kind", ["polars", "arrow"])
def test_what_arrow_can_share_is_not_copied(kind: str):
    given = pa.table(KINDS[kind]())
    inside = interop.to_pandas(KINDS[kind]())
    # What the library itself lays out otherwise: texts, and the nulls of structures.
    copied = {"arrow": {"city"}, "polars": {"city", "tags", "side", "size", "code", "place"}}[kind]
    for name in set(given.column_names) - copied:
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
    settings = {"lm": Scripted(lambda message: answer), "on_error": "keep"} if answer else {}
    found = getattr(tf, name)(KINDS[kind](), *args, **settings, **options)
    assert isinstance(found, pd.DataFrame)
    assert len(found.columns)


def test_the_awaited_form_and_quotes(server: Server):
    server.answers = lambda request: str("Oslo" in request.prompt)
    found = asyncio.run(tf.asem_filter(POLARS, "{city} is in Norway", lm="openai/x", api_base=server.url))
    assert found["city"].to_list() == ["Oslo"]
    assert found.tag.summary["rows"] == 4
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
    assert merged["country"].to_list() == ["Norway"] * 3
    assert merged.dtypes["person_id"] == pd.ArrowDtype(pa.int64())
    assert merged.tag.merge_report.rows == 3
    assert len(tf.merge(people.to_pandas(), cities)) == 3
    assert len(tf.stack({"one": cities, "two": cities})) == 4
    assert plan.steps


def test_decimals_of_foreign_frames_are_numbers_in_sql():
    guest = duckdb.sql("SELECT 700::HUGEINT AS people, 5::DECIMAL(10, 2) AS price UNION ALL SELECT 80, 20.25")
    execute = tf.exec_sql(tf.open_corpus({"towns": guest}))
    found = execute("SELECT people, price / 2 AS half FROM towns WHERE people > 500 AND price < 10")
    assert found.to_dict("list") == {"people": [700], "half": [2.5]}


def test_batches_may_be_foreign():
    parts = list(tf.sem_filter([POLARS, POLARS.lazy()], "{city} is in Norway", lm=norwegian()))
    assert [part["city"].to_list() for part in parts] == [["Oslo", "Bergen"]] * 2


@pytest.mark.parametrize(
    ("guest", "says"),
    [
        (pa.table([["a"], ["b"]], names=["city", "city"]), "2 columns are called 'city'"),
        (duckdb.sql("SELECT error('boom') AS city"), "cannot be read.*boom"),
        (duckdb.sql("SELECT 'a' AS city, '101'::BIT AS bits"), "{'bits': 'BIT'}.*cast"),
        (pl.DataFrame({"city": pl.Series([object()], dtype=pl.Object)}), "{'city': 'Object'}.*cast"),
        (pl.DataFrame({"city": pl.Series([2**100], dtype=pl.Int128)}), "polars.DataFrame cannot be read"),
        (pl.LazyFrame({"city": ["a"]}).select("town"), "LazyFrame cannot be read.*town"),
        (
            pa.table({"city": pa.RunEndEncodedArray.from_arrays(pa.array([1], pa.int32()), ["x"])}),
            "cannot be read.*run_end_encoded",
        ),
        (pl.Series("city", ["a"]), "takes a frame or batches; got a Series"),
    ],
)
def test_frames_that_cannot_come_in(guest: Any, says: str):
    with pytest.raises(InvalidArgument, match=says):
        list(tf.sem_filter(guest, "{city} is in Norway", lm=norwegian()))

"""Frames as users have them: a right answer or a named error, for inference and merges, and nothing lost silently."""

from __future__ import annotations

import decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from accounted import merged

import tagframe as tf
from tagframe.errors import FanOut, InvalidArgument, NotConnected, RowsLost
from tagframe.merging import infer_keys, join_plan

NUMBERS = np.random.default_rng(5).permutation(np.arange(1001, 1041))
"""Keys of forty clients."""
TAKEN = np.random.default_rng(6).choice(NUMBERS, 120)
"""Keys of the clients of 120 loans."""


def bank(client: Any, taken: Any, **more: Any) -> dict[str, pd.DataFrame]:
    clients = pd.DataFrame({"client_id": client, "town": [f"town {i}" for i in range(len(client))]})
    return {"loans": pd.DataFrame({"loan_id": np.arange(len(taken)), "client_id": taken, **more}), "clients": clients}


def assert_joined(frames: dict[str, pd.DataFrame], expected: list[str]) -> pd.DataFrame:
    """The key is found, and each loan has the town of its client."""
    (key,) = infer_keys(frames)
    assert (key.left, key.right) == ("frames.loans.client_id", "frames.clients.client_id")
    frame, report = merged(frames, on_loss="raise")
    assert frame["loan_id"].tolist() == frames["loans"]["loan_id"].tolist()
    assert frame["town"].tolist() == expected
    assert frame["client_id"].dtype == frames["loans"]["client_id"].dtype
    assert report.steps[0].matched == report.rows == len(frames["loans"])
    return frame


TOWN_OF = {number: f"town {position}" for position, number in enumerate(NUMBERS)}
TOWNS = [TOWN_OF[number] for number in TAKEN]
ZONE = "Europe/Prague"


def moments(numbers: Any, zone: str | None) -> pd.Series:
    found = pd.Series(pd.to_datetime("2020-01-01", utc=True) + pd.to_timedelta(numbers, unit="h"))
    return found.dt.tz_convert(zone) if zone else found.dt.tz_localize(None)


@pytest.mark.filterwarnings("ignore::tagframe.errors.CoercedKeysWarning")
@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        pytest.param(lambda n: pd.Categorical(n), lambda n: pd.Categorical(n), id="categories of unlike order"),
        pytest.param(lambda n: pd.Categorical([f"c{i}" for i in n]),
                     lambda n: [f"c{i}" for i in n], id="category, text"),
        pytest.param(lambda n: [decimal.Decimal(int(i)) / 4 for i in n],
                     lambda n: [decimal.Decimal(int(i)) / 4 for i in n], id="decimals"),
        pytest.param(lambda n: [decimal.Decimal(f"{i}.00") for i in n], lambda n: n, id="decimals, integers"),
        pytest.param(lambda n: moments(n, ZONE), lambda n: moments(n, ZONE), id="moments of one zone"),
        pytest.param(lambda n: moments(n, ZONE), lambda n: moments(n, "UTC"), id="moments of two zones"),
        pytest.param(lambda n: moments(n, None), lambda n: moments(n, None).astype(str), id="moments, text"),
        pytest.param(lambda n: n.astype(float), lambda n: n, id="floats, integers"),
        pytest.param(lambda n: [f"{i:06d}" for i in n], lambda n: n, id="padded text, integers"),
        pytest.param(lambda n: [[int(i), "x"] for i in n], lambda n: [[int(i), "x"] for i in n], id="lists"),
        pytest.param(lambda n: [{"id": int(i)} for i in n], lambda n: [{"id": int(i)} for i in n], id="dictionaries"),
        pytest.param(lambda n: [np.array([i, 1]) for i in n], lambda n: [np.array([i, 1]) for i in n], id="arrays"),
        pytest.param(lambda n: [(int(i), 1) for i in n], lambda n: [(int(i), 1) for i in n], id="tuples"),
        pytest.param(lambda n: [bytes([i % 256, i // 256]) for i in n],
                     lambda n: [bytes([i % 256, i // 256]) for i in n], id="bytes"),
    ],
)  # fmt: skip
def test_keys_of_any_type_are_found_and_joined(mine, theirs, request):
    frames = bank(theirs(NUMBERS), mine(TAKEN))
    if request.node.callspec.id == "bytes":  # columns of bytes take part in no key: it has to be given
        assert infer_keys(frames) == []
        with pytest.raises(NotConnected):
            merged(frames)
    else:
        assert_joined(frames, TOWNS)


def test_values_of_any_type_are_carried_along():
    note = {"list": [[i] for i in range(120)], "dict": [{"i": i} for i in range(120)],
            "decimal": [decimal.Decimal(i) for i in range(120)], "moment": moments(np.arange(120), ZONE),
            "category": pd.Categorical(["a", "b", None] * 40)}  # fmt: skip
    frames = bank(NUMBERS, TAKEN, **note)
    frame = assert_joined(frames, TOWNS)
    pd.testing.assert_frame_equal(frame[[*note]], frames["loans"][[*note]])


def test_a_repeated_index_without_a_name_is_not_used():
    frames = bank(NUMBERS, TAKEN)
    frames["loans"].index = pd.Index([7] * 120)
    frames["clients"].index = pd.Index(list("ab") * 20)
    frame = assert_joined(frames, TOWNS)
    assert frame.index.equals(pd.RangeIndex(120))
    frames["loans"].loc[:, "client_id"] = frames["loans"]["client_id"].where(np.arange(120) != 3, 5000)
    with pytest.raises(RowsLost) as refusal:
        merged(frames, join_plan(bank(NUMBERS, TAKEN)), on_loss="raise")
    assert refusal.value.rows["loan_id"].tolist() == [3]
    with pytest.raises(FanOut) as repeated:
        merged({"clients": frames["clients"], "loans": frames["loans"]})
    assert set(repeated.value.rows["client_id"]) <= set(NUMBERS)


def test_index_levels_with_a_name_are_columns():
    frames = bank(NUMBERS, TAKEN)
    expected, _ = merged(frames)
    levels = {"loans": frames["loans"].set_index("loan_id"), "clients": frames["clients"].set_index("client_id")}
    found, _ = merged(levels)
    pd.testing.assert_frame_equal(found, expected)
    assert levels["loans"].index.name == "loan_id"
    several = {**levels, "clients": frames["clients"].assign(zone="north").set_index(["zone", "client_id"])}
    assert list(merged(several)[0].columns) == ["loan_id", "client_id", "zone", "town"]
    kept_twice = {**frames, "clients": frames["clients"].set_index("client_id", drop=False)}
    pd.testing.assert_frame_equal(merged(kept_twice)[0], expected)
    assert infer_keys(levels) == infer_keys(frames)


def test_index_levels_that_cannot_be_columns_are_refused():
    frames = bank(NUMBERS, TAKEN)
    frames["clients"].index = pd.MultiIndex.from_product([["a", "b"], range(20)])
    with pytest.raises(InvalidArgument, match=r"levels without a name.*reset_index\(drop=True\)"):
        tf.merge(frames)
    frames["clients"].index = pd.Index(range(40), name="town")
    with pytest.raises(InvalidArgument, match="an index level 'town' and a column"):
        tf.merge(frames)
    frames["clients"].index = pd.MultiIndex.from_product([["a", "b"], range(20)], names=["zone", "zone"])
    with pytest.raises(InvalidArgument, match="'zone'"):
        tf.merge(frames)


@pytest.mark.parametrize("null", [None, np.nan, pd.NaT, pd.NA, ""])
@pytest.mark.filterwarnings("ignore:no row finds a partner")
def test_keys_that_are_all_null_match_nothing(null):
    frames = bank([null] * 40, [null] * 120)
    plan = join_plan(bank(NUMBERS, TAKEN))
    if isinstance(null, str):
        # Blank text is a value to a join, as it is to SQL; it repeats here.
        with pytest.raises(FanOut):
            merged(frames, plan)
        return
    frame, report = merged(frames, plan, on_loss="allow")
    assert (len(frame), report.lost, report.steps[0].null_keys, report.steps[0].unmatched_right) == (0, 120, 120, 40)
    assert list(frame.columns) == ["loan_id", "client_id", "town"]


@pytest.mark.parametrize("empty", ["loans", "clients", "both"])
def test_empty_frames_keep_their_columns_and_dtypes(empty):
    frames = bank(NUMBERS, TAKEN)
    plan = join_plan(frames)
    for name in frames:
        if empty in (name, "both"):
            frames[name] = frames[name].head(0)
    infer_keys(frames)  # says nothing wrong; there may be a key by name alone
    for how in ("inner", "left", "outer"):
        frame, report = merged(frames, plan, how=how, on_loss="allow")
        rows = {"inner": 0, "left": len(frames["loans"]), "outer": len(frames["loans"]) + len(frames["clients"])}[how]
        assert (len(frame), report.rows) == (rows, rows)
        assert list(frame.columns) == ["loan_id", "client_id", "town"]
        assert frame["loan_id"].dtype in ("int64", "Int64")
    with pytest.raises(NotConnected):
        merged({"a": pd.DataFrame(), "b": pd.DataFrame()})


TWICE = pd.DataFrame([[1, 2]], columns=["client_id", "client_id"])
LEVELS = pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_product([["client"], ["id", "town"]]))


@pytest.mark.parametrize(
    ("frame", "message"), [(TWICE, "more than one column called 'client_id'"), (LEVELS, "MultiIndex")]
)
@pytest.mark.parametrize("call", [infer_keys, join_plan, merged])
def test_columns_that_cannot_be_told_apart_are_refused_with_a_way_out(call, frame, message):
    with pytest.raises(InvalidArgument, match=message) as refusal:
        call({**bank(NUMBERS, TAKEN), "odd": frame})
    assert "frame." in str(refusal.value)


def test_a_composite_key_may_hold_what_cannot_be_hashed():
    pairs = [(a, b) for a in range(8) for b in range(6)]
    chosen = [pairs[i] for i in np.random.default_rng(2).integers(0, 48, 200)]
    rooms = pd.DataFrame({"house_id": [[a] for a, _ in pairs], "room_id": [b for _, b in pairs], "size": range(48)})
    stays = pd.DataFrame({"house_id": [[a] for a, _ in chosen], "room_id": [b for _, b in chosen], "nights": 3})
    (key,) = infer_keys({"stays": stays, "rooms": rooms})
    assert key.right_columns == ("house_id", "room_id")
    frame, _ = merged({"stays": stays, "rooms": rooms}, on_loss="raise")
    assert frame["size"].tolist() == [pairs.index(pair) for pair in chosen]


ARROW = {
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), ["a", "b", "a", None]),
    "decimal": (
        pa.decimal128(10, 2),
        [decimal.Decimal("1.50"), decimal.Decimal("2.00"), None, decimal.Decimal("3.25")],
    ),
    "list": (pa.list_(pa.int64()), [[1], [2, 3], None, [4]]),
    "struct": (pa.struct([("x", pa.int64())]), [{"x": 1}, {"x": 2}, None, {"x": 3}]),
    "map": (pa.map_(pa.string(), pa.int64()), [[("k", 1)], [("k", 2)], None, []]),
}


@pytest.mark.parametrize("kind", ARROW)
@pytest.mark.parametrize("how", ["inner", "left", "outer"])
def test_columns_of_arrows_types_are_kept_and_joined_on(kind: str, how: Any):
    type, values = ARROW[kind]
    column = pd.Series(pd.arrays.ArrowExtensionArray(pa.array(values, type=type)))
    left = pd.DataFrame({"id": [1, 2, 3, 4], "k": [1, 2, 2, 9], "v": column})
    right = pd.DataFrame({"k": [1, 2, 3], "t": list("xyz")})
    frame = tf.merge(left, right, on="k", how=how, on_loss="allow")
    assert frame["v"].dtype == column.dtype
    assert len(frame) == {"inner": 3, "left": 4, "outer": 5}[how]
    same = tf.merge(left, left[["v"]].assign(place=range(4)).iloc[1:], on="v", on_loss="allow")
    assert same["place"].tolist() == ([2, 1, 2] if kind == "dictionary" else [1, 3])


def test_what_a_caller_passes_is_taken_or_named():
    one, other = pd.DataFrame({"x": [1, 2, 3]}), pd.DataFrame({"y": [1, 2, 3], "z": [1, 2, 3]})
    frames = {"a": one, "b": other}
    assert len(tf.merge(frames, on="a.x = b.y", limit=np.int64(2))) == 2
    with pytest.raises(InvalidArgument, match=r"limit must be a number of rows, 0 or more; got .*True"):
        tf.merge(frames, on="a.x = b.y", limit=np.True_)

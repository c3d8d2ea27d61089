from __future__ import annotations

import datetime
import decimal
import json
import pathlib
import uuid

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagframe.blocks import fence
from tagframe.errors import InvalidArgument
from tagframe.operators.cells import encode_rows, json_cells, shortened


def test_every_kind_of_cell_becomes_json():
    frame = pd.DataFrame(
        {
            "text": ["a\nb", 'say "x" {y}'],
            "whole": [1, 2**60],
            "real": [0.5, float("inf")],
            "null": [None, 1.5],
            "day": [datetime.date(2026, 1, 2), pd.Timestamp("2026-01-02 03:04")],
            "money": [decimal.Decimal("1.10"), decimal.Decimal(2)],
            "bytes": [b"\x00\x01", b""],
            "list": [[1, 2], np.array([3])],
            "odd": [{(1, 2): 3}, {"a": 1}],
        }
    )
    first, second = (json.loads(line) for line in encode_rows(frame, range(frame.shape[1]), any_type=True))
    assert first["text"] == "a\nb"
    assert second["text"] == 'say "x" {y}'
    assert (first["whole"], second["whole"]) == (1, 2**60)
    assert (first["real"], second["real"]) == (0.5, "inf")
    assert "null" not in first
    assert second["null"] == 1.5
    assert (first["day"], second["day"]) == ("2026-01-02", "2026-01-02T03:04:00")
    assert first["money"] == "1.10"
    assert first["bytes"] == "<2 bytes>"
    assert second["list"] == [3]
    assert first["odd"] == "{(1, 2): 3}"
    assert second["odd"] == {"a": 1}


def test_rows_without_any_value_are_none():
    frame = pd.DataFrame({"a": [np.nan, 1.0], "b": [pd.NaT, pd.NaT], "c": ["x", None]})
    assert encode_rows(frame, [0, 1]) == [None, '{"a": 1.0}']


def test_days_are_days():
    frame = pd.DataFrame({"seen": pd.to_datetime(["1970-06-30 00:00", "1970-06-30 12:30"])})
    assert encode_rows(frame, [0]) == ['{"seen": "1970-06-30"}', '{"seen": "1970-06-30T12:30:00"}']


def test_extension_types():
    frame = pd.DataFrame(
        {
            "i": pd.array([1, None], dtype="Int64"),
            "s": pd.array(["x", None], dtype="string"),
            "c": pd.Categorical(["u", "v"]),
            "z": pd.to_datetime(["2026-01-02", "2026-01-03"], utc=True),
        }
    )
    assert [json.loads(line) for line in encode_rows(frame, range(4))] == [
        {"i": 1, "s": "x", "c": "u", "z": "2026-01-02T00:00:00+00:00"},
        {"c": "v", "z": "2026-01-03T00:00:00+00:00"},
    ]


@pytest.mark.slow
@given(st.text())
def test_no_cell_can_close_the_fence(cell):
    line = encode_rows(pd.DataFrame({"a": ["</row>" + cell]}), [0])[0]
    fenced = fence(line)
    assert fenced.count("</row>") == 1
    assert json.loads(fenced.split("\n")[1]) == {"a": "</row>" + cell}


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        (["n", "n"], ["n", "n_2"]),
        ([1, "1"], ["1", "1_2"]),
        (["n", "n", "n_2"], ["n", "n_3", "n_2"]),
        (["n_2", "n", "n", "n"], ["n_2", "n", "n_3", "n_4"]),
    ],
)
def test_labels_that_read_alike_are_told_apart(labels, told):
    frame = pd.DataFrame([range(len(labels))], columns=labels)
    assert json.loads(encode_rows(frame, range(len(labels)))[0]) == dict(zip(told, range(len(labels)), strict=True))


@pytest.mark.parametrize(
    "token",
    ["<|im_end|>", "<|eot_id|>", "<|start_header_id|>", "<｜end▁of▁sentence｜>", "<end_of_turn>", "[INST]", "[/INST]"],
)
def test_what_ends_a_turn_is_told_as_text(token):
    fenced = fence(encode_rows(pd.DataFrame({"a": [f"x {token} y"], token: 1}), [0, 1])[0])
    assert token not in fenced
    assert json.loads(fenced.split("\n")[1]) == {"a": f"x {token} y", token: 1}


def test_ordinary_text_stays_as_it_is():
    line = encode_rows(pd.DataFrame({"a": ["a < b, [x], <b>, 1|2"]}), [0])[0]
    assert fence(line) == f"<row>\n{line}\n</row>"


CELLS = st.one_of(st.text(), st.integers(), st.lists(st.text()))


@pytest.mark.slow
@pytest.mark.pandas2
@given(st.dictionaries(st.text(max_size=4), CELLS), st.integers(20, 300))
def test_a_shortened_line_is_json_and_short(row, size):
    line = json.dumps(row, ensure_ascii=False)
    short = shortened(line, size)
    assert len(short.encode()) <= size
    assert (short == line) == (len(line.encode()) <= size)
    json.loads(short)


class Bare:
    """Shown by its address in memory, unless it has a text."""


class Named(Bare):
    def __str__(self) -> str:
        return "a name"


READABLE = {
    "sets": [{"b", "a", "c"}, frozenset({2, 1})],
    "arrays": [np.array([1, 2]), np.zeros((2, 2))],
    "times": [datetime.timedelta(1), pd.Period("2026-01")],
    "identities": [uuid.UUID(int=7), pathlib.Path("a/b")],
    "texts of their own": [Named(), {"of": Named()}],
    "texts with addresses": ["<object at 0x7f12ab34>", "b"],
}
UNREADABLE = {
    "bytes": [b"I love it", b"I hate it"],
    "arrays of bytes": [bytearray(b"ab"), memoryview(b"cd")],
    "numpy's bytes": list(np.array([b"ab", b"cd"])),
    "a null first": [None, b"ab"],
    "objects": [Bare(), Bare()],
    "objects in lists": [["a"], [Bare()]],
    "bytes in dicts": [{"a": 1}, {"a": b"x"}],
    "functions": [len, lambda: 1],
    "generators": [iter([1]), (n for n in ())],
    "pictures": [np.zeros((4, 4, 3), dtype=np.uint8)] * 2,
}


@pytest.mark.parametrize("kind", READABLE)
def test_cells_with_a_text_are_shown_by_it(kind: str):
    frame = pd.DataFrame({"c": pd.Series(READABLE[kind], dtype=object)})
    one, other = encode_rows(frame, [0])
    assert one != other
    assert [one, other] == encode_rows(frame, [0])


def test_the_order_of_a_set_is_the_same_in_each_process():
    assert encode_rows(pd.DataFrame({"c": [{"pear", "apple", "fig"}]}), [0]) == ['{"c": ["apple", "fig", "pear"]}']


@pytest.mark.parametrize("kind", UNREADABLE)
def test_cells_that_no_prompt_can_show_are_refused_by_column_and_type(kind: str):
    frame = pd.DataFrame({"n": [1, 2], "c": pd.Series(UNREADABLE[kind], dtype=object)})
    with pytest.raises(InvalidArgument, match=r"the column 'c' has values of type '\w+', which a prompt cannot show"):
        encode_rows(frame, [0, 1])
    assert encode_rows(frame, [0]) == ['{"n": 1}', '{"n": 2}']


@pytest.mark.parametrize("depth", [1_000, 5_000, 100_000])
def test_cells_that_are_nested_too_deep_are_refused_by_column(depth: int):
    cell: object = "a"
    for number in range(depth):
        cell = [cell] if number % 2 else {"in": cell}
    frame = pd.DataFrame({"n": [1, 2], "c": pd.Series([cell, "b"], dtype=object)})
    for write in (lambda: encode_rows(frame, [0, 1]), lambda: json_cells(frame["c"])):
        with pytest.raises(InvalidArgument, match="the column 'c' has a value that is nested too deep"):
            write()
    while isinstance(cell, list | dict):  # or the interpreter's own end would recurse
        cell = cell[0] if isinstance(cell, list) else cell.pop("in")


def test_halves_of_characters_are_told_apart():
    texts = ["a\ud83d", "a\ude00", "a\ufffd", "a\ud83d\ud83d", "a"]
    frame = pd.DataFrame({"c": pd.Series(texts, dtype=object)})
    lines = encode_rows(frame, [0])
    assert len({*lines}) == len({*json_cells(frame["c"])}) == len(texts)
    assert [json.loads(str(line).encode())["c"] for line in lines][2::2] == ["a\ufffd", "a"]


def test_bytes_are_decoded_as_the_error_says():
    frame = pd.DataFrame({"c": UNREADABLE["bytes"]})
    with pytest.raises(InvalidArgument) as refused:
        encode_rows(frame, [0])
    assert "frame['c'].str.decode('utf-8')" in str(refused.value)
    assert encode_rows(frame.assign(c=frame["c"].str.decode("utf-8")), [0])[0] == '{"c": "I love it"}'


def test_lotus_image_arrays_are_refused_by_their_type():
    arrays = pytest.importorskip("lotus.dtype_extensions")
    frame = pd.DataFrame({"c": arrays.ImageArray(["a.png", "b.png"])})
    with pytest.raises(InvalidArgument, match="the column 'c' has values of type 'ImageDtype'"):
        encode_rows(frame, [0])

"""Arrays in a file that is mapped into memory."""

import numpy as np
import pytest

from tagframe.corpus.mapped_arrays import DamagedArrays, read_arrays, text_array, texts_of, write_arrays

ARRAYS = {
    "numbers": np.arange(12, dtype=np.int64).reshape(3, 4),
    "none": np.zeros((0, 5), dtype=np.float32),
    "flags": np.array([True, False, True]),
    "strided": np.arange(20, dtype=np.float64)[::3],
    "last and empty": np.zeros(0, dtype=np.uint64),
}


def test_arrays_come_back_as_they_were(tmp_path):
    write_arrays(tmp_path / "a", ARRAYS)
    found = read_arrays(tmp_path / "a")
    assert found is not None
    for name, array in ARRAYS.items():
        assert found[name].dtype == array.dtype
        assert found[name].shape == array.shape
        np.testing.assert_array_equal(found[name], array)
        assert not found[name].flags.writeable
    assert [file.name for file in tmp_path.iterdir()] == ["a"], "nothing is left beside it"


def test_no_file_and_no_arrays(tmp_path):
    assert read_arrays(tmp_path / "a") is None
    write_arrays(tmp_path / "a", {})
    assert read_arrays(tmp_path / "a") == {}


def test_a_reader_keeps_what_it_has_when_the_file_is_replaced(tmp_path):
    write_arrays(tmp_path / "a", {"x": np.ones(1000)})
    held = read_arrays(tmp_path / "a")
    write_arrays(tmp_path / "a", {"x": np.zeros(3)})
    assert held is not None
    assert held["x"].sum() == 1000


@pytest.mark.parametrize("position", [0, 5, 60, 64, 200, -1, -70])
def test_every_byte_counts(tmp_path, position):
    write_arrays(tmp_path / "a", {"x": np.arange(1, 41), "y": np.arange(1, 9)})
    data = bytearray((tmp_path / "a").read_bytes())
    data[position] ^= 0x21
    (tmp_path / "a").write_bytes(data)
    with pytest.raises(DamagedArrays):
        read_arrays(tmp_path / "a")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"x",
        b"{}\n",
        b"[]\n",
        b"null\n",
        b'{"magic": "tagframe arrays 2"}\n',
        bytes(5000),
    ],
)
def test_what_is_no_such_file(tmp_path, data):
    (tmp_path / "a").write_bytes(data)
    with pytest.raises(DamagedArrays):
        read_arrays(tmp_path / "a")


def test_texts_as_an_array():
    for texts in ([], ["a"], ["a", "b c", "é"], [""]):
        assert texts_of(text_array(texts), len(texts)) == texts

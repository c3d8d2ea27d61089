"""Arrays in a file, and what becomes of it where it is damaged."""

import numpy as np

from tagframe.corpus.arrays import DamagedArrays, read_arrays, text_array, texts_of, write_arrays

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


def test_no_damaged_byte_gives_other_arrays(tmp_path):
    arrays = {"x": np.arange(1, 41), "y": np.arange(1, 9)}
    write_arrays(tmp_path / "a", arrays)
    data = (tmp_path / "a").read_bytes()
    damaged = 0
    for position in range(len(data)):
        other = bytearray(data)
        other[position] ^= 0x21
        (tmp_path / "a").write_bytes(other)
        try:
            read = read_arrays(tmp_path / "a")
        except (DamagedArrays, OSError):
            damaged += 1
        else:  # as of a byte of the archive's times
            assert read is not None
            np.testing.assert_equal(read, arrays)
    assert damaged > 0.8 * len(data)


def test_texts_as_an_array():
    for texts in ([], ["a"], ["a", "b c", "é"], [""]):
        assert texts_of(text_array(texts), len(texts)) == texts

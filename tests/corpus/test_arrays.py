"""Arrays as bytes, and what becomes of them where they are damaged."""

import numpy as np
import pytest

from tagframe.corpus.stored_profiles import packed, text_array, texts_of, unpacked

ARRAYS = {
    "numbers": np.arange(12, dtype=np.int64).reshape(3, 4),
    "none": np.zeros((0, 5), dtype=np.float32),
    "flags": np.array([True, False, True]),
    "strided": np.arange(20, dtype=np.float64)[::3],
}


def test_arrays_come_back_as_they_were_or_not_at_all():
    data = packed(ARRAYS)
    for name, array in unpacked(data).items():
        assert (array.dtype, array.shape) == (ARRAYS[name].dtype, ARRAYS[name].shape)
        np.testing.assert_array_equal(array, ARRAYS[name])
    assert unpacked(packed({})) == {}
    for position in range(0, len(data), 7):
        with pytest.raises(ValueError, match="checksum"):
            unpacked(data[:position] + bytes([data[position] ^ 0x21]) + data[position + 1 :])


def test_texts_as_an_array():
    for texts in ([], ["a"], ["a", "b c", "é"], [""]):
        assert texts_of(text_array(texts), len(texts)) == texts

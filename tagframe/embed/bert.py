"""A BERT encoder as an ONNX graph over the weights of a safetensors file.

The graph is a few kilobytes and is written here, in the format of ``onnx.proto`` (github.com/onnx/onnx); its weights
are "external data": the bytes of the safetensors file, where they lie. So neither torch nor the package ``onnx`` is
needed, nothing is converted, and no second file of 90 MB is kept. A graph in int8 holds its matrices itself, rounded
when the graph is written.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

FLOAT, INT64 = 1, 7
"""``TensorProto.DataType``."""
_KINDS = {np.dtype(name): kind for name, kind in {"f4": FLOAT, "u1": 2, "i1": 3, "i8": INT64}.items()}
_OPSET, _IR = 20, 9
_ONNXRUNTIME = "com.microsoft"
"""The domain of onnxruntime's own operators."""
_LARGEST_WEIGHT, _LARGEST_STATE = 63, 127
"""In int8. Processors without VNNI add two products in 16 bits, which weights of seven bits do not overflow."""
_PADDING_SCORE = -1e9
"""Added to the attention scores of padding tokens."""


def bert_graph(weights: Path, *, heads: int, epsilon: float, int8: bool = False) -> bytes:
    """An ``onnx.ModelProto`` whose weights are those of ``weights``, a file in the safetensors format.

    Inputs are ``ids`` and ``mask``, both int64 of shape (texts, tokens), the mask 1 where a token is no padding; the
    output ``states`` is float32 of shape (texts, tokens, width), those of the last layer. The tensors have the
    names that ``transformers.BertModel`` gives them.

    Args:
        weights: the graph has its name without its folder; whoever runs the graph gives the folder.
        heads: attention heads.
        epsilon: of the layer norms.
        int8: whether matrices are multiplied as whole numbers. Each output of a matrix and each token has a scale of
            its own, so that a text's vector does not depend on the texts beside it.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not a safetensors file of such a model.
    """
    graph = _Graph()
    shapes = graph.external(weights)
    width = shapes["embeddings.word_embeddings.weight"][1]
    add, constant = graph.add, graph.constant
    flat = constant("flat", np.array([-1, width]))
    split = constant("split", np.array([0, 0, heads, width // heads]))
    scale = constant("scale", np.float32((width // heads) ** -0.5))
    zero, one = constant("zero", np.int64(0)), constant("one", np.int64(1))

    def norm(tensor: str, name: str) -> str:
        return add("LayerNormalization", tensor, f"{name}.weight", f"{name}.bias", axis=-1, epsilon=epsilon)

    def dense(tensor: str, name: str) -> str:
        if not int8:
            return add("Gemm", tensor, f"{name}.weight", f"{name}.bias", transB=1)
        states, sizes = rounded(tensor)
        matrix, scales = graph.in_int8(f"{name}.weight")
        product = add("MatMulIntegerToFloat", states, matrix, unit, scales, middle, domain=_ONNXRUNTIME)
        return add("Add", add("Mul", product, sizes), f"{name}.bias")

    unit, middle = constant("unit", np.float32(1)), constant("middle", np.uint8(128))
    largest, second = constant("largest", np.float32(1 / _LARGEST_STATE)), constant("second", np.array([1]))

    @cache
    def rounded(tensor: str) -> tuple[str, str]:
        """Tokens as whole numbers around 128, and the scale of each, shape (tokens, 1)."""
        sizes = add("Mul", add("ReduceMax", add("Abs", tensor), second, keepdims=1), largest)
        each = add("Squeeze", sizes, second)
        middles = add("Expand", middle, add("Shape", each))
        return add("QuantizeLinear", tensor, each, middles, axis=0), sizes

    shape = add("Shape", "ids")
    whole = add("Concat", shape, constant("width", np.array([width])), axis=0)
    positions = add("Range", zero, add("Gather", shape, one), one)
    words = add("Gather", "embeddings.word_embeddings.weight", "ids")
    where = add("Gather", "embeddings.position_embeddings.weight", positions)
    kind = add("Gather", "embeddings.token_type_embeddings.weight", zero)
    # Tokens of all texts are one matrix, except in the attention.
    tokens = add("Reshape", add("Add", words, add("Add", where, kind)), flat)
    tokens = norm(tokens, "embeddings.LayerNorm")
    padding = add("Sub", add("Cast", "mask", to=FLOAT), constant("real", np.float32(1)))
    padding = add("Mul", padding, constant("never", np.float32(-_PADDING_SCORE)))
    padding = add("Unsqueeze", padding, constant("axes", np.array([1, 2])))
    for number in range(sum(name.endswith("attention.self.query.weight") for name in shapes)):
        layer = f"encoder.layer.{number}"

        def head(part: str, order: list[int], tokens: str = tokens, layer: str = layer) -> str:
            projected = add("Reshape", dense(tokens, f"{layer}.attention.self.{part}"), whole)
            return add("Transpose", add("Reshape", projected, split), perm=order)

        queries = add("Mul", head("query", [0, 2, 1, 3]), scale)
        chances = add("Softmax", add("Add", add("MatMul", queries, head("key", [0, 2, 3, 1])), padding), axis=-1)
        seen = add("Transpose", add("MatMul", chances, head("value", [0, 2, 1, 3])), perm=[0, 2, 1, 3])
        attention = dense(add("Reshape", seen, flat), f"{layer}.attention.output.dense")
        tokens = norm(add("Add", attention, tokens), f"{layer}.attention.output.LayerNorm")
        inner = add("Gelu", dense(tokens, f"{layer}.intermediate.dense"))
        tokens = norm(add("Add", dense(inner, f"{layer}.output.dense"), tokens), f"{layer}.output.LayerNorm")
    add("Reshape", tokens, whole, output="states")
    return graph.model(["ids", "mask"], "states", width)


class _Graph:
    """An ``onnx.GraphProto`` as it grows; field numbers are those of ``onnx.proto``."""

    def __init__(self) -> None:
        self._nodes: list[bytes] = []
        self._tensors: list[bytes] = []
        self._read: Callable[[str], np.ndarray[Any, Any]]

    def add(
        self, operator: str, *inputs: str, output: str = "", domain: str = "", **attributes: float | list[int]
    ) -> str:
        """Add a ``NodeProto``; gives the name of its output."""
        output = output or f"{operator} {len(self._nodes)}"
        encoded = [(5, _attribute(name, value)) for name, value in attributes.items()]
        self._nodes.append(_message(*((1, name) for name in inputs), (2, output), (4, operator), *encoded, (7, domain)))
        return output

    def constant(self, name: str, value: np.ndarray[Any, Any] | np.generic) -> str:
        """Add a ``TensorProto`` with its values; gives its name."""
        kind, little = _KINDS[value.dtype], value.astype(value.dtype.newbyteorder("<")).tobytes()
        self._tensors.append(_message(*((1, size) for size in value.shape), (2, kind), (8, name), (9, little)))
        return name

    def in_int8(self, name: str) -> tuple[str, str]:
        """Add an external matrix (outputs, inputs), transposed and rounded, and the scale of each output; gives their
        names."""
        matrix = self._read(name)
        scales = np.abs(matrix).max(axis=1) / np.float32(_LARGEST_WEIGHT)
        whole = np.round(matrix / scales[:, None]).astype(np.int8).T
        return self.constant(f"{name} in int8", whole), self.constant(f"{name} scales", scales)

    def external(self, file: Path) -> dict[str, list[int]]:
        """Add the tensors of a safetensors file, by their offsets in it; gives their shapes by name."""
        with file.open("rb") as opened:
            (length,) = struct.unpack("<Q", opened.read(8))
            header = json.loads(opened.read(length))
        shapes: dict[str, list[int]] = {}
        for name, tensor in header.items():
            if tensor.get("dtype") != "F32":
                continue  # "__metadata__", and the positions' numbers
            start, end = tensor["data_offsets"]
            span = {"location": file.name, "offset": 8 + length + start, "length": end - start}
            entries = [(13, _message((1, key), (2, str(value)))) for key, value in span.items()]
            sizes = [(1, size) for size in tensor["shape"]]
            self._tensors.append(_message(*sizes, (2, FLOAT), (8, name), *entries, (14, 1)))
            shapes[name] = tensor["shape"]

        def read(name: str) -> np.ndarray[Any, Any]:
            offset = 8 + length + header[name]["data_offsets"][0]
            values = np.fromfile(file, "<f4", count=math.prod(shapes[name]), offset=offset)
            return values.reshape(shapes[name]).astype(np.float32, copy=False)

        self._read = read
        return shapes

    def model(self, inputs: Sequence[str], output: str, width: int) -> bytes:
        """The whole as a ``ModelProto``."""
        graph = _message(
            *((1, node) for node in self._nodes),
            (2, "bert"),
            *((5, tensor) for tensor in self._tensors),
            *((11, _value(name, INT64, ["texts", "tokens"])) for name in inputs),
            (12, _value(output, FLOAT, ["texts", "tokens", width])),
        )
        used = [(8, _message((1, domain), (2, version))) for domain, version in (("", _OPSET), (_ONNXRUNTIME, 1))]
        return _message((1, _IR), (2, "tagframe"), (7, graph), *used)


def _attribute(name: str, value: float | list[int]) -> bytes:
    """An ``AttributeProto``."""
    if isinstance(value, list):
        return _message((1, name), *((8, number) for number in value), (20, 7))
    return _message((1, name), *([(2, value), (20, 1)] if isinstance(value, float) else [(3, value), (20, 2)]))


def _value(name: str, kind: int, sizes: Sequence[str | int]) -> bytes:
    """A ``ValueInfoProto`` of a tensor; sizes that vary have names."""
    shape = _message(*((1, _message((2 if isinstance(size, str) else 1, size))) for size in sizes))
    return _message((1, name), (2, _message((1, _message((1, kind), (2, shape))))))


def _message(*fields: tuple[int, int | float | str | bytes]) -> bytes:
    """A protocol buffer's message: numbers as varints, floats in four bytes, texts and messages with their lengths."""
    parts = []
    for number, value in fields:
        if isinstance(value, float):
            parts += [_varint(number << 3 | 5), struct.pack("<f", value)]
        elif isinstance(value, int):
            parts += [_varint(number << 3), _varint(value)]
        else:
            data = value.encode() if isinstance(value, str) else value
            parts += [_varint(number << 3 | 2), _varint(len(data)), data]
    return b"".join(parts)


def _varint(number: int) -> bytes:
    number &= 2**64 - 1  # negative numbers are written as their two's complement
    parts = bytearray()
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    parts.append(number)
    return bytes(parts)

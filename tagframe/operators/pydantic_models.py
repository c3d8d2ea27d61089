"""pydantic models as the structure of an answer: one JSON object, which is checked; its fields become columns."""

from __future__ import annotations

import datetime
import enum
import json
import types
from typing import Any, Literal, Union, get_args, get_origin

from tagframe.errors import AnswerRejected, InvalidArgument
from tagframe.lm import Form
from tagframe.lm.blocks import parse_block
from tagframe.operators.values import FIELD_TOKENS, SECONDS, SHORT_TOKENS, TEXT_TOKENS, Value

_DTYPES = {str: "string", bool: "boolean", int: "Int64", float: "Float64"}
_MAX_DEPTH = 6


def model_value(model: Any) -> Value:
    """A value of a pydantic model: a column for each of its fields.

    Raises:
        InvalidArgument: it is not a pydantic model class, or has no fields.
    """
    if not isinstance(model, type) or not hasattr(model, "model_json_schema") or not hasattr(model, "model_fields"):
        raise InvalidArgument(f"response_format must be a pydantic model class; got {model!r:.200}")
    fields: dict[str, Any] = model.model_fields
    if not fields:
        raise InvalidArgument(f"the model {model.__name__} has no fields, so there is nothing to ask for")
    schema = model.model_json_schema()

    def read(answer: str) -> tuple[Any, ...]:
        value = read_model(model, answer)
        return tuple(_cell(getattr(value, name)) for name in fields)

    return Value(
        "the JSON object",
        read,
        {name: dtype_of(field.annotation) for name, field in fields.items()},
        json.dumps(sample_of(schema, schema)),
        max(2 * TEXT_TOKENS, SHORT_TOKENS + FIELD_TOKENS * len(fields)),
        details=f"One JSON object that this schema describes: {json.dumps(schema, ensure_ascii=False)}",
        shape=Form(schema, strict=False),
    )


def read_model(model: Any, answer: str) -> Any:
    """An answer, in a code block or not, as an instance of the model.

    Raises:
        AnswerRejected: it is not; the message can be shown to the model.
    """
    try:
        return model.model_validate_json(parse_block(answer))
    except AnswerRejected:
        raise
    except ValueError as error:  # pydantic's ValidationError, whose own text is very long
        problems = [
            f"{'.'.join(map(str, one['loc'])) or 'the answer'}: {one['msg']}"
            for one in getattr(error, "errors", list)()
        ]
        raise AnswerRejected(f"expected JSON of {model.__name__}: {'; '.join(problems[:5]) or error}") from error


def dtype_of(annotation: Any) -> Any:
    """The dtype of a field's column: a nullable one, or object if the field is not a single value."""
    kinds: set[Any]
    if get_origin(annotation) in (Union, types.UnionType):
        kinds = {dtype_of(one) for one in get_args(annotation) if one is not type(None)}
    elif get_origin(annotation) is Literal:
        kinds = {_DTYPES.get(type(one), "object") for one in get_args(annotation) if one is not None}
    elif get_origin(annotation) is not None or not isinstance(annotation, type):
        return "object"
    elif issubclass(annotation, enum.Enum):
        kinds = {_DTYPES.get(type(one.value), "object") for one in annotation}
    elif issubclass(annotation, datetime.date):
        return SECONDS
    else:
        return _DTYPES.get(annotation, "object")
    return kinds.pop() if len(kinds) == 1 else "object"


def _cell(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return value.value
    return value.model_dump() if hasattr(value, "model_dump") else value


def sample_of(schema: Any, whole: Any, depth: int = 0) -> Any:
    """A sample that fits a JSON schema, used as an answer in a quote; limits of length are ignored.

    Args:
        schema: the part to make a sample of.
        whole: the whole schema, with its definitions.
        depth: of the part, so that a recursive schema ends.
    """
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        return None
    if "$ref" in schema:
        return sample_of(whole.get("$defs", {}).get(schema["$ref"].rsplit("/", 1)[-1]), whole, depth + 1)
    for name in ("const", "default"):
        if name in schema:
            return schema[name]
    if schema.get("enum"):
        return schema["enum"][0]
    for name in ("anyOf", "oneOf", "allOf"):
        if schema.get(name):
            return sample_of(schema[name][0], whole, depth + 1)
    kind = schema.get("type")
    if kind == "object":
        return {name: sample_of(part, whole, depth + 1) for name, part in schema.get("properties", {}).items()}
    if kind == "array":
        return [sample_of(schema.get("items", {"type": "string"}), whole, depth + 1)] * max(
            1, schema.get("minItems", 1)
        )
    if kind in ("integer", "number"):
        least = schema.get("minimum", schema.get("exclusiveMinimum", -1) + 1)
        return min(least, schema["maximum"]) if "maximum" in schema else least
    formats = {"date": "2024-05-17", "date-time": "2024-05-17T09:30:00", "time": "09:30:00"}
    return {"boolean": True, "null": None}.get(str(kind), formats.get(schema.get("format", ""), "some words"))

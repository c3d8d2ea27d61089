"""Descriptions of tools for a model (JSON schemas from signatures and docstrings), and calls by name."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Literal, TypedDict

from pydantic import TypeAdapter, ValidationError, validate_call

from tagframe.agents.formatting import in_tool_words
from tagframe.errors import InvalidArgument, TagframeError

Format = Literal["openai", "anthropic"]
_ARGUMENT = re.compile(r"^(\w+): (.*)$")


class ToolSchema(TypedDict):
    """A tool: its name, its description for a model, and the JSON schema of its arguments."""

    name: str
    title: str
    description: str
    input_schema: dict[str, Any]


def schema_of(tool: Callable[..., Any]) -> ToolSchema:
    """The description of a tool for a model."""
    return _schema_of(getattr(tool, "__func__", tool))


@lru_cache(maxsize=64)
def _schema_of(tool: Callable[..., Any]) -> ToolSchema:
    text, _, arguments = inspect.getdoc(tool).partition("\n\nArgs:\n")  # type: ignore[union-attr]
    described: dict[str, str] = {}
    for line in inspect.cleandoc(arguments).split("\n"):
        if match := _ARGUMENT.match(line):
            last, described[match[1]] = match[1], match[2]
        elif described:
            described[last] += f" {line.strip()}"
    taken = _plain(TypeAdapter[Any](tool).json_schema())  # type: ignore[arg-type]  # a function is a schema, too
    taken["properties"].pop("self", None)
    needed = [name for name in taken.pop("required", []) if name != "self"]
    taken |= {"required": needed} if needed else {}
    for name, schema in taken["properties"].items():
        schema["description"] = described[name]
    description = "\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))
    name = tool.__name__
    title = name.replace("_", " ").capitalize().replace("sql", "SQL")
    return ToolSchema(name=name, title=title, description=description, input_schema=taken)


def _plain(schema: Any) -> Any:
    """A schema without what a model need not read: titles, and null for an argument that may be left out."""
    if not isinstance(schema, dict):
        return [_plain(one) for one in schema] if isinstance(schema, list) else schema
    options = [one for one in schema.get("anyOf", []) if one != {"type": "null"}]
    rest = {key: value for key, value in schema.items() if key != "anyOf"}
    if rest.get("default", "") is None:
        del rest["default"]
    rest |= options[0] if len(options) == 1 else {"anyOf": options} if options else {}
    return {
        key: {name: _plain(one) for name, one in value.items()} if key in ("properties", "$defs") else _plain(value)
        for key, value in rest.items()
        if key not in ("title", "additionalProperties")
    }


def in_format(tool: Callable[..., Any], format: Format) -> dict[str, Any]:
    """A tool in the format of a provider's API.

    Raises:
        InvalidArgument: an unknown format.
    """
    schema = schema_of(tool)
    name, description, taken = schema["name"], schema["description"], schema["input_schema"]
    if format == "openai":
        return {"type": "function", "function": {"name": name, "description": description, "parameters": taken}}
    if format == "anthropic":
        return {"name": name, "description": description, "input_schema": taken}
    raise InvalidArgument(f"format must be 'openai' or 'anthropic'; got {format!r}")


def called(tool: Callable[..., Any], arguments: Mapping[str, Any] | str) -> Any:
    """The result of a tool for arguments that a model wrote, which may be JSON text.

    Raises:
        InvalidArgument: the arguments are wrong.
    """
    size = len(arguments) if isinstance(arguments, str) else len(json.dumps(arguments, default=str))
    if size > MAX_ARGUMENT_LETTERS:
        raise InvalidArgument(
            f"the arguments of {tool.__name__} are {size:,} characters long, and {MAX_ARGUMENT_LETTERS:,} at most are "
            "taken: name fewer tables or values"
        )
    try:
        given = json.loads(arguments or "{}") if isinstance(arguments, str) else dict(arguments)
    except (ValueError, RecursionError) as error:
        raise InvalidArgument(f"the arguments of {tool.__name__} must be one JSON object: {error}") from error
    if not isinstance(given, dict) or not all(isinstance(name, str) for name in given):
        raise InvalidArgument(f"the arguments of {tool.__name__} must be one JSON object; got {given!r:.100}")
    checked = {name: value for name, value in given.items() if value is not None}
    try:
        return _checked(tool.__func__)(tool.__self__, **checked)  # type: ignore[attr-defined]
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()[:3])
        raise InvalidArgument(f"wrong arguments for {tool.__name__}: {problems}") from error
    except TagframeError as error:
        text = str(error)
        if error.args and isinstance(error.args[0], str):
            error.args = (in_tool_words(text), *error.args[1:])
        raise


MAX_ARGUMENT_LETTERS = 256_000
"""Characters of the JSON of a call's arguments."""
_checked = lru_cache(maxsize=64)(validate_call)

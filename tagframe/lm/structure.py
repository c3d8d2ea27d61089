"""The form of an answer, asked of the server as structured output where it can: OpenAI's ``response_format``.

llama.cpp and vLLM take it, Ollama maps it to ``format``, and litellm to what each provider has, tools too. The JSON is
written as the text that the prompt asks for, so that answers are parsed and stored alike with and without it. A server
that ignores it shows that by an answer of another form, and is not asked for it again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Structured: TypeAlias = Literal["auto", "off", "json_schema"]

FIELDS = (
    "response_format", "grammar", "json_schema", "structured_outputs", "guided_json", "guided_choice", "guided_regex",
    "guided_grammar", "format", "regex", "ebnf", "tools", "functions",
)  # fmt: skip
"""Fields of a request's body with which a user sets the form of answers; then it is theirs."""

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "boolean": (bool,), "null": (type(None),),
    "integer": (int,), "number": (int, float),
}  # fmt: skip


def as_json(value: Any) -> str:
    """A value as JSON in one line."""
    return json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True, eq=False)
class Form:
    """The form of an answer.

    Attributes:
        schema: a JSON schema of its value.
        write: the text of a value of the schema, as the prompt asks for it.
        strict: whether the schema keeps to the part that OpenAI enforces.
        eager: False asks for the form only where an answer is repaired: what is written freely first is better.
    """

    schema: Mapping[str, Any]
    write: Callable[[Any], str] = as_json
    strict: bool = True
    eager: bool = True

    def fields(self, wraps: bool) -> dict[str, Any]:
        """The fields of a request's body; ``wraps`` puts a value that is no object into one, as hosted models need."""
        schema = fields_schema({"answer": self.schema}) if self._wrapped(wraps) else self.schema
        fields = {"name": "answer", "schema": schema, "strict": self.strict}
        return {"response_format": {"type": "json_schema", "json_schema": fields}}

    def read(self, text: str, wraps: bool) -> str | None:
        """The answer as the prompt asks for it; None if the text is not of the form that was asked for."""
        try:
            value = json.loads(text)
            value = value["answer"] if self._wrapped(wraps) else value
            return self.write(value) if _fits(self.schema, value) else None
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return None

    def _wrapped(self, wraps: bool) -> bool:
        return wraps and self.schema.get("type") != "object"

    def explained(self, before: str = "\n") -> Form:
        """The form after the model's reason and "Answer:"."""
        return Form(
            fields_schema({"reason": {"type": "string"}, "answer": self.schema}),
            lambda value: f"{' '.join(value['reason'].split())}{before}Answer: {self.write(value['answer'])}",
            self.strict,
        )

    def numbered(self, count: int) -> Form:
        """So many answers, each in a line after its number."""
        numbers = [str(number) for number in range(1, count + 1)]
        return Form(
            fields_schema(dict.fromkeys(numbers, self.schema)),
            lambda value: "\n".join(f"{number}: {self.write(value[number])}" for number in numbers),
            self.strict,
        )


def words(values: Mapping[Any, str]) -> Form:
    """The form of an answer that is one of a few words.

    Args:
        values: the word that the prompt asks for, by the JSON value that a server is asked for: a text, True, False or
            None.

    >>> form = words({True: "yes", False: "no"})
    >>> form.schema, form.write(True)
    ({'type': 'boolean'}, 'yes')
    """
    listed = list(values)
    if any(isinstance(value, str) for value in listed):
        schema: dict[str, Any] = {"type": ["string", "null"] if None in listed else "string", "enum": listed}
    else:
        schema = {"type": ["boolean", "null"] if None in listed else "boolean"}
    return Form(schema, values.__getitem__)


def fields_schema(properties: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of an object with exactly these fields; definitions of their schemas stand with the object."""
    own, defined = {}, {}
    for name, schema in properties.items():
        own[name] = {key: part for key, part in schema.items() if key != "$defs"}
        defined.update(schema.get("$defs", {}))
    whole = {"type": "object", "properties": own, "required": [*own], "additionalProperties": False}
    return whole | ({"$defs": defined} if defined else {})


def _fits(schema: Mapping[str, Any], value: Any) -> bool:
    """Whether a value is of a schema, as far as is needed to see that the server kept to it."""
    kinds = schema.get("type")
    if "enum" in schema and value not in schema["enum"]:
        return False
    if kinds is not None:
        listed: Iterable[str] = (kinds,) if isinstance(kinds, str) else kinds
        allowed = {type_ for kind in listed for type_ in _TYPES.get(kind, (object,))}
        if not any(type(value) is one or one is object for one in allowed):
            return False
    if isinstance(value, dict):
        parts = schema.get("properties", {})
        return set(schema.get("required", ())) <= value.keys() and all(
            _fits(parts[name], part) for name, part in value.items() if name in parts
        )
    return True

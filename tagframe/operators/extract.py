"""``sem_extract``: facts from texts, as columns."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from tagframe.errors import AnswerRejected, InvalidArgument
from tagframe.lm import Form, fields_schema
from tagframe.operators.cells import Instruction, one_line, position_of, prompt_names
from tagframe.operators.drivers import Step
from tagframe.operators.map import MapOptions, mapped
from tagframe.operators.operator import declare
from tagframe.operators.outcome import OnError
from tagframe.operators.packing import RowsPerCall
from tagframe.operators.values import (
    FIELD_TOKENS,
    SHORT_TOKENS,
    Value,
    choice_value,
    model_value,
    parse_json,
    value_of_dtype,
)

QUOTE = "_quote"
"""The end of the name of a column with quotes (LOTUS' name)."""

_TASK = (
    "Extract what a row of a table says, from the row alone. A value is short, and null where the row does not say it."
)


@declare(guess=lambda prompt: "{}", shows=lambda frame, given: _positions(frame, given["input_cols"]))
def sem_extract(
    frame: pd.DataFrame,
    input_cols: Hashable | Sequence[Hashable],
    output_cols: Mapping[str, Any] | Sequence[str] | type,
    *,
    extract_quotes: bool = False,
    return_explanations: bool = False,
    examples: pd.DataFrame | None = None,
    rows_per_call: RowsPerCall = None,
    suffix: str = "_extract",
    on_error: OnError = "raise",
    window: int | None = None,
) -> Step[pd.DataFrame]:
    """Extract facts from the rows into columns; ``<NA>`` if a row does not contain the fact.

    Each row takes one question, however many facts are extracted.

    Args:
        frame: any frame; it is not changed. Or an iterator of frames, see :mod:`tagframe.operators.batches`.
        input_cols: labels of the columns to read, or one label.
        output_cols: the name of each new column, with a description of its content, with a type (``int``, ``float``,
            ``bool``, ``datetime.date``, ``str``), with a list of the allowed texts, or with None if the name says
            enough. Or a list of names. Or a pydantic model class, as ``response_format`` of :func:`sem_map`.
        extract_quotes: add columns ``NAME_quote`` with the words from which the values are taken. Quotes that are not
            in the row are left out, and the row's outcome says so. Not for a model class.
        return_explanations: add a column ``explanation_extract`` with the model's reasons.
        examples: solved rows to show first: ``input_cols`` and a column ``Answer`` of dicts (or JSON) with a value or
            None for each new column.
        rows_per_call: rows in one prompt, audited as for :func:`sem_filter`; texts count as the same if they share half
            of their words.
        suffix: the end of the names of the columns for reasons and errors.
        on_error: how to treat rows without an answer: ``"raise"`` once all others are done, ``"keep"`` as ``<NA>`` with
            a column ``extract_error``, or ``"drop"``.

    Returns:
        The frame with the columns of ``output_cols``; ``.tag.outcomes`` has the outcome of each row.

    Raises:
        RowsFailed: with ``on_error="raise"``, after all rows have been tried; the finished frame is on it.
        ColumnNotFound: a column of ``input_cols`` does not exist.
        InvalidArgument: there is nothing to read or to extract, or the name of an added column is taken.
        NotConfigured: no model is set.
    """
    positions = _positions(frame, input_cols)
    names = prompt_names(frame, positions)
    keys: list[str] = []
    if isinstance(output_cols, type):
        if extract_quotes:
            raise InvalidArgument("extract_quotes= needs names and descriptions, not a model class")
        value, fields_text = model_value(output_cols), ""
    else:
        fields = _checked_fields(output_cols)
        fields_text = "\n" + "\n".join(
            f"- {json.dumps(name, ensure_ascii=False)}: {one.description}" for name, one in fields.items()
        )
        keys = [*fields, *(f"{name}{QUOTE}" for name in fields if extract_quotes)]
        value = _object_value(keys, {name: one.value for name, one in fields.items()}, extract_quotes)
    resolved = Instruction(
        f"extract from the row{fields_text}",
        tuple(frame.columns[position] for position in positions),
        tuple(positions),
        tuple(names),
    )
    options = MapOptions(suffix, return_explanations, examples, rows_per_call, on_error, window)
    settle = (lambda cells, row: _with_true_quotes(keys, cells, row)) if extract_quotes else None
    return (yield from mapped("sem_extract", frame, resolved, value, _TASK, options, settle=settle))


class _Field(NamedTuple):
    """What a new column holds: a description for the model, and the kind of value; None for a text."""

    description: str
    value: Value | None


def _checked_fields(output_cols: Mapping[str, Any] | Sequence[str]) -> dict[str, _Field]:
    """The field of each new column, by its name."""
    if isinstance(output_cols, Sequence) and not isinstance(output_cols, str):
        output_cols = dict.fromkeys(output_cols)
    if not isinstance(output_cols, Mapping) or not output_cols:
        raise InvalidArgument(
            "output_cols must be names with descriptions or types, such as {'mood': 'good or bad', 'year': int}, a "
            f"list of names, or a pydantic model class; got {output_cols!r:.200}"
        )
    fields = {}
    for name, given in output_cols.items():
        if not isinstance(name, str) or not name.strip():
            raise InvalidArgument(f"output_cols must have texts as names; got {name!r}: {given!r:.100}")
        if given is None or isinstance(given, str):
            fields[name] = _Field(one_line(given or name), None)
            continue
        try:
            value = choice_value(given) if isinstance(given, list | tuple) else value_of_dtype(given)
        except InvalidArgument as error:
            raise InvalidArgument(
                f"output_cols must map each name to a text, a type or None; {name!r}: {error}"
            ) from None
        fields[name] = _Field(f"{one_line(name)}, as {value.details or value.form}", None if value.is_text else value)
    return fields


def _positions(frame: pd.DataFrame, input_cols: Hashable | Sequence[Hashable]) -> list[int]:
    labels = [input_cols] if isinstance(input_cols, str) or not isinstance(input_cols, Sequence) else list(input_cols)
    if isinstance(input_cols, tuple) and input_cols in frame.columns:
        labels = [input_cols]  # one label of several levels
    positions = [position_of(frame, label) for label in labels]
    if not positions:
        raise InvalidArgument("input_cols names no column, so there is nothing to show to the model")
    return list(dict.fromkeys(positions))


def _object_value(keys: Sequence[str], kinds: Mapping[str, Value | None], quotes: bool) -> Value:
    """One JSON object with short texts, values of other kinds, or nulls."""
    typed = {name: kind for name, kind in kinds.items() if kind is not None}

    def read(answer: str) -> tuple[Any, ...]:
        value, body = parse_json(answer, "one JSON object")
        if not isinstance(value, dict) or set(value) != set(keys):
            keys_given = list(value) if isinstance(value, dict) else body[:80]
            raise AnswerRejected(f"expected an object with the keys {list(keys)!r:.300}, got {keys_given!r:.300}")
        return tuple(_cell(name, value[name], typed.get(name)) for name in keys)

    kind = "a text or null" if not typed else "what is said of it above, or null"
    details = f"One JSON object with the keys {json.dumps(list(keys), ensure_ascii=False)}, each {kind}"
    if quotes:
        details += (
            f"; a key that ends with {QUOTE} has the words of the row, as they stand there, that the value is from"
        )
    guess = {name: typed[name].guess if name in typed else "some words" for name in keys}
    return Value(
        "the JSON object",
        read,
        {name: typed[name].columns[None] if name in typed else "string" for name in keys},
        json.dumps(guess),
        SHORT_TOKENS + FIELD_TOKENS * len(keys),
        details=details,
        shape=Form(fields_schema({name: _schema(typed.get(name)) for name in keys})),
    )


def _schema(kind: Value | None) -> Mapping[str, Any]:
    """The JSON schema of a field: of its kind, or of a text or null."""
    return {"type": ["string", "null"]} if kind is None or kind.shape is None else kind.shape.schema


def _cell(name: str, value: Any, kind: Value | None) -> Any:
    """A value of the object, as the column holds it."""
    if isinstance(value, dict | list):
        raise AnswerRejected(f"{name!r} is one value or null, got {value!r:.80}")
    text = value if value is None or isinstance(value, str) else json.dumps(value)
    if kind is None or not text:
        return text or None
    try:
        return kind.read(text)[0]
    except AnswerRejected as rejection:
        raise AnswerRejected(f"{name!r}: {rejection}") from None


def _with_true_quotes(keys: Sequence[str], cells: tuple[Any, ...], row: str) -> tuple[tuple[Any, ...], str | None]:
    """The cells without quotes that are not in the row, and a note on those."""
    row_text = _plain(" ".join(str(cell) for cell in json.loads(row).values()))
    half = len(keys) // 2
    quotes = [at for at in range(half, len(keys)) if cells[at] is not None]
    made_up = [at for at in quotes if _plain(cells[at]) not in row_text]
    if not made_up:
        return cells, None
    true_cells = tuple(None if at in made_up else cell for at, cell in enumerate(cells))
    return true_cells, f"not in the row, and left out: {', '.join(keys[at] for at in made_up)}"


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold().strip("\"'“”‘’.… ")

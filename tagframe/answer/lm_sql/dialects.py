"""The SQL of each engine for staged statements: the key of some values, and the lookup of an answer by that key.

In SQLite, each value has its own type: answers are in a table with an index, unchanged. In PostgreSQL, columns have
types, and a table inside a statement has no index: answers are in one JSON object, are looked up by key, and are cast
to the type of their function.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd
from sqlglot import TokenType, exp, tokenize

from tagframe.answer.guard import Reader
from tagframe.answer.sql_tree import parsed, written
from tagframe.engines.sqlite.statement import looked_up_by, relation
from tagframe.errors import SQLFailed, UnsafeSQL

if TYPE_CHECKING:
    import pyarrow as pa

OWN = "tagframe_lm_"
"""The prefix of the names that we add to a statement; the user's names must not have it."""
KEY, VALUE, FAILED = f"{OWN}key", f"{OWN}value", f"{OWN}failed"

_ODD_TEXTS = frozenset(
    (
        TokenType.BIT_STRING, TokenType.BYTE_STRING, TokenType.HEREDOC_STRING, TokenType.NATIONAL_STRING,
        TokenType.RAW_STRING, TokenType.UNICODE_STRING,
    )
)  # fmt: skip
_ODD_NUMBER = re.compile(r"0[xob]", re.IGNORECASE)

Kind = Literal["text", "number", "integer", "date", "boolean"]
"""The type of an answer."""


class Spoken:
    """The dialect of one engine; this class is SQLite's, and subclasses are those of other engines (:data:`SPOKEN`).

    Attributes:
        name: in sqlglot.
        casts: the dtype of ``sem_map`` inside a CAST, by the type of the CAST.
        folds: whether unquoted names are folded to lower case.
        orders_by_names: whether ORDER BY may use names of SELECT inside an expression.
    """

    name = "sqlite"
    casts: Mapping[str, Any] = {"REAL": float, "NUMERIC": float, "INTEGER": int}
    folds = False
    orders_by_names = True
    _quote, _list = "quote", "json_group_array"

    def parsed(self, sql: str) -> exp.Query:
        """Parse a statement that the guard has accepted.

        Raises:
            UnsafeSQL: it would change when written back.
        """
        return parsed(sql, self.name)

    def written(self, tree: exp.Expr) -> str:
        """A tree as SQL."""
        return written(tree, self.name)

    def key(self, columns: Sequence[exp.Expr]) -> exp.Expr:
        """Columns as one text, which is equal exactly if all columns are equal and have the same types."""
        if not columns:
            return exp.Literal.string("")
        quoted: list[exp.Expr] = [exp.Anonymous(this=self._quote, expressions=[column.copy()]) for column in columns]
        whole = quoted[0]
        for part in quoted[1:]:
            comma = exp.DPipe(this=whole, expression=exp.Literal.string(","), safe=True)
            whole = exp.DPipe(this=comma, expression=part, safe=True)
        return whole if len(quoted) == 1 else exp.Paren(this=whole)

    def keys(self, key: exp.Expr) -> exp.Expr:
        """All keys of a group, as a JSON list."""
        return exp.Anonymous(this=self._list, expressions=[exp.Distinct(expressions=[key])])

    def distinct(self, names: Sequence[str], rows: str) -> str:
        """A statement that gives every value of the first column once, with one row's other columns."""
        return f"SELECT {', '.join(names)} FROM {rows} GROUP BY {names[0]}"

    def lookup(self, table: str, key: exp.Expr, kind: Kind) -> exp.Expr:
        """SQL for the answer of a row; NULL if there is none."""
        return self._found(VALUE, table, key)

    def was_asked(self, table: str, key: exp.Expr) -> exp.Expr:
        """SQL for: there is an answer for the row."""
        return exp.In(this=key, query=exp.select(KEY).from_(table).subquery())

    def has_not_failed(self, table: str, key: exp.Expr) -> exp.Expr:
        """SQL for: the answer for the row is not missing."""
        return exp.Is(this=self._found(FAILED, table, key), expression=exp.Null()).not_()

    def _found(self, column: str, table: str, key: exp.Expr) -> exp.Expr:
        return exp.select(column).from_(table).where(exp.EQ(this=exp.column(KEY), expression=key)).subquery()

    def table(self, answers: Mapping[str, Any], failed: Collection[str], kind: Kind) -> pa.Table:
        """The answers by their keys, as a table for the statement; ``failed`` are keys without an answer."""
        frame = pd.DataFrame(
            {
                KEY: pd.Series(list(answers), dtype=object),
                VALUE: _values(list(answers.values())),
                # NULL where it failed, and 1 where it did not.
                FAILED: pd.Series([None if key in failed else 1 for key in answers], dtype="Int64"),
            }
        )
        return looked_up_by(relation(frame), KEY)

    def stand_in(self, key: exp.Expr, kind: Kind) -> exp.Expr:
        """An expression that compiles in place of a lookup, and names the same columns as the key."""
        return key

    def names_no_column(self, error: SQLFailed) -> bool:
        """Whether a statement did not compile because of an unknown column."""
        return "no such column" in str(error)


class _Postgres(Spoken):
    name = "postgres"
    casts: Mapping[str, Any] = {
        **dict.fromkeys(("DOUBLE PRECISION", "REAL", "DECIMAL"), float),
        **dict.fromkeys(("INT", "BIGINT", "SMALLINT"), int),
        "DATE": "date",
        "BOOLEAN": bool,
    }
    folds = True
    orders_by_names = False
    _quote, _list = "quote_nullable", "jsonb_agg"
    _types: Mapping[Kind, str] = {
        "text": "text", "number": "double precision", "integer": "bigint", "date": "date", "boolean": "boolean",
    }  # fmt: skip

    def parsed(self, sql: str) -> exp.Query:
        tokens = tokenize(sql, read=self.name)
        for token, after in zip(tokens, [*tokens[1:], None], strict=True):
            text = sql[token.start : token.end + 1]
            if token.token_type in _ODD_TEXTS:
                raise UnsafeSQL(f"texts are written in single quotes, not as {text[:20]!r}: {sql[:200]!r}")
            is_cut = token.token_type == TokenType.NUMBER and after is not None and after.start == token.end + 1
            if _ODD_NUMBER.match(text) or (is_cut and after is not None and after.text.startswith("_")):
                raise UnsafeSQL(
                    f"beside LM functions numbers are written in plain digits, not as {text!r}: {sql[:200]!r}"
                )
        return super().parsed(sql)

    def distinct(self, names: Sequence[str], rows: str) -> str:
        # By the keys alone, as values of some types, such as json, have no equality.
        return f"SELECT DISTINCT ON ({names[0]}) {', '.join(names)} FROM {rows} ORDER BY {names[0]}"

    def lookup(self, table: str, key: exp.Expr, kind: Kind) -> exp.Expr:
        return exp.cast(self._found(VALUE, table, key), self._types[kind], dialect="postgres")

    def was_asked(self, table: str, key: exp.Expr) -> exp.Expr:
        return exp.Is(this=self._found(FAILED, table, key), expression=exp.Null()).not_()

    def has_not_failed(self, table: str, key: exp.Expr) -> exp.Expr:
        return exp.EQ(this=self._found(FAILED, table, key), expression=exp.Literal.string("no"))

    def _found(self, column: str, table: str, key: exp.Expr) -> exp.Expr:
        # Read once for a statement, whatever the number of its rows, as it depends on none.
        whole = exp.select(exp.cast(exp.column(column), "jsonb", dialect="postgres")).from_(table).subquery()
        return exp.Anonymous(this="jsonb_extract_path_text", expressions=[whole, key])

    def table(self, answers: Mapping[str, Any], failed: Collection[str], kind: Kind) -> pa.Table:
        values = {key: _text(answer, kind) for key, answer in answers.items()}
        states = {key: "yes" if key in failed else "no" for key in answers}
        return relation(pd.DataFrame({VALUE: [json.dumps(values)], FAILED: [json.dumps(states)]}, dtype=object))

    def stand_in(self, key: exp.Expr, kind: Kind) -> exp.Expr:
        nothing = exp.Anonymous(this="nullif", expressions=[key, key.copy()])
        return exp.cast(nothing, self._types[kind], dialect="postgres")

    def names_no_column(self, error: SQLFailed) -> bool:
        remarks = str(error)
        return (" column " in remarks and "does not exist" in remarks) or "FROM-clause entry for table" in remarks


SPOKEN: dict[str, Spoken] = {spoken.name: spoken for spoken in (Spoken(), _Postgres())}
"""By the name of an engine's dialect: where LM functions are staged."""


def spoken_of(reader: Reader) -> Spoken:
    """The dialect of the engine that runs a reader's statements.

    Raises:
        UnsafeSQL: LM functions are not staged there.
    """
    spoken = SPOKEN.get(reader.engine.dialect.name)
    if spoken is None:
        raise UnsafeSQL(
            f"LM functions (sem_filter, …) cannot be used in statements over {reader.engine.identity}: select the rows "
            "first, and use the operators on the frame, as frame.tag.sem_filter(…)"
        )
    return spoken


def _values(answers: Sequence[Any]) -> pd.Series:
    kinds = {type(answer) for answer in answers if answer is not None}
    dtype = "Int64" if kinds == {int} else "Float64" if kinds and kinds <= {int, float} else object
    return pd.Series(list(answers), dtype=dtype)


def _text(answer: Any, kind: Kind) -> str | None:
    """An answer as PostgreSQL reads it in a cast."""
    if answer is None:
        return None
    if kind == "boolean":
        return "true" if answer else "false"
    text = str(answer).encode("utf-8", "replace").decode()
    return text.replace("\x00", "")

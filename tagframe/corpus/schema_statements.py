"""The statements of a schema, one by one: a dump of a server has many that no parser of several dialects reads.

Only tables, keys that are added to them and comments are parsed. What a dialect of its own writes into a table (a
generated column, an option of storage) is left out of the statement; a table that cannot be read at all is a problem.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tagframe.errors import InvalidArgument, did_you_mean
from tagframe.quiet import quiet

if TYPE_CHECKING:
    from sqlglot import exp

_NAME = r"(?:\"[^\"]+\"|`[^`]+`|\[[^\]]+\]|[\w$#]+)"
_NAMES = rf"{_NAME}(?:\s*\.\s*{_NAME})*"
_TABLE = re.compile(
    r"\s*CREATE\s+(?:(?:OR\s+REPLACE|GLOBAL|LOCAL|TEMP|TEMPORARY|UNLOGGED|FOREIGN|EXTERNAL|TRANSIENT|COLUMN|ROW|"
    r"MEMORY|CACHED|HYBRID|DYNAMIC|ICEBERG|MULTISET|SET|VOLATILE)\s+)*"
    rf"TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?(?P<name>{_NAMES})\s*",
    re.IGNORECASE,
)
_ALTER = re.compile(rf"\s*ALTER\s+TABLE\s+(?:IF\s+EXISTS\s+)?(?:ONLY\s+)?(?P<name>{_NAMES})\s", re.IGNORECASE)
_COMMENT = re.compile(r"\s*COMMENT\s+ON\s+(?:TABLE|COLUMN)\s", re.IGNORECASE)
_OTHER = re.compile(r"\s*(CREATE(?:\s+OR\s+REPLACE)?(?:\s+MATERIALIZED)?\s+\w+|INSERT|COPY)\b", re.IGNORECASE)
_KEY = re.compile(
    r"\b(PRIMARY\s+KEY|FOREIGN\s+KEY)\b[^(),]*(\([^()]*\))"
    rf"(?:\s*REFERENCES\s+(?P<other>{_NAMES})\s*(?P<columns>\([^()]*\))?)?",
    re.IGNORECASE,
)
_NO_COLUMN = re.compile(
    r"\s*(?:CONSTRAINT\b|PRIMARY\s+KEY|FOREIGN\s+KEY|UNIQUE\b\s*(?:KEY|INDEX|\()|(?:FULLTEXT|SPATIAL|UNIQUE)?\s*(?:KEY|INDEX)\s"
    r"|CHECK\s*\(|EXCLUDE\s+(?:USING|\()|PERIOD\s+FOR|LIKE\s)",
    re.IGNORECASE,
)
_COLUMN = re.compile(
    rf"\s*(?P<name>{_NAME})\s+(?P<type>[A-Za-z_][\w. ]*?(?:\([^()]*\))?(?:\s+(?:UNSIGNED|VARYING(?:\([^()]*\))?|"
    r"WITH(?:OUT)?\s+TIME\s+ZONE))*(?:\[\])*)"
    r"\s*(?=$|,|\b(?:NOT|NULL|DEFAULT|GENERATED|AS|PRIMARY|REFERENCES|CHECK|CONSTRAINT|COLLATE|UNIQUE|AUTO_?INCREMENT|"
    r"COMMENT|ON|CHARACTER\s+SET|IDENTITY|ENCODE|STORAGE|VIRTUAL|STORED|INVISIBLE|VISIBLE|SPARSE|COMPRESSION)\b)",
    re.IGNORECASE,
)
_ROWS = re.compile(r"^\\\.[ \t]*$", re.MULTILINE)
_DIALECTS = (None, "postgres", "mysql", "tsql", "sqlite", "oracle", "snowflake", "bigquery", "duckdb")


@dataclass
class Statements:
    """What was read of a schema.

    Attributes:
        created: tables with their columns.
        added: keys that were added to tables, as tables without columns.
        comments: on tables and columns.
        unread: what could not be read of tables: a name, and why.
        others: how many statements of other kinds there are.
    """

    created: list[exp.Schema] = field(default_factory=list)
    added: list[exp.Schema] = field(default_factory=list)
    comments: list[exp.Comment] = field(default_factory=list)
    unread: list[tuple[str, str]] = field(default_factory=list)
    others: Counter[str] = field(default_factory=Counter)


def read_statements(text: str, dialect: str | None) -> Statements:
    """The tables, keys and comments of a schema.

    Args:
        text: statements; psql's commands and rows for COPY among them are left out.
        dialect: by sqlglot's name; None for the first of several that reads a statement.

    Raises:
        InvalidArgument: there is no such dialect.
    """
    dialects = _dialects(dialect, text)
    result = Statements()
    with quiet("sqlglot"):
        for statement in split(text):
            if match := _TABLE.match(statement):
                _create(statement, match, dialects, result)
            elif match := _ALTER.match(statement):
                _add(statement, match["name"], dialects, result)
            elif _COMMENT.match(statement):
                parsed, _ = _parsed(statement, dialects)
                result.comments += [parsed] if type(parsed).__name__ == "Comment" else []
            elif match := _OTHER.match(statement):
                result.others[" ".join(match[1].upper().split())] += 1
    return result


def _dialects(dialect: str | None, text: str) -> tuple[str | None, ...]:
    from sqlglot.dialects.dialect import Dialects

    if dialect is not None:
        known = sorted(one.value for one in Dialects if one.value)
        if dialect not in known:
            raise InvalidArgument(f"no dialect {dialect!r}: {did_you_mean(str(dialect), known)}")
        return (dialect,)
    likely = "mysql" if "`" in text else "tsql" if re.search(r"^\s*GO\s*$", text, re.M | re.I) else None
    return _DIALECTS if likely is None else (likely, *(one for one in _DIALECTS if one != likely))


def split(text: str) -> Iterator[str]:
    r"""The statements of a text.

    >>> [one.strip() for one in split("\\set x 1\nSELECT ';'; COPY a FROM stdin;\n1\tb\n\\.\nSELECT $$;$$")]
    ["SELECT ';'", 'COPY a FROM stdin', 'SELECT $$;$$']
    """
    # A backslash before a quotation mark belongs to the text where names are in backticks, as in MySQL.
    quoted = r"'(?:[^'\\]|\\.|'')*'" if "`" in text else r"'(?:[^']|'')*'"
    mark = re.compile(
        rf"--[^\n]*|/\*.*?\*/|{quoted}|\"[^\"]*\"|`[^`]*`|(?P<tag>\$(?:[A-Za-z_]\w*)?\$).*?(?P=tag)"
        r"|(?P<meta>^[ \t]*\\[^\n]*$|^[ \t]*DELIMITER\b[^\n]*$)|(?P<end>;|^[ \t]*(?:GO|/)[ \t]*$)",
        re.DOTALL | re.MULTILINE | re.IGNORECASE,
    )
    start = at = 0
    while match := mark.search(text, at):
        at = match.end()
        if match["meta"] is not None:
            start = at if not text[start : match.start()].strip() else start
        elif match["end"] is not None:
            statement = text[start : match.start()]
            if re.match(r"(?:\s|--[^\n]*\n)*COPY\b.*\bFROM\s+stdin\b", statement, re.DOTALL | re.IGNORECASE):
                rows = _ROWS.search(text, at)
                at = rows.end() if rows is not None else len(text)
            yield _plain(statement)
            start = at
    if text[start:].strip():
        yield _plain(text[start:])


def _plain(statement: str) -> str:
    """The statement without the comments before it, and with what MySQL puts into comments for itself."""
    statement = re.sub(r"/\*!\d*(.*?)\*/", r"\1", statement, flags=re.DOTALL)
    return re.sub(r"\A(?:\s+|--[^\n]*(?:\n|\Z)|#[^\n]*(?:\n|\Z)|/\*.*?\*/)+", "", statement, flags=re.DOTALL)


def _parsed(statement: str, dialects: Sequence[str | None]) -> tuple[Any, str]:
    """The first parse that is more than words; and why there is none."""
    import sqlglot
    from sqlglot import exp

    why = "no dialect reads it"
    for dialect in dialects:
        try:
            parsed = sqlglot.parse_one(statement, dialect=dialect)
        except sqlglot.errors.SqlglotError as error:
            why = re.sub(r"\x1b\[\d+m", "", str(error).splitlines()[0])
            continue
        except RecursionError:
            return None, "a part of it is nested too deep"
        if not isinstance(parsed, exp.Command):
            return parsed, ""
    return None, why


def _create(statement: str, match: re.Match[str], dialects: Sequence[str | None], result: Statements) -> None:
    from sqlglot import exp

    name, body = match["name"], statement[match.end() :]
    if not body.startswith("("):
        of = re.match(rf"PARTITION\s+OF\s+({_NAMES})", body, re.IGNORECASE)
        result.unread.append((name, f"it is a part of {of[1]}" if of else "it has no list of columns"))
        return
    parsed, why = _parsed(statement, dialects)
    if not _has_columns(parsed):
        parts, is_closed = _items(body)
        if not is_closed:
            result.unread.append((name, "its parentheses are not closed"))
            return
        items = [mended for item in parts if (mended := _mended(name, item, dialects, result))]
        parsed, why = _parsed(f"CREATE TABLE {name} ({', '.join(items)})", dialects) if items else (None, why)
    if _has_columns(parsed):
        comments = re.search(r"\bCOMMENT\s*=?\s*'((?:[^']|'')*)'\s*\Z", statement, re.IGNORECASE)
        if comments and parsed.find(exp.SchemaCommentProperty) is None:
            parsed.set("properties", exp.Properties(expressions=[
                exp.SchemaCommentProperty(this=exp.Literal.string(comments[1].replace("''", "'")))]))  # fmt: skip
        for column in parsed.this.expressions:  # SQLite has columns without a type
            if isinstance(column, exp.Identifier | exp.Column):
                column.replace(exp.ColumnDef(this=exp.to_identifier(column.name, quoted=True)))
        result.created.append(parsed.this)
        if parent := re.search(rf"\)\s*INHERITS\s*\(\s*({_NAMES})", body, re.IGNORECASE):
            result.unread.append((name, f"it has the columns of {parent[1]}, too"))
        if parsed.find(exp.PrimaryKey) is None and not any(
            column.find(exp.PrimaryKeyColumnConstraint) for column in parsed.find_all(exp.ColumnDef)
        ):
            _add(body, name, dialects, result)
    else:
        result.unread.append((name, why or "it has no columns"))


def _has_columns(parsed: Any) -> bool:
    from sqlglot import exp

    is_table = isinstance(parsed, exp.Create) and isinstance(parsed.this, exp.Schema)
    return is_table and any(isinstance(one, exp.ColumnDef) for one in parsed.this.expressions)


def _items(body: str) -> tuple[list[str], bool]:
    """The parts of a list of columns, which commas separate, and whether the list ends."""
    mark = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|`[^`]*`|--[^\n]*|/\*.*?\*/|[(),]", re.DOTALL)
    depth, start, items = 0, 1, []
    for match in mark.finditer(body):
        depth += (match[0] == "(") - (match[0] == ")")
        if (match[0] == "," and depth == 1) or depth == 0:
            items.append(re.sub(r"\A(?:\s+|--[^\n]*\n)+", "", body[start : match.start()]))
            start = match.end()
        if depth == 0:
            return items, True
    return items, False


def _mended(name: str, item: str, dialects: Sequence[str | None], result: Statements) -> str:
    """A part of a list of columns as a dialect reads it; "" for what is no column and no key, or is not read."""
    if _parsed(f"CREATE TABLE {name} ({item})", dialects[:1])[0] is not None:
        return item
    if _NO_COLUMN.match(item):
        return next(_keys(item), "")
    column = _COLUMN.match(item)
    if column is None:
        result.unread.append((name, f"the column {item[:60]!r} is not read"))
        return ""
    keys = " PRIMARY KEY" if re.search(r"\bPRIMARY\s+KEY\b", item, re.IGNORECASE) else ""
    other = re.search(rf"\bREFERENCES\s+{_NAMES}\s*(?:\([^()]*\))?", item, re.IGNORECASE)
    bare = column["name"].strip('"`[]')
    for kind in (column["type"], "TEXT"):
        mended = f'"{bare}" {kind}{keys} {other[0] if other else ""}'
        if _parsed(f"CREATE TABLE {name} ({mended})", dialects)[0] is not None:
            return mended
    result.unread.append((name, f"the column {bare!r} is not read"))
    return ""


def _keys(text: str) -> Iterator[str]:
    """The keys that a text declares, in the form that all dialects read."""
    for match in _KEY.finditer(text):
        columns = re.sub(r"\b(?:ASC|DESC)\b|(?<=[\w`])\(\d+\)", "", match[2], flags=re.IGNORECASE)
        other = f" REFERENCES {match['other']} {match['columns'] or ''}" if match["other"] else ""
        yield f"{match[1]} {columns}{other}"


def _add(statement: str, name: str, dialects: Sequence[str | None], result: Statements) -> None:
    for key in _keys(statement):
        parsed, why = _parsed(f"CREATE TABLE {name} ({key})", dialects)
        if parsed is None:
            result.unread.append((name, f"a key is not read: {why}"))
        else:
            result.added.append(parsed.this)

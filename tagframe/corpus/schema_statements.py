"""The statements of a schema, one by one: a dump of a server has many that no parser of several dialects reads.

Only what all dialects write alike is read: names and types of columns, keys, references and comments.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from tagframe.errors import InvalidArgument, did_you_mean

_QUOTED = r"\"(?:[^\"]|\"\")+\"|`(?:[^`]|``)+`|\[[^\]]+\]"
_NAME = rf"(?:{_QUOTED}|[\w$#@]+)"
_NAMES = rf"{_NAME}(?:\s*\.\s*{_NAME})*"
_LIST = r"\((?:[^()]|\([^()]*\))*\)"
_TABLE = re.compile(
    r"\s*CREATE\s+(?:(?:OR\s+REPLACE|GLOBAL|LOCAL|TEMP|TEMPORARY|UNLOGGED|FOREIGN|EXTERNAL|TRANSIENT|COLUMN|ROW|"
    r"MEMORY|CACHED|HYBRID|DYNAMIC|ICEBERG|MULTISET|SET|VOLATILE)\s+)*"
    rf"TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?(?P<name>{_NAMES})\s*",
    re.IGNORECASE,
)
_ALTER = re.compile(rf"\s*ALTER\s+TABLE\s+(?:IF\s+EXISTS\s+)?(?:ONLY\s+)?(?P<name>{_NAMES})\s", re.IGNORECASE)
_COMMENT = re.compile(rf"\s*COMMENT\s+ON\s+(?P<kind>TABLE|COLUMN)\s+(?P<name>{_NAMES})\s+IS\s+", re.IGNORECASE)
_OTHER = re.compile(r"\s*(CREATE(?:\s+OR\s+(?:REPLACE|ALTER))?(?:\s+MATERIALIZED)?\s+\w+|INSERT|COPY)\b", re.IGNORECASE)
_WITHIN = re.compile(r"^\s*(?:CREATE\s+(?:\w+\s+){0,2}|ALTER\s+)TABLE\b", re.IGNORECASE | re.MULTILINE)
_LINES = re.compile(
    r"(?:\s*(?:REM|REMARK|PROMPT|SET|SPOOL|WHENEVER|DEFINE|CONNECT|USE|PRINT|EXEC)\b[^\n;]*\n|\s*--[^\n]*\n)+",
    re.IGNORECASE,
)
"""Commands of SQL*Plus and sqlcmd: a line is one, without a semicolon."""
_ROUTINE = re.compile(
    r"(?:CREATE|ALTER)\s+(?:OR\s+\w+\s+)?(?:\w+\s+){0,2}(?:PROC|PROCEDURE|FUNCTION|TRIGGER|PACKAGE|TYPE\s+BODY)\b",
    re.IGNORECASE,
)
_ROUTINE_END = re.compile(r"^[^\S\n]*(?:go|/)[^\S\n]*$", re.IGNORECASE | re.MULTILINE)
_DELIMITER = re.compile(r"\n[^\S\n]*DELIMITER\b", re.IGNORECASE)
_KEY = re.compile(
    r"\b(?P<kind>PRIMARY(?=\s+KEY\b)|FOREIGN(?=\s+KEY\b)|UNIQUE\b(?![^(),]*(?:PRIMARY|FOREIGN)))[^(),]*"
    rf"(?P<own>{_LIST})"
    rf"(?:\s*REFERENCES\s+(?P<other>{_NAMES})\s*(?P<columns>{_LIST})?)?",
    re.IGNORECASE,
)
_REFERENCE = re.compile(rf"\bREFERENCES\s+(?P<other>{_NAMES})\s*(?P<columns>{_LIST})?", re.IGNORECASE)
_NO_COLUMN = re.compile(
    r"(?:CONSTRAINT|UNIQUE|LIKE|SELECT)\b|(?:PRIMARY|FOREIGN)\s+KEY\b|CHECK\s*\(|EXCLUDE\s*(?:USING\b|\()|PERIOD\s+FOR\b"
    rf"|INDEX\s.*\sTYPE\s|(?:(?:FULLTEXT|SPATIAL)\s+)?(?:KEY|INDEX)\s*(?:{_NAME}\s*)?(?:\w+\s+)*\(\s*(?![\s\d'])",
    re.IGNORECASE | re.DOTALL,
)
"""What begins a part of a list of columns that is no column; ``key`` and ``index`` are names of columns, too."""
_AFTER_TYPE = frozenset(
    "not null default generated as always primary foreign key references check constraint collate unique comment on "
    "auto_increment autoincrement charset identity encode storage virtual stored invisible visible sparse compression "
    "masked codec ttl options format compress enable disable deferrable distkey sortkey materialized alias".split()
)
_ROWS = re.compile(r"^\\\.[ \t]*$", re.MULTILINE)
_LONGEST_TYPE = 200


@dataclass
class StatedTable:
    """What statements say of a table.

    Attributes:
        database, name: as they are written.
        types, comments: of its columns: by their names, and by their names without case.
        comment: on the table.
        primary: the columns of its primary key.
        unique: columns, and sets of them, that do not repeat.
        references: columns, the other table's name in parts, and its columns, if they are written.
    """

    database: str
    name: str
    types: dict[str, str] = field(default_factory=dict)
    comments: dict[str, str] = field(default_factory=dict)
    comment: str = ""
    primary: tuple[str, ...] = ()
    unique: list[tuple[str, ...]] = field(default_factory=list)
    references: list[tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = field(default_factory=list)


@dataclass
class Statements:
    """What was read of a schema.

    Attributes:
        database: of tables whose names do not say it.
        tables: those that are created.
        unread: what could not be read of tables: a name, and why.
        others: how many statements of other kinds there are.
    """

    database: str
    tables: list[StatedTable] = field(default_factory=list)
    unread: list[tuple[str, str]] = field(default_factory=list)
    others: Counter[str] = field(default_factory=Counter)
    _known: dict[tuple[str, str], StatedTable] = field(default_factory=dict)

    def table(self, name: tuple[str, ...], within: str = "") -> StatedTable:
        """The table of a name in parts: two databases may have tables of the same name."""
        database = name[-2] if len(name) > 1 else within or self.database
        return self._known.setdefault((database.casefold(), name[-1].casefold()), StatedTable(database, name[-1]))

    def created(self, table: StatedTable) -> None:
        """Add a table."""
        self.tables.append(table)
        self.known(table)

    def known(self, table: StatedTable) -> None:
        """Know a table by its name."""
        self._known[table.database.casefold(), table.name.casefold()] = table


def read_statements(text: str, database: str, dialect: str | None) -> Statements:
    """The tables, keys and comments of a schema.

    Args:
        text: statements; psql's commands and rows for COPY among them are left out.
        database: of tables whose names do not say it.
        dialect: by sqlglot's name, for the escapes in texts; None to tell them by the names, which MySQL has in
            backticks.

    Raises:
        InvalidArgument: there is no such dialect.
    """
    from sqlglot import Dialect
    from sqlglot.dialects.dialect import Dialects

    if dialect is not None and dialect not in (known := sorted(one.value for one in Dialects if one.value)):
        raise InvalidArgument(f"no dialect {dialect!r}: {did_you_mean(str(dialect), known)}")
    dialect, result = dialect or ("mysql" if "`" in text else ""), Statements(database)
    escapes = "\\" in Dialect.get_or_raise(dialect).tokenizer_class.STRING_ESCAPES
    for statement in map(_without_commands, split(text, dialect)):
        if match := _TABLE.match(statement):
            _create(_names(match["name"]), statement[match.end() :], escapes, result)
        elif match := _ALTER.match(statement):
            _alter(result.table(_names(match["name"])), statement[match.end() :], escapes, result)
        elif match := _COMMENT.match(statement):
            names, comment = _names(match["name"]), _unquoted(statement[match.end() :], escapes)
            if match["kind"].upper() == "TABLE":
                result.table(names).comment = comment
            elif len(names) > 1:
                result.table(names[:-1]).comments[names[-1].casefold()] = comment
        elif match := _OTHER.match(statement):
            result.others[" ".join(match[1].upper().split())] += 1
        elif match := _WITHIN.search(statement):
            result.others[f"{' '.join(match[0].upper().split())} within {statement.split()[0].upper()}"] += 1
    return result


def _text(escapes: bool) -> str:
    return r"'(?:[^'\\]|\\.|'')*'" if escapes else r"'(?:[^']|'')*'"


@cache
def sql_parts(dialect: str) -> re.Pattern[str]:
    """The parts at which SQL is cut. An unclosed part reaches to the end, so that no text is scanned twice."""
    from sqlglot import Dialect

    spoken = Dialect.get_or_raise(dialect).tokenizer_class
    comments = "|".join(re.escape(start) + r"[^\n]*" for start in spoken.COMMENTS if isinstance(start, str))

    def quoted(mark: str, escapes: bool) -> str:
        inside, escaped = (rf"[^{mark}\\]*+", rf"{mark}{mark}|\\.?") if escapes else (rf"[^{mark}]*+", mark * 2)
        return rf"{mark}{inside}(?:(?:{escaped}){inside})*+(?:{mark}|\Z)"

    escapes = "\\" in spoken.STRING_ESCAPES
    return re.compile(
        rf"""{comments}|/\*.*?(?:\*/|\Z)|
        (?P<text>(?<!\w)[eE]{quoted("'", True)}|{quoted("'", escapes)}|
            (?<![\w$])\$(?P<tag>(?!\d)\w*)\$.*?(?:\$(?P=tag)\$|\Z))|
        {quoted('"', escapes)}|`[^`]*(?:`|\Z)|\[[^][\n]*\]|        # names, as a rule
        (?P<number>(?<![\w.$@:])[-+]?\d[\d.]*(?:[eE][-+]?\d+)?(?![\w]))|
        (?P<meta>(?:\A|\n)\s*+(?:\\|DELIMITER\b)[^\n]*|(?:\A|\n)(?:REM|REMARK|PROMPT)\b[^\n]*)|
        (?P<end>;|\n\s*+(?:go|/)[^\S\n]*$)|(?P<space>[^\S\n]+|\n)""",
        re.VERBOSE | re.DOTALL | re.MULTILINE | re.IGNORECASE,
    )


def split(text: str, dialect: str = "") -> Iterator[str]:
    r"""The statements of a text, with the comments before them; without commands of psql, and rows for COPY.

    >>> [one.strip() for one in split("\\set x 1\nSELECT ';'; COPY a FROM stdin;\n1\tb\n\\.\nSELECT $$;$$")]
    ["SELECT ';'", 'COPY a FROM stdin', 'SELECT $$;$$']
    """
    start = at = 0
    while match := sql_parts(dialect).search(text, at):
        at = match.end()
        if match["meta"] is not None:
            if _without_commands(f"{text[start : match.start()]}\n").strip():
                at = at if "\\" in match[0] else match.start() + 1  # columns may be called so
            else:
                start = at
                mark = re.fullmatch(r"\s*DELIMITER\s+(\S+)\s*", match[0], re.IGNORECASE)
                if mark is not None and mark[1] != ";":
                    following = _DELIMITER.search(text, at)
                    start = at = len(text) if following is None else following.start()
                    yield from text[match.end() : at].split(mark[1])
        elif match["end"] is not None:
            statement = text[start : match.start()]
            if re.match(r"(?:\s|--[^\n]*\n)*COPY\b.*\bFROM\s+stdin\b", statement, re.DOTALL | re.IGNORECASE):
                rows = _ROWS.search(text, at)
                at = rows.end() if rows is not None else len(text)
            if match[0] == ";" and _ROUTINE.match(_plain(statement)) and (end := _ROUTINE_END.search(text, at)):
                at = end.end()  # its body has statements of its own
            yield statement
            start = at
    if text[start:].strip():
        yield text[start:]


def _plain(statement: str) -> str:
    """The statement without the comments before it, and with what MySQL puts into comments for itself."""
    statement = re.sub(r"/\*!\d*(.*?)\*/", r"\1", statement, flags=re.DOTALL)
    return re.sub(r"\A(?:\s+|--[^\n]*(?:\n|\Z)|#[^\n]*(?:\n|\Z)|/\*.*?\*/)+", "", statement, flags=re.DOTALL)


def _without_commands(statement: str) -> str:
    """The statement without comments and lines of commands before it."""
    return _plain(_LINES.sub("", plain, count=1) if _LINES.match(plain := _plain(statement)) else plain)


def _names(text: str) -> tuple[str, ...]:
    """The parts of a name; BigQuery has all of them in one pair of backticks."""
    parts = [_bare(part) for part in re.findall(_NAME, text)]
    return tuple(parts[0].split(".")) if len(parts) == 1 and text[0] == "`" else tuple(parts)


def _bare(name: str) -> str:
    """A name without its quotation marks."""
    return name[1:-1].replace(2 * name[0], name[0]) if name[0] in '"`[' else name


def _columns(text: str | None) -> tuple[str, ...]:
    """The names in a list, without lengths and orders."""
    return tuple(
        _names(name)[-1] for name in re.findall(rf"[(,]\s*({_NAME})", re.sub(r"\(\s*\d+\s*\)", "", text or ""))
    )


def _unquoted(text: str, escapes: bool) -> str:
    """The text in quotation marks with which a text begins; "" if there is none. Hive's are double, too."""
    match = re.match(rf"\s*=?\s*[A-Z]?({_text(escapes)}|\"[^\"]*\")", text, re.IGNORECASE)
    inside = match[1][1:-1].replace("''", "'") if match else ""
    return re.sub(r"\\(.)", r"\1", inside) if escapes else inside


def _remark(text: str, escapes: bool) -> str:
    """The comment on a table or a column in what follows its columns or its type."""
    at = re.search(r"\bCOMMENT\b(?=\s*=?\s*['\"])|\bdescription(?=\s*=\s*['\"])", text, re.IGNORECASE)
    return _unquoted(text[at.end() :], escapes) if at else ""


def _add_keys(table: StatedTable, text: str) -> None:
    """Add the keys that a text declares."""
    for key in _KEY.finditer(text):
        if key["kind"].upper() == "PRIMARY":
            table.primary = table.primary or _columns(key["own"])
        elif key["kind"].upper() == "UNIQUE":
            table.unique.append(_columns(key["own"]))
        elif key["other"]:
            table.references.append((_columns(key["own"]), _names(key["other"]), _columns(key["columns"])))


# --- a list of columns -----------------------------------------------------------------------------------------------


class _Part(NamedTuple):
    """A part of an item: a word, a quoted name, a text, a sign, or all in a pair of brackets ("group")."""

    kind: str
    text: str


@dataclass
class _Item:
    """An item of a list, and the remark on its line."""

    parts: list[_Part] = field(default_factory=list)
    remark: str = ""
    source: str = ""


@cache
def _tokens(escapes: bool) -> re.Pattern[str]:
    return re.compile(
        rf"(?P<remark>--[^\n]*|/\*.*?\*/)|(?P<text>{_text(escapes)})|(?P<array>\[\d*\])|(?P<quoted>{_QUOTED})"
        r"|(?P<word>[\w$#@]+)|(?P<open>\(|(?<=\w)<)|(?P<close>[)>])|(?P<sign>\S)",
        re.DOTALL,
    )


def _items(body: str, escapes: bool) -> tuple[list[_Item], str | None]:
    """The items of a list of columns, and what follows the list; None if the list does not end."""
    items, start, opened, last = [_Item()], 1, list[tuple[str, int]](), 0
    for match in _tokens(escapes).finditer(body):
        kind, text = str(match.lastgroup), match[0]
        is_new_line, last = "\n" in body[last : match.start()], match.end()
        if kind == "open" and (text == "(" or len(opened) == 1 or opened[-1][0] == "<"):
            opened.append((text, match.start()))
        elif kind == "close" and (text == ")" or opened[-1][0] == "<"):
            while text == ")" and opened[-1][0] == "<":
                opened.pop()
            _, begun = opened.pop()
            if len(opened) == 1:
                items[-1].parts.append(_Part("group", body[begun : match.end()]))
        if len(opened) > 1 or (kind == "close" and opened):
            continue
        if text == "," or not opened:
            items[-1].source = _plain(body[start : match.start()])
            start = match.end()
            if not opened:
                return items, body[match.end() :]
            items.append(_Item())
        elif kind == "remark":
            of = items[-1] if items[-1].parts or len(items) == 1 else items[-2]
            of.remark = of.remark if is_new_line or not of.parts else text.strip("-/* \n")
        elif kind != "open":
            items[-1].parts.append(_Part(kind, text))
    return items, None


def _create(name: tuple[str, ...], body: str, escapes: bool, result: Statements) -> None:
    def unread(why: str) -> None:
        result.unread.append((".".join(name), why))

    body = re.sub(r"\A,[^(]*", "", body)  # Teradata's options
    if not body.startswith("("):
        of = re.match(rf"PARTITION\s+OF\s+({_NAMES})", body, re.IGNORECASE)
        unread(f"it is a part of {of[1]}" if of else "it has no list of columns")
        return
    items, rest = _items(body, escapes)
    if rest is None:
        unread("its parentheses are not closed")
        return
    table = StatedTable(result.table(name).database, name[-1])
    for item in items:
        if _NO_COLUMN.match(item.source):
            _add_keys(table, item.source)
        elif item.parts and item.parts[0].kind in ("word", "quoted"):
            _column(table, item, escapes)
        elif item.parts:
            unread(f"the column {item.source[:60]!r} is not read")
    table.comment = _remark(rest, escapes)
    parent = re.match(rf"\s*INHERITS\s*\(\s*({_NAMES})", rest, re.IGNORECASE)
    if table.types:
        result.created(table)
    if parent is not None or not table.types:
        unread("it has no columns" if parent is None else f"it has the columns of {parent[1]}, too")


def _alter(table: StatedTable, changes: str, escapes: bool, result: Statements) -> None:
    """Add the keys and columns of ALTER TABLE; drop columns, and give them and the table other names."""
    _add_keys(table, changes)
    for item in _items(f"({changes})", escapes)[0]:
        if match := _ADD.match(item.source):
            body = item.source[match.end() :]
            for column in _items(body if body.startswith("(") else f"({body})", escapes)[0]:
                if column.parts and not _NO_COLUMN.match(column.source):
                    _column(table, column, escapes)
        elif match := _RENAME.match(item.source):
            old, new = (_bare(match[part]) for part in ("old", "new"))
            if old.upper() in ("TO", "AS"):
                table.name = new
                result.known(table)
            else:
                _rename(table, old, new)
        elif match := _DROP.match(item.source):
            _drop(table, _bare(match["old"]).casefold())


_ADD = re.compile(r"ADD\s+(?!PARTITION\b|DEFAULT\b)(?:COLUMN\s+)?(?:IF\s+NOT\s+EXISTS\s+)?", re.IGNORECASE)
_RENAME = re.compile(
    rf"(?:RENAME|CHANGE)\s+(?:COLUMN\s+)?(?P<old>{_NAME})\s+(?:(?:TO|AS)\s+)?(?P<new>{_NAME})", re.IGNORECASE
)
_DROP = re.compile(
    rf"DROP\s+(?:COLUMN\s+|(?!(?:CONSTRAINT|PRIMARY|FOREIGN|KEY|INDEX)\b))(?:IF\s+EXISTS\s+)?(?P<old>{_NAME})",
    re.IGNORECASE,
)


def _drop(table: StatedTable, old: str) -> None:
    table.types = {name: declared for name, declared in table.types.items() if name.casefold() != old}
    table.references = [one for one in table.references if old not in map(str.casefold, one[0])]
    table.primary = () if old in map(str.casefold, table.primary) else table.primary


def _rename(table: StatedTable, old: str, new: str) -> None:
    names = {name: new if name.casefold() == old.casefold() else name for name in table.types}
    table.types = {names[name]: declared for name, declared in table.types.items()}
    table.comments[new.casefold()] = table.comments.pop(old.casefold(), "")
    table.primary = tuple(names.get(name, name) for name in table.primary)
    table.references = [(tuple(names.get(one, one) for one in own), other, to) for own, other, to in table.references]


def _column(table: StatedTable, item: _Item, escapes: bool) -> None:
    first, *parts = item.parts
    name = _bare(first.text)
    words = [part.text.casefold() if part.kind == "word" else "" for part in parts]
    table.types[name] = _declared(parts, words)[:_LONGEST_TYPE]
    clauses = (f"{word} {part.text}" for word, part in zip(words, parts[1:], strict=False))
    given = next((clause for clause in clauses if clause.startswith(("comment '", 'comment "', "options ("))), "")
    table.comments[name.casefold()] = _remark(given, escapes) or item.remark
    if ("primary", "key") in pairwise(words):
        table.primary = table.primary or (name,)
    if "unique" in words:
        table.unique.append((name,))
    if "references" in words and (match := _REFERENCE.search(item.source)):
        table.references.append(((name,), _names(match["other"]), _columns(match["columns"])))


def _declared(parts: Sequence[_Part], words: Sequence[str]) -> str:
    """The type of a column, up to the first word that begins a clause."""
    declared = ""
    for part, word, following in zip(parts, words, [*words[1:], ""], strict=False):
        is_over = word in _AFTER_TYPE or (word == "character" and following == "set")
        is_over |= word in ("with", "without") and following not in ("time", "local")
        if is_over or part.kind == "text" or (part.kind == "sign" and part.text != "."):
            break
        is_name = part.kind in ("word", "quoted") and not declared.endswith(".")
        text = _bare(part.text) if part.kind == "quoted" else part.text
        declared += f"{' ' * (bool(declared) and is_name)}{' '.join(text.split())}"
    return declared

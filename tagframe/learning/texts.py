"""SQL as text: cut into statements, and told apart but for its literals, before anything is parsed."""

from __future__ import annotations

import re
from collections.abc import Iterator

_PARTS = re.compile(
    r"""--[^\n]*|/\*.*?\*/|                     # comments
    (?P<text>'(?:[^'\\]|''|\\.)*'|\$(?P<tag>\w*)\$.*?\$(?P=tag)\$)|
    "(?:[^"]|"")*"|`[^`]*`|\[[^\]\n]*\]|        # names, as a rule
    (?P<number>(?<![\w.$@:])[-+]?\d[\d.]*(?:[eE][-+]?\d+)?(?![\w]))|
    (?P<end>;)|(?P<space>\s+)""",
    re.VERBOSE | re.DOTALL,
)
_LIST = re.compile(r"\(\s*\?(?:\s*,\s*\?)+\s*\)")
_REFERENCE = re.compile(r"""\{\{\s*(?:ref|source)\s*\(.*?['"]([^'"]+)['"]\s*\)\s*\}\}""", re.DOTALL)
_TEMPLATE = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)


def statements_in(text: str) -> Iterator[str]:
    """The statements of a file, those of a template of dbt too.

    >>> list(statements_in("SELECT ';' FROM a; -- no; more\\n\\nSELECT 1;"))
    ["SELECT ';' FROM a", '-- no; more\\n\\nSELECT 1']
    """
    if "{{" in text or "{%" in text:
        text = _TEMPLATE.sub(" ", _REFERENCE.sub(r"\1", text))
    start = 0
    for part in _PARTS.finditer(text):
        if part["end"]:
            yield from filter(None, [text[start : part.start()].strip()])
            start = part.end()
    yield from filter(None, [text[start:].strip()])


def without_literals(sql: str) -> str:
    """The text by which statements are known that differ in their literals, comments and spaces alone.

    >>> without_literals("SELECT  a FROM t -- all\\nWHERE b IN (1, 2.5, -3) AND c = 'it''s'")
    'select a from t where b in (?) and c = ?'
    """

    def plain(part: re.Match[str]) -> str:
        if part["text"] or part["number"]:
            return "?"
        return part[0] if part[0][0] in '"`[' else " "

    return " ".join(_LIST.sub("(?)", _PARTS.sub(plain, sql)).split()).casefold()

"""SQL as text, before it is parsed: cut into statements, and compared without literals."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from sqlglot import Dialect

_LIST = re.compile(r"\(\s*\?(?:\s*,\s*\?)+\s*\)")
_COMMENTS = re.compile(r"(?:\s|--[^\n]*|/\*.*?(?:\*/|\Z))*+", re.DOTALL)
_TEMPLATE = re.compile(r"\{(?P<kind>[{%#])(?:(?!\{[{%#]|[}%#]\}).)*+[}%#]\}", re.DOTALL)
_CALLED = re.compile(r"\{\{-?\s*(\w+)\s*\((.*)", re.DOTALL)
_TEXT = re.compile(r"""['"]([^'"]+)['"]""")


@cache
def _parts(dialect: str) -> re.Pattern[str]:
    """The parts at which SQL is cut. An unclosed part reaches to the end, so that no text is scanned twice."""
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
        (?P<end>;|\n\s*+go[^\S\n]*$)|(?P<space>\s+)""",
        re.VERBOSE | re.DOTALL | re.MULTILINE | re.IGNORECASE,
    )


def statements_in(text: str, dialect: str = "") -> Iterator[str]:
    """The statements of a file, which may be a dbt template.

    >>> list(statements_in("SELECT ';' FROM a; -- no; more\\n\\nSELECT 1; -- end"))
    ["SELECT ';' FROM a", '-- no; more\\n\\nSELECT 1']
    """
    if "{{" in text or "{%" in text:
        text = _TEMPLATE.sub(_without_template, text)
    start = 0
    for part in _parts(dialect).finditer(text):
        if part["end"]:
            yield from _one(text[start : part.start()])
            start = part.end()
    yield from _one(text[start:])


def _one(text: str) -> Iterator[str]:
    blank = _COMMENTS.match(text)
    if blank is None or blank.end() < len(text):
        yield text.strip()


def _without_template(block: re.Match[str]) -> str:
    """The replacement of a template block: the table that it names, a parameter for another value, or nothing."""
    called = _CALLED.match(block[0])
    if called is not None and called[1] in ("ref", "source"):
        return next(reversed(_TEXT.findall(called[2])), "?")
    return " " if block["kind"] != "{" or (called is not None and called[1] == "config") else "?"


def without_literals(sql: str, dialect: str = "") -> str:
    """The text shared by all statements that differ only in literals, comments and spaces.

    >>> without_literals("SELECT  a FROM t -- all\\nWHERE b IN (1, 2.5, -3) AND c = 'it''s'")
    'select a from t where b in (?) and c = ?'
    """

    def plain(part: re.Match[str]) -> str:
        if part["text"] or part["number"]:
            return "?"
        return part[0] if part[0][0] in '"`[' else " "

    return " ".join(_LIST.sub("(?)", _parts(dialect).sub(plain, sql)).split()).casefold()

"""What the file of a response store holds."""

from __future__ import annotations

import sqlite3
import zlib

from tagframe.lm.prompt import UNLABELLED, Label

APPLICATION_ID = 0x7461676C
"""SQLite's ``application_id`` of our files ("tagl"): tells a response store from a user's own database."""
VERSION = 3

_LABEL = "tagframe"
"""The field of a missing request's body that holds its label; no provider is sent it."""

_CLAIMS = """
CREATE TABLE claims (
    id INTEGER PRIMARY KEY, owner TEXT NOT NULL, beat INTEGER NOT NULL, source INTEGER NOT NULL REFERENCES sources,
    requests BLOB NOT NULL
)
"""
_TABLES = """
CREATE TABLE sources (
    id INTEGER PRIMARY KEY, endpoint TEXT NOT NULL, model TEXT NOT NULL, recorded_by TEXT NOT NULL,
    reasoning INTEGER NOT NULL DEFAULT 0, UNIQUE (endpoint, model, recorded_by)
);
CREATE TABLE answers (
    id INTEGER PRIMARY KEY, request BLOB NOT NULL, source INTEGER NOT NULL REFERENCES sources, text TEXT NOT NULL,
    logprobs TEXT, tokens_in INTEGER, tokens_out INTEGER, seconds REAL, recorded_at REAL NOT NULL,
    checksum INTEGER NOT NULL, UNIQUE (request, source)
);
CREATE TABLE missing (request BLOB PRIMARY KEY, body TEXT NOT NULL, sample INTEGER NOT NULL, noted_at REAL NOT NULL);
CREATE TABLE log (
    id INTEGER PRIMARY KEY, request BLOB NOT NULL, source INTEGER NOT NULL REFERENCES sources, kind TEXT NOT NULL,
    reason TEXT NOT NULL, answer TEXT, messages TEXT NOT NULL, logged_at REAL NOT NULL
);
CREATE TABLE migrations (version INTEGER PRIMARY KEY, migrated_at REAL NOT NULL)
"""


def upgrade(connection: sqlite3.Connection) -> None:
    """Bring the tables of version 2 up to date, within the connection's transaction: its answers were paid for."""
    rows = connection.execute("SELECT id, endpoint, model, recorded_by FROM sources")
    marks = {source: mark_of(*name) for source, *name in rows}
    connection.create_function(
        "checksum_of", 6, lambda request, source, *kept: checksum(request, marks.get(source, 0), *kept)
    )
    connection.execute("ALTER TABLE answers ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0")
    connection.execute(
        "UPDATE answers SET checksum = checksum_of(request, source, text, logprobs, tokens_in, tokens_out)"
    )
    connection.execute(_CLAIMS)
    connection.execute(f"PRAGMA user_version = {VERSION}")


def mark_of(endpoint: str, model: str, recorded_by: str) -> int:
    """What tells a source of answers from others, in :func:`checksum`."""
    return zlib.crc32(repr((endpoint, model, recorded_by)).encode())


def checksum(request: bytes, mark: int, text: object, logprobs: object, tokens_in: object, tokens_out: object) -> int:
    """What tells that an answer of a source is as it was stored: a CRC-32 of its columns, whatever stands in them."""
    return zlib.crc32(f"{text!r} {logprobs!r} {tokens_in!r} {tokens_out!r}".encode(), zlib.crc32(request, mark))


def create(connection: sqlite3.Connection) -> None:
    """Make the tables in an empty file, within the connection's transaction."""
    for statement in (*_TABLES.split(";"), _CLAIMS):
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {VERSION}")


def version_of(connection: sqlite3.Connection) -> tuple[int, int]:
    """The application id and the version of a file."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return application, version


def labelled(body: dict[str, object], label: Label) -> dict[str, object]:
    """The body of a missing request, with its label."""
    return {**body, _LABEL: [label.stage, label.question]} if label != UNLABELLED else body


def unlabelled(body: dict[str, object]) -> tuple[dict[str, object], Label]:
    """The body of a missing request as it is sent, and its label."""
    fields = dict(body)
    told = fields.pop(_LABEL, None)
    return fields, Label(*map(str, told)) if isinstance(told, list) else UNLABELLED

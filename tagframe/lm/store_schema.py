"""The schema of a response store's file."""

from __future__ import annotations

import sqlite3
import zlib

from tagframe.lm.prompt import UNLABELLED, Label

APPLICATION_ID = 0x7461676C
"""SQLite's ``application_id`` of our files ("tagl"): distinguishes a response store from a user's own database."""
VERSION = 3

_LABEL = "tagframe"
"""The field of a missing request's body that has its label; it is not sent to a provider."""

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
CREATE TABLE claims (
    id INTEGER PRIMARY KEY, owner TEXT NOT NULL, beat INTEGER NOT NULL, source INTEGER NOT NULL REFERENCES sources,
    requests BLOB NOT NULL
)
"""

ADDED = (
    "CREATE TABLE IF NOT EXISTS structured (source INTEGER PRIMARY KEY REFERENCES sources, way TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS packs (id INTEGER PRIMARY KEY, pack BLOB NOT NULL, row BLOB NOT NULL,"
    " line TEXT NOT NULL, UNIQUE (pack, row))",
    "CREATE INDEX IF NOT EXISTS packs_of_a_row ON packs (row)",
)
"""What a store of this version may lack: how each source takes the form of answers, and the rows of exported packs."""


def mark_of(endpoint: str, model: str, recorded_by: str) -> int:
    """The part of :func:`checksum` that identifies the source of an answer."""
    return zlib.crc32(repr((endpoint, model, recorded_by)).encode())


def checksum(request: bytes, mark: int, text: object, logprobs: object, tokens_in: object, tokens_out: object) -> int:
    """A CRC-32 of the columns of a stored answer, which shows whether it is damaged."""
    return zlib.crc32(f"{text!r} {logprobs!r} {tokens_in!r} {tokens_out!r}".encode(), zlib.crc32(request, mark))


def create(connection: sqlite3.Connection) -> None:
    """Make the tables in an empty file, within the connection's transaction."""
    for statement in (*_TABLES.split(";"), *ADDED):
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
    label = fields.pop(_LABEL, None)
    return fields, Label(*map(str, label)) if isinstance(label, list) else UNLABELLED

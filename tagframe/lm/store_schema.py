"""What the file of a response store holds, and how one of an earlier version is brought to this one."""

from __future__ import annotations

import json
import sqlite3
import time

from tagframe.lm.prompt import UNLABELLED, Label, Parameters, Prompt, request_keys

APPLICATION_ID = 0x7461676C
"""SQLite's ``application_id`` of our files ("tagl"): tells a response store from a user's own database."""
VERSION = 2
"""Version 1 had the answer's length in its keys, and no ``migrations``."""

_LABEL = "tagframe"
"""The field of a missing request's body that holds its label; no provider is sent it."""

_TABLES = """
CREATE TABLE sources (
    id INTEGER PRIMARY KEY, endpoint TEXT NOT NULL, model TEXT NOT NULL, recorded_by TEXT NOT NULL,
    UNIQUE (endpoint, model, recorded_by)
);
CREATE TABLE answers (
    id INTEGER PRIMARY KEY, request BLOB NOT NULL, source INTEGER NOT NULL REFERENCES sources, text TEXT NOT NULL,
    logprobs TEXT, tokens_in INTEGER, tokens_out INTEGER, seconds REAL, recorded_at REAL NOT NULL,
    UNIQUE (request, source)
);
CREATE TABLE missing (request BLOB PRIMARY KEY, body TEXT NOT NULL, sample INTEGER NOT NULL, noted_at REAL NOT NULL);
CREATE TABLE log (
    id INTEGER PRIMARY KEY, request BLOB NOT NULL, source INTEGER NOT NULL REFERENCES sources, kind TEXT NOT NULL,
    reason TEXT NOT NULL, answer TEXT, messages TEXT NOT NULL, logged_at REAL NOT NULL
);
"""
_MIGRATIONS = "CREATE TABLE migrations (version INTEGER PRIMARY KEY, migrated_at REAL NOT NULL)"
_REASONING = "ALTER TABLE sources ADD COLUMN reasoning INTEGER NOT NULL DEFAULT 0"


def create(connection: sqlite3.Connection) -> None:
    """Make the tables in an empty file, within the connection's transaction."""
    for statement in (*_TABLES.split(";"), _MIGRATIONS, _REASONING):
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {VERSION}")


def migrate(connection: sqlite3.Connection) -> None:
    """Bring a store of version 1 to this version, within the connection's transaction; it loses nothing.

    Answers keep their keys, which cannot be made anew without their prompts; they are looked for under both
    (:func:`tagframe.lm.stored_answers.recall`). Missing requests, whose prompts are there, get theirs.
    """
    connection.execute(_MIGRATIONS)
    connection.execute(_REASONING)
    connection.execute("INSERT INTO migrations VALUES (?, ?)", (VERSION, time.time()))
    for request, text, sample in connection.execute("SELECT request, body, sample FROM missing").fetchall():
        key = request_key(json.loads(text), sample)
        connection.execute("UPDATE OR REPLACE missing SET request = ? WHERE request = ?", (key, request))
    connection.execute(f"PRAGMA user_version = {VERSION}")


def version_of(connection: sqlite3.Connection) -> tuple[int, int]:
    """The application id and the version of a file."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return application, version


def is_migrated(connection: sqlite3.Connection) -> bool:
    """Whether a store was of version 1 once (or still is, where it may only be read)."""
    if version_of(connection)[1] < VERSION:
        return True
    return connection.execute("SELECT 1 FROM migrations WHERE version = ?", (VERSION,)).fetchone() is not None


def request_key(body: dict[str, object], sample: int) -> bytes:
    """The key of a missing request, from its body."""
    return request_keys(*prompt_of(body, sample))[0]


def labelled(body: dict[str, object], label: Label) -> dict[str, object]:
    """The body of a missing request, with its label."""
    return {**body, _LABEL: [label.stage, label.question]} if label != UNLABELLED else body


def unlabelled(body: dict[str, object]) -> tuple[dict[str, object], Label]:
    """The body of a missing request as it is sent, and its label."""
    fields = dict(body)
    told = fields.pop(_LABEL, None)
    return fields, Label(*map(str, told)) if isinstance(told, list) else UNLABELLED


def prompt_of(body: dict[str, object], sample: int) -> tuple[list[Prompt], Parameters]:
    """The prompt and parameters of a missing request."""
    fields, _ = unlabelled(body)
    messages = fields.pop("messages")
    assert isinstance(messages, list)
    return [Prompt.from_dicts(messages, sample)], Parameters.from_dict(fields)

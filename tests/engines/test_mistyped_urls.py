"""A server's URL that is mistyped, in whatever way: its password is in no message."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest
from click.testing import CliRunner

import tagframe as tf
from tagframe.cli import main

PASSWORD = "hunter2secret"
MISTYPED = [
    "postgresql:/owner:{}@localhost:1/db", "postgresql:owner:{}@localhost/db", "postgresql//owner:{}@localhost/db",
    "postgresql;//owner:{}@localhost/db", "postgres:\\\\owner:{}@localhost/db", "postgresql:/owner:{}/db",
    "postgresql:///owner:{}@localhost/db", "postgresql://owner:{}:1/db", "postgresql://owner:{}/db",
    "postgresql://owner:{}", "postgresql://owner:70000{}/db", "postgresql://owner/{}@localhost/db",
    "postgresql://owner:{}@localhost:1db/db", "postgresql://owner:{}@localhost:99999/db",
    "postgresql://owner:{}@@localhost/db", "postgresql://owner:{}%@localhost/db", "postgresql://owner:P#{}@localhost/db",
    "postgresql://owner:P?{}@localhost/db", "postgresql://owner:P/{}@localhost/db", "postgresql://owner:P*{}@localhost",
    "postgresql://owner@localhost:1/db?passwrd={}", "postgresql://localhost:1/db?password={}",
    "postgresql://owner:{}@localhost:1/db extra={}", "postgresql+nodriver://owner:{}@localhost:1/db",
    "postgresqll://owner:{}@localhost/db", "owner:{}@localhost://db", "owner:{}@localhost/db",
    "owner:{}@localhost:5432/db", "//owner:{}@localhost/db", "https://owner:{}@localhost/db",
    "mysql://owner:{}@localhost:1/db", "mysql+pymysql://owner:{}:1/db", "mysql+pymysql://owner:{}/db",
    "mysql+pymysql://ow/ner:{}@localhost/db", "mysql+{}://owner:{}@localhost/db", "mysql:/owner:{}@localhost/db",
    "sqlite://owner:{}@localhost/db", "host=localhost user=owner password={} dbname=db",
    "postgresql://owner:{}@local host/db", "postgresql://owner:{}@[localhost/db", " postgresql://owner:{}@localhost:1/db",
    "POSTGRESQL://owner:{}@localhost:1/db", '"postgresql://owner:{}@localhost:1/db"',
    "jdbc:postgresql://owner:{}@localhost:1/db", "postgresql://owner:{}@localhost:1\\db",
    "postgresql:/owner:{}*@localhost/db", "postgresql://owner@localhost:1/db?sslmode={}",
    "postgresql://owner@localhost:1/db?channel_binding={}", "postgresql://owner@localhost:1/db?keepalives={}",
    "postgresql://owner@localhost:1/db?options=-c%20{}", "mysql+pymysql://owner@localhost:1/db?charset={}",
    "sqlite:///x.db?timeout={}", "sqlite:///x.db?{}=1", "sqlite:///file:x.db?mode={}&uri=true",
]  # fmt: skip


@pytest.mark.parametrize("written", MISTYPED)
def test_no_message_has_the_password(written, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    url = written.replace("{}", PASSWORD)
    for call in (
        lambda: tf.open_corpus(url, progress=False),
        lambda: tf.open_corpus(Path(url), progress=False),
        lambda: tf.open_corpus(schema=url),
        lambda: tf.configure(corpus=url),
        lambda: list(tf.read_batches(url)),
    ):
        try:
            call()
        except Exception as error:
            # Without the lines of code, in which the URL stands as its user wrote it.
            said = traceback.TracebackException.from_exception(error)
            while said is not None:
                assert PASSWORD not in "".join(said.format_exception_only())
                said = said.__cause__ or (None if said.__suppress_context__ else said.__context__)
    for command in (["tables", url], ["retrieve", url, "q"], ["ask", url, "q"]):
        assert PASSWORD not in CliRunner().invoke(main, command).output


def test_a_path_is_shown_as_it_is(tmp_path):
    with pytest.raises(tf.errors.SourceNotFound, match=r"no file or folder '.*loans.csv'"):
        tf.open_corpus(tmp_path / "loans.csv")

"""Readers: for each, a list of what is hidden, in a file that is read again; and what hostile statements give them."""

from __future__ import annotations

import json
import os

import pandas as pd
import pytest

import tagframe as tf
from tagframe.agents.command import Readers
from tagframe.agents.tools import Tools
from tagframe.answer import SQLLimits
from tagframe.errors import InvalidArgument, NotConfigured, SourceNotFound, SQLFailed, UnsafeSQL
from tests import opened_in
from tests.answer import test_hostile_duckdb, test_hostile_postgres, test_hostile_sql

LIMITS = SQLLimits(rows=100, seconds=0.3, memory=128)
NAMES = ("films", "film", "notes", "clicks", "ticket", "secret", "seen", "t")
TABLE = pd.DataFrame(
    {
        "id": range(8),
        "title": list("abcdefgh"),
        "year": range(2001, 2009),
        "note": list("efghijkl"),
        "word": list("efghijkl"),
        "secret": [f"zqs-{n}" for n in range(8)],
        "hidden_note": [f"zqs-{n}" for n in range(8)],
        "i": range(8),
    }
)


def hostile(module, *more):
    return [sql for name in ("WRITES", "HIDDEN", "READS", "MALFORMED", *more) for sql in getattr(module, name, ())]


LISTS = {
    "sqlite": hostile(test_hostile_sql, "HUNGRY"),
    "csv": hostile(test_hostile_sql),
    "lake": hostile(test_hostile_duckdb),
    "postgres": hostile(test_hostile_postgres),
}


@pytest.mark.slow
@pytest.mark.parametrize("source", LISTS)
def test_no_hostile_statement_of_an_agent_shows_what_is_hidden_or_writes(source, tmp_path, request):
    tables = dict.fromkeys(NAMES, TABLE)
    tables["secret"] = pd.DataFrame({"word": ["zqs-s"], "pin": [777_000_777]})
    corpus = opened_in.opened(source, tables, tmp_path, request)
    hide = [f"{name}.{column}" for name in NAMES if name != "secret" for column in ("secret", "hidden_note")]
    tools = Tools(corpus.hide("secret", *hide), limits=LIMITS)
    listed, before = sorted(tmp_path.rglob("*")), [corpus.read(id).to_csv() for id in corpus.ids]
    shown = {}
    for sql in LISTS[source]:
        asked = test_hostile_duckdb.filled(sql, tmp_path)
        try:
            given = tools.call("run_sql", {"sql": asked})
            assert given["row_count"] <= 100
            said = json.dumps(given)
        except (UnsafeSQL, SQLFailed, InvalidArgument, NotConfigured) as error:
            said = str(error).replace(repr(asked[:200]), "").replace(asked[:200], "")
        if "zqs-" in said or "777000777" in said:
            shown[sql] = said[:300]
    assert shown == {}
    assert (sorted(tmp_path.rglob("*")), [corpus.read(id).to_csv() for id in corpus.ids]) == (listed, before)
    given = tools.call("run_sql", {"sql": "SELECT count(*) AS n, max(year) AS y FROM films"})
    assert given["rows"] == [[8, 2008]]
    assert "secret" not in tools.call("run_sql", {"sql": "SELECT * FROM films"})["columns"]


@pytest.fixture
def corpus():
    people = pd.DataFrame({"id": [1, 2], "pay": [10, 20], "city": ["Porto", "Faro"]})
    return tf.open_corpus({"people": people, "salaries": pd.DataFrame({"id": [1], "pay": [30]})})


def written(path, text):
    path.write_text(text)
    os.utime(path, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns + written.count))  # two writes in one tick
    written.count += 1_000_000


written.count = 1_000_000


def test_a_reader_is_a_list_that_is_read_again(tmp_path, corpus):
    path = tmp_path / "readers.toml"
    written(path, '[readers]\nsupport = ["people.pay", "salaries"]\nowner = []\n')
    readers = Readers(path)
    seen = readers.corpus_of(corpus, "support")
    assert (seen.ids, [*seen.read("people").columns]) == (("frames.people",), ["id", "city"])
    assert readers.corpus_of(corpus, "owner") is corpus
    written(path, '[readers]\nsupport = ["people.pay", "people.city", "salaries"]\n')
    assert [*readers.corpus_of(corpus, "support").read("people").columns] == ["id"]
    with pytest.raises(InvalidArgument, match=r"no reader 'owner' in .*'support'"):
        readers.check("owner")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[readers",
        "readers = 1",
        '[readers]\nsupport = "people.pay"',
        "[readers]\nsupport = [1]",
        "[reader]\na = []",
    ],
)
def test_a_file_of_another_form_is_refused(tmp_path, text):
    written(tmp_path / "readers.toml", text)
    with pytest.raises(InvalidArgument, match=r"cannot be read .*: write a table \[readers\]"):
        Readers(tmp_path / "readers.toml")


def test_what_cannot_be_read_later_serves_nobody(tmp_path, corpus, caplog):
    path = tmp_path / "readers.toml"
    written(path, '[readers]\nsupport = ["people.pay"]\n')
    readers = Readers(path)
    for text, why in (
        ("[readers", "cannot be read"),
        ("[readers]\nother = []\n", "no reader 'support'"),
        ('[readers]\nsupport = ["people.wage"]\n', "no column 'wage'"),
        ('[readers]\nsupport = ["payroll"]\n', "no table 'payroll'"),
    ):
        written(path, text)
        with pytest.raises(SourceNotFound, match="the server's log says why") as said:
            readers.corpus_of(corpus, "support")
        assert "wage" not in str(said.value)
        assert why in caplog.text
    path.unlink()
    with pytest.raises(SourceNotFound):
        readers.corpus_of(corpus, "support")
    written(path, '[readers]\nsupport = ["people.pay"]\n')
    assert "pay" not in readers.corpus_of(corpus, "support").read("people")


def test_a_reader_of_a_reader_and_private_columns(corpus):
    corpus.private("people.city")
    seen = corpus.hide("people.pay")
    assert seen.private_columns == ["frames.people.city"]
    assert [*seen.read("people").columns] == ["id", "city"]
    assert [*seen.without_private().read("people").columns] == ["id"]
    assert [*seen.hide("people.city").read("people").columns] == ["id"]

"""``corpus.annotate``: what a model says of tables is marked, kept, asked once, and stands below what a person says."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

import tagframe as tf
from tag_bench.server import Request
from tagframe.answer.annotating import parse_annotation
from tagframe.errors import AnswerRejected, ReplayMiss

SHOP = """
CREATE TABLE T_ORD (ORD_ID INTEGER PRIMARY KEY, CUS INTEGER, ST INTEGER, SSN TEXT);
INSERT INTO T_ORD VALUES (1, 70, 3, 'zqs-1'), (2, 80, 1, 'zqs-2');
CREATE TABLE T_CUS (CUS INTEGER PRIMARY KEY, NM TEXT);
INSERT INTO T_CUS VALUES (70, 'Ann'), (80, 'Bo');
"""


def words(request: Request) -> str:
    text = "\n".join(str(message["content"]) for message in request.messages)
    table = re.search(r'"table": "([^"]+)"', text.split("<table>")[1])
    assert table is not None
    if table[1].endswith("T_ORD"):
        return json.dumps({"table": "A purchase.", "columns": {"st": "state of the parcel", "SSN": "?", "NO": "none"}})
    return json.dumps({"table": "A buyer.", "columns": {"NM": "the buyer's name"}})


@pytest.fixture
def file(sqlite_file: Callable[..., Path]) -> Path:
    return sqlite_file(SHOP, "shop.sqlite")


def test_tables_are_annotated_once_and_kept(live, file: Path):
    shop = tf.open_corpus(file)
    shop.describe("T_CUS", "customers")
    shop.hide("T_ORD.SSN")
    shop.learn("Which orders are open?", "SELECT ORD_ID FROM T_ORD WHERE ST = 4711")
    quote = shop.annotate(quote=True)
    assert (quote.calls, live.requests) == (2, [])
    live.answers = words
    said = shop.annotate()
    assert (said.tables, said.columns, said.failed) == (2, 2, ())
    sent = "\n".join(request.prompt for request in live.requests)
    assert "-- Which orders are open?" in sent
    assert "zqs" not in sent
    assert "4711" not in sent
    for corpus in (shop, tf.open_corpus(file)):
        assert corpus.profile("T_ORD").description == "≈ A purchase."
        assert corpus.profile("T_ORD").column("ST").description == "≈ state of the parcel"
        assert corpus.profile("T_ORD").column("SSN").description == ""
        assert corpus.profile("T_CUS").description == "customers"
        assert corpus.annotate().tables == 0
    assert len(live.requests) == 2
    shop.describe("T_CUS", "")
    assert shop.profile("T_CUS").description == "≈ A buyer."
    assert shop.retrieve_tables("Which parcels were bought?", k=1, method="lexical").ids == ["shop.T_ORD"]


def test_a_table_without_a_usable_answer_is_listed_and_asked_again(live, file: Path):
    live.answers = lambda request: "no idea" if "buyer" in words(request) else words(request)
    shop = tf.open_corpus(file)
    said = shop.annotate()
    assert (said.tables, [table for table, _ in said.failed]) == (1, ["shop.T_CUS"])
    assert "shop.T_CUS failed" in str(said)
    live.answers = words
    assert shop.annotate().tables == 1


def test_prompts_are_exported_from_the_shell(file: Path, tmp_path: Path):
    from tagframe.cli import main

    store = tmp_path / "answers.db"
    schema = tmp_path / "schema.sql"
    schema.write_text("CREATE TABLE A (X INT); CREATE TABLE B (Y INT);")
    for source, count in ((file, 2), (schema, 4)):
        outcome = CliRunner().invoke(main, ["annotate", str(source), "--lm", f"replay:{store}"])
        assert outcome.exit_code != 0
        exported = CliRunner().invoke(main, ["lm", "export", str(store), "-o", str(tmp_path / f"{count}.jsonl")])
        assert f"{count} requests written" in exported.output, exported.output
    with pytest.raises(ReplayMiss):
        tf.open_corpus(file).annotate(lm=f"replay:{store}")


@pytest.mark.parametrize("text", ["", "[]", '{"table": ""}', '{"table": 1}', '{"table": "x", "columns": {"a": 1}}'])
def test_answers_of_another_form_are_rejected(text: str):
    with pytest.raises(AnswerRejected, match="expected"):
        parse_annotation(text)

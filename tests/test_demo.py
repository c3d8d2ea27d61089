"""``make demo`` as a user runs it, offline."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow


def section(output: str, heading: str) -> str:
    start = output.index(f"\n# {heading}")
    end = output.find("\n# ", start + 2)
    return output[start:] if end < 0 else output[start:end]


def test_says_who_recorded_the_answers(demo_output):
    assert "No model is called: the answers below were recorded from a language model," in demo_output


def test_finds_the_five_tables_and_joins_them(demo_output):
    found = section(demo_output, "retrieve_tables(")
    for table in ("reviews", "films", "critics", "directors", "genres"):
        assert f". festival.{table} " in found
    assert "festival.films.director_id = festival.directors.director_id" in found
    assert "23 rows in the result." in section(demo_output, "merge()")


def test_operators_judge_the_rows(demo_output):
    kept = section(demo_output, "query(…)")
    assert kept.count("Low Tide at Nazaré") == 2
    assert "I looked at my watch" not in kept
    ranked = section(demo_output, "sem_topk(")
    assert 0 < ranked.index("I wept") < ranked.index("Twenty-odd years") < ranked.index("Valadares returns")
    sources = section(demo_output, "sem_agg(").split("summary.tag.sources:\n")[1].splitlines()[1:]
    assert [line.split()[:2] for line in sources] == [["0", number] for number in ("1", "3", "13", "16", "23")]


def test_ask_answers_with_its_tables_and_rows(demo_output):
    answer = section(demo_output, "tf.ask(")
    assert "\nLisbon\n" in answer
    assert "from 1 row of " in answer
    assert "answer.values: ['Lisbon']" in answer
    assert "GROUP BY v.city" in answer

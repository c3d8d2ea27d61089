import sqlite3
from contextlib import closing

import pytest

from tag_bench.execution_match import gold_rows, is_ordered, match


@pytest.mark.parametrize(
    ("ours", "gold", "ordered", "spider", "bird"),
    [
        ([(1,), (2,)], [(2,), (1,)], False, True, True),
        ([(1,), (2,)], [(2,), (1,)], True, False, True),
        ([(1, "a")], [("a", 1)], False, True, False),
        ([(1, "a"), (2, "b")], [("a", 2), ("b", 1)], False, False, False),
        ([(1,), (1,)], [(1,)], False, False, True),
        ([(1.0,)], [(1,)], False, True, True),
        ([(0.1 + 0.2,)], [(0.3,)], False, True, True),
        ([(float("nan"),)], [(None,)], False, True, True),
        ([("1",)], [(1,)], False, False, False),
        ([], [], False, True, True),
        ([], [(None,)], False, False, False),
        ([(1, 2)], [(1,)], False, False, False),
        ([tuple(range(12))], [tuple(range(12))], False, True, True),
    ],
)
def test_rows_match_by_the_rule_of_the_benchmark(ours, gold, ordered, spider, bird):
    assert match(ours, gold, "spider", ordered=ordered) is spider
    assert match(ours, gold, "bird") is bird


def test_only_the_outermost_order_counts():
    assert is_ordered("SELECT a FROM t ORDER BY a LIMIT 3")
    assert not is_ordered("SELECT a FROM t WHERE b IN (SELECT b FROM u ORDER BY c LIMIT 1)")


def test_gold_statements_run_as_they_are_and_stop_in_time(tmp_path):
    file = tmp_path / "rooms.sqlite"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE room (name TEXT)")
        connection.executemany("INSERT INTO room VALUES (?)", [("hall",), (b"caf\xe9",)])
        connection.commit()
    assert gold_rows(file, 'SELECT count(*) FROM room WHERE name = "hall"') == [(1,)]
    assert gold_rows(file, "SELECT nothing FROM nowhere") is None
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    assert gold_rows(file, endless, seconds=0.2) is None

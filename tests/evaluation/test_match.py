import pytest

from tagframe.evaluation.match import is_ordered, match


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

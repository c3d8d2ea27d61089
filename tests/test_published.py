from tag_bench.published import PUBLISHED, QUESTIONS, TABLE_1, TABLE_1_QUESTIONS, beside

OURS = {"2": {"P": 90.0, "R": 81.0, "F1": 85.0, "CR": 62.5}, "20": {"P": 9.0, "R": 99.0, "F1": 15.0, "CR": 98.0}}


def test_figures_stand_in_columns_by_k_with_their_numbers_of_questions():
    lines = beside("bird", "auto", OURS, 1171).splitlines()
    recalls, precisions = lines[: 2 + len(PUBLISHED["bird"])], lines[2 + len(PUBLISHED["bird"]) :]
    assert recalls[1].split()[-3:] == ["1,171", "81.0/62.5", "99.0/98.0"]
    assert recalls[2].split()[-3:] == ["1,172", "63.5/34.8", "-"]
    assert any("JAR (MIP), rerun by iterative JAR" in line and "1,172" in line for line in recalls)
    assert len(precisions) == 2 + len(TABLE_1["bird"])
    assert precisions[1].split()[-3:] == ["1,171", "90.0/81.0/85.0", "9.0/99.0/15.0"]
    assert any(line.split()[:2] == ["JAR-F", "(Contriever)"] and "1,095" in line for line in precisions)
    assert all(len(set(map(len, part))) == 1 for part in (recalls, precisions))


def test_a_benchmark_that_nobody_published_has_ours_alone():
    assert len(beside("mine", "auto", OURS, 3).splitlines()) == 2


def test_every_published_figure_has_a_number_of_questions():
    assert QUESTIONS.keys() == PUBLISHED.keys()
    assert TABLE_1_QUESTIONS.keys() == TABLE_1.keys()


def test_f1_of_table_1_lies_near_that_of_its_means():
    """A mistyped digit would part them: F1 is a mean over questions, so it is not exactly that of the means."""
    for rows in TABLE_1.values():
        for curve in rows.values():
            for precision, recall, f1 in curve.values():
                assert abs(2 * precision * recall / (precision + recall) - f1) < 1.5

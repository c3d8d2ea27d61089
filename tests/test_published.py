from tag_bench.published import PUBLISHED, beside

OURS = {"2": {"P": 90.0, "R": 81.0, "F1": 85.0, "CR": 62.5}, "20": {"P": 9.0, "R": 99.0, "F1": 15.0, "CR": 98.0}}


def test_figures_stand_in_columns_by_k_with_their_numbers_of_questions():
    lines = beside("bird", "auto", OURS, 1171).splitlines()
    end = 2 + len(PUBLISHED["recall"]["bird"]["by_k"])
    recalls, precisions = lines[:end], lines[end:]
    assert recalls[1].split()[-3:] == ["1,171", "81.0/62.5", "99.0/98.0"]
    assert recalls[2].split()[-3:] == ["1,172", "63.5/34.8", "-"]
    assert any("JAR (MIP), rerun by iterative JAR" in line and "1,172" in line for line in recalls)
    assert len(precisions) == 2 + len(PUBLISHED["precision"]["bird"]["by_k"])
    assert precisions[1].split()[-3:] == ["1,171", "90.0/81.0/85.0", "9.0/99.0/15.0"]
    assert any(line.split()[:2] == ["JAR-F", "(Contriever)"] and "1,095" in line for line in precisions)
    assert all(len(set(map(len, part))) == 1 for part in (recalls, precisions))


def test_a_benchmark_that_nobody_published_has_ours_alone():
    assert len(beside("mine", "auto", OURS, 3).splitlines()) == 2


def test_f1_of_table_1_lies_near_that_of_its_means():
    """A mistyped digit would part them: F1 is a mean over questions, so it is not exactly that of the means."""
    for rows in PUBLISHED["precision"].values():
        for curve in rows["by_k"].values():
            for precision, recall, f1 in curve.values():
                assert abs(2 * precision * recall / (precision + recall) - f1) < 1.5

from tag_bench.published import PUBLISHED, beside


def test_figures_stand_in_columns_by_k():
    lines = beside("bird", "auto", {2: (81.0, 62.5), 20: (99.0, 98.0)}).splitlines()
    assert len(lines) == 2 + len(PUBLISHED["bird"])
    assert lines[1].split()[-2:] == ["81.0/62.5", "99.0/98.0"]
    assert lines[2].split()[-1] == "-"
    assert len(set(map(len, lines))) == 1


def test_a_benchmark_that_nobody_published_has_ours_alone():
    assert len(beside("mine", "auto", {2: (50.0, 50.0)}).splitlines()) == 2

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from tagframe.errors import InvalidArgument
from tagframe.retrieval.methods.auto import (
    FEW_TABLES,
    MIN_CALLED,
    MOST_KNOWABLE_TABLES,
    POOL,
    Posterior,
    Weights,
    completeness,
    fitted,
    joining,
    posterior,
)
from tagframe.retrieval.problem import Examples, RowKind, SelectionProblem
from tagframe.retrieval.signals import SIGNALS

# One signal counts, every further table costs 1, a link is worth 2.
WEIGHTS = Weights({"dense": 1.0}, {"sum_dense": 1.0, "link_tree": 2.0, "size_2": -1.0, "size_3": -2.0, "size_4": -9.0})


def problem_of(dense, links=(), **more):
    signals = np.zeros((len(dense), len(SIGNALS)))
    signals[:, SIGNALS.index("dense")] = dense
    link = np.zeros((len(dense), len(dense)))
    for i, j in links:
        link[i, j] = link[j, i] = 1.0
    return SelectionProblem(r=WEIGHTS.prior(signals), signals=signals, link=link, **more)


def test_the_posterior_is_the_softmax_of_the_utilities():
    known = posterior(problem_of([2.0, 0.5, 0.1], [(0, 2)]), WEIGHTS)
    utilities = np.array([2.0, 0.5, 0.1, 2.5 - 1, 2.1 + 2 - 1, 0.6 - 1, 2.6 + 2 - 2])
    assert np.allclose(known.probability, np.exp(utilities) / np.exp(utilities).sum())
    assert known.probability.sum() == pytest.approx(1.0)
    assert known.tables()[0] == pytest.approx(known.probability[[0, 3, 4, 6]].sum())


def test_a_set_that_mixes_families_of_near_copies_is_unlikely():
    mixed = np.zeros((4, 4), dtype=bool)  # of two tables each: 0 and 1, 2 and 3
    mixed[:2, 2:] = mixed[2:, :2] = True
    weights = replace(WEIGHTS, set={**WEIGHTS.set, "mixed": -2.0})
    plain, apart = (posterior(problem_of([2.0, 0.9, 1.0, 0.9], mixed=pairs), weights) for pairs in ([], mixed))
    assert plain.best(2)[0] == 0b101
    assert apart.best(2)[0] == 0b011
    ratio = apart.probability / plain.probability
    one, other = (np.flatnonzero(plain.masks == mask)[0] for mask in (0b011, 0b101))
    assert ratio[other] / ratio[one] == pytest.approx(np.exp(-2.0))


@pytest.mark.parametrize(
    ("references", "connecting"),
    [
        pytest.param([(2, 0), (2, 1)], [2], id="a table of pairs"),
        pytest.param([(0, 2), (2, 1)], [2], id="a chain"),
        pytest.param([(2, 0), (2, 3), (3, 1)], [2, 3], id="a chain of two"),
        pytest.param([(0, 2), (1, 2)], [], id="both refer to it, so it is not needed"),
        pytest.param([(0, 1), (2, 0), (2, 1)], [], id="they are linked"),
        pytest.param([(2, 0), (3, 1)], [], id="nothing connects them"),
    ],
)
def test_tables_that_connect_two_sure_tables_are_likely(references, connecting):
    sizes = {f"size_{size}": -2.0 * (size - 1) for size in range(2, 6)}
    weights = replace(WEIGHTS, set={"sum_dense": 3.0, **sizes}, apart=-9.0)
    links = np.zeros((5, 5), dtype=bool)
    links[tuple(np.transpose(references))] = True
    problem = problem_of([3.0, 3.0, 0.0, 0.0, 0.0], references, refers=links)
    chances = joining(problem, posterior(problem, weights), weights).tables()
    assert (chances[:2] > 0.8).all()
    assert [position for position in (2, 3, 4) if chances[position] > 0.8] == connecting


def test_how_tables_join_says_nothing_about_which_database_is_needed():
    weights = replace(WEIGHTS, set={"sum_dense": 2.0, "other_databases": -99.0, "size_2": -1.0}, apart=-9.0)
    links = np.zeros((6, 6), dtype=bool)
    links[2, 0] = links[2, 1] = links[3, 4] = True  # the second database has what it needs in two linked tables
    asked = [1.0, 1.0, 0.0, 1.0, 1.0, 0.0], [(2, 0), (2, 1), (3, 4)]
    problem = problem_of(*asked, refers=links, source=[0, 0, 0, 1, 1, 1])
    plain = posterior(problem, weights)
    known = joining(problem, plain, weights)
    first = known.members[:, 3:].sum(axis=1) == 0
    assert known.probability[first].sum() == pytest.approx(plain.probability[first].sum())
    assert known.tables()[2] > plain.tables()[2]


def test_what_is_read_with_a_fixed_k_does_not_depend_on_how_likely_a_connecting_table_is():
    links = np.zeros((4, 4), dtype=bool)
    links[2, 0] = links[2, 1] = True
    problem = problem_of([3.0, 2.8, -1.0, 0.0], [(2, 0), (2, 1)], refers=links)
    plain = replace(WEIGHTS, set={"sum_dense": 3.0, "size_2": -2.0, "size_3": -5.0, "size_4": -9.0})
    before, now = (fitted(problem, 3, replace(plain, apart=apart)) for apart in (0.0, -9.0))
    assert set(before.indices) == set(now.indices) == {0, 1, 3}
    assert before.probability[2] < 0.5 < 0.8 < now.probability[2]
    assert now.confidence < before.confidence
    assert 2 in fitted(problem, weights=replace(plain, apart=-9.0)).indices


def test_k_auto_gives_the_fewest_tables_that_are_surely_all():
    problem = replace(problem_of([2.0, 0.5, 0.1], [(0, 2)]), facts={"log_tables": 5.0})
    known = posterior(problem, WEIGHTS)
    sure = {size: max(known.contained(mask) for mask in masks_of(size)) for size in (1, 2, 3)}
    assert sure[1] < sure[2] < sure[3] == pytest.approx(1.0)
    for size in (1, 2, 3):
        asked = replace(problem, confidence=sure[size] - 1e-6)
        selection = fitted(asked, weights=WEIGHTS)
        assert len(selection.indices) == size
        assert selection.confidence == pytest.approx(sure[size])
    one, two, all_three = (
        fitted(replace(problem, confidence=sure[size] - 1e-6), weights=WEIGHTS) for size in (1, 2, 3)
    )
    assert set(two.indices) == {0, 2}
    following = [max(found.probability[list({0, 1, 2} - {*found.indices})]) for found in (one, two)]
    assert one.note == f"1 table, {one.confidence:.0%} likely enough (next candidate: {following[0]:.0%})"
    assert two.note == f"2 tables, {two.confidence:.0%} likely enough (next candidate: {following[1]:.0%})"
    assert all_three.note == "3 tables, 100% likely enough"


def masks_of(size):
    return [mask for mask in range(8) if mask.bit_count() == size]


def test_where_no_set_is_sure_enough_tables_that_add_nothing_are_left_out():
    # The second table is half of what is needed; of the others each is needed now and then.
    weights = replace(WEIGHTS, complete={"one": -3.0, "logit": 0.01})
    selection = fitted(problem_of([2.0, 2.0, *[-3.0] * 10]), weights=weights)
    assert len(selection.indices) < 4
    assert selection.confidence < 0.1


def test_confidence_is_what_was_seen_of_such_sets():
    problem = replace(problem_of([2.0, 0.5, 0.1], [(0, 2)]), facts={"log_tables": 3.0})
    plain = fitted(problem, 2, WEIGHTS).confidence
    weights = replace(WEIGHTS, complete={"logit": 1.0, "log_tables": -0.5})
    assert fitted(problem, 2, weights).confidence == pytest.approx(1 / (1 + (1 - plain) / plain * np.exp(1.5)))


def test_a_question_that_nothing_fits_says_so():
    weights = replace(WEIGHTS, fits={"one": -5.0, "known": 10.0})
    problem = problem_of([2.0, 0.5, 0.1], [(0, 2)])
    fitting = fitted(replace(problem, facts={"known": 1.0}), weights=weights)
    strange = fitted(replace(problem, facts={"known": 0.1}), weights=weights)
    assert "nothing here seems to fit" in strange.note
    assert "nothing" not in fitting.note
    assert strange.confidence < 0.05 < fitting.confidence
    assert strange.probability.max() < 0.05 < fitting.probability.max()


def test_a_name_in_cells_of_the_likeliest_tables_is_not_said_to_fit_nothing():
    weights = replace(WEIGHTS, fits={"one": -5.0})
    problem = problem_of([2.0, 0.5, 0.1], [(0, 2)])
    problem = replace(problem, facts={"cell_names": 1.0})

    def with_name_in(table):
        row = np.zeros((1, 3))
        row[0, table] = 1.0
        return replace(
            problem,
            fine=np.concatenate([problem.fine, row]) if problem.fine.size else row,
            kind=np.append(problem.kind, int(RowKind.CELL)),
            row_weight=np.append(problem.row_weight, 1.0),
        )

    likely, unlikely = fitted(with_name_in(0), weights=weights), fitted(with_name_in(1), weights=weights)
    assert "nothing" not in likely.note
    assert "nothing" in unlikely.note
    assert likely.confidence > unlikely.confidence


def test_where_no_database_of_the_fit_is_like_this_one_it_is_said_and_surely_less():
    weights = replace(WEIGHTS, complete={"logit": 1.0}, seen={"log_tables": (2.0, 5.0)}, spread=1.5)
    problem = problem_of([2.0, 0.5, 0.1], [(0, 2)])

    def found(**facts):
        return fitted(replace(problem, facts=facts), 2, weights), fitted(replace(problem, facts=facts), None, weights)

    known, automatic = found(bare=1.0, log_tables=4.0)
    strange, strangely = found(bare=1.0, log_tables=6.0)
    with_rows, _ = found(bare=0.0, log_tables=6.0)
    assert with_rows.confidence == known.confidence > strange.confidence > 0
    assert strange.indices == known.indices
    assert "may be far off" in strangely.note
    assert "may be far off" not in automatic.note


def test_where_names_are_all_that_is_known_it_is_less_sure_of_the_same_tables():
    weights = replace(WEIGHTS, sure={"sure": 0.5, "unlinked": -2.0})
    linked, unlinked = problem_of([2.0, 0.5, 0.1], [(0, 2), (0, 1)]), problem_of([2.0, 0.5, 0.1])

    def found(problem, bare, given):
        return fitted(replace(problem, facts={"bare": bare}), weights=given)

    for problem in (linked, unlinked):
        elsewhere, here, before = (found(problem, *given) for given in ((0.0, weights), (1.0, weights), (1.0, WEIGHTS)))
        assert elsewhere.indices == here.indices == before.indices
        assert elsewhere.confidence == before.confidence > here.confidence
    assert found(unlinked, 1.0, weights).confidence < found(linked, 1.0, weights).confidence


def test_where_no_row_of_most_tables_is_known_the_weights_of_names_count():
    names = replace(WEIGHTS, table={"dense": -1.0}, set={"sum_dense": -1.0})
    weights = replace(WEIGHTS, names=names, fits={"one": 3.0}, learned={"near": 1.0})
    problem = problem_of([2.0, 0.5, 0.1], [(0, 2)])

    def chosen(unseen):
        return fitted(replace(problem, facts={"unseen": unseen}), 1, weights).indices

    assert [chosen(unseen) for unseen in (0.0, 0.5, 0.6, 1.0)] == [(0,), (0,), (2,), (2,)]
    there = weights.for_question({"unseen": 1.0})
    assert (there.table, there.fits, there.learned) == (names.table, weights.fits, weights.learned)


def test_of_more_tables_than_sets_are_made_of_it_is_no_surer():
    names_alone = {"unseen": 1.0}
    problem = replace(problem_of([1.0, *np.linspace(0.9, 0.1, 29)]), facts=names_alone)
    sure = {k: fitted(problem, k, WEIGHTS).confidence for k in (2, POOL, 20, 30)}
    assert sure[2] < sure[POOL] == sure[20] == sure[30] < 0.5
    far = replace(problem_of([9.0, *np.linspace(0.9, 0.1, 29)]), facts=names_alone)
    assert 0.9 < fitted(far, POOL, WEIGHTS).confidence < 1  # the others are far from the best
    every = fitted(replace(problem, facts={**names_alone, "log_tables": np.log1p(30)}), 30, WEIGHTS)
    assert every.confidence == pytest.approx(1.0)


def test_names_make_nothing_surer():
    weights = replace(WEIGHTS, sure={"one": 5.0})
    problem = replace(problem_of([2.0, 0.5, 0.1]), facts={"bare": 1.0})
    assert fitted(problem, 1, weights).confidence == fitted(problem, 1, WEIGHTS).confidence < 0.9


def test_like_questions_make_a_set_surer_up_to_the_posterior_or_to_how_often_it_held_all():
    weights = replace(WEIGHTS, sure={"one": -2.0}, learned={"utility": 1.0, "believed": 3.0})
    problem = replace(problem_of([2.0, 0.5, 0.1], [(0, 2)]), facts={"bare": 1.0})
    tables, size = np.array([[1, 0, 1], [0, 1, 0]], dtype=bool), np.array([2.0, 2.0])  # one reads one elsewhere, too
    without = fitted(problem, 2, weights)
    known = posterior(problem, weights)
    likely = known.contained(known.mask(without.indices))
    assert set(without.indices) == {0, 2}
    assert without.confidence == pytest.approx(1 / (1 + np.exp(2)))
    assert without.confidence < likely

    def sure(like, *weight):
        examples = Examples(tables, size, np.array(weight), like=like)
        found = fitted(replace(problem, examples=examples), 2, weights)
        assert found.indices == without.indices
        return found.confidence

    assert sure(0.0, 0.9, 0.1) == sure(0.0, 0.0, 0.0) == without.confidence
    assert sure(1 / 3, 0.95, 0.05) == pytest.approx((without.confidence + 0.95) / 2)
    assert sure(1e9, 0.95, 0.05) == pytest.approx(0.95)
    assert sure(1e9, 0.05, 0.95) == pytest.approx(likely)  # others held less: nothing is less sure by that
    likes = Examples(tables, size, np.array([0.95, 0.05]), like=1e9)
    with_rows = replace(problem, facts={}, examples=likes)  # there it is known without
    assert fitted(with_rows, 2, weights).confidence == fitted(replace(with_rows, examples=None), 2, weights).confidence
    anchored = replace(problem, anchor=np.array([True, False, False]))
    alone, told = (
        fitted(replace(anchored, examples=examples), 1, weights)
        for examples in (None, Examples(tables, size, np.array([1.0, 0.0]), like=1e9))
    )
    assert alone.indices == told.indices == (2,)
    assert told.confidence == pytest.approx(1.0)
    assert alone.confidence < 0.9


def test_of_thousands_of_tables_nobody_knows_that_nothing_fits():
    weights = replace(WEIGHTS, fits={"one": -5.0})
    problem = problem_of([2.0, 0.5, 0.1], [(0, 2)])
    few, many = (
        fitted(replace(problem, facts={"log_tables": np.log1p(count)}), weights=weights)
        for count in (MOST_KNOWABLE_TABLES, 3334)
    )
    assert "nothing here seems to fit" in few.note
    assert "nothing" not in many.note
    assert few.confidence < many.confidence


def test_without_an_embedder_nobody_knows_that_nothing_fits():
    weights = replace(WEIGHTS, fits={"one": -5.0})
    problem = problem_of([2.0, 0.5, 0.1], [(0, 2)])
    assert "nothing" not in fitted(replace(problem, facts={"dense": 0.0}), weights=weights).note
    assert "nothing" in fitted(replace(problem, facts={"dense": 0.2}), weights=weights).note


def test_a_further_table_is_dear_where_one_is_needed_and_cheap_where_more_are():
    # The chance to be complete rises alike with the size: .40, .55, .69, .80.
    weights = replace(WEIGHTS, complete={"one": -1.0, "size": 0.6})
    many = {"log_tables": np.log1p(FEW_TABLES + 1)}
    problem = replace(problem_of([3.0, 0.5, 0.4, 0.3]), confidence=0.46, facts=many, source=np.arange(4))
    one, several = (
        replace(weights, set={"sum_dense": 1.0, **{f"size_{size}": (size - 1) * more for size in range(2, 6)}})
        for more in (-6.0, 6.0)
    )
    needed = [known.probability @ known.sizes for known in (posterior(problem, one), posterior(problem, several))]
    assert needed[0] < 1.1
    assert needed[1] > 3.9
    assert len(fitted(problem, weights=one).indices) == 2
    assert len(fitted(problem, weights=several).indices) == 4


def test_a_set_that_is_not_sure_enough_is_not_taken_where_a_larger_one_is():
    # A second table is dear, since one is needed as a rule, and raises the chance by a little: .887 to .905.
    weights = replace(WEIGHTS, complete={"one": 1.87, "size": 0.19}, set={"sum_dense": 1.0, "size_2": -6.0})
    problem = replace(problem_of([3.0, 0.5, 0.4]), confidence=0.9)
    chances = completeness(problem, posterior(problem, weights), weights, [[0], [0, 1]])
    assert chances[0] < 0.9 < chances[1]
    found = fitted(problem, weights=weights)
    assert len(found.indices) == 2
    assert found.confidence >= 0.9


def test_among_many_tables_a_set_that_is_sure_enough_grows_while_it_is_worth_it():
    weights = replace(
        WEIGHTS, complete={"one": 1.1, "size": 1.12}, set={"sum_dense": 1.0, "size_2": -6.0, "size_3": -9.0}
    )
    one = problem_of([3.0, 0.5, 0.4])
    several = replace(one, source=np.arange(3))

    def count(problem: SelectionProblem, tables: int, sure: float) -> int:
        given = replace(problem, facts={"log_tables": np.log1p(tables)}, confidence=sure)
        return len(fitted(given, weights=weights).indices)

    few, many = FEW_TABLES, FEW_TABLES + 1
    assert [count(several, few, 0.9), count(one, many, 0.9)] == [1, 1]  # complete with probability .90
    assert [count(several, many, 0.9), count(several, many, 0.97)] == [2, 3]  # .97, .99


def test_a_given_k_contains_what_is_needed_best():
    problem = problem_of([2.0, 1.4, 0.3, 0.1], [(0, 2)])
    known = posterior(problem, WEIGHTS).given_at_least(2)
    members = known.members.astype(bool)

    def value(chosen):
        inside = np.isin(np.arange(4), chosen)
        whole = known.probability[(members <= inside).all(axis=1)].sum()
        recall = (known.probability * (members & inside).sum(axis=1) / members.sum(axis=1)).sum()
        return 0.5 * whole + 0.5 * recall

    best = max(combinations(range(4), 3), key=value)
    selection = fitted(problem, 3, WEIGHTS)
    assert tuple(sorted(selection.indices)) == best
    assert list(selection.score) == sorted(selection.score, reverse=True)


def test_more_tables_than_sets_are_made_of_follow_by_the_prior():
    dense = np.linspace(2.0, 0.0, 30)
    selection = fitted(problem_of(dense), 20, WEIGHTS)
    assert len(selection.indices) == 20
    assert selection.indices == tuple(range(20))


def test_anchors_are_in_every_set_and_not_counted():
    problem = problem_of([0.0, 1.0, 0.9], [(0, 2)], anchor=[True, False, False])
    known = posterior(problem, WEIGHTS)
    assert known.tables()[0] == pytest.approx(1.0)
    selection = fitted(problem, 1, WEIGHTS)
    assert selection.indices == (2,)


@pytest.mark.parametrize(
    ("has", "kind", "needed"),
    [
        ([0, 0, 0, 1], RowKind.CELL, [0, 1, 3]),
        ([0, 0, 1, 1], RowKind.CELL, [0, 1, 2]),
        ([0, 1, 1, 0], RowKind.CELL, [0, 1]),
        ([0, 0, 0, 0], RowKind.CELL, [0, 1]),
        pytest.param([0, 0, 0, 1], RowKind.SPOKEN, [0, 1], id="a word of a table that nothing joins"),
    ],
)
def test_the_likeliest_table_with_a_word_that_no_needed_one_has_is_needed(has, kind, needed):
    problem = problem_of([4.0, 4.0, -2.0, -2.5], fine=[has], kind=[kind])
    assert np.flatnonzero(fitted(problem, 4, WEIGHTS).probability >= 0.5).tolist() == needed
    judged = replace(problem, opinion=np.array([1.0, 1.0, -1.0, -1.0]))
    assert np.flatnonzero(fitted(judged, 4, WEIGHTS).probability >= 0.5).tolist() == [0, 1]


def test_a_table_that_a_word_calls_is_needed_for_it_though_nothing_joins_it():
    problem = problem_of([4.0, 4.0, -2.0, -2.5], fine=[[0, 0, 0, 1]], kind=[RowKind.SPOKEN])
    problem.signals[3, SIGNALS.index("called")] = 1.0
    chance = fitted(problem, 4, WEIGHTS).probability
    assert chance[3] == MIN_CALLED
    assert chance[2] < 0.5


def test_of_tables_with_a_word_that_no_needed_one_has_the_one_with_more_words_is_needed():
    problem = problem_of([4.0, 4.0, -2.0, -2.1], fine=[[0, 0, 1, 1]], kind=[RowKind.CELL])
    more = problem_of([4.0, 4.0, -2.0, -2.1], fine=[[0, 0, 1, 1], [1, 0, 0, 1]], kind=[RowKind.CELL] * 2)
    needed = [np.flatnonzero(fitted(one, 4, WEIGHTS).probability >= 0.5).tolist() for one in (problem, more)]
    assert needed == [[0, 1, 2], [0, 1, 3]]


@pytest.mark.parametrize(
    ("has", "facts", "needed"),
    [
        ([0.6, 0.0], {}, [0, 1]),
        ([0.6, 0.6], {}, [0, 1]),
        ([0.0, 0.6], {"denies": 1.0}, [0, 1]),
        ([0.6, 0.6], {"foreign": 1.0}, [0, 1, 2]),
    ],
)
def test_a_table_whose_words_others_have_is_not_needed(has, facts, needed):
    fine = [[0.5, 0.5, 0.5], [0.8, 0.0, has[0]], [0.0, 0.8, has[1]]]
    kinds = [RowKind.WORD, RowKind.NAME, RowKind.NAME]
    problem = problem_of([2.0, 1.9, 1.2], fine=fine, kind=kinds, facts={"log_tables": 9.0, **facts})
    weights = replace(WEIGHTS, set={"sum_dense": 2.0, "size_2": -1.0, "size_3": -2.0})
    assert np.flatnonzero(fitted(problem, weights=weights).probability >= 0.5).tolist() == needed


@pytest.mark.parametrize(
    ("near", "has", "facts", "needed"),
    [
        ([0.5, 0.55, 0.1], [0.6, 0.6, 0.0], {}, [0]),
        ([0.5, 0.65, 0.1], [0.6, 0.6, 0.0], {}, [0, 1]),  # a word is nearer to the other one
        ([0.5, 0.55, 0.1], [0.3, 0.6, 0.0], {}, [0, 1]),  # a word is more of its name
        ([0.5, 0.55, 0.1], [0.0, 0.0, 0.6], {}, [0]),
        ([0.5, 0.55, 0.1], [0.6, 0.6, 0.0], {"denies": 1.0}, [0, 1]),
        ([0.5, 0.55, 0.1], [0.6, 0.6, 0.0], {"foreign": 1.0}, [0, 1]),
    ],
)
def test_a_table_that_has_all_words_of_the_question_answers_it_alone(near, has, facts, needed):
    kinds = [RowKind.WORD, RowKind.NAME]
    problem = problem_of([2.0, 1.5, -9.0], fine=[near, has], kind=kinds, facts={"log_tables": 9.0, **facts})
    assert np.flatnonzero(fitted(problem, weights=WEIGHTS).probability >= 0.5).tolist() == needed


@pytest.mark.parametrize(
    ("near", "refers", "facts", "chosen"),
    [
        ([0.2, 0.5, 0.9], (0, 1), {"log_tables": 2.0}, (0, 1)),
        ([0.2, 0.25, 0.9], (0, 1), {"log_tables": 2.0}, (0,)),  # not clearly nearer
        ([0.2, 0.5, 0.9], (1, 0), {"log_tables": 2.0}, (0,)),  # it would repeat rows
        ([0.2, 0.5, 0.9], (0, 1), {"log_tables": 5.0}, (0,)),  # one of many tables is near to any word
        ([0.2, 0.25, 0.9], (1, 0), {"log_tables": 2.0, "foreign": 1.0}, (0, 1)),
        ([0.2, 0.25, 0.9], (1, 0), {"log_tables": 5.0, "foreign": 1.0}, (0,)),
    ],
)
def test_a_table_to_which_the_set_refers_is_added_if_it_is_nearer_to_a_word(near, refers, facts, chosen):
    directed = np.zeros((3, 3), dtype=bool)
    directed[refers] = True
    problem = problem_of([9.0, -9.0, -9.0], [(0, 1)], fine=[near], kind=[RowKind.WORD], refers=directed, facts=facts)
    assert fitted(problem, weights=WEIGHTS).indices == chosen


def test_rows_without_a_partner_are_of_two_tables():
    problem = problem_of([9.0, -5.0, -9.0])
    assert fitted(problem, weights=WEIGHTS).indices == (0,)
    denied = fitted(replace(problem, facts={"denies": 1.0}), weights=WEIGHTS)
    assert (denied.indices, denied.probability[1] > 0.5) == ((0, 1), True)


def test_nothing_to_choose_from():
    assert fitted(SelectionProblem(r=np.zeros(0)), weights=WEIGHTS).indices == ()
    assert fitted(problem_of([1.0]), 3, WEIGHTS).indices == (0,)


def test_ties_go_to_the_lower_index():
    assert fitted(problem_of([1.0, 1.0, 1.0]), 1, WEIGHTS).indices == (0,)


def test_weights_of_unknown_names_are_refused():
    for position in range(4):
        with pytest.raises(InvalidArgument, match="'denze'"):
            Weights(*({"denze": 1.0} if position == other else {} for other in range(4)))


def test_conditioning_on_a_size_keeps_what_there_is():
    lonely = Posterior(np.array([4]), np.array([1]), np.array([1.0]))
    assert lonely.given_at_least(2).probability.tolist() == [1.0]

"""Criteria: sensitivities by brute force, attained and never exceeded; monotonicity as claimed."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from dpframework_trees.criteria import CRITERIA, PUBLISHED_GINI, KnownRows, criterion_named, gini_fall

from dpframework.facts import Boolean, Schema, rational_above
from dpframework.facts.errors import InputError
from dpframework.queries import Norm, entropy_change

MOST_ROWS = 14


def score(counts: tuple[int, ...], name: str) -> float:
    return CRITERIA[name].kernels.child_score(np.array(counts, dtype=np.int64))


def tables(rows: int, classes: int):
    """All class counts of one child with at most `rows` rows."""
    return (n for n in itertools.product(range(rows + 1), repeat=classes) if sum(n) <= rows)


def added(counts: tuple[int, ...], c: int) -> tuple[int, ...]:
    return tuple(n + (k == c) for k, n in enumerate(counts))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", CRITERIA)
def test_declared_sensitivity_holds_and_is_attained_when_a_row_is_added(name, classes):
    sensitivity = CRITERIA[name].sensitivity(MOST_ROWS)
    assert sensitivity.norm is Norm.LINF
    changes = [
        score(added(n, c), name) - score(n, name) for n in tables(MOST_ROWS - 1, classes) for c in range(classes)
    ]
    declared = float(sensitivity.add_or_remove_one)
    assert max(map(abs, changes)) <= declared + 1e-9
    assert max(map(abs, changes)) >= declared - 1e-6
    monotonic = min(changes) >= -1e-9 or max(changes) <= 1e-9
    assert monotonic == sensitivity.monotonic


@pytest.mark.parametrize("name", CRITERIA)
def test_declared_sensitivity_holds_and_is_attained_when_a_row_is_replaced(name):
    # two children, as a binary test makes them: the replaced row may change its child too
    sensitivity = CRITERIA[name].sensitivity(MOST_ROWS)
    largest = 0.0
    for left in tables(MOST_ROWS - 1, 2):
        rest = MOST_ROWS - 1 - sum(left)
        for k in range(rest + 1):
            sides = (left, (k, rest - k))
            scores = [
                sum(score(added(side, c) if s == moved else side, name) for s, side in enumerate(sides))
                for moved in range(2)
                for c in range(2)
            ]
            largest = max(largest, max(scores) - min(scores))
    declared = float(sensitivity.replace_one)
    assert largest <= declared + 1e-9
    assert largest >= 0.99 * declared  # the 3-norm comes close to 1 only as the rows grow


def test_purity_is_not_monotonic_so_its_spread_is_twice_its_sensitivity():
    # a row of another class lowers the purity of a pure child
    assert score((9, 1), "gini") < score((9, 0), "gini") - 0.79
    assert CRITERIA["gini"].sensitivity(None).spread.add_or_remove_one == 2
    assert CRITERIA["norm"].sensitivity(None).spread.add_or_remove_one == 1


@pytest.mark.parametrize("n", [2, 5, 10, 1000])
def test_purity_under_replace_one_is_the_papers_gini_bound_made_exact(n):
    assert CRITERIA["gini"].sensitivity(n).replace_one == Fraction(2 * (n - 1), n)


def test_what_is_published_of_gini_is_kept_as_it_is():
    declared = PUBLISHED_GINI.sensitivity(None)
    assert (declared.add_or_remove_one, declared.replace_one) == (2, 2)


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_what_scores_may_be_rounded_by_is_no_more_than_is_derived(classes):
    """K u R and a share of u an addition, by a thousandth more; see `Criterion.rounding`."""
    for name, k, largest in (
        ("norm", 13 + 2 * classes, 1),
        ("max", 0, 1),
        ("gini", classes + 1, 1),
        ("information-gain", 2 + (classes + 8) * math.ceil(math.log2(classes)), math.ceil(math.log2(classes))),
    ):
        found = criterion_named(name).rounding(classes, 99, 4)
        if name == "gini":
            assert PUBLISHED_GINI.rounding(classes, 99, 4) == found
        assert found == (k + 4 * largest) * Fraction(100, 2**53) * Fraction(1001, 1000)


def test_gain_sensitivity_is_below_the_published_bound_and_close_to_it():
    for rows in (2, 10, 1000, 45222):
        published = math.log2(rows + 1) + 1 / math.log(2)
        assert entropy_change(rows) <= published
        assert entropy_change(rows) >= published - 1.1


def test_gini_and_purity_order_candidates_alike():
    rng = np.random.default_rng(3)
    for _ in range(200):
        parts = rng.multinomial(60, rng.dirichlet(np.ones(8))).reshape(4, 2)
        # the Gini score of the talk: -sum over children of N (1 - sum of squared shares)
        splits = [parts, np.array([parts[0] + parts[1], parts[2] + parts[3]])]
        gini = [-sum(n.sum() * (1 - ((n / n.sum()) ** 2).sum()) for n in split if n.sum()) for split in splits]
        purity = [sum(score(tuple(n), "gini") for n in split) for split in splits]
        assert gini[0] - gini[1] == pytest.approx(purity[0] - purity[1], abs=1e-9)


def test_information_gain_without_a_bound_on_the_rows_says_what_to_set():
    with pytest.raises(InputError, match="max_rows"):
        CRITERIA["information-gain"].sensitivity(None)


def test_an_unknown_criterion_names_the_nearest():
    with pytest.raises(InputError, match="did you mean 'gini'"):
        criterion_named("ginni")


def test_information_gain_allows_for_the_row_that_a_neighbour_has_more():
    # with rows = 1 a neighbour under add-or-remove-one has two rows, and a score may change by 2 bits
    exact = CRITERIA["information-gain"].sensitivity(1, exact=True)
    assert float(exact.add_or_remove_one) == pytest.approx(entropy_change(2))
    assert float(exact.replace_one) == pytest.approx(entropy_change(1))
    assert abs(score((1, 1), "information-gain") - score((1, 0), "information-gain")) <= exact.add_or_remove_one


def moved_by(groups, base: tuple[int, ...], name: str):
    """How the summed score of two children of three or two classes changes when each of some groups is added."""
    half = len(base) // 2

    def total(counts):
        return score(tuple(counts[:half]), name) + score(tuple(counts[half:]), name)

    before = total(base)
    return [total(tuple(b + g for b, g in zip(base, group, strict=True))) - before for group in groups]


def groups_of(most: int, cells: int):
    """All ways of adding up to so many rows to some cells."""
    return [g for g in itertools.product(range(most + 1), repeat=cells) if 0 < sum(g) <= most]


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("name", ["gini", "information-gain"])
def test_what_is_declared_for_a_group_holds_on_all_tables_of_two_children_and_is_nearly_attained(name, k, classes):
    """Every base table of few rows, every group of up to k: both relations, and no less than is needed."""
    rows = 9 if classes == 2 else 7
    (declared,) = CRITERIA[name].for_group(rows, k, classes)
    groups = groups_of(k, 2 * classes)
    rise = fall = replaced = 0.0
    for base in itertools.product(range(rows), repeat=2 * classes):
        room = rows - sum(base)
        if room < 1:
            continue
        changes = moved_by([g for g in groups if sum(g) <= room], base, name)
        rise, fall = max(rise, *changes), max(fall, *(-change for change in changes))
        replaced = max(replaced, max(changes) - min(changes), *map(abs, changes))
    rounding = 1e-9
    assert rise <= float(declared.rise) + rounding
    assert fall <= float(declared.fall) + rounding
    assert max(rise, fall) <= float(declared.add_or_remove_one) + rounding
    assert replaced <= float(declared.replace_one) + rounding
    assert rise >= float(declared.rise) * 0.999
    assert fall >= float(declared.fall) * (0.9 if classes == 2 else 0.75)
    assert replaced >= float(declared.replace_one) * 0.75


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("rows", [50, 1000])
def test_a_group_attains_what_is_declared_on_large_tables(k, rows):
    """Rows that are all alike, and a group of the other class."""
    for name in ("gini", "information-gain"):
        (declared,) = CRITERIA[name].for_group(rows, k, 2)
        found = score((rows - k, 0), name) - score((rows - k, k), name)
        assert found == pytest.approx(float(declared.fall), rel=1e-9)
    for classes in (2, 3, 5):  # the others' rows are spread over their classes: no smaller claim holds, replaced either
        (gini,) = CRITERIA["gini"].for_group(rows, k, classes)
        others = [k // (classes - 1) + (c < k % (classes - 1)) for c in range(classes - 1)]
        changed = score((rows, *(0 for _ in others)), "gini") - score((rows - k, *others), "gini")
        assert changed == pytest.approx(float(gini.replace_one), rel=1e-9)
    assert declared.fall < k * CRITERIA[name].sensitivity(rows).fall


def test_for_one_row_a_group_is_what_was_declared_before():
    for name, rows, classes in itertools.product(("gini", "information-gain"), (2, 3, 9, 45222), (2, 3)):
        criterion = CRITERIA[name]
        assert criterion.sensitivity(rows, group=1, classes=classes) == criterion.sensitivity(rows)


def test_criteria_that_every_row_moves_by_one_declare_nothing_better():
    for name in ("norm", "max"):
        assert CRITERIA[name].for_group(100, 4, 2) == ()
    assert CRITERIA["gini"].for_group(None, 4, 2) == ()


def test_a_group_under_a_public_row_count_may_be_more_than_that():
    (exact,) = CRITERIA["information-gain"].for_group(8, 3, 2, exact=True)
    (bounded,) = CRITERIA["information-gain"].for_group(11, 3, 2)
    assert exact.add_or_remove_one == bounded.add_or_remove_one
    assert exact.replace_one == CRITERIA["information-gain"].for_group(8, 3, 2)[0].replace_one


def test_the_fall_of_a_group_is_the_largest_of_all_numbers_of_rows_of_other_classes():
    """For each number m of them up to the group, as `Criterion.sensitivity` derives it: exactly the largest."""
    sizes = (*range(2, 14), 50, 99, 1000), (1, 2, 3, 5, 8, 40), (1, 2, 3, 4, 7, 8, 20, 60)
    for rows, group, classes in itertools.product(*sizes):
        others = max(classes - 1, 1)
        falls = [
            m - (m**2 + max(Fraction(m), Fraction(m**2, others))) / rows for m in map(Fraction, range(1, group + 1))
        ]
        assert gini_fall(rows, group, classes) == max(falls), (rows, group, classes)
    for rows in (None, 0, 1):
        assert gini_fall(rows, 3, 4) == 3


@pytest.mark.parametrize("exact", [False, True])
def test_what_gini_declares_is_its_rise_and_its_fall(exact):
    """With a public number of rows, a neighbour under add-or-remove-one has as many more as a group adds."""
    for rows, group, classes in itertools.product((9, 100), (2, 5), (2, 3)):
        declared = CRITERIA["gini"].sensitivity(rows, exact=exact, group=group, classes=classes)
        assert (declared.norm, declared.add_or_remove_one, declared.rise) == (Norm.LINF, group, group)
        assert declared.fall == gini_fall(rows + (group if exact else 0), group, classes)
        assert declared.replace_one == group + gini_fall(rows, group, classes)
        one = CRITERIA["gini"].sensitivity(rows, exact=exact)
        assert (one.add_or_remove_one, one.rise, one.fall, one.replace_one) == (1, 1, 1, 2 - Fraction(2, rows))
        assert CRITERIA["gini"].for_group(rows, group, classes, exact=exact) == (declared,)
    unbounded = CRITERIA["gini"].sensitivity(None, exact=exact)
    assert (unbounded.add_or_remove_one, unbounded.rise, unbounded.fall, unbounded.replace_one) == (1, 1, 1, 2)


@pytest.mark.parametrize("exact", [False, True])
def test_what_the_other_criteria_declare(exact):
    for rows, group, classes in itertools.product((9, 100), (1, 4), (2, 3)):
        gain = CRITERIA["information-gain"].sensitivity(rows, exact=exact, group=group, classes=classes)
        lost = [rational_above(entropy_change(n, group, classes)) for n in (rows + (group if exact else 0), rows)]
        assert [gain.add_or_remove_one, gain.replace_one] == lost
        assert (gain.norm, gain.rise, gain.fall) == (Norm.LINF, 0, lost[0])
        for name in ("norm", "max"):
            other = CRITERIA[name].sensitivity(rows, exact=exact, group=group, classes=classes)
            assert (other.norm, other.add_or_remove_one, other.replace_one) == (Norm.LINF, group, group)
            assert (other.rise, other.fall) == (group, 0)
            assert CRITERIA[name].for_group(rows, group, classes, exact=exact) == ()
    assert PUBLISHED_GINI.for_group(9, 4, 2) == ()


def test_a_table_without_a_bound_is_rounded_as_the_largest_that_kernels_count():
    for criterion in CRITERIA.values():
        found, expected = criterion.rounding(3, None, 2), criterion.rounding(3, 2**31 - 1, 2)
        assert found == expected


def test_a_bound_on_the_rows_is_one_unless_it_is_said_to_be_their_number():
    for name in ("gini", "information-gain"):
        plain, bounded = CRITERIA[name].sensitivity(9), CRITERIA[name].sensitivity(9, exact=False, group=1, classes=2)
        assert plain == bounded
        assert CRITERIA[name].for_group(9, 3, 2) == CRITERIA[name].for_group(9, 3, 2, exact=False)
        of_two_classes = CRITERIA[name].sensitivity(9, exact=False, group=3, classes=2)
        assert CRITERIA[name].sensitivity(9, group=3) == of_two_classes
    assert CRITERIA["information-gain"].sensitivity(9) != CRITERIA["information-gain"].sensitivity(9, exact=True)


def test_what_is_public_of_the_rows_is_what_the_schema_says():
    for asked, known in (({}, KnownRows(None)), ({"max_rows": 9}, KnownRows(9)), ({"rows": 7}, KnownRows(7, True))):
        assert KnownRows.of(Schema([Boolean("a")], **asked)) == known
    assert KnownRows() == KnownRows(None, exact=False)

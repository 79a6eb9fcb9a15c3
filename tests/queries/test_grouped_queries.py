"""Counts, sums and moments of groups, and queries of some rows: declared sensitivities on small tables."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest

import dpframework as dpf
from dpframework.facts.privacy_losses import Relation
from dpframework.queries import BoundDistances, BoundedSum, Norm, QuantileScores
from dpframework.queries.group_queries import GroupCounts, GroupMoments, GroupSums

GAPS = dpf.Numeric("cost", 0, 4, bins=4, missing=True)
FULL = dpf.Numeric("cost", 0, 4, bins=4)
DEBT = dpf.Numeric("cost", -3, 1.5, cuts=[-1, 0.3])
FAR = dpf.Numeric("cost", 2, 5, bins=2)
WIDE, HALVES = dpf.Numeric("cost", 0, 4, bins=1), dpf.Numeric("cost", 0, 4, cuts=[1])
TOWN = dpf.Categorical("town", ["A", "B"])
ILL = dpf.Boolean("ill", missing=True)
SICK = dpf.Equals("ill", "true")
HERE = dpf.Equals("town", "A")

QUERIES: dict[str, tuple[dpf.Attribute, dpf.Query]] = {
    "counts": (FULL, GroupCounts([TOWN])),
    "counts of some rows": (FULL, GroupCounts([TOWN], where=SICK)),
    "counts with and without": (FULL, GroupCounts([TOWN], of=SICK)),
    "counts of all, with and without": (FULL, GroupCounts(where=dpf.Equals("town", "A"), of=SICK)),
    "counts of some rows in one group": (FULL, GroupCounts(where=SICK)),
    "counts of one group of several": (FULL, GroupCounts([TOWN], where=HERE)),
    "counts of one group with and without": (FULL, GroupCounts([TOWN], where=HERE, of=SICK)),
    "counts in some of the groups": (FULL, GroupCounts([TOWN, ILL], where=HERE)),
    "counts in what another test leaves": (FULL, GroupCounts([TOWN], where=dpf.And([dpf.Not(HERE), SICK]))),
    "counts in bins of their own": (WIDE, GroupCounts([HALVES], where=dpf.Equals("cost", WIDE.labels[0]))),
    "sums in one group of several": (DEBT, GroupSums(DEBT, by=[TOWN], where=HERE)),
    "sums in some of the groups": (DEBT, GroupSums(DEBT, by=[TOWN, ILL], where=HERE)),
    "sums of what is not elsewhere": (
        DEBT,
        GroupSums(DEBT, by=[TOWN, ILL], where=dpf.Not(dpf.Or([HERE, dpf.Not(SICK)]))),
    ),
    "sums of one town and more": (DEBT, GroupSums(DEBT, by=[TOWN], where=dpf.Or([HERE, SICK]))),
    "sums of what is not both": (DEBT, GroupSums(DEBT, by=[TOWN], where=dpf.Not(dpf.And([HERE, SICK])))),
    "sums of two of three": (DEBT, GroupSums(DEBT, by=[ILL], where=dpf.Not(dpf.Equals("ill", "missing")))),
    "sums": (FULL, GroupSums(FULL, by=[TOWN])),
    "sums with missing": (GAPS, GroupSums(GAPS, by=[TOWN])),
    "sums of both signs": (DEBT, GroupSums(DEBT, by=[TOWN])),
    "sums of both signs of some rows": (DEBT, GroupSums(DEBT, by=[TOWN], where=SICK)),
    "sums far from 0": (FAR, GroupSums(FAR, by=[TOWN, ILL])),
    "sums in one group": (FAR, GroupSums(FAR)),
    "sums of some rows in one group": (FAR, GroupSums(FAR, where=SICK)),
    "pairs": (FULL, GroupMoments(FULL, by=[TOWN])),
    "pairs of some rows": (GAPS, GroupMoments(GAPS, by=[TOWN, ILL], where=SICK)),
    "triples": (FULL, GroupMoments(FULL, degree=2)),
    "triples in groups": (GAPS, GroupMoments(GAPS, -0.0, 3, by=[TOWN], degree=2)),
    "sum of some rows": (FAR, BoundedSum(FAR, where=SICK)),
    "distances of some rows": (FAR, BoundDistances(FAR, where=SICK)),
    "median of some rows": (FULL, QuantileScores(FULL, where=SICK)),
}


def kinds_of(cost: dpf.Attribute) -> list[tuple[float, int, int]]:
    """Both bounds, one value between, perhaps a missing one; in both towns; ill, not ill and unknown."""
    assert isinstance(cost, dpf.Numeric)
    values = [cost.lower, (cost.lower + cost.upper) / 2, cost.upper, *([np.nan] if cost.missing else [])]
    return list(itertools.product(values, range(2), range(3)))


def answered(query: dpf.Query, cost: dpf.Attribute, rows: list[tuple[float, int, int]]) -> np.ndarray:
    assert isinstance(cost, dpf.Numeric)
    values = np.array([row[0] for row in rows], dtype=float)
    codes = np.searchsorted(cost.interior_cuts, values, "right")
    codes[np.isnan(values)] = cost.missing_code or 0
    table = dpf.Table.from_codes(
        dpf.Schema([cost, TOWN, ILL]),
        np.array([codes, [row[1] for row in rows], [row[2] for row in rows]], dtype=int),
        {"cost": values},
    )
    engine = dpf.InMemory()
    return np.asarray(query.evaluate(engine, engine.load(table)), dtype=float).ravel()


@functools.cache
def answers(name: str) -> list[tuple[np.ndarray, list[np.ndarray]]]:
    """The answer of each shared table, and of it with each kind of row."""
    cost, query = QUERIES[name]
    kinds = kinds_of(cost)
    shared: list[list[tuple[float, int, int]]] = [[]]
    if isinstance(query, QuantileScores):
        shared = [[kinds[1]] * few + [kinds[-2]] * many for few in range(3) for many in range(3)]
    return [(answered(query, cost, rows), [answered(query, cost, [*rows, kind]) for kind in kinds]) for rows in shared]


def changes(name: str, relation: Relation) -> list[np.ndarray]:
    if relation is Relation.ADD_OR_REMOVE_ONE:
        return [after - before for before, of_one_more in answers(name) for after in of_one_more]
    return [one - other for _, of_one_more in answers(name) for one, other in itertools.permutations(of_one_more, 2)]


def size(change: np.ndarray, norm: Norm) -> float:
    lengths = np.abs(change)
    return float({Norm.L1: lengths.sum(), Norm.SQUARED_L2: (lengths**2).sum(), Norm.LINF: lengths.max()}[norm])


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("name", QUERIES)
def test_declared_sensitivities_are_the_largest_changes(name: str, relation: Relation) -> None:
    """Change, rise and fall: no pair of small tables exceeds them, and some pair attains each.

    All but the scores add up over rows, so that what other rows there are does not matter. Ranks of three rows attain
    theirs.
    """
    _, query = QUERIES[name]
    found = changes(name, relation)
    for declared in query.sensitivities:
        bounds = {"change": (found, declared.change.under(relation))}
        if relation is Relation.ADD_OR_REMOVE_ONE:
            bounds["rise"] = [one.clip(0) for one in found], declared.rise
            bounds["fall"] = [one.clip(None, 0) for one in found], declared.fall
        for what, (parts, bound) in bounds.items():
            assert bound is not None
            assert max(size(part, declared.norm) for part in parts) == pytest.approx(float(bound), abs=1e-8), (
                f"{what} in {declared.norm}"
            )


def test_numbers_of_groups_are_exact_and_follow_from_the_rows() -> None:
    rows = [(1.0, 0, 1), (3.0, 0, 1), (4.0, 1, 1), (2.0, 1, 0), (np.nan, 0, 1), (4.0, 0, 2)]
    assert answered(GroupCounts([TOWN]), GAPS, rows).tolist() == [4, 2]
    assert answered(GroupCounts([TOWN], where=SICK), GAPS, rows).tolist() == [3, 1]
    assert answered(GroupCounts([TOWN], of=SICK), GAPS, rows).tolist() == [3, 0, 1, 1]  # one row does not say
    assert answered(GroupSums(GAPS, by=[TOWN, ILL]), GAPS, rows).tolist() == [0, 4, 4, 2, 4, 0]
    low, high = answered(GroupMoments(GAPS, by=[TOWN], where=SICK), GAPS, rows)[:2]
    assert (low, high) == (1, 1)  # 1/4 + 3/4 of the range, and as much from above
    first, middle, last = answered(GroupMoments(GAPS, degree=2), GAPS, rows)
    assert first + middle + last == 5
    assert last == pytest.approx((1 + 9 + 16 + 4 + 16) / 16)
    assert middle / 2 + last == pytest.approx((1 + 3 + 4 + 2 + 4) / 4)


@pytest.mark.parametrize("degree", [0, 3, -1, 1.5])
def test_moments_are_of_the_first_or_of_the_second_degree(degree: int) -> None:
    with pytest.raises(dpf.InputError, match="give 1 for means or 2 for variances"):
        GroupMoments(FULL, degree=degree)


def test_no_number_of_a_row_is_negative_however_it_is_rounded() -> None:
    near = [2.0**-k for k in range(45)]
    cost = dpf.Numeric("cost", 0, 1, bins=2)
    query = GroupMoments(cost, degree=2)
    for value in (*near, *(1 - one for one in near)):
        found = answered(query, cost, [(value, 0, 0)])
        assert found.min() >= 0
        assert found.sum() == 1


def test_a_replaced_row_that_may_leave_its_part_is_charged_in_both() -> None:
    (apart,) = QuantileScores(FULL, quantile="0.9", apart=True).sensitivities
    (whole,) = QuantileScores(FULL, quantile="0.9").sensitivities
    assert (float(apart.replace_one or 0), float(whole.replace_one or 0)) == (1.8, 1)
    assert apart.add_or_remove_one == whole.add_or_remove_one
    schema = dpf.Schema([FULL, TOWN], rows=9)
    for quantile in ("0.5", "0.9", "0.02"):
        study = dpf.Study(schema, epsilon=1, relation="replace-one")
        study.add("q", dpf.miner("quantile", attribute="cost", quantile=quantile, by="town", epsilon=1))
        assert study.plan().total() == dpf.PrivacyLoss(1)
        assert study.plan().refusals() == []

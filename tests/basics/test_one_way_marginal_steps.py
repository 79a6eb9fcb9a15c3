"""One-way marginals in zCDP: noise as planned, one sum, and no count less exact than with noise on each by itself."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
import pytest

import dpframework as dpf
from dpframework.basics.one_way_marginal_steps import NoisyHistogram, OneWayMarginals, ResidualHistograms
from dpframework.facts.privacy_losses import Relation
from dpframework.mechanisms import Gaussian
from dpframework.mechanisms.randomness import SeededRandomness
from dpframework.queries import Marginals
from dpframework.queries.marginal_residuals import Residuals

RHO = Fraction(1, 2)
SETTINGS = list(itertools.product(Relation, (None, 900), (1, 3)))


def attributes(*sizes: int) -> list[dpf.Categorical]:
    return [dpf.Categorical(f"a{k}", [str(v) for v in range(size)]) for k, size in enumerate(sizes)]


def study_of(
    among: list[dpf.Categorical],
    relation: Relation = Relation.ADD_OR_REMOVE_ONE,
    rows: int | None = None,
    unit: int = 1,
) -> dpf.Study:
    """A study with another step, of the unit and the relation that noise is for."""
    schema = dpf.Schema(among, rows=rows)
    study = dpf.Study(
        schema, epsilon=9, delta="1e-6", relation=relation, rows_per_unit=unit, allow=["rows-per-unit-asserted"]
    )
    study.add("n", dpf.miner("histogram", attribute="a0", epsilon=1))
    return study


class ReleasedOnce:
    """A table whose one release is given, with the noise of a calibration."""

    def __init__(self, released: Any, calibration: Any) -> None:
        self.released, self.noise = released, calibration

    def release_many(self, asked: Any) -> list[Any]:
        assert [name for _, name, _ in asked] == ["histograms"]
        return [self.released]

    def calibration(self, name: str) -> Any:
        assert name == "histograms"
        return self.noise


@pytest.mark.parametrize(("relation", "rows", "unit"), SETTINGS)
def test_measured_variances_are_those_planned_and_those_released(
    relation: Relation, rows: int | None, unit: int
) -> None:
    """Of each count, of what is beside the mean, and of the sum: within 2 % each.

    Of 200,000 draws a mean square has a relative deviation of .0032 at most, so 2 % are more than six of them: one of
    the 72 comparisons fails falsely with a probability below 1e-7.
    """
    among = attributes(2, 3, 6)
    alone = OneWayMarginals(among, zcdp=True, rows=rows)
    plan = study_of(among, relation, rows, unit).plan()
    (node,) = alone.plan(RHO).values()
    calibration = plan.calibration(node)
    assert calibration is not None
    draws, length = 200_000, node.query.facts().answer_length or 0
    long = attrs.evolve(calibration, facts=attrs.evolve(calibration.facts, answer_length=draws * length))
    noise = node.mechanism.release(np.zeros((draws, length), dtype=np.int64), long, SeededRandomness(3))
    basis = [alone.release(ReleasedOnce(one, calibration)) for one in np.eye(length, dtype=np.int64)]  # type: ignore[arg-type]
    base = alone.release(ReleasedOnce(np.zeros(length, dtype=np.int64), calibration))  # type: ignore[arg-type]
    assert alone.variances(RHO, plan) == [one.variance for one in base]
    for k, stated in enumerate(base):
        linear = np.array([own[k].counts - stated.counts for own in basis])
        off = noise @ linear
        assert math.isclose(float(np.square(off).mean()), stated.variance, rel_tol=0.02)
        inner = off - off.mean(axis=1, keepdims=True)
        expected = stated.residual_variance * (1 - 1 / len(stated.counts))
        assert math.isclose(float(np.square(inner).mean()), expected, rel_tol=0.02)
        total = float(np.square(off.sum(axis=1)).mean())
        if rows is None:
            assert math.isclose(total, stated.sum_variance, rel_tol=0.02)
        else:
            assert stated.sum_variance == 0
            assert total < 1e-12 * stated.variance


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("rows", [None, 900])
def test_no_count_is_less_exact_than_with_noise_on_each_by_itself(relation: Relation, rows: int | None) -> None:
    """But for the rounding of weights: of n values they are whole numbers of about 2**20 / n. By how much is exact."""
    draw = np.random.default_rng(5)
    sizes = [(2,), (2, 2), (3,) * 12, (2, *[400] * 6), (2, 40, 3, 7), *(draw.integers(2, 60, k) for k in (3, 8, 20))]
    for own in sizes:
        among = attributes(*map(int, own))
        alone, plan = OneWayMarginals(among, zcdp=True, rows=rows), study_of(among, relation, rows).plan()
        counts = plan.calibration(dpf.plan.step("counts", Marginals(among), Gaussian(RHO)))
        found = alone.variances(RHO, plan)
        assert counts is not None
        assert found is not None
        assert max(found) <= counts.variance * (1 + 4 * max(own) / 2**20)
        squares = math.sqrt(sum(1 / n**2 for n in own)) if rows is None else 0.0
        added = squares + sum(1 - 1 / n for n in own)
        each = (added if relation is Relation.ADD_OR_REMOVE_ONE else 2 * len(own)) / (2 * float(RHO))
        total = each / squares if squares else 0.0
        exact = [(1 - 1 / n) * each + total / n**2 for n in own]
        assert found == pytest.approx(exact, rel=4 * max(own) / 2**20)


@pytest.mark.parametrize("rows", [None, 900])
def test_all_histograms_have_one_sum_which_is_a_public_number_of_rows(rows: int | None) -> None:
    among = attributes(2, 3, 6)
    schema = dpf.Schema(among, rows=rows)
    study = dpf.Study(schema, epsilon=9, delta="1e-6")
    study.add("rows", dpf.miner("synthetic-table", rho="0.05", method="independent"))
    draw = np.random.default_rng(6)
    codes = [draw.integers(0, a.size, 900) for a in among]
    measured = study.run(dpf.Table.from_codes(schema, np.array(codes)), seed=2)["rows"].measured
    sums = [float(one.counts.sum()) for one in measured]
    assert sums == pytest.approx([sums[0]] * 3, abs=1e-6)
    assert sums[0] == pytest.approx(900, abs=1e-6 if rows else 60)
    assert (abs(sums[0] - 900) > 1e-6) == (rows is None)
    for own, one in zip(codes, measured, strict=True):  # more than six standard deviations in one of 1e9
        assert np.abs(one.counts - np.bincount(own)).max() < 6.5 * math.sqrt(one.variance)


def test_residuals_are_of_two_histograms_or_more_or_of_a_public_number_of_rows() -> None:
    def query(among: list[Any], rows: int | None = None, *, zcdp: bool = True) -> Any:
        return next(iter(OneWayMarginals(among, zcdp, rows).plan(RHO).values())).query

    one, two = attributes(4), attributes(4, 3)
    assert query(one) == Marginals(one)
    assert query(two, zcdp=False) == Marginals(two)
    assert (query(one, 9).sets, query(two).sets, query(two, 9).sets) == (((0,),), ((), (0,), (1,)), ((0,), (1,)))
    large, larger = (dpf.Numeric("x", 0, 1, bins=size) for size in (10_485, 10_486))
    assert isinstance(query([large, *one]), Residuals)
    assert query([larger, *one]) == Marginals([larger, *one])


def test_residuals_have_noise_of_one_size_whatever_the_number_of_values() -> None:
    query = ResidualHistograms.of(attributes(2, 3, 50), None).query
    total, *others = query.cell_variances([1.0] * 4)
    found = [own / (1 - 1 / size) for own, size in zip(others, (2, 3, 50), strict=True)]
    assert found == pytest.approx([found[0]] * 3, rel=1e-4)
    assert total == pytest.approx(found[0] / math.sqrt(1 / 4 + 1 / 9 + 1 / 2500), rel=1e-4)


def test_means_of_histograms_weight_sums_apart_from_the_rest() -> None:
    """With noise of 4 on each of two counts and 2 on their sum, which of 8 are independent, 7 are in differences."""
    one = NoisyHistogram(np.array([10.0, 30.0]), 4.0, 2.0)
    assert one.residual_variance == 7.0
    other = NoisyHistogram(np.array([20.0, 28.0]), 7.0)
    assert (other.sum_variance, other.residual_variance) == (14.0, 7.0)
    both = one.with_another(other)
    assert both.counts.sum() == pytest.approx(7 / 8 * 40 + 1 / 8 * 48)
    assert both.counts[1] - both.counts[0] == pytest.approx((20 + 8) / 2)
    assert both.sum_variance == pytest.approx(2 * 14 / 16)
    assert both.residual_variance == pytest.approx(3.5)
    assert both.variance == pytest.approx(3.5 / 2 + 1.75 / 4)
    public = NoisyHistogram(np.array([10.0, 30.0]), 3.5, 0.0).with_another(other)
    assert (public.counts.sum(), public.sum_variance) == (pytest.approx(40), 0)
    assert NoisyHistogram(np.array([3.0]), 2.0).residual_variance == 2.0


def test_the_plan_states_the_error_of_the_least_exact_count_in_rows() -> None:
    schema = dpf.Schema(attributes(2, 3, 6), about_rows=900)
    study = dpf.Study(schema, epsilon=9, delta="1e-6")
    study.add("rows", dpf.miner("synthetic-table", rho="0.001"))
    bound, *others = study.plan().error_bounds()["rows"]
    alone = OneWayMarginals(tuple(schema), zcdp=True)
    paths = [path for path, _ in study.plan().placed_steps() if path.endswith("/histograms")]
    assert [f"rows/{path}" for path in bound.steps] == paths
    variances = [
        alone.variances(step.mechanism.rho, study.plan())  # type: ignore[attr-defined]
        for path, step in study.plan().placed_steps()
        if path in paths
    ]
    worst = variances[0] or []  # later releases, with more noise, only make the mean of all more exact
    assert len(variances) > 1
    assert bound.what == "histograms of a0, a1, a2"
    assert bound.amount == dpf.results.Noisy.margin_of(max(worst))
    assert bound.note.startswith(f"the worst, a{int(np.argmax(worst))}; ±")
    assert not any("residuals" in one.what for one in others)
    pure = dpf.Study(schema, epsilon=9)
    pure.add("rows", dpf.miner("synthetic-table", epsilon=1))
    bound, *others = pure.plan().error_bounds()["rows"]
    assert bound.what == "histograms of a0, a1, a2"
    plan = pure.plan()
    alike = [plan.previews()[f"rows/{path}"].within for path in bound.steps]
    assert bound.amount == alike[0] <= max(alike)
    assert bound.likely == pytest.approx(900 * 3 / (2 + 3 + 6))  # each of the three histograms counts all rows


def test_the_number_of_rows_is_one_sum_of_residuals_and_the_mean_of_independent_sums() -> None:
    among = attributes(2, 3)
    shared = [NoisyHistogram(np.array([4.0, 6.0]), 3.0, 2.0), NoisyHistogram(np.array([4.0, 5.0, 1.0]), 3.0, 2.0)]
    found = OneWayMarginals(among, zcdp=True).total(shared)
    assert (found.value, found.variance) == (10, 2)
    own = [NoisyHistogram(np.array([4.0, 6.0]), 3.0), NoisyHistogram(np.array([4.0, 9.0, 3.0]), 1.0)]
    found = OneWayMarginals(among, zcdp=False).total(own)
    assert (found.value, found.variance) == (pytest.approx((10 / 6 + 16 / 3) / (1 / 6 + 1 / 3)), pytest.approx(2))

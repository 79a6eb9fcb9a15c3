"""Keys above a threshold with Gaussian noise: which counts they fit, and their exact delta."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

import dpframework as dpf
from dpframework.mechanisms import GaussianThreshold, PartitionSelection
from dpframework.mechanisms.gaussian_threshold import threshold_of
from dpframework.queries import Norm, QueryFacts, Sensitivity

NAMES = [f"question {k}" for k in range(4)]


def of_answers(number: int, *norms: Norm) -> QueryFacts:
    """The facts of counts of which a row may raise all, with sensitivities in some norms only."""
    declared = [Sensitivity(norm, 1 if norm is Norm.LINF else number, fall=0, source="test") for norm in norms]
    return QueryFacts("answers", "answers", (), True, number, declared)


def chance_of_new_keys(number: int, variance: float, least: int) -> float:
    """The probability that one of so many counts of 1 is shown, by adding up the noise."""
    weights = {k: math.exp(-(k**2) / (2 * variance)) for k in range(-400, 401)}
    shown = math.fsum(weight for k, weight in weights.items() if 1 + k >= least) / math.fsum(weights.values())
    return -math.expm1(number * math.log1p(-shown))


@pytest.mark.parametrize("relation", dpf.Relation)
@pytest.mark.parametrize("norms", [(Norm.LINF, Norm.L1), (Norm.LINF, Norm.L1, Norm.SQUARED_L2)])
@pytest.mark.parametrize(
    ("number", "rho", "delta"), [(1, "0.1", "1e-3"), (2, "0.1", "1e-3"), (3, "1", "1e-6"), (4, "0.01", "1e-6")]
)
def test_the_delta_is_that_of_the_threshold_that_is_used(
    number: int, rho: str, delta: str, norms: tuple[Norm, ...], relation: dpf.Relation
) -> None:
    """Whichever norms a query declares: the number of counts that a row changes is one number for noise and delta."""
    calibration = GaussianThreshold(rho, delta).calibrate(of_answers(number, *norms), relation)
    assert calibration is not None
    claimed = calibration.losses.delta.under(relation)
    assert claimed is not None
    lost = chance_of_new_keys(number, float(calibration.scale), threshold_of(calibration))
    assert lost <= float(claimed) <= lost * (1 + 1e-6)
    assert claimed <= calibration.mechanism.delta
    assert calibration.losses.zcdp.add_or_remove_one == number / (2 * calibration.scale)


@pytest.mark.parametrize(("number", "rho", "delta"), [(1, "0.1", "1e-3"), (3, "1", "1e-6"), (4, "0.01", "1e-9")])
def test_a_preview_names_the_first_count_that_is_shown_with_its_probability(number: int, rho: str, delta: str) -> None:
    """Counts are halved until it is found, so that noise of 100,000 rows takes no longer."""
    mechanism = GaussianThreshold(rho, delta)
    calibration = mechanism.calibrate(of_answers(number, Norm.LINF, Norm.L1), dpf.Relation.ADD_OR_REMOVE_ONE)
    assert calibration is not None
    visible, least = mechanism.cell_visibility(calibration), threshold_of(calibration)

    def shown(count: int) -> float:
        return chance_of_new_keys(1, float(calibration.scale), least - count + 1)

    assert shown(visible.always - 1) < 0.999 <= shown(visible.always)
    assert shown(visible.hidden) < 0.975 <= shown(visible.hidden + 1)


@pytest.mark.parametrize("mechanism", [GaussianThreshold("0.1", "1e-6"), PartitionSelection(1, "1e-6")])
def test_counts_that_a_replaced_row_moves_by_2_do_not_fit(mechanism: dpf.Mechanism) -> None:
    """From 0 to 2, where a row that leaves raises a number and a row that comes does so, too.

    A delta for a count of 1 does not cover this: the number is shown more often.
    """
    difference = dpf.queries.Residuals([dpf.Boolean("ill")], [(0,)], [1], "l1")
    assert difference.facts().sensitivity(Norm.LINF).change.replace_one == 2  # type: ignore[union-attr]
    assert "not known to change by at most 1" in str(mechanism.misfit(difference.facts()))
    rising = of_answers(2, Norm.LINF, Norm.L1)
    assert mechanism.misfit(rising) is None
    either_way = QueryFacts("n", "n", (), True, 1, [Sensitivity("l1", 1, source="test")])
    assert "not known to change by at most 1" in str(mechanism.misfit(either_way))
    replaced_only = QueryFacts("n", "n", (), True, 1, [Sensitivity("l1", None, 1, source="test")])
    fits = isinstance(mechanism, PartitionSelection)  # the other one needs the number of keys of an added unit
    assert (mechanism.misfit(replaced_only) is None) == fits


def test_noise_that_is_wider_than_100000_rows_is_refused() -> None:
    """At one count that changes, the standard deviation is the root of 1 / (2 rho)."""
    one = of_answers(1, Norm.LINF, Norm.L1)
    widest = GaussianThreshold("5.1e-11", "1e-6").calibrate(one, dpf.Relation.ADD_OR_REMOVE_ONE)
    assert widest is not None
    assert threshold_of(widest) > 400_000
    with pytest.raises(dpf.InputError, match="wider than 100,000 rows; raise rho"):
        GaussianThreshold("4.9e-11", "1e-6").calibrate(one, dpf.Relation.ADD_OR_REMOVE_ONE)


def test_a_delta_below_those_for_which_the_threshold_is_computed_is_refused() -> None:
    one = of_answers(1, Norm.LINF, Norm.L1)
    least = GaussianThreshold(1, "1e-30").calibrate(one, dpf.Relation.ADD_OR_REMOVE_ONE)
    assert least is not None
    assert 0 < least.losses.delta.add_or_remove_one <= Fraction("1e-30")  # type: ignore[operator]
    with pytest.raises(dpf.InputError, match=r"^delta is 7e-31; keys need a delta of 1e-30 or more$"):
        GaussianThreshold(1, "7e-31").calibrate(one, dpf.Relation.ADD_OR_REMOVE_ONE)

"""The errors that results state: against what is measured, against exact distributions, and in words."""

from __future__ import annotations

import itertools
import math
from typing import Any

import attrs
import numpy as np
import pytest
from asked_errors import CASES, Case, measure
from scipy import stats

import dpframework as dpf
from dpframework.basics.count_miner import count_estimate, whole_estimate
from dpframework.basics.mean_and_variance_miners import _error_within, _variance
from dpframework.basics.share_errors import _chance_above, share_error
from dpframework.mechanisms.noise_laws import LaplaceLaw, NormalLaw
from dpframework.results.error_bounds import BoundKind, ErrorBound, TableSize
from dpframework.results.noisy_count_with_interval import Noisy

FALSE_FAILURE = 1e-6 / (2 * len(CASES))  # of each of the two tests of a case: 1e-6 in total
AGE = dpf.Schema([dpf.Numeric("age", 0, 100, bins=4)])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_no_more_than_5_percent_of_errors_are_larger_than_asked_for(case: Case) -> None:
    """And of a table on which the bound is tight, no fewer than 2 %.

    All cases together fail with a probability of at most 1e-6 if the bounds are exact. Errors are independent with a
    chance of 5 % at most, or (a quantile, whose other points miss by 9/10 of the bound) of none. The runs are seeded.
    """
    found = measure(case, 300, 150)
    assert stats.binomtest(found.beyond, len(found.errors), 0.05, alternative="greater").pvalue > FALSE_FAILURE
    if not case.easy:
        near = int((found.errors >= 0.8 * found.asked).sum())
        assert stats.binomtest(near, len(found.errors), 0.05, alternative="less").pvalue > FALSE_FAILURE


@pytest.mark.parametrize(("rows", "scale"), [(300, 1), (300, 10), (300, 40), (30_000, 10)])
@pytest.mark.parametrize("law", [LaplaceLaw, NormalLaw])
def test_the_error_of_a_share_is_that_of_the_worst_table(rows: int, scale: float, law: type) -> None:
    """Of 40,000 draws for each of ten means 5 % exceed the bound in the worst; the share is known to 0.11 %."""
    error, rng = share_error(rows, law(scale)), np.random.default_rng(rows)
    draw = rng.laplace if law is LaplaceLaw else rng.normal
    beyond = []
    for share in (0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1):
        first = np.maximum(rows * share + draw(0, scale, 40_000), 0)
        second = np.maximum(rows * (1 - share) + draw(0, scale, 40_000), 0)
        empty = first + second == 0
        found = np.where(empty, 0.5, first / np.where(empty, 1, first + second))
        beyond.append((np.abs(found - share) > error).mean())
    assert max(beyond) < 0.05 + 7 * 0.0011
    assert error >= 0.999 or max(beyond) > 0.05 - 0.01


def test_the_error_of_a_mean_grows_as_rows_become_fewer_and_never_beyond_its_range() -> None:
    errors = [share_error(rows, LaplaceLaw(3)) for rows in (1, 10, 100, 1000, 10_000)]
    assert all(more >= fewer for more, fewer in itertools.pairwise(errors))
    assert errors[0] <= 1
    assert errors[-1] == pytest.approx(3 * math.log(20) / 10_000, rel=0.01)


def test_the_error_of_a_mean_divides_by_no_zero_on_its_way() -> None:
    """It begins at an error of 1/2, beyond which the share of equal sums would be 1: 1 / (1 - 1) is asked of nothing.

    A program that lets numpy raise would stop, and others would print a warning.
    """
    with np.errstate(divide="raise", invalid="raise"):
        assert 0 < share_error(17.5, LaplaceLaw(2)) < 1 / 2


def bounds(schema: dpf.Schema, miner: str, relation: str = "add-or-remove-one", **parameters: object) -> ErrorBound:
    study = dpf.Study(schema, epsilon=1, relation=relation)
    study.add("it", dpf.miner(miner, **{"epsilon": "0.1", **parameters}))
    (bound,) = study.plan().error_bounds()["it"]
    return bound


PATIENTS = dpf.Schema(
    [dpf.Numeric("age", 0, 100, bins=4), dpf.Boolean("ill", missing=True), dpf.Categorical("town", ["a", "b", "c"])],
    about_rows=7000,
)
ILL, IN_A = {"equals": ["ill", "true"]}, {"equals": ["town", "a"]}
LN_20 = math.log(20)  # scales of Laplace noise that 5 % of draws exceed, in absolute value
OF_TABLE = {"whole": 7000, "whole_text": "about 7,000 rows"}
ALL = OF_TABLE | {"likely": 7000, "likely_text": "the whole table", "kind": "number", "unit": "rows", "amount": 30}
CELLS = OF_TABLE | {"kind": "counts", "unit": "rows", "amount": 30}
THREE = CELLS | {"likely": 7000 / 3, "likely_text": "the average of the 3 counts"}
NINE = CELLS | {"likely": 7000 / 9, "likely_text": "the average of the 9 counts"}
SUM = {"kind": "number", "whole_text": "the largest sum of about 7,000 rows", "note": "as much as 30 rows can add"}
SUM |= {"likely_text": "the largest sum that the table can have"}
RANGE = {"kind": "number", "likely_text": "half of its range, so that the middle would be as good a guess"}
MEAN = RANGE | {"whole": 100, "whole_text": "the range from 0 to 100", "likely": 50}
VARIANCE = {"kind": "number", "whole": 2500, "whole_text": "the largest variance, 2,500", "likely": 1250}
VARIANCE |= {"likely_text": "half of the largest variance, so that the middle would be as good a guess"}
SHARE = RANGE | {"whole": 1, "whole_text": "the range from 0 to 1", "likely": 0.5}
MISS = OF_TABLE | {"kind": "number", "unit": "rows"}
MISS |= {"likely_text": "the largest number of rows by which a point can miss the quantile"}
WORST = {"note": "on the worst rows"}
BY_ROWS = "depends on the number of rows (±{} for 1,000, ±{} for 100,000)"
THIRD = 7000 / 3  # rows of an average group, of three towns
WORST_GROUP = {"note": "on the worst rows of an average group of 2,340 rows (more in smaller groups)"}
CLAMPED = ("values of 'age' beyond [0, 100] count as the nearer bound", "rows without 'age' count as 0")
TESTED = ("rows are left out if 'ill = true' tests a value that they lack",)
SHOWN = ("values are shown because of their noisy counts, so these are too large on average",)
CUT_OFF = "counts are not clipped at 0; clipping would make small counts too large on average"
BINNED = ("values of 'age' beyond its bounds count in the first or last bin", "rows without 'age' count as [0, 25)")
GRID = (*CLAMPED, "values of 'age' count as the nearest of 101 points, 1 apart")


@pytest.mark.parametrize(
    ("miner", "parameters", "stated"),
    [
        ("count", {}, ALL | {"what": "number of rows"}),
        ("count", {"where": ILL}, ALL | {"what": "number of rows with ill = true"}),
        ("count", {"by": "town"}, THREE | {"what": "number of rows by 'town'"}),
        ("count", {"by": "town", "where": ILL}, THREE | {"what": "number of rows with ill = true by 'town'"}),
        ("sum", {"attribute": "age"}, SUM | {"what": "sum of 'age'", "amount": 1000 * LN_20, "whole": 700_000,
         "likely": 700_000, "biases": CLAMPED}),
        ("sum", {"attribute": "age", "where": ILL, "bounds": [10, 20]},
         SUM | {"what": "sum of 'age' where ill = true", "amount": 200 * LN_20, "whole": 140_000, "likely": 140_000,
                "biases": tuple(b.replace("[0, 100]", "[10, 20]").replace("as 0", "as 10") for b in CLAMPED)}),
        ("mean", {"attribute": "age"}, MEAN | WORST | {"what": "mean of 'age'", "biases": CLAMPED,
         "amount": 100 * share_error(7000, LaplaceLaw(10))}),
        ("mean", {"attribute": "age", "by": "town"},
         MEAN | WORST_GROUP | {"what": "mean of 'age' by 'town'", "biases": CLAMPED,
         "amount": 100 * share_error(THIRD, LaplaceLaw(10))}),
        ("mean", {"attribute": "age", "by": "town", "where": ILL},
         MEAN | {"what": "mean of 'age' where ill = true by 'town'", "biases": CLAMPED,
                 "note": BY_ROWS.format("2.88", "0.0299").replace("of rows", "of rows of a group")}),
        ("sum", {"attribute": "age", "by": "town"}, SUM | {"what": "sum of 'age' by 'town'", "amount": 1000 * LN_20,
         "whole": 100 * THIRD, "whole_text": "the largest sum of an average group of 2,340 rows", "biases": CLAMPED,
         "likely": 100 * THIRD, "likely_text": "the largest sum that an average group can have"}),
        ("mean", {"attribute": "age", "where": ILL},
         MEAN | {"what": "mean of 'age' where ill = true", "biases": CLAMPED,
                 "note": BY_ROWS.format("2.88", "0.0299")}),
        ("variance", {"attribute": "age"}, VARIANCE | WORST | {"what": "variance of 'age'", "biases": CLAMPED,
         "amount": 10_000 * 2.5 / (7000 / (10 * math.log(60)) - 3)}),
        ("variance", {"attribute": "age", "by": "town"},
         VARIANCE | WORST_GROUP | {"what": "variance of 'age' by 'town'", "biases": CLAMPED,
         "amount": 10_000 * 2.5 / (THIRD / (10 * math.log(60)) - 3)}),
        ("ratio", {"of": ILL}, SHARE | WORST | {"what": "share with ill = true", "biases": TESTED,
         "amount": share_error(7000, LaplaceLaw(10))}),
        ("ratio", {"of": ILL, "by": "town"}, SHARE | WORST_GROUP | {"what": "share with ill = true by 'town'",
         "biases": TESTED, "amount": share_error(THIRD, LaplaceLaw(10))}),
        ("ratio", {"of": ILL, "where": IN_A}, SHARE | {"what": "share with ill = true where town = a", "biases": TESTED,
         "note": BY_ROWS.format("0.0288", "0.000299")}),
        ("top-k", {"attribute": "town"}, THREE | {"what": "counts of the values of 'town'", "biases": SHOWN}),
        ("top-k", {"attribute": "town", "by": "ill"},
         NINE | {"what": "counts of the values of 'town' by 'ill'", "biases": SHOWN}),
        ("histogram", {"attribute": "age"}, CELLS | {"what": "counts of 'age'", "biases": (*BINNED, CUT_OFF),
         "likely": 1750, "likely_text": "the average of the 4 counts"}),
        ("crosstab", {"attributes": ["ill", "town"]},
         NINE | {"what": "counts of 'ill' by 'town'", "biases": ("rows without 'town' count as a", CUT_OFF)}),
        ("median", {"attribute": "age"}, MISS | WORST | {"what": "median of 'age'", "likely": 3500, "biases": GRID}),
        ("quantile", {"attribute": "age", "quantile": "0.9", "by": "town"},
         MISS | WORST | {"what": "quantile 0.9 of 'age' by 'town'", "likely": 2100, "biases": GRID,
                         "likely_text": f"{MISS['likely_text']} in an average group", "whole": THIRD,
                         "whole_text": "an average group of 2,340 rows"}),
    ],
)  # fmt: skip
def test_everyday_miners_state_of_what_their_error_is_and_beside_what(
    miner: str, parameters: dict[str, Any], stated: dict[str, Any]
) -> None:
    """Of 7,000 rows or so, for an epsilon of 0.1. Amounts follow by formula; a selection's is bounded by one."""
    found = attrs.asdict(bounds(PATIENTS, miner, **parameters), recurse=False)
    assert found["size"] == TableSize(7000)
    assert len(found["steps"]) == 1
    expected = {"unit": "", "note": "", "biases": (), "amount": None, "level": found.get("level")} | stated
    if miner in ("median", "quantile"):
        del expected["amount"]
        best = float(stated["likely"]) / stated["whole"]
        assert 0.5 < found["amount"] / (2 * best * 10 * math.log(20 * 101)) <= 1  # s ln(20 m), or less
    for name, value in expected.items():
        if name in found:
            exact = not isinstance(value, float)
            assert found[name] == (value if exact else pytest.approx(value, rel=0.002)), name


def test_few_rows_and_a_public_number_of_them_bound_errors_too() -> None:
    few = bounds(attrs.evolve(PATIENTS, about_rows=40), "variance", attribute="age")
    assert few.amount == 2500
    known = bounds(attrs.evolve(PATIENTS, about_rows=None, rows=700), "mean", attribute="age")
    assert known.amount == pytest.approx(500 * LN_20 / 700, rel=0.002)  # a row moves the sum by 50
    assert known.note == ""


def test_a_plan_says_what_is_known_of_the_number_of_rows() -> None:
    sizes = [({}, TableSize()), ({"rows": 9}, TableSize(9, exact=True, most=9)), ({"max_rows": 9}, TableSize(most=9))]
    for known, size in [*sizes, ({"about_rows": 7, "max_rows": 9}, TableSize(7, most=9))]:
        study = dpf.Study(attrs.evolve(AGE, **known), epsilon=1)
        study.add("n", dpf.miner("count", epsilon=1))
        assert study.plan().size == size


def test_a_mean_needs_a_number_of_rows_and_any_source_of_it_will_do() -> None:
    unknown = bounds(AGE, "mean", attribute="age")
    assert unknown.amount is None
    assert unknown.text.startswith("depends on the number of rows (±2.88 for 1,000")
    known = bounds(attrs.evolve(AGE, about_rows=7000), "mean", attribute="age")
    study = dpf.Study(AGE, epsilon=1)
    study.add("it", dpf.miner("mean", attribute="age", epsilon="0.1"))
    (told,) = study.plan().with_rows(7000).error_bounds()["it"]
    assert told.amount == known.amount
    assert known.text == "within ±0.4237, on the worst rows, 0.42 % of the range from 0 to 100"
    with pytest.raises(dpf.InputError, match="the error of 'it' depends on the number of rows, which is not public"):
        study.epsilon_for("it", within=1)
    assert study.epsilon_for("it", within=1, rows=7000) < study.epsilon_for("it", within=1, rows=700)


def test_a_plan_that_was_read_states_the_same_errors_with_its_schema() -> None:
    study = dpf.Study(attrs.evolve(AGE, about_rows=7000), epsilon=1)
    study.add("mean", dpf.miner("mean", attribute="age", epsilon="0.1"))
    study.add("count", dpf.miner("count", where={"below": ["age", 25]}, epsilon="0.1"))
    plan = study.plan()
    read = dpf.StudyPlan.from_json(plan.to_json())
    assert read.error_bounds()["mean"][0].amount is not None  # that of its step, without the schema
    assert attrs.evolve(read, schema=study.schema).error_bounds() == plan.error_bounds()


def test_about_how_many_rows_there_are_changes_no_claim() -> None:
    hashes = set()
    for rows in (None, 300, 7000):
        study = dpf.Study(attrs.evolve(AGE, about_rows=rows), epsilon=1)
        study.add("ages", dpf.miner("histogram", attribute="age", epsilon="0.1"))
        hashes.add(study.plan().hash)
    assert len(hashes) == 1
    assert dpf.Schema.loads(attrs.evolve(AGE, about_rows=300).dumps()).about_rows == 300
    for wrong, text in (({"rows": 5, "about_rows": 5}, "give one of the two"),
                        ({"max_rows": 5, "about_rows": 6}, "exceeds max_rows"),
                        ({"about_rows": 0}, "about_rows")):  # fmt: skip
        with pytest.raises(dpf.InputError, match=text):
            attrs.evolve(AGE, **wrong)


def test_errors_by_group_size_stop_at_the_size_of_the_table() -> None:
    bound = ErrorBound("counts", 30, "rows", BoundKind.COUNTS, TableSize(500))
    assert bound.by_group == ((10, 3.0), (100, 0.3))
    assert bound.group_text == "that is 300 % of a count of 10, 30 % of a count of 100"
    assert ErrorBound("mean", 30, "").by_group == ()


def test_a_miner_states_the_errors_of_its_steps_unless_it_says_more() -> None:
    bound = bounds(attrs.evolve(AGE, about_rows=7000), "quantile", attribute="age")
    assert bound.unit == "rows"
    assert any("nearest of 101 points" in bias for bias in bound.biases)
    few = bounds(attrs.evolve(AGE, about_rows=40), "quantile", attribute="age")
    assert (few.amount, few.hides_number) == (20, True)  # no point misses the median by more than half of the rows


@pytest.mark.parametrize("scale", [0.01, 0.1, 0.16, 0.17, 0.2, 0.22, 0.3, 0.5, 1.0])
@pytest.mark.parametrize("law", [LaplaceLaw, NormalLaw])
def test_a_number_that_is_kept_within_bounds_is_off_by_no_more_than_the_worst_place_allows(
    law: type, scale: float
) -> None:
    """The least that no more than 5 % of errors exceed, of every place in [0, 3]: bounds keep a number from more."""
    noise, width = law(scale * 3), 3.0

    def beyond(e: float) -> float:
        places = np.linspace(0, width, 301)
        above, below = 1 - noise.at_most(np.array(e)), noise.at_most(np.array(-e))
        return float((np.where(places + e < width, above, 0) + np.where(places - e > 0, below, 0)).max())

    errors = np.linspace(0, width, 301)
    least = min(e for e in errors.tolist() if beyond(e) <= 0.05)
    assert _error_within(noise, width) * width == pytest.approx(least, abs=0.0101)


def test_the_interval_of_a_variance_holds_that_of_every_table_in_its_box() -> None:
    """And no box of few rows has less: the smallest variance is that of a corner."""
    rng = np.random.default_rng(3)
    for _ in range(60):
        sums, reach = rng.exponential(rng.choice([0.3, 2.0, 30.0]), 3), float(rng.exponential(0.7))
        middle, low, high = _variance(sums, reach)
        boxes = np.maximum(sums + rng.choice([-1.0, 1.0, 0.2, -0.6], (400, 3)) * reach, 0.0)
        some = boxes[boxes.sum(axis=1) > 0]
        t = (some[:, 1] / 2 + some[:, 2]) / some.sum(axis=1)
        variances = np.clip(some[:, 2] / some.sum(axis=1) - t**2, 0, 0.25)
        assert low - 1e-9 <= variances.min()
        assert variances.min() == pytest.approx(low, abs=1e-9)
        assert variances.max() <= high + 1e-9
        own = sums[2] / sums.sum() - ((sums[1] / 2 + sums[2]) / sums.sum()) ** 2
        assert middle == pytest.approx(min(max(own, low), high), abs=1e-12)
    assert _variance(np.array([0.0, 0.0, 0.4]), 0.0) == pytest.approx((0, 0, 0), abs=1e-9)
    assert _variance(np.zeros(3), 0.0) == (0.125, 0, 0.25)


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("variance", [0.0, 0.01, 0.9, 30.0, 4e6])
def test_an_interval_of_a_count_has_the_whole_numbers_in_reach_of_its_noise(variance: float, level: float) -> None:
    for value in (-7, 0, 1, 12_345):
        found = whole_estimate("rows", value, variance, level)
        reach = Noisy(value, variance).margin(level)
        assert (found.what, found.value) == ("rows", value)
        assert value - reach <= found.low < value - reach + 1
        assert value + reach - 1 < found.high <= value + reach
        assert float(found.low).is_integer()
        assert float(found.high).is_integer()
        plain = count_estimate("rows", value, variance, level)
        assert (plain.low, plain.high) == pytest.approx((value - reach, value + reach))


@pytest.mark.parametrize(("miner", "whole"), [("mean", 100.0), ("variance", 2500.0)])
def test_the_middle_of_what_can_be_is_what_noise_is_compared_with(miner: str, whole: float) -> None:
    (bound,) = error_bounds_of(miner)
    assert (bound.whole, bound.likely) == (whole, whole / 2)


def error_bounds_of(miner: str) -> list[ErrorBound]:
    """The bounds of a miner of one number between 0 and 100."""
    study = dpf.Study(AGE, epsilon=1)
    study.add("m", dpf.miner(miner, attribute="age", bounds=[0, 100], epsilon=1))
    return [bound for bounds in study.plan().error_bounds().values() for bound in bounds if bound.unit != "rows"]


class EvenLaw:
    """Noise that is one of five whole numbers, each as likely."""

    def at_most(self, noise: Any) -> Any:
        return np.mean([number <= np.asarray(noise) for number in range(-2, 3)], axis=0)


@pytest.mark.parametrize("rows", [0.7, 1.3, 4.1])
def test_the_chance_of_a_share_far_above_is_that_of_all_pairs_of_noise(rows: float) -> None:
    shares, noise = np.array([0.0, 0.11, 0.5, 0.83, 0.97]), np.arange(-2, 3)
    for error in (0.01, 0.2, 0.45, 0.6):
        wanted = []
        for p in shares:
            limit, above = p + error, 0
            for a, b in itertools.product(noise + rows * p, noise + rows * (1 - p)):
                first, second = max(a, 0.0), max(b, 0.0)
                above += (first / (first + second) if first + second else 0.5) > limit
            wanted.append(above / 25)
        found = _chance_above(shares, error, rows, EvenLaw(), noise)  # type: ignore[arg-type]  # it asks for `at_most` alone
        assert found == pytest.approx(wanted, abs=1e-12), error


@pytest.mark.parametrize(
    ("mechanism", "is_choice"),
    [
        (dpf.mechanisms.PermuteAndFlip(1), True),
        (dpf.mechanisms.Exponential(1), True),
        (dpf.mechanisms.AboveThreshold(1, threshold=5), False),
    ],
    ids=lambda given: getattr(given, "name", None),
)
def test_the_error_of_a_choice_is_one_of_rows_and_that_of_the_first_above_a_threshold_is_in_words(
    mechanism: dpf.Mechanism, is_choice: bool
) -> None:
    age = dpf.Numeric("age", 0, 100, bins=10)
    study = dpf.Study(dpf.Schema([age]), epsilon=1)
    study.add_plan("mode", dpf.step("mode", dpf.queries.Histogram(age), mechanism))
    plan = study.plan()
    (bound,), (step,) = plan.error_bounds()["mode"], plan.steps()
    preview = plan.calibrate(step, in_parts=False).preview
    if is_choice:
        assert (bound.kind, bound.amount) == (BoundKind.CHOICE, pytest.approx(preview.within))
    else:
        assert (bound.amount, bound.note) == (None, preview.text)


def test_noise_that_hides_small_groups_is_named_and_an_epsilon_for_them_is_found() -> None:
    """Of 7,000 rows in 1,500 groups no more than five are in an average one."""
    towns = dpf.Categorical("town", [f"town {k}" for k in range(1500)])
    study = dpf.Study(dpf.Schema([*PATIENTS.attributes[:2], towns], about_rows=7000), epsilon=2, allow=["noisy-result"])
    for miner in ("mean", "median", "sum", "variance"):
        study.add(miner, dpf.miner(miner, attribute="age", by="town", epsilon="0.5"))
    named = " ".join(str(finding) for finding in study.plan().check() if finding.code == "DP025")
    assert [miner for miner in study.miners if f"{miner} of 'age'" in named] == list(study.miners)
    assert study.epsilon_for("mean", within=2) > 20

"""The additive model of a number: its claim by brute force, its fit, its ranges, and what it keeps."""

import itertools
import json
import math
import warnings
from typing import ClassVar

import attrs
import numpy as np
import pandas as pd
import pytest
from dpframework_trees.additive import AdditiveRegression, Design, DPAdditiveRegression, ObjectivePerturbation
from dpframework_trees.additive.design import MOST_WHOLE
from dpframework_trees.additive.estimators import DPAdditiveRegressor
from dpframework_trees.additive.fit_rows import NumberRows, relative_positions
from dpframework_trees.additive.fitting import Loss, Rows
from dpframework_trees.additive.minimiser_refinement import refine
from dpframework_trees.additive.perturbation import draw_noise, tune_for
from dpframework_trees.additive.regression import RegressionFit, mean_position
from dpframework_trees.additive.residuals import EDGES, SIDE, NoisyResiduals, ResidualCounts
from dpframework_trees.estimator_inputs import PrivacyWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

import dpframework as dpf
from dpframework.facts import Relation
from dpframework.mechanisms.randomness import SeededRandomness
from dpframework.queries import Norm
from dpframework.verify.conformance_suites import QueryConformance

DESIGN = Design([(0, 1), (0, 1, 2)], 2, 40, 100, (), MOST_WHOLE, 200)
SCHEMA = dpf.Schema(
    [
        dpf.Numeric("size", 0, 100, bins=10),
        dpf.Categorical("colour", values=["red", "green", "blue"], missing=True),
        dpf.Numeric("price", 0, 50, bins=2, missing=True),
    ],
    max_rows=10_000,
)
FIRST = NumberRows(SCHEMA["price"], ("size", "colour"))


def fruits(rows=4_000, seed=0):
    """Prices that grow with size, and that green lowers."""
    rng = np.random.default_rng(seed)
    size, colour = rng.uniform(0, 100, rows), rng.choice(["red", "green", "blue"], rows)
    price = 10 + size / 5 - 5 * (colour == "green") + rng.normal(0, 2, rows)
    return pd.DataFrame({"size": size, "colour": colour, "price": price})


def mined(epsilon, frame=None, schema=SCHEMA, seed=0):
    study = dpf.Study(schema, epsilon=epsilon)
    study.add("model", DPAdditiveRegression("price", epsilon))
    return study.run(dpf.table_from_frame(fruits() if frame is None else frame, schema), seed=seed)["model"]


def rows_of(design, rows):
    """Return the rows of a fit, each as its attributes' cells and its outcome in steps."""
    cells = [[cell + first for cell, first in zip((*row[:-1], 0), design.first_cells, strict=True)] for row in rows]
    cells = np.array(cells, dtype=np.uint16).reshape(len(rows), len(design.first_cells))
    return Rows(cells, np.array([row[-1] for row in rows], np.uint16), design)


def test_no_output_loses_more_than_the_claim_on_any_pair_of_small_tables():
    """Rows of outcomes in all of [0, 1], added or replaced, to tables of up to 6; the largest loss comes near."""
    rng, mechanism = np.random.default_rng(1), ObjectivePerturbation(1)
    calibration = mechanism.calibrate(FIRST.facts(), Relation.ADD_OR_REMOVE_ONE)
    outcomes = (0, 1, MOST_WHOLE // 3, MOST_WHOLE // 2, MOST_WHOLE - 1, MOST_WHOLE)
    every, largest = list(itertools.product(range(2), range(3), outcomes)), {"added": 0.0, "replaced": 0.0}
    for size, _ in itertools.product((0, 1, 3, 6), range(8)):
        shared = [every[k] for k in rng.integers(len(every), size=size)]
        one, two = (every[k] for k in rng.integers(len(every), size=2))
        none, first, second = (rows_of(DESIGN, [*shared, *more]) for more in ([], [one], [two]))
        x = DESIGN.of_cells[:, first.cells[-1]].sum(axis=1)
        for far in (0.0, 3.0, -3.0, 12.0, -12.0):
            output = far * x[:, None] + rng.normal(0, rng.choice([0.1, 3]), (DESIGN.columns, 1))
            logs = [mechanism.log_density(rows, output, calibration) for rows in (none, first, second)]
            largest["added"] = max(largest["added"], abs(logs[0] - logs[1]))
            largest["replaced"] = max(largest["replaced"], abs(logs[1] - logs[2]))
    assert 0.95 < largest["added"] <= 1
    assert 0.9 < largest["replaced"] <= 2


def test_the_gradient_is_that_of_outcomes_between_0_and_1_and_more_digits_agree():
    rng = np.random.default_rng(2)
    calibration = ObjectivePerturbation(4).calibrate(FIRST.facts(), Relation.ADD_OR_REMOVE_ONE)
    tuned = tune_for(DESIGN, calibration)
    given = rng.integers([2, 3, MOST_WHOLE + 1], size=(50, 3)).tolist()
    rows, coefficients = rows_of(DESIGN, given), rng.normal(0, 1, (DESIGN.columns, 1))
    loss = Loss(rows, tuned, draw_noise(tuned, SeededRandomness(3)))
    x = DESIGN.of_cells[:, rows.cells].sum(axis=2).T
    p = 1 / (1 + np.exp(-(x @ coefficients[:, 0] + DESIGN.centre / 256)))
    expected = x.T @ (p - rows.classes / MOST_WHOLE)
    assert loss.residuals(coefficients)[:, 0] == pytest.approx(expected, abs=1e-12)
    unit = 2.0**-30
    found = refine(loss, coefficients, 2.0**-20, unit) * unit
    assert loss.size(loss.gradient(found)) < 2.0**-18


def test_a_design_of_numbers_is_checked():
    steps = ({"whole": whole} for whole in (-1, 0, 3, 96, 2 * MOST_WHOLE))
    for wrong in (*steps, {"classes": 3}, {"whole": 1, "centre": 5}):
        with pytest.raises(dpf.InputError):
            attrs.evolve(DESIGN, **wrong)
    assert [attrs.evolve(DESIGN, whole=whole).whole for whole in (2, 64, MOST_WHOLE)] == [2, 64, MOST_WHOLE]
    assert attrs.evolve(DESIGN, whole=1, centre=0, classes=3).whole == 1
    assert DESIGN.units_of_row == attrs.evolve(DESIGN, whole=1, centre=0).units_of_row + 2


def test_rows_of_a_number_leave_out_those_without_one():
    frame = fruits(5).assign(price=[10.0, np.nan, 60.0, 25.0, -5.0])
    table = dpf.table_from_frame(frame, SCHEMA, out_of_domain="clamp")
    design, engine = Design([tuple(range(10)), (0, 1, 2, 3)], 2, 5, 10, (), MOST_WHOLE), dpf.InMemory()
    found = FIRST.evaluate(engine, engine.load(table), design=design)
    assert found.classes.tolist() == [round(MOST_WHOLE / 5), MOST_WHOLE, MOST_WHOLE // 2, 0]
    assert found.cells[:, 0].tolist() == [int(size // 10) for size in frame["size"].drop(1)]
    with pytest.raises(dpf.InputError, match="'colour' is categorical; a numeric one is needed, or choose dp-additive"):
        DPAdditiveRegression("colour", 1).plan(SCHEMA)


def test_residuals_are_counted_in_the_bin_of_their_size():
    frame = fruits(6).assign(size=5.0, colour="red", price=[25.0, 25.1, 24.9, 50.0, 0.0, np.nan])
    table, engine = dpf.table_from_frame(frame, SCHEMA), dpf.InMemory()
    query = ResidualCounts(SCHEMA["price"], (SCHEMA["size"], SCHEMA["colour"]))
    added = [1.0, *[9] * 9, -0.5, *[9] * 3, -0.5]
    counts = query.evaluate(engine, engine.load(table), added=added)
    expected = [0] * (2 * SIDE)
    for place in (SIDE, SIDE, SIDE - 1, 2 * SIDE - 3, 2):  # a half of the range is two steps of the root of 2 inwards
        expected[place] += 1
    assert counts.tolist() == expected
    assert EDGES[-3] == pytest.approx(0.5)
    with pytest.raises(dpf.InputError, match="14 codes"):
        query.evaluate(engine, engine.load(table), added=[1.0, 2.0])


class TestNumberRows(QueryConformance):
    pairs = 40
    queries: ClassVar = {
        "rows": (
            FIRST,
            SCHEMA,
            {"design": Design([(0, 0, 0, 0, 1, 1, 1, 2, 2, 2), (0, 1, 2, 3)], 2, 40, 100, (), MOST_WHOLE, -30)},
        ),
        "residuals": (
            ResidualCounts(SCHEMA["price"], (SCHEMA["size"], SCHEMA["colour"])),
            SCHEMA,
            {"added": [*np.linspace(-2, 2, 10), 0.5, -0.5, 0.1, -0.1, 0.25]},
        ),
    }


def test_margins_leave_their_share_outside_and_allow_for_noise():
    counts = np.zeros(2 * SIDE)
    counts[SIDE : SIDE + 4], counts[2 * SIDE - 3], counts[SIDE - 1] = 100, 40, 560
    exact = NoisyResiduals(
        counts, 0.0
    )  # of 1,000 rows 50 are to be above the range: 40 there, 10 of the next bin's 100
    below, above = exact.margins(0.9)
    assert above == pytest.approx(EDGES[4] - (EDGES[4] - EDGES[3]) * 0.1)
    assert below == pytest.approx(EDGES[1] * (1 - 50 / 560))
    left = 50 - 1.28 * 5 * math.sqrt(3)  # the 40 rows of the third bin from outside, and what noise may have taken off
    assert NoisyResiduals(counts, 5.0).margins(0.9)[1] == pytest.approx(EDGES[-3] - (EDGES[-3] - EDGES[-4]) * left / 40)
    assert NoisyResiduals(counts, 40.0).margins(0.9) == (1.0, 1.0)
    assert NoisyResiduals(counts, 4.0).margins(0.9)[1] > above
    assert NoisyResiduals(np.zeros(2 * SIDE), 0.0).margins(0.9) == (0.0, 0.0)
    few = np.zeros(2 * SIDE)
    few[SIDE], few[0] = 18.5, 1.5  # of 20 rows one may be below: two thirds of those in the outermost bin
    assert NoisyResiduals(few, 0.0).margins(0.9)[0] == pytest.approx(1 - (1 - EDGES[-2]) / 1.5)


def test_a_residual_is_in_one_bin_at_most():
    query = ResidualCounts(SCHEMA["price"], (SCHEMA["size"],))
    found = query.sensitivities
    assert query.answer_length == 26
    assert {one.norm: (one.add_or_remove_one, one.replace_one) for one in found} == {
        Norm.L1: (1, 2),
        Norm.SQUARED_L2: (1, 2),
        Norm.LINF: (1, 1),
    }


SPREADS = {
    "normal": lambda rng, rows: rng.normal(0, 0.08, rows),
    "steep": lambda rng, rows: rng.laplace(0, 0.05, rows),
    "skewed": lambda rng, rows: rng.exponential(0.1, rows) - 0.05,
    "even": lambda rng, rows: rng.uniform(-0.3, 0.3, rows),
}


@pytest.mark.parametrize("rows", [500, 20_000])
@pytest.mark.parametrize("name", SPREADS)
def test_an_end_lets_more_than_its_share_out_with_a_probability_of_a_tenth_at_most(name, rows):
    """Over 500 draws of a count's noise, at the share of an epsilon of .1 and of 1: 1 in 20 of the rows an end.

    If noise alone decides, the number of draws in which more rows are out is binomial, of a probability of a tenth at
    most: 5 standard deviations above has a probability below 1e-6.
    """
    rng, draws = np.random.default_rng(rows), 500
    off = np.clip(SPREADS[name](rng, rows), -1, 1)
    exact = np.histogram(off, bins=np.concatenate([-EDGES[:0:-1], EDGES]))[0]
    for epsilon in (0.1, 1.0):
        p = 1 - math.exp(-epsilon * 0.05)  # of each of two geometric numbers, whose difference is the noise
        noise = rng.geometric(p, (draws, 2 * SIDE)) - rng.geometric(p, (draws, 2 * SIDE))
        deviation = math.sqrt(2 * (1 - p)) / p
        ends = np.array([NoisyResiduals(exact + own, deviation).margins() for own in noise])
        out = np.array([[(off < -below).mean(), (off > above).mean()] for below, above in ends])
        often = (out > 0.05).mean(axis=0)
        assert often.max() <= 0.1 + 5 * math.sqrt(0.1 * 0.9 / draws)
        if rows == 20_000 and epsilon == 1:
            assert (out.mean(axis=0) > 0.003).all()  # and no end is that of the target's range


def test_a_noisy_mean_is_drawn_to_the_middle_by_its_noise():
    assert mean_position(100.0, 300.0, 0.0) == 0.25
    assert 0.25 < mean_position(100.0, 300.0, 2_000.0) < mean_position(100.0, 300.0, 2_000_000.0) < 0.5
    assert mean_position(-20.0, 10.0, 9.0) == 0.5
    # The noise of below / rows has the variance 2,000 (300**2 + 100**2) / 400**4 = 1/128, a place anywhere has 1/12.
    assert mean_position(300.0, 100.0, 2_000.0) == pytest.approx(0.5 + 0.25 * (1 / 12) / (1 / 12 + 1 / 128), abs=1e-12)
    assert mean_position(0.6, 0.3, 0.0) == 0.5  # fewer than a row
    assert mean_position(0.75, 0.25, 0.0) == 0.75
    assert (mean_position(-1.0, 900.0, 0.0), mean_position(900.0, -1.0, 0.0)) == (0.01, 0.99)


@pytest.mark.parametrize(("below", "above", "variance"), [(3.0, 1.0, 2.0), (1.0, 7.0, 5.0), (40.0, 60.0, 300.0)])
def test_a_noisy_mean_is_weighed_by_its_variance(below, above, variance):
    """Of a ratio of two noisy sums, by its slopes in both; beside 1/12, that of a place anywhere."""
    step = 1e-4
    slopes = [
        ((below + a) / (below + above + a + b) - (below - a) / (below + above - a - b)) / (2 * step)
        for a, b in ((step, 0), (0, step))
    ]
    noise = variance * sum(slope**2 for slope in slopes)
    expected = 0.5 + (below / (below + above) - 0.5) * (1 / 12) / (1 / 12 + noise)
    assert mean_position(below, above, variance) == pytest.approx(expected, rel=1e-6)


def test_it_learns_a_sum_of_functions_and_its_range_holds_its_share_of_new_rows():
    """Of 4,000 new rows .9 or a little more, since noise is allowed for: .88 is 4 standard deviations below."""
    model, new = mined(4), fruits(4_000, seed=1)
    predicted, ends = model.predict(new), model.interval(new)
    assert math.sqrt(((predicted - new.price) ** 2).mean()) < 2.4  # 2 is the noise of prices
    assert 0.88 < ((ends[:, 0] <= new.price) & (new.price <= ends[:, 1])).mean() < 0.95
    assert model.mean == pytest.approx(fruits().price.mean(), abs=0.3)
    assert list(model.importances()) == ["size", "colour"]
    effect = model.term("colour").values[:3, 0]
    assert effect[1] - (effect[0] + effect[2]) / 2 == pytest.approx(-5, abs=0.8)
    assert (np.diff(model.term("size").values[:, 0]) > 0).all()
    wide = model.interval(new, 0.99)
    assert (wide[:, 0] <= ends[:, 0]).all()
    assert (wide[:, 1] >= ends[:, 1]).all()
    for share in (0, 1):
        with pytest.raises(dpf.InputError, match=f"share is {share}; a number between 0 and 1 is needed"):
            model.interval(new, share)


def test_a_prediction_is_a_logistic_function_of_the_sum_and_unknown_cells_add_nothing():
    model, rows = mined(1), fruits(20)[["size", "colour"]]
    added = model.contributions(rows)
    assert added.shape == (20, 2)
    expected = 50 / (1 + np.exp(-(model.intercept + added.sum(axis=1))))
    assert model.predict(rows) == pytest.approx(expected)
    with pytest.warns(UserWarning, match="size"):
        unknown = model.contributions(rows.assign(size=np.nan), out_of_domain="missing")
    assert unknown[:, 0].tolist() == [0] * 20
    assert unknown[:, 1] == pytest.approx(added[:, 1])


def test_a_model_is_kept_drawn_and_printed():
    pytest.importorskip("matplotlib").use("Agg")
    model, rows = mined(1), fruits(50)
    again = AdditiveRegression.from_dict(json.loads(model.to_json()))
    assert again.predict(rows) == pytest.approx(model.predict(rows), abs=1e-3)
    assert again.interval(rows) == pytest.approx(model.interval(rows), abs=1e-3)
    assert str(again).splitlines()[:2] == str(model).splitlines()[:2]
    assert str(model).startswith(f"price: {model.mean:.4g} on average\nat least 90% of rows are from ")
    told = str(model).splitlines()[2:]
    for term in model.shown_terms:
        assert told.pop(0) == term.attribute.name
        bands = 2 * np.column_stack([term.deviations, term.most_deviations])
        for label, value, (expected, most) in zip(term.labels, term.values[:, 0], bands, strict=True):
            assert told.pop(0) == f"  {label}: {value:+.3g} ± {expected:.3g} to {most:.3g}"
    assert told[0].startswith("±: 2 standard deviations of noise")
    inner = model.plot().child_axes
    assert [axes.get_title() for axes in inner] == ["size", "colour"]
    assert "added to price" in model.plot().get_title()
    drawn = model.plot_term("size").lines[0].get_ydata()
    assert np.asarray(drawn).tolist() == model.term("size").values[:, 0].tolist()
    with pytest.raises(dpf.InputError, match="not in the model; it has size, colour"):
        model.term("weight")
    with pytest.raises(dpf.InputError, match="target 'price' must be numeric"):
        AdditiveRegression.from_dict({**model.to_dict(), "target": dpf.Boolean("price").to_dict()})
    with pytest.raises(dpf.InputError, match="attribute number 0: has no name"):
        AdditiveRegression.from_dict({**model.to_dict(), "target": {"kind": "numeric"}})


def test_a_number_in_other_units_has_the_same_model_in_those_units():
    """Twice the price and 128 more, with the same draws: what is a difference doubles, what is a place moves, too."""
    frame = fruits(500).assign(price=lambda one: (one.price * 1024).round() / 1024)  # exact in both units
    other = attrs.evolve(SCHEMA["price"], lower=128, upper=228)
    one, two = mined(2, frame), mined(2, frame.assign(price=2 * frame.price + 128), SCHEMA.replace(other))
    rows = fruits(40, seed=3)
    assert two.predict(rows) == pytest.approx(128 + 2 * one.predict(rows))
    assert two.interval(rows, 0.5) == pytest.approx(128 + 2 * one.interval(rows, 0.5))
    assert two.contributions(rows) == pytest.approx(one.contributions(rows))
    assert (two.mean, two.width) == (pytest.approx(128 + 2 * one.mean), 2 * one.width)
    assert two.importances() == pytest.approx({name: 2 * value for name, value in one.importances().items()})
    for twice, once, own in zip(two.shown_terms, one.shown_terms, one.terms, strict=True):
        for name in ("values", "deviations", "most_deviations"):
            assert getattr(twice, name) == pytest.approx(2 * getattr(once, name))
        slopes = (once.values + one.mean) * (50 - once.values - one.mean) / 50  # of the logistic function there
        assert once.deviations == pytest.approx(own.deviations * slopes[:, 0])
    below, above = one.residuals.margins()
    assert f"from {100 * below:.3g} below to {100 * above:.3g} above" in str(two)


def test_scores_are_fitted_beside_the_log_odds_of_the_released_mean(monkeypatch):
    """In steps of 1 / 256: what little data leave of a score is the mean."""
    centres, release_fit = [], RegressionFit.release_fit
    monkeypatch.setattr(
        RegressionFit, "release_fit", lambda fit, *given: centres.append(fit.centre) or release_fit(fit, *given)
    )
    place = mined(1, fruits(500)).mean / 50
    assert 0.3 < place < 0.45
    assert centres == [round(256 * math.log(place / (1 - place)))]


def test_a_public_number_of_rows_and_few_rows_are_no_trouble():
    known = attrs.evolve(SCHEMA, rows=4_000)
    assert isinstance(mined(1, schema=known), AdditiveRegression)
    model = mined(0.1, fruits(0))
    assert model.residuals.margins() == (1.0, 1.0)
    assert relative_positions(SCHEMA["price"], model.predict(fruits(10))).std() < 0.3


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([DPAdditiveRegressor(epsilon=100, random_state=0)])
def test_scikit_learns_checks_hold(estimator, check):
    check(estimator)


def test_the_regressor_is_private_with_a_public_schema_and_warns_without():
    frame = fruits(3_000)
    X, y = frame[["size", "colour"]], frame["price"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = DPAdditiveRegressor(epsilon=4, schema=SCHEMA).fit(X, y)
    assert model.private_
    assert model.plan_.total().epsilon == 4
    assert model.score(X, y) > 0.8
    ends = model.predict_interval(X)
    assert ends.shape == (3_000, 2)
    assert ((ends[:, 0] <= model.predict(X)) & (model.predict(X) <= ends[:, 1])).all()
    assert model.feature_importances_.sum() == pytest.approx(1)
    with pytest.warns(PrivacyWarning, match="its bounds come from y"):
        assert not DPAdditiveRegressor(epsilon=4, schema=SCHEMA.select(["size", "colour"])).fit(X, y).private_
    with pytest.raises(dpf.InputError, match="X has 3000 rows and y has 10"):
        DPAdditiveRegressor(schema=SCHEMA).fit(X, y[:10])
    with pytest.raises(dpf.InputError, match="not numbers"), pytest.warns(PrivacyWarning):
        DPAdditiveRegressor().fit(X, ["a"] * 3_000)
    with pytest.raises(dpf.InputError, match="'price' is boolean; a numeric one is needed"):
        DPAdditiveRegressor(schema=SCHEMA.replace(dpf.Boolean("price"))).fit(X, y > 20)

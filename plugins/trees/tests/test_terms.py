"""Additive models made by hand: what each part adds, how it is named, ranked, printed and kept."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
import polars as pl
import pytest
from dpframework_trees.additive import Design, Term
from dpframework_trees.additive.bands import expected_deviations, most_deviations
from dpframework_trees.additive.design import GRAIN, LOG_ODDS, OFFSET
from dpframework_trees.additive.model import AdditiveModel
from dpframework_trees.additive.noise_and_ridge import NoiseAndRidge
from dpframework_trees.additive.regression_model import AdditiveRegression
from dpframework_trees.additive.residuals import SIDE, NoisyResiduals
from dpframework_trees.additive.stretch import centre, stretch_of
from dpframework_trees.additive.tree_part import TreePart
from dpframework_trees.tree import DecisionTree
from dpframework_trees.tree_nodes import Inner, Leaf

import dpframework as dpf

AGE = dpf.Numeric("age", 0, 80, cuts=[20, 40, 60], missing=True)
TOWN = dpf.Categorical("town", ["a", "b", "c"])
ILL = dpf.Boolean("ill")
KIND = dpf.Categorical("kind", ["x", "y", "z"])
PRICE = dpf.Numeric("price", 10, 30, bins=1)


def reals(*values: float) -> Any:
    return np.array(values, dtype=np.float64)


def column(*values: float) -> Any:
    return reals(*values)[:, None]


#: Two cells of ages, one of missing ages; a town of its own, and two that share a cell.
BY_AGE = Term(AGE, (0, 0, 0, 1, 2), column(0.5, -0.5, 0.125), reals(0.1, 0.2, 0.3), reals(0.4, 0.5, 0.6))
BY_TOWN = Term(TOWN, (0, 1, 0), column(1.0, -1.0), reals(0.01, 0.02), reals(0.03, 0.04))
MODEL = AdditiveModel(ILL, reals(0.25), (BY_AGE, BY_TOWN))
ROWS = pl.DataFrame({"age": [10.0, 60.0, None], "town": ["a", "b", "c"]})


def leaf(no: float, yes: float) -> Leaf:
    return Leaf(reals(no, yes), reals(no, yes) / (no + yes))


OLD, OTHERS, MINE = leaf(1, 3), leaf(3, 1), leaf(5, 5)
YOUNG = Inner(dpf.Equals("town", "b"), (OTHERS, MINE), reals(8, 6), reals(8 / 14, 6 / 14))
ROOT = Inner(dpf.Below("age", 60), (YOUNG, OLD), reals(9, 9), reals(0.5, 0.5))
PART = TreePart(DecisionTree.over(ROOT, ILL, dpf.Schema([AGE, TOWN, ILL])), 0.75, 0.125, 0.5)
WITH_TREE = AdditiveModel(ILL, reals(0.25), (BY_AGE, BY_TOWN), PART)


def test_cells_are_named_by_their_ranges_and_values() -> None:
    assert BY_AGE.labels == ("[0, 60)", "[60, 80]", "missing")
    assert BY_TOWN.labels == ("a or c", "b")
    ends = Term(AGE, (0, 1, 2, 2, 3), column(0, 0, 0, 0), reals(0, 0, 0, 0), reals(0, 0, 0, 0))
    assert ends.labels == ("[0, 20)", "[20, 40)", "[40, 80]", "missing")
    assert BY_AGE.importance == 1
    several = Term(TOWN, (0, 1, 0), np.array([[1.0, -3.0, 0.0], [1.5, 2.0, 0.0]]), reals(0, 0), reals(0, 0))
    assert several.importance == 5


def test_a_score_is_the_intercept_and_what_each_cell_adds() -> None:
    assert MODEL.contributions(ROWS)[:, :, 0].tolist() == [[0.5, 1.0], [-0.5, -1.0], [0.125, 1.0]]
    scores = [1.75, -1.25, 1.375]
    assert MODEL.scores(ROWS)[:, 0].tolist() == scores
    expected = [[1 / (1 + math.exp(one)), 1 / (1 + math.exp(-one))] for one in scores]
    assert MODEL.predict_proba(ROWS) == pytest.approx(np.array(expected))
    assert MODEL.predict(ROWS).tolist() == ["true", "false", "true"]
    rows = dpf.Table.from_codes(dpf.Schema([AGE, TOWN]), [[0, 3, 4, 1], [0, 1, 2, 1]])
    (block,) = dpf.InMemory().load(rows)
    assert MODEL.codes(block).tolist() == [1, 0, 1, 0]  # of the last 0.25 + 0.5 - 1
    assert MODEL.codes(block.at(block.index[[3, 0]])).tolist() == [0, 1]


def test_a_model_says_what_it_adds_to_what_and_what_matters_most() -> None:
    assert (MODEL.outputs, MODEL.added_to, MODEL.parts) == (("true",), "the log-odds of ill = true", ("age", "town"))
    assert MODEL.importances() == {"age": 1.0, "town": 2.0}
    assert [term.attribute.name for term in MODEL.most_important] == ["town", "age"]
    assert MODEL.term("age") is BY_AGE
    with pytest.raises(dpf.InputError, match="attribute 'ages' is not in the model; it has age, town"):
        MODEL.term("ages")
    assert str(MODEL).splitlines() == [
        "score of ill (true): +0.25",
        "town",
        "  a or c: +1.00 ± 0.02 to 0.06",
        "  b: -1.00 ± 0.04 to 0.08",
        "age",
        "  [0, 60): +0.50 ± 0.20 to 0.80",
        "  [60, 80]: -0.50 ± 0.40 to 1.00",
        "  missing: +0.12 ± 0.60 to 1.20",
        "±: 2 standard deviations of noise. The smaller number is for evenly spread rows and unrelated attributes,",
        "the larger one for any rows.",
    ]
    frame = MODEL.to_frame()
    assert frame.columns == ["attribute", "cell", "added to true", "noise_even", "noise_most"]
    assert frame.rows()[0] == ("town", "a or c", 1.0, 0.02, 0.06)
    assert frame.rows()[-1] == ("age", "missing", 0.125, 0.6, 1.2)
    html = MODEL._repr_html_()
    assert html.index("a or c") < html.index("[0, 60)")
    for shown in ("added to true", "+0.125", "± 0.6 to 1.2"):
        assert shown in html


def test_several_classes_have_a_score_each() -> None:
    values = np.array([[1.0, 0.0, -1.0], [-1.0, 0.5, 2.0]])
    term = Term(TOWN, (0, 1, 0), values, reals(0.1, 0.1), reals(0.1, 0.1))
    model = AdditiveModel(KIND, reals(0.0, 0.5, 0.0), (term,))
    assert (model.outputs, model.added_to) == (("x", "y", "z"), "the log-odds of kind")
    assert model.predict(ROWS).tolist() == ["x", "z", "x"]
    odds = np.exp([[1.0, 0.5, -1.0], [-1.0, 1.0, 2.0], [1.0, 0.5, -1.0]])
    assert model.predict_proba(ROWS) == pytest.approx(odds / odds.sum(axis=1, keepdims=True))
    assert str(model).startswith("score of kind (x, y, z): +0.00, +0.50, +0.00\ntown\n  a or c: +1.00, +0.00, -1.00 ± ")


def test_a_trees_part_is_its_log_odds_in_steps_by_its_weight() -> None:
    """Of 3 in 4 the log-odds are log 3, of 1 in 4 less that, and of halves 0."""
    m = round(math.log(3) / LOG_ODDS * GRAIN)
    step = (0.75 + OFFSET * LOG_ODDS) / GRAIN
    assert PART.of_leaves.tolist() == [-m, 0, m]
    assert PART.per_step == pytest.approx(step)
    added = WITH_TREE.contributions(ROWS)
    assert added.shape == (3, 3, 1)
    assert added[:, 2, 0] == pytest.approx([0, m * step, m * step])  # a missing age is not below 60
    assert WITH_TREE.parts == ("age", "town", "the tree's part")
    shown = WITH_TREE.term("the tree's part")
    assert shown.labels == ("age < 60 and town = b", "age < 60 and town != b", "(age >= 60 or age = missing)")
    assert shown.values[:, 0] == pytest.approx([-m * step, 0, m * step])
    assert shown.deviations.tolist() == [0.125, 0, 0.125]
    assert shown.most_deviations.tolist() == [0.5, 0, 0.5]
    known = PART.tree.importances()
    largest = 2 * m * step
    expected = {name: known[name] / sum(known.values()) * largest for name in ("age", "town")}
    assert PART.importances() == pytest.approx(expected)

    def doubled(node: Any) -> Any:
        below = {"children": tuple(map(doubled, node.children))} if isinstance(node, Inner) else {}
        return attrs.evolve(node, counts=2 * node.counts, **below)

    twice = TreePart(DecisionTree.over(doubled(ROOT), ILL, dpf.Schema([AGE, TOWN, ILL])), 0.75, 0.125, 0.5)
    assert sum(twice.tree.importances().values()) == pytest.approx(2 * sum(known.values()))
    assert twice.importances() == pytest.approx(expected)  # of the same leaves
    found = WITH_TREE.importances()
    assert found == pytest.approx({"age": 1 + expected["age"], "town": 2 + expected["town"]})


def test_a_tree_without_tests_or_without_odds_adds_and_matters_nothing() -> None:
    alone = TreePart(DecisionTree.over(MINE, ILL, dpf.Schema([AGE, ILL])), 0.75, 0.125, 0.5)
    assert alone.importances() == {}
    assert alone.attribute == dpf.Categorical("the tree's part", ["always"])
    shown = AdditiveModel(ILL, reals(0.0), (BY_TOWN,), alone).term("the tree's part")
    assert (shown.values.tolist(), shown.deviations.tolist(), shown.most_deviations.tolist()) == ([[0]], [0], [0])


def test_models_are_kept_with_six_digits() -> None:
    fine = Term(TOWN, (0, 1, 0), column(1 / 3, -2 / 3), reals(1 / 7, 0), reals(0, 1 / 9))
    exact = TreePart(PART.tree, 1 / 3, 1 / 7, 1 / 9)
    for tree in (None, exact):
        form = AdditiveModel(ILL, reals(1 / 3), (fine,), tree).to_dict()
        assert form["intercept"] == [0.333333]
        assert form["terms"][0] == {
            "attribute": TOWN.to_dict(),
            "bins": [0, 1, 0],
            "values": [[0.333333], [-0.666667]],
            "deviations": [0.142857, 0],
            "most_deviations": [0, 0.111111],
        }
        assert ("tree" in form) == (tree is not None)
        assert AdditiveModel.from_dict(form).to_dict() == form
    assert {name: form["tree"][name] for name in ("weight", "deviation", "most_deviation")} == {
        "weight": 0.333333,
        "deviation": 0.142857,
        "most_deviation": 0.111111,
    }


def test_a_prediction_is_a_place_between_the_bounds_and_a_range_is_cut_off_at_them() -> None:
    counts = np.zeros(2 * SIDE)
    counts[SIDE] = counts[SIDE - 1] = 100  # within 1/64 of the range, on either side
    model = AdditiveRegression(PRICE, 0.0, 15.0, (BY_TOWN,), NoisyResiduals(counts, 0.0))
    e = math.e
    high, low = 10 + 20 / (1 + 1 / e), 10 + 20 / (1 + e)
    assert model.width == 20
    assert model.contributions(ROWS).tolist() == [[1], [-1], [1]]
    assert model.predict(ROWS) == pytest.approx([high, low, high])
    # of 200 rows 10 may lie beyond an end: a tenth of the 100 that are in the innermost bin, 1/64 wide
    margin = 20 * 0.9 / 64
    expected = [[one - margin, one + margin] for one in (high, low, high)]
    assert model.interval(ROWS, 0.9) == pytest.approx(np.array(expected))
    wide = AdditiveRegression(PRICE, 0.0, 15.0, (BY_TOWN,), NoisyResiduals(counts, 1e6))
    assert wide.interval(ROWS).tolist() == [[10, 30]] * 3
    for share in (0, 1, -0.5, 1.5):
        with pytest.raises(dpf.InputError, match=f"share is {share}; a number between 0 and 1 is needed"):
            model.interval(ROWS, share)
    # shown around the mean, whose odds are 5 to 15: a function's slope there is 20 p (1 - p)
    (shown,) = model.shown_terms
    places = np.array([e / 3 / (1 + e / 3), 1 / 3 / e / (1 + 1 / 3 / e)])
    assert shown.values[:, 0] == pytest.approx(10 + 20 * places - 15)
    slopes = 20 * places * (1 - places)
    assert shown.deviations == pytest.approx(slopes * [0.01, 0.02])
    assert shown.most_deviations == pytest.approx(slopes * [0.03, 0.04])
    assert model.importances() == pytest.approx({"town": 20 * (places[0] - places[1])})
    assert (model.outputs, model.added_to) == (("price",), "price")
    assert str(model).splitlines()[:4] == [
        "price: 15 on average",
        "at least 90% of rows are from 0.281 below to 0.281 above their prediction",
        "town",
        f"  a or c: {20 * places[0] - 5:+.3g} ± {2 * slopes[0] * 0.01:.3g} to {2 * slopes[0] * 0.03:.3g}",
    ]
    form = model.to_dict()
    assert AdditiveRegression.from_dict(form).to_dict() == form
    with pytest.raises(dpf.InputError, match="target 'ill' must be numeric"):
        AdditiveRegression.from_dict(form | {"target": ILL.to_dict()})


def test_a_trees_part_is_stretched_as_all_functions_are_and_so_is_its_noise() -> None:
    """The noise of its column is that of a leaf whose value is 1."""
    design = Design([(0, 1), (0, 1, 2)], 2, 5_000, 10_000, leaves=(-16, -4, 7, 16))
    tuned = NoiseAndRidge(design, Fraction(1, 2))
    coefficients = np.array([[0.8], [0.5], [-0.5], [0.0], [1.5], [0.3]])
    factor = stretch_of(tuned, centre(coefficients))[0]
    assert factor > 1.01
    given = [dpf.Boolean("one"), dpf.Categorical("other", list("xyz"))]
    part = AdditiveModel.of_fit(tuned, coefficients, ILL, given, PART.tree).tree_part
    assert part is not None
    assert part.weight == pytest.approx(factor * 1.5)
    assert part.deviation == pytest.approx(factor * expected_deviations(tuned)[5:9].max())
    assert part.most_deviation == pytest.approx(factor * most_deviations(tuned, given)[5:9].max())

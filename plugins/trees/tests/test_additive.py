"""The additive classifier: its model is a sum, bins follow from public facts, and it serves scikit-learn."""

import json
import math
import warnings
from fractions import Fraction

import attrs
import numpy as np
import pandas as pd
import pytest
from dpframework_trees.additive import Design, DPAdditive
from dpframework_trees.additive.bins import cumulative_shares, even_cells, merge, merge_by_counts, most_bins
from dpframework_trees.additive.estimators import DPAdditiveClassifier
from dpframework_trees.additive.miner import AdditiveFit, Variant
from dpframework_trees.additive.model import AdditiveModel
from dpframework_trees.additive.term_drawing import draw_term, draw_terms
from dpframework_trees.additive.terms import Term
from dpframework_trees.default_classifier_miner import DPClassifierMiner, share_of_counts
from dpframework_trees.default_estimator import DPClassifier
from sklearn.metrics import roc_auc_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import dpframework as dpf
from dpframework.facts import MOST_ROWS
from dpframework.plan import Step, sequential, walk
from dpframework.tables import NewRows, UnknownCellWarning

COLOURS = ["red", "green", "blue"]
SCHEMA = dpf.Schema(
    [
        dpf.Numeric("size", 0, 100, bins=10),
        dpf.Categorical("colour", values=COLOURS, missing=True),
        dpf.Boolean("ripe"),
        dpf.Categorical("grade", values=["bad", "good", "fine"]),
    ],
    max_rows=10_000,
)


def fruits(rows: int = 2_000, seed: int = 0) -> pd.DataFrame:
    """Rows whose grade grows with their size and falls with green: a sum of two functions."""
    rng = np.random.default_rng(seed)
    size, colour, ripe = rng.uniform(0, 100, rows), rng.choice(COLOURS, rows), rng.integers(0, 2, rows).astype(bool)
    score = size / 20 - 2 * (colour == "green") + rng.logistic(0, 0.3, rows)
    grade = np.array(["bad", "good", "fine"])[np.digitize(score, [1, 3])]
    return pd.DataFrame({"size": size, "colour": colour, "ripe": ripe, "grade": grade})


def mined(epsilon, schema=SCHEMA, seed=0, **parameters):
    study = dpf.Study(schema, epsilon=epsilon)
    study.add("model", DPAdditive("grade", epsilon, **parameters))
    return study.run(dpf.table_from_frame(fruits(), schema), seed=seed)


def two_grades():
    frame = fruits().query("grade != 'good'").reset_index(drop=True)
    return SCHEMA.replace(dpf.Categorical("grade", values=["bad", "fine"])), frame


def test_it_learns_a_sum_of_functions_for_several_classes():
    model, rows = mined(4)["model"], fruits(seed=1)
    assert (model.predict(rows[["size", "colour", "ripe"]]) == rows.grade).mean() > 0.75
    assert [term.attribute.name for term in sorted(model.terms, key=lambda t: -t.importance)] == [
        "size",
        "colour",
        "ripe",
    ]
    fine = model.term("colour").values[:, 2]
    assert fine[1] < min(fine[0], fine[2])  # green lowers the score of the finest grade


def test_a_rows_score_is_the_sum_of_what_its_attributes_add():
    model, rows = mined(1)["model"], fruits(20)[["size", "colour", "ripe"]]
    added = model.contributions(rows)
    assert added.shape == (20, 3, 3)
    scores = model.scores(rows)
    assert scores == pytest.approx(model.intercept + added.sum(axis=1))
    p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    assert model.predict_proba(rows) == pytest.approx(p)


def test_two_classes_have_one_function_each():
    schema, frame = two_grades()
    study = dpf.Study(schema, epsilon=2)
    study.add("model", DPAdditive("grade", 2))
    model = study.run(dpf.table_from_frame(frame, schema), seed=1)["model"]
    assert model.outputs == ("fine",)
    assert {term.values.shape[1] for term in model.terms} == {1}
    rows = frame[["size", "colour", "ripe"]]
    assert model.predict_proba(rows)[:, 1] == pytest.approx(1 / (1 + np.exp(-model.scores(rows)[:, 0])))
    assert (model.predict(rows) == frame.grade).mean() > 0.95


def test_a_model_is_kept_drawn_and_printed():
    pytest.importorskip("matplotlib").use("Agg")
    model, rows = mined(1)["model"], fruits(50)[["size", "colour", "ripe"]]
    again = AdditiveModel.from_dict(json.loads(model.to_json()))
    assert again.predict_proba(rows) == pytest.approx(model.predict_proba(rows), abs=1e-4)
    inner = model.plot().child_axes
    assert sorted(axes.get_title() for axes in inner) == sorted(term.attribute.name for term in model.terms)
    assert len({axes.get_ylim() for axes in inner}) == 1  # one scale, so that a flat one looks flat
    first = max(model.terms, key=lambda term: term.importance)
    assert inner[0].get_title() == first.attribute.name
    low, high = inner[0].get_ylim()
    assert all(low < term.values.min() - 2 * term.deviations.max() for term in model.terms)
    assert all(high > term.values.max() + 2 * term.deviations.max() for term in model.terms)
    drawn = [np.asarray(line.get_ydata()).tolist() for line in inner[0].lines]
    assert first.values[:, 0].tolist() in [ys[: len(first.values)] for ys in drawn]
    axes = model.plot_term("size")
    assert [label.get_text() for label in axes.get_xticklabels()] == list(model.term("size").labels)
    for name in ("size", "colour"):
        *lines, _ = model.plot_term(name).lines  # the last one is at 0
        drawn = [(x, y) for line in lines for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)]
        assert sorted(drawn) == sorted((k, y) for values in model.term(name).values.T for k, y in enumerate(values))
    assert "colour" in str(model)
    with pytest.raises(dpf.InputError, match="not in the model"):
        model.term("weight")
    other = dpf.table_from_frame(fruits(5), SCHEMA.replace(dpf.Numeric("size", 0, 100, bins=5)))
    with pytest.raises(dpf.InputError, match="differs from the model's attribute"):
        model.predict(other)


def term_of(name, cells, outputs, missing=True):
    attribute = dpf.Numeric(name, 0, cells, cuts=range(1, cells - missing), missing=missing)
    values = np.arange(cells * outputs, dtype=float).reshape(cells, outputs)
    return Term(attribute, tuple(range(cells)), values, np.linspace(1, 2, cells), np.linspace(3, 5, cells))


def test_bands_are_two_deviations_wide_and_missing_values_stand_apart():
    pytest.importorskip("matplotlib").use("Agg")
    plots = pytest.importorskip("matplotlib.pyplot")
    axes, term = plots.figure().add_subplot(), term_of("cost in $", 17, 2)
    draw_term(term, ["one", "other"], axes)
    bands = [part for part in axes.collections if not hasattr(part, "get_segments")]
    bars = [part for part in axes.collections if hasattr(part, "get_segments")]
    wanted = [(term.values[:, k], 2 * margin) for k in range(2) for margin in (term.most_deviations, term.deviations)]
    for band, bar, (values, margin) in zip(bands, bars, wanted, strict=True):
        ends = band.get_paths()[0].get_extents()
        assert (ends.x0, ends.x1) == (0, 15)
        assert (ends.y0, ends.y1) == ((values - margin)[:16].min(), (values + margin)[:16].max())
        assert np.array(bar.get_segments()).tolist() == [[[16, values[16] - margin[16]], [16, values[16] + margin[16]]]]
    assert [band.get_alpha() for band in bands] == [0.08, 0.3] * 2  # the one that few tables leave is light
    lines = [line for line in axes.lines if len(line.get_xdata())]
    assert [line.get_label() for line in lines if not line.get_label().startswith("_")] == ["one", "other"]
    assert [len(line.get_xdata()) for line in lines] == [16, 1, 16, 1, 2]
    assert axes.get_xticks().tolist() == [0, 3, 6, 9, 12, 15]  # 8 labels at most
    assert axes.get_title() == r"cost in \$"
    plots.close("all")


@pytest.mark.parametrize("number", [0, 2, 7])
@pytest.mark.parametrize("outputs", [1, 2])
def test_functions_stand_beside_each_other_in_order_with_one_legend_if_there_are_several(number, outputs):
    pytest.importorskip("matplotlib").use("Agg")
    plots = pytest.importorskip("matplotlib.pyplot")
    axes = plots.figure().add_subplot()
    draw_terms([term_of(f"t{k}", 3, outputs) for k in range(number)], ["a", "b"][:outputs], "grade", axes)
    inner = axes.child_axes
    assert [one.get_title() for one in inner] == [f"t{k}" for k in range(number)]
    assert [one.get_legend() is not None for one in inner] == [k == 0 and outputs > 1 for k in range(number)]
    if number:
        margin = 0.05 * (3 * outputs - 1 + 2 * 4)
        assert {one.get_ylim() for one in inner} == {(-4 - margin, 3 * outputs - 1 + 4 + margin)}
        axes.figure.draw_without_rendering()
        whole, boxes = axes.get_window_extent(), [one.get_window_extent() for one in inner]
        for k, box in enumerate(boxes):
            assert whole.x0 - 1 <= box.x0 < box.x1 <= whole.x1 + 1
            assert whole.y0 - 1 <= box.y0 < box.y1 <= whole.y1 + 1
            if (k + 1) % 3 and k + 1 < number:
                assert (boxes[k + 1].x0 > box.x1, boxes[k + 1].y0) == (True, box.y0)
            if k + 3 < number:
                assert boxes[k + 3].y1 < box.y0
    plots.close("all")


def test_labels_of_more_than_fourteen_characters_are_drawn_shortened():
    pytest.importorskip("matplotlib").use("Agg")
    names = dict(zip(COLOURS, ("fourteen chars", "fifteen charact", "blue"), strict=True))
    schema = SCHEMA.replace(dpf.Categorical("colour", values=list(names.values())))
    study = dpf.Study(schema, epsilon=1)
    study.add("model", DPAdditive("grade", 1))
    table = dpf.table_from_frame(fruits(50).replace({"colour": names}), schema)
    axes = study.run(table, seed=1)["model"].plot_term("colour")
    assert [label.get_text() for label in axes.get_xticklabels()] == ["fourteen chars", "fifteen chara…", "blue"]


def test_the_band_is_about_what_noise_leaves():
    """It expects less of the rows than these tell: their values spread over 15 fits by a third of it."""
    schema, rng = SCHEMA.replace(dpf.Categorical("grade", values=["bad", "fine"])), np.random.default_rng(0)
    frame = fruits(2_000).assign(grade=rng.choice(["bad", "fine"], 2_000))
    table, values = dpf.table_from_frame(frame, schema), []
    for seed in range(15):
        study = dpf.Study(schema, epsilon=1)
        study.add("model", DPAdditive("grade", 1))
        term = study.run(table, seed=seed)["model"].term("colour")
        values.append(term.values[:3, 0])
    spread = np.std(values, axis=0)
    assert (spread < term.deviations[:3]).all()
    assert (6 * spread > term.deviations[:3]).all()


def test_bins_are_merged_by_public_facts():
    size = dpf.Numeric("size", 0, 100, bins=10)
    assert merge(size, 4) == (0, 0, 0, 1, 1, 2, 2, 2, 3, 3)
    assert merge(size, 10) == tuple(range(10))
    assert merge(dpf.Numeric("size", 0, 100, bins=5, missing=True), 2) == (0, 0, 0, 1, 1, 2)
    assert merge(dpf.Categorical("colour", COLOURS), 2) == (0, 1, 2)
    assert [most_bins(n) for n in (0, 4_000, 40_000, 1e12)] == [4, 4, 12, 64]
    term = mined("0.01")["model"].term("size")
    assert term.labels == ("[0, 30)", "[30, 50)", "[50, 80)", "[80, 100]")


def test_a_public_number_of_rows_is_not_counted():
    frame = fruits(2_000)
    known = dpf.Schema(SCHEMA.attributes, rows=2_000)
    for schema, steps in ((SCHEMA, ["rows", "bins", "fit"]), (known, ["bins", "fit"])):
        study = dpf.Study(schema, epsilon=1, relation="replace-one")
        study.add("model", DPAdditive("grade", 1))
        results = study.run(dpf.table_from_frame(frame, schema), seed=0)
        assert [charge.path.split("/")[-1] for charge in results.charges] == steps
        assert results.plan.total().epsilon == 1


def test_what_cannot_be_fitted_is_refused():
    one = dpf.Categorical("one", values=["a"])
    wide = dpf.Categorical("wide", values=[str(k) for k in range(700)])
    schema = dpf.Schema([*SCHEMA.attributes, one, wide])
    with pytest.raises(dpf.InputError, match="has two or more values; add one that has"):
        DPAdditive("grade", 1, attributes=["one"]).plan(schema)
    with pytest.raises(dpf.InputError, match="more than 2000"):
        DPAdditive("grade", 1).plan(schema)


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([DPAdditiveClassifier(epsilon=100, random_state=0)])
def test_scikit_learns_checks_hold(estimator, check):
    check(estimator)


def test_an_estimator_is_private_with_a_public_schema():
    schema, frame = two_grades()
    X, y = frame[["size", "colour", "ripe"]], frame.grade
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = DPAdditiveClassifier(20, schema=schema, attributes=["size", "colour"]).fit(X, y)
    assert model.private_
    assert [term.attribute.name for term in model.model_.terms] == ["size", "colour"]
    assert model.score(X, y) > 0.9


def test_the_default_model_follows_from_public_facts():
    def kind(rows, epsilon, target="grade"):
        return DPClassifierMiner(target, epsilon).kind(SCHEMA, rows)

    # three functions and three outputs: 450 rows times epsilon
    assert [kind(rows, 1) for rows in (449, 450)] == ["sampled-3", "additive"]
    # three functions and one output: 150
    assert [kind(rows, 1, "ripe") for rows in (149, 150)] == ["sampled-2", "additive"]
    assert [kind(rows, "0.1") for rows in (4_499, 4_500)] == ["sampled-3", "additive"]


@pytest.mark.parametrize(("classes", "of_node", "most"), [(2, 15, 3), (3, 10, 3), (4, 7.5, 4), (5, 7, 4), (19, 7, 5)])
def test_a_chosen_tree_has_as_many_levels_as_rows_can_choose(classes, of_node, most):
    """Of T tests there are T**(2**d - 1) trees, and choosing one costs the logarithm of that, over epsilon."""
    others = [dpf.Boolean(f"a{k}") for k in range(60)]
    schema = dpf.Schema([*others, dpf.Categorical("class", [f"c{k}" for k in range(classes)])])
    miner = DPClassifierMiner("class", Fraction(1, 2))
    for levels in range(3, most + 1):
        fewest = math.ceil(2 * of_node * (2**levels - 1) * math.log(len(others)))
        kinds = [miner.kind(schema, rows) for rows in (fewest - 1, fewest)]
        assert kinds == [f"sampled-{levels - 1}", f"sampled-{levels}"]
    assert miner.kind(schema, 2 * 49 * 60) == f"sampled-{most}"


@pytest.mark.parametrize("classes", [2, 3, 19])
def test_counts_of_several_classes_get_more_of_a_small_tree(classes):
    """Of a tree of two levels: and the tests get the rest."""
    others = [dpf.Boolean(f"a{k}") for k in range(20)]
    target = dpf.Categorical("class", [f"c{k}" for k in range(classes)])
    share = Fraction(2, 5) if classes == 2 else share_of_counts(classes, 20)
    assert (share > Fraction(2, 5)) is (classes > 2)
    for rows, levels in ((20, 2), (700 if classes == 2 else 500, 3)):
        schema = dpf.Schema([*others, target], rows=rows)
        miner = DPClassifierMiner("class", Fraction(1, 2))
        assert miner.kind(schema, rows) == f"sampled-{levels}"
        of_counts = share if levels == 2 else Fraction(2, 5)
        epsilons = [node.mechanism.epsilon for node in walk(miner.plan(schema)) if isinstance(node, Step)]
        assert epsilons == [(1 - of_counts) / 2, of_counts / 2]


def test_the_share_of_counts_makes_the_sum_of_errors_least():
    for classes, tests in ((2, 55), (3, 33), (6, 135), (19, 132)):
        share = float(share_of_counts(classes, tests))
        each = np.arange(1, 64) / 64
        errors = classes / each + 9 / 8 * math.log(tests) / (1 - each)
        assert abs(share - each[errors.argmin()]) <= 1 / 64


def test_the_model_that_was_chosen_predicts():
    study = dpf.Study(SCHEMA, epsilon=2)
    study.add("model", DPClassifierMiner("grade", 2))
    chosen = study.run(dpf.table_from_frame(fruits(), SCHEMA), seed=0)["model"]
    assert chosen.kind == "additive"
    rows = fruits(200, seed=2)[["size", "colour", "ripe"]]
    assert (chosen.predict(rows) == fruits(200, seed=2).grade).mean() > 0.7
    schema, frame = two_grades()
    few = frame.iloc[::20]
    model = DPClassifier(1, schema=schema, random_state=0).fit(few[["size", "colour", "ripe"]], few.grade)
    assert model.kind_ == "sampled-2"
    assert set(model.predict(few[["size", "colour", "ripe"]])) <= {"bad", "fine"}


def test_bins_of_equal_width_are_merged_by_noisy_counts():
    """Half of the sizes are below 3: merged bins hold about a quarter of the rows each, or what comes near."""
    rng = np.random.default_rng(0)
    size = np.minimum(rng.exponential(4, 4_000), 100)
    grade = np.where(rng.random(4_000) < size / (size + 3), "fine", "bad")
    frame = pd.DataFrame({"other": rng.uniform(0, 100, 4_000), "size": size, "grade": grade})
    even = [dpf.Numeric(name, 0, 100, bins=50) for name in ("other", "size")]
    schema = dpf.Schema([*even, dpf.Categorical("grade", ["bad", "fine"])])
    study = dpf.Study(schema, epsilon=1)
    study.add("model", DPAdditive("grade", 1))
    results = study.run(dpf.table_from_frame(frame, schema), seed=0)
    assert [charge.path.split("/")[-1] for charge in results.charges] == ["rows", "bins", "fit"]
    assert results.plan.total().epsilon == 1
    labels = results["model"].term("size").labels
    # parts of equal width would begin with one to 24 or beyond
    assert float(labels[0][1:-1].split(",")[1]) < 12

    # the same grid as cut points: the same fit, release by release
    even = [dpf.Numeric(name, 0, 100, cuts=range(2, 100, 2)) for name in ("other", "size")]
    cuts = dpf.Schema([*even, schema["grade"]])
    study = dpf.Study(cuts, epsilon=1)
    study.add("model", DPAdditive("grade", 1))
    by_cuts = study.run(dpf.table_from_frame(frame, cuts), seed=0)["model"]
    rows = frame[["other", "size"]]
    assert by_cuts.predict_proba(rows).tolist() == results["model"].predict_proba(rows).tolist()


@pytest.mark.parametrize(
    ("rows", "epsilon", "steps"),
    [
        (10**7, 1, ["fit"]),  # enough to keep all bins
        (4_000, 1, ["bins", "fit"]),
        (4_000, "0.1", ["fit"]),  # the noise of a count is more than a quarter of the rows
    ],
)
def test_bins_are_counted_where_counts_tell_something(rows, epsilon, steps):
    attributes = [dpf.Numeric("size", 0, 100, bins=50), dpf.Categorical("grade", ["bad", "fine"])]
    study = dpf.Study(dpf.Schema(attributes, rows=rows), epsilon=epsilon)
    study.add("model", DPAdditive("grade", epsilon))
    assert [step.name for step in study.plan().steps()] == steps
    # the same by a noisy number: it chooses one of two branches, of the same cost
    study = dpf.Study(dpf.Schema(attributes), epsilon=epsilon)
    study.add("model", DPAdditive("grade", epsilon))
    plan = study.plan()
    assert plan.total().epsilon == Fraction(str(epsilon))
    fit = AdditiveFit.of(plan.schema, "grade", None, Fraction(str(epsilon)))
    assert fit.counts_bins(rows) == ("bins" in steps)


def test_noisy_counts_are_weighted_by_what_they_tell():
    counts = np.array([90.0, 5.0, 3.0, 2.0])
    assert cumulative_shares(counts, 1e-9, 100.0) == pytest.approx([0.9, 0.95, 0.98, 1.0])
    assert cumulative_shares(counts, 1e12, 100.0) == pytest.approx([0.25, 0.5, 0.75, 1.0], abs=1e-6)
    # in the middle: 1/12 expected, and the noise of two of four counts whose sum is known
    half = cumulative_shares(counts, 100.0**2 / 12, 100.0)[1]
    assert half == pytest.approx((0.95 + 0.5) / 2)
    assert cumulative_shares(np.array([9.0, -9.0, 0.0, 0.0]), 1e-9, 9.0)[1] == 1.0  # never decreasing, 1 at most
    for shares in ([1, 1, 1, 1], [0, 0, 0, 1], [0.5, 0.5, 0.5, 1]):
        assert 2 <= len(set(even_cells(np.array(shares, dtype=float), 3))) <= 3
    missing = dpf.Numeric("size", 0, 4, bins=4, missing=True)
    assert merge_by_counts(missing, 2, np.array([9.0, 1.0, 1.0, 1.0, 50.0]), 1e-9, 12.0) == (0, 1, 1, 1, 2)


@pytest.mark.parametrize("epsilon", ["1/10", 1, 25])
def test_a_tree_is_worth_its_share_from_a_number_of_rows_times_epsilon_on(epsilon):
    attributes = [dpf.Numeric("size", 0, 100, bins=4), dpf.Boolean("grade")]
    least = int(2_500 / Fraction(epsilon))
    for rows, interactions, worth in (
        (least - 1, "auto", False),
        (least, "auto", True),
        (least, "no", False),
        (1, "yes", True),
    ):
        fit = AdditiveFit.of(dpf.Schema(attributes, rows=rows), "grade", None, Fraction(epsilon), interactions)
        assert fit.variant(rows).tree is worth


@pytest.mark.parametrize("variant", [Variant(), Variant(True), Variant(False, True), Variant(True, True)])
def test_the_number_of_rows_chooses_a_branch_of_equal_cost(variant):
    attributes = [dpf.Numeric("size", 0, 100, bins=50), dpf.Boolean("ripe"), dpf.Boolean("grade")]
    rows = {False: 10_000 if variant.counts else 2_000, True: 100_000}[variant.tree]
    bins = 50 if variant.counts else 4
    attributes[0] = dpf.Numeric("size", 0, 100, bins=bins)
    epsilon = Fraction(1, 5)
    found = []
    for schema in (dpf.Schema(attributes), dpf.Schema(attributes, rows=rows)):
        fit = AdditiveFit.of(schema, "grade", None, epsilon, "auto")
        assert fit.variant(rows) == variant
        plan = sequential(*fit.steps(epsilon))
        found.append([step.name for step in walk(plan) if isinstance(step, Step)])
    wanted = ["tree", "leaves"] * variant.tree + ["bins"] * variant.counts + ["fit"]
    assert found[1] == wanted
    assert found[0].count("fit") == (4 if variant.counts else 2)


def interacting(rows: int = 6_000, seed: int = 0) -> tuple[dpf.Schema, pd.DataFrame]:
    """Rows whose class is whether two attributes agree, and a little more likely if a third one holds."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({name: rng.integers(0, 2, rows).astype(bool) for name in "abcd"})
    frame["class"] = rng.random(rows) < np.where(frame.a == frame.b, 0.8, 0.1) + 0.1 * frame.c
    return dpf.Schema([*map(dpf.Boolean, "abcd"), dpf.Boolean("class")]), frame


def fitted(interactions, epsilon=1, seed=0):
    schema, frame = interacting()
    study = dpf.Study(schema, epsilon=epsilon)
    study.add("model", DPAdditive("class", epsilon, interactions=interactions))
    results = study.run(dpf.table_from_frame(frame, schema), seed=seed)
    assert results.plan.total().epsilon == Fraction(epsilon)
    return results["model"]


def test_a_trees_part_finds_what_attributes_tell_together():
    _, new = interacting(seed=1)
    found = {}
    for interactions in ("no", "yes", "auto"):
        model = fitted(interactions)
        found[interactions] = roc_auc_score(new["class"], model.predict_proba(new[list("abcd")])[:, 1])
        assert (model.tree_part is None) == (interactions == "no")
    assert found["no"] < 0.6
    assert min(found["yes"], found["auto"]) > 0.85
    assert fitted("auto", "0.3").tree_part is None  # 1,800 rows times epsilon


def test_the_trees_part_is_a_part_of_a_rows_sum_and_is_kept_drawn_and_printed():
    pytest.importorskip("matplotlib").use("Agg")
    model, rows = fitted("yes"), interacting(50, seed=1)[1][list("abcd")]
    added = model.contributions(rows)
    assert added.shape == (50, 5, 1)
    assert model.parts == (*"abcd", "the tree's part")
    assert model.scores(rows) == pytest.approx(model.intercept + added.sum(axis=1))
    p = model.tree_part.tree.predict_proba(rows)[:, 1]
    steps = np.clip(np.round(np.log(p / (1 - p)) * 4), -16, 16)
    assert added[:, 4, 0] == pytest.approx(steps * (model.tree_part.weight + 2) / 16)
    block = NewRows.read(rows, model.schema).block
    some = np.array([3, 7, 8, 20], dtype=np.int32)
    assert model.codes(block.at(some)).tolist() == model.codes(block)[some].tolist()
    again = AdditiveModel.from_dict(json.loads(model.to_json()))
    assert again.predict_proba(rows) == pytest.approx(model.predict_proba(rows), abs=1e-4)
    assert "the tree's part" in str(model)
    assert "the tree's part" in [axes.get_title() for axes in model.plot().child_axes]
    term = model.term("the tree's part")
    assert len(term.labels) == model.tree_part.tree.leaves
    part, sizes = model.tree_part, np.abs(model.tree_part.of_leaves) / np.abs(model.tree_part.of_leaves).max()
    assert term.deviations == pytest.approx(sizes * part.deviation)
    assert term.most_deviations == pytest.approx(sizes * part.most_deviation)
    assert set(np.round(added[:, 4, 0], 9)) <= set(np.round(term.values[:, 0], 9))
    assert model.importances()["a"] > 5 * model.importances()["d"]


def test_a_leaf_of_an_unknown_cell_is_answered_by_the_node_of_its_test():
    model, rows = fitted("yes"), pd.DataFrame({name: [None] for name in "abcd"})
    with pytest.warns(UnknownCellWarning):
        added = model.contributions(rows, out_of_domain="clamp")
    assert added[0, :4, 0].tolist() == [0, 0, 0, 0]
    node = model.tree_part.tree.predicting.probabilities[1]
    assert added[0, 4, 0] == pytest.approx(round(np.log(node / (1 - node)) * 4) * (model.tree_part.weight + 2) / 16)


def test_a_tree_is_part_of_a_fit_of_two_classes_only():
    with pytest.raises(dpf.InputError, match="3 classes"):
        DPAdditive("grade", 1, interactions="yes").plan(SCHEMA)
    with pytest.raises(dpf.InputError, match="interactions"):
        DPAdditive("grade", 1, interactions="maybe")
    assert [s.name for s in walk(DPAdditive("grade", 1, interactions="auto").plan(SCHEMA)) if isinstance(s, Step)] == [
        s.name for s in walk(DPAdditive("grade", 1).plan(SCHEMA)) if isinstance(s, Step)
    ]
    for leaves, classes in (((1,), 3), ((17,), 2)):
        with pytest.raises(dpf.InputError, match="a tree needs a fit of two classes"):
            Design([(0, 1)], classes, 10, 10, leaves)


def test_a_number_of_rows_is_taken_from_1_to_the_most_that_there_may_be():
    fit = AdditiveFit.of(attrs.evolve(SCHEMA, rows=None, max_rows=500), "grade", None, Fraction(1))
    assert [fit.about(rows) for rows in (-7.0, 0.25, 1.5, 500, 501)] == [1, 1, 1.5, 500, 500]
    anybody = AdditiveFit.of(attrs.evolve(SCHEMA, rows=None, max_rows=None), "grade", None, Fraction(1))
    assert anybody.about(10.0**30) == MOST_ROWS


@pytest.mark.parametrize(("relation", "epsilon"), [("add-or-remove-one", 3), ("replace-one", Fraction(3, 2))])
def test_noise_of_a_model_is_that_of_its_fit(relation, epsilon, monkeypatch):
    """In a release that costs 3 for a replaced row, the noise is that of 3/2 for one that is added or removed."""
    schema = dpf.Schema([dpf.Boolean("one"), dpf.Categorical("two", COLOURS), dpf.Boolean("ill")], rows=500)
    tuned, of_fit = [], AdditiveModel.of_fit
    monkeypatch.setattr(AdditiveModel, "of_fit", lambda own, *given: tuned.append(own) or of_fit(own, *given))
    study = dpf.Study(schema, epsilon=3, relation=relation)
    study.add("model", DPAdditive("ill", 3))
    codes = np.random.default_rng(0).integers(0, [[2], [3], [2]], (3, 500))
    study.run(dpf.Table.from_codes(schema, codes), seed=0)
    assert [own.epsilon for own in tuned] == [epsilon]

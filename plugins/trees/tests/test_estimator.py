"""The scikit-learn estimators: scikit-learn's own checks, schemas, and shared budgets."""

import multiprocessing
import os
import pickle
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from dpframework_trees import DPAdditiveClassifier, DPAdditiveRegressor, DPClassifier
from dpframework_trees.estimator import DPID3Classifier, DPTreeClassifier
from dpframework_trees.estimator_inputs import PrivacyWarning, _plain
from dpframework_trees.grid_search import PrivateTreeSearch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import dpframework as dpf

SCHEMA = dpf.Schema(
    [
        dpf.Numeric("age", 0, 100, bins=10),
        dpf.Categorical("city", values=["Rome", "Oslo", "Lima"], missing=True),
        dpf.Categorical("class", values=["no", "yes"]),
    ]
)


def people(rows: int = 600, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    age = rng.uniform(0, 100, rows)
    city = rng.choice(["Rome", "Oslo", "Lima"], rows)
    return pd.DataFrame({"age": age, "city": city}), np.where((age >= 50) & (city != "Oslo"), "yes", "no")


# All of scikit-learn's checks hold for a seeded fit; check_array_api_input skips itself without SCIPY_ARRAY_API.
# Unseeded fits are random, as privacy demands, and the estimator's tags say so: scikit-learn then skips the one
# check that compares two fits.
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [
        DPID3Classifier(epsilon=100, random_state=0),
        DPTreeClassifier(epsilon=100, random_state=0),
        DPTreeClassifier(epsilon=100, random_state=0, sampler="mcmc"),
        DPTreeClassifier(epsilon=100, random_state=0, sampler="greedy"),
    ]
)
def test_scikit_learns_checks_hold(estimator, check):
    check(estimator)


def test_with_a_public_schema_a_fit_is_private_and_warns_of_nothing():
    X, y = people()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tree = DPID3Classifier(epsilon=20, max_depth=3, schema=SCHEMA).fit(X, y)
    assert tree.private_
    assert tree.plan_.total().epsilon == 20
    assert tree.classes_.tolist() == ["no", "yes"]
    assert (tree.predict(X) == y).mean() > 0.95


@pytest.mark.parametrize(("sampler", "assumptions"), [("exact", 0), ("mcmc", 1), ("greedy", 0)])
def test_a_sampled_tree_is_private_under_the_assumptions_of_its_sampler(sampler, assumptions):
    X, y = people()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tree = DPTreeClassifier(epsilon="20", max_depth=2, sampler=sampler, schema=SCHEMA).fit(X, y)
    assert tree.private_
    assert len(tree.plan_.assumptions) == assumptions
    assert tree.plan_.total().epsilon == 20
    assert tree.classes_.tolist() == ["no", "yes"]
    assert (tree.predict(X) == y).mean() > 0.95


def test_more_work_than_the_exact_sampler_does_is_refused_with_the_way_out():
    X, y = people()
    with pytest.raises(dpf.InputError, match="use sampler = 'mcmc'"):
        DPTreeClassifier(max_depth=8, schema=SCHEMA, sampler="exact").fit(X, y)
    assert DPTreeClassifier(max_depth=8, schema=SCHEMA, sampler="mcmc").fit(X, y).private_


@pytest.mark.parametrize("frame", [pd.DataFrame, lambda d: pl.from_pandas(pd.DataFrame(d))], ids=["pandas", "polars"])
def test_every_dataframe_gives_the_same_tree(frame):
    X, y = people()
    trees = [DPID3Classifier(epsilon=5, schema=SCHEMA, random_state=4).fit(f, y) for f in (X, frame(X))]
    assert str(trees[0].tree_) == str(trees[1].tree_)
    assert (trees[0].predict(X) == trees[1].predict(frame(X))).all()


def test_without_a_schema_a_fit_warns_and_is_not_private():
    X, y = people()
    with pytest.warns(PrivacyWarning, match="inferred from the data"):
        tree = DPID3Classifier(epsilon=20).fit(X, y)
    assert not tree.private_
    assert "schema-inferred-from-data" in tree.plan_.assumptions


def test_a_warning_points_at_the_fit():
    """At the line of the user's own file that called it, with a schema, without one, and without y in it."""
    X, y = people(50)
    inferred = dpf.Schema(SCHEMA.attributes, inferred=("bounds: observed",))
    without_y = SCHEMA.select(["age", "city"])
    fits = [
        *((DPID3Classifier(epsilon=20, max_depth=1, schema=schema), y) for schema in (None, without_y, inferred)),
        *((DPAdditiveRegressor(epsilon=20, schema=schema), X.age) for schema in (None, without_y)),
    ]
    for estimator, outcomes in fits:
        with pytest.warns(PrivacyWarning) as caught:
            estimator.fit(X, outcomes)
        assert {one.filename for one in caught if one.category is PrivacyWarning} == {__file__}


def test_a_schema_without_the_class_warns_that_classes_are_read_off_the_data():
    X, y = people()
    with pytest.warns(PrivacyWarning, match="come from y"):
        tree = DPID3Classifier(epsilon=20, schema=SCHEMA.select(["age", "city"])).fit(X, y)
    assert not tree.private_


def test_classes_keep_the_type_of_y():
    X, y = people()
    numbers = np.where(y == "yes", 10, 9)
    schema = SCHEMA.replace(dpf.Categorical("class", values=["10", "9"]))
    tree = DPID3Classifier(epsilon=50, schema=schema, random_state=0).fit(X, numbers)
    assert tree.classes_.tolist() == [9, 10]
    assert (tree.predict(X) == numbers).mean() > 0.95


def test_a_clone_shares_its_accountants_budget():
    X, y = people()
    budget = dpf.PureAccountant("add-or-remove-one", epsilon=1)
    first = DPID3Classifier(epsilon="0.6", schema=SCHEMA, accountant=budget).fit(X, y)
    second = clone(first).set_params(epsilon="0.4")
    assert second.accountant is budget
    second.fit(X, y)
    assert budget.spent.epsilon == 1
    with pytest.raises(dpf.PlanRefused, match="over budget"):
        clone(second).set_params(epsilon="0.1").fit(X, y)
    assert budget.spent.epsilon == 1


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning", "ignore:this fit follows")
def test_cross_validation_on_one_budget_stops_when_it_is_spent():
    X, y = people()
    budget = dpf.PureAccountant("add-or-remove-one", epsilon=2)
    tree = DPID3Classifier(epsilon=1, schema=SCHEMA, accountant=budget)
    scores = cross_val_score(tree, X, y, cv=3, error_score=np.nan)
    assert np.isnan(scores).tolist() == [False, False, True]


def searched(**options):
    X, y = people()
    tree = DPID3Classifier(epsilon=1, schema=SCHEMA, **options)
    return GridSearchCV(tree, {"max_depth": [1, 2]}, cv=2, n_jobs=None if options else 2).fit(X, y).best_estimator_


@pytest.mark.parametrize("shared", [True, False])
def test_what_exact_scores_chose_does_not_call_itself_private(shared):
    """In this process, where clones share an accountant, and in others, of which nothing comes back."""
    options = {"accountant": dpf.PureAccountant("add-or-remove-one", epsilon=10)} if shared else {}
    with pytest.warns(PrivacyWarning, match="PrivateTreeSearch chooses privately"):
        assert not searched(**options).private_


def test_fits_and_predictions_that_choose_nothing_stay_private():
    X, y = people()
    tree = DPID3Classifier(epsilon=1, schema=SCHEMA)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tree.fit(X, y).private_
        tree.predict(X)
        assert tree.fit(X, y).private_  # again with the same parameters
        assert DPID3Classifier(epsilon=1, schema=SCHEMA).fit(X, y).private_  # no clone of it
        assert clone(DPID3Classifier(epsilon=1, schema=SCHEMA)).fit(X, y).private_
        again = pickle.loads(pickle.dumps(tree))
        assert again.private_
        assert tree.fit(X, y).private_


def test_a_private_search_costs_its_epsilon_and_finds_what_is_there():
    X, y = people(4000)
    grid = {"max_depth": [1, 2, 3], "criterion": ["norm", "gini"]}
    search = PrivateTreeSearch(
        "6.5", estimator=DPID3Classifier(), param_grid=grid, schema=SCHEMA, choice_share="0.2"
    ).fit(X, y)
    assert search.private_
    assert search.plan_.total().epsilon == Fraction("6.5")
    assert search.best_params_["max_depth"] > 1
    assert (search.predict(X) == y).mean() > 0.9
    steps = {step.name: step for step in search.plan_.steps()}
    assert steps["choice"].mechanism.epsilon == Fraction("1.3")


def test_a_private_search_refuses_what_it_cannot_search():
    X, y = people(50)
    for parameters, sentence in (
        ({}, r"estimator is None; give estimator=DPID3Classifier\(\) or DPTreeClassifier\(\), and the values to try"),
        ({"estimator": DPID3Classifier(), "choice_share": 1}, "between 0 and 1"),
        ({"estimator": DPID3Classifier(), "choice_share": 0}, "between 0 and 1"),
        ({"estimator": DPID3Classifier(), "choice_share": -0.5}, "cannot be negative"),
        ({"estimator": DPID3Classifier(), "param_grid": {"max_depth": []}}, "no candidate|empty"),
    ):
        with pytest.raises(ValueError, match=sentence):
            PrivateTreeSearch(schema=SCHEMA, **parameters).fit(X, y)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fit_in_a_fork_is_refused_before_it_touches_the_rows():
    """polars hangs in a fork: whoever waits there for a refusal would wait for ever."""
    X, y = people()
    budget = dpf.PureAccountant("add-or-remove-one", epsilon=2)
    tree = DPID3Classifier(epsilon=1, schema=SCHEMA, accountant=budget).fit(X, y)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        refused = pool.apply_async(_refusal, (tree, X, y)).get(timeout=60)
    assert "copy from another process" in refused


def _refusal(tree, X, y):
    try:
        tree.fit(X, y)
    except dpf.PlanRefused as error:
        return str(error)
    return "it was fitted"


def test_a_fitted_estimator_survives_pickle_with_its_budget():
    X, y = people()
    budget = dpf.PureAccountant("add-or-remove-one", epsilon=1)
    tree = DPID3Classifier(epsilon=1, schema=SCHEMA, accountant=budget).fit(X, y)
    again = pickle.loads(pickle.dumps(tree))
    assert (again.predict(X) == tree.predict(X)).all()
    assert again.accountant is budget


def test_missing_values_and_values_outside_the_range_at_prediction():
    X, y = people()
    tree = DPID3Classifier(epsilon=20, schema=SCHEMA, random_state=1).fit(X, y)
    odd = pd.DataFrame({"age": [-5.0, 180.0], "city": [None, "Rome"]})
    assert tree.predict(odd).tolist() == ["no", "yes"]
    # a city that the schema does not hold is a missing one
    unknown, missing = (pd.DataFrame({"age": [180.0], "city": [city]}) for city in ("Paris", None))
    assert tree.predict(unknown).tolist() == tree.predict(missing).tolist()
    strict = DPID3Classifier(epsilon=20, schema=SCHEMA, random_state=1, out_of_domain="error").fit(X, y)
    with pytest.raises(dpf.InputError, match="city"):
        strict.predict(pd.DataFrame({"age": [1.0], "city": ["Paris"]}))


def test_a_schema_that_does_not_fit_x_is_refused():
    X, y = people()
    for columns, sentence in [
        (X[["age"]], "with target="),
        (X.rename(columns={"age": "agee"}), "did you mean 'age'"),
        (np.zeros((len(X), 4)), "describe them all"),
    ]:
        with pytest.raises(dpf.InputError, match=sentence):
            DPID3Classifier(schema=SCHEMA).fit(columns, y)
    with pytest.raises(dpf.InputError, match="not a column of X"):
        DPID3Classifier(schema=SCHEMA, target="age").fit(X, y)


def test_a_wider_schema_serves_where_the_target_is_named():
    X, y = people()
    tree = DPID3Classifier(epsilon=20, schema=SCHEMA, target="class", random_state=0).fit(X[["age"]], y)
    assert tree.schema_.names == ("age", "class")
    assert set(tree.predict(X[["age"]])) <= {"no", "yes"}


def test_values_outside_their_domain_follow_the_owners_choice():
    X, y = people()
    odd = X.assign(age=X.age + 200)
    with pytest.raises(dpf.InputError, match="outside its public range"):
        DPID3Classifier(epsilon=20, schema=SCHEMA, out_of_domain="error").fit(odd, y)
    unknown = X.assign(city="Paris")
    tree = DPID3Classifier(epsilon=20, schema=SCHEMA, out_of_domain="missing", random_state=0).fit(X, y)
    assert len(tree.predict(unknown)) == len(X)


def test_missing_classes_are_refused():
    X, y = people()
    with pytest.raises(dpf.InputError, match="every row needs a class"), pytest.warns(PrivacyWarning):
        DPID3Classifier().fit(X, np.where(np.arange(len(y)) == 3, None, y))


def test_a_single_class_in_y_is_no_error_where_the_schema_knows_the_classes():
    # an error would tell that nobody is of the other class
    X, _ = people()
    tree = DPID3Classifier(epsilon=20, schema=SCHEMA).fit(X, np.array(["no"] * len(X)))
    assert set(tree.predict(X)) == {"no"}


@pytest.mark.parametrize(
    ("target", "classes"),
    [
        (dpf.Boolean("class"), [False, True]),
        (dpf.Boolean("class"), [0, 1]),
        (dpf.Categorical("class", values=["False", "True"]), [False, True]),
        (dpf.Categorical("class", values=["1", "2"]), [1.0, 2.0]),
        (dpf.Categorical("class", values=["1", "2"]), [1, 2]),
    ],
)
def test_classes_of_every_kind_are_predicted_as_they_were_given(target, classes):
    X, y = people()
    given = np.array(classes)[(y == "yes").astype(int)]
    tree = DPID3Classifier(epsilon=50, schema=SCHEMA.replace(target), random_state=0).fit(X, given)
    assert tree.classes_.tolist() == classes
    assert (tree.predict(X) == given).mean() > 0.95


def test_a_numeric_class_is_predicted_as_its_bin():
    X, y = people()
    schema = SCHEMA.replace(dpf.Numeric("class", 0, 10, cuts=[5]))
    tree = DPID3Classifier(epsilon=50, schema=schema, random_state=0).fit(X, np.where(y == "yes", 8, 2))
    assert set(tree.predict(X)) == {"[0, 5)", "[5, 10]"}


def test_rows_are_told_their_leaf_and_columns_how_much_they_matter():
    X, y = people()
    tree = DPID3Classifier(epsilon=50, schema=SCHEMA, random_state=0, max_depth=2).fit(X, y)
    leaves, rules = tree.apply(X), tree.tree_.rules()
    assert set(leaves) <= set(range(len(rules)))
    for k in set(leaves):
        p = tree.predict_proba(X[leaves == k])
        assert len(X[leaves == k]) == pytest.approx(rules[k].rows, abs=60)
        assert tree.tree_.whole is not None or np.ptp(p, axis=0).max() < 1e-12
    of_columns = tree.feature_importances_
    assert of_columns.shape == (X.shape[1],)
    assert of_columns.sum() == pytest.approx(1)
    additive = DPAdditiveClassifier(epsilon=50, schema=SCHEMA, random_state=0).fit(X, y).feature_importances_
    assert of_columns.argmax() == additive.argmax()


@pytest.mark.parametrize("estimator", [DPID3Classifier, DPAdditiveClassifier, DPClassifier])
def test_what_a_fit_found_is_drawn(estimator):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    X, y = people()
    model = estimator(epsilon=50, schema=SCHEMA, random_state=0).fit(X, y)
    axes = pyplot.subplots()[1]
    assert model.plot(axes) is axes
    titles = [own.get_title() for own in axes.child_axes]  # of additive functions
    shown = " ".join([*titles, *(text.get_text() for text in axes.texts)])
    assert str(SCHEMA.names[int(model.feature_importances_.argmax())]) in shown
    pyplot.close("all")


def test_a_budget_with_a_delta_and_fewer_columns_are_parameters():
    X, y = people()
    tree = DPID3Classifier(epsilon=1, delta="1e-6", attributes=[SCHEMA.names[0]], schema=SCHEMA, random_state=0)
    tree.fit(X, y)
    assert tree.plan_.check() is not None
    assert np.flatnonzero(tree.feature_importances_).tolist() in ([0], [])
    pure = DPID3Classifier(epsilon=1, attributes=[SCHEMA.names[0]], schema=SCHEMA, random_state=0).fit(X, y)
    assert (tree.predict_proba(X) == pure.predict_proba(X)).all()  # a delta makes no fit worse


@pytest.mark.parametrize(("y", "what"), [([True, False], "Boolean"), ([0, 1], "numeric"), ([0.0, 1.0], "numeric")])
def test_classes_of_another_type_than_the_schemas_are_refused_by_their_type(y, what):
    schema = dpf.Schema([dpf.Boolean("a"), dpf.Categorical("class", values=["no", "yes"])])
    with pytest.raises(
        dpf.InputError, match=f"y is {what}, and class 'class' of the schema has the values 'no', 'yes'"
    ):
        DPID3Classifier(epsilon=1, schema=schema, random_state=0).fit([[True], [False]], np.array(y))


def test_boolean_classes_are_those_of_a_schema_that_calls_them_0_and_1():
    schema = dpf.Schema([dpf.Boolean("a"), dpf.Categorical("class", values=["0", "1"])])
    X = [[k % 2] for k in range(400)]
    tree = DPID3Classifier(epsilon=50, schema=schema, random_state=0).fit(X, np.array([k % 2 == 1 for k in range(400)]))
    assert tree.predict([[0], [1]]).tolist() == [0, 1]


@pytest.mark.filterwarnings("ignore:no schema was given")
def test_texts_with_missing_values_need_no_schema_to_be_read():
    import pandas as pd

    texts = pd.DataFrame({"a": ["x", "z", np.nan, None] * 100, "b": [1, "two", 3.5, pd.NA] * 100}, dtype=object)
    y = ["no", "yes", "no", "no"] * 100
    for X in (texts, texts.fillna(np.nan).to_numpy(dtype=object)):
        tree = DPID3Classifier(epsilon=50, random_state=0).fit(X, y)
        assert tree.predict(X)[:4].tolist() == y[:4]


def test_clones_with_budgets_of_their_own_warn_that_they_add_up():
    X, y = people()
    tree = DPID3Classifier(epsilon=1, schema=SCHEMA, max_depth=1)
    clone(tree).fit(X, y)
    with pytest.warns(PrivacyWarning, match="budgets add up, so give the estimator an accountant"):
        clone(tree).fit(X, y)
    shared = DPID3Classifier(epsilon=1, schema=SCHEMA, accountant=dpf.PureAccountant("add-or-remove-one", epsilon=2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            clone(shared).fit(X, y)


def test_cells_of_a_column_of_objects_are_texts_where_one_is() -> None:
    assert _plain(pd.Series([1, None, 2.5], dtype=object)) == [1, None, 2.5]
    assert _plain(pd.Series([True, float("nan")], dtype=object)) == [True, None]
    assert _plain(pd.Series([1, None, "a"], dtype=object)) == ["1", None, "a"]

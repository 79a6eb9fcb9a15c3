"""Measures by name: each on a trial of a real miner, and refused on another's."""

from __future__ import annotations

import functools
import inspect
import math
import pickle
import subprocess
import sys

import pytest
from dpframework_greedy import greedy_without_privacy
from dpframework_trees import DPID3

import dpframework as dpf
from dpframework.lab.clinic import clinic_table
from dpframework.lab.evaluation import (
    MEASURES,
    Trial,
    cart,
    experiment_measures,
    folds,
    measure,
    prediction_of,
    uniform_noise,
)
from dpframework.lab.evaluation.experiment_measures import MEASURES as BY_NAME
from dpframework.redescriptions.redescriptions import Redescriptions

TARGET = "type 2 diabetes"
SUPPORT = {"min_support": 100, "max_support": 1500}


@pytest.fixture(scope="module")
def trial() -> Trial:
    train, test = next(folds(clinic_table(3000), 3, seed=0))
    parameters = {"target": TARGET, "max_depth": 3, "epsilon": 5}
    study = dpf.Study(train.schema, epsilon=5)
    study.add("tree", DPID3(**parameters))
    return Trial(study.run(train, seed=0)["tree"], train, test, parameters, seconds=0.25)


def test_measures_of_a_tree(trial):
    assert measure("seconds")(trial) == {"seconds": 0.25}
    size = measure("tree")(trial)
    assert size == {"leaves": trial.result.tree.leaves, "depth": trial.result.tree.depth}
    held_out, mined = measure("prediction")(trial), measure("prediction")(trial, rows="table")
    assert set(held_out) == {"accuracy", "f_measure", "auc"}
    assert held_out["accuracy"] > 0.9
    assert held_out != mined


def test_retention_of_a_private_tree_is_of_its_released_counts(trial):
    kept = measure("retention")(trial)
    assert kept["patterns"] == trial.result.tree.leaves
    assert 0 < kept["psd"] < 0.01  # noise of a few rows a leaf
    assert 0 <= kept["pld"] < 0.1
    assert abs(kept["pattern_accuracy_loss"]) < 0.05


def test_retention_of_a_table_is_of_carts_patterns(trial):
    parameters = {"target": TARGET}
    same = measure("retention")(Trial(trial.table, trial.table, parameters=parameters))
    assert (same["psd"], same["pld"], same["pattern_accuracy_loss"]) == (0, 0, 0)
    noisy = Trial(uniform_noise(trial.table, 0.3, seed=0), trial.table)
    settings = {"max_depth": 3, "min_share": 0.01, "kind": "ordinal"}
    kept = measure("retention")(noisy, target=TARGET, cart=settings)
    assert kept["patterns"] <= 8
    assert min(kept["psd"], kept["pld"], kept["pattern_accuracy_loss"]) > 0.01


def test_prediction_of_a_table_is_of_cart_learned_from_it(trial):
    noisy = uniform_noise(trial.table, 0.3, seed=0)
    model = cart(noisy, TARGET, max_depth=2)
    found = measure("prediction")(Trial(noisy, trial.table, trial.held_out), target=TARGET, cart={"max_depth": 2})
    same = measure("prediction")(Trial(model, trial.table, trial.held_out), target=TARGET)
    assert found == same == prediction_of(model, trial.held_out, TARGET).to_dict()
    assert measure("tree")(Trial(model, trial.table)) == {"leaves": model.leaves, "depth": model.depth}


@pytest.fixture(scope="module")
def redescribed() -> Trial:
    table = clinic_table(3000)
    return Trial(greedy_without_privacy(table, pairs=5, extensions=1, **SUPPORT), table)


def test_measures_of_redescriptions(redescribed):
    found = measure("redescriptions")(redescribed)
    assert found["count"] == 5
    assert found["error"] == 0  # exact counts
    assert found["significant"] == 1
    assert measure("redescriptions")(redescribed, keep=10_000)["count"] == 0
    assert math.isnan(measure("redescriptions")(redescribed, keep=10_000)["jaccard"])


def test_recovery(redescribed, monkeypatch):
    settings = {"pairs": 5, "extensions": 1, **SUPPORT}
    recovery = functools.partial(measure("recovery"), baseline="dpframework_greedy.nonprivate:greedy_without_privacy")
    assert recovery(redescribed, settings=settings) == {"recovered": 1, "similarity": 1, "reference": 5}
    some = Trial(Redescriptions(list(redescribed.result)[:2]), redescribed.table)
    part = recovery(some, settings=settings, threshold=0.999)
    assert 0.4 <= part["recovered"] < 1
    assert part["recovered"] <= recovery(some, settings=settings, threshold=0.1)["recovered"]
    none = Trial(Redescriptions([]), redescribed.table)
    assert recovery(none, settings=settings)["recovered"] == 0
    monkeypatch.setattr(experiment_measures, "load_function", lambda *_: pytest.fail("the reference is known already"))
    recovery(some, settings=settings)


@pytest.mark.parametrize(
    ("name", "settings", "sentence"),
    [
        ("prediction", {"target": "gout"}, "a model that predicts is needed, .* not int"),
        ("prediction", {"rows": "fold"}, "accepted are 'held-out' and 'table'"),
        ("tree", {}, "a tree is needed, not int"),
        ("retention", {}, "a tree that releases the counts of its leaves is needed, not int"),
        ("redescriptions", {}, "redescriptions are needed"),
        ("recovery", {"baseline": "nowhere.at_all:f"}, "'nowhere.at_all' cannot be imported"),
        ("recovery", {"baseline": "dpframework_greedy.nonprivate:greedy_without_privac"}, "greedy_without_privacy"),
    ],
)
def test_a_result_of_another_kind_is_refused(name, settings, sentence):
    table = clinic_table(20)
    with pytest.raises(dpf.InputError, match=sentence):
        measure(name)(Trial(3, table, table), **settings)


def test_held_out_rows_and_the_class_attribute_are_asked_for(trial):
    with pytest.raises(dpf.InputError, match="held-out rows are needed"):
        measure("prediction")(Trial(trial.result, trial.table))
    with pytest.raises(dpf.InputError, match="class attribute is unknown"):
        measure("prediction")(Trial(trial.result, trial.table, trial.held_out))


def test_measures_by_name():
    assert MEASURES is BY_NAME
    assert sorted(MEASURES) == ["prediction", "recovery", "redescriptions", "retention", "seconds", "tree"]
    assert measure("dpframework_distance.evaluation:distances").__name__ == "distances"
    for name, sentence in (
        ("predicton", "did you mean 'prediction'"),
        ("dpframework_distance.evaluation:distance", "did you mean 'distances'"),
        ("dpframework.nothing:x", "cannot be imported"),
        (":x", "cannot be imported"),
    ):
        with pytest.raises(dpf.InputError, match=sentence):
            measure(name)
    for function in MEASURES.values():  # a docstring says what comes back
        assert inspect.getdoc(function).startswith("Return ")


def test_a_trial_travels_and_shows_no_row(trial):
    again = pickle.loads(pickle.dumps(trial))
    assert dict(again.parameters) == dict(trial.parameters)
    assert (again.table.codes == trial.table.codes).all()
    assert repr(again) == "<trial of a TreeResult: not private>"
    with pytest.raises(TypeError):
        trial.parameters["epsilon"] = 3


def test_importing_it_is_light():
    heavy = "numba scipy sklearn pandas matplotlib joblib polars opendp"
    code = "import sys, dpframework.lab.evaluation, dpframework_distance.evaluation as e; assert e"
    check = f"found = [name for name in {heavy.split()!r} if name in sys.modules]; assert not found, found"
    subprocess.run([sys.executable, "-c", f"{code}; {check}"], check=True)

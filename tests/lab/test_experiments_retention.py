"""The retention paper's experiments: the toy, what noise is added to, what a tree tells, and the correlations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from dpframework.lab.clinic import clinic_table
from dpframework.lab.evaluation import Trial, cart, select_rows
from dpframework.lab.experiment.user_functions import Code

FOLDER = Path(__file__).parents[2] / "docs" / "experiments" / "retention"
TARGET = "type 2 diabetes"


def function(place):
    return Code(place, FOLDER).load()


@pytest.mark.parametrize(
    ("table", "published"),
    [("unchanged", (0.00, 0.00, 0.00, 0.67, 0.67, 0.80)), ("modified", (0.50, 0.08, 0.34, 0.67, 0.50, 0.67))],
)
def test_the_toy_has_the_measures_of_the_papers_table_4(table, published):
    original = function("toy.py:original")(seed=0)
    measured = function("toy.py:six")(Trial(function(f"toy.py:{table}")(original, seed=0), original))
    names = ("pattern_accuracy_loss", "psd", "pld", "accuracy", "auc", "f_measure")
    assert tuple(round(measured[name], 2) for name in names) == published


def test_the_toys_trees_have_no_attribute_in_common():
    original = function("toy.py:original")(seed=0)
    learn = function("toy.py:classifier")
    texts = [str(p.description) for p in learn(original).patterns()]
    assert texts == ["a >= 5.5", "a >= 2.5 and a < 5.5", "a < 2.5"]
    changed = function("toy.py:modified")(original, seed=0)
    assert [str(p.description) for p in learn(changed).patterns()] == [text.replace("a ", "b ") for text in texts]


def test_uniform_noise_spares_one_attribute():
    table = clinic_table(2000)
    noisy = function("baselines.py:uniform")(table, seed=1, level=0.5, spared=TARGET)
    position = table.schema.index(TARGET)
    same = (noisy.codes == table.codes).all(axis=1)
    # of 2000 cells half are drawn anew: that none of an attribute changes has a probability below 2 ** -900
    assert same.tolist() == [k == position for k in range(len(same))]


def test_preserving_noise_keeps_each_attribute_with_the_class():
    table = clinic_table(2000)
    position = table.schema.index(TARGET)
    noise = function("baselines.py:preserving")

    def joint(made, attribute):
        return np.histogram2d(made.codes[attribute], made.codes[position], bins=20)[0].tolist()

    kept, mixed = (noise(table, seed=1, level=1.0, within=within) for within in (TARGET, "none"))
    glucose = table.schema.index("glucose")
    assert joint(kept, glucose) == joint(table, glucose) != joint(mixed, glucose)
    assert np.bincount(mixed.codes[glucose]).tolist() == np.bincount(table.codes[glucose]).tolist()


def test_one_pattern_is_followed():
    table = clinic_table(1000)
    fewer = select_rows(table, np.arange(1000) < 400)
    form = {"not": {"below": ["glucose", 150]}}
    measured = function("measures.py:one_pattern")(Trial(fewer, table), pattern=form, label="true", target=TARGET)
    high = fewer.values["glucose"] >= 150
    assert measured["support"] == high.sum()
    assert 0 <= measured["chi_squared"] < 1


def test_a_tree_tells_all_of_its_own_patterns_and_a_coarser_one_less():
    table = clinic_table(3000)
    told = function("measures.py:told")
    own = told(Trial(cart(table, TARGET), table), target=TARGET)
    assert own == pytest.approx({"told_pld": 0, "told_accuracy_loss": 0}, abs=1e-12)
    losses = [told(Trial(cart(table, TARGET, max_depth=d), table), target=TARGET)["told_pld"] for d in (1, 2, 3)]
    assert losses == sorted(losses, reverse=True)
    assert losses[0] > 0.005


def test_classes_that_a_tree_has_not_seen_have_no_share():
    table = clinic_table(500)
    healthy = select_rows(table, table.codes[table.schema.index(TARGET)] == 0)
    measured = function("measures.py:told")(Trial(cart(healthy, TARGET), table), target=TARGET)
    assert measured["told_accuracy_loss"] > 0


def test_complete_rows_of_the_first(tmp_path):
    (tmp_path / "t.csv").write_text("age,sex\n30,F\n,M\n50,\n60,M\n70,F\n")
    (tmp_path / "t.schema.toml").write_text(
        '[[attribute]]\nname = "age"\nkind = "numeric"\nlower = 0\nupper = 100\nbins = 4\nmissing = true\n'
        '[[attribute]]\nname = "sex"\nkind = "categorical"\nvalues = ["F", "M"]\nmissing = true\n'
    )
    places = {"path": str(tmp_path / "t.csv"), "schema": str(tmp_path / "t.schema.toml")}
    table = function("tables.py:complete")(**places, first=4, seed=0)
    assert table.values["age"].tolist() == [30, 60]


def test_correlations_are_those_of_each_data_set_and_noise():
    place = "correlations.py:correlated"
    names = function(place).__globals__["MEASURES"]
    rows = [
        # on "two" every second measure falls as the others rise
        {
            "data": data,
            "method": noise,
            "level": level,
            "fold": fold,
            **{m: turn**k * level for k, m in enumerate(names)},
        }
        for data, turn in (("data one", 1), ("data two", -1))
        for noise in ("uniform", "preserving")
        for level in (0, 0.1, 0.3)
        for fold in (1, 2)
    ]
    found = function(place)(pl.DataFrame(rows))
    assert len(found) == 2 * 2 * 2 * 15  # noises, data sets, values, pairs
    assert found.filter(data="data one")["r"].to_list() == pytest.approx([1] * 60)
    falling = found.filter(data="data two", noise="uniform", value="averaged")
    assert falling["r"].to_list()[:5] == pytest.approx([-1, 1, -1, 1, -1])
    table = function("correlations.py:described")(found)
    assert table["n"].to_list() == [2] * 60
    assert table["mean"].to_list()[:4] == pytest.approx([0, 0, 1, 1])


def test_adult_has_the_papers_rows(monkeypatch, data_dir):
    monkeypatch.setenv("DPFRAMEWORK_DATA", str(data_dir))
    schema = "../../examples/adult/adult.schema.toml"
    table = function("tables.py:complete")(path="$DPFRAMEWORK_DATA/adult/adult.csv", schema=schema, first=32561, seed=0)
    assert table.codes.shape == (15, 30162)

"""Noise on rows: what each kind flattens and what it keeps; and correlations of measures as it grows."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import pearsonr

import dpframework as dpf
from dpframework.lab.evaluation import cart, correlations, retention_of
from dpframework.lab.evaluation.row_noise import distribution_preserving_noise, uniform_noise

ROWS = 20_000
SCHEMA = dpf.Schema(
    [
        dpf.Categorical("colour", ["red", "green", "blue"], missing=True),
        dpf.Numeric("size", 0, 10, cuts=[2, 5], missing=True),
        dpf.Boolean("ill"),
    ]
)
KINDS = [uniform_noise, distribution_preserving_noise]


@pytest.fixture(scope="module")
def table() -> dpf.Table:
    """Everything follows from whether one is ill."""
    rng = np.random.default_rng(0)
    ill = (rng.random(ROWS) < 0.2).astype(int)
    colour = np.where(ill, 0, rng.choice(4, ROWS, p=[0.05, 0.3, 0.6, 0.05]))
    size = np.where(ill, rng.uniform(0, 1.5, ROWS), rng.uniform(5, 9, ROWS))
    code = np.where(ill, 0, 2)
    missing = rng.random(ROWS) < 0.1
    size, code = np.where(missing, np.nan, size), np.where(missing, 3, code)
    return dpf.Table.from_codes(SCHEMA, [colour, code, ill], {"size": size})


@pytest.mark.parametrize("noise", KINDS)
def test_no_noise_changes_nothing_and_seeds_repeat(noise, table):
    none = noise(table, 0, seed=1)
    assert (none.codes == table.codes).all()
    assert np.array_equal(none.values["size"], table.values["size"], equal_nan=True)
    one, again, other = noise(table, 0.5, seed=1), noise(table, 0.5, seed=1), noise(table, 0.5, seed=2)
    assert (one.codes == again.codes).all()
    assert (one.codes != other.codes).any()


@pytest.mark.parametrize("noise", KINDS)
@pytest.mark.parametrize("level", [0.1, 0.7, 1])
def test_values_stay_in_the_bins_of_their_codes(noise, level, table):
    noisy = noise(table, level, seed=3)
    dpf.Table.from_codes(SCHEMA, noisy.codes, noisy.values)  # refuses values outside the bins of their codes


@pytest.mark.parametrize("noise", KINDS)
def test_what_is_hit_grows_with_the_level(noise, table):
    changed = [noise(table, level, seed=4).codes != table.codes for level in (0.1, 0.4, 0.8)]
    assert 0 < changed[0].mean() < changed[1].mean() < changed[2].mean() < 0.8
    if noise is uniform_noise:  # what changed at one level is as changed at the next
        for low, high in itertools.pairwise(changed):
            assert (high | ~low).all()


def test_uniform_noise_hits_the_share_asked_for(table):
    """A binomial share of 20,000 cells is within 0.02 of its mean with probability 1 - 2 exp(-16): 2e-7."""
    noisy = uniform_noise(table, 0.3, seed=5)
    hit = noisy.values["size"] != table.values["size"]
    hit &= ~(np.isnan(noisy.values["size"]) & np.isnan(table.values["size"]))
    assert abs(hit.mean() - 0.3) < 0.02


def test_uniform_noise_flattens(table):
    """Shares within 0.02: see above, three times."""
    noisy = uniform_noise(table, 1, seed=6)
    colour, size, ill = noisy.codes
    assert np.bincount(colour, minlength=4) / ROWS == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0], abs=0.02)
    assert np.bincount(size, minlength=4) / ROWS == pytest.approx([0.2, 0.3, 0.5, 0], abs=0.02)
    assert np.mean(ill) == pytest.approx(0.5, abs=0.02)
    assert abs(np.corrcoef(colour == 0, ill)[0, 1]) < 0.05


def test_distribution_preserving_noise_keeps_every_attributes_values(table):
    noisy = distribution_preserving_noise(table, 0.6, seed=7)
    for name in SCHEMA.names:
        k = SCHEMA.index(name)
        assert (np.sort(noisy.codes[k]) == np.sort(table.codes[k])).all()
    assert np.array_equal(np.sort(noisy.values["size"]), np.sort(table.values["size"]), equal_nan=True)
    before, after = (np.corrcoef(t.codes[0] == 0, t.codes[2])[0, 1] for t in (table, noisy))
    assert abs(after) < before / 2


def test_noise_within_an_attribute_keeps_what_goes_with_it(table):
    noisy = distribution_preserving_noise(table, 0.6, seed=8, within="ill")
    assert (noisy.codes[2] == table.codes[2]).all()
    assert (noisy.codes[0] != table.codes[0]).mean() > 0.1
    for value in (0, 1):
        rows = table.codes[2] == value
        for k in (0, 1):
            assert (np.sort(noisy.codes[k, rows]) == np.sort(table.codes[k, rows])).all()


@pytest.mark.parametrize("noise", KINDS)
def test_only_some_attributes(noise, table):
    noisy = noise(table, 0.5, seed=9, attributes=["colour"])
    assert (noisy.codes[1:] == table.codes[1:]).all()
    assert (noisy.codes[0] == noise(table, 0.5, seed=9).codes[0]).all()  # whatever else is hit


@pytest.mark.parametrize("noise", KINDS)
def test_bad_parameters_are_refused(noise, table):
    for level in (-0.1, 1.1, math.nan):
        with pytest.raises(dpf.InputError, match="from 0 to 1"):
            noise(table, level, seed=0)
    with pytest.raises(dpf.InputError, match="did you mean 'colour'"):
        noise(table, 0.5, seed=0, attributes=["color"])


@pytest.mark.parametrize("noise", [uniform_noise, distribution_preserving_noise])
def test_an_open_attribute_gets_no_noise_and_says_so(noise):
    schema = dpf.Schema([dpf.Open("town"), dpf.Boolean("ill")])
    table = dpf.table_from_columns({"town": ["Oslo", "Bergen"] * 4, "ill": ["yes", "no"] * 4}, schema)
    with pytest.raises(dpf.InputError, match="attribute 'town' is open, and gets no noise; give attributes without it"):
        noise(table, 0.5, seed=1)
    assert noise(table, 0.5, seed=1, attributes=["ill"]).rows == 8


def test_patterns_fade_as_noise_grows(table):
    patterns = cart(table, "ill").patterns()
    levels = (0, 0.2, 0.5, 1)
    kept = [retention_of(patterns, table, uniform_noise(table, level, seed=0)).to_dict() for level in levels]
    for name, sign in (("psd", 1), ("pld", 1), ("pattern_accuracy", -1)):
        values = [sign * one[name] for one in kept]
        assert values == sorted(values)
        assert values[0] < values[-1]
    moved = correlations({name: [one[name] for one in kept] for name in ("psd", "pld", "pattern_accuracy")})
    assert moved.between("psd", "pld") > 0.8
    assert moved.between("psd", "pattern_accuracy") < -0.8


def test_correlations_are_those_of_the_changes():
    rng = np.random.default_rng(0)
    measured = {"a": rng.random(6), "b": rng.random(6), "same": np.full(6, 0.3)}
    found = correlations({name: values.tolist() for name, values in measured.items()})
    a, b = (measured[name][1:] - measured[name][0] for name in "ab")
    assert found.between("a", "b") == pytest.approx(pearsonr(a, b).statistic)
    assert found.between("a", "a") == pytest.approx(1)
    assert math.isnan(found.between("a", "same"))
    assert str(found).endswith("Not private: measured on the rows themselves.")
    assert "not private" in repr(found)


@pytest.mark.parametrize("measured", [{}, {"a": [0, 1]}, {"a": [0, 1, 2], "b": [0, 1, 2, 3]}])
def test_correlations_need_as_many_levels_of_each(measured):
    with pytest.raises(dpf.InputError, match="one value without noise"):
        correlations(measured)

"""Rare values: which are merged, how tables of groups are counted, and how rows are dealt out to values again."""

import json
import math

import numpy as np
import pytest
from dpframework_tables import SyntheticRows, SyntheticTable
from dpframework_tables.merged_model import MergedModel, _of_groups
from dpframework_tables.merging import Merging
from dpframework_tables.queries import ModelDistances, NamedMarginal
from dpframework_tables.sampling import deal_out
from hypothesis import given, strategies as st

import dpframework as dpf
from dpframework.basics import NoisyHistogram
from dpframework.results import nearest_on_simplex

SIZES = (2, 12, 4)
ROWS = 4000


@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=6), min_size=1, max_size=3), st.data())
def test_a_table_of_groups_has_the_sums_of_their_values(groups, data):
    numbered = [np.unique(own, return_inverse=True)[1] for own in groups]
    merging = Merging(numbered)
    of = tuple(range(len(groups)))
    shape = [len(own) for own in groups]
    counts = np.array(data.draw(st.lists(st.integers(0, 9), min_size=math.prod(shape), max_size=math.prod(shape))))
    wanted = np.zeros(merging.sizes, dtype=int)
    for place, own in np.ndenumerate(counts.reshape(shape)):
        wanted[tuple(numbered[axis][code] for axis, code in enumerate(place))] += own
    assert np.array_equal(merging.table(counts.reshape(shape), of), wanted)
    again = Merging.of_flat(merging.flat, shape)
    assert [own.tolist() for own in again.groups] == [own.tolist() for own in merging.groups]


@pytest.mark.parametrize(
    ("counts", "deviation", "groups"),
    [
        ([90, 2, 40, -3, 4, 6], 5, [0, 2, 1, 2, 2, 2]),
        ([90, 2, 15, -3, 4, 6], 5, [0, 1, 1, 1, 1, 1]),  # 15 is three deviations: rare
        ([90, 2, 15.1, -3, 4, 6], 5, [0, 2, 1, 2, 2, 2]),
        ([90, 2, 40, 50, 4, 6], 5, [0, 1, 2, 3, 4, 5]),  # four of six values would be left
        ([90, 2, 40, 6], 5, [0, 1, 2, 3]),
        ([90, 2, 6, 7], 5, [0, 1, 1, 1]),
        ([90, 4, 5, 6], 5, [0, 1, 1, 1]),  # the mean is a deviation
        ([90, 4, 5, 6.1], 5, [0, 1, 2, 3]),
        ([-1, 2, -3, 1], 5, [1, 0, 1, 1]),  # the most frequent value is never rare
        ([3, 2], 5, [0, 1]),
        ([7], 5, [0]),
    ],
)
def test_values_are_merged_that_are_rare_one_by_one_and_together(counts, deviation, groups):
    merging = Merging.of_rare([np.array(counts, dtype=float)], [deviation])
    assert merging.groups[0].tolist() == groups
    assert merging.merges(0) == (groups != list(range(len(groups))))
    assert merging.sizes == (max(groups) + 1,)


@pytest.mark.parametrize("groups", [[[0, 2]], [[1, 1]], [[-1, 0]], [[[0], [1]]]])
def test_groups_are_numbered_from_0_on(groups):
    with pytest.raises(dpf.InputError, match="not numbered from 0 on"):
        Merging(groups)


def test_the_variance_of_groups_is_that_of_their_best_estimates_on_average():
    """Of 20,000 draws the mean is off by .3 %, so that 3 % are ten standard deviations."""
    merging = Merging([[0, 2, 1, 2, 2, 2, 2, 2]])
    draw = np.random.default_rng(0)
    rows = np.array([300.0, 5, 90, 1, 1, 1, 1, 1])
    squares = []
    for _ in range(20_000):
        noisy = rows + draw.normal(0, 4, 8)
        found = _of_groups(0, noisy + (400 - noisy.sum()) / 8, merging, 16.0)
        assert found.counts.sum() == pytest.approx(400)
        squares.append(((found.counts - [300, 90, 10]) ** 2).sum())
    assert np.mean(squares) == pytest.approx(found.variance * (3 - 1), rel=0.03)


def test_values_of_a_group_are_even_as_far_as_noise_explains_and_keep_its_rows():
    counts = np.array([500.0, *[3, -2, 6, 1, -4]])
    noisy = [NoisyHistogram(counts, variance) for variance in (25.0, 1e-4)]
    likely = [MergedModel.of_alone([one], Merging([[0, 1, 1, 1, 1, 1]]), 504.0).likely[0] for one in noisy]
    assert np.ptp(likely[0][1:]) < 0.5 * np.ptp(np.maximum(counts[1:], 0))
    assert likely[1][1:] == pytest.approx([2, 0, 5, 0, 0], abs=1.1)
    assert [one.sum() for one in likely] == pytest.approx([504, 504])
    assert all(own.min() >= 0 for own in likely)


@pytest.mark.parametrize(("number", "most"), [(2, 0.8), (10, 0.5)])
def test_a_model_of_attributes_with_one_frequent_value_is_nearer_than_the_simplex(number, most):
    """Of 20 attributes, whether rare values are merged or not, `most` if they are.

    Of 10 seeds the ratios are .59 with a standard error of .03 of 2 values, and .50 and .35 with .02 and .03 of 10.
    """
    exact, draw, off = np.array([9900.0, 100, *[0] * (number - 2)]), np.random.default_rng(8), []
    for _ in range(10):
        noisy = [exact + draw.normal(0, 300, number) for _ in range(20)]
        alone = [NoisyHistogram(own, 300.0**2) for own in noisy]
        for merging in (Merging.none([number] * 20), Merging([[0] + [1] * (number - 1)] * 20)):
            found = MergedModel.of_alone(alone, merging, 10_000.0)
            groups = [merging.table(exact, (a,)) for a in range(20)]
            nearest = [merging.table(nearest_on_simplex(own, 10_000.0), (a,)) for a, own in enumerate(noisy)]
            ours = sum(np.abs(found.model.marginal((a,)) - own).sum() for a, own in enumerate(groups))
            off.append(ours / sum(np.abs(a - b).sum() for a, b in zip(nearest, groups, strict=True)))
    assert np.mean(off[::2]) < 0.8
    assert np.mean(off[1::2]) < most


def test_rows_of_a_group_are_dealt_out_by_the_shares_of_its_values():
    groups = np.array([0] * 60 + [1] * 40, dtype=np.uint16)
    found = deal_out(groups, np.array([1, 0, 1, 1]), np.array([3.0, 9.0, 1.0, 0.0]), 5)
    assert np.bincount(found[:60], minlength=4).tolist() == [0, 60, 0, 0]
    assert np.bincount(found[60:], minlength=4).tolist() == [30, 0, 10, 0]


@pytest.mark.parametrize("rows", [[[0, 1, 2], [1, 2, 0]], [[0, 0, 0]]])
def test_queries_count_groups_as_the_table_of_groups_has_them(rows):
    """The same rows, once merged by the query and once by hand."""
    attributes = [dpf.Categorical(f"a{k}", [str(code) for code in range(3)]) for k in range(3)]
    groups = [[0, 1, 1], [0, 1, 2], [1, 0, 1]]
    small = [dpf.Categorical(f"a{k}", [str(code) for code in range(max(own) + 1)]) for k, own in enumerate(groups)]
    codes = np.array(rows).T
    coarse = np.array([np.array(own)[codes[k]] for k, own in enumerate(groups)])
    sets = [(0, 1), (0, 1, 2), (1, 2)]
    inputs = {"marginals": np.full(7, 0.4), "possible": (0, 1, 2)}
    flat = np.concatenate(groups)
    tables = [dpf.Table.from_codes(dpf.Schema(own), one) for own, one in ((attributes, codes), (small, coarse))]
    engine = dpf.InMemory()
    loaded = [engine.load(own) for own in tables]
    asked = [
        ModelDistances(attributes, sets).evaluate(engine, loaded[0], groups=flat, **inputs),
        ModelDistances(small, sets).evaluate(engine, loaded[1], **inputs),
    ]
    assert np.array_equal(*asked)
    named = [
        NamedMarginal(attributes, 27).evaluate(engine, loaded[0], marginal=("a0", "a2"), groups=flat),
        NamedMarginal(small, 12).evaluate(engine, loaded[1], marginal=("a0", "a2")),
    ]
    assert np.array_equal(*named)


@pytest.mark.parametrize("merges", [False, True])
def test_noise_that_all_counts_of_an_attribute_have_in_common_changes_no_model(merges):
    """The number of rows is given, so that counts with the same noise in their differences make the same model."""
    given_counts = [np.array([500.0, 310.0, 44.0, 12.0, 31.0, 9.0]), np.array([22.0, 4.0, 35.0, 51.0, 290.0, 490.0])]
    models = []
    for of_sum in (6 * 100.0, 0.0, 6 * 1000.0):
        alone = [NoisyHistogram(counts, 100 * (1 - 1 / 6) + of_sum / 36, of_sum) for counts in given_counts]
        merging = Merging([[0, 1, 2, 2, 2, 2], [0, 0, 0, 0, 1, 2]]) if merges else Merging.none([6, 6])
        models.append(MergedModel.of_alone(alone, merging, 900.0))
    for one in models[1:]:
        for name in ("likely", "potentials"):
            for found, expected in zip(getattr(one, name), getattr(models[0], name), strict=True):
                assert found == pytest.approx(expected, rel=1e-9)
        for measured, expected in zip(one.model.measured, models[0].model.measured, strict=True):
            assert measured.variance == pytest.approx(expected.variance, rel=1e-9)
    assert models[0].model.measured[0].variance == pytest.approx(100 * (1 + 3 / 6) if merges else 100, rel=0.01)


SCHEMA = dpf.Schema(
    [
        dpf.Boolean("ill"),
        dpf.Categorical("town", list("abcdefghijkl")),
        dpf.Numeric("age", 0, 80, cuts=[20, 40, 60]),
    ],
    about_rows=ROWS,
)


def run(method="tree", **budget):
    """One town has nearly all rows, and those of another are mostly ill."""
    draw = np.random.default_rng(3)
    town = draw.choice(12, ROWS, p=[0.7, 0.2, *[0.01] * 10])
    ill = draw.random(ROWS) < np.where(town == 1, 0.9, 0.1)
    codes = np.array([ill, town, draw.integers(0, 4, ROWS)]).astype(int)
    study = dpf.Study(SCHEMA, epsilon=100, delta="1e-6")
    study.add("rows", SyntheticTable(method=method, **budget))
    return dpf.Table.from_codes(SCHEMA, codes), study.run(dpf.Table.from_codes(SCHEMA, codes), seed=2)["rows"]


@pytest.mark.parametrize("method", ["tree", "rounds", "adaptive"])
def test_rare_towns_are_one_group_in_pairs_and_towns_again_in_the_rows(method):
    table, found = run(method, rho="0.002")
    assert found.merged == {"town": [0, 1, *[2] * 10]}
    assert found["town"].counts.shape == (12,)
    assert found["ill", "town"].counts.shape == (2, 3)
    assert found.codes[:, 1].max() > 2
    for code, most in ((0, 0.03), (1, 0.03), (5, 0.02)):
        shares = [np.mean(own == code) for own in (found.codes[:, 1], table.codes[1])]
        assert abs(shares[0] - shares[1]) < most
    of_ill = found.codes[found.codes[:, 1] == 1, 0].mean()
    assert of_ill > 0.75
    assert "rare values form one group in marginals of several attributes, in town" in str(found)
    assert found.provenance()["rare values merged"] == {"town": list("cdefghijkl")}


def test_merged_values_are_kept_as_json_with_the_rows():
    _, found = run(rho="0.002")
    again = SyntheticRows.from_dict(json.loads(found.to_json()))
    assert again == found
    assert np.array_equal(again.codes, found.codes)
    form = json.loads(found.to_json())
    for wrong in ({"town": [0, 1]}, {"nowhere": [0, 0]}, {"town": [0, 2, *[3] * 10]}, {"town": [0] * 12}):
        with pytest.raises(dpf.InputError):
            SyntheticRows.from_dict({**form, "merged": wrong})


def test_nothing_is_merged_where_counts_are_exact_enough():
    _, found = run(epsilon=20)
    assert found.merged == {}
    assert "rare values" not in str(found)
    assert found.provenance()["rare values merged"] == {}

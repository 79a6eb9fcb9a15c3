"""DILCA without privacy, against loops that follow its definitions."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from dpframework_distance.nonprivate import dilca

import dpframework as dpf


def entropy(rows):
    return -sum(n / len(rows) * math.log2(n / len(rows)) for n in Counter(rows).values())


@pytest.fixture(scope="module")
def codes():
    rng = np.random.default_rng(5)
    base = rng.integers(0, 4, 500)
    noise = rng.integers(0, 4, (6, 500))
    return np.where(rng.random((6, 500)) < np.linspace(0.1, 0.9, 6)[:, None], noise, base)


@pytest.fixture(scope="module")
def table(codes):
    return dpf.Table.from_codes(dpf.Schema([dpf.Categorical(f"a{k}", list("wxyz")) for k in range(6)]), codes)


def joint(codes, *of):
    return list(map(tuple, codes[list(of)].T.tolist()))


def su(codes, a, b):
    alone = entropy(joint(codes, a)) + entropy(joint(codes, b))
    return 2 * (alone - entropy(joint(codes, a, b))) / alone


def names(positions):
    return tuple(f"a{k}" for k in positions)


def test_mean_su(codes, table):
    for t in range(6):
        values = {k: su(codes, k, t) for k in range(6) if k != t}
        mean = sum(values.values()) / 5
        assert dilca(table)[f"a{t}"].context == names(k for k, value in values.items() if value >= mean)


def test_relevant_redundant(codes, table):
    for t in range(6):
        order = sorted((k for k in range(6) if k != t), key=lambda k: -su(codes, k, t))
        context = order[:1]
        context += [k for k in order[1:] if su(codes, k, t) > max(su(codes, k, c) for c in order[:1])]
        found = dilca(table, context="relevant-redundant")[f"a{t}"].context
        assert set(found) <= set(names(context))
        assert f"a{order[0]}" in found


@pytest.mark.parametrize("seed", range(6))
def test_contexts_of_attributes_of_several_sizes_and_uneven_shares(seed):
    rng = np.random.default_rng(seed)
    sizes = [2, 3, 5, 2, 4, 6]
    base = rng.random(400) ** 2
    codes = np.array(
        [
            np.minimum((base + rng.random(400) * w) ** rng.choice([0.4, 3]) / (1 + w) ** 3 * size, size - 1).astype(int)
            for size, w in zip(sizes, np.linspace(0.05, 0.8, 6), strict=True)
        ]
    )
    table = dpf.Table.from_codes(
        dpf.Schema([dpf.Categorical(f"a{k}", list("uvwxyz")[:size]) for k, size in enumerate(sizes)]), codes
    )
    means, others = dilca(table), dilca(table, context="relevant-redundant")
    for t in range(6):
        values = {k: su(codes, k, t) for k in range(6) if k != t}
        mean = sum(values.values()) / 5
        assert means[f"a{t}"].context == names(k for k, value in values.items() if value >= mean)
        context = []
        for k in sorted(values, key=lambda k: -values[k]):
            if all(values[k] > su(codes, k, c) for c in context):
                context.append(k)
        assert others[f"a{t}"].context == names(sorted(context))


@pytest.mark.parametrize("k", [1, 2, 3])
def test_max_dependency_and_relevance(codes, table, k):
    def information(t, of):
        return entropy(joint(codes, *of)) - entropy(joint(codes, *of, t))

    for t in range(6):
        others = [x for x in range(6) if x != t]
        best = max(itertools.combinations(others, k), key=lambda of: information(t, of))
        assert dilca(table, context="max-dependency", context_size=k)[f"a{t}"].context == names(best)
        each = sorted(others, key=lambda x: -information(t, (x,)))[:k]
        assert dilca(table, context="max-relevance", context_size=k)[f"a{t}"].context == names(sorted(each))
        assert dilca(table, context="max-dependency", context_size=k, target=f"a{t}")[f"a{t}"].context == names(best)


def test_distances_by_hand():
    schema = dpf.Schema([dpf.Boolean("y"), dpf.Boolean("x")])
    found = dilca(dpf.Table.from_codes(schema, [[0, 0, 0, 1], [0, 0, 1, 1]]), target="y")
    # P(y|x=0) = (1, 0), P(y|x=1) = (1/2, 1/2): sqrt((1 + 0) / 2)
    assert found["y"].matrix == pytest.approx(np.array([[0, 1], [1, 0]]) * math.sqrt((1 + 0) / 2))
    # P(x|y=0) = (2/3, 1/3), P(x|y=1) = (0, 1): sqrt((4/9 + 4/9) / 2)
    profiles = dilca(dpf.Table.from_codes(schema, [[0, 0, 0, 1], [0, 0, 1, 1]]), target="y", profiles=True)
    assert profiles["y"].matrix == pytest.approx(np.array([[0, 1], [1, 0]]) * 2 / 3)


def test_profiles_do_not_depend_on_how_common_a_value_is():
    """Two names of one thing are at distance 0, and the order of numbers is found, whatever their shares."""
    rng = np.random.default_rng(0)
    y = rng.choice(5, 20_000, p=[0.4, 0.05, 0.3, 0.05, 0.2])
    x = np.clip(y // 2 * 2 + rng.integers(-1, 3, 20_000), 0, 5)
    schema = dpf.Schema([dpf.Categorical("y", list("abcde")), dpf.Categorical("x", list("uvwxyz"))])
    table = dpf.Table.from_codes(schema, [y, x])
    found = dilca(table, target="y", profiles=True)["y"].matrix
    assert found[0, 1] < 0.05  # of one thing, eight times as common
    assert found[2, 3] < 0.05
    assert found[0, 2] > 0.2
    assert found[0, 4] > found[0, 2]
    assert dilca(table, target="y")["y"].matrix[0, 1] > 0.2


def test_bad_parameters_are_refused(table):
    for parameters, sentence in (
        ({"context": "M"}, "unknown"),
        ({"context": "max-dependency", "context_size": 9}, "context_size = 9"),
    ):
        with pytest.raises(dpf.InputError, match=sentence):
            dilca(table, **parameters)


def test_rows_of_several_blocks_are_one_table(codes, table, monkeypatch):
    whole = {context: dilca(table, context=context) for context in ("mean-su", "max-relevance", "max-dependency")}
    monkeypatch.setattr("dpframework.tables.in_process_engines.MOST_ROWS", 64)
    for context, expected in whole.items():
        found = dilca(table, context=context)
        assert found.contexts == expected.contexts
        assert all((found[name].matrix == expected[name].matrix).all() for name in expected)


def test_as_many_cells_are_counted_as_the_contexts_of_a_target_have(monkeypatch):
    """Of five attributes of two values: 10 pairs of 4 cells, and of each target 6 sets of three of 8 cells."""
    schema = dpf.Schema([dpf.Boolean(f"a{k}") for k in range(5)])
    table = dpf.Table.from_codes(schema, np.random.default_rng(2).integers(0, 2, (5, 50)))
    for size, cells in ((1, 40), (2, 48)):
        monkeypatch.setattr("dpframework_distance.subsets.MOST_CELLS", cells)
        assert len(dilca(table, context="max-dependency", context_size=size)) == 5
        monkeypatch.setattr("dpframework_distance.subsets.MOST_CELLS", cells - 1)
        with pytest.raises(dpf.InputError, match=f"with {cells} cells"):
            dilca(table, context="max-dependency", context_size=size)

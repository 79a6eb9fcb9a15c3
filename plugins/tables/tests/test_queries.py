"""The queries of rounds: distances from expected counts by hand, and counts that are kept for one question alone."""

import math

import numpy as np
import pytest
from dpframework_tables.queries import MOST_EXPECTED, ModelDistances

import dpframework as dpf

ATTRIBUTES = [dpf.Categorical(f"a{k}", [str(code) for code in range(3)]) for k in range(4)]
ENGINE = dpf.InMemory()


def block_of(seed: int, rows: int = 60):
    codes = np.random.default_rng(seed).integers(0, 3, (4, rows))
    return ENGINE.load(dpf.Table.from_codes(dpf.Schema(ATTRIBUTES), codes))[0]


def test_no_query_takes_what_another_one_has_counted_of_the_same_rows():
    """In any order on one block, each has the counts that it has on a block of its own."""
    groups = [np.tile(own, 3) for own in ([0, 1, 2], [0, 0, 1], [0, 1, 1])]
    asked = [
        (ModelDistances(of, [one]), own)
        for of in (ATTRIBUTES[:3], ATTRIBUTES[1:])
        for one in ((0, 1), (0, 2), (1, 2))
        for own in groups
    ]
    alone = [query.count(block_of(1), groups=own) for query, own in asked]
    assert len({found.tobytes() for found in alone}) > 9  # so that most would be noticed in the place of another
    shared = block_of(1)
    for k in np.random.default_rng(2).permutation(np.repeat(np.arange(18), 2)).tolist():
        query, own = asked[k]
        assert np.array_equal(query.count(shared, groups=own), alone[k])


@pytest.mark.parametrize("meant", [50, 35, 1])
@pytest.mark.parametrize("seed", range(3))
def test_drawn_rows_are_counted_anew_for_each_marginal_whatever_the_order(seed, meant):
    """Pairs and triples that begin with the same attributes follow each other in any order."""
    rng = np.random.default_rng(seed)
    sets = [(0, 1), (0, 1, 2), (0, 2), (0, 2, 3), (0, 3), (1, 2), (1, 2, 3), (1, 3), (0, 1, 3)]
    sets = [sets[k] for k in rng.permutation(len(sets)).tolist()]
    drawn, block = rng.integers(0, 3, (50, 4)), block_of(seed)
    given = {"drawn": drawn, "rows_meant": meant, "possible": range(len(sets)), "noise": 2}
    found = ModelDistances(ATTRIBUTES, sets).evaluate(ENGINE, (block,), **given)
    rows = np.array([block.codes(a.name) for a in ATTRIBUTES]).T
    for one, score in zip(sets, found.tolist(), strict=True):
        counts = [np.histogramdd(own[:, one], bins=[np.arange(4)] * len(one))[0] for own in (rows, drawn)]
        assert score == np.abs(counts[0] - np.rint(counts[1] * (meant / 50))).sum() - 2 * 3 ** len(one)


@pytest.mark.parametrize("size", [1e-320, 0.4, 8.0, 1e9, 1e12, 1e300, -5.0, math.nan])
def test_expected_counts_are_whole_numbers_in_the_range_of_the_claim(size):
    """Also those of marginals of which noise, or whoever gives them, has made anything."""
    marginals = np.full(12, size) * np.tile([1.0, 2.0, 3.0], 4)
    block = block_of(5)
    with np.errstate(over="ignore"):
        (score,) = ModelDistances(ATTRIBUTES, [(0, 1)]).evaluate(ENGINE, (block,), marginals=marginals, possible=(0,))
    counts = np.histogram2d(block.codes("a0"), block.codes("a1"), bins=[np.arange(4)] * 2)[0]
    if size > 0:
        shares = np.outer([1, 2, 3], [1, 2, 3]) / 36
        expected = np.clip(np.rint(shares * size * 6), 0, MOST_EXPECTED)
    else:
        expected = np.zeros((3, 3))
    assert score == np.abs(counts - expected).sum()

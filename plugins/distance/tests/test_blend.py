"""Learned distances blended with overlap: by released shares, by how much is noise, and still Euclidean."""

import attrs
import numpy as np
import pytest
from dpframework_distance import CategoricalMetric, DPDilca, LearnedDistances, ValueDistances, ValueEmbedding
from dpframework_distance.signal_to_noise import is_noise, signal_in, spread

import dpframework as dpf

SCHEMA = dpf.Schema(
    [dpf.Categorical("city", ["a", "b", "c"]), dpf.Categorical("job", list("vwxyz")), dpf.Boolean("ill")], rows=2_000
)
SHARES = np.array([0.5, 0.3, 0.2])


def table(seed=0, even=False):
    """Rows whose job follows their city, or rows of attributes that are even and have nothing to do with each other."""
    rng = np.random.default_rng(seed)
    city = rng.choice(3, 2_000, p=None if even else SHARES)
    job = rng.integers(0, 5, 2_000) if even else (city + rng.choice(3, 2_000, p=[0.8, 0.1, 0.1])) % 5
    return dpf.Table.from_codes(SCHEMA, [city, job, rng.integers(0, 2, 2_000)])


def learned(epsilon, rows, seed=0, **parameters):
    study = dpf.Study(SCHEMA, epsilon=epsilon, relation="replace-one")
    study.add("distances", DPDilca(epsilon, **parameters))
    return study.run(rows, seed=seed)["distances"]


def test_a_blend_gives_each_attribute_the_weight_that_it_has_in_overlap():
    matrix = np.array([[0, 0.1, 0.4], [0.1, 0, 0.3], [0.4, 0.3, 0]])
    overlap = 1 - np.eye(3)
    for signal, context in ((0.0, ()), (0.4, ("job",)), (1.0, ("job",)), (1.0, ())):
        one = ValueDistances(SCHEMA["city"], context, matrix, SHARES, signal)
        squares = np.square(one.blend())
        assert SHARES @ squares @ SHARES == pytest.approx(1 - (SHARES**2).sum())
        scale = (1 - (SHARES**2).sum()) / (SHARES @ matrix**2 @ SHARES)
        weight = signal / 2 if context else signal / 4
        assert squares == pytest.approx((1 - weight) * overlap + weight * scale * matrix**2)
    assert np.square(ValueDistances(SCHEMA["city"], (), 0 * matrix, SHARES).blend()) == pytest.approx(overlap)


def test_a_metric_of_blends_is_euclidean_and_each_way_to_it_agrees():
    found, rows = learned(4, table()), table(1).codes.T[:40].astype(np.int64)
    plain, blend = CategoricalMetric(found), CategoricalMetric(found, blend=True)
    points, between = blend.embed(rows), blend.pairwise(rows)
    assert np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=2)) == pytest.approx(between, abs=1e-6)
    assert blend(rows[0], rows[1]) == pytest.approx(between[0, 1])
    assert not np.allclose(between, plain.pairwise(rows))
    embedding = ValueEmbedding(found, blend=True).fit(rows)
    assert embedding.transform(rows) == pytest.approx(points)


def test_noise_counts_for_overlap_and_what_is_told_does_not():
    told, noise = learned(20, table()), learned(0.02, table(even=True))
    assert told["job"].signal > 0.9
    assert noise["job"].signal < 0.5
    assert told["ill"].signal == noise["ill"].signal == 1.0  # two values have one distance
    assert told["city"].shares == pytest.approx(SHARES, abs=0.05)
    moved = learned(20, table(), context="none")["job"]
    assert (moved.context, moved.signal > 0.9) == ((), True)
    one = told["job"].matrix
    assert signal_in(one, []) == signal_in(one, [one]) == 1.0
    assert signal_in(one, [1 - np.eye(5), one]) == pytest.approx(max(0, 1 - _spread(1 - np.eye(5), one) / 2))


@pytest.mark.parametrize("epsilon", [1, 20])
def test_a_blend_is_overlap_alone_where_values_are_as_common_as_each_other(epsilon):
    """Neighbours that are equally near stay so: noise puts them in no order."""
    even, rows = learned(epsilon, table(even=True)), table(1).codes.T[:40].astype(np.int64)
    assert 1 <= np.mean([one.unevenness for one in even.values()]) <= 1.2
    assert any(not np.allclose(one.blend(), 1 - np.eye(len(one.matrix)), atol=1e-4) for one in even.values())
    unequal = (rows[:, None] != rows[None]).sum(axis=2)
    assert np.square(CategoricalMetric(even, blend=True).pairwise(rows)) == pytest.approx(unequal, abs=1e-9)

    uneven = learned(epsilon, table())
    assert uneven["city"].unevenness == pytest.approx(3 * uneven["city"].shares.max())
    assert np.mean([one.unevenness for one in uneven.values()]) > 1.2
    for name, own in uneven.blend().items():
        assert own.tolist() == uneven[name].blend().tolist()


def _spread(other, one):
    upper = np.triu_indices(5, 1)
    off, own = ((other**2 - one**2)[upper], (one**2)[upper])
    return ((off - off.mean()) ** 2).sum() / ((own - own.mean()) ** 2).sum()


def test_shares_are_kept_and_a_blend_without_them_is_refused():
    found = learned(4, table())
    again = LearnedDistances.from_json(found.to_json())
    assert again["job"].shares.tolist() == found["job"].shares.tolist()
    assert again["job"].signal == found["job"].signal
    published = learned(4, table(), context="max-dependency", context_size=2)
    assert LearnedDistances.from_json(published.to_json())["job"].shares is None
    with pytest.raises(dpf.InputError, match=r"'city' come without shares of the rows.*context = 'auto'"):
        CategoricalMetric(published, blend=True)
    form = found.to_dict()
    for wrong in ({"shares": [1.0]}, {"signal": 2.0}, {"shares": [-1.0, 1.0, 1.0]}):
        changed = [{**form["distances"][0], **wrong}, *form["distances"][1:]]
        with pytest.raises(dpf.InputError, match="one share per value"):
            LearnedDistances.from_dict({**form, "distances": changed})
    assert CategoricalMetric(attrs.evolve(found, covered=False), blend=True).attributes == ("city", "job", "ill")


def test_distances_differ_by_what_their_squares_are_off_their_mean() -> None:
    """Each pair counts once, and equal distances are no more than noise."""
    squares = np.array([[0, 1.0, 2.0], [1.0, 0, 6.0], [2.0, 6.0, 0]])
    assert spread(squares) == pytest.approx(4 + 1 + 9)  # of 1, 2 and 6 about 3
    flat = 1 - np.eye(3)
    assert spread(flat) == 0
    assert is_noise(flat, [flat])
    assert signal_in(flat, [np.sqrt(squares)]) == 1.0  # nothing differs that noise could move
    assert signal_in(np.sqrt(squares), [np.sqrt(1.5 * squares)]) == pytest.approx(0.75)
    assert is_noise(np.sqrt(squares), [np.sqrt(2 * squares)])  # moved by as much as they differ
    assert not is_noise(np.sqrt(squares), [np.sqrt(1.9 * squares)])

"""What comes out, and what is done with it: files, heat maps, metrics, embeddings."""

import itertools
import json
import pickle

import matplotlib
import numpy as np
import pytest
from dpframework_distance import CategoricalMetric, DPDilca, LearnedDistances, ValueDistances, dilca
from dpframework_distance.metric import coordinates
from dpframework_distance.transformer import ValueEmbedding
from scipy.cluster.hierarchy import fcluster, ward
from scipy.spatial.distance import squareform
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

import dpframework as dpf

matplotlib.use("Agg")


@pytest.fixture(scope="module")
def table():
    attributes = [dpf.Categorical("town", ["A", "B", "C, D"]), dpf.Boolean("ill", missing=True)]
    attributes += [dpf.Categorical(f"a{k}", list("wxyz")) for k in range(3)]
    schema = dpf.Schema([*attributes, dpf.Categorical("one", ["only"])], rows=300)
    rng = np.random.default_rng(0)
    towns = rng.integers(0, 3, 300)
    codes = [towns, np.where(rng.random(300) < 0.5, towns, 2), *((towns + rng.integers(0, 2, (3, 300))) % 4)]
    return dpf.Table.from_codes(schema, np.array([*codes, np.zeros(300, int)]))


@pytest.fixture(scope="module")
def learned(table):
    study = dpf.Study(table.schema, epsilon=5, relation="replace-one")
    study.add("d", DPDilca(5, context="max-dependency", context_size=2))
    return study.run(table, seed=0)["d"]


@pytest.fixture(scope="module")
def metric(learned):
    return CategoricalMetric(learned)


def naive(metric, codes, others):
    total = np.zeros((len(codes), len(others)))
    for k, name in enumerate(metric.attributes):
        total += metric.distances[name].matrix[codes[:, k][:, None], others[:, k]] ** 2
    return np.sqrt(total)


def test_distances_are_metrics(learned):
    for distances in learned.values():
        matrix = distances.matrix
        assert (matrix == matrix.T).all()
        assert (matrix.diagonal() == 0).all()
        assert ((matrix >= 0) & (matrix <= 1)).all()
        assert (matrix[:, None, :] <= matrix[:, :, None] + matrix[None, :, :] + 1e-12).all()


def test_json_is_read_back(learned):
    again = LearnedDistances.from_json(learned.to_json())
    assert again.contexts == learned.contexts
    assert all((again[name].matrix == learned[name].matrix).all() for name in learned)
    assert again.schema == learned.schema
    json.dumps(learned.to_dict(), allow_nan=False)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"schema": {"attribute": []}, "distances": []}'])
def test_what_is_no_json_of_distances_is_refused(text):
    with pytest.raises(dpf.InputError):
        LearnedDistances.from_json(text)


def test_json_with_a_matrix_of_the_wrong_shape_is_refused(learned):
    form = json.loads(learned.to_json())
    form["distances"][0]["distances"] = [[0.0]]
    with pytest.raises(dpf.InputError, match="one distance per pair"):
        LearnedDistances.from_json(json.dumps(form))


def test_csv_is_quoted_and_one_file_an_attribute(learned, tmp_path):
    lines = learned["town"].to_csv().splitlines()
    assert lines[0] == 'town,A,B,"C, D"'
    assert float(lines[1].split(",")[2]) == learned["town"].matrix[0, 1]
    learned.write_csv(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"{k:02} {name}.csv" for k, name in enumerate(learned, 1)
    ]
    with pytest.raises(dpf.InputError, match="no such folder"):
        learned.write_csv(tmp_path / "none")


def test_values_are_asked_for_by_label(learned):
    assert learned["town"].between("A", "C, D") == learned["town"].matrix[0, 2]
    with pytest.raises(dpf.InputError, match="no value 'E'"):
        learned["town"].between("A", "E")
    with pytest.raises(dpf.InputError, match="did you mean 'town'"):
        learned["twon"]
    assert "one" not in learned


def test_heat_map_and_table_show_every_value(learned):
    axes = learned["town"].plot()
    assert [text.get_text() for text in axes.get_xticklabels()] == ["A", "B", "C, D"]
    assert axes.images[0].get_array().shape == (3, 3)
    matplotlib.pyplot.close("all")
    assert "C, D" in str(learned["town"])
    assert str(learned).count("from") == len(learned)


def test_five_heat_maps_are_three_beside_each_other_in_two_lines(learned):
    axes = learned.plot()
    assert (axes.shape, len(learned)) == ((2, 3), 5)
    assert axes[0, 0].figure.get_size_inches().tolist() == [15, 8]
    assert [place.axison for place in axes.flat] == [True] * 5 + [False]
    assert [len(place.get_xticklabels()) for place in axes.flat[:5]] == [len(one.matrix) for one in learned.values()]
    matplotlib.pyplot.close("all")


def test_distances_without_privacy_say_so(table):
    plain = dilca(table)
    assert str(plain).startswith("not private")
    assert plain.to_dict()["private"] is False
    assert LearnedDistances.from_json(plain.to_json()).covered is False


@pytest.mark.parametrize("block", [1, 7, 100, 1000])
def test_pairwise_distances_by_blocks(metric, table, block):
    codes = metric.encode(table)
    expected = naive(metric, codes, codes)
    found = np.full_like(expected, np.nan)
    for here, there, part in metric.blocks(codes, block=block):
        found[here, there] = part
        found[there, here] = part.T
    assert found == pytest.approx(expected, abs=1e-12)
    assert metric.pairwise(codes) == pytest.approx(expected, abs=1e-12)
    assert metric.pairwise(codes[:9], codes[5:]) == pytest.approx(expected[:9, 5:], abs=1e-12)
    assert metric.pairwise(codes, dtype=np.float32).dtype == np.float32
    assert metric.condensed(codes) == pytest.approx(squareform(expected, checks=False), abs=1e-12)


def test_each_pair_of_blocks_comes_once(metric, table):
    codes = metric.encode(table)
    found = [(here.start, there.start) for here, there, _ in metric.blocks(codes[:20], block=7)]
    assert found == [(0, 0), (0, 7), (0, 14), (7, 7), (7, 14), (14, 14)]
    expected, both = naive(metric, codes[:20], codes[30:40]), np.full((20, 10), np.nan)
    for here, there, part in metric.blocks(codes[:20], codes[30:40], block=7):
        assert np.isnan(both[here, there]).all()
        both[here, there] = part
    assert both == pytest.approx(expected, abs=1e-12)


def test_the_metric_is_what_scikit_learn_takes(metric, table):
    from sklearn.neighbors import NearestNeighbors

    codes = metric.encode(table)[:20]
    assert metric(codes[0], codes[7]) == pytest.approx(metric.pairwise(codes)[0, 7], abs=1e-12)
    found, _ = NearestNeighbors(n_neighbors=3, metric=metric, algorithm="brute").fit(codes).kneighbors(codes)
    assert found == pytest.approx(np.sort(metric.pairwise(codes), axis=1)[:, :3], abs=1e-9)


def test_condensed_distances_over_several_blocks(metric, table):
    codes = np.tile(metric.encode(table), (8, 1))
    assert len(codes) > 2 * 1024
    expected = squareform(naive(metric, codes, codes), checks=False)
    assert np.allclose(metric.condensed(codes), expected, rtol=0, atol=1e-12)


def test_a_large_matrix_is_made_only_when_asked_for(metric, table):
    codes = np.repeat(metric.encode(table), 100, axis=0)
    for ask in (metric.pairwise, metric.condensed, metric.linkage):
        with pytest.raises(dpf.InputError, match="GiB"):
            ask(codes)


def test_what_is_large_is_counted_in_the_distances_that_are_made(metric, table, monkeypatch):
    """Of 10 rows 45 in scipy's form, of 9 by 5 rows as many in a matrix."""
    monkeypatch.setattr("dpframework_distance.metric.MOST_PAIRS", 45)
    codes = metric.encode(table)[:11]
    assert len(metric.condensed(codes[:10])) == 45
    assert metric.pairwise(codes[:9], codes[:5]).size == 45
    for make in (lambda: metric.condensed(codes), lambda: metric.pairwise(codes[:7])):
        with pytest.raises(dpf.InputError, match=r"distances take 0\.0 GiB; iterate over blocks"):
            make()
    assert len(metric.condensed(codes, large=True)) == 55


def test_euclidean_distance_of_the_embedding_is_the_metric(metric, table):
    codes = metric.encode(table)
    points = metric.embed(codes)
    apart = np.sqrt(np.square(points[:, None] - points[None]).sum(axis=2))
    assert apart == pytest.approx(metric.pairwise(codes), abs=1e-9)


def test_classical_scaling_of_random_points():
    rng = np.random.default_rng(0)
    for dimensions, scale in itertools.product((1, 3, 6), (1e-9, 1, 1e6)):
        points = rng.normal(size=(7, dimensions), scale=scale)
        apart = np.sqrt(np.square(points[:, None] - points[None]).sum(axis=2))
        found = coordinates(apart)
        assert found.shape[1] <= dimensions
        assert np.sqrt(np.square(found[:, None] - found[None]).sum(axis=2)) == pytest.approx(apart, abs=1e-9 * scale)
    assert coordinates(np.zeros((4, 4))).shape == (4, 0)


def test_wards_clusters_are_scipys(metric, table):
    codes = metric.encode(table)
    expected = fcluster(ward(squareform(naive(metric, codes, codes), checks=False)), 3, criterion="maxclust") - 1
    assert (metric.clusters(table, 3) == expected).all()
    assert metric.clusters(codes[:1], 1).tolist() == [0]
    for number in (0, 301, 2.0):
        with pytest.raises(dpf.InputError, match="whole number of clusters"):
            metric.clusters(table, number)


def test_rows_that_are_equal_are_clusters_of_their_own_if_as_many_are_asked_for(metric, table):
    apart = np.unique(metric.encode(table), axis=0)[:3]
    codes = apart[[0, 0, 1, 1, 2]]
    assert sorted(metric.clusters(codes, 5)) == [0, 1, 2, 3, 4]
    assert len(set(metric.clusters(codes, 3)[[0, 2, 4]])) == 3
    assert [len(set(metric.clusters(apart, number))) for number in (1, 2, 3)] == [1, 2, 3]


def test_what_lacks_is_named_by_what_was_given(metric):
    import polars as pl

    columns = {"town": ["A"], "a0": ["w"], "a1": ["x"], "a2": ["y"]}
    with pytest.raises(dpf.InputError, match=r"^the columns lack attribute 'ill', which the metric reads$"):
        metric.encode(columns)
    with pytest.raises(dpf.InputError, match=r"^frame: has no column 'ill'; correct the names"):
        metric.encode(pl.DataFrame(columns))


def test_rows_may_be_a_table_a_frame_columns_or_codes(metric, table):
    import polars as pl

    columns = {"town": ["A", "C, D"], "ill": [True, None], "a0": ["w", "z"], "a1": ["x", "x"], "a2": ["y", "z"]}
    expected = [[0, 1, 0, 1, 2], [2, 2, 3, 1, 3]]
    assert metric.encode(columns).tolist() == expected
    assert metric.encode(pl.DataFrame(columns)).tolist() == expected
    assert metric.encode(np.array(expected)).tolist() == expected
    assert metric.encode(np.array(expected, dtype=float)).tolist() == expected
    assert metric.encode(expected).tolist() == expected
    assert metric.encode(table).shape == (300, 5)


def test_a_code_is_below_the_size_of_its_attribute(metric):
    sizes = [metric.distances[name].attribute.size for name in metric.attributes]
    largest = np.array([sizes]) - 1
    assert metric.encode(largest).tolist() == largest.tolist()
    for k in range(len(sizes)):
        with pytest.raises(dpf.InputError, match="outside its attribute's domain"):
            metric.encode(largest + np.eye(len(sizes), dtype=int)[k])


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (np.zeros((2, 4), int), "codes must be whole numbers"),
        (np.full((2, 5), 0.5), "codes must be whole numbers"),
        (np.full((2, 5), np.nan), "codes must be whole numbers"),
        ([["A", "B", "C", "D", "E"]], "codes must be whole numbers"),
        (np.full((2, 5), 9), "outside its attribute's domain"),
        (np.full((2, 5), -1), "outside its attribute's domain"),
        ({"town": ["A"]}, "ill"),
    ],
)
def test_rows_that_do_not_fit_are_refused(metric, rows, sentence):
    with pytest.raises(dpf.InputError, match=sentence):
        metric.encode(rows)


def test_a_table_of_another_schema_is_refused(metric):
    other = dpf.Schema([dpf.Categorical("town", ["A", "B"]), *(dpf.Boolean(n) for n in ("ill", "a0", "a1", "a2"))])
    with pytest.raises(dpf.InputError, match="not the one whose distances"):
        metric.encode(dpf.Table.from_codes(other, np.zeros((5, 3), int)))


def test_distances_of_no_attribute_make_no_metric(table):
    with pytest.raises(dpf.InputError, match="at least one"):
        CategoricalMetric(LearnedDistances(table.schema, {}))


def test_the_transformer_in_a_pipeline(metric, learned, table):
    codes = metric.encode(table)
    y = codes[:, 0]
    model = make_pipeline(ValueEmbedding(learned), KNeighborsClassifier(1)).fit(codes, y)
    assert (model.predict(codes) == y).mean() > 0.9
    transformer = clone(model[0])
    assert transformer.fit_transform(codes).shape[1] == len(transformer.get_feature_names_out())
    assert transformer.n_features_in_ == 5


def test_the_transformer_passes_scikit_learns_checks_that_need_no_rows(learned):
    """The others fit on numbers of columns and values of their own, which have no distances."""
    passed = {
        result["check_name"]
        for result in check_estimator(ValueEmbedding(learned), on_fail=None, on_skip=None)
        if result["status"] == "passed"
    }
    assert passed >= {
        "check_estimator_cloneable",
        "check_estimator_repr",
        "check_estimator_tags_renamed",
        "check_estimators_unfitted",
        "check_get_params_invariance",
        "check_mixin_order",
        "check_no_attributes_set_in_init",
        "check_do_not_raise_errors_in_init_or_set_params",
        "check_parameters_default_constructible",
        "check_set_params",
        "check_transformers_unfitted",
        "check_valid_tag_types",
    }


def test_a_fitted_transformer_is_pickled(learned):
    rows = np.zeros((2, 5), dtype=int)
    fitted = ValueEmbedding(learned).fit(rows)
    assert (pickle.loads(pickle.dumps(fitted)).transform(rows) == fitted.transform(rows)).all()


def test_the_transformer_refuses_rows_that_do_not_fit(learned):
    with pytest.raises(dpf.InputError, match="outside its attribute's domain"):
        ValueEmbedding(learned).fit(np.full((3, 5), 9))
    named = ValueEmbedding(learned).set_output(transform="polars").fit_transform(np.zeros((3, 5)))
    assert named.columns[0] == "town_0"


def test_the_transformer_learns_by_itself(table):
    schema = dpf.Schema(table.schema.attributes, rows=300)
    transformer = ValueEmbedding(schema=schema, epsilon=2, relation="replace-one", context_size=2, random_state=0).fit(
        table
    )
    again = clone(transformer).fit(table)
    assert (transformer.transform(table) == again.transform(table)).all()
    from_codes = clone(transformer).fit(table.codes.T.astype(float))
    assert (from_codes.transform(table) == again.transform(table)).all()
    with pytest.raises(dpf.InputError, match="or a schema"):
        ValueEmbedding().fit(table)


def test_one_attributes_distances_print_long_names_short():
    attribute = dpf.Categorical("x", ["a" * 40, "b"])
    assert "aaaa…" in str(ValueDistances(attribute, ("y",), np.zeros((2, 2))))

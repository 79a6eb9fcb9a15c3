"""Pattern retention: the paper's toy properties, brute force, and what holds for any patterns and tables."""

from __future__ import annotations

import math

import attrs
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

import dpframework as dpf
from dpframework.facts.logical_descriptions_of_rows import And, Below, Equals, Not
from dpframework.lab.clinic import clinic_table
from dpframework.lab.evaluation import retention_of, select_rows
from dpframework.lab.evaluation.pattern_retention_between_tables import chi_squared_distance, class_counts
from dpframework.lab.evaluation.sklearn_baselines import EncodedClassifier, Encoding, cart
from dpframework.results import Pattern

SCHEMA = dpf.Schema(
    [
        dpf.Categorical("colour", ["red", "green", "blue"]),
        dpf.Numeric("size", 0, 8, cuts=[3, 5], missing=True),
        dpf.Categorical("class", ["good", "bad", "ugly"]),
    ]
)
RED, GREEN, BLUE = (Equals("colour", value) for value in ("red", "green", "blue"))
GOOD, BAD = Equals("class", "good"), Equals("class", "bad")
X1, X2 = Pattern(And([RED]), GOOD), Pattern(And([Not(RED)]), BAD)


def table_of(rows: list[tuple[int, int, int]]) -> dpf.Table:
    return dpf.Table.from_codes(SCHEMA, np.array(rows, dtype=int).reshape(-1, 3).T)


def rows_of(*groups: tuple[int, int, int]) -> dpf.Table:
    """Make rows of (colour, class, how many)."""
    return table_of([(colour, 0, label) for colour, label, times in groups for _ in range(times)])


D = rows_of((0, 0, 6), (0, 1, 2), (1, 1, 8))


def test_nothing_changes_where_m_is_d():
    kept = retention_of([X1, X2], D, D)
    assert (kept.accuracy, kept.accuracy_loss, kept.psd, kept.pld) == (14 / 16, 0, 0, 0)


def test_pld_sees_a_class_distribution_that_accuracy_does_not():
    # two classes that the pattern does not predict change places
    before, after = rows_of((0, 0, 6), (0, 1, 2)), rows_of((0, 0, 6), (0, 2, 2))
    kept = retention_of([X1], before, after)
    assert (kept.accuracy_loss, kept.psd) == (0, 0)
    assert kept.pld == pytest.approx(0.25)


def test_accuracy_stays_where_patterns_change_places():
    """What one pattern wins the other loses: of the three measures, PLD alone sees it."""
    before = rows_of((0, 0, 8), (0, 1, 2), (1, 1, 5), (1, 0, 5))
    after = rows_of((0, 0, 5), (0, 1, 5), (1, 1, 8), (1, 0, 2))
    kept = retention_of([X1, X2], before, after)
    assert (kept.accuracy_loss, kept.psd) == (0, 0)
    assert kept.pld > 0.04


def test_psd_sees_a_support_that_pld_does_not():
    after = rows_of((0, 0, 3), (0, 1, 1), (1, 1, 12))
    kept = retention_of([X1, X2], D, after)
    assert kept.pld == 0
    assert kept.psd == 4 / 16
    assert kept.support_distances.tolist() == [4 / 16, 4 / 16]


def test_each_pattern_is_reported():
    after = rows_of((0, 0, 2), (0, 1, 2), (1, 1, 12))
    kept = retention_of([X1, X2], D, after)
    assert kept.supports.tolist() == [[8, 4], [8, 12]]
    # (3/4, 1/4) and (1/2, 1/2): half of (1/16) / (5/4) + (1/16) / (3/4)
    assert kept.label_distances == pytest.approx([(1 / 20 + 1 / 12) / 2, 0])
    text = str(kept)
    assert "colour = red  ->  class = good" in text
    assert text.endswith("Not private: measured on the rows themselves.")
    assert "not private" in repr(kept)


def test_a_pattern_without_rows_has_no_label_distance_and_is_left_out():
    after = rows_of((1, 0, 4), (1, 1, 12))
    kept = retention_of([X1, X2], D, after)
    assert math.isnan(kept.label_distances[0])
    assert kept.pld == kept.label_distances[1] > 0
    nothing = retention_of([Pattern(BLUE, GOOD)], D, D)
    assert (nothing.psd, math.isnan(nothing.pld), math.isnan(nothing.accuracy)) == (0, True, True)


@pytest.mark.parametrize(
    ("p", "q", "distance"),
    [
        ([1, 0], [0, 1], 1),
        ([2, 2], [1, 1], 0),
        ([1, 1], [1, 0], (0.25 / 1.5 + 0.25 / 0.5) / 2),
        ([0, 3, 1], [0, 3, 1], 0),
    ],
)
def test_chi_squared_distance(p, q, distance):
    assert float(chi_squared_distance(p, q)) == pytest.approx(distance)
    assert float(chi_squared_distance(q, p)) == pytest.approx(distance)


TABLES = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=12)
LITERALS = st.sampled_from([RED, GREEN, BLUE, Below("size", 3), Below("size", 5)])
PARTS = st.lists(st.one_of(LITERALS, LITERALS.map(Not)), max_size=2)
PATTERNS = st.lists(
    st.builds(
        Pattern,
        PARTS.map(And),
        st.sampled_from(["good", "bad", "ugly"]).map(lambda v: Equals("class", v)),
        st.floats(0.1, 10),
    ),
    min_size=1,
    max_size=4,
)


def brute_force(patterns, before, after):
    """The definitions, row by row: size codes 0 to 2 are below 3, below 5, the rest; 3 is missing."""

    def literal(test, row):
        if isinstance(test, Not):
            if isinstance(test.part, Below) and row[1] == 3:
                return False  # a missing value satisfies no test, negated or not
            return not literal(test.part, row)
        if isinstance(test, Equals):
            return row[0] == ["red", "green", "blue"].index(test.value)
        return row[1] < 3 and row[1] < {3: 1, 5: 2}[test.threshold]

    def covered(pattern, rows):
        return [row for row in rows if all(literal(test, row) for test in pattern.description.parts)]

    right = made = support = labels = known = total = 0
    for pattern in patterns:
        w, old, new = pattern.weight, covered(pattern, before), covered(pattern, after)
        total += w
        support += w * abs(len(old) - len(new)) / len(before)
        made += w * len(new)
        right += w * sum(row[2] == ["good", "bad", "ugly"].index(pattern.label.value) for row in new)
        if old and new:
            shares = [[sum(row[2] == c for row in rows) / len(rows) for c in range(3)] for rows in (old, new)]
            labels += w * sum((p - q) ** 2 / (p + q) for p, q in zip(*shares, strict=True) if p + q) / 2
            known += w
    return support / total, labels / known if known else math.nan, right / made if made else math.nan


@settings(max_examples=150)
@given(PATTERNS, TABLES, TABLES)
def test_measures_are_their_definitions(patterns, before, after):
    kept = retention_of(patterns, table_of(before), table_of(after))
    found = (kept.psd, kept.pld, kept.accuracy)
    assert found == pytest.approx(brute_force(patterns, before, after), nan_ok=True)


@settings(max_examples=100)
@given(PATTERNS, TABLES, st.data(), st.floats(0.01, 100))
def test_ranges_symmetry_and_scale(patterns, before, data, scale):
    size = {"min_size": len(before), "max_size": len(before)}
    after = data.draw(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 2)), **size))
    d, m = table_of(before), table_of(after)
    kept, back, same = retention_of(patterns, d, m), retention_of(patterns, m, d), retention_of(patterns, d, d)
    assert 0 <= kept.psd <= 1
    assert math.isnan(kept.pld) or 0 <= kept.pld <= 1 + 1e-12
    assert math.isnan(kept.accuracy) or 0 <= kept.accuracy <= 1 + 1e-12
    assert (kept.psd, kept.pld) == pytest.approx((back.psd, back.pld), nan_ok=True)
    assert kept.accuracy_loss == pytest.approx(-back.accuracy_loss, nan_ok=True)
    assert same.psd == 0
    assert math.isnan(same.pld) or same.pld == 0
    scaled = [attrs.evolve(pattern, weight=pattern.weight * scale) for pattern in patterns]
    assert retention_of(scaled, d, m).to_dict() == pytest.approx(kept.to_dict(), nan_ok=True)


@pytest.mark.parametrize(
    ("patterns", "sentence"),
    [
        ([], "there are no patterns"),
        ([X1, Pattern(BLUE, RED)], "one class attribute at a time"),
        ([Pattern(RED, Equals("class", "god"))], "did you mean 'good'"),
        ([Pattern(Equals("color", "red"), GOOD)], "colour"),
    ],
)
def test_patterns_that_do_not_fit_are_refused(patterns, sentence):
    with pytest.raises(dpf.InputError, match=sentence):
        retention_of(patterns, D, D)


def test_weights_and_tables_that_do_not_fit_are_refused():
    for weight in (-1, math.nan, math.inf):
        with pytest.raises(dpf.InputError, match="weight"):
            Pattern(RED, GOOD, weight)
    with pytest.raises(dpf.InputError, match="no rows"):
        retention_of([X1], table_of([]), D)
    other = dpf.Table.from_codes(SCHEMA.replace(dpf.Categorical("class", ["good", "bad"])), [[0], [0], [0]])
    with pytest.raises(dpf.InputError, match="'class' differs"):
        retention_of([X1], D, other)


@pytest.fixture(scope="module")
def clinic() -> dpf.Table:
    """Some patients, their haemoglobin missing now and then."""
    table = clinic_table(1500)
    haemoglobin = table.schema["haemoglobin"]
    schema = table.schema.replace(attrs.evolve(haemoglobin, missing=True))
    codes, values = table.codes.copy(), dict(table.values)
    gone = np.arange(codes.shape[1]) % 10 == 0
    codes[schema.index("haemoglobin"), gone] = schema["haemoglobin"].missing_code
    values["haemoglobin"] = np.where(gone, np.nan, values["haemoglobin"])
    return dpf.Table.from_codes(schema, codes, values)


@pytest.mark.parametrize("kind", ["one-hot", "ordinal"])
@pytest.mark.parametrize("target", ["type 2 diabetes", "age"])
def test_patterns_of_cart_are_its_leaves(clinic, kind, target):
    train, test = select_rows(clinic, np.arange(1000)), select_rows(clinic, np.arange(1000, 1500))
    model = cart(train, target, kind=kind, min_share=0.01)
    patterns, encoding = model.patterns(), model.encoding
    assert len(patterns) == model.leaves == model.classifier.get_n_leaves() > 5
    assert model.depth == model.classifier.get_depth() <= 12
    for table in (train, test):
        counts = class_counts(patterns, table)
        assert counts.sum() == table.codes.shape[1]  # each row is in one leaf
        leaves = model.classifier.apply(encoding.matrix(table))
        assert sorted(counts.sum(axis=1)[counts.sum(axis=1) > 0]) == sorted(np.unique(leaves, return_counts=True)[1])
        right = np.mean(model.predict(table) == encoding.classes(table))
        assert retention_of(patterns, train, table).accuracy == pytest.approx(right)


def test_a_threshold_of_cart_is_read_as_scikit_learn_asks_it():
    """CART asks x <= t, literals x < t: a value of another table that equals the threshold must fall alike."""
    schema = dpf.Schema([dpf.Numeric("x", 0, 10, bins=10), dpf.Boolean("y")])
    train = dpf.Table.from_codes(schema, [[2, 4], [0, 1]], {"x": [2.0, 4.0]})
    other = dpf.Table.from_codes(schema, [[2, 3, 4], [0, 0, 0]], {"x": [2.0, 3.0, 4.0]})
    model = cart(train, "y", min_share=0.5)
    patterns = model.patterns()
    assert sorted(map(str, patterns)) == ["x < 3  ->  y = false", "x >= 3  ->  y = true"]
    assert model.predict(other).tolist() == ["false", "true", "true"]
    assert class_counts(patterns, other).sum(axis=1).tolist() == [2, 1]  # scikit-learn's left is our "at least"


def test_ordinal_ranges_are_written_as_values():
    schema = dpf.Schema([dpf.Categorical("town", list("abcde")), dpf.Boolean("y")])
    for codes, left, right in (
        ([0, 1, 1, 1, 1], "town = a", "town != a"),
        ([0, 0, 1, 1, 1], "town = a or town = b", "town = c or town = d or town = e"),
    ):
        table = dpf.Table.from_codes(schema, [[0, 1, 2, 3, 4], codes])
        found = cart(table, "y", kind="ordinal").patterns()
        assert [str(pattern.description).strip("()") for pattern in found] == [left, right]
        assert [pattern.label.value for pattern in found] == ["false", "true"]


def test_what_is_no_tree_of_the_encoding_is_refused(clinic):
    encoding = Encoding(clinic.schema, "age")
    with pytest.raises(dpf.InputError, match="not fitted"):
        EncodedClassifier(DecisionTreeClassifier(), encoding)
    with pytest.raises(dpf.InputError, match="has 2 columns, but the encoding"):
        EncodedClassifier(DecisionTreeClassifier().fit([[0, 1], [1, 0]], ["a", "b"]), encoding)
    with pytest.raises(dpf.InputError, match="GaussianNB is not a tree"):
        EncodedClassifier(GaussianNB().fit(encoding.matrix(clinic), encoding.classes(clinic)), encoding).patterns()
    with pytest.raises(dpf.InputError, match="did you mean 'one-hot'"):
        Encoding(clinic.schema, "age", "onehot")
    with pytest.raises(dpf.InputError, match="the only attribute"):
        Encoding(clinic.schema.select(["age"]), "age")
    with pytest.raises(dpf.InputError, match="'agee'"):
        Encoding(clinic.schema, "agee")
    with pytest.raises(dpf.InputError, match="use one schema"):
        encoding.matrix(clinic_table(10))


def test_thresholds_of_cart_are_short_to_read():
    schema = dpf.Schema([dpf.Numeric("x", 0, 20, bins=10), dpf.Boolean("y")])
    values = [14.4, 14.5]
    table = dpf.Table.from_codes(schema, [[7, 7], [0, 1]], {"x": values})
    found = cart(table, "y", min_share=0.5).patterns()
    assert {str(pattern.description) for pattern in found} == {"x < 14.45", "x >= 14.45"}

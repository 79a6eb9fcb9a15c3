"""Classifiers of scikit-learn on tables, and the patterns of scikit-learn's decision trees. Not private."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import Attribute, Numeric
from dpframework.facts.description_simplifier import otherwise
from dpframework.facts.errors import InputError, needing_scikit_learn
from dpframework.facts.logical_descriptions_of_rows import And, Below, Description, Equals, Or
from dpframework.facts.parameter_checks import require_known
from dpframework.facts.schema import Schema
from dpframework.lab.evaluation.readable_rows_and_folds import columns_of
from dpframework.results.class_prediction_patterns import Pattern
from dpframework.tables.coded_table import Table

ENCODINGS = ("one-hot", "ordinal")
_EVERYTHING = (-math.inf, math.inf)


def require_scikit_learn(what: str) -> None:
    """Raise an error if scikit-learn, an optional dependency, is not installed. The error begins with `what`.

    Raises
    ------
    ImportError
        If scikit-learn is not installed.
    """
    with needing_scikit_learn(what):
        import sklearn  # noqa: F401


def _check_encoding(_: Any, __: attrs.Attribute[str], value: str) -> None:
    require_known(value, ENCODINGS, "encoding")


@final
@attrs.frozen
class Encoding:
    """An encoding of rows as columns of numbers for scikit-learn, so that its trees can be read as patterns.

    A numeric attribute is one column. For a value x it holds -x. scikit-learn tests `-x <= -t`, and the rows that fail
    this test are those for which our literal (a test of one attribute) `x < t` holds. A missing value counts as larger
    than all others, so that `x < t` does not hold for it. scikit-learn compares in single precision, so a value very
    near to a threshold may fall on the other side of the threshold.

    Attributes
    ----------
    schema
        The schema of the tables.
    target
        The class attribute. All other attributes become columns.
    kind
        How attributes that are not numeric are encoded: "one-hot" (a column for each value, with a 1 in the rows that
        have the value) or "ordinal" (one column with the position of the value in the schema, so that a tree tests for
        ranges).
    """

    schema: Schema
    target: str
    kind: str = attrs.field(default="one-hot", validator=_check_encoding)

    def __attrs_post_init__(self) -> None:
        self.schema[self.target]
        if len(self.schema) == 1:
            raise InputError(f"'{self.target}' is the only attribute; there is none to predict it from")

    @property
    def columns(self) -> list[tuple[Attribute, int | None]]:
        """The attribute of each column, and the code whose rows have a 1 in the column.

        The code is None if the column holds values or codes themselves.
        """
        split = [attribute for attribute in self.schema if attribute.name != self.target]
        columns: list[tuple[Attribute, int | None]] = []
        for attribute in split:
            whole = isinstance(attribute, Numeric) or self.kind == "ordinal"
            columns += [(attribute, None)] if whole else [(attribute, code) for code in range(attribute.size)]
        return columns

    def matrix(self, table: Table) -> NDArray[np.float64]:
        """Return rows as numbers, shape (rows, columns). Not private."""
        rows = columns_of(table)
        columns = []
        for attribute, code in self.columns:
            if table.schema[attribute.name] != attribute:
                raise InputError(f"attribute '{attribute.name}' differs between table and encoding; use one schema")
            if isinstance(attribute, Numeric):
                above = 2 * attribute.upper - attribute.lower
                columns.append(-np.nan_to_num(rows.values(attribute.name), nan=above))
            else:
                codes = rows.codes(attribute.name)
                columns.append((codes if code is None else codes == code).astype(np.float64))
        return np.stack(columns, axis=1)

    def classes(self, table: Table) -> NDArray[np.str_]:
        """Return the class of each row as text. Not private."""
        return np.array(table.schema[self.target].labels)[columns_of(table).codes(self.target)]

    def conjunction(self, intervals: Mapping[int, tuple[float, float]]) -> And:
        """Return the description of the rows whose columns lie in the given intervals.

        `intervals` maps the position of a column to the lower and the upper end of its interval. Only the upper end
        belongs to the interval.
        """
        columns = self.columns
        return And(part for k, ends in sorted(intervals.items()) for part in _within(*columns[k], *ends))


def _within(attribute: Attribute, code: int | None, low: float, high: float) -> Iterator[Description]:
    if isinstance(attribute, Numeric):
        if high < math.inf:
            yield otherwise(Below(attribute.name, 0.0 - high), attribute)  # not -0.0, which is printed as "-0"
        if low > -math.inf:
            yield Below(attribute.name, 0.0 - low)
        return
    if code is not None:
        equal = Equals(attribute.name, attribute.labels[code])
        yield equal if low >= 0 else otherwise(equal, attribute)
        return
    inside = [Equals(attribute.name, label) for k, label in enumerate(attribute.labels) if low < k <= high]
    outside = [Equals(attribute.name, label) for k, label in enumerate(attribute.labels) if not low < k <= high]
    if len(outside) == 1:
        yield otherwise(outside[0], attribute)
    else:
        yield inside[0] if len(inside) == 1 else Or(inside)


@final
@attrs.frozen(eq=False)
class EncodedClassifier:
    """A fitted scikit-learn classifier that takes tables and, if it is a tree, returns its patterns. Not private.

    Attributes
    ----------
    classifier
        The classifier, fitted on `encoding.matrix` and `encoding.classes` of a table.
    encoding
        The encoding of rows as columns that the classifier was fitted on.
    """

    classifier: Any
    encoding: Encoding

    def __attrs_post_init__(self) -> None:
        columns, name = getattr(self.classifier, "n_features_in_", None), type(self.classifier).__name__
        if columns is None:
            raise InputError(f"the {name} is not fitted; fit it on the encoding's `matrix` and `classes`")
        if columns != len(self.encoding.columns):
            raise InputError(f"the {name} has {columns} columns, but the encoding has {len(self.encoding.columns)}")

    @property
    def classes_(self) -> list[str]:
        """The classes that the classifier has seen, in the order of its probabilities."""
        return [str(label) for label in self.classifier.classes_]

    def predict(self, table: Table) -> NDArray[np.str_]:
        """Return the class of each row, as text."""
        return np.asarray(self.classifier.predict(self.encoding.matrix(table))).astype(str)

    def predict_proba(self, table: Table) -> NDArray[np.float64]:
        """Return class probabilities, shape (rows, classes), in the order of `classes_`."""
        return np.asarray(self.classifier.predict_proba(self.encoding.matrix(table)))

    @property
    def leaves(self) -> int:
        """The number of leaves of a tree."""
        return int(self._tree.n_leaves)

    @property
    def depth(self) -> int:
        """The number of tests on the longest path of a tree."""
        return int(self._tree.max_depth)

    def patterns(self) -> tuple[Pattern, ...]:
        """Return one pattern for each leaf of a tree, from its path to its most common class.

        Raises
        ------
        InputError
            If the classifier is not a tree.
        """
        return tuple(self._leaves(0, {}))

    @property
    def _tree(self) -> Any:
        tree = getattr(self.classifier, "tree_", None)
        if tree is None:
            raise InputError(f"a {type(self.classifier).__name__} is not a tree; give a DecisionTreeClassifier")
        return tree

    def _leaves(self, node: int, intervals: dict[int, tuple[float, float]]) -> Iterator[Pattern]:
        tree, column = self._tree, int(self._tree.feature[node])
        if column < 0:
            label = self.classes_[int(np.argmax(tree.value[node][0]))]
            yield Pattern(self.encoding.conjunction(intervals), Equals(self.encoding.target, label))
            return
        # `threshold` is the shortest number that is the same in single precision: 14.45, not 14.449999809265137.
        (low, high), threshold = intervals.get(column, _EVERYTHING), float(str(np.float32(tree.threshold[node])))
        yield from self._leaves(tree.children_left[node], {**intervals, column: (low, threshold)})
        yield from self._leaves(tree.children_right[node], {**intervals, column: (threshold, high)})

    def __repr__(self) -> str:
        return f"<{type(self.classifier).__name__} of '{self.encoding.target}': not private>"


def cart(
    table: Table, target: str, *, kind: str = "one-hot", max_depth: int = 12, min_share: float = 0.02, seed: int = 0
) -> EncodedClassifier:
    """Learn a decision tree by scikit-learn's CART. Not private.

    Parameters
    ----------
    table
        The rows, read freely.
    target
        The class attribute.
    kind
        The kind of the encoding (see `Encoding`).
    max_depth, min_share
        The most tests on a path, and the fewest rows of a leaf as a share of all rows. The defaults are from the
        retention paper (Fletcher and Islam 2015, section 6).
    seed
        The seed that decides among equally good splits.

    Raises
    ------
    InputError
        If the class attribute or the kind is unknown.
    ImportError
        If scikit-learn is not installed.
    """
    require_scikit_learn("CART")
    from sklearn.tree import DecisionTreeClassifier

    encoding = Encoding(table.schema, target, kind)
    least = max(math.ceil(min_share * table.rows), 1)
    classifier = DecisionTreeClassifier(max_depth=max_depth, min_samples_leaf=least, random_state=seed)
    return EncodedClassifier(classifier.fit(encoding.matrix(table), encoding.classes(table)), encoding)

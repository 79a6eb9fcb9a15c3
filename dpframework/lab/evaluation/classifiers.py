"""scikit-learn's classifiers on tables, and the patterns of its trees. Not private."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import Attribute, Numeric
from dpframework.facts.descriptions import And, Below, Description, Equals, Or
from dpframework.facts.errors import InputError, nearest
from dpframework.facts.extras import needing_scikit_learn
from dpframework.facts.schema import Schema
from dpframework.facts.shortener import otherwise
from dpframework.lab.evaluation.table_folds import columns_of, number_of_rows
from dpframework.results.patterns import Pattern
from dpframework.tables.table import Table

ENCODINGS = ("one-hot", "ordinal")
_EVERYTHING = (-math.inf, math.inf)


def require_scikit_learn(what: str) -> None:
    """Refuse where scikit-learn, an extra, is not installed.

    Raises
    ------
    ImportError
        If it is not.
    """
    with needing_scikit_learn(what):
        import sklearn  # noqa: F401


def _check_encoding(_: Any, attribute: attrs.Attribute[str], value: str) -> None:
    if value not in ENCODINGS:
        raise InputError(f"encoding {value!r} is unknown; {nearest(str(value), ENCODINGS)}")


@final
@attrs.frozen
class Encoding:
    """How rows become columns of numbers for scikit-learn, such that its trees can be read as patterns.

    A numeric attribute is one column: its values with the sign changed, since scikit-learn asks `x <= t` and our
    literals ask `x < t`. A missing value is above all others, as a literal on it does not hold. scikit-learn compares
    in single precision, and thresholds are read in it: a value that near one may fall on its other side.

    Attributes
    ----------
    schema
        The schema of the tables.
    target
        The class attribute; all others become columns.
    kind
        How attributes that are not numeric are written: "one-hot" (a column for each value, 1 where the row has it) or
        "ordinal" (one column, the position of the value in the schema, so that a tree asks for ranges of values).
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
        """Each column's attribute, and the code that it asks for, if it asks for one."""
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
                raise InputError(f"attribute '{attribute.name}' of the table is not the encoding's; use one schema")
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
        """Return the description of rows whose columns are in some intervals, each without its lower end."""
        columns = self.columns
        return And(part for k, ends in sorted(intervals.items()) for part in _within(*columns[k], *ends))


def _within(attribute: Attribute, code: int | None, low: float, high: float) -> Iterator[Description]:
    if isinstance(attribute, Numeric):
        if high < math.inf:
            yield otherwise(Below(attribute.name, 0.0 - high), attribute)  # no "-0"
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
class Encoded:
    """A fitted scikit-learn classifier that takes tables, and gives the patterns of a tree. Not private.

    Attributes
    ----------
    classifier
        Fitted on `encoding.matrix` and `encoding.classes` of a table.
    encoding
        The encoding of its columns.
    """

    classifier: Any
    encoding: Encoding

    def __attrs_post_init__(self) -> None:
        columns, name = getattr(self.classifier, "n_features_in_", None), type(self.classifier).__name__
        if columns is None:
            raise InputError(f"the {name} is not fitted; fit it on what its encoding makes of a table")
        if columns != len(self.encoding.columns):
            raise InputError(f"the {name} has {columns} columns, the encoding {len(self.encoding.columns)}")

    @property
    def classes_(self) -> list[str]:
        """The classes that it has seen, in the order of its probabilities."""
        return [str(label) for label in self.classifier.classes_]

    def predict(self, table: Table) -> NDArray[np.str_]:
        """Return the class of each row, as text."""
        return np.asarray(self.classifier.predict(self.encoding.matrix(table))).astype(str)

    def predict_proba(self, table: Table) -> NDArray[np.float64]:
        """Return class probabilities, shape (rows, classes), in the order of `classes_`."""
        return np.asarray(self.classifier.predict_proba(self.encoding.matrix(table)))

    @property
    def leaves(self) -> int:
        """A tree's number of leaves."""
        return int(self._tree.n_leaves)

    @property
    def depth(self) -> int:
        """A tree's longest path."""
        return int(self._tree.max_depth)

    def patterns(self) -> tuple[Pattern, ...]:
        """Return one pattern for each leaf of a tree, from its path to its most common class.

        Raises
        ------
        InputError
            If the classifier is no tree.
        """
        return tuple(self._leaves(0, {}))

    @property
    def _tree(self) -> Any:
        tree = getattr(self.classifier, "tree_", None)
        if tree is None:
            raise InputError(f"a {type(self.classifier).__name__} is no tree; give a DecisionTreeClassifier")
        return tree

    def _leaves(self, node: int, intervals: dict[int, tuple[float, float]]) -> Iterator[Pattern]:
        tree, column = self._tree, int(self._tree.feature[node])
        if column < 0:
            label = self.classes_[int(np.argmax(tree.value[node][0]))]
            yield Pattern(self.encoding.conjunction(intervals), Equals(self.encoding.target, label))
            return
        # the shortest number that is the same in single precision: 14.45, not 14.449999809265137
        (low, high), threshold = intervals.get(column, _EVERYTHING), float(str(np.float32(tree.threshold[node])))
        yield from self._leaves(tree.children_left[node], {**intervals, column: (low, threshold)})
        yield from self._leaves(tree.children_right[node], {**intervals, column: (threshold, high)})

    def __repr__(self) -> str:
        return f"<{type(self.classifier).__name__} of '{self.encoding.target}': not private>"


def cart(
    table: Table, target: str, *, kind: str = "one-hot", max_depth: int = 12, min_share: float = 0.02, seed: int = 0
) -> Encoded:
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
        The longest path, and the fewest rows of a leaf as a share of all rows. The defaults are those of the retention
        paper (Fletcher and Islam 2015, section 6).
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
    least = max(math.ceil(min_share * number_of_rows(table)), 1)
    classifier = DecisionTreeClassifier(max_depth=max_depth, min_samples_leaf=least, random_state=seed)
    return Encoded(classifier.fit(encoding.matrix(table), encoding.classes(table)), encoding)

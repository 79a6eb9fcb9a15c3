"""Pattern retention: how much of one table's patterns is left in a second table that was made from the first.

Source: Fletcher and Islam, "Measuring pattern retention in anonymized data: where one measure is not enough", 2015,
section 3. A pattern X -> y says that rows for which the description X holds have the class y. It was found in a table
D, and a table M was made from D. There are three measures, and none of them can replace another:

- Pattern accuracy: does y still follow from X?
- Pattern support distance (PSD): is X still as common?
- Pattern label distance (PLD): do the rows of X still have the same classes?

If M is D, the distances are 0 and no accuracy is lost. Nothing here is private.

The paper leaves two points open. First, accuracy here is over all predictions of the patterns. So if patterns overlap
or leave rows out, a row counts once for each pattern that covers it. Second, a pattern that covers no row of one of the
tables has no label distance, and is left out of the mean.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import final

import attrs
import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpframework.facts.errors import InputError
from dpframework.lab.evaluation.readable_rows_and_folds import columns_of
from dpframework.lab.evaluation.trial_record import NOT_PRIVATE
from dpframework.results.class_prediction_patterns import Pattern
from dpframework.tables.coded_table import Table

Floats = NDArray[np.float64]


def chi_squared_distance(p: ArrayLike, q: ArrayLike) -> Floats:
    """Return half the sum of (p - q)**2 / (p + q) over the classes of two distributions, a number in [0, 1].

    Parameters
    ----------
    p, q
        Counts or shares, shape (..., classes). Each distribution is divided by its sum. If one of the two sums is 0,
        the distance is NaN.

    Examples
    --------
    >>> chi_squared_distance([[1, 1], [4, 0]], [[2, 2], [0, 3]])
    array([0., 1.])
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        first, second = (np.asarray(h, dtype=np.float64) for h in (p, q))
        first = first / first.sum(axis=-1, keepdims=True)
        second = second / second.sum(axis=-1, keepdims=True)
        both = first + second
        terms = np.where(both == 0, 0.0, (first - second) ** 2 / both)
    return np.asarray(terms.sum(axis=-1) / 2)


@final
@attrs.frozen(eq=False)
class Retention:
    """The retention of patterns, for each pattern and overall. Not private.

    Attributes
    ----------
    patterns
        The patterns, which all predict the same class attribute.
    labels
        The values of the class attribute.
    original, modified
        The number of rows of each class that each pattern covers in D and in M, each of shape (patterns, labels).
    rows
        The number of rows of D.
    """

    patterns: tuple[Pattern, ...]
    labels: tuple[str, ...]
    original: Floats
    modified: Floats
    rows: int

    @property
    def weights(self) -> Floats:
        """The patterns' weights, shape (patterns,)."""
        return np.array([pattern.weight for pattern in self.patterns])

    @property
    def supports(self) -> Floats:
        """The number of rows that each pattern covers in D and in M, shape (patterns, 2)."""
        return np.stack([self.original.sum(axis=1), self.modified.sum(axis=1)], axis=1)

    @property
    def support_distances(self) -> Floats:
        """The absolute difference of each pattern's two supports, as a share of the rows of D, shape (patterns,)."""
        before, after = self.supports.T
        return np.asarray(np.abs(after - before) / self.rows)

    @property
    def label_distances(self) -> Floats:
        """The chi-squared distance of each pattern's class distributions in D and in M, shape (patterns,).

        NaN for a pattern that covers no rows of D, or none of M.
        """
        return chi_squared_distance(self.original, self.modified)

    @property
    def psd(self) -> float:
        """Pattern support distance, the weighted mean of `support_distances`."""
        return _mean(self.support_distances, self.weights)

    @property
    def pld(self) -> float:
        """Pattern label distance, the weighted mean of `label_distances` over patterns that have one."""
        known = ~np.isnan(self.label_distances)
        return _mean(self.label_distances[known], self.weights[known])

    @property
    def accuracy(self) -> float:
        """Pattern accuracy, the weighted share of the patterns' predictions that hold in M.

        NaN if no pattern of positive weight covers a row of M.
        """
        return self._accuracy(self.modified)

    @property
    def accuracy_loss(self) -> float:
        """The accuracy of the patterns in D minus their accuracy in M."""
        return self._accuracy(self.original) - self.accuracy

    def _accuracy(self, counts: Floats) -> float:
        predicted = [self.labels.index(pattern.label.value) for pattern in self.patterns]
        right = counts[np.arange(len(counts)), predicted]
        made = float(self.weights @ counts.sum(axis=1))
        return float(self.weights @ right) / made if made > 0 else math.nan

    def to_dict(self) -> dict[str, float]:
        """Return the measures by name."""
        return {
            "pattern_accuracy": self.accuracy,
            "pattern_accuracy_loss": self.accuracy_loss,
            "psd": self.psd,
            "pld": self.pld,
            "patterns": float(len(self.patterns)),
        }

    def __str__(self) -> str:
        heads = ("in D", "in M", "chi-squared")
        lines = [f"{heads[0]:>8}{heads[1]:>8}{heads[2]:>13}  pattern"]
        for pattern, (before, after), distance in zip(self.patterns, self.supports, self.label_distances, strict=True):
            lines.append(f"{before:8.0f}{after:8.0f}{distance:13.3f}  {pattern}")
        lost = self.accuracy_loss
        lines.append(f"pattern accuracy {self.accuracy:.3f} ({lost:.3f} lost), PSD {self.psd:.3f}, PLD {self.pld:.3f}")
        return "\n".join([*lines, NOT_PRIVATE])

    def __repr__(self) -> str:
        return f"<retention of {len(self.patterns)} patterns, PSD {self.psd:.3f}, PLD {self.pld:.3f}: not private>"


def _mean(values: Floats, weights: Floats) -> float:
    total = float(weights.sum())
    return float(values @ weights) / total if total > 0 else math.nan


def class_counts(patterns: Iterable[Pattern], table: Table) -> Floats:
    """Return how many rows of each class each pattern covers, shape (patterns, classes). Not private.

    Raises
    ------
    InputError
        If there is no pattern, if patterns predict several attributes, or if a pattern does not fit the table's schema.
    """
    return _count_classes(_collect_patterns(patterns), table)


def retention_of(patterns: Iterable[Pattern], original: Table, modified: Table) -> Retention:
    """Measure the retention of one table's patterns in another table of the same schema. Not private.

    Parameters
    ----------
    patterns
        The patterns, found in the original table or written by hand.
    original, modified
        The paper's D and M. M should have as many rows as D, since support distances compare numbers of rows.

    Raises
    ------
    InputError
        As `class_counts`. Also if the class attribute of the two tables differs, or if the original table has no rows.

    Examples
    --------
    >>> from dpframework.facts import Equals
    >>> from dpframework.facts.attributes import Boolean
    >>> from dpframework.facts.schema import Schema
    >>> schema = Schema([Boolean("smoker"), Boolean("ill")])
    >>> before = Table.from_codes(schema, [[0, 0, 0, 0, 1, 1, 1, 1], [0, 0, 0, 1, 0, 1, 1, 1]])
    >>> after = Table.from_codes(schema, [[0, 0, 0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 0, 1, 1, 1]])
    >>> print(retention_of([Pattern(Equals("smoker", "true"), Equals("ill", "true"))], before, after))
        in D    in M  chi-squared  pattern
           4       2        0.143  smoker = true  ->  ill = true
    pattern accuracy 1.000 (-0.250 lost), PSD 0.250, PLD 0.143
    Not private: measured on the rows themselves.
    """
    found = _collect_patterns(patterns)
    target = found[0].label.attribute
    if original.schema[target] != modified.schema[target]:
        raise InputError(f"attribute '{target}' differs between the two tables; patterns need tables of one schema")
    if not original.rows:
        raise InputError("the original table has no rows; there is nothing to retain")
    before, after = (_count_classes(found, table) for table in (original, modified))
    return Retention(found, original.schema[target].labels, before, after, original.rows)


def _collect_patterns(patterns: Iterable[Pattern]) -> tuple[Pattern, ...]:
    found = tuple(patterns)
    targets = sorted({pattern.label.attribute for pattern in found})
    if not targets:
        raise InputError("there are no patterns; retention needs at least one")
    if len(targets) > 1:
        raise InputError(
            f"the patterns predict '{targets[0]}' and '{targets[1]}'; measure one class attribute at a time"
        )
    return found


def _count_classes(patterns: tuple[Pattern, ...], table: Table) -> Floats:
    columns, target = columns_of(table), table.schema[patterns[0].label.attribute]
    for pattern in patterns:
        pattern.label.holds(columns.at(columns.index[:0]))  # raises an error if the attribute does not have the value
    classes = columns.codes(target.name)
    counts = [np.bincount(classes[p.description.holds(columns)], minlength=target.size) for p in patterns]
    return np.array(counts, dtype=np.float64)

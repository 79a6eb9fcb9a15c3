"""`dp-additive`: an additive classifier, one function of each attribute, fitted at once.

Claim: pure epsilon under either neighbouring relation; no assumptions (see `perturbation`). What decides on bins and on
the ridge are public facts, epsilon, and the number of rows: the schema's, or a noisy count.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import final

import attrs

from dpframework.facts import Attribute, InputError, Numeric, Schema, list_of_names, positive
from dpframework.mechanisms import DiscreteLaplace
from dpframework.plan import Node, sequential, step
from dpframework.queries import Count
from dpframework.run import Example, Miner, PrivateTable
from dpframework_trees.additive.design import Design, Tuned
from dpframework_trees.additive.model import AdditiveModel
from dpframework_trees.additive.perturbation import ObjectivePerturbation
from dpframework_trees.additive.queries import LogisticRows
from dpframework_trees.additive.witnesses import SCHEMA, added, replaced
from dpframework_trees.parameters import class_and_attributes

COUNT_SHARE = Fraction(1, 50)
MOST_ROWS = 1 << 26  # of a table whose schema has no bound of its own
MORE = 1 << 10  # rows than that bound, which units of several rows may add
FEWEST_BINS, MOST_BINS = 4, 64
ROOT_OF_ROWS = 16  # sqrt(rows epsilon) / 16 bins: more are merged


@final
@attrs.frozen
class DPAdditive(Miner):
    """An additive classifier: one function of each attribute, fitted jointly by objective perturbation.

    Parameters
    ----------
    target
        The class attribute.
    epsilon
        The budget of the whole fit.
    attributes
        The attributes to use; by default all but the target.

    Examples
    --------
    >>> DPAdditive(target="income", epsilon=1.0).epsilon
    Fraction(1, 1)
    """

    name = "dp-additive"
    target: str
    epsilon: Fraction = attrs.field(converter=positive)
    attributes: tuple[str, ...] | None = attrs.field(default=None, converter=list_of_names)

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        """Return two classes, several, and a public number of rows."""
        two, several = cls("grade", 2), cls("colour", 2)
        known = attrs.evolve(SCHEMA, rows=8, max_rows=None)
        return {
            "two": Example(SCHEMA, two, witnesses=[added("grade"), replaced("grade")]),
            "several": Example(SCHEMA, several, witnesses=[added("colour"), replaced("colour")]),
            "known-rows": Example(known, two, witnesses=[added("grade", 7), replaced("grade", 7)]),
        }

    def plan(self, schema: Schema) -> Node:
        """Plan a count of the rows, unless it is public, and the fit."""
        resolved = _Resolved.of(self, schema)
        resolved.design(schema.rows or schema.row_bound or 1)  # which refuses too many columns
        fit = step("fit", resolved.query, ObjectivePerturbation(resolved.of_fit), uses=resolved.counted)
        if not resolved.counted:
            return fit
        return sequential(step("rows", Count(), DiscreteLaplace(self.epsilon * COUNT_SHARE)), fit)

    def mine(self, table: PrivateTable) -> AdditiveModel:
        """Count if that is planned, and fit."""
        resolved = _Resolved.of(self, table.schema)
        rows = table.release("rows") if resolved.counted else table.schema.rows
        design = resolved.design(float(rows or 1))
        coefficients = table.release("fit", design=design)
        calibration = table.calibration("fit")
        tuned = Tuned(design, 1 / calibration.scale)
        return AdditiveModel.of_fit(tuned, coefficients, resolved.target, resolved.given)


@attrs.frozen(eq=False)
class _Resolved:
    """A miner's parameters, resolved on a schema."""

    epsilon: Fraction
    target: Attribute
    given: list[Attribute]
    schema: Schema

    @classmethod
    def of(cls, miner: DPAdditive, schema: Schema) -> _Resolved:
        """Resolve, refusing what cannot be fitted."""
        target, names = class_and_attributes(schema, miner.target, miner.attributes)
        given = [schema[name] for name in names if schema[name].size > 1]
        if not given:
            raise InputError(f"no attribute tells rows apart for target '{target.name}'; one with two values is needed")
        return cls(miner.epsilon, target, given, schema)

    @property
    def counted(self) -> list[str]:
        """The steps before the fit: a count, where the number of rows is not public."""
        return [] if self.schema.rows is not None else ["rows"]

    @property
    def of_fit(self) -> Fraction:
        """What the fit gets."""
        return self.epsilon * (1 - COUNT_SHARE) if self.counted else self.epsilon

    @property
    def query(self) -> LogisticRows:
        """What the fit reads."""
        return LogisticRows(self.target, tuple(attribute.name for attribute in self.given))

    def design(self, rows: float) -> Design:
        """Return the columns for about so many rows."""
        bound = self.schema.row_bound
        about = max(rows, 1.0) if bound is None else min(max(rows, 1.0), float(bound))
        most = most_bins(about * float(self.epsilon))
        bins = [merged(attribute, most) for attribute in self.given]
        return Design(bins, self.target.size, about, MOST_ROWS if bound is None else bound + MORE)


def most_bins(row_budget: float) -> int:
    """Return how many bins a numeric attribute keeps at most, for rows times epsilon.

    Examples
    --------
    >>> most_bins(4_000), most_bins(40_000), most_bins(10**9)
    (4, 12, 64)
    """
    return min(max(round(math.sqrt(row_budget) / ROOT_OF_ROWS), FEWEST_BINS), MOST_BINS)


def merged(attribute: Attribute, most: int) -> tuple[int, ...]:
    """Return the cell of each code: neighbouring bins of a numeric attribute are merged, as many each as can be.

    Missing values keep a cell of their own.
    """
    codes = tuple(range(attribute.size))
    if not isinstance(attribute, Numeric):
        return codes
    bins = attribute.size - attribute.missing
    if bins <= most:
        return codes
    cells = tuple(code * most // bins for code in range(bins))
    return (*cells, most) if attribute.missing else cells

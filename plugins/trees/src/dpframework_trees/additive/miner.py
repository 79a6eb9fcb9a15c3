"""`dp-additive`: an additive classifier, one function of each attribute, fitted at once.

Claim: pure epsilon under either neighbouring relation; no assumptions (see `perturbation`). What decides on bins and on
the ridge are public facts, epsilon, and the number of rows: the schema's, or a noisy count.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from fractions import Fraction
from typing import final

import attrs

from dpframework.facts import MOST_ROWS, Attribute, InputError, Numeric, Schema, list_of_names, positive
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

STEP = "fit"
COUNT_SHARE = Fraction(1, 50)
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
    result = AdditiveModel
    target: str
    epsilon: Fraction = attrs.field(converter=positive)
    attributes: tuple[str, ...] | None = attrs.field(default=None, converter=list_of_names)

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        """Return two classes, and several."""
        two, several = cls("grade", 2), cls("colour", 2)
        return {
            "two": Example(SCHEMA, two, witnesses=[added("grade"), replaced("grade")]),
            "several": Example(SCHEMA, several, witnesses=[added("colour"), replaced("colour")]),
        }

    def plan(self, schema: Schema) -> Node:
        """Plan a count of the rows, unless it is public, and the fit."""
        fit = AdditiveFit.of(schema, self.target, self.attributes, self.epsilon)
        if schema.rows is not None:
            return fit.step(self.epsilon, ())
        count = step("rows", Count(), DiscreteLaplace(self.epsilon * COUNT_SHARE))
        return sequential(count, fit.step(self.epsilon * (1 - COUNT_SHARE), ["rows"]))

    def values_read(self, schema: Schema) -> Collection[str]:
        """Return none: bins are those of the schema."""
        return ()

    def mine(self, table: PrivateTable) -> AdditiveModel:
        """Count if that is planned, and fit."""
        fit = AdditiveFit.of(table.schema, self.target, self.attributes, self.epsilon)
        rows = table.release("rows") if table.schema.rows is None else table.schema.rows
        return fit.model(table, float(rows))


@attrs.frozen(eq=False)
class AdditiveFit:
    """A fit on a schema, as a step of a plan and as its model.

    Attributes
    ----------
    schema
        The public facts.
    target
        The class.
    given
        The other attributes.
    epsilon
        The budget that bins are for.
    """

    schema: Schema
    target: Attribute
    given: list[Attribute]
    epsilon: Fraction

    @classmethod
    def of(cls, schema: Schema, target: str, attributes: tuple[str, ...] | None, epsilon: Fraction) -> AdditiveFit:
        """Resolve a miner's parameters.

        Raises
        ------
        InputError
            If there is nothing to fit, or there are too many coefficients.
        """
        of_class, names = class_and_attributes(schema, target, attributes)
        given = [schema[name] for name in names if schema[name].size > 1]
        if not given:
            raise InputError(f"no attribute tells rows apart for target '{target}'; one with two values is needed")
        found = cls(schema, of_class, given, epsilon)
        found.design(math.inf if schema.row_bound is None else schema.row_bound)  # refuses too many columns
        return found

    def step(self, epsilon: Fraction, uses: Iterable[str]) -> Node:
        """Plan the fit."""
        query = LogisticRows(self.target, tuple(attribute.name for attribute in self.given))
        return step(STEP, query, ObjectivePerturbation(epsilon), uses=uses)

    def model(self, table: PrivateTable, rows: float) -> AdditiveModel:
        """Fit, for about so many rows: a public or noisy number."""
        design = self.design(rows)
        coefficients = table.release(STEP, design=design)
        tuned = Tuned(design, 1 / table.calibration(STEP).scale)
        return AdditiveModel.of_fit(tuned, coefficients, self.target, self.given)

    def design(self, rows: float) -> Design:
        """Return the columns for about so many rows."""
        bound = self.schema.row_bound
        about = min(max(rows, 1.0), float(MOST_ROWS if bound is None else max(bound, 1)))
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

"""`dp-additive`: an additive classifier, one function of each attribute, fitted at once.

Claim: pure epsilon under either neighbouring relation; no assumptions (see `perturbation`). What decides on bins and on
the ridge are public facts, epsilon, and releases: the number of rows, unless it is public, and the counts of bins of
equal width, where some must be merged (see `bins`). Budgets of all releases add up to epsilon.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping
from fractions import Fraction
from typing import final

import attrs
import numpy as np

from dpframework.facts import MOST_ROWS, Attribute, InputError, Numeric, Schema, list_of_names, positive
from dpframework.mechanisms import DiscreteLaplace
from dpframework.plan import Node, sequential, step
from dpframework.queries import Count, Marginals
from dpframework.run import Example, Miner, PrivateTable
from dpframework_trees.additive.bins import FEWEST_BINS, merged, merged_by_counts, most_bins, worth_counting
from dpframework_trees.additive.design import Design, Tuned
from dpframework_trees.additive.model import AdditiveModel
from dpframework_trees.additive.perturbation import ObjectivePerturbation
from dpframework_trees.additive.queries import LogisticRows
from dpframework_trees.additive.witnesses import SCHEMA, added, replaced
from dpframework_trees.estimates import noise_variance
from dpframework_trees.parameters import class_and_attributes

STEP, BINS = "fit", "bins"
COUNT_SHARE = Fraction(1, 50)
SHARE_OF_BINS, MOST_FOR_BINS = Fraction(1, 200), Fraction(1, 20)  # for each attribute, and for all
MORE = 1 << 10  # rows than that bound, which units of several rows may add


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
        """Return two classes, several, and bins of equal width."""
        two, several = cls("grade", 2), cls("colour", 2)
        even, less = SCHEMA.replace(Numeric("size", 0, 8, bins=5)), {"bins": np.array([-40, 0, 40, 0, 0])}
        return {
            "two": Example(SCHEMA, two, witnesses=[added("grade"), replaced("grade")]),
            "several": Example(SCHEMA, several, witnesses=[added("colour"), replaced("colour")]),
            "equal width": Example(even, two, witnesses=[added("grade", **less), replaced("grade", size=4, **less)]),
        }

    def plan(self, schema: Schema) -> Node:
        """Plan a count of the rows, unless it is public, counts of bins if they are merged by these, and the fit."""
        fit = AdditiveFit.of(schema, self.target, self.attributes, self.epsilon)
        if schema.rows is not None:
            return sequential(*fit.steps(self.epsilon))
        count = step("rows", Count(), DiscreteLaplace(self.epsilon * COUNT_SHARE))
        return sequential(count, *fit.steps(self.epsilon * (1 - COUNT_SHARE), uses=["rows"]))

    def values_read(self, schema: Schema) -> Collection[str]:
        """Return none: bins are made of those of the schema."""
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
        found.design(math.inf if schema.row_bound is None else schema.row_bound, {})  # refuses too many columns
        return found

    @property
    def counted(self) -> tuple[Numeric, ...]:
        """The attributes whose bins are counted: those of equal width, more than may be kept."""
        most = FEWEST_BINS if self.schema.rows is None else self.most(self.schema.rows)
        return tuple(a for a in self.given if isinstance(a, Numeric) and worth_counting(a, most))

    def steps(self, epsilon: Fraction, uses: Collection[str] = ()) -> list[Node]:
        """Plan the counts of bins, if any, and the fit."""
        query, counted = LogisticRows(self.target, tuple(attribute.name for attribute in self.given)), self.counted
        if not counted:
            return [step(STEP, query, ObjectivePerturbation(epsilon), uses=uses)]
        share = min(SHARE_OF_BINS * len(counted), MOST_FOR_BINS)
        bins = step(BINS, Marginals(counted), DiscreteLaplace(epsilon * share))
        rest = ObjectivePerturbation(epsilon * (1 - share))
        return [bins, step(STEP, query, rest, uses=[*uses, BINS])]

    def model(self, table: PrivateTable, rows: float) -> AdditiveModel:
        """Fit, for about so many rows: a public or noisy number."""
        design = self.design(rows, self._by_counts(table, rows))
        coefficients = table.release(STEP, design=design)
        tuned = Tuned(design, 1 / table.calibration(STEP).scale)
        return AdditiveModel.of_fit(tuned, coefficients, self.target, self.given)

    def _by_counts(self, table: PrivateTable, rows: float) -> Mapping[str, tuple[int, ...]]:
        """Release the counts of bins, if that is planned, and merge by them what has more than may be kept."""
        counted, most = self.counted, self.most(rows)
        if not counted:
            return {}
        released, variance = table.release(BINS), noise_variance(table.calibration(BINS))
        ends = itertools.accumulate(attribute.size for attribute in counted)
        return {
            a.name: merged_by_counts(a, most, released[end - a.size : end].astype(float), variance, rows)
            for a, end in zip(counted, ends, strict=True)
            if worth_counting(a, most)
        }

    def about(self, rows: float) -> float:
        """Return a number of rows, within what is possible."""
        bound = self.schema.row_bound
        return min(max(rows, 1.0), float(MOST_ROWS if bound is None else max(bound, 1)))

    def most(self, rows: float) -> int:
        """Return how many bins an attribute keeps, for about so many rows."""
        return most_bins(self.about(rows) * float(self.epsilon))

    def design(self, rows: float, by_counts: Mapping[str, tuple[int, ...]]) -> Design:
        """Return the columns for about so many rows, some of them with bins that are merged by counts."""
        bound, most = self.schema.row_bound, self.most(rows)
        bins = [by_counts.get(attribute.name) or merged(attribute, most) for attribute in self.given]
        return Design(bins, self.target.size, self.about(rows), MOST_ROWS if bound is None else bound + MORE)

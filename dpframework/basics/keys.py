"""The keys of an open attribute, such as towns or products, that enough rows have.

One release of `queries.Keys`. With an epsilon it is by `mechanisms.PartitionSelection`, whose rule shows as many keys
as any rule of that epsilon and delta can where a unit has one key. With a rho it is by `mechanisms.GaussianThreshold`,
for units of several keys. The noisy counts come with the keys and cost nothing more.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from typing import final

import attrs

from dpframework.basics.budgets import EXAMPLE_DELTA
from dpframework.facts.attributes import Boolean
from dpframework.facts.errors import InputError
from dpframework.facts.open_attribute import Open, require_open
from dpframework.facts.privacy import Relation, positive, positive_delta, positive_rho
from dpframework.facts.schema import Schema
from dpframework.mechanisms.key_thresholds import GaussianThreshold
from dpframework.mechanisms.partitions import PartitionSelection
from dpframework.mechanisms.shifts import unit_changes
from dpframework.plan.nodes import Node, step
from dpframework.plan.parts import PlannedPart
from dpframework.queries.keys import Keys
from dpframework.results.error_bounds import BoundKind, ErrorBound
from dpframework.results.keys import KeyTable
from dpframework.run.miner import Example, Miner
from dpframework.run.private_table import PrivateTable


@final
@attrs.frozen
class KeysMiner(Miner):
    """The values of an open attribute that enough rows have, and how many rows have each.

    Parameters
    ----------
    attribute
        The name of an open attribute.
    epsilon, rho
        What it may cost. Give an epsilon where a unit has one key, and a rho where it has several, from about four on.
    delta
        The probability with which a key of a single unit may be shown: a part of the study's delta.

    Examples
    --------
    >>> KeysMiner("town", epsilon=1, delta="1e-6").delta
    Fraction(1, 1000000)
    """

    name = "keys"
    result = KeyTable
    attribute: str
    epsilon: Fraction | None = attrs.field(default=None, converter=attrs.converters.optional(positive), kw_only=True)
    rho: Fraction | None = attrs.field(default=None, converter=attrs.converters.optional(positive_rho), kw_only=True)
    delta: Fraction = attrs.field(converter=positive_delta, kw_only=True)

    def __attrs_post_init__(self) -> None:
        """Refuse two budgets, and none."""
        if (self.epsilon is None) == (self.rho is None):
            raise InputError("give one budget beside delta: epsilon, or rho where a unit has several keys")

    @property
    def selector(self) -> PartitionSelection | GaussianThreshold:
        """The mechanism that shows keys."""
        if self.rho is not None:
            return GaussianThreshold(self.rho, self.delta)
        assert self.epsilon is not None  # one of the two is given
        return PartitionSelection(self.epsilon, self.delta)

    def plan(self, schema: Schema) -> Node:
        """Plan the one release."""
        attribute = require_open(schema[self.attribute], "the miner 'keys'")
        return step("keys", Keys(attribute), self.selector)

    def values_read(self, schema: Schema) -> Collection[str]:
        """Return none."""
        return ()

    def error_bounds(self, part: PlannedPart) -> Sequence[ErrorBound]:
        """Return the error of a count that is shown, and which keys are."""
        calibration = part.calibration("keys")
        if calibration is None:
            return part.bounds_of_steps()
        shows = self.selector.shows(calibration)
        bound = part.rows_bound(
            f"counts of the keys of '{self.attribute}' that are shown", shows.within, BoundKind.COUNTS
        )
        never = "never" if shows.sure == 1 else f"in {float(100 - 100 * shows.sure):g} %"
        left_out = f"a key of {shows.half} is left out half of the time, one of {shows.always} or more {never}"
        return [attrs.evolve(bound, steps=("keys",), biases=[left_out])]

    def mine(self, table: PrivateTable) -> KeyTable:
        """Release them."""
        released, calibration = table.release("keys"), table.calibration("keys")
        shows, changed = self.selector.shows(calibration), unit_changes(calibration.facts, Relation.ADD_OR_REMOVE_ONE)
        numbers = shows.within, shows.half, shows.always, float(shows.sure)
        return KeyTable(self.attribute, released, *numbers, "rows" if changed == 1 else "units")

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        """Return keys of one attribute, and of one beside another, where the number of rows is public too."""
        schema = Schema([Open("town")])
        beside = Schema([Open("town"), Boolean("ill")], rows=6)
        return {
            "keys": Example(schema, cls("town", epsilon=1, delta="0.05")),
            "rows-public": Example(beside, cls("town", epsilon=2, delta="0.1")),
            "zcdp": Example(schema, cls("town", rho=Fraction(1, 2), delta="0.05"), EXAMPLE_DELTA + Fraction(1, 10)),
        }

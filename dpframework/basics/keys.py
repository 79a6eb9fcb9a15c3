"""The keys of an open attribute, such as towns or products, that enough rows have.

One release of `queries.Keys` by `mechanisms.PartitionSelection`, whose rule shows as many keys as any rule of that
epsilon and delta can. The noisy counts come with the keys and cost nothing more.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from typing import final

import attrs

from dpframework.facts.attributes import Boolean
from dpframework.facts.open_attribute import Open, require_open
from dpframework.facts.privacy import positive, positive_delta
from dpframework.facts.schema import Schema
from dpframework.mechanisms.partitions import PartitionSelection
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
    epsilon
        What it may cost.
    delta
        The probability with which the key of a single unit may be shown: a part of the study's delta.

    Examples
    --------
    >>> KeysMiner("town", epsilon=1, delta="1e-6").delta
    Fraction(1, 1000000)
    """

    name = "keys"
    result = KeyTable
    attribute: str
    epsilon: Fraction = attrs.field(converter=positive, kw_only=True)
    delta: Fraction = attrs.field(converter=positive_delta, kw_only=True)

    def plan(self, schema: Schema) -> Node:
        """Plan the one release."""
        attribute = require_open(schema[self.attribute], "the miner 'keys'")
        return step("keys", Keys(attribute), PartitionSelection(self.epsilon, self.delta))

    def values_read(self, schema: Schema) -> Collection[str]:
        """Return none."""
        return ()

    def error_bounds(self, part: PlannedPart) -> Sequence[ErrorBound]:
        """Return the error of a count that is shown, and which keys are."""
        calibration = part.calibration("keys")
        if calibration is None:
            return part.bounds_of_steps()
        shows = PartitionSelection.shows(calibration)
        bound = part.rows_bound(
            f"counts of the keys of '{self.attribute}' that are shown", shows.within, BoundKind.COUNTS
        )
        left_out = f"a key of {shows.half} rows is left out half of the time, one of {shows.always} or more never"
        return [attrs.evolve(bound, steps=("keys",), biases=[left_out])]

    def mine(self, table: PrivateTable) -> KeyTable:
        """Release them."""
        released, shows = table.release("keys"), PartitionSelection.shows(table.calibration("keys"))
        return KeyTable(self.attribute, released, shows.within, shows.half, shows.always)

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        """Return keys of one attribute, and of one beside another, where the number of rows is public too."""
        schema = Schema([Open("town")])
        beside = Schema([Open("town"), Boolean("ill")], rows=6)
        return {
            "keys": Example(schema, cls("town", epsilon=1, delta="0.05")),
            "rows-public": Example(beside, cls("town", epsilon=2, delta="0.1")),
        }

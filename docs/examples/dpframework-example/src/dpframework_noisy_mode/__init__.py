"""A miner for dpframework: the most common value of one attribute."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import dpframework as dpf


@attrs.frozen
class NoisyMode(dpf.Miner):
    """Release the most common value of one attribute.

    Attributes
    ----------
    attribute
        The attribute whose most common value is released.
    epsilon
        The privacy loss.
    """

    name = "noisy-mode"

    attribute: str
    epsilon: float

    def plan(self, schema: dpf.Schema) -> dpf.Node:
        """Return every release that `mine` may make, from public facts alone."""
        counts = dpf.queries.Histogram(schema[self.attribute])
        return dpf.step("mode", counts, dpf.mechanisms.PermuteAndFlip(self.epsilon))

    def mine(self, table: dpf.PrivateTable) -> str:
        """Make the release and return the value."""
        return str(table.release("mode"))

    @classmethod
    def examples(cls) -> Mapping[str, dpf.Example]:
        """Return small studies on which the miner's claim is tested."""
        schema = dpf.Schema([dpf.Categorical("colour", ["red", "green", "blue"])])
        return {"default": dpf.Example(schema, cls("colour", epsilon=1.0))}


@dpf.hookimpl
def dpframework_miners() -> list[type[dpf.Miner]]:
    """Tell dpframework which miners this package brings."""
    return [NoisyMode]

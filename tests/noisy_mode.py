"""A plugin of one module, as small as can be: what a stranger writes, and tests install or load."""

import attrs

import dpframework as dpf


@attrs.frozen
class NoisyMode(dpf.Miner):
    """Release the most common value of one attribute."""

    name = "noisy-mode"
    attribute: str
    epsilon: float

    def plan(self, schema):
        counts = dpf.queries.Histogram(schema[self.attribute])
        return dpf.step("mode", counts, dpf.mechanisms.PermuteAndFlip(self.epsilon))

    def mine(self, table):
        return table.release("mode")


@dpf.hookimpl
def dpframework_miners():
    return [NoisyMode]

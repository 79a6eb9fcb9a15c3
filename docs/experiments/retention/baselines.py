"""What is done to a table D to make an M of it: the two kinds of noise."""

from __future__ import annotations

import dpframework as dpf
from dpframework.lab.evaluation import distribution_preserving_noise, uniform_noise

NONE = "none"


def uniform(table: dpf.Table, *, seed: int, level: float, spared: str = NONE) -> dpf.Table:
    """Return the table with uniform noise on every attribute but, if one is named, the spared one."""
    return uniform_noise(table, level, seed=seed, attributes=[name for name in table.schema.names if name != spared])


def preserving(table: dpf.Table, *, seed: int, level: float, within: str = NONE) -> dpf.Table:
    """Return the table with distribution-preserving noise, within the values of an attribute if one is named."""
    return distribution_preserving_noise(table, level, seed=seed, within=None if within == NONE else within)

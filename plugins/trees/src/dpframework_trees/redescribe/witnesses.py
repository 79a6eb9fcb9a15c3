"""Tables on which redescriptions by trees lose nearly all that they claim, where small tables do not show it.

A row that is added raises the norm of a large count by 1, and that of a small one beside it by next to nothing. So a
tree loses most where the row joins many equal rows in all likely trees, and few unlike ones in the tree that is chosen;
a row that is replaced leaves the one and enters the other. Several trees and tables can lose so at once: with rounds,
each start and each tree for the leaves of the last one has its own few rows. Some hundreds of rows to some thousands
are needed, so that the likely trees are nearly all of the normaliser.

Found by climbing over numbers of rows with the outputs that lose most on them, then rounded. Trees are given where
there are several, as the positions of their tests; a start, as the position of its test.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from dpframework.run import Witness

NONE, WOLF, MOOSE, BOTH = (False, False), (True, False), (False, True), (True, True)


def _row(animals: tuple[bool, bool], rain: float, zone: str) -> dict[str, Any]:
    return {"wolf": animals[0], "moose": animals[1], "rain": rain, "zone": zone}


def _trees(first: tuple[int, int, int, int], second: tuple[int, int, int, int]) -> dict[str, Any]:
    """Return the outputs of two starts, each a starting test and the tests of three trees of one level."""
    outputs: dict[str, Any] = {}
    for number, (start, *trees) in enumerate((first, second), start=1):
        outputs[f"start {number}/start"] = start
        outputs |= {f"start {number}/tree {k}": np.array([test]) for k, test in enumerate(trees, start=1)}
    return outputs


def two_levels(outputs: Mapping[str, Any] = MappingProxyType({})) -> Witness:
    """Return a witness for two levels of `alt-expm` that start from the rain, under replace-one."""
    shared = [
        (_row(MOOSE, 4, "north"), 100),
        (_row(WOLF, 1, "south"), 100),
        (_row(WOLF, 7, "middle"), 20),
        (_row(BOTH, 1, "north"), 10),
    ]
    return Witness(shared, _row(BOTH, 4, "middle"), _row(BOTH, 1, "north"), outputs)


def two_levels_at_once() -> Witness:
    """Return the same for whole trees, of `alt-mcmc`."""
    return two_levels({"start 1/tree 1": np.array([1, 1, 1]), "start 1/tree 2": np.array([3, 1, 0])})


def rounds_level_by_level() -> Witness:
    """Return a witness for two starts and two rounds of `alt-expm`, under replace-one."""
    shared = [
        (_row(BOTH, 7, "south"), 5000),
        (_row(NONE, 4, "north"), 50),
        (_row(BOTH, 7, "middle"), 10),
        (_row(MOOSE, 1, "middle"), 9),
    ]
    return Witness(shared, _row(WOLF, 1, "middle"), _row(MOOSE, 1, "middle"))


def whole_trees() -> Witness:
    """Return a witness for trees of one level of `alt-mcmc` that start from the wolf, under replace-one."""
    shared = [
        (_row(BOTH, 7, "south"), 636),
        (_row(NONE, 1, "south"), 392),
        (_row(BOTH, 7, "middle"), 80),
        (_row(MOOSE, 7, "south"), 10),
        (_row(BOTH, 4, "south"), 9),
        (_row(NONE, 7, "middle"), 5),
        (_row(WOLF, 1, "middle"), 1),
    ]
    return Witness(shared, _row(MOOSE, 4, "north"), _row(WOLF, 4, "middle"))


def rounds_of_whole_trees() -> tuple[Witness, Witness]:
    """Return a witness for each relation, for two starts and two rounds of `alt-mcmc`."""
    added = [
        (_row(MOOSE, 7, "north"), 10_000),
        (_row(WOLF, 1, "middle"), 90),
        (_row(WOLF, 4, "south"), 40),
        (_row(BOTH, 4, "north"), 16),
        (_row(NONE, 7, "middle"), 16),
    ]
    replaced = [
        (_row(NONE, 4, "middle"), 18_000),
        (_row(NONE, 7, "middle"), 750),
        (_row(BOTH, 1, "north"), 750),
        (_row(BOTH, 1, "middle"), 66),
        (_row(BOTH, 4, "south"), 70),
        (_row(WOLF, 4, "north"), 60),
    ]
    return (
        Witness(added, None, _row(BOTH, 1, "north"), _trees((1, 1, 1, 0), (2, 0, 2, 0))),
        Witness(replaced, _row(MOOSE, 7, "south"), _row(WOLF, 4, "south"), _trees((1, 3, 1, 4), (0, 0, 0, 0))),
    )


def pair_of_trees() -> Witness:
    """Return a witness for a pair of `mcmc-tree-pair` by its gain, under replace-one."""
    shared = [
        (_row(BOTH, 7, "north"), 2000),
        (_row(MOOSE, 1, "south"), 50),
        (_row(BOTH, 4, "south"), 20),
        (_row(BOTH, 7, "south"), 10),
    ]
    outputs = {"start 1/pair": np.array([[4], [0]])}
    return Witness(shared, _row(NONE, 1, "north"), _row(MOOSE, 7, "south"), outputs)

"""Synthetic rows whose classes a random tree decides: noisy ones to learn from, and others without noise to predict.

In the manner of Domingos and Hulten, "Mining high-speed data streams" (KDD 2000). The talk states the attributes, the
depth and the noise; the rest is derived, and said on the page.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import TypeAlias

import attrs
import numpy as np
from numpy.typing import NDArray

import dpframework as dpf

LEAF_SHARE = 0.3
"""How likely a node is a leaf, from the third level on."""
FIRST_LEAVES = 2
"""The level, from 0, at which leaves begin."""
HELD_OUT = 10_000
"""Rows without noise to predict."""
BINS = 20
"""Of each continuous attribute: public cuts that have nothing to do with the tree's thresholds."""

Columns: TypeAlias = Mapping[str, NDArray[np.float64]]
Interval: TypeAlias = tuple[float, float]


@attrs.frozen
class Leaf:
    """The end of a path, and its class."""

    label: bool


@attrs.frozen
class Split:
    """A test of one attribute: below a threshold, or not. The values of binary attributes are 0 and 1."""

    attribute: str
    threshold: float
    below: Leaf | Split
    above: Leaf | Split


def random_tree(
    rng: np.random.Generator, ranges: Mapping[str, Interval], binary: frozenset[str], depth: int, level: int = 0
) -> Leaf | Split:
    """Draw a tree: attributes uniformly (binary ones once a path), thresholds uniformly in what the path leaves.

    The two leaves of a split of the last level differ; other leaves' classes are drawn.

    Parameters
    ----------
    rng
        The source of randomness.
    ranges
        What the path leaves of each attribute that may be split on.
    binary
        Those of two values.
    depth, level
        The number of levels of splits, and how many are above.
    """
    label = bool(rng.random() < 0.5)
    if level == depth or (level >= FIRST_LEAVES and rng.random() < LEAF_SHARE):
        return Leaf(label)
    name = str(rng.choice(list(ranges)))
    low, high = ranges[name]
    threshold = 0.5 if name in binary else float(rng.uniform(low, high))
    if level == depth - 1:
        return Split(name, threshold, Leaf(label), Leaf(not label))
    sides = []
    for interval in ((low, threshold), (threshold, high)):
        left = {other: ranges[other] for other in ranges if other != name}
        left |= {} if name in binary else {name: interval}
        sides.append(random_tree(rng, left, binary, depth, level + 1))
    return Split(name, threshold, *sides)


def classes(tree: Leaf | Split, columns: Columns) -> NDArray[np.bool_]:
    """Return the class that a tree gives each row."""
    if isinstance(tree, Leaf):
        return np.full(len(next(iter(columns.values()))), tree.label)
    below = columns[tree.attribute] < tree.threshold
    return np.where(below, classes(tree.below, columns), classes(tree.above, columns))


def leaves(tree: Leaf | Split) -> Iterator[bool]:
    """Yield the class of each leaf."""
    if isinstance(tree, Leaf):
        yield tree.label
    else:
        yield from itertools.chain(leaves(tree.below), leaves(tree.above))


def random_tree_rows(
    *, seed: int, rows: int, binary: int, continuous: int = 0, depth: int, noise: float = 0.0
) -> tuple[dpf.Table, dpf.Table]:
    """Return rows to learn from, and others to predict, of one random tree that has leaves of both classes.

    Parameters
    ----------
    seed
        Of the tree and the rows.
    rows
        How many to learn from; public, as `max_rows`.
    binary, continuous
        Numbers of attributes: b0, b1, ... are uniform on two values, c0, c1, ... on [0, 1].
    depth
        The longest path of the tree.
    noise
        Of the rows to learn from: the share of values, and of classes, that are drawn anew.
    """
    rng = np.random.default_rng(seed)
    names = [f"b{k}" for k in range(binary)]
    ranges: dict[str, Interval] = dict.fromkeys([*names, *(f"c{k}" for k in range(continuous))], (0.0, 1.0))
    tree = random_tree(rng, ranges, frozenset(names), depth)
    while len(set(leaves(tree))) < 2:
        tree = random_tree(rng, ranges, frozenset(names), depth)

    def drawn(number: int) -> dict[str, NDArray[np.float64]]:
        columns = {name: rng.random(number) for name in ranges}
        return {name: np.floor(2 * column) if name in names else column for name, column in columns.items()}

    learned, held_out, again = drawn(rows), drawn(HELD_OUT), drawn(rows)
    noisy = {name: np.where(rng.random(rows) < noise, again[name], learned[name]) for name in ranges}
    labels = np.where(rng.random(rows) < noise, rng.random(rows) < 0.5, classes(tree, learned))
    attributes = [dpf.Boolean(name) if name in names else dpf.Numeric(name, 0, 1, bins=BINS) for name in ranges]
    schema = dpf.Schema([*attributes, dpf.Boolean("class")])
    return (
        _table(attrs.evolve(schema, max_rows=rows), noisy, labels),
        _table(schema, held_out, classes(tree, held_out)),
    )


def _table(schema: dpf.Schema, columns: Columns, labels: NDArray[np.bool_]) -> dpf.Table:
    codes = []
    for name, column in columns.items():
        attribute = schema[name]
        cuts = attribute.interior_cuts if isinstance(attribute, dpf.Numeric) else (1,)
        codes.append(np.searchsorted(cuts, column, side="right"))
    values = {name: column for name, column in columns.items() if isinstance(schema[name], dpf.Numeric)}
    return dpf.Table.from_codes(schema, np.array([*codes, labels], dtype=np.int64), values)

"""Complete trees of a fixed depth, with a public test at every node, in heap order.

From node k, rows for which its test holds go to node 2 k + 1, and all others to node 2 k + 2. The 2**depth - 1 tests
are followed by 2**depth leaves. A test on a missing value does not hold, so every row falls in one leaf.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts import And, Cases, Description, Literal, otherwise
from dpframework.tables import Block
from dpframework_trees.splits import BELOW, Candidates


@attrs.frozen(eq=False)
class CompleteTree:
    """A tree whose tests have been released.

    Attributes
    ----------
    candidates
        The tests that nodes may have. All are binary, with thresholds on the schema's grid.
    tests
        For each node, the position of its test in `candidates`, shape (2**depth - 1,).
    """

    candidates: Candidates
    tests: NDArray[np.int64]

    @property
    def depth(self) -> int:
        """The number of tests on each path."""
        return int(len(self.tests) + 1).bit_length() - 1

    @property
    def leaves(self) -> int:
        """The number of leaves."""
        return len(self.tests) + 1

    def test(self, node: int) -> Literal:
        """Return the test of a node."""
        literal = self.candidates[int(self.tests[node])]
        assert isinstance(literal, Literal)
        return literal

    def path(self, leaf: int) -> Iterator[tuple[Literal, bool]]:
        """Yield each test on the path to a leaf, from the root, and whether it holds for the leaf's rows."""
        node, steps = leaf + len(self.tests), []
        while node:
            parent = (node - 1) // 2
            steps.append((self.test(parent), node == 2 * parent + 1))
            node = parent
        yield from reversed(steps)

    def description(self, leaf: int) -> Description:
        """Return the description of a leaf's rows, in which no condition occurs twice."""
        schema = self.candidates.schema
        path = self.path(leaf)
        parts = tuple(dict.fromkeys(t if holds else otherwise(t, schema[t.attribute]) for t, holds in path))
        return next(iter(parts)) if len(parts) == 1 else And(parts)

    @property
    def cases(self) -> Cases:
        """The leaves as cells of a query. The last leaf holds the rows that are in no other one."""
        return Cases([self.description(leaf) for leaf in range(self.leaves - 1)])

    def leaf_codes(self, block: Block) -> NDArray[np.int64]:
        """Return the position of each row's leaf, shape (rows,)."""
        chosen = self.candidates
        read, places = np.unique(chosen.attributes[chosen.owner[self.tests]], return_inverse=True)
        names = [chosen.schema.attributes[k].name for k in read]
        codes, below = chosen.codes[self.tests], chosen.kinds[self.tests] == BELOW
        found = []
        # Node k tests whether the code of attribute names[places[k]] equals codes[k], or with below[k] is at most that.
        for tile in block.tiles():
            node, rows = np.zeros(tile.rows, dtype=np.int64), np.arange(tile.rows)
            columns = np.stack([tile.codes(name) for name in names])
            for _ in range(self.depth):
                values, code = columns[places[node], rows], codes[node]
                node = 2 * node + 2 - np.where(below[node], values <= code, values == code)
            found.append(node - len(self.tests))
        return np.concatenate(found)

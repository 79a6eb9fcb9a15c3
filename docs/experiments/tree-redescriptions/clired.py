"""Trees for redescriptions without privacy, in the manner of SplitT and LayeredT (Zinchenko et al. 2015).

Not private. The paper runs python-clired, which is not installed here. This is written from what the paper says of the
two: trees on the two views in turn, each for the rows that the last one names; SplitT grows a whole tree, a level
deeper each time, LayeredT grows another level below each leaf. It starts from twenty attributes a view, which are
spread over the view. Supports and depth are the paper's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dpframework as dpf

DEPTH, STARTS = 4, 20
Rows = NDArray[np.bool_]


def features_of(table: dpf.Table, view: dpf.View) -> NDArray[np.uint8]:
    """Return a view's codes, shape (rows, attributes); attributes are Boolean or in the order of numbers."""
    schema = table.schema
    return np.ascontiguousarray(table.codes[[schema.index(a.name) for a in schema.view(view)]].T)


def found_by(table: dpf.Table, *, layered: bool, least: int, most_share: float = 0.8) -> Iterator[tuple[Rows, Rows]]:
    """Yield the rows of the two sides of each redescription.

    Parameters
    ----------
    table
        The rows.
    layered
        Whether trees grow by LayeredT's way.
    least, most_share
        Between which a side must lie: rows, and a share of all.
    """
    views = [features_of(table, view) for view in (dpf.View.LEFT, dpf.View.RIGHT)]
    seen: set[bytes] = set()
    for first in (0, 1):
        for column in views[first].T[:: max(1, views[first].shape[1] // STARTS)][:STARTS]:
            target = column > np.median(column) if column.max() > 1 else column.astype(bool)
            for left, right in _alternated(views, first, target, layered=layered):
                sizes = left.sum(), right.sum(), (left & right).sum()
                key = np.packbits(np.concatenate([left, right])).tobytes()
                if key not in seen and min(sizes) >= least and max(sizes[:2]) <= most_share * len(left):
                    seen.add(key)
                    yield left, right


def _alternated(views: list[Any], first: int, target: Rows, *, layered: bool) -> Iterator[tuple[Rows, Rows]]:
    """Yield both sides after each tree but the first."""
    sides: list[Rows | None] = [None, None]
    leaves = [np.zeros(len(target), dtype=np.int64) for _ in views]
    sides[first] = target
    for turn in range(2 * DEPTH):
        side = 1 - first if turn % 2 == 0 else first
        if not 0 < target.sum() < len(target):
            return
        depth = 1 if layered else turn // 2 + 1
        parts = leaves[side] if layered else np.zeros(len(target), dtype=np.int64)
        leaves[side], target = _grown(views[side], target, parts, depth)
        sides[side] = target
        yield sides[0], sides[1]  # type: ignore[misc]  # both are there after the first tree


def _grown(features: NDArray[np.uint8], target: Rows, parts: NDArray[np.int64], depth: int) -> tuple[Any, Rows]:
    """Return the leaf of each row, and the rows of leaves most of whose rows are in the target."""
    from sklearn.tree import DecisionTreeClassifier

    leaves, named = np.zeros_like(parts), np.zeros_like(target)
    for part in np.unique(parts):
        rows = parts == part
        tree = DecisionTreeClassifier(max_depth=depth, random_state=0).fit(features[rows], target[rows])
        leaves[rows] = leaves.max() + 1 + tree.apply(features[rows])
        named[rows] = tree.predict(features[rows])
    return leaves, named

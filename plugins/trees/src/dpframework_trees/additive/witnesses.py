"""Tables and outputs for which a fit loses nearly all of the epsilon that it claims, on the schemas of its examples.

A witness is two neighbouring tables, with outputs for which the loss is near the claim (see `Witness`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframework.facts import Boolean, Categorical, Numeric, Schema
from dpframework.mechanisms import Calibration
from dpframework.run import Witness
from dpframework_trees.additive.design import Design, Reals
from dpframework_trees.additive.fitting import Rows
from dpframework_trees.additive.perturbation import tune_for

FAR = 40.0  # the size of a score that makes the class of an added row nearly impossible
APART = 12.0  # the size of the noise at each row's cells: so large that four more rows do not change its sign
LOW = 12.0  # at minus this score, the probability of a row's class is practically 0
SCHEMA = Schema(
    [
        Categorical("colour", ["red", "green", "blue"]),
        Numeric("size", 0, 8, cuts=[3, 5]),
        Boolean("ripe"),
        Categorical("grade", ["good", "bad"]),
    ],
    max_rows=40,
)
COLOURS = SCHEMA.replace(Categorical("colour", ["red", "green", "blue", "white", "black", "grey"]))
RED = {"colour": "red", "size": 1, "ripe": "true", "grade": "bad"}
#: Releases of a tree that only tests colour = red. In the red row's leaf all rows are of its class, in the other none.
OF_TREE: dict[str, Any] = {
    "tree/tree": np.zeros(7, dtype=np.int64),
    "tree/leaves": np.array([[0, 10**6], *[[0, 0]] * 6, [10**6, 0]]),
}
# With the classes of the two leaves exchanged, a replaced row loses .94 of the claim, and with those of `OF_TREE` .88.
OF_TREE_REPLACED: dict[str, Any] = {**OF_TREE, "tree/leaves": OF_TREE["tree/leaves"][::-1]}
#: For each target, the codes in all other attributes of the red row, and of the row that replaces it.
CODES = {"grade": ((0, 0, 1), (2, 2, 0)), "colour": ((0, 1, 1), (2, 0, 0))}


def columns_of(design: Design, codes: Sequence[int]) -> Reals:
    """Return a row's entry in each column, shape (columns,). A tree is taken to have the leaves of `OF_TREE`."""
    cells = [first + of_one[code] for first, of_one, code in zip(design.first_cells, design.bins, codes, strict=False)]
    if design.leaves:
        cells.append(design.first_cells[len(design.bins)] + int(codes[0] != 0))
    return np.asarray(design.of_cells[:, [*cells, design.first_cells[-1]]].sum(axis=1))


def witness_of_added(target: str, **released: object) -> Witness:
    """Return a witness in which the red row is added, with coefficients that make its class nearly impossible.

    The ridge times these coefficients is a multiple of the row's columns. So the noise that gives this output is in the
    space from which noise is drawn.
    """

    def output(answer: Rows, calibration: Calibration) -> Reals:
        ridge = tune_for(answer.design, calibration).ridge
        row = columns_of(answer.design, CODES[target][0]) / ridge
        return np.asarray(-FAR / row.max() * np.outer(row, _towards(answer.design)))

    return Witness([], None, RED, {"fit": output, **released})


def witness_of_replaced(target: str, size: int = 7, **released: object) -> Witness:
    """Return a witness in which another row of the same class replaces the red row.

    The coefficients make this class nearly impossible for both rows. Balanced noise is positive at the red row's cells
    and negative at the other row's cells. Other noise has the same sign at the cells of both rows. At `ripe` the noise
    has the sign of the red row's entry, and is larger than at the intercept. So the row that leaves and the row that
    comes both lower the norm of the noise, or both raise it.
    """
    ripe = 2 if target == "grade" else 1
    other = {"colour": "blue" if target == "grade" else "red", "size": size, "ripe": "false"}
    other["grade"] = "bad" if target == "grade" else "good"

    def output(answer: Rows, calibration: Calibration) -> Reals:
        design = answer.design
        ridge = tune_for(design, calibration).ridge
        one, two = (columns_of(design, codes) for codes in CODES[target])
        place, narrow = design.starts[ripe], _narrow(design)
        if not design.noises[0].balanced:
            # Each cell that one row has gets half the weight of a cell that both have. This lowers both scores by the
            # same amount, which `others` sets.
            lowers = np.where(narrow, 0, (one + two) / 2)
            lowers[-1] = 1
            others = (LOW + APART / ridge[place]) / (float((lowers**2 / ridge).sum()) - 1 / ridge[place])
            apart = -others * lowers / ridge
            apart[place] = -(others + APART) / ridge[place]
            return np.outer(apart, _towards(design))
        apart = np.where(narrow, 0, (two - one) * APART / ridge)
        others = LOW + np.abs(apart).sum()
        of_ripe, of_all = ridge[place], ridge[-1]
        largest = (of_all * others + APART) / (of_ripe - of_all)
        apart[place], apart[-1] = -largest, -(others + largest)
        return np.outer(apart, _towards(design))

    return Witness([], RED, other, {"fit": output, **released})


def row_of_other_outcome() -> Witness:
    """Return a witness in which a row of the other outcome replaces the red row.

    The coefficients make the outcome of each row nearly impossible. The rows share `ripe`, where the noise is largest.
    So the row that leaves and the row that comes both lower the norm of the noise. The intercept takes off what `ripe`
    adds to both scores. The cells that the rows do not share set their scores apart.
    """
    other = {**RED, "colour": "blue", "size": 7, "grade": "good"}

    def output(answer: Rows, calibration: Calibration) -> Reals:
        design = answer.design
        ridge = tune_for(design, calibration).ridge
        one, two = (columns_of(design, codes) for codes in ((0, 0, 1), (2, 2, 1)))
        ripe, narrow = design.starts[2], _narrow(design)
        apart = np.where(narrow, 0, (two - one) / 2)
        shared = np.where(narrow, 0, (one + two) / 2)
        shared[-1] = 1
        largest = APART + 3 * LOW / float((apart * two / ridge).sum())
        found = (largest - APART) * apart - largest / ridge[ripe] / float((shared * two / ridge).sum()) * shared
        found[ripe] = largest
        return np.asarray(found / ridge)[:, None]

    return Witness([], RED, other, {"fit": output})


def _narrow(design: Design) -> NDArray[np.bool_]:
    """Tell which columns are the only column of their block, shape (columns,)."""
    return np.repeat([width == 1 for width in design.widths], design.widths)


def _towards(design: Design) -> Reals:
    """Return the direction of outputs, shape (outputs,), that makes the rows' class likelier.

    That class is bad if the target is the grade, and red if it is the colour, at the cost of the last colour.
    """
    return np.array([1.0]) if design.outputs == 1 else np.array([1.0, *[0.0] * (design.outputs - 2), -1.0])

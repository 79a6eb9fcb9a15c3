"""Upper estimates, from public numbers alone, of the time and memory that a synthetic table takes.

The constants are upper bounds of what was measured on Adult, mushroom, nltcs, and 10^6 rows of 100 attributes (see
`tests/benchmarks/wide_tables.py`).
"""

from __future__ import annotations

import math

from dpframework.plan import RunCost
from dpframework_tables.methods import FEW_TURNS, MOST_DRAWN, TableMethod
from dpframework_tables.model import TURNS

_START = 1.0  # CPU seconds for loading and planning
_COUNT = 3e-9  # CPU seconds per row and attribute of each table that is counted
_LOOK = 2e-4  # CPU seconds per marginal that may be selected, in each round; with method "tree" a tenth of this
_COMPARE = 2e-8  # CPU seconds per pair of a marginal that may be selected and a drawn row, in each round
_FIT = 2e-7  # CPU seconds per cell of the model, in each turn of a fit
_DRAW = 1e-6  # CPU seconds per cell of the synthetic table
# Bytes per counted cell, cell of the model, synthetic row, value of a synthetic row, and value of a compared row.
_OF_COUNT, _OF_CELL, _OF_ROW, _OF_VALUE, _OF_COMPARED = 32, 50, 200, 4, 12


def cost_of(method: TableMethod, rows: int | None, drawn: int | None) -> RunCost:
    """Return upper estimates of the time and the memory of a run.

    Parameters
    ----------
    method
        The method, which says what is measured and fitted.
    rows
        The number of rows, possibly approximate; None if it is not known.
    drawn
        How many synthetic rows are drawn; None for as many as the table has.
    """
    attributes, sets, turns = len(method.among), method.sets, method.times
    counted = sum(method.sizes) + sum(math.prod(method.sizes[a] for a in one) for one in sets)
    cells = method.max_cells if sets else sum(method.sizes)
    memory = float(_OF_COUNT * counted + _OF_CELL * cells)
    what = (
        f"{attributes + len(sets):,} tables with {counted:,} cells are counted, and the model has up to {cells:,} cells"
    )
    if rows is None:
        return RunCost(f"{what}; each row adds to this", None, memory)
    new = rows if drawn is None else drawn
    compared = 0 if method.name == "tree" else min(rows, MOST_DRAWN)
    memory += new * (_OF_VALUE * attributes + _OF_ROW) + compared * _OF_COMPARED * attributes
    fits = 0 if method.name == "tree" else FEW_TURNS * turns / 2  # the model grows in proportion to the rounds
    seconds = _START + _COUNT * rows * (attributes + sum(map(len, sets))) + _DRAW * new * attributes
    seconds += turns * len(sets) * (_LOOK / (10 if method.name == "tree" else 1) + _COMPARE * compared)
    return RunCost(what, seconds + _FIT * cells * (fits + TURNS), memory)

"""Pairs of literals that are scored in rows and counted three at a time, for both Serenade miners.

The miners do so if you ask neither for extensions nor for another score.

The pairs are matches (`dpframework.redescriptions.MatchScores`). Each is chosen by the exponential mechanism and
differs from those before it. On each side, three literals cut the rows into eight cells. One table of eight by eight
cells, with the sensitivity of a histogram, gives the counts of all three pairs, of their complements, and of their
conjunctions and disjunctions. To find conjunctions and disjunctions by extensions would cost more budget.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import attrs
import numpy as np

from dpframework.facts import Below, Description, Equals, Not, Schema, shorten
from dpframework.mechanisms import DiscreteLaplace, Exponential
from dpframework.plan import Node, repeat, sequential, step
from dpframework.redescriptions import (
    CellTable,
    Joined,
    Match,
    MatchScores,
    Redescription,
    ReportConditions,
    TruthCells,
    distinct,
)
from dpframework.run import PrivateTable
from dpframework_greedy.language import CodeRange, top_code

TOGETHER = 3  # pairs per table; with two pairs a fifth fewer redescriptions are found, with four a tenth fewer


def plan_pairs(
    scores: MatchScores, pairs: int, choices: Fraction, counts: Fraction, *, uses: Sequence[str] = ()
) -> Node:
    """Plan the choice of pairs, and their tables.

    Parameters
    ----------
    scores
        The candidates and their scores.
    pairs
        The number of pairs.
    choices, counts
        The epsilon of all choices together, and of all tables together.
    uses
        The name of the step that releases the number of rows, if there is one.
    """
    tables = -(-pairs // TOGETHER)
    scores = attrs.evolve(scores, followed=pairs > 1)
    chosen = step("pair", scores, Exponential(choices / pairs), uses=uses, threshold=scores.cap)
    cells = TruthCells(min(pairs, TOGETHER), among=scores.attributes)
    counted = step("table", cells, DiscreteLaplace(counts / tables), uses=["pair"])
    return sequential(repeat(pairs, chosen), repeat(tables, counted))


def most_cells(pairs: int) -> int:
    """Return the most cells of a table that are added up to the support of one combination of its pairs.

    A disjunction of all pairs has the most: either side holds in all cells of its view but one.

    Examples
    --------
    >>> most_cells(1), most_cells(2), most_cells(20)
    (1, 9, 49)
    """
    return int((2 ** min(pairs, TOGETHER) - 1) ** 2)


def mine_pairs(
    table: PrivateTable, pairs: int, wanted: ReportConditions, given: Mapping[str, Any] = MappingProxyType({})
) -> tuple[list[Redescription], int]:
    """Release the pairs and their tables. Return the wanted redescriptions and the number of candidates.

    Parameters
    ----------
    table
        The table.
    pairs
        The number of pairs.
    wanted
        The conditions that redescriptions must meet.
    given
        The inputs of the scores at run time, besides the pairs that were chosen before.
    """
    chosen: list[Match] = []
    for _ in range(pairs):
        chosen.append(table.release("pair", known=[part for match in chosen for part in match.parts], **given))
    found, candidates = [], 0
    variance = table.calibration("table").variance
    for start in range(0, pairs, TOGETHER):
        group = chosen[start : start + TOGETHER]
        left, right = zip(*(match.sides for match in group), strict=True)
        counts = np.asarray(table.release("table", left=left, right=right), dtype=np.float64)
        one, number = read(CellTable(counts, variance, table.schema.rows), group, table.schema, wanted)
        found += one
        candidates += number
    return distinct(found), candidates


def read(
    cells: CellTable, group: Sequence[Match], schema: Schema, wanted: ReportConditions
) -> tuple[list[Redescription], int]:
    """Return the wanted combinations of a group, and the number of all its combinations.

    The combinations are all conjunctions and disjunctions of some pairs or their complements. With three pairs, two may
    also be joined by `and` and the third to these by `or`, or the other way round. A pair with an attribute
    that may be missing has no complement, since neither a test nor its negation holds for a missing value. On
    either side, a combination gives way to a shorter one if noise hides the difference between them.
    """
    combinations = _combinations(group, schema)
    # Bit k of a cell's number says whether pair k holds.
    masks = np.array([one.holds(np.arange(2 ** len(group)), range(len(group))) for one in combinations])
    literals = [len(one.members) for one in combinations]
    pairs = list(dict.fromkeys(zip(*(cells.shortest(masks, literals, axis) for axis in (0, 1)), strict=True)))
    found = []
    left, right = (masks[[pair[axis] for pair in pairs]] for axis in (0, 1))
    for k in cells.reported(left, right, wanted):
        sides = (
            shorten(combinations[which].describe([m.sides[side] for m in group]), schema)
            for side, which in enumerate(pairs[k])
        )
        one, other = sides
        if one.literals() and other.literals():  # a side that holds always or never says nothing
            found.append(cells.redescription((one, other), left[k], right[k], wanted.min_jaccard))
    return found, len(combinations)


def _combinations(group: Sequence[Match], schema: Schema) -> list[Joined]:
    """Return the combinations, the shortest first."""
    signs = [
        (0, 1, -1) if all(schema[test.attribute].missing_code is None for test in (match.left, match.right)) else (0, 1)
        for match in group
    ]
    found: list[Joined] = []
    for some in sorted(itertools.product(*signs), key=lambda some: sum(map(abs, some))):
        members = tuple((k, sign == 1) for k, sign in enumerate(some) if sign)
        found += Joined.each(members, nested=True) if members else ()
    return found


def as_literal(side: Description, schema: Schema) -> CodeRange:
    """Return a side of a match as a literal of the language of extensions."""
    test = side.part if isinstance(side, Not) else side
    assert isinstance(test, Equals | Below)
    attribute = schema[test.attribute]
    if isinstance(test, Equals):
        code = test.code(schema)
        return CodeRange(attribute, code, code, isinstance(side, Not))
    end = test.numeric(schema).interior_cuts.index(test.threshold)
    first, last = (end + 1, top_code(attribute)) if isinstance(side, Not) else (0, end)
    return CodeRange(attribute, first, last, False)

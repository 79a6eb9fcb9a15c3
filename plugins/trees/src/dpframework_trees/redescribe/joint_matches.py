"""Matches that are counted in overlapping tables of three, and read together from one fitted joint distribution.

A match is a pair of tests, one of each view. Each match is selected like the root of a pair of trees (see
`matched_trees`), and must differ from the matches before it. Then tables of three matches count rows by which of the
six tests hold. They follow a design in which every two matches occur in the same table
(`dpframework.redescriptions.DESIGNS`). Half of the budget is for the selections, and half for the tables. Reading
redescriptions from the tables is post-processing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from dpframework.facts import Description
from dpframework.mechanisms import DiscreteLaplace, Exponential
from dpframework.plan import Node, repeat, sequential, step
from dpframework.redescriptions import (
    DESIGNS,
    Match,
    MatchScores,
    OverlappingTables,
    Redescription,
    ReportConditions,
    TruthCells,
    distinct,
)
from dpframework.run import PrivateTable
from dpframework_trees.redescribe.budget_arrangement import Arrangement

TOGETHER = 3  # the number of matches in a table


def plan_matches(
    scores: MatchScores, arranged: Arrangement, epsilon: Fraction, uses: Sequence[str], threshold: Fraction | int | None
) -> Node:
    """Plan the selection of all matches, and the tables of each group.

    Parameters
    ----------
    scores
        The query for the scores of matches.
    arranged
        The arrangement, which says how many matches and groups there are.
    epsilon
        The epsilon of all selections and tables.
    uses
        The names of the steps whose releases the selections use: that of the number of rows, if it is released.
    threshold
        The noise, in rows, that would hide the largest possible score of a match.
    """
    number = arranged.matches * arranged.groups
    tables = len(DESIGNS[arranged.matches]) * arranged.groups
    chosen = step("match", scores, Exponential(epsilon / 2 / number), uses=uses, threshold=threshold)
    cells = TruthCells(TOGETHER, among=scores.attributes)
    counted = step("table", cells, DiscreteLaplace(epsilon / 2 / tables), uses=["match"])
    return sequential(repeat(number, chosen), repeat(tables, counted))


def mine_matches(
    table: PrivateTable, arranged: Arrangement, wanted: ReportConditions, given: Mapping[str, Any], *, few: bool
) -> tuple[list[Redescription], int]:
    """Release the matches and their tables. Return redescriptions, and how many candidates were looked at.

    Parameters
    ----------
    table
        The private table.
    arranged
        The arrangement, which says how many matches and groups there are.
    wanted
        The conditions that redescriptions must fulfil.
    given
        Inputs of the query at run time, besides the descriptions from earlier matches.
    few
        Whether matches should hold for few rows.
    """
    chosen: list[Match] = []
    for _ in range(arranged.matches * arranged.groups):
        known = [part for match in chosen for part in known_sets(match, few=few)]
        chosen.append(table.release("match", known=known, **given))
    found, looked_at = list[Redescription](), 0
    for start in range(0, len(chosen), arranged.matches):
        group = chosen[start : start + arranged.matches]
        some, number = _tables(table, group).read(wanted, table.public_random())
        found += some
        looked_at += number
    return distinct(found), looked_at


def known_sets(match: Match, *, few: bool) -> Sequence[Description]:
    """Return descriptions of the sets of rows from which later matches should differ.

    They are the rows for which both sides of a match hold, and the rows for which neither side holds. If matches hold
    for `few` rows, the second set is nearly all rows, so only the first set is returned.
    """
    return match.parts[:1] if few else match.parts


def _tables(table: PrivateTable, group: Sequence[Match]) -> OverlappingTables:
    """Release the tables of one group of matches, and return them together."""
    counts = []
    for line in DESIGNS[len(group)]:
        left, right = zip(*(group[k].sides for k in line), strict=True)
        counts.append(table.release("table", left=left, right=right))
    schema = table.schema
    known = tuple(all(schema[t.attribute].missing_code is None for t in (one.left, one.right)) for one in group)
    variance = table.calibration("table").variance
    return OverlappingTables([one.sides for one in group], known, np.array(counts, dtype=np.float64), variance, schema)

"""Matches that are counted in overlapping tables of three, and read together from one fitted joint distribution.

Each match is selected as the roots of a forest are, different from both sides of those before it. Then tables of three
matches count rows by which sides hold, by a design in which every two matches meet (`dpframework.results.DESIGNS`).
Half of the budget is for the selections, half for the tables; what is read off them is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import final

import attrs
import numpy as np

from dpframework.facts import Schema
from dpframework.mechanisms import DiscreteLaplace, Exponential
from dpframework.plan import Node, repeat, sequential, step
from dpframework.queries import Match, MatchScores, TruthCells, rows_meant
from dpframework.results import DESIGNS, OverlappingTables, Redescription, Wanted, distinct
from dpframework.run import PrivateTable

MOST = max(DESIGNS)  # matches of one joint distribution
TOGETHER = 3  # matches of a table
# From which epsilon * rows / ln(matches to choose from) on: how many matches are read together, in how many groups.
# Below the first there is a forest alone.
PAYS = ((30, 5, 1), (60, 7, 1), (130, 9, 1), (500, 9, 2))
CHOOSE_FROM = 20  # candidates for each match: of fewer, the last ones are no ties
CHOOSE_FROM_IN_GROUPS = 1_000  # for each match of several groups: of fewer, those of the second group are weak


@final
@attrs.frozen
class Arrangement:
    """How a budget is shared between matches that are read together, and a forest.

    Attributes
    ----------
    matches
        How many are read together; 0 for none.
    groups
        How many times.
    epsilon
        The epsilon of all of these.
    forest
        The epsilon of the forest; 0 for none.
    """

    matches: int
    groups: int
    epsilon: Fraction
    forest: Fraction

    @classmethod
    def of(cls, epsilon: Fraction, schema: Schema, candidates: int) -> Arrangement:
        """Return the settings that pay, by public facts alone."""
        carried = float(epsilon) * rows_meant(schema) / math.log(max(candidates, 2))
        matches, groups = 0, 0
        for least, number, times in PAYS:
            choose_from = CHOOSE_FROM if times == 1 else CHOOSE_FROM_IN_GROUPS
            if carried >= least and candidates >= choose_from * number * times:
                matches, groups = number, times
        if not matches:
            return cls(0, 0, Fraction(0), epsilon)
        return cls(matches, groups, epsilon, Fraction(0))

    @classmethod
    def asked(cls, epsilon: Fraction, matches: int, *, forest: bool) -> Arrangement:
        """Return the settings that a user asks for: these matches, in groups of at most `MOST`, and a forest or not."""
        if not matches:
            return cls(0, 0, Fraction(0), epsilon)
        groups = -(-matches // MOST)
        half = epsilon / 2 if forest else Fraction(0)
        return cls(matches // groups, groups, epsilon - half, half)


def plan_matches(scores: MatchScores, arranged: Arrangement) -> Node:
    """Plan the selection of all matches, and the tables of each group."""
    number = arranged.matches * arranged.groups
    tables = len(DESIGNS[arranged.matches]) * arranged.groups
    chosen = step("match", scores, Exponential(arranged.epsilon / 2 / number), threshold=scores.cap)
    cells = TruthCells(TOGETHER, among=scores.attributes)
    counted = step("table", cells, DiscreteLaplace(arranged.epsilon / 2 / tables), uses=["match"])
    return sequential(repeat(number, chosen), repeat(tables, counted))


def mine_matches(table: PrivateTable, arranged: Arrangement, wanted: Wanted) -> tuple[list[Redescription], int]:
    """Release the matches and their tables. Return redescriptions, and how many candidates were looked at."""
    chosen: list[Match] = []
    for _ in range(arranged.matches * arranged.groups):
        chosen.append(table.release("match", known=[part for match in chosen for part in match.parts]))
    found, looked_at = list[Redescription](), 0
    for start in range(0, len(chosen), arranged.matches):
        group = chosen[start : start + arranged.matches]
        some, number = _tables(table, group).read(wanted, table.public_random())
        found += some
        looked_at += number
    return distinct(found), looked_at


def _tables(table: PrivateTable, group: Sequence[Match]) -> OverlappingTables:
    """Release the tables of one group."""
    counts = []
    for line in DESIGNS[len(group)]:
        left, right = zip(*(group[k].sides for k in line), strict=True)
        counts.append(table.release("table", left=left, right=right))
    schema = table.schema
    known = tuple(all(schema[t.attribute].missing_code is None for t in (one.left, one.right)) for one in group)
    variance = table.calibration("table").variance
    return OverlappingTables([one.sides for one in group], known, np.array(counts, dtype=np.float64), variance, schema)

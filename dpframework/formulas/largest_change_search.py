"""The largest changes of a score between neighbours, found by trying all small tables, and by climbing to larger ones.

A claim bounds a score's rise when rows join a table, its fall when rows join, or its change when rows are replaced. The
shared table of two neighbours holds the rows that both have. One neighbour, or each, has a few further rows.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframework.facts.errors import InputError
from dpframework.formulas.count_formula import Formula, Operation, PublicRange, as_formula
from dpframework.formulas.evaluation import is_rational
from dpframework.formulas.score_structures import Adds, Cells, Outer, Parts, Scored, Shape
from dpframework.formulas.sensitivity_claims_and_neighbours import Change, Claim, Counts, Neighbours, bound_at
from dpframework.formulas.total_and_vector_refutations import find_refuting_rows, find_refuting_totals
from dpframework.formulas.trial_tables_at_thresholds import tables_at_thresholds, tables_of_parts

CLASSES = 3  # the number of classes of a part in small tables
PART_ROWS, CELL_ROWS = 9, 6  # how many rows small tables have at most: for scores of parts, and of cells
FEW_CELLS, MANY_CELL_ROWS = 5, 4  # with more cells than `FEW_CELLS`, small tables have at most `MANY_CELL_ROWS` rows
SLACK = 1e-9  # how far rounding may take a change beyond a bound; for large scores, as a share of the score
CLIMB_ROWS = 20_000  # the most rows of a table that a climb reaches
MOVES = (1, 2, 5, 20, 100, 1000)  # how many rows a step of a climb adds to a cell, or takes from it
#: How many random tables each step of a climb tries, the standard deviation of their counts (as a share of the counts
#: of the table that the climb has reached), and the largest number of steps.
SCATTERED, SPREAD, TURNS = 200, 0.4, 200
#: How many random tables a search tries, the natural logarithm of a cell's largest count in them, and the probability
#: that a cell has rows.
DRAWN, LOG_ROWS, FILLED = 400, 7, 0.7
SEEDS = (3, 7)  # the seeds of climbs and of searches
MOST_JOINING = 20_000  # if the rows of one unit can join a table in more ways, the ways are not all tried
MOST_SCORES = 1 << 21  # the most scores for `_threshold_tables`; if there would be more, only some tables are drawn


@functools.cache
def tables_of(most: int, cells: int) -> NDArray[np.int64]:
    """Return the counts of all tables of at most `most` rows, shape (tables, cells).

    Examples
    --------
    >>> tables_of(1, 2).tolist()
    [[0, 0], [0, 1], [1, 0]]
    """
    if cells == 1:
        return np.arange(most + 1)[:, None]
    parts = []
    for first in range(most + 1):
        others = tables_of(most - first, cells - 1)
        parts.append(np.column_stack([np.full(len(others), first), others]))
    return np.concatenate(parts)


def settings(shape: Cells) -> Iterator[tuple[Cells, dict[str, Fraction]]]:
    """Yield a score with numbers in place of its public parameters, and these numbers by name.

    Each parameter takes the two ends and the middle of its range, after conditions in `shape.within` that compare it
    with a number have narrowed the range. Choices that break another condition in `shape.within` are left out.

    Raises
    ------
    InputError
        If none of these choices fits `shape.within`, or if parameters or cells of different kinds have the same name.
    """
    found = shape.body.leaves(Operation.PUBLIC)
    names = [str(one) for one in (*found, *shape.cells)]
    if twice := [name for name in names if names.count(name) > 1]:
        raise InputError(f"'{shape.text}' has two public parameters or cells named '{twice[0]}'; rename one of them")
    choices = []
    for one in found:
        low, high = _allowed(one, shape.within)
        choices.append([as_formula(value) for value in dict.fromkeys((low, (low + high) / 2, high))])
    fitting = False
    for chosen in itertools.product(*choices):
        by = dict(zip(found, chosen, strict=True))
        if all(_number(low.replaced(by)) <= _number(high.replaced(by)) for low, high in shape.within):
            fitting = True
            numbers = {str(one): value.constant or Fraction() for one, value in by.items()}
            yield Cells(shape.cells, shape.body.replaced(by)), numbers
    if not fitting:
        raise InputError(
            f"no end or middle of the ranges of the public parameters of '{shape.text}' fits the conditions in "
            "`within`; narrow the ranges"
        )


def _allowed(parameter: Formula, within: tuple[tuple[Formula, Formula], ...]) -> tuple[Fraction, Fraction]:
    """Return the range of a public parameter, narrowed by the conditions that compare it with a number."""
    assert isinstance(parameter.value, PublicRange)
    lowers = [low.constant for low, high in within if high == parameter and low.constant is not None]
    uppers = [high.constant for low, high in within if low == parameter and high.constant is not None]
    return max([parameter.value.lower, *lowers]), min([parameter.value.upper, *uppers])


def _number(formula: Formula) -> float:
    return float(Cells((), formula).scores(np.zeros(0)))


def in_range(shape: Cells, claim: Claim) -> bool:
    """Tell whether a formula without parameters has scores between 0 and a claim's bound on all small tables."""
    if claim.bound.constant is None or shape.body.leaves(Operation.PUBLIC):
        return False
    scores = shape.scores(tables_of(CELL_ROWS, len(shape.cells)))
    return bool(scores.min() >= -SLACK and scores.max() <= float(claim.bound.constant) + SLACK)


def part_changes(shape: Parts, change: Change) -> list[Neighbours]:
    """Return, for R = 1, 2, ... `PART_ROWS`, the neighbours of at most R rows with the largest change by one row.

    All tables of one part with `CLASSES` classes are tried and, for a replacement, also tables of two such parts.
    """
    best = []
    shared = tables_of(PART_ROWS - 1, CLASSES)
    before = shape.of_parts(shared)
    after = np.stack([shape.of_parts(shared + spot) for spot in np.eye(CLASSES, dtype=np.int64)])
    sizes = shared.sum(axis=1)
    rise, fall, within = after.max(axis=0) - before, before - after.min(axis=0), after.max(axis=0) - after.min(axis=0)
    up, down = after.argmax(axis=0), after.argmin(axis=0)

    def tops(gaps: NDArray[Any]) -> list[int]:
        return [int(np.where(sizes <= size, gaps, -np.inf).argmax()) for size in range(PART_ROWS)]

    def more(table: int, spot: NDArray[Any]) -> tuple[int, ...]:
        return tuple((shared[table] + np.eye(CLASSES, dtype=np.int64)[spot[table]]).tolist())

    def same(table: int) -> tuple[int, ...]:
        return tuple(shared[table].tolist())

    rises, falls, moves = tops(rise), tops(fall), tops(within)
    for size in range(PART_ROWS):
        if change is Change.RISE:
            top = rises[size]
            best.append(_measure(shape, (same(top),), (more(top, up),)))
        elif change is Change.FALL:
            top = falls[size]
            best.append(_measure(shape, (more(top, down),), (same(top),)))
        else:
            top = moves[size]
            # The new row is in the old row's part, or in a second part. Two parts hold `size` shared rows together.
            pairs: list[tuple[Counts, Counts]] = [((more(top, down),), (more(top, up),))]
            for rows in range(size + 1):
                one, other = rises[rows], falls[size - rows]
                pairs.append(((same(one), more(other, down)), (more(one, up), same(other))))
            found = [_measure(shape, low, high) for low, high in pairs]
            best.append(max(found, key=lambda one: one.change))
    return best


def ways_to_join(group: int, cells: int) -> int:
    """Return in how many ways at most `group` rows can join a table with this number of cells.

    Examples
    --------
    >>> ways_to_join(1, 3), len(tables_of(1, 3)), ways_to_join(20, 4)
    (4, 4, 10626)
    """
    return math.comb(group + cells, cells)


def _threshold_tables(shape: Cells, group: int) -> NDArray[np.int64]:
    """Return tables near the counts at which a comparison in the formula changes.

    If there are too many to try all ways in which up to `group` rows can join them, only some are drawn.
    """
    found = tables_at_thresholds(shape)
    most = max(MOST_SCORES // ways_to_join(group, len(shape.cells)), 1)
    if len(found) <= most:
        return found
    return found[np.random.default_rng(SEEDS[1]).choice(len(found), most, replace=False)]


def find_jump(shape: Cells, claim: Claim) -> Neighbours | None:
    """Return the neighbours that exceed a claim's bound most, near counts at which a comparison in the formula changes.

    These tables may have any number of rows. The result is None if the change of none of them exceeds the bound.
    """
    shared = _threshold_tables(shape, claim.group)
    gaps, low, high = cell_gaps(shape, claim.change, shared, claim.group)
    slack = SLACK * np.maximum(np.abs(shape.scores(shared)), 1)
    over = gaps - float(bound_at(claim.bound, None)) - slack
    top = int(over.argmax())
    return _measure(shape, tuple(low[top].tolist()), tuple(high[top].tolist())) if over[top] > 0 else None


def find_larger_part(shape: Parts, claim: Claim) -> Neighbours | None:
    """Return the neighbours of one part that exceed a claim's bound most, with more rows or classes than small tables.

    The result is None if no change from a table of `tables_of_parts` exceeds the bound, if the claim is about several
    rows, or if the formula has public parameters.
    """
    worst: tuple[float, Counts, Counts] | None = None
    for shared in tables_of_parts(shape) if claim.group == 1 and not shape.body.leaves(Operation.PUBLIC) else ():
        steps = np.eye(shared.shape[1], dtype=np.int64)
        before, after = shape.of_parts(shared), np.stack([shape.of_parts(shared + step) for step in steps])
        gaps, low, high = _largest_gaps(claim.change, shared, before, steps, after)
        sizes, where = np.unique(shared.sum(axis=1) + 1, return_inverse=True)
        bounds = np.array([float(bound_at(claim.bound, size)) for size in sizes.tolist()])[where]
        over = gaps - bounds - SLACK * np.maximum(np.abs(before), 1)
        top = int(over.argmax())
        if over[top] > (0 if worst is None else worst[0]):
            worst = float(over[top]), (tuple(low[top].tolist()),), (tuple(high[top].tolist()),)
    return None if worst is None else _measure(shape, *worst[1:])


def _measure(shape: Scored, low: Counts, high: Counts) -> Neighbours:
    """Return neighbours with their change, which is exact if the formula is rational."""
    exact = is_rational(shape.body)
    scores = [shape.scores(np.array(table), exact)[()] for table in (low, high)]
    change = scores[1] - scores[0]
    return Neighbours(low, high, Fraction(change) if exact else float(change))


def cell_gaps(shape: Cells, change: Change, shared: NDArray[Any], group: int = 1) -> tuple[NDArray[Any], Any, Any]:
    """Return the largest change for each shared table, shape (tables,), and the tables of low and of high score.

    For a rise or a fall, up to `group` rows join the shared table in one neighbour. For a replacement, up to `group`
    rows join it in each.
    """
    joining = tables_of(group, shared.shape[-1])
    before, after = shape.scores(shared), np.stack([shape.scores(shared + more) for more in joining])
    return _largest_gaps(change, shared, before, joining, after)


def _largest_gaps(
    change: Change, shared: NDArray[Any], before: NDArray[Any], joining: NDArray[np.int64], after: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return the largest change for each shared table, shape (tables,), and the tables of low and of high score.

    Parameters
    ----------
    change
        The kind of change.
    shared
        The tables of the rows that both neighbours have, shape (tables, cells).
    before
        The scores of these tables, shape (tables,).
    joining
        The rows that may join a shared table, shape (ways, cells).
    after
        The scores after these rows have joined each shared table, shape (ways, tables).
    """
    up, down = shared + joining[after.argmax(axis=0)], shared + joining[after.argmin(axis=0)]
    match change:
        case Change.RISE:
            return after.max(axis=0) - before, shared, up
        case Change.FALL:
            return before - after.min(axis=0), down, shared
        case _:
            return after.max(axis=0) - after.min(axis=0), down, up


def cell_change(shape: Cells, change: Change, shared: NDArray[Any], group: int) -> Neighbours:
    """Return the neighbours with the largest change among those that share one of the given tables.

    If several have the largest change, return those with the fewest rows.
    """
    gaps, low, high = cell_gaps(shape, change, shared, group)
    sizes = np.where(gaps >= gaps.max() - SLACK * max(1.0, gaps.max()), shared.sum(axis=1), np.iinfo(np.int64).max)
    top = int(sizes.argmin())
    return _measure(shape, tuple(low[top].tolist()), tuple(high[top].tolist()))


def climb(shape: Cells, change: Change, start: NDArray[Any], group: int = 1, most: int = CLIMB_ROWS) -> NDArray[Any]:
    """Climb from a table to tables of at most `most` rows with larger changes, and return the last one.

    The climb ends if no step that is tried leads to a larger change, or after `TURNS` steps.
    """
    cells = len(start)
    steps = np.eye(cells, dtype=np.int64)
    pairs = [steps[a] - steps[b] for a in range(cells) for b in range(cells) if a != b]
    both = [sign * (steps[a] + steps[b]) for a in range(cells) for b in range(a) for sign in (1, -1)]
    directions = np.array([*steps, *-steps, *pairs, *both])
    moves = np.concatenate([directions * size for size in MOVES])
    at, best = start, float(cell_gaps(shape, change, start[None], group)[0][0])
    random = np.random.default_rng(SEEDS[0])
    for _ in range(TURNS):
        # Random steps in all cells at once lead off ridges, where no step in one or two cells goes up.
        scattered = np.rint((at + 1) * random.normal(0, SPREAD, (SCATTERED, cells))).astype(np.int64)
        near = np.maximum(at + np.concatenate([moves, scattered]), 0)
        near = near[near.sum(axis=1) <= most]
        if not len(near):
            break
        gaps, *_ = cell_gaps(shape, change, near, group)
        top = int(gaps.argmax())
        # A gain within rounding does not count, since such gains could go on without end.
        if gaps[top] <= best * (1 + 1e-12) + 1e-15:
            break
        at, best = near[top], float(gaps[top])
    return at


def search_change(shape: Cells, change: Change, group: int) -> Neighbours:
    """Return the neighbours with the largest change in small tables, and at the ends of climbs.

    Up to six climbs start: from the two best of all tables, from the two best random tables, and from the two best
    tables near the counts at which a comparison in the formula changes.
    """
    cells = len(shape.cells)
    small = tables_of(CELL_ROWS if cells <= FEW_CELLS else MANY_CELL_ROWS, cells)
    random = np.random.default_rng(SEEDS[1])
    large = np.floor(np.exp(random.uniform(0, LOG_ROWS, (DRAWN, cells)))).astype(np.int64)
    drawn = large * (random.random((DRAWN, cells)) < FILLED)
    changing = _threshold_tables(shape, group)
    changing = changing[changing.sum(axis=1) <= CLIMB_ROWS]
    starts = np.concatenate([small, drawn, changing])
    gaps, *_ = cell_gaps(shape, change, starts, group)
    tops = [starts[np.argsort(-gaps, kind="stable")[:2]]]
    of_drawn, of_changing = np.split(gaps[len(small) :], [len(drawn)])
    tops += [own[np.argsort(-gap, kind="stable")[:2]] for own, gap in ((drawn, of_drawn), (changing, of_changing))]
    ends = np.array([climb(shape, change, start, group) for start in np.concatenate(tops)])
    return cell_change(shape, change, np.concatenate([small, ends]), group)


def find_refutation(shape: Shape, claim: Claim) -> Neighbours | None:
    """Return the first neighbours found whose scores differ by more than is claimed; None if none are found.

    Tables are tried from small to large, so that a person can check the result.
    """
    if isinstance(shape, Parts):
        if claim.group > 1:
            return None
        for size, found in enumerate(part_changes(shape, claim.change), start=1):
            if found.change > float(bound_at(claim.bound, size)) + SLACK:
                return found
        return find_larger_part(shape, claim)
    if isinstance(shape, Outer):
        return find_refuting_totals(shape, claim)
    if isinstance(shape, Adds):
        return find_refuting_rows(shape, claim)
    if claim.bound.constant is None:
        return None
    bound = float(claim.bound.constant)
    for setting, _ in settings(shape):
        for found in _changes_by_size(setting, claim.change, claim.group):
            if found.change > bound + SLACK * max(1.0, abs(bound)):
                return found
    return None


def _changes_by_size(shape: Cells, change: Change, group: int) -> Iterator[Neighbours]:
    """Yield neighbours with large changes: in small tables, in larger and larger tables, and last in a full search."""
    yield cell_change(shape, change, tables_of(4, len(shape.cells)), group)
    found = search_change(shape, change, group)
    low = np.array(found.low)
    for share in (512, 128, 32, 8, 2):
        end = climb(shape, change, -(-low // share), group, int(low.sum()) // share)
        yield cell_change(shape, change, end[None], group)
    yield found


def describe_search(shape: Shape) -> str:
    """Return a text on the tables that were searched for a refutation. Reports show it for claims without a proof."""
    if isinstance(shape, Parts):
        return f"searched up to {PART_ROWS} rows"
    return (
        f"searched up to {CELL_ROWS} rows, and larger tables by climbing" if isinstance(shape, Cells) else "not tried"
    )


def nearest_neighbours(shape: Shape, claim: Claim) -> Neighbours | None:
    """Return the neighbours with the largest change that is found.

    The result is None for claims that are not searched: about totals, vectors, or several rows of parts.
    """
    if isinstance(shape, Cells):
        found = [search_change(one, claim.change, claim.group) for one, _ in settings(shape)]
        return max(found, key=lambda one: float(one.change))
    return part_changes(shape, claim.change)[-1] if isinstance(shape, Parts) and claim.group == 1 else None

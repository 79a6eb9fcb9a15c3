"""The ground test: numbers of real neighbours put into goals, which must describe them.

A goal is an SMT-LIB text that denies a claim about the scores of neighbours. Solvers prove what a goal says. This
module tests whether a goal describes the score correctly. It needs no solver, and it does not trust the code that wrote
the goal. It puts the numbers of random neighbours into the text. Each pair of neighbours must fit some goal of the
claim. (A pair that fits none shows that a goal assumes something false, or that a case is missing.) The goal's `high -
low` must be the change of the score, and its `bound` the bound of the claim.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product as combinations
from typing import Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.errors import InputError
from dpframework.formulas.count_formula import AGGREGATES, Formula, Operation, PublicRange, n, rows, rows_of_part
from dpframework.formulas.evaluation import is_rational, value_of
from dpframework.formulas.largest_change_search import settings
from dpframework.formulas.score_structures import Adds, Cells, Outer, Parts, Shape, table_rows
from dpframework.formulas.sensitivity_claims_and_neighbours import Change, Claim, ScoreClaims
from dpframework.formulas.smt_goal_evaluator import CLOSE, GroundGoal

SIZES = (1, 3, 9, 40, 10_000)  # the largest counts that a cell or a class has in random tables
EQUAL = 7  # one in this number of random tables has equal counts, since code may treat ties as a special case
LARGEST = 10**8  # the largest counts on which a query's code is compared with its formula: squares exceed 32 bits
MOST_DRAWN = 10_000  # how many random rows are tried, until one has shares (0 or more, together at most 1) as entries
#: How far the change of a query's score may be from that of the formula's score, as a share of the query's score (or of
#: 1 if that is larger). A query may round logarithms.
SCORE_TOLERANCE = 1e-6
#: The same difference, as a share of the claimed bound (or of 1 if that is larger). Both limits apply.
CHANGE_TOLERANCE = 0.01


@final
@attrs.frozen
class GroundPair:
    """The numbers of two neighbours, as constants of a goal, and the scores of both.

    Attributes
    ----------
    numbers
        The values of a goal's constants, by name.
    low, high
        The scores of the two tables that a goal calls low and high.
    low_counts, high_counts
        The counts of both tables, if the score is a function of counts.
    """

    numbers: Mapping[str, Any]
    low: Any
    high: Any
    low_counts: Any = None
    high_counts: Any = None


def ground_problem(shape: Shape, claim: Claim, goals: Sequence[str], pairs: int = 40) -> str | None:
    """Return how goals disagree with neighbours; None if the goals describe all neighbours that are tried.

    Parameters
    ----------
    shape, claim
        The score and the claim about it.
    goals
        The goals, as text.
    pairs
        How many random pairs of neighbours are tried. For `Outer`, all combinations of extreme totals are tried
        instead.
    """
    try:
        written = [GroundGoal(goal) for goal in goals]
        told: dict[tuple[Any, ...], list[tuple[Any, Any]]] = {}  # several pairs of totals have the same numbers
        for pair in neighbours(shape, claim, pairs):
            key = tuple(pair.numbers.items())
            if key not in told:
                found = (goal.compare(pair.numbers) for goal in written)
                told[key] = list(dict.fromkeys(said for said in found if said is not None))
            problem = _problem(told[key], claim, pair)
            if problem is not None:
                return problem
        return None
    except InputError as wrong:
        return f"a goal {wrong}"


def query_problem(scored: ScoreClaims, pairs: int = 40) -> str | None:
    """Return how a query's scores differ from its formula's scores on random neighbours; None if they agree.

    Only changes between neighbours are compared, so the query may add a constant to all scores. If the query has no
    scorer, or if the formula is about totals or a vector, nothing is compared.
    """
    if scored.scorer is None or not isinstance(scored.shape, Parts | Cells):
        return None
    for claim in scored.claims:
        for pair in neighbours(scored.shape, claim, pairs, (*SIZES, LARGEST)):
            low, high = (float(scored.scorer(counts, pair.numbers)) for counts in (pair.low_counts, pair.high_counts))
            slack = min(
                SCORE_TOLERANCE * max(1.0, abs(low), abs(high)),
                CHANGE_TOLERANCE * max(1.0, bound_of(claim, pair.numbers)),
            )
            if abs((high - low) - (float(pair.high) - float(pair.low))) > slack:
                tables = f"{pair.low_counts.tolist()} and {pair.high_counts.tolist()}"
                return f"the query's scores of {tables} differ by {high - low:.6g}, the formula's by another amount"
    return None


def range_problem(shape: Cells, claim: Claim, goals: Sequence[str], pairs: int = 40) -> str | None:
    """Return how the goals of a range disagree with random tables; None if they agree.

    For each table, some goal must compare the score with the claim's bound, and some goal with 0.
    """
    try:
        written = [GroundGoal(goal) for goal in goals]
        for pair in neighbours(shape, claim, pairs):
            said = [one for goal in written if (one := goal.compare(pair.numbers)) is not None]
            table = np.array([pair.numbers[str(cell)] for cell in shape.cells])
            score, bound = float(shape.scores(table)), bound_of(claim, pair.numbers)
            for difference, most in ((score, bound), (-score, 0.0)):
                if not any(np.allclose([float(one) for one in both], [difference, most], CLOSE) for both in said):
                    way = "at most" if most else "at least"
                    return f"no goal says that the score {score:.6g} is {way} {most:.6g}: {_show(pair.numbers)}"
        return None
    except InputError as wrong:
        return f"a goal {wrong}"


def _problem(found: Sequence[tuple[Any, Any]], claim: Claim, pair: GroundPair) -> str | None:
    """Return how the differences and bounds that goals state disagree with two neighbours; None if they agree."""
    change = float(pair.high) - float(pair.low)
    slack = CLOSE * max(1.0, abs(float(pair.high)), abs(float(pair.low)))
    if not found:
        return f"no goal describes the neighbours with {_show(pair.numbers)}"
    fitting = [bound for difference, bound in found if abs(float(difference) - change) <= slack]
    if not fitting:
        wrong = f"{float(found[0][0]):.6g}, but they differ by {change:.6g}"
        return f"a goal says that the scores differ by {wrong}: {_show(pair.numbers)}"
    bound = bound_of(claim, pair.numbers)
    if not any(abs(float(one) - bound) <= CLOSE * max(1.0, abs(bound)) for one in fitting):
        return f"a goal has the bound {float(fitting[0]):.6g}, where the claim has {bound:.6g}"
    return None


def bound_of(claim: Claim, numbers: Mapping[str, Any]) -> float:
    """Return the bound of a claim for tables with these numbers."""
    values: dict[Formula, Any] = {rows: float(numbers.get("rows", 0))}
    for leaf in claim.bound.leaves(Operation.PUBLIC):
        values[leaf] = float(numbers[str(leaf)])
    return float(value_of(claim.bound, values))


def _show(numbers: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in numbers.items())


def neighbours(shape: Shape, claim: Claim, pairs: int, sizes: Sequence[int] = SIZES) -> Iterator[GroundPair]:
    """Yield neighbours of the kind that a claim is about: random ones or, for `Outer`, those with extreme totals.

    One of the two tables may have equal counts.
    """
    random = np.random.default_rng(20)
    if isinstance(shape, Outer):
        yield from _pairs_of_totals(shape, claim)
        return
    if isinstance(shape, Adds) or not is_rational(shape.body):
        sizes = [size for size in sizes if size < SIZES[-1]]
    for k in range(pairs):
        size, equal = sizes[k % len(sizes)], k % EQUAL == EQUAL - 1
        if isinstance(shape, Parts):
            yield _pair_of_parts(shape, claim, random, size, equal)
        elif isinstance(shape, Cells):
            yield _pair_of_cells(shape, claim, random, size, equal)
        else:
            yield _pair_of_rows(shape, claim, random)


def _pair(claim: Claim, numbers: dict[str, Any], shared: Any, more: Any, score: Callable[[Any], Any]) -> GroundPair:
    """Return neighbours with low and high in a claim's order. For a fall, low is the table with more rows."""
    low, high = (more, shared) if claim.change is Change.FALL else (shared, more)
    return GroundPair(numbers, score(low), score(high), low, high)


def _pair_of_parts(shape: Parts, claim: Claim, random: np.random.Generator, size: int, equal: bool) -> GroundPair:
    shared = random.integers(0, size + 1, (3, int(random.integers(2, 6)))) * (random.random() < 0.9)
    shared[0] *= random.random(shared.shape[1]) < random.choice([0.3, 0.9])
    if equal:
        shared[:] = shared.max()
    more = shared.copy()
    more[0, 0] += 1
    others = shared[0, 1:]
    numbers: dict[str, Any] = {"c": int(shared[0, 0]), "rest": int(others.sum())}
    numbers["rows"] = int(more.sum() + random.integers(0, 3))
    for k, found in enumerate(shape.body.leaves(*AGGREGATES)):
        numbers[f"s{k}"] = aggregate_of(found, others)
    return _pair(claim, numbers, shared, more, shape.scores)


def aggregate_of(aggregate: Formula, counts: NDArray[np.int64]) -> Any:
    """Return a sum or a largest value over classes with these counts. It is exact if it has no root or logarithm."""
    exact = is_rational(aggregate)
    table = counts.astype(object if exact else np.float64)
    return value_of(aggregate, {n: table, rows_of_part: np.asarray(table.sum())}, exact)


def _pair_of_cells(shape: Cells, claim: Claim, random: np.random.Generator, size: int, equal: bool) -> GroundPair:
    names = [str(cell) for cell in shape.cells]
    shared = random.integers(0, size + 1, len(names)) * (random.random(len(names)) < 0.8)
    if equal:
        shared[:] = shared.max()
    none = len(names)  # the position of a row that is in no cell
    places = (
        random.integers(0, none + 1, (2, claim.group)) if claim.group > 1 else random.permutation(none + 1)[:2, None]
    )
    if claim.change is not Change.REPLACED:
        places = np.array([places.min(axis=0), np.full(claim.group, none)])
    into, out = (np.bincount(place, minlength=none + 1)[:none] for place in places)
    numbers: dict[str, Any] = dict(zip(names, shared.tolist(), strict=True))
    if claim.group > 1:
        for tag, more in (("in", into), ("out", out)):
            numbers |= {f"{tag}_{name}": int(value) for name, value in zip(names, more, strict=True)}
    chosen = list(settings(shape))
    setting, values = chosen[int(random.integers(len(chosen)))]
    numbers |= values
    return _pair(claim, numbers, shared + out, shared + into, setting.scores)


def _pairs_of_totals(shape: Outer, claim: Claim) -> Iterator[GroundPair]:
    """Yield pairs for several numbers of rows. Each total, and its change by a row, is at an end of its range."""
    ends = list(combinations((False, True), repeat=len(shape.totals)))
    moves = list(combinations(ends, repeat=2)) if claim.change is Change.REPLACED else [(None, end) for end in ends]
    for number, at, (out, into) in combinations((0, 1, 2, 9, 40), ends, moves):

        def score(move: tuple[bool, ...] | None, number: int = number, at: tuple[bool, ...] = at) -> Any:
            values: dict[Formula, Any] = {table_rows: Fraction(number + (move is not None))}
            for k, one in enumerate(shape.totals):
                base = (one.per_row or Fraction()) * number * at[k]
                values[one.cell] = base if move is None else base + (one.rise if move[k] else -one.fall)
            return value_of(shape.body, values, exact=True)

        yield _pair(claim, {"N": number}, out, into, score)


def _pair_of_rows(shape: Adds, claim: Claim, random: np.random.Generator) -> GroundPair:
    """Return a pair with the low score 0. Its high score is the norm of a row's entries, or of two rows' difference."""
    free = list(dict.fromkeys(one for entry in shape.entries for one in entry.leaves(Operation.PUBLIC)))
    before = [_draw_row(shape, free, random) for _ in range(2)]
    numbers = {str(one): before[0][one] for one in free}
    moved = _entries(shape, before[0])
    if claim.replaced:
        numbers |= {f"{one}_before": before[1][one] for one in free}
        moved = [one - other for one, other in zip(moved, _entries(shape, before[1]), strict=True)]
    sizes = [one * one if claim.change is Change.SQUARED_L2 else abs(one) for one in moved]
    return GroundPair(numbers, 0, max(sizes) if claim.change is Change.LINF else sum(sizes))


def _draw_row(shape: Adds, free: Sequence[Formula], random: np.random.Generator) -> dict[Formula, Fraction]:
    """Return random numbers for one row. The ends of ranges are drawn more often than numbers between them.

    Raises
    ------
    InputError
        If none of many rows has entries that are shares.
    """
    for _ in range(MOST_DRAWN):
        drawn = {}
        for one in free:
            assert isinstance(one.value, PublicRange)
            share = Fraction(int(random.choice([0, 0, 4, 4, int(random.integers(0, 5))])), 4)
            drawn[one] = one.value.lower + share * (one.value.upper - one.value.lower)
        entries = _entries(shape, drawn)
        if not shape.shares or (min(entries) >= 0 and sum(entries) <= 1):
            return drawn
    raise InputError(f"states shares of one row, but '{shape.text}' is never in [0, 1] on {MOST_DRAWN} random rows")


def _entries(shape: Adds, numbers: Mapping[Formula, Fraction]) -> list[Any]:
    return [value_of(entry, numbers, exact=True) for entry in shape.entries]

"""Answers of two neighbouring tables, as far apart as a sensitivity allows, and outputs to compare densities on."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, TypeAlias, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.privacy_losses import Relation
from dpframework.mechanisms import Calibration, Mechanism
from dpframework.mechanisms.randomness import REAL_ARITHMETIC, SeededRandomness
from dpframework.queries import KeyCounts, Norm, PiecewiseScores, QueryFacts, Sensitivity, histogram_sensitivities
from dpframework.results.keys import ReleasedKeys
from dpframework.verify.mechanisms.output_keys import output_key, output_numbers, output_step, puts_out_numbers
from dpframework.verify.mechanisms.release_failure_check import stated_density, takes_answer
from dpframework.verify.mechanisms.sampler_statistics import noise_size, with_scale
from dpframework.verify.search_time_limit import Patience

Floats: TypeAlias = "NDArray[np.float64]"
Pairs: TypeAlias = Callable[[Mechanism, Calibration, Relation], Iterator[tuple[Any, Any]]]

STEPS = (-2, -1, 0, 1, 2)  # the values of a coordinate of a change, before the change is scaled to the size allowed
MOST_WHOLE = 10  # a declared change of whole numbers below this is divided among coordinates in every possible way
PART = Fraction(5, 2)  # the declared change of a real number
GAPS = (0, 1, 4)  # how far scores lie below the best one, in scales of the noise
# How far around the answers outputs are listed, in scales of the noise, by the number of coordinates of an answer.
WIDTH = {1: 25, 2: 12}
MOST_POINTS = {1: 4_000, 2: 120}  # how many points an axis has at most, roughly, by the number of coordinates
FEW_KINDS = 6  # how many kinds of rows of several histograms are tried as the only row of a table
BESIDE = (1, 2, 3, 5)  # how many other keys there are when a row adds a new key
MOST_DRAWN = 400  # how many outputs are drawn, at most, if they cannot be listed
DIRECTION_DRAWS = 16  # this many draws of noise show in which directions it goes
CELLS = 16  # when a density is summed over cells, a scale of the noise is at least this many cells long
THIN = -1000.0  # the logarithm of the size of a single real number, which has hardly any probability
MOST_KNOWN, FEWER = 60, 8  # if 1 to 60 outputs are known from other pairs, only an eighth of `MOST_DRAWN` is drawn
FLATTENING = 3  # the factor by which the noise is widened when outputs are drawn
BREAKS = np.array([0.0, 0.5, 2.0, 2.25, 4.0])  # the ends of the pieces of made-up scores on an interval


@final
@attrs.frozen(eq=False)
class Answers:
    """The facts of a query, with pairs of its answers on neighbouring tables.

    Attributes
    ----------
    facts
        The facts of the query, such as its declared sensitivities.
    pairs
        A function of a mechanism, its calibration and the relation, which yields pairs of answers.
    """

    facts: QueryFacts
    pairs: Pairs


def answers_of(mechanism: Mechanism) -> tuple[Answers, ...]:
    """Return the facts of made-up queries that a mechanism can serve, each with pairs of answers.

    Together the pairs show every kind of change.
    """
    scored = [
        Sensitivity(Norm.LINF, 1, fall=0, source="a probe"),
        Sensitivity(Norm.LINF, 1, source="a probe"),
    ]
    weights = [Sensitivity(norm, change, source="a probe") for norm, change in ((Norm.L1, 3), (Norm.SQUARED_L2, 9))]
    # A mechanism might round a sensitivity to a whole number.
    real = [Sensitivity(norm, PART**k, source="a probe") for k, norm in ((1, Norm.L1), (2, Norm.SQUARED_L2))]
    of_marginals = Sensitivity(Norm.HISTOGRAMS, 1, 2, fall=0, source="a probe")
    of_blocks = Sensitivity(Norm.BLOCKS, 1, 2, source="a probe")
    of_counts = [
        QueryFacts("count", "a count", (), True, 1, histogram_sensitivities(1)),
        QueryFacts("counts", "counts of disjoint cells", (), True, 2, histogram_sensitivities(2)),
        QueryFacts("weights", "a sum of weights up to 3", (), True, 1, weights),
        QueryFacts("real", "a real number", (), False, 1, real),
        QueryFacts("reals", "two real numbers", (), False, 2, real),
        QueryFacts("marginals", "two histograms of the same rows", (), True, 5, [of_marginals], histograms=(2, 3)),
        QueryFacts("blocks", "two blocks of numbers", (), True, 3, [of_blocks], histograms=(1, 2)),
        QueryFacts("keys", "keys that nobody lists", (), True, None, histogram_sensitivities(None), unlisted=True),
    ]
    of_scores = [
        QueryFacts("scores", f"{'integer' if integer else 'real'} scores, {words}", (), integer, 3, [declared])
        for integer in (True, False)
        for words, declared in zip(("monotonic", "two-sided"), scored, strict=True)
    ]
    served = []
    for facts in of_scores if mechanism.norm is Norm.LINF else of_counts:
        declared = {sensitivity.norm for sensitivity in facts.sensitivities}
        if mechanism.norm in declared and mechanism.misfit(facts) is None:
            served.append(invent_answers(facts))
    # Two real numbers take long. So they are only for a mechanism that refuses a single one.
    names = {asked.facts.name for asked in served}
    return tuple(asked for asked in served if asked.facts.name != "reals" or "real" not in names)


def invent_answers(facts: QueryFacts) -> Answers:
    """Return facts with made-up pairs of answers: numbers, counts by key, scores, or scores on an interval."""
    return Answers(facts, _invent_answers)


def unit_answers(asked: Answers, rows: int) -> Answers | None:
    """Return pairs of answers on tables that differ by one unit, each of whose rows makes the same change.

    If one row changes an answer by at most the declared change, k rows change it by at most k times as much. None if
    neither an l1 nor an l2 sensitivity is declared, or if nobody lists the keys that are counted.
    """
    if asked.facts.unlisted or not {one.norm for one in asked.facts.sensitivities} & {Norm.L1, Norm.SQUARED_L2}:
        return None

    def pairs(mechanism: Mechanism, calibration: Calibration, relation: Relation) -> Iterator[tuple[Any, Any]]:
        for one, other in asked.pairs(mechanism, calibration, relation):
            if isinstance(one, np.ndarray) and not mechanism.selects:
                yield one, one + rows * (other - one)

    return Answers(attrs.evolve(asked.facts, text=f"{asked.facts.text}, of a unit of {rows} rows"), pairs)


def _invent_answers(mechanism: Mechanism, calibration: Calibration, relation: Relation) -> Iterator[tuple[Any, Any]]:
    facts = calibration.facts
    scale = noise_size(mechanism, calibration)
    if facts.unlisted:
        # One row is added, or is replaced by a row with another key. Some of the keys have a single row. A new key must
        # change neither the counts of other keys nor whether these keys are shown.
        if relation is Relation.ADD_OR_REMOVE_ONE:
            for rows in (0, 1, 2, 5, 9):
                yield KeyCounts.of({"a": rows}), KeyCounts.of({"a": rows + 1})
            for rows, number in itertools.product((5, 9), BESIDE):
                others = {f"b{k}": rows for k in range(number)}
                yield KeyCounts.of(others), KeyCounts.of({"a": 1, **others})
            return
        for rows in (0, 40):
            yield KeyCounts.of({"a": rows + 1}), KeyCounts.of({"a": rows, "b": 1})
        return
    if mechanism.norm is Norm.HISTOGRAMS:
        eyes = [np.eye(size, dtype=np.int64) for size in facts.histograms]
        kinds = list(itertools.islice((np.concatenate(row) for row in itertools.product(*eyes)), 64))
        all_rows = 3 * kinds[0] + sum(kinds)
        added = relation is Relation.ADD_OR_REMOVE_ONE
        for row in kinds:
            yield all_rows, all_rows + row if added else all_rows - kinds[0] + row
        # If a table has a single row, its neighbour has the largest count of a histogram in another cell. For some
        # mechanisms, the output is only which cell that is.
        for row in kinds[: -FEW_KINDS - 1 : -1]:
            yield kinds[0] - kinds[0] * added, row
        return
    if mechanism.norm is Norm.BLOCKS:
        most = 1 if relation is Relation.ADD_OR_REMOVE_ONE else 2
        for first, second in itertools.product(range(-most, most + 1), repeat=2):
            before = np.array([5, -3, 0])
            yield before, before + np.array([first, second, most - abs(second)])
        return
    if mechanism.norm is not Norm.LINF:
        base = np.array([5.0, -3.0])[: min(facts.answer_length or 2, 2)]
        for shift in shifts(facts, relation, len(base)):
            starts = [base]
            if not facts.integer:
                starts.append(-shift / 2)  # a mechanism may clip real numbers to a range around 0
            elif len(base) > 1 and not shift[0]:
                starts.append(0 * base)  # so that another number becomes the largest
            for start in starts:
                yield _as_type(start, facts), _as_type(start + shift, facts)
        return
    size = min(facts.answer_length or 3, 3)
    # A mechanism that selects no candidate is given scores on an interval, if it takes them or takes no array.
    piecewise = PiecewiseScores(BREAKS, np.zeros(len(BREAKS) - 1))
    on_an_interval = not mechanism.selects and (
        takes_answer(mechanism, piecewise, calibration)
        or not takes_answer(mechanism, _as_type(np.zeros(size), facts), calibration)
    )
    for gaps in itertools.product(GAPS, repeat=size - 1):
        base = -np.array([0, *gaps]) * scale
        for shift in shifts(facts, relation, size):
            if not on_an_interval:
                yield _as_type(np.rint(base), facts), _as_type(np.rint(base) + shift, facts)
            else:
                one, other = (np.resize(scores, len(BREAKS) - 1) for scores in (base, base + shift))
                yield PiecewiseScores(BREAKS, one), PiecewiseScores(BREAKS, other)


def _as_type(numbers: Floats, facts: QueryFacts) -> NDArray[Any]:
    return numbers.astype(np.int64) if facts.integer else numbers


def shifts(facts: QueryFacts, relation: Relation, size: int) -> list[Floats]:
    """Return changes of an answer that its declared sensitivities allow, each the largest in its direction.

    Of two opposite changes only one is returned, since losses are compared both ways. If the declared change of whole
    numbers is small, all largest changes are returned. Otherwise some directions are chosen, and changes of whole
    numbers are rounded towards 0. So the number of changes, and the time of a search, do not grow with the declared
    change.
    """
    longest_by_norm = _longest_by_norm(facts, relation)
    share_of_longest = functools.partial(_share_of_longest, facts, relation)
    longest = math.floor(max(longest_by_norm.values()))
    small = facts.integer and longest < MOST_WHOLE
    found: dict[tuple[float, ...], Floats] = {}
    for moved in itertools.product(range(-longest, longest + 1) if small else STEPS, repeat=size):
        if next((step for step in moved if step), 0) <= 0:
            continue
        change = np.array(moved, dtype=np.float64)
        if small:
            largest = abs(share_of_longest(change) - 1) < 1e-9
        else:
            change = change / share_of_longest(change)
            change = np.trunc(change * (1 + 1e-12)) if facts.integer else change
            # Rounding may move two numbers farther apart than their declared spread allows.
            largest = bool(change.any()) and share_of_longest(change) <= 1 + 1e-9
        if largest:
            found.setdefault(tuple(change.round(12)), change)
    return list(found.values())


def largest_share(facts: QueryFacts, relation: Relation, change: Floats) -> float:
    """Return the largest factor of a change of an answer that its declared sensitivities allow."""
    return 1 / _share_of_longest(facts, relation, change)


def _longest_by_norm(facts: QueryFacts, relation: Relation) -> dict[Norm, float]:
    """Return the declared sensitivities as lengths. In the l2 norm, this is the root of what is declared."""
    return {
        s.norm: math.sqrt(bound) if s.norm is Norm.SQUARED_L2 else float(bound)
        for s in facts.sensitivities
        if (bound := s.change.under(relation))
    }


def _share_of_longest(facts: QueryFacts, relation: Relation, change: Floats) -> float:
    """Return the largest ratio of a change to a declared sensitivity, over all norms and spreads."""
    shares = [_length(norm, change) / longest for norm, longest in _longest_by_norm(facts, relation).items()]
    spreads = [s.spread.under(relation) for s in facts.sensitivities if s.norm is Norm.LINF]
    replaced = [s for s in facts.sensitivities if relation is Relation.REPLACE_ONE and s.norm is not Norm.LINF]
    shares += [share for one in replaced if (share := _share_of_directions(one, change)) is not None]
    return max(shares + [float(np.ptp(change)) / float(spread) for spread in spreads if spread])


def _share_of_directions(declared: Sensitivity, change: Floats) -> float | None:
    """Return the length of all rises of a change, or of all falls, over the most that replacing a row allows.

    The larger of the two ratios is returned, or None if the query does not declare its rise and fall. The row that
    enters may raise some numbers, and the row that leaves may lower numbers that it had raised. Both rows together
    bound the rises, and both bound the falls.
    """
    if declared.rise is None or declared.fall is None:
        return None
    power = 0.5 if declared.norm is Norm.SQUARED_L2 else 1.0
    most = float(declared.rise) ** power + float(declared.fall) ** power
    moved = max(_length(declared.norm, np.maximum(change, 0)), _length(declared.norm, np.maximum(-change, 0)))
    return moved / most if most else None


def _length(norm: Norm, change: Floats) -> float:
    size = np.abs(change)
    match norm:
        case Norm.L1:
            return float(size.sum())
        case Norm.SQUARED_L2:
            return math.sqrt(np.square(size).sum())
    return float(size.max())


def list_outputs(
    mechanism: Mechanism, calibration: Calibration, one: Any, other: Any, patience: Patience, known: dict[Any, Any]
) -> tuple[Sequence[Any], Floats | float]:
    """Return outputs on which the densities given two answers are compared, and the logarithms of their sizes.

    The size of an output says how much of the range it stands for. It is the length of a piece of an interval, or the
    number of lattice points around a point of a grid. If outputs cannot be listed, they are drawn: two in any case, and
    up to `MOST_DRAWN` as long as there is time. If these have densities, their size is `THIN`.

    `known` are outputs that were drawn for other pairs of the same query, by their keys. They are used for this pair,
    too, as long as they are few. So an output that is rare for one pair is often known from another one, and fewer
    outputs are drawn.
    """
    if isinstance(one, PiecewiseScores):
        breaks = np.unique(np.concatenate([one.breaks, other.breaks]))
        return list((breaks[:-1] + breaks[1:]) / 2), np.log(np.diff(breaks))
    if isinstance(one, KeyCounts) and len(keys := sorted({*one.keys, *other.keys})) in WIDTH:
        highest = int(max(one.counts.max(initial=0), other.counts.max(initial=0)))
        reach = min(math.ceil(WIDTH[len(keys)] * noise_size(mechanism, calibration)) + highest, MOST_POINTS[len(keys)])
        return [ReleasedKeys.shown(keys, n) for n in itertools.product(range(reach + 1), repeat=len(keys))], 0.0
    if mechanism.selects and isinstance(one, np.ndarray):
        return range(one.size), 0.0
    if np.size(one) in WIDTH and puts_out_numbers(mechanism, one, calibration):
        return _grid(mechanism, calibration, np.asarray(one), np.asarray(other))
    return draw_outputs(mechanism, calibration, one, other, patience, known)


def _grid(
    mechanism: Mechanism, calibration: Calibration, one: NDArray[Any], other: NDArray[Any]
) -> tuple[list[Any], float]:
    """Return all points of the outputs' lattice around both answers, or only evenly spaced ones if there are too many.

    The second value is the logarithm of the number of lattice points for each returned point. If outputs are real
    numbers with a density, the points are the middles of small cells, and the second value is the logarithm of a cell's
    size. The density may have kinks or jump at the answers, and at multiples of half a unit around them, which are ends
    of cells.
    """
    real = has_real_density(mechanism, one, calibration)
    size, unit = noise_size(mechanism, calibration), output_step(mechanism, one, calibration)
    if real:  # a power of two, at most 1/16 of the noise's scale, and at most 1/16 for a unit of 1
        unit = 2.0 ** math.floor(math.log2((min(size, 1.0) if calibration.unit == 1 else size) / CELLS))
    base, change = np.rint(one.ravel() / unit), np.rint((other - one).ravel() / unit)
    width = WIDTH[base.size] * size / unit
    reach = 2 * width + float(np.abs(change).max())
    stride = max(1, math.ceil(reach / MOST_POINTS[base.size]))
    if mechanism.norm is not Norm.SQUARED_L2:
        # A density in the l1 norm has its kinks at the answers, so these must be points of the grid.
        stride = 2 ** math.ceil(math.log2(stride))
    if mechanism.norm is not Norm.SQUARED_L2 and (change % stride).any():
        stride, width = 1, min(width, (MOST_POINTS[base.size] - float(np.abs(change).max())) / 2)
    axes = []
    for start, step in zip(base, change, strict=True):
        below = math.floor((min(step, 0.0) - width) / stride)
        above = math.ceil((max(step, 0.0) + width) / stride)
        axes.append(start + stride * (np.arange(below, above + 1) + (0.5 if real else 0)))
    integer = np.int64 if calibration.unit == 1 and not real else np.float64
    points = [(np.array(point) * unit).astype(integer).reshape(one.shape) for point in itertools.product(*axes)]
    # Noise that keeps the sum of two numbers lies on a line, of whose points every stride-th one is listed.
    directions = base.size if real or stride == 1 else _noise_directions(mechanism, calibration, one)
    return points, directions * math.log(stride * unit if real else stride)


def _noise_directions(mechanism: Mechanism, calibration: Calibration, answer: NDArray[Any]) -> int:
    """Return in how many directions the noise of an answer goes: in fewer than it has numbers if a sum is kept."""
    if answer.size == 1:
        return 1
    randomness = SeededRandomness(0).handed(mechanism.assumptions)
    drawn = [output_numbers(mechanism.release(answer, calibration, randomness)) for _ in range(DIRECTION_DRAWS)]
    return int(np.linalg.matrix_rank(np.array(drawn) - answer.ravel()))


def has_real_density(mechanism: Mechanism, answer: Any, calibration: Calibration) -> bool:
    """Tell whether a mechanism's outputs are real numbers with a density, judged by one output.

    If a mechanism assumes real arithmetic and puts out floats, its log-density is one of real numbers. Otherwise
    outputs lie on a lattice, and the log-density is the logarithm of a probability.
    """
    if REAL_ARITHMETIC not in mechanism.assumptions:
        return False
    output = mechanism.release(answer, calibration, SeededRandomness(0).handed(mechanism.assumptions))
    points = output_numbers(output) / float(calibration.unit)
    return bool((points != np.rint(points)).any())


def draw_outputs(
    mechanism: Mechanism, calibration: Calibration, one: Any, other: Any, patience: Patience, known: dict[Any, Any]
) -> tuple[Sequence[Any], Floats | float]:
    """Return distinct outputs, drawn with widened noise for either answer in turn, and those that are known.

    If all outputs with widened noise are impossible, the noise is not widened. This is so if a mechanism puts out one
    of two numbers that depend on the scale. The arguments and the second value are those of `list_outputs`.
    """
    randomness = SeededRandomness(len(known)).handed(mechanism.assumptions)
    wide = with_scale(calibration, Fraction(FLATTENING))
    some = [mechanism.release(one, wide, randomness) for _ in range(FEWER)]
    if all(stated_density(mechanism, one, output, calibration) == -math.inf for output in some):
        wide = calibration
    shared = 0 < len(known) <= MOST_KNOWN
    found = dict(known) if shared else {}
    for k in range(MOST_DRAWN // FEWER if shared else MOST_DRAWN):
        if k >= 2 and patience.over:
            break
        output = mechanism.release((one, other)[k % 2], wide, randomness)
        found.setdefault(output_key(output), output)
    if len(known) <= MOST_KNOWN:
        known.update(found)
    return list(found.values()), THIN if has_real_density(mechanism, one, calibration) else 0.0

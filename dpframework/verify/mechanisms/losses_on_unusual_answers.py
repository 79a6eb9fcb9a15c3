"""Losses on answers that differ from the usual ones in their length or their numbers, and at other amounts to spend.

A mechanism may use other code for empty cells, for large counts, for long answers, for many candidates, or for a large
epsilon. If its log-density does the same, its draws fit the log-density, and only the losses on such answers show that
less is claimed than lost. So a few outputs are weighed, which means that their log-densities given two answers are
computed. The pairs of answers are:

- Answers of 1 to 1000 numbers, which are all 0, small or large, or of which the first is far larger than the others. A
  row changes one or two numbers at either end, or all of them, if they are real. If the log-density is a sum over
  numbers, the probabilities of all values of a changed number are listed, and Renyi divergences are computed from them.
  The largest ratio is sought at outputs near the answers and far away. If numbers depend on each other and only rho is
  claimed, outputs are drawn, and bound a Renyi divergence (see `sampler_statistics.renyi_at_least`).
- Single numbers that a row moves past a power of two or of ten.
- Choices among 2 to 1000 candidates (see `losses_on_unusual_scores`). Their scores are equal, all of them are large, or
  one or two of them are far ahead, or one is far behind.

Except for that bound, no draw decides: every value found is at most the true loss, up to rounding. The bound of some
pair may be above the true divergence, so that a correct mechanism is refused. The probability is at most 1e-6.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.errors import InputError
from dpframework.facts.privacy_losses import NOTHING, Relation
from dpframework.mechanisms import Calibration, Mechanism
from dpframework.mechanisms.randomness import SeededRandomness
from dpframework.queries import Norm, QueryFacts
from dpframework.verify.mechanisms.losses_on_unusual_scores import (
    Floats,
    Logs,
    densities,
    weigh_choices,
    weigh_drawn_outputs,
    weigh_large_scores,
)
from dpframework.verify.mechanisms.neighbour_answers import has_real_density, largest_share, shifts
from dpframework.verify.mechanisms.output_keys import is_array_like, output_key, output_step
from dpframework.verify.mechanisms.probe_query_answers import scale_sensitivity
from dpframework.verify.mechanisms.release_failure_check import drawn_output, stated_density, takes_answer
from dpframework.verify.mechanisms.sampler_statistics import noise_size
from dpframework.verify.miners.neighbour_pair_search import last_before
from dpframework.verify.queries.miner_and_mechanism_parameter_variants import (
    SPENT,
    related_mechanisms,
    with_other_parameters,
)

LENGTHS = (1, 2, 3, 5, 7, 17, 256, 1000)  # how many numbers answers have, or how many candidates there are
MOVED_LENGTHS = (1, 3)  # the lengths at which answers have numbers of many sizes, and scores are large
FEW_LENGTHS = LENGTHS[:2]  # the lengths for other amounts to spend, and for finer sensitivities
REPLACED_LENGTHS = (*FEW_LENGTHS, LENGTHS[-1])  # the lengths under replace-one
DEPENDENT_LENGTHS = (3, 17)  # lengths at which all numbers may change together, or may depend on each other
OWN_LENGTHS = (1, 3, 17)  # the lengths for other parameters of a mechanism's own
LARGE = (100, 10**4, 10**8, -(10**8))  # numbers of an answer of length 1, besides 0
#: Further numbers: powers of two and of ten, minus 1. Beyond such a power, a mechanism may use other code, or may round
#: numbers to multiples of the power.
BEFORE_POWERS = (*(2**k - 1 for k in range(2, 34)), *(10**k - 1 for k in (2, 3, 4, 6, 9)))
LISTED = (1, 17)  # the lengths of answers for which the probabilities of all values of a number are listed
DOMINANT = 10**4  # is added to the first number of an answer of three or more, so that it is the largest by far
FRACTION = 0.123456789  # is added to real numbers, since a mechanism may round them
FINER = Fraction(1, 1000)  # real numbers are tried with this share of their sensitivity, too
AMOUNTS = (Fraction(1, 64), Fraction(5, 9), Fraction(9, 4), Fraction(64))  # shares of what a mechanism spends
DELTA_AMOUNTS = (Fraction(1, 10**3), Fraction(1, 10**6))  # shares of the mechanism's own delta
MOST_STEPS = 400  # the most values of a number whose probabilities are listed
MOST_STEPS_WITH_DELTA = 2_000  # the same if the mechanism has a delta of its own, so that its noise may end
UNLISTED = 1e-6  # with such a delta, how far the logarithm of the sum of all listed probabilities may be from 0
#: For noise with a density: the cells of one scale of it, the most cells in all, and how far the logarithm of the sum
#: over cells may be off, such as at an end of the noise.
CELLS, MOST_CELLS, ROUGH = 64, 20_000, 0.02
REACH = {Norm.L1: 35.0, Norm.SQUARED_L2: 9.0}  # how far from an answer values are listed, in scales of the noise
NEAR = (0, 1, 2, 3, 5, 20)  # how far outputs lie from an answer, in steps of the lattice and in scales of the noise
FAR = (8, 16, 24, 32)  # for these k, outputs also lie 2**k steps away, where floats still hold the losses
DEPENDENT_DRAWN = 400  # how many outputs are drawn for a pair of answers if their numbers depend on each other
DRAWN = 24  # how many outputs are drawn for each of two answers if outputs are not arrays of the answer's shape


@final
@attrs.frozen(eq=False)
class Weighed:
    """The log-probabilities of some outputs given two answers.

    Attributes
    ----------
    what
        The answers, and how much the mechanism spends, in words.
    calibration
        The calibration whose claims are compared.
    pairs
        Log-probabilities given one answer and given the other, two arrays for each pair of answers.
    whole
        The same two arrays for outputs whose probabilities, given either answer, add up to nearly 1.
    losses
        For further pairs, the losses of independent outputs that were drawn for one of the answers.
    in_cells
        Whether outputs have a density of real numbers, so that probabilities of cells are only approximate.
    with_event
        Whether the event of the mechanism is compared, too. This takes long, so it is done only for whole numbers under
        add-or-remove-one, with other parameters or another amount to spend.
    """

    what: str
    calibration: Calibration
    pairs: list[Logs]
    whole: list[Logs]
    losses: list[Floats]
    in_cells: bool = False
    with_event: bool = False


def weigh_other_answers(
    mechanism: Mechanism, facts: QueryFacts, relation: Relation, go_on: Callable[[], bool]
) -> Iterator[Weighed]:
    """Yield the probabilities of outputs given pairs of unusual answers, for each length and amount.

    Nothing is yielded for answers that the mechanism does not serve, such as answers of another length. The search ends
    once `go_on` returns False. Keys that nobody lists, several histograms and scores on an interval are not tried.

    Raises
    ------
    MechanismFailedError
        If a release or a log-density fails on an answer of a length that the mechanism serves.
    """
    if not takes_other_lengths(mechanism, facts):
        return
    scored = weigh_choices if mechanism.selects else weigh_drawn_outputs if mechanism.norm is Norm.LINF else None
    for how, other, some, lengths in _variants(mechanism, facts, relation):
        for length in lengths:
            if not go_on():
                return
            try:
                longer = attrs.evolve(some, answer_length=length)
                calibration = other.calibrate(longer, relation)
            except InputError:  # the mechanism refuses such facts, and so claims nothing for them
                continue
            zeros = np.zeros(length, dtype=np.int64 if facts.integer else np.float64)
            if calibration is None or not takes_answer(other, zeros, calibration):
                continue
            what = f"{length} candidates" if scored else f"an answer of length {length}"
            arguments = other, calibration, relation, length
            pairs, whole, losses = (scored(*arguments), [], []) if scored else _weigh_numbers(*arguments)
            if not how and length in MOVED_LENGTHS and (other.selects or not scored):
                pairs += (weigh_large_scores if other.selects else _weigh_large_numbers)(*arguments)
            in_cells = not other.selects and has_real_density(other, zeros, calibration)
            stated = type(mechanism).dp_event is not Mechanism.dp_event and bool(whole)
            with_event = stated and bool(how) and facts.integer and relation is Relation.ADD_OR_REMOVE_ONE
            yield Weighed(f"{what}{how}", calibration, pairs, whole, losses, in_cells, with_event)


def _variants(
    mechanism: Mechanism, facts: QueryFacts, relation: Relation
) -> Iterator[tuple[str, Mechanism, QueryFacts, Sequence[int]]]:
    """Yield the mechanism with the query's facts, other sensitivities of real numbers, or more or less to spend.

    Also yield it with other parameters of its own. The last value is the lengths of the answers that are tried.
    """
    yield "", mechanism, facts, LENGTHS if relation is Relation.ADD_OR_REMOVE_ONE else REPLACED_LENGTHS
    if not facts.integer and not facts.rounding:
        finer = attrs.evolve(facts, sensitivities=[scale_sensitivity(one, FINER) for one in facts.sensitivities])
        yield f", {FINER} of the sensitivity", mechanism, finer, FEW_LENGTHS
        # If a single norm bounds the changes, the largest ones may be changes of all numbers at once.
        alone = attrs.evolve(facts, sensitivities=[one for one in facts.sensitivities if one.norm is mechanism.norm])
        what = f", if only its {mechanism.norm} sensitivity is declared"
        yield what, mechanism, alone, DEPENDENT_LENGTHS
    for how, other, lengths in mechanism_variants(mechanism):
        yield f", {how}", other, facts, lengths


def mechanism_variants(
    mechanism: Mechanism, amounts: Sequence[Fraction] = AMOUNTS, deltas: Sequence[Fraction] = DELTA_AMOUNTS
) -> Iterator[tuple[str, Mechanism, Sequence[int]]]:
    """Yield copies of a mechanism that spend other amounts, and copies with other parameters of its own.

    The first value says what is changed, and the last one is the lengths of the answers that are tried.
    """
    for shares, names in ((amounts, SPENT[:2]), (deltas, SPENT[2:])):
        for how, other in related_mechanisms(mechanism, shares, names):
            yield how, other, FEW_LENGTHS
    for how, other in with_other_parameters(mechanism):
        yield f"with {how}", other, OWN_LENGTHS


def takes_other_lengths(mechanism: Mechanism, facts: QueryFacts) -> bool:
    """Tell whether a mechanism may serve answers of any length, and not only keys, several histograms or blocks."""
    return not (facts.unlisted or facts.histograms) and (mechanism.norm is Norm.LINF or mechanism.norm in REACH)


# --- numbers --------------------------------------------------------------------------------------------------------


def _weigh_numbers(
    mechanism: Mechanism, calibration: Calibration, relation: Relation, length: int
) -> tuple[list[Logs], list[Logs], list[Floats]]:
    pairs, whole, losses = [], [], []
    pure = calibration.losses.pure.under(relation) is not None
    for one, other in _pairs_of_numbers(calibration.facts, relation, length):
        if not _same_shape(mechanism, one, calibration):
            pairs.append(_at_draws(mechanism, one, other, calibration))
            continue
        if pure:
            corners = _at_corners(mechanism, one, other, calibration)
            # If none of these outputs is possible, outputs lie elsewhere, such as on a sphere.
            elsewhere = np.isneginf(corners).all()
            pairs.append(_at_draws(mechanism, one, other, calibration) if elsewhere else corners)
        listed = length in LISTED and np.count_nonzero(other - one) <= 2
        if listed and (found := _listed(mechanism, one, other, calibration)) is not None:
            whole.append(found)
        elif not pure and length in DEPENDENT_LENGTHS and not _adds_up(mechanism, one, calibration):
            handed = SeededRandomness(15).handed(mechanism.assumptions)
            outputs = [drawn_output(mechanism, one, calibration, handed) for _ in range(DEPENDENT_DRAWN)]
            here, there = densities(mechanism, one, other, outputs, calibration)
            losses.append(here - there)
    return pairs, whole, losses


def _pairs_of_numbers(
    facts: QueryFacts, relation: Relation, length: int
) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Yield pairs of answers of a length.

    One or two numbers at either end change, or all numbers do. Before the change, the numbers are all 0, or all large,
    or the first one is far larger than all others.
    """
    changed = min(length, 2)
    part = 0.0 if facts.integer else FRACTION
    starts = [np.full(length, base + part) for base in (0, *(LARGE if length == 1 else ()))]
    if length > changed:
        starts.append(starts[0] + np.where(np.arange(length) == 0, DOMINANT, 0))
    moves: list[Floats] = []
    for shift in _largest_in_turn(shifts(facts, relation, changed)):
        move = np.zeros(length)
        move[:changed] = shift if shift[0] else shift[::-1]
        moves += [move] if length == changed else [move, move[::-1]]
    # Changes that move all numbers equally far: all up, or up and down in turn. They are not made for whole numbers,
    # of which a row moves only few, and not if several norms bound the changes.
    if length > changed and not facts.integer and len(facts.sensitivities) <= 1:
        for sign in (np.ones(length), np.where(np.arange(length) % 2, -1.0, 1.0)):
            moves.append(sign * largest_share(facts, relation, sign))
    # A mechanism may clip real numbers to a range around 0.
    around = [(-move / 2, move) for move in moves if not facts.integer and length == 1]
    for start, move in (*itertools.product(starts, moves), *around):
        one, other = start, start + move
        yield (one.astype(np.int64), other.astype(np.int64)) if facts.integer else (one, other)


def _largest_in_turn(changes: Sequence[Floats]) -> list[Floats]:
    """Return the first change of a single number, if there is one, and the change with the largest l1 norm."""
    if not changes:
        return []
    alone = [change for change in changes if np.count_nonzero(change) == 1]
    widest = max(changes, key=lambda change: (np.abs(change).sum(), np.count_nonzero(change)))
    return [*alone[:1], *([] if alone[:1] and widest is alone[0] else [widest])]


def _same_shape(mechanism: Mechanism, answer: NDArray[Any], calibration: Calibration) -> bool:
    handed = SeededRandomness(0).handed(mechanism.assumptions)
    return is_array_like(drawn_output(mechanism, answer, calibration, handed), answer)


def _at_draws(mechanism: Mechanism, one: NDArray[Any], other: NDArray[Any], calibration: Calibration) -> Logs:
    """Weigh outputs that are drawn for either answer in turn."""
    handed = SeededRandomness(0).handed(mechanism.assumptions)
    drawn = [drawn_output(mechanism, (one, other)[k % 2], calibration, handed) for k in range(2 * DRAWN)]
    distinct = list({output_key(output): output for output in drawn}.values())
    return densities(mechanism, one, other, distinct, calibration)


def _at_corners(mechanism: Mechanism, one: NDArray[Any], other: NDArray[Any], calibration: Calibration) -> Logs:
    """Weigh outputs on either side of both answers, near them and far away."""
    unit = output_step(mechanism, one, calibration)
    scale = noise_size(mechanism, calibration) / unit
    steps = np.unique(np.rint([*(k * step for k in NEAR for step in (1, scale)), *(2.0**k for k in FAR)]))
    points = np.rint(one / unit)
    signs = np.sign(other - one)
    distances = np.concatenate([-steps[::-1], steps])
    outputs = [_as_output(points + distance * signs, unit, calibration) for distance in distances]
    return densities(mechanism, one, other, outputs, calibration)


def _as_output(points: Floats, unit: float, calibration: Calibration) -> NDArray[Any]:
    """Return points of the outputs' lattice as an output of the type that outputs have."""
    return points.astype(np.int64) if calibration.unit == 1 else points * unit


def _listed(mechanism: Mechanism, one: NDArray[Any], other: NDArray[Any], calibration: Calibration) -> Logs | None:
    """Return the probabilities of all values of the numbers that differ.

    None if there are too many values, as for most real numbers, or if the log-density is not a sum over numbers.
    """
    unit, scale = output_step(mechanism, one, calibration), noise_size(mechanism, calibration)
    with_delta = calibration.losses.delta != NOTHING
    if has_real_density(mechanism, one, calibration):
        return _listed_in_cells(mechanism, one, other, calibration) if with_delta else None
    smooth = mechanism.norm is Norm.SQUARED_L2 and not with_delta
    stride = max(1, math.floor(scale / unit / 8)) if smooth else 1  # for a smooth density, 8 points per scale suffice
    shift = math.ceil(np.abs(other - one).max() / unit)
    reach, most = math.ceil(REACH[mechanism.norm] * scale / unit / stride), MOST_STEPS
    if with_delta:
        last, most = _last_step(mechanism, one, calibration), MOST_STEPS_WITH_DELTA
        reach = last if last < most else reach
    if 2 * (reach + shift) + 1 > most or not _adds_up(mechanism, one, calibration):
        return None
    reach += shift
    start = np.rint(one / unit)
    found = np.zeros(1), np.zeros(1)
    for k in np.flatnonzero(one != other):
        outputs = []
        for step in range(-reach, reach + 1):
            moved = start.copy()
            moved[k] += step * stride
            outputs.append(_as_output(moved, unit, calibration))
        listed = densities(mechanism, one, other, outputs, calibration)
        masses = [float(np.logaddexp.reduce(logs)) for logs in listed]
        some_left_out = with_delta and one.size == 1 and max(map(abs, masses)) > UNLISTED
        if some_left_out or not np.isfinite(masses).all():
            return None
        # For one of several numbers, the sum over its values also has the density of all others as a factor, which is
        # divided out. For a single number with all values listed, a sum below 1 stays: what is left out only makes the
        # divergence smaller.
        rest = masses if stride > 1 or one.size > 1 else [max(mass, 0.0) for mass in masses]
        here, there = (logs - mass for logs, mass in zip(listed, rest, strict=True))
        found = np.add.outer(found[0], here).ravel(), np.add.outer(found[1], there).ravel()
    return found


def _listed_in_cells(
    mechanism: Mechanism, one: NDArray[Any], other: NDArray[Any], calibration: Calibration
) -> Logs | None:
    """Return the probabilities of short cells of the number that differs, which has a density.

    None if they do not add up to 1, or if several numbers differ.
    """
    scale, changed = noise_size(mechanism, calibration), np.flatnonzero(one != other)
    middle = (one + other) / 2
    reach = REACH[mechanism.norm] * scale + float(np.abs(other - one).max())
    number = math.ceil(reach * CELLS / scale)
    if 2 * number > MOST_CELLS or changed.size > 1 or not _adds_up(mechanism, one, calibration):
        return None
    outputs = [middle + k * scale / CELLS * (one != other) for k in range(-number, number + 1)]
    listed = densities(mechanism, one, other, outputs, calibration)
    masses = [float(np.logaddexp.reduce(logs)) for logs in listed]
    if one.size > 1:  # the density of all other numbers, which is in both sums, is divided out
        return (listed[0] - masses[0], listed[1] - masses[1]) if np.isfinite(masses).all() else None
    here, there = (logs + math.log(scale / CELLS) for logs in listed)
    rough = any(not abs(mass + math.log(scale / CELLS)) <= ROUGH for mass in masses)
    return None if rough else (here, there)


def _last_step(mechanism: Mechanism, answer: NDArray[Any], calibration: Calibration) -> int:
    """Return how many lattice steps above an answer the first number can lie, as the mechanism's log-density says.

    If outputs do not end before, this is `MOST_STEPS_WITH_DELTA`.
    """
    unit = output_step(mechanism, answer, calibration)
    points, first = np.rint(answer / unit), np.arange(answer.size) == 0

    def impossible(steps: int) -> bool:
        output = _as_output(points + steps * first, unit, calibration)
        return stated_density(mechanism, answer, output, calibration) == -math.inf

    ends = not impossible(0) and impossible(MOST_STEPS_WITH_DELTA)
    return last_before(impossible, MOST_STEPS_WITH_DELTA) if ends else MOST_STEPS_WITH_DELTA


def _adds_up(mechanism: Mechanism, answer: NDArray[Any], calibration: Calibration) -> bool:
    """Tell whether a log-density is the sum of one term for the first number and another term for all other numbers."""
    if answer.size == 1:
        return True
    unit = output_step(mechanism, answer, calibration)
    points, step = np.rint(answer / unit), math.ceil(noise_size(mechanism, calibration) / unit)
    first = np.where(np.arange(answer.size) == 0, step, 0.0)
    rest = np.where(np.arange(answer.size) == 0, 0.0, step)
    whole, none, *parts = (
        stated_density(mechanism, answer, _as_output(points + moved, unit, calibration), calibration)
        for moved in (first + rest, 0 * first, first, rest)
    )
    return math.isclose(whole + none, sum(parts), rel_tol=1e-9)


def _weigh_large_numbers(mechanism: Mechanism, calibration: Calibration, relation: Relation, length: int) -> list[Logs]:
    """Weigh outputs for a single number, which a row moves past a power of two or of ten."""
    facts, pairs = calibration.facts, []
    if length > 1 or calibration.losses.pure.under(relation) is None:
        return []
    for number, shift in itertools.product(BEFORE_POWERS, _largest_in_turn(shifts(facts, relation, 1))):
        one = np.full(1, number) if facts.integer else np.full(1, number + 1 - FRACTION)
        other = one + (shift.astype(np.int64) if facts.integer else shift)
        if _same_shape(mechanism, one, calibration):
            pairs.append(_at_corners(mechanism, one, other, calibration))
    return pairs

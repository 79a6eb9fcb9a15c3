"""Losses for unusual scores of candidates: all are equal, one or two far ahead, one far behind, or all are large.

The log-probabilities of candidates are compared, given the scores on two neighbouring tables (see
`losses_on_unusual_answers`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpframework.facts.privacy_losses import Relation
from dpframework.mechanisms import Calibration, Mechanism
from dpframework.mechanisms.randomness import SeededRandomness
from dpframework.queries import QueryFacts
from dpframework.verify.mechanisms.neighbour_answers import shifts
from dpframework.verify.mechanisms.output_keys import output_key
from dpframework.verify.mechanisms.release_failure_check import drawn_output, stated_density
from dpframework.verify.mechanisms.sampler_statistics import noise_size, with_scale
from dpframework.verify.miners.neighbour_pair_search import last_before

Floats: TypeAlias = "NDArray[np.float64]"
Logs: TypeAlias = "tuple[Floats, Floats]"  # log-probabilities of the same outputs, given either of two answers

FAR_AHEAD = (4, 30)  # how far one candidate is ahead of all others, in scales of the noise
#: How far a candidate's score lies below the best one at most, in scales of the noise. Floats can hold exp(-700).
FARTHEST_BEHIND = 700
#: If outputs are no single candidates: how many are drawn for each answer, after how many different ones the draws end,
#: the factor by which the noise is widened, and the most scores.
DRAWN, MOST_OUTPUTS, WIDENING, MOST_SCORES = 16, 120, 3, 17
LEVELS = (100, 10**4, 10**8)  # are added to all scores, since a mechanism may compare them with a number of its own


def densities(mechanism: Mechanism, one: Any, other: Any, outputs: Sequence[Any], calibration: Calibration) -> Logs:
    """Return the log-densities of some outputs, given either of two answers."""
    here, there = (
        np.array([stated_density(mechanism, answer, output, calibration) for output in outputs])
        for answer in (one, other)
    )
    return here, there


def weigh_choices(mechanism: Mechanism, calibration: Calibration, relation: Relation, length: int) -> list[Logs]:
    """Weigh the first and the last candidate, where the first is equal to the others, ahead of them, or behind them.

    Also weigh ties for the best score.
    """
    if length < 2:
        return []
    facts, pairs = calibration.facts, []
    scale = noise_size(mechanism, calibration)
    changes = shifts(facts, relation, 2)
    gaps = [0.0, *(sign * math.ceil(ahead * scale) for ahead in FAR_AHEAD for sign in (1, -1))]
    gaps += _last_possible(mechanism, calibration, length, changes)
    for gap in gaps:
        for change in changes:
            one = _scores(gap, length, facts)
            other = _scores(gap + change[0] - change[1], length, facts)
            pairs.append(densities(mechanism, one, other + _whole(change[1], facts), (0, length - 1), calibration))
    return pairs + _weigh_ties(mechanism, calibration, changes, length)


def weigh_drawn_outputs(mechanism: Mechanism, calibration: Calibration, relation: Relation, length: int) -> list[Logs]:
    """Weigh outputs that are no single candidate, such as several candidates, or one with a number.

    The scores are equal, or the last one is ahead, or all others are far below 0, so that a sparse vector ends with the
    last one. A row changes one score by one amount and all others by another one. This is the last score, and if all
    are equal, the first one is tried, too. Outputs are drawn with widened noise. Each is weighed for every pair of
    answers, whichever pair it was drawn for.
    """
    if not 2 <= length <= MOST_SCORES:
        return []
    facts, answers = calibration.facts, []
    ahead, far = (math.ceil(scales * noise_size(mechanism, calibration)) for scales in FAR_AHEAD)
    starts = ((0.0, 0, 0.0), (0.0, -1, 0.0), (ahead, -1, 0.0), (far, -1, far))
    for (gap, place, lower), change in itertools.product(starts, shifts(facts, relation, 2)):
        one = _scores(gap, length, facts)[::-1] - _whole(lower, facts)
        other = one + _whole(change[1], facts)
        other[place] = one[place] + _whole(change[0], facts)
        answers.append((one, other))
    handed, outputs = SeededRandomness(20).handed(mechanism.assumptions), dict[Any, Any]()
    wide = with_scale(calibration, Fraction(WIDENING))
    for answer in [*itertools.chain(*answers)] * DRAWN:
        if len(outputs) < MOST_OUTPUTS:
            drawn = drawn_output(mechanism, answer, wide, handed)
            outputs.setdefault(output_key(drawn), drawn)
    return [densities(mechanism, one, other, list(outputs.values()), calibration) for one, other in answers]


def _weigh_ties(mechanism: Mechanism, calibration: Calibration, changes: Sequence[Floats], length: int) -> list[Logs]:
    """Weigh the first, the second and the last of three or more candidates. The first and the last are equally good.

    All others are behind these two. A row changes the first score by one amount and all others by another one, so that
    the tie ends.
    """
    if length < 3:
        return []
    ahead = math.ceil(FAR_AHEAD[0] * noise_size(mechanism, calibration))
    one = _scores(ahead, length, calibration.facts)
    one[-1] = one[0]
    pairs = []
    for change in changes:
        other = one + _whole(change[1], calibration.facts)
        other[0] = one[0] + _whole(change[0], calibration.facts)
        pairs.append(densities(mechanism, one, other, (0, 1, length - 1), calibration))
    return pairs


def weigh_large_scores(mechanism: Mechanism, calibration: Calibration, relation: Relation, length: int) -> list[Logs]:
    """Weigh all candidates, whose scores are equally large. A row changes the first score unlike the others."""
    facts, pairs = calibration.facts, []
    for level, change in itertools.product(LEVELS, shifts(facts, relation, 2) if length > 1 else ()):
        one = _scores(0.0, length, facts) + level
        moved = one + _whole(change[1], facts)
        moved[0] = one[0] + _whole(change[0], facts)
        pairs.append(densities(mechanism, one, moved, range(length), calibration))
    return pairs


def _scores(gap: float, length: int, facts: QueryFacts) -> NDArray[Any]:
    """Return scores of which the first is `gap`, and all others are 0."""
    scores = np.where(np.arange(length) == 0, gap, 0.0)
    return scores.astype(np.int64) if facts.integer else scores


def _whole(number: float, facts: QueryFacts) -> Any:
    return int(number) if facts.integer else number


def _last_possible(
    mechanism: Mechanism, calibration: Calibration, length: int, changes: Sequence[Floats]
) -> Iterator[float]:
    """Yield the largest lead and the largest lag of the first score at which a worse candidate can still be chosen.

    Nothing is yielded for a lead, or a lag, if a worse candidate can be chosen even at `FARTHEST_BEHIND` scales.
    """
    facts, scale = calibration.facts, noise_size(mechanism, calibration)
    step = max((abs(float(change[0] - change[1])) for change in changes), default=0.0)
    if not step:
        return
    for sign, output in ((1, length - 1), (-1, 0)):

        def impossible(steps: int, sign: int = sign, output: int = output) -> bool:
            scores = _scores(sign * steps * step, length, facts)
            return stated_density(mechanism, scores, output, calibration) == -math.inf

        most = math.ceil(FARTHEST_BEHIND * scale / step)
        if not impossible(0) and impossible(most):
            yield sign * step * last_before(impossible, most)

"""Made-up answers for which a mechanism's draws are tested, each with the facts of a query that gives such answers.

The facts of a query are what it declares, such as its sensitivities.

The noise must depend on the calibration, and so on the sensitivity, the neighbouring relation and the privacy unit. It
must not depend on the answer. A mechanism may get this wrong and still draw the right noise for a usual probe. If it
uses its own epsilon in place of the calibrated scale, its noise is right at a sensitivity of 1. If it draws less noise
for large counts, its noise is right for small counts. So some probes differ from the usual ones in all these ways at
once. Further probes differ in one way each, so that a failure can be explained.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.privacy_losses import Relation
from dpframework.facts.privacy_unit import ONE_ROW, UnitChange
from dpframework.mechanisms import Calibration, Mechanism
from dpframework.queries import KeyCounts, Norm, PiecewiseScores, QueryFacts, Sensitivity

#: This is added to an answer, as if so many more rows were counted. Neither whole numbers of 32 bits nor floats of 32
#: bits hold it: the nearest float is 200 less.
MANY = 2**32 + 200
BELOW = 10**6  # this is subtracted from an answer, to see whether numbers below 0 get other noise
LARGER = 3  # the factor by which the sensitivity is enlarged
FAR_LARGER = 100  # at this factor of the sensitivity, a sampler that limits its noise has probably reached the limit
UNIT = 3  # the most rows of a privacy unit


@final
@attrs.frozen(eq=False)
class Probe:
    """The facts of a query, with an answer that shows the noise well.

    Attributes
    ----------
    facts
        The facts of the query, such as its sensitivities.
    answer
        A function that returns the answer, given the scale of the noise.
    relation
        The neighbouring relation that the noise is calibrated for.
    by
        The change that the noise is calibrated for: how many rows of one privacy unit may change.
    """

    facts: QueryFacts
    answer: Callable[[float], Any]
    relation: Relation = Relation.ADD_OR_REMOVE_ONE
    by: UnitChange = ONE_ROW

    def calibrate(self, mechanism: Mechanism) -> Calibration | None:
        """Return the calibration of a mechanism for this query, or None if the mechanism claims nothing for it."""
        return mechanism.calibrate(self.facts, self.relation, by=self.by)


def _facts(name: str, integer: bool, size: int | None, *norms: Norm) -> QueryFacts:
    return QueryFacts(name, name, (), integer, size, [Sensitivity(n, 1, fall=0, source="a probe") for n in norms])


def probes_of_one() -> tuple[Probe, ...]:
    """Return probes of a single number, for mechanisms that draw for none of the usual ones."""
    return (
        Probe(_facts("a count", True, 1, Norm.L1, Norm.SQUARED_L2), lambda scale: np.array([5])),
        Probe(_facts("a real number", False, 1, Norm.L1, Norm.SQUARED_L2), lambda scale: np.array([0.25])),
    )


def probes() -> tuple[Probe, ...]:
    """Return the usual probes. Mechanisms that take more than one number can draw for at least one of them."""
    breaks = np.array([0, 0.5, 2, 2.25, 4])
    several = attrs.evolve(_facts("two histograms", True, 5, Norm.HISTOGRAMS), histograms=(2, 3))
    blocks = attrs.evolve(_facts("two blocks", True, 5, Norm.BLOCKS), histograms=(2, 3))
    by_key = attrs.evolve(_facts("counts by key", True, None, Norm.L1, Norm.SQUARED_L2, Norm.LINF), unlisted=True)
    return (
        Probe(several, lambda scale: np.array([5, -3, 2, 0, 0])),
        Probe(blocks, lambda scale: np.array([5, -3, 2, 0, 0])),
        Probe(_facts("two counts", True, 2, Norm.L1, Norm.SQUARED_L2), lambda scale: np.array([5, -3])),
        Probe(by_key, lambda scale: KeyCounts.of({"a": 3, "b": 9})),
        Probe(_facts("two real numbers", False, 2, Norm.L1, Norm.SQUARED_L2), lambda scale: np.array([0.25, -1.5])),
        Probe(_facts("integer scores", True, 60, Norm.LINF), lambda scale: _scores(math.ceil(4 * scale)).astype(int)),
        Probe(_facts("real scores", False, 60, Norm.LINF), lambda scale: _scores(4 * scale)),
        Probe(
            _facts("scores on an interval", False, 1, Norm.LINF),
            lambda scale: PiecewiseScores(breaks, scale * np.array([0.0, 3.0, 1.0, 2.0])),
        ),
    )


def _scores(best: float) -> NDArray[np.float64]:
    """Return one high score, two half as high, and many of 0. A choice among them shows the scale of the noise well."""
    return np.array([best, best / 2, best / 2, *[0.0] * 57])


def with_changes(probe: Probe, serves: Callable[[Probe], bool]) -> Probe:
    """Return a probe with all changes of `CHANGES`, except those after which a mechanism cannot draw for the probe.

    The function `serves` tells whether the mechanism can draw for a probe.
    """
    for change in CHANGES.values():
        changed = change(probe)
        probe = changed if serves(changed) else probe
    return probe


def with_single_changes(probe: Probe) -> Iterator[Probe]:
    """Yield the probe once with each change of `CHANGES` alone. The text of its facts then names the change.

    Changes that leave this probe as it is are skipped.
    """
    for how, change in CHANGES.items():
        changed = change(probe)
        if changed is not probe:
            yield attrs.evolve(changed, facts=attrs.evolve(changed.facts, text=f"{probe.facts.text}, {how}"))


def scale_sensitivity(sensitivity: Sensitivity, factor: Fraction) -> Sensitivity:
    """Return a sensitivity multiplied by a factor."""
    power = factor**2 if sensitivity.norm is Norm.SQUARED_L2 else factor  # l2 sensitivities are given as squares
    sizes = {name: getattr(sensitivity, name) for name in ("add_or_remove_one", "replace_one", "rise", "fall")}
    return attrs.evolve(sensitivity, **{name: size and size * power for name, size in sizes.items()})


def with_scaled_sensitivity(probe: Probe, factor: int | Fraction) -> Probe:
    """Return a probe whose sensitivities are multiplied by a factor."""
    declared = [scale_sensitivity(sensitivity, Fraction(factor)) for sensitivity in probe.facts.sensitivities]
    return attrs.evolve(probe, facts=attrs.evolve(probe.facts, sensitivities=declared))


def _either_way(probe: Probe) -> Probe:
    """Return a probe whose scores a row may raise or lower, so that two of them may move twice as far apart."""
    declared = probe.facts.sensitivities
    if not any(one.norm is Norm.LINF and one.monotonic for one in declared) or probe.facts.unlisted:
        return probe
    either = [attrs.evolve(one, rise=one.add_or_remove_one, fall=one.add_or_remove_one) for one in declared]
    return attrs.evolve(probe, facts=attrs.evolve(probe.facts, sensitivities=either))


def with_moved_answer(probe: Probe, number: int) -> Probe:
    """Return a probe with a number added to each number of its answer. Counts by key stay as they are."""
    if probe.facts.unlisted:
        return probe

    def moved(scale: float) -> Any:
        few = probe.answer(scale)
        return attrs.evolve(few, scores=few.scores + number) if isinstance(few, PiecewiseScores) else few + number

    return attrs.evolve(probe, answer=moved)


def _in_a_table(probe: Probe) -> Probe:
    if probe.facts.answer_length != 2 or probe.facts.histograms:
        return probe
    facts = attrs.evolve(probe.facts, answer_length=4)
    return attrs.evolve(probe, facts=facts, answer=lambda scale: np.stack([probe.answer(scale)] * 2))


CHANGES: dict[str, Callable[[Probe], Probe]] = {
    f"a sensitivity of {LARGER}": lambda probe: with_scaled_sensitivity(probe, LARGER),
    "scores that a row may lower, too": _either_way,
    "a row replaced": lambda probe: attrs.evolve(probe, relation=Relation.REPLACE_ONE),
    f"a unit of {UNIT} rows": lambda probe: attrs.evolve(probe, by=UnitChange(UNIT)),
    "a table of two rows and two columns": _in_a_table,
    f"{MANY:,} more rows": lambda probe: with_moved_answer(probe, MANY),
}
"""Functions that each change a usual probe in one way. The keys describe the changes."""

"""Answers to draw from, each with the facts of a query that gives such ones.

Noise depends on all that a calibration says: on the sensitivity, the neighbouring relation, the privacy unit. It must
not depend on the answer. A mechanism that uses its own epsilon in place of the calibrated scale draws the right noise
for a sensitivity of 1, and one that draws less for large counts the right noise for small ones. So there are probes
that differ from the usual ones in all of this at once, and in one of these things each, to say in which.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.privacy import Relation
from dpframework.facts.unit import ONE_ROW, UnitChange
from dpframework.mechanisms import Calibration, Mechanism
from dpframework.queries import KeyCounts, Norm, PiecewiseScores, QueryFacts, Sensitivity

MANY = 10**6  # rows that an answer counts
LARGER = 3  # times the sensitivity
UNIT = 3  # rows of a unit


@final
@attrs.frozen(eq=False)
class Probe:
    """A query's facts, and an answer to it that shows the noise well, given its scale.

    Attributes
    ----------
    facts
        The facts.
    answer
        Returns the answer, given the scale of the noise.
    relation, by
        What the noise is calibrated for.
    """

    facts: QueryFacts
    answer: Callable[[float], Any]
    relation: Relation = Relation.ADD_OR_REMOVE_ONE
    by: UnitChange = ONE_ROW

    def calibrate(self, mechanism: Mechanism) -> Calibration | None:
        """Return the noise of a mechanism for this query, or None if it claims nothing of it."""
        return mechanism.calibrate(self.facts, self.relation, by=self.by)


def probes() -> tuple[Probe, ...]:
    """Return queries' facts with answers that between them every kind of mechanism can serve."""

    def facts(name: str, integer: bool, size: int | None, *norms: Norm) -> QueryFacts:
        return QueryFacts(name, name, (), integer, size, [Sensitivity(n, 1, fall=0, source="a probe") for n in norms])

    breaks = np.array([0, 0.5, 2, 2.25, 4])
    several = attrs.evolve(facts("two histograms", True, 5, Norm.HISTOGRAMS), histograms=(2, 3))
    blocks = attrs.evolve(facts("two blocks", True, 5, Norm.BLOCKS), histograms=(2, 3))
    by_key = attrs.evolve(facts("counts by key", True, None, Norm.L1, Norm.SQUARED_L2, Norm.LINF), unlisted=True)
    return (
        Probe(several, lambda scale: np.array([5, -3, 2, 0, 0])),
        Probe(blocks, lambda scale: np.array([5, -3, 2, 0, 0])),
        Probe(facts("two counts", True, 2, Norm.L1, Norm.SQUARED_L2), lambda scale: np.array([5, -3])),
        Probe(by_key, lambda scale: KeyCounts.of({"a": 3, "b": 9})),
        Probe(facts("two real numbers", False, 2, Norm.L1, Norm.SQUARED_L2), lambda scale: np.array([0.25, -1.5])),
        Probe(facts("integer scores", True, 60, Norm.LINF), lambda scale: _scores(math.ceil(4 * scale)).astype(int)),
        Probe(facts("real scores", False, 60, Norm.LINF), lambda scale: _scores(4 * scale)),
        Probe(
            facts("scores on an interval", False, 1, Norm.LINF),
            lambda scale: PiecewiseScores(breaks, scale * np.array([0.0, 3.0, 1.0, 2.0])),
        ),
    )


def _scores(best: float) -> NDArray[np.float64]:
    """Return one high score and enough low ones that slightly more or less noise changes much."""
    return np.array([best, best / 2, best / 2, *[0.0] * 57])


def unlike(probe: Probe, serves: Callable[[Probe], bool]) -> Probe:
    """Return a probe that differs from one of the kit's in every way in which a mechanism serves it."""
    for change in CHANGES.values():
        changed = change(probe)
        probe = changed if serves(changed) else probe
    return probe


def one_by_one(probe: Probe) -> Iterator[Probe]:
    """Yield probes that differ from one of the kit's in one way each, which their texts say."""
    for how, change in CHANGES.items():
        changed = change(probe)
        if changed is not probe:
            yield attrs.evolve(changed, facts=attrs.evolve(changed.facts, text=f"{probe.facts.text}, {how}"))


def scale_sensitivity(sensitivity: Sensitivity, factor: Fraction) -> Sensitivity:
    """Return a sensitivity multiplied by a factor."""
    power = factor**2 if sensitivity.norm is Norm.SQUARED_L2 else factor  # an l2 sensitivity is a square
    sizes = {name: getattr(sensitivity, name) for name in ("add_or_remove_one", "replace_one", "rise", "fall")}
    return attrs.evolve(sensitivity, **{name: size and size * power for name, size in sizes.items()})


def _larger(probe: Probe) -> Probe:
    declared = [scale_sensitivity(sensitivity, Fraction(LARGER)) for sensitivity in probe.facts.sensitivities]
    return attrs.evolve(probe, facts=attrs.evolve(probe.facts, sensitivities=declared))


def _of_many(probe: Probe) -> Probe:
    def answer(scale: float) -> Any:
        few = probe.answer(scale)
        return attrs.evolve(few, scores=few.scores + MANY) if isinstance(few, PiecewiseScores) else few + MANY

    return probe if probe.facts.unlisted else attrs.evolve(probe, answer=answer)


def _in_a_table(probe: Probe) -> Probe:
    if probe.facts.answer_length != 2 or probe.facts.histograms:
        return probe
    facts = attrs.evolve(probe.facts, answer_length=4)
    return attrs.evolve(probe, facts=facts, answer=lambda scale: np.stack([probe.answer(scale)] * 2))


CHANGES: dict[str, Callable[[Probe], Probe]] = {
    f"a sensitivity of {LARGER}": _larger,
    "a row replaced": lambda probe: attrs.evolve(probe, relation=Relation.REPLACE_ONE),
    f"a unit of {UNIT} rows": lambda probe: attrs.evolve(probe, by=UnitChange(UNIT)),
    "a table of two rows and two columns": _in_a_table,
    f"{MANY:,} rows more": _of_many,
}
"""How a probe may differ from the usual ones."""

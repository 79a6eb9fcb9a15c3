"""A calibration that stands for several releases with one bound on their joint loss.

It is needed for releases that are not known when the plan is made, such as those that a miner chooses during a run.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar, NoReturn, final

import attrs

from dpframework.facts.errors import InputError
from dpframework.facts.privacy_losses import ByRelation
from dpframework.facts.privacy_unit import ONE_ROW, UnitChange
from dpframework.mechanisms.base import Calibration, Mechanism, Preview
from dpframework.mechanisms.randomness import Randomness
from dpframework.mechanisms.release_losses import Losses
from dpframework.queries.base import Norm, QueryFacts


def cap(losses: Losses, by: UnitChange = ONE_ROW) -> Calibration:
    """Return a calibration that stands for several releases, so that an accountant can compose them as one.

    The library dp-accounting has no event that describes these releases. So accounting with privacy loss distributions
    (PLD) assumes the worst mechanism of the same epsilon. Without a pure epsilon, it assumes the worst mechanism of the
    same rho.

    Parameters
    ----------
    losses
        The most that the releases lose together.
    by
        The largest change that one privacy unit makes to the rows.
    """
    return Calibration(CappedReleases(losses), _FACTS, Fraction(1), Fraction(1), losses, by)


_FACTS = QueryFacts("releases", "several releases", (), False, None, ())


@final
@attrs.frozen
class CappedReleases(Mechanism):
    """A mechanism that stands for several releases when losses are added up. It makes no release itself."""

    name: ClassVar[str] = "capped"
    norm: ClassVar[Norm] = Norm.L1
    together: Losses

    def change(self, facts: QueryFacts) -> NoReturn:
        """Refuse, since this mechanism answers no query."""
        raise _refusal()

    def scale(self, change: Fraction) -> NoReturn:
        """Refuse, since this mechanism has no noise of its own."""
        raise _refusal()

    def losses(self, change: ByRelation, scale: Fraction) -> Losses:
        """Return the most that the releases lose together, whatever the change and the scale are."""
        return self.together

    def release(self, answer: Any, calibration: Calibration, randomness: Randomness) -> NoReturn:
        """Refuse, since each of the releases is made by its own mechanism."""
        raise _refusal()

    def log_density(self, answer: Any, output: Any, calibration: Calibration) -> NoReturn:
        """Refuse, since this mechanism has no outputs of its own."""
        raise _refusal()

    def preview(self, calibration: Calibration) -> Preview:
        """State that the error is not known beforehand."""
        return Preview(float("nan"), float("nan"), "chosen by the miner during the run")


def _refusal() -> InputError:
    return InputError("this mechanism stands for several releases, and each of them is made by its own mechanism")

"""The epsilon that a release needs so as to be within a given error: from previews, so that no data is read."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import attrs

from dpframework.facts.errors import InputError, nearest
from dpframework.facts.privacy import Amount, last_digit, positive
from dpframework.plan.plan import Plan
from dpframework.plan.preview import previews
from dpframework.run.miner import Miner
from dpframework.study.shares import Found, Shares, Way, nodes_of

if TYPE_CHECKING:
    from dpframework.study.study import Study

_DIGITS = 6  # of an epsilon that is found
_DOUBLINGS = 60  # of an epsilon, up or down, until it is given up


@attrs.frozen(eq=False)
class _Wanted:
    """One release of a study, and the error that it may have with 95 % probability."""

    step: str
    path: str
    within: float

    def met(self, plan: Plan) -> bool:
        """Tell whether a plan's release is expected to be that accurate."""
        found = previews(plan).get(self.path)
        return found is not None and found.within <= self.within


def epsilon_for(
    study: Study, miners: Mapping[str, Miner], step: str, within: Amount, rows: int | None = None
) -> Fraction:
    """See `Study.epsilon_for`; the miners may be as they are before the parameters of shares are found."""
    shares = study.shares()
    wanted = _wanted(shares, step, within, rows if rows is not None else study.schema.rows)
    if wanted.step in shares.shares:
        return _of_study(study, shares, wanted)
    miner = miners.get(wanted.step)
    if miner is None or getattr(miner, "epsilon", None) is None:
        raise InputError(
            f"step '{wanted.step}' has no epsilon that could change; give it one, or a share of the budget"
        )
    return _of_step(miner, shares, wanted)


def _of_step(miner: Miner, shares: Shares, wanted: _Wanted) -> Fraction:
    """Search for the epsilon of a miner."""

    def met(epsilon: Fraction) -> bool:
        changes: dict[str, Any] = {"epsilon": epsilon}
        return wanted.met(shares.plan_of([shares.planned(wanted.step, attrs.evolve(miner, **changes))]))

    return _smallest(met, wanted)


def _of_study(study: Study, shares: Shares, wanted: _Wanted) -> Fraction:
    """Search for the budget of a study that gives a share what it needs.

    The share's scale is searched first; what all steps cost at that scale is what the shares must be able to spend.
    """
    together = sum((share.share for share in shares.shares.values()), Fraction(0))
    others = shares.total(()) if shares.others else Fraction(0)
    needed = [
        (total - others) / together
        for ways in shares.choices()
        if others is not None and (total := shares.total(nodes_of(_just_enough(shares, ways, wanted)))) is not None
    ]
    if not needed or others is None or (others and together == 1):
        raise InputError("the study has no valid total from which an epsilon could be found; 'check' says why")
    epsilon = max(min(needed), others / (1 - together) if others else Fraction(0))
    return next(one for one in _from(epsilon) if wanted.met(study.with_epsilon(one).plan()))


def _just_enough(shares: Shares, ways: Mapping[str, Way], wanted: _Wanted) -> Found:
    """Return the miners at the smallest scale at which the release is as accurate as asked for."""

    def met(scale: Fraction) -> bool:
        return wanted.met(shares.plan_of([shares.made(ways, scale)[wanted.step][1]]))

    return shares.made(ways, _smallest(met, wanted))


def _from(epsilon: Fraction) -> Iterator[Fraction]:
    """Yield an epsilon, rounded up, and larger ones: ways to spend have equal noise but for rounding."""
    for percent in range(1000):
        yield _rounded_up(epsilon * (1 + Fraction(percent, 100)))
    raise InputError("no epsilon was found; give the step an epsilon of its own")


def _smallest(met: Callable[[Fraction], bool], wanted: _Wanted) -> Fraction:
    """Return the smallest epsilon of a few digits that is enough; noise shrinks as it grows."""

    def enough(epsilon: Fraction) -> bool:
        try:
            return met(epsilon)
        except InputError:  # so little that the noise would be too large to draw
            return False

    low = high = Fraction(1)
    for _ in range(_DOUBLINGS):
        if enough(high):
            break
        low, high = high, 2 * high
    else:
        raise InputError(f"no epsilon makes '{wanted.path}' that accurate; ask for a larger error")
    for _ in range(_DOUBLINGS):
        if low < high or not enough(low / 2):
            break
        low = high = low / 2
    low = low / 2 if low == high else low
    unit = last_digit(high, _DIGITS)
    below, above = math.floor(low / unit), math.ceil(high / unit)
    while above - below > 1:
        middle = (below + above) // 2
        below, above = (below, middle) if enough(middle * unit) else (middle, above)
    return above * unit


def _rounded_up(value: Fraction) -> Fraction:
    unit = last_digit(value, _DIGITS)
    return math.ceil(value / unit) * unit


def _wanted(shares: Shares, step: str, within: Amount, rows: int | None) -> _Wanted:
    """Return the one release that is asked for, and its error as a number."""
    paths = dict(shares.plan_of((*shares.others, *nodes_of(shares.first()))).placed_steps())
    below = [step] if step in paths else [path for path in paths if path.startswith(f"{step}/")]
    if not below:
        names = list(dict.fromkeys(path.split("/")[0] for path in paths))
        raise InputError(f"the study has no step '{step}'; {nearest(step, names)}")
    if len(below) > 1:
        raise InputError(
            f"step '{step}' makes several releases; name one of them, such as '{below[0]}' or '{below[1]}'"
        )
    (path,) = below
    return _Wanted(path.split("/")[0], path, _number(path, within, rows, paths[path].query.facts().integer))


def _number(path: str, within: Amount, rows: int | None, integer: bool) -> float:
    """Return an error as a number: a percentage is one of the rows."""
    if not isinstance(within, str) or not within.strip().endswith("%"):
        return float(positive(within, "within"))
    share = positive(within.strip().removesuffix("%").strip(), "within") / 100
    if not integer:
        raise InputError(f"'{path}' does not count rows, so that its error is no share of them; give a number")
    if rows is None:
        raise InputError("within is a percentage of the rows, whose number is not public; say about how many there are")
    return float(share * positive(rows, "rows"))

"""Find the parameters of miners that have shares of a budget, so that together they spend exactly these shares.

The search is for one number, the scale: a miner with share s gets the noise of epsilon = s * scale. If the scale is the
study's epsilon, the miners' epsilons add up to what the shares may spend. With a delta the smallest total is usually
below this sum, so a larger scale fits.

A miner may have several ways to spend, such as pure epsilon or rho in zCDP. For each way, the search finds the amount
that gives the same noise as the miner's first way. It compares some choices of ways (see `Shares.choices`). It takes
the choice with the smallest total at equal noise, since this choice leaves room for the largest scale. A larger scale
reduces the noise of all miners by the same factor.

An error in this search cannot break the budget. The total is computed here by the accountants that later check and
charge the plan, and parameters are refused if the total is above what the shares may spend. Scales are multiples of a
millionth of epsilon, so all amounts are rational.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias, final

import attrs

from dpframework.facts.errors import InputError
from dpframework.facts.privacy_losses import decimal_text
from dpframework.mechanisms.selection import Exponential
from dpframework.plan.nodes import Node, Sequential
from dpframework.plan.plan import Budget, Plan
from dpframework.run.miner_base_and_examples import Miner
from dpframework.study.miner_from_parameters import Share

if TYPE_CHECKING:
    from dpframework.study.study_plan_totals_and_findings import StudyPlan

_STEPS = 10**6  # a scale is counted in steps; this many steps are the study's epsilon
_DOUBLINGS = 10  # how many times a scale is doubled or halved at most
#: The largest epsilon for which a scale is searched. Above this epsilon the sum of the epsilons is the smallest total,
#: and other notions of loss take long to compute.
_MOST_SEARCHED = 500
_MOST_WAYS = 8  # how many further choices of ways are compared at most
_EQUAL = 1e-9  # noise with at most this relative difference counts as equal, since noise is rounded

#: The position of a way to spend, and a factor. At the scale times this factor, the way has the first way's noise.
Way: TypeAlias = tuple[int, Fraction]
#: For each step, by its name: the miner with the parameters that were found, and the miner's plan.
Found: TypeAlias = Mapping[str, tuple[Miner, Sequential]]


@final
@attrs.frozen(eq=False)
class Shares:
    """The steps of a study that have shares, with functions that build and total the study's plan.

    Attributes
    ----------
    shares
        The shares, by the names of their steps.
    budget
        The budget of the study.
    others
        The plans of the study's other steps.
    planned
        A function that plans a miner under the name of a step.
    plan_of
        A function that puts the plans of steps together into a plan of the study.
    """

    shares: Mapping[str, Share]
    budget: Budget
    others: Sequence[Node]
    planned: Callable[[str, Miner], Sequential]
    plan_of: Callable[[Sequence[Node]], StudyPlan]

    def found(self) -> Found:
        """Return each miner with the parameters that were found, and its plan.

        If a step has no valid claim, there is no total to search with. The miners then get epsilons that add up, and
        the checks of the plan report what is wrong.

        Raises
        ------
        InputError
            If the other steps and the shares together cost more than the budget, or no parameters fit.
        """
        first = self.first()
        others = self.total(()) if self.others else Fraction(0)
        if others is None or self.total(nodes_of(first)) is None:
            return first
        together = sum(share.share for share in self.shares.values()) * self.budget.epsilon
        if others + together > self.budget.epsilon:
            raise InputError(
                f"the shares add up to {decimal_text(together)} of the budget {decimal_text(self.budget.epsilon)}, and "
                f"the other steps cost {decimal_text(others)}; lower shares or epsilons so that they fit together"
            )
        allowed = others + together
        found = first if self.budget.epsilon > _MOST_SEARCHED else self._search(allowed, first)
        total = self.total(nodes_of(found))
        if total is None or total > allowed:
            raise InputError(
                "the parameters that were found cost more than the shares may spend; give an epsilon instead"
            )
        return found

    def _search(self, allowed: Fraction, first: Found) -> Found:
        """Return the miners at the largest scale whose total is at most `allowed`, in the ways with the smallest total.

        The result must not make any release noisier than in `first`, where epsilons add up. If it does, all miners get
        their first way.
        """
        plain = self._plain()
        ways, scale = self._best(allowed)
        found = self.miners_at(ways, scale)
        if ways != plain and not self._no_noisier(found, first):
            found = self.miners_at(plain, self._largest(plain, allowed))
        return found

    def first(self) -> Found:
        """Return the miners whose epsilons add up to what the shares may spend, each in its first way to spend."""
        return self.miners_at(self._plain(), self.budget.epsilon)

    def _plain(self) -> Mapping[str, Way]:
        return dict.fromkeys(self.shares, (0, Fraction(1)))

    def miners_at(self, ways: Mapping[str, Way], scale: Fraction) -> Found:
        """Return the miners at a scale, with their plans.

        Raises
        ------
        InputError
            If a miner refuses its parameters or the schema.
        """
        made = {}
        for name, share in self.shares.items():
            number, factor = ways[name]
            try:
                miner = share.spending(number, share.share * factor * scale, self.budget.delta)
            except InputError as error:
                raise InputError(f"step '{name}': {error}") from None
            made[name] = miner, self.planned(name, miner)
        return made

    def choices(self) -> Iterator[Mapping[str, Way]]:
        """Yield choices of ways to spend: the first way for all miners, then the second way for shares up to some size.

        Many small releases are cheaper in zCDP or another notion that converts all losses together at one delta. For
        large releases pure epsilon may be cheaper.
        """
        plain = self._plain()
        yield plain
        others = {name: way for name in self.shares if (way := self._other_way(name)) is not None}
        sizes = sorted({self.shares[name].share for name in others}, reverse=True)
        for most in sizes[:_MOST_WAYS]:
            yield {**plain, **{name: way for name, way in others.items() if self.shares[name].share <= most}}

    def total(self, nodes: Sequence[Node]) -> Fraction | None:
        """Return the smallest valid total of the other steps and the given nodes, or None if there is none."""
        return self.plan_of((*self.others, *nodes)).smallest_epsilon()

    def _total_at(self, ways: Mapping[str, Way], scale: Fraction) -> Fraction | None:
        """Return the total at a scale. None if there is no valid total, or if a miner refuses its parameters."""
        try:
            return self.total(nodes_of(self.miners_at(ways, scale)))
        except InputError:
            return None

    def _best(self, allowed: Fraction) -> tuple[Mapping[str, Way], Fraction]:
        """Return the ways with the smallest total at equal noise, and the largest scale that fits with these ways.

        At another scale, other ways may have the smallest total. So the search is repeated at the scale that it found.
        """
        choices, scales, scale = list(self.choices()), dict[int, Fraction](), self.budget.epsilon
        while True:
            totals = [(self._total_at(ways, scale), k) for k, ways in enumerate(choices)]
            best = min(((total, k) for total, k in totals if total is not None), default=(None, 0))[1]
            if best in scales:
                largest = max(scales, key=lambda k: scales[k])
                return choices[largest], scales[largest]
            scale = scales[best] = self._largest(choices[best], allowed)

    def _largest(self, ways: Mapping[str, Way], allowed: Fraction) -> Fraction:
        """Return the largest scale whose total is allowed."""
        epsilon = self.budget.epsilon
        usual = self._total_at(ways, epsilon)
        if usual == allowed:
            return epsilon
        # Where epsilons add up, the total is proportional to the scale, and this scale is exact.
        if usual and self._total_at(ways, epsilon * allowed / usual) == allowed:
            return epsilon * allowed / usual

        @functools.cache
        def over(steps: int) -> float:
            total = self._total_at(ways, Fraction(steps, _STEPS) * epsilon)
            return math.inf if total is None else float(total - allowed)  # its sign is exact

        return Fraction(_last_that_fits(over), _STEPS) * epsilon

    def _other_way(self, name: str) -> Way | None:
        """Return a miner's second way to spend, at the noise of its first way; None if it has no usable second way.

        Further ways are not tried, since to compare ways takes a total of the whole plan for each choice.
        """
        share, epsilon = self.shares[name], self.shares[name].share * self.budget.epsilon
        if len(share.ways(epsilon, self.budget.delta)) == 1:
            return None
        try:
            usual, factor = self._noise(name, 0, epsilon), Fraction(1)
            for _ in range(4):  # noise is nearly proportional to 1 / factor
                own = self._noise(name, 1, epsilon * factor)
                factor = Fraction(math.ceil(factor * Fraction(_ratio(own, usual)) * _STEPS), _STEPS)
        except InputError:
            return None
        return 1, factor

    def _no_noisier(self, found: Found, first: Found) -> bool:
        """Tell whether no release has more noise than in `first`, where epsilons add up."""
        return all(
            _ratio(noise(self.plan_of([node])), noise(self.plan_of([first[name][1]]))) <= 1 + _EQUAL
            for name, (_, node) in found.items()
        )

    def _noise(self, name: str, way: int, epsilon: Fraction) -> dict[str, float]:
        miner = self.shares[name].spending(way, epsilon, self.budget.delta)
        return noise(self.plan_of([self.planned(name, miner)]))


def nodes_of(found: Found) -> tuple[Node, ...]:
    """Return the plans of the miners."""
    return tuple(node for _, node in found.values())


def noise(plan: Plan) -> dict[str, float]:
    """Return the noise of each release by its path: a standard deviation or, for a selection, the expected gap.

    The gap is how far the score of the selected candidate is below the best score. The gap of the exponential mechanism
    is doubled. At the same epsilon, this gap is at most twice the gap of permute-and-flip (McKenna and Sheldon 2020,
    Section 4), but previews state the same gap for both mechanisms at the same scale of noise.
    """
    sizes = {}
    for path, step, calibration in plan.calibrated_steps():
        try:
            sizes[path] = math.sqrt(calibration.variance)
        except InputError:  # the mechanism adds no noise to numbers
            size = calibration.preview.expected * (2 if isinstance(step.mechanism, Exponential) else 1)
            if math.isfinite(size):
                sizes[path] = size
    return sizes


def _last_that_fits(over: Callable[[int], float]) -> int:
    """Return the largest scale that fits, in steps. `over(steps)` is the total minus the allowed total.

    Brent's method proposes a number of steps near the root. Bisection then finds the exact one.

    Raises
    ------
    InputError
        If no number of steps fits.
    """
    from scipy.optimize import brentq

    low, high = _bracket(over)
    if over(low) < 0 < over(high) < math.inf:
        near = round(brentq(lambda steps: over(round(steps)), low, high, xtol=0.25))
        for steps in (near, near + 1, near - 1):
            if low < steps < high:
                low, high = (steps, high) if over(steps) <= 0 else (low, steps)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if over(middle) <= 0 else (low, middle)
    return low


def _bracket(over: Callable[[int], float]) -> tuple[int, int]:
    """Return a number of steps that fits and its double, which does not. If all fit, return the largest twice."""
    low = high = _STEPS
    if over(low) <= 0:
        for _ in range(_DOUBLINGS):
            low, high = high, 2 * high
            if over(high) > 0:
                return low, high
        return high, high  # large enough: the noise is a thousandth of what it is at the study's epsilon
    for _ in range(_DOUBLINGS):
        low, high = low // 2, low
        if over(low) <= 0:
            return low, high
    raise InputError(
        "no parameters were found whose total is at most what the shares may spend; give these steps an epsilon"
    )


def _ratio(own: Mapping[str, float], usual: Mapping[str, float]) -> float:
    """Return the largest ratio of `own` to `usual` noise over the releases in both; 1 if there are none."""
    return max((own[path] / usual[path] for path in own.keys() & usual.keys() if usual[path] > 0), default=1.0)

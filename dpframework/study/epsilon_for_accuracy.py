"""Find the epsilon that a result needs for a given accuracy. The search uses predicted errors, so no data is read."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, final

import attrs

from dpframework.facts.errors import InputError, nearest
from dpframework.facts.privacy_losses import Amount, last_digit, positive
from dpframework.plan.error_bounds_by_result import planned_parts
from dpframework.results.error_bounds import ErrorBound
from dpframework.run.miner_base_and_examples import Miner
from dpframework.study.noise_search_for_budget_shares import Found, Shares, Way, nodes_of
from dpframework.study.study_plan_totals_and_findings import StudyPlan

if TYPE_CHECKING:
    from dpframework.study.study import Study

_DIGITS = 6  # significant digits of the returned epsilon
_DOUBLINGS = 60  # how many times an epsilon is doubled or halved at most


@final
@attrs.frozen
class Accuracy:
    """An epsilon, with the error bound of a result at that epsilon.

    Attributes
    ----------
    epsilon
        The smallest epsilon for the wanted accuracy, rounded up to six digits.
    of_study
        Whether `epsilon` is the study's budget. This is so for a step with a share. Otherwise it is the step's own
        epsilon.
    bound
        The error bound of the result at that epsilon.
    """

    epsilon: Fraction
    of_study: bool
    bound: ErrorBound


@attrs.frozen(eq=False)
class _Wanted:
    """A wanted accuracy: one error bound of one step, and the largest value that the bound may have.

    Attributes
    ----------
    name
        The name of the step in the study.
    step
        The name of the step, or the path of one of its releases.
    rows
        The approximate number of rows; None for the number in the schema.
    within
        The largest allowed value of the bound.
    """

    name: str
    step: str
    rows: int | None
    within: float

    def bound(self, plan: StudyPlan, miner: Miner | None) -> ErrorBound:
        """Return the step's error bound in a plan that holds the step.

        Raises
        ------
        InputError
            If the step has no error bound, or several.
        """
        part = next(part for part in planned_parts(plan.with_rows(self.rows)) if part.name == self.name)
        path = self.step.partition("/")[2]
        own = tuple(part.bounds_of_steps() if miner is None else miner.error_bounds(part))
        # If several bounds depend on this release alone, the first one is about the release's own numbers.
        found = [bound for bound in own if bound.steps == (path,)][:1] if path else list(own)
        if not found:  # all bounds of the result depend on several steps, so take the bound of the step itself
            found = list(attrs.evolve(part, steps=[one for one in part.steps if one.path == path]).bounds_of_steps())
        if len(found) != 1:
            some = " or ".join(f"'{self.name}/{one.path}'" for one in part.steps[:2])
            raise InputError(f"step '{self.step}' makes several releases; name one of them, such as {some}")
        return found[0]

    def is_met(self, plan: StudyPlan, miner: Miner | None) -> bool:
        """Tell whether the step's error bound in this plan is small enough."""
        amount = self.bound(plan, miner).amount
        return amount is not None and amount <= self.within


def accuracy_for(study: Study, miners: Mapping[str, Miner], step: str, within: Amount, rows: int | None) -> Accuracy:
    """Compute `Study.accuracy`. For a miner with a share, the epsilon or rho in `miners` does not matter."""
    shares = study.shares()
    first = shares.first()
    whole = shares.plan_of((*shares.others, *nodes_of(first)))
    if rows is not None:
        positive(rows, "rows")
    names = [part.name for part in planned_parts(whole)]
    name = next((one for one in names if step == one or step.startswith(f"{one}/")), None)
    own = [path for path, _ in whole.placed_steps() if path.startswith(f"{name}/")]
    if name is None or step not in (name, *own):
        raise InputError(f"the study has no step '{step}'; {nearest(step, names if name is None else own)}")
    miner = first[name][0] if name in first else miners.get(name)
    bound = _Wanted(name, step, rows, math.inf).bound(whole, miner)
    wanted = _Wanted(name, step, rows, _number(within, bound, step))
    if bound.amount is None:
        if bound.size.about is None and bound.note.startswith("depends"):
            raise InputError(f"the error of '{step}' {_UNKNOWN}")
        raise InputError(f"'{step}' has no error bound from which an epsilon could be found: {bound.note}")
    if name in shares.shares:
        return _find_budget(study, shares, wanted)
    if miner is None or getattr(miner, "epsilon", None) is None:
        raise InputError(f"step '{name}' has no epsilon that could change; give it one, or a share of the budget")

    def with_epsilon(epsilon: Fraction) -> tuple[StudyPlan, Miner]:
        changes: dict[str, Any] = {"epsilon": epsilon}
        changed = attrs.evolve(miner, **changes)
        return shares.plan_of([shares.planned(name, changed)]), changed

    epsilon = _smallest(lambda epsilon: wanted.is_met(*with_epsilon(epsilon)), wanted)
    return Accuracy(epsilon, False, wanted.bound(*with_epsilon(epsilon)))


def _find_budget(study: Study, shares: Shares, wanted: _Wanted) -> Accuracy:
    """Find the study's smallest budget at which the wanted step is accurate enough with its share.

    The noise of all miners with shares follows from one number, the scale (see `noise_search_for_budget_shares`). The
    search first finds the smallest scale at which the error is small enough. The cost of all shares at that scale then
    gives the smallest budget in which they fit.
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
    # The steps without a share must fit into what all shares together leave of the budget.
    least = max(min(needed), others / (1 - together) if others else Fraction(0))
    for epsilon in _epsilons_from(least):
        spending = study.with_epsilon(epsilon)
        bound = wanted.bound(spending.plan(), spending.miners[wanted.name])
        if bound.amount is not None and bound.amount <= wanted.within:
            return Accuracy(epsilon, True, bound)
    raise InputError("no epsilon was found; give the step an epsilon of its own")


def _just_enough(shares: Shares, ways: Mapping[str, Way], wanted: _Wanted) -> Found:
    """Return the miners at the smallest scale at which the result is accurate enough."""

    def is_met(scale: Fraction) -> bool:
        miner, node = shares.miners_at(ways, scale)[wanted.name]
        return wanted.is_met(shares.plan_of([node]), miner)

    return shares.miners_at(ways, _smallest(is_met, wanted))


def _epsilons_from(epsilon: Fraction) -> Iterator[Fraction]:
    """Yield an epsilon, rounded up, and then larger ones in steps of one percent.

    The first one may be slightly too small: a miner may spend its share in several ways, and rounding makes their noise
    differ a little.
    """
    for percent in range(1000):
        larger = epsilon * (1 + Fraction(percent, 100))
        unit = last_digit(larger, _DIGITS)
        yield math.ceil(larger / unit) * unit


def _smallest(met: Callable[[Fraction], bool], wanted: _Wanted) -> Fraction:
    """Return the smallest epsilon or scale, of six digits, at which `met` is true. Larger ones have less noise."""

    def enough(epsilon: Fraction) -> bool:
        try:
            return met(epsilon)
        except InputError:  # the epsilon is so small that the noise is too large to draw
            return False

    low = high = Fraction(1)
    for _ in range(_DOUBLINGS):
        if enough(high):
            break
        low, high = high, 2 * high
    else:
        raise InputError(f"no epsilon makes '{wanted.step}' that accurate; ask for a larger error")
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


_UNKNOWN = (
    "depends on the number of rows, which is not public; give an approximate number with --rows, or with about_rows "
    "in the schema"
)


def _number(within: Amount, bound: ErrorBound, step: str) -> float:
    """Return an error as a number. A percentage is taken of `bound.whole`, such as the number of rows."""
    if not isinstance(within, str) or not within.strip().endswith("%"):
        return float(positive(within, "within"))
    share = positive(within.strip().removesuffix("%").strip(), "within") / 100
    if bound.whole is None:
        raise InputError(f"a percentage for '{step}' {_UNKNOWN}")
    return float(share) * bound.whole

"""Blocks of a plan, whose releases a miner chooses during the run, under caps that are fixed beforehand.

A block holds kinds of releases: steps without their privacy parameter. While it runs, the miner chooses kinds,
parameters and the number of releases, from earlier releases. A run adds up the costs of releases. It refuses a release
that would take a sum above its cap, before anything is drawn (see `run.spend_block`).

**Theorem.** However a miner chooses, from the schema and releases, the block loses no more than its caps. Fix
neighbours and drop the releases whose rows are equal. Given the history, each other release has the split of
`mechanisms.losses`. The product of the cores loses at most the sum of their epsilons in every transcript, which is at
most the cap (Rogers, Roth, Ullman and Vadhan 2016, for pure epsilon). At every order a, exp((a - 1)(L - a sum of rho))
has a mean of at most 1, so that the divergence is at most a times the cap on rho (Feldman and Zrnic 2021). The product
of all 1 - d_i is at least 1 minus the cap on delta in every transcript, so a part of the core with that mass can be set
aside on both sides alike (for approximate zCDP see Whitehouse, Ramdas, Rogers and Wu 2023). Releases beside the block
that are made between its own releases do not affect this argument.

So a block composes as one release with the losses of its caps. With a cap on epsilon alone, rho is half its square.
Under replace-one a row may leave one part and enter another, which costs the add-or-remove losses of two blocks. So in
parts these losses are held to half of each cap. Where a unit has several rows, the loss of each release for some of
them is at most their share of its loss for all (see `accountant.composition`), and shares add up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, final

import attrs

from dpframework.facts.argument_type_checks import require_field_types
from dpframework.facts.errors import InputError
from dpframework.facts.parameter_checks import is_whole_number, names_of
from dpframework.facts.privacy_losses import (
    NOTHING,
    Amount,
    ByRelation,
    Relation,
    decimal_text,
    exact_delta,
    exact_or_none,
    positive,
    positive_rho,
)
from dpframework.mechanisms.base import Mechanism
from dpframework.mechanisms.release_losses import Losses, half_square
from dpframework.mechanisms.selection import BoundedRange
from dpframework.plan.nodes import Node, Step, require_query, validate_plan_name
from dpframework.queries.base import Query

#: The parameters of mechanisms that a miner chooses for each release.
AMOUNTS = ("epsilon", "rho", "delta")

_FINEST = 10**6  # roots are rounded up to multiples of 1 / _FINEST


@final
@attrs.frozen
class Amounts:
    """Amounts of epsilon, rho and delta, such as the caps of a block or their remainder.

    Attributes
    ----------
    epsilon
        The pure epsilon; None if it is not counted.
    rho
        The rho in zCDP; None if it is not counted.
    delta
        The exact delta.
    """

    epsilon: Fraction | None = attrs.field(default=None, converter=exact_or_none)
    rho: Fraction | None = attrs.field(default=None, converter=exact_or_none)
    delta: Fraction = attrs.field(default=Fraction(0), converter=exact_delta)

    def __str__(self) -> str:
        """Write the amounts that are counted.

        Examples
        --------
        >>> str(Amounts(rho="0.5", delta="0.001"))
        'rho 0.5, delta 0.001'
        """
        counted = {"epsilon": self.epsilon, "rho": self.rho, "delta": self.delta or None}
        return ", ".join(f"{name} {decimal_text(amount)}" for name, amount in counted.items() if amount is not None)

    def to_dict(self) -> dict[str, str]:
        """Return a JSON-safe form of the amounts that are counted."""
        return {name: str(amount) for name, amount in attrs.asdict(self).items() if amount is not None}


@final
@attrs.frozen
class Bounds:
    """Bounds on a miner's requests for one kind of release: how many, and how small its parameter may be.

    Attributes
    ----------
    least
        The smallest epsilon or rho of a request; None for any.
    times
        The most releases in one block; None for any number.
    """

    least: Fraction | None = attrs.field(default=None, converter=exact_or_none)
    times: int | None = None


@final
@attrs.frozen(eq=False)
class Kind:
    """A kind of release of a block: a step without its privacy parameter. `kind` makes it, `spend` takes it."""

    name: str
    query: Query
    mechanism: type[Mechanism]
    least: Fraction | None
    most: Fraction | None
    times: int | None
    assumptions: tuple[str, ...]
    parameters: Mapping[str, Any]


@final
@attrs.frozen
class Spend(Node):
    """A block, whose releases a miner chooses during the run. It is a scope of its own.

    Attributes
    ----------
    name
        The name of the block, unique within its scope.
    parts
        The kinds of releases, each as a step with the largest parameter that may be requested.
    bounds
        The other bounds of each kind.
    caps
        The most that all releases of the block may cost together, under the study's relation.
    """

    name: str = attrs.field(validator=validate_plan_name)
    parts: tuple[Step, ...]
    bounds: tuple[Bounds, ...]
    caps: Amounts

    @property
    def children(self) -> tuple[Node, ...]:
        """The kinds of releases."""
        return self.parts

    def with_children(self, children: Iterable[Node]) -> Node:
        """Return a copy with other kinds."""
        return attrs.evolve(self, parts=tuple(child for child in children if isinstance(child, Step)))

    def limits(self, relation: Relation, *, in_parts: bool) -> Losses:
        """Return the caps under both relations. An epsilon or rho without a cap is None, a delta without a cap is 0.

        Parameters
        ----------
        relation
            The study's neighbouring relation.
        in_parts
            Whether the block's rows are a part of the table, which a replaced row may enter or leave.
        """

        def both(cap: Fraction | None) -> ByRelation:
            if cap is None or relation is Relation.ADD_OR_REMOVE_ONE:
                return ByRelation(cap, None)
            return ByRelation(cap / 2 if in_parts else None, cap)

        caps = self.caps
        return Losses(both(caps.epsilon), both(caps.rho), both(caps.delta) if caps.delta else NOTHING)

    def losses(self, relation: Relation, *, in_parts: bool) -> Losses:
        """Return the losses of the block as one release, which follow from its caps."""
        limits = self.limits(relation, in_parts=in_parts)
        of_epsilon = half_square(limits.pure)

        def smaller(one: Relation) -> Fraction | None:
            known = [rho for rho in (limits.zcdp.under(one), of_epsilon.under(one)) if rho is not None]
            return min(known, default=None)

        return Losses(limits.pure, ByRelation(*map(smaller, Relation)), limits.delta)

    def amount_without_claim(self, losses: Losses, relation: Relation) -> str | None:
        """Return the name of a capped amount in which a release has no claim, or None if there is none."""
        claims = {"epsilon": losses.pure, "rho": losses.zcdp, "delta": losses.delta}
        capped = [name for name, cap in attrs.asdict(self.caps).items() if cap is not None]
        return next((name for name in capped if claims[name].under(relation) is None), None)


def amount_of(mechanism: type[Mechanism]) -> str:
    """Return whether a mechanism's privacy parameter is epsilon or rho.

    Raises
    ------
    InputError
        If the mechanism has neither parameter.

    Examples
    --------
    >>> from dpframework.mechanisms import Gaussian
    >>> amount_of(Gaussian)
    'rho'
    """
    names = {field.name for field in attrs.fields(mechanism)}
    found = next((name for name in AMOUNTS[:2] if name in names), None)
    if found is None:
        raise InputError(f"mechanism '{mechanism.name}' has no epsilon or rho that could be chosen during a run")
    return found


def most_of(step: Step) -> Fraction:
    """Return the largest epsilon or rho with which a kind of release may be requested, given its step."""
    most: Fraction = getattr(step.mechanism, amount_of(type(step.mechanism)))
    return most


def kind(
    name: str,
    query: Query,
    mechanism: type[Mechanism],
    *,
    least: Amount | None = None,
    most: Amount | None = None,
    times: int | None = None,
    assumptions: Iterable[str] = (),
    **parameters: Any,
) -> Kind:
    """Describe a kind of release of a block (see `spend`).

    Parameters
    ----------
    name
        The name of the kind, unique within the block.
    query
        The query that is answered. Its declared sensitivity holds for all inputs that it is given at run time.
    mechanism
        The class of the mechanism. The miner chooses its epsilon or rho, and its delta if it has one.
    least, most
        The smallest and the largest epsilon or rho of one release. By default no smallest one, and the largest one that
        the caps allow.
    times
        The most releases of this kind in one block; by default any number.
    assumptions
        The names of the assumptions that the claim of such a release needs beyond its theorem.
    parameters
        The mechanism's other parameters.

    Raises
    ------
    InputError
        If the query or the mechanism has a wrong type, or a bound is not a positive number.

    Examples
    --------
    >>> from dpframework.mechanisms import DiscreteLaplace
    >>> from dpframework.queries import Count
    >>> kind("rows", Count(), DiscreteLaplace, times=3).times
    3
    """
    require_query(query, f"kind '{name}'")
    if not (isinstance(mechanism, type) and issubclass(mechanism, Mechanism)):
        raise InputError(
            f"kind '{name}': {mechanism!r} is not a class of mechanisms; pass a class, such as Laplace, whose epsilon "
            "is chosen when the miner runs"
        )
    if times is not None and not is_whole_number(times):
        raise InputError(f"kind '{name}': times is {times!r}; a whole number from 1 is needed")
    lower, upper = (
        None if bound is None else positive(bound, what) for bound, what in ((least, "least"), (most, "most"))
    )
    if lower is not None and upper is not None and lower > upper:
        raise InputError(f"kind '{name}': least is {decimal_text(lower)}, above most, {decimal_text(upper)}")
    amount_of(mechanism)
    return Kind(name, query, mechanism, lower, upper, times, names_of(assumptions), dict(parameters))


def spend(
    name: str, *kinds: Kind, epsilon: Amount | None = None, rho: Amount | None = None, delta: Amount = 0
) -> Spend:
    """Plan a block, whose releases the miner chooses during the run, by `table.spend(name)`.

    Parameters
    ----------
    name
        The name of the block, unique within its scope.
    kinds
        The kinds of releases that may be made from it (see `kind`).
    epsilon, rho, delta
        The caps, which are the most that all its releases may cost together under the study's relation. An epsilon
        or rho without a cap is not limited, but one of them needs a cap. A release that has an exact delta needs a cap
        on delta.

    Raises
    ------
    InputError
        If there is no kind, no cap, or a kind whose parameter no cap limits.

    Examples
    --------
    >>> from dpframework.mechanisms import DiscreteLaplace
    >>> from dpframework.queries import Count
    >>> str(spend("rounds", kind("rows", Count(), DiscreteLaplace), epsilon="0.5").caps)
    'epsilon 0.5'
    """
    if not kinds:
        raise InputError(f"block '{name}' needs at least one kind of release")
    for one in kinds:
        if not isinstance(one, Kind):
            raise InputError(f"block '{name}' takes kinds of releases, which dpf.kind describes, not {one!r}")
    if epsilon is None and rho is None:
        raise InputError(f"block '{name}' has no cap; give epsilon or rho")
    caps = Amounts(
        None if epsilon is None else positive(epsilon), None if rho is None else positive_rho(rho), exact_delta(delta)
    )
    if caps.delta >= 1:
        raise InputError(f"block '{name}': delta is {decimal_text(caps.delta)}; it must be below 1, such as 1e-6")
    parts = tuple(_step(one, caps, f"block '{name}': kind '{one.name}'") for one in kinds)
    return Spend(name, parts, tuple(Bounds(one.least, one.times) for one in kinds), caps)


def _step(one: Kind, caps: Amounts, where: str) -> Step:
    """Return a kind of release as a step with the largest parameter that may be requested."""
    amount = amount_of(one.mechanism)
    given = {amount: _largest(one.mechanism, caps, where) if one.most is None else one.most}
    if one.least is not None and one.least > given[amount]:
        raise InputError(f"{where}: least is {decimal_text(one.least)}, above {decimal_text(given[amount])}")
    if "delta" in {field.name for field in attrs.fields(one.mechanism)}:
        if not caps.delta:
            raise InputError(f"{where} has a delta of its own, which the block caps at 0; give delta")
        given["delta"] = caps.delta
    try:
        mechanism = one.mechanism(**given, **one.parameters)
    except TypeError:
        names = [f.name for f in attrs.fields(one.mechanism) if f.name not in AMOUNTS]
        raise InputError(
            f"{where}: {one.mechanism.name} takes the parameters {names or 'epsilon or rho only'}"
        ) from None
    require_field_types(mechanism, f"{where}: {mechanism.name}")
    return Step(one.name, one.query, mechanism, assumptions=one.assumptions)


def _largest(mechanism: type[Mechanism], caps: Amounts, where: str) -> Fraction:
    """Return the largest parameter of one release within the caps. A cap on rho also limits a pure epsilon."""
    if amount_of(mechanism) == "rho":
        if caps.rho is None:
            raise InputError(f"{where}: {mechanism.name} releases at a rho, which the block does not cap; give rho")
        return caps.rho
    bounds = [] if caps.epsilon is None else [caps.epsilon]
    if caps.rho is not None:
        square = caps.rho * (8 if issubclass(mechanism, BoundedRange) else 2) * _FINEST**2
        bounds.append(Fraction(math.isqrt(math.ceil(square) - 1) + 1, _FINEST))
    return min(bounds)

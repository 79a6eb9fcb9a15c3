"""Blocks of a plan, whose releases a miner chooses during the run, under caps that are fixed beforehand.

A block lists kinds of release: steps without their privacy parameter. During the run the miner looks at earlier
releases and chooses kinds, parameters and the number of releases. The run adds up the costs. If a release would take a
sum above its cap, the run refuses this release before it draws any noise (see `run.spend_block_filter`).

**Theorem.** However a miner chooses, using the schema and earlier releases, the block loses no more than its caps.

*Proof.* Fix two neighbouring tables, and drop the releases that read equal rows on both. Given the earlier releases,
the output of each remaining release i is a mixture on both tables (see `mechanisms.release_losses`). With probability
1 - d_i it comes from a core, whose loss is bounded by its epsilon or rho. With probability d_i it comes from a rest,
about which nothing is claimed. In every transcript the product of the cores loses at most the sum of their epsilons, so
at most the cap (Rogers, Roth, Ullman and Vadhan 2016, for pure epsilon). Let L be the loss of this product, and r the
sum of the rhos. At every order alpha, exp((alpha - 1)(L - alpha r)) has a mean of at most 1, so the Renyi divergence is
at most alpha times the cap on rho (Feldman and Zrnic 2021). In every transcript the product of all 1 - d_i is at least
1 minus the cap on delta. So on both tables a core with exactly that mass can be split off (for approximate zCDP see
Whitehouse, Ramdas, Rogers and Wu 2023). Releases outside the block may come between its own releases, which does not
change the argument.

So a block composes like one release whose losses are the caps. If only epsilon is capped, rho is half the square of
that cap. Under replace-one a row may leave one part of the table and enter another, which costs the add-or-remove
losses of two blocks. So if a block is released from parts, its add-or-remove losses are limited to half of each cap. If
a unit has k rows and a release depends on only r of them, the release loses at most r / k of its loss for all k rows
(see `accountant.composition`), and these shares add up.
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

#: A miner chooses these parameters of the mechanism for each release.
AMOUNTS = ("epsilon", "rho", "delta")

_FINEST = 10**6  # roots are rounded up to multiples of 1 / _FINEST


@final
@attrs.frozen
class Amounts:
    """Amounts of epsilon, rho and delta, such as the caps of a block or what is left of them.

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
        The smallest epsilon or rho of a request; None for no limit.
    times
        The largest number of releases in one block; None for no limit.
    """

    least: Fraction | None = attrs.field(default=None, converter=exact_or_none)
    times: int | None = None


@final
@attrs.frozen(eq=False)
class Kind:
    """A kind of release of a block: a step without its privacy parameter, as `kind` returns it for `spend`."""

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
    """A block, whose releases a miner chooses during the run. It opens a scope.

    Attributes
    ----------
    name
        The name of the block, unique within its scope.
    parts
        The kinds of releases, each as a step with the largest parameter that may be requested.
    bounds
        The other bounds of each kind.
    caps
        The largest amounts that all releases of the block may cost together, under the study's relation.
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
        """Return the losses of the whole block as if it were one release. They follow from its caps."""
        limits = self.limits(relation, in_parts=in_parts)
        of_epsilon = half_square(limits.pure)

        def smaller(one: Relation) -> Fraction | None:
            known = [rho for rho in (limits.zcdp.under(one), of_epsilon.under(one)) if rho is not None]
            return min(known, default=None)

        return Losses(limits.pure, ByRelation(*map(smaller, Relation)), limits.delta)

    def amount_without_claim(self, losses: Losses, relation: Relation) -> str | None:
        """Return the first capped amount, such as "epsilon", in which a release has no claim; None if there is none."""
        claims = {"epsilon": losses.pure, "rho": losses.zcdp, "delta": losses.delta}
        capped = [name for name, cap in attrs.asdict(self.caps).items() if cap is not None]
        return next((name for name in capped if claims[name].under(relation) is None), None)


def amount_of(mechanism: type[Mechanism]) -> str:
    """Return whether a mechanism's privacy parameter is epsilon or rho.

    Raises
    ------
    InputError
        If the mechanism has no parameter of these two names.

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
    """Return the largest epsilon or rho that a miner may choose for a kind of release, given as its step."""
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
        The query that is answered. Its declared sensitivity must hold for all inputs that it may be given at run time.
    mechanism
        The class of the mechanism. The miner chooses its epsilon or rho, and its delta if it has one.
    least, most
        The smallest and the largest epsilon or rho of one release. By default there is no smallest, and the largest is
        what the caps allow.
    times
        The largest number of releases of this kind in one block; by default there is no limit.
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
        raise InputError(f"kind '{name}': least is {decimal_text(lower)}, which is above most = {decimal_text(upper)}")
    amount_of(mechanism)
    return Kind(name, query, mechanism, lower, upper, times, names_of(assumptions), dict(parameters))


def spend(
    name: str, *kinds: Kind, epsilon: Amount | None = None, rho: Amount | None = None, delta: Amount = 0
) -> Spend:
    """Plan a block, whose releases the miner chooses during the run through `table.spend(name)`.

    Parameters
    ----------
    name
        The name of the block, unique within its scope.
    kinds
        The kinds of release that the miner may ask for (see `kind`).
    epsilon, rho, delta
        The caps: the largest amounts that all releases of the block may cost together, under the study's relation. Give
        a cap on epsilon, on rho, or on both. An amount without a cap is not limited. Releases with a delta of their own
        need a cap on delta.

    Raises
    ------
    InputError
        If no kind or no cap is given, or if no cap limits the parameter of a kind.

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
    """Return a kind of release as a step with the largest parameter that a miner may choose."""
    amount = amount_of(one.mechanism)
    given = {amount: _largest(one.mechanism, caps, where) if one.most is None else one.most}
    if one.least is not None and one.least > given[amount]:
        raise InputError(
            f"{where}: least is {decimal_text(one.least)}; the caps allow at most {decimal_text(given[amount])}"
        )
    if "delta" in {field.name for field in attrs.fields(one.mechanism)}:
        if not caps.delta:
            raise InputError(f"{where} has a delta of its own, which the block caps at 0; give the block a delta")
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
    """Return the largest parameter of one release that the caps allow. A cap on rho also limits a pure epsilon."""
    if amount_of(mechanism) == "rho":
        if caps.rho is None:
            raise InputError(f"{where}: {mechanism.name} costs rho, which the block does not cap; give the block a rho")
        return caps.rho
    bounds = [] if caps.epsilon is None else [caps.epsilon]
    if caps.rho is not None:
        square = caps.rho * (8 if issubclass(mechanism, BoundedRange) else 2) * _FINEST**2
        bounds.append(Fraction(math.isqrt(math.ceil(square) - 1) + 1, _FINEST))
    return min(bounds)

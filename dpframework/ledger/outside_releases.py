"""Releases from a data set that no run of this ledger made, as its owner states them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, final

import attrs

from dpframework.accountant import AdaptiveBudget, PlanCharge
from dpframework.facts.choice_enum import Choice
from dpframework.facts.errors import InputError
from dpframework.facts.privacy_losses import Amount, ByRelation, exact, positive, readable
from dpframework.facts.value_checks import as_texts, read_ratio


class OutsideKind(Choice, what="kind"):
    """The kind of a release outside the ledger.

    `EXACT` is a number or a table without noise. `PRIVATE` is a differentially private release by another program.
    `LOOK` means that someone saw the rows, or a summary of them, before choosing questions, bounds or cuts.
    """

    EXACT = "exact"
    PRIVATE = "private"
    LOOK = "look"


@final
@attrs.frozen
class Outside:
    """One release outside the ledger, as the owner states it.

    A private release is charged to the cap. An (epsilon, delta)-DP release behaves, on any two neighbours, like an
    epsilon-DP release except with probability delta (Kairouz, Oh and Viswanath 2015, Theorem 3.1). So its epsilon is
    charged like the epsilon of a plan, and its delta is added to the total delta.

    Attributes
    ----------
    what
        A description of the release, on one line.
    kind
        Whether the release was exact, private, or a look at the rows.
    by
        The name of the person who states the release.
    time
        The time at which the release was entered in the ledger.
    attributes
        The attributes about which the release reveals something; empty if it may be about any attribute.
    epsilon, delta
        The loss of a private release; 0 for the other kinds.
    """

    what: str
    kind: OutsideKind
    by: str
    time: str
    attributes: tuple[str, ...] = attrs.field(default=(), converter=as_texts)
    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)

    @property
    def effect(self) -> str:
        """A phrase about the effect of this release on the privacy claim of all runs."""
        of = f"of {', '.join(self.attributes)}" if self.attributes else "of the rows"
        if self.kind is OutsideKind.EXACT:
            return f"no epsilon covers what it shows {of}: the claim bounds what else can be learned"
        if self.kind is OutsideKind.LOOK:
            return (
                f"no epsilon covers what choices made after this look show {of}: the claim holds for the releases alone"
            )
        delta = f", and delta {float(self.delta):.2g} to their total delta" if self.delta else ""
        return f"it adds epsilon {readable(self.epsilon)} to the losses of all runs{delta}"

    @property
    def covered(self) -> bool:
        """Whether the privacy claim of all runs together covers this release."""
        return self.kind is OutsideKind.PRIVATE

    @classmethod
    def of_entry(cls, content: Mapping[str, Any], time: str) -> Outside:
        """Return the release that an entry of the ledger records."""
        return cls(
            content["what"],
            OutsideKind.parse(content["kind"]),
            content["by"],
            time,
            content["attributes"],
            read_ratio(content.get("epsilon", 0)),
            read_ratio(content.get("delta", 0)),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        return {
            "what": self.what,
            "kind": self.kind.value,
            "by": self.by,
            "time": self.time,
            "attributes": list(self.attributes),
            "epsilon": str(self.epsilon),
            "delta": str(self.delta),
            "effect": self.effect,
        }


def outside_losses(
    kind: OutsideKind | str, attributes: Iterable[str], epsilon: Amount | None, delta: Amount
) -> dict[str, Any]:
    """Return the part of an entry with the kind, the attributes and the loss of a release outside.

    Raises
    ------
    InputError
        If a private release has no epsilon, if a release of another kind has an epsilon or delta, or if a number cannot
        be used.
    """
    parsed = OutsideKind.parse(kind)
    if isinstance(attributes, str):
        raise InputError(f"attributes is one text, {attributes!r}; give a list of names")
    form: dict[str, Any] = {"kind": parsed.value, "attributes": list(attributes)}
    lost = exact(delta, "delta")
    if parsed is not OutsideKind.PRIVATE:
        if epsilon is not None or lost:
            raise InputError(f"a release of kind '{parsed.value}' has no epsilon or delta; only a private one has")
        return form
    if epsilon is None:
        raise InputError("a private release needs its epsilon; if none is known, enter it as 'exact'")
    if lost >= 1:
        raise InputError(f"delta is {delta}; it must be below 1, such as 1e-6")
    return {**form, "epsilon": str(positive(epsilon)), "delta": str(lost)}


def charge_of_outside(budget: AdaptiveBudget, losses: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of an entry with the charge of a release outside. It is empty if the release is not private.

    A pure epsilon bounds the Renyi divergence at every order, so it is also the charge at the budget's order.
    """
    if "epsilon" not in losses:
        return {}
    epsilon = read_ratio(losses["epsilon"])
    pure = ByRelation(epsilon, epsilon)
    charge = PlanCharge(pure) if budget.order is None else PlanCharge(pure, pure, budget.order)
    return {"amount": charge.to_dict()}

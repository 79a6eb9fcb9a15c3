"""Releases of a data set outside of this ledger's runs: exact numbers, private releases, and looks at the rows."""

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

    `EXACT` is a number or a table without noise, `PRIVATE` a differentially private release of another program, and
    `LOOK` is somebody's look at the rows, or at a summary of them, before they chose questions, bounds or cuts.
    """

    EXACT = "exact"
    PRIVATE = "private"
    LOOK = "look"


@final
@attrs.frozen
class Outside:
    """One release outside the ledger, as the owner states it.

    A private release is charged to the cap. If it is (epsilon, delta)-DP, then on two neighbours it is an epsilon-DP
    release except with probability delta (Kairouz, Oh and Viswanath 2015, Theorem 3.1). So its epsilon is charged, like
    a plan's, and its delta is added to the total delta.

    Attributes
    ----------
    what
        What was released, on one line.
    kind
        Whether the release was exact, private, or a look at the rows.
    by
        Who states it.
    time
        When it was entered in the ledger.
    attributes
        The attributes that it tells something about; empty if it may be about any.
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
        """The effect of this release on the claim of all runs, in a sentence."""
        of = f"of {', '.join(self.attributes)}" if self.attributes else "of the rows"
        if self.kind is OutsideKind.EXACT:
            return f"no epsilon covers what it shows {of}: the claim bounds what else can be learned"
        if self.kind is OutsideKind.LOOK:
            return f"no epsilon covers what choices after this look show {of}: the claim holds for the releases alone"
        delta = f", and delta {float(self.delta):.2g} to their total delta" if self.delta else ""
        return f"it adds epsilon {readable(self.epsilon)} to the losses of all runs{delta}"

    @property
    def covered(self) -> bool:
        """Whether the claim of all runs together covers this release."""
        return self.kind is OutsideKind.PRIVATE

    @classmethod
    def of_entry(cls, content: Mapping[str, Any], time: str) -> Outside:
        """Return the release that an entry records."""
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
    """Return the part of an entry that states the kind, the attributes and the loss of a release outside.

    Raises
    ------
    InputError
        If a private release has no epsilon, another kind has an epsilon or delta, or a number cannot be used.
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
    """Return the part of an entry that states the charge of a release outside; nothing for one that is not private.

    A pure epsilon bounds the Renyi divergence at every order, so it is also the charge at the order of the budget.
    """
    if "epsilon" not in losses:
        return {}
    epsilon = read_ratio(losses["epsilon"])
    pure = ByRelation(epsilon, epsilon)
    charge = PlanCharge(pure) if budget.order is None else PlanCharge(pure, pure, budget.order)
    return {"amount": charge.to_dict()}

"""Build miners from parameters. A miner has a budget of its own, or a share of its study's budget."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, final

import attrs

from dpframework.facts.argument_type_checks import require_argument_types
from dpframework.facts.errors import InputError, first_line, nearest
from dpframework.facts.privacy_losses import Amount, decimal_text, exact
from dpframework.run.miner_base_and_examples import Miner


def build_miner(kind: type[Miner], parameters: Mapping[str, Any]) -> Miner:
    """Return a miner of class `kind` with the given parameters.

    Raises
    ------
    InputError
        If a parameter is unknown, missing or of a wrong type, or the miner refuses it.
    """
    fields = {a.alias or a.name: a for a in attrs.fields(kind) if a.init}
    for given in parameters:
        if given not in fields:
            raise InputError(f"miner '{kind.name}' has no parameter '{given}'; {nearest(given, fields)}")
    needed = [f for f, a in fields.items() if a.default is attrs.NOTHING and f not in parameters]
    if needed:
        raise InputError(
            f"miner '{kind.name}' needs the parameter{'s' * (len(needed) > 1)} {', '.join(map(repr, needed))}; "
            f"`dpframework miners {kind.name}` explains its parameters"
        )
    require_argument_types(kind, parameters, f"miner '{kind.name}'")
    try:
        return kind(**parameters)
    except InputError as error:
        raise InputError(f"miner '{kind.name}': {error}") from None
    except (TypeError, ValueError) as error:
        raise InputError(
            f"miner '{kind.name}' refuses its parameters: {first_line(error) or 'no reason given'}"
        ) from None


def _share(value: Amount) -> Fraction:
    share = exact(value, "share")
    if not 0 < share <= 1:
        raise InputError(
            f"share is {decimal_text(share)}; a number above 0 and at most 1 is needed; 0.5 is half of the budget"
        )
    return share


@final
@attrs.frozen
class Share:
    """A miner that gets a share of its study's budget. The study then computes the miner's epsilon or rho.

    Attributes
    ----------
    share
        The share of the budget, above 0 and at most 1.
    kind
        The class of the miner.
    parameters
        The parameters of the miner, without those that set its budget.
    """

    share: Fraction = attrs.field(converter=_share)
    kind: type[Miner]
    parameters: Mapping[str, Any] = attrs.field(converter=dict)

    def __attrs_post_init__(self) -> None:
        if not (isinstance(self.kind, type) and issubclass(self.kind, Miner)):
            raise InputError(f"a share is given to a miner's name or class, not to {self.kind!r}")
        for name in ("epsilon", "rho"):
            if name in self.parameters:
                raise InputError(
                    f"miner '{self.kind.name}' has a share and the parameter '{name}'; give one of the two"
                )

    def ways(self, epsilon: Fraction, delta: Fraction) -> tuple[Mapping[str, Any], ...]:
        """Return the budget parameters for an epsilon, one mapping for each way to spend (see `Miner.ways_to_spend`).

        Raises
        ------
        InputError
            If the miner has no budget parameter.
        """
        ways = self.kind.ways_to_spend(epsilon, delta)
        if not ways:
            why = "" if delta else " without a delta"
            raise InputError(
                f"miner '{self.kind.name}' has no budget that a share could set{why}; set its own parameters"
            )
        return tuple(ways)

    def spending(self, way: int, epsilon: Fraction, delta: Fraction) -> Miner:
        """Return the miner that spends an epsilon in the way at position `way`.

        Raises
        ------
        InputError
            If the miner has no budget parameter, or refuses its parameters.
        """
        return build_miner(self.kind, {**self.parameters, **self.ways(epsilon, delta)[way]})

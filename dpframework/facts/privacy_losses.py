"""Privacy losses and the two neighbouring relations.

Losses are exact rationals from the study file to the ledger. So 0.1 + 0.2 is 0.3, and equal totals compare as equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

import attrs

from dpframework.facts.choice_enum import Choice
from dpframework.facts.errors import InputError
from dpframework.facts.value_checks import read_ratio

#: The types in which an epsilon, a rho or a delta may be given (see `exact`).
Amount: TypeAlias = Fraction | int | float | str | Decimal


LARGEST = Fraction(10**100)  # the largest amount that may be given; results computed from it still fit a float


class Relation(Choice, what="relation"):
    """The neighbouring relation, which says which two tables a privacy claim compares (dp-accounting's names).

    Under `ADD_OR_REMOVE_ONE` neighbours differ by one row's presence, and the row count is secret. Under `REPLACE_ONE`
    they differ in one row's content, and the row count is public. (For units of several rows see `facts.privacy_unit`.)
    """

    ADD_OR_REMOVE_ONE = "add-or-remove-one"
    REPLACE_ONE = "replace-one"


def exact(value: Amount, what: str = "epsilon") -> Fraction:
    """Return `value` as an exact non-negative rational. A float is read as the decimal that it prints as.

    Parameters
    ----------
    value
        An int, float, decimal text ("0.1"), ratio text ("1/3"), Decimal or Fraction.
    what
        The name of the value in error messages.

    Raises
    ------
    InputError
        If `value` is not a number, not finite, or negative. A value that is not given as a Fraction is also refused if
        it is above 1e100, or above 0 and below 1e-100.

    Examples
    --------
    >>> exact(0.1) + exact(0.2) == exact(0.3)
    True
    """
    try:
        if isinstance(value, bool):
            raise TypeError
        number = Fraction(value) if isinstance(value, Fraction | int) else read_ratio(value)
    except (ValueError, TypeError, ZeroDivisionError, OverflowError):
        raise InputError(
            f"{what} is {value!r}; write a finite number, such as {_USUAL_AMOUNTS.get(what, 0.5)}"
        ) from None
    if number < 0:
        raise InputError(f"{what} is {decimal_text(number)}; it cannot be negative")
    if not isinstance(value, Fraction) and (number > LARGEST or 0 < number < 1 / LARGEST):
        raise InputError(f"{what} must lie between 1e-100 and 1e100, or be 0")
    return number


#: A usual amount of each parameter, as an example in messages.
_USUAL_AMOUNTS = {"epsilon": "0.5", "rho": "0.1", "delta": "1e-6", "within": "10", "rows": "1000"}


def positive(value: Amount, what: str = "epsilon") -> Fraction:
    """Return `value` as an exact positive rational (see `exact`).

    Raises
    ------
    InputError
        If `value` is not a finite positive number.
    """
    number = exact(value, what)
    if number == 0:
        raise InputError(f"{what} is 0; write a number above 0, such as {_USUAL_AMOUNTS.get(what, 0.5)}")
    return number


def positive_rho(value: Amount) -> Fraction:
    """Return `positive(value, "rho")`."""
    return positive(value, "rho")


def positive_delta(value: Amount) -> Fraction:
    """Return `positive(value, "delta")`."""
    return positive(value, "delta")


def exact_or_none(value: Amount | None) -> Fraction | None:
    """Return `exact(value)`. None stays None."""
    return value if value is None or (type(value) is Fraction and value.numerator >= 0) else exact(value)


def exact_delta(value: Amount) -> Fraction:
    """Return `exact(value, "delta")`."""
    return value if type(value) is Fraction and value.numerator >= 0 else exact(value, "delta")


def decimal_text(value: Fraction) -> str:
    """Write a rational as the decimal that equals it, else as a ratio, else rounded to six significant digits.

    A decimal needs a denominator up to 10**12, a ratio a denominator up to 10**6.

    Examples
    --------
    >>> decimal_text(Fraction(3, 8)), decimal_text(Fraction(1, 3)), decimal_text(Fraction(2))
    ('0.375', '1/3', '2.0')
    """
    rest = value.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    if rest != 1 or value.denominator > 10**12:
        return f"{value.numerator}/{value.denominator}" if value.denominator <= 10**6 else f"{float(value):.6g}"
    text = f"{Decimal(value.numerator) / Decimal(value.denominator):f}"
    return text if "." in text else text + ".0"


def readable(amount: Fraction) -> str:
    """Write an exact amount as its decimal if that is short, else to four digits after a tilde.

    Examples
    --------
    >>> readable(Fraction(3, 80)), readable(Fraction(37, 220)), readable(Fraction(1000001, 3000001))
    ('0.0375', '~0.1682', '~0.3333')
    """
    text = decimal_text(amount)
    is_short = "/" not in text and len(text) <= 10
    return text if is_short and Fraction(text) == amount else f"~{float(amount):.4g}"


def rational_above(value: float) -> Fraction:
    """Return a rational just above a real number computed in floating point (for irrational sensitivities).

    The margin of 2**-40 covers the rounding of the few operations that make up a sensitivity formula.

    Examples
    --------
    >>> rational_above(math.log2(3)) > math.log2(3)
    True
    """
    return Fraction(value) * (1 + Fraction(1, 2**40))


def root_below(square: Fraction) -> Fraction:
    """Return the square root of a rational, rounded down to 12 decimals.

    Examples
    --------
    >>> float(root_below(Fraction(2)))
    1.414213562373
    """
    scale = 10**12
    return Fraction(math.isqrt(square.numerator * scale**2 // square.denominator), scale)


def convert_above(value: float) -> Fraction:
    """Return a loss that was converted in floating point, rounded up to nine decimals.

    Examples
    --------
    >>> convert_above(0.4999999991)
    Fraction(1, 2)
    """
    return Fraction(math.ceil(rational_above(value) * 10**9), 10**9)


def round_down(value: float) -> Fraction:
    """Return a rational of at most nine significant digits just below a positive number computed in floating point.

    Examples
    --------
    >>> round_down(2 / 3), round_up(2 / 3)
    (Fraction(333333333, 500000000), Fraction(666666667, 1000000000))
    """
    unit = last_digit(value, 9)
    return Fraction(value) * (1 - Fraction(1, 2**40)) // unit * unit


def round_up(value: float) -> Fraction:
    """Return a rational of at most nine significant digits just above a positive number computed in floating point."""
    unit = last_digit(value, 9)
    return math.ceil(rational_above(value) / unit) * unit


def last_digit(value: float | Fraction, digits: int) -> Fraction:
    """Return the place value of the last of a number's significant digits.

    Examples
    --------
    >>> last_digit(0.0123, 2)
    Fraction(1, 1000)
    """
    return Fraction(10) ** (math.floor(math.log10(value)) + 1 - digits)


def exceeds_by_rounding(spent: Fraction, allowed: Fraction) -> bool:
    """Tell whether an amount exceeds another one by so little that only rounding can be the reason.

    Examples
    --------
    >>> exceeds_by_rounding(11 * exact(1.0 / 11), Fraction(1)), exceeds_by_rounding(exact("1.001"), Fraction(1))
    (True, False)
    """
    return 0 < spent - allowed < allowed / 10**9


def rho_below(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return a rho of zCDP that costs at most epsilon at delta, in closed form. It may not be the largest such rho.

    A loss of rho costs an epsilon of rho + 2 sqrt(rho log(1 / delta)) at delta (Bun and Steinke 2016, Proposition 1.3).
    Let L = log(1 / delta). This cost equals the given epsilon if sqrt(rho) = sqrt(L + epsilon) - sqrt(L), which is
    epsilon / (sqrt(L + epsilon) + sqrt(L)).

    Examples
    --------
    >>> float(rho_below(Fraction(1), Fraction(1, 10**6)))
    0.0174689047
    """
    rest = math.log(1 / delta)
    return round_down((float(epsilon) / (math.sqrt(rest + float(epsilon)) + math.sqrt(rest))) ** 2)


def float_above(value: Fraction) -> float:
    """Return the smallest float that is not below `value` (a noise scale that is rounded up makes the loss smaller)."""
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def deviation_above(variance: Fraction, unit: Fraction = Fraction(1)) -> float:
    """Return the standard deviation for drawing Gaussian noise of this variance, in multiples of `unit`, rounded up."""
    return math.nextafter(math.sqrt(float_above(variance)) / float(unit), math.inf)


#: The text for a total without a finite epsilon.
NO_EPSILON = "no finite epsilon"


@attrs.frozen(repr=False)
class PrivacyLoss:
    """The loss of releases, as pure epsilon or epsilon with delta, and as rho where one is known.

    Attributes
    ----------
    epsilon
        Pure (or, with `delta` > 0, approximate) epsilon; None if there is no finite one.
    rho
        The loss in zCDP (zero-concentrated differential privacy), if it is known and better than epsilon**2 / 2; else
        None.
    delta
        The delta of the claim; 0 for pure losses.

    Examples
    --------
    >>> PrivacyLoss(epsilon=1.0)
    PrivacyLoss(epsilon=1.0)
    """

    epsilon: Fraction | None = attrs.field(default=None, converter=exact_or_none)
    rho: Fraction | None = attrs.field(default=None, converter=exact_or_none)
    delta: Fraction = attrs.field(default=Fraction(0), converter=exact_delta)

    @property
    def zcdp(self) -> Fraction | None:
        """The declared rho, or else epsilon**2 / 2 (Bun and Steinke 2016, Proposition 1.4).

        It is None if there is neither a declared rho nor a pure epsilon.
        """
        if self.rho is not None:
            return self.rho
        return None if self.epsilon is None or self.delta else self.epsilon**2 / 2

    @property
    def text(self) -> str:
        """The epsilon and the delta in words.

        Examples
        --------
        >>> PrivacyLoss(epsilon="0.5", delta="1e-6").text
        'epsilon 0.5, delta 1e-06'
        """
        if self.epsilon is None:
            return NO_EPSILON
        return f"epsilon {readable(self.epsilon)}" + (f", delta {float(self.delta):g}" if self.delta else "")

    def __repr__(self) -> str:
        """Show epsilon, or rho if there is no finite epsilon, and a delta above 0."""
        parts = [] if self.epsilon is None else [f"epsilon={decimal_text(self.epsilon)}"]
        if self.epsilon is None and self.rho is not None:
            parts.append(f"rho={decimal_text(self.rho)}")
        if self.delta:
            parts.append(f"delta={float(self.delta):g}")
        return f"PrivacyLoss({', '.join(parts)})"


@attrs.frozen
class ByRelation:
    """One amount under each relation, such as a loss or a change of an answer; None if nothing can be claimed.

    The replace-one loss of a parallel composition needs its parts' add-or-remove losses, so both are kept together.
    """

    add_or_remove_one: Fraction | None
    replace_one: Fraction | None

    def under(self, relation: Relation) -> Fraction | None:
        """Return the amount under `relation`."""
        return self.add_or_remove_one if relation is Relation.ADD_OR_REMOVE_ONE else self.replace_one

    def map(self, function: Callable[[Fraction], Fraction]) -> ByRelation:
        """Apply a function to each amount that is not None."""
        added, replaced = self.add_or_remove_one, self.replace_one
        return ByRelation(None if added is None else function(added), None if replaced is None else function(replaced))

    def to_dict(self) -> dict[str, str | None]:
        """Return both amounts, exactly, as plans and ledgers write them."""
        added, replaced = self.add_or_remove_one, self.replace_one
        return {
            Relation.ADD_OR_REMOVE_ONE.value: None if added is None else str(added),
            Relation.REPLACE_ONE.value: None if replaced is None else str(replaced),
        }

    @classmethod
    def from_dict(cls, form: Mapping[str, str | None]) -> ByRelation:
        """Read the output of `to_dict`."""
        added, replaced = (None if (text := form[r.value]) is None else read_ratio(text) for r in Relation)
        return cls(added, replaced)


#: The loss where nothing is released.
NOTHING = ByRelation(Fraction(0), Fraction(0))

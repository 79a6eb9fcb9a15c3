"""Checks of the parameters of miners and mechanisms, so that the same mistake is always refused in the same words.

A validator checks the value of an attrs field, and its message names the field. Wrap a validator in
`attrs.validators.optional` where None is allowed. A converter changes the value before it is validated. A converter's
message cannot name the field, since attrs does not tell a converter the field's name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable
from fractions import Fraction
from typing import Any, TypeAlias, TypeGuard

import attrs

from dpframework.facts.errors import InputError, nearest
from dpframework.facts.privacy_losses import Amount, decimal_text, exact

Validator: TypeAlias = "Callable[[Any, attrs.Attribute[Any], Any], None]"


def one_of(known: Collection[str]) -> Validator:
    """Return a validator for a choice from some names.

    Examples
    --------
    >>> @attrs.frozen
    ... class Miner:
    ...     context: str = attrs.field(validator=one_of(("common", "baseline")))
    >>> Miner("comon")
    Traceback (most recent call last):
        ...
    dpframework.facts.errors.InputError: context 'comon' is unknown; did you mean 'common'?
    """

    def check(instance: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
        require_known(value, known, attribute.name)

    return check


def require_known(name: object, known: Collection[str], what: str) -> None:
    """Refuse a name that is not known. The error message calls it `what`, and names the closest known one.

    Examples
    --------
    >>> require_known("serenad", ["serenade"], "method")
    Traceback (most recent call last):
        ...
    dpframework.facts.errors.InputError: method 'serenad' is unknown; did you mean 'serenade'?
    """
    if name not in known:
        raise InputError(f"{what} {name!r} is unknown; {nearest(str(name), known)}")


def is_whole_number(value: object, least: int = 1, most: int | None = None) -> TypeGuard[int]:
    """Tell whether a value is an int from `least` to `most`, if that is given. A bool does not count as an int.

    Examples
    --------
    >>> is_whole_number(3), is_whole_number(True), is_whole_number(3.0), is_whole_number(3, most=2)
    (True, False, False, False)
    """
    return isinstance(value, int) and not isinstance(value, bool) and least <= value and (most is None or value <= most)


def whole_number(least: int = 1, most: int | None = None) -> Validator:
    """Return a validator for a whole number that is at least `least`, and at most `most` if that is given."""
    if most is not None:
        needed = f"a whole number from {least} to {most}"
    else:
        needed = "a positive whole number" if least == 1 else f"a whole number from {least} on"

    def check(instance: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
        if not is_whole_number(value, least, most):
            raise InputError(f"{attribute.name} is {value!r}; {needed} is needed")

    return check


def true_or_false(instance: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
    """Validate a truth value."""
    if not isinstance(value, bool):
        raise InputError(f"{attribute.name} is {value!r}; true or false is needed")


def from_0_to_1(instance: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
    """Validate a number from 0 to 1, both included, such as a share, an index or a p-value."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InputError(f"{attribute.name} is {value!r}; a number from 0 to 1 is needed")


def finite_from_0(what: str) -> Validator:
    """Return a validator for a finite number that is not negative. Error messages call the number `what`."""

    def check(instance: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
        if not (math.isfinite(value) and value >= 0):
            raise InputError(f"{what} must be finite and not negative, not {value}")

    return check


def require_level(level: float, what: str) -> None:
    """Refuse a level, such as a confidence level, that is not between 0 and 1. Error messages call it `what`."""
    if not 0 < level < 1:
        raise InputError(f"{what} must be between 0 and 1, not {level}")


def between_0_and_1(instance: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
    """Validate a share above 0 and below 1, so that both the share and the rest are above 0."""
    if not 0 < value < 1:
        raise InputError(f"{attribute.name} is {decimal_text(value)}; a number between 0 and 1 is needed")


def share_of_budget(value: Amount) -> Fraction:
    """Convert a share of a budget to an exact fraction, which `between_0_and_1` validates.

    Examples
    --------
    >>> share_of_budget(0.3)
    Fraction(3, 10)
    """
    return exact(value, "a share of the budget")


def list_of_names(value: Iterable[str] | None) -> tuple[str, ...] | None:
    """Convert a list of names to a tuple. None, for the default names, stays None.

    Examples
    --------
    >>> list_of_names(["wolf", "bear"])
    ('wolf', 'bear')
    >>> list_of_names("wolf")
    Traceback (most recent call last):
        ...
    dpframework.facts.errors.InputError: 'wolf' is one text; give a list of names
    """
    return None if value is None else names_of(value)


def names_of(value: Iterable[str]) -> tuple[str, ...]:
    """Convert names to a tuple. A text is refused, since nobody means its letters."""
    if isinstance(value, str):
        raise InputError(f"{value!r} is one text; give a list of names")
    names = tuple(value)
    for name in names:
        if not isinstance(name, str):
            raise InputError(f"{name!r} is not a name; names are texts")
    return names


def named_once(what: str, names: Collection[str]) -> None:
    """Refuse a list of attributes' names that holds a name twice. Error messages call the list `what`."""
    if len(set(names)) < len(names):
        raise InputError(f"{what} names an attribute twice; name each once")

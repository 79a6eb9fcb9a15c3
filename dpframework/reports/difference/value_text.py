"""Values in words. A change between two values always shows two different texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any

from dpframework.facts.privacy_losses import PrivacyLoss, readable


def words(value: Any) -> str:
    """Return a value in words."""
    match value:
        case None | ():
            return "none"
        case bool():
            return "yes" if value else "no"
        case Fraction():
            return readable(value).removesuffix(".0")
        case list() | tuple():
            return ", ".join(map(words, value))
    return str(value)


def from_to(before: Any, after: Any) -> str:
    """Return two unequal values in words. They are written exactly if rounding would make them look the same.

    Examples
    --------
    >>> from_to(Fraction(1, 2), None), from_to(Fraction(33333, 99998), Fraction(1, 3))
    ('from 0.5 to none', 'from 33333/99998 to 1/3')
    """
    old, new = words(before), words(after)
    if old == new:
        old, new = (f"{value}" if isinstance(value, Fraction) else f"{value!r}" for value in (before, after))
    return f"from {old} to {new}"


def loss_words(loss: PrivacyLoss | None) -> str:
    """Return the epsilon and the delta of a total in words."""
    if loss is None or loss.epsilon is None:
        return "none that is valid"
    return f"epsilon {words(loss.epsilon)}" + (f" with delta {float(loss.delta):g}" if loss.delta else "")


def quote_names(names: Iterable[str]) -> str:
    """Return names in quotes, separated by commas."""
    return ", ".join(f"'{name}'" for name in names)


def describe_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the name of each fact whose value changed, with a text that says from what to what."""
    for fact in dict.fromkeys((*before, *after)):
        if before.get(fact) != after.get(fact):
            yield fact, f"{fact} {from_to(before.get(fact), after.get(fact))}"

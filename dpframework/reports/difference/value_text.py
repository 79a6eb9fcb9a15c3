"""Values in words, where unequal values never read alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any

from dpframework.facts.privacy import PrivacyLoss, readable


def words(value: Any) -> str:
    """Write a value for a reader."""
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
    """Write two unequal values so that a reader sees the difference, exactly if they read alike.

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
    """Write a total."""
    if loss is None or loss.epsilon is None:
        return "none that is valid"
    return f"epsilon {words(loss.epsilon)}" + (f" with delta {float(loss.delta):g}" if loss.delta else "")


def quoted(names: Iterable[str]) -> str:
    """Write names in quotes, separated by commas."""
    return ", ".join(f"'{name}'" for name in names)


def describe_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each fact with another value, with a text from the old to the new one."""
    for fact in dict.fromkeys((*before, *after)):
        if before.get(fact) != after.get(fact):
            yield fact, f"{fact} {from_to(before.get(fact), after.get(fact))}"

"""Lists within sentences, cut off after a few entries, and numbers with their nouns."""

from __future__ import annotations

from collections.abc import Sequence


def first_of(names: Sequence[str], most: int) -> str:
    """Join the first names of a list, with dots at the end if there are others.

    Examples
    --------
    >>> first_of(["a", "b"], 2)
    'a, b'
    >>> first_of(["a", "b", "c"], 2)
    'a, b, ...'
    """
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")


def first_names(names: Sequence[str], most: int) -> str:
    """Join the first names of a list, and say at the end how many others there are.

    Examples
    --------
    >>> first_names(["a", "b"], 2)
    'a, b'
    >>> first_names(["a", "b", "c", "d"], 2)
    'a, b and 2 more'
    """
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def count_text(number: int, thing: str, things: str = "") -> str:
    """Write a number with its noun, in the singular for 1.

    Examples
    --------
    >>> count_text(1, "release"), count_text(0, "release"), count_text(2, "entry", "entries")
    ('1 release', '0 releases', '2 entries')
    """
    return f"{number} {thing if number == 1 else things or f'{thing}s'}"

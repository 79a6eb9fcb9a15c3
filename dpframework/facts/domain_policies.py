"""The policies for values outside a schema's domains, decided before the data is read, and so part of a plan."""

from __future__ import annotations

from dpframework.facts.choice_enum import Choice


class OutOfDomain(Choice, what="out_of_domain"):
    """The policy for a value outside the schema's domain.

    `CLAMP` moves a number to the nearest bound and makes any other value missing. `MISSING` makes numbers and other
    values missing. With either of these policies every table can be read. `ERROR` refuses a table with such a value.
    """

    ERROR = "error"
    CLAMP = "clamp"
    MISSING = "missing"


def as_policy(given: OutOfDomain | str) -> OutOfDomain:
    """Return a policy, given as an `OutOfDomain` or by its name, as the converter of an attrs field."""
    return OutOfDomain.parse(given)

"""A miner's requests for releases from a block. Each request names a kind of release and its parameters.

The parameters are written into the path of the release. So a ledger, the journal of a run and saved results show them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction

import attrs

from dpframework.facts.errors import InputError
from dpframework.plan.nodes import Step
from dpframework.plan.spend_block_node import AMOUNTS

_REQUEST = re.compile(r" \(((?:epsilon|rho|delta) [^()]*)\)$")


def request_step(step: Step, amounts: Mapping[str, Fraction]) -> Step:
    """Return the step of a kind with the parameters that the miner chose."""
    return attrs.evolve(step, mechanism=attrs.evolve(step.mechanism, **amounts))


def request_text(step: Step) -> str:
    """Return the parameters of a requested step, as the text that follows the kind's name in the release's path.

    Examples
    --------
    >>> from dpframework.mechanisms import DiscreteLaplace
    >>> from dpframework.queries import Count
    >>> request_text(Step("rows", Count(), DiscreteLaplace("0.25")))
    ' (epsilon 1/4)'
    """
    values = ((name, getattr(step.mechanism, name, None)) for name in AMOUNTS)
    return f" ({', '.join(f'{name} {value}' for name, value in values if value is not None)})"


def split_request(path: str) -> tuple[str, dict[str, Fraction]]:
    """Split a release's path into the path of its kind and the requested parameters.

    Raises
    ------
    InputError
        If a parameter is not a positive number.

    Examples
    --------
    >>> split_request("mine/rounds/rows (epsilon 1/4)")
    ('mine/rounds/rows', {'epsilon': Fraction(1, 4)})
    """
    found = _REQUEST.search(path)
    if found is None:
        return path, {}
    parameters = {}
    for one in found.group(1).split(", "):
        name, _, value = one.partition(" ")
        top, _, bottom = value.partition("/")
        if not (top.isdecimal() and (bottom or "1").isdecimal() and int(top) and int(bottom or "1")):
            raise InputError(f"a release was requested with {one!r}; a positive ratio is needed")
        parameters[name] = Fraction(int(top), int(bottom or "1"))
    return path[: found.start()], parameters

"""Checks of the bounds that are given to a miner: two public numbers, or the name of a step that releases them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dpframework.facts.errors import InputError
from dpframework.facts.value_checks import finite_number, require_list
from dpframework.run.miner import Miner


def as_bounds(bounds: Iterable[float] | str | None) -> tuple[float, float] | str | None:
    """Return bounds as two numbers, or the name of the step that releases them; None stays None.

    Raises
    ------
    InputError
        If the bounds are something else.
    """
    if bounds is None or isinstance(bounds, str):
        return bounds
    ends = require_list(bounds, "bounds")
    if len(ends) != 2:
        raise InputError(f"bounds has {len(ends)} numbers; two are needed, such as [0, 100]")
    return finite_number(ends[0], "a bound"), finite_number(ends[1], "a bound")


def bounds_misfit(attribute: str, sources: Mapping[str, Miner]) -> str | None:
    """Return why the named steps do not find bounds of an attribute, or None if they do."""
    from dpframework.results.grid_and_bounds_results import FoundBounds

    for name, source in sources.items():
        if source.result is not FoundBounds:
            return f"bounds names step '{name}', of miner '{source.name}'; name a step of miner 'private-bounds'"
        if (found := getattr(source, "attribute", attribute)) != attribute:
            return f"bounds names step '{name}', which finds bounds of '{found}' and not of '{attribute}'"
    return None

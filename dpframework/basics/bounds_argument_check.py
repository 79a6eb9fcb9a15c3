"""Check a miner's parameter `bounds`: two public numbers, or the name of an earlier step that releases bounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dpframework.facts.errors import InputError
from dpframework.facts.value_checks import finite_number, require_list
from dpframework.run.miner_base_and_examples import Miner


def as_bounds(bounds: Iterable[float] | str | None) -> tuple[float, float] | str | None:
    """Return bounds as two numbers, or as the name of the step that releases them. None is returned as None.

    Raises
    ------
    InputError
        If the bounds have another form.
    """
    if bounds is None or isinstance(bounds, str):
        return bounds
    ends = require_list(bounds, "bounds")
    if len(ends) != 2:
        raise InputError(f"bounds has {len(ends)} numbers; two are needed, such as [0, 100]")
    return finite_number(ends[0], "a bound"), finite_number(ends[1], "a bound")


def bounds_misfit(attribute: str, sources: Mapping[str, Miner]) -> str | None:
    """Return the reason why the named steps do not find bounds of an attribute; None if they do."""
    from dpframework.results.grid_and_bounds_results import FoundBounds

    for name, source in sources.items():
        if source.result is not FoundBounds:
            return (
                f"the parameter 'bounds' refers to step '{name}', which is of miner '{source.name}'; "
                "name a step of miner 'private-bounds'"
            )
        if (found := getattr(source, "attribute", attribute)) != attribute:
            return (
                f"the parameter 'bounds' refers to step '{name}', "
                f"which finds bounds of '{found}' and not of '{attribute}'"
            )
    return None

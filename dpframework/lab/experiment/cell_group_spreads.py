"""Groups of cells, with the spread of their measured values. Each group is one entry of a table or plot."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, final

import attrs

from dpframework.lab.experiment.experiment_contents_and_grid import Experiment, Summary, canonical
from dpframework.lab.experiment.job import FinishedCell
from dpframework.lab.experiment.results_table import text_of
from dpframework.lab.experiment.spread_statistics import Spread

SECONDS = "seconds"


@final
@attrs.frozen
class GroupSpread:
    """The spread of a measured value over a group of cells.

    Attributes
    ----------
    coordinates
        The summary's coordinates, which all cells of the group share. None for a coordinate that these cells lack, such
        as the epsilon of a baseline.
    value
        The name of the measured value.
    spread
        The spread over repetitions, where the value of a repetition is the average over its folds. If there is a single
        repetition, the spread over its folds.
    """

    coordinates: Mapping[str, Any]
    value: str
    spread: Spread

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        return {
            **{key: _plain(value) for key, value in self.coordinates.items()},
            "value": self.value,
            **self.spread.to_dict(),
        }


def _plain(value: Any) -> Any:
    if isinstance(value, Fraction):
        return float(value)
    return value if isinstance(value, str | int | float | bool | None) else text_of(value)


def groups_of(experiment: Experiment, summary: Summary, finished: Iterable[FinishedCell]) -> list[GroupSpread]:
    """Return one spread for each group of cells and each value of a summary, in the order of the groups' first cells.

    A group in which a value was never measured has no spread of this value.
    """
    samples: dict[tuple[str, str], tuple[dict[str, Any], dict[int, list[float]]]] = {}
    for one in finished:
        coordinates = experiment.coordinates(one.cell)
        if not summary.selects(coordinates):
            continue
        common = {key: coordinates[key] for key in summary.by if key in coordinates}
        for value in summary.values:
            measured = one.seconds if value == SECONDS else one.values.get(value, math.nan)
            _, sample = samples.setdefault((canonical(common), value), (common, {}))
            sample.setdefault(one.cell.repetition, []).append(measured)
    described = ((common, value, _spread_of(sample)) for (_, value), (common, sample) in samples.items())
    return [GroupSpread(common, value, spread) for common, value, spread in described if spread is not None]


def _spread_of(sample: Mapping[int, Sequence[float]]) -> Spread | None:
    """Return the spread of measured values. For each repetition, `sample` has the values of its folds.

    If there are several repetitions, each of them is first averaged over its folds. If there is only one, the spread
    over its folds is returned. NaN, which means that there was nothing to measure, is left out. If all values are NaN,
    return None.
    """
    defined = [[value for value in values if not math.isnan(value)] for values in sample.values()]
    # Folds share training rows. If they counted as repetitions, the interval would be too narrow (Bengio
    # and Grandvalet, "No unbiased estimator of the variance of k-fold cross-validation", JMLR 5, 2004).
    averages = [math.fsum(values) / len(values) for values in defined if values]
    found = averages if len(defined) > 1 else defined[0]
    return Spread.of(found) if found else None

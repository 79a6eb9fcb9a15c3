"""DP-DILCA, distances between categorical values for dpframework."""

from __future__ import annotations

import importlib
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Any

from dpframework.study import hookimpl

if TYPE_CHECKING:
    from dpframework_distance.distances import LearnedDistances, ValueDistances
    from dpframework_distance.metric import CategoricalMetric
    from dpframework_distance.miner import DPDilca
    from dpframework_distance.nonprivate import dilca
    from dpframework_distance.transformer import ValueEmbedding

__all__ = ["CategoricalMetric", "DPDilca", "LearnedDistances", "ValueDistances", "ValueEmbedding", "dilca"]

_MODULES = {
    "CategoricalMetric": "metric",
    "DPDilca": "miner",
    "LearnedDistances": "distances",
    "ValueDistances": "distances",
    "dilca": "nonprivate",
}


@hookimpl
def dpframework_miners() -> list[EntryPoint]:
    """Bring DP-DILCA."""
    return [EntryPoint("dp-dilca", "dpframework_distance.miner:DPDilca", "dpframework")]


def __getattr__(name: str) -> Any:
    if name == "ValueEmbedding":  # scikit-learn is an extra
        try:
            from dpframework_distance.transformer import ValueEmbedding
        except ModuleNotFoundError as error:
            raise ImportError("ValueEmbedding needs scikit-learn: pip install 'dpframework[sklearn]'") from error
        return ValueEmbedding
    if name in _MODULES:
        return getattr(importlib.import_module(f"dpframework_distance.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'dpframework_distance' has no attribute {name!r}")

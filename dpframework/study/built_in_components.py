"""The components of the core, registered through the same hooks as those of plugins."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import Any

from dpframework import checks, mechanisms
from dpframework.study.hookspecs import hookimpl
from dpframework.tables.built_in_engines import BUILT_IN as ENGINES

#: The everyday miners, by name: the module in `dpframework.basics` and the class. A module is loaded when a study first
#: uses one of its miners.
MINERS = {
    "count": "count_miner:CountMiner",
    "histogram": "histogram_miner:HistogramMiner",
    "crosstab": "crosstab_miner:CrosstabMiner",
    "marginals": "marginals_miner:MarginalsMiner",
    "sum": "sum_miner_and_one_number_base:SumMiner",
    "mean": "mean_and_variance_miners:MeanMiner",
    "variance": "mean_and_variance_miners:VarianceMiner",
    "quantile": "quantile_miners:QuantileMiner",
    "median": "quantile_miners:MedianMiner",
    "ratio": "share_and_top_k_miners:RatioMiner",
    "top-k": "share_and_top_k_miners:TopKMiner",
    "keys": "keys_miner:KeysMiner",
    "adaptive-grid": "adaptive_grid_miner:AdaptiveGridMiner",
    "private-bounds": "bounds_miner:PrivateBoundsMiner",
    "rows-per-unit": "row_cap_selection_miner:RowsPerUnitMiner",
}

#: The accountants, by name: the module in `dpframework.accountant` and the class. A study without a delta loads the
#: pure one alone.
ACCOUNTANTS = {
    "pure": "pure:PureAccountant",
    "zcdp": "zcdp:ZCDPAccountant",
    "rdp": "rdp:RDPAccountant",
    "pld": "pld:PLDAccountant",
}


@hookimpl(tryfirst=True)
def dpframework_miners() -> list[EntryPoint]:
    """Return the everyday miners, such as counts and histograms, as entry points."""
    return [EntryPoint(name, f"dpframework.basics.{place}", "dpframework") for name, place in MINERS.items()]


@hookimpl(tryfirst=True)
def dpframework_mechanisms() -> list[type[Any]]:
    """Return the mechanisms of the core."""
    return list(mechanisms.BUILT_IN)


@hookimpl(tryfirst=True)
def dpframework_accountants() -> list[EntryPoint]:
    """Return the accountants of the core, as entry points."""
    return [EntryPoint(name, f"dpframework.accountant.{place}", "dpframework") for name, place in ACCOUNTANTS.items()]


@hookimpl(tryfirst=True)
def dpframework_engines() -> list[type[Any] | EntryPoint]:
    """Return the engines of the core."""
    return list(ENGINES)


@hookimpl(tryfirst=True)
def dpframework_checks() -> list[Any]:
    """Return the checks of the core."""
    return list(checks.BUILT_IN)


@hookimpl(tryfirst=True)
def dpframework_observers() -> list[Any]:
    """Return an empty list, since the core has no observers of its own."""
    return []

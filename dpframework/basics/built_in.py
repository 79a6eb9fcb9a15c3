"""The miners that are always there."""

from __future__ import annotations

from dpframework.basics.bounds import PrivateBoundsMiner
from dpframework.basics.counts import CountMiner, CrosstabMiner, HistogramMiner
from dpframework.basics.grids import AdaptiveGridMiner
from dpframework.basics.keys import KeysMiner
from dpframework.basics.numbers import MeanMiner, QuantileMiner, SumMiner
from dpframework.run.miner import Miner

#: The miners that are always there.
BUILT_IN: tuple[type[Miner], ...] = (
    CountMiner,
    HistogramMiner,
    CrosstabMiner,
    SumMiner,
    MeanMiner,
    QuantileMiner,
    KeysMiner,
    AdaptiveGridMiner,
    PrivateBoundsMiner,
)

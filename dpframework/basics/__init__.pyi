from .bounds import PrivateBoundsMiner as PrivateBoundsMiner
from .counts import (
    CountMiner as CountMiner,
    CrosstabMiner as CrosstabMiner,
    HistogramMiner as HistogramMiner,
)
from .grids import AdaptiveGridMiner as AdaptiveGridMiner
from .keys import KeysMiner as KeysMiner
from .marginals import MarginalsMiner as MarginalsMiner
from .numbers import (
    MeanMiner as MeanMiner,
    QuantileMiner as QuantileMiner,
    SumMiner as SumMiner,
)

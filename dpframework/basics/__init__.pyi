from .bounds import PrivateBoundsMiner as PrivateBoundsMiner
from .cells import CrosstabMiner as CrosstabMiner
from .counts import CountMiner as CountMiner
from .grids import AdaptiveGridMiner as AdaptiveGridMiner
from .histograms import HistogramMiner as HistogramMiner
from .keys import KeysMiner as KeysMiner
from .marginals import MarginalsMiner as MarginalsMiner
from .means import MeanMiner as MeanMiner, VarianceMiner as VarianceMiner
from .one_way_marginals import NoisyHistogram as NoisyHistogram, OneWayMarginals as OneWayMarginals
from .quantiles import MedianMiner as MedianMiner, QuantileMiner as QuantileMiner
from .ratios import RatioMiner as RatioMiner, TopKMiner as TopKMiner
from .sums import SumMiner as SumMiner
from .unit_rows import RowsPerUnitMiner as RowsPerUnitMiner

from .adaptive_grid import AdaptiveGridMiner as AdaptiveGridMiner
from .bounds import PrivateBoundsMiner as PrivateBoundsMiner
from .counts import CountMiner as CountMiner
from .crosstabs import CrosstabMiner as CrosstabMiner
from .histograms import HistogramMiner as HistogramMiner
from .keys import KeysMiner as KeysMiner
from .marginals import MarginalsMiner as MarginalsMiner
from .means import MeanMiner as MeanMiner, VarianceMiner as VarianceMiner
from .one_way_marginals import NoisyHistogram as NoisyHistogram, OneWayMarginals as OneWayMarginals
from .quantiles import MedianMiner as MedianMiner, QuantileMiner as QuantileMiner
from .ratios import RatioMiner as RatioMiner, TopKMiner as TopKMiner
from .rows_per_unit import RowsPerUnitMiner as RowsPerUnitMiner
from .sums import SumMiner as SumMiner

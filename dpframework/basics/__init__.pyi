from .adaptive_grid_miner import AdaptiveGridMiner as AdaptiveGridMiner
from .bounds_miner import PrivateBoundsMiner as PrivateBoundsMiner
from .count_miner import CountMiner as CountMiner
from .crosstab_miner import CrosstabMiner as CrosstabMiner
from .histogram_miner import HistogramMiner as HistogramMiner
from .keys_miner import KeysMiner as KeysMiner
from .marginals_miner import MarginalsMiner as MarginalsMiner
from .mean_and_variance_miners import MeanMiner as MeanMiner, VarianceMiner as VarianceMiner
from .one_way_marginal_steps import NoisyHistogram as NoisyHistogram, OneWayMarginals as OneWayMarginals
from .quantile_miners import MedianMiner as MedianMiner, QuantileMiner as QuantileMiner
from .row_cap_selection_miner import RowsPerUnitMiner as RowsPerUnitMiner
from .share_and_top_k_miners import RatioMiner as RatioMiner, TopKMiner as TopKMiner
from .sum_miner_and_one_number_base import SumMiner as SumMiner

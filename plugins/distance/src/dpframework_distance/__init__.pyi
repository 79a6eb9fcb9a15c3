from .metric import CategoricalMetric as CategoricalMetric
from .miner import DPDilca as DPDilca
from .nonprivate import dilca as dilca
from .transformer import ValueEmbedding as ValueEmbedding
from .value_distances import LearnedDistances as LearnedDistances, ValueDistances as ValueDistances

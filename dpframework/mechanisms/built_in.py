"""The list of built-in mechanisms."""

from __future__ import annotations

from dpframework.mechanisms.above_threshold import AboveThreshold
from dpframework.mechanisms.base import Mechanism
from dpframework.mechanisms.block_knorm import BlockNorm
from dpframework.mechanisms.exponential_interval_mechanism import ExponentialInterval
from dpframework.mechanisms.gaussian import Gaussian
from dpframework.mechanisms.gaussian_threshold import GaussianThreshold
from dpframework.mechanisms.knorm import KNorm
from dpframework.mechanisms.laplace import DiscreteLaplace, Laplace
from dpframework.mechanisms.partition_selection import PartitionSelection
from dpframework.mechanisms.selection import Exponential, PermuteAndFlip

#: The built-in mechanisms.
BUILT_IN: tuple[type[Mechanism], ...] = (
    Laplace,
    DiscreteLaplace,
    Gaussian,
    Exponential,
    PermuteAndFlip,
    ExponentialInterval,
    AboveThreshold,
    KNorm,
    BlockNorm,
    PartitionSelection,
    GaussianThreshold,
)

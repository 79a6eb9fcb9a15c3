"""Mechanisms: what turns a query's answer into a release at a privacy loss."""

from dpframework.mechanisms.base import Calibration, Losses, Mechanism, Preview, PureMechanism
from dpframework.mechanisms.gaussian import Gaussian
from dpframework.mechanisms.interval import ExponentialInterval
from dpframework.mechanisms.laplace import DiscreteLaplace, Laplace
from dpframework.mechanisms.selection import (
    Exponential,
    PermuteAndFlip,
    bounded_range_losses,
    permute_and_flip_log_probability,
)

#: The mechanisms that are always there.
BUILT_IN: tuple[type[Mechanism], ...] = (
    Laplace,
    DiscreteLaplace,
    Gaussian,
    Exponential,
    PermuteAndFlip,
    ExponentialInterval,
)

__all__ = [
    "BUILT_IN",
    "Calibration",
    "DiscreteLaplace",
    "Exponential",
    "ExponentialInterval",
    "Gaussian",
    "Laplace",
    "Losses",
    "Mechanism",
    "PermuteAndFlip",
    "Preview",
    "PureMechanism",
    "bounded_range_losses",
    "permute_and_flip_log_probability",
]

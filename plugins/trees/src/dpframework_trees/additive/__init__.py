"""Additive models, with one function of each attribute, fitted jointly by objective perturbation."""

from dpframework_trees.additive.additive_base import AdditiveSum
from dpframework_trees.additive.design import Design
from dpframework_trees.additive.miner import DPAdditive
from dpframework_trees.additive.model import AdditiveModel
from dpframework_trees.additive.perturbation import ObjectivePerturbation
from dpframework_trees.additive.regression import DPAdditiveRegression
from dpframework_trees.additive.regression_model import AdditiveRegression
from dpframework_trees.additive.terms import Term
from dpframework_trees.additive.tree_part import TreePart

__all__ = [
    "AdditiveModel",
    "AdditiveRegression",
    "AdditiveSum",
    "DPAdditive",
    "DPAdditiveRegression",
    "Design",
    "ObjectivePerturbation",
    "Term",
    "TreePart",
]

"""Additive classifiers, with one function of each attribute, fitted jointly by objective perturbation."""

from dpframework_trees.additive.design import Design
from dpframework_trees.additive.miner import DPAdditive
from dpframework_trees.additive.model import AdditiveModel, Term
from dpframework_trees.additive.perturbation import ObjectivePerturbation
from dpframework_trees.additive.tree_part import TreePart

__all__ = ["AdditiveModel", "DPAdditive", "Design", "ObjectivePerturbation", "Term", "TreePart"]

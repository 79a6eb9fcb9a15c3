"""Additive classifiers: one function of each attribute, fitted jointly by objective perturbation."""

from dpframework_trees.additive.design import Design
from dpframework_trees.additive.perturbation import ObjectivePerturbation

__all__ = ["Design", "ObjectivePerturbation"]

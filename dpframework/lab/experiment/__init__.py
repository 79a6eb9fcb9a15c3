"""Experiments: a grid of methods, parameters, budgets and data sets, measured against the truth. Not private.

An experiment file says what is compared; its cells are computed in parallel, kept one by one, and summarised.
"""

from dpframework.lab.experiment.file import load_experiment
from dpframework.lab.experiment.grid import Experiment
from dpframework.lab.experiment.running import Outcome, run_experiment

__all__ = ["Experiment", "Outcome", "load_experiment", "run_experiment"]
